"""Branch and bound over the cells of trees: the cheapest points that reach a need, without a program.

A node is a set of cells of each column. Its cells are probed as
:func:`~ceopt.formulations.predictors.tree_bounds.probed` does, on a small matrix of the leaves that are left by the
cells that they admit. Then the cells of one column are parted in two, where the sums of the best leaves fall most on
either side. A node with one cell a column is a point, at the cheapest place in each.

Several answers come from one branching. Of points that a met one leaves no room for, as they change the same columns
the same ways or further ones, only cheaper ones are looked for: each cell is probed within the cost of the cheapest
point met that rules out all points of the node with that cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.predictors.tree_bounds import CellsLeft, TreeNeed
    from ceopt.solvers.checks import Floats

Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
#: The cell of each column.
Cells = tuple[int, ...]

_BRANCHING: Final = "branching over the cells of the trees"
#: Leaves times cells, over all probings: what branching for one answer may take before a program is the better way.
WORK: Final = 40_000_000
#: Of one answer, for each leaf of the first node: the fewer there are, the sooner is a program solved.
_WORK_OF_A_LEAF: Final = 40_000
#: What a probing takes beside its leaves times cells.
_PROBING: Final = 20_000
#: Leaves times cells of the first node at most.
_LARGE: Final = 4_000_000
#: By how much more the side counts on which sums fall less.
_LESSER_SIDE: Final = 30.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellQuestion:
    """What points are to be.

    Parameters
    ----------
    need
        What the leaves have to reach.
    prices
        Of each column's cells.
    accepts
        Whether the model as read favours the point of some cells, and it keeps the rules.
    share
        Of its cost: by how much a point has to be cheaper than one that was met.
    ways
        Of each column's cells, by number: how it moves the column, 0 where it leaves it as it is.
    earlier
        Answers from which they have to be distinct, as
        :class:`~ceopt.formulations.constraints.diversity.distinct.Distinct` has it.
    count
        How many are looked for, each distinct from those that cost less.
    """

    need: TreeNeed
    prices: Sequence[Floats]
    accepts: Callable[[Cells], bool]
    share: float
    ways: Sequence[Ints]
    earlier: Sequence[Cells] = ()
    count: int = 1

    def cost(self, cells: Cells) -> float:
        """Return what a point costs."""
        return sum(float(own[at]) for own, at in zip(self.prices, cells, strict=True))


@final
@dataclass(slots=True)
class Work:
    """How many leaves times cells may still be probed for an answer; of a person that took more, none for the next."""

    most: float = WORK
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.most

    def renew(self) -> None:
        """Begin with another answer."""
        if self.left > 0.0:
            self.left = self.most


def cheapest_cells(
    left: CellsLeft, question: CellQuestion, budget: float, work: Work, known: Sequence[Cells] = ()
) -> tuple[float | None, list[Cells]]:
    """Return up to what cost all points of the cells left are known, and the points, the cheapest first.

    That is the budget, or less where as many points as are looked for cost less, or where a point reaches the need and
    is not accepted, as another one of its cells may be. Points that are ``known`` are not looked for. None where the
    work does not suffice.
    """
    if left.is_empty:
        return budget, list(known)
    size = len(left.leaves) * sum(int(left.kept[j].sum()) for j in left.leaves.split)
    if size > _LARGE or work.left < size:
        return None, list(known)
    return _Branching(left, question, budget, work, known).run()


@dataclass(slots=True, eq=False)
class _Node:
    """Cells, leaves that admit some of each column, and which leaf admits which cell (leaves, cells)."""

    cells: Ints
    leaves: Ints
    admits: Bools


class _Branching:
    """The cells of the split columns side by side; all other columns are at their cheapest cell."""

    def __init__(
        self, left: CellsLeft, question: CellQuestion, budget: float, work: Work, known: Sequence[Cells]
    ) -> None:
        self.question = question
        self.budget = budget
        self.work = work
        leaves = left.leaves
        #: Work that is left where this branching ends.
        self.spared = max(work.left - _WORK_OF_A_LEAF * len(leaves), 0.0) if question.count == 1 else 0.0
        self.split = leaves.split
        self.columns = np.arange(len(self.split))
        kept = {j: np.flatnonzero(left.kept[j]) for j in self.split}
        self.point = [
            int(np.where(own, price, np.inf).argmin()) for own, price in zip(left.kept, question.prices, strict=True)
        ]
        self.rest = sum(float(question.prices[j][at]) for j, at in enumerate(self.point) if j not in kept)
        self.column = np.repeat(self.columns, [len(own) for own in kept.values()])
        self.place = np.concatenate([np.zeros(0, dtype=np.intp), *kept.values()])
        self.price = np.concatenate([np.zeros(0), *(question.prices[j][own] for j, own in kept.items())])
        self.way = np.concatenate([np.zeros(0, dtype=np.intp), *(question.ways[j][own] for j, own in kept.items())])
        self.is_ordered = [j in leaves.low for j in self.split]
        self.met = _MetCells(self, known)
        order = np.argsort(leaves.tree, kind="stable")
        self.tree = leaves.tree[order]
        self.trees = len(np.unique(self.tree))
        self.values = leaves.values[order]
        need = question.need
        self.floors = np.array([own - need.rounding if math.isfinite(own) else own for own in need.need.tolist()])
        admits = [leaves.admitted(j, own)[order] for j, own in kept.items()]
        self.root = _Node(
            np.arange(len(self.place)),
            np.arange(len(leaves)),
            np.concatenate([np.zeros((len(leaves), 0), dtype=bool), *admits], axis=1),
        )

    def run(self) -> tuple[float | None, list[Cells]]:
        """Return what :func:`cheapest_cells` does."""
        most = self.met.budget
        self.budget = min(self.budget, most)
        open_ = [self.root]
        while open_ and most > 0.0:  # nothing costs less than nothing
            checkpoint(_BRANCHING)
            node = open_.pop()
            excess = self.settle(node)
            if self.work.left < self.spared:
                return None, self.met.points
            if excess is None:
                continue
            if len(node.cells) > len(self.split):
                for half in self.halves(node, excess):
                    open_.append(_Node(node.cells[half], node.leaves, node.admits[:, half]))
                continue
            point = list(self.point)
            for j, at in zip(self.split, self.place[node.cells].tolist(), strict=True):
                point[j] = at
            if self.question.accepts(tuple(point)):
                self.met.add(tuple(point))
                most = self.met.budget
                self.budget = min(self.budget, most)
            else:  # others of its cells may not be refused
                self.budget = min(self.budget, self.rest + float(self.price[node.cells].sum()))
        return self.budget, self.met.points

    # ---- one node ----------------------------------------------------------------------------------------------------
    def settle(self, node: _Node) -> Floats | None:
        """Leave out cells until no more go; return by how much the best leaves with each cell exceed the need.

        None where no point is left.
        """
        while True:
            excess = self.probed(node)
            if excess is None or self.work.left < self.spared:
                return None
            kept = excess >= 0.0
            if not self.has_all(node.cells[kept]):
                return None
            if kept.all():
                return excess
            node.cells, node.admits = node.cells[kept], node.admits[:, kept]

    def has_all(self, cells: Ints) -> bool:
        """Whether every column has a cell."""
        return len(np.unique(self.column[cells])) == len(self.split)

    def probed(self, node: _Node) -> Floats | None:
        """Drop the leaves that are out of reach, and return the excess of each cell; None where a tree has no leaf."""
        self.work.left -= node.admits.size + _PROBING
        price = self.price[node.cells]
        first = np.searchsorted(self.column[node.cells], self.columns)
        budgets = self.met.budgets(node.cells, self.budget)
        budget = float(np.maximum.reduceat(budgets, first).min(initial=self.budget))
        own = np.minimum.reduceat(np.where(node.admits, price, np.inf), first, axis=1)
        total = own.sum(axis=1) + self.rest
        near = total <= budget
        if not near.all():
            node.leaves, node.admits, own, total = node.leaves[near], node.admits[near], own[near], total[near]
        tree = self.tree[node.leaves]
        starts = np.flatnonzero(np.diff(tree, prepend=-1))
        if len(starts) < self.trees:
            return None
        rest = np.repeat(own - total[:, None], np.diff(first, append=len(price)), axis=1)
        can_pay = node.admits & (price - np.minimum(budgets, budget) <= rest)
        excess = np.full(len(price), np.inf)
        for values, floor in zip(self.values[node.leaves].T, self.floors, strict=True):
            best = np.maximum.reduceat(np.where(can_pay, values[:, None], -np.inf), starts, axis=0)
            excess = np.minimum(excess, best.sum(axis=0) - floor)
        return excess

    def halves(self, node: _Node, excess: Floats) -> tuple[Ints, Ints]:
        """Return the cells of two nodes, the one that exceeds the need by more last."""
        ways = self.met.parts(node.cells)
        is_free = not ways
        if is_free:
            column = self.column[node.cells]
            ends = np.searchsorted(column, np.arange(len(self.split) + 1))
            for k in self.columns[np.diff(ends) > 1].tolist():
                own = np.arange(ends[k], ends[k + 1])
                ways.append(own if self.is_ordered[k] else own[np.argsort(-excess[own], kind="stable")])
        best, parts = -math.inf, (node.cells, node.cells)
        for own in ways:
            before = np.maximum.accumulate(excess[own])[:-1]
            after = np.maximum.accumulate(excess[own][::-1])[::-1][1:]
            more, less = np.maximum(before, after), np.minimum(before, after)
            fall = (1.0 + _LESSER_SIDE) * excess.max() - _LESSER_SIDE * more - less
            at = int(fall.argmax()) if is_free else 0
            if fall[at] > best:
                best = float(fall[at])
                parts = (own[: at + 1], own[at + 1 :])
                if before[at] > after[at]:
                    parts = (parts[1], parts[0])
        others = np.setdiff1d(np.arange(len(excess)), np.concatenate(parts))
        return tuple(np.sort(np.concatenate([others, part])) for part in parts)  # type: ignore[return-value]


class _MetCells:
    """Earlier answers and points that were met, one of those that change the same columns the same ways."""

    def __init__(self, search: _Branching, known: Sequence[Cells]) -> None:
        self.search = search
        self.costs: list[float] = []
        self.cells: list[Cells] = []
        #: How each moves the split columns, and which it changes.
        self.ways = np.zeros((0, len(search.split)), dtype=np.intp)
        self.changed = self.ways != 0
        for cells in search.question.earlier:
            self.add(cells, -math.inf)
        for cells in known:
            self.add(cells)

    def add(self, cells: Cells, cost: float | None = None) -> None:
        """Add a point, in place of a dearer one with the same changes."""
        question = self.search.question
        cost = question.cost(cells) if cost is None else cost
        every = np.array([own[at] for own, at in zip(question.ways, cells, strict=True)])
        ways = every[list(self.search.split)]
        if np.count_nonzero(ways) < np.count_nonzero(every):
            return  # a column of its own stays in all nodes
        same = np.flatnonzero((self.ways == ways).all(axis=1)).tolist()
        if not same:
            self.costs.append(cost)
            self.cells.append(cells)
            self.ways = np.concatenate([self.ways, ways[None]])
            self.changed = self.ways != 0
        elif cost < self.costs[same[0]]:
            self.costs[same[0]], self.cells[same[0]] = cost, cells

    @property
    def points(self) -> list[Cells]:
        """Those that were met and are distinct from all cheaper ones and from the earlier, the cheapest first."""
        kept: list[int] = []
        for k in sorted(range(len(self.costs)), key=self.costs.__getitem__):
            less = self.changed[kept] <= self.changed[k]
            if not less.all(axis=1)[(self.changed[kept] != self.changed[k]).any(axis=1)].any():
                kept.append(k)
        return [self.cells[k] for k in kept if self.costs[k] > -math.inf]

    @property
    def budget(self) -> float:
        """What a point may cost to be one of those that are looked for."""
        question = self.search.question
        points = self.points
        if len(points) < question.count:
            return math.inf
        return question.cost(points[question.count - 1]) * (1.0 - question.share)

    def budgets(self, cells: Ints, most: float) -> Floats:
        """Return for each cell what a point of it may cost to be distinct from all cheaper ones."""
        if not self.costs:
            return np.full(len(cells), most)
        column, way = self.search.column[cells], self.search.way[cells]
        may_stay = np.bincount(column[way == 0], minlength=len(self.search.split)) > 0
        changed, before = self.changed[:, column], self.ways[:, column]
        has_other = np.zeros_like(self.changed)
        points, places = np.nonzero(changed & (way != 0) & (way != before))
        has_other[points, column[places]] = True
        stays = self.changed & may_stay
        staying, moving = stays.sum(axis=1)[:, None], (~self.changed & ~may_stay).any(axis=1)[:, None]
        others = has_other.sum(axis=1)[:, None]
        moves_again = (way == before) & (others - has_other[:, column] == 0)
        of_its_own = (way != 0) & (staying - stays[:, column] == 0) & (moving | moves_again)
        of_others = (staying == 0) & (moving | (way != 0) | (others == 0))
        costs = np.array(self.costs)[:, None] * (1.0 - self.search.question.share)
        costs[costs == 0.0] = -math.inf  # nothing costs less
        least: Floats = np.where(np.where(changed, of_its_own, of_others), costs, most).min(axis=0)
        return np.minimum(least, most)

    def parts(self, cells: Ints) -> list[Ints]:
        """Return the cells of each column that a point changes, the person's own first, where a node holds it."""
        search = self.search
        column, way = search.column[cells], search.way[cells]
        for k in range(len(self.costs)):
            own = np.array([self.cells[k][j] for j in search.split], dtype=np.intp)
            if np.count_nonzero(search.place[cells] == own[column]) < len(own):
                continue
            found: list[Ints] = []
            for j in np.flatnonzero(self.changed[k]).tolist():
                home, other = np.flatnonzero((column == j) & (way == 0)), np.flatnonzero((column == j) & (way != 0))
                if len(home) and len(other):
                    found.append(np.concatenate([home, other]))
            if found:
                return found
        return []
