"""Points that keep rules which are stated by counterexamples, found without a solver.

Where each counterexample is a box, the cheapest point off all boxes known is branched for, column by column. A move of
one column or two brings any other point nearer.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, final

import numpy as np

from ceopt.formulations.predictors.raw_trees import keys_in_reach
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.space.space import point_row
from ceopt.tolerances import EQUAL_COSTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.settings import CheckedSettings

Point: TypeAlias = Mapping[str, float]
#: The cost of a known feasible point, and the point.
Start: TypeAlias = tuple[float, dict[str, float]]
#: Points times values times columns that branching asks about, and the fewest points: not for so long, but so many, so
#: that a search is the same whatever else the machine does.
_BRANCHING_WORK: Final = 1_000_000
_FEWEST_BRANCHED: Final = 40
#: Points times trees that moves ask about, and the fewest points.
_MOVING_WORK: Final = 12_000
_FEWEST_MOVED: Final = 80
#: Parts of the reach that are made at most.
_MOST_PARTS: Final = 16_000
#: Starts of which the cheapest that keeps the rules is looked for.
_STARTS: Final = 5
#: Values of a column, next to the one it has, to which it is moved so that another comes nearer.
_NEXT_VALUES: Final = 12


class Whose(Protocol):
    """Who is asked about, and where the person may go."""

    @property
    def space(self) -> FeatureSpace:
        """The columns."""

    @property
    def factual(self) -> Mapping[str, float]:
        """The person's coordinates."""

    @property
    def reach(self) -> Reach:
        """What each column may become."""


@final
class Counterexamples:
    """What follows from points that break some rules, by the place of each rule; it grows while programs are solved."""

    def __init__(self, rules: Mapping[int, AbstractRule]) -> None:
        self.rules = dict(rules)
        self.cuts: dict[int, tuple[Any, ...]] = dict.fromkeys(rules, ())

    def take_up(self, rules: Mapping[int, AbstractRule]) -> None:
        """Have more rules follow from counterexamples alone."""
        self.rules.update(rules)
        self.cuts.update(dict.fromkeys(rules, ()))

    def add(self, space: FeatureSpace, point: Point) -> tuple[bool, bool]:
        """Add what follows from a point; return whether it breaks a rule, and whether anything new follows."""
        is_broken = has_more = False
        for place, rule in self.rules.items():
            found = rule.counterexample(space, point)
            new = tuple(cut for cut in found if cut not in self.cuts[place])
            self.cuts[place] += new
            is_broken |= bool(found)
            has_more |= bool(new)
        return is_broken, has_more

    def stated(self, rules: Sequence[AbstractRule]) -> list[AbstractRule]:
        """Return rules, those of which something follows as far as that goes."""
        return [rule.with_cuts(self.cuts[k]) if k in self.cuts else rule for k, rule in enumerate(rules)]


# ==== Branching off boxes =============================================================================================


@final
@dataclass(frozen=True, slots=True, order=True)
class _Part:
    """Values that are left of each column, and of each the one that costs least; cheaper parts come first."""

    objective: float
    number: int
    left: list[NDArray[np.bool_]] = field(compare=False)
    chosen: list[int] = field(compare=False)


@final
class BoxSearch:
    """Branches for the cheapest point off all boxes of counterexamples, and asks for more boxes at each that it meets.

    A point is in a box where the value of every column is, so that a part of the reach whose cheapest point is in one
    is divided by the columns that leave it. What is cheapest is so column by column; a search that ends with nothing
    left has the least cost on the values where boxes end. It is no proof: that is left to a program with the boxes.

    Parameters
    ----------
    settings, question
        What is asked.
    place, values
        Of the rule whose counterexamples are boxes, and by column the values beside which they end.
    learned
        What is known of counterexamples; more is added.
    is_wanted
        Whether a point that keeps all rules is an answer.
    deadline
        When to stop, in seconds of ``time.perf_counter``.
    """

    def __init__(
        self,
        settings: CheckedSettings,
        question: Whose,
        place: int,
        *,
        values: Mapping[str, Sequence[float]],
        learned: Counterexamples,
        is_wanted: Callable[[Point], bool],
        deadline: float,
    ) -> None:
        self.settings = settings
        self.question = question
        self.place = place
        self.learned = learned
        self.is_wanted = is_wanted
        self.deadline = deadline
        self.best: Start | None = None
        self.limit = np.inf
        self.names = question.space.names
        self.row = point_row(question.space, question.factual)
        self.values = [self._by_price(k, values.get(name, ())) for k, name in enumerate(self.names)]
        self.met = [np.zeros((len(own), 64), dtype=bool) for own in self.values]
        self.boxes = 0
        self.most = max(_BRANCHING_WORK // (sum(map(len, self.values)) * len(self.names)), _FEWEST_BRANCHED)
        self._numbers = itertools.count()

    def _by_price(self, k: int, beside: Sequence[float]) -> NDArray[np.float64]:
        """Return the values of a column that are looked at, the cheapest first."""
        name = self.names[k]
        part = self.question.reach[name]
        home = self.question.factual[name]
        values = {*beside, *part.labels} if isinstance(part, Interval) else set(part.values)
        if part.holds(home):
            values.add(home)
        found = np.array(sorted(values))
        rows = np.repeat(self.row, len(found), axis=0)
        rows[:, k] = found
        return np.asarray(found[np.argsort(self._objectives(rows), kind="stable")])

    def _objectives(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.settings.cost.objectives(self.question.space, self.question.factual, rows)

    # ---- the search --------------------------------------------------------------------------------------------------
    def run(self, starts: Sequence[Start]) -> bool:
        """Search; return whether no part is left that may be cheaper."""
        for _, point in sorted(starts, key=lambda start: start[0])[:_STARTS]:
            if _keeps(self.settings, self.question, point) and self.is_wanted(point):
                self._take(point)
                break
        parts = self._parts([[np.ones(len(own), dtype=bool) for own in self.values]])
        is_complete = True
        asked = made = 0
        while parts:
            part: _Part | None = heapq.heappop(parts)
            while part is not None and part.objective < self.limit:
                if asked >= self.most or made >= _MOST_PARTS or time.perf_counter() > self.deadline:
                    return False
                box = self._box_around(part)
                if box is None:
                    asked += 1
                    box = self._asked(part)
                    is_complete &= box is not None or part.objective >= self.limit
                lefts = [] if box is None else self._divided(part, box)
                made += len(lefts)
                below = sorted(self._parts(lefts))
                part = below.pop(0) if below else None  # the cheapest is followed until a point keeps the rules
                for other in below:
                    heapq.heappush(parts, other)
        return is_complete

    def _parts(self, lefts: Sequence[list[NDArray[np.bool_]]]) -> list[_Part]:
        """Return those of some parts that may be cheaper than what is known."""
        lefts = [left for left in lefts if all(own.any() for own in left)]
        if not lefts:
            return []
        chosen = [[int(own.argmax()) for own in left] for left in lefts]
        rows = np.array([[own[k] for own, k in zip(self.values, places, strict=True)] for places in chosen])
        found = zip(self._objectives(rows).tolist(), lefts, chosen, strict=True)
        return [_Part(cost, next(self._numbers), left, places) for cost, left, places in found if cost < self.limit]

    def _point(self, part: _Part) -> dict[str, float]:
        found = zip(self.names, self.values, part.chosen, strict=True)
        return {name: float(own[k]) for name, own, k in found}

    def _take(self, point: Point) -> None:
        self.best = (self.settings.cost.value(self.question.space, self.question.factual, point), dict(point))
        self.limit = float(self._objectives(point_row(self.question.space, point))[0]) * (1.0 - EQUAL_COSTS)

    def _asked(self, part: _Part) -> list[NDArray[np.bool_]] | None:
        """Ask the rules about the cheapest point of a part; return by column which values a box around it has."""
        point = self._point(part)
        is_broken, _ = self.learned.add(self.question.space, point)
        if is_broken:
            self._take_up_boxes()
            return self._box_around(part)
        if not _keeps(self.settings, self.question, point):
            return None
        if self.is_wanted(point):
            self._take(point)
            return None
        return [np.arange(len(own)) == k for own, k in zip(self.values, part.chosen, strict=True)]

    # ---- boxes -------------------------------------------------------------------------------------------------------
    def _take_up_boxes(self) -> None:
        rule = self.settings.rules[self.place]
        values = dict(zip(self.names, self.values, strict=True))
        for cut in self.learned.cuts[self.place][self.boxes :]:
            if self.boxes == self.met[0].shape[1]:
                self.met = [np.hstack([own, np.zeros_like(own)]) for own in self.met]
            found = rule.is_met(cut, self.question.reach, values)
            for name, met in zip(self.names, self.met, strict=True):
                met[:, self.boxes] = found.get(name, True)
            self.boxes += 1

    def _box_around(self, part: _Part) -> list[NDArray[np.bool_]] | None:
        """Return by column which values a known box around the cheapest point has; None where there is none."""
        around = self.met[0][part.chosen[0], : self.boxes].copy()
        for met, k in zip(self.met[1:], part.chosen[1:], strict=True):
            around &= met[k, : self.boxes]
        if not around.any():
            return None
        box = int(np.flatnonzero(around)[-1])
        return [met[:, box] for met in self.met]

    def _divided(self, part: _Part, box: list[NDArray[np.bool_]]) -> list[list[NDArray[np.bool_]]]:
        """Return the parts of a part that are off a box: by the column that leaves it, those before it within."""
        within = list(part.left)
        found = []
        for k in sorted(range(len(box)), key=lambda k: -int(box[k].sum())):
            off = within[k] & ~box[k]
            if off.any():
                found.append([*within[:k], off, *within[k + 1 :]])
            within[k] = within[k] & box[k]
        return found


def _keeps(settings: CheckedSettings, question: Whose, point: Point) -> bool:
    """Whether a point keeps all rules."""
    return all(rule.violation(question.space, question.factual, point) <= 0.0 for rule in settings.rules)


# ==== Moves ===========================================================================================================


def brought_nearer(
    settings: CheckedSettings, question: Whose, place: int, point: Point, deadline: float
) -> dict[str, float]:
    """Return a point that is brought nearer as long as all rules allow it: a column, or one while another gives way.

    Stricter rows stop where the worst leaves of several trees meet, and no point meets them all. ``place`` is that of a
    rule for which trees stand in: numbers move to the values beside their splits.
    """
    space, factual = question.space, question.factual
    (predictor,) = settings.rules[place].stand_ins(question.reach)
    left = max(_MOVING_WORK // len(predictor.core.trees), _FEWEST_MOVED)  # type: ignore[attr-defined]
    keys = keys_in_reach(predictor, question.reach)
    beside = [np.unique([factual[name], *itertools.chain(*keys.get(name, ()))]) for name in space.names]
    home, here = point_row(space, factual)[0], point_row(space, point)[0]

    def changed(points: NDArray[np.float64], *, nearer: bool) -> NDArray[np.float64]:
        found = [points[:0]]
        for j, near in enumerate(beside):
            kept = near[(min(home[j], here[j]) <= near) & (near <= max(home[j], here[j]))]
            if not nearer:
                kept = near[np.argsort(np.abs(near - here[j]), kind="stable")][:_NEXT_VALUES]
            own = points[points[:, j] == here[j]]
            for value in kept[kept != here[j]].tolist():
                found.append(own.copy())
                found[-1][:, j] = value
        return np.concatenate(found)

    def cheapest_kept(points: NDArray[np.float64]) -> NDArray[np.float64] | None:
        nonlocal left
        least = settings.cost.objectives(space, factual, here[None])[0] * (1.0 - EQUAL_COSTS)
        costs = settings.cost.objectives(space, factual, points)
        order = np.argsort(costs, kind="stable")[:left]
        for row in points[order[costs[order] < least]]:
            left -= 1
            if time.perf_counter() > deadline:
                return None
            if _keeps(settings, question, dict(zip(space.names, row.tolist(), strict=True))):
                return np.asarray(row)
        return None

    nearer: NDArray[np.float64] | None = here
    while nearer is not None:
        here = nearer
        alone = changed(here[None], nearer=True)
        nearer = cheapest_kept(alone)
        if nearer is None:
            nearer = cheapest_kept(changed(alone, nearer=False))
    return dict(zip(space.names, here.tolist(), strict=True))
