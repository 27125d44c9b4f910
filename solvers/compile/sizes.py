"""How large the numbers of a program are: of its rows, its costs and what its objective adds up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.errors import InvalidValueError
from ceopt.solvers.problem import Vector

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

#: HiGHS and Gurobi refuse coefficients from here on, and SCIP calls them huge.
GREATEST_COEFFICIENT = 1e15


def rows_of_entries(A: sp.csr_array) -> NDArray[np.intp]:
    """Return the row of each stored entry, (nnz,)."""
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


def greatest_by_row(sizes: Vector, rows: Any, n: int) -> Vector:
    """Return the greatest size of each of ``n`` rows; 1 for a row without entries."""
    greatest = np.zeros(n)
    np.maximum.at(greatest, rows, sizes)
    return np.where(greatest > 0.0, greatest, 1.0)


def greatest_cost(compiled: CompiledModel) -> float:
    """Return the greatest coefficient of the objective, linear or quadratic; 0 without one."""
    quadratic = np.zeros(0)
    if compiled.Q is not None:
        quadratic = compiled.Q.data
    return float(np.abs(np.concatenate([compiled.c, quadratic])).max(initial=0.0))


def size_of_terms(compiled: CompiledModel, x: Vector) -> float:
    """Return the sum of the absolute values that add up to the objective: what its rounding is relative to."""
    size = abs(compiled.c0) + float(np.abs(compiled.c) @ np.abs(x))
    if compiled.Q is not None:
        size += float(np.abs(x) @ (abs(compiled.Q) @ np.abs(x)))
    return size


def power_of_two(value: float, rounded: Callable[[float], int] = round) -> float:
    """Return the power of two nearest to a positive value; the next above or below with ``math.ceil`` or ``floor``.

    At most 2^1000: a move by one unit in the last place of 0 costs 5e-324, whose inverse is infinite.
    """
    return 2.0 ** rounded(math.log2(min(value, 2.0**1000)))


def refuse_huge(who: str, parts: Iterable[Vector]) -> None:
    """Refuse coefficients of a size that solvers do not take.

    Raises
    ------
    InvalidValueError
        One is 1e15 or more.
    """
    greatest = max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)
    if greatest >= GREATEST_COEFFICIENT:
        raise InvalidValueError(
            who, "coefficients below 1e15", f"the greatest is {greatest:.3g}", "Choose units that are nearer to 1."
        )
