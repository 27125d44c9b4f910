"""What one person's change costs at least under a linear score, found without a program.

Such a score is a sum over the columns, so the least cost is a knapsack with one choice a column.
:func:`least_by_knapsack` adds one column after the other and keeps what no other choice beats in cost and score, and
what a bound on the columns still to come does not exclude. It is exact where a cost is a sum over the columns, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.costs.base import prices_of
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.predictors.ties import summation_rounding
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.formulations.targets import Values
from ceopt.tolerances import COST_OF_MARGIN, GAIN_ROUNDING, PRICE_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.columns import Price
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.targets import Target
    from ceopt.search.prepare import Prepared
    from ceopt.solvers.checks import Floats

#: Values of one column, and sums of choices at once, beyond which a knapsack is left to a program.
_MOST_VALUES: Final = 20_000
_MOST_SUMS: Final = 3_000_000
#: Shares of a move at which a price that is no straight line is taken.
_SHARES: Final = np.geomspace(1e-3, 1.0, 64)
#: Rows by which a linear score is held against the sum of its columns.
_ROWS_HELD: Final = 3


@final
@dataclass(frozen=True, slots=True)
class LeastCost:
    """What is known of the least cost of one person.

    Parameters
    ----------
    bound
        Nothing that the model accepts costs less; infinite where there is nothing.
    proof
        What proves it, as :class:`~ceopt.SolutionSet` names it.
    points
        Points, in coordinates, that have the margin if the user gave one; not asked of the user's own model yet.
    """

    bound: float
    proof: Literal["bound", "cells"] = "bound"
    points: tuple[Mapping[str, float], ...] = ()


def can_add_up(prepared: Prepared) -> bool:
    """Tell whether one score, a sum over the columns, decides."""
    predictor = prepared.predictor
    settings = prepared.settings
    is_sum = predictor.is_linear and predictor.core.n_scores == 1 and not _has_two_ends(settings.target)
    return is_sum and settings.cost.additive and not settings.cost.is_joint and not settings.rules


def _has_two_ends(target: Target) -> bool:
    """Tell whether the nearer of two ends decides, which is no sum, though it may look like one at some points."""
    return isinstance(target, Values) and math.isfinite(target.low) and math.isfinite(target.high)


# ==== Linear scores: a knapsack with one choice a column ==============================================================


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnGains:
    """A linear model's slack as a sum over the columns, in raw units.

    Parameters
    ----------
    slopes
        Slack per unit of each number.
    tables
        Slack of each level, and of what else is no amount, by its coordinate.
    amounts
        Of each number an amount and its slack, in the terms of its table where it may be no amount.
    """

    slopes: Mapping[str, float]
    tables: Mapping[str, Mapping[float, float]]
    amounts: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, prepared: Prepared, coordinates: Floats) -> ColumnGains | None:
        """Return the sum that the slack is, held against some people (n, d); None where it is none."""
        if _has_two_ends(prepared.settings.target):
            return None
        space = prepared.predictor.space
        home = coordinates[0].copy()
        for j, feature in enumerate(space):
            if feature.is_label(home[j]):
                home[j] = 0.0 if feature.is_finite else _ends(feature, 0.0)[0]
        slopes: dict[str, float] = {}
        tables: dict[str, dict[float, float]] = {}
        amounts: dict[str, tuple[float, float]] = {}
        asked = [_values_to_ask(feature, home[j], prepared.predictor.unseen) for j, feature in enumerate(space)]
        counts = list(map(len, asked))
        rows = np.tile(home, (sum(counts), 1))
        rows[np.arange(len(rows)), np.repeat(np.arange(len(asked)), counts)] = np.concatenate(asked)
        corners = np.tile(home, (2, 1))
        slacks = np.split(slack_of(prepared, rows), np.cumsum(counts)[:-1])
        for j, (feature, values, found) in enumerate(zip(space, asked, slacks, strict=True)):
            name = feature.name
            first = 0 if feature.is_finite else 2  # of levels and codes
            if first:
                corners[:, j] = ends = values[:first]
                if not np.isfinite(found[:first]).all():
                    return None
                slopes[name] = float((found[1] - found[0]) / (ends[1] - ends[0]))
                amounts[name] = (ends[0], float(found[0]))
            if len(values) > first:
                tables[name] = dict(zip(values[first:], found[first:].tolist(), strict=True))
        score = cls(slopes, tables, amounts)
        some = coordinates[np.linspace(0, len(coordinates) - 1, min(len(coordinates), _ROWS_HELD)).astype(int)]
        some = np.concatenate([some, corners])
        expected = np.full(len(some), float(slack_of(prepared, home[None, :])[0]))
        sizes = np.abs(expected)
        for j, feature in enumerate(space):
            gains = score.gain(feature.name, home[j], some[:, j])
            expected += gains
            sizes += np.abs(gains)
        with np.errstate(invalid="ignore"):
            held = np.abs(expected - slack_of(prepared, some)) <= GAIN_ROUNDING * np.maximum(sizes, 1.0)
        return score if held.all() else None

    def gain(self, name: str, home: float, values: Floats) -> Floats:
        """Return by how much the slack rises when a column goes from its value to others, (n,)."""
        table = self.tables.get(name, {})
        if name not in self.slopes:
            return np.array([table[value] for value in values.tolist()]) - table[home]
        slope = self.slopes[name]
        if not table:
            return slope * (values - home)
        base, at_base = self.amounts[name]

        def of(value: float) -> float:
            return table[value] if value in table else at_base + slope * (value - base)

        gains = [
            slope * (value - home) if {value, home}.isdisjoint(table) else of(value) - of(home)
            for value in values.tolist()
        ]
        return np.array(gains)


def _ends(feature: Feature, home: float) -> tuple[float, float]:
    """Return two amounts of a number as far apart as its bounds, or as a number of this size, suggest."""
    width = max(abs(home), 1.0)
    lower = feature.lower if math.isfinite(feature.lower) else min(home, feature.upper) - width
    upper = feature.upper if math.isfinite(feature.upper) else max(home, lower) + width
    return (lower, upper) if lower < upper else (lower, lower + width)


def slack_of(prepared: Prepared, coordinates: Floats) -> Floats:
    """Return by how much rows (n, d) meet the target in the model as read, in its own score."""
    return slack(prepared.predictor, coordinates, prepared.settings.target)


def _values_to_ask(feature: Feature, home: float, unseen: Mapping[str, Collection[int]]) -> list[float]:
    """Return the levels of a column that the model knows, or two amounts of a number and its codes; a gap last."""
    missing = [] if feature.missing is False else [MISSING]
    if feature.is_finite:
        return [float(k) for k in range(len(feature.levels)) if k not in unseen.get(feature.name, ())] + missing
    return [*_ends(feature, home), *missing, *map(feature.to_coordinate, feature.codes)]


@final
class _Choices(NamedTuple):
    """Values of a column, what they gain, and their prices, (n,) each: infinite where there is none."""

    values: Floats
    gains: Floats
    prices: Floats

    def with_others(
        self, places: NDArray[np.bool_], others: tuple[Floats | float, Floats | float, Floats | float]
    ) -> _Choices:
        """Return the choices with others in some places."""
        return _Choices(*(np.where(places, other, own) for own, other in zip(self, others, strict=True)))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """The choices of one column that are worth their price, ascending in both, and (gain, price) of their envelope."""

    name: str
    values: Floats
    prices: Floats
    gains: Floats
    pieces: tuple[tuple[float, float], ...]

    def with_change_at(self, price: float) -> _Column:
        """Return the column at this price more for each change: of what costs the same, fewer columns are cheaper."""
        if not math.isfinite(price):
            return self
        return replace(self, prices=np.where(self.prices > 0.0, self.prices + price, self.prices))

    def at_least(self, gains: Floats) -> _Choices:
        """Return the cheapest values that gain as much."""
        places = np.searchsorted(self.gains, gains)
        parts = (self.values, math.nan), (self.gains, 0.0), (self.prices, math.inf)
        return _Choices(*(np.append(part, none)[places] for part, none in parts))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Stairs:
    """A number of very many steps at one price a unit, of which no list is written.

    Parameters
    ----------
    home, part, slope
        The person's own value, what is in reach, and what a unit of it gains.
    price
        Of a unit the way that gains.
    ends
        What the farthest move that may be needed gains, and its price.
    change
        Price of any change at all.
    """

    name: str
    home: float
    part: Interval
    slope: float
    price: float
    ends: tuple[float, float]
    change: float = 0.0

    @property
    def pieces(self) -> tuple[tuple[float, float], ...]:
        """The one piece of its envelope, (gain, price); none at its bound."""
        return (self.ends,) if self.ends[0] > 0.0 else ()

    def with_change_at(self, price: float) -> _Stairs:
        """Return the column at this price more for each change."""
        return replace(self, change=price) if math.isfinite(price) else self

    def at_least(self, gains: Floats) -> _Choices:
        """Return the nearest values that gain as much."""
        way = math.copysign(1.0, self.slope)
        first = round((self.home - self.part.anchor) / self.step)
        near = np.floor(np.clip(gains, 0.0, 2.0 * self.ends[0]) / self.gain) - 1.0
        found = _Choices(*(np.full(np.shape(gains), none) for none in (math.nan, 0.0, math.inf)))
        for further in (3.0, 2.0, 1.0, 0.0):  # from far to near, past what rounding and a home off the grid may shift
            values = self.part.grid.many(first + way * (near + further))
            gained = self.slope * (values - self.home)
            fits = (values >= self.part.lower) & (values <= self.part.upper) & (gained >= gains) & (gained > 0.0)
            prices = self.price * np.abs(values - self.home) + self.change
            found = found.with_others(fits, (values, gained, prices))
        return found.with_others(gains <= 0.0, (self.home, 0.0, 0.0))

    def around(self, gains: Floats) -> list[_Choices]:
        """Return the values that gain a little less and a little more, or all that is left.

        Where this is a step's own gain but for a rounding, that step is among them: half a step less finds it.
        """
        part = self.part
        last = part.floor(part.upper) if self.slope > 0.0 else part.ceil(part.lower)
        most = np.minimum(gains, self.slope * (last - self.home))
        return [self.at_least(asked) for asked in (gains - self.gain, gains - 0.5 * self.gain, most)]

    @property
    def step(self) -> float:
        """The step of the column."""
        assert self.part.step is not None  # noqa: S101 - without steps it is a slide
        return self.part.step

    @property
    def gain(self) -> float:
        """What one step gains."""
        return abs(self.slope) * self.step


def least_by_knapsack(
    prepared: Prepared, score: ColumnGains, factual: Mapping[str, float], reach: Reach
) -> LeastCost | None:
    """Return the least cost of one person under a linear model, or a bound on it; None where the target is met.

    Parameters
    ----------
    prepared
        Model and settings, with the margins that suit the person.
    score
        The model's slack as a sum over the columns.
    factual, reach
        The person, in coordinates, and what each column may take; the person's own value is in reach.
    """
    space = prepared.space
    settings = prepared.settings
    prices = settings.cost.prices(space)
    own = np.array([[factual[name] for name in space.names]])
    missed = -float(slack_of(prepared, own)[0])
    needed = missed + (prepared.margin or 0.0)
    if missed <= 0.0:
        return None
    steps: list[_Column] = []
    slides: list[_Slide] = []
    wide: list[_Stairs | None] = []
    for feature in space:
        name = feature.name
        part = reach[name]
        home = factual[name]
        if part.is_point:
            continue
        slope = score.slopes.get(name, 0.0)
        is_free = isinstance(part, Interval) and part.step is None and not part.labels
        if is_free and all(price.kind == "linear" for price in prices[name]):
            slides += _slide(name, prices[name], slope, part, home, needed)
            continue
        values = _values(part, feature, home, slope, needed)
        if values is None:
            wide.append(_stairs(name, prices[name], slope, part, feature, home, needed))
            column = _outer(score, feature, prices[name], part, home, needed)
        else:
            gains = score.gain(name, home, values)
            column = _worthwhile(name, values, prices_of(prices[name], feature, home, values), gains)
        if len(column.values) > 1 or column.gains[0] > 0.0:
            steps.append(column)
    steps.sort(key=lambda column: len(column.values))
    most = sum(float(column.gains[-1]) for column in steps) + sum(slide.gain for slide in slides)
    noise = GAIN_ROUNDING * max(abs(missed) + most, 1.0) + summation_rounding(prepared.predictor, own)
    if most < missed - noise:
        return LeastCost(math.inf)
    columns = _for_choices(steps, wide)
    if (
        columns is not None and most > needed + 2.0 * noise and needed > 2.0 * noise
    ):  # else a margin or rounding may decide
        try:
            found = _solved(prepared, score, factual, reach, (columns, slides), (missed, needed, noise))
        except _TooManyError:
            found = None
        if found is not None:
            return found
    pieces = _envelope_of(steps, slides)
    price = float(pieces.price_for(np.array([min(missed - noise, float(pieces.gains[-1]))]))[0])
    return LeastCost(max(settings.cost.from_objective(price * (1.0 - PRICE_ROUNDING)), 0.0))


def _for_choices(steps: Sequence[_Column], wide: Sequence[_Stairs | None]) -> list[_Column | _Stairs] | None:
    """Return the columns of a search for the cheapest choices; None where a choice of one cannot be looked up.

    One number of very many steps may be among them, the last: it makes up for the rest.
    """
    if not wide:
        return [*steps]
    last = wide[0]
    if len(wide) > 1 or last is None:
        return None
    return [*(column for column in steps if column.name != last.name), last]


class _TooManyError(Exception):
    """There are too many choices at once."""


def _solved(  # noqa: PLR0917 - all that is known of one person
    prepared: Prepared,
    score: ColumnGains,
    factual: Mapping[str, float],
    reach: Reach,
    choices: tuple[Sequence[_Column | _Stairs], Sequence[_Slide]],
    slacks: tuple[float, float, float],
) -> LeastCost | None:
    """Return the least cost at the margin, unless the margin itself may make it dearer: then bounds.

    ``slacks``: what the person misses, what is needed with the margin, and how exact sums of slacks are.
    """
    steps, slides = choices
    missed, needed, noise = slacks
    by_name = {slide.name: slide for slide in slides}
    space = prepared.space
    cost = prepared.settings.cost

    def priced(chosen: Mapping[str, float]) -> tuple[dict[str, float], Floats, float]:
        point = _point(score, factual, reach, chosen, by_name)
        row = np.array([[point[name] for name in space.names]])
        return point, row, float(cost.objectives(space, factual, row)[0])

    low = None
    at_hand = _price_at_hand(steps, slides, needed + noise)
    steps = [column.with_change_at(PRICE_ROUNDING * at_hand / len(space)) for column in steps]
    for asked in (needed - noise, needed + noise):
        limit = _price_at_hand(steps, slides, asked) * (1.0 + PRICE_ROUNDING) + PRICE_ROUNDING
        chosen = _chosen(steps, slides, asked, limit)
        if chosen is None:
            return None
        point, row, price = priced(chosen)
        if low is None:
            low = price
            if prepared.settings.margin is None:
                cheaper = _chosen(steps, slides, missed - noise, price * (1.0 - COST_OF_MARGIN))
                if cheaper is not None:  # perhaps without the margin, which a search settles
                    low = priced(cheaper)[2]
        if any(
            feature.is_label(factual[name]) != feature.is_label(point[name])
            for name, feature in zip(space.names, space, strict=True)
        ):
            return LeastCost(cost.from_objective(low))  # which amount stands there is left to who fills it in
        if prepared.slacks(row)[0] >= 0.0:
            return LeastCost(cost.from_objective(low), points=(point,))
    return None


def _point(
    score: ColumnGains,
    factual: Mapping[str, float],
    reach: Reach,
    chosen: Mapping[str, float],
    slides: Mapping[str, _Slide],
) -> dict[str, float]:
    point = dict(factual)
    for name, value in chosen.items():
        if name not in slides:
            point[name] = value
        elif value > 0.0:
            part = reach[name]
            assert isinstance(part, Interval)  # noqa: S101 - slides are numbers
            point[name] = part.clip(factual[name] + value / score.slopes[name])
    return point


def _slide(  # noqa: PLR0917 - one number and all that is known of it
    name: str, prices: Sequence[Price], slope: float, part: Interval | Levels, home: float, needed: float
) -> list[_Slide]:
    """Return a number without steps as what it may gain, no more than is needed; none where it gains nothing."""
    assert isinstance(part, Interval)  # noqa: S101 - levels are in steps
    if slope == 0.0:
        return []
    is_up = slope > 0.0
    room = part.upper - home if is_up else home - part.lower
    gain = min(abs(slope) * room, 2.0 * max(needed, 0.0))
    if gain <= 0.0:
        return []
    price = sum(price.up if is_up else price.down for price in prices) / abs(slope)
    return [_Slide(name, math.copysign(1.0, slope), gain, price)]


def _values(part: Interval | Levels, feature: Feature, home: float, slope: float, needed: float) -> Floats | None:
    """Return the values of a column that may gain, the person's own first; None if they are too many.

    Of a number's steps there are those that gain up to twice what is needed.
    """
    if isinstance(part, Levels):
        return np.array([home, *(value for value in part.values if value != home)])
    labels = [value for value in part.labels if value != home]
    end = part.upper if slope > 0.0 else part.lower
    if feature.is_label(home):  # filled in at one price, wherever it lands
        return np.array([home, end, *labels]) if math.isfinite(end) else None
    if slope == 0.0:
        return np.array([home, *labels])
    if part.step is None:
        return None
    steps = min(abs(end - home) / part.step, 2.0 * max(needed, 0.0) / (abs(slope) * part.step) + 1.0 + len(part.holes))
    if not steps <= _MOST_VALUES:
        return None
    first = round((home - part.anchor) / part.step)
    last = first + math.ceil(steps) * int(math.copysign(1.0, slope))
    values = part.grid.many(np.arange(min(first, last), max(first, last) + 1, dtype=np.float64))
    values = values[(values >= part.lower) & (values <= part.upper) & (values != home)]
    return np.concatenate([[home], values[~np.isin(values, part.holes)], labels])


def _stairs(  # noqa: PLR0917 - one column and all that is known of it
    name: str,
    prices: Sequence[Price],
    slope: float,
    part: Interval | Levels,
    feature: Feature,
    home: float,
    needed: float,
) -> _Stairs | None:
    """Return a number of very many steps at one price a unit; None for others."""
    assert isinstance(part, Interval)  # noqa: S101 - levels are few
    is_plain = not part.labels and not part.holes and not feature.is_label(home)
    if part.step is None or slope == 0.0 or not is_plain or any(price.kind != "linear" for price in prices):
        return None
    is_up = slope > 0.0
    width = min(abs((part.upper if is_up else part.lower) - home), 2.0 * needed / abs(slope) + part.step)
    price = sum(price.up if is_up else price.down for price in prices)
    return _Stairs(name, home, part, slope, price, (abs(slope) * width, price * width))


def _outer(  # noqa: PLR0917 - one column and all that is known of it
    score: ColumnGains, feature: Feature, prices: Sequence[Price], part: Interval | Levels, home: float, needed: float
) -> _Column:
    """Return choices that gain at least as much at each price as those of a number."""
    assert isinstance(part, Interval)  # noqa: S101 - levels are few
    name = feature.name
    slope = score.slopes[name]
    end = part.upper if slope > 0.0 else part.lower
    most = 2.0 * needed
    if feature.is_label(home):
        amount = 0.0
        gains, dear = [most], [float(prices_of(prices, feature, home, np.array([amount]))[0])]
        if math.isfinite(end):
            gains = [float(score.gain(name, home, np.array([end]))[0])]
    else:
        width = math.copysign(min(abs(end - home), most / abs(slope)), slope) if slope else 0.0
        amounts = home + width * np.concatenate([[0.0], _SHARES])
        amounts[-1] = home + width
        gains = (abs(slope) * np.abs(amounts - home))[1:].tolist()
        dear = prices_of(prices, feature, home, amounts)[:-1].tolist()
    labels = np.array([value for value in part.labels if value != home])
    gains += score.gain(name, home, labels).tolist() if len(labels) else []
    dear += prices_of(prices, feature, home, labels).tolist() if len(labels) else []
    values = np.full(len(gains) + 1, home)
    return _worthwhile(name, values, np.array([0.0, *dear]), np.array([0.0, *gains]))


def _worthwhile(name: str, values: Floats, prices: Floats, gains: Floats) -> _Column:
    """Return the choices of a column that gain more than all cheaper ones."""
    order = np.lexsort((-gains, prices))
    before = np.concatenate([[-math.inf], np.maximum.accumulate(gains[order])[:-1]])
    kept = order[(gains[order] > before) & (gains[order] >= 0.0)]
    return _Column(name, values[kept], prices[kept], gains[kept], _pieces(prices[kept], gains[kept]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Slide:
    """A number without steps: which way it gains, by how much at most, and what a unit of gain costs."""

    name: str
    direction: float
    gain: float
    price: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Envelope:
    """What some columns gain at a price at most: a concave function, of its pieces in order.

    Parameters
    ----------
    gains, prices
        (k + 1,) ends of the pieces, ascending from 0.
    owners
        (k,) which column each piece is of, in the order of the columns, the slides after them.
    """

    gains: Floats
    prices: Floats
    owners: tuple[int, ...]

    def price_for(self, needed: Floats) -> Floats:
        """Return what a gain costs at least, (n,); infinite where it is out of reach."""
        found = np.interp(needed, self.gains, self.prices)
        return np.where(needed > self.gains[-1], math.inf, np.where(needed <= 0.0, 0.0, found))


def _envelope_of(columns: Sequence[_Column | _Stairs], slides: Sequence[_Slide]) -> _Envelope:
    pieces = [(slide.gain, slide.price * slide.gain, len(columns) + k) for k, slide in enumerate(slides)]
    for owner, column in enumerate(columns):
        pieces += [(gain, price, owner) for gain, price in column.pieces]
    pieces.sort(key=lambda piece: piece[1] / piece[0])
    gains = np.concatenate([[0.0], np.cumsum([gain for gain, _, _ in pieces])])
    prices = np.concatenate([[0.0], np.cumsum([price for _, price, _ in pieces])])
    return _Envelope(gains, prices, tuple(owner for _, _, owner in pieces))


def _pieces(prices: Floats, gains: Floats) -> tuple[tuple[float, float], ...]:
    """Return (gain, price) of the pieces of the least concave function above some choices, which starts at 0."""
    if prices[0] == gains[0] == 0.0 and len(prices) > 2:
        rates = gains[1:] / np.maximum(prices[1:], 1e-300)
        if rates.max() <= rates.min() * (1.0 + PRICE_ROUNDING):  # a straight line, as of every number at one price
            return ((float(gains[-1]), float(gains[-1] / rates.max())),)
    hull: list[tuple[float, float]] = [(0.0, 0.0)]
    for price, gain in zip(prices.tolist(), gains.tolist(), strict=True):
        if (price, gain) == hull[-1]:
            continue
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], (price, gain)):
            hull.pop()
        hull.append((price, gain))
    return tuple((b[1] - a[1], b[0] - a[0]) for a, b in itertools.pairwise(hull))


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) <= (c[1] - b[1]) * (b[0] - a[0])


def _price_at_hand(columns: Sequence[_Column | _Stairs], slides: Sequence[_Slide], needed: float) -> float:
    """Return the price of some choice that gains enough: the best pieces, and one column to make up for the rest."""
    whole = _envelope_of(columns, slides)
    used = int(np.searchsorted(whole.gains, needed)) - 1
    own = [0.0] * (len(columns) + len(slides))
    for owner, gain in zip(whole.owners[:used], np.diff(whole.gains)[:used].tolist(), strict=True):
        own[owner] += gain
    left = needed - whole.gains[used]
    before = float(whole.prices[used])
    best = math.inf
    for owner, column in enumerate(columns):
        then, now = column.at_least(np.array([own[owner] + left, own[owner] * (1.0 - PRICE_ROUNDING)])).prices
        best = min(best, before + float(then - now))
    for owner, slide in enumerate(slides, start=len(columns)):
        if own[owner] + left <= slide.gain:
            best = min(best, before + left * slide.price)
    return best


def _chosen(
    columns: Sequence[_Column | _Stairs], slides: Sequence[_Slide], needed: float, limit: float
) -> dict[str, float] | None:
    """Return the cheapest values by column, of a slide the gain, that gain enough; None where all cost more.

    Raises
    ------
    _TooManyError
        More sums at once than are worth it.
    """
    gains = np.zeros(1)
    prices = np.zeros(1)
    back: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
    # The last column makes up for the rest, alone or with the slides, so none of its sums is written.
    last = columns[-1] if columns and (not slides or isinstance(columns[-1], _Stairs)) else None
    summed = [column for column in columns if isinstance(column, _Column) and column is not last]
    for k, column in enumerate(summed):
        if len(gains) * len(column.gains) > _MOST_SUMS:
            raise _TooManyError
        gain = np.minimum(gains[:, None] + column.gains, needed).ravel()
        price = (prices[:, None] + column.prices).ravel()
        others = _envelope_of(columns[k + 1 :], slides)
        kept = np.flatnonzero(price + others.price_for(needed - gain) <= limit)
        kept = kept[np.lexsort((-gain[kept], price[kept]))]
        best_before = np.concatenate([[-1.0], np.maximum.accumulate(gain[kept])[:-1]])
        kept = kept[gain[kept] > best_before]
        gains, prices = gain[kept], price[kept]
        back.append((kept // len(column.gains), kept % len(column.gains)))
        if not len(kept):
            return None
    rest = needed - gains
    makes_up = _envelope_of((), slides)
    ways: list[_Choices] = []
    if isinstance(last, _Stairs) and slides:
        ways = last.around(rest - sum(slide.gain for slide in slides if slide.price < last.price / abs(last.slope)))
    elif last is not None:
        ways = [last.at_least(rest)]
    else:
        ways = [_Choices(*np.zeros((3, len(rest))))]
    totals = np.stack([prices + way.prices + makes_up.price_for(rest - way.gains) for way in ways])
    which, place = divmod(int(np.argmin(totals)), len(rest))
    if not totals[which, place] <= limit:
        return None
    left = float(rest[place] - ways[which].gains[place])
    chosen: dict[str, float] = {}
    if last is not None:
        chosen[last.name] = float(ways[which].values[place])
    for slide in sorted(slides, key=lambda slide: slide.price):
        chosen[slide.name] = min(max(left, 0.0), slide.gain)
        left -= chosen[slide.name]
    for column, (old, new) in zip(reversed(summed), reversed(back), strict=True):
        chosen[column.name] = float(column.values[new[place]])
        place = int(old[place])
    return chosen
