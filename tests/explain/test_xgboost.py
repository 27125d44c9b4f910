"""XGBoost through explain: verified, and as cheap as brute force; two classes, several, values, native categories."""

from __future__ import annotations

import itertools
from typing import Any

import lattice
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier, XGBRFRegressor

import ceopt

named_categories = pytest.mark.skipif(
    tuple(map(int, xgboost.__version__.split(".")[:2])) < (3, 1), reason="xgboost before 3.1 does not name categories"
)
JOBS, HOMES = ("nurse", "clerk", "miner", "cook", "poet"), ("own", "rent", "none")
LATTICE = pd.DataFrame(list(itertools.product(range(6), range(4), JOBS, HOMES)), columns=["a", "b", "job", "home"])
LATTICE["job"], LATTICE["home"] = pd.Categorical(LATTICE["job"], JOBS), pd.Categorical(LATTICE["home"], HOMES)
SPACE = ceopt.FeatureSpace.infer(LATTICE).update("a", kind="integer", lower=0, upper=5)
SPACE = SPACE.update("b", kind="integer", lower=0, upper=3)
GAIN = LATTICE["job"].cat.codes.isin([1, 3]) * 2.0 + LATTICE["home"].cat.codes.isin([2]) * 1.5
VALUE = LATTICE["a"] - LATTICE["b"] + GAIN + np.random.default_rng(5).normal(0, 0.7, len(LATTICE))
CUTS = np.quantile(VALUE, [0.4, 0.85])
RARE, THREE = (np.digitize(VALUE, CUTS) == 2).astype(int), np.digitize(VALUE, CUTS)
L1 = ceopt.L1(scale="none")

FEW: dict[str, Any] = {"n_estimators": 6, "max_depth": 3, "learning_rate": 0.5}
BINARY = {
    "plain": XGBClassifier(**FEW),
    "dart": XGBClassifier(booster="dart", rate_drop=0.3, **FEW),
    "forest": XGBRFClassifier(n_estimators=6, max_depth=3),
    "hinge": XGBClassifier(objective="binary:hinge", base_score=0.5, **FEW),
}
REGRESSORS = {"plain": XGBRegressor(**FEW), "forest": XGBRFRegressor(n_estimators=6, max_depth=3)}


def distances(row: pd.DataFrame, lattice: pd.DataFrame) -> Any:
    """Return the l1 distance of every point of the lattice: 1 for a changed category."""
    total = np.zeros(len(lattice))
    for name in lattice:
        if isinstance(lattice[name].dtype, pd.CategoricalDtype):
            total += (lattice[name] != row[name].iloc[0]).to_numpy()
        else:
            total += np.abs(lattice[name] - row[name].iloc[0]).to_numpy()
    return total


def agree(model: Any, reached: Any, target: Any, *, people: pd.DataFrame = LATTICE, rows: int = 3) -> None:
    space = SPACE if len(people.columns) == 4 else ceopt.FeatureSpace([SPACE[name] for name in people])
    lattice.agree(model, reached, target, lattice=people, space=space, rows=rows, cost=L1, steps=distances)


NUMBERS = LATTICE[["a", "b"]].drop_duplicates().reset_index(drop=True)
OF_NUMBERS = (NUMBERS["a"] - NUMBERS["b"] + np.random.default_rng(4).normal(0, 1.0, len(NUMBERS))).to_numpy()
HIGH = np.digitize(OF_NUMBERS, np.quantile(OF_NUMBERS, [0.6]))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("target", [0, 1])
def test_two_classes_of_numbers(name: str, target: int) -> None:
    model = clone(BINARY[name]).fit(NUMBERS, HIGH)
    agree(model, model.predict(NUMBERS) == target, target, people=NUMBERS)


@pytest.mark.long(every=5)
@named_categories
@pytest.mark.parametrize("one_hot", [1, 100])
@pytest.mark.parametrize("name", BINARY)
def test_two_classes_with_native_categories(name: str, one_hot: int) -> None:
    model = clone(BINARY[name]).set_params(enable_categorical=True, max_cat_to_onehot=one_hot).fit(LATTICE, RARE)
    for target in (0, 1):
        agree(model, model.predict(LATTICE) == target, target)


@pytest.mark.long(every=3)
@named_categories
@pytest.mark.parametrize("target", [0, 1, {0, 2}])
def test_several_classes(target: Any) -> None:
    model = XGBClassifier(enable_categorical=True, max_cat_to_onehot=1, **FEW).fit(LATTICE, THREE)
    wanted = target if isinstance(target, set) else {target}
    agree(model, np.isin(model.predict(LATTICE), list(wanted)), target)


@named_categories
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    model = clone(REGRESSORS[name]).set_params(enable_categorical=True).fit(LATTICE, VALUE)
    level = float(np.quantile(model.predict(LATTICE), 0.8)) + 1e-3
    agree(model, model.predict(LATTICE) >= level, ceopt.AtLeast(level))


@pytest.mark.long(every=3)
@named_categories
@pytest.mark.parametrize(("label", "at_least"), [(1, 0.35), (1, 0.5), (0, 0.9)])
def test_probabilities(label: int, at_least: float) -> None:
    model = XGBClassifier(enable_categorical=True, **FEW).fit(LATTICE, RARE)
    agree(model, model.predict_proba(LATTICE)[:, label] >= at_least, ceopt.Probability(label, at_least))


@pytest.mark.long(every=3)
@named_categories
@pytest.mark.parametrize("suffix", [None, ".json", ".ubj"])
def test_boosters_and_files(tmp_path: Any, suffix: str | None) -> None:
    matrix = xgboost.DMatrix(LATTICE, RARE, enable_categorical=True)
    native = xgboost.train({"objective": "binary:logistic", "max_depth": 4, "eta": 0.5}, matrix, 8)
    model: Any = native
    if suffix is not None:
        model = tmp_path / f"model{suffix}"
        native.save_model(model)

    agree(model, native.predict(matrix) > 0.5, 1)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("sparse", [False, True])
def test_pipelines_over_dense_and_sparse_matrices(sparse: bool) -> None:
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=sparse), ["job", "home"]), ("passthrough", ["a", "b"]), sparse_threshold=1.0
    )
    model = make_pipeline(columns, XGBClassifier(**FEW)).fit(LATTICE, RARE)
    for target in (0, 1):
        agree(model, model.predict(LATTICE) == target, target)


def test_zero_as_a_missing_number() -> None:
    model = XGBClassifier(missing=0, **FEW).fit(NUMBERS, (OF_NUMBERS > 0) ^ (NUMBERS["b"] == 0))
    for target in (0, 1):
        agree(model, model.predict(NUMBERS) == target, target, people=NUMBERS)


@pytest.mark.parametrize("classes", [2, 3])
def test_linear_boosters(classes: int) -> None:
    cuts = np.quantile(OF_NUMBERS, [0.5] if classes == 2 else [0.3, 0.7])
    model = XGBClassifier(booster="gblinear", n_estimators=30).fit(NUMBERS, np.digitize(OF_NUMBERS, cuts))
    for target in range(classes):
        reached = model.predict(NUMBERS) == target
        if reached.any():
            agree(model, reached, target, people=NUMBERS)


@pytest.mark.long(every=4)
@pytest.mark.parametrize("name", BINARY)
def test_a_person_who_cannot_move_keeps_the_class_that_predict_gives(name: str) -> None:
    """A start of the sum that is left out, or not turned into log-odds, lets people be of the other class."""
    model = clone(BINARY[name]).fit(NUMBERS, HIGH)
    fixed = ceopt.FeatureSpace([SPACE[column] for column in NUMBERS])
    for column in NUMBERS:
        fixed = fixed.update(column, mutable=False)
    for start in range(len(NUMBERS)):
        row = NUMBERS.iloc[[start]]
        own = int(model.predict(row)[0])
        for label in (0, 1):
            status = ceopt.explain(model, row, fixed, target=label).status
            assert status == ("already_favourable" if label == own else "infeasible")
