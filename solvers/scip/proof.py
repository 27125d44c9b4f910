"""The proof of SCIP's optimum: its tolerances are absolute, our gap is relative to the objective."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.guard.contradictions import contradicts
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import LEAST_GAP, SCIP_EPSILON, SCIP_RESOLUTION, SCIP_ROUNDING, SCIP_SEEN_COST

__all__ = ["OptimalityProof", "first_scale"]

_GREATEST_COST = 2.0**30  # scaled costs stay below, for the simplex method's sake, and far below SCIP's infinity


def first_scale(compiled: CompiledModel) -> float:
    """Return the power of two by which the objective is multiplied at first.

    It brings the greatest cost near 1024, if it is below, or to at most 2^20; with a quadratic cost near 1, because
    SCIP's linear programs then contain squares of it.
    """
    size = _cost_size(compiled)
    if not size:
        return 1.0
    if compiled.Q is not None:
        return _power_of_two(1.0 / size)
    return _power_of_two((1024.0 if size < 1024.0 else min(size, 2.0**20)) / size)


@final
class OptimalityProof:
    """What one optimum of SCIP, at one scale of the objective, proves of it.

    Parameters
    ----------
    x, bound
        The point, and SCIP's bound in the model's own units.
    gap
        The relative gap that is asked for.
    scale, cost
        Factor of the objective, and the linear costs as SCIP had them.

    Attributes
    ----------
    holds
        Whether the objective at x is within the gap of the optimum.
    bound
        What is proved; the objective itself where the difference is below all arithmetic.
    finer_scale
        A greater scale at which SCIP would see the rest of the gap; None if it holds, or costs would grow too great.
    sentence
        Why it does not hold.
    """

    __slots__ = ("bound", "finer_scale", "holds", "sentence")

    def __init__(
        self, compiled: CompiledModel, x: Vector, bound: float | None, gap: float, scale: float, *, cost: Vector
    ) -> None:
        objective = compiled.evaluate(x)
        noise = SCIP_EPSILON / scale + SCIP_ROUNDING * _size_of_terms(compiled, x)
        exact = abs(compiled.evaluate(np.where(compiled.integer, np.round(x), x)))
        wanted = max(gap, LEAST_GAP) * exact
        missing = math.inf
        if bound is not None:
            missing = compiled.sense * (objective - bound)
        blind = 0.0
        if exact > noise:
            blind = SCIP_RESOLUTION / scale
        is_false = bound is not None and contradicts(bound, objective, compiled, x)  # the guard is to see it
        if missing <= noise and not is_false:
            missing = 0.0
        unseen = _unseen(compiled, x, cost) / scale
        slack = max(missing, blind) + unseen
        finest = scale
        if _cost_size(compiled):
            finest = _power_of_two(_GREATEST_COST / _cost_size(compiled))
        # at an objective of zero no gap tells how fine is fine enough: SCIP is to have seen all costs
        clear = scale
        if exact <= noise:
            clear = max(min(SCIP_SEEN_COST / _least_cost(compiled, cost / scale), finest), scale)
        self.holds = slack <= wanted and clear <= scale
        self.bound = bound
        if self.holds:
            self.bound = objective if missing == 0.0 else bound
        elif not math.isfinite(slack):
            self.bound = None
        elif bound is not None and not is_false and (missing < blind or unseen):
            self.bound = bound - compiled.sense * (slack - missing)
        self.finer_scale = None
        if not self.holds and bound is not None:
            if unseen or slack <= wanted:
                finer = max(_power_of_two(SCIP_SEEN_COST / _least_cost(compiled, cost / scale)), 2.0 * scale)
            else:
                finer = scale * _power_of_two(4.0 * slack / wanted if wanted else _GREATEST_COST)
            self.finer_scale = min(finer, finest) if min(finer, finest) > scale else None
        most = "any amount"
        if math.isfinite(slack):
            most = f"{slack:.3g}"
        self.sentence = f"SCIP stopped: by its tolerances the optimum may be better by {most}."


def _power_of_two(value: float) -> float:
    return 2.0 ** math.ceil(math.log2(value))


def _cost_size(compiled: CompiledModel) -> float:
    hessian = np.zeros(0)
    if compiled.Q is not None:
        hessian = compiled.Q.data
    return float(np.abs(np.concatenate([compiled.c, hessian])).max(initial=0.0))


def _size_of_terms(compiled: CompiledModel, x: Vector) -> float:
    """Return the sum of the absolute values that add up to the objective: what its rounding is relative to."""
    size = abs(compiled.c0) + float(np.abs(compiled.c) @ np.abs(x))
    if compiled.Q is not None:
        size += float(np.abs(x) @ (abs(compiled.Q) @ np.abs(x)))
    return size


def _least_cost(compiled: CompiledModel, cost: Vector) -> float:
    """Return the least linear cost of a column that can move; infinity without one."""
    present = (cost != 0.0) & (compiled.lb != compiled.ub)
    return float(np.abs(cost[present]).min(initial=math.inf))


def _unseen(compiled: CompiledModel, x: Vector, cost: Vector) -> float:
    """Return what the linear costs that SCIP takes for zero could still gain from x on, within the bounds."""
    small = (cost != 0.0) & (np.abs(cost) < SCIP_EPSILON) & (compiled.lb != compiled.ub)
    best = np.where(cost > 0, compiled.lb, compiled.ub)[small]
    return float(np.abs(cost[small]) @ np.abs(x[small] - best))
