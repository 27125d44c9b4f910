"""Between which amounts a number that an answer fills in would do as well, so that a letter can say "4,551 or more"."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np

from ceopt.formulations.constraints import AbstractRule, MaxChanges
from ceopt.formulations.predictors.raw_trees import keys_in_reach
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.formulations.targets import Labels
from ceopt.result.counterfactual import altered
from ceopt.words.language import in_six_digits

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.formulations.targets import Target
    from ceopt.result.counterfactual import Counterfactual

Point: TypeAlias = Mapping[str, float]
#: Tells of points whether the user's own model accepts them.
Accepts: TypeAlias = Callable[[list[dict[str, float]]], Sequence[bool]]

#: Rows that the model is asked about on one side of an amount, and the first batch of them.
_MOST_ROWS: Final = 4000
_FIRST_BATCH: Final = 64
#: Points that an answer may be by the numbers that are told so far, each of which is asked about for every amount.
_MOST_POINTS: Final = 64
#: Points on one side of an amount that rules are held against.
_MOST_CHECKS: Final = 2000
#: Amounts from here on are nobody's, and models of narrow floats take none: a cut there is none.
_NOBODYS: Final = 1e30
#: Doublings of a distance, beyond which a column without a bound has no end.
_DOUBLINGS: Final = 60
#: Parts of a way of which each is asked about at once.
_PARTS: Final = 32


def with_ranges(
    answers: Sequence[tuple[Counterfactual, Mapping[str, float]]],
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float],
    *,
    reach: Reach,
    predictor: Predictor,
    target: Target,
    accepts: Accepts,
) -> list[Counterfactual]:
    """Return answers that know, of each number that they fill in, which amounts around theirs would do as well.

    Everything else is as in the answer, and of several numbers every combination of their amounts does: of the first
    one all amounts that do, of the next those that do with each of these, and so on. The model is not monotone, so that
    it is asked about amounts one after another, from the answer's own outwards to the first that it refuses:

    ================= ==================================================================================================
    model             amounts
    ================= ==================================================================================================
    trees             one of each cell between the cuts of the column, in which nothing changes; at most 4,000 a side
    affine in columns by halving: what it accepts of a column is an interval, unless several labels are wanted
    others            each of the column's steps; at most 4,000 a side
    ================= ==================================================================================================

    Rules that ask for the amount are held against each of the steps. What cannot be told so within these numbers, and a
    column without steps where it would take them, is left out.
    """
    are_several = isinstance(target, Labels) and len(target.wanted) > 1
    has_intervals = predictor.is_linear and not are_several
    told = []
    for answer, point in answers:
        ranges: dict[str, tuple[float, float]] = {}
        points: list[Point] = [point]
        asking: list[AbstractRule] = []
        for name in answer.changed:
            part = reach[name]
            if not isinstance(part, Interval) or not is_filled_in(space[name], factual, point):
                continue
            filled = _Filled(name, part, points, factual, space)
            own = [rule for rule in rules if _asks(rule, filled)]
            are_joint = any(_may_read(rule, name) for rule in asking)
            are_joint = are_joint or any(_may_read(rule, earlier) for rule in own for earlier in ranges)
            if len(points) > _MOST_POINTS or are_joint:
                continue
            found = _range(filled, own, predictor, accepts, has_intervals=has_intervals)
            if found is not None:
                ranges[name] = found
                asking += own
                points = list(_with_amounts(filled, found, predictor, has_intervals=has_intervals))
        told.append(altered(answer, ranges=ranges) if ranges else answer)
    return told


def is_filled_in(feature: Feature, factual: Point, point: Point) -> bool:
    """Tell whether a number that was missing or held a code becomes an amount."""
    is_filled = feature.is_label(factual[feature.name]) and not feature.is_label(point[feature.name])
    return is_filled and not feature.is_finite


@final
@dataclass(frozen=True, slots=True)
class _Filled:
    """A number that an answer fills in.

    Parameters
    ----------
    name, part
        Of the column, and what it may become.
    points, factual, space
        The answer, and what else it may be by the amounts of other numbers, the person and the columns.
    """

    name: str
    part: Interval
    points: Sequence[Point]
    factual: Point
    space: FeatureSpace

    @property
    def amount(self) -> float:
        """What the column becomes."""
        return self.points[0][self.name]

    def at(self, amount: float) -> list[dict[str, float]]:
        """Return the answer, and what else it may be, with another amount."""
        return [{**point, self.name: amount} for point in self.points]

    def are_good(self, amounts: Sequence[float], accepts: Accepts) -> list[bool]:
        """Return which amounts the model accepts, whatever the other numbers are."""
        told = list(map(bool, accepts([point for amount in amounts for point in self.at(amount)])))
        size = len(self.points)
        return [all(told[k : k + size]) for k in range(0, len(told), size)]

    def steps(self, way: int, end: float) -> Iterator[float]:
        """Give the amounts from the answer's own, which is left out, to an end of the same side."""
        grid = self.part.grid
        count = round((self.amount - self.part.anchor) / (self.part.step or 1.0))
        for k in itertools.count(1):
            amount = grid.at(count + way * k)
            if way * (amount - end) > 0.0 or not self.part.lower <= amount <= self.part.upper:
                return
            if amount not in self.part.holes:
                yield amount


def _with_amounts(
    filled: _Filled, found: tuple[float, float], predictor: Predictor, *, has_intervals: bool
) -> Iterator[Point]:
    """Give what an answer may be by the amounts between two of a number, the answer itself first.

    Where what the model accepts are intervals the ends say of all; of trees there is one amount of each cell, else each
    of the steps.
    """
    low, high = found
    amounts = [filled.amount]
    if has_intervals:
        amounts += filter(math.isfinite, found)  # on the way to an end that is none nothing gets worse
    elif predictor.is_trees:
        amounts += [max(start, low) for start, stop in _cells(filled, predictor) if start <= high and stop >= low]
    else:
        amounts += itertools.islice(filled.steps(-1, low), _MOST_POINTS)
        amounts += itertools.islice(filled.steps(1, high), _MOST_POINTS)
    for amount in dict.fromkeys(amounts):
        yield from filled.at(amount)


def _range(
    filled: _Filled, asking: Sequence[AbstractRule], predictor: Predictor, accepts: Accepts, *, has_intervals: bool
) -> tuple[float, float] | None:
    """Return the least and the greatest amount of those around the answer's that do; None where that is not known.

    ``asking``: the rules that ask for the amount.
    """
    if any(rule.slow or rule.lacks_rows for rule in asking):
        return None
    cells = _cells(filled, predictor) if predictor.is_trees else None
    ends = []
    for way in (-1, 1):
        end = _end_by_model(filled, way, cells, accepts, has_intervals=has_intervals)
        if end is not None:
            end = _end_by_rules(filled, way, end, asking)
        if end is None:
            return None
        ends.append(end)
    return _inwards(filled, ends[0], up=True), _inwards(filled, ends[1], up=False)


# ---- what the model accepts ------------------------------------------------------------------------------------------
def _end_by_model(
    filled: _Filled, way: int, cells: Sequence[tuple[float, float]] | None, accepts: Accepts, *, has_intervals: bool
) -> float | None:
    """Return the last amount of one side up to which the model accepts all; None where that is not known."""
    if cells is not None:
        return _end_of_cells(cells, way, filled, accepts)
    end = filled.part.lower if way < 0 else filled.part.upper
    if has_intervals:
        return _end_by_parts(filled, way, end, lambda amounts: filled.are_good(amounts, accepts))
    if filled.part.step is None:
        return None
    return _last_good(filled, ((amount, amount) for amount in filled.steps(way, end)), accepts)


def _cells(filled: _Filled, predictor: Predictor) -> list[tuple[float, float]]:
    """Return the least and the greatest amount of each cell between the trees' cuts of the column, in order."""
    keys = keys_in_reach(predictor, {filled.name: replace(filled.part, gap=0.0)}).get(filled.name, [])
    ends = [pair for pair in keys if max(map(abs, pair)) < _NOBODYS]
    starts = [filled.part.lower, *(right for _, right in ends)]
    stops = [*(left for left, _ in ends), filled.part.upper]
    return list(zip(starts, stops, strict=True))


def _end_of_cells(cells: Sequence[tuple[float, float]], way: int, filled: _Filled, accepts: Accepts) -> float | None:
    """Return the last amount of one side up to which all cells are accepted."""
    own = bisect_right([start for start, _ in cells], filled.amount) - 1
    others = cells[own + 1 :] if way > 0 else cells[:own][::-1]
    side = cells[own][1] if way > 0 else cells[own][0]
    if not others:
        return side
    near_and_far = [(start, stop) if way > 0 else (stop, start) for start, stop in others]
    return _last_good(filled, near_and_far, accepts, side)


def _last_good(
    filled: _Filled, others: Iterable[tuple[float, float]], accepts: Accepts, end: float | None = None
) -> float | None:
    """Return the far end of the last of some stretches of amounts, each asked about by its near end, all accepted.

    None where more of them than are asked about are accepted.
    """
    if end is None:
        end = filled.amount
    left = iter(others)
    asked = 0
    batch = _FIRST_BATCH
    while asked < _MOST_ROWS:
        some = list(itertools.islice(left, batch))
        if not some:
            return end
        for (_, far), is_good in zip(some, filled.are_good([near for near, _ in some], accepts), strict=True):
            if not is_good:
                return end
            end = far
        asked += len(some)
        batch *= 2
    return None


# ---- what rules ask for ----------------------------------------------------------------------------------------------
@final
class _Watched(Mapping[str, float]):
    """A point that knows whether its value in a column was read."""

    __slots__ = ("_name", "_point", "is_read")

    def __init__(self, point: Point, name: str) -> None:
        self._point = point
        self._name = name
        self.is_read = False

    def __getitem__(self, key: str) -> float:
        self.is_read = self.is_read or key == self._name
        return self._point[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._point)

    def __len__(self) -> int:
        return len(self._point)


def _asks(rule: AbstractRule, filled: _Filled) -> bool:
    """Whether a rule asks for the amount, and not only whether the column changes."""
    if isinstance(rule, MaxChanges):
        return False
    if rule.lacks_rows:
        return True
    for point in filled.points:
        watched = _Watched(point, filled.name)
        rule.violation(filled.space, filled.factual, watched)
        if watched.is_read:
            return True
    return False


def _may_read(rule: AbstractRule, name: str) -> bool:
    return rule.reads is None or name in rule.reads


def _end_by_rules(filled: _Filled, way: int, end: float, asking: Sequence[AbstractRule]) -> float | None:
    """Return the last amount of one side, no further than ``end``, up to which all rules are kept."""
    if not asking:
        return end

    def is_good(amount: float) -> bool:
        points = filled.at(amount)
        return all(rule.violation(filled.space, filled.factual, one) <= 0.0 for rule in asking for one in points)

    if filled.part.step is None:
        return filled.amount if end == filled.amount else None
    last = filled.amount
    for place, amount in enumerate(filled.steps(way, end)):
        if place >= _MOST_CHECKS:
            return None
        if not is_good(amount):
            break
        last = amount
    return last


# ---- amounts of an interval ------------------------------------------------------------------------------------------
def _end_by_parts(
    filled: _Filled, way: int, end: float, are_good: Callable[[Sequence[float]], Sequence[bool]]
) -> float | None:
    """Return the last good amount of one side, no further than ``end``, where the good ones are an interval.

    A model is asked about many amounts at once: of a pipeline that takes hardly longer than one.
    """
    good = bad = filled.amount
    if good == end:
        return good
    if math.isinf(end):
        size = max(1.0, abs(good), filled.part.step or 0.0)
        asked = [filled.part.clip(good + way * size * 2.0**doubling) for doubling in range(_DOUBLINGS)]
    else:
        asked = [end]
    is_known = False  # whether some amount is known to be bad
    while asked:
        answers = list(are_good(asked))
        if not all(answers):
            first = answers.index(False)
            good, bad = [good, *asked][first], asked[first]
            is_known = True
        elif is_known:
            good = asked[-1]
        else:
            return end
        asked = _between(filled, good, bad)
    return good


def _between(filled: _Filled, good: float, bad: float) -> list[float]:
    """Return amounts that part the way from a good amount to a bad one, in order."""
    shares = np.arange(1, _PARTS) / _PARTS
    amounts = [filled.part.clip(float(amount)) for amount in (1.0 - shares) * good + shares * bad]
    return [amount for amount in dict.fromkeys(amounts) if amount not in {good, bad}]


def _inwards(filled: _Filled, end: float, *, up: bool) -> float:
    """Return an end of a column without steps in few digits, if these lie between it and the answer's own amount."""
    if filled.part.step is not None or math.isinf(end) or end in (filled.part.lower, filled.part.upper):
        return end
    rounded = float(in_six_digits(end, away_from=end - 1.0 if up else end + 1.0))
    is_between = end <= rounded <= filled.amount if up else filled.amount <= rounded <= end
    return rounded if is_between else end
