r"""The plan without diversity, globally: the least of :math:`\varphi(r) - \lambda_1 r` over one number."""

from __future__ import annotations

import heapq
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyomo.environ as pyo
from scipy.optimize import minimize_scalar

from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.programs.copa import copa_plan_alike
from ceopt.formulations.programs.parts import Floats, sum_of
from ceopt.plans.copa.gradient import best_plan
from ceopt.plans.copa.refinement import polished
from ceopt.plans.copa.search_space import PlanSearch
from ceopt.solvers import Result, Status, solve
from ceopt.solvers.cones import soc
from ceopt.solvers.deadline import OutOfTimeError, checkpoint
from ceopt.tolerances import FINE_ANGLE, LEAST_ANGLE, STILL_SPREAD

__all__ = ["CLOSE", "GlobalOptimum", "alike_plan", "nearest", "top_ratio"]

CLOSE: Final = 1e-3  # of 1 + the objective: how far what is proved may be below it
_MOST: Final = 200  # cone programs of the bound


@final
@dataclass(frozen=True, slots=True, eq=False)
class GlobalOptimum:
    """The best counterfactual, shape (d,), None without one; what is proved of its objective; why it ended."""

    point: Floats | None
    bound: float
    status: Status
    reason: str = ""


def nearest(search: PlanSearch, arguments: dict[str, Any], radius: float) -> tuple[Result, Floats | None]:
    """Return the nearest counterfactual of at least this validity value, put where the rules hold exactly."""
    model = copa_plan_alike(
        search.terms.factual,
        search.terms.moments.mean,
        search.terms.moments.covariance,
        radius=radius,
        margin=search.margin,
        **arguments,
    )
    result = solve(model, relative_gap=1e-9)
    if not result.solutions:
        return result, None
    point = np.array([model.x[k].value for k in range(len(search.terms.factual))], dtype=np.float64)
    low, high = search.held(point[None])
    point = search.onto(point[None, None], low, high)[0, 0]
    if radius == math.inf:
        point = _stilled(search, point, (low[0] < point) & (point < high[0]))
    return result, point


def _stilled(search: PlanSearch, point: Floats, free: Any) -> Floats:
    """Return the point with the variance that a solver's tolerance leaves taken out of its free columns."""
    factor = search.terms.factor
    mean = search.terms.moments.mean
    point = point.copy()
    inverse = np.linalg.pinv(factor[free].T)
    rise = mean[free] - inverse @ (factor[free].T @ mean[free])
    for _ in range(3):
        missing = search.margin - float(mean @ point)
        if missing > 0.0 and float(mean[free] @ rise) > 0.0:
            point[free] += missing * rise / float(mean[free] @ rise)
        point[free] -= inverse @ (factor.T @ point)
    return point


def alike_plan(search: PlanSearch, arguments: dict[str, Any], top: float) -> GlobalOptimum:
    r"""Return the counterfactual that a plan of the best objective repeats; ``top`` bounds its validity value.

    At the deadline no interval is halved any more.

    :math:`\varphi` does not fall, so that between two angles the objective is at least :math:`\varphi` at the smaller r
    minus :math:`\lambda_1` times the greater one. The interval of the least such bound is halved until it is close to
    the best point found; a last search in one dimension then settles the digits.

    Raises
    ------
    OutOfTimeError
        The deadline is over before the first counterfactual is there.
    """
    terms = search.terms
    result, point = nearest(search, arguments, 0.0)
    if point is None and result.status is Status.TIME_LIMIT:
        raise OutOfTimeError("solving the first cone program")
    if point is None:
        return GlobalOptimum(None, math.inf, result.status, result.message)
    # One counterfactual has a determinant of 1.
    shift = terms.diversity_weight if search.n == 1 else 0.0
    distance = _proved(result, float(terms.distance.of(point - terms.factual)))
    if not terms.validity_weight or not top:
        return GlobalOptimum(point, distance - shift, result.status, result.message)
    angles = _AngleSearch(search, arguments, top, shift)
    return angles.run(point, distance)


@final
class _AngleSearch:
    r"""The least of the objective over angles from 0 to a right angle, at which the validity value is top * cos(angle).

    Parameters
    ----------
    search, arguments, top
        As for :func:`alike_plan`.
    shift
        What the objective lacks of a single counterfactual's: the weight of its determinant.
    """

    def __init__(self, search: PlanSearch, arguments: dict[str, Any], top: float, shift: float) -> None:
        self.search = search
        self.arguments = arguments
        self.top = top
        self.shift = shift
        self.weight = search.terms.validity_weight
        #: By angle: the distance that is proved, and the objective of the point found there.
        self.seen: dict[float, tuple[float, float]] = {}
        #: Objectives and points.
        self.best: list[tuple[float, Floats]] = []

    def run(self, point: Floats, distance: float) -> GlobalOptimum:
        """Return the optimum, from the nearest counterfactual of any validity value and its proved distance."""
        alone = PlanSearch(self.search.terms, self.search.region, self.search.margin, 1)
        self._add(point)
        descended = best_plan(alone, 0)
        if descended is not None:
            self._add(descended[0])
        self.seen[math.pi / 2] = (distance, self.best[0][0])
        with suppress(OutOfTimeError):
            self.distance_at(LEAST_ANGLE)
        bound = self._bound_by_halving()
        with suppress(OutOfTimeError):
            minimize_scalar(
                lambda angle: self.distance_at(float(angle)) - self.gain_at(float(angle)),
                bounds=_around_best({angle: objective for angle, (_, objective) in self.seen.items()}),
                method="bounded",
                options={"xatol": FINE_ANGLE, "maxiter": 25},
            )
        _, point = self._least()
        self._add(polished(alone, point[None], *self.search.held(point[None]))[0])
        least, point = self._least()
        if self._is_close(least, bound):
            return GlobalOptimum(point, min(bound, least) - self.shift, Status.OPTIMAL)
        reason = f"{len(self.seen)} cone programs left a gap of {digits(rounded(least - bound, 3, 'up'))}."
        return GlobalOptimum(point, bound - self.shift, Status.FEASIBLE, reason)

    def _add(self, point: Floats) -> float:
        """Keep a point and return its objective."""
        objective = float(self.search.terms.value(point[None])) + self.shift
        self.best.append((objective, point))
        return objective

    def _least(self) -> tuple[float, Floats]:
        return min(self.best, key=lambda pair: pair[0])

    def _is_close(self, least: float, bound: float) -> bool:
        return least - bound <= CLOSE * (1.0 + abs(least - self.shift))

    def gain_at(self, angle: float) -> float:
        """Return what the validity value at an angle takes off the objective."""
        return self.weight * self.top * math.cos(angle)

    def distance_at(self, angle: float) -> float:
        """Return the distance at an angle, infinite where no counterfactual has this value; keep what is found.

        Raises
        ------
        OutOfTimeError
            The deadline is over.
        """
        if angle not in self.seen:
            checkpoint("solving cone programs")
            radius = self.top * math.cos(angle)
            result, point = nearest(self.search, self.arguments, radius)
            objective = math.inf
            distance = math.inf if result.status is Status.INFEASIBLE else 0.0  # 0: nothing is known
            if point is not None:
                terms = self.search.terms
                distance = _proved(result, float(terms.distance.of(point - terms.factual)))
                objective = self._add(point)
            self.seen[angle] = (distance, objective)
        return self.seen[angle][0]

    def _bound_by_halving(self) -> float:
        """Return a bound on the objective: that of the interval whose bound is least when it is close, or at the end.

        An interval's bound is the distance at its greater angle, where the validity value is smaller, less the gain at
        its smaller one.
        """
        right = math.pi / 2
        intervals = [(self.seen[right][0] - self.weight * self.top, 0.0, right)]
        bound = -math.inf
        while intervals:
            bound, low, high = intervals[0]
            if self._is_close(self._least()[0], bound) or len(self.seen) >= _MOST:
                break
            middle = (low + high) / 2.0
            if not low < middle < high:
                break  # no float is between
            try:
                distance = self.distance_at(middle)
            except OutOfTimeError:
                break
            heapq.heappop(intervals)
            if math.isfinite(distance):
                heapq.heappush(intervals, (distance - self.gain_at(low), low, middle))
            heapq.heappush(intervals, (self.seen[high][0] - self.gain_at(middle), middle, high))
        return bound


def _around_best(values: dict[float, float]) -> tuple[float, float]:
    """Return the places on both sides of that of the least value."""
    places = sorted(values)
    k = places.index(min(places, key=lambda place: values[place]))
    return places[max(k - 1, 0)], places[min(k + 1, len(places) - 1)]


def top_ratio(search: PlanSearch) -> float:
    r"""Return what no validity value in the region exceeds: one over the least :math:`\lVert F^\top v \rVert`.

    v is a counterfactual divided by its score, so that the region becomes a cone: :math:`\hat\mu^\top v = 1`,
    :math:`l t \le v \le u t`, :math:`t \varepsilon \le 1`, groups adding up to t. 0 if there is none, infinite if
    the score need not vary.
    """
    region = search.region
    moments = search.terms.moments
    factor = search.terms.factor
    d = range(len(moments.mean))
    model = pyo.ConcreteModel()
    model.v = pyo.Var(d)
    model.s = pyo.Var(domain=pyo.NonNegativeReals)
    model.t = pyo.Var(domain=pyo.NonNegativeReals)
    model.score = pyo.Constraint(expr=sum_of(model.v.values(), moments.mean) == 1.0)
    if search.margin:
        model.margin = pyo.Constraint(expr=search.margin * model.t <= 1.0)
    low = np.flatnonzero(np.isfinite(region.lower)).tolist()
    high = np.flatnonzero(np.isfinite(region.upper)).tolist()
    model.low = pyo.Constraint(low, rule=lambda m, k: sum_of((m.v[k], m.t), (1.0, -region.lower[k])) >= 0.0)
    model.high = pyo.Constraint(high, rule=lambda m, k: sum_of((m.v[k], m.t), (1.0, -region.upper[k])) <= 0.0)
    model.one = pyo.Constraint(
        range(len(region.groups)),
        rule=lambda m, g: sum_of([*(m.v[k] for k in region.groups[g]), m.t], [*[1.0] * len(region.groups[g]), -1]) == 0,
    )
    model.spread = pyo.Constraint(expr=soc(model.s, [sum_of(model.v.values(), column) for column in factor.T]) >= 0)
    model.least = pyo.Objective(expr=model.s)
    result = solve(model)
    if result.status is Status.INFEASIBLE:
        return 0.0
    least = 0.0 if result.bound is None else result.bound
    size = float(np.linalg.norm(factor)) / max(float(np.linalg.norm(moments.mean)), 1e-300)
    return math.inf if least <= STILL_SPREAD * size else (1.0 + STILL_SPREAD) / least


def _proved(result: Result, distance: float) -> float:
    """Return what the solver proved of the least distance, which is at most the distance found."""
    if result.bound is None:
        return distance
    return min(distance, max(result.bound, 0.0))
