"""Coordinates: one column of the counterfactual as the blocks of models, rules and costs see it, and its prices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.linear_form import LinearForm

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["AbstractCharge", "AbstractCoordinate", "Price", "Steps"]


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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    r"""The cost of where a column ends: constant between jumps, and never falling away from the factual.

    .. math:: c(x) = c_0 + \sum_k (c_k - c_{k-1})\, y_k

    over the cells that the jumps cut a number into; levels have a cost each.

    Parameters
    ----------
    cost
        Coordinates (m,) -> costs (m,).
    jumps
        Coordinates at which the cost takes its next value, ascending.
    """

    cost: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    jumps: NDArray[np.float64]

    def of(self, values: Iterable[float]) -> list[float]:
        """Return the costs of some coordinates."""
        costs: list[float] = self.cost(np.array(list(values), dtype=np.float64)).tolist()
        return costs


class AbstractCharge(ABC):
    """What costs count of one column: the move of its coordinate, or what a rule puts in its place."""

    __slots__ = ()

    @property
    @abstractmethod
    def stays(self) -> bool:
        """Whether nothing can be charged."""

    @abstractmethod
    def price(self, price: Price) -> Any:
        """Return the cost of what is charged, as an expression that holds whatever is asked of the column later."""

    @abstractmethod
    def move(self) -> LinearForm:
        """Return the amount that is charged, with its sign, in the coordinate's unit."""


class AbstractCoordinate(AbstractCharge):
    """One column of the counterfactual inside a :class:`~ceopt.formulations.Factual` block.

    Models, rules and costs ask it for forms and expressions. A variable is made when it is first asked for. Rows and
    the content of expressions follow from all that was asked: the block has them written (:meth:`write`) once nobody
    is building any more, and once more if somebody asks for something new later.

    Attributes
    ----------
    feature
        The column's description.
    x0
        The factual coordinate: a number in raw units, or a rank among the levels.
    """

    __slots__ = ("_changed", "_costs", "block", "feature", "x0")

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        self.block, self.feature, self.x0 = block, feature, x0
        self._changed: Any = None
        self._costs: list[tuple[Any, Price | Steps]] = []

    @property
    def name(self) -> str:
        """The column's name."""
        return self.feature.name

    # ---- comparisons: 1 where they hold, else 0 ----------------------------------------------------------------------
    @abstractmethod
    def indicator(self, ranks: AbstractSet[int]) -> LinearForm:
        """Return 1 where the column takes one of the levels ``ranks``, else 0."""

    @abstractmethod
    def at_most(self, value: float) -> LinearForm:
        """Return 1 where the coordinate is at most a value (a rank of levels), else 0."""

    @abstractmethod
    def at_least(self, value: float) -> LinearForm:
        """Return 1 where the coordinate is at least a value (a rank of levels), else 0."""

    @abstractmethod
    def equals(self, value: float) -> LinearForm:
        """Return 1 where the coordinate is a value (a rank of levels), else 0."""

    @abstractmethod
    def one_of(self, values: Iterable[float]) -> LinearForm:
        """Return 1 where the coordinate is one of some values (ranks of levels), else 0."""

    @abstractmethod
    def differs(self, value: float) -> LinearForm:
        """Return a form that is at least 1 exactly where the column's *decision* is not that of ``value``."""

    # ---- values and moves --------------------------------------------------------------------------------------------
    @abstractmethod
    def raw(self) -> LinearForm:
        """Return the value in raw units (a rank for levels), creating variables where there are none."""

    @abstractmethod
    def decode(self) -> float:
        """Return the coordinate that the variables' current values stand for."""

    @abstractmethod
    def place(self, value: float) -> None:
        """Set the variables' values to those of the coordinate ``value``."""

    @property
    def is_point(self) -> bool:
        """Whether actionability leaves one value."""
        return bool(self.block.reach[self.name].is_point)

    @property
    def stays(self) -> bool:
        """Whether actionability leaves nothing but the factual."""
        part = self.block.reach[self.name]
        if not part.is_point:
            return False
        only = part.ranks[0] if self.feature.is_finite else part.lower
        return bool(only == self.x0)

    def move(self) -> LinearForm:
        """Return how far the value is from the factual, in raw units (ranks of levels)."""
        return self.raw() + LinearForm(0.0, ((-1.0, self.block.factual[self.name]),))

    # ---- changes and costs -------------------------------------------------------------------------------------------
    @abstractmethod
    def changed_form(self) -> LinearForm:
        """Return 1 where the column leaves the factual, else 0, by what is asked of the column so far."""

    def surely_changed_form(self) -> LinearForm:
        """Return a form that is at least 1 only where the column left the factual; ``changed`` may but permit it."""
        return self.changed_form()

    @abstractmethod
    def cost_form(self, price: Price | Steps) -> Any:
        """Return the cost of the move, or of the value, as an expression, by what is asked of the column so far."""

    def changed(self) -> Any:
        """Return 1 where the column leaves the factual, else 0, as an expression that holds whatever is asked later."""
        if self._changed is None:
            self._changed = self.block.new_expression("is_changed", self.name)
            self.block.write_soon(self)
        return self._changed

    def price(self, price: Price | Steps) -> Any:
        """Return the cost of the move, or of the value, as an expression that holds whatever is asked later."""
        expression = self.block.new_expression("price", self.name, len(self._costs))
        self._costs.append((expression, price))
        self.block.write_soon(self)
        return expression

    def write(self) -> None:
        """Write the content of the expressions, and the rows, from all that was asked of the column."""
        for expression, price in self._costs:
            expression.set_value(self.cost_form(price))
        if self._changed is not None:
            self._changed.set_value(self.changed_form().expression())
