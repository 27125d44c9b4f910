"""Pictures over two columns: the sample of a linear surrogate, and a model's decision as coloured cells with points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.readers import is_function, open_model
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.space.space import FeatureSpace, raw_frame
from ceopt.formulations.targets import parse_target
from ceopt.oracle.model import FunctionOracle, FunctionTarget, ModelOracle, model_behind
from ceopt.pictures.canvas import HATCHES, SMALL, canvas, clean, number_ticks, shortened, width_pt
from ceopt.solvers.checks import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.pictures.canvas import Canvas, Captions

# ==== A sample about a boundary point over two columns, and where a linear surrogate draws its line ===================


_SAMPLE_HEIGHT, _SAMPLE_WIDTH = 4.8, 6.4
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
    paper = canvas(who, ax, dark=dark, height=_SAMPLE_HEIGHT, width=_SAMPLE_WIDTH, inside=False)
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
    number_ticks(axes.xaxis, whole=whole[0])
    number_ticks(axes.yaxis, whole=whole[1])
    axes.set_xlabel("x", fontsize=SMALL)
    axes.set_ylabel("y", fontsize=SMALL)
    paper = paper.settled(labels)
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


# ==== What a model decides over two columns, on a grid of legal values, all other columns held ========================

#: Values a side beside those of the points; and levels, beyond which only the first and those of the points are there.
_VALUES: Final = 64
_LEVELS: Final = 20
#: How far the grid goes beyond the points: a share of their distance, and scales of the column.
_BEYOND, _SCALES = 0.5, 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class DecisionGrid:
    """A grid and what is said of it.

    Parameters
    ----------
    values
        Coordinates along either column, ascending.
    levels
        Texts of these where they are levels; None of numbers.
    outputs
        What is said of each pair, of shape (values of the second column, values of the first).
    has_labels
        Whether that is a label (or whether the target is met), and not a number of which there may be any.
    is_target
        Whether it is whether the target is met.
    points
        Places of the given points, (k, 2).
    fits
        Of each point, whether its other columns are those that are held.
    """

    values: tuple[Floats, Floats]
    levels: tuple[tuple[str, ...] | None, tuple[str, ...] | None]
    outputs: NDArray[Any]
    has_labels: bool
    is_target: bool
    points: Floats
    fits: tuple[bool, ...]


def decisions(
    space: FeatureSpace, model: Any, target: Any, pair: tuple[str, str], *, held: Floats, points: Sequence[Floats]
) -> DecisionGrid:
    """Ask a model about all pairs of legal values near some points.

    Parameters
    ----------
    space
        The columns.
    model, target
        As for :func:`ceopt.verify`; the target may be None.
    pair
        The two columns.
    held
        Coordinates (d,) of the row whose other columns are taken.
    points
        Coordinates (d,) of rows; the first is the one from which steps are counted.
    """
    places = list(map(space.names.index, pair))
    marks = np.array(points)
    first, second = (_values(space[name], marks[:, place]) for name, place in zip(pair, places, strict=True))
    rows = np.tile(held, (len(first) * len(second), 1))
    rows[:, places[0]] = np.tile(first, len(second))
    rows[:, places[1]] = np.repeat(second, len(first))
    outputs, has_labels = _asked(space, model, target, rows)
    fits = (np.delete(marks, places, axis=1) == np.delete(held, places)).all(axis=1)
    return DecisionGrid(
        values=(first, second),
        levels=(_levels(space[pair[0]], first), _levels(space[pair[1]], second)),
        outputs=outputs.reshape(len(second), len(first)),
        has_labels=has_labels,
        is_target=target is not None,
        points=marks[:, places],
        fits=tuple(fits.tolist()),
    )


def _asked(space: FeatureSpace, model: Any, target: Any, rows: Floats) -> tuple[NDArray[Any], bool]:
    """Return what is said of rows of coordinates, and whether it is labels."""
    opened = model_behind(open_model(model), target)
    frame = raw_frame(space, rows)
    if is_function(opened):
        function = FunctionOracle(opened, space)
        if target is not None:
            return function.meets(frame, FunctionTarget(target)), True
        outputs = function.predict(frame)
        return outputs, outputs.dtype.kind != "f"
    oracle = ModelOracle(opened, space)
    if target is not None:
        return oracle.meets(frame, parse_target(target, oracle.labels)), True
    outputs = oracle.predict(frame)
    return outputs, oracle.labels is not None or outputs.dtype.kind != "f"


def _values(feature: Feature, marks: Floats) -> Floats:
    """Return legal coordinates of a column near some points, those of the points among them."""
    if feature.is_finite:
        return np.unique([*range(min(len(feature.levels), _LEVELS)), *marks])
    low, high = float(marks.min()), float(marks.max())
    beyond = max(_BEYOND * (high - low), _SCALES * feature.scale("mad"))
    least, greatest = feature.coordinate_limits
    interval = Interval(
        max(min(feature.lower, low), least), min(max(feature.upper, high), greatest), feature.spacing, float(marks[0])
    )
    wanted = np.linspace(max(low - beyond, interval.lower), min(high + beyond, interval.upper), _VALUES)
    values = np.array([*map(interval.floor, wanted.tolist()), *marks.tolist()])
    return np.unique(values[np.isfinite(values)])


def _levels(feature: Feature, values: Floats) -> tuple[str, ...] | None:
    if not feature.is_finite:
        return None
    return tuple(str(feature.levels[int(value)]) for value in values)


# ==== What a model says of the cells of a grid: a colour a label, or a scale of colours for values ====================

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
    cells = np.array([[number[label] for label in row] for row in grid.outputs.tolist()])
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
    labels = sorted(dict.fromkeys(grid.outputs.ravel().tolist()), key=str)
    number = {}
    for label in labels:
        if label == wanted:
            number[label] = 0
    for place, label in enumerate([label for label in labels if label != wanted], start=1):
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
    cells = paper.ax.pcolorfast(*edges, grid.outputs.astype(np.float64), cmap=scale, zorder=0.5)
    bar = paper.ax.figure.colorbar(cells, ax=paper.ax, pad=0.02)
    bar.set_label(say.put("model_says_value"), fontsize=SMALL, color=colours.muted)
    bar.outline.set_edgecolor(colours.grid)
    bar.ax.tick_params(colors=colours.muted, labelsize=SMALL)
    number_ticks(bar.ax.yaxis, say=say)


# ==== A model's decision over two columns as coloured cells, with a person and the answers as points ==================

_SURFACE_HEIGHT: Final = 4.6
#: Where a text may stand about its point: to the right and up, in units of its distance, the best first.
_SIDES: Final = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
#: Points from the middle of a mark to a text, and to the mark's own rim.
_AWAY, _MARK = 9.0, 5.0
_LONGEST_LEVEL: Final = 110.0
#: Points between cells of levels that have no order.
_GAP: Final = 5.0
_TURNED: Final = 30.0


def draw_surface(
    who: str, grid: DecisionGrid, names: tuple[str, str], labels: Sequence[str], wanted: Any, *, title: str,
    say: Captions, ax: Any, dark: bool, are_apart: tuple[bool, bool] = (False, False),
) -> Axes:  # fmt: skip
    """Draw the cells about all pairs of values, and the points with their labels; ``wanted`` has the first colour.

    ``are_apart`` says on which axis the levels have no order: there a gap parts their cells.
    """
    paper = canvas(who, ax, dark=dark, height=_SURFACE_HEIGHT, inside=False)
    axes = paper.ax
    first, second = (_positions(values, levels) for values, levels in zip(grid.values, grid.levels, strict=True))
    edges = (_edges(first), _edges(second))
    handles: list[Any] = []
    texts: list[str] = []
    if grid.has_labels:
        handles, texts = draw_regions(paper, grid, edges, wanted, say)
    else:
        draw_values(paper, grid, edges, say)
    for is_apart, between, draw in zip(are_apart, edges, (axes.axvline, axes.axhline), strict=True):
        for place in between[1:-1] if is_apart else ():
            draw(place, color=paper.colours.ground, lw=_GAP, zorder=1.5)
    axes.set_xlim(edges[0][0], edges[0][-1])
    axes.set_ylim(edges[1][0], edges[1][-1])
    _name_axis(paper, "x", names[0], first, grid.levels[0], say=say)
    _name_axis(paper, "y", names[1], second, grid.levels[1], say=say)
    paper = paper.settled(texts)
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
        look: dict[str, Any] = {"marker": "D", "ms": 6.5} if place else {"marker": "o", "ms": 7.5}
        paper.ax.plot(
            [point[0]], [point[1]], **look, ls="", mfc=colours.text if fits_here else colours.ground,
            mec=colours.text, mew=1.3, clip_on=False, zorder=4.0 + fits_here - place / (len(places) + 1.0),
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
        box = _free_side((x, y), width_pt(text, SMALL), rim, others)
        if box is None:
            continue
        taken.append(box)
        middle = ((box[0] + box[2]) / 2.0 - x, (box[1] + box[3]) / 2.0 - y)
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
