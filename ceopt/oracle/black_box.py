"""A black box, known by its predictions: asked in batches, checked, counted and limited."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.readers import is_function
from ceopt.formulations.predictors.readers.model_input import given
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.space.feature import is_gap
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.targets import Disagreement, DisagreementOf, Labels, Probability, ProbabilityOf, parse_target
from ceopt.oracle.model import ModelOracle, check_kind, meets_raw_target, model_behind, predictions_of
from ceopt.solvers.checks import Matrix, Whole
from ceopt.solvers.deadline import checkpoint, deadline_now
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, counted

_WHO: Final = "A black box"
_LIMIT: Final = Whole(at_least=1)
#: Rows of the first batch that are asked about a second time.
_TWICE: Final = 32
_HALF: Final = 0.5
#: Labels that are kept to be named.
_SAID: Final = 3
#: Seconds that the rows of one call may take before a deadline, or as long as a call of one row if that is more.
_SHORT_S: Final = 0.1
#: A call is at most so many times as large as the largest before it, as cost need not be linear.
_GROWTH: Final = 32
#: Share of a call's time that is taken for noise where two sizes are compared.
_NOISE: Final = 0.02


@final
class QueryLimitError(CeoptError, RuntimeError):
    """The model may not be asked about so many rows."""


@final
class _Pace:
    """How many rows a call may have so that it is short: learned from the smallest and the largest call so far.

    What a call costs is taken for a part of its own and one for each row. The first call has one row and the second
    two, if one took long: so it is told which part is the long one before many rows are sent.
    """

    __slots__ = ("_largest", "_smallest")

    def __init__(self) -> None:
        self._smallest: tuple[int, float] | None = None  # rows and seconds
        self._largest: tuple[int, float] | None = None

    def note(self, rows: int, seconds: float) -> None:
        """Learn from a call."""
        if self._smallest is None or rows <= self._smallest[0]:
            self._smallest = (rows, seconds)
        if self._largest is None or rows >= self._largest[0]:
            self._largest = (rows, seconds)

    def rows(self) -> int:
        """Return the rows of the next call."""
        if self._smallest is None or self._largest is None:
            return 1
        few, short_s = self._smallest
        many, long_s = self._largest
        if few < many:
            row_s = (max(long_s - short_s, 0.0) + _NOISE * long_s) / (many - few)
        else:
            row_s = long_s / many
        most = _GROWTH * many
        may_take = max(_SHORT_S, short_s)
        if most * row_s <= may_take:
            return most
        return 1 + int(may_take / row_s)


@final
class BlackBox:
    """A model or a function of rows with a target: tells for raw rows whether it is met, and checks every call.

    The first answers are asked for twice, a few rows of them in another order, as nothing can be said of a model that
    says now this and now that. It counts: the object changes with every question.

    Before a deadline (:mod:`ceopt.solvers.deadline`) no call begins that is late, and many rows are asked about in
    several calls, of as many rows as take a tenth of a second by what calls took so far, or as long as a call of one
    row: so what is under way at the deadline is short.

    Parameters
    ----------
    model
        A fitted model with ``predict``, or a function from a frame, with the columns and dtypes named here, to labels
        (n,), or to values where the target is a range. ``model.predict`` of a fitted scikit-learn model stands for the
        model, which is asked as it was fitted: by name, or with an array.
    target
        A label, a set or list of labels, ``OtherThan(label)``, ``AtLeast``, ``AtMost``, ``Between``; of a model with
        ``space`` everything that :func:`ceopt.explain` takes.
    columns
        The columns of a frame for ``predict``, in order.
    dtypes
        Their dtypes. A column of which a value would be lost keeps its own, such as a fraction in one of whole numbers.
    max_queries
        How many rows may be asked about.
    space
        What the columns are; a fitted model is then asked exactly as verification asks it.

    Raises
    ------
    InvalidTypeError
        Neither a model nor a function; no target.
    UnsupportedModelError, UnknownNameError
        A model that is not fitted; a target that is none of its labels.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"income": [10.0, 30.0], "age": [40, 50]})
    >>> box = BlackBox(lambda rows: rows["income"] > 20, True, columns=list(people), dtypes=people.dtypes)
    >>> box.favourable(people).tolist(), box.n_queries
    ([False, True], 4)
    """

    __slots__ = (
        "_ask",
        "_columns",
        "_data",
        "_dtypes",
        "_met",
        "_oracle",
        "_pace",
        "_parsed",
        "is_trusted",
        "max_queries",
        "n_queries",
        "said",
        "target",
    )

    def __init__(
        self,
        model: Any,
        target: Any,
        *,
        columns: Sequence[Any],
        dtypes: Mapping[Any, Any] | pd.Series[Any],
        max_queries: int = 20_000,
        space: FeatureSpace | None = None,
    ) -> None:
        if target is None:
            raise InvalidTypeError(_WHO, "a target", "target is None", "Give the label that is wanted.")
        self.max_queries = _LIMIT.require(_WHO, "max_queries", max_queries)
        self.n_queries = 0
        self.target = target
        self.is_trusted = False
        self.said: tuple[Any, ...] = ()  # some labels of the first rows
        self._columns = list(columns)
        self._dtypes = dict(dtypes.items())
        self._data: tuple[pd.DataFrame, NDArray[np.bool_]] | None = None
        self._met: list[tuple[pd.DataFrame, NDArray[Any]]] = []  # rows that are favourable, and their labels
        self._pace = _Pace()
        model = _model_of(model, target)
        self._oracle: ModelOracle | None = None
        self._parsed: Any = None
        self._ask: Callable[[pd.DataFrame], Any] | Any = model
        if space is not None and not is_function(model):
            self._oracle = ModelOracle(model, space)
            self._parsed = parse_target(target, self._oracle.labels)
            self._ask = functools.partial(_as_verified, self._oracle)  # which can be pickled
        elif isinstance(target, Probability | Disagreement):
            but = f"it is asked of {type(model).__name__}"
            then = "Ask for a label, or wrap the threshold into the function."
            raise InvalidTypeError(_WHO, f"a fitted model and its space to check {target!r}", but, then)

    def again(self, max_queries: int | None = None) -> BlackBox:
        """Return the same black box with its predictions of the data, a count from 0 and a limit of its own."""
        other = object.__new__(BlackBox)
        for name in BlackBox.__slots__:
            setattr(other, name, getattr(self, name))
        other.n_queries = 0
        other._met = []
        if max_queries is not None:
            other.max_queries = _LIMIT.require(_WHO, "max_queries", max_queries)
        return other

    def labels(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Return the predictions of raw rows, (m,): labels, or values of a regressor.

        Raises
        ------
        QueryLimitError
            More rows than it may be asked about.
        InvalidValueError
            ``predict`` raised, or returned another shape than (m,), or a missing value.
        OutOfTimeError
            The deadline was over before the last call.
        """
        return self._answered(lambda rows: predictions_of(_WHO, self._ask, rows), frame)

    def label_of(self, row: pd.DataFrame) -> Any:
        """Return the prediction of a one-row frame, remembered if that row was found favourable before.

        Raises
        ------
        CeoptError, OutOfTimeError
            As :meth:`labels`.
        """
        row = self._given(row)
        for rows, labels in reversed(self._met):
            same = np.ones(len(rows), dtype=bool)
            for name in self._columns:
                own = row[name].iloc[0]
                same &= np.asarray(rows[name].isna() if is_gap(own) else rows[name].eq(own).fillna(False), dtype=bool)
            if same.any():
                return labels[same].tolist()[0]
        return self.labels(row).tolist()[0]

    def favourable(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which raw rows meet the target, (m,).

        Raises
        ------
        QueryLimitError, InvalidValueError
            As :meth:`labels`; probabilities in place of labels; another answer when asked again.
        UnknownNameError
            Labels of another type than the target.
        OutOfTimeError
            The deadline was over before the last call.
        """
        if not len(frame):
            return np.zeros(0, dtype=bool)
        found = self._decided(frame)
        if not self.is_trusted:
            self._ask_again(frame, found)
        return found

    def of_data(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which rows of data meet the target, (n,); the same frame is asked about once."""
        if self._data is None or self._data[0] is not frame:
            self._data = (frame, self.favourable(frame))
        return self._data[1]

    @property
    def has_probability(self) -> bool:
        """Whether :meth:`leaning` is a probability, not the decision."""
        return self._oracle is not None and _level_of(self._oracle, self._parsed) is not None

    def leaning(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return how far the model leans to the target for raw rows, (m,); at least 0 where the row is favourable.

        Of a classifier of two classes with ``predict_proba`` that is the probability of the target less 0.5, or less
        the level that the target asks for; of all others the decision itself, 0.5 or -0.5.
        """
        oracle = self._oracle
        level = _level_of(oracle, self._parsed)
        if oracle is None or level is None:
            return np.where(self.favourable(frame), _HALF, -_HALF)
        label, at_least = level
        found = self._answered(lambda rows: oracle.probability(rows, label), frame)
        return Matrix((len(frame),)).require(_WHO, "what predict_proba returns", found) - at_least

    def _require_room(self, more: int) -> None:
        if self.n_queries + more > self.max_queries:
            but = f"it was sent {counted(self.n_queries, 'row')} and max_queries is {self.max_queries}"
            then = "Raise max_queries, or take fewer samples."
            raise QueryLimitError(_WHO, f"room for {counted(more, 'more row')}", but, then)

    def _decided(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        oracle = self._oracle
        parsed = self._parsed
        if oracle is not None and isinstance(parsed, ProbabilityOf | DisagreementOf):
            parts = []

            def meets(rows: pd.DataFrame) -> Any:
                predictions, met = oracle.judge(rows, parsed)
                parts.append(predictions)
                return met

            found = self._answered(meets, frame).astype(bool)
            labels = np.concatenate(parts)
        else:
            labels = self._answered(lambda rows: predictions_of(_WHO, self._ask, rows), frame)
            check_kind(_WHO, labels, self.target)
            if not self.said:
                self.said = tuple(pd.unique(labels)[:_SAID].tolist())
            found = meets_raw_target(_WHO, labels, self.target)
        if found.any():
            self._met.append((self._given(frame[found]), labels[found]))
        return found

    def _answered(self, ask: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> NDArray[Any]:
        """Ask about a frame, in one call or, before a deadline, in as many as keep each of them short."""
        self._require_room(len(frame))
        rows = self._given(frame)
        size = len(rows)
        parts: list[NDArray[Any]] = []
        at = 0
        while at < len(rows) or not parts:
            if deadline_now() < math.inf:
                checkpoint("asking the model")
                size = self._pace.rows()
            some = rows.iloc[at : at + size]
            at += size
            self.n_queries += len(some)
            began = time.perf_counter()
            parts.append(self._asked(ask, some))
            self._pace.note(len(some), time.perf_counter() - began)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts)

    def _asked(self, ask: Callable[[pd.DataFrame], Any], rows: pd.DataFrame) -> NDArray[Any]:
        """Make one call as the model's user would, whose own errors become a sentence."""
        try:
            return np.asarray(ask(rows))
        except (CeoptError, MemoryError):
            raise
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            said = f"{type(error).__name__}: {lines[0].rstrip('.')}"
            then = "Try it on X.head(): it is given a frame with the columns and dtypes of X."
            if self._oracle is not None and not hasattr(self._oracle.model, "feature_names_in_"):
                then = "It is given an array, as it names no columns it was fitted on; for frames give model.predict."
            gaps = [name for name in rows if rows[name].isna().any()]
            if gaps:
                columns = ", ".join(map(repr, gaps))
                then = f"Where it takes no missing cell ({columns}), put an imputer before it, or ask about whole rows."
            but = f"predict raised {said[:300]}"
            raise InvalidValueError(_WHO, f"an answer for {counted(len(rows), 'row')}", but, then) from error

    def _given(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns in their order, with the dtypes that predict knows."""
        rows = frame[self._columns]
        others = {name: dtype for name, dtype in self._dtypes.items() if rows[name].dtype != dtype}
        kept = {name: dtype for name, dtype in others.items() if _is_lossless(rows[name], dtype)}
        return rows.astype(kept)

    def _ask_again(self, frame: pd.DataFrame, found: NDArray[np.bool_]) -> None:
        """Ask a second time about the last few rows, in another order, and refuse a model that changes its mind."""
        size = min(_TWICE, len(frame))
        second = self._decided(frame.iloc[: -size - 1 : -1])[::-1]
        other = np.flatnonzero(second != found[-size:])
        if len(other):
            place = len(frame) - size + int(other[0])
            but = f"row {place} of {len(frame)} was {verdict(found[place])} and then {verdict(second[other[0]])}"
            then = "Fix what is random in predict, or give its most likely label."
            raise InvalidValueError(_WHO, "the same answer when asked again", but, then)
        self.is_trusted = True


def _model_of(model: Any, target: Any) -> Any:
    """Return the model or its predict function, or refuse other objects."""
    model = model_behind(model, target)
    is_model = hasattr(model, "predict") or isinstance(model, Predictor)
    if isinstance(model, type) or not (callable(model) or is_model):
        but = f"it is {model!r}" if isinstance(model, str | type) else f"it is {type(model).__name__}"
        raise InvalidTypeError(_WHO, "a fitted model or a function of rows", but, "Give clf, or clf.predict.")
    return model


def _as_verified(oracle: ModelOracle, frame: pd.DataFrame) -> Any:
    """Ask a model as verification does, and return its answer as it is."""
    model = oracle.model
    if isinstance(model, AbstractRepresentation):
        return oracle.predict(frame)
    return model.predict(given(model, oracle.space, frame))


def _level_of(oracle: ModelOracle | None, parsed: Any) -> tuple[Any, float] | None:
    """Return the label and the probability of it that a target asks for, where the model can be asked for it."""
    if isinstance(parsed, ProbabilityOf):
        return parsed.labels[parsed.position], parsed.at_least
    two = isinstance(parsed, Labels) and len(parsed.labels) == 2
    if oracle is None or not two or not hasattr(oracle.model, "predict_proba"):
        return None
    return parsed.labels[parsed.wanted[0]], _HALF


def _is_lossless(column: pd.Series[Any], dtype: Any) -> bool:
    """Whether a column can be held in another dtype without another value."""
    try:
        cast = column.astype(dtype)
    except (TypeError, ValueError):
        return False
    if getattr(dtype, "kind", "") == "f":
        return True  # rounding to single precision is what the model's user does as well
    is_kept = (cast.astype(object) == column.astype(object)) | (cast.isna() & column.isna())
    return bool(is_kept.all())


def verdict(favourable: bool | np.bool_) -> str:
    """Return what a row is called that the model favours, or does not."""
    if favourable:
        return "favourable"
    return "unfavourable"
