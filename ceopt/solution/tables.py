"""A solution set as a short table that a person can act on."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, Protocol

import pandas as pd

from ceopt.solution.counterfactual import Counterfactual, scalars
from ceopt.status import Status
from ceopt.tolerances import DIGIT_NOISE

__all__ = ["ShownResult", "headline", "rows", "shown", "to_html", "to_text"]

#: Digits shown; the answer itself has all of them.
_DIGITS = 6
#: Characters of a number from which on it is shown with an exponent, and whole numbers that are never.
_LONGEST = 2 * _DIGITS + 4
_WRITTEN_OUT = 10**15
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
    if not _is_number(value) or not math.isfinite(value):
        return str(value)
    short = f"{value:.{_DIGITS}g}"
    if isinstance(value, int) or value == math.floor(value):
        return f"{value:,.0f}" if abs(value) < _WRITTEN_OUT else short
    exact = Decimal(value)
    last_digit = Decimal(1).scaleb(min(exact.adjusted() - _DIGITS + 1, 0))
    loses_digits = abs(value - float(short)) > DIGIT_NOISE * abs(value)
    rounding = ROUND_HALF_EVEN
    if loses_digits and _is_number(away_from) and value > away_from:
        rounding = ROUND_CEILING
    elif loses_digits and _is_number(away_from) and value < away_from:
        rounding = ROUND_FLOOR
    text = f"{exact.quantize(last_digit, rounding=rounding).normalize():,f}"
    return text if len(text) <= _LONGEST else short


def headline(result: ShownResult) -> str:
    """Return what happened, in one line."""
    line = str(result.status)
    if result.query_id is not None:
        line = f"{result.query_id}: {line}"
    if len(result) == 1:
        line += ", 1 answer"
    elif len(result) > 1:
        line += f", {len(result)} answers"
    line += f", target {result.target}"
    for name, radius in result.relaxed.items():
        line += f", {name} widened to {shown(radius)}"
    if result.reason:
        line += f". {result.reason}"
    return line


def rows(result: ShownResult) -> Iterator[tuple[str, str, str, str, str, str, str]]:
    """Give one row of text per change: rank, column, from, to, why, and with an answer's first change cost and gap.

    Why is an action, by how much where it shifts what follows besides, or a consequence; empty without a causal model.
    """
    before = scalars(result.factual)
    for answer in result:
        rank = str(answer.rank)
        cost = f"{answer.cost:.4g}"
        gap = _shown_gap(answer.gap)
        for name in answer.listed:
            old = before[name]
            new = answer.values[name]
            yield rank, name, shown(old), shown(new, old), _why(answer, name, old), cost, gap
            rank = ""
            cost = ""
            gap = ""


def _shown_gap(gap: float | None) -> str:
    if gap is None or math.isnan(gap):
        return ""
    return f"{gap:.1g}" if gap > DIGIT_NOISE else "0"


def _cells(result: ShownResult) -> list[tuple[str, ...]]:
    """Return titles and rows, without a column that is empty in all; without an answer, the rules in conflict."""
    if result.conflict and not len(result):
        return [("in conflict", "says", "wider by"), *_conflict_rows(result)]
    cells: list[tuple[str, ...]] = [_HEAD, *rows(result)]
    why = _HEAD.index("why")
    if any(row[why] for row in cells[1:]):
        return cells
    return [row[:why] + row[why + 1 :] for row in cells]


def _conflict_rows(result: ShownResult) -> Iterator[tuple[str, str, str]]:
    for name, sentence, width in result.conflict:
        yield name, sentence, "" if width is None else shown(width)


def _why(answer: Counterfactual, name: str, old: Any) -> str:
    """Return why a column is listed: "action by +500" where another part of its move is a consequence."""
    if answer.actions is None:
        return ""
    why = answer.why(name)
    new = answer.values[name]
    if why != "action":
        return why
    done = answer.actions[name]
    if done == new or not (_is_number(done) and _is_number(old)) or math.isclose(done, new - old):
        return why
    sign = "+" if done > 0 else ""
    return f"{why} by {sign}{shown(done, 0.0)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_text(result: ShownResult) -> str:
    """Lay out the changes in columns, under a headline; where there is no answer, the rules in conflict."""
    cells = _cells(result)
    if len(cells) == 1:
        return headline(result)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = tuple("-" * width for width in widths)
    lines = [headline(result)]
    for row in (cells[0], rule, *cells[1:]):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def to_html(result: ShownResult) -> str:
    """Write the same as an HTML table."""
    titles, *body = _cells(result)
    text = f"<p>{html.escape(headline(result))}</p>"
    if not body:
        return text
    lines = "".join(_html_row("td", row) for row in body)
    return f"{text}<table><thead>{_html_row('th', titles)}</thead><tbody>{lines}</tbody></table>"


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    row = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{row}</tr>"
