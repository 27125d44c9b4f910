"""Coordinates: a column of the counterfactual as models, rules and costs see it, its prices, and columns of levels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.linear_form import LinearForm, Rows, sum_form
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import labels_in_reach
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature


def no_amount(who: str, feature: Feature, label: float, then: str = "") -> InvalidValueError:
    """Return the refusal, in the name of ``who``, of a column that may hold a label in place of an amount."""
    what = "be missing"
    if label != MISSING:
        what = f"hold the code {feature.from_coordinate(label)!r}"
    but = f"column {feature.name!r} may {what} for this person"
    then = then or "Fill it in for such people, or leave the column out."
    return InvalidValueError(who, "columns that hold amounts", but, then)


# ---- what a move costs -----------------------------------------------------------------------------------------------
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

    Between an amount and what is none, a missing cell or a code, the move is ``fill`` wherever it lands.
    """

    kind: Literal["linear", "length", "square", "fixed"]
    down: float
    up: float
    fill: float = 0.0

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

    @property
    def of_fill(self) -> float:
        """The cost of filling in a missing cell or a code, and of an amount that goes."""
        return self.fill * self.fill if self.kind == "square" else self.fill

    def scaled(self, factor: float) -> Price:
        """Return the price times a factor."""
        if self.kind == "square":
            factor = math.sqrt(factor)
        return Price(self.kind, self.down * factor, self.up * factor, self.fill * factor)

    def rooted(self) -> Price:
        """Return the price that is the root of this one, a square or a fixed price."""
        if self.kind == "fixed":
            return Price("fixed", math.sqrt(self.down), math.sqrt(self.up), math.sqrt(self.fill))
        return Price("linear", self.down, self.up, self.fill)

    def farthest(self, budget: float) -> tuple[float, float]:
        """Return how far (down, up) a move may go that costs at most ``budget``."""
        return self._far(self.down, budget), self._far(self.up, budget)

    def _far(self, slope: float, budget: float) -> float:
        if self.kind == "fixed":
            return math.inf if slope <= budget else 0.0
        if self.kind == "square":
            budget = math.sqrt(max(budget, 0.0))
        return math.inf if slope == 0.0 else budget / slope


@final
@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    r"""The cost of where a column ends: constant between jumps, and never cheaper farther from the factual.

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


# ---- coordinates -----------------------------------------------------------------------------------------------------
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


@final
class Free(AbstractCharge):
    """A column whose move costs nothing: it goes with another's, which is charged for both."""

    __slots__ = ()

    @property
    def stays(self) -> bool:
        """Always: nothing is charged."""
        return True

    def price(self, price: Price) -> Any:
        """Return 0."""
        del price
        return 0.0

    def move(self) -> LinearForm:
        """Return 0."""
        return LinearForm()


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

    @property
    def unit(self) -> float:
        """Raw units in one unit of the variables; 1 of ranks."""
        return 1.0

    # ---- labels: codes and the missing cell, which are no amounts ----------------------------------------------------
    @property
    def labels(self) -> tuple[float, ...]:
        """Coordinates of codes and of the missing cell that the column may take beside its amounts."""
        return tuple(self.block.reach[self.name].labels)

    @abstractmethod
    def label_form(self, value: float) -> LinearForm:
        """Return 1 where the column takes a label, the coordinate of a code or of the missing cell, else 0."""

    @property
    @abstractmethod
    def on_label(self) -> LinearForm:
        """1 where the column takes some label, else 0."""

    @property
    def labels_here(self) -> tuple[float, ...]:
        """All labels that the column may hold here, the person's own first, whether or not it may leave that."""
        return labels_in_reach(self.feature, self.x0, self.block.reach[self.name])

    @property
    def is_filled_in(self) -> bool:
        """Whether the factual is a label, so that any amount is filled in and has moved from nowhere."""
        return self.feature.is_label(self.x0)

    @abstractmethod
    def amount(self) -> LinearForm:
        """Return the value as :meth:`raw` does, where the column may also take a label: then some amount in reach."""

    def require_amount(self, who: str, then: str = "") -> None:
        """Refuse, in the name of ``who``, a column that may hold no amount, naming it."""
        for label in self.labels_here:
            raise no_amount(who, self.feature, label, then)

    # ---- comparisons: 1 where they hold, else 0; they do not hold for labels -----------------------------------------
    @abstractmethod
    def indicator(self, ranks: AbstractSet[float]) -> LinearForm:
        """Return 1 where the column takes one of the levels ``ranks``, else 0."""

    @abstractmethod
    def at_most(self, value: float) -> LinearForm:
        """Return 1 where the coordinate is at most a value (a rank of levels), else 0."""

    @abstractmethod
    def at_least(self, value: float) -> LinearForm:
        """Return 1 where the coordinate is at least a value (a rank of levels), else 0."""

    @abstractmethod
    def above(self, value: float) -> LinearForm:
        """Return 1 where the coordinate is greater than a value (a rank of levels), else 0."""

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

    def cell_here(self) -> tuple[float, float]:
        """Return the least and the greatest coordinate that the integer decisions leave; of levels the one taken."""
        value = self.decode()
        return value, value

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
        return bool(part.is_point and part.only == self.x0)

    @abstractmethod
    def move_to(self, value: float) -> float:
        """Return how far an amount is from a factual amount, in raw units; of levels in ranks, or 1 of another one."""

    def cost_at(self, price: Price, value: float) -> float:
        """Return the cost of one value: that of its move, or of a fill where it or the factual is a label."""
        if value == self.x0:
            return 0.0
        if self.is_filled_in or self.feature.is_label(value):
            return price.of_fill
        return price.of(self.move_to(value))

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


# ---- columns of levels as binaries: ordered ones between neighbouring levels, or one for each unordered level --------
class AbstractLevels(AbstractCoordinate):
    """A column of levels, whose binaries and rows are known from its reach alone.

    Attributes
    ----------
    ranks
        Positions among the column's levels that are in reach, ascending.
    values
        The coordinates in reach: the ranks, and that of the missing cell.
    """

    __slots__ = ("_equals", "ranks", "values")

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        self.ranks: tuple[int, ...] = block.reach[feature.name].ranks
        self.values: tuple[float, ...] = block.reach[feature.name].values
        #: What ``equals`` has returned: every model over the block asks for the same.
        self._equals: dict[float, LinearForm] = {}

    @abstractmethod
    def tabulate(self, values: dict[float, float]) -> LinearForm:
        """Return ``values[coordinate]`` of what is taken, of an entry for each value in reach."""

    def label_form(self, value: float) -> LinearForm:
        """Return 1 where the column takes a label, else 0."""
        return self.equals(value)

    @property
    def on_label(self) -> LinearForm:
        """1 where the column takes some label, else 0."""
        return self.indicator(set(self.labels_here))

    def amount(self) -> LinearForm:
        """Return the rank, and that of the factual, or 0, where the column takes a label."""
        home = 0.0 if self.is_filled_in else self.x0
        return self.tabulate({value: home if self.feature.is_label(value) else value for value in self.values})

    def _amounts(self) -> list[int]:
        """Return the ranks that are no codes."""
        return [rank for rank in self.ranks if not self.feature.is_code(rank)]

    # ---- comparisons -------------------------------------------------------------------------------------------------
    def at_most(self, value: float) -> LinearForm:
        """Return 1 where the rank is at most ``value``, else 0."""
        return self.indicator({rank for rank in self._amounts() if rank <= value})

    def at_least(self, value: float) -> LinearForm:
        """Return 1 where the rank is at least ``value``, else 0."""
        return self.indicator({rank for rank in self._amounts() if rank >= value})

    def above(self, value: float) -> LinearForm:
        """Return 1 where the rank is greater than ``value``, else 0."""
        return self.indicator({rank for rank in self._amounts() if rank > value})

    def equals(self, value: float) -> LinearForm:
        """Return 1 where the rank is ``value``, else 0."""
        if value not in self._equals:
            self._equals[value] = self.indicator({value})
        return self._equals[value]

    def one_of(self, values: Iterable[float]) -> LinearForm:
        """Return 1 where the rank is one of ``values``, else 0."""
        return self.indicator(set(values))

    def differs(self, value: float) -> LinearForm:
        """Return 1 where another level is taken."""
        return self.equals(value).complement()

    # ---- changes and costs -------------------------------------------------------------------------------------------
    def changed_form(self) -> LinearForm:
        """Return 1 where another level than the factual one is taken."""
        return self.differs(self.x0)

    def cost_form(self, price: Price | Steps) -> Any:
        """Return the cost of the level taken."""
        if isinstance(price, Steps):
            costs: dict[float, float] = dict(zip(self.ranks, price.of(self.ranks), strict=True))
        else:
            costs = {value: self.cost_at(price, value) for value in self.values}
        return self.tabulate(costs).expression()


def count_on(binaries: Iterable[Any]) -> int:
    """Return how many binaries are on at the variables' current values."""
    return sum((binary.value or 0.0) > 0.5 for binary in binaries)


@final
class Ranked(AbstractLevels):
    r"""A level among ordered ones, as a rank: an ordinal or binary column.

    .. math:: y_1 \ge y_2 \ge \dots \ge y_m, \qquad y \in \{0, 1\}^m, \qquad
              \text{rank} = r_0 + \sum_k (r_k - r_{k-1})\, y_k.

    ====== ================================================================
    symbol meaning
    ====== ================================================================
    r      ranks in reach, ascending, ``r_0, ..., r_m``
    y_k    ``at_least[name, level]``: 1 iff the level is r_k or higher;
           for a binary column ``level[name, second level]``
    m      ``missing[name]``: 1 iff the cell is missing, where it may be; :math:`y_1 \le 1 - m` (``missing_first``)
    ====== ================================================================

    Adds m binaries and m - 1 rows, ``ordered``; nothing where one level is left. Exact.
    """

    __slots__ = ("missing", "variables")

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        container = block.level if feature.kind == "binary" else block.at_least
        words = [feature.levels[rank] for rank in self.ranks[1:]]
        self.variables: list[Any] = [container[feature.name, word] for word in words]
        for (low, high), word in zip(pairwise(self.variables), words[1:], strict=True):
            form = LinearForm(0.0, ((1.0, low), (-1.0, high)))
            Rows(block, "ordered").add((feature.name, word), form, lower=0.0)
        self.missing: Any = None
        if self.labels and self.ranks:
            self.missing = block.missing[feature.name]
            if self.variables:
                form = LinearForm(0.0, ((1.0, self.variables[0]), (1.0, self.missing)))
                Rows(block, "missing_first").add(feature.name, form, upper=1.0)

    def tabulate(self, values: dict[float, float]) -> LinearForm:
        """Return ``values[coordinate]`` of what is taken: a telescoping sum over the ordered binaries."""
        if not self.ranks:
            return LinearForm(values[MISSING])
        terms: list[tuple[float, Any]] = []
        if self.missing is not None and values[MISSING] != values[self.ranks[0]]:
            terms.append((values[MISSING] - values[self.ranks[0]], self.missing))
        for (low, high), variable in zip(pairwise(self.ranks), self.variables, strict=True):
            step = values[high] - values[low]
            if step != 0.0:
                terms.append((step, variable))
        return LinearForm(values[self.ranks[0]], tuple(terms))

    def raw(self) -> LinearForm:
        """Return the rank (0 or 1 of a binary column)."""
        self.require_amount("raw")
        return self.tabulate({rank: float(rank) for rank in self.ranks})

    def indicator(self, ranks: AbstractSet[float]) -> LinearForm:
        """Return 1 where the coordinate is one of ``ranks``, else 0."""
        return self.tabulate({value: float(value in ranks) for value in self.values})

    def move_to(self, value: float) -> float:
        """Return the number of levels between a rank and the factual."""
        return value - self.x0

    def decode(self) -> float:
        """Return the rank, as many steps up as ordered binaries are on, or that the cell is missing."""
        if not self.ranks or (self.missing is not None and count_on([self.missing])):
            return MISSING
        return float(self.ranks[count_on(self.variables)])

    def place(self, value: float) -> None:
        """Set the binaries to those of the coordinate ``value``."""
        for rank, variable in zip(self.ranks[1:], self.variables, strict=True):
            variable.set_value(int(rank <= value < MISSING), skip_validation=True)
        if self.missing is not None:
            self.missing.set_value(int(value == MISSING), skip_validation=True)


@final
class Category(AbstractLevels):
    r"""One of several unordered levels.

    .. math:: \sum_{c \in R} u_c = 1, \qquad u \in \{0, 1\}^R.

    ====== ================================================================
    symbol meaning
    ====== ================================================================
    R      levels in reach; a level outside it has no variable
    u_c    ``level[name, c]``: 1 iff the column takes level c; ``missing[name]``
           iff the cell is missing, where it may be
    ====== ================================================================

    Adds ``|R|`` binaries and one row, ``one_level``; nothing where one level is left. Exact.
    """

    __slots__ = ("variables",)

    def __init__(self, block: Any, feature: Feature, x0: float) -> None:
        super().__init__(block, feature, x0)
        self.variables: dict[float, Any] = {}
        if not self.is_point:
            self.variables = {rank: block.level[feature.name, feature.levels[rank]] for rank in self.ranks}
            if self.labels:
                self.variables[MISSING] = block.missing[feature.name]
            Rows(block, "one_level").add(feature.name, sum_form(self.variables.values()), lower=1.0, upper=1.0)

    def raw(self) -> LinearForm:
        """Refuse: unordered levels have no number."""
        raise InvalidTypeError(
            "raw",
            "a numeric, ordinal or binary column",
            f"column {self.name!r} is categorical",
            f"Use is_level[{self.name!r}, level] instead.",
        )

    def indicator(self, ranks: AbstractSet[float]) -> LinearForm:
        """Return the sum of the binaries of ``ranks``."""
        if self.is_point:
            return LinearForm(float(self.values[0] in ranks))
        return sum_form(self.variables[rank] for rank in sorted(self.variables.keys() & ranks))

    def tabulate(self, values: dict[float, float]) -> LinearForm:
        """Return ``values[coordinate]`` of what is taken."""
        if self.is_point:
            return LinearForm(values[self.values[0]])
        terms: list[tuple[float, Any]] = []
        for rank, variable in self.variables.items():
            if values[rank] != 0.0:
                terms.append((values[rank], variable))
        return LinearForm(0.0, tuple(terms))

    def move_to(self, value: float) -> float:
        """Return 1 of any level but the factual one: a changed category moves 1, up."""
        return float(value != self.x0)

    def decode(self) -> float:
        """Return the rank of the level whose binary is greatest."""
        if self.is_point:
            return self.values[0]
        return float(max(self.variables, key=lambda rank: self.variables[rank].value or 0.0))

    def place(self, value: float) -> None:
        """Switch the level of rank ``value`` on."""
        for rank, variable in self.variables.items():
            variable.set_value(int(rank == value), skip_validation=True)
