"""Ties at the decision: where a margin may cost a whole step, and points that a solver leaves a trace beside a tie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from ceopt.formulations.predictors.decision.margin import rounding_at
from ceopt.formulations.space.reachable import Interval, Reach

if TYPE_CHECKING:
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["SMALLER", "may_cost_a_step", "rounding_of", "snapped"]

#: Shares of the margin that are tried where a cheaper point is refused by a trace: the smaller may be lost in noise.
SMALLER: Final = (1 / 256, 1 / 16)
#: Steps from which on a solver leaves whole numbers a trace beside where they belong, too.
_MANY_STEPS: Final = 2.0**23
#: A number this close to an end of its reach, or to the factual's, relatively to its reach, stands there.
_NEAR: Final = 1e-6


def may_cost_a_step(reach: Reach, cost: AbstractCost, space: FeatureSpace) -> bool:
    """Tell whether something moves by steps, or to move at all has a price: a margin can cost more than its share."""
    moving = [part for part in reach.values() if not part.is_point]
    has_steps = any(not isinstance(part, Interval) or part.step is not None for part in moving)
    return has_steps or any(price.kind == "fixed" for prices in cost.prices(space).values() for price in prices)


def rounding_of(predictor: Predictor, factual: Mapping[str, float], reach: Reach) -> float:
    """Return by how much a solver may take a row over the score for missed, anywhere in reach, that is a tie."""
    rows = [dict(factual), dict(factual), dict(factual)]
    for name, part in reach.items():
        if isinstance(part, Interval):
            for row, end in zip(rows, (part.lower, part.upper), strict=False):
                row[name] = end if math.isfinite(end) else factual[name]
    names = predictor.space.names
    return max(rounding_at(predictor, np.array([[row[name] for name in names]]), in_row=True) for row in rows)


def snapped(point: Mapping[str, float], factual: Mapping[str, float], reach: Reach) -> dict[str, float]:
    """Return a point with the numbers that a solver left beside an end of their reach, or the factual's, put there.

    Among numbers that can take any value, or nearly, only such a place can tie: elsewhere a trace of a move would do.
    """
    result = dict(point)
    for name, part in reach.items():
        if not isinstance(part, Interval) or part.is_point or _has_few_steps(part):
            continue
        places = [end for end in (factual[name], part.lower, part.upper) if math.isfinite(end)]
        width = part.upper - part.lower if math.isfinite(part.upper - part.lower) else max(1.0, abs(factual[name]))
        near = [place for place in places if abs(point[name] - place) <= _NEAR * width]
        if near:
            result[name] = min(near, key=lambda place: abs(point[name] - place))
    return result


def _has_few_steps(part: Interval) -> bool:
    return part.step is not None and part.upper - part.lower <= _MANY_STEPS * part.step
