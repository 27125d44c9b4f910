r"""Special ordered sets, ``pyo.SOSConstraint``, as binaries and linear rows: what every solver takes.

.. math::
    \text{SOS1:}\quad l_i z_i \le x_i \le u_i z_i,\; \textstyle\sum_i z_i \le 1 \qquad
    \text{SOS2:}\quad l_i (s_{i-1} + s_i) \le x_i \le u_i (s_{i-1} + s_i),\; \textstyle\sum_{i=1}^{n-1} s_i \le 1,\;
    s_0 = s_n = 0

====== ===== ===============================================================================================
symbol shape meaning
====== ===== ===============================================================================================
x      (n,)  members in the order of their weights; a fixed one keeps its place
l, u   (n,)  their bounds; where a side has none, what the linear rows imply
z      (n,)  binary: member i may differ from 0
s      n - 1 binary: members i and i + 1 may
====== ===== ===============================================================================================

Exact. Adds n or n - 1 binaries and at most 2n + 1 rows to each set; a row that the member's own bounds imply is left
out, and binaries need no other: their SOS1 set is the row ``sum x <= 1`` alone. The binaries say nothing that the
members do not, so they are no decisions in which solutions differ, and are in no solution that a caller reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.solvers.errors import InvalidValueError, UnboundedFeatureError, UnsupportedProblemError
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import CONSTANT_MISS

_WHO = "compile_model"
#: Rounds in which bounds of members are drawn from rows: a chain of more definitions is a caller's to bound.
_ROUNDS = 4


@final
@dataclass(frozen=True, slots=True, eq=False)
class OrderedSet:
    """One set over the columns of a program.

    Parameters
    ----------
    constraint
        The SOSConstraint data.
    kind
        1 or 2: how many neighbours may differ from 0.
    members
        (n,) columns in the order of their weights; -1 for a fixed one.
    constants
        (n,) values of the fixed ones, 0 for the others.
    binaries
        (n,) columns of z, or (n - 1,) of s; empty where the set needs none.
    held, low, high
        (h,) each: the columns whose bounds its rows were drawn from, and these bounds; the rows do not hold for wider
        ones. The members, or all columns where a bound was implied by rows.
    parts
        The Vars and Constraints that it was lowered to.
    block
        What they stand on: Pyomo's components know theirs weakly alone, and without it have no names.
    """

    constraint: Any
    kind: int
    members: NDArray[np.intp]
    constants: Vector
    binaries: NDArray[np.intp]
    held: NDArray[np.intp]
    low: Vector
    high: Vector
    parts: tuple[Any, ...]
    block: Any

    def sizes(self, x: Vector) -> Vector:
        """Return the absolute values of the members at ``x``, (n,)."""
        values: Vector = np.where(self.members >= 0, x[self.members], self.constants)
        return np.abs(values)

    def place(self, sizes: Vector) -> int:
        """Return the first of the ``kind`` neighbours that leave the least outside."""
        return int(np.argmin(self._outside(sizes)))

    def violation(self, x: Vector) -> float:
        """Return the greatest absolute value of a member that would have to be 0, for the best choice of the others."""
        return float(self._outside(self.sizes(x)).min())

    @property
    def is_of_columns(self) -> bool:
        """Whether every member is a column, and binaries say which may differ from 0: what solvers call a set."""
        return bool(self.binaries.size) and bool((self.members >= 0).all())

    def require_bounds(self, compiled: Any) -> None:
        """Refuse bounds of the program's columns beyond those that the rows of the set were drawn from.

        Raises
        ------
        InvalidValueError
            A column has wider ones.
        """
        wider = (compiled.lb[self.held] < self.low) | (compiled.ub[self.held] > self.high)
        for k in np.flatnonzero(wider).tolist():
            j = int(self.held[k])
            raise InvalidValueError(
                f"SOSConstraint {self.constraint.name!r}",
                f"bounds of {compiled.columns[j].name!r} within [{self.low[k]:g}, {self.high[k]:g}], as it was stated",
                f"they are [{compiled.lb[j]:g}, {compiled.ub[j]:g}]", "Compile the model again.",
            )  # fmt: skip

    def _outside(self, sizes: Vector) -> Vector:
        """Return the greatest size outside of each run of ``kind`` neighbours, (n - kind + 1,)."""
        before = np.concatenate([[0.0], np.maximum.accumulate(sizes)])
        behind = np.concatenate([np.maximum.accumulate(sizes[::-1])[::-1], [0.0]])
        count = len(sizes) - self.kind + 1
        outside: Vector = np.maximum(before[:count], behind[self.kind :])
        return outside


# ==== A model's sets, checked =========================================================================================


def checked_sets(constraints: Sequence[Any]) -> list[Any]:
    """Return those of a model's active sets that say something.

    Raises
    ------
    UnsupportedProblemError
        One is neither SOS1 nor SOS2.
    InvalidValueError
        A Var stands twice in one, two weights of an SOS2 set are equal, or a fixed Var has no value.
    """
    return [member for member in constraints if says_something(member)]


def says_something(constraint: Any) -> bool:
    """Whether a set has more members than may differ from 0; refuse one that has no meaning here."""
    if constraint.level not in {1, 2}:
        raise UnsupportedProblemError(
            _WHO, "sets of kind 1 or 2", f"SOSConstraint {constraint.name!r} has sos={constraint.level}",
            "State it with binaries.",
        )  # fmt: skip
    items = list(constraint.get_items())
    if len({id(var) for var, _ in items}) < len(items):
        raise InvalidValueError(
            _WHO, "each Var once in a set", f"SOSConstraint {constraint.name!r} has one twice", "Take it out."
        )
    if constraint.level == 2 and len({pyo.value(weight) for _, weight in items}) < len(items):
        raise InvalidValueError(
            _WHO, "different weights in an SOS2 set, which order it",
            f"SOSConstraint {constraint.name!r} has equal ones", "Give each Var a weight of its own.",
        )  # fmt: skip
    for var, _ in items:
        if var.fixed and (var.value is None or not math.isfinite(var.value)):
            raise InvalidValueError(
                _WHO, "finite values of fixed Vars", f"{var.name!r} has {var.value}", "Give it a value."
            )
    return len(items) > int(constraint.level)


def members_of(constraint: Any) -> list[Any]:
    """Return the Vars of a set in the order of their weights."""
    ordered = sorted(constraint.get_items(), key=lambda item: float(pyo.value(item[1])))
    return [var for var, _ in ordered]


# ==== Binaries and rows ===============================================================================================


@final
class SetRows:
    """Binaries and rows for sets, as Vars and Constraints of a block that is in no model.

    Parameters
    ----------
    compiled
        The CompiledModel, with a column for every member that is not fixed.
    constraints
        The sets.

    Attributes
    ----------
    rows
        Constraints over the members and the binaries.

    Raises
    ------
    UnboundedFeatureError
        A member has an infinite bound, and no row implies one.
    UnsupportedProblemError
        A member is data: its values are not known.
    """

    def __init__(self, compiled: Any, constraints: Sequence[Any]) -> None:
        self._compiled = compiled
        self._block = pyo.Block(concrete=True)
        self._containers: dict[tuple[int, str], Any] = {}
        self._low, self._high = compiled.lb, compiled.ub
        self._held: NDArray[np.intp] | None = None
        self._sets = [(constraint, members_of(constraint)) for constraint in constraints]
        columns = [self._column(constraint, var) for constraint, members in self._sets for var in members]
        listed = np.array([column for column in columns if column >= 0], dtype=np.intp)
        if not (np.isfinite(self._low[listed]) & np.isfinite(self._high[listed])).all():
            self._low, self._high = implied_bounds(compiled)
            self._held = np.arange(len(compiled.data), len(compiled.columns))
        self.rows: list[Any] = []
        self._binaries: list[list[Any]] = []
        self._parts: list[tuple[Any, ...]] = []
        for constraint, members in self._sets:
            first = len(self.rows)
            self._binaries.append(self._lower(constraint, members))
            self._parts.append((*self._binaries[-1], *self.rows[first:]))

    def sets(self) -> list[OrderedSet]:
        """Return the sets over the program's columns, once the binaries have theirs."""
        index = self._compiled.index
        found = []
        for (constraint, members), binaries, parts in zip(self._sets, self._binaries, self._parts, strict=True):
            columns = np.array([self._column(constraint, var) for var in members], dtype=np.intp)
            values = [var.value if column < 0 else 0.0 for var, column in zip(members, columns, strict=True)]
            own = np.array([index[binary] for binary in binaries], dtype=np.intp)
            constants = np.array(values, dtype=np.float64)
            held = self._held if self._held is not None else columns[columns >= 0]
            box = held, self._compiled.lb[held].copy(), self._compiled.ub[held].copy()
            found.append(OrderedSet(constraint, constraint.level, columns, constants, own, *box, parts, self._block))
        return found

    def _column(self, constraint: Any, var: Any) -> int:
        """Return the column of a member, -1 for a fixed one."""
        column = int(self._compiled.index.get(var, -1))
        if 0 <= column < len(self._compiled.data):
            raise UnsupportedProblemError(
                _WHO, "Vars that are no data in a set",
                f"SOSConstraint {constraint.name!r} has {var.name!r}, which is listed in data", "Leave it out of data.",
            )  # fmt: skip
        return column

    def _lower(self, constraint: Any, members: list[Any]) -> list[Any]:
        """Add the rows of one set; return its binaries."""
        if constraint.level == 1 and all(self._is_binary(constraint, var) for var in members):
            self._row(constraint, "_one", 0, pyo.quicksum(members) <= 1)
            return []
        count = len(members) - constraint.level + 1
        binaries = [self._binary(constraint, k) for k in range(1, count + 1)]
        for k, var in enumerate(members):
            allowed = pyo.quicksum(binaries[max(0, k - constraint.level + 1) : k + 1])
            column = self._column(constraint, var)
            if column < 0:
                if abs(var.value) > CONSTANT_MISS:
                    self._row(constraint, "_nonzero", k + 1, allowed >= 1)
                continue
            low, high = self._bounds(constraint, var, column)
            if high > 0:
                self._row(constraint, "_upper", k + 1, var - high * allowed <= 0)
            if low < 0:
                self._row(constraint, "_lower", k + 1, var - low * allowed >= 0)
        self._row(constraint, "_one", 0, pyo.quicksum(binaries) <= 1)
        return binaries

    def _is_binary(self, constraint: Any, var: Any) -> bool:
        column = self._column(constraint, var)
        if column < 0:
            return bool(var.value in {0, 1})
        compiled = self._compiled
        return bool(compiled.integer[column] and compiled.lb[column] >= 0 and compiled.ub[column] <= 1)

    def _bounds(self, constraint: Any, var: Any, column: int) -> tuple[float, float]:
        low = float(self._low[column])
        high = float(self._high[column])
        if math.isfinite(low) and math.isfinite(high):
            return low, high
        side = "upper" if math.isfinite(low) else "lower"
        raise UnboundedFeatureError(
            _WHO, "finite bounds of the Vars in a set", f"{var.name!r} in SOSConstraint {constraint.name!r} has no "
            f"{side} bound", "Set it, as tight as you know: the set is stated with binaries and this bound.",
        )  # fmt: skip

    # -- components on the block ---------------------------------------------------------------------------------------
    def _binary(self, constraint: Any, k: int) -> Any:
        container = self._container(constraint, "_binary", lambda: pyo.Var(pyo.Any, dense=False, domain=pyo.Binary))
        return container[_index(constraint, k)]

    def _row(self, constraint: Any, ending: str, k: int, relation: Any) -> None:
        container = self._container(constraint, ending, lambda: pyo.Constraint(pyo.Any))
        index = _index(constraint, k) if k else _index(constraint)
        container[index] = relation
        self.rows.append(container[index])

    def _container(self, constraint: Any, ending: str, new: Any) -> Any:
        parent = constraint.parent_component()
        key = (id(parent), ending)
        if key not in self._containers:
            name = parent.local_name.strip("'") + ending
            while hasattr(self._block, name):
                name += "_"
            self._containers[key] = new()
            self._block.add_component(name, self._containers[key])
        return self._containers[key]


def _index(constraint: Any, *more: int) -> Any:
    """Return the set's index with more behind it; 0 for a scalar set without more."""
    index = constraint.index()
    if index is None:
        index = ()
    elif not isinstance(index, tuple):
        index = (index,)
    whole = (*index, *more) or (0,)
    if len(whole) == 1:
        return whole[0]
    return whole


@final
class OwnSets:
    """The sets of a program that a solver takes as its own: their binaries are 0 there, and their rows are left out.

    Parameters
    ----------
    sets
        All sets of the program.

    Attributes
    ----------
    sets
        Those whose members are all columns.
    binaries
        Their binaries, (n,).
    """

    __slots__ = ("_parts", "binaries", "sets")

    def __init__(self, sets: Sequence[OrderedSet]) -> None:
        self.sets = [one for one in sets if one.is_of_columns]
        self.binaries = np.concatenate([np.zeros(0, dtype=np.intp), *(one.binaries for one in self.sets)])
        self._parts = {id(part) for one in self.sets for part in one.parts}

    def __bool__(self) -> bool:
        return bool(self.sets)

    def states(self, row: Any) -> bool:
        """Tell whether a row stands for such a set in the program."""
        return id(row) in self._parts

    def complete(self, point: Vector) -> None:
        """Set the binaries of a point (n,) to what the members say, where it has values."""
        if self.sets and np.isfinite(point).all():
            for one in self.sets:
                point[one.binaries[one.place(one.sizes(point))]] = 1.0


def completed(sets: Sequence[OrderedSet], values: Mapping[int, float]) -> dict[int, float]:
    """Return values of columns with those of the binaries of each set whose members are all given."""
    whole = dict(values)
    for one in sets:
        columns = one.members[one.members >= 0].tolist()
        if not one.binaries.size or any(column not in whole for column in columns):
            continue
        sizes = np.abs(one.constants)
        sizes[one.members >= 0] = [abs(whole[column]) for column in columns]
        whole.update(dict.fromkeys(one.binaries.tolist(), 0.0))
        whole[int(one.binaries[one.place(sizes)])] = 1.0
    return whole


# ==== Bounds that linear rows imply ===================================================================================


def implied_bounds(compiled: Any) -> tuple[Vector, Vector]:
    r"""Return the bounds of the columns, (n,) each, with those that linear rows imply where a side has none.

    .. math::
        a_j x_j \le b^+ - \sum_{k \ne j} \min(a_k l_k, a_k u_k), \qquad
        a_j x_j \ge b^- - \sum_{k \ne j} \max(a_k l_k, a_k u_k)

    A few rounds, so that one bound serves the next. Data may move, and so bound nothing.
    """
    low = compiled.lb.copy()
    high = compiled.ub.copy()
    low[compiled.data] = -math.inf
    high[compiled.data] = math.inf
    A = compiled.A
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    column = A.indices
    value = A.data
    for _ in range(_ROUNDS):
        least = _rest(np.where(value > 0, value * low[column], value * high[column]), row, A.shape[0])
        most = _rest(np.where(value > 0, value * high[column], value * low[column]), row, A.shape[0])
        above = (compiled.row_ub[row] - least) / value
        below = (compiled.row_lb[row] - most) / value
        new_high = np.full(low.shape, math.inf)
        new_low = np.full(low.shape, -math.inf)
        np.minimum.at(new_high, column, np.where(value > 0, above, below))
        np.maximum.at(new_low, column, np.where(value > 0, below, above))
        before = np.isfinite(low).sum() + np.isfinite(high).sum()
        low = np.where(np.isfinite(low), low, new_low)
        high = np.where(np.isfinite(high), high, new_high)
        if np.isfinite(low).sum() + np.isfinite(high).sum() == before:
            break
    low[compiled.data] = compiled.lb[compiled.data]
    high[compiled.data] = compiled.ub[compiled.data]
    return low, high


def _rest(terms: Vector, row: NDArray[np.intp], n_rows: int) -> Vector:
    """Return the sum of the other terms of each term's row, infinite where one of them is."""
    infinite = np.isinf(terms)
    finite_terms = np.where(infinite, 0.0, terms)
    sums = np.zeros(n_rows)
    np.add.at(sums, row, finite_terms)
    counts = np.zeros(n_rows, dtype=np.intp)
    np.add.at(counts, row, infinite)
    sign = 1.0
    if infinite.any():
        sign = float(np.sign(terms[infinite][0]))
    return np.where(counts[row] - infinite > 0, sign * math.inf, sums[row] - finite_terms)


# ==== Piecewise forms that Pyomo states wrongly =======================================================================


def refuse_wrong_piecewise(model: Any) -> None:
    """Refuse ``pyo.Piecewise`` by big-M rows of a function that is neither convex nor concave.

    Pyomo's forms BIGM_BIN and BIGM_SOS1 let the value follow a piece beyond its own interval. Pyomo calls both
    deprecated for it. Of a convex or concave function no piece beyond is nearer than the own one, and they are exact.

    Raises
    ------
    UnsupportedProblemError
        There is one.
    """
    for block in model.block_data_objects(active=True, descend_into=True):
        points = getattr(block, "_domain_pts", None)
        values = getattr(block, "_range_pts", None)
        if points is None or values is None or block.component("BIGM_constraint1") is None:
            continue
        slopes = np.diff(np.asarray(values, dtype=float)) / np.diff(np.asarray(points, dtype=float))
        turns = np.diff(slopes)
        slack = 1e-12 * float(np.abs(slopes).max(initial=1.0))  # of slopes that are rounded
        if (turns > slack).any() and (turns < -slack).any():
            raise UnsupportedProblemError(
                _WHO, "exact rows of a piecewise function",
                f"Pyomo's big-M rows of {block.name!r}, which is neither convex nor concave, are none",
                "Take pw_repn='SOS2', 'INC' or another form.",
            )  # fmt: skip
