r"""Rows that are not linear, and columns without a Var: what a compiled model holds beside its matrix.

A quadratic is looked at block by block; a convex row is a second-order cone:

.. math::
    \tfrac12 x^\top Q x + a^\top x \le b,\ Q = F^\top F \quad&\Longleftrightarrow\quad
    2\, \frac{b - a^\top x}{\mu}\, \mu \ge \lVert F x \rVert^2,\ \mu \approx \sqrt{\max(1, |b|)} \\
    \tfrac12 \lVert F x + g \rVert^2 + \beta \le \tfrac12 \gamma t^2,\ t \ge 0 \quad&\Longleftrightarrow\quad
    \sqrt{\gamma}\, t \ge \lVert (F x + g, \sqrt{2 \beta}) \rVert \\
    \tfrac12 \lVert F x + g \rVert^2 + \beta \le \gamma t u,\ t, u \ge 0 \quad&\Longleftrightarrow\quad
    2 \sqrt{\gamma} t \sqrt{\gamma} u \ge \lVert (F x + g, \sqrt{2 \beta}) \rVert^2

The last two are found where the heads t and u are columns of their own, bounded below by 0, and beta is at least 0:
``(x - 3)**2 + (y - x)**2 <= t**2`` is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from ceopt.solvers.compile.pyomo_walker import ConeEntries, Row
from ceopt.solvers.cones import Cone, margin_of
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import RANK_ROUNDING, SEMIDEFINITE_ROUNDING, SQUARE_ROUNDING

# ==== Rows that are not linear, and columns without a Var: what a compiled model holds beside its matrix ==============


@final
@dataclass(frozen=True, slots=True)
class Auxiliary:
    """A column that no Var of the model stands behind."""

    name: str
    integer: bool = False

    def is_integer(self) -> bool:
        """Whether it takes whole numbers only."""
        return self.integer


@final
@dataclass(frozen=True, slots=True, eq=False)
class QuadraticRow:
    r"""One row :math:`b^- \le a^\top x + \tfrac12 x^\top Q x \le b^+`.

    Parameters
    ----------
    constraint
        The Pyomo ConstraintData.
    lower, upper
        Its sides, infinite where absent.
    a
        (1, n) csr.
    Q
        (n, n) csc, lower triangle of the Hessian.
    """

    constraint: Any
    lower: float
    upper: float
    a: sp.csr_array
    Q: sp.csc_array

    @classmethod
    def of(cls, row: Row, n: int) -> QuadraticRow:
        """Return the walked row over n columns."""
        a = sp.csr_array((row.values, ([0] * len(row.columns), row.columns)), shape=(1, n), dtype=np.float64)
        assert row.quadratic is not None  # noqa: S101 - what makes it such a row
        return cls(row.constraint, row.lower, row.upper, a, lower_triangle(row.quadratic, n))

    def bounded_above(self) -> tuple[float, float]:
        """Return a sign s and the side of ``s * row <= side``; of a row with two sides, the upper one."""
        if np.isfinite(self.upper):
            return 1.0, self.upper
        return -1.0, -self.lower

    def activity(self, x: Vector) -> float:
        """Return the row's value at x."""
        linear = float((self.a @ x)[0])
        return linear + float(x @ (self.Q @ x)) - 0.5 * float(self.Q.diagonal() @ (x * x))

    def violation(self, x: Vector) -> float:
        """Return by how much the row misses a side."""
        value = self.activity(x)
        return max(0.0, self.lower - value, value - self.upper)

    def widened(self, n: int) -> QuadraticRow:
        """Return the same row over more columns."""
        return replace(self, a=resized(self.a, (1, n)), Q=sp.csc_array(resized(self.Q.tocsr(), (n, n))))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConeRows:
    """The entries ``constant + matrix @ x`` of one cone, in the order and scale of :class:`~ceopt.solvers.cones.Cone`.

    Parameters
    ----------
    constraint
        The Pyomo ConstraintData that states it; that of a quadratic row which is a cone.
    cone
        Its kind.
    constant
        (k,).
    matrix
        (k, n) csr.
    """

    constraint: Any
    cone: Cone
    constant: Vector
    matrix: sp.csr_array

    @classmethod
    def of(cls, entries: ConeEntries, n: int) -> ConeRows:
        """Return the walked entries over n columns."""
        constant = np.array(entries.constants, dtype=np.float64)
        indptr = np.array(entries.starts, dtype=np.int32)
        indices = np.array(entries.columns, dtype=np.int32)
        values = np.array(entries.values, dtype=np.float64)
        matrix = sp.csr_array((values, indices, indptr), shape=(len(constant), n))
        if entries.affine is not None:
            shift, outer = entries.affine
            constant = shift + outer @ constant
            matrix = sp.csr_array(outer @ matrix)
        matrix.sum_duplicates()
        return cls(entries.constraint, entries.cone, constant, matrix)

    def entries(self, x: Vector) -> Vector:
        """Return the entries at x."""
        return np.asarray(self.constant + self.matrix @ x, dtype=np.float64)

    def violation(self, x: Vector) -> float:
        """Return how far the entries are outside: at most by how much one would have to change to be inside."""
        return distance(self.cone, self.entries(x))

    def widened(self, n: int) -> ConeRows:
        """Return the same cone over more columns."""
        return replace(self, matrix=resized(self.matrix, (self.matrix.shape[0], n)))


def distance(cone: Cone, entries: Vector) -> float:
    """Return how far the entries are outside of a cone: at most by how much one would have to change to be inside."""
    if not np.isfinite(entries).all():
        return math.inf
    if cone is Cone.SECOND_ORDER:
        return max(0.0, float(np.linalg.norm(entries[1:]) - entries[0]))
    if cone is Cone.ROTATED:
        t = float(entries[0])
        u = float(entries[1])
        norm = float(np.linalg.norm([math.sqrt(2.0) * float(np.linalg.norm(entries[2:])), t - u]))
        return max(0.0, (norm - t - u) / 2.0)
    if cone is Cone.SEMIDEFINITE:
        return max(0.0, -margin_of(cone, entries))
    x, y, z = (float(entry) for entry in entries)
    limit = max(abs(y), x, -z, 0.0)  # to the face x <= 0 = y <= z
    if y <= 0.0:
        return limit
    in_z = math.inf
    if x < 700.0 * y:  # exp overflows just beyond
        in_z = y * math.exp(x / y) - z
    in_x = math.inf
    if z > 0.0:
        in_x = x - y * (math.log(z) - math.log(y))
    return max(0.0, min(in_z, in_x, limit))


def lower_triangle(products: dict[tuple[int, int], float], n: int) -> sp.csc_array:
    """Return the lower triangle of the Hessian of a sum of ``value * x_i * x_j``, keyed by (larger, smaller)."""
    i, j = np.array(list(products), dtype=np.int32).T
    values = np.array(list(products.values())) * np.where(i == j, 2.0, 1.0)
    return sp.csc_array((values, (i, j)), shape=(n, n))


def resized(matrix: sp.csr_array, shape: tuple[int, int]) -> sp.csr_array:
    """Return the matrix with further rows and columns of zeros."""
    more = np.full(shape[0] - matrix.shape[0], matrix.nnz, np.int32)
    return sp.csr_array((matrix.data, matrix.indices, np.concatenate([matrix.indptr, more])), shape=shape)


# ==== Convexity of quadratics, block by block, and the second-order cone that a convex quadratic row is ===============

# ---- convexity of an objective (concavity where it is maximised) -----------------------------------------------------


def is_convex(lower: Any, sense: int) -> bool:
    """Return whether ``sense * Q`` is positive semidefinite.

    Parameters
    ----------
    lower
        Lower triangle of the symmetric (n, n) Hessian, sparse; None for a linear objective.
    sense
        1 to minimise, -1 to maximise.

    Notes
    -----
    Eigenvalues of each connected block of variables: cheap for separable costs, cubic in the largest block.
    """
    if lower is None:
        return True
    checkpoint("looking at the curvature of its rows")
    full = sp.csr_array(lower + sp.tril(lower, -1).T)
    for block in blocks_of(full):
        eigenvalues = np.linalg.eigvalsh(sense * full[block][:, block].toarray())
        if eigenvalues[0] < -SEMIDEFINITE_ROUNDING * np.abs(eigenvalues).max():
            return False
    return True


def blocks_of(full: Any) -> list[NDArray[np.intp]]:
    """Return the columns of each connected block of a symmetric sparse matrix; columns without entries are left out."""
    if not full.nnz:
        return []
    _, label = connected_components(full, directed=False)
    used = np.flatnonzero(np.diff(full.indptr))
    order = used[np.argsort(label[used], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


# ---- one convex quadratic row as a second-order cone -----------------------------------------------------------------


def factor(lower: sp.csc_array) -> sp.csr_array:
    """Return F, (rank, n), with Q = F'F for the positive semidefinite matrix of this lower triangle."""
    full = sp.csr_array(lower + sp.tril(lower, -1).T)
    n = full.shape[0]
    parts = []
    for block in blocks_of(full):
        values, vectors = np.linalg.eigh(full[block][:, block].toarray())
        kept = values > RANK_ROUNDING * max(values[-1], 0.0)
        part = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
        rows, columns = np.nonzero(part)
        parts.append(sp.csr_array((part[rows, columns], (rows, block[columns])), shape=(len(part), n)))
    if parts:
        return sp.csr_array(sp.vstack(parts))
    return sp.csr_array((0, n))


def cone_of(row: QuadraticRow, lb: Vector) -> ConeRows | None:
    """Return the second-order cone that a quadratic row states, given the columns' lower bounds; None if it is none."""
    if np.isfinite(row.lower) and np.isfinite(row.upper):
        return None
    sign, side = row.bounded_above()
    hessian = sp.csc_array(sign * row.Q)
    a = sp.csr_array(sign * row.a)
    n = a.shape[1]
    if is_convex(hessian, 1):
        unit = 2.0 ** np.round(0.5 * np.log2(max(abs(side), 1.0)))  # both heads as great as what they bound
        matrix = sp.vstack([-a / unit, sp.csr_array((1, n)), factor(hessian)])
        constant = np.concatenate([[side / unit, unit], np.zeros(matrix.shape[0] - 2)])
        return ConeRows(row.constraint, Cone.ROTATED, constant, sp.csr_array(matrix))
    return _headed(row.constraint, hessian, a, side, lb)


def _headed(constraint: Any, hessian: sp.csc_array, a: sp.csr_array, side: float, lb: Vector) -> ConeRows | None:
    """Return the cone of ``convex part + a'x <= side + a square or a product of non-negative columns``."""
    n = hessian.shape[0]
    triples = sp.coo_array(hessian)
    i, j = triples.coords
    values = triples.data
    k = _head(i, j, values)
    if k is None:
        return None
    first = int(i[k])
    second = int(j[k])
    gamma = -float(values[k])
    others = np.arange(values.size) != k
    heads = [first, second]
    if min(lb[first], lb[second]) < 0 or (np.isin(i[others], heads) | np.isin(j[others], heads)).any():
        return None
    rest = sp.csc_array((values[others], (i[others], j[others])), shape=(n, n))
    if not is_convex(rest, 1):
        return None
    body = factor(rest)
    linear = a.toarray().ravel()
    squares = np.asarray(body.multiply(body).sum(axis=1)).ravel()
    shift = np.asarray(body @ linear / squares)  # the rows of the factor are orthogonal
    beta = -side - 0.5 * float(shift @ shift)
    if np.abs(body.T @ shift - linear).max() > SQUARE_ROUNDING * np.abs(linear).max():
        return None  # linear in a head, or where the body is not curved: no square to complete
    if beta < -SQUARE_ROUNDING * max(abs(side), float(shift @ shift)):
        return None
    unit = sp.eye_array(n, format="csr")
    if first == second:
        kind = Cone.SECOND_ORDER
        top = np.sqrt(gamma) * unit[[first]]
    else:
        kind = Cone.ROTATED
        top = np.sqrt(gamma) * unit[[first, second]]
    matrix = sp.csr_array(sp.vstack([top, body, sp.csr_array((1, n))]))
    constant = np.concatenate([np.zeros(top.shape[0]), shift, [np.sqrt(2.0 * max(beta, 0.0))]])
    return ConeRows(constraint, kind, constant, matrix)


def _head(i: Any, j: Any, values: Vector) -> int | None:
    """Return which term is the cone's head: the negative square, or the negative product that touches no other term."""
    squares = np.flatnonzero((i == j) & (values < 0))
    if squares.size:
        return int(squares[0])  # with a second one, what is left is not convex
    count = np.bincount(np.concatenate([i, j]))
    alone = np.flatnonzero((i != j) & (values < 0) & (count[i] == 1) & (count[j] == 1))
    if alone.size == 1:
        return int(alone[0])
    return None
