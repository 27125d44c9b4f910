"""Starts: cheap points that the model favours, found before any program is solved.

A start gives the solver a first answer and the program a bound on how far a better one can be. No start is trusted:
each point is checked like any other before it is given.

The search works on a grid: of each column the values worth trying for one person, ascending, the factual's among them.
A point of the grid is written as its indices, one a column, so that a step along a column is a step of its index.

The best rows of the data are taken as they are, and brought nearer. On the grid it goes in four steps. It *sifts*
points that are at hand for cheap ones that reach the target; it *climbs* from the factual to the target by moves that
bring it nearest for their price; it *improves* the cheapest points by single changes and by exchanges of two; and where
the model is not made of trees, it does so again on a finer grid around the best. Where a rule by a model of its own
refuses many points, all begins again on the splits of both models.

Most questions about trees take the search of :mod:`~ceopt.search.near_points` instead. What is left to this one are
joint costs, rules that mend or are slow or stand for a model, and models whose leaves tell no need.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.rule import mended_points
from ceopt.formulations.costs.base import prices_of
from ceopt.formulations.predictors.leaf_boxes import leaf_boxes, values_of_cells
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.formulations.tolerances import TINY
from ceopt.solvers.checks import Floats
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.tolerances import CHEAPER_START

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.predictors.leaf_boxes import LeafBoxes
    from ceopt.formulations.predictors.predictor import Predictor

#: Places in a grid, one a column.
Indices = NDArray[np.intp]

# ---- the grid --------------------------------------------------------------------------------------------------------
#: Even steps of a number where no tree cuts it.
_EVEN_STEPS = 33
#: Width from which on a column is tried at ever shorter moves too: its even steps are far beyond most answers.
_WIDE = 1e7


@final
@dataclass(frozen=True, slots=True, eq=False)
class ValueGrid:
    """Per column the values worth trying, ascending, and what a move to each costs.

    Parameters
    ----------
    names
        Columns, d of them.
    columns
        Values of each column, ascending, the factual's among them.
    prices
        Cost of the move to each of them.
    factual
        Index of the factual's value in each column, (d,).
    joint_price
        Coordinates (n, d) -> prices (n,), where a point's price is not the sum of its columns' prices.
    mend
        Coordinates (n, d) -> coordinates, where some columns follow from others and have no grid of their own.
    """

    names: tuple[str, ...]
    columns: tuple[Floats, ...]
    prices: tuple[Floats, ...]
    factual: Indices
    joint_price: Callable[[Floats], Floats] | None = None
    mend: Callable[[Floats], Floats] | None = None

    def coordinates(self, points: Indices) -> Floats:
        """Return coordinates (n, d) of points given as indices (n, d) or (d,)."""
        points = np.atleast_2d(points)
        coordinates = np.stack([values[points[:, j]] for j, values in enumerate(self.columns)], axis=1)
        if self.mend is None:
            return coordinates
        return self.mend(coordinates)

    def price(self, points: Indices) -> Floats:
        """Return the prices of points (n, d)."""
        if self.joint_price is not None:
            return self.joint_price(self.coordinates(points))
        total = np.zeros(len(points))
        for j, prices in enumerate(self.prices):
            total = total + prices[points[:, j]]
        return total

    # ---- points ------------------------------------------------------------------------------------------------------
    def next_to(self, coordinates: Floats) -> Indices:
        """Return the points next to rows (n, d), on the factual's side: a tree's cell stays the same."""
        points = np.empty(coordinates.shape, dtype=np.intp)
        for j, values in enumerate(self.columns):
            wanted = coordinates[:, j]
            below = np.searchsorted(values, wanted, side="right") - 1
            above = np.searchsorted(values, wanted, side="left")
            toward_factual = np.where(wanted > values[self.factual[j]], below, above)
            points[:, j] = np.clip(toward_factual, 0, len(values) - 1)
            if not math.isinf(values[-1]):  # a missing cell is next to no amount
                points[wanted == MISSING, j] = self.factual[j]
        return points

    def at(self, coordinates: Floats) -> Indices | None:
        """Return the indices of one point's coordinates (d,), or None where the grid lacks a value of it."""
        point = np.empty(len(self.columns), dtype=np.intp)
        for j, values in enumerate(self.columns):
            if not np.isin(coordinates[j], values):
                return None
            point[j] = np.searchsorted(values, coordinates[j])
        return point

    def random(self, count: int, rng: np.random.Generator) -> Indices:
        """Return points that change one to all columns to any of their values."""
        points = np.tile(self.factual, (count, 1))
        moving = [j for j, values in enumerate(self.columns) if len(values) > 1]
        share = rng.uniform(0.0, 1.0, size=count)
        for j in moving:
            changed = rng.uniform(size=count) < np.maximum(share, 1.0 / len(moving))
            points[changed, j] = rng.integers(len(self.columns[j]), size=int(changed.sum()))
        return points

    # ---- moves -------------------------------------------------------------------------------------------------------
    def changes(self, points: Indices) -> SingleChanges:
        """Return all changes of one column of one of the points (n, d) to another of its values."""
        lengths = list(map(len, self.columns))
        column = np.repeat(np.arange(len(lengths)), lengths)
        value = np.concatenate(list(map(np.arange, lengths)))
        is_change = points[:, column] != value
        owner, place = np.nonzero(is_change)
        return SingleChanges(points, owner, column[place], value[place])

    def prices_after(self, changes: SingleChanges) -> Floats:
        """Return the prices of the points after each change."""
        if self.joint_price is not None:
            return self.price(changes.after())
        before = np.stack([prices[changes.points[:, j]] for j, prices in enumerate(self.prices)], axis=1)
        others = before.sum(axis=1)[changes.owner] - before[changes.owner, changes.column]
        first = np.cumsum([0, *map(len, self.prices)])[changes.column]
        return np.asarray(others + np.concatenate(self.prices)[first + changes.value])

    def nearer(self, point: Indices) -> SingleChanges:
        """Return the changes that bring one column nearer to the factual."""
        changes = self.changes(point[None, :])
        before = point[changes.column]
        factual = self.factual[changes.column]
        after = changes.value
        return changes.taken((np.minimum(before, factual) <= after) & (after <= np.maximum(before, factual)))

    def exchanges(self, point: Indices) -> SingleChanges:
        """Return the changes of the points that take one change back, wholly or by one index.

        A point that no single change makes cheaper may still be a dear combination: what one column gives back,
        another may make up for at a lower price.
        """
        changed = np.flatnonzero(point != self.factual)
        bases = np.tile(point, (2 * len(changed), 1))
        wholly = np.arange(len(changed))
        by_one = len(changed) + wholly
        bases[wholly, changed] = self.factual[changed]
        bases[by_one, changed] += np.sign(self.factual - point)[changed]
        return self.changes(np.unique(bases, axis=0))


@final
@dataclass(frozen=True, slots=True, eq=False)
class SingleChanges:
    """Changes of one column each: of ``points[owner]`` the ``column`` to its value number ``value``, (n,) each."""

    points: Indices
    owner: Indices
    column: Indices
    value: Indices

    def __len__(self) -> int:
        return len(self.owner)

    def taken(self, kept: Any) -> SingleChanges:
        """Return some of them."""
        return SingleChanges(self.points, self.owner[kept], self.column[kept], self.value[kept])

    def after(self) -> Indices:
        """Return the points after the changes, (n, d)."""
        points = self.points[self.owner]
        points[np.arange(len(points)), self.column] = self.value
        return points


def grid_around(
    predictor: Predictor,
    cost: AbstractCost,
    rules: Sequence[AbstractRule],
    *,
    factual: Mapping[str, float],
    reach: Reach,
    boxes: Sequence[LeafBoxes] = (),
    through: Sequence[Floats] = (),
) -> ValueGrid:
    """Return, per column, the values worth trying: ends of the model's cells, all levels, or even steps.

    With points ``through``, the even steps lead from the factual to their values instead of from end to end.
    """
    space = predictor.space
    prices = cost.prices(space)
    columns = []
    column_prices = []
    indices = []
    for j, feature in enumerate(space):
        part = reach[feature.name]
        start = factual[feature.name]
        values = set(values_of_cells(boxes, feature, start, part).tolist())
        if isinstance(part, Interval) and not predictor.is_trees and not part.is_point:
            home = start
            if start in part.labels:
                home = part.clip(0.0)
            if through:
                goals = [float(point[j]) for point in through if not feature.is_label(float(point[j]))]
                values = {start, *part.labels, *_steps_to(part, home, goals)}
            else:
                values |= _steps_across(part, home)
        column = np.array(sorted(values))
        columns.append(column)
        column_prices.append(prices_of(prices[feature.name], feature, start, column))
        indices.append(int(np.searchsorted(column, start)))
    is_mended = any(rule.mends for rule in rules)
    mend = functools.partial(mended_points, rules, space, factual) if is_mended else None
    joint_price = functools.partial(cost.objectives, space, factual) if cost.is_joint or is_mended else None
    return ValueGrid(tuple(space.names), tuple(columns), tuple(column_prices), np.array(indices), joint_price, mend)


def _steps_to(part: Interval, start: float, goals: Sequence[float]) -> set[float]:
    """Return even steps from ``start`` to each of the goals, and the goals themselves."""
    steps = np.linspace(start, goals, _EVEN_STEPS)
    return {*map(part.clip, steps.ravel().tolist()), *goals}


def _steps_across(part: Interval, start: float) -> set[float]:
    """Return even steps from end to end, and ever shorter ones of a wide column; an open end is ten sizes away."""
    size = max(1.0, abs(start))
    low = part.lower if math.isfinite(part.lower) else start - 10.0 * size
    high = part.upper if math.isfinite(part.upper) else start + 10.0 * size
    steps = np.concatenate([np.linspace(low, high, _EVEN_STEPS), _ever_shorter(start, low, high)])
    return set(map(part.clip, steps.tolist()))


def _ever_shorter(start: float, low: float, high: float) -> Floats:
    """Return steps from ``start`` to either end of a wide column, each a quarter of the one before, or nothing."""
    if high - low <= _WIDE:
        return np.zeros(0)
    shares = 0.25 ** np.arange(1, math.ceil(math.log(high - low, 4)))
    return start + np.concatenate([(low - start) * shares, (high - start) * shares])


# ---- the search for a start ------------------------------------------------------------------------------------------
#: Random points, where there is no data.
_SAMPLES = 1500
#: Points that are improved.
_IMPROVED = 6
#: Climbs at once, beside the first one, and steps of a climb or an improvement.
_CLIMBS, _STEPS = 5, 60
#: How many points that reach the target are held against the rules, the cheapest first.
_HELD = 60
#: How often the even steps of numbers are made finer, and around how many points.
_FINER, _REFINED = 2, 2
#: Rows of the data that are held against the rules, and of those that keep them, how many are cheapened.
_ROWS_TRIED, _ROWS_CHEAPENED = 60, 2
#: Spread of the random taste by which climbs differ, as the standard deviation of a logarithm.
_TASTE = 0.5
#: Rows that are scored between two looks at the clock, and at first.
_ROWS, _FIRST_ROWS = 4000, 64
#: Rows times trees that are scored in all, about two seconds: a count, and not a time, so that the same person gets the
#: same start whatever else the machine does.
_WORK = 20_000_000
#: What scoring a row costs at least, in trees.
_NETWORK = 20
#: What a slow rule's check of one point costs (a few linear programs), in rows times trees.
_SLOW = 250_000
#: Points that break a rule, after which the search begins again with the models beside the one asked about. Of the
#: people of the benchmark that are proved without them, most meet fewer.
_BROKEN = 150
#: Rows of the data by which the slacks of several models are put into one unit.
_MEASURED = 200


@final
@dataclass(frozen=True, slots=True)
class StartSearch:
    """Looks for cheap points that reach the target, by the representation's own scores.

    Parameters
    ----------
    predictor
        The model as read.
    slack
        Coordinates (n, d) -> by how much each row's decision meets the target beyond the program's margin, (n,).
    cost, rules
        What a point costs and must keep.
    beside
        Further models that have to decide so, where a rule asks for that, and the slack of each.
    """

    predictor: Predictor
    slack: Callable[[Floats], Floats]
    cost: AbstractCost
    rules: Sequence[AbstractRule]
    beside: Sequence[tuple[Predictor, Callable[[Floats], Floats]]] = ()

    def run(
        self,
        factual: Mapping[str, float],
        reach: Reach,
        data: Floats | None,
        *,
        seed: int,
        deadlines: tuple[float, float],
    ) -> list[tuple[float, dict[str, float]]]:
        """Return points with their costs, cheapest first, each with another set of changed columns.

        The search ends at the first deadline, or as long as it has found nothing, at the second.
        """
        if all(part.is_point for part in reach.values()):
            return []
        rows = data if data is not None and len(data) else None
        most_broken = _BROKEN if self.beside else math.inf
        points, is_ended = self.met(factual, reach, rows, seed=seed, deadlines=deadlines, most_broken=most_broken)
        if is_ended or (self.beside and not points):
            home = np.array([[factual[name] for name in self.predictor.space.names]])
            sample = home if rows is None else np.vstack([home, rows[:_MEASURED]])
            both = replace(self, slack=self._slack_of_all(sample))
            points += both.met(factual, reach, rows, seed=seed, deadlines=deadlines, most_broken=math.inf)[0]
        return self._cheapest(factual, points)

    def _slack_of_all(self, sample: Floats) -> Callable[[Floats], Floats]:
        """Return what all models lack together, each in units of its slack in a sample; if nothing, the least slack."""
        slacks = [self.slack, *(slack for _, slack in self.beside)]
        units = [max(float(np.abs(slack(sample)).mean()), TINY) for slack in slacks]

        def slack_of(points: Floats) -> Floats:
            each = np.stack([slack(points) / unit for slack, unit in zip(slacks, units, strict=True)])
            least: Floats = each.min(axis=0)
            return np.where(least >= 0.0, least, np.minimum(each, 0.0).sum(axis=0))

        return slack_of

    def met(
        self,
        factual: Mapping[str, float],
        reach: Reach,
        rows: Floats | None,
        *,
        seed: int,
        deadlines: tuple[float, float],
        most_broken: float,
    ) -> tuple[list[Floats], bool]:
        """Return the points met, and whether so many broke a rule that the models beside are to be looked at."""
        predictors = [self.predictor]
        if math.isinf(most_broken):
            predictors += [predictor for predictor, _ in self.beside]
        forests = [forest for predictor in predictors for forest in predictor.forests]
        boxes = list(map(leaf_boxes, forests))
        row_work = max(sum(len(np.unique(own.tree)) for own in boxes), _NETWORK)
        effort = _Effort(_WORK // row_work, deadlines)
        check = _RuleCheck(self, factual, reach, effort, slow_rows=max(_SLOW // row_work, 1), most_broken=most_broken)
        around = functools.partial(
            grid_around,
            self.predictor,
            self.cost,
            self.rules,
            factual=factual,
            reach=reach,
            boxes=boxes,
        )
        grid = around()
        search = _GridSearch(grid, self.slack, check.is_kept, effort)
        rng = np.random.default_rng(seed)
        candidates: list[Floats] = []
        try:
            at_hand = grid.random(_SAMPLES, rng) if rows is None else grid.next_to(rows)
            search.sift(np.unique(at_hand, axis=0))
            tastes = np.exp(_TASTE * rng.normal(size=(_CLIMBS, len(grid.names))))
            search.climb(np.ones((1, len(grid.names))))  # alone, as what it finds bounds the others
            search.climb(tastes)
            search.improve()
            candidates += search.points()
            if self.rules and rows is not None and not search.is_late:
                candidates += self._rows_of_data(
                    factual, reach, rows, lambda point: not search.is_late and check.is_kept(point)
                )
            if not self.predictor.is_trees:
                for _ in range(_FINER):
                    search = search.on(around(through=search.points()[:_REFINED]))
                    search.improve()
                    candidates += search.points()
        except OutOfTimeError:  # what was met by then stays
            candidates += search.points()
        return candidates, check.broken > most_broken

    def _cheapest(self, factual: Mapping[str, float], points: Sequence[Floats]) -> list[tuple[float, dict[str, float]]]:
        """Return the cheapest point per set of changed columns, with its cost, cheapest first."""
        space = self.predictor.space
        best: dict[tuple[str, ...], tuple[float, dict[str, float]]] = {}
        for coordinates in points:
            point = dict(zip(space.names, coordinates.tolist(), strict=True))
            cost = self.cost.value(space, factual, point)
            changed = tuple(name for name, value in point.items() if value != factual[name])
            if changed not in best or cost < best[changed][0]:
                best[changed] = (cost, point)
        return sorted(best.values(), key=lambda pair: pair[0])

    # ---- rows of the data --------------------------------------------------------------------------------------------
    def _rows_of_data(
        self, factual: Mapping[str, float], reach: Reach, rows: Floats, is_kept: Callable[[Floats], bool]
    ) -> list[Floats]:
        """Return rows (n, d) as they are, where they reach the target and keep every rule, then cheapened.

        Under rules about rows (a hull, allowed rows) other points rarely pass. A column that may not take a row's value
        keeps the factual's.
        """
        space = self.predictor.space
        points = rows.copy()
        for j, name in enumerate(space.names):
            values, position = np.unique(points[:, j], return_inverse=True)
            in_reach = np.array(list(map(reach[name].holds, values.tolist())))
            points[:, j] = np.where(in_reach[position], points[:, j], factual[name])
        points = np.unique(mended_points(self.rules, space, factual, points), axis=0)
        points = points[self.slack(points) >= 0]
        if not len(points):
            return []
        prices = self.cost.objectives(space, factual, points)
        kept: list[Floats] = []
        for point in points[np.argsort(prices, kind="stable")][:_ROWS_TRIED]:
            if is_kept(point):
                kept.append(self._with_columns_back(factual, point, is_kept))
            if len(kept) == _ROWS_CHEAPENED:
                break
        return kept

    def _with_columns_back(
        self, factual: Mapping[str, float], point: Floats, is_kept: Callable[[Floats], bool]
    ) -> Floats:
        """Return a point with columns back at the factual, one by one and the dearest first, as long as it passes."""
        space = self.predictor.space
        start = np.array([factual[name] for name in space.names])
        changed = np.flatnonzero(point != start)
        if not len(changed):
            return point
        alone = np.tile(start, (len(changed), 1))
        alone[np.arange(len(changed)), changed] = point[changed]
        dearest_first = changed[np.argsort(-self.cost.objectives(space, factual, alone), kind="stable")]
        for j in dearest_first:
            trial = point.copy()
            trial[j] = start[j]
            trial = mended_points(self.rules, space, factual, trial[None, :])[0]
            before = self.cost.objectives(space, factual, point[None, :])[0]
            after = self.cost.objectives(space, factual, trial[None, :])[0]
            if after < before and self.slack(trial[None, :])[0] >= 0 and is_kept(trial):
                point = trial
        return point


class _Effort:
    """What a search may spend: rows to score, and the time until a deadline."""

    __slots__ = ("deadlines", "rows")

    def __init__(self, rows: int, deadlines: tuple[float, float]) -> None:
        self.rows = rows
        self.deadlines = deadlines

    def is_spent(self, *, has_point: bool) -> bool:
        """Whether the rows are used up, or the time: the first deadline, or the second as long as nothing is found."""
        deadline = self.deadlines[0] if has_point else self.deadlines[1]
        return self.rows <= 0 or time.perf_counter() > deadline


class _RuleCheck:
    """The rules of one question, asked of a point; what slow ones take counts as effort."""

    __slots__ = ("broken", "effort", "factual", "holds", "most_broken", "rules", "slow_rows", "space")

    def __init__(
        self,
        search: StartSearch,
        factual: Mapping[str, float],
        reach: Reach,
        effort: _Effort,
        *,
        slow_rows: int,
        most_broken: float,
    ) -> None:
        self.space = search.predictor.space
        self.rules = sorted(search.rules, key=lambda rule: rule.slow)
        self.factual = factual
        self.effort = effort
        self.slow_rows = slow_rows
        #: Points that broke a rule, and after how many the effort ends.
        self.broken = 0
        self.most_broken = most_broken
        # The points of a grid share few values, so that each is asked for once.
        self.holds = functools.cache(lambda name, value: reach[name].holds(value))

    def is_kept(self, coordinates: Floats) -> bool:
        """Whether a point is in reach and keeps every rule; the quick rules are asked first."""
        if not self.rules:
            return True
        point = dict(zip(self.space.names, coordinates.tolist(), strict=True))
        for name, value in point.items():
            if not self.holds(name, value):
                return False
        for rule in self.rules:
            if rule.slow:
                self.effort.rows -= self.slow_rows
            if rule.violation(self.space, self.factual, point) > 0:
                self.broken += 1
                if self.broken > self.most_broken:
                    self.effort.rows = 0
                return False
        return True


class _GridSearch:
    """Points of the grid that reach the target and keep the rules, the cheapest per set of changed columns.

    One point a set: which columns change is what tells answers apart that are worth having side by side, for the next
    answer of several, and for an improvement to begin from, as points of one set soon meet in the same cheapest one.
    """

    def __init__(
        self,
        grid: ValueGrid,
        slack: Callable[[Floats], Floats],
        is_kept: Callable[[Floats], bool],
        effort: _Effort,
    ) -> None:
        self.grid = grid
        self.slack = slack
        self.is_kept = is_kept
        self.effort = effort
        #: By the set of changed columns: price and indices.
        self.cheapest: dict[bytes, tuple[float, Indices]] = {}
        self.least = math.inf

    def best(self) -> list[Indices]:
        """Return the starts, cheapest first."""
        return [point for _, point in sorted(self.cheapest.values(), key=lambda pair: pair[0])]

    def points(self) -> list[Floats]:
        """Return the starts as coordinates, cheapest first."""
        return [self.grid.coordinates(point)[0] for point in self.best()]

    def on(self, grid: ValueGrid) -> _GridSearch:
        """Return a search on another grid, from those of the points found that lie on it."""
        search = _GridSearch(grid, self.slack, self.is_kept, self.effort)
        for coordinates in self.points():
            point = grid.at(coordinates)
            if point is not None:
                search._keep(point, float(grid.price(point[None, :])[0]))
        return search

    def sift(self, points: Indices) -> None:
        """Keep the cheapest of many points that reach the target."""
        prices = self.grid.price(points)
        order = np.argsort(prices, kind="stable")
        order = order[prices[order] > 0]
        count = 0
        for part in _parts(order):
            if count >= _IMPROVED:
                break
            for k in part[self._slacks(points[part]) >= 0]:
                count += self._keep(points[k], prices[k])
                if count >= _IMPROVED or self.is_late:
                    break

    def climb(self, tastes: Floats) -> None:
        """Leave the factual by the moves that gain most slack for their price, several climbs at once.

        Each step of a climb looks at all points that differ from it in one column and takes the one with the greatest

            (slack gained / price added) * taste of the column,

        so that it gets to the target cheaply if the columns' gains add up. Where they do not, the way there may be
        dear: a climb with another ``taste`` (one row of positive factors a climb, one factor a column) takes another
        way. A trial that costs as much as a point in hand is dropped, as what follows it only costs more. All trials
        that reach the target on the way are candidates. A climb ends where no move gains.
        """
        grid = self.grid
        points = np.tile(grid.factual, (len(tastes), 1))
        slacks = self._slacks(points)
        prices = grid.price(points)
        for _ in range(_STEPS):
            if not len(points) or self.is_late:
                return
            changes = grid.changes(points)
            costs = grid.prices_after(changes)
            near = costs < self.least * (1.0 - CHEAPER_START)
            changes, costs = changes.taken(near), costs[near]
            reached = self._slacks(changes.after())
            self._keep_cheapest(changes, costs, reached)
            owner, column = changes.owner, changes.column
            with np.errstate(invalid="ignore"):  # a decision that no score reaches misses it by infinity
                gain = reached - slacks[owner]
            added = np.maximum(costs - prices[owner], 1e-9 * np.maximum(costs, 1e-9))
            merit = gain / added * tastes[owner, column]
            is_useless = ~(gain > 0) | (costs >= self.least * (1.0 - CHEAPER_START))
            merit[is_useless] = -math.inf
            chosen: list[int] = []
            for climber in np.unique(owner):
                move = int(np.argmax(np.where(owner == climber, merit, -math.inf)))
                if merit[move] > -math.inf:
                    chosen.append(move)
            points = changes.taken(chosen).after()
            slacks = reached[chosen]
            prices = costs[chosen]
            tastes = tastes[owner[chosen]]

    def improve(self) -> None:
        """Improve the cheapest points by the best single move or exchange of two until no move improves."""
        for start in self.best()[:_IMPROVED]:
            point = start
            price = float(self.grid.price(start[None, :])[0])
            for _ in range(_STEPS):
                if self.is_late:
                    break
                better = self._cheaper(point, price)
                if better is None:
                    break
                point, price = better

    def _cheaper(self, point: Indices, price: float) -> tuple[Indices, float] | None:
        """Return a cheaper point one step nearer the factual, else one that exchanges a change for another."""
        for changes in (self.grid.nearer(point), self.grid.exchanges(point)):
            costs = self.grid.prices_after(changes)
            order = np.argsort(costs, kind="stable")
            order = order[(costs[order] < price * (1.0 - CHEAPER_START)) & (costs[order] > 0)]
            for part in _parts(order):
                trials = changes.taken(part).after()
                for k in np.flatnonzero(self._slacks(trials) >= 0.0):
                    cost = float(self.grid.price(trials[k : k + 1])[0])
                    if cost < price * (1.0 - CHEAPER_START) and self._keep(trials[k], cost):
                        return trials[k], cost
        return None

    def _keep_cheapest(self, changes: SingleChanges, prices: Floats, slacks: Floats) -> None:
        """Keep the cheapest point that reaches the target and keeps the rules."""
        reaching = np.flatnonzero((slacks >= 0) & (prices > 0))
        cheapest = reaching[np.argsort(prices[reaching], kind="stable")][:_HELD]
        if not len(cheapest):
            return
        points = changes.taken(cheapest).after()
        for point, price in zip(points, self.grid.price(points), strict=True):
            if self._keep(point, price) or self.is_late:
                return

    def _keep(self, point: Indices, price: float) -> bool:
        """Keep a point if it keeps the rules, unless one with the same changed columns is as cheap; tell whether."""
        if not self.is_kept(self.grid.coordinates(point)[0]):
            return False
        changed = (point != self.grid.factual).tobytes()
        if changed not in self.cheapest or price < self.cheapest[changed][0]:
            self.cheapest[changed] = (float(price), point)
        self.least = min(self.least, float(price))
        return True

    def _slacks(self, points: Indices) -> Floats:
        """Return the slack of each point, minus infinity for those that no time was left for."""
        slacks = np.full(len(points), -math.inf)
        for first in range(0, len(points), _ROWS):
            if self.is_late:
                break
            part = slice(first, first + _ROWS)
            self.effort.rows -= len(points[part])
            slacks[part] = self.slack(self.grid.coordinates(points[part]))
        return slacks

    @property
    def is_late(self) -> bool:
        """Whether the work or the time is used up."""
        return self.effort.is_spent(has_point=bool(self.cheapest))


def _parts(order: Indices) -> list[Indices]:
    """Return an order of rows in parts between which the clock is looked at, each twice the one before at first."""
    ends = [_FIRST_ROWS * (2**k - 1) for k in range(1, 7)]
    return np.split(order, [end for end in (*ends, *range(ends[-1] + _ROWS, len(order), _ROWS)) if end < len(order)])
