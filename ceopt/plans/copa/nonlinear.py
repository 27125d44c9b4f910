"""The COPA plan by its explicit program: SCIP searches globally, from the plan of the gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ceopt.formulations.programs.copa.plan import copa_plan as program
from ceopt.formulations.programs.subset.pairs import Floats
from ceopt.plans.copa.search_space import PlanSearch
from ceopt.solvers import Result, solve
from ceopt.tolerances import LEAST_WITHIN, PLAN_GAP

__all__ = ["searched"]

_WIDER: Final = 1.001  # so that rounding cuts no optimum off


def searched(
    search: PlanSearch, plan: Floats, arguments: dict[str, Any], *, top: float, time_limit_s: float, random_state: int
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
    result = solve(
        model, "scip", start=True, time_limit_s=time_limit_s, relative_gap=PLAN_GAP, random_state=random_state
    )
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
