r"""Near points of models whose scores change with every step: linear models, networks, and what combines them.

A point is a state of :mod:`~ceopt.search.near_people`: a coordinate for each column. The places of a column are all its
levels; or of a number the person's own value and, to either side of it, a few from the data and ever shorter ways to
the end of its reach. Between two neighbouring places of which one is favourable lies a *crossing*, which is looked for
along the line from one to the other.

Of layers a *scan* adds up what each column gives to the neurons of the first,

.. math:: W x + b = b + \sum_j W_j \phi_j(x_j),

so that a change of one column takes one term out and puts another in. All other models are asked for their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ceopt.formulations.costs.base import prices_of
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.predictors.representation import AbstractLayers, of_one
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import DecimalGrid, Interval, Levels, decimal_grids
from ceopt.formulations.targets import DisagreementOf
from ceopt.search.near_people import (
    AbstractNearPeople,
    Bools,
    Ints,
    Met,
    Person,
    States,
    favourable_rows,
    takes_sums,
    tastes_of,
)
from ceopt.solvers.deadline import checkpoint
from ceopt.tolerances import CROSSING_FOUND, CROSSING_ROUNDING, START_MARGIN_ROUNDING, STEP_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.search.prepare import Prepared
    from ceopt.solvers.checks import Floats

_SEARCHING: Final = "looking for near points"
#: Values of a number that are taken from the data, and ways to each end, each half as long as the one before.
_QUANTILES, _HALVED = 5, 7
#: Sizes of a number that an end counts as away where there is none.
_FAR: Final = 10.0
#: Amounts of a number: the person's own, those of the data, and those on the ways.
_AMOUNTS: Final = 1 + _QUANTILES + 2 * _HALVED
#: Points on a line that are tried for the crossing.
_TRIED: Final = 5
#: Numbers of a point that are brought nearer one by one, the dearest first.
_SETTLED: Final = 6
#: Power of the slack gained in the merit of a change.
_LONG: Final = 1.1
#: People times places that are scanned at once, each with its neurons.
_AT_ONCE: Final = 2_000_000
#: Climbs with a random taste beside the first, and rows of the data that are looked at.
_CLIMBS, _SAMPLED = 4, 500
#: People who are searched for together.
_TOGETHER: Final = 64


# ==== Scores ==========================================================================================================
@final
class _Scores:
    """Slacks of many points by what each column gives to the neurons of the first layer."""

    def __init__(self, predictor: Predictor, target: Any) -> None:
        core = predictor.core
        assert isinstance(core, AbstractLayers)  # noqa: S101 - who asks has seen to it
        self.predictor = predictor
        self.target = target
        self.layers = core.layers
        self.between = (*core.between, "identity")
        weights, self.bias = self.layers[0]
        names = predictor.space.names
        readers: dict[str | None, list[int]] = {}
        for i, column in enumerate(predictor.encoding.columns):
            readers.setdefault(column.feature, []).append(i)
        self.constant = readers.pop(None, [])
        self.readers = [np.array(readers.get(name, []), dtype=np.intp) for name in names]
        self.weights = np.asarray(weights, dtype=np.float64).T

    @property
    def width(self) -> int:
        """Neurons of the first layer."""
        return len(self.bias)

    def terms(self, points: Floats) -> tuple[Floats, Floats]:
        """Return what each column of points (B, d) gives to the first layer (B, d, h), and the rest of it (h,)."""
        matrix = self.predictor.encoding.matrix(points)
        terms = np.stack([matrix[:, reader] @ self.weights[reader] for reader in self.readers], axis=1)
        rest = self.bias + matrix[:1, self.constant].sum(axis=0) @ self.weights[self.constant]
        return terms, rest

    def slacks(self, inputs: Floats) -> Floats:
        """Return the slacks of points given by what the first layer's neurons are fed, (N, h)."""
        h = inputs
        for k, activation in enumerate(self.between):
            if k:
                weights, bias = self.layers[k]
                h = h @ weights.T + bias
            if activation == "relu":
                h = np.maximum(h, 0.0)
        return slack(self.predictor, np.zeros((0, 0)), self.target, scores=of_one(h))


# ==== The people ======================================================================================================
@final
class NearValues:
    """Near points of a model that is not one of trees.

    Parameters
    ----------
    prepared
        Model and settings.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        space = prepared.space
        core = prepared.predictor.core
        is_added_up = isinstance(core, AbstractLayers) and not prepared.predictor.encoding.is_wide
        self.scores = _Scores(prepared.predictor, prepared.settings.target) if is_added_up else None
        self.tastes = tastes_of(prepared, _CLIMBS)
        self.costs = _ColumnPrices(prepared)
        #: Rows of the data that the model favours, and by column some of their amounts.
        self.rows = np.unique(favourable_rows(prepared, _SAMPLED), axis=0)
        self.quantiles = [self._quantiles(j, feature) for j, feature in enumerate(space)]
        #: By column its levels, or what else a number may be than an amount.
        self.labels = [_labels(feature) for feature in space]
        self.is_number = np.array([not feature.is_finite for feature in space])
        sizes = 1 + np.array(list(map(len, self.labels))) + np.where(self.is_number, _AMOUNTS, 0)
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.column_of = np.repeat(np.arange(len(sizes)), sizes)
        self.row_places = np.stack([self._places(j, self.rows[:, j]) for j in range(len(sizes))], axis=1)

    @classmethod
    def of(cls, prepared: Prepared) -> NearValues | None:
        """Return the search, if the model is none of trees and the cost a sum over the columns that the rules leave."""
        settings = prepared.settings
        predictor = prepared.predictor
        if predictor.is_trees or predictor.unseen or isinstance(settings.target, DisagreementOf):
            return None
        return cls(prepared) if takes_sums(settings, prepared.space) else None

    def _quantiles(self, j: int, feature: Feature) -> Floats:
        values = self.rows[:, j]
        values = values[~feature.are_labels(values)]
        if feature.is_finite or not len(values):
            return np.zeros(0)
        return np.asarray(np.quantile(values, np.linspace(0.0, 1.0, _QUANTILES), method="nearest"))

    def _places(self, j: int, values: Floats) -> Ints:
        """Return the places of a column's values, -1 for amounts."""
        labels = self.labels[j]
        at = np.searchsorted(labels, values)
        is_label = np.isin(values, labels)
        return np.where(is_label, int(self.first[j + 1]) - len(labels) + at, -1)

    def run(self, people: Sequence[Person]) -> list[Met]:
        """Return what is met for people, each given in coordinates and with their reach."""
        neurons = 1 if self.scores is None else self.scores.width
        width = max(1, min(_TOGETHER, _AT_ONCE // (neurons * len(self.column_of))))
        found: list[Met] = []
        for k in range(0, len(people), width):
            found += _ValuePeople(self, people[k : k + width]).met()
        return found


def _labels(feature: Feature) -> Floats:
    """Return the levels of a column, or what a number may be that is no amount, ascending."""
    own = range(len(feature.levels)) if feature.is_finite else map(feature.to_coordinate, feature.codes)
    return np.array(sorted([*map(float, own), *([] if feature.missing is False else [MISSING])]))


@final
class _ColumnPrices:
    """Prices of many people's columns, those that are straight lines all at once."""

    def __init__(self, prepared: Prepared) -> None:
        self.space = prepared.space
        self.prices = prepared.settings.cost.prices(prepared.space)
        listed = [self.prices[name] for name in self.space.names]
        self.curved = [j for j, prices in enumerate(listed) if any(price.kind != "linear" for price in prices)]
        self.up, self.down, self.fill = (
            np.array([sum(getattr(price, side) for price in prices) for prices in listed])
            for side in ("up", "down", "fill")
        )
        self.is_level = np.array([feature.kind == "categorical" for feature in self.space])
        self.labelled = np.array(
            [j for j, feature in enumerate(self.space) if feature.codes or feature.missing is not False], dtype=np.intp
        )
        most = max((len(self.space[self.space.names[j]].codes) for j in self.labelled), default=0)
        #: Coordinates of what is no amount of the columns that have such, (k, labels).
        self.labels = np.full((len(self.labelled), most + 1), MISSING)
        for row, j in zip(self.labels, self.labelled, strict=True):
            feature = self.space[self.space.names[j]]
            row[: len(feature.codes)] = list(map(feature.to_coordinate, feature.codes))

    def of(self, j: int, home: Floats, values: Floats) -> Floats:
        """Return what a column's values cost, in their shape, from homes of the same shape."""
        feature = self.space[self.space.names[j]]
        return prices_of(self.prices[feature.name], feature, home, values)

    def are_labels(self, points: Floats) -> Bools:
        """Return which coordinates are no amounts, of the columns that may have such, (B, k)."""
        return np.asarray((points[:, self.labelled, None] == self.labels).any(axis=2))

    def table(self, homes: Floats, points: Floats) -> Floats:
        """Return the price of each column of points (B, d) from homes (B, d) or (1, d)."""
        with np.errstate(invalid="ignore"):
            moves = points - homes
            moves[:, self.is_level] = moves[:, self.is_level] != 0.0
            found = np.where(moves > 0.0, self.up, self.down) * np.abs(moves)
        if len(self.labelled):
            is_filled = self.are_labels(points) | self.are_labels(homes)
            same = points[:, self.labelled] == homes[:, self.labelled]
            filled = np.where(same, 0.0, self.fill[self.labelled])
            found[:, self.labelled] = np.where(is_filled, filled, found[:, self.labelled])
        for j in self.curved:
            found[:, j] = self.of(j, np.broadcast_to(homes, points.shape)[:, j], points[:, j])
        return found


@final
class _ValuePeople(AbstractNearPeople):
    """People who are searched for together; a state has a coordinate for each column."""

    remade = 3

    def __init__(self, search: NearValues, people: Sequence[Person]) -> None:
        prepared = search.prepared
        names = prepared.space.names
        homes = np.array([[factual[name] for name in names] for factual, _ in people])
        self.search = search
        self.first = search.first
        self.amounts = _Amounts(homes, [[reach[name] for name in names] for _, reach in people])
        self.values = np.repeat(homes, np.diff(search.first), axis=1)
        #: The place next to a number's on the way to the person; elsewhere the place itself.
        self.inner = np.tile(np.arange(len(search.column_of)), (len(people), 1))
        prices = np.concatenate([self._laid_out(j, homes[:, j], people) for j in range(len(names))], axis=1)
        super().__init__(prepared, people, tastes=search.tastes, column_of=search.column_of, prices=prices, home=homes)
        #: The least slack that is asked of each person's points.
        self.need = np.array([_least_slack(prepared.for_person(*person)) for person in people])
        self.terms = self._terms()

    def _laid_out(self, j: int, home: Floats, people: Sequence[Person]) -> Floats:
        """Return prices of a column's places: the person's own value, amounts in order, and what is no amount."""
        search = self.search
        places = slice(int(search.first[j]), int(search.first[j + 1]))
        labels = search.labels[j]
        values = self.values[:, places]
        in_reach = np.zeros(values.shape, dtype=bool)
        if len(labels):
            values[:, -len(labels) :] = labels
            name = search.prepared.space.names[j]
            for i, (_, reach) in enumerate(people):
                part = reach[name]
                in_reach[i] = np.isin(values[i], part.values if isinstance(part, Levels) else part.labels)
        if search.is_number[j]:
            own = slice(1, 1 + _AMOUNTS)
            values[:, own] = self.amounts.spread(j, search.quantiles[j])
            in_reach[:, own] = np.isfinite(values[:, own]) & ~np.isin(values[:, own], labels)
            step = np.sign(home[:, None] - values[:, own]).astype(np.intp)
            self.inner[:, places][:, own] += np.where(self.amounts.is_line[:, j, None], step, 0)
        in_reach[:, 0] = True
        prices = search.costs.of(j, np.broadcast_to(home[:, None], values.shape), values)
        return np.where(in_reach, prices, np.inf)

    def _terms(self) -> Floats:
        """Return what each place gives to the first layer, where a model adds up, (n, M, h)."""
        scores = self.search.scores
        if scores is None:
            return np.zeros(0)
        column_of = self.column_of
        sizes = np.diff(self.first)
        rows = np.repeat(self.home[:, None, :], int(sizes.max()), axis=1)
        at = np.arange(len(column_of)) - self.first[column_of]
        rows[:, at, column_of] = np.where(np.isfinite(self.prices), self.values, self.home[:, column_of])
        terms, _ = scores.terms(rows.reshape(-1, len(sizes)))
        return np.asarray(terms.reshape(*rows.shape, scores.width)[:, at, column_of])

    # ---- states ------------------------------------------------------------------------------------------------------
    def coordinates(self, who: Ints, states: States) -> Floats:
        """Return the states."""
        del who
        return states

    def each(self, who: Ints, states: States) -> Floats:
        """Return the price of each column of states, (B, d)."""
        return self.search.costs.table(self.home[who], states)

    def changed(self, who: Ints, states: States, places: Ints) -> States:
        """Return states (B, d) with one column each at the value of a place, (B,)."""
        return _with_values(states, self.column_of[places], self.values[who, places])

    def rows_near(self, i: int, count: int) -> States:
        """Return the cheapest rows of the data, with what is out of reach at the person's own."""
        search = self.search
        rows, places = search.rows, search.row_places
        is_out = (rows < self.amounts.lower[i]) | (rows > self.amounts.upper[i])
        is_out = np.where(places >= 0, np.isinf(self.prices[i, places]), is_out)
        rows = np.where(is_out, self.home[i], rows)
        order = np.argsort(search.costs.table(self.home[[i]], rows).sum(axis=1), kind="stable")[:count]
        rows, is_amount = rows[order], (places[order] < 0) & ~is_out[order]
        row, column = np.nonzero(is_amount)
        rows[row, column] = self.amounts.snapped(np.full(len(row), i), column, rows[row, column], np.rint)
        return np.asarray(rows)

    def partly_back(self, who: Ints, states: States, columns: Ints) -> States:
        """Return states with a number each half as far from the person."""
        at = np.arange(len(who))
        values = states[at, columns]
        is_line = self._is_line(who, columns, values)
        halves = np.where(is_line, (values + self.home[who, columns]) / 2.0, 0.0)
        halves = self.amounts.outward(who, columns, halves)
        return _with_values(states, columns, np.where(is_line, halves, values))

    def _is_line(self, who: Ints, columns: Ints, values: Floats) -> Bools:
        """Return which values, and all between them and the person's own, are amounts."""
        is_line = self.amounts.is_line[who, columns] & np.isfinite(values)
        for j in np.unique(columns).tolist():
            if len(self.search.labels[j]):
                own = columns == j
                is_line[own] &= ~np.isin(values[own], self.search.labels[j])
        return np.asarray(is_line)

    # ---- slacks ------------------------------------------------------------------------------------------------------
    def slacks(self, who: Ints, points: Floats) -> Floats:
        """Return by how much the model as read has points (B, d) beyond what is asked of their people."""
        return np.asarray(self.prepared.slacks(points) - self.need[who])

    def scan(self, who: Ints, states: States, wanted: Bools) -> tuple[Floats, Floats]:
        """Return the slack of states after each wanted change of one column (B, M), and without any (B,)."""
        found = np.full(wanted.shape, -np.inf)
        owner, place = np.nonzero(wanted)
        scores = self.search.scores
        if scores is None:
            own = self._scored(states)
            width = _AT_ONCE // self.home.shape[1]
        else:
            terms, rest = scores.terms(states)
            fed = terms.sum(axis=1) + rest
            own = scores.slacks(fed)
            width = _AT_ONCE // scores.width
        for k in range(0, len(owner), width):
            checkpoint(_SEARCHING)
            b, m = owner[k : k + width], place[k : k + width]
            if scores is None:
                slacks = self._scored(self.changed(who[b], states[b], m))
            else:
                slacks = scores.slacks(fed[b] - terms[b, self.column_of[m]] + self.terms[who[b], m])
            found[b, m] = slacks - self.need[who[b]]
        return found, own - self.need[who]

    def _scored(self, points: Floats) -> Floats:
        return slack(self.prepared.predictor, points, self.prepared.settings.target)

    def wanted(self, who: Ints, after: Floats, below: Floats) -> Bools:
        """Return the changes that are cheap enough, and those next to them on the way outward."""
        cheap = np.asarray(after < below[:, None])
        return cheap | (np.isfinite(after) & np.take_along_axis(cheap, self.inner[who], axis=1))

    def favourable(self, who: Ints, after: Floats, below: Floats, found: Floats) -> Floats:
        """Return the objective of each favourable change, or about that of the crossing before it; else infinite."""
        inner = self.inner[who]
        slack_in = np.take_along_axis(found, inner, axis=1)
        objectives = np.where(found >= 0.0, after, np.inf)
        b, m = np.nonzero((found >= 0.0) & (slack_in < 0.0) & np.isfinite(slack_in))
        low, high = self.values[who[b], inner[b, m]], self.values[who[b], m]
        share = slack_in[b, m] / (slack_in[b, m] - found[b, m])
        at = self.amounts.outward(who[b], self.column_of[m], low + share * (high - low))
        objectives[b, m] -= (high - at) / (high - low) * (after[b, m] - after[b, inner[b, m]])
        return np.where(objectives < below[:, None], objectives, np.inf)

    def tried(self, who: Ints, states: States, places: Ints, found: Floats) -> tuple[States, Bools]:
        """Return the states after a change each, as near as the crossing, and which of them the model favours."""
        at = np.arange(len(who))
        inner = self.inner[who, places]
        ends = np.stack([self.values[who, inner], self.values[who, places]])
        return self.at_crossing(
            who, states, self.column_of[places], ends, np.stack([found[at, inner], found[at, places]])
        )

    def is_favoured(self, who: Ints, states: States, slacks: Floats) -> Bools:
        """Return which states the model as read favours."""
        del slacks
        return np.asarray(self.slacks(who, states) >= 0.0)

    def merit(self, gain: Floats, added: Floats) -> Floats:
        """Return how good a change is: of those that gain as much for their price, a long one is better."""
        merit: Floats = (gain**_LONG / added).astype(np.float32)  # sums of many rows may end otherwise than of one
        return merit

    def at_crossing(
        self, who: Ints, states: States, columns: Ints, ends: Floats, slacks: Floats
    ) -> tuple[States, Bools]:
        """Return states with a column each at the crossing on a line, and which of them the model as read favours.

        ``ends``: values of which the first is not favourable and the second is, and their ``slacks``, (2, B) each. A
        line whose first end is favourable has no crossing; what is returned is its second.
        """
        ends, slacks = ends.copy(), slacks.copy()
        home = self.home[who, columns]
        open_ = np.flatnonzero((slacks[0] < 0.0) & np.isfinite(slacks[0]) & (slacks[1] >= 0.0))
        last = np.full(len(who), -1)
        for _ in range(_TRIED):
            (low, high), (miss, over) = ends[:, open_], slacks[:, open_]
            share = np.ceil(miss / (miss - over) / CROSSING_ROUNDING) * CROSSING_ROUNDING
            middle = self.amounts.outward(who[open_], columns[open_], low + share * (high - low))
            goes_on = (
                (middle != low) & (middle != high) & (np.abs(high - low) > CROSSING_FOUND * np.abs(high - home[open_]))
            )
            open_, middle = open_[goes_on], middle[goes_on]
            if not len(open_):
                break
            own = self.slacks(who[open_], _with_values(states[open_], columns[open_], middle))
            end = (own >= 0.0).astype(np.intp)
            stays = last[open_] == end  # the other end for a second time, whose weight is halved
            slacks[1 - end[stays], open_[stays]] /= 2.0
            ends[end, open_], slacks[end, open_], last[open_] = middle, own, end
        states = _with_values(states, columns, ends[1])
        return states, np.asarray(self.slacks(who, states) >= 0.0)

    # ---- the search --------------------------------------------------------------------------------------------------
    def settle(self, who: Ints) -> None:
        """Bring each number of the best points as near as the target allows, the dearest first."""
        states = np.array([self.cheapest(i, 1)[0] for i in who.tolist()])
        order = np.argsort(-self.each(who, states), axis=1, kind="stable")
        for k in range(min(_SETTLED, states.shape[1])):
            column = order[:, k]
            values = states[np.arange(len(who)), column]
            own = np.flatnonzero((values != self.home[who, column]) & self._is_line(who, column, values))
            if not len(own):
                continue
            person, column = who[own], column[own]
            ends = np.stack([self.home[person, column], values[own]])
            slacks = np.stack([self.slacks(person, _with_values(states[own], column, end)) for end in ends])
            nearer, good = self.at_crossing(person, states[own], column, ends, slacks)
            good[good] = self.keeps_rules(person[good], nearer[good])
            states[own[good]] = nearer[good]
        self.offer(who, states)


def _with_values(states: States, columns: Ints, values: Floats) -> States:
    """Return states (B, d) with one column each at a value, (B,)."""
    states = states.copy()
    states[np.arange(len(states)), columns] = values
    return states


def _least_slack(prepared: Prepared) -> float:
    """Return what is asked of a slack, of a model and settings with one person's margins."""
    if prepared.margin is None or (prepared.asks_model and prepared.margin == 0.0):
        return 0.0
    return prepared.margin * (1.0 + START_MARGIN_ROUNDING) + prepared.steps


@final
class _Amounts:
    """What some people's numbers may become, (n, d)."""

    def __init__(self, homes: Floats, parts: Sequence[Sequence[Interval | Levels]]) -> None:
        none = Interval(np.inf, -np.inf)
        flat = [part if isinstance(part, Interval) else none for own in parts for part in own]
        self.lower, self.upper, anchors, steps = np.array(
            [(part.lower, part.upper, part.anchor, part.step or 0.0) for part in flat]
        ).T.reshape(4, *homes.shape)
        self.is_stepped = steps > 0.0
        grid = decimal_grids(
            np.where(self.is_stepped, anchors, 0.0).ravel(), np.where(self.is_stepped, steps, 1.0).ravel()
        )
        self.grid = np.stack(grid).reshape(4, *homes.shape)
        #: Whether people's own values are amounts in reach; and they, or the amounts nearest to 0.
        self.is_line = (self.lower <= homes) & (homes <= self.upper) & np.isfinite(homes)
        self.base = np.where(self.is_line, homes, np.clip(0.0, self.lower, self.upper))

    def spread(self, j: int, quantiles: Floats) -> Floats:
        """Return amounts of a column for each person in order, each once, and infinite ones behind, (n, _AMOUNTS).

        They are the person's own, some of the data, and ever shorter ways to either end.
        """
        base, low, high = self.base[:, j, None], self.lower[:, j, None], self.upper[:, j, None]
        size = _FAR * np.maximum(np.abs(base), 1.0)
        low = np.where(np.isfinite(low), low, np.minimum(base - size, quantiles.min(initial=np.inf)))
        high = np.where(np.isfinite(high), high, np.maximum(base + size, quantiles.max(initial=-np.inf)))
        shares = 0.5 ** np.arange(_HALVED)
        data = np.tile(quantiles, (len(base), 1)) if len(quantiles) else np.repeat(base, _QUANTILES, axis=1)
        with np.errstate(invalid="ignore"):
            values = np.concatenate([base, base + (low - base) * shares, base + (high - base) * shares, data], axis=1)
        values = np.where(np.isfinite(values), values, base)
        who = np.repeat(np.arange(len(base)), values.shape[1])
        values = np.sort(self.snapped(who, np.full(len(who), j), values.ravel(), np.rint).reshape(values.shape), axis=1)
        values[:, 1:][values[:, 1:] == values[:, :-1]] = np.inf
        return np.sort(values, axis=1)

    def snapped(self, who: Ints, columns: Ints, values: Floats, rounded: Callable[[Floats], Floats]) -> Floats:
        """Return the amounts in reach next to values, (B,)."""
        low, high = self.lower[who, columns], self.upper[who, columns]
        values = np.clip(values, low, high)
        grid = DecimalGrid(*self.grid[:, who, columns])
        with np.errstate(invalid="ignore"):
            members = np.clip(grid.many(rounded((values - grid.anchor) * grid.scale / grid.step)), low, high)
        return np.where(self.is_stepped[who, columns] & np.isfinite(members), members, values)

    def outward(self, who: Ints, columns: Ints, values: Floats) -> Floats:
        """Return the amounts next to values (B,) on the far side from their people."""
        up = self.snapped(who, columns, values, _up)
        return np.where(values > self.base[who, columns], up, self.snapped(who, columns, values, _down))


def _up(counts: Floats) -> Floats:
    return np.ceil(counts - STEP_ROUNDING)


def _down(counts: Floats) -> Floats:
    return np.floor(counts + STEP_ROUNDING)
