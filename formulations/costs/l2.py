"""Euclidean distances: minimised by way of their square, and as a second-order cone where they are added to others."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.base import COUNT, SCALE, AbstractCost, Count, Floats, slopes_of
from ceopt.solvers.checks import Flag, check_fields
from ceopt.solvers.cones import soc

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["L2", "AbstractNorm", "Kind", "NormEpigraph"]

Kind = Literal["linear", "length", "square"]


class AbstractNorm(AbstractCost):
    """The norm of a few lengths; its program minimises the square, which has the same minimisers."""

    __slots__ = ()

    squared: bool

    curved = True
    power = 2

    @abstractmethod
    def lengths(self, x: Factual, unit: float) -> list[Any]:
        """Return affine expressions whose norm is the distance in a unit, after adding what they need."""

    def build(self, x: Factual) -> Any:
        """Return the square of the distance."""
        return self.stated(x, 1.0)

    def addend(self) -> AbstractCost:
        """Return the distance as a sum states it: the square itself, or a cone."""
        return self if self.squared else NormEpigraph(self)

    def from_objective(self, objective: float) -> float:
        """Return the root of the program's objective, unless the square is wanted."""
        return objective if self.squared else math.sqrt(max(objective, 0.0))

    def size(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the length of what is squared, whether the cost is that length or its square."""
        return math.sqrt(self.to_objective(self.value(space, factual, point)))

    def to_objective(self, cost: float) -> float:
        """Return the square that the program minimises."""
        return cost if self.squared else cost * cost


@final
@dataclass(frozen=True, slots=True)
class NormEpigraph(AbstractCost):
    r"""A distance itself, where its own program would minimise the square: :math:`t \ge \lVert v \rVert`.

    Adds one variable, ``distance``, and one second-order cone, ``within``.
    """

    norm: AbstractNorm
    additive = False
    curved = True

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the roots of what each column's move adds to the square at least."""
        squares = self.norm.prices(space).items()
        return {name: tuple(price.rooted() for price in prices) for name, prices in squares}

    def build(self, x: Factual) -> Any:
        """Return the variable t after adding its cone."""
        return self.stated(x, 1.0)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the variable t, in the unit, after adding its cone."""
        lengths = self.norm.lengths(x, unit)
        if x.component("distance") is None:
            x.distance = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeReals)
            x.within = pyo.Constraint(pyo.Any)
        t = x.distance[len(x.distance)]
        x.within[t.index()] = soc(t, lengths) >= 0
        x.follow(t, _norm, lengths)
        return t

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the distance."""
        return self.norm.value(space, factual, point)

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the distances."""
        return np.sqrt(self.norm.objectives(space, factual, points))


@final
@dataclass(frozen=True, slots=True)
class L2(AbstractNorm):
    r"""Weighted l2 distance :math:`\sqrt{\sum_j (\omega_j |x_j - x^0_j| / s_j)^2}`, or its square.

    The program minimises the square; the root is taken of the result and of its bound. Linear in the cuts and levels
    where no coordinate is needed; else a convex quadratic objective. In a sum, the distance itself as a cone.

    Parameters
    ----------
    scale
        As for :class:`L1`.
    squared
        Report, or add, the square itself.
    count
        "features", or "columns" as one-hot encoding has them: a changed category moves two of them by 1, and adds 2 to
        the square.
    """

    scale: str | Mapping[str, float] = "mad"
    squared: bool = False
    count: Count = "features"

    def __post_init__(self) -> None:
        check_fields(self, {"scale": SCALE, "count": COUNT, "squared": Flag()})

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return weight over scale per column and direction, as prices that square the move."""
        return slopes_of("L2", "square", self.scale, space, self.count)

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the distance, or its square."""
        return self.from_objective(sum(self.column_costs(space, factual, point).values()))

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the sum of squares over the columns that may move."""
        return sum(self._parts(x, "square", unit))

    def lengths(self, x: Factual, unit: float) -> list[Any]:
        """Return the length of each column's move."""
        return self._parts(x, "length", unit)

    def _parts(self, x: Factual, kind: Kind, unit: float) -> list[Any]:
        prices = slopes_of("L2", kind, self.scale, x.space, self.count)
        parts = []
        for name, (price,) in prices.items():
            charge = x.charge(name)
            if max(price.down, price.up) > 0.0 and not charge.stays:
                parts.append(charge.price(Price(kind, price.down / unit, price.up / unit)))
        return parts


def _norm(values: list[float]) -> float:
    return math.hypot(*values)
