"""A good subset by greedy choice and swaps: nothing is proved of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ceopt.tolerances import LEAST_SWAP_GAIN

__all__ = ["Subsets", "Value", "greedy_subset", "improved", "in_parts", "least_distance", "sum_of_distances"]

Floats = NDArray[np.float64]
#: Sets of the same size, a row each, shape (m, j).
Subsets = NDArray[np.intp]
#: Values of the sets, shape (m,); more is better.
Value = Callable[[Subsets], Floats]

#: Numbers that are looked up at once: some 16 MB.
_AT_ONCE: Final = 2_000_000


def in_parts(value: Value, sets: Subsets) -> Floats:
    """Return the values of many sets without looking all of them up at once."""
    step = max(1, _AT_ONCE // max(1, sets.shape[1] ** 2))
    return np.concatenate([value(sets[at : at + step]) for at in range(0, len(sets), step)])


def greedy_subset(n: int, k: int, value: Value) -> list[int]:
    """Return the best pair of 0, ..., n - 1, with the point that is best beside them added until there are k."""
    if k == 1:
        return [int(value(np.arange(n)[:, None]).argmax())]
    pairs = np.column_stack(np.triu_indices(n, 1))
    chosen: list[int] = [int(p) for p in pairs[in_parts(value, pairs).argmax()]]
    while len(chosen) < k:
        others = np.setdiff1d(np.arange(n), chosen)
        sets = np.column_stack([np.tile(chosen, (len(others), 1)), others])
        chosen.append(int(others[in_parts(value, sets).argmax()]))
    return sorted(chosen)


def improved(chosen: list[int], n: int, value: Value, deadline: float = np.inf) -> list[int]:
    """Return a set that no swap of one point makes better, from ``chosen`` on; or what is there at the deadline."""
    chosen = list(chosen)
    now = float(value(np.array([chosen]))[0])
    while len(chosen) < n and time.perf_counter() < deadline:
        others = np.setdiff1d(np.arange(n), chosen)
        sets = np.tile(chosen, (len(chosen), len(others), 1))
        for place in range(len(chosen)):
            sets[place, :, place] = others
        sets = sets.reshape(-1, len(chosen))
        values = in_parts(value, sets)
        best = int(values.argmax())
        if not values[best] > now + LEAST_SWAP_GAIN * abs(now):
            break
        chosen, now = [int(p) for p in sets[best]], float(values[best])
    return sorted(chosen)


def sum_of_distances(distances: Floats) -> Value:
    """Return the value of a set as the sum over its pairs."""
    return lambda sets: np.asarray(0.5 * _tables(distances, sets).sum(axis=(1, 2)))


def least_distance(distances: Floats) -> Value:
    """Return the value of a set as its least distance; infinite of one point."""
    apart = distances.copy()
    np.fill_diagonal(apart, np.inf)
    return lambda sets: np.asarray(_tables(apart, sets).min(axis=(1, 2)))


def _tables(matrix: Floats, sets: Subsets) -> Any:
    return matrix[sets[:, :, None], sets[:, None, :]]
