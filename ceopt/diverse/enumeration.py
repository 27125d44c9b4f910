r"""Every cell within a budget that can meet the target, by branch and bound, and its answer if the user's model agrees.

:class:`Walk` yields the cells and proves that no other holds an answer; :class:`Enumeration` asks the user's own model
and every rule about each cell's point. Where a cell's nearest point breaks a rule, a program of the rules settles it,
as the score is constant on a cell:

.. math:: \min_x\ \text{cost}(x, x^0) \quad\text{s.t.}\quad x \in \text{cell}, \quad \text{rules},

and the same over the box around many cells bounds them all: one program closes the box, or finds the cheapest point of
a cell in it, or splits it in two.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.diverse.score_bounds import Boxes, Ceilings, CellColumn, allowances_of, demands_of
from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints import impose, rule_name
from ceopt.formulations.constraints.rule import component_name
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.digits import digits
from ceopt.formulations.predictors.raw_trees import raw_trees
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.oracle.model import broken_rules
from ceopt.oracle.rows import points_of
from ceopt.search.solve_program import unit_for
from ceopt.solvers.checks import Floats
from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.deadline import OutOfTimeError, without_deadline
from ceopt.solvers.guarded_session import GuardedSession
from ceopt.solvers.problem import Outcome, Stop
from ceopt.solvers.registry import choose
from ceopt.tolerances import EQUAL_COSTS

if TYPE_CHECKING:
    from ceopt.diverse.score_bounds import Allowance
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.search.prepare import Prepared

# ==== Cells whose nearest point breaks a rule =========================================================================

Cells = NDArray[np.intp]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Settling:
    """Finds the cheapest points of cells under rules, by branch and bound over boxes of cells.

    Parameters
    ----------
    prepared
        Model and settings.
    factual, row, reach
        The person, in coordinates and as a one-row frame, and what each column may become.
    columns
        The cells of each column.
    """

    prepared: Prepared
    factual: Mapping[str, float]
    row: Any
    reach: Reach
    columns: Sequence[CellColumn]

    def run(self, cells: Cells, most: Any, seconds: Any) -> Iterator[tuple[Cells, dict[str, float] | None]]:
        """Yield cells (n, columns) with their cheapest points, and those that could not be settled with None.

        ``most()`` is the cost that no point exceeds, ``seconds()`` what is left of the time. Ctrl-C goes on.
        """
        waiting = [cells]
        while waiting:
            group = waiting.pop()
            near = self._cutoff(most())
            box = self._box(group)
            if near.is_beyond(box):  # the limit has lowered what a point may cost since the cells were found
                continue
            outcome, point = self._solved(near, box, seconds())
            if outcome.status is Stop.INTERRUPTED:
                raise KeyboardInterrupt
            if outcome.status is Stop.INFEASIBLE:
                continue
            if point is None or outcome.status is not Stop.OPTIMAL:
                if len(group) == 1 or seconds() <= 0.0:
                    yield group, None
                else:
                    waiting += _halves(group)
                continue
            if self.prepared.settings.cost.value(self.prepared.space, self.factual, point) > self._upto(most()):
                continue  # and so do all others in the box
            holds = self._holding(group, point)
            if holds.any():
                yield group[holds], point
                group = group[~holds]
            if len(group) > 1:
                waiting += _halves(group)
            elif len(group) == 1:
                waiting.append(group)

    def _upto(self, most: float) -> float:
        return most * (1.0 + self.prepared.settings.relative_gap)

    def _cutoff(self, most: float) -> CostCutoff:
        cost = self.prepared.settings.cost.in_units(unit_for(most, 1.0))
        return CostCutoff(self.prepared.space, self.factual, cost, cost.to_objective(self._upto(most)))

    def _solved(self, near: CostCutoff, box: Reach, seconds: float) -> tuple[Outcome, dict[str, float] | None]:
        """Return the cheapest point of a box within the cutoff that keeps the rules."""
        settings = self.prepared.settings
        model = pyo.ConcreteModel(name="cell")
        model.x = x = Factual(self.prepared.space, self.row, reach=near.narrowed(box))
        model.rules = pyo.Block(concrete=True)
        with x.collecting():
            # A rule that leaves a finite part of a column first, as in the program of ``explain``.
            for place, rule in sorted(enumerate(settings.rules), key=lambda pair: not pair[1].gives_bounds):
                model.rules.add_component(component_name(model.rules, rule_name(rule, place)), impose(rule, x))
            model.cost = pyo.Objective(expr=near.cost.build(x))
        compiled = compile_model(model)
        solver = choose(settings.solver, compiled)
        session = GuardedSession(
            solver, compiled, threads=settings.threads, random_state=settings.random_state, options=solver.exact
        )
        outcome = session.solve(time_limit_s=max(seconds, 1e-2), relative_gap=settings.relative_gap / 2)
        if outcome.x is None:
            return outcome, None
        compiled.load(outcome.x)
        return outcome, x.decoded()

    def _box(self, group: Cells) -> dict[str, Interval | Levels]:
        """Return the least box around some cells, as values that each column may take."""
        box: dict[str, Interval | Levels] = {}
        for column, cells in zip(self.columns, group.T, strict=True):
            box[column.name] = column.part_of(np.unique(cells), self.reach)
        return {name: box[name] for name in self.reach}

    def _holding(self, group: Cells, point: Mapping[str, float]) -> NDArray[np.bool_]:
        """Return which of some cells hold a point."""
        holds = np.ones(len(group), dtype=bool)
        for column, cells in zip(self.columns, group.T, strict=True):
            holds &= column.holding(point[column.name])[cells]
        return holds


def _halves(group: Cells) -> list[Cells]:
    """Return some cells in two parts, apart in the column in which they differ most."""
    widest = int(np.argmax([len(np.unique(cells)) for cells in group.T]))
    cells = group[:, widest]
    middle = np.unique(cells)[math.ceil(len(np.unique(cells)) / 2)]
    return [group[cells < middle], group[cells >= middle]]


# ==== The walk over the cells =========================================================================================


#: Bytes of boxes that are opened at once: what a core's cache holds some times over.
_BOX_BYTES: Final = 1 << 22


@final
class Walk:
    r"""A walk over all boxes of cells, depth first, that closes a box when no point in it can be an answer.

    One column after the other takes one of its cells. A box is closed where the prices taken exceed the budget, or the
    changes what a rule allows, or where :class:`Ceilings` shows that the target is out of reach with what is left. All
    these bounds are valid, so every cell that is not handed out is proved to hold no answer within the budget: the walk
    is the proof. No program is solved.

    Parameters
    ----------
    columns
        The columns in the order in which they take their cells.
    ceilings
        Bounds over the same columns.
    allowances
        What there is to go round with, the budget first.

    Attributes
    ----------
    budget
        The most that a point may cost, an objective value; may be lowered on the way.
    boxes
        How many were looked at so far.
    """

    def __init__(self, columns: Sequence[CellColumn], ceilings: Ceilings, allowances: Sequence[Allowance]) -> None:
        self._columns = columns
        self._ceilings = ceilings
        self._allowances = allowances
        self.budget = allowances[0].most
        self.boxes = 0

    def run(self) -> Iterator[Cells]:
        """Yield the cells that may hold answers, many at once; some may be empty, so that a clock can be looked at."""
        ceilings = self._ceilings
        d = len(self._columns)
        waiting = [_Open(np.zeros((1, 0), dtype=np.intp), [np.zeros(1) for _ in self._allowances], ceilings.start())]
        pairs = max(1, _BOX_BYTES // (ceilings.width + 8 * d + 8))
        while waiting:
            here = waiting.pop()
            depth = here.chosen.shape[1]
            if depth == d:
                yield here.chosen[here.spent[0] <= self.budget]
                continue
            count = self._count(depth, here.spent[0])
            some = max(1, int(np.searchsorted(np.cumsum(count), pairs, side="right")))
            if some < len(count):
                waiting.append(here.only(slice(some, None)))
                here = here.only(slice(some))
                count = count[:some]
            self.boxes += int(count.sum())
            waiting += self._opened(here, depth, count)
            yield np.zeros((0, d), dtype=np.intp)

    def _opened(self, here: _Open, depth: int, count: NDArray[np.intp]) -> list[_Open]:
        """Let the next column take its cells, the first few in order of their prices; return what stays open."""
        owner = np.repeat(np.arange(len(count)), count)
        cell = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        spent: list[Floats] = []
        is_allowed = np.ones(len(owner), dtype=bool)
        for position, allowance in enumerate(self._allowances):
            used = allowance.together(here.spent[position][owner], allowance.used[depth][cell])
            spent.append(used)
            if position > 0:  # the budget has been kept to in the count of cells
                is_allowed &= used <= allowance.most
        owner = owner[is_allowed]
        cell = cell[is_allowed]
        spent = [used[is_allowed] for used in spent]
        boxes = self._ceilings.take(here.boxes, depth, owner, cell)
        open_ = self._ceilings.possible(boxes, depth + 1, spent)
        chosen = np.concatenate([here.chosen[owner], cell[:, None]], axis=1)
        if not open_.any():
            return []
        return [_Open(chosen, spent, boxes).only(open_)]

    def _count(self, depth: int, spent: Floats) -> NDArray[np.intp]:
        """Return how many cells of the next column each box can pay for."""
        if self._allowances[0].additive:
            left = self.budget - spent
        else:
            left = np.full(len(spent), self.budget)
        return np.searchsorted(self._columns[depth].prices, left, side="right")


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    """Boxes whose first few columns have taken cells, what they have spent of each allowance, and their bounds."""

    chosen: Cells
    spent: list[Floats]
    boxes: Boxes

    def only(self, kept: Any) -> _Open:
        """Return some of the boxes."""
        bits, sums = self.boxes
        return _Open(self.chosen[kept], [used[kept] for used in self.spent], (bits[kept], sums[kept]))


#: Cells whose points are shown to the user's model at once.
_CELLS_SHOWN: Final = 500
#: Points of programs that are shown to the user's model at once.
_POINTS_SHOWN: Final = 50


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """The cheapest point of a cell, which passed every check: its cost, its coordinates, what the model says."""

    cost: float
    point: dict[str, float]
    prediction: Any


@dataclass(slots=True)
class _Waiting:
    """Cells whose points have still to be shown to the model, and those for which a rule asks for another point."""

    cells: list[Cells] = field(default_factory=list)
    count: int = 0
    others: list[Cells] = field(default_factory=list)


@final
class Enumeration:
    """All cells of one person with an answer that costs at most ``most``, each with its cheapest point.

    Where that point breaks a rule, programs find the cheapest that does not (:class:`Settling`).

    Parameters
    ----------
    prepared
        Model and settings.
    factual, row, reach
        The person, in coordinates and as a one-row frame, and what each column may become.
    columns
        The cells of each column.
    least_slack
        By how much the decision must meet the target.
    most
        Cost that no answer exceeds.
    wanted
        How many answers are wanted, the cheapest; None for all.
    deadline
        When all must be over, by ``time.perf_counter``.
    answer_s
        Seconds that it takes to make an answer of what is kept, for which time is put by.

    Attributes
    ----------
    kept
        What was found, in no order.
    is_complete
        Whether it is proved that nothing else is within ``most`` (or, once there are as many as wanted, cheaper).
    why
        What stopped it, if something did.
    """

    def __init__(
        self,
        prepared: Prepared,
        factual: Mapping[str, float],
        row: Any,
        reach: Reach,
        columns: Sequence[CellColumn],
        *,
        least_slack: float,
        most: float,
        wanted: int | None,
        deadline: float,
        answer_s: float = 0.0,
    ) -> None:
        self.prepared = prepared
        self.space = prepared.space
        self.cost = prepared.settings.cost
        self.factual = factual
        self.row = row
        self.reach = reach
        self.columns = _ordered(columns, prepared.predictor)
        self.least_slack = least_slack
        self.most = most
        self.wanted = wanted
        self.deadline = deadline
        self.answer_s = answer_s
        self.kept: list[Kept] = []
        self.is_complete = False
        self.why = ""
        self._place = {column.name: k for k, column in enumerate(self.columns)}
        self._waiting = _Waiting()

    def run(self) -> None:
        """Walk through the cells, check their points and settle open boxes until the end or the deadline."""
        try:
            self.is_complete = self._walk() and self._settle()
        except OutOfTimeError:
            self.why = self.out_of_time
        except KeyboardInterrupt:
            self.why = "The search was interrupted."

    def _walk(self) -> bool:
        settings = self.prepared.settings
        budget = self.cost.to_objective(self.most)
        alternatives = demands_of(self.prepared.predictor, settings.target, self.least_slack)
        allowances = allowances_of(self.prepared, self.factual, self.columns, budget)
        walk = Walk(self.columns, Ceilings(alternatives, self.columns, self.reach, allowances), allowances)
        for cells in walk.run():
            if len(cells):
                self._waiting.cells.append(cells)
                self._waiting.count += len(cells)
            if self._waiting.count >= _CELLS_SHOWN:
                self._show()
                walk.budget = min(walk.budget, self.cost.to_objective(self.most))
            if self._is_late:
                self._show()
                return False
        self._show()
        return True

    @property
    def _is_late(self) -> bool:
        if time.perf_counter() + self.answer_s * len(self.kept) < self.deadline:
            return False
        self.why = self.out_of_time
        return True

    @property
    def out_of_time(self) -> str:
        """The sentence that says so."""
        return f"The time limit of {digits(self.prepared.settings.time_limit_s)} s is used up."

    # ---- the cheapest point of a cell --------------------------------------------------------------------------------
    def _show(self) -> None:
        """Ask the user's model about all points that wait, the cheapest first, and keep those that pass.

        Raises
        ------
        OutOfTimeError
            The deadline has passed before all were asked about.
        """
        if not self._waiting.count:
            return
        cells = np.concatenate(self._waiting.cells)
        self._waiting.cells = []
        self._waiting.count = 0
        points = self._points(cells)
        costs = self._costs(points)
        good = slack(self.prepared.predictor, points, self.prepared.settings.target) >= self.least_slack
        good &= costs <= self.most
        cheapest_first = np.flatnonzero(good)[np.argsort(costs[good], kind="stable")]
        for k in range(0, len(cheapest_first), _CELLS_SHOWN):
            if k and self._is_late:
                raise OutOfTimeError("asking the model about cells")
            places = cheapest_first[k : k + _CELLS_SHOWN]
            for kept, cell in zip(self._judged(points[places], costs[places]), cells[places], strict=True):
                if kept is None:
                    continue
                if self.broken(kept.point):
                    self._waiting.others.append(cell)
                else:
                    self.kept.append(kept)
        self._spare()

    def _points(self, cells: Cells) -> Floats:
        coordinates = []
        for name in self.space.names:
            place = self._place[name]
            coordinates.append(self.columns[place].values[cells[:, place]])
        return np.stack(coordinates, axis=1)

    def _costs(self, points: Floats) -> Floats:
        objectives = self.cost.objectives(self.space, self.factual, points).tolist()
        return np.array(list(map(self.cost.from_objective, objectives)))

    def _judged(self, points: Floats, costs: Floats) -> Iterator[Kept | None]:
        """Yield the answers that the user's own model accepts, None for the others."""
        if not len(points):
            return
        named = points_of(self.space, points)
        predictions, is_met = self.prepared.judge(named)
        for k, point in enumerate(named):
            if is_met[k]:
                yield Kept(float(costs[k]), point, predictions[k])
            else:
                yield None

    def broken(self, point: Mapping[str, float]) -> bool:
        """Tell whether a point breaks a rule."""
        return bool(broken_rules(self.prepared.settings.rules, self.space, self.factual, point))

    def _spare(self) -> None:
        """Once there are as many as wanted, look no further than the dearest of them."""
        if self.wanted is None or len(self.kept) < self.wanted:
            return
        self.kept.sort(key=_order)
        del self.kept[self.wanted :]
        self.most = min(self.most, self.kept[-1].cost * (1.0 + EQUAL_COSTS))

    # ---- another point of a cell -------------------------------------------------------------------------------------
    def _settle(self) -> bool:
        """Find the cheapest point of each cell whose nearest one broke a rule; return whether all are settled."""
        if not self._waiting.others:
            return True
        settling = Settling(self.prepared, self.factual, self.row, self.reach, self.columns)
        unsettled = 0
        points: list[list[float]] = []
        try:
            for cells, point in settling.run(np.array(self._waiting.others), lambda: self.most, self._seconds):
                if point is None:
                    unsettled += len(cells)
                else:
                    points.append(list(map(point.__getitem__, self.space.names)))
                if len(points) >= _POINTS_SHOWN:
                    unsettled += self._take(points)
                    points = []
                if self._is_late:
                    return False
        finally:
            unsettled += self._take(points)
        if unsettled:
            self.why = f"In {unsettled} cells the solver could not settle whether they hold an answer."
        return not unsettled

    def _take(self, rows: list[list[float]]) -> int:
        """Keep points of programs, if they pass the check; return how many do not."""
        if not rows:
            return 0
        points = np.array(rows)
        passed: list[Kept] = []
        with without_deadline():  # what is in hand is checked to the end
            for kept in self._judged(points, self._costs(points)):
                if kept is not None and not self.broken(kept.point):
                    passed.append(kept)
        self.kept += passed
        self._spare()
        return len(rows) - len(passed)

    def _seconds(self) -> float:
        return self.deadline - time.perf_counter()


def _order(kept: Kept) -> tuple[float, tuple[float, ...]]:
    return kept.cost, tuple(kept.point.values())


def _ordered(columns: Sequence[CellColumn], predictor: Predictor) -> list[CellColumn]:
    """Return the columns in the order in which they take their cells: what most trees split comes first."""
    count = dict.fromkeys((column.name for column in columns), 0)
    for part in predictor.forests:
        raw = raw_trees(part)
        for j, name in enumerate(raw.names):
            count[name] += len(np.unique(raw.tree[raw.column == j]))
    return sorted(columns, key=lambda column: (len(column) > 1, -count[column.name], len(column)))
