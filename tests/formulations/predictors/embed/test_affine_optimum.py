"""The optimum over linear models: enumeration on lattices, closed forms where columns are continuous."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import problems
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, assert_answers, program
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ceopt.formulations import Factual, Reaches, embed
from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Linf
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import OtherThan
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import UnboundedFeatureError

LATTICE = ("integer", "even", "ordinal", "ranked", "categorical", "binary", "flag")


@draws(100)
@given(problem=problems.affine_problems(LATTICE))
def test_lattices_equal_enumeration(problem: Problem) -> None:
    assert_answers(problem, program(problem))


@draws(30)
@given(problem=problems.affine_problems(LATTICE))
def test_lattices_in_another_order(problem: Problem) -> None:
    assert_answers(problem, program(problem, order=("cost", "rules", "embed")))


# ---- continuous columns in a box, one row -------------------------------------------------------------------------
finite = st.integers(-40, 40).map(lambda k: k / 8)


@st.composite
def boxes(draw: Any) -> tuple[list[float], list[float], list[float], list[float], list[float], float]:
    """Draw x0, lower, upper, scale, w and a gap that the factual lacks."""
    d = draw(st.integers(1, 4))
    x0 = [draw(finite) for _ in range(d)]
    lower = [v - draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])) for v in x0]
    upper = [v + draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])) for v in x0]
    scale = [draw(st.sampled_from([0.5, 1.0, 2.0])) for _ in range(d)]
    return x0, lower, upper, scale, [draw(finite) for _ in range(d)], draw(st.sampled_from([0.25, 1.0, 3.0]))


def least(x0: list[float], moves: Any, w: Any, gap: float, cost: str) -> float | None:
    """Return the least cost by its closed form, the moves being room (d,) in the useful direction, in scaled units."""
    gains = np.abs(w) * moves
    if gains.sum() < gap - 1e-12:
        return None
    match cost:
        case "l0":
            return float(np.searchsorted(np.cumsum(np.sort(gains)[::-1]), gap - 1e-12) + 1)
        case "l1":  # fractional knapsack
            left, spent = gap, 0.0
            for j in np.argsort(-np.abs(w), kind="stable"):
                if left > 0 and w[j]:
                    move = min(moves[j], left / abs(w[j]))
                    left, spent = left - move * abs(w[j]), spent + move
            return spent
        case _:  # linf: the least t whose moves, cut at t, gain enough
            low, high = 0.0, float(np.max(moves))
            for _ in range(200):
                middle = (low + high) / 2
                enough = float(np.abs(w) @ np.minimum(moves, middle)) >= gap
                low, high = (low, middle) if enough else (middle, high)
            return high


@draws(100)
@given(box=boxes(), name=st.sampled_from(["l0", "l1", "linf"]))
def test_boxes_equal_closed_forms(box: Any, name: str) -> None:
    x0, lower, upper, scale, w, gap = box
    names = "abcd"[: len(x0)]
    space = FeatureSpace(
        [Feature(n, kind="continuous", lower=l, upper=u) for n, l, u in zip(names, lower, upper, strict=True)]
    )
    room = np.where(np.array(w) > 0, np.subtract(upper, x0), np.subtract(x0, lower)) / np.array(scale)
    expected = least(x0, room, np.array(w) * scale, gap, name)
    scales = dict(zip(names, scale, strict=True))
    cost: AbstractCost = {"l0": L0(), "l1": L1(scale=scales), "linf": Linf(scale=scales)}[name]
    m = pyo.ConcreteModel()
    m.x = Factual(space, dict(zip(names, x0, strict=True)))
    m.p = embed(Affine(w, -float(np.dot(w, x0)) - gap, labels=(0, 1)), m.x)
    m.valid = Reaches(m.p, 1, margin=0.0)
    m.cost = pyo.Objective(expr=cost.build(m.x))
    result = solve(m)
    assert (result.status is Status.INFEASIBLE) == (expected is None)
    if expected is not None:
        assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-7)
        point = np.array([m.x.decoded()[n] for n in names])
        assert np.dot(w, point - x0) >= gap - 1e-6


@draws(40)
@given(w=st.lists(finite.filter(bool), min_size=1, max_size=4), gap=st.sampled_from([0.5, 2.0]))
def test_free_columns_equal_closed_forms(w: list[float], gap: float) -> None:
    names = "abcd"[: len(w)]
    space = FeatureSpace([Feature(n, kind="continuous", weight=1.0) for n in names])
    closed = {L1(scale="none"): gap / max(map(abs, w)), Linf(scale="none"): gap / sum(map(abs, w))}
    closed[L2(scale="none")] = gap / math.hypot(*w)
    closed[L2(scale="none", squared=True)] = gap**2 / math.hypot(*w) ** 2
    for cost, expected in closed.items():
        m = pyo.ConcreteModel()
        m.x = Factual(space, dict.fromkeys(names, 0.5))
        m.p = embed(Affine(w, -0.5 * sum(w) - gap, labels=(0, 1)), m.x)
        m.valid = Reaches(m.p, 1, margin=0.0)
        m.cost = pyo.Objective(expr=cost.build(m.x))
        objective = solve(m).objective
        assert objective is not None
        assert cost.from_objective(objective) == pytest.approx(expected, rel=1e-5)


@draws(40)
@given(w=finite.filter(bool), down=st.sampled_from([0.5, 1.0, 3.0]), up=st.sampled_from([0.5, 1.0, 3.0]))
def test_a_square_with_a_weight_per_direction(w: float, down: float, up: float) -> None:
    space = FeatureSpace([Feature("a", kind="continuous", weight=(down, up))])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 1.0})
    m.p = embed(Affine([w], -w - 1.0, labels=(0, 1)), m.x)
    m.valid = Reaches(m.p, 1, margin=0.0)
    m.cost = pyo.Objective(expr=L2(scale="none", squared=True).build(m.x))
    assert solve(m).objective == pytest.approx(((up if w > 0 else down) / abs(w)) ** 2, rel=1e-4)


# ---- bounds where a big-M needs them --------------------------------------------------------------------------------
def test_several_labels_need_bounds_and_name_the_column() -> None:
    space = FeatureSpace([Feature("a", kind="integer", lower=0, upper=9), Feature("wage", kind="continuous", lower=0)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 1, "wage": 2.0})
    m.p = embed(Affine([[1, 1], [0, 2], [1, -1]], [0.0, 0, 0], labels=("x", "y", "z")), m.x)
    with pytest.raises(UnboundedFeatureError, match="'wage'"):
        m.valid = Reaches(m.p, OtherThan("x"))
    m.one = Reaches(m.p, "z")  # one label needs none


def test_counting_changes_needs_bounds_and_names_the_column() -> None:
    space = FeatureSpace([Feature("wage", kind="continuous", lower=0)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"wage": 2.0})
    m.p = embed(Affine([1.0], 0.0), m.x)
    with pytest.raises(UnboundedFeatureError, match=r"'wage' may reach \[0.0, inf\]"):
        L0().build(m.x)


def test_a_weight_on_a_fixed_column_is_a_constant() -> None:
    space = FeatureSpace([Feature("a", kind="continuous", mutable=False), Feature("b", kind="continuous")])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 3.0, "b": 0.0})
    m.p = embed(Affine([2.0, 1.0], -10.0), m.x)
    assert str(m.p.score.expr) == "-4.0 + x.x[b]"


# ---- scaled and encoded columns -------------------------------------------------------------------------------------
def fitted() -> tuple[Any, FeatureSpace, pd.DataFrame]:
    rng = np.random.default_rng(5)
    data = pd.DataFrame(
        {
            "wage": rng.normal(30.0, 9.0, 90),
            "age": rng.integers(18, 80, 90),
            "job": rng.choice(["cook", "nurse", "miner"], 90),
        }
    )
    y = np.where(data["wage"] + 9 * (data["job"] == "cook") > 33, "good", "bad")
    encode = ColumnTransformer([("n", StandardScaler(), ["wage", "age"]), ("c", OneHotEncoder(), ["job"])])
    model = make_pipeline(encode, LogisticRegression()).fit(data, y)
    return model, FeatureSpace.infer(data, moves={"age": "any"}), data


def test_the_score_of_a_pipeline_is_its_decision_function() -> None:
    model, space, data = fitted()
    m = pyo.ConcreteModel()
    m.x = Factual(space, data.iloc[[0]])
    m.p = embed(model, m.x)
    for k, wanted in enumerate(model.decision_function(data)):
        m.x.place(space.row(data.iloc[[k]]))
        assert pyo.value(m.p.score["good"]) == pytest.approx(wanted, rel=1e-9)
        assert pyo.value(m.p.score["bad"]) == pytest.approx(-wanted, rel=1e-9)


def test_the_range_of_a_score_is_attained() -> None:
    model, space, data = fitted()
    space = space.update("age", direction="increasing")
    m = pyo.ConcreteModel()
    m.x = Factual(space, data.iloc[[0]])
    m.p = embed(model, m.x)
    wages = [space["wage"].lower, space["wage"].upper]
    corners = pd.DataFrame(
        [(w, a, j) for w in wages for a in (data["age"][0], space["age"].upper) for j in space["job"].levels],
        columns=data.columns,
    )
    scores = model.decision_function(corners)
    assert m.p.range_of([1.0]) == pytest.approx((scores.min(), scores.max()), rel=1e-9)
    assert m.p.range_of([-2.0]) == pytest.approx((-2 * scores.max(), -2 * scores.min()), rel=1e-9)
