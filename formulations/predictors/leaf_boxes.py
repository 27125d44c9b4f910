"""Leaves of trees as arrays: the box of each leaf in cells of the raw columns, once per model, and on a grid of values.

The different thresholds of a column of numbers part it into cells, numbered from 0. A leaf admits the cells from
``low`` to ``high``, and a missing cell where ``gap`` says so; of a column of levels it admits a set, which is a row of
a table. All leaves of all trees stand side by side, so that what is asked of them is a mask and not a walk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.reachable_leaves import LevelSplit, NumberSplit, route
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.encoding import Column
    from ceopt.solvers.checks import Floats

Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

#: What the time limit ends here, once per model.
_READING = "reading the leaves of the trees"
_BOXES: WeakKeyDictionary[Predictor, LeafBoxes] = WeakKeyDictionary()


# ==== The leaves of a model ===========================================================================================
@final
@dataclass(frozen=True, slots=True, eq=False)
class CellRanges:
    """What each leaf admits of a column of numbers.

    Parameters
    ----------
    lefts, rights
        The last value left of each threshold and the first right of it, ascending, (K,); cells are 0 to K.
    low, high
        First and last cell that a leaf admits, (L,); low > high where it admits no number.
    gap
        Whether it admits a missing cell, (L,).
    """

    lefts: Floats
    rights: Floats
    low: Ints
    high: Ints
    gap: Bools

    def sides_in(self, part: Interval) -> tuple[Floats, Floats]:
        """Return the last amount left of each threshold and the first right of it, infinite where there is none."""
        if part.only == MISSING:
            return np.full(len(self.lefts), -np.inf), np.full(len(self.lefts), np.inf)
        return part.sides_of(self.lefts, self.rights)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LevelSets:
    """What each leaf admits of a column of levels.

    Parameters
    ----------
    part, admits
        Of each leaf the row (L,) of ``admits`` (parts, levels and the missing cell).
    splits, sets
        The different splits of each tree, (n, 2): its position, and the row of ``sets`` (splits, levels and the missing
        cell) that goes left.
    """

    part: Ints
    admits: Bools
    splits: Ints
    sets: Bools

    def splits_of(self, tree: int) -> Bools:
        """Return the sets that go left at the splits of one tree."""
        own = self.splits[:, 0] == tree
        return np.asarray(self.sets[self.splits[own, 1]])


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafBoxes:
    """All leaves of an ensemble, tree by tree.

    Parameters
    ----------
    tree, node
        Position of each leaf's tree and its node there, (L,). A node that several paths reach has a box for each.
    values
        Values of each leaf, (L, K).
    columns
        By name of a raw column that some tree splits, what each leaf admits of it.
    """

    tree: Ints
    node: Ints
    values: Floats
    columns: Mapping[str, CellRanges | LevelSets]


def leaf_boxes(predictor: Predictor) -> LeafBoxes:
    """Return the leaves of a predictor of trees; they are kept as long as the predictor lives."""
    if predictor not in _BOXES:
        core = predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - affine models have no leaves
        _BOXES[predictor] = _Growing(_Tests(predictor, core), core).boxes()
    return _BOXES[predictor]


class _Tests:
    """The tests of all nodes in raw units, tree after tree.

    A node asks for column ``column`` of ``names``; -1 at leaves, and where all values go to one child, which is then
    both its children. Of numbers, cells up to ``cut`` go left; of levels, row ``cut`` of ``sets[name]``.
    """

    def __init__(self, predictor: Predictor, core: TreeEnsemble) -> None:
        self.names: list[str] = []
        #: By column of numbers its thresholds; by column of levels the sets that go left.
        self.lefts: dict[str, Floats] = {}
        self.rights: dict[str, Floats] = {}
        self.sets: dict[str, Bools] = {}
        has_chains = any(
            tree.sets and predictor.encoding.columns[index].table is None
            for tree in core.trees
            for index in np.unique(tree.feature[(tree.subset >= 0) & (tree.feature >= 0)]).tolist()
        )
        if has_chains or core.right_gap is not None:
            self._take_routed(predictor)
        else:
            self._take_nodes(predictor, core)

    # ---- from the arrays of the trees --------------------------------------------------------------------------------
    def _take_nodes(self, predictor: Predictor, core: TreeEnsemble) -> None:
        trees = core.trees
        sizes = [len(tree.feature) for tree in trees]
        self.root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        self.tree = np.repeat(np.arange(len(trees)), sizes)
        feature = np.concatenate([tree.feature for tree in trees])
        self.is_leaf = feature < 0
        self.left = np.concatenate([tree.left + first for tree, first in zip(trees, self.root, strict=True)])
        self.right = np.concatenate([tree.right + first for tree, first in zip(trees, self.root, strict=True)])
        self.value = np.concatenate([tree.value for tree in trees])
        self.column = np.full(len(feature), -1)
        self.cut = np.zeros(len(feature), dtype=np.intp)
        self.gap_left = np.zeros(len(feature), dtype=bool)
        threshold = np.concatenate([tree.threshold for tree in trees])
        subset = np.concatenate([tree.subset for tree in trees])
        gaps = np.concatenate([_gaps_left(tree) for tree in trees])
        last = np.full(len(feature), np.nan)
        order = np.argsort(feature, kind="stable")
        order = order[np.searchsorted(feature[order], 0) :]
        for nodes in np.split(order, np.flatnonzero(np.diff(feature[order])) + 1):
            if not len(nodes):
                continue
            checkpoint(_READING)
            column = predictor.encoding.columns[int(feature[nodes[0]])]
            by_set = subset[nodes] >= 0
            if column.feature is None:
                self._decide(nodes[~by_set], column.goes_left(np.zeros(1), threshold[nodes[~by_set]], core.input_dtype))
                members = [trees[self.tree[node]].sets[subset[node]] for node in nodes[by_set]]
                seen = float(column.seen([0.0], core.input_dtype)[0])
                self._decide(nodes[by_set], np.array([seen in each for each in members], dtype=bool))
                continue
            may_be_missing = predictor.space[column.feature].missing is not False
            if column.table is not None:
                self._take_levels(nodes[~by_set], threshold, gaps, column, core, may_be_missing=may_be_missing)
                sets = [trees[self.tree[node]].sets[subset[node]] for node in nodes[by_set]]
                self._take_sets(nodes[by_set], sets, gaps, column, core, may_be_missing=may_be_missing)
                continue
            last[nodes] = self._take_numbers(nodes, threshold, gaps, column, core, may_be_missing=may_be_missing)
        for name in self.names:
            if name not in self.sets:
                nodes = np.flatnonzero(self.column == self.names.index(name))
                with np.errstate(under="ignore"):
                    firsts = np.nextafter(last[nodes], np.inf)
                self._set_cuts(name, nodes, last[nodes], firsts)

    def _number(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def _decide(self, nodes: Ints, goes_left: Bools) -> None:
        """Send everybody who comes to these nodes to one child."""
        self.left[nodes] = self.right[nodes] = np.where(goes_left, self.left[nodes], self.right[nodes])

    def _set_cuts(self, name: str, nodes: Ints, lasts: Floats, firsts: Floats) -> None:
        """Count the thresholds of a column off, given the last value that goes left at each of its nodes."""
        is_cut = np.isfinite(lasts)
        self.lefts[name], index = np.unique(lasts[is_cut], return_index=True)
        self.rights[name] = firsts[is_cut][index]
        cuts = np.searchsorted(self.lefts[name], lasts)
        self.cut[nodes] = np.where(lasts == -np.inf, -1, cuts)

    def _take_numbers(
        self, nodes: Ints, threshold: Floats, gaps: Bools, column: Column, core: TreeEnsemble, *, may_be_missing: bool
    ) -> Floats:
        """Add nodes that compare a number, and return the last one that goes left at each."""
        assert column.feature is not None  # noqa: S101 - a constant column is decided before
        theta, place = np.unique(threshold[nodes], return_inverse=True)
        lasts = column.largest_left(theta, core.input_dtype)[place]
        everywhere = np.isinf(lasts)
        if may_be_missing:
            self.gap_left[nodes] = gaps[nodes]
            if not column.passes_gaps:
                self.gap_left[nodes] = column.goes_left([MISSING], theta, core.input_dtype)[place]
            everywhere &= self.gap_left[nodes] == (lasts > 0)
        self._decide(nodes[everywhere], lasts[everywhere] > 0)
        self.column[nodes[~everywhere]] = self._number(column.feature)
        return lasts

    def _take_levels(
        self, nodes: Ints, threshold: Floats, gaps: Bools, column: Column, core: TreeEnsemble, *, may_be_missing: bool
    ) -> None:
        if not len(nodes):
            return
        assert column.table is not None  # noqa: S101 - the caller looked
        theta, place = np.unique(threshold[nodes], return_inverse=True)
        ranks = np.arange(len(column.table))
        of_levels = column.goes_left(ranks[:, None], theta, core.input_dtype).T[place]
        of_gap = gaps[nodes] & may_be_missing
        if may_be_missing and not column.passes_gaps:
            of_gap = column.goes_left([MISSING], theta, core.input_dtype)[place]
        self._add_sets(nodes, np.column_stack([of_levels, of_gap]), column, may_be_missing=may_be_missing)

    def _take_sets(
        self, nodes: Ints, sets: Sequence[Any], gaps: Bools, column: Column, core: TreeEnsemble, *, may_be_missing: bool
    ) -> None:
        if not len(nodes):
            return
        assert column.table is not None  # noqa: S101 - the caller looked
        seen = column.seen(np.arange(len(column.table)), core.input_dtype)
        at_gap = float(column.seen([MISSING], core.input_dtype)[0]) if may_be_missing else math.nan
        of: dict[Any, Bools] = {}
        rows = []
        for node, members in zip(nodes, sets, strict=True):
            if members not in of:
                of[members] = np.isin(seen, sorted(members))
            goes_left = may_be_missing and (gaps[node] if column.passes_gaps else at_gap in members)
            rows.append(np.append(of[members], goes_left))
        self._add_sets(nodes, np.array(rows), column, may_be_missing=may_be_missing)

    def _add_sets(self, nodes: Ints, goes_left: Bools, column: Column, *, may_be_missing: bool) -> None:
        """Add nodes at which these levels (nodes, levels and the missing cell) go left."""
        name = column.feature
        assert name is not None  # noqa: S101 - a constant column is decided before
        of_all = goes_left if may_be_missing else goes_left[:, :-1]
        everywhere = of_all.all(axis=1) | ~of_all.any(axis=1)
        self._decide(nodes[everywhere], of_all[everywhere, 0])
        nodes = nodes[~everywhere]
        if not len(nodes):
            return
        self.column[nodes] = self._number(name)
        rows, place = np.unique(goes_left[~everywhere], axis=0, return_inverse=True)
        known = self.sets.get(name, np.zeros((0, goes_left.shape[1]), dtype=bool))
        self.cut[nodes] = place.reshape(-1) + len(known)
        self.sets[name] = np.concatenate([known, rows])

    # ---- from splits on numbers by sets, which are several splits one after the other --------------------------------
    def _take_routed(self, predictor: Predictor) -> None:
        routed = route(predictor)
        sizes = [len(tree.splits) for tree in routed]
        self.root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        self.tree = np.repeat(np.arange(len(sizes)), sizes)
        starts = self.root.tolist()
        self.left = np.concatenate([np.array(t.left, dtype=np.intp) + s for t, s in zip(routed, starts, strict=True)])
        self.right = np.concatenate([np.array(t.right, dtype=np.intp) + s for t, s in zip(routed, starts, strict=True)])
        self.is_leaf = np.concatenate([np.array(tree.is_leaf, dtype=bool) for tree in routed])
        self.value = np.concatenate([np.array(tree.value, dtype=np.float64) for tree in routed])
        splits = [split for tree in routed for split in tree.splits]
        self.column = np.full(len(splits), -1)
        self.cut = np.zeros(len(splits), dtype=np.intp)
        self.gap_left = np.zeros(len(splits), dtype=bool)
        last = np.full(len(splits), np.nan)
        first = np.full(len(splits), np.nan)
        sets: dict[str, dict[frozenset[float], int]] = {}
        for node, split in enumerate(splits):
            if isinstance(split, NumberSplit):
                self.column[node] = self._number(split.name)
                last[node], first[node], self.gap_left[node] = split.left, split.right, split.missing_left
            elif isinstance(split, LevelSplit):
                self.column[node] = self._number(split.name)
                known = sets.setdefault(split.name, {})
                self.cut[node] = known.setdefault(split.ranks, len(known))
        for name, known in sets.items():
            ranks = [*map(float, range(len(predictor.space[name].levels))), MISSING]
            self.sets[name] = np.array([[rank in members for rank in ranks] for members in known])
        for name in self.names:
            if name not in self.sets:
                nodes = np.flatnonzero(self.column == self.names.index(name))
                self._set_cuts(name, nodes, last[nodes], first[nodes])


def _gaps_left(tree: Any) -> Bools:
    """Return at which nodes NaN goes left, (nodes,); nowhere in a tree that takes none."""
    if tree.missing_left is None:
        return np.zeros(len(tree.feature), dtype=bool)
    return np.asarray(tree.missing_left)


class _Growing:
    """Boxes on their way down: all nodes of one depth, of all trees, at once."""

    def __init__(self, tests: _Tests, core: TreeEnsemble) -> None:
        self.tests = tests
        self.core = core
        self.numbers = [(j, name) for j, name in enumerate(tests.names) if name not in tests.sets]
        self.levels = [(j, name) for j, name in enumerate(tests.names) if name in tests.sets]
        #: Of each column of levels, the sets that were met, and where each stands.
        self.parts: dict[str, list[Bools]] = {}
        self.place: dict[str, dict[bytes, int]] = {}
        for _, name in self.levels:
            everything = np.ones(tests.sets[name].shape[1], dtype=bool)
            self.parts[name] = [everything]
            self.place[name] = {everything.tobytes(): 0}

    def boxes(self) -> LeafBoxes:
        """Return the leaves with their boxes."""
        tests = self.tests
        count = len(tests.root)
        state: dict[Any, NDArray[Any]] = {"node": tests.root, "tree": np.arange(count)}
        for _, name in self.numbers:
            state["low", name] = np.zeros(count, dtype=np.int32)
            state["high", name] = np.full(count, len(tests.lefts[name]), dtype=np.int32)
            state["gap", name] = np.ones(count, dtype=bool)
        for _, name in self.levels:
            state["part", name] = np.zeros(count, dtype=np.int32)
        done = []
        while len(state["node"]):
            checkpoint(_READING)
            is_leaf = tests.is_leaf[state["node"]]
            done.append({key: values[is_leaf] for key, values in state.items()})
            state = self._below({key: values[~is_leaf] for key, values in state.items()})
        whole = {key: np.concatenate([part[key] for part in done]) for key in state}
        order = np.argsort(whole["node"], kind="stable")
        whole = {key: values[order] for key, values in whole.items()}
        columns: dict[str, CellRanges | LevelSets] = {}
        for _, name in self.numbers:
            ranges = whole["low", name], whole["high", name], whole["gap", name]
            columns[name] = CellRanges(tests.lefts[name], tests.rights[name], *ranges)
        for j, name in self.levels:
            nodes = tests.column == j
            splits = np.unique(np.stack([tests.tree[nodes], tests.cut[nodes]], axis=1), axis=0)
            columns[name] = LevelSets(whole["part", name], np.array(self.parts[name]), splits, tests.sets[name])
        node = whole["node"] - tests.root[whole["tree"]]
        return LeafBoxes(whole["tree"], node, tests.value[whole["node"]], columns)

    def _below(self, above: dict[Any, NDArray[Any]]) -> dict[Any, NDArray[Any]]:
        """Return the children: first the left one of each node, or its only one, then the right ones."""
        tests = self.tests
        node = above["node"]
        column = tests.column[node]
        asks = np.flatnonzero(column >= 0)
        chosen = np.concatenate([np.arange(len(node)), asks])
        state = {key: values[chosen] for key, values in above.items()}
        state["node"] = np.concatenate([tests.left[node], tests.right[node[asks]]])
        alive = np.ones(len(chosen), dtype=bool)
        for j, name in self.numbers:
            left = np.flatnonzero(column == j)
            right = len(node) + np.flatnonzero(column[asks] == j)
            cut = tests.cut[node[left]]
            goes_left = tests.gap_left[node[left]]
            low, high, gap = state["low", name], state["high", name], state["gap", name]
            high[left] = np.minimum(high[left], cut)
            low[right] = np.maximum(low[right], cut + 1)
            gap[left] &= goes_left
            gap[right] &= ~goes_left
            alive[left] = (low[left] <= high[left]) | gap[left]
            alive[right] = (low[right] <= high[right]) | gap[right]
        for j, name in self.levels:
            left = np.flatnonzero(column == j)
            right = len(node) + np.flatnonzero(column[asks] == j)
            part = state["part", name]
            part[left], part[right] = self._divided(name, part[left], tests.cut[node[left]])
            alive[left] = part[left] >= 0
            alive[right] = part[right] >= 0
        if alive.all():
            return state
        return {key: values[alive] for key, values in state.items()}

    def _divided(self, name: str, parts: Ints, sets: Ints) -> tuple[Ints, Ints]:
        """Return what is left and right of the sets ``sets`` of the parts ``parts``; -1 where nothing is."""
        of_split = self.tests.sets[name]
        pairs, place = np.unique(parts.astype(np.intp) * len(of_split) + sets, return_inverse=True)
        both = np.empty((2, len(pairs)), dtype=np.int32)
        for k, pair in enumerate(pairs.tolist()):
            part, chosen = divmod(pair, len(of_split))
            both[0, k] = self._part(name, self.parts[name][part] & of_split[chosen])
            both[1, k] = self._part(name, self.parts[name][part] & ~of_split[chosen])
        return both[0][place], both[1][place]

    def _part(self, name: str, admits: Bools) -> int:
        if not admits.any():
            return -1
        key = admits.tobytes()
        if key not in self.place[name]:
            self.place[name][key] = len(self.parts[name])
            self.parts[name].append(admits)
        return self.place[name][key]


# ==== The leaves on a grid of values ==================================================================================
@final
@dataclass(frozen=True, slots=True, eq=False)
class GridLeaves:
    """The leaves that the points of a grid reach, each with what it admits of a column's values.

    Parameters
    ----------
    columns
        Values of each column, ascending; a missing cell is infinite, and the last.
    tree, node, values
        As in :class:`LeafBoxes`, of the leaves in reach.
    low, high
        By position of a column of numbers that is split: first and last value that each leaf admits, (L,).
    gap
        By position of such a column that may be missing: whether each leaf admits that, (L,).
    part, admits
        By position of a column of levels that is split: rows (L,) of ``admits`` (parts, values).
    origin
        Position of each leaf in the :class:`LeafBoxes`, (L,).
    """

    columns: tuple[Floats, ...]
    tree: Ints
    values: Floats
    low: dict[int, Ints]
    high: dict[int, Ints]
    gap: dict[int, Bools]
    part: dict[int, Ints]
    admits: dict[int, Bools]
    origin: Ints

    @classmethod
    def of(cls, boxes: LeafBoxes, names: Sequence[str], columns: Sequence[Floats], values: Floats) -> GridLeaves:
        """Return the leaves of a model that a grid reaches, with these values (L, m) for its leaves."""
        index = np.arange(len(boxes.tree))
        found: dict[str, dict[int, Any]] = {"low": {}, "high": {}, "gap": {}, "part": {}, "admits": {}}
        for j in sorted(range(len(names)), key=lambda k: len(columns[k])):
            column = boxes.columns.get(names[j])
            if column is None:
                continue
            alive = np.zeros(len(index), dtype=bool)
            own: dict[str, Any] = {}
            if isinstance(column, LevelSets):
                places = np.where(np.isinf(columns[j]), column.admits.shape[1] - 1, columns[j]).astype(np.intp)
                found["admits"][j] = column.admits[:, places]
                own["part"] = column.part[index]
                alive = found["admits"][j].any(axis=1)[own["part"]]
            else:
                has_gap = bool(columns[j][-1] == MISSING)
                cells = np.searchsorted(column.lefts, columns[j][: len(columns[j]) - has_gap])
                every = np.arange(-1, len(column.lefts) + 2)
                own["low"] = np.searchsorted(cells, every)[column.low[index] + 1]
                own["high"] = np.searchsorted(cells, every, side="right")[column.high[index] + 1] - 1
                alive = own["low"] <= own["high"]
                if has_gap:
                    own["gap"] = column.gap[index]
                    alive = alive | own["gap"]
            for key, array in own.items():
                found[key][j] = array
            if not alive.all():
                index = index[alive]
                for key in ("low", "high", "gap", "part"):
                    found[key] = {k: array[alive] for k, array in found[key].items()}
        return cls(tuple(columns), boxes.tree[index], values[index], **found, origin=index)

    def taken(self, kept: Bools | Ints) -> GridLeaves:
        """Return some of the leaves."""
        return GridLeaves(
            columns=self.columns,
            tree=self.tree[kept],
            values=self.values[kept],
            low={j: array[kept] for j, array in self.low.items()},
            high={j: array[kept] for j, array in self.high.items()},
            gap={j: array[kept] for j, array in self.gap.items()},
            part={j: array[kept] for j, array in self.part.items()},
            admits=self.admits,
            origin=self.origin[kept],
        )

    @property
    def split(self) -> list[int]:
        """Positions of the columns that are split."""
        return sorted([*self.low, *self.part])

    def __len__(self) -> int:
        return len(self.tree)

    def within(self, kept: Sequence[Bools]) -> GridLeaves:
        """Return the leaves that the values kept of each column reach; what each admits begins and ends at such."""
        low, high = dict(self.low), dict(self.high)
        alive = np.ones(len(self), dtype=bool)
        for j in self.split:
            if kept[j].all():
                continue
            if j in self.part:
                alive &= np.asarray((self.admits[j] & kept[j]).any(axis=1))[self.part[j]]
                continue
            numbers = np.flatnonzero(kept[j][: self._numbers(j)])
            every = np.arange(-1, len(kept[j]) + 1)
            following = np.append(numbers, len(kept[j]))[np.searchsorted(numbers, every)]
            before = np.append(-1, numbers)[np.searchsorted(numbers, every, side="right")]
            low[j], high[j] = following[self.low[j] + 1], before[self.high[j] + 1]
            own = low[j] <= high[j]
            if j in self.gap and kept[j][-1]:
                own = own | self.gap[j]
            alive &= own
        return replace(self, low=low, high=high).taken(alive)

    def _numbers(self, j: int) -> int:
        """Return how many values of a column of numbers are numbers: a missing cell is its last."""
        return len(self.columns[j]) - (j in self.gap)

    # ---- prices ------------------------------------------------------------------------------------------------------
    def cheapest(self, j: int, prices: Floats) -> Ints:
        """Return which of the values of a split column that each leaf admits has the least price, (L,)."""
        if j in self.part:
            best = np.where(self.admits[j], prices, np.inf).argmin(axis=1)
            return np.asarray(best[self.part[j]])
        last = len(self.columns[j]) - 1
        if j not in self.gap:
            return _range_argmin(prices, self.low[j], self.high[j])
        is_number = self.low[j] <= self.high[j]
        best = np.full(len(self), last)
        best[is_number] = _range_argmin(prices[:-1], self.low[j][is_number], self.high[j][is_number])
        return np.where(self.gap[j] & (prices[last] < prices[best]), last, best)

    def column_prices(self, prices: Sequence[Floats]) -> dict[int, Floats]:
        """Return by split column the least price of the values that each leaf admits, (L,)."""
        return {j: prices[j][self.cheapest(j, prices[j])] for j in self.split}

    def least_prices(self, prices: Sequence[Floats], *, additive: bool = True) -> Floats:
        """Return what the cheapest point of each leaf's box costs at least, (L,)."""
        total = np.zeros(len(self))
        for own in self.column_prices(prices).values():
            total = total + own if additive else np.maximum(total, own)
        return total

    def best_by_value(self, j: int, tree: Ints, worth: Floats, room: Floats, prices: Floats) -> Floats:
        """Return, by value of a split column, the sum over trees of the best leaf that admits it and can pay for it.

        Parameters
        ----------
        tree, worth, room
            Number of each leaf's tree, from 0 without a gap; its worth; and what its column j may cost, (L,).
        prices
            Of the column's values, (n,).
        """
        count = len(self.columns[j])
        best = np.full((int(tree.max(initial=-1)) + 1, count), -np.inf)
        if j in self.part:
            for place in np.flatnonzero(np.isfinite(prices)).tolist():
                own = self.admits[j][self.part[j], place] & (room >= prices[place])
                np.maximum.at(best[:, place], tree[own], worth[own])
            return np.asarray(best.sum(axis=0))
        numbers = self._numbers(j)
        if numbers:
            low, high = self._affordable(j, prices[:numbers], room)
            own = low <= high
            _raise_ranges(best[:, :numbers], tree[own], low[own], high[own], worth[own])
        if j in self.gap:
            own = self.gap[j] & (room >= prices[-1])
            np.maximum.at(best[:, -1], tree[own], worth[own])
        return np.asarray(best.sum(axis=0))

    def _affordable(self, j: int, prices: Floats, room: Floats) -> tuple[Ints, Ints]:
        """Return the range of numbers that each leaf admits and can pay for; all it admits, if prices turn more often.

        Away from the cheapest number prices rise on either side, unless codes lie between.
        """
        home = int(np.argmin(prices))
        rising, falling = prices[home:], prices[: home + 1][::-1]
        if not ((rising[1:] >= rising[:-1]).all() and (falling[1:] >= falling[:-1]).all()):
            return self.low[j], self.high[j]
        most = home + np.searchsorted(rising, room, side="right") - 1
        least = home - np.searchsorted(falling, room, side="right") + 1
        return np.maximum(self.low[j], least), np.minimum(self.high[j], most)

    # ---- scores ------------------------------------------------------------------------------------------------------
    def inside(self, j: int, place: int) -> Bools:
        """Return which leaves admit a value of a split column, (L,)."""
        if j in self.part:
            return np.asarray(self.admits[j][:, place][self.part[j]])
        if j in self.gap and place == len(self.columns[j]) - 1:
            return self.gap[j]
        return (self.low[j] <= place) & (place <= self.high[j])

    def sums_by_column(self, point: Ints) -> list[Floats]:
        """Return, per column, the sums of the leaves reached from a point by each of the column's values, (n, m).

        A leaf counts for a column's value if it admits that, and the point in all other columns.
        """
        split = self.split
        outside = {j: ~self.inside(j, int(point[j])) for j in split}
        misses = np.zeros(len(self), dtype=np.int16)
        for each in outside.values():
            misses += each
        near = np.flatnonzero(misses <= 1)
        misses = misses[near]
        home = near[misses == 0]
        total = self.values[home].sum(axis=0)
        found = []
        for j, values in enumerate(self.columns):
            if j not in outside:
                found.append(np.tile(total, (len(values), 1)))
                continue
            leaves = near[(misses == 0) | outside[j][near]]
            found.append(self._sums(j, leaves))
        return found

    def _sums(self, j: int, leaves: Ints) -> Floats:
        """Return the sums of some leaves by the value of a column, (n, m)."""
        count = len(self.columns[j])
        result = np.empty((count, self.values.shape[1]))
        for k, weights in enumerate(self.values[leaves].T):
            if j in self.part:
                by_part = np.bincount(self.part[j][leaves], weights, len(self.admits[j]))
                result[:, k] = by_part @ self.admits[j]
                continue
            low, high, of_numbers = self.low[j][leaves], self.high[j][leaves], weights
            if j in self.gap:
                of_numbers = np.where(low <= high, weights, 0.0)
            begins = np.bincount(low, of_numbers, count + 1)
            ends = np.bincount(high + 1, of_numbers, count + 1)
            result[:, k] = np.cumsum(begins - ends)[:count]
            if j in self.gap:
                result[count - 1, k] = weights[self.gap[j][leaves]].sum()
        return result


def _range_argmin(values: Floats, low: Ints, high: Ints) -> Ints:
    """Return where the least of ``values[low] ... values[high]`` stands, for many ranges at once."""
    levels = [np.arange(len(values))]
    while 2 ** len(levels) <= len(values):
        half = 2 ** (len(levels) - 1)
        first, second = levels[-1][:-half], levels[-1][half:]
        levels.append(np.where(values[second] < values[first], second, first))
    lengths = high - low + 1
    found = np.empty(len(low), dtype=np.intp)
    depth = np.frexp(lengths)[1] - 1
    for k in np.unique(depth).tolist():
        own = depth == k
        first, second = levels[k][low[own]], levels[k][high[own] - 2**k + 1]
        found[own] = np.where(values[second] < values[first], second, first)
    return found


def _raise_ranges(best: Floats, tree: Ints, low: Ints, high: Ints, worth: Floats) -> None:
    """Raise ``best[tree, low ... high]`` to what each range is worth, in place.

    A range is two that overlap, of a length that is a power of two; from the longest to the shortest each length hands
    on what it has to the halves.
    """
    depth = np.frexp(high - low + 1)[1] - 1
    above: Floats | None = None
    for k in range(int(depth.max(initial=0)), -1, -1):
        width = best.shape[1] - 2**k + 1
        at = np.full((len(best), width), -np.inf)
        if above is not None:
            half = 2**k
            at[:, : above.shape[1]] = above
            np.maximum(at[:, half : half + above.shape[1]], above, out=at[:, half : half + above.shape[1]])
        own = depth == k
        np.maximum.at(at, (tree[own], low[own]), worth[own])
        np.maximum.at(at, (tree[own], high[own] - 2**k + 1), worth[own])
        above = at
    if above is not None:
        np.maximum(best, above, out=best)


def cell_ends(boxes: LeafBoxes, reach: Reach) -> dict[str, tuple[Floats, Floats]]:
    """Return by column of numbers the last amount left of each threshold that parts the reach, and the first right."""
    found = {}
    for name, column in boxes.columns.items():
        part = reach[name]
        if isinstance(column, CellRanges) and isinstance(part, Interval):
            lasts, firsts = column.sides_in(part)
            parts_amounts = np.isfinite(lasts) & np.isfinite(firsts)
            found[name] = (lasts[parts_amounts], firsts[parts_amounts])
    return found
