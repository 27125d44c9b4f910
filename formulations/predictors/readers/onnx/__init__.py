r"""ONNX files, bytes and models: networks, linear models and tree ensembles, as their runtime decides.

A graph is read in three parts. Its first operators are functions of one column each (``columns.py``): scalers,
encoders, the choice of columns. Then comes the model proper (``model.py``), and behind its scores the label and the
probabilities, which are read here. The input is either

* one tensor ``[N, d]`` of numbers, the columns in the order of the space: numbers as they are, levels as
  :meth:`Encoding.identity` codes them (numeric levels as they are, other ordinal levels by rank, two as 0 and 1);
* or one input ``[N, 1]`` per column with the column's name, text where the column is text.

The outputs are a label, shares of the labels, or a value, and a rule of the scores says the same:

============================================ ==========================================================================
outputs                                      prediction
============================================ ==========================================================================
a label (int64, int32, bool or string, or    the label, with shares if there is a float output or a ZipMap as well
a float behind ArgMax or LabelEncoder)
one column that ends in Sigmoid              labels 0 and 1; 1 iff the output is > 0.5
K columns that end in Softmax                labels 0 to K - 1, the first of the largest
one column without either                    a regressor's value (a lone logit too: ask for AtLeast(0) of it)
several columns without either               refused: they may be logits or several values
============================================ ==========================================================================

The way from the scores to the outputs is not interpreted, it is run: labels are what comes out for scores that leave no
doubt, and the level of one score is where the graph's own answer turns over, found by bisection.

onnxruntime judges where it is installed, else the reference evaluator of onnx. Files are checked before either sees
them (``validate.py``), and the model read is compared with the graph on random rows before it is believed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from onnx import NodeProto
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from ceopt.formulations.predictors.readers.onnx.columns import (
    Graph,
    OnnxColumns,
    attributes,
    check_columnwise,
    title,
)
from ceopt.formulations.predictors.readers.onnx.model import read_ensemble, read_layers, read_linear
from ceopt.formulations.predictors.readers.onnx.validate import (
    CLASSIFIERS,
    MATRICES,
    MODEL_OPERATORS,
    PASSING,
    TREES,
    open_source,
)
from ceopt.formulations.predictors.representation import (
    AbstractRepresentation,
    Affine,
    Head,
    Probability,
    ReluNetwork,
    with_head,
)
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.encoding import Encoding, last_true
from ceopt.solvers.checks import Floats

__all__ = ["MODELS", "OnnxModel", "open_model", "read_composite", "read_estimator"]

#: What is read, by how it is embedded (see ``read.supported``).
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "linear": ("LinearClassifier", "LinearRegressor", "one Gemm or MatMul and Add"),
    "trees": TREES,
    "networks": ("Gemm, MatMul, Add, BatchNormalization and Relu in a chain",),
}


def open_model(model: Any) -> OnnxModel:
    """Open a path, bytes or a ModelProto.

    Raises
    ------
    UnreadableFileError, UnsupportedModelError
        A file that is broken, hostile or has no exact representation.
    """
    if isinstance(model, OnnxModel):
        return model
    return OnnxModel(Graph(open_source(model)))


def read_composite(model: OnnxModel, behind: Any) -> tuple[AbstractRepresentation, Encoding]:
    """Return what the graph computes, and of which columns."""
    step = OnnxColumns(model.graph, model.matrix, model.feeds, behind.space, model.names)
    return model.core, behind.encoding(model, step)


def read_estimator(model: OnnxModel, dtype: str) -> AbstractRepresentation:  # noqa: ARG001
    """Return what the graph computes of its own matrix."""
    return model.core


@final
class OnnxModel:
    """An ONNX model that predicts like an estimator of scikit-learn.

    Parameters
    ----------
    graph
        A checked model.

    Attributes
    ----------
    core
        The representation of the model proper.
    classes_
        Labels in the order of the probabilities; a regressor has none.
    feature_names_in_
        Columns by name, if there is one input per column.
    n_features_in_
        Columns of the one tensor, if the graph declares how many.
    takes_codes
        Whether the input is one tensor of numbers, levels coded as :meth:`Encoding.identity` does.
    width
        Float width of the probabilities and values that it gives, whatever it adds up in.
    """

    width: Final = "float32"

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        read = _read(graph)
        self.matrix = read.matrix
        self.answers = read.answers
        check_columnwise(graph, self.matrix)
        self.core, self.has_shares = _believed(graph, read)
        self.types = list(map(graph.types.__getitem__, graph.names))
        widths = list(map(graph.widths.__getitem__, graph.names))
        self.takes_codes = len(self.types) == 1 and self.types[0] != "object"
        self.names = None
        if not self.takes_codes:
            self.names = graph.names
        for name, kind, width in zip(graph.names, self.types, widths, strict=True):
            if not kind or (self.names is not None and width != 1):
                raise graph.source.refuse(
                    "one input [N, d] of numbers, or one input [N, 1] per column",
                    f"has input {name!r} of width {width or 'unknown'} and type {kind or 'unknown'}",
                    "Export it so: skl2onnx makes one input per column from a frame.",
                )  # fmt: skip
        if self.core.labels is not None:
            self.classes_ = np.array(self.core.labels)
        if self.names is not None:
            self.feature_names_in_ = np.array(self.names, dtype=object)
        elif widths[0]:
            self.n_features_in_ = widths[0]
        self._part = graph.part(graph.names, self.answers.wanted).load()

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the graph's labels or values for rows, (n,)."""
        return self.answers.predicted(self._part.run(*self.feeds(X)))

    @available_if(lambda self: self.has_shares)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_proba(self, X: Any) -> Floats:
        """Return the graph's probabilities of its labels for rows, (n, K)."""
        shares = self.answers.shares(self._part.run(*self.feeds(X)))
        assert shares is not None  # noqa: S101 - what available_if asks
        return shares

    def feeds(self, rows: Any) -> list[NDArray[Any]]:
        """Return one array per input for rows as a user gives them."""
        if self.names is None:
            return [self._typed(np.asarray(rows), self.types[0], "the rows")]
        frame = rows
        if not isinstance(rows, pd.DataFrame):
            frame = pd.DataFrame(rows, columns=self.names)
        return [
            self._typed(frame[name].to_numpy(), kind, f"column {name!r}").reshape(-1, 1)
            for name, kind in zip(self.names, self.types, strict=True)
        ]

    def _typed(self, values: NDArray[Any], kind: str, what: str) -> NDArray[Any]:
        """Return values in the type of an input, or refuse what has none there."""
        refusal = self.graph.source.refuse(
            f"{'text' if kind == 'object' else kind} for {what}", "takes no other values",
            "Make kinds and levels of the space those of the data that the model was fitted on.",
        )  # fmt: skip
        if kind == "object":
            if not all(isinstance(value, str) for value in values.ravel()):
                raise refusal
            return np.asarray(values, dtype=object)
        try:
            with np.errstate(over="ignore"):
                typed = np.asarray(values).astype(kind)
        except (TypeError, ValueError):
            raise refusal from None
        if kind.startswith("int") and (typed != values).any():
            raise refusal
        return typed


# ==== The outputs of an ONNX graph ====================================================================================

#: A score that leaves no doubt, in float32 as well.
_SURE: Final = 1e30
#: What an output is behind each operator at the end of a network.
_KINDS: Final = {"Sigmoid": "half", "Softmax": "argmax"}


@final
@dataclass(frozen=True, slots=True)
class Answers:
    """The outputs that are asked for, and how they are understood.

    Parameters
    ----------
    kind
        "label", "half" (above 0.5), "argmax" or "value".
    wanted
        Tensors: the label if there is one, then shares or the value.
    """

    kind: str
    wanted: tuple[str, ...]

    def predicted(self, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the label or value of each row, (n,)."""
        match self.kind:
            case "label":
                return arrays[0].ravel()
            case "half":
                return (arrays[0].ravel() > 0.5).astype(np.int64)
            case "argmax":
                return np.asarray(np.argmax(arrays[0].reshape(len(arrays[0]), -1), axis=1))
            case _:
                return arrays[0].ravel().astype(np.float64)

    def shares(self, arrays: Sequence[NDArray[Any]]) -> Floats | None:
        """Return the probabilities of the labels, (n, K); None where the outputs give none."""
        if self.kind == "value" or (self.kind == "label" and len(arrays) < 2):
            return None
        given = arrays[-1].astype(np.float64).reshape(len(arrays[-1]), -1)
        if given.shape[1] == 1:
            return np.hstack([1.0 - given, given])
        return given


def read_answers(graph: Graph, score: str | None) -> Answers:
    """Return what the outputs are, given the scores behind them (None behind a classifier of its own).

    Raises
    ------
    UnsupportedModelError
        Several labels or values, or none that has a meaning.
    """
    labels = []
    shares = []
    for name in graph.outputs:
        maker = graph.makers.get(name)
        if maker is not None and maker.op_type == "ZipMap":
            shares.append(maker.input[0])
        elif graph.types.get(name, "").startswith("float") and not _is_chosen(graph, name):
            shares.append(name)
        else:
            labels.append(name)
    if len(labels) > 1 or len(shares) > 1 or not (labels or shares):
        raise graph.source.refuse(
            "one label, one output of numbers or both", f"has outputs {', '.join(map(repr, graph.outputs))}",
            "Export the model with one prediction.",
        )  # fmt: skip
    if labels:
        return Answers("label", (*labels, *shares))
    if score is None:
        raise graph.source.refuse("the label of its classifier as output", f"gives only {shares[0]!r}", "Export both.")
    ends = [node for node in graph.before(shares, [score]) if node.op_type not in PASSING]
    if not ends:
        return Answers("value", tuple(shares))
    if len(ends) == 1 and ends[0].op_type in _KINDS:
        return Answers(_KINDS[ends[0].op_type], tuple(shares))
    raise graph.source.refuse(
        "an output that is a score, its Sigmoid or its Softmax", f"has {title(ends[0])} behind the last layer",
        "Export the model up to there.",
    )  # fmt: skip


def _is_chosen(graph: Graph, name: str) -> bool:
    """Return whether numbers are labels that were looked up by their place."""
    maker = graph.makers.get(name)
    while maker is not None and maker.op_type in PASSING:
        maker = graph.makers.get(graph.data(maker)[0])
    return maker is not None and maker.op_type in {"ArgMax", "LabelEncoder"}


def verdict(graph: Graph, answers: Answers, score: str, count: int, dtype: str) -> Head:
    """Return the head of ``count`` scores in a tensor, by running the graph behind it."""
    tail = _Tail(graph, answers, score, dtype)
    if answers.kind == "value":
        return _value(tail, count)
    if count == 1:
        return _one(tail)
    if answers.kind == "half":
        raise graph.source.refuse(
            "one label per row", f"gives {count} numbers that end in Sigmoid", "Export one model per label, or Softmax."
        )
    return _several(tail, count)


@final
class _Tail:
    """The graph behind its scores."""

    def __init__(self, graph: Graph, answers: Answers, score: str, dtype: str) -> None:
        self.graph = graph
        self.answers = answers
        self.dtype = dtype
        self.score = score
        behind = graph.before(answers.wanted, [score])
        made = {score, *(name for node in behind for name in node.output)}
        for node in behind:
            for name in graph.data(node):
                if name not in made or name in graph.names:
                    raise graph.source.refuse(
                        "outputs that depend on its scores alone", f"has {title(node)} read {name!r} as well",
                        "Export a model with one path to its prediction.",
                    )  # fmt: skip
        self.part = graph.part([score], answers.wanted)

    def __call__(self, scores: Any) -> list[NDArray[Any]]:
        rows = np.clip(np.asarray(scores, dtype=np.float64), -_SURE, _SURE)
        return self.part.run(rows.reshape(len(rows), -1).astype(self.dtype))

    def predicted(self, scores: Any) -> NDArray[Any]:
        return self.answers.predicted(self(scores))

    def refuse(self, needs: str, but: str) -> Exception:
        return self.graph.source.refuse(needs, but, "Export the model with the outputs of its library's own exporter.")


def _value(tail: _Tail, count: int) -> Head:
    if count != 1:
        raise tail.graph.source.refuse(
            "one value per row, or classes", f"gives {count} numbers without Softmax",
            "If they are logits, append Softmax before the export; else export one output.",
        )  # fmt: skip
    trial = _trial(1)[:, 0]
    if (tail.predicted(trial) != trial.astype(tail.dtype)).any():
        raise tail.refuse("a value that is its score", "changes its score before the output")
    return Head(None, "value", None, 0.0)


def _one(tail: _Tail) -> Head:
    labels = [*tail.predicted([-_SURE]).tolist(), *tail.predicted([_SURE]).tolist()]
    level = float(last_true(lambda scores: tail.predicted(np.ravel(scores)).reshape(np.shape(scores)) == labels[0]))
    if labels[0] == labels[1] or not np.isfinite(level):
        raise tail.refuse("two labels, one of which wins from some score on", f"says {labels[0]!r} of both ends")
    trial = _trial(1)[:, 0].astype(tail.dtype).astype(np.float64)
    if (tail.predicted(trial) != np.array(labels)[(trial > level).astype(int)]).any():
        raise tail.refuse("a label that turns over once as the score rises", "has one that turns over more often")
    return Head(tuple(labels), "positive", None, level)


def _several(tail: _Tail, count: int) -> Head:
    labels = tail.predicted(np.eye(count) * 50.0).tolist()
    trial = _trial(count)
    best = np.sort(trial, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-3
    predicted = tail.predicted(trial)
    if len(set(labels)) != count or (predicted != np.array(labels)[np.argmax(trial, axis=1)])[clear].any():
        raise tail.refuse("the label of the largest score", f"says {labels} of {count} scores")
    (tied,) = tail.predicted(np.zeros((1, count))).tolist()
    if tied not in {labels[0], labels[-1]}:
        raise tail.refuse("ties to go to the first or the last label", f"gives them to {tied!r}")
    return Head(tuple(labels), "argmax" if tied == labels[0] else "argmax_last", None, 0.0)


def paired(graph: Graph, answers: Answers, score: str, dtype: str, first: float) -> Head | None:
    """Return the head of one score ``s`` instead of two, ``first * s`` and ``s``, if their shares are its logistic.

    None if they are not, or if there are none.
    """
    tail = _Tail(graph, answers, score, dtype)

    def pair(scores: Any) -> Floats:
        return np.stack([first * np.ravel(scores), np.ravel(scores)], axis=1)

    trial = np.linspace(-30.0, 30.0, 601)
    shares = tail.answers.shares(tail(pair(trial)))
    if shares is None or shares.shape[1] != 2 or not np.allclose(shares[:, 1], expit(trial), rtol=0.0, atol=1e-6):
        return None
    labels = tail.predicted(pair([-30.0, 30.0])).tolist()
    level = float(last_true(lambda scores: tail.predicted(pair(scores)).reshape(np.shape(scores)) == labels[0]))
    if not np.isfinite(level):
        return None
    return Head(tuple(labels), "positive", None, level)


def _trial(count: int) -> Floats:
    """Return scores of every size, (n, count)."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, count)) * 10.0 ** rng.integers(-3, 3, size=(400, 1))
    return np.asarray(rows.astype(np.float32), dtype=np.float64)


# ==== The model proper, held against the graph ========================================================================


@final
@dataclass(frozen=True, slots=True)
class _Read:
    """The model proper, without probabilities; the tensor that it reads; the outputs."""

    core: AbstractRepresentation
    matrix: str
    answers: Answers


def _read(graph: Graph) -> _Read:
    models = graph.of_type(MODEL_OPERATORS)
    products = graph.of_type(MATRICES)
    if len(models) + bool(products) != 1:
        titles = ", ".join(map(title, [*models, *products][:3])) or "none"
        raise graph.source.refuse(
            "one network, linear model or tree ensemble", f"has {titles}", "Export the models one by one."
        )
    if not models:
        return _network(graph)
    if models[0].op_type in CLASSIFIERS:
        return _classifier(graph, models[0])
    return _scores(graph, models[0])


def _scores(graph: Graph, node: NodeProto) -> _Read:
    """Read an operator that gives scores, which the rest of the graph may turn into labels."""
    matrix = node.input[0]
    score = node.output[0]
    answers = read_answers(graph, score)
    dtype = graph.types[matrix]
    if node.op_type in TREES:
        ensemble = read_ensemble(node, graph.source)
        head = verdict(graph, answers, score, ensemble.trees[0].n_scores, graph.types[score])
        return _Read(ensemble.core(dtype, head.labels, head.decision, head.level), matrix, answers)
    weights, intercepts = read_linear(graph, node)
    link = attributes(node).get("post_transform", "NONE")
    if link != "NONE":
        raise graph.source.refuse("post_transform NONE", f"has {link} in {title(node)}", "Export the plain scores.")
    head = verdict(graph, answers, score, len(weights), graph.types[score])
    return _Read(_layered([weights], [intercepts], "float32", head), matrix, answers)


def _network(graph: Graph) -> _Read:
    layers = read_layers(graph)
    answers = read_answers(graph, layers.score)
    weights = list(layers.weights)
    biases = list(layers.biases)
    head = None
    if len(biases[-1]) == 2 and answers.kind in {"label", "argmax"}:
        # Two scores whose shares depend on their difference alone are one score, as in a logistic regression.
        opposed = (weights[-1][0] == -weights[-1][1]).all() and biases[-1][0] == -biases[-1][1]
        for apart in (0.0, 1.0) if opposed else (1.0,):
            head = head or paired(graph, answers, layers.score, layers.dtype, apart - 1.0)
            if head is not None:
                weights[-1] = weights[-1][1:] - apart * weights[-1][:1]
                biases[-1] = biases[-1][1:] - apart * biases[-1][:1]
                break
    if head is None:
        head = verdict(graph, answers, layers.score, len(biases[-1]), layers.dtype)
    return _Read(_layered(weights, biases, layers.dtype, head), layers.matrix, answers)


def _classifier(graph: Graph, node: NodeProto) -> _Read:
    """Read a classifier that chooses the label itself."""
    answers = read_answers(graph, None)
    matrix = node.input[0]
    for behind in graph.before([answers.wanted[0]], [node.output[0]]):
        if behind.op_type not in {*PASSING, "LabelEncoder"}:
            raise graph.source.refuse(
                "the label of its classifier as output", f"has {title(behind)} make the label", "Export it unchanged."
            )
    if node.op_type in TREES:
        ensemble = read_ensemble(node, graph.source)
        labels = _renamed(graph, node.output[0], answers.wanted[0], list(ensemble.labels or ()))
        return _Read(ensemble.core(graph.types[matrix], labels, None, ensemble.level), matrix, answers)
    weights, intercepts, given = _linear_scores(graph, node)
    labels = _renamed(graph, node.output[0], answers.wanted[0], given)
    return _Read(Affine(weights, intercepts, labels=labels, dtype="float32"), matrix, answers)


def _layered(weights: list[Floats], biases: list[Floats], dtype: str, head: Head) -> AbstractRepresentation:
    options: dict[str, Any] = {"labels": head.labels, "decision": head.decision, "level": head.level, "dtype": dtype}
    if len(weights) == 1:
        return Affine(weights[0], biases[0], **options)
    return ReluNetwork(weights, biases, **options)


def _linear_scores(graph: Graph, node: NodeProto) -> tuple[Floats, Floats, list[Any]]:
    """Return weights and intercepts of a LinearClassifier, one score for two classes where its shares have one."""
    at = attributes(node)
    labels = list(at.get("classlabels_strings", []) or at.get("classlabels_ints", []))
    weights, intercepts = read_linear(graph, node)
    count = len(intercepts)
    if len(labels) < 2 or count not in {len(labels), 2 * (len(labels) == 2) - 1}:
        raise graph.source.refuse(
            "one score per label, or one for two",
            f"has {count} for labels {labels} in {title(node)}",
            "Export it anew.",
        )
    if count == 2 and (weights[0] == -weights[1]).all() and intercepts[0] == -intercepts[1]:
        factor = 1.0
        if at.get("post_transform") == "SOFTMAX":
            factor = 2.0
        return factor * weights[1:], factor * intercepts[1:], labels
    return weights, intercepts, labels


def _renamed(graph: Graph, label: str, output: str, given: list[Any]) -> list[Any]:
    """Return the labels as the output calls them."""
    if label == output:
        return given
    texts = isinstance(given[0], str)
    array = np.array(given, dtype=object if texts else np.int64)
    renamed = graph.part([label], [output]).run(array)[0].ravel().tolist()
    if len(set(renamed)) != len(given):
        raise graph.source.refuse("different labels", f"calls {given} {renamed}", "Export it with its own labels.")
    return renamed


def _believed(graph: Graph, read: _Read) -> tuple[AbstractRepresentation, bool]:
    """Return the representation, and whether the graph gives probabilities; both are held against random rows.

    Raises
    ------
    UnsupportedModelError
        The representation says something else than the graph. Trees must agree everywhere, sums of floats where their
        rounding does not decide.
    """
    core = read.core
    rows = _random_rows(core, graph.widths.get(read.matrix, 0))
    kind = graph.types[read.matrix]
    if kind.startswith("int"):
        rows = np.rint(np.clip(rows, -1e6, 1e6))
    outputs = graph.part([read.matrix], read.answers.wanted).run(rows.astype(kind))
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = read.answers.predicted(outputs)
        scores = core.score(rows)
    if not np.isfinite(scores).all():
        raise graph.source.refuse(
            "scores that are finite", "has weights so large that they overflow", "Its training diverged: fit it again."
        )
    wrong = predicted != core.predict(rows)
    size = 1e-4 * (1.0 + np.abs(scores))
    if core.labels is None:
        wrong &= np.abs(predicted - scores) > size
    elif not isinstance(core, TreeEnsemble):
        if scores.ndim == 1:
            two = np.stack([scores, np.full(len(rows), core.level)], axis=1)
        else:
            two = np.sort(scores, axis=1)
        wrong &= np.abs(two[:, -1] - two[:, -2]) > size.reshape(len(rows), -1).max(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise graph.source.refuse(
            "to predict what the graph does",
            f"says {predicted[row]!r} where the model as read says {core.predict(rows[row : row + 1])[0]!r}",
            "Report this model; until then give the fitted model itself.",
        )  # fmt: skip
    if isinstance(core, TreeEnsemble) and not _takes_gaps(graph, read, core, rows):
        core = core.without_gaps()
    shares = read.answers.shares(outputs)
    if shares is None or core.labels is None or shares.shape != (len(rows), len(core.labels)):
        return core, False
    if (shares < 0.0).any() or not np.allclose(shares.sum(axis=1), 1.0, rtol=0.0, atol=1e-4):
        return core, False
    return with_head(core, dataclasses.replace(core.head, probability=_link(shares, scores))), True


def _takes_gaps(graph: Graph, read: _Read, core: TreeEnsemble, rows: Floats) -> bool:
    """Return whether graph and representation say the same of random rows with NaN."""
    kind = graph.types[read.matrix]
    if not kind.startswith("float"):
        return False
    rng = np.random.default_rng(1)
    with_gaps = np.where(rng.random(rows.shape) < 0.3, np.nan, rows)
    predicted = read.answers.predicted(graph.part([read.matrix], read.answers.wanted).run(with_gaps.astype(kind)))
    if core.labels is None:
        return bool(np.allclose(predicted, core.predict(with_gaps), rtol=1e-4, atol=1e-4))
    return bool((predicted == core.predict(with_gaps)).all())


def _link(shares: Floats, scores: Floats) -> Probability | None:
    """Return how probabilities follow from scores; None if in no way that a head knows."""

    def same(these: Floats, those: Floats) -> bool:
        return bool(np.allclose(these, those, rtol=0.0, atol=1e-5))

    if scores.ndim == 2:
        return "share" if same(shares, scores) else None
    if same(shares[:, 1], expit(scores)):
        return "logistic"
    return "identity" if same(shares[:, 1], scores) else None


def _sets_of(core: TreeEnsemble, place: int) -> list[frozenset[float]]:
    """Return the sets of values with which trees compare a column."""
    sets: list[frozenset[float]] = []
    for tree in core.trees:
        chosen = tree.subset[(tree.feature == place) & (tree.subset >= 0)]
        sets += map(tree.sets.__getitem__, chosen.tolist())
    return sets


def _random_rows(core: Any, width: int) -> Floats:
    """Return rows of the matrix of every size, and at trees' thresholds and next to them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(256, max(core.n_inputs, width, 1))) * 10.0 ** rng.integers(-2, 3, size=(256, 1))
    if isinstance(core, TreeEnsemble):
        for place in range(core.n_inputs):
            sets = _sets_of(core, place)
            used = [tree.threshold[tree.feature == place] for tree in core.trees]
            used += [np.array(sorted(members)) for members in sets]
            values = np.concatenate(used).astype(np.float32)
            if len(values):
                near = np.concatenate([values, *(np.nextafter(values, np.float32(end)) for end in (np.inf, -np.inf))])
                chosen = rng.random(len(rows)) < 0.8
                rows[chosen, place] = rng.choice(near, size=chosen.sum())
            # Categories are whole numbers; some versions of onnxruntime cut others off before they look for them.
            if any(len(members) > 1 or not 0 <= min(members) <= 30 for members in sets):
                rows[:, place] = np.rint(rows[:, place])
    return np.asarray(rows.astype(np.float32), dtype=np.float64)
