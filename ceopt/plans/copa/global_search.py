r"""The plan without diversity, globally: the least of :math:`\varphi(r) - \lambda_1 r` over one number."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from time import perf_counter as clock
from typing import Any, Final, final

import numpy as np
import pyomo.environ as pyo
from scipy.optimize import minimize_scalar

from ceopt.formulations.programs.copa.plan_alike import copa_plan_alike
from ceopt.formulations.programs.subset.pairs import Floats, sum_of
from ceopt.plans.copa.gradient import best_plan
from ceopt.plans.copa.refinement import polished
from ceopt.plans.copa.search_space import PlanSearch
from ceopt.solvers import Result, Status, solve
from ceopt.solvers.cones import soc
from ceopt.tolerances import FINE_ANGLE, LEAST_ANGLE, STILL_SPREAD

__all__ = ["CLOSE", "GlobalOptimum", "alike_plan", "nearest", "top_ratio"]

CLOSE: Final = 1e-3  # of 1 + the objective: how far what is proved may be below it
_MOST: Final = 200  # cone programs of the bound
_SHORTEST: Final = 1.0  # second that a cone program has when the time is over


@final
@dataclass(frozen=True, slots=True, eq=False)
class GlobalOptimum:
    """The best counterfactual, shape (d,), None without one; what is proved of its objective; why it ended."""

    point: Floats | None
    bound: float
    status: Status
    reason: str = ""


def nearest(
    search: PlanSearch, arguments: dict[str, Any], radius: float, limit: float | None = None
) -> tuple[Result, Floats | None]:
    """Return the nearest counterfactual of at least this validity value, put where the rules hold exactly."""
    model = copa_plan_alike(
        search.terms.factual,
        search.terms.moments.mean,
        search.terms.moments.covariance,
        radius=radius,
        margin=search.margin,
        **arguments,
    )
    result = solve(model, relative_gap=1e-9, time_limit_s=limit)
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
    factor, mean, point = search.terms.factor, search.terms.moments.mean, point.copy()
    inverse = np.linalg.pinv(factor[free].T)
    rise = mean[free] - inverse @ (factor[free].T @ mean[free])
    for _ in range(3):
        missing = search.margin - float(mean @ point)
        if missing > 0.0 and float(mean[free] @ rise) > 0.0:
            point[free] += missing * rise / float(mean[free] @ rise)
        point[free] -= inverse @ (factor.T @ point)
    return point


def alike_plan(search: PlanSearch, arguments: dict[str, Any], top: float, limit: float) -> GlobalOptimum:
    r"""Return the counterfactual that a plan of the best objective repeats; ``top`` bounds its validity value.

    After ``limit`` seconds no interval is halved any more.

    :math:`\varphi` does not fall, so that between two angles the objective is at least :math:`\varphi` at the smaller r
    minus :math:`\lambda_1` times the greater one. The interval of the least such bound is halved until it is close to
    the best point found; a last search in one dimension then settles the digits.
    """
    terms, end = search.terms, clock() + limit
    result, point = nearest(search, arguments, 0.0, limit)
    if point is None:
        return GlobalOptimum(None, math.inf, result.status, result.message)
    # One counterfactual has a determinant of 1.
    weight, shift = terms.validity_weight, terms.diversity_weight if search.n == 1 else 0.0
    base = float(terms.distance.of(point - terms.factual))
    if not weight or not top:
        return GlobalOptimum(point, _proved(result, base) - shift, Status.OPTIMAL)
    seen: dict[float, tuple[float, float]] = {}
    best: list[tuple[float, Floats]] = []

    def ask(angle: float) -> float:
        """Return the distance at an angle, infinite where no counterfactual has this value; keep what is best."""
        if angle not in seen:
            radius = top * math.cos(angle)
            result, found = nearest(search, arguments, radius, max(end - clock(), _SHORTEST))
            worth = math.inf
            distance = math.inf if result.status is Status.INFEASIBLE else 0.0  # 0: nothing is known
            if found is not None:
                distance = _proved(result, float(terms.distance.of(found - terms.factual)))
                worth = float(terms.value(found[None])) + shift
                best.append((worth, found))
            seen[angle] = (distance, worth)
        return seen[angle][0]

    alone = PlanSearch(terms, search.region, search.margin, 1)
    descended = best_plan(alone, 0)
    known = [point[None], *([] if descended is None else [descended])]
    best += [(float(terms.value(plan)) + shift, plan[0]) for plan in known]
    seen[math.pi / 2] = (_proved(result, base), best[0][0])
    ask(LEAST_ANGLE)
    bound, intervals = -math.inf, [(seen[math.pi / 2][0] - weight * top, 0.0, math.pi / 2)]
    while intervals:
        bound, low, high = intervals[0]
        least = min(worth for worth, _ in best)
        if least - bound <= CLOSE * (1.0 + abs(least - shift)) or len(seen) >= _MOST or clock() > end:
            break
        heapq.heappop(intervals)
        middle = (low + high) / 2.0
        if not low < middle < high:
            break  # no float is between
        distance = ask(middle)
        if math.isfinite(distance):
            heapq.heappush(intervals, (distance - weight * top * math.cos(low), low, middle))
        heapq.heappush(intervals, (seen[high][0] - weight * top * math.cos(middle), middle, high))
    if clock() < end:
        span = _around_best({angle: worth for angle, (_, worth) in seen.items()})
        minimize_scalar(
            lambda angle: ask(float(angle)) - weight * top * math.cos(float(angle)),
            bounds=span,
            method="bounded",
            options={"xatol": FINE_ANGLE, "maxiter": 25},
        )
    least, point = min(best, key=lambda pair: pair[0])
    fine = polished(alone, point[None], *search.held(point[None]))
    worth = float(terms.value(fine)) + shift
    least, point = min((least, point), (worth, fine[0]), key=lambda pair: pair[0])
    if least - bound <= CLOSE * (1.0 + abs(least - shift)):
        return GlobalOptimum(point, min(bound, least) - shift, Status.OPTIMAL)
    return GlobalOptimum(
        point, bound - shift, Status.FEASIBLE, f"{len(seen)} cone programs left a gap of {least - bound:.3g}."
    )


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
    region, moments, factor = search.region, search.terms.moments, search.terms.factor
    d = range(len(moments.mean))
    model = pyo.ConcreteModel()
    model.v = pyo.Var(d)
    model.s, model.t = pyo.Var(domain=pyo.NonNegativeReals), pyo.Var(domain=pyo.NonNegativeReals)
    model.score = pyo.Constraint(expr=sum_of(model.v.values(), moments.mean) == 1.0)
    if search.margin:
        model.margin = pyo.Constraint(expr=search.margin * model.t <= 1.0)
    low, high = ([k for k in d if np.isfinite(side[k])] for side in (region.lower, region.upper))
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
    return min(distance, distance if result.bound is None else max(result.bound, 0.0))
