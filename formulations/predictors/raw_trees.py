"""Trees in raw units: what each node asks of the raw columns, exactly as the library decides, once per model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.encoding import Column
    from ceopt.solvers.checks import Floats

Ints: TypeAlias = NDArray[np.intp]
Bools: TypeAlias = NDArray[np.bool_]

#: What the time limit ends here, once per model.
_READING = "reading the leaves of the trees"
_RAW: WeakKeyDictionary[Predictor, RawTrees] = WeakKeyDictionary()


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


@final
@dataclass(frozen=True, slots=True)
class LevelSplit:
    """Left iff the column's level, or the missing cell, is one of ``ranks``."""

    name: str
    ranks: frozenset[float]


def raw_trees(predictor: Predictor) -> RawTrees:
    """Return the trees of a predictor with every test in raw units; they are kept as long as the predictor lives.

    A test on a number becomes the last float64 that goes left and the next one; a test on an encoded level becomes the
    set of levels that goes left.
    """
    if predictor not in _RAW:
        _RAW[predictor] = RawTrees(predictor)
    return _RAW[predictor]


@final
class RawTrees:
    """The tests of all nodes in raw units, tree after tree.

    The nodes of tree t begin at ``root[t]``; those that a test on a set of numbers adds stand behind all trees. A node
    asks for column ``column`` of ``names``; -1 at leaves, and where all values go to one child, which is then both its
    children. Of numbers, cells up to ``cut`` go left, and a missing cell where ``gap_left`` says so; of levels, row
    ``cut`` of ``sets[name]``.
    """

    def __init__(self, predictor: Predictor) -> None:
        core = predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - affine models have no trees
        self.names: list[str] = []
        #: By column of numbers the last value left of each threshold and the first right of it.
        self.lefts: dict[str, Floats] = {}
        self.rights: dict[str, Floats] = {}
        #: By column of levels, the sets that go left, (sets, levels and the missing cell).
        self.sets: dict[str, Bools] = {}
        self._known: dict[tuple[int, int, bool], NumberSplit | LevelSplit] = {}
        trees = core.trees
        sizes = [len(tree.feature) for tree in trees]
        self.root = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        self.tree = np.repeat(np.arange(len(trees), dtype=np.int32), sizes)
        self.left = np.concatenate([tree.left + first for tree, first in zip(trees, self.root, strict=True)])
        self.right = np.concatenate([tree.right + first for tree, first in zip(trees, self.root, strict=True)])
        self.value = np.concatenate([tree.value for tree in trees])
        self._read(predictor, core)

    def split(self, node: int) -> NumberSplit | LevelSplit | None:
        """Return what a node asks; None at leaves, and where every value goes the same way."""
        key = (int(self.column[node]), int(self.cut[node]), bool(self.gap_left[node]))
        if key[0] < 0:
            return None
        if key not in self._known:
            name = self.names[key[0]]
            if name in self.sets:
                ranks = np.append(np.arange(self.sets[name].shape[1] - 1.0), MISSING)
                self._known[key] = LevelSplit(name, frozenset(ranks[self.sets[name][key[1]]].tolist()))
            else:
                lefts = np.concatenate([self.lefts[name], [np.inf, -np.inf]])  # number -1 is the last
                rights = np.concatenate([self.rights[name], [np.inf, -np.inf]])
                self._known[key] = NumberSplit(name, float(lefts[key[1]]), float(rights[key[1]]), key[2])
        return self._known[key]

    def names_in(self, tree: int) -> list[str]:
        """Return the columns that a tree splits, in the order of its nodes."""
        columns = self.column[self.tree == tree]
        return [self.names[j] for j in dict.fromkeys(columns[columns >= 0].tolist())]

    def _read(self, predictor: Predictor, core: TreeEnsemble) -> None:
        trees = core.trees
        feature = np.concatenate([tree.feature for tree in trees], dtype=np.int32)
        threshold = np.concatenate([tree.threshold for tree in trees])
        subset = np.concatenate([tree.subset for tree in trees], dtype=np.int32)
        gaps = np.concatenate([_gaps_left(tree) for tree in trees])
        self.is_leaf = feature < 0
        self.column = np.full(len(feature), -1, dtype=np.int32)
        self.cut = np.zeros(len(feature), dtype=np.int32)
        self.gap_left = np.zeros(len(feature), dtype=bool)
        #: By column of numbers: nodes, and the last value that goes left at each.
        numbers: dict[str, list[tuple[Ints, Floats]]] = {}
        asking = np.flatnonzero(~self.is_leaf)
        by_column = feature[asking]
        if len(predictor.encoding.columns) < np.iinfo(np.int16).max:
            by_column = by_column.astype(np.int16)  # which is sorted in one pass
        order = asking[np.argsort(by_column, kind="stable")]
        for nodes in np.split(order, np.flatnonzero(np.diff(feature[order])) + 1):
            if not len(nodes):
                continue
            checkpoint(_READING)
            column = predictor.encoding.columns[int(feature[nodes[0]])]
            by_set = subset[nodes] >= 0
            of_sets = [trees[self.tree[node]].sets[subset[node]] for node in nodes[by_set]]
            if column.feature is None:
                self._decide(nodes[~by_set], column.goes_left(np.zeros(1), threshold[nodes[~by_set]], core.input_dtype))
                seen = float(column.seen([0.0], core.input_dtype)[0])
                self._decide(nodes[by_set], np.array([seen in each for each in of_sets], dtype=bool))
                continue
            may_be_missing = predictor.space[column.feature].missing is not False
            tests = _ColumnTests(column, core.input_dtype, may_be_missing=may_be_missing)
            if column.table is not None:
                by_threshold = nodes[~by_set]
                self._add_sets(by_threshold, tests, *tests.levels(threshold[by_threshold], gaps[by_threshold]))
                self._add_sets(nodes[by_set], tests, *tests.levels_of_sets(of_sets, gaps[nodes[by_set]]))
                continue
            sets, asked = nodes[by_set], nodes[~by_set]
            lasts, self.gap_left[asked] = tests.numbers(threshold[asked], gaps[asked])
            if len(sets):
                chains, ends = self._unfold(sets, *tests.ends_of_sets(of_sets, gaps[sets]))
                asked, lasts = np.append(asked, chains), np.append(lasts, ends)
            everywhere = np.isinf(lasts)
            if may_be_missing:
                everywhere &= self.gap_left[asked] == (lasts > 0)
            self._decide(asked[everywhere], lasts[everywhere] > 0)
            self.column[asked[~everywhere]] = self._number(column.feature)
            numbers.setdefault(column.feature, []).append((asked[~everywhere], lasts[~everywhere]))
        for name, pairs in numbers.items():
            nodes, lasts = (np.concatenate(each) for each in zip(*pairs, strict=True))
            with np.errstate(under="ignore"):
                firsts = np.nextafter(lasts, np.inf) if core.right_gap is None else lasts + core.right_gap
            self._set_cuts(name, nodes, lasts, firsts)

    def _number(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def _decide(self, nodes: Ints, goes_left: Bools) -> None:
        """Send everybody who comes to these nodes to one child."""
        self.left[nodes] = self.right[nodes] = np.where(goes_left, self.left[nodes], self.right[nodes])

    def _unfold(self, nodes: Ints, ends: Sequence[Floats], gaps: Bools) -> tuple[Ints, Floats]:
        """Write tests on sets of numbers as tests on their ends one after the other, and return these and the ends.

        Of each set the ends are before and at each member, and ``gaps`` says whether a missing cell is one, which then
        goes left at the first member; another goes past all ends. New nodes share the children of the first.
        """
        counts = np.array([len(own) for own in ends])
        place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        is_new = place > 0
        origin = np.repeat(nodes, counts)
        chain = origin.copy()
        chain[is_new] = len(self.left) + np.arange(is_new.sum())
        for key in ("tree", "left", "right", "value", "is_leaf", "column", "cut", "gap_left"):
            known = getattr(self, key)
            setattr(self, key, np.concatenate([known, known[origin[is_new]]]))
        member, other = self.left[chain], self.right[chain]
        self.left[chain] = np.where(place % 2 == 1, member, other)
        self.right[chain] = np.where(np.append(is_new[1:], False), np.append(chain[1:], -1), other)
        self.gap_left[chain] = np.repeat(gaps, counts) & (place == 1)
        return chain, np.concatenate(ends)

    def _set_cuts(self, name: str, nodes: Ints, lasts: Floats, firsts: Floats) -> None:
        """Count the thresholds of a column off, given the last value that goes left at each of its nodes."""
        order = np.argsort(lasts)
        ascending = lasts[order]
        is_new = np.isfinite(ascending)
        is_new[1:] &= ascending[1:] != ascending[:-1]
        self.lefts[name] = ascending[is_new]
        self.rights[name] = firsts[order[is_new]]
        self.cut[nodes[order]] = np.where(ascending == np.inf, is_new.sum(), np.cumsum(is_new) - 1)

    def _add_sets(self, nodes: Ints, tests: _ColumnTests, goes_left: Bools, place: Ints) -> None:
        """Add nodes with these tests of levels: of each its row of ``goes_left``."""
        if not len(nodes):
            return
        name = tests.column.feature
        assert name is not None  # noqa: S101 - a constant column is decided before
        of_all = goes_left if tests.may_be_missing else goes_left[:, :-1]
        everywhere = np.asarray(of_all.all(axis=1) | ~of_all.any(axis=1))[place]
        self._decide(nodes[everywhere], of_all[place[everywhere], 0])
        nodes, place = nodes[~everywhere], place[~everywhere]
        if not len(nodes):
            return
        self.column[nodes] = self._number(name)
        used, place = np.unique(place, return_inverse=True)
        rows, of_used = np.unique(goes_left[used], axis=0, return_inverse=True)
        known = self.sets.get(name, np.zeros((0, goes_left.shape[1]), dtype=bool))
        self.cut[nodes] = of_used.reshape(-1)[place] + len(known)
        self.sets[name] = np.concatenate([known, rows])


class _ColumnTests:
    """What tests of one column of the matrix mean in raw units; ``gaps`` is where the trees send NaN left."""

    def __init__(self, column: Column, input_dtype: str, *, may_be_missing: bool) -> None:
        self.column = column
        self.input_dtype = input_dtype
        self.may_be_missing = may_be_missing

    def numbers(self, thresholds: Floats, gaps: Bools) -> tuple[Floats, Bools]:
        """Return the last number that goes left at each threshold, and whether a missing cell does."""
        theta, place = np.unique(thresholds, return_inverse=True)
        return self.column.largest_left(theta, self.input_dtype)[place], self._of_gap(theta)[
            place, gaps.astype(np.intp)
        ]

    def levels(self, thresholds: Floats, gaps: Bools) -> tuple[Bools, Ints]:
        """Return what goes left at the different tests, (n, levels and the missing cell), and which each test is."""
        assert self.column.table is not None  # noqa: S101 - a column of levels
        theta, place = np.unique(thresholds, return_inverse=True)
        ranks = np.arange(len(self.column.table))
        of_levels = self.column.goes_left(ranks[:, None], theta, self.input_dtype).T
        goes_left = np.column_stack([np.repeat(of_levels, 2, axis=0), self._of_gap(theta).ravel()])
        return goes_left, 2 * place + gaps

    def levels_of_sets(self, sets: Sequence[frozenset[float]], gaps: Bools) -> tuple[Bools, Ints]:
        """Return the same of tests on sets of values."""
        assert self.column.table is not None  # noqa: S101 - a column of levels
        number: dict[frozenset[float], int] = {}
        place = np.array([number.setdefault(members, len(number)) for members in sets], dtype=np.intp)
        seen = self.column.seen(np.arange(len(self.column.table)), self.input_dtype)
        at_gap = float(self.column.seen([MISSING], self.input_dtype)[0]) if self.may_be_missing else math.nan
        rows = []
        for members in number:
            of_levels = np.isin(seen, sorted(members)).tolist()
            rows += [[*of_levels, self.may_be_missing and side] for side in self._sides(at_gap in members)]
        return np.array(rows).reshape(len(rows), len(seen) + 1), 2 * place + gaps

    def ends_of_sets(self, sets: Sequence[frozenset[float]], gaps: Bools) -> tuple[list[Floats], Bools]:
        """Return of each test on a set the ends before and at its members, and whether a missing cell is one."""
        found: dict[frozenset[float], Floats] = {}
        if self.may_be_missing and not self.column.passes_gaps:
            at_gap = float(self.column.seen([MISSING], self.input_dtype)[0])
            gaps = np.array([at_gap in members for members in sets])
        for members in sets:
            if members not in found:
                values = np.array(sorted(members))
                below = self.column.largest_left(values, self.input_dtype, inclusive=False)
                pairs = np.stack([below, self.column.largest_left(values, self.input_dtype)], axis=1)
                ends = pairs[pairs[:, 0] != pairs[:, 1]].ravel()
                found[members] = ends if len(ends) else np.array([-np.inf, -np.inf])  # no number is a member
        return [found[members] for members in sets], gaps & self.may_be_missing

    def _of_gap(self, theta: Floats) -> Bools:
        """Return whether a missing cell goes left at each threshold, where NaN goes right and where it goes left."""
        of_gap = np.tile([False, self.may_be_missing], (len(theta), 1))
        if self.may_be_missing and not self.column.passes_gaps:
            of_gap[:] = self.column.goes_left([MISSING], theta, self.input_dtype)[:, None]
        return of_gap

    def _sides(self, is_member: bool) -> tuple[bool, bool]:
        return (False, True) if self.column.passes_gaps else (is_member, is_member)


def _gaps_left(tree: Any) -> Bools:
    """Return at which nodes NaN goes left, (nodes,); nowhere in a tree that takes none."""
    if tree.missing_left is None:
        return np.zeros(len(tree.feature), dtype=bool)
    return np.asarray(tree.missing_left)


# ==== Cuts between values in reach ====================================================================================
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


def keys_in_reach(predictor: Predictor, reach: Reach) -> dict[str, list[tuple[float, float]]]:
    """Return by column of numbers the keys of all cuts that part amounts in reach, also of those that decide nothing.

    They are in order. A reach of some columns alone has the keys of these.
    """
    found: dict[str, set[tuple[float, float]]] = {}
    for forest in predictor.forests:
        raw = raw_trees(forest)
        for name in raw.lefts.keys() & reach.keys():
            part = reach[name]
            assert isinstance(part, Interval)  # noqa: S101 - thresholds exist for numbers only
            if part.only != MISSING:
                lasts, firsts = part.sides_of(raw.lefts[name], raw.rights[name])
                parts_amounts = np.isfinite(lasts) & np.isfinite(firsts)
                keys = zip(lasts[parts_amounts].tolist(), firsts[parts_amounts].tolist(), strict=True)
                found.setdefault(name, set()).update(keys)
    return {name: sorted(keys) for name, keys in found.items()}


def place_of(cut: NumberCut) -> tuple[Any, ...]:
    """Return where a cut stands among those of all columns."""
    return cut.name, cut.key, sorted(cut.labels)
