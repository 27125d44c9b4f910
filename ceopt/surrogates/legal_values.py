"""Numbers on the grid of their column and levels by their shares: the nearest one, or one drawn about it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.space.reachable import Interval

__all__ = ["Floats", "level_of", "on_grid", "ranks_of"]

Floats: TypeAlias = NDArray[np.float64]


def on_grid(values: Floats, interval: Interval, rng: np.random.Generator | None = None) -> Floats:
    """Return members of an interval near some numbers, (m,).

    Without ``rng`` the nearest one. With it one of the two members about the number, each with the probability at which
    their mean is that number, so that columns of few values vary as often as their draws ask for.
    """
    cut = np.clip(values, interval.lower, interval.upper)
    if interval.step is None:
        return np.asarray(cut + 0.0)  # no -0.0
    count = _rounded((cut - interval.anchor) / interval.step, rng)
    return np.asarray(np.clip(interval.grid.many(count), interval.lower, interval.upper) + 0.0)


def ranks_of(shares: Floats, n_levels: int, rng: np.random.Generator | None = None) -> Floats:
    """Return ranks of an ordinal or binary column, (m,), near shares of its way from the first level to the last."""
    last = n_levels - 1.0
    return _rounded(np.clip(shares, 0.0, 1.0) * last, rng)


def level_of(block: Floats, rng: np.random.Generator | None = None) -> Floats:
    """Return ranks of a category, (m,), from a block (m, levels) of one column a level.

    Without ``rng`` the level of the greatest entry, the first of them on ties. With it each level with the probability
    of its entry, negative ones counting 0, as a share of the sum.
    """
    greatest: Floats = block.argmax(axis=1).astype(np.float64)
    if rng is None:
        return greatest
    ends = np.maximum(block, 0.0).cumsum(axis=1)
    total = ends[:, -1]
    drawn = (ends <= (rng.random(len(block)) * total)[:, None]).sum(axis=1)
    return np.asarray(np.where(total > 0.0, np.minimum(drawn, block.shape[1] - 1.0), greatest))


def _rounded(numbers: Floats, rng: np.random.Generator | None) -> Floats:
    if rng is None:
        return np.asarray(np.rint(numbers))
    below = np.floor(numbers)
    return np.asarray(below + (rng.random(len(numbers)) < numbers - below))
