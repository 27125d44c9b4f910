"""A picture of rows: one below the other, each with its name above what is drawn of it.

Names stand inside the axes, so that no layout of a figure cuts a long one off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from ceopt.pictures.canvas import Canvas
from ceopt.pictures.texts import shortened, width_pt

__all__ = ["RowLayout", "height_of", "lay_rows", "limits_that_fit"]

#: Inches of a line of a row in a picture of its own: its name takes one, and each mark. What title, foot and rims take.
_LINE: Final = 0.25
_AROUND: Final = 0.98
#: In lines from the top of a row: the middles of its name and of its first mark, and from mark to mark.
_NAME, _MARK, _NEXT = 0.48, 1.28, 0.86
_LARGEST, _LEAST = 9.0, 3.5
_ROUNDS: Final = 60


@final
@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the rows are.

    Parameters
    ----------
    marks
        Heights of what is drawn in each row, from above.
    line
        The height of a line, in rows.
    size
        That of letters, in points.
    """

    marks: tuple[tuple[float, ...], ...]
    line: float
    size: float


def height_of(count: int, *, marks: int = 1, legend_pt: float = 0.0) -> float:
    """Return the height in inches of a picture with so many rows, of so many marks each."""
    return _AROUND + max(count, 1) * _LINE * (marks + 1) + legend_pt / 72.0


def lay_rows(
    canvas: Canvas, names: Sequence[str], notes: Sequence[str] = (), *, marks: int = 1, legend_pt: float = 0.0
) -> RowLayout:
    """Lay out rows over the height of the axes, and write their names, and notes at their right ends.

    Parameters
    ----------
    canvas
        Where.
    names, notes
        One a row, an empty note for none.
    marks
        How many marks a row has, one below the other.
    legend_pt
        Points left free above the first row.
    """
    ax = canvas.ax
    count = len(names)
    line = 1.0 / (marks + 1)
    row_pt = max((canvas.height_pt - legend_pt) / count, 1.0)
    size = max(min(row_pt * line / 2.0, _LARGEST), _LEAST)
    ax.set_ylim(count - 0.5, -0.5 - legend_pt / row_pt)
    tops = [place - 0.5 + _NAME * line for place in range(count)]
    room = [canvas.width_pt] * count
    for place, note in enumerate(notes):
        if not note:
            continue
        fitting = shortened(note, size, 0.7 * canvas.width_pt)
        room[place] -= width_pt(fitting, size) + size
        ax.text(
            1.0, tops[place], fitting, transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=size,
            color=canvas.colours.muted, parse_math=False, in_layout=False,
        )  # fmt: skip
    fitting_names = [shortened(name, size, most) for name, most in zip(names, room, strict=True)]
    ax.set_yticks(
        tops, labels=fitting_names, ha="left", va="center", fontsize=size, color=canvas.colours.text, parse_math=False
    )
    ax.tick_params(axis="y", length=0, pad=0)
    if count > 1:
        between = [place - 0.5 for place in range(1, count)]
        ax.hlines(between, 0.0, 1.0, transform=ax.get_yaxis_transform(), lw=0.6, color=canvas.colours.grid, zorder=0.5)
    heights = []
    for place in range(count):
        heights.append(tuple(place - 0.5 + (_MARK + _NEXT * mark) * line for mark in range(marks)))
    return RowLayout(tuple(heights), line, size)


def limits_that_fit(places: Sequence[tuple[float, float, float]], width_pt: float) -> tuple[float, float]:
    """Return the ends of an axis on which every (place, points to its left, points to its right) has its room."""
    first = min(place for place, _, _ in places)
    last = max(place for place, _, _ in places)
    if first == last:
        first -= 0.5
        last += 0.5
    low, high = first, last
    for _ in range(_ROUNDS):  # each round asks for less: all texts together are narrower than the axis
        a_point = (high - low) / width_pt
        low = min(first, *(place - left * a_point for place, left, _ in places))
        high = max(last, *(place + right * a_point for place, _, right in places))
    return low, high
