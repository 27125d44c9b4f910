"""Many people, one after the other or side by side: nobody's failure, and no Ctrl-C, loses another's answer."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import joblib
import pandas as pd
from tqdm import tqdm

from ceopt.parallel.jobs import Lost, completed
from ceopt.population.cohort import Cohort
from ceopt.population.shared_time import SharedTime
from ceopt.query.black_box_question import BlackBoxQuestion
from ceopt.query.prepare import Prepared
from ceopt.search.search import search
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, counted, printable
from ceopt.status import Status
from ceopt.words.said import said

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["INTERRUPTED", "OUT_OF_MEMORY", "answered", "answers", "cohort_of", "no_answer", "resumed"]

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
_LATER = {"rules"}


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
    if total_time_limit_s is None:
        found = completed(
            "Recourse.explain", answered, lambda k: (prepared, queries.iloc[[left[k]]]), count=len(left), n_jobs=n_jobs
        )
        return ((left[k], result) for k, result in found)
    shared = SharedTime(total_time_limit_s, joblib.effective_n_jobs(n_jobs))
    return _answers_in_turn(prepared, queries, left, n_jobs, shared)


def _answers_in_turn(
    prepared: Prepared | BlackBoxQuestion, queries: pd.DataFrame, left: list[int], n_jobs: int, shared: SharedTime
) -> Iterator[tuple[int, SolutionSet | Lost | None]]:
    """Give the results of rows that have a part of the shared time each, handed out when the turn comes."""

    def arguments(k: int) -> tuple[Any, ...] | None:
        seconds = shared.part(rows_left=len(left) - k, most=prepared.settings.time_limit_s)
        return None if seconds is None else (prepared, queries.iloc[[left[k]]], seconds)

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


def _answered_within(
    prepared: Prepared | BlackBoxQuestion, row: pd.DataFrame, seconds: float
) -> tuple[SolutionSet, float]:
    """Answer one person in some seconds, and say how many were taken."""
    began = time.perf_counter()
    result = answered(prepared.within(seconds), row)
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
    """Take results as they come in, with a bar, until all are there or Ctrl-C; what is finished is kept.

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
                done[place] = result.sharing(space)
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


def answered(prepared: Prepared | BlackBoxQuestion, row: pd.DataFrame) -> SolutionSet:
    """Answer one person; whatever goes wrong is that person's result. Rules in conflict are looked for afterwards."""
    try:
        if isinstance(prepared, BlackBoxQuestion):
            return prepared.answer(row, query_id=row.index[0])
        return search(prepared, row, query_id=row.index[0], keep_on_interrupt=False, why_s=0.0)
    except CeoptError as error:
        return no_answer(row, str(error), prepared.options(), prepared.space)
    except MemoryError:
        return no_answer(row, OUT_OF_MEMORY, prepared.options(), prepared.space)
    except Exception as error:  # noqa: BLE001 - nobody else's answers are lost to one person's failure
        return no_answer(row, f"{type(error).__name__}: {error}", prepared.options(), prepared.space)


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
    """Let Ctrl-C end the work, and say on standard error what is finished."""
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
        raise InvalidTypeError(
            who, "a Cohort to resume", f"resume is {type(earlier).__name__}", "Give what explain returned."
        )
    if not earlier.queries.equals(queries) or not earlier.queries.index.equals(queries.index):
        raise InvalidValueError(
            who, "the same rows to resume", "the frame has others", "Give the frame of the first run."
        )
    if earlier.space != space:
        raise InvalidValueError(who, "the same space to resume", "it is another", "Start anew.")
    for word, value in options.items():
        is_unknown = word in _LATER and word not in earlier.options
        if word not in _MAY_DIFFER and not is_unknown and earlier.options.get(word) != value:
            raise InvalidValueError(
                who,
                f"the same {word} to resume",
                f"{word} was {earlier.options.get(word)!r} and is {value!r}",
                "Start anew.",
            )
    pairs = zip(earlier.results, earlier.finished, strict=True)
    return [result if finished else None for result, finished in pairs]
