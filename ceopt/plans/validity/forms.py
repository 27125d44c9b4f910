"""The forms of the validity bounds: which program answers for which, and how its answer is read.

``how`` is what :func:`ceopt.solvers.solve` is asked beside the program.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Floats
from ceopt.formulations.programs.validity_lower import (
    validity_lower,
    validity_lower_arrow,
    validity_lower_coupled,
    validity_lower_dual,
    validity_lower_nonlinear,
)
from ceopt.formulations.programs.validity_parts import least_of_score
from ceopt.formulations.programs.validity_upper import (
    validity_upper,
    validity_upper_coupled,
    validity_upper_moment,
    validity_upper_scalar,
)
from ceopt.plans.validity.attained import Attained, numbers_of, of_coupling, of_parts
from ceopt.plans.validity.closed_form_cases import SolvedForm
from ceopt.plans.validity.known_moments import greatest_at
from ceopt.plans.validity.reduction import Reduction, reduced, scaled
from ceopt.solvers import Result, Status, solve
from ceopt.tolerances import SCALAR_GAP

__all__ = ["LOWER", "UPPER"]

_STEPS: Final = 50


def lower_auto(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the coupled form in the dimensions of the plan."""
    reduction = reduced(rows, given, radius)
    model, result = _solved(validity_lower_coupled, reduction, how)
    answer = _proved(result, is_lower=True)
    if not result.solutions:
        return answer
    masses, (n, d) = numbers_of(model.weight), reduction.rows.shape
    moved = np.zeros((n + 1, d))
    if reduction.radius:
        moved[1:] = numbers_of(model.v).reshape(n, d)
    return answer.attained_by(of_coupling(reduction, masses, numbers_of(model.u).reshape(n + 1, -1), moved))


def lower_arrow(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the arrow form in all dimensions."""
    return _by_parts(validity_lower_arrow, _whole(rows, given, radius), how)


def lower_theorem(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the theorem's form, whose rest is what its parts leave."""
    reduction = _whole(rows, given, radius)
    model, result = _solved(validity_lower, reduction, how)
    answer = _proved(result, is_lower=True)
    if not result.solutions:
        return answer
    masses = numbers_of(model.weight)
    means = numbers_of(model.z).reshape(len(masses), -1)
    whole = np.zeros(means.shape[1]) if reduction.radius == 0.0 else numbers_of(model.mean)
    masses = np.append(1.0 - masses.sum(), masses)
    means = np.vstack([whole - means.sum(axis=0), means])
    return answer.attained_by(of_parts(reduction, masses, means, None if reduction.radius == 0.0 else model.M))


def lower_dual(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the dual; what attains the bound is that of the default form, as the dual holds no distribution."""
    _, result = _solved(validity_lower_dual, _whole(rows, given, radius), how)
    return _proved(result, is_lower=True).attained_by(lower_auto(rows, given, radius).attained)


def lower_nonlinear(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the form without cones."""
    reduction = _whole(rows, given, radius)
    model, result = _solved(validity_lower_nonlinear, reduction, how)
    answer = _proved(result, is_lower=True, branches=True)
    if not result.solutions:
        return answer
    roots = numbers_of(model.s)
    atoms = numbers_of(model.w).reshape(len(roots), -1)
    found = of_parts(reduction, roots**2, roots[:, None] * atoms, None)
    if reduction.radius:
        factor = numbers_of(model.G).reshape(len(rows[0]), -1)
        found = Attained(reduction, found.masses, found.means, Moments(numbers_of(model.mean), factor @ factor.T))
    return answer.attained_by(found)


def upper_auto(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the coupled form in the dimensions of the plan; where the moments are known, a closed form does it."""
    reduction = reduced(rows, given, radius)
    if radius == 0.0:
        value, point = greatest_at(rows, given)
        atom = value * (reduction.basis @ point) / reduction.unit
        mean = reduction.moments.mean
        found = Attained(reduction, np.array([1.0 - value, value]), np.array([mean - atom, atom]), reduction.moments)
        return SolvedForm(value, attained=found)
    model, result = _solved(validity_upper_coupled, reduction, how)
    answer = _proved(result, is_lower=False)
    if not result.solutions:
        return answer
    u = numbers_of(model.u)
    none = np.zeros(len(reduction.basis))
    moved = np.vstack([none, numbers_of(model.v) if reduction.radius else none])
    return answer.attained_by(of_coupling(reduction, numbers_of(model.weight), np.vstack([-u, u]), moved))


def upper_moment(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the moment form in all dimensions."""
    return _by_parts(validity_upper_moment, _whole(rows, given, radius), how)


def upper_theorem(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Solve the theorem's form."""
    _, result = _solved(validity_upper, _whole(rows, given, radius), how)
    return _proved(result, is_lower=False)


def upper_scalar(rows: Floats, given: Moments, radius: float, **how: Any) -> SolvedForm:
    """Search for the greatest kappa of the scalar form.

    Each w found has a bound of its own, that of one counterfactual, which is never below the bound sought; the kappa of
    that bound is tried next. It rises, as bisection's does not, and ends where w keeps it.
    """
    reduction = _whole(rows, given, radius)
    # At radius 0 every kappa has the same w. Otherwise 0 has one that says something; that of 1 may have the bound 1.
    kappa = 0.0 if reduction.radius else 1.0
    value = 1.0
    for _ in range(_STEPS):
        model, result = _solved(validity_upper_scalar, reduction, how, kappa=kappa)
        if not result.solutions or result.status not in {Status.OPTIMAL, Status.FEASIBLE}:
            reason = f"{result.message} The bound is that of the last half-space.".strip()
            return SolvedForm(value, result.status, reason)
        w = np.maximum(numbers_of(model.a), 0.0) @ reduction.rows
        m = float(w @ reduction.moments.mean)
        s = math.sqrt(max(float(w @ reduction.moments.covariance @ w), 0.0))
        below, found = least_of_score(-m, s, reduction.radius * float(np.linalg.norm(w)))
        better = value - found
        value = min(value, found)
        kappa = math.sqrt(below / found) if found else math.inf
        if better <= SCALAR_GAP * value or not found:
            return SolvedForm(value)
    return SolvedForm(value, Status.FEASIBLE, f"The scalar form's search ended after {_STEPS} steps.")


LOWER: Final = {
    "auto": lower_auto,
    "theorem": lower_theorem,
    "arrow": lower_arrow,
    "dual": lower_dual,
    "nonlinear": lower_nonlinear,
}
UPPER: Final = {"auto": upper_auto, "theorem": upper_theorem, "moment": upper_moment, "scalar": upper_scalar}


# ---- inside ----------------------------------------------------------------------------------------------------------
def _whole(rows: Floats, given: Moments, radius: float) -> Reduction:
    """Return plan and moments in all dimensions, in units in which the moments are of size 1."""
    return scaled(rows, given, radius, np.eye(rows.shape[1]))


def _solved(program: Any, reduction: Reduction, how: dict[str, Any], **options: Any) -> tuple[Any, Result]:
    model = program(reduction.rows, reduction.moments.mean, reduction.moments.covariance, reduction.radius, **options)
    return model, solve(model, **how)


def _by_parts(program: Any, reduction: Reduction, how: dict[str, Any]) -> SolvedForm:
    """Solve a program whose Vars are the parts of a distribution."""
    model, result = _solved(program, reduction, how)
    answer = _proved(result, is_lower=model.bound.sense == pyo.minimize)
    if not result.solutions:
        return answer
    masses = numbers_of(model.weight)
    means = numbers_of(model.z).reshape(len(masses), -1)
    return answer.attained_by(of_parts(reduction, masses, means, None if reduction.radius == 0.0 else model.M))


def _proved(result: Result, *, is_lower: bool, branches: bool = False) -> SolvedForm:
    """Return a bound that holds: the optimum, or else what branch and bound proved, or else 0 or 1.

    Short of its optimum an interior point's dual value holds up to residuals alone, which is not to hold.
    """
    value = result.objective
    reason = ""
    if result.status is not Status.OPTIMAL:
        value = result.bound if branches else None
        kind = "the trivial one" if value is None else "what it proved"
        reason = f"{result.message} The bound is {kind}.".strip()
    if value is None:
        value = 0.0 if is_lower else 1.0
    return SolvedForm(min(max(float(value), 0.0), 1.0), result.status, reason)
