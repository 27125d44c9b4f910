"""What a known answer rules out: values and leaves that already cost more than it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ceopt.formulations.costs.cost import move_of
from ceopt.formulations.space.reach import Interval, Levels, Reach

if TYPE_CHECKING:
    from ceopt.formulations.coordinates import Price
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.predictors.pruning import Box
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["too_far", "within_budget"]

#: The budget is widened by this share before anything is ruled out, for the rounding of costs.
_SLACK = 1e-9


def within_budget(
    space: FeatureSpace, factual: Mapping[str, float], reach: Reach, cost: AbstractCost, budget: float
) -> dict[str, Interval | Levels]:
    r"""Return the reach without the values whose own move costs more than ``budget``.

    A cost is at least what any one column's move costs alone, so with an answer of cost U in hand

    .. math:: \text{price}_j(x_j - x^0_j) \le U \qquad \forall j

    holds at every answer that is as good. Exact: the optimum does not move.
    """
    budget += _SLACK * max(1.0, budget)
    prices = cost.prices(space)
    narrowed: dict[str, Interval | Levels] = {}
    for feature in space:
        part, x0 = reach[feature.name], factual[feature.name]
        if isinstance(part, Levels):
            near = (k for k in part.ranks if sum(p.of(move_of(feature, x0, k)) for p in prices[feature.name]) <= budget)
            narrowed[feature.name] = Levels(tuple(near))
        else:
            down, up = _room(prices[feature.name], budget)
            narrowed[feature.name] = part.narrowed(_from(x0, -down), _from(x0, up))
    return narrowed


def _room(prices: tuple[Price, ...], budget: float) -> tuple[float, float]:
    """Return how far (down, up) a move may go: what is fixed about it is paid first, then each price has the rest."""
    fixed = [price for price in prices if price.kind == "fixed"]
    rest = (budget - sum(p.down for p in fixed), budget - sum(p.up for p in fixed))
    limits = []
    for side in (0, 1):
        if rest[side] < 0:
            limits.append(0.0)
            continue
        far = [p.farthest(rest[side])[side] for p in prices if p.kind != "fixed"]
        limits.append(min(far, default=math.inf))
    return limits[0], limits[1]


def _from(x0: float, move: float) -> float:
    """Return ``x0 + move``, rounded outwards."""
    if math.isinf(move):
        return move
    return math.nextafter(x0 + move * (1.0 + _SLACK), math.copysign(math.inf, move)) if move else x0


def too_far(
    space: FeatureSpace, factual: Mapping[str, float], cost: AbstractCost, budget: float
) -> Callable[[Box], bool]:
    """Return a test for leaves: whether the nearest point of a leaf's box costs more than ``budget``."""
    budget += _SLACK * max(1.0, budget)
    prices = cost.prices(space)
    known: dict[tuple[str, object], float] = {}

    def least(name: str, admitted: tuple[float, float] | frozenset[int]) -> float:
        key = (name, admitted)
        if key not in known:
            x0, feature = factual[name], space[name]
            values = admitted if isinstance(admitted, frozenset) else (min(max(x0, admitted[0]), admitted[1]),)
            known[key] = min(sum(p.of(move_of(feature, x0, v)) for p in prices[name]) for v in values)
        return known[key]

    def test(box: Box) -> bool:
        costs = [least(name, admitted) for name, admitted in box.items()]
        return (sum(costs) if cost.additive else max(costs, default=0.0)) > budget

    return test
