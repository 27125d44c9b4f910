"""A good answer before the search: near rows that the model favours, walked back towards the factual.

Nothing found here is trusted: it is a start for the solver and a bound on how far a better answer can be.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.costs.cost import move_of
from ceopt.formulations.predictors.pruning import NumberCut, prune
from ceopt.formulations.predictors.representation import TreeEnsemble
from ceopt.formulations.predictors.routing import route
from ceopt.formulations.space.reach import Levels, Reach

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.predictors.predictor import Predictor

__all__ = ["StartSearch"]

Points = NDArray[np.float64]

_SAMPLES = 1500
_POLISHED = 8
_ROUNDS = 60


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
        self, factual: Mapping[str, float], reach: Reach, data: Points | None, *, seed: int, deadline: float
    ) -> list[tuple[float, dict[str, float]]]:
        """Return points with their costs, cheapest first, each with another set of changed columns."""
        space, names = self.predictor.space, self.predictor.space.names
        x0 = np.array([factual[name] for name in names])
        moving = [j for j, name in enumerate(names) if not reach[name].is_point]
        if not moving:
            return []
        ladders = self._ladders(reach, x0)
        rng = np.random.default_rng(seed)
        pools = [self._random(x0, moving, ladders, rng)]
        if data is not None and len(data):
            pools.append(self._projected(data, x0, reach))
        candidates = np.unique(np.vstack(pools), axis=0)
        prices = self._price_table(candidates, x0)
        order = np.argsort(prices, kind="stable")
        order = order[prices[order] > 0]
        good = self.slack(candidates[order]) >= 0 if len(order) else np.zeros(0, dtype=bool)
        found: dict[tuple[bool, ...], tuple[float, Points]] = {}
        polished = 0
        for k in order[good]:
            if polished >= _POLISHED or time.perf_counter() > deadline:
                break
            if not self._keeps_rules(factual, candidates[k]):
                continue
            polished += 1
            price, point = self._walk_back(candidates[k], x0, ladders, factual, deadline)
            support = tuple((point != x0).tolist())
            if support not in found or price < found[support][0]:
                found[support] = (price, point)
        ranked = sorted(found.values(), key=lambda item: item[0])
        return [(self.cost.value(space, factual, self._named(point)), self._named(point)) for _, point in ranked]

    # ---- candidates --------------------------------------------------------------------------------------------------
    def _ladders(self, reach: Reach, x0: Points) -> list[Points]:
        """Return, per column, the values worth trying: ends of the model's cells, all levels, or even steps."""
        names = self.predictor.space.names
        ends: dict[str, set[float]] = {name: set() for name in names}
        if isinstance(self.predictor.core, TreeEnsemble):
            for tree in prune(route(self.predictor), reach):
                for cut in tree.cuts:
                    if isinstance(cut, NumberCut):
                        ends[cut.name].update(value for value in cut.key if math.isfinite(value))
        ladders = []
        for name, home in zip(names, x0.tolist(), strict=True):
            part = reach[name]
            if isinstance(part, Levels):
                values = set(map(float, part.ranks))
            elif isinstance(self.predictor.core, TreeEnsemble):
                values = ends[name]
            else:
                low = part.lower if math.isfinite(part.lower) else home - 10.0 * max(1.0, abs(home))
                high = part.upper if math.isfinite(part.upper) else home + 10.0 * max(1.0, abs(home))
                values = {part.clip(value) for value in np.linspace(low, high, 33).tolist()}
            ladders.append(np.array(sorted(values | {home})))
        return ladders

    @staticmethod
    def _random(x0: Points, moving: list[int], ladders: list[Points], rng: np.random.Generator) -> Points:
        """Return points that change one to all columns to values of their ladders."""
        points = np.tile(x0, (_SAMPLES, 1))
        share = rng.uniform(0.0, 1.0, size=_SAMPLES)
        for j in moving:
            changed = rng.uniform(size=_SAMPLES) < np.maximum(share, 1.0 / len(moving))
            points[changed, j] = rng.choice(ladders[j], size=int(changed.sum()))
        return points

    def _projected(self, data: Points, x0: Points, reach: Reach) -> Points:
        """Return the rows of the data, moved into the person's reach column by column."""
        points = data.copy()
        for j, name in enumerate(self.predictor.space.names):
            part = reach[name]
            if isinstance(part, Levels):
                points[~np.isin(points[:, j], part.ranks), j] = x0[j]
            elif part.is_point:
                points[:, j] = part.lower
            else:
                points[:, j] = np.clip(points[:, j], part.lower, part.upper)
                if part.step is not None:
                    points[:, j] = [part.clip(value) for value in points[:, j].tolist()]
        return points

    # ---- improvement -------------------------------------------------------------------------------------------------
    def _walk_back(
        self, point: Points, x0: Points, ladders: list[Points], factual: Mapping[str, float], deadline: float
    ) -> tuple[float, Points]:
        """Take the best single step towards the factual that keeps the target and the rules, until there is none."""
        price = float(self._price_table(point[None, :], x0)[0])
        for _ in range(_ROUNDS):
            if time.perf_counter() > deadline:
                break
            steps = []
            for j in np.flatnonzero(point != x0):
                low, high = sorted((point[j], x0[j]))
                between = ladders[j][(ladders[j] >= low) & (ladders[j] <= high) & (ladders[j] != point[j])]
                block = np.tile(point, (len(between), 1))
                block[:, j] = between
                steps.append(block)
            if not steps:
                break
            trial = np.vstack(steps)
            costs = self._price_table(trial, x0)
            trial, costs = trial[costs < price], costs[costs < price]
            good = self.slack(trial) >= 0 if len(trial) else np.zeros(0, dtype=bool)
            trial, costs = trial[good], costs[good]
            for k in np.argsort(costs, kind="stable"):
                if self._keeps_rules(factual, trial[k]):
                    point, price = trial[k], float(costs[k])
                    break
            else:
                break
        return price, point

    def _price_table(self, points: Points, x0: Points) -> NDArray[np.float64]:
        """Return the cost of many points at once (the objective's, where the cost is a root of it)."""
        space = self.predictor.space
        columns = []
        for j, (feature, (name, prices)) in enumerate(zip(space, self.cost.prices(space).items(), strict=True)):
            assert feature.name == name  # noqa: S101 - both in the space's order
            values, back = np.unique(points[:, j], return_inverse=True)
            moves = [move_of(feature, x0[j], value) for value in values.tolist()]
            table = np.array([sum(price.of(move) for price in prices) for move in moves])
            columns.append(table[back])
        stacked = np.stack(columns, axis=1)
        return np.asarray(stacked.sum(axis=1) if self.cost.additive else stacked.max(axis=1))

    def _keeps_rules(self, factual: Mapping[str, float], point: Points) -> bool:
        if not self.rules:
            return True
        named, space = self._named(point), self.predictor.space
        return all(rule.violation(space, factual, named) <= 0 for rule in self.rules)

    def _named(self, point: Points) -> dict[str, float]:
        return dict(zip(self.predictor.space.names, point.tolist(), strict=True))
