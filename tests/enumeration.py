"""The answer by trying everything: shares nothing with the formulations but the descriptions of the problem.

Each column's candidates are the factual, both float neighbours of every threshold, bounds, grid values or levels; every
combination is scored by the representation's own arithmetic and priced by the formulas of the public interface.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.space import Feature, FeatureSpace

Floats = NDArray[np.float64]


def candidates(feature: Feature, x0: float, thresholds: Iterable[float], *, width: str = "float64") -> list[float]:
    """Return the coordinates that the column may take, as far as they can matter to trees with these thresholds."""
    if not feature.mutable:
        return [x0]
    low, high = x0, x0
    if feature.is_finite:
        low, high = 0.0, len(feature.levels) - 1.0
        values = set(map(float, range(len(feature.levels))))
    else:
        low, high = min(feature.lower, x0), max(feature.upper, x0)
        near = {
            x0,
            *(v for t in thresholds for v in neighbours(t, width)),
            *(b for b in (low, high) if math.isfinite(b)),
        }
        step = feature.step if feature.step is not None else 1.0 if feature.kind == "integer" else None
        values = near
        if step is not None:
            first, last = math.floor((min(near) - x0) / step) - 1, math.ceil((max(near) - x0) / step) + 1
            values = {x0 + k * step for k in range(first, last + 1)}
    if feature.direction == "increasing":
        low = x0
    if feature.direction == "decreasing":
        high = x0
    return sorted(v for v in values if low <= v <= high)


def neighbours(threshold: float, width: str) -> list[float]:
    """Return float64 values on both sides of every place where ``cast(x) <= threshold`` may turn."""
    places = [threshold]
    if width == "float32":
        one = np.float32(threshold)
        three = [np.nextafter(one, np.float32(-np.inf)), one, np.nextafter(one, np.float32(np.inf))]
        places += [float(v) for v in three] + [(float(a) + float(b)) / 2 for a, b in itertools.pairwise(three)]
    return sorted({v for p in places for v in (math.nextafter(p, -math.inf), p, math.nextafter(p, math.inf))})


def product(columns: Sequence[Sequence[float]]) -> Floats:
    """Return every combination, (n, d)."""
    return np.array(list(itertools.product(*columns)), dtype=float).reshape(-1, len(columns))


# ---- what the model sees, and what it decides -----------------------------------------------------------------------
def identity(space: FeatureSpace, points: Floats) -> Floats:
    """Return the matrix of a plain-array representation: numbers, levels that are numbers, else ranks."""
    columns = []
    for j, feature in enumerate(space):
        column = points[:, j]
        if feature.is_finite and all(isinstance(level, int | float) for level in feature.levels):
            column = np.array([float(feature.levels[int(k)]) for k in column])
        columns.append(column)
    return np.stack(columns, axis=1)


# ---- costs, from the text of the public interface -------------------------------------------------------------------
Cost = Callable[["Moves"], Floats]


@dataclass(frozen=True)
class Moves:
    """All candidate moves of one person: ``moves`` (n, d) in coordinates."""

    space: FeatureSpace
    moves: Floats

    def weight(self, j: int) -> Floats:
        down, up = self.space[self.space.names[j]].weights
        if self.space[self.space.names[j]].kind == "categorical":
            return np.full(len(self.moves), up)
        return np.where(self.moves[:, j] > 0, up, down)

    def size(self, j: int, scale: str | Mapping[str, float]) -> Floats:
        """|move| / scale: 1 of a changed category, 1 / (levels - 1) per ordinal level."""
        feature, move = self.space[self.space.names[j]], np.abs(self.moves[:, j])
        if feature.kind == "categorical":
            unit = 1.0
            move = (move > 0).astype(float)
        elif feature.kind == "binary":
            unit = 1.0
        elif feature.kind == "ordinal":
            unit = max(len(feature.levels) - 1.0, 1.0)
        else:
            unit = numeric_scale(feature, scale)
        return move / (scale.get(feature.name, unit) if isinstance(scale, Mapping) else unit)

    def terms(self, scale: str | Mapping[str, float], count: str = "features") -> Floats:
        """Return t_j = weight_j * |move_j| / scale_j, (n, d); counted by columns, one more for each category."""
        columns = [self.weight(j) * self.size(j, scale) for j in range(self.moves.shape[1])]
        categories = [j for j, feature in enumerate(self.space) if feature.kind == "categorical"]
        return np.stack(columns + [columns[j] for j in categories if count == "columns"], axis=1)

    def changes(self, count: str = "features") -> Floats:
        twice = [2.0 if count == "columns" and feature.kind == "categorical" else 1.0 for feature in self.space]
        return (self.moves != 0) @ np.array(twice)


def numeric_scale(feature: Feature, scale: str | Mapping[str, float]) -> float:
    if isinstance(scale, Mapping):
        return scale[feature.name]
    order = {"mad": ("mad", "std", "range"), "std": ("std", "range"), "range": ("range",), "none": ()}[scale]
    if scale == "none":
        return 1.0
    known = [getattr(feature, word) for word in order] + [feature.upper - feature.lower]
    return next((size for size in known if size and math.isfinite(size)), 1.0)


def l0(moves: Moves) -> Floats:
    return sum((moves.weight(j) * (moves.moves[:, j] != 0) for j in range(moves.moves.shape[1])), np.zeros(1))


def l1(scale: str | Mapping[str, float] = "mad", count: str = "features") -> Cost:
    return lambda moves: moves.terms(scale, count).sum(axis=1)


def l2_squared(scale: str | Mapping[str, float] = "mad", count: str = "features") -> Cost:
    return lambda moves: (moves.terms(scale, count) ** 2).sum(axis=1)


def l2(scale: str | Mapping[str, float] = "mad") -> Cost:
    return lambda moves: np.sqrt((moves.terms(scale) ** 2).sum(axis=1))


def linf(scale: str | Mapping[str, float] = "mad") -> Cost:
    return lambda moves: moves.terms(scale).max(axis=1)


def changes(count: str = "features") -> Cost:
    return lambda moves: moves.changes(count)


def total(*parts: tuple[float, Cost]) -> Cost:
    return lambda moves: sum((factor * part(moves) for factor, part in parts), np.zeros(1))


# ---- further answers ------------------------------------------------------------------------------------------------
def distinct(space: FeatureSpace, home: Floats, earlier: Floats, points: Floats) -> NDArray[np.bool_]:
    """Return which points leave a column that an earlier one changes, or change the same ones and one otherwise."""
    before, after = earlier != home, points != home
    leaves = (before & ~after).any(axis=1)
    further = (after & ~before).any(axis=1)
    otherwise = np.zeros(len(points), dtype=bool)
    for j, feature in enumerate(space):
        if not before[j]:
            continue
        if feature.kind == "categorical":
            otherwise |= points[:, j] != earlier[j]
        else:
            otherwise |= np.sign(points[:, j] - home[j]) == -np.sign(earlier[j] - home[j])
    return np.asarray(leaves | (~further & otherwise))


def distinct_costs(space: FeatureSpace, home: Floats, points: Floats, costs: Floats, n: int) -> list[float]:
    """Return what the first n distinct points cost: the cheapest, of the same cost that with the fewest changes, first.

    Of a cost there come all that have no other of this cost within their columns, in whatever order.
    """
    left, found = np.ones(len(points), dtype=bool), list[float]()
    while len(found) < n and left.any():
        best = costs[left].min()
        tied = np.flatnonzero(left & (costs <= best + 1e-9 * max(1.0, abs(best))))
        first = tied[(points[tied] != home).sum(axis=1).argmin()]
        found.append(float(costs[first]))
        left &= distinct(space, home, points[first], points)
    return found


# ---- decisions ------------------------------------------------------------------------------------------------------
def share_slack(scores: Floats, wanted: Sequence[int]) -> Floats:
    """Return best score wanted less best score not wanted, for scores (n, K)."""
    others = [k for k in range(scores.shape[1]) if k not in wanted]
    return np.asarray(scores[:, list(wanted)].max(axis=1) - scores[:, others].max(axis=1))


@dataclass(frozen=True)
class Ranking:
    """Points that are allowed, and their costs."""

    points: Floats
    costs: Floats

    @property
    def best(self) -> float | None:
        return float(self.costs.min()) if len(self.costs) else None

    def only(self, kept: NDArray[np.bool_]) -> Ranking:
        return Ranking(self.points[kept], self.costs[kept])
