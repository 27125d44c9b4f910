"""A sample about a boundary point over two columns, and where a linear surrogate draws its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.pictures.canvas import SMALL, canvas
from ceopt.pictures.texts import clean, shortened
from ceopt.pictures.ticks import number_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plane", "draw_sample", "segment_of"]

Floats: TypeAlias = NDArray[np.float64]

_HEIGHT, _WIDTH = 4.8, 6.4
_RIM: Final = 0.05


@final
@dataclass(frozen=True, slots=True)
class Plane:
    """Where a surrogate is favourable: ``across * x + up * y + rest >= 0`` over the two columns."""

    across: float
    up: float
    rest: float


def draw_sample(  # noqa: PLR0917 - what is drawn, and where
    who: str, points: Floats, favourable: NDArray[np.bool_], boundary: Sequence[float], plane: Plane | None,
    names: tuple[str, str], *, whole: tuple[bool, bool], ax: Any, dark: bool,
) -> Axes:  # fmt: skip
    """Draw the points (m, 2), crosses where they are not favourable, the boundary point, and the surrogate's line.

    ``whole`` says of both columns whether they hold whole numbers.
    """
    paper = canvas(who, ax, dark=dark, height=_HEIGHT, width=_WIDTH, inside=False)
    axes = paper.ax
    colours = paper.colours
    box = _box(np.vstack([points, [boundary]]))
    looks = (
        (favourable, "o", colours.rise, colours.ground, 0.3, "favourable"),
        (~favourable, "x", colours.fall, colours.fall, 0.9, "unfavourable"),
    )
    handles: list[Any] = []
    labels: list[str] = []
    for which, marker, colour, edge, width, label in looks:
        handles += axes.plot(
            *points[which].T, ls="", marker=marker, ms=4.6, mfc=colour, mec=edge, mew=width, alpha=0.75, zorder=2
        )
        labels.append(f"{label} ({which.sum():,})")
    handles += axes.plot(
        [boundary[0]], [boundary[1]], ls="", marker="D", ms=9.0, mfc=colours.ground, mec=colours.text, mew=1.8, zorder=5
    )
    labels.append("boundary point")
    if plane is not None:
        segment = segment_of(plane, box)
        if segment is None:
            labels.append("surrogate: its line is not here")
            handles += axes.plot([], [], color=colours.text, ls=":", lw=2.0)
        else:
            labels.append("surrogate, at its other columns")
            handles += axes.plot(*np.array(segment).T, color=colours.text, lw=2.0, zorder=4)
    axes.set_xlim(box[0], box[1])
    axes.set_ylim(box[2], box[3])
    above = paper.above_pt(labels)
    number_ticks(axes.xaxis, whole=whole[0])
    number_ticks(axes.yaxis, whole=whole[1])
    axes.set_xlabel("x", fontsize=SMALL)
    axes.set_ylabel("y", fontsize=SMALL)
    paper.title("A title", above_pt=above)
    paper = paper.settled()
    text: dict[str, Any] = {"fontsize": SMALL, "color": colours.text, "parse_math": False}
    axes.set_xlabel(shortened(clean(names[0]), SMALL, paper.width_pt), **text)
    axes.set_ylabel(shortened(clean(names[1]), SMALL, paper.height_pt), **text)
    paper.title(f"{len(points):,} rows about the boundary point", above_pt=paper.above_pt(labels))
    paper.legend(handles, labels, in_head=False)
    return axes


def _box(points: Floats) -> tuple[float, float, float, float]:
    """Return the least and the greatest x, then y, with a rim."""
    low, high = points.min(axis=0), points.max(axis=0)
    rim = _RIM * (high - low)
    rim[rim == 0.0] = 0.5
    return float(low[0] - rim[0]), float(high[0] + rim[0]), float(low[1] - rim[1]), float(high[1] + rim[1])


def segment_of(plane: Plane, box: tuple[float, float, float, float]) -> tuple[tuple[float, float], ...] | None:
    """Return the two ends of a line inside a box; None if it does not pass through.

    Examples
    --------
    >>> segment_of(Plane(1.0, 1.0, -1.0), (0.0, 2.0, 0.0, 2.0))
    ((0.0, 1.0), (1.0, 0.0))
    >>> segment_of(Plane(0.0, 0.0, 1.0), (0.0, 2.0, 0.0, 2.0)) is None
    True
    """
    left, right, bottom, top = box
    ends = []
    if plane.up:
        for x in (left, right):
            y = -(plane.rest + plane.across * x) / plane.up
            if bottom <= y <= top:
                ends.append((x, y))
    if plane.across:
        for y in (bottom, top):
            x = -(plane.rest + plane.up * y) / plane.across
            if left <= x <= right:
                ends.append((x, y))
    ends = sorted(set(ends))
    if len(ends) < 2:
        return None
    return ends[0], ends[-1]
