"""A good answer before the search: cheap moves that the model favours, exchanged for cheaper ones until none is left.

Nothing found here is trusted: it is a start for the solver and a bound on how far a better answer can be.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.rule import mended_points, mends_points
from ceopt.formulations.costs.base import move_of
from ceopt.formulations.predictors.embed.trees.reachable_leaves import (
    NumberCut,
    PrunedTree,
    cuts_in_reach,
    prune,
    route,
)
from ceopt.formulations.space.reachable import Levels, Reach
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.tolerances import CHEAPER_START
from ceopt.warm_start.data_rows import from_rows
from ceopt.warm_start.value_grid import Ladders

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.predictors.representation.predictor import Predictor

__all__ = ["StartSearch"]

Points = NDArray[np.float64]
Rungs = NDArray[np.intp]

#: Random points, where there is no data; points that are improved; climbs at once; steps of a climb or an improvement.
_SAMPLES, _IMPROVED, _CLIMBS, _STEPS = 1500, 6, 5, 60
#: Even steps of a number where no tree cuts it, how often they are then made finer, and around how many points.
_EVEN, _FINER, _REFINED = 33, 2, 2
#: Width from which on a column is tried at ever shorter moves too: its even steps are far beyond most answers.
_WIDE = 1e7
#: Spread of the random taste by which climbs differ, as the standard deviation of a logarithm.
_TASTE = 0.5
#: Rows that are scored between two looks at the clock.
_ROWS = 4000
#: Rows times trees that are scored in all, about two seconds: a count, and not a time, so that the same person gets the
#: same start whatever else the machine does.
_WORK = 20_000_000
#: What scoring a row costs at least, in trees.
_NETWORK = 20
#: What a slow rule's check of one point costs (a few linear programs), in rows times trees.
_SLOW = 250_000


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
    """

    predictor: Predictor
    slack: Callable[[Points], NDArray[np.float64]]
    cost: AbstractCost
    rules: Sequence[AbstractRule]

    def run(
        self,
        factual: Mapping[str, float],
        reach: Reach,
        data: Points | None,
        *,
        seed: int,
        deadlines: tuple[float, float],
    ) -> list[tuple[float, dict[str, float]]]:
        """Return points with their costs, cheapest first, each with another set of changed columns.

        The search ends at the first deadline, or as long as it has found nothing, at the second.
        """
        if all(part.is_point for part in reach.values()):
            return []
        routes = [route(part) for part in self.predictor.forests]
        cuts = [cut for part in routes for cut in cuts_in_reach(part, reach)]
        ladders = self._ladders(factual, reach, cuts)
        width = max(sum(map(len, routes)), _NETWORK)
        keeps = functools.partial(self._keeps_rules, factual, reach, width)
        search = _GridSearch(ladders, self.slack, keeps, _WORK // width, deadlines)
        rng = np.random.default_rng(seed)
        found: list[Points] = []
        try:
            pool = ladders.snap(data) if data is not None and len(data) else ladders.random(_SAMPLES, rng)
            search.sift(np.unique(pool, axis=0))
            if routes and not search.is_late:
                trees = tuple(tree for part in routes for tree in prune(part, reach))
                search.sift(np.unique(_corners(ladders, trees), axis=0))
            tastes = np.exp(_TASTE * rng.normal(size=(_CLIMBS, len(ladders.names))))
            search.climb(np.ones((1, len(ladders.names))))  # alone, as what it finds bounds the others
            search.climb(tastes)
            search.improve()
            found += search.points()
            if self.rules and data is not None and len(data) and not search.is_late:
                found += self._rows_themselves(factual, reach, data, keeps, search)
            for _ in range(0 if self.predictor.is_trees else _FINER):
                search = search.on(self._ladders(factual, reach, cuts, through=search.points()[:_REFINED]))
                search.improve()
                found += search.points()
        except OutOfTimeError:  # what was met by then stays
            found += search.points()
        return self._cheapest(factual, found)

    def _cheapest(self, factual: Mapping[str, float], points: Sequence[Points]) -> list[tuple[float, dict[str, float]]]:
        """Return the cheapest point per set of changed columns, with its cost, cheapest first."""
        space = self.predictor.space
        named = [dict(zip(space.names, point.tolist(), strict=True)) for point in points]
        best: dict[tuple[str, ...], tuple[float, dict[str, float]]] = {}
        for point in named:
            cost = self.cost.value(space, factual, point)
            changed = tuple(name for name, value in point.items() if value != factual[name])
            if changed not in best or cost < best[changed][0]:
                best[changed] = (cost, point)
        return sorted(best.values(), key=lambda pair: pair[0])

    def _ladders(
        self, factual: Mapping[str, float], reach: Reach, cuts: Sequence[NumberCut], through: Sequence[Points] = ()
    ) -> Ladders:
        """Return, per column, the values worth trying: ends of the model's cells, all levels, or even steps.

        With points ``through``, the even steps lead from the factual to their values instead of from end to end.
        """
        space, prices = self.predictor.space, self.cost.prices(self.predictor.space)
        ends: dict[str, set[float]] = {name: set() for name in space.names}
        for cut in cuts:
            # Of each cell the value nearest to the factual, so that two rungs are never in one cell.
            left, right = cut.key
            ends[cut.name].update(
                [left] if right <= factual[cut.name] else [right] if left >= factual[cut.name] else cut.key
            )
        rungs, costs = [], []
        for j, feature in enumerate(space):
            part, home = reach[feature.name], factual[feature.name]
            if isinstance(part, Levels):
                values = set(map(float, part.ranks))
            elif self.predictor.is_trees:
                values = ends[feature.name]
            elif through:
                steps = np.linspace(home, [point[j] for point in through], _EVEN)
                values = {part.clip(value) for value in steps.ravel().tolist()} | {float(p[j]) for p in through}
            else:
                low = part.lower if math.isfinite(part.lower) else home - 10.0 * max(1.0, abs(home))
                high = part.upper if math.isfinite(part.upper) else home + 10.0 * max(1.0, abs(home))
                steps = np.concatenate([np.linspace(low, high, _EVEN), _ever_shorter(home, low, high)])
                values = ends[feature.name] | {part.clip(value) for value in steps.tolist()}
            ladder = sorted(values | {home})
            moves = [move_of(feature, home, value) for value in ladder]
            rungs.append(np.array(ladder))
            costs.append(np.array([sum(price.of(move) for price in prices[feature.name]) for move in moves]))
        homes = [int(np.searchsorted(r, factual[name])) for r, name in zip(rungs, space.names, strict=True)]
        mend = functools.partial(self._mended, factual) if any(map(mends_points, self.rules)) else None
        joint = functools.partial(self.cost.objectives, space, factual) if self.cost.is_joint or mend else None
        return Ladders(tuple(space.names), tuple(rungs), tuple(costs), np.array(homes), joint, mend)

    def _rows_themselves(
        self,
        factual: Mapping[str, float],
        reach: Reach,
        data: Points,
        keeps: Callable[[Points], tuple[bool, int]],
        search: _GridSearch,
    ) -> list[Points]:
        """Return rows of the data, put back where they may not move and cheapened; the rules' checks count as work."""

        def passes(point: Points) -> bool:
            kept, work = (False, 0) if search.is_late else keeps(point)
            search.rows -= work
            return kept

        return from_rows(
            self.predictor.space.names, factual, reach, data,
            mend=functools.partial(self._mended, factual), slack=self.slack, keeps=passes,
            price=functools.partial(self.cost.objectives, self.predictor.space, factual),
        )  # fmt: skip

    def _mended(self, factual: Mapping[str, float], points: Points) -> Points:
        return mended_points(self.rules, self.predictor.space, factual, points)

    def _keeps_rules(self, factual: Mapping[str, float], reach: Reach, width: int, point: Points) -> tuple[bool, int]:
        """Tell whether a point keeps the rules, and what it took to see it, in rows of ``width`` trees."""
        if not self.rules:
            return True, 0
        space = self.predictor.space
        named = dict(zip(space.names, point.tolist(), strict=True))
        if not all(reach[name].holds(value) for name, value in named.items()):
            return False, 0
        work = 0
        for rule in sorted(self.rules, key=lambda rule: rule.slow):
            work += rule.slow * max(_SLOW // width, 1)
            if rule.violation(space, factual, named) > 0:
                return False, work
        return True, work


def _ever_shorter(home: float, low: float, high: float) -> Points:
    """Return steps from home to either end of a wide column, each a quarter of the one before; none of another."""
    if high - low <= _WIDE:
        return np.zeros(0)
    shares = 0.25 ** np.arange(1, math.ceil(math.log(high - low, 4)))
    return home + np.concatenate([(low - home) * shares, (high - home) * shares])


def _corners(ladders: Ladders, trees: tuple[PrunedTree, ...]) -> Rungs:
    """Return the nearest point of each leaf's box: of a single tree, the best is the answer."""
    place = ladders.place
    nearest = functools.cache(ladders.nearest)
    boxes = [leaf.box for tree in trees for leaf in tree.leaves]
    points = np.tile(ladders.homes, (len(boxes), 1))
    for point, box in zip(points, boxes, strict=True):
        for name, admitted in box.items():
            point[place[name]] = nearest(name, admitted)
    return points


def _parts(order: Rungs) -> list[Rungs]:
    return np.array_split(order, max(1, math.ceil(len(order) / _ROWS)))


class _GridSearch:
    """Points on the ladders that reach the target and keep the rules, the cheapest per set of changed columns."""

    def __init__(
        self,
        ladders: Ladders,
        slack: Callable[[Points], NDArray[np.float64]],
        keeps_rules: Callable[[Points], tuple[bool, int]],
        rows: int,
        deadlines: tuple[float, float],
    ) -> None:
        self.ladders, self.slack, self.keeps_rules = ladders, slack, keeps_rules
        self.rows, self.deadlines = rows, deadlines
        self.found: dict[bytes, tuple[float, Rungs]] = {}
        self.least = math.inf

    def best(self) -> list[Rungs]:
        """Return what was found, cheapest first."""
        return [rungs for _, rungs in sorted(self.found.values(), key=lambda pair: pair[0])]

    def points(self) -> list[Points]:
        """Return what was found as coordinates, cheapest first."""
        return [self.ladders.values(rungs)[0] for rungs in self.best()]

    def on(self, ladders: Ladders) -> _GridSearch:
        """Return a search on other ladders, which hold some of the points found, from those points."""
        search = _GridSearch(ladders, self.slack, self.keeps_rules, self.rows, self.deadlines)
        points = self.points()
        held = [all(np.isin(v, rungs) for v, rungs in zip(p, ladders.rungs, strict=True)) for p in points]
        for point in (point for point, there in zip(points, held, strict=True) if there):
            rungs = np.array([int(np.searchsorted(r, v)) for r, v in zip(ladders.rungs, point, strict=True)])
            search._keep(rungs, float(ladders.price(rungs[None, :])[0]))
        return search

    def sift(self, points: Rungs) -> None:
        """Keep the cheapest of many points that reach the target."""
        prices = self.ladders.price(points)
        order = np.argsort(prices, kind="stable")
        order = order[prices[order] > 0]
        kept = 0
        for part in _parts(order):
            if kept >= _IMPROVED:
                break
            for k in part[self._slacks(points[part]) >= 0]:
                kept += self._keep(points[k], prices[k])
                if kept >= _IMPROVED or self.is_late:
                    break

    def climb(self, tastes: NDArray[np.float64]) -> None:
        """Leave the factual by the moves that gain most slack for their price, in several tastes at once."""
        ladders = self.ladders
        points = np.tile(ladders.homes, (len(tastes), 1))
        slacks, prices = self._slacks(points), ladders.price(points)
        for _ in range(_STEPS):
            if not len(points) or self.is_late:
                return
            trials, owner, column = ladders.moves(points)
            costs = ladders.price(trials)
            near = np.flatnonzero(costs < self.least * (1.0 - CHEAPER_START))
            trials, owner, column, costs = trials[near], owner[near], column[near], costs[near]
            reached = self._slacks(trials)
            self._keep_cheapest(trials, costs, reached)
            with np.errstate(invalid="ignore"):  # a decision that no score reaches misses it by infinity
                gain = reached - slacks[owner]
            worth = gain / np.maximum(costs - prices[owner], 1e-9 * np.maximum(costs, 1e-9)) * tastes[owner, column]
            worth[~(gain > 0) | (costs >= self.least * (1.0 - CHEAPER_START))] = -math.inf
            chosen = [int(np.argmax(np.where(owner == w, worth, -math.inf))) for w in np.unique(owner)]
            chosen = [k for k in chosen if worth[k] > -math.inf]
            points, slacks, prices, tastes = trials[chosen], reached[chosen], costs[chosen], tastes[owner[chosen]]

    def improve(self) -> None:
        """Take the best single move or exchange of two from the cheapest points, until there is none."""
        for rungs in self.best()[:_IMPROVED]:
            point, price = rungs, float(self.ladders.price(rungs[None, :])[0])
            for _ in range(_STEPS):
                better = None if self.is_late else self._cheaper(point, price)
                if better is None:
                    break
                point, price = better

    def _cheaper(self, point: Rungs, price: float) -> tuple[Rungs, float] | None:
        """Return a cheaper point one step nearer the factual, else one that exchanges a change for another."""
        for trials in (self.ladders.nearer(point), self.ladders.exchanges(point)):
            costs = self.ladders.price(trials)
            order = np.argsort(costs, kind="stable")
            order = order[(costs[order] < price * (1.0 - CHEAPER_START)) & (costs[order] > 0)]
            for part in _parts(order):
                for k in part[self._slacks(trials[part]) >= 0]:
                    if self._keep(trials[k], costs[k]):
                        return trials[k], float(costs[k])
        return None

    def _keep_cheapest(self, points: Rungs, prices: Points, slacks: Points) -> None:
        good = np.flatnonzero((slacks >= 0) & (prices > 0))
        for k in good[np.argsort(prices[good], kind="stable")][:_STEPS]:
            if self._keep(points[k], prices[k]) or self.is_late:
                return

    def _keep(self, rungs: Rungs, price: float) -> bool:
        kept, work = self.keeps_rules(self.ladders.values(rungs)[0])
        self.rows -= work
        if not kept:
            return False
        support = (rungs != self.ladders.homes).tobytes()
        if support not in self.found or price < self.found[support][0]:
            self.found[support] = (float(price), rungs)
        self.least = min(self.least, float(price))
        return True

    def _slacks(self, points: Rungs) -> NDArray[np.float64]:
        slacks = np.full(len(points), -math.inf)
        for first in range(0, len(points), _ROWS):
            if self.is_late:
                break
            part = slice(first, first + _ROWS)
            self.rows -= len(points[part])
            slacks[part] = self.slack(self.ladders.values(points[part]))
        return slacks

    @property
    def is_late(self) -> bool:
        """Whether the work or the time is used up."""
        return self.rows <= 0 or time.perf_counter() > self.deadlines[0 if self.found else 1]
