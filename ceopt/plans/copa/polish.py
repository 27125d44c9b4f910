"""The last digits of a COPA plan: sequential quadratic programs from where the gradients end."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize

from ceopt.formulations.programs.subset.pairs import Floats
from ceopt.plans.copa.search_space import PlanSearch
from ceopt.plans.copa.terms import Terms

__all__ = ["polished"]

_MOST: Final = 400  # numbers: dense matrices of this order are factored


def polished(search: PlanSearch, plan: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return a plan at a local optimum near this one, within bounds (J, d) and the margin; it may also be worse.

    The least ratio is a variable r, at most each ratio, so that all is smooth: SLSQP over the free columns and r.
    """
    terms, shape = search.terms, plan.shape
    if terms.distance.kind == "l1":  # linear on either side of the factual: each column stays on its own
        lower = np.where(plan > terms.factual, np.maximum(lower, terms.factual), lower)
        upper = np.where(plan < terms.factual, np.minimum(upper, terms.factual), upper)
    free = np.flatnonzero((lower < upper).ravel())
    if not free.size or free.size > _MOST or terms.feature_map is not None:
        return plan
    mean, factor, weight = terms.moments.mean, terms.factor, terms.validity_weight
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
        x = whole(v)
        tail = [-weight] if has_ratio else []
        worth = float(rest.value(x)) - (weight * float(v[-1]) if has_ratio else 0.0)
        return worth, np.concatenate([rest.slope(x).ravel()[free], tail])

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
        found = minimize(objective, start, jac=True, method="SLSQP", **options).x
    if not np.isfinite(found).all():
        return plan
    return np.asarray(search.onto(whole(found)[None], lower, upper)[0])
