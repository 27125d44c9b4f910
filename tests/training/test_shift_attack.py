"""The attacker on arrays: its gradient goes through retraining exactly, and its loop is that of Algorithm 1."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from ceopt.training.networks import scores_of, shares_of  # noqa: E402 - JAX may be missing
from ceopt.training.training import AttackedRows, ShiftAttack, squared_error  # noqa: E402


def double_precision():
    try:
        return jax.enable_x64(True)
    except AttributeError:  # before JAX 0.8
        from jax.experimental import enable_x64

        return enable_x64()


def shares(model, x):
    return shares_of(scores_of(model, x, "relu", jnp), jnp)


def problem(n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    n_scores = 1 if n_classes == 2 else n_classes
    model = {
        "encoder": [(rng.normal(size=(3, 4)), rng.normal(size=4))],
        "head": [(rng.normal(size=(4, n_scores)), rng.normal(size=n_scores))],
    }
    one = np.eye(n_classes)
    given = AttackedRows(
        rng.uniform(size=(6, 3)), one[rng.integers(0, n_classes, 6)],
        rng.uniform(size=(5, 3)), one[rng.integers(0, n_classes, 5)],
    )  # fmt: skip
    return model, given, rng.uniform(-0.1, 0.1, size=(6, 3))


def reference(attack, model, given, shift, movable, perturbation, step_size):
    """Algorithm 1 line by line; the derivative is JAX's of the loss after K plain steps."""

    @jax.jit
    def retrained(now, delta):
        for _ in range(attack.unroll):
            slopes = jax.grad(lambda m: squared_error(shares(m, given.rows + delta), given.labels))(now)
            now = jax.tree.map(lambda w, g: w - attack.learning_rate * g, now, slopes)
        return now

    def loss(delta, now):
        return squared_error(shares(retrained(now, delta), given.counterfactuals), given.targets)

    rising = jax.jit(jax.grad(loss))
    values = [float(squared_error(shares(model, given.counterfactuals), given.targets))]
    now = model
    for _ in range(attack.steps):
        begun = model if attack.restart else now
        slope = np.asarray(rising(shift, begun))
        values.append(float(loss(shift, begun)))
        now = retrained(begun, shift)
        shift = shift + step_size * np.sign(slope) * movable
        if attack.norm == "linf":
            shift = np.clip(shift, -perturbation, perturbation)
        else:
            lengths = np.linalg.norm(shift, axis=1, keepdims=True)
            shift = np.where(lengths > perturbation, shift * perturbation / lengths, shift)
    return now, shift, values


def run(attack, model, given, shift, movable=1.0, perturbation=0.1, step_size=0.04):
    @jax.jit
    def attacked(model, arrays, shift):
        return attack.run(
            shares, model, AttackedRows(*arrays),
            shift=shift, movable=movable * jnp.ones(3), perturbation=perturbation, step_size=step_size,
        )  # fmt: skip

    found = attacked(model, (given.rows, given.labels, given.counterfactuals, given.targets), shift)
    return jax.tree.map(np.asarray, found)


@pytest.mark.long
@pytest.mark.parametrize(("n_classes", "retrained"), [(2, ("encoder", "head")), (3, ("head",))])
def test_the_gradient_through_retraining_is_that_of_finite_differences(n_classes, retrained):
    with double_precision():
        model, given, shift = problem(n_classes)
        attack = ShiftAttack(1, 3, "linf", 0.5, restart=False, retrained=retrained)

        def loss(delta):
            return attack.ahead(shares, model, delta, given)[0]

        value = jax.jit(loss)
        slope = np.asarray(jax.jit(jax.grad(loss))(shift))
        found = np.empty_like(slope)
        h = 1e-6
        for place in np.ndindex(shift.shape):
            step = np.zeros_like(shift)
            step[place] = h
            found[place] = (value(shift + step) - value(shift - step)) / (2 * h)

    assert slope.dtype == np.float64
    assert np.abs(slope).max() > 1e-4
    np.testing.assert_allclose(slope, found, rtol=1e-5, atol=1e-9)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("norm", "restart"), [("linf", False), ("l2", True)])
def test_the_loop_is_algorithm_1(norm, restart):
    with double_precision():
        model, given, shift = problem(seed=1)
        attack = ShiftAttack(4, 2, norm, 0.5, restart=restart)
        shift = np.asarray(attack.projected(shift, 0.1))
        movable = np.array([1.0, 0.0, 1.0])
        wanted = reference(attack, model, given, shift, movable, 0.1, 0.04)
        found = run(attack, model, given, shift, movable)

    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-9)
    np.testing.assert_allclose(found[2], wanted[2], rtol=1e-9)
    for ours, theirs in zip(jax.tree.leaves(found[0]), jax.tree.leaves(wanted[0]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.long
def test_what_is_carried_over_differs_from_a_restart():
    model, given, shift = problem()
    carried = run(ShiftAttack(3, 2, "linf", 0.5, restart=False), model, given, shift)
    again = run(ShiftAttack(3, 2, "linf", 0.5, restart=True), model, given, shift)

    assert carried[2][1] == pytest.approx(again[2][1])
    assert abs(carried[2][2] - again[2][2]) > 1e-4


def test_only_the_head_is_retrained_where_that_is_asked():
    model, given, shift = problem()
    found = run(ShiftAttack(2, 2, "linf", 0.5, restart=False, retrained=("head",)), model, given, shift)[0]

    np.testing.assert_allclose(found["encoder"][0][0], model["encoder"][0][0], rtol=1e-6)
    assert np.abs(found["head"][0][0] - model["head"][0][0]).max() > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_shifts_start_and_stay_in_the_ball(norm):
    attack = ShiftAttack(5, 1, norm, 0.5, restart=False)
    model, given, _ = problem()
    shift = attack.start(jax.random.key(0), (6, 3), jnp.array([1.0, 0.0, 1.0]), 0.2)
    found = np.asarray(run(attack, model, given, shift, np.array([1.0, 0.0, 1.0]), 0.2, 0.3)[1])
    for shifts in (np.asarray(shift), found):
        lengths = np.abs(shifts).max(axis=1) if norm == "linf" else np.linalg.norm(shifts, axis=1)
        assert lengths.max() <= 0.2 * (1 + 1e-6)
        assert lengths.max() > 0.1
        assert (shifts[:, 1] == 0.0).all()
    assert np.isfinite(np.asarray(attack.projected(jnp.zeros((2, 3)), 0.0))).all()
