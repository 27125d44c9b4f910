"""Trees for one person: the leaves that can be reached, and the cuts that part them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from ceopt.formulations.predictors.routes import LevelSplit, NumberSplit, RoutedTree, RoutedTrees
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.solvers.checks import Floats

#: What the time limit ends here, once per person.
_PRUNING = "following the trees"
#: Leaves of one tree between two looks at the clock.
_LEAVES = 256
#: What a box admits of a column. Of a number its least and greatest amount (the least is the greater where it admits
#: none) and labels, as codes and the missing cell are no amounts; of levels their ranks, and the missing cell.
Part: TypeAlias = tuple[float, float, frozenset[float]] | frozenset[float]
#: What a leaf admits per column that its path splits.
Box: TypeAlias = Mapping[str, Part]


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
                case (low, high, labels), NumberCut(key=(last, first), labels=on_left):
                    if high <= last and labels <= on_left:
                        left.append(k)
                    elif low >= first and labels.isdisjoint(on_left):
                        right.append(k)
                case frozenset() as ranks, LevelCut() if ranks <= cut.ranks:
                    left.append(k)
                case frozenset() as ranks, LevelCut() if not ranks & cut.ranks:
                    right.append(k)
        return left, right


def prune(routed: RoutedTrees, reach: Reach, *, cutoff: CostCutoff | None = None) -> tuple[PrunedTree, ...]:
    """Drop what the reach rules out, merge siblings of equal value, and snap each split to neighbours in reach.

    Exact: the pruned ensemble has the score of the full one at every point in reach. With a cut-off, leaves whose
    nearest point costs more than its budget are dropped as well.
    """
    cutter = _Cutter(routed, reach)
    budget = None
    if cutoff is not None:
        budget = _Budget(cutoff, cutter)
    pruned = []
    for position, tree in enumerate(routed):
        checkpoint(_PRUNING)
        pruned.append(_Walk(tree, cutter, budget).pruned(position))
    return tuple(pruned)


def cuts_in_reach(routed: RoutedTrees, reach: Reach) -> tuple[NumberCut, ...]:
    """Return every split on a number that has reachable values on both sides, also where it decides nothing here."""
    checkpoint(_PRUNING)
    cutter = _Cutter(routed, reach)
    cuts: set[NumberCut] = set()
    for name in routed.number_splits:
        cuts.update(cut for cut in cutter.number_cuts(name) if cut.parts_amounts)
    return tuple(sorted(cuts, key=place_of))


def place_of(cut: NumberCut) -> tuple[Any, ...]:
    """Return where a cut stands among those of all columns."""
    return cut.name, cut.key, sorted(cut.labels)


class _Cutter:
    """Snaps splits to the reach, all of a column at once and each once for the whole ensemble."""

    def __init__(self, routed: RoutedTrees, reach: Reach) -> None:
        self.routed = routed
        self.reach = reach
        #: All that is in reach of each column.
        self.whole: dict[str, Part] = {}
        for name, part in reach.items():
            if isinstance(part, Levels):
                self.whole[name] = frozenset([*part.ranks, *part.labels])
            elif part.only == MISSING:
                self.whole[name] = (math.inf, -math.inf, frozenset((MISSING,)))
            else:
                self.whole[name] = (part.lower, part.upper, frozenset(part.labels))
        self._cuts: dict[NumberSplit | LevelSplit, Cut] = {}
        self._numbers: dict[str, list[NumberCut]] = {}

    def cut(self, split: NumberSplit | LevelSplit) -> Cut:
        """Return a split between values in reach."""
        if split in self._cuts:
            return self._cuts[split]
        if isinstance(split, LevelSplit):
            whole = self.whole[split.name]
            assert isinstance(whole, frozenset)  # noqa: S101 - tables exist for levels only
            self._cuts[split] = LevelCut(split.name, split.ranks & whole)
        else:
            self.number_cuts(split.name)
        return self._cuts[split]

    def number_cuts(self, name: str) -> list[NumberCut]:
        """Return the cuts of a column of numbers, one for each of its splits."""
        if name in self._numbers:
            return self._numbers[name]
        splits = self.routed.number_splits[name]
        part = self.reach[name]
        assert isinstance(part, Interval)  # noqa: S101 - thresholds exist for numbers only
        lefts = np.array([split.left for split in splits])
        rights = np.array([split.right for split in splits])
        keys = self._keys(part, lefts, rights)
        whole = self.whole[name]
        assert isinstance(whole, tuple)  # noqa: S101 - as above
        labels = sorted(whole[2])
        if labels:
            on_left = [frozenset(label for label in labels if split.goes_left(label)) for split in splits]
            cuts = [NumberCut(name, key, left) for key, left in zip(keys, on_left, strict=True)]
        else:
            cuts = [NumberCut(name, key) for key in keys]
        self._cuts.update(zip(splits, cuts, strict=True))
        self._numbers[name] = cuts
        return cuts

    @staticmethod
    def _keys(part: Interval, lefts: Floats, rights: Floats) -> list[tuple[float, float]]:
        """Return the last amount left of each split and the first right of it, infinite where there is none."""
        if part.only == MISSING:  # there are no amounts
            return [(-math.inf, math.inf)] * len(lefts)
        is_cut = np.isfinite(lefts)
        if is_cut.all():
            lasts, firsts = part.sides_of(lefts, rights)
        else:  # some only part the missing cell from all numbers
            lasts = np.where(lefts > 0.0, part.upper, -np.inf)
            firsts = np.where(lefts > 0.0, np.inf, part.lower)
            lasts[is_cut], firsts[is_cut] = part.sides_of(lefts[is_cut], rights[is_cut])
        return list(zip(lasts.tolist(), firsts.tolist(), strict=True))


class _Budget:
    """What a box costs at least: for a cut-off's cost, the prices of the nearest value of each column."""

    def __init__(self, cutoff: CostCutoff, cutter: _Cutter) -> None:
        self.cutoff = cutoff
        self.cutter = cutter
        self._at_ends: dict[str, dict[float, float]] = {}
        self._at_labels: dict[str, dict[float, float]] = {}

    def least(self, name: str, admitted: Part) -> float:
        """Return what the nearest of the values that a box admits costs."""
        if isinstance(admitted, frozenset):
            prices = self._label_prices(name)
            return min(prices[rank] for rank in admitted)
        low, high, labels = admitted
        x0 = self.cutoff.factual[name]
        if labels:
            prices = self._label_prices(name)
            of_labels = min(prices[label] for label in labels)
            if low > high:
                return of_labels
            return min(of_labels, self._amount_price(name, low, high, x0))
        return self._amount_price(name, low, high, x0)

    def _amount_price(self, name: str, low: float, high: float, x0: float) -> float:
        whole = self.cutter.whole[name]
        assert isinstance(whole, tuple)  # noqa: S101 - a number column has a pair of bounds
        if x0 in whole[2]:  # it is filled in, at the same price wherever it lands
            part = self.cutter.reach[name]
            assert isinstance(part, Interval)  # noqa: S101 - as above
            return self._end_prices(name, part.clip(0.0))[part.clip(0.0)]
        if low <= x0 <= high:
            return 0.0
        return self._end_prices(name)[min(max(x0, low), high)]

    def is_exceeded(self, costs: Iterable[float]) -> bool:
        """Tell whether a box whose columns cost so much costs more than the budget."""
        if self.cutoff.cost.additive:
            least = sum(costs)
        else:
            least = max(costs, default=0.0)
        return least > self.cutoff.budget

    def _end_prices(self, name: str, *more: float) -> dict[float, float]:
        """Return the prices of all amounts at which a box may end: those beside a cut, and the ends of the reach."""
        if name not in self._at_ends:
            whole = self.cutter.whole[name]
            assert isinstance(whole, tuple)  # noqa: S101 - a number column has a pair of bounds
            ends = {*whole[:2], *more}
            for cut in self.cutter.number_cuts(name):
                ends.update(cut.key)
            finite = [end for end in ends if math.isfinite(end)]
            prices = self.cutoff.own_prices(name, np.array(finite)).tolist()
            self._at_ends[name] = dict(zip(finite, prices, strict=True))
        return self._at_ends[name]

    def _label_prices(self, name: str) -> dict[float, float]:
        """Return the prices of all levels and labels in reach."""
        if name not in self._at_labels:
            whole = self.cutter.whole[name]
            labels = sorted(whole[2] if isinstance(whole, tuple) else whole)
            prices = self.cutoff.own_prices(name, np.array(labels, dtype=np.float64)).tolist()
            self._at_labels[name] = dict(zip(labels, prices, strict=True))
        return self._at_labels[name]


class _Walk:
    """One walk down one tree; ``box`` is that of the node at which it stands, ``costs`` what its columns cost."""

    def __init__(self, tree: RoutedTree, cutter: _Cutter, budget: _Budget | None) -> None:
        self.tree = tree
        self.cutter = cutter
        self.budget = budget
        self.box: dict[str, Part] = {}
        self.costs: dict[str, float] = {}
        self.nodes: list[tuple[Cut, list[Leaf], list[Leaf]]] = []
        self.visited: set[int] = set()
        self.extra = len(tree.is_leaf)

    def pruned(self, position: int) -> PrunedTree:
        """Return what is left of the tree."""
        leaves = self._below(0)
        place = {leaf.node: k for k, leaf in enumerate(leaves)}
        nodes = []
        for cut, left, right in self.nodes:
            lefts = tuple(place[leaf.node] for leaf in left)
            rights = tuple(place[leaf.node] for leaf in right)
            nodes.append((cut, lefts, rights))
        return PrunedTree(position, tuple(leaves), tuple(nodes))

    def _below(self, node: int) -> list[Leaf]:
        """Return the leaves that are left below a node."""
        tree = self.tree
        if tree.is_leaf[node]:
            return [self._leaf(node, tree.value[node])]
        split = tree.splits[node]
        if split is None:
            return self._below(tree.left[node])
        cut = self.cutter.cut(split)
        name = cut.name
        above = self.box.get(name)
        cost_above = self.costs.get(name, 0.0)
        parts = _divide(cut, self.box.get(name, self.cutter.whole[name]))
        sides: list[list[Leaf]] = []
        for child, part in zip((tree.left[node], tree.right[node]), parts, strict=True):
            if part is None:
                continue
            self.box[name] = part
            if self.budget is not None:
                # A smaller box never costs less: what is too far here is so in every leaf below.
                self.costs[name] = self.budget.least(name, part)
                if self.budget.is_exceeded(self.costs.values()):
                    continue
            leaves = self._below(child)
            if leaves:
                sides.append(leaves)
        if above is None:
            self.box.pop(name, None)
            self.costs.pop(name, None)
        else:
            self.box[name] = above
            self.costs[name] = cost_above
        if len(sides) < 2:
            return next(iter(sides), [])
        left, right = sides
        if len(left) == len(right) == 1 and left[0].value == right[0].value:
            return [self._leaf(node, left[0].value)]
        self.nodes.append((cut, left, right))
        return left + right

    def _leaf(self, node: int, value: tuple[float, ...]) -> Leaf:
        """Return a leaf under the number of its node, or under a new one where another path has met the node."""
        if len(self.visited) % _LEAVES == _LEAVES - 1:
            checkpoint(_PRUNING)
        number = node
        if node in self.visited:
            number = self.extra
            self.extra += 1
        self.visited.add(node)
        return Leaf(number, value, dict(self.box))


def _divide(cut: Cut, part: Part) -> tuple[Part | None, Part | None]:
    """Return what a part of a column has on either side of a cut; None where it has nothing."""
    if isinstance(cut, LevelCut):
        assert isinstance(part, frozenset)  # noqa: S101 - a level column has a set of ranks
        return (part & cut.ranks) or None, (part - cut.ranks) or None
    assert isinstance(part, tuple)  # noqa: S101 - a number column has a pair of bounds
    low, high, labels = part
    last = min(high, cut.key[0])
    first = max(low, cut.key[1])
    left: Part | None = None
    right: Part | None = None
    if labels:
        on_left, on_right = labels & cut.labels, labels - cut.labels
        left = (math.inf, -math.inf, on_left) if on_left else None
        right = (math.inf, -math.inf, on_right) if on_right else None
    else:
        on_left = on_right = labels
    if last >= low and cut.key[0] != -math.inf:
        left = (low, last, on_left)
    if first <= high and cut.key[1] != math.inf:
        right = (first, high, on_right)
    return left, right
