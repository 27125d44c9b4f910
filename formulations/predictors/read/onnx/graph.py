"""An ONNX graph as the reader walks it: who makes a tensor, what is constant, and how to run a part of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.read.onnx.validate import ValidatedModel

__all__ = ["DTYPES", "PASSING", "Graph", "Part", "attributes", "title"]

#: NumPy's name of each type that a table's tensor may have.
DTYPES: Final[Mapping[int, str]] = {
    TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64", TensorProto.INT64: "int64", TensorProto.INT32: "int32",
    TensorProto.BOOL: "bool", TensorProto.STRING: "object",
}  # fmt: skip
#: Operators that hand on the numbers that they are given.
PASSING: Final = ("Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")


_FLOATS: Final = (
    "FeatureVectorizer", "LinearRegressor", "Normalizer", "OneHotEncoder", "Scaler", "TreeEnsembleRegressor",
)  # fmt: skip
_TRUTHS: Final = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not")
_CLASSIFIERS: Final = ("LinearClassifier", "TreeEnsembleClassifier")


def _kind_of(array: NDArray[Any]) -> str:
    return "object" if array.dtype.kind in "OUS" else str(array.dtype)


def _label_type(at: Mapping[str, Any], given: str) -> str:
    """Return the type of the labels that a classifier or LabelEncoder gives."""
    if "values_tensor" in at:
        return _kind_of(at["values_tensor"])
    if at.get("values_floats"):
        return "float32"
    if at.get("classes_strings"):  # ai.onnx.ml 1: text to numbers or back
        return "int64" if given == "object" else "object"
    return "object" if at.get("values_strings") or at.get("classlabels_strings") else "int64"


def attributes(node: NodeProto) -> dict[str, Any]:
    """Return a node's attributes: numbers, lists, text as str, tensors as arrays."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if isinstance(value, TensorProto):
            value = numpy_helper.to_array(value)
        elif isinstance(value, bytes):
            value = value.decode(errors="replace")
        elif isinstance(value, Sequence) and value and isinstance(value[0], bytes):
            value = [text.decode(errors="replace") for text in value]
        found[attribute.name] = value
    return found


def title(node: NodeProto) -> str:
    """Return how errors call a node."""
    if node.name:
        return f"{node.op_type} (node {node.name!r})"
    return f"{node.op_type} (makes {node.output[0]!r})"


@final
@dataclass(frozen=True)
class Graph:
    """A checked model, indexed. Tensors that depend on no input are constants."""

    source: ValidatedModel

    @cached_property
    def constants(self) -> dict[str, NDArray[Any]]:
        """Initializers, Constant nodes, and what passing operators make of them."""
        graph = self.source.model.graph
        found = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                found[node.output[0]] = np.asarray(next(iter(attributes(node).values())))
            elif node.op_type == "Identity" and node.input[0] in found:
                found[node.output[0]] = found[node.input[0]]
        return found

    @cached_property
    def nodes(self) -> tuple[NodeProto, ...]:
        """Nodes that compute something of the inputs, in order."""
        return tuple(node for node in self.source.model.graph.node if node.output[0] not in self.constants)

    @cached_property
    def inputs(self) -> tuple[Any, ...]:
        """The inputs that a user gives."""
        return tuple(value for value in self.source.model.graph.input if value.name not in self.constants)

    @cached_property
    def makers(self) -> dict[str, NodeProto]:
        """The node behind each computed tensor."""
        return {name: node for node in self.nodes for name in node.output if name}

    @cached_property
    def types(self) -> dict[str, str]:
        """NumPy's name of the type of each tensor; "" of types that no table has."""
        found = {name: _kind_of(array) for name, array in self.constants.items()}
        found |= {value.name: DTYPES.get(value.type.tensor_type.elem_type, "") for value in self.inputs}
        for node in self.nodes:
            at = attributes(node)
            made = found.get(node.input[0], "")
            if node.op_type == "Cast":
                made = DTYPES.get(at["to"], "")
            elif node.op_type in _FLOATS:
                made = "float32"
            elif node.op_type in _TRUTHS:
                made = "bool"
            elif node.op_type in _CLASSIFIERS or node.op_type == "LabelEncoder":
                made = _label_type(at, made)
            elif node.op_type == "ArgMax":
                made = "int64"
            found.update(dict.fromkeys(node.output, made))
            if node.op_type in _CLASSIFIERS:
                found[node.output[1]] = "float32"
        return found

    def readers(self, name: str) -> list[NodeProto]:
        """Return the nodes that read a tensor."""
        return [node for node in self.nodes if name in node.input]

    def data(self, node: NodeProto) -> list[str]:
        """Return the inputs of a node that are no constants."""
        return [name for name in node.input if name and name not in self.constants]

    def before(self, names: Sequence[str], stop: Sequence[str] = ()) -> list[NodeProto]:
        """Return the nodes that the named tensors depend on, in order; tensors in ``stop`` are taken as given."""
        needed = set(names) - set(stop)
        found = []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                found.append(node)
                needed |= set(self.data(node)) - set(stop)
        return found[::-1]

    def part(self, given: Sequence[str], wanted: Sequence[str]) -> Part:
        """Return the graph between some tensors and others as a model of its own."""
        model = self.source.model
        nodes = self.before(wanted, given)
        read = {name for node in nodes for name in node.input} | set(wanted)
        fixed = [node for node in model.graph.node if node.output[0] in self.constants]
        declared = {value.name: value for value in self.inputs}
        for name in given:
            if not self.types[name]:
                raise self.source.refuse("tensors of usual types", f"has {name!r} of another", "Export it in float32.")
        inputs = [
            declared[name]
            if name in declared
            else helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(self.types[name])), None)
            for name in given
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in wanted]
        kept = [tensor for tensor in model.graph.initializer if tensor.name in read or fixed]
        graph = helper.make_graph([*fixed, *nodes], "part", inputs, outputs, kept)
        cut = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
        return Part(self.source.name, cut, tuple(given), tuple(wanted))


@final
@dataclass(frozen=True)
class Part:
    """A model that runs: by onnxruntime where it is installed, else by the reference evaluator of onnx.

    onnxruntime gets one thread, because it adds up trees in the order of the file only then.
    """

    name: str
    model: ModelProto
    given: tuple[str, ...]
    wanted: tuple[str, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the running session behind: it cannot cross a process boundary."""
        return {name: value for name, value in self.__dict__.items() if name != "_session"}

    def run(self, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the wanted tensors for the given ones."""
        feeds = dict(zip(self.given, arrays, strict=True))
        if feeds.keys() >= set(self.wanted):  # onnxruntime 1.20 hands out freed memory for an output that is an input
            return [feeds[name] for name in self.wanted]
        results = self._safely(lambda: self._session.run(list(self.wanted), feeds))
        return [np.asarray(array) for array in results]

    def load(self) -> Part:
        """Refuse now what the runtime cannot load."""
        self._safely(lambda: self._session)
        return self

    def _safely(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # the runtimes' own errors have no common class
            raise refuse(
                "a graph that its runtime can run", f"{self.name} fails ({' '.join(str(error).split())[:200]})",
                "Export it anew, with another target_opset if need be.",
            ) from error  # fmt: skip

    @cached_property
    def _session(self) -> Any:
        if importlib.util.find_spec("onnxruntime") is None:
            from onnx.reference import ReferenceEvaluator

            return ReferenceEvaluator(self.model)
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(self.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
