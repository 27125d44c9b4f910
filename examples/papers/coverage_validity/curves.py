"""Frontiers of two methods held against each other: what each costs at the same future validity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from coverage_validity.summaries import OURS

__all__ = ["Comparison", "compared", "ends", "frontier", "standard_error"]

Floats = NDArray[np.float64]
Fold = Mapping[str, Any]

#: Levels within the range of validity that both frontiers cover: evenly spaced, its ends left out.
SHARES = (0.25, 0.5, 0.75)
#: Levels of validity that are no farther apart are one: the middle.
ALIKE = 0.002


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """One method's cost less another's at one future validity.

    Parameters
    ----------
    share
        Where the level lies in the range that both frontiers cover.
    level
        The future validity, of the mean over folds.
    ours, theirs
        Cost at that validity, a fold each.
    """

    share: float
    level: float
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def difference(self) -> tuple[float, float]:
        """Mean of the paired differences, and its standard error."""
        differences = [own - other for own, other in zip(self.ours, self.theirs, strict=True)]
        return float(np.mean(differences)), standard_error(differences)


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; 0 of one value."""
    if len(values) < 2:
        return 0.0
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def frontier(costs: Floats, validities: Floats) -> NDArray[np.intp]:
    """Return the places of the points that no cheaper one matches in validity, cheapest first."""
    order = np.lexsort((-validities, costs))
    kept = []
    best = -np.inf
    for place in order:
        if validities[place] > best:
            kept.append(place)
            best = validities[place]
    return np.array(kept, dtype=np.intp)


def compared(folds: Sequence[Fold], rival: str) -> list[Comparison]:
    """Return our method held against a rival at three levels of what both frontiers cover; empty without such a range.

    A method's frontier is that of its means over the folds. Between two of its points, cost and validity go on a line:
    the same shares of these two points are each fold's cost at that level. Levels no farther apart than ``ALIKE`` are
    one, the middle.
    """
    lines = [_line(folds, rival, name) for name in (OURS, rival)]
    low = max(validities[0] for validities, _ in lines)
    high = min(validities[-1] for validities, _ in lines)
    if low > high:
        return []
    is_one = (high - low) * (SHARES[1] - SHARES[0]) <= ALIKE
    found = []
    for share in SHARES[1:2] if is_one else SHARES:
        level = float(low + share * (high - low))
        ours, theirs = (_costs_at(level, *line) for line in lines)
        found.append(Comparison(share, level, ours, theirs))
    return found


def ends(folds: Sequence[Fold], rival: str) -> dict[str, tuple[float, float, float, float]]:
    """Return of our frontier and of a rival's the least validity and its cost, and the greatest and its cost."""
    found = {}
    for name in (OURS, rival):
        validities, costs = _line(folds, rival, name)
        mean = costs.mean(axis=0)
        found[name] = (float(validities[0]), float(mean[0]), float(validities[-1]), float(mean[-1]))
    return found


def _line(folds: Sequence[Fold], rival: str, name: str) -> tuple[Floats, Floats]:
    """Return the validities of a mean frontier, (points,), and each fold's costs there, (folds, points)."""
    each = [fold["pairs"][rival][name] for fold in folds if fold["pairs"][rival][name]["people"]]
    costs = np.array([one["cost"] for one in each])
    validities = np.mean([one["future"] for one in each], axis=0)
    kept = frontier(costs.mean(axis=0), validities)
    return validities[kept], costs[:, kept]


def _costs_at(level: float, validities: Floats, costs: Floats) -> tuple[float, ...]:
    """Return each fold's cost, of (folds, points), where the mean frontier reaches a level."""
    return tuple(float(np.interp(level, validities, each)) for each in costs)
