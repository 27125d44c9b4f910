"""A solution set as a short table that a person can act on."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from ceopt.solution import scalars

if TYPE_CHECKING:
    from ceopt.solution import SolutionSet

__all__ = ["headline", "rows", "shown", "to_html", "to_text"]

#: Digits shown; the answer itself has all of them.
_DIGITS = 6
#: Share of a value that is rounding of floats, not a digit that somebody chose; and a gap that is none.
_NOISE = 1e-12
_HEAD = ("rank", "column", "from", "to", "cost", "gap")


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
    number = isinstance(away_from, int | float) and not isinstance(away_from, bool)
    if number and value != away_from and abs(value - float(f"{value:.{_DIGITS}g}")) > _NOISE * abs(value):
        rounded = exact.quantize(place, rounding=ROUND_CEILING if value > away_from else ROUND_FLOOR)
    else:
        rounded = exact.quantize(place)
    text = f"{rounded.normalize():,f}"
    return text if len(text) <= 2 * _DIGITS + 4 else f"{value:.{_DIGITS}g}"


def headline(result: SolutionSet) -> str:
    """Return what happened, in one line."""
    who = "" if result.query_id is None else f"{result.query_id}: "
    count = f", {len(result)} answer{'s' if len(result) != 1 else ''}" if len(result) else ""
    reason = f". {result.reason}" if result.reason else ""
    return f"{who}{result.status}{count}, target {result.target}{reason}"


def rows(result: SolutionSet) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Give one row of text per change: rank, column, from, to, and with an answer's first change its cost and gap."""
    before = scalars(result.factual)
    for answer in result:
        gap = "" if answer.gap is None else f"{answer.gap if answer.gap > _NOISE else 0.0:.1g}"
        head = (str(answer.rank), f"{answer.cost:.4g}", gap)
        for name in answer.changed:
            old, new = before[name], answer.values[name]
            yield head[0], name, shown(old), shown(new, old), head[1], head[2]
            head = ("", "", "")


def to_text(result: SolutionSet) -> str:
    """Lay out the changes in columns, under a headline."""
    cells = [_HEAD, *rows(result)]
    if len(cells) == 1:
        return headline(result)
    widths = [max(len(row[k]) for row in cells) for k in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([headline(result), lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def to_html(result: SolutionSet) -> str:
    """Write the same as an HTML table."""
    head = "".join(f"<th>{word}</th>" for word in _HEAD)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows(result))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    return f"<p>{html.escape(headline(result))}</p>{table}"
