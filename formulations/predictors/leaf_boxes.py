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
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.raw_trees import Bools, Ints, RawTrees
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.solvers.checks import Floats

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

    def ends(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest number that each leaf admits; infinity and its negative for none."""
        low = np.append(-np.inf, self.rights)[np.minimum(self.low, len(self.rights))]
        high = np.append(self.lefts, np.inf)[self.high]
        is_empty = self.low > self.high
        return np.where(is_empty, np.inf, low), np.where(is_empty, -np.inf, high)

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
        _BOXES[predictor] = _Growing(RawTrees(predictor)).boxes()
    return _BOXES[predictor]


class _Growing:
    """Boxes on their way down: all nodes of one depth, of all trees, at once."""

    def __init__(self, tests: RawTrees) -> None:
        self.tests = tests
        self.numbers = [(j, name) for j, name in enumerate(tests.names) if name not in tests.sets]
        self.levels = [(j, name) for j, name in enumerate(tests.names) if name in tests.sets]
        #: Of each column of levels, the sets that go left as bits, (sets, words).
        self.bits = {name: _as_bits(tests.sets[name]) for _, name in self.levels}

    def boxes(self) -> LeafBoxes:
        """Return the leaves with their boxes."""
        tests = self.tests
        count = len(tests.root)
        state: dict[Any, NDArray[Any]] = {"node": tests.root.astype(np.int32), "tree": np.arange(count, dtype=np.int32)}
        for _, name in self.numbers:
            last = len(tests.lefts[name])
            kind = np.int16 if last + 2 < np.iinfo(np.int16).max else np.int32
            state["low", name] = np.zeros(count, dtype=kind)
            state["high", name] = np.full(count, last, dtype=kind)
            state["gap", name] = np.ones(count, dtype=bool)
        for _, name in self.levels:
            everything = _as_bits(np.ones((1, tests.sets[name].shape[1]), dtype=bool))
            state["part", name] = np.repeat(everything, count, axis=0)
        done = []
        while len(state["node"]):
            checkpoint(_READING)
            is_leaf = tests.is_leaf[state["node"]]
            done.append({key: values[is_leaf] for key, values in state.items()})
            state = self._below(state, np.flatnonzero(~is_leaf))
        order = np.argsort(np.concatenate([part["node"] for part in done]), kind="stable")

        def whole(*key: str) -> NDArray[Any]:
            return np.concatenate([part.pop(key if key[1:] else key[0]) for part in done])[order]

        columns: dict[str, CellRanges | LevelSets] = {}
        for _, name in self.numbers:
            ranges = whole("low", name), whole("high", name), whole("gap", name)
            columns[name] = CellRanges(tests.lefts[name], tests.rights[name], *ranges)
        for j, name in self.levels:
            nodes = tests.column == j
            pairs = np.unique(tests.tree[nodes].astype(np.int64) * len(tests.sets[name]) + tests.cut[nodes])
            splits = np.stack(np.divmod(pairs, len(tests.sets[name])), axis=1)
            part, admits = _different(whole("part", name), tests.sets[name].shape[1])
            columns[name] = LevelSets(part, admits, splits, tests.sets[name])
        node, tree = whole("node"), whole("tree")
        return LeafBoxes(tree.astype(np.intp), node - tests.root[tree], tests.value[node], columns)

    def _below(self, above: dict[Any, NDArray[Any]], inner: Ints) -> dict[Any, NDArray[Any]]:
        """Return the children: first the left one of each inner node, or its only one, then the right ones."""
        tests = self.tests
        node = above["node"][inner]
        column = tests.column[node]
        asks = np.flatnonzero(column >= 0)
        chosen = np.concatenate([inner, inner[asks]])
        state = {key: values[chosen] for key, values in above.items()}
        state["node"] = np.concatenate([tests.left[node], tests.right[node[asks]]])
        alive = np.ones(len(chosen), dtype=bool)
        for j, name in [*self.numbers, *self.levels]:
            left = np.flatnonzero(column == j)
            right = len(node) + np.flatnonzero(column[asks] == j)
            cut = tests.cut[node[left]]
            if name in self.bits:
                part = state["part", name]
                part[left] &= self.bits[name][cut]
                part[right] &= ~self.bits[name][cut]
                for own in (left, right):
                    alive[own] = part[own].any(axis=1)
                continue
            goes_left = tests.gap_left[node[left]]
            low, high, gap = state["low", name], state["high", name], state["gap", name]
            high[left] = np.minimum(high[left], cut)
            low[right] = np.maximum(low[right], cut + 1)
            gap[left] &= goes_left
            gap[right] &= ~goes_left
            for own in (left, right):
                alive[own] = (low[own] <= high[own]) | gap[own]
        if alive.all():
            return state
        return {key: values[alive] for key, values in state.items()}


def _as_bits(sets: Bools) -> NDArray[np.uint64]:
    """Return sets (n, k) as bits, (n, words)."""
    padded = np.zeros((len(sets), -(-sets.shape[1] // 64) * 64), dtype=bool)
    padded[:, : sets.shape[1]] = sets
    return np.packbits(padded, axis=1).view(np.uint64)


def _different(bits: NDArray[np.uint64], width: int) -> tuple[Ints, Bools]:
    """Return which of the different sets each is, (n,), and the sets, (sets, width)."""
    number = np.zeros(len(bits), dtype=np.int64)
    for word in bits.T:  # hashed, which takes a tenth of the time of sorting
        codes, found = pd.factorize(word)
        number, different = pd.factorize(number * len(found) + codes)
    first = np.empty(len(different), dtype=np.intp)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return number.astype(np.int32), np.unpackbits(bits[first].view(np.uint8), axis=1)[:, :width].astype(bool)


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
    def of(
        cls,
        boxes: LeafBoxes,
        names: Sequence[str],
        columns: Sequence[Floats],
        values: Floats,
        prices: Sequence[Floats] = (),
        *,
        budget: float = math.inf,
        additive: bool = True,
    ) -> GridLeaves:
        """Return the leaves of a model that a grid reaches within a budget, with these values (L, m) for its leaves.

        Prices are those of the columns' values; what a leaf costs at least is their sum, or where they are not
        ``additive`` the greatest.
        """
        costs = np.zeros(len(boxes.tree))
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
            if budget < math.inf:
                least = _least_prices(prices[j], own, found["admits"].get(j))
                costs = costs + least if additive else np.maximum(costs, least)
                alive &= costs <= budget
            if not alive.all():
                index, costs = index[alive], costs[alive]
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

    def admitted(self, j: int, places: Ints) -> Bools:
        """Return which leaves admit which of some values of a split column, (L, n)."""
        if j in self.part:
            return np.asarray(self.admits[j][:, places][self.part[j]])
        admits = (self.low[j][:, None] <= places) & (places <= self.high[j][:, None])
        if j in self.gap:
            is_gap = places == len(self.columns[j]) - 1
            admits[:, is_gap] = self.gap[j][:, None]
        return np.asarray(admits)

    def _numbers(self, j: int) -> int:
        """Return how many values of a column of numbers are numbers: a missing cell is its last."""
        return len(self.columns[j]) - (j in self.gap)

    # ---- prices ------------------------------------------------------------------------------------------------------
    def column_prices(self, prices: Sequence[Floats]) -> dict[int, Floats]:
        """Return by split column the least price of the values that each leaf admits, (L,)."""
        parts: dict[str, Mapping[int, NDArray[Any]]]
        parts = {"low": self.low, "high": self.high, "gap": self.gap, "part": self.part}
        found = {}
        for j in self.split:
            own = {key: arrays[j] for key, arrays in parts.items() if j in arrays}
            found[j] = _least_prices(prices[j], own, self.admits.get(j))
        return found

    def least_prices(self, prices: Sequence[Floats]) -> Floats:
        """Return what the cheapest point of each leaf's box costs at least, (L,)."""
        total = np.zeros(len(self))
        for own in self.column_prices(prices).values():
            total += own
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


def _least_prices(prices: Floats, own: Mapping[str, NDArray[Any]], admits: Bools | None) -> Floats:
    """Return the least price of the values that each leaf admits, (L,), by what :class:`GridLeaves` has of a column."""
    if admits is not None:
        return np.asarray(np.where(admits, prices, np.inf).min(axis=1)[own["part"]])
    return least_in_ranges(prices, own["low"], own["high"], own.get("gap", np.zeros(0, dtype=bool)))


def least_in_ranges(prices: Floats, low: Ints, high: Ints, gap: Bools) -> Floats:
    """Return the least of ``prices[low] ... prices[high]``, and of the last price where ``gap`` says so, (L, ...).

    Prices are (K, ...), of many people at once. Infinite where there is none; an empty ``gap`` says so nowhere.
    """
    levels = [prices]  # the least of 1, 2, 4, ... prices from each on
    while 2 ** len(levels) <= len(prices):
        half = 2 ** (len(levels) - 1)
        beyond = np.full_like(prices[:half], np.inf)
        levels.append(np.minimum(levels[-1], np.concatenate([levels[-1][half:], beyond])))
    width = np.maximum(high - low + 1, 1)
    depth = np.frexp(width)[1] - 1
    first = np.minimum(low, len(prices) - 1)
    table = np.stack(levels)
    found = np.minimum(table[depth, first], table[depth, np.maximum(high + 1 - (1 << depth), first)])
    found[low > high] = np.inf
    if len(gap):
        found[gap] = np.minimum(found[gap], prices[-1])
    return np.asarray(found)


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


def values_of_cells(forests: Sequence[LeafBoxes], feature: Feature, start: float, part: Interval | Levels) -> Floats:
    """Return of each cell of a column in reach the value nearest to the person's ``start``, ascending, that among them.

    A model of trees is the same all over a cell, so that a second value of one cell would only cost more. Next to a cut
    lie the last value left of it and the first right of it: one of them is the nearest of its cell, namely the one on
    the far side from the person; both are where the person lies between them, and of a column that holds a label, where
    no amount is nearer than another.
    """
    if isinstance(part, Levels):
        return np.unique([start, *part.values])
    is_label = feature.is_label(start)
    values = [np.array([start, *part.labels])]
    for boxes in forests:
        column = boxes.columns.get(feature.name)
        if isinstance(column, CellRanges):
            lasts, firsts = column.sides_in(part)
            parts_amounts = np.isfinite(lasts) & np.isfinite(firsts)
            lasts, firsts = lasts[parts_amounts], firsts[parts_amounts]
            values += [lasts[(lasts < start) | is_label], firsts[(firsts > start) | is_label]]
    if is_label and not part.is_point:  # the amounts are a cell of their own, even where no cut parts them
        values.append(np.array([part.clip(0.0)]))
    return np.unique(np.concatenate(values))
