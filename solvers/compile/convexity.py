"""Convexity of a quadratic objective (concavity where it is maximised), block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, tril
from scipy.sparse.csgraph import connected_components

__all__ = ["blocks_of", "is_convex"]

_TOLERANCE = 1e-9  # of the greatest absolute eigenvalue of a block: rounding of a semidefinite matrix


def is_convex(lower: Any, sense: int) -> bool:
    """Return whether ``sense * Q`` is positive semidefinite.

    Parameters
    ----------
    lower
        Lower triangle of the symmetric (n, n) Hessian, sparse; None for a linear objective.
    sense
        1 to minimise, -1 to maximise.

    Notes
    -----
    Eigenvalues of each connected block of variables: cheap for separable costs, cubic in the largest block.
    """
    if lower is None:
        return True
    full = csr_array(lower + tril(lower, -1).T)
    for block in blocks_of(full):
        eigenvalues = np.linalg.eigvalsh(sense * full[block][:, block].toarray())
        if eigenvalues[0] < -_TOLERANCE * np.abs(eigenvalues).max():
            return False
    return True


def blocks_of(full: Any) -> list[NDArray[np.intp]]:
    """Return the columns of each connected block of a symmetric sparse matrix; columns without entries are in none."""
    if not full.nnz:
        return []
    _, label = connected_components(full, directed=False)
    used = np.flatnonzero(np.diff(full.indptr))
    order = used[np.argsort(label[used], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
