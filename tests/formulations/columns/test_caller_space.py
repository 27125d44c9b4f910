"""embed on the caller's variables without a space: names from the model, kinds from the Vars, and what is missing."""

from __future__ import annotations

import itertools
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ceopt.formulations import embed, embedding_error
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError

RNG = np.random.default_rng(3)
X = pd.DataFrame({"rate": RNG.uniform(0, 4, 200), "cards": RNG.integers(0, 5, 200), "owner": RNG.integers(0, 2, 200)})
Y = np.round(X["rate"] * (X["cards"] - 2) + 3 * X["owner"] * (X["rate"] < 2) - X["cards"], 2)
NAMES = ["owner", "rate", "cards"]  # not in the model's order


def boosted() -> Any:
    return xgboost.train({"max_depth": 2, "base_score": 0.0}, xgboost.DMatrix(X, Y), 6)


MODELS = {
    "linear": lambda: LinearRegression().fit(X, Y),
    "pipeline": lambda: make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y),
    "forest": lambda: RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, Y),
    "xgboost": boosted,
    "lightgbm": lambda: lightgbm.LGBMRegressor(n_estimators=5, max_depth=2, verbose=-1).fit(X, Y),
}


def predicted(model: Any, frame: pd.DataFrame) -> Any:
    return model.predict(xgboost.DMatrix(frame) if isinstance(model, xgboost.Booster) else frame)


def own() -> Any:
    m = pyo.ConcreteModel()
    m.rate = pyo.Var(bounds=(0, 4))
    m.cards = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.owner = pyo.Var(domain=pyo.Binary)
    m.limit = pyo.Constraint(expr=m.cards + 2 * m.owner <= 4)
    return m


@pytest.mark.long(every=2)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("sense", [pyo.maximize, pyo.minimize])
def test_optima_are_those_of_enumeration_and_of_a_space(kind: str, sense: Any) -> None:
    model, m = MODELS[kind](), own()
    m.p = embed(model, {name: getattr(m, name) for name in NAMES})
    assert list(m.p.columns.space.names) == ["rate", "cards", "owner"]
    assert [feature.kind for feature in m.p.columns.space] == ["continuous", "integer", "binary"]
    m.best = pyo.Objective(expr=m.p.score, sense=sense)
    found = solve(m, "highs")
    assert found.status is Status.OPTIMAL
    assert float(embedding_error(m.p)) < 1e-5

    rates = np.linspace(0.0, 4.0, 801)
    rows = [row for row in itertools.product(rates, range(5), (0, 1)) if row[1] + 2 * row[2] <= 4]
    values = predicted(model, pd.DataFrame(rows, columns=X.columns).astype(X.dtypes))
    best = values.max() if sense == pyo.maximize else values.min()
    assert found.objective == pytest.approx(float(best), abs=1e-4)

    told = own()
    told.p = embed(model, {name: getattr(told, name) for name in NAMES}, space=FeatureSpace.infer(X, binary=["owner"]))
    told.best = pyo.Objective(expr=told.p.score, sense=sense)
    assert solve(told, "highs").objective == pytest.approx(found.objective, rel=1e-6)


def test_whole_expressions_stand_on_a_threshold_and_others_are_continuous() -> None:
    """A split at a whole number: an expression of whole variables takes it, in which a gap would leave it out."""
    tree = DecisionTreeRegressor().fit(pd.DataFrame({"n": [2.0, 4.0]}), [1.0, 0.0])  # n <= 3
    m = pyo.ConcreteModel()
    m.k, m.f = pyo.Var(domain=pyo.Integers, bounds=(0, 5)), pyo.Var(bounds=(0, 5))
    m.flag = pyo.Var(domain=pyo.Binary)
    m.p = embed(tree, {"n": 2 * m.k + m.flag})
    assert m.p.columns.space["n"].kind == "integer"
    m.most = pyo.Objective(expr=2 * m.k + m.flag + 100 * m.p.score, sense=pyo.maximize)
    assert solve(m, "highs").objective == pytest.approx(103.0)
    for real in (m.f, m.k + 0.5, 0.5 * m.k, m.k + m.f):
        m.del_component("q")
        m.q = embed(tree, {"n": real})
        assert m.q.columns.space["n"].kind == "continuous"
    m.k.fix(1)  # it may be freed again: still whole
    m.r = embed(tree, {"n": m.k + 2})
    assert m.r.columns.space["n"].kind == "integer"
    m.del_component("r")
    m.r = embed(tree, {"n": 3.0})
    assert m.r.columns.space["n"].kind == "continuous"


def test_a_category_is_a_mapping_from_levels() -> None:
    frame = pd.DataFrame({"job": ["cook", "vet", "nurse"] * 20, "age": range(60)})
    pay = frame["age"] * 0.1 + frame["job"].map({"cook": 1.0, "vet": 5.0, "nurse": 3.0})
    encoder = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(encoder, LinearRegression()).fit(frame, pay)
    m = pyo.ConcreteModel()
    m.job = pyo.Var(["cook", "nurse", "vet"], domain=pyo.Binary)
    m.age = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, 30))
    for given in (m.job, {"cook": m.job["cook"], "vet": m.job["vet"], "nurse": m.job["nurse"]}):
        m.del_component("p")
        m.del_component("most")
        m.p = embed(model, {"age": m.age, "job": given})
        m.most = pyo.Objective(expr=m.p.score - 4.5 * m.job["vet"], sense=pyo.maximize)
        assert solve(m, "highs").objective == pytest.approx(6.0)  # 3 + 30 * 0.1 as a nurse
        assert m.job["nurse"].value == 1


def test_lightgbm_finds_names_with_blanks() -> None:
    frame = X.rename(columns={"rate": "the rate"})
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(frame, Y)
    m = own()
    m.p = embed(model, {"the rate": m.rate, "cards": m.cards, "owner": m.owner})
    assert list(m.p.columns.space.names) == ["the rate", "cards", "owner"]


def linear() -> Any:
    return LinearRegression().fit(X, Y)


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (
        lambda m: embed(LinearRegression().fit(X.to_numpy(), Y), {"rate": m.rate, "cards": m.cards, "owner": m.owner}),
        InvalidTypeError,
        "names of the model's columns, but this LinearRegression has 3 columns without names. Fit it on a frame",
    ),
    (lambda m: embed(Affine([1.0], 0.0), {"rate": m.rate}), InvalidTypeError, "Affine has 1 columns without names"),
    (
        lambda m: embed(linear(), {"rate": m.rate, "cards": m.cards}),
        InvalidValueError,
        "every column of the model, but column 'owner' is missing",
    ),
    (
        lambda m: embed(linear(), {"rate": m.rate, "cards": m.cards, "owner": m.owner, "card": m.cards}),
        UnknownNameError,
        "a known column of the model, but column of the model is 'card'. Did you mean 'cards'",
    ),
    (
        lambda m: embed(linear(), {"rate": m.rate, "cards": m.odd, "owner": m.owner}),
        InvalidTypeError,
        "the Var 'odd' of column 'cards' has domain .* Pass space=",
    ),
    (
        lambda m: embed(linear(), {"rate": "high", "cards": m.cards, "owner": m.owner}),
        InvalidTypeError,
        "column 'rate' is given 'high'. Pass space=",
    ),
]


@pytest.mark.parametrize(("make", "error", "match"), REFUSED)
def test_what_is_missing_is_said(make: Any, error: type[Exception], match: str) -> None:
    m = own()
    m.odd = pyo.Var(domain=pyo.Set(initialize=[0, 2, 7]))
    with pytest.raises(error, match=match):
        make(m)


def test_a_column_of_levels_that_is_given_one_var_is_refused_with_what_to_do() -> None:
    frame = pd.DataFrame({"job": ["cook", "vet"] * 20, "age": range(40)})
    encoder = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(encoder, LinearRegression()).fit(frame, range(40))
    for domain in (pyo.Binary, pyo.Integers, pyo.Reals):
        m = pyo.ConcreteModel()
        m.job, m.age = pyo.Var(domain=domain, bounds=(0, 1)), pyo.Var(bounds=(0, 40))
        with pytest.raises(CeoptError, match=r"pass space=FeatureSpace\.infer\(X_train\), or map levels to Vars"):
            m.p = embed(model, {"job": m.job, "age": m.age})


def test_a_space_that_is_told_comes_first() -> None:
    m = own()
    space = FeatureSpace(
        [Feature("rate", kind="continuous"), Feature("cards", kind="continuous"), Feature("owner", kind="continuous")]
    )
    m.p = embed(linear(), {name: getattr(m, name) for name in NAMES}, space=space)
    assert [feature.kind for feature in m.p.columns.space] == ["continuous"] * 3
