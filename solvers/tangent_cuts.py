r"""The linear relaxation of a program with second-order cones, and the cuts that it grows by.

A block :math:`\sum_i v_i^2 \le h s` is the same as

.. math:: \exists z \ge 0:\quad \sum_i z_i \le h,\quad z_i s \ge v_i^2,\quad s \ge 0,

its *disaggregated* form, in which a cut for an entry depends on one number: with k cuts per entry the relaxation is
as good as with k to the power of (number of entries) cuts on the block itself. The cuts are its tangents,

.. math:: z \ge 2 r v - r^2 s \quad\text{for every real } r.

Proof: if s > 0, then :math:`z \ge v^2 / s = 2rv - r^2 s + (v - rs)^2 / s`; if s = 0, then v = 0 and the right-hand side
is 0. A tangent is tight exactly where v = r s.

References
----------
Vielma, Dunning, Huchette & Lubin (2017), Extended formulations in mixed integer conic quadratic programming.

Second-order cones and convex quadratics of a program as sums of squares under a product.

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
from ceopt.solvers.compile.quadratic_cones import cones_of_rows
from ceopt.solvers.compile.rows_and_cones import Auxiliary, ConeRows, QuadraticRow, factor
from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import BLOCK_NOISE, CUT_DEPTH, FLATTEST_TANGENT, SMALLEST_ENTRY

# ==== Second-order cones and convex quadratics of a program as sums of squares under a product ========================

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
    sign, side = row.bounded_above()
    n = len(compiled.c)
    a = sign * np.asarray(row.a.todense(), dtype=np.float64).ravel()
    rest, constant, squares = _centred(sign * row.Q, a, compiled, fixed, at)
    head = AffineRows(sp.csr_array(-rest[None, :]), np.array([side - constant])).times(2.0)
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


# ==== The linear relaxation of a program with second-order cones, and the cuts that it grows by =======================

_STEEPEST = 1e6  # of a tangent, in units of its cone: a matrix holds its square


class Cuts(NamedTuple):
    """Tangents ``z[entry] >= 2 r v[entry] - r^2 s`` in the units of the cones, one ratio r each."""

    entry: NDArray[np.intp]
    ratio: Vector

    @property
    def slope(self) -> Vector:
        """Coefficient of v, one per cut."""
        return 2.0 * self.ratio

    @property
    def fall(self) -> Vector:
        """Coefficient of -s, one per cut."""
        return self.ratio * self.ratio

    @classmethod
    def tangents(cls, entry: NDArray[np.intp], ratio: Vector) -> Cuts:
        """Return the tangents at v = ratio * s, but for those that say nothing."""
        ratio = np.clip(ratio, -_STEEPEST, _STEEPEST)
        kept = np.abs(ratio) >= FLATTEST_TANGENT
        return cls(entry[kept], ratio[kept])

    @classmethod
    def joined(cls, parts: list[Cuts]) -> Cuts:
        """Return all cuts as one."""
        entry = np.concatenate([part.entry for part in parts])
        return cls(entry, np.concatenate([part.ratio for part in parts]))

    def only(self, which: Any) -> Cuts:
        """Return some of the cuts."""
        return Cuts(self.entry[which], self.ratio[which])


@final
class Master:
    r"""The relaxation of a program without its cuts: its columns x, then z, and v and s where they are no columns.

    .. math::
        A x \text{ in its sides},\quad \sum_{i \in b} \hat z_i \le h_b(x) / \eta_b,\quad \hat z \ge 0,\quad
        \hat v_i = v_i(x) / \sqrt{\eta_b \sigma_b},\quad \hat s_b = s_b(x) / \sigma_b \ge 0,

    in units :math:`\eta, \sigma` near the sizes of h and s, in which every cone has size 1.

    Parameters
    ----------
    compiled, blocks
        The program and its cones.
    near
        A point, (n,), at which the units are measured; None for a guess.
    """

    __slots__ = ("_at_s", "_at_v", "_far", "_h", "_s", "_v", "blocks", "compiled", "program", "units")

    def __init__(self, compiled: CompiledModel, blocks: Blocks, near: Vector | None = None) -> None:
        self.compiled = compiled
        self.blocks = blocks
        self.units = unit_h, unit_s = self._measured(near)
        block = blocks.block
        n = len(blocks.c)
        k = len(blocks.block)
        self._v = v = blocks.v.times(1.0 / np.sqrt(unit_h * unit_s)[block])
        self._s, self._h = s, h = blocks.scale.times(1.0 / unit_s), blocks.head.times(1.0 / unit_h)
        new_v = np.flatnonzero(v.lengths > 1)
        new_s = np.flatnonzero(s.lengths > 1)
        total = n + k + new_v.size + new_s.size
        own_v = n + k + np.arange(new_v.size)
        own_s = n + k + new_v.size + np.arange(new_s.size)
        self._at_v = _through(v, new_v, own_v, total)
        self._at_s = _through(s, new_s, own_s, total)
        head = blocks.price == 0.0
        sums = sp.csr_array((np.ones(k), (block, n + np.arange(k))), shape=(len(blocks.price), total))
        none = [(part.lengths == 0) & (part.constant == 0.0) for part in (h, s)]
        zero = ((none[0] | none[1]) & head)[block]  # v = 0: no finite number of tangents says so
        sides = [
            (sums[head] - _wide(h.matrix[head], total), -np.inf, h.constant[head]),
            (_wide(s.matrix[head], total), -s.constant[head], np.inf),
            (_wide(v.matrix[new_v], total) - _picked(own_v, total), -v.constant[new_v], -v.constant[new_v]),
            (_wide(s.matrix[new_s], total) - _picked(own_s, total), -s.constant[new_s], -s.constant[new_s]),
            (_wide(v.matrix[zero], total), -v.constant[zero], -v.constant[zero]),
        ]
        self.program = compiled.extended(
            columns=[Auxiliary(f"tangent_{name}") for name in "z" * k + "v" * new_v.size + "s" * new_s.size],
            lb=np.repeat([0.0, -np.inf, 0.0], [k, new_v.size, new_s.size]),
            ub=np.full(total - n, np.inf),
            A=sp.vstack([matrix for matrix, _, _ in sides]),
            row_lb=np.concatenate([np.broadcast_to(low, m.shape[0]) for m, low, _ in sides]),
            row_ub=np.concatenate([np.broadcast_to(high, m.shape[0]) for m, _, high in sides]),
        )
        self.program.Q = None
        self.program.quadratics = []
        self.program.cones = []
        self.program.c = np.concatenate([blocks.c, (blocks.price * unit_h)[block], np.zeros(total - n - k)])
        self.program.c0 = blocks.c0
        self._far = total

    def _measured(self, near: Vector | None) -> tuple[Vector, Vector]:
        """Return the units of heads and scales: of their values at a point or, without one, a guess from their terms.

        A vertex on the way may have h = 0: no unit is smaller than :data:`SMALLEST_ENTRY` times the guess.
        """
        blocks = self.blocks
        compiled = self.compiled
        guess = near is None
        x = np.clip(1.0, compiled.lb, compiled.ub) if near is None else near
        v, h, s = (part.size(x) if guess else part.at(x) for part in (blocks.v, blocks.head, blocks.scale))
        norm = blocks.norms(v)
        constant = (blocks.scale.lengths == 0) & (blocks.scale.constant > 0)
        h = np.maximum(h, np.where(blocks.both, norm, np.divide(norm * norm, s, out=np.zeros_like(s), where=constant)))
        if not guess:
            least_h, least_s = self._measured(None)
            h = np.maximum(h, np.where(blocks.both, SMALLEST_ENTRY, SMALLEST_ENTRY**2) * least_h)
            s = np.maximum(s, SMALLEST_ENTRY * least_s)
        unit_h = _power_of_two(h)
        return unit_h, np.where(blocks.both, unit_h, np.where(constant, blocks.scale.constant, _power_of_two(s)))

    # -- points --------------------------------------------------------------------------------------------------------
    def violation(self, x: Vector) -> float:
        r"""Return how far x is outside the worst cone, in the units of that cone.

        With u = (h + s) / 2 and d = (h - s) / 2 a block is the second-order cone :math:`u \ge \lVert (d, v) \rVert`.
        """
        h = self._h.at(x)
        s = self._s.at(x)
        norm = self.blocks.norms(self._v.at(x))
        outside = np.hypot((h - s) / 2, norm) - (h + s) / 2
        return float(outside[self.blocks.price == 0.0].max(initial=0.0))

    def fits(self, x: Vector) -> bool:
        """Whether the units are those of the cones at x."""
        unit_h, unit_s = self._measured(x)
        off = np.abs(np.log2(np.concatenate([unit_h / self.units[0], unit_s / self.units[1]])))
        return bool(off.max(initial=0.0) <= 3.0)

    def completed(self, x: Vector) -> Vector:
        """Return the master's own point with these x and the least z."""
        v = self._v.at(x)
        s = self._s.at(x)[self.blocks.block]
        z = np.divide(v * v, s, out=np.zeros_like(v), where=s > 0)
        long_v = self._v.lengths > 1
        long_s = self._s.lengths > 1
        return np.concatenate([x, z, v[long_v], self._s.at(x)[long_s]])

    # -- cuts ----------------------------------------------------------------------------------------------------------
    def rows(self, cuts: Cuts) -> tuple[sp.csr_array, Vector]:
        """Return (matrix, least) of the cuts over the master's columns."""
        n = len(self.blocks.c)
        block = self.blocks.block[cuts.entry]
        v = AffineRows(self._at_v.matrix[cuts.entry], self._at_v.constant[cuts.entry]).times(cuts.slope)
        s = AffineRows(self._at_s.matrix[block], self._at_s.constant[block]).times(cuts.fall)
        size = 1.0 / np.maximum(1.0, np.maximum(np.abs(cuts.slope), np.abs(cuts.fall)))
        whole = _picked(n + cuts.entry, self._far) - v.matrix + s.matrix
        return sp.csr_array(sp.diags_array(size) @ whole), size * (v.constant - s.constant)

    def first_cuts(self) -> Cuts:
        """Return tangents that bound every cone: where an entry alone reaches the head, and where all do alike."""
        block = self.blocks.block
        every = np.arange(block.size)
        alone = np.ones(block.size)
        alike = 1.0 / np.sqrt(np.bincount(block, minlength=len(self.blocks.price)))[block]
        return Cuts.joined([Cuts.tangents(every, ratio) for ratio in (alone, alike, -alone, -alike)])

    def cuts_at(self, y: Vector) -> Cuts:
        """Return the cuts that a point of the master breaks, at the nearest points of the cones that it is outside."""
        n = len(self.blocks.c)
        block = self.blocks.block
        x = y[:n]
        z = np.maximum(y[n : n + block.size], 0.0)
        v = self._v.at(x)
        s = self._s.at(x)
        moved = self._shifted(self._h.at(x), s, self.blocks.norms(v))[block]
        ratio = np.divide(v, moved, out=np.zeros_like(v), where=moved > 0)
        cuts = Cuts.tangents(np.arange(block.size), ratio)
        depth = cuts.slope * v[cuts.entry] - cuts.fall * s[block[cuts.entry]] - z[cuts.entry]
        return cuts.only(depth > CUT_DEPTH * np.maximum(1.0, z[cuts.entry]))

    def cuts_along(self, y: Vector) -> Cuts:
        """Return the tangents that a direction of the master's columns breaks, and with it every long step along it."""
        n = len(self.blocks.c)
        block = self.blocks.block
        x = y[:n]
        z = np.maximum(y[n : n + block.size], 0.0)
        v = self._v.matrix @ x
        h = self._h.matrix @ x
        s = self._s.matrix @ x
        moved = self._shifted(h, s, self.blocks.norms(v))[block]
        # where the scale stays as it is, v may not move at all: the tangents get steeper and steeper
        steep = 2.0 * np.sign(v) * np.maximum(1.0, np.divide(z, np.abs(v), out=np.zeros_like(z), where=v != 0))
        constant = self._s.lengths[block] == 0
        ratio = np.where(constant, steep, np.divide(v, moved, out=np.zeros_like(v), where=moved > 0))
        cuts = Cuts.tangents(np.arange(block.size), ratio)
        depth = cuts.slope * v[cuts.entry] - cuts.fall * s[block[cuts.entry]] - z[cuts.entry]
        return cuts.only(depth > CUT_DEPTH)

    def _shifted(self, h: Vector, s: Vector, norm: Vector) -> Vector:
        """Return the scales, moved if they may: with the heads moved as much, the blocks are then in their cones."""
        moved = np.maximum(np.hypot((h - s) / 2, norm) - (h - s) / 2, s)
        return np.where(self._s.lengths > 0, moved, s)


def _power_of_two(values: Vector) -> Vector:
    """Return the power of two nearest to each value, and 1 for what is not positive."""
    return np.asarray(np.exp2(np.round(np.log2(np.where(values > 0, values, 1.0)))), dtype=np.float64)


def _picked(columns: NDArray[np.intp], total: int) -> sp.csr_array:
    """Return the rows that are one column each."""
    return sp.csr_array((np.ones(columns.size), (np.arange(columns.size), columns)), shape=(columns.size, total))


def _wide(matrix: Any, total: int) -> sp.csr_array:
    """Return the rows over more columns."""
    return sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], total))


def _through(part: AffineRows, replaced: NDArray[np.intp], own: NDArray[np.intp], total: int) -> AffineRows:
    """Return the rows over the master's columns, those of ``replaced`` through a column of their own."""
    kept = np.ones(len(part.constant))
    kept[replaced] = 0.0
    direct = sp.csr_array(sp.diags_array(kept) @ _wide(part.matrix, total))
    through = sp.csr_array((np.ones(own.size), (replaced, own)), shape=direct.shape)
    return AffineRows(sp.csr_array(direct + through), kept * part.constant)
