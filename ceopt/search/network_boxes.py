r"""Least costs over ReLU networks without a program: branch and bound over boxes of the columns.

.. math:: \min_{x \in \text{reach}} \sum_j p_j(x_j) \quad\text{s.t.}\quad w_r^\top s(x) \ge \ell_r \ \forall r

for prices p that never fall away from the factual. A box gives each number a range and each column of levels a set.
Over the points of a box that cost at most the cost U of the best answer in hand, each neuron has a linear function
below and one above it (CROWN), so each sum of scores has a linear bound in the columns,

.. math:: w_r^\top s(x) \le c^\top x + d .

Its greatest value over the box and the budget U is a continuous knapsack, as are the bounds of the neurons themselves;
and the least budget with which it reaches the level is a lower bound on the cost of an answer in the box. A box whose
bound is not below U is done; of the others those with the least bounds are divided, many at once, along the columns
that make their bounds loose. Where the knapsack ends, a point is decoded, scored and brought to the decision along
the network's own slopes: an answer that may lower U.

The bounds are those of exact arithmetic up to roundings, for which the levels are lowered.

References
----------
Zhang et al. (2018), CROWN.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.costs.base import knapsack, prices_of
from ceopt.formulations.predictors.embed.networks import multiplied_out
from ceopt.formulations.predictors.reaches import wanted_sums
from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.predictors.ties import row_relaxation
from ceopt.formulations.space.reachable import DecimalGrid, Interval, Levels, decimal_grids
from ceopt.formulations.tolerances import BOUNDS_OUTWARDS
from ceopt.search.least_costs import LeastCost
from ceopt.solvers.checks import Floats
from ceopt.tolerances import BOX_BOUND_ROUNDING, LEAST_INFLUENCE, START_MARGIN_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.columns import Price
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.formulations.targets import Target
    from ceopt.search.prepare import Prepared


Bools: TypeAlias = NDArray[np.bool_]

#: Boxes that are divided at once.
_AT_ONCE: Final = 64
#: Segments by which a square price is bounded from below, between the ends of a box.
_SEGMENTS: Final = 4
#: How often a point is brought to the decision along the network's slopes.
_STEPS: Final = 3
#: Points of one round that are held against the rules.
_ASKED: Final = 4
#: Lines below neurons that switch, in the bound of the score: a fixed slope, and the one that leaves the smaller area.
_SLOPES: Final = (0.0, None)


# ==== What is found ===================================================================================================
#: What a search may cost: boxes times what bounding one of them takes, about four seconds.
WORK: Final = 100_000_000
#: What bounding a box takes beside its arithmetic, in the same unit.
_OF_A_BOX: Final = 8_000
#: A search is given up once more boxes are still to be divided than so many, and this share of those that were bounded:
#: a division that settles neither half leaves one more each time. None of 26 people of HELOC who were settled had more.
_GIVEN_UP: Final = (250, 1.0 / 6.0)
#: Fewest boxes for which a network is not too large.
_FEWEST: Final = 100
#: Most entries of the arrays of the boxes that are divided at once.
_ENTRIES: Final = 4_000_000
#: Share of the default margin by which points exceed the decision: a tenth of what the margin may cost.
_OF_MARGIN: Final = 0.1


def least_by_boxes(
    prepared: Prepared,
    factual: Mapping[str, float],
    reach: Reach,
    *,
    keeps: Callable[[dict[str, float]], bool],
    cost_in_hand: float = math.inf,
    deadline: float = math.inf,
    work: float = WORK,
) -> LeastCost | None:
    """Return the least cost of one person under a network; None where a cost is joint or the network too large.

    The bound is at no margin, unless the user asked for one. The point with it is the cheapest one found, if it is
    cheaper than the one in hand.

    Parameters
    ----------
    prepared
        The question, with the margins of the person.
    factual, reach
        The person.
    keeps
        Whether a point keeps all rules. They only leave out points, so that the bound holds under them.
    cost_in_hand
        Of the cheapest point that is known, if there is one.
    deadline
        On the clock of ``time.perf_counter``.
    work
        The most that the search may cost.
    """
    predictor = prepared.predictor
    settings = prepared.settings
    cost = settings.cost
    if not isinstance(predictor.core, ReluNetwork) or predictor.encoding.is_wide or cost.is_joint:
        return None
    columns = MovingColumns.of(prepared.space, cost.prices(prepared.space), factual, reach)
    rounding = row_relaxation(predictor, factual, reach)
    margin = prepared.margin or 0.0
    if settings.margin is None:
        level, least, aim = 0.0, 0.0, rounding + _OF_MARGIN * margin
    else:
        level, least = margin, margin * (1.0 + START_MARGIN_ROUNDING) + prepared.steps
        aim = rounding + 2.0 * (least - margin)
    asked = AskedNetwork.of(predictor, settings.target, columns, margin=level, rounding=rounding)
    if asked is None:
        return None
    most_boxes = int(work / (_OF_A_BOX + asked.work))
    if most_boxes < _FEWEST:
        return None
    names = prepared.space.names

    def accepts(coordinates: Floats) -> bool:
        slacks = prepared.slacks(coordinates[None])
        return bool(slacks[0] >= least) and keeps(dict(zip(names, coordinates.tolist(), strict=True)))

    search = ColumnBoxes(columns, asked, accepts, aim, settings.relative_gap)
    in_hand = cost.to_objective(cost_in_hand) if math.isfinite(cost_in_hand) else math.inf
    found = search.run(in_hand, most_boxes=most_boxes, deadline=deadline)
    if found is None:
        return None
    points: tuple[dict[str, float], ...] = ()
    if found.point is not None:
        points = (dict(zip(names, found.point.tolist(), strict=True)),)
    bound = found.bound
    if math.isfinite(bound):
        bound = max(cost.from_objective(bound), 0.0)
    return LeastCost(bound, points=points)


# ==== The columns of one person =======================================================================================
@final
@dataclass(frozen=True, slots=True, eq=False)
class MovingColumns:
    """The n numbers and the G groups of choices of one person that can move, as arrays.

    A group is the levels of a column; or, of a number that may hold a label, its labels and, first of all, the choice
    that it is an amount. While it holds a label its amount rests at its origin.

    Parameters
    ----------
    numbers, groups
        Where their columns stand in the space.
    home
        The person's coordinates, (d,).
    origin
        From where the moves of numbers count, (n,): the person's own value, or the amount nearest to 0 for a label.
    lower, upper
        Ends of the numbers, (n,).
    stepped, grid, holes
        Numbers that move by steps, their grids side by side, and those of them with members that are no amounts.
    linear, square, fixed
        Prices of a unit, of a squared unit and of a move at all, down and up: (2, n).
    starts
        First choice of each group, of L in all.
    values, prices
        Of each choice its coordinate, NaN for an amount, and what it costs, (L,).
    amounts
        Pairs of a number and the choice that it is an amount.
    """

    numbers: NDArray[np.intp]
    groups: NDArray[np.intp]
    home: Floats
    origin: Floats
    lower: Floats
    upper: Floats
    stepped: NDArray[np.intp]
    grid: DecimalGrid
    holes: tuple[tuple[int, tuple[float, ...]], ...]
    linear: Floats
    square: Floats
    fixed: Floats
    starts: NDArray[np.intp]
    values: Floats
    prices: Floats
    amounts: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls, space: FeatureSpace, prices: Mapping[str, tuple[Price, ...]], factual: Mapping[str, float], reach: Reach
    ) -> Self:
        """Return the columns of a person that can move."""
        numbers: list[int] = []
        groups: list[int] = []
        parts: list[Interval] = []
        origin: list[float] = []
        starts: list[int] = []
        amounts: list[tuple[int, int]] = []
        slopes: list[list[tuple[float, float]]] = [[], [], []]
        values: list[float] = []
        costs: list[float] = []
        for j, feature in enumerate(space):
            part = reach[feature.name]
            home = factual[feature.name]
            listed = prices[feature.name]
            if part.is_point and part.only == home:
                continue
            choices = part.values if isinstance(part, Levels) else ()
            if isinstance(part, Interval):
                is_label = feature.is_label(home)
                origin.append(part.clip(0.0) if is_label else home)
                if part.labels or is_label:
                    amounts.append((len(numbers), len(values)))
                    choices = (origin[-1], *part.labels)
                numbers.append(j)
                parts.append(part)
                moved = () if is_label else listed  # from a label all amounts cost the same
                for found, kinds in zip(slopes, (("linear", "length"), ("square",), ("fixed",)), strict=True):
                    power = 2.0 if kinds == ("square",) else 1.0
                    own = [price for price in moved if price.kind in kinds]
                    found.append((sum(p.down**power for p in own), sum(p.up**power for p in own)))
            if choices:
                groups.append(j)
                starts.append(len(values))
                values += choices
                costs += prices_of(listed, feature, home, np.array(choices)).tolist()
        linear, square, fixed = (np.array(pairs, dtype=np.float64).reshape(-1, 2).T for pairs in slopes)
        coordinates = np.array(values)
        stepped = [k for k, part in enumerate(parts) if part.step is not None]
        coordinates[[choice for _, choice in amounts]] = np.nan
        return cls(
            np.array(numbers, dtype=np.intp),
            np.array(groups, dtype=np.intp),
            np.array([factual[name] for name in space.names]),
            np.array(origin),
            np.array([part.lower for part in parts]),
            np.array([part.upper for part in parts]),
            np.array(stepped, dtype=np.intp),
            decimal_grids(np.array([parts[k].anchor for k in stepped]), np.array([parts[k].step for k in stepped])),
            tuple((place, parts[k].holes) for place, k in enumerate(stepped) if parts[k].holes),
            linear,
            square,
            fixed,
            np.array(starts, dtype=np.intp),
            coordinates,
            np.array(costs),
            tuple(amounts),
        )

    @property
    def ends(self) -> NDArray[np.intp]:
        """Where the levels of each column end."""
        return np.append(self.starts, len(self.values))[1:]

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many levels each column has."""
        return self.ends - self.starts

    def moves_cost(self, moves: Floats) -> Floats:
        """Return what moves of the numbers (B, n) cost."""
        up = moves > 0.0
        size = np.abs(moves)
        linear, square, fixed = (np.where(up, both[1], both[0]) for both in (self.linear, self.square, self.fixed))
        return np.asarray(linear * size + square * size * size + np.where(size > 0.0, fixed, 0.0))

    def affordable(self, room: Floats) -> tuple[Floats, Floats]:
        """Return the farthest coordinates (B, n), down and up, whose move costs no more than ``room`` (B, n)."""
        home = self.origin
        ends = []
        for side, sign in ((0, -1.0), (1, 1.0)):
            rest = room - self.fixed[side]
            with np.errstate(divide="ignore", invalid="ignore"):
                by_linear = np.where(self.linear[side] > 0.0, rest / self.linear[side], np.inf)
                by_square = np.where(
                    self.square[side] > 0.0, np.sqrt(np.maximum(rest, 0.0) / self.square[side]), np.inf
                )
            far = np.where(rest < 0.0, 0.0, np.minimum(by_linear, by_square))
            ends.append(home + sign * (far * (1.0 + BOX_BOUND_ROUNDING) + np.spacing(np.abs(home))))
        return ends[0], ends[1]

    def floor(self, values: Floats) -> Floats:
        """Return the greatest members up to some numbers (B, n), minus infinity where there is none."""
        return self._members(values, np.minimum, self.upper, -1.0)

    def ceil(self, values: Floats) -> Floats:
        """Return the least members from some numbers (B, n) on, infinity where there is none."""
        return self._members(values, np.maximum, self.lower, 1.0)

    def _members(self, values: Floats, clip: np.ufunc, end: Floats, sign: float) -> Floats:
        """Return the next members downwards or upwards, as :meth:`Interval.floor` and ``ceil`` have them."""
        values = clip(values, end)
        stepped = self.stepped
        if len(stepped):
            wanted = values[:, stepped]
            is_number = np.isfinite(wanted)
            held = np.where(is_number, wanted, 0.0)
            grid = self.grid
            counts = np.rint((held - grid.anchor) / (grid.step / grid.scale))
            counts += sign * (sign * grid.many(counts) < sign * held)
            for k, holes in self.holes:
                own = DecimalGrid(*(part[k] for part in grid))
                for _ in holes:
                    counts[:, k] += sign * np.isin(own.many(counts[:, k]), holes)
            values[:, stepped] = np.where(is_number, grid.many(counts), wanted)
        return np.where((values >= self.lower) & (values <= self.upper), values, sign * np.inf)


# ==== The network and what is asked of it =============================================================================
@final
@dataclass(frozen=True, slots=True, eq=False)
class AskedNetwork:
    """A network over the moves of the numbers and the choice of levels, and sums of its scores that have a level each.

    Parameters
    ----------
    layers
        Weights and constants; the first reads (moves, indicators of levels), n + L of them.
    rows, needs
        Weights (R, K) of the scores, and the levels (R,) less what rounding may take.
    alternatives
        Rows of which all have to reach their level; one alternative has to hold.
    """

    layers: tuple[tuple[Floats, Floats], ...]
    rows: Floats
    needs: Floats
    alternatives: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, predictor: Predictor, target: Target, columns: MovingColumns, *, margin: float, rounding: float
    ) -> Self | None:
        """State it for one person, or return None where the target can not be reached, or is no matter of scores."""
        core = predictor.core
        assert isinstance(core, ReluNetwork)  # noqa: S101 - as who calls this has seen
        rows: list[tuple[float, ...]] = []
        needs: list[float] = []
        alternatives: list[tuple[int, ...]] = []
        for _, sums in wanted_sums(core, target):
            if any(one.level == math.inf for one in sums):
                continue
            kept = [one for one in sums if one.level != -math.inf]
            alternatives.append(tuple(range(len(rows), len(rows) + len(kept))))
            rows += [one.weights for one in kept]
            needs += [one.level + margin - rounding for one in kept]
        if not alternatives or not all(alternatives):
            return None
        first, *others = multiplied_out(core)
        weights, constants = _over_moves(predictor, columns, *first)
        return cls(((weights, constants), *others), np.array(rows), np.array(needs), tuple(alternatives))

    @property
    def work(self) -> float:
        """What bounding one box takes: entries of its knapsacks, and products of matrices, of which a core does 16."""
        inputs = self.layers[0][0].shape[1]
        total = 0.0
        below = 0.0
        for weights, _ in self.layers[:-1]:
            total += 2.0 * len(weights) * (inputs + below / 16.0)
            below += weights.size
        return total

    def scored(self, inputs: Floats) -> tuple[Floats, list[Bools]]:
        """Return the sums (B, R) at inputs (B, n + L), and which neurons of each layer are on."""
        on = []
        values = inputs
        for weights, constants in self.layers[:-1]:
            values = values @ weights.T + constants
            on.append(values > 0.0)
            values = np.maximum(values, 0.0)
        weights, constants = self.layers[-1]
        return (values @ weights.T + constants) @ self.rows.T, on

    def slopes(self, row: NDArray[np.intp], on: Sequence[Bools]) -> Floats:
        """Return the slopes (B, n + L) of one row's sum for each point."""
        slopes = self.rows[row] @ self.layers[-1][0]
        for (weights, _), active in zip(reversed(self.layers[:-1]), reversed(on), strict=True):
            slopes = np.where(active, slopes, 0.0) @ weights
        return slopes


def _over_moves(
    predictor: Predictor, columns: MovingColumns, weights: Floats, constants: Floats
) -> tuple[Floats, Floats]:
    """Return the first layer over moves and levels; what does not move counts as the library computes it."""
    encoding = predictor.encoding
    resting = columns.home.copy()
    resting[columns.numbers] = columns.origin
    at_rest = encoding.matrix(resting[None, :])[0].astype(np.float64)
    n = len(columns.numbers)
    matrix = np.zeros((len(at_rest), n + len(columns.values)))
    slopes, _ = encoding.slopes
    read = (weights != 0.0).any(axis=0)
    number_of = {int(j): k for k, j in enumerate(columns.numbers)}
    group_of = {int(j): g for g, j in enumerate(columns.groups)}
    for i in np.flatnonzero(read).tolist():
        source = int(encoding.sources[i])
        if source in number_of:
            matrix[i, number_of[source]] = slopes[i]
        if source not in group_of:
            continue
        g = group_of[source]
        own = slice(columns.starts[g], columns.ends[g])
        is_amount = np.isnan(columns.values[own])
        values = encoding.columns[i].evaluate(np.where(is_amount, 0.0, columns.values[own])).astype(np.float64)
        if source in number_of:
            values = np.where(is_amount, 0.0, values - at_rest[i])
        else:
            at_rest[i] = 0.0
        matrix[i, n + own.start : n + own.stop] = values
    at_rest[~read] = 0.0
    return weights @ matrix, weights @ at_rest + constants


# ==== Boxes ===========================================================================================================
class Boxes(NamedTuple):
    """B boxes: ranges of the numbers (B, n), levels that are left (B, L), and a lower bound on the cost in each (B,).

    ``column`` is the one along which a box is to be divided: a number, or n and more for levels; -1 for none.
    """

    low: Floats
    high: Floats
    left: Bools
    bound: Floats
    column: NDArray[np.intp]

    def of(self, kept: NDArray[np.intp] | Bools) -> Boxes:
        """Return some of them."""
        return Boxes(self.low[kept], self.high[kept], self.left[kept], self.bound[kept], self.column[kept])

    def and_of(self, other: Boxes) -> Boxes:
        """Return these and others."""
        return Boxes(*(np.concatenate(both) for both in zip(self, other, strict=True)))


class _Nearest(NamedTuple):
    """The cheapest of each box: the numbers nearest to home, the least prices of levels, and what is left to spend."""

    numbers: Floats
    number_cost: Floats
    level_cost: Floats
    is_cheapest: Bools
    base: Floats


class _View(NamedTuple):
    """Boxes with their cheapest points, the moves to the ends (B, n) and what their segments cost."""

    boxes: Boxes
    nearest: _Nearest
    down: Floats
    down_cost: Floats
    up: Floats
    up_cost: Floats


class _Items(NamedTuple):
    """Knapsacks (B, K): the value at the cheapest points, gains and costs (B, K, items) of moving away."""

    value: Floats
    gain: Floats
    cost: Floats


@final
@dataclass(slots=True, eq=False)
class FoundInBoxes:
    """What a search came to, in the unit of the prices: the best answer's cost and point, the lower bound, and work."""

    cost: float
    point: Floats | None
    bound: float
    boxes: int


@final
@dataclass(slots=True, eq=False)
class ColumnBoxes:
    """Branch and bound over the boxes of one person.

    Parameters
    ----------
    columns, asked
        The person, and what is asked.
    accepts
        Whether a point, coordinates (d,), is an answer: what the model says, and the rules.
    aim
        By how much points are to exceed the levels, so that the model's rounding does not refuse them.
    gap
        Relative gap below which a bound is a proof.
    """

    columns: MovingColumns
    asked: AskedNetwork
    accepts: Callable[[Floats], bool]
    aim: float
    gap: float

    def run(self, cutoff: float, *, most_boxes: int, deadline: float) -> FoundInBoxes | None:
        """Search, from the cost of an answer in hand on (infinite if there is none).

        None where a number may move without end within that cost.
        """
        found = FoundInBoxes(cutoff, None, math.inf, 0)
        whole = self._within(self._root(), cutoff)
        if not (np.isfinite(whole.low) & np.isfinite(whole.high)).all():
            return None
        at_once = max(1, min(_AT_ONCE, int(_ENTRIES / max(self.asked.work, 1.0))))
        boxes = self._bounded(self._root(), found)
        while len(boxes.bound) and found.boxes < most_boxes and time.perf_counter() < deadline:
            order = np.argsort(boxes.bound, kind="stable")
            children = self._halves(boxes.of(order[:at_once]))
            boxes = self._bounded(children, found).and_of(boxes.of(order[at_once:]))
            boxes = self._open(boxes, found)
            few, share = _GIVEN_UP
            if len(boxes.bound) > few + share * found.boxes:
                break
        found.bound = min(found.bound, found.cost, *boxes.bound.tolist())
        if found.bound >= found.cost * (1.0 - 10.0 * BOX_BOUND_ROUNDING):
            found.bound = found.cost
        return found

    def _open(self, boxes: Boxes, found: FoundInBoxes) -> Boxes:
        """Return the boxes that may hold a cheaper answer and can be divided; note the bounds of the others."""
        is_open = np.asarray((boxes.bound < self._enough(found.cost)) & (boxes.column >= 0))
        found.bound = min(found.bound, *boxes.bound[~is_open].tolist(), math.inf)
        return boxes.of(is_open)

    def _enough(self, cost: float) -> float:
        """Return the bound from which on no answer is cheaper by more than the gap."""
        return cost * (1.0 - self.gap)

    # ---- boxes -------------------------------------------------------------------------------------------------------
    def _root(self) -> Boxes:
        columns = self.columns
        return Boxes(
            columns.lower[None].copy(),
            columns.upper[None].copy(),
            np.ones((1, len(columns.values)), dtype=bool),
            np.zeros(1),
            np.zeros(1, dtype=np.intp),
        )

    def _halves(self, boxes: Boxes) -> Boxes:
        """Divide each box in two."""
        columns = self.columns
        n = len(columns.numbers)
        low = np.concatenate((boxes.low, boxes.low))
        high = np.concatenate((boxes.high, boxes.high))
        left = np.concatenate((boxes.left, boxes.left))
        count = len(boxes.bound)
        mine = np.flatnonzero(boxes.column < n)
        j = boxes.column[mine]
        ends = boxes.low[mine, j], boxes.high[mine, j]
        home = columns.origin[j]
        middle = ends[0] + 0.5 * (ends[1] - ends[0])
        middle = np.where((ends[0] < home) & (home < ends[1]), home, middle)
        # where a move has a price of its own, staying is a box of its own
        is_fixed = np.asarray(columns.fixed.any(axis=0))[j]
        middle = np.where(is_fixed & (ends[0] == home), home, middle)
        middle = np.where(is_fixed & (ends[1] == home), np.nextafter(home, -np.inf), middle)
        beyond = np.nextafter(middle, np.inf)
        high[mine, j] = middle
        low[count + mine, j] = np.where(is_fixed | np.isin(j, columns.stepped), beyond, middle)
        for g in range(len(columns.starts)):
            mine = np.flatnonzero(boxes.column == n + g)
            if not len(mine):
                continue
            own = slice(columns.starts[g], columns.ends[g])
            open_ = boxes.left[mine, own]
            prices = np.where(open_, columns.prices[own], np.inf)
            rank = np.argsort(np.argsort(prices, axis=1, kind="stable"), axis=1, kind="stable")
            size = open_.sum(axis=1, keepdims=True)
            ordered = np.sort(prices, axis=1)
            has_one = ordered[:, :1] < ordered[:, 1:2]
            first = open_ & (rank < np.where(has_one, 1, size // 2))
            left[mine, own] = first
            left[count + mine, own] = open_ & ~first
        bound = np.concatenate((boxes.bound, boxes.bound))
        return Boxes(low, high, left, bound, np.zeros(2 * count, dtype=np.intp))

    def _nearest(self, boxes: Boxes) -> _Nearest:
        columns = self.columns
        home = columns.origin
        near = np.clip(home, boxes.low, boxes.high)
        number_cost = columns.moves_cost(near - home)
        prices = np.where(boxes.left, columns.prices, np.inf)
        level_cost = np.zeros((len(near), 0))
        if len(columns.starts):
            level_cost = np.minimum.reduceat(prices, columns.starts, axis=1)
        is_cheapest = boxes.left & (prices <= np.repeat(level_cost, columns.sizes, axis=1))
        return _Nearest(near, number_cost, level_cost, is_cheapest, number_cost.sum(axis=1) + level_cost.sum(axis=1))

    def _within(self, boxes: Boxes, budget: float) -> Boxes:
        """Narrow boxes to what is affordable, and drop those where nothing is."""
        columns = self.columns
        for j, choice in columns.amounts:  # beside a label the amount rests
            is_label = ~boxes.left[:, choice]
            boxes.low[is_label, j] = np.maximum(boxes.low[is_label, j], columns.origin[j])
            boxes.high[is_label, j] = np.minimum(boxes.high[is_label, j], columns.origin[j])
        boxes = boxes._replace(low=columns.ceil(boxes.low), high=columns.floor(boxes.high))
        boxes = boxes.of(np.asarray((boxes.low <= boxes.high).all(axis=1)))
        boxes = boxes.of(self._nearest(boxes).base <= budget)
        if not math.isfinite(budget):
            return boxes
        nearest = self._nearest(boxes)
        rest = (budget - nearest.base)[:, None]
        down, up = columns.affordable(nearest.number_cost + rest)
        low, high = columns.ceil(np.maximum(boxes.low, down)), columns.floor(np.minimum(boxes.high, up))
        most = np.repeat(nearest.level_cost + rest, columns.sizes, axis=1)
        boxes = boxes._replace(low=low, high=high, left=boxes.left & (columns.prices <= most))
        return boxes.of(np.asarray((low <= high).all(axis=1)))

    # ---- bounds ------------------------------------------------------------------------------------------------------
    def _bounded(self, boxes: Boxes, found: FoundInBoxes) -> Boxes:
        """Return boxes with their bounds and the columns to divide, less those that are done; note better answers."""
        found.boxes += len(boxes.bound)
        boxes = self._within(boxes, found.cost * (1.0 + BOX_BOUND_ROUNDING))
        if not len(boxes.bound):
            return boxes
        view = self._view(boxes)
        nearest = view.nearest
        room = np.maximum(found.cost * (1.0 + BOX_BOUND_ROUNDING) - nearest.base, 0.0)
        hidden: list[tuple[Floats, Floats]] = []
        for weights, constants in self.asked.layers[:-1]:
            both = np.concatenate((weights, -weights)), np.concatenate((constants, -constants))
            slopes, offset = self._substituted(*both, hidden, None)
            upper = self._greatest(slopes, offset, view, room)
            upper += BOUNDS_OUTWARDS * np.abs(upper)
            hidden.append((-upper[:, len(weights) :], upper[:, : len(weights)]))
        bounds = []
        last, constants = self.asked.layers[-1]
        rows = self.asked.rows
        for slope in _SLOPES:  # the last of them is the one that points are decoded of
            slopes, offset = self._substituted(rows @ last, rows @ constants, hidden, slope)
            items = self._items(slopes, offset, view)
            costs, shares = least_to_reach(items, self.asked.needs)
            bounds.append(costs)
            best = np.broadcast_to(slopes, (len(bounds[-1]), *slopes.shape[1:])), shares  # one where no layer is hidden
        least = np.max(bounds, axis=0)  # (B, R)
        by_alternative = np.stack([least[:, list(alt)].max(axis=1) for alt in self.asked.alternatives], axis=1)
        bound = (nearest.base + by_alternative.min(axis=1)) * (1.0 - BOX_BOUND_ROUNDING)
        bound = np.maximum(bound, boxes.bound)
        boxes = boxes._replace(bound=bound)
        kept = np.flatnonzero(bound < self._enough(found.cost))
        if not len(kept):
            return self._open(boxes, found)
        # of each box the condition that is hardest in the alternative that is easiest
        easiest = np.argmin(by_alternative, axis=1)
        row = np.zeros(len(bound), dtype=np.intp)
        for a, alt in enumerate(self.asked.alternatives):
            mine = easiest == a
            row[mine] = np.array(alt)[np.argmax(least[np.ix_(mine, list(alt))], axis=1)]
        self._try(self._view(boxes.of(kept)), best[0][kept, row[kept]], best[1][kept, row[kept]], row[kept], found)
        column = self._column(boxes.of(kept), hidden, row[kept], kept)
        boxes = boxes._replace(column=np.full(len(bound), -1, dtype=np.intp))
        boxes.column[kept] = column
        return self._open(boxes, found)

    def _substituted(
        self, weights: Floats, offset: Floats, hidden: Sequence[tuple[Floats, Floats]], slope: float | None
    ) -> tuple[Floats, Floats]:
        """Return slopes (B, K, n + L) and offsets (B, K) of functions above ``weights @ h + offset``."""
        weights, offset = weights[None], offset[None]
        for (low, high), (w, b) in zip(reversed(hidden), reversed(self.asked.layers[: len(hidden)]), strict=True):
            below, above, shift = _lines(low, high, slope)
            positive = np.maximum(weights, 0.0)
            received = positive * above[:, None] + np.minimum(weights, 0.0) * below[:, None]
            offset = offset + (positive @ shift[:, :, None])[:, :, 0] + received @ b
            weights = received @ w
        return weights, offset

    def _view(self, boxes: Boxes) -> _View:
        """Return boxes with the moves that their columns may make."""
        columns = self.columns
        nearest = self._nearest(boxes)
        segments = _SEGMENTS if columns.square.any() else 1
        start = nearest.numbers - columns.origin
        found = []
        for side, moves in ((0, boxes.low - nearest.numbers), (1, boxes.high - nearest.numbers)):
            length = np.abs(moves)[:, :, None] / segments
            begins = np.abs(start)[:, :, None] + np.arange(segments) * length
            fixed = np.where((start == 0.0) & (moves != 0.0), columns.fixed[side], 0.0)[:, :, None] / segments
            cost = (columns.linear[side][:, None] + 2.0 * columns.square[side][:, None] * begins) * length + fixed
            found.append((moves, cost))
        return _View(boxes, nearest, *found[0], *found[1])

    def _items(self, slopes: Floats, offset: Floats, view: _View) -> _Items:
        """Return the knapsacks of linear functions: the move of each number where it pays, and the change of a level.

        A column of levels is one item, as dear as that of its levels which gains most for its price.
        """
        columns = self.columns
        n = len(columns.numbers)
        boxes, nearest, down, down_cost, up, up_cost = view
        own = slopes[:, :, :n]
        count = len(nearest.base)
        at_near = (own * (nearest.numbers - columns.origin)[:, None]).sum(axis=2)
        value = offset + at_near
        gain = np.maximum(np.where(own > 0.0, own * up[:, None], own * down[:, None]), 0.0)
        segments = up_cost.shape[2]
        cost = np.where(own[..., None] > 0.0, up_cost[:, None], down_cost[:, None])
        gain = np.repeat(gain / segments, segments, axis=2)
        cost = np.broadcast_to(cost, (count, own.shape[1], n, segments)).reshape(count, own.shape[1], n * segments)
        if len(columns.starts):
            tables = slopes[:, :, n:]
            top = np.maximum.reduceat(np.where(boxes.left[:, None], tables, -np.inf), columns.starts, axis=2)
            home = np.maximum.reduceat(np.where(nearest.is_cheapest[:, None], tables, -np.inf), columns.starts, axis=2)
            value = value + home.sum(axis=2)
            dearer = boxes.left & ~nearest.is_cheapest
            more = np.where(dearer, columns.prices - np.repeat(nearest.level_cost, columns.sizes, axis=1), 1.0)
            with np.errstate(invalid="ignore"):
                rates = (tables - np.repeat(home, columns.sizes, axis=2)) / more[:, None]
            rate = np.maximum.reduceat(np.where(dearer[:, None], rates, 0.0), columns.starts, axis=2)
            rise = top - home
            gain = np.concatenate((gain, rise), axis=2)
            cost = np.concatenate((cost, np.where(rise > 0.0, rise / np.where(rate > 0.0, rate, 1.0), 0.0)), axis=2)
        return _Items(value, gain, cost)

    def _greatest(self, slopes: Floats, offset: Floats, view: _View, room: Floats) -> Floats:
        """Return the greatest values (B, K) of linear functions over the boxes, with what is left to spend."""
        items = self._items(slopes, offset, view)
        count, width, size = items.gain.shape
        budgets = np.repeat(room, width)[:, None]
        shape = (count * width, size)
        rise = knapsack(items.gain.reshape(shape), items.cost.reshape(shape), budgets)
        return np.asarray(items.value + rise.reshape(count, width))

    # ---- answers -----------------------------------------------------------------------------------------------------
    def _try(self, view: _View, slopes: Floats, shares: Floats, row: NDArray[np.intp], found: FoundInBoxes) -> None:
        """Decode the points where knapsacks end, bring them to the decision, and keep what is cheaper.

        ``slopes`` (B, n + L) and ``shares`` (B, items) are of the bounds of the sums ``row`` (B,).
        """
        needs = self.asked.needs + self.aim
        places = np.arange(len(row))
        numbers, chosen = self._decoded(slopes, shares, view)
        for left in reversed(range(_STEPS)):
            inputs = np.concatenate((numbers - self.columns.origin, chosen), axis=1)
            scores, on = self.asked.scored(inputs)
            self._keep(numbers, chosen, scores, found)
            if not left:
                return
            slopes = self.asked.slopes(row, on)
            offset = scores[places, row] - (slopes * inputs).sum(axis=1)
            items = self._items(slopes[:, None], offset[:, None], view)
            _, every = least_to_reach(items, needs[row][:, None])
            before = numbers, chosen
            numbers, chosen = self._decoded(slopes, every[:, 0], view)
            if all(map(np.array_equal, before, (numbers, chosen))):  # what follows would be the same again
                return

    def _decoded(self, slopes: Floats, shares: Floats, view: _View) -> tuple[Floats, Floats]:
        """Return the numbers (B, n) and indicators of levels (B, L) that the shares of the items stand for."""
        columns = self.columns
        n = len(columns.numbers)
        boxes, nearest, down, _, up, up_cost = view
        segments = up_cost.shape[2]
        way = shares[:, : n * segments].reshape(len(shares), n, segments).mean(axis=2)
        rises = slopes[:, :n] > 0.0
        numbers = nearest.numbers + way * np.where(rises, up, down)
        numbers = np.where(rises, columns.ceil(numbers), columns.floor(numbers))
        numbers = np.clip(numbers, boxes.low, boxes.high)
        chosen = np.zeros_like(boxes.left, dtype=np.float64)
        if len(columns.starts):  # of each column the first of the levels that are best
            moves = np.repeat(shares[:, n * segments :] > 0.0, columns.sizes, axis=1)
            may = np.where(moves, boxes.left, nearest.is_cheapest)
            tables = np.where(may, slopes[:, n:], -np.inf)
            is_best = tables == np.repeat(np.maximum.reduceat(tables, columns.starts, axis=1), columns.sizes, axis=1)
            places = np.where(is_best, np.arange(len(columns.prices)), len(columns.prices))
            chosen[np.arange(len(shares))[:, None], np.minimum.reduceat(places, columns.starts, axis=1)] = 1.0
        for j, choice in columns.amounts:
            numbers[:, j] = np.where(chosen[:, choice] > 0.0, numbers[:, j], columns.origin[j])
        return numbers, chosen

    def _keep(self, numbers: Floats, chosen: Floats, scores: Floats, found: FoundInBoxes) -> None:
        """Keep the cheapest of some points that is an answer and cheaper than the one in hand."""
        columns = self.columns
        costs = columns.moves_cost(numbers - columns.origin).sum(axis=1) + chosen @ columns.prices
        met = scores >= self.asked.needs
        is_met = np.stack([met[:, list(alt)].all(axis=1) for alt in self.asked.alternatives]).any(axis=0)
        may_be = np.flatnonzero(is_met & (costs < found.cost * (1.0 - BOX_BOUND_ROUNDING)))
        for k in may_be[np.argsort(costs[may_be], kind="stable")][:_ASKED]:
            point = columns.home.copy()
            point[columns.numbers] = numbers[k]
            values = columns.values[chosen[k] > 0.0]
            is_value = ~np.isnan(values)
            point[columns.groups[is_value]] = values[is_value]
            if self.accepts(point):
                found.cost = float(costs[k])
                found.point = point
                return

    # ---- where to divide ---------------------------------------------------------------------------------------------
    def _column(
        self, boxes: Boxes, hidden: Sequence[tuple[Floats, Floats]], row: NDArray[np.intp], kept: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return the column of each box along which its neurons switch most, as far as they matter to the score."""
        columns = self.columns
        n = len(columns.numbers)
        weights = self.asked.rows[row] @ self.asked.layers[-1][0]
        last = self.asked.layers[:-1]
        influence = np.zeros((len(kept), n + len(columns.starts)))
        wide = (boxes.high - boxes.low)[:, None]
        for i in reversed(range(len(hidden))):
            low, high = (part[kept] for part in hidden[i])
            below, above, _ = _lines(low, high, None)
            switches = (low < 0.0) & (high > 0.0)
            loose = np.where(weights > 0.0, -low * above, np.minimum(high, -low))
            share = np.where(switches, np.abs(weights) * loose / np.where(switches, high - low, 1.0), 0.0)
            weights = np.where(weights > 0.0, above, below) * weights
            mixed, _ = self._substituted(last[i][0], last[i][1], [(a[kept], b[kept]) for a, b in hidden[:i]], None)
            influence[:, :n] += ((share[:, None] @ np.abs(mixed[:, :, :n])) * wide)[:, 0]
            if len(columns.starts):
                tables = mixed[:, :, n:]
                top = np.maximum.reduceat(np.where(boxes.left[:, None], tables, -np.inf), columns.starts, axis=2)
                least = np.minimum.reduceat(np.where(boxes.left[:, None], tables, np.inf), columns.starts, axis=2)
                influence[:, n:] += (share[:, None] @ (top - least))[:, 0]
            weights = weights @ last[i][0]
        # without a neuron that switches, what is left is that steps and levels are whole
        influence[:, :n] += LEAST_INFLUENCE * np.abs(weights[:, :n]) * wide[:, 0]
        if len(columns.starts):
            many = np.add.reduceat(boxes.left.astype(np.intp), columns.starts, axis=1) > 1
            size = np.maximum.reduceat(np.abs(weights[:, n:]), columns.starts, axis=1)
            influence[:, n:] = np.where(many, influence[:, n:] + LEAST_INFLUENCE * (size + LEAST_INFLUENCE), -1.0)
        room = BOX_BOUND_ROUNDING * np.maximum(np.abs(boxes.low), np.abs(boxes.high))
        influence[:, :n] = np.where(boxes.high - boxes.low > room, influence[:, :n] + LEAST_INFLUENCE**2, -1.0)
        for _, choice in columns.amounts:  # an amount moves freely beside a label, so they are parted first
            g = int(np.searchsorted(columns.starts, choice))
            influence[(influence[:, n + g] >= 0.0) & boxes.left[:, choice], n + g] = np.inf
        if not influence.shape[1]:
            return np.full(len(kept), -1, dtype=np.intp)
        column = np.argmax(influence, axis=1)
        return np.where(influence[np.arange(len(kept)), column] < 0.0, -1, column)


def _lines(low: Floats, high: Floats, slope: float | None) -> tuple[Floats, Floats, Floats]:
    """Return slopes and offset of ``below * a <= max(0, a) <= above * a + offset`` for ``low <= a <= high``."""
    switches = (low < 0.0) & (high > 0.0)
    is_on = low >= 0.0
    above = np.where(switches, high / np.where(switches, high - low, 1.0), is_on)
    below = np.where(switches, high > -low if slope is None else slope, is_on)
    return below, above, np.where(switches, -above * low, 0.0)


def least_to_reach(items: _Items, needs: Floats) -> tuple[Floats, Floats]:
    """Return the least costs (B, K) with which knapsacks reach needs, infinite where none does, and the items' shares.

    The continuous relaxation: the items that gain most for their cost first, and the last of them in part.
    """
    short = np.maximum(needs - items.value, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(items.gain > 0.0, items.gain / items.cost, -1.0)
    order = np.argsort(-rate, axis=2, kind="stable")
    gain = np.take_along_axis(items.gain, order, axis=2)
    cost = np.take_along_axis(items.cost, order, axis=2)
    before = np.cumsum(gain, axis=2) - gain
    taken = np.clip((short[..., None] - before) / np.where(gain > 0.0, gain, 1.0), 0.0, 1.0)
    taken = np.where(gain > 0.0, taken, 0.0)
    least = np.where(short > gain.sum(axis=2), np.inf, (taken * cost).sum(axis=2))
    shares = np.empty_like(taken)
    np.put_along_axis(shares, order, taken, axis=2)
    return least, shares
