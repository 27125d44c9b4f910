"""The cells that one person may come to, column by column, each with its cheapest value and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints import MaxChanges
from ceopt.formulations.constraints.diversity.other_cells import read_as_numbers
from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Changes, Linf, Sum
from ceopt.formulations.costs.base import price_table
from ceopt.formulations.costs.cost_cutoff import CostCutoff
from ceopt.formulations.predictors.embed.trees.reachable_leaves import cuts_in_reach, route
from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.formulations.predictors.representation.trees import TreeEnsemble
from ceopt.formulations.space.reachable import Interval, Levels, Reach

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.query.prepare import Prepared

__all__ = ["Allowance", "CellColumn", "allowances_of", "cell_columns", "cell_of", "has_a_cheapest_point"]

Floats: TypeAlias = NDArray[np.float64]
#: Whole numbers of one column beyond which its values are not listed.
_MOST_VALUES = 50_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellColumn:
    """The cells of one column that the budget allows, cheapest first.

    Parameters
    ----------
    name
        The column.
    low, high
        Least and greatest value of each cell, (k,); of a level both are its rank.
    values, prices
        The cheapest value of each cell, and what it costs, in units of the cost's objective.
    """

    name: str
    low: Floats
    high: Floats
    values: Floats
    prices: Floats

    def __len__(self) -> int:
        return len(self.prices)

    def part(self, place: int, reach: Reach) -> Interval | Levels:
        """Return what the column may take inside a cell."""
        part = reach[self.name]
        if isinstance(part, Levels):
            return Levels((int(self.values[place]),))
        return part.narrowed(float(self.low[place]), float(self.high[place]))


def cell_of(columns: Sequence[CellColumn], point: Mapping[str, float]) -> tuple[int, ...]:
    """Return the cell that holds a point, as one position per column."""
    holds = [(column.low <= point[column.name]) & (point[column.name] <= column.high) for column in columns]
    return tuple(int(held.argmax()) for held in holds)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Allowance:
    """Something of which the columns together may use up so much: the cost, or a number of changes.

    Parameters
    ----------
    used
        What the cheapest value of each cell uses of it, (k,) per column; no other value of the cell uses less.
    most
        What may be used in all.
    additive
        Whether the columns' uses add up; else the greatest counts.
    """

    used: tuple[Floats, ...]
    most: float
    additive: bool = True

    def left(self, spent: Floats) -> Floats:
        """Return what is left for the other columns where some have used up ``spent``."""
        return self.most - spent if self.additive else np.full(len(spent), self.most)

    def together(self, spent: Floats, used: Floats) -> Floats:
        """Return what two lots of columns use."""
        return spent + used if self.additive else np.maximum(spent, used)


def allowances_of(
    prepared: Prepared, factual: Mapping[str, float], columns: Sequence[CellColumn], budget: float
) -> list[Allowance]:
    """Return what a walk over cells has to go round with: the budget, and the changes that each rule allows."""
    settings, space = prepared.settings, prepared.space
    found = [Allowance(tuple(column.prices for column in columns), budget, settings.cost.additive)]
    for rule in settings.rules:
        if isinstance(rule, MaxChanges):
            double = {f.name for f in space if f.kind == "categorical" and rule.count == "columns"}
            moved = [(c.values != factual[c.name]) * (2.0 if c.name in double else 1.0) for c in columns]
            found.append(Allowance(tuple(moved), float(rule.k)))
    return found


def has_a_cheapest_point(prepared: Prepared, reach: Reach) -> bool:
    """Tell whether the cheapest point of every cell is found column by column: the value nearest to the factual.

    It is where the score is constant on cells (trees, and linear parts that read nothing but levels and whole numbers),
    where the cost never falls as one column moves further away, and where no rule needs much time to be checked.
    """
    predictor, settings = prepared.predictor, prepared.settings
    if any(not isinstance(part.core, TreeEnsemble | Affine) for part in predictor.parts):
        return False
    moving = [name for name in read_as_numbers(predictor) if not reach[name].is_point]
    if any(getattr(reach[name], "step", None) is None for name in moving):
        return False
    return _never_falls(settings.cost) and not any(rule.slow for rule in settings.rules)


def _never_falls(cost: AbstractCost) -> bool:
    if isinstance(cost, Sum):
        return all(_never_falls(term) for _, term in cost.terms)
    return isinstance(cost, L0 | L1 | L2 | Linf | Changes)


def cell_columns(
    predictor: Predictor, cost: AbstractCost, factual: Mapping[str, float], reach: Reach, budget: float
) -> tuple[CellColumn, ...] | None:
    """Return every column's cells whose own price is at most ``budget`` (an objective value of the cost).

    None where a column has more whole numbers within the budget than can be listed.
    """
    space = predictor.space
    near = CostCutoff(space, factual, cost, budget).narrowed(reach)
    numbers, ends = read_as_numbers(predictor), _ends(predictor, reach)
    found: list[tuple[Feature, Floats, Floats, Floats]] = []
    for feature in space:
        name, part, here = feature.name, reach[feature.name], near[feature.name]
        if isinstance(part, Levels):
            low = high = np.array(part.ranks, dtype=np.float64)
        elif name in numbers and not part.is_point:
            assert isinstance(here, Interval)  # noqa: S101 - as the reach that it is a part of
            values = _members(here)
            if values is None:
                return None
            low = high = values
        else:
            low, high = ends[name]
        found.append((feature, low, high, np.clip(factual[name], low, high)))
    return tuple(_priced(predictor, cost, factual, budget, *column) for column in found)


def _priced(
    predictor: Predictor,
    cost: AbstractCost,
    factual: Mapping[str, float],
    budget: float,
    feature: Feature,
    *cells: Floats,
) -> CellColumn:
    space = predictor.space
    low, high, values = cells
    place = space.names.index(feature.name)
    points = np.tile([factual[name] for name in space.names], (len(values), 1))
    points[:, place] = values
    prices = price_table(cost.prices(space), space, factual, points)[:, place]
    kept = np.flatnonzero(prices <= budget)
    kept = kept[np.argsort(prices[kept], kind="stable")]
    return CellColumn(feature.name, low[kept], high[kept], values[kept], prices[kept])


def _ends(predictor: Predictor, reach: Reach) -> dict[str, tuple[Floats, Floats]]:
    """Return the least and greatest values of the cells that the model's splits make of each number."""
    keys: dict[str, set[tuple[float, float]]] = {}
    for part in predictor.forests:
        for cut in cuts_in_reach(route(part), reach):
            keys.setdefault(cut.name, set()).add(cut.key)
    return {name: _between(sorted(keys.get(name, ())), p) for name, p in reach.items() if isinstance(p, Interval)}


def _between(keys: Sequence[tuple[float, float]], part: Interval) -> tuple[Floats, Floats]:
    low = np.array(list(accumulate((right for _, right in keys), max, initial=part.lower)))
    high = np.array(list(accumulate((left for left, _ in reversed(keys)), min, initial=part.upper)))[::-1]
    full = low <= high  # two splits of a published instance may lie closer than its gap
    return low[full], high[full]


def _members(part: Interval) -> Floats | None:
    """Return the values of a grid, or None where there are too many; computed as the interval computes them."""
    assert part.step is not None  # noqa: S101 - has_a_cheapest_point has seen to it
    if not math.isfinite(part.upper - part.lower) or (part.upper - part.lower) / part.step >= _MOST_VALUES:
        return None
    first, last = (round((end - part.anchor) / part.step) for end in (part.lower, part.upper))
    return part.anchor + np.arange(first, last + 1, dtype=np.float64) * part.step
