"""A number as text that gives it back: what a rule or a target says has to be what it asks for."""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["digits"]

#: Sizes between which a number is written without an exponent.
_LEAST: Final = 1e-5
_LONG: Final = 1e16


def digits(value: float) -> str:
    """Return the shortest text that stands for a number alone; of a size that people do not write, with an exponent.

    Examples
    --------
    >>> digits(30_000.0), digits(1_234_567.25), digits(1e-7), digits(1e300)
    ('30000', '1234567.25', '1e-07', '1e+300')
    """
    number = float(value)
    if number == 0.0 or _LEAST <= abs(number) < _LONG:
        return np.format_float_positional(number + 0.0, trim="-")
    return repr(number)
