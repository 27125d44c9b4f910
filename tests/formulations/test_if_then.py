"""If-then: the rows of the docstring for each op, optima, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from rowtext import rows

import ceopt
from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.constraints import AllowedValues, IfThen, MaxChanges, parse_rules
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnboundedFeatureError, UnknownNameError

AGE = Feature("age", kind="integer", lower=18, upper=90)
JOB = Feature("job", kind="categorical", levels=(10, 30, 20))
SIZE = Feature("size", kind="ordinal", levels=("S", "M", "L"))
HOME = Feature("home", kind="binary", levels=("rent", "own"))
WAGE = Feature("wage", kind="continuous", lower=0, upper=9)
SPACE = FeatureSpace([AGE, JOB, SIZE, HOME, WAGE])
ROW = {"age": 35, "job": 30, "size": "M", "home": "own", "wage": 4.0}


def ruled(condition: Any, conclusion: Any, space: FeatureSpace = SPACE) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(space, ROW)
    m.r = impose(IfThen(condition, conclusion), m.x)
    return m


def terms(found: list[str]) -> list[list[str]]:
    """Return the terms of rows in an order of their own."""
    return [sorted(row.replace(" cut", "cut").replace(" level", "level").replace(" at", "at").split()) for row in found]


# ---- rows ------------------------------------------------------------------------------------------------------------
OWN = ("home", "==", "own")  # -1 level[home,own] on the left


@pytest.mark.parametrize(
    ("condition", "row"),
    [
        (("job", "==", 10), "+1 level[job,10] -1 level[home,own] <= 0"),
        (("job", "!=", 10), "-1 level[home,own] -1 level[job,10] <= -1"),
        (("job", "in", [10, 20]), "-1 level[home,own] +1 level[job,10] +1 level[job,20] <= 0"),
        (("job", "changed"), "-1 level[home,own] -1 level[job,30] <= -1"),
        (("job", "changed", False), "-1 level[home,own] +1 level[job,30] <= 0"),
        (("size", "<=", "M"), "-1 at_least[size,L] -1 level[home,own] <= -1"),
        (("size", ">=", "M"), "+1 at_least[size,M] -1 level[home,own] <= 0"),
        (("size", "==", "M"), "-1 at_least[size,L] +1 at_least[size,M] -1 level[home,own] <= 0"),
        (("age", "<=", 40), "-1 cut[age,'40'] -1 level[home,own] <= -1"),
        (("age", "<=", 40.7), "-1 cut[age,'40'] -1 level[home,own] <= -1"),
        (("age", ">=", 40), "+1 cut[age,'39'] -1 level[home,own] <= 0"),
        (("age", ">=", 39.2), "+1 cut[age,'39'] -1 level[home,own] <= 0"),
        (("age", "==", 40), "+1 cut[age,'39'] -1 cut[age,'40'] -1 level[home,own] <= 0"),
        (("age", "!=", 18), "+1 cut[age,'18'] -1 level[home,own] <= 0"),
        (("age", "in", (18, 20)), "-1 cut[age,'18'] +1 cut[age,'19'] -1 cut[age,'20'] -1 level[home,own] <= -1"),
    ],
)
def test_a_condition_that_holds_asks_for_the_conclusion(condition: Any, row: str) -> None:
    m = ruled(condition, OWN)
    assert terms(rows(m.r)) == terms([row])


@pytest.mark.parametrize(
    ("conclusion", "row"),
    [
        (("age", ">=", 40), "-1 cut[age,'39'] +1 level[home,own] <= 0"),
        (("age", "<=", 40), "+1 cut[age,'40'] +1 level[home,own] <= 1"),
        (("job", "!=", 10), "+1 level[home,own] +1 level[job,10] <= 1"),
        (("size", "in", ["S", "L"]), "-1 at_least[size,L] +1 at_least[size,M] +1 level[home,own] <= 1"),
        (("size", "changed"), "-1 at_least[size,L] +1 at_least[size,M] +1 level[home,own] <= 1"),
        (("wage", "changed", False), "+1 level[home,own] <= 1"),  # nothing reads the wage so far, so it stays
        (("age", ">=", 18), None),
        (("age", "!=", 99), None),
    ],
)
def test_a_conclusion_is_asked_for(conclusion: Any, row: str | None) -> None:
    m = ruled(OWN, conclusion)
    assert terms(rows(m.r)) == terms([] if row is None else [row])  # None: it holds whatever happens


def test_conditions_that_never_hold_are_left_out() -> None:
    for never in (("age", ">=", 91), ("age", "<=", 17.5), ("age", "==", 17), ("wage", ">=", 9.5)):
        assert rows(ruled(never, OWN).r) == []


def test_a_condition_that_always_holds_leaves_the_conclusion() -> None:
    assert rows(ruled(("age", "<=", 90), OWN).r) == ["-1 level[home,own] <= -1"]
    fixed = SPACE.update("home", mutable=False)
    assert rows(ruled(("home", "==", "own"), ("job", "==", 20), fixed).r) == ["-1 level[job,20] <= -1"]
    assert rows(ruled(("home", "changed"), ("job", "==", 20), fixed).r) == []
    m = ruled(("age", ">=", 18), ("home", "==", "rent"), fixed)
    m.cost = pyo.Objective(expr=l1(m.x))
    assert solve(m).status is Status.INFEASIBLE


def test_a_change_of_a_number_is_permitted_or_forced() -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    assert m.x.raw["wage"] is not None
    m.one = impose(IfThen(("wage", "changed"), ("size", "==", "L")), m.x)
    m.two = impose(IfThen(("size", "==", "L"), ("wage", "changed")), m.x)
    assert rows(m.one) == ["-1 at_least[size,L] +1 moved[wage] <= 0"]
    assert rows(m.two) == ["+1 at_least[size,L] -1 surely[wage,down] -1 surely[wage,up] <= 0"]
    assert rows(m.x, "least") == [
        "+1 down[wage] -0.009 surely[wage,down] >= 0",
        "-0.009 surely[wage,up] +1 up[wage] >= 0",
    ]


@pytest.mark.parametrize("later", ["coordinate", "tree"])
def test_a_change_sees_what_comes_after_the_rule(later: str) -> None:
    for conclusion in (("wage", "changed", False), ("home", "==", "own")):
        m = ruled(("wage", "changed") if conclusion[0] == "home" else OWN, conclusion)
        if later == "coordinate":
            m.more = pyo.Constraint(expr=m.x.raw["wage"] >= 5.0)
        else:
            split = {"feature": 4, "threshold": 5.0, "left": {"value": 0.0}, "right": {"value": 1.0}}
            m.p = embed(TreeEnsemble([split], n_inputs=5), m.x)
            m.valid = Reaches(m.p, ceopt.AtLeast(0.5))
        m.cost = pyo.Objective(expr=l1(m.x))
        m.pin = pyo.Constraint(expr=m.x.is_level["home", "rent" if conclusion[0] == "home" else "own"] == 1)
        assert solve(m).status is Status.INFEASIBLE
        m.r.deactivate()
        assert solve(m).status is Status.OPTIMAL


def test_a_number_that_nothing_reads_can_be_made_to_change() -> None:
    m = ruled(OWN, ("wage", "changed"))
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    result = solve(m)
    assert result.objective == pytest.approx(0.009)
    moved = abs(m.x.decoded()["wage"] - 4.0)
    assert moved == pytest.approx(0.009)


def test_a_forced_change_sees_cuts_made_later() -> None:
    """Whatever the order: a listed value next to the factual is a change, however near."""
    near = 4.0 + 1e-4
    for order in (1, -1):
        m = pyo.ConcreteModel()
        m.x = Factual(SPACE, ROW)
        parts = [IfThen(OWN, ("wage", "changed")), AllowedValues({"wage": [4.0, near, 5.0]})]
        for k, rule in enumerate(parts[::order]):
            m.add_component(f"rule_{k}", impose(rule, m.x))
        m.own = pyo.Constraint(expr=m.x.is_level["home", "own"] == 1)
        m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
        assert solve(m).status is Status.OPTIMAL
        assert m.x.decoded()["wage"] == near


def test_a_rule_that_is_dropped_leaves_nothing_behind() -> None:
    m = ruled(OWN, ("age", ">=", 60))
    m.own = pyo.Constraint(expr=m.x.is_level["home", "own"] == 1)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    assert solve(m).objective == 25.0
    m.r.deactivate()
    assert solve(m).objective == 0.0


# ---- to the last float -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("wage", ">=", 4.5), 4.5),  # the tree wants more than 4.5: the next float
        (("wage", "<=", 5.0), math.nextafter(5.0, 9.0)),
        (("wage", "!=", 6.5), 6.5),
    ],
)
def test_a_condition_next_to_a_split(formulation: str, condition: Any, expected: float) -> None:
    """If ..., then the home is rented: which the tree does not allow, so the condition must not hold."""
    split = {"feature": 4, "threshold": 4.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    owns = {"feature": 3, "threshold": 0.5, "left": {"value": -5.0}, "right": {"value": 0.0}}
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    m.p = embed(TreeEnsemble([split, owns], n_inputs=5), m.x, formulation=formulation)
    m.valid = Reaches(m.p, ceopt.AtLeast(0.5))
    m.r = impose(IfThen(condition, ("home", "==", "rent")), m.x)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    result = solve(m)
    if condition[1] == ">=":
        assert result.status is Status.INFEASIBLE  # it asks for 4.5 or more
    else:
        assert result.status is Status.OPTIMAL
        assert m.x.decoded()["wage"] == expected


def test_ordinal_levels_compare_by_rank_and_answers_are_told() -> None:
    model = Affine([0.0, 0.0, 1.0, 0.0, 0.0], -1.5, labels=("no", "yes"))
    rules = [IfThen(("size", ">=", "L"), ("job", "in", [20])), IfThen(("job", "changed"), ("home", "==", "rent"))]
    found = ceopt.explain(model, ROW, SPACE, target="yes", constraints=rules)
    assert found[0].values.to_dict() == ROW | {"size": "L", "job": 20, "home": "rent"}
    report = ceopt.verify([ROW | {"size": "L"}], model, SPACE, target="yes", factual=ROW, constraints=rules)
    assert report.to_frame()["broken"][0] == ("IfThen_1: if size >= 'L', then job is one of 20",)


# ---- words and refusals ----------------------------------------------------------------------------------------------
def test_sentences() -> None:
    assert IfThen(("a", "changed"), ("b", "changed", False)).sentence() == "if a changes, then b stays"
    assert IfThen(["a", "in", {3}], ("b", "!=", "x")).sentence() == "if a is one of 3, then b != 'x'"
    assert IfThen(("a", "in", np.array([1, 2])), ("b", "<=", 3)).sentence() == "if a is one of 1, 2, then b <= 3"


REFUSED = [
    (("ages", "==", 3), OWN, UnknownNameError, "column is 'ages'. Did you mean 'age'"),
    (OWN, ("jobs", "==", 10), UnknownNameError, "column is 'jobs'"),
    (("age", "=", 3), OWN, UnknownNameError, "op is '='"),
    (("age", "<", 3), OWN, UnknownNameError, "op is '<'"),
    (("age", "=="), OWN, InvalidTypeError, r"conditions \(column, op, value\)"),
    ("age == 3", OWN, InvalidTypeError, r"conditions \(column, op, value\)"),
    (OWN, None, InvalidTypeError, r"conditions \(column, op, value\)"),
    (("job", "<=", 20), OWN, InvalidTypeError, "'job' is categorical"),
    (("job", "==", 40), OWN, InvalidValueError, "'job' needs one of its levels, but its value is 40"),
    (("size", ">=", "XL"), OWN, InvalidValueError, "'size' needs one of its levels, but its value is 'XL'"),
    (("job", "in", []), OWN, InvalidValueError, "the list on column 'job' is empty"),
    (("job", "in", 10), OWN, InvalidTypeError, "list of values for op 'in' on column 'job', but it got 10"),
    (("job", "in", "10"), OWN, InvalidTypeError, "list of values for op 'in' on column 'job'"),
    (("age", ">=", math.inf), OWN, InvalidValueError, "'age' needs a finite number"),
    (("wage", ">=", math.nan), OWN, InvalidValueError, "'wage'.*missing"),
    (("wage", "in", [1.0, None]), OWN, InvalidValueError, "'wage'.*missing"),
    (("age", "==", 30.5), OWN, InvalidValueError, "'age' needs a whole number"),
    (("age", ">=", "old"), OWN, InvalidTypeError, "'age' needs a number"),
    (("age", ">=", True), OWN, InvalidTypeError, "'age' needs a number"),
    (("age", "changed", 3), OWN, InvalidTypeError, "True or False for op 'changed'"),
    (OWN, ("age", ">=", 91), InvalidValueError, "no value of column 'age' meets age >= 91"),
    (OWN, ("wage", "<=", -0.5), InvalidValueError, "no value of column 'wage' meets"),
    (("age", "<=", 30), ("age", ">=", 31), InvalidValueError, "'age' meets age >= 31 and age <= 30"),
    (("job", "==", 10), ("job", "in", [20, 30]), InvalidValueError, "'job' meets job is one of 20, 30 and job == 10"),
    (("size", "changed"), ("size", "changed", False), InvalidValueError, "'size' meets size stays and size changes"),
    (("wage", "==", 1.0), ("wage", "!=", 1.0), InvalidValueError, "'wage' meets wage != 1.0 and wage == 1.0"),
]


@pytest.mark.parametrize(("condition", "conclusion", "error", "match"), REFUSED)
def test_misuse_is_refused_at_once(condition: Any, conclusion: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ceopt.explain(
            Affine([1.0] * 5, 0.0), ROW, SPACE, target=ceopt.AtLeast(999.0), constraints=[IfThen(condition, conclusion)]
        )


@pytest.mark.parametrize(
    "fine",
    [
        (("age", "<=", 30), ("age", ">=", 30)),
        (("wage", ">=", 2.0), ("wage", "!=", 9.0)),
        (("size", "changed"), ("size", "==", "M")),
        (OWN, ("age", ">=", 90)),
    ],
)
def test_what_some_value_meets_is_no_contradiction(fine: Any) -> None:
    assert parse_rules([IfThen(*fine)], SPACE)


def test_bounds_that_only_the_data_had_are_no_rules() -> None:
    seen = FeatureSpace([Feature("a", kind="integer", lower=0, upper=3, upper_inferred=True), JOB])
    assert parse_rules([IfThen(("job", "==", 10), ("a", ">=", 7))], seen)
    with pytest.raises(InvalidValueError, match="no value of column 'a' meets a <= -1"):
        parse_rules([IfThen(("job", "==", 10), ("a", "<=", -1))], seen)


def test_a_change_of_what_cannot_move_is_no_conclusion() -> None:
    with pytest.raises(InvalidValueError, match="no value of column 'age' meets age changes"):
        parse_rules([IfThen(OWN, ("age", "changed"))], SPACE.update("age", mutable=False))


def test_rules_that_exclude_each_other_are_refused() -> None:
    one = IfThen(("job", "==", 10), ("age", ">=", 40))
    for same in (("job", "==", 10), ("job", "in", [10])):
        with pytest.raises(InvalidValueError, match="if job .*then age <= 39 and age >= 40"):
            parse_rules([one, MaxChanges(2), IfThen(same, ("age", "<=", 39))], SPACE)
    for other in (
        IfThen(("job", "==", 10), ("age", "<=", 40)),
        IfThen(("job", "==", 20), ("age", "<=", 39)),
        IfThen(("job", "==", 10), ("wage", "<=", 39)),
    ):
        assert len(parse_rules([one, other], SPACE)) == 2


def test_a_number_without_bounds_is_refused_by_name_where_a_row_needs_it() -> None:
    space = FeatureSpace([Feature("wage", kind="continuous", lower=0.0), HOME])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"wage": 1.0, "home": "own"})
    m.p = embed(Affine([1.0, 0.0], 0.0), m.x)
    with pytest.raises(UnboundedFeatureError, match="'wage'"):
        impose(IfThen(("wage", ">=", 3.0), OWN), m.x)
