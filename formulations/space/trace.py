"""The trace that a solver may leave between a column and the place where it means to put it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["ROUNDING", "trace_of", "trace_within"]

#: Of a number, or of the width of its column, whichever is less; of a step.
_SHARE = 1e-6
#: What adding up in double precision leaves of the numbers that are added.
ROUNDING = 1e-12


def trace_of(feature: Feature, number: float) -> float:
    """Return the trace that a solver may leave of a column at a number: of a step, where it moves by steps."""
    if feature.is_finite:
        return _SHARE
    if feature.spacing is None:
        return float(trace_within(feature, number))
    return _SHARE * min(feature.spacing, 1.0)


def trace_within(feature: Feature, size: Any) -> Any:
    """Return the trace of sums of some sizes that are compared with a column: no more than its width allows."""
    if feature.is_finite:
        low, high = feature.coordinate_limits
    else:
        low, high = feature.lower, feature.upper
    return _SHARE * np.minimum(np.maximum(1.0, np.abs(size)), high - low) + ROUNDING * np.abs(size)
