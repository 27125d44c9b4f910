"""Our solvers by Pyomo's own call: ``pyo.SolverFactory("ceopt_highs")``, persistent where they keep a program."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, final

import pyomo.environ as pyo
from pyomo.core.base.label import NumericLabeler
from pyomo.core.base.symbol_map import SymbolMap
from pyomo.opt import SolutionStatus, SolverResults, SolverStatus, TerminationCondition
from pyomo.opt.results.solution import Solution as PyomoSolution

from ceopt.solvers.errors import InvalidValueError, MissingLibraryError, UnknownNameError
from ceopt.solvers.incremental import Session, session
from ceopt.solvers.problem import Result, Stop
from ceopt.solvers.registry import SOLVERS
from ceopt.solvers.run import solve

#: Our status -> Pyomo's two words.
WORDS: Mapping[Stop, tuple[SolverStatus, TerminationCondition]] = {
    Stop.OPTIMAL: (SolverStatus.ok, TerminationCondition.optimal),
    Stop.FEASIBLE: (SolverStatus.warning, TerminationCondition.feasible),
    Stop.INFEASIBLE: (SolverStatus.warning, TerminationCondition.infeasible),
    Stop.UNBOUNDED: (SolverStatus.warning, TerminationCondition.unbounded),
    Stop.TIME_LIMIT: (SolverStatus.aborted, TerminationCondition.maxTimeLimit),
    Stop.INTERRUPTED: (SolverStatus.aborted, TerminationCondition.userInterrupt),
    Stop.ERROR: (SolverStatus.error, TerminationCondition.error),
}

#: What :func:`ceopt.solvers.solve` has an argument for; given as a keyword, or among the options.
_COMMON = ("relative_gap", "absolute_gap", "threads", "random_state", "time_limit_s")
#: What Pyomo's other solvers take about files and names, of which there are none here.
_IDLE = ("symbolic_solver_labels", "keepfiles", "report_timing")


@final
class PyomoSolver:
    """One of our solvers as Pyomo scripts call it; made by ``pyo.SolverFactory("ceopt_" + name)``.

    Without :meth:`set_instance`, each call of :meth:`solve` is one of :func:`ceopt.solvers.solve`. With it, the model
    is open in a :func:`ceopt.solvers.session` until it is closed or another is set.

    Parameters
    ----------
    solver
        Name of the solver.
    options
        The solver's own options by their own names, and ``relative_gap``, ``absolute_gap``, ``threads``,
        ``random_state`` and ``time_limit_s``, which all solvers share; :meth:`solve` may add to them.
    """

    def __init__(self, solver: str, options: Mapping[str, Any] | None = None) -> None:
        self.name = f"ceopt_{solver}"
        self.options = dict(options or {})
        self.result: Result | None = None
        self._solver = solver
        self._model: Any = None
        self._session: Session | None = None

    def __enter__(self) -> PyomoSolver:
        """Return the solver."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what is open."""
        self.close()

    def available(self, exception_flag: bool = True) -> bool:
        """Return whether the solver is installed and licensed; without ``exception_flag`` it never raises."""
        entry = SOLVERS[self._solver]
        if not entry.is_licensed and exception_flag:
            raise MissingLibraryError(self.name, "a solver that can be used", entry.why_not.rstrip("."), "Install it.")
        return entry.is_licensed

    def license_is_valid(self) -> bool:
        """Return whether the solver may solve."""
        return SOLVERS[self._solver].is_licensed

    def version(self) -> tuple[int, ...]:
        """Return the version as numbers."""
        parts = SOLVERS[self._solver].version.split(".")
        return tuple(int(part) for part in parts if part.isdigit())

    def warm_start_capable(self) -> bool:
        """Return whether ``warmstart=True`` is of use."""
        return SOLVERS[self._solver].takes_start

    def is_persistent(self) -> bool:
        """Return whether a model is open."""
        return self._session is not None

    def has_instance(self) -> bool:
        """Return whether a model is open."""
        return self._session is not None

    def solve(
        self,
        model: Any = None,
        *,
        tee: bool = False,
        timelimit: float | None = None,
        options: Mapping[str, Any] | None = None,
        warmstart: bool = False,
        load_solutions: bool = True,
        **common: Any,
    ) -> SolverResults:
        """Solve a model, or the one that is open, and return Pyomo's results.

        Parameters
        ----------
        model
            None for the one that is open.
        tee
            Show the solver's log.
        timelimit
            Seconds for this call.
        options
            Further options; of an open model they are those of :meth:`set_instance`.
        warmstart
            Begin from the values of the Vars; an open model begins from its last solution anyway.
        load_solutions
            False leaves the values of the Vars; :meth:`load_vars` or ``model.solutions.load_from(results)`` loads them
            later.
        common
            ``relative_gap``, ``absolute_gap``, ``threads``, ``random_state`` and ``time_limit_s`` (for ``timelimit``).
            ``symbolic_solver_labels``, ``keepfiles`` and ``report_timing`` change nothing: no file is written.

        Returns
        -------
        SolverResults
            Nothing raises for want of a solution: ask ``pyo.check_optimal_termination``. A limit of time has
            ``maxTimeLimit`` with a solution and without; other stops with one have ``feasible``.
        """
        began = time.perf_counter()
        is_open = self._session is not None and (model is None or model is self._model)
        if model is None and not is_open:
            raise InvalidValueError(self.name, "a model", "none is open", "Pass one, or call set_instance(model).")
        further = {**(options or {}), **{word: common[word] for word in common if word not in _IDLE}}
        for word in common:
            if word not in _COMMON + _IDLE:
                raise UnknownNameError.among(self.name, "argument", word, (*_COMMON, "timelimit", "tee", "options"))
        if is_open and further:
            then = "Set opt.options before set_instance(model)."
            raise InvalidValueError(self.name, "the options of an open model beforehand", f"it got {further!r}", then)
        asked = self._model if model is None else model
        held = [] if load_solutions else [(var, var.value) for var in asked.component_data_objects(pyo.Var)]
        if is_open and self._session is not None:
            result = self._session.solve(time_limit_s=timelimit, tee=tee)
        else:
            shared = _arguments({**self.options, **further})
            timelimit = shared.pop("time_limit_s", None) if timelimit is None else timelimit
            shared["time_limit_s"] = timelimit
            result = solve(asked, self._solver, tee=tee, start=warmstart, **shared)
        found = [(var, var.value) for var, _ in held]
        for var, value in held:
            var.set_value(value, skip_validation=True)
        self.result = result
        seconds = time.perf_counter() - began
        is_late = timelimit is not None and seconds >= timelimit
        results = _results(asked, result, seconds, is_late=is_late)
        if held and result.solutions:
            _keep_solution(results, result, found)
        return results

    def load_vars(self) -> None:
        """Load the last solution into its model."""
        if self.result is None or not self.result.solutions:
            raise InvalidValueError(self.name, "a solution to load", "there is none", "Look at the results' status.")
        self.result.solutions[0].load()

    # -- a model that stays open ---------------------------------------------------------------------------------------
    def set_instance(self, model: Any) -> None:
        """Open a model; solvers that keep no program refuse."""
        self.close()
        self._session = session(model, self._solver, **_arguments(self.options))
        self._model = model

    def add_constraint(self, constraint: Any) -> None:
        """Add a new Constraint of the open model."""
        self._open().add(constraint)

    def add_block(self, block: Any) -> None:
        """Add the active Constraints of a new block of the open model."""
        self._open().add(list(block.component_data_objects(pyo.Constraint, active=True, descend_into=True)))

    def add_var(self, var: Any) -> None:
        """Do nothing: a Var joins the program with the first row that has it."""

    def set_objective(self, objective: Any) -> None:
        """Make an Objective of the open model the active one, as it is now."""
        self._open().set(objective=objective)

    def update_var(self, var: Any) -> None:
        """Take over the bounds that a Var of the open model has now, or the value at which it is fixed."""
        self._open().update(var)

    def remove_constraint(self, constraint: Any) -> None:
        """Refuse: a session keeps its rows."""
        then = "Deactivate it, and call set_instance(model) again."
        raise InvalidValueError(self.name, "rows that stay", f"{constraint.name!r} is to go", then)

    def close(self) -> None:
        """Close the open model, if there is one."""
        if self._session is not None:
            self._session.close()
        self._session = None
        self._model = None

    def _open(self) -> Session:
        if self._session is None:
            raise InvalidValueError(self.name, "an open model", "none is open", "Call set_instance(model) first.")
        return self._session


def _arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the call of :func:`ceopt.solvers.solve` gets: its own arguments, and the rest as options."""
    arguments = {word: options[word] for word in _COMMON if options.get(word) is not None}
    return {**arguments, "options": {name: value for name, value in options.items() if name not in _COMMON}}


def _keep_solution(results: SolverResults, result: Result, found: list[tuple[Any, Any]]) -> None:
    """Put a solution that was not loaded into the results, where ``model.solutions.load_from`` looks for it."""
    solution = PyomoSolution()
    solution.status = SolutionStatus.optimal if result.status is Stop.OPTIMAL else SolutionStatus.feasible
    symbols = SymbolMap(NumericLabeler("x"))
    for var, value in found:
        if value is not None and not var.fixed:
            solution.variable[symbols.getSymbol(var)] = {"Value": value}
    results.solution.insert(solution)
    results._smap = symbols  # noqa: SLF001 - as Pyomo's own interfaces hand it over
    results._smap_id = id(symbols)  # noqa: SLF001


def _results(model: Any, result: Result, seconds: float, *, is_late: bool) -> SolverResults:
    """Return a result in Pyomo's words."""
    status, condition = WORDS[result.status]
    if result.status is Stop.FEASIBLE and is_late:
        status, condition = WORDS[Stop.TIME_LIMIT]
    results = SolverResults()
    results.solver.name = result.solver
    results.solver.status = status
    results.solver.termination_condition = condition
    results.solver.message = result.message
    results.solver.wallclock_time = seconds
    objective = next(model.component_data_objects(pyo.Objective, active=True), None)
    sense = pyo.minimize if objective is None else objective.sense
    results.problem.name = model.name
    results.problem.sense = sense
    lower, upper = result.bound, result.objective
    if sense == pyo.maximize:
        lower, upper = upper, lower
    if lower is not None:
        results.problem.lower_bound = lower
    if upper is not None:
        results.problem.upper_bound = upper
    return results


def register_with_pyomo() -> None:
    """Make each solver of ours known to ``pyo.SolverFactory`` as "ceopt_" and its name."""
    for name, entry in SOLVERS.items():

        def make(*, options: Mapping[str, Any] | None = None, solver: str = name) -> PyomoSolver:
            return PyomoSolver(solver, options)

        register = pyo.SolverFactory.register(f"ceopt_{name}", doc=f"{entry.distribution}, checked by ceopt.solvers")
        register(make)
