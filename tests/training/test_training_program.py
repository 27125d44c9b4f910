"""One batch of training against plain descent: which network moves, on which loss, and towards what."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from ceopt.training.networks import Design  # noqa: E402 - JAX may be missing
from ceopt.training.training import (  # noqa: E402
    RANDOM,
    Batch,
    ShiftAttack,
    Sizes,
    TrainingProgram,
    proximity_loss,
    squared_error,
)


def problem(*, attack=None, n_scores=1, desired=None, weights=(1.0, 0.5, 0.3), shared=True, dropout=0.0):
    design = Design(4, n_scores, (5, 3), (4,), (6,), shared, "relu", ((1, 3),))
    program = TrainingProgram(design, dropout, 8, smoothing=False, desired=desired, attack=attack)
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(8, 4)).astype(np.float32)
    n_classes = max(n_scores, 2)
    labels = np.eye(n_classes, dtype=np.float32)[rng.integers(0, n_classes, 8)]
    rows = Batch(x, labels, x - 10.0, x + 10.0)  # wide: what is cut has a gradient of its own
    single = np.float32
    sizes = Sizes(np.array(weights, single), single(0.01), single(0.2), np.array([1, 0, 0, 1], single))
    key = jax.random.key(0, impl=RANDOM)
    return program, program.begun(key), rows, sizes, key


def numerical_slope(loss, weights, places, h=1e-3):
    slopes = []
    for place in places:
        step = np.zeros(len(weights), np.float32)
        step[place] = h
        slopes.append((float(loss(weights + step)) - float(loss(weights - step))) / (2 * h))
    return np.array(slopes)


@pytest.mark.long
def test_the_first_step_moves_the_predictor_alone_down_its_loss():
    program, networks, rows, sizes, key = problem()
    after, loss = program.predictor_step(networks, rows, sizes, key)

    def prediction(weights):
        return squared_error(program.shares(program.predictor_of(weights), rows.x), rows.labels)

    assert float(loss) == pytest.approx(float(prediction(networks.predictor)), rel=1e-5)
    assert (after.generator == networks.generator).all()
    assert after.of_generator is networks.of_generator
    assert float(prediction(after.predictor)) < float(loss)
    # Adam's first step is as long as the learning rate, against the sign of the slope
    places = np.flatnonzero(np.abs(np.asarray(after.predictor - networks.predictor)) > 0.009)[::2]
    moved = np.asarray(after.predictor - networks.predictor)[places]
    slopes = numerical_slope(prediction, networks.predictor, places)
    clear = np.abs(slopes) > 1e-3
    assert clear.sum() >= 3
    assert (np.sign(moved) == -np.sign(slopes))[clear].all()


@pytest.mark.long
@pytest.mark.parametrize("shared", [True, False])
def test_the_second_step_moves_the_generator_alone_down_its_losses(shared):
    program, networks, rows, sizes, key = problem(shared=shared)
    after, (validity, proximity) = program.generator_step(networks, rows, sizes, key)
    predictor = program.predictor_of(networks.predictor)
    other = np.eye(2)[1 - np.asarray(program.shares(predictor, rows.x)).argmax(axis=1)]

    def loss(weights):
        made = program.made(predictor, weights, rows)
        judged = squared_error(program.shares(predictor, made), other)
        return 0.5 * judged + 0.3 * proximity_loss(rows.x, made)

    assert (after.predictor == networks.predictor).all()
    assert after.of_predictor is networks.of_predictor
    assert 0.5 * float(validity) + 0.3 * float(proximity) == pytest.approx(float(loss(networks.generator)), rel=1e-5)
    places = np.flatnonzero(np.abs(np.asarray(after.generator - networks.generator)) > 0.009)[::2]
    moved = np.asarray(after.generator - networks.generator)[places]
    slopes = numerical_slope(loss, networks.generator, places)
    clear = np.abs(slopes) > 1e-3
    assert clear.sum() >= 3
    assert (np.sign(moved) == -np.sign(slopes))[clear].all()


@pytest.mark.long
def test_recourse_is_judged_by_the_attacked_model():
    attack = ShiftAttack(3, 2, "linf", 1.0, restart=False)
    program, networks, rows, sizes, key = problem(attack=attack)
    predictor = program.predictor_of(networks.predictor)
    targets = program.targets(predictor, rows.x)
    judge = program.judge(
        predictor, networks.generator, rows, targets=targets, sizes=sizes, key=jax.random.split(key)[0]
    )
    _, (validity, _) = program.generator_step(networks, rows, sizes, key)
    made = program.made(predictor, networks.generator, rows)

    assert float(validity) == pytest.approx(float(squared_error(program.shares(judge, made), targets)), rel=1e-5)
    plain = float(squared_error(program.shares(predictor, made), targets))
    assert abs(float(validity) - plain) > 1e-4


def test_all_aim_at_the_desired_class():
    program, networks, rows, *_ = problem(n_scores=3, desired=2)
    targets = np.asarray(program.targets(program.predictor_of(networks.predictor), rows.x))

    assert (targets == np.array([0.0, 0.0, 1.0])).all()


@pytest.mark.long
def test_dropout_leaves_units_out_and_keeps_the_mean():
    program, *_, key = problem(dropout=0.4)
    thin = program._thinning(key, 2000, (3, 2))
    first, second = np.asarray(thin(np.ones((2000, 3)))), np.asarray(thin(np.ones((2000, 2))))

    for units in (first, second):
        assert np.unique(units) == pytest.approx([0.0, 1 / 0.6])
        assert units.mean() == pytest.approx(1.0, abs=0.05)
    assert (first[:, 0] != first[:, 1]).any()
    assert (first[:, :2] != second).any()
    assert problem()[0]._thinning(key, 5, (3,)) is None


@pytest.mark.long
def test_an_epoch_is_its_batches_one_after_the_other():
    program, networks, rows, sizes, key = problem(dropout=0.2)
    order = np.array([[0, 1, 2], [3, 4, 5]])
    after, losses = jax.jit(program.epoch)(networks, rows, order, sizes, key)
    found = []
    for places, own in zip(order, jax.random.split(key, 2), strict=True):
        first, second = jax.random.split(own)
        batch = Batch(*(entries[places] for entries in rows))
        networks, prediction = program.predictor_step(networks, batch, sizes, first)
        networks, others = program.generator_step(networks, batch, sizes, second)
        found.append([float(prediction), *map(float, others)])

    np.testing.assert_allclose(np.asarray(losses), np.mean(found, axis=0), rtol=1e-4)
    np.testing.assert_allclose(after.predictor, networks.predictor, atol=1e-5)
    np.testing.assert_allclose(after.generator, networks.generator, atol=1e-5)


@pytest.mark.long
def test_losses_held_out_have_no_dropout():
    program, networks, rows, sizes, key = problem(dropout=0.5)
    plain = problem()[0]
    found = program.held_out(networks, rows, sizes, key)

    np.testing.assert_allclose(found, plain.held_out(networks, rows, sizes, key), rtol=1e-6)
    predictor = plain.predictor_of(networks.predictor)
    assert float(found[0]) == pytest.approx(float(squared_error(plain.shares(predictor, rows.x), rows.labels)))
    assert float(found[2]) == pytest.approx(
        float(proximity_loss(rows.x, plain.made(predictor, networks.generator, rows)))
    )
