"""Boosted trees beyond the battery: losses, starts of the sum, ties, missing values, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from library_rows import check
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression

from ceopt.formulations.predictors.read import read
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

FEW = {"n_estimators": 6, "max_depth": 3, "random_state": 0}
CLASSIFIERS = {
    "exponential": GradientBoostingClassifier(loss="exponential", **FEW),
    "zero": GradientBoostingClassifier(init="zero", **FEW),
    "constant": GradientBoostingClassifier(init=DummyClassifier(strategy="uniform"), learning_rate=1, **FEW),
    "stopped": GradientBoostingClassifier(n_iter_no_change=1, n_estimators=40, max_depth=3, random_state=0),
    "subsample": GradientBoostingClassifier(subsample=0.5, max_features=2, **FEW),
    "histogram stopped": HistGradientBoostingClassifier(max_iter=9, early_stopping=True, random_state=0),
    "histogram rising": HistGradientBoostingClassifier(max_iter=5, class_weight="balanced", monotonic_cst=[1, 0, 0, 0]),
}  # fmt: skip
REGRESSORS = {
    "absolute": GradientBoostingRegressor(loss="absolute_error", **FEW),
    "huber": GradientBoostingRegressor(loss="huber", **FEW),
    "quantile": GradientBoostingRegressor(loss="quantile", alpha=0.8, **FEW),
    "median": GradientBoostingRegressor(init=DummyRegressor(strategy="median"), **FEW),
    "zero": GradientBoostingRegressor(init="zero", **FEW),
    "histogram absolute": HistGradientBoostingRegressor(loss="absolute_error", max_iter=5),
    "histogram quantile": HistGradientBoostingRegressor(loss="quantile", quantile=0.2, max_iter=5),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(numbers, name):
    rare = np.where(numbers.value > np.quantile(numbers.value, 0.85), "good", "bad")
    model = CLASSIFIERS[name].fit(numbers.frame, rare)

    check(model, numbers, array=False, steps=None, estimator=model)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(numbers, name):
    model = REGRESSORS[name].fit(numbers.frame, numbers.value)

    check(model, numbers, array=False, steps=None, estimator=model)


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_the_sum_starts_at_the_log_odds_of_the_second_class(numbers, loss):
    """Others start at log p of the first class, or at 0."""
    rare = numbers.value > np.quantile(numbers.value, 0.9)
    model = GradientBoostingClassifier(loss=loss, **FEW).fit(numbers.frame, rare)
    plain = HistGradientBoostingClassifier(max_iter=5).fit(numbers.frame, rare)
    odds = np.log(rare.mean() / (1 - rare.mean()))

    core = read(model, numbers.space).core

    assert core.base / core.divisor == pytest.approx(odds)
    assert read(plain, numbers.space).core.base == pytest.approx(odds)


def test_a_row_that_nothing_speaks_for_is_the_second_class_of_one_library_and_the_first_of_the_other():
    frame = pd.DataFrame({"x": np.arange(60.0)})
    label = np.where(frame["x"] > 30, "b", "a")
    gradient = GradientBoostingClassifier(n_estimators=1, max_depth=1, init="zero").fit(frame, label)
    gradient.estimators_[0, 0].tree_.value[:] = 0.0
    histogram = HistGradientBoostingClassifier(max_iter=1).fit(frame, label)
    histogram._baseline_prediction[:] = 0.0
    histogram._predictors[0][0].nodes["value"] = 0.0
    space = FeatureSpace.infer(frame)

    for model, winner in ((gradient, "b"), (histogram, "a")):
        assert (model.decision_function(frame) == 0).all()
        assert set(model.predict(frame)) == {winner}
        assert set(read(model, space).core.predict(frame)) == {winner}


def test_one_compares_in_float32_and_the_other_in_float64():
    frame = pd.DataFrame({"x": [1000.0] * 30 + [1001.0] * 30})
    near = pd.DataFrame({"x": [1000.5, 1000.5 + 1e-8, 1000.5 + 3e-5, 1000.5 + 4e-5]})
    space = FeatureSpace([Feature("x", kind="continuous", lower=0.0, upper=2000.0)])
    target = frame["x"] - 1000.0
    gradient = GradientBoostingRegressor(n_estimators=1, learning_rate=1, max_depth=1).fit(frame, target)
    histogram = HistGradientBoostingRegressor(max_iter=1, learning_rate=1).fit(frame, target)

    for model, right in ((gradient, [0, 0, 0, 1]), (histogram, [0, 1, 1, 1])):
        assert model.predict(near) == pytest.approx(right)
        np.testing.assert_array_equal(read(model, space).core.predict(near), model.predict(near))


def test_a_split_between_missing_and_present_sends_every_number_left(numbers):
    frame = numbers.frame[["income", "debt"]].copy()
    frame.loc[numbers.value > 0, "income"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=3).fit(frame, np.where(frame["income"].isna(), "gap", "no gap"))
    assert np.isinf(model._predictors[0][0].nodes["num_threshold"]).any()
    few = numbers.only("income", "debt")

    check(model, few, array=False, steps=None, estimator=model)


def test_trees_without_a_split(numbers):
    frame, constant = numbers.frame, np.full(len(numbers.frame), 2.0)
    for model in (GradientBoostingRegressor(**FEW), HistGradientBoostingRegressor(max_iter=3)):
        assert set(read(model.fit(frame, constant), numbers.space).core.predict(frame)) == {2.0}


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (GradientBoostingClassifier(init=LogisticRegression(), **FEW), r"init=LogisticRegression\(\). Fit it with in"),
        (GradientBoostingClassifier(init=DummyClassifier(strategy="stratified"), **FEW), r"has init=DummyClassifier"),
        (GradientBoostingRegressor(init=LinearRegression(), **FEW), r"GradientBoostingRegressor has init=LinearReg"),
        (HistGradientBoostingRegressor(loss="poisson", max_iter=3), r"GradientBoostingRegressor has loss='poisson'"),
        (HistGradientBoostingRegressor(loss="gamma", max_iter=3), r"has loss='gamma'. Fit it with loss='squared_err"),
        (
            HistGradientBoostingClassifier(categorical_features=["age", "debt"], max_iter=3),
            r"HistGradientBoostingClassifier takes 'age', 'debt' as categories. Fit it with categorical_features=None",
        ),
    ],
)  # fmt: skip
def test_what_is_no_sum_of_numeric_splits_is_refused(numbers, model, match):
    frame = numbers.frame.assign(debt=np.arange(len(numbers.frame)) % 5)
    classifier = hasattr(model, "predict_proba") or "Classifier" in type(model).__name__
    model.fit(frame, numbers.two if classifier else np.exp(numbers.value / 10))

    with pytest.raises(UnsupportedModelError, match=match):
        read(model, numbers.space)


def test_categories_of_an_array_are_named_by_place_and_one_class_is_refused(numbers):
    array = numbers.frame.assign(debt=1.0).to_numpy()
    model = HistGradientBoostingClassifier(categorical_features=[2], max_iter=2).fit(array, numbers.two)
    with pytest.raises(UnsupportedModelError, match=r"HistGradientBoostingClassifier takes 2 as categories"):
        read(model, numbers.space)
    with pytest.raises(UnsupportedModelError, match=r"HistGradientBoostingClassifier knows only 'a'"):
        read(HistGradientBoostingClassifier(max_iter=2).fit(array, ["a"] * len(array)), numbers.space)
