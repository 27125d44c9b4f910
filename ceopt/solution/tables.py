"""A solution set as a short table that a person can act on."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Protocol

import pandas as pd

from ceopt.solution.counterfactual import Counterfactual, scalars
from ceopt.status import Status

__all__ = ["ShownResult", "headline", "rows", "shown", "to_html", "to_text"]

#: Digits shown; the answer itself has all of them.
_DIGITS = 6
#: Share of a value that is rounding of floats, not a digit that somebody chose; and a gap that is none.
_NOISE = 1e-12
_HEAD = ("rank", "column", "from", "to", "why", "cost", "gap")


class ShownResult(Protocol):
    """What a table says of a :class:`~ceopt.SolutionSet`."""

    @property
    def status(self) -> Status:
        """Why the search ended."""

    @property
    def factual(self) -> pd.DataFrame:
        """The person's row."""

    @property
    def target(self) -> str:
        """The target in words."""

    @property
    def reason(self) -> str:
        """One sentence, or empty."""

    @property
    def relaxed(self) -> Mapping[str, float]:
        """The radius of each rule that was widened."""

    @property
    def conflict(self) -> tuple[tuple[str, str, float | None], ...]:
        """(rule, sentence, width) of each rule in conflict."""

    @property
    def query_id(self) -> Any:
        """The person's label in a cohort."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Counterfactual]: ...


def shown(value: Any, away_from: Any = None) -> str:
    """Return a value as text of six significant digits, rounded away from the factual where one is given.

    Rounded so, the step that a person reads is never shorter than the step that was checked.
    """
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    if isinstance(value, int) or value == math.floor(value):
        return f"{value:,.0f}" if abs(value) < 10**15 else f"{value:.{_DIGITS}g}"
    exact = Decimal(value)
    place = Decimal(1).scaleb(min(exact.adjusted() - _DIGITS + 1, 0))
    number = _is_number(away_from)
    if number and value != away_from and abs(value - float(f"{value:.{_DIGITS}g}")) > _NOISE * abs(value):
        rounded = exact.quantize(place, rounding=ROUND_CEILING if value > away_from else ROUND_FLOOR)
    else:
        rounded = exact.quantize(place)
    text = f"{rounded.normalize():,f}"
    return text if len(text) <= 2 * _DIGITS + 4 else f"{value:.{_DIGITS}g}"


def headline(result: ShownResult) -> str:
    """Return what happened, in one line."""
    who = "" if result.query_id is None else f"{result.query_id}: "
    count = f", {len(result)} answer{'s' if len(result) != 1 else ''}" if len(result) else ""
    wider = "".join(f", {name} widened to {shown(radius)}" for name, radius in result.relaxed.items())
    reason = f". {result.reason}" if result.reason else ""
    return f"{who}{result.status}{count}, target {result.target}{wider}{reason}"


def rows(result: ShownResult) -> Iterator[tuple[str, str, str, str, str, str, str]]:
    """Give one row of text per change: rank, column, from, to, why, and with an answer's first change cost and gap.

    Why is an action, by how much where it shifts what follows besides, or a consequence; empty without a causal model.
    """
    before = scalars(result.factual)
    for answer in result:
        gap = "" if answer.gap is None else f"{answer.gap if answer.gap > _NOISE else 0.0:.1g}"
        first = (str(answer.rank), f"{answer.cost:.4g}", gap)
        for name in answer.listed:
            old, new = before[name], answer.values[name]
            yield first[0], name, shown(old), shown(new, old), _why(answer, name, old), first[1], first[2]
            first = ("", "", "")


def _cells(result: ShownResult) -> list[tuple[str, ...]]:
    """Return titles and rows, without a column that is empty in all; without an answer, the rules in conflict."""
    if result.conflict and not len(result):
        said = [(name, text, "" if width is None else shown(width)) for name, text, width in result.conflict]
        return [("in conflict", "says", "wider by"), *said]
    found: list[tuple[str, ...]] = list(rows(result))
    told = any(row[_HEAD.index("why")] for row in found)
    return [tuple(c for c, title in zip(row, _HEAD, strict=True) if told or title != "why") for row in (_HEAD, *found)]


def _why(answer: Counterfactual, name: str, old: Any) -> str:
    """Return why a column is listed: "action by +500" where another part of its move is a consequence."""
    if answer.actions is None:
        return ""
    why, new = answer.why(name), answer.values[name]
    done = answer.actions[name] if why == "action" else new
    is_whole = done == new or not (_is_number(done) and _is_number(old)) or math.isclose(done, new - old)
    return why if is_whole else f"{why} by {'+' if done > 0 else ''}{shown(done, 0.0)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_text(result: ShownResult) -> str:
    """Lay out the changes in columns, under a headline; where there is no answer, the rules in conflict."""
    cells = _cells(result)
    if len(cells) == 1:
        return headline(result)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([headline(result), lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def to_html(result: ShownResult) -> str:
    """Write the same as an HTML table."""
    titles, *body = _cells(result)
    head = "".join(f"<th>{word}</th>" for word in titles)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>" if body else ""
    return f"<p>{html.escape(headline(result))}</p>{table}"
