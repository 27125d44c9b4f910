r"""SCIP over a compiled model: linear, quadratic and second-order programs, with integers, convex or not.

Exponential cones are taken beside quadratics that are not convex, where no conic solver takes them.

Each part is handed over in the form in which SCIP proves it best. SCIP's tolerances are absolute, and it bounds a
quadratic by its squares, so that

.. math::
    \min \tfrac12 x^\top Q x + c^\top x,\ Q = F^\top F \quad&\to\quad
    \min w + \bar c^\top x,\; y = F x - g,\; \tfrac12 \lVert y \rVert^2 \le w,\quad
    g = -(F F^\top)^{-1} F c,\; \bar c = c + F^\top g \\
    \tfrac12 x^\top Q x + a^\top x \le b \quad&\to\quad y = F x,\; \tfrac12 \lVert y \rVert^2 + a^\top x \le b \\
    t \ge \lVert v \rVert \quad&\to\quad \sqrt{v^\top v} \le t \\
    2 t u \ge \lVert v \rVert^2 \quad&\to\quad \sqrt{2 v^\top v + (t - u)^2} \le t + u \\
    z \ge c\, e^{x/c} \quad&\to\quad c\, e^{x/c} \le z, \quad c > 0 \text{ a number}.

Sets of kinds 1 and 2 are handed over as SCIP's own, without their binaries and rows: programs of 8 to 18 sets took
.03 to .3 s, and .05 to 10 s by binaries.

A dense quadratic of 20 integer and continuous columns takes a tenth of the time in squares; a cone is within 1e-6 of
the norm itself, where :math:`v^\top v \le t^2` lets 1e-3 pass as zero; and complete squares leave no difference of
great numbers near the optimum. An entry that is about one column stays that column, any other becomes an
auxiliary one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC

from ceopt.solvers.adapter import (
    AbstractSession,
    Option,
    RunResult,
    SolveRun,
    apply_options,
    require_class,
    status_of,
    why_stopped,
    without_a_best,
)
from ceopt.solvers.compile.compiled_model import (
    CompiledModel,
    greatest_cost,
    power_of_two,
    refuse_huge,
    rows_of_entries,
    size_of_terms,
)
from ceopt.solvers.compile.ordered_sets import OwnSets
from ceopt.solvers.compile.rows_and_cones import ConeRows, QuadraticRow, factor, is_convex
from ceopt.solvers.cones import Cone
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import UnknownNameError, UnsupportedProblemError
from ceopt.solvers.problem import ProblemClass, Stop, StopTable, Vector
from ceopt.solvers.tolerances import (
    LEAST_GAIN,
    LEAST_GAP,
    SCIP_DROPPED,
    SCIP_EPSILON,
    SCIP_FINE_TOLERANCE,
    SCIP_MISSED,
    SCIP_MISSED_ROW,
    SCIP_NO_COST,
    SCIP_RESOLUTION,
    SCIP_ROUNDED_ROW,
    SCIP_ROUNDING,
    SCIP_SEEN_COST,
    SCIP_SMALLEST,
)
from ceopt.solvers.trust import contradicts, relative_violation

# ==== A compiled program inside a ``pyscipopt.Model``, each part in the form in which SCIP proves it best =============

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
        What the model reports its events to; see :mod:`ceopt.solvers.scip`.

    Attributes
    ----------
    columns
        SCIP's variable for each compiled column.
    cost
        The linear cost of each, as SCIP has it.
    lazy_rows
        Who asks for further rows in one run; None in others.
    """

    __slots__ = (
        "_auxiliary", "_objective", "_own", "_passed", "columns", "compiled", "cost", "lazy_rows", "listener", "model",
        "scale",
    )  # fmt: skip

    def __init__(self, model: Any, compiled: CompiledModel, scale: float, listener: Any = None) -> None:
        self.model = model
        self.compiled = compiled
        self.scale = scale
        self.listener = listener
        self.lazy_rows: Any = None
        self._auxiliary: list[tuple[Any, sp.csr_array, float]] = []  # variable = row @ x + constant
        self._objective: Any = None
        self._own = OwnSets(compiled.sets)  # as SCIP has them
        self.cost, squares, shift, offset = self._costs()
        lower = np.nan_to_num(compiled.lb, nan=0.0, posinf=math.inf, neginf=-math.inf).tolist()  # data without a value
        upper = np.nan_to_num(compiled.ub, nan=0.0, posinf=math.inf, neginf=-math.inf).tolist()
        for k in self._own.binaries.tolist():
            lower[k] = upper[k] = 0.0
        self.columns = []
        for low, high, whole, cost in zip(lower, upper, compiled.integer.tolist(), self.cost.tolist(), strict=True):
            kind = "I" if whole else "C"
            self.columns.append(model.addVar(vtype=kind, lb=_finite(low), ub=_finite(high), obj=cost))
        model.addObjoffset(offset)
        self._passed = (0, *compiled.shape[1:])
        self._add_rows()
        for one in self._own.sets:
            add = model.addConsSOS1 if one.kind == 1 else model.addConsSOS2
            add([self.columns[k] for k in one.members.tolist()], list(range(1, len(one.members) + 1)))
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
        values |= dict.fromkeys(self._own.binaries.tolist(), 0.0)
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
        """Return the values of the compiled columns, of the point that SCIP is at if None."""
        read = self.model.getSolVal
        point = np.array([read(solution, column) for column in self.columns], dtype=np.float64)
        self._own.complete(point)
        return point

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
        ends, places, values, lower, upper = self._scaled(np.arange(begin, compiled.shape[0]))
        add = model.addCoefLinear
        for r, (low, high) in enumerate(zip(lower, upper, strict=True)):
            if (low == -math.inf and high == math.inf) or self._own.states(compiled.rows[begin + r]):
                continue
            checkpoint("handing the program to SCIP")
            row = model.addCons(ExprCons(Expr(), _finite(low), _finite(high)))
            for k in range(ends[r], ends[r + 1]):
                add(row, columns[places[k]], values[k])
        self._passed = compiled.shape

    def add_lazily(self, rows: NDArray[np.intp]) -> None:
        """Add linear rows to the search that runs; they are forgotten at its end."""
        from pyscipopt import ExprCons

        ends, places, values, lower, upper = self._scaled(rows)
        for r, (low, high) in enumerate(zip(lower, upper, strict=True)):
            body = _total(values[k] * self.columns[places[k]] for k in range(ends[r], ends[r + 1]))
            self.model.addCons(ExprCons(body, _finite(low), _finite(high)))

    def _scaled(self, rows: NDArray[np.intp]) -> tuple[list[int], list[int], list[float], list[float], list[float]]:
        """Return linear rows in units in which SCIP keeps them: ends, columns and values of entries, and both sides."""
        compiled = self.compiled
        A = compiled.A[rows]
        factors = _row_factors(A)
        return (
            A.indptr.tolist(),
            A.indices.tolist(),
            (A.data * np.repeat(factors, np.diff(A.indptr))).tolist(),
            (compiled.row_lb[rows] * factors).tolist(),
            (compiled.row_ub[rows] * factors).tolist(),
        )

    def _add_quadratic(self, row: QuadraticRow) -> None:
        sign, side = row.bounded_above()
        hessian = sp.csc_array(sign * row.Q)
        if (
            np.isfinite([row.lower, row.upper]).all()
            or not sp.tril(hessian, -1).count_nonzero()
            or not is_convex(hessian, 1)
        ):
            body = self._products(row.Q)
            self._add(body + self._affine(row.a), row.lower, row.upper)
            return
        squares = factor(hessian)
        body = 0.5 * self._norm_squared(squares, np.zeros(squares.shape[0]))
        self._add(body + sign * self._affine(row.a), -math.inf, side)

    def _add_cone(self, cone: ConeRows) -> None:
        matrix = sp.csr_array(cone.matrix, copy=True)
        constant = cone.constant
        matrix.eliminate_zeros()
        if cone.cone is Cone.EXPONENTIAL:
            self._add_exponential(cone, matrix)
            return
        heads = cone.cone.heads
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
    """Return a side for pyscipopt: None for an infinite one."""
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
    row = rows_of_entries(rows)
    for r in np.unique(row[(sizes * factors[row] < SCIP_DROPPED) & (sizes > 0)]):
        own = sizes[rows.indptr[r] : rows.indptr[r + 1]]
        factors[r] = 2.0 ** math.ceil(math.log2(SCIP_SMALLEST / own[own > 0].min()))
    return factors


# ==== The proof of SCIP's optimum: its tolerances are absolute, our gap is relative to the objective ==================

_GREATEST_COST = 2.0**30  # scaled costs stay below, for the simplex method's sake, and far below SCIP's infinity


def first_scale(compiled: CompiledModel) -> float:
    """Return the power of two by which the objective is multiplied at first.

    It brings the greatest cost near 1024, if it is below, or to at most 2^20; with a quadratic cost near 1, because
    SCIP's linear programs then contain squares of it.
    """
    size = greatest_cost(compiled)
    if not size:
        return 1.0
    if compiled.Q is not None:
        return power_of_two(1.0 / size, math.ceil)
    return power_of_two(min(max(size, 1024.0), 2.0**20) / size, math.ceil)


@final
class OptimalityProof:
    """The proof that an optimum of SCIP, at one scale of the objective, is within the gap.

    Parameters
    ----------
    x, bound
        The point, and SCIP's bound in the model's own units.
    gap, absolute_gap
        The relative gap that is asked for, and the one in the objective's own unit: either will do.
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
        self,
        compiled: CompiledModel,
        x: Vector,
        bound: float | None,
        gap: float,
        scale: float,
        *,
        cost: Vector,
        absolute_gap: float = 0.0,
    ) -> None:
        objective = compiled.evaluate(x)
        noise = SCIP_EPSILON / scale + SCIP_ROUNDING * size_of_terms(compiled, x)
        exact = abs(compiled.evaluate(np.where(compiled.integer, np.round(x), x)))
        wanted = max(max(gap, LEAST_GAP) * exact, absolute_gap)
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
        if greatest_cost(compiled):
            finest = power_of_two(_GREATEST_COST / greatest_cost(compiled), math.ceil)
        # at an objective of zero no gap tells how fine is fine enough: SCIP is to have seen all costs
        clear = scale
        if exact <= noise and not absolute_gap:
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
                finer = max(power_of_two(SCIP_SEEN_COST / _least_cost(compiled, cost / scale), math.ceil), 2.0 * scale)
            else:
                finer = scale * power_of_two(4.0 * slack / wanted if wanted else _GREATEST_COST, math.ceil)
            self.finer_scale = min(finer, finest) if min(finer, finest) > scale else None
        most = "any amount"
        if math.isfinite(slack):
            most = f"{slack:.3g}"
        self.sentence = f"SCIP stopped: by its tolerances the optimum may be better by {most}."


def _least_cost(compiled: CompiledModel, cost: Vector) -> float:
    """Return the least linear cost of a column that can move; infinity without one."""
    present = (cost != 0.0) & (compiled.lb != compiled.ub)
    return float(np.abs(cost[present]).min(initial=math.inf))


def _unseen(compiled: CompiledModel, x: Vector, cost: Vector) -> float:
    """Return the gain still possible from x, within the bounds, through linear costs that SCIP takes for zero."""
    small = (cost != 0.0) & (np.abs(cost) < SCIP_EPSILON) & (compiled.lb != compiled.ub)
    best = np.where(cost > 0, compiled.lb, compiled.ub)[small]
    return float(np.abs(cost[small]) @ np.abs(x[small] - best))


# ==== SCIP's own words ================================================================================================

# ---- stop statuses ---------------------------------------------------------------------------------------------------
_LIMIT = (Stop.FEASIBLE, Stop.TIME_LIMIT)

# by the words of pyscipopt's getStatus
STOP: StopTable = {
    "optimal": (Stop.OPTIMAL, Stop.ERROR),
    "gaplimit": (Stop.OPTIMAL, Stop.ERROR),
    "infeasible": (Stop.INFEASIBLE, Stop.INFEASIBLE),
    "unbounded": (Stop.UNBOUNDED, Stop.UNBOUNDED),  # the session confirms it
    "inforunbd": (Stop.UNBOUNDED, Stop.UNBOUNDED),  # the session tells the two apart
    "userinterrupt": (Stop.INTERRUPTED, Stop.INTERRUPTED),
    "timelimit": _LIMIT,
    "nodelimit": _LIMIT,
    "totalnodelimit": _LIMIT,
    "stallnodelimit": _LIMIT,
    "memlimit": _LIMIT,
    "sollimit": _LIMIT,
    "bestsollimit": _LIMIT,
    "restartlimit": _LIMIT,
    "primallimit": _LIMIT,
    "duallimit": _LIMIT,
    "unknown": (Stop.FEASIBLE, Stop.ERROR),
}

_WORDS = {
    "gaplimit": "gap limit",
    "inforunbd": "infeasible or unbounded",
    "userinterrupt": "interrupted",
    "timelimit": "time limit",
    "nodelimit": "node limit",
    "totalnodelimit": "total node limit",
    "stallnodelimit": "stall node limit",
    "memlimit": "memory limit",
    "sollimit": "solution limit",
    "bestsollimit": "best solution limit",
    "restartlimit": "restart limit",
    "primallimit": "primal limit",
    "duallimit": "dual limit",
}


def words_of(name: str) -> str:
    """Return ``timelimit`` as "time limit"."""
    return _WORDS.get(name, name)


# ---- parameters: our own settings, then the user's, refused if unknown or out of range -------------------------------
_IPOPT = Path(__file__).with_name("ipopt.opt")
_ARGUMENTS = {
    "limits/time": "time_limit_s",
    "limits/gap": "relative_gap",
    "limits/absgap": "absolute_gap",
    "limits/primal": "should_stop",  # SCIP sees a scaled objective
    "limits/dual": "should_stop",
    "randomization/randomseedshift": "random_state",
    "parallel/maxnthreads": "threads",
}


def new_model(compiled: CompiledModel) -> Any:
    """Return a SCIP of our own settings: silent, and without memory of what it solved before."""
    from pyscipopt import Model

    model: Any = Model()
    model.hideOutput()
    model.setParam("misc/catchctrlc", False)  # the switch listens
    model.setParam("misc/transsolsorig", False)  # else the next solve starts from this one's points
    model.setParam("heuristics/completesol/maxunknownrate", 1.0)  # a start of few columns is completed too
    with suppress(KeyError):  # a SCIP that was built without Ipopt
        model.setParam("nlpi/ipopt/optfile", str(_IPOPT))  # the file says why
    if compiled.problem_class is ProblemClass.NONCONVEX_EXP:  # less, and SoPlex says that it cannot be so exact
        model.setParam("propagating/obbt/dualfeastol", 1e-7)
        model.setParam("presolving/maxrounds", 0)  # else points are lost, that keep the rows of a logistic curve
    if compiled.problem_class is ProblemClass.NONCONVEX:  # else a product of columns up to 1e9 was proved infeasible
        model.setParam("presolving/donotaggr", True)
    if compiled.Q is not None or any(compiled.shape[2:]):
        model.setParam("numerics/feastol", 1e-7)  # the objective is a row then, to be right to 1e-6; costs no time
    else:  # put into other rows as a sum, a column's own row is kept to 7e-5 only: optima were 8e-5 off; costs no time
        model.setParam("presolving/donotmultaggr", True)
    return model


_AS_USUAL: Mapping[str, Any] = MappingProxyType({})
#: Where rows are still to come, what is proved of those at hand alone is no proof: without these and the locks, 121 of
#: 300 random programs ended with another optimum or none. The tolerance, as a row is soon found that is kept roughly.
_WITH_LAZY_ROWS = {
    "numerics/feastol": SCIP_FINE_TOLERANCE,
    "misc/allowstrongdualreds": False,
    "misc/allowweakdualreds": False,
    "misc/usesymmetry": 0,
    "constraints/components/maxprerounds": 0,
    "constraints/components/propfreq": -1,
    "presolving/implint/maxrounds": 0,
}


def refuse_huge_numbers(compiled: CompiledModel) -> None:
    """Refuse coefficients that SCIP calls huge."""
    parts = [compiled.A.data, *(cone.matrix.data for cone in compiled.cones)]
    for row in compiled.quadratics:
        parts += [row.a.data, row.Q.data]
    refuse_huge("SCIP", parts)


def set_options(model: Any, options: Mapping[str, Any]) -> None:
    """Set each option on a ``pyscipopt.Model``.

    Raises
    ------
    UnknownNameError
        SCIP has no parameter of that name.
    InvalidValueError
        SCIP does not take the value, or the parameter has an argument of its own.
    """

    def described(name: str) -> Option:
        try:
            present = model.getParam(name)
        except (KeyError, TypeError, AttributeError):
            raise _unknown(model, name) from None
        kind = type(present)
        takes = f"a value of type {kind.__name__} that option {name!r} takes"
        return Option(types=(kind,), takes=takes, then=f"Its present value is {present!r}.")

    apply_options("SCIP", options, arguments=_ARGUMENTS, describe=described, put=model.setParam)


def _unknown(model: Any, name: object) -> UnknownNameError:
    """Return the error, with those of SCIP's 3,000 parameters that share most with the name."""
    known = list(model.getParams())
    last = str(name).rsplit("/", 1)[-1]
    alike = [word for word in known if last and last in word] or [word for word in known if word.startswith("limits/")]
    shown = UnknownNameError.among("SCIP", "option", name, known)
    head = str(shown).split("Choose from", 1)[0]
    return UnknownNameError(f"{head}SCIP has {len(known)} of them, such as {', '.join(alike[:8])}.")


# ==== SCIP over a compiled model: linear, quadratic and second-order programs, with integers, convex or not ===========

_INFINITE = 1e20  # SCIP's infinity
_MUCH = 1e-2  # of the scaled objective: what a second search is to gain
_FAR = 1e7  # an optimum of a curved program so far out, in a column without a bound there, is not believed


@final
class ScipSession(AbstractSession):
    """One compiled program inside SCIP, without semidefinite cones, and with exponential ones if nothing is convex.

    SCIP compares objectives and checks rows with absolute tolerances. The objective is therefore handed over scaled by
    a power of two, raised until those tolerances are below the relative gap, and "optimal" is said only if the
    objective, recomputed at the point, is within the gap of what SCIP proved. SCIP runs in one thread, whatever
    ``threads``.
    """

    who = "SCIP"

    def _open(self) -> None:
        compiled = self._compiled
        takes = "a model without semidefinite cones, and without exponential ones in a convex model"
        require_class(self.who, "scip", takes, compiled)
        refuse_huge_numbers(compiled)
        self._program: Program | None = self._built(first_scale(compiled))

    @property
    def version(self) -> str:
        """Version of SCIP."""
        from pyscipopt import Model

        model = Model(createscip=False)
        return f"{model.getMajorVersion()}.{model.getMinorVersion()}.{model.getTechVersion()}"

    def _run(self, search: SolveRun) -> RunResult:
        result = self._best(search)
        if search.switch.pressed:
            return replace(result, status=Stop.INTERRUPTED, message="SCIP stopped: interrupted.")
        if result.status is not Stop.UNBOUNDED:
            return result
        # SCIP says so also of programs where it knows no point
        without = self._once(self._built(0.0), search, points=False)
        status = Stop.UNBOUNDED if without.x is not None else without.status
        return without_a_best(self.who, status, otherwise=without.message)

    def _best(self, search: SolveRun) -> RunResult:
        """Run at the first scale, and again from the best point at a finer one if the proof needs it."""
        compiled = self._compiled
        gap = search.relative_gap
        scale = first_scale(compiled)
        start = search.start
        best = None
        is_fine = False
        coarse: RunResult | None = None
        while True:
            program = self._ready(scale, start) if search.lazy is None else self._with_lazy_rows(scale, start, search)
            if is_fine:
                program.model.setParam(
                    "numerics/feastol", min(SCIP_FINE_TOLERANCE, program.model.getParam("numerics/feastol"))
                )
                self._program = None  # the next solve begins at the usual tolerance
            result = self._once(program, search)
            if best is not None:
                result = _better(compiled, best, result)
            if result.x is None and coarse is not None:
                return coarse
            if result.x is None or result.status is not Stop.OPTIMAL or search.switch.pressed:
                return result
            miss = _missed_cone(compiled, result.x) or _missed_row(compiled, result.x, is_fine=is_fine)
            if miss:
                coarse = replace(result, status=Stop.FEASIBLE, bound=None, message=miss)
                if is_fine:
                    return coarse
                # a point outside is no start
                is_fine = True
                best = None
                start = search.start
                search.incumbents.clear()  # nor is one that led to it a solution
                continue
            proof = OptimalityProof(
                compiled,
                result.x,
                result.bound,
                gap,
                scale,
                cost=program.cost,
                absolute_gap=search.absolute_gap,
            )
            if proof.holds:
                far = _far_column(compiled, result.x)
                if far is not None:
                    return _perhaps_unbounded(result, far)
                proved = replace(result, bound=proof.bound)
                if _endless_integers(compiled):
                    return self._doubted(proved, scale, search)
                return proved
            if proof.finer_scale is None:
                return replace(result, status=Stop.FEASIBLE, bound=proof.bound, message=proof.sentence)
            best = result
            start = dict(enumerate(result.x.tolist()))
            scale = proof.finer_scale

    def _doubted(self, result: RunResult, scale: float, search: SolveRun) -> RunResult:
        """Search for a much better point from scratch: SCIP passes over some where integers have no bounds."""
        compiled = self._compiled
        assert result.x is not None  # noqa: S101 - an optimum has one
        best = compiled.sense * compiled.evaluate(result.x) * scale
        program = self._built(scale)
        program.model.setObjlimit(best - _MUCH * abs(best) - LEAST_GAIN)
        second = self._once(program, search)
        if second.status is Stop.INFEASIBLE:
            return result
        better = result
        if second.x is not None:
            better = _better(compiled, result, second)
        message = "SCIP stopped: a second search does not confirm the optimum. Bound all integers."
        return replace(better, status=Stop.FEASIBLE, bound=None, message=message)

    # -- one run -------------------------------------------------------------------------------------------------------
    def _once(self, program: Program, search: SolveRun, *, points: bool = True) -> RunResult:
        """Solve once, and return the result in the model's own units, before any proof."""
        model = program.model
        kept = len(search.incumbents)
        model.setParam("limits/time", min(search.seconds_left, _INFINITE))
        model.setParam("limits/gap", min(search.relative_gap, _INFINITE))
        model.setParam("limits/absgap", min(search.absolute_gap * program.scale, _INFINITE))
        model.hideOutput(not search.tee)
        model.setParam("limits/maxsol", max(search.pool, model.getParam("limits/maxsol")))
        try:
            with heard(program.listener, program, search, points=points), search.switch.listening():
                model.optimizeNogil()
        except Exception as error:  # noqa: BLE001  (pyscipopt's own choice of class for each return code of SCIP)
            self._program = None
            x = None
            if len(search.incumbents) > kept:
                x = search.incumbents[-1][2]
            return RunResult(status=Stop.ERROR, x=x, message=f"SCIP failed: {str(error).rstrip('.!')}.")
        name = model.getStatus()
        bound = None
        stored = [program.point(solution) for solution in model.getSols()[: search.pool]]
        x = None
        if stored:
            x = stored[0]
        if program.scale:
            bound = _proved(program)
        model.freeTransform()
        if program.lazy_rows is not None:
            program.lazy_rows.program = None  # a cycle that would keep SCIP's memory until the next collection
        status = status_of(STOP, name, has_point=x is not None)
        message = why_stopped(self.who, status, words_of(name))
        return RunResult(status=status, x=x, bound=bound, message=message, pool=tuple(stored))

    # -- model into SCIP -----------------------------------------------------------------------------------------------
    def _ready(self, scale: float, start: Mapping[int, float]) -> Program:
        """Return the program as it is now, at this scale and with this start."""
        program = self._program
        if program is None or program.scale != scale or not program.updated():
            refuse_huge_numbers(self._compiled)
            program = self._built(scale)
        is_forgotten = not start or program.begin_at(start)
        self._program = program if is_forgotten else None  # the next solve must not have this one's start
        return program

    def _with_lazy_rows(self, scale: float, start: Mapping[int, float], search: SolveRun) -> Program:
        """Return a program of its own for one run that asks for further rows."""
        self._program = None
        program = self._built(scale, _WITH_LAZY_ROWS)
        program.lazy_rows = attach_lazy_rows(program, search)
        if start:
            program.begin_at(start)
        return program

    def _built(self, scale: float, settings: Mapping[str, Any] = _AS_USUAL) -> Program:
        model = new_model(self._compiled)
        for name, value in settings.items():
            model.setParam(name, value)
        model.setParam("randomization/randomseedshift", self._random_state)
        set_options(model, self._options)
        with PauseGC():  # thousands of small objects that live as long as the session
            return Program(model, self._compiled, scale, attach(model))


def _missed_cone(compiled: CompiledModel, x: Vector) -> str | None:
    """Return a sentence about a cone that x is too far outside of: near an apex, SCIP takes roots of its tolerance."""
    for cone in compiled.cones:
        missed = cone.violation(x)
        size = float(np.abs(cone.entries(x)).max(initial=1.0))
        if missed > SCIP_MISSED * size:
            return f"SCIP stopped: by its tolerances the point is outside {cone.constraint.name!r} by {missed:.3g}."
    return None


def _missed_row(compiled: CompiledModel, x: Vector, *, is_fine: bool) -> str:
    """Return a sentence about rows that x misses; empty if it keeps them, as well as a finer run can.

    SCIP's tolerance grows with the side of a row, and what presolve has put into others is not seen there at all: an
    optimum of a network was 8e-5 too cheap.
    """
    violation = compiled.violation(x)
    if violation <= SCIP_MISSED_ROW or relative_violation(compiled, x) <= (
        SCIP_MISSED if is_fine else SCIP_ROUNDED_ROW
    ):
        return ""
    return f"SCIP stopped: by its tolerances the point misses the program by {violation:.3g}."


def _endless_integers(compiled: CompiledModel) -> bool:
    """Whether there are curved rows, and integers without a bound."""
    endless = compiled.integer & ~(np.isfinite(compiled.lb) & np.isfinite(compiled.ub))
    return bool(endless.any() and (compiled.quadratics or compiled.cones))


def _far_column(compiled: CompiledModel, x: Vector) -> str | None:
    """Return a column that is far out towards a side without a bound, where a curve may grow for ever."""
    if compiled.Q is None and not compiled.quadratics and not compiled.cones:
        return None
    side = np.where(x > 0, compiled.ub, compiled.lb)
    far = np.flatnonzero((np.abs(x) >= _FAR) & ~np.isfinite(side))
    if far.size:
        return str(compiled.columns[far[0]].name)
    return None


def _perhaps_unbounded(result: RunResult, name: str) -> RunResult:
    """SCIP ends at 1e10 or so on programs that curve to infinity, and calls that optimal."""
    message = f"SCIP stopped: {name!r} runs off to {_FAR:g} and beyond, so the program may be unbounded. Bound it."
    return replace(result, status=Stop.FEASIBLE, bound=None, message=message)


def _better(compiled: CompiledModel, best: RunResult, result: RunResult) -> RunResult:
    """Return the later of two runs, with the better point; a run that loses the point proves nothing."""
    assert best.x is not None  # noqa: S101 - only a run with a point is repeated
    if result.x is None or result.status is Stop.ERROR:
        status = result.status if result.status is Stop.INTERRUPTED else Stop.FEASIBLE
        return replace(best, status=status, message=result.message)
    worse = compiled.sense * (compiled.evaluate(result.x) - compiled.evaluate(best.x)) > 0
    if worse:
        return replace(result, x=best.x, pool=(best.x, *result.pool))
    return result


def _proved(program: Program) -> float | None:
    """Return the bound that SCIP has so far, in the model's own sense and units; None while it has none."""
    bound = program.model.getDualbound()
    if abs(bound) >= _INFINITE:
        return None
    return program.compiled.sense * float(bound) / program.scale


# ---- events while SCIP searches: better points, and moments at which it can be stopped -------------------------------
def attach(model: Any) -> Any:
    """Give a ``pyscipopt.Model`` a listener, which it keeps, and return it."""
    listener = _listener_class()()
    model.includeEventhdlr(listener, "ceopt", "better points, and polls of the switch")
    listener.model = None  # pyscipopt sets it: a cycle that would keep SCIP's memory until the next collection
    return listener


@contextmanager
def heard(listener: Any, program: Program, search: SolveRun, *, points: bool) -> Iterator[None]:
    """Let the listener report to ``search``, and forget both at the end."""
    listener.model = program.model
    listener.program = program
    listener.search = search
    listener.points = points
    try:
        yield
    finally:
        listener.model = listener.program = listener.search = None


@functools.cache
def _listener_class() -> Any:
    from pyscipopt import SCIP_EVENTTYPE, Eventhdlr  # type: ignore[attr-defined]

    better = SCIP_EVENTTYPE.BESTSOLFOUND
    moments = (
        SCIP_EVENTTYPE.PRESOLVEROUND,
        SCIP_EVENTTYPE.NODEFOCUSED,
        SCIP_EVENTTYPE.FIRSTLPSOLVED,
        SCIP_EVENTTYPE.LPSOLVED,
    )

    class Listener(Eventhdlr):
        """Hears better points, rounds of presolve, nodes and linear programs."""

        program: Program | None = None
        search: SolveRun | None = None
        points = True

        def eventinit(self) -> None:
            for kind in (better, *moments) if self.model is not None else ():
                self.model.catchEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            program = self.program
            search = self.search
            if program is None or search is None:
                return
            if self.points and event.getType() == better:
                search.improved(program.point(self.model.getBestSol()))
            if self.points and program.scale:
                search.report(lambda: _proved(program))
            if search.switch.poll():
                self.model.interruptSolve()

    return Listener


# ---- rows that are found while SCIP searches -------------------------------------------------------------------------
_LAST_ASKED = -5_000_000  # below the priorities of all of SCIP's own constraints: a candidate keeps them


def attach_lazy_rows(program: Program, search: SolveRun) -> Any:
    """Have a run ask for further rows at each candidate in whole numbers, and return who asks."""
    handler = _lazy_rows_class()(program, search)
    names = {"enfopriority": _LAST_ASKED, "chckpriority": _LAST_ASKED}
    program.model.includeConshdlr(handler, "lazy", "rows found at candidates", needscons=False, **names)
    handler.model = None  # as of a listener
    return handler


@functools.cache
def _lazy_rows_class() -> Any:
    from pyscipopt import SCIP_LOCKTYPE, SCIP_RESULT, Conshdlr  # type: ignore[attr-defined]

    class LazyRows(Conshdlr):
        """Asks for rows that a candidate breaks, and adds them where SCIP takes rows: not while it checks a point."""

        def __init__(self, program: Program, search: SolveRun) -> None:
            self.program = program
            self.search = search
            self.n_rows = program.compiled.shape[0]  # that SCIP has

        def conslock(self, _constraint: Any, _kind: Any, up: int, down: int) -> None:
            """Say that a further row may stop any column from going up, and from going down."""
            for column in self.program.columns if self.program is not None else ():
                self.program.model.addVarLocksType(column, SCIP_LOCKTYPE.MODEL, up + down, up + down)

        def conscheck(self, _constraints: Any, solution: Any, *_: Any) -> dict[str, Any]:
            return {"result": SCIP_RESULT.FEASIBLE if self._keeps(solution) else SCIP_RESULT.INFEASIBLE}

        def consenfolp(self, *_: Any) -> dict[str, Any]:
            return self._enforced()

        def consenfops(self, *_: Any) -> dict[str, Any]:
            return self._enforced()

        def _keeps(self, solution: Any) -> bool:
            """Whether a point keeps all rows; where the run is given up, no point counts."""
            point = self.program.point(solution)
            broken = self.search.rows_against(point, self.n_rows)
            if self.search.switch.pressed:
                self.program.model.interruptSolve()
            return not broken.size and not self.search.is_given_up

        def _enforced(self) -> dict[str, Any]:
            if self._keeps(None):
                return {"result": SCIP_RESULT.FEASIBLE}
            n_rows = self.program.compiled.shape[0]
            if self.search.is_given_up or n_rows == self.n_rows:
                return {"result": SCIP_RESULT.INFEASIBLE}  # of a run that ends
            self.program.add_lazily(np.arange(self.n_rows, n_rows))
            self.n_rows = n_rows
            return {"result": SCIP_RESULT.CONSADDED}

    return LazyRows
