"""One call for every solver: compile, choose, solve, load."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from ceopt.solvers.checks import Flag, Instance, OrNone, Real, Refusal, Whole, check_arguments
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.deadline import OutOfTimeError, deadline_now, until
from ceopt.solvers.duals import fill_suffixes
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.pool.pool import Distinct, Pool, pool_of, ranking_of, rule_of
from ceopt.solvers.pool.ranking import AbstractExclusion, Distances, NoGoods, Runner
from ceopt.solvers.problem import Result, Solution, Stop, Vector
from ceopt.solvers.registry import choose, refuse_callback
from ceopt.solvers.start import start_of

_NO_FUNCTION = Refusal("a function as {name}", "Pass a callable.", "it is {value}", InvalidTypeError)
_NO_MAPPING = Refusal("a mapping as {name}", "Pass a dict: name -> value.", "it is {value}", InvalidTypeError)
_CHECKS = {
    "pool": Whole(at_least=1),
    "time_limit_s": OrNone(Real(above=0.0)),
    "on_incumbent": OrNone(Instance(Callable, _NO_FUNCTION)),  # type: ignore[arg-type]
    "callback": OrNone(Instance(Callable, _NO_FUNCTION)),  # type: ignore[arg-type]
    "absolute_gap": OrNone(Real(at_least=0.0, finite=True)),
    "tee": Flag(Refusal("True or False as {name}", "Pass one of them.", error=InvalidTypeError)),
    "options": OrNone(Instance(Mapping, _NO_MAPPING)),
}


def solve(
    model: Any,
    solver: str = "auto",
    *,
    pool: int = 1,
    distinct: Distinct = "decisions",
    start: bool | Mapping[Any, float] | None = None,
    on_incumbent: Callable[[float, float], None] | None = None,
    callback: Callable[[float | None, float | None, float], object] | None = None,
    time_limit_s: float | None = None,
    relative_gap: float = 1e-6,
    absolute_gap: float | None = None,
    tee: bool = False,
    threads: int = 1,
    random_state: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Solve a ConcreteModel and load the best solution into it.

    Parameters
    ----------
    model
        Constraints that are linear, quadratic or a cone of :mod:`ceopt.solvers.cones`; SOSConstraints over Vars with
        finite bounds, and so every form of ``pyo.Piecewise``; and at most one linear or quadratic Objective. Where it
        has a Suffix ``dual`` or ``rc`` that imports, duals or reduced costs of a proved optimum of an LP or convex QP
        are put there, in Pyomo's signs, whoever solved it; else it is emptied. The message says so of other classes.
    solver
        A name of :func:`available`, or "auto": the first that is installed and solves this class.
    pool
        Solutions wanted, at least 1.
    distinct
        How they must differ:

        ``"decisions"``
            The exact n best: each is optimal among those whose integer Vars differ from all better ones. A program
            without free integers has one solution.
        ``Support(variables)``
            The same over some integer Vars, such as change indicators.
        ``Apart(variables, least, norm="l1")``
            Each is optimal among those at least this far from all earlier ones.
        ``"incumbents"``
            The best of what the solver met on its way, checked against the program; nothing is claimed of any but the
            first.
    start
        A mapping from Vars to values, ``pyo.ComponentMap([(m.x, 1), ...])``: begin there, if the solver takes starts
        (see :func:`available`). A Var that is not named keeps the value that it holds now, unless that breaks a row,
        and is left to the solver without one. True begins from what the Vars hold now. A start that the solver cannot
        complete is ignored.
    on_incumbent
        Called with (seconds, objective) for each improving solution in the search for the best, if the solver streams.
    callback
        Called with (incumbent, bound, seconds) during each search, at most once in 10 ms; HiGHS, SCIP and Gurobi take
        it. What is not known yet is None: the bound of a program without integers always is, and a search that is
        short may not call at all. The bound is what the solver says so far; the result's own is checked. True ends the
        search: the status says what is known ("feasible" with a solution, "interrupted" without), the message that the
        callback ended it. What the callback raises reaches the caller.
    time_limit_s
        Seconds for the whole call; None for no limit.
    relative_gap
        Stop when ``|objective - bound| <= relative_gap * |objective|``, for each solution. Nobody proves less than his
        own arithmetic allows: "optimal" means at best 1e-7 of Clarabel and SCS, 1e-8 of curved programs on HiGHS, 1e-9
        of SCIP. ``gap`` says what was reached.
    absolute_gap
        Stop also when ``|objective - bound|`` is at most this, in the objective's own unit; "optimal" is then said of
        either gap. It ends searches of integers and cuts; solvers without a search prove the optimum as they would.
    tee
        Show the solver's own log on standard output. Where the solver is run more than once, there are several.
    threads, random_state
        Of the solver; the answer is the same for the same two.
    options
        The solver's own options by their own names.

    Returns
    -------
    Result
        ``optimal`` only if every solution is proved; ``.bound`` and ``.gap`` are those of the best. A stop of the
        solver never raises; see ``.status`` and ``.message``. Ctrl-C gives status ``interrupted``.

    Raises
    ------
    UnknownNameError, InvalidValueError, InvalidTypeError
        An unknown solver or option, or a value that makes no sense. A start that names no Var of the model, breaks a
        bound, or a row all of whose Vars it names: the message names it.
    UnboundedFeatureError
        A Var that solutions are to differ in, or that stands in a set, has no finite bounds.
    UnsupportedProblemError
        A class of program that the solver does not solve, or another nonlinear component; a callback for a solver that
        takes none.
    MissingLibraryError, MissingLicenceError
        The solver is not installed, or may not solve this model.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import solve
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var([1, 2, 3], domain=pyo.Binary)
    >>> model.weight = pyo.Constraint(expr=3 * model.x[1] + 2 * model.x[2] + 2 * model.x[3] <= 4)
    >>> model.value = pyo.Objective(expr=5 * model.x[1] + 3 * model.x[2] + 4 * model.x[3], sense=pyo.maximize)
    >>> result = solve(model, pool=3)
    >>> str(result.status), [round(solution.objective) for solution in result.solutions]
    ('optimal', [7, 5, 4])
    >>> result.solutions[1].load()
    >>> [model.x[i].value for i in (1, 2, 3)]
    [1, 0, 0]
    """
    began = time.perf_counter()
    check_arguments("solve", _CHECKS, locals())
    limit = math.inf if time_limit_s is None else time_limit_s
    deadline = min(began + limit, deadline_now())
    try:
        with until(deadline):
            compiled = compile_model(model)
    except OutOfTimeError as error:
        message = f"The time limit is used up while {error.stage}."
        return _nothing(message, solver, time.perf_counter() - began)
    rule = rule_of(distinct, compiled) if pool > 1 else None
    lowered = time.perf_counter()
    chosen = choose(solver, _widest(compiled, rule))
    caller = None
    if callback is not None:
        refuse_callback(chosen, compiled)
        caller = EndingCallback(callback)
    runner = Runner(
        solver=chosen,
        threads=threads,
        random_state=random_state,
        options=dict(options or {}),
        relative_gap=relative_gap,
        deadline=deadline,
        start=start_of(start, model, compiled),
        on_incumbent=_without_point(on_incumbent),
        absolute_gap=float(absolute_gap or 0.0),
        callback=caller,
        tee=tee,
    )
    if rule is None or (isinstance(rule, NoGoods) and not len(rule.columns)):
        found = _one(runner, compiled, wanted=pool)
    else:
        found = pool_of(ranking_of(runner, compiled, distinct, rule, pool))
    solutions = tuple(Solution(compiled.evaluate(x), x, compiled) for x in found.points)
    if solutions:
        solutions[0].load()
    status = found.status
    message = found.message
    best = solutions[0].x if solutions else None
    message = f"{message} {fill_suffixes(model, compiled, best, status, deadline)}".strip()
    if caller is not None:
        status, message = caller.verdict(status, message, has_point=bool(solutions))
    return Result(
        status=status,
        objective=solutions[0].objective if solutions else None,
        bound=found.bound,
        solutions=solutions,
        timings={"lower": lowered - began, "solve": time.perf_counter() - lowered},
        solver=runner.solver.name,
        version=runner.version,
        message=message,
        incumbents=tuple((seconds, objective) for seconds, objective, _ in found.first.incumbents),
        complete=found.complete,
        certificate=found.first.certificate,
    )


@final
class EndingCallback:
    """The caller's callback, which remembers whether it ended the search.

    Parameters
    ----------
    function
        Called with (incumbent, bound, seconds).
    """

    __slots__ = ("_ended", "_function")

    def __init__(self, function: Callable[[float | None, float | None, float], object]) -> None:
        self._function = function
        self._ended = False

    def __call__(self, incumbent: float | None, bound: float | None, seconds: float) -> bool:
        """Return whether to end the search."""
        self._ended = self._ended or bool(self._function(incumbent, bound, seconds))
        return self._ended

    def verdict(self, status: Stop, message: str, *, has_point: bool) -> tuple[Stop, str]:
        """Return status and message of a search, which say so where the callback ended it."""
        if not self._ended or status not in {Stop.INTERRUPTED, Stop.FEASIBLE}:
            return status, message
        status = Stop.FEASIBLE if has_point else Stop.INTERRUPTED
        return status, f"The callback ended the search. {message}".strip()


def _without_point(
    tell: Callable[[float, float], None] | None,
) -> Callable[[float, float, Vector], None] | None:
    """Return a caller's function of (seconds, objective) as one that is also handed the point."""
    if tell is None:
        return None
    return lambda seconds, objective, _x: tell(seconds, objective)


def _nothing(message: str, solver: str, seconds: float) -> Result:
    """Return the result of a call whose limit was used up before a solver began."""
    return Result(
        status=Stop.TIME_LIMIT,
        objective=None,
        bound=None,
        solutions=(),
        timings={"lower": seconds, "solve": 0.0},
        solver=solver,
        version="",
        message=message,
        complete=False,
    )


def _one(runner: Runner, compiled: CompiledModel, *, wanted: int) -> Pool:
    """Return the best solution; all there is where no decision can differ."""
    outcome = runner.first(compiled, pool=1)
    points = () if outcome.x is None else (outcome.x,)
    message = outcome.message
    if points and wanted > 1:
        message = f"{message} There is one solution, as nothing that may differ is a free integer.".strip()
    return Pool(
        status=outcome.status,
        points=points,
        bound=outcome.bound,
        first=outcome,
        complete=bool(points) or outcome.status is Stop.INFEASIBLE,
        message=message,
    )


def _widest(compiled: CompiledModel, rule: AbstractExclusion | None) -> CompiledModel:
    """Return a program of the class of all that will be solved: distances add binaries."""
    if isinstance(rule, Distances):
        return rule.barred(compiled, [np.zeros(len(compiled.columns))])
    return compiled
