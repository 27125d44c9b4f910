"""An ONNX graph as the reader walks it, and its columns before the model proper: one rule per operator.

A row of columns is an array of :class:`Column`, laid out as the tensor's numbers of one row, so that Concat, Gather and
Reshape do to the columns what they do to the numbers. Numbers get the graph's own steps in its own float width; a level
gets its table from the graph's own output. The graph runs on probe rows, and the result is compared bit for bit.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias, final

import numpy as np
import onnx
import pandas as pd
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ceopt.formulations.predictors.readers.model_input import Trace, refuse
from ceopt.formulations.predictors.readers.onnx.validate import ARITHMETIC, CLASSIFIERS, MADE, ValidatedModel
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import Step
from ceopt.formulations.space.space import FeatureSpace

# ==== An ONNX graph as the reader walks it: who makes a tensor, what is constant, and how to run a part of it =========

#: NumPy's name of each type that a table's tensor may have.
DTYPES: Final[Mapping[int, str]] = {
    TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64", TensorProto.INT64: "int64", TensorProto.INT32: "int32",
    TensorProto.BOOL: "bool", TensorProto.STRING: "object",
}  # fmt: skip


def _kind_of(array: NDArray[Any]) -> str:
    return "object" if array.dtype.kind in "OUS" else str(array.dtype)


def _label_type(at: Mapping[str, Any], given: str) -> str:
    """Return the type of the labels that a classifier or LabelEncoder gives."""
    if "values_tensor" in at:
        return _kind_of(at["values_tensor"])
    if at.get("values_floats"):
        return "float32"
    is_text = at.get("values_strings") or at.get("classlabels_strings")
    if at.get("classes_strings"):  # ai.onnx.ml 1: text to numbers or back
        is_text = given != "object"
    return "object" if is_text else "int64"


def attributes(node: NodeProto) -> dict[str, Any]:
    """Return a node's attributes: numbers, lists, text as str, tensors as arrays."""
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if isinstance(value, TensorProto):
            value = numpy_helper.to_array(value)
        elif isinstance(value, bytes):
            value = value.decode(errors="replace")
        elif isinstance(value, Sequence) and value and isinstance(value[0], bytes):
            value = [text.decode(errors="replace") for text in value]
        values[attribute.name] = value
    return values


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
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                constants[node.output[0]] = np.asarray(next(iter(attributes(node).values())))
            elif node.op_type == "Identity" and node.input[0] in constants:
                constants[node.output[0]] = constants[node.input[0]]
        return constants

    @cached_property
    def nodes(self) -> tuple[NodeProto, ...]:
        """Nodes that compute something of the inputs, in order."""
        return tuple(node for node in self.source.model.graph.node if node.output[0] not in self.constants)

    @cached_property
    def inputs(self) -> tuple[Any, ...]:
        """The inputs that a user gives."""
        return tuple(value for value in self.source.model.graph.input if value.name not in self.constants)

    @cached_property
    def names(self) -> list[str]:
        """Names of these inputs."""
        return [str(value.name) for value in self.inputs]

    @cached_property
    def widths(self) -> dict[str, int]:
        """The width of each input that declares one, else 0."""
        return {value.name: value.type.tensor_type.shape.dim[1].dim_value for value in self.inputs}

    @cached_property
    def outputs(self) -> list[str]:
        """Names of the tensors that the graph gives."""
        return [value.name for value in self.source.model.graph.output]

    @cached_property
    def makers(self) -> dict[str, NodeProto]:
        """The node behind each computed tensor."""
        return {name: node for node in self.nodes for name in node.output if name}

    @cached_property
    def types(self) -> dict[str, str]:
        """NumPy's name of the type of each tensor; "" of types that no table has."""
        types = {name: _kind_of(array) for name, array in self.constants.items()}
        types |= {value.name: DTYPES.get(value.type.tensor_type.elem_type, "") for value in self.inputs}
        for node in self.nodes:
            at = attributes(node)
            made = MADE.get(node.op_type, types.get(node.input[0], ""))
            if node.op_type == "Cast":
                made = DTYPES.get(at["to"], "")
            elif node.op_type in CLASSIFIERS or node.op_type == "LabelEncoder":
                made = _label_type(at, made)
            types.update(dict.fromkeys(node.output, made))
            if node.op_type in CLASSIFIERS:
                types[node.output[1]] = "float32"
        return types

    def of_type(self, operators: Collection[str]) -> list[NodeProto]:
        """Return the nodes of some operators."""
        return [node for node in self.nodes if node.op_type in operators]

    def readers(self, name: str) -> list[NodeProto]:
        """Return the nodes that read a tensor."""
        return [node for node in self.nodes if name in node.input]

    def data(self, node: NodeProto) -> list[str]:
        """Return the inputs of a node that are no constants."""
        return [name for name in node.input if name and name not in self.constants]

    def held(self, node: NodeProto) -> list[NDArray[Any]]:
        """Return the constants that a node reads."""
        return [self.constants[name] for name in node.input if name in self.constants]

    def before(self, names: Sequence[str], stop: Sequence[str] = ()) -> list[NodeProto]:
        """Return the nodes that the named tensors depend on, in order; tensors in ``stop`` are taken as given."""
        needed = set(names) - set(stop)
        nodes = []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                nodes.append(node)
                needed |= set(self.data(node)) - set(stop)
        return nodes[::-1]

    def part(self, given: Sequence[str], wanted: Sequence[str]) -> Part:
        """Return the graph between some tensors and others as a model of its own."""
        model = self.source.model
        nodes = self.before(wanted, given)
        read = {name for node in nodes for name in node.input} | set(wanted)
        fixed = [node for node in model.graph.node if node.output[0] in self.constants]
        declared = {value.name: value for value in self.inputs}
        inputs = []
        for name in given:
            if not self.types[name]:
                raise self.source.refuse("tensors of usual types", f"has {name!r} of another", "Export it in float32.")
            if name in declared:
                inputs.append(declared[name])
            else:
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.types[name]))
                inputs.append(helper.make_tensor_value_info(name, kind, None))
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
            return list(map(feeds.__getitem__, self.wanted))
        results = self._safely(lambda: self._session.run(list(self.wanted), feeds))
        return list(map(np.asarray, results))

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


# ==== The columns of an ONNX graph before its model proper: one rule per operator =====================================

Columns: TypeAlias = NDArray[Any]
_CAST: Final = Step("cast", dtype="float32")
_NAMES: Final = {"object": "text", "bool": "bool"}


@final
class OnnxColumns:
    """The first part of a graph as a step that the pipeline reader follows.

    Parameters
    ----------
    graph
        The whole graph.
    matrix
        The tensor that the model proper reads.
    feeds
        Rows as a user gives them -> one array per input of the graph.
    space
        The raw columns.
    """

    def __init__(
        self,
        graph: Graph,
        matrix: str,
        feeds: Callable[[Any], list[NDArray[Any]]],
        space: FeatureSpace,
        names: list[str] | None,
    ) -> None:
        self.graph = graph
        self.matrix = matrix
        self.feeds = feeds
        self.space = space
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif width := graph.inputs[0].type.tensor_type.shape.dim[1].dim_value:
            self.n_features_in_ = width

    def transform(self, rows: Any) -> NDArray[Any]:
        """Return the matrix that the model proper reads, (n, m)."""
        if not hasattr(self, "feature_names_in_") and rows.dtype == object:
            coordinates = self.space.coordinates(pd.DataFrame(rows, columns=list(self.space.names)))
            rows = Encoding.identity(self.space).matrix(coordinates)
        return self.graph.part(self.graph.names, [self.matrix]).run(*self.feeds(rows))[0]

    def columns(self, trace: Trace) -> list[Column]:
        """Return the columns of the matrix as functions of the raw ones."""
        known: dict[str, Columns] = {}
        if hasattr(self, "feature_names_in_"):
            for value, column in zip(self.graph.inputs, trace.columns, strict=True):
                known[value.name] = self._given(value, [column])
        else:
            value = self.graph.inputs[0]
            known[value.name] = self._given(value, Encoding.identity(self.space).columns)
        for node in self.graph.before([self.matrix]):
            read = list(map(known.__getitem__, self.graph.data(node)))
            known[node.output[0]] = COLUMNWISE[node.op_type](self, node, read)
        row = known[self.matrix]
        if row.ndim != 1:
            raise self.graph.source.refuse(
                "a matrix of columns", f"gives its model {row.ndim + 1} dimensions", "Export it anew."
            )
        return list(row)

    def refuse(self, node: NodeProto, needs: str, then: str, why: str = "") -> Exception:
        """Return the error about a node among the columns."""
        return self.graph.source.refuse(needs, f"has {title(node)} before its model{why}", then)

    def _given(self, value: Any, columns: Any) -> Columns:
        dtype = self.graph.types[value.name]
        row = []
        for column in columns:
            if column.table is not None:
                row.append(Column(column.feature, table=()))
                continue
            if dtype not in {"float32", "float64", "int64", "int32"}:
                raise self.graph.source.refuse(
                    "numbers as inputs for numeric columns",
                    f"takes {self.space[column.feature].kind} column {column.feature!r} as {_NAMES.get(dtype, 'else')}",
                    "Describe the column by its levels, as categorical or binary.",
                )  # fmt: skip
            if dtype.startswith("int") and self.space[column.feature].kind != "integer":
                raise self.graph.source.refuse(
                    "integer columns in an input of integers", f"takes column {column.feature!r}, which is continuous",
                    "Make its kind integer, or export the model with float inputs.",
                )  # fmt: skip
            row.append(Column(column.feature, steps=(_CAST,) if dtype == "float32" else ()))
        return as_row(row)


def check_columnwise(graph: Graph, matrix: str) -> None:
    """Refuse an operator before the model proper that is no function of one column each."""
    for node in reversed(graph.before([matrix])):
        if node.op_type in {"Sigmoid", "Softmax"}:
            raise graph.source.refuse(
                "layers that are piecewise linear",
                f"has {title(node)} inside",
                "Train the network with ReLU activations.",
            )
        if node.op_type not in COLUMNWISE:
            raise graph.source.refuse(
                "columns that depend on one raw column each", f"has {title(node)} before its model",
                "Apply it to the data before the model is fitted, or leave it out.",
            )  # fmt: skip


def as_row(columns: Any) -> Columns:
    """Return columns side by side as a row of objects."""
    row = np.empty(len(columns), dtype=object)
    row[:] = columns
    return row


def _numbers(columns: Columns, more: Callable[[Column, int], Sequence[Step]]) -> Columns:
    """Return the columns with more steps of those that are numbers, each given its place in the last dimension."""
    changed = columns.copy()
    for place, column in np.ndenumerate(columns):
        if column.table is None and column.feature is not None:
            changed[place] = dataclasses.replace(column, steps=(*column.steps, *more(column, place[-1])))
    return changed


def steps_of(node: NodeProto, constant: NDArray[Any], place: int, dtype: str) -> tuple[Step, ...] | None:
    """Return what an elementwise operator with a constant does to a number; None where it does not increase."""
    operand = np.asarray(constant).ravel()[min(place, constant.size - 1)]
    operation = ARITHMETIC[node.op_type]
    if operation in {"divide", "multiply"} and not operand > 0:
        return None
    return (Step(operation, np.dtype(dtype).type(operand), dtype),)


def _same(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:  # noqa: ARG001
    return given[0]


def _cast(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    target = DTYPES.get(attributes(node)["to"], "")
    source = step.graph.types.get(node.input[0], "")

    def steps(column: Column, place: int) -> Sequence[Step]:  # noqa: ARG001
        if target in {source, "float64"}:
            return ()
        if target == "float32":
            return (_CAST,)
        raise step.refuse(
            node, "numbers that stay numbers", "Cast the column before the model.",
            f" of column {column.feature!r} to {target or 'another type'}",
        )  # fmt: skip

    return _numbers(given[0], steps)


def _arithmetic(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    constant = step.graph.held(node)[0]
    dtype = step.graph.types.get(node.output[0], "")
    columns = given[0]
    swapped = node.input[0] in step.graph.constants and node.op_type in {"Sub", "Div"}
    fits = constant.size in {1, columns.shape[-1]} and dtype.startswith("float") and not swapped

    def steps(column: Column, place: int) -> Sequence[Step]:
        more = None
        if fits:
            more = steps_of(node, constant, place, dtype)
        if more is None:
            raise step.refuse(
                node, "columns that rise with their raw column", "Scale columns by positive factors.",
                f" on column {column.feature!r}",
            )  # fmt: skip
        return more

    return _numbers(columns, steps)


def _scaler(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    at = attributes(node)
    offset, scale = (np.asarray(at.get(name, []), dtype=np.float32) for name in ("offset", "scale"))
    source = step.graph.types.get(node.input[0], "")
    dtype = "float64" if source == "float64" else "float32"
    columns = given[0]
    if len(offset) != len(scale) or len(scale) not in {1, columns.shape[-1]}:
        raise step.refuse(node, "an offset and a scale per column", "Export it anew.")

    def steps(column: Column, place: int) -> Sequence[Step]:  # noqa: ARG001
        k = min(place, len(scale) - 1)
        if not (np.isfinite(offset[k]) and 0 < scale[k] < np.inf):
            raise step.refuse(node, "positive finite scales", "Fit the scaler anew.", f" with scale {scale[k]}")
        kind = np.dtype(dtype).type
        done = [Step("subtract", kind(offset[k]), dtype), Step("multiply", kind(scale[k]), dtype)]
        if source.startswith("int"):
            done.insert(0, _CAST)
        if dtype == "float64":
            done.append(_CAST)
        return done

    return _numbers(columns, steps)


def _imputer(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    at = attributes(node)
    replaced = at.get("replaced_value_float", at.get("replaced_value_int64", np.nan))
    if not np.isnan(replaced) and any(column.table is None for column in given[0].flat):
        raise step.refuse(node, "imputers that replace NaN", "Impute with missing_values=nan.", f" of {replaced}")
    return given[0]


def _clip(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    at = attributes(node)
    ends: list[tuple[Any, Any]] = []
    for operation, key, place in (("at_least", "min", 1), ("at_most", "max", 2)):
        name = node.input[place] if len(node.input) > place else ""
        bound = None
        if name or key in at:
            bound = step.graph.constants.get(name, at.get(key))
        if name and name not in step.graph.constants:
            raise step.refuse(node, "constant ends of a clip", "Export it anew.")
        if bound is not None:
            ends.append((operation, float(np.asarray(bound).ravel()[0])))
    dtype = step.graph.types.get(node.output[0], "float32")

    def steps(column: Column, place: int) -> Sequence[Step]:  # noqa: ARG001
        kind = np.dtype(dtype).type
        return [Step(operation, kind(bound), dtype) for operation, bound in ends]

    return _numbers(given[0], steps)


def _levels_only(step: OnnxColumns, node: NodeProto, columns: Columns) -> None:
    for column in columns.flat:
        if column.table is None and column.feature is not None:
            raise step.refuse(
                node, "encoders on columns with levels", "Describe the column as categorical, ordinal or binary.",
                f" on column {column.feature!r}, which is {step.space[column.feature].kind}",
            )  # fmt: skip


def _one_hot(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    at = attributes(node)
    columns = given[0]
    _levels_only(step, node, columns)
    known = list(at.get("cats_strings", []) or at.get("cats_int64s", []))
    if not at.get("zeros", 1) and step.graph.types.get(node.input[0], "") == "object":
        for column in columns.flat:
            for level in step.space[column.feature].levels:
                if level not in known:
                    raise step.refuse(
                        node, "levels that its encoder knows", "Remove the level from the space.",
                        f", which does not know level {level!r} of column {column.feature!r}",
                    )  # fmt: skip
    return np.stack([columns] * len(known), axis=-1)


def _label_encoder(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    _levels_only(step, node, given[0])
    return given[0]


def _concat(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    if len(given) != len(node.input):
        raise step.refuse(node, "columns of the row alone", "Leave constant columns out of the model.")
    rank = given[0].ndim + 1
    axis = attributes(node)["axis"] % rank - 1
    if axis < 0 or any(columns.ndim + 1 != rank for columns in given):
        raise step.refuse(node, "columns side by side", "Export it anew.")
    return np.concatenate(given, axis=axis)


def _vectorizer(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    declared = list(attributes(node).get("inputdimensions", []))
    if [columns.shape for columns in given] != [(width,) for width in declared]:
        raise step.refuse(node, "inputdimensions that are the widths of its inputs", "Export it anew.")
    cast = () if step.graph.types.get(node.input[0], "") == "float32" else (_CAST,)
    return _numbers(np.concatenate(given), lambda column, place: cast)  # noqa: ARG005


def _pick(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    places = step.graph.constants.get(node.input[1])
    columns = given[0]
    axis = columns.ndim
    if node.op_type == "Gather":
        axis = attributes(node).get("axis", 0)
    if places is None or axis % (columns.ndim + 1) != columns.ndim:
        raise step.refuse(node, "columns picked by constant places", "Export it anew.")
    if node.op_type == "ArrayFeatureExtractor":
        places = places.ravel()
    if ((places < -columns.shape[-1]) | (places >= columns.shape[-1])).any():
        raise step.refuse(node, f"places below {columns.shape[-1]}", "Export it anew.", f" at {places.tolist()}")
    return np.take(columns, places, axis=-1)


def _reshape(step: OnnxColumns, node: NodeProto, given: list[Columns]) -> Columns:
    columns = given[0]
    if node.op_type == "Flatten":
        if attributes(node).get("axis", 1) != 1:
            raise step.refuse(node, "rows kept apart", "Export it with axis=1.")
        return columns.reshape(-1)
    shape = np.asarray(step.graph.constants.get(node.input[1], [])).tolist()
    if len(shape) != 2 or shape[0] not in {-1, 0} or shape[1] not in {-1, columns.size} or shape == [-1, -1]:
        raise step.refuse(node, "rows kept apart", "Export it anew.", f" to {shape}")
    return columns.reshape(-1)


COLUMNWISE: Final[Mapping[str, Callable[[OnnxColumns, NodeProto, list[Columns]], Columns]]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    "ArrayFeatureExtractor": _pick,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "Dropout": _same,
    "FeatureVectorizer": _vectorizer,
    "Flatten": _reshape,
    "Gather": _pick,
    "Identity": _same,
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "OneHotEncoder": _one_hot,
    "Reshape": _reshape,
    "Scaler": _scaler,
}
