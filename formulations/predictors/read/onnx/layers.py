r"""Networks and linear operators of ONNX as layers ``h <- W h + b``.

MatMul, Gemm, additions and products with constants and BatchNormalization at inference follow one another in any order;
what stands between two Relu is one layer, multiplied out in float64 where it is more than a matrix and an addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from onnx import NodeProto, TensorProto

from ceopt.formulations.predictors.read.onnx.columns import ARITHMETIC, COLUMNWISE, steps_of
from ceopt.formulations.predictors.read.onnx.graph import PASSING, Graph, attributes, title
from ceopt.formulations.predictors.read.onnx.validate import MOST_COLUMNS
from ceopt.formulations.predictors.representation.decision_rule import Floats

__all__ = ["MATRICES", "Layers", "read_layers", "read_linear"]

MATRICES: Final = ("Gemm", "MatMul")
_WIDEST: Final = 2000
_CHAIN: Final = (*MATRICES, *ARITHMETIC, *PASSING, "BatchNormalization", "Relu")


@final
@dataclass(frozen=True, slots=True)
class Layers:
    """A chain of layers with Relu between them.

    Parameters
    ----------
    matrix, score
        The tensors that it reads and makes.
    weights, biases
        One (out, in) matrix and one (out,) vector per layer.
    dtype
        Float width in which it computes.
    """

    matrix: str
    score: str
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    dtype: str


def read_layers(graph: Graph) -> Layers:
    """Return the chain around the graph's matrix products.

    Raises
    ------
    UnsupportedModelError
        There is none, it branches, or an operator in it is no affine function of the row.
    """
    last = [node for node in graph.nodes if node.op_type in MATRICES][-1]
    chain = _chain(graph, last)
    first = next(place for place, node in enumerate(chain) if node.op_type in MATRICES)
    start = 0
    while start < first and _is_columnwise(graph, chain[start]):
        start += 1
    net = chain[start:]
    matrix = graph.data(net[0])[0]
    score = net[-1].output[0]
    dtype = graph.types.get(score, "")
    if dtype not in {"float32", "float64"}:
        raise graph.source.refuse(
            "a network in float or double", f"computes {score!r} in {dtype}", "Export it in float32."
        )
    builder = _AffineChain(graph, _weights(graph, chain[first])[0].shape[0])
    for node in net:
        builder.add(node)
    return Layers(matrix, score, *builder.finished(), dtype)


def read_linear(graph: Graph, node: NodeProto) -> tuple[Floats, Floats]:
    """Return weights (K, m) and intercepts (K,) of a linear operator of ai.onnx.ml."""
    at = attributes(node)
    weights = np.asarray(at.get("coefficients", []), dtype=np.float64)
    count = len(at.get("intercepts", [])) or int(at.get("targets", 1))
    intercepts = np.asarray(at.get("intercepts", np.zeros(count)), dtype=np.float64)
    if (
        not count * MOST_COLUMNS >= weights.size > 0
        or weights.size % count
        or (node.op_type == "LinearRegressor" and at.get("targets", 1) != count)
    ):
        raise graph.source.refuse(
            "as many coefficients per score",
            f"has {weights.size} for {count} intercepts in {title(node)}",
            "Export it anew.",
        )
    for name, values in (("coefficients", weights), ("intercepts", intercepts)):
        if not np.isfinite(values).all():
            raise graph.source.refuse(
                "finite weights", f"has {values[~np.isfinite(values)][0]} in {name} of {title(node)}", "Fit it again."
            )
    return weights.reshape(count, -1), intercepts


def _chain(graph: Graph, last: NodeProto) -> list[NodeProto]:
    """Return the nodes around a matrix product that follow one another."""
    chain = [last]
    while (maker := graph.makers.get(graph.data(chain[0])[0])) is not None and maker.op_type in _CHAIN:
        chain.insert(0, maker)
    ends = {value.name for value in graph.source.model.graph.output}
    while True:
        name = chain[-1].output[0]
        readers = graph.readers(name)
        if name in ends or len(readers) != 1 or readers[0].op_type not in _CHAIN:
            return chain
        chain.append(readers[0])


def _is_columnwise(graph: Graph, node: NodeProto) -> bool:
    """Whether an operator before the first matrix can be stated number by number, exactly as it rounds."""
    if node.op_type not in ARITHMETIC:
        return node.op_type in COLUMNWISE
    constants = []
    for name in node.input:
        if name in graph.constants:
            constants.append(graph.constants[name])
    if len(constants) != 1 or (node.op_type in {"Sub", "Div"} and node.input[0] in graph.constants):
        return False
    return all(steps_of(node, constants[0], place, "float64") is not None for place in range(constants[0].size))


def _weights(graph: Graph, node: NodeProto) -> tuple[Floats, Floats]:
    """Return a matrix (in, out) and an addition (out,) or () of a matrix product."""
    at = attributes(node)
    matrix = graph.constants.get(node.input[1])
    if matrix is None or matrix.ndim != 2 or at.get("transA", 0):
        raise graph.source.refuse(
            "rows times a constant matrix", f"has {title(node)} of another form", "Export a dense layer."
        )
    matrix = matrix.astype(np.float64)
    if node.op_type == "MatMul":
        return matrix, np.zeros(matrix.shape[1])
    matrix = at.get("alpha", 1.0) * (matrix.T if at.get("transB", 0) else matrix)
    if len(node.input) < 3 or not node.input[2]:
        return matrix, np.zeros(matrix.shape[1])
    return matrix, at.get("beta", 1.0) * _vector(graph, node, node.input[2], matrix.shape[1])


def _vector(graph: Graph, node: NodeProto, name: str, size: int) -> Floats:
    """Return a constant as one number per unit."""
    constant = graph.constants.get(name)
    if constant is None or constant.size not in {1, size} or any(dim != 1 for dim in constant.shape[:-1]):
        if constant is None:
            shape = "no constant"
        else:
            shape = f"shape {constant.shape}"
        raise graph.source.refuse(
            f"one constant per unit, {size}", f"has {shape} for {name!r} in {title(node)}", "Export a dense layer."
        )
    return np.broadcast_to(constant.astype(np.float64).ravel(), size).copy()


@final
class _AffineChain:
    """Affine operators since the last Relu, multiplied out."""

    def __init__(self, graph: Graph, width: int) -> None:
        self.graph = graph
        self.width = width
        self.weights: list[Floats] = []
        self.biases: list[Floats] = []
        self.matrix: Floats | None = None
        self.bias = np.zeros(width)

    def add(self, node: NodeProto) -> None:
        match node.op_type:
            case "Relu":
                self._close()
            case "MatMul" | "Gemm":
                matrix, bias = _weights(self.graph, node)
                if matrix.shape[0] != self.width:
                    raise self.graph.source.refuse(
                        f"layers that follow one another, of {self.width} inputs",
                        f"has {title(node)} with a matrix {matrix.shape}", "Export it anew.",
                    )  # fmt: skip
                if self.matrix is None:
                    self.matrix = matrix.T
                else:
                    self.matrix = matrix.T @ self.matrix
                self.bias = (self.bias @ matrix if self.bias.any() else np.zeros(matrix.shape[1])) + bias
                self.width = matrix.shape[1]
            case "Cast" if attributes(node)["to"] not in {TensorProto.FLOAT, TensorProto.DOUBLE}:
                raise self.graph.source.refuse("numbers within a network", f"has {title(node)}", "Export it anew.")
            case "BatchNormalization":
                self._scale(*self._normalization(node))
            case operator if operator in ARITHMETIC:
                self._scale(*self._arithmetic(node))

    def finished(self) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        self._close()
        return tuple(self.weights), tuple(self.biases)

    def _close(self) -> None:
        self.weights.append(self._identity() if self.matrix is None else self.matrix)
        self.biases.append(self.bias)
        self.matrix = None
        self.bias = np.zeros(self.width)

    def _identity(self) -> Floats:
        if self.width > _WIDEST:
            raise self.graph.source.refuse(
                f"at most {_WIDEST} units that are scaled one by one",
                f"has {self.width}",
                "Fold scales into the matrices.",
            )
        return np.eye(self.width)

    def _scale(self, factor: Floats, offset: Floats) -> None:
        if (factor != 1.0).any():
            if self.matrix is None:
                matrix = self._identity()
            else:
                matrix = self.matrix
            self.matrix = factor[:, None] * matrix
            self.bias = factor * self.bias
        self.bias = self.bias + offset

    def _normalization(self, node: NodeProto) -> tuple[Floats, Floats]:
        at = attributes(node)
        if at.get("training_mode", 0):
            raise self.graph.source.refuse(
                "BatchNormalization at inference", f"has training_mode in {title(node)}", "Export it in eval mode."
            )
        scale, shift, mean, variance = (_vector(self.graph, node, name, self.width) for name in node.input[1:5])
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(variance + at.get("epsilon", 1e-5))
        if not np.isfinite(factor).all():
            raise self.graph.source.refuse(
                "positive variances", f"has {variance.min()} in {title(node)}", "Fit it again."
            )
        return factor, shift - mean * factor

    def _arithmetic(self, node: NodeProto) -> tuple[Floats, Floats]:
        first = node.input[0] in self.graph.constants
        constant = _vector(self.graph, node, node.input[0 if first else 1], self.width)
        one = np.ones(self.width)
        none = np.zeros(self.width)
        match node.op_type:
            case "Add":
                return one, constant
            case "Sub":
                return (-one, constant) if first else (one, -constant)
            case "Mul":
                return constant, none
        if first or not constant.all():
            raise self.graph.source.refuse(
                "division by constants other than 0", f"has {title(node)}", "Export a dense network."
            )
        return 1.0 / constant, none
