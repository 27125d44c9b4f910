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

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.diverse.exhaustive_search.leaves import Bits, Leaves
from ceopt.diverse.exhaustive_search.linear_part import Line
from ceopt.diverse.exhaustive_search.score_requirements import Alternatives, Demand
from ceopt.tolerances import ALLOWANCE_ROUNDING

if TYPE_CHECKING:
    from ceopt.diverse.exhaustive_search.cells import Allowance, CellColumn
    from ceopt.formulations.space.reachable import Reach

__all__ = ["Boxes", "Ceilings"]

Floats: TypeAlias = NDArray[np.float64]
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
        demands = list(_all_of(alternatives))
        forests = {id(forest): forest for demand in demands for forest, _ in demand.trees}
        self._leaves = Leaves(forests.values(), columns, reach, allowances)
        lines = {id(weights): (part, weights) for demand in demands for part, weights in demand.lines}
        self._lines = [Line(part, w, columns, allowances[0]) for part, w in lines.values()]
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
        left = [a.left(used) + ALLOWANCE_ROUNDING * a.most for a, used in zip(self._allowances, spent, strict=True)]
        bits, sums = boxes
        sums = sums.copy()
        for k, line in enumerate(self._lines):
            sums[:, k] += line.most(depth, left[0])
        return self._test(bits & self._leaves.affordable(depth, left), sums)


def _all_of(alternatives: Alternatives) -> Iterator[Demand]:
    for demand in (demand for demands in alternatives for demand in demands):
        yield demand
        for _, labels in demand.votes:
            for label in labels:
                yield from _all_of(label)


@final
class _Any:
    """Whether boxes may meet all of some list of demands."""

    def __init__(self, alternatives: Alternatives, leaves: Leaves, lines: dict[int, tuple[int, Line]]) -> None:
        self._lists = [[_Sum(demand, leaves, lines) for demand in demands] for demands in alternatives]

    def __call__(self, met: Bits, sums: Floats) -> NDArray[np.bool_]:
        found = np.zeros(len(met), dtype=bool)
        for demands in self._lists:
            here = np.ones(len(met), dtype=bool)
            for demand in demands:
                here &= demand(met, sums)
            found |= here
        return found


@final
class _Sum:
    """Whether boxes may meet one demand."""

    def __init__(self, demand: Demand, leaves: Leaves, lines: dict[int, tuple[int, Line]]) -> None:
        self._trees = [leaves.gains(forest, gains) for forest, gains in demand.trees]
        held = [lines[id(weights)] for _, weights in demand.lines]
        self._lines = [place for place, _ in held]
        self._votes = [(weights, [_Any(label, leaves, lines) for label in labels]) for weights, labels in demand.votes]
        rounding = sum(part.rounding for part in self._trees) + sum(line.rounding for _, line in held)
        rounding += ALLOWANCE_ROUNDING * sum(float(np.abs(weights).max()) for weights, _ in self._votes)
        rounding += 1e-12 * (abs(demand.constant) + abs(demand.least))
        self._least = demand.least - demand.constant - rounding

    def __call__(self, met: Bits, sums: Floats) -> NDArray[np.bool_]:
        most = sums[:, self._lines].sum(axis=1)
        for part in self._trees:
            most = most + part.most(met)
        for weights, labels in self._votes:
            said = np.stack([label(met, sums) for label in labels], axis=1)
            most = most + np.where(said, weights, -np.inf).max(axis=1)
        return np.asarray(most >= self._least)
