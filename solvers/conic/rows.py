"""Linear rows, bounds and cones of a compiled model below one another, as the conic form has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.rows_and_cones import ConeRows
from ceopt.solvers.cones import Cone, side_of, triangle
from ceopt.solvers.problem import Vector

__all__ = ["ORDER", "conic_rows", "linear_rows", "rank", "size_of", "svec_scale"]

ORDER = (None, Cone.SECOND_ORDER, Cone.SEMIDEFINITE, Cone.EXPONENTIAL)
"""The kinds of cone in the order of the form; None stands for R+."""


def linear_rows(compiled: CompiledModel, free: NDArray[np.bool_]) -> tuple[sp.csr_array, Vector, list[Any], int]:
    """Return (A, b, sources, zeros): A x = b for the first rows, A x <= b for the others."""
    A = compiled.A
    low = compiled.row_lb
    high = compiled.row_ub
    equal = np.flatnonzero(low == high)
    above = np.flatnonzero(np.isfinite(high) & (low != high))
    below = np.flatnonzero(np.isfinite(low) & (low != high))
    under = np.flatnonzero(np.isfinite(compiled.ub) & free)
    over = np.flatnonzero(np.isfinite(compiled.lb) & free)
    columns = np.concatenate([under, over])
    signs = np.repeat([1.0, -1.0], [under.size, over.size])
    bounds = sp.csr_array((signs, columns, np.arange(columns.size + 1)), shape=(columns.size, A.shape[1]))
    matrix = sp.csr_array(sp.vstack([A[equal], A[above], -A[below], bounds]))
    b = np.concatenate([high[equal], high[above], -low[below], compiled.ub[under], -compiled.lb[over]])
    sources = [compiled.rows[k] for part in (equal, above, below) for k in part.tolist()]
    return matrix, b, sources + [compiled.columns[k] for k in columns.tolist()], equal.size


def conic_rows(cones: list[ConeRows], n: int) -> tuple[sp.csr_array, Vector]:
    """Return (E, e): the entries E x + e of all cones below one another, rotated and scaled as the form has them."""
    if not cones:
        return sp.csr_array((0, n)), np.zeros(0)
    sizes = np.array([cone.constant.size for cone in cones])
    starts = np.cumsum(sizes) - sizes
    diagonal = np.ones(int(sizes.sum()))
    for cone, start in zip(cones, starts.tolist(), strict=True):
        if cone.cone is Cone.SEMIDEFINITE:
            diagonal[start : start + cone.constant.size] = svec_scale(cone.constant.size)
    heads = starts[[cone.cone is Cone.ROTATED for cone in cones]]
    half = math.sqrt(0.5)
    diagonal[heads], diagonal[heads + 1] = half, -half
    cross = np.zeros(diagonal.size - 1)
    cross[heads] = half
    mixing: Any = sp.diags_array  # its stubs know no arrays
    mix = sp.csr_array(mixing([diagonal, cross, cross], offsets=[0, 1, -1]))
    matrix = sp.csr_array(mix @ sp.csr_array(sp.vstack([cone.matrix for cone in cones])))
    return matrix, np.asarray(mix @ np.concatenate([cone.constant for cone in cones]), dtype=np.float64)


def rank(cone: ConeRows) -> int:
    """Return the place of a cone's kind in the form: 0 for one that is R+ itself, having one entry."""
    if cone.constant.size == 1:
        return 0
    return ORDER.index(Cone.SECOND_ORDER if cone.cone is Cone.ROTATED else cone.cone)


def size_of(cone: ConeRows) -> int:
    """Return a cone's size in the form: the side of a semidefinite one, else its entries."""
    if cone.cone is Cone.SEMIDEFINITE:
        return side_of(cone.constant.size)
    return cone.constant.size


def svec_scale(entries: int) -> Vector:
    """Return sqrt 2 for the entries of a triangle that are off the diagonal, else 1: inner products are then kept."""
    i, j = triangle(side_of(entries))
    return np.where(i == j, 1.0, math.sqrt(2.0))
