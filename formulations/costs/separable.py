"""Costs that add up over the columns: number of changes, and weighted l1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.cost import SCALE, AbstractCost, scale_of
from ceopt.solvers.checks import Choice, check_fields

if TYPE_CHECKING:
    from ceopt.formulations.columns.factual import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["L0", "L1", "AbstractSeparable", "Changes", "Count", "slopes_of"]

Count = Literal["features", "columns"]
#: What is counted of a category.
COUNT = Choice(("features", "columns"))


class AbstractSeparable(AbstractCost):
    """A sum of the columns' prices."""

    __slots__ = ()

    def build(self, x: Factual) -> Any:
        """Return the sum over the columns that may move."""
        costs = [
            x.charge(name).price(price)
            for name, prices in self.prices(x.space).items()
            for price in prices
            if max(price.down, price.up) > 0.0 and not x.charge(name).stays
        ]
        return sum(costs) if costs else 0.0


@final
@dataclass(frozen=True, slots=True)
class L0(AbstractSeparable):
    r"""Weighted number of changed columns: :math:`\sum_j \omega_j [x_j \ne x^0_j]`.

    Linear in the level and cut binaries; a numeric coordinate adds a binary and two rows with the bounds as big-M.
    """

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return each column's weight for leaving the factual."""
        return {feature.name: (Price("fixed", *feature.weights),) for feature in space}


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
        double = 2.0 if self.count == "columns" else 1.0
        ones = {f.name: double if f.kind == "categorical" else 1.0 for f in space}
        return {name: (Price("fixed", one, one),) for name, one in ones.items()}


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


def slopes_of(
    who: str,
    kind: Literal["linear", "length", "square"],
    scale: str | Mapping[str, float],
    space: FeatureSpace,
    count: Count = "features",
) -> dict[str, tuple[Price, ...]]:
    """Return weight over scale per column and direction, as prices of a kind; twice a category's counted by columns."""
    scales = scale_of(who, scale, space)
    twice = 2.0 if kind == "linear" else math.sqrt(2.0)  # two squares of 1, whose root is taken of lengths
    prices: dict[str, tuple[Price, ...]] = {}
    for feature in space:
        columns = twice if count == "columns" and feature.kind == "categorical" else 1.0
        (down, up), unit = feature.weights, scales[feature.name] / columns
        prices[feature.name] = (Price(kind, down / unit, up / unit),)
    return prices
