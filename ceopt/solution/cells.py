"""Cells of a table as text, and tables of them as text and as HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from ceopt.solvers.errors import printable
from ceopt.tolerances import DIGIT_NOISE
from ceopt.words.numbers import exact, is_number, move_in_digits, stops_short

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["html_table", "shown", "shown_move", "shown_value", "text_table"]

#: Digits shown; the answer itself has all of them.
_DIGITS = 6
#: Characters of a number from which on it is shown with an exponent, and whole numbers that are never.
_LONGEST = 2 * _DIGITS + 4
_WRITTEN_OUT = 10**15


def shown(value: Any, away_from: Any = None) -> str:
    """Return a value as text of six significant digits, rounded away from the factual where one is given.

    Rounded so, the step that a person reads is never shorter than the step that was checked.
    """
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if not is_number(value):
        return str(value)
    short = f"{value:.{_DIGITS}g}"
    if isinstance(value, int) or value == math.floor(value):
        return f"{value:,.0f}" if abs(value) < _WRITTEN_OUT else short
    held = Decimal(value)
    last_digit = Decimal(1).scaleb(min(held.adjusted() - _DIGITS + 1, 0))
    loses_digits = abs(value - float(short)) > DIGIT_NOISE * abs(value)
    if is_number(away_from) and stops_short(float(short), value, away_from):
        loses_digits = True
    rounding = ROUND_HALF_EVEN
    if loses_digits and is_number(away_from) and value > away_from:
        rounding = ROUND_CEILING
    elif loses_digits and is_number(away_from) and value < away_from:
        rounding = ROUND_FLOOR
    text = f"{held.quantize(last_digit, rounding=rounding).normalize():,f}"
    return text if len(text) <= _LONGEST else short


def shown_value(value: Any, feature: Feature | None) -> str:
    """Return a value of a column as text; a number that is a level is a code, which has no thousands."""
    if feature is not None and feature.is_finite and is_number(value):
        return f"{exact(value):f}"
    return shown(value)


def shown_move(before: Any, after: Any, feature: Feature | None) -> tuple[str, str]:
    """Return two values of a column as text: of one with steps, levels or decimals digit for digit, else short."""
    if feature is not None and feature.is_finite:
        return shown_value(before, feature), shown_value(after, feature)
    has_decimals = feature is not None and (feature.step is not None or feature.decimals is not None)
    if feature is None or not has_decimals or not (is_number(before) and is_number(after)):
        return shown(before), shown(after, before)
    limits = (feature.lower, feature.upper)
    moved = move_in_digits(before, after, step=feature.step, limits=limits, decimals=feature.decimals)
    first, second = (f"{digits:,f}" for digits in moved)
    if max(len(first), len(second)) > _LONGEST:
        return shown(before), shown(after, before)
    return first, second


def text_table(headline: str, cells: Sequence[Sequence[str]]) -> str:
    """Lay out rows in columns under a headline; the first row has the titles, and alone it is left out."""
    headline = printable(headline)
    if len(cells) == 1:
        return headline
    cells = [[printable(cell) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = ["-" * width for width in widths]
    lines = [headline]
    for row in (cells[0], rule, *cells[1:]):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def html_table(headline: str, cells: Sequence[Sequence[str]]) -> str:
    """Write the same as HTML."""
    titles, *body = cells
    text = f"<p>{html.escape(printable(headline))}</p>"
    if not body:
        return text
    lines = "".join(_html_row("td", row) for row in body)
    return f"{text}<table><thead>{_html_row('th', titles)}</thead><tbody>{lines}</tbody></table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    row = "".join(f"<{tag}>{html.escape(printable(cell))}</{tag}>" for cell in cells)
    return f"<tr>{row}</tr>"
