"""What answers cost, group by group: every person a dot, the middle half a band, the median a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.pictures.canvas import canvas
from ceopt.pictures.rows import height_of, lay_rows
from ceopt.pictures.texts import clean
from ceopt.pictures.ticks import number_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.pictures.canvas import Canvas
    from ceopt.pictures.captions import Captions

__all__ = ["CostGroup", "draw_costs"]

Floats: TypeAlias = NDArray[np.float64]

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
        paper.ax.set_xlim(max(low - rim, 0.0 if low < 0.3 * high else low - rim), high + rim)
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
