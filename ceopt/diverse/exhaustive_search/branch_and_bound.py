"""Every cell within a budget that can meet the demands, by branch and bound: what it leaves out is proved away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.diverse.exhaustive_search.score_bounds import Boxes, Ceilings

if TYPE_CHECKING:
    from ceopt.diverse.exhaustive_search.cells import Allowance, CellColumn

__all__ = ["Cells", "Walk"]

Floats: TypeAlias = NDArray[np.float64]
#: Positions of cells, one per column, (n, columns).
Cells: TypeAlias = NDArray[np.intp]

#: Bytes of boxes that are opened at once: what a core's cache holds some times over.
_AT_ONCE: Final = 1 << 22


@final
class Walk:
    r"""A walk over all boxes of cells, depth first, that closes a box when no point in it can be an answer.

    One column after the other takes one of its cells. A box is closed where the prices taken exceed the budget, or the
    changes what a rule allows, or where :class:`Ceilings` shows that the target is out of reach with what is left. All
    these bounds are valid, so every cell that is not handed out is proved to hold no answer within the budget: the walk
    is the proof. No program is solved.

    Parameters
    ----------
    columns
        The columns in the order in which they take their cells.
    ceilings
        Bounds over the same columns.
    allowances
        What there is to go round with, the budget first.

    Attributes
    ----------
    budget
        The most that a point may cost, an objective value; may be lowered on the way.
    boxes
        How many were looked at so far.
    """

    def __init__(self, columns: Sequence[CellColumn], ceilings: Ceilings, allowances: Sequence[Allowance]) -> None:
        self._columns, self._ceilings, self._allowances = columns, ceilings, allowances
        self.budget = allowances[0].most
        self.boxes = 0

    def run(self) -> Iterator[Cells]:
        """Yield the cells that may hold answers, many at once; some may be empty, so that a clock can be looked at."""
        ceilings, d = self._ceilings, len(self._columns)
        waiting = [_Open(np.zeros((1, 0), dtype=np.intp), [np.zeros(1) for _ in self._allowances], ceilings.start())]
        pairs = max(1, _AT_ONCE // (ceilings.width + 8 * d + 8))
        while waiting:
            here = waiting.pop()
            depth = here.chosen.shape[1]
            if depth == d:
                yield here.chosen[here.spent[0] <= self.budget]
                continue
            count = self._count(depth, here.spent[0])
            some = max(1, int(np.searchsorted(np.cumsum(count), pairs, side="right")))
            if some < len(count):
                waiting.append(here.only(slice(some, None)))
                here, count = here.only(slice(some)), count[:some]
            self.boxes += int(count.sum())
            waiting += self._opened(here, depth, count)
            yield np.zeros((0, d), dtype=np.intp)

    def _opened(self, here: _Open, depth: int, count: NDArray[np.intp]) -> list[_Open]:
        """Let the next column take its cells, the first few in order of their prices; return what stays open."""
        owner = np.repeat(np.arange(len(count)), count)
        cell = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        spent = [
            allowance.together(used[owner], allowance.used[depth][cell])
            for allowance, used in zip(self._allowances, here.spent, strict=True)
        ]
        allowed = np.ones(len(owner), dtype=bool)
        for allowance, used in zip(self._allowances[1:], spent[1:], strict=True):
            allowed &= used <= allowance.most
        owner, cell, spent = owner[allowed], cell[allowed], [used[allowed] for used in spent]
        boxes = self._ceilings.take(here.boxes, depth, owner, cell)
        open_ = self._ceilings.possible(boxes, depth + 1, spent)
        chosen = np.concatenate([here.chosen[owner], cell[:, None]], axis=1)
        return [_Open(chosen, spent, boxes).only(open_)] if open_.any() else []

    def _count(self, depth: int, spent: Floats) -> NDArray[np.intp]:
        """Return how many cells of the next column each box can pay for."""
        left = self.budget - spent if self._allowances[0].additive else np.full(len(spent), self.budget)
        return np.searchsorted(self._columns[depth].prices, left, side="right")


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    """Boxes whose first few columns have taken cells, what they have spent of each allowance, and their bounds."""

    chosen: Cells
    spent: list[Floats]
    boxes: Boxes

    def only(self, kept: Any) -> _Open:
        """Return some of the boxes."""
        bits, sums = self.boxes
        return _Open(self.chosen[kept], [used[kept] for used in self.spent], (bits[kept], sums[kept]))
