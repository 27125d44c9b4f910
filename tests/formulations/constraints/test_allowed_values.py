"""Values, transitions and rows that are allowed: the rows of the docstrings, optima, and what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import discrete
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from discrete import Ruled
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from rowtext import rows, variables

import ceopt
from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.constraints import AllowedRows, AllowedTransitions, AllowedValues, MaxChanges
from ceopt.formulations.costs import Changes
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnboundedFeatureError, UnknownNameError

AGE = Feature("age", kind="integer", lower=18, upper=90)
JOB = Feature("job", kind="categorical", levels=(10, 30, 20))
SIZE = Feature("size", kind="ordinal", levels=("S", "M", "L"))
HOME = Feature("home", kind="binary", levels=("rent", "own"))
WAGE = Feature("wage", kind="continuous", lower=0, upper=9)
BY_AGE = {
    "feature": 0,
    "threshold": 37.5,
    "left": {"value": -1.0},
    "right": {"feature": 0, "threshold": 50.2, "left": {"value": 2.0}, "right": {"value": 4.0}},
}


def at(*space: Feature, **row: Any) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(FeatureSpace(space), row)
    return m


# ---- rows ------------------------------------------------------------------------------------------------------------


def test_values_of_a_set_stand_in_the_same_order_in_every_process():
    levels = [f"level {place}" for place in range(9)]

    assert ceopt.AllowedValues({"area": set(levels)}).values["area"] == tuple(levels)
    assert ceopt.AllowedValues({"term": {3, 1, 2}}).values["term"] == (1, 2, 3)


def test_a_number_is_cut_on_both_sides_of_each_value() -> None:
    m = at(AGE, age=35)
    m.r = impose(AllowedValues({"age": [21, 40, 41]}), m.x)
    assert rows(m.r) == [
        "+1 cut[age,'20'] = 1",
        "-1 cut[age,'21'] +1 cut[age,'39'] = 0",
        "-1 cut[age,'41'] = 0",
    ]
    assert rows(m.x, "ordered") == [
        "+1 cut[age,'20'] -1 cut[age,'21'] >= 0",
        "+1 cut[age,'21'] -1 cut[age,'39'] >= 0",
        "+1 cut[age,'39'] -1 cut[age,'40'] >= 0",
        "+1 cut[age,'40'] -1 cut[age,'41'] >= 0",
    ]
    assert set(variables(m).values()) == {"Binary [0, 1]"}


def test_the_ends_of_the_reach_need_no_cut() -> None:
    m = at(AGE, age=35)
    m.r = impose(AllowedValues({"age": [18, 90]}), m.x)
    assert rows(m.r) == ["-1 cut[age,'18'] +1 cut[age,'89'] = 0"]


def test_a_coordinate_is_linked_to_the_cuts() -> None:
    m = at(WAGE, wage=2.0)
    assert m.x.raw["wage"] is not None
    m.r = impose(AllowedValues({"wage": [1.0, 4.0]}), m.x)
    # '1' and '4' name the cuts just below a value, '1.0' and '4.0' those just above; in between is nothing to a solver.
    assert rows(m.r) == ["+1 cut[wage,'1'] = 1", "-1 cut[wage,'1.0'] +1 cut[wage,'4'] = 0", "-1 cut[wage,'4.0'] = 0"]
    assert rows(m.x, "left_end", "right_end") == [
        "-1 cut[wage,'1'] -3 cut[wage,'4'] +1 x[wage] >= 0",
        "-3 cut[wage,'1.0'] -5 cut[wage,'4.0'] +1 x[wage] <= 1",
    ]
    assert solve_range(m) == (1.0, 4.0)


def solve_range(m: Any) -> tuple[float, float]:
    found = []
    for sense in (pyo.minimize, pyo.maximize):
        m.del_component("goal")
        m.goal = pyo.Objective(expr=m.x.raw["wage"], sense=sense)
        assert solve(m).status is Status.OPTIMAL
        found.append(m.x.decoded()["wage"])
    return found[0], found[1]


def test_levels_that_are_not_listed_are_off() -> None:
    m = at(JOB, SIZE, HOME, job=30, size="M", home="own")
    m.r = impose(AllowedValues({"job": [20], "size": ["L", "S"], "home": ["rent"]}), m.x)
    assert rows(m.r) == [
        "+1 level[home,own] = 0",
        "+1 level[job,10] +1 level[job,30] = 0",
        "-1 at_least[size,L] +1 at_least[size,M] = 0",
    ]


def test_all_values_of_a_column_add_nothing() -> None:
    m = at(JOB, HOME, job=30, home="own")
    m.r = impose(AllowedValues({"job": [10, 20, 30], "home": ["rent", "own"]}), m.x)
    assert rows(m.r) == []


@pytest.mark.parametrize(
    ("feature", "row", "listed"),
    [
        (AGE, 35, [17, 91]),
        (Feature("age", kind="integer", lower=0, upper=90, step=5), 35, [31, 42]),
        (Feature("age", kind="integer", direction="increasing", lower=0, upper=90), 35, [3]),
        (Feature("age", kind="integer", mutable=False), 35, [36]),
        (Feature("age", kind="ordinal", levels=(1, 2), mutable=False), 1, [2]),
    ],
)
def test_nothing_listed_in_reach_is_infeasible(feature: Feature, row: Any, listed: list[int]) -> None:
    for rule in (AllowedValues({"age": listed}), AllowedRows(["age"], pd.DataFrame({"age": listed}))):
        m = at(feature, age=row)
        m.r = impose(rule, m.x)
        m.cost = pyo.Objective(expr=l1(m.x))
        assert solve(m).status is Status.INFEASIBLE


def test_a_transition_bars_the_other_levels() -> None:
    m = at(JOB, SIZE, job=30, size="M")
    m.job = impose(AllowedTransitions("job", {30: [10], 20: [30]}), m.x)
    m.size = impose(AllowedTransitions("size", {"S": ["L"]}), m.x)  # M is no key: it stays
    assert rows(m.job) == ["+1 level[job,20] = 0"]
    assert rows(m.size) == ["+1 at_least[size,L] -1 at_least[size,M] = -1"]


def test_rows_together_are_a_convex_combination() -> None:
    m = at(AGE, JOB, HOME, age=35, job=30, home="own")
    table = pd.DataFrame({"age": [35, 40, 40, 99], "job": [30, 10, 10, 20], "home": ["own", "rent", "rent", "own"]})
    m.r = impose(AllowedRows(["age", "job"], table), m.x)  # 40, 10 is there twice, 99 is out of reach
    assert rows(m.r) == [
        "+1 cut[age,'34'] -1 cut[age,'35'] -1 row[0] = 0",
        "+1 cut[age,'39'] -1 cut[age,'40'] -1 row[1] = 0",
        "+1 level[job,10] -1 row[1] = 0",
        "+1 level[job,30] -1 row[0] = 0",
        "+1 row[0] +1 row[1] = 1",
    ]
    assert variables(m.r) == dict.fromkeys(["row[0]", "row[1]"], "NonNegativeReals [0, inf]")


def test_a_rule_that_is_dropped_leaves_nothing_behind() -> None:
    """Its cuts stay, but they forbid nothing."""
    for rule in (AllowedValues({"age": [60]}), AllowedRows(["age"], pd.DataFrame({"age": [60, 70]}))):
        m = at(AGE, age=35)
        m.p = embed(TreeEnsemble([BY_AGE], n_inputs=1), m.x)
        m.valid = Reaches(m.p, ceopt.AtLeast(1.0))
        m.r = impose(rule, m.x)
        m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
        assert solve(m).objective == 25.0
        m.r.deactivate()
        assert solve(m).objective == 3.0
        assert m.x.decoded() == {"age": 38.0}


# ---- bounds ----------------------------------------------------------------------------------------------------------
def free() -> Any:
    m = at(Feature("a", kind="continuous"), a=0.0)
    m.p = embed(Affine([1.0], 0.0), m.x)
    m.valid = Reaches(m.p, ceopt.AtLeast(2.5))
    return m


@pytest.mark.parametrize(
    "rule", [AllowedValues({"a": [-7, 1, 3, 8]}), AllowedRows(["a"], pd.DataFrame({"a": [-7, 3.0, 8]}))]
)
def test_a_number_without_bounds_gets_them(rule: Any) -> None:
    m = free()
    m.r = impose(rule, m.x)
    m.few = impose(MaxChanges(1), m.x)  # its big-M
    m.cost = pyo.Objective(expr=l1(m.x, scale="none") + Changes().build(m.x))
    assert solve(m).objective == pytest.approx(4.0)
    assert m.x.decoded() == {"a": 3.0}
    assert (m.x.x["a"].lb, m.x.x["a"].ub) == (-7.0, 8.0)


@pytest.mark.usefixtures("by_program")
def test_explain_states_such_rules_first() -> None:
    space = FeatureSpace([Feature("a", kind="continuous"), Feature("b", kind="continuous", lower=0.0)])
    found = ceopt.explain(
        Affine([1.0, 1.0], 0.0), {"a": 0.0, "b": 0.0}, space, target=ceopt.AtLeast(2.5), cost=Changes(),
        constraints=[MaxChanges(1), AllowedValues({"a": [0, 1], "b": [0, 3]}, name="grid")],
    )  # fmt: skip
    assert found.status == "optimal"
    assert found[0].values.to_dict() == {"a": 0.0, "b": 3.0}
    with pytest.raises(UnboundedFeatureError, match="'a'"):
        ceopt.explain(
            Affine([1.0, 1.0], 0.0), {"a": 0.0, "b": 0.0}, space, target=ceopt.AtLeast(2.5), constraints=[MaxChanges(1)]
        )


def test_cuts_of_a_tree_beyond_such_bounds_are_passed() -> None:
    """A tree's cut at 37.5 lies below the least value listed, 40, of a column that had no bounds."""
    for order in itertools.permutations(["tree", "rule", "raw"]):
        m = at(Feature("age", kind="continuous"), age=35.0)
        for part in order:
            match part:
                case "tree":
                    m.p = embed(TreeEnsemble([BY_AGE], n_inputs=1), m.x)
                case "rule":
                    m.r = impose(AllowedValues({"age": [40, 50.2]}), m.x)
                case _ if order.index("rule") < order.index("raw"):
                    m.asked = pyo.Expression(expr=m.x.raw["age"])
        m.valid = Reaches(m.p, ceopt.AtMost(0.0))
        m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
        assert solve(m).status is Status.INFEASIBLE
        m.valid.deactivate()
        assert solve(m).objective == 5.0
        assert m.x.decoded() == {"age": 40.0}


# ---- optimum = enumeration -------------------------------------------------------------------------------------------
ORDERS = list(itertools.permutations(("embed", "rules", "cost", "raw")))


@draws(120)
@given(ruled=discrete.ruled(linear=False, square=True, bounded=False))
def test_cuts_of_trees_and_of_rules_share_a_column(ruled: Ruled) -> None:
    ruled.check(ruled.program())


@draws(100)
@given(ruled=discrete.ruled(), order=st.sampled_from(ORDERS))
def test_with_coordinates_made_at_any_time(ruled: Ruled, order: tuple[str, ...]) -> None:
    ruled.check(ruled.program(order=order))


@pytest.mark.parametrize("formulation", ["misic", "leaf"])
@draws(70)
@given(ruled=discrete.ruled(), first=st.sampled_from([("embed", "rules", "cost"), ("rules", "cost", "embed")]))
def test_research_forms_and_rules_take_one_side_of_a_cut(
    formulation: str, ruled: Ruled, first: tuple[str, ...]
) -> None:
    ruled.check(ruled.program(formulation, order=first))


def test_a_number_off_its_step_by_a_rounding_is_meant() -> None:
    space = FeatureSpace([Feature("rate", kind="continuous", lower=0.0, upper=1.0, step=0.1)])
    for rule in (AllowedValues({"rate": [0.3, 0.6]}), AllowedRows(["rate"], pd.DataFrame({"rate": [0.3, 0.6]}))):
        found = ceopt.explain(Affine([1.0], 0.0), {"rate": 0.1}, space, target=ceopt.AtLeast(0.25), constraints=[rule])
        assert found.status == "optimal"
        assert found[0].values["rate"] == pytest.approx(0.3, abs=1e-15)
        assert found[0].verified


def test_neighbouring_floats_are_told_apart() -> None:
    """A tree turns at t, the rule allows the float after it."""
    after = math.nextafter(37.5, math.inf)
    for formulation in ("ordered", "misic", "leaf"):
        m = at(Feature("age", kind="continuous", lower=0.0, upper=90.0), age=10.0)
        m.p = embed(TreeEnsemble([BY_AGE], n_inputs=1), m.x, formulation=formulation)
        m.valid = Reaches(m.p, ceopt.AtLeast(1.0))
        m.r = impose(AllowedValues({"age": [37.5, after, 80.0]}), m.x)
        m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
        assert solve(m).objective == pytest.approx(27.5)
        assert m.x.decoded() == {"age": after}


NET = ReluNetwork([[[1.0, -1.0], [0.5, 1.0]], [[1.0, 1.0]]], [[0.0, -1.0], [-3.0]], labels=("no", "yes"))
TREES = TreeEnsemble([BY_AGE, {"feature": 1, "threshold": 2.0, "left": {"value": 0.0}, "right": {"value": 1.0}}], -4.5,
                     labels=("no", "yes"))  # fmt: skip


@pytest.mark.parametrize(
    ("model", "scale"), [(Affine([1.0, 2.0], -9.3, labels=("no", "yes")), 1), (NET, 1), (TREES, 10)]
)
def test_answers_over_a_grid_are_those_of_enumeration(model: Any, scale: float) -> None:
    """Continuous columns on a grid, through explain with its start, all answers of a flip set by support."""
    grid = {"a": [0.5 * scale, 1.25 * scale, 4.0 * scale, 5.5 * scale], "b": [0.0, 2.0, 2.5, 3.0]}
    row = {"a": 1.25 * scale, "b": 0.0}
    space = FeatureSpace(
        [Feature("a", kind="continuous", lower=0, upper=90), Feature("b", kind="continuous", lower=-1, upper=5)]
    )
    points = np.array(list(itertools.product(grid["a"], grid["b"])))
    moves = points - np.array([row["a"], row["b"]])
    costs = np.where(model.score(points) > 0, np.abs(moves).sum(axis=1), np.inf)
    best: dict[tuple[bool, ...], float] = {}
    for move, cost in zip(moves, costs.tolist(), strict=True):
        key = tuple((move != 0).tolist())
        best[key] = min(best.get(key, np.inf), cost)
    expected = sorted(cost for cost in best.values() if math.isfinite(cost))
    found = ceopt.explain(
        model, row, space, target="yes", cost=ceopt.L1(scale="none"), n=9, diversity="support",
        constraints=[AllowedValues(grid)],
    )  # fmt: skip
    assert found.complete
    assert [answer.cost for answer in found] == pytest.approx(expected)
    assert all(answer.values["a"] in grid["a"] and answer.values["b"] in grid["b"] for answer in found)


def test_the_search_for_a_start_stays_on_the_grid() -> None:
    space = FeatureSpace([Feature("a", kind="continuous", lower=0, upper=9), SIZE])
    rule = AllowedValues({"a": [1.0, 4.0, 8.0, 99.0], "size": ["S"]})
    points = np.array([[0.0, 1.0], [2.4, 0.0], [2.6, 2.0], [9.0, 1.0]])
    mended = rule.mended(space, {"a": 2.0, "size": 1.0}, points)
    assert mended.tolist() == [[1.0, 1.0], [1.0, 0.0], [4.0, 2.0], [8.0, 1.0]]
    assert points[0, 0] == 0.0
    out = AllowedValues({"a": [99.0]})
    assert out.mended(space, {"a": 2.0, "size": 1.0}, points).tolist() == points.tolist()


# ---- words and refusals ----------------------------------------------------------------------------------------------
def test_sentences() -> None:
    assert AllowedValues({"age": [3, 4], "job": [10]}).sentence() == "age is one of 3, 4; job is 10"
    assert AllowedValues({"a": range(20)}).sentence() == "a is one of 0, 1, 2, 3, 4, 5, ... (20 values)"
    assert AllowedTransitions("job", {10: [20, 30], 30: []}).sentence() == "job stays, or goes from 10 to 20 or 30"
    assert AllowedTransitions("job", {10: []}).sentence() == "job stays"
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    assert AllowedRows(["a", "b"], frame).sentence() == "a, b together are one of 2 rows of a table"


def test_violations_say_by_how_much() -> None:
    space = FeatureSpace([WAGE, JOB])
    rule = AllowedValues({"wage": [1.0, 4.0], "job": [10, 20]})
    assert rule.violation(space, None, {"wage": 1.5, "job": 2.0}) == 0.5
    assert rule.violation(space, None, {"wage": math.nextafter(1.0, 2.0), "job": 0.0}) > 0.0
    assert rule.violation(space, None, {"wage": 4.0, "job": 1.0}) == 1.0
    table = AllowedRows(["wage", "job"], pd.DataFrame({"wage": [1.0, 2.0], "job": [10, 20]}))
    assert [table.violation(space, None, {"wage": w, "job": j}) for w, j in ((1.0, 0), (2.0, 0), (3.0, 1))] == [0, 1, 2]


REFUSED = [
    (lambda: AllowedValues([1, 2]), InvalidTypeError, "mapping from columns"),
    (lambda: AllowedValues({}), InvalidTypeError, "mapping from columns"),
    (lambda: AllowedValues({"age": []}), InvalidValueError, "list of column 'age' is empty"),
    (lambda: AllowedValues({"age": 3}), InvalidTypeError, "list of values for column 'age', but it got 3"),
    (lambda: AllowedValues({"job": "cook"}), InvalidTypeError, "list of values for column 'job', but it got 'cook'"),
    (lambda: AllowedValues({"ages": [3]}), UnknownNameError, "Did you mean 'age'"),
    (lambda: AllowedValues({"age": [3.5]}), InvalidValueError, "'age' needs a whole number"),
    (lambda: AllowedValues({"age": ["old"]}), InvalidTypeError, "'age' needs a number"),
    (lambda: AllowedValues({"age": [True]}), InvalidTypeError, "'age' needs a number"),
    (lambda: AllowedValues({"wage": [math.nan]}), InvalidValueError, "'wage'.*missing"),
    (lambda: AllowedValues({"wage": [math.inf]}), InvalidValueError, "'wage' needs a finite number"),
    (lambda: AllowedValues({"job": [10, 40]}), InvalidValueError, "'job' needs one of its levels, but its value is 40"),
    (lambda: AllowedTransitions("jobs", {10: [20]}), UnknownNameError, "'job'"),
    (lambda: AllowedTransitions("age", {10: [20]}), InvalidTypeError, "'age' is integer. Use AllowedValues"),
    (lambda: AllowedTransitions("job", {40: [20]}), InvalidValueError, "'job' needs one of its levels.*40"),
    (lambda: AllowedTransitions("job", {10: [40]}), InvalidValueError, "'job' needs one of its levels.*40"),
    (lambda: AllowedTransitions("job", {}), InvalidValueError, "transitions is empty"),
    (lambda: AllowedTransitions("job", [10, 20]), InvalidTypeError, "mapping from levels"),
    (lambda: AllowedTransitions("size", {"S": "M"}), InvalidTypeError, "list of values for level 'S'"),
    (lambda: AllowedRows([], pd.DataFrame({"age": [1]})), InvalidValueError, "columns, each once"),
    (lambda: AllowedRows(["age", "age"], pd.DataFrame({"age": [1]})), InvalidValueError, "columns, each once"),
    (lambda: AllowedRows("age", pd.DataFrame({"age": [1]})), InvalidTypeError, "list of values for columns"),
    (lambda: AllowedRows(["age"], {"age": [1]}), InvalidTypeError, "frame is dict"),
    (lambda: AllowedRows(["age"], pd.DataFrame({"ag": [1]})), UnknownNameError, "column of the frame is 'age'"),
    (lambda: AllowedRows(["age"], pd.DataFrame({"age": []})), InvalidValueError, "the frame has no rows"),
    (lambda: AllowedRows(["ages"], pd.DataFrame({"ages": [1]})), UnknownNameError, "'age'"),
    (lambda: AllowedRows(["wage"], pd.DataFrame({"wage": [1.0, None]})), InvalidValueError, "'wage'.*missing"),
    (lambda: AllowedRows(["job"], pd.DataFrame({"job": [10, 40]})), InvalidValueError, "'job' needs one of its levels"),
]


@pytest.mark.parametrize(("make", "error", "match"), REFUSED)
def test_misuse_is_refused_at_once(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ceopt.explain(
            Affine([1.0] * 4, 0.0), {"age": 35, "job": 10, "size": "S", "wage": 1.0},
            FeatureSpace([AGE, JOB, SIZE, WAGE]), target=ceopt.AtLeast(99.0), constraints=[make()],
        )  # fmt: skip
