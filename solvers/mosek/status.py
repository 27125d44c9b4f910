"""MOSEK's own solution and problem statuses, each mapped to one of ours."""

from __future__ import annotations

from typing import Any

from ceopt.solvers.problem import Status

__all__ = ["PROBLEM", "SOLUTION", "TERMINATION", "name_of", "status_of"]

# name of mosek.solsta -> our status; None where the problem status and the termination have to tell
SOLUTION: dict[str, Status | None] = {
    "optimal": Status.OPTIMAL,
    "integer_optimal": Status.OPTIMAL,
    "prim_feas": Status.FEASIBLE,
    "prim_and_dual_feas": Status.FEASIBLE,
    "dual_feas": None,
    "prim_infeas_cer": Status.INFEASIBLE,
    "dual_infeas_cer": Status.UNBOUNDED,  # a ray; the session asks whether there is a point to start it from
    "prim_illposed_cer": Status.ERROR,
    "dual_illposed_cer": Status.ERROR,
    "unknown": None,
}

# name of mosek.prosta -> what is proved of the program; the integer optimizer says "infeasible" only here
PROBLEM: dict[str, Status | None] = {
    "unknown": None,
    "prim_and_dual_feas": None,
    "prim_feas": None,
    "dual_feas": None,
    "prim_infeas": Status.INFEASIBLE,
    "dual_infeas": Status.UNBOUNDED,
    "prim_and_dual_infeas": Status.INFEASIBLE,
    "ill_posed": Status.ERROR,
    "prim_infeas_or_unbounded": Status.UNBOUNDED,  # the session tells the two apart
}

# name of the termination code, a mosek.rescode -> (status with a feasible point in hand, status with none)
TERMINATION: dict[str, tuple[Status, Status]] = {
    "ok": (Status.FEASIBLE, Status.ERROR),
    "trm_max_iterations": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_max_time": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_objective_range": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_mio_num_relaxs": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_mio_num_branches": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_num_max_num_int_solutions": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_server_max_time": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_server_max_memory": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_lost_race": (Status.FEASIBLE, Status.TIME_LIMIT),
    "trm_user_callback": (Status.INTERRUPTED, Status.INTERRUPTED),
    "trm_stall": (Status.FEASIBLE, Status.ERROR),
    "trm_max_num_setbacks": (Status.FEASIBLE, Status.ERROR),
    "trm_numerical_problem": (Status.FEASIBLE, Status.ERROR),
    "trm_internal": (Status.FEASIBLE, Status.ERROR),
    "trm_internal_stop": (Status.FEASIBLE, Status.ERROR),
}


def name_of(member: Any) -> str:
    """Return the name of a member of one of MOSEK's enumerations: "optimal" for ``mosek.solsta.optimal``."""
    return str(member).rsplit(".", 1)[-1]


def status_of(solution: str, problem: str, termination: str, *, has_point: bool) -> Status:
    """Return our status for the names of ``solsta``, ``prosta`` and the termination; an unknown name is an error.

    Parameters
    ----------
    solution, problem, termination
        As MOSEK gives them.
    has_point
        Whether the solution is a feasible point.
    """
    proved = SOLUTION.get(solution, Status.ERROR)
    if proved is None and not has_point:
        proved = PROBLEM.get(problem, Status.ERROR)
    if proved in {Status.INFEASIBLE, Status.UNBOUNDED} or (proved is Status.OPTIMAL and has_point):
        return proved
    held, nothing = TERMINATION.get(termination, (Status.ERROR, Status.ERROR))
    if proved is Status.ERROR and nothing is not Status.INTERRUPTED:
        return Status.ERROR
    return held if has_point else nothing
