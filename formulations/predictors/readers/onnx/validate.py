"""Validation of an ONNX file: broken, hostile or unknown parts are refused before anything is read.

Every check works on the parsed protobuf, before a runtime sees the model and before anything of a declared size is
allocated. What passes is self-contained (no external data), flat (no subgraph, no function), in order (each tensor is
made once, before it is read), of operators in ``OPERATORS``, and small: a tensor declares as many numbers as it has,
and no operator makes more columns than ``MOST_COLUMNS`` of a row.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from ceopt.formulations.predictors.readers.model_input import refuse
from ceopt.solvers.errors import UnreadableFileError, UnsupportedModelError

#: A protobuf of empty messages grows some fifty times when it is parsed: this much stays within a machine.
MOST_BYTES: Final = 128 << 20
MOST_NODES: Final = 5000
MOST_TENSORS: Final = 20_000
MOST_COLUMNS: Final = 10_000
OLDEST_IR: Final = 3
#: Oldest operator sets: 7 is the first in which Add and Gemm broadcast as they do today.
OLDEST: Final[Mapping[str, int]] = {"": 7, "ai.onnx.ml": 1}

# ---- the operators that are read, by what they do ----------------------------------------------------------------
CLASSIFIERS: Final = ("LinearClassifier", "TreeEnsembleClassifier")
TREES: Final = ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")
#: The model proper of a graph that is no network.
MODEL_OPERATORS: Final = ("LinearClassifier", "LinearRegressor", *TREES)
#: The layers of a network.
MATRICES: Final = ("Gemm", "MatMul")
#: Operators that hand on the numbers that they are given.
PASSING: Final = ("Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
#: Operators that a number can pass on its way to the model, as steps of its column.
ARITHMETIC: Final[Mapping[str, Any]] = {"Add": "add", "Div": "divide", "Mul": "multiply", "Sub": "subtract"}
_COMPARISONS: Final = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
#: Operators of two tensors, number by number.
ELEMENTWISE: Final = (*ARITHMETIC, *_COMPARISONS)
#: NumPy's name of the type that an operator makes, where it is not that of its first input.
MADE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("FeatureVectorizer", "Normalizer", "OneHotEncoder", "Scaler"), "float32"),
    **dict.fromkeys(("LinearRegressor", "TreeEnsembleRegressor"), "float32"),
    **dict.fromkeys((*_COMPARISONS, "Not"), "bool"),
    "ArgMax": "int64",
}
OPERATORS: Final = frozenset(
    {
        *MODEL_OPERATORS, *MATRICES, *PASSING, *ELEMENTWISE, *MADE,
        "Abs", "ArrayFeatureExtractor", "BatchNormalization", "Clip", "Concat", "Constant", "Gather", "Imputer",
        "LabelEncoder", "ReduceSum", "Relu", "Sigmoid", "Softmax", "ZipMap",
    }
)  # fmt: skip

_ACTIVATIONS: Final = frozenset(
    "Celu Elu Erf Exp Gelu HardSigmoid HardSwish LeakyRelu LogSoftmax Mish PRelu Selu Softplus Softsign Swish Tanh "
    "ThresholdedRelu".split()
)
_IMAGES: Final = frozenset("AveragePool Conv ConvTranspose GlobalAveragePool MaxPool Resize".split())
_SUBGRAPHS: Final = frozenset("If Loop Scan SequenceMap".split())
_MAKERS: Final = frozenset(
    "ConstantOfShape EyeLike Expand OneHot Pad RandomNormal RandomUniform Range Tile Upsample".split()
)
_RECURRENT: Final = frozenset("GRU LSTM RNN Attention".split())

_ITEM_BYTES: Final[Mapping[int, int]] = {
    TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8, TensorProto.INT64: 8, TensorProto.INT32: 4, TensorProto.BOOL: 1,
    TensorProto.UINT8: 1, TensorProto.STRING: 0,
}  # fmt: skip
_TYPED: Final[Mapping[int, str]] = {
    TensorProto.FLOAT: "float_data", TensorProto.DOUBLE: "double_data", TensorProto.INT64: "int64_data",
    TensorProto.INT32: "int32_data", TensorProto.BOOL: "int32_data", TensorProto.UINT8: "int32_data",
    TensorProto.STRING: "string_data",
}  # fmt: skip
_PLAIN_ATTRIBUTES: Final = frozenset(
    {
        AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING, AttributeProto.TENSOR, AttributeProto.FLOATS,
        AttributeProto.INTS, AttributeProto.STRINGS,
    }
)  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class ValidatedModel:
    """An ONNX model that passed every check, and how errors call it."""

    model: ModelProto
    name: str

    def refuse(self, needs: str, but: str, then: str) -> UnsupportedModelError:
        """Return the error of a reader about this model."""
        return refuse(needs, f"{self.name} {but}", then)


def open_source(given: Any) -> ValidatedModel:
    """Parse and check a path, bytes or a ModelProto.

    Raises
    ------
    UnreadableFileError
        No file, too large, truncated, or not ONNX.
    UnsupportedModelError
        Anything that the module's first lines exclude, by name.
    """
    folder: Path | None = None
    if isinstance(given, str | Path):
        name = repr(str(given))
        folder = Path(given).parent
        model = _parsed(_bytes_of(Path(given), name), name)
    elif isinstance(given, bytes | bytearray):
        name = "the ONNX bytes"
        _check_size(len(given), name)
        model = _parsed(bytes(given), name)
    else:
        name = "the ONNX model"
        _check_size(given.ByteSize(), name)
        model = ModelProto()
        model.CopyFrom(given)
    source = ValidatedModel(model, name)
    _check_header(source)
    _check_nodes(source)
    _check_tensors(source, folder)
    _check_order(source)
    _check_inputs(source)
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, UnicodeDecodeError) as error:
        raise source.refuse(
            "a model that onnx.checker accepts", f"fails it ({_line(error)})", "Export it anew."
        ) from error
    _check_growth(source)
    return source


def _bytes_of(path: Path, name: str) -> bytes:
    if not os.path.isfile(path):  # noqa: PTH113 - of a path that is too long, Path.is_file raises
        raise UnreadableFileError("The model reader", "a file", f"{name} is none", "Check the path.")
    _check_size(path.stat().st_size, name)
    return path.read_bytes()


def _check_size(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise UnreadableFileError(
            "The model reader", f"at most {MOST_BYTES >> 20} MiB of ONNX", f"{name} has {size / 2**20:.0f} MiB",
            "Give the fitted model itself, or train fewer trees or smaller layers.",
        )  # fmt: skip


def _parsed(data: bytes, name: str) -> ModelProto:
    try:
        model: ModelProto = ModelProto.FromString(data)
    except Exception as error:  # protobuf's own, whose class onnx does not name
        raise UnreadableFileError(
            "The model reader", "a whole ONNX model", f"{name} cannot be parsed ({_line(error)})",
            "It is truncated or no ONNX file: export it anew.",
        ) from error  # fmt: skip
    if not model.graph.node or not model.graph.output:
        raise UnreadableFileError(
            "The model reader", "an ONNX graph with nodes and outputs", f"{name} has none", "Export it anew."
        )
    return model


def _check_header(source: ValidatedModel) -> None:
    model = source.model
    if not OLDEST_IR <= model.ir_version <= onnx.IR_VERSION:
        raise source.refuse(
            f"an IR version from {OLDEST_IR} to {onnx.IR_VERSION}", f"has ir_version {model.ir_version}",
            "Export it anew with these libraries' versions, or install a newer onnx.",
        )  # fmt: skip
    newest = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": onnx.defs.onnx_ml_opset_version()}
    for entry in model.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        if domain not in OLDEST:
            raise source.refuse(
                "operators of ONNX itself",
                f"imports the domain {entry.domain!r}",
                "Export it without custom operators.",
            )
        if not OLDEST[domain] <= entry.version <= newest[domain]:
            raise source.refuse(
                f"an operator set {domain or 'ai.onnx'!r} from {OLDEST[domain]} to {newest[domain]}",
                f"has version {entry.version}", "Export it with another target_opset.",
            )  # fmt: skip
    for what, held in (("functions", model.functions), ("training_info", model.training_info),
                       ("sparse initializers", model.graph.sparse_initializer)):  # fmt: skip
        if held:
            raise source.refuse("a plain graph for inference", f"has {what}", "Export it without them.")


def _check_nodes(source: ValidatedModel) -> None:
    nodes = source.model.graph.node
    if len(nodes) > MOST_NODES:
        raise source.refuse(f"at most {MOST_NODES} nodes", f"has {len(nodes)}", "Simplify the graph.")
    for node in nodes:
        if node.domain not in {"", "ai.onnx", "ai.onnx.ml"}:
            raise source.refuse(
                "operators of ONNX itself", f"has {_title(node)} of the domain {node.domain!r}",
                "Export it without custom operators.",
            )  # fmt: skip
        if node.op_type not in OPERATORS:
            needs, then = _instead(node.op_type)
            raise source.refuse(needs, f"has {_title(node)}", then)
        for attribute in node.attribute:
            if attribute.type not in _PLAIN_ATTRIBUTES or attribute.ref_attr_name:
                raise source.refuse(
                    "attributes that are numbers and text", f"has {attribute.name!r} in {_title(node)}",
                    "Export it without subgraphs and sparse tensors.",
                )  # fmt: skip


def _instead(operator: str) -> tuple[str, str]:
    """Return what is needed instead of an operator, and what to do."""
    if operator in _ACTIVATIONS:
        return "layers that are piecewise linear", "Train the network with ReLU activations."
    if operator in _IMAGES | _RECURRENT:
        return "a dense network over the columns of a table", "Give a model of tabular data."
    if operator in _SUBGRAPHS:
        return "a graph without control flow", "Export it without branches and loops."
    if operator in _MAKERS:
        return "tensors whose size the file shows", "Fold constants before the export."
    return "operators that it can state exactly", f"Operators that are read: {', '.join(sorted(OPERATORS))}."


def _constants(graph: GraphProto) -> list[TensorProto]:
    """Return all tensors that a graph holds: its initializers and those in attributes of nodes."""
    held = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                held.append(attribute.t)
    return held


def _check_tensors(source: ValidatedModel, folder: Path | None) -> None:
    graph = source.model.graph
    held = _constants(graph)
    if len(held) > MOST_TENSORS:
        raise source.refuse(f"at most {MOST_TENSORS} constants", f"has {len(held)}", "Simplify the graph.")
    loaded = 0
    for tensor in held:
        title = f"tensor {tensor.name!r}"
        size = math.prod(tensor.dims)
        if tensor.data_type not in _ITEM_BYTES or tensor.HasField("segment"):
            kinds = dict(TensorProto.DataType.items())
            kind = next((word for word, number in kinds.items() if number == tensor.data_type), tensor.data_type)
            raise source.refuse("constants of usual types", f"has {title} of type {kind}", "Export it in float32.")
        if any(dim < 0 for dim in tensor.dims):
            raise source.refuse("shapes that are sizes", f"has {title} of shape {list(tensor.dims)}", "Export it anew.")
        if tensor.data_location == TensorProto.EXTERNAL:
            loaded += _load_external(source, tensor, folder, loaded)
        by_type = len(getattr(tensor, _TYPED[tensor.data_type]))
        present = by_type + len(tensor.raw_data) / (_ITEM_BYTES[tensor.data_type] or 1)
        if present != size:
            raise source.refuse(
                "as many numbers in a tensor as its shape says",
                f"has {title} of shape {list(tensor.dims)} with {present:g} of {size}",
                "It is truncated or forged: export it anew.",
            )  # fmt: skip
    for tensor in graph.initializer:
        _check_finite(source, f"tensor {tensor.name!r}", numpy_helper.to_array(tensor))
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                _check_finite(source, f"Constant {node.output[0]!r}", _value(attribute))


def _load_external(source: ValidatedModel, tensor: TensorProto, folder: Path | None, loaded: int) -> int:
    """Put data of a file beside the model's own into the tensor, and return its size; nothing outside is touched."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    what = "external data inside the file's own folder"
    title = f"tensor {tensor.name!r} with location {location!r}"
    anew = "Save the model in one file: onnx.save(model, path)."
    if folder is None:
        raise source.refuse("data within it", f"has {title}", anew)
    path = Path(location)
    is_local = not (path.is_absolute() or ".." in path.parts or not location or "\\" in location or ":" in location)
    real = None
    if is_local and "\0" not in location:
        real = (folder / path).resolve()
    if real is None or not real.is_relative_to(folder.resolve()) or not real.is_file():
        raise source.refuse(what, f"has {title}", anew)
    size = math.prod(tensor.dims) * _ITEM_BYTES[tensor.data_type]
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", size))
    except ValueError:
        offset = length = -1
    if length != size or offset < 0 or offset + size > real.stat().st_size or loaded + size > MOST_BYTES:
        raise source.refuse(
            f"{size} bytes of external data (at most {MOST_BYTES >> 20} MiB in all)",
            f"has {title}, offset {entries.get('offset', 0)} and length {entries.get('length', size)}", anew,
        )  # fmt: skip
    with real.open("rb") as file:
        file.seek(offset)
        tensor.raw_data = file.read(size)
    tensor.ClearField("external_data")
    tensor.data_location = TensorProto.DEFAULT
    return int(size)


def _value(attribute: AttributeProto) -> NDArray[Any]:
    if attribute.type == AttributeProto.TENSOR:
        return numpy_helper.to_array(attribute.t)
    return np.asarray(onnx.helper.get_attribute_value(attribute))


def _check_finite(source: ValidatedModel, title: str, values: NDArray[Any]) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = values[~np.isfinite(values)].flat[0]
        raise source.refuse("finite weights", f"has {bad} in {title}", "Its training diverged: fit it again.")


def _check_order(source: ValidatedModel) -> None:
    """Refuse a tensor that is made twice, never, or after it is read, as on a cycle."""
    graph = source.model.graph
    made = {output for node in graph.node for output in node.output}
    constants = {tensor.name for tensor in graph.initializer}
    known = constants | {value.name for value in graph.input}
    if len(constants) != len(graph.initializer):
        raise source.refuse("a tensor to be made once", "has two initializers of one name", "Export it anew.")
    for node in graph.node:
        for name in node.input:
            if name and name not in known:
                but = "reads {!r}, which nothing makes"
                if name in made:
                    but = "reads {!r} before it is made (a cycle, or out of order)"
                raise source.refuse(
                    "nodes in order, each reading what is there", f"has {_title(node)}, which {but.format(name)}",
                    "Export it anew.",
                )  # fmt: skip
        for name in node.output:
            if name and name in known:
                raise source.refuse("a tensor to be made once", f"makes {name!r} twice", "Export it anew.")
            known.add(name)
    for output in graph.output:
        if output.name not in known:
            raise source.refuse("outputs that a node makes", f"has none for {output.name!r}", "Export it anew.")


def _check_inputs(source: ValidatedModel) -> None:
    graph = source.model.graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    if not inputs:
        raise source.refuse("an input", "has none", "Export the model with its columns as input.")
    for value in inputs:
        kind = value.type.tensor_type
        if value.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape"):
            raise source.refuse("inputs that are tensors of known rank", f"has input {value.name!r}", "Export it anew.")
        rank = len(kind.shape.dim)
        if rank > 2:
            what = "an image or sequence" if rank > 3 else "a sequence"
            raise source.refuse(
                "rows of a table, an input of shape [N, columns]",
                f"takes {what} (input {value.name!r} has {rank} dimensions)", "Give a model of tabular data.",
            )  # fmt: skip
        width = kind.shape.dim[1].dim_value if rank == 2 else 1
        if rank != 2 or width < 0 or width > MOST_COLUMNS:
            raise source.refuse(
                "inputs of shape [N, columns]", f"has input {value.name!r} of {rank} dimensions, width {width}",
                "Export it with one row per person.",
            )  # fmt: skip


def _check_growth(source: ValidatedModel) -> None:
    """Bound the numbers that a row becomes at each node, so that no chain of nodes can fill the memory."""
    graph = source.model.graph
    constants = {tensor.name: (list(tensor.dims), math.prod(tensor.dims)) for tensor in graph.initializer}
    sums = {node.output[0] for node in graph.node if node.op_type == "ReduceSum"}
    size: dict[str, int] = {}
    for value in graph.input:
        if value.name not in constants:
            size[value.name] = max(1, value.type.tensor_type.shape.dim[1].dim_value)
    for node in graph.node:
        if node.op_type == "Constant":
            shape = _value(node.attribute[0]).shape
            constants[node.output[0]] = (list(shape), math.prod(shape))
            continue
        data = [name for name in node.input if name in size]
        fixed = [constants[name] for name in node.input if name in constants]
        if node.op_type in ELEMENTWISE and len(data) > 1 and data[1] not in sums:
            raise source.refuse(
                "one path from the columns to the prediction", f"has {_title(node)} of two computed tensors",
                "Train the network without skip connections, and export the model without splitting it.",
            )  # fmt: skip
        if node.op_type == "Reshape" and fixed and fixed[0][1] > 2:
            raise source.refuse(
                "matrices", f"reshapes to {fixed[0][1]} dimensions in {_title(node)}", "Export it anew."
            )
        grown = _grown(node, [size[name] for name in data], fixed)
        if grown > MOST_COLUMNS:
            raise source.refuse(
                f"at most {MOST_COLUMNS} numbers per row", f"makes {grown} in {_title(node)}", "Simplify the graph."
            )
        size.update(dict.fromkeys(node.output, grown))


def _grown(node: NodeProto, widths: list[int], fixed: Iterable[tuple[list[int], int]]) -> int:
    """Return an upper bound on the numbers per row that a node makes of its data and constants."""
    constants = list(fixed)
    sizes = [size for _, size in constants]
    total = sum(widths)
    most = max(widths, default=1)
    match node.op_type:
        case "Concat" | "FeatureVectorizer":
            declared = sum(sum(a.ints) for a in _attributes(node, "inputdimensions"))
            return max(total + sum(sizes), declared)
        case "MatMul" | "Gemm":
            inner, outer = _matrix_shape(node, constants)
            return max(-(-most // max(1, inner)), 1) * outer
        case "Gather" | "ArrayFeatureExtractor":
            return max([most, *sizes])
        case "OneHotEncoder":
            return most * sum(_listed(a) for a in node.attribute)
        case "TreeEnsemble" | "TreeEnsembleRegressor" | "LinearRegressor":
            targets = [int(a.i) for a in _attributes(node, "n_targets", "targets")]
            return max([1, *targets])
        case "TreeEnsembleClassifier" | "LinearClassifier":
            labels = [_listed(a) for a in node.attribute if "classlabels" in a.name]
            return max([2, *labels])
        case operator if operator in ELEMENTWISE:
            if all(size == 1 or (len(shape) <= 2 and shape[-1:] == [most]) for shape, size in constants):
                return most
            return most * max(sizes)
        case _:
            return total


def _attributes(node: NodeProto, *names: str) -> list[AttributeProto]:
    return [attribute for attribute in node.attribute if attribute.name in names]


def _listed(attribute: AttributeProto) -> int:
    """Return how many texts or whole numbers an attribute lists."""
    return max(len(attribute.strings), len(attribute.ints))


def _matrix_shape(node: NodeProto, constants: list[tuple[list[int], int]]) -> tuple[int, int]:
    """Return inputs and outputs of the first constant matrix of a product; (1, 1) without one."""
    for shape, _ in constants:
        if len(shape) == 2:
            is_turned = any(attribute.i for attribute in _attributes(node, "transB"))
            if is_turned:
                return shape[1], shape[0]
            return shape[0], shape[1]
    return 1, 1


def _title(node: NodeProto) -> str:
    if node.name:
        return f"{node.op_type} (node {node.name!r})"
    return f"{node.op_type} (which makes {next(iter(node.output), '')!r})"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
