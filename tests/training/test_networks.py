"""What the networks compute, layer by layer, and what recourse they can make."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from ceopt.training.networks import LEAK, OWN_LOGIT, Design, generated, initial, scores_of, shares_of  # noqa: E402


def design(**changes):
    usual = {
        "n_columns": 6, "n_scores": 1, "encoder": (5, 4), "predictor": (3,), "generator": (7,), "shared": True,
        "activation": "relu", "groups": ((1, 4),),
    }  # fmt: skip
    return Design(**{**usual, **changes})


def trees(of):
    return jax.tree.map(lambda entry: np.asarray(entry) + 0.1, initial(of, jax.random.key(0)))


def by_hand(layers, row, bend):
    for weights, biases in layers:
        row = [
            bend(sum(w * h for w, h in zip(weights[:, k], row, strict=True)) + biases[k]) for k in range(len(biases))
        ]
    return row


@pytest.mark.long
@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("shared", [True, False])
def test_both_networks_are_those_of_the_docstring(activation, shared):
    own = design(activation=activation, shared=shared)
    predictor, generator = trees(own)
    x = np.random.default_rng(0).uniform(size=(2, 6))
    leak = LEAK if activation == "leaky_relu" else 0.0
    free = (np.full((2, 6), -100.0), np.full((2, 6), 100.0))
    found = generated(predictor, generator, own, x, room=free, xp=np)

    def bend(h):
        return h if h > 0 else leak * h

    for row in range(2):
        z = by_hand(predictor["encoder"], x[row], bend)
        p = by_hand(predictor["head"][:-1], z, bend)
        score = by_hand(predictor["head"][-1:], p, lambda h: h)
        assert scores_of(predictor, x, activation, np)[row] == pytest.approx(score)
        read = [*z, *p]
        if not shared:
            read = by_hand(generator["encoder"], x[row], bend)
        raw = by_hand(generator["head"][-1:], by_hand(generator["head"][:-1], read, bend), lambda h: h)
        powers = np.exp(raw[1:4])
        assert found[row] == pytest.approx([raw[0], *(powers / powers.sum()), *raw[4:]])


@pytest.mark.long
def test_jax_and_numpy_say_the_same():
    own = design(n_scores=3)
    predictor, generator = trees(own)
    x = np.random.default_rng(0).uniform(size=(4, 6)).astype(np.float32)
    room = (np.zeros((4, 6), np.float32), np.ones((4, 6), np.float32))
    for ours, theirs in (
        (shares_of(scores_of(predictor, x, "relu", np), np), shares_of(scores_of(predictor, x, "relu", jnp), jnp)),
        (generated(predictor, generator, own, x, room=room, xp=np),
         generated(predictor, generator, own, x, room=room, xp=jnp)),
    ):  # fmt: skip
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("n_scores", [1, 3])
def test_shares_are_sigmoid_and_softmax(n_scores):
    scores = np.random.default_rng(0).normal(size=(4, n_scores)) * 5
    found = shares_of(scores, np)
    powers = np.exp(np.hstack([np.zeros_like(scores), scores]) if n_scores == 1 else scores)

    np.testing.assert_allclose(found, powers / powers.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(("start", "back"), [(3.0, 1.0), (-3.0, -1.0)])
def test_what_is_cut_learns_the_way_back_alone(start, back):
    own = design()
    predictor, generator = trees(own)
    x = jnp.full((1, 6), 0.5)
    low = np.array([[0.0, 0.0, 0.0, 0.0, 0.5, 0.0]], np.float32)
    high = np.array([[0.1, 1.0, 1.0, 1.0, 0.5, 1.0]], np.float32)

    def loss(biases, k, sign):
        *inner, (weights, _) = generator["head"]
        tree = {"head": [*inner, (0.0 * weights, biases)]}
        return sign * generated(predictor, tree, own, x, room=(low, high), xp=jnp)[0, k]

    biases = jnp.full(6, start)
    end = 0.1 if back > 0 else 0.0
    assert float(loss(biases, 0, 1.0)) == pytest.approx(end)
    assert jax.grad(loss)(biases, 0, back)[0] == pytest.approx(back)
    assert not np.asarray(jax.grad(loss)(biases, 0, -back)).any()
    assert float(loss(biases, 4, 1.0)) == 0.5
    for sign in (1.0, -1.0):
        assert not np.asarray(jax.grad(loss)(biases, 4, sign)).any()


def test_a_residual_generator_that_says_nothing_keeps_the_row():
    own = design(residual=True)
    predictor, generator = trees(own)
    *inner, (weights, biases) = generator["head"]
    silent = {"head": [*inner, (0.0 * weights, 0.0 * biases)]}
    x = np.array([[0.3, 0.0, 1.0, 0.0, 0.7, 1.0]])
    found = generated(predictor, silent, own, x, room=(np.zeros((1, 6)), np.ones((1, 6))), xp=np)
    share = np.exp(OWN_LOGIT) / (np.exp(OWN_LOGIT) + 2.0)

    assert found[0, [0, 4, 5]] == pytest.approx([0.3, 0.7, 1.0])
    assert found[0, 1:4] == pytest.approx([(1 - share) / 2, share, (1 - share) / 2], rel=1e-6)


def test_weights_start_within_the_span_of_he():
    predictor, generator = initial(design(encoder=(300, 200), predictor=(), shared=False), jax.random.key(1))
    for layers in (*predictor.values(), *generator.values()):
        for weights, biases in layers:
            span = np.sqrt(6.0 / weights.shape[0])
            assert 0.8 * span < np.abs(weights).max() <= span
            assert not np.asarray(biases).any()
    assert [w.shape for w, _ in predictor["encoder"]] == [(6, 300), (300, 200)]
    assert [w.shape for w, _ in predictor["head"]] == [(200, 1)]
    assert [w.shape for w, _ in generator["head"]] == [(200, 7), (7, 6)]
