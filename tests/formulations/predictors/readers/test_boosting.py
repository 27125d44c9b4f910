"""Boosted trees beyond the battery: losses, starts of the sum, ties, missing values, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from library_rows import check
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from ceopt.formulations.predictors.readers import read
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

#: Names such as age are no matter here.
pytestmark = pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")

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
    ],
)  # fmt: skip
def test_what_is_no_sum_is_refused(numbers, model, match):
    frame = numbers.frame
    classifier = hasattr(model, "predict_proba") or "Classifier" in type(model).__name__
    model.fit(frame, numbers.two if classifier else np.exp(numbers.value / 10))

    with pytest.raises(UnsupportedModelError, match=match):
        read(model, numbers.space)


def test_one_class_is_refused(numbers):
    model = HistGradientBoostingClassifier(max_iter=2).fit(numbers.frame, ["a"] * len(numbers.frame))

    with pytest.raises(UnsupportedModelError, match=r"HistGradientBoostingClassifier knows only 'a'"):
        read(model, numbers.space)


#: Trees that need many categories apart, each seen often enough.
DEEP = {"max_iter": 12, "min_samples_leaf": 3, "max_leaf_nodes": 15}
#: Each way to say which columns are categories, with the columns of `data` that it says.
NATIVE = {
    "names": (["size", "job", "flag", "home"], {"job", "size", "flag", "home"}),
    "places": ([1, 3], {"job", "home"}),
    "mask": ([True, True, True, True, False, True, False, True], {"age", "job", "income", "home", "size", "flag"}),
    "from_dtype": ("from_dtype", {"size", "job"}),
}


def categorical(data, way):
    """Frame and space in which every category is one, and all that is text and not taken as one is left out."""
    options, native = NATIVE[way]
    frame = data.frame.assign(age=data.frame["age"] % 7, income=(data.frame["income"] // 1e4 % 5).astype(int))
    if way == "from_dtype":
        frame = frame.drop(columns="home").assign(job=pd.Categorical(frame["job"]))
    if way == "places":
        frame = frame.assign(size=frame["size"].cat.codes.astype(int))
    ordinal = {"size": ["S", "M", "L"]} if "size" in native else {}
    space = FeatureSpace.infer(frame, categorical=sorted(native & {"age", "income", "job"}), ordinal=ordinal)
    return options, frame, space


@pytest.mark.long(every=6)
@pytest.mark.parametrize("way", NATIVE)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_native_categories_are_sets_of_levels(data, way, classes):
    options, frame, space = categorical(data, way)
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model = kind(categorical_features=options, **DEEP)
    model.fit(frame, {0: data.value, 2: data.two, 3: data.three}[classes])

    predictor = read(model, space)

    trees = predictor.core.trees
    by_set = {int(place) for tree in trees for place in np.unique(tree.feature[tree.inner & (tree.subset >= 0)])}
    by_number = {int(place) for tree in trees for place in np.unique(tree.feature[tree.inner & (tree.subset < 0)])}
    columns = predictor.encoding.columns
    assert by_set
    assert {columns[place].feature for place in by_set} <= NATIVE[way][1]
    assert {columns[place].feature for place in by_number}.isdisjoint(NATIVE[way][1])
    check(model, replace(data, frame=frame, space=space), array=False, steps=None, estimator=model)


def test_native_categories_of_an_array_and_behind_an_encoder(data):
    few = data.only("income", "job", "home", "age")
    array = few.frame.to_numpy(dtype=object)
    model = HistGradientBoostingClassifier(categorical_features=[1, 2], **DEEP).fit(array, data.two)
    check(model, few, array=True, steps=None, estimator=model)

    codes = make_column_transformer(
        (OrdinalEncoder(categories=[["nurse", "cook", "miner", "clerk"]]), ["job"]), remainder="passthrough"
    )
    few = data.only("income", "job", "age")
    codes.fit(few.frame)
    estimator = HistGradientBoostingClassifier(categorical_features=[0], **DEEP).fit(
        codes.transform(few.frame), data.two
    )
    check(Pipeline([("codes", codes), ("trees", estimator)]), few, array=False, steps=codes, estimator=estimator)


@pytest.mark.parametrize("gaps", [False, True])
def test_a_category_that_the_model_was_not_fitted_on_goes_where_missing_ones_go(data, gaps):
    few = data.only("income", "job")
    rare = ["miner", "nurse"]
    known = ~few.frame["job"].isin(rare).to_numpy()
    frame = few.frame.assign(job=few.frame["job"].mask(~known, None)) if gaps else few.frame[known]
    target = data.two if gaps else data.two[known]
    target = np.where(frame["job"].isna(), np.where(few.frame["income"][frame.index] > 2e4, "bad", "good"), target)
    model = HistGradientBoostingClassifier(categorical_features=["job"], **DEEP).fit(frame, target)
    nodes = np.concatenate([tree.nodes for stage in model._predictors for tree in stage])
    to_left = nodes["missing_go_to_left"][nodes["is_categorical"] != 0]
    assert set(to_left) == ({0, 1} if gaps else {0})

    check(model, few, array=False, steps=None, estimator=model)

    table = next(column.table for column in read(model, few.space).encoding.columns if column.feature == "job")
    assert table == tuple(-1.0 if level in rare else float(level == "cook") for level in few.space["job"].levels)


def test_a_number_that_the_model_takes_as_a_category_must_be_one_in_the_space(data):
    few = data.only("age", "debt")
    frame = few.frame.assign(age=few.frame["age"] % 5)
    model = HistGradientBoostingClassifier(categorical_features=["age"], **DEEP).fit(frame, data.two)

    with pytest.raises(UnsupportedModelError, match=r"'age' is integer in the space. Declare it with space.update\("):
        read(model, few.space)


MISSING = {
    "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    "tree regressor": DecisionTreeRegressor(max_depth=6, random_state=0),
    "extra tree": ExtraTreeClassifier(max_depth=6, random_state=0),
    "forest": RandomForestClassifier(n_estimators=8, max_depth=6, random_state=0),
    "forest regressor": RandomForestRegressor(n_estimators=8, max_depth=6, random_state=0),
    "extra forest": ExtraTreesClassifier(n_estimators=8, max_depth=6, random_state=0),
    "histogram": HistGradientBoostingClassifier(**DEEP),
    "histogram regressor": HistGradientBoostingRegressor(**DEEP),
    "histogram of categories": HistGradientBoostingClassifier(categorical_features=["size"], **DEEP),
    "imputed gradient": make_pipeline(SimpleImputer(strategy="median"), GradientBoostingClassifier(**FEW)),
}


@pytest.mark.long(every=6)
@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("several", [False, True])
def test_models_trained_with_gaps_are_exact_on_complete_rows(data, name, several):
    """Thresholds between numbers, splits of the gaps from all numbers, and both directions of the gaps."""
    few = data.only("income", "debt", "tiny", "size")
    frame = few.frame.assign(size=few.frame["size"].cat.codes.astype(int))
    space = FeatureSpace.infer(frame)
    if "categories" in name:
        space = space.update("size", kind="ordinal", levels=[0, 1, 2])
    gappy, rng = frame.astype(float), np.random.default_rng(3)
    for column in frame.columns:
        gappy.loc[rng.random(len(frame)) < 0.25, column] = np.nan
    gappy.loc[data.value > np.quantile(data.value, 0.7), "income"] = np.nan  # a gap says much
    gappy.loc[data.value < np.quantile(data.value, 0.2), "debt"] = np.nan
    model = clone(MISSING[name])
    regressor = name.endswith("regressor")
    model.fit(gappy, data.value if regressor else data.three if several else data.two)
    whole = replace(few, frame=frame, space=space)
    steps, estimator = (model[:-1], model[-1]) if name.startswith("imputed") else (None, model)

    check(model, whole, array=False, steps=steps, estimator=estimator)


def test_columns_of_trees_and_space_must_agree(data):
    few = data.only("age", "job", "debt")
    model = HistGradientBoostingClassifier(categorical_features=["job"], **DEEP).fit(few.frame, data.two)
    with pytest.raises(UnsupportedModelError, match=r"column 'job' is missing. Add it"):
        read(model, data.only("age", "debt").space)
    with pytest.raises(UnsupportedModelError, match=r"column 'flag' is unknown to it. Remove it"):
        read(model, data.only("age", "job", "debt", "flag").space)
    array = few.frame.to_numpy(dtype=object)
    model = HistGradientBoostingClassifier(categorical_features=[1], **DEEP).fit(array, data.two)
    with pytest.raises(UnsupportedModelError, match=r"was fitted on, 3, but the space has 2"):
        read(model, data.only("age", "job").space)
    turned = data.only("debt", "job", "age")
    named = HistGradientBoostingClassifier(categorical_features=["job"], **DEEP).fit(few.frame, data.two)
    rows = turned.space.coordinates(turned.frame)
    predictor = read(named, turned.space)
    np.testing.assert_array_equal(predictor.core.predict(predictor.encoding.matrix(rows)), named.predict(few.frame))


def test_a_column_of_very_many_categories():
    """Sets of codes span all eight words of the library's bitsets."""
    rng = np.random.default_rng(0)
    shops = np.repeat([f"shop {k:03}" for k in range(255)], 12)
    frame = pd.DataFrame({"shop": shops, "size": rng.random(len(shops))})
    value = rng.normal(size=255)[pd.factorize(shops)[0]] + frame["size"]
    space = FeatureSpace.infer(frame, categorical=["shop"])
    model = HistGradientBoostingRegressor(categorical_features=["shop"], **DEEP).fit(frame, value)

    predictor = read(model, space)

    assert max(code for tree in predictor.core.trees for codes in tree.sets for code in codes) > 224
    matrix = predictor.encoding.matrix(space.coordinates(frame))
    np.testing.assert_allclose(predictor.core.score(matrix), model.predict(frame), rtol=1e-12)
