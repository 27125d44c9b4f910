"""A person and all answers as lines over the columns: parallel coordinates, with an axis a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from ceopt.pictures.canvas import canvas
from ceopt.pictures.texts import clean, shortened, width_pt, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.pictures.canvas import Canvas

__all__ = ["ParallelAxis", "ParallelLine", "draw_parallel"]

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

    Of numbers a text that finds no room is left out; of levels all are written, as short as it takes.
    """

    name: str
    values: tuple[tuple[float, str], ...]
    is_number: bool


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
    paper = canvas(who, ax, dark=dark, height=_height(len(scales), len(lines)))
    labels = _labels(paper, lines)
    legend_pt = paper.legend_pt(labels)
    axes = paper.ax
    count = len(scales)
    row_pt = max((paper.height_pt - legend_pt) / count, 1.0)
    size = max(min(0.21 * row_pt, _LARGEST), _LEAST)
    inner = paper.width_pt * (1.0 - _NAMES) - 2.0 * _RIM
    axes.set_xlim(-(paper.width_pt * _NAMES + _RIM) / inner, 1.0 + _RIM / inner)
    axes.set_ylim(count - 0.5, -0.4 - legend_pt / row_pt)
    _write_names(paper, scales, size)
    axes.hlines(range(count), 0.0, 1.0, color=paper.colours.grid, lw=1.0, zorder=1)
    for height, scale in enumerate(scales):
        _write_values(paper, scale, height, size, inner)
    paper.legend(_draw_lines(paper, person, answers, strongest), labels)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    paper.foot(foot)
    paper.title(title)
    return axes


def _height(rows: int, lines: int) -> float:
    """Return the height in inches of a figure of its own, where four entries of the legend stand in a line."""
    return _AROUND + _ROW * rows + 0.2 * math.ceil(lines / 4)


def _labels(paper: Canvas, lines: Sequence[ParallelLine]) -> list[str]:
    """Return what the legend says, in short where it would take too much of the height."""
    labels: list[str] = []
    for place in range(len(lines[0].labels)):
        labels = [line.labels[place] for line in lines]
        if paper.legend_pt(labels) <= _LEGEND * paper.height_pt:
            break
    return labels


def _write_names(paper: Canvas, scales: Sequence[ParallelAxis], size: float) -> None:
    most = _NAMES * paper.width_pt
    names = [wrapped(clean(scale.name), size, most, _MOST_NAME_LINES) for scale in scales]
    paper.ax.set_yticks(
        range(len(scales)), labels=names, ha="left", va="center", fontsize=size, color=paper.colours.text,
        parse_math=False,
    )  # fmt: skip
    paper.ax.tick_params(axis="y", length=0, pad=0)


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
        colour = _colour(paper, place, strongest, len(answers))
        drawn += axes.plot(
            line.places, heights, transform=axes.transData + shift, color=colour, ls="-", lw=width, ms=mark,
            marker=_MARKERS[place % len(_MARKERS)], zorder=over,
        )  # fmt: skip
    own = axes.plot(
        person.places, heights, color=paper.colours.text, ls=(0, (3, 2)), lw=1.6, marker="o", ms=6.0,
        mfc=paper.colours.ground, mew=1.4, zorder=5.0,
    )  # fmt: skip
    return [*own, *drawn]


def _colour(paper: Canvas, place: int, strongest: int, count: int) -> Any:
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
