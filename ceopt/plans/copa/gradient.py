"""The COPA plan by projected gradients: Adam from many starts at once, then an active-set polish of the best."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ceopt.formulations.programs.subset.pairs import Floats
from ceopt.plans.copa.categories import Settled, exchanged, settled
from ceopt.plans.copa.refinement import polished
from ceopt.plans.copa.search_space import PlanSearch
from ceopt.plans.copa.terms import Terms
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
    firsts = [first] if search.n == 1 else [first, near[0]]
    shape = (search.n, near.shape[-1])
    count = int(np.clip(_NUMBERS // (shape[0] * shape[1]), *_STARTS))
    count = count if search.terms.feature_map is None else _STARTS[0]  # a map is called row by row
    ways = [(center, s) for s in _NOISE for center in firsts]
    ways = [ways[k % len(ways)] for k in range(count)]
    starts = [center + s * unit * noise.standard_normal(shape) / np.sqrt(shape[1]) for center, s in ways]
    if search.n == 1 or not search.terms.diversity_weight:
        starts.append(np.broadcast_to(firsts[0], shape))
    plans, values = descend(search, search.onto(np.array(starts)), unit)
    found = _settled(search, plans, values, unit)
    if search.n == 1:
        return found
    # None of the starts coincide, and yet coincident counterfactuals may be best.
    single = _settled(alone, first[None], np.array([0.0]), unit)
    known = [
        plan for plan in (found, None if single is None else np.repeat(single, search.n, axis=0)) if plan is not None
    ]
    return min(known, key=lambda plan: float(search.terms.value(plan)), default=None)


def _alike(alone: PlanSearch, near: Floats, unit: float, noise: Any) -> Floats | None:
    """Return the best single counterfactual, shape (1, d), which starts surround; None if no start meets the margin."""
    starts = [near[0] + s * unit * noise.standard_normal(near[0].shape) / np.sqrt(near.shape[-1]) for s in _NOISE]
    firsts = alone.onto(np.array([near[0], *starts]))
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
    """Return the best plan on the way from each start, shape (S, J, d), and its objective, infinite without one."""
    terms = search.terms
    best, values = plans.copy(), np.where(search.met(plans), terms.value(plans), np.inf)
    first, second = np.zeros_like(plans), np.zeros_like(plans)
    scale = _ratio_scale(terms, plans)
    for step in range(steps):
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
        best[better], values[better] = plans[better], now[better]
    return best, values


def _settled(search: PlanSearch, plans: Floats, values: Floats, unit: float) -> Floats | None:
    """Return the best of the plans, with categories instead of parts of them, after a polish."""
    order: list[int] = []
    for s in (int(s) for s in values.argsort(kind="stable") if np.isfinite(values[s])):
        if len(order) < _POLISHED and (
            not order or values[s] - values[order[-1]] > ALIKE_PLANS * (1.0 + abs(values[s]))
        ):
            order.append(s)
    if not order:
        return None
    found = plans[order]
    lower, upper = (np.broadcast_to(side, found.shape[1:]) for side in (search.region.lower, search.region.upper))
    sides = [(lower, upper)] * len(found)
    if search.region.binary:
        found, sides = _with_categories(search, found, unit)
    fine = [polished(search, plan, low, high) for plan, (low, high) in zip(found, sides, strict=True)]
    candidates = np.concatenate([found, np.array(fine)])
    worth = np.where(search.met(candidates), search.terms.value(candidates), np.inf)
    k = int(worth.argmin())
    return np.asarray(candidates[k]) if np.isfinite(worth[k]) else None


def _with_categories(search: PlanSearch, plans: Floats, unit: float) -> tuple[Floats, list[tuple[Floats, Floats]]]:
    """Return plans with categories, and the bounds that hold them: those given, and the best by exchanges."""
    known = [settled(search, plan) for plan in plans]
    lower, upper = (np.array([one[side] for one in known]) for side in (1, 2))
    found, values = descend(
        search, search.onto(np.array([one.plan for one in known]), lower, upper), unit, lower, upper
    )
    k = int(values.argmin())
    if np.isfinite(values[k]):

        def down(plans: Floats, low: Floats, high: Floats, steps: int) -> tuple[Floats, Floats]:
            return descend(search, plans, unit, low, high, steps=steps)

        better = exchanged(search, Settled(found[k], lower[k], upper[k]), float(values[k]), down)
        found = np.concatenate([found, better.plan[None]])
        known.append(better)
    return found, [(one.lower, one.upper) for one in known]


def _ratio_scale(terms: Terms, plans: Floats) -> float:
    """Return the size of the ratios of some plans."""
    ratios = terms.ratios(plans)
    finite = ratios[np.isfinite(ratios)]
    return max(float(np.abs(finite).max(initial=0.0)), 1e-12)
