"""A program that is solved again and again while rows, bounds and the objective change; nothing is compiled twice."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, final

import pyomo.environ as pyo

from ceopt.solvers.checks import OPTIONS, OrNone, Real, Whole, check_arguments, is_number
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.deadline import deadline_now
from ceopt.solvers.duals import fill_suffixes
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnsupportedProblemError
from ceopt.solvers.guarded_session import GuardedSession, needs_other_units
from ceopt.solvers.pool.ranking import Runner
from ceopt.solvers.problem import Outcome, ProblemClass, Result, Solution, Stop, Vector
from ceopt.solvers.registry import SOLVERS, Solver, choose
from ceopt.solvers.start import start_of
from ceopt.solvers.tolerances import OVERRULING_VIOLATION

_WHO = "session"
_ABLE = ("highs", "scip", "gurobi")
_OPENED_WITH = {
    "time_limit_s": OrNone(Real(above=0.0)),
    "relative_gap": Real(at_least=0.0),
    "absolute_gap": OrNone(Real(at_least=0.0, finite=True)),
    "threads": Whole(at_least=1),
    "random_state": Whole(at_least=0),
    "options": OPTIONS,
}
_SOLVED_WITH = {"time_limit_s": OrNone(Real(above=0.0))}


def session(
    model: Any,
    solver: str = "auto",
    *,
    time_limit_s: float | None = None,
    relative_gap: float = 1e-6,
    absolute_gap: float | None = None,
    threads: int = 1,
    random_state: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Session:
    """Open a model for many solves, each as :func:`solve` would answer it.

    The model is compiled once. What is added later is compiled alone, and HiGHS, SCIP and Gurobi get new linear rows
    beside those that they have. HiGHS and Gurobi begin an LP from the last basis; a program with integers begins from
    the last solution where that still keeps it.

    Parameters
    ----------
    model
        As for :func:`solve`. Its fixed Vars are constants for as long as the session lasts.
    solver
        "highs", "scip" or "gurobi"; or "auto", the first of them that is installed and solves this class.
    time_limit_s
        Seconds for each solve; None for no limit.
    relative_gap, absolute_gap, threads, random_state, options
        Of each solve, as for :func:`solve`.

    Raises
    ------
    UnsupportedProblemError
        Another solver, which keeps no program; or a class of program that the solver does not solve.
    CeoptError
        What :func:`solve` raises.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import session
    >>> m = pyo.ConcreteModel()
    >>> m.x = pyo.Var([1, 2], bounds=(0, 4), domain=pyo.Integers)
    >>> m.gain = pyo.Objective(expr=m.x[1] + 2 * m.x[2], sense=pyo.maximize)
    >>> m.rows = pyo.ConstraintList()
    >>> with session(m) as opened:
    ...     first = opened.solve().objective
    ...     opened.add(m.rows.add(m.x[1] + m.x[2] <= 5))
    ...     second = opened.solve().objective
    >>> first, second
    (12.0, 9.0)
    """
    check_arguments(_WHO, _OPENED_WITH, locals())
    compiled = compile_model(model)
    return Session(
        model,
        compiled,
        _chosen(solver, compiled),
        time_limit_s=time_limit_s,
        settings={
            "threads": threads,
            "random_state": random_state,
            "options": dict(options or {}),
            "relative_gap": relative_gap,
            "absolute_gap": float(absolute_gap or 0.0),
        },
    )


def _chosen(name: str, compiled: CompiledModel) -> Solver:
    """Return the solver of a session, which keeps its program between two solves."""
    if name in SOLVERS and name not in _ABLE:
        then = f"Use {', '.join(map(repr, _ABLE))}, or solve(model), which takes any."
        raise UnsupportedProblemError(_WHO, "a solver that keeps its program", f"solver is {name!r}", then)
    chosen = choose(name, compiled)
    if chosen.name in _ABLE:
        return chosen
    for other in _ABLE:
        with suppress(CeoptError):
            return choose(other, compiled)
    return choose(_ABLE[0], compiled)


@final
class Session:
    """A model that is open in one solver; made by :func:`session`, closed by ``close`` or the end of ``with``.

    Parameters
    ----------
    model, compiled, solver
        The program and who solves it.
    time_limit_s
        Seconds for each solve, or None.
    settings
        Threads, random state, options and gaps of each solve.
    """

    __slots__ = (
        "_asking", "_compiled", "_has_other_units", "_kind", "_known", "_last", "_later", "_limit_s", "_model",
        "_objective", "_opened", "_settings", "_sides", "_solver",
    )  # fmt: skip

    def __init__(
        self,
        model: Any,
        compiled: CompiledModel,
        solver: Solver,
        *,
        time_limit_s: float | None,
        settings: Mapping[str, Any],
    ) -> None:
        self._model = model
        self._compiled: CompiledModel | None = compiled
        self._solver = solver
        self._limit_s = time_limit_s
        self._settings = dict(settings)
        self._opened: GuardedSession | None = None
        self._kind = compiled.shape[1:]
        self._has_other_units = False
        self._last: Vector | None = None
        self._asking = False  # whether a search is asking ``lazy``
        self._later: list[Any] = []  # what that search could not take
        self._known = {id(row): row for row in _constraints_of(compiled)}
        self._sides: list[tuple[bool, Any, Any, Any]] = []
        self._objective = self._objective_now()
        self._reopen()

    def __enter__(self) -> Session:
        """Return the session."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the session."""
        self.close()

    @property
    def solver(self) -> str:
        """Name of the solver."""
        return self._solver.name

    @property
    def takes_lazy_rows(self) -> bool:
        """Whether :meth:`solve` takes ``lazy``: of Gurobi and SCIP, where the program has integers and linear rows."""
        is_linear = self._program().problem_class is ProblemClass.MILP
        return is_linear and self._solver.takes_lazy_rows and not self._has_other_units

    def solve(
        self,
        *,
        start: Mapping[Any, float] | None = None,
        time_limit_s: float | None = None,
        tee: bool = False,
        lazy: Callable[[Solution], object] | None = None,
    ) -> Result:
        """Solve the program as it is now and load the best solution into the model.

        Parameters
        ----------
        start
            Where to begin, as for :func:`solve`; else from the last solution, where that keeps the program.
        time_limit_s
            Seconds for this solve; None for those of the session.
        tee
            Show the solver's own log.
        lazy
            Called with each solution in whole numbers that the search meets, which is loaded, before it counts. Rows
            that it breaks are added by :meth:`add_lazily`. True ends the search, with status ``interrupted`` and no
            solution. What it raises reaches the caller.

        Raises
        ------
        InvalidValueError
            The session is closed, or a start or limit makes no sense; or the model was changed and the session not
            told: a Var was fixed or has other bounds, a row was deactivated, another objective is active.
        UnsupportedProblemError
            ``lazy`` where :attr:`takes_lazy_rows` is False.
        """
        check_arguments(_WHO, _SOLVED_WITH, {"time_limit_s": time_limit_s})
        compiled = self._program()
        self._refuse_changes_untold(compiled)
        candidates = None
        if lazy is not None:
            self._require_lazy_rows()
            candidates = _Candidates(compiled, lazy)
        began = time.perf_counter()
        limit = time_limit_s or self._limit_s or math.inf
        deadline = min(began + limit, deadline_now())
        begin = start_of(start, self._model, compiled)
        if begin is None and self._last is not None:
            begin = self._last_as_start(compiled)
        runner = Runner(solver=self._solver, deadline=deadline, warm=True, tee=tee, **self._settings)
        assert self._opened is not None  # noqa: S101 - an open session has a program
        self._asking = candidates is not None
        try:
            outcome = runner.solve(self._opened, start=begin, lazy=candidates)
        finally:
            self._asking = False
        if candidates is not None:
            compiled.append_all(self._later)
            self._later.clear()
            self._keep_or_reopen(compiled)
            if candidates.ended:
                message = "The search ended when it was asked to at a candidate."
                outcome = replace(outcome, status=Stop.INTERRUPTED, x=None, objective=None, message=message)
        return self._result(outcome, compiled, deadline, time.perf_counter() - began, self._opened.version)

    def add(self, constraints: Any) -> None:
        """Add Constraints of the model that it did not have when the session was opened; they alone are compiled.

        Parameters
        ----------
        constraints
            One, an indexed one, or several, SOSConstraints among them. Their new Vars become columns.

        Raises
        ------
        InvalidTypeError
            It is no Constraint.
        InvalidValueError
            It is in the program already, is deactivated, or belongs to another model.
        UnsupportedProblemError
            It is of a class that the solver does not take; the session is then closed.
        """
        compiled = self._program()
        members = self._new_members("add", constraints)
        self._known.update((id(member), member) for member in members)
        compiled.append_all(members)
        self._keep_or_reopen(compiled)

    def add_lazily(self, constraints: Any) -> bool:
        """Add Constraints to the search that runs, from within ``lazy`` of :meth:`solve`; see :meth:`add`.

        Returns
        -------
        bool
            False where one is no linear row over the Vars of the program, or has numbers that ask for other units. The
            search has to end then: ``lazy`` returns True, and the program has them in the next solve.
        """
        if not self._asking:
            raise InvalidValueError("add_lazily", "a search that is asking lazy", "there is none", "Call add.")
        compiled = self._program(from_within=True)
        members = self._new_members("add_lazily", constraints)
        self._known.update((id(member), member) for member in members)
        if compiled.append_all(members, rows_alone=True):
            return self._is_same_kind(compiled)
        self._later += members
        return False

    def _new_members(self, who: str, constraints: Any) -> list[Any]:
        """Return the single Constraints; refuse what is not of the model, or in the program already."""
        members = _members(who, constraints)
        root = self._model.model()
        for member in members:
            if member.model() is not root or not member.active:
                then = "Add it to the model, active, before it is added to the session."
                raise InvalidValueError(who, "active Constraints of the model", f"{member.name!r} is none", then)
            if id(member) in self._known:
                raise InvalidValueError(who, "new Constraints", f"{member.name!r} is in the program", "Leave it out.")
        return members

    def set(self, bounds: Mapping[Any, tuple[float | None, float | None]] | None = None, objective: Any = None) -> None:
        """Change bounds of Vars, in the model too, or the objective; nothing else is compiled again.

        Parameters
        ----------
        bounds
            ``pyo.ComponentMap([(m.x, (0, 3)), ...])``, None for no bound; a binary keeps 0 and 1.
        objective
            An expression, which the active Objective then has; or another Objective of the model, which is then the
            active one.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            A key is no free Var of the program, or bounds cross or are no numbers; there is no Objective to change.
        UnsupportedProblemError
            The program is then of a class that the solver does not take; the session is then closed.
        """
        compiled = self._program()
        for var, sides in _checked_bounds(bounds or {}):
            low, high = sides
            var.setlb(low)
            var.setub(high)
        self.update(*(bounds or {}))
        if objective is not None:
            compiled.set_objective(self._active_objective(objective))
            self._objective = self._objective_now()
            self._opened = None
            self._keep_or_reopen(compiled)

    def update(self, *variables: Any) -> None:
        """Take over what Vars are in the model now: their bounds and domains, or the value at which they are fixed.

        Parameters
        ----------
        variables
            Vars that were free when the session was opened, or have joined it with a row.

        Raises
        ------
        InvalidValueError
            A Var was fixed when the session was opened, or belongs to another model.
        """
        compiled = self._program()
        for var in variables:
            compiled.set_bounds(var)
            column = compiled.index.get(var)
            if column is not None and column < len(self._sides):
                self._sides[column] = _sides_of(var)
        self._opened = None
        self._keep_or_reopen(compiled)

    def close(self) -> None:
        """Forget the solver's program; a closed session may be closed again, and nothing else."""
        if self._asking:
            self._program()  # refuses
        self._compiled = None
        self._opened = None
        self._last = None

    # -- inside --------------------------------------------------------------------------------------------------------
    def _program(self, *, from_within: bool = False) -> CompiledModel:
        if self._compiled is None:
            raise InvalidValueError(_WHO, "to be open", "it is closed", "Open another: session(model).")
        if self._asking and not from_within:
            then = "Call add_lazily alone from within lazy, or return True first."
            raise InvalidValueError(_WHO, "no other call during a search", "one is asking lazy", then)
        return self._compiled

    def _reopen(self) -> None:
        """Hand the program over to the solver; what it refuses, it refuses now."""
        compiled = self._program()
        runner = Runner(solver=self._solver, deadline=math.inf, **self._settings)
        self._kind = compiled.shape[1:]
        self._has_other_units = needs_other_units(self._solver, compiled)
        self._opened = runner.session(compiled)

    def _require_lazy_rows(self) -> None:
        if not self.takes_lazy_rows:
            raise UnsupportedProblemError(
                _WHO, "Gurobi or SCIP, integers and linear rows for lazy=",
                f"the solver is {self.solver!r} and the model of class {self._program().problem_class}",
                "Solve, add rows, and solve again, as cutting_planes(model, separate) does.",
            )  # fmt: skip

    def _keep_or_reopen(self, compiled: CompiledModel) -> None:
        """Leave the solver its program where it takes over what changed; else hand it over anew."""
        if self._opened is not None and self._is_same_kind(compiled):
            return
        try:
            choose(self._solver.name, compiled)
            self._reopen()
        except CeoptError:
            self.close()
            raise

    def _is_same_kind(self, compiled: CompiledModel) -> bool:
        """Whether rows alone were added, and the solver goes on with its own units of them."""
        if compiled.shape[1:] != self._kind or self._has_other_units or self._solver.refusal(compiled):
            return False
        return not needs_other_units(self._solver, compiled)

    def _objective_now(self) -> tuple[Any, Any]:
        objective = next(self._model.component_data_objects(pyo.Objective, active=True), None)
        return objective, getattr(objective, "sense", None)

    def _refuse_changes_untold(self, compiled: CompiledModel) -> None:
        """Raise where the model is no longer what the solver has: its answer would be one of another program."""
        self._sides += [_sides_of(var) for var in compiled.columns[len(self._sides) :]]
        for column, (var, seen) in enumerate(zip(compiled.columns, self._sides, strict=True)):
            fixed, low, high, domain = seen
            if fixed is var._fixed and low is var._lb and high is var._ub and domain is var._domain:  # noqa: SLF001
                continue
            if not compiled.has_bounds_of(var):
                then = "Call update(var) after a change, or set(bounds=...)."
                raise InvalidValueError(_WHO, "to be told of changes", f"Var {var.name!r} was changed", then)
            self._sides[column] = _sides_of(var)
        for row in self._known.values():
            if not row.active:
                then = "Activate it, or open another session."
                raise InvalidValueError(_WHO, "its rows to stay", f"{row.name!r} was deactivated", then)
        objective, sense = self._objective
        if objective is not None and not (objective.active and objective.sense == sense):
            then = "Call set(objective=...)."
            raise InvalidValueError(_WHO, "to be told of changes", f"objective {objective.name!r} was changed", then)

    def _active_objective(self, objective: Any) -> Any:
        active = list(self._model.component_data_objects(pyo.Objective, active=True))
        if getattr(objective, "ctype", None) is pyo.Objective:
            if objective.is_indexed() or objective.model() is not self._model.model():
                then = "Name one Objective of it."
                raise InvalidValueError("set", "an Objective of the model", f"it got {objective.name!r}", then)
            for other in active:
                other.deactivate()
            objective.activate()
            return objective
        if len(active) != 1:
            then = "Add one to the model, and pass it."
            raise InvalidValueError("set", "an active Objective to change", f"the model has {len(active)}", then)
        if not is_number(objective) and not hasattr(objective, "is_expression_type"):
            then = "Pass an expression over Vars of the model."
            raise InvalidTypeError("set", "an expression as objective", f"it got {objective!r}", then)
        active[0].set_value(objective)
        return active[0]

    def _last_as_start(self, compiled: CompiledModel) -> dict[int, float] | None:
        """Return the last solution where it keeps the program: one that was cut off would only be repaired."""
        assert self._last is not None  # noqa: S101 - asked before
        if len(self._last) != len(compiled.columns) or compiled.violation(self._last) > OVERRULING_VIOLATION:
            return None
        return dict(enumerate(self._last.tolist()))

    def _result(
        self, outcome: Outcome, compiled: CompiledModel, deadline: float, seconds: float, version: str
    ) -> Result:
        solutions: tuple[Solution, ...] = ()
        if outcome.x is not None:
            solutions = (Solution(compiled.evaluate(outcome.x), outcome.x, compiled.frozen()),)
            solutions[0].load()
        self._last = outcome.x
        message = f"{outcome.message} {fill_suffixes(self._model, compiled, outcome.x, outcome.status, deadline)}"
        return Result(
            status=outcome.status,
            objective=solutions[0].objective if solutions else None,
            bound=outcome.bound,
            solutions=solutions,
            timings={"lower": 0.0, "solve": seconds},
            solver=self._solver.name,
            version=version,
            message=message.strip(),
            incumbents=tuple((spent, objective) for spent, objective, _ in outcome.incumbents),
            complete=bool(solutions) or outcome.status is Stop.INFEASIBLE,
            certificate=outcome.certificate,
        )


def _sides_of(var: Any) -> tuple[bool, Any, Any, Any]:
    """Return whether a Var is fixed, its bounds as they are stored, and its domain."""
    return var._fixed, var._lb, var._ub, var._domain  # noqa: SLF001 - public names take many times as long


@final
class _Candidates:
    """Loads each candidate of a search and hands it to the caller's function; remembers if that ended the search."""

    def __init__(self, compiled: CompiledModel, lazy: Callable[[Solution], object]) -> None:
        self._compiled = compiled
        self._lazy = lazy
        self.ended = False

    def __call__(self, x: Vector) -> bool:
        solution = Solution(self._compiled.evaluate(x), x, self._compiled.frozen())
        solution.load()
        self.ended = bool(self._lazy(solution))
        return self.ended


def _constraints_of(compiled: CompiledModel) -> list[Any]:
    """Return the constraints that have a row, a quadratic row, a cone or a set."""
    return [
        *(one.constraint for one in compiled.sets),
        *compiled.rows,
        *(row.constraint for row in compiled.quadratics),
        *(cone.constraint for cone in compiled.cones),
    ]


def _members(who: str, constraints: Any) -> list[Any]:
    """Return the single constraints of one, or of several."""
    kind = getattr(constraints, "ctype", None)
    if kind in {pyo.Constraint, pyo.SOSConstraint}:
        return list(constraints.values()) if constraints.is_indexed() else [constraints]
    if kind is None and isinstance(constraints, Iterable) and not isinstance(constraints, str | Mapping):
        return [member for one in constraints for member in _members(who, one)]
    then = "Add it to the model first, and pass what m.rows.add(...) returns."
    raise InvalidTypeError(who, "Constraints", f"it got {constraints!s}", then)


def _checked_bounds(bounds: Any) -> list[tuple[Any, tuple[Any, Any]]]:
    """Return (VarData, (lower, upper)), or raise before anything is changed."""
    then = "Pass pyo.ComponentMap([(m.x, (0, 3))])."
    if not isinstance(bounds, Mapping):
        raise InvalidTypeError("set", "a mapping from Vars to pairs", f"it got {bounds!r}", then)
    checked = []
    for var, sides in bounds.items():
        if not hasattr(var, "is_variable_type") or not var.is_variable_type() or var.fixed:
            raise InvalidTypeError("set", "free Vars as keys", f"one is {getattr(var, 'name', var)!r}", then)
        if not isinstance(sides, tuple | list) or len(sides) != 2:
            raise InvalidTypeError("set", "a pair of bounds", f"{var.name!r} gets {sides!r}", then)
        for side in sides:
            if side is not None and (not is_number(side) or math.isnan(side)):
                raise InvalidValueError("set", "bounds that are numbers or None", f"{var.name!r} gets {sides!r}", then)
        low, high = (None if side is None or math.isinf(side) else float(side) for side in sides)
        if low is not None and high is not None and low > high:
            raise InvalidValueError("set", "bounds in order", f"{var.name!r} gets ({low:g}, {high:g})", "Swap them.")
        checked.append((var, (low, high)))
    return checked
