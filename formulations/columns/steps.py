"""The cost of where a column ends, as a staircase that rises away from the factual on either side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.linear_form import LinearForm

if TYPE_CHECKING:
    from ceopt.formulations.columns.numeric_view import AnyNumber

__all__ = ["Steps"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    r"""A cost that is constant between jumps and never falls away from the factual.

    .. math:: c(x) = c_0 + \sum_k (c_k - c_{k-1})\, y_k

    over the cells that the jumps cut a number into. A number without a coordinate needs no further cut: the value of a
    cell nearest to the factual is its cheapest. Nor is there a cut in gaps that rules have closed so far: while they
    hold, nothing is there. Levels have a cost each.

    Parameters
    ----------
    cost
        Coordinates (m,) -> costs (m,).
    jumps
        Coordinates at which the cost takes its next value, ascending.
    """

    cost: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    jumps: NDArray[np.float64]

    def form(self, at: Any) -> Any:
        """Return the cost at a column's coordinate, as an expression."""
        if at.feature.is_finite:
            ranks = at.block.reach[at.name].ranks
            costs = dict(zip(ranks, self.cost(np.array(ranks, dtype=np.float64)).tolist(), strict=True))
            return at.tabulate(costs).expression()
        return self._of_number(at).expression()

    def _of_number(self, at: AnyNumber) -> LinearForm:
        if at.is_point:
            return LinearForm(float(self.cost(np.array([at.interval.lower]))[0]))
        if at.variable is not None:
            at.add_cuts(self._cuts(at), priced=True)
        nearest = [at.nearest(low, high) for low, high in at.cells.bounds()]
        return at.cells.telescope(self.cost(np.array(nearest)).tolist())

    def _cuts(self, at: AnyNumber) -> list[tuple[float, float]]:
        inside = self.jumps[(self.jumps > at.interval.lower) & (self.jumps <= at.interval.upper)]
        closed = np.zeros(len(inside), dtype=bool)
        for left, right, block in at.gaps:  # its ends are cut off already, and it costs no one anything
            if block.active:
                closed[np.searchsorted(inside, left, "right") : np.searchsorted(inside, right, "right")] = True
        inside = inside[~closed]
        pairs = (at.interval.sides(math.nextafter(jump, -math.inf), jump) for jump in inside.tolist())
        return [(left, right) for left, right in pairs if math.isfinite(left) and math.isfinite(right)]
