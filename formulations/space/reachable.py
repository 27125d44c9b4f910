"""Reachable values of each column for one factual: bounds, direction, steps and levels as a set.

This is where actionability acts. A value that is not in the reach never gets a variable, so an immutable column is a
number in the program and not a row of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.digits import digits
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.limits import SIDES, Limit, Side, allowance, ends, exact, written
from ceopt.formulations.tolerances import DECIMAL_ROUNDINGS, STEP_ROUNDINGS
from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace


#: More decimals than these are taken for what a calculation has left, not for what somebody wrote down.
_MOST_PLACES: Final = 9
#: Whole numbers up to this one, and no further, are floats each.
_EXACT: Final = 2.0**53


# ---- multiples of a decimal step: 0.1 + 0.2 is 0.3 -------------------------------------------------------------------
class DecimalGrid(NamedTuple):
    """The numbers ``(units + k * step) / scale`` for whole ``k``, where k = 0 is ``anchor`` as it was given.

    A decimal grid counts in whole units of its last decimal place, so each number is a quotient of whole numbers and
    as near to its decimals as a float can be. A grid that is not decimal has the scale 1, and rounds as floats do. All
    four are numbers, or arrays of them for many grids side by side.
    """

    anchor: Any
    units: Any
    step: Any
    scale: Any

    def at(self, count: float) -> float:
        """Return the member ``count`` steps from the anchor."""
        if count == 0:
            return float(self.anchor)
        return float((self.units + count * self.step) / self.scale)

    def many(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the members so many steps from the anchor, in the shape of ``counts``."""
        return np.asarray(np.where(counts == 0.0, self.anchor, (self.units + counts * self.step) / self.scale))

    def nearest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the members nearest to some values, in their shape."""
        return self.many(np.rint((values - self.anchor) / (self.step / self.scale)))


@functools.lru_cache(maxsize=4096)
def decimal_grid(anchor: float, step: float) -> DecimalGrid:
    """Return the grid of a step from a number.

    A number that a calculation has left within a rounding of a decimal one, such as 0.1 + 0.2, counts as that one.

    Examples
    --------
    >>> 0.1 + 2 * 0.1, decimal_grid(0.1, 0.1).at(2)
    (0.30000000000000004, 0.3)
    """
    for places in range(_MOST_PLACES + 1):
        scale = 10.0**places
        units, steps = float(np.rint(anchor * scale)), float(np.rint(step * scale))
        if max(abs(units), steps) > _EXACT:
            break
        if steps / scale == step and _means(units / scale, anchor):
            return DecimalGrid(anchor, units, steps, scale)
    return DecimalGrid(anchor, anchor, step, 1.0)


def decimal_grids(anchors: NDArray[np.float64], steps: NDArray[np.float64]) -> DecimalGrid:
    """Return the grids of some steps from some numbers, (k,), side by side."""
    grids = [decimal_grid(anchor, step) for anchor, step in zip(anchors.tolist(), steps.tolist(), strict=True)]
    return DecimalGrid(*np.array(grids, dtype=np.float64).reshape(-1, 4).T)


def multiples(anchors: NDArray[np.float64], step: float, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each of many numbers the member of its own grid so many steps away, (n,)."""
    distinct, place = np.unique(anchors, return_inverse=True)
    grids = decimal_grids(distinct, np.full(len(distinct), step))
    return DecimalGrid(anchors, *(part[place.reshape(-1)] for part in grids[1:])).many(counts)


def _means(decimal: Any, number: Any) -> Any:
    """Tell whether a number is a decimal one up to what adding up a few such leaves."""
    return np.abs(decimal - number) <= DECIMAL_ROUNDINGS * np.abs(number)


# ---- what a column can become ----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """The amounts ``anchor + k * step`` (all if ``step`` is None) from ``lower`` to ``upper``, and labels beside them.

    Where anchor and step are decimal numbers, so is every amount: 0.1 + 2 * 0.1 is 0.3. The two sides of a split are at
    least ``gap`` apart. Amounts are what is compared, snapped and narrowed; of a label the model alone says what it is.

    Parameters
    ----------
    holes
        Codes between the bounds, which are no amounts; on the grid of the step, ascending.
    labels
        What the column may be beside its amounts: coordinates of codes and of the missing cell.
    """

    lower: float
    upper: float
    step: float | None = None
    anchor: float = 0.0
    gap: float = 0.0
    holes: tuple[float, ...] = ()
    labels: tuple[float, ...] = ()

    @property
    def is_point(self) -> bool:
        """Whether one value is left."""
        return self.lower == self.upper and not self.labels

    @property
    def only(self) -> float:
        """The one value that is left."""
        return self.lower

    @property
    def grid(self) -> DecimalGrid:
        """The grid of the step; there must be one."""
        assert self.step is not None  # noqa: S101 - who asks has seen to it
        return decimal_grid(self.anchor, self.step)

    def holds(self, value: float) -> bool:
        """Whether a value is an amount or a label in reach."""
        return value in self.labels or self.has(value)

    def has(self, value: float) -> bool:
        """Whether a value is an amount in reach, or the missing cell that stays; no other infinite one is in reach."""
        if math.isinf(value):
            return self.lower == self.upper == value
        return self.lower <= value <= self.upper and (self.step is None or self.floor(value) == value)

    def floor(self, value: float) -> float:
        """Return the greatest member at most ``value``, or minus infinity."""
        value = min(value, self.upper)
        if self.step is not None and math.isfinite(value):
            grid = self.grid
            count = round((value - self.anchor) / self.step)
            if grid.at(count) > value:
                count -= 1
            while grid.at(count) in self.holes:
                count -= 1
            value = grid.at(count)
        return value if value >= self.lower else -math.inf

    def ceil(self, value: float) -> float:
        """Return the least member at least ``value``, or infinity."""
        value = max(value, self.lower)
        if self.step is not None and math.isfinite(value):
            grid = self.grid
            count = round((value - self.anchor) / self.step)
            if grid.at(count) < value:
                count += 1
            while grid.at(count) in self.holes:
                count += 1
            value = grid.at(count)
        return value if value <= self.upper else math.inf

    def sides(self, left: float, right: float) -> tuple[float, float]:
        """Return the greatest member left of a split and the least right of it (infinite where there is none).

        A gap opens to both sides, but an end of the interval is kept: it lies where the split sends it.
        """
        opened = max(self.gap - (right - left), 0.0) / 2.0
        if opened > 0.0:
            left = max(left - opened, min(left, self.lower))
            right = min(right + opened, max(right, self.upper))
        return self.floor(left), self.ceil(right)

    def sides_of(self, lefts: Floats, rights: Floats) -> tuple[Floats, Floats]:
        """Return the same of many splits at once, as :meth:`floor` and :meth:`ceil` compute them."""
        opened = np.maximum(self.gap - (rights - lefts), 0.0) / 2.0
        lefts = np.where(opened > 0.0, np.maximum(lefts - opened, np.minimum(lefts, self.lower)), lefts)
        rights = np.where(opened > 0.0, np.minimum(rights + opened, np.maximum(rights, self.upper)), rights)
        lasts = np.minimum(lefts, self.upper)
        firsts = np.maximum(rights, self.lower)
        if self.step is not None:
            grid = self.grid
            below = np.rint((lasts - self.anchor) / self.step)
            below -= grid.many(below) > lasts
            for _ in self.holes:
                below -= np.isin(grid.many(below), self.holes)
            lasts = np.where(np.isfinite(lasts), grid.many(below), lasts)
            above = np.rint((firsts - self.anchor) / self.step)
            above += grid.many(above) < firsts
            for _ in self.holes:
                above += np.isin(grid.many(above), self.holes)
            firsts = np.where(np.isfinite(firsts), grid.many(above), firsts)
        return np.where(lasts >= self.lower, lasts, -np.inf), np.where(firsts <= self.upper, firsts, np.inf)

    def below(self, value: float) -> tuple[float, float]:
        """Return the greatest member below a value and the least one from it on; infinite where there is none."""
        return self.floor(math.nextafter(value, -math.inf)), self.ceil(value)

    def above(self, value: float) -> tuple[float, float]:
        """Return the greatest member up to a value and the least one above it; infinite where there is none."""
        return self.floor(value), self.ceil(math.nextafter(value, math.inf))

    def clip(self, value: float) -> float:
        """Return a nearest amount; there must be one."""
        if value <= self.lower:
            return self.lower
        if value >= self.upper:
            return self.upper
        if self.step is None:
            return value
        below, above = self.floor(value), self.ceil(value)
        return below if value - below <= above - value else above

    def member(self, value: float) -> float | None:
        """Return the member that a value means: itself, or on a grid the one a rounding away; else None."""
        if self.has(value):
            return value
        if self.step is None:
            return None
        nearest = self.clip(value)
        rounding = STEP_ROUNDINGS * max(abs(value), abs(self.anchor))
        return nearest if abs(nearest - value) <= rounding else None

    def members(self, values: Iterable[float]) -> list[float]:
        """Return the members that some values mean, ascending, each once."""
        return sorted(member for member in set(map(self.member, values)) if member is not None)

    def narrowed(self, lower: float, upper: float) -> Interval:
        """Return the members between ``lower`` and ``upper``, with bounds that are members themselves."""
        inner = replace(self, lower=self.ceil(lower), upper=self.floor(upper))
        if inner.lower > inner.upper:
            raise InvalidValueError(
                "Interval", "a member between the bounds", f"there is none from {lower!r} to {upper!r}", "Widen them."
            )
        return inner


@final
@dataclass(frozen=True, slots=True)
class Levels:
    """The ranks (positions among the column's levels, ascending) that may be reached, and the missing cell.

    ``labels`` holds the coordinate of the missing cell where that may be reached; codes are levels with a rank.
    """

    ranks: tuple[int, ...]
    labels: tuple[float, ...] = ()

    @property
    def is_point(self) -> bool:
        """Whether one value is left."""
        return len(self.ranks) + len(self.labels) == 1

    @property
    def only(self) -> float:
        """The coordinate of the one value that is left."""
        return float((*self.ranks, *self.labels)[0])

    @property
    def values(self) -> tuple[float, ...]:
        """All coordinates that may be reached: the ranks, and that of the missing cell."""
        return (*map(float, self.ranks), *self.labels)

    def holds(self, value: float) -> bool:
        """Whether a coordinate may be reached."""
        return value in self.ranks or value in self.labels


Reach = Mapping[str, Interval | Levels]


def labels_in_reach(feature: Feature, x0: float, part: Interval | Levels) -> tuple[float, ...]:
    """Return all labels that a column may hold, the person's own first, whether or not it may leave that."""
    values = part.values if isinstance(part, Levels) else (part.only, *part.labels)
    return tuple(filter(feature.is_label, dict.fromkeys((x0, *values))))


def only_at(part: Interval | Levels, value: float) -> Interval | Levels:
    """Return what is left of a part where the column takes this value of it, and no other."""
    if isinstance(part, Levels):
        if value == MISSING:
            return Levels((), (MISSING,))
        return Levels((int(value),))
    if value == MISSING:
        return Interval(MISSING, MISSING)
    if value in part.labels:
        return Interval(value, value, anchor=value)
    return replace(part, labels=()).narrowed(value, value)


def with_others_at_home(
    reach: Reach, names: Collection[str], factual: Mapping[str, float]
) -> dict[str, Interval | Levels]:
    """Return a reach in which only some columns may leave the factual, and those that have to."""
    narrow: dict[str, Interval | Levels] = {}
    for name, part in reach.items():
        home = factual[name]
        narrow[name] = part if name in names or not part.holds(home) else only_at(part, home)
    return narrow


# ---- limits about the person -----------------------------------------------------------------------------------------
def limits_of(feature: Feature, value: float) -> tuple[float, float]:
    """Return the lowest and the highest coordinate that a column's limits leave a person; infinite without a limit.

    A cell that is missing or holds a code has none, as it is no amount to count from.

    They are not yet rounded to the steps from the person's own value, which the reach knows.

    Examples
    --------
    >>> from ceopt.formulations.space import Feature
    >>> limits_of(Feature("share", kind="continuous", max_up="29%", max_down=0.1), 100.0)
    (99.9, 129.0)
    """
    if (feature.max_down is None and feature.max_up is None) or feature.is_label(value):
        return -math.inf, math.inf
    return ends_on_grid(feature.max_down, feature.max_up, value, feature.spacing)


def ends_on_grid(down: Limit | None, up: Limit | None, value: float, step: float | None) -> tuple[float, float]:
    """Return the lowest and the highest number that limits leave someone at a value, on the grid of a step or without.

    Who stands a rounding beside a decimal number, as the grid has it, may go as far as from there.

    Examples
    --------
    >>> ends_on_grid(0.2, None, 0.1 + 0.2, 0.1), ends_on_grid(0.2, None, 0.1 + 0.2, None)
    ((0.1, inf), (0.10000000000000005, inf))
    """
    if step is None:
        return ends(down, up, value)
    grid = decimal_grid(value, step)
    lowest, highest = ends(down, up, float(grid.units / grid.scale))
    return min(lowest, value), max(highest, value)


def ends_of_many(feature: Feature, values: Floats) -> tuple[Floats, Floats]:
    """Return :func:`limits_of` for the values (n,) of many people, (n,) each."""
    if feature.max_down is None and feature.max_up is None:
        return np.full(len(values), -np.inf), np.full(len(values), np.inf)
    found = np.array([limits_of(feature, value) for value in values.tolist()], dtype=np.float64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def limit_words(feature: Feature, side: Side, value: float) -> str:
    """Return a limit as it binds someone who stands at a value.

    Examples
    --------
    >>> from ceopt.formulations.space import Feature
    >>> limit_words(Feature("income", kind="continuous", max_up="20%"), "up", 30_000.0)
    'max_up of income (20% of 30,000 = 6,000)'
    >>> limit_words(Feature("age", kind="integer", max_up="20%"), "up", 33.0)
    'max_up of age (20% of 33 = 6.6, rounded down to 6)'
    """
    limit = feature.max_up if side == "up" else feature.max_down
    assert limit is not None  # noqa: S101 - who asks has seen to it
    width = allowance(limit, value)
    words = written(width, ",")
    if isinstance(limit, str):
        own = written(exact(value), ",")
        size = f"the size of {own}" if value < 0 else own
        words = f"{limit} of {size} = {words}"
    elif feature.kind == "ordinal":
        words += " level" if limit == 1 else " levels"
    room = stepped(feature, width)
    if room != width:
        words += f", rounded down to {written(room, ',')}"
    return f"max_{side} of {feature.name} ({words})"


def stepped(feature: Feature, width: Fraction) -> Fraction:
    """Return the greatest whole number of a column's steps that is no longer than a width; the width without steps."""
    if feature.is_finite or feature.spacing is None:
        return width
    step = exact(feature.spacing)
    return width // step * step


# ---- the reach of a person -------------------------------------------------------------------------------------------


def reach_of(space: FeatureSpace, factual: Mapping[str, float]) -> dict[str, Interval | Levels]:
    """Return what each column of ``space`` may become for the person at ``factual`` (coordinates by name)."""
    return {feature.name: _reach(feature, factual[feature.name]) for feature in space}


def _reach(feature: Feature, x0: float, *, is_limited: bool = True) -> Interval | Levels:
    """Return what a column may become; without its limits about the person, if so asked."""
    lowest, highest = limits_of(feature, x0) if is_limited else (-math.inf, math.inf)
    stays = not feature.mutable
    if x0 == MISSING:
        stays = stays or feature.missing == "stays"
    if feature.is_label(x0):
        stays = stays or math.isinf(feature.fill)
    if feature.is_finite:
        return _levels(feature, x0, (lowest, highest), stays=stays)
    return _numbers(feature, x0, (lowest, highest), stays=stays)


def _levels(feature: Feature, x0: float, limits: tuple[float, float], *, stays: bool) -> Levels:
    if stays:
        return Levels((), (MISSING,)) if x0 == MISSING else Levels((int(x0),))
    ranks = tuple(range(len(feature.levels)))
    if feature.codes and not _may_become_code(feature):
        ranks = tuple(rank for rank in ranks if rank == x0 or not feature.is_code(rank))
    labels: tuple[float, ...] = ()
    if x0 == MISSING or _may_vanish(feature):
        labels = (MISSING,)
    if not feature.is_label(x0):
        if feature.direction == "increasing":
            ranks = tuple(rank for rank in ranks if rank >= x0 or feature.is_code(rank))
        elif feature.direction == "decreasing":
            ranks = tuple(rank for rank in ranks if rank <= x0 or feature.is_code(rank))
        ranks = tuple(rank for rank in ranks if limits[0] <= rank <= limits[1] or feature.is_code(rank))
    return Levels(ranks, labels)


def _numbers(feature: Feature, x0: float, limits: tuple[float, float], *, stays: bool) -> Interval:
    if stays:
        return Interval(x0, x0, anchor=0.0 if x0 == MISSING else x0)
    lower, upper, anchor = feature.lower, feature.upper, x0
    labels: set[float] = set()
    if _may_become_code(feature):
        labels.update(map(feature.to_coordinate, feature.codes))
    if _may_vanish(feature):
        labels.add(MISSING)
    if feature.is_label(x0):  # no amount from which direction, limits or steps count
        labels.add(x0)
        anchor = first_amount(feature)
    else:
        lower, upper = min(lower, x0), max(upper, x0)  # who stands outside may stay or come nearer
        if feature.direction == "increasing":
            lower = x0
        if feature.direction == "decreasing":
            upper = x0
        lower, upper = max(lower, limits[0]), min(upper, limits[1])
    others = tuple(sorted(labels))
    if not math.isfinite(anchor):
        return Interval(lower, upper)
    plain = Interval(lower, upper, feature.spacing, anchor)
    holes = tuple(sorted(code for code in map(float, feature.codes) if plain.has(code)))
    reach = replace(plain, holes=holes, labels=others)
    if feature.is_label(x0) and reach.ceil(lower) > reach.floor(upper):  # its grid holds codes alone
        return _no_amount(feature, x0, others)
    return reach.narrowed(lower, upper)


def _no_amount(feature: Feature, x0: float, labels: tuple[float, ...]) -> Interval:
    """Return the reach of a missing cell, or a code, that no amount can fill in: it stays."""
    if labels != (x0,):
        steps = f"between its bounds, in steps of {digits(feature.spacing or 0.0)} from the lower one, all are codes"
        then = "Widen the bounds, or take a smaller step."
        raise InvalidValueError(feature.who, "an amount that can be filled in", steps, then)
    return _numbers(feature, x0, (-math.inf, math.inf), stays=True)


def _may_vanish(feature: Feature) -> bool:
    return feature.missing == "may_vanish" and math.isfinite(feature.fill)


def _may_become_code(feature: Feature) -> bool:
    return feature.codes_in_reach and math.isfinite(feature.fill)


def first_amount(feature: Feature) -> float:
    """Return where the grid of an amount that is filled in begins: at the lower bound, or else at 0."""
    return feature.lower if math.isfinite(feature.lower) else 0.0


def limits_that_bind(feature: Feature, x0: float) -> tuple[Side, ...]:
    """Return the sides on which a limit about the person, and no bound or direction, is where the reach ends."""
    if (feature.max_down is None and feature.max_up is None) or feature.is_label(x0):
        return ()
    held = _ends(_reach(feature, x0))
    free = _ends(_reach(feature, x0, is_limited=False))
    return tuple(side for side, own, other in zip(SIDES, held, free, strict=True) if own != other)


def _ends(part: Interval | Levels) -> tuple[float, float]:
    if isinstance(part, Levels):
        return part.ranks[0], part.ranks[-1]
    return part.lower, part.upper


def removed_by(space: FeatureSpace, reach: Reach, factual: Mapping[str, float]) -> dict[str, str]:
    """Report, per column that lost something, what the person cannot do: ``{"age": "fixed at 35"}``.

    Where a limit about the person is what took it, it is named: "stays within 0 and 36000 by max_up of income (20% of
    30,000 = 6,000)".
    """
    report: dict[str, str] = {}
    for feature in space:
        part = reach[feature.name]
        if part.is_point:
            report[feature.name] = _fixed(feature, part.only)
        elif isinstance(part, Levels):
            lost = [repr(level) for rank, level in enumerate(feature.levels) if not part.holds(rank)]
            if lost:
                report[feature.name] = f"cannot become {', '.join(lost)}"
        elif part.lower > feature.lower or part.upper < feature.upper:
            report[feature.name] = f"stays within {digits(part.lower)} and {digits(part.upper)}"
        if feature.name in report:
            x0 = factual[feature.name]
            limits = [limit_words(feature, side, x0) for side in limits_that_bind(feature, x0)]
            report[feature.name] += " by " * bool(limits) + " and ".join(limits)
    return report


def _fixed(feature: Feature, only: float) -> str:
    if only == MISSING:
        return "stays missing"
    text = f"fixed at {digits(only)}"
    if feature.is_finite:
        text = f"fixed at {feature.levels[int(only)]!r}"
    meaning = feature.meaning_of(feature.from_coordinate(only))
    if meaning is None:
        return text
    return f"{text} ({meaning})"
