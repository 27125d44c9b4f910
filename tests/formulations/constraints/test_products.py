"""Ratio and Product: columns that follow from others, in rows, checks and answers."""

from __future__ import annotations

import itertools
import json
import warnings
from typing import Any

import enumeration as by_hand
import numpy as np
import pandas as pd
import problems
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import assume, given
from hypothesis import strategies as st
from rules.combos import between
from rules.found import by_name, half
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import Feature, FeatureSpace, Linear, MaxChanges, Product, Ratio, RuleWarning
from ceopt.formulations import Factual, impose
from ceopt.formulations.constraints import products
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.targets import AtLeast
from ceopt.solvers import compile_model, solve
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    UnboundedFeatureError,
    UnknownNameError,
    UnsupportedProblemError,
)
from ceopt.solvers.problem import ProblemClass
from ceopt.words.binding import bindings_of
from ceopt.words.sentences import in_words

RATE = Ratio("rate", "amount", "months", name="rate")


def loan(**changed: Any) -> FeatureSpace:
    """A loan's rate in cents, amount, months and income; a change replaces what is said of a column."""
    said = {
        "rate": {"kind": "continuous", "lower": 0.0, "upper": 3000.0, "step": 0.01},
        "amount": {"kind": "continuous", "lower": 500.0, "upper": 20_000.0},
        "months": {"kind": "integer", "lower": 6, "upper": 72},
        "income": {"kind": "continuous", "lower": 0.0, "upper": 9000.0},
    }
    return FeatureSpace([Feature(name, **(words | changed.get(name, {}))) for name, words in said.items()])


PERSON = {"rate": 500.0, "amount": 12_000.0, "months": 24, "income": 1500.0}
MODEL = Affine([-0.01, -0.0001, 0.01, 0.001], 1.9, labels=("no", "yes"))
CONTINUOUS = {"rate": {"step": None}}
SMOOTH = {"rate": {"step": None}, "months": {"kind": "continuous"}}


def built(rule: Any, space: FeatureSpace, row: Any, *, takes_products: bool = False) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(space, row)
    m.x.takes_products = takes_products
    m.rule = impose(rule, m.x)
    return m


def class_of(rule: Any, space: FeatureSpace, row: Any, **options: Any) -> ProblemClass:
    return compile_model(built(rule, space, row, **options)).problem_class


def miss(rule: Any, values: Any) -> float:
    """By how much a row misses a formula, by the formula itself."""
    if isinstance(rule, Ratio):
        return float(values[rule.column] - values[rule.numerator] / values[rule.denominator])
    return float(values[rule.column] - np.prod([float(values[name]) for name in rule.factors]))


# ---- the optimum is that of enumeration ------------------------------------------------------------------------------
STEPPED = (
    {"kind": "integer", "lower": 0, "upper": 5},
    {"kind": "continuous", "lower": 0.0, "upper": 3.0, "step": 0.5},
    {"kind": "continuous", "lower": -1.5, "upper": 1.5, "step": 0.75},
    {"kind": "ordinal", "levels": ("S", "M", "L")},
    {"kind": "binary", "levels": (False, True)},
)
DIVISORS = (
    {"kind": "integer", "lower": 1, "upper": 4},
    {"kind": "continuous", "lower": 0.5, "upper": 2.0, "step": 0.5},
    {"kind": "integer", "lower": -3, "upper": -1},
)


@st.composite
def questions(draw: Any) -> dict[str, Any]:
    """Draw a small lattice, a formula on it, which the person may miss, a model and a target that some point meets."""
    is_ratio = draw(st.booleans())
    kinds = [draw(st.sampled_from(STEPPED)) for _ in range(3)]
    if is_ratio:
        kinds[2] = draw(st.sampled_from(DIVISORS))
    names = ("y", "a", "b")
    way = st.sampled_from(["any", "any", "increasing", "decreasing"])
    columns = [Feature(name, **kind, direction=draw(way)) for name, kind in zip(names, kinds, strict=True)]
    space = FeatureSpace([*columns, Feature("c", kind="integer", lower=0, upper=2)])
    whole = FeatureSpace([Feature(f.name, **kind) for f, kind in zip(columns, kinds, strict=True)])
    lattice = by_hand.product([by_hand.candidates(f, f.lower if not f.is_finite else 0.0, []) for f in whole])
    rule: Any = Ratio("y", "a", "b") if is_ratio else Product("y", draw(st.sampled_from([["a", "b"], ["a", "b", "a"]])))
    if draw(st.integers(0, 3)):  # mostly somebody who meets the formula
        good = half(rule).keeps(rule, whole, [0.0, 0.0, 1.0], lattice) & (np.arange(len(lattice)) >= 0)
        assume(good.any())
        lattice = lattice[good]
    home = np.append(lattice[draw(st.integers(0, len(lattice) - 1))], 1.0)
    points = by_hand.product([by_hand.candidates(f, x0, []) for f, x0 in zip(space, home, strict=True)])
    seen = by_hand.identity(space, points)
    now = by_hand.identity(space, home[None, :])
    if draw(st.booleans()):
        weights = [draw(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0])) for _ in space]
        model: Any = Affine(weights, 0.0)
    else:
        model = TreeEnsemble([draw(problems.trees(space, 1, 2)) for _ in range(2)], 0.0, n_inputs=4)
    cut = between(draw, model.score(seen), float(model.score(now)[0]))
    row = {f.name: f.from_coordinate(x0) for f, x0 in zip(space, home, strict=True)}
    return {"space": space, "rule": rule, "row": row, "home": home, "model": model, "cut": cut}


def check(asked: dict[str, Any], solver: str) -> None:
    space, rule, home = (asked[key] for key in ("space", "rule", "home"))
    points = by_hand.product([by_hand.candidates(f, x0, []) for f, x0 in zip(space, home, strict=True)])
    kept = half(rule).keeps(rule, space, home, points)
    is_valid = asked["model"].score(by_hand.identity(space, points)) >= asked["cut"]
    costs = np.broadcast_to(by_hand.l1()(by_hand.Moves(space, points - home)), len(points))[kept & is_valid]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)
        found = ceopt.explain(
            asked["model"], asked["row"], space, target=AtLeast(asked["cut"]), constraints=[rule], solver=solver
        )
    if not len(costs):
        assert found.status == "infeasible", found
        return
    if found.status == "already_favourable":
        assert costs.min() == 0.0
        return
    assert found.status == "optimal", (found, costs.min())
    assert found[0].verified
    assert problems.same(found[0].cost, float(costs.min())), (found, costs.min())
    there = np.array([[f.to_coordinate(found[0].values[f.name]) for f in space]])
    assert half(rule).keeps(rule, space, home, there).all(), found
    for k in np.random.default_rng(0).choice(len(points), 20):
        own = rule.violation(space, by_name(space, home), by_name(space, points[k])) <= 0.0
        assert own == kept[k], points[k]


@draws(120)
@given(asked=questions())
def test_the_optimum_value_by_value_is_that_of_enumeration(asked):
    check(asked, "highs")


@draws(60)
@given(asked=questions())
def test_the_optimum_by_bilinear_rows_is_that_of_enumeration(asked):
    check(asked, "scip")


@draws(60)
@given(asked=questions())
def test_the_optimum_by_digits_is_that_of_enumeration(asked):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_MOST_VALUES", 2)
        check(asked, "highs")


# ---- rows ------------------------------------------------------------------------------------------------------------
def test_a_column_of_many_steps_is_taken_by_its_digits(monkeypatch):
    monkeypatch.setattr(products, "_MOST_VALUES", 3)
    space = FeatureSpace(
        [
            Feature("y", kind="integer", lower=0, upper=99),
            Feature("a", kind="continuous", lower=1.0, upper=9.0),
            Feature("b", kind="integer", lower=2, upper=6),
        ]
    )
    m = built(Product("y", ["a", "b"]), space, {"y": 8, "a": 2.0, "b": 4})
    rows = {row.local_name: str(row.expr) for row in m.rule.component_data_objects(pyo.Constraint)}

    assert rows["counted[b,0]"] == (
        "x.x[b] - rule.digits[b,0,0] - 2.0*rule.digits[b,0,1] - 4.0*rule.digits[b,0,2]  ==  2.0"
    )
    assert rows["row[equals]"] == (
        "-0.5  <=  x.x[y] - 2.0*x.x[a] - rule.digit_parts[b,0,0] - 2.0*rule.digit_parts[b,0,1] "
        "- 4.0*rule.digit_parts[b,0,2]  <=  0.5"
    )
    assert rows["digit[b,0,1,most]"] == "rule.digit_parts[b,0,1] - 9.0*rule.digits[b,0,1]  <=  0.0"
    assert len(rows) == 1 + 3 * 4 + 1


def test_two_columns_without_steps_make_a_bilinear_row():
    m = built(RATE, loan(**SMOOTH), dict(PERSON, months=24.0))
    rows = {row.local_name: str(row.expr) for row in m.rule.component_data_objects(pyo.Constraint)}

    assert set(rows) == {"bilinear[0]", "row[equals]"}
    assert "x.x[rate]" in rows["bilinear[0]"]
    assert "x.x[months]" in rows["bilinear[0]"]
    assert compile_model(m).problem_class is ProblemClass.NONCONVEX
    assert m.x.multiplied == [("Ratio", ("rate", "months"))]


def test_factors_of_extreme_size_count_in_another_unit():
    space = FeatureSpace(
        [
            Feature("y", kind="continuous", lower=0.0, upper=1e9),
            Feature("a", kind="continuous", lower=0.0, upper=1e6),
            Feature("b", kind="continuous", lower=0.0, upper=1e3),
        ]
    )
    m = built(Product("y", ["a", "b"]), space, {"y": 1e6, "a": 1e4, "b": 100.0})
    rows = {row.local_name: str(row.expr) for row in m.rule.component_data_objects(pyo.Constraint)}

    assert rows["scale[0,before]"] == "rule.scaled[0,before] - 0.0009765625*x.x[a]  ==  0.0"
    assert rows["bilinear[0]"] == "rule.product[0] - (0.0009765625*rule.scaled[0,before])*(x.x[b])  ==  0.0"


def test_scip_does_not_call_a_large_product_infeasible():
    """With variables put in the place of others in presolving, SCIP 10.0.2 proved that nothing is cheaper than 0.54."""
    space = FeatureSpace(
        [
            Feature("y", kind="continuous", lower=165_200.0, upper=2_936_760_555.0, decimals=2),
            Feature("n", kind="integer", lower=1652, upper=1_663_887),
            Feature("d", kind="integer", lower=100, upper=1765),
        ]
    )
    low = {"feature": 0, "threshold": 1_241_426_530.0, "left": {"value": 0.1}, "right": {"value": -0.9}}
    mid = {"feature": 0, "threshold": 1_126_870_920.0, "left": {"value": 0.3}, "right": {"value": 1.0}}
    trees = [
        {"feature": 2, "threshold": 1537.19291, "left": low, "right": {"value": -0.4}},
        {"feature": 0, "threshold": 1_969_517_740.0, "left": mid, "right": {"value": 0.2}},
        {"feature": 2, "threshold": 1241.42740416, "left": {"value": -0.7}, "right": {"value": 0.4}},
    ]
    model = TreeEnsemble(trees, -0.93, n_inputs=3, labels=("no", "yes"))
    person = {"y": 1_220_318_235.0, "n": 1_214_247, "d": 1005}
    costs = [
        ceopt.explain(model, person, space, target="yes", constraints=[Product("y", ["n", "d"])], solver=solver)[0].cost
        for solver in ("highs", "scip")
    ]
    assert costs == pytest.approx([0.2786990567] * 2, rel=1e-5)


def test_who_has_steps_or_stays_needs_no_bilinear_row():
    assert class_of(RATE, loan(), PERSON) is ProblemClass.MILP
    assert class_of(RATE, loan(months={"mutable": False}), PERSON) is ProblemClass.MILP  # its rate has steps
    assert class_of(RATE, loan(**CONTINUOUS, months={"mutable": False}), PERSON) is ProblemClass.LP
    assert class_of(RATE, loan(rate={"mutable": False}, months={"kind": "continuous"}), PERSON) is ProblemClass.LP
    assert class_of(RATE, loan(), PERSON, takes_products=True) is ProblemClass.NONCONVEX


def test_a_start_meets_every_row():
    """Placed at a row that keeps the formula, the variables of either form are a feasible point."""
    for takes_products, most in itertools.product((False, True), (2, 256)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(products, "_MOST_VALUES", most)
            m = built(RATE, loan(), PERSON, takes_products=takes_products)
            m.all = impose(Product("income", ["rate", "months", "months"]), m.x)
        income = 500.0 * 12 * 12 + (1500.0 - 500.0 * 24 * 24)
        m.x.place({"rate": 500.0, "amount": 6000.0, "months": 12.0, "income": income})
        for row in m.component_data_objects(pyo.Constraint):
            assert row.lslack() >= -1e-6, row.name
            assert row.uslack() >= -1e-6, row.name


@pytest.mark.parametrize(("most", "takes_products"), [(256, False), (2, False), (256, True)])
def test_a_product_is_that_of_its_factors_and_nothing_else(most, takes_products, monkeypatch):
    """Value by value, digit by digit and bilinear: the least and the greatest product are the one of the factors."""
    monkeypatch.setattr(products, "_MOST_VALUES", most)
    space = FeatureSpace(
        [
            Feature("y", kind="continuous", lower=-99.0, upper=99.0),
            Feature("a", kind="continuous", lower=-3.0, upper=2.0),
            Feature("b", kind="integer", lower=-2, upper=3),
        ]
    )
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"y": 0.0, "a": 1.0, "b": 1})
    m.x.takes_products = takes_products
    m.rule = pyo.Block(concrete=True)
    found = products.product_of(m.rule, m.x, "Product", ("a", "b"))
    m.held = pyo.Var(["a", "b"], initialize=0.0)
    m.pin = pyo.Constraint(["a", "b"], rule=lambda m, name: m.x.raw[name] == m.held[name])
    m.cost = pyo.Objective(expr=found.form.expression())
    assert (found.low, found.high) == (-9.0, 6.0)
    for sense, a, b in itertools.product((pyo.minimize, pyo.maximize), (-3.0, -0.75, 0.0, 2.0), (-2, 0, 1, 3)):
        m.cost.sense = sense
        m.held["a"].fix(a)
        m.held["b"].fix(b)
        assert solve(m).objective == pytest.approx(a * b, abs=1e-5), (a, b)


def off_by_a_trace(rule: Any, space: FeatureSpace, row: Any, point: dict[str, float], **off: float) -> dict[str, float]:
    """What a solver's point is decoded to, whose columns are off by so much."""
    m = built(rule, space, row)
    m.x.place(point)
    for name, by in off.items():
        m.x.x[name].set_value(m.x.x[name].value + by)
    return dict(m.x.decoded())


def test_a_solver_s_trace_is_put_right_where_there_is_room():
    space = loan(**CONTINUOUS)
    met = {"rate": 400.0, "amount": 8000.0, "months": 20.0, "income": 1500.0}
    assert off_by_a_trace(RATE, space, PERSON, met, rate=1e-6) == met
    assert off_by_a_trace(RATE, space, PERSON, met, amount=2e-5)["rate"] == pytest.approx(400.0 + 1e-6, abs=1e-12)
    # Of a rate at its bound, or in a cell of its own, the amount gives way.
    m = built(RATE, space.update("rate", upper=500.0), PERSON)
    m.x.place({"rate": 500.0, "amount": 10_000.0, "months": 20.0, "income": 1500.0})
    m.x.x["amount"].set_value(10_000.0 + 1e-4)
    assert m.x.decoded()["rate"] == 500.0
    assert m.x.decoded()["amount"] == pytest.approx(10_000.0, abs=1e-9)
    # Of a rate that may not move, because a count of changes says so, too.
    m = built(RATE, space, PERSON)
    m.few = impose(MaxChanges(2), m.x)
    m.x.place({"rate": 500.0, "amount": 10_000.0, "months": 20.0, "income": 1500.0})
    m.x.x["amount"].set_value(10_000.0 + 1e-4)
    assert m.x.decoded()["rate"] == 500.0
    assert m.x.decoded()["amount"] == pytest.approx(10_000.0, abs=1e-9)


def test_a_trace_of_a_product_is_put_right_too():
    rule, space = Product("amount", ["rate", "months"]), loan(**CONTINUOUS)
    met = {"rate": 400.0, "amount": 8000.0, "months": 20.0, "income": 1500.0}
    assert off_by_a_trace(rule, space, PERSON, met, amount=1e-5) == met
    m = built(rule, space.update("amount", lower=8000.0), PERSON)
    m.x.place(met)
    m.x.x["rate"].set_value(400.0 - 1e-6)
    assert m.x.decoded() == pytest.approx(met, abs=1e-9)


def test_points_are_mended_on_the_grid_of_the_person():
    space = loan()
    person = space.row(dict(PERSON, rate=500.004))
    points = np.array([[0.0, 8000.0, 24.0, 0.0], [333.34, 8000.0, 24.0, 0.0], [1.0, 8000.0, 0.0, 0.0]])
    mended = RATE.mended(space, person, points)
    assert mended[:, 0].tolist() == [333.334, 333.334, 1.0]  # one that is not defined stays
    ranked = FeatureSpace([Feature("size", kind="ordinal", levels=("S", "M", "L")), space["rate"], space["months"]])
    rule = Product("size", ["rate", "months"])
    points = np.array([[0.0, 0.01, 72.0], [0.0, 9.0, 9.0], [1.0, 0.1, 9.0]])
    assert rule.mended(ranked, {"size": 0.0, "rate": 0.0, "months": 6.0}, points)[:, 0].tolist() == [1.0, 2.0, 1.0]


# ---- answers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("said", [{}, CONTINUOUS, {"rate": {"step": None, "decimals": 2}}])
def test_an_answer_meets_the_formula(said, solver):
    space = loan(**said)
    found = ceopt.explain(MODEL, PERSON, space, target="yes", constraints=[RATE], solver=solver)

    assert found.status == "optimal"
    assert found[0].verified
    assert "rate" in found[0].changed
    allowed = 0.005 * (1 + 1e-6)
    if space["rate"].step is None and space["rate"].decimals is None:
        allowed = 1e-9 * 500
    assert abs(miss(RATE, found[0].values)) <= allowed
    assert ceopt.verify(found, MODEL, space, target="yes", factual=PERSON, constraints=[RATE]).ok


def test_auto_finds_a_solver_that_multiplies_and_highs_says_what_to_do():
    space = loan(**SMOOTH)
    found = ceopt.explain(MODEL, PERSON, space, target="yes", constraints=[RATE])
    assert found.solver.startswith("scip")
    assert found.status == "optimal"
    assert abs(miss(RATE, found[0].values)) <= 1e-9 * 500

    with pytest.raises(UnsupportedProblemError, match=r"Ratio multiplies 'rate' and 'months'.*update\('months', step="):
        ceopt.explain(MODEL, PERSON, space, target="yes", constraints=[RATE], solver="highs")


@pytest.mark.parametrize(("solver", "said"), [("highs", CONTINUOUS), ("scip", CONTINUOUS), ("auto", SMOOTH)])
def test_trees_that_split_a_column_that_follows_are_met_to_the_last_digit(solver, said):
    """Cheapest is a rate on a split, where a column that gives way by a trace would lose the decision."""
    rng = np.random.default_rng(0)
    amount, months = rng.integers(500, 20_000, 300).astype(float), rng.integers(6, 73, 300)
    income = rng.integers(0, 9000, 300).astype(float)
    X = pd.DataFrame({"rate": amount / months, "amount": amount, "months": months, "income": income})
    y = np.where(income - 3.0 * amount / months + rng.normal(0, 300, 300) > 500, "yes", "no")
    model = GradientBoostingClassifier(n_estimators=15, max_depth=3, random_state=0).fit(X, y)
    space = loan(**said)
    people = X[model.predict(X) == "no"].head(4)
    for k in range(len(people)):
        found = ceopt.explain(model, people.iloc[[k]], space, target="yes", constraints=[RATE], solver=solver)
        assert found.status == "optimal", found
        assert found[0].verified
        values = found[0].values
        assert abs(miss(RATE, values)) <= 1e-9 * (abs(values["rate"]) + 1e-3)
        assert model.predict(found[0].frame)[0] == "yes"


def test_a_square_is_a_product_of_a_column_with_itself():
    for kind in ({"kind": "integer"}, {"kind": "continuous"}):
        space = FeatureSpace(
            [
                Feature("area", kind="continuous", lower=0.0, upper=100.0),
                Feature("side", lower=1, upper=9, **kind),
            ]
        )
        found = ceopt.explain(
            Affine([1.0, 0.0], 0.0), {"area": 4.0, "side": 2}, space, target=AtLeast(16.0),
            constraints=[Product("area", ["side", "side"])],
        )  # fmt: skip
        assert found.status == "optimal"
        assert found[0].values["side"] == pytest.approx(4.0, abs=1e-5)
        assert found[0].values["area"] == pytest.approx(found[0].values["side"] ** 2, rel=1e-9)


def test_a_move_of_the_column_counts_like_any_other():
    few = MaxChanges(2)
    found = ceopt.explain(MODEL, PERSON, loan(income={"mutable": False}), target="yes", constraints=[RATE, few])
    assert found.status == "optimal"
    assert len(found[0].changed) == 2
    assert "rate" in found[0].changed
    one = ceopt.explain(MODEL, PERSON, loan(), target="yes", constraints=[RATE, MaxChanges(1)])
    assert one[0].changed == ("income",)


def test_cohorts_and_further_answers_meet_it():
    people = pd.DataFrame([PERSON, dict(PERSON, amount=6000.0, months=12), dict(PERSON, income=400.0)])
    cohort = ceopt.Recourse(MODEL, loan(), target="yes", constraints=[RATE], n=2).fit(people).explain(people)
    for result in cohort.results:
        assert result.status == "optimal"
        assert len(result) == 2
        for answer in result:
            assert abs(miss(RATE, answer.values)) <= 0.005 * (1 + 1e-6)


# ---- who misses the formula today ------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_who_misses_the_formula_keeps_the_difference(solver):
    person = dict(PERSON, rate=520.0)
    with pytest.warns(RuleWarning, match="rule 'rate': the person's row misses it today, and answers keep") as caught:
        found = ceopt.explain(MODEL, person, loan(), target="yes", constraints=[RATE], solver=solver)
    assert len([one for one in caught if issubclass(one.category, RuleWarning)]) == 1
    assert found.status == "optimal"
    assert abs(miss(RATE, found[0].values) - 20.0) <= 0.005 * (1 + 1e-6)
    assert found.beyond == {"rate": ""}
    assert not any(answer.asked_by for answer in found)
    assert found.from_json(found.to_json()).beyond == {"rate": ""}


def test_a_rate_that_was_rounded_is_no_miss():
    person = dict(PERSON, months=23, rate=521.74)  # 521.739...
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuleWarning)
        found = ceopt.explain(MODEL, person, loan(), target="yes", constraints=[RATE])
    assert found.beyond == {}
    assert abs(miss(RATE, found[0].values)) <= 0.005 * (1 + 1e-6)


def test_a_cohort_is_warned_of_once():
    people = pd.DataFrame([PERSON, dict(PERSON, rate=520.0), dict(PERSON, rate=480.0)])
    with pytest.warns(RuleWarning, match=r"the rows of 2 of 3 people miss it today") as caught:
        cohort = ceopt.Recourse(MODEL, loan(), target="yes", constraints=[RATE]).fit(people).explain(people)
    assert len([one for one in caught if issubclass(one.category, RuleWarning)]) == 1
    for result, expected in zip(cohort.results, (0.0, 20.0, -20.0), strict=True):
        assert abs(miss(RATE, result[0].values) - expected) <= 0.005 * (1 + 1e-6)


def test_verify_judges_by_the_formula():
    person, space = dict(PERSON, rate=520.0), loan()
    rows = pd.DataFrame([person, person, person]).assign(months=12, rate=[1020.0, 1020.01, 1000.0], income=9000.0)
    report = ceopt.verify(rows, MODEL, space, target="yes", factual=person, constraints=[RATE]).to_frame()
    broken = [any(text.startswith("rate: rate ==") for text in texts) for texts in report["broken"]]
    assert broken == [False, True, True]
    alone = ceopt.verify(rows, MODEL, space, target="yes", constraints=[RATE])
    assert any("rate == amount / months" in text for text in alone.unchecked)


# ---- why not, in words, in files -------------------------------------------------------------------------------------
def test_a_formula_is_one_of_the_rules_in_conflict():
    rules = [
        RATE,
        Linear({"amount": 1.0}, ">=", 12_000.0, name="all"),
        Linear({"rate": 1.0}, "<=", 400.0, name="cheap", beyond="no_further"),
        Linear({"rate": 1.0}, "<=", 499.0, name="less"),
        Linear({"income": 1.0}, "<=", 9000.0, name="income"),
    ]
    space = loan(months={"lower": 6, "upper": 24})
    found = ceopt.explain(MODEL, PERSON, space, target="yes", constraints=rules, why=30)
    assert found.status == "infeasible"
    assert {name for name, _, _ in found.conflict} == {"rate", "all", "less"}
    assert "rate: rate is amount divided by months" in in_words(found, "en").conflict
    assert "rate: rate ist amount geteilt durch months" in in_words(found, "de").conflict


def test_sentences_say_the_formula():
    rules = (RATE, Product("amount", ["rate", "months"], name="all"))
    assert [rule.sentence() for rule in rules] == ["rate == amount / months", "amount == rate * months"]
    person = dict(PERSON, amount=13_000.0)
    with pytest.warns(RuleWarning):
        found = ceopt.explain(MODEL, person, loan(), target="yes", constraints=[rules[1]])
    assert in_words(found).rules == ("all: amount is the product of rate, months",)
    assert in_words(found, "de").rules == ("all: amount ist das Produkt von rate, months",)
    assert in_words(found, "de").beyond == (
        "Regel „all“: Die Werte der Person weichen heute von ihr ab; Antworten behalten den Unterschied bei.",
    )


def test_a_formula_whose_column_changes_is_a_rule_that_bound():
    found = ceopt.explain(MODEL, PERSON, loan(), target="yes", constraints=[RATE])
    assert "rate" in found[0].changed
    assert ("bound_rule", "rate") in [(one.template, one.name) for one in bindings_of(found)]


def test_a_file_of_rules_may_hold_them(tmp_path):
    from ceopt.cli.inputs import read_rules

    path = tmp_path / "rules.json"
    asked = [
        {"rule": "Ratio", "column": "rate", "numerator": "amount", "denominator": "months", "name": "rate"},
        {"rule": "Product", "column": "amount", "factors": ["rate", "months"]},
    ]
    path.write_text(json.dumps(asked), encoding="utf-8")
    assert read_rules(path, loan()) == (RATE, Product("amount", ("rate", "months")))


# ---- refusals --------------------------------------------------------------------------------------------------------
WORDY = FeatureSpace(
    [
        Feature("y", kind="integer", lower=0, upper=9),
        Feature("a", kind="integer", lower=0, upper=9),
        Feature("free", kind="integer"),
        Feature("job", kind="categorical", levels=(1, 2)),
    ]
)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Ratio("y", "a", "a"), InvalidValueError, "three columns, but 'a' is there twice"),
        (lambda: Ratio("y", "y", "a"), InvalidValueError, "'y' is there twice"),
        (lambda: Ratio("y", 3, "a"), InvalidTypeError, "numerator to be the name of a column, but numerator is 3"),
        (lambda: Ratio("y", "a", "free", name=3), InvalidTypeError, "text as name"),
        (lambda: Product("y", ["a"]), InvalidValueError, r"two factors or more, but factors is \('a',\)"),
        (lambda: Product("y", ["a", "y"]), InvalidValueError, "'y' is one of its own factors"),
        (lambda: Product("y", "ab"), InvalidTypeError, "factors"),
        (lambda: Product("y", ["a", 3]), InvalidTypeError, "names of columns as factors, but one is 3"),
        (lambda: Ratio("y", "a", "b").check(WORDY), UnknownNameError, "column is 'b'.*Choose from: y, a, free, job"),
        (lambda: Product("y", ["a", "b"]).check(WORDY), UnknownNameError, "Product needs a known column"),
        (lambda: Product("y", ["a", "job"]).check(WORDY), InvalidTypeError, "column 'job' is categorical"),
        (lambda: Ratio("y", "free", "a").check(WORDY), InvalidValueError, r"'a' may become 0.*update\('a', lower="),
        (lambda: Ratio("y", "a", "free").check(WORDY), InvalidValueError, "it goes from -inf to inf"),
    ],
)
def test_what_makes_no_sense_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_a_denominator_is_refused_for_whom_it_may_become_0():
    space = WORDY.update("a", direction="increasing")
    rule = Ratio("y", "free", "a")
    rule.check(space)
    row = {"y": 1, "a": 2, "free": 2, "job": 2}
    model = Affine([1.0, 0.0, 0.0, 0.0], -2.5)
    found = ceopt.explain(model, row, space, target=AtLeast(0.0), constraints=[rule])
    assert found.status == "optimal"
    m = pyo.ConcreteModel()  # refused whatever a budget leaves of the reach, so that it does not depend on it
    m.x = Factual(space, row | {"a": 0}, reach={**built(rule, space, row).x.reach, "a": Interval(1.0, 9.0, 1.0)})
    with pytest.raises(InvalidValueError, match="'a' may become 0, as it goes from 0 to 9"):
        impose(rule, m.x)
    with pytest.raises(InvalidValueError, match="'a' may become 0, as it goes from 0 to 9"):
        ceopt.explain(model, row | {"a": 0}, space, target=AtLeast(0.0), constraints=[rule])


def test_a_column_that_is_multiplied_value_by_value_needs_bounds():
    space = FeatureSpace(
        [
            Feature("y", kind="integer", lower=0, upper=900),
            Feature("a", kind="continuous", lower=0.0),
            Feature("b", kind="integer", lower=1, upper=9),
        ]
    )
    with pytest.raises(UnboundedFeatureError, match="Product needs finite bounds, but column 'a' may reach"):
        built(Product("y", ["a", "b"]), space, {"y": 4, "a": 2.0, "b": 2})
    assert (
        class_of(Product("y", ["a", "b"]), space, {"y": 4, "a": 2.0, "b": 2}, takes_products=True) == "nonconvex QCQP"
    )


def test_a_person_whose_denominator_is_out_of_bounds_has_no_residual():
    space = loan()
    assert RATE.residual(space, {"rate": 5.0, "amount": 9.0, "months": 0.0, "income": 0.0}) == 0.0
    assert RATE.violation(space, space.row(PERSON), {**space.row(PERSON), "months": 0.0}) == float("inf")


def test_a_small_ratio_is_solved_with_presolve_and_without():
    """HiGHS 1.15.1 called an answer at 0.696 optimal, of a program of 21 variables."""
    space = FeatureSpace(
        [
            Feature(
                "f", kind="integer", lower=10_000, upper=200_000, step=10_000, weight=0.1, max_up="55%", max_down="36%"
            ),
            Feature("m", kind="integer", lower=1, upper=6),
            Feature("y", kind="integer", lower=0, upper=200_000),
        ]
    )
    result = ceopt.explain(
        Affine([0.0, 0.0, 1.0], -80106.5, labels=("no", "yes")), {"m": 4, "f": 140_000, "y": 35_000}, space,
        target="yes", cost=ceopt.L1(scale="range"), constraints=[Ratio("y", "f", "m")], solver="highs",
    )  # fmt: skip

    assert result[0].cost == pytest.approx(0.6657894736842105, rel=1e-9)
    assert str(result.status) == "optimal"


def test_highs_claims_nothing_of_large_products_in_digits() -> None:
    """HiGHS 1.15.1 called an answer optimal that was 41 % too dear."""
    space = FeatureSpace(
        [
            Feature("price", kind="continuous", lower=1.0, upper=7_414.0),
            Feature("lots", kind="continuous", lower=10.0, upper=39_920.0, step=10.0),
            Feature("units", kind="continuous", lower=1.0, upper=3_054.0, step=1.0),
            Feature("sum", kind="continuous", lower=0.0, upper=912_921_680_036.0),
        ]
    )
    person = {
        "price": 5_956.78,
        "lots": 2_150.0,
        "units": 33.0,
        "sum": 422_633_541.0,
    }
    sums = pd.DataFrame({"price": 0.0, "lots": 0.0, "units": 0.0, "sum": [9_900_000.0, 9_975_927.0]})
    tree = DecisionTreeClassifier().fit(sums, [0, 1])

    result = ceopt.explain(
        tree, person, space, target=0, constraints=[Product("sum", ["price", "lots", "units"])], solver="highs",
        time_limit_s=20.0, why=False,
    )  # fmt: skip

    assert result.status not in {"optimal", "infeasible"}
    assert "Product has numbers that highs does not tell apart: nothing is proved" in result.reason


def test_a_product_in_digits_of_ordinary_numbers_is_proved() -> None:
    space = FeatureSpace(
        [
            Feature("price", kind="integer", lower=1, upper=900),
            Feature("units", kind="integer", lower=1, upper=700),
            Feature("sum", kind="integer", lower=0, upper=630_000),
        ]
    )
    sums = pd.DataFrame({"price": 0.0, "units": 0.0, "sum": [280_000.0, 320_000.0]})
    tree = DecisionTreeClassifier().fit(sums, [0, 1])
    person = {"price": 300, "units": 500, "sum": 150_000}

    result = ceopt.explain(
        tree, person, space, target=1, cost=ceopt.L1(scale="none"), constraints=[Product("sum", ["price", "units"])],
        solver="highs",
    )  # fmt: skip

    prices, units = np.meshgrid(np.arange(1, 901), np.arange(1, 701))
    costs = np.abs(prices - 300) + np.abs(units - 500) + np.abs(prices * units - 150_000)
    assert result.status == "optimal"
    assert result[0].cost == pytest.approx(costs[prices * units > 300_000].min(), rel=1e-6)
