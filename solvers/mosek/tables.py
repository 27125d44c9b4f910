"""MOSEK's own words: its statuses, each mapped to one of ours, and the parameters that it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ceopt.solvers.checks import refuse_argument
from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.solvers.options import plain, plain_of_type
from ceopt.solvers.problem import Stop, StopTable
from ceopt.solvers.session import status_of as stop_status

__all__ = ["PROBLEM", "SOLUTION", "TERMINATION", "name_of", "set_options", "status_of"]

# ---- solution, problem and termination -------------------------------------------------------------------------------
# name of mosek.solsta -> our status; None where the problem status and the termination have to tell
SOLUTION: dict[str, Stop | None] = {
    "optimal": Stop.OPTIMAL,
    "integer_optimal": Stop.OPTIMAL,
    "prim_feas": Stop.FEASIBLE,
    "prim_and_dual_feas": Stop.FEASIBLE,
    "dual_feas": None,
    "prim_infeas_cer": Stop.INFEASIBLE,
    "dual_infeas_cer": Stop.UNBOUNDED,  # a ray; the session asks whether there is a point to start it from
    "prim_illposed_cer": Stop.ERROR,
    "dual_illposed_cer": Stop.ERROR,
    "unknown": None,
}

# name of mosek.prosta -> what is proved of the program; the integer optimizer says "infeasible" only here
PROBLEM: dict[str, Stop | None] = {
    "unknown": None,
    "prim_and_dual_feas": None,
    "prim_feas": None,
    "dual_feas": None,
    "prim_infeas": Stop.INFEASIBLE,
    "dual_infeas": Stop.UNBOUNDED,
    "prim_and_dual_infeas": Stop.INFEASIBLE,
    "ill_posed": Stop.ERROR,
    "prim_infeas_or_unbounded": Stop.UNBOUNDED,  # the session tells the two apart
}

# name of the termination code, a mosek.rescode
TERMINATION: StopTable = {
    "ok": (Stop.FEASIBLE, Stop.ERROR),
    "trm_max_iterations": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_max_time": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_objective_range": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_mio_num_relaxs": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_mio_num_branches": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_num_max_num_int_solutions": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_server_max_time": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_server_max_memory": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_lost_race": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_user_callback": (Stop.INTERRUPTED, Stop.INTERRUPTED),
    "trm_stall": (Stop.FEASIBLE, Stop.ERROR),
    "trm_max_num_setbacks": (Stop.FEASIBLE, Stop.ERROR),
    "trm_numerical_problem": (Stop.FEASIBLE, Stop.ERROR),
    "trm_internal": (Stop.FEASIBLE, Stop.ERROR),
    "trm_internal_stop": (Stop.FEASIBLE, Stop.ERROR),
}


def name_of(member: Any) -> str:
    """Return the name of a member of one of MOSEK's enumerations: "optimal" for ``mosek.solsta.optimal``."""
    return str(member).rsplit(".", 1)[-1]


def status_of(solution: str, problem: str, termination: str, *, has_point: bool) -> Stop:
    """Return our status for the names of ``solsta``, ``prosta`` and the termination; an unknown name is an error.

    Parameters
    ----------
    solution, problem, termination
        As MOSEK gives them.
    has_point
        Whether the solution is a feasible point.
    """
    proved = SOLUTION.get(solution, Stop.ERROR)
    if proved is None and not has_point:
        proved = PROBLEM.get(problem, Stop.ERROR)
    if proved in {Stop.INFEASIBLE, Stop.UNBOUNDED} or (proved is Stop.OPTIMAL and has_point):
        return proved
    stop = stop_status(TERMINATION, termination, has_point=has_point)
    if proved is Stop.ERROR and stop is not Stop.INTERRUPTED:
        return Stop.ERROR
    return stop


# ---- parameters, refused before work starts if unknown or out of range -----------------------------------------------
_ARGUMENTS = {
    "MSK_DPAR_OPTIMIZER_MAX_TIME": "time_limit_s",
    "MSK_DPAR_MIO_MAX_TIME": "time_limit_s",
    "MSK_DPAR_MIO_TOL_REL_GAP": "relative_gap",
    "MSK_IPAR_NUM_THREADS": "threads",
    "MSK_IPAR_MIO_SEED": "random_state",
}
_TYPES: dict[str, tuple[type, ...]] = {"dparam": (float,), "iparam": (int, str), "sparam": (str,)}


def set_options(task: Any, options: Mapping[str, Any]) -> None:
    """Set each option on a ``mosek.Task``.

    Raises
    ------
    UnknownNameError
        MOSEK has no parameter of that name.
    InvalidValueError
        MOSEK does not take the value, or the parameter has an argument of its own.
    """
    import mosek

    known = dict(_names())
    for name, value in options.items():
        refuse_argument("MOSEK", name, value, _ARGUMENTS)
        if name not in known:
            raise UnknownNameError.among("MOSEK", "option", name, known)
        if all(plain_of_type(value, kind) is None for kind in _TYPES[known[name]]):
            raise _refusal(name, value, "")
        try:
            task.putparam(name, str(plain(value)))
        except mosek.Error as error:
            raise _refusal(name, value, f"{error.msg.strip().rstrip('.')}.") from error


def _refusal(name: str, value: Any, then: str) -> InvalidValueError:
    return InvalidValueError("MOSEK", f"a value that option {name!r} takes", f"{name} is {value!r}", then)


def _names() -> Iterator[tuple[str, str]]:
    import mosek

    for kind in _TYPES:
        for member in getattr(mosek, kind).members():
            yield f"MSK_{kind[0].upper()}PAR_{name_of(member).upper()}", kind
