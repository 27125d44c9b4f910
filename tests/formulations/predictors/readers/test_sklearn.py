"""Every estimator that is read, behind every kind of pipeline: leaves, scores and labels are the library's own.

Rows are random, and rows that sit on a threshold, one float64 and one float32 on either side of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from library_rows import as_given, check, frame_of, trial_rows
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - lets the next line import it
from sklearn.feature_selection import (
    RFE,
    RFECV,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    SequentialFeatureSelector,
    VarianceThreshold,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.readers.pipeline import TRANSFORMERS
from ceopt.formulations.predictors.readers.sklearn import ESTIMATORS
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace

#: Names such as age are no matter here.
pytestmark = pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")

TREE = {"max_depth": 5, "random_state": 0}
FOREST = {"n_estimators": 10, **TREE}
BOOSTED = {"n_estimators": 8, "max_depth": 4, "learning_rate": 0.3, "random_state": 0}
HISTOGRAM = {"max_iter": 6, "max_leaf_nodes": 9, "learning_rate": 0.3}
NETWORK = {"hidden_layer_sizes": (6, 5), "max_iter": 10, "random_state": 0}

CLASSIFIERS: dict[str, tuple[Any, bool]] = {  # (estimator, whether it is read with three classes)
    "DecisionTreeClassifier": (DecisionTreeClassifier(**TREE), True),
    "ExtraTreeClassifier": (ExtraTreeClassifier(**TREE), True),
    "ExtraTreesClassifier": (ExtraTreesClassifier(**FOREST), True),
    "GradientBoostingClassifier": (GradientBoostingClassifier(**BOOSTED), True),
    "HistGradientBoostingClassifier": (HistGradientBoostingClassifier(**HISTOGRAM), True),
    "LinearDiscriminantAnalysis": (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), True),
    "LinearSVC": (LinearSVC(max_iter=20), True),
    "LogisticRegression": (LogisticRegression(max_iter=20), True),
    "LogisticRegressionCV": (
        LogisticRegressionCV(
            Cs=2, cv=2, max_iter=20, l1_ratios=(0.0,), scoring="accuracy", use_legacy_attributes=False
        ),
        True,
    ),
    "MLPClassifier": (MLPClassifier(**NETWORK), True),
    "Perceptron": (Perceptron(max_iter=5), True),
    "RandomForestClassifier": (RandomForestClassifier(class_weight="balanced", **FOREST), True),
    "RidgeClassifier": (RidgeClassifier(), True),
    "RidgeClassifierCV": (RidgeClassifierCV(), True),
    "SGDClassifier": (SGDClassifier(loss="log_loss", max_iter=5, random_state=0), True),
    "SVC": (SVC(kernel="linear", max_iter=200), False),
}
REGRESSORS: dict[str, Any] = {
    "DecisionTreeRegressor": DecisionTreeRegressor(**TREE),
    "ElasticNet": ElasticNet(alpha=0.01),
    "ElasticNetCV": ElasticNetCV(alphas=[0.1, 1.0], cv=2),
    "ExtraTreeRegressor": ExtraTreeRegressor(**TREE),
    "ExtraTreesRegressor": ExtraTreesRegressor(**FOREST),
    "GradientBoostingRegressor": GradientBoostingRegressor(**BOOSTED),
    "HistGradientBoostingRegressor": HistGradientBoostingRegressor(**HISTOGRAM),
    "Lasso": Lasso(alpha=0.01),
    "LassoCV": LassoCV(alphas=[0.1, 1.0], cv=2),
    "LinearRegression": LinearRegression(),
    "LinearSVR": LinearSVR(max_iter=20),
    "MLPRegressor": MLPRegressor(**NETWORK),
    "RandomForestRegressor": RandomForestRegressor(**FOREST),
    "Ridge": Ridge(),
    "RidgeCV": RidgeCV(),
    "SGDRegressor": SGDRegressor(max_iter=5),
}

NUMBERS = ["age", "income", "debt", "tiny"]


def _named() -> Any:
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        (OneHotEncoder(drop="first"), ["job", "home"]),
        (OrdinalEncoder(categories=[["S", "M", "L"]]), ["size"]),
        ("passthrough", ["flag"]),
    )


def _sparse() -> Any:
    inner = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=["number", "bool"])),
        (MaxAbsScaler(), [True, False, True, False, True, False, False, False]),
        ("drop", ["tiny"]),
        remainder="passthrough",
        sparse_threshold=1.0,
    )
    return make_pipeline(inner, StandardScaler(with_mean=False), MaxAbsScaler(), RobustScaler(with_centering=False))


def _frames() -> Any:
    inner = ColumnTransformer(
        [
            ("hot", OneHotEncoder(drop="if_binary", sparse_output=False, dtype=np.float32), ["home", "job", "size"]),
            ("robust", Pipeline([("a", "passthrough"), ("b", RobustScaler())]), slice("income", "income")),
            ("none", "drop", ["debt"]),
            ("empty", StandardScaler(), []),
        ],
        remainder=MinMaxScaler(feature_range=(-3, 7)),
    )
    chosen = SelectKBest(lambda X, _: np.arange(X.shape[1]), k=7)
    return make_pipeline(inner, chosen, FunctionTransformer(), MaxAbsScaler()).set_output(transform="pandas")


def _nested() -> Any:
    inner = make_pipeline(
        ColumnTransformer(
            [("drops", OneHotEncoder(drop=["cook", "rent"], sparse_output=False), ["job", "home"])],
            remainder="drop",
        ),
        VarianceThreshold(),
        StandardScaler(),
    )
    return ColumnTransformer(
        [
            ("levels", inner, ["job", "home"]),
            ("numbers", MinMaxScaler(), lambda X: [X.columns.get_loc("debt"), 2]),
        ]
    )


def _places() -> Any:
    return ColumnTransformer(
        [("numbers", StandardScaler(with_std=False), [4, 2, 6]), ("levels", OneHotEncoder(), slice(1, 4, 2))],
        remainder="drop",
    )


#: name -> (unfitted preparation or None, columns, whether the model is fitted on an array)
PREPARATIONS: dict[str, tuple[Any, list[str] | None, bool]] = {
    "named": (_named(), None, False),
    "sparse": (_sparse(), None, False),
    "frames": (_frames(), None, False),
    "nested": (_nested(), None, False),
    "object array": (_places(), None, True),
    "bare frame": (None, NUMBERS, False),
    "array": (make_pipeline(MinMaxScaler(), RobustScaler(quantile_range=(10, 80))), NUMBERS, True),
}

#: The library refuses sparse input to them.
DENSE_ONLY = {"HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "LinearDiscriminantAnalysis"}
MODELS = [
    *((name, estimator, 2) for name, (estimator, _) in CLASSIFIERS.items()),
    *((name, estimator, 3) for name, (estimator, three) in CLASSIFIERS.items() if three),
    *((name, estimator, 0) for name, estimator in REGRESSORS.items()),
]
CASES = [
    (preparation, *model)
    for preparation in PREPARATIONS
    for model in MODELS
    if preparation != "sparse" or model[0] not in DENSE_ONLY
]


@pytest.mark.long(every=22)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("preparation", "name", "estimator", "classes"), CASES, ids=[f"{case[0]}-{case[1]}-{case[3]}" for case in CASES]
)
def test_leaves_scores_and_labels_are_the_librarys(data, preparation, name, estimator, classes):
    steps, columns, array = PREPARATIONS[preparation]
    used = data if columns is None else data.only(*columns)
    estimator = clone(estimator)
    steps = None if steps is None else _fitted(preparation, data, used, array=array)
    target = {0: data.value, 2: data.two, 3: data.three}[classes]
    given = as_given(used.frame, array=array)
    estimator.fit(given if steps is None else steps.transform(given), target)
    model = estimator if steps is None else Pipeline([("steps", steps), ("estimator", estimator)])

    check(model, used, array=array, steps=steps, estimator=estimator)


_FITTED: dict[str, Any] = {}


def _fitted(preparation: str, data: Any, used: Any, *, array: bool) -> Any:
    """Fit a preparation once."""
    if preparation not in _FITTED:
        steps = clone(PREPARATIONS[preparation][0])
        _FITTED[preparation] = steps.fit(as_given(used.frame, array=array), data.two)
    return _FITTED[preparation]


def test_every_estimator_that_is_read_is_in_the_battery():
    assert {*CLASSIFIERS, *REGRESSORS} == set(ESTIMATORS)


SELECTORS = {
    "GenericUnivariateSelect": GenericUnivariateSelect(mode="k_best", param=2),
    "RFE": RFE(LinearRegression(), n_features_to_select=2),
    "RFECV": RFECV(LinearRegression(), cv=2),
    "SelectFdr": SelectFdr(),
    "SelectFpr": SelectFpr(),
    "SelectFromModel": SelectFromModel(LinearRegression()),
    "SelectFwe": SelectFwe(),
    "SelectKBest": SelectKBest(k=2),
    "SelectPercentile": SelectPercentile(percentile=50),
    "SequentialFeatureSelector": SequentialFeatureSelector(LinearRegression(), cv=2),
    "VarianceThreshold": VarianceThreshold(1e-3),
}
SCALERS = {
    "MaxAbsScaler": MaxAbsScaler(),
    "MinMaxScaler": MinMaxScaler(feature_range=(-2, 5), clip=True),
    "RobustScaler": RobustScaler(),
    "StandardScaler": StandardScaler(),
}
OTHERS = {
    "FunctionTransformer": FunctionTransformer(),
    "IterativeImputer": IterativeImputer(max_iter=1),
    "KNNImputer": KNNImputer(n_neighbors=2),
    "MissingIndicator": MissingIndicator(features="all"),
    "SimpleImputer": SimpleImputer(strategy="median"),
}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", [*SELECTORS, *SCALERS, *OTHERS])
def test_every_step_on_numbers(numbers, name):
    step = {**SELECTORS, **SCALERS, **OTHERS}[name]
    target = (numbers.value > 0).astype(int)
    forest = RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0)
    model = make_pipeline(clone(step), forest).fit(numbers.frame, target)

    check(model, numbers, array=False, steps=model[:-1], estimator=model[-1])


def test_every_step_that_is_read_is_in_a_battery():
    assert {*SELECTORS, *SCALERS, *OTHERS, "OneHotEncoder", "OrdinalEncoder"} == set(TRANSFORMERS)


@pytest.mark.parametrize("name", ["MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler"])
@pytest.mark.parametrize("fit_dtype", ["float32", "float64"])
def test_scalers_compute_in_the_width_of_their_input(numbers, name, fit_dtype):
    """Whole numbers in float32 columns: the library scales them in float32, whatever it was fitted on."""
    frame = numbers.frame[["age", "debt"]].round().astype("float32")
    space = FeatureSpace.infer(frame, integer=["age", "debt"])
    assert {str(dtype) for dtype in frame_of(space, space.coordinates(frame)).dtypes} == {"float32"}
    steps = clone(SCALERS[name]).fit(frame.astype(fit_dtype))
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(steps.transform(frame), numbers.two)
    model = make_pipeline(steps, tree)

    predictor = read(model, space)
    rows = trial_rows(predictor, space.coordinates(frame))
    seen = steps.transform(frame_of(space, rows))

    assert predictor.encoding.dtype == np.float32
    np.testing.assert_array_equal(predictor.encoding.matrix(rows), np.asarray(seen))
    np.testing.assert_array_equal(predictor.core.apply(predictor.encoding.matrix(rows))[:, 0], tree.apply(seen))


@pytest.mark.parametrize("name", SCALERS)
def test_scalers_fitted_in_float32_compute_in_the_width_of_a_wider_frame(numbers, name):
    """Scaled in float32, joined by a float64 column, then scaled in float64 by float32 constants."""
    frame = numbers.frame[["age", "debt"]].assign(age=numbers.frame["age"].astype("float32"))
    first = make_column_transformer((MaxAbsScaler(), ["age"]), remainder="passthrough")
    steps = make_pipeline(first, clone(SCALERS[name])).fit(frame.astype("float32"))
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(steps.transform(frame), numbers.two)
    space = FeatureSpace.infer(frame, integer=["age"])

    predictor = read(make_pipeline(steps, tree), space)

    rows = trial_rows(predictor, space.coordinates(frame))
    assert predictor.encoding.dtype == np.float64
    np.testing.assert_array_equal(predictor.encoding.matrix(rows), steps.transform(frame_of(space, rows)))


def test_float32_weights_on_float32_input_add_up_in_float32(data):
    hot = OneHotEncoder(dtype=np.float32, sparse_output=False)
    model = make_pipeline(hot, LogisticRegression(solver="lbfgs")).fit(data.frame[["job", "home"]], data.two)
    if model[-1].coef_.dtype != np.float32:
        pytest.skip("this scikit-learn keeps float64 weights on float32 input")
    few = data.only("job", "home")

    predictor = read(model, few.space)

    score = predictor.score(few.space.coordinates(few.frame))
    assert predictor.core.dtype == "float32"
    np.testing.assert_allclose(score, model.decision_function(few.frame), rtol=0, atol=1e-6)


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (3, 7), (1.0, 2.0)])
@pytest.mark.parametrize("estimator", [LogisticRegression(), DecisionTreeClassifier(max_depth=3)])
def test_labels_of_any_type(numbers, labels, estimator):
    frame, target = numbers.frame, np.array(labels)[(numbers.value > 0).astype(int)]
    estimator = make_pipeline(StandardScaler(), clone(estimator)).fit(frame, target)

    predictor = read(estimator, numbers.space)

    assert predictor.labels == labels
    assert [type(label) for label in predictor.labels] == [type(label) for label in labels]
    predicted = predictor.core.predict(predictor.encoding.matrix(numbers.space.coordinates(frame)))
    np.testing.assert_array_equal(predicted, estimator.predict(frame))
    assert predicted.dtype == estimator.predict(frame).dtype


@pytest.mark.long(every=2)
@pytest.mark.parametrize("drop", [None, "first", "if_binary", ["cook", "own"]])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("unknown", ["error", "ignore", "infrequent_if_exist", "warn"])
def test_one_hot_tables_are_the_encoders(data, drop, sparse, unknown):
    few = data.only("job", "home")
    hot = OneHotEncoder(drop=drop, sparse_output=sparse, handle_unknown=unknown)
    model = make_pipeline(hot, LogisticRegression()).fit(few.frame, data.two)

    columns = read(model, few.space).encoding.columns

    names = hot.get_feature_names_out()
    assert len(columns) == len(names)
    for column, name in zip(columns, names, strict=True):
        feature, level = name.split("_")
        assert column.feature == feature
        assert column.table == tuple(float(each == level) for each in few.space[feature].levels)


def test_a_level_that_the_encoder_ignores_is_all_zeros(data):
    few = data.only("job")
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(few.frame, data.two)
    space = FeatureSpace([Feature("job", kind="categorical", levels=(*few.space["job"].levels, "poet"))])

    assert [column.table[-1] for column in read(model, space).encoding.columns] == [0.0] * 4


def test_ordinal_codes_are_the_encoders(data):
    few = data.only("size", "job")
    codes = OrdinalEncoder(
        categories=[["L", "S", "M"], ["miner", "cook", "nurse"]],
        handle_unknown="use_encoded_value",
        unknown_value=-7,
    )
    model = make_pipeline(codes, DecisionTreeClassifier(max_depth=3)).fit(few.frame, data.two)

    size, job = read(model, few.space).encoding.columns

    assert size.table == (1.0, 2.0, 0.0)
    assert job.table == (-7.0, 1.0, 0.0, 2.0)


def test_an_imputer_is_the_identity_and_its_flags_are_zero(numbers):
    frame = numbers.frame.astype(float).copy()
    frame.loc[::7, "debt"] = np.nan
    frame["age"] = np.nan  # SimpleImputer drops a column without any value
    imputer = SimpleImputer(strategy="mean", add_indicator=True)
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        seen = imputer.fit_transform(frame)
    model = make_pipeline(imputer, DecisionTreeClassifier(max_depth=4).fit(seen, numbers.two))

    columns = read(model, numbers.space).encoding.columns

    assert [column.feature for column in columns] == ["income", "debt", "tiny", None, None]
    assert [column.constant for column in columns[3:]] == [0.0, 0.0]
    assert all(column.steps == () for column in columns)


@pytest.mark.parametrize("strategy", ["most_frequent", "constant"])
def test_an_imputer_of_text(data, strategy):
    few = data.only("job", "home")
    frame = few.frame.astype(object)
    few.space.coordinates(frame)
    space = FeatureSpace.infer(frame)
    model = make_pipeline(SimpleImputer(strategy=strategy), OneHotEncoder(), DecisionTreeClassifier(max_depth=3))
    model.fit(frame, data.two)

    predictor = read(model, space)

    seen = model[:-1].transform(frame).toarray()
    np.testing.assert_array_equal(predictor.encoding.matrix(space.coordinates(frame)), seen)


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_searches_pipelines_and_freezing_are_unwrapped(numbers, search):
    inner = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0))
    grid = {"decisiontreeclassifier__max_depth": [2, 3]}
    options = {"n_iter": 2} if search is RandomizedSearchCV else {}
    model = search(inner, grid, cv=2, **options).fit(numbers.frame, numbers.two)
    scaler = StandardScaler().fit(numbers.frame)
    second = clone(model).fit(scaler.transform(numbers.frame), numbers.two)
    frozen = make_pipeline(FrozenEstimator(scaler), FrozenEstimator(second))
    rows = numbers.space.coordinates(numbers.frame)

    for given in (model, FrozenEstimator(model), frozen):
        predictor = read(given, numbers.space)
        predicted = predictor.core.predict(predictor.encoding.matrix(rows))
        np.testing.assert_array_equal(predicted, given.predict(numbers.frame))


def test_columns_are_matched_by_name_whatever_the_order_of_the_space(data):
    model = make_pipeline(_named(), RandomForestClassifier(**FOREST)).fit(data.frame, data.two)
    turned = data.only(*data.frame.columns[::-1])

    check(model, turned, array=False, steps=model[:-1], estimator=model[-1])


def test_columns_of_an_array_are_matched_by_position(numbers):
    model = DecisionTreeClassifier(max_depth=3).fit(numbers.frame.to_numpy(), numbers.two)

    features = [column.feature for column in read(model, numbers.space).encoding.columns]

    assert features == list(numbers.space.names)


def test_a_split_between_missing_and_present_sends_every_number_left(numbers):
    frame = numbers.frame[["income", "debt"]].copy()
    frame.loc[numbers.value > 0, "income"] = np.nan
    target = np.where(frame["income"].isna(), "gap", "no gap")
    model = DecisionTreeClassifier(max_depth=2).fit(frame, target)
    assert np.isinf(model.tree_.threshold[0])
    few = numbers.only("income", "debt")

    predictor = read(model, few.space)

    matrix = predictor.encoding.matrix(few.space.coordinates(few.frame))
    np.testing.assert_array_equal(predictor.core.predict(matrix), model.predict(few.frame))


def test_ties_of_a_linear_score_go_to_the_first_class_and_those_of_an_svc_to_the_second():
    space_rows = np.array([[-1.0], [1.0]])
    frame = pd.DataFrame(space_rows, columns=["x"])
    logistic = LogisticRegression().fit(frame, ["a", "b"])
    logistic.coef_, logistic.intercept_ = np.array([[1.0]]), np.array([0.0])
    vectors = SVC(kernel="linear").fit(frame, ["a", "b"])
    zero = pd.DataFrame({"x": [0.0]})
    assert vectors.decision_function(zero) == 0.0
    space = FeatureSpace.infer(frame)

    for model, label in ((logistic, "a"), (vectors, "b")):
        assert model.predict(zero).tolist() == [label]
        assert read(model, space).core.predict([[0.0]]).tolist() == [label]


def test_ties_of_a_forest_go_to_the_first_class():
    frame = pd.DataFrame({"x": [0.0, 0.0, 1.0]})
    model = DecisionTreeClassifier().fit(frame, ["b", "a", "b"])

    core = read(model, FeatureSpace.infer(frame)).core

    assert core.score([[0.0]]).tolist() == [[0.5, 0.5]]
    assert core.predict([[0.0]]).tolist() == model.predict(pd.DataFrame({"x": [0.0]})).tolist() == ["a"]
