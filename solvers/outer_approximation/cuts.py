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
