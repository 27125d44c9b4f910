"""Gurobi's environment, started silently, and what its licence allows, looked for once."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

import numpy as np

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.cone_to_quadratic import cones_as_quadratics
from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import MissingLicenceError
from ceopt.solvers.registry import SOLVERS, Licence

__all__ = ["environment", "licence", "refuse"]

# Found by bisection with gurobipy 13.0.3. Quadratic rows count as rows, columns with equal bounds as variables, and
# Gurobi's own range rows would each add a variable.
_VARIABLES = 2000
_ROWS = 2000
_QUADRATIC_VARIABLES = 200

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
    """Count what a session would hand over, and say which limit that passes."""
    if any(cone.cone not in {Cone.SECOND_ORDER, Cone.ROTATED} for cone in compiled.cones):
        return ""  # refused for its class, whatever its size
    program = cones_as_quadratics(compiled)
    is_quadratic = program.Q is not None or bool(program.quadratics)
    sides = [(program.row_lb, program.row_ub)]
    sides += [(np.array([row.lower]), np.array([row.upper])) for row in program.quadratics]
    rows = sum(int((np.isfinite(low) & (low != high)).sum() + np.isfinite(high).sum()) for low, high in sides)
    variables = len(program.columns)
    terms = " where there is a quadratic term" if is_quadratic else ""
    for limit, count, what in (
        (_QUADRATIC_VARIABLES if is_quadratic else _VARIABLES, variables, f"variables{terms}"),
        (_ROWS, rows, "rows (a row with two sides is two)"),
    ):
        if count > limit:
            more = f"{count - limit:,} too many"
            return f"Gurobi's size-limited licence takes {limit:,} {what} and this model has {count:,}, {more}."
    return ""


def _plain(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
