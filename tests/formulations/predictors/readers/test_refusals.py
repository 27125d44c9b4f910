"""What cannot be stated exactly is refused by name, with what to do."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ceopt.formulations.predictors.readers import pipeline as steps
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.readers.sklearn import ESTIMATORS
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import CeoptError, UnsupportedModelError

#: Names such as age are no matter here.
pytestmark = pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")

TREE = DecisionTreeClassifier(max_depth=3)


class Mine(LogisticRegression):
    """A user's subclass, which may predict in any way."""


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (GaussianNB(), r"is GaussianNB. Fit one that is read, such as RandomForestClassifier"),
        (KNeighborsClassifier(), "the estimator is KNeighborsClassifier"),
        (Mine(), "it is Mine of module"),
        (SVC(kernel="rbf"), r"SVC has kernel='rbf'. Fit SVC"),
        (make_pipeline(PCA(2), TREE), r"the pipeline has PCA. Apply it to the data before"),
        (make_pipeline(PolynomialFeatures(), TREE), r"the pipeline has PolynomialFeatures"),
        (make_pipeline(KBinsDiscretizer(quantile_method="averaged_inverted_cdf"), TREE), r"has KBinsDiscretizer"),
        (make_pipeline(FunctionTransformer(np.tanh), TREE), r"FunctionTransformer has func=tanh. Apply the function"),
        (make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), r"clips 'age'. Fit the scaler with clip=False"),
        (make_pipeline(SimpleImputer(missing_values=18), TREE), r"replaces 18 in the numeric column 'age'"),
        (
            make_pipeline(OneHotEncoder(handle_unknown="ignore"), TREE),
            r"'age' is integer .*space.update\('age', k",
        ),
        (make_pipeline(OrdinalEncoder(), TREE), r"levels in the columns of OrdinalEncoder, but column 'age'"),
        (make_pipeline(StandardScaler()), r"it ends in StandardScaler. Add a classifier"),
        (Pipeline([("a", StandardScaler()), ("b", "passthrough")]), r"it ends in 'passthrough'"),
        (GridSearchCV(TREE, {"max_depth": [1]}, cv=2, refit=False), r"GridSearchCV has no best_estimator_"),
    ],
)
def test_models_and_steps_are_refused_by_name(numbers, model, match):
    model.fit(numbers.frame, numbers.two)

    with pytest.raises(UnsupportedModelError, match=match):
        read(model, numbers.space)


def test_several_outputs_are_refused(numbers):
    two_values = np.column_stack([numbers.value, numbers.value])
    several = (np.column_stack([numbers.value, -numbers.value]) > 0).astype(int)
    for model, target in (
        (LinearRegression(), two_values),
        (LinearRegression(), two_values[:, :1]),
        (DecisionTreeRegressor(max_depth=2), two_values),
        (RandomForestClassifier(2), several),
    ):
        with pytest.raises(UnsupportedModelError, match=r"one output, but .* was fitted on"):
            read(model.fit(numbers.frame, target), numbers.space)
    with pytest.raises(UnsupportedModelError, match=r"one label per row, but RidgeClassifier"):
        read(RidgeClassifier().fit(numbers.frame, several), numbers.space)


def test_one_or_too_many_classes_are_refused(numbers):
    with pytest.raises(UnsupportedModelError, match=r"DecisionTreeClassifier knows only 'a'"):
        read(DecisionTreeClassifier().fit(numbers.frame, ["a"] * len(numbers.frame)), numbers.space)
    with pytest.raises(UnsupportedModelError, match=r"SVC has 3 and lets pairs of them vote. Fit LinearSVC"):
        read(SVC(kernel="linear", max_iter=2000).fit(StandardScaler().fit_transform(numbers.frame), numbers.three),
             numbers.space)  # fmt: skip


def test_a_transformed_target_is_refused(numbers):
    model = TransformedTargetRegressor(LinearRegression(), func=np.sinh, inverse_func=np.arcsinh)

    with pytest.raises(UnsupportedModelError, match=r"TransformedTargetRegressor has func=sinh. Give its regressor_"):
        read(model.fit(numbers.frame, numbers.value), numbers.space)


def test_only_the_logistic_loss_of_sgd_has_a_probability(numbers):
    frame = (numbers.frame - numbers.frame.mean()) / numbers.frame.std()
    space = FeatureSpace.infer(frame)
    found = {
        loss: read(SGDClassifier(loss=loss, random_state=0).fit(frame, numbers.two), space).core.probability
        for loss in ("hinge", "log_loss", "modified_huber")
    }

    assert found == {"hinge": None, "log_loss": "logistic", "modified_huber": None}


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        DecisionTreeClassifier(),
        make_pipeline(StandardScaler(), DecisionTreeClassifier()),
        GridSearchCV(TREE, {"max_depth": [1]}),
    ],
)
def test_an_unfitted_model_is_refused(numbers, model):
    with pytest.raises(UnsupportedModelError, match=r"fitted model, but .*(is not fitted. Call|no best_estimator_)"):
        read(model, numbers.space)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (LogisticRegression, "LogisticRegression is a class"),
        (None, "ends in None"),
        (3.5, "it is float of module builtins"),
        ("model.pkl", r"file that ends in \.onnx, \.json, \.ubj, \.txt, but it is 'model\.pkl'"),
        (pd.DataFrame(), "it is DataFrame of module pandas"),
    ],
)
def test_what_is_no_model_is_refused(numbers, model, match):
    with pytest.raises(UnsupportedModelError, match=match):
        read(model, numbers.space)


def test_columns_of_model_and_space_must_agree(data, numbers):
    model = DecisionTreeClassifier(max_depth=2).fit(numbers.frame, numbers.two)
    with pytest.raises(UnsupportedModelError, match=r"column 'tiny' is missing. Add it"):
        read(model, data.only("age", "income", "debt").space)
    with pytest.raises(UnsupportedModelError, match=r"column 'flag' is unknown to it. Remove it"):
        read(model, data.only("age", "income", "debt", "tiny", "flag").space)
    model.fit(numbers.frame.to_numpy(), numbers.two)
    with pytest.raises(UnsupportedModelError, match=r"was fitted on, 4, but the space has 3"):
        read(model, data.only("age", "income", "debt").space)


@pytest.mark.parametrize("option", ["min_frequency", "max_categories"])
@pytest.mark.parametrize("encoder", [OneHotEncoder, OrdinalEncoder])
def test_infrequent_grouping_is_refused(data, encoder, option):
    few = data.only("job")
    model = make_pipeline(encoder(**{option: 3}), TREE).fit(few.frame, data.two)

    with pytest.raises(UnsupportedModelError, match=rf"{encoder.__name__} has {option}=3. Group infrequent levels"):
        read(model, few.space)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder()])
def test_a_level_that_the_encoder_has_not_seen_is_known_to_be_out_of_reach(data, encoder):
    few = data.only("home", "job")
    space = FeatureSpace(
        [few.space["home"], Feature("job", kind="categorical", levels=(*few.space["job"].levels, "poet"))]
    )
    prepared = make_column_transformer((encoder, ["job", "home"]))
    model = make_pipeline(prepared, TREE).fit(few.frame, data.two)

    predictor = read(model, space)
    assert predictor.unseen == {"job": frozenset({len(few.space["job"].levels)})}

    first = FeatureSpace(
        [few.space["home"], Feature("job", kind="categorical", levels=("poet", "sailor", *few.space["job"].levels))]
    )
    assert read(model, first).unseen == {"job": frozenset({0, 1})}

    strangers = FeatureSpace([few.space["home"], Feature("job", kind="categorical", levels=("poet", "sailor"))])
    with pytest.raises(UnsupportedModelError, match=r"column 'job' has none, '(poet|sailor)' among them"):
        read(model, strangers)


def test_a_level_that_is_encoded_as_nan_is_refused(data):
    codes = OrdinalEncoder(categories=[["cook", "nurse"]], handle_unknown="use_encoded_value", unknown_value=np.nan)
    few = data.only("job")
    model = make_pipeline(codes, TREE).fit(few.frame, data.two)

    with pytest.raises(UnsupportedModelError, match=r"'job' level 'clerk' is encoded as nan"):
        read(model, few.space)


def test_text_that_reaches_the_estimator_or_a_scaler_is_refused(numbers):
    space = numbers.only("age").space
    text = FeatureSpace([Feature("age", kind="categorical", levels=("young", "old"))])
    frame = numbers.frame[["age"]]
    assert read(TREE.fit(frame, numbers.two), space).core.n_inputs == 1
    with pytest.raises(UnsupportedModelError, match=r"a column is still text: '"):
        read(TREE.fit(frame, numbers.two), text)
    with pytest.raises(UnsupportedModelError, match=r"StandardScaler fails: could not convert string"):
        read(make_pipeline(StandardScaler(), TREE).fit(frame, numbers.two), text)


@pytest.mark.parametrize(
    ("constant", "value"), [("scale_", -1.0), ("scale_", 0.0), ("scale_", np.nan), ("mean_", np.inf)]
)
def test_a_scaler_that_does_not_keep_the_order_is_refused(numbers, constant, value):
    model = make_pipeline(StandardScaler(), TREE).fit(numbers.frame, numbers.two)
    getattr(model[0], constant)[2] = value

    with (
        np.errstate(all="ignore"),
        pytest.raises(UnsupportedModelError, match=f"StandardScaler has {value} for column 'debt'"),
    ):
        read(model, numbers.space)


def test_an_encoding_that_differs_from_the_pipeline_is_refused(numbers, monkeypatch):
    """The reader does not believe itself: whatever differs in one bit is refused, with the column named."""
    model = make_pipeline(MinMaxScaler(), TREE).fit(numbers.frame, numbers.two)
    read(model, numbers.space)

    def divide(scaler, place, *_, **__):  # 1 / scale rounds once more than scale
        return [("divide", 1 / scaler.scale_[place]), ("add", scaler.min_[place])]

    monkeypatch.setitem(steps._OPERATIONS, "MinMaxScaler", divide)
    with pytest.raises(UnsupportedModelError, match=r"column 'age' differs in the estimator's column 0"):
        read(model, numbers.space)


@pytest.mark.parametrize(
    "feature",
    [
        Feature("x", kind="continuous"),
        Feature("x", kind="continuous", lower=-1.7e308, upper=1.7e308),
        Feature("x", kind="continuous", upper=-5.0),
        Feature("x", kind="integer", dtype="uint8"),
        Feature("x", kind="integer", dtype="int8", lower=100),
        Feature("x", kind="integer", dtype="int8", upper=-100),
    ],
)
def test_a_column_without_bounds_is_probed_within_its_dtype(feature):
    scaler = StandardScaler().fit(pd.DataFrame({"x": [0.5, 1.0, 3.0]}))
    model = make_pipeline(scaler, DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]))

    assert read(model, FeatureSpace([feature])).encoding.columns[0].feature == "x"


def test_representations_are_read_over_the_space_in_order(numbers):
    core = Affine([1.0, 2.0, 3.0, 4.0], 0.5, labels=("no", "yes"))

    predictor = read(core, numbers.space)

    rows = numbers.space.coordinates(numbers.frame)
    assert predictor.core is predictor.model is core
    assert predictor.labels == ("no", "yes")
    np.testing.assert_array_equal(predictor.encoding.matrix(rows), numbers.frame.to_numpy())
    np.testing.assert_allclose(predictor.score(rows), core.score(numbers.frame.to_numpy()), rtol=1e-12)


def test_a_representation_needs_the_spaces_columns(numbers, data):
    with pytest.raises(UnsupportedModelError, match=r"needs 3 columns, but the space gives 4"):
        read(Affine([1.0, 2.0, 3.0], 0.5), numbers.space)
    stump = {"feature": 4, "threshold": 0.5, "left": {"value": -1.0}, "right": {"value": 2.0}}
    with pytest.raises(UnsupportedModelError, match=r"needs 5 columns, but the space gives 4"):
        read(TreeEnsemble([stump]), numbers.space)
    assert read(TreeEnsemble([stump | {"feature": 1}]), numbers.space).core.n_inputs == 2
    with pytest.raises(CeoptError, match=r"'job' is categorical with level 'clerk'. Code the levels as numbers"):
        read(Affine([1.0, 2.0], 0.5), data.only("age", "job").space)


@pytest.mark.parametrize(
    ("model", "place", "attribute"),
    [
        (LogisticRegression(max_iter=9), "", "intercept_"),
        (TREE, "", "n_outputs_"),
        (RandomForestRegressor(3), "estimators_.1", "tree_"),
        (GradientBoostingClassifier(n_estimators=2), "", "init_"),
        (HistGradientBoostingClassifier(max_iter=2), "", "_baseline_prediction"),
        (MLPClassifier((3,), max_iter=1), "", "out_activation_"),
        (make_pipeline(SimpleImputer(), TREE), "0", "_fill_dtype"),
        (make_pipeline(StandardScaler(), TREE), "0", "mean_"),
        (make_pipeline(make_column_transformer((StandardScaler(), ["age"])), TREE), "0", "output_indices_"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_pickle_of_another_version_is_refused(numbers, model, place, attribute):
    """An old one lacks what later versions fit; it is refused with the version that is installed."""
    model.fit(numbers.frame, numbers.value if isinstance(model, RandomForestRegressor) else numbers.two)
    read(model, numbers.space)
    old = part = pickle.loads(pickle.dumps(model))
    for key in filter(None, place.split(".")):
        part = part[int(key)] if key.isdigit() else getattr(part, key)
    delattr(part, attribute)

    with pytest.raises(UnsupportedModelError) as caught:
        read(old, numbers.space)

    assert f"scikit-learn {sklearn.__version__} fitted, but " in str(caught.value)
    assert f"has no attribute {attribute!r}. It was saved by another version: fit it again" in str(caught.value)


def test_a_fault_of_ours_is_no_other_version(numbers, monkeypatch):
    model = TREE.fit(numbers.frame, numbers.two)

    def broken(*_):
        return numbers.nothing

    monkeypatch.setitem(ESTIMATORS, "DecisionTreeClassifier", broken)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        read(model, numbers.space)
