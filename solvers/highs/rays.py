"""Directions along which a convex quadratic program improves for ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ceopt.solvers.compile.compiled_model import CompiledModel

__all__ = ["improves_for_ever"]

_TOLERANCE = 1e-9  # of the greatest cost


def improves_for_ever(compiled: CompiledModel) -> bool:
    r"""Whether a feasible QP is unbounded.

    It is exactly if some direction keeps every row and bound, leaves the quadratic part alone, improves the linear one:

    .. math:: A d \text{ and } d \text{ in the recession cone},\quad Q d = 0,\quad c^\top d < 0,\quad |d| \le 1.

    HiGHS needs this: it regularises a QP, and then takes a far point of an unbounded one for optimal.
    """
    lower, upper = np.where(np.isfinite(compiled.lb), 0.0, -1.0), np.where(np.isfinite(compiled.ub), 0.0, 1.0)
    least, greatest = np.isfinite(compiled.row_lb), np.isfinite(compiled.row_ub)
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
    return bool(answer.status == 0 and answer.fun < -_TOLERANCE * np.abs(compiled.c).max(initial=0.0))
