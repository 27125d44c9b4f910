"""The two validity bounds: which cases need no solver, and what attains them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.optimize import nnls

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.subset.pairs import Floats
from ceopt.formulations.programs.validity.score_bound import least_of_score
from ceopt.plans.copa.validity_value import margins, spreads
from ceopt.plans.validity.attained import Attained
from ceopt.plans.validity.known_moments import greatest_at
from ceopt.plans.validity.reduction import Directions, directions, lifted, reduced
from ceopt.solvers import Status
from ceopt.tolerances import SCORE_ROUNDING

__all__ = ["Side", "Solved", "Solver", "lower_side", "nearest_valid", "upper_side"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One bound: its value and status, a sentence, and what attains it.

    Parameters
    ----------
    weights
        Shape (J,), of the lower bound: the probability that it puts on each counterfactual's failure; their sum is
        1 - value.
    attained
        None where the bound is 0 or 1 for the mean alone.
    mean
        Where it is None: a mean within the radius for which it is.
    """

    value: float
    status: Status
    reason: str
    weights: Floats
    mean: Floats
    attained: Attained | None = None

    def moments(self, given: Moments) -> Moments:
        """Return mean and covariance of all parameters within the ball, at which the bound is attained."""
        if self.attained is None:
            return Moments(self.mean, given.covariance)
        return lifted(given, self.attained.case, self.attained.moments)


Solved = tuple[float, Status, str, Attained | None]
Solver = Callable[[Floats, Moments, float], Solved]


def lower_side(plan: Floats, given: Moments, radius: float, solve_rest: Solver) -> Side:
    """Return the lower bound; ``solve_rest`` is asked for two or more different directions with an interior mean."""
    found = directions(plan)
    weights = np.zeros(len(plan))

    def side(value: float, reason: str = "", mean: Floats = given.mean, **more: Any) -> Side:
        return Side(value, more.pop("status", Status.OPTIMAL), reason, weights, mean, **more)

    if found.zero.size:
        weights[found.zero[0]] = 1.0
        return side(0.0, f"Counterfactual {found.zero[0]} is 0, whose score is never above 0.")
    m = margins(found.rows, given)
    worst = int(m.argmin())
    name = f"Counterfactual {found.first[worst]}"
    if m[worst] <= radius:
        weights[found.first[worst]] = 1.0
        moved = given.mean - max(m[worst], 0.0) * found.rows[worst]
        where = "the mean" if m[worst] <= 0.0 else "a mean within the radius"
        return side(0.0, f"{name} is not favourable at {where}.", moved)
    rows, first = _uncertain(found, given, radius)
    if not len(rows):
        return side(1.0, "All counterfactuals are favourable for certain.")
    if len(rows) == 1:
        value, status, reason, attained = _one_lower(rows, given, radius)
    else:
        value, status, reason, attained = solve_rest(rows, given, radius)
    if attained is not None:
        share = np.maximum(attained.masses[1:], 0.0)
        weights[first] = share * ((1.0 - value) / (share.sum() or 1.0))
    return side(value, reason, status=status, attained=attained)


def upper_side(plan: Floats, given: Moments, radius: float, solve_rest: Solver) -> Side:
    """Return the upper bound; ``solve_rest`` is asked for two or more directions without a common point near."""
    found = directions(plan)

    def side(value: float, reason: str = "", mean: Floats = given.mean, **more: Any) -> Side:
        return Side(value, more.pop("status", Status.OPTIMAL), reason, np.zeros(len(plan)), mean, **more)

    m = margins(found.rows, given)
    if (m >= 0.0).all():
        return side(1.0)
    if radius == 0.0:
        hopeless = (m < 0.0) & (spreads(found.rows, given) == 0.0)
        if hopeless.any():
            return side(0.0, f"Counterfactual {found.first[hopeless.argmax()]} is unfavourable for certain.")
    else:
        nearest = nearest_valid(found.rows, given.mean)
        if float(np.linalg.norm(nearest - given.mean)) <= radius:
            return side(1.0, "All counterfactuals are favourable at a mean within the radius.", nearest)
    rows, _ = _uncertain(found, given, radius)
    if radius == 0.0 and greatest_at(rows, given)[0] == 0.0:
        return side(0.0, "No parameters that these moments allow make all counterfactuals favourable.")
    once = len(rows) == 1
    value, status, reason, attained = (_one_upper if once else solve_rest)(rows, given, radius)
    return side(value, reason, status=status, attained=attained)


# ---- inside ----------------------------------------------------------------------------------------------------------
def _uncertain(found: Directions, given: Moments, radius: float) -> tuple[Floats, Any]:
    """Return the directions whose score varies; with a radius, all do."""
    kept = np.ones(len(found.rows), dtype=bool) if radius else spreads(found.rows, given) > 0.0
    return found.rows[kept], found.first[kept]


def nearest_valid(rows: Floats, mean: Floats) -> Floats:
    """Return the point nearest to the mean for which all scores are at least 0, by Moreau's decomposition."""
    if (rows @ mean >= -SCORE_ROUNDING * (np.abs(rows) @ np.abs(mean))).all():
        return np.array(mean)  # of such a point scipy's nnls was seen to return one that is far off
    prices, _ = nnls(rows.T, -mean)
    return np.asarray(mean + prices @ rows)


def _one_lower(rows: Floats, given: Moments, radius: float) -> Solved:
    case = reduced(rows, given, radius)
    sign = case.rows[0, 0]
    m, s = float(sign * case.moments.mean[0]), float(np.sqrt(max(case.moments.covariance[0, 0], 0.0)))
    value, rest = least_of_score(m, s, case.radius)
    length = np.hypot(m, s) ** 2 - case.radius**2  # of the line that touches the disc, squared
    touched = Moments(np.array([sign * np.sqrt(length * value)]), np.array([[length * rest]]))
    return (
        value,
        Status.OPTIMAL,
        "",
        Attained(case, np.array([value, rest]), np.array([touched.mean, np.zeros(1)]), touched),
    )


def _one_upper(rows: Floats, given: Moments, radius: float) -> Solved:
    """Return the bound of one direction: the mirrored lower one, whose complement stays at a score of 0."""
    _, status, reason, attained = _one_lower(-rows, given, radius)
    assert attained is not None  # noqa: S101 - a closed form
    masses = attained.masses
    return float(masses[1]), status, reason, attained
