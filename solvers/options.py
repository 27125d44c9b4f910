"""Options by a solver's own names: the plain value of the option's own type, which its adapter hands over."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["plain", "plain_of_type"]


def plain(value: Any) -> Any:
    """Return numpy's scalars as Python's own, and anything else as it is."""
    if hasattr(value, "item") and not isinstance(value, str):
        return value.item()
    return value


def plain_of_type(value: Any, kind: type[bool | int | float | str]) -> bool | int | float | str | None:
    """Return the value as ``kind`` (bool, int, float or str); None where a solver would cut it to size or fail.

    True is no number and 1.5 no whole number; a whole number is also a float; NaN is none.
    """
    value = plain(value)
    if isinstance(value, bool):
        if kind is bool:
            return value
        return None
    if kind is float and isinstance(value, int):
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, kind):
        return value
    return None
