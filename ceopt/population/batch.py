"""Many people, one after the other or side by side: nobody's failure, and no Ctrl-C, loses another's answer."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from ceopt.cohort import Cohort
from ceopt.population.jobs import Lost, completed
from ceopt.query.prepare import Prepared
from ceopt.search.search import search
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError
from ceopt.status import Status

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["OUT_OF_MEMORY", "answers", "no_answer", "resumed", "until_interrupted"]

OUT_OF_MEMORY = (
    "Memory ran out before an answer was found. Use a smaller model, fewer rows of data in hulls and fewer n_jobs, or "
    "a machine with more."
)

#: Options that may differ between a run and its resumption: they say how long and with what, not what is asked.
_MAY_DIFFER = {"solver", "time_limit_s", "threads", "solver_options", "why"}


def answers(
    prepared: Prepared, queries: pd.DataFrame, left: list[int], n_jobs: int
) -> Iterator[tuple[int, SolutionSet | Lost]]:
    """Give the place, among ``left``, and the result of each row as soon as it is there, in any order."""
    found = completed(
        "Recourse.explain", _one, lambda k: (prepared, queries.iloc[[left[k]]]), count=len(left), n_jobs=n_jobs
    )
    return ((left[k], result) for k, result in found)


def _one(prepared: Prepared, row: pd.DataFrame) -> SolutionSet:
    """Answer one person; whatever goes wrong is that person's result."""
    try:
        return search(prepared, row, query_id=row.index[0], keep_on_interrupt=False)
    except CeoptError as error:
        return no_answer(row, str(error), prepared.settings.options())
    except MemoryError:
        return no_answer(row, OUT_OF_MEMORY, prepared.settings.options())
    except Exception as error:  # noqa: BLE001 - nobody else's answers are lost to one person's failure
        return no_answer(row, f"{type(error).__name__}: {error}", prepared.settings.options())


def no_answer(row: pd.DataFrame, reason: str, options: Mapping[str, Any]) -> SolutionSet:
    """Return what stands for a person who could not be asked."""
    return SolutionSet(
        status=Status.ERROR,
        counterfactuals=(),
        factual=row,
        complete=False,
        reason=reason,
        options=options,
        target=str(options["target"]),
        query_id=row.index[0],
    )


@contextlib.contextmanager
def until_interrupted(left: list[int], done: list[SolutionSet | None]) -> Iterator[None]:
    """Let Ctrl-C end the work, and say on standard error what is finished."""
    try:
        yield
    except KeyboardInterrupt:
        finished = sum(done[place] is not None for place in left)
        sys.stderr.write(f"\nInterrupted: {finished} of {len(left)} rows are finished and kept.\n")


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
        if word not in _MAY_DIFFER and earlier.options.get(word) != value:
            raise InvalidValueError(
                who,
                f"the same {word} to resume",
                f"{word} was {earlier.options.get(word)!r} and is {value!r}",
                "Start anew.",
            )
    pairs = zip(earlier.results, earlier.finished, strict=True)
    return [result if finished else None for result, finished in pairs]
