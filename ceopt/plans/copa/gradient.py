"""The COPA plan by projected gradients: Adam from many starts at once, then an active-set polish of the best."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any, Final

import numpy as np

from ceopt.formulations.programs.parts import Floats
from ceopt.plans.copa.categories import Settled, exchanged, settled
from ceopt.plans.copa.refinement import polished
from ceopt.plans.copa.search_space import PlanSearch
from ceopt.plans.copa.terms import Terms
from ceopt.solvers.deadline import OutOfTimeError, checkpoint, seconds_left
from ceopt.tolerances import ALIKE_PLANS, LAST_STEP, LEAST_SLOPE, SOFTNESS

__all__ = ["best_plan", "descend"]

#: Standard deviations of the noise of the starts, as parts of the unit of length.
_NOISE: Final = (0.05, 0.2, 0.6, 1.0, 2.0, 4.0)
_STARTS: Final = (12, 96)  # at least and at most so many, and as many as make _NUMBERS: small plans cost no time
_NUMBERS: Final = 3000
_STEPS: Final = 400
_FIRST = 0.1  # length of Adam's first steps, in units
_BETA: Final = (0.9, 0.99)
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
        return None if search.region.binary else np.repeat(first, search.n, axis=0)


def _best_about(search: PlanSearch, first: Floats, near: Floats, unit: float, noise: Any) -> Floats | None:
    """Return the best plan from starts around the best single counterfactual and the nearest one."""
    alone = PlanSearch(search.terms, search.region, search.margin, 1)
    centers = [first] if search.n == 1 else [first, near[0]]
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
    steps: int = _STEPS,
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
            first = _BETA[0] * first + (1 - _BETA[0]) * slope
            second = _BETA[1] * second + (1 - _BETA[1]) * slope**2
            size = np.sqrt(second / (1 - _BETA[1] ** (step + 1)))
            length = unit * _FIRST ** (1 - part) * LAST_STEP**part
            along = first / (1 - _BETA[0] ** (step + 1)) / (size + LEAST_SLOPE * max(1.0, float(size.max())))
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
        return None if search.region.binary else np.asarray(plans[order[0]])


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
    return np.asarray(candidates[k]) if np.isfinite(objectives[k]) else None


def _best_apart(values: Floats) -> list[int]:
    """Return the few best of some plans by their objectives, leaving out what is as good as the one before it."""
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
    finite = ratios[np.isfinite(ratios)]
    return max(float(np.abs(finite).max(initial=0.0)), 1e-12)
