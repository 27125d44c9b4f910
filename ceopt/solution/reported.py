"""What the report of one person's answers shows, as plain texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from ceopt.formulations.digits import rounded
from ceopt.report.page import picture, require_report, write_page
from ceopt.solution.counterfactual import scalars
from ceopt.solution.pictured import PicturedResult, plot_answers
from ceopt.words.changes import feature_of
from ceopt.words.language import Language, language_of
from ceopt.words.results import in_words
from ceopt.words.rules import value_phrase

if TYPE_CHECKING:
    from ceopt.words.results import ResultInWords

__all__ = ["ReportedResult", "report_answers", "short", "sources"]

_WHO: Final = "SolutionSet.report"


class ReportedResult(PicturedResult, Protocol):
    """What a report says of a :class:`~ceopt.SolutionSet`."""

    @property
    def bound(self) -> float | None:
        """Proved least cost."""

    @property
    def gap(self) -> float | None:
        """Relative gap of rank 1."""

    @property
    def margin(self) -> float | None:
        """Least slack of the decision."""

    @property
    def timings(self) -> Mapping[str, float]:
        """Seconds by phase."""

    @property
    def solver(self) -> str:
        """Which one answered."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the libraries."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Every setting."""

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Of model and data."""

    @property
    def size(self) -> Mapping[str, int]:
        """Of the program."""

    @property
    def rules(self) -> Mapping[str, str]:
        """The sentence of each rule."""

    @property
    def beyond(self) -> Mapping[str, str]:
        """What to write in the place of each rule that the row breaks."""

    @property
    def removed(self) -> Mapping[str, str]:
        """What was out of reach."""


def report_answers(result: ReportedResult, path: Any, *, title: Any, language: Any) -> None:
    """Write what :meth:`ceopt.SolutionSet.report` is asked for; see there."""
    say = require_report(_WHO, title=title, language=language)
    spoken = language_of(_WHO, language)
    words = in_words(result, spoken)
    heading = title
    if heading is None:
        heading = say["report_of_person"]
        if result.query_id is not None:
            heading += f": {result.query_id}"
    write_page(
        _WHO,
        path,
        "person.html",
        title=heading,
        language=language,
        words=words,
        ways=_ways(result, words, say, spoken),
        pictures=_pictures(result, language),
        person=_person(result, spoken),
        proof=_proof(result, say, spoken),
        sources=sources(result, say, spoken),
    )


def short(number: float | None, language: Language, way: Literal["nearest", "up", "down"] = "nearest") -> str:
    """Return a number of four digits, a limit of six rounded to where it is true, or nothing where there is none."""
    if number is None or math.isnan(number):
        return ""
    if way != "nearest":
        return language.number(rounded(number, 6, way))
    return language.number(float(f"{number:.4g}"))


def sources(result: ReportedResult, say: Mapping[str, str], language: Language) -> list[tuple[str, str]]:
    """Return by what model, data and program are known again, each with its name."""
    rows = [(say[name], result.fingerprints.get(name, "")) for name in ("model", "data")]
    if result.size:
        counts = {name: language.number(count) for name, count in result.size.items()}
        rows.append((say["size"], say["size_of"].format_map(counts)))
    rows.append((say["lp"], say["lp_how"]))
    rows.append((say["options"], "; ".join(f"{name} = {value}" for name, value in result.options.items())))
    rows.append((say["versions"], ", ".join(f"{name} {text}" for name, text in result.versions.items())))
    return [(name, text) for name, text in rows if text]


def _ways(
    result: ReportedResult, words: ResultInWords, say: Mapping[str, str], language: Language
) -> list[dict[str, Any]]:
    ways = []
    for answer, sentences in zip(result, words.answers, strict=True):
        name = say["way"].format(rank=answer.rank)
        cost = say["costs"].format(cost=short(answer.cost, language))
        ways.append({"name": name, "cost": cost, "sentences": sentences})
    return ways


def _pictures(result: ReportedResult, language: str) -> list[dict[str, Any]]:
    """Return a picture of each answer that changes something, and one of all of them where there are several."""
    if result.space is None:
        return []
    drawn = []
    draw = partial(plot_answers, result, columns=None, ax=None, model=None, target=None, language=language)
    moving = [answer for answer in result if answer.listed]
    for answer in moving:
        prefix = f"answer-{answer.rank}"
        drawn.append(picture(partial(draw, "changes", rank=answer.rank), prefix))
    if len(moving) > 1:
        drawn.append(picture(partial(draw, "parallel", rank=1), "all-answers"))
    return drawn


def _person(result: ReportedResult, language: Language) -> list[tuple[str, str]]:
    rows = []
    for label, value in scalars(result.factual).items():
        name = str(label)
        rows.append((name, language.phrase(value_phrase(feature_of(result.space, name), value))))
    return rows


def _proof(result: ReportedResult, say: Mapping[str, str], language: Language) -> list[tuple[str, str]]:
    rows = [
        (say["status"], say[str(result.status)]),
        (say["bound"], short(result.bound, language, "down")),
        (say["gap"], short(result.gap, language, "up")),
        (say["margin"], short(result.margin, language, "down")),
        (say["solver"], result.solver),
        (say["seconds"], short(result.timings.get("total"), language)),
    ]
    return [(name, text) for name, text in rows if text]
