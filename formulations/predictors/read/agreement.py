r"""Agreement of a model as read with its library: asked each time that one is read, before it is believed.

A library may write its models anew in any version, as XGBoost 3.4 did with the weights of dart's trees. So the model as
read and the user's own are asked about some hundred rows (``probe_rows.py``), in one call for the predictions and one
for the numbers behind them:

=========================== ========================================================================
the library's               is compared with
=========================== ========================================================================
value of a regressor        the score
label                       the label, wherever rounding cannot decide; of trees everywhere
``own_scores`` of a reader  the score: its decision values, margins or raw scores
``predict_proba``           the probability that follows from the score, where one does
=========================== ========================================================================

Numbers are equal up to the rounding of their sums: :math:`\epsilon = 10^{-9}` (in float32 :math:`2 \cdot 10^{-5}`) of
the sum of the absolute terms.
"""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.model_input import given
from ceopt.formulations.predictors.read.pipeline.pipeline import split
from ceopt.formulations.predictors.read.pipeline.trace import refuse
from ceopt.formulations.predictors.read.probe_rows import trials
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation
from ceopt.formulations.predictors.representation.predictor import Combination, Predictor
from ceopt.formulations.predictors.representation.relu_network import ReluNetwork
from ceopt.formulations.predictors.representation.representation import Affine, TreeEnsemble
from ceopt.formulations.predictors.representation.tree import Floats
from ceopt.formulations.space.dtypes import plain
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import CeoptError

__all__ = ["require_agreement"]

#: What a sum may be off by, of its absolute terms: far above rounding, far below any term that was lost.
_ROUNDING: Final = {"float32": 2e-5, "float64": 1e-9}
#: What a probability may be off by beside that: roundings of the exponential.
_LINK: Final = {"float32": 2e-6, "float64": 1e-12}
#: Rows of the data that are asked about.
_ROWS: Final = 48
_DISTRIBUTIONS: Final = {"sklearn": "scikit-learn"}


def require_agreement(predictor: Predictor, opened: Any, reader: ModuleType, data: pd.DataFrame | None = None) -> None:
    """Refuse a reading that says anything else than the library.

    Parameters
    ----------
    predictor
        The model as it was read.
    opened
        The user's own model.
    reader
        The reader of the estimator's library.
    data
        Rows of the user's data, if there are some.

    Raises
    ------
    UnsupportedModelError
        Predictions or scores differ, or the library fails on rows of the space; names library and version.
    """
    space = predictor.space
    rows = trials(predictor, _some(space, data))
    if not len(rows):
        return
    frame = space.frame([dict(zip(space.names, row, strict=True)) for row in rows.tolist()])
    said = _asked(opened, reader, predictor, frame)
    ours = _Reading(predictor, rows, getattr(split(opened)[1], "width", None))
    wrong = ours.differs(said)
    if wrong is not None:
        row, theirs, mine = wrong
        at = ", ".join(f"{name}={plain(frame[name].iloc[row])!r}" for name in space.names[:6])
        raise refuse(
            "to predict what the library does",
            f"{_library(opened)} says {theirs} where the model as read says {mine}, at {at}"
            f"{', ...' if len(space.names) > 6 else ''}",
            "Report this model; until then install a version of the library that ceopt was tested with.",
        )  # fmt: skip


def _some(space: FeatureSpace, data: pd.DataFrame | None) -> Floats | None:
    """Return some rows of the data as coordinates; None where there are none, or none that are rows of the space."""
    if not isinstance(data, pd.DataFrame) or not len(data):
        return None
    places = np.unique(np.linspace(0, len(data) - 1, min(_ROWS, len(data))).round().astype(int))
    try:
        return space.coordinates(data.iloc[places])
    except CeoptError:  # whoever is given the data refuses them in its own name
        return None


class _Said:
    """What the library says of the rows."""

    def __init__(self, labels: NDArray[Any], scores: Floats | None, shares: Floats | None) -> None:
        self.labels, self.scores, self.shares = labels, scores, shares


def _asked(opened: Any, reader: ModuleType, predictor: Predictor, frame: pd.DataFrame) -> _Said:
    """Ask the library, as its user would."""
    core, (steps, estimator) = predictor.core, split(opened)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names, unknown levels, float width: the same as at every prediction
        asked = given(opened, predictor.space, frame)
        for step in steps:
            asked = asked if step is None or isinstance(step, str) else step.transform(asked)
        labels = np.asarray(estimator.predict(asked)).reshape(len(frame))
        if core.labels is None:
            return _Said(labels, None, None)
        scores = reader.own_scores(estimator, asked) if hasattr(reader, "own_scores") else None
        if scores is not None:
            return _Said(labels, np.asarray(scores, dtype=np.float64), None)
        has_shares = core.probability is not None and hasattr(estimator, "predict_proba")
        return _Said(labels, None, np.asarray(estimator.predict_proba(asked), dtype=np.float64) if has_shares else None)


class _Reading:
    """The model as read, at the rows."""

    def __init__(self, predictor: Predictor, rows: Floats, width: str | None) -> None:
        self.core = predictor.core
        self.scores = predictor.score(rows)
        self.width = _width(self.core) if width is None else width
        size = _size(self.core, np.asarray(predictor.encoding.matrix(rows), dtype=np.float64))
        self.error = _ROUNDING[self.width] * size  # (n,)
        self.counts = predictor.is_trees and not _in_jobs(predictor.model)

    def differs(self, said: _Said) -> tuple[int, str, str] | None:
        """Return the first row that differs, with what the library says and what the model as read says."""
        core, n = self.core, len(self.error)
        decided = core.head.decide(self.scores)
        if core.labels is None:
            off = ~(np.abs(decided - said.labels) <= self.error)
            return self._first(off, said.labels, decided)
        off = np.asarray(decided != said.labels, dtype=bool).reshape(n)
        off = off if self.counts else off & self._sure()
        found = self._first(off, said.labels, decided)
        if found is not None:
            return found
        if said.scores is not None and said.scores.shape == self.scores.shape:
            near = np.abs(said.scores - self.scores).reshape(n, -1) <= self.error[:, None]
            off = ~np.asarray(near.all(axis=1), dtype=bool)
            return self._first(off, said.scores, self.scores)
        if said.shares is not None:
            return self._shares(said.shares)
        return None

    def _shares(self, shares: Floats) -> tuple[int, str, str] | None:
        """Compare probabilities with those of scores a rounding lower and higher: a link may be steep."""
        head, error = self.core.head, self.error if self.scores.ndim == 1 else self.error[:, None]
        for k in range(len(head.labels or ())):
            ends = np.stack([head.of_position(self.scores + side * error, k) for side in (-1.0, 1.0)])
            slack = _LINK[self.width]
            off = ~((shares[:, k] >= ends.min(axis=0) - slack) & (shares[:, k] <= ends.max(axis=0) + slack))
            found = self._first(off, shares[:, k], head.of_position(self.scores, k))
            if found is not None:
                return found
        return None

    def _sure(self) -> NDArray[np.bool_]:
        """Where no rounding decides."""
        if self.scores.ndim == 1:
            return np.asarray(np.abs(self.scores - self.core.level) > 2.0 * self.error)
        best = np.sort(self.scores, axis=1)
        return np.asarray(best[:, -1] - best[:, -2] > 2.0 * self.error)

    def _first(self, off: NDArray[np.bool_], theirs: Any, mine: Any) -> tuple[int, str, str] | None:
        if not off.any():
            return None
        row = int(np.argmax(off))
        return row, _plain(theirs[row]), _plain(mine[row])


def _plain(value: Any) -> str:
    return repr(value.tolist() if hasattr(value, "tolist") else value)


def _width(core: AbstractRepresentation) -> str:
    """Return the least float width in which the model or a part of it adds up."""
    match core:
        case TreeEnsemble():
            return core.sum_dtype
        case Combination():
            return min(_width(member.core) for member in core.members)
        case Affine() | ReluNetwork():
            return core.dtype
    return "float64"


def _size(core: AbstractRepresentation, matrix: Floats) -> Floats:
    """Return the largest sum of absolute terms behind a score, per row of the matrix."""
    x = np.abs(matrix)
    match core:
        case TreeEnsemble():
            most = np.abs(core.base) + sum(np.abs(tree.value[tree.feature < 0]).max(axis=0) for tree in core.trees)
            return np.full(len(x), float(most.max()) / core.divisor)
        case Combination():
            total = np.tile(np.abs(core.offset), (len(x), 1))
            for member, weights in zip(core.members, core.weights, strict=True):
                said = (
                    1.0
                    if core.votes
                    else _size(member.core, np.asarray(member.encoding.matrix(matrix), dtype=np.float64))[:, None]
                )
                total = total + said * np.abs(weights).sum(axis=1)
            return np.asarray(total.max(axis=1) / core.divisor)
        case Affine():
            return np.asarray((x @ np.abs(core.weights).T + np.abs(core.intercept)).max(axis=1))
        case ReluNetwork():
            for w, b in zip(core.weights, core.biases, strict=True):
                x = x @ np.abs(w).T + np.abs(b)
            return np.asarray(x.max(axis=1))
    return np.ones(len(x))


def _in_jobs(model: Any) -> bool:
    """Whether a model of scikit-learn may add up in several jobs, whose order is not fixed."""
    if not hasattr(model, "get_params"):
        return False
    params = model.get_params(deep=True)
    return any(value not in {None, 1} for name, value in params.items() if name.split("__")[-1] == "n_jobs")


def _library(opened: Any) -> str:
    """Return the library that predicts, with its version."""
    module = type(split(opened)[1]).__module__
    name = module.rpartition(".")[2] if module.startswith("ceopt.") else module.partition(".")[0]
    if name == "onnx":
        try:
            return f"onnxruntime {version('onnxruntime')}"
        except PackageNotFoundError:
            return f"the reference evaluator of onnx {version('onnx')}"
    return f"{_DISTRIBUTIONS.get(name, name)} {version(_DISTRIBUTIONS.get(name, name))}"
