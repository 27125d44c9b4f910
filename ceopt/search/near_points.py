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

from ceopt.formulations.constraints.rule import overrides
from ceopt.formulations.costs.base import prices_of
from ceopt.formulations.predictors.leaf_boxes import (
    CellRanges,
    LeafBoxes,
    LevelSets,
    leaf_boxes,
    least_in_ranges,
    values_of_cells,
)
from ceopt.formulations.predictors.tree_bounds import TreeNeed, least_budget_of
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.formulations.tolerances import SUM_ROUNDING, TINY
from ceopt.search.near_people import (
    SEARCHING,
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
from ceopt.tolerances import START_MARGIN_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.prepare import Prepared
    from ceopt.solvers.checks import Floats

#: Runs times states that are scanned at once.
_AT_ONCE: Final = 2_000_000
#: People who are searched for together, and leaves times such people: more have too few near leaves in common.
_TOGETHER: Final = 5
_SHARED: Final = 16_000
#: Climbs with a random taste beside the first, and rows of the data that are looked at.
_CLIMBS, _SAMPLED = 16, 2000
#: Climbs by tastes where there are many leaves, and climbs times runs of leaves up to which there are more.
_FEW_CLIMBS, _RUNS_CLIMBED = 4, 10_000_000
#: Points of a person that are swapped.
_IMPROVED: Final = 4
#: Changes that are made at last for one that is taken back.
_REMADE: Final = 3
#: Leaves up to which the runs of all are kept.
_FEW_LEAVES: Final = 20_000
#: Leaves within the budgets of people from which on rows of the data are brought home first: how many of them, and how
#: many rows are asked about at once.
_MANY_LEAVES, _BROUGHT_HOME, _ASKED_AT_ONCE = 20_000, 8, 256
#: Share of the leaves that are looked at below which no others are from then on.
_FEWER: Final = 0.6
#: Climbs begin within this many times the least budget that the leaves allow, then this many times the last, so often.
_FIRST_BUDGET, _NEXT_BUDGET, _BUDGETS = 1.35, 1.8, 8


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
    def of(cls, boxes: LeafBoxes, space: FeatureSpace, leaves: Ints) -> CellRuns:
        """Return the runs of some of a model's leaves, each of which some point may be in."""
        sizes = [count_cells(boxes, space[name]) for name in space.names]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        parts = [np.zeros((4, 0), dtype=np.int32)]
        for j, name in enumerate(space.names):
            column = boxes.columns.get(name)
            if isinstance(column, LevelSets):
                leaf, start, end = _runs_of_sets(column.part[leaves], column.admits[:, : sizes[j]])
            elif isinstance(column, CellRanges):
                has_gap = sizes[j] > len(column.lefts) + 1
                gap = column.gap[leaves] if has_gap else np.zeros(0, dtype=bool)
                leaf, start, end = _runs_of_ranges(column.low[leaves], column.high[leaves], gap, len(column.lefts))
            else:
                continue
            parts.append(np.stack([leaf, np.full(len(leaf), j), first[j] + start, first[j] + end], dtype=np.int32))
        every = np.concatenate(parts, axis=1)
        leaf, column, start, end = every[:, np.argsort(every[0], kind="stable")]
        run = np.flatnonzero((np.diff(leaf, prepend=-1) != 0) | (np.diff(column, prepend=-1) != 0))
        test = np.flatnonzero(np.diff(leaf[run], prepend=-1) != 0)
        of_test = np.repeat(np.arange(len(test)), np.diff(test, append=len(run)))
        own = leaf[run[test]]
        untested = np.delete(leaves, own)
        return cls(first, start, end, run, column[run], of_test, test, leaves[own], untested)

    def taken(self, kept: Bools) -> CellRuns:
        """Return the runs of some of the leaves, (T,)."""
        leaf = np.flatnonzero(kept)
        tests, test = _ranges(self.test, leaf, len(self.run))
        runs, run = _ranges(self.run, tests, len(self.start))
        of_test = np.repeat(np.arange(len(leaf)), np.diff(test, append=len(tests)))
        return CellRuns(
            first=self.first,
            start=self.start[runs],
            end=self.end[runs],
            run=run,
            column=self.column[tests],
            leaf=of_test,
            test=test,
            origin=self.origin[leaf],
            untested=self.untested,
        )


def _ranges(starts: Ints, taken: Ints, end: int) -> tuple[Ints, Ints]:
    """Return the places of some ranges, one after the other, given where all begin; and where each begins then."""
    lengths = np.diff(starts, append=end)[taken]
    begins = np.cumsum(lengths) - lengths
    return np.repeat(starts[taken] - begins, lengths) + np.arange(int(lengths.sum())), begins


def count_cells(boxes: LeafBoxes, feature: Feature) -> int:
    """Return how many cells a column has, one for a missing value among them."""
    column = boxes.columns.get(feature.name)
    has_gap = int(feature.missing is not False)
    if isinstance(column, LevelSets):
        return int(column.admits.shape[1]) - 1 + has_gap
    if isinstance(column, CellRanges):
        return len(column.lefts) + 1 + has_gap
    return 1


def _runs_of_sets(part: Ints, admits: Bools) -> tuple[Ints, Ints, Ints]:
    """Return leaf, first and last cell of each run of the levels that leaves admit; none of those that admit all."""
    steps = np.diff(admits.astype(np.int8), axis=1, prepend=0, append=0)
    steps[admits.all(axis=1)] = 0
    of_run, starts = np.nonzero(steps > 0)
    ends = np.nonzero(steps < 0)[1] - 1
    count = np.bincount(of_run, minlength=len(admits))
    place, _ = _ranges(np.cumsum(count) - count, part, len(of_run))
    return np.repeat(np.arange(len(part)), count[part]), starts[place], ends[place]


def _runs_of_ranges(low: Ints, high: Ints, gap: Bools, last: int) -> tuple[Ints, Ints, Ints]:
    """Return leaf, first and last cell of each run of the numbers that the leaves admit, and of the missing cell.

    ``gap``: whether each leaf admits that; nothing where no value is missing.
    """
    is_test = (low > 0) | (high < last)
    if len(gap):
        is_test |= ~gap
    own = np.flatnonzero(is_test & (low <= high))
    at_gap = np.flatnonzero(is_test & gap) if len(gap) else own[:0]
    beside = np.full(len(at_gap), last + 1)
    return np.concatenate([own, at_gap]), np.concatenate([low[own], beside]), np.concatenate([high[own], beside])


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
        checkpoint(SEARCHING)
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
            steps = np.bincount(owner + runs.start[place], weights, b * (size + 1)).astype(np.float64)  # of none: whole
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
        #: How many people are searched for together.
        self.width = max(1, min(_TOGETHER, _SHARED // max(len(self.boxes.tree), 1)))
        sizes = [count_cells(self.boxes, prepared.space[name]) for name in prepared.space.names]
        #: Where the cells of each column begin, and M, (d + 1,).
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.prices = prepared.settings.cost.prices(prepared.space)
        self.column_of = np.repeat(np.arange(len(prepared.space.names)), np.diff(self.first))
        self.tastes = tastes_of(prepared, _CLIMBS)
        self._known: dict[Any, tuple[Floats, Floats, int]] = {}

    @classmethod
    def of(cls, prepared: Prepared) -> NearSearch | None:
        """Return the search, if the model is one of trees and the cost a sum over the columns that the rules leave."""
        settings = prepared.settings
        if not takes_sums(settings, prepared.space) or prepared.predictor.unseen:
            return None
        if settings.proof and any(overrides(rule, "stand_ins") and not rule.is_large for rule in settings.rules):
            return None  # the splits of what stands for the rule are where answers lie
        need = TreeNeed.of(prepared.predictor, settings.target, settings.margin)
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
        last = int(self.first[j + 1] - self.first[j]) - 1
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
        values = values_of_cells([self.boxes], feature, start, part)
        priced = prices_of(self.prices[feature.name], feature, start, values)
        cells = self.cells(j, values)
        home = int(cells[np.searchsorted(values, start)])
        size = int(self.first[j + 1] - self.first[j])
        value, price = np.full(size, start), np.full(size, np.inf)
        order = np.argsort(-priced, kind="stable")  # the cheapest is written last
        value[cells[order]], price[cells[order]] = values[order], priced[order]
        value[home], price[home] = start, 0.0
        return value, price, home

    @functools.cached_property
    def runs(self) -> CellRuns | None:
        """Return the runs of all leaves, which are kept as long as the predictor lives; None where there are many."""
        predictor = self.prepared.predictor
        if len(self.boxes.tree) > _FEW_LEAVES:
            return None
        if predictor not in _RUNS:
            alive = np.isfinite(
                self.leaf_prices(np.zeros((1, int(self.first[-1]))))[0]
            )  # some are only for missing cells
            _RUNS[predictor] = CellRuns.of(self.boxes, self.prepared.space, np.flatnonzero(alive))
        return _RUNS[predictor]

    def leaf_prices(self, prices: Floats) -> Floats:
        """Return what the cheapest point of each leaf's box costs people, (n, L), by the prices of all cells (n, M)."""
        total = np.zeros((len(self.boxes.tree), len(prices)))
        for j, name in enumerate(self.prepared.space.names):
            column = self.boxes.columns.get(name)
            own = prices[:, self.first[j] : self.first[j + 1]].T.copy()
            if isinstance(column, LevelSets):
                admits = column.admits[:, : len(own), None]
                total += np.where(admits, own, np.inf).min(axis=1)[column.part]
            elif isinstance(column, CellRanges):
                gap = column.gap if len(own) > len(column.lefts) + 1 else np.zeros(0, dtype=bool)
                total += least_in_ranges(own, column.low, column.high, gap)
        return total.T.copy()

    def run(self, people: Sequence[Person]) -> list[Met]:
        """Return what is met for people, each given in coordinates and with their reach."""
        found: list[Met] = []
        for k in range(0, len(people), self.width):
            found += _NearPeople(self, people[k : k + self.width]).met()
        return found


_RUNS: Final[WeakKeyDictionary[Predictor, CellRuns]] = WeakKeyDictionary()


class _NearPeople(AbstractNearPeople):
    """People who are searched for together; a state has the number of a cell for each column."""

    first_rows = 0

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
        self.first = search.first[:-1]
        need = search.need
        self.unsure = need.rounding + START_MARGIN_ROUNDING * (search.prepared.margin or 0.0)
        self.unsure += SUM_ROUNDING * max(float(np.abs(need.values).sum(axis=0).max(initial=0.0)), TINY)
        self.costs = search.leaf_prices(self.prices)
        self.bounds = np.array(list(map(self._bound, self.costs)))

    def _bound(self, costs: Floats) -> float:
        """Return the least budget of leaves that cost as much; infinite ones are out of reach."""
        own = np.flatnonzero(np.isfinite(costs))
        need = self.search.need
        return least_budget_of(self.search.boxes.tree[own], costs[own], need.values[own], need)

    def look_within(self, limits: Floats) -> None:
        """Look from now on at points alone that cost no more than a limit on the objective of each person, (n,)."""
        search = self.search
        self.limits = limits
        is_near = np.asarray(((self.costs <= limits[:, None]) & np.isfinite(self.costs)).any(axis=0))
        if search.runs is None:
            runs = CellRuns.of(search.boxes, search.prepared.space, np.flatnonzero(is_near))
        else:
            runs = search.runs.taken(is_near[search.runs.origin])
        need = search.need
        self.scanner = Scanner(runs, need.values[runs.origin], need.values[runs.untested].sum(axis=0), need.need)

    @property
    def most_climbs(self) -> int:
        """The fewer, the more leaves there are to look at."""
        return max(_FEW_CLIMBS, _RUNS_CLIMBED // max(len(self.scanner.runs.run), 1))

    @property
    def improved(self) -> int:  # type: ignore[override]
        """The fewer, the more leaves there are to look at."""
        return _IMPROVED if self.most_climbs >= _CLIMBS else 1

    def look_nearer(self) -> None:
        """Look below the best points met alone, where these leave few of the leaves that are looked at."""
        limits = np.minimum(self.limits, self.most)
        looked_at = self.scanner.runs.origin
        near = np.count_nonzero((self.costs[:, looked_at] <= limits[:, None]).any(axis=0))
        if near < _FEWER * len(looked_at):
            self.look_within(limits)

    def wanted(self, who: Ints, after: Floats, below: Floats) -> Bools:
        """Return which changes are worth scanning: those that cost less than a limit each, (B,), and lie within."""
        return np.asarray((after < below[:, None]) & (after <= self.limits[who][:, None]))

    def merit(self, gain: Floats, added: Floats) -> Floats:
        """Return how good a change is; what gains the same does so whoever else's leaves are summed beside."""
        return np.rint(gain / self.unsure) / added

    def begin(self, who: Ints) -> None:
        """Climb within a budget that grows from the least possible one until enough is met, at last within none.

        Before there are very many leaves within it, rows of the data are brought home, below which it has to stay.
        """
        tastes = np.ones((1, len(self.first)))
        if self.count > 1 and not self.prepared.settings.proof:
            tastes = np.concatenate([tastes, self.tastes])
        budgets = _FIRST_BUDGET * self.bounds
        by_rows = np.full(len(self.people), np.inf)
        has_rows = False
        for _ in range(_BUDGETS):
            is_open = (self.most == by_rows) & (budgets < by_rows) & (self.bounds > 0.0)
            left = who[is_open[who]]
            if not len(left):
                break
            limits = np.full(len(self.people), -np.inf)
            limits[left] = budgets[left]
            if not has_rows and np.count_nonzero(self.costs[left] <= limits[left, None]) > _MANY_LEAVES:
                self.bring_rows_home(left)
                by_rows = self.most.copy()
                limits, has_rows = np.minimum(limits, by_rows), True
            self.look_within(limits)
            self.climb_from_home(left, self.tastes[: self.most_climbs] if has_rows else tastes)
            budgets *= _NEXT_BUDGET
        left = who[np.isinf(self.most[who])]
        if len(left):
            self.look_within(np.where(np.isinf(self.most), np.inf, -np.inf))
            self.climb_from_home(left, tastes)
        self.look_within(self.most)

    def bring_rows_home(self, who: Ints) -> None:
        """Take back whole changes of the cheapest rows of the data that the model favours, the dearest that it lets.

        The model is asked about the points themselves, which takes less than looking at very many leaves.
        """
        near = [self._first_favoured(i) for i in who.tolist()]
        owners, states = np.repeat(who, list(map(len, near))), np.concatenate(near)
        while len(owners):
            self.offer(owners, states)
            at, column = np.nonzero(states != self.home[owners])
            back = states[at]
            back[np.arange(len(at)), column] = self.home[owners[at], column]
            kept = self._are_answers(owners[at], back)
            at, back = at[kept], back[kept]
            order = np.lexsort((self.objectives(owners[at], back), at))
            first = order[np.diff(at[order], prepend=-1) != 0]
            owners, states = owners[at[first]], back[first]

    def _first_favoured(self, i: int) -> States:
        """Return the cheapest rows of the data that the model favours, with what is out of reach as it is."""
        states = self.rows_in_reach(i)
        states = states[np.argsort(self.objectives(np.full(len(states), i), states), kind="stable")]
        found = states[:0]
        for k in range(0, len(states), _ASKED_AT_ONCE):
            some = states[k : k + _ASKED_AT_ONCE]
            found = np.concatenate([found, some[self._are_answers(np.full(len(some), i), some)]])
            if len(found) >= _BROUGHT_HOME:
                break
        return found[:_BROUGHT_HOME]

    def _are_answers(self, who: Ints, states: States) -> Bools:
        """Return which states the model, asked about the points, favours and the rules let be."""
        kept = self.is_favoured(who, states, np.zeros(len(states)))
        kept[kept] = self.keeps_rules(who[kept], states[kept])
        return kept

    def look_at(self, who: Ints, below: Floats) -> None:
        """Look from now on at these alone, each below a limit, (B,)."""
        limits = np.full(len(self.people), -np.inf)
        np.maximum.at(limits, who, below)
        self.look_within(limits)

    def swap(self, who: Ints) -> None:
        """From the cheapest points of each, take one change back and make another, then several."""
        for remade in (1, _REMADE):
            self.remade = remade
            super().swap(who)

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

    def rows_in_reach(self, i: int) -> States:
        """Return the rows of the data, with what is out of reach at the person's own."""
        rows = self.search.rows
        return np.where(np.isinf(self.prices[i][self.first + rows]), self.home[i], rows)

    def partly_back(self, who: Ints, states: States, columns: Ints) -> States:
        """Return states with one column each nearer to the person by a cell."""
        at = np.arange(len(who))
        nearer = states.copy()
        nearer[at, columns] -= np.sign(states[at, columns] - self.home[who, columns])
        return nearer
