"""The largest single move as a cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo

from ceopt.formulations.coordinates import Price
from ceopt.formulations.costs.cost import AbstractCost, check_scale
from ceopt.formulations.costs.separable import L1

if TYPE_CHECKING:
    from ceopt.formulations.factual import Factual
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
        check_scale("Linf", self.scale)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return weight over scale per column and direction."""
        return L1(scale=self.scale).prices(space)

    def cost_of(self, column_costs: Iterable[float]) -> float:
        """Return the largest of the columns' own costs."""
        return max(column_costs, default=0.0)

    def build(self, x: Factual) -> Any:
        """Return the variable t after adding its rows."""
        if x.component("greatest") is None:
            x.greatest = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeReals)
            x.greatest_of = pyo.Constraint(pyo.Any)
        t = x.greatest[len(x.greatest)]
        for name, (price,) in self.prices(x.space).items():
            coordinate = x.coordinate(name)
            if not coordinate.stays:
                x.greatest_of[name, t.index()] = t - coordinate.price(price) >= 0
        return t
