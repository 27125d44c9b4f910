"""Where the splits of an ensemble lie in raw units: once per model, before any person is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final
from weakref import WeakKeyDictionary

import numpy as np

from ceopt.formulations.predictors.representation import TreeEnsemble

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.predictors.representation import Tree

__all__ = ["LevelSplit", "NumberSplit", "RoutedTree", "route"]


@final
@dataclass(frozen=True, slots=True)
class NumberSplit:
    """Left iff ``x <= left``, right iff ``x >= right``; for a float library these are neighbouring floats."""

    name: str
    left: float
    right: float


@final
@dataclass(frozen=True, slots=True)
class LevelSplit:
    """Left iff the column's level is one of ``ranks``."""

    name: str
    ranks: frozenset[int]


@final
@dataclass(frozen=True, slots=True)
class RoutedTree:
    """A tree whose inner nodes hold splits over raw columns; None where every value goes the same way.

    Both children of such a node are the one that is reached.
    """

    splits: tuple[NumberSplit | LevelSplit | None, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[tuple[float, ...], ...]
    is_leaf: tuple[bool, ...]


_ROUTES: WeakKeyDictionary[Predictor, tuple[RoutedTree, ...]] = WeakKeyDictionary()


def route(predictor: Predictor) -> tuple[RoutedTree, ...]:
    """Return the trees of a predictor with every split in raw units, exactly as the library decides.

    A split on a number becomes the last float64 that goes left and the next one; a split on an encoded level becomes
    the set of levels that goes left. The result is kept as long as the predictor lives.
    """
    if predictor not in _ROUTES:
        core = predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - affine models have no routes
        table = _split_table(predictor, core)
        _ROUTES[predictor] = tuple(_routed(tree, table) for tree in core.trees)
    return _ROUTES[predictor]


_Table = dict[tuple[int, float], NumberSplit | LevelSplit | bool]


def _split_table(predictor: Predictor, core: TreeEnsemble) -> _Table:
    """Return what each (matrix column, threshold) means; a bool where all values go left (True) or right (False)."""
    table: _Table = {}
    inner = [tree.feature >= 0 for tree in core.trees]
    features = np.concatenate([tree.feature[k] for tree, k in zip(core.trees, inner, strict=True)])
    thresholds = np.concatenate([tree.threshold[k] for tree, k in zip(core.trees, inner, strict=True)])
    for index in np.unique(features).tolist():
        column = predictor.encoding.columns[index]
        theta = np.unique(thresholds[features == index])
        if column.feature is None:
            left = column.goes_left(np.zeros(1), theta, core.input_dtype)
            table.update({(index, t): bool(k) for t, k in zip(theta.tolist(), left.tolist(), strict=True)})
        elif column.table is not None:
            ranks = np.arange(len(column.table))
            for t in theta.tolist():
                left = column.goes_left(ranks, np.array(t), core.input_dtype)
                table[index, t] = LevelSplit(column.feature, frozenset(ranks[left].tolist()))
        else:
            last = column.largest_left(theta, core.input_dtype)
            for t, a in zip(theta.tolist(), last.tolist(), strict=True):
                if math.isinf(a):
                    table[index, t] = a > 0
                else:
                    b = float(np.nextafter(a, math.inf)) if core.right_gap is None else a + core.right_gap
                    table[index, t] = NumberSplit(column.feature, a, b)
    return table


def _routed(tree: Tree, table: _Table) -> RoutedTree:
    splits: list[NumberSplit | LevelSplit | None] = []
    left, right = tree.left.tolist(), tree.right.tolist()
    for node, (feature, threshold) in enumerate(zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)):
        split = table[feature, threshold] if feature >= 0 else None
        if isinstance(split, bool):
            # Decided for everybody: both children are the one that is reached.
            left[node] = right[node] = left[node] if split else right[node]
            split = None
        splits.append(split)
    return RoutedTree(
        splits=tuple(splits),
        left=tuple(left),
        right=tuple(right),
        value=tuple(map(tuple, tree.value.tolist())),
        is_leaf=tuple((tree.feature < 0).tolist()),
    )
