"""The number of points of an integer program, counted without listing them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.errors import MissingLibraryError
from ceopt.solvers.registry import SOLVERS

__all__ = ["Count", "count"]


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
    from ceopt.solvers.scip.session import count_solutions

    return Count(*count_solutions(compiled, limit=limit, time_limit_s=time_limit_s))
