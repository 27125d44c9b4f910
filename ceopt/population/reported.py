"""What the report of a cohort shows, as plain texts: who has which way out, who has none, and what all share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from ceopt.population.pictured import PicturedCohort, plot_cohort
from ceopt.report.page import picture, require_report, write_page
from ceopt.solution.reported import short, sources
from ceopt.status import Status
from ceopt.words.language import Language, language_of
from ceopt.words.results import beyond_lines, in_words

if TYPE_CHECKING:
    from ceopt.population.summary import CohortSummary
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["report_cohort"]

_WHO: Final = "Cohort.report"


class ReportedCohort(PicturedCohort, Protocol):
    """What a report says of a :class:`~ceopt.Cohort`."""

    def summary(self) -> CohortSummary:
        """Return it in a few numbers."""


def report_cohort(cohort: ReportedCohort, path: Any, *, title: Any, language: Any) -> None:
    """Write what :meth:`ceopt.Cohort.report` is asked for; see there."""
    say = require_report(_WHO, title=title, language=language)
    spoken = language_of(_WHO, language)
    told = [in_words(result, spoken) for result in cohort.results]
    people = []
    without: dict[bool, list[dict[str, str]]] = {True: [], False: []}
    for result, words in zip(cohort.results, told, strict=True):
        people.append(_line(result, words.ways, say, spoken))
        if not result.status.is_settled:
            why = " ".join([*words.reasons, words.conflict_head, "; ".join(words.conflict)]).strip()
            one = {"label": str(result.query_id), "status": say[str(result.status)], "why": why}
            without[result.status is Status.INFEASIBLE].append(one)
    rules: dict[str, None] = {}
    for words in told:
        rules.update(dict.fromkeys(words.rules))
    heading = title
    if heading is None:
        heading = say["report_of_people"].format(count=spoken.number(len(people)))
    write_page(
        _WHO,
        path,
        "people.html",
        title=heading,
        language=language,
        beyond=tuple(beyond_lines(cohort.results, spoken)),
        summary=_summary(cohort.summary(), say, spoken),
        pictures=_pictures(cohort, language),
        people=people,
        proved=without[True],
        unproved=without[False],
        rules=tuple(rules),
        sources=_sources(cohort.results, say, spoken),
    )


def _line(result: SolutionSet, ways: Sequence[str], say: Mapping[str, str], language: Language) -> dict[str, Any]:
    """Return a person's line of the table."""
    cost = result[0].cost if len(result) else None
    line = {
        "label": str(result.query_id),
        "kind": str(result.status),
        "status": say[str(result.status)],
        "cost": short(cost, language),
        "sort": "" if cost is None else repr(float(cost)),
        "first": "",
        "further": (),
        "more": "",
    }
    if ways:
        line["first"] = ways[0]
        line["further"] = tuple(ways[1:])
        line["more"] = say["further"].format(count=language.number(len(ways) - 1))
    return line


def _summary(summary: CohortSummary, say: Mapping[str, str], language: Language) -> list[tuple[str, str]]:
    rows = [(say["people"], language.number(summary.people))]
    for status, count in summary.statuses.items():
        rows.append((say[status], language.number(count)))
    if not math.isnan(summary.share_answered):
        rows.append((say["answered"], language.amount(float(f"{100.0 * summary.share_answered:.4g}"), "%")))
    rows.append((say["median_cost"], short(summary.median_cost, language)))
    rows.append((say["seconds"], short(summary.seconds, language)))
    return [(name, text) for name, text in rows if text]


def _pictures(cohort: ReportedCohort, language: str) -> list[dict[str, Any]]:
    """Return the picture of statuses and, where somebody has an answer, those of changes and costs."""
    if not cohort.results:
        return []
    kinds = ["status"]
    if any(answer.changed for result in cohort.results for answer in result):
        kinds = ["changes", "costs", "status"]
    drawn = []
    for kind in kinds:
        drawn.append(picture(partial(plot_cohort, cohort, kind, by=None, ax=None, language=language), kind))
    return drawn


def _sources(results: Sequence[SolutionSet], say: Mapping[str, str], language: Language) -> list[tuple[str, str]]:
    """Return by what model, data and programs are known again, of the person with the greatest program."""
    if not results:
        return []
    return sources(max(results, key=lambda result: result.size.get("rows", 0)), say, language)
