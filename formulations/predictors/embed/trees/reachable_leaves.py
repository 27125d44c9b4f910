"""The reachable part of a tree ensemble for one person: its leaves, and the splits that still decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from ceopt.formulations.predictors.embed.trees.split_values import LevelSplit, NumberSplit, RoutedTree
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.solvers.deadline import checkpoint

__all__ = ["Box", "Cut", "Leaf", "LevelCut", "NumberCut", "PrunedTree", "cuts_in_reach", "prune"]

#: What a leaf admits per column that its path splits: (least, greatest) of a number, or the ranks of levels.
Box: TypeAlias = Mapping[str, tuple[float, float] | frozenset[int]]


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
