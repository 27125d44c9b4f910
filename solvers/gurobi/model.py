"""A program inside Gurobi: handed over once, then changed in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.convexity import is_convex
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import LARGE_ROW_SHRINK

__all__ = ["GurobiModel"]

# A row that adds up numbers beyond 1e5 cannot be held to 1e-9 in double precision: without this, a mixed-integer
# program with sides near 1e8 was called infeasible. Handed over in a thousandth, it is held to 1e-6, Gurobi's own.
_LARGE = 2.0**17


@final
class GurobiModel:
    """The columns, rows and objective of a compiled model without cones, as a ``gurobipy.Model``.

    Every column is handed over, fixed ones too: in recourse models at most 3 of 80 were fixed and not data, so that
    leaving them out would not bring a model below a licence's limit. A row with two sides becomes two, because Gurobi's
    own range rows each add a variable, of which there may be only 200.

    Parameters
    ----------
    program
        What is handed over; data columns without a value are 0 until :meth:`move_data`.
    environment
        A started ``gurobipy.Env``.

    Attributes
    ----------
    focus
        Gurobi's parameter NumericFocus where no row is in finer units.
    has_pool
        Whether Gurobi's own n best can be relied on. It tells points apart by their integers alone, and keeps for these
        the first continuous part that it meets: the best with linear rows and a convex objective (100 of 100 random
        programs), but not with quadratic rows, where it even called the worse part optimal (Gurobi 13.0.3).
    chosen
        The parameters that the caller chose, which stay as they are.
    """

    def __init__(self, program: CompiledModel, environment: Any) -> None:
        import gurobipy

        self.program = program
        self.inner: Any = gurobipy.Model(env=environment)
        kinds = np.where(program.integer, gurobipy.GRB.INTEGER, gurobipy.GRB.CONTINUOUS)
        lower, upper = (
            np.nan_to_num(bound, nan=0.0, posinf=np.inf, neginf=-np.inf) for bound in (program.lb, program.ub)
        )
        self.x: Any = self.inner.addMVar(len(program.columns), lb=lower, ub=upper, vtype=kinds)
        self.inner.ModelSense = program.sense
        linear_rows = bool(program.integer.any()) and not program.quadratics
        self.has_pool = linear_rows and is_convex(program.Q, program.sense)
        self._curved: list[Any] = []
        self._units: tuple[float, ...] = ()
        self._scale = 0.0
        self.focus = 0
        self.chosen: frozenset[str] = frozenset()
        self._is_newer = int(gurobipy.gurobi.version()[0]) >= 13
        self.add_rows(0)
        self.set_units((1.0,) * len(program.quadratics))

    @property
    def is_presolve_doubtful(self) -> bool:
        """Whether Gurobi's presolve may cut the optimum off: quadratic rows beside an integer without a finite bound.

        Seen with Gurobi 13.0.3: a worse point called optimal, and without heuristics "unbounded". With finite bounds,
        without presolve, or without its dual reductions or aggregations, it was right.
        """
        program = self.program
        free = program.integer & ~(np.isfinite(program.lb) & np.isfinite(program.ub))
        free[program.data] = False
        return bool(program.quadratics) and bool(free.any())

    @contextmanager
    def tuned(self, parameters: Mapping[str, float]) -> Iterator[None]:
        """Set parameters for as long as the context lasts, but none that the caller chose."""
        new = {name: value for name, value in parameters.items() if name not in self.chosen}
        before = {name: getattr(self.inner.Params, name) for name in new}
        try:
            for name, value in new.items():
                self.inner.setParam(name, value)
            yield
        finally:
            for name, value in before.items():
                self.inner.setParam(name, value)

    def add_rows(self, first: int) -> None:
        """Hand over the linear rows from ``first`` on."""
        program = self.program
        A = program.A[first:]
        low = program.row_lb[first:]
        high = program.row_ub[first:]
        shrink = np.where(_sizes(A, low, high, program) > _LARGE, LARGE_ROW_SHRINK, 1.0)
        A = sp.diags_array(shrink, format="csr") @ A
        low = low * shrink
        high = high * shrink
        equal = low == high
        for sense, sides, chosen in (
            ("=", low, equal),
            (">", low, np.isfinite(low) & ~equal),
            ("<", high, np.isfinite(high) & ~equal),
        ):
            at = np.flatnonzero(chosen)
            if at.size:
                self.inner.addMConstr(A[at], self.x, sense, sides[at])

    def set_units(self, units: tuple[float, ...]) -> None:
        """Hand the quadratic rows over, each multiplied by its unit."""
        if units == self._units:
            return
        self.inner.remove(self._curved)
        self._curved = []
        self._units = units
        # Without, Gurobi 12 and 13 end with "numeric" or "suboptimal" on mixed-integer cones whose tip is near.
        self.inner.Params.NumericFocus = 3 if max(units, default=1.0) > 1.0 else self.focus
        for row, unit in zip(self.program.quadratics, units, strict=True):
            square = _square(row.Q * unit)
            linear = row.a.toarray()[0] * unit
            sides = (("=", row.lower),) if row.lower == row.upper else ((">", row.lower), ("<", row.upper))
            for sense, side in sides:
                if np.isfinite(side):
                    x = self.x
                    self._curved.append(self.inner.addMQConstr(square, linear, sense, side * unit, x, x, x))

    def set_objective(self, scale: float) -> None:
        """Hand over the objective times ``scale``; 0 leaves none."""
        program = self.program
        x = self.x
        if scale == self._scale:
            return
        self._scale = scale
        square = None if program.Q is None or not scale else _square(program.Q * scale)
        left, right = (None, None) if square is None else (x, x)
        self.inner.setMObjective(square, program.c * scale, program.c0 * scale, left, right, x)

    def move_data(self, values: Vector) -> None:
        """Fix the data columns at other values."""
        at = self.program.data
        if at.size:
            columns = self.x[at]
            columns.LB = columns.UB = values[at]

    def set_start(self, start: Mapping[int, float]) -> None:
        """Set a start, column -> value, full or partial; data columns need none."""
        if not start:
            return
        from gurobipy import GRB

        values = np.full(len(self.program.columns), GRB.UNDEFINED)
        values[list(start)] = list(start.values())
        values[self.program.data] = GRB.UNDEFINED
        self.x.Start = values

    def stored(self, count: int) -> list[Vector]:
        """Return up to ``count`` points of Gurobi's pool, over all columns."""
        points: list[Vector] = []
        if not self.has_pool:
            return points
        for k in range(min(count, self.inner.SolCount)):
            self.inner.Params.SolutionNumber = k
            point = self.x.PoolNX if self._is_newer else self.x.Xn
            points.append(np.array(point, dtype=np.float64))
        self.inner.Params.SolutionNumber = 0
        return points


def _square(lower: sp.csc_array) -> sp.csc_array:
    """Return M with x'Mx = x'Qx / 2 for the Hessian Q of this lower triangle."""
    return sp.csc_array(lower - 0.5 * sp.diags_array(lower.diagonal()))


def _sizes(A: sp.csr_array, low: Vector, high: Vector, program: CompiledModel) -> Vector:
    """Return the greatest number that each row adds up, as far as bounds and sides tell."""
    reach = np.maximum(np.abs(program.lb), np.abs(program.ub))
    reach = np.where(np.isfinite(reach), reach, 1.0)
    sides = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (low, high)]
    terms = abs(A) @ sp.diags_array(reach, format="csr")
    sizes: Vector = np.maximum.reduce([*sides, terms.max(axis=1).toarray().ravel()]) if A.nnz else np.maximum(*sides)
    return sizes
