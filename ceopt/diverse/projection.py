"""Distances between rows, and rows of other people as one person could become them.

Forbidden moves are undone where the rule defines a repair. What comes back is asked about and checked against every
rule again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints import AbstractRule, AllowedTransitions, AllowedValues, MaxChanges
from ceopt.formulations.constraints.rule import mended_points
from ceopt.formulations.costs.base import SCALE, slopes_of
from ceopt.formulations.space.feature import MISSING, Feature
from ceopt.formulations.space.reachable import Interval, decimal_grid, limits_of
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import Floats

if TYPE_CHECKING:
    from ceopt.formulations.constraints.rule import Point

# ==== Distances between rows of mixed columns, and the direction from one row to another ==============================

Norm = Literal["l1", "l2"]

#: A category is a corner of a simplex: corners are 1 apart if each 0/1 coordinate is multiplied by this.
_CORNER: Final = {"l1": 0.5, "l2": np.sqrt(0.5)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowDistance:
    r"""The distance that :class:`~ceopt.formulations.costs.L1` or ``L2`` charges, for many rows at once.

    .. math:: d(x, x') = \sum_j t_j \ \text{(l1)} \quad\text{or}\quad \sqrt{\sum_j t_j^2} \ \text{(l2)}, \qquad
        t_j = \omega_j |x'_j - x_j| / s_j, \quad \text{of a category } \omega_j [x'_j \ne x_j] / s_j

    ======== ===== ===========================================================================
    symbol   shape meaning
    ======== ===== ===========================================================================
    down, up (d,)  weight over scale of a move down and up, counted from the first row
    levels   (d,)  how many levels a category has; 0 for every other column
    ======== ===== ===========================================================================

    As a direction a category is an axis for each level, so that moves to two different levels lie 60 degrees apart: the
    angle at which their end points are as far from each other as from the start.
    """

    norm: Norm
    down: Floats
    up: Floats
    levels: NDArray[np.intp]

    @property
    def is_symmetric(self) -> bool:
        """Whether there and back are equally far."""
        return bool((self.down == self.up).all())

    def lengths(self, home: Floats, points: Floats) -> Floats:
        """Return what each column adds on the way from ``home`` (d,) to each of ``points`` (n, d), shape (n, d)."""
        moves = moves_from(home, points)
        switch = self.levels > 0
        if switch.any():
            moves[:, switch] = moves[:, switch] != 0.0
        slopes = self.up if self.is_symmetric else np.where(moves > 0.0, self.up, self.down)
        return np.asarray(np.abs(moves, out=moves) * slopes)

    def between(self, home: Floats, points: Floats) -> Floats:
        """Return the distances from ``home`` (d,) to each of ``points`` (n, d), shape (n,)."""
        lengths = self.lengths(home, points)
        if self.norm == "l1":
            return np.asarray(lengths.sum(axis=1))
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", lengths, lengths)))

    def directions(self, home: Floats, points: Floats) -> Floats:
        """Return the moves from ``home`` (d,) to each of ``points`` (n, d) as vectors, shape (n, D)."""
        moves = moves_from(home, points)
        parts = [(moves * np.where(moves > 0.0, self.up, self.down))[:, self.levels == 0]]
        for j in np.flatnonzero(self.levels):
            corners = _corners(points[:, j], self.levels[j]) - _corners(home[[j]], self.levels[j])
            parts.append(self.up[j] * _CORNER["l2"] * corners)
        return np.hstack(parts)

    def embedded(self, points: Floats) -> Floats:
        """Return points (n, d) as vectors (n, D) whose own l1 or l2 distances are these, up to rounding.

        Only where :attr:`is_symmetric`.
        """
        parts = [(points * self.up)[:, self.levels == 0]]
        for j in np.flatnonzero(self.levels):
            parts.append(self.up[j] * _CORNER[self.norm] * _corners(points[:, j], self.levels[j]))
        return np.hstack(parts)


def moves_from(home: Floats, points: Floats) -> Floats:
    """Return the moves from ``home``, (d,) or (n, d), to points (n, d); 0 of a cell that is missing and stays so."""
    with np.errstate(invalid="ignore"):
        moves = points - home
    stays = np.isinf(home)
    if stays.any():
        moves[np.broadcast_to(stays, moves.shape)] = 0.0
    return np.asarray(moves)


def distance_of(who: str, norm: Norm, scale: str | Mapping[str, float], space: FeatureSpace) -> RowDistance:
    """Return the distance over a space's columns, or refuse the scale in the name of ``who``."""
    SCALE.require(who, "scale", scale)
    prices = slopes_of(who, "linear", scale, space)
    down = np.zeros(len(space))
    up = np.zeros(len(space))
    levels = np.zeros(len(space), dtype=np.intp)
    for j, feature in enumerate(space):
        (price,) = prices[feature.name]
        down[j] = price.down
        up[j] = price.up
        if feature.kind == "categorical":
            levels[j] = len(feature.levels)
    return RowDistance(norm, down, up, levels)


def cosines(one: Floats, others: Floats) -> Floats:
    """Return the cosine between a direction (D,) and each of others (k, D), in [-1, 1].

    A direction of length 0 is none: it counts as at right angles to every other.
    """
    sizes = np.abs(others).max(axis=1, initial=0.0)
    size = np.abs(one).max(initial=0.0)
    one = one / (size or 1.0)  # squares of very short directions would be 0
    others = others / np.where(sizes > 0.0, sizes, 1.0)[:, None]
    norms = np.sqrt(np.einsum("ij,ij->i", others, others)) * np.sqrt(one @ one)
    return np.asarray(np.clip(others @ one / np.where(norms > 0.0, norms, 1.0), -1.0, 1.0))


def _corners(ranks: Floats, count: np.intp) -> Floats:
    return np.asarray(ranks[:, None] == np.arange(count), dtype=np.float64)


# ==== Rows of other people as one person could become them ============================================================

_SWITCHES: Final = ("categorical", "binary")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Puts rows where one person may go, column by column.

    ======================================= =====================================================================
    rule                                    what becomes of a row that breaks it
    ======================================= =====================================================================
    immutable column, and a cell of the     the person's own value
    person that is missing or holds a code
    a row's cell that holds a code          the person's own value
    one-way column, bounds and limits set   the nearest value that is allowed
    steps                                   the nearest whole number of steps
    AllowedValues, a number                 the nearest value listed
    AllowedValues, levels                   the person's own level, if it is listed
    AllowedTransitions                      the person's own level
    MaxMove                                 the nearest value that is allowed
    ExactlyOne                              the 1 is where the row newly has one, else where the person has it
    Causal                                  columns that follow from others are computed anew
    Ratio                                   the same
    Product                                 the same
    MaxChanges                              the k moves that are longest in the distance stay, the others go back
    all other rules                         nothing: the row is dropped if it breaks them
    ======================================= =====================================================================

    Bounds that were inferred from data are no rules.

    Parameters
    ----------
    space, rules, distance
        The columns, what is asked for, and in what moves are long.
    home, low, high, step
        Per column the person's coordinate, the ends of what is allowed, and the width of the grid (0: none), (d,).
    levels
        Which levels a rule of the user allows, by the place of the column.
    amounts
        What is in reach of a column of numbers with codes between its bounds, by its place.
    """

    space: FeatureSpace
    home: Floats
    low: Floats
    high: Floats
    step: Floats
    rules: tuple[AbstractRule, ...]
    distance: RowDistance
    levels: Mapping[int, NDArray[np.bool_]]
    amounts: Mapping[int, Interval]

    @classmethod
    def of(
        cls, space: FeatureSpace, factual: Point, rules: Sequence[AbstractRule], distance: RowDistance
    ) -> Projection:
        """Return the projection for one person."""
        lows = []
        highs = []
        steps = []
        amounts: dict[int, Interval] = {}
        for j, feature in enumerate(space):
            part = _amounts(feature, factual[feature.name])
            lows.append(part.lower)
            highs.append(part.upper)
            steps.append(part.step or 0.0)
            if part.holes:
                amounts[j] = part
        return cls(
            space=space,
            home=np.array([factual[name] for name in space.names]),
            low=np.array(lows),
            high=np.array(highs),
            step=np.array(steps),
            rules=tuple(rules),
            distance=distance,
            levels=_levels(space, factual, rules),
            amounts=amounts,
        )

    @property
    def switch(self) -> NDArray[np.bool_]:
        """Which columns have nothing in between: categories and truth values, (d,)."""
        return np.array([feature.kind in _SWITCHES for feature in self.space])

    def __call__(self, points: Floats) -> Floats:
        """Return points (n, d) repaired by the space's rules, then by those of the user."""
        return self.mended(self.allowed(points))

    def allowed(self, points: Floats) -> Floats:
        """Return points (n, d) repaired by the space's own rules."""
        stepped = np.array([feature.step is not None for feature in self.space])
        coded = np.array([bool(feature.codes) for feature in self.space])
        result = points
        for j in np.flatnonzero(stepped | coded | (self.low > -math.inf) | (self.high < math.inf)):
            column = points[:, j]
            if coded[j]:
                column = np.where(self.space[self.space.names[j]].are_codes(column), self.home[j], column)
            if stepped[j] and self.low[j] < self.high[j]:
                column = decimal_grid(float(self.home[j]), float(self.step[j])).nearest(column)
            column = np.clip(column, self.low[j], self.high[j])
            if (column != points[:, j]).any():
                if result is points:
                    result = points.copy()
                result[:, j] = column
        return result

    def mended(self, points: Floats) -> Floats:
        """Return points (n, d) put back by the rules of the user, as far as a rule says where to, and off codes."""
        points = self._off_codes(points)
        if not self.rules:
            return points
        for j, good in self.levels.items():
            if self.home[j] == MISSING:  # where it stays, as all points do
                continue
            ranks = points[:, j].astype(np.intp)
            if not good[ranks].all():
                points = points.copy()
                points[~good[ranks], j] = self.home[j]
        factual = dict(zip(self.space.names, self.home.tolist(), strict=True))
        points = mended_points(self.rules, self.space, factual, points)
        for rule in self.rules:
            if isinstance(rule, MaxChanges):
                points = self._longest(points, rule)
        return points

    def _off_codes(self, points: Floats) -> Floats:
        """Return points (n, d) with the nearest amount in place of a code that a number or a rank has come to."""
        result = points
        for j, feature in enumerate(self.space):
            if not feature.codes or feature.is_label(self.home[j]):
                continue
            column = points[:, j]
            if feature.kind == "ordinal":
                column = feature.off_codes(column)
            elif j in self.amounts:
                at = np.isin(column, self.amounts[j].holes)
                column = column.copy()
                column[at] = list(map(self.amounts[j].clip, column[at].tolist()))
            if (column != points[:, j]).any():
                if result is points:
                    result = points.copy()
                result[:, j] = column
        return result

    def _longest(self, points: Floats, rule: MaxChanges) -> Floats:
        """Return points (n, d) with the longest moves that a limit on changes has room for, the others home."""
        counts = np.ones(len(self.space))
        if rule.count == "columns":
            counts[[feature.kind == "categorical" for feature in self.space]] = 2.0
        moved = points != self.home
        if not ((moved * counts).sum(axis=1) > rule.k).any():
            return points
        lengths = np.where(moved, self.distance.lengths(self.home, points), -1.0)
        room = np.full(len(points), float(rule.k))
        kept = np.zeros_like(moved)
        rows = np.arange(len(points))
        for columns in np.argsort(-lengths, axis=1, kind="stable").T:
            stays = moved[rows, columns] & (counts[columns] <= room)
            kept[rows, columns] = stays
            room -= stays * counts[columns]
        return np.where(kept, points, self.home)


def _step(feature: Feature) -> float | None:
    """Return the step of a column's grid, None without a grid; whole numbers and ranks are 1 apart."""
    if feature.step is None and feature.kind != "continuous":
        return 1.0
    return feature.step


def _amounts(feature: Feature, x0: float) -> Interval:
    """Return the coordinates that the space's rules allow, on the grid of the column; of a label it alone."""
    if feature.is_label(x0):
        return Interval(x0, x0)
    if feature.is_finite:
        low = 0.0
        high = len(feature.levels) - 1.0
    else:
        low, high = feature.widest
        low, high = min(low, x0), max(high, x0)
    if not feature.mutable or feature.direction == "increasing":
        low = x0
    if not feature.mutable or feature.direction == "decreasing":
        high = x0
    lowest, highest = limits_of(feature, x0)
    low, high = max(low, lowest), min(high, highest)
    plain = Interval(low, high, _step(feature), x0)
    holes: tuple[float, ...] = ()
    if not feature.is_finite:
        holes = tuple(sorted(filter(plain.has, map(feature.to_coordinate, feature.codes))))
    return replace(plain, holes=holes).narrowed(low, high)


def _levels(space: FeatureSpace, factual: Point, rules: Sequence[AbstractRule]) -> dict[int, NDArray[np.bool_]]:
    """Return, per column of levels that a rule restricts, which ones it allows."""
    allowed: dict[int, NDArray[np.bool_]] = {}
    for rule in rules:
        for name, part in _by_column(space, rule):
            j = space.names.index(name)
            count = len(space[name].levels)
            is_kept = np.zeros(count, dtype=bool)
            for rank in range(count):
                is_kept[rank] = part.violation(space, factual, {**factual, name: float(rank)}) <= 0
            allowed[j] = is_kept & allowed.get(j, True)
    return allowed


def _by_column(space: FeatureSpace, rule: AbstractRule) -> list[tuple[str, AbstractRule]]:
    """Return the columns of levels whose own values a rule restricts, each with the rule on it alone."""
    if isinstance(rule, AllowedTransitions):
        return [(rule.column, rule)]
    parts: list[tuple[str, AbstractRule]] = []
    if isinstance(rule, AllowedValues):
        for name, values in rule.values.items():
            if space[name].is_finite:
                parts.append((name, AllowedValues({name: values})))
    return parts
