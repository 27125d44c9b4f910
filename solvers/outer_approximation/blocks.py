r"""Second-order cones and convex quadratics of a program as sums of squares under a product.

Every block b has affine entries v, a head h and a scale s:

.. math:: \sum_{i \in b} v_i^2 \le h_b s_b,\quad h_b, s_b \ge 0.

A second-order cone (t, v) has h = s = t, a rotated one (t, u, v) has h = 2t and s = u. A quadratic objective is the
block with s = 1 that has a price in place of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.convexity import factor
from ceopt.solvers.compile.quadratic_to_cone import cones_of_rows
from ceopt.solvers.compile.rows_and_cones import ConeRows, QuadraticRow
from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import BLOCK_NOISE

__all__ = ["AffineRows", "Blocks"]

Mask = NDArray[np.bool_]


class AffineRows(NamedTuple):
    """``constant + matrix @ x``, row by row."""

    matrix: sp.csr_array
    constant: Vector

    def at(self, x: Vector) -> Vector:
        """Return the values at x."""
        return np.asarray(self.constant + self.matrix @ x, dtype=np.float64)

    def size(self, x: Vector) -> Vector:
        """Return the size of what is added up at x."""
        return np.asarray(np.abs(self.constant) + abs(self.matrix) @ np.abs(x), dtype=np.float64)

    def rows(self, which: slice | Mask) -> AffineRows:
        """Return some of the rows."""
        return AffineRows(sp.csr_array(self.matrix[which]), self.constant[which])

    def times(self, factors: Vector | float) -> AffineRows:
        """Return each row times a number."""
        whole = np.broadcast_to(factors, self.constant.shape)
        return AffineRows(sp.csr_array(sp.diags_array(whole) @ self.matrix), self.constant * whole)

    @property
    def lengths(self) -> NDArray[np.intp]:
        """How many columns each row has."""
        return np.diff(self.matrix.indptr).astype(np.intp)

    @classmethod
    def stacked(cls, parts: list[AffineRows], n: int) -> AffineRows:
        """Return the rows of all parts, over n columns."""
        if not parts:
            return cls(sp.csr_array((0, n)), np.zeros(0))
        matrix = sp.csr_array(sp.vstack([part.matrix for part in parts]))
        return cls(matrix, np.concatenate([part.constant for part in parts]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a program with its fixed columns folded in, and the linear objective that is left.

    Parameters
    ----------
    v
        The K entries of all blocks.
    block
        (K,) block of each entry.
    head, scale
        h and s, one per block.
    price
        (B,) what the sum of squares of a block costs; 0 but for one that is the objective.
    both
        (B,) whether the head is the scale.
    raisable
        (n,) continuous columns that may grow without leaving a cone.
    c, c0
        The objective, without its square.
    """

    v: AffineRows
    block: NDArray[np.intp]
    head: AffineRows
    scale: AffineRows
    price: Vector
    both: Mask
    raisable: Mask
    c: Vector
    c0: float

    @classmethod
    def of(cls, compiled: CompiledModel) -> Blocks:
        """Return the blocks of a program of class MISOCP or below.

        Raises
        ------
        UnsupportedProblemError
            It has another cone, or a quadratic that is not convex.
        """
        n = len(compiled.c)
        fixed = compiled.lb == compiled.ub
        at = np.where(fixed, compiled.lb, 0.0)
        parts = [_parts(cone, fixed, at) for cone in compiled.cones]
        for row, cone in zip(compiled.quadratics, cones_of_rows(compiled), strict=True):
            if _is_homogeneous(cone):
                parts.append(_parts(cone, fixed, at))
            else:
                parts.append(_centred_row(row, compiled, fixed, at))
        prices = [0.0] * len(parts)
        c = compiled.c
        c0 = compiled.c0
        if compiled.Q is not None:
            rest, constant, squares = _centred(compiled.sense * compiled.Q, compiled.sense * c, compiled, fixed, at)
            c = compiled.sense * rest
            c0 = c0 + compiled.sense * constant
            parts.append((squares, _constants(0.0, n), _constants(1.0, n)))
            prices.append(0.5 * compiled.sense)
        v = AffineRows.stacked([part[0] for part in parts], n)
        head, scale = (AffineRows.stacked([part[k] for part in parts], n) for k in (1, 2))
        block = np.repeat(np.arange(len(parts)), [len(part[0].constant) for part in parts])
        kept = (v.lengths > 0) | (v.constant != 0.0)
        apart = np.asarray(abs(head.matrix - scale.matrix).sum(axis=1)) + np.abs(head.constant - scale.constant)
        return cls(
            v=v.rows(kept),
            block=block[kept],
            head=head,
            scale=scale,
            price=np.array(prices, dtype=np.float64),
            both=apart == 0.0,
            raisable=~compiled.integer
            & ~_columns(abs(v.matrix))
            & ~_columns(abs(head.matrix) - head.matrix)
            & ~_columns(abs(scale.matrix) - scale.matrix),
            c=c,
            c0=c0,
        )

    def norms(self, v: Vector) -> Vector:
        """Return the norm of the entries of each block."""
        return np.asarray(np.sqrt(np.bincount(self.block, v * v, len(self.price))), dtype=np.float64)

    def lifted(self, x: Vector, compiled: CompiledModel) -> Vector:
        """Return x with heads raised into their cones, as far as their bounds let them.

        Only heads that are a continuous column which no entry contains, and no head or scale with a minus: this moves
        no other cone out.
        """
        h = self.head.at(x)
        s = self.scale.at(x)
        norm = self.norms(self.v.at(x))
        x = x.copy()
        single = (self.head.lengths == 1) & (self.price == 0.0)
        for b in np.flatnonzero(single & (norm * norm > h * s) & (self.both | (s > 0))):
            at = self.head.matrix.indptr[b]
            j = self.head.matrix.indices[at]
            gain = self.head.matrix.data[at]
            needed = norm[b] if self.both[b] else norm[b] * norm[b] / s[b]
            missing = needed - self.head.constant[b] - gain * x[j]  # less than before where another cone raised it
            if missing > 0 and self.raisable[j]:
                x[j] = min(max(x[j] + missing / gain, compiled.lb[j]), compiled.ub[j])
        return x


def _columns(entries: Any) -> Mask:
    """Return which columns have an entry above 0."""
    return np.asarray(entries.sum(axis=0)).ravel() > 0


def _parts(cone: ConeRows, fixed: Mask, at: Vector) -> tuple[AffineRows, AffineRows, AffineRows]:
    """Return entries, head and scale of a second-order cone; a constant one of the two heads is the scale."""
    if cone.cone not in {Cone.SECOND_ORDER, Cone.ROTATED}:
        raise UnsupportedProblemError(
            "HiGHS with tangent cuts",
            "second-order cones",
            f"constraint {cone.constraint.name!r} is a cone of another kind: {cone.cone}",
            "Call solve(model), which finds a solver for it.",
        )
    matrix = sp.csr_array(cone.matrix @ sp.diags_array((~fixed).astype(np.float64)))
    matrix.eliminate_zeros()
    whole = AffineRows(matrix, cone.entries(at))
    first = whole.rows(slice(0, 1))
    if cone.cone is Cone.SECOND_ORDER:
        return whole.rows(slice(1, None)), first, first
    second = whole.rows(slice(1, 2))
    head, scale = (first, second) if first.lengths[0] else (second, first)
    return whole.rows(slice(2, None)), head.times(2.0), scale


def _is_homogeneous(cone: ConeRows) -> bool:
    """Whether a quadratic row is a cone for another reason than that it is convex."""
    return cone.cone is Cone.SECOND_ORDER or bool(cone.matrix.indptr[2] > cone.matrix.indptr[1])


def _constants(value: float, n: int) -> AffineRows:
    return AffineRows(sp.csr_array((1, n)), np.array([value]))


def _centred_row(
    row: QuadraticRow, compiled: CompiledModel, fixed: Mask, at: Vector
) -> tuple[AffineRows, AffineRows, AffineRows]:
    """Return entries, head and scale of a convex quadratic row."""
    sign = 1.0 if np.isfinite(row.upper) else -1.0
    n = len(compiled.c)
    a = sign * np.asarray(row.a.todense(), dtype=np.float64).ravel()
    rest, constant, squares = _centred(sign * row.Q, a, compiled, fixed, at)
    slack = sign * (row.upper if sign > 0 else row.lower) - constant
    head = AffineRows(sp.csr_array(-rest[None, :]), np.array([slack])).times(2.0)
    return squares, head, _constants(1.0, n)


def _centred(
    lower: Any, c: Vector, compiled: CompiledModel, fixed: Mask, at: Vector
) -> tuple[Vector, float, AffineRows]:
    r"""Return r, k, (F, d) with :math:`x^\top Q x / 2 + c^\top x = \lVert F x + d \rVert^2 / 2 + r^\top x + k`.

    Fixed columns are folded in. As much of the linear part goes into d as the columns' bounds let F x reach: the
    squares are then those of distances, and not the greater parts of a small difference.
    """
    n = len(c)
    full = sp.csr_array(lower + sp.tril(lower, -1).T)
    constant = float(c @ at + 0.5 * (at @ (full @ at)))
    c = np.where(fixed, 0.0, c + full @ at)
    free = np.flatnonzero(~fixed)
    part = factor(sp.csc_array(sp.tril(full[free][:, free]))).tocoo()
    body = sp.csr_array((part.data, (part.coords[0], free[part.coords[1]])), shape=(part.shape[0], n))
    d = (body @ c) / np.asarray((body * body).sum(axis=1))  # the rows of body are orthogonal
    far = np.maximum(np.abs(compiled.lb), np.abs(compiled.ub))
    reach = np.array(
        [np.abs(body.data[a:b]) @ far[body.indices[a:b]] for a, b in zip(body.indptr, body.indptr[1:], strict=False)]
    )
    d[np.abs(d) > 2.0 * reach] = 0.0
    rest = c - body.T @ d
    rest[np.abs(rest) <= BLOCK_NOISE * (np.abs(c) + abs(body).T @ np.abs(d))] = 0.0
    return rest, constant - 0.5 * float(d @ d), AffineRows(body, d)
