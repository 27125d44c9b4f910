"""The largest single move as a cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.cost import SCALE, AbstractCost, Floats, price_table
from ceopt.formulations.costs.greatest import greatest_of
from ceopt.formulations.costs.separable import slopes_of
from ceopt.solvers.checks import check_fields

if TYPE_CHECKING:
    from ceopt.formulations.columns.factual import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Linf"]


@final
@dataclass(frozen=True, slots=True)
class Linf(AbstractCost):
    r"""Weighted l-infinity distance: :math:`\min t` with :math:`t \ge \omega_j |x_j - x^0_j| / s_j` for every column.

    Adds one variable ``greatest`` and a row per column that may move. Linear.

    Parameters
    ----------
    scale
        As for :class:`L1`.
    """

    scale: str | Mapping[str, float] = "mad"
    additive = False

    def __post_init__(self) -> None:
        check_fields(self, {"scale": SCALE})

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return weight over scale per column and direction."""
        return slopes_of("Linf", "linear", self.scale, space)

    def cost_of(self, column_costs: Iterable[float]) -> float:
        """Return the largest of the columns' own costs."""
        return max(column_costs, default=0.0)

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the largest price of each point."""
        return np.asarray(price_table(self.prices(space), space, factual, points).max(axis=1, initial=0.0))

    def build(self, x: Factual) -> Any:
        """Return the variable t after adding its rows."""
        charges = {name: (x.charge(name), price) for name, (price,) in self.prices(x.space).items()}
        return greatest_of(x, {name: c.price(price) for name, (c, price) in charges.items() if not c.stays})
