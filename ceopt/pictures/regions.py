"""What a model says of the cells of a grid: a colour a label, or a scale of colours for values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ceopt.pictures.canvas import SMALL
from ceopt.pictures.palette import HATCHES
from ceopt.pictures.texts import clean, shortened
from ceopt.pictures.ticks import number_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ceopt.pictures.canvas import Canvas
    from ceopt.pictures.captions import Captions
    from ceopt.pictures.decision_grid import DecisionGrid

__all__ = ["draw_regions", "draw_values"]

Floats: TypeAlias = NDArray[np.float64]

#: Points that a label may take in the legend.
_LABEL: Final = 150.0


def draw_regions(
    paper: Canvas, grid: DecisionGrid, edges: tuple[Floats, Floats], wanted: Any, say: Captions
) -> tuple[list[Any], list[str]]:
    """Draw a colour a label, the first that of what is wanted, and return what the legend says.

    Labels beyond the colours share the last one. Each colour is one path; the first to be drawn lies under all others,
    so that no seam is seen between them.
    """
    from matplotlib.patches import Patch, PathPatch

    colours = paper.colours.regions
    number = _numbered(grid, wanted, len(colours))
    cells = np.array([[number[label] for label in row] for row in grid.said.tolist()])
    handles: list[Any] = []
    for place, colour in enumerate(colours):
        marked = cells == place
        if not marked.any():
            continue
        if not handles:
            marked = np.ones_like(marked)
        look: Any = {"facecolor": colour, "edgecolor": paper.colours.ground, "hatch": HATCHES[place], "lw": 0.0}
        region = PathPatch(_region(marked, edges), zorder=0.5, **look)
        region.set_in_layout(False)
        paper.ax.add_patch(region)
        handles.append(Patch(**look))
    texts = []
    for place in sorted(set(number.values())):
        labels = [label for label, own in number.items() if own == place]
        texts.append(_text(labels, say, is_target=grid.is_target))
    return handles, texts


def _numbered(grid: DecisionGrid, wanted: Any, count: int) -> dict[Any, int]:
    """Return the place of each label among so many colours: 0 is kept for what is wanted."""
    if grid.is_target:
        wanted = True
    found = sorted(dict.fromkeys(grid.said.ravel().tolist()), key=str)
    number = {}
    for label in found:
        if label == wanted:
            number[label] = 0
    for place, label in enumerate([label for label in found if label != wanted], start=1):
        number[label] = min(place, count - 1)
    return number


def _text(labels: Sequence[Any], say: Captions, *, is_target: bool) -> str:
    if is_target:
        return say.put("meets_target" if labels[0] else "misses_target")
    if len(labels) > 1:
        return say.put("model_says_else")
    return say.put("model_says", label=shortened(clean(labels[0]), SMALL, _LABEL))


def _region(cells: NDArray[np.bool_], edges: tuple[Floats, Floats]) -> Any:
    """Return some cells as one path: runs in a row are one rectangle, and so are equal runs of rows that follow."""
    from matplotlib.path import Path

    rectangles: list[list[int]] = []  # first and last column, first and last row, the last ones excluded
    growing: dict[tuple[int, int], list[int]] = {}
    for row, marked in enumerate(cells):
        steps = np.diff(np.concatenate([[0], marked.astype(np.int64), [0]]))
        runs = zip(np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True)
        grown = {}
        for first, last in runs:
            rectangle = growing.get((first, last))
            if rectangle is None:
                rectangle = [first, last, row, row]
                rectangles.append(rectangle)
            rectangle[3] = row + 1
            grown[first, last] = rectangle
        growing = grown
    paths = []
    for first, last, bottom, top in rectangles:
        x0, x1, y0, y1 = edges[0][first], edges[0][last], edges[1][bottom], edges[1][top]
        paths.append(Path([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], closed=True))
    return Path.make_compound_path(*paths)


def draw_values(paper: Canvas, grid: DecisionGrid, edges: tuple[Floats, Floats], say: Captions) -> None:
    """Draw values from the colour of what is not wanted over that of the ground to the other, with their scale."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = paper.colours
    scale = LinearSegmentedColormap.from_list("ceopt", [colours.regions[1], colours.ground, colours.regions[0]])
    cells = paper.ax.pcolorfast(*edges, grid.said.astype(np.float64), cmap=scale, zorder=0.5)
    bar = paper.ax.figure.colorbar(cells, ax=paper.ax, pad=0.02)
    bar.set_label(say.put("model_says_value"), fontsize=SMALL, color=colours.muted)
    bar.outline.set_edgecolor(colours.grid)
    bar.ax.tick_params(colors=colours.muted, labelsize=SMALL)
    number_ticks(bar.ax.yaxis, say=say)
