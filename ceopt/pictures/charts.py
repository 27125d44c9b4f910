"""Charts: people as bars, one answer's changes, costs by group, answers as parallel coordinates, bounds of validity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.pictures.canvas import (
    HATCHES,
    canvas,
    clean,
    height_of,
    lay_rows,
    limits_that_fit,
    number_ticks,
    row_names,
    shortened,
    width_pt,
    wrapped,
)
from ceopt.solvers.checks import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.pictures.canvas import Canvas, Captions, RowLayout

# ==== How many people: a row of bars for each thing that is counted, each bar in parts ================================

#: The share of a line that a bar takes, points between it and its text, and the share of the width for that at most.
_THICK, _BAR_GAP, _TEXT = 0.56, 6.0, 0.5


@final
@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: the length of each part by its name, and what is written at its end."""

    parts: Mapping[str, float]
    text: str


@final
@dataclass(frozen=True, slots=True)
class Bars:
    """A row: its name, and its bars from above, as many as in every other row."""

    name: str
    bars: tuple[Bar, ...]


def draw_bars(
    who: str, rows: Sequence[Bars], parts: Mapping[str, str], *, title: str, foot: str, say: Captions, ax: Any,
    dark: bool, legend: bool = True,
) -> Axes:  # fmt: skip
    """Draw the rows from above.

    ``parts`` has the colour of each part: a name of the palette's, or a status. With a ``legend`` several are told, by
    the captions of their names.
    """
    from matplotlib.patches import Patch

    marks = len(rows[0].bars)
    labels = []
    if legend and len(parts) > 1:
        labels = list(map(say.put, parts))
    head_pt = 14.0 * -(-len(labels) // 4)
    paper = canvas(who, ax, dark=dark, height=height_of(len(rows), marks=marks, legend_pt=head_pt))
    names = [clean(row.name) for row in rows]
    laid = lay_rows(paper, names, marks=marks, legend_pt=paper.legend_pt(labels))
    looks: dict[str, Any] = {}
    for place, (part, name) in enumerate(parts.items()):
        hatch = HATCHES[place % len(HATCHES)] if labels else ""
        colour = paper.colours.statuses.get(name) or getattr(paper.colours, name)
        looks[part] = {"facecolor": colour, "hatch": hatch, "edgecolor": paper.colours.ground}
    places = [(0.0, 0.0, 0.0)]
    for row, heights in zip(rows, laid.marks, strict=True):
        for bar, height in zip(row.bars, heights, strict=True):
            text = shortened(clean(bar.text), laid.size, _TEXT * paper.width_pt)
            places.append((sum(bar.parts.values()), 0.0, width_pt(text, laid.size) + 2.0 * _BAR_GAP))
            _draw_bar(paper, replace(bar, text=text), height, laid, looks)
    paper.ax.set_xlim(0.0, limits_that_fit(places, paper.width_pt)[1])
    if labels:
        paper.legend([Patch(**look) for look in looks.values()], labels)
    number_ticks(paper.ax.xaxis, whole=True, say=say)
    paper.foot(foot)
    paper.title(title)
    return paper.ax


def _draw_bar(paper: Canvas, bar: Bar, height: float, laid: RowLayout, looks: Mapping[str, Any]) -> None:
    begin = 0.0
    thickness = _THICK * laid.line
    for part, look in looks.items():
        length = bar.parts.get(part, 0.0)
        if length > 0.0:
            paper.ax.barh(height, length, thickness, left=begin, lw=0.6, zorder=2, **look)
            begin += length
    paper.ax.annotate(
        bar.text, (begin, height), (_BAR_GAP, 0.0), textcoords="offset points", ha="left",
        va="center", fontsize=laid.size, color=paper.colours.muted, parse_math=False, in_layout=False,
    )  # fmt: skip


# ==== What one answer changes: each column from where it is to where it would be, in moves that can be compared =======

Sense: TypeAlias = Literal["number", "level", "stays"]

#: The share of the width that a value may take on either side, and the points between it and its mark.
_VALUE, _VALUE_GAP = 0.34, 8.0
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
    paper.foot(*map(say.put, ("moves_foot", "moves_foot_short", "moves_foot_least")))
    paper.title(title)
    return paper.ax


def _room(move: Move, size: float) -> list[tuple[float, float, float]]:
    """Return the ends of an arrow with the points that their texts take to the left and to the right."""
    own = width_pt(move.before, size) + 2.0 * _VALUE_GAP
    new = width_pt(move.after, size) + 2.0 * _VALUE_GAP
    if move.sense == "stays":
        return [(0.0, _VALUE_GAP, own)]
    if move.amount < 0.0:
        return [(0.0, _VALUE_GAP, own), (move.amount, new, _VALUE_GAP)]
    return [(0.0, own, _VALUE_GAP), (move.amount, _VALUE_GAP, new)]


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
    aside = _VALUE_GAP if is_right else -_VALUE_GAP
    paper.ax.annotate(
        text, place, (aside, 0.0), textcoords="offset points", ha="left" if is_right else "right", va="center",
        fontsize=size, color=colour, parse_math=False, in_layout=False, annotation_clip=False,
    )  # fmt: skip


# ==== What answers cost, group by group: every person a dot, the middle half a band, the median a line ================


#: So many people of a group are drawn as dots; of more the quantiles say enough.
_DOTS: Final = 200
#: Costs whose greatest is so many times the median are drawn on a logarithmic axis.
_WIDE: Final = 50.0
#: Dots lie side by side in a band: the fractional parts of multiples of the golden ratio are never close.
_GOLDEN: Final = 0.6180339887498949


@final
@dataclass(frozen=True, slots=True, eq=False)
class CostGroup:
    """A group of people: its name, the costs of those with an answer, and what is said of it."""

    name: str
    costs: Floats
    note: str


def draw_costs(who: str, groups: Sequence[CostGroup], *, say: Captions, ax: Any, dark: bool) -> Axes:
    """Draw a row for each group, empty where nobody has an answer."""
    paper = canvas(who, ax, dark=dark, height=height_of(len(groups)))
    laid = lay_rows(paper, [clean(group.name) for group in groups], [clean(group.note) for group in groups])
    costs = np.concatenate([group.costs for group in groups])
    is_wide = costs.min() > 0.0 and costs.max() > _WIDE * np.median(costs)
    foot = "costs_foot"
    if is_wide:
        paper.ax.set_xscale("log")
        foot = "costs_foot_logarithmic"
    for group, heights in zip(groups, laid.marks, strict=True):
        if len(group.costs):
            _draw_group(paper, group.costs, heights[0], 0.5 * laid.line, laid.size)
    if not is_wide:
        low, high = float(costs.min()), float(costs.max())
        rim = 0.04 * (high - low) or 0.5 * (abs(high) or 1.0)
        left = low - rim
        if low < 0.3 * high:
            left = max(left, 0.0)
        paper.ax.set_xlim(left, high + rim)
        number_ticks(paper.ax.xaxis, say=say)
    paper.ax.tick_params(axis="x", which="both", colors=paper.colours.muted)
    paper.foot(say.put(foot))
    paper.title(say.put("costs"))
    return paper.ax


def _draw_group(paper: Canvas, costs: Floats, height: float, thickness: float, size: float) -> None:
    axes = paper.ax
    colours = paper.colours
    least, lower, median, upper, most = np.quantile(costs, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
    axes.barh(height, upper - lower, thickness, left=lower, color=colours.rise, alpha=0.28, lw=0, zorder=2)
    axes.plot([least, most], [height, height], color=colours.rise, lw=1.2, zorder=2.5, solid_capstyle="butt")
    if len(costs) <= _DOTS:
        places = np.sort(costs)
        aside = ((np.arange(len(places)) * _GOLDEN) % 1.0 - 0.5) * 0.9 * thickness
        axes.plot(
            places, height + aside, ls="", marker="o", ms=0.42 * size, mfc=colours.rise, mec=colours.ground, mew=0.4,
            alpha=0.85, zorder=3,
        )  # fmt: skip
    half = 0.75 * thickness
    axes.plot([median, median], [height - half, height + half], color=colours.fall, lw=2.4, zorder=4)


# ==== A person and all answers as lines over the columns: parallel coordinates, with an axis a row ====================

_ROW, _AROUND = 0.62, 0.98
#: The share of the width that names take, and the points that lines and values keep from the rims.
_NAMES, _RIM = 0.30, 26.0
_LARGEST, _LEAST = 8.5, 3.5
#: Points between lines that would lie on one another.
_APART: Final = 1.6
_MOST_NAME_LINES: Final = 3
#: Of answers, best first.
_MARKERS: Final = "os^DvPX<>p"
#: The share of the height that a legend at length may take.
_LEGEND: Final = 0.4


@final
@dataclass(frozen=True, slots=True)
class ParallelAxis:
    """One column: its name, and the places from 0 to 1 of values that occur, with their texts, the weightiest first.

    Of numbers a text that finds no room is left out; of levels all are written, as short as it takes. An axis whose
    places say nothing of an order is dotted.
    """

    name: str
    values: tuple[tuple[float, str], ...]
    is_number: bool
    is_ordered: bool = True


@final
@dataclass(frozen=True, slots=True)
class ParallelLine:
    """One row of data: how the legend calls it, at length and in short, and its place from 0 to 1 on each scale."""

    labels: tuple[str, ...]
    places: tuple[float, ...]


def draw_parallel(
    who: str, scales: Sequence[ParallelAxis], person: ParallelLine, answers: Sequence[ParallelLine], *, strongest: int,
    title: str, foot: str, ax: Any, dark: bool,
) -> Axes:  # fmt: skip
    """Draw the person's line, dashed, and one an answer; that at the place ``strongest`` is drawn over the others."""
    lines = [person, *answers]
    height = _AROUND + _ROW * len(scales) + 0.2 * math.ceil(len(lines) / 4)  # four of the legend stand in a line
    paper = canvas(who, ax, dark=dark, height=height)
    labels = _labels(paper, lines)
    legend_pt = paper.legend_pt(labels)
    axes = paper.ax
    count = len(scales)
    row_pt = max((paper.height_pt - legend_pt) / count, 1.0)
    size = max(min(0.21 * row_pt, _LARGEST), _LEAST)
    inner = paper.width_pt * (1.0 - _NAMES) - 2.0 * _RIM
    axes.set_xlim(-(paper.width_pt * _NAMES + _RIM) / inner, 1.0 + _RIM / inner)
    axes.set_ylim(count - 0.5, -0.4 - legend_pt / row_pt)
    names = [wrapped(clean(scale.name), size, _NAMES * paper.width_pt, _MOST_NAME_LINES) for scale in scales]
    row_names(paper, range(count), names, size)
    dashes: list[Any] = ["-" if scale.is_ordered else (0, (1, 3)) for scale in scales]
    axes.hlines(range(count), 0.0, 1.0, color=paper.colours.grid, ls=dashes, lw=1.0, zorder=1)
    for place, scale in enumerate(scales):
        _write_values(paper, scale, place, size, inner)
    paper.legend(_draw_lines(paper, person, answers, strongest), labels)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    paper.foot(foot)
    paper.title(title)
    return axes


def _labels(paper: Canvas, lines: Sequence[ParallelLine]) -> list[str]:
    """Return what the legend says, in short where it would take too much of the height."""
    labels: list[str] = []
    for place in range(len(lines[0].labels)):
        labels = [line.labels[place] for line in lines]
        if paper.legend_pt(labels) <= _LEGEND * paper.height_pt:
            break
    return labels


def _draw_lines(paper: Canvas, person: ParallelLine, answers: Sequence[ParallelLine], strongest: int) -> list[Any]:
    """Draw the lines, those that coincide side by side, and return them: the person's, and the answers' by rank."""
    from matplotlib.transforms import ScaledTranslation

    axes = paper.ax
    heights = range(len(person.places))
    drawn = []
    for place, line in enumerate(answers):
        aside = _APART * (place + 1) * (-1.0) ** place / 2.0
        shift = ScaledTranslation(aside / 72.0, 0.0, axes.figure.dpi_scale_trans)
        width, mark, over = 1.4, 4.0, 3.0 - place / 100.0
        if place == strongest:
            width, mark, over = 2.4, 5.5, 4.0
        colour = _line_colour(paper, place, strongest, len(answers))
        drawn += axes.plot(
            line.places, heights, transform=axes.transData + shift, color=colour, ls="-", lw=width, ms=mark,
            marker=_MARKERS[place % len(_MARKERS)], zorder=over,
        )  # fmt: skip
    own = axes.plot(
        person.places, heights, color=paper.colours.text, ls=(0, (3, 2)), lw=1.6, marker="o", ms=6.0,
        mfc=paper.colours.ground, mew=1.4, zorder=5.0,
    )  # fmt: skip
    return [*own, *drawn]


def _line_colour(paper: Canvas, place: int, strongest: int, count: int) -> Any:
    """Return a colour of its own; of more lines than there are such, one of a ramp that lacks the strongest one's."""
    if count <= len(paper.colours.lines):
        return paper.colours.lines[place]
    if place == strongest:
        return paper.colours.fall
    from matplotlib import colormaps

    name, first, last = paper.colours.ramp
    return colormaps[name](first + (last - first) * place / (count - 1))


def _write_values(paper: Canvas, scale: ParallelAxis, height: float, size: float, inner: float) -> None:
    """Write the values below the axis, each in the middle under its place; a number only where there is room."""
    values = scale.values
    most = inner
    if not scale.is_number:
        most = inner / max(len(values), 2)
    taken: list[tuple[float, float]] = []
    for place, raw in values:
        text = shortened(clean(raw), size, most - size)
        half = width_pt(text, size) / 2.0 + size / 3.0
        middle = min(max(place * inner, half - _RIM), inner + _RIM - half)
        is_free = all(middle + half <= low or middle - half >= high for low, high in taken)
        if scale.is_number and not is_free:
            continue
        taken.append((middle - half, middle + half))
        paper.ax.annotate(
            text, (middle / inner, height), (0.0, -0.75 * size), textcoords="offset points", ha="center", va="top",
            fontsize=size, color=paper.colours.muted, parse_math=False, in_layout=False, zorder=6.0,
            bbox={"facecolor": paper.colours.ground, "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip


# ==== How likely a plan is to survive, at worst and at best, as the moments become less certain =======================

_HEIGHT, _WIDTH = 3.6, 6.0


def draw_validity(
    who: str, radii: Floats, lower: Floats, upper: Floats, unproved: NDArray[np.bool_], *, ax: Any, dark: bool
) -> Axes:
    """Draw both bounds over ascending radii (k,), the room between them pale, a mark at each radius.

    The marks of radii at which a bound is not proved to be the closest, (k,), are hollow.
    """
    paper = canvas(who, ax, dark=dark, height=_HEIGHT, width=_WIDTH, inside=False)
    axes = paper.ax
    colours = paper.colours
    axes.fill_between(radii, lower, upper, color=colours.grid, alpha=0.55, lw=0, zorder=1)
    handles = []
    for bound, colour, marker in ((upper, colours.rise, "s"), (lower, colours.fall, "o")):
        handles += axes.plot(
            radii, bound, color=colour, lw=2.0, marker=marker, ms=4.5, mfc=colour, mec=colour, zorder=3, clip_on=False
        )
        if unproved.any():
            axes.plot(
                radii[unproved], bound[unproved], ls="", marker=marker, ms=4.5, mfc=colours.ground, mec=colour,
                zorder=4, clip_on=False,
            )  # fmt: skip
    axes.set_ylim(-0.02, 1.02)
    number_ticks(axes.xaxis)
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    axes.grid(visible=True, axis="y", color=colours.grid, lw=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    labels = ["at best", "at worst"]
    foots = ("radius: how far mean and covariance may be off", "radius")
    if unproved.any():
        foots = ("radius (hollow: not proved to be the closest bound)", "radius (hollow: not proved)")
    paper.foot(*foots)
    paper = paper.settled(labels)
    paper.title("Probability that every counterfactual of the plan holds", above_pt=paper.above_pt(labels))
    paper.foot(*foots)
    paper.legend(handles, labels, in_head=False)
    return axes
