"""People who are searched for together in arrays, whatever the model: near points of each, without a program.

A point is a *state*, one entry a column, and belongs to one of the people, whom ``who`` numbers. Of each column there
are *places*, values that a person may take; the places of all columns stand side by side, M of them. The search

1. *climbs* from the person, taking the change of a column with the best min(gain, need) * taste / price added;
2. starts from the cheapest favourable rows of the data too, with what is out of reach put back;
3. *lowers* what it has: the change of a column toward the person that saves most and stays favourable;
4. *swaps*: one change is taken back, wholly or in part, and others made, if that is cheaper.

Nobody's points depend on who is searched for beside them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.deadline import OutOfTimeError
from ceopt.tolerances import CHEAPER_START

if TYPE_CHECKING:
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.prepare import Prepared
    from ceopt.settings import CheckedSettings
    from ceopt.solvers.checks import Floats

Ints: TypeAlias = NDArray[np.intp]
Bools: TypeAlias = NDArray[np.bool_]
#: One entry a column, of a type that the search has.
States: TypeAlias = NDArray[Any]
#: Coordinates of a person, and what each column may become.
Person: TypeAlias = "tuple[Mapping[str, float], Reach]"

#: Spread of a taste as the standard deviation of a logarithm.
_TASTE: Final = 1.0
#: Changes of a climb, and rounds of lowering and of swapping.
_STEPS, _LOWERED, _SWAPPED = 8, 12, 6
#: Rows of the data that a person's search begins from, and how many where nothing was met.
_ROWS, _MORE_ROWS = 3, 40
#: How many changes of a state are held against the rules, and against slow ones, the cheapest first.
_HELD, _HELD_SLOWLY = 60, 3
#: Points that are kept of a person.
_KEPT: Final = 4
#: Points of a person that slow rules are asked about, which take a few linear programs each.
_SLOWLY: Final = 80
#: Points of a person that rules may refuse, where none was kept: a program that is to follow knows what they allow.
_REFUSED: Final = 1000
SEARCHING: Final = "looking for near points"


@final
@dataclass(frozen=True, slots=True)
class Met:
    """What a search met for a person.

    Parameters
    ----------
    bound
        No answer has a lower objective; infinite where there is none.
    points
        Coordinates (k, d) that the model favours and that keep the rules, cheapest first.
    """

    bound: float
    points: Floats


def takes_sums(settings: CheckedSettings, space: FeatureSpace) -> bool:
    """Whether an objective is a sum over the columns, which the rules leave as they are, and the rules are quick."""
    if not settings.cost.additive or settings.cost.is_joint:
        return False
    return not any(rule.mends or rule.unpriced(space) or rule.slow or rule.is_large for rule in settings.rules)


def tastes_of(prepared: Prepared, count: int) -> Floats:
    """Return factors by which climbs differ, (count, d)."""
    rng = np.random.default_rng(prepared.settings.random_state)
    return np.exp(_TASTE * rng.normal(size=(count, len(prepared.space.names))))


def favourable_rows(prepared: Prepared, most: int) -> Floats:
    """Return rows of the data that the model favours, at most so many, in coordinates (r, d)."""
    rows = prepared.target_rows
    if rows is None:
        return np.zeros((0, len(prepared.space.names)))
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng(prepared.settings.random_state)
    return np.asarray(rows[np.sort(rng.choice(len(rows), most, replace=False))])


class AbstractNearPeople(ABC):
    """People who are searched for together.

    Parameters
    ----------
    prepared
        Model and settings.
    people
        The people, n of them.
    tastes
        Factors by which climbs differ, (K, d).
    column_of
        The column of each place, ascending, (M,).
    prices
        What each place costs each person, infinite where it is out of reach, (n, M).
    home
        The people's own states, (n, d).
    """

    #: How many changes are made for one that is taken back.
    remade: int = 1
    #: Changes of a climb of which nothing is met.
    most_steps: ClassVar[int] = _STEPS
    #: Rows of the data that the search begins from where something was met, and points of a person that are swapped.
    first_rows: ClassVar[int] = _ROWS
    improved: int = 1

    def __init__(
        self,
        prepared: Prepared,
        people: Sequence[Person],
        *,
        tastes: Floats,
        column_of: Ints,
        prices: Floats,
        home: States,
    ) -> None:
        self.prepared = prepared
        self.people = people
        self.tastes = tastes
        self.column_of = column_of
        self.prices = prices
        self.home = home
        settings = prepared.settings
        #: Whether rules move what they find, so that a state's coordinates follow from it.
        self.is_mended = any(rule.mends for rule in settings.rules)
        #: Whether an objective may be another than the sum of a state's prices.
        self.is_joint = settings.cost.is_joint or self.is_mended
        self.is_slow = any(rule.slow for rule in settings.rules)
        #: How many points slow rules may still be asked about.
        self.slowly = _SLOWLY * len(people)
        #: How many points rules have refused, as long as they have kept none.
        self.refused = 0.0
        rules = sorted(settings.rules, key=attrgetter("slow"))
        #: Who tells which points of a person keep each rule, the slow last.
        self.judges = [[rule.judge(prepared.space, factual) for rule in rules] for factual, _ in people]
        #: No answer has a lower objective.
        self.bounds = np.zeros(len(people))
        #: How many answers are wanted of each, and how many of them are to come from here: no further ones of a proof.
        self.count = prepared.settings.n
        self.count_here = 1 if prepared.settings.proof else self.count
        #: Objective of the cheapest point met so far, and of the last one that is wanted, below which others are.
        self.best = np.full(len(people), np.inf)
        self.most = self.best.copy()
        #: Objective and state of the cheapest point of each person and set of changed columns, written as bits.
        self.points: list[dict[int, tuple[float, States]]] = [{} for _ in people]
        #: Slacks nearer to 0 are not sure, nor is a gain that is less.
        self.unsure = 0.0

    # ---- what differs by model ---------------------------------------------------------------------------------------
    @abstractmethod
    def coordinates(self, who: Ints, states: States) -> Floats:
        """Return the coordinates (B, d) of states."""

    @abstractmethod
    def each(self, who: Ints, states: States) -> Floats:
        """Return the price of each column of states, (B, d)."""

    @abstractmethod
    def changed(self, who: Ints, states: States, places: Ints) -> States:
        """Return states (B, d) with one column each at a place, (B,)."""

    @abstractmethod
    def scan(self, who: Ints, states: States, wanted: Bools) -> tuple[Floats, Floats]:
        """Return the slack of states after each wanted change of one column (B, M), and without any (B,)."""

    @abstractmethod
    def rows_in_reach(self, i: int) -> States:
        """Return the rows of the data, with what is out of reach at the person's own."""

    @abstractmethod
    def partly_back(self, who: Ints, states: States, columns: Ints) -> States:
        """Return states with one column each nearer to the person."""

    def begin(self, who: Ints) -> None:
        """Climb from each person."""
        self.climb_from_home(who, np.ones((1, self.home.shape[1])))

    def look_at(self, who: Ints, below: Floats) -> None:
        """Look from now on at these alone, each below a limit on the objective, (B,)."""

    @property
    def most_climbs(self) -> int:
        """How many climbs by tastes are worth it."""
        return len(self.tastes)

    def look_nearer(self) -> None:
        """Look at what is below the best points met alone, where that is worth it."""

    def wanted(self, who: Ints, after: Floats, below: Floats) -> Bools:
        """Return which changes are worth scanning, if objectives have to be below a limit each, (B,)."""
        del who
        return np.asarray(after < below[:, None])

    def favourable(self, who: Ints, after: Floats, below: Floats, found: Floats) -> Floats:
        """Return the objective of each change below a limit that the model seems to favour, infinite elsewhere."""
        return np.where(self.wanted(who, after, below) & (found >= -self.unsure), after, np.inf)

    def tried(self, who: Ints, states: States, places: Ints, found: Floats) -> tuple[States, Bools]:
        """Return the states after a change each, and which of them the model favours, by the slacks (B, M)."""
        states = self.changed(who, states, places)
        return states, self.is_favoured(who, states, found[np.arange(len(who)), places])

    def is_favoured(self, who: Ints, states: States, slacks: Floats) -> Bools:
        """Return which states the model favours; where sums are unsure the model as read is asked."""
        favoured = slacks > self.unsure
        unsure = np.flatnonzero(np.abs(slacks) <= self.unsure)
        if len(unsure):
            points = self.coordinates(who[unsure], states[unsure])
            favoured[unsure] = self.prepared.slacks_beyond(points, self.prepared.margin) >= 0.0
        return favoured

    def settle(self, who: Ints) -> None:
        """Improve the best points further."""

    def merit(self, gain: Floats, added: Floats) -> Floats:
        """Return how good a change is that gains slack at a price."""
        return gain / added

    # ---- the search --------------------------------------------------------------------------------------------------
    def met(self) -> list[Met]:
        """Return what is met for each person."""
        everybody = np.flatnonzero(np.isfinite(self.bounds))
        try:
            if self.is_slow:
                self.begin_from_rows(everybody, self.first_rows)
            self.begin(everybody)
            self.begin_from_rows(self.open(everybody), self.first_rows)
            self.look_at(everybody, self.most[everybody])
            self.climb_from_home(self.open(everybody), self.tastes[: self.most_climbs])
            self.swap(self.open(everybody))
            left = everybody[np.isinf((self.best if self.count_here == 1 else self.most)[everybody])]
            if len(left):
                self.look_at(left, self.most[left])
                self.begin_from_rows(left, _MORE_ROWS)
        except OutOfTimeError:  # what was met by then stays
            pass
        return [self._met(i) for i in range(len(self.people))]

    def _met(self, i: int) -> Met:
        states = self.cheapest(i, _KEPT if self.count == 1 else None)
        points = [self.coordinates(np.array([i]), state[None, :])[0] for state in states]
        return Met(float(self.bounds[i]), np.array(points).reshape(-1, self.home.shape[1]))

    def cheapest(self, i: int, most: int | None) -> list[States]:
        """Return the cheapest points of a person, each with another set of changed columns."""
        return [state for _, state in sorted(self.points[i].values(), key=itemgetter(0))[:most]]

    def open(self, who: Ints) -> Ints:
        """Return those whose best point a bound does not prove yet, or of whom more is wanted."""
        enough = self.bounds[who] * (1.0 + self.prepared.settings.relative_gap)
        return who[(self.best[who] > enough) | (self.count_here > 1)]

    def objectives(self, who: Ints, states: States) -> Floats:
        """Return the objective of states, (B,)."""
        if not self.is_joint:
            return np.asarray(self.each(who, states).sum(axis=1))
        found = np.zeros(len(who))
        for i in np.unique(who).tolist():
            own = np.flatnonzero(who == i)
            points = self.coordinates(who[own], states[own])
            found[own] = self.prepared.settings.cost.objectives(self.prepared.space, self.people[i][0], points)
        return found

    def after(self, who: Ints, states: States) -> Floats:
        """Return the objective of states after every change of one column, (B, M), infinite where one is no way."""
        if not self.is_joint:
            each = self.each(who, states)
            others = each.sum(axis=1)[:, None] - each
            return np.asarray(others[:, self.column_of] + self.prices[who])
        found = np.full(self.prices[who].shape, np.inf)
        of, place = np.nonzero(np.isfinite(self.prices[who]))
        found[of, place] = self.objectives(who[of], self.changed(who[of], states[of], place))
        return found

    def keep(self, who: Ints, states: States, objectives: Floats, found: Floats) -> States:
        """Keep of each state the cheapest change of those that may be taken; return the states after it.

        Objectives, as :meth:`favourable` gives them, are infinite at what may not be taken.
        """
        if self.count > 1:
            self.keep_by_column(who, states, objectives, found)
        open_ = objectives.copy()
        after = states.copy()
        left = np.arange(len(who))
        taken = np.zeros(len(who), dtype=bool)
        asked = np.zeros(len(who), dtype=np.intp)
        for _ in range(_HELD):
            places = open_[left].argmin(axis=1)
            there = np.isfinite(open_[left, places])
            left, places = left[there], places[there]
            if not len(left):
                break
            trials, kept = self.tried(who[left], states[left], places, found[left])
            if self.is_slow:
                kept[kept] = self.may_keep_rules(who[left[kept]], trials[kept])
                asked[left[kept]] += 1
            kept[kept] = self._keeps_when_asked(who[left[kept]], trials[kept])
            after[left[kept]] = trials[kept]
            taken[left[kept]] = True
            open_[left[~kept], places[~kept]] = np.inf
            left = left[~kept & (asked[left] < _HELD_SLOWLY)]
        self.offer(who[taken], after[taken])
        return after

    def keep_by_column(self, who: Ints, states: States, objectives: Floats, found: Floats) -> None:
        """Keep of each state the cheapest change of every column, with which other columns are changed."""
        firsts = np.flatnonzero(np.diff(self.column_of, prepend=-1))
        ends = [*firsts[1:].tolist(), len(self.column_of)]
        parts = zip(firsts.tolist(), ends, strict=True)
        places = np.stack([first + objectives[:, first:end].argmin(axis=1) for first, end in parts], axis=1)
        of, column = np.nonzero(np.take_along_axis(objectives, places, axis=1) < self.most[who][:, None])
        trials, kept = self.tried(who[of], states[of], places[of, column], found[of])
        kept[kept] = self.keeps_rules(who[of[kept]], trials[kept])
        self.offer(who[of[kept]], trials[kept])

    def may_keep_rules(self, who: Ints, states: States) -> Bools:
        """Return which states nothing that slow rules have seen shows to break them."""
        kept = np.ones(len(who), dtype=bool)
        points = self.coordinates(who, states)
        for i in np.unique(who).tolist():
            own = np.flatnonzero(who == i)
            for judge in self.judges[i]:
                if judge.rule.slow:
                    kept[own] &= judge.may_keep(points[own])
        return kept

    def keeps_rules(self, who: Ints, states: States) -> Bools:
        """Return which states keep the rules; slow ones are asked of what nothing shows to break them."""
        kept = self.may_keep_rules(who, states) if self.is_slow else np.ones(len(who), dtype=bool)
        kept[kept] = self._keeps_when_asked(who[kept], states[kept])
        return kept

    def _keeps_when_asked(self, who: Ints, states: States) -> Bools:
        kept = np.ones(len(who), dtype=bool)
        for i in np.unique(who).tolist() if self.prepared.settings.rules else ():
            own = np.flatnonzero(who == i)
            points = self.coordinates(who[own], states[own])
            keeps = self._are_in_reach(points, self.people[i][1]) if self.is_mended else np.ones(len(own), dtype=bool)
            for judge in self.judges[i]:
                if judge.rule.slow:
                    self.slowly -= int(keeps.sum())
                    if self.slowly < 0:
                        raise OutOfTimeError(SEARCHING)
                if not keeps.any():
                    break
                keeps[keeps] = judge.keeps(points[keeps])
            kept[own] = keeps
        self.refused = -math.inf if kept.any() else self.refused + len(who)
        if self.refused > _REFUSED and self.prepared.settings.proof:
            raise OutOfTimeError(SEARCHING)
        return kept

    def _are_in_reach(self, points: Floats, reach: Reach) -> Bools:
        """Return which points (n, d) are in a person's reach."""
        kept = np.ones(len(points), dtype=bool)
        for j, name in enumerate(self.prepared.space.names):
            values, at = np.unique(points[:, j], return_inverse=True)
            kept &= np.array(list(map(reach[name].holds, values.tolist())), dtype=bool)[at]
        return kept

    def offer(self, who: Ints, states: States) -> None:
        """Take states that are the cheapest of their person with these columns changed."""
        objectives = self.objectives(who, states)
        sets = np.packbits(states != self.home[who], axis=1)
        for i, state, own, objective in zip(who.tolist(), states, sets, objectives.tolist(), strict=True):
            changed = int.from_bytes(own.tobytes(), "big")
            known = self.points[i].get(changed, (math.inf, state))[0]
            if changed and objective < known * (1.0 - CHEAPER_START):
                self.points[i][changed] = (objective, state)
                self.best[i] = min(self.best[i], objective)
                self.most[i] = self.best[i] if self.count == 1 else self._last_wanted(i)

    def _last_wanted(self, i: int) -> float:
        """Return the objective of the last point that is wanted, of those that change no other's columns and more."""
        is_any = self.prepared.settings.diversity is None
        taken: list[int] = []
        for objective, changed in sorted((objective, changed) for changed, (objective, _) in self.points[i].items()):
            if is_any or all(one & changed != one for one in taken):
                taken.append(changed)
                if len(taken) == self.count:
                    return objective
        return math.inf

    def climb_from_home(self, who: Ints, tastes: Floats) -> None:
        """Climb from each person once for each taste (K, d)."""
        owners = np.tile(who, len(tastes))
        self.climb(owners, self.home[owners], np.repeat(tastes, len(who), axis=0), _STEPS)

    def climb(self, who: Ints, states: States, taste: Floats, steps: int, limits: Floats | None = None) -> None:
        """Climb from states, each by a taste of its own, (B, d); all that may be taken on the way is kept.

        That costs less than a limit each, (B,), or than what is wanted of a person.
        """
        slacks = np.full(len(who), np.nan)
        for step in range(max(steps, self.most_steps) if limits is None else steps):
            if not len(who):
                return
            if limits is None:
                self.look_nearer()
            after = self.after(who, states)
            below = (self.most[who] if limits is None else limits) * (1.0 - CHEAPER_START)
            wanted = self.wanted(who, after, below)
            found, own = self.scan(who, states, wanted)
            if step == 0:
                slacks = own
            self.keep(who, states, self.favourable(who, after, below, found), found)
            with np.errstate(invalid="ignore"):  # where no score has the label, both are infinite
                gain = np.minimum(found, 0.0) - slacks[:, None]
            added = np.maximum(after - self.objectives(who, states)[:, None], CHEAPER_START)
            useful = wanted & (after < below[:, None]) & (found < -self.unsure) & (gain > self.unsure)
            merit = np.full(after.shape, -np.inf)
            merit[useful] = self.merit(gain[useful], added[useful])
            merit *= taste[:, self.column_of]
            places = merit.argmax(axis=1)
            go = np.isfinite(merit[np.arange(len(who)), places])
            if step >= steps - 1:
                go &= np.isinf(self.best[who])
            slacks = found[np.arange(len(go)), places][go]
            states = self.changed(who, states, places)[go]
            who, taste = who[go], taste[go]
            limits = None if limits is None else limits[go]

    def begin_from_rows(self, who: Ints, count: int) -> None:
        """Begin from the cheapest rows of the data, with what is out of reach at the person's own."""
        near = []
        for i in who.tolist():
            states = self.rows_in_reach(i)
            objectives = self.objectives(np.full(len(states), i), states)
            states = states[np.argsort(objectives, kind="stable")]
            near.append(self._first_kept(i, states) if self.is_slow else states[:count])
        if near:
            self.lower(np.repeat(who, list(map(len, near))), np.concatenate(near))

    def _first_kept(self, i: int, states: States) -> States:
        """Return the first states that the model favours and that keep the rules, which are asked one by one."""
        who = np.full(len(states), i)
        states = states[self.is_favoured(who, states, np.zeros(len(states)))]
        kept: list[States] = []
        for k in range(min(len(states), _HELD)):
            kept += [states[k]] if self.keeps_rules(who[:1], states[k : k + 1])[0] else []
            if len(kept) == self.first_rows:
                break
        return np.array(kept).reshape(-1, states.shape[1])

    def lower(self, who: Ints, states: States) -> None:
        """Take the largest saving by one column brought nearer, as long as the target is kept."""
        for step in range(_LOWERED):
            if not len(who):
                return
            after = self.after(who, states)
            below = self.objectives(who, states) * (1.0 - CHEAPER_START)
            found, own = self.scan(who, states, self.wanted(who, after, below))
            if step == 0:
                good = self.is_favoured(who, states, own)
                good[good] = self.keeps_rules(who[good], states[good])
                self.offer(who[good], states[good])
            lowered = self.keep(who, states, self.favourable(who, after, below, found), found)
            go = (lowered != states).any(axis=1)
            states, who = lowered[go], who[go]

    def swap(self, who: Ints) -> None:
        """From the cheapest points of each, take one change back, wholly or in part, and make others."""
        most = max(self.improved, self.count_here)
        done: set[tuple[int, bytes]] = set()
        for step in range(_SWAPPED):
            pairs = [(i, state) for i in who.tolist() for state in self.cheapest(i, most)]
            pairs = [(i, state) for i, state in pairs if (i, state.tobytes()) not in done]
            if not pairs:
                return
            done.update((i, state.tobytes()) for i, state in pairs)
            owners = np.array([i for i, _ in pairs])
            points = np.array([state for _, state in pairs])
            costs = self.objectives(owners, points)
            if step == 0:
                self.look_at(owners, costs)
            at, column = np.nonzero(points != self.home[owners])
            back = points[at]
            back[np.arange(len(at)), column] = self.home[owners[at], column]
            states = np.concatenate([points, back, self.partly_back(owners[at], points[at], column)])
            of = np.concatenate([np.arange(len(owners)), at, at])
            is_there = np.isfinite(self.each(owners[of], states)).all(axis=1)
            states, of = states[is_there], of[is_there]
            self.climb(owners[of], states, np.ones(states.shape), self.remade, costs[of])
            self.settle(np.unique(owners))
