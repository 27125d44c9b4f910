"""Gurobi's own stop statuses, each mapped to one of ours."""

from __future__ import annotations

from ceopt.solvers.problem import Status

__all__ = ["BOUNDLESS", "IMPRECISE", "STOP", "name_of", "status_of"]

# name of a member of gurobipy.GRB.Status -> (status with a point in hand, status with nothing in hand)
STOP: dict[str, tuple[Status, Status]] = {
    "LOADED": (Status.ERROR, Status.ERROR),
    "OPTIMAL": (Status.OPTIMAL, Status.ERROR),
    "INFEASIBLE": (Status.INFEASIBLE, Status.INFEASIBLE),
    "INF_OR_UNBD": (Status.UNBOUNDED, Status.UNBOUNDED),  # the session tells the two apart
    "UNBOUNDED": (Status.UNBOUNDED, Status.UNBOUNDED),  # says nothing about feasibility: the session looks
    "CUTOFF": (Status.FEASIBLE, Status.TIME_LIMIT),  # only under an option of the caller's
    "ITERATION_LIMIT": (Status.FEASIBLE, Status.TIME_LIMIT),
    "NODE_LIMIT": (Status.FEASIBLE, Status.TIME_LIMIT),
    "TIME_LIMIT": (Status.FEASIBLE, Status.TIME_LIMIT),
    "SOLUTION_LIMIT": (Status.FEASIBLE, Status.TIME_LIMIT),
    "INTERRUPTED": (Status.INTERRUPTED, Status.INTERRUPTED),
    "NUMERIC": (Status.FEASIBLE, Status.ERROR),
    "SUBOPTIMAL": (Status.FEASIBLE, Status.ERROR),  # the tolerances could not be met
    "INPROGRESS": (Status.ERROR, Status.ERROR),
    "USER_OBJ_LIMIT": (Status.FEASIBLE, Status.TIME_LIMIT),
    "WORK_LIMIT": (Status.FEASIBLE, Status.TIME_LIMIT),
    "MEM_LIMIT": (Status.FEASIBLE, Status.TIME_LIMIT),
    "LOCALLY_OPTIMAL": (Status.FEASIBLE, Status.ERROR),  # no proof about the whole program
    "LOCALLY_INFEASIBLE": (Status.FEASIBLE, Status.ERROR),
}

BOUNDLESS = frozenset({"INF_OR_UNBD", "UNBOUNDED"})
IMPRECISE = frozenset({"NUMERIC", "SUBOPTIMAL"})


def status_of(name: str, *, has_point: bool) -> Status:
    """Return our status for the member of ``GRB.Status`` called ``name``; one that is not in the table is an error."""
    held, nothing = STOP.get(name, (Status.ERROR, Status.ERROR))
    return held if has_point else nothing


def name_of(code: int) -> str:
    """Return the name of a status code."""
    from gurobipy import GRB

    members = ((name, getattr(GRB.Status, name)) for name in dir(GRB.Status) if not name.startswith("_"))
    return next((name for name, value in members if value == code), f"status {code}")
