"""Bisection over the bit patterns of float64: the exact place where a monotone test turns over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["last_true"]

_LAST: Final = np.finfo(np.float64).max.view(np.int64)  # place of the largest finite float64


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
    low = np.full(shape, -_LAST, dtype=np.int64)
    high = np.full(shape, _LAST, dtype=np.int64)
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
