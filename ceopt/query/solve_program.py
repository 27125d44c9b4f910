"""One build and one solve: the program within a budget, without the points that are barred, from a start."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

import pyomo.environ as pyo

from ceopt.formulations.constraints.diversity.excluded_points import leave_out
from ceopt.formulations.costs.cost_cutoff import CostCutoff
from ceopt.formulations.recourse_program import RecourseProgram, recourse_program
from ceopt.formulations.targets import Labels
from ceopt.query.objective_unit import MOST_UNITS, farthest, is_smaller, unit_for
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import UnboundedFeatureError
from ceopt.solvers.guard.session import GuardedSession
from ceopt.solvers.pool.ranking import met_points
from ceopt.solvers.problem import Outcome, Status
from ceopt.solvers.registry import choose

if TYPE_CHECKING:
    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.targets import Target
    from ceopt.query.prepare import Prepared

__all__ = ["ROUNDING", "Point", "ProgramSolver", "SolveRequest", "SolvedProgram", "Start", "changed_names"]

#: What a solver ends with that leaves time for another run.
_ENDED = frozenset({Status.OPTIMAL, Status.FEASIBLE})
#: Points that are decoded per answer wanted; some fail the check, and some decode to the same.
_SPARE = 3
Point: TypeAlias = Mapping[str, float]
#: A bound this close to the cost, relatively, is off by the rounding of sums only.
ROUNDING = 1e-13
#: A point in hand and its cost.
Start: TypeAlias = tuple[float, dict[str, float]]


def changed_names(factual: Point, point: Point) -> tuple[str, ...]:
    """Return the columns in which a point leaves the factual."""
    return tuple(name for name, value in factual.items() if point[name] != value)


@final
@dataclass(frozen=True, slots=True)
class SolvedProgram:
    """What one solve came to: the solver's outcome, its points read as integer decisions, and the seconds it took.

    Objective and bound are those of the cost itself, whatever unit the program had; ``is_curved`` says whether it had
    squares or cones; ``cluster`` in which hull of several the point lies.
    """

    outcome: Outcome
    point: dict[str, float] | None
    solver: str
    build_s: float
    lower_s: float
    solve_s: float
    met: tuple[dict[str, float], ...] = ()
    is_curved: bool = False
    cluster: Any = None

    def after(self, before: SolvedProgram) -> SolvedProgram:
        """Return this attempt, or the one before it where only that has a point, with the seconds of both."""
        best = before if self.point is None and before.point is not None else self
        seconds = {word: getattr(self, word) + getattr(before, word) for word in ("build_s", "lower_s", "solve_s")}
        return replace(best, **seconds)


@final
@dataclass(frozen=True, slots=True)
class SolveRequest:
    """What one program is to be solved for.

    Parameters
    ----------
    margin
        Least slack of the decision; None for what trees decide themselves.
    below
        By how much the decision may be missed where there is no margin: the model itself is asked about what is found.
    barred
        Points that may not come again, and in what the next must differ from each.
    refused
        Points that the user's own model refused: what it does not tell from one of them, it refuses as well.
    starts
        Points in hand; the first that is not barred is the solver's start.
    budget
        A cost that the answer need not exceed, or None.
    closed
        Whether nothing beyond the budget is wanted.
    exact
        Ask the solver for integers as whole as it can make them.
    met
        How many points that the solver meets on its way are wanted beside the best; 0 for none.
    """

    margin: float | None
    below: float = 0.0
    barred: Sequence[tuple[Point, AbstractDiversity]] = ()
    refused: Sequence[Point] = ()
    starts: Sequence[Start] = ()
    budget: float | None = None
    closed: bool = False
    exact: bool = False
    met: int = 0


@final
@dataclass(frozen=True, slots=True)
class ProgramSolver:
    """Builds and solves one person's program as often as it is asked to.

    Parameters
    ----------
    prepared
        Model and settings.
    factual, row
        The person, in coordinates and as a one-row frame.
    reach
        Values that each column may take.
    """

    prepared: Prepared
    factual: Point
    row: Any
    reach: Reach

    def run(self, ask: SolveRequest, seconds: float) -> SolvedProgram:
        """Solve for the best point that no barred one rules out.

        A budget narrows the program; where nothing is found within it, or only what costs more, the whole reach is
        searched. That happens: a start may differ by less than answers must (a column that no row reads), or stand
        nearer to a tie than the program allows.
        """
        began = time.perf_counter()
        attempt = self._nearer(ask, self._found(ask, seconds), began + seconds)
        if ask.budget is None or (ask.closed and attempt.outcome.status is Status.INFEASIBLE):
            return attempt
        limit = self.prepared.settings.cost.to_objective(ask.budget)
        if ask.closed or not self._is_beyond(ask.budget, attempt):
            # Beyond the budget nothing was searched: where that may be the answer's place, no more than it is proved.
            known = attempt.outcome.bound
            bound = known if known is None or attempt.outcome.status is Status.OPTIMAL else min(known, limit)
            return replace(attempt, outcome=replace(attempt.outcome, bound=bound))
        try:
            return self._found(replace(ask, budget=None), max(seconds - (time.perf_counter() - began), 1e-2))
        except OutOfTimeError:  # what was found stays, proved up to the budget only
            message = "The time limit is used up."
            return replace(
                attempt, outcome=replace(attempt.outcome, status=Status.TIME_LIMIT, bound=limit, message=message)
            )
        except UnboundedFeatureError as error:  # the same
            status = attempt.outcome.status if attempt.point is not None else Status.ERROR
            return replace(attempt, outcome=replace(attempt.outcome, status=status, bound=limit, message=str(error)))

    def _nearer(self, ask: SolveRequest, attempt: SolvedProgram, deadline: float) -> SolvedProgram:
        """Solve again within the cost of what was found, where the reach was of another size: units come from it."""
        cost, space = self.prepared.settings.cost, self.prepared.space
        for _ in range(0 if ask.met else MOST_UNITS - 1):
            left = deadline - time.perf_counter()
            if attempt.point is None or left <= 0.0 or attempt.outcome.status not in _ENDED:
                return attempt
            found = cost.value(space, self.factual, attempt.point)
            is_open = attempt.outcome.status is Status.FEASIBLE
            if found <= 0.0 or not is_smaller(self._within(found), self._within(ask.budget), space, is_open=is_open):
                return attempt
            ask = replace(ask, budget=found, starts=[(found, attempt.point), *ask.starts])
            again = self._found(ask, left)
            if again.point is None:
                return attempt
            known = again.outcome.bound
            if known is not None and again.outcome.status is not Status.OPTIMAL:
                again = replace(again, outcome=replace(again.outcome, bound=min(known, cost.to_objective(found))))
            attempt = again.after(attempt)
        return attempt

    def _within(self, budget: float | None) -> Reach:
        """Return what the columns may become within a budget."""
        if budget is None:
            return self.reach
        cost = self.prepared.settings.cost
        return CostCutoff(self.prepared.space, self.factual, cost, cost.to_objective(budget)).narrowed(self.reach)

    def _is_beyond(self, budget: float, attempt: SolvedProgram) -> bool:
        settings = self.prepared.settings
        if attempt.outcome.status not in {Status.OPTIMAL, Status.INFEASIBLE}:
            return False  # the time is used up: what there is stays
        if attempt.point is None:
            return True
        cost = settings.cost.value(self.prepared.space, self.factual, attempt.point)
        return cost > budget * (1.0 + settings.relative_gap) + ROUNDING

    def _found(self, ask: SolveRequest, seconds: float) -> SolvedProgram:
        """Solve; where columns without bounds forbid it, within the cost of a point that takes one wanted label."""
        try:
            return self._run(ask, seconds)
        except UnboundedFeatureError:
            began = time.perf_counter()
            start = self._of_one_label(ask, seconds)
            if start is None:
                raise
            left = max(seconds - (time.perf_counter() - began), 1e-2)
            return self._run(replace(ask, starts=[start], budget=start[0]), left)

    def _of_one_label(self, ask: SolveRequest, seconds: float) -> Start | None:
        """Return a point that takes one wanted label alone: its cost bounds a reach without bounds of its own."""
        target = self.prepared.settings.target
        if not isinstance(target, Labels) or len(target.wanted) == 1:
            return None
        for wanted in target.wanted:
            alone = Labels((wanted,), target.labels)
            attempt = self._run(replace(ask, starts=(), budget=None), seconds / len(target.wanted), target=alone)
            if attempt.point is not None:
                cost = self.prepared.settings.cost.value(self.prepared.space, self.factual, attempt.point)
                return cost, attempt.point
        return None

    def _run(self, ask: SolveRequest, seconds: float, *, target: Target | None = None) -> SolvedProgram:
        """Solve, and where squares or cones turn out to be of a size that tolerances do not suit, again in its unit."""
        began, cost, space = time.perf_counter(), self.prepared.settings.cost, self.prepared.space
        known = next((point for spent, point in ask.starts if spent == ask.budget), None) if cost.curved else None
        unit = unit_for(ask.budget if known is None else cost.size(space, self.factual, known), 1.0)
        attempt = self._once(ask, seconds, unit, target)
        for _ in range(MOST_UNITS - 1 if attempt.is_curved else 0):
            size = self._size(attempt)
            better, left = unit_for(size, unit), seconds - (time.perf_counter() - began)
            if size is None or better == unit or left <= 0.0:
                break
            point = attempt.point
            starts = [] if point is None else [(cost.value(space, self.factual, point), point)]
            unit, before = better, attempt
            try:
                attempt = self._once(replace(ask, starts=[*starts, *ask.starts]), left, unit, target).after(before)
            except OutOfTimeError:
                break
        return attempt

    def _size(self, attempt: SolvedProgram) -> float | None:
        """Return the lengths' size at the point found; where the solver failed, that at the farthest point; or None."""
        cost, space = self.prepared.settings.cost, self.prepared.space
        if attempt.point is not None:
            return cost.size(space, self.factual, attempt.point)
        if attempt.outcome.status in {Status.UNBOUNDED, Status.ERROR}:
            return cost.size(space, self.factual, farthest(self.factual, self.reach))
        return None

    def _once(self, ask: SolveRequest, seconds: float, unit: float, target: Target | None) -> SolvedProgram:
        settings, began = self.prepared.settings, time.perf_counter()
        cost = settings.cost.in_units(unit)
        program = self._program(ask, settings.target if target is None else target, cost)
        for point, how in ask.barred:
            program.embedded.place(point)
            how.exclude(program, point)
        if ask.refused:
            leave_out(program, ask.refused)
        built = time.perf_counter()
        compiled = compile_model(program.model)
        lowered = time.perf_counter()
        solver = choose(settings.solver, compiled)
        options = {**(solver.exact if ask.exact else {}), **settings.solver_options}
        session = GuardedSession(
            solver, compiled, threads=settings.threads, random_state=settings.random_state, options=options
        )
        outcome = session.solve(
            time_limit_s=max(seconds - (lowered - began), 1e-2),
            relative_gap=settings.relative_gap / 2,
            start=self._start(program, compiled, ask),
            pool=ask.met + 1,
        )
        met = decoded(program, compiled, outcome, ask.met) if ask.met else ()
        answer, cluster, is_curved = None, None, compiled.Q is not None or bool(compiled.cones)
        if cost is not settings.cost:
            outcome = replace(
                outcome, objective=self._own(outcome.objective, cost), bound=self._own(outcome.bound, cost)
            )
        if outcome.x is not None:
            compiled.load(outcome.x)
            answer, cluster = program.x.decoded(), program.cluster
        done = time.perf_counter()
        name = f"{solver.name} {session.version}"
        return SolvedProgram(
            outcome, answer, name, built - began, lowered - built, done - lowered, met, is_curved, cluster
        )

    def _own(self, objective: float | None, cost: AbstractCost) -> float | None:
        """Return an objective of the cost in some unit as one of the cost itself."""
        if objective is None or not math.isfinite(objective):
            return objective
        return self.prepared.settings.cost.to_objective(cost.from_objective(objective))

    def _program(self, ask: SolveRequest, target: Target, cost: AbstractCost) -> RecourseProgram:
        prepared, settings = self.prepared, self.prepared.settings
        reach, cutoff, budget = self.reach, None, ask.budget
        if budget is not None:
            cutoff = CostCutoff(prepared.space, self.factual, cost, cost.to_objective(budget))
            reach = cutoff.narrowed(reach)
        return recourse_program(
            prepared.predictor,
            self.row,
            target=target,
            cost=cost,
            rules=settings.rules,
            margin=ask.margin,
            below=ask.below,
            formulation=settings.formulation,
            reach=reach,
            cutoff=cutoff,
            all_cells=settings.n > 1 and (settings.diversity is None or settings.diversity.needs_all_cells),
        )

    def _start(
        self, program: RecourseProgram, compiled: CompiledModel, ask: SolveRequest
    ) -> Mapping[int, float] | None:
        """Return the first start that the rows for every barred point let pass."""
        space = self.prepared.space
        for _, point in ask.starts:
            if all(how.surely(space, self.factual, earlier, point) for earlier, how in ask.barred):
                program.x.place(point)
                program.embedded.place(point)
                pairs = ((compiled.index.get(v), v.value) for v in program.model.component_data_objects(pyo.Var))
                return {column: float(value) for column, value in pairs if column is not None and value is not None}
        return None


def decoded(
    program: RecourseProgram, compiled: CompiledModel, outcome: Outcome, n: int
) -> tuple[dict[str, float], ...]:
    """Return the best points that the solver met, no two with the same decisions, in coordinates."""
    found = []
    for x in met_points(compiled, outcome, _SPARE * n):
        compiled.load(x)
        found.append(program.x.decoded())
    return tuple(found)
