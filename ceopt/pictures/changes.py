"""What one answer changes: each column from where it is to where it would be, in moves that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

from ceopt.pictures.canvas import canvas
from ceopt.pictures.rows import height_of, lay_rows, limits_that_fit
from ceopt.pictures.texts import clean, shortened, width_pt
from ceopt.pictures.ticks import number_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.pictures.canvas import Canvas
    from ceopt.pictures.captions import Captions

__all__ = ["Move", "Sense", "draw_changes"]

Sense: TypeAlias = Literal["number", "level", "stays"]

#: The share of the width that a value may take on either side, and the points between it and its mark.
_VALUE, _GAP = 0.34, 8.0
#: Half the length, in rows, of the line at 0.
_HALF: Final = 0.22


@final
@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of one column.

    Parameters
    ----------
    name
        Of the column, with its unit.
    before, after
        The raw values as texts.
    amount
        The move divided by the column's scale, with its sign; 1 of another level without order.
    sense
        Whether a number (or rank) moves, a level becomes another, or the value stays.
    note
        What is said beside the name: that it is a consequence.
    """

    name: str
    before: str
    after: str
    amount: float
    sense: Sense = "number"
    note: str = ""


def draw_changes(who: str, moves: Sequence[Move], *, title: str, say: Captions, ax: Any, dark: bool) -> Axes:
    """Draw a row for each move: a ring at 0 with the value before, an arrow head at the move with the value after."""
    paper = canvas(who, ax, dark=dark, height=height_of(len(moves)))
    rows = lay_rows(paper, [clean(move.name) for move in moves], [move.note for move in moves])
    most = _VALUE * paper.width_pt
    fitting = []
    places: list[tuple[float, float, float]] = []
    for move in moves:
        before = shortened(clean(move.before), rows.size, most)
        after = shortened(clean(move.after), rows.size, most)
        fitting.append(replace(move, before=before, after=after))
        places += _room(fitting[-1], rows.size)
    paper.ax.set_xlim(*limits_that_fit(places, paper.width_pt))
    for move, (height,) in zip(fitting, rows.marks, strict=True):
        _draw_move(paper, move, height, rows.size)
    number_ticks(paper.ax.xaxis, say=say)
    paper.foot(*(say.put(name) for name in ("moves_foot", "moves_foot_short", "moves_foot_least")))
    paper.title(title)
    return paper.ax


def _room(move: Move, size: float) -> list[tuple[float, float, float]]:
    """Return the ends of an arrow with the points that their texts take to the left and to the right."""
    own = width_pt(move.before, size) + 2.0 * _GAP
    new = width_pt(move.after, size) + 2.0 * _GAP
    if move.sense == "stays":
        return [(0.0, _GAP, own)]
    if move.amount < 0.0:
        return [(0.0, _GAP, own), (move.amount, new, _GAP)]
    return [(0.0, own, _GAP), (move.amount, _GAP, new)]


def _draw_move(paper: Canvas, move: Move, height: float, size: float) -> None:
    axes = paper.ax
    colours = paper.colours
    mark = 0.75 * size
    axes.vlines([0.0], [height - _HALF], [height + _HALF], color=colours.grid, zorder=1)
    axes.plot([0.0], [height], ls="", marker="o", ms=mark, mfc=colours.ground, mec=colours.text, mew=1.3, zorder=4)
    dashes: Any = "-"
    if move.sense == "stays":
        _write(paper, (0.0, height), move.before, size, is_right=True, colour=colours.muted)
        return
    if move.sense == "level":
        colour = colours.other
        dashes = (0, (4, 2))
        head = "s"
    elif move.amount < 0.0:
        colour = colours.fall
        head = "<"
    else:
        colour = colours.rise
        head = ">"
    is_right = move.amount >= 0.0
    _write(paper, (0.0, height), move.before, size, is_right=not is_right, colour=colours.muted)
    axes.plot([0.0, move.amount], [height, height], color=colour, ls=dashes, lw=2.0, solid_capstyle="butt", zorder=2)
    axes.plot([move.amount], [height], ls="", marker=head, ms=mark, color=colour, zorder=5)
    _write(paper, (move.amount, height), move.after, size, is_right=is_right, colour=colours.text)


def _write(paper: Canvas, place: tuple[float, float], text: str, size: float, *, is_right: bool, colour: str) -> None:
    """Write a value to the right of a place, or to its left."""
    aside = _GAP if is_right else -_GAP
    paper.ax.annotate(
        text, place, (aside, 0.0), textcoords="offset points", ha="left" if is_right else "right", va="center",
        fontsize=size, color=colour, parse_math=False, in_layout=False, annotation_clip=False,
    )  # fmt: skip
