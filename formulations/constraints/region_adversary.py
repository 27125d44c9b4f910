"""The adversary of the rule ``Region``: a point near an answer that is decided otherwise, or the proof that none is.

Nothing here knows the rows of the rule. Of trees the leaves that points near an answer can meet are searched, box by
box; of a linear model the worst point is known; of a network it is the optimum of a program over the box or the ball.
A decision is the one of the model as it was read, at a point, ties and rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.predictors.embed import embed_predictor
from ceopt.formulations.predictors.leaf_boxes import CellRanges, leaf_boxes
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.predictors.read_model import ReadModel
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.predictors.ties import accepted
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.predictors.worst_case import Noise, deepest_in_ball
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, only_at, reach_of
from ceopt.formulations.space.space import FeatureSpace, point_row
from ceopt.formulations.tolerances import REGION_ROOM, SOLVER_TOLERANCE
from ceopt.solvers import Status, solve
from ceopt.solvers.deadline import checkpoint, seconds_left

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.constraints.rule import Point
    from ceopt.formulations.targets import Target
    from ceopt.solvers.checks import Floats

_STAGE: Final = "looking for a point near the answer that is decided otherwise"
#: Orders in which a bad box is made larger, each of which gives a row.
_ORDERS: Final = 3


@final
@dataclass(frozen=True, slots=True)
class BadBox:
    """Points that are decided otherwise: by column the least and greatest amount, a label, or the ranks of levels."""

    numbers: Mapping[str, tuple[float, float]]
    labels: Mapping[str, float]
    levels: Mapping[str, frozenset[float]]


@final
@dataclass(frozen=True, slots=True)
class Scenario:
    """Moves of columns of numbers after which an answer is decided otherwise."""

    moves: Mapping[str, float]


@final
@dataclass(frozen=True, slots=True)
class Found:
    """A point near an answer that is decided otherwise, by how much, and the condition that it misses."""

    point: dict[str, float]
    short: float
    condition: int
    box: tuple[Floats, Floats] | None = None


@final
class Adversary:
    """Looks for a point near an answer that is decided otherwise.

    Parameters
    ----------
    predictor, target
        The model as it was read, and the decision that is to be kept.
    widths
        By column of numbers how far points may lie from the answer on either side: of a ball its half-axes.
    is_ball
        Whether it is a ball.
    """

    def __init__(self, predictor: ReadModel, target: Target, widths: Mapping[str, float], *, is_ball: bool) -> None:
        self.predictor = predictor
        self.target = target
        self.is_ball = is_ball
        self.space: FeatureSpace = predictor.space
        self.conditions = predictor.conditions(target)
        self.noises = noises_of(self.space, widths, is_ball=is_ball)
        self._leaves: list[_Leaves] = []
        if predictor.is_trees:
            self._leaves = [_Leaves.of(model, undecided) for model, undecided in self.conditions]

    @property
    def is_wide(self) -> bool:
        """Whether any other point is near an answer."""
        return any(noise.width > 0.0 if noise.step is None else noise.steps > 0 for noise in self.noises.values())

    def worst(self, point: Point) -> Found | None:
        """Return a point near another that is decided otherwise; None where there is none."""
        core = self.predictor.core
        if isinstance(core, TreeEnsemble):
            return self._worst_of_trees(point)
        if isinstance(core, Affine):
            return self._worst_of_linear(point)
        return self._worst_of_network(point)

    def shortfall(self, point: Point, condition: int = 0) -> Found | None:
        """Return a point as found where the model decides it otherwise; None where it does not."""
        row = point_row(self.space, point)
        if accepted(self.predictor, row, self.target)[0]:
            return None
        short = max(-float(slack(self.predictor, row, self.target)[0]), np.finfo(float).tiny)
        return Found(dict(point), short, condition)

    # ---- linear models and networks ----------------------------------------------------------------------------------
    def _worst_of_linear(self, point: Point) -> Found | None:
        here = self.shortfall(point)
        worst = here
        for condition, (model, _) in enumerate(self.conditions):
            names = list(self.noises)
            rows = np.repeat(point_row(self.space, point), 1 + len(names), axis=0)
            for k, name in enumerate(names):
                rows[1 + k, self.space.names.index(name)] += 1.0
            scores = model.score(rows)
            slopes = dict(zip(names, (scores[1:] - scores[0]).tolist(), strict=True))
            found = self.shortfall(self._moved(point, self._downhill(slopes)), condition)
            if found is not None and (worst is None or found.short > worst.short):
                worst = found
        return worst

    def _downhill(self, slopes: Mapping[str, float]) -> dict[str, float]:
        """Return the moves by which a linear score falls most."""
        if self.is_ball:
            moves, _ = deepest_in_ball(slopes, self.noises)
            return moves
        return {name: -math.copysign(noise.width, slopes[name]) for name, noise in self.noises.items() if slopes[name]}

    def _moved(self, point: Point, moves: Mapping[str, float]) -> dict[str, float]:
        found = dict(point)
        for name, move in moves.items():
            noise = self.noises[name]
            if noise.step is None:
                found[name] = point[name] + move
            else:
                grid = Interval(-math.inf, math.inf, noise.step, point[name])
                found[name] = grid.grid.at(round(move / noise.step))
        return found

    def _worst_of_network(self, point: Point) -> Found | None:
        """Return the least score over the box or the ball, by a program; a proof that ended early counts as broken."""
        worst = self.shortfall(point)
        for condition, (model, _) in enumerate(self.conditions):
            checkpoint(_STAGE)
            program = pyo.ConcreteModel()
            reach: dict[str, Any] = {
                name: only_at(part, point[name]) for name, part in reach_of(self.space, point).items()
            }
            for name, noise in self.noises.items():
                width = noise.width
                reach[name] = Interval(point[name] - width, point[name] + width, noise.step, point[name])
                if noise.step is not None:
                    grid = reach[name].grid
                    reach[name] = Interval(grid.at(-noise.steps), grid.at(noise.steps), noise.step, point[name])
            program.x = x = Factual(self.space, self.space.frame([dict(point)]), reach=reach)
            program.score = embed_predictor(model, x)
            if self.is_ball:
                parts = [
                    ((x.raw[name] - point[name]) / n.width) ** 2 for name, n in self.noises.items() if n.width > 0.0
                ]
                if parts:
                    program.ball = pyo.Constraint(expr=sum(parts) <= 1.0)
            score = program.score.combine((1.0,)).expression()
            program.least = pyo.Objective(expr=score + 0.0)
            if not program.score.combine((1.0,)).terms:
                continue
            left = min(max(seconds_left(), 0.01), 1e6)
            result = solve(program, time_limit_s=left)
            found = None
            if result.solutions:
                result.solutions[0].load()
                found = self.shortfall(x.decoded(), condition)
            checkpoint(_STAGE)
            bound = -math.inf if result.bound is None else float(result.bound)
            if found is None and (result.status is not Status.OPTIMAL or bound < -10.0 * SOLVER_TOLERANCE):
                found = Found(dict(point), max(-bound, SOLVER_TOLERANCE) if math.isfinite(bound) else 1.0, condition)
            if found is not None and (worst is None or found.short > worst.short):
                worst = found
        return worst

    # ---- trees -------------------------------------------------------------------------------------------------------
    def _worst_of_trees(self, point: Point) -> Found | None:
        for condition, leaves in enumerate(self._leaves):
            near = _Near(leaves, self, point, 0.0)
            found = near.search(condition)
            if found is not None:
                return found
        return None

    # ---- what follows from a point that was found --------------------------------------------------------------------
    def scenario(self, point: Point, found: Found) -> Scenario:
        """Return the moves from a point to one found, of trees as deep in the bad box as the region allows."""
        there = found.point
        if self._leaves and found.box is not None:
            near = _Near(self._leaves[found.condition], self, point, REGION_ROOM)
            there = near.deep(found)
        moves = {name: there[name] - point[name] for name in self.noises if there[name] != point[name]}
        return Scenario(moves)

    def bad_boxes(self, point: Point, found: Found) -> list[BadBox]:
        """Return maximal boxes of points that are decided otherwise, each around a point found, of trees."""
        near = _Near(self._leaves[found.condition], self, point, 0.0)
        boxes: list[BadBox] = []
        for order in range(_ORDERS):
            box = near.grown(found, order)
            if box not in boxes:
                boxes.append(box)
        return boxes


def noises_of(space: FeatureSpace, widths: Mapping[str, float], *, is_ball: bool) -> dict[str, Noise]:
    """Return how far columns may lie from where they are: of a box and one with steps so many whole ones."""
    noises = {}
    for name, width in widths.items():
        step = space[name].spacing
        noises[name] = Noise(width, step)
        if step is not None and not is_ball:
            noises[name] = Noise(noises[name].steps * step, step)
    return noises


# ==== The leaves of trees, and the search among those that points near an answer meet =================================


@final
@dataclass(frozen=True, slots=True)
class _Leaves:
    """The leaves of all trees of a condition, tree by tree.

    Parameters
    ----------
    tree, value
        (L,) position of the tree, and value.
    low, high
        (L, numbers) least and greatest amount that the leaf admits of a column of numbers.
    gap
        (L, numbers) whether it admits a missing cell.
    ranks
        By column of levels (L, levels + 1) which it admits, the missing cell last.
    base, divisor, undecided
        Start of the sum, what it is divided by, and how far from 0 rounding decides.
    """

    tree: NDArray[np.intp]
    value: Floats
    low: Floats
    high: Floats
    gap: NDArray[np.bool_]
    ranks: Mapping[str, NDArray[np.bool_]]
    base: float
    divisor: float
    undecided: float
    numbers: tuple[str, ...]
    _ends: dict[tuple[str, float], tuple[Floats, Floats]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: ReadModel, undecided: float) -> _Leaves:
        """Return the leaves of a model of one score."""
        core = model.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - the caller has asked
        space = model.space
        numbers = tuple(feature.name for feature in space if not feature.is_finite)
        boxes = leaf_boxes(model)
        shape = (len(boxes.tree), len(numbers))
        low, high, gap = np.full(shape, -np.inf), np.full(shape, np.inf), np.ones(shape, dtype=bool)
        ranks = {f.name: np.ones((shape[0], len(f.levels) + 1), dtype=bool) for f in space if f.is_finite}
        for name, column in boxes.columns.items():
            if isinstance(column, CellRanges):
                k = numbers.index(name)
                (low[:, k], high[:, k]), gap[:, k] = column.ends(), column.gap
            else:
                ranks[name] = column.admits[column.part]
        return cls(
            boxes.tree, boxes.values[:, 0], low, high, gap, ranks, float(core.base[0]), float(core.divisor), undecided,
            numbers,
        )  # fmt: skip

    def in_steps(self, name: str, step: float, anchor: float) -> tuple[Floats, Floats]:
        """Return the least and greatest amounts of a column as whole steps from an amount."""
        key = (name, anchor)
        if key not in self._ends:
            if len(self._ends) > 1000:
                self._ends.clear()
            k = self.numbers.index(name)
            grid = Interval(-math.inf, math.inf, step, anchor)
            first, last = self.low[:, k].copy(), self.high[:, k].copy()
            for ends, side in ((first, 1), (last, 0)):
                is_end = np.isfinite(ends)
                members = grid.sides_of(ends[is_end], ends[is_end])[side]
                ends[is_end] = np.rint((members - anchor) / step)
            self._ends[key] = (first, last)
        return self._ends[key]


@final
class _Near:
    """The leaves near one point, in units in which each column of numbers is 0 at the point or as it is.

    A column with steps counts them from the point; all others are in raw units.
    """

    def __init__(self, leaves: _Leaves, adversary: Adversary, point: Point, room: float) -> None:
        self.leaves = leaves
        self.adversary = adversary
        self.point = point
        self.low = leaves.low.copy()
        self.high = leaves.high.copy()
        count = len(leaves.numbers)
        self.home = np.zeros(count)
        self.width = np.zeros(count)
        self.is_stepped = np.zeros(count, dtype=bool)
        self.alive = np.ones(len(leaves.value), dtype=bool)
        self.is_label = np.zeros(count, dtype=bool)
        space = adversary.space
        for k, name in enumerate(leaves.numbers):
            value = point[name]
            noise = adversary.noises.get(name)
            if value == MISSING:
                self.alive &= leaves.gap[:, k]
                self.low[:, k], self.high[:, k] = -np.inf, np.inf
                self.is_label[k] = True
                continue
            self.is_label[k] = space[name].is_label(value)
            self.home[k] = value
            if noise is None:
                continue
            if noise.step is not None:
                self.low[:, k], self.high[:, k] = leaves.in_steps(name, noise.step, value)
                self.home[k] = 0.0
                self.is_stepped[k] = True
                self.width[k] = noise.width / noise.step
                if not adversary.is_ball:
                    self.width[k] = noise.steps
            else:
                self.width[k] = noise.width * (1.0 + room)
        for name, admitted in leaves.ranks.items():
            value = point[name]
            self.alive &= admitted[:, -1 if value == MISSING else int(value)]

    # ---- the search --------------------------------------------------------------------------------------------------
    def search(self, condition: int) -> Found | None:
        """Return a point of the region that is decided otherwise, with the box of its leaves; None where none is."""
        leaves = self.leaves
        low_end, high_end = self.home - self.width, self.home + self.width
        if self.adversary.is_ball:
            low_end = np.where(self.is_stepped, -np.floor(self.width + 1e-9), low_end)
            high_end = np.where(self.is_stepped, np.floor(self.width + 1e-9), high_end)
        alive = np.flatnonzero(self.alive)
        stack = [(low_end, high_end, alive)]
        rounds = 0
        while stack:
            rounds += 1
            if rounds % 64 == 0:
                checkpoint(_STAGE)
            low_end, high_end, alive = stack.pop()
            alive = alive[self._meets(low_end, high_end, alive)]
            tree, value = leaves.tree[alive], leaves.value[alive]
            if not len(alive):
                continue
            starts = np.flatnonzero(np.r_[True, tree[1:] != tree[:-1]])
            least = np.minimum.reduceat(value, starts)
            if (leaves.base + least.sum()) / leaves.divisor > leaves.undecided:
                continue
            most = np.maximum.reduceat(value, starts)
            spread = most - least
            worst = int(np.argmax(spread))
            if spread[worst] == 0.0:
                place = np.minimum(np.maximum(self.home, low_end), high_end)
                found = self.adversary.shortfall(self._point(place), condition)
                if found is not None:
                    return Found(found.point, found.short, condition, (low_end, high_end))
                continue
            stop = starts[worst + 1] if worst + 1 < len(starts) else len(value)
            own = alive[starts[worst] : stop]
            self._divide(stack, low_end, high_end, alive, own[int(np.argmin(value[starts[worst] : stop]))])
        return None

    def _meets(self, low_end: Floats, high_end: Floats, alive: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which leaves a box, or its part within the ball, meets."""
        low = np.maximum(self.low[alive], low_end)
        high = np.minimum(self.high[alive], high_end)
        meets = (low <= high).all(axis=1)
        if self.adversary.is_ball:
            off = np.maximum(np.maximum(low - self.home, self.home - high), 0.0)
            with np.errstate(invalid="ignore", divide="ignore"):
                far = np.where(off > 0.0, off / self.width, 0.0)
            meets &= (far * far).sum(axis=1) <= 1.0
        return np.asarray(meets)

    def _divide(self, stack: list[Any], low_end: Floats, high_end: Floats, alive: NDArray[np.intp], leaf: int) -> None:
        """Put the parts of a box outside a leaf on the stack, and last the part inside."""
        low_end, high_end = low_end.copy(), high_end.copy()
        for k in np.flatnonzero((self.low[leaf] > low_end) | (self.high[leaf] < high_end)).tolist():
            first, last = self.low[leaf, k], self.high[leaf, k]
            if first > low_end[k]:
                outside = high_end.copy()
                outside[k] = self._before(k, first)
                stack.append((low_end.copy(), outside, alive))
                low_end[k] = first
            if last < high_end[k]:
                outside = low_end.copy()
                outside[k] = self._after(k, last)
                stack.append((outside, high_end.copy(), alive))
                high_end[k] = last
        stack.append((low_end, high_end, alive))

    def _before(self, k: int, value: float) -> float:
        return value - 1.0 if self.is_stepped[k] else math.nextafter(value, -math.inf)

    def _after(self, k: int, value: float) -> float:
        return value + 1.0 if self.is_stepped[k] else math.nextafter(value, math.inf)

    def _point(self, place: Floats) -> dict[str, float]:
        """Return a place as coordinates."""
        found = dict(self.point)
        for k, name in enumerate(self.leaves.numbers):
            if name in self.adversary.noises:
                found[name] = self.raw(k, float(place[k]))
        return found

    def raw(self, k: int, value: float) -> float:
        """Return an amount in raw units."""
        if not self.is_stepped[k] or not math.isfinite(value):
            return value
        name = self.leaves.numbers[k]
        step = self.adversary.noises[name].step
        return Interval(-math.inf, math.inf, step, self.point[name]).grid.at(round(value))

    # ---- bad boxes ---------------------------------------------------------------------------------------------------
    def grown(self, found: Found, order: int) -> BadBox:
        """Return a box around a point found, no side of which can be moved out and all of it still be bad."""
        growth = _Growth(self, found)
        if growth.is_bad():
            growth.add_levels()
            for k, side in _sides(len(self.home), order):
                growth.push(k, side)
        return growth.box()

    # ---- scenarios ---------------------------------------------------------------------------------------------------
    def deep(self, found: Found) -> dict[str, float]:
        """Return the point of a bad box that is deepest inside and within the region, by halving the depth."""
        box = self.grown(found, 0)
        low_end, high_end = self.home - self.width, self.home + self.width
        for k, name in enumerate(self.leaves.numbers):
            if name not in self.adversary.noises:
                continue
            low, high = box.numbers.get(name, (-math.inf, math.inf))
            if self.is_stepped[k]:
                step = self.adversary.noises[name].step or 1.0
                low, high = ((end - self.point[name]) / step for end in (low, high))
                low, high = (round(end) if math.isfinite(end) else end for end in (low, high))
                low_end[k], high_end[k] = (
                    max(math.ceil(low_end[k] - 1e-9), low),
                    min(math.floor(high_end[k] + 1e-9), high),
                )
            else:
                low_end[k], high_end[k] = low, high
        is_moving = (self.width > 0.0) & ~self.is_stepped

        def at(depth: float) -> Floats | None:
            low = np.where(is_moving, low_end + depth * self.width, low_end)
            high = np.where(is_moving, high_end - depth * self.width, high_end)
            if (low > high).any():
                return None
            place = np.minimum(np.maximum(self.home, low), high)
            with np.errstate(invalid="ignore", divide="ignore"):
                far = np.where(place != self.home, (place - self.home) / self.width, 0.0)
            if self.adversary.is_ball:
                return place if float((far * far).sum()) <= 1.0 else None
            return place if float(np.abs(far).max(initial=0.0)) <= 1.0 else None

        first, last = 0.0, 2.0
        best = at(0.0)
        if best is None:
            return found.point
        for _ in range(40):
            middle = (first + last) / 2.0
            place = at(middle)
            if place is None:
                last = middle
            else:
                first, best = middle, place
        return self._point(best)


def _sides(count: int, order: int) -> list[tuple[int, int]]:
    """Return the sides of a box in one of several orders."""
    sides = [(k, side) for k in range(count) for side in (1, -1)]
    if order == 0:
        return sides
    if order == 1:
        return sides[::-1]
    rng = np.random.default_rng(count)
    return [sides[k] for k in rng.permutation(len(sides)).tolist()]


@final
class _Growth:
    """A box of points that are decided otherwise, while it grows: ends of numbers, and levels that are taken."""

    def __init__(self, near: _Near, found: Found) -> None:
        assert found.box is not None  # noqa: S101 - of trees
        self.near = near
        self.leaves = near.leaves
        self.low, self.high = found.box[0].copy(), found.box[1].copy()
        self.levels = {name: np.zeros(rows.shape[1], dtype=bool) for name, rows in self.leaves.ranks.items()}
        for name, taken in self.levels.items():
            taken[-1 if near.point[name] == MISSING else int(near.point[name])] = True
        self.alive = self._alive()

    def _alive(self) -> NDArray[np.bool_]:
        """Return the leaves that take some of the levels, and the missing cells."""
        alive = np.ones(len(self.leaves.value), dtype=bool)
        for name, taken in self.levels.items():
            alive &= (self.leaves.ranks[name] & taken).any(axis=1)
        for k in np.flatnonzero(self.near.is_label).tolist():
            if self.near.point[self.leaves.numbers[k]] == MISSING:
                alive &= self.leaves.gap[:, k]
        return alive

    def is_bad(self) -> bool:
        """Return whether the greatest leaves that the box meets add up to less than is needed."""
        near = self.near
        met = self.alive & ((near.low <= self.high) & (near.high >= self.low)).all(axis=1)
        return self._adds_up_to_less(np.flatnonzero(met))

    def _adds_up_to_less(self, met: NDArray[np.intp]) -> bool:
        leaves = self.leaves
        tree, value = leaves.tree[met], leaves.value[met]
        if not len(value):
            return False
        starts = np.flatnonzero(np.r_[True, tree[1:] != tree[:-1]])
        greatest = (leaves.base + np.maximum.reduceat(value, starts).sum()) / leaves.divisor
        return bool(greatest < -leaves.undecided)

    def add_levels(self) -> None:
        """Take more levels, one by one, as long as all of the box is bad."""
        for taken in self.levels.values():
            for rank in np.flatnonzero(~taken).tolist():
                before = self.alive
                taken[rank] = True
                self.alive = self._alive()
                if not self.is_bad():
                    taken[rank] = False
                    self.alive = before

    def push(self, k: int, side: int) -> None:
        """Move one side of the box out as far as all of it is bad."""
        if self.near.is_label[k]:
            return
        near = self.near
        target = self.high if side > 0 else self.low
        end = target[k]
        met = (near.low <= self.high) & (near.high >= self.low)
        met[:, k] = True
        others = np.flatnonzero(self.alive & met.all(axis=1))  # whatever this column is
        low, high = near.low[others, k], near.high[others, k]
        ends = high if side > 0 else low
        further = np.unique(ends[ends > end] if side > 0 else ends[ends < end])
        if side < 0:
            further = further[::-1]
        first, last = -1, len(further)  # all up to first are bad, last is not
        while last - first > 1:
            middle = (first + last) // 2
            target[k] = further[middle]
            if self._adds_up_to_less(others[(low <= self.high[k]) & (high >= self.low[k])]):
                first = middle
            else:
                last = middle
        target[k] = further[first] if first >= 0 else end

    def box(self) -> BadBox:
        """Return the box in raw units; columns in which it takes everything are left out."""
        near = self.near
        numbers, labels = {}, {}
        for k, name in enumerate(self.leaves.numbers):
            if near.is_label[k]:
                labels[name] = near.point[name]
            elif math.isfinite(self.low[k]) or math.isfinite(self.high[k]):
                numbers[name] = (near.raw(k, float(self.low[k])), near.raw(k, float(self.high[k])))
        levels = {}
        for name, taken in self.levels.items():
            if not taken.all():
                ranks = [float(rank) for rank in np.flatnonzero(taken[:-1])]
                levels[name] = frozenset([*ranks, MISSING] if taken[-1] else ranks)
        return BadBox(numbers, labels, levels)
