"""Value grids: for one person, the values of each column that are worth trying.

A column's grid holds, ascending, the factual's value and those that the search for a start may give it. A point of the
grid is written as its indices, one a column, so that a step along a column is a step of its index.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.rule import mended_points, mends_points
from ceopt.formulations.costs.base import prices_of
from ceopt.formulations.space.reachable import Interval, Levels, Reach

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.predictors.embed.trees.reachable_leaves import NumberCut
    from ceopt.formulations.predictors.representation.predictor import Predictor

__all__ = ["ValueGrid", "grid_around"]

Indices = NDArray[np.intp]
Values = NDArray[np.float64]

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
    columns: tuple[Values, ...]
    prices: tuple[Values, ...]
    factual: Indices
    joint_price: Callable[[Values], Values] | None = None
    mend: Callable[[Values], Values] | None = None

    def coordinates(self, points: Indices) -> Values:
        """Return coordinates (n, d) of points given as indices (n, d) or (d,)."""
        points = np.atleast_2d(points)
        coordinates = np.stack([values[points[:, j]] for j, values in enumerate(self.columns)], axis=1)
        return coordinates if self.mend is None else self.mend(coordinates)

    def price(self, points: Indices) -> Values:
        """Return the prices of points (n, d)."""
        if self.joint_price is not None:
            return self.joint_price(self.coordinates(points))
        total = np.zeros(len(points))
        for j, prices in enumerate(self.prices):
            total = total + prices[points[:, j]]
        return total

    # ---- points ------------------------------------------------------------------------------------------------------
    def next_to(self, coordinates: Values) -> Indices:
        """Return the points next to rows (n, d), on the factual's side: a tree's cell stays the same."""
        points = np.empty(coordinates.shape, dtype=np.intp)
        for j, values in enumerate(self.columns):
            wanted = coordinates[:, j]
            below = np.searchsorted(values, wanted, side="right") - 1
            above = np.searchsorted(values, wanted, side="left")
            toward_factual = np.where(wanted > values[self.factual[j]], below, above)
            points[:, j] = np.clip(toward_factual, 0, len(values) - 1)
        return points

    def at(self, coordinates: Values) -> Indices | None:
        """Return the indices of one point's coordinates (d,), or None where the grid lacks a value of it."""
        point = np.empty(len(self.columns), dtype=np.intp)
        for j, values in enumerate(self.columns):
            if not np.isin(coordinates[j], values):
                return None
            point[j] = np.searchsorted(values, coordinates[j])
        return point

    def cheapest_index(self, name: str, admitted: tuple[float, float] | frozenset[int]) -> int:
        """Return the index of a column's cheapest value that a leaf's box admits; the factual's if it admits none."""
        j = self.names.index(name)
        values = self.columns[j]
        prices = self.prices[j]
        if isinstance(admitted, frozenset):
            inside = np.isin(values, list(admitted))
        else:
            inside = (values >= admitted[0]) & (values <= admitted[1])
        if not inside.any():
            return int(self.factual[j])
        return int(np.argmin(np.where(inside, prices, np.inf)))

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
    def single_changes(self, points: Indices) -> tuple[Indices, Indices, Indices]:
        """Return all points that differ from one of ``points`` in one column, which of them it was, and the column.

        One row a point and a value of a column, all at once, less the rows that give a column the value it has.
        """
        lengths = [len(values) for values in self.columns]
        column = np.repeat(np.arange(len(lengths)), lengths)
        index = np.concatenate([np.arange(length) for length in lengths])
        trials = np.repeat(points, len(column), axis=0)
        owner = np.repeat(np.arange(len(points)), len(column))
        columns = np.tile(column, len(points))
        indices = np.tile(index, len(points))
        rows = np.arange(len(trials))
        is_change = trials[rows, columns] != indices
        trials[rows, columns] = indices
        return trials[is_change], owner[is_change], columns[is_change]

    def nearer(self, point: Indices) -> Indices:
        """Return the points that bring one column nearer to the factual."""
        trials, _, column = self.single_changes(point[None, :])
        after = trials[np.arange(len(trials)), column]
        before = point[column]
        factual = self.factual[column]
        is_between = (np.minimum(before, factual) <= after) & (after <= np.maximum(before, factual))
        return trials[is_between]

    def exchanges(self, point: Indices) -> Indices:
        """Return the points that take one change back, wholly or by one index, and change one column otherwise.

        A point that no single change makes cheaper may still be a dear combination: what one column gives back,
        another may make up for at a lower price.
        """
        changed = np.flatnonzero(point != self.factual)
        bases = np.tile(point, (2 * len(changed), 1))
        wholly = np.arange(len(changed))
        by_one = len(changed) + wholly
        bases[wholly, changed] = self.factual[changed]
        bases[by_one, changed] += np.sign(self.factual - point)[changed]
        return self.single_changes(np.unique(bases, axis=0))[0]


def grid_around(
    predictor: Predictor,
    cost: AbstractCost,
    rules: Sequence[AbstractRule],
    *,
    factual: Mapping[str, float],
    reach: Reach,
    cuts: Sequence[NumberCut],
    through: Sequence[Values] = (),
) -> ValueGrid:
    """Return, per column, the values worth trying: ends of the model's cells, all levels, or even steps.

    With points ``through``, the even steps lead from the factual to their values instead of from end to end.
    """
    space = predictor.space
    prices = cost.prices(space)
    ends = _cell_ends(cuts, factual)
    columns = []
    column_prices = []
    indices = []
    for j, feature in enumerate(space):
        part = reach[feature.name]
        start = factual[feature.name]
        values = {start, *ends.get(feature.name, ())}
        if isinstance(part, Levels):
            values = {start, *map(float, part.ranks)}
        elif not predictor.is_trees and through:
            values = {start, *_steps_to(part, start, [float(point[j]) for point in through])}
        elif not predictor.is_trees:
            values |= _steps_across(part, start)
        column = np.array(sorted(values))
        columns.append(column)
        column_prices.append(prices_of(prices[feature.name], feature, start, column))
        indices.append(int(np.searchsorted(column, start)))
    is_mended = any(mends_points(rule) for rule in rules)
    mend = functools.partial(mended_points, rules, space, factual) if is_mended else None
    joint_price = functools.partial(cost.objectives, space, factual) if cost.is_joint or is_mended else None
    return ValueGrid(tuple(space.names), tuple(columns), tuple(column_prices), np.array(indices), joint_price, mend)


def _cell_ends(cuts: Sequence[NumberCut], factual: Mapping[str, float]) -> dict[str, set[float]]:
    """Return, per column, of each of the model's cells the value nearest to the factual.

    A model of trees is the same all over a cell, so that a second value of one cell would only cost more. Next to a cut
    lie the last value left of it and the first right of it: one of them is the nearest of its cell, namely the one on
    the far side from the factual; both are where the factual lies between them.
    """
    ends: dict[str, set[float]] = {}
    for cut in cuts:
        last_left, first_right = cut.key
        start = factual[cut.name]
        values = ends.setdefault(cut.name, set())
        if first_right <= start:
            values.add(last_left)
        elif last_left >= start:
            values.add(first_right)
        else:
            values.update(cut.key)
    return ends


def _steps_to(part: Interval, start: float, goals: Sequence[float]) -> set[float]:
    """Return even steps from ``start`` to each of the goals, and the goals themselves."""
    steps = np.linspace(start, goals, _EVEN_STEPS)
    return {part.clip(value) for value in steps.ravel().tolist()} | set(goals)


def _steps_across(part: Interval, start: float) -> set[float]:
    """Return even steps from end to end, and ever shorter ones of a wide column; an open end is ten sizes away."""
    size = max(1.0, abs(start))
    low = part.lower if math.isfinite(part.lower) else start - 10.0 * size
    high = part.upper if math.isfinite(part.upper) else start + 10.0 * size
    steps = np.concatenate([np.linspace(low, high, _EVEN_STEPS), _ever_shorter(start, low, high)])
    return {part.clip(value) for value in steps.tolist()}


def _ever_shorter(start: float, low: float, high: float) -> Values:
    """Return steps from ``start`` to either end of a wide column, each a quarter of the one before; none of another."""
    if high - low <= _WIDE:
        return np.zeros(0)
    shares = 0.25 ** np.arange(1, math.ceil(math.log(high - low, 4)))
    return start + np.concatenate([(low - start) * shares, (high - start) * shares])
