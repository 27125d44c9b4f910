"""The outputs of an ONNX graph: a label, shares of the labels, or a value; and the rule that says the same of scores.

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ceopt.formulations.predictors.read.onnx.graph import PASSING, Graph, title
from ceopt.formulations.predictors.representation.decision_rule import Decision, Floats
from ceopt.formulations.space.encoding import last_true

__all__ = ["Answers", "Verdict", "paired", "read_answers", "verdict"]

#: A score that leaves no doubt, in float32 as well.
_SURE: Final = 1e30


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

    def said(self, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
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
        return np.hstack([1.0 - given, given]) if given.shape[1] == 1 else given


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The head of scores, as their graph decides."""

    labels: tuple[Any, ...] | None
    decision: Decision
    level: float


def read_answers(graph: Graph, score: str | None) -> Answers:
    """Return what the outputs are, given the scores behind them (None behind a classifier of its own).

    Raises
    ------
    UnsupportedModelError
        Several labels or values, or none that has a meaning.
    """
    labels = []
    shares = []
    for value in graph.source.model.graph.output:
        maker = graph.makers.get(value.name)
        if maker is not None and maker.op_type == "ZipMap":
            shares.append(maker.input[0])
        elif graph.types.get(value.name, "").startswith("float") and not _is_chosen(graph, value.name):
            shares.append(value.name)
        else:
            labels.append(value.name)
    if len(labels) > 1 or len(shares) > 1 or not (labels or shares):
        names = [value.name for value in graph.source.model.graph.output]
        raise graph.source.refuse(
            "one label, one output of numbers or both", f"has outputs {', '.join(map(repr, names))}",
            "Export the model with one prediction.",
        )  # fmt: skip
    if labels:
        return Answers("label", (*labels, *shares))
    if score is None:
        raise graph.source.refuse("the label of its classifier as output", f"gives only {shares[0]!r}", "Export both.")
    operators = [node.op_type for node in graph.before(shares, [score])]
    ends = [operator for operator in operators if operator not in PASSING]
    if ends == ["Sigmoid"]:
        return Answers("half", tuple(shares))
    if ends == ["Softmax"]:
        return Answers("argmax", tuple(shares))
    if ends:
        found = next(node for node in graph.before(shares, [score]) if node.op_type not in PASSING)
        raise graph.source.refuse(
            "an output that is a score, its Sigmoid or its Softmax", f"has {title(found)} behind the last layer",
            "Export the model up to there.",
        )  # fmt: skip
    return Answers("value", tuple(shares))


def _is_chosen(graph: Graph, name: str) -> bool:
    """Whether numbers are labels that were looked up by their place."""
    maker = graph.makers.get(name)
    while maker is not None and maker.op_type in PASSING:
        maker = graph.makers.get(graph.data(maker)[0])
    return maker is not None and maker.op_type in {"ArgMax", "LabelEncoder"}


def verdict(graph: Graph, answers: Answers, score: str, count: int, dtype: str) -> Verdict:
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
                if name not in made or name in {value.name for value in graph.inputs}:
                    raise graph.source.refuse(
                        "outputs that depend on its scores alone", f"has {title(node)} read {name!r} as well",
                        "Export a model with one path to its prediction.",
                    )  # fmt: skip
        self.part = graph.part([score], answers.wanted)

    def __call__(self, scores: Any) -> list[NDArray[Any]]:
        rows = np.clip(np.asarray(scores, dtype=np.float64), -_SURE, _SURE)
        return self.part.run(rows.reshape(len(rows), -1).astype(self.dtype))

    def said(self, scores: Any) -> NDArray[Any]:
        return self.answers.said(self(scores))

    def refuse(self, needs: str, but: str) -> Exception:
        return self.graph.source.refuse(needs, but, "Export the model with the outputs of its library's own exporter.")


def _value(tail: _Tail, count: int) -> Verdict:
    if count != 1:
        raise tail.graph.source.refuse(
            "one value per row, or classes", f"gives {count} numbers without Softmax",
            "If they are logits, append Softmax before the export; else export one output.",
        )  # fmt: skip
    trial = _trial(1)[:, 0]
    if (tail.said(trial) != trial.astype(tail.dtype)).any():
        raise tail.refuse("a value that is its score", "changes its score before the output")
    return Verdict(None, "value", 0.0)


def _one(tail: _Tail) -> Verdict:
    labels = [_plain(tail.said([score])[0]) for score in (-_SURE, _SURE)]
    level = float(last_true(lambda scores: tail.said(np.ravel(scores)).reshape(np.shape(scores)) == labels[0]))
    if labels[0] == labels[1] or not np.isfinite(level):
        raise tail.refuse("two labels, one of which wins from some score on", f"says {labels[0]!r} of both ends")
    trial = _trial(1)[:, 0].astype(tail.dtype).astype(np.float64)
    if (tail.said(trial) != np.array(labels)[(trial > level).astype(int)]).any():
        raise tail.refuse("a label that turns over once as the score rises", "has one that turns over more often")
    return Verdict(tuple(labels), "positive", level)


def _several(tail: _Tail, count: int) -> Verdict:
    labels = [_plain(label) for label in tail.said(np.eye(count) * 50.0)]
    trial = _trial(count)
    best = np.sort(trial, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-3
    said = tail.said(trial)
    if len(set(labels)) != count or (said != np.array(labels)[np.argmax(trial, axis=1)])[clear].any():
        raise tail.refuse("the label of the largest score", f"says {labels} of {count} scores")
    tied = _plain(tail.said(np.zeros((1, count)))[0])
    if tied not in {labels[0], labels[-1]}:
        raise tail.refuse("ties to go to the first or the last label", f"gives them to {tied!r}")
    return Verdict(tuple(labels), "argmax" if tied == labels[0] else "argmax_last", 0.0)


def paired(graph: Graph, answers: Answers, score: str, dtype: str, first: float) -> Verdict | None:
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
    labels = [_plain(label) for label in tail.said(pair([-30.0, 30.0]))]
    level = float(last_true(lambda scores: tail.said(pair(scores)).reshape(np.shape(scores)) == labels[0]))
    return Verdict(tuple(labels), "positive", level) if np.isfinite(level) else None


def _trial(count: int) -> Floats:
    """Return scores of every size, (n, count)."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, count)) * 10.0 ** rng.integers(-3, 3, size=(400, 1))
    return np.asarray(rows.astype(np.float32), dtype=np.float64)


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
