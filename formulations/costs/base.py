"""Costs of a change: stated once and used three ways, in the program, in numpy, and as a bound on moves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from ceopt.formulations.columns import AbstractCharge, Price
from ceopt.formulations.space.reachable import Interval, Levels, Reach
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
#: What is counted of a category.
COUNT = Choice(("features", "columns"))


def move_of(feature: Feature, x0: float, x: float) -> float:
    """Return the move between two coordinates: their difference, or 1 where a category changed."""
    if feature.kind == "categorical":
        return float(x != x0)
    return x - x0


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
    """A cost of leaving the factual; costs add and scale: ``L1() + 0.1 * Changes()``.

    A new one is a file that says its ``prices`` and, unless it is an :class:`AbstractSeparable`, how to ``build`` its
    expression. One that is no sum over columns also sets ``additive`` to False and says its own ``value`` and
    ``objectives``, and what the objective is of the cost where the program minimises another quantity.
    ``costs/__init__.py`` exports it, and gives it a name in ``COSTS`` if text shall select it.
    """

    __slots__ = ()

    #: Whether the objective is the sum of the columns' prices (else it is only at least each of them).
    additive = True
    #: Whether the program may have squares or cones, whose tolerances a solver keeps in absolute numbers.
    curved = False
    #: Degree of the objective in lengths: 2 where it is a square.
    power = 1

    def fitted(self, space: FeatureSpace, data: pd.DataFrame | None) -> AbstractCost:
        """Return the cost with what it takes from data filled in; itself where it takes nothing."""
        del space, data
        return self

    def addend(self) -> AbstractCost:
        """Return the cost as a sum states it; itself, unless its own program minimises another quantity."""
        return self

    def in_units(self, unit: float) -> AbstractCost:
        """Return the same cost, with a program whose lengths count ``unit`` as 1; itself where nothing is curved."""
        if not self.curved or unit == 1.0:
            return self
        return InUnits(self, unit)

    def stated(self, x: Factual, unit: float) -> Any:
        """Return the objective divided by ``unit ** power``."""
        if unit == 1.0:
            return self.build(x)
        return (1.0 / unit) * self.build(x)

    @property
    def is_joint(self) -> bool:
        """Whether a point's cost is not the sum of its columns' prices."""
        return not self.additive

    @abstractmethod
    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return what each column's move costs at least, whatever the others do; exact where ``additive``."""

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

    def size(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the typical length at a point, from which a program's unit is taken (see :meth:`in_units`)."""
        return self.value(space, factual, point)

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the program's objective at many points, coordinates (n, d) in the space's order, shape (n,)."""
        return np.asarray(price_table(self.prices(space), space, factual, points).sum(axis=1))

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
        if isinstance(factor, bool) or not isinstance(factor, int | float | np.integer | np.floating):
            return NotImplemented
        share = _FACTOR.require("cost", "factor", factor)
        return Sum(tuple((share * own, cost) for own, cost in _terms(self)))

    __rmul__ = __mul__

    def __radd__(self, other: object) -> AbstractCost:
        # sum([L1(), Changes()]) begins at 0.
        return self if other == 0 else NotImplemented


@final
@dataclass(frozen=True, slots=True)
class Sum(AbstractCost):
    """A weighted sum of costs.

    A distance that a program of its own would minimise by way of its square (l2, Mahalanobis) is stated here as itself,
    by a second-order cone.
    """

    terms: tuple[tuple[float, AbstractCost], ...]

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """Whether every part is a sum over columns."""
        return all(cost.additive for _, cost in self._addends())

    @property
    def curved(self) -> bool:  # type: ignore[override]
        """Whether some part has squares or cones."""
        return any(cost.curved for _, cost in self.terms)

    def fitted(self, space: FeatureSpace, data: pd.DataFrame | None) -> Sum:
        """Return the sum of the parts with what they take from data filled in."""
        return Sum(tuple((factor, cost.fitted(space, data)) for factor, cost in self.terms))

    def _addends(self) -> list[tuple[float, AbstractCost]]:
        return [(factor, cost.addend()) for factor, cost in self.terms]

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the parts' prices together, each times its factor."""
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
        parts = [(factor * unit ** (cost.power - 1), cost) for factor, cost in self._addends()]
        return sum(factor * cost.stated(x, unit) for factor, cost in parts)

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the weighted sum of the parts' objectives."""
        return np.asarray(sum(factor * cost.objectives(space, factual, points) for factor, cost in self._addends()))

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the weighted sum of the parts' values."""
        return float(sum(factor * cost.value(space, factual, point) for factor, cost in self.terms))

    def size(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the largest size among curved terms; other terms, of 10,000 a change say, have no length."""
        sizes = []
        for factor, cost in self.terms:
            if cost.curved and factor > 0.0:
                sizes.append(cost.value(space, factual, point))
        return max(sizes, default=self.value(space, factual, point))


@final
@dataclass(frozen=True, slots=True)
class InUnits(AbstractCost):
    """A cost whose program counts lengths in another unit, so that a solver's absolute tolerances mean something."""

    cost: AbstractCost
    unit: float

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """As the cost itself."""
        return self.cost.additive

    @property
    def _factor(self) -> float:
        return self.unit**-self.cost.power

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return the cost's prices, in powers of the unit."""
        listed = self.cost.prices(space).items()
        return {name: tuple(price.scaled(self._factor) for price in prices) for name, prices in listed}

    def build(self, x: Factual) -> Any:
        """Return the objective in powers of the unit."""
        return self.cost.stated(x, self.unit)

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the cost itself."""
        return self.cost.value(space, factual, point)

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the objectives in powers of the unit."""
        return self._factor * self.cost.objectives(space, factual, points)

    def from_objective(self, objective: float) -> float:
        """Return the cost itself."""
        return self.cost.from_objective(objective / self._factor)

    def to_objective(self, cost: float) -> float:
        """Return the objective in powers of the unit."""
        return self.cost.to_objective(cost) * self._factor


def price_table(
    prices: Mapping[str, tuple[Price, ...]], space: FeatureSpace, factual: Mapping[str, float], points: Floats
) -> Floats:
    """Return what each column's move costs at many points (n, d), by itself."""
    table = np.zeros(points.shape)
    for j, feature in enumerate(space):
        table[:, j] = prices_of(prices[feature.name], feature, factual[feature.name], points[:, j])
    return table


def prices_of(prices: Sequence[Price], feature: Feature, x0: float, values: Floats) -> Floats:
    """Return what it costs that one column goes from ``x0`` to each of some values (n,), by itself."""
    moves = values - x0
    if feature.kind == "categorical":
        moves = (moves != 0.0).astype(np.float64)
    total = np.zeros(len(values))
    for price in prices:
        total += price.of_many(moves)
    return total


def _terms(cost: AbstractCost) -> tuple[tuple[float, AbstractCost], ...]:
    return cost.terms if isinstance(cost, Sum) else ((1.0, cost),)


def paid(x: Factual, prices: Mapping[str, tuple[Price, ...]]) -> list[tuple[AbstractCharge, Price]]:
    """Return the prices of columns that may move, each with what is charged."""
    pairs = []
    for name, listed in prices.items():
        for price in listed:
            if max(price.down, price.up) > 0.0 and not x.charge(name).stays:
                pairs.append((x.charge(name), price))
    return pairs


class AbstractSeparable(AbstractCost):
    """A sum of the columns' prices."""

    __slots__ = ()

    def build(self, x: Factual) -> Any:
        """Return the sum over the columns that may move."""
        costs = [charge.price(price) for charge, price in paid(x, self.prices(x.space))]
        return sum(costs) if costs else 0.0


def slopes_of(
    who: str,
    kind: Literal["linear", "length", "square"],
    scale: str | Mapping[str, float],
    space: FeatureSpace,
    count: Count = "features",
) -> dict[str, tuple[Price, ...]]:
    """Return weight over scale per column and direction, as prices of a kind; by columns a category counts twice."""
    scales = scale_of(who, scale, space)
    twice = 2.0 if kind == "linear" else math.sqrt(2.0)  # two squares of 1, whose root is taken of lengths
    prices: dict[str, tuple[Price, ...]] = {}
    for feature in space:
        columns = 1.0
        if count == "columns" and feature.kind == "categorical":
            columns = twice
        down, up = feature.weights
        unit = scales[feature.name] / columns
        prices[feature.name] = (Price(kind, down / unit, up / unit),)
    return prices


# ---- the cut-off: no answer worth finding costs more than one that is known ------------------------------------------
@final
@dataclass(frozen=True, slots=True, eq=False)
class CostCutoff:
    r"""A cost that is not to be exceeded, and what it rules out.

    .. math::
        \sum_j \text{price}_j(x_j - x^0_j) \le U

    for a cost that adds up over columns, and :math:`\text{price}_j(x_j - x^0_j) \le U` for every other. Exact: with U
    the cost of an answer in hand, the optimum does not move.

    Parameters
    ----------
    space, factual
        The columns, and the person in coordinates.
    cost
        Whose prices count.
    budget
        The U, as an objective value of the program (see ``cost.to_objective``).
    """

    space: FeatureSpace
    factual: Mapping[str, float]
    cost: AbstractCost
    budget: float
    _prices: dict[str, tuple[Price, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", self.budget + BUDGET_SLACK * max(1.0, self.budget))
        object.__setattr__(self, "_prices", self.cost.prices(self.space))

    def own_prices(self, name: str, values: Floats) -> Floats:
        """Return what it costs that a column takes each of some values, (n,)."""
        return prices_of(self._prices[name], self.space[name], self.factual[name], values)

    def _affordable(self, name: str, levels: Levels) -> tuple[int, ...]:
        """Return the ranks in reach whose own move is within the budget."""
        prices = self.own_prices(name, np.array(levels.ranks, dtype=np.float64))
        return tuple(rank for rank, price in zip(levels.ranks, prices.tolist(), strict=True) if price <= self.budget)

    def narrowed(self, reach: Reach) -> dict[str, Interval | Levels]:
        """Return the reach without the values whose own move costs more than the budget."""
        narrow: dict[str, Interval | Levels] = {}
        for feature in self.space:
            name = feature.name
            part = reach[name]
            if isinstance(part, Levels):
                narrow[name] = Levels(self._affordable(name, part))
            else:
                narrow[name] = part.narrowed(*self._ends(name))
        return narrow

    def is_beyond(self, reach: Reach) -> bool:
        """Tell whether some column has no value in the reach whose own move is within the budget."""
        for name, part in reach.items():
            if isinstance(part, Levels):
                if not self._affordable(name, part):
                    return True
            else:
                lower, upper = self._ends(name)
                if part.ceil(lower) > part.floor(upper):
                    return True
        return False

    def _ends(self, name: str) -> tuple[float, float]:
        """Return the least and the greatest number whose own move is within the budget."""
        x0 = self.factual[name]
        down, up = _room(self._prices[name], self.budget)
        return _moved_outwards(x0, -down), _moved_outwards(x0, up)

    def greatest_gain(
        self, slopes: Mapping[str, Floats], tables: Mapping[str, Floats], reach: Mapping[str, Interval | Levels]
    ) -> Floats:
        r"""Return by how much each of K functions can rise above its value at the factual within the budget, (K,).

        The functions add up a linear function of each number and a table over each column of levels. The bound is the
        optimum of the continuous knapsack

        .. math:: \max \sum_j g_j t_j \quad\text{s.t.}\quad \sum_j c_j t_j \le U, \quad 0 \le t \le 1,

        whose items are the moves: a number's to the end of its reach, and the steps of the concave envelope of a table
        over the prices of its levels. For linear prices and at most two prices of levels it is exact.

        Parameters
        ----------
        slopes
            (K,) per numeric column, in raw units.
        tables
            (K, levels) per column of levels.
        reach
            Values in reach; of a number finite where its slope is not 0.
        """
        gains: list[Floats] = []
        costs: list[Floats] = []
        for name, slope in slopes.items():
            part = reach[name]
            x0 = self.factual[name]
            assert isinstance(part, Interval)  # noqa: S101 - slopes exist for numbers only
            rooms = np.where(slope > 0, part.upper - x0, part.lower - x0)
            prices = np.where(slope > 0, self._linear(name, part.upper), self._linear(name, part.lower))
            gains.append(np.where(slope == 0, 0.0, np.maximum(slope * np.where(slope == 0, 0.0, rooms), 0.0))[:, None])
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
        return _knapsack(gain, cost, self.budget) if self.cost.additive else gain.sum(axis=1)

    def _linear(self, name: str, end: float) -> float:
        """Return a lower bound on the price of the move to an end, in proportion to the part that is moved."""
        move = end - self.factual[name]
        if not math.isfinite(move):
            return 0.0
        return sum(price.of(move) for price in self._prices[name] if price.kind != "square")

    def _of_levels(self, name: str, table: Floats, levels: Levels) -> tuple[Floats, Floats]:
        """Return the steps of the concave envelope of a table's gain over the price: (K, steps) gains and costs."""
        ranks = np.array(levels.ranks)
        home = int(self.factual[name])
        prices = self.own_prices(name, ranks.astype(np.float64))
        rise = table[:, ranks] - table[:, [home]]
        known, place = np.unique(prices, return_inverse=True)
        best = np.stack([rise[:, place == k].max(axis=1) for k in range(len(known))], axis=1)
        if known[0] > 0.0:  # staying is always possible, and free
            known = np.concatenate([[0.0], known])
            best = np.concatenate([np.zeros((len(best), 1)), best], axis=1)
        best = np.maximum(best, 0.0)
        if len(known) <= 2:
            first = best[:, :1]
            more = np.maximum(best[:, 1:] - first, 0.0)
            return np.concatenate([first, more], axis=1), np.tile(known, (len(best), 1))
        steps = np.array([_envelope(known, row) for row in best])
        return steps[:, 0], steps[:, 1]


def _envelope(prices: Floats, gains: Floats) -> tuple[list[float], list[float]]:
    """Return (gains, costs) of the steps of the least concave, non-decreasing function above some points."""
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


def _knapsack(gain: Floats, cost: Floats, budget: float) -> Floats:
    """Return the optimum of K continuous knapsacks, items (K, m) with gains at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(gain > 0, gain / cost, -1.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    gain = np.take_along_axis(gain, order, axis=1)
    cost = np.take_along_axis(cost, order, axis=1)
    before = np.cumsum(cost, axis=1) - cost
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(cost > 0, np.clip((budget - before) / cost, 0.0, 1.0), 1.0)
    return np.asarray(np.where(gain > 0, gain * share, 0.0).sum(axis=1))


def _room(prices: Sequence[Price], budget: float) -> tuple[float, float]:
    """Return how far (down, up) a move may go: what is fixed about it is paid first, then each price has the rest."""
    fixed = [price for price in prices if price.kind == "fixed"]
    moving = [price for price in prices if price.kind != "fixed"]
    limits = []
    for side, word in enumerate(("down", "up")):
        rest = budget - sum(map(attrgetter(word), fixed))
        if rest < 0:
            limits.append(0.0)
        else:
            limits.append(min((price.farthest(rest)[side] for price in moving), default=math.inf))
    return limits[0], limits[1]


def _moved_outwards(x0: float, move: float) -> float:
    """Return ``x0 + move``, rounded outwards."""
    if math.isinf(move):
        return move
    if move:
        return math.nextafter(x0 + move * (1.0 + BUDGET_SLACK), math.copysign(math.inf, move))
    return x0
