"""A trained predictor as an ONNX file: raw columns in, their encoding inside, label and probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.space.feature import Feature
from ceopt.solvers.errors import UnsupportedModelError
from ceopt.training.networks import PredictorNetwork, as_relu

#: Operator sets and format that runtimes of the last years know.
_OPSETS: Final = {"": 15, "ai.onnx.ml": 3}
_IR_VERSION: Final = 8


def onnx_bytes(who: str, network: PredictorNetwork) -> bytes:
    r"""Return a predictor as an ONNX model.

    ================================= ============================ ===================================================
    input, (n, 1), named as a column  type                         encoded by
    ================================= ============================ ===================================================
    numbers                           double                       Sub, Div, and a Cast to single precision
    levels that are texts             string                       OneHotEncoder; LabelEncoder of two or ordered ones
    levels that are whole numbers     int64                        the same
    levels that are truth values      bool                         the same, behind a Cast
    levels with fractions             float                        LabelEncoder, then the same
    ================================= ============================ ===================================================

    ============= =========== ========================================================================================
    output        shape, type meaning
    ============= =========== ========================================================================================
    label         (n,)        as in y: string, int64, bool, or double for floats
    probabilities (n, K)      float, of the classes in ascending order
    ============= =========== ========================================================================================

    A unit of leaky ReLU leaves as two of ReLU, :math:`\\max(0, h) - 0.01 \\max(0, -h)`. An unseen level is an error of
    the runtime in a category, and gives NaN elsewhere.

    Parameters
    ----------
    who
        Who asks.
    network
        The predictor.

    Raises
    ------
    UnsupportedModelError
        Labels or levels that are neither text nor numbers of 64 bits nor truth values, or of several types.
    """
    graph = _OnnxWriter(network)
    blocks = []
    for feature, least, width in zip(network.columns.space, network.columns.least, network.columns.width, strict=True):
        if feature.is_finite:
            blocks.append(graph.levels(who, feature))
        else:
            blocks.append(graph.number(feature, float(least), float(width)))
    score = graph.layers(graph.node("Concat", blocks, axis=1))
    shares = graph.shares(score, n_classes=len(network.classes_))
    return graph.finished(graph.label(who, shares, network.classes_), shares)


def _kind_of(who: str, what: str, values: Sequence[Any]) -> type:
    """Return the type of levels or labels, as ONNX can hold them: str, bool, int or float."""
    for kinds in ((str,), (bool, np.bool_), (int, np.integer), (int, float, np.integer, np.floating)):
        apart = kinds[0] is not bool and any(isinstance(value, bool | np.bool_) for value in values)
        if not apart and all(isinstance(value, kinds) and _fits(value) for value in values):
            return kinds[0] if len(kinds) < 4 else float
    but = f"{what} are {', '.join(map(repr, values[:3]))}"
    needs = "texts, numbers of 64 bits or truth values to write an ONNX file"
    raise UnsupportedModelError(who, needs, but, "Rename them and train again.")


def _fits(value: Any) -> bool:
    """Return whether ONNX can hold a value, if it is a whole number."""
    limits = np.iinfo(np.int64)
    return not isinstance(value, int | np.integer) or limits.min <= int(value) <= limits.max


@final
class _OnnxWriter:
    """An ONNX graph that grows node by node; ``onnx`` is the library, which is imported on use."""

    def __init__(self, network: PredictorNetwork) -> None:
        import onnx

        self.onnx = onnx
        self.network = network
        self.taken = set(network.columns.space.names)
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def name(self, wanted: str) -> str:
        """Return a name that nothing has yet."""
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted

    def constant(self, values: Any, dtype: Any) -> str:
        """Return the name of an array."""
        name = self.name(f"constant_{len(self.constants)}")
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def node(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Return the name of what an operator makes."""
        domain = "ai.onnx.ml" if operator in {"LabelEncoder", "OneHotEncoder"} else ""
        name = self.name(f"{operator}_{len(self.nodes)}")
        self.nodes.append(
            self.onnx.helper.make_node(operator, list(inputs), [name], name=name, domain=domain, **attributes)
        )
        return name

    def given(self, name: str, kind: int) -> str:
        """Return the name of an input (n, 1)."""
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [None, 1]))
        return name

    def _type_of(self, kind: type, number: str) -> int:
        """Return the ONNX type of levels or labels; floats are written as ``number``."""
        names = {str: "STRING", bool: "BOOL", int: "INT64", float: number}
        return int(self.onnx.TensorProto.DataType.Value(names[kind]))

    # ---- columns -----------------------------------------------------------------------------------------------------
    def number(self, feature: Feature, least: float, width: float) -> str:
        """Return a number as a share of its range, (n, 1)."""
        raw = self.given(feature.name, self.onnx.TensorProto.DOUBLE)
        above = self.node("Sub", [raw, self.constant([least], np.float64)])
        share = self.node("Div", [above, self.constant([width], np.float64)])
        return self.node("Cast", [share], to=self.onnx.TensorProto.FLOAT)

    def levels(self, who: str, feature: Feature) -> str:
        """Return levels: a column each (n, L) of a category, else a share of the ranks (n, 1)."""
        kind = _kind_of(who, f"the levels of {feature.name!r}", feature.levels)
        values = list(feature.levels)
        count = len(values)
        raw = self.given(feature.name, self._type_of(kind, "FLOAT"))
        if kind is bool:
            raw = self.node("Cast", [raw], to=self.onnx.TensorProto.INT64)
            kind = int
            values = list(map(int, values))
        keys = {str: "keys_strings", int: "keys_int64s", float: "keys_floats"}[kind]
        if feature.kind != "categorical":
            ranks = (np.arange(count) / (count - 1)).astype(np.float32).tolist()
            return self.node("LabelEncoder", [raw], **{keys: values}, values_floats=ranks, default_float=float("nan"))
        if kind is float:
            raw = self.node("LabelEncoder", [raw], keys_floats=values, values_int64s=range(count), default_int64=-1)
            values = list(range(count))
        known = {"cats_strings" if kind is str else "cats_int64s": values}
        shares = self.node("OneHotEncoder", [raw], **known, zeros=0)
        return self.node("Reshape", [shares, self.constant([-1, count], np.int64)])

    # ---- network -----------------------------------------------------------------------------------------------------
    def layers(self, h: str) -> str:
        """Return the scores (n, 1) or (n, K)."""
        network = self.network
        *hidden, last = as_relu([*network.layers["encoder"], *network.layers["head"]], network.activation)
        for weights, biases in hidden:
            h = self.node("Relu", [self._affine(h, weights, biases)])
        return self._affine(h, *last)

    def _affine(self, h: str, weights: NDArray[Any], biases: NDArray[Any]) -> str:
        return self.node("Gemm", [h, self.constant(weights, np.float32), self.constant(biases, np.float32)])

    def shares(self, score: str, *, n_classes: int) -> str:
        """Return the probabilities (n, K)."""
        if n_classes > 2:
            return self.node("Softmax", [score], axis=1)
        second = self.node("Sigmoid", [score])
        first = self.node("Sub", [self.constant([1.0], np.float32), second])
        return self.node("Concat", [first, second], axis=1)

    def label(self, who: str, shares: str, classes: NDArray[Any]) -> str:
        """Return the label (n,) of the greatest probability."""
        values = classes.tolist()
        kind = _kind_of(who, "the labels", values)
        place = self.node("ArgMax", [shares], axis=1, keepdims=0)
        if kind is bool:
            return self.node("Cast", [place], to=self.onnx.TensorProto.BOOL)
        places = range(len(values))
        if kind is str:
            return self.node("LabelEncoder", [place], keys_int64s=places, values_strings=values)
        whole = list(map(int, values))  # classes that are floats are whole
        label = self.node("LabelEncoder", [place], keys_int64s=places, values_int64s=whole)
        if kind is float:
            return self.node("Cast", [label], to=self.onnx.TensorProto.DOUBLE)
        return label

    def finished(self, label: str, shares: str) -> bytes:
        """Return the model, its outputs named."""
        classes = self.network.classes_.tolist()
        outputs = []
        for wanted, made, kind, shape in (
            ("label", label, self._type_of(type(classes[0]), "DOUBLE"), [None]),
            ("probabilities", shares, self.onnx.TensorProto.FLOAT, [None, len(classes)]),
        ):
            name = self.name(wanted)
            self.nodes.append(self.onnx.helper.make_node("Identity", [made], [name], name=name))
            outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))
        graph = self.onnx.helper.make_graph(self.nodes, "predictor", self.inputs, outputs, self.constants)
        opsets = [self.onnx.helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
        model = self.onnx.helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="ceopt")
        self.onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())
