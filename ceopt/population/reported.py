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
from ceopt.words.results import beyond_lines, in_words, shared_rule_said

if TYPE_CHECKING:
    from ceopt.population.summary import CohortSummary
    from ceopt.solution.solution_set import SolutionSet
    from ceopt.words.results import ResultInWords

__all__ = ["report_cohort"]

_WHO: Final = "Cohort.report"
#: More people than these who have the same are counted, and named where somebody asks.
_LABELS: Final = 12


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
    for result, words in zip(cohort.results, told, strict=True):
        people.append(_line(result, words, say, spoken))
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
        proved=_without(cohort.results, told, say, spoken, proved=True),
        unproved=_without(cohort.results, told, say, spoken, proved=False),
        rules=tuple(rules),
        sources=_sources(cohort.results, say, spoken),
    )


def _without(
    results: Sequence[SolutionSet],
    told: Sequence[ResultInWords],
    say: Mapping[str, str],
    language: Language,
    *,
    proved: bool,
) -> list[dict[str, Any]]:
    """Return who has no answer, with or without a proof: those of whom the same is said together, the most first."""
    groups: dict[tuple[Any, ...], list[SolutionSet]] = {}
    for result, words in zip(results, told, strict=True):
        if not result.status.is_settled and proved == (result.status is Status.INFEASIBLE):
            names = tuple(name for name, _, _ in result.conflict)
            groups.setdefault((result.status, words.reasons, words.conflict_head, names), []).append(result)
    lines = []
    for (status, reasons, head, _), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        rules = [shared_rule_said(entries, language) for entries in zip(*(one.conflict for one in group), strict=True)]
        labels = ", ".join(str(one.query_id) for one in group)
        many = ""
        if len(group) > _LABELS:
            many = say["count_people"].format(count=language.number(len(group)))
        why = " ".join([*reasons, head]).strip()
        lines.append({"label": labels, "many": many, "status": say[str(status)], "why": why, "rules": rules})
    return lines


def _line(result: SolutionSet, words: ResultInWords, say: Mapping[str, str], language: Language) -> dict[str, Any]:
    """Return a person's line of the table; of one without a way, what would have to give."""
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
    if words.ways:
        line["first"] = words.ways[0]
        line["further"] = tuple(words.ways[1:])
        line["more"] = say["further"].format(count=language.number(len(words.ways) - 1))
    elif words.conflict:
        line["further"] = (words.conflict_head, *words.conflict)
        line["more"] = say["why"]
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
