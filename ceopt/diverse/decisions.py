"""The decision of a fitted model, asked as its user would ask it, or of a bare function that predicts."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.content_hash import content_of as content_hash
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.readers.model_input import array_of, takes_numbers
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.space import FeatureSpace, raw_frame
from ceopt.formulations.targets import (
    AtLeast,
    AtMost,
    Between,
    Disagreement,
    Labels,
    OtherThan,
    Probability,
    Target,
    Values,
    one_of,
    parse_target,
)
from ceopt.oracle.model import ModelOracle, labels_named
from ceopt.solvers.checks import Floats, plain
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from ceopt.solvers.checks import Floats

#: Libraries of which a model predicts by what it holds, and by nothing else.
_LIBRARIES: Final = {"ceopt", "lightgbm", "sklearn", "xgboost"}

_WHO: Final = "DiverseRobustExplainer.explain"
_RANGES: Final = AtLeast | AtMost | Between


class _Judge(Protocol):
    """Says of points, as coordinates (n, d), what is predicted and whether that meets the target."""

    def judge(self, points: Floats) -> tuple[NDArray[Any], NDArray[np.bool_]]: ...

    @property
    def text(self) -> str: ...

    @property
    def asked(self) -> tuple[Any, Any]: ...


@final
class Decisions:
    """What is decided of points, and whether it meets the target.

    Parameters
    ----------
    space
        The raw columns.
    judge
        The model or function.
    scored
        A representation from plain arrays and the target, where the score is to be told; None for all else.
    """

    __slots__ = ("_judge", "_scored", "space")

    def __init__(self, space: FeatureSpace, judge: _Judge, scored: tuple[Predictor, Target] | None = None) -> None:
        self.space = space
        self._judge = judge
        self._scored = scored

    @property
    def text(self) -> str:
        """The target in words."""
        return self._judge.text

    @property
    def is_function(self) -> bool:
        """Whether a bare function predicts, whose labels are known from its predictions only."""
        return isinstance(self._judge, _Function)

    def content(self) -> str | None:
        """Return a hash of the model's whole content and the target; None where it cannot be known again by that."""
        return content_of(*self._judge.asked)

    def judge(self, points: Floats) -> tuple[list[Any], NDArray[np.bool_]]:
        """Return predictions for points (n, d) and whether they meet the target, with one call for all.

        Raises
        ------
        InvalidValueError
            The model fails, or what it returns is no decision for each row.
        """
        if not len(points):
            return [], np.zeros(0, dtype=bool)
        try:
            predicted, met = self._judge.judge(points)
        except CeoptError:
            raise
        except Exception as error:
            raise InvalidValueError(
                _WHO, "a model that can predict its rows", f"on {len(points)} of them it fails "
                f"({type(error).__name__}: {error})", "Check the rows, and what the model was fitted on.",
            ) from error  # fmt: skip
        return predicted.tolist(), met

    def meets(self, points: Floats) -> NDArray[np.bool_]:
        """Return which points (n, d) meet the target."""
        return self.judge(points)[1]

    def scores(self, points: Floats) -> list[tuple[Any, float | None]]:
        """Return score and slack of points (n, d), for a representation; None for what only predicts."""
        if self._scored is None or not len(points):
            return [(None, None)] * len(points)
        predictor, target = self._scored
        scores = predictor.score(points)
        slacks = slack(predictor, points, target)
        said: list[Any] = scores.tolist()
        if scores.ndim > 1:
            said = [dict(zip(predictor.labels or (), of_point, strict=True)) for of_point in said]
        return list(zip(said, slacks.tolist(), strict=True))


def decisions_of(model_or_predict: Any, space: FeatureSpace, target: Any, *, is_frame: bool) -> Decisions:
    """Return what a fitted model decides, or a function that is given frames or arrays and returns labels or values.

    Raises
    ------
    CeoptError
        Neither a model nor a function; a target that does not fit it.
    """
    model = open_model(model_or_predict)
    if not isinstance(model, type | Predictor | AbstractRepresentation) and not hasattr(model, "predict"):
        if not callable(model):
            but = f"it got {type(model).__name__}"
            then = "Give the model, or for example lambda X: (score(X) > 0).astype(int)."
            raise InvalidTypeError(_WHO, "a fitted model or a function that predicts", but, then)
        return Decisions(space, _Function(model, space, target, is_frame=is_frame))
    oracle = ModelOracle(model, space)
    checked = parse_target(target, oracle.labels)
    is_plain = isinstance(model, Predictor | AbstractRepresentation)
    return Decisions(space, _Model(oracle, checked), (read(model, space), checked) if is_plain else None)


@final
class _Model:
    """A fitted model."""

    __slots__ = ("_oracle", "_read", "_target")

    def __init__(self, oracle: ModelOracle, target: Target) -> None:
        self._oracle = oracle
        self._target = target
        # What the oracle would ask, without a frame in between, which takes longer than the question.
        self._read: Callable[[Floats], Any] | None = None
        if not isinstance(target, Labels | Values):
            return
        if oracle.encoding is not None:
            self._read = oracle.encoding.matrix
        elif takes_numbers(oracle.model, oracle.space):
            self._read = _with_gaps

    def judge(self, points: Floats) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if self._read is None:
            return self._oracle.judge(raw_frame(self._oracle.space, points), self._target)
        assert isinstance(self._target, Labels | Values)  # noqa: S101 - nothing is read past the oracle without
        predicted = np.asarray(self._oracle.model.predict(self._read(points))).reshape(len(points))
        return predicted, self._target.holds(predicted)

    @property
    def text(self) -> str:
        return self._target.text()

    @property
    def asked(self) -> tuple[Any, Any]:
        return self._oracle.model, self._target


def _with_gaps(points: Floats) -> Floats:
    """Return points (n, d) of numbers as an array in raw units, which has NaN where a cell is missing."""
    return np.where(points == MISSING, np.nan, points)


@final
class _Function:
    """A function from rows to labels or values, which says nothing of itself: its answers are checked each time."""

    __slots__ = ("_but", "_is_frame", "_labels", "_predict", "_range", "_space")

    def __init__(self, predict: Callable[[Any], Any], space: FeatureSpace, target: Any, *, is_frame: bool) -> None:
        self._predict = predict
        self._space = space
        self._is_frame = is_frame
        self._range: Values | None = None
        self._labels: tuple[Any, ...] = ()
        self._but = isinstance(target, OtherThan)
        if isinstance(target, _RANGES):
            found = parse_target(target, None)
            assert isinstance(found, Values)  # noqa: S101 - what a range becomes
            self._range = found
        else:
            self._labels = _labels_of(target)

    @property
    def text(self) -> str:
        if self._range is not None:
            return self._range.text()
        return f"{'other than ' * self._but}{' or '.join(map(str, self._labels))}"

    def judge(self, points: Floats) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        said = np.asarray(self._predict(self._asked(points)))
        if said.shape != (len(points),):
            returned = f"predict returned an array of shape {said.shape}"
            hint = "Return one for each row that it is given."
            if said.shape == (len(points), 1):
                hint = "Return its column: .ravel()."
            elif said.ndim == 2 and len(said) == len(points):
                hint = "One column per class is probabilities: return the labels, such as classes[P.argmax(axis=1)]."
            needs = f"one label or value for each of {len(points)} rows, shape ({len(points)},)"
            raise InvalidValueError(_WHO, needs, returned, hint)
        if self._range is not None:
            return said, self._within(said, self._range)
        self._require_labels(said)
        return said, one_of(said, self._labels) != self._but

    def _asked(self, points: Floats) -> Any:
        if not self._is_frame and self._space.is_continuous:
            return _with_gaps(points)
        frame = raw_frame(self._space, points)
        if self._is_frame:
            return frame
        return array_of(frame)

    @property
    def asked(self) -> tuple[Any, Any]:
        return self._predict, (self._labels, self._but, self._range)

    @staticmethod
    def _within(said: NDArray[Any], wanted: Values) -> NDArray[np.bool_]:
        if said.dtype.kind not in "iuf" or not np.isfinite(said).all():
            what = repr(plain(said[0])) if said.dtype.kind not in "iuf" else "nan or an infinite value"
            but = f"predict returned {what}"
            raise InvalidTypeError(_WHO, f"numbers to be {wanted.text()}", but, "Return finite numbers.")
        return wanted.holds(said)

    def _require_labels(self, said: NDArray[Any]) -> None:
        """Refuse probabilities in place of labels, and labels of another type than the target."""
        shown = ", ".join(map(repr, self._labels))
        if said.dtype.kind == "f":
            broken = said[~(said == np.floor(said))]
            if len(broken) and not any(isinstance(label, float) and label % 1.0 for label in self._labels):
                raise InvalidValueError(
                    _WHO, f"labels such as {shown}", f"predict returned {broken[0]:.6g}, as probabilities and scores "
                    "are", "Return the labels, or ask for a value: target=ceopt.AtLeast(0.5).",
                )  # fmt: skip
        is_truth = said.dtype.kind == "b"
        kinds = {"b": bool, "i": int | float, "u": int | float, "f": int | float, "U": str}
        kind = kinds.get(said.dtype.kind, object)
        if any(not isinstance(label, kind) or (isinstance(label, bool) and not is_truth) for label in self._labels):
            but = f"target is {shown} and predict returned {plain(said[0])!r}"
            raise InvalidTypeError(_WHO, "a target of the labels' own type", but, "Write the label as it is returned.")


def _labels_of(target: Any) -> tuple[Any, ...]:
    """Return the labels that a target names, or refuse what a function of labels cannot be asked for."""
    if isinstance(target, Probability | Disagreement):
        needs = "a label or a range of values of a bare predict"
        raise InvalidTypeError(_WHO, needs, f"target is {target!r}", "Give the fitted model.")
    if isinstance(target, OtherThan):
        target = target.label
    labels = tuple(map(plain, labels_named(target)))
    bad = [label for label in labels if not isinstance(label, str | bool | int | float) or _is_nan(label)]
    if bad or not labels:
        but = f"target is {target!r}" if labels else "the set is empty"
        raise InvalidTypeError(_WHO, "a label, a set of labels or a range of values", but, 'Write target="granted".')
    return tuple(sorted(labels, key=repr)) if isinstance(target, set | frozenset) else labels


def _is_nan(label: Any) -> bool:
    return isinstance(label, float) and math.isnan(label)


def content_of(model: Any, target: Any) -> str | None:
    """Return a hash of a model and a target; None for models of other libraries, whose state may lie elsewhere.

    Parameters
    ----------
    model
        A fitted model, or a method of one.
    target
        What is asked of it, as plain values.
    """
    owner = getattr(model, "__self__", model)
    if type(owner).__module__.partition(".")[0] not in _LIBRARIES:
        return None
    return content_hash((model, target))


#: How many answers are kept: a few models, and of each the targets.
_KEPT: Final = 8


@final
class Memory:
    """What was found of some rows; the last few models and targets are kept.

    A model is known again by its content, never by its name or place, so that one that was fitted anew is another.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OrderedDict[str, NDArray[np.bool_]] = OrderedDict()

    def recall(self, decisions: Decisions) -> NDArray[np.bool_] | None:
        """Return which rows meet the target, if this was asked before."""
        if not self._known:
            return None
        key = decisions.content()
        if key is None or key not in self._known:
            return None
        self._known.move_to_end(key)
        return self._known[key]

    def learn(self, decisions: Decisions, rows: Floats) -> NDArray[np.bool_] | None:
        """Ask which of all rows (n, d) meet the target and remember it; None for what has no content to know it by."""
        key = decisions.content()
        if key is None:
            return None
        self._known[key] = decisions.meets(rows)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return self._known[key]
