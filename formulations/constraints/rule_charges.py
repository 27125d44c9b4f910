"""A cost as rules have it: what they charge instead of a move, and what they add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ceopt.formulations.columns import Price
from ceopt.formulations.constraints.rule import (
    adds_to_cost,
    charged_points,
    has_say_in_cost,
    surcharge_of,
    unpriced_columns,
)
from ceopt.formulations.costs.base import AbstractCost, Floats, Sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["RuleCharges", "charged_by"]


def charged_by(cost: AbstractCost, rules: Sequence[AbstractRule], space: FeatureSpace) -> AbstractCost:
    """Return the cost as the rules have it; the cost itself where none of them has a say."""
    charging = tuple(rule for rule in rules if has_say_in_cost(rule, space))
    return RuleCharges(cost, charging) if charging else cost


@final
@dataclass(frozen=True, slots=True)
class RuleCharges(AbstractCost):
    r"""A cost under rules: :math:`\text{cost}(a(x), x^0) + \sum_r \text{penalty}_r(x)`.

    a(x) is what a causal model charges in the place of x, the penalties are those of soft rules. Where there are
    penalties, a distance is stated as itself (see :class:`Sum`), as a square and a penalty do not add up.

    Parameters
    ----------
    cost
        What a change costs.
    rules
        Those that have a say.
    """

    cost: AbstractCost
    rules: tuple[AbstractRule, ...]

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """Whether the objective is at least the sum of the columns' prices."""
        return self._stated.additive

    @property
    def is_joint(self) -> bool:
        """Always: what is charged for a column may depend on others."""
        return True

    @property
    def curved(self) -> bool:  # type: ignore[override]
        """As the cost itself."""
        return self.cost.curved

    @property
    def power(self) -> int:  # type: ignore[override]
        """As the cost is stated."""
        return self._stated.power

    @property
    def _stated(self) -> AbstractCost:
        penalised = any(map(adds_to_cost, self.rules))
        return Sum(((1.0, self.cost),)) if penalised and not isinstance(self.cost, Sum) else self.cost

    def fitted(self, space: FeatureSpace, data: Any) -> AbstractCost:
        """Return the cost with what it takes from data filled in."""
        return RuleCharges(self.cost.fitted(space, data), self.rules)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the cost's own prices, and none for columns that may move as a consequence."""
        free = frozenset[str]().union(*(unpriced_columns(rule, space) for rule in self.rules))
        own = self._stated.prices(space)
        return {name: () if name in free else prices for name, prices in own.items()}

    def build(self, x: Factual) -> Any:
        """Return the cost of what is charged plus the surcharges of the rules that are imposed on the block."""
        return self.stated(x, 1.0)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the same divided by ``unit ** power``."""
        stated = self._stated
        return stated.stated(x, unit) + sum((unit**-stated.power) * extra for extra in x.surcharges)

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the cost of what is charged plus the penalties, in plain Python arithmetic."""
        extra = sum(surcharge_of(rule, space, factual, point) for rule in self.rules)
        return self.cost.value(space, factual, self._charged_point(space, factual, point)) + extra

    def size(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return that of the cost of what is charged: penalties are linear."""
        return self.cost.size(space, factual, self._charged_point(space, factual, point))

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the objective at many points, penalties left out: they are never negative, and slow to find."""
        return self._stated.objectives(space, factual, charged_points(self.rules, space, factual, points))

    def from_objective(self, objective: float) -> float:
        """Return the cost that an objective stands for."""
        return self._stated.from_objective(objective)

    def to_objective(self, cost: float) -> float:
        """Return the objective that a cost stands for."""
        return self._stated.to_objective(cost)

    def _charged_point(
        self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]
    ) -> dict[str, float]:
        row = charged_points(self.rules, space, factual, np.array([[point[name] for name in space.names]]))[0]
        return dict(zip(space.names, row.tolist(), strict=True))
