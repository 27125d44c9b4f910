"""The COPA plan as it was published: one noisy start, Adam, a projection onto the half-space, then a clamp."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ceopt.formulations.programs.parts import Floats
from ceopt.plans.copa.categories import settled
from ceopt.plans.copa.search_space import PlanSearch
from ceopt.plans.copa.terms import Terms
from ceopt.solvers.deadline import seconds_left
from ceopt.tolerances import COPA_JITTER, DESCENT_LEAST_SIZE, DESCENT_STILL, STILL_SCORE

__all__ = ["Descended", "descended"]

#: Of the released code: the length of a step of Adam, how many at most, and how many have to stand still.
_RATE: Final = 0.005
_BETA: Final = (0.9, 0.999)
_STEPS: Final = 1000
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
    for step in range(1, _STEPS + 1):
        if seconds_left() <= 0.0:
            break
        value, slope = _objective(terms, plan)
        slope[:, ~free] = 0.0
        first = _BETA[0] * first + (1.0 - _BETA[0]) * slope
        second = _BETA[1] * second + (1.0 - _BETA[1]) * slope**2
        size = np.sqrt(second / (1.0 - _BETA[1] ** step)) + DESCENT_LEAST_SIZE
        plan = plan - _RATE * first / (1.0 - _BETA[0] ** step) / size
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
