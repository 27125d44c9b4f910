"""Multi-layer perceptrons beyond the battery: depths, float widths, the boundary of each decision, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from library_rows import check
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.readers.sklearn import read_estimator
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning"),  # names such as age are no matter here
]

FEW: dict[str, Any] = {"hidden_layer_sizes": (7,), "max_iter": 60, "learning_rate_init": 0.02, "random_state": 0}
SHAPES = {
    "no hidden layer": FEW | {"hidden_layer_sizes": ()},
    "one layer": FEW,
    "four layers": FEW | {"hidden_layer_sizes": (9, 3, 8, 6), "max_iter": 200},
    "identity": FEW | {"hidden_layer_sizes": (6, 4), "activation": "identity"},
    "stopped early": FEW | {"early_stopping": True, "n_iter_no_change": 20, "max_iter": 200},
    "lbfgs": FEW | {"solver": "lbfgs", "max_iter": 15},
    "sgd": FEW | {"solver": "sgd", "learning_rate": "adaptive", "momentum": 0.5},
    "weighted": FEW | {"alpha": 3.0, "warm_start": True},
}


@pytest.mark.long(every=5)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_networks_of_every_depth_and_training(numbers, shape, classes):
    kind = MLPClassifier if classes else MLPRegressor
    scaler = StandardScaler().fit(numbers.frame)
    labels = {0: numbers.value, 2: numbers.two, 3: numbers.three}[classes]
    if shape == "stopped early" and classes:
        labels = np.unique(labels, return_inverse=True)[1]  # scikit-learn 1.8 cannot stop early on text
    estimator = kind(**SHAPES[shape]).fit(scaler.transform(numbers.frame), labels)
    model = make_pipeline(scaler, estimator)
    if classes:
        assert len(set(model.predict(numbers.frame))) == classes

    check(model, numbers, array=False, steps=model[:-1], estimator=estimator)

    core = read(model, numbers.space).core
    assert core.activations == (SHAPES[shape].get("activation", "relu"),) * len(SHAPES[shape]["hidden_layer_sizes"])
    assert core.decision == {0: "value", 2: "positive", 3: "argmax"}[classes]


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_agree_next_to_the_boundary_between_classes(numbers, classes):
    """On segments between rows of different classes, as close to where the class changes as rounding allows."""
    target = numbers.two if classes == 2 else numbers.three
    model = make_pipeline(StandardScaler(), MLPClassifier(**FEW)).fit(numbers.frame, target)
    predictor = read(model, numbers.space)
    rows = numbers.frame.to_numpy(dtype=float)
    predicted = model.predict(numbers.frame)
    pairs = [(a, b) for a in range(40) for b in range(a, 40) if predicted[a] != predicted[b]][:120]
    assert len(pairs) > 50
    start, end = (rows[[pair[k] for pair in pairs]] for k in (0, 1))

    def at(share: Any) -> np.ndarray[Any, Any]:
        return np.asarray(start + share[:, None] * (end - start))

    def changed(share: Any) -> np.ndarray[Any, Any]:
        now = model.predict(pd.DataFrame(at(share), columns=numbers.frame.columns))
        return np.asarray(now != predicted[[a for a, _ in pairs]])

    low, high = np.zeros(len(pairs)), np.ones(len(pairs))
    for _ in range(32):
        middle = (low + high) / 2
        low, high = np.where(changed(middle), low, middle), np.where(changed(middle), middle, high)
    for share in (low, high, low - 1e-7, high + 1e-7):
        near = at(share)
        labels = predictor.core.predict(predictor.encoding.matrix(near))
        np.testing.assert_array_equal(labels, model.predict(pd.DataFrame(near, columns=numbers.frame.columns)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_classes_change_where_the_librarys_own_probability_exceeds_one_half(dtype):
    """Of scores just above 0 the probability rounds to 0.5, which is the first class; both neighbours are exact."""
    frame = pd.DataFrame({"x": np.array([-1.0, 1.0], dtype=dtype)})
    model = MLPClassifier(hidden_layer_sizes=(), max_iter=1).fit(frame, ["a", "b"])
    model.coefs_[0][:], model.intercepts_[0][:] = 1.0, 0.0
    assert model.coefs_[0].dtype == dtype

    core = read_estimator(model, dtype)

    width = np.dtype(dtype).type
    last = width(core.level)
    if last > core.level:
        last = np.nextafter(last, width(-1.0))
    assert 0.0 < last < 2 * np.finfo(dtype).eps
    values = np.array([last, np.nextafter(last, width(1.0)), np.nextafter(last, width(-1.0)), 0, 1, -1], dtype=dtype)
    assert model.predict(pd.DataFrame({"x": values}))[:3].tolist() == ["a", "b", "a"]
    np.testing.assert_array_equal(core.predict(values[:, None]), model.predict(pd.DataFrame({"x": values})))
    share = model.predict_proba(pd.DataFrame({"x": values}))[:, 1]
    np.testing.assert_array_equal(core.probability(core.score(values[:, None])), share.astype(float))


def test_equal_scores_of_several_classes_are_the_first(numbers):
    model = MLPClassifier(hidden_layer_sizes=(3,), max_iter=1).fit(numbers.frame, numbers.three)
    for array in (*model.coefs_, *model.intercepts_):
        array[:] = 0.0

    core = read(model, numbers.space).core

    assert set(model.predict(numbers.frame)) == set(core.predict(numbers.frame.to_numpy())) == {"low"}


@pytest.mark.parametrize(("fitted", "given"), [("float32", "float32"), ("float32", "float64"), ("float64", "float32")])
def test_the_wider_of_weights_and_input_is_the_width(data, fitted, given):
    few = data.only("job", "home", "size")
    hot = OneHotEncoder(dtype=np.dtype(fitted), sparse_output=False).fit(few.frame)
    estimator = MLPClassifier(**FEW).fit(hot.transform(few.frame), data.two)
    steps = clone(hot).set_params(dtype=np.dtype(given)).fit(few.frame)
    model = Pipeline([("hot", steps), ("network", estimator)])

    check(model, few, array=False, steps=steps, estimator=estimator)

    assert read(model, few.space).core.dtype == max(fitted, given)


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (3, 7), (1.0, 2.0)])
def test_labels_of_any_type(numbers, labels):
    target = np.array(labels)[(numbers.value > 0).astype(int)]
    model = make_pipeline(StandardScaler(), MLPClassifier(**FEW)).fit(numbers.frame, target)

    predictor = read(model, numbers.space)

    assert [(type(label), label) for label in predictor.labels] == [(type(label), label) for label in labels]
    predicted = predictor.core.predict(predictor.encoding.matrix(numbers.space.coordinates(numbers.frame)))
    np.testing.assert_array_equal(predicted, model.predict(numbers.frame))


def test_a_column_of_targets_is_one_output(numbers):
    with pytest.warns(Warning, match="column-vector"):
        model = MLPRegressor(**FEW).fit(numbers.frame, numbers.value[:, None])

    check(model, numbers, array=False, steps=None, estimator=model)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (MLPClassifier(activation="tanh"), r"MLPClassifier has activation='tanh'. Fit it with activation='relu'"),
        (MLPClassifier(activation="logistic"), r"MLPClassifier has activation='logistic'. Fit it with activat"),
        (MLPRegressor(activation="tanh"), r"piecewise linear, but MLPRegressor has activation='tanh'"),
        (MLPRegressor(loss="poisson"), r"MLPRegressor has loss='poisson'. Fit it with loss='squared_error' on the log"),
    ],
)
def test_what_is_not_piecewise_linear_is_refused(numbers, model, match):
    classifier = isinstance(model, MLPClassifier)
    model.set_params(hidden_layer_sizes=(3,), max_iter=1)
    frame = numbers.frame / numbers.frame.abs().max()
    model.fit(frame, numbers.two if classifier else np.abs(numbers.value))

    with pytest.raises(UnsupportedModelError, match=match):
        read(model, FeatureSpace.infer(frame))


def test_several_outputs_and_one_class_are_refused(numbers):
    frame, values = numbers.frame, np.column_stack([numbers.value, -numbers.value])
    with pytest.raises(UnsupportedModelError, match=r"one output, but MLPRegressor was fitted on 2. Fit one model per"):
        read(MLPRegressor(**FEW).fit(frame, values), numbers.space)
    with pytest.raises(UnsupportedModelError, match=r"one label per row, but MLPClassifier was fitted on several"):
        read(MLPClassifier(**FEW).fit(frame, (values > 0).astype(int)), numbers.space)
    with pytest.raises(UnsupportedModelError, match=r"MLPClassifier knows only 'a'"):
        read(MLPClassifier(**FEW).fit(frame, ["a"] * len(frame)), numbers.space)
    with pytest.raises(UnsupportedModelError, match=r"MLPClassifier is not fitted"):
        read(MLPClassifier(**FEW), numbers.space)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("name", "place"), [("coefs_", 0), ("coefs_", 1), ("intercepts_", 1)])
def test_weights_that_diverged_are_refused_by_layer(numbers, value, name, place):
    model = MLPRegressor(**FEW).fit(numbers.frame, numbers.value)
    getattr(model, name)[place].flat[-1] = value

    with pytest.raises(
        UnsupportedModelError, match=rf"MLPRegressor has {value} in {name}\[{place}\]. Its training div"
    ):
        read(model, numbers.space)


def test_columns_of_network_and_space_must_agree(data, numbers):
    model = MLPClassifier(**FEW).fit(numbers.frame, numbers.two)
    with pytest.raises(UnsupportedModelError, match=r"column 'tiny' is missing. Add it"):
        read(model, data.only("age", "income", "debt").space)
    with pytest.raises(UnsupportedModelError, match=r"column 'flag' is unknown to it. Remove it"):
        read(model, data.only("age", "income", "debt", "tiny", "flag").space)
    with pytest.raises(UnsupportedModelError, match=r"was fitted on, 4, but the space has 3"):
        read(model.fit(numbers.frame.to_numpy(), numbers.two), data.only("age", "income", "debt").space)
    turned = data.only(*numbers.frame.columns[::-1])
    predictor = read(model.fit(numbers.frame, numbers.two), turned.space)
    matrix = predictor.encoding.matrix(turned.space.coordinates(turned.frame))
    np.testing.assert_array_equal(matrix, numbers.frame.to_numpy())


def test_text_is_refused(data):
    few = data.only("age", "home")
    hot = make_column_transformer((OneHotEncoder(), ["home"]), remainder="passthrough")
    model = make_pipeline(hot, MLPClassifier(**FEW)).fit(few.frame, data.two)
    assert read(model, few.space).core.n_inputs == 3
    alone = MLPClassifier(**FEW).fit(few.frame[["age"]], data.two)
    text = FeatureSpace([Feature("age", kind="categorical", levels=("young", "old"))])
    with pytest.raises(UnsupportedModelError, match=r"a column is still text"):
        read(alone, text)
