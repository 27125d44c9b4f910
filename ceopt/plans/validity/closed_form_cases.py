r"""The two validity bounds: which cases need no solver, and what attains them.

The bounds of one counterfactual are in closed form for every radius. With :math:`m = x^\top \hat\mu`,
:math:`s = \sqrt{x^\top \hat\Sigma x}`, :math:`r = \rho \lVert x \rVert` and :math:`R^2 = m^2 + s^2`, mean and standard
deviation of the score range over the half disc of radius r around (m, s). The worst of them is where a line through 0
touches it:

.. math::
    L = \Big( \frac{m \sqrt{R^2 - r^2} - s r}{R^2} \Big)^2 \text{ if } m > r, \text{ else } 0; \qquad
    U = \Big( \frac{s \sqrt{R^2 - r^2} + |m| r}{R^2} \Big)^2 \text{ if } m < -r, \text{ else } 1.

Both are computed without differences of near numbers, in ``formulations/programs/validity_parts.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.optimize import nnls

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Floats
from ceopt.formulations.programs.validity_parts import least_of_score
from ceopt.plans.copa.validity_value import margins, spreads
from ceopt.plans.validity.attained import Attained
from ceopt.plans.validity.known_moments import greatest_at
from ceopt.plans.validity.reduction import Directions, directions, lifted, reduced
from ceopt.solvers import Status
from ceopt.tolerances import SCORE_ROUNDING

__all__ = [
    "Bound",
    "SolvedForm",
    "Solver",
    "lower_bound",
    "lower_bound_of_one",
    "nearest_valid",
    "upper_bound",
    "upper_bound_of_one",
]


def lower_bound_of_one(x: Floats, moments: Moments, radius: float) -> float:
    """Return the least probability that x is favourable.

    Parameters
    ----------
    x
        Shape (d,).
    moments
        Of the parameters.
    radius
        Gelbrich distance up to which they are uncertain, at least 0.
    """
    return least_of_score(*_score(x, moments, radius))[0]


def upper_bound_of_one(x: Floats, moments: Moments, radius: float) -> float:
    """Return the greatest probability that x is favourable; the arguments are those of :func:`lower_bound_of_one`."""
    if not np.any(x):
        return 1.0
    m, s, r = _score(x, moments, radius)
    return least_of_score(-m, s, r)[1] if m < 0.0 else 1.0


def _score(x: Floats, moments: Moments, radius: float) -> tuple[float, float, float]:
    row = np.asarray(x, dtype=np.float64)[None]
    return float(margins(row, moments)[0]), float(spreads(row, moments)[0]), radius * float(np.linalg.norm(x))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bound:
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
        return lifted(given, self.attained.reduction, self.attained.moments)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SolvedForm:
    """What one form of the bound came to: its value and status, a sentence, and what attains it, if it says that."""

    value: float
    status: Status = Status.OPTIMAL
    reason: str = ""
    attained: Attained | None = None

    def attained_by(self, attained: Attained | None) -> SolvedForm:
        """Return the same with what attains it."""
        return replace(self, attained=attained)


#: Answers for rows, moments and radius.
Solver = Callable[[Floats, Moments, float], SolvedForm]


def lower_bound(plan: Floats, given: Moments, radius: float, solve_rest: Solver) -> Bound:
    """Return the lower bound; ``solve_rest`` is asked for two or more different directions with an interior mean."""
    found = directions(plan)
    weights = np.zeros(len(plan))
    if found.zero.size:
        weights[found.zero[0]] = 1.0
        reason = f"Counterfactual {found.zero[0]} is 0, whose score is never above 0."
        return Bound(0.0, Status.OPTIMAL, reason, weights, given.mean)
    m = margins(found.rows, given)
    worst = int(m.argmin())
    if m[worst] <= radius:
        weights[found.first[worst]] = 1.0
        mean = given.mean - max(m[worst], 0.0) * found.rows[worst]
        where = "the mean" if m[worst] <= 0.0 else "a mean within the radius"
        reason = f"Counterfactual {found.first[worst]} is not favourable at {where}."
        return Bound(0.0, Status.OPTIMAL, reason, weights, mean)
    rows, first = _uncertain(found, given, radius)
    if not len(rows):
        reason = "All counterfactuals are favourable for certain."
        return Bound(1.0, Status.OPTIMAL, reason, weights, given.mean)
    solved = _one_lower(rows, given, radius) if len(rows) == 1 else solve_rest(rows, given, radius)
    if solved.attained is not None:
        # The probability that the plan fails, 1 - value, is shared out as its parts have it.
        share = np.maximum(solved.attained.masses[1:], 0.0)
        weights[first] = share * ((1.0 - solved.value) / (share.sum() or 1.0))
    return Bound(solved.value, solved.status, solved.reason, weights, given.mean, solved.attained)


def upper_bound(plan: Floats, given: Moments, radius: float, solve_rest: Solver) -> Bound:
    """Return the upper bound; ``solve_rest`` is asked for two or more directions without a common point near."""
    found = directions(plan)
    weights = np.zeros(len(plan))
    m = margins(found.rows, given)
    if (m >= 0.0).all():
        return Bound(1.0, Status.OPTIMAL, "", weights, given.mean)
    if radius == 0.0:
        hopeless = (m < 0.0) & (spreads(found.rows, given) == 0.0)
        if hopeless.any():
            reason = f"Counterfactual {found.first[hopeless.argmax()]} is unfavourable for certain."
            return Bound(0.0, Status.OPTIMAL, reason, weights, given.mean)
    else:
        nearest = nearest_valid(found.rows, given.mean)
        if float(np.linalg.norm(nearest - given.mean)) <= radius:
            reason = "All counterfactuals are favourable at a mean within the radius."
            return Bound(1.0, Status.OPTIMAL, reason, weights, nearest)
    rows, _ = _uncertain(found, given, radius)
    if radius == 0.0 and greatest_at(rows, given)[0] == 0.0:
        reason = "No parameters that these moments allow make all counterfactuals favourable."
        return Bound(0.0, Status.OPTIMAL, reason, weights, given.mean)
    solved = _one_upper(rows, given, radius) if len(rows) == 1 else solve_rest(rows, given, radius)
    return Bound(solved.value, solved.status, solved.reason, weights, given.mean, solved.attained)


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


def _one_lower(rows: Floats, given: Moments, radius: float) -> SolvedForm:
    """Return the bound of one direction in closed form."""
    reduction = reduced(rows, given, radius)
    sign = reduction.rows[0, 0]
    m = float(sign * reduction.moments.mean[0])
    s = float(np.sqrt(max(reduction.moments.covariance[0, 0], 0.0)))
    value, rest = least_of_score(m, s, reduction.radius)
    length = np.hypot(m, s) ** 2 - reduction.radius**2  # of the line that touches the disc, squared
    touched = Moments(np.array([sign * np.sqrt(length * value)]), np.array([[length * rest]]))
    masses = np.array([value, rest])
    means = np.array([touched.mean, np.zeros(1)])
    return SolvedForm(value, attained=Attained(reduction, masses, means, touched))


def _one_upper(rows: Floats, given: Moments, radius: float) -> SolvedForm:
    """Return the bound of one direction: the mirrored lower one, whose complement stays at a score of 0."""
    mirrored = _one_lower(-rows, given, radius)
    assert mirrored.attained is not None  # noqa: S101 - a closed form
    return SolvedForm(float(mirrored.attained.masses[1]), attained=mirrored.attained)
