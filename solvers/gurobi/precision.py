"""The precision of Gurobi's absolute tolerances: where they hide a better optimum, and units in which they do not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.rows_and_cones import QuadraticRow
from ceopt.solvers.guard.contradictions import contradicts
from ceopt.solvers.highs.session import best_conceivable
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import (
    GUROBI_DUAL_RESIDUAL,
    GUROBI_NOTHING,
    GUROBI_ROUNDING,
    LEAST_GAP,
    NO_QUADRATIC_TERMS,
)

__all__ = ["finer_scale", "finer_units", "is_missed_for_good", "is_nothing", "misses", "settled_bound"]

_GREATEST = 2.0**40  # of a scaled cost and of a unit
_DUAL = 1e-3  # of the optimum: seen of dual objectives at optima right to 1e-8


def settled_bound(
    compiled: CompiledModel, x: Vector, bound: float | None, gap: float, *, barrier: bool
) -> float | None:
    """Return the bound that an optimum is claimed with; None if the claim does not stand.

    The objective itself stands for a bound that differs by rounding only. A barrier method stops when its primal and
    dual solutions agree to 1e-10 in scaled units. Its dual objective, where Gurobi reports one at all, carries
    residuals in the model's units: where the optimum is small, it says that the proof is roughly right, not how far.
    """
    objective = compiled.evaluate(x)
    if bound is None:
        if barrier:
            return objective
        return None
    away = compiled.sense * (objective - bound)
    enough = max(gap, LEAST_GAP) * abs(objective)
    if not barrier and contradicts(bound, objective, compiled, x):
        return bound  # as it is: the guard is to see it
    if not barrier:
        if away <= GUROBI_ROUNDING * _terms(compiled, x):
            return objective
        if away <= enough:
            return bound
        return None
    if abs(away) <= enough:
        return bound
    roughly = _DUAL * abs(objective) + GUROBI_DUAL_RESIDUAL * (_terms(compiled, x) + _unit_cost(compiled))
    if abs(away) <= roughly:
        return objective
    return None


def finer_scale(
    compiled: CompiledModel, x: Vector, gap: float, scale: float, *, tolerance: float, barrier: bool
) -> float:
    """Return the scale of the objective, greater than ``scale`` where that hides something.

    Simplex, and branch and bound, pass over what is better by less than ``tolerance``; a barrier method stops at a
    tolerance that is relative only to objectives beyond 1.
    """
    objective = abs(compiled.evaluate(x))
    wanted = max(gap, LEAST_GAP) * objective
    greatest = _greatest_cost(compiled)
    if not greatest or objective <= GUROBI_ROUNDING * _terms(compiled, x) or _is_best_conceivable(compiled, x):
        return scale
    if barrier:
        needed = scale
        if objective * scale < 0.125:
            needed = 1.0 / max(objective, GUROBI_NOTHING * _unit_cost(compiled))
    else:
        needed = scale
        if tolerance / scale > wanted:
            needed = 4.0 * tolerance / wanted
    finer = _power_of_two(min(needed, _GREATEST / greatest))
    if finer >= 4.0 * scale:
        return finer
    return scale


def is_nothing(compiled: CompiledModel, x: Vector) -> bool:
    """Whether an objective is 0 for every purpose, so that no scale can make it precise."""
    return abs(compiled.evaluate(x)) <= max(
        0.01 * GUROBI_NOTHING * _unit_cost(compiled), GUROBI_ROUNDING * _terms(compiled, x)
    )


def finer_units(rows: Sequence[QuadraticRow], x: Vector, units: tuple[float, ...], gap: float) -> tuple[float, ...]:
    """Return the units of the quadratic rows, greater where a row is missed by more than a share of its terms.

    A tolerance of 1e-9 on t^2 >= v'v lets t miss the norm of v by 3e-5 near the apex.
    """
    finer = []
    for row, unit in zip(rows, units, strict=True):
        if misses(row, x, gap):
            unit = max(unit, min(_power_of_two(1.0 / _size(row, x)), _GREATEST))  # noqa: PLW2901 - the same, finer
        finer.append(unit)
    return tuple(finer)


def misses(row: QuadraticRow, x: Vector, gap: float) -> bool:
    """Whether a row is missed by more than a tenth of the gap, relative to the terms that it adds up."""
    return row.violation(x) > 0.1 * max(gap, LEAST_GAP) * _size(row, x)


def is_missed_for_good(row: QuadraticRow, x: Vector, gap: float) -> bool:
    """Whether a row is still missed in the finest units, and not because all its terms are 0."""
    return misses(row, x, gap) and _size(row, x) > NO_QUADRATIC_TERMS


def _size(row: QuadraticRow, x: Vector) -> float:
    side = max((abs(s) for s in (row.lower, row.upper) if math.isfinite(s)), default=0.0)
    x = np.abs(x)
    products = float(x @ (abs(row.Q) @ x)) - 0.5 * float(np.abs(row.Q.diagonal()) @ (x * x))
    return max(side + products + float((abs(row.a) @ x)[0]), 1e-300)


def _terms(compiled: CompiledModel, x: Vector) -> float:
    """Return the size of what the objective adds up."""
    terms = abs(compiled.c0) + float(np.abs(compiled.c) @ np.abs(x))
    if compiled.Q is not None:
        terms += float(np.abs(x) @ (abs(compiled.Q) @ np.abs(x)))
    return terms


def _is_best_conceivable(compiled: CompiledModel, x: Vector) -> bool:
    return compiled.Q is None and compiled.sense * (compiled.evaluate(x) - best_conceivable(compiled)) <= 0.0


def _greatest_cost(compiled: CompiledModel) -> float:
    quadratic = 0.0
    if compiled.Q is not None:
        quadratic = float(np.abs(compiled.Q.data).max(initial=0.0))
    return max(quadratic, float(np.abs(compiled.c).max(initial=0.0)))


def _unit_cost(compiled: CompiledModel) -> float:
    return min(1.0, _greatest_cost(compiled))


def _power_of_two(value: float) -> float:
    return 2.0 ** math.floor(math.log2(value))
