"""Where a picture is drawn: axes of its own on a figure that nothing else holds, or those that were given."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from ceopt.extras import require_library
from ceopt.pictures.palette import Palette, palette
from ceopt.pictures.texts import shortened, width_pt, wrapped
from ceopt.solvers.checks import Flag
from ceopt.solvers.errors import InvalidTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LEGEND", "SMALL", "TITLE", "WIDTH", "Canvas", "canvas"]

#: Sizes of letters, in points.
TITLE: Final = 10.5
SMALL: Final = 8.5
LEGEND: Final = 8.5
#: Inches: the width of a picture of its own, and the rims of one whose texts all stand inside its axes.
WIDTH: Final = 7.2
_SIDE, _HEAD, _FOOT = 0.28, 0.42, 0.56
_RIM: Final = 0.12
#: Points that a line of the legend takes, and what an entry takes beside its text.
_LEGEND_LINE: Final = 14.0
_LEGEND_MARK: Final = 40.0
_PIXELS_PER_INCH: Final = 110


@final
@dataclass(frozen=True, slots=True)
class Canvas:
    """Axes, the colours of their ground, and their size in points."""

    ax: Axes
    colours: Palette
    width_pt: float
    height_pt: float

    @property
    def is_laid_out(self) -> bool:
        """Whether matplotlib makes room for what stands about the axes; else there is little, and none for legends."""
        return self.ax.figure.get_layout_engine() is not None

    def settled(self) -> Canvas:
        """Return the same with the size that the axes have once matplotlib has laid out a figure of their own."""
        figure: Any = self.ax.figure
        if hasattr(self.ax, "_repr_png_"):
            figure.draw_without_rendering()
        return _measured(self.ax, self.colours)

    def title(self, text: str, *, above_pt: float = 0.0) -> None:
        """Write a title at the left, in two lines where it takes them, as long as there is room."""
        fitting = wrapped(text, TITLE, self.width_pt, 2 if self.is_laid_out else 1)
        self.ax.set_title(
            fitting, loc="left", fontsize=TITLE, color=self.colours.text, parse_math=False, pad=6.0 + above_pt
        )

    def foot(self, *texts: str) -> None:
        """Write the first of some texts that fits below the axes, or the last one shortened."""
        text = shortened(texts[-1], SMALL, self.width_pt)
        for wanted in reversed(texts):
            if width_pt(wanted, SMALL) <= self.width_pt:
                text = wanted
        self.ax.set_xlabel(text, fontsize=SMALL, color=self.colours.muted, parse_math=False)

    def legend_lines(self, labels: Sequence[str]) -> int:
        """Return how many lines a legend in the head of the axes takes."""
        return math.ceil(len(labels) / self._legend_columns(labels))

    def legend_pt(self, labels: Sequence[str]) -> float:
        """Return the height of such a legend in points, with the room below it."""
        if not labels:
            return 0.0
        return self.legend_lines(labels) * _LEGEND_LINE + 8.0

    def above_pt(self, labels: Sequence[str]) -> float:
        """Return the height of a legend above the axes: none where it stands in them, as there is no room."""
        if not self.is_laid_out:
            return 0.0
        return self.legend_pt(labels)

    def legend(self, handles: Sequence[Any], labels: Sequence[str], *, in_head: bool = True) -> None:
        """Draw a legend in the head of the axes, which must be empty, or above them, or where it covers least."""
        fitting = [shortened(label, LEGEND, self.width_pt - _LEGEND_MARK) for label in labels]
        placed: dict[str, Any] = {"loc": "upper left", "borderaxespad": 0.0, "frameon": False}
        placed["ncols"] = self._legend_columns(labels)
        if not in_head and self.is_laid_out:
            placed |= {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
        elif not in_head:
            placed = {"loc": "best", "facecolor": self.colours.ground, "edgecolor": self.colours.grid}
        legend = self.ax.legend(
            handles,
            fitting,
            fontsize=LEGEND,
            labelcolor=self.colours.text,
            handlelength=1.8,
            columnspacing=1.4,
            **placed,
        )
        legend.set_in_layout(False)
        for text in legend.get_texts():
            text.set_parse_math(False)

    def _legend_columns(self, labels: Sequence[str]) -> int:
        widest = max([width_pt(label, LEGEND) for label in labels], default=0.0) + _LEGEND_MARK
        return max(1, min(len(labels), int(self.width_pt / widest)))


def _measured(ax: Axes, colours: Palette) -> Canvas:
    box = ax.get_window_extent()
    points = 72.0 / ax.figure.dpi
    return Canvas(ax, colours, box.width * points, box.height * points)


_DARK: Final = Flag()


def canvas(who: str, ax: Any, *, dark: bool, height: float, width: float = WIDTH, inside: bool = True) -> Canvas:
    """Return the axes to draw on, in the colours of their ground.

    Parameters
    ----------
    who
        What errors name.
    ax
        Axes of the caller, or None for a figure of its own.
    dark
        Whether the ground is dark; that of the figure to which given axes belong becomes so too.
    height, width
        Of a figure of its own, in inches.
    inside
        Whether no text stands beside the axes: then they are as wide as the figure, and else laid out by matplotlib.

    Raises
    ------
    MissingLibraryError
        matplotlib is not installed.
    InvalidTypeError
        ``ax`` is something else, or ``dark`` is no truth value.
    """
    require_library(who, "matplotlib")
    colours = palette(dark=_DARK.require(who, "dark", dark))
    if ax is None:
        ax = _own_axes(height, width, inside=inside)
    _require_axes(who, ax)
    ax.figure.set_facecolor(colours.ground)
    ax.set_facecolor(colours.ground)
    for side, spine in ax.spines.items():
        spine.set_color(colours.grid)
        spine.set_linewidth(0.8)
        spine.set_visible(side == "bottom" or not inside)
    ax.tick_params(colors=colours.muted, labelsize=SMALL, width=0.8)
    return _measured(ax, colours)


def _own_axes(height: float, width: float, *, inside: bool) -> Axes:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if inside:
        figure = Figure(figsize=(width, height), dpi=_PIXELS_PER_INCH)
        tall = height - _HEAD - _FOOT
        place = (_SIDE / width, _FOOT / height, 1.0 - 2.0 * _SIDE / width, tall / height)
        ax = figure.add_axes(place)
    else:
        figure = Figure(
            figsize=(width, height), dpi=_PIXELS_PER_INCH, layout=ConstrainedLayoutEngine(w_pad=_RIM, h_pad=_RIM)
        )
        ax = figure.add_subplot()
    # Jupyter shows figures of pyplot by itself, and of all else what it finds under this name.
    setattr(ax, "_repr_png_", partial(_png, figure))  # noqa: B010 - matplotlib's class does not declare it
    return ax


def _png(figure: Figure) -> bytes:
    written = io.BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()


def _require_axes(who: str, ax: Any) -> None:
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        but = f"ax is {type(ax).__name__}"
        raise InvalidTypeError(who, "Axes of matplotlib, or None, as ax", but, "Give one, as of plt.subplots().")
