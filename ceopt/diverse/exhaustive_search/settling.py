r"""Cells whose nearest point breaks a rule: the cheapest point that keeps it, or the proof that there is none.

The score is constant on a cell, so what is left is a program of the rules alone,

.. math:: \min_x\ \text{cost}(x, x^0) \quad\text{s.t.}\quad x \in \text{cell}, \quad \text{rules},

and the same over the box around many cells bounds them all: one program closes the box, or finds the cheapest point of
a cell in it, or splits it in two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints import impose, rule_name
from ceopt.formulations.constraints.rule import component_name
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.query.solve_program import unit_for
from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.problem import Outcome, Stop
from ceopt.solvers.registry import choose
from ceopt.solvers.trust import GuardedSession

if TYPE_CHECKING:
    from ceopt.diverse.exhaustive_search.cells import CellColumn
    from ceopt.query.prepare import Prepared

__all__ = ["Settling"]

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
            part = self.reach[column.name]
            own = np.unique(cells)
            if isinstance(part, Levels):
                box[column.name] = Levels(tuple(sorted(int(rank) for rank in column.values[own])))
            else:
                box[column.name] = part.narrowed(float(column.low[own].min()), float(column.high[own].max()))
        return {name: box[name] for name in self.reach}

    def _holding(self, group: Cells, point: Mapping[str, float]) -> NDArray[np.bool_]:
        """Return which of some cells hold a point."""
        holds = np.ones(len(group), dtype=bool)
        for column, cells in zip(self.columns, group.T, strict=True):
            value = point[column.name]
            holds &= (column.low[cells] <= value) & (value <= column.high[cells])
        return holds


def _halves(group: Cells) -> list[Cells]:
    """Return some cells in two parts, apart in the column in which they differ most."""
    widest = int(np.argmax([len(np.unique(cells)) for cells in group.T]))
    cells = group[:, widest]
    middle = np.unique(cells)[math.ceil(len(np.unique(cells)) / 2)]
    return [group[cells < middle], group[cells >= middle]]
