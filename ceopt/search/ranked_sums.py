"""Further answers under a linear score: the least costs of narrower and narrower reaches, the cheapest first.

A point that is distinct from an answer leaves one of its columns as it is, or changes these columns alone and one of
them another way. Either is a reach. Of all that are left the one of least cost is looked at: its point is the next
answer if it is distinct from all, else the reach is parted by an answer from which it is not.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, final

from ceopt.formulations.constraints.diversity.distinct import Distinct, way_of
from ceopt.formulations.constraints.diversity.diversity import changed_columns
from ceopt.formulations.space.reachable import Interval, Levels, Reach, only_at, with_others_at_home
from ceopt.search.least_costs import LeastCost
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.least_costs import ColumnGains
    from ceopt.search.nearer import Point
    from ceopt.search.prepare import Prepared
    from ceopt.search.solve_program import Person

#: Reaches that are looked at for one person.
_MOST_REACHES: Final = 500


@final
@dataclass(slots=True)
class PersonSums:
    """What is kept of one person under a linear score.

    Parameters
    ----------
    person, prepared, gains
        The person, model and settings, and the slack as a sum over the columns, as it was read for them.
    answers, coming
        Answers, and the least costs of those that come after them.
    """

    person: Person | None = None
    prepared: Prepared | None = None
    gains: ColumnGains | None = None
    answers: list[Point] = field(default_factory=list)
    coming: list[LeastCost] = field(default_factory=list)


def ranked_sums(
    space: FeatureSpace,
    factual: Point,
    reach: Reach,
    answers: Sequence[Point],
    count: int,
    *,
    least: Callable[[Reach], LeastCost | None],
) -> list[LeastCost]:
    """Return the least costs of so many further answers, each with its point; the last may be a bound alone.

    Parameters
    ----------
    space, factual, reach
        The columns, the person, and what each column may take; the person's own values are in reach.
    answers, count
        Answers in hand, and how many are to follow.
    least
        The least cost within a reach, with its point where that is known.
    """
    taken = list(answers)
    found: list[LeastCost] = []
    open_: list[tuple[float, int, LeastCost, Reach]] = []
    number = itertools.count()
    parts = [reach]
    while len(found) < count:
        for part in parts:
            checkpoint("ranking answers under a linear score")
            one = least(part) or LeastCost(0.0)
            if one.bound < math.inf:
                heapq.heappush(open_, (one.bound, next(number), one, part))
        if not open_:
            return [*found, LeastCost(math.inf)]
        _, at, one, own = open_[0]
        if not one.points or at > _MOST_REACHES:
            return [*found, LeastCost(one.bound)]
        point = one.points[0]
        earlier = next((answer for answer in taken if not Distinct().differ(space, factual, answer, point)), None)
        parts = []
        if earlier is None:
            found.append(one)
            taken.append(point)
        else:
            heapq.heappop(open_)
            parts = _parts(space, factual, own, earlier)
    return found


def _parts(space: FeatureSpace, factual: Point, reach: Reach, answer: Point) -> list[Reach]:
    """Return reaches that hold together all points that are distinct from an answer."""
    changed = changed_columns(factual, answer)
    parts: list[Reach] = [{**reach, name: only_at(reach[name], factual[name])} for name in sorted(changed)]
    alone = with_others_at_home(reach, changed, factual)
    for name in sorted(changed):
        other = _otherwise(space[name], reach[name], factual[name], answer[name])
        if other is not None:
            parts.append({**alone, name: other})
    return parts


def _otherwise(feature: Feature, part: Interval | Levels, home: float, value: float) -> Interval | Levels | None:
    """Return what a column may take but for values that move it as one does; None where nothing but home is left."""
    way = way_of(feature, home, value)
    labels = tuple(label for label in part.labels if label == home or way_of(feature, home, label) != way)
    if isinstance(part, Levels):
        ranks = tuple(rank for rank in part.ranks if rank == home or way_of(feature, home, rank) != way)
        return Levels(ranks, labels) if len(ranks) + len(labels) > 1 else None
    other = replace(part, labels=labels)
    if way == "up":
        other = other.narrowed(part.lower, home)
    elif way == "down":
        other = other.narrowed(home, part.upper)
    elif way == "filled in":
        return replace(only_at(part, home), labels=labels) if len(labels) > 1 else None
    return None if other.is_point else other
