"""Numbers as text: one that gives its number back, and how many decimal places write them all."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.tolerances import DECIMAL_ROUNDINGS

#: Sizes between which a number is written without an exponent.
_LEAST_PLAIN: Final = 1e-5
_GREATEST_PLAIN: Final = 1e16
#: Whole numbers up to this one, and no further, are floats each.
_EXACT: Final = 2.0**53
#: Rounds without a limit of its own on digits.
_CONTEXT: Final = Context(prec=400)


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


def rounded(value: float, significant: int, way: Literal["up", "down"]) -> float:
    """Return a number with few significant digits, on the side where what is said with it stays true.

    One that has so few but for the rounding of floats is that number.

    Examples
    --------
    >>> rounded(0.12345, 2, "up"), rounded(0.12345, 2, "down"), rounded(100 * 0.07, 2, "up")
    (0.13, 0.12, 7.0)
    """
    if not math.isfinite(value):
        return value
    nearest = float(f"{value:.{significant}g}")
    if abs(nearest - value) <= DECIMAL_ROUNDINGS * abs(value):
        return nearest
    rounding = ROUND_CEILING if way == "up" else ROUND_FLOOR
    return float(Context(prec=significant, rounding=rounding).create_decimal(Decimal(value)))


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
        if (np.abs(np.rint(numbers * scale) / scale - numbers) <= DECIMAL_ROUNDINGS * np.abs(numbers)).all():
            return places
    return None


def in_places(value: float, places: int, way: Literal["nearest", "away", "home"], *, home: float) -> float:
    """Return a number with so many decimal places: the nearest one, or the next one away from home or towards it.

    Examples
    --------
    >>> in_places(0.036973345000000005, 9, "nearest", home=0.5), in_places(25550.0009, 0, "away", home=21000.0)
    (0.036973345, 25551.0)
    """
    rounding = ROUND_HALF_EVEN
    if way != "nearest":
        rounding = ROUND_CEILING if (value > home) is (way == "away") else ROUND_FLOOR
    return float(Decimal(value).quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_CONTEXT))
