"""Weak robustness: moving the input by less than delta / 2 never loses a delta-safe counterfactual."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import assume, given
from hypothesis import strategies as st

import ceopt
from ceopt.diverse import exhaustive
from ceopt.formulations.predictors import Affine, TreeEnsemble

NUMBERS = [ceopt.Feature(name, kind="continuous", lower=-8, upper=8) for name in "uvw"]
SPACE = ceopt.FeatureSpace(NUMBERS)
MIXED = ceopt.FeatureSpace([*NUMBERS[:2], ceopt.Feature("job", kind="categorical", levels=(0, 1, 2))])
MARGIN = 2.0**-10
#: A few thousandths of what the statements speak of: what a solver's tolerance takes.
NOISE = 1e-5

QUARTERS = st.integers(-8, 8).map(lambda k: k / 4)
COSTS = {"l1": ceopt.L1(scale="none"), "l2": ceopt.L2(scale="none"), "linf": ceopt.Linf(scale="none")}


def distance(kind: str, a: Any, b: Any) -> float:
    moves = np.abs(np.subtract(a, b))
    return float({"l1": moves.sum(), "l2": np.sqrt((moves**2).sum()), "linf": moves.max()}[kind])


def dual(kind: str, weights: Any) -> float:
    """Return what a unit of distance gains at most (the dual norm)."""
    w = np.abs(weights)
    return float({"l1": w.max(), "l2": np.sqrt((w**2).sum()), "linf": w.sum()}[kind])


def as_row(space: ceopt.FeatureSpace, point: Any) -> dict[str, Any]:
    return {name: int(v) if space[name].is_finite else float(v) for name, v in zip(space.names, point, strict=True)}


@draws(25)
@given(
    weights=st.tuples(QUARTERS, QUARTERS, QUARTERS),
    x=st.tuples(QUARTERS, QUARTERS, QUARTERS),
    push=st.tuples(QUARTERS, QUARTERS, QUARTERS),
    kind=st.sampled_from(list(COSTS)),
    epsilon=st.sampled_from([0.25, 1.0]),
    share=st.sampled_from([0.1, 0.6, 0.98]),
)
def test_three_statements_on_linear_models(
    weights: Any, x: Any, push: Any, kind: str, epsilon: float, share: float
) -> None:
    """The least costs are those of the closed form, differ by the distance at most, and what is safe stays."""
    w, x = np.array(weights), np.array(x)
    assume(dual(kind, w) > 0.0)
    intercept = -float(w @ x) - 0.5  # x is refused by a half
    model = Affine(w, intercept, labels=("no", "yes"))
    cost = COSTS[kind]

    found = exhaustive(model, as_row(SPACE, x), SPACE, target="yes", epsilon=epsilon, cost=cost, margin=MARGIN)

    least = (0.5 + MARGIN) / dual(kind, w)
    assume(least < 3.0)
    assert found.complete
    assert found[0].cost == pytest.approx(least, rel=1e-4, abs=1e-5)
    assert found.safety[0] == pytest.approx(epsilon, abs=1e-9)

    length = distance(kind, push, np.zeros(3))
    assume(length > 0.0)
    delta = found.safety[0]  # that of a strong counterfactual is epsilon
    moved = x + np.array(push) / length * share * delta / 2
    assume(float(w @ moved) + intercept < 0.0)
    again = exhaustive(model, as_row(SPACE, moved), SPACE, target="yes", epsilon=epsilon, cost=cost, margin=MARGIN)
    d = distance(kind, x, moved)
    assert abs(found[0].cost - again[0].cost) <= d + NOISE
    c = found[0].values.to_numpy(dtype=float)
    assert distance(kind, moved, c) <= again[0].cost + epsilon + NOISE
    assert len(again) == 1  # the cell that holds every counterfactual


def stump(feature: int, at: float, left: float, right: float) -> dict[str, Any]:
    return {"feature": feature, "threshold": at, "left": {"value": left}, "right": {"value": right}}


@st.composite
def forests(draw: Any) -> TreeEnsemble:
    """Draw a few small trees over two numbers and a category."""

    def tree(depth: int) -> dict[str, Any]:
        if not depth:
            return {"value": draw(st.integers(-4, 4)) / 4 + 0.01}
        feature = draw(st.integers(0, 2))
        at = draw(st.sampled_from([0.5, 1.5])) if feature == 2 else draw(st.integers(-10, 10)) / 4
        return {"feature": feature, "threshold": at, "left": tree(depth - 1), "right": tree(depth - 1)}

    return TreeEnsemble([tree(2) for _ in range(draw(st.integers(2, 5)))], -0.5, labels=("no", "yes"), n_inputs=3)


def cell(model: TreeEnsemble, point: Any) -> tuple[Any, ...]:
    splits = sorted(
        {(f, t) for tree in model.trees for f, t in zip(tree.feature, tree.threshold, strict=True) if f < 2}
    )
    return (point[2], *(point[f] <= t for f, t in splits if f >= 0))


@draws(40)
@given(
    model=forests(),
    x=st.tuples(QUARTERS, QUARTERS, st.integers(0, 2)),
    push=st.tuples(QUARTERS, QUARTERS),
    kind=st.sampled_from(list(COSTS)),
    epsilon=st.sampled_from([0.5, 1.0, 2.0]),
    share=st.sampled_from([0.1, 0.6, 0.98]),
    data=st.data(),
)
def test_what_is_safe_stays_on_forests(
    model: Any, x: Any, push: Any, kind: str, epsilon: float, share: float, data: Any
) -> None:
    """The cell of a delta-safe answer has one for every input closer than delta / 2, no dearer than that answer."""
    cost = COSTS[kind]
    found = exhaustive(model, as_row(MIXED, x), MIXED, target="yes", epsilon=epsilon, cost=cost)
    assume(len(found))
    assert found.complete
    place = data.draw(st.integers(0, len(found) - 1))
    delta, length = found.safety[place], distance(kind, push, (0.0, 0.0))
    assume(delta > 0.0 and length > 0.0)
    moved = np.array(x, dtype=float) + np.array([*push, 0.0]) / length * share * delta / 2
    assume(model.score([moved])[0] <= 0.0)

    again = exhaustive(model, as_row(MIXED, moved), MIXED, target="yes", epsilon=epsilon, cost=cost)

    assert again.complete
    kept = {cell(model, answer.values.to_list()): answer.cost for answer in again}
    answer = found[place].values.to_list()
    switched = float(answer[2] != x[2])
    assert cell(model, answer) in kept
    numbers = distance(kind, [*answer[:2], switched], [*moved[:2], 0.0])
    assert kept[cell(model, answer)] <= numbers + 1e-9
    assert abs(found[0].cost - again[0].cost) <= distance(kind, x, moved) + 1e-9


def test_beyond_half_of_delta_an_answer_can_be_lost() -> None:
    """The bound is sharp: the input walks towards one way out and away from the other."""
    model = TreeEnsemble([stump(0, -1.0, 1.0, -1.0), stump(0, 1.0, -1.0, 1.0)], 1.0, labels=("no", "yes"), n_inputs=1)
    space = ceopt.FeatureSpace([ceopt.Feature("u", kind="continuous", lower=-8, upper=8)])

    def at(u: float) -> ceopt.SolutionSet:
        return exhaustive(model, {"u": u}, space, target="yes", epsilon=0.5, cost=COSTS["l1"])

    assert [round(answer.values["u"]) for answer in at(0.0)] == [-1, 1]
    assert at(0.0).safety == pytest.approx((0.5, 0.5), abs=1e-9)
    assert len(at(0.24)) == 2
    assert len(at(0.26)) == 1
