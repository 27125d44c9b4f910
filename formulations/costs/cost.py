"""What a change costs: a cost is stated once and used three ways, in the program, in numpy, and as a bound on moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ceopt.formulations.coordinates import Price
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from ceopt.formulations.factual import Factual
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["AbstractCost", "Sum", "move_of", "scale_of"]

_SCALES = ("mad", "std", "range", "none")


def move_of(feature: Feature, x0: float, x: float) -> float:
    """Return the move between two coordinates: their difference, or 1 where a category changed."""
    if feature.kind == "categorical":
        return 1.0 if x != x0 else 0.0
    return x - x0


def check_scale(who: str, scale: Any) -> None:
    """Refuse a scale that is neither a known name nor a mapping of positive numbers."""
    if isinstance(scale, Mapping):
        for name, value in scale.items():
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not number or not 0.0 < value < float("inf"):
                raise InvalidValueError(
                    who, "positive scales", f"scale[{name!r}] is {value!r}", "Give a positive number per column."
                )
    elif scale not in _SCALES:
        raise UnknownNameError.among(who, "scale", scale, _SCALES)


def scale_of(who: str, scale: str | Mapping[str, float], space: FeatureSpace) -> dict[str, float]:
    """Return the scale of each column: by name of a statistic, or as given (levels may be left out of a mapping)."""
    if not isinstance(scale, Mapping):
        return {feature.name: float(feature.scale(scale)) for feature in space}  # type: ignore[arg-type]
    for name in scale:
        if name not in space:
            raise UnknownNameError.among(who, "column", name, space.names)
    result = {}
    for feature in space:
        if feature.name not in scale and not feature.is_finite:
            raise InvalidValueError(
                who, "a scale for every numeric column", f"column {feature.name!r} has none", "Add it to the mapping."
            )
        result[feature.name] = float(scale.get(feature.name, feature.scale("none")))
    return result


class AbstractCost(ABC):
    """A cost of leaving the factual; costs add and scale: ``L1() + 0.1 * Changes()``."""

    __slots__ = ()

    #: Whether the cost is a sum over columns (else only bounded below by each column's own cost).
    additive = True

    @abstractmethod
    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the price of each column's move; their sum is the cost of a change in that column alone."""

    @abstractmethod
    def build(self, x: Factual) -> Any:
        """Return the objective as a Pyomo expression over a person's block, adding variables there where needed."""

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the cost of ``point``, both given in coordinates, in plain Python arithmetic."""
        return self.cost_of(self.column_costs(space, factual, point).values())

    def column_costs(
        self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the cost that each column's move has by itself."""
        moves = {f.name: move_of(f, factual[f.name], point[f.name]) for f in space}
        return {name: sum(p.of(moves[name]) for p in prices) for name, prices in self.prices(space).items()}

    def cost_of(self, column_costs: Any) -> float:
        """Return the cost from the columns' own ones: their sum."""
        return float(sum(column_costs))

    def from_objective(self, objective: float) -> float:
        """Return the cost that an objective value of the program stands for."""
        return objective

    def to_objective(self, cost: float) -> float:
        """Return the objective value that a cost stands for."""
        return cost

    def __add__(self, other: AbstractCost) -> Sum:
        if not isinstance(other, AbstractCost):
            return NotImplemented
        return Sum((*_terms(self), *_terms(other)))

    def __mul__(self, factor: float) -> Sum:
        if isinstance(factor, bool) or not isinstance(factor, int | float | np.number):
            return NotImplemented
        if not 0.0 <= factor < float("inf"):
            raise InvalidValueError(
                "cost", "a factor of at least 0", f"the factor is {factor!r}", "Scale by a number >= 0."
            )
        return Sum(tuple((float(factor) * own, cost) for own, cost in _terms(self)))

    __rmul__ = __mul__

    def __radd__(self, other: object) -> AbstractCost:
        # sum([L1(), Changes()]) begins at 0.
        return self if other == 0 else NotImplemented


@final
@dataclass(frozen=True, slots=True)
class Sum(AbstractCost):
    """A weighted sum of costs.

    Raises
    ------
    InvalidTypeError
        A part is a distance whose program minimises another quantity (l2 by way of its square), so it cannot be added.
    """

    terms: tuple[tuple[float, AbstractCost], ...]

    def __post_init__(self) -> None:
        for _, cost in self.terms:
            if cost.to_objective(4.0) != 4.0:
                raise InvalidTypeError(
                    "A sum of costs",
                    "parts that the program can add",
                    f"one is {cost!r}, which is minimised by way of its square",
                    "Add L2(squared=True) instead.",
                )

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """Whether every part is a sum over columns."""
        return all(cost.additive for _, cost in self.terms)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the parts' prices together, each times its factor."""
        together: dict[str, tuple[Price, ...]] = {feature.name: () for feature in space}
        for factor, cost in self.terms:
            for name, prices in cost.prices(space).items():
                together[name] += tuple(_scaled(price, factor) for price in prices)
        return together

    def build(self, x: Factual) -> Any:
        """Return the weighted sum of the parts' expressions."""
        return sum(factor * cost.build(x) for factor, cost in self.terms)

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the weighted sum of the parts' values."""
        return float(sum(factor * cost.value(space, factual, point) for factor, cost in self.terms))


def _terms(cost: AbstractCost) -> tuple[tuple[float, AbstractCost], ...]:
    return cost.terms if isinstance(cost, Sum) else ((1.0, cost),)


def _scaled(price: Price, factor: float) -> Price:
    root = factor**0.5 if price.kind == "square" else factor
    return Price(price.kind, price.down * root, price.up * root)
