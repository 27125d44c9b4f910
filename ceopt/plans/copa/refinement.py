"""Refinements of a COPA plan: its last digits by sequential quadratic programs, or a better plan by a global search."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize

from ceopt.formulations.programs.copa import copa_plan as program
from ceopt.formulations.programs.parts import Floats
from ceopt.plans.copa.search_space import PlanSearch
from ceopt.plans.copa.terms import Terms
from ceopt.solvers import Result, solve
from ceopt.solvers.deadline import OutOfTimeError, checkpoint
from ceopt.tolerances import LEAST_WITHIN, PLAN_GAP

__all__ = ["polished", "searched"]

_MOST: Final = 400  # numbers: dense matrices of this order are factored


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
    if not free.size or free.size > _MOST or terms.feature_map is not None:
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
    return result, found if terms.value(found) < terms.value(plan) else plan


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
