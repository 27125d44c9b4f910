r"""A compiled program inside a ``pyscipopt.Model``, each part in the form in which SCIP proves it best.

SCIP's tolerances are absolute, and it bounds a quadratic by its squares, so that

.. math::
    \min \tfrac12 x^\top Q x + c^\top x,\ Q = F^\top F \quad&\to\quad
    \min w + \bar c^\top x,\; y = F x - g,\; \tfrac12 \lVert y \rVert^2 \le w,\quad
    g = -(F F^\top)^{-1} F c,\; \bar c = c + F^\top g \\
    \tfrac12 x^\top Q x + a^\top x \le b \quad&\to\quad y = F x,\; \tfrac12 \lVert y \rVert^2 + a^\top x \le b \\
    t \ge \lVert v \rVert \quad&\to\quad \sqrt{v^\top v} \le t \\
    2 t u \ge \lVert v \rVert^2 \quad&\to\quad \sqrt{2 v^\top v + (t - u)^2} \le t + u \\
    z \ge c\, e^{x/c} \quad&\to\quad c\, e^{x/c} \le z, \quad c > 0 \text{ a number}.

A dense quadratic of 20 integer and continuous columns takes a tenth of the time in squares; a cone is within 1e-6 of
the norm itself, where :math:`v^\top v \le t^2` lets 1e-3 pass as zero; and complete squares leave no difference of
great numbers near the optimum. An entry that is about one column stays that column, any other becomes an
auxiliary one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.convexity import factor, is_convex
from ceopt.solvers.compile.rows_and_cones import ConeRows, QuadraticRow
from ceopt.solvers.cones import Cone
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import SCIP_DROPPED, SCIP_NO_COST, SCIP_SMALLEST

__all__ = ["Program"]

_NEAR_ONE = 0.1, 10.0  # multiples of a column that are squared as they are; others get a column of their own


@final
class Program:
    """The program at one scale of its objective, always to be minimised.

    Parameters
    ----------
    model
        A ``pyscipopt.Model`` without variables.
    compiled
        Data columns without a value are handed over as 0 until they have one.
    scale
        Factor of the objective, a power of two; 0 leaves the objective out.
    listener
        What the model reports its events to; see :mod:`ceopt.solvers.scip.session`.

    Attributes
    ----------
    columns
        SCIP's variable for each compiled column.
    cost
        The linear cost of each, as SCIP has it.
    """

    __slots__ = ("_auxiliary", "_objective", "_passed", "columns", "compiled", "cost", "listener", "model", "scale")

    def __init__(self, model: Any, compiled: CompiledModel, scale: float, listener: Any = None) -> None:
        self.model = model
        self.compiled = compiled
        self.scale = scale
        self.listener = listener
        self._auxiliary: list[tuple[Any, sp.csr_array, float]] = []  # variable = row @ x + constant
        self._objective: Any = None
        self.cost, squares, shift, offset = self._costs()
        lower = np.nan_to_num(compiled.lb, nan=0.0, posinf=math.inf, neginf=-math.inf).tolist()  # data without a value
        upper = np.nan_to_num(compiled.ub, nan=0.0, posinf=math.inf, neginf=-math.inf).tolist()
        self.columns = []
        for low, high, whole, cost in zip(lower, upper, compiled.integer.tolist(), self.cost.tolist(), strict=True):
            kind = "I" if whole else "C"
            self.columns.append(model.addVar(vtype=kind, lb=_finite(low), ub=_finite(high), obj=cost))
        model.addObjoffset(offset)
        self._passed = (0, *compiled.shape[1:])
        self._add_rows()
        for row in compiled.quadratics:
            self._add_quadratic(row)
        for cone in compiled.cones:
            self._add_cone(cone)
        if squares is not None:
            self._objective = model.addVar(lb=0.0, ub=None, obj=1.0)
            self._add(0.5 * self._norm_squared(squares, shift) - self._objective, -math.inf, 0.0)
        elif compiled.Q is not None and scale:
            self._objective = model.addVar(lb=None, ub=None, obj=1.0)
            self._add(self._products(self._hessian()) - self._objective, -math.inf, 0.0)

    # -- between two solves --------------------------------------------------------------------------------------------
    def updated(self) -> bool:
        """Take over data and appended linear rows; False if the program has changed in another way."""
        compiled = self.compiled
        if compiled.shape[1:] != self._passed[1:] or compiled.shape[0] < self._passed[0]:
            return False
        for k, value in zip(compiled.data.tolist(), compiled.lb[compiled.data].tolist(), strict=True):
            column = self.columns[k]
            self.model.chgVarLb(column, None)
            self.model.chgVarUb(column, value)
            self.model.chgVarLb(column, value)
        self._add_rows()
        return True

    def begin_at(self, start: Mapping[int, float]) -> bool:
        """Give SCIP a point; return whether it will forget it: it keeps one that is not complete with the model."""
        model = self.model
        compiled = self.compiled
        fixed = np.flatnonzero(compiled.lb == compiled.ub)
        values = dict(zip(fixed.tolist(), compiled.lb[fixed].tolist(), strict=True)) | dict(start)
        for k, value in values.items():
            if compiled.integer[k]:
                values[k] = float(round(value))
        complete = len(values) == len(self.columns)
        solution = model.createOrigSol() if complete else model.createPartialSol()
        for k, value in values.items():
            solution[self.columns[k]] = value
        if complete:
            x = np.array([values[k] for k in range(len(values))])
            for variable, row, constant in self._auxiliary:
                solution[variable] = float((row @ x)[0]) + constant
            if self._objective is not None:
                linear = sum(v.getObj() * x[k] for k, v in enumerate(self.columns)) + model.getObjoffset()
                value = self.scale * compiled.sense * compiled.evaluate(x) - linear
                solution[self._objective] = value + 1e-9 * abs(value)
        model.addSol(solution)
        return complete

    def point(self, solution: Any) -> Vector:
        """Return the values of the compiled columns."""
        return np.array([solution[column] for column in self.columns], dtype=np.float64)

    # -- objective -----------------------------------------------------------------------------------------------------
    def _hessian(self) -> Any:
        return sp.csc_array(self.scale * self.compiled.sense * self.compiled.Q)

    def _costs(self) -> tuple[Vector, Any, Vector, float]:
        """Return the linear costs, F and g of the squares (None without), and the constant."""
        compiled = self.compiled
        factor_of_all = self.scale * self.compiled.sense
        cost = factor_of_all * compiled.c
        offset = factor_of_all * compiled.c0
        if compiled.Q is None or not self.scale or not is_convex(self._hessian(), 1):
            return cost, None, np.zeros(0), offset
        squares = factor(self._hessian())
        shift = -(squares @ cost) / np.asarray(squares.multiply(squares).sum(axis=1)).ravel()  # rows are orthogonal
        rest = cost + squares.T @ shift
        rest[np.abs(rest) <= SCIP_NO_COST * np.abs(cost).max(initial=0.0)] = 0.0
        return rest, squares, shift, offset - 0.5 * float(shift @ shift)

    # -- rows ----------------------------------------------------------------------------------------------------------
    def _add_rows(self) -> None:
        """Add the linear rows below those that SCIP has."""
        from pyscipopt import Expr, ExprCons

        compiled = self.compiled
        model = self.model
        columns = self.columns
        begin = self._passed[0]
        if begin == compiled.shape[0]:
            return
        rows = compiled.A[begin:]
        factors = _row_factors(rows)
        ends = rows.indptr.tolist()
        places = rows.indices.tolist()
        values = (rows.data * np.repeat(factors, np.diff(rows.indptr))).tolist()
        lower = (compiled.row_lb[begin:] * factors).tolist()
        upper = (compiled.row_ub[begin:] * factors).tolist()
        add = model.addCoefLinear
        for r, (low, high) in enumerate(zip(lower, upper, strict=True)):
            if low == -math.inf and high == math.inf:
                continue
            checkpoint("handing the program to SCIP")
            row = model.addCons(ExprCons(Expr(), _finite(low), _finite(high)))
            for k in range(ends[r], ends[r + 1]):
                add(row, columns[places[k]], values[k])
        self._passed = compiled.shape

    def _add_quadratic(self, row: QuadraticRow) -> None:
        sides = np.isfinite([row.lower, row.upper])
        sign = 1.0 if sides[1] else -1.0
        hessian = sp.csc_array(sign * row.Q)
        if sides.all() or not sp.tril(hessian, -1).count_nonzero() or not is_convex(hessian, 1):
            body = self._products(row.Q)
            self._add(body + self._affine(row.a), row.lower, row.upper)
            return
        squares = factor(hessian)
        body = 0.5 * self._norm_squared(squares, np.zeros(squares.shape[0]))
        self._add(body + sign * self._affine(row.a), -math.inf, sign * (row.upper if sign > 0 else row.lower))

    def _add_cone(self, cone: ConeRows) -> None:
        matrix = sp.csr_array(cone.matrix, copy=True)
        constant = cone.constant
        matrix.eliminate_zeros()
        if cone.cone is Cone.EXPONENTIAL:
            self._add_exponential(cone, matrix)
            return
        heads = 1 if cone.cone is Cone.SECOND_ORDER else 2
        if any(not constant[k] and matrix.indptr[k] == matrix.indptr[k + 1] for k in range(heads)):
            self._add_flat(matrix, constant, heads)
            return
        if cone.cone is Cone.SECOND_ORDER:
            self._add_norm(matrix[[0]], float(constant[0]), matrix[1:], constant[1:])
            return
        widths = np.diff(matrix.indptr)[:2]
        if widths.min() > 0:  # |(sqrt(2) v, t - u)| <= t + u
            both = matrix[[0]] + matrix[[1]]
            entries = sp.vstack([math.sqrt(2.0) * matrix[2:], matrix[[0]] - matrix[[1]]]).tocsr()
            constants = np.append(math.sqrt(2.0) * constant[2:], constant[0] - constant[1])
            self._add_norm(sp.csr_array(both), float(constant[:2].sum()), sp.csr_array(entries), constants)
            return
        fixed = int(np.argmin(widths))
        other = self._affine(matrix[[1 - fixed]]) + float(constant[1 - fixed])
        self._add(other, 0.0, math.inf)
        if constant[fixed] < 0:
            self._add_false()
        squares = self._norm_squared(matrix[2:], -constant[2:])
        self._add(squares - 2.0 * float(constant[fixed]) * other, -math.inf, 0.0)

    def _add_exponential(self, cone: ConeRows, matrix: sp.csr_array) -> None:
        """Add ``z >= y exp(x / y)`` where y is a number; at 0 it is the cone's face x <= 0 <= z."""
        from pyscipopt import exp

        x, y, z = cone.constant.tolist()
        if matrix.indptr[1] != matrix.indptr[2]:
            raise UnsupportedProblemError(
                "SCIP",
                "a number as the second entry of an exponential cone",
                f"that of {cone.constraint.name!r} has Vars",
                "State it as exponential(x, 1, z).",
            )
        power = self._affine(matrix[[0]])
        height = self._affine(matrix[[2]])
        if y > 0.0:
            self.model.addCons(y * exp((power + x) / y) - height <= z)
            return
        if y < 0.0:
            self._add_false()
        self._add(power, -math.inf, -x)
        self._add(height, -z, math.inf)

    def _add_flat(self, matrix: sp.csr_array, constant: Vector, heads: int) -> None:
        """Add a cone with a head that is the number 0 in linear rows: as a norm, it lets sqrt(1e-7) pass as zero."""
        for k, factor_of_row in enumerate(_row_factors(matrix).tolist()):
            row = sp.csr_array(factor_of_row * matrix[[k]])
            side = -factor_of_row * float(constant[k])
            if row.nnz:
                upper = math.inf if k < heads else side
                self._add(self._affine(row), side, upper)
            elif constant[k] < 0 or (k >= heads and constant[k]):
                self._add_false()

    def _add_norm(self, head: sp.csr_array, constant: float, entries: sp.csr_array, constants: Vector) -> None:
        """Add ``|entries @ x + constants| <= head @ x + constant``."""
        from pyscipopt import sqrt

        top = self._affine(head) + constant
        varying = np.flatnonzero(np.diff(entries.indptr))
        if not varying.size:
            self._add(top, float(np.linalg.norm(constants)), math.inf)
        elif varying.size == 1 and len(constants) == 1:
            only = self._affine(entries) + float(constants[0])
            self._add(top - only, 0.0, math.inf)
            self._add(top + only, 0.0, math.inf)
        else:
            self.model.addCons(sqrt(self._norm_squared(entries, -constants)) - top <= 0.0)

    def _add_false(self) -> None:
        from pyscipopt import Expr, ExprCons

        self.model.addCons(ExprCons(Expr(), 1.0, 1.0))

    def _add(self, expression: Any, lower: float, upper: float) -> None:
        from pyscipopt import ExprCons

        if lower > -math.inf or upper < math.inf:
            self.model.addCons(ExprCons(expression, _finite(lower), _finite(upper)))

    # -- expressions ---------------------------------------------------------------------------------------------------
    def _affine(self, row: sp.csr_array) -> Any:
        """Return ``row @ x`` for a (1, n) row."""
        return _total(v * self.columns[k] for k, v in zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def _products(self, lower: Any) -> Any:
        """Return ``x'Qx / 2`` of the lower triangle, product by product."""
        triples = sp.coo_array(lower)
        rows, columns = triples.coords
        values = np.where(rows == columns, 0.5, 1.0) * triples.data
        x = self.columns
        products = zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True)
        return _total(value * x[i] * x[j] for i, j, value in products)

    def _norm_squared(self, entries: sp.csr_array, shift: Vector) -> Any:
        """Return ``|entries @ x - shift|^2``, with a column for each entry that is not about a column itself."""
        parts: list[Any] = []
        for i, constant in enumerate((-shift).tolist()):
            row = sp.csr_array(entries[[i]])
            if not row.nnz:
                parts.append(constant**2)
            elif row.nnz == 1 and not constant and _NEAR_ONE[0] <= abs(row.data[0]) <= _NEAR_ONE[1]:
                column = self.columns[int(row.indices[0])]
                parts.append(float(row.data[0]) ** 2 * column * column)
            else:
                y = self.model.addVar(lb=None, ub=None)
                self._auxiliary.append((y, row, constant))
                # put back into the square, it would bring great coefficients: "error in LP solver"
                self.model.markDoNotAggrVar(y)
                self.model.markDoNotMultaggrVar(y)
                self._add(self._affine(row) - y, -constant, -constant)
                parts.append(y * y)
        return _total(parts)


def _total(parts: Iterable[Any]) -> Any:
    from pyscipopt import quicksum

    return quicksum(parts)


def _finite(value: float) -> float | None:
    """Return None, pyscipopt's word for "no side", for an infinity."""
    if math.isinf(value):
        return None
    return value


def _row_factors(rows: sp.csr_array) -> Vector:
    """Return the power of two by which each row is multiplied.

    SCIP takes a row for kept that is missed by its tolerance, whatever the size of its coefficients: the greatest is to
    be at least 1. And it drops coefficients that are very small.
    """
    sizes = np.abs(rows.data)
    filled = np.flatnonzero(np.diff(rows.indptr))
    factors = np.ones(rows.shape[0])
    if not sizes.size:
        return factors
    greatest = np.maximum.reduceat(sizes, rows.indptr[filled])
    tiny = (greatest > 0.0) & (greatest < 1.0)
    factors[filled[tiny]] = np.exp2(np.ceil(-np.log2(greatest[tiny])))
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    for r in np.unique(row[(sizes * factors[row] < SCIP_DROPPED) & (sizes > 0)]):
        own = sizes[rows.indptr[r] : rows.indptr[r + 1]]
        factors[r] = 2.0 ** math.ceil(math.log2(SCIP_SMALLEST / own[own > 0].min()))
    return factors
