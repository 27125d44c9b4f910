"""Why people have no way out: the rules in conflict, asked about once for all who have the same, in seconds for all."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import joblib

from ceopt.conflicts.conflict import Conflict
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.parallel.jobs import Lost, completed
from ceopt.population.batch import INTERRUPTED as ROW_INTERRUPTED
from ceopt.query.black_box_question import BlackBoxQuestion
from ceopt.search.no_answer import ASK_WHY
from ceopt.search.search import conflict_or_answer
from ceopt.search.state import without_unseen
from ceopt.solution.solution_set import SolutionSet
from ceopt.status import Status
from ceopt.words.said import Said, instead, said

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Levels
    from ceopt.population.cohort import Cohort
    from ceopt.query.prepare import Prepared

__all__ = ["seconds_for_conflicts", "with_conflicts"]

#: Seconds, and share of all rows' limits, that the conflicts of a cohort take unless told: the lesser of both.
_WHY_S, _WHY_SHARE = 10.0, 0.05
#: In less time no program is built and solved.
_LEAST_S: Final = 0.01


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
    if isinstance(prepared, BlackBoxQuestion):
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
    if any(result.reason == ROW_INTERRUPTED for result in cohort):
        return cohort
    results = list(cohort.results)
    groups = _groups(cohort, prepared)
    deadline = time.monotonic() + seconds
    at_once = joblib.effective_n_jobs(n_jobs)
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
            for k, found in _found(prepared, cohort, [places[0] for places in asked], part_s, n_jobs):
                groups.remove(asked[k])
                groups += _shared(results, asked[k], found)
    except KeyboardInterrupt:
        missing = _INTERRUPTED
    for places in groups:
        for place in places:
            results[place] = _told(results[place], missing)
    return replace(cohort, results=tuple(result.sharing(cohort.space) for result in results))


def _found(
    prepared: Prepared, cohort: Cohort, places: Sequence[int], seconds: float, n_jobs: int
) -> Iterator[tuple[int, Any]]:
    """Give which of some people it is, and what the search about that one has found, in any order."""

    def arguments(k: int) -> tuple[Any, ...]:
        return prepared, cohort.queries.iloc[[places[k]]], seconds

    return completed("Recourse.explain", _asked, arguments, count=len(places), n_jobs=n_jobs)


def _asked(prepared: Prepared, row: pd.DataFrame, seconds: float) -> tuple[Conflict | SolutionSet, Mapping[str, float]]:
    """Look for one person's conflict; whatever goes wrong is what is said of it."""
    try:
        return conflict_or_answer(prepared, row, query_id=row.index[0], seconds=seconds)
    except MemoryError:
        return Conflict((), _unknown("memory ran out")), {}
    except Exception as error:  # noqa: BLE001 - the proof that there is no answer stands whatever is wrong here
        return Conflict((), _unknown(str(error).rstrip(".") or type(error).__name__)), {}


def _shared(results: list[SolutionSet], places: list[int], found: Any) -> list[list[int]]:
    """Give what was found about the first of some people to all of them; return those who are to be asked anew."""
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
    """Return what a result says in place of a conflict that may still be looked for; None where there is none."""
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
    reach = without_unseen(prepared.predictor, reach_of(space, factual), factual)
    seen: tuple[Any, ...] = tuple(_part_seen(feature, reach[feature.name], factual[feature.name]) for feature in space)
    if any(rule.needs_factual for rule in prepared.settings.rules):
        return (*seen, *factual.values())
    return seen


def _part_seen(feature: Feature, part: Interval | Levels, x0: float) -> Interval | Levels:
    """Return what a column may become, so that equal parts are the same numbers whatever the person's own is.

    A step goes from the person's own number, which its sentence names; without a bound, the search for what wider
    bounds would do goes out from that number.
    """
    if not isinstance(part, Interval) or feature.step is not None:
        return part
    if not (math.isfinite(part.lower) and math.isfinite(part.upper)) or not (part.step is None or x0.is_integer()):
        return part
    return replace(part, anchor=0.0)
