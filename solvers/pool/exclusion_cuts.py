"""The rows that keep a program from giving a solution again, or one that is too like it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.rows_and_cones import Auxiliary
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import WHOLE_BOUND

__all__ = ["AbstractExclusion", "Distances", "NoGoods", "free_integers", "integers", "no_goods"]


@final
@dataclass(slots=True)
class _Cuts:
    """Rows and columns that a program is extended by."""

    first: int
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    columns: list[Auxiliary] = field(default_factory=list)
    most: list[float] = field(default_factory=list)

    def column(self, most: float = 1.0, *, integer: bool = True) -> int:
        self.columns.append(Auxiliary(f"pool_{len(self.columns)}", integer))
        self.most.append(most)
        return self.first + len(self.columns) - 1

    def row(self, terms: Mapping[int, float], lower: float, upper: float = math.inf) -> None:
        self.entries += [(len(self.lower), column, value) for column, value in terms.items()]
        self.lower.append(lower)
        self.upper.append(upper)

    def onto(self, compiled: CompiledModel) -> CompiledModel:
        i, j, values = zip(*self.entries, strict=True) if self.entries else ((), (), ())
        shape = (len(self.lower), self.first + len(self.columns))
        return compiled.extended(
            columns=self.columns,
            lb=np.zeros(len(self.columns)),
            ub=self.most,
            A=sp.csr_array((np.array(values, dtype=np.float64), (i, j)), shape=shape),
            row_lb=self.lower,
            row_ub=self.upper,
        )


class AbstractExclusion(ABC):
    """What two solutions must differ in."""

    def barred(self, compiled: CompiledModel, points: Sequence[Vector]) -> CompiledModel:
        """Return the program without what is too like one of these points; its columns begin with the program's."""
        cuts = _Cuts(len(compiled.columns))
        for point in points:
            self._bar(cuts, point)
        if points:
            return cuts.onto(compiled)
        return compiled

    @abstractmethod
    def _bar(self, cuts: _Cuts, point: Vector) -> None:
        """Add the rows that keep away from one point."""

    @abstractmethod
    def differ(self, a: Vector, b: Vector) -> bool:
        """Whether both may be in one pool."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoGoods(AbstractExclusion):
    r"""Another value of some integer column.

    .. math::
        \sum_{j:\, v_j = l_j} (x_j - l_j) + \sum_{j:\, v_j = u_j} (u_j - x_j)
        + \sum_{j:\, l_j < v_j < u_j} (p_j + q_j) \ge 1,

    with :math:`x_j \ge l_j + (v_j + 1 - l_j) p_j`, :math:`x_j \le u_j - (u_j - v_j + 1) q_j` and binaries p, q. For
    binaries it is the no-good row :math:`\sum_{v_j = 1} (1 - x_j) + \sum_{v_j = 0} x_j \ge 1`. Exact.

    Parameters
    ----------
    columns, low, high
        (k,) each: the free integer columns and their bounds.
    """

    columns: Any
    low: Vector
    high: Vector

    def key(self, x: Vector) -> bytes:
        """Return the decisions; a solver takes 0.9999999 for 1."""
        return bytes(np.round(x[self.columns]).astype(np.int64))

    def differ(self, a: Vector, b: Vector) -> bool:
        """Whether the decisions differ."""
        return self.key(a) != self.key(b)

    def _bar(self, cuts: _Cuts, point: Vector) -> None:
        terms = {}
        least = 1.0
        values = np.round(point[self.columns])
        for j, v, low, high in zip(*(a.tolist() for a in (self.columns, values, self.low, self.high)), strict=True):
            if v <= low:
                terms[j], least = 1.0, least + low
            elif v >= high:
                terms[j], least = -1.0, least - high
            else:
                above = cuts.column()
                below = cuts.column()
                cuts.row({j: 1.0, above: low - v - 1.0}, low)
                cuts.row({j: 1.0, below: high - v + 1.0}, -math.inf, high)
                terms |= {above: 1.0, below: 1.0}
        cuts.row(terms, least)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distances(AbstractExclusion):
    r"""At least :math:`\delta` away.

    .. math::
        x_j - v_j = p_j - n_j,\quad 0 \le p_j \le (u_j - v_j) b_j,\quad 0 \le n_j \le (v_j - l_j)(1 - b_j),\quad
        \sum_j (p_j + n_j) \ge \delta

    with binaries b: mathematics 9.5 (iii), reverse convex. In the greatest norm some column moves by :math:`\delta`:
    :math:`x_j \ge l_j + (v_j + \delta - l_j) p_j`, :math:`x_j \le u_j - (u_j - v_j + \delta) q_j`,
    :math:`\sum_j (p_j + q_j) \ge 1` with binaries p, q.

    Parameters
    ----------
    columns, low, high
        (k,) each: the columns and their bounds, finite.
    least, norm
        See :class:`ApartVariables`.
    """

    columns: Any
    low: Vector
    high: Vector
    least: float
    norm: str

    def differ(self, a: Vector, b: Vector) -> bool:
        """Whether the distance is kept, up to a solver's tolerance."""
        moves = np.abs(a[self.columns] - b[self.columns])
        distance = float(moves.sum() if self.norm == "l1" else moves.max(initial=0.0))
        return distance >= self.least - 1e-6 * max(1.0, self.least)

    def _bar(self, cuts: _Cuts, point: Vector) -> None:
        values = np.clip(point[self.columns], self.low, self.high)
        distance: dict[int, float] = {}
        for j, v, low, high in zip(*(a.tolist() for a in (self.columns, values, self.low, self.high)), strict=True):
            if self.norm == "l1":
                side = cuts.column()
                p = cuts.column(high - v, integer=False)
                n = cuts.column(v - low, integer=False)
                cuts.row({j: 1.0, p: -1.0, n: 1.0}, v, v)
                cuts.row({p: 1.0, side: v - high}, -math.inf, 0.0)
                cuts.row({n: 1.0, side: v - low}, -math.inf, v - low)
                distance |= {p: 1.0, n: 1.0}
                continue
            if v + self.least <= high:
                above = cuts.column()
                cuts.row({j: 1.0, above: low - v - self.least}, low)
                distance[above] = 1.0
            if v - self.least >= low:
                below = cuts.column()
                cuts.row({j: 1.0, below: high - v + self.least}, -math.inf, high)
                distance[below] = 1.0
        cuts.row(distance, self.least if self.norm == "l1" else 1.0)


def integers(compiled: CompiledModel) -> NoGoods:
    """Return the rule that some integer column differs; its bounds may be infinite."""
    return no_goods(free_integers(compiled), compiled)


def free_integers(compiled: CompiledModel) -> Any:
    """Return the integer columns that can take several values."""
    low, high = _whole_bounds(compiled, slice(None))
    return np.flatnonzero(compiled.integer & (low < high))


def _whole_bounds(compiled: CompiledModel, columns: Any) -> tuple[Vector, Vector]:
    return np.ceil(compiled.lb[columns] - WHOLE_BOUND), np.floor(compiled.ub[columns] + WHOLE_BOUND)


def no_goods(columns: Any, compiled: CompiledModel) -> NoGoods:
    """Return the rule that one of these integer columns differs; those that cannot are left out."""
    columns = np.intersect1d(columns, free_integers(compiled))
    return NoGoods(columns, *_whole_bounds(compiled, columns))
