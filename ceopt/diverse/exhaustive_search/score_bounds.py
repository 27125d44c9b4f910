r"""Bounds on a score once some columns have taken their cells: they close whole boxes of cells.

For a box of cells in which the columns J are still free and r of the budget is left, a demand can reach no more than

.. math::
    b + \sum_t \max\Bigl\{g_{t\ell} : \ell \text{ meets the cells taken, } \sum_{j \in J} c_{j\ell} \le r\Bigr\}
    + \sum_p \Bigl(\text{taken}_p + \max\Bigl\{\sum_{j \in J} w_{pj k_j} : \sum_{j \in J} c_{j k_j} \le r \Bigr\}\Bigr)

====== ==================================================================================================
symbol meaning
====== ==================================================================================================
g      what a leaf adds
c_jl   least price at which column j comes into the box of leaf l, 0 where the leaf does not ask for it
w, c   what cell k of a column adds through a linear part, and its price
====== ==================================================================================================

Each part is at least the truth, and equal to it, but for rounding, once nothing is free. A member that votes adds the
most of the labels for which it may decide. Under a cost that is no sum the greatest price counts, not the total. Where
a rule limits the number of changes, a leaf must be within reach of the changes that are left as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.diverse.exhaustive_search.score_requirements import Alternatives, Demand
from ceopt.formulations.predictors.embed.reachable_leaves import Leaf, prune, route
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.tolerances import ALLOWANCE_ROUNDING, LINEAR_PART_ROUNDING, NEXT_STEP

if TYPE_CHECKING:
    from ceopt.diverse.exhaustive_search.cells import Allowance, CellColumn
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.reachable import Reach

__all__ = ["Bits", "Boxes", "Ceilings", "LeafGains", "Leaves", "Line"]

Floats: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.uint8]

# ---- leaves of trees -------------------------------------------------------------------------------------------------
#: Prices of leaves that are told apart at each depth; prices between two of them are rounded down.
_KINDS: Final = 128
#: Which bits each byte holds, (256, 8).
_HELD: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(bool)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafGains:
    """What the leaves of an ensemble add: of each byte and its 256 values the most, (bytes, 256), and the rounding.

    ``rounds`` says how many trees have a first byte, a second one, and so on; the bytes stand in this order.
    """

    table: Floats
    bytes: slice
    rounds: tuple[int, ...]
    rounding: float

    def most(self, met: Bits) -> Floats:
        """Return what trees add at most in boxes that meet these leaves, (n,)."""
        here = met[:, self.bytes].astype(np.intp) + 256 * np.arange(len(self.table))
        added = self.table.ravel()[here]
        best = added[:, : self.rounds[0]]
        first = self.rounds[0]
        for trees in self.rounds[1:]:
            np.maximum(best[:, :trees], added[:, first : first + trees], out=best[:, :trees])
            first += trees
        return np.asarray(best.sum(axis=1))


@final
class Leaves:
    """The leaves of some ensembles that one person can reach, eight to a byte, each tree with bytes of its own.

    Parameters
    ----------
    forests
        The ensembles.
    columns
        The columns in the order in which they take their cells.
    reach
        Values that each column may take.
    allowances
        What there is to go round with.
    """

    def __init__(
        self,
        forests: Iterable[Predictor],
        columns: Sequence[CellColumn],
        reach: Reach,
        allowances: Sequence[Allowance],
    ) -> None:
        self._places: dict[int, tuple[slice, tuple[int, ...], list[tuple[Leaf, ...]]]] = {}
        leaves: list[Leaf | None] = []
        for forest in forests:
            # Larger trees first: the trees with a second byte are then the first few, and so on.
            trees = sorted((tree.leaves for tree in prune(route(forest), reach)), key=len, reverse=True)
            first = len(leaves) // 8
            rounds: list[int] = []
            for at in range(0, len(trees[0]), 8):
                longer = [tree for tree in trees if len(tree) > at]
                for tree in longer:
                    byte = tree[at : at + 8]
                    leaves += [*byte, *[None] * (8 - len(byte))]
                rounds.append(len(longer))
            self._places[id(forest)] = (slice(first, len(leaves) // 8), tuple(rounds), trees)
        exists = np.array([leaf is not None for leaf in leaves], dtype=bool)
        #: All leaves, (bytes,); ``of_cells`` are those that each cell of each column meets, (cells, bytes) each.
        self.all: Bits = _packed(exists[None, :])[0]
        inside = [_inside(column, leaves) for column in columns]
        self.of_cells = [_packed(part & exists) for part in inside]
        self._affordable = [_suffixes(inside, exists, allowance) for allowance in allowances]

    def affordable(self, depth: int, left: Sequence[Floats]) -> Bits:
        """Return the leaves into whose boxes columns from ``depth`` on can come with what is left, (n, bytes)."""
        paid: Bits | None = None
        for suffixes, rest in zip(self._affordable, left, strict=True):
            prices, bits = suffixes[depth]
            here = bits[np.searchsorted(prices, rest, side="right")]
            paid = here if paid is None else paid & here
        assert paid is not None  # noqa: S101 - there always is a budget
        return paid

    def gains(self, forest: Predictor, gains: Callable[[Floats], Floats]) -> LeafGains:
        """Return what the leaves of an ensemble add, where each adds what ``gains`` says of its values."""
        core = forest.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - demands hold such
        place, rounds, trees = self._places[id(forest)]
        added = [gains(np.array([leaf.value for leaf in tree])) for tree in trees]
        byte_gains = []
        for k, count in enumerate(rounds):
            for of_tree in added[:count]:
                eight = of_tree[8 * k : 8 * k + 8]
                byte_gains.append(np.pad(eight, (0, 8 - len(eight)), constant_values=-np.inf))
        table = np.where(_HELD, np.array(byte_gains)[:, None, :], -np.inf).max(axis=2)
        size = sum(float(np.abs(of_tree).max()) for of_tree in added)
        rounding = size * (len(trees) + 10) * float(np.finfo(core.sum_dtype).eps)
        return LeafGains(table, place, rounds, rounding)


def _inside(column: CellColumn, leaves: Sequence[Leaf | None]) -> NDArray[np.bool_]:
    """Return which cells of a column lie in which leaves' boxes, (cells, leaves); none is cut by a box."""
    inside = np.ones((len(column), len(leaves)), dtype=bool)
    for k, leaf in enumerate(leaves):
        if leaf is None:
            continue
        box = leaf.box.get(column.name)
        if isinstance(box, frozenset):
            inside[:, k] = np.isin(column.values, list(box))
        elif box is not None:
            inside[:, k] = (column.values >= box[0]) & (column.values <= box[1])
    return inside


def _suffixes(
    inside: Sequence[NDArray[np.bool_]], exists: NDArray[np.bool_], allowance: Allowance
) -> list[tuple[Floats, Bits]]:
    """Return, per depth, amounts in order and, for what is left between two of them, the leaves that it pays for."""
    total = np.zeros(len(exists))
    by_depth = [_paid(total, exists)]
    for cells, used in zip(reversed(inside), reversed(allowance.used), strict=True):
        least = np.where(cells, used[:, None], np.inf).min(axis=0, initial=np.inf)
        total = allowance.together(total, least)
        by_depth.append(_paid(total, exists))
    return by_depth[::-1]


def _paid(total: Floats, exists: NDArray[np.bool_]) -> tuple[Floats, Bits]:
    amounts = np.unique(total[exists & np.isfinite(total)])
    if len(amounts) > _KINDS:
        amounts = amounts[np.linspace(0, len(amounts) - 1, _KINDS).astype(np.intp)]
    limits = np.append(amounts, np.inf)
    return amounts, _packed(exists & (total < limits[:, None]))


def _packed(flags: NDArray[np.bool_]) -> Bits:
    return np.packbits(flags, axis=1, bitorder="little")


# ---- linear parts ----------------------------------------------------------------------------------------------------
#: Steps of the grid on which the knapsack is solved.
_GRID: Final = 512


@final
class Line:
    r"""A weighted sum of one linear part's matrix columns, over cells each of which has one value.

    .. math::
        \max \Bigl\{ \sum_{j \ge d} g_{j k_j} : \sum_{j \ge d} \lfloor G c_{j k_j} / U \rfloor \le
        \lceil G r / U \rceil \Bigr\}

    bounds what the columns from depth d on add, g the gain and c the price of a cell, r what is left of the budget U,
    G the steps of the grid. At least the truth, as prices are rounded down.

    Parameters
    ----------
    part, weights
        A linear model as read, and the weights of its matrix columns.
    columns
        The columns in the order in which they take their cells.
    budget
        U; where it is no sum, each column may spend all.
    """

    def __init__(self, part: Predictor, weights: Floats, columns: Sequence[CellColumn], budget: Allowance) -> None:
        assert isinstance(part.core, Affine)  # noqa: S101 - demands hold such
        place = {column.name: k for k, column in enumerate(columns)}
        #: What does not move, and what each cell of each column adds.
        self.constant = 0.0
        self.gains: list[Floats] = [np.zeros(len(column)) for column in columns]
        size = 0.0
        for weight, column in zip(weights.tolist(), part.encoding.columns, strict=True):
            if weight == 0.0:
                continue
            if column.feature is None:
                self.constant += weight * column.constant
                size += abs(weight * column.constant)
                continue
            k = place[column.feature]
            if column.table is not None:
                added = weight * np.array(column.table)[columns[k].values.astype(np.intp)]
                size += float(np.abs(added).max())
            else:
                slope, offset = column.affine()
                added = weight * (slope * columns[k].values + offset)
                size += abs(weight) * float(np.abs(slope * columns[k].values).max() + abs(offset))
            self.gains[k] = self.gains[k] + added
        #: By how much the library's own sum may be larger.
        self.rounding = size * max(LINEAR_PART_ROUNDING, (len(weights) + 10) * float(np.finfo(part.core.dtype).eps))
        self._unit = budget.most / _GRID if budget.additive and budget.most > 0.0 else np.inf
        self._most = self._knapsacks(columns)

    def most(self, depth: int, left: Floats) -> Floats:
        """Return what the columns from ``depth`` on add at most with what is left, (n,)."""
        steps = np.ceil(np.clip(left / self._unit, 0.0, _GRID) - NEXT_STEP).astype(np.intp)
        return np.asarray(self._most[depth][steps])

    def _knapsacks(self, columns: Sequence[CellColumn]) -> list[Floats]:
        """Return, per depth, the most that the columns from there on add for each number of steps of the budget.

        The columns are taken from the last to the first. With ``best[r]`` for those behind, a cell that costs s steps
        and adds g leads to ``g + best[r - s]``; of all cells the greatest counts, and of those that cost as many steps
        only the one that adds most has to be tried.
        """
        best = np.zeros(_GRID + 1)
        by_depth = [best]
        for column, gains in zip(reversed(columns), reversed(self.gains), strict=True):
            spent = np.floor(np.minimum(column.prices / self._unit, _GRID) + NEXT_STEP).astype(np.intp)
            most = np.full(_GRID + 1, -np.inf)
            np.maximum.at(most, spent, gains)
            with_column = np.full(_GRID + 1, -np.inf)
            for step in np.flatnonzero(most > -np.inf).tolist():
                with_column[step:] = np.maximum(with_column[step:], best[: len(best) - step] + most[step])
            best = with_column
            by_depth.append(best)
        return by_depth[::-1]


# ---- whole scores ----------------------------------------------------------------------------------------------------
#: Leaves that n boxes still meet, (n, bytes), and what their cells taken add through each line, (n, lines).
Boxes: TypeAlias = tuple[Bits, Floats]


@final
class Ceilings:
    """Bounds of demands over boxes of cells.

    Parameters
    ----------
    alternatives
        The target as demands.
    columns
        The columns in the order in which they take their cells.
    reach
        Values that each column may take.
    allowances
        What there is to go round with, the budget first.
    """

    def __init__(
        self,
        alternatives: Alternatives,
        columns: Sequence[CellColumn],
        reach: Reach,
        allowances: Sequence[Allowance],
    ) -> None:
        self._allowances = allowances
        forests: dict[int, Predictor] = {}
        lines: dict[int, Line] = {}
        for demand in _all_of(alternatives):
            for forest, _ in demand.trees:
                forests[id(forest)] = forest
            for part, weights in demand.lines:
                if id(weights) not in lines:
                    lines[id(weights)] = Line(part, weights, columns, allowances[0])
        self._leaves = Leaves(forests.values(), columns, reach, allowances)
        self._lines = list(lines.values())
        self._test = _Any(alternatives, self._leaves, dict(zip(lines, enumerate(self._lines), strict=True)))

    @property
    def width(self) -> int:
        """Bytes that a box takes."""
        return len(self._leaves.all) + 8 * len(self._lines)

    def start(self) -> Boxes:
        """Return the box in which every column is free."""
        return self._leaves.all[None, :], np.array([[line.constant for line in self._lines]])

    def take(self, boxes: Boxes, column: int, owner: NDArray[np.intp], cell: NDArray[np.intp]) -> Boxes:
        """Return the boxes in which a column takes a cell, each a part of the box ``owner``."""
        bits, sums = boxes
        sums = sums[owner]
        for k, line in enumerate(self._lines):
            sums[:, k] += line.gains[column][cell]
        return bits[owner] & self._leaves.of_cells[column][cell], sums

    def possible(self, boxes: Boxes, depth: int, spent: Sequence[Floats]) -> NDArray[np.bool_]:
        """Return which boxes may meet the demands: their first ``depth`` columns have taken cells and spent so much."""
        left = []
        for allowance, used in zip(self._allowances, spent, strict=True):
            left.append(allowance.left(used) + ALLOWANCE_ROUNDING * allowance.most)
        bits, sums = boxes
        sums = sums.copy()
        for k, line in enumerate(self._lines):
            sums[:, k] += line.most(depth, left[0])
        return self._test(bits & self._leaves.affordable(depth, left), sums)


def _all_of(alternatives: Alternatives) -> Iterator[Demand]:
    """Give all demands, those under which members vote included."""
    for demands in alternatives:
        for demand in demands:
            yield demand
            for _, labels in demand.votes:
                for label in labels:
                    yield from _all_of(label)


@final
class _Any:
    """Whether boxes may meet all of some list of demands."""

    def __init__(self, alternatives: Alternatives, leaves: Leaves, lines: dict[int, tuple[int, Line]]) -> None:
        self._lists: list[list[_Sum]] = []
        for demands in alternatives:
            self._lists.append([_Sum(demand, leaves, lines) for demand in demands])

    def __call__(self, met: Bits, sums: Floats) -> NDArray[np.bool_]:
        any_list = np.zeros(len(met), dtype=bool)
        for demands in self._lists:
            all_demands = np.ones(len(met), dtype=bool)
            for demand in demands:
                all_demands &= demand(met, sums)
            any_list |= all_demands
        return any_list


@final
class _Sum:
    """Whether boxes may meet one demand."""

    def __init__(self, demand: Demand, leaves: Leaves, lines: dict[int, tuple[int, Line]]) -> None:
        self._trees = [leaves.gains(forest, gains) for forest, gains in demand.trees]
        rounding = sum(part.rounding for part in self._trees)
        self._lines: list[int] = []
        for _, weights in demand.lines:
            position, line = lines[id(weights)]
            self._lines.append(position)
            rounding += line.rounding
        self._votes: list[tuple[Floats, list[_Any]]] = []
        for weights, labels in demand.votes:
            self._votes.append((weights, [_Any(label, leaves, lines) for label in labels]))
            rounding += ALLOWANCE_ROUNDING * float(np.abs(weights).max())
        rounding += 1e-12 * (abs(demand.constant) + abs(demand.least))
        self._least = demand.least - demand.constant - rounding

    def __call__(self, met: Bits, sums: Floats) -> NDArray[np.bool_]:
        most = sums[:, self._lines].sum(axis=1)
        for part in self._trees:
            most = most + part.most(met)
        for weights, labels in self._votes:
            may_decide = np.stack([label(met, sums) for label in labels], axis=1)
            most = most + np.where(may_decide, weights, -np.inf).max(axis=1)
        return np.asarray(most >= self._least)
