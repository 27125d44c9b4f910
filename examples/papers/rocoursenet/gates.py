"""What was to be reached, computed from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.stats import spearmanr

__all__ = ["Difference", "at_equal_proximity", "falling", "paired", "standard_error", "tables_differences"]

Records = Sequence[Mapping[str, Any]]
#: A difference is said to be one from so many standard errors on.
ERRORS = 2.0


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """A mean paired difference over seeds, with its standard error.

    Parameters
    ----------
    mean, error
        Over seeds.
    """

    mean: float
    error: float

    @property
    def is_reached(self) -> bool:
        """Whether it is above zero by two standard errors."""
        return self.mean > ERRORS * self.error

    @property
    def is_below(self) -> bool:
        """Whether it is below zero by as much."""
        return self.mean < -ERRORS * self.error


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean."""
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """Return the mean difference of what two methods reach, seed by seed."""
    differences = np.subtract(ours, theirs)
    return Difference(float(differences.mean()), standard_error(differences))


def tables_differences(records: Records, rival: str, method: str = "RoCourseNet") -> Difference:
    """Return by how much the robust validity of RoCourseNet, or of a variant, is above that of a rival."""
    ours = [np.mean(record["methods"][method]["robust"]) for record in records]
    theirs = [np.mean(record["methods"][rival]["robust"]) for record in records]
    return paired(ours, theirs)


# ---- frontiers -------------------------------------------------------------------------------------------------------
def at_equal_proximity(records: Records, rival: str) -> list[tuple[float, float, float, Difference]]:
    """Return proximity, robust validities and their difference at three levels that both frontiers cover.

    A frontier joins the means over seeds of mean proximity, from the least on; at a level of proximity that of each
    seed is read between the same two points, so that differences are paired.
    """
    ours = _frontier(records, "RoCourseNet")
    theirs = _frontier(records, rival)
    low = max(ours[0][0], theirs[0][0])
    high = min(ours[0][-1], theirs[0][-1])
    if low > high:
        return []
    found = []
    for share in (0.25, 0.5, 0.75):
        level = low + share * (high - low)
        own = _read(ours, level)
        other = _read(theirs, level)
        found.append((level, float(own.mean()), float(other.mean()), paired(own, other)))
    return found


def _frontier(records: Records, method: str) -> tuple[Any, Any]:
    """Return mean proximities ascending (k,), and robust validities (k, seeds)."""
    levels = list(records[0][method])
    proximity = [np.mean([np.mean(record[method][level]["proximity"]) for record in records]) for level in levels]
    robust = [[np.mean(record[method][level]["robust"]) for record in records] for level in levels]
    order = np.argsort(proximity)
    return np.array(proximity)[order], np.array(robust)[order]


def _read(frontier: tuple[Any, Any], level: float) -> Any:
    proximity, robust = frontier
    return np.array([np.interp(level, proximity, of_seed) for of_seed in robust.T])


# ---- the attacker ----------------------------------------------------------------------------------------------------
def falling(records: Records, kind: str, sweep: str) -> tuple[float, float]:
    """Return Spearman's correlation of mean validity with the attacker's strength, and by how much it falls."""
    strengths = list(records[0][kind][sweep])
    means = [np.mean([np.mean(record[kind][sweep][strength]) for record in records]) for strength in strengths]
    correlation = spearmanr([float(strength) for strength in strengths], means).statistic
    return float(correlation), float(means[0] - means[-1])
