"""The cells that one person may come to, column by column, each with its cheapest value and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints import MaxChanges
from ceopt.formulations.constraints.diversity.diversity import is_counted, read_as_numbers
from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Changes, Linf, Sum
from ceopt.formulations.costs.base import CostCutoff, prices_of
from ceopt.formulations.predictors.embed.reachable_leaves import cuts_in_reach, route
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.reachable import Interval, Levels, Reach

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.query.prepare import Prepared

__all__ = ["Allowance", "CellColumn", "allowances_of", "cell_columns", "cell_of", "has_a_cheapest_point", "is_in_cell"]

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
    cell = []
    for column in columns:
        value = point[column.name]
        is_inside = (column.low <= value) & (value <= column.high)
        cell.append(int(is_inside.argmax()))
    return tuple(cell)


def is_in_cell(columns: Sequence[CellColumn], cell: Sequence[int], point: Mapping[str, float]) -> bool:
    """Tell whether a cell holds a point."""
    for column, place in zip(columns, cell, strict=True):
        if not column.low[place] <= point[column.name] <= column.high[place]:
            return False
    return True


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
    """Return what the cells of a walk may use up: the budget first, then the changes that each rule allows."""
    settings = prepared.settings
    allowances = [Allowance(tuple(column.prices for column in columns), budget, settings.cost.additive)]
    for rule in settings.rules:
        if not isinstance(rule, MaxChanges):
            continue
        changes = []
        for column in columns:
            is_category = prepared.space[column.name].kind == "categorical"
            count = 2.0 if is_category and rule.count == "columns" else 1.0
            changes.append((column.values != factual[column.name]) * count)
        allowances.append(Allowance(tuple(changes), float(rule.k)))
    return allowances


def has_a_cheapest_point(prepared: Prepared, reach: Reach) -> bool:
    """Tell whether the cheapest point of every cell is found column by column: the value nearest to the factual.

    It is where the score is constant on cells (trees, and linear parts that read nothing but levels and whole numbers),
    where the cost never falls as one column moves further away, and where no rule needs much time to be checked.
    """
    predictor = prepared.predictor
    settings = prepared.settings
    if any(not isinstance(part.core, TreeEnsemble | Affine) for part in predictor.parts):
        return False
    for name in read_as_numbers(predictor):
        if not reach[name].is_point and not is_counted(predictor.space[name]):
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
    prices = cost.prices(space)
    numbers = read_as_numbers(predictor)
    ends = _ends(predictor, reach)
    columns = []
    for feature in space:
        name = feature.name
        part = reach[name]
        here = near[name]
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
        values = np.clip(factual[name], low, high)
        own_prices = prices_of(prices[name], feature, factual[name], values)
        kept = np.flatnonzero(own_prices <= budget)
        kept = kept[np.argsort(own_prices[kept], kind="stable")]
        columns.append(CellColumn(name, low[kept], high[kept], values[kept], own_prices[kept]))
    return tuple(columns)


def _ends(predictor: Predictor, reach: Reach) -> dict[str, tuple[Floats, Floats]]:
    """Return the least and greatest values of the cells that the model's splits make of each number."""
    keys: dict[str, set[tuple[float, float]]] = {}
    for part in predictor.forests:
        for cut in cuts_in_reach(route(part), reach):
            keys.setdefault(cut.name, set()).add(cut.key)
    ends: dict[str, tuple[Floats, Floats]] = {}
    for name, reachable in reach.items():
        if isinstance(reachable, Interval):
            ends[name] = _between(sorted(keys.get(name, ())), reachable)
    return ends


def _between(keys: Sequence[tuple[float, float]], part: Interval) -> tuple[Floats, Floats]:
    """Return the least and greatest values of the cells between splits, given in order as (last left, first right).

    A cell begins with the greatest of all firsts up to it and ends with the least of all lasts from it on, so that it
    lies on the right side of every split even where two of them overlap.
    """
    firsts = [right for _, right in keys]
    lasts = [left for left, _ in keys]
    low = np.maximum.accumulate([part.lower, *firsts])
    high = np.minimum.accumulate([*lasts, part.upper][::-1])[::-1]
    full = low <= high  # two splits of a published instance may lie closer than its gap
    return low[full], high[full]


def _members(part: Interval) -> Floats | None:
    """Return the values of a grid, or None where there are too many; computed as the interval computes them."""
    assert part.step is not None  # noqa: S101 - has_a_cheapest_point has seen to it
    if not math.isfinite(part.upper - part.lower) or (part.upper - part.lower) / part.step >= _MOST_VALUES:
        return None
    first = round((part.lower - part.anchor) / part.step)
    last = round((part.upper - part.anchor) / part.step)
    return part.grid.many(np.arange(first, last + 1, dtype=np.float64))
