"""Gurobi's parameters by their own names, refused before work starts if unknown or out of range."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from ceopt.solvers.checks import refuse_argument
from ceopt.solvers.errors import InvalidValueError, UnknownNameError

__all__ = ["set_options"]

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
        plain = _plain(value, kind)
        try:
            if plain is not None:
                model.setParam(name, plain)
        except GurobiError:  # out of range, or of the environment, which runs already
            plain = None
        if plain is None:
            span = f" from {least} to {greatest}" if kind is not str else ""
            raise InvalidValueError(
                "Gurobi",
                f"a value of type {kind.__name__}{span} that a model's parameter {name!r} takes",
                f"{name} is {value!r}",
                f"Its default is {default!r}.",
            )


def _plain(value: Any, kind: type) -> Any:
    """Return the value as the parameter's type; None where Gurobi would cut it to size (1.5 to 1) or fail."""
    value = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
    if isinstance(value, bool) or (isinstance(value, float) and math.isnan(value)):
        return None
    if kind is float and isinstance(value, int):
        return float(value)
    return value if isinstance(value, kind) else None
