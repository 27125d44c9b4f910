r"""The one form that conic solvers take, made of a compiled model's arrays.

.. math::
    \min \tfrac12 x^\top P x + q^\top x + c_0 \quad\text{s.t.}\quad
    b - A x \in \{0\}^{m_0} \times \mathbb{R}_+^{m_+} \times \mathcal{L} \times \dots \times
    \mathcal{S}_+ \times \dots \times \mathcal{E} \times \dots

============================ ==================================================================
in the model                 in the form
============================ ==================================================================
row with equal sides         one row in {0}
other row                    one row in R+ for each finite side: b - a'x, then a'x - b
column bounds                one row in R+ for each finite one: u - x, then x - l
quadratic row                second-order cone, see :mod:`ceopt.solvers.compile.quadratic_cones`
rotated cone (t, u, v)       second-order cone ((t + u) / sqrt 2, (t - u) / sqrt 2, v)
semidefinite cone            upper triangle by columns, off the diagonal times sqrt 2
exponential cone             (x, y, z) with y exp(x / y) <= z
column with equal bounds     none: it is folded into b, q and c0
row or cone of constants     none: it is checked
maximise                     the negative is minimised
============================ ==================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.quadratic_cones import cones_of_rows
from ceopt.solvers.compile.rows_and_cones import ConeRows, is_convex
from ceopt.solvers.cones import Cone, side_of, triangle
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import CONSTANT_MISS

# ==== Linear rows, bounds and cones of a compiled model below one another, as the conic form has them =================

ORDER = (None, Cone.SECOND_ORDER, Cone.SEMIDEFINITE, Cone.EXPONENTIAL)
"""The kinds of cone in the order of the form; None stands for R+."""


def linear_rows(compiled: CompiledModel, free: NDArray[np.bool_]) -> tuple[sp.csr_array, Vector, list[Any], int]:
    """Return (A, b, sources, zeros): A x = b for the first rows, A x <= b for the others."""
    A = compiled.A
    low = compiled.row_lb
    high = compiled.row_ub
    equal = np.flatnonzero(low == high)
    above = np.flatnonzero(np.isfinite(high) & (low != high))
    below = np.flatnonzero(np.isfinite(low) & (low != high))
    under = np.flatnonzero(np.isfinite(compiled.ub) & free)
    over = np.flatnonzero(np.isfinite(compiled.lb) & free)
    columns = np.concatenate([under, over])
    signs = np.repeat([1.0, -1.0], [under.size, over.size])
    bounds = sp.csr_array((signs, columns, np.arange(columns.size + 1)), shape=(columns.size, A.shape[1]))
    matrix = sp.csr_array(sp.vstack([A[equal], A[above], -A[below], bounds]))
    b = np.concatenate([high[equal], high[above], -low[below], compiled.ub[under], -compiled.lb[over]])
    sources = [compiled.rows[k] for part in (equal, above, below) for k in part.tolist()]
    return matrix, b, sources + [compiled.columns[k] for k in columns.tolist()], equal.size


def conic_rows(cones: list[ConeRows], n: int) -> tuple[sp.csr_array, Vector]:
    """Return (E, e): the entries E x + e of all cones below one another, rotated and scaled as the form has them."""
    if not cones:
        return sp.csr_array((0, n)), np.zeros(0)
    sizes = np.array([cone.constant.size for cone in cones])
    starts = np.cumsum(sizes) - sizes
    diagonal = np.ones(int(sizes.sum()))
    for cone, start in zip(cones, starts.tolist(), strict=True):
        if cone.cone is Cone.SEMIDEFINITE:
            diagonal[start : start + cone.constant.size] = svec_scale(cone.constant.size)
    heads = starts[[cone.cone is Cone.ROTATED for cone in cones]]
    half = math.sqrt(0.5)
    diagonal[heads], diagonal[heads + 1] = half, -half
    cross = np.zeros(diagonal.size - 1)
    cross[heads] = half
    mixing: Any = sp.diags_array  # its stubs know no arrays
    mix = sp.csr_array(mixing([diagonal, cross, cross], offsets=[0, 1, -1]))
    matrix = sp.csr_array(mix @ sp.csr_array(sp.vstack([cone.matrix for cone in cones])))
    return matrix, np.asarray(mix @ np.concatenate([cone.constant for cone in cones]), dtype=np.float64)


def rank(cone: ConeRows) -> int:
    """Return the place of a cone's kind in the form: 0 for one that is R+ itself, having one entry."""
    if cone.constant.size == 1:
        return 0
    return ORDER.index(Cone.SECOND_ORDER if cone.cone is Cone.ROTATED else cone.cone)


def size_of(cone: ConeRows) -> int:
    """Return a cone's size in the form: the side of a semidefinite one, else its entries."""
    if cone.cone is Cone.SEMIDEFINITE:
        return side_of(cone.constant.size)
    return cone.constant.size


def svec_scale(entries: int) -> Vector:
    """Return sqrt 2 for the entries of a triangle that are off the diagonal, else 1: inner products are then kept."""
    i, j = triangle(side_of(entries))
    return np.where(i == j, 1.0, math.sqrt(2.0))


# ==== The one form that conic solvers take, made of a compiled model's arrays =========================================

Index = NDArray[np.intp]


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ConicForm:
    """One conic program in arrays, to be minimised.

    Parameters
    ----------
    P
        (n, n) csc, upper triangle of the Hessian.
    q, c0
        (n,) and a number.
    A, b
        (m, n) csc and (m,).
    zero, nonnegative
        How many rows are in {0} and in R+; they come first.
    cones
        Then (cone, size): second-order, semidefinite (size is the side), exponential (3), in this order of kinds.
    sense
        1 if the model minimises, -1 if it maximises: the model's objective is sense times the form's.
    free
        (n,) the model's columns that are the form's.
    point
        All of the model's columns, with the fixed ones at their values.
    broken
        What among the constants is false whatever x; empty if nothing is.
    sources
        For :meth:`rows_of`.
    """

    P: sp.csc_array
    q: Vector
    c0: float
    A: sp.csc_array
    b: Vector
    zero: int
    nonnegative: int
    cones: tuple[tuple[Cone, int], ...]
    sense: int
    free: Index
    point: Vector = field(repr=False)
    broken: str = ""
    sources: tuple[Any, ...] = field(repr=False, default=())

    @property
    def linear(self) -> int:
        """How many rows are in {0} and R+ together."""
        return self.zero + self.nonnegative

    @property
    def scale(self) -> Vector:
        """(m,) by what the model's own entries were multiplied: sqrt 2 off the diagonal of a semidefinite cone."""
        scale = np.ones(self.b.size)
        for cone, rows in self.slices():
            if cone is Cone.SEMIDEFINITE:
                scale[rows] = svec_scale(rows.stop - rows.start)
        return scale

    def slices(self) -> list[tuple[Cone, slice]]:
        """Return each cone with its rows."""
        sizes = [size * (size + 1) // 2 if cone is Cone.SEMIDEFINITE else size for cone, size in self.cones]
        ends = (self.linear + np.cumsum(sizes, dtype=int)).tolist()
        return [(cone, slice(end - size, end)) for (cone, _), size, end in zip(self.cones, sizes, ends, strict=True)]

    def rows_of(self) -> list[tuple[Any, slice]]:
        """Return (Constraint, or Var for a bound, and its rows) for all rows in their order; a range comes twice."""
        ones = [(source, slice(k, k + 1)) for k, source in enumerate(self.sources[: self.linear])]
        rows = [rows for _, rows in self.slices()]
        return ones + list(zip(self.sources[self.linear :], rows, strict=True))

    def lower_by_columns(self) -> Index:
        """Return the order of rows in which every semidefinite cone is its lower triangle by columns (SCS, MOSEK)."""
        order = np.arange(self.b.size)
        for cone, rows in self.slices():
            if cone is Cone.SEMIDEFINITE:
                i, j = triangle(side_of(rows.stop - rows.start))
                order[rows] = rows.start + np.lexsort((j, i))
        return order

    def objective(self, x: Vector) -> float:
        """Return the form's objective at x: sense times the model's."""
        return self.c0 + float(self.q @ x) + 0.5 * float(x @ self.hessian(x))

    def hessian(self, x: Vector) -> Vector:
        """Return the whole P times x."""
        return np.asarray(self.P @ x + self.P.T @ x - self.P.diagonal() * x, dtype=np.float64)

    def expanded(self, x: Vector) -> Vector:
        """Return the model's columns."""
        point = self.point.copy()
        point[self.free] = x
        return point


@final
class Lowering:
    """The parts that all forms of one model share while its data move.

    Parameters
    ----------
    compiled
        Without integers, but for fixed ones.
    who
        What messages call the solver.

    Raises
    ------
    UnsupportedProblemError
        There are integers or nonconvex quadratics.
    """

    __slots__ = ("_A", "_P", "_b", "_c", "_checked", "_given", "_hessian", "_kept", "_rows", "_shape", "_who")

    def __init__(self, compiled: CompiledModel, who: str = "A conic solver") -> None:
        self._who = who
        self._build(compiled)

    def form(self, compiled: CompiledModel) -> ConicForm:
        """Return the form of the model as it is now; where only data moved, only b, q and c0 are computed."""
        given = _structure(compiled)
        if not all(np.array_equal(one, other) for one, other in zip(given, self._given, strict=True)):
            self._build(compiled)
        point = np.where(_fixed(compiled), compiled.lb, 0.0)
        bent = np.zeros(point.size) if self._hessian is None else self._hessian @ point
        moved = self._b - self._rows @ point
        return ConicForm(
            P=self._P,
            q=(self._c + bent)[self._shape["free"]],
            c0=compiled.sense * compiled.c0 + float((self._c + 0.5 * bent) @ point),
            A=self._A,
            b=moved[self._kept],
            sense=compiled.sense,
            point=point,
            broken=self._false_constant(moved, point),
            **self._shape,
        )

    def _build(self, compiled: CompiledModel) -> None:
        _refuse(compiled, self._who)
        self._given = _structure(compiled)
        fixed = _fixed(compiled)
        free = np.flatnonzero(~fixed)
        linear, b, sources, zero = linear_rows(compiled, ~fixed)
        cones = sorted([*compiled.cones, *cones_of_rows(compiled)], key=rank)
        lowered, entries = conic_rows(cones, fixed.size)
        self._rows = sp.csr_array(sp.vstack([linear, -lowered]))
        self._b = np.concatenate([b, entries])
        sizes = np.array([1] * len(sources) + [cone.constant.size for cone in cones], dtype=np.intp)
        sources += [cone.constraint for cone in cones]
        inside = self._rows[:, free]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        used = np.diff(inside.indptr[ends]) > 0  # per row of the linear part, per cone behind it
        self._kept = np.flatnonzero(np.repeat(used, sizes))
        self._A = sp.csc_array(inside[self._kept] if not used.all() else inside)
        n_linear = b.size
        self._checked = (
            np.flatnonzero(~used[:zero]),
            zero + np.flatnonzero(~used[zero:n_linear]),
            sources,
            [cone for cone, is_used in zip(cones, used[n_linear:].tolist(), strict=True) if not is_used],
        )
        kept_cones = [cone for cone, is_used in zip(cones, used[n_linear:].tolist(), strict=True) if is_used]
        rays = sum(rank(cone) == 0 for cone in kept_cones)
        self._shape: dict[str, Any] = {
            "free": free,
            "zero": int(used[:zero].sum()),
            "nonnegative": int(used[zero:n_linear].sum()) + rays,
            "cones": tuple((ORDER[rank(cone)], size_of(cone)) for cone in kept_cones[rays:]),
            "sources": tuple(source for source, is_used in zip(sources, used.tolist(), strict=True) if is_used),
        }
        self._c = compiled.sense * compiled.c
        self._hessian = None
        self._P = sp.csc_array((free.size, free.size))
        if compiled.Q is not None:
            self._hessian = sp.csr_array(compiled.sense * (compiled.Q + sp.tril(compiled.Q, -1).T))
            self._P = sp.csc_array(sp.triu(self._hessian[free][:, free], format="csc"))

    def _false_constant(self, moved: Vector, point: Vector) -> str:
        """Return a row or cone without free columns that does not hold, in words; empty if all do."""
        equal, other, sources, cones = self._checked
        slack = CONSTANT_MISS * np.maximum(1.0, np.abs(self._b))
        false = [*equal[np.abs(moved[equal]) > slack[equal]], *other[moved[other] < -slack[other]]]
        broken = [sources[k] for k in false] + [
            cone.constraint
            for cone in cones
            if cone.violation(point) > CONSTANT_MISS * max(1.0, float(np.abs(cone.constant).max()))
        ]
        if broken:
            return f"constraint {getattr(broken[0], 'name', '')!r}"
        return ""


def conic_form(compiled: CompiledModel, who: str = "A conic solver") -> ConicForm:
    """Return the conic form of a model; see :class:`Lowering` for what it raises."""
    return Lowering(compiled, who).form(compiled)


def _refuse(compiled: CompiledModel, who: str) -> None:
    whole = np.flatnonzero(compiled.integer & ~_fixed(compiled))
    if whole.size:
        name = compiled.columns[whole[0]].name
        raise UnsupportedProblemError(
            who, "continuous variables", f"Var {name!r} is integer", "Use HiGHS, SCIP or Gurobi, or relax it."
        )
    if not is_convex(compiled.Q, compiled.sense):
        goal = "minimise" if compiled.sense > 0 else "maximise"
        wanted = "convex" if compiled.sense > 0 else "concave"
        raise UnsupportedProblemError(
            who,
            f"a {wanted} quadratic objective to {goal}",
            f"this one is not {wanted}",
            "Use SCIP or Gurobi, or state a convex or a linear cost.",
        )


def _fixed(compiled: CompiledModel) -> NDArray[np.bool_]:
    """Return the mask of the columns that are data, with a value yet or not, or have equal bounds."""
    fixed = compiled.lb == compiled.ub
    fixed[compiled.data] = True
    return np.asarray(fixed, dtype=bool)


def _structure(compiled: CompiledModel) -> tuple[Any, ...]:
    """Return the facts a lowering depends on: the shape, the bounds of the columns but data, the signs of the data.

    A quadratic row is a cone or not by the sign of its heads, ``x^2 <= s * t``.
    """
    lb = compiled.lb.copy()
    ub = compiled.ub.copy()
    data = compiled.data
    lb[data] = ub[data] = 0.0
    return compiled.shape, lb, ub, compiled.lb[data] < 0 if compiled.quadratics else ()
