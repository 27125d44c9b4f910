r"""Near points of trees for many people at once: a search in arrays, without a program.

The thresholds of a column part it into cells, over which a model of trees is the same. A person has one value in each
cell, the cheapest, so a point is a state of :mod:`~ceopt.search.near_people`: the number of a cell for every column.
The cells of all columns stand side by side, M of them, and a leaf admits *runs* of cells in each column that it tests.

A *scan* of a state gives the slack after every change of one column to any of its cells, (M,): a leaf that the state
misses in no column, or in one alone, counts for the runs of that column.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final
from weakref import WeakKeyDictionary

import numpy as np

from ceopt.formulations.costs.base import prices_of
from ceopt.formulations.predictors.leaf_boxes import CellRanges, LeafBoxes, LevelSets, leaf_boxes
from ceopt.formulations.predictors.tree_bounds import TreeNeed, least_budget_of
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.formulations.tolerances import SUM_ROUNDING
from ceopt.search.near_people import (
    AbstractNearPeople,
    Bools,
    Ints,
    Met,
    Person,
    States,
    favourable_rows,
    takes_sums,
    tastes_of,
)
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.prepare import Prepared
    from ceopt.solvers.checks import Floats

_SEARCHING: Final = "looking for near points"
#: Runs times states that are scanned at once.
_AT_ONCE: Final = 2_000_000
#: Climbs with a random taste beside the first, and rows of the data that are looked at.
_CLIMBS, _SAMPLED = 8, 2000


# ==== The leaves of a model as runs of cells ==========================================================================
@final
@dataclass(frozen=True, slots=True, eq=False)
class CellRuns:
    """What the leaves of a model admit, as runs of cells.

    Parameters
    ----------
    first
        Where the cells of each column begin, and M, (d + 1,).
    start, end
        First and last cell of each run, (R,), test by test.
    run
        Where the runs of each test begin, (E,); a test is what a leaf admits of one column.
    column, leaf
        Column of each test and place of its leaf among those that test something, (E,), leaf by leaf.
    test
        Where the tests of each such leaf begin, (T,).
    origin
        Which leaves those are, (T,).
    untested
        Which leaves test nothing, so that every state is in them.
    """

    first: Ints
    start: Ints
    end: Ints
    run: Ints
    column: Ints
    leaf: Ints
    test: Ints
    origin: Ints
    untested: Ints

    @classmethod
    def of(cls, boxes: LeafBoxes, space: FeatureSpace) -> CellRuns:
        """Return the runs of a model's leaves."""
        sizes = [_count_cells(boxes, space[name]) for name in space.names]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        parts = [np.zeros((4, 0), dtype=np.intp)]
        alive = np.ones(len(boxes.tree), dtype=bool)  # some are only for missing cells, where none may be
        for j, name in enumerate(space.names):
            column = boxes.columns.get(name)
            if isinstance(column, LevelSets):
                leaf, start, end = _runs_of_sets(column, sizes[j])
                alive &= np.asarray(column.admits[:, : sizes[j]].any(axis=1))[column.part]
            elif isinstance(column, CellRanges):
                leaf, start, end = _runs_of_ranges(column, sizes[j])
                alive &= (column.low <= column.high) | (sizes[j] > len(column.lefts) + 1)
            else:
                continue
            parts.append(np.stack([leaf, np.full(len(leaf), j), first[j] + start, first[j] + end]))
        every = np.concatenate(parts, axis=1)
        every = every[:, alive[every[0]]]
        alive[every[0]] = False
        return _runs_of(first, every[:, np.lexsort((every[2], every[1], every[0]))], np.flatnonzero(alive))

    def taken(self, kept: Bools) -> CellRuns:
        """Return the runs of some of the leaves, (T,)."""
        count = np.diff(self.run, append=len(self.start))
        leaf = np.repeat(self.leaf, count)
        own = kept[leaf]
        every = np.stack([self.origin[leaf], np.repeat(self.column, count), self.start, self.end])
        return _runs_of(self.first, every[:, own], self.untested)

    def least_prices(self, prices: Floats) -> Floats:
        """Return what the cheapest point of each leaf's box costs each of n people, (n, T), by their prices (n, M)."""
        longest = int((self.end - self.start).max(initial=0)) + 1
        least = [prices]  # of 1, 2, 4, ... cells from each on
        while 2 ** len(least) <= longest:
            half = 2 ** (len(least) - 1)
            least.append(
                np.minimum(least[-1], np.pad(least[-1][:, half:], ((0, 0), (0, half)), constant_values=np.inf))
            )
        depth = np.frexp(self.end - self.start + 1)[1] - 1
        every = np.stack(least)
        of_run = np.minimum(every[depth, :, self.start], every[depth, :, self.end - 2**depth + 1])
        of_test = np.minimum.reduceat(of_run, self.run, axis=0)
        return np.add.reduceat(of_test, self.test, axis=0).T


def _runs_of(first: Ints, every: Ints, untested: Ints) -> CellRuns:
    """Return what runs amount to: leaf, column, first and last cell of each (4, R), by leaf and column."""
    leaf, column, start, end = every
    run = np.flatnonzero((np.diff(leaf, prepend=-1) != 0) | (np.diff(column, prepend=-1) != 0))
    origin, test, of_test = np.unique(leaf[run], return_index=True, return_inverse=True)
    return CellRuns(first, start, end, run, column[run], of_test.reshape(-1), test, origin, untested)


def _count_cells(boxes: LeafBoxes, feature: Feature) -> int:
    column = boxes.columns.get(feature.name)
    has_gap = int(feature.missing is not False)
    if isinstance(column, LevelSets):
        return int(column.admits.shape[1]) - 1 + has_gap
    if isinstance(column, CellRanges):
        return len(column.lefts) + 1 + has_gap
    return 1


def _runs_of_sets(column: LevelSets, size: int) -> tuple[Ints, Ints, Ints]:
    """Return leaf, first and last cell of each run of the levels that the leaves admit."""
    admits = column.admits[:, :size]
    steps = np.diff(admits.astype(np.int8), axis=1, prepend=0, append=0)
    steps[admits.all(axis=1)] = 0
    part, starts = np.nonzero(steps > 0)
    ends = np.nonzero(steps < 0)[1] - 1
    count = np.bincount(part, minlength=len(admits))
    own = count[column.part]
    leaf = np.repeat(np.arange(len(own)), own)
    place = np.arange(len(leaf)) + np.repeat((np.cumsum(count) - count)[column.part] - (np.cumsum(own) - own), own)
    return leaf, starts[place], ends[place]


def _runs_of_ranges(column: CellRanges, size: int) -> tuple[Ints, Ints, Ints]:
    """Return leaf, first and last cell of each run of the numbers that the leaves admit, and of the missing cell."""
    last = len(column.lefts)
    gap = column.gap if size > last + 1 else np.ones(len(column.low), dtype=bool)
    is_test = ~(gap & (column.low == 0) & (column.high == last))
    own = np.flatnonzero(is_test & (column.low <= column.high))
    at_gap = np.flatnonzero(is_test & gap) if size > last + 1 else own[:0]
    beside = np.full(len(at_gap), last + 1)
    return (
        np.concatenate([own, at_gap]),
        np.concatenate([column.low[own], beside]).astype(np.intp),
        np.concatenate([column.high[own], beside]).astype(np.intp),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scanner:
    """Scans states: the slack after every change of one column.

    Parameters
    ----------
    runs
        The leaves that are looked at.
    values, rest, need
        Values of those leaves (T, m), the sum of all others (m,), and what each sum has to reach (m,).
    """

    runs: CellRuns
    values: Floats
    rest: Floats
    need: Floats

    def slacks(self, states: Ints) -> Floats:
        """Return the slack of states (B, d) after every change, (B, M)."""
        width = max(1, _AT_ONCE // max(len(self.runs.start), 1))
        parts = [self._scan(states[k : k + width]) for k in range(0, len(states), width)]
        return np.concatenate(parts) if parts else np.zeros((0, int(self.runs.first[-1])))

    def _scan(self, states: Ints) -> Floats:
        checkpoint(_SEARCHING)
        runs = self.runs
        size = int(runs.first[-1])
        b = len(states)
        places = (states + runs.first[:-1]).T.astype(np.int32)
        count = np.diff(runs.run, append=len(runs.start))
        at = places[np.repeat(runs.column, count)]
        inside = (at >= runs.start[:, None]) & (at <= runs.end[:, None])
        if len(runs.run) < len(runs.start):
            inside = np.logical_or.reduceat(inside, runs.run, axis=0)
        misses = np.add.reduceat(~inside, runs.test, axis=0, dtype=np.uint8)
        alone = misses[runs.leaf] == ~inside  # the tests by whose column alone the leaf is reached
        test, who = np.nonzero(alone)
        leaf = runs.leaf[test]
        home_leaf, home = np.nonzero(misses == 0)
        is_home = inside[test, who]
        runs_of = count[test]
        place = np.repeat(runs.run[test] - (np.cumsum(runs_of) - runs_of), runs_of) + np.arange(int(runs_of.sum()))
        owner = np.repeat(who, runs_of) * (size + 1)
        at_columns = who[is_home] * (len(runs.first) - 1) + runs.column[test[is_home]]
        column_of = np.repeat(np.arange(len(runs.first) - 1), np.diff(runs.first))
        result = np.full((b, size), np.inf)
        for k, need in enumerate(self.need.tolist()):
            weights = np.repeat(self.values[leaf, k], runs_of)
            steps = np.bincount(owner + runs.start[place], weights, b * (size + 1))
            steps -= np.bincount(owner + runs.end[place] + 1, weights, b * (size + 1))
            sums = np.cumsum(steps.reshape(b, size + 1)[:, :size], axis=1)
            base = np.bincount(home, self.values[home_leaf, k], b) + (self.rest[k] - need)
            taken = np.bincount(at_columns, self.values[leaf[is_home], k], b * (len(runs.first) - 1))
            sums += (base[:, None] - taken.reshape(b, -1))[:, column_of]
            result = np.minimum(result, sums)
        return result


# ==== The people ======================================================================================================
class NearSearch:
    """Near points of a model of trees.

    Parameters
    ----------
    prepared
        Model and settings.
    need
        What the target needs of the leaves.
    """

    def __init__(self, prepared: Prepared, need: TreeNeed) -> None:
        self.prepared = prepared
        self.need = need
        self.boxes = leaf_boxes(prepared.predictor)
        self.runs = _runs(prepared.predictor, self.boxes)
        self.prices = prepared.settings.cost.prices(prepared.space)
        self.column_of = np.repeat(np.arange(len(prepared.space.names)), np.diff(self.runs.first))
        self.tastes = tastes_of(prepared, _CLIMBS)
        self._known: dict[Any, tuple[Floats, Floats, int]] = {}

    @classmethod
    def of(cls, prepared: Prepared) -> NearSearch | None:
        """Return the search, if the model is one of trees and the cost a sum over the columns that the rules leave."""
        settings = prepared.settings
        if not takes_sums(settings, prepared.space) or prepared.predictor.unseen:
            return None
        need = TreeNeed.of(prepared.predictor, settings.target, settings.margin or 0.0)
        if need is None or not np.isfinite(need.need).all():
            return None
        return cls(prepared, need)

    @functools.cached_property
    def rows(self) -> Ints:
        """Return the cells of the rows that the model favours, each combination once, (r, d)."""
        rows = favourable_rows(self.prepared, _SAMPLED)
        return np.unique(np.stack([self.cells(j, rows[:, j]) for j in range(rows.shape[1])], axis=1), axis=0)

    def cells(self, j: int, values: Floats) -> Ints:
        """Return the cells of a column's values."""
        column = self.boxes.columns.get(self.prepared.space.names[j])
        last = int(self.runs.first[j + 1] - self.runs.first[j]) - 1
        if isinstance(column, CellRanges):
            return np.where(values == MISSING, last, np.searchsorted(column.lefts, values))
        if isinstance(column, LevelSets):
            return np.where(values == MISSING, last, values).astype(np.intp)
        return np.zeros(len(values), dtype=np.intp)

    def cells_of(self, j: int, start: float, part: Interval | Levels) -> tuple[Floats, Floats, int]:
        """Return of each cell of a column the cheapest value in reach and its price, and the person's own cell."""
        key = j, start, part
        if key not in self._known:
            self._known[key] = self._cells_of(j, start, part)
        return self._known[key]

    def _cells_of(self, j: int, start: float, part: Interval | Levels) -> tuple[Floats, Floats, int]:
        feature = self.prepared.space[self.prepared.space.names[j]]
        column = self.boxes.columns.get(feature.name)
        if isinstance(part, Levels):
            values = np.array(part.values)
        else:
            inner = [*part.labels]
            if isinstance(column, CellRanges) and not part.is_point:
                lasts, firsts = column.sides_in(part)
                lasts, firsts = lasts[np.isfinite(lasts)], firsts[np.isfinite(firsts)]
                if feature.is_label(start):
                    inner.append(part.clip(0.0))
                else:
                    lasts, firsts = lasts[lasts < start], firsts[firsts > start]
                inner += [*lasts.tolist(), *firsts.tolist()]
            values = np.array(inner, dtype=np.float64)
        values = np.append(values, start)
        priced = prices_of(self.prices[feature.name], feature, start, values)
        cells = self.cells(j, values)
        home = int(cells[-1])
        size = int(self.runs.first[j + 1] - self.runs.first[j])
        value, price = np.full(size, start), np.full(size, np.inf)
        order = np.argsort(-priced, kind="stable")  # the cheapest is written last
        value[cells[order]], price[cells[order]] = values[order], priced[order]
        value[home], price[home] = start, 0.0
        return value, price, home

    def run(self, people: Sequence[Person]) -> list[Met]:
        """Return what is met for people, each given in coordinates and with their reach."""
        width = max(1, _AT_ONCE // max(len(self.runs.start), 1))
        found: list[Met] = []
        for k in range(0, len(people), width):
            found += _NearPeople(self, people[k : k + width]).met()
        return found


_RUNS: WeakKeyDictionary[Predictor, CellRuns] = WeakKeyDictionary()


def _runs(predictor: Predictor, boxes: LeafBoxes) -> CellRuns:
    """Return the runs of a predictor's leaves; they are kept as long as it lives."""
    if predictor not in _RUNS:
        _RUNS[predictor] = CellRuns.of(boxes, predictor.space)
    return _RUNS[predictor]


class _NearPeople(AbstractNearPeople):
    """People who are searched for together; a state has the number of a cell for each column."""

    def __init__(self, search: NearSearch, people: Sequence[Person]) -> None:
        names = search.prepared.space.names
        of_people = [
            [search.cells_of(j, factual[name], reach[name]) for j, name in enumerate(names)]
            for factual, reach in people
        ]
        super().__init__(
            search.prepared,
            people,
            tastes=search.tastes,
            column_of=search.column_of,
            prices=np.stack([np.concatenate([price for _, price, _ in own]) for own in of_people]),
            home=np.array([[home for _, _, home in own] for own in of_people]),
        )
        self.search = search
        self.values = np.stack([np.concatenate([value for value, _, _ in own]) for own in of_people])
        self.first = search.runs.first[:-1]
        need = search.need
        self.unsure = need.rounding + SUM_ROUNDING * float(np.abs(need.values).sum(axis=0).max(initial=0.0))
        self.costs = np.full((len(people), len(search.boxes.tree)), np.inf)
        self.costs[:, search.runs.untested] = 0.0
        if len(search.runs.origin):
            self.costs[:, search.runs.origin] = search.runs.least_prices(self.prices)
        self.bounds = np.array([least_budget_of(search.boxes.tree, own, need.values, need) for own in self.costs])
        self.look_within(np.full(len(people), np.inf))

    def look_within(self, limits: Floats) -> None:
        """Look from now on at the leaves alone that some person reaches within the limit on their objective, (n,)."""
        search = self.search
        is_near = np.asarray((self.costs <= limits[:, None]).any(axis=0))
        kept = is_near[search.runs.origin]
        runs = search.runs if kept.all() else search.runs.taken(kept)
        need = search.need
        self.scanner = Scanner(runs, need.values[runs.origin], need.values[runs.untested].sum(axis=0), need.need)

    def narrow(self) -> None:
        """Leave out the leaves that cost everybody more than the best point met."""
        self.look_within(self.best)

    def coordinates(self, who: Ints, states: States) -> Floats:
        """Return the coordinates (B, d) of states."""
        return np.asarray(self.values[who[:, None], self.first + states])

    def each(self, who: Ints, states: States) -> Floats:
        """Return the price of each column of states, (B, d)."""
        return np.asarray(self.prices[who[:, None], self.first + states])

    def changed(self, who: Ints, states: States, places: Ints) -> States:
        """Return states (B, d) with one column each at a cell, (B,)."""
        del who
        states = states.copy()
        column = self.column_of[places]
        states[np.arange(len(states)), column] = places - self.first[column]
        return states

    def scan(self, who: Ints, states: States, wanted: Bools) -> tuple[Floats, Floats]:
        """Return the slack of states after every change of one column (B, M), and without any (B,)."""
        del who, wanted
        found = self.scanner.slacks(states)
        return found, found[np.arange(len(states)), self.first[0] + states[:, 0]]

    def rows_near(self, i: int, count: int) -> States:
        """Return the cheapest rows of the data, with what is out of reach at the person's own."""
        rows = self.search.rows
        each = self.prices[i][self.first + rows]
        is_out = np.isinf(each)
        total = np.where(is_out, 0.0, each).sum(axis=1)
        near = np.argsort(total, kind="stable")[:count]
        return np.where(is_out[near], self.home[i], rows[near])

    def partly_back(self, who: Ints, states: States, columns: Ints) -> States:
        """Return states with one column each nearer to the person by a cell."""
        at = np.arange(len(who))
        nearer = states.copy()
        nearer[at, columns] -= np.sign(states[at, columns] - self.home[who, columns])
        return nearer
