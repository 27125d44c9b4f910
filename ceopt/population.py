"""Many people: their results, and what a fit was made from."""

from __future__ import annotations

import bisect
import contextlib
import math
import sys
import time
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import joblib
import numpy as np
import pandas as pd
from tqdm import tqdm

from ceopt.base.parallel import Lost, Sent, completed, received, sendable
from ceopt.base.results import Status
from ceopt.base.said import Said, instead, said
from ceopt.formulations.constraints.rule import RuleCharges, parse_rules
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.costs import AbstractCost, parse_cost
from ceopt.formulations.predictors.readers import open_model
from ceopt.formulations.predictors.readers.model_input import given
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.space.space import FeatureSpace, require_space, usable_part
from ceopt.formulations.targets import parse_target
from ceopt.oracle.model import LIBRARIES
from ceopt.result.cohort import Cohort
from ceopt.result.solution_set import SolutionSet
from ceopt.search.black_box_question import BlackBoxQuestion, asked_often, asked_once
from ceopt.search.conflict import Conflict
from ceopt.search.phases import ASK_WHY
from ceopt.search.prepare import Learned, Prepared, fingerprints_of, model_content, prepare
from ceopt.search.search import conflict_or_answer, search
from ceopt.search.side_by_side import garbage_of_before_kept, search_side_by_side
from ceopt.search.state import reach_without
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, counted, each_of, printable

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Levels
    from ceopt.settings import Settings

# ==== What a fit was made from, and whether it still holds ============================================================

_WHO: Final = "Recourse.explain"
#: Rows of the data whose scores stand for a model that cannot be pickled.
_MODEL_ROWS: Final = 200


@final
@dataclass(frozen=True, slots=True)
class _Asked:
    """An object as it was given to fit, its content then, and what became of it."""

    given: Any
    content: str | None
    fitted: Any

    def is_still(self, now: Any) -> bool:
        """Whether the content hash is unchanged since fit; identity if unhashable."""
        if self.content is None:
            return self.given is now
        return self.content == content_of(now)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Arguments of ``Recourse.fit``, and the prepared query made from them.

    Parameters
    ----------
    prepared
        The model as read, and the settings as they were.
    model
        Content of the model, or of its scores where it cannot be pickled.
    rows
        Some rows of the data, in raw units.
    data
        The parameter of that name.
    cost, rules
        As given and as fitted.
    learned
        Content of what rules and cost have learned from; None where they learned nothing.
    """

    prepared: Prepared
    model: str | None
    rows: pd.DataFrame
    data: pd.DataFrame | None
    cost: _Asked
    rules: tuple[_Asked, ...]
    learned: str | None

    def marks(self) -> dict[str, Any]:
        """Return by what a cohort knows the model and the data that its answers are about."""
        return {"model": self.model, "data": self.learned}

    def renewed(
        self,
        model: Any,
        space: FeatureSpace,
        data: pd.DataFrame | None,
        settings: Settings,
        *,
        surrogate: Any,
        starts: Any,
    ) -> Prepared:
        """Return the fit under the current settings, or refuse changes that need another fit.

        Raises
        ------
        InvalidValueError
            The model was fitted again or changed; another space, data or target, or a surrogate; a rule or a cost that
            learns from data and is not the one that has learned.
        CeoptError
            A setting that makes no sense.
        """
        known = self.prepared
        if space is not known.space and space != known.space:
            raise changed("space")
        if surrogate is not None:
            raise changed("surrogate")
        if data is not self.data and (data is None or self.data is None or not data.equals(self.data)):
            raise changed("data")
        now = state_of(model, space, self.rows)
        if now != self.model and not (now is None and isinstance(model, str | Path)):  # a file that is gone is no other
            raise changed_model(model)
        if parse_target(settings.target, known.predictor.labels) != known.settings.target:
            raise changed("target")
        asked = parse_cost(settings.cost)
        if self.cost.is_still(settings.cost):
            cost = self.cost.fitted
        else:
            cost = self._own_cost(asked)
        name = repr(asked)
        if isinstance(settings.cost, str):
            name = settings.cost
        learned = Learned(known, self._rule)
        asked_now = replace(settings, cost=cost)
        marks = known.fingerprints
        prepared = prepare(model, space, asked_now, starts=starts, learned=learned, fingerprints=marks)
        return replace(prepared, settings=replace(prepared.settings, cost_name=name))

    def _own_cost(self, cost: AbstractCost) -> AbstractCost:
        """Return a cost that fit does not know, or refuse it if it learns from data."""
        try:
            content = content_of(cost.fitted(self.prepared.space, self.rows))
        except CeoptError:
            content = None
        if content is None or content != content_of(cost):
            raise changed("cost", " and is learned from the data")
        return cost

    def _rule(self, rule: AbstractRule) -> AbstractRule:
        """Return a rule as fitted, or one that fit does not know if it learns from no data."""
        for known in self.rules:
            if known.is_still(rule):
                fitted: AbstractRule = known.fitted
                return fitted
        about = rule.about(lambda: self.prepared.predictor).aimed(self.prepared.settings.target)
        if about.lacks_rows:
            raise changed("constraints", f", and {type(rule).__name__} learns from the data")
        return about


def fit_of(
    model: Any,
    space: FeatureSpace,
    settings: Settings,
    *,
    data: pd.DataFrame | None,
    labelled: tuple[pd.DataFrame, Any] | None,
    X: pd.DataFrame,
    starts: pd.DataFrame | None = None,
) -> Fit:
    """Read the model, check every setting, learn what rules and cost learn from rows, and note what all this was."""
    if isinstance(settings.constraints, Iterator):
        but = f"constraints is a {type(settings.constraints).__name__}, which gives them once"
        raise InvalidTypeError("Recourse", "rules that explain can read again", but, "Pass a list.")
    used = X if data is None else usable_part(space, data).copy()
    known = fingerprints_of(model, used)
    prepared = prepare(model, space, settings, data=used, labelled=labelled, starts=starts, fingerprints=known)
    rows = rows_of(X, space)
    cost = prepared.settings.cost
    if isinstance(cost, RuleCharges):
        cost = cost.cost
    if hasattr(settings.constraints, "violation"):
        given = (settings.constraints,)
    else:
        given = tuple(settings.constraints)
    pairs = list(zip(given, prepared.settings.rules, strict=True))
    learned = content_of(cost)
    if any(rule.lacks_rows for rule in given):
        learned = content_of((learned, used if labelled is None else labelled))
    return Fit(
        prepared=prepared,
        model=prepared.fingerprints.get("model") or state_of(model, space, rows),
        rows=rows,
        data=data,
        cost=_Asked(settings.cost, content_of(settings.cost), cost),
        rules=tuple(_Asked(rule, content_of(rule), fitted) for rule, fitted in pairs),
        learned=learned,
    )


def rows_of(X: pd.DataFrame, space: FeatureSpace) -> pd.DataFrame:
    """Return some rows of the data, by which a model that cannot be pickled is known."""
    places = np.unique(np.linspace(0, len(X) - 1, min(len(X), _MODEL_ROWS)).astype(int))
    return X[list(space.names)].iloc[places].copy()


def state_of(model: Any, space: FeatureSpace, rows: pd.DataFrame) -> str | None:
    """Return the content of a model; of a file, that of its bytes (None without one); else that of its scores."""
    content = model_content(model)
    if content is not None or isinstance(model, str | Path):
        return content
    return content_of(_scores(model, space, rows))


def _scores(model: Any, space: FeatureSpace, rows: pd.DataFrame) -> dict[str, Any]:
    """Return what a model says of some rows, by every method that it has; of one that fails, how."""
    said: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            opened = open_model(model)
            for method in ("predict", "predict_proba", "decision_function"):
                if hasattr(opened, method):
                    said[method] = np.asarray(getattr(opened, method)(given(opened, space, rows)))
        except Exception as error:  # noqa: BLE001 - a user's model may fail in any way, and then is not what it was
            said["fails"] = repr(error)
    return said


def _name(model: Any) -> str:
    if isinstance(model, str | Path):
        return f"file {str(model)!r}"
    return type(model).__name__


def changed_model(model: Any) -> InvalidValueError:
    """Return the refusal of a model that is not the one of the fit."""
    but = f"this {_name(model)} was changed or fitted again since"
    return InvalidValueError(_WHO, "the model as fit has read it", but, "Call fit again.")


def changed(word: str, why: str = "") -> InvalidValueError:
    """Return the error for an argument changed since `fit`."""
    return InvalidValueError(
        _WHO, f"the {word} that it was fitted with", f"{word} was changed since{why}", "Call fit again."
    )


# ==== The same for a black box ========================================================================================

#: Rows by whose answers a function is known.
_BLACK_BOX_ROWS: Final = 50


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlackBoxFit:
    """Arguments of ``Recourse.fit`` for a black box, and the question made from them.

    Parameters
    ----------
    prepared
        The question, with what the model says of the data.
    model
        Content of the model; of a function, what it says of ``rows``.
    rows
        Some rows of the data, in raw units.
    data
        The parameter of that name.
    X
        The rows that ``fit`` was given.
    learned
        Content of the rows that samples begin at.
    """

    prepared: BlackBoxQuestion
    model: str | None
    rows: pd.DataFrame
    data: pd.DataFrame | None
    X: pd.DataFrame
    learned: str | None

    def marks(self) -> dict[str, Any]:
        """Return by what a cohort knows the model and the data that its answers are about."""
        return {"model": self.model, "data": self.learned}

    def renewed(
        self,
        model: Any,
        space: FeatureSpace,
        data: pd.DataFrame | None,
        settings: Settings,
        *,
        surrogate: Any,
        starts: Any,
    ) -> BlackBoxQuestion:
        """Return the fit under the current settings, or refuse changes that need another fit.

        Raises
        ------
        InvalidValueError
            The model or the surrogate was changed, or another space, data or target is asked for.
        CeoptError
            A setting that makes no sense.
        """
        known = self.prepared
        if space is not known.space and space != known.space:
            raise changed("space")
        if data is not self.data and (data is None or self.data is None or not data.equals(self.data)):
            raise changed("data")
        if surrogate is None or content_of(surrogate) != content_of(known.surrogate):
            raise changed("surrogate")
        if content_of(settings.target) != content_of(known.settings.target):
            raise changed("target")
        used = self.X if data is None else usable_part(space, data)
        asked = asked_once(model, space, settings, data=used, surrogate=surrogate, starts=starts)
        if _state_of(model, asked, self.rows) != self.model:
            raise changed_model(model)
        return asked_often(asked, known)


def black_box_fit(
    model: Any,
    space: FeatureSpace,
    settings: Settings,
    *,
    data: pd.DataFrame | None,
    X: pd.DataFrame,
    y: Any,
    surrogate: Any,
    starts: Any,
) -> BlackBoxFit:
    """Check every setting, ask the model about the data once, and note what all this was.

    Raises
    ------
    InvalidValueError
        Another number of labels than rows; labels ``y`` and a rule that learns from rows, which here are those that the
        model favours.
    CeoptError
        A setting or a model that does not fit.
    """
    require_space("Recourse", space)
    used = X if data is None else usable_part(space, data)
    asked = asked_once(model, space, settings, data=used, surrogate=surrogate, starts=starts)
    if y is not None:
        _check_labels(y, len(X), parse_rules(settings.constraints, space))
    prepared = asked_often(asked)
    rows = rows_of(X, space).iloc[:_BLACK_BOX_ROWS]
    return BlackBoxFit(
        prepared=prepared,
        model=_state_of(model, asked, rows),
        rows=rows,
        data=data,
        X=X,
        learned=content_of(prepared.data),
    )


def _state_of(model: Any, question: BlackBoxQuestion, rows: pd.DataFrame) -> str | None:
    """Return the content hash of a library's model or a file; of other objects, that of their predictions.

    What a function holds may change with each call, as the count of one that counts.
    """
    library = type(model).__module__.partition(".")[0]
    if isinstance(model, str | Path | bytes) or library in LIBRARIES:
        return state_of(model, question.space, rows)
    return content_of(question.boxed(rows).labels(rows).tolist())


def _check_labels(y: Any, n: int, rules: Sequence[AbstractRule]) -> None:
    labels = np.asarray(y)
    if labels.shape != (n,):
        but = f"y has shape {labels.shape}"
        raise InvalidValueError("Recourse.fit", f"one label for {each_of(n, 'row')}", but, "Match X.")
    for rule in rules:
        if rule.lacks_rows:
            raise InvalidValueError(
                "Recourse.fit", "no y beside a surrogate and a rule that learns from rows",
                f"y is given and {type(rule).__name__} has no rows of its own",
                "Leave y out, or give the rule its rows.",
            )  # fmt: skip


# ==== Seconds shared by the rows of a call ============================================================================

#: So many times the median of the rows that have ended a row may take, though an equal part were less.
_MEDIANS: Final = 4.0
#: With fewer seconds left no further row is begun: halves of ever less would be spent on nothing.
_LEAST_S: Final = 0.01


@final
class SharedTime:
    """Seconds that many rows have together: what a row does not need is left to those after it.

    It is asked for the part of each row when that row begins, and told how long the row took. With too little time for
    all, the early rows are served, and the late ones are not begun. It stays in one process: others are handed seconds.

    Parameters
    ----------
    total_s
        For all rows, from now on.
    at_once
        Rows that are asked side by side.

    Examples
    --------
    >>> shared = SharedTime(60.0)
    >>> shared.part(rows_left=10, most=100.0)  # nothing is known of how long a row takes
    30.0
    >>> shared.note(0.5)
    >>> shared.part(rows_left=9, most=100.0)
    6.67
    """

    __slots__ = ("_at_once", "_began", "_ended", "_total_s")

    def __init__(self, total_s: float, at_once: int = 1) -> None:
        self._total_s = total_s
        self._at_once = at_once
        self._began = time.perf_counter()
        self._ended: list[float] = []  # seconds of rows that have ended, ascending

    def part(self, *, rows_left: int, most: float) -> float | None:
        """Return the seconds of the row that begins now, at most so many; None where all time is used up.

        It is an equal part of what is left, or four times the median of the rows that have ended where that is more,
        and at most half of what is left. As long as none has ended it is that half, and the last row has all that is
        left. ``rows_left`` counts that row and all that have not begun.
        """
        left = self._total_s - (time.perf_counter() - self._began)
        if left <= 0.0 or (self._ended and left < _LEAST_S):
            return None
        part = left
        if rows_left > 1:
            part = left / 2.0
            if self._ended:
                equal = left * min(self._at_once, rows_left) / rows_left
                part = min(part, max(equal, _MEDIANS * self._ended[len(self._ended) // 2]))
        return min(float(f"{part:.3g}"), most)

    def note(self, seconds: float) -> None:
        """Learn how long a row took."""
        bisect.insort(self._ended, seconds)


# ==== Many people, one after the other or side by side: no failure loses another's answer =============================

OUT_OF_MEMORY: Final = said(
    "Memory ran out before an answer was found. Use a smaller model, fewer rows of data in hulls and fewer n_jobs, or "
    "a machine with more.",
    "out_of_memory",
)

INTERRUPTED: Final = said(
    "Interrupted before this row was finished; pass this cohort as resume to go on.", "row_interrupted"
)
_NOT_BEGUN: Final = said(
    "The time for all rows was used up before this one was begun; pass this cohort as resume to go on.", "row_not_begun"
)
_LOST: Final = "Pass this cohort as resume to try the row again, with fewer n_jobs if memory may have run out."

#: Options that may differ between a run and its resumption: they say how long and with what, not what is asked.
_MAY_DIFFER = {"solver", "time_limit_s", "threads", "solver_options", "why"}
#: Options that cohorts of an earlier version lack.
_LATER = {"rules", "proof"}


def answers(
    prepared: Prepared | BlackBoxQuestion,
    queries: pd.DataFrame,
    left: list[int],
    n_jobs: int,
    total_time_limit_s: float | None = None,
) -> Iterator[tuple[int, SolutionSet | Lost | None]]:
    """Give the place, of ``left``, and the result of each row as soon as it is there, in any order.

    Rows that were not begun before the time for all of them was used up come last, with None.
    """
    at_once = joblib.effective_n_jobs(n_jobs)
    if total_time_limit_s is not None:
        return _answers_in_turn(prepared, queries, left, n_jobs, SharedTime(total_time_limit_s, at_once))
    if isinstance(prepared, BlackBoxQuestion):
        return _answers_one_by_one(_sent(prepared, n_jobs), queries, left, n_jobs)
    if at_once > 1:
        return _answers_in_parts(prepared, queries, left, n_jobs)
    together = search_side_by_side(prepared, queries.iloc[left], partial(_failed, prepared))
    return ((left[k], result) for k, result in together)


def _answers_one_by_one(
    sent: Sent, queries: pd.DataFrame, left: Sequence[int], n_jobs: int
) -> Iterator[tuple[int, SolutionSet | Lost]]:
    found = completed(
        "Recourse.explain", answered, lambda k: (sent, queries.iloc[[left[k]]]), count=len(left), n_jobs=n_jobs
    )
    return ((left[k], result) for k, result in found)


def _sent(prepared: Prepared | BlackBoxQuestion, n_jobs: int) -> Sent:
    """Return what goes to other processes, each of which reads it once; the object itself where there are none."""
    return sendable(prepared) if joblib.effective_n_jobs(n_jobs) > 1 else prepared


#: Seconds that a part of a cohort takes at most, which is what Ctrl-C loses of each process, and its most rows.
_PART_S, _PART_ROWS = 2.0, 64
#: Seconds that it takes at least while there are rows: each part asks the model anew, for some .03 s.
_LEAST_PART_S: Final = 0.5


def _answers_in_parts(
    prepared: Prepared, queries: pd.DataFrame, left: Sequence[int], n_jobs: int
) -> Iterator[tuple[int, SolutionSet | Lost]]:
    """Give the results of rows that go to other processes in parts, each of as many as take about two seconds.

    A process keeps the model that it was sent first, and what it finds out about it. Rows of a part that is lost are
    done one by one.
    """
    sent = _sent(prepared, n_jobs)
    parts: list[Sequence[int]] = []
    seconds: list[float] = []  # of each row that has ended, as an equal share of its part's

    def arguments(k: int) -> tuple[Any, ...] | None:
        if k == len(parts):
            begun = sum(map(len, parts))
            size = 1
            if seconds:
                row_s = max(float(np.median(seconds)), _PART_S / _PART_ROWS)
                fair = (len(left) - begun) // (2 * joblib.effective_n_jobs(n_jobs))
                size = max(1, min(max(fair, int(_LEAST_PART_S / row_s)), int(_PART_S / row_s)))
            parts.append(left[begun : begun + size])
        return (sent, queries.iloc[list(parts[k])]) if parts[k] else None

    lost: list[int] = []
    for k, found in completed(
        "Recourse.explain", _answered_part, arguments, count=len(left), n_jobs=n_jobs, when_free=True
    ):
        if isinstance(found, Lost):
            lost += parts[k] if k < len(parts) else []
        else:
            results, spent = found
            seconds += [spent / len(results)] * len(results)
            yield from zip(parts[k], results, strict=True)
    lost += left[sum(map(len, parts)) :]  # so many processes ended that no further part was begun
    yield from _answers_one_by_one(sent, queries, lost, n_jobs)


def _answered_part(sent: Sent, queries: pd.DataFrame) -> tuple[list[SolutionSet], float]:
    """Answer some people side by side, and say how many seconds it took."""
    prepared = received(sent)
    began = time.perf_counter()
    with garbage_of_before_kept():
        results = dict(search_side_by_side(prepared, queries, partial(_failed, prepared)))
    return [results[place] for place in range(len(queries))], time.perf_counter() - began


def _answers_in_turn(
    prepared: Prepared | BlackBoxQuestion, queries: pd.DataFrame, left: list[int], n_jobs: int, shared: SharedTime
) -> Iterator[tuple[int, SolutionSet | Lost | None]]:
    """Give the results of rows that have a part of the shared time each, handed out when the turn comes."""
    sent = _sent(prepared, n_jobs)

    def arguments(k: int) -> tuple[Any, ...] | None:
        seconds = shared.part(rows_left=len(left) - k, most=prepared.settings.time_limit_s)
        if seconds is None:
            return None
        return sent, queries.iloc[[left[k]]], seconds

    not_begun = dict.fromkeys(left)
    for k, found in completed(
        "Recourse.explain", _answered_within, arguments, count=len(left), n_jobs=n_jobs, when_free=True
    ):
        result = found
        if not isinstance(found, Lost):
            result, seconds = found
            shared.note(seconds)
        del not_begun[left[k]]
        yield left[k], result
    for place in not_begun:
        yield place, None


def _answered_within(sent: Sent, row: pd.DataFrame, seconds: float) -> tuple[SolutionSet, float]:
    """Answer one person in some seconds, and say how many were taken."""
    began = time.perf_counter()
    result = answered(received(sent).with_time_limit(seconds), row)
    return result, time.perf_counter() - began


def cohort_of(
    found: Iterator[tuple[int, SolutionSet | Lost | None]],
    queries: pd.DataFrame,
    space: FeatureSpace,
    options: Mapping[str, Any],
    *,
    done: list[SolutionSet | None],
    progress: bool,
) -> Cohort:
    """Collect results as they come in, with a bar; Ctrl-C keeps the finished ones.

    Parameters
    ----------
    found
        Places among the rows, and their results; None where a row was not begun.
    queries, space, options
        The rows in raw units, their columns, and every setting of the run.
    done
        What an earlier run has finished; None for what is left.
    progress
        Whether to show a bar on standard error.
    """
    done = list(done)
    left = [place for place, result in enumerate(done) if result is None]
    missing: dict[int, str] = {}
    late: set[int] = set()
    first = next((result for result in done if result is not None), None)
    bar = tqdm(total=len(done), initial=len(done) - len(left), disable=not progress, file=sys.stderr, unit="row")
    with _until_interrupted(left, done), bar:
        for place, result in found:
            if result is None:
                late.add(place)
                continue
            if isinstance(result, Lost):
                text = f"{result.reason} {_LOST}"
                missing[place] = said(text, "row_lost")
            else:
                done[place] = result.sharing(space, first)
                first = first or done[place]
            bar.update()
    results: list[SolutionSet] = []
    for place, known in enumerate(done):
        if place in late:
            row = queries.iloc[[place]]
            results.append(no_answer(row, _NOT_BEGUN, options, space, status=Status.TIME_LIMIT))
        elif known is None:
            reason = missing.get(place, INTERRUPTED)
            results.append(no_answer(queries.iloc[[place]], reason, options, space))
        else:
            results.append(known)
    finished = tuple(result is not None for result in done)
    return Cohort(results=tuple(results), queries=queries, space=space, options=options, finished=finished)


def answered(sent: Sent, row: pd.DataFrame) -> SolutionSet:
    """Answer one person; whatever goes wrong is that person's result. Rules in conflict are looked for afterwards."""
    prepared: Prepared | BlackBoxQuestion = received(sent)
    try:
        if isinstance(prepared, BlackBoxQuestion):
            return prepared.answer(row, query_id=row.index[0])
        return search(prepared, row, query_id=row.index[0], keep_on_interrupt=False, why_s=0.0)
    except Exception as error:  # noqa: BLE001 - nobody else's answers are lost to one person's failure
        return _failed(prepared, row, error)


def _failed(prepared: Prepared | BlackBoxQuestion, row: pd.DataFrame, error: Exception) -> SolutionSet:
    """Return the result of a person whose search raised an error."""
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, CeoptError):
        reason = str(error)
    elif isinstance(error, MemoryError):
        reason = OUT_OF_MEMORY
    return no_answer(row, reason, prepared.options(), prepared.space)


def no_answer(
    row: pd.DataFrame,
    reason: str,
    options: Mapping[str, Any],
    space: FeatureSpace,
    *,
    status: Status = Status.ERROR,
) -> SolutionSet:
    """Return what stands for a person who could not be asked."""
    return SolutionSet(
        status=status,
        counterfactuals=(),
        factual=row,
        complete=False,
        reason=reason,
        options=options,
        target=printable(str(options["target"])),
        query_id=row.index[0],
        space=space,
    )


@contextlib.contextmanager
def _until_interrupted(left: list[int], done: list[SolutionSet | None]) -> Iterator[None]:
    """Let Ctrl-C end the work, and count the finished rows on standard error."""
    try:
        yield
    except KeyboardInterrupt:
        finished = sum(done[place] is not None for place in left)
        sys.stderr.write(f"\nInterrupted: {finished} of {counted(len(left), 'row')} finished and kept.\n")


def resumed(
    earlier: Any, queries: pd.DataFrame, space: FeatureSpace, options: Mapping[str, Any]
) -> list[SolutionSet | None]:
    """Return the finished results of an earlier cohort, or refuse one that asked something else."""
    who = "Recourse.explain"
    if not isinstance(earlier, Cohort):
        but = f"resume is {type(earlier).__name__}"
        raise InvalidTypeError(who, "a Cohort to resume", but, "Give what explain returned.")
    if not earlier.queries.equals(queries) or not earlier.queries.index.equals(queries.index):
        but = "the frame has others"
        raise InvalidValueError(who, "the same rows to resume", but, "Give the frame of the first run.")
    if earlier.space != space:
        raise InvalidValueError(who, "the same space to resume", "it is another", "Start anew.")
    for word, value in options.items():
        is_unknown = word in _LATER and word not in earlier.options
        if word not in _MAY_DIFFER and not is_unknown and earlier.options.get(word) != value:
            but = f"{word} was {earlier.options.get(word)!r} and is {value!r}"
            raise InvalidValueError(who, f"the same {word} to resume", but, "Start anew.")
    pairs = zip(earlier.results, earlier.finished, strict=True)
    return [result if finished else None for result, finished in pairs]


# ==== Conflicts of people without an answer ===========================================================================

#: Seconds, and share of all rows' limits, that the conflicts of a cohort take unless told: the lesser of both.
_WHY_S, _WHY_SHARE = 10.0, 0.05


def _unknown(why: str) -> Said:
    return said(f"The rules in conflict are not known: {why}.", "conflict_unknown", why=why)


_LATE: Final = _unknown(said("the time for the conflicts of all people was used up before", "conflicts_late"))
_INTERRUPTED: Final = _unknown(said("the work was interrupted before", "conflicts_interrupted"))
#: What is said of a proof whose causes may still be looked for.
_OPEN: Final = (ASK_WHY, _LATE, _INTERRUPTED)


def seconds_for_conflicts(
    prepared: Prepared | BlackBoxQuestion, rows: int, total_s: float | None
) -> tuple[float, float]:
    """Return the seconds for the conflicts of all rows, and how many of a total are kept for them.

    Through a surrogate each row's answer says which rules are in conflict, so that there are none.
    """
    if isinstance(prepared, BlackBoxQuestion) or not prepared.settings.proof:
        return 0.0, 0.0
    settings = prepared.settings
    all_s = rows * settings.time_limit_s
    if total_s is not None:
        all_s = min(all_s, total_s)
    share = _WHY_SHARE * all_s
    if not isinstance(settings.why, bool):
        return settings.why, min(settings.why, share)
    if not settings.why:
        return 0.0, 0.0
    seconds = min(_WHY_S, share)
    return seconds, seconds


def with_conflicts(cohort: Cohort, prepared: Prepared | BlackBoxQuestion, *, seconds: float, n_jobs: int) -> Cohort:
    """Return a cohort in which who is proved to have no answer has the rules in conflict, as far as the time goes.

    People between whom a search for a conflict sees no difference are asked about once, and where most are concerned it
    begins. A search has at most half of the seconds left while others wait, so that a hard one cannot take all. What an
    earlier run has found stays; what it had no time for is looked for. Ctrl-C keeps what is found; where it has ended
    the answers before, nothing is looked for.

    Parameters
    ----------
    cohort
        The answers.
    prepared
        Model and settings, whose ``why`` bounds the search about one person.
    seconds
        For all together; with 0 nothing is looked for.
    n_jobs
        Processes, which share the seconds.
    """
    if seconds <= 0.0 or isinstance(prepared, BlackBoxQuestion):
        return cohort
    if any(result.reason == INTERRUPTED for result in cohort):
        return cohort
    results = list(cohort.results)
    groups = _groups(cohort, prepared)
    deadline = time.monotonic() + seconds
    at_once = joblib.effective_n_jobs(n_jobs)
    sent = _sent(prepared, n_jobs) if groups else prepared
    missing = _LATE
    try:
        while groups:
            left_s = deadline - time.monotonic()
            if left_s < _LEAST_S:
                break
            if len(groups) > at_once:
                left_s /= 2.0
            part_s = min(left_s, prepared.settings.why_s)
            asked = groups[:at_once]
            for k, found in _found(sent, cohort, [places[0] for places in asked], part_s, n_jobs):
                groups.remove(asked[k])
                groups += _shared(results, asked[k], found)
    except KeyboardInterrupt:
        missing = _INTERRUPTED
    for places in groups:
        for place in places:
            results[place] = _told(results[place], missing)
    return replace(cohort, results=tuple(result.sharing(cohort.space) for result in results))


def _found(sent: Sent, cohort: Cohort, places: Sequence[int], seconds: float, n_jobs: int) -> Iterator[tuple[int, Any]]:
    """Give which of some people it is, and what the search about that one has found, in any order."""

    def arguments(k: int) -> tuple[Any, ...]:
        return sent, cohort.queries.iloc[[places[k]]], seconds

    return completed("Recourse.explain", _asked, arguments, count=len(places), n_jobs=n_jobs)


def _asked(sent: Sent, row: pd.DataFrame, seconds: float) -> tuple[Conflict | SolutionSet, Mapping[str, float]]:
    """Look for one person's conflict; an error becomes its reason."""
    prepared: Prepared = received(sent)
    try:
        return conflict_or_answer(prepared, row, query_id=row.index[0], seconds=seconds)
    except MemoryError:
        return Conflict((), _unknown("memory ran out")), {}
    except Exception as error:  # noqa: BLE001 - the proof that there is no answer stands whatever is wrong here
        return Conflict((), _unknown(str(error).rstrip(".") or type(error).__name__)), {}


def _shared(results: list[SolutionSet], places: list[int], found: Any) -> list[list[int]]:
    """Give the conflict of the first of some people to all whom it fits; return the others."""
    first = places[0]
    if isinstance(found, Lost):
        conflict: Conflict | SolutionSet = Conflict((), _unknown(found.reason.rstrip(".")))
        seconds: Mapping[str, float] = {}
    else:
        conflict, seconds = found
    if isinstance(conflict, SolutionSet):  # there is an answer after all, and nobody else's conflict is known
        results[first] = replace(conflict, timings=_sum(results[first], seconds))
        return [places[1:]] if places[1:] else []
    for place in places:
        results[place] = replace(_told(results[place], conflict.reason), conflict=conflict.entries)
    results[first] = replace(results[first], timings=_sum(results[first], seconds))
    return []


def _sum(result: SolutionSet, seconds: Mapping[str, float]) -> dict[str, float]:
    timings = dict(result.timings)
    for phase, spent in seconds.items():
        timings[phase] = timings.get(phase, 0.0) + spent
    return timings


def _told(result: SolutionSet, why: str) -> SolutionSet:
    """Return a result that says why in place of how to ask why."""
    text = _open(result)
    assert text is not None  # noqa: S101 - only those of whom a conflict may be looked for are in a group
    return replace(result, reason=instead(result.reason, text, why))


# ---- who has the same conflict ---------------------------------------------------------------------------------------
def _open(result: SolutionSet) -> Said | None:
    """Return the placeholder of a conflict still to be looked for; None where none is missing."""
    if result.status is not Status.INFEASIBLE:
        return None
    for text in _OPEN:
        if text in result.reason:
            return text
    return None


def _groups(cohort: Cohort, prepared: Prepared) -> list[list[int]]:
    """Return the places of those whose conflict may be looked for, alike ones together; the largest group first.

    In a group the one with the least margin comes first: what nothing reaches with a margin, nothing reaches with more.
    """
    groups: dict[Hashable, list[int]] = {}
    for place, result in enumerate(cohort.results):
        if _open(result) is not None:
            groups.setdefault(_seen(prepared, cohort.queries.iloc[[place]]), []).append(place)
    for places in groups.values():
        places.sort(key=lambda place: cohort.results[place].margin or 0.0)
    return sorted(groups.values(), key=len, reverse=True)


def _seen(prepared: Prepared, row: pd.DataFrame) -> Hashable:
    """Return all that the search for a conflict sees of a person.

    That is what each column may become, and the row itself where a rule asks who they are, as one about moves does.
    """
    space = prepared.space
    factual = space.row(row)
    reach = reach_without(prepared.predictor.unseen, space, factual)
    seen: tuple[Any, ...] = tuple(_part_seen(feature, reach[feature.name], factual[feature.name]) for feature in space)
    if any(rule.needs_factual for rule in prepared.settings.rules):
        return (*seen, *factual.values())
    return seen


def _part_seen(feature: Feature, part: Interval | Levels, x0: float) -> Hashable:
    """Return what a column may become, so that equal parts are the same numbers whatever the person's own is.

    A step goes from the person's own number, which its sentence names, and so does a limit about the person; without a
    bound, the search for what wider bounds would do goes out from that number.
    """
    if feature.max_down is not None or feature.max_up is not None:
        return part, x0
    if not isinstance(part, Interval) or feature.step is not None:
        return part
    if not (math.isfinite(part.lower) and math.isfinite(part.upper)) or not (part.step is None or x0.is_integer()):
        return part
    return replace(part, anchor=0.0)
