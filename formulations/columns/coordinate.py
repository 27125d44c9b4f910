"""Coordinates: the interface of a column to the blocks that use it, and the prices of its moves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.columns.steps import Steps
from ceopt.formulations.linear_form import LinearForm

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["AbstractCharge", "AbstractCoordinate", "Price"]


@final
@dataclass(frozen=True, slots=True)
class Price:
    r"""The cost of one column's move :math:`\delta`, a function of that column alone.

    ========= ==================================================================
    kind      cost
    ========= ==================================================================
    linear    :math:`\text{up} \cdot \max(\delta, 0) + \text{down} \cdot \max(-\delta, 0)`
    length    the same, but in the program a variable that may bear the other sign
    square    the square of ``linear``
    fixed     ``up`` where :math:`\delta > 0`, ``down`` where :math:`\delta < 0`, else 0
    ========= ==================================================================
    """

    kind: Literal["linear", "length", "square", "fixed"]
    down: float
    up: float

    def of(self, move: float) -> float:
        """Return the cost of ``move``, in the column's coordinate."""
        if move == 0.0:
            return 0.0
        slope = self.up if move > 0 else self.down
        if self.kind == "fixed":
            return slope
        linear = slope * abs(move)
        return linear * linear if self.kind == "square" else linear

    def of_many(self, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the costs of many moves."""
        slopes = np.where(moves > 0.0, self.up, self.down)
        if self.kind == "fixed":
            return np.where(moves == 0.0, 0.0, slopes)
        linear: NDArray[np.float64] = slopes * np.abs(moves)
        return linear * linear if self.kind == "square" else linear

    def scaled(self, factor: float) -> Price:
        """Return the price times a factor."""
        slope = math.sqrt(factor) if self.kind == "square" else factor
        return Price(self.kind, self.down * slope, self.up * slope)

    def rooted(self) -> Price:
        """Return the price that is the root of this one, a square or a fixed price."""
        if self.kind == "fixed":
            return Price("fixed", math.sqrt(self.down), math.sqrt(self.up))
        return Price("linear", self.down, self.up)

    def farthest(self, budget: float) -> tuple[float, float]:
        """Return how far (down, up) a move may go that costs at most ``budget``."""
        return self._far(self.down, budget), self._far(self.up, budget)

    def _far(self, slope: float, budget: float) -> float:
        if self.kind == "fixed":
            return math.inf if slope <= budget else 0.0
        length = math.sqrt(max(budget, 0.0)) if self.kind == "square" else budget
        return math.inf if slope == 0.0 else length / slope


class AbstractCharge(ABC):
    """What costs count of one column: the move of its coordinate, or what a rule puts in its place."""

    __slots__ = ()

    @property
    @abstractmethod
    def stays(self) -> bool:
        """Whether nothing can be charged."""

    @abstractmethod
    def price(self, price: Price) -> Any:
        """Return the cost of what is charged, as an expression that later rows keep up to date."""

    @abstractmethod
    def move(self) -> LinearForm:
        """Return the amount that is charged, with its sign, in the coordinate's unit."""


class AbstractCoordinate(AbstractCharge):
    """One column of the counterfactual inside a :class:`~ceopt.formulations.Factual` block.

    Attributes
    ----------
    feature
        The column's description.
    x0
        The factual coordinate: a number in raw units, or a rank among the levels.
    """

    __slots__ = ("_changed", "_prices", "block", "feature", "x0")

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        self.block, self.feature, self.x0 = block, feature, x0
        self._changed: Any = None
        self._prices: list[tuple[Any, Price | Steps]] = []

    @property
    def name(self) -> str:
        """The column's name."""
        return self.feature.name

    @abstractmethod
    def raw(self) -> LinearForm:
        """Return the value in raw units (a rank for levels), creating variables where there are none."""

    @abstractmethod
    def indicator(self, ranks: AbstractSet[int]) -> LinearForm:
        """Return 1 where the column takes one of the levels ``ranks``, else 0."""

    @abstractmethod
    def decode(self) -> float:
        """Return the coordinate that the variables' current values stand for."""

    @abstractmethod
    def place(self, value: float) -> None:
        """Set the variables' values to those of the coordinate ``value``."""

    @abstractmethod
    def differs(self, value: float) -> LinearForm:
        """Return a form that is at least 1 exactly where the column's *decision* is not that of ``value``."""

    @abstractmethod
    def _changed_form(self) -> LinearForm:
        """Return 1 where the column leaves the factual, else 0."""

    @abstractmethod
    def _price_form(self, price: Price) -> Any:
        """Return the cost of the move as an expression."""

    def surely_changed_form(self) -> LinearForm:
        """Return a form that is at least 1 only where the column left the factual; ``changed`` may but permit it."""
        return self._changed_form()

    @property
    def is_point(self) -> bool:
        """Whether actionability leaves one value."""
        return bool(self.block.reach[self.name].is_point)

    @property
    def stays(self) -> bool:
        """Whether actionability leaves nothing but the factual."""
        part = self.block.reach[self.name]
        return self.is_point and (part.ranks[0] if self.feature.is_finite else part.lower) == self.x0

    def move(self) -> LinearForm:
        """Return how far the value is from the factual, in raw units (ranks of levels)."""
        return self.raw() + LinearForm(0.0, ((-1.0, self.block.factual[self.name]),))

    def changed_form(self) -> LinearForm:
        """Return 1 where the column leaves the factual, else 0, as a linear form."""
        return self._changed_form()

    def changed(self) -> Any:
        """Return 1 where the column leaves the factual, else 0, as an expression that later rows keep up to date."""
        if self._changed is None:
            self._changed = self.block.named_expression("is_changed", self.name)
            self._changed.set_value(self._changed_form().expression())
        return self._changed

    def price(self, price: Price | Steps) -> Any:
        """Return the cost of the move, or of the value, as a named expression that later rows keep up to date."""
        expression = self.block.named_expression("price", len(self._prices), self.name)
        self._prices.append((expression, price))
        expression.set_value(self._cost_form(price))
        return expression

    def _cost_form(self, price: Price | Steps) -> Any:
        return price.form(self) if isinstance(price, Steps) else self._price_form(price)

    def refresh(self) -> None:
        """Rewrite what depends on this coordinate's variables after some were added."""
        for expression, price in self._prices:
            expression.set_value(self._cost_form(price))
        if self._changed is not None:
            self._changed.set_value(self._changed_form().expression())
