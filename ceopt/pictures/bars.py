"""How many people: a row of bars for each thing that is counted, each bar in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from ceopt.pictures.canvas import canvas
from ceopt.pictures.palette import HATCHES
from ceopt.pictures.rows import height_of, lay_rows, limits_that_fit
from ceopt.pictures.texts import clean, shortened, width_pt
from ceopt.pictures.ticks import number_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.pictures.canvas import Canvas
    from ceopt.pictures.captions import Captions
    from ceopt.pictures.rows import RowLayout

__all__ = ["Bar", "Bars", "draw_bars"]

#: The share of a line that a bar takes, points between it and its text, and the share of the width for that at most.
_THICK, _GAP, _TEXT = 0.56, 6.0, 0.5


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
    marks = len(rows[0].bars)
    labels = []
    if legend and len(parts) > 1:
        labels = [say.put(part) for part in parts]
    head_pt = 14.0 * -(-len(labels) // 4)
    paper = canvas(who, ax, dark=dark, height=height_of(len(rows), marks=marks, legend_pt=head_pt))
    names = [clean(row.name) for row in rows]
    laid = lay_rows(paper, names, marks=marks, legend_pt=paper.legend_pt(labels))
    places = [(0.0, 0.0, 0.0)]
    for row in rows:
        for bar in row.bars:
            text = _fitting(paper, bar, laid.size)
            places.append((sum(bar.parts.values()), 0.0, width_pt(text, laid.size) + 2.0 * _GAP))
    paper.ax.set_xlim(0.0, limits_that_fit(places, paper.width_pt)[1])
    looks = {}
    for place, (part, name) in enumerate(parts.items()):
        hatch = HATCHES[place % len(HATCHES)] if labels else ""
        looks[part] = {"facecolor": _colour(paper, name), "hatch": hatch, "edgecolor": paper.colours.ground}
    for row, heights in zip(rows, laid.marks, strict=True):
        for bar, height in zip(row.bars, heights, strict=True):
            _draw_bar(paper, bar, height, laid, looks)
    if labels:
        paper.legend(_patches(looks), labels)
    number_ticks(paper.ax.xaxis, whole=True, say=say)
    paper.foot(foot)
    paper.title(title)
    return paper.ax


def _colour(paper: Canvas, name: str) -> str:
    colour: str | None = paper.colours.statuses.get(name)
    if colour is None:
        colour = getattr(paper.colours, name)
    return colour


def _patches(looks: Mapping[str, Any]) -> list[Any]:
    from matplotlib.patches import Patch

    return [Patch(**look) for look in looks.values()]


def _fitting(paper: Canvas, bar: Bar, size: float) -> str:
    return shortened(clean(bar.text), size, _TEXT * paper.width_pt)


def _draw_bar(paper: Canvas, bar: Bar, height: float, laid: RowLayout, looks: Mapping[str, Any]) -> None:
    begin = 0.0
    thickness = _THICK * laid.line
    for part, look in looks.items():
        length = bar.parts.get(part, 0.0)
        if length > 0.0:
            paper.ax.barh(height, length, thickness, left=begin, lw=0.6, zorder=2, **look)
            begin += length
    paper.ax.annotate(
        _fitting(paper, bar, laid.size), (begin, height), (_GAP, 0.0), textcoords="offset points", ha="left",
        va="center", fontsize=laid.size, color=paper.colours.muted, parse_math=False, in_layout=False,
    )  # fmt: skip
