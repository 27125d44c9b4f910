r"""Corrections of a plan: to a requirement at the mean, by Mahalanobis distance, and exactly for one counterfactual.

The exact improvement is the point of a ball whose lower bound on validity is greatest, found without a solver. Let
:math:`m = \hat\mu^\top x`, :math:`s = \sqrt{x^\top \hat\Sigma x}`, :math:`n = \lVert x \rVert`. The lower bound of the
one counterfactual x is :math:`\kappa^2 / (1 + \kappa^2)`, where :math:`m = \kappa s + \rho \sqrt{1 + \kappa^2}\, n`
(``ceopt/plans/validity.py``), so the greatest bound is the greatest :math:`\kappa`. With :math:`\rho = 0` that is m /
s.

1. The greatest m / s. For a > 0 let x(a) be the maximiser of :math:`m - a s^2 / 2` over the ball, a concave quadratic
   whose multiplier is the root of the secular equation. As a grows, s falls along the concave frontier m(s), whose
   slope is a s; so :math:`a s^2 - m` rises, and where it is 0 a ray from the origin touches the frontier.
2. The greatest :math:`\kappa` with :math:`\rho > 0`. At the optimum, m - a s^2 / 2 - b n^2 / 2 is stationary with
   :math:`a = \kappa / s` and :math:`b = \rho \sqrt{1 + \kappa^2} / n`: x maximises :math:`m / \sqrt{s^2 + c\, n^2}` for
   c = b / a, which is step 1 with the matrix :math:`\hat\Sigma + c I`. What is left is one equation in c.
3. A singular covariance. Points with s = 0 are the edge of step 1 (the ratio is infinite) and a kink in step 2. They
   are a ball in a subspace, where the best is that of the greatest m / n, which is step 1 with the matrix I.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from ceopt.base.parallel import one_thread
from ceopt.base.results import Readable, Status, frozen, moved_intercept
from ceopt.formulations import programs
from ceopt.formulations.digits import digits
from ceopt.formulations.programs.corrections import require_inequalities
from ceopt.formulations.programs.moments import Moments, require_mean, require_moments, require_plan, require_point
from ceopt.formulations.programs.parts import free_columns
from ceopt.formulations.programs.validity_lower import least_of_score
from ceopt.plans.validity import directions, lower_bound_of_one, validity_bounds
from ceopt.solvers import solve
from ceopt.solvers.checks import LENGTH, Choice, Floats, Whole, check_arguments
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.tolerances import (
    BOUNDARY_ROUNDING,
    CORRECTION_MISSED,
    ENTRY_NOISE,
    EQUAL_WEIGHTS,
    INEQUALITY_ROUNDING,
    SOLVED_RESIDUAL,
)

# ==== The requirement correction: the nearest plan that is favourable at the mean parameters, in closed form ==========


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequirementCorrection(Readable):
    """What :func:`requirement_correction` returns.

    Parameters
    ----------
    plan
        Shape (J, d); None where there is none.
    changed
        Shape (J,): which counterfactuals were below the margin and moved; none where there is no plan.
    status
        "optimal", or "infeasible": no move of the free columns reaches the margin.
    reason
        One sentence, or empty.
    """

    plan: Floats | None
    changed: NDArray[np.bool_]
    status: Status
    reason: str = ""

    def __post_init__(self) -> None:
        frozen(self, "plan", "changed")


def requirement_correction(
    plan: ArrayLike, mean: ArrayLike, margin: float = 0.0, *, fixed: Iterable[int] | None = None
) -> RequirementCorrection:
    r"""Move each counterfactual as little as possible to where its score at the mean parameters is at least ``margin``.

    .. math::
        x_j' = \operatorname{argmin} \{ \lVert x - x_j \rVert : \hat\mu^\top x \ge \varepsilon,\ x_k = x_{jk}
        \text{ for fixed } k \} = x_j + \max(0, \varepsilon - \hat\mu^\top x_j)\,
        \hat\mu_f / \lVert \hat\mu_f \rVert^2,

    where f are the free columns. It is the optimum of ``programs.requirement_correction`` up to rounding. Afterwards
    the upper validity bound is 1; with a margin above 0 the mean is inside, yet the lower bound may still be 0.

    Parameters
    ----------
    plan
        Shape (J, d): one counterfactual a row. With an intercept, the last column is 1.
    mean
        Of the parameters, shape (d,).
    margin
        In units of the score, at least 0.
    fixed
        Places of columns that may not move; with an intercept, ``[-1]``.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a plan without rows, a negative margin, a place that is no column.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, section 3.1.

    Examples
    --------
    >>> from ceopt.plans import requirement_correction
    >>> corrected = requirement_correction([[-2, 1], [1, 3]], mean=[2, 1], margin=1)
    >>> corrected.plan.tolist(), corrected.changed.tolist()
    ([[-0.3999999999999999, 1.8], [1.0, 3.0]], [True, False])
    >>> requirement_correction([[-2, 1]], mean=[1, 0], fixed=[0]).reason
    'Counterfactual 0 is below the margin, and the mean is 0 in all columns that may move.'
    """
    who = "requirement_correction"
    given = require_plan(who, plan)
    m = require_mean(who, mean, d=given.shape[1])
    LENGTH.require(who, "margin", margin)
    free = free_columns(who, fixed, len(m))
    missing = margin - given @ m
    below = missing > 0.0
    if not below.any():
        return RequirementCorrection(plan=given.copy(), changed=below, status=Status.OPTIMAL)
    normal = np.where(free, m, 0.0)
    size = float(np.abs(normal).max(initial=0.0))
    if not size:
        where = "and the mean is 0 in all columns that may move" if free.any() else "and no column may move"
        reason = f"Counterfactual {int(below.argmax())} is below the margin, {where}."
        return RequirementCorrection(plan=None, changed=np.zeros_like(below), status=Status.INFEASIBLE, reason=reason)
    unit = normal / size  # the squares of very small numbers would be 0
    moves = np.where(below, missing, 0.0)[:, None] / size * (unit / (unit @ unit))
    plan = given + moves
    plan[(moves != 0.0) & (np.abs(plan) <= ENTRY_NOISE * np.abs(given))] = 0.0
    return RequirementCorrection(plan=plan, changed=below, status=Status.OPTIMAL, reason=moved_intercept(given, plan))


# ==== The point of a ball whose lower bound on validity is greatest, exactly and without a solver =====================

#: A point of less than this part of the centre's norm is a difference that has lost digits.
_SHORT: Final = 1e-3
#: How far apart logarithms of a weight are tried: beyond are the edges, which are answered apart.
_WIDEST: Final = 60.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Ball:
    """The points centre + directions @ z with a norm of z of at most ``reach``; directions has orthonormal columns.

    ``apart`` is the part of the centre at right angles to all directions, which no point can leave.
    """

    centre: Floats
    directions: Floats
    reach: float
    apart: Floats

    def toward(self, mean: Floats) -> Floats:
        """Return the point of the greatest mean score."""
        forward = self.directions.T @ mean
        length = float(np.linalg.norm(forward))
        factor = self.reach / length if length else 0.0
        return np.asarray(self.centre + self.directions @ forward * factor)


@final
class BestInReach:
    """The best point within reach of any x, for some moments, radius and free columns.

    Parameters
    ----------
    moments
        Of d parameters.
    radius
        At least 0.
    free
        Which columns may move, shape (d,).
    """

    def __init__(self, moments: Moments, radius: float, free: NDArray[np.bool_]) -> None:
        unit = float(np.abs(moments.mean).max(initial=0.0)) or 1.0  # kappa is the same in all units
        self.level = _Level(moments.mean / unit, moments.factor / unit, radius / unit)
        self.free = free
        self.columns = np.eye(len(free))[:, free]
        self.left, self.roots, self.right = np.linalg.svd(self.level.factor.T @ self.columns)

    def best(self, x: Floats, reach: float) -> tuple[Floats, float] | None:
        """Return the point with the greatest kappa within ``reach`` of x, and its kappa.

        None if no point in reach has a kappa above 0. Of the multiples of a best point it is the one next to x.
        """
        level = self.level
        mean = self.level.mean
        if not reach or not self.free.any():
            return level.best([x])
        ball = _Ball(x, self.columns, reach, np.where(self.free, 0.0, x))
        start = ball.toward(mean)
        if not level.is_ahead(start):
            return None
        flat = self._flat(ball)
        kink = []
        if flat is not None and level.is_ahead(flat.toward(mean)):
            kink.append(_Frontier(flat, mean).touched(flat.toward(mean)))
        if not level.radius and kink:
            return level.best(kink)
        if level.radius:  # the direction next to the mean is the first to be ahead of what the radius takes
            start = _Frontier(ball, mean).touched(start)
            if level.of(start) is None:
                return None
        frontier = _Frontier(ball, mean, level.factor, self.right.T, self.roots**2)
        top = _mixed(frontier, level, start) if level.radius else frontier.touched(start)
        return level.best([start, *kink, top])

    def _flat(self, ball: _Ball) -> _Ball | None:
        """Return the ball of the points with a spread of 0; None if it is empty or 0."""
        factor = self.level.factor
        missing = -(self.level.factor.T @ ball.centre)
        rank = int((self.roots > SOLVED_RESIDUAL * self.roots.max(initial=0.0)).sum())
        along = self.left[:, :rank].T @ missing
        size = float(np.linalg.norm(factor) * np.linalg.norm(ball.centre))
        move = along / self.roots[:rank]
        left = ball.reach**2 - float(move @ move)
        if np.linalg.norm(missing - self.left[:, :rank] @ along) > SOLVED_RESIDUAL * size or left < 0.0:
            return None
        centre = ball.centre + ball.directions @ (self.right[:rank].T @ move)
        directions = ball.directions @ self.right[rank:].T
        reach = math.sqrt(left) if directions.shape[1] else 0.0
        old = float(np.linalg.norm(ball.centre)) + ball.reach
        if np.linalg.norm(centre) + reach <= SOLVED_RESIDUAL * old:
            return None
        apart = centre - directions @ (directions.T @ centre)
        return _Ball(centre, directions, reach, np.where(np.abs(apart) > BOUNDARY_ROUNDING * old, apart, 0.0))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """The kappa of points, in units in which the mean has size 1."""

    mean: Floats
    factor: Floats
    radius: float

    def sizes(self, x: Floats) -> tuple[float, float, float]:
        """Return m, s and n of a point; s is 0 where it is rounding."""
        spread = float(np.linalg.norm(self.factor.T @ x))
        norm = float(np.linalg.norm(x))
        rounding = SOLVED_RESIDUAL * float(np.linalg.norm(self.factor)) * norm
        if spread <= rounding:
            spread = 0.0
        return float(self.mean @ x), spread, norm

    def is_ahead(self, x: Floats, inflation: float = 0.0) -> bool:
        """Whether the mean score of x is above ``inflation`` by more than rounding."""
        score = float(self.mean @ x)
        return score - inflation > BOUNDARY_ROUNDING * float(np.abs(self.mean) @ np.abs(x))

    def of(self, x: Floats) -> float | None:
        """Return kappa of x, None where it is not above 0."""
        score, spread, norm = self.sizes(x)
        inflation = self.radius * norm
        if not self.is_ahead(x, inflation):
            return None
        valid, invalid = least_of_score(score, spread, inflation)
        return math.sqrt(valid / invalid) if invalid else math.inf

    def best(self, points: list[Floats]) -> tuple[Floats, float] | None:
        """Return the point of the greatest kappa; of equals up to rounding the last."""
        best: tuple[Floats, float] | None = None
        for x in points:
            kappa = self.of(x)
            if kappa is not None and (best is None or kappa >= best[1] * (1.0 - BOUNDARY_ROUNDING)):
                best = x, kappa
        return best


@final
class _Frontier:
    """The points of a ball that maximise m - a (s^2 + c n^2) / 2, in coordinates in which s^2 has no cross terms.

    Without a factor s is n.
    """

    def __init__(
        self,
        ball: _Ball,
        mean: Floats,
        factor: Floats | None = None,
        turned: Floats | None = None,
        squares: Floats | None = None,
    ) -> None:
        self.ball = ball
        self.axes = ball.directions
        if turned is not None:
            self.axes = ball.directions @ turned
        self.square = np.ones(self.axes.shape[1])
        if squares is not None:
            self.square[:] = 0.0
            self.square[: len(squares)] = squares
        bend = ball.centre if factor is None else factor @ (factor.T @ ball.centre)
        self.mean = mean
        self.factor = factor
        self.forward = self.axes.T @ mean
        self.bend = self.axes.T @ bend
        self.outward = self.axes.T @ ball.centre
        off = ball.apart
        seen = off if factor is None else factor @ (factor.T @ off)
        self.apart = float(mean @ off), float(seen @ ball.centre), self.axes.T @ seen, float(off @ off)

    def at(self, a: float, c: float) -> tuple[Floats, float]:
        """Return the maximiser, in coordinates from the centre, and a (s^2 + c n^2) - m of it."""
        slope = self.forward - a * (self.bend + c * self.outward)
        y, multiplier = _farthest(slope, a * (self.square + c), self.ball.reach)
        # As the gradient of what x maximises is the multiplier times y, only its part off the directions is added up:
        # a (s^2 + c n^2) - m itself would be the difference of large numbers.
        score, bend, along, square = self.apart
        behind = -multiplier * float((self.outward + y) @ y) + a * (bend + along @ y + c * square) - score
        if behind or square:
            return y, float(behind)
        # On a ray from 0 inside the ball all a are roots; those at the end of the ray lose its direction.
        is_short = np.linalg.norm(self.outward + y) < _SHORT * np.linalg.norm(self.outward)
        return y, 1.0 if is_short else 0.0

    def touched(self, start: Floats, c: float = 0.0) -> Floats:
        """Return the point of the greatest m / sqrt(s^2 + c n^2); ``start`` is one where m is above 0."""
        spread = start if self.factor is None else self.factor.T @ start
        size = float(np.linalg.norm(spread) ** 2 + c * start @ start)
        guess = math.log(float(self.mean @ start)) - math.log(max(size, 1e-300))
        log_a = _root(lambda log_a: self.at(_exp(log_a), c)[1], guess)
        x = np.asarray(self.ball.centre + self.axes @ self.at(_exp(log_a), c)[0])
        if self.apart[3]:
            return x
        part = float(self.ball.centre @ x / (x @ x))  # all on its ray are as good: take that next to the centre
        if part > _SHORT:
            return x * part
        return x


def _mixed(frontier: _Frontier, level: _Level, start: Floats) -> Floats:
    """Return the point of the greatest kappa for a radius above 0: step 2."""

    def behind(log_c: float) -> float:
        """How far c is above the one that its own point asks for, in logarithms."""
        x = frontier.touched(start, math.exp(log_c))
        kappa = level.of(x)
        if kappa is None:  # too far from the mean's direction: c must grow
            return -1.0
        _, spread, norm = level.sizes(x)
        asked = level.radius * math.hypot(1.0, 1.0 / kappa) * spread / norm
        return log_c - math.log(max(asked, 1e-300))

    _, spread, norm = level.sizes(start)
    return frontier.touched(start, math.exp(_root(behind, math.log(max(level.radius * spread / norm, 1e-12)))))


def _root(rising: Callable[[float], float], guess: float) -> float:
    """Return where a rising function of a logarithm is 0, or the end of the search on the side of the root."""
    value = rising(guess)
    step = math.log(2.0)
    if not value:
        return guess
    low = high = guess
    while abs(high - low) < _WIDEST:
        step *= 2.0
        if value > 0.0:
            high = low
            low = low - step
            if rising(low) <= 0.0:
                break
        else:
            low = high
            high = high + step
            if rising(high) >= 0.0:
                break
    else:
        return low if value > 0.0 else high
    return float(brentq(rising, low, high, xtol=1e-14, rtol=1e-15))


def _exp(logarithm: float) -> float:
    return math.exp(min(logarithm, 700.0))  # beyond there are no numbers


def _farthest(slope: Floats, curvature: Floats, reach: float) -> tuple[Floats, float]:
    """Return the maximiser of slope @ y - curvature @ y**2 / 2 with a norm of at most ``reach``, and its multiplier.

    Newton's method on the inverse norm, which rises and is concave in the multiplier, from the left.
    """
    if not slope.size or not reach:
        return np.zeros_like(slope), 0.0
    multiplier = max(0.0, float((np.abs(slope) / reach - curvature).max()))

    def point() -> Floats:
        return np.divide(slope, curvature + multiplier, out=np.zeros_like(slope), where=slope != 0.0)

    y = point()
    norm = float(np.linalg.norm(y))
    if not multiplier and norm <= reach:
        return y, 0.0
    for _ in range(100):
        if norm <= reach * (1.0 + 1e-15):
            break
        bent = np.divide(y, curvature + multiplier, out=np.zeros_like(y), where=slope != 0.0)
        multiplier += (norm - reach) / reach * norm**2 / float(y @ bent)
        y = point()
        norm = float(np.linalg.norm(y))
    return y * (reach / norm), multiplier


# ==== The exact improvement of one counterfactual: the point near it that most likely survives retraining, at worst ===


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RobustImprovement(Readable):
    """What :func:`robust_improvement` returns.

    Parameters
    ----------
    point
        Shape (d,); None where there is none.
    kappa
        The lower bound of the point is kappa^2 / (1 + kappa^2); infinite for a lower bound of 1. None without a point.
    lower_before, lower_after
        Lower validity bounds of x and of the point; the latter None without a point.
    status
        "optimal", or "infeasible": no point in reach has a lower bound above 0.
    reason
        One sentence, or empty.
    """

    point: Floats | None
    kappa: float | None
    lower_before: float
    lower_after: float | None
    status: Status
    reason: str = ""

    def __post_init__(self) -> None:
        frozen(self, "point")


@one_thread
def robust_improvement(
    x: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    perturbation: float,
    radius: float = 0.0,
    fixed: Iterable[int] | None = None,
) -> RobustImprovement:
    r"""Find the point within ``perturbation`` of x whose lower bound on its validity is the greatest.

    .. math::
        \max_{x'}\ L^*(\{x'\}) \quad\text{s.t.}\quad \lVert x' - x \rVert \le \Delta, \quad
        x'_k = x_k \text{ for fixed } k.

    The bound is :math:`\kappa^2 / (1 + \kappa^2)` for the greatest :math:`\kappa` at which the optimum of
    ``programs.robust_improvement`` is at least 0. It is found without a solver, to about 1e-9 of itself, from one
    equation of one unknown where ``radius`` is 0 and one within another otherwise. Of the multiples
    of a best point it is the one next to x. Unlike :func:`mahalanobis_correction` it never lowers the bound.

    Parameters
    ----------
    x
        A counterfactual, shape (d,). With an intercept, the last column is 1.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).
    perturbation
        Greatest Euclidean distance from x, in units of the columns; at least 0.
    radius
        Gelbrich distance, not squared, up to which the moments are uncertain; at least 0.
    fixed
        Places of columns that may not move; with an intercept, ``[-1]``.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a covariance that is none, a negative perturbation or radius, a place
        that is no column.

    References
    ----------
    Own: ``ceopt/plans/corrections.py`` derives it. The bound is theorem 2.2 of Bui, Nguyen & Nguyen (2022),
    Counterfactual plans under distributional ambiguity, for one counterfactual.

    Examples
    --------
    >>> from ceopt.plans import robust_improvement
    >>> found = robust_improvement([1, 1], [1, 0], [[1, 0], [0, 0]], perturbation=1, radius=0.1, fixed=[1])
    >>> found.point.round(6).tolist(), round(found.lower_before, 4), round(found.lower_after, 4)
    ([2.0, 1.0], 0.4005, 0.4212)
    """
    who = "robust_improvement"
    moments = require_moments(who, mean, covariance)
    point = require_point(who, "x", x, moments)
    check_arguments(who, {"perturbation": LENGTH, "radius": LENGTH}, locals())
    free = free_columns(who, fixed, len(point))
    before = lower_bound_of_one(point, moments, float(radius))
    found = BestInReach(moments, float(radius), free).best(point, float(perturbation))
    if found is None:
        beyond = "positive score at the mean" if not radius else "score at the mean above radius times its norm"
        reason = f"No point within {digits(perturbation)} of x has a {beyond}, so all of them have a lower bound of 0."
        return RobustImprovement(
            point=None, kappa=None, lower_before=before, lower_after=None, status=Status.INFEASIBLE, reason=reason
        )
    best, kappa = found
    return RobustImprovement(
        point=best,
        kappa=kappa,
        lower_before=before,
        lower_after=lower_bound_of_one(best, moments, float(radius)),
        status=Status.OPTIMAL,
        reason=moved_intercept(point, best),
    )


# ==== The Mahalanobis correction: the counterfactuals that fail most, each moved to where it fails less ===============

_CHECKS: Final = {
    "perturbation": LENGTH,
    "radius": LENGTH,
    "moments": Choice(("nominal", "worst")),
    "solver": SOLVER_NAME,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MahalanobisCorrection(Readable):
    """What :func:`mahalanobis_correction` returns.

    Parameters
    ----------
    plan
        Shape (J, d); None where there is none.
    selected
        Positions of the counterfactuals that were to be corrected, ascending.
    weights
        Shape (J,): of the lower bound of the given plan, by which they were selected.
    lower_before, lower_after
        Lower validity bounds of the given and the corrected plan; the latter None without a plan.
    selection_unique
        Whether the weights alone decide the selection. If not, ``reason`` says why.
    status
        "optimal" (each selected counterfactual is the best in its reach), "infeasible" (one of them has no point in
        reach that is favourable at the mean), or what a solver ended with.
    reason
        Sentences, or empty.
    """

    plan: Floats | None
    selected: NDArray[np.intp]
    weights: Floats
    lower_before: float
    lower_after: float | None
    selection_unique: bool
    status: Status
    reason: str = ""

    def __post_init__(self) -> None:
        frozen(self, "plan", "selected", "weights")


@one_thread
def mahalanobis_correction(
    plan: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    perturbation: float,
    n_corrected: int,
    radius: float = 0.0,
    moments: Literal["nominal", "worst"] = "nominal",
    fixed: Iterable[int] | None = None,
    inequalities: Sequence[ArrayLike] | None = None,
    solver: str = "auto",
) -> MahalanobisCorrection:
    r"""Move the counterfactuals that fail most in the worst case away from their decision boundaries.

    Those with the ``n_corrected`` greatest weights in :func:`validity_bounds` (of equal ones the first) are selected,
    the others stay. Each becomes the point within ``perturbation`` that is the most standard deviations inside:

    .. math::
        x_j' \in \operatorname{argmax} \Big\{ \frac{\mu^\top x}{\sqrt{x^\top \Sigma x}} : \lVert x - x_j \rVert \le
        \Delta,\ x_k = x_{jk} \text{ for fixed } k,\ A x \le b \Big\}.

    .. warning::
        This is the published heuristic, reported as it is: the lower bound of the plan **may fall**. It provably rises
        only for one counterfactual, radius 0 and nominal moments; compare ``lower_before`` and ``lower_after``. For
        one counterfactual :func:`robust_improvement` maximises the bound itself.

    The optimum is found without a solver where the best point in the ball satisfies the inequalities, to about 1e-9,
    and otherwise, or where a solver is named, as that of ``programs.mahalanobis_correction``, to its tolerance. Of the
    multiples of a best point it is the one next to where the counterfactual was.

    Parameters
    ----------
    plan
        Shape (J, d): one counterfactual a row. With an intercept, the last column is 1.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).
    perturbation
        Greatest Euclidean distance of each from where it was, in units of the columns; at least 0.
    n_corrected
        How many may move, 0 to J.
    radius
        Gelbrich distance, not squared, of the bounds that weigh and judge; at least 0.
    moments
        Which :math:`\mu, \Sigma` the moves are made for: the given ones, or the worst ones of the lower bound.
    fixed
        Places of columns that may not move; with an intercept, ``[-1]``.
    inequalities
        A pair (A, b) of shapes (k, d) and (k,): every selected counterfactual shall have A x <= b.
    solver
        Of the second-order cone programs; a name has all corrections solved by it. The bounds are left to "auto".

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a covariance that is none, a plan without rows, a negative
        perturbation or radius, a count out of range, a place that is no column.
    UnknownNameError
        There are no such moments, or no such solver.
    UnsupportedProblemError
        The solver does not take the cones.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorem 3.1.

    Examples
    --------
    >>> from ceopt.plans import mahalanobis_correction
    >>> found = mahalanobis_correction(
    ...     [[1, 0], [1, 1]], [2, 1], [[0.5, 0], [0, 0.5]], perturbation=0.5, n_corrected=1, radius=0.1
    ... )
    >>> found.selected.tolist(), found.plan.round(4).tolist()
    ([0], [[0.8, 0.4], [1.0, 1.0]])
    >>> round(found.lower_before, 4), round(found.lower_after, 4)
    (0.7867, 0.8452)
    """
    who = "mahalanobis_correction"
    given = require_moments(who, mean, covariance)
    d = len(given.mean)
    x = require_plan(who, plan, d=d)
    check_arguments(who, _CHECKS, locals())
    Whole(0, len(x)).require(who, "n_corrected", n_corrected)
    free = free_columns(who, fixed, d)
    sides = require_inequalities(who, inequalities, d)

    before = validity_bounds(x, given.mean, given.covariance, radius)
    selected, arbitrary = _selected(x, before.lower, before.weights, int(n_corrected))
    used = given
    if moments != "nominal":
        used = Moments(*before.worst)
    search = _PointSearch(used, BestInReach(used, 0.0, free), float(perturbation), free, sides, solver)
    corrected = x.copy()
    status = Status.OPTIMAL
    reason = arbitrary
    for j in selected.tolist():
        found, status, problem = search.best(x[j])
        if found is None:
            reason = " ".join(filter(None, (f"Counterfactual {j}: {problem}", arbitrary)))
            break
        corrected[j] = found
    whole: Floats | None = None
    after = None
    if status is Status.OPTIMAL:
        whole = corrected
        after = validity_bounds(corrected, given.mean, given.covariance, radius).lower
        reason = " ".join(filter(None, (reason, moved_intercept(x, corrected))))
    return MahalanobisCorrection(
        plan=whole,
        selected=selected,
        weights=before.weights,
        lower_before=before.lower,
        lower_after=after,
        selection_unique=not arbitrary,
        status=status,
        reason=reason,
    )


def _selected(x: Floats, lower: float, weights: Floats, k: int) -> tuple[NDArray[np.intp], str]:
    """Return the positions of the k greatest weights, of equal ones the first, and why they are arbitrary, if so."""
    order = sorted(range(len(x)), key=lambda j: (-round(float(weights[j]) / EQUAL_WEIGHTS), j))
    selected = np.array(sorted(order[:k]), dtype=np.intp)
    if k in {0, len(x)}:
        return selected, ""
    if lower <= 0.0:
        return selected, "The lower bound is 0, where the weights are not unique, so the selection is arbitrary."
    first = directions(x)
    if len(first.rows) < len(x):
        return selected, "Counterfactuals repeat a direction and share its weight, so the selection is arbitrary."
    if weights[order[k - 1]] - weights[order[k]] <= EQUAL_WEIGHTS:
        but = f"Counterfactuals {order[k - 1]} and {order[k]} have equal weights, so the selection is arbitrary."
        return selected, but
    return selected, ""


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PointSearch:
    """The best point in reach of one counterfactual: without a solver if it can be."""

    moments: Moments
    ball: BestInReach
    reach: float
    free: NDArray[np.bool_]
    sides: tuple[Floats, Floats]
    solver: str

    def best(self, x: Floats) -> tuple[Floats | None, Status, str]:
        """Return the point or None, the status, and a reason."""
        found = self.ball.best(x, self.reach)
        if found is None:
            return None, Status.INFEASIBLE, f"no point within {digits(self.reach)} has a positive score at the mean."
        if self.solver == "auto" and self._is_inside(found[0]):
            return found[0], Status.OPTIMAL, ""
        return self._solved(x)

    def _is_inside(self, x: Floats, tolerance: float = INEQUALITY_ROUNDING) -> bool:
        matrix, right = self.sides
        return bool((matrix @ x - right <= tolerance * (np.abs(matrix) @ np.abs(x) + np.abs(right))).all())

    def _solved(self, x: Floats) -> tuple[Floats | None, Status, str]:
        unit = float(np.abs(self.moments.mean).max()) or 1.0  # the point is the same in any unit of the parameters
        model = programs.mahalanobis_correction(
            x,
            self.moments.mean / unit,
            self.moments.covariance / unit**2,
            perturbation=self.reach,
            fixed=np.flatnonzero(~self.free).tolist(),
            inequalities=self.sides,
        )
        result = solve(model, self.solver, relative_gap=1e-9)
        if result.status.value == "infeasible":
            within = f"no point within {digits(self.reach)} that satisfies the inequalities"
            return None, Status.INFEASIBLE, f"{within} has a positive score at the mean."
        if result.status.value != "optimal":
            status = Status.TIME_LIMIT if result.status.value == "time_limit" else Status.ERROR
            return None, status, f"the solver ended with {result.status.value!r}. {result.message}".strip()
        point = np.array([model.v[k].value for k in range(len(x))]) / model.t.value
        point = np.where(self.free, point, x)
        allowed = self.reach + CORRECTION_MISSED * max(self.reach, float(np.linalg.norm(x)))
        if float(np.linalg.norm(point - x)) > allowed or not self._is_inside(point, CORRECTION_MISSED):
            return None, Status.REJECTED, "the solver's point is out of reach or breaks an inequality."
        return point, Status.OPTIMAL, ""
