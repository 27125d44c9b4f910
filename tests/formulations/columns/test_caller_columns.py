"""Models in the caller's own program: own Vars and expressions, several rows and models, and their check."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import ceopt
from ceopt.formulations import Columns, Factual, Reaches, embed, embedding_error
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.predictors.embed import FORMULATIONS, kind_of
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    UnboundedFeatureError,
    UnknownNameError,
)

SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=3, lower_inferred=True, upper_inferred=True),
        Feature("size", kind="ordinal", levels=("S", "M", "L")),
        Feature("job", kind="categorical", levels=(10, 30, 20)),
        Feature("owner", kind="binary", levels=(False, True)),
    ]
)
POINTS = list(itertools.product(range(5), range(3), range(3), range(2)))
LINE = FeatureSpace([Feature("a", kind="continuous")])
STUMP = {"feature": 0, "threshold": 3.0, "left": {"value": 1.0}, "right": {"value": 0.0}}


def split(feature: int, threshold: float, left: Any, right: Any) -> dict[str, Any]:
    sides = (side if isinstance(side, dict) else {"value": side} for side in (left, right))
    return {"feature": feature, "threshold": threshold} | dict(zip(("left", "right"), sides, strict=True))


MODELS = {
    "linear": Affine([1.0, -0.5, 0.1, 2.0], -3.2),
    "trees": TreeEnsemble(
        [
            split(0, 1.5, split(2, 15.0, 0.0, 3.0), split(3, 0.5, 1.0, -2.0)),
            split(1, 0.5, split(0, 3.5, -1.0, 4.0), 0.5),
            split(2, 20.0, -1.0, split(1, 1.5, 2.0, 0.0)),
        ]
    ),
}


def own(m: Any) -> dict[str, Any]:
    """Variables of a caller for SPACE; the age may exceed what the space's data happened to hold."""
    m.age = pyo.Var(bounds=(0, 4))
    m.size = pyo.Var(bounds=(0, 2))
    m.job = pyo.Var([10, 20, 30], domain=pyo.Binary)
    m.owner = pyo.Var(domain=pyo.Binary)
    return {"age": m.age, "size": m.size, "job": m.job, "owner": m.owner}


# ---- what is stated --------------------------------------------------------------------------------------------------
def test_rows_tie_the_coordinates_to_what_was_given() -> None:
    m = pyo.ConcreteModel()
    m.x = Columns(SPACE, own(m) | {"age": 1 + m.age})
    m.p = embed(MODELS["trees"], m.x)
    rows = {index: str(row.expr) for index, row in m.x.own.items()}
    assert rows == {
        "age": "x.x[age] - (1 + age)  ==  0",
        "size": "x.at_least[size,M] + x.at_least[size,L] - size  ==  0",
        ("job", 10): "x.level[job,10] - job[10]  ==  0",
        ("job", 20): "x.level[job,20] - job[20]  ==  0",
        ("job", 30): "x.level[job,30] - job[30]  ==  0",
        "owner": "x.level[owner,True] - owner  ==  0",
    }
    assert (m.x.reach["age"].lower, m.x.reach["age"].upper) == (1.0, 5.0)


def test_a_column_that_no_model_reads_adds_nothing() -> None:
    m = pyo.ConcreteModel()
    m.p = embed(Affine([0.0, 0.0, 0.0, 1.0], 0.0), own(m), space=SPACE)
    assert list(m.p.columns.own) == ["owner"]
    assert not m.p.columns.x


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in MODELS for name in FORMULATIONS[kind]])
def test_optimum_over_own_variables_equals_enumeration(kind: str, name: str) -> None:
    model, rng = MODELS[kind], np.random.default_rng(0)
    for weights in rng.normal(size=(8, 4)):
        m = pyo.ConcreteModel()
        given = own(m)
        m.p = embed(model, given, space=SPACE, formulation=name)
        m.one = pyo.Constraint(expr=m.age + m.size <= 4)
        levels = (m.job[30] + 2 * m.job[20]) * weights[2]
        m.cost = pyo.Objective(
            expr=m.p.score + weights[0] * m.age + weights[1] * m.size + levels + weights[3] * m.owner
        )
        result = solve(m)
        values = [
            float(model.score([[age, size, SPACE["job"].levels[job], owner]])[0]) + np.dot(weights, point)
            for point in POINTS
            for age, size, job, owner in [point]
            if age + size <= 4
        ]
        assert result.objective == pytest.approx(min(values), abs=1e-6)
        assert float(embedding_error(m.p)) < 1e-9


def test_a_plain_value_is_a_raw_value_as_in_a_row() -> None:
    m = pyo.ConcreteModel()
    m.limit = pyo.Param(initialize=2, mutable=True)
    m.x = Columns(SPACE, {"age": m.limit, "size": "L", "job": 30, "owner": True})
    assert dict(m.x.decode()) == {"age": 2, "size": "L", "job": 30, "owner": True}
    m.p = embed(MODELS["linear"], m.x)
    assert pyo.value(m.p.score) == pytest.approx(2 - 0.5 * 2 + 0.1 * 30 + 2 - 3.2)
    assert not m.x.own


def test_levels_that_are_left_out_are_not_taken() -> None:
    m = pyo.ConcreteModel()
    given = own(m)
    m.p = embed(MODELS["linear"], given | {"job": {10: m.job[10], 20: 1 - m.job[10], 30: 0}}, space=SPACE)
    m.cost = pyo.Objective(expr=m.p.score, sense=pyo.maximize)
    assert solve(m).objective == pytest.approx(4 - 0 + 2.0 + 2 - 3.2)
    assert m.p.x.decode()["job"] == 20


# ---- bounds ----------------------------------------------------------------------------------------------------------
def test_bounds_of_data_do_not_bind_the_caller_but_those_of_the_user_do() -> None:
    found = {}
    for inferred in (True, False):
        feature = Feature("a", kind="continuous", lower=1, upper=2, lower_inferred=inferred, upper_inferred=inferred)
        m = pyo.ConcreteModel()
        m.a = pyo.Var(bounds=(0, 9))
        m.p = embed(Affine([1.0], 0.0), {"a": m.a}, space=FeatureSpace([feature]))
        m.cost = pyo.Objective(expr=m.p.score)
        least = solve(m).objective
        m.cost.set_value(-m.p.score)
        found[inferred] = (least, -solve(m).objective)
    assert found == {True: (0.0, 9.0), False: (1.0, 2.0)}


def test_a_fixed_variable_may_be_freed() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(bounds=(0, 9))
    m.a.fix(1.0)
    m.p = embed(TreeEnsemble([STUMP]), {"a": m.a}, space=LINE)
    m.cost = pyo.Objective(expr=m.p.score)
    assert solve(m).objective == 1.0
    m.a.unfix()
    assert solve(m).objective == 0.0


# ---- either side of a split ------------------------------------------------------------------------------------------
def at_the_split(threshold: float, gap: float | None) -> float:
    """Push the sum of three variables up to a split from below; return what embedding_error finds."""
    m = pyo.ConcreteModel()
    m.u, m.v, m.w = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0.7, 3))
    m.p = embed(
        TreeEnsemble([STUMP | {"threshold": threshold}]),
        {"a": (m.u + 2 * m.v) / 3 + 0.1 * m.w},
        space=LINE,
        split_gap=gap,
    )
    m.gain = pyo.Objective(expr=m.u + 2.1 * m.v + 0.3 * m.w + 50 * m.p.score, sense=pyo.maximize)
    assert solve(m).status is Status.OPTIMAL
    return float(embedding_error(m.p))


def test_a_gap_keeps_what_the_solver_returns_on_the_side_that_the_library_takes() -> None:
    thresholds = np.random.default_rng(0).uniform(1, 9, size=20).tolist()
    assert max(at_the_split(threshold, None) for threshold in thresholds) == 0.0
    # Without one, the rounding of the caller's own expression crosses the split in some of them.
    assert max(at_the_split(threshold, 0.0) for threshold in thresholds) == 1.0


@pytest.mark.parametrize(("gap", "left", "right"), [(None, 3 - 4.5e-5, 3 + 4.5e-5), (1.0, 2.5, 3.5), (20.0, 0.0, 9.0)])
def test_a_gap_excludes_what_lies_strictly_inside(gap: float | None, left: float, right: float) -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(bounds=(0, 9))
    m.p = embed(TreeEnsemble([STUMP]), {"a": m.a}, space=LINE, split_gap=gap)
    m.side = pyo.Constraint(expr=m.p.score == 1)
    m.cost = pyo.Objective(expr=-m.a)
    solve(m)
    assert m.a.value == pytest.approx(left, abs=1e-9)
    m.side.deactivate()
    m.other = pyo.Constraint(expr=m.p.score == 0)
    m.cost.set_value(m.a)
    solve(m)
    assert m.a.value == pytest.approx(right, abs=1e-9)


@pytest.mark.parametrize("threshold", [1e-35, 0.0, 9.0 - 1e-12])
def test_a_gap_never_excludes_an_end_of_the_column(threshold: float) -> None:
    forest = TreeEnsemble([STUMP | {"threshold": threshold}, STUMP | {"threshold": threshold / 2}])
    for end in (0.0, 9.0):
        m = pyo.ConcreteModel()
        m.a = pyo.Var(bounds=(0, 9))
        m.p = embed(forest, {"a": m.a}, space=LINE)
        m.there = pyo.Constraint(expr=m.a == end)
        m.cost = pyo.Objective(expr=0 * m.a)
        assert solve(m).status is Status.OPTIMAL
        assert float(embedding_error(m.p)) == 0.0


@pytest.mark.parametrize("value", [3.0, math.nextafter(3.0, 4.0), 3.00001])
def test_a_plain_value_is_decided_exactly_however_near_to_a_split(value: float) -> None:
    m = pyo.ConcreteModel()
    m.p = embed(TreeEnsemble([STUMP]), {"a": value}, space=LINE)
    assert pyo.value(m.p.score) == (1.0 if value == 3.0 else 0.0)
    assert float(embedding_error(m.p)) == 0.0


def test_splits_closer_than_the_gap_count_as_one() -> None:
    forest = TreeEnsemble([split(0, 3.0, 0.0, split(0, 3.0 + 1e-6, 5.0, 1.0))])
    m = pyo.ConcreteModel()
    m.a = pyo.Var(bounds=(0, 9))
    m.p = embed(forest, {"a": m.a}, space=LINE)
    m.gain = pyo.Objective(expr=m.p.score, sense=pyo.maximize)
    assert solve(m).objective == 1.0
    m.del_component("p")
    m.p = embed(forest, {"a": m.a}, space=LINE, split_gap=1e-7)
    m.gain.set_value(m.p.score)
    assert solve(m).objective == 5.0


# ---- models of libraries ---------------------------------------------------------------------------------------------
def frame(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "rate": rng.uniform(0, 1, n), "income": rng.uniform(0, 1e5, n), "cards": rng.integers(0, 9, n),
            "dose": rng.uniform(0, 1e-3, n), "job": rng.choice(["cook", "nurse", "clerk"], n),
            "school": rng.choice(["low", "mid", "high"], n), "owner": rng.choice([False, True], n),
        }
    )  # fmt: skip


def outcome(X: pd.DataFrame) -> np.ndarray:
    levels = (X["job"] == "nurse") + (X["school"] == "high") + X["owner"]
    return np.asarray(np.sin(9 * X["rate"]) + X["income"] / 1e5 + X["cards"] / 9 + 1e3 * X["dose"] + levels)


ESTIMATORS = [
    LinearRegression(),
    LogisticRegression(),
    RandomForestRegressor(5, max_depth=4, random_state=0),
    RandomForestClassifier(5, max_depth=4, random_state=0),
    GradientBoostingClassifier(n_estimators=8, random_state=0),
    MLPRegressor(hidden_layer_sizes=(6,), max_iter=3000, tol=1e-2, random_state=0),
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_the_solver_and_the_library_say_the_same(estimator: Any) -> None:
    X = frame()
    space = FeatureSpace.infer(X, ordinal={"school": ["low", "mid", "high"]})
    encode = make_column_transformer(
        (StandardScaler(), ["rate", "income", "cards", "dose"]), (OneHotEncoder(), ["job"]),
        (OrdinalEncoder(categories=[["low", "mid", "high"]]), ["school"]), ("passthrough", ["owner"]),
    )  # fmt: skip
    classes = hasattr(estimator, "predict_proba")
    y = np.digitize(outcome(X), [2.0, 2.7, 3.5]) if classes else outcome(X)
    model = make_pipeline(encode, estimator).fit(X, y)
    predictor = read(model, space)
    for seed, name in itertools.product(range(3), FORMULATIONS[kind_of(predictor)]):
        w, m = np.random.default_rng(seed).normal(size=6), pyo.ConcreteModel()
        m.rate, m.income, m.dose = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1e5)), pyo.Var(bounds=(0, 1e-3))
        m.cards, m.school, m.owner = pyo.Var(bounds=(0, 8)), pyo.Var(bounds=(0, 2)), pyo.Var(domain=pyo.Binary)
        m.job = pyo.Var(["cook", "nurse", "clerk"], domain=pyo.Binary)
        given = {column: m.component(column) for column in X}
        m.p = embed(predictor, given, formulation=name)
        score = m.p.score[seed] if classes else m.p.score
        parts = (m.rate, m.income / 1e5, m.cards / 8, 1e3 * m.dose, m.job["cook"], m.school / 2)
        linear = sum(float(a) * part for a, part in zip(w, parts, strict=True))
        m.cost = pyo.Objective(expr=linear - (1 + seed) * score)
        assert solve(m, time_limit_s=30.0).solutions
        error = embedding_error(m.p)
        assert float(error) < 1e-6
        assert error.agrees
        assert error.prediction == model.predict(error.row)[0]
        assert (error.values is None) == (classes and not isinstance(estimator, RandomForestClassifier))


# ---- several rows, several models ------------------------------------------------------------------------------------
def test_two_rows_and_two_models_in_one_program() -> None:
    risk, profit = MODELS["trees"], MODELS["linear"]
    m = pyo.ConcreteModel()
    m.person = pyo.Block(["ann", "ben"])
    for name, age in (("ann", 1), ("ben", 3)):
        b = m.person[name]
        b.x = Columns(SPACE, own(b) | {"age": age})
        b.risk, b.profit = embed(risk, b.x), embed(profit, b.x)
    m.budget = pyo.Constraint(expr=sum(m.person[name].size for name in m.person) <= 2)
    m.gain = pyo.Objective(expr=sum(b.risk.score + b.profit.score for b in m.person.values()), sense=pyo.maximize)
    result = solve(m)

    def worth(age: int, size: int, job: int, owner: int) -> float:
        row = [[age, size, SPACE["job"].levels[job], owner]]
        return float(risk.score(row)[0] + profit.score(row)[0])

    free = [point[1:] for point in POINTS if point[0] == 0]
    best = max(worth(1, *a) + worth(3, *b) for a in free for b in free if a[0] + b[0] <= 2)
    assert result.objective == pytest.approx(best)
    blocks = [block for b in m.person.values() for block in (b.risk, b.profit)]
    assert [float(embedding_error(block)) for block in blocks] == pytest.approx([0.0] * 4, abs=1e-9)
    assert len(list(m.person["ann"].x.component_data_objects(pyo.Constraint))) == len(
        list(m.person["ben"].x.component_data_objects(pyo.Constraint))
    )


def test_a_target_binds_the_callers_variables() -> None:
    model = TreeEnsemble([split(0, 1.5, [0.9, 0.1], [0.2, 0.8])], labels=("bad", "good"), probability="share")
    m = pyo.ConcreteModel()
    m.a = pyo.Var(bounds=(0, 9))
    m.p = embed(model, {"a": m.a}, space=LINE)
    m.valid = Reaches(m.p, "good")
    m.cost = pyo.Objective(expr=m.a)
    solve(m)
    assert m.a.value == pytest.approx(1.5, abs=1e-4)
    assert model.predict([[m.a.value]])[0] == "good"


def test_a_clone_is_a_program_of_its_own() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(bounds=(0, 9))
    m.p = embed(TreeEnsemble([STUMP]), {"a": m.a}, space=LINE)
    m.gain = pyo.Objective(expr=m.a - 9 * m.p.score)
    other = m.clone()
    solve(other)
    assert m.a.value is None
    assert dict(other.p.x.decode()) == {"a": other.a.value}
    assert float(embedding_error(other.p)) == 0.0


# ---- rules -----------------------------------------------------------------------------------------------------------
ANSWERS = pd.DataFrame(
    {"age": [1, 3, 4, 2], "size": ["S", "L", "M", "S"], "job": [10, 20, 20, 30], "owner": [False, True, True, False]}
)


@pytest.mark.parametrize(
    "rule",
    [
        ceopt.Hull(ANSWERS),
        ceopt.Hull(ANSWERS, clusters=2),
        ceopt.Hull(ANSWERS.iloc[:2], radius=0.5),
        ceopt.Linear({"age": 1.0, "size": 2.0}, ">=", 5.0),
        ceopt.AllowedValues({"age": [0, 2], "job": [20, 30]}),
        ceopt.AllowedRows(["age", "job"], ANSWERS),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_a_rule_about_the_answer_alone_holds_on_own_variables(rule: Any) -> None:
    """The optimum under the rule is that of all points of the lattice that keep it in plain numbers."""
    rng = np.random.default_rng(0)
    kept = [point for point in POINTS if rule.violation(SPACE, None, dict(zip(SPACE.names, point, strict=True))) == 0.0]
    assert 0 < len(kept) < len(POINTS)
    for weights in rng.normal(size=(4, 4)):
        m = pyo.ConcreteModel()
        m.x = Columns(SPACE, own(m))
        m.p = embed(MODELS["linear"], m.x)  # so that every column is read
        m.rule = ceopt.formulations.impose(rule, m.x)
        levels = (m.job[30] + 2 * m.job[20]) * weights[2]
        m.cost = pyo.Objective(expr=weights[0] * m.age + weights[1] * m.size + levels + weights[3] * m.owner)
        result = solve(m)
        assert result.objective == pytest.approx(min(np.dot(weights, point) for point in kept), abs=1e-6)


def test_a_penalty_is_an_expression_for_the_callers_objective() -> None:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(bounds=(0, 9))
    m.x = Columns(narrow(), {"a": m.a})
    m.near = ceopt.formulations.impose(ceopt.Hull(pd.DataFrame({"a": [2.0, 3.0]}), penalty=4.0), m.x)
    m.cost = pyo.Objective(expr=-m.a + m.near.penalty)

    assert solve(m).objective == pytest.approx(-5.0 + 4.0 * 2.0 / 5.0)
    assert list(m.x.surcharges) == [m.near.penalty]


# ---- embedding_error -------------------------------------------------------------------------------------------------
def test_an_error_is_seen_in_score_value_and_label() -> None:
    X = frame(80)[["rate", "cards"]]
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, np.where(X["rate"] > 0.5, "good", "bad"))
    m = pyo.ConcreteModel()
    m.rate = pyo.Var(bounds=(0, 1))
    m.p = embed(model, {"rate": m.rate, "cards": 3}, space=FeatureSpace.infer(X))
    m.valid = Reaches(m.p, "good")
    m.cost = pyo.Objective(expr=m.rate)
    solve(m)
    right = embedding_error(m.p)
    assert (float(right) < 1e-9, right.agrees, right.prediction) == (True, True, "good")
    m.rate.set_value(0.1)  # the block still says what it said
    wrong = embedding_error(m.p)
    assert wrong.scores == pytest.approx(wrong.values)
    assert (wrong.scores > 0.3, wrong.agrees, wrong.prediction) == (True, False, "bad")
    assert wrong.row["rate"].tolist() == [0.1]


def test_a_persons_block_is_compared_at_its_decoded_answer() -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, {"age": 1, "size": "M", "job": 10, "owner": False})
    m.p = embed(MODELS["trees"], m.x)
    m.valid = Reaches(m.p, ceopt.AtLeast(4.0), margin=0.0)
    m.cost = pyo.Objective(expr=m.x.n_changed)
    solve(m)
    error = embedding_error(m.p)
    assert (float(error), error.values, error.agrees) == (0.0, None, True)
    assert error.prediction >= 4.0
    m.p.leaf[0, m.p.trees[0].leaves[0].node].set_value(0.5)
    assert float(embedding_error(m.p)) > 0.0


# ---- misuse ----------------------------------------------------------------------------------------------------------
def caller() -> Any:
    m = pyo.ConcreteModel()
    m.free, m.many, m.far = pyo.Var(), pyo.Var([0, 1]), pyo.Var(bounds=(7, 9))
    return m


@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (lambda m: embed(Affine([1.0], 0.0), {"a": m.free}), InvalidTypeError, "the names of the model.s columns"),
        (lambda m: embed(Affine([1.0], 0.0), m.free, space=LINE), InvalidTypeError, "a mapping from columns"),
        (
            lambda _: embed(Affine([1.0], 0.0), Columns(LINE, {"a": 1}), space=LINE),
            InvalidTypeError,
            "only with a mapping",
        ),
        (lambda _: embed(Affine([1.0], 0.0), Columns(LINE, {"a": 1}), split_gap=1), InvalidTypeError, "its own"),
        (lambda _: Columns({"a": 1}, {"a": 1}), InvalidTypeError, "space is dict"),
        (lambda m: Columns(LINE, m.free), InvalidTypeError, "it got ScalarVar"),
        (lambda _: Columns(LINE, {}), InvalidValueError, "'a' is missing"),
        (lambda m: Columns(LINE, {"a": 1, "b": m.free}), UnknownNameError, "column is 'b'"),
        (lambda m: Columns(LINE, {"a": m.many}), InvalidTypeError, "Column 'a' needs one Var or numeric expression"),
        (
            lambda m: Columns(LINE, {"a": m.free <= 1}),
            InvalidTypeError,
            "Column 'a' needs one Var or numeric expression",
        ),
        (lambda _: Columns(LINE, {"a": "much"}), InvalidTypeError, "Column 'a' needs a number"),
        (lambda _: Columns(LINE, {"a": 1}, split_gap=-1.0), InvalidValueError, "split_gap is -1.0"),
        (
            lambda m: embed(TreeEnsemble([STUMP]), {"a": m.free}, space=LINE),
            UnboundedFeatureError,
            "column 'a' may reach",
        ),
        (lambda m: Columns(SPACE, whole(job=m.free)), InvalidTypeError, "Column 'job' needs a level, or a mapping"),
        (lambda m: Columns(SPACE, whole(job={10: m.free, 20: 1})), InvalidTypeError, "one is 1"),
        (lambda m: Columns(SPACE, whole(job={11: m.free})), InvalidValueError, "Column 'job' needs one of its levels"),
        (lambda _: Columns(SPACE, whole(job={10: 0})), InvalidValueError, "Column 'job' needs a level to take"),
        (lambda m: Columns(SPACE, whole(size=m.far)), InvalidValueError, "Column 'size' needs values from 0 to 2"),
        (lambda _: Columns(SPACE, whole(size="XL")), InvalidValueError, "Column 'size' needs one of its levels"),
        (lambda m: Columns(narrow(), {"a": m.far}), InvalidValueError, "Column 'a' needs values from 0 to 5"),
        (lambda _: Columns(narrow(), {"a": 6.0}), InvalidValueError, "it is given 6"),
        (embedding_error, InvalidTypeError, "it got ConcreteModel"),
        (lambda m: unsolved(m, m.far), InvalidValueError, "column 'a' has none"),
        (lambda m: unsolved(m, 8.0 + 0 * m.far), InvalidValueError, "column 'a' has none"),
        (lambda _: ceopt.formulations.l1(Columns(LINE, {"a": 1})), InvalidTypeError, "a Factual block"),
        (
            lambda _: ceopt.formulations.impose(ceopt.MaxChanges(1), Columns(LINE, {"a": 1})),
            InvalidTypeError,
            "Factual",
        ),
        (
            lambda m: ceopt.formulations.impose(ceopt.Linear({"a": 1.0}, "<=", 1.0), {"a": m.free}),
            InvalidTypeError,
            "impose needs a Factual or a Columns block, but x is dict",
        ),
    ],
)
def test_misuse_is_refused_by_name(act: Any, error: type[CeoptError], match: str) -> None:
    with pytest.raises(error, match=match):
        act(caller())


def whole(**changed: Any) -> dict[str, Any]:
    return {"age": 1, "size": "M", "job": 10, "owner": False} | changed


def narrow() -> FeatureSpace:
    return FeatureSpace([Feature("a", kind="continuous", lower=0, upper=5)])


def unsolved(m: Any, value: Any) -> None:
    m.p = embed(Affine([1.0], 0.0), {"a": value}, space=LINE)
    embedding_error(m.p)


def test_a_block_that_stands_alone_is_refused_and_so_are_its_variables() -> None:
    """Its rows are in no model, so a solver would be free to set its columns to anything."""
    model, alone = Affine([1.0], -3.0, labels=("no", "yes")), Factual(LINE, {"a": 1.0})
    m = pyo.ConcreteModel()
    with pytest.raises(InvalidTypeError, match=r"part of a model, but the Factual block stands alone"):
        m.p = embed(model, alone)
    m.low = pyo.Constraint(expr=alone.raw["a"] >= 2)
    with pytest.raises(CeoptError, match=r"'x' belongs to none of its blocks"):
        solve(m)


def reaching(m: Any, fitted: Any) -> None:
    m.p = embed(fitted, {"a": m.free})
    m.valid = Reaches(m.p, {0, 2})


def classes(kind: Any) -> Any:
    """A fitted classifier of three classes whose scores are linear in a column 'a'."""
    frame = pd.DataFrame({"a": np.arange(30.0)})
    return kind.fit(frame, np.repeat([0, 1, 2], 10))


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (lambda m: m.free, r"Give the Var 'free' bounds: pyo\.Var\(bounds="),
        (lambda m: m.many[1], r"Give the Var 'many\[1\]' bounds"),
        (lambda m: m.far + 2 * m.free, "Give the Var 'free' bounds"),
        (lambda m: m.many[0] + m.many[1], r"Give the Vars 'many\[0\]', 'many\[1\]' bounds"),
        (lambda m: 1 / (m.far - 8), r"Give a Var with bounds in the place of 1/\(far - 8\)"),
    ],
)
def test_who_lacks_a_bound_is_told_of_the_var_and_not_of_a_space(given: Any, advice: str) -> None:
    m = caller()
    with pytest.raises(UnboundedFeatureError, match=f"column 'a' may reach.*{advice}"):
        m.p = embed(TreeEnsemble([STUMP]), {"a": given(m)}, space=LINE)


@pytest.mark.parametrize(
    "model",
    [
        MLPRegressor(hidden_layer_sizes=(3,), max_iter=5, random_state=0),
        VotingClassifier([("linear", LogisticRegression())]),
        LogisticRegression(),
    ],
)
def test_every_model_that_lacks_a_bound_tells_of_the_var(model: Any) -> None:
    m = caller()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of so few steps
        fitted = classes(model)
    with pytest.raises(UnboundedFeatureError, match="column 'a' has none. Give the Var 'free' bounds"):
        reaching(m, fitted)


def test_a_var_that_is_on_no_concrete_model_is_refused_by_its_column() -> None:
    sentence = "needs Vars that are on a ConcreteModel, but that of column 'a' is not. Assign it"
    abstract = pyo.AbstractModel()
    abstract.a = pyo.Var(bounds=(0, 5))
    model = classes(LinearRegression())
    for given in (pyo.Var(bounds=(0, 5)), 2 * pyo.Var(bounds=(0, 5)) + 1, abstract.a):
        with pytest.raises(InvalidValueError, match=f"embed {sentence}"):
            embed(model, {"a": given})
        with pytest.raises(InvalidValueError, match=f"Columns {sentence}"):
            Columns(LINE, {"a": given})
    with pytest.raises(InvalidValueError, match="that of column 'job' is not"):
        Columns(SPACE, whole(job=pyo.Var([10, 20, 30], domain=pyo.Binary)))
