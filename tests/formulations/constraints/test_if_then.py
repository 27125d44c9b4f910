"""If-then: the rows of the docstring for each op, optima, and what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from rowtext import rows

import ceopt
from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.constraints import AllowedValues, IfThen
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
]


@pytest.mark.parametrize(("condition", "conclusion", "error", "match"), REFUSED)
def test_misuse_is_refused_at_once(condition: Any, conclusion: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ceopt.explain(
            Affine([1.0] * 5, 0.0), ROW, SPACE, target=ceopt.AtLeast(999.0), constraints=[IfThen(condition, conclusion)]
        )


# ---- conclusions that nothing meets ----------------------------------------------------------------------------------
SMALL = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=4),
        Feature("wage", kind="continuous", lower=0, upper=2, step=0.5),
        JOB,
        SIZE,
        Feature("home", kind="binary", levels=("rent", "own"), mutable=False),
    ]
)
HERE = {"age": 1, "wage": 0.5, "job": 30, "size": "M", "home": "own"}
IMPOSSIBLE = [
    (("age", ">=", 3), ("wage", ">=", 2.5)),
    (("age", ">=", 3), ("wage", "<=", -0.5)),
    (("wage", ">=", 1.0), ("age", "==", 7)),
    (("wage", "changed"), ("age", "in", [-1, 5])),
    (("age", "<=", 2), ("age", ">=", 3)),
    (("job", "==", 30), ("job", "in", [10, 20])),
    (("size", "changed"), ("size", "changed", False)),
    (("wage", "==", 0.5), ("wage", "!=", 0.5)),
    (("age", "changed"), ("home", "changed")),
    (("size", ">=", "L"), ("home", "==", "rent")),
    (("home", "==", "own"), ("age", ">=", 5)),
    (("age", ">=", 9), ("wage", ">=", 9.0)),
]


def lattice() -> list[dict[str, Any]]:
    values = (range(5), np.arange(0, 2.1, 0.5).tolist(), (10, 20, 30), ("S", "M", "L"), ("own",))
    return [dict(zip(SMALL.names, row, strict=True)) for row in itertools.product(*values)]


def met(condition: Any, row: dict[str, Any]) -> bool:
    name, op, value = (*condition, True)[:3]
    if op == "changed":
        return bool((row[name] != HERE[name]) == value)
    here, other = row[name], value
    if name == "size" and op in {"<=", ">="}:
        here, other = (SIZE.levels.index(level) for level in (here, value))
    return {
        "==": lambda: here == other,
        "!=": lambda: here != other,
        "<=": lambda: here <= other,
        ">=": lambda: here >= other,
        "in": lambda: here in other,
    }[op]()


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("condition", "conclusion"), IMPOSSIBLE)
def test_where_no_value_meets_the_conclusion_the_condition_must_not_hold(condition: Any, conclusion: Any) -> None:
    """Every target against all 225 points of the lattice."""
    model, rule = Affine([1.0, -2.0, 0.1, 1.5, 0.0], 0.0), IfThen(condition, conclusion)
    rows_ = lattice()
    codes = [[r["age"], r["wage"], r["job"], "SML".index(r["size"]), 1.0] for r in rows_]
    score = model.score(np.array(codes))
    kept = np.array([not met(condition, r) or met(conclusion, r) for r in rows_])
    assert kept.tolist() == [not met(condition, r) for r in rows_]
    cost = [
        abs(r["age"] - 1) + abs(r["wage"] - 0.5) + (r["job"] != 30) + abs("SML".index(r["size"]) - 1) / 2 for r in rows_
    ]
    for target in (4.0, 5.0, 6.0, 8.0, 9.5):
        fine = kept & (score >= target - 1e-9)
        found = ceopt.explain(
            model,
            HERE,
            SMALL,
            target=ceopt.AtLeast(target),
            cost=ceopt.L1(scale="none"),
            constraints=[rule],
            margin=0.0,
        )
        best = min(np.array(cost)[fine], default=None)
        if best is None:
            assert found.status == "infeasible"
        elif best == 0.0:
            assert found.status == "already_favourable"
        else:
            assert (found.status.value, found[0].cost) == ("optimal", pytest.approx(best))


def test_a_condition_that_always_holds_beside_an_impossible_conclusion_is_a_conflict() -> None:
    found = ceopt.explain(
        Affine([1.0] * 5, 0.0), HERE, SMALL, target=ceopt.AtLeast(7.0),
        constraints=[IfThen(("home", "==", "own"), ("age", ">=", 5), name="never")],
    )  # fmt: skip
    assert found.status == "infeasible"
    assert [(name, words) for name, words, *_ in found.conflict] == [("never", "if home == 'own', then age >= 5")]


def test_two_conclusions_that_exclude_each_other_bar_their_condition() -> None:
    rules = [IfThen(("job", "==", 10), ("age", ">=", 3)), IfThen(("job", "in", [10]), ("age", "<=", 2))]
    model = Affine([1.0, 0.0, 0.0, 0.0, 0.0], -2.5)
    found = ceopt.explain(model, HERE | {"job": 10}, SMALL, target=ceopt.AtLeast(0.0), cost="l0", constraints=rules)
    assert (found.status.value, found[0].cost, found[0].values["job"] != 10) == ("optimal", 2.0, True)


def test_a_number_without_bounds_is_refused_by_name_where_a_row_needs_it() -> None:
    space = FeatureSpace([Feature("wage", kind="continuous", lower=0.0), HOME])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"wage": 1.0, "home": "own"})
    m.p = embed(Affine([1.0, 0.0], 0.0), m.x)
    with pytest.raises(UnboundedFeatureError, match="'wage'"):
        impose(IfThen(("wage", ">=", 3.0), OWN), m.x)
