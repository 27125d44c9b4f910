"""Split values of an ensemble in raw units: once per model, before any person is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final
from weakref import WeakKeyDictionary

import numpy as np

from ceopt.formulations.predictors.representation.representation import TreeEnsemble
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.predictors.representation.tree import Floats, Tree
    from ceopt.formulations.space.encoding import Column

__all__ = ["LevelSplit", "NumberSplit", "RoutedTree", "route"]

#: What the time limit ends here.
_STAGE = "finding where the trees split"


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

    Both children of such a node are the one that is reached. A node may have several parents: a test on a set of
    numbers is several splits that end in the same two children.
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
        routed = []
        for tree in core.trees:
            checkpoint(_STAGE)
            routed.append(_routed(tree, table))
        _ROUTES[predictor] = tuple(routed)
    return _ROUTES[predictor]


#: A test of a matrix column: on a threshold, or on a set of values.
_Test = tuple[int, float | frozenset[float]]
#: What it means in raw units; a bool where all values go left (True) or right (False). A set on a number is a chain:
#: a split whose left side goes right in the tree, then one whose left side goes left, and so on over the values.
_Meaning = NumberSplit | LevelSplit | bool | tuple[NumberSplit | bool, ...]
_Table = dict[_Test, _Meaning]


def _split_table(predictor: Predictor, core: TreeEnsemble) -> _Table:
    """Return what each test of the ensemble means in raw units."""
    thresholds: dict[int, set[float]] = {}
    sets: set[tuple[int, frozenset[float]]] = set()
    for tree in core.trees:
        by_threshold = (tree.feature >= 0) & (tree.subset < 0)
        for index in np.unique(tree.feature[by_threshold]).tolist():
            thresholds.setdefault(index, set()).update(tree.threshold[by_threshold & (tree.feature == index)].tolist())
        by_set = (tree.subset >= 0) & (tree.feature >= 0)
        pairs = zip(tree.feature[by_set].tolist(), tree.subset[by_set].tolist(), strict=True)
        sets.update((index, tree.sets[place]) for index, place in pairs)
    table: _Table = {}
    for index, values in sorted(thresholds.items()):
        checkpoint(_STAGE)
        theta = sorted(values)
        meanings = _thresholds(predictor.encoding.columns[index], np.array(theta), core)
        table.update({(index, t): meaning for t, meaning in zip(theta, meanings, strict=True)})
    for index, members in sets:
        table[index, members] = _set(predictor.encoding.columns[index], members, core)
    return table


def _thresholds(column: Column, theta: Floats, core: TreeEnsemble) -> list[NumberSplit | LevelSplit | bool]:
    """Return what ``column <= theta`` means, per threshold."""
    if column.feature is None:
        return list(map(bool, column.goes_left(np.zeros(1), theta, core.input_dtype)))
    if column.table is not None:
        ranks = np.arange(len(column.table))
        left = column.goes_left(ranks[:, None], theta, core.input_dtype)
        return [LevelSplit(column.feature, frozenset(ranks[left[:, k]].tolist())) for k in range(len(theta))]
    last = column.largest_left(theta, core.input_dtype)
    return [_number(column.feature, a, core.right_gap) for a in last.tolist()]


def _set(column: Column, members: frozenset[float], core: TreeEnsemble) -> _Meaning:
    """Return what "column is one of the members" means."""
    values = np.array(sorted(members))
    if column.feature is None or column.table is not None:
        count = 1 if column.table is None else len(column.table)
        left = np.isin(column.seen(np.arange(count), core.input_dtype), values)
        if column.feature is None:
            return bool(left[0])
        return LevelSplit(column.feature, frozenset(np.flatnonzero(left).tolist()))
    below = column.largest_left(values, core.input_dtype, inclusive=False)
    upto = column.largest_left(values, core.input_dtype)
    ends = [end for pair in zip(below.tolist(), upto.tolist(), strict=True) if pair[0] != pair[1] for end in pair]
    return tuple(_number(column.feature, end, core.right_gap) for end in ends) or False


def _number(name: str, last: float, gap: float | None) -> NumberSplit | bool:
    """Return the split whose left side ends at ``last``; a bool where all numbers are on one side."""
    if math.isinf(last):
        return last > 0
    return NumberSplit(name, last, float(np.nextafter(last, math.inf)) if gap is None else last + gap)


def _routed(tree: Tree, table: _Table) -> RoutedTree:
    splits: list[NumberSplit | LevelSplit | None] = []
    left, right = tree.left.tolist(), tree.right.tolist()
    tests = zip(tree.feature.tolist(), tree.threshold.tolist(), tree.subset.tolist(), strict=True)
    chains: list[tuple[int, tuple[NumberSplit | bool, ...]]] = []
    for node, (feature, threshold, place) in enumerate(tests):
        meaning = table[feature, tree.sets[place] if place >= 0 else threshold] if feature >= 0 else None
        if isinstance(meaning, bool):
            # Decided for everybody: both children are the one that is reached.
            left[node] = right[node] = left[node] if meaning else right[node]
            meaning = None
        elif isinstance(meaning, tuple):
            chains.append((node, meaning))
            meaning = None
        splits.append(meaning)
    for node, chain in chains:
        _unfold(node, chain, splits, left, right)
    extra = len(splits) - len(tree.feature)
    blank = (0.0,) * tree.n_scores
    return RoutedTree(
        splits=tuple(splits),
        left=tuple(left),
        right=tuple(right),
        value=(*map(tuple, tree.value.tolist()), *[blank] * extra),
        is_leaf=(*(tree.feature < 0).tolist(), *[False] * extra),
    )


def _unfold(
    node: int,
    chain: tuple[NumberSplit | bool, ...],
    splits: list[NumberSplit | LevelSplit | None],
    left: list[int],
    right: list[int],
) -> None:
    """Write a test on a set of numbers as splits one after the other, whose children are shared."""
    inside, outside = left[node], right[node]
    for k, split in enumerate(chain):
        here, there = (outside, inside) if k % 2 == 0 else (inside, outside)
        last = k == len(chain) - 1
        splits[node] = split if isinstance(split, NumberSplit) else None
        left[node] = here
        right[node] = there if last else len(splits)
        if isinstance(split, bool):  # all numbers are on one side of this end
            left[node] = right[node] = here if split else right[node]
        if not last:
            splits.append(None)
            left.append(-1)
            right.append(-1)
            node = len(splits) - 1
