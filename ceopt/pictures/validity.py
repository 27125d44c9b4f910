"""How likely a plan is to survive, at worst and at best, as the moments become less certain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ceopt.pictures.canvas import canvas
from ceopt.pictures.ticks import number_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_validity"]

Floats: TypeAlias = NDArray[np.float64]

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
    above = paper.above_pt(labels)
    paper.title("A title", above_pt=above)
    paper = paper.settled()
    paper.title("Probability that every counterfactual of the plan holds", above_pt=above)
    paper.foot(*foots)
    paper.legend(handles, labels, in_head=False)
    return axes
