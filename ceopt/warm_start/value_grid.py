"""The values of each column that are worth trying for one person, as ladders: a point is one rung of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ladders"]

Rungs = NDArray[np.intp]
Values = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ladders:
    """Per column the values in reach, ascending, and what a move to each costs.

    Parameters
    ----------
    names
        Columns, d of them.
    rungs
        Values of each column, ascending, the factual's among them.
    prices
        Cost of the move to each of them.
    homes
        Rung of the factual in each column, (d,).
    joint
        Coordinates (n, d) -> prices (n,), where a point's price is not the sum of its columns' prices.
    mend
        Coordinates (n, d) -> coordinates, where some columns follow from others and have no rungs of their own.
    """

    names: tuple[str, ...]
    rungs: tuple[Values, ...]
    prices: tuple[Values, ...]
    homes: Rungs
    joint: Callable[[Values], Values] | None = None
    mend: Callable[[Values], Values] | None = None

    @property
    def place(self) -> dict[str, int]:
        """Position of each column."""
        return {name: j for j, name in enumerate(self.names)}

    def values(self, points: Rungs) -> Values:
        """Return coordinates (n, d) of points given as rungs (n, d) or (d,)."""
        points = np.atleast_2d(points)
        values = np.stack([rungs[points[:, j]] for j, rungs in enumerate(self.rungs)], axis=1)
        return values if self.mend is None else self.mend(values)

    def price(self, points: Rungs) -> Values:
        """Return the prices of points (n, d)."""
        if self.joint is not None:
            return self.joint(self.values(points))
        total = np.zeros(len(points))
        for j, prices in enumerate(self.prices):
            total = total + prices[points[:, j]]
        return total

    # ---- points ------------------------------------------------------------------------------------------------------
    def snap(self, coordinates: Values) -> Rungs:
        """Return the rungs next to the values of other rows, on the factual's side: a tree's cell stays the same."""
        points = np.empty(coordinates.shape, dtype=np.intp)
        for j, rungs in enumerate(self.rungs):
            value, home = coordinates[:, j], rungs[self.homes[j]]
            below = np.searchsorted(rungs, value, side="right") - 1
            above = np.searchsorted(rungs, value, side="left")
            points[:, j] = np.clip(np.where(value > home, below, above), 0, len(rungs) - 1)
        return points

    def nearest(self, name: str, admitted: tuple[float, float] | frozenset[int]) -> int:
        """Return the cheapest rung that a leaf's box admits."""
        j = self.place[name]
        rungs, prices = self.rungs[j], self.prices[j]
        if isinstance(admitted, frozenset):
            inside = np.isin(rungs, list(admitted))
        else:
            inside = (rungs >= admitted[0]) & (rungs <= admitted[1])
        return int(np.argmin(np.where(inside, prices, np.inf))) if inside.any() else int(self.homes[j])

    def random(self, count: int, rng: np.random.Generator) -> Rungs:
        """Return points that change one to all columns to any of their rungs."""
        points = np.tile(self.homes, (count, 1))
        moving = [j for j, rungs in enumerate(self.rungs) if len(rungs) > 1]
        share = rng.uniform(0.0, 1.0, size=count)
        for j in moving:
            changed = rng.uniform(size=count) < np.maximum(share, 1.0 / len(moving))
            points[changed, j] = rng.integers(len(self.rungs[j]), size=int(changed.sum()))
        return points

    # ---- moves -------------------------------------------------------------------------------------------------------
    def moves(self, points: Rungs) -> tuple[Rungs, Rungs, Rungs]:
        """Return all points that differ from one of ``points`` in one column, which of them it was, and the column."""
        column = np.repeat(np.arange(len(self.rungs)), [len(rungs) for rungs in self.rungs])
        rung = np.concatenate([np.arange(len(rungs)) for rungs in self.rungs])
        trials = np.repeat(points, len(column), axis=0)
        owner = np.repeat(np.arange(len(points)), len(column))
        columns, rungs = np.tile(column, len(points)), np.tile(rung, len(points))
        new = trials[np.arange(len(trials)), columns] != rungs
        trials[np.arange(len(trials)), columns] = rungs
        return trials[new], owner[new], columns[new]

    def nearer(self, point: Rungs) -> Rungs:
        """Return the points that bring one column nearer to the factual."""
        trials, _, column = self.moves(point[None, :])
        new, old, home = trials[np.arange(len(trials)), column], point[column], self.homes[column]
        return trials[(np.minimum(old, home) <= new) & (new <= np.maximum(old, home))]

    def exchanges(self, point: Rungs) -> Rungs:
        """Return the points that take one change back, wholly or by a rung, and change one column otherwise."""
        changed = np.flatnonzero(point != self.homes)
        bases = np.tile(point, (2 * len(changed), 1))
        bases[np.arange(len(changed)), changed] = self.homes[changed]
        bases[len(changed) + np.arange(len(changed)), changed] += np.sign(self.homes - point)[changed]
        return self.moves(np.unique(bases, axis=0))[0]
