r"""Second-order cones as quadratic rows, for solvers that know a cone by that shape, and quadratics as cones.

.. math::
    t \ge \lVert v \rVert \quad&\Longleftrightarrow\quad v^\top v - t^2 \le 0,\ t \ge 0 \\
    2tu \ge \lVert v \rVert^2,\ t, u \ge 0 \quad&\Longleftrightarrow\quad v^\top v - 2tu \le 0,\ t, u \ge 0

An entry that is one column times a number stays that column, and its sign becomes a bound. A number goes to the other
side, and a rotated cone with a number for t or u is an ordinary convex row. Any other entry gets a column of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.rows_and_cones import (
    Auxiliary,
    ConeRows,
    QuadraticRow,
    cone_of,
    factor,
    is_convex,
    lower_triangle,
    resized,
)
from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.tolerances import CONSTANT_CONE_MISS

# ==== Second-order cones as quadratic rows over single columns, for solvers that know a cone by that shape ============


def cones_as_quadratics(compiled: CompiledModel) -> CompiledModel:
    """Return the same program with every second-order and rotated cone as quadratic and linear rows.

    A solution of it begins with one of the given program; without cones it is the given program itself. Data columns
    keep their bounds. Of exponential cones, those whose second entry is the number 0 become linear rows; the others
    are the cones that it has.
    """
    if compiled.cones:
        return _Lowering(compiled).program()
    return compiled


class _Lowering:
    """Collects the columns, linear rows and quadratic rows that restate the cones."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        self.n = len(compiled.columns)
        self.data = set(compiled.data.tolist())
        self.lb = compiled.lb.copy()
        self.ub = compiled.ub.copy()
        self.names: list[Auxiliary] = []
        self.own_lb: list[float] = []
        self.rows: list[tuple[sp.csr_array, int | None, float, float]] = []  # a'x - own column from lower to upper
        self.quadratics: list[tuple[Any, dict[tuple[int, int], float], sp.csr_array | None, float]] = []
        self.contradiction = compiled.contradiction
        self.exponential: list[ConeRows] = []
        for cone in compiled.cones:
            if cone.cone is Cone.EXPONENTIAL:
                self._add_exponential(cone)
            else:
                self._add(cone)

    def program(self) -> CompiledModel:
        width = self.n + len(self.names)
        parts = []
        lowers = []
        uppers = []
        for a, own, lower, upper in self.rows:
            part = resized(a, (1, width))
            if own is not None:
                part = part - sp.csr_array(([1.0], ([0], [own])), shape=(1, width))
            parts.append(part)
            lowers.append(lower)
            uppers.append(upper)
        other = self.compiled.extended(
            columns=self.names,
            lb=self.own_lb,
            ub=[math.inf] * len(self.names),
            A=sp.csr_array(sp.vstack(parts)) if parts else None,
            row_lb=lowers,
            row_ub=uppers,
        )
        other.lb[: self.n] = self.lb
        other.ub[: self.n] = self.ub
        other.cones = [cone.widened(width) for cone in self.exponential]
        other.contradiction = self.contradiction
        for constraint, products, linear, upper in self.quadratics:
            a = sp.csr_array((1, width)) if linear is None else resized(linear, (1, width))
            other.quadratics.append(QuadraticRow(constraint, -math.inf, upper, a, lower_triangle(products, width)))
        return other

    def _add(self, cone: ConeRows) -> None:
        matrix = cone.matrix.copy()
        constant = cone.constant
        matrix.eliminate_zeros()
        cone = ConeRows(cone.constraint, cone.cone, constant, matrix)
        moving = np.diff(matrix.indptr) > 0
        heads = cone.cone.heads
        body = [k for k in range(heads, constant.size) if moving[k]]
        level = float(np.sum(constant[heads:][~moving[heads:]] ** 2))  # of the entries that are numbers
        still = constant[:heads][~moving[:heads]].tolist()
        if min(still, default=0.0) < 0.0 or (
            not moving.any() and cone.violation(np.zeros(self.n)) > CONSTANT_CONE_MISS
        ):
            self.contradiction = f"constraint {getattr(cone.constraint, 'name', 'of a cone')!r}"
        elif not moving.any():
            return
        elif 0.0 in still:
            self._vanish(cone, [*body, *(k for k in range(heads) if moving[k])], heads, level)
        elif len(still) == heads:
            bound = still[0] ** 2 if heads == 1 else 2.0 * still[0] * still[1]
            self._quadratic(cone, self._squares(cone, body), None, bound - level)
        elif heads == 1 and not body:
            self._at_least(cone, 0, math.sqrt(level))
        elif heads == 1:
            self._quadratic(cone, self._squares(cone, body, heads=[0]), None, -level)
        elif still:
            self._half(cone, body, 0 if moving[0] else 1, still[0], level)
        else:
            self._quadratic(cone, self._squares(cone, body, heads=[0, 1]), None, -level)

    def _add_exponential(self, cone: ConeRows) -> None:
        """Keep z >= y exp(x / y), but where y is a number that is not positive: at 0 it is x <= 0 <= z."""
        y = float(cone.constant[1])
        if cone.matrix[[1]].count_nonzero() or y > 0.0:
            self.exponential.append(cone)
        elif y < 0.0:
            self.contradiction = f"constraint {getattr(cone.constraint, 'name', 'of a cone')!r}"
        else:
            self.rows.append((cone.matrix[[0]], None, -math.inf, -float(cone.constant[0])))
            self._at_least(cone, 2, 0.0)

    def _half(self, cone: ConeRows, body: list[int], head: int, number: float, level: float) -> None:
        """Add v'v <= 2 (number) (head): the head may be any affine expression, and is non-negative by the row."""
        if not body:
            self._at_least(cone, head, level / (2.0 * number))
            return
        linear = sp.csr_array(-2.0 * number * cone.matrix[[head]])
        upper = 2.0 * number * float(cone.constant[head]) - level
        self._quadratic(cone, self._squares(cone, body), linear, upper)

    def _vanish(self, cone: ConeRows, moving: list[int], heads: int, level: float) -> None:
        """Add v = 0, and another head >= 0, where t or u is the number 0: a square of 0 would only be nearly so."""
        if level > 0.0:
            self.contradiction = f"constraint {getattr(cone.constraint, 'name', 'of a cone')!r}"
        for k in moving:
            if k < heads:
                self._at_least(cone, k, 0.0)
            else:
                side = -float(cone.constant[k])
                self.rows.append((cone.matrix[[k]], None, side, side))

    def _at_least(self, cone: ConeRows, k: int, lower: float) -> None:
        self.rows.append((cone.matrix[[k]], None, lower - float(cone.constant[k]), math.inf))

    def _quadratic(
        self, cone: ConeRows, products: dict[tuple[int, int], float], linear: sp.csr_array | None, upper: float
    ) -> None:
        self.quadratics.append((cone.constraint, products, linear, upper))

    def _squares(self, cone: ConeRows, body: list[int], heads: list[int] | None = None) -> dict[tuple[int, int], float]:
        """Return the products of v'v - t^2, or v'v - 2tu, by (larger column, smaller column)."""
        products: dict[tuple[int, int], float] = {}
        for j, a in (self._column(cone, k) for k in body):
            products[j, j] = products.get((j, j), 0.0) + a * a
        if heads:
            ends = [self._column(cone, k, is_head=True) for k in heads]
            (i, a), (j, b) = ends[0], ends[-1]
            pair = max(i, j), min(i, j)
            products[pair] = products.get(pair, 0.0) - len(heads) * a * b  # t^2 once, 2tu twice
        return products

    def _column(self, cone: ConeRows, k: int, *, is_head: bool = False) -> tuple[int, float]:
        """Return the column and factor that entry k is; one of its own if it is more than that."""
        begin, end = cone.matrix.indptr[k : k + 2].tolist()
        j = int(cone.matrix.indices[begin])
        a = float(cone.matrix.data[begin])
        if end - begin == 1 and cone.constant[k] == 0.0 and not (is_head and j in self.data):
            if is_head and a > 0.0:
                self.lb[j] = max(self.lb[j], 0.0)
            elif is_head:
                self.ub[j] = min(self.ub[j], 0.0)
            return j, a
        own = self.n + len(self.names)
        side = -float(cone.constant[k])
        self.names.append(Auxiliary(f"{getattr(cone.constraint, 'name', 'cone')} entry {k}"))
        self.own_lb.append(0.0 if is_head else -math.inf)
        self.rows.append((cone.matrix[[k]], own, side, side))
        return own, 1.0


# ==== Every quadratic of a program as a second-order cone, for solvers and files that take cones alone ================


def cones_of_rows(compiled: CompiledModel) -> list[ConeRows]:
    """Return a cone for each quadratic row of the model.

    Raises
    ------
    UnsupportedProblemError
        A row is not convex and has not the shape of a second-order cone.
    """
    cones = []
    for row in compiled.quadratics:
        cone = cone_of(row, compiled.lb)
        if cone is None:
            raise UnsupportedProblemError(
                "A convex solver",
                "convex quadratic rows",
                f"constraint {row.constraint.name!r} is not convex",
                "Use SCIP or Gurobi, or restate it.",
            )
        cones.append(cone)
    return cones


def without_quadratics(compiled: CompiledModel) -> CompiledModel:
    r"""Return the same program with every convex quadratic as a cone, and so with a linear objective.

    A quadratic objective becomes :math:`c^\top x + w` with a last column :math:`w \ge \tfrac12 x^\top Q x` (to
    maximise, :math:`c^\top x - w`); a program without quadratics comes back as it is.

    Raises
    ------
    UnsupportedProblemError
        A quadratic is not convex.
    """
    if compiled.Q is None and not compiled.quadratics:
        return compiled
    if not is_convex(compiled.Q, compiled.sense):
        raise UnsupportedProblemError(
            "A convex solver",
            "a convex quadratic objective",
            "this one is not convex",
            "Use SCIP or Gurobi, or state a convex or a linear cost.",
        )
    cones = [*compiled.cones, *cones_of_rows(compiled)]
    if compiled.Q is None:
        conic = compiled.extended()
        conic.quadratics = []
        conic.cones = cones
        return conic
    n = len(compiled.columns)
    conic = compiled.extended(columns=[Auxiliary("quadratic objective")], lb=[0.0], ub=[np.inf])
    body = factor(sp.csc_array(compiled.sense * compiled.Q))
    unit = sp.csr_array(([1.0], ([0], [n])), shape=(1, n + 1))
    matrix = sp.vstack([unit, sp.csr_array((1, n + 1)), resized(body.T.tocsr(), (n + 1, body.shape[0])).T])
    constant = np.zeros(matrix.shape[0])
    constant[1] = 1.0
    conic.c[n] = compiled.sense
    conic.Q = None
    conic.quadratics = []
    conic.cones = [cone.widened(n + 1) for cone in cones]
    conic.cones.append(ConeRows(None, Cone.ROTATED, constant, sp.csr_array(matrix)))
    return conic
