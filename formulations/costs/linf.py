"""The largest single move as a cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.base import SCALE, AbstractCost, Floats, price_table, slopes_of
from ceopt.solvers.checks import check_fields

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Linf", "greatest_of"]


def greatest_of(x: Factual, terms: Mapping[str, Any]) -> Any:
    """Return a variable t, ``greatest``, after adding the row ``t - term >= 0`` of each column."""
    if x.component("greatest") is None:
        x.greatest = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeReals)
        x.greatest_of = pyo.Constraint(pyo.Any)
    t = x.greatest[len(x.greatest)]
    for name, term in terms.items():
        x.greatest_of[name, t.index()] = t - term >= 0
    x.follow(t, max, [*terms.values(), 0.0])
    return t


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
