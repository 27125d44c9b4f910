"""A space as a table, for people (:func:`to_text`) and for code (:func:`to_frame`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from ceopt.formulations.space.feature import Feature

__all__ = ["to_frame", "to_text"]

_COLUMNS = (
    "kind lower upper levels mutable direction step weight unit mad std range dtype lower_inferred upper_inferred guess"
).split()
_MOVES = {"any": "any", "increasing": "up", "decreasing": "down"}
_WIDEST = 48


def to_frame(features: Sequence[Feature]) -> pd.DataFrame:
    """Give one row per column, indexed by its name."""
    data = {
        column: pd.Series(
            [getattr(feature, column) for feature in features],
            dtype=None if column in {"kind", "lower", "upper", "mutable", "direction"} else object,
        )
        for column in _COLUMNS
    }
    frame = pd.DataFrame(data)
    frame.index = pd.Index([feature.name for feature in features], name="name")
    return frame


def to_text(features: Sequence[Feature]) -> str:
    """Lay out what each column holds, how it may move and how it was guessed; ``~`` marks inferred bounds."""
    head = ("name", "kind", "range or levels", "may move", "step", "weight", "unit", "guess")
    rows = [
        (
            feature.name,
            feature.kind,
            _holds(feature),
            _MOVES[feature.direction] if feature.mutable else "fixed",
            _number(feature.step) if feature.step is not None else "",
            _weight(feature),
            feature.unit or "",
            feature.guess or "as given",
        )
        for feature in features
    ]
    kept = [place for place, title in enumerate(head) if title not in {"step", "unit"} or any(r[place] for r in rows)]
    widths = {place: max(len(row[place]) for row in [head, *rows]) for place in kept}
    lines = ["  ".join(row[place].ljust(widths[place]) for place in kept).rstrip() for row in [head, *rows]]
    note = ["~ bound seen in the data: it widens for the row asked about"] if any("~" in r[2] for r in rows) else []
    return "\n".join([lines[0], "  ".join("-" * widths[place] for place in kept), *lines[1:], *note])


def _number(value: float) -> str:
    return f"{value:.0f}" if value == math.floor(value) and abs(value) < 1e9 else f"{value:.6g}"


def _weight(feature: Feature) -> str:
    down, up = feature.weights
    return _number(up) if down == up else f"down {_number(down)}, up {_number(up)}"


def _holds(feature: Feature) -> str:
    if feature.is_finite:
        mark = " < " if feature.kind == "ordinal" else ", "
        text = mark.join(str(level) for level in feature.levels)
        if len(text) > _WIDEST:
            text = f"{text[: _WIDEST - 14].rstrip()}... ({len(feature.levels)} levels)"
        return text
    lower = "" if feature.lower == -math.inf else ("~" if feature.lower_inferred else "") + _number(feature.lower)
    upper = "" if feature.upper == math.inf else ("~" if feature.upper_inferred else "") + _number(feature.upper)
    return f"{lower} .. {upper}".strip() if lower or upper else "any number"
