r"""Convex MIQP, SOCP and MISOCP with HiGHS: outer approximation by tangents of the cones.

HiGHS chooses the integers of a mixed-integer linear relaxation, Clarabel finds the best point with these integers, and
both points give the relaxation further cuts, until its bound meets the best point. What is not linear is a block

.. math:: \sum_i v_i^2 \le h s,\quad h, s \ge 0

of affine entries v, a head h and a scale s: a second-order cone (t, v) has h = s = t, a rotated one (t, u, v) has
h = 2t and s = u. A block is the same as

.. math:: \exists z \ge 0:\quad \sum_i z_i \le h,\quad z_i s \ge v_i^2,\quad s \ge 0,

its *disaggregated* form, in which a cut for an entry depends on one number: with k cuts per entry the relaxation is as
good as with k to the power of (number of entries) cuts on the block itself. The cuts are its tangents,

.. math:: z \ge 2 r v - r^2 s \quad\text{for every real } r.

Proof: if s > 0, then :math:`z \ge v^2 / s = 2rv - r^2 s + (v - rs)^2 / s`; if s = 0, then v = 0 and the right-hand side
is 0. A tangent is tight exactly where v = r s.

References
----------
Vielma, Dunning, Huchette & Lubin (2017), Extended formulations in mixed integer conic quadratic programming.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import CompiledModel, power_of_two
from ceopt.solvers.compile.quadratic_cones import cones_of_rows
from ceopt.solvers.compile.rows_and_cones import Auxiliary, ConeRows, factor, resized
from ceopt.solvers.cones import Cone
from ceopt.solvers.conic.clarabel import ClarabelSession
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.highs import HighsSession, set_options, silent_highs
from ceopt.solvers.problem import Outcome, ProblemClass, Stop, Vector
from ceopt.solvers.session import AbstractSession, RunResult, SolveRun
from ceopt.solvers.tolerances import (
    BLOCK_NOISE,
    CONE_TOLERANCE,
    CUT_DEPTH,
    FLATTEST_TANGENT,
    INTEGER_SEARCH_TOLERANCES,
    LEAST_TANGENT_GAP,
    ROW_TOLERANCE,
    SMALLEST_ENTRY,
    TANGENT_ROUNDING,
)

# ==== Second-order cones as sums of squares under a product ===========================================================


class AffineRows(NamedTuple):
    """``constant + matrix @ x``, row by row."""

    matrix: sp.csr_array
    constant: Vector

    def at(self, x: Vector) -> Vector:
        """Return the values at x."""
        return np.asarray(self.constant + self.matrix @ x, dtype=np.float64)

    def times(self, factor: float) -> AffineRows:
        """Return each row times a number."""
        return AffineRows(sp.csr_array(self.matrix * factor), self.constant * factor)

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """Which rows are numbers."""
        return np.asarray(np.diff(self.matrix.indptr) == 0, dtype=np.bool_)

    @classmethod
    def stacked(cls, parts: list[AffineRows], n: int) -> AffineRows:
        """Return the rows of all parts, over n columns."""
        empty = cls(sp.csr_array((0, n)), np.zeros(0))
        matrix = sp.csr_array(sp.vstack([part.matrix for part in (empty, *parts)]))
        return cls(matrix, np.concatenate([part.constant for part in (empty, *parts)]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a program, each in units in which it has size 1.

    Parameters
    ----------
    v
        The K entries of all blocks.
    block
        (K,) block of each entry.
    head, scale
        h and s, one per block.
    """

    v: AffineRows
    block: NDArray[np.intp]
    head: AffineRows
    scale: AffineRows

    @classmethod
    def of(cls, conic: CompiledModel, near: Vector | None) -> Blocks:
        """Return the blocks of a program of linear rows and second-order cones.

        Parameters
        ----------
        near
            A point at which the units are measured; None for a guess from the sizes of the terms.
        """
        n = len(conic.c)
        parts = [_block(cone, np.clip(1.0, conic.lb, conic.ub), near) for cone in conic.cones]
        v, head, scale = (AffineRows.stacked([part[k] for part in parts], n) for k in range(3))
        block = np.repeat(np.arange(len(parts)), [len(part[0].constant) for part in parts])
        return cls(v=v, block=block, head=head, scale=scale)

    def violation(self, x: Vector) -> float:
        r"""Return how far x is outside the worst block, in its units.

        With u = (h + s) / 2 and d = (h - s) / 2 a block is the second-order cone :math:`u \ge \lVert (d, v) \rVert`.
        """
        h = self.head.at(x)
        s = self.scale.at(x)
        return float((np.hypot((h - s) / 2, self._norms(x)) - (h + s) / 2).max(initial=0.0))

    def ratios(self, x: Vector) -> Vector:
        """Return v / s for each entry at the nearest points of the blocks that x is outside."""
        h = self.head.at(x)
        s = self.scale.at(x)
        moved = np.maximum(np.hypot((h - s) / 2, self._norms(x)) - (h - s) / 2, s)
        return self._over(self.v.at(x), np.where(self.scale.is_constant, s, moved))

    def least_z(self, x: Vector) -> Vector:
        """Return the least z of each entry."""
        return self._over(self.v.at(x) ** 2, self.scale.at(x))

    def first_ratios(self) -> list[Vector]:
        """Return tangents that bound every block: where an entry alone reaches the head, and where all do alike."""
        alone = np.ones(len(self.block))
        alike = self._over(alone, np.sqrt(np.bincount(self.block, minlength=len(self.head.constant))))
        return [alone, alike, -alone, -alike]

    def _norms(self, x: Vector) -> Vector:
        squares = self.v.at(x) ** 2
        return np.asarray(np.sqrt(np.bincount(self.block, squares, len(self.head.constant))), dtype=np.float64)

    def _over(self, values: Vector, of_blocks: Vector) -> Vector:
        """Return each entry's value over that of its block, 0 where this is not positive."""
        divisor = of_blocks[self.block]
        return np.divide(values, divisor, out=np.zeros_like(values), where=divisor > 0)


def _block(cone: ConeRows, middle: Vector, near: Vector | None) -> tuple[AffineRows, AffineRows, AffineRows]:
    """Return entries, head and scale of a second-order cone in units of their own; a constant head is the scale."""
    is_rotated = cone.cone is Cone.ROTATED
    first = AffineRows(cone.matrix[[0]], cone.constant[[0]])
    head = scale = first
    if is_rotated:
        second = AffineRows(cone.matrix[[1]], cone.constant[[1]])
        scale = second
        if first.is_constant[0]:
            head, scale = second, first
        head = head.times(2.0)
    v = AffineRows(cone.matrix[1 + is_rotated :], cone.constant[1 + is_rotated :])
    terms = [np.abs(part.constant) + abs(part.matrix) @ np.abs(middle) for part in (v, head, scale)]
    unit_h, unit_s = _sizes(*terms, is_rotated=is_rotated)
    if near is not None:
        at_point = _sizes(*(np.abs(part.at(near)) for part in (v, head, scale)), is_rotated=is_rotated)
        unit_h = max(at_point[0], SMALLEST_ENTRY ** (1 + is_rotated) * unit_h)
        unit_s = max(at_point[1], SMALLEST_ENTRY * unit_s)
    unit_h = power_of_two(unit_h or 1.0)
    unit_s = power_of_two(unit_s or 1.0)
    if not is_rotated:
        unit_s = unit_h
    elif scale.is_constant[0] and scale.constant[0] > 0:
        unit_s = float(scale.constant[0])
    return v.times(1.0 / math.sqrt(unit_h * unit_s)), head.times(1.0 / unit_h), scale.times(1.0 / unit_s)


def _sizes(v: Vector, head: Vector, scale: Vector, *, is_rotated: bool) -> tuple[float, float]:
    """Return the sizes of head and scale; where the scale is not 0, the entries ask for a head."""
    norm = float(np.linalg.norm(v))
    h = float(head[0])
    s = float(scale[0])
    if not is_rotated:
        h = max(h, norm)
    elif s > 0:
        h = max(h, norm * norm / s)
    return h, s


# ==== Quadratics as cones, centred where the columns' bounds let them be ==============================================


def with_cones(compiled: CompiledModel) -> CompiledModel:
    """Return the program with its quadratic rows as cones, its fixed columns folded into them.

    Where a head is 0, the entries are too: no finite number of tangents says so, and linear rows do.

    Raises
    ------
    UnsupportedProblemError
        It has another cone than second-order ones, or a quadratic row that is not convex.
    """
    cones = list(compiled.cones)
    for row, cone in zip(compiled.quadratics, cones_of_rows(compiled), strict=True):
        if cone.cone is Cone.SECOND_ORDER or cone.matrix.indptr[2] > cone.matrix.indptr[1]:
            cones.append(cone)  # for another reason than that the row is convex
            continue
        sign, side = row.bounded_above()
        rest, constant, squares = _centred(sign * row.Q, sign * row.a.toarray().ravel(), compiled)
        cones.append(
            _half_of(squares, AffineRows(sp.csr_array(-rest[None, :]), np.array([side - constant])), row.constraint)
        )
    fixed = compiled.lb == compiled.ub
    at = np.where(fixed, compiled.lb, 0.0)
    zeros: list[AffineRows] = []
    kept = []
    for cone in cones:
        if not cone.cone.heads:
            raise UnsupportedProblemError(
                TangentSession.who,
                "second-order cones",
                f"constraint {cone.constraint.name!r} is a cone of another kind: {cone.cone}",
                "Call solve(model), which finds a solver for it.",
            )
        matrix = sp.csr_array(cone.matrix @ sp.diags_array((~fixed).astype(np.float64)))
        matrix.eliminate_zeros()
        rows = AffineRows(matrix, cone.entries(at))
        heads = cone.cone.heads
        vanishing = (rows.is_constant & (rows.constant == 0.0))[:heads]
        if vanishing.any():
            zeros.append(AffineRows(rows.matrix[heads:], rows.constant[heads:]))
        if not vanishing.all():
            kept.append(replace(cone, matrix=matrix, constant=rows.constant))
    equal = AffineRows.stacked(zeros, len(compiled.c))
    program = compiled.extended(A=equal.matrix, row_lb=-equal.constant, row_ub=-equal.constant)
    program.quadratics = []
    program.cones = kept
    return program


def with_linear_objective(program: CompiledModel, near: Vector | None = None) -> CompiledModel:
    """Return a program without quadratic rows whose quadratic objective is a last column, and a cone below it.

    Parameters
    ----------
    near
        A point whose squares are to be small; None for a guess.
    """
    if program.Q is None:
        return program
    n = len(program.c)
    conic = program.extended(columns=[Auxiliary("quadratic objective")], lb=[0.0], ub=[np.inf])
    rest, constant, squares = _centred(program.sense * program.Q, program.sense * program.c, program, near)
    conic.c = np.append(program.sense * rest, program.sense)
    conic.c0 = program.c0 + program.sense * constant
    conic.Q = None
    above = AffineRows(sp.csr_array(([1.0], ([0], [n])), shape=(1, n + 1)), np.zeros(1))
    squares = AffineRows(resized(squares.matrix, (len(squares.constant), n + 1)), squares.constant)
    conic.cones.append(_half_of(squares, above, None))
    return conic


def _half_of(squares: AffineRows, head: AffineRows, constraint: Any) -> ConeRows:
    """Return the cone that says that half of the sum of squares is at most the head."""
    one = AffineRows(sp.csr_array(head.matrix.shape), np.ones(1))
    rows = AffineRows.stacked([head, one, squares], head.matrix.shape[1])
    return ConeRows(constraint, Cone.ROTATED, rows.constant, rows.matrix)


def _centred(
    lower: Any, c: Vector, compiled: CompiledModel, near: Vector | None = None
) -> tuple[Vector, float, AffineRows]:
    r"""Return r, k, (F, d) with :math:`x^\top Q x / 2 + c^\top x = \lVert F x + d \rVert^2 / 2 + r^\top x + k`.

    Fixed columns are folded in. As much of the linear part goes into d as F x reaches near a point, or within the
    columns' bounds: the squares are then those of distances, and not the greater parts of a small difference.
    """
    n = len(c)
    fixed = compiled.lb == compiled.ub
    at = np.where(fixed, compiled.lb, 0.0)
    full = sp.csr_array(lower + sp.tril(lower, -1).T)
    constant = float(c @ at + 0.5 * (at @ (full @ at)))
    c = np.where(fixed, 0.0, c + full @ at)
    free = np.flatnonzero(~fixed)
    part = factor(sp.csc_array(sp.tril(full[free][:, free]))).tocoo()
    body = sp.csr_array((part.data, (part.coords[0], free[part.coords[1]])), shape=(part.shape[0], n))
    d = (body @ c) / np.asarray(body.multiply(body).sum(axis=1)).ravel()  # the rows of body are orthogonal
    farthest = np.maximum(np.abs(compiled.lb), np.abs(compiled.ub))
    if near is not None:
        farthest = np.abs(near)
    ends = zip(body.indptr, body.indptr[1:], strict=False)
    reach = np.array([np.abs(body.data[a:b]) @ farthest[body.indices[a:b]] for a, b in ends])
    d[np.abs(d) > 2.0 * reach] = 0.0
    rest = c - body.T @ d
    rest[np.abs(rest) <= BLOCK_NOISE * (np.abs(c) + abs(body).T @ np.abs(d))] = 0.0
    return rest, constant - 0.5 * float(d @ d), AffineRows(body, d)


# ==== The linear relaxation, which grows by cuts ======================================================================

_STEEPEST = 1e6  # of a tangent, in units of its cone: a matrix holds its square


@final
class TangentRelaxation:
    """The relaxation of a program with second-order cones: its columns, and z and v of each entry.

    Parameters
    ----------
    program
        As :func:`with_cones` returns it.
    near
        A point at which the units of its cones are measured, and where they are cut first; None for a guess.

    Attributes
    ----------
    master
        The mixed-integer linear program of all cuts so far.
    """

    def __init__(self, program: CompiledModel, near: Vector | None) -> None:
        conic = with_linear_objective(program, near)
        self._n = len(program.c)
        self._m = m = len(conic.c)  # one more where the objective is quadratic
        self._blocks = blocks = Blocks.of(conic, None)
        if near is not None:
            near = self._widened(near)
            self._blocks = blocks = Blocks.of(conic, near)
        count = len(blocks.block)
        total = m + 2 * count
        entries = np.arange(count)
        z, v = (
            sp.csr_array((np.ones(count), (entries, first + entries)), shape=(count, total)) for first in (m, m + count)
        )
        heads, scales, bodies = (
            sp.csr_array((part.matrix.data, part.matrix.indices, part.matrix.indptr), shape=(len(part.constant), total))
            for part in (blocks.head, blocks.scale, blocks.v)
        )
        sums = sp.csr_array((np.ones(count), (blocks.block, m + entries)), shape=(len(blocks.head.constant), total))
        h = blocks.head.constant
        s = blocks.scale.constant
        self.master = conic.extended(
            columns=[Auxiliary("tangent")] * (2 * count),
            lb=np.repeat([0.0, -np.inf], count),
            ub=np.full(2 * count, np.inf),
            A=sp.vstack([sums - heads, scales, bodies - v]),
            row_lb=np.concatenate([np.full_like(h, -np.inf), -s, -blocks.v.constant]),
            row_ub=np.concatenate([h, np.full_like(s, np.inf), -blocks.v.constant]),
        )
        self.master.cones = []
        self._z = z
        self._v = v
        self._s = scales
        for ratio in blocks.first_ratios():
            self.cut(ratio)
        if near is not None:
            self.cut(blocks.ratios(near))

    @property
    def z_columns(self) -> slice:
        """The master's columns z, one for each entry."""
        return slice(self._m, self._m + len(self._blocks.block))

    def violation(self, x: Vector) -> float:
        """Return how far a point of the program is outside the worst cone, in the units of that cone."""
        return self._blocks.violation(self._widened(x))

    def completed(self, x: Vector) -> Vector:
        """Return the master's own point with these x and the least z."""
        whole = self._widened(x)
        return np.concatenate([whole, self._blocks.least_z(whole), self._blocks.v.at(whole)])

    def cut_at(self, x: Vector) -> None:
        """Add the cuts that are tight at the point of the cones that is nearest to a point of the program."""
        self.cut(self._blocks.ratios(self._widened(x)))

    def cut_off(self, y: Vector) -> bool:
        """Add the cuts that a point of the master breaks; False if it breaks none."""
        return self.cut(self._blocks.ratios(y[: self._m]), y)

    def cut(self, ratio: Vector, y: Vector | None = None) -> bool:
        """Add the tangents at v = ratio * s, of a point of the master only those that it breaks; whether there are."""
        blocks = self._blocks
        ratio = np.clip(ratio, -_STEEPEST, _STEEPEST)
        kept = np.abs(ratio) >= FLATTEST_TANGENT
        if y is not None:
            z = np.maximum(y[self.z_columns], 0.0)
            v = blocks.v.at(y[: self._m])
            s = blocks.scale.at(y[: self._m])[blocks.block]
            kept &= 2 * ratio * v - ratio**2 * s - z > CUT_DEPTH * np.maximum(1.0, z)
        entry = np.flatnonzero(kept)
        if not entry.size:
            return False
        slope = 2.0 * ratio[entry]
        fall = ratio[entry] ** 2
        block = blocks.block[entry]
        size = 1.0 / np.maximum(1.0, np.maximum(np.abs(slope), fall))
        each = sp.diags_array
        matrix = each(size) @ (self._z[entry] - each(slope) @ self._v[entry] + each(fall) @ self._s[block])
        least = -size * fall * blocks.scale.constant[block]
        self.master = self.master.extended(A=matrix, row_lb=least, row_ub=np.full(entry.size, np.inf))
        return True

    def _widened(self, x: Vector) -> Vector:
        """Return a point of the program with the column that a quadratic objective gets."""
        blocks = self._blocks
        if self._m == self._n:
            return x
        squares = blocks.least_z(np.append(x, 0.0))[blocks.block == len(blocks.head.constant) - 1]
        return np.append(x, float(squares.sum()) / blocks.head.matrix.data[-1])


# ==== Convex MIQP, SOCP and MISOCP with HiGHS: cuts until point and bound meet ========================================

_SOLVES = frozenset(
    {ProblemClass.LP, ProblemClass.MILP, ProblemClass.QP, ProblemClass.MIQP, ProblemClass.SOCP, ProblemClass.MISOCP}
)
_FIRST_GAP = 1e-2  # of the first search for integers; later ones end at a tenth of the gap that is open
_PATIENCE_S = 0.25  # how long a search may go on before its best integers are tried, while no point is in hand
_ROUNDS = 100  # in a row that bring no new integers: from there on the cuts differ by rounding
_FAR = 1e4  # where the cuts leave the relaxation unbounded, it is cut at a point so far away
_WHY = {
    "stopped": "time limit",
    "stalled": "its tolerance allows no finer cuts here",
    "infeasible": "HiGHS finds the cuts infeasible though a point is in hand",
    "unknown": "no tangents were found that bound the objective",
}


@final
class TangentSession(AbstractSession):
    """One convex program with integers, quadratics and second-order cones, solved by HiGHS through linear programs.

    1. Clarabel solves the relaxation without integers: of a program without them, this is the optimum.
    2. HiGHS solves the mixed-integer linear program of all cuts so far. Its bound holds, for every cut does.
    3. Clarabel solves the program with HiGHS's integers. The cuts at both points keep HiGHS from choosing them again,
       unless they are the best. Back to 2, until point and bound meet.

    A point is in a cone up to ``CONE_TOLERANCE``. No relative gap below ``LEAST_TANGENT_GAP`` is promised.
    """

    who = "HiGHS with tangent cuts"

    def _open(self) -> None:
        needed = self._compiled.problem_class
        if needed not in _SOLVES:
            raise UnsupportedProblemError(
                self.who,
                "a convex program of linear rows, quadratics and second-order cones",
                f"the model is of class {needed}",
                "Call solve(model), which finds a solver for it.",
            )
        highs = silent_highs()
        set_options(highs, self._options)
        self._version = str(highs.version())

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return self._version

    def _run(self, search: SolveRun) -> RunResult:
        with search.switch.listening():
            return self._found(self._compiled, search)

    def _found(self, compiled: CompiledModel, search: SolveRun) -> RunResult:
        program = with_cones(compiled)
        continuous = _Continuous(program, search, self._threads)
        relaxed = continuous.solve(None)
        if relaxed.status is Stop.UNBOUNDED and compiled.integer.any():
            return self._unbounded(compiled, search)
        if relaxed.status is Stop.UNBOUNDED:
            return self._empty(Stop.UNBOUNDED)
        if relaxed.status is Stop.INFEASIBLE:
            return self._empty(Stop.INFEASIBLE)
        settings = {"threads": self._threads, "random_state": self._random_state}
        return _CutLoop(program, search, continuous, relaxed, {**settings, "options": self._options}).run()

    def _empty(self, status: Stop) -> RunResult:
        return RunResult(status=status, message=f"{self.who} proved that the program is {status}.")

    def _unbounded(self, compiled: CompiledModel, search: SolveRun) -> RunResult:
        """Tell unbounded from infeasible: there is a direction that improves for ever, if there is a point at all.

        For infinitely many k, x + kd is feasible with every feasible x, as a direction d of rational numbers is.
        """
        program = compiled.extended()
        program.c = np.zeros(len(program.c))
        program.c0 = 0.0
        program.Q = None
        any_point = SolveRun(
            compiled=program,
            began=search.began,
            deadline=search.deadline,
            relative_gap=search.relative_gap,
            start=search.start,
            pool=1,
            switch=search.switch,
        )
        found = self._found(program, any_point)
        if found.x is None:
            return RunResult(status=found.status, message=found.message)
        return self._empty(Stop.UNBOUNDED)


@final
class _Continuous:
    """The program with its integers free or held, inside Clarabel."""

    def __init__(self, program: CompiledModel, search: SolveRun, threads: int) -> None:
        self._search = search
        self._whole = program.integer
        self._program = program.extended()
        self._program.integer = np.zeros_like(self._whole)
        self._session = ClarabelSession(self._program, threads=threads)

    def solve(self, integers: Vector | None) -> Outcome:
        """Return what Clarabel finds with these integers, None for free ones."""
        if integers is not None:
            self._program.lb[self._whole] = integers
            self._program.ub[self._whole] = integers
        switch = self._search.switch
        outcome = self._session.solve(
            time_limit_s=self._search.seconds_left,
            relative_gap=self._search.relative_gap,
            should_stop=switch.poll,
        )
        switch.pressed |= outcome.status is Stop.INTERRUPTED
        return outcome


@final
class _CutLoop:
    """One solve: the relaxation as it grows by cuts, the best point in hand and the bound that is proved."""

    def __init__(
        self,
        program: CompiledModel,
        search: SolveRun,
        continuous: _Continuous,
        relaxed: Outcome,
        settings: dict[str, Any],
    ) -> None:
        self._program = program
        self._search = search
        self._continuous = continuous
        self._relaxed = relaxed
        self._settings = settings
        left = search.seconds_left
        self._end = search.deadline - min(0.5, 0.1 * left)  # of HiGHS: the rest is for its last integers
        self._relaxation = TangentRelaxation(program, relaxed.x)
        self._far = _FAR
        if relaxed.x is not None:
            self._far *= max(1.0, float(np.abs(relaxed.x).max()))
        self._patience = _PATIENCE_S
        self._settled: set[bytes] = set()
        self._pool: dict[bytes, Vector] = {}
        self._best: Vector | None = None
        self._value = program.sense * math.inf
        self._bound = -program.sense * math.inf
        if relaxed.x is not None and not program.integer.any():
            self._offer(relaxed.x)
            self._prove(relaxed.bound)

    # -- points --------------------------------------------------------------------------------------------------------
    def _offer(self, x: Vector) -> None:
        """Keep a point if it is feasible and the best so far."""
        program = self._program
        whole = program.integer
        x = np.clip(np.where(whole, np.round(x), x), program.lb, program.ub)
        activity = program.A @ x
        off = np.maximum(program.row_lb - activity, activity - program.row_ub).max(initial=0.0)
        if off > ROW_TOLERANCE or self._relaxation.violation(x) > CONE_TOLERANCE:
            return
        value = program.evaluate(x)
        if self._search.pool > 1:
            self._pool[x[whole].tobytes()] = x
        if program.sense * (value - self._value) < 0:
            self._best = x
            self._value = value
            self._search.improved(x)

    def _settle(self, integers: Vector) -> bool:
        """Find the best point with these integers, and cut there; False if that was done before."""
        whole = self._program.integer
        integers = np.clip(np.round(integers), self._program.lb[whole], self._program.ub[whole]) + 0.0  # no -0
        if integers.tobytes() in self._settled:
            return False
        self._settled.add(integers.tobytes())
        x = self._continuous.solve(integers).x
        if x is not None:
            self._offer(x)
            self._relaxation.cut_at(x)
        return True

    # -- what is proved ------------------------------------------------------------------------------------------------
    def _prove(self, bound: float | None) -> None:
        if bound is not None and self._program.sense * (bound - self._bound) > 0:
            self._bound = bound

    def _is_closed(self) -> bool:
        """Whether point and bound meet, within the relative gap or the rounding of the objective's terms."""
        if self._best is None:
            return False
        allowed = max(self._search.relative_gap, LEAST_TANGENT_GAP) * abs(self._value)
        rounding = TANGENT_ROUNDING * _magnitude(self._program, self._best)
        return self._program.sense * (self._value - self._bound) <= max(allowed, rounding)

    def _is_stopped(self) -> bool:
        return self._search.switch.poll() or time.perf_counter() >= self._end

    # -- the loop ------------------------------------------------------------------------------------------------------
    def run(self) -> RunResult:
        """Return what the cuts come to."""
        start = self._search.start
        whole = np.flatnonzero(self._program.integer).tolist()
        if len(start) == len(self._program.c):
            self._offer(np.array([start[k] for k in range(len(start))]))
        if whole and all(k in start for k in whole):
            self._settle(np.array([start[k] for k in whole]))
        return self._verdict(self._until_closed())

    def _until_closed(self) -> str:
        """Choose and settle until point and bound meet; return done, stalled, stopped, infeasible or an error."""
        whole = self._program.integer
        n = len(whole)
        least = 0.2 * max(self._search.relative_gap, LEAST_TANGENT_GAP)
        gap = max(_FIRST_GAP, least)
        tolerances = list(INTEGER_SEARCH_TOLERANCES)
        rounds = 0
        while not self._is_closed():
            if self._is_stopped():
                return "stopped"
            outcome = self._choose(gap, tolerances[0])
            rounds += 1
            if outcome.status is Stop.UNBOUNDED:  # of the cuts, which is no proof for the program
                if rounds < _ROUNDS and self._cut_far(tolerances[0]):
                    continue
                self._bound = -self._program.sense * math.inf  # and no other bound is in HiGHS's sight
                return "unknown"
            if outcome.status in {Stop.INFEASIBLE, Stop.ERROR} and len(tolerances) > 1:
                tolerances.pop(0)
                continue
            if outcome.status is Stop.INFEASIBLE:
                return "infeasible"
            self._prove(outcome.bound)
            if outcome.x is None and self._is_stopped():
                return "stopped"
            if outcome.x is None:
                return outcome.message.rstrip(".")
            self._offer(outcome.x[:n])
            is_new = self._settle(outcome.x[:n][whole])
            is_cut = self._relaxation.cut_off(outcome.x)
            if is_new:
                rounds = 0
            if rounds >= _ROUNDS or not (is_new or is_cut or gap > least):
                return "stalled"
            gap = self._next_gap(gap, least, is_new=is_new)
        return "done"

    def _next_gap(self, gap: float, least: float, *, is_new: bool) -> float:
        """Return to what gap HiGHS is to search: the least if the best integers are known and what is left is proof."""
        if not is_new:
            return least
        if self._best is None:
            return gap
        return min(gap, max(least, 0.1 * abs(self._value - self._bound) / max(abs(self._value), 1e-12)))

    def _choose(self, gap: float, tolerance: float) -> Outcome:
        """Solve the program of all cuts, integers and all; without a point in hand, for as long as patience lasts."""
        switch = self._search.switch
        start = None
        if self._best is not None:
            start = self._relaxation.completed(self._best)
        end = self._end
        hurry = min(end, time.perf_counter() + self._patience)

        def note(_seconds: float, _objective: float, y: Vector) -> None:
            nonlocal end
            self._offer(y[: len(self._program.c)])
            end = self._end if self._best is not None else hurry

        outcome = self._session(self._relaxation.master, tolerance).solve(
            time_limit_s=max(1e-3, self._end - time.perf_counter()),
            relative_gap=gap,
            start=start,
            on_incumbent=note,
            should_stop=lambda: switch.poll() or time.perf_counter() > end,  # HiGHS was seen to take a third more
        )
        if time.perf_counter() > end:
            self._patience *= 2.0
        else:
            switch.pressed |= outcome.status is Stop.INTERRUPTED
        return outcome

    def _cut_far(self, tolerance: float) -> bool:
        """Cut where the relaxation leaves a large box; False if no tangent is broken there."""
        program = self._relaxation.master.extended()
        program.integer = np.zeros_like(program.integer)
        program.lb = np.where(np.isfinite(program.lb), program.lb, np.minimum(0.0, program.ub) - self._far)
        program.ub = np.where(np.isfinite(program.ub), program.ub, np.maximum(0.0, program.lb) + self._far)
        y = self._session(program, tolerance).solve(
            time_limit_s=self._search.seconds_left, should_stop=self._search.switch.poll
        ).x  # fmt: skip
        return y is not None and self._relaxation.cut_off(y)

    def _session(self, program: CompiledModel, tolerance: float) -> HighsSession:
        own = {"mip_feasibility_tolerance": tolerance, "primal_feasibility_tolerance": tolerance}
        return HighsSession(program, **{**self._settings, "options": {**own, **self._settings["options"]}})

    def _verdict(self, word: str) -> RunResult:
        """Return what the loop came to."""
        who = TangentSession.who
        x = self._best
        pool = tuple(self._pool.values())
        bound = self._bound if math.isfinite(self._bound) else None
        if self._is_closed():
            return RunResult(status=Stop.OPTIMAL, x=x, bound=bound, pool=pool)
        if word == "infeasible" and x is None:
            return RunResult(status=Stop.INFEASIBLE, message=f"{who} proved that the program is infeasible.")
        if x is None and self._relaxed.x is not None and not self._program.integer.any():
            relaxed = self._relaxed
            return RunResult(
                status=relaxed.status,
                x=relaxed.x,
                bound=relaxed.bound,
                message=relaxed.message,
                certificate=relaxed.certificate,
            )
        message = f"{who} stopped: {_WHY.get(word, word)}."
        if self._search.switch.pressed:
            status = Stop.INTERRUPTED
            message = f"{who} stopped: interrupt."
        elif x is not None:
            status = Stop.FEASIBLE
        else:
            status = Stop.TIME_LIMIT if word == "stopped" else Stop.ERROR
        return RunResult(status=status, x=x, bound=bound, message=message, pool=pool)


def _magnitude(compiled: CompiledModel, x: Vector) -> float:
    """Return the sum of the absolute values of the objective's terms: its rounding is relative to this."""
    size = np.abs(x)
    linear = abs(compiled.c0) + float(np.abs(compiled.c) @ size)
    if compiled.Q is None:
        return linear
    lower = abs(compiled.Q)
    return linear + float(size @ (lower @ size)) - 0.5 * float(lower.diagonal() @ size**2)
