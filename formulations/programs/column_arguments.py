"""Columns by their places, and what bounds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ceopt.formulations.digits import digits
from ceopt.formulations.programs.expressions import Floats
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["require_bounds", "require_columns", "require_list"]


def require_list(who: str, name: str, values: Any, of: str = "columns") -> list[Any]:
    """Return a list of what can be gone over again, or refuse anything else: an iterator would be empty then."""
    is_scalar = isinstance(values, np.ndarray) and not values.ndim
    if isinstance(values, str | bytes | Iterator) or not isinstance(values, Iterable) or is_scalar:
        raise InvalidTypeError(who, f"a list of {of} as {name}", f"{name} is {values!r}", "Give such a list.")
    return list(values)


def require_columns(who: str, name: str, places: Any, d: int) -> list[int]:
    """Return which of d columns are meant: by their places, negative ones from the end, or by a mask of d bools."""
    found = require_list(who, name, places)
    if len(found) == d and all(isinstance(k, bool | np.bool_) for k in found):
        return np.flatnonzero(found).tolist()
    for k in found:
        if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer) or not -d <= k < d:
            then = "Count from 0, or from the end with -1; a name is found by list(names).index(name)."
            raise InvalidValueError(who, f"columns from 0 to {d - 1} in {name}", f"{name} has {k!r}", then)
    return [int(k) % d for k in found]


def require_bounds(who: str, bounds: Any, d: int) -> tuple[Floats, Floats]:
    """Return lower and upper bounds, shape (d,), infinite where there are none, or refuse them."""
    if bounds is None:
        return np.full(d, -np.inf), np.full(d, np.inf)
    then = "Give (lower, upper), each one number or one a column, infinite where there is none."
    bounds = tuple(require_list(who, "bounds", bounds, of="lower and upper"))
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(side, dtype=np.float64), (d,))) for side in bounds)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(bounds, list | tuple):
            but = f"bounds has {[np.size(side) for side in bounds]} numbers"
        else:
            but = f"bounds is {type(bounds).__name__}"
        raise InvalidValueError(who, f"a pair of bounds for {d} columns", but, then) from error
    wrong = np.flatnonzero(~(low <= high) | (low == np.inf) | (high == -np.inf))
    if wrong.size:
        k = wrong[0]
        but = f"column {k} has bounds {digits(low[k])} and {digits(high[k])}"
        raise InvalidValueError(who, "bounds with a number from lower to upper", but, then)
    return low, high
