"""A model's decision over two columns as coloured cells, with a person and the answers as points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ceopt.pictures.canvas import SMALL, canvas
from ceopt.pictures.regions import draw_regions, draw_values
from ceopt.pictures.texts import clean, shortened, width_pt
from ceopt.pictures.ticks import number_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.pictures.canvas import Canvas
    from ceopt.pictures.captions import Captions
    from ceopt.pictures.decision_grid import DecisionGrid

__all__ = ["draw_surface"]

Floats: TypeAlias = NDArray[np.float64]

_HEIGHT: Final = 4.6
#: Where a text may stand about its point: to the right and up, in units of its distance, the best first.
_SIDES: Final = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
#: Points from the middle of a mark to a text, and to the mark's own rim.
_AWAY, _MARK = 9.0, 5.0
_LONGEST_LEVEL: Final = 110.0
_TURNED: Final = 30.0


def draw_surface(
    who: str, grid: DecisionGrid, names: tuple[str, str], labels: Sequence[str], wanted: Any, *, title: str,
    say: Captions, ax: Any, dark: bool,
) -> Axes:  # fmt: skip
    """Draw the cells about all pairs of values, and the points with their labels; ``wanted`` has the first colour."""
    paper = canvas(who, ax, dark=dark, height=_HEIGHT, inside=False)
    axes = paper.ax
    first, second = (_positions(values, levels) for values, levels in zip(grid.values, grid.levels, strict=True))
    edges = (_edges(first), _edges(second))
    handles: list[Any] = []
    texts: list[str] = []
    if grid.has_labels:
        handles, texts = draw_regions(paper, grid, edges, wanted, say)
    else:
        draw_values(paper, grid, edges, say)
    axes.set_xlim(edges[0][0], edges[0][-1])
    axes.set_ylim(edges[1][0], edges[1][-1])
    _name_axis(paper, "x", names[0], first, grid.levels[0], say=say)
    _name_axis(paper, "y", names[1], second, grid.levels[1], say=say)
    paper.title("A title", above_pt=paper.above_pt(texts))  # for the layout; its width is known afterwards
    paper = paper.settled()
    paper.title(title, above_pt=paper.above_pt(texts))
    if handles:
        paper.legend(handles, texts, in_head=False)
    places = np.column_stack([
        np.interp(grid.points[:, 0], grid.values[0], first), np.interp(grid.points[:, 1], grid.values[1], second),
    ])  # fmt: skip
    _draw_points(paper, places, labels, grid.fits)
    return axes


def _positions(values: Floats, levels: tuple[str, ...] | None) -> Floats:
    """Return where values stand: numbers where they are, levels side by side."""
    if levels is None:
        return values
    return np.arange(len(values), dtype=np.float64)


def _edges(places: Floats) -> Floats:
    """Return the ends of the cells about ascending places: halfway to the neighbours, at the rims as far as inwards."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    middles = (places[1:] + places[:-1]) / 2.0
    return np.array([2.0 * places[0] - middles[0], *middles, 2.0 * places[-1] - middles[-1]])


# ---- axes and points -------------------------------------------------------------------------------------------------
def _name_axis(
    paper: Canvas, side: str, name: str, places: Floats, levels: tuple[str, ...] | None, *, say: Captions
) -> None:
    axes = paper.ax
    axis: Any = axes.xaxis
    length = paper.width_pt
    if side == "y":
        axis = axes.yaxis
        length = paper.height_pt
    axis.set_label_text(
        shortened(clean(name), SMALL, length), fontsize=SMALL, color=paper.colours.text, parse_math=False
    )
    if levels is None:
        number_ticks(axis, whole=bool((places == np.rint(places)).all()), say=say)
        return
    texts = [shortened(clean(level), SMALL, _LONGEST_LEVEL) for level in levels]
    axis.set_ticks(places, labels=texts, parse_math=False, fontsize=SMALL)
    widest = max(width_pt(text, SMALL) for text in texts)
    if side == "x" and widest + SMALL > paper.width_pt / len(texts):
        for label in axis.get_ticklabels():
            label.set(rotation=_TURNED, ha="right", rotation_mode="anchor")


def _draw_points(paper: Canvas, places: Floats, labels: Sequence[str], fits: Sequence[bool]) -> None:
    """Draw the person as a ring and the answers as diamonds, hollow where other columns are not those that are held."""
    colours = paper.colours
    for place, (point, fits_here) in enumerate(zip(places.tolist(), fits, strict=True)):
        paper.ax.plot(
            [point[0]], [point[1]], ls="", marker="o" if place == 0 else "D", ms=7.5 if place == 0 else 6.5,
            mfc=colours.text if fits_here else colours.ground, mec=colours.text, mew=1.3, clip_on=False,
            zorder=4.0 + fits_here - place / (len(places) + 1.0),
        )  # fmt: skip
    _write_labels(paper, places, labels)


def _write_labels(paper: Canvas, places: Floats, labels: Sequence[str]) -> None:
    """Write labels beside their points, those of one place together, so that they cover no point and no other label.

    Where no side is free there is none.
    """
    from matplotlib.patheffects import withStroke

    axes = paper.ax
    points_per_pixel = 72.0 / axes.figure.dpi
    spots = axes.transData.transform(places) * points_per_pixel
    together: dict[tuple[int, int], list[int]] = {}
    for place, spot in enumerate(spots.tolist()):
        together.setdefault((round(spot[0]), round(spot[1])), []).append(place)
    frame = axes.get_window_extent()
    rim = np.array([frame.x0, frame.y0, frame.x1, frame.y1]) * points_per_pixel
    taken = [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in together]
    halo = [withStroke(linewidth=2.5, foreground=paper.colours.ground)]
    for number, members in enumerate(together.values()):
        x, y = spots[members[0]].tolist()
        text = ", ".join(labels[place] for place in members)
        others = taken[:number] + taken[number + 1 :]
        found = _free_side((x, y), width_pt(text, SMALL), rim, others)
        if found is None:
            continue
        taken.append(found)
        middle = ((found[0] + found[2]) / 2.0 - x, (found[1] + found[3]) / 2.0 - y)
        axes.annotate(
            text, places[members[0]], middle, textcoords="offset points", ha="center", va="center", fontsize=SMALL,
            color=paper.colours.text, zorder=6.0, path_effects=halo, in_layout=False, parse_math=False,
        )  # fmt: skip


def _free_side(
    spot: tuple[float, float], width: float, rim: Floats, others: Sequence[tuple[float, ...]]
) -> tuple[float, float, float, float] | None:
    """Return the box of a text beside a point: inside the rim, and on no other box; None where there is no room."""
    for right, up in _SIDES:
        x = spot[0] + right * (_AWAY + width / 2.0)
        y = spot[1] + up * (_AWAY + SMALL / 2.0)
        box = (x - width / 2.0, y - SMALL / 2.0, x + width / 2.0, y + SMALL / 2.0)
        is_inside = box[0] >= rim[0] and box[1] >= rim[1] and box[2] <= rim[2] and box[3] <= rim[3]
        if is_inside and not any(_overlap(box, other) for other in others):
            return box
    return None


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    return not apart
