"""Searches for a COPA plan: gradients from many starts, SCIP, cone programs along one number, the published descent.

Each ends in a plan whose groups of one-hot columns are categories, in reach of the margin.
"""

from __future__ import annotations

import heapq
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import pyomo.environ as pyo
from scipy.optimize import minimize, minimize_scalar

from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.programs.copa import copa_plan as program
from ceopt.formulations.programs.copa import copa_plan_alike
from ceopt.formulations.programs.parts import sum_of
from ceopt.plans.copa_space import PlanSearch, Terms, reach_of
from ceopt.solvers import Result, Status, solve
from ceopt.solvers.checks import Floats
from ceopt.solvers.cones import soc
from ceopt.solvers.deadline import OutOfTimeError, checkpoint, seconds_left
from ceopt.tolerances import (
    ALIKE_PLANS,
    COPA_JITTER,
    DESCENT_LEAST_SIZE,
    DESCENT_STILL,
    EXCHANGE_GAIN,
    FINE_ANGLE,
    LAST_STEP,
    LEAST_ANGLE,
    LEAST_SLOPE,
    LEAST_WITHIN,
    PLAN_GAP,
    SOFTNESS,
    STILL_SCORE,
    STILL_SPREAD,
)

# ==== Categories of a plan in place of parts of them: settled one after the other, then changed where that is better ==

_ALL: Final = 256  # combinations of all categories of all counterfactuals: so many are tried each
_ROUNDS: Final = 20  # of exchanges
_CATEGORY_STEPS: Final = ((100, 6), (400, 1))  # of the descents after an exchange, and how many of the best go on
_DESCENDED: Final = 96  # plans that are descended from, those that are best before; of combinations all are
_MAPPED: Final = 8  # the same with a feature map, which is called row by row


class Settled(NamedTuple):
    """A plan, shape (J, d), and bounds of that shape that hold each group of each counterfactual at a category."""

    plan: Floats
    lower: Floats
    upper: Floats


#: From plans (S, J, d), within bounds of that shape, to better ones and their objectives, in some steps.
Descend: TypeAlias = Callable[[Floats, Floats, Floats, int], tuple[Floats, Floats]]


def settled(search: PlanSearch, plan: Floats) -> Settled:
    """Return a plan with categories near one with parts of them.

    Groups are settled one after the other, each at the category that makes the plan best while what is not settled
    yet moves to meet the margin. A category that puts the margin out of reach is none; the one of the greatest mean
    never does.
    """
    region = search.region
    terms = search.terms
    plan = plan.copy()
    lower = np.array(np.broadcast_to(region.lower, plan.shape))
    upper = np.array(np.broadcast_to(region.upper, plan.shape))
    for j in range(len(plan)):
        for g, (columns, categories) in enumerate(_choices(search)):
            left = region.groups[g + 1 :]
            low = np.repeat(lower[j][None], len(categories), axis=0)
            high = np.repeat(upper[j][None], len(categories), axis=0)
            low[:, columns] = high[:, columns] = categories
            may = np.arange(len(categories))
            if terms.feature_map is None:
                reach = reach_of(low, high, left, np.broadcast_to(terms.moments.mean, low.shape))
                may = np.flatnonzero(reach >= min(search.margin, float(reach.max())))
            rows = np.repeat(plan[j][None], len(may), axis=0)
            plans = np.repeat(plan[None], len(may), axis=0)
            plans[:, j] = search.rows_onto(rows, low[may], high[may], left)
            objectives = np.where(search.met(plans), terms.value(plans), np.inf)
            k = int(objectives.argmin())
            plan = plans[k]
            lower[j] = low[may[k]]
            upper[j] = high[may[k]]
    return Settled(plan, lower, upper)


def exchanged(search: PlanSearch, first: Settled, objective: float, descend: Descend) -> Settled:
    """Return the best plan over all combinations of categories, or over exchanges of one for another while they help.

    All are tried where they are few. ``objective`` is that of the first plan. The deadline ends it with the best
    so far.
    """
    if seconds_left() <= 0.0:
        return first
    choices = _choices(search)
    rows = _rows(search, choices)
    if rows is not None:
        combinations = np.array(list(combinations_with_replacement(range(len(rows)), search.n)))
        return _best(search, first, objective, descend, rows[combinations], most=_ALL)[0]
    best = first
    for _ in range(_ROUNDS):
        values = np.array(list(_one_exchange(best, choices)))
        best, now = _best(search, best, objective, descend, values, most=_DESCENDED)
        if now >= objective - EXCHANGE_GAIN * (1.0 + abs(objective)):
            break
        objective = now
        if seconds_left() <= 0.0:
            break
    return best


def _choices(search: PlanSearch) -> list[tuple[list[int], Floats]]:
    """Return of each group its columns and their values, one category a row."""
    choices = [(list(group), np.eye(len(group))) for group in search.region.groups]
    choices += [([k], np.array([[0.0], [1.0]])) for k in search.region.flags]
    return choices


def _rows(search: PlanSearch, choices: list[tuple[list[int], Floats]]) -> Floats | None:
    """Return all combinations of categories of a counterfactual, NaN where columns are free; None if too many."""
    count = int(np.prod([float(len(categories)) for _, categories in choices]))
    total = 1.0
    for k in range(search.n):  # of combinations with repetition
        total *= (count + k) / (k + 1)
    if total > _ALL:
        return None
    rows = np.full((count, len(search.region.lower)), np.nan)
    for row, chosen in zip(rows, product(*(categories for _, categories in choices)), strict=True):
        for (columns, _), values in zip(choices, chosen, strict=True):
            row[columns] = values
    return rows


def _one_exchange(best: Settled, choices: list[tuple[list[int], Floats]]) -> Iterator[Floats]:
    """Yield the categories of the plans that differ from the best in one group of one counterfactual."""
    held = np.full(best.plan.shape, np.nan)
    for columns, _ in choices:
        held[:, columns] = best.lower[:, columns]
    for j in range(len(held)):
        for columns, categories in choices:
            for values in categories:
                if (held[j, columns] != values).any():
                    changed = held.copy()
                    changed[j, columns] = values
                    yield changed


def _best(
    search: PlanSearch, best: Settled, objective: float, descend: Descend, values: Any, *, most: int
) -> tuple[Settled, float]:
    """Return the best of a plan and of those with other categories, shape (S, J, d), and its objective."""
    terms = search.terms
    is_held = ~np.isnan(values)
    lower = np.where(is_held, values, search.region.lower)
    upper = np.where(is_held, values, search.region.upper)
    if terms.feature_map is None:
        flat = lower.reshape(-1, lower.shape[-1])
        reach = reach_of(flat, upper.reshape(flat.shape), (), np.broadcast_to(terms.moments.mean, flat.shape))
        may = (reach >= search.margin).reshape(lower.shape[:2]).all(axis=1)
        lower = lower[may]
        upper = upper[may]
    if not len(lower):
        return best, objective
    plans = search.onto(np.repeat(best.plan[None], len(lower), axis=0), lower, upper)
    if terms.feature_map is not None:
        most = _MAPPED
    if len(plans) > most:
        order = np.where(search.met(plans), terms.value(plans), np.inf).argsort(kind="stable")[:most]
        plans, lower, upper = plans[order], lower[order], upper[order]
    for steps, kept in _CATEGORY_STEPS:
        plans, objectives = descend(plans, lower, upper, steps)
        order = objectives.argsort(kind="stable")[:kept]
        plans, lower, upper, objectives = plans[order], lower[order], upper[order], objectives[order]
    if objectives[0] < objective:
        return Settled(plans[0], lower[0], upper[0]), float(objectives[0])
    return best, objective


# ==== Refinements of a COPA plan ======================================================================================

_MOST_REFINEMENTS: Final = 400  # numbers: dense matrices of this order are factored


def polished(search: PlanSearch, plan: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return a plan at a local optimum near this one, within bounds (J, d) and the margin; it may also be worse.

    It is the plan itself where the time ends before.

    The least ratio is a variable r, at most each ratio, so that all is smooth: SLSQP over the free columns and r.
    """
    terms = search.terms
    shape = plan.shape
    if terms.distance.kind == "l1":  # linear on either side of the factual: each column stays on its own
        lower = np.where(plan > terms.factual, np.maximum(lower, terms.factual), lower)
        upper = np.where(plan < terms.factual, np.minimum(upper, terms.factual), upper)
    free = np.flatnonzero((lower < upper).ravel())
    if not free.size or free.size > _MOST_REFINEMENTS or terms.feature_map is not None:
        return plan
    mean = terms.moments.mean
    factor = terms.factor
    weight = terms.validity_weight
    rest = Terms(terms.factual, terms.moments, terms.distance, 0.0, terms.diversity_weight)
    ratio = min(float(terms.ratios(plan).min()), terms.cap) if weight else 0.0
    has_ratio = bool(weight) and bool(factor.shape[1]) and np.isfinite(ratio)
    jacobian = np.zeros((shape[0], plan.size))
    for j in range(shape[0]):
        jacobian[j, j * shape[1] : (j + 1) * shape[1]] = mean

    def whole(v: Floats) -> Floats:
        full = plan.ravel().copy()
        full[free] = v[: free.size]
        return full.reshape(shape)

    def objective(v: Floats) -> tuple[float, Floats]:
        checkpoint("improving the plan")
        x = whole(v)
        tail = [-weight] if has_ratio else []
        value = float(rest.value(x)) - (weight * float(v[-1]) if has_ratio else 0.0)
        return value, np.concatenate([rest.slope(x).ravel()[free], tail])

    def valid(v: Floats) -> Floats:
        x = whole(v)
        return np.asarray(x @ mean - v[-1] * np.linalg.norm(x @ factor, axis=1))

    def valid_slope(v: Floats) -> Floats:
        x = whole(v)
        spread = x @ factor
        size = np.linalg.norm(spread, axis=1)
        rows = jacobian.copy()
        for j in range(shape[0]):
            part = slice(j * shape[1], (j + 1) * shape[1])
            rows[j, part] -= v[-1] * (spread[j] @ factor.T) / max(float(size[j]), 1e-300)
        return np.column_stack([rows[:, free], -size])

    padded = np.column_stack([jacobian[:, free], np.zeros((shape[0], int(has_ratio)))])
    rows = [{"type": "ineq", "fun": lambda v: whole(v) @ mean - search.margin, "jac": lambda _: padded}]
    limits = list(zip(lower.ravel()[free], upper.ravel()[free], strict=True))
    start = plan.ravel()[free]
    if has_ratio:
        rows.append({"type": "ineq", "fun": valid, "jac": valid_slope})
        limits.append((0.0, terms.cap))
        start = np.append(start, ratio)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # SLSQP clips a start by rounding; what it returns is judged by its value
        options: Any = {"bounds": limits, "constraints": rows, "options": {"maxiter": 100, "ftol": 1e-12}}
        try:
            found = minimize(objective, start, jac=True, method="SLSQP", **options).x
        except OutOfTimeError:
            return plan
    if not np.isfinite(found).all():
        return plan
    return np.asarray(search.onto(whole(found)[None], lower, upper)[0])


_WIDER: Final = 1.001  # so that rounding cuts no optimum off


def searched(
    search: PlanSearch, plan: Floats, arguments: dict[str, Any], *, top: float, random_state: int
) -> tuple[Result, Floats]:
    """Return SCIP's result, and the better of its plan, put where the rules hold exactly, and the given one.

    ``top`` bounds the validity value. No counterfactual of a better plan is farther than J times what the objective
    of the given one leaves for it.
    """
    terms = search.terms
    left = float(terms.value(plan)) + terms.validity_weight * top + terms.diversity_weight
    model = program(
        terms.factual,
        terms.moments.mean,
        terms.moments.covariance,
        n=search.n,
        validity_weight=terms.validity_weight,
        diversity_weight=terms.diversity_weight,
        margin=search.margin,
        within=max(search.n * left * _WIDER, LEAST_WITHIN),
        smoothing=0.0,
        **arguments,
    )
    if terms.validity_weight:
        model.r.setub(top)
    _begin(model, search, plan)
    result = solve(model, "scip", start=True, relative_gap=PLAN_GAP, random_state=random_state)
    if not result.solutions:
        return result, plan
    found = np.array([[model.x[j, k].value for k in range(plan.shape[1])] for j in range(len(plan))], dtype=np.float64)
    found = search.onto(found[None], *search.held(found))[0]
    if terms.value(found) < terms.value(plan):
        plan = found
    return result, plan


def _begin(model: Any, search: PlanSearch, plan: Floats) -> None:
    """Set x to the plan; SCIP completes the rest, which follows from x."""
    terms = search.terms
    for (j, k), x in model.x.items():
        x.value = float(plan[j, k])
    distances = terms.distance.of(plan - terms.factual)
    for j, t in model.t.items():
        t.value = float(distances[j])
    if terms.validity_weight:
        spread = np.linalg.norm(plan @ terms.factor, axis=1)
        model.r.value = min(float(terms.ratios(plan).min()), terms.cap)
        for j, size in model.n.items():
            size.value = float(spread[j])
    if hasattr(model, "K"):
        kernel = terms.kernel(plan)
        for (i, j), k in model.K.items():
            k.value = float(kernel[i, j])
            model.D[i, j].value = float(1.0 / kernel[i, j] - 1.0)


# ==== The COPA plan by projected gradients: Adam from many starts at once, then an active-set polish of the best ======

#: Standard deviations of the noise of the starts, as parts of the unit of length.
_NOISE: Final = (0.05, 0.2, 0.6, 1.0, 2.0, 4.0)
_STARTS: Final = (12, 96)  # at least and at most so many, and as many as make _NUMBERS: small plans cost no time
_NUMBERS: Final = 3000
_GRADIENT_STEPS: Final = 400
_FIRST = 0.1  # length of Adam's first steps, in units
_GRADIENT_BETA: Final = (0.9, 0.99)
_POLISHED: Final = 3  # how many of the best are polished


def best_plan(search: PlanSearch, random_state: int) -> Floats | None:
    """Return the best plan found, shape (J, d); None if no start meets the margin, which only a feature map allows."""
    noise = np.random.default_rng(random_state)
    near = search.onto(search.terms.factual[None, None])
    unit = max(1.0, float(search.terms.distance.of(near[0, 0] - search.terms.factual)))
    alone = PlanSearch(search.terms, search.region, search.margin, 1)
    first = _alike(alone, near, unit, noise)
    if first is None:
        return None
    try:
        return _best_about(search, first, near, unit, noise)
    except OutOfTimeError:  # a feature map takes long
        if search.region.binary:
            return None
        return np.repeat(first, search.n, axis=0)


def _best_about(search: PlanSearch, first: Floats, near: Floats, unit: float, noise: Any) -> Floats | None:
    """Return the best plan from starts around the best single counterfactual and the nearest one."""
    alone = PlanSearch(search.terms, search.region, search.margin, 1)
    centers = [first, near[0]][: search.n]
    shape = (search.n, near.shape[-1])
    count = int(np.clip(_NUMBERS // (shape[0] * shape[1]), *_STARTS))
    if search.terms.feature_map is not None:  # a map is called row by row
        count = _STARTS[0]
    starts = []
    for sd, center in itertools.islice(itertools.cycle(itertools.product(_NOISE, centers)), count):
        starts.append(center + sd * unit * noise.standard_normal(shape) / np.sqrt(shape[1]))
    if search.n == 1 or not search.terms.diversity_weight:
        starts.append(np.broadcast_to(first, shape))
    plans, values = descend(search, search.onto(np.array(starts)), unit)
    best = _settled(search, plans, values, unit)
    if search.n == 1:
        return best
    # None of the starts coincide, and yet coincident counterfactuals may be best.
    single = _settled(alone, first[None], np.array([0.0]), unit)
    candidates = []
    if best is not None:
        candidates.append(best)
    if single is not None:
        candidates.append(np.repeat(single, search.n, axis=0))
    return min(candidates, key=lambda plan: float(search.terms.value(plan)), default=None)


def _alike(alone: PlanSearch, near: Floats, unit: float, noise: Any) -> Floats | None:
    """Return the best single counterfactual, shape (1, d), which starts surround; None if no start meets the margin."""
    starts = [near[0]]
    for sd in _NOISE:
        starts.append(near[0] + sd * unit * noise.standard_normal(near[0].shape) / np.sqrt(near.shape[-1]))
    firsts = alone.onto(np.array(starts))
    if not alone.met(firsts).any():
        return None
    plans, values = descend(alone, firsts, unit)
    return np.asarray(plans[int(values.argmin())])


def descend(
    search: PlanSearch,
    plans: Floats,
    unit: float,
    lower: Floats | None = None,
    upper: Floats | None = None,
    *,
    steps: int = _GRADIENT_STEPS,
) -> tuple[Floats, Floats]:
    """Return the best plan on the way from each start, shape (S, J, d), and its objective, infinite without one.

    At the deadline it is the best so far.
    """
    terms = search.terms
    best = plans.copy()
    values = np.where(search.met(plans), terms.value(plans), np.inf)
    first = np.zeros_like(plans)
    second = np.zeros_like(plans)
    scale = _ratio_scale(terms, plans)
    with suppress(OutOfTimeError):
        for step in range(steps):
            checkpoint("descending")
            part = step / (steps - 1)
            slope = terms.slope(plans, scale * SOFTNESS[0] ** (1 - part) * SOFTNESS[1] ** part)
            first = _GRADIENT_BETA[0] * first + (1 - _GRADIENT_BETA[0]) * slope
            second = _GRADIENT_BETA[1] * second + (1 - _GRADIENT_BETA[1]) * slope**2
            size = np.sqrt(second / (1 - _GRADIENT_BETA[1] ** (step + 1)))
            length = unit * _FIRST ** (1 - part) * LAST_STEP**part
            along = first / (1 - _GRADIENT_BETA[0] ** (step + 1)) / (size + LEAST_SLOPE * max(1.0, float(size.max())))
            plans = search.onto(plans - length * along, lower, upper)
            now = terms.value(plans)
            better = (now < values) & search.met(plans)
            best[better] = plans[better]
            values[better] = now[better]
    return best, values


def _settled(search: PlanSearch, plans: Floats, values: Floats, unit: float) -> Floats | None:
    """Return the best of the plans, with categories instead of parts of them, after a polish."""
    order = _best_apart(values)
    if not order:
        return None
    try:
        return _improved(search, plans[order], unit)
    except OutOfTimeError:  # a feature map takes long
        if search.region.binary:
            return None
        return np.asarray(plans[order[0]])


def _improved(search: PlanSearch, best: Floats, unit: float) -> Floats | None:
    """Return the best of a few plans and of what they become by categories and a polish."""
    if seconds_left() <= 0.0:
        best = best[:1]
    if search.region.binary:
        best, bounds = _with_categories(search, best, unit)
    else:
        lower = np.broadcast_to(search.region.lower, best.shape[1:])
        upper = np.broadcast_to(search.region.upper, best.shape[1:])
        bounds = [(lower, upper)] * len(best)
    fine = [polished(search, plan, low, high) for plan, (low, high) in zip(best, bounds, strict=True)]
    candidates = np.concatenate([best, np.array(fine)])
    objectives = np.where(search.met(candidates), search.terms.value(candidates), np.inf)
    k = int(objectives.argmin())
    if not np.isfinite(objectives[k]):
        return None
    return np.asarray(candidates[k])


def _best_apart(values: Floats) -> list[int]:
    """Return the places of the few best objectives, without those equal to the one before."""
    order: list[int] = []
    for place in values.argsort(kind="stable").tolist():
        value = values[place]
        if not np.isfinite(value) or len(order) == _POLISHED:
            break
        if not order or value - values[order[-1]] > ALIKE_PLANS * (1.0 + abs(value)):
            order.append(place)
    return order


def _with_categories(search: PlanSearch, plans: Floats, unit: float) -> tuple[Floats, list[tuple[Floats, Floats]]]:
    """Return plans with categories, and the bounds that hold them: those given, and the best by exchanges."""
    whole = [settled(search, plan) for plan in plans]
    lower = np.array([one.lower for one in whole])
    upper = np.array([one.upper for one in whole])
    starts = search.onto(np.array([one.plan for one in whole]), lower, upper)
    best, values = descend(search, starts, unit, lower, upper)
    k = int(values.argmin())
    if np.isfinite(values[k]):

        def down(plans: Floats, low: Floats, high: Floats, steps: int) -> tuple[Floats, Floats]:
            return descend(search, plans, unit, low, high, steps=steps)

        better = exchanged(search, Settled(best[k], lower[k], upper[k]), float(values[k]), down)
        best = np.concatenate([best, better.plan[None]])
        whole.append(better)
    return best, [(one.lower, one.upper) for one in whole]


def _ratio_scale(terms: Terms, plans: Floats) -> float:
    """Return the size of the ratios of some plans."""
    ratios = terms.ratios(plans)
    return max(float(np.abs(ratios[np.isfinite(ratios)]).max(initial=0.0)), 1e-12)


# ==== The plan without diversity, globally: the least of :math:`\varphi(r) - \lambda_1 r` over one number =============

CLOSE: Final = 1e-3  # of 1 + the objective: how far what is proved may be below it
_MOST_NODES: Final = 200  # cone programs of the bound


@final
@dataclass(frozen=True, slots=True, eq=False)
class GlobalOptimum:
    """The best counterfactual, shape (d,), or None; a lower bound of its objective; why the search ended."""

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
    return _AngleSearch(search, arguments, top, shift).run(point, distance)


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
        """Return the distance at an angle, infinite where no counterfactual has this value, and keep it.

        Raises
        ------
        OutOfTimeError
            The deadline is over.
        """
        if angle not in self.seen:
            checkpoint("solving cone programs")
            result, point = nearest(self.search, self.arguments, self.top * math.cos(angle))
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
            if self._is_close(self._least()[0], bound) or len(self.seen) >= _MOST_NODES:
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
    least = result.bound or 0.0
    size = float(np.linalg.norm(factor)) / max(float(np.linalg.norm(moments.mean)), 1e-300)
    if least <= STILL_SPREAD * size:
        return math.inf
    return (1.0 + STILL_SPREAD) / least


def _proved(result: Result, distance: float) -> float:
    """Return what the solver proved of the least distance, which is at most the distance found."""
    if result.bound is None:
        return distance
    return min(distance, max(result.bound, 0.0))


# ==== The COPA plan as it was published: one noisy start, Adam, a projection onto the half-space, then a clamp ========

#: Of the released code: the length of a step of Adam, how many at most, and how many have to stand still.
_RATE: Final = 0.005
_DESCENT_BETA: Final = (0.9, 0.999)
_DESCENT_STEPS: Final = 1000
_PATIENCE: Final = 3


class Descended(NamedTuple):
    """A plan, shape (J, d), and by how much the descent's own end misses the margin, 0 where it meets it."""

    plan: Floats
    missed: float


def descended(search: PlanSearch, random_state: int) -> Descended:
    """Return where the published descent ends, then put where the rules hold exactly."""
    end = _end(search, random_state)
    short = search.margin - end @ search.terms.moments.mean
    if search.region.binary:
        whole = settled(search, end)
        plan = search.onto(whole.plan[None], whole.lower[None], whole.upper[None])[0]
    else:
        plan = search.onto(end[None])[0]
    return Descended(plan, max(float(short.max()), 0.0))


def _end(search: PlanSearch, random_state: int) -> Floats:
    """Return the last point of the descent: within the box, but neither surely within the half-space nor a category.

    It is where the descent ends by itself, or at the deadline.
    """
    terms = search.terms
    region = search.region
    free = region.lower < region.upper
    normal = np.where(free, terms.moments.mean, 0.0)
    length = float(normal @ normal)
    noise = np.random.default_rng(random_state).standard_normal((search.n, int(free.sum())))
    plan = np.repeat(np.clip(terms.factual, region.lower, region.upper)[None], search.n, axis=0)
    plan[:, free] = terms.factual[free] + noise
    first = np.zeros_like(plan)
    second = np.zeros_like(plan)
    before = np.inf
    waited = 0
    for step in range(1, _DESCENT_STEPS + 1):
        if seconds_left() <= 0.0:
            break
        value, slope = _objective(terms, plan)
        slope[:, ~free] = 0.0
        first = _DESCENT_BETA[0] * first + (1.0 - _DESCENT_BETA[0]) * slope
        second = _DESCENT_BETA[1] * second + (1.0 - _DESCENT_BETA[1]) * slope**2
        size = np.sqrt(second / (1.0 - _DESCENT_BETA[1] ** step)) + DESCENT_LEAST_SIZE
        plan = plan - _RATE * first / (1.0 - _DESCENT_BETA[0] ** step) / size
        if length > 0.0:
            short = np.maximum(search.margin - plan @ terms.moments.mean, 0.0)
            plan = plan + short[:, None] * normal / length
        plan = np.minimum(np.maximum(plan, region.lower), region.upper)
        waited = waited + 1 if abs(before - value) <= DESCENT_STILL else 0
        before = value
        if waited == _PATIENCE:
            break
    return plan


def _objective(terms: Terms, plan: Floats) -> tuple[float, Floats]:
    """Return the objective of one plan with the kernel's jitter, and a subgradient.

    Of equal least ratios the first one moves.
    """
    n = len(plan)
    moved = plan - terms.factual
    far = terms.distance.of(moved)
    value = float(far.sum()) / n
    slope = terms.distance.slope(moved, far) / n
    if terms.diversity_weight and n > 1:
        between = plan[:, None] - plan
        apart = terms.distance.of(between)
        kernel = 1.0 / (1.0 + apart)
        full = kernel + COPA_JITTER * np.eye(n)
        determinant = float(np.linalg.det(full))
        # d det = det tr(K^-1 dK), and a distance stands in K twice.
        pull = -2.0 * determinant * np.linalg.inv(full) * kernel**2
        value -= terms.diversity_weight * determinant
        slope -= terms.diversity_weight * np.einsum("ij,ijk->ik", pull, terms.distance.slope(between, apart))
    if terms.validity_weight:
        spread = plan @ terms.factor
        size = np.sqrt((spread**2).sum(axis=1))
        score = plan @ terms.moments.mean
        still = size <= STILL_SCORE * np.linalg.norm(terms.factor) * np.sqrt((plan**2).sum(axis=1))
        ratio = np.where(still, np.inf, score / np.where(still, 1.0, size))
        worst = int(ratio.argmin())
        least = float(ratio[worst])
        if np.isfinite(least):
            bend = terms.moments.mean - least / size[worst] * (terms.factor @ spread[worst])
            value -= terms.validity_weight * least
            slope[worst] -= terms.validity_weight * bend / size[worst]
    return value, slope
