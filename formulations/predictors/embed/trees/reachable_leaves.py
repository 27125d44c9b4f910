"""Trees for one person: split values in raw units, once per model, and the leaves that can be reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final
from weakref import WeakKeyDictionary

import numpy as np

from ceopt.formulations.predictors.representation.trees import TreeEnsemble
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.decision_rule import Floats
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.predictors.representation.trees import Tree
    from ceopt.formulations.space.encoding import Column

__all__ = [
    "Box",
    "Cut",
    "Leaf",
    "LevelCut",
    "LevelSplit",
    "NumberCut",
    "NumberSplit",
    "PrunedTree",
    "RoutedTree",
    "cuts_in_reach",
    "prune",
    "route",
]

#: What the time limit ends here.
_STAGE = "finding where the trees split"
_ROUTES: WeakKeyDictionary[Predictor, tuple[RoutedTree, ...]] = WeakKeyDictionary()
#: A test of a matrix column: on a threshold, or on a set of values.
_Test: TypeAlias = tuple[int, float | frozenset[float]]
#: What it means in raw units; a bool where all values go left (True) or right (False). A set on a number is a chain:
#: a split whose left side goes right in the tree, then one whose left side goes left, and so on over the values.
_Meaning: TypeAlias = "NumberSplit | LevelSplit | bool | tuple[NumberSplit | bool, ...]"
_Table: TypeAlias = "dict[_Test, _Meaning]"
#: What a leaf admits per column that its path splits: (least, greatest) of a number, or the ranks of levels.
Box: TypeAlias = Mapping[str, tuple[float, float] | frozenset[int]]


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


@final
@dataclass(frozen=True, slots=True)
class NumberCut:
    """A split between two neighbouring values in reach."""

    name: str
    key: tuple[float, float]


@final
@dataclass(frozen=True, slots=True)
class LevelCut:
    """A split between levels in reach: those that go left."""

    name: str
    ranks: frozenset[int]


Cut: TypeAlias = NumberCut | LevelCut


@final
@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf (or a subtree whose leaves all have one value) that can be reached."""

    node: int
    value: tuple[float, ...]
    box: Box


@final
@dataclass(frozen=True, slots=True)
class PrunedTree:
    """The leaves and the splits of one tree that matter to one person.

    ``nodes`` holds, per split left, its cut and the positions (in ``leaves``) of the leaves below it, left and right;
    ``cuts`` holds each cut once.
    """

    position: int
    leaves: tuple[Leaf, ...]
    nodes: tuple[tuple[Cut, tuple[int, ...], tuple[int, ...]], ...]

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The cuts of this tree, each once."""
        return tuple(dict.fromkeys(cut for cut, _, _ in self.nodes))

    def sides(self, cut: Cut) -> tuple[list[int], list[int]]:
        """Return the positions of the leaves that lie wholly left, and wholly right, of a cut, over the whole tree."""
        left: list[int] = []
        right: list[int] = []
        for k, leaf in enumerate(self.leaves):
            match leaf.box.get(cut.name), cut:
                case (_, high), NumberCut(key=(last, _)) if high <= last:
                    left.append(k)
                case (low, _), NumberCut(key=(_, first)) if low >= first:
                    right.append(k)
                case frozenset() as ranks, LevelCut() if ranks <= cut.ranks:
                    left.append(k)
                case frozenset() as ranks, LevelCut() if not ranks & cut.ranks:
                    right.append(k)
        return left, right


def prune(
    trees: tuple[RoutedTree, ...], reach: Reach, *, too_far: Callable[[Box], bool] | None = None
) -> tuple[PrunedTree, ...]:
    """Drop what the reach rules out, merge siblings of equal value, and snap each split to neighbours in reach.

    Exact: the pruned ensemble has the score of the full one at every point in reach. ``too_far`` may drop further
    leaves by their box, where the caller knows that no answer lies there.
    """
    cutter = _Cutter(reach)
    return tuple(_Walk(tree, cutter, too_far).run(position) for position, tree in enumerate(trees))


def cuts_in_reach(trees: tuple[RoutedTree, ...], reach: Reach) -> tuple[NumberCut, ...]:
    """Return every split on a number that has reachable values on both sides, also where it decides nothing here."""
    cutter = _Cutter(reach)
    splits: set[NumberSplit] = set()
    for tree in trees:
        checkpoint("following the trees")
        splits.update(split for split in tree.splits if isinstance(split, NumberSplit))
    cuts = {cutter.cut(split) for split in splits}
    both = (cut for cut in cuts if isinstance(cut, NumberCut) and not math.isinf(cut.key[0] - cut.key[1]))
    return tuple(sorted(both, key=lambda cut: (cut.name, cut.key)))


class _Cutter:
    """Snaps splits to the reach, each once for the whole ensemble."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self._known: dict[NumberSplit | LevelSplit, Cut] = {}

    def whole(self, name: str) -> tuple[float, float] | frozenset[int]:
        part = self.reach[name]
        return (part.lower, part.upper) if isinstance(part, Interval) else frozenset(part.ranks)

    def cut(self, split: NumberSplit | LevelSplit) -> Cut:
        if split not in self._known:
            part = self.reach[split.name]
            if isinstance(split, LevelSplit):
                assert isinstance(part, Levels)  # noqa: S101 - tables exist for levels only
                self._known[split] = LevelCut(split.name, split.ranks & frozenset(part.ranks))
            else:
                assert isinstance(part, Interval)  # noqa: S101 - thresholds exist for numbers only
                self._known[split] = NumberCut(split.name, part.sides(split.left, split.right))
        return self._known[split]


class _Walk:
    """One walk down one tree."""

    def __init__(self, tree: RoutedTree, cutter: _Cutter, too_far: Callable[[Box], bool] | None) -> None:
        self.tree, self.cutter, self.too_far = tree, cutter, too_far
        self.nodes: list[tuple[Cut, list[Leaf], list[Leaf]]] = []
        self.visited: set[int] = set()
        self.extra = len(tree.is_leaf)

    def run(self, position: int) -> PrunedTree:
        leaves = self._visit(0, {})
        place = {leaf.node: k for k, leaf in enumerate(leaves)}
        nodes = tuple(
            (cut, tuple(place[leaf.node] for leaf in left), tuple(place[leaf.node] for leaf in right))
            for cut, left, right in self.nodes
        )
        return PrunedTree(position, tuple(leaves), nodes)

    def _visit(self, node: int, box: dict[str, tuple[float, float] | frozenset[int]]) -> list[Leaf]:
        tree = self.tree
        if tree.is_leaf[node]:
            checkpoint("following the trees")
            if self.too_far is not None and self.too_far(box):
                return []
            return [Leaf(self._number(node), tree.value[node], dict(box))]
        split = tree.splits[node]
        if split is None:
            return self._visit(tree.left[node], box)
        cut = self.cutter.cut(split)
        here = box.get(cut.name)
        sides = _divide(cut, self.cutter.whole(cut.name) if here is None else here)
        found: list[list[Leaf]] = []
        for child, part in zip((tree.left[node], tree.right[node]), sides, strict=True):
            if part is None:
                continue
            box[cut.name] = part
            found.append(self._visit(child, box))
        if here is None:
            del box[cut.name]
        else:
            box[cut.name] = here
        found = [leaves for leaves in found if leaves]
        if len(found) == 2:
            if len(found[0]) == len(found[1]) == 1 and found[0][0].value == found[1][0].value:
                return [Leaf(self._number(node), found[0][0].value, dict(box))]
            self.nodes.append((cut, found[0], found[1]))
        return [leaf for leaves in found for leaf in leaves]

    def _number(self, node: int) -> int:
        """Return the number of a leaf: its node's, or a new one where the node was met before on another path."""
        if node not in self.visited:
            self.visited.add(node)
            return node
        self.extra += 1
        return self.extra - 1


def _divide(
    cut: Cut, here: tuple[float, float] | frozenset[int]
) -> tuple[tuple[float, float] | frozenset[int] | None, tuple[float, float] | frozenset[int] | None]:
    """Return what is left of ``here`` on either side of a cut; None where nothing is."""
    if isinstance(cut, LevelCut):
        assert isinstance(here, frozenset)  # noqa: S101 - a level column has a set of ranks
        return (here & cut.ranks) or None, (here - cut.ranks) or None
    assert isinstance(here, tuple)  # noqa: S101 - a number column has a pair of bounds
    (low, high), (last, first) = here, cut.key
    last, first = min(high, last), max(low, first)
    left = (low, last) if last >= low and not math.isinf(cut.key[0]) else None
    right = (first, high) if first <= high and not math.isinf(cut.key[1]) else None
    return left, right
