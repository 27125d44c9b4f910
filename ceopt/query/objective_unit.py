"""The unit in which a program counts squares and cones: solvers' tolerances are absolute numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ceopt.formulations.columns.numeric import unit_of
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.tolerances import COST_NOISE

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["MOST_UNITS", "farthest", "is_extreme", "is_smaller", "unit_for"]

#: Lengths, in the unit, whose squares a tolerance of 1e-7 is right for.
_ORDINARY = (0.1, 1e3)
#: A column that was stated in a unit so many times too large, or of so many steps, was stated too coarsely.
_COARSE, _STEPS = 2.0**10, 2.0**23
#: How many units are tried at most.
MOST_UNITS = 3


def unit_for(size: float | None, unit: float) -> float:
    """Return the unit for lengths of some size: the one in use where it will do, else the nearest power of two."""
    if size is None or not COST_NOISE < size < math.inf or _ORDINARY[0] <= size / unit <= _ORDINARY[1]:
        return unit
    return 2.0 ** round(math.log2(size))


def farthest(factual: Mapping[str, float], reach: Reach) -> dict[str, float]:
    """Return the point of a reach that is farthest from the factual in each number with bounds."""
    far = dict(factual)
    for name, part in reach.items():
        if isinstance(part, Interval) and math.isfinite(part.lower) and math.isfinite(part.upper):
            far[name] = part.lower if far[name] - part.lower > part.upper - far[name] else part.upper
    return far


def is_smaller(reach: Reach, before: Reach, space: FeatureSpace, *, is_open: bool) -> bool:
    """Tell whether a reach is so much smaller than the one before that a program over it is another one to a solver.

    Either the unit of a column is, or a column of more steps than a solver tells apart has a fraction of them: half
    where a gap ``is_open``.
    """
    for name, part in reach.items():
        was = before[name]
        if not isinstance(part, Interval) or not isinstance(was, Interval) or was.is_point:
            continue
        if part.step is None:
            if not 1.0 / _COARSE < unit_of(part, space[name]) / unit_of(was, space[name]) < _COARSE:
                return True
        elif (was.upper - was.lower) / part.step > _STEPS:
            least = 2.0 if is_open else _COARSE
            if (part.upper - part.lower) * least < was.upper - was.lower:
                return True
    return False


def is_extreme(reach: Reach, space: FeatureSpace) -> bool:
    """Tell whether a column may take values of a size, or as many, that a solver's tolerances do not suit."""
    for name, part in reach.items():
        if isinstance(part, Interval) and not part.is_point:
            steps = 0.0 if part.step is None else (part.upper - part.lower) / part.step
            if unit_of(part, space[name]) != 1.0 or _STEPS < steps < math.inf:
                return True
    return False
