"""The cost cut-off: no answer worth finding costs more than one that is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.costs.base import prices_of
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.formulations.tolerances import BUDGET_SLACK

if TYPE_CHECKING:
    from ceopt.formulations.columns import Price
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["CostCutoff"]

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CostCutoff:
    r"""A cost that is not to be exceeded, and what it rules out.

    .. math::
        \sum_j \text{price}_j(x_j - x^0_j) \le U

    for a cost that adds up over columns, and :math:`\text{price}_j(x_j - x^0_j) \le U` for every other. Exact: with U
    the cost of an answer in hand, the optimum does not move.

    Parameters
    ----------
    space, factual
        The columns, and the person in coordinates.
    cost
        Whose prices count.
    budget
        The U, as an objective value of the program (see ``cost.to_objective``).
    """

    space: FeatureSpace
    factual: Mapping[str, float]
    cost: AbstractCost
    budget: float
    _prices: dict[str, tuple[Price, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", self.budget + BUDGET_SLACK * max(1.0, self.budget))
        object.__setattr__(self, "_prices", self.cost.prices(self.space))

    def prices_of(self, name: str, values: Floats) -> Floats:
        """Return what it costs that a column takes each of some values, (n,)."""
        return prices_of(self._prices[name], self.space[name], self.factual[name], values)

    def _affordable(self, name: str, levels: Levels) -> tuple[int, ...]:
        """Return the ranks in reach whose own move is within the budget."""
        prices = self.prices_of(name, np.array(levels.ranks, dtype=np.float64))
        return tuple(rank for rank, price in zip(levels.ranks, prices.tolist(), strict=True) if price <= self.budget)

    def narrowed(self, reach: Reach) -> dict[str, Interval | Levels]:
        """Return the reach without the values whose own move costs more than the budget."""
        narrow: dict[str, Interval | Levels] = {}
        for feature in self.space:
            name = feature.name
            part = reach[name]
            if isinstance(part, Levels):
                narrow[name] = Levels(self._affordable(name, part))
            else:
                narrow[name] = part.narrowed(*self._ends(name))
        return narrow

    def is_beyond(self, reach: Reach) -> bool:
        """Tell whether some column has no value in the reach whose own move is within the budget."""
        for name, part in reach.items():
            if isinstance(part, Levels):
                if not self._affordable(name, part):
                    return True
            else:
                lower, upper = self._ends(name)
                if part.ceil(lower) > part.floor(upper):
                    return True
        return False

    def _ends(self, name: str) -> tuple[float, float]:
        """Return the least and the greatest number whose own move is within the budget."""
        x0 = self.factual[name]
        down, up = _room(self._prices[name], self.budget)
        return _from(x0, -down), _from(x0, up)

    def greatest_gain(
        self, slopes: Mapping[str, Floats], tables: Mapping[str, Floats], reach: Mapping[str, Interval | Levels]
    ) -> Floats:
        r"""Return by how much each of K functions can rise above its value at the factual within the budget, (K,).

        The functions add up a linear function of each number and a table over each column of levels. The bound is the
        optimum of the continuous knapsack

        .. math:: \max \sum_j g_j t_j \quad\text{s.t.}\quad \sum_j c_j t_j \le U, \quad 0 \le t \le 1,

        whose items are the moves: a number's to the end of its reach, and the steps of the concave envelope of a table
        over the prices of its levels. For linear prices and at most two prices of levels it is exact.

        Parameters
        ----------
        slopes
            (K,) per numeric column, in raw units.
        tables
            (K, levels) per column of levels.
        reach
            Values in reach; of a number finite where its slope is not 0.
        """
        gains: list[Floats] = []
        costs: list[Floats] = []
        for name, slope in slopes.items():
            part = reach[name]
            x0 = self.factual[name]
            assert isinstance(part, Interval)  # noqa: S101 - slopes exist for numbers only
            rooms = np.where(slope > 0, part.upper - x0, part.lower - x0)
            prices = np.where(slope > 0, self._linear(name, part.upper), self._linear(name, part.lower))
            gains.append(np.where(slope == 0, 0.0, np.maximum(slope * np.where(slope == 0, 0.0, rooms), 0.0))[:, None])
            costs.append(prices[:, None])
        for name, table in tables.items():
            levels = reach[name]
            assert isinstance(levels, Levels)  # noqa: S101 - tables exist for levels only
            gain, cost = self._of_levels(name, table, levels)
            gains.append(gain)
            costs.append(cost)
        if not gains:
            return np.zeros(0)
        gain = np.concatenate(gains, axis=1)
        cost = np.concatenate(costs, axis=1)
        return _knapsack(gain, cost, self.budget) if self.cost.additive else gain.sum(axis=1)

    def _linear(self, name: str, end: float) -> float:
        """Return a price of the move to an end of which every part of the move costs at least its share."""
        move = end - self.factual[name]
        if not math.isfinite(move):
            return 0.0
        return sum(price.of(move) for price in self._prices[name] if price.kind != "square")

    def _of_levels(self, name: str, table: Floats, levels: Levels) -> tuple[Floats, Floats]:
        """Return the steps of the concave envelope of a table's gain over the price: (K, steps) gains and costs."""
        ranks = np.array(levels.ranks)
        home = int(self.factual[name])
        prices = self.prices_of(name, ranks.astype(np.float64))
        rise = table[:, ranks] - table[:, [home]]
        known, place = np.unique(prices, return_inverse=True)
        best = np.stack([rise[:, place == k].max(axis=1) for k in range(len(known))], axis=1)
        if known[0] > 0.0:  # staying is always possible, and free
            known = np.concatenate([[0.0], known])
            best = np.concatenate([np.zeros((len(best), 1)), best], axis=1)
        best = np.maximum(best, 0.0)
        if len(known) <= 2:
            first = best[:, :1]
            more = np.maximum(best[:, 1:] - first, 0.0)
            gain = np.concatenate([first, more], axis=1)
            return gain, np.tile(known, (len(best), 1))
        steps = [_envelope(known, row) for row in best]
        return np.array([gain for gain, _ in steps]), np.array([cost for _, cost in steps])


def _envelope(prices: Floats, gains: Floats) -> tuple[list[float], list[float]]:
    """Return (gains, costs) of the steps of the least concave, non-decreasing function above some points."""
    hull: list[tuple[float, float]] = []
    for point in zip(prices.tolist(), np.maximum.accumulate(gains).tolist(), strict=True):
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    count = len(prices)
    rises = [hull[0][1], *(b[1] - a[1] for a, b in pairwise(hull))]
    costs = [hull[0][0], *(b[0] - a[0] for a, b in pairwise(hull))]
    rest = [0.0] * (count - len(hull))
    return rises + rest, costs + rest


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) <= (c[1] - b[1]) * (b[0] - a[0])


def _knapsack(gain: Floats, cost: Floats, budget: float) -> Floats:
    """Return the optimum of K continuous knapsacks, items (K, m) with gains at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(gain > 0, gain / cost, -1.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    gain = np.take_along_axis(gain, order, axis=1)
    cost = np.take_along_axis(cost, order, axis=1)
    before = np.cumsum(cost, axis=1) - cost
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(cost > 0, np.clip((budget - before) / cost, 0.0, 1.0), 1.0)
    return np.asarray(np.where(gain > 0, gain * share, 0.0).sum(axis=1))


def _room(prices: Sequence[Price], budget: float) -> tuple[float, float]:
    """Return how far (down, up) a move may go: what is fixed about it is paid first, then each price has the rest."""
    fixed = [price for price in prices if price.kind == "fixed"]
    rest = (budget - sum(p.down for p in fixed), budget - sum(p.up for p in fixed))
    limits = []
    for side in (0, 1):
        if rest[side] < 0:
            limits.append(0.0)
            continue
        far = []
        for p in prices:
            if p.kind != "fixed":
                far.append(p.farthest(rest[side])[side])
        limits.append(min(far, default=math.inf))
    return limits[0], limits[1]


def _from(x0: float, move: float) -> float:
    """Return ``x0 + move``, rounded outwards."""
    if math.isinf(move):
        return move
    if move:
        return math.nextafter(x0 + move * (1.0 + BUDGET_SLACK), math.copysign(math.inf, move))
    return x0
