"""SCIP's own words: its stop statuses, each mapped to one of ours, our settings, and the parameters that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ceopt.solvers.checks import refuse_argument
from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.solvers.options import plain_of_type
from ceopt.solvers.problem import ProblemClass, Stop, StopTable

__all__ = ["STOP", "new_model", "refuse_huge", "set_options", "words_of"]

# ---- stop statuses ---------------------------------------------------------------------------------------------------
_LIMIT = (Stop.FEASIBLE, Stop.TIME_LIMIT)

# by the words of pyscipopt's getStatus
STOP: StopTable = {
    "optimal": (Stop.OPTIMAL, Stop.ERROR),
    "gaplimit": (Stop.OPTIMAL, Stop.ERROR),
    "infeasible": (Stop.INFEASIBLE, Stop.INFEASIBLE),
    "unbounded": (Stop.UNBOUNDED, Stop.UNBOUNDED),  # the session confirms it
    "inforunbd": (Stop.UNBOUNDED, Stop.UNBOUNDED),  # the session tells the two apart
    "userinterrupt": (Stop.INTERRUPTED, Stop.INTERRUPTED),
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
    "unknown": (Stop.FEASIBLE, Stop.ERROR),
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


def words_of(name: str) -> str:
    """Return ``timelimit`` as "time limit"."""
    return _WORDS.get(name, name)


# ---- parameters: our own settings, then the user's, refused if unknown or out of range -------------------------------
_IPOPT = Path(__file__).with_name("ipopt.opt")
_GREATEST = 1e15  # coefficients from here on are "huge values" to SCIP
_ARGUMENTS = {
    "limits/time": "time_limit_s",
    "limits/gap": "relative_gap",
    "limits/absgap": "relative_gap",
    "limits/primal": "should_stop",  # SCIP sees a scaled objective
    "limits/dual": "should_stop",
    "randomization/randomseedshift": "random_state",
    "parallel/maxnthreads": "threads",
}


def new_model(compiled: CompiledModel) -> Any:
    """Return a SCIP of our own settings: silent, and without memory of what it solved before."""
    from pyscipopt import Model

    model: Any = Model()
    model.hideOutput()
    model.setParam("misc/catchctrlc", False)  # the switch listens
    model.setParam("misc/transsolsorig", False)  # else the next solve starts from this one's points
    model.setParam("heuristics/completesol/maxunknownrate", 1.0)  # a start of few columns is completed too
    with suppress(KeyError):  # a SCIP that was built without Ipopt
        model.setParam("nlpi/ipopt/optfile", str(_IPOPT))  # the file says why
    if compiled.problem_class is ProblemClass.NONCONVEX_EXP:  # less, and SoPlex says that it cannot be so exact
        model.setParam("propagating/obbt/dualfeastol", 1e-7)
    if compiled.Q is not None or any(compiled.shape[2:]):
        model.setParam("numerics/feastol", 1e-7)  # the objective is a row then, to be right to 1e-6; costs no time
    else:  # put into other rows as a sum, a column's own row is kept to 7e-5 only: optima were 8e-5 off; costs no time
        model.setParam("presolving/donotmultaggr", True)
    return model


def refuse_huge(compiled: CompiledModel) -> None:
    """Refuse coefficients that SCIP calls huge."""
    parts = [
        compiled.A.data,
        *(row.a.data for row in compiled.quadratics),
        *(row.Q.data for row in compiled.quadratics),
    ]
    parts += [cone.matrix.data for cone in compiled.cones]
    greatest = max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)
    if greatest >= _GREATEST:
        raise InvalidValueError(
            "SCIP", "coefficients below 1e15", f"the greatest is {greatest:.3g}", "Choose units that are nearer to 1."
        )


def set_options(model: Any, options: Mapping[str, Any]) -> None:
    """Set each option on a ``pyscipopt.Model``.

    Raises
    ------
    UnknownNameError
        SCIP has no parameter of that name.
    InvalidValueError
        SCIP does not take the value, or the parameter has an argument of its own.
    """
    for name, value in options.items():
        refuse_argument("SCIP", name, value, _ARGUMENTS)
        try:
            present = model.getParam(name)
        except (KeyError, TypeError, AttributeError):
            raise _unknown(model, name) from None
        plain = plain_of_type(value, type(present))
        if plain is None or not _is_taken(model, name, plain):
            raise InvalidValueError(
                "SCIP",
                f"a value of type {type(present).__name__} that option {name!r} takes",
                f"{name} is {value!r}",
                f"Its present value is {present!r}.",
            )


def _is_taken(model: Any, name: str, value: bool | float | str) -> bool:
    try:
        model.setParam(name, value)
    except Exception:  # noqa: BLE001  (pyscipopt raises a class of its own choice for each return code)
        return False
    return True


def _unknown(model: Any, name: object) -> UnknownNameError:
    """Return the error, with those of SCIP's 3,000 parameters that share most with the name."""
    known = list(model.getParams())
    last = str(name).rsplit("/", 1)[-1]
    alike = [word for word in known if last and last in word] or [word for word in known if word.startswith("limits/")]
    shown = UnknownNameError.among("SCIP", "option", name, known)
    head = str(shown).split("Choose from", 1)[0]
    return UnknownNameError(f"{head}SCIP has {len(known)} of them, such as {', '.join(alike[:8])}.")
