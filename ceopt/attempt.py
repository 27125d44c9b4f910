"""One build and one solve: the program within a budget, without the points that are barred, from a start."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import pyomo.environ as pyo

from ceopt.formulations.constraints.diversity import Diversity, exclude
from ceopt.formulations.costs.cutoff import Cutoff
from ceopt.formulations.recourse import RecourseProgram, recourse_program
from ceopt.formulations.targets import Labels
from ceopt.solvers.compiled import CompiledModel, compile_model
from ceopt.solvers.errors import UnboundedFeatureError
from ceopt.solvers.problem import Outcome
from ceopt.solvers.registry import choose

if TYPE_CHECKING:
    from ceopt.formulations.space.reach import Reach
    from ceopt.formulations.targets import Target
    from ceopt.prepare import Prepared

__all__ = ["Attempt", "Attempts", "Point", "Start", "changed_names"]

Point: TypeAlias = Mapping[str, float]
#: A point in hand and its cost.
Start: TypeAlias = tuple[float, dict[str, float]]


def changed_names(factual: Point, point: Point) -> tuple[str, ...]:
    """Return the columns in which a point leaves the factual."""
    return tuple(name for name, value in factual.items() if point[name] != value)


@final
@dataclass(frozen=True, slots=True)
class Attempt:
    """What one solve came to: the solver's outcome, its point read as integer decisions, and the seconds it took."""

    outcome: Outcome
    point: dict[str, float] | None
    solver: str
    build_s: float
    lower_s: float
    solve_s: float


@final
@dataclass(frozen=True, slots=True)
class Attempts:
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

    def run(
        self,
        *,
        margin: float,
        barred: Sequence[tuple[Point, Diversity]],
        starts: Sequence[Start],
        budget: float | None,
        seconds: float,
        exact: bool = False,
    ) -> Attempt:
        """Solve for the best point that no barred one rules out.

        Parameters
        ----------
        margin
            Least slack of the decision.
        barred
            Points that may not come again, and in what the next must differ from each.
        starts
            Points in hand; the first that is not barred is the solver's start.
        budget
            A cost that the answer is known not to exceed, or None.
        seconds
            Time limit.
        exact
            Ask the solver for integers as whole as it can make them.
        """
        try:
            return self._run(margin, barred, starts, budget, seconds, exact=exact)
        except UnboundedFeatureError:
            began = time.perf_counter()
            start = self._of_one_label(margin, barred, seconds)
            if start is None:
                raise
            left = max(seconds - (time.perf_counter() - began), 1e-2)
            return self._run(margin, barred, [start], start[0], left)

    def _of_one_label(self, margin: float, barred: Sequence[tuple[Point, Diversity]], seconds: float) -> Start | None:
        """Return a point that takes one wanted label alone: its cost bounds a reach without bounds of its own."""
        target = self.prepared.settings.target
        if not isinstance(target, Labels) or len(target.wanted) == 1:
            return None
        for wanted in target.wanted:
            alone = Labels((wanted,), target.labels)
            attempt = self._run(margin, barred, (), None, seconds / len(target.wanted), target=alone)
            if attempt.point is not None:
                cost = self.prepared.settings.cost.value(self.prepared.space, self.factual, attempt.point)
                return cost, attempt.point
        return None

    def _run(
        self,
        margin: float,
        barred: Sequence[tuple[Point, Diversity]],
        starts: Sequence[Start],
        budget: float | None,
        seconds: float,
        *,
        target: Target | None = None,
        exact: bool = False,
    ) -> Attempt:
        settings, began = self.prepared.settings, time.perf_counter()
        program = self._program(margin, budget, settings.target if target is None else target)
        for point, how in barred:
            program.embedded.place(point)
            exclude(program.model, program.x, point, how, (program.embedded,))
        built = time.perf_counter()
        compiled = compile_model(program.model)
        lowered = time.perf_counter()
        solver = choose(settings.solver, compiled.problem_class)
        options = {**(solver.exact if exact else {}), **settings.solver_options}
        session = solver.session()(
            compiled, threads=settings.threads, random_state=settings.random_state, options=options
        )
        outcome = session.solve(
            time_limit_s=max(seconds - (lowered - began), 1e-2),
            relative_gap=settings.relative_gap / 2,
            start=self._start(program, compiled, barred, starts),
        )
        answer = None
        if outcome.x is not None:
            compiled.load(outcome.x)
            answer = program.x.decoded()
        done = time.perf_counter()
        name = f"{solver.name} {session.version}"
        return Attempt(outcome, answer, name, built - began, lowered - built, done - lowered)

    def _program(self, margin: float, budget: float | None, target: Target) -> RecourseProgram:
        prepared, settings = self.prepared, self.prepared.settings
        reach, cutoff = self.reach, None
        if budget is not None:
            cutoff = Cutoff(prepared.space, self.factual, settings.cost, settings.cost.to_objective(budget))
            reach = cutoff.narrowed(reach)
        return recourse_program(
            prepared.predictor,
            self.row,
            target=target,
            cost=settings.cost,
            rules=settings.rules,
            margin=margin,
            formulation=settings.formulation,
            reach=reach,
            cutoff=cutoff,
            all_cells=settings.n > 1,
        )

    def _start(
        self,
        program: RecourseProgram,
        compiled: CompiledModel,
        barred: Sequence[tuple[Point, Diversity]],
        starts: Sequence[Start],
    ) -> Mapping[int, float] | None:
        """Return the first start that changes other columns than every barred point, as column -> value."""
        had = {changed_names(self.factual, point) for point, _ in barred}
        for _, point in starts:
            if changed_names(self.factual, point) not in had:
                program.x.place(point)
                program.embedded.place(point)
                pairs = ((compiled.index.get(v), v.value) for v in program.model.component_data_objects(pyo.Var))
                return {column: float(value) for column, value in pairs if column is not None and value is not None}
        return None
