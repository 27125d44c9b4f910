"""Many trees in one set of arrays, so that a batch of rows walks all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.representation.tree import Floats, Tree

__all__ = ["StackedTrees"]

#: Pairs of a row and a tree that walk together: what a core's cache holds.
_PAIRS = 1 << 16


@final
class StackedTrees:
    """The nodes of all trees, one tree after the other; a leaf is its own child.

    Rows go down all trees one level at a time, which spares a call per tree and level: forty times faster than tree by
    tree on ten rows, three times on thousands.
    """

    __slots__ = ("_child", "_depth", "_feature", "_members", "_root", "_threshold", "_value")

    def __init__(self, trees: Sequence[Tree]) -> None:
        sizes = [len(tree.feature) for tree in trees]
        self._root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        leaf = ~np.concatenate([tree.inner for tree in trees])
        own = np.arange(len(leaf))
        pairs = zip(trees, self._root.tolist(), strict=True)
        ends = [np.stack([tree.right + first, tree.left + first], axis=1) for tree, first in pairs]
        self._child = np.where(leaf[:, None], own[:, None], np.concatenate(ends)).ravel()
        self._feature = np.where(leaf, 0, np.concatenate([tree.feature for tree in trees]))
        self._threshold = np.concatenate([tree.threshold for tree in trees])
        self._value = np.concatenate([tree.value for tree in trees])
        self._members = _Members(trees) if any(tree.sets for tree in trees) else None
        self._depth, level = 0, self._root[~leaf[self._root]]
        while len(level):
            self._depth += 1
            level = np.unique(self._child.reshape(-1, 2)[level])
            level = level[~leaf[level]]

    def apply(self, seen: Floats) -> NDArray[np.intp]:
        """Return the node of the leaf reached in each tree, as each tree numbers it, (n, trees)."""
        parts = [nodes - self._root for _, nodes in self._walks(seen)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self._root)), dtype=np.intp)

    def sums(self, seen: Floats, base: Floats, dtype: str) -> Floats:
        """Return base plus the values of the leaves reached, added tree by tree in float width ``dtype``, (n, K)."""
        totals, values = np.tile(base.astype(dtype), (len(seen), 1)), self._value.astype(dtype, copy=False)
        for rows, nodes in self._walks(seen):
            for position in range(nodes.shape[1]):
                totals[rows] += values[nodes[:, position]]
        return totals.astype(np.float64, copy=False)

    def _walks(self, seen: Floats) -> Iterator[tuple[slice, NDArray[np.intp]]]:
        step = max(1, _PAIRS // len(self._root))
        width = seen.shape[1]
        for first in range(0, len(seen), step):
            rows = np.ascontiguousarray(seen[first : first + step])
            flat, offset = rows.ravel(), (np.arange(len(rows)) * width)[:, None]
            nodes = np.tile(self._root, (len(rows), 1))
            for _ in range(self._depth):
                value = flat[self._feature[nodes] + offset]
                left = value <= self._threshold[nodes]
                if self._members is not None:
                    left = self._members.decide(nodes, value, left)
                nodes = self._child[2 * nodes + left]
            yield slice(first, first + len(rows)), nodes


@final
class _Members:
    """Splits on sets of values: which of all values that any set holds are in which set."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        sets = [members for tree in trees for members in tree.sets]
        self._values = np.unique(np.concatenate([np.sort(list(members)) for members in sets]))
        # One more row and column for values that no set holds.
        self._holds = np.zeros((len(sets), len(self._values) + 1), dtype=bool)
        for row, members in zip(self._holds, sets, strict=True):
            row[np.searchsorted(self._values, list(members))] = True
        parts, first = [], 0
        for tree in trees:
            parts.append(np.where(tree.subset >= 0, tree.subset + first, -1))
            first += len(tree.sets)
        self._set = np.concatenate(parts)

    def decide(self, nodes: NDArray[np.intp], value: Floats, left: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return ``left``, with the answer of the set at nodes that have one."""
        chosen = self._set[nodes]
        at = np.nonzero(chosen >= 0)  # most nodes compare with a threshold
        asked = value[at]
        place = np.minimum(np.searchsorted(self._values, asked), len(self._values) - 1)
        left[at] = self._holds[chosen[at], np.where(self._values[place] == asked, place, len(self._values))]
        return left
