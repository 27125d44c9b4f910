"""Bounds of neurons hold wherever the person can be, and are never looser than intervals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ceopt.formulations import Factual
from ceopt.formulations.costs import L1
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.predictors import Predictor, ReluNetwork
from ceopt.formulations.predictors.embed.embedded import Inputs, InputsWithin
from ceopt.formulations.predictors.embed.networks import NetworkBounds
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import Step

Floats = NDArray[np.float64]

SPACE = FeatureSpace(
    [
        Feature("a", kind="continuous", lower=-1, upper=3),
        Feature("b", kind="continuous", lower=-2, upper=0.5),
        Feature("n", kind="integer", lower=0, upper=4, direction="increasing"),
        Feature("size", kind="ordinal", levels=("S", "M", "L")),
        Feature("job", kind="categorical", levels=("cook", "nurse", "clerk")),
        Feature("fixed", kind="continuous", lower=0, upper=1, mutable=False),
    ]
)
ROW = {"a": 0.5, "b": -1.0, "n": 1, "size": "M", "job": "cook", "fixed": 0.25}
#: Two columns of a, one of them scaled; job one-hot and also as a table; a constant column.
COLUMNS = (
    Column("a"),
    Column("a", steps=(Step("subtract", np.float64(1.0)), Step("divide", np.float64(2.0)))),
    Column("b"),
    Column("n"),
    Column("size", table=(0.0, 1.0, 4.0)),
    *(Column("job", table=tuple(float(j == k) for j in range(3))) for k in range(3)),
    Column("job", table=(2.0, -1.0, 0.5)),
    Column("fixed"),
    Column(None, constant=1.5),
)
ENCODING = Encoding(COLUMNS, tuple(SPACE.names))
WIDTH = len(COLUMNS)


def inputs() -> Inputs:
    net = ReluNetwork([np.ones((1, WIDTH))], [[0.0]])
    return Inputs(Predictor(net, ENCODING, net, SPACE), Factual(SPACE, ROW), np.ones(WIDTH, dtype=bool))


def corners() -> Floats:
    ends = [(-1.0, 3.0), (-2.0, 0.5), (1.0, 4.0), (0.0, 1.0, 2.0), (0.0, 1.0, 2.0), (0.25,)]
    return np.array(list(itertools.product(*ends)))


def inside(count: int, rng: np.random.Generator) -> Floats:
    numbers = [rng.uniform(-1, 3, count), rng.uniform(-2, 0.5, count), rng.integers(1, 5, count)]
    levels = [rng.integers(0, 3, count), rng.integers(0, 3, count), np.full(count, 0.25)]
    return np.stack([*numbers, *levels], axis=1)


def test_affine_functions_have_their_exact_range() -> None:
    weights = np.random.default_rng(0).normal(size=(20, WIDTH))
    values = ENCODING.matrix(corners()) @ weights.T + 0.75
    low, high = inputs().extremes(weights, np.full(20, 0.75))
    np.testing.assert_allclose(low, values.min(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(high, values.max(axis=0), rtol=0, atol=1e-12)


def test_a_known_cost_narrows_the_range_to_a_knapsack() -> None:
    """With 1 to spend, 2a + 3b rises by 3 at most (all on b), and falls by 3; job costs 1 as well."""
    space = FeatureSpace([Feature(name, kind="continuous", lower=-9, upper=9) for name in "ab"])
    net = ReluNetwork([[[2.0, 3.0]]], [[0.0]])
    x = Factual(space, {"a": 1.0, "b": 0.0})
    whole = Inputs(Predictor(net, Encoding.identity(space), net, space), x, np.ones(2, dtype=bool))
    near = InputsWithin(whole, CostCutoff(space, {"a": 1.0, "b": 0.0}, L1(scale="none"), 1.0))
    low, high = near.extremes(np.array([[2.0, 3.0], [1.0, 0.0]]), np.array([0.5, 0.0]))
    assert low.tolist() == pytest.approx([-0.5, 0.0], abs=1e-6)
    assert high.tolist() == pytest.approx([5.5, 2.0], abs=1e-6)


@st.composite
def networks(draw: Any) -> list[tuple[Floats, Floats]]:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = [WIDTH, *draw(st.lists(st.integers(1, 8), min_size=1, max_size=4)), 2]
    bias = draw(st.sampled_from([0.0, 0.5, 2.0]))
    return [(rng.normal(size=(m, n)), rng.normal(scale=bias, size=m)) for n, m in itertools.pairwise(sizes)]


def intervals(layers: list[tuple[Floats, Floats]]) -> list[tuple[Floats, Floats]]:
    """Bounds of every layer by interval propagation."""
    found = []
    low, high = inputs().extremes(*layers[0])
    found.append((low, high))
    for w, b in layers[1:]:
        l, u = np.maximum(low, 0.0), np.maximum(high, 0.0)
        low, high = np.maximum(w, 0) @ l + np.minimum(w, 0) @ u + b, np.maximum(w, 0) @ u + np.minimum(w, 0) @ l + b
        found.append((low, high))
    return found


def propagated(layers: list[tuple[Floats, Floats]], within: Any) -> list[tuple[Floats, Floats]]:
    bounds = NetworkBounds(within)
    found = [(layer.lower, layer.upper) for layer in (bounds.add(w, b) for w, b in layers[:-1])]
    return [*found, bounds.extremes(*layers[-1])]


def received(layers: list[tuple[Floats, Floats]], points: Floats) -> list[Floats]:
    """What every layer receives at the points, (n, neurons) each."""
    h, found = ENCODING.matrix(points), []
    for w, b in layers:
        found.append(h @ w.T + b)
        h = np.maximum(found[-1], 0.0)
    return found


@draws(60)
@given(layers=networks(), seed=st.integers(0, 100))
def test_bounds_hold_and_are_within_intervals(layers: list[tuple[Floats, Floats]], seed: int) -> None:
    points = np.vstack([corners(), inside(500, np.random.default_rng(seed))])
    found = propagated(layers, inputs())
    for values, (low, high), (loose, looser) in zip(received(layers, points), found, intervals(layers), strict=True):
        assert (low <= values.min(axis=0)).all()
        assert (values.max(axis=0) <= high).all()
        size = 1e-7 * (1.0 + np.maximum(np.abs(loose), np.abs(looser)))  # layers add what they move outwards
        assert (loose - size <= low).all()
        assert (high <= looser + size).all()


@draws(40)
@given(layers=networks(), seed=st.integers(0, 100), budget=st.sampled_from([0.0, 0.5, 1.5, 4.0]))
def test_bounds_within_a_cost_hold_and_are_within_intervals(
    layers: list[tuple[Floats, Floats]], seed: int, budget: float
) -> None:
    factual = SPACE.row(ROW)
    here = np.array([factual[name] for name in SPACE.names])
    points = np.vstack([here, inside(3000, np.random.default_rng(seed))])
    points[1:] = np.where(np.random.default_rng(seed).random(points[1:].shape) < 0.6, here, points[1:])
    moves = np.abs(points - here)
    moves[:, 3], moves[:, 4] = moves[:, 3] / 2.0, moves[:, 4] > 0
    near = points[moves.sum(axis=1) <= budget]
    assert len(near)
    narrow = propagated(layers, InputsWithin(inputs(), CostCutoff(SPACE, factual, L1(scale="none"), budget)))
    for values, (low, high), (loose, looser) in zip(received(layers, near), narrow, intervals(layers), strict=True):
        assert (low <= values.min(axis=0) + 1e-12).all()
        assert (values.max(axis=0) <= high + 1e-12).all()
        size = 1e-7 * (1.0 + np.maximum(np.abs(loose), np.abs(looser)))
        assert (loose - size <= low).all()
        assert (high <= looser + size).all()


def box(low: list[float], high: list[float]) -> NetworkBounds:
    space = FeatureSpace(
        [Feature(f"v{k}", kind="continuous", lower=l, upper=u) for k, (l, u) in enumerate(zip(low, high, strict=True))]
    )
    net = ReluNetwork([np.ones((1, len(low)))], [[0.0]])
    x = Factual(space, {f"v{k}": l for k, l in enumerate(low)})
    return NetworkBounds(Inputs(Predictor(net, Encoding.identity(space), net, space), x, np.ones(len(low), dtype=bool)))


def test_back_substitution_sees_what_cancels() -> None:
    """y = relu(v), w = relu(v - 1) on [-1, 3]: y is in [0 or v, 3/4 (v + 1)], w in [0 or v - 1, 1/2 (v + 1)].

    So y - w is between v - 1/2 (v + 1) >= -1 and 3/4 (v + 1) - (v - 1) <= 2; intervals give -2 and 3. 1.5 y - 3 w + v
    is between 1.5 v - 1.5 (v + 1) + v >= -2.5 and 9/8 (v + 1) - 3 (v - 1) + v <= 5; intervals give -7 and 7.5.
    """
    bounds = box([-1.0], [3.0])
    bounds.add(np.array([[1.0], [1.0], [1.0]]), np.array([0.0, -1.0, 1.0]))  # the third is always active: v + 1
    low, high = bounds.extremes(np.array([[1.0, -1.0, 0.0], [1.5, -3.0, 1.0]]), np.array([0.0, -1.0]))
    assert low.tolist() == pytest.approx([-1.0, -2.5])
    assert high.tolist() == pytest.approx([2.0, 5.0])


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (-1.0, 2.0, "unstable"), (-1e-6, 2.0, "unstable"), (0.0, 2.0, "active"), (-1e-12, 2.0, "active"),
        (-2.0, 0.0, "dead"), (-2.0, 1e-12, "dead"), (0.0, 0.0, "active"),
    ],
)  # fmt: skip
def test_a_neuron_is_one_of_three_kinds(low: float, high: float, kind: str) -> None:
    layer = box([low], [high]).add(np.array([[1.0]]), np.array([0.0]))
    assert [name for name in ("unstable", "active", "dead") if getattr(layer, name)[0]] == [kind]


def test_infinite_ends_stay_where_they_matter() -> None:
    bounds = box([0.0, -1.0], [np.inf, 1.0])
    layer = bounds.add(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]]), np.array([0.0, 0.0, 5.0, -1.0]))
    assert layer.lower.tolist() == pytest.approx([0.0, -1.0, 4.0, -np.inf])
    assert layer.upper.tolist() == pytest.approx([np.inf, 1.0, np.inf, -1.0])
    assert (layer.active.tolist(), layer.dead.tolist()) == ([True, False, True, False], [False, False, False, True])
    low, high = bounds.extremes(np.array([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 3.0]]), np.zeros(2))
    assert low.tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert high.tolist() == pytest.approx([np.inf, 1.0])
