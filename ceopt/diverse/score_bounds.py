r"""Bounds on a score once some columns have taken their cells: they close whole boxes of cells.

For a box of cells in which the columns J are still free and r of the budget is left, a demand can reach no more than

.. math::
    b + \sum_t \max\Bigl\{g_{t\ell} : \ell \text{ meets the cells taken, } \sum_{j \in J} c_{j\ell} \le r\Bigr\}
    + \sum_p \Bigl(\text{taken}_p + \max\Bigl\{\sum_{j \in J} w_{pj k_j} : \sum_{j \in J} c_{j k_j} \le r \Bigr\}\Bigr)

====== ==================================================================================================
symbol meaning
====== ==================================================================================================
g      what a leaf adds
c_jl   least price at which column j comes into the box of leaf l, 0 where the leaf does not ask for it
w, c   what cell k of a column adds through a linear part, and its price
====== ==================================================================================================

Each part is at least the truth, and equal to it, but for rounding, once nothing is free. A member that votes adds the
most of the labels for which it may decide. Under a cost that is no sum the greatest price counts, not the total. Where
a rule limits the number of changes, a leaf must be within reach of the changes that are left as well.

Demands state a target as sums over a model's parts that must reach a number; one of several lists must be met,

.. math::
    \bigvee_a \bigwedge_{r \in a} \Bigl( b_r + \sum_t g_{rt}(\mathrm{leaf}_t(x)) + \sum_p w_{rp} \cdot \phi_p(x)
    + \sum_i v_{ri}(\mathrm{decision}_i(x)) \ge m_r \Bigr)

the same that :class:`~ceopt.formulations.predictors.reaches.Reaches` writes as rows, kept as plain numbers
for bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints import MaxChanges
from ceopt.formulations.constraints.diversity.diversity import is_counted, read_as_numbers
from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Changes, Linf, Sum
from ceopt.formulations.costs.base import CostCutoff, prices_of
from ceopt.formulations.predictors.predictor import Combination
from ceopt.formulations.predictors.pruned_leaves import Leaf, pruned_trees
from ceopt.formulations.predictors.raw_trees import keys_in_reach
from ceopt.formulations.predictors.representation import NEVER, Affine, score_needed
from ceopt.formulations.predictors.ties import forest_of, meets_alone
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels, Reach, only_at
from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values
from ceopt.solvers.checks import Floats
from ceopt.tolerances import ALLOWANCE_ROUNDING, LINEAR_PART_ROUNDING, NEXT_STEP

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.search.prepare import Prepared

# ==== Cells in reach, column by column, each with its cheapest value and price ========================================

Bools: TypeAlias = NDArray[np.bool_]

#: Whole numbers of one column beyond which its values are not listed.
_MOST_VALUES = 50_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellColumn:
    """The cells of one column that the budget allows, cheapest first.

    Parameters
    ----------
    name
        The column.
    low, high
        Least and greatest value of each cell, (k,); of a level, and of a label of a number, both are it.
    values, prices
        The cheapest value of each cell, and what it costs, in units of the cost's objective.
    labels
        Codes, and the missing cell, that the column of numbers may be beside its amounts, each a cell of its own.
    """

    name: str
    low: Floats
    high: Floats
    values: Floats
    prices: Floats
    labels: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.prices)

    @property
    def is_label(self) -> Bools:
        """Which cells hold a label, and no amounts, (k,)."""
        return np.isin(self.values, self.labels)

    def holding(self, value: float) -> Bools:
        """Return which cells hold a value, (k,); a label is in no cell of amounts, whose ends may be about it."""
        is_inside: Bools = (self.low <= value) & (value <= self.high)
        if not self.labels:
            return is_inside
        return np.asarray(is_inside & (self.is_label == (value in self.labels)), dtype=bool)

    def part_of(self, places: NDArray[np.intp], reach: Reach) -> Interval | Levels:
        """Return the least part of the reach that holds some cells: an interval of amounts, and labels."""
        part = reach[self.name]
        if isinstance(part, Levels):
            values = sorted(self.values[places].tolist())
            return Levels(tuple(int(rank) for rank in values if rank != MISSING), tuple({MISSING}.intersection(values)))
        is_label = self.is_label[places]
        labels = tuple(sorted(self.values[places[is_label]].tolist()))
        amounts = places[~is_label]
        if not len(amounts):
            first = only_at(part, labels[0])
            assert isinstance(first, Interval)  # noqa: S101 - as the part of the reach
            if len(labels) == 1:
                return first
            return replace(part, labels=labels)  # of labels alone there is no interval: the amounts stay in
        return replace(part.narrowed(float(self.low[amounts].min()), float(self.high[amounts].max())), labels=labels)


def cell_of(columns: Sequence[CellColumn], point: Mapping[str, float]) -> tuple[int, ...]:
    """Return the cell that holds a point, as one position per column."""
    return tuple(int(column.holding(point[column.name]).argmax()) for column in columns)


def is_in_cell(columns: Sequence[CellColumn], cell: Sequence[int], point: Mapping[str, float]) -> bool:
    """Tell whether a cell holds a point."""
    return all(column.holding(point[column.name])[place] for column, place in zip(columns, cell, strict=True))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Allowance:
    """A budget shared by the columns: of cost, or of a number of changes.

    Parameters
    ----------
    used
        What the cheapest value of each cell uses of it, (k,) per column; no other value of the cell uses less.
    most
        What may be used in all.
    additive
        Whether the columns' uses add up; else the greatest counts.
    """

    used: tuple[Floats, ...]
    most: float
    additive: bool = True

    def left(self, spent: Floats) -> Floats:
        """Return the budget left for the other columns after ``spent``."""
        return self.most - spent if self.additive else np.full(len(spent), self.most)

    def together(self, spent: Floats, used: Floats) -> Floats:
        """Return what two lots of columns use."""
        return spent + used if self.additive else np.maximum(spent, used)


def allowances_of(
    prepared: Prepared, factual: Mapping[str, float], columns: Sequence[CellColumn], budget: float
) -> list[Allowance]:
    """Return what the cells of a walk may use up: the budget first, then the changes that each rule allows."""
    settings = prepared.settings
    allowances = [Allowance(tuple(column.prices for column in columns), budget, settings.cost.additive)]
    for rule in settings.rules:
        if not isinstance(rule, MaxChanges):
            continue
        changes = []
        for column in columns:
            is_category = prepared.space[column.name].kind == "categorical"
            count = 2.0 if is_category and rule.count == "columns" else 1.0
            changes.append((column.values != factual[column.name]) * count)
        allowances.append(Allowance(tuple(changes), float(rule.k)))
    return allowances


def has_a_cheapest_point(prepared: Prepared, reach: Reach) -> bool:
    """Tell whether the cheapest point of every cell is found column by column: the value nearest to the factual.

    It is where the score is constant on cells (trees, and linear parts that read nothing but levels and whole numbers),
    where the cost never falls as one column moves further away, and where no rule needs much time to be checked.
    """
    predictor = prepared.predictor
    settings = prepared.settings
    if any(not isinstance(part.core, TreeEnsemble | Affine) for part in predictor.parts):
        return False
    for name in read_as_numbers(predictor):
        if not reach[name].is_point and not is_counted(predictor.space[name]):
            return False
    return _never_falls(settings.cost) and not any(rule.slow for rule in settings.rules)


def _never_falls(cost: AbstractCost) -> bool:
    if isinstance(cost, Sum):
        return all(_never_falls(term) for _, term in cost.terms)
    return isinstance(cost, L0 | L1 | L2 | Linf | Changes)


def cell_columns(
    predictor: Predictor, cost: AbstractCost, factual: Mapping[str, float], reach: Reach, budget: float
) -> tuple[CellColumn, ...] | None:
    """Return every column's cells whose own price is at most ``budget`` (an objective value of the cost).

    Each label in reach is a cell beside those of the amounts. Of a column that is filled in all amounts cost the same:
    of a cell of them the nearest to where an amount may rest is taken. None where a column has more whole numbers
    within the budget than can be listed.
    """
    space = predictor.space
    near = CostCutoff(space, factual, cost, budget).narrowed(reach)
    prices = cost.prices(space)
    numbers = read_as_numbers(predictor)
    ends = _ends(predictor, reach)
    columns = []
    for feature in space:
        name = feature.name
        part = reach[name]
        here = near[name]
        start = factual[name]
        labels: tuple[float, ...] = ()
        if isinstance(part, Levels):
            low = high = np.array(part.values)
        else:
            assert isinstance(here, Interval)  # noqa: S101 - as the reach that it is a part of
            if not part.is_point:
                labels = part.labels
            if name in numbers and not part.is_point:
                members = _members(here) if here.lower not in labels else np.zeros(0)
                if members is None:
                    return None
                low = high = members
            else:
                low, high = ends[name]
            if start in labels:
                start = part.clip(0.0)
        values = np.concatenate([np.clip(start, low, high), labels])
        low = np.concatenate([low, labels])
        high = np.concatenate([high, labels])
        own_prices = prices_of(prices[name], feature, factual[name], values)
        kept = np.flatnonzero(own_prices <= budget)
        kept = kept[np.argsort(own_prices[kept], kind="stable")]
        columns.append(CellColumn(name, low[kept], high[kept], values[kept], own_prices[kept], labels))
    return tuple(columns)


def _ends(predictor: Predictor, reach: Reach) -> dict[str, tuple[Floats, Floats]]:
    """Return the least and greatest values of the cells that the model's splits make of each number."""
    keys = keys_in_reach(predictor, reach)
    ends: dict[str, tuple[Floats, Floats]] = {}
    for name, reachable in reach.items():
        if isinstance(reachable, Interval):
            ends[name] = _between(keys.get(name, []), reachable)
    return ends


def _between(keys: Sequence[tuple[float, float]], part: Interval) -> tuple[Floats, Floats]:
    """Return the least and greatest values of the cells between splits, given in order as (last left, first right).

    A cell begins with the greatest of all firsts up to it and ends with the least of all lasts from it on, so that it
    lies on the right side of every split even where two of them overlap.
    """
    firsts = [right for _, right in keys]
    lasts = [left for left, _ in keys]
    low = np.maximum.accumulate([part.lower, *firsts])
    high = np.minimum.accumulate([*lasts, part.upper][::-1])[::-1]
    full = low <= high  # two splits of a published instance may lie closer than its gap
    return low[full], high[full]


def _members(part: Interval) -> Floats | None:
    """Return the values of a grid, or None where there are too many; computed as the interval computes them."""
    assert part.step is not None  # noqa: S101 - has_a_cheapest_point has seen to it
    if not math.isfinite(part.upper - part.lower) or (part.upper - part.lower) / part.step >= _MOST_VALUES:
        return None
    first = round((part.lower - part.anchor) / part.step)
    last = round((part.upper - part.anchor) / part.step)
    every = part.grid.many(np.arange(first, last + 1, dtype=np.float64))
    return every[~np.isin(every, part.holes)]


# ==== Demands: a target as sums over a model's parts ==================================================================

#: What each leaf adds: its values (leaves, K) -> (leaves,).
Gains: TypeAlias = Callable[[Floats], Floats]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """One sum and the least value that it must reach.

    Parameters
    ----------
    constant, least
        Start of the sum, and what it must reach.
    trees
        Ensembles, and what each of their leaves adds.
    lines
        Linear parts, and the weights of their matrix columns.
    votes
        Members that decide: what each label adds, and when the member decides for it.
    """

    constant: float
    least: float
    trees: tuple[tuple[Predictor, Gains], ...] = ()
    lines: tuple[tuple[Predictor, Floats], ...] = ()
    votes: tuple[tuple[Floats, tuple[Alternatives, ...]], ...] = ()


#: Any list of demands that are all met will do.
Alternatives: TypeAlias = tuple[tuple[Demand, ...], ...]


def demands_of(predictor: Predictor, target: Target, least: float) -> Alternatives:
    """Return what a point must reach whose decision meets the target with at least this slack (see ``slack``).

    Necessary, and up to rounding and ties also enough.
    """
    core = predictor.core
    if isinstance(target, DisagreementOf):
        wanted = target.wanted
        trees = ((predictor, lambda values: meets_alone(core, values, wanted).astype(np.float64)),)
        return ((Demand(0.0, target.needed(len(forest_of(core).trees)) - 0.5, trees),),)
    alternatives = []
    for rows in _rows(predictor, target, least):
        alternatives.append(tuple(_demand(predictor, weights, reached) for weights, reached in rows))
    return tuple(alternatives)


def _rows(predictor: Predictor, target: Target, least: float) -> list[list[tuple[Floats, float]]]:
    """Return lists of (weights of the scores, what their sum must reach); a list without rows is always met."""
    core = predictor.core
    match target:
        case Values():
            rows = []
            if math.isfinite(target.low):
                rows.append((np.ones(1), target.low + least))
            if math.isfinite(target.high):
                rows.append((-np.ones(1), least - target.high))
            return [rows]
        case ProbabilityOf() if core.probability == "share":
            return [[(_unit(core.n_scores, target.position), target.at_least + least)]]
        case ProbabilityOf():
            needed = score_needed(core.probability, target.position, target.at_least)
            if math.isinf(needed):
                return _always_or_never(is_never=needed > 0.0)
            sign = 1.0 if target.position == 1 else -1.0
            return [[(np.array([sign]), needed + least)]]
        case Labels() if core.n_scores == 1:
            sign = 1.0 if target.wanted == (1,) else -1.0
            if abs(core.level) >= NEVER:  # a label that no score has, or that every score has
                return _always_or_never(is_never=sign * core.level > 0.0)
            return [[(np.array([sign]), sign * core.level + least)]]
        case Labels():
            n = core.n_scores
            # Of two shares, one is what the other leaves: their difference counts each step of the score twice.
            factor = 0.5 if core.probability == "share" and n == 2 else 1.0
            lists = []
            for wanted in target.wanted:
                lists.append([(factor * (_unit(n, wanted) - _unit(n, other)), least) for other in target.others])
            return lists
    raise AssertionError


def _always_or_never(*, is_never: bool) -> list[list[tuple[Floats, float]]]:
    """Return the demands of a constant decision: no list where it fails, one without rows where it holds."""
    return [] if is_never else [[]]


def _unit(size: int, place: int) -> Floats:
    return np.asarray(np.eye(size)[place])


def _demand(predictor: Predictor, weights: Floats, least: float) -> Demand:
    """Return the demand that a weighted sum of a model's scores reaches a number, down to the parts of the model."""
    core = predictor.core
    match core:
        case TreeEnsemble():
            divisor = core.divisor
            gains = ((predictor, lambda values: np.asarray(values @ weights / divisor)),)
            return Demand(float(weights @ core.base) / divisor, least, trees=gains)
        case Affine():
            return Demand(float(weights @ core.intercept), least, lines=((predictor, weights @ core.weights),))
        case Combination():
            constant = float(weights @ core.offset) / core.divisor
            parts = [weights @ part / core.divisor for part in core.weights]
            if core.votes:
                votes = tuple((part, _decided(member)) for member, part in zip(core.members, parts, strict=True))
                return Demand(constant, least, votes=votes)
            trees: list[Any] = []
            lines: list[Any] = []
            votes_of_members: list[Any] = []
            for member, part in zip(core.members, parts, strict=True):
                demand = _demand(member, part, 0.0)
                constant += demand.constant
                trees += demand.trees
                lines += demand.lines
                votes_of_members += demand.votes
            return Demand(constant, least, trees=tuple(trees), lines=tuple(lines), votes=tuple(votes_of_members))
    raise AssertionError


def _decided(member: Predictor) -> tuple[Alternatives, ...]:
    """Return, per label of a member, when it may decide for it; on a tie it may decide for any of those that tie."""
    labels = member.labels or ()
    return tuple(demands_of(member, Labels((k,), labels), 0.0) for k in range(len(labels)))


# ==== Bounds on a score over boxes of cells ===========================================================================

Bits: TypeAlias = NDArray[np.uint8]

# ---- leaves of trees -------------------------------------------------------------------------------------------------
#: Prices of leaves that are told apart at each depth; prices between two of them are rounded down.
_KINDS: Final = 128
#: Which bits each byte holds, (256, 8).
_HELD: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(bool)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafGains:
    """What the leaves of an ensemble add: of each byte and its 256 values the most, (bytes, 256), and the rounding.

    ``rounds`` says how many trees have a first byte, a second one, and so on; the bytes stand in this order.
    """

    table: Floats
    bytes: slice
    rounds: tuple[int, ...]
    rounding: float

    def most(self, met: Bits) -> Floats:
        """Return what trees add at most in boxes that meet these leaves, (n,)."""
        here = met[:, self.bytes].astype(np.intp) + 256 * np.arange(len(self.table))
        added = self.table.ravel()[here]
        best = added[:, : self.rounds[0]]
        first = self.rounds[0]
        for trees in self.rounds[1:]:
            np.maximum(best[:, :trees], added[:, first : first + trees], out=best[:, :trees])
            first += trees
        return np.asarray(best.sum(axis=1))


@final
class Leaves:
    """The leaves of some ensembles that one person can reach, eight to a byte, each tree with bytes of its own.

    Parameters
    ----------
    forests
        The ensembles.
    columns
        The columns in the order in which they take their cells.
    reach
        Values that each column may take.
    allowances
        What there is to go round with.
    """

    def __init__(
        self,
        forests: Iterable[Predictor],
        columns: Sequence[CellColumn],
        reach: Reach,
        allowances: Sequence[Allowance],
    ) -> None:
        self._places: dict[int, tuple[slice, tuple[int, ...], list[tuple[Leaf, ...]]]] = {}
        leaves: list[Leaf | None] = []
        for forest in forests:
            # Larger trees first: the trees with a second byte are then the first few, and so on.
            trees = sorted((tree.leaves for tree in pruned_trees(forest, reach)), key=len, reverse=True)
            first = len(leaves) // 8
            rounds: list[int] = []
            for at in range(0, len(trees[0]), 8):
                longer = [tree for tree in trees if len(tree) > at]
                for tree in longer:
                    byte = tree[at : at + 8]
                    leaves += [*byte, *[None] * (8 - len(byte))]
                rounds.append(len(longer))
            self._places[id(forest)] = (slice(first, len(leaves) // 8), tuple(rounds), trees)
        exists = np.array([leaf is not None for leaf in leaves], dtype=bool)
        #: All leaves, (bytes,); ``of_cells`` are those that each cell of each column meets, (cells, bytes) each.
        self.all: Bits = _packed(exists[None, :])[0]
        inside = [_inside(column, leaves, reach[column.name].labels) for column in columns]
        self.of_cells = [_packed(part & exists) for part in inside]
        self._affordable = [_suffixes(inside, exists, allowance) for allowance in allowances]

    def affordable(self, depth: int, left: Sequence[Floats]) -> Bits:
        """Return the leaves still reachable within the remaining budget by columns from ``depth`` on, (n, bytes)."""
        paid = []
        for suffixes, rest in zip(self._affordable, left, strict=True):
            prices, bits = suffixes[depth]
            paid.append(bits[np.searchsorted(prices, rest, side="right")])
        return functools.reduce(np.bitwise_and, paid)

    def gains(self, forest: Predictor, gains: Callable[[Floats], Floats]) -> LeafGains:
        """Return what the leaves of an ensemble add, where each adds what ``gains`` says of its values."""
        core = forest.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - demands hold such
        place, rounds, trees = self._places[id(forest)]
        added = [gains(np.array([leaf.value for leaf in tree])) for tree in trees]
        byte_gains = []
        for k, count in enumerate(rounds):
            for of_tree in added[:count]:
                eight = of_tree[8 * k : 8 * k + 8]
                byte_gains.append(np.pad(eight, (0, 8 - len(eight)), constant_values=-np.inf))
        table = np.where(_HELD, np.array(byte_gains)[:, None, :], -np.inf).max(axis=2)
        size = sum(float(np.abs(of_tree).max()) for of_tree in added)
        rounding = size * (len(trees) + 10) * float(np.finfo(core.sum_dtype).eps)
        return LeafGains(table, place, rounds, rounding)


def _inside(column: CellColumn, leaves: Sequence[Leaf | None], labels: tuple[float, ...]) -> NDArray[np.bool_]:
    """Return which cells of a column lie in which leaves' boxes, (cells, leaves); none is cut by a box."""
    inside = np.ones((len(column), len(leaves)), dtype=bool)
    for k, leaf in enumerate(leaves):
        if leaf is None:
            continue
        box = leaf.box.get(column.name)
        if isinstance(box, frozenset):
            inside[:, k] = np.isin(column.values, list(box))
        elif box is not None:
            low, high, on_labels = box
            is_amount = ~np.isin(column.values, [*labels, MISSING])
            inside[:, k] = is_amount & (column.values >= low) & (column.values <= high)
            inside[:, k] |= np.isin(column.values, list(on_labels))
    return inside


def _suffixes(
    inside: Sequence[NDArray[np.bool_]], exists: NDArray[np.bool_], allowance: Allowance
) -> list[tuple[Floats, Bits]]:
    """Return, per depth, ascending amounts and the leaves affordable from each on."""
    total = np.zeros(len(exists))
    by_depth = [_paid(total, exists)]
    for cells, used in zip(reversed(inside), reversed(allowance.used), strict=True):
        least = np.where(cells, used[:, None], np.inf).min(axis=0, initial=np.inf)
        total = allowance.together(total, least)
        by_depth.append(_paid(total, exists))
    return by_depth[::-1]


def _paid(total: Floats, exists: NDArray[np.bool_]) -> tuple[Floats, Bits]:
    amounts = np.unique(total[exists & np.isfinite(total)])
    if len(amounts) > _KINDS:
        amounts = amounts[np.linspace(0, len(amounts) - 1, _KINDS).astype(np.intp)]
    return amounts, _packed(exists & (total < np.append(amounts, np.inf)[:, None]))


def _packed(flags: NDArray[np.bool_]) -> Bits:
    return np.packbits(flags, axis=1, bitorder="little")


# ---- linear parts ----------------------------------------------------------------------------------------------------
#: Steps of the grid on which the knapsack is solved.
_GRID: Final = 512


@final
class Line:
    r"""A weighted sum of one linear part's matrix columns, over cells each of which has one value.

    .. math::
        \max \Bigl\{ \sum_{j \ge d} g_{j k_j} : \sum_{j \ge d} \lfloor G c_{j k_j} / U \rfloor \le
        \lceil G r / U \rceil \Bigr\}

    bounds what the columns from depth d on add, g the gain and c the price of a cell, r what is left of the budget U,
    G the steps of the grid. At least the truth, as prices are rounded down.

    Parameters
    ----------
    part, weights
        A linear model as read, and the weights of its matrix columns.
    columns
        The columns in the order in which they take their cells.
    budget
        U; where it is no sum, each column may spend all.
    """

    def __init__(self, part: Predictor, weights: Floats, columns: Sequence[CellColumn], budget: Allowance) -> None:
        assert isinstance(part.core, Affine)  # noqa: S101 - demands hold such
        place = {column.name: k for k, column in enumerate(columns)}
        #: What does not move, and what each cell of each column adds.
        self.constant = 0.0
        self.gains: list[Floats] = [np.zeros(len(column)) for column in columns]
        size = 0.0
        for weight, column in zip(weights.tolist(), part.encoding.columns, strict=True):
            if weight == 0.0:
                continue
            if column.feature is None:
                self.constant += weight * column.constant
                size += abs(weight * column.constant)
                continue
            k = place[column.feature]
            values = columns[k].values
            if column.table is not None:
                added = weight * column.evaluate(values)
                size += float(np.abs(added).max())
            else:
                slope, offset = column.affine()
                is_missing = values == MISSING
                amounts = np.where(is_missing, 0.0, values)
                added = weight * np.where(is_missing, column.at_gap, slope * amounts + offset)
                size += abs(weight) * float(np.abs(slope * amounts).max() + abs(offset) + np.abs(added).max())
            self.gains[k] = self.gains[k] + added
        #: By how much the library's own sum may be larger.
        self.rounding = size * max(LINEAR_PART_ROUNDING, (len(weights) + 10) * float(np.finfo(part.core.dtype).eps))
        self._unit = budget.most / _GRID if budget.additive and budget.most > 0.0 else np.inf
        self._most = self._knapsacks(columns)

    def most(self, depth: int, left: Floats) -> Floats:
        """Return the most that columns ``depth``, ``depth + 1``, ... can add within the remaining budget, (n,)."""
        steps = np.ceil(np.clip(left / self._unit, 0.0, _GRID) - NEXT_STEP).astype(np.intp)
        return np.asarray(self._most[depth][steps])

    def _knapsacks(self, columns: Sequence[CellColumn]) -> list[Floats]:
        """Return, per depth, the most that the columns from there on add for each number of steps of the budget.

        The columns are taken from the last to the first. With ``best[r]`` for those behind, a cell that costs s steps
        and adds g leads to ``g + best[r - s]``; of all cells the greatest counts, and of those that cost as many steps
        only the one that adds most has to be tried.
        """
        best = np.zeros(_GRID + 1)
        by_depth = [best]
        for column, gains in zip(reversed(columns), reversed(self.gains), strict=True):
            spent = np.floor(np.minimum(column.prices / self._unit, _GRID) + NEXT_STEP).astype(np.intp)
            most = np.full(_GRID + 1, -np.inf)
            np.maximum.at(most, spent, gains)
            with_column = np.full(_GRID + 1, -np.inf)
            for step in np.flatnonzero(most > -np.inf).tolist():
                with_column[step:] = np.maximum(with_column[step:], best[: len(best) - step] + most[step])
            best = with_column
            by_depth.append(best)
        return by_depth[::-1]


# ---- whole scores ----------------------------------------------------------------------------------------------------
#: Leaves that n boxes still meet, (n, bytes), and what their cells taken add through each line, (n, lines).
Boxes: TypeAlias = tuple[Bits, Floats]


@final
class Ceilings:
    """Bounds of demands over boxes of cells.

    Parameters
    ----------
    alternatives
        The target as demands.
    columns
        The columns in the order in which they take their cells.
    reach
        Values that each column may take.
    allowances
        What there is to go round with, the budget first.
    """

    def __init__(
        self,
        alternatives: Alternatives,
        columns: Sequence[CellColumn],
        reach: Reach,
        allowances: Sequence[Allowance],
    ) -> None:
        self._allowances = allowances
        forests: dict[int, Predictor] = {}
        lines: dict[int, Line] = {}
        for demand in _all_of(alternatives):
            for forest, _ in demand.trees:
                forests[id(forest)] = forest
            for part, weights in demand.lines:
                if id(weights) not in lines:
                    lines[id(weights)] = Line(part, weights, columns, allowances[0])
        self._leaves = Leaves(forests.values(), columns, reach, allowances)
        self._lines = list(lines.values())
        self._test = _Any(alternatives, self._leaves, dict(zip(lines, enumerate(self._lines), strict=True)))

    @property
    def width(self) -> int:
        """Bytes that a box takes."""
        return len(self._leaves.all) + 8 * len(self._lines)

    def start(self) -> Boxes:
        """Return the box in which every column is free."""
        return self._leaves.all[None, :], np.array([[line.constant for line in self._lines]])

    def take(self, boxes: Boxes, column: int, owner: NDArray[np.intp], cell: NDArray[np.intp]) -> Boxes:
        """Return the boxes in which a column takes a cell, each a part of the box ``owner``."""
        bits, sums = boxes
        sums = sums[owner]
        for k, line in enumerate(self._lines):
            sums[:, k] += line.gains[column][cell]
        return bits[owner] & self._leaves.of_cells[column][cell], sums

    def possible(self, boxes: Boxes, depth: int, spent: Sequence[Floats]) -> NDArray[np.bool_]:
        """Return which boxes may meet the demands: their first ``depth`` columns have taken cells and spent so much."""
        left = []
        for allowance, used in zip(self._allowances, spent, strict=True):
            left.append(allowance.left(used) + ALLOWANCE_ROUNDING * allowance.most)
        bits, sums = boxes
        sums = sums.copy()
        for k, line in enumerate(self._lines):
            sums[:, k] += line.most(depth, left[0])
        return self._test(bits & self._leaves.affordable(depth, left), sums)


def _all_of(alternatives: Alternatives) -> Iterator[Demand]:
    """Give all demands, those under which members vote included."""
    for demands in alternatives:
        for demand in demands:
            yield demand
            for _, labels in demand.votes:
                for label in labels:
                    yield from _all_of(label)


@final
class _Any:
    """Whether boxes may meet all of some list of demands."""

    def __init__(self, alternatives: Alternatives, leaves: Leaves, lines: dict[int, tuple[int, Line]]) -> None:
        self._lists: list[list[_Sum]] = []
        for demands in alternatives:
            self._lists.append([_Sum(demand, leaves, lines) for demand in demands])

    def __call__(self, met: Bits, sums: Floats) -> NDArray[np.bool_]:
        any_list = np.zeros(len(met), dtype=bool)
        for demands in self._lists:
            all_demands = np.ones(len(met), dtype=bool)
            for demand in demands:
                all_demands &= demand(met, sums)
            any_list |= all_demands
        return any_list


@final
class _Sum:
    """Whether boxes may meet one demand."""

    def __init__(self, demand: Demand, leaves: Leaves, lines: dict[int, tuple[int, Line]]) -> None:
        self._trees = [leaves.gains(forest, gains) for forest, gains in demand.trees]
        rounding = sum(part.rounding for part in self._trees)
        self._lines: list[int] = []
        for _, weights in demand.lines:
            position, line = lines[id(weights)]
            self._lines.append(position)
            rounding += line.rounding
        self._votes: list[tuple[Floats, list[_Any]]] = []
        for weights, labels in demand.votes:
            self._votes.append((weights, [_Any(label, leaves, lines) for label in labels]))
            rounding += ALLOWANCE_ROUNDING * float(np.abs(weights).max())
        rounding += 1e-12 * (abs(demand.constant) + abs(demand.least))
        self._least = demand.least - demand.constant - rounding

    def __call__(self, met: Bits, sums: Floats) -> NDArray[np.bool_]:
        most = sums[:, self._lines].sum(axis=1)
        for part in self._trees:
            most = most + part.most(met)
        for weights, labels in self._votes:
            may_decide = np.stack([label(met, sums) for label in labels], axis=1)
            most = most + np.where(may_decide, weights, -np.inf).max(axis=1)
        return np.asarray(most >= self._least)
