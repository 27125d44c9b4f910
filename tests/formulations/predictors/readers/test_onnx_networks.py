"""Networks as PyTorch, Keras and others export them, built by hand: scores, labels, levels, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from onnx import ModelProto
from onnx_models import DOUBLE, INT64, STRING, dense, keras_net, model, node, run, torch_net, value

from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

ROWS = np.random.default_rng(5).normal(size=(2000, 3)).astype("f4") * 2
SPACE = FeatureSpace([Feature(name, kind="continuous", lower=-5, upper=5) for name in "abc"])


def agree(given: ModelProto, kind=ReluNetwork):
    """Values to float32's rounding; labels wherever it does not decide."""
    opened = open_model(given.SerializeToString())
    core, said = opened.core, run(given, ROWS)
    assert isinstance(core, kind)
    scores = core.score(ROWS)
    if core.labels is None:
        np.testing.assert_allclose(scores, said[0].ravel(), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(opened.predict(ROWS), said[0].ravel())
        return core
    predicted = opened.predict(ROWS)
    two = np.sort(scores, axis=1) if scores.ndim == 2 else np.stack([scores, np.full(len(scores), core.level)], axis=1)
    clear = np.abs(two[:, -1] - two[:, -2]) > 1e-4
    assert clear.mean() > 0.99
    assert set(predicted.tolist()) == set(core.labels)
    np.testing.assert_array_equal(core.predict(ROWS)[clear], predicted[clear])
    return core


@pytest.mark.parametrize("exporter", [torch_net, keras_net])
@pytest.mark.parametrize("sizes", [[3, 8, 1], [3, 6, 5, 1]])
def test_regressors(exporter, sizes):
    core = agree(exporter(*dense(sizes)))

    assert core.dtype == "float32"
    assert [w.shape for w in core.weights] == [(b, a) for a, b in pairwise(sizes)]
    np.testing.assert_array_equal(core.weights[0], dense(sizes)[0][0].T)


@pytest.mark.parametrize("exporter", [torch_net, keras_net])
def test_one_sigmoid_is_two_labels_and_rounds_as_the_runtime_does(exporter):
    given = exporter(*dense([3, 8, 1], 4), ["Sigmoid"])
    core = agree(given)
    tail = model([node("Sigmoid", ["X"], ["y"])], 1, [value("y")])
    ends = np.nextafter(np.float32(core.level), np.float32([-1, 1]))

    assert (core.labels, core.decision, core.probability) == ((0, 1), "positive", "logistic")
    assert core.level > 0
    assert (run(tail, ends[:, None])[0].ravel() > 0.5).tolist() == [False, True]
    shares = open_model(given).predict_proba(ROWS)
    np.testing.assert_allclose(shares[:, 1], run(given, ROWS)[0].ravel())
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.parametrize("exporter", [torch_net, keras_net])
def test_softmax_of_several(exporter):
    core = agree(exporter(*dense([3, 8, 4]), ["Softmax"]))

    assert (core.labels, core.decision, core.n_scores) == ((0, 1, 2, 3), "argmax", 4)


def test_softmax_of_two_is_one_score_with_a_probability():
    weights, biases = dense([3, 8, 2])
    core = agree(torch_net(weights, biases, ["Softmax"]))

    assert (core.labels, core.probability, core.n_scores) == ((0, 1), "logistic", 1)
    np.testing.assert_allclose(core.weights[1], (weights[1][:, 1].astype(float) - weights[1][:, 0])[None])


def test_a_single_layer_is_linear():
    assert agree(torch_net(*dense([3, 1]), ["Sigmoid"]), Affine).probability == "logistic"
    assert agree(torch_net(*dense([3, 4]), ["Softmax"]), Affine).n_scores == 4


def test_a_label_of_its_own_with_text_for_classes():
    weights, biases = dense([3, 5, 3])
    made = torch_net(weights, biases, ["Softmax"])
    made.graph.node.extend(
        [
            node("ArgMax", ["e0"], ["place"], axis=1, keepdims=0),
            node("LabelEncoder", ["place"], ["label"], keys_int64s=[0, 1, 2], values_strings=["low", "mid", "top"]),
        ]
    )
    made.graph.output.insert(0, value("label", STRING, [None]))

    assert agree(made).labels == ("low", "mid", "top")


def test_the_last_of_equal_scores():
    made = torch_net(*dense([3, 5, 3]))
    made.graph.node.append(node("ArgMax", ["g1"], ["label"], axis=1, keepdims=0, select_last_index=1))
    made.graph.output[0].CopyFrom(value("label", INT64, [None]))

    assert agree(made).decision == "argmax_last"


def test_a_threshold_of_its_own():
    made = torch_net(*dense([3, 5, 1], 4), ["Sigmoid"])
    made.graph.initializer.add(name="cut", data_type=1, dims=[], float_data=[0.8])
    made.graph.node.extend([node("Greater", ["e0", "cut"], ["over"]), node("Cast", ["over"], ["label"], to=INT64)])
    made.graph.output.insert(0, value("label", INT64))
    core = agree(made)

    assert core.level == pytest.approx(np.log(0.8 / 0.2), rel=1e-5)
    assert core.probability == "logistic"


def test_affine_operators_between_layers_are_multiplied_out():
    rng = np.random.default_rng(3)
    constants = {
        "w": rng.normal(size=(3, 4)).astype("f4"),
        "c": rng.normal(size=4).astype("f4"),
        "s": np.float32(-2.0),
        "v": rng.normal(size=(4, 2)).astype("f4"),
        "d": np.array([[0.5, 3.0]], "f4"),
        "u": rng.normal(size=(2, 1)).astype("f4"),
        "one": np.ones((1, 1), "f4"),
        **{name: rng.uniform(0.5, 2.0, 4).astype("f4") for name in ("scale", "shift", "mean", "var")},
    }
    nodes = [
        node("MatMul", ["X", "w"], ["t1"]),
        node("Sub", ["c", "t1"], ["t2"]),
        node("Mul", ["t2", "s"], ["t3"]),
        node("BatchNormalization", ["t3", "scale", "shift", "mean", "var"], ["t4"], epsilon=1e-3),
        node("Relu", ["t4"], ["t5"]),
        node("Dropout", ["t5"], ["t6"]),
        node("Gemm", ["t6", "v"], ["t7"], alpha=0.5),
        node("Div", ["t7", "d"], ["t8"]),
        node("Identity", ["t8"], ["t9"]),
        node("MatMul", ["t9", "u"], ["t10"]),
        node("Gemm", ["t10", "one", "one"], ["t11"], beta=3.0),
        node("Relu", ["t11"], ["y"]),
    ]
    core = agree(model(nodes, 3, [value("y")], constants))

    assert [w.shape for w in core.weights] == [(4, 3), (1, 4), (1, 1)]


def test_standardisation_in_the_graph_is_read_as_it_rounds():
    """Before the first matrix, so that a large mean does not cost the digits of a small spread."""
    weights, biases = dense([3, 4, 1])
    made = torch_net(weights, biases)
    constants = {"mean": np.float32([1000.0, 0.5, 0.0]), "std": np.float32([0.01, 2.0, 1.0])}
    before = model([node("Sub", ["X", "mean"], ["s"]), node("Div", ["s", "std"], ["z"])], 3, [value("z")], constants)
    made.graph.node[0].input[0] = "z"
    for place, first in enumerate(before.graph.node):
        made.graph.node.insert(place, first)
    made.graph.initializer.extend(before.graph.initializer)
    space = FeatureSpace([Feature("a", kind="continuous", lower=999.9, upper=1000.1), *(SPACE[n] for n in "bc")])
    predictor = read(made, space)
    rows = np.random.default_rng(0).uniform([999.9, -5, -5], [1000.1, 5, 5], size=(500, 3))

    assert [step.operation for step in predictor.encoding.columns[0].steps] == ["cast", "subtract", "divide"]
    np.testing.assert_array_equal(predictor.encoding.matrix(rows), run(before, rows.astype("f4"))[0])
    np.testing.assert_allclose(predictor.score(rows), run(made, rows.astype("f4"))[0].ravel(), rtol=1e-4, atol=1e-4)


def test_a_negative_scale_before_the_first_matrix_joins_the_layer():
    made = torch_net(*dense([3, 4, 1]))
    made.graph.initializer.add(name="flip", data_type=1, dims=[3], float_data=[-1.0, 2.0, 0.5])
    made.graph.node[0].input[0] = "z"
    made.graph.node.insert(0, node("Mul", ["flip", "X"], ["z"]))

    assert agree(made).weights[0][0, 0] == -dense([3, 4, 1])[0][0][0, 0]


def test_double_precision():
    weights, biases = dense([3, 4, 1], dtype=np.float64)
    made = torch_net(weights, biases, ["Sigmoid"])
    for entry in (*made.graph.input, *made.graph.output):
        entry.type.tensor_type.elem_type = DOUBLE
    core = open_model(made).core

    assert core.dtype == "float64"
    assert 0 < core.level < 1e-15
    np.testing.assert_allclose(core.score(ROWS), read(made, SPACE).score(ROWS.astype(float)), rtol=1e-12)


def tail(operator, **at):
    weights, biases = dense([3, 4, 1])
    made = torch_net(weights, biases)
    made.graph.node.append(node(operator, ["g1"], ["y"], **at))
    made.graph.output[0].name = "y"
    return made


def middle(operator):
    made = torch_net(*dense([3, 4, 1]))
    made.graph.node[1].op_type = operator
    return made


def trained():
    made = torch_net(*dense([3, 4, 1]))
    constants = {name: np.ones(4, "f4") for name in ("scale", "shift", "mean", "var")}
    made.graph.initializer.extend(model([], 3, [], constants).graph.initializer)
    made.graph.node[1].CopyFrom(node("BatchNormalization", ["g0", *constants], ["r0", "m", "v"], training_mode=1))
    return made


REFUSED = {
    "Tanh": (
        middle("Tanh"),
        r"layers that are piecewise linear, but .* has Tanh \(which makes 'r0'\). Train the network with",
    ),
    "LeakyRelu": (middle("LeakyRelu"), r"has LeakyRelu .*. Train the network with ReLU activations"),
    "Elu": (middle("Elu"), r"has Elu"),
    "Conv": (middle("Conv"), r"a dense network over the columns of a table, but .* has Conv"),
    "Sigmoid inside": (middle("Sigmoid"), r"piecewise linear, but .* has Sigmoid \(makes 'r0'\) inside"),
    "Exp": (tail("Exp"), r"piecewise linear, but .* has Exp"),
    "Abs": (tail("Abs"), r"an output that is a score, its Sigmoid or its Softmax, but .* has Abs \(makes 'y'\)"),
    "several": (torch_net(*dense([3, 4, 2])), r"gives 2 numbers without Softmax. If they are logits, append Softmax"),
    "several sigmoids": (
        torch_net(*dense([3, 4, 2]), ["Sigmoid"]),
        r"one label per row, but .* gives 2 numbers that end in Sigmoid",
    ),
    "training": (trained(), r"BatchNormalization at inference, but .* has training_mode"),
    "nothing": (
        model([node("Relu", ["X"], ["y"])], 3, [value("y")]),
        r"one network, linear model or tree ensemble, but .* none",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_relu_network_is_refused(name):
    given, match = REFUSED[name]
    with pytest.raises(UnsupportedModelError, match=match) as caught:
        open_model(given)
    assert "the ONNX model" in str(caught.value)


def test_other_columns_than_the_space_has():
    made = torch_net(*dense([3, 4, 1]))
    few = FeatureSpace([SPACE["a"], SPACE["b"]])
    words = FeatureSpace([SPACE["a"], SPACE["b"], Feature("job", kind="categorical", levels=("x", "y", "z"))])

    with pytest.raises(UnsupportedModelError, match="as many columns in the space as the model was fitted on, 3"):
        read(made, few)
    with pytest.raises(
        TypeError, match="'job' is categorical with level 'x'. Code the levels as numbers, or one 0/1 column"
    ):
        read(made, words)
