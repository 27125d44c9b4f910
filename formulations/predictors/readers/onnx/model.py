"""The model proper of an ONNX graph: layers ``h <- W h + b`` of networks and linear operators, or a tree ensemble.

MatMul, Gemm, additions and products with constants and BatchNormalization at inference follow one another in any order;
what stands between two Relu is one layer, multiplied out in float64 where it is more than a matrix and an addition.

Tree ensembles are those of ai.onnx.ml 1 to 3 (one list per attribute and node) and 5 (leaves apart, sets of values).
Numbers are compared and added up in the float width of the input, float32 unless it is double: trees in the order of
the file, the base value last, so the base is read as a last tree without splits.

============ ==========================================================================
mode         a row goes to the true node iff
============ ==========================================================================
BRANCH_LEQ   ``x <= t``
BRANCH_LT    ``x < t``, that is ``x <= nextafter(t, -inf)``
BRANCH_GTE   ``x >= t``: the children of BRANCH_LT exchanged
BRANCH_GT    ``x > t``: the children of BRANCH_LEQ exchanged
BRANCH_EQ    ``x`` is in the set ``{t}``
BRANCH_NEQ   the children of BRANCH_EQ exchanged
BRANCH_MEMBER ``x`` is one of the node's values
============ ==========================================================================

Two classes whose leaves all add to the first class id have one score ``s``: onnxruntime predicts the second label iff
``s > 0.5`` if no leaf is negative and iff ``s > 0`` else, whatever the base value is. More classes have one score each
and the first of the largest wins. NaN passes no test but that of BRANCH_NEQ, unless ``nodes_missing_value_tracks_true``
sends it to the true branch. Sets of values are sets of whole numbers, as categories are: onnxruntime 1.31 finds 40.3 in
``{40}``, against the specification.

References
----------
The operators' specification at onnx.ai; the label's rule is that of onnxruntime's TreeAggregatorClassifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from ceopt.formulations.predictors.readers.onnx.columns import COLUMNWISE, Graph, attributes, steps_of, title
from ceopt.formulations.predictors.readers.onnx.validate import (
    ARITHMETIC,
    MATRICES,
    MOST_COLUMNS,
    PASSING,
    ValidatedModel,
)
from ceopt.formulations.predictors.representation import Decision
from ceopt.formulations.predictors.trees import Tree, TreeEnsemble
from ceopt.solvers.checks import Floats

# ==== Networks and linear operators of ONNX as layers ``h <- W h + b`` ================================================

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
    chain = _chain(graph, graph.of_type(MATRICES)[-1])
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
    while True:
        name = chain[-1].output[0]
        readers = graph.readers(name)
        if name in graph.outputs or len(readers) != 1 or readers[0].op_type not in _CHAIN:
            return chain
        chain.append(readers[0])


def _is_columnwise(graph: Graph, node: NodeProto) -> bool:
    """Return whether an operator before the first matrix can be stated number by number, exactly as it rounds."""
    if node.op_type not in ARITHMETIC:
        return node.op_type in COLUMNWISE
    constants = graph.held(node)
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
    if at.get("transB", 0):
        matrix = matrix.T
    matrix = at.get("alpha", 1.0) * matrix
    if len(node.input) < 3 or not node.input[2]:
        return matrix, np.zeros(matrix.shape[1])
    return matrix, at.get("beta", 1.0) * _vector(graph, node, node.input[2], matrix.shape[1])


def _vector(graph: Graph, node: NodeProto, name: str, size: int) -> Floats:
    """Return a constant as one number per unit."""
    constant = graph.constants.get(name)
    if constant is None or constant.size not in {1, size} or any(dim != 1 for dim in constant.shape[:-1]):
        shape = "no constant"
        if constant is not None:
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
        self.weights.append(self._product())
        self.biases.append(self.bias)
        self.matrix = None
        self.bias = np.zeros(self.width)

    def _product(self) -> Floats:
        """Return the matrices since the last layer as one; the identity where there is none."""
        if self.matrix is not None:
            return self.matrix
        if self.width > _WIDEST:
            raise self.graph.source.refuse(
                f"at most {_WIDEST} units that are scaled one by one",
                f"has {self.width}",
                "Fold scales into the matrices.",
            )
        return np.eye(self.width)

    def _scale(self, factor: Floats, offset: Floats) -> None:
        if (factor != 1.0).any():
            self.matrix = factor[:, None] * self._product()
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
        constant = _vector(self.graph, node, node.input[int(not first)], self.width)
        one = np.ones(self.width)
        none = np.zeros(self.width)
        match node.op_type:
            case "Add":
                return one, constant
            case "Sub" if first:
                return -one, constant
            case "Sub":
                return one, -constant
            case "Mul":
                return constant, none
        if first or not constant.all():
            raise self.graph.source.refuse(
                "division by constants other than 0", f"has {title(node)}", "Export a dense network."
            )
        return 1.0 / constant, none


# ==== Tree ensembles of ONNX ==========================================================================================

_MODES: Final = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")
_LINKS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
#: Runtimes walk trees recursively when they load them.
_DEEPEST: Final = 1000
_MOST_VALUES: Final = 1 << 26
_ANEW: Final = "Export the trees anew."


@final
@dataclass(frozen=True, slots=True)
class Ensemble:
    """A tree operator as it is stored.

    Parameters
    ----------
    trees
        In the order of the file, the base value last.
    labels
        As the operator declares them; None of a regressor.
    level
        The score above which the second of two labels wins; 0 unless they share one score.
    divisor
        Number of trees whose mean is taken, 1 of a sum.
    """

    trees: tuple[Tree, ...]
    labels: tuple[Any, ...] | None
    level: float
    divisor: float

    def core(self, dtype: str, labels: Sequence[Any] | None, decision: Decision | None, level: float) -> TreeEnsemble:
        """Return the representation over a matrix of type ``dtype``."""
        width = "float64" if dtype == "float64" else "float32"
        return TreeEnsemble(
            self.trees, labels=labels, decision=decision, level=level, divisor=self.divisor, input_dtype=width,
            sum_dtype=width,
        )  # fmt: skip


def read_ensemble(node: NodeProto, source: ValidatedModel) -> Ensemble:
    """Read and check the attributes of a tree operator.

    Raises
    ------
    UnsupportedModelError
        Lists of different lengths, nodes that form no trees, NaN or infinity, or a rule that is not exact.
    """
    return _Reader(node, source).read()


@final
@dataclass(frozen=True, slots=True)
class _EnsembleNodes:
    """All nodes of all trees, leaves included: children are places in these arrays."""

    roots: list[int]
    feature: NDArray[np.intp]
    threshold: Floats
    mode: list[str]
    true: NDArray[np.intp]
    false: NDArray[np.intp]
    value: Floats
    members: Mapping[int, frozenset[float]]


@final
class _Reader:
    def __init__(self, node: NodeProto, source: ValidatedModel) -> None:
        self.node = node
        self.source = source
        self.at = attributes(node)
        self.title = title(node)

    def fail(self, needs: str, but: str, then: str = _ANEW) -> Exception:
        return self.source.refuse(needs, f"has {but} in {self.title}", then)

    def read(self) -> Ensemble:
        if self.node.op_type == "TreeEnsemble":
            return self._new()
        return self._old()

    def _old(self) -> Ensemble:
        classifier = self.node.op_type == "TreeEnsembleClassifier"
        labels = self._labels() if classifier else None
        ids, weights, count = self._weights(classifier, labels)
        one = classifier and count == 2 and set(ids.tolist()) == {0}
        if classifier and count == 2 and not one:
            raise self.fail(
                "two classes to share one score, weights of class id 0",
                f"weights of class ids {sorted(set(ids.tolist()))}",
                "onnxruntime and the specification disagree on it: export the weights of one class.",
            )
        scores = 1 if one else count
        nodes = self._old_nodes("class" if classifier else "target", ids, weights, scores)
        aggregate = self.at.get("aggregate_function", "SUM")
        base = self._numbers("base_values", optional=True)
        averaged = self._averaged(aggregate)
        trees = self._trees(nodes)
        if classifier and not one and not len(base):
            self._check_all_scored([nodes.value[places] for places in _leaves(nodes)])
        if len(base) not in {0, scores}:
            raise self.fail(f"{scores} base values", f"{len(base)}", "Export one base value per score.")
        self._check_link(self.at.get("post_transform", "NONE"), classifier, one)
        divisor = float(len(trees)) if averaged else 1.0
        return Ensemble(
            (*trees, *_constant(base * divisor)), labels,
            0.5 if one and (weights >= 0).all() else 0.0, divisor,
        )  # fmt: skip

    def _new(self) -> Ensemble:
        count = int(self.at.get("n_targets", 0))
        aggregate = self._choice("aggregate_function", 1, _AGGREGATES)
        self._check_link(self._choice("post_transform", 0, _LINKS), classifier=False, one=False)
        averaged = self._averaged(aggregate)
        nodes = self._new_nodes(count)
        trees = self._trees(nodes)
        return Ensemble(trees, None, 0.0, float(len(trees)) if averaged else 1.0)

    def _choice(self, name: str, default: int, names: Sequence[str]) -> str:
        number = int(self.at.get(name, default))
        if not 0 <= number < len(names):
            raise self.fail(f"{name} from 0 to {len(names) - 1}", f"{name}={number}")
        return names[number]

    def _labels(self) -> tuple[Any, ...]:
        texts = self.at.get("classlabels_strings", [])
        numbers = self.at.get("classlabels_int64s", [])
        labels = list(texts or numbers)
        if (texts and numbers) or len(labels) < 2 or len(set(labels)) != len(labels):
            raise self.fail("at least two different class labels", f"{labels}", "Export a classifier of two classes.")
        return tuple(labels)

    def _weights(self, classifier: bool, labels: tuple[Any, ...] | None) -> tuple[NDArray[np.intp], Floats, int]:
        kind = "class" if classifier else "target"
        ids = self._ints(f"{kind}_ids")
        weights = self._numbers(f"{kind}_weights")
        if labels is not None:
            count = len(labels)
        else:
            count = int(self.at.get("n_targets", 0))
        self._check_size(len(self.at.get("nodes_modes", [])), count)
        self._check_lengths({f"{kind}_ids": ids, f"{kind}_weights": weights})
        self._check_ids(f"{kind}_ids", ids, count)
        return ids, weights, count

    def _check_size(self, nodes: int, count: int) -> None:
        if nodes * max(count, 0) > _MOST_VALUES:
            raise self.fail(
                f"at most {_MOST_VALUES} leaf values", f"{nodes} nodes of {count} scores", "Train fewer trees."
            )

    def _check_ids(self, name: str, ids: NDArray[np.intp], count: int) -> None:
        bad = ids[(ids < 0) | (ids >= count)]
        if count < 1 or len(bad):
            raise self.fail(f"{name} below the number of scores, {count}", f"{bad[0] if len(bad) else 'none'}")

    def _check_lengths(self, lists: Mapping[str, Any]) -> None:
        if len(set(map(len, lists.values()))) > 1:
            unequal = ", ".join(f"{name} {len(values)}" for name, values in lists.items())
            raise self.fail("lists of one length", f"lengths {unequal}")

    def _ints(self, name: str) -> NDArray[np.intp]:
        values = np.asarray(self.at.get(name, []), dtype=np.int64)
        if values.ndim != 1:
            raise self.fail(f"a list {name}", f"shape {values.shape}")
        return values.astype(np.intp)

    def _numbers(self, name: str, *, optional: bool = False) -> Floats:
        """Return a list of numbers, held as float32 or as a tensor in its own width, in float64."""
        given = []
        for key in (name, f"{name}_as_tensor"):
            if key in self.at and len(self.at[key]):
                given.append(self.at[key])
        if len(given) > 1 or (not given and not optional):
            raise self.fail(f"{name} once", f"it {len(given)} times")
        values = np.asarray(next(iter(given), []), dtype=np.float64)
        if values.ndim != 1:
            raise self.fail(f"a list {name}", f"shape {values.shape}")
        bad = values[~np.isfinite(values)]
        if len(bad):
            raise self.fail(f"finite {name}", f"{bad[0]}", "Train the model without NaN and infinity.")
        return values

    def _averaged(self, aggregate: str) -> bool:
        if aggregate not in {"SUM", "AVERAGE"}:
            raise self.fail("trees that add up", f"aggregate_function {aggregate!r}", "Export a sum or an average.")
        return aggregate == "AVERAGE"

    def _check_link(self, link: str, classifier: bool, one: bool) -> None:
        known: tuple[str, ...] = ("NONE",)
        if one:
            known = ("NONE", "LOGISTIC")
        elif classifier:
            known = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
        if link not in known:
            raise self.fail(
                f"a post_transform among {', '.join(known)}", f"post_transform {link!r}",
                "Export the raw scores, and ask for a value of them.",
            )  # fmt: skip

    def _check_all_scored(self, leaves: Sequence[Floats]) -> None:
        """Refuse a class that may get no weight at all: onnxruntime leaves it out, even if all others are negative."""
        always = np.any([(~np.isnan(value)).all(axis=0) for value in leaves], axis=0)
        positive = all(np.nanmin(value, initial=0.0) >= 0.0 for value in leaves) and any(
            (np.nan_to_num(value) > 0.0).any(axis=1).all() for value in leaves
        )
        if not always.all() and not positive:
            raise self.fail(
                "each class to be scored by some tree at every leaf", f"none for class id {int(np.argmin(always))}",
                "Export the zero weights as well.",
            )  # fmt: skip

    def _old_nodes(self, kind: str, ids: NDArray[np.intp], weights: Floats, count: int) -> _EnsembleNodes:
        names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids")
        tree, node, feature, true, false = map(self._ints, names)
        modes = list(self.at.get("nodes_modes", []))
        threshold = self._numbers("nodes_values")
        self._check_lengths({
            **dict(zip(names, (tree, node, feature, true, false), strict=True)), "nodes_modes": modes,
            "nodes_values": threshold,
        })  # fmt: skip
        place: dict[tuple[int, int], int] = {}
        for i, key in enumerate(zip(tree.tolist(), node.tolist(), strict=True)):
            if key in place:
                raise self.fail("a node once", f"node {key[1]} of tree {key[0]} twice")
            place[key] = i
        leaf = np.array([mode == "LEAF" for mode in modes])
        links = []
        for children in (true, false):
            places = np.full(len(modes), -1, dtype=np.intp)
            for i in np.flatnonzero(~leaf).tolist():
                key = (int(tree[i]), int(children[i]))
                if key not in place:
                    raise self.fail("children that are nodes", f"node {node[i]} of tree {tree[i]} with child {key[1]}")
                places[i] = place[key]
            links.append(places)
        value = np.full((len(modes), count), np.nan)
        of_tree = self._ints(f"{kind}_treeids")
        of_node = self._ints(f"{kind}_nodeids")
        self._check_lengths({f"{kind}_ids": ids, f"{kind}_treeids": of_tree, f"{kind}_nodeids": of_node})
        for t, n, k, weight in zip(of_tree.tolist(), of_node.tolist(), ids.tolist(), weights.tolist(), strict=True):
            i = place.get((t, n), -1)
            if i < 0 or not leaf[i]:
                raise self.fail("weights at leaves", f"one at node {n} of tree {t}")
            if not np.isnan(value[i, k]):
                raise self.fail("one weight per leaf and score", f"two at node {n} of tree {t}")
            value[i, k] = weight
        if np.isnan(value[leaf]).all(axis=1).any():
            i = int(np.flatnonzero(leaf & np.isnan(value).all(axis=1))[0])
            raise self.fail("a weight at each leaf", f"none at node {node[i]} of tree {tree[i]}")
        change = np.flatnonzero(np.diff(tree, prepend=tree[:1] - 1))
        if len(set(tree[change].tolist())) != len(change):
            raise self.fail("the nodes of a tree together", f"tree {tree[change[-1]]} in pieces")
        return _EnsembleNodes(
            change.tolist(), np.where(leaf, -1, feature), threshold, modes, links[0], links[1], value, {}
        )

    def _new_nodes(self, count: int) -> _EnsembleNodes:
        names = (
            "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs",
        )  # fmt: skip
        feature, true, false, true_leaf, false_leaf = map(self._ints, names)
        codes = self._ints("nodes_modes")
        if ((codes < 0) | (codes >= len(_MODES))).any():
            raise self.fail(f"modes from 0 to {len(_MODES) - 1}", f"mode {codes.max()}")
        modes = list(map(_MODES.__getitem__, codes.tolist()))
        splits = self._splits(modes)
        weights = self._numbers("leaf_weights")
        targets = self._ints("leaf_targetids")
        roots = self._ints("tree_roots")
        self._check_size(len(modes) + len(weights), count)
        self._check_lengths({
            **dict(zip(names, (feature, true, false, true_leaf, false_leaf), strict=True)), "nodes_modes": modes,
            "nodes_splits": splits,
        })  # fmt: skip
        self._check_lengths({"leaf_weights": weights, "leaf_targetids": targets})
        self._check_ids("leaf_targetids", targets, count)
        inner = len(modes)
        leaves = len(weights)
        links = []
        for children, ends in ((true, true_leaf), (false, false_leaf)):
            limit = np.where(ends != 0, leaves, inner)
            if ((children < 0) | (children >= limit)).any():
                i = int(np.flatnonzero((children < 0) | (children >= limit))[0])
                raise self.fail("children that are nodes or leaves", f"node {i} with child {children[i]}")
            links.append(np.concatenate([children + np.where(ends != 0, inner, 0), np.full(leaves, -1)]))
        if not len(roots) or ((roots < 0) | (roots >= inner)).any():
            raise self.fail("tree_roots that are nodes", f"{roots.tolist()[:5]}")
        # A root whose two children are one leaf is a tree without a split.
        first = links[0][roots]
        start = np.where((first == links[1][roots]) & (first >= inner), first, roots)
        value = np.full((inner + leaves, count), np.nan)
        value[inner + np.arange(leaves), targets] = weights
        return _EnsembleNodes(
            start.tolist(), np.concatenate([feature, np.full(leaves, -1)]), np.concatenate([splits, np.zeros(leaves)]),
            [*modes, *["LEAF"] * leaves], links[0], links[1], value, self._sets(modes),
        )  # fmt: skip

    def _splits(self, modes: Sequence[str]) -> Floats:
        """Return the thresholds; a node with a set of values has none, whatever stands there."""
        given = np.array(self.at.get("nodes_splits", []), dtype=np.float64)
        if given.shape == (len(modes),):
            given[[mode == "BRANCH_MEMBER" for mode in modes]] = 0.0
            self.at = {**self.at, "nodes_splits": given}
        return self._numbers("nodes_splits")

    def _sets(self, modes: Sequence[str]) -> dict[int, frozenset[float]]:
        """Return the values of each node with mode BRANCH_MEMBER, which NaN separates in one list."""
        owners = [i for i, mode in enumerate(modes) if mode == "BRANCH_MEMBER"]
        values = np.asarray(self.at.get("membership_values", []), dtype=np.float64)
        ends = np.flatnonzero(np.isnan(values))
        parts = []
        if len(values):
            parts = [part[~np.isnan(part)] for part in np.split(values, ends)]
        if parts and not len(parts[-1]):
            parts.pop()
        if len(parts) != len(owners) or not all(map(len, parts)) or np.isinf(values).any():
            raise self.fail("a set of finite values per BRANCH_MEMBER node", f"{len(parts)} for {len(owners)} nodes")
        return {i: frozenset(part.tolist()) for i, part in zip(owners, parts, strict=True)}

    def _numbered(self, nodes: _EnsembleNodes, root: int) -> dict[int, int]:
        """Return the nodes of one tree, level by level from the root, each with its number."""
        number = {root: 0}
        depth = {root: 0}
        order = [root]
        for node in order:
            if depth[node] > _DEEPEST:
                raise self.fail(f"trees of depth {_DEEPEST} at most", "a deeper one", "Train shallower trees.")
            if nodes.mode[node] == "LEAF":
                continue
            if not 0 <= nodes.feature[node] < MOST_COLUMNS:
                raise self.fail(f"features from 0 to {MOST_COLUMNS - 1}", f"feature {nodes.feature[node]}")
            for child in (int(nodes.true[node]), int(nodes.false[node])):
                if child in number:
                    raise self.fail(
                        "trees, in which each node has one parent", f"a node with two in the tree of {root}"
                    )
                number[child] = len(order)
                depth[child] = depth[node] + 1
                order.append(child)
        return number

    def _trees(self, nodes: _EnsembleNodes) -> tuple[Tree, ...]:
        return tuple(self._tree(nodes, root) for root in nodes.roots)

    def _tree(self, nodes: _EnsembleNodes, root: int) -> Tree:
        """Return one tree with its nodes numbered from the root."""
        number = self._numbered(nodes, root)
        order = list(number)
        feature = nodes.feature[order]
        threshold = nodes.threshold[order].copy()
        left = np.full(len(order), -1)
        right = np.full(len(order), -1)
        subset = np.full(len(order), -1)
        sets: list[frozenset[float]] = []
        gaps = np.zeros(len(order), dtype=bool)
        for i, node in enumerate(order):
            mode = nodes.mode[node]
            if mode == "LEAF":
                continue
            if mode not in _MODES:
                raise self.fail(f"modes among {', '.join(_MODES)} and LEAF", f"mode {mode!r}")
            left[i] = number[int(nodes.true[node])]
            right[i] = number[int(nodes.false[node])]
            to_true = self._tracks(node) or mode == "BRANCH_NEQ"
            is_swapped = mode in {"BRANCH_GTE", "BRANCH_GT", "BRANCH_NEQ"}
            gaps[i] = to_true != is_swapped
            if is_swapped:
                left[i], right[i] = right[i], left[i]
            if mode in {"BRANCH_LT", "BRANCH_GTE"}:
                threshold[i] = np.nextafter(threshold[i], -np.inf)
            elif mode in {"BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER"}:
                subset[i] = len(sets)
                sets.append(nodes.members.get(node, frozenset({float(threshold[i])})))
        value = np.where(feature[:, None] >= 0, 0.0, np.nan_to_num(nodes.value[order]))
        return Tree(feature, threshold, left, right, value, subset, tuple(sets), gaps)

    def _tracks(self, node: int) -> bool:
        """Return whether a node sends NaN to its true branch."""
        tracks = self.at.get("nodes_missing_value_tracks_true", ())
        return bool(node < len(tracks) and tracks[node])


def _leaves(nodes: _EnsembleNodes) -> list[NDArray[np.intp]]:
    """Return the places of each tree's leaves, of trees that are stored one after the other."""
    places = np.arange(len(nodes.feature))
    return [part[nodes.feature[part] < 0] for part in np.split(places, nodes.roots[1:])]


def _constant(base: Floats) -> list[Tree]:
    """Return a tree without a split that adds the base values, none if they are 0."""
    if not base.any():
        return []
    end = np.array([-1])
    return [Tree(end, np.zeros(1), end, end, base[None, :], missing_left=end < 0)]
