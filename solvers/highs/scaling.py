"""The scale of a program before HiGHS, whose tolerances are absolute, sees it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import HIGHS_IMPROVEMENT, LEAST_GAP, ZERO_SHARE

__all__ = ["best_conceivable", "finer_scale", "first_scale", "is_blind", "units_of"]

_GREATEST_SQUARE = 2.0**26  # coefficient of a column's square once the column is scaled
_GREATEST_COST = 2.0**30  # scaled costs stay below, for the simplex method's sake


def first_scale(compiled: CompiledModel) -> float:
    """Return the power of two, at least 1, that brings the greatest cost near 1024 (1 for a quadratic cost)."""
    size = _cost_size(compiled)
    if size:
        return max(1.0, _power_of_two((1.0 if compiled.Q is not None else 1024.0) / size))
    return 1.0


def finer_scale(compiled: CompiledModel, objective: float, gap: float, scale: float) -> float | None:
    """Return a greater scale, at which 1e-6 is below the relative gap at ``objective``; None if ``scale`` will do."""
    if not is_blind(compiled, objective, gap, scale):
        return None
    needed = _power_of_two(4 * HIGHS_IMPROVEMENT / (max(gap, LEAST_GAP) * abs(objective)))
    finer = min(needed, _power_of_two(_GREATEST_COST / _cost_size(compiled)))
    if finer > scale:
        return finer
    return None


def is_blind(compiled: CompiledModel, objective: float, gap: float, scale: float) -> bool:
    """Whether HiGHS, at this scale, may pass over a solution better than ``objective`` by more than the gap."""
    if not compiled.integer.any():
        return False
    missing = compiled.sense * (objective - best_conceivable(compiled))
    if missing <= ZERO_SHARE * _cost_size(compiled):
        return False
    return HIGHS_IMPROVEMENT / scale > max(gap, LEAST_GAP) * abs(objective) > 0


def best_conceivable(compiled: CompiledModel) -> float:
    """Return the linear objective with each column at its better bound: no point does better."""
    used = compiled.c != 0
    ends = [compiled.c[used] * bound[used] for bound in (compiled.lb, compiled.ub)]
    best = np.minimum(*ends) if compiled.sense > 0 else np.maximum(*ends)
    return compiled.c0 + float(best.sum())


def units_of(compiled: CompiledModel) -> tuple[Vector, Vector]:
    """Return, per column and per row, the power of two that HiGHS is to count as 1: not 1 in a QP only.

    Of a row whose greatest coefficient is 1, no column is to have less than half of it in every row; then the greatest
    coefficient of each row is brought near 1. HiGHS 1.15.1 scales an LP by itself, but not a QP.
    """
    columns = np.ones(len(compiled.columns))
    rows = np.ones(compiled.A.shape[0])
    if compiled.Q is None or not compiled.A.nnz:
        return columns, rows
    A = compiled.A
    size = np.abs(compiled.A.data)
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    share = np.zeros(A.shape[1])
    greatest = _greatest(size, row, len(rows))
    np.maximum.at(share, A.indices, size / greatest[row])
    columns = np.exp2(-np.round(np.log2(np.where(share > 0.0, share, 1.0))))
    # A square may not become too large for HiGHS beside the rest of the objective.
    square = np.abs(compiled.Q.diagonal()) * first_scale(compiled)
    most = np.exp2(np.floor(0.5 * np.log2(_GREATEST_SQUARE / np.where(square > 0.0, square, 1.0))))
    columns = np.where(square > 0.0, np.minimum(columns, np.maximum(most, 1.0)), columns)
    return columns, np.exp2(np.round(np.log2(_greatest(size * columns[A.indices], row, len(rows)))))


def _greatest(size: Vector, row: Any, n: int) -> Vector:
    """Return the greatest entry of each row; 1 for one without entries."""
    greatest = np.zeros(n)
    np.maximum.at(greatest, row, size)
    return np.where(greatest > 0.0, greatest, 1.0)


def _cost_size(compiled: CompiledModel) -> float:
    values = np.abs(compiled.c) if compiled.Q is None else np.abs(np.concatenate([compiled.c, compiled.Q.data]))
    return float(values.max(initial=0.0))


def _power_of_two(value: float) -> float:
    # A move by one unit in the last place of 0 costs 5e-324, whose inverse is infinite.
    return 2.0 ** math.ceil(math.log2(min(value, 2.0**1000)))
