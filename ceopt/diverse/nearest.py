"""Rows in order of their distance from a point, as many as are asked for: nobody needs all of a large table sorted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.diverse.distance import Floats, RowDistance
from ceopt.tolerances import TREE_DISTANCE_ROUNDING

__all__ = ["Neighbours", "in_order"]

Places = NDArray[np.intp]

#: From how many rows on, and up to how many dimensions, scikit-learn's k-d tree beats a look at every row.
_TREE_ROWS: Final = 20_000
_TREE_DIMENSIONS: Final = 15
#: Each further block is this many times the size of the one before.
_GROWTH: Final = 2


def in_order(distances: Floats, first: int) -> Iterator[Places]:
    """Give the places of distances (n,) in increasing order, ties by place, in blocks of at least ``first`` that grow.

    Equal distances are never in two blocks.
    """
    left = np.arange(len(distances))
    size = first
    while len(left):
        block = left
        held = distances[left]
        if len(left) > size:
            near = held <= np.partition(held, size - 1)[size - 1]
            block = left[near]
            left = left[~near]
        else:
            left = left[:0]
        yield block[np.argsort(distances[block], kind="stable")]
        size *= _GROWTH


@final
class Neighbours:
    """Fixed rows (n, d), asked again and again for those that are nearest to a point.

    Parameters
    ----------
    rows
        The rows, as coordinates.
    distance
        How far they are.
    """

    __slots__ = ("_distance", "_rows", "_tree")

    def __init__(self, rows: Floats, distance: RowDistance) -> None:
        self._rows = rows
        self._distance = distance
        self._tree: Any = None
        dimensions = int(np.where(distance.levels > 0, distance.levels, 1).sum())
        if len(rows) >= _TREE_ROWS and dimensions <= _TREE_DIMENSIONS and distance.is_symmetric:
            from sklearn.neighbors import NearestNeighbors

            metric = {"l1": "manhattan", "l2": "euclidean"}[distance.norm]
            self._tree = NearestNeighbors(algorithm="kd_tree", metric=metric).fit(distance.embedded(rows))

    def blocks(self, home: Floats, first: int) -> Iterator[tuple[Places, Floats]]:
        """Give places and distances from ``home`` (d,) in increasing order, ties by place, in growing blocks."""
        reached = 0.0
        if self._tree is not None:
            count = first
            where = self._distance.embedded(home[None, :])
            while _GROWTH * count < len(self._rows):
                far, found = self._tree.kneighbors(where, n_neighbors=count)
                places = np.sort(found[0])
                distances = self._distance.between(home, self._rows[places])
                # Of rows at the farthest distance the tree may have left some out: they are for the next block.
                sure = far[0, -1] * (1.0 - TREE_DISTANCE_ROUNDING)
                new = (distances >= reached) & (distances < sure)
                order = np.argsort(distances[new], kind="stable")
                yield places[new][order], distances[new][order]
                reached = max(reached, sure)
                count = count * _GROWTH
        distances = self._distance.between(home, self._rows)
        left = np.flatnonzero(distances >= reached)
        for block in in_order(distances[left], first):
            yield left[block], distances[left[block]]
