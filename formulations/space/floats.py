"""Floats: the one that decimals mean, the text that gives one back, and the last one that passes a test."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.tolerances import DECIMAL_ROUNDINGS

__all__ = ["DecimalGrid", "decimal_grid", "decimal_grids", "digits", "last_true", "multiples", "places_of"]

#: More decimals than these are taken for what a calculation has left, not for what somebody wrote down.
_MOST_PLACES: Final = 9
#: Whole numbers up to this one, and no further, are floats each.
_EXACT: Final = 2.0**53


# ---- multiples of a decimal step: 0.1 + 0.2 is 0.3 -------------------------------------------------------------------
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


# ---- as text ---------------------------------------------------------------------------------------------------------
#: Sizes between which a number is written without an exponent.
_LEAST_PLAIN: Final = 1e-5
_GREATEST_PLAIN: Final = 1e16


def digits(value: float) -> str:
    """Return the shortest text that stands for a number alone; of a size that people do not write, with an exponent.

    Examples
    --------
    >>> digits(30_000.0), digits(1_234_567.25), digits(1e-7), digits(1e300)
    ('30000', '1234567.25', '1e-07', '1e+300')
    """
    number = float(value)
    if number == 0.0 or _LEAST_PLAIN <= abs(number) < _GREATEST_PLAIN:
        return np.format_float_positional(number + 0.0, trim="-")
    return repr(number)


# ---- bisection over all floats ---------------------------------------------------------------------------------------
#: Place of the greatest finite float64 among all of them, counted from 0.0.
_GREATEST: Final = np.finfo(np.float64).max.view(np.int64)


def last_true(
    test: Callable[[NDArray[np.float64]], NDArray[np.bool_]], shape: tuple[int, ...] = ()
) -> NDArray[np.float64]:
    """Return the largest finite float64 for which each of many tests holds, in ``shape``.

    Parameters
    ----------
    test
        Numbers (in ``shape``) -> whether each passes its own test. Each test holds up to some number and not beyond.
    shape
        Of the numbers that the test is given.

    Returns
    -------
    NDArray
        -inf where no finite number passes, inf where all do.

    Examples
    --------
    >>> float(last_true(lambda x: x * 3.0 <= 1.0))
    0.33333333333333337
    """
    low = np.full(shape, -_GREATEST, dtype=np.int64)
    high = np.full(shape, _GREATEST, dtype=np.int64)
    with np.errstate(all="ignore"):  # the ends of float64 overflow in most tests
        none = ~test(_number(low))
        every = test(_number(high))
        for _ in range(64):  # the ends are 2**64 numbers apart at most; low passes, high does not
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            passes = test(_number(middle))
            low = np.where(passes, middle, low)
            high = np.where(passes, high, middle)
    return np.asarray(np.where(none, -np.inf, np.where(every, np.inf, _number(low))))


def _number(order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the float64 whose place among all float64 is ``order``, counted from 0.0 = 0."""
    bits = np.where(order >= 0, order, np.int64(-(2**63)) - order)
    return np.asarray(bits).view(np.float64)
