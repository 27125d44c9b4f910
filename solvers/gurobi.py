r"""Gurobi over a compiled model: linear and quadratic programs, convex or not, second-order cones, integers.

Exponential cones are taken beside quadratics that are not convex, as SCIP takes them: :math:`z \ge c\, e^{x/c}` with a
number c > 0 is :math:`e = e^{x/c}` as a nonlinear constraint, and :math:`c\, e \le z`.
"""

from __future__ import annotations

import difflib
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.adapter import (
    AbstractSession,
    Option,
    RunResult,
    SolveRun,
    apply_options,
    status_of,
    why_stopped,
    without_a_best,
)
from ceopt.solvers.compile.compiled_model import CompiledModel, greatest_cost, power_of_two, refuse_huge, size_of_terms
from ceopt.solvers.compile.ordered_sets import OwnSets
from ceopt.solvers.compile.quadratic_cones import cones_as_quadratics
from ceopt.solvers.compile.rows_and_cones import ConeRows, QuadraticRow, is_convex
from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import MissingLicenceError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.highs import best_conceivable, first_scale
from ceopt.solvers.problem import ProblemClass, Stop, StopTable, Vector
from ceopt.solvers.registry import SOLVERS, Licence
from ceopt.solvers.tolerances import (
    BARRIER_COARSEST,
    CUT_SHORT_VIOLATION,
    GUROBI_DUAL_RESIDUAL,
    GUROBI_MISSED_CONE,
    GUROBI_NOTHING,
    GUROBI_ROUNDING,
    GUROBI_TOLERANCE,
    LARGE_ROW_SHRINK,
    LEAST_GAP,
    NO_QUADRATIC_TERMS,
    NOTABLE_VIOLATION,
)
from ceopt.solvers.trust import contradicts

# ==== Gurobi's environment, started silently, and what its licence allows, looked for once ============================

# Found by bisection with gurobipy 13.0.3. Quadratic rows count as rows, columns with equal bounds as variables, and
# Gurobi's own range rows would each add a variable.
_VARIABLES = 2000
_ROWS = 2000
_QUADRATIC_VARIABLES = 200
_ROWS_OF_EXPONENTIAL = 3  # the nonlinear constraint counts as two

_own = threading.local()
_inherited: list[Any] = []


def environment() -> Any:
    """Return the silent environment of this thread and process, started on first use.

    Environments are not safe to share between threads, and one that was started before a fork belongs to the parent:
    the child keeps it untouched and starts its own.
    """
    import gurobipy

    if getattr(_own, "process", None) != os.getpid():
        if hasattr(_own, "environment"):
            _inherited.append(_own.environment)
        started: Any = gurobipy.Env(empty=True)
        started.setParam("OutputFlag", 0)  # before it starts, or it prints its banner
        started.start()
        _own.environment = started
        _own.process = os.getpid()
    return _own.environment


@cache
def licence() -> Licence:
    """Look once for a licence and for its size, without printing."""
    try:
        import gurobipy
    except ImportError as error:
        return Licence(why_not=f"gurobipy cannot be imported: {_plain(error)}.")
    try:
        with gurobipy.Model(env=environment()) as probe:
            probe.addMVar(_VARIABLES + 1)
            probe.optimize()
    except gurobipy.GurobiError as error:
        if error.errno == gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED:
            limits = f"{_VARIABLES:,} variables, {_ROWS:,} rows, {_QUADRATIC_VARIABLES} variables with quadratic terms"
            return Licence(limits=limits, refusal=_refusal)
        return Licence(why_not=f"Gurobi has no valid licence: {_plain(error)}.")
    return Licence()


def refuse(compiled: CompiledModel, why: str) -> MissingLicenceError:
    """Return the error for a model that the licence does not take, naming open solvers that take it."""
    needed = compiled.problem_class
    others = [repr(s.name) for s in SOLVERS.values() if s.licence is None and needed in s.classes]
    then = "Restate the model."
    if others:
        then = f"Use solver {' or '.join(others)}."
    return MissingLicenceError("Gurobi", "a licence that takes this model", why.rstrip("."), then)


def _refusal(compiled: CompiledModel) -> str:
    """Return which limit of a small licence a model passes, counted as it would be handed over; empty if none."""
    if any(not cone.cone.heads for cone in compiled.cones) and not _takes_exponentials(compiled):
        return ""  # refused for its class, whatever its size
    program = cones_as_quadratics(compiled)
    is_quadratic = program.Q is not None or bool(program.quadratics) or bool(program.cones)
    own = OwnSets(program.sets)
    handed = np.array([not own.states(row) for row in program.rows], dtype=bool)
    sides = [(program.row_lb[handed], program.row_ub[handed])]
    sides += [(np.array([row.lower]), np.array([row.upper])) for row in program.quadratics]
    rows = sum(int((np.isfinite(low) & (low != high)).sum() + np.isfinite(high).sum()) for low, high in sides)
    rows += _ROWS_OF_EXPONENTIAL * len(program.cones) + len(own.sets)
    variables = len(program.columns) + len(program.cones)
    terms = " where there is a quadratic term" if is_quadratic else ""
    for limit, count, what in (
        (_QUADRATIC_VARIABLES if is_quadratic else _VARIABLES, variables, f"variables{terms}"),
        (_ROWS, rows, "rows (a row with two sides is two)"),
    ):
        if count > limit:
            more = f"{count - limit:,} too many"
            return f"Gurobi's size-limited licence takes {limit:,} {what} and this model has {count:,}, {more}."
    return ""


def _takes_exponentials(compiled: CompiledModel) -> bool:
    """Whether the exponential cones of a program are taken: beside quadratics that are not convex."""
    return compiled.problem_class is ProblemClass.NONCONVEX_EXP


def _plain(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


# ==== A program inside Gurobi: handed over once, then changed in place ================================================

# A row that adds up numbers beyond 1e5 cannot be held to 1e-9 in double precision: without this, a mixed-integer
# program with sides near 1e8 was called infeasible. Handed over in a thousandth, it is held to 1e-6, Gurobi's own.
_LARGE = 2.0**17


@final
class GurobiModel:
    """The columns, rows and objective of a compiled model, with no cones but exponential ones, as a ``gurobipy.Model``.

    Sets of kinds 1 and 2 are handed over as Gurobi's own, without their rows and with their binaries at 0: 14 piecewise
    functions took .14 to .21 s, and .16 to .5 s by binaries. Every other column is handed over as it is, fixed ones
    too: in recourse models at most 3 of 80 were fixed and not data, so that leaving them out would not bring a model
    below a licence's limit. A row with two sides becomes two, because Gurobi's own range rows each add a variable, of
    which there may be only 200.

    Parameters
    ----------
    program
        What is handed over; data columns without a value are 0 until :meth:`move_data`.
    environment
        A started ``gurobipy.Env``.

    Attributes
    ----------
    focus
        Gurobi's parameter NumericFocus where no row is in finer units.
    has_pool
        Whether Gurobi's own n best can be relied on. It tells points apart by their integers alone, and keeps for these
        the first continuous part that it meets: the best with linear rows and a convex objective (100 of 100 random
        programs), but not with quadratic rows, where it even called the worse part optimal (Gurobi 13.0.3).
    chosen
        The parameters that the caller chose, which stay as they are.
    n_rows
        How many linear rows of the program Gurobi holds.
    """

    def __init__(self, program: CompiledModel, environment: Any) -> None:
        import gurobipy

        self.program = program
        self.inner: Any = gurobipy.Model(env=environment)
        kinds = np.where(program.integer, gurobipy.GRB.INTEGER, gurobipy.GRB.CONTINUOUS)
        lower = np.nan_to_num(program.lb, nan=0.0, posinf=np.inf, neginf=-np.inf)
        upper = np.nan_to_num(program.ub, nan=0.0, posinf=np.inf, neginf=-np.inf)
        self._own = OwnSets(program.sets)
        lower[self._own.binaries] = upper[self._own.binaries] = 0.0
        self.x: Any = self.inner.addMVar(len(program.columns), lb=lower, ub=upper, vtype=kinds)
        self.inner.ModelSense = program.sense
        linear_rows = bool(program.integer.any()) and not program.quadratics and not self._own
        self.has_pool = linear_rows and is_convex(program.Q, program.sense)
        self._curved: list[Any] = []
        self._units: tuple[float, ...] = ()
        self._scale = 0.0
        self.focus = 0
        self.chosen: frozenset[str] = frozenset()
        self.n_rows = 0
        self._is_newer = int(gurobipy.gurobi.version()[0]) >= 13
        self.add_rows(0)
        variables = self.x.tolist()
        for one in self._own.sets:
            self.inner.addSOS(one.kind, [variables[k] for k in one.members.tolist()], list(range(len(one.members))))
        for cone in program.cones:
            self._add_exponential(cone)
        self.set_units((1.0,) * len(program.quadratics))

    @property
    def is_presolve_doubtful(self) -> bool:
        """Whether Gurobi's presolve may cut the optimum off: quadratic rows beside an integer without a finite bound.

        Seen with Gurobi 13.0.3: a worse point called optimal, and without heuristics "unbounded". With finite bounds,
        without presolve, or without its dual reductions or aggregations, it was right.
        """
        program = self.program
        free = program.integer & ~(np.isfinite(program.lb) & np.isfinite(program.ub))
        free[program.data] = False
        return bool(program.quadratics) and bool(free.any())

    @contextmanager
    def tuned(self, parameters: Mapping[str, float]) -> Iterator[None]:
        """Set parameters for as long as the context lasts, but none that the caller chose."""
        new = {name: value for name, value in parameters.items() if name not in self.chosen}
        before = {name: getattr(self.inner.Params, name) for name in new}
        try:
            for name, value in new.items():
                self.inner.setParam(name, value)
            yield
        finally:
            for name, value in before.items():
                self.inner.setParam(name, value)

    def add_rows(self, first: int) -> None:
        """Hand over the linear rows from ``first`` on."""
        self.n_rows = self.program.A.shape[0]
        is_of_set = list(map(self._own.states, self.program.rows[first:]))
        for A, sense, sides in self._one_sided(first + np.flatnonzero(np.logical_not(is_of_set))):
            self.inner.addMConstr(A, self.x, sense, sides)

    def _add_exponential(self, cone: ConeRows) -> None:
        """Add z >= c exp(x / c), where c is a number: the exponential is a variable that no point of ours has."""
        from gurobipy import nlfunc

        x, c, z = cone.constant.tolist()
        power, _, height = (cone.matrix[[k]] @ self.x for k in range(3))
        exponential = self.inner.addVar()
        self.inner.addGenConstrNL(exponential, nlfunc.exp((power.item() + x) / c))
        self.inner.addConstr(c * exponential <= height.item() + z)

    def add_lazily(self, rows: NDArray[np.intp]) -> None:
        """Hand over linear rows from within the callback of a candidate that breaks them."""
        import gurobipy

        x = self.x.tolist()
        for A, sense, sides in self._one_sided(rows):
            for r, side in enumerate(sides.tolist()):
                entries = slice(A.indptr[r], A.indptr[r + 1])
                columns = [x[k] for k in A.indices[entries].tolist()]
                self.inner.cbLazy(gurobipy.LinExpr(A.data[entries].tolist(), columns), sense, side)

    def _one_sided(self, rows: NDArray[np.intp]) -> Iterator[tuple[sp.csr_array, str, Vector]]:
        """Give the sides of rows as Gurobi gets them: coefficients, sense and right-hand sides."""
        program = self.program
        A = program.A[rows]
        low = program.row_lb[rows]
        high = program.row_ub[rows]
        shrink = np.where(_sizes(A, low, high, program) > _LARGE, LARGE_ROW_SHRINK, 1.0)
        A = sp.diags_array(shrink, format="csr") @ A
        low = low * shrink
        high = high * shrink
        equal = low == high
        for sense, sides, chosen in (
            ("=", low, equal),
            (">", low, np.isfinite(low) & ~equal),
            ("<", high, np.isfinite(high) & ~equal),
        ):
            at = np.flatnonzero(chosen)
            if at.size:
                yield sp.csr_array(A[at]), sense, sides[at]

    def set_units(self, units: tuple[float, ...]) -> None:
        """Hand the quadratic rows over, each multiplied by its unit."""
        if units == self._units:
            return
        self.inner.remove(self._curved)
        self._curved = []
        self._units = units
        # Without, Gurobi 12 and 13 end with "numeric" or "suboptimal" on mixed-integer cones whose tip is near.
        self.inner.Params.NumericFocus = 3 if max(units, default=1.0) > 1.0 else self.focus
        for row, unit in zip(self.program.quadratics, units, strict=True):
            square = _square(row.Q * unit)
            linear = row.a.toarray()[0] * unit
            sides = (("=", row.lower),) if row.lower == row.upper else ((">", row.lower), ("<", row.upper))
            for sense, side in sides:
                if np.isfinite(side):
                    x = self.x
                    self._curved.append(self.inner.addMQConstr(square, linear, sense, side * unit, x, x, x))

    def set_objective(self, scale: float) -> None:
        """Hand over the objective times ``scale``; 0 leaves none."""
        program = self.program
        x = self.x
        if scale == self._scale:
            return
        self._scale = scale
        square = None if program.Q is None or not scale else _square(program.Q * scale)
        left, right = (None, None) if square is None else (x, x)
        self.inner.setMObjective(square, program.c * scale, program.c0 * scale, left, right, x)

    def move_data(self, values: Vector) -> None:
        """Fix the data columns at other values."""
        at = self.program.data
        if at.size:
            columns = self.x[at]
            columns.LB = columns.UB = values[at]

    def set_start(self, start: Mapping[int, float]) -> None:
        """Set a start, column -> value, full or partial; data columns need none."""
        if not start:
            return
        from gurobipy import GRB

        values = np.full(len(self.program.columns), GRB.UNDEFINED)
        values[list(start)] = list(start.values())
        values[self.program.data] = GRB.UNDEFINED
        values[self._own.binaries] = 0.0
        self.x.Start = values

    def point(self, values: Any) -> Vector:
        """Return a point of Gurobi's over all columns of the program."""
        point = np.array(values, dtype=np.float64)
        self._own.complete(point)
        return point

    def stored(self, count: int) -> list[Vector]:
        """Return up to ``count`` points of Gurobi's pool, over all columns."""
        points: list[Vector] = []
        if not self.has_pool:
            return points
        for k in range(min(count, self.inner.SolCount)):
            self.inner.Params.SolutionNumber = k
            points.append(self.point(self.x.PoolNX if self._is_newer else self.x.Xn))
        self.inner.Params.SolutionNumber = 0
        return points


def _square(lower: sp.csc_array) -> sp.csc_array:
    """Return M with x'Mx = x'Qx / 2 for the Hessian Q of this lower triangle."""
    return sp.csc_array(lower - 0.5 * sp.diags_array(lower.diagonal()))


def _sizes(A: sp.csr_array, low: Vector, high: Vector, program: CompiledModel) -> Vector:
    """Return the greatest number that each row adds up, as far as bounds and sides tell."""
    reach = np.maximum(np.abs(program.lb), np.abs(program.ub))
    reach = np.where(np.isfinite(reach), reach, 1.0)
    sides = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (low, high)]
    terms = abs(A) @ sp.diags_array(reach, format="csr")
    sizes: Vector = np.maximum.reduce([*sides, terms.max(axis=1).toarray().ravel()]) if A.nnz else np.maximum(*sides)
    return sizes


# ==== The precision of Gurobi's absolute tolerances ===================================================================

_GREATEST = 2.0**40  # of a scaled cost and of a unit
_DUAL = 1e-3  # of the optimum: seen of dual objectives at optima right to 1e-8


def settled_bound(
    compiled: CompiledModel,
    x: Vector,
    bound: float | None,
    gap: float,
    *,
    barrier: bool,
    absolute_gap: float = 0.0,
) -> float | None:
    """Return the bound that an optimum is claimed with; None if the claim does not stand.

    The objective itself stands for a bound that differs by rounding only. A barrier method stops when its primal and
    dual solutions agree to 1e-10 in scaled units. Its dual objective, where Gurobi reports one at all, carries
    residuals in the model's units: where the optimum is small, it says that the proof is roughly right, not how far.
    """
    objective = compiled.evaluate(x)
    if bound is None:
        if barrier:
            return objective
        return None
    away = compiled.sense * (objective - bound)
    enough = max(max(gap, LEAST_GAP) * abs(objective), absolute_gap)
    if not barrier and contradicts(bound, objective, compiled, x):
        return bound  # as it is: the guard is to see it
    if not barrier:
        if away <= GUROBI_ROUNDING * size_of_terms(compiled, x):
            return objective
        if away <= enough:
            return bound
        return None
    if abs(away) <= enough:
        return bound
    roughly = _DUAL * abs(objective) + GUROBI_DUAL_RESIDUAL * (size_of_terms(compiled, x) + _unit_cost(compiled))
    if abs(away) <= roughly:
        return objective
    return None


def finer_scale(
    compiled: CompiledModel,
    x: Vector,
    gap: float,
    scale: float,
    *,
    tolerance: float,
    barrier: bool,
    absolute_gap: float = 0.0,
) -> float:
    """Return the scale of the objective, greater than ``scale`` where that hides something.

    Simplex, and branch and bound, pass over what is better by less than ``tolerance``; a barrier method stops at a
    tolerance that is relative only to objectives beyond 1.
    """
    objective = abs(compiled.evaluate(x))
    wanted = max(max(gap, LEAST_GAP) * objective, absolute_gap)
    greatest = greatest_cost(compiled)
    if not greatest or objective <= GUROBI_ROUNDING * size_of_terms(compiled, x) or _is_best_conceivable(compiled, x):
        return scale
    if barrier:
        needed = scale
        if objective * scale < 0.125:
            needed = 1.0 / max(objective, GUROBI_NOTHING * _unit_cost(compiled))
    else:
        needed = scale
        if tolerance / scale > wanted:
            needed = 4.0 * tolerance / wanted
    finer = power_of_two(min(needed, _GREATEST / greatest), math.floor)
    if finer >= 4.0 * scale:
        return finer
    return scale


def is_nothing(compiled: CompiledModel, x: Vector) -> bool:
    """Whether an objective is 0 for every purpose, so that no scale can make it precise."""
    return abs(compiled.evaluate(x)) <= max(
        0.01 * GUROBI_NOTHING * _unit_cost(compiled), GUROBI_ROUNDING * size_of_terms(compiled, x)
    )


def finer_units(rows: Sequence[QuadraticRow], x: Vector, units: tuple[float, ...], gap: float) -> tuple[float, ...]:
    """Return the units of the quadratic rows, greater where a row is missed by more than a share of its terms.

    A tolerance of 1e-9 on t^2 >= v'v lets t miss the norm of v by 3e-5 near the apex.
    """
    finer = []
    for row, unit in zip(rows, units, strict=True):
        if misses(row, x, gap):
            unit = max(unit, min(power_of_two(1.0 / _size(row, x), math.floor), _GREATEST))  # noqa: PLW2901 - the same, finer
        finer.append(unit)
    return tuple(finer)


def misses(row: QuadraticRow, x: Vector, gap: float) -> bool:
    """Whether a row is missed by more than a tenth of the gap, relative to the terms that it adds up."""
    return row.violation(x) > 0.1 * max(gap, LEAST_GAP) * _size(row, x)


def is_missed_for_good(row: QuadraticRow, x: Vector, gap: float) -> bool:
    """Whether a row is still missed in the finest units, and not because all its terms are 0."""
    return misses(row, x, gap) and _size(row, x) > NO_QUADRATIC_TERMS


def missed_cone(cones: Sequence[ConeRows], x: Vector) -> ConeRows | None:
    """Return a cone that x is outside of by more than tolerances explain; None without one."""
    for cone in cones:
        if cone.violation(x) > GUROBI_MISSED_CONE * float(np.abs(cone.entries(x)).max(initial=1.0)):
            return cone
    return None


def _size(row: QuadraticRow, x: Vector) -> float:
    side = max((abs(s) for s in (row.lower, row.upper) if math.isfinite(s)), default=0.0)
    x = np.abs(x)
    products = float(x @ (abs(row.Q) @ x)) - 0.5 * float(np.abs(row.Q.diagonal()) @ (x * x))
    return max(side + products + float((abs(row.a) @ x)[0]), 1e-300)


def _is_best_conceivable(compiled: CompiledModel, x: Vector) -> bool:
    return compiled.Q is None and compiled.sense * (compiled.evaluate(x) - best_conceivable(compiled)) <= 0.0


def _unit_cost(compiled: CompiledModel) -> float:
    return min(1.0, greatest_cost(compiled))


# ==== Gurobi's own words: its stop statuses, each mapped to one of ours, and the parameters that it takes =============

# ---- stop statuses ---------------------------------------------------------------------------------------------------
# by the names of gurobipy.GRB.Status
STOP: StopTable = {
    "LOADED": (Stop.ERROR, Stop.ERROR),
    "OPTIMAL": (Stop.OPTIMAL, Stop.ERROR),
    "INFEASIBLE": (Stop.INFEASIBLE, Stop.INFEASIBLE),
    "INF_OR_UNBD": (Stop.UNBOUNDED, Stop.UNBOUNDED),  # the session tells the two apart
    "UNBOUNDED": (Stop.UNBOUNDED, Stop.UNBOUNDED),  # says nothing about feasibility: the session looks
    "CUTOFF": (Stop.FEASIBLE, Stop.TIME_LIMIT),  # only under an option of the caller's
    "ITERATION_LIMIT": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "NODE_LIMIT": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "TIME_LIMIT": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "SOLUTION_LIMIT": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "INTERRUPTED": (Stop.INTERRUPTED, Stop.INTERRUPTED),
    "NUMERIC": (Stop.FEASIBLE, Stop.ERROR),
    "SUBOPTIMAL": (Stop.FEASIBLE, Stop.ERROR),  # the tolerances could not be met
    "INPROGRESS": (Stop.ERROR, Stop.ERROR),
    "USER_OBJ_LIMIT": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "WORK_LIMIT": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "MEM_LIMIT": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "LOCALLY_OPTIMAL": (Stop.FEASIBLE, Stop.ERROR),  # no proof about the whole program
    "LOCALLY_INFEASIBLE": (Stop.FEASIBLE, Stop.ERROR),
}

BOUNDLESS = frozenset({"INF_OR_UNBD", "UNBOUNDED"})
IMPRECISE = frozenset({"NUMERIC", "SUBOPTIMAL"})


def name_of(code: int) -> str:
    """Return the name of a status code."""
    from gurobipy import GRB

    members = ((name, getattr(GRB.Status, name)) for name in dir(GRB.Status) if not name.startswith("_"))
    return next((name for name, value in members if value == code), f"status {code}")


# ---- parameters, refused before work starts if unknown or out of range -----------------------------------------------
_ARGUMENTS = {
    "TimeLimit": "time_limit_s",
    "MIPGap": "relative_gap",
    "MIPGapAbs": "absolute_gap",
    "Threads": "threads",
    "Seed": "random_state",
    "PoolSearchMode": "pool",
    "PoolSolutions": "pool",
    "PoolGap": "pool",
    "PoolGapAbs": "pool",
}


def set_options(model: Any, options: Mapping[str, Any]) -> None:
    """Set each parameter on a ``gurobipy.Model``.

    Raises
    ------
    UnknownNameError
        Gurobi has no parameter of that name; capitals count.
    InvalidValueError
        Gurobi does not take the value, or the parameter has an argument of its own.
    """
    from gurobipy import GRB

    known = [name for name in dir(GRB.Param) if not name.startswith("_")]

    def described(name: str) -> Option:
        if name not in known:
            folded = {other.lower(): other for other in known}  # more than 200
            close = [folded[other] for other in difflib.get_close_matches(str(name).lower(), folded, n=4, cutoff=0.7)]
            if close:
                raise UnknownNameError.among("Gurobi", "option", name, close)
            raise UnknownNameError("Gurobi", "a known option", f"option is {name!r}", "See the manual's parameters.")
        _, kind, _, least, greatest, default = model.getParamInfo(name)
        span = ""
        if kind is not str:
            span = f" from {least} to {greatest}"
        takes = f"a value of type {kind.__name__}{span} that a model's parameter {name!r} takes"
        return Option(types=(kind,), takes=takes, then=f"Its default is {default!r}.")

    # What is refused is out of range, or of the environment, which runs already.
    apply_options("Gurobi", options, arguments=_ARGUMENTS, describe=described, put=model.setParam, word="parameter")


# ==== One run of Gurobi, watched from its call backs ==================================================================

_INFINITE = 1e100  # Gurobi's own
_SHARE = 0.01  # of the relative gap: the barrier's tolerance at a second attempt
_ATTEMPTS: tuple[dict[str, float], ...] = ({}, {"ScaleFlag": 0}, {"NumericFocus": 3}, {"BarHomogeneous": 1})
_CAUTIOUS = {"DualReductions": 0, "Aggregate": 0}
_RAW = {"Presolve": 0, "NodeLimit": 1000.0}


@final
@dataclass(frozen=True, slots=True)
class Units:
    """Factors of the objective and of each quadratic row; a factor of 0 leaves the objective out."""

    objective: float
    rows: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of one run, in the model's own units.

    Parameters
    ----------
    stop
        Name of Gurobi's status.
    x
        Best point over all columns of the program that was handed over.
    bound
        What Gurobi says is proved.
    barrier
        Whether a barrier method found it: a convex quadratic program without integers.
    """

    stop: str
    x: Vector | None
    bound: float | None
    barrier: bool


def run_once(
    handed: GurobiModel, search: SolveRun, units: Units, start: Mapping[int, float], *, listen: bool = True
) -> Run:
    """Run afresh, forgetting the runs before.

    Parameters
    ----------
    handed
        The program; ``units`` are handed over if they changed.
    start
        Column of the program -> value; may be empty or partial.
    listen
        Whether incumbents and a pool are wanted.
    """
    inner = handed.inner
    handed.set_objective(units.objective)
    handed.set_units(units.rows)
    inner.update()
    if not search.warm or inner.IsMIP or inner.IsQP or inner.IsQCP:
        inner.reset(1)  # starts too
    limits = inner.Params
    limits.TimeLimit = search.seconds_left
    limits.MIPGap = search.relative_gap if units.objective else math.inf
    limits.MIPGapAbs = search.absolute_gap * units.objective
    limits.PoolSearchMode = 0
    limits.PoolSolutions = 10
    if listen and search.pool > 1 and handed.has_pool:
        limits.PoolSearchMode = 2
        limits.PoolSolutions = search.pool
    if inner.IsMIP:
        handed.set_start(start)
    with ExitStack() as stack:
        stack.enter_context(search.switch.listening())
        if search.lazy is not None:
            stack.enter_context(handed.tuned({"LazyConstraints": 1}))
        if search.tee:  # for this run alone: else it prints every parameter that is set
            stack.enter_context(handed.tuned({"OutputFlag": 1}))
        inner.optimize(_watch(handed, search, stack, units.objective, listen=listen))
    return _read(handed, search, units.objective)


def run_again(handed: GurobiModel, search: SolveRun, units: Units, start: Mapping[int, float]) -> Run:
    """Run, and in other ways where Gurobi gave up or may be wrong; the first answer stands if none is better."""
    if not handed.program.integer.any():
        return _precise(handed, search, units)
    if not handed.program.quadratics:
        return run_once(handed, search, units, start)
    settings: Mapping[str, int] = {}
    doubtful_stops = BOUNDLESS
    if handed.is_presolve_doubtful:
        settings = _CAUTIOUS
        doubtful_stops = BOUNDLESS | {"OPTIMAL", "INFEASIBLE"}
    with handed.tuned(settings):
        run = run_once(handed, search, units, start)
    if "Presolve" in handed.chosen or run.stop not in doubtful_stops:
        return run
    return _confirmed(handed, search, units, run)


def _confirmed(handed: GurobiModel, search: SolveRun, units: Units, run: Run) -> Run:
    """Return the run, unless one without presolve refutes it: whole proofs without presolve take too long for some."""
    if _is_over(search):
        return run
    start = {}
    if run.x is not None:
        start = dict(enumerate(run.x.tolist()))
    with handed.tuned(_RAW):
        raw = run_once(handed, search, units, start)
    if raw.x is None:
        return run
    if raw.stop == "OPTIMAL" or run.stop == "INFEASIBLE":
        return raw
    if run.x is None or run.stop in BOUNDLESS:
        return run
    compiled = search.compiled
    n = len(search.compiled.columns)
    before = compiled.evaluate(run.x[:n])
    after = compiled.evaluate(raw.x[:n])
    if compiled.sense * (before - after) > search.relative_gap * abs(after):
        return raw
    return run


def _precise(handed: GurobiModel, search: SolveRun, units: Units) -> Run:
    """Run; where the barrier gives up, run at a tolerance that is still far below the relative gap.

    It gives up on easy cones where 1e-10 is finer than rounding allows. An optimum that Gurobi gives no bound of is
    believed if two attempts agree: one that was 0.05 % off was called optimal.
    """
    run = run_once(handed, search, units, {})
    if run.stop not in IMPRECISE or run.x is None:
        return run
    coarse = min(_SHARE * search.relative_gap, BARRIER_COARSEST)
    tolerances = {name: max(coarse, getattr(handed.inner.Params, name)) for name in ("BarConvTol", "BarQCPConvTol")}
    compiled = search.compiled
    n = len(search.compiled.columns)
    values: list[float] = []
    for other in _ATTEMPTS:
        if _is_over(search):
            break
        with handed.tuned(tolerances | other):
            again = run_once(handed, search, units, {})
        if again.stop == "OPTIMAL" and again.x is not None:
            value = compiled.evaluate(again.x[:n])
            if again.bound is not None or any(
                math.isclose(value, v, rel_tol=0.1 * search.relative_gap) for v in values
            ):
                return again
            values.append(value)
    return run


def _is_over(search: SolveRun) -> bool:
    return search.switch.pressed or search.seconds_left <= 0.0


def _watch(
    handed: GurobiModel, search: SolveRun, stack: ExitStack, scale: float, *, listen: bool
) -> Callable[[Any, int], None]:
    """Return the callback: it reports incumbents and bounds, and stops the run when the switch is pressed."""
    from gurobipy import GRB

    n = len(search.compiled.columns)
    switch = search.switch
    rows = handed.program.quadratics
    improved = GRB.Callback.MIPSOL
    proved_by = {
        GRB.Callback.MIP: GRB.Callback.MIP_OBJBND,
        GRB.Callback.MIPSOL: GRB.Callback.MIPSOL_OBJBND,
        GRB.Callback.MIPNODE: GRB.Callback.MIPNODE_OBJBND,
    }
    called_before = False

    def called(model: Any, where: int) -> None:
        nonlocal called_before
        if not called_before:
            # Gurobi has put a handler of Ctrl-C over ours, which prints; ours goes over that.
            called_before = True
            stack.enter_context(switch.listening())
        if listen and where == improved:
            point = handed.point(model.cbGetSolution(handed.x))
            broken = np.zeros(0, dtype=np.intp)
            if search.lazy is not None:
                broken = search.rows_against(point[:n], handed.n_rows)
            if broken.size:
                handed.add_lazily(broken)
            elif not any(misses(row, point, search.relative_gap) for row in rows):
                search.improved(point[:n])
        if listen and where in proved_by and scale:
            proved = model.cbGet(proved_by[where])
            search.report(proved / scale if abs(proved) < _INFINITE else None)
        elif listen and where in {GRB.Callback.SIMPLEX, GRB.Callback.BARRIER} and not model.IsMIP:
            search.report(None)
        switch.poll()

    def watch(model: Any, where: int) -> None:
        switch.guard(called, model, where)  # an exception would only be printed by Gurobi
        if switch.pressed:
            model.terminate()

    return watch


def _read(handed: GurobiModel, search: SolveRun, scale: float) -> Run:
    inner = handed.inner
    compiled = search.compiled
    stop = name_of(inner.Status)
    x = None
    bound = None
    is_certain = bool(inner.IsMIP) or stop == "OPTIMAL"
    if inner.SolCount:
        point = handed.point(handed.x.X)
        if not np.isfinite(point).all():
            stop = "UNBOUNDED"  # seen with a pool: "user obj limit" at minus infinity
        elif is_certain or compiled.violation(point[: len(compiled.columns)]) <= CUT_SHORT_VIOLATION:
            x = point
    if scale and (inner.IsMIP or x is not None):
        proved = getattr(inner, "ObjBound", math.nan)  # absent after some stops
        bound = None
        if abs(proved) < _INFINITE:
            bound = proved / scale
    return Run(stop=stop, x=x, bound=bound, barrier=bool(inner.IsQP or inner.IsQCP) and not inner.IsMIP)


# ==== Gurobi over a compiled model: linear and quadratic programs, convex or not, second-order cones, integers ========

_GREATEST_SEED = 2_000_000_000
_PARAMETERS = {
    # With the 1e-6 of Gurobi's own, 58 of 60 knapsacks with values near 1e-7 ended in a wrong "optimum"; the finest
    # tolerances took no more time on recourse models.
    "OptimalityTol": GUROBI_TOLERANCE,
    "FeasibilityTol": GUROBI_TOLERANCE,
    "IntFeasTol": GUROBI_TOLERANCE,
    "BarConvTol": 1e-10,
    "BarQCPConvTol": 1e-10,
}


@final
class GurobiSession(AbstractSession):
    r"""One compiled model of any class up to MISOCP, or with nonconvex quadratics, inside Gurobi.

    With these it may have exponential cones. Second-order cones are handed over as quadratic rows. Gurobi's tolerances
    are absolute, so the objective is scaled by a power of two, and a row :math:`t^2 \ge v^\top v` multiplied by one,
    raised until they are below the relative gap.

    With ``pool`` above 1, ``Outcome.pool`` has the best points, best first, the best itself included; they differ in
    their integers. Where it has as many as were asked for, status optimal says that no others are better. Where the
    program has quadratic rows, or no integers, it has the best alone.

    Raises
    ------
    MissingLicenceError
        There is no licence, or the model is too large for it.
    """

    who = "Gurobi"

    def _open(self) -> None:
        self._require()
        self._build()

    @property
    def version(self) -> str:
        """Version of Gurobi."""
        import gurobipy

        return ".".join(str(part) for part in gurobipy.gurobi.version())

    def _run(self, search: SolveRun) -> RunResult:
        import gurobipy

        self._pass_changes()
        contradiction = self._handed.program.contradiction
        if contradiction is not None:
            message = f"The program is infeasible: {contradiction} cannot hold."
            return RunResult(status=Stop.INFEASIBLE, message=message)
        try:
            return self._found(search)
        except gurobipy.GurobiError as error:
            known = gurobipy.GRB.Error
            if error.errno in {known.SIZE_LIMIT_EXCEEDED, known.NO_LICENSE}:
                raise refuse(self._compiled, str(error)) from error
            return RunResult(status=Stop.ERROR, message=f"Gurobi failed: {error}.")

    # -- the answer ----------------------------------------------------------------------------------------------------
    def _found(self, search: SolveRun) -> RunResult:
        run = self._best(search)
        gap = search.relative_gap
        point = run.x
        rows = self._handed.program.quadratics
        status = search.or_interrupted(status_of(STOP, run.stop, has_point=point is not None))
        message = why_stopped(self.who, status, run.stop.replace("_", " ").lower())
        if status is Stop.UNBOUNDED:
            return self._without_objective(search, message)
        if point is None:
            return RunResult(status=status, bound=run.bound, message=message)
        x = self._own(point)
        bound = run.bound
        if run.stop in IMPRECISE:
            off = self._compiled.violation(x)
            if off > NOTABLE_VIOLATION or any(misses(row, point, gap) for row in rows):
                return RunResult(
                    status=Stop.ERROR, message=f"{message} Its last point violates the program by {off:.3g}."
                )
        pool = self._pool(search, x)
        if pool:
            x = pool[0]
        if status is Stop.OPTIMAL:
            settled = settled_bound(
                self._compiled, x, bound, gap, barrier=run.barrier, absolute_gap=search.absolute_gap
            )
            far = missed_cone(self._handed.program.cones, point)
            if far is not None:
                status = Stop.FEASIBLE
                message = f"Gurobi stopped: it misses {far.constraint.name!r} by {far.violation(point):.3g}."
            elif any(is_missed_for_good(row, point, gap) for row in rows):
                status = Stop.FEASIBLE
                message = "Gurobi stopped: it misses a quadratic row by what matters here."
            elif settled is None:
                status = Stop.FEASIBLE
                message = "Gurobi stopped: its proof is not within the relative gap."
            else:
                bound = settled
        return RunResult(status=status, x=x, bound=bound, message=message, pool=pool)

    def _best(self, search: SolveRun) -> Run:
        """Run, and again in finer units where a tolerance hides something; start from the best point so far."""
        compiled = self._compiled
        handed = self._handed
        gap = search.relative_gap
        rows = handed.program.quadratics
        tolerance = handed.inner.Params.OptimalityTol
        units = self._units(first_scale(compiled))
        run = run_again(handed, search, units, search.start)
        while run.stop == "OPTIMAL" and run.x is not None and not search.switch.pressed:
            scale = finer_scale(
                compiled,
                self._own(run.x),
                gap,
                units.objective,
                tolerance=tolerance,
                barrier=run.barrier,
                absolute_gap=search.absolute_gap,
            )
            finer = finer_units(rows, run.x, units.rows, gap)
            if (scale, finer) == (units.objective, units.rows):
                break
            units = Units(scale, finer)
            self._pass_changes()  # rows that were added lazily
            run = self._better(run, run_again(handed, search, units, dict(enumerate(run.x.tolist()))), gap)
        return run

    def _better(self, run: Run, again: Run, gap: float) -> Run:
        """Return the better of two runs of one program, the second in finer units."""
        compiled = self._compiled
        rows = self._handed.program.quadratics
        if run.x is None or again.x is None:
            return replace(again, x=run.x)
        before = compiled.evaluate(self._own(run.x))
        after = compiled.evaluate(self._own(again.x))
        is_worse = compiled.sense * (after - before) > 0 and not any(misses(row, run.x, gap) for row in rows)
        x, objective = (run.x, before) if is_worse else (again.x, after)
        if not run.barrier:
            return replace(again, x=x)
        # The optimum is as precise as the finer run made it, but the bound of either may be the better.
        bounds = [bound for bound in (run.bound, again.bound) if bound is not None]
        bound = min(bounds, key=lambda bound: abs(bound - objective), default=None)
        is_final = again.stop == "OPTIMAL" or is_nothing(compiled, self._own(x))
        return replace(again, stop="OPTIMAL" if is_final else again.stop, x=x, bound=bound)

    def _pool(self, search: SolveRun, x: Vector) -> tuple[Vector, ...]:
        """Return the best points, best first."""
        compiled = self._compiled
        whole = self._compiled.integer
        if search.pool == 1:
            return ()
        points = [self._own(point) for point in self._handed.stored(search.pool)]
        points = [x, *(point for point in points if np.abs(point[whole] - x[whole]).max() > 0.5)]
        return tuple(sorted(points, key=lambda point: compiled.sense * compiled.evaluate(point))[: search.pool])

    def _without_objective(self, search: SolveRun, message: str) -> RunResult:
        """Tell unbounded from infeasible: Gurobi says "unbounded" of programs where it knows no point."""
        run = run_once(self._handed, search, self._units(0.0), {}, listen=False)
        status = search.or_interrupted(status_of(STOP, run.stop, has_point=False))
        if run.x is not None:
            status = Stop.UNBOUNDED
        return without_a_best(self.who, status, otherwise=message)

    def _own(self, x: Vector) -> Vector:
        """Return the compiled model's columns of a point of the program that was handed over."""
        return x[: len(self._compiled.columns)]

    def _units(self, scale: float) -> Units:
        return Units(scale, (1.0,) * len(self._handed.program.quadratics))

    # -- model into Gurobi ---------------------------------------------------------------------------------------------
    def _require(self) -> None:
        """Refuse a program that Gurobi, with the licence at hand, does not solve."""
        compiled = self._compiled
        foreign = next((cone for cone in compiled.cones if not cone.cone.heads), None)
        if foreign is not None and _takes_exponentials(compiled):
            self._require_numbers()
        elif foreign is not None:
            raise UnsupportedProblemError(
                "Gurobi",
                "linear and quadratic rows and second-order cones",
                f"the model has a cone of kind {foreign.cone}",
                "Call solve(model), which finds a solver for it.",
            )
        held = licence()
        why = held.why_not or held.refusal(compiled)
        if why:
            raise refuse(compiled, why)
        parts = [compiled.A.data, compiled.c, *(part.data for row in compiled.quadratics for part in (row.a, row.Q))]
        refuse_huge("Gurobi", parts)

    def _require_numbers(self) -> None:
        for cone in self._compiled.cones:
            if cone.cone is Cone.EXPONENTIAL and cone.matrix[[1]].count_nonzero():
                raise UnsupportedProblemError(
                    "Gurobi",
                    "a number as the second entry of an exponential cone",
                    f"that of {cone.constraint.name!r} has Vars",
                    "State it as exponential(x, 1, z).",
                )

    def _build(self) -> None:
        import gurobipy

        compiled = self._compiled
        try:
            self._handed = GurobiModel(cones_as_quadratics(compiled), environment())
        except gurobipy.GurobiError as error:
            raise refuse(compiled, str(error)) from error
        inner = self._handed.inner
        for name, value in _PARAMETERS.items():
            inner.setParam(name, value)
        if self._handed.program.cones:
            inner.Params.Presolve = 0  # with it, 4 of 82 random programs of two logistic curves had a wrong optimum
        inner.Params.Threads = self._threads
        inner.Params.Seed = self._random_state % (_GREATEST_SEED + 1)
        set_options(inner, self._options)
        self._handed.focus = inner.Params.NumericFocus
        self._handed.chosen = frozenset(self._options)
        self._passed = compiled.shape

    def _pass_changes(self) -> None:
        """Take over data and rows that changed since the last solve."""
        compiled = self._compiled
        if compiled.shape != self._passed:
            self._require()
            if compiled.shape[1:] == self._passed[1:] and not compiled.cones:
                self._handed.add_rows(self._passed[0])
                self._passed = compiled.shape
            else:
                self._handed.inner.dispose()
                self._build()
        self._handed.move_data(compiled.lb)
