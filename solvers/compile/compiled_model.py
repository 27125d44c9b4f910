"""One walk over a ConcreteModel gives the arrays that every solver and check works on."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import ArrayLike
from pyomo.common.collections import ComponentMap
from pyomo.common.gc_manager import PauseGC
from pyomo.core.staleflag import StaleFlagManager

from ceopt.solvers.compile.convexity import is_convex
from ceopt.solvers.compile.pyomo_walker import ConeEntries, Recorder, Row, Walker, refuse_foreign_components
from ceopt.solvers.compile.quadratic_row_cone import cone_of
from ceopt.solvers.compile.rows_and_cones import Auxiliary, ConeRows, QuadraticRow, lower_triangle, resized
from ceopt.solvers.cones import Cone
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.manifest import check_held, held_of
from ceopt.solvers.problem import ProblemClass, Vector

__all__ = ["CompiledModel", "compile_model"]

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
        "A", "Q", "_idle", "_model", "c", "c0", "columns", "cones", "contradiction", "data", "index", "integer", "lb",
        "quadratics", "row_lb", "row_ub", "rows", "sense", "ub",
    )  # fmt: skip

    def __init__(self, model: Any, data: Sequence[Any]) -> None:
        refuse_foreign_components(model)
        check_held(model, "compile_model")
        self._model = model.model()  # Pyomo's components know theirs weakly alone, and without it have no names
        active = list(model.component_data_objects(pyo.Objective, active=True))
        if len(active) > 1:
            raise UnsupportedProblemError(
                "compile_model",
                "at most one active objective",
                f"the model has {len(active)}: {', '.join(repr(o.name) for o in active)}",
                "Deactivate all but one, or add them up in one expression.",
            )
        walker = Walker(Recorder(data))
        rows = []
        for constraint in model.component_data_objects(pyo.Constraint, active=True):
            checkpoint(_STAGE)
            rows.append(walker.row(constraint))
        objective = walker.objective(active[0]) if active else None
        _refuse_strays(model, walker.recorder.var_map.values())
        self.sense = 1 if not active or active[0].sense == pyo.minimize else -1
        self.contradiction: str | None = None
        self.columns: list[Any] = []
        self.rows: list[Any] = []
        self.index: Any = ComponentMap()
        self.A = sp.csr_array((0, 0))
        self.row_lb = self.row_ub = self.lb = self.ub = self.c = np.zeros(0)
        self.integer = np.zeros(0, dtype=bool)
        self.data = np.arange(len(data), dtype=np.int32)
        self.quadratics: list[QuadraticRow] = []
        self.cones: list[ConeRows] = []
        self._add_columns(list(walker.recorder.var_map.values()), len(data))
        self._add_rows([row for row in rows if row is not None])
        n = len(self.columns)
        self.c0 = objective.constant if objective else 0.0
        self.Q: Any = None
        if objective:
            self.c[list(objective.linear)] = list(objective.linear.values())
            if objective.quadratic:
                self.Q = lower_triangle(objective.quadratic, n)
        present = model.component_data_objects(pyo.Var, active=True, descend_into=True)
        self._idle = []
        for v in present:
            checkpoint(_STAGE)
            if not v.fixed and v not in self.index:
                self._idle.append((v, self._nearest_zero(v)))

    # -- shape ---------------------------------------------------------------------------------------------------------
    @property
    def problem_class(self) -> ProblemClass:
        """What a solver must support."""
        kinds = {cone.cone for cone in self.cones}
        convex = is_convex(self.Q, self.sense) and all(cone_of(row, self.lb) is not None for row in self.quadratics)
        return ProblemClass.of(
            integer=bool(self.integer.any()),
            quadratic=self.Q is not None,
            convex=convex,
            second_order=bool(self.quadratics) or not kinds.isdisjoint({Cone.SECOND_ORDER, Cone.ROTATED}),
            semidefinite=Cone.SEMIDEFINITE in kinds,
            exponential=Cone.EXPONENTIAL in kinds,
        )

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
        if isinstance(values, Mapping):
            unknown = [key for key in values if var.is_indexed() and key not in var]
            if unknown:
                raise UnknownNameError.among("set_data", f"index of {var.name}", unknown[0], var.index_set())
            numbers = [values.get(v.index(), math.nan) for v in members]
        else:
            numbers = np.atleast_1d(np.asarray(values, dtype=float)).tolist()
        if len(numbers) != len(members):
            raise InvalidValueError(
                "set_data",
                f"{len(members)} values for {var.name!r}",
                f"{len(numbers)} were given",
                "Give one per index.",
            )
        where = [self.index.get(v, len(self.data)) for v in members]
        for member, k, number in zip(members, where, numbers, strict=True):
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
            if (held := held_of(member)) is not None:
                held.check_one(member.parent_block(), member.index(), number, "set_data")
        self.lb[where] = self.ub[where] = numbers

    def append(self, constraint: Any) -> None:
        """Add an active Constraint (scalar, indexed or one of its data) below the rows; new Vars become columns.

        Raises
        ------
        UnsupportedProblemError
            It is neither linear nor quadratic nor a cone.
        """
        walker = Walker(Recorder(self.columns))
        members = list(constraint.values()) if constraint.is_indexed() else [constraint]
        rows = [walker.row(con) for con in members if con.active]
        self._add_columns(list(walker.recorder.var_map.values())[len(self.columns) :], 0)
        self._idle = [(v, value) for v, value in self._idle if v not in self.index]
        self._add_rows([row for row in rows if row is not None])

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
        other.columns, other.rows = [*self.columns, *columns], list(self.rows)
        other.lb, other.ub = np.concatenate([self.lb, lb]), np.concatenate([self.ub, ub])
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
            other.row_lb, other.row_ub = np.concatenate([self.row_lb, row_lb]), np.concatenate([self.row_ub, row_ub])
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
        activity, off = self.A @ x, x[self.integer]
        parts = (self.row_lb - activity, activity - self.row_ub, self.lb - x, x - self.ub, np.abs(off - np.round(off)))
        worst = [float(part.max()) for part in parts if part.size]
        worst += [row.violation(x) for row in self.quadratics]
        worst += [cone.violation(x) for cone in self.cones]
        return max([0.0, *worst])

    def assignment(self, x: ArrayLike) -> list[tuple[Any, float]]:
        """Return (VarData, value) for every Var: integers exact, fixed columns at their bound, idle Vars near zero."""
        return [*zip(self.columns, self._numbers(x), strict=True), *self._idle]

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
            point = self._point(x)
            for var in (member for container in only for member in _members(container)):
                if (k := self.index.get(var)) is not None:
                    value = float(self.lb[k] if self.lb[k] == self.ub[k] else point[k])
                    var.set_value(round(value) if self.integer[k] else value, skip_validation=True)
            return
        # As Pyomo's solvers load an answer, but without a call of Var.set_value each, which is most of a re-solve's
        # time, and without the pairs of assignment, which would set off a collection of a large model's garbage.
        StaleFlagManager.mark_all_as_stale()
        flag = StaleFlagManager.get_flag(0)
        for var, value in zip(self.columns, self._numbers(x), strict=True):
            var._value, var._stale = value, flag  # noqa: SLF001
        for var, value in self._idle:
            var.set_value(value, skip_validation=True)
        StaleFlagManager.mark_all_as_stale(delayed=True)

    # -- inside --------------------------------------------------------------------------------------------------------
    def _numbers(self, x: ArrayLike) -> list[Any]:
        """Return a Python number for each column: whole ones as int, fixed columns at their bound."""
        values = np.where(self.lb == self.ub, self.lb, self._point(x))
        numbers = values.astype(object)
        whole = np.round(values[self.integer])
        fits = np.abs(whole).max(initial=0.0) < 2.0**62
        numbers[self.integer] = whole.astype(np.int64) if fits else [int(value) for value in whole.tolist()]
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
        lower, upper = np.empty(len(new)), np.empty(len(new))
        for k, var in enumerate(new):
            checkpoint(_STAGE)
            self.index[var] = len(self.columns) + k
            if k < n_data:
                lower[k] = upper[k] = math.nan if var.value is None else var.value
            else:
                lower[k], upper[k] = self._bounds(var)
        self.columns += new
        self.lb, self.ub = np.concatenate([self.lb, lower]), np.concatenate([self.ub, upper])
        whole = [k >= n_data and var.is_integer() for k, var in enumerate(new)]
        self.integer = np.concatenate([self.integer, np.array(whole, dtype=bool)])
        self.c = np.concatenate([self.c, np.zeros(len(new))])
        n = len(self.columns)
        self.A = resized(self.A, (self.A.shape[0], n))
        if getattr(self, "Q", None) is not None:
            self.Q = sp.csc_array(resized(self.Q.tocsr(), (n, n)))
        self.quadratics = [row.widened(n) for row in self.quadratics]
        self.cones = [cone.widened(n) for cone in self.cones]

    def _add_rows(self, walked: list[Row | ConeEntries]) -> None:
        n, rows = len(self.columns), []
        for row in walked:
            if isinstance(row, ConeEntries):
                self.cones.append(ConeRows.of(row, n))
            elif row.is_broken_constant:
                self.contradiction = f"constraint {row.constraint.name!r}"
            elif row.quadratic:
                self.quadratics.append(QuadraticRow.of(row, n))
            elif row.columns:
                rows.append(row)
        indptr = np.cumsum([0, *(len(row.columns) for row in rows)], dtype=np.int32)
        indices = np.fromiter((k for row in rows for k in row.columns), dtype=np.int32, count=indptr[-1])
        values = np.fromiter((v for row in rows for v in row.values), dtype=np.float64, count=indptr[-1])
        block = sp.csr_array((values, indices, indptr), shape=(len(rows), len(self.columns)))
        self.A = sp.csr_array(sp.vstack([self.A, block])) if self.A.shape[0] else block
        self.A.sort_indices()
        self.rows += [row.constraint for row in rows]
        self.row_lb = np.concatenate([self.row_lb, np.array([row.lower for row in rows], dtype=np.float64)])
        self.row_ub = np.concatenate([self.row_ub, np.array([row.upper for row in rows], dtype=np.float64)])

    def _bounds(self, var: Any) -> tuple[float, float]:
        if not (var.is_integer() or var.is_continuous()):
            raise UnsupportedProblemError(
                "compile_model",
                "domains that are intervals of reals or of integers",
                f"Var {var.name!r} has domain {var.domain}",
                "State the domain with binaries.",
            )
        lower, upper = var.bounds
        low, high = -math.inf if lower is None else float(lower), math.inf if upper is None else float(upper)
        if math.isnan(low) or math.isnan(high):
            raise InvalidValueError(
                "compile_model", "bounds that are numbers", f"Var {var.name!r} has NaN", "Set the bound."
            )
        if var.is_integer():  # HiGHS 1.15.1 presolves better points away where such a bound is no whole number
            low = float(math.ceil(low - 1e-9)) if math.isfinite(low) else low
            high = float(math.floor(high + 1e-9)) if math.isfinite(high) else high
        if low > high:
            self.contradiction = f"the bounds of Var {var.name!r}"
        return low, high

    def _nearest_zero(self, var: Any) -> float:
        low, high = self._bounds(var)
        value = min(max(0.0, low), high)
        return int(value) if var.is_integer() else value


def compile_model(model: Any, data: Iterable[Any] = ()) -> CompiledModel:
    """Compile a ConcreteModel to arrays in one walk over its expressions.

    Parameters
    ----------
    model
        Active Constraints, linear, quadratic or a cone of :mod:`ceopt.solvers.cones`, and at most one active
        Objective, linear or quadratic.
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
        A coefficient or a bound is missing, NaN or infinite; or a Var does not hold the value that the rows of its
        block were derived from, as the block's manifest says: the row of a person in a block that is another's.
    """
    if not hasattr(model, "component_data_objects"):
        raise InvalidTypeError(
            "compile_model", "a Pyomo model", f"it got {type(model).__name__}", "Build a ConcreteModel."
        )
    with PauseGC():  # the walk makes many small objects that all die
        return CompiledModel(model, [member for var in data for member in _members(var)])


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


def _members(var: Any) -> list[Any]:
    return list(var.values()) if var.is_indexed() else [var]
