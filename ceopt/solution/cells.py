"""Cells of a table as text, and tables of them as text and as HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from ceopt.solvers.errors import printable
from ceopt.words.numbers import exact, in_six_digits, is_number

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["html_table", "shown", "shown_move", "shown_value", "text_table", "written"]

#: Powers of ten beyond which a number is shown with an exponent.
_LEAST_POWER = -9
_GREATEST_POWER = 15


def shown(value: Any, away_from: Any = None) -> str:
    """Return a value as text of six significant digits, rounded away from the factual where one is given.

    Rounded so, the step that a person reads is never shorter than the step that was checked.
    """
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if not is_number(value):
        return str(value)
    return written(in_six_digits(value, away_from))


def shown_value(value: Any, feature: Feature | None) -> str:
    """Return a value of a column as text; a number that is a level is a code, which has no thousands."""
    if feature is not None and feature.is_finite and is_number(value):
        return f"{exact(value):f}"
    return shown(value)


def shown_move(
    before: Any, after: Any, feature: Feature | None, printed: tuple[float, float] | None = None
) -> tuple[str, str]:
    """Return two values of a column as text.

    The value that is come to is written digit for digit, or as ``printed`` (in sentences, in tables) says; the person's
    own is short where the column has no steps, levels or decimals.
    """
    if feature is not None and feature.is_finite:
        return shown_value(before, feature), shown_value(after, feature)
    if not is_number(after) or (is_number(before) and before == after):
        return shown(before), shown(after)
    second = exact(after if printed is None else printed[1])
    if not is_number(before):
        return shown(before), written(second)
    first = in_six_digits(before)
    has_digits = feature is not None and (feature.step is not None or feature.decimals is not None)
    if has_digits or (second > first) is not (after > before):
        first = exact(before)
    return written(first), written(second)


def written(number: Decimal) -> str:
    """Return the digits of a number as text: with thousands, or with an exponent where it is of another size."""
    if number and not _LEAST_POWER <= number.adjusted() < _GREATEST_POWER:
        return f"{number.normalize():e}"
    return f"{number:,f}"


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
