r"""The proof of HiGHS's dual solution of an LP or convex QP, recomputed: its own "optimal" was seen to be wrong.

With the gradient g at a point, any row multipliers y and :math:`z = g - A^\top y`, every feasible w of a program to
minimise f has

.. math:: f(w) \ge f(x) - g^\top x + \sum_i \min_{b^-_i \le a \le b^+_i} y_i a + \sum_j \min_{l_j \le v \le u_j} z_j v.

A direction along which a program improves for ever proves that it has no optimum at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import HIGHS_BOUND_ROUNDING, HIGHS_NO_REDUCED_COST, HIGHS_RAY_TOLERANCE

__all__ = ["bound_from_duals", "improves_for_ever"]


def bound_from_duals(compiled: CompiledModel, x: Vector, y: Vector) -> tuple[float, float]:
    """Return the bound that the multipliers prove, in the model's own sense, and the rounding of its sums."""
    sense = compiled.sense
    A = compiled.A
    hessian = None
    if compiled.Q is not None:
        hessian = compiled.Q + sp.tril(compiled.Q, -1).T
    gradient = sense * (compiled.c if hessian is None else compiled.c + hessian @ x)
    y = np.where(np.isfinite(np.where(y > 0, compiled.row_lb, compiled.row_ub)), y, 0.0)
    reduced = gradient - A.T @ y
    side = np.where(reduced > 0, compiled.lb, compiled.ub)
    open_ended = ~np.isfinite(side)
    if np.any(open_ended & (reduced != 0.0)):
        sizes = np.abs(compiled.c) + abs(A).T @ np.abs(y) + (0.0 if hessian is None else abs(hessian) @ np.abs(x))
        if np.any(open_ended & (np.abs(reduced) > HIGHS_NO_REDUCED_COST * sizes)):
            return -sense * np.inf, 0.0
    rows = _terms(y, compiled)
    columns = reduced * np.where(open_ended, x, side)
    value = sense * compiled.evaluate(x) - float(gradient @ x)
    terms = float(np.abs(rows).sum() + np.abs(columns).sum() + np.abs(gradient * x).sum()) + abs(compiled.evaluate(x))
    return sense * (value + float(rows.sum()) + float(columns.sum())), HIGHS_BOUND_ROUNDING * terms


def _terms(y: Vector, compiled: CompiledModel) -> Vector:
    """Return the least of each multiplier times its row; a multiplier of 0 adds nothing, whatever the sides."""
    side = np.where(y > 0, compiled.row_lb, compiled.row_ub)
    return np.asarray(y * np.where(y != 0.0, side, 0.0), dtype=np.float64)


def improves_for_ever(compiled: CompiledModel) -> bool:
    r"""Whether a feasible QP is unbounded.

    It is exactly if some direction keeps every row and bound, leaves the quadratic part alone, improves the linear one:

    .. math:: A d \text{ and } d \text{ in the recession cone},\quad Q d = 0,\quad c^\top d < 0,\quad |d| \le 1.

    HiGHS needs this: it regularises a QP, and then takes a far point of an unbounded one for optimal.
    """
    lower = np.where(np.isfinite(compiled.lb), 0.0, -1.0)
    upper = np.where(np.isfinite(compiled.ub), 0.0, 1.0)
    least = np.isfinite(compiled.row_lb)
    greatest = np.isfinite(compiled.row_ub)
    rows: Any = sp.vstack([-compiled.A[np.flatnonzero(least)], compiled.A[np.flatnonzero(greatest)]]).tocsr()
    hessian: Any = sp.csr_array(compiled.Q + sp.tril(compiled.Q, -1).T)
    solve: Any = linprog  # its stubs know no sparse rows
    answer = solve(
        compiled.sense * compiled.c,
        A_ub=rows if rows.shape[0] else None,
        b_ub=np.zeros(rows.shape[0]) if rows.shape[0] else None,
        A_eq=hessian,
        b_eq=np.zeros(hessian.shape[0]),
        bounds=np.column_stack([lower, upper]),
        method="highs",
    )
    return bool(answer.status == 0 and answer.fun < -HIGHS_RAY_TOLERANCE * np.abs(compiled.c).max(initial=0.0))
