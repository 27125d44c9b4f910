r"""The point of a ball whose lower bound on validity is greatest, exactly and without a solver.

Let :math:`m = \hat\mu^\top x`, :math:`s = \sqrt{x^\top \hat\Sigma x}`, :math:`n = \lVert x \rVert`. The lower bound of
the one counterfactual x is :math:`\kappa^2 / (1 + \kappa^2)`, where :math:`m = \kappa s + \rho \sqrt{1 + \kappa^2}\, n`
(``ceopt/plans/validity/closed_form_cases.py``), so the greatest bound is the greatest :math:`\kappa`. With
:math:`\rho = 0` that is m / s.

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Floats
from ceopt.formulations.programs.validity_parts import least_of_score
from ceopt.tolerances import BOUNDARY_ROUNDING, SOLVED_RESIDUAL

__all__ = ["BestInReach"]

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
        if flat is not None and not level.is_ahead(flat.toward(mean)):
            flat = None
        kink = [] if flat is None else [_Frontier(flat, mean).touched(flat.toward(mean))]
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
        """Return the points of the ball with a spread of 0, a ball again; None if there are none but 0."""
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
        self.axes = ball.directions if turned is None else ball.directions @ turned
        self.square = np.zeros(self.axes.shape[1]) if squares is not None else np.ones(self.axes.shape[1])
        if squares is not None:
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
        return x * part if part > _SHORT else x


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
