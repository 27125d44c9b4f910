"""Gurobi's own words: its stop statuses, each mapped to one of ours, and the parameters that it takes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from ceopt.solvers.checks import refuse_argument
from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.solvers.options import plain_of_type
from ceopt.solvers.problem import Stop, StopTable

__all__ = ["BOUNDLESS", "IMPRECISE", "STOP", "name_of", "set_options"]

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
    from gurobipy import GRB, GurobiError

    known = [name for name in dir(GRB.Param) if not name.startswith("_")]
    for name, value in options.items():
        refuse_argument("Gurobi", name, value, _ARGUMENTS, word="parameter")
        if name not in known:
            folded = {other.lower(): other for other in known}  # more than 200
            close = [folded[other] for other in difflib.get_close_matches(str(name).lower(), folded, n=4, cutoff=0.7)]
            if close:
                raise UnknownNameError.among("Gurobi", "option", name, close)
            raise UnknownNameError("Gurobi", "a known option", f"option is {name!r}", "See the manual's parameters.")
        _, kind, _, least, greatest, default = model.getParamInfo(name)
        plain = plain_of_type(value, kind)
        try:
            if plain is not None:
                model.setParam(name, plain)
        except GurobiError:  # out of range, or of the environment, which runs already
            plain = None
        if plain is None:
            span = ""
            if kind is not str:
                span = f" from {least} to {greatest}"
            raise InvalidValueError(
                "Gurobi",
                f"a value of type {kind.__name__}{span} that a model's parameter {name!r} takes",
                f"{name} is {value!r}",
                f"Its default is {default!r}.",
            )
