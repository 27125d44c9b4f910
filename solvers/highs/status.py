"""HiGHS's own stop statuses, each mapped to one of ours."""

from __future__ import annotations

from ceopt.solvers.problem import Status

__all__ = ["STOP", "status_of"]

# name of highspy.HighsModelStatus -> (status with a point in hand, status with nothing in hand)
STOP: dict[str, tuple[Status, Status]] = {
    "kNotset": (Status.ERROR, Status.ERROR),
    "kLoadError": (Status.ERROR, Status.ERROR),
    "kModelError": (Status.ERROR, Status.ERROR),
    "kPresolveError": (Status.ERROR, Status.ERROR),
    "kSolveError": (Status.ERROR, Status.ERROR),
    "kPostsolveError": (Status.ERROR, Status.ERROR),
    "kModelEmpty": (Status.OPTIMAL, Status.OPTIMAL),
    "kOptimal": (Status.OPTIMAL, Status.ERROR),
    "kInfeasible": (Status.INFEASIBLE, Status.INFEASIBLE),
    "kUnboundedOrInfeasible": (Status.UNBOUNDED, Status.UNBOUNDED),  # the session tells the two apart
    "kUnbounded": (Status.UNBOUNDED, Status.UNBOUNDED),
    "kObjectiveBound": (Status.FEASIBLE, Status.TIME_LIMIT),
    "kObjectiveTarget": (Status.FEASIBLE, Status.TIME_LIMIT),
    "kTimeLimit": (Status.FEASIBLE, Status.TIME_LIMIT),
    "kIterationLimit": (Status.FEASIBLE, Status.TIME_LIMIT),
    "kUnknown": (Status.FEASIBLE, Status.ERROR),
    "kSolutionLimit": (Status.FEASIBLE, Status.TIME_LIMIT),
    "kInterrupt": (Status.INTERRUPTED, Status.INTERRUPTED),
    "kMemoryLimit": (Status.FEASIBLE, Status.TIME_LIMIT),
    "kHighsInterrupt": (Status.INTERRUPTED, Status.INTERRUPTED),
}


def status_of(name: str, *, has_point: bool) -> Status:
    """Return our status for the ``HighsModelStatus`` called ``name``; one that is not in the table is an error."""
    held, nothing = STOP.get(name, (Status.ERROR, Status.ERROR))
    return held if has_point else nothing
