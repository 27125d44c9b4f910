"""Side conditions of a correction: the columns that stay, and conditions on where a counterfactual goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations.programs.column_arguments import require_bounds, require_columns
from ceopt.formulations.programs.expressions import Floats, sum_of
from ceopt.solvers.checks import Matrix
from ceopt.solvers.errors import InvalidTypeError

__all__ = ["add_side_conditions", "combination", "free_columns", "require_inequalities"]


def combination(variables: Any, coefficients: Any, constant: float = 0.0) -> Any:
    """Return a sum of Vars as one expression, without those whose coefficient is 0."""
    kept = []
    for v, c in zip(variables, coefficients, strict=True):
        if c:
            kept.append((v, c))
    return sum_of([v for v, _ in kept], [c for _, c in kept], constant)


def free_columns(who: str, fixed: Iterable[int] | None, d: int) -> NDArray[np.bool_]:
    """Return which of d columns may move, all but those at the places ``fixed``, or refuse the places."""
    free = np.ones(d, dtype=bool)
    free[require_columns(who, "fixed", () if fixed is None else fixed, d)] = False
    return free


def require_inequalities(who: str, inequalities: Sequence[ArrayLike] | None, d: int) -> tuple[Floats, Floats]:
    """Return (A, b) of conditions A x <= b on d columns, without rows if there are none, or refuse them."""
    if inequalities is None:
        return np.zeros((0, d)), np.zeros(0)
    if not isinstance(inequalities, Sequence) or len(inequalities) != 2:
        but = f"inequalities is {type(inequalities).__name__}"
        raise InvalidTypeError(who, "a pair (A, b), meaning A x <= b, as inequalities", but, "Give (A, b).")
    matrix = Matrix((None, d)).require(who, "A of inequalities", inequalities[0])
    return matrix, Matrix((len(matrix),)).require(who, "b of inequalities", inequalities[1])


def add_side_conditions(
    model: Any,
    who: str,
    x: Any,
    *,
    inequalities: Sequence[ArrayLike] | None,
    bounds: Sequence[ArrayLike] | None,
    scale: Any = None,
) -> None:
    """Add the rows ``side``: A x <= b, ``low``: l <= x and ``high``: x <= u, only where a bound is finite.

    With a Var as ``scale``, the right-hand sides are multiplied by it: the conditions on x / scale.
    """
    d = len(x)
    matrix, right = require_inequalities(who, inequalities, d)
    lower, upper = require_bounds(who, bounds, d)

    def row(body: Any, coefficients: Any, limit: float) -> Any:
        """Sum of the body less the limit, or less the limit times the scale."""
        if scale is None:
            return combination(body, coefficients, -limit)
        return combination([*body, scale], [*coefficients, -limit])

    if len(matrix):
        model.side = pyo.Constraint(
            range(len(matrix)), rule=lambda _, i: row(x.values(), matrix[i], float(right[i])) <= 0.0
        )
    for name, limits, sign in (("low", lower, -1.0), ("high", upper, 1.0)):
        held = np.flatnonzero(np.isfinite(limits)).tolist()
        if held:
            rows = {k: row([x[k]], [sign], sign * float(limits[k])) for k in held}
            setattr(model, name, pyo.Constraint(held, rule=lambda _, k, rows=rows: rows[k] <= 0.0))
