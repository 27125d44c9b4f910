r"""Comparisons of a column's value as linear forms of its binaries: at most, at least, or exactly a value.

.. math:: [x \le v] = 1 - y_{(l, r)}, \qquad [x \ge v] = y_{(l', v')}, \qquad [x = v] = [x \le v] + [x \ge v] - 1

where :math:`l \le v < r` and :math:`l' < v \le v'` are neighbouring values in reach. Each form is 0 or 1 for integral
binaries. The cuts leave every value where it was, so a row over them that is dropped leaves nothing behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ceopt.formulations.columns.coordinate import AbstractCoordinate
from ceopt.formulations.columns.numeric import Numeric
from ceopt.formulations.linear_form import LinearForm, total

if TYPE_CHECKING:
    from ceopt.formulations.space.reachable import Interval

__all__ = ["around", "at_least", "at_most", "close", "equals", "member", "members", "one_of"]

#: A multiple of a step is off by a rounding of the product and one of the sum.
_ROUNDINGS = 4 * 2.0**-53


def member(interval: Interval, value: float) -> float | None:
    """Return the member of an interval that a value means: itself, or on a grid the one a rounding away; else None."""
    if interval.holds(value):
        return value
    if interval.step is None:
        return None
    near = interval.clip(value)
    return near if abs(near - value) <= _ROUNDINGS * max(abs(value), abs(interval.anchor)) else None


def members(interval: Interval, values: Iterable[float]) -> list[float]:
    """Return the values in reach that some values mean, ascending, each once."""
    return sorted({value for value in (member(interval, value) for value in values) if value is not None})


def around(at: Numeric, values: Iterable[float]) -> None:
    """Cut a number on both sides of each value in reach, all at once."""
    pairs = [pair for value in values for pair in (_below(at.interval, value), _above(at.interval, value))]
    at.add_cuts([(left, right) for left, right in pairs if math.isfinite(left) and math.isfinite(right)])


def close(at: Numeric, values: Iterable[float], block: Any) -> None:
    """Cut a number on both sides of some values in reach, ascending, and note that a block's rows leave no other."""
    known = list(values)
    around(at, known)
    at.gaps += [(left, right, block) for left, right in pairwise([-math.inf, *known, math.inf])]


def at_most(at: AbstractCoordinate, value: float) -> LinearForm:
    """Return 1 where the coordinate is at most a value (a rank of levels), else 0."""
    if not isinstance(at, Numeric):
        return at.indicator({k for k in range(len(at.feature.levels)) if k <= value})
    return _right_of(at, *_above(at.interval, value)).complement()


def at_least(at: AbstractCoordinate, value: float) -> LinearForm:
    """Return 1 where the coordinate is at least a value (a rank of levels), else 0."""
    if not isinstance(at, Numeric):
        return at.indicator({k for k in range(len(at.feature.levels)) if k >= value})
    return _right_of(at, *_below(at.interval, value))


def equals(at: AbstractCoordinate, value: float) -> LinearForm:
    """Return 1 where the coordinate is a value (a rank of levels), else 0."""
    if not isinstance(at, Numeric):
        return at.indicator({int(value)})
    known = member(at.interval, value)
    if known is None:
        return LinearForm()
    return at_most(at, known) + at_least(at, known) + LinearForm(-1.0)


def one_of(at: AbstractCoordinate, values: Iterable[float]) -> LinearForm:
    """Return 1 where the coordinate is one of some values (ranks of levels), else 0."""
    if not isinstance(at, Numeric):
        return at.indicator({int(value) for value in values})
    known = members(at.interval, values)
    around(at, known)
    return total(equals(at, value) for value in known)


def _below(interval: Interval, value: float) -> tuple[float, float]:
    """Return the greatest member below a value and the least one from it on; infinite where there is none."""
    return interval.floor(math.nextafter(value, -math.inf)), interval.ceil(value)


def _above(interval: Interval, value: float) -> tuple[float, float]:
    """Return the greatest member up to a value and the least one above it; infinite where there is none."""
    return interval.floor(value), interval.ceil(math.nextafter(value, math.inf))


def _right_of(at: Numeric, left: float, right: float) -> LinearForm:
    """Return 1 right of the cut between two neighbours, of which one is infinite where nothing lies on its side."""
    if math.isinf(left):
        return LinearForm(1.0)
    if math.isinf(right):
        return LinearForm(0.0)
    at.add_cuts([(left, right)])
    return at.cells.right_of((left, right))
