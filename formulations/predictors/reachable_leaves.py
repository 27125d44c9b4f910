"""Trees in raw units: split values, once per model; and for one person the leaves that can be reached."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final
from weakref import WeakKeyDictionary

import numpy as np

from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.predictors.trees import Tree
    from ceopt.formulations.space.encoding import Column
    from ceopt.solvers.checks import Floats

#: What the time limit ends here: once per model, and once per person.
_ROUTING = "finding where the trees split"
_PRUNING = "following the trees"

_ROUTES: WeakKeyDictionary[Predictor, RoutedTrees] = WeakKeyDictionary()
#: A test of a matrix column: on a threshold, or on a set of values, and whether NaN goes left.
_Test: TypeAlias = tuple[int, float | frozenset[float], bool]
#: What it means in raw units; a bool where all values go left (True) or right (False). A set on a number is a chain:
#: a split whose left side goes right in the tree, then one whose left side goes left, and so on over the values.
_Meaning: TypeAlias = "NumberSplit | LevelSplit | bool | tuple[NumberSplit | bool, ...]"
_Table: TypeAlias = "dict[_Test, _Meaning]"
#: What a box admits of a column. Of a number its least and greatest amount (the least is the greater where it admits
#: none) and labels, as codes and the missing cell are no amounts; of levels their ranks, and the missing cell.
Part: TypeAlias = tuple[float, float, frozenset[float]] | frozenset[float]
#: What a leaf admits per column that its path splits.
Box: TypeAlias = Mapping[str, Part]


@final
@dataclass(frozen=True, slots=True)
class NumberSplit:
    """Left iff ``x <= left``, right iff ``x >= right``; for a float library these are neighbouring floats.

    Codes are numbers like others here. A missing cell goes left iff ``missing_left``. Where it alone goes to another
    side than all numbers, both ends are the same infinity.
    """

    name: str
    left: float
    right: float
    missing_left: bool = False

    def goes_left(self, value: float) -> bool:
        """Return whether a coordinate goes left."""
        return self.missing_left if value == MISSING else value <= self.left


@final
@dataclass(frozen=True, slots=True)
class LevelSplit:
    """Left iff the column's level, or the missing cell, is one of ``ranks``."""

    name: str
    ranks: frozenset[float]


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


@final
@dataclass(frozen=True, slots=True)
class RoutedTrees:
    """The trees of an ensemble in raw units, and the different splits on numbers that they have, by column."""

    trees: tuple[RoutedTree, ...]
    number_splits: Mapping[str, tuple[NumberSplit, ...]]

    def __iter__(self) -> Iterator[RoutedTree]:
        return iter(self.trees)

    def __len__(self) -> int:
        return len(self.trees)


def route(predictor: Predictor) -> RoutedTrees:
    """Return the trees of a predictor with every split in raw units, exactly as the library decides.

    A split on a number becomes the last float64 that goes left and the next one; a split on an encoded level becomes
    the set of levels that goes left. The result is kept as long as the predictor lives.
    """
    if predictor not in _ROUTES:
        core = predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - affine models have no routes
        table = _split_table(predictor, core)
        routed = []
        splits: dict[str, dict[NumberSplit, None]] = {}
        for tree in core.trees:
            checkpoint(_ROUTING)
            routed.append(_routed(tree, table))
            for split in routed[-1].splits:
                if isinstance(split, NumberSplit):
                    splits.setdefault(split.name, {})[split] = None
        _ROUTES[predictor] = RoutedTrees(tuple(routed), {name: tuple(of_column) for name, of_column in splits.items()})
    return _ROUTES[predictor]


def _split_table(predictor: Predictor, core: TreeEnsemble) -> _Table:
    """Return what each test of the ensemble means in raw units."""
    columns = [_Routed.of(column, predictor) for column in predictor.encoding.columns]
    thresholds: dict[int, set[tuple[float, bool]]] = {}
    sets: set[_Test] = set()
    for tree in core.trees:
        gaps = _gaps_left(tree)
        by_threshold = (tree.feature >= 0) & (tree.subset < 0)
        for index in np.unique(tree.feature[by_threshold]).tolist():
            own = by_threshold & (tree.feature == index)
            pairs = zip(tree.threshold[own].tolist(), gaps[own].tolist(), strict=True)
            thresholds.setdefault(index, set()).update(pairs)
        by_set = (tree.subset >= 0) & (tree.feature >= 0)
        rows = zip(tree.feature[by_set].tolist(), tree.subset[by_set].tolist(), gaps[by_set].tolist(), strict=True)
        sets.update((index, tree.sets[place], gap) for index, place, gap in rows)
    table: _Table = {}
    for index, tests in sorted(thresholds.items()):
        checkpoint(_ROUTING)
        theta, sides = zip(*sorted(tests), strict=True)
        meanings = columns[index].thresholds(np.array(theta), sides, core)
        table.update({(index, *test): meaning for test, meaning in zip(sorted(tests), meanings, strict=True)})
    for index, members, gap in sets:
        assert isinstance(members, frozenset)  # noqa: S101 - a test on a set
        table[index, members, gap] = columns[index].set_of(members, gap, core)
    return table


def _gaps_left(tree: Tree) -> NDArray[np.bool_]:
    """Return at which nodes NaN goes left, (nodes,); nowhere in a tree that takes none."""
    if tree.missing_left is None:
        return np.zeros(len(tree.feature), dtype=bool)
    return tree.missing_left


@final
@dataclass(frozen=True, slots=True)
class _Routed:
    """A matrix column whose tests are stated in raw units.

    Parameters
    ----------
    column
        The column.
    may_be_missing
        Whether its raw column may be missing.
    """

    column: Column
    may_be_missing: bool

    @classmethod
    def of(cls, column: Column, predictor: Predictor) -> _Routed:
        """Return a column of a predictor's matrix."""
        name = column.feature
        return cls(column, name is not None and predictor.space[name].missing is not False)

    def thresholds(
        self, theta: Floats, gaps: Sequence[bool], core: TreeEnsemble
    ) -> list[NumberSplit | LevelSplit | bool]:
        """Return what ``column <= theta`` means, per threshold; ``gaps``: whether NaN goes left."""
        column = self.column
        if column.feature is None:
            return list(map(bool, column.goes_left(np.zeros(1), theta, core.input_dtype)))
        at_gap: list[bool | None] = [None] * len(theta)
        if self.may_be_missing and column.passes_gaps:
            at_gap = list(gaps)
        elif self.may_be_missing:
            at_gap = list(column.goes_left([MISSING], theta, core.input_dtype).tolist())
        if column.table is not None:
            ranks = np.arange(len(column.table))
            left = column.goes_left(ranks[:, None], theta, core.input_dtype)
            pairs = zip(left.T, at_gap, strict=True)
            return [_level(column.feature, ranks[of_rank].tolist(), gap) for of_rank, gap in pairs]
        lasts = column.largest_left(theta, core.input_dtype).tolist()
        ends = zip(lasts, at_gap, strict=True)
        return [_number(column.feature, last, core.right_gap, missing_left=gap) for last, gap in ends]

    def set_of(self, members: frozenset[float], gap: bool, core: TreeEnsemble) -> _Meaning:
        """Return what "column is one of the members" means; ``gap``: whether NaN goes left."""
        column = self.column
        values = np.array(sorted(members))
        if column.feature is None:
            return bool(np.isin(column.seen([0.0], core.input_dtype), values)[0])
        at_gap: bool | None = None
        if self.may_be_missing:
            at_gap = gap if column.passes_gaps else bool(np.isin(column.seen([MISSING], core.input_dtype), values)[0])
        if column.table is not None:
            left = np.isin(column.seen(np.arange(len(column.table)), core.input_dtype), values)
            return _level(column.feature, np.flatnonzero(left).tolist(), at_gap)
        below = column.largest_left(values, core.input_dtype, inclusive=False)
        upto = column.largest_left(values, core.input_dtype)
        ends: list[float] = []
        for before, last in zip(below.tolist(), upto.tolist(), strict=True):
            if before != last:
                ends += [before, last]
        if at_gap is None:
            return tuple(_number(column.feature, end, core.right_gap, missing_left=None) for end in ends) or False
        if not ends:
            return _number(column.feature, -math.inf, core.right_gap, missing_left=at_gap)
        # A missing cell that is a member turns off after the first end; another goes past them all.
        sides = [at_gap and k == 1 for k in range(len(ends))]
        pairs = zip(ends, sides, strict=True)
        return tuple(_split(column.feature, end, core.right_gap, missing_left=side) for end, side in pairs)


def _level(name: str, ranks: Sequence[int], missing_left: bool | None) -> LevelSplit:
    """Return the split of these levels, and of the missing cell where that goes left, from all others."""
    return LevelSplit(name, frozenset([*ranks, MISSING] if missing_left else ranks))


def _number(name: str, last: float, gap: float | None, *, missing_left: bool | None) -> NumberSplit | bool:
    """Return the split whose left side ends at ``last``; a bool where all that there is goes to one side.

    ``missing_left``: whether a missing cell goes left, None where it never is missing.
    """
    if math.isinf(last) and missing_left in {None, last > 0}:
        return last > 0
    return _split(name, last, gap, missing_left=bool(missing_left))


def _split(name: str, last: float, gap: float | None, *, missing_left: bool) -> NumberSplit:
    if math.isinf(last):
        return NumberSplit(name, last, last, missing_left)
    if gap is None:
        return NumberSplit(name, last, math.nextafter(last, math.inf), missing_left)
    return NumberSplit(name, last, last + gap, missing_left)


def _routed(tree: Tree, table: _Table) -> RoutedTree:
    splits: list[NumberSplit | LevelSplit | None] = []
    left = tree.left.tolist()
    right = tree.right.tolist()
    gaps = _gaps_left(tree).tolist()
    tests = zip(tree.feature.tolist(), tree.threshold.tolist(), tree.subset.tolist(), gaps, strict=True)
    chains: list[tuple[int, tuple[NumberSplit | bool, ...]]] = []
    for node, (feature, threshold, place, gap) in enumerate(tests):
        meaning = None
        if feature >= 0:
            meaning = table[feature, tree.sets[place] if place >= 0 else threshold, gap]
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
    member = left[node]
    other = right[node]
    for k, split in enumerate(chain):
        below, above = (other, member) if k % 2 == 0 else (member, other)
        last = k == len(chain) - 1
        left[node] = below
        right[node] = above if last else len(splits)
        if isinstance(split, bool):  # all numbers are on one side of this end
            splits[node] = None
            left[node] = right[node] = below if split else right[node]
        else:
            splits[node] = split
        if not last:
            splits.append(None)
            left.append(-1)
            right.append(-1)
            node = len(splits) - 1


@final
@dataclass(frozen=True, slots=True)
class NumberCut:
    """A split between two neighbouring amounts in reach; of the labels in reach, ``labels`` go left.

    An end is infinite where no amount is on that side.
    """

    name: str
    key: tuple[float, float]
    labels: frozenset[float] = frozenset()

    @property
    def parts_amounts(self) -> bool:
        """Whether there are amounts on both sides."""
        return not (math.isinf(self.key[0]) or math.isinf(self.key[1]))


@final
@dataclass(frozen=True, slots=True)
class LevelCut:
    """A split between levels in reach, and the missing cell: those that go left."""

    name: str
    ranks: frozenset[float]


Cut: TypeAlias = NumberCut | LevelCut


@final
@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf (or a subtree whose leaves all have one value) that can be reached."""

    node: int
    value: tuple[float, ...]
    box: Box


class _Tested(NamedTuple):
    """The leaves that test a column: their positions, ends, and which of the distinct sets each admits."""

    positions: NDArray[np.intp]
    low: Floats
    high: Floats
    which: NDArray[np.intp]
    sets: tuple[frozenset[float], ...]


@final
class LeafSides:
    """Which leaves of a tree lie wholly left, and wholly right, of a cut."""

    __slots__ = ("_tested",)

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        parts: dict[str, list[tuple[int, float, float, frozenset[float]]]] = {}
        for k, leaf in enumerate(leaves):
            for name, part in leaf.box.items():
                ends = (-math.inf, math.inf, part) if isinstance(part, frozenset) else part
                parts.setdefault(name, []).append((k, *ends))
        self._tested: dict[str, _Tested] = {}
        for name, of_column in parts.items():
            positions, low, high, admitted = zip(*of_column, strict=True)
            places = {distinct: place for place, distinct in enumerate(dict.fromkeys(admitted))}
            which = np.array([places[one] for one in admitted])
            self._tested[name] = _Tested(np.array(positions), np.array(low), np.array(high), which, tuple(places))

    def of(self, cut: Cut) -> tuple[list[int], list[int]]:
        """Return the positions of the leaves left, and right, of a cut, over the whole tree."""
        tested = self._tested.get(cut.name)
        if tested is None:
            return [], []
        on_left = cut.ranks if isinstance(cut, LevelCut) else cut.labels
        is_left = np.array([one <= on_left for one in tested.sets])[tested.which]
        is_right = np.array([one.isdisjoint(on_left) for one in tested.sets])[tested.which]
        if isinstance(cut, NumberCut):
            is_left &= tested.high <= cut.key[0]
            is_right &= tested.low >= cut.key[1]
        return tested.positions[is_left].tolist(), tested.positions[is_right & ~is_left].tolist()


@final
@dataclass(frozen=True)
class PrunedTree:
    """The leaves and the splits of one tree that matter to one person; ``cuts`` holds each cut once."""

    position: int
    leaves: tuple[Leaf, ...]
    cuts: tuple[Cut, ...]

    @functools.cached_property
    def sides(self) -> LeafSides:
        """Return which leaves lie left and right of a cut."""
        return LeafSides(self.leaves)


def cuts_in_reach(routed: RoutedTrees, reach: Reach) -> tuple[NumberCut, ...]:
    """Return every split on a number that has reachable values on both sides, also where it decides nothing here."""
    checkpoint(_PRUNING)
    cuts: set[NumberCut] = set()
    for name, splits in routed.number_splits.items():
        part = reach[name]
        assert isinstance(part, Interval)  # noqa: S101 - thresholds exist for numbers only
        finite = [split for split in splits if math.isfinite(split.left) and part.only != MISSING]
        if not finite:
            continue
        lefts, rights = (np.array(ends) for ends in zip(*((one.left, one.right) for one in finite), strict=True))
        keys = zip(*(side.tolist() for side in part.sides_of(lefts, rights)), strict=True)
        for split, key in zip(finite, keys, strict=True):
            cuts.add(NumberCut(name, key, frozenset(label for label in part.labels if split.goes_left(label))))
    return tuple(sorted((cut for cut in cuts if cut.parts_amounts), key=place_of))


def place_of(cut: NumberCut) -> tuple[Any, ...]:
    """Return where a cut stands among those of all columns."""
    return cut.name, cut.key, sorted(cut.labels)
