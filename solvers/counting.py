"""The number of points of a linear program over integers, counted by SCIP without listing them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ceopt.solvers.checks import OrNone, Real, Whole, check_arguments
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.errors import InvalidValueError, MissingLibraryError, UnsupportedProblemError
from ceopt.solvers.registry import SOLVERS
from ceopt.solvers.session import require_data
from ceopt.solvers.tolerances import COUNTED_VIOLATION

_WHO = "count_solutions"
_MOST = 2**63 - 1  # SCIP counts no further
_CHECKS = {"limit": OrNone(Whole(at_least=1)), "time_limit_s": OrNone(Real(above=0.0))}


class Count(NamedTuple):
    """The points found, and whether they are all there are."""

    number: int
    complete: bool


def count(model: Any, *, limit: int | None = None, time_limit_s: float | None = None) -> Count:
    """Count the feasible points of a ConcreteModel over integers, whatever its objective, with SCIP.

    Parameters
    ----------
    model
        With linear Constraints; each of its Vars is fixed, or an integer with finite bounds. Vars that occur nowhere do
        not count.
    limit
        Stop when so many are found.
    time_limit_s
        Stop after so many seconds of counting.

    Returns
    -------
    Count
        ``.number`` and ``.complete``. Numbers end at 2^63 - 1.

    Raises
    ------
    MissingLibraryError
        pyscipopt is not installed.
    UnsupportedProblemError
        A Var is continuous, or a constraint is not linear: SCIP's counter is wrong beside quadratic rows.
    InvalidValueError
        An integer without finite bounds, or a limit that makes no sense.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import count
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var([1, 2, 3], domain=pyo.Binary)
    >>> model.some = pyo.Constraint(expr=model.x[1] + model.x[2] + model.x[3] >= 1)
    >>> count(model)
    Count(number=7, complete=True)
    """
    compiled = compile_model(model)
    scip = SOLVERS["scip"]
    if not scip.is_installed:
        raise MissingLibraryError("count", "SCIP", scip.why_not.rstrip("."), "Install it.")
    return count_solutions(compiled, limit=limit, time_limit_s=time_limit_s)


def count_solutions(compiled: CompiledModel, *, limit: int | None = None, time_limit_s: float | None = None) -> Count:
    """Count the feasible points of a program over integers, whatever its objective.

    SCIP walks the tree of all integer assignments, and where no product of ranges overflows its counter, it counts a
    subtree in which no row binds at once: the count may take far less time than there are points.

    Parameters
    ----------
    compiled
        Linear rows; every column that its bounds do not fix is an integer with finite bounds.
    limit
        Stop when so many are found.
    time_limit_s
        Stop after so many seconds; Ctrl-C stops it, too.

    Raises
    ------
    UnsupportedProblemError
        A column is continuous, or a row is quadratic or a cone: SCIP branches on columns of its own there, and counts
        a point several times.
    InvalidValueError
        An integer without finite bounds, a limit that makes no sense, or data columns without a value.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import compile_model
    >>> from ceopt.solvers.counting import count_solutions
    >>> m = pyo.ConcreteModel()
    >>> m.y = pyo.Var(range(3), domain=pyo.Binary)
    >>> m.some = pyo.Constraint(expr=m.y[0] + m.y[1] + m.y[2] >= 1)
    >>> count_solutions(compile_model(m))
    Count(number=7, complete=True)
    """
    check_arguments(_WHO, _CHECKS, {"limit": limit, "time_limit_s": time_limit_s})
    require_data(_WHO, compiled)
    _require_integers(compiled)
    if compiled.contradiction is not None:
        return Count(0, True)
    if not compiled.columns:
        return Count(int(compiled.violation(np.zeros(0)) <= COUNTED_VIOLATION), True)
    from ceopt.solvers.scip import Program, new_model, refuse_huge_numbers

    refuse_huge_numbers(compiled)
    model = new_model(compiled)
    model.setParamsCountsols()
    model.setParam("presolving/maxrounds", 0)  # SCIP 10.0 counts rows of two columns, once recognised, as redundant
    model.setParam("constraints/countsols/sparsetest", _points_of_box(compiled) <= _MOST)  # subtrees; it overflows
    model.setParam("misc/catchctrlc", True)  # pyscipopt keeps Python waiting while SCIP counts
    model.setParam("constraints/countsols/sollimit", -1 if limit is None else limit)
    if time_limit_s is not None:
        model.setParam("limits/time", min(time_limit_s, 1e20))
    Program(model, compiled, 0.0)
    model.count()
    number = int(model.getNCountedSols())
    complete = model.getStatus() == "infeasible"  # nothing is left
    if limit is None:
        return Count(number, complete)
    return Count(min(number, limit), complete and number <= limit)


def _points_of_box(compiled: CompiledModel) -> int:
    whole = compiled.integer
    widths = np.floor(compiled.ub[whole] + 1e-6) - np.ceil(compiled.lb[whole] - 1e-6) + 1.0
    return math.prod(int(width) for width in widths)


def _require_integers(compiled: CompiledModel) -> None:
    loose = compiled.lb != compiled.ub
    continuous = np.flatnonzero(loose & ~compiled.integer)
    if continuous.size:
        raise UnsupportedProblemError(
            _WHO,
            "a program over integers",
            f"{compiled.columns[continuous[0]].name!r} is continuous",
            "Fix it, or make it an integer.",
        )
    endless = np.flatnonzero(loose & ~(np.isfinite(compiled.lb) & np.isfinite(compiled.ub)))
    if endless.size:
        k = endless[0]
        raise InvalidValueError(
            _WHO,
            "finite bounds of all integers",
            f"{compiled.columns[k].name!r} has [{compiled.lb[k]:g}, {compiled.ub[k]:g}]",
            "Set both.",
        )
    others = [row.constraint for row in compiled.quadratics] + [cone.constraint for cone in compiled.cones]
    if others:
        raise UnsupportedProblemError(
            _WHO, "linear rows", f"{others[0].name!r} is not linear", "Restate it in linear rows, or leave it out."
        )
