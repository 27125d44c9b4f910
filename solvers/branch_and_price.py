r"""Branch and price: a linear program with integers and very many columns more, which join where they improve it.

Each node is a linear program over the columns that have joined. Its multipliers price all the others, and the cheapest
join until none costs less than nothing; that is done at every node, so that the bounds hold for the whole program.
Nodes are taken best first, and a branch is followed down while it lasts. Which column is branched on is decided by what
branching on it has gained so far (pseudo-costs).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.highs import bound_from_duals, first_scale, silent_highs
from ceopt.solvers.problem import Outcome, Stop
from ceopt.solvers.tolerances import HIGHS_NO_REDUCED_COST, NO_GAIN, NOT_MISSED, WHOLE

if TYPE_CHECKING:
    from ceopt.solvers.checks import Floats
    from ceopt.solvers.compile.compiled_model import CompiledModel

#: Columns that join at once, and solves of one node after which its bound is what it is.
_JOIN, _SOLVES = 20, 100
#: What a row that is missed by 1 costs, as a multiple of the greatest cost of a column: little for bounds without much
#: rounding, usually, at most, and how it is raised where rows are missed.
_LITTLE_MISSED, _MISSED, _MOST_MISSED, _RAISE = 1e3, 1e6, 1e8, 1e2
#: By how much the distance from whole numbers counts where branching gains the same.
_NEARER: Final = 1e-3
#: Share of the gap that a price below 0 may have.
_PRICE_SHARE: Final = 0.1


@final
@dataclass(frozen=True, slots=True, order=True)
class _PricedNode:
    """Bounds of the columns, and what their program is known to cost at least; ``branch``: column, side, distance."""

    bound: float
    number: int
    lower: Floats
    upper: Floats
    branch: tuple[int, int, float] | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """A node's bound, values of the program's own columns, and by how much rows are missed."""

    bound: float
    x: Floats | None = None
    missed: float = 0.0


@final
class BranchAndPrice:
    r"""Solves a program of which most columns are priced.

    .. math::
        \min\; c^\top x \quad\text{s.t.}\quad b^- \le A x + M y \le b^+,\quad l \le x \le u,\quad x_I \text{ whole},
        \quad y \ge 0,\quad 1^\top y \le 1

    Parameters
    ----------
    compiled
        The program in x, linear, to be minimised.
    more
        M, sparse, (m, N); its rows imply that the y add up to at most 1.
    relative_gap
        The gap at which to end.
    deadline
        When to end.
    """

    def __init__(self, compiled: CompiledModel, more: Any, *, relative_gap: float, deadline: float) -> None:
        self._compiled = compiled
        self._own = compiled.A.toarray()
        self._more = sp.csc_array(more)
        self._rows = np.unique(self._more.indices)
        self._dense = np.ascontiguousarray(self._more[self._rows].toarray().T)
        self._relative_gap = relative_gap
        self._deadline = deadline
        self._scale = first_scale(compiled)
        self._joined = np.zeros(self._more.shape[1], dtype=bool)
        self._integers = np.flatnonzero(compiled.integer)
        self._greatest = float(np.abs(compiled.c).max(initial=0.0)) or 1.0
        self._now = (compiled.lb, compiled.ub)
        self._highs = self._opened()
        #: At what rows are missed now.
        self._missed = 0.0
        #: Least cost of a point met so far and its values; least bound of the nodes that are closed.
        self._best = math.inf
        self._x: Floats | None = None
        self._closed = math.inf
        self._numbers = itertools.count(1)
        #: What branching down and up on each column has gained for each unit of distance, and how often.
        self._gained = np.zeros((2, len(compiled.c)))
        self._count = np.zeros((2, len(compiled.c)))

    @staticmethod
    def takes(compiled: CompiledModel) -> bool:
        """Whether a program is linear, has a point that counts, and is to be minimised."""
        is_linear = compiled.Q is None and not compiled.cones and not compiled.quadratics and not compiled.sets
        return is_linear and compiled.sense > 0 and compiled.contradiction is None

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return str(self._highs.version())

    def run(self) -> Outcome | None:
        """Return the outcome, with values of the program's own columns; None where it takes another way to tell.

        It is "optimal" where the bound meets the point within the gap.
        """
        compiled = self._compiled
        open_ = [_PricedNode(-math.inf, 0, compiled.lb, compiled.ub)]
        node: _PricedNode | None = None
        while node is not None or open_:
            if node is None:
                node = heapq.heappop(open_)
            if node.bound >= self._cut:
                self._closed = min(self._closed, node.bound)
                node = None
                continue
            if time.perf_counter() > self._deadline:
                self._closed = min(self._closed, node.bound, min(open_, default=node).bound)
                break
            solved = self._node(node)
            self._learn(node, solved.bound)
            children = self._branched(node, solved)
            node = None
            if children:
                node, other = children
                heapq.heappush(open_, other)
        return self._outcome()

    @property
    def _cut(self) -> float:
        """A bound from which on a node is of no interest."""
        return self._best - self._relative_gap * abs(self._best) if self._x is not None else math.inf

    def _outcome(self) -> Outcome | None:
        bound = min(self._best, self._closed)
        if self._x is None:
            if time.perf_counter() < self._deadline or not math.isfinite(bound):
                return None
            return Outcome(status=Stop.TIME_LIMIT, bound=bound, message="time limit")
        status, message = Stop.OPTIMAL, ""
        if bound < self._cut:
            if time.perf_counter() < self._deadline:  # a node was closed for want of numbers
                return None
            status, message = Stop.FEASIBLE, "time limit"
        return Outcome(status=status, x=self._x, objective=self._best, bound=bound, message=message)

    # ---- branching ---------------------------------------------------------------------------------------------------
    def _branched(self, node: _PricedNode, solved: _Solved) -> tuple[_PricedNode, _PricedNode] | None:
        """Return the two parts of a node, the nearer first; None where it is closed."""
        if solved.x is None or solved.bound >= self._cut:
            self._closed = min(self._closed, solved.bound)
            return None
        values = solved.x[self._integers]
        down = values - np.floor(values)
        distance = np.minimum(down, 1.0 - down)
        if distance.max(initial=0.0) <= WHOLE:
            self._take(node, solved)
            return None
        open_ = np.flatnonzero(distance > WHOLE)
        gains = self._gains(self._integers[open_]) * np.stack([down[open_], 1.0 - down[open_]])
        merit = np.maximum(gains, NO_GAIN * abs(solved.bound)).prod(axis=0) * (1.0 + _NEARER * distance[open_])
        chosen = open_[int(merit.argmax())]
        column = int(self._integers[chosen])
        below, above = node.upper.copy(), node.lower.copy()
        below[column] = math.floor(solved.x[column])
        above[column] = math.ceil(solved.x[column])
        share = float(down[chosen])
        parts = (
            _PricedNode(solved.bound, next(self._numbers), node.lower, below, (column, 0, share)),
            _PricedNode(solved.bound, next(self._numbers), above, node.upper, (column, 1, 1.0 - share)),
        )
        return parts if share < 0.5 else parts[::-1]

    def _gains(self, columns: Any) -> Floats:
        """Return what branching down and up on columns may gain for each unit of distance, (2, k)."""
        usual = self._gained.sum(axis=1) / np.maximum(self._count.sum(axis=1), 1.0)
        own = self._gained[:, columns] / np.maximum(self._count[:, columns], 1.0)
        return np.where(self._count[:, columns] > 0.0, own, usual[:, None])

    def _learn(self, node: _PricedNode, bound: float) -> None:
        """Take in what branching has gained: very much where rows are missed, which is then tried early elsewhere."""
        if node.branch is not None and math.isfinite(bound) and math.isfinite(node.bound):
            column, side, distance = node.branch
            self._gained[side, column] += max(bound - node.bound, 0.0) / distance
            self._count[side, column] += 1.0

    def _take(self, node: _PricedNode, solved: _Solved) -> None:
        """Take the point of a node whose integers are whole, with these held there, where it meets the rows."""
        assert solved.x is not None  # noqa: S101 - the caller has asked
        self._closed = min(self._closed, max(solved.bound, self._node(node, _LITTLE_MISSED).bound))
        lower, upper = node.lower.copy(), node.upper.copy()
        lower[self._integers] = upper[self._integers] = np.round(solved.x[self._integers])
        again = self._node(_PricedNode(solved.bound, 0, lower, upper))
        if again.x is None or again.missed > NOT_MISSED:
            return
        objective = self._compiled.evaluate(again.x)
        if objective < self._best:
            self._best, self._x = objective, again.x

    # ---- one node ----------------------------------------------------------------------------------------------------
    def _node(self, node: _PricedNode, missed: float = _MISSED) -> _Solved:
        """Solve a node, with what joins; no values where it is of no interest or HiGHS has none.

        ``missed`` is the price of missing rows. Multipliers are no greater, nor the rounding that they leave in bounds.
        """
        highs = self._highs
        changed = np.flatnonzero((node.lower != self._now[0]) | (node.upper != self._now[1])).astype(np.int32)
        if len(changed):
            highs.changeColsBounds(len(changed), changed, node.lower[changed], node.upper[changed])
        self._now = bounds = (node.lower, node.upper)
        self._price_missed(missed)
        bound = node.bound
        count = len(node.lower)
        for _ in range(_SOLVES):
            status = self._run()
            if status == "Infeasible":  # though the rows of the further columns may be missed
                return _Solved(math.inf)
            if status != "Optimal":
                break
            solution = highs.getSolution()
            values = np.array(solution.col_value)
            multipliers = np.array(solution.row_dual)
            prices = self._prices(multipliers)
            least = min(float(prices.min(initial=0.0)), 0.0)
            own, rounding = bound_from_duals(
                self._compiled, values[:count], multipliers / self._scale, A=self._own, bounds=bounds
            )
            bound = max(bound, own - rounding + least / self._scale)
            if bound >= self._cut:
                return _Solved(bound)
            worth = _PRICE_SHARE * self._relative_gap * abs(self._compiled.evaluate(values[:count]))
            if least >= -self._scale * max(worth, HIGHS_NO_REDUCED_COST * self._greatest):
                by = float(values[count : count + 2 * len(self._rows)].sum())
                if by <= NOT_MISSED or self._missed >= _MOST_MISSED:
                    return _Solved(bound, np.clip(values[:count], node.lower, node.upper), by)
                self._price_missed(_RAISE * self._missed)
                continue
            cheapest = np.argpartition(prices, min(_JOIN, len(prices) - 1))[:_JOIN]
            self._join(np.sort(cheapest[prices[cheapest] < 0.0]))
        return _Solved(bound)

    def _run(self) -> str:
        """Run HiGHS, anew where it fails from the basis that it has; return how that ended."""
        highs = self._highs
        for _ in range(2):
            highs.setOptionValue("time_limit", highs.getRunTime() + max(self._deadline - time.perf_counter(), 0.0))
            highs.run()
            status: str = highs.modelStatusToString(highs.getModelStatus())
            if status in {"Optimal", "Infeasible", "Time limit reached"}:
                break
            highs.clearSolver()
        return status

    def _prices(self, multipliers: Floats) -> Floats:
        """Return the prices of the columns, 0 for those that have joined."""
        prices = -(self._dense @ multipliers[self._rows])
        prices[self._joined] = 0.0
        return np.asarray(prices)

    # ---- HiGHS -------------------------------------------------------------------------------------------------------
    def _opened(self) -> Any:
        """Return HiGHS with the program, in which the rows of the further columns may be missed at a price."""
        compiled = self._compiled
        highs = silent_highs()
        for option, value in (("threads", 1), ("presolve", "off"), ("solver", "simplex")):
            highs.setOptionValue(option, value)
        count = compiled.A.shape[0]
        nothing = (0, np.zeros(count, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0))
        highs.addRows(count, compiled.row_lb, compiled.row_ub, *nothing)
        _add(highs, compiled.A, compiled.c * self._scale, compiled.lb, compiled.ub)
        places = (self._rows, np.arange(len(self._rows)))
        sides = sp.csc_array((np.ones(len(self._rows)), places), shape=(count, len(self._rows)))
        _add(highs, sp.hstack([sides, -sides]), np.zeros(2 * len(self._rows)), 0.0, math.inf)
        return highs

    def _price_missed(self, times: float) -> None:
        """Price rows that are missed at so many times the greatest cost of a column."""
        if times != self._missed:
            self._missed = times
            count, first = 2 * len(self._rows), len(self._compiled.c)
            price = times * self._scale * self._greatest
            places = np.arange(first, first + count, dtype=np.int32)
            self._highs.changeColsCost(count, places, np.full(count, price))

    def _join(self, columns: Any) -> None:
        self._joined[columns] = True
        _add(self._highs, self._more[:, columns], np.zeros(len(columns)), 0.0, math.inf)


def _add(highs: Any, columns: Any, costs: Floats, lower: Any, upper: Any) -> None:
    """Add columns (m, k)."""
    columns = sp.csc_array(columns)
    count = columns.shape[1]
    ends = [np.broadcast_to(end, count).astype(float) for end in (lower, upper)]
    highs.addCols(count, costs, *ends, columns.nnz, columns.indptr[:-1], columns.indices, columns.data)
