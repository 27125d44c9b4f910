"""Multiples of a decimal step from a decimal number, each the float that its decimals mean: 0.1 + 0.2 is 0.3."""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.tolerances import DECIMAL_ROUNDINGS

__all__ = ["DecimalGrid", "decimal_grid", "decimal_grids", "multiples", "places_of"]

#: More decimals than these are taken for what a calculation has left, not for what somebody wrote down.
_MOST_PLACES: Final = 9
#: Whole numbers up to this one, and no further, are floats each.
_EXACT: Final = 2.0**53


class DecimalGrid(NamedTuple):
    """The numbers ``(units + k * step) / scale`` for whole ``k``, where k = 0 is ``anchor`` as it was given.

    A decimal grid counts in whole units of its last decimal place, so each number is a quotient of whole numbers and
    as near to its decimals as a float can be. A grid that is not decimal has the scale 1, and rounds as floats do. All
    four are numbers, or arrays of them for many grids side by side.
    """

    anchor: Any
    units: Any
    step: Any
    scale: Any

    def at(self, count: float) -> float:
        """Return the member ``count`` steps from the anchor."""
        if count == 0:
            return float(self.anchor)
        return float((self.units + count * self.step) / self.scale)

    def many(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the members so many steps from the anchor, in the shape of ``counts``."""
        return np.asarray(np.where(counts == 0.0, self.anchor, (self.units + counts * self.step) / self.scale))

    def nearest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the members nearest to some values, in their shape."""
        return self.many(np.rint((values - self.anchor) / (self.step / self.scale)))


@functools.lru_cache(maxsize=4096)
def decimal_grid(anchor: float, step: float) -> DecimalGrid:
    """Return the grid of a step from a number.

    A number that a calculation has left within a rounding of a decimal one, such as 0.1 + 0.2, counts as that one.

    Examples
    --------
    >>> 0.1 + 2 * 0.1, decimal_grid(0.1, 0.1).at(2)
    (0.30000000000000004, 0.3)
    """
    for places in range(_MOST_PLACES + 1):
        scale = 10.0**places
        units, steps = float(np.rint(anchor * scale)), float(np.rint(step * scale))
        if max(abs(units), steps) > _EXACT:
            break
        if steps / scale == step and _means(units / scale, anchor):
            return DecimalGrid(anchor, units, steps, scale)
    return DecimalGrid(anchor, anchor, step, 1.0)


def decimal_grids(anchors: NDArray[np.float64], steps: NDArray[np.float64]) -> DecimalGrid:
    """Return the grids of some steps from some numbers, (k,), side by side."""
    grids = [decimal_grid(anchor, step) for anchor, step in zip(anchors.tolist(), steps.tolist(), strict=True)]
    return DecimalGrid(*np.array(grids, dtype=np.float64).reshape(-1, 4).T)


def multiples(anchors: NDArray[np.float64], step: float, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each of many numbers the member of its own grid so many steps away, (n,)."""
    distinct, place = np.unique(anchors, return_inverse=True)
    grids = decimal_grids(distinct, np.full(len(distinct), step))
    each = DecimalGrid(anchors, *(part[place.reshape(-1)] for part in grids[1:]))
    return each.many(counts)


def places_of(numbers: NDArray[np.float64], most: int) -> int | None:
    """Return how many decimal places write all numbers, or None if it takes more than ``most``.

    Examples
    --------
    >>> places_of(np.array([0.1 + 0.2, 12.25]), 3), places_of(np.array([1 / 3]), 3)
    (2, None)
    """
    greatest = float(np.abs(numbers).max())
    for places in range(most + 1):
        scale = 10.0**places
        if greatest * scale > _EXACT:
            return None
        if _means(np.rint(numbers * scale) / scale, numbers).all():
            return places
    return None


def _means(decimal: Any, number: Any) -> Any:
    """Tell whether a number is a decimal one up to what adding up a few such leaves."""
    return np.abs(decimal - number) <= DECIMAL_ROUNDINGS * np.abs(number)
