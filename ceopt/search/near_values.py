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

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from ceopt.formulations.constraints.rule import mended_points, overrides
from ceopt.formulations.costs.base import prices_of
from ceopt.formulations.predictors.leaf_boxes import leaf_boxes, values_of_cells
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.predictors.representation import AbstractLayers, of_one
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import DecimalGrid, Interval, Levels, decimal_grids
from ceopt.formulations.tolerances import TINY
from ceopt.search.near_people import (
    SEARCHING,
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
from ceopt.search.near_points import NearSearch
from ceopt.search.solve_program import IS_KEPT
from ceopt.solvers.deadline import OutOfTimeError, checkpoint, until
from ceopt.tolerances import CROSSING_FOUND, CROSSING_ROUNDING, START_MARGIN_ROUNDING, STEP_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Reach
    from ceopt.search.prepare import Prepared
    from ceopt.solvers.checks import Floats

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
#: Points of a person that are swapped where scores change from cell to cell alone.
_IMPROVED: Final = 4
#: People who are searched for together.
_TOGETHER: Final = 32
#: Points that a model is asked about at once; points times trees in all, about two seconds, and what stands for the
#: trees of a model that has none.
_SCORED, _WORK, _NETWORK = 4000, 20_000_000, 20
#: Rows of the data by which the slacks of several models are put into one unit.
_MEASURED: Final = 200
#: Coordinates -> slacks.
SlackOf: TypeAlias = "Callable[[Floats], Floats]"


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
    """Near points of any model, which is asked for its scores.

    Parameters
    ----------
    prepared
        Model and settings.
    slack_of
        Coordinates (n, d) -> by how much points are beyond what is asked, (n,); else that is a target's margin.
    """

    def __init__(self, prepared: Prepared, slack_of: SlackOf | None = None) -> None:
        self.prepared = prepared
        self.slack_of = slack_of
        settings = prepared.settings
        space = prepared.space
        predictor = prepared.predictor
        is_added_up = isinstance(predictor.core, AbstractLayers) and not predictor.encoding.is_wide
        can_add_up = (
            is_added_up
            and slack_of is None
            and not any(rule.mends or overrides(rule, "stand_ins") for rule in settings.rules)
        )
        self.scores = _Scores(predictor, settings.target) if can_add_up else None
        self.tastes = tastes_of(prepared, _CLIMBS)
        self.costs = _ColumnPrices(prepared)
        #: Rows of the data that the model favours, and by column some of their amounts.
        self.rows = np.unique(favourable_rows(prepared, _SAMPLED), axis=0)
        self.quantiles = [self._quantiles(j, feature) for j, feature in enumerate(space)]
        #: By column its levels, or what else a number may be than an amount.
        self.labels = [_labels(feature) for feature in space]
        places = sum(map(len, self.labels)) + _AMOUNTS * len(self.labels)
        #: How many people are searched for together; one, where points are counted.
        self.width = 1
        if self.scores is not None and takes_sums(settings, space):
            self.width = max(1, min(_TOGETHER, _AT_ONCE // (self.scores.width * places)))

    def _quantiles(self, j: int, feature: Feature) -> Floats:
        values = self.rows[:, j]
        values = values[~feature.are_labels(values)]
        if feature.is_finite or not len(values):
            return np.zeros(0)
        return np.asarray(np.quantile(values, np.linspace(0.0, 1.0, _QUANTILES), method="nearest"))

    def run(self, people: Sequence[Person], fitted: Prepared | None = None) -> list[Met]:
        """Return what is met for people, each given in coordinates and with their reach; or for one, with margins."""
        found: list[Met] = []
        for k in range(0, len(people), self.width):
            found += _ValuePeople(self, people[k : k + self.width], fitted).met()
        return found


def met_alone(
    search: NearSearch | NearValues, prepared: Prepared, person: Person, deadlines: tuple[float, float]
) -> Met:
    """Return what is met near one person until the first deadline; until the second, where nothing is by then."""
    found = Met(0.0, np.zeros((0, len(prepared.space.names))))
    for deadline in deadlines:
        try:
            with until(deadline):
                (found,) = search.run([person]) if isinstance(search, NearSearch) else search.run([person], prepared)
        except OutOfTimeError:  # not even the leaves are read
            continue
        if len(found.points) or time.perf_counter() < deadline:
            break
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
    most_steps = 60

    def __init__(self, search: NearValues, people: Sequence[Person], fitted: Prepared | None = None) -> None:
        prepared = search.prepared
        space = prepared.space
        homes = np.array([[factual[name] for name in space.names] for factual, _ in people])
        self.search = search
        self.models = _Models(prepared, people[0][1])
        self.amounts = _Amounts(homes, [[reach[name] for name in space.names] for _, reach in people])
        columns = [self._laid_out(j, feature, homes[:, j], people) for j, feature in enumerate(space)]
        self.values, prices, inner = (np.concatenate(parts, axis=1) for parts in zip(*columns, strict=True))
        sizes = np.array([own.shape[1] for own, _, _ in columns])
        #: The place next to a number's on the way to the person; elsewhere the place itself.
        self.inner = np.arange(len(inner[0])) + inner
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        column_of = np.repeat(np.arange(len(sizes)), sizes)
        super().__init__(prepared, people, tastes=search.tastes, column_of=column_of, prices=prices, home=homes)
        self.improved = 1 if self.models.crosses and not self.is_joint else _IMPROVED
        #: The least slack that is asked of each person's points.
        self.need = np.array([_least_slack(fitted or prepared.for_person(*person)) for person in people])
        self.terms = self._terms()

    def _laid_out(
        self, j: int, feature: Feature, home: Floats, people: Sequence[Person]
    ) -> tuple[Floats, Floats, Ints]:
        """Return a column's places: own value, amounts in order, and what is no amount; prices, and steps inward."""
        search = self.search
        labels = search.labels[j]
        amounts = np.zeros((len(people), 0))
        if not feature.is_finite:
            amounts = self.models.cells(feature, people)
            if self.models.crosses:
                amounts = _in_order(np.hstack([amounts, self.amounts.spread(j, search.quantiles[j])]))
        values = np.hstack([home[:, None], amounts, np.tile(labels, (len(people), 1))])
        in_reach = np.isfinite(values) & ~np.isin(values, labels)
        for i, (_, reach) in enumerate(people if len(labels) else ()):
            part = reach[feature.name]
            in_reach[i, -len(labels) :] = np.isin(labels, part.values if isinstance(part, Levels) else part.labels)
        in_reach[:, 0] = True
        steps = np.zeros(values.shape, dtype=np.intp)
        own = slice(1, 1 + amounts.shape[1])
        is_line = self.amounts.is_line[:, j, None] & self.models.crosses
        from_home = (home[:, None] > amounts).astype(np.intp) - (home[:, None] < amounts)  # both are infinite in gaps
        steps[:, own] = np.where(is_line, from_home, 0)
        prices = search.costs.of(j, np.broadcast_to(home[:, None], values.shape), values)
        return values, np.where(in_reach, prices, np.inf), steps

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
        """Return the states, as the rules mend them."""
        if not self.is_mended:
            return states
        points = states.copy()
        for i in np.unique(who).tolist():
            rules, space = self.prepared.settings.rules, self.prepared.space
            points[who == i] = mended_points(rules, space, self.people[i][0], states[who == i])
        return points

    def each(self, who: Ints, states: States) -> Floats:
        """Return the price of each column of states, (B, d)."""
        return self.search.costs.table(self.home[who], states)

    def changed(self, who: Ints, states: States, places: Ints) -> States:
        """Return states (B, d) with one column each at the value of a place, (B,)."""
        return _with_values(states, self.column_of[places], self.values[who, places])

    def rows_in_reach(self, i: int) -> States:
        """Return the rows of the data, with what is out of reach at the person's own."""
        rows = self.search.rows.copy()
        for j, labels in enumerate(self.search.labels):
            own, home = rows[:, j], self.home[i, j]
            places = slice(int(self.first[j]), int(self.first[j + 1]))
            there = self.values[i, places][np.isfinite(self.prices[i, places])]
            is_label = np.isin(own, labels)
            is_in = np.where(
                is_label, np.isin(own, there), (self.amounts.lower[i, j] <= own) & (own <= self.amounts.upper[i, j])
            )
            own[~is_in] = home
            amount = np.flatnonzero(is_in & ~is_label)
            own[amount] = self.amounts.snapped(np.full(len(amount), i), np.full(len(amount), j), own[amount], np.rint)
        return rows

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
    def slacks(self, who: Ints, states: States) -> Floats:
        """Return by how much states (B, d) are beyond what is asked of their people, by the models as read."""
        points = self.coordinates(who, states)
        if self.search.slack_of is None:
            return self.models.together(self.prepared.slacks(points) - self.need[who], points)
        return self.models.together(self.search.slack_of(points), points)

    def scan(self, who: Ints, states: States, wanted: Bools) -> tuple[Floats, Floats]:
        """Return the slack of states after each wanted change of one column (B, M), and without any (B,)."""
        found = np.full(wanted.shape, -np.inf)
        owner, place = np.nonzero(wanted)
        scores = self.search.scores
        if scores is None:
            own = self.slacks(who, states)
            width = _SCORED
        else:
            terms, rest = scores.terms(states)
            fed = terms.sum(axis=1) + rest
            own = scores.slacks(fed) - self.need[who]
            width = _AT_ONCE // scores.width
        for k in range(0, len(owner), width):
            checkpoint(SEARCHING)
            b, m = owner[k : k + width], place[k : k + width]
            if scores is None:
                self.models.count(len(b))
                found[b, m] = self.slacks(who[b], self.changed(who[b], states[b], m))
            else:
                fed_after = fed[b] - terms[b, self.column_of[m]] + self.terms[who[b], m]
                found[b, m] = scores.slacks(fed_after) - self.need[who[b]]
        return found, own

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
        """Bring each number of the best points as near as the target allows, the dearest first; none of trees."""
        if not self.models.crosses:
            return
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
class _Models:
    """Models whose cells are looked at, and those that have to decide so beside the one that is asked about."""

    def __init__(self, prepared: Prepared, reach: Reach) -> None:
        predictor, space = prepared.predictor, prepared.space
        rules = prepared.settings.rules
        nearest = [part for rule in rules if not rule.is_large for part in rule.stand_ins(reach)]
        beside = [part for rule in rules if rule.is_large for part in rule.stand_ins(reach)]
        looked_at = [*(nearest or [predictor]), *beside]
        self.boxes = [leaf_boxes(forest) for model in looked_at for forest in model.forests]
        #: Whether scores change along a column, and not from cell to cell alone.
        self.crosses = not all(model.is_trees for model in looked_at)
        self.others = [(part, [space.names.index(name) for name in part.space.names]) for part in (*nearest, *beside)]
        rows = favourable_rows(prepared, _MEASURED) if self.others else np.zeros((0, len(space)))
        self.units = [max(float(np.abs(own).mean()), TINY) if len(rows) else 1.0 for own in self._each(rows)]
        self.unit = max(float(np.abs(prepared.slacks(rows)).mean()), TINY) if len(rows) else 1.0
        self.left = _WORK // max(sum(len(np.unique(boxes.tree)) for boxes in self.boxes), _NETWORK)

    def _each(self, points: Floats) -> list[Floats]:
        return [slack(part, points[:, places], IS_KEPT) for part, places in self.others]

    def together(self, own: Floats, points: Floats) -> Floats:
        """Return what all models lack together, each in units of its slack in a sample; if nothing, the least slack."""
        if not self.others:
            return own
        others = [each / unit for each, unit in zip(self._each(points), self.units, strict=True)]
        each = np.stack([own / self.unit, *others])
        least: Floats = each.min(axis=0)
        return np.where(least >= 0.0, least, np.minimum(each, 0.0).sum(axis=0))

    def count(self, points: int) -> None:
        """Count points that are scored; where they are too many the search ends, whatever else the machine does."""
        self.left -= points
        if self.left < 0:
            raise OutOfTimeError(SEARCHING)

    def cells(self, feature: Feature, people: Sequence[Person]) -> Floats:
        """Return of each cell of a column the value nearest to each person, in order, infinite ones behind."""
        if not self.boxes:
            return np.zeros((len(people), 0))
        name = feature.name
        each = [values_of_cells(self.boxes, feature, factual[name], reach[name]) for factual, reach in people]
        found = np.full((len(people), max(map(len, each))), np.inf)
        for row, own in zip(found, each, strict=True):
            row[: len(own)] = own
        return found


def _in_order(values: Floats) -> Floats:
    """Return values in order, each once, and infinite ones behind."""
    values = np.sort(values, axis=1)
    values[:, 1:][values[:, 1:] == values[:, :-1]] = np.inf
    return np.sort(values, axis=1)


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
        shares = 0.5 ** np.arange(_HALVED)
        data = np.tile(quantiles, (len(base), 1)) if len(quantiles) else np.repeat(base, _QUANTILES, axis=1)
        with np.errstate(invalid="ignore"):  # of who has no amount in reach nothing is finite
            low = np.where(np.isfinite(low), low, np.minimum(base - size, quantiles.min(initial=np.inf)))
            high = np.where(np.isfinite(high), high, np.maximum(base + size, quantiles.max(initial=-np.inf)))
            values = np.concatenate([base, base + (low - base) * shares, base + (high - base) * shares, data], axis=1)
        values = np.where(np.isfinite(values), values, base)
        who = np.repeat(np.arange(len(base)), values.shape[1])
        return _in_order(self.snapped(who, np.full(len(who), j), values.ravel(), np.rint).reshape(values.shape))

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
