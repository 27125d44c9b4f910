"""Degenerate models, spaces and bounds."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rowtext import rows, text, variables
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.columns import Price
from ceopt.formulations.constraints import Linear, MaxChanges
from ceopt.formulations.costs import L0, L1, L2, Changes, Linf, parse_cost
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.predictors import Affine, Predictor, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import Step
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.formulations.targets import AtLeast
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    UnboundedFeatureError,
    UnknownNameError,
    UnsupportedModelError,
)

FORMULATIONS = ("ordered", "misic", "leaf")
UP = {"left": {"value": 0.0}, "right": {"value": 1.0}}


def stump(threshold: float, feature: int = 0) -> dict[str, Any]:
    return {"feature": feature, "threshold": threshold} | UP


def person(model: Any, value: float = 1.0, *, formulation: str = "auto", **column: Any) -> Any:
    """One column a, one regressor."""
    m = pyo.ConcreteModel()
    bounds: dict[str, Any] = {"kind": "continuous", "lower": 0.0, "upper": 9.0}
    m.x = Factual(FeatureSpace([Feature("a", **(bounds | column))]), {"a": value})
    m.p = embed(model, m.x, formulation=formulation)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    return m


# ---- nothing to decide ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(("target", "status"), [(0.0, Status.OPTIMAL), (1.0, Status.INFEASIBLE)])
def test_every_column_immutable(formulation: str, target: float, status: Status) -> None:
    m = person(TreeEnsemble([stump(4.0)]), formulation=formulation, mutable=False)
    m.v = Reaches(m.p, AtLeast(target), margin=0.0)
    assert solve(m).status is status
    assert m.x.decode().to_dict() == {"a": 1.0}
    assert (pyo.value(m.x.raw["a"]), pyo.value(m.x.n_changed), m.p.score.expr) == (1.0, 0, 0.0)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_tree_that_is_a_single_leaf(formulation: str) -> None:
    m = person(TreeEnsemble([{"value": 3.0}, stump(4.0)], n_inputs=1), formulation=formulation)
    m.v = Reaches(m.p, AtLeast(4.0), margin=0.0)
    assert solve(m).objective == pytest.approx(3)
    m = person(TreeEnsemble([{"value": 3.0}], n_inputs=1), formulation=formulation)
    m.v = Reaches(m.p, AtLeast(4.0), margin=0.0)
    assert solve(m).status is Status.INFEASIBLE


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("threshold", [-1.0, 9.0, 10.0])
def test_thresholds_outside_the_reach_are_no_cuts(formulation: str, threshold: float) -> None:
    m = person(TreeEnsemble([stump(threshold)]), formulation=formulation)
    assert m.p.score.expr == (1.0 if threshold < 0 else 0.0)
    assert rows(m) == []
    assert variables(m) == {}


@pytest.mark.parametrize(("threshold", "score"), [(1.0, 0.0), (-0.5, 1.0)])
def test_thresholds_that_a_clipped_column_never_crosses(threshold: float, score: float) -> None:
    clip = (Step("at_least", np.float64(0.0)), Step("at_most", np.float64(1.0)))
    space = FeatureSpace([Feature("a", kind="continuous")])
    predictor = Predictor(TreeEnsemble([stump(threshold)]), Encoding((Column("a", clip),), ("a",)), None, space)
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 5.0})
    m.p = embed(predictor, m.x)
    assert m.p.score.expr == score
    assert predictor.score([[5.0], [-5.0]]).tolist() == [score, score]


def test_a_threshold_just_inside_is_one() -> None:
    for threshold in (0.0, math.nextafter(9.0, 0)):
        assert len(variables(person(TreeEnsemble([stump(threshold)])).x)) == 1


def test_levels_that_all_go_one_way_are_no_split() -> None:
    space = FeatureSpace(
        [Feature("job", kind="categorical", levels=(1, 2, 3)), Feature("b", kind="integer", mutable=False)]
    )
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"job": 2, "b": 1})
    m.p = embed(TreeEnsemble([stump(0.5), stump(3.5)], n_inputs=2), m.x)
    assert m.p.score.expr == 1.0


def test_levels_whose_names_collide_keep_their_own_rows() -> None:
    """b_c alone, and b and c together, go left: "b_c" twice if levels were joined in a row's name."""
    space = FeatureSpace([Feature("job", kind="ordinal", levels=("b_c", "b", "c", "d"))])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"job": "d"})
    inner = {"feature": 0, "threshold": 0.5, "left": {"value": 0.0}, "right": {"value": 5.0}}
    m.p = embed(TreeEnsemble([{"feature": 0, "threshold": 2.5, "left": inner, "right": {"value": 1.0}}]), m.x)
    assert len(m.p.left) == len(m.p.right) == 2


# ---- bounds ---------------------------------------------------------------------------------------------------------
def test_trees_need_no_bounds() -> None:
    m = person(TreeEnsemble([stump(4.0)]), lower=-math.inf, upper=math.inf)
    m.v = Reaches(m.p, AtLeast(1.0), margin=0.0)
    m.few = impose(MaxChanges(1), m.x)
    assert solve(m).objective == pytest.approx(3)


@pytest.mark.parametrize("formulation", ["misic", "leaf"])
def test_research_forms_need_bounds_and_name_the_column(formulation: str) -> None:
    with pytest.raises(UnboundedFeatureError, match=r"column 'a' may reach \[0.0, inf\]. Set them: space.update\('a'"):
        person(TreeEnsemble([stump(4.0)]), formulation=formulation, upper=math.inf)


def test_a_coordinate_beside_cuts_needs_bounds_in_either_order() -> None:
    m = person(TreeEnsemble([stump(4.0)]), lower=-math.inf)
    with pytest.raises(UnboundedFeatureError, match="'a'"):
        _ = m.x.raw["a"]
    m = person(Affine([1.0], 0.0), lower=-math.inf)
    with pytest.raises(UnboundedFeatureError, match="'a'"):
        embed(TreeEnsemble([stump(4.0)]), m.x)


def test_inferred_bounds_widen_for_the_row() -> None:
    m = person(TreeEnsemble([stump(4.0)]), 12.0, upper_inferred=True)
    assert m.x.reach["a"] == Interval(0.0, 12.0, None, 12.0)


# ---- cuts -----------------------------------------------------------------------------------------------------------
def test_two_thresholds_without_an_integer_between_are_one_cut() -> None:
    m = person(TreeEnsemble([stump(3.2), stump(3.7)]), kind="integer")
    assert list(variables(m.x)) == ["cut[a,'3']"]
    m.v = Reaches(m.p, AtLeast(2.0), margin=0.0)
    assert solve(m).objective == pytest.approx(3)


def test_thresholds_that_look_alike_are_two_cuts() -> None:
    """Their first six digits agree, and the second one is all of its digits."""
    inner = {"feature": 0, "threshold": 1.5, "left": {"value": 2.0}, "right": {"value": 0.0}}
    tree = {"feature": 0, "threshold": 1.4999999, "left": {"value": 0.0}, "right": inner}
    m = person(TreeEnsemble([tree]))
    assert len(variables(m.x)) == 2
    m.v = Reaches(m.p, AtLeast(2.0), margin=0.0)
    assert solve(m).objective == pytest.approx(0.4999999)
    assert m.x.decode()["a"] == math.nextafter(1.4999999, 2)


def test_cuts_of_different_scaled_columns_meet() -> None:
    """Two matrix columns read one raw column; equal thresholds in raw units are one cut."""
    space = FeatureSpace([Feature("a", kind="integer", lower=0, upper=20)])
    double = FunctionTransformer(lambda X: X)
    unread, m = make_pipeline(double, DecisionTreeRegressor()).fit([[0.0], [1.0]], [0, 1]), pyo.ConcreteModel()
    m.x = Factual(space, {"a": 1})
    with pytest.raises(UnsupportedModelError):
        embed(unread, m.x)
    grid = np.arange(21.0)[:, None]
    plain = DecisionTreeRegressor().fit(grid, (grid[:, 0] > 7).astype(float))
    scaled = make_pipeline(StandardScaler(), DecisionTreeRegressor()).fit(grid, (grid[:, 0] > 7).astype(float))
    m.first, m.second = embed(plain, m.x), embed(scaled, m.x)
    assert list(variables(m.x)) == ["cut[a,'7']"]
    m.one, m.two = Reaches(m.first, AtLeast(1.0), margin=0.0), Reaches(m.second, AtLeast(1.0), margin=0.0)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    assert solve(m).objective == pytest.approx(7)


# ---- published instances: right of a cut means beyond a gap ----------------------------------------------------------
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_factual_in_the_gap_must_leave_it(formulation: str) -> None:
    model = TreeEnsemble([stump(4.0)], right_gap=0.5)
    m = person(model, 4.25, formulation=formulation)
    assert solve(m).objective == pytest.approx(0.25)
    m.v = Reaches(m.p, AtLeast(1.0), margin=0.0)
    assert solve(m).objective == pytest.approx(0.25)
    assert m.x.decode()["a"] == 4.5
    m = person(TreeEnsemble([stump(4.0)], right_gap=0.75), 4.25)
    assert text(m.x.changed["a"]) == " +1"
    assert solve(m).objective == pytest.approx(0.25)
    assert m.x.decode()["a"] == 4.0


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_nothing_lies_between_cuts_that_are_closer_than_the_gap(formulation: str) -> None:
    inner = {"feature": 0, "threshold": 4.25, "left": {"value": 2.0}, "right": {"value": 0.0}}
    tree = {"feature": 0, "threshold": 4.0, "left": {"value": 0.0}, "right": inner}
    other = {"feature": 0, "threshold": 4.25, "left": {"value": 1.0}, "right": {"value": 0.0}}
    m = person(TreeEnsemble([tree, stump(4.0), other], right_gap=0.5), formulation=formulation)
    m.v = Reaches(m.p, AtLeast(2.0), margin=0.0)  # only between the cuts
    assert solve(m).status is Status.INFEASIBLE


# ---- a narrower reach than the space's ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "cost", [L0(), L1(scale="none"), L2(scale="none", squared=True), Linf(scale="none"), Changes()]
)
def test_a_reach_that_leaves_only_another_value_is_charged(cost: Any) -> None:
    space = FeatureSpace(
        [
            Feature("a", kind="continuous"),
            Feature("s", kind="ordinal", levels=(1, 2, 3)),
            Feature("c", kind="categorical", levels=(1, 2)),
        ]
    )
    m = pyo.ConcreteModel()
    m.x = Factual(
        space, {"a": 1.0, "s": 1, "c": 1}, reach={"a": Interval(3.0, 3.0), "s": Levels((2,)), "c": Levels((1,))}
    )
    m.cost = pyo.Objective(expr=cost.build(m.x))
    expected = {"L0": 3, "L1": 2 + 1 + 1, "L2": 4 + 1 + 1, "Linf": 2, "Changes": 3}[type(cost).__name__]
    assert solve(m).objective == pytest.approx(expected)
    assert m.x.decode().to_dict() == {"a": 3.0, "s": 3, "c": 2}
    assert pyo.value(m.x.n_changed) == 3


# ---- reach ----------------------------------------------------------------------------------------------------------
steps = st.sampled_from([None, 0.5, 2.0])
numbers = st.integers(-40, 40).map(lambda k: k / 8)


@given(low=numbers, width=st.integers(0, 40), step=steps, anchor=numbers, value=numbers)
def test_intervals_round_to_members(low: float, width: int, step: float | None, anchor: float, value: float) -> None:
    high = low + width / 8
    interval = Interval(low, high, step, anchor)
    members = [k / 8 for k in range(-400, 401) if low <= k / 8 <= high]
    if step is not None:
        members = [v for v in members if ((v - anchor) / step).is_integer()]
    assert interval.floor(value) == max((v for v in members if v <= value), default=-math.inf)
    assert interval.ceil(value) == min((v for v in members if v >= value), default=math.inf)
    if members:
        inner = interval.narrowed(low, high)
        assert (inner.lower, inner.upper) == (members[0], members[-1])
        assert abs(inner.clip(value) - value) == min(abs(v - value) for v in members)
        assert inner.clip(value) in members
    else:
        with pytest.raises(InvalidValueError, match="a member between the bounds"):
            interval.narrowed(low, high)


@given(
    kind=st.sampled_from(["linear", "square", "fixed"]),
    down=st.sampled_from([0.0, 0.5, 2.0]),
    budget=st.sampled_from([0.25, 1.0, 4.0]),
)
def test_a_price_says_how_far_a_budget_goes(kind: Any, down: float, budget: float) -> None:
    price = Price(kind, down, 3.0)
    for far, sign in zip(price.farthest(budget), (-1.0, 1.0), strict=True):
        within = 1e6 if math.isinf(far) else far
        assert price.of(sign * within) <= budget + 1e-9
        if math.isfinite(far):
            assert price.of(sign * (far * 1.01 + 1e-9)) > budget
    assert price.of(0.0) == 0.0


def test_decimal_steps_reach_a_decimal_bound_and_never_pass_one() -> None:
    """0.1 + 2 * 0.1 > 0.3 and 0.3 - 0.1 < 0.2 in floats; the members are 0.3 and 0.2 all the same."""
    assert Interval(0.0, 0.3, 0.1, 0.1).floor(0.3) == 0.3
    assert Interval(0.2, 0.9, 0.1, 0.3).ceil(0.2) == 0.2
    third = 1 / 3  # no decimal number: members are what floats make of them
    assert Interval(0.0, third + 3 * 0.1, 0.1, third).floor(third + 3 * 0.1) == third + 3 * 0.1
    assert Interval(0.0, 0.6, 0.1, third).floor(0.6) == third + 2 * 0.1


@given(factor=st.sampled_from([0.0, 0.25, 4.0]), move=st.sampled_from([-2.0, 0.5]))
def test_prices_of_a_sum_are_its_cost_in_one_column(factor: float, move: float) -> None:
    space = FeatureSpace([Feature("a", kind="continuous", weight=(2.0, 3.0))])
    for part in (L0(), L1(scale="none"), L2(scale="none", squared=True), Linf(scale="none")):
        cost = factor * part + 2 * Changes()
        (prices,) = cost.prices(space).values()
        expected = factor * part.value(space, {"a": 1.0}, {"a": 1.0 + move}) + 2.0
        assert sum(price.of(move) for price in prices) == pytest.approx(expected)


# ---- linear forms ---------------------------------------------------------------------------------------------------
def test_forms_add_scale_and_vanish() -> None:
    m = pyo.ConcreteModel()
    m.v = pyo.Var([1, 2])
    one, two = LinearForm(1.0, ((2.0, m.v[1]),)), LinearForm(0.5, ((-2.0, m.v[1]), (3.0, m.v[2])))
    assert text((one + two).expression()) == "+3 v[2] +1.5"
    assert text(total([one, one, two]).scaled(2.0).expression()) == "+4 v[1] +6 v[2] +5"
    assert text(two.complement().expression()) == "+2 v[1] -3 v[2] +0.5"
    assert one.scaled(0.0) == LinearForm()
    assert (one + LinearForm(0.0, ((-2.0, m.v[1]),))).expression() == 1.0
    m.v[1].set_value(4)
    assert one.value() == 9


def test_rows_without_variables() -> None:
    m = pyo.ConcreteModel()
    written = Rows(m, "r")
    written.add("holds", LinearForm(2.0), lower=2.0, upper=3.0)
    assert rows(m) == []
    written.add("low", LinearForm(2.0), lower=2.1)
    written.add("high", LinearForm(2.0), upper=1.9)
    assert rows(m) == ["+1 impossible <= -0.1", "+1 impossible >= 0.1"]
    m.v = pyo.Var()
    written.add("range", LinearForm(1.0, ((1.0, m.v),)), lower=2.0, upper=3.0)
    assert rows(m)[-1] == "1 <= +1 v <= 2"


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (lambda _: embed(Affine([1.0], 0.0), [1]), InvalidTypeError, "a Factual block"),
        (
            lambda m: embed(Affine([1.0], 0.0), m.x, formulation="leaf"),
            UnknownNameError,
            "'leaf'. Choose from: auto, affine",
        ),
        (
            lambda m: embed(TreeEnsemble([stump(1.0)]), m.x, formulation="affine"),
            UnknownNameError,
            "ordered, misic, leaf",
        ),
        (lambda m: m.x.raw["b"], UnknownNameError, "column is 'b'"),
        (lambda m: m.x.is_level["a", 1], InvalidTypeError, "'a' is continuous"),
        (lambda m: m.x.is_level["a"], InvalidValueError, "a column and a level"),
        (lambda m: Reaches(m.p, AtLeast(1.0), margin=-0.5), InvalidValueError, "margin is -0.5"),
        (lambda m: Reaches(m.p, "good"), InvalidTypeError, "the model is a regressor"),
        (lambda m: impose(Linear({"b": 1.0}, "<=", 1.0), m.x), UnknownNameError, "'b'"),
        (lambda m: impose(3, m.x), InvalidTypeError, "one is 3"),
        (lambda _: MaxChanges(-1), InvalidValueError, "k is -1"),
        (lambda _: MaxChanges(1, count="rows"), UnknownNameError, "features, columns"),
        (lambda _: Linear({"a": 1.0}, "<", 1.0), UnknownNameError, "'<'"),
        (lambda _: Linear({}, "<=", 1.0), InvalidValueError, "a coefficient"),
        (lambda _: Linear({"a": math.nan}, "<=", 1.0), InvalidValueError, "a is nan"),
        (lambda _: Changes(count="rows"), UnknownNameError, "features, columns"),
        (lambda _: L1(count="rows"), UnknownNameError, "features, columns"),
        (lambda _: L2(count="rows"), UnknownNameError, "features, columns"),
        (lambda _: L1(scale="median"), UnknownNameError, "mad, std, range, none"),
        (lambda _: L1(scale={"a": 0.0}), InvalidValueError, "scale['a'] is 0.0"),
        (lambda m: L1(scale={"b": 1.0}).build(m.x), UnknownNameError, "'b'"),
        (lambda m: L1(scale={}).build(m.x), InvalidValueError, "column 'a' has none"),
        (lambda _: L1() + 3, TypeError, "unsupported operand"),
        (lambda _: -1.0 * L1(), InvalidValueError, "the factor is -1.0"),
        (lambda _: parse_cost("l3"), UnknownNameError, "l0, l1, l2"),
        (lambda _: parse_cost(3), InvalidTypeError, "cost is 3"),
    ],
)
def test_misuse_is_refused_by_name(act: Any, error: type[Exception], match: str) -> None:
    m = person(Affine([1.0], 0.0))
    with pytest.raises(error, match=re.escape(match)):
        act(m)


def test_a_categorical_column_has_no_number() -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(FeatureSpace([Feature("job", kind="categorical", levels=("a", "b"))]), {"job": "a"})
    with pytest.raises(InvalidTypeError, match="'job' is categorical. Use is_level"):
        _ = m.x.raw["job"]
    assert list(m.x.raw) == []
    with pytest.raises(InvalidTypeError, match="'job' is categorical"):
        impose(Linear({"job": 1.0}, "<=", 1.0), m.x)


# ---- costs and rules in numpy ---------------------------------------------------------------------------------------
def test_values_of_costs_are_those_of_the_interface() -> None:
    space = FeatureSpace(
        [
            Feature("a", kind="continuous", mad=2.0, std=4.0, range=8.0, weight=(3.0, 1.0)),
            Feature("s", kind="ordinal", levels=(1, 2, 3)),
            Feature("c", kind="categorical", levels=(1, 2, 3), weight=5.0),
        ]
    )
    x0, down, up = ({"a": a, "s": s, "c": c} for a, s, c in ((1.0, 0.0, 0.0), (0.0, 1.0, 2.0), (3.0, 2.0, 0.0)))
    both = {name: parse_cost(name) for name in ("l0", "l1", "l2", "l2_squared", "linf")}
    assert {n: c.value(space, x0, down) for n, c in both.items()} == {
        "l0": 9.0, "l1": 1.5 + 0.5 + 5.0, "l2": math.sqrt(2.25 + 0.25 + 25.0), "l2_squared": 27.5, "linf": 5.0
    }  # fmt: skip
    assert {n: c.value(space, x0, up) for n, c in both.items()} == {
        "l0": 2.0, "l1": 1.0 + 1.0, "l2": math.sqrt(2.0), "l2_squared": 2.0, "linf": 1.0
    }  # fmt: skip
    for scale, size in {"std": 4.0, "range": 8.0, "none": 1.0}.items():
        assert L1(scale=scale).value(space, x0, up) == 2.0 / size + 1.0
    assert (2 * Linf() + Changes(count="columns")).value(space, x0, down) == 10.0 + 4.0


def test_violations_of_rules() -> None:
    space = FeatureSpace([Feature("a", kind="continuous"), Feature("c", kind="categorical", levels=(1, 2))])
    x0, moved = {"a": 1.0, "c": 0.0}, {"a": 3.0, "c": 1.0}
    assert MaxChanges(1).violation(space, x0, moved) == 1
    assert MaxChanges(1, count="columns").violation(space, x0, moved) == 2
    assert MaxChanges(2).violation(space, x0, moved) == 0
    for sense, off in {"<=": 1.0, "==": 1.0, ">=": 0.0}.items():
        assert Linear({"a": 1.0}, sense, 2.0).violation(space, None, moved) == off
    assert Linear({"a": 1.0}, ">=", 3.5).violation(space, None, moved) == 0.5
    assert Linear({"a": 1.0}, "<=", 3.0 - 2e-6).violation(space, None, moved) == 0.0
    assert Linear({"a": 1.0}, "<=", 3.0 - 4e-6).violation(space, None, moved) > 0.0


@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
def test_cuts_closer_than_the_solvers_tolerance_do_not_hide_a_better_answer(formulation: str) -> None:
    """HiGHS 1.15 presolved b's move away: rows of a had coefficients of 1e-7, between the cuts 1.4999999 and 1.5."""
    bounds = {"kind": "continuous", "lower": -1.75, "upper": 3.25}
    space = FeatureSpace([Feature("a", direction="increasing", **bounds), Feature("b", **bounds)])
    low, high = {"value": -2.0}, {"value": -1.0}
    on_b = {"feature": 1, "threshold": 0.0, "left": low, "right": high}
    near = {"feature": 0, "threshold": 0.0, "left": on_b, "right": low}
    far = {"feature": 0, "threshold": 1.5, "left": low, "right": high}
    tree = {"feature": 0, "threshold": 1.4999999, "left": near, "right": far}
    model = pyo.ConcreteModel()
    model.x = Factual(space, {"a": 0.0, "b": 0.0})
    model.predictor = embed(TreeEnsemble([tree], input_dtype="float32"), model.x, formulation=formulation)
    model.valid = Reaches(model.predictor, AtLeast(-1.5), margin=1e-5)
    assert model.x.raw["a"] is not None
    assert model.x.raw["b"] is not None
    model.few = impose(MaxChanges(1), model.x)
    model.cost = pyo.Objective(expr=l1(model.x))

    result = solve(model)

    assert result.objective == pytest.approx(0.0, abs=1e-9)
    assert model.x.decoded()["a"] == 0.0
    assert model.x.decoded()["b"] > 0.0
