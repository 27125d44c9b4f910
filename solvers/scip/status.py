"""SCIP's own stop statuses, each mapped to one of ours."""

from __future__ import annotations

from ceopt.solvers.problem import Status

__all__ = ["STOP", "status_of", "words_of"]

_LIMIT = (Status.FEASIBLE, Status.TIME_LIMIT)

# word of pyscipopt's getStatus -> (status with a point in hand, status with nothing in hand)
STOP: dict[str, tuple[Status, Status]] = {
    "optimal": (Status.OPTIMAL, Status.ERROR),
    "gaplimit": (Status.OPTIMAL, Status.ERROR),
    "infeasible": (Status.INFEASIBLE, Status.INFEASIBLE),
    "unbounded": (Status.UNBOUNDED, Status.UNBOUNDED),  # the session confirms it
    "inforunbd": (Status.UNBOUNDED, Status.UNBOUNDED),  # the session tells the two apart
    "userinterrupt": (Status.INTERRUPTED, Status.INTERRUPTED),
    "timelimit": _LIMIT,
    "nodelimit": _LIMIT,
    "totalnodelimit": _LIMIT,
    "stallnodelimit": _LIMIT,
    "memlimit": _LIMIT,
    "sollimit": _LIMIT,
    "bestsollimit": _LIMIT,
    "restartlimit": _LIMIT,
    "primallimit": _LIMIT,
    "duallimit": _LIMIT,
    "unknown": (Status.FEASIBLE, Status.ERROR),
}

_WORDS = {
    "gaplimit": "gap limit",
    "inforunbd": "infeasible or unbounded",
    "userinterrupt": "interrupted",
    "timelimit": "time limit",
    "nodelimit": "node limit",
    "totalnodelimit": "total node limit",
    "stallnodelimit": "stall node limit",
    "memlimit": "memory limit",
    "sollimit": "solution limit",
    "bestsollimit": "best solution limit",
    "restartlimit": "restart limit",
    "primallimit": "primal limit",
    "duallimit": "dual limit",
}


def status_of(name: str, *, has_point: bool) -> Status:
    """Return our status for SCIP's word; one that is not in the table is an error."""
    held, nothing = STOP.get(name, (Status.ERROR, Status.ERROR))
    return held if has_point else nothing


def words_of(name: str) -> str:
    """Return ``timelimit`` as "time limit"."""
    return _WORDS.get(name, name)
