"""Base classes of costs. A cost has a Pyomo expression, a numeric value, and prices per column, which limit moves."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.columns import AbstractCharge, Price
from ceopt.formulations.columns.coordinate import no_amount
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels, Reach, labels_in_reach, only_at
from ceopt.formulations.tolerances import BUDGET_SLACK
from ceopt.solvers.checks import AllOf, Choice, Divisor, Floats, OneOrMapping, Real, Refusal
from ceopt.solvers.errors import InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = [
    "COUNT",
    "SCALE",
    "AbstractCost",
    "AbstractSeparable",
    "CostCutoff",
    "Count",
    "Sum",
    "move_of",
    "price_table",
    "prices_of",
    "scale_of",
    "slopes_of",
]

#: Coordinates by column.
Point: TypeAlias = Mapping[str, float]
_NO_SCALE = Refusal("positive scales", "Give a positive number per column.")
#: What a scale may be: the name of a statistic, or a mapping from columns to numbers to divide by.
SCALE = OneOrMapping(
    Choice(("mad", "std", "range", "none")), AllOf((Real(above=0.0, finite=True, otherwise=_NO_SCALE), Divisor()))
)
_FACTOR = Real(
    at_least=0.0,
    finite=True,
    otherwise=Refusal("a factor of at least 0", "Scale by a number >= 0.", "the factor is {value}"),
)
Count = Literal["features", "columns"]
#: Whether a changed category counts as one feature or as its two changed one-hot columns.
COUNT = Choice(("features", "columns"))


def move_of(feature: Feature, x0: float, x: float) -> float:
    """Return the move between two coordinates: their difference, or 1 where a category changed; 0 at a label."""
    if x == x0 or feature.is_label(x0) or feature.is_label(x):
        return 0.0
    if feature.kind == "categorical":
        return float(x != x0)
    return x - x0


def scale_of(who: str, scale: str | Mapping[str, float], space: FeatureSpace) -> dict[str, float]:
    """Return the scale of each column, from a statistic's name or a mapping, which may leave out columns of levels."""
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
    """A cost of leaving the factual; costs add and scale: ``L1() + 0.1 * Changes()``.

    To add a cost, write a file with a class that defines ``prices`` and ``build`` (an :class:`AbstractSeparable` needs
    only ``prices``). If it is not a sum over columns, set ``additive = False`` and define ``value`` and ``objectives``.
    If the program minimises something else than the cost (its square, say), define ``from_objective`` and
    ``to_objective``. Export it in ``costs/__init__.py``; a name in ``COSTS`` lets users select it by text.
    """

    __slots__ = ()

    #: Whether the objective is at least the sum of the columns' prices (their sum itself, unless ``is_joint``); if not,
    #: it is at least each of them.
    additive = True
    #: Whether the program may have quadratic terms or cones, for which solvers use absolute tolerances (``in_units``).
    curved = False
    #: Degree of the objective in the unit of length: 2 for a squared distance.
    power = 1
    #: Who has no cost for codes and missing cells, and refuses columns that may move and hold one; empty for nobody.
    needs_amounts = ""

    def fitted(self, space: FeatureSpace, data: pd.DataFrame | None) -> AbstractCost:
        """Return the cost fitted to data; itself if it needs none."""
        del space, data
        return self

    def addend(self) -> AbstractCost:
        """Return the cost to use as a term of a sum; itself, unless its own program minimises another quantity."""
        return self

    def in_units(self, unit: float) -> AbstractCost:
        """Return the cost with a program that measures lengths in ``unit``; itself if it is not curved."""
        if not self.curved or unit == 1.0:
            return self
        return InUnits(self, unit)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the objective divided by ``unit ** power``."""
        if unit == 1.0:
            return self.build(x)
        return (1.0 / unit**self.power) * self.build(x)

    @property
    def is_joint(self) -> bool:
        """Whether the objective of a point may differ from the sum of its columns' prices."""
        return not self.additive

    @abstractmethod
    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return, per column, prices that bound the objective from below by the column's move (see ``additive``)."""

    @abstractmethod
    def build(self, x: Factual) -> Any:
        """Return the objective as a Pyomo expression over a person's block, adding variables there where needed."""

    def value(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the cost of ``point``, both given in coordinates, in plain Python arithmetic."""
        return self.cost_of(self.column_costs(space, factual, point).values())

    def column_costs(self, space: FeatureSpace, factual: Point, point: Point) -> dict[str, float]:
        """Return the cost of each column's move alone."""
        costs = {}
        for name, prices in self.prices(space).items():
            costs[name] = cost_of_column(prices, space[name], factual[name], point[name])
        return costs

    def cost_of(self, column_costs: Iterable[float]) -> float:
        """Return the cost of a point from those of its columns' moves alone: their sum."""
        return float(sum(column_costs))

    def size(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the magnitude of the cost at a point, as a length; it sets the unit of :meth:`in_units`."""
        return self.value(space, factual, point)

    def objectives(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return the program's objective at points, coordinates (n, d) in the space's order, shape (n,)."""
        return np.asarray(price_table(self.prices(space), space, factual, points).sum(axis=1))

    def from_objective(self, objective: float) -> float:
        """Return the cost for an objective value of the program."""
        return objective

    def to_objective(self, cost: float) -> float:
        """Return the objective value of the program for a cost."""
        return cost

    def __add__(self, other: AbstractCost) -> Sum:
        if not isinstance(other, AbstractCost):
            return NotImplemented
        return Sum((*_terms(self), *_terms(other)))

    def __mul__(self, factor: float) -> Sum:
        if isinstance(factor, bool) or not isinstance(factor, int | float | np.integer | np.floating):
            return NotImplemented
        share = _FACTOR.require("cost", "factor", factor)
        return Sum(tuple((share * own, cost) for own, cost in _terms(self)))

    __rmul__ = __mul__

    def __radd__(self, other: object) -> AbstractCost:
        # sum() starts from 0.
        return self if other == 0 else NotImplemented


@final
@dataclass(frozen=True, slots=True)
class Sum(AbstractCost):
    """A weighted sum of costs.

    Alone, l2 and Mahalanobis are minimised through their square; in a sum they enter as distances, through a
    second-order cone.
    """

    terms: tuple[tuple[float, AbstractCost], ...]

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """Whether every part is additive."""
        return all(cost.additive for _, cost in self._addends())

    @property
    def curved(self) -> bool:  # type: ignore[override]
        """Whether some part is curved."""
        return any(cost.curved for _, cost in self.terms)

    @property
    def needs_amounts(self) -> str:  # type: ignore[override]
        """The first part that has no cost for codes and missing cells."""
        return next((cost.needs_amounts for _, cost in self.terms if cost.needs_amounts), "")

    def fitted(self, space: FeatureSpace, data: pd.DataFrame | None) -> Sum:
        """Return the sum of the parts, each fitted to data."""
        return Sum(tuple((factor, cost.fitted(space, data)) for factor, cost in self.terms))

    def _addends(self) -> list[tuple[float, AbstractCost]]:
        return [(factor, cost.addend()) for factor, cost in self.terms]

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return, per column, the prices of all parts, each times the part's factor."""
        together: dict[str, tuple[Price, ...]] = dict.fromkeys(space.names, ())
        for factor, cost in self._addends():
            for name, prices in cost.prices(space).items():
                together[name] += tuple(price.scaled(factor) for price in prices)
        return together

    def build(self, x: Factual) -> Any:
        """Return the weighted sum of the parts' expressions."""
        return self.stated(x, 1.0)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the weighted sum of the parts' expressions, divided by ``unit``."""
        parts = []
        for factor, cost in self._addends():
            weight = factor * unit ** (cost.power - 1)  # a part divides itself by unit ** power, the sum by unit
            parts.append(weight * cost.stated(x, unit))
        return sum(parts)

    def objectives(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return the weighted sum of the parts' objectives."""
        return np.asarray(sum(factor * cost.objectives(space, factual, points) for factor, cost in self._addends()))

    def value(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the weighted sum of the parts' values."""
        return float(sum(factor * cost.value(space, factual, point) for factor, cost in self.terms))

    def size(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the largest value among curved terms with a positive factor; without one, the value of the sum.

        Linear terms may be of any magnitude (10,000 per change, say) and do not set the unit.
        """
        sizes = []
        for factor, cost in self.terms:
            if cost.curved and factor > 0.0:
                sizes.append(cost.value(space, factual, point))
        if not sizes:
            return self.value(space, factual, point)
        return max(sizes)


@final
@dataclass(frozen=True, slots=True)
class InUnits(AbstractCost):
    """A cost whose program measures lengths in another unit, in which absolute solver tolerances are small.

    Only what belongs to the program is in that unit: ``prices``, ``build`` and the objectives.
    """

    cost: AbstractCost
    unit: float

    additive = property(attrgetter("cost.additive"))
    curved = property(attrgetter("cost.curved"))
    power = property(attrgetter("cost.power"))
    needs_amounts = property(attrgetter("cost.needs_amounts"))
    is_joint = property(attrgetter("cost.is_joint"))

    @property
    def _factor(self) -> float:
        return self.unit**-self.cost.power

    def fitted(self, space: FeatureSpace, data: pd.DataFrame | None) -> AbstractCost:
        """Return the cost fitted to data, in the same unit."""
        return InUnits(self.cost.fitted(space, data), self.unit)

    def addend(self) -> AbstractCost:
        """Return ``cost`` as a term of a sum, which has a unit of its own."""
        return self.cost.addend()

    def in_units(self, unit: float) -> AbstractCost:
        """Return ``cost`` with a program in another unit."""
        return self.cost.in_units(unit)

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the prices of ``cost``, divided by ``unit ** power``."""
        listed = self.cost.prices(space).items()
        return {name: tuple(price.scaled(self._factor) for price in prices) for name, prices in listed}

    def build(self, x: Factual) -> Any:
        """Return the objective, divided by ``unit ** power``."""
        return self.cost.stated(x, self.unit)

    def value(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the cost in its own unit."""
        return self.cost.value(space, factual, point)

    def column_costs(self, space: FeatureSpace, factual: Point, point: Point) -> dict[str, float]:
        """Return the cost of each column's move alone, in its own unit."""
        return self.cost.column_costs(space, factual, point)

    def cost_of(self, column_costs: Iterable[float]) -> float:
        """Return the cost of a point from those of its columns' moves, in its own unit."""
        return self.cost.cost_of(column_costs)

    def size(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the magnitude of ``cost`` at a point, in its own unit."""
        return self.cost.size(space, factual, point)

    def objectives(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return the objectives of ``cost``, divided by ``unit ** power``."""
        return self._factor * self.cost.objectives(space, factual, points)

    def from_objective(self, objective: float) -> float:
        """Return the cost, in its own unit, for an objective value of this program."""
        return self.cost.from_objective(objective / self._factor)

    def to_objective(self, cost: float) -> float:
        """Return the objective value of this program for a cost in its own unit."""
        return self.cost.to_objective(cost) * self._factor


def price_table(prices: Mapping[str, tuple[Price, ...]], space: FeatureSpace, factual: Point, points: Floats) -> Floats:
    """Return the cost of each column's move alone at points (n, d), shape (n, d)."""
    table = np.zeros(points.shape)
    for j, feature in enumerate(space):
        table[:, j] = prices_of(prices[feature.name], feature, factual[feature.name], points[:, j])
    return table


def prices_of(prices: Sequence[Price], feature: Feature, x0: float | Floats, values: Floats) -> Floats:
    """Return the cost of moving one column from ``x0``, one or one for each, to each of ``values``."""
    is_label = feature.are_labels(values)
    is_filled = (is_label | feature.are_labels(np.asarray(x0))) & (values != x0)
    moves = np.where(is_label | is_filled, 0.0, values) - np.where(is_label | is_filled, 0.0, x0)
    if feature.kind == "categorical":
        moves = (moves != 0.0).astype(np.float64)
    total = np.zeros(values.shape)
    for price in prices:
        total += np.where(is_filled, price.of_fill, price.of_many(moves))
    return total


def cost_of_column(prices: Sequence[Price], feature: Feature, x0: float, x: float) -> float:
    """Return the cost of moving one column from ``x0`` to ``x``."""
    if x != x0 and (feature.is_label(x0) or feature.is_label(x)):
        return sum(price.of_fill for price in prices)
    move = move_of(feature, x0, x)
    return sum(price.of(move) for price in prices)


def require_amounts(who: str, space: FeatureSpace, factual: Point, reach: Reach) -> None:
    """Refuse, in the name of ``who``, a column that can move and may hold no amount: its cost has none for a fill."""
    for feature in space:
        part = reach[feature.name]
        if part.is_point and part.only == factual[feature.name]:
            continue
        then = f"Use L1(), or fix the column: space.update({feature.name!r}, mutable=False)."
        for label in labels_in_reach(feature, factual[feature.name], part):
            raise no_amount(who, feature, label, then)


def are_filled(space: FeatureSpace, factual: Point, points: Floats) -> NDArray[np.bool_]:
    """Return which cells of points (n, d) come from a code or a missing cell, or become one, (n, d)."""
    found = np.zeros(points.shape, dtype=bool)
    for j, feature in enumerate(space):
        x0 = factual[feature.name]
        is_label = feature.are_labels(points[:, j]) | feature.is_label(x0)
        found[:, j] = is_label & (points[:, j] != x0)
    return found


def _terms(cost: AbstractCost) -> tuple[tuple[float, AbstractCost], ...]:
    return cost.terms if isinstance(cost, Sum) else ((1.0, cost),)


def paid(x: Factual, prices: Mapping[str, tuple[Price, ...]]) -> list[tuple[AbstractCharge, Price]]:
    """Return the prices of columns that may move, each with the charge of its column."""
    pairs = []
    for name, listed in prices.items():
        for price in listed:
            if max(price.down, price.up) > 0.0 and not x.charge(name).stays:
                pairs.append((x.charge(name), price))
    return pairs


class AbstractSeparable(AbstractCost):
    """A cost that is the sum of its columns' prices."""

    __slots__ = ()

    def build(self, x: Factual) -> Any:
        """Return the sum of the prices of the columns that may move."""
        costs = [charge.price(price) for charge, price in paid(x, self.prices(x.space))]
        return sum(costs) if costs else 0.0


def slopes_of(
    who: str,
    kind: Literal["linear", "length", "square"],
    scale: str | Mapping[str, float],
    space: FeatureSpace,
    count: Count = "features",
) -> dict[str, tuple[Price, ...]]:
    """Return one price per column: its weights (down, up) divided by its scale.

    With ``count="columns"`` a changed category counts as two one-hot columns that change.
    """
    if isinstance(scale, Mapping):
        return _slopes(who, kind, scale, space, count)
    return dict(_slopes_once(who, kind, scale, space, count))


def _slopes(
    who: str,
    kind: Literal["linear", "length", "square"],
    scale: str | Mapping[str, float],
    space: FeatureSpace,
    count: Count,
) -> dict[str, tuple[Price, ...]]:
    scales = scale_of(who, scale, space)
    category_factor = math.sqrt(2.0)  # two changed columns: 1 + 1, or sqrt(1 + 1) as a length
    if kind == "linear":
        category_factor = 2.0
    prices: dict[str, tuple[Price, ...]] = {}
    for feature in space:
        factor = 1.0
        if count == "columns" and feature.kind == "categorical":
            factor = category_factor
        down, up = feature.weights
        divisor = scales[feature.name] / factor
        fill = feature.price_of_fill * factor
        prices[feature.name] = (Price(kind, down / divisor, up / divisor, fill),)
    return prices


_slopes_once: Final = functools.lru_cache(maxsize=16)(_slopes)  # each person of a cohort asks for the same


# ---- cost cut-off: exclude moves that cost more than a known answer --------------------------------------------------
@final
@dataclass(frozen=True, slots=True, eq=False)
class CostCutoff:
    r"""An upper limit on the cost, and the values that it excludes.

    .. math::
        \sum_j \text{price}_j(x_j - x^0_j) \le U

    for an additive cost, and :math:`\text{price}_j(x_j - x^0_j) \le U` for every column of any other. Exact: if U is
    the cost of a known answer, the optimum is not cut off.

    Parameters
    ----------
    space, factual
        The columns, and the person in coordinates.
    cost
        The cost that is limited.
    budget
        U, as an objective value of the program (see ``cost.to_objective``); ``BUDGET_SLACK`` widens it on construction.
    """

    space: FeatureSpace
    factual: Point
    cost: AbstractCost
    budget: float
    _prices: dict[str, tuple[Price, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", self.budget + BUDGET_SLACK * max(1.0, self.budget))
        object.__setattr__(self, "_prices", self.cost.prices(self.space))

    def own_prices(self, name: str, values: Floats) -> Floats:
        """Return the cost of moving a column to each of ``values``, (n,)."""
        return prices_of(self._prices[name], self.space[name], self.factual[name], values)

    def _affordable(self, name: str, levels: Levels) -> tuple[int, ...]:
        """Return the ranks in reach whose move alone is within the budget."""
        is_affordable = self.own_prices(name, np.array(levels.ranks, dtype=np.float64)) <= self.budget
        return tuple(compress(levels.ranks, is_affordable.tolist()))

    def narrowed(self, reach: Reach) -> dict[str, Interval | Levels]:
        """Return the reach without values whose move alone exceeds the budget."""
        narrow: dict[str, Interval | Levels] = {}
        for name in self.space.names:
            part = reach[name]
            narrow[name] = self._of_levels_within(name, part) if isinstance(part, Levels) else self._within(name, part)
        return narrow

    def _of_levels_within(self, name: str, part: Levels) -> Levels:
        labels = part.labels
        if labels and self.own_prices(name, np.array(labels))[0] > self.budget:
            labels = ()
        return Levels(self._affordable(name, part), labels)

    def _within(self, name: str, part: Interval) -> Interval:
        """Return the affordable part of a number: its amounts by their ends, its labels by what they cost."""
        feature = self.space[name]
        x0 = self.factual[name]
        if part.is_point and feature.is_label(part.only):
            return part
        if part.labels and not self._affords_fill(name):
            if feature.is_label(x0):
                return cast("Interval", only_at(part, x0))
            part = replace(part, labels=())
        if feature.is_label(x0):
            return part
        lower, upper = self._ends(name)
        if part.labels and part.ceil(lower) > part.floor(upper):
            if len(part.labels) == 1:
                return cast("Interval", only_at(part, part.labels[0]))
            return part
        return part.narrowed(lower, upper)

    def _affords_fill(self, name: str) -> bool:
        """Return whether a cell can be filled in, or an amount go, within the budget."""
        return sum(price.of_fill for price in self._prices[name]) <= self.budget

    def is_beyond(self, reach: Reach) -> bool:
        """Return whether some column of this reach has no affordable value, so that the whole reach is excluded."""
        for name, part in reach.items():
            feature = self.space[name]
            x0 = self.factual[name]
            if part.holds(x0):
                continue
            if isinstance(part, Levels):
                if not self._of_levels_within(name, part).values:
                    return True
                continue
            is_on_label = part.is_point and feature.is_label(part.only)
            if is_on_label or part.labels or feature.is_label(x0):
                if self._affords_fill(name):
                    continue
                if is_on_label or feature.is_label(x0):
                    return True
            lower, upper = self._ends(name)
            if part.ceil(lower) > part.floor(upper):
                return True
        return False

    def _ends(self, name: str) -> tuple[float, float]:
        """Return the least and the greatest number whose move alone is within the budget."""
        x0 = self.factual[name]
        prices = self._prices[name]
        down = _farthest(prices, 0, self.budget)
        up = _farthest(prices, 1, self.budget)
        return _moved_outwards(x0, -down), _moved_outwards(x0, up)

    def greatest_gain(
        self, slopes: Mapping[str, Floats], tables: Mapping[str, Floats], reach: Mapping[str, Interval | Levels]
    ) -> Floats:
        r"""Return by how much each of K functions can rise above its value at the factual within the budget, (K,).

        The functions add up a linear function of each number and a table over each column of levels. The bound is the
        optimum of the continuous knapsack

        .. math:: \max \sum_j g_j t_j \quad\text{s.t.}\quad \sum_j c_j t_j \le U, \quad 0 \le t \le 1,

        whose items are, per numeric column, the move to the end of its reach, and per column of levels the steps of the
        concave envelope of gain over price. For linear prices and at most two prices of levels it is exact.

        Parameters
        ----------
        slopes
            (K,) per numeric column, in raw units.
        tables
            (K, levels) per column of levels.
        reach
            Values in reach; bounded for every numeric column with a nonzero slope, on the side to which it points. What
            the functions are of a missing cell, and of a number on a code, is not said, so that the bound is infinite
            where a column may become so, or be filled in.
        """
        gains: list[Floats] = []
        costs: list[Floats] = []
        for name, slope in slopes.items():
            part = reach[name]
            x0 = self.factual[name]
            assert isinstance(part, Interval)  # noqa: S101 - slopes exist for numbers only
            if part.labels or self.space[name].is_label(x0):
                gains.append(self._unknown_gain(name, part, slope != 0.0))
                costs.append(np.zeros((len(slope), 1)))
                continue
            end = np.where(slope > 0, part.upper, part.lower)
            move = np.where(slope != 0, end - x0, 0.0)  # with a slope of 0 the end may be infinite
            prices = np.where(slope > 0, self._linear(name, part.upper), self._linear(name, part.lower))
            gains.append(np.maximum(slope * move, 0.0)[:, None])
            costs.append(prices[:, None])
        for name, table in tables.items():
            levels = reach[name]
            assert isinstance(levels, Levels)  # noqa: S101 - tables exist for levels only
            gain, cost = self._of_levels(name, table, levels)
            gains.append(gain)
            costs.append(cost)
        if not gains:
            return np.zeros(0)
        gain = np.concatenate(gains, axis=1)
        cost = np.concatenate(costs, axis=1)
        if not self.cost.additive:
            return np.asarray(gain.sum(axis=1))
        return knapsack(gain, cost, self.budget)

    def _unknown_gain(self, name: str, part: Interval | Levels, counts: NDArray[np.bool_]) -> Floats:
        """Return the gain, (K, 1), of a column in whose reach are labels: none where it stays, else infinite."""
        stays = part.is_point and part.only == self.factual[name]
        return np.where(counts & (not stays), np.inf, 0.0)[:, None]

    def _linear(self, name: str, end: float) -> float:
        """Return a price c such that a share t of the move to ``end`` costs at least t * c."""
        move = end - self.factual[name]
        if not math.isfinite(move):
            return 0.0
        return sum(price.of(move) for price in self._prices[name] if price.kind != "square")

    def _of_levels(self, name: str, table: Floats, levels: Levels) -> tuple[Floats, Floats]:
        """Return gains and costs (K, steps) of the concave envelope of gain over price."""
        if levels.labels or self.factual[name] == MISSING:
            every = np.ones(len(table), dtype=bool)
            return self._unknown_gain(name, levels, every), np.zeros((len(table), 1))
        ranks = np.array(levels.ranks)
        factual_rank = int(self.factual[name])
        prices = self.own_prices(name, ranks.astype(np.float64))
        rise = table[:, ranks] - table[:, [factual_rank]]
        price_levels, inverse = np.unique(prices, return_inverse=True)
        best = np.stack([rise[:, inverse == k].max(axis=1) for k in range(len(price_levels))], axis=1)
        if price_levels[0] > 0.0:  # staying is always possible, and free
            price_levels = np.concatenate([[0.0], price_levels])
            best = np.concatenate([np.zeros((len(best), 1)), best], axis=1)
        best = np.maximum(best, 0.0)
        if len(price_levels) <= 2:  # the envelope of one or two points, for all K functions at once
            first = best[:, :1]
            more = np.maximum(best[:, 1:] - first, 0.0)
            return np.concatenate([first, more], axis=1), np.tile(price_levels, (len(best), 1))
        steps = np.array([_envelope(price_levels, row) for row in best])
        return steps[:, 0], steps[:, 1]


def _envelope(prices: Floats, gains: Floats) -> tuple[list[float], list[float]]:
    """Return (gains, costs) of the steps of the least concave, non-decreasing function above the points given."""
    hull: list[tuple[float, float]] = []
    for point in zip(prices.tolist(), np.maximum.accumulate(gains).tolist(), strict=True):
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    count = len(prices)
    costs, rises = np.diff(hull, axis=0, prepend=0.0).T.tolist()
    rest = [0.0] * (count - len(hull))
    return rises + rest, costs + rest


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) <= (c[1] - b[1]) * (b[0] - a[0])


def knapsack(gain: Floats, cost: Floats, budget: float | Floats) -> Floats:
    """Return the optimum of K continuous knapsacks, items (K, m) with gains at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(gain > 0, gain / cost, -1.0)
        order = np.argsort(-ratio, axis=1, kind="stable")
        gain = np.take_along_axis(gain, order, axis=1)
        cost = np.take_along_axis(cost, order, axis=1)
        before = np.cumsum(cost, axis=1) - cost
        share = np.where(cost > 0, np.clip((budget - before) / cost, 0.0, 1.0), 1.0)
    return np.asarray(np.where(gain > 0, gain * share, 0.0).sum(axis=1))


def _farthest(prices: Sequence[Price], side: int, budget: float) -> float:
    """Return the farthest affordable move to a side, 0 down or 1 up.

    Fixed prices are deducted first; then each other price alone must fit the rest of the budget.
    """
    rest = budget - sum((price.down, price.up)[side] for price in prices if price.kind == "fixed")
    if rest < 0:
        return 0.0
    return min((price.farthest(rest)[side] for price in prices if price.kind != "fixed"), default=math.inf)


def _moved_outwards(x0: float, move: float) -> float:
    """Return ``x0 + move``, rounded outwards."""
    if math.isinf(move):
        return move
    if move:
        return math.nextafter(x0 + move * (1.0 + BUDGET_SLACK), math.copysign(math.inf, move))
    return x0
