"""A space as a table: text for people (:func:`to_text`), a frame for code (:func:`to_frame`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import pandas as pd

from ceopt.formulations.digits import digits
from ceopt.formulations.space.feature import Feature
from ceopt.solvers.errors import printable

__all__ = ["to_frame", "to_text"]

#: Fields of a feature that are columns of the frame.
_FIELDS: Final = (
    "kind",
    "lower",
    "upper",
    "levels",
    "mutable",
    "direction",
    "step",
    "weight",
    "unit",
    "mad",
    "std",
    "range",
    "dtype",
    "codes",
    "decimals",
    "lower_inferred",
    "upper_inferred",
    "step_inferred",
    "guess",
)
#: Those whose dtype pandas finds by itself; the others hold None or tuples.
_PLAIN: Final = {"kind", "lower", "upper", "mutable", "direction"}

#: Titles of the text's columns; those in ``_OPTIONAL`` are left out where no feature has such a thing.
_TITLES: Final = ("name", "kind", "range or levels", "may move", "step", "weight", "unit", "guess")
_OPTIONAL: Final = {"step", "unit"}
_MOVES: Final = {"any": "any", "increasing": "up", "decreasing": "down"}
#: Characters of a list of levels that are shown.
_WIDEST: Final = 48


def to_frame(features: Sequence[Feature]) -> pd.DataFrame:
    """Give one row per column, indexed by its name."""
    data = {}
    for field in _FIELDS:
        values = [getattr(feature, field) for feature in features]
        data[field] = pd.Series(values, dtype=None if field in _PLAIN else object)
    frame = pd.DataFrame(data)
    frame.index = pd.Index([feature.name for feature in features], name="name")
    return frame


def to_text(features: Sequence[Feature]) -> str:
    """Lay out what each column holds, how it may move and how it was guessed; ``~`` marks inferred bounds."""
    rows = [_cells(feature) for feature in features]
    columns: list[list[str]] = []
    for title, *cells in zip(_TITLES, *rows, strict=True):
        if title not in _OPTIONAL or any(cells):
            width = max(map(len, (title, *cells)))
            columns.append([text.ljust(width) for text in (title, "-" * width, *cells)])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    if any("~" in _range(feature) for feature in features if not feature.is_finite):
        lines.append("~ bound seen in the data: it widens for the row asked about")
    return "\n".join(lines)


def _cells(feature: Feature) -> tuple[str, ...]:
    """Return a feature's line of the text, a cell for each title."""
    return (
        printable(feature.name),
        feature.kind,
        (_levels(feature) if feature.is_finite else _range(feature)) + _codes(feature),
        _MOVES[feature.direction] if feature.mutable else "fixed",
        "" if feature.step is None else digits(feature.step),
        _weight(feature),
        printable(feature.unit or ""),
        printable(feature.guess or "as given"),
    )


def _weight(feature: Feature) -> str:
    down, up = feature.weights
    if down == up:
        return digits(up)
    return f"down {digits(down)}, up {digits(up)}"


def _levels(feature: Feature) -> str:
    mark = " < " if feature.kind == "ordinal" else ", "
    text = printable(mark.join(map(str, feature.levels)))
    if len(text) <= _WIDEST:
        return text
    return f"{text[: _WIDEST - 14].rstrip()}... ({len(feature.levels)} levels)"


def _codes(feature: Feature) -> str:
    if not feature.codes:
        return ""
    shown = [str(code) if isinstance(code, str) else digits(code) for code in feature.codes]
    return f" (codes {', '.join(shown)})"


def _range(feature: Feature) -> str:
    lower = _bound(feature.lower, is_inferred=feature.lower_inferred)
    upper = _bound(feature.upper, is_inferred=feature.upper_inferred)
    if not lower and not upper:
        return "any number"
    return f"{lower} .. {upper}".strip()


def _bound(value: float, *, is_inferred: bool) -> str:
    if math.isinf(value):
        return ""
    mark = "~" if is_inferred else ""
    return mark + digits(value)
