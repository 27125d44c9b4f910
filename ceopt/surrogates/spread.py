"""How far the rows of data lie apart at most."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

__all__ = ["largest_distance"]

_AT_ONCE: Final = 64  # rows that are compared with the others in one call


def largest_distance(points: NDArray[np.float64]) -> float:
    r"""Return the largest Euclidean distance of two of some points (n, p); 0 of a single one. Exact.

    With :math:`r_i` the distance of point i from the centre of the points, no pair is farther apart than
    :math:`r_i + r_j`. The points are gone through from the outermost inwards, each compared with all that lie no
    farther out, until :math:`2 r_i` is no more than what was found.

    Examples
    --------
    >>> largest_distance(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]))
    5.0
    """
    points = np.unique(points, axis=0)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    radii = np.sqrt(((points - middle) ** 2).sum(axis=1))
    order = np.argsort(-radii, kind="stable")
    points = points[order]
    radii = radii[order]
    best = 0.0
    for start in range(0, len(points), _AT_ONCE):
        if 2.0 * radii[start] <= best:
            break
        best = max(best, float(cdist(points[start : start + _AT_ONCE], points[start:]).max()))
    return best
