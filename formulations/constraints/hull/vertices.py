"""The vertices of a set of points: those that are no combination of others, and those that a reach leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from ceopt.formulations.tolerances import VERTEX_ROUNDING
from ceopt.solvers.deadline import checkpoint

__all__ = ["face", "vertices"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

#: Columns in which quickhull is still quick.
_FEW = 4


def vertices(values: Floats, ends: NDArray[np.bool_]) -> Places:
    """Return places of points (n, D) that have the hull of all: equal ones once, and fewer where that is cheap.

    Points that agree in every column of ``ends`` form a group. In a group that varies in one column the least and the
    greatest are kept, in up to four the vertices that quickhull finds; of a flat group, and in more, all.

    Parameters
    ----------
    values
        The points.
    ends
        Columns whose values are all 0 or 1, up to a scale, (D,): no combination of points that differ in one of them
        is a point of the set, so that nothing is lost by looking at the groups one by one.
    """
    first = np.sort(np.unique(values, axis=0, return_index=True)[1])
    if not ends.any():
        return np.sort(first[_extreme(values[first])])
    _, group = np.unique(values[np.ix_(first, ends)], axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    groups = np.split(first[order], np.flatnonzero(np.diff(group.ravel()[order])) + 1)
    kept = []
    for own in groups:
        checkpoint("finding the points of a hull")
        kept.append(own[_extreme(values[np.ix_(own, ~ends)])])
    return np.sort(np.concatenate(kept))


def _extreme(values: Floats) -> Places:
    """Return places of points, all distinct, that have the hull of all."""
    every = np.arange(len(values))
    if len(values) <= 2:
        return every
    if values.size:
        varying = values[:, np.ptp(values, axis=0) > 0.0]
    else:
        varying = values
    if varying.shape[1] == 1:
        return np.array([varying[:, 0].argmin(), varying[:, 0].argmax()])
    if not 2 <= varying.shape[1] <= _FEW or len(values) <= varying.shape[1] + 1:
        return every
    try:
        return np.asarray(ConvexHull((varying - varying.min(axis=0)) / np.ptp(varying, axis=0)).vertices, dtype=np.intp)
    except QhullError:  # flat: all in a plane, or too near to one
        return every


def face(values: Floats, low: Floats, high: Floats) -> Places:
    """Return places of points (n, D) that may have a weight in a combination between ``low`` and ``high``, (D,).

    Where the combination may not be below the greatest value of a column (or above the least), only points with that
    value take part. Of those left the same may be true in another column.
    """
    places = np.arange(len(values))
    share, size = VERTEX_ROUNDING
    while len(places):
        own = values[places]
        least = own.min(axis=0)
        greatest = own.max(axis=0)
        slack = share * (greatest - least) + size * np.maximum(abs(least), abs(greatest))
        at_top = low >= greatest - slack
        at_bottom = high <= least + slack
        kept = ((own >= low - slack) | ~at_top).all(axis=1) & ((own <= high + slack) | ~at_bottom).all(axis=1)
        if kept.all():
            break
        places = places[kept]
    return places
