"""Finite bounds for integers that have none, from what a point in hand proves about better ones.

HiGHS 1.15.1, given a start, passes over better points where an integer column has an infinite bound: one of 440 small
random programs came back "optimal" at 0.335 where 0.118 is feasible, with presolve, restarts, symmetry and heuristics
on or off; with bounds of any size up to 1e6 it did not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.outer_approximation.linear_program import GrowingLP
from ceopt.solvers.problem import Vector
from ceopt.solvers.session import SolveRun
from ceopt.solvers.tolerances import INCUMBENT_SLACK

__all__ = ["bounded_integers", "unbounded_integers"]


def unbounded_integers(program: CompiledModel) -> bool:
    """Whether an integer column lacks a bound."""
    return bool((program.integer & ~(np.isfinite(program.lb) & np.isfinite(program.ub))).any())


def bounded_integers(
    program: CompiledModel, objective: float, search: SolveRun, lp: Callable[[CompiledModel], GrowingLP]
) -> tuple[Vector, Vector]:
    """Return the program's column bounds, finite for integers where all points at least as good as ``objective`` are.

    Parameters
    ----------
    program
        Linear; its integers are relaxed.
    objective
        Of a point in hand.
    search
        For its limits.
    lp
        Makes a growing LP of a program.
    """
    limit = objective - program.c0 + program.sense * INCUMBENT_SLACK * max(1.0, abs(objective))
    sides = (-np.inf, limit) if program.sense > 0 else (limit, np.inf)
    row = sp.csr_array(program.c[None, :])
    better = program.extended(A=row, row_lb=sides[:1], row_ub=sides[1:])
    better.sense, better.c, better.c0 = 1, np.zeros(len(program.c)), 0.0
    growing, lower, upper = lp(better), program.lb.copy(), program.ub.copy()
    for bounds, sign in ((lower, 1.0), (upper, -1.0)):
        for column in np.flatnonzero(program.integer & ~np.isfinite(bounds)).tolist():
            growing.aim(column, sign)
            vertex = growing.solve(search)
            if vertex.word == "optimal":
                bounds[column] = np.round(vertex.x[column]) - sign
            growing.aim(column, 0.0)
    return lower, upper
