r"""Duals and reduced costs of an optimum, into Pyomo's Suffixes, found from the point and proved.

At an optimum x of a convex program with linear rows, with the gradient g of the objective (to be minimised),

.. math::
    g = A^\top y + z,\quad y_i \ge 0 \text{ only at a lower side},\; y_i \le 0 \text{ only at an upper side},

and z likewise at the bounds. Such y are found by one linear program, which keeps these signs and minimises
:math:`|g - A^\top y - z|_1`, whoever found x. They are handed on if the bound that they prove for *any* point, as
:func:`ceopt.solvers.highs.bound_from_duals` computes it, is the objective at x. Where an optimum has several duals,
this is one of them.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from scipy.optimize import linprog

from ceopt.solvers.compile.compiled_model import CompiledModel, power_of_two
from ceopt.solvers.highs import bound_from_duals
from ceopt.solvers.problem import ProblemClass, Stop, Vector
from ceopt.solvers.tolerances import ACTIVE, PROVED_BY_DUALS

_NAMES = ("dual", "rc")
_WITH_DUALS = frozenset({ProblemClass.LP, ProblemClass.QP})


def fill_suffixes(model: Any, compiled: CompiledModel, x: Vector | None, status: Stop, deadline: float) -> str:
    """Fill ``model.dual`` and ``model.rc`` where they import; return a sentence where they stay empty.

    Signs are Pyomo's: a dual is what the objective changes by if the row's side is raised by one unit, a reduced cost
    if the bound of the Var is, whether to minimise or to maximise. Rows and Vars that bind nothing have 0; fixed Vars,
    which are constants, have none.

    Parameters
    ----------
    model, compiled
        The program.
    x, status
        Its best point, shape (n,), and whether it is proved.
    deadline
        On the clock of ``time.perf_counter``.
    """
    suffixes = _importing(model)
    for suffix in suffixes.values():
        suffix.clear()
    if not suffixes or status is not Stop.OPTIMAL or x is None:
        return ""
    which = " and ".join(repr(suffix.name) for suffix in suffixes.values())
    if compiled.problem_class not in _WITH_DUALS:
        return f"Nothing is put into {which}: duals are of an LP or a convex QP, and this is {compiled.problem_class}."
    found = duals_at(compiled, x, max(deadline - time.perf_counter(), 1e-3))
    if found is None:
        return f"Nothing is put into {which}: no duals were found that prove the optimum."
    duals, reduced = found
    if "dual" in suffixes:
        suffix = suffixes["dual"]
        for constraint in model.component_data_objects(pyo.Constraint, active=True):
            suffix[constraint] = 0.0
        suffix.update(zip(compiled.rows, duals.tolist(), strict=True))
    if "rc" in suffixes:
        suffix = suffixes["rc"]
        suffix.update((var, 0.0) for var, _ in compiled.idle)
        suffix.update(zip(compiled.columns, reduced.tolist(), strict=True))
    return ""


def duals_at(compiled: CompiledModel, x: Vector, seconds: float) -> tuple[Vector, Vector] | None:
    """Return duals (m,) and reduced costs (n,) that prove a point optimal, in Pyomo's signs; None if none are found."""
    sense = compiled.sense
    gradient = compiled.c
    if compiled.Q is not None:
        gradient = gradient + compiled.Q @ x + sp.tril(compiled.Q, -1).T @ x
    multipliers = _multipliers(compiled, x, sense * gradient, seconds)
    if multipliers is None:
        return None
    bound, rounding = bound_from_duals(compiled, x, multipliers)
    objective = compiled.evaluate(x)
    size = max(abs(objective), float(np.abs(gradient) @ np.abs(x)))
    if not abs(objective - bound) <= PROVED_BY_DUALS * size + rounding + PROVED_BY_DUALS * _unit(gradient):
        return None
    duals = sense * multipliers + 0.0
    reduced = gradient - compiled.A.T @ duals
    terms = np.abs(gradient) + abs(compiled.A).T @ np.abs(duals)
    return duals, np.where(np.abs(reduced) <= ACTIVE * terms, 0.0, reduced)


def _multipliers(compiled: CompiledModel, x: Vector, gradient: Vector, seconds: float) -> Vector | None:
    """Return y, (m,), of the signs that the sides allow, with the least sum of what stationarity misses."""
    activity = compiled.A @ x
    size = 1.0 + abs(compiled.A) @ np.abs(x)
    low = activity - compiled.row_lb <= ACTIVE * size
    high = compiled.row_ub - activity <= ACTIVE * size
    active = np.flatnonzero(low | high)
    at_low = x - compiled.lb <= ACTIVE * (1.0 + np.abs(x))
    at_high = compiled.ub - x <= ACTIVE * (1.0 + np.abs(x))
    y = np.zeros(compiled.A.shape[0])
    judged = np.flatnonzero(~(at_low & at_high))  # a column between two equal bounds takes any reduced cost
    if not judged.size:
        return y
    unit = power_of_two(_unit(gradient))
    columns = sp.csr_array(compiled.A[active].T)[judged]
    one = sp.eye_array(judged.size, format="csr")
    matrix: Any = sp.csr_array(sp.hstack([columns, one, -one]))  # A'y + r - s
    goal = gradient[judged] / unit
    is_equal = ~(at_low | at_high)[judged]
    is_most = at_low[judged]
    is_least = at_high[judged]
    above = sp.vstack([matrix[np.flatnonzero(is_most)], -matrix[np.flatnonzero(is_least)]])
    limits: dict[str, Any] = {}
    if above.shape[0]:
        limits |= {"A_ub": above.tocsr(), "b_ub": np.concatenate([goal[is_most], -goal[is_least]])}
    if is_equal.any():
        limits |= {"A_eq": matrix[np.flatnonzero(is_equal)], "b_eq": goal[is_equal]}
    signs = [(None if high[i] else 0.0, None if low[i] else 0.0) for i in active.tolist()]
    solve: Any = linprog  # SciPy's stubs take no sparse matrix
    options: dict[str, Any] = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    if math.isfinite(seconds):
        options["time_limit"] = seconds
    answer = solve(
        np.concatenate([np.zeros(active.size), np.ones(2 * judged.size)]),
        **limits,
        bounds=[*signs, *[(0.0, None)] * (2 * judged.size)],
        method="highs",
        options=options,
    )
    if answer.status != 0:
        return None
    y[active] = unit * answer.x[: active.size]
    return y


def _unit(gradient: Vector) -> float:
    """Return the size of the costs; 1 where there are none."""
    return float(np.abs(gradient).max(initial=0.0)) or 1.0


def _importing(model: Any) -> dict[str, Any]:
    """Return the active Suffixes ``dual`` and ``rc`` of the model that take what a solver says."""
    found = {}
    for name in _NAMES:
        suffix = model.component(name)
        if suffix is not None and suffix.ctype is pyo.Suffix and suffix.active and suffix.import_enabled():
            found[name] = suffix
    return found
