"""RobustValidity: rows as in the docstring, optima by enumeration and by root finding, through real pipelines."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pyomo.core.expr.visitor import identify_variables
from scipy.optimize import brentq, minimize
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import ceopt
from ceopt import Feature, FeatureSpace, RobustValidity
from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.constraints.robust_validity import column_names, row_seen
from ceopt.formulations.predictors import Affine
from ceopt.formulations.predictors.readers import read
from ceopt.solvers import compile_model, model_summary, solve, write
from ceopt.solvers import read as read_program
from ceopt.solvers.problem import ProblemClass
from ceopt.solvers.registry import SOLVERS

MIXED = [
    name
    for name, solver in SOLVERS.items()
    if ProblemClass.MISOCP in solver.classes and solver.is_installed and solver.is_licensed
]
CONTINUOUS = [
    name
    for name, solver in SOLVERS.items()
    if ProblemClass.SOCP in solver.classes and solver.is_installed and solver.is_licensed
]


def bound_of(rule: Any, x: Any) -> float:
    """Return the bound at what the classifier sees, as an angle."""
    x = np.append(x, 1.0)
    mean, covariance = np.asarray(rule.mean, dtype=float), np.asarray(rule.covariance, dtype=float)
    m, s, r = mean @ x, np.sqrt(max(x @ covariance @ x, 0.0)), rule.radius * np.linalg.norm(x)
    if m <= r:
        return 0.0
    angle = np.arctan2(s, m) + np.arcsin(min(r / np.hypot(m, s), 1.0))
    return float(np.cos(angle) ** 2) if angle < np.pi / 2 else 0.0


SQUARE = FeatureSpace(
    [
        Feature("a", kind="integer", lower=0, upper=4),
        Feature("b", kind="integer", lower=-2, upper=3),
        Feature("c", kind="binary", levels=(False, True)),
    ]
)
ORIGIN = {"a": 1, "b": 0, "c": False}
AFFINE = Affine([1.0, 0.0, 2.0], -3.0)


# ---- rows ------------------------------------------------------------------------------------------------------------
WAGES = FeatureSpace(
    [
        Feature("wage", kind="continuous", lower=0.0, upper=8.0),
        Feature("job", kind="categorical", levels=("cook", "nurse", "clerk")),
        Feature("owner", kind="binary", levels=(False, True)),
    ]
)
PERSON = {"wage": 2.0, "job": "nurse", "owner": False}
EVERYBODY = pd.DataFrame(
    {
        "wage": [0.0, 8.0, 4.0, 2.0, 6.0, 5.0, 1.0, 7.0],
        "job": ["cook", "nurse", "clerk", "cook", "clerk", "nurse", "cook", "clerk"],
        "owner": [False, True, False, True, False, True, True, False],
    }
)
DECIDED = ["no", "yes", "no", "no", "yes", "yes", "no", "yes"]


def pipeline(**options: Any) -> Any:
    encode = make_column_transformer(
        (StandardScaler(), ["wage"]), (OneHotEncoder(), ["job"]), (OneHotEncoder(drop="if_binary"), ["owner"])
    )
    return make_pipeline(encode, LogisticRegression(**options)).fit(EVERYBODY, DECIDED)


def moments_of(model: Any, size: float = 0.2, seed: int = 0) -> tuple[Any, Any]:
    """Return the model's own parameters, and some covariance."""
    mean = np.append(model[-1].coef_[0], model[-1].intercept_)
    roots = size * np.random.default_rng(seed).normal(size=(len(mean), len(mean)))
    return mean, roots @ roots.T / len(mean)


@pytest.mark.long
@pytest.mark.parametrize(("radius", "level"), [(0.1, 0.7), (0.0, 0.9), (0.3, 0.2)])
def test_the_rows_say_what_the_docstring_says_of_the_columns_that_the_classifier_sees(radius, level):
    model = pipeline()
    mean, covariance = moments_of(model)
    rule = RobustValidity(mean, covariance, radius, level, model=model)
    m = pyo.ConcreteModel()
    m.x = Factual(WAGES, PERSON)
    m.robust = impose(rule, m.x)
    kappa, factor = np.sqrt(level / (1.0 - level)), np.linalg.cholesky(covariance)
    here = np.append(model[:-1].transform(WAGES.frame([WAGES.row(PERSON)]))[0], 1.0)
    margin = min(1e-5, 2.5e-6 * abs(mean @ here))  # by the mean score at the person

    for wage, job, owner in itertools.product((0.0, 2.0, 7.5), ("cook", "nurse", "clerk"), (False, True)):
        row = {"wage": wage, "job": job, "owner": owner}
        m.x.place(WAGES.row(row))
        x = np.append(model[:-1].transform(WAGES.frame([WAGES.row(row)]))[0], 1.0)
        spread, ambiguity = kappa * np.linalg.norm(factor.T @ x), radius * np.hypot(1, kappa) * np.linalg.norm(x)
        assert m.robust.spread.value == pytest.approx(spread, rel=1e-9)
        m.robust.spread.value = 1.5
        assert pyo.value(m.robust.spread_cone.body) == pytest.approx(1.5 - spread, abs=1e-9)
        assert m.robust.spread.lb == 0.0
        taken = 1.5
        if radius:
            assert m.robust.ambiguity.value == pytest.approx(ambiguity, rel=1e-9)
            m.robust.ambiguity.value = 2.5
            assert pyo.value(m.robust.ambiguity_cone.body) == pytest.approx(2.5 - ambiguity, abs=1e-9)
            taken += 2.5
        (only,) = m.robust.favourable.values()
        assert pyo.value(only.body) == pytest.approx(mean @ x - taken, abs=1e-9)
        assert pyo.value(only.lower) == pytest.approx(margin)
        assert only.upper is None
        kept = mean @ x - spread - ambiguity >= 0.0
        assert (rule.bound(WAGES, WAGES.row(row)) >= level) == kept
        assert rule.bound(WAGES, WAGES.row(row)) == pytest.approx(bound_of(rule, x[:-1]), abs=1e-12)


@pytest.mark.parametrize(
    ("covariance", "radius", "level", "cones"),
    [
        (0.1, 0.2, 0.5, ["spread", "ambiguity"]),
        (0.1, 0.0, 0.5, ["spread"]),
        (0.0, 0.2, 0.5, ["ambiguity"]),
        (0.0, 0.0, 0.5, []),
        (0.0, 0.0, 1, []),
    ],
)
def test_a_cone_for_what_is_not_zero(covariance, radius, level, cones):
    m = pyo.ConcreteModel()
    m.x = Factual(SQUARE, ORIGIN)
    m.robust = impose(RobustValidity([1.0, 0.0, 2.0, -3.0], covariance * np.eye(4), radius, level, model=AFFINE), m.x)

    assert [v.local_name for v in m.robust.component_data_objects(pyo.Var)] == cones
    named = [row.local_name for row in m.robust.component_data_objects(pyo.Constraint)]
    assert named == [*(f"{name}_cone" for name in cones), "favourable[score]"]
    (summary,) = model_summary(m).query("rule == 'RobustValidity'").to_dict("records")
    assert "robust" in str(summary)


def test_level_0_is_no_row_at_all():
    m = pyo.ConcreteModel()
    m.x = Factual(SQUARE, ORIGIN)
    rule = RobustValidity(-np.ones(4), np.eye(4), 3.0, 0, model=AFFINE)
    m.robust = impose(rule, m.x)

    assert list(m.robust.component_data_objects((pyo.Var, pyo.Constraint))) == []
    assert rule.violation(SQUARE, None, SQUARE.row(ORIGIN)) == 0.0
    assert rule.bound(SQUARE, SQUARE.row(ORIGIN)) == 0.0


def test_columns_that_stay_are_one_entry_and_a_covariance_of_many_is_as_long_as_what_moves():
    space = FeatureSpace([Feature(f"c{k}", kind="continuous", lower=0, upper=9, mutable=k == 3) for k in range(12)])
    rule = RobustValidity(np.ones(13), np.eye(13), 0.5, 0.5, model=Affine(np.ones(12), -20.0))
    m = pyo.ConcreteModel()
    m.x = Factual(space, dict.fromkeys(space.names, 2.0))
    m.robust = impose(rule, m.x)
    m.x.place(space.row({**dict.fromkeys(space.names, 2.0), "c3": 5.0}))

    for name in ("spread", "ambiguity"):
        assert len(getattr(m.robust, f"{name}_cone").body.args) <= 3
    length = np.sqrt(11 * 4.0 + 25.0 + 1.0)
    assert m.robust.spread.value == pytest.approx(length)
    assert m.robust.ambiguity.value == pytest.approx(0.5 * np.sqrt(2.0) * length)


@pytest.mark.parametrize(
    ("radius", "seen"),
    [
        (0.0, {"favourable": ["a"], "spread_cone": ["a", "b"]}),
        (0.1, {"favourable": ["a"], "spread_cone": ["a", "b"], "ambiguity_cone": ["a", "b", "c"]}),
    ],
)
def test_each_row_reads_the_columns_that_count_for_it(radius, seen):
    """The mean reads a; the covariance a and b, which has no mean; c counts for the ambiguity alone."""
    space = FeatureSpace([Feature(name, kind="continuous", lower=0, upper=9) for name in "abc"])
    covariance = np.diag([0.04, 0.09, 0.0, 0.0])
    rule = RobustValidity([1.0, 0.0, 0.0, -3.0], covariance, radius, 0.5, model=Affine([1.0, 0.0, 0.0], -3.0))
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"a": 6.0, "b": 4.0, "c": 1.0})
    m.robust = impose(rule, m.x)
    m.x.place(space.row({"a": 6.0, "b": 4.0, "c": 2.0}))

    found = {
        row.parent_component().local_name: sorted(v.index() for v in identify_variables(row.expr) if v.index())
        for row in m.robust.component_data_objects(pyo.Constraint)
    }
    assert found == seen
    assert sorted(m.x.x) == sorted({name for names in seen.values() for name in names})  # no other gets a coordinate
    assert m.robust.spread.value == pytest.approx(np.hypot(0.2 * 6.0, 0.3 * 4.0))


@draws(25)
@given(
    m=st.floats(1e-3, 10.0), s=st.floats(0.0, 10.0), radius=st.floats(0.0, 2.0), level=st.floats(0.01, 0.999),
)  # fmt: skip
@example(m=2.0, s=0.0, radius=1.0, level=0.5)
@example(m=1.0, s=1.0, radius=0.0, level=0.5)
def test_the_bound_is_the_level_where_the_row_is_tight(m, s, radius, level):
    """Two parameters of which the first is seen as 0: mean score m, deviation s, length 1."""
    kappa = np.sqrt(level / (1.0 - level))
    tight = kappa * s + radius * np.sqrt(1.0 + kappa**2)
    assume(tight > 1e-6)
    space, at = FeatureSpace([Feature("a", kind="continuous")]), {"a": 0.0}
    certain = RobustValidity([0.0, m], [[0.0, 0.0], [0.0, s**2]], radius, level, model=Affine([1.0], 0.0))

    bound = replace_mean(certain, tight).bound(space, at)
    assert bound == pytest.approx(level, rel=1e-7)
    assert (certain.bound(space, at) >= level) == (m >= tight) or m == pytest.approx(tight, rel=1e-7)


def replace_mean(rule: Any, intercept: float) -> Any:
    return RobustValidity([0.0, intercept], rule.covariance, rule.radius, rule.level, model=rule.model)


def test_bounds_of_one_counterfactual_are_those_of_the_closed_forms():
    space, at = FeatureSpace([Feature("a", kind="continuous")]), {"a": 0.0}

    def bound(m: float, variance: float, radius: float) -> float:
        rule = RobustValidity([0.0, m], [[0.0, 0.0], [0.0, variance]], radius, 0.5, model=Affine([1.0], 0.0))
        return rule.bound(space, at)

    assert bound(2.0, 1.0, 0.0) == pytest.approx(4.0 / 5.0)  # Cantelli
    assert bound(2.0, 0.0, 1.0) == pytest.approx(3.0 / 4.0)  # 1 - r^2 / m^2
    assert bound(1.0, 0.0, 1.0) == bound(0.0, 0.0, 0.0) == bound(-1.0, 0.0, 0.0) == bound(1.0, 1.0, 1.0) == 0.0
    assert bound(1e-9, 0.0, 0.0) == 1.0
    assert bound(1e200, 1e-300, 0.0) == 1.0


# ---- optima ----------------------------------------------------------------------------------------------------------
LATTICE = np.array(list(itertools.product(range(5), range(-2, 4), range(2))), dtype=float)
PRICE = {"a": 1.0, "b": 1.7, "c": 2.9}
small = st.sampled_from([-1.31, -0.47, 0.29, 0.83, 1.57])


@st.composite
def squares(draw: Any) -> Any:
    mean = [draw(small), draw(small), draw(small), draw(st.sampled_from([-3.07, -1.53, 0.61]))]
    roots = np.array([[draw(st.sampled_from([-0.3, 0.0, 0.17])) for _ in range(2)] for _ in mean])
    radius, level = draw(st.sampled_from([0.0, 0.023, 0.11])), draw(st.sampled_from([0.0, 0.31, 0.62, 0.9, 0.97]))
    return RobustValidity(mean, roots @ roots.T, radius, level)


@pytest.mark.parametrize("solver", MIXED)
def test_the_optimum_on_a_lattice_is_that_of_enumeration(solver):
    @draws(25)
    @given(rule=squares())
    def check(rule: Any) -> None:
        mean = np.asarray(rule.mean)
        model = Affine(mean[:-1], mean[-1], labels=("no", "yes"))
        bounds, scores = np.array([bound_of(rule, x) for x in LATTICE]), LATTICE @ mean[:-1] + mean[-1]
        assume(np.abs(scores).min() > 1e-3 and (not rule.level or np.abs(bounds - rule.level).min() > 1e-4))
        cost = ceopt.L1(scale=PRICE)
        kept = (scores > 0.0) & (bounds >= rule.level)
        prices = np.abs(LATTICE - [1.0, 0.0, 0.0]) @ [1.0 / PRICE[name] for name in "abc"]
        found = ceopt.explain(model, ORIGIN, SQUARE, target="yes", constraints=[rule], cost=cost, solver=solver)

        here = (LATTICE == [1.0, 0.0, 0.0]).all(axis=1)
        if kept[here].all():
            assert found.status == "already_favourable"
        elif kept.any():
            assert found.status == "optimal", found.reason
            assert found[0].cost == pytest.approx(prices[kept].min(), abs=1e-6)
            assert found[0].verified
        else:
            assert found.status == "infeasible"
            assert not (scores > 0.0).any() or [name for name, *_ in found.conflict] == ["RobustValidity_1"]

    check()


def test_a_relaxation_on_which_the_dual_simplex_method_gives_up_is_solved():
    """HiGHS 1.15.1 called one of its linear programs "unknown", and the answer was an error."""
    roots = np.array([[-0.3, -0.3], [-0.3, 0.17], [0.0, 0.17], [0.0, -0.3]])
    rule = RobustValidity([0.83, 0.83, 0.83, -1.53], roots @ roots.T, 0.11, 0.9)
    model = Affine([0.83, 0.83, 0.83], -1.53, labels=("no", "yes"))
    cost = ceopt.L1(scale=PRICE)
    found = ceopt.explain(model, ORIGIN, SQUARE, target="yes", constraints=[rule], cost=cost, solver="highs")
    assert found.status == "infeasible", found.reason


LINE = FeatureSpace([Feature("a", kind="continuous", lower=-50.0, upper=50.0)])


@pytest.mark.long(every=6)
@pytest.mark.parametrize("solver", CONTINUOUS)
@pytest.mark.parametrize(
    ("variance", "radius", "level"), [(0.04, 0.0, 0.9), (0.01, 0.05, 0.8), (0.0, 0.2, 0.5), (1e-8, 1e-5, 0.999)]
)
def test_the_nearest_number_is_the_root_of_the_row(solver, variance, radius, level):
    rule = RobustValidity([1.0, -3.0], variance * np.array([[1.0, 0.5], [0.5, 2.0]]), radius, level)
    model = Affine([1.0], -3.0, labels=("no", "yes"))
    root = brentq(lambda x: bound_of(rule, [x]) - level, 3.0, 50.0, xtol=1e-13)
    found = ceopt.explain(
        model, {"a": 0.0}, LINE, target="yes", constraints=[rule], cost=ceopt.L1(scale="none"), solver=solver
    )

    assert found.status == "optimal", found.reason
    assert found[0].cost == pytest.approx(root, abs=1e-4)
    assert found[0].cost >= root - 1e-9
    assert bound_of(rule, [found[0].values["a"]]) >= level * (1.0 - 1e-9)


@pytest.mark.parametrize("solver", CONTINUOUS)
def test_the_nearest_point_is_that_of_a_local_method_on_the_convex_program(solver):
    space = FeatureSpace([Feature(name, kind="continuous", lower=-9.0, upper=9.0) for name in "abc"])
    roots = np.random.default_rng(3).normal(size=(4, 3))
    rule = RobustValidity([1.0, 0.4, -0.7, -2.0], 0.01 * roots @ roots.T, 0.03, 0.85)
    kappa, mean, covariance = np.sqrt(0.85 / 0.15), np.asarray(rule.mean), np.asarray(rule.covariance)

    def row(x: Any) -> float:
        x = np.append(x, 1.0)
        return float(mean @ x - kappa * np.sqrt(x @ covariance @ x) - 0.03 * np.hypot(1, kappa) * np.linalg.norm(x))

    constraint = {"type": "ineq", "fun": row}
    best = minimize(lambda x: x @ x, np.array([5.0, 0.0, -5.0]), constraints=[constraint], options={"ftol": 1e-10})
    assert best.success
    found = ceopt.explain(
        Affine(mean[:-1], mean[-1], labels=(0, 1)), dict.fromkeys("abc", 0.0), space, target=1, constraints=[rule],
        cost=ceopt.L2(scale="none"), solver=solver,
    )  # fmt: skip

    assert len(found) == 1, found.reason
    assert found[0].cost == pytest.approx(np.sqrt(best.fun), rel=1e-4)
    assert bound_of(rule, found[0].values.to_numpy(dtype=float)) >= 0.85 * (1.0 - 1e-9)


# ---- through explain -------------------------------------------------------------------------------------------------
def every_row() -> list[dict[str, Any]]:
    space = FeatureSpace([replace(feature, step=0.5) if feature.name == "wage" else feature for feature in WAGES])
    wages, jobs, owners = np.arange(0.0, 8.1, 0.5).tolist(), ("cook", "nurse", "clerk"), (False, True)
    return [dict(zip(space.names, row, strict=True)) for row in itertools.product(wages, jobs, owners)]


@pytest.mark.long(every=5)
@pytest.mark.parametrize("solver", MIXED)
@pytest.mark.parametrize(("radius", "level"), [(0.0, 0.8), (0.05, 0.6), (0.1, 0.9)])
def test_one_hot_columns_and_scalers_as_by_enumeration_through_the_pipeline(solver, radius, level):
    model, space = pipeline(C=100.0), WAGES.update("wage", step=0.5)
    mean, covariance = moments_of(model, 0.4)
    rule = RobustValidity(mean, covariance, radius, level, name="robust")
    rows = pd.DataFrame(every_row())
    seen, good = model[:-1].transform(rows), model.predict(rows) == "yes"
    kept = good & (np.array([bound_of(rule, x) for x in seen]) >= level)
    moved = np.abs(rows["wage"] - 2.0) / 8.0 + (rows["job"] != "nurse") + rows["owner"]
    found = ceopt.explain(
        model, PERSON, space, target="yes", constraints=[rule], cost=ceopt.L1(scale="range"), solver=solver
    )

    assert kept.any()
    assert not kept.all()
    assert found.status == "optimal", found.reason
    assert found[0].cost == pytest.approx(moved[kept].min(), abs=1e-6)
    assert ceopt.verify(found, model, space, target="yes", constraints=[rule]).ok
    report = ceopt.verify(rows, model, space, target="yes", factual=PERSON, constraints=[rule]).to_frame()
    assert report["valid"].tolist() == kept.tolist()
    assert {text.partition(":")[0] for texts in report["broken"] for text in texts} == {"target", "robust"}


@pytest.fixture(scope="module")
def loans() -> Any:
    """Return the loan book, a pipeline on it, and moments over retrained models."""
    book = ceopt.datasets.loans(400)
    numbers = list(book.data.select_dtypes("number"))
    words = [name for name in book.data if name not in numbers]
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), words))
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(book.data, book.target)
    X, rng, found = model[:-1].transform(book.data), np.random.default_rng(0), []
    for _ in range(30):
        half = rng.permutation(len(X))[: len(X) // 2]
        again = LogisticRegression(max_iter=1000).fit(X[half], book.target.iloc[half])
        found.append(np.append(again.coef_[0], again.intercept_))
    return book, model, np.mean(found, axis=0), np.cov(np.transpose(found))


@pytest.mark.long(every=4)
@pytest.mark.parametrize("solver", MIXED)
def test_it_joins_sparsity_hulls_and_causes(loans, solver):
    book, model, mean, covariance = loans
    row = book.data[model.predict(book.data) == "bad"].iloc[[2]]
    rule = RobustValidity(mean, covariance, 0.01, 0.97, name="robust")
    rules = [
        rule, ceopt.MaxChanges(5), ceopt.Hull(radius=0.8, sample=60),
        ceopt.Causal(book.equations, intervention="soft", slack=0.5),
    ]  # fmt: skip
    asked = {"target": "good", "data": book.data, "solver": solver}
    found = ceopt.explain(model, row, book.space, constraints=rules, **asked)
    without = ceopt.explain(model, row, book.space, constraints=rules[1:], **asked)

    assert found.status in {"optimal", "feasible"}, found.reason
    assert found[0].verified
    assert bound_of(rule, model[:-1].transform(found[0].frame)[0]) >= 0.97 * (1.0 - 1e-9)
    assert bound_of(rule, model[:-1].transform(without[0].frame)[0]) < 0.97
    assert without[0].cost <= found[0].cost * (1.0 + 1e-6)
    assert ceopt.verify(found, model, book.space, target="good", constraints=rules, data=book.data).ok
    assert "robust: favourable with probability >= 0.97" in " ".join(found.options["constraints"])


@pytest.mark.long
def test_cost_grows_with_level_and_radius(loans):
    book, model, mean, covariance = loans
    row = book.data[model.predict(book.data) == "bad"].iloc[[5]]

    def cost(level: float, radius: float) -> float:
        rule = RobustValidity(mean, covariance, radius, level)
        found = ceopt.explain(model, row, book.space, target="good", constraints=[rule])
        assert found.status == "optimal"
        return found[0].cost

    plain = ceopt.explain(model, row, book.space, target="good")[0].cost
    assert cost(0.0, 0.5) == pytest.approx(plain)
    assert plain < cost(0.5, 0.0) <= cost(0.9, 0.0) < cost(0.9, 0.1)


def test_a_favourable_row_that_is_not_robust_is_asked_about_like_any_other(loans):
    book, model, mean, covariance = loans
    rule = RobustValidity(mean, covariance, 0.0, 0.8)
    good = book.data[model.predict(book.data) == "good"]
    bounds = np.array([bound_of(rule, x) for x in model[:-1].transform(good)])
    weak, strong = good.iloc[[int((bounds < 0.7).argmax())]], good.iloc[[int(bounds.argmax())]]

    assert ceopt.explain(model, strong, book.space, target="good", constraints=rule).status == "already_favourable"
    found = ceopt.explain(model, weak, book.space, target="good", constraints=rule)
    assert found.status == "optimal"
    assert found[0].cost > 0.0


def test_many_people_are_asked_about_and_the_rule_can_cross_to_other_processes(loans):
    book, model, mean, covariance = loans
    people = book.data[model.predict(book.data) == "bad"].iloc[:2]
    rule = RobustValidity(mean, covariance, 0.0, 0.6)
    recourse = ceopt.Recourse(model, book.space, target="good", constraints=[rule]).fit(book.data)
    again = pickle.loads(pickle.dumps(recourse.prepared_))

    assert [r.status for r in recourse.explain(people)] == ["optimal", "optimal"]
    assert again.settings.rules[0].bound(book.space, book.space.row(people.iloc[[0]])) == pytest.approx(
        recourse.prepared_.settings.rules[0].bound(book.space, book.space.row(people.iloc[[0]]))
    )


def test_the_rule_is_to_blame_where_it_leaves_nothing(loans):
    book, model, mean, covariance = loans
    row = book.data[model.predict(book.data) == "bad"].iloc[[0]]
    rules = [ceopt.MaxChanges(4, name="few"), RobustValidity(mean, 4.0 * covariance, 0.5, 0.99, name="robust")]
    found = ceopt.explain(model, row, book.space, target="good", constraints=rules)

    assert found.status == "infeasible"
    ((name, sentence, wider),) = found.conflict
    assert (name, wider) == ("robust", None)
    assert sentence == "favourable with probability >= 0.99 for all parameters within 0.5 of the moments given"


@pytest.mark.long
def test_another_model_may_be_explained_than_the_one_that_the_rule_is_about(loans):
    book, model, mean, covariance = loans
    forest = make_pipeline(model[:-1], RandomForestClassifier(5, max_depth=4, random_state=0))
    forest.fit(book.data, book.target)
    row = book.data[(forest.predict(book.data) == "bad") & (model.predict(book.data) == "bad")].iloc[[0]]
    rule = RobustValidity(mean, covariance, 0.0, 0.6, model=model)
    found = ceopt.explain(forest, row, book.space, target="good", constraints=[rule])

    assert found.status in {"optimal", "feasible"}, found.reason
    assert bound_of(rule, model[:-1].transform(found[0].frame)[0]) >= 0.6 * (1.0 - 1e-9)
    assert "favourable to Pipeline with" in rule.sentence()


@pytest.mark.long
def test_diverse_answers_keep_it(loans):
    book, model, mean, covariance = loans
    from ceopt.diverse import DiverseRobustExplainer

    row = book.data[model.predict(book.data) == "bad"].iloc[[0]]
    rule = RobustValidity(mean, covariance, 0.0, 0.8)
    found = DiverseRobustExplainer(scale="mad", space=book.space).fit(book.data).explain(
        model, row, target="good", n=2, constraints=[rule]
    )  # fmt: skip

    assert len(found) == 2
    assert all(bound_of(rule, model[:-1].transform(answer.frame)[0]) >= 0.8 for answer in found)


# ---- in a model of one's own -----------------------------------------------------------------------------------------
def own_model(rule: Any, model: Any, space: Any = WAGES, row: Any = PERSON) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(space, row)
    m.predictor = embed(model, m.x)
    m.valid = Reaches(m.predictor, "yes")
    m.robust = impose(rule, m.x)
    m.cost = pyo.Objective(expr=l1(m.x, scale="range"))
    return m


def test_it_goes_into_a_model_of_ones_own_with_its_classifier():
    model = pipeline(C=100.0)
    mean, covariance = moments_of(model, 0.4)
    rule = RobustValidity(mean, covariance, 0.05, 0.6)
    m = own_model(RobustValidity(mean, covariance, 0.05, 0.6, model=model), model)
    found = ceopt.explain(model, PERSON, WAGES, target="yes", constraints=[rule], cost=ceopt.L1(scale="range"))

    assert solve(m).objective == pytest.approx(found[0].cost, rel=1e-6)
    assert bound_of(rule, model[:-1].transform(m.x.decode().to_frame().T.astype({"wage": float}))[0]) >= 0.6 - 1e-9
    with pytest.raises(ceopt.CeoptError, match=r"RobustValidity needs to know the classifier.*model=pipeline"):
        impose(rule, m.x)


def test_a_continuous_program_is_written_as_cbf_and_read_again(tmp_path):
    space = FeatureSpace([Feature(name, kind="continuous", lower=0, upper=9) for name in "ab"])
    model = Affine([1.0, 0.5], -3.0, labels=("no", "yes"))
    rule = RobustValidity([1.0, 0.5, -3.0], 0.02 * np.eye(3), 0.05, 0.7, model=model)
    m = own_model(rule, model, space, {"a": 1.0, "b": 1.0})
    write(m, tmp_path / "robust.cbf")

    assert compile_model(m).problem_class is ProblemClass.SOCP
    expected = solve(m).objective
    assert expected > 0.1
    assert solve(read_program(tmp_path / "robust.cbf")).objective == pytest.approx(expected, rel=1e-6)


def test_levels_that_its_pipeline_was_not_fitted_on_are_kept_off():
    space = FeatureSpace(
        [replace(f, levels=("cook", "nurse", "clerk", "pilot")) if f.name == "job" else f for f in WAGES]
    )
    model = pipeline()
    mean, covariance = moments_of(model)
    rule = RobustValidity(mean, covariance, 0.0, 0.1, model=model)
    jobs = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough"), LogisticRegression()
    )
    everybody = EVERYBODY.assign(job=["cook", "nurse", "clerk", "pilot"] * 2)
    likes_pilots = jobs.fit(everybody, everybody["job"] == "pilot")
    found = ceopt.explain(likes_pilots, PERSON, space, target=True, constraints=[rule])
    assert ceopt.explain(likes_pilots, PERSON, space, target=True)[0].values["job"] == "pilot"
    pilot = space.row({"wage": 8.0, "job": "pilot", "owner": True})

    assert found.status == "infeasible"
    assert np.isnan(rule.bound(space, pilot))
    assert rule.violation(space, None, pilot) == 0.1


# ---- the check -------------------------------------------------------------------------------------------------------
def test_the_check_asks_the_pipeline_itself():
    model = pipeline()
    right = read(model, WAGES)
    wrong = replace(right, encoding=replace(right.encoding, columns=right.encoding.columns[::-1]))
    point = WAGES.row({"wage": 6.0, "job": "clerk", "owner": True})
    expected = model[:-1].transform(WAGES.frame([point]))[0]

    assert row_seen(right, point) == pytest.approx(expected, abs=0.0)
    assert row_seen(wrong, point) == pytest.approx(expected, abs=0.0)
    assert column_names(right) == ["wage", "job=clerk", "job=cook", "job=nurse", "owner"]


def test_of_a_model_that_wraps_a_pipeline_the_encoding_is_asked():
    from sklearn.model_selection import FixedThresholdClassifier

    model = pipeline()
    wrapped = FixedThresholdClassifier(model, threshold=0.4).fit(EVERYBODY, DECIDED)
    point = WAGES.row({"wage": 6.0, "job": "clerk", "owner": True})

    expected = wrapped.estimator_[:-1].transform(WAGES.frame([point]))[0]
    assert row_seen(read(wrapped, WAGES), point) == pytest.approx(expected)


# ---- misuse ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"level": 1.0}, ValueError, r"a level of at least 0 and less than 1, but level is 1\.0"),
        ({"level": -0.1}, ValueError, r"level is -0\.1"),
        ({"level": float("nan")}, ValueError, "level is nan"),
        ({"level": "0.9"}, TypeError, "a number as level, but level is '0.9'"),
        ({"level": True}, TypeError, "level is True"),
        ({"radius": 10**400}, ValueError, r"a finite radius of at least 0, but radius is inf"),
        ({"level": np.timedelta64(1, "D")}, TypeError, "a number as level"),
        ({"radius": -1.0}, ValueError, r"a finite radius of at least 0, but radius is -1\.0"),
        ({"radius": float("inf")}, ValueError, "radius is inf"),
        ({"radius": None}, TypeError, "a number as radius, but radius is None"),
        ({"mean": [1.0, np.nan, 0.0, 0.0]}, ValueError, r"finite mean, but mean\[1\] is nan"),
        ({"mean": [1.0, 0.0]}, ValueError, r"covariance of shape 2 by 2, but its shape is \(4, 4\)"),
        ({"covariance": np.diag([1.0, 1.0, -0.5, 1.0])}, ValueError, r"positive semidefinite covariance, but .* -0\.5"),
        ({"covariance": np.triu(np.ones((4, 4)))}, ValueError, "a symmetric covariance"),
        ({"covariance": np.zeros((4, 4)), "radius": 0.1, "level": 1}, ValueError, "level is 1"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused_at_once(changes, error, says):
    given = {"mean": np.ones(4), "covariance": np.eye(4), "radius": 0.1, "level": 0.9, **changes}
    with pytest.raises(error, match=f"RobustValidity needs .*{says}") as caught:
        RobustValidity(**given)
    assert isinstance(caught.value, ceopt.CeoptError)


def test_moments_of_another_number_of_parameters_are_refused_by_the_columns():
    model = pipeline()
    says = (
        r"RobustValidity needs moments of 6 parameters, but mean has 4\. Give one for each column that the classifier "
        r"sees \(wage, job=clerk, job=cook, job=nurse, owner\), and the intercept last\."
    )
    rule = RobustValidity(np.ones(4), np.eye(4), 0.1, 0.9)
    for ask in (
        lambda: ceopt.explain(model, PERSON, WAGES, target="yes", constraints=[rule]),
        lambda: ceopt.verify([PERSON], model, WAGES, target="yes", constraints=[rule]),
        lambda: ceopt.Recourse(model, WAGES, target="yes", constraints=[rule]).fit(EVERYBODY),
    ):
        with pytest.raises(ceopt.CeoptError, match=says):
            ask()


def test_a_model_without_a_linear_score_is_refused_by_name():
    forest = make_pipeline(pipeline()[:-1], RandomForestClassifier(3, random_state=0)).fit(EVERYBODY, DECIDED)
    rule = RobustValidity(np.ones(6), np.eye(6), 0.1, 0.9)
    with pytest.raises(ceopt.CeoptError, match="whose score is linear in its columns, but Pipeline is not"):
        ceopt.explain(forest, PERSON, WAGES, target="yes", constraints=[rule])


def test_a_column_that_the_pipeline_clips_is_refused_where_it_counts():
    frame = EVERYBODY[["wage"]].assign(age=range(8))
    space = FeatureSpace.infer(frame, moves={"age": "any"})
    encode = make_column_transformer((MinMaxScaler(clip=True), ["age"]), (StandardScaler(), ["wage"]))
    model = make_pipeline(encode, LogisticRegression()).fit(frame, DECIDED)
    model[-1].coef_ = np.array([[0.0, 1.0]])  # a clipped column that the score reads is refused by the reader
    row = {"wage": 0.0, "age": 3}
    unread = RobustValidity([0.0, 1.0, 0.1], np.diag([0.0, 0.1, 0.1]), 0.0, 0.6)

    assert ceopt.explain(model, row, space, target="yes", constraints=[unread]).status == "optimal"
    for rule in (
        RobustValidity([0.5, 1.0, 0.1], np.diag([0.0, 0.1, 0.1]), 0.0, 0.6),
        RobustValidity([0.0, 1.0, 0.1], np.diag([0.1, 0.1, 0.1]), 0.0, 0.6),
        RobustValidity([0.0, 1.0, 0.1], np.diag([0.0, 0.1, 0.1]), 0.1, 0.6),
    ):
        with pytest.raises(ceopt.CeoptError, match="columns that are not clipped, but the pipeline clips 'age'"):
            ceopt.explain(model, row, space, target="yes", constraints=[rule])
