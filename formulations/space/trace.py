"""The trace that a solver may leave between a column and the place where it means to put it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ceopt.formulations.tolerances import SUM_ROUNDING, TRACE

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["trace_of", "trace_within"]


def trace_of(feature: Feature, number: float) -> float:
    """Return the trace that a solver may leave of a column at a number: of a step, where it moves by steps."""
    if feature.is_finite:
        return TRACE
    if feature.spacing is None:
        return float(trace_within(feature, number))
    return TRACE * min(feature.spacing, 1.0)


def trace_within(feature: Feature, size: Any) -> Any:
    """Return the trace of sums of some sizes that are compared with a column: no more than its width allows."""
    if feature.is_finite:
        low, high = feature.coordinate_limits
    else:
        low, high = feature.lower, feature.upper
    return TRACE * np.minimum(np.maximum(1.0, np.abs(size)), high - low) + SUM_ROUNDING * np.abs(size)
