"""Costs that are norms of the move: the number of changes, l1, l2 and its square, and the largest single move."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.base import COUNT, SCALE, AbstractCost, AbstractSeparable, Count, price_table, slopes_of
from ceopt.solvers.checks import Flag, Floats, check_fields
from ceopt.solvers.cones import soc

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns, Factual
    from ceopt.formulations.space.space import FeatureSpace

# ==== The number of changes ===========================================================================================


@final
@dataclass(frozen=True, slots=True)
class L0(AbstractSeparable):
    r"""Weighted number of changed columns: :math:`\sum_j \omega_j [x_j \ne x^0_j]`.

    Linear in the level and cut binaries; a numeric coordinate adds a binary and two rows with the bounds as big-M.
    """

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return each column's weight for leaving the factual."""
        return {feature.name: (Price("fixed", *feature.weights, max(feature.weights)),) for feature in space}


@final
@dataclass(frozen=True, slots=True)
class Changes(AbstractSeparable):
    """Number of changed features, or of changed encoded columns, in which a category switch counts twice; no weights.

    Parameters
    ----------
    count
        "features" or "columns".
    """

    count: Count = "features"

    def __post_init__(self) -> None:
        check_fields(self, {"count": COUNT})

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return 1 for each column (2 for a category counted by columns)."""
        prices: dict[str, tuple[Price, ...]] = dict.fromkeys(space.names, (Price("fixed", 1.0, 1.0, 1.0),))
        for feature in space:
            if feature.kind == "categorical" and self.count == "columns":
                prices[feature.name] = (Price("fixed", 2.0, 2.0, 2.0),)
        return prices


# ==== The weighted l1 distance ========================================================================================


@final
@dataclass(frozen=True, slots=True)
class L1(AbstractSeparable):
    r"""Weighted l1 distance: :math:`\sum_j \omega_j |x_j - x^0_j| / s_j`, with a weight per direction.

    A changed category moves 1 at scale 1; an ordinal level moves 1 / (levels - 1). Linear.

    Parameters
    ----------
    scale
        "mad" (median absolute deviation, where zero the standard deviation, then the range), "std", "range", "none",
        or a mapping column -> scale.
    count
        "features", or "columns" as one-hot encoding has them: a changed category moves two of them by 1, and counts 2.
    """

    scale: str | Mapping[str, float] = "mad"
    count: Count = "features"

    def __post_init__(self) -> None:
        check_fields(self, {"scale": SCALE, "count": COUNT})

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return weight over scale per column and direction."""
        return slopes_of("L1", "linear", self.scale, space, self.count)


# ==== Euclidean distances =============================================================================================

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
        if self.squared:
            return self
        return NormEpigraph(self)

    def from_objective(self, objective: float) -> float:
        """Return the root of the program's objective, unless the square is wanted."""
        return objective if self.squared else math.sqrt(max(objective, 0.0))

    def size(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the length of what is squared, whether the cost is that length or its square."""
        return math.sqrt(self.to_objective(self.value(space, factual, point)))

    def to_objective(self, cost: float) -> float:
        """Return the square that the program minimises."""
        return cost if self.squared else cost * cost


def norm_above(x: AbstractColumns, lengths: list[Any]) -> Any:
    """Return a variable t, ``distance``, after adding the cone ``within`` that keeps it above the norm of lengths."""
    if x.component("distance") is None:
        x.distance = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeReals)
        x.within = pyo.Constraint(pyo.Any)
    t = x.distance[len(x.distance)]
    x.within[t.index()] = soc(t, lengths) >= 0
    x.follow(t, _norm, lengths)
    return t


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
        return {name: tuple(map(Price.rooted, prices)) for name, prices in self.norm.prices(space).items()}

    def build(self, x: Factual) -> Any:
        """Return the variable t after adding its cone."""
        return self.stated(x, 1.0)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the variable t, in the unit, after adding its cone."""
        return norm_above(x, self.norm.lengths(x, unit))

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
                parts.append(charge.price(Price(kind, price.down / unit, price.up / unit, price.fill / unit)))
        return parts


def _norm(values: list[float]) -> float:
    return math.hypot(*values)


# ==== The largest single move =========================================================================================


def greatest_of(x: AbstractColumns, terms: Mapping[str, Any]) -> Any:
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
        costs = {}
        for name, (price,) in self.prices(x.space).items():
            charge = x.charge(name)
            if not charge.stays:
                costs[name] = charge.price(price)
        return greatest_of(x, costs)
