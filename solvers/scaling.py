"""By how much an objective is scaled before HiGHS, whose search stops at an absolute 1e-6, sees it."""

from __future__ import annotations

import math

import numpy as np

from ceopt.solvers.compiled import CompiledModel

__all__ = ["IMPROVEMENT", "best_conceivable", "finer_scale", "first_scale", "is_blind"]

IMPROVEMENT = 1e-6
"""HiGHS looks for no integer solution that is better by less: its MIP feasibility tolerance, absolute."""
_LEAST_GAP = 1e-9  # no smaller relative gap is promised
_GREATEST_COST = 2.0**30  # scaled costs stay below, for the simplex method's sake


def first_scale(compiled: CompiledModel) -> float:
    """Return the power of two, at least 1, that brings the greatest cost near 1024 (1 for a quadratic cost)."""
    size = _cost_size(compiled)
    return max(1.0, _power_of_two((1.0 if compiled.Q is not None else 1024.0) / size)) if size else 1.0


def finer_scale(compiled: CompiledModel, objective: float, gap: float, scale: float) -> float | None:
    """Return a greater scale, at which 1e-6 is below the relative gap at ``objective``; None if ``scale`` will do."""
    if not is_blind(compiled, objective, gap, scale):
        return None
    needed = _power_of_two(4 * IMPROVEMENT / (max(gap, _LEAST_GAP) * abs(objective)))
    finer = min(needed, _power_of_two(_GREATEST_COST / _cost_size(compiled)))
    return finer if finer > scale else None


def is_blind(compiled: CompiledModel, objective: float, gap: float, scale: float) -> bool:
    """Whether HiGHS, at this scale, may pass over a solution better than ``objective`` by more than the gap."""
    if not compiled.integer.any() or compiled.sense * (objective - best_conceivable(compiled)) <= 0:
        return False
    return IMPROVEMENT / scale > max(gap, _LEAST_GAP) * abs(objective) > 0


def best_conceivable(compiled: CompiledModel) -> float:
    """Return the linear objective with each column at its better bound: no point does better."""
    used = compiled.c != 0
    ends = [compiled.c[used] * bound[used] for bound in (compiled.lb, compiled.ub)]
    best = np.minimum(*ends) if compiled.sense > 0 else np.maximum(*ends)
    return compiled.c0 + float(best.sum())


def _cost_size(compiled: CompiledModel) -> float:
    values = np.abs(compiled.c) if compiled.Q is None else np.abs(np.concatenate([compiled.c, compiled.Q.data]))
    return float(values.max(initial=0.0))


def _power_of_two(value: float) -> float:
    return 2.0 ** math.ceil(math.log2(value))
