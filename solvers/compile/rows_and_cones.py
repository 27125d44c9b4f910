"""Rows that are not linear, and columns without a Var: what a compiled model holds beside its matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.pyomo_walker import ConeEntries, Row
from ceopt.solvers.cones import Cone, margin_of
from ceopt.solvers.problem import Vector

__all__ = ["Auxiliary", "ConeRows", "QuadraticRow", "distance", "lower_triangle", "resized"]


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
