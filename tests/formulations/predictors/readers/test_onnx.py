"""What skl2onnx and onnxmltools export, against onnxruntime: random rows, every threshold and both float neighbours."""

from __future__ import annotations

import importlib.util
import pickle
import warnings

import lightgbm
import numpy as np
import onnxmltools
import pandas as pd
import pytest
import xgboost
from library_rows import frame_of, trial_rows
from onnx_models import FLOAT, STRING, model, node, run, value
from onnxmltools.convert.common.data_types import FloatTensorType as ToolsFloat
from scipy.special import expit
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.readers.model_input import given
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

#: Names such as age are no matter here.
pytestmark = pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")

FEW = {"n_estimators": 6, "max_depth": 4, "random_state": 0}
MLP = {"hidden_layer_sizes": (7, 5), "max_iter": 300, "random_state": 0}
CLASSIFIERS = {
    "forest": RandomForestClassifier(**FEW),
    "extra": ExtraTreesClassifier(**FEW),
    "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    "gradient": GradientBoostingClassifier(**FEW),
    "logistic": LogisticRegression(),
    "discriminant": LinearDiscriminantAnalysis(),
    "svm": LinearSVC(),
    "ridge": RidgeClassifier(),
    "sgd": SGDClassifier(random_state=0),
    "mlp": MLPClassifier(**MLP),
}
REGRESSORS = {
    "forest": RandomForestRegressor(**FEW),
    "tree": DecisionTreeRegressor(max_depth=6, random_state=0),
    "gradient": GradientBoostingRegressor(**FEW),
    "linear": LinearRegression(),
    "mlp": MLPRegressor(**MLP),
}
BOOSTED = {
    "xgboost": (onnxmltools.convert_xgboost, xgboost.XGBClassifier, xgboost.XGBRegressor, {"n_estimators": 8}),
    "lightgbm": (
        onnxmltools.convert_lightgbm,
        lightgbm.LGBMClassifier,
        lightgbm.LGBMRegressor,
        {"n_estimators": 8, "verbose": -1, "min_child_samples": 5},
    ),
}


def quietly(convert, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # exporters warn of versions
        return convert(*args, **options)


def plain(numbers, dtype):
    """Columns scaled to size 1, so that float32 keeps their digits, and their space."""
    frame = (numbers.frame - numbers.frame.mean()) / numbers.frame.std()
    return frame.astype(dtype), FeatureSpace.infer(frame)


def check(made, space, feeds, coordinates):
    """Labels and values as onnxruntime gives them; of sums of floats, wherever their rounding does not decide."""
    opened = open_model(made.SerializeToString())
    predictor = read(opened, space)
    core, rows = predictor.core, trial_rows(predictor, coordinates)
    said = run(made, *feeds(rows))[0].ravel()
    ours = core.predict(predictor.encoding.matrix(rows))
    asked = opened.predict(given(opened, space, frame_of(space, rows)))
    scores = predictor.score(rows)

    np.testing.assert_array_equal(asked, said)
    if core.labels is None:
        exactly = isinstance(core, TreeEnsemble)
        np.testing.assert_allclose(ours.astype("f4"), said, rtol=0 if exactly else 1e-4, atol=0 if exactly else 1e-4)
        return core
    assert set(said.tolist()) == set(core.labels) == set(opened.classes_.tolist())
    two = np.sort(scores, axis=1) if scores.ndim == 2 else np.stack([scores, np.full(len(scores), core.level)], axis=1)
    clear = np.abs(two[:, -1] - two[:, -2]) > 1e-4
    if isinstance(core, TreeEnsemble):
        clear[:] = True
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(ours[clear], said[clear])
    if core.probability is not None and scores.ndim == 1:
        shares = opened.predict_proba(given(opened, space, frame_of(space, rows)))[:, 1]
        np.testing.assert_allclose(shares, expit(scores) if core.probability == "logistic" else scores, atol=2e-6)
    return core


def matrix_check(made, frame, space, dtype="f4"):
    return check(made, space, lambda rows: [rows.astype(dtype)], space.coordinates(frame.astype(float)))


#: onnxruntime loads these as skl2onnx writes them for a double input, no others.
DOUBLE = ("forest", "logistic", "discriminant", "mlp", "linear")


@pytest.mark.long(every=6)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, "float32") for name in CLASSIFIERS), *((name, "float64") for name in DOUBLE if name in CLASSIFIERS)],
)
def test_classifiers_of_scikit_learn(numbers, name, dtype, several):
    frame, space = plain(numbers, dtype)
    fitted = quietly(CLASSIFIERS[name].fit, frame.to_numpy(), numbers.three if several else numbers.two)
    plainly = {} if name == "svm" else {"options": {"zipmap": False}}
    core = matrix_check(quietly(to_onnx, fitted, frame.to_numpy()[:1], **plainly), frame, space, dtype)

    assert core.labels == (("low", "mid", "top") if several else ("bad", "good"))
    has_probability = name not in {"svm", "ridge", "sgd"} and not several
    assert (core.probability in {"logistic", "identity"}) == has_probability


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float32") for name in REGRESSORS), ("linear", "float64"), ("mlp", "float64")]
)
def test_regressors_of_scikit_learn(numbers, name, dtype):
    frame, space = plain(numbers, dtype)
    fitted = quietly(REGRESSORS[name].fit, frame.to_numpy(), numbers.value)

    matrix_check(quietly(to_onnx, fitted, frame.to_numpy()[:1]), frame, space, dtype)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("target", ["two", "three", "value"])
@pytest.mark.parametrize("zipmap", [False, True])
@pytest.mark.parametrize("name", BOOSTED)
def test_boosting_of_other_libraries(numbers, name, target, zipmap):
    convert, classifier, regressor, options = BOOSTED[name]
    frame, space = plain(numbers, "float32")
    y = getattr(numbers, target)
    fitted = (regressor if target == "value" else classifier)(**options)
    fitted.fit(frame.to_numpy(), y if target == "value" else np.unique(y, return_inverse=True)[1])
    more = {"zipmap": zipmap} if name == "lightgbm" and target != "value" else {}
    made = quietly(convert, fitted, initial_types=[("X", ToolsFloat([None, 4]))], **more)
    core = matrix_check(made, frame, space)

    assert core.decision == {"two": "positive", "three": "argmax", "value": "value"}[target]


def test_labels_of_a_zipmap(numbers):
    frame, space = plain(numbers, "float32")
    fitted = GradientBoostingClassifier(**FEW).fit(frame.to_numpy(), numbers.two)
    made = quietly(to_onnx, fitted, frame.to_numpy()[:1])
    rows = frame.to_numpy()[:50]

    assert made.graph.output[1].type.WhichOneof("value") == "sequence_type"
    matrix_check(made, frame, space)
    ours = open_model(made).predict_proba(rows)
    np.testing.assert_allclose(ours, [[one["bad"], one["good"]] for one in run(made, rows)[1]])


SCALERS = [StandardScaler(), MinMaxScaler(), MinMaxScaler(clip=True), RobustScaler(), MaxAbsScaler()]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("scaler", "dtype"),
    [
        *((scaler, dtype) for scaler in SCALERS for dtype in ("float32", "float64")),
        (SimpleImputer(), "float32"),  # onnxruntime has no Imputer of doubles
    ],
    ids=repr,
)
def test_scalers_before_trees(numbers, scaler, dtype):
    frame = numbers.frame.astype(dtype)
    fitted = make_pipeline(scaler, RandomForestClassifier(**FEW)).fit(frame.to_numpy(), numbers.two)
    made = quietly(to_onnx, fitted, frame.to_numpy()[:1], options={"zipmap": False})

    matrix_check(made, frame, FeatureSpace.infer(frame.astype(float)), dtype)


def by_column(frame, names):
    """One input per column: text, or float32."""
    return [
        (name, (StringTensorType if frame[name].dtype.kind in "OTU" else FloatTensorType)([None, 1])) for name in names
    ]


COLUMNS = ["age", "job", "income", "home", "debt"]
ENCODERS = {
    "one-hot": [
        ("n", make_pipeline(SimpleImputer(), StandardScaler()), ["income", "debt"]),
        ("p", "passthrough", ["age"]),
        ("c", OneHotEncoder(handle_unknown="ignore"), ["job", "home"]),
    ],
    "strict": [
        ("n", MinMaxScaler(), ["debt", "age"]),
        ("c", OneHotEncoder(drop="first"), ["home"]),
        ("j", OneHotEncoder(), ["job"]),
        ("d", "drop", ["income"]),
    ],
    "ordinal": [("n", RobustScaler(), ["age", "income"]), ("o", OrdinalEncoder(), ["job", "home"])],
}


@pytest.mark.long(every=6)
@pytest.mark.parametrize("estimator", ["forest", "logistic", "gradient", "mlp"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_pipelines_with_one_input_per_column(data, encoder, estimator):
    frame = data.frame[COLUMNS].assign(income=np.log(data.frame["income"]), debt=data.frame["debt"] / 1e4)
    space = FeatureSpace.infer(frame)
    pipeline = make_pipeline(ColumnTransformer(ENCODERS[encoder]), CLASSIFIERS[estimator])
    fitted = quietly(pipeline.fit, frame, data.two)
    made = quietly(
        convert_sklearn, fitted, initial_types=by_column(frame, COLUMNS), options={id(fitted[-1]): {"zipmap": False}}
    )

    def feeds(rows):
        raw = frame_of(space, rows)
        return [
            raw[name].to_numpy(dtype=object if raw[name].dtype.kind in "OTU" else "f4")[:, None] for name in COLUMNS
        ]

    core = check(made, space, feeds, space.coordinates(frame))
    assert open_model(made).feature_names_in_.tolist() == COLUMNS
    assert core.labels == ("bad", "good")


def test_one_tensor_takes_levels_as_codes(data):
    """Ranks of ordinal levels, 0 and 1 of two, numbers as they are."""
    frame = data.frame[["age", "home", "size", "flag", "debt"]]
    space = FeatureSpace.infer(frame)
    codes = np.stack(
        [
            frame["age"],
            frame["home"] == "rent",
            frame["size"].cat.codes,
            frame["flag"],
            frame["debt"],
        ],
        axis=1,
    ).astype("f4")
    made = quietly(to_onnx, RandomForestClassifier(**FEW).fit(codes, data.two), codes[:1], options={"zipmap": False})
    predictor = read(made, space)

    np.testing.assert_array_equal(predictor.encoding.matrix(space.coordinates(frame)), codes)
    np.testing.assert_array_equal(Encoding.identity(space).matrix(space.coordinates(frame)).astype("f4"), codes)
    check(made, space, lambda rows: [Encoding.identity(space).matrix(rows).astype("f4")], space.coordinates(frame))


def test_path_bytes_and_model_are_one(numbers, tmp_path):
    frame, space = plain(numbers, "float32")
    made = quietly(to_onnx, LogisticRegression().fit(frame.to_numpy(), numbers.two), frame.to_numpy()[:1])
    (tmp_path / "m.ONNX").write_bytes(made.SerializeToString())
    data = made.SerializeToString()
    opened = [open_model(one) for one in (tmp_path / "m.ONNX", str(tmp_path / "m.ONNX"), data, bytearray(data), made)]
    rows = frame.to_numpy()

    for one in (*opened, open_model(opened[0]), pickle.loads(pickle.dumps(opened[0]))):
        np.testing.assert_array_equal(one.predict(rows), run(made, rows)[0])
        np.testing.assert_array_equal(read(one, space).core.weights, opened[0].core.weights)


def test_the_reference_evaluator_judges_where_onnxruntime_is_missing(numbers, monkeypatch):
    frame, _ = plain(numbers, "float32")
    made = quietly(to_onnx, GradientBoostingClassifier(**FEW).fit(frame.to_numpy(), numbers.two), frame.to_numpy()[:1])
    expected = open_model(made).predict(frame.to_numpy())
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxruntime" else find(name))
    opened = open_model(made)

    np.testing.assert_array_equal(opened.predict(frame.to_numpy()), expected)
    assert type(opened._part._session).__name__ == "ReferenceEvaluator"


# ---- columns that cannot be stated ----
def forest_behind(first, constants=None, inputs=None):
    """Nodes that make Z of the inputs, and a stump on it."""
    stump = node(
        "TreeEnsembleClassifier",
        ["Z"],
        ["label", "scores"],
        classlabels_int64s=[0, 1],
        class_ids=[0, 0],
        class_nodeids=[1, 2],
        class_treeids=[0, 0],
        class_weights=[0.0, 1.0],
        nodes_treeids=[0] * 3,
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0] * 3,
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
    )
    return model([*first, stump], inputs or 1, [value("label", 7, [None]), value("scores")], constants)


NUMBER = FeatureSpace([Feature("a", kind="continuous", lower=-5, upper=5)])
LEVELS = FeatureSpace([Feature("a", kind="categorical", levels=("x", "y"))])
TEXT = [value("a", STRING, [None, 1])]
REFUSED = {
    "normalizer": (
        forest_behind([node("Normalizer", ["X"], ["Z"], norm="L2")]),
        NUMBER,
        r"one raw column each, but .* Normalizer",
    ),
    "negative scale": (
        forest_behind([node("Scaler", ["X"], ["Z"], offset=[0.0], scale=[-1.0])]),
        NUMBER,
        r"scale -1.0",
    ),
    "negative factor": (
        forest_behind([node("Mul", ["X", "c"], ["Z"])], {"c": np.float32(-2)}),
        NUMBER,
        r"Mul .*on column 'a'",
    ),
    "from a constant": (
        forest_behind([node("Sub", ["c", "X"], ["Z"])], {"c": np.float32(2)}),
        NUMBER,
        r"Sub .*on column 'a'",
    ),
    "imputed value": (
        forest_behind([node("Imputer", ["X"], ["Z"], imputed_value_floats=[1.0], replaced_value_float=-1.0)]),
        NUMBER,
        r"imputers that replace NaN, but .* of -1.0",
    ),
    "to integers": (
        forest_behind([node("Cast", ["X"], ["i"], to=7), node("Cast", ["i"], ["Z"], to=FLOAT)]),
        NUMBER,
        r"numbers that stay numbers, but .* of column 'a' to int64",
    ),
    "one-hot of a number": (
        forest_behind(
            [
                node("Cast", ["X"], ["i"], to=7),
                node("OneHotEncoder", ["i"], ["h"], cats_int64s=[0, 1]),
                node("Flatten", ["h"], ["Z"]),
            ]
        ),
        NUMBER,
        r"numbers that stay numbers",
    ),
    "unknown level": (
        forest_behind(
            [node("OneHotEncoder", ["a"], ["h"], cats_strings=["x"], zeros=0), node("Flatten", ["h"], ["Z"])],
            inputs=TEXT,
        ),
        LEVELS,
        r"does not know level 'y' of column 'a'",
    ),
    "text of a number": (
        forest_behind(
            [node("OneHotEncoder", ["a"], ["h"], cats_strings=["x"]), node("Flatten", ["h"], ["Z"])], inputs=TEXT
        ),
        NUMBER,
        r"takes continuous column 'a' as text",
    ),
    "number of a text": (
        forest_behind([node("Concat", ["a", "b"], ["Z"], axis=1)], inputs=[value(n, FLOAT, [None, 1]) for n in "ab"]),
        FeatureSpace([LEVELS["a"], Feature("b", kind="integer", lower=0, upper=3)]),
        r"float32 for column 'a'",
    ),
    "integers of floats": (
        forest_behind([node("Cast", ["a"], ["Z"], to=FLOAT)], inputs=[value("a", 7, [None, 1])]),
        NUMBER,
        r"integer columns in an input of integers, but .* takes column 'a', which is continuous",
    ),
    "wide inputs": (
        forest_behind([node("Concat", ["a", "b"], ["Z"], axis=1)], inputs=[value(n, FLOAT, [None, 2]) for n in "ab"]),
        NUMBER,
        r"one input \[N, 1\] per column, but .* has input 'a' of width 2",
    ),
    "rows mixed": (
        forest_behind([node("Reshape", ["X", "s"], ["Z"])], {"s": np.array([1, -1])}),
        NUMBER,
        r"rows kept apart, .* \[1, -1\]",
    ),
    "places beyond": (
        forest_behind([node("Gather", ["X", "p"], ["Z"], axis=1)], {"p": np.array([4])}),
        NUMBER,
        r"places below 1",
    ),
    "other names": (
        forest_behind([node("Concat", ["a", "b"], ["Z"], axis=1)], inputs=[value(n, FLOAT, [None, 1]) for n in "ab"]),
        NUMBER,
        r"column 'b' is missing",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_cannot_be_stated_are_refused_by_name(name):
    made, space, match = REFUSED[name]
    with pytest.raises(UnsupportedModelError, match=match):
        read(made, space)


def test_two_models_are_refused(numbers):
    frame, _ = plain(numbers, "float32")
    made = quietly(
        to_onnx,
        make_pipeline(Normalizer(), DecisionTreeClassifier(max_depth=2)).fit(frame.to_numpy(), numbers.two),
        frame.to_numpy()[:1],
    )
    with pytest.raises(UnsupportedModelError, match="has Normalizer"):
        open_model(made)
    split = quietly(
        onnxmltools.convert_lightgbm,
        lightgbm.LGBMRegressor(n_estimators=4, verbose=-1).fit(frame.to_numpy(), numbers.value),
        initial_types=[("X", ToolsFloat([None, 4]))],
        split=2,
    )
    with pytest.raises(UnsupportedModelError, match=r"has Sum \(node 'sumtree2'\)"):
        open_model(split)


def test_rows_that_do_not_fit_are_refused():
    opened = open_model(
        forest_behind(
            [node("OneHotEncoder", ["a"], ["h"], cats_strings=["x"]), node("Flatten", ["h"], ["Z"])], inputs=TEXT
        )
    )

    assert opened.predict(pd.DataFrame({"a": ["x", "y"]})).tolist() == [1, 0]
    with pytest.raises(UnsupportedModelError, match="text for column 'a'"):
        opened.predict(pd.DataFrame({"a": [1, 2]}))
