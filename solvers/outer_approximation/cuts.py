r"""The linear relaxation of a program with second-order cones, and the cuts that it grows by.

A block :math:`\sum_i v_i^2 \le h s` is the same as

.. math:: \exists z \ge 0:\quad \sum_i z_i \le h,\quad z_i s \ge v_i^2,\quad s \ge 0,

its *disaggregated* form, in which a cut for an entry depends on one number: with k cuts per entry the relaxation is
as good as with k to the power of (number of entries) cuts on the block itself. Two kinds of cut hold for z, v and s:

The tangent, for every real r
    :math:`z \ge 2 r v - r^2 s`. Proof: if s > 0, then :math:`z \ge v^2 / s = 2rv - r^2 s + (v - rs)^2 / s`; if s = 0,
    then v = 0 and the right-hand side is 0. It is tight exactly where v = r s.
The secant, where s is a constant and v takes values of a grid only, two neighbours of which are a s and b s
    :math:`z \ge (a + b) v - a b s`. Proof: :math:`z s - (a + b) v s + a b s^2 \ge (v - a s)(v - b s) \ge 0` at every
    point of the grid, for none is between a s and b s. It is tight at both: all secants together are exact on the
    grid, where tangents would come one by one.

References
----------
Vielma, Dunning, Huchette & Lubin (2017), Extended formulations in mixed integer conic quadratic programming.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.rows_and_cones import Auxiliary
from ceopt.solvers.outer_approximation.blocks import AffineRows, Blocks
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import CUT_DEPTH, FLATTEST_TANGENT, SMALLEST_ENTRY

__all__ = ["Cuts", "Master"]

_STEEPEST = 1e6  # of a tangent, in units of its cone: a matrix holds its square
_GRID = 16  # so many secants are given at once; others as they are needed


class Cuts(NamedTuple):
    """Rows ``z[entry] >= slope * v[entry] - fall * s`` in the units of the cones."""

    entry: NDArray[np.intp]
    slope: Vector
    fall: Vector

    @classmethod
    def tangents(cls, entry: NDArray[np.intp], ratio: Vector) -> Cuts:
        """Return the tangents at v = ratio * s, but for those that say nothing."""
        ratio = np.clip(ratio, -_STEEPEST, _STEEPEST)
        kept = np.abs(ratio) >= FLATTEST_TANGENT
        entry, ratio = entry[kept], ratio[kept]
        return cls(entry, 2.0 * ratio, ratio * ratio)

    @classmethod
    def joined(cls, parts: list[Cuts]) -> Cuts:
        """Return all cuts as one."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def only(self, which: Any) -> Cuts:
        """Return some of the cuts."""
        return Cuts(self.entry[which], self.slope[which], self.fall[which])


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

    __slots__ = ("_at_s", "_at_v", "_far", "_grid", "_h", "_s", "_v", "blocks", "compiled", "program", "units")

    def __init__(self, compiled: CompiledModel, blocks: Blocks, near: Vector | None = None) -> None:
        self.compiled, self.blocks = compiled, blocks
        self.units = unit_h, unit_s = self._measured(near)
        block, n, k = blocks.block, len(blocks.c), len(blocks.block)
        self._v = v = blocks.v.times(1.0 / np.sqrt(unit_h * unit_s)[block])
        self._s, self._h = s, h = blocks.scale.times(1.0 / unit_s), blocks.head.times(1.0 / unit_h)
        new_v, new_s = np.flatnonzero(v.lengths > 1), np.flatnonzero(s.lengths > 1)
        total = n + k + new_v.size + new_s.size
        own_v, own_s = n + k + np.arange(new_v.size), n + k + new_v.size + np.arange(new_s.size)
        self._at_v, self._at_s = _through(v, new_v, own_v, total), _through(s, new_s, own_s, total)
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
        self.program.Q, self.program.quadratics, self.program.cones = None, [], []
        self.program.c = np.concatenate([blocks.c, (blocks.price * unit_h)[block], np.zeros(total - n - k)])
        self.program.c0 = blocks.c0
        self._far = total
        self._grid = self._grids()

    def _measured(self, near: Vector | None) -> tuple[Vector, Vector]:
        """Return the units of heads and scales: of their values at a point or, without one, a guess from their terms.

        A vertex on the way may have h = 0: no unit is smaller than :data:`SMALLEST_ENTRY` times the guess.
        """
        blocks, compiled = self.blocks, self.compiled
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

    def _grids(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Vector, Vector]:
        """Return entries that take values of a grid, their integer columns, and (gain, offset) of value / scale."""
        matrix, start = self._v.matrix, self._v.matrix.indptr[:-1]
        constant = (self._s.lengths == 0) & (self._s.constant > 0)
        entry = np.flatnonzero((self._v.lengths == 1) & constant[self.blocks.block])
        column = matrix.indices[start[entry]].astype(np.intp)
        entry, column = entry[self.compiled.integer[column]], column[self.compiled.integer[column]]
        scale = self._s.constant[self.blocks.block[entry]]
        return entry, column, matrix.data[start[entry]] / scale, self._v.constant[entry] / scale

    # -- points --------------------------------------------------------------------------------------------------------
    def violation(self, x: Vector) -> float:
        r"""Return how far x is outside the worst cone, in the units of that cone.

        With u = (h + s) / 2 and d = (h - s) / 2 a block is the second-order cone :math:`u \ge \lVert (d, v) \rVert`.
        """
        h, s, norm = self._h.at(x), self._s.at(x), self.blocks.norms(self._v.at(x))
        outside = np.hypot((h - s) / 2, norm) - (h + s) / 2
        return float(outside[self.blocks.price == 0.0].max(initial=0.0))

    def fits(self, x: Vector) -> bool:
        """Whether the units are those of the cones at x."""
        unit_h, unit_s = self._measured(x)
        off = np.abs(np.log2(np.concatenate([unit_h / self.units[0], unit_s / self.units[1]])))
        return bool(off.max(initial=0.0) <= 3.0)

    def completed(self, x: Vector) -> Vector:
        """Return the master's own point with these x and the least z."""
        v, s = self._v.at(x), self._s.at(x)[self.blocks.block]
        z = np.divide(v * v, s, out=np.zeros_like(v), where=s > 0)
        long_v, long_s = self._v.lengths > 1, self._s.lengths > 1
        return np.concatenate([x, z, v[long_v], self._s.at(x)[long_s]])

    # -- cuts ----------------------------------------------------------------------------------------------------------
    def rows(self, cuts: Cuts) -> tuple[sp.csr_array, Vector]:
        """Return (matrix, least) of the cuts over the master's columns."""
        n, block = len(self.blocks.c), self.blocks.block[cuts.entry]
        v = AffineRows(self._at_v.matrix[cuts.entry], self._at_v.constant[cuts.entry]).times(cuts.slope)
        s = AffineRows(self._at_s.matrix[block], self._at_s.constant[block]).times(cuts.fall)
        size = 1.0 / np.maximum(1.0, np.maximum(np.abs(cuts.slope), np.abs(cuts.fall)))
        whole = _picked(n + cuts.entry, self._far) - v.matrix + s.matrix
        return sp.csr_array(sp.diags_array(size) @ whole), size * (v.constant - s.constant)

    def first_cuts(self) -> Cuts:
        """Return tangents that bound every cone, and all secants of short grids."""
        block = self.blocks.block
        every = np.arange(block.size)
        even = 1.0 / np.sqrt(np.bincount(block, minlength=len(self.blocks.price)))[block]
        parts = [Cuts.tangents(every, sign * ratio) for sign in (1.0, -1.0) for ratio in (np.ones(block.size), even)]
        entry, column, gain, offset = self._grid
        low, high = np.ceil(self.compiled.lb[column] - 1e-6), np.floor(self.compiled.ub[column] + 1e-6)
        for k in np.flatnonzero((high > low) & (high - low <= _GRID)):
            steps = offset[k] + gain[k] * np.arange(low[k], high[k] + 1)
            parts.append(Cuts(np.full(steps.size - 1, entry[k]), steps[1:] + steps[:-1], steps[1:] * steps[:-1]))
        return Cuts.joined(parts)

    def cuts_at(self, y: Vector) -> Cuts:
        """Return the cuts that a point of the master breaks, at the nearest points of the cones that it is outside."""
        n, block = len(self.blocks.c), self.blocks.block
        x, z = y[:n], np.maximum(y[n : n + block.size], 0.0)
        v = self._v.at(x)
        s = self._shifted(self._h.at(x), self._s.at(x), self.blocks.norms(v))[block]
        cuts = [Cuts.tangents(np.arange(block.size), np.divide(v, s, out=np.zeros_like(v), where=s > 0))]
        entry, column, gain, offset = self._grid
        at = x[column]
        for low in (np.ceil(at - 1e-6) - 1, np.floor(at + 1e-6)):  # both neighbours of an integer
            near, far = offset + gain * low, offset + gain * (low + 1)
            inside = (low >= self.compiled.lb[column] - 1e-6) & (low + 1 <= self.compiled.ub[column] + 1e-6)
            cuts.append(Cuts(entry, near + far, near * far).only(inside))
        found = Cuts.joined(cuts)
        depth = found.slope * v[found.entry] - found.fall * self._s.at(x)[block[found.entry]] - z[found.entry]
        return found.only(depth > CUT_DEPTH * np.maximum(1.0, z[found.entry]))

    def cuts_along(self, y: Vector) -> Cuts:
        """Return the tangents that a direction of the master's columns breaks, and with it every long step along it."""
        n, block = len(self.blocks.c), self.blocks.block
        x, z = y[:n], np.maximum(y[n : n + block.size], 0.0)
        v, h, s = self._v.matrix @ x, self._h.matrix @ x, self._s.matrix @ x
        moved = self._shifted(h, s, self.blocks.norms(v))[block]
        # where the scale stays as it is, v may not move at all: the tangents get steeper and steeper
        steep = 2.0 * np.sign(v) * np.maximum(1.0, np.divide(z, np.abs(v), out=np.zeros_like(z), where=v != 0))
        constant = self._s.lengths[block] == 0
        ratio = np.where(constant, steep, np.divide(v, moved, out=np.zeros_like(v), where=moved > 0))
        found = Cuts.tangents(np.arange(block.size), ratio)
        depth = found.slope * v[found.entry] - found.fall * s[block[found.entry]] - z[found.entry]
        return found.only(depth > CUT_DEPTH)

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
