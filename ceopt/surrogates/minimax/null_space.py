"""Null spaces of semidefinite matrices, up to rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ceopt.formulations.programs.parts import Floats
from ceopt.tolerances import NORM_SUM_NULL, NORM_SUM_RANK

__all__ = ["range_and_null", "shortest_in_null_space", "units_of", "within"]


def units_of(matrices: Sequence[Floats]) -> Floats:
    """Return of each column a unit of its own, so that no small one is taken for 0."""
    sizes = np.sqrt(np.maximum(sum(matrix.diagonal() for matrix in matrices), 0.0))
    return np.where(sizes > 0.0, sizes, 1.0)


def shortest_in_null_space(a: Floats, null: Floats) -> Floats | None:
    """Return the shortest w in a null space with a'w = 1, or None where a has no part in it but rounding."""
    part = null.T @ a
    if float(np.linalg.norm(part)) <= NORM_SUM_NULL * float(np.linalg.norm(np.abs(null).T @ np.abs(a))):
        return None
    return np.asarray(null @ part / (part @ part))


def range_and_null(matrices: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return orthonormal bases of the range and of the null space of a sum of semidefinite matrices, each as large."""
    alike = [matrix / (float(np.trace(matrix)) or 1.0) for matrix in matrices]
    values, vectors = np.linalg.eigh(sum(alike[1:], start=alike[0]))
    kept = values > NORM_SUM_RANK * max(float(values[-1]), 0.0)
    return vectors[:, kept], vectors[:, ~kept]


def within(matrices: Sequence[Floats], basis: Floats) -> list[Floats]:
    """Return the matrices as a subspace sees them, with 0 for what rounding leaves of their eigenvalues."""
    seen = []
    for matrix in matrices:
        values, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        values[values <= NORM_SUM_RANK * float(np.trace(matrix))] = 0.0
        seen.append((vectors * values) @ vectors.T)
    return seen
