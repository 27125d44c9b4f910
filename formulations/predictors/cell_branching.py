"""Branch and bound over the cells of trees: the cheapest point that reaches a need, without a program.

A node is a set of cells of each column. Its cells are probed as
:func:`~ceopt.formulations.predictors.tree_bounds.probed` does, on a small matrix of the leaves that are left by the
cells that they admit. Then the cells of one column are parted in two, where the sums of the best leaves fall most on
either side. A node with one cell a column is a point, at the cheapest place in each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
#: What a probing takes beside its leaves times cells.
_PROBING: Final = 20_000
#: Leaves times cells of the first node at most.
_LARGE: Final = 4_000_000
#: By how much more the side counts on which sums fall less.
_LESSER_SIDE: Final = 30.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class EarlierCells:
    """An answer that a point is to be distinct from.

    Parameters
    ----------
    cells
        Its own.
    again
        By position of each column that it changes, which of the column's cells move it the same way.
    """

    cells: Cells
    again: Mapping[int, Bools]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellQuestion:
    """What a point is to be.

    Parameters
    ----------
    need
        What the leaves have to reach.
    prices, home
        Of each column's cells, and the person's own cell.
    accepts
        Whether the model as read favours the point of some cells, and it keeps the rules.
    share
        Of its cost: by how much a point has to be cheaper than one that was met.
    earlier
        Answers that it has to be distinct from, as :class:`~ceopt.formulations.constraints.diversity.distinct.Distinct`
        has it.
    """

    need: TreeNeed
    prices: Sequence[Floats]
    home: Cells
    accepts: Callable[[Cells], bool]
    share: float
    earlier: Sequence[EarlierCells] = ()


@final
@dataclass(slots=True)
class Work:
    """How many leaves times cells may still be probed for an answer; of a person that took more, none for the next."""

    left: float = WORK

    def renew(self) -> None:
        """Begin with another answer."""
        if self.left > 0.0:
            self.left = WORK


def cheapest_cells(
    left: CellsLeft, question: CellQuestion, budget: float, work: Work
) -> tuple[float | None, list[Cells]]:
    """Return the least cost of a point of the cells left, or the budget, and the points met, the cheapest first.

    The cost is that of a point that reaches the need but is not accepted, if that is less: another point of its cells
    may be. None where the work does not suffice.
    """
    if left.is_empty:
        return budget, []
    size = len(left.leaves) * sum(int(left.kept[j].sum()) for j in left.leaves.split)
    if size > _LARGE or work.left < size:
        return None, []
    return _Branching(left, question, budget, work).run()


@dataclass(slots=True, eq=False)
class _Node:
    """Cells, leaves that admit some of each column, and which leaf admits which cell (leaves, cells)."""

    cells: Ints
    leaves: Ints
    admits: Bools


class _Branching:
    """The cells of the split columns side by side; all other columns are at their cheapest cell."""

    def __init__(self, left: CellsLeft, question: CellQuestion, budget: float, work: Work) -> None:
        self.question = question
        self.budget = budget
        self.work = work
        leaves = left.leaves
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
        self.is_home = self.place == np.array([question.home[j] for j in self.split], dtype=np.intp)[self.column]
        self.is_ordered = [j in leaves.low for j in self.split]
        self.earlier = []
        for one in question.earlier:
            if all(j in kept for j in one.again):  # else a column of its own stays
                self.earlier.append(_Distinct(self, one))
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
        met: list[Cells] = []
        open_ = [self.root]
        while open_:
            checkpoint(_BRANCHING)
            node = open_.pop()
            excess = self.settle(node)
            if self.work.left < 0.0:
                return None, met
            if excess is None:
                continue
            if len(node.cells) > len(self.split):
                for half in self.halves(node, excess):
                    open_.append(_Node(node.cells[half], node.leaves, node.admits[:, half]))
                continue
            point = list(self.point)
            for j, at in zip(self.split, self.place[node.cells].tolist(), strict=True):
                point[j] = at
            cost = self.rest + float(self.price[node.cells].sum())
            if self.question.accepts(tuple(point)):
                met.insert(0, tuple(point))
                cost *= 1.0 - self.question.share
            self.budget = min(self.budget, cost)  # also of a point that is refused: others of its cells may not be
        return self.budget, met

    # ---- one node ----------------------------------------------------------------------------------------------------
    def settle(self, node: _Node) -> Floats | None:
        """Leave out cells until no more go; return by how much the best leaves with each cell exceed the need.

        None where no point is left.
        """
        while True:
            excess = self.probed(node)
            if excess is None or self.work.left < 0.0:
                return None
            kept = excess >= 0.0
            for one in self.earlier:
                kept = one.kept(self, node.cells, kept)
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
        own = np.minimum.reduceat(np.where(node.admits, price, np.inf), first, axis=1)
        total = own.sum(axis=1) + self.rest
        near = total <= self.budget
        if not near.all():
            node.leaves, node.admits, own, total = node.leaves[near], node.admits[near], own[near], total[near]
        tree = self.tree[node.leaves]
        starts = np.flatnonzero(np.diff(tree, prepend=-1))
        if len(starts) < self.trees:
            return None
        room = (self.budget - total)[:, None] + own
        can_pay = node.admits & (price <= np.repeat(room, np.diff(first, append=len(price)), axis=1))
        excess = np.full(len(price), np.inf)
        for values, floor in zip(self.values[node.leaves].T, self.floors, strict=True):
            best = np.maximum.reduceat(np.where(can_pay, values[:, None], -np.inf), starts, axis=0)
            excess = np.minimum(excess, best.sum(axis=0) - floor)
        return excess

    def halves(self, node: _Node, excess: Floats) -> tuple[Ints, Ints]:
        """Return the cells of two nodes, the one that exceeds the need by more last."""
        ways = next(filter(None, (one.ways(self, node.cells) for one in self.earlier)), [])
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


class _Distinct:
    """What an earlier answer leaves of the cells of a node."""

    def __init__(self, search: _Branching, earlier: EarlierCells) -> None:
        changed = [k for k, j in enumerate(search.split) if j in earlier.again]
        self.changed = np.isin(search.columns, changed)
        self.is_own = search.place == np.array([earlier.cells[j] for j in search.split], dtype=np.intp)[search.column]
        self.is_again = np.zeros(len(search.place), dtype=bool)
        for k in changed:
            own = search.column == k
            self.is_again[own] = earlier.again[search.split[k]][search.place[own]]

    def kept(self, search: _Branching, cells: Ints, kept: Bools) -> Bools:
        """Return which of the cells a distinct point may take."""
        column, is_home = search.column[cells], search.is_home[cells]
        size = len(search.split)
        may_stay = np.bincount(column[kept & is_home], minlength=size) > 0
        may_move = np.bincount(column[kept & ~is_home], minlength=size) > 0
        if (self.changed & ~may_move).any():  # one stays
            return kept
        staying = np.flatnonzero(self.changed & may_stay)
        is_other = kept & ~is_home & ~self.is_again[cells] & self.changed[column]
        is_further = (~self.changed & ~may_stay).any()
        if not len(staying):  # these columns alone, and one of them otherwise
            return np.asarray(kept & (self.changed[column] | is_home) & is_other.any())
        if len(staying) == 1 and (is_further or not is_other.any()):
            return np.asarray(kept & ((column != staying[0]) | is_home))
        return kept

    def ways(self, search: _Branching, cells: Ints) -> list[Ints]:
        """Return the cells of each changed column, the person's own first, where a node holds the answer itself."""
        if np.count_nonzero(self.is_own[cells]) < len(search.split):
            return []
        column, is_home = search.column[cells], search.is_home[cells]
        found = []
        for k in np.flatnonzero(self.changed).tolist():
            own = column == k
            if (own & is_home).any() and (own & ~is_home).any():
                found.append(np.concatenate([np.flatnonzero(own & is_home), np.flatnonzero(own & ~is_home)]))
        return found
