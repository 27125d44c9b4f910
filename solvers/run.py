"""One call for every solver: compile, choose, solve, load."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ceopt.solvers.compiled import compile_model
from ceopt.solvers.problem import Result, Solution
from ceopt.solvers.registry import choose

__all__ = ["solve"]


def solve(
    model: Any,
    solver: str = "auto",
    *,
    time_limit_s: float | None = None,
    relative_gap: float = 1e-6,
    threads: int = 1,
    random_state: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Solve a ConcreteModel and load the best solution into it.

    Parameters
    ----------
    model
        Linear Constraints and at most one linear or quadratic Objective.
    solver
        A name of :func:`available`, or "auto": the first that is installed and solves this class.
    time_limit_s
        Seconds for the solver; None for no limit.
    relative_gap
        Stop when ``|objective - bound| <= relative_gap * |objective|``.
    threads, random_state
        Of the solver; the answer is the same for the same two.
    options
        The solver's own options by their own names.

    Returns
    -------
    Result
        A stop of the solver never raises; see ``.status`` and ``.message``. Ctrl-C gives status ``interrupted``.

    Raises
    ------
    UnknownNameError, InvalidValueError
        An unknown solver or option, or a value that makes no sense.
    UnsupportedProblemError
        A class of program that the solver does not solve, or a nonlinear component.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import solve
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var(bounds=(0, 3))
    >>> model.cost = pyo.Objective(expr=2 * model.x + 1, sense=pyo.maximize)
    >>> result = solve(model)
    >>> str(result.status), result.objective, model.x.value
    ('optimal', 7.0, 3.0)
    """
    began = time.perf_counter()
    compiled = compile_model(model)
    lowered = time.perf_counter()
    chosen = choose(solver, compiled.problem_class)
    session = chosen.session()(compiled, threads=threads, random_state=random_state, options=options)
    outcome = session.solve(time_limit_s=time_limit_s, relative_gap=relative_gap)
    solutions = () if outcome.x is None else (Solution(outcome.objective, outcome.x, compiled),)
    if solutions:
        solutions[0].load()
    return Result(
        status=outcome.status,
        objective=outcome.objective,
        bound=outcome.bound,
        solutions=solutions,
        timings={"lower": lowered - began, "solve": time.perf_counter() - lowered},
        solver=chosen.name,
        version=session.version,
        message=outcome.message,
        incumbents=tuple((seconds, objective) for seconds, objective, _ in outcome.incumbents),
    )
