"""One walk over a ConcreteModel gives the arrays that every solver and check works on."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from pyomo.common.collections import ComponentMap
from pyomo.common.gc_manager import PauseGC
from pyomo.core.staleflag import StaleFlagManager
from pyomo.gdp.disjunct import AutoLinkedBinaryVar

from ceopt.solvers.compile.ordered_sets import (
    OrderedSet,
    SetRows,
    checked_sets,
    completed,
    members_of,
    refuse_wrong_piecewise,
    says_something,
)
from ceopt.solvers.compile.pyomo_walker import ConeEntries, Recorder, Row, Walker, refuse_foreign_components
from ceopt.solvers.compile.rows_and_cones import (
    Auxiliary,
    ConeRows,
    QuadraticRow,
    cone_of,
    is_convex,
    lower_triangle,
    resized,
)
from ceopt.solvers.cones import Cone
from ceopt.solvers.deadline import OutOfTimeError, deadline_now
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.manifest import check_held, held_of
from ceopt.solvers.problem import ProblemClass, Vector

# ==== How large the numbers of a program are: of its rows, its costs and what its objective adds up ===================

#: HiGHS and Gurobi refuse coefficients from here on, and SCIP calls them huge.
GREATEST_COEFFICIENT = 1e15


def rows_of_entries(A: sp.csr_array) -> NDArray[np.intp]:
    """Return the row of each stored entry, (nnz,)."""
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


def greatest_by_row(sizes: Vector, rows: Any, n: int) -> Vector:
    """Return the greatest size of each of ``n`` rows; 1 for a row without entries."""
    greatest = np.zeros(n)
    np.maximum.at(greatest, rows, sizes)
    return np.where(greatest > 0.0, greatest, 1.0)


def greatest_cost(compiled: CompiledModel) -> float:
    """Return the greatest coefficient of the objective, linear or quadratic; 0 without one."""
    quadratic = np.zeros(0)
    if compiled.Q is not None:
        quadratic = compiled.Q.data
    return float(np.abs(np.concatenate([compiled.c, quadratic])).max(initial=0.0))


def size_of_terms(compiled: CompiledModel, x: Vector) -> float:
    """Return the sum of the absolute values that add up to the objective: what its rounding is relative to."""
    size = abs(compiled.c0) + float(np.abs(compiled.c) @ np.abs(x))
    if compiled.Q is not None:
        size += float(np.abs(x) @ (abs(compiled.Q) @ np.abs(x)))
    return size


def power_of_two(value: float, rounded: Callable[[float], int] = round) -> float:
    """Return the power of two nearest to a positive value; the next above or below with ``math.ceil`` or ``floor``.

    At most 2^1000: a move by one unit in the last place of 0 costs 5e-324, whose inverse is infinite.
    """
    return 2.0 ** rounded(math.log2(min(value, 2.0**1000)))


def refuse_huge(who: str, parts: Iterable[Vector]) -> None:
    """Refuse coefficients of a size that solvers do not take.

    Raises
    ------
    InvalidValueError
        One is 1e15 or more.
    """
    greatest = max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)
    if greatest >= GREATEST_COEFFICIENT:
        raise InvalidValueError(
            who, "coefficients below 1e15", f"the greatest is {greatest:.3g}", "Choose units that are nearer to 1."
        )


# ==== One walk over a ConcreteModel gives the arrays that every solver and check works on =============================

#: What the time limit ends here.
_STAGE = "lowering the program to arrays"


@final
class CompiledModel:
    r"""A program in arrays, in the model's own units.

    .. math::
        \min \text{ or } \max\; c_0 + c^\top x + \tfrac12 x^\top Q x \quad\text{s.t.}\quad
        b^- \le A x \le b^+,\; l \le x \le u,\; x_k \in \mathbb{Z}\ (k \in I),

    and quadratic rows :math:`b^- \le a^\top x + \tfrac12 x^\top Q x \le b^+` and cones :math:`G x + g \in K`.

    ============== ============ ==================================================================
    attribute      shape        meaning
    ============== ============ ==================================================================
    A              (m, n) csr   rows of the active Constraints
    row_lb, row_ub (m,)         :math:`b^-, b^+`, infinite where absent; a range is one row
    c, c0          (n,), ()     linear objective and its constant; zero without an objective
    Q              (n, n) csc   lower triangle of the Hessian, or None
    quadratics     list         the quadratic rows, as :class:`~ceopt.solvers.compile.rows_and_cones.QuadraticRow`
    cones          list         the cones, as :class:`~ceopt.solvers.compile.rows_and_cones.ConeRows`
    sets           list         the SOS1 and SOS2 sets, as :class:`~ceopt.solvers.compile.ordered_sets.OrderedSet`;
                                their binaries and rows are among the columns and rows
    lb, ub         (n,)         bounds, whole for integers; equal for data columns; NaN for data without a value
    integer        (n,)         mask of the integer columns (data columns are fixed, so not among them)
    sense          ()           1 to minimise, -1 to maximise
    columns, rows  lists        the Pyomo VarData and ConstraintData
    index          mapping      VarData -> column
    data           (k,)         the columns that :meth:`set_data` moves
    contradiction  str or None  a component that is false whatever the variables; the program is infeasible
    ============== ============ ==================================================================
    """

    __slots__ = (
        "A", "Q", "_idle", "_linked", "_model", "c", "c0", "columns", "cones", "contradiction", "data", "index",
        "integer", "lb", "quadratics", "row_lb", "row_ub", "rows", "sense", "sets", "ub",
    )  # fmt: skip

    def __init__(self, model: Any, data: Sequence[Any]) -> None:
        refuse_foreign_components(model)
        if any(isinstance(component, pyo.Piecewise) for component in model.component_objects(pyo.Block, active=True)):
            refuse_wrong_piecewise(model)
        check_held(model, "compile_model")
        self._model = model.model()  # Pyomo's components know theirs weakly alone, and without it have no names
        stated = _objective_of(model)
        walker = Walker(Recorder(data))
        rows = _walked_rows(model, walker)
        objective = None
        if stated is not None:
            objective = walker.objective(stated)
        sets = list(model.component_data_objects(pyo.SOSConstraint, active=True))
        if sets:
            sets = checked_sets(sets)
        for constraint in sets:
            walker.recorder.meet(members_of(constraint))
        met = list(walker.recorder.var_map.values())
        _refuse_strays(model, met)
        self.sense = 1 if stated is None or stated.sense == pyo.minimize else -1
        self.contradiction: str | None = None
        self.columns: list[Any] = []
        self.rows: list[Any] = []
        self.index: Any = ComponentMap()
        self.A = sp.csr_array((0, 0))
        self.Q: Any = None
        self.c = np.zeros(0)
        self.c0 = 0.0
        self.lb = np.zeros(0)
        self.ub = np.zeros(0)
        self.row_lb = np.zeros(0)
        self.row_ub = np.zeros(0)
        self.integer = np.zeros(0, dtype=bool)
        self.data = np.arange(len(data), dtype=np.int32)
        self.quadratics: list[QuadraticRow] = []
        self.cones: list[ConeRows] = []
        self.sets: list[OrderedSet] = []
        self._linked: list[Any] = []
        self._add_columns(met, len(data))
        self._add_rows(rows)
        if objective is not None:
            self.c0 = objective.constant
            self.c[list(objective.linear)] = list(objective.linear.values())
            if objective.quadratic:
                self.Q = lower_triangle(objective.quadratic, len(self.columns))
        self._add_sets(sets)
        self._idle = self._idle_vars(model)

    # -- shape ---------------------------------------------------------------------------------------------------------
    @property
    def problem_class(self) -> ProblemClass:
        """The class of the program, which a solver must support."""
        kinds = {cone.cone for cone in self.cones}
        if not self._is_convex():
            if Cone.SEMIDEFINITE in kinds:
                return ProblemClass.NONCONVEX_CONIC
            if Cone.EXPONENTIAL in kinds:
                return ProblemClass.NONCONVEX_EXP
            return ProblemClass.NONCONVEX
        if Cone.SEMIDEFINITE in kinds:
            continuous = ProblemClass.SDP
            with_integers = ProblemClass.MISDP
        elif Cone.EXPONENTIAL in kinds:
            continuous = ProblemClass.EXP
            with_integers = ProblemClass.MIEXP
        elif self.quadratics or kinds:
            continuous = ProblemClass.SOCP
            with_integers = ProblemClass.MISOCP
        elif self.Q is not None:
            continuous = ProblemClass.QP
            with_integers = ProblemClass.MIQP
        else:
            continuous = ProblemClass.LP
            with_integers = ProblemClass.MILP
        if self.integer.any():
            return with_integers
        return continuous

    def _is_convex(self) -> bool:
        if self.Q is not None and not is_convex(self.Q, self.sense):
            return False
        return all(cone_of(row, self.lb) is not None for row in self.quadratics)

    @property
    def idle(self) -> list[tuple[Any, float]]:
        """The free Vars that occur nowhere, each with the value that it is loaded with."""
        return self._idle

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of linear rows, columns, quadratic rows and cones: what :meth:`append` changes."""
        return *self.A.shape, len(self.quadratics), len(self.cones)

    # -- changing it ---------------------------------------------------------------------------------------------------
    def set_data(self, var: Any, values: Any) -> None:
        """Move data columns to other values, without recompiling.

        Parameters
        ----------
        var
            A Var (indexed or not) that was listed in ``data`` of :func:`compile_model`.
        values
            A number for a scalar Var; a mapping by index, or numbers in the Var's order, for an indexed one.

        Raises
        ------
        InvalidValueError
            A value is missing, not finite, or other than the one that the Var's block was built around; or the Var is
            no data.
        """
        members = _members(var)
        numbers = _numbers_for(var, members, values)
        where = []
        for member, number in zip(members, numbers, strict=True):
            k = self.index.get(member, len(self.data))
            if k >= len(self.data):
                raise InvalidValueError(
                    "set_data",
                    "a Var that is data",
                    f"{member.name!r} is a variable of the program",
                    "List it in compile_model(model, data=[...]).",
                )
            if not math.isfinite(number):
                raise InvalidValueError(
                    "set_data", "finite values", f"{member.name!r} gets {number}", "Give a number for every index."
                )
            held = held_of(member)
            if held is not None:
                held.check_one(member.parent_block(), member.index(), number, "set_data")
            where.append(k)
        self.lb[where] = numbers
        self.ub[where] = numbers

    def set_bounds(self, var: Any) -> None:
        """Take over the bounds that a Var of the program has now, or the value at which it is fixed now.

        Raises
        ------
        InvalidValueError
            It was fixed when the program was compiled, which is a constant of it, or is not in the program at all; or
            it is fixed at no number that it may take.
        """
        column = self.index.get(var)
        if column is None:
            at = next((k for k, (idle, _) in enumerate(self._idle) if idle is var), None)
            if at is None:
                then = "Name free Vars of the model."
                raise InvalidValueError("set", "Vars of the program", f"{var.name!r} is none of its variables", then)
            self._idle = [*self._idle[:at], (var, self._nearest_zero(var)), *self._idle[at + 1 :]]
            return
        if self.contradiction == _crossing(var):
            self.contradiction = None
        low, high = self._bounds(var)
        if var.fixed:
            low = high = _fixed_value(var)
        self.lb = self.lb.copy()
        self.ub = self.ub.copy()
        self.lb[column] = low
        self.ub[column] = high
        if bool(self.integer[column]) is not var.is_integer():
            self.integer = self.integer.copy()
            self.integer[column] = var.is_integer()

    def has_bounds_of(self, var: Any) -> bool:
        """Return whether the column of a Var has the bounds, the domain and the fixed value that the Var has now."""
        column = self.index[var]
        contradiction = self.contradiction
        low, high = (var.value, var.value) if var.fixed else self._bounds(var)
        self.contradiction = contradiction
        same = bool(self.lb[column] == low) and bool(self.ub[column] == high)
        return same and bool(self.integer[column]) is var.is_integer()

    def set_objective(self, objective: Any) -> None:
        """Take over another objective, linear or quadratic; its new Vars become columns.

        Raises
        ------
        UnsupportedProblemError
            It is neither linear nor quadratic.
        """
        walker = Walker(Recorder(self.columns))
        walked = walker.objective(objective)
        self._meet(walker)
        self.sense = 1 if objective.sense == pyo.minimize else -1
        self.c0 = walked.constant
        self.c = np.zeros(len(self.columns))
        self.c[list(walked.linear)] = list(walked.linear.values())
        self.Q = lower_triangle(walked.quadratic, len(self.columns)) if walked.quadratic else None

    def _meet(self, walker: Walker) -> None:
        """Add columns for the Vars that a walker met beside those of the program."""
        met = list(walker.recorder.var_map.values())[len(self.columns) :]
        if not met:
            return
        _refuse_strays(self._model, met)
        self._add_columns(met, 0)
        self._idle = [(var, value) for var, value in self._idle if var not in self.index]

    def append(self, constraint: Any) -> None:
        """Add an active Constraint (scalar, indexed or one of its data) below the rows; new Vars become columns.

        So is an SOSConstraint, with its binaries.

        Raises
        ------
        UnsupportedProblemError
            It is neither linear nor quadratic nor a cone.
        UnboundedFeatureError
            It is a set, and a Var in it has an infinite bound that no row implies.
        """
        self.append_all(_members(constraint))

    def append_all(self, constraints: Iterable[Any], *, rows_alone: bool = False) -> bool:
        """Add the members of Constraints as :meth:`append` does, all of them at once.

        Parameters
        ----------
        constraints
            Single ones.
        rows_alone
            Return False, and add nothing, unless all are linear rows over the columns that there are.
        """
        walker = Walker(Recorder(self.columns))
        rows = []
        sets = []
        for member in constraints:
            row = None
            if member.ctype is pyo.SOSConstraint:
                if member.active and says_something(member):
                    walker.recorder.meet(members_of(member))
                    sets.append(member)
                continue
            if member.active:
                row = walker.row(member)
            if row is not None:
                rows.append(row)
        if rows_alone and (sets or len(walker.recorder.var_map) > len(self.columns) or not all(map(_is_linear, rows))):
            return False
        self._meet(walker)
        self._add_rows(rows)
        self._add_sets(sets)
        return True

    def frozen(self) -> CompiledModel:
        """Return the program as it is now, which later changes of this one leave as it is; points go with it."""
        other = copy.copy(self)
        other.columns = list(self.columns)
        other.rows = list(self.rows)
        other.quadratics = list(self.quadratics)
        other.cones = list(self.cones)
        other.sets = list(self.sets)
        other._linked = list(self._linked)  # noqa: SLF001
        return other

    def extended(
        self,
        *,
        columns: Sequence[Auxiliary] = (),
        lb: ArrayLike = (),
        ub: ArrayLike = (),
        A: Any = None,
        row_lb: ArrayLike = (),
        row_ub: ArrayLike = (),
    ) -> CompiledModel:
        """Return a program with further columns behind, without cost, and further linear rows below.

        It shares nothing with this one that either changes; a solution of it begins with one of this program.

        Parameters
        ----------
        columns, lb, ub
            (k,) each.
        A, row_lb, row_ub
            (r, n + k) sparse, and its sides; None adds no rows.
        """
        other = copy.copy(self)
        n = len(self.columns) + len(columns)
        other.columns = [*self.columns, *columns]
        other.rows = list(self.rows)
        other.lb = np.concatenate([self.lb, lb])
        other.ub = np.concatenate([self.ub, ub])
        whole = np.array([column.integer for column in columns], dtype=bool)
        other.integer = np.concatenate([self.integer, whole])
        other.c = np.concatenate([self.c, np.zeros(len(columns))])
        other.A = resized(self.A, (self.A.shape[0], n))
        other.Q = None if self.Q is None else sp.csc_array(resized(self.Q.tocsr(), (n, n)))
        other.quadratics = [row.widened(n) for row in self.quadratics]
        other.cones = [cone.widened(n) for cone in self.cones]
        if A is not None:
            other.A = sp.csr_array(sp.vstack([other.A, sp.csr_array(A)]))
            other.A.sort_indices()
            other.rows += [None] * A.shape[0]
            other.row_lb = np.concatenate([self.row_lb, row_lb])
            other.row_ub = np.concatenate([self.row_ub, row_ub])
        return other

    # -- points --------------------------------------------------------------------------------------------------------
    def evaluate(self, x: ArrayLike) -> float:
        """Return the objective at ``x``, shape (n,)."""
        x = self._point(x)
        value = self.c0 + float(self.c @ x)
        if self.Q is not None:
            value += float(x @ (self.Q @ x)) - 0.5 * float(self.Q.diagonal() @ (x * x))
        return value

    def violation(self, x: ArrayLike) -> float:
        """Return the greatest violation of a row, cone, bound or integer at ``x``; inf for NaN or a contradiction."""
        x = self._point(x)
        if self.contradiction is not None or not np.isfinite(x).all():
            return math.inf
        activity = self.A @ x
        whole = x[self.integer]
        worst = 0.0
        for excess in (
            self.row_lb - activity,
            activity - self.row_ub,
            self.lb - x,
            x - self.ub,
            np.abs(whole - np.round(whole)),
        ):
            worst = max(worst, float(excess.max(initial=0.0)))
        for row in self.quadratics:
            worst = max(worst, row.violation(x))
        for cone in self.cones:
            worst = max(worst, cone.violation(x))
        for one in self.sets:
            worst = max(worst, one.violation(x))
        return worst

    def completed(self, values: Mapping[int, float]) -> dict[int, float]:
        """Return a start, column -> value, with the binaries of the sets whose members it has."""
        if not self.sets:
            return dict(values)
        return completed(self.sets, values)

    @property
    def set_binaries(self) -> NDArray[np.intp]:
        """The columns that sets added: binaries that are no Var of the model."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *(one.binaries for one in self.sets)])

    def assignment(self, x: ArrayLike) -> list[tuple[Any, float]]:
        """Return (VarData, value) for every Var: integers exact, fixed columns at their bound, idle Vars near zero."""
        pairs = list(zip(self.columns, self._numbers(x), strict=True))
        for column in sorted(self.set_binaries.tolist(), reverse=True):
            del pairs[column]
        return [*pairs, *self._idle]

    def load(self, x: ArrayLike, only: Iterable[Any] | None = None) -> None:
        """Set the Vars of the model to ``x``; Vars that occur nowhere get the value nearest 0.

        Parameters
        ----------
        x
            (n,).
        only
            Vars (indexed or scalar) to set, where few are read; the others keep the values that they have.
        """
        if only is not None:
            self._load_some(self._point(x), only)
            return
        # As Pyomo's solvers load an answer, but without a call of Var.set_value each, which is most of a re-solve's
        # time, and without the pairs of assignment, which would set off a collection of a large model's garbage.
        StaleFlagManager.mark_all_as_stale()
        flag = StaleFlagManager.get_flag(0)
        for var, value in zip(self.columns, self._numbers(x), strict=True):
            var._value = value  # noqa: SLF001
            var._stale = flag  # noqa: SLF001
        for var in self._linked:
            var.set_value(var._value, skip_validation=True)  # noqa: SLF001 - sets the BooleanVar of a Disjunct, too
        for var, value in self._idle:
            var.set_value(value, skip_validation=True)
        StaleFlagManager.mark_all_as_stale(delayed=True)

    # -- inside --------------------------------------------------------------------------------------------------------
    def _load_some(self, point: Vector, only: Iterable[Any]) -> None:
        for container in only:
            for var in _members(container):
                k = self.index.get(var)
                if k is None:
                    continue
                is_fixed = self.lb[k] == self.ub[k]
                value = float(self.lb[k]) if is_fixed else float(point[k])
                var.set_value(round(value) if self.integer[k] else value, skip_validation=True)

    def _numbers(self, x: ArrayLike) -> list[Any]:
        """Return a Python number for each column: whole ones as int, fixed columns at their bound."""
        values = np.where(self.lb == self.ub, self.lb, self._point(x))
        numbers = values.astype(object)
        whole = np.round(values[self.integer])
        if np.abs(whole).max(initial=0.0) < 2.0**62:
            numbers[self.integer] = whole.astype(np.int64)
        else:  # numpy's integers end at 2^63, Python's do not
            numbers[self.integer] = [int(value) for value in whole.tolist()]
        for k in self.data.tolist():
            if self.columns[k].is_integer() and values[k].is_integer():
                numbers[k] = int(values[k])
        listed: list[Any] = numbers.tolist()
        return listed

    def _point(self, x: ArrayLike) -> Vector:
        point = np.asarray(x, dtype=np.float64)
        if point.shape != (len(self.columns),):
            raise InvalidValueError(
                "A compiled model",
                f"points of shape ({len(self.columns)},)",
                f"x has shape {point.shape}",
                "Give all columns.",
            )
        return point

    def _add_columns(self, new: list[Any], n_data: int) -> None:
        """Add columns for new Vars, of which the first ``n_data`` are data."""
        deadline = deadline_now()
        lower = np.empty(len(new))
        upper = np.empty(len(new))
        whole = np.zeros(len(new), dtype=bool)
        for k, var in enumerate(new):
            if time.perf_counter() >= deadline:
                raise OutOfTimeError(_STAGE)
            self.index[var] = len(self.columns) + k
            if k < n_data:
                value = math.nan if var.value is None else var.value
                lower[k] = value
                upper[k] = value
            else:
                lower[k], upper[k] = self._bounds(var)
                whole[k] = var.is_integer()
        self.columns += new
        self._linked += [var for var in new if var.__class__ is AutoLinkedBinaryVar]
        self.lb = np.concatenate([self.lb, lower])
        self.ub = np.concatenate([self.ub, upper])
        self.integer = np.concatenate([self.integer, whole])
        self.c = np.concatenate([self.c, np.zeros(len(new))])
        n = len(self.columns)
        if self.A.shape[0]:
            self.A = resized(self.A, (self.A.shape[0], n))
        if self.Q is not None:
            self.Q = sp.csc_array(resized(self.Q.tocsr(), (n, n)))
        self.quadratics = [row.widened(n) for row in self.quadratics]
        self.cones = [cone.widened(n) for cone in self.cones]

    def _add_rows(self, walked: list[Row | ConeEntries]) -> None:
        """Add walked rows, whose Vars have columns already, each to the list of its kind."""
        n = len(self.columns)
        rows = []
        for row in walked:
            if isinstance(row, ConeEntries):
                self.cones.append(ConeRows.of(row, n))
            elif row.is_broken_constant:
                self.contradiction = f"constraint {row.constraint.name!r}"
            elif row.quadratic:
                self.quadratics.append(QuadraticRow.of(row, n))
            elif row.columns:
                rows.append(row)
        starts = [0]
        columns: list[int] = []
        values: list[float] = []
        for row in rows:
            columns += row.columns
            values += row.values
            starts.append(len(columns))
        arrays = (np.array(values, dtype=np.float64), np.array(columns, np.int32), np.array(starts, np.int32))
        block = sp.csr_array(arrays, shape=(len(rows), n))
        if self.A.shape[0]:
            block = sp.csr_array(sp.vstack([self.A, block]))
        self.A = block
        self.A.sort_indices()
        self.rows += [row.constraint for row in rows]
        self.row_lb = np.concatenate([self.row_lb, np.array([row.lower for row in rows], dtype=np.float64)])
        self.row_ub = np.concatenate([self.row_ub, np.array([row.upper for row in rows], dtype=np.float64)])

    def _add_sets(self, constraints: list[Any]) -> None:
        """Add the binaries and rows of sets, whose Vars have columns already."""
        if not constraints:
            return
        lowering = SetRows(self, constraints)
        walker = Walker(Recorder(self.columns))
        rows = [row for row in map(walker.row, lowering.rows) if row is not None]
        self._add_columns(list(walker.recorder.var_map.values())[len(self.columns) :], 0)
        self._add_rows(rows)
        self.sets += lowering.sets()

    def _bounds(self, var: Any) -> tuple[float, float]:
        if not (var.is_integer() or var.is_continuous()):
            raise UnsupportedProblemError(
                "compile_model",
                "domains that are intervals of reals or of integers",
                f"Var {var.name!r} has domain {var.domain}",
                "State the domain with binaries.",
            )
        lower, upper = var.bounds
        low = -math.inf
        if lower is not None:
            low = float(lower)
        high = math.inf
        if upper is not None:
            high = float(upper)
        if math.isnan(low) or math.isnan(high):
            raise InvalidValueError(
                "compile_model", "bounds that are numbers", f"Var {var.name!r} has NaN", "Set the bound."
            )
        if var.is_integer():  # HiGHS 1.15.1 presolves better points away where such a bound is no whole number
            if math.isfinite(low):
                low = float(math.ceil(low - 1e-9))
            if math.isfinite(high):
                high = float(math.floor(high + 1e-9))
        if low > high:
            self.contradiction = _crossing(var)
        return low, high

    def _idle_vars(self, model: Any) -> list[tuple[Any, float]]:
        """Return the free Vars that occur nowhere, each with the value that it is loaded with."""
        deadline = deadline_now()
        idle = []
        for var in model.component_data_objects(pyo.Var, active=True, descend_into=True):
            if time.perf_counter() >= deadline:
                raise OutOfTimeError(_STAGE)
            if not var.fixed and var not in self.index:
                idle.append((var, self._nearest_zero(var)))
        return idle

    def _nearest_zero(self, var: Any) -> float:
        low, high = self._bounds(var)
        value = min(max(0.0, low), high)
        if var.is_integer():
            return int(value)
        return value


def compile_model(model: Any, data: Iterable[Any] = ()) -> CompiledModel:
    """Compile a ConcreteModel to arrays in one walk over its expressions.

    Parameters
    ----------
    model
        Active Constraints, linear, quadratic or a cone of :mod:`ceopt.solvers.cones`; SOSConstraints over Vars with
        finite bounds; and at most one active Objective, linear or quadratic.
    data
        Fixed Vars (indexed or scalar) that hold one instance of a program whose rows are right for every instance.
        They become columns with equal bounds, so that :meth:`CompiledModel.set_data` moves to another instance without
        recompiling. A product of data with a variable is therefore quadratic, and not convex. All other fixed Vars are
        constants.

    Raises
    ------
    UnsupportedProblemError
        Several active objectives, another nonlinear row or objective, a component that is not algebra, or a Var that
        belongs to no block of the model.
    InvalidValueError
        A coefficient or a bound is missing, NaN or infinite; a set has a Var twice; or a Var does not hold the value
        that the rows of its block were derived from, as the block's manifest says: the row of a person in a block that
        is another's.
    UnboundedFeatureError
        A Var in a set has an infinite bound, and no row implies one.
    """
    if not hasattr(model, "component_data_objects"):
        raise InvalidTypeError(
            "The solver",
            "a Pyomo model",
            f"it got {type(model).__name__}",
            "Build a ConcreteModel; read(path) makes one of a file.",
        )
    with PauseGC():  # the walk makes many small objects that all die
        return CompiledModel(model, [member for var in data for member in _members(var)])


def _fixed_value(var: Any) -> float:
    value = var.value
    if value is None or not math.isfinite(value) or (var.is_integer() and value != round(value)):
        kind = "a whole number" if var.is_integer() else "a number"
        raise InvalidValueError("set", f"{kind} for a fixed Var", f"{var.name!r} has {value!r}", "Fix it at one.")
    return float(value)


def _is_linear(row: Row | ConeEntries) -> bool:
    """Whether a constraint is a linear row, and no false constant."""
    return isinstance(row, Row) and not row.quadratic and not row.is_broken_constant


def _crossing(var: Any) -> str:
    """Return what a program of a Var whose bounds cross says."""
    return f"the bounds of Var {var.name!r}"


def _objective_of(model: Any) -> Any | None:
    """Return the one active objective; None without one."""
    active = list(model.component_data_objects(pyo.Objective, active=True))
    if len(active) > 1:
        raise UnsupportedProblemError(
            "compile_model",
            "at most one active objective",
            f"the model has {len(active)}: {', '.join(repr(o.name) for o in active)}",
            "Deactivate all but one, or add them up in one expression.",
        )
    if active:
        return active[0]
    return None


def _walked_rows(model: Any, walker: Walker) -> list[Row | ConeEntries]:
    """Return every active constraint that bounds something, as the walker reads it."""
    deadline = deadline_now()
    rows = []
    for constraint in model.component_data_objects(pyo.Constraint, active=True):
        if time.perf_counter() >= deadline:
            raise OutOfTimeError(_STAGE)
        row = walker.row(constraint)
        if row is not None:
            rows.append(row)
    return rows


def _refuse_strays(model: Any, variables: Iterable[Any]) -> None:
    """Refuse variables of a block that was never added to the model: the rows of that block are not in it."""
    root = model.model()
    containers = {id(container): container for container in (v.parent_component() for v in variables)}
    for container in containers.values():
        if container.model() is not root:
            raise UnsupportedProblemError(
                "compile_model",
                "the Vars of this model",
                f"{container.name!r} belongs to none of its blocks",
                "Add its block to the model first: m.x = Factual(...), or the Var itself.",
            )


def _numbers_for(var: Any, members: list[Any], values: Any) -> list[float]:
    """Return one number per member of a Var, NaN where a mapping leaves one out."""
    if isinstance(values, Mapping):
        if var.is_indexed():
            unknown = [key for key in values if key not in var]
            if unknown:
                raise UnknownNameError.among("set_data", f"index of {var.name}", unknown[0], var.index_set())
        numbers = [values.get(member.index(), math.nan) for member in members]
    else:
        numbers = np.atleast_1d(np.asarray(values, dtype=float)).tolist()
    if len(numbers) != len(members):
        raise InvalidValueError(
            "set_data",
            f"{len(members)} values for {var.name!r}",
            f"{len(numbers)} were given",
            "Give one per index.",
        )
    return numbers


def _members(component: Any) -> list[Any]:
    """Return the members of a component: all of an indexed one, a scalar one itself."""
    if component.is_indexed():
        return list(component.values())
    return [component]
