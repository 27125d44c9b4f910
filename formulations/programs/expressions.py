"""What every program is written with: sums of variables, and symmetric matrices of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr.numeric_expr import LinearExpression

from ceopt.solvers.cones import psd
from ceopt.solvers.deadline import checkpoint

__all__ = ["Floats", "bordered", "mirrored", "sum_of", "symmetric"]

Floats = NDArray[np.float64]


def sum_of(variables: Any, coefficients: Any = None, constant: float = 0.0) -> Any:
    """Return a sum of Vars as one expression, which Pyomo walks several times faster than a chain of ``+``."""
    checkpoint("stating the program")
    variables = list(variables)
    if coefficients is None:
        coefficients = [1.0] * len(variables)
    else:
        coefficients = [float(c) for c in coefficients]
    return LinearExpression(constant=constant, linear_coefs=coefficients, linear_vars=variables)


def symmetric(k: int) -> Any:
    """Return a Var for the upper triangle of a symmetric matrix of side k; see :func:`mirrored`."""
    return pyo.Var([(a, b) for a in range(k) for b in range(a, k)])


def mirrored(k: int, entry: Callable[[int, int], Any]) -> list[list[Any]]:
    """Return the symmetric matrix of side k with these entries at (a, b), a <= b."""
    upper = {}
    for a in range(k):
        checkpoint("stating the program")
        for b in range(a, k):
            upper[(a, b)] = entry(a, b)
    return [[upper[min(a, b), max(a, b)] for b in range(k)] for a in range(k)]


def bordered(
    inside: Callable[[int, int], Any],
    k: int,
    edge: Callable[[int, int], Any],
    n: int,
    corner: Callable[[int, int], Any],
) -> Any:
    r"""Return the margin of :math:`\begin{pmatrix} A & B \\ B^\top & C \end{pmatrix}`, of sides k and n, by entries."""

    def entry(a: int, b: int) -> Any:
        if b < k:
            return inside(a, b)
        if a < k:
            return edge(a, b - k)
        return corner(a - k, b - k)

    return psd(mirrored(k + n, entry))
