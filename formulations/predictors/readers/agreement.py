r"""Agreement of a model as read with its library: asked each time that one is read, before it is believed.

A library may write its models anew in any version, as XGBoost 3.4 did with the weights of dart's trees. So the model as
read and the user's own are asked about some hundred rows, in one call for the predictions and one for the numbers
behind them:

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

The rows are some of the data, or some across the space, and rows beside the trees' thresholds. A row that is moved to a
threshold of a node on its own path still reaches that node: the splits above it leave room for every threshold below
them. So each of these rows asks about the side of one threshold that decides.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.predictor import Combination, Predictor, gap_error
from ceopt.formulations.predictors.readers.model_input import (
    behind,
    given,
    probe,
    probe_frame,
    refuse,
    rows_with_labels,
)
from ceopt.formulations.predictors.readers.pipeline import Followed, split
from ceopt.formulations.predictors.representation import AbstractLayers, AbstractRepresentation
from ceopt.formulations.predictors.trees import Tree, TreeEnsemble
from ceopt.formulations.space.encoding import Column
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.space import FeatureSpace, frame_of
from ceopt.formulations.tolerances import LINK_ROUNDING, READ_ROUNDING
from ceopt.solvers.checks import Floats, plain
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import CeoptError, UnsupportedModelError

#: Rows of the data that are asked about.
_ROWS: Final = 48
#: What pip calls otherwise than Python does.
DISTRIBUTIONS: Final = {"sklearn": "scikit-learn"}
T = TypeVar("T")
_PLAIN: Final = 48
_THRESHOLDS: Final = 40


def require_agreement(
    predictor: Predictor,
    opened: Any,
    reader: ModuleType,
    data: pd.DataFrame | None = None,
    followed: Sequence[Followed] = (),
) -> None:
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
    followed
        Rows whose way through the model's steps is known.

    Raises
    ------
    UnsupportedModelError
        Predictions or scores differ, or the library fails on rows of the space; names library and version.
    """
    space = predictor.space
    rows = trials(predictor, _some(space, data))
    if not len(rows):
        return
    steps, estimator = split(opened)
    with _failing(opened), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names, unknown levels, float width: the same as at every prediction
        seen = _among(followed, rows)
        if seen is None:
            seen = behind(steps, given(opened, space, frame_of(space, rows)))
        answers = _asked(estimator, seen, reader, predictor.core, len(rows))
    ours = _Reading(predictor, rows, getattr(estimator, "width", None))
    wrong = ours.differs(answers)
    if wrong is not None:
        row, theirs, mine = wrong
        frame = frame_of(space, rows)
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
    try:
        return space.coordinates(data.iloc[_spread(range(len(data)), _ROWS)])
    except CeoptError:  # whoever is given the data refuses them in its own name
        return None


def require_prediction(opened: Any, space: FeatureSpace) -> None:
    """Refuse a model that does not predict rows of the space itself, so that there is nothing to read.

    Raises
    ------
    UnsupportedModelError
        Its prediction fails; the message says how.
    """
    frame = probe_frame(space, {})
    with warnings.catch_warnings(), _failing(opened):
        warnings.simplefilter("ignore")
        opened.predict(given(opened, space, frame))


def gap_refusal(opened: Any, space: FeatureSpace) -> UnsupportedModelError | None:
    """Return the refusal of a model whose library fails on a missing cell of a column that may be missing.

    It names the step or estimator that fails where the cell is missing and takes the row where it has a value. None if
    there is no such column.
    """
    places = [place for place, feature in enumerate(space) if feature.missing is not False]
    if not places:
        return None
    whole = next((row for row in probe(space, {})[:3] if not _fails(opened, space, row)), None)
    if whole is None:
        return None  # of complete rows others speak
    without = whole.copy()
    without[places] = MISSING
    if not _fails(opened, space, without):
        return None
    for place in places:
        row = whole.copy()
        row[place] = MISSING
        if _fails(opened, space, row):
            data = given(opened, space, frame_of(space, row[None]))
            return gap_error(_first_to_fail(*split(opened), data), space.names[place])
    return None


def _fails(opened: Any, space: FeatureSpace, row: Floats) -> bool:
    """Tell whether a model has no prediction of a row of coordinates."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened.predict(given(opened, space, frame_of(space, row[None])))
    except (OutOfTimeError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - libraries have errors of their own for this
        return True
    return False


def _first_to_fail(steps: Sequence[Any], estimator: Any, data: Any) -> str:
    """Return the class name of the step that fails on the data, or of the estimator."""
    for step in steps:
        if step is None or isinstance(step, str):
            continue
        try:
            data = step.transform(data)
        except Exception:  # noqa: BLE001 - as above
            return _part_to_fail(step, data)
    return type(estimator).__name__


def _part_to_fail(step: Any, data: Any) -> str:
    """Return the class name of a step, or of the part of a ColumnTransformer or pipeline in it, that fails."""
    name = type(step).__name__
    if name == "Pipeline":
        return _first_to_fail([part for _, part in step.steps[:-1]], step.steps[-1][1], data)
    if name != "ColumnTransformer":
        return name
    for key, part, _ in step.transformers_:
        places = list(step._transformer_to_input_indices[key])  # noqa: SLF001
        if isinstance(part, str) or not places:
            continue
        own = data.iloc[:, places] if isinstance(data, pd.DataFrame) else data[:, places]
        try:
            part.transform(own)
        except Exception:  # noqa: BLE001 - as above
            return _part_to_fail(part, own)
    return name


@contextlib.contextmanager
def _failing(opened: Any) -> Iterator[None]:
    """Refuse a model whose own prediction fails, as one does whose attributes somebody has changed since its fit."""
    try:
        yield
    except (CeoptError, OutOfTimeError, MemoryError):
        raise
    except Exception as error:
        raise refuse(
            "a model that predicts rows of the space",
            f"{type(opened).__name__} of {_library(opened)} fails on them with {type(error).__name__}: {error}",
            "Call its predict on a row of your own; where it fails too, fit the model again.",
        ) from error  # fmt: skip


class _Answers(NamedTuple):
    """What the library says of the rows."""

    labels: NDArray[Any]
    scores: Floats | None = None
    shares: Floats | None = None


def _asked(estimator: Any, seen: Any, reader: ModuleType, core: AbstractRepresentation, n: int) -> _Answers:
    """Ask the library, as its user would, of the n rows that the estimator is given."""
    labels = np.asarray(estimator.predict(seen)).reshape(n)
    if core.labels is None:
        return _Answers(labels)
    scores = reader.own_scores(estimator, seen) if hasattr(reader, "own_scores") else None
    if scores is not None:
        return _Answers(labels, np.asarray(scores, dtype=np.float64))
    if core.probability is None or not hasattr(estimator, "predict_proba"):
        return _Answers(labels)
    return _Answers(labels, shares=np.asarray(estimator.predict_proba(seen), dtype=np.float64))


def _among(followed: Sequence[Followed], rows: Floats) -> Any:
    """Return what the estimator is given for rows that were followed through its steps; None if they were not all."""
    for known in followed:
        places = {row.tobytes(): place for place, row in enumerate(known.coordinates)}
        chosen = [places.get(row.tobytes()) for row in rows]
        if None not in chosen:
            return known.data[chosen]
    return None


class _Reading:
    """The model as read, at the rows."""

    def __init__(self, predictor: Predictor, rows: Floats, width: str | None) -> None:
        self.core = predictor.core
        self.scores = predictor.score(rows)
        self.width = width or _width(self.core)
        size = _size(self.core, np.asarray(predictor.encoding.matrix(rows), dtype=np.float64))
        self.error = READ_ROUNDING[self.width] * size  # (n,)
        self.counts = predictor.is_trees and not _in_jobs(predictor.model)

    def differs(self, answers: _Answers) -> tuple[int, str, str] | None:
        """Return the first row that differs, with what the library says and what the model as read says."""
        core = self.core
        n = len(self.error)
        decided = core.head.decide(self.scores)
        if core.labels is None:
            off = ~(np.abs(decided - answers.labels) <= self.error)
            return self._first(off, answers.labels, decided)
        off = np.asarray(decided != answers.labels, dtype=bool).reshape(n)
        if not self.counts:
            off = off & self._sure()
        difference = self._first(off, answers.labels, decided)
        if difference is not None:
            return difference
        if answers.scores is not None and answers.scores.shape == self.scores.shape:
            near = np.abs(answers.scores - self.scores).reshape(n, -1) <= self.error[:, None]
            off = ~np.asarray(near.all(axis=1), dtype=bool)
            return self._first(off, answers.scores, self.scores)
        if answers.shares is not None:
            return self._shares(answers.shares)
        return None

    def _shares(self, shares: Floats) -> tuple[int, str, str] | None:
        """Compare probabilities with those of scores a rounding lower and higher: a link may be steep."""
        head = self.core.head
        error = self.error.reshape(-1, *[1] * (self.scores.ndim - 1))
        for k in range(len(head.labels or ())):
            ends = np.stack([head.of_position(self.scores + side * error, k) for side in (-1.0, 1.0)])
            slack = LINK_ROUNDING[self.width]
            off = ~((shares[:, k] >= ends.min(axis=0) - slack) & (shares[:, k] <= ends.max(axis=0) + slack))
            difference = self._first(off, shares[:, k], head.of_position(self.scores, k))
            if difference is not None:
                return difference
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
        case AbstractLayers():
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
                size = np.ones((len(x), 1))
                if not core.votes:
                    size = _size(member.core, np.asarray(member.encoding.matrix(matrix), dtype=np.float64))[:, None]
                total = total + size * np.abs(weights).sum(axis=1)
            return np.asarray(total.max(axis=1) / core.divisor)
        case AbstractLayers():
            for w, b in core.layers:
                x = x @ np.abs(w).T + np.abs(b)
            return np.asarray(x.max(axis=1))
    return np.ones(len(x))


def _in_jobs(model: Any) -> bool:
    """Return whether a model of scikit-learn may add up in several jobs, whose order is not fixed."""
    if not hasattr(model, "get_params"):
        return False
    params = model.get_params(deep=True)
    return any(value not in {None, 1} for name, value in params.items() if name.split("__")[-1] == "n_jobs")


def _library(opened: Any) -> str:
    """Return the library that predicts, with its version."""
    module = type(split(opened)[1]).__module__
    if module.startswith("ceopt."):
        name = module.rpartition(".")[2]
    else:
        name = module.partition(".")[0]
    if name == "onnx":
        try:
            return f"onnxruntime {version('onnxruntime')}"
        except PackageNotFoundError:
            return f"the reference evaluator of onnx {version('onnx')}"
    distribution = DISTRIBUTIONS.get(name, name)
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:  # a library that is not installed as a distribution of its own name
        return distribution


def trials(predictor: Predictor, data: Floats | None = None) -> Floats:
    """Return rows as coordinates (n, d), at most some hundred and fifty, that the library takes.

    Parameters
    ----------
    predictor
        A model as it was read.
    data
        Rows of the user's data as coordinates, if there are some.
    """
    plain = _held(predictor, _plain_rows(predictor, data))
    rng = np.random.default_rng(0)
    beside = []
    forests = _spread(predictor.forests, _THRESHOLDS)
    for part in forests:
        core = part.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - what forests are
        if not len(plain):
            break
        seen = core.seen(part.encoding.matrix(plain))
        for tree in _spread(core.trees, max(1, _THRESHOLDS // len(forests))):
            place = int(rng.integers(len(plain)))
            nodes = [node for node in _path(tree, seen[place]) if tree.subset[node] < 0]
            if nodes:
                beside.append(_beside(part, core, tree, int(rng.choice(nodes)), plain[place]))
    if not beside:
        return plain
    return np.concatenate([plain, _held(predictor, np.concatenate(beside))])


def _plain_rows(predictor: Predictor, data: Floats | None) -> Floats:
    """Return some rows of the data, or of the whole space, without levels that the pipeline fails on."""
    unseen = predictor.unseen
    if data is not None:
        known = np.ones(len(data), dtype=bool)
        for name, ranks in unseen.items():
            known &= ~np.isin(data[:, predictor.space.names.index(name)], list(ranks))
        if known.any():
            some = data[_spread(np.flatnonzero(known).tolist(), _PLAIN)]
            return np.concatenate([some, rows_with_labels(predictor.space, some)])
    rows = probe(predictor.space, unseen)
    return np.concatenate([rows[:3], rows[-(_PLAIN - 3) :]])


def _spread(items: Sequence[T], count: int) -> list[T]:
    """Return at most ``count`` of them, from the first to the last."""
    places = np.unique(np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int))
    return [items[place] for place in places]


def _path(tree: Tree, seen: Floats) -> list[int]:
    """Return the inner nodes that a row, as the splits see it, passes."""
    node = 0
    passed = []
    while tree.feature[node] >= 0:
        passed.append(node)
        value = seen[tree.feature[node]]
        chosen = tree.subset[node]
        if np.isnan(value):
            assert tree.missing_left is not None  # noqa: S101 - else NaN is refused
            left = bool(tree.missing_left[node])
        elif chosen >= 0:
            left = value in tree.sets[chosen]
        else:
            left = value <= tree.threshold[node]
        node = int(tree.left[node] if left else tree.right[node])
    return passed


def _beside(part: Predictor, core: TreeEnsemble, tree: Tree, node: int, row: Floats) -> Floats:
    """Return the row on both sides of the threshold of a node, as near as floats are; none if a level decides there."""
    column = part.encoding.columns[tree.feature[node]]
    if column.feature is None or column.table is not None or column.is_indicator or not column.is_affine:
        return np.empty((0, len(row)))
    feature = part.space[column.feature]
    values = _raw(column, _sides(float(tree.threshold[node]), core.input_dtype))
    if feature.kind == "integer":
        whole = np.unique(np.floor(values))
        values = np.concatenate([whole, whole + 1.0])
    low, high = feature.coordinate_limits
    values = values[np.isfinite(values) & (values >= low) & (values <= high)]
    rows = np.tile(row, (len(values), 1))
    rows[:, part.space.names.index(column.feature)] = values
    return rows


def _sides(threshold: float, width: str) -> Floats:
    """Return the largest float of a width up to the threshold and the next one."""
    with np.errstate(over="ignore"):
        near = np.array(threshold).astype(width)
        if near.astype(np.float64) <= threshold:
            last = near
        else:
            last = np.nextafter(near, near.dtype.type(-np.inf))
        return np.array([last, np.nextafter(last, near.dtype.type(np.inf))], dtype=np.float64)


def _raw(column: Column, values: Floats) -> Floats:
    """Return raw numbers that the column's steps bring to the values, or within some roundings of them."""
    if not column.steps:
        return values
    slope, offset = column.affine()
    if slope == 0.0:
        return np.empty(0)
    with np.errstate(over="ignore", invalid="ignore"):
        raw = (values - offset) / slope
    return np.concatenate([raw, np.nextafter(raw, -np.inf), np.nextafter(raw, np.inf)])


def _held(predictor: Predictor, rows: Floats) -> Floats:
    """Return the rows whose numbers every part of the model holds in its own float width."""
    kept = np.ones(len(rows), dtype=bool)
    for part in predictor.parts:
        width = getattr(part.core, "input_dtype", "float32")
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = part.encoding.matrix(rows).astype(width)
            is_held = np.isfinite(matrix)
            if getattr(part.core, "takes_missing", False):
                is_held |= np.isnan(matrix)
            kept &= is_held.all(axis=1)
    return rows[kept]
