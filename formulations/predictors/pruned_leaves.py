"""The leaves of trees that one person can reach within a cost, as the formulations of trees state them."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.cell_branching import Cells, Work
from ceopt.formulations.predictors.leaf_boxes import CellRanges, GridLeaves, LeafBoxes, LevelSets, leaf_boxes
from ceopt.formulations.predictors.raw_trees import Cut, LevelCut, NumberCut
from ceopt.formulations.predictors.tree_bounds import CellsLeft, TreeNeed, least_budget, probed
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.solvers.checks import Floats

_PRUNING = "following the trees"
#: What a box admits of a column. Of a number its least and greatest amount (the least is the greater where it admits
#: none) and labels, as codes and the missing cell are no amounts; of levels their ranks, and the missing cell.
Part: TypeAlias = tuple[float, float, frozenset[float]] | frozenset[float]
#: What a leaf admits per column that its path splits.
Box: TypeAlias = Mapping[str, Part]


@final
@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf (or a subtree whose leaves all have one value) that can be reached."""

    node: int
    value: tuple[float, ...]
    box: Box


class _Tested(NamedTuple):
    """The leaves that test a column: their positions, ends, and which of the distinct sets each admits."""

    positions: NDArray[np.intp]
    low: Floats
    high: Floats
    which: NDArray[np.intp]
    sets: tuple[frozenset[float], ...]


@final
class LeafSides:
    """Which leaves of a tree lie wholly left, and wholly right, of a cut, and which hold a point."""

    __slots__ = ("_count", "_of", "_tested")

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._count = len(leaves)
        self._of: dict[Cut, tuple[list[int], list[int]]] = {}
        parts: dict[str, list[tuple[int, float, float, frozenset[float]]]] = {}
        for k, leaf in enumerate(leaves):
            for name, part in leaf.box.items():
                ends = (-math.inf, math.inf, part) if isinstance(part, frozenset) else part
                parts.setdefault(name, []).append((k, *ends))
        self._tested: dict[str, _Tested] = {}
        for name, of_column in parts.items():
            positions, low, high, admitted = zip(*of_column, strict=True)
            places = {distinct: place for place, distinct in enumerate(dict.fromkeys(admitted))}
            which = np.array([places[one] for one in admitted])
            self._tested[name] = _Tested(np.array(positions), np.array(low), np.array(high), which, tuple(places))

    def of(self, cut: Cut) -> tuple[list[int], list[int]]:
        """Return the positions of the leaves left, and right, of a cut, over the whole tree."""
        if cut not in self._of:
            self._of[cut] = self._beside(cut)
        return self._of[cut]

    def _beside(self, cut: Cut) -> tuple[list[int], list[int]]:
        tested = self._tested.get(cut.name)
        if tested is None:
            return [], []
        on_left = cut.ranks if isinstance(cut, LevelCut) else cut.labels
        is_left = np.array([one <= on_left for one in tested.sets])[tested.which]
        is_right = np.array([one.isdisjoint(on_left) for one in tested.sets])[tested.which]
        if isinstance(cut, NumberCut):
            is_left &= tested.high <= cut.key[0]
            is_right &= tested.low >= cut.key[1]
        return tested.positions[is_left].tolist(), tested.positions[is_right & ~is_left].tolist()

    def holding(self, point: Mapping[str, float], reach: Reach) -> list[int]:
        """Return the positions of the leaves that hold a point in reach: one, or none where leaves were left out."""
        holds = np.ones(self._count, dtype=bool)
        for name, tested in self._tested.items():
            value, part = point[name], reach[name]
            if isinstance(part, Levels) or value in (MISSING, *part.labels):
                holds[tested.positions] &= np.array([value in one for one in tested.sets])[tested.which]
            else:
                holds[tested.positions] &= (tested.low <= value) & (value <= tested.high)
        return np.flatnonzero(holds).tolist()


@final
@dataclass(frozen=True, slots=True)
class PrunedTree:
    """The leaves and the splits of one tree that matter to one person; ``cuts`` holds each cut once."""

    position: int
    leaves: tuple[Leaf, ...]
    cuts: tuple[Cut, ...]
    sides: LeafSides


def pruned_trees(
    predictor: Predictor, reach: Reach, *, cutoff: CostCutoff | None = None, need: TreeNeed | None = None
) -> tuple[PrunedTree, ...]:
    """Return the leaves and the cuts of each tree that matter within a reach, and within a cut-off.

    Exact: at every point in reach, within the cut-off's budget, the trees have the scores of the full ones. With a
    ``need`` only points that reach it are kept, as far as :func:`~ceopt.formulations.predictors.tree_bounds.probed`
    tells.
    """
    checkpoint(_PRUNING)
    columns, leaves, _ = _left(predictor, reach, cutoff, need)
    writer = _PrunedWriter(leaf_boxes(predictor), leaves, columns, covers=need is None or cutoff is None)
    return tuple(writer.trees(len(predictor.core.trees)))  # type: ignore[attr-defined]


def reach_within(predictor: Predictor, reach: Reach, cutoff: CostCutoff, need: TreeNeed) -> Reach:
    """Return a reach without values at its ends that no point takes which reaches the need within the cut-off.

    The person's own values stay.
    """
    columns, _, kept = _left(predictor, reach, cutoff, need)
    narrow = dict(reach)
    for column, own in zip(columns, kept, strict=True):
        part = reach[column.name]
        start = cutoff.factual[column.name]
        if isinstance(part, Levels):
            values = {*column.values[own].tolist(), start}
            ranks = tuple(rank for rank in part.ranks if rank in values)
            narrow[column.name] = Levels(ranks, tuple(label for label in part.labels if label in values))
        elif not column.is_label.any():
            lower, upper = column.values[own].min(initial=start), column.lasts[own].max(initial=start)
            narrow[column.name] = part.narrowed(max(float(lower), part.lower), min(float(upper), part.upper))
    return narrow


@final
class PersonCells:
    """The cells that a person may take, what each costs, and the leaves that they reach."""

    def __init__(self, predictor: Predictor, reach: Reach, cutoff: CostCutoff, need: TreeNeed) -> None:
        self.columns, leaves, self.prices = _reached(predictor, reach, cutoff, need)
        self.leaves, self.need = need.among(leaves)
        self.nearest = [column.nearest(cutoff) for column in self.columns]
        self.costs = self.leaves.least_prices(self.prices)
        self.home = tuple(column.cell(cutoff.factual[column.name]) for column in self.columns)
        self.work = Work()
        #: How each cell moves its column, by number, once that is asked for.
        self.ways: list[NDArray[np.intp]] = []
        #: Points that were met, the cheapest first, and up to what cost all that are distinct from cheaper ones are.
        self.met: list[Cells] = []
        self.met_up_to = -math.inf
        #: Those that the model was asked about.
        self.asked: set[Cells] = set()
        #: Whether they are met only as far as the next answer needs it.
        self.is_careful = False
        self.has_to_leave = {name for name, part in reach.items() if not part.holds(cutoff.factual[name])}

    def alone(self, names: Collection[str]) -> PersonCells:
        """Return the same where only some columns leave the person's own cell, and those that have to."""
        narrow = copy.copy(self)
        narrow.prices = []
        for column, price, home in zip(self.columns, self.prices, self.home, strict=True):
            is_left = np.full(len(price), column.name in names or column.name in self.has_to_leave)
            is_left[home] = True
            narrow.prices.append(np.where(is_left, price, np.inf))
        narrow.costs = self.leaves.least_prices(narrow.prices)
        return narrow

    def least(self) -> float:
        """Return a budget below which no point reaches the need."""
        return least_budget(self.leaves, self.costs, self.need)

    def left(self, budget: float) -> CellsLeft:
        """Return the cells that are left within a budget."""
        return probed(self.leaves.taken(self.costs <= budget), self.prices, self.need, budget)

    def point(self, cells: Sequence[int]) -> dict[str, float]:
        """Return the cheapest point of some cells."""
        each = zip(self.columns, self.nearest, cells, strict=True)
        return {column.name: float(nearest[at]) for column, nearest, at in each}

    def cells(self, point: Mapping[str, float]) -> tuple[int, ...]:
        """Return the cell of each column that a point lies in."""
        return tuple(column.cell(point[column.name]) for column in self.columns)


def _reached(
    predictor: Predictor, reach: Reach, cutoff: CostCutoff | None, need: TreeNeed | None
) -> tuple[list[_CellsInReach], GridLeaves, list[Floats]]:
    """Return the cells of the columns, the leaves that they reach within a cut-off, and the cells' prices there.

    The leaves have the values that the need asks of them.
    """
    boxes = leaf_boxes(predictor)
    columns = [_CellsInReach.of(boxes, name, reach[name]) for name in predictor.space.names]
    values = boxes.values if need is None else need.values
    cells = [column.values for column in columns]
    if cutoff is None:
        return columns, GridLeaves.of(boxes, predictor.space.names, cells, values), []
    prices = [column.prices(cutoff) for column in columns]
    budget, additive = cutoff.budget, cutoff.cost.additive
    leaves = GridLeaves.of(boxes, predictor.space.names, cells, values, prices, budget=budget, additive=additive)
    return columns, leaves, prices


def _left(
    predictor: Predictor, reach: Reach, cutoff: CostCutoff | None, need: TreeNeed | None
) -> tuple[list[_CellsInReach], GridLeaves, tuple[NDArray[np.bool_], ...]]:
    """Return the cells of the columns, the leaves that are left, and which of the cells are."""
    columns, leaves, prices = _reached(predictor, reach, cutoff, need)
    kept = tuple(np.ones(len(column.values), dtype=bool) for column in columns)
    if need is not None and cutoff is not None and cutoff.cost.additive:
        leaves, need = need.among(leaves)
        cells = probed(leaves, prices, need, cutoff.budget)
        leaves = leaves.taken(np.searchsorted(leaves.origin, cells.leaves.origin))
        kept = cells.kept
    return columns, leaves, kept


@final
class _CellsInReach:
    """The cells of one column that hold values in reach; labels have one to themselves.

    ``values`` and ``lasts`` are the least and the greatest amount of each; a label is both.
    """

    __slots__ = ("is_label", "lasts", "name", "values")

    def __init__(self, name: str, firsts: Floats, lasts: Floats, labels: Sequence[float]) -> None:
        self.name = name
        both = np.concatenate([firsts, np.array(labels, dtype=np.float64)])
        order = np.argsort(both, kind="stable")
        self.values = both[order]
        self.lasts = np.concatenate([lasts, np.array(labels, dtype=np.float64)])[order]
        self.is_label = np.repeat([False, True], [len(firsts), len(labels)])[order]

    @classmethod
    def of(cls, boxes: LeafBoxes, name: str, part: Interval | Levels) -> _CellsInReach:
        """Return the cells of a column."""
        if isinstance(part, Levels):
            return cls(name, np.zeros(0), np.zeros(0), sorted(part.values))
        if part.only == MISSING:
            return cls(name, np.zeros(0), np.zeros(0), (MISSING,))
        column = boxes.columns.get(name)
        ends = (np.zeros(0), np.zeros(0))
        if isinstance(column, CellRanges):
            ends = column.sides_in(part)
        lasts, firsts = np.append(ends[0], part.upper), np.append(part.lower, ends[1])
        is_there = firsts <= lasts
        return cls(name, firsts[is_there], lasts[is_there], part.labels)

    def cell(self, value: float) -> int:
        """Return the cell that a value lies in, or the one before it."""
        own = np.flatnonzero(self.is_label & (self.values == value))
        if not len(own):
            own = np.flatnonzero(~self.is_label & (self.values <= value))
        return int(own.max(initial=0))

    def nearest(self, cutoff: CostCutoff) -> Floats:
        """Return the nearest value of each cell."""
        start = cutoff.factual[self.name]
        nearest = self.values
        if not cutoff.space[self.name].is_label(start):
            nearest = np.where(self.is_label, self.values, np.clip(start, self.values, self.lasts))
        elif not self.is_label.all():  # filled in, at the same price wherever it lands
            finite = np.where(np.isfinite(self.values), self.values, np.where(np.isfinite(self.lasts), self.lasts, 0.0))
            nearest = np.where(self.is_label, self.values, finite)
        return nearest

    def prices(self, cutoff: CostCutoff) -> Floats:
        """Return what the nearest value of each cell costs."""
        return cutoff.own_prices(self.name, self.nearest(cutoff))


class _PrunedWriter:
    """Writes what is left of the trees.

    Where the leaves do not cover all that may be, as some were left out for the need, a cut is written also where no
    leaf lies on its other side: it keeps the column on this one.
    """

    def __init__(self, boxes: LeafBoxes, leaves: GridLeaves, columns: Sequence[_CellsInReach], *, covers: bool) -> None:
        self.boxes = boxes
        self.leaves = leaves
        self.columns = columns
        self.covers = covers
        #: By position of a column with labels, or of levels: what the parts that leaves admit are called.
        self._parts: dict[tuple[int, int, int, bool], Part] = {}

    def trees(self, count: int) -> list[PrunedTree]:
        """Return all trees."""
        leaves = self.leaves
        ends = np.searchsorted(leaves.tree, np.arange(count + 1))
        return [self._tree(t, np.arange(ends[t], ends[t + 1])) for t in range(count)]

    def _tree(self, position: int, own: NDArray[np.intp]) -> PrunedTree:
        checkpoint(_PRUNING)
        leaves = self.leaves
        origin = leaves.origin[own]
        values = self.boxes.values[origin]
        if self.covers and len(own) and (values == values[0]).all():  # whichever leaf it is
            only = (Leaf(int(self.boxes.node[origin[0]]), tuple(values[0].tolist()), {}),)
            return PrunedTree(position, only, (), LeafSides(only))
        numbers = _distinct(self.boxes.node[origin].tolist(), int(self.boxes.node.max(initial=0)) + 1)
        written: list[dict[str, Part]] = [{} for _ in own]
        candidates: list[Cut] = []
        for j in leaves.split:
            name = self.columns[j].name
            if j in leaves.part:
                parts = [self._level_part(j, place) for place in leaves.part[j][own].tolist()]
                whole: Part = frozenset(self.columns[j].values.tolist())
                candidates += self._level_cuts(position, j, parts)
            else:
                gaps = leaves.gap[j][own].tolist() if j in leaves.gap else [False] * len(own)
                ranges = zip(leaves.low[j][own].tolist(), leaves.high[j][own].tolist(), gaps, strict=True)
                parts = [self._number_part(j, *one) for one in ranges]
                whole = self._number_part(j, 0, int((self.columns[j].values != MISSING).sum()) - 1, True)
                candidates += self._number_cuts(j, own)
            for box, part in zip(written, parts, strict=True):
                if part != whole:
                    box[name] = part
        triples = zip(numbers, map(tuple, values.tolist()), written, strict=True)
        leaves_left = tuple(Leaf(*triple) for triple in triples)
        sides = LeafSides(leaves_left)
        enough = all if self.covers else any
        return PrunedTree(position, leaves_left, tuple(cut for cut in candidates if enough(sides.of(cut))), sides)

    # ---- levels ------------------------------------------------------------------------------------------------------
    def _level_part(self, j: int, place: int) -> Part:
        key = (j, place, 0, False)
        if key not in self._parts:
            self._parts[key] = frozenset(self.columns[j].values[self.leaves.admits[j][place]].tolist())
        return self._parts[key]

    def _level_cuts(self, position: int, j: int, parts: Sequence[Part]) -> list[Cut]:
        """Return the sets by which the tree splits a column and that part its leaves."""
        name = self.columns[j].name
        column = self.boxes.columns[name]
        assert isinstance(column, LevelSets)  # noqa: S101 - a column of levels
        distinct = {part for part in parts if isinstance(part, frozenset)}
        cuts: dict[LevelCut, None] = {}
        for row in column.splits_of(position):
            places = np.where(np.isinf(self.columns[j].values), len(row) - 1, self.columns[j].values).astype(np.intp)
            ranks = frozenset(self.columns[j].values[row[places]].tolist())
            if any(part <= ranks for part in distinct) and any(part.isdisjoint(ranks) for part in distinct):
                cuts[LevelCut(name, ranks)] = None
        if not self.covers:
            whole = frozenset(self.columns[j].values.tolist())
            for part in distinct:
                left_to = whole
                for cut in cuts:
                    left_to = left_to & cut.ranks if part <= cut.ranks else left_to
                    left_to = left_to - cut.ranks if part.isdisjoint(cut.ranks) else left_to
                if part != left_to:
                    cuts[LevelCut(name, part)] = None
        return list(cuts)

    # ---- numbers -----------------------------------------------------------------------------------------------------
    def _number_part(self, j: int, low: int, high: int, gap: bool) -> Part:
        key = (j, low, high, gap)
        if key not in self._parts:
            column = self.columns[j]
            places = np.arange(low, high + 1)
            amounts = places[~column.is_label[places]]
            labels = column.values[places[column.is_label[places]]].tolist()
            if gap and column.values[-1] == MISSING:
                labels.append(MISSING)
            least, most = np.inf, -np.inf
            if len(amounts):
                least, most = column.values[amounts[0]], column.lasts[amounts[-1]]
            self._parts[key] = (float(least), float(most), frozenset(labels))
        return self._parts[key]

    def _number_cuts(self, j: int, own: NDArray[np.intp]) -> list[Cut]:
        """Return the cuts at which leaves begin or end, each with all sets of labels that may go left."""
        leaves = self.leaves
        column = self.columns[j]
        amounts = np.flatnonzero(~column.is_label)
        begins = np.unique(leaves.low[j][own])
        ends = np.unique(leaves.high[j][own] + 1)
        # A cut stands before an amount: the first one from where leaves begin, or after where others end.
        before = np.unique(np.searchsorted(amounts, np.concatenate([begins, ends])))
        cuts: list[Cut] = []
        labels = column.values[column.is_label]
        if not len(labels):
            before = before[(before > 0) & (before < len(amounts))]
        for place in before.tolist():
            last = float(column.lasts[amounts[place - 1]]) if place > 0 else -np.inf
            first = float(column.values[amounts[place]]) if place < len(amounts) else np.inf
            cuts += [NumberCut(column.name, (last, first), on_left) for on_left in _label_sides(labels, last, first)]
        return cuts


def _label_sides(labels: Floats, last: float, first: float) -> list[frozenset[float]]:
    """Return which labels may go left at a cut: codes do as numbers, a missing cell either way."""
    if not len(labels):
        return [frozenset()]
    codes = sorted(label for label in labels.tolist() if label != MISSING)
    between = [code for code in codes if last < code < first]
    sides = [frozenset(code for code in codes if code <= last)]
    sides += [frozenset(code for code in codes if code <= end) for end in between]
    if MISSING in labels:
        sides = [more for side in sides for more in (side, side | {MISSING})]
    return list(dict.fromkeys(sides))


def _distinct(nodes: Sequence[int], free: int) -> list[int]:
    """Return numbers of leaves: those of their nodes, and new ones where another path has met a node."""
    met: set[int] = set()
    found = []
    for node in nodes:
        number = node
        if node in met:
            number = free
            free += 1
        met.add(node)
        found.append(number)
    return found
