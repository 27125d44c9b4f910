"""One person's program: built, compiled, solved, and its point read back as integer decisions."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import pyomo.environ as pyo

from ceopt.formulations.constraints.diversity.excluded_points import leave_out
from ceopt.formulations.costs.cost_cutoff import CostCutoff
from ceopt.formulations.recourse_program import RecourseProgram, recourse_program
from ceopt.query.request import Person, SolvedProgram, SolveRequest
from ceopt.query.retries import RETRIES, Solve
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.guard.guarded_session import GuardedSession
from ceopt.solvers.pool.ranking import met_points
from ceopt.solvers.registry import choose

if TYPE_CHECKING:
    from ceopt.formulations.costs import AbstractCost
    from ceopt.query.prepare import Prepared
    from ceopt.solvers.problem import Outcome

__all__ = ["ProgramSolver", "SolvedModel", "size_of"]

#: Points that are decoded per answer wanted; some fail the check, and some decode to the same.
_SPARE: Final = 3
#: Seconds that a solver is given at least.
_LEAST_S: Final = 1e-2
#: Values of a start by the solver's column.
StartValues: TypeAlias = Mapping[int, float]


def size_of(compiled: CompiledModel) -> dict[str, int]:
    """Return how many variables, whole ones among them, and rows a compiled program has."""
    return {
        "variables": len(compiled.columns),
        "integers": int(compiled.integer.sum()),
        "rows": len(compiled.rows),
    }


@final
@dataclass(frozen=True, slots=True)
class SolvedModel:
    """A program with what the solver made of it; ``seconds`` is what building, lowering and solving took."""

    program: RecourseProgram
    compiled: CompiledModel
    outcome: Outcome
    solver: str
    seconds: tuple[float, float, float]

    @property
    def is_curved(self) -> bool:
        """Whether the program has squares or cones."""
        return self.compiled.Q is not None or bool(self.compiled.cones) or bool(self.compiled.quadratics)


@final
@dataclass(frozen=True, slots=True)
class ProgramSolver:
    """Builds, compiles and solves one person's programs, as often as it is asked to.

    Parameters
    ----------
    prepared
        Model and settings.
    person
        Who is asked about.
    """

    prepared: Prepared
    person: Person

    def run(self, request: SolveRequest, seconds: float) -> SolvedProgram:
        """Solve for the best point that no barred one rules out, and once more where one of ``RETRIES`` has reason."""
        solve: Solve = self.once
        for retry in RETRIES:
            solve = functools.partial(retry, self.prepared.settings, self.person, solve)
        return solve(request, seconds)

    def once(self, request: SolveRequest, seconds: float) -> SolvedProgram:
        """State one request as a program and solve it, with the objective and the bound of the cost itself."""
        settings = self.prepared.settings
        cost = settings.cost.in_units(request.unit)
        solved = self.solve(
            lambda: self._program(request, cost),
            seconds,
            relative_gap=settings.relative_gap / 2,
            exact=request.exact,
            start=lambda program, compiled: self._start(program, compiled, request),
            pool=request.met + 1,
        )
        began = time.perf_counter()
        program = solved.program
        compiled = solved.compiled
        outcome = solved.outcome
        if request.met:
            met = decoded(program, compiled, outcome, request.met)
        else:
            met = ()
        if cost is not settings.cost:
            outcome = replace(
                outcome,
                objective=self._in_unit_of_cost(outcome.objective, cost),
                bound=self._in_unit_of_cost(outcome.bound, cost),
            )
        point = None
        cluster = None
        if outcome.x is not None:
            compiled.load(outcome.x)
            point = program.x.decoded()
            cluster = program.cluster
        build_s, lower_s, solve_s = solved.seconds
        return SolvedProgram(
            outcome=outcome,
            point=point,
            solver=solved.solver,
            build_s=build_s,
            lower_s=lower_s,
            solve_s=solve_s + time.perf_counter() - began,
            met=met,
            is_curved=solved.compiled.Q is not None or bool(solved.compiled.cones),
            cluster=cluster,
            size=size_of(compiled),
        )

    def solve(
        self,
        build: Callable[[], RecourseProgram],
        seconds: float,
        *,
        relative_gap: float,
        exact: bool = False,
        start: Callable[[RecourseProgram, CompiledModel], StartValues | None] | None = None,
        pool: int = 1,
    ) -> SolvedModel:
        """Build a program, compile it, and give it to the solver of the settings.

        Parameters
        ----------
        build
            States the program.
        seconds
            For all three together.
        relative_gap, exact
            When the solver may stop, and whether integers shall be as whole as it can make them.
        start
            Gives the values that the solver begins with, or None.
        pool
            How many points are kept.
        """
        settings = self.prepared.settings
        began = time.perf_counter()
        program = build()
        built = time.perf_counter()
        compiled = compile_model(program.model)
        lowered = time.perf_counter()
        solver = choose(settings.solver, compiled)
        options: dict[str, Any] = dict(solver.exact) if exact else {}
        options.update(settings.solver_options)
        session = GuardedSession(
            solver, compiled, threads=settings.threads, random_state=settings.random_state, options=options
        )
        outcome = session.solve(
            time_limit_s=max(seconds - (lowered - began), _LEAST_S),
            relative_gap=relative_gap,
            start=None if start is None else start(program, compiled),
            pool=pool,
        )
        seconds_by_phase = (built - began, lowered - built, time.perf_counter() - lowered)
        return SolvedModel(program, compiled, outcome, f"{solver.name} {session.version}", seconds_by_phase)

    def _program(self, request: SolveRequest, cost: AbstractCost) -> RecourseProgram:
        """State the program of a request, with the rows that keep barred and refused points out."""
        prepared = self.prepared
        settings = self.prepared.settings
        person = self.person
        reach = person.reach
        cutoff = None
        if request.budget is not None:
            cutoff = CostCutoff(prepared.space, person.factual, cost, cost.to_objective(request.budget))
            reach = cutoff.narrowed(reach)
        program = recourse_program(
            prepared.predictor,
            person.row,
            target=request.target or settings.target,
            cost=cost,
            rules=settings.rules,
            margin=request.margin,
            below=request.below,
            formulation=settings.formulation,
            reach=reach,
            cutoff=cutoff,
            all_cells=settings.n > 1 and (settings.diversity is None or settings.diversity.needs_all_cells),
        )
        for point, diversity in request.barred:
            program.embedded.place(point)
            diversity.exclude(program, point)
        if request.refused:
            leave_out(program, request.refused)
        return program

    def _in_unit_of_cost(self, objective: float | None, cost: AbstractCost) -> float | None:
        """Return an objective of the cost in some unit as one of the cost itself."""
        if objective is None or not math.isfinite(objective):
            return objective
        return self.prepared.settings.cost.to_objective(cost.from_objective(objective))

    def _start(self, program: RecourseProgram, compiled: CompiledModel, request: SolveRequest) -> StartValues | None:
        """Return the first start that the rows for every barred point let pass."""
        space = self.prepared.space
        factual = self.person.factual
        for _, point in request.starts:
            if all(diversity.surely(space, factual, earlier, point) for earlier, diversity in request.barred):
                program.x.place(point)
                program.embedded.place(point)
                return _values(program, compiled)
        return None


def _values(program: RecourseProgram, compiled: CompiledModel) -> StartValues:
    """Return the values that a program's variables hold, by the solver's column."""
    values: dict[int, float] = {}
    for variable in program.model.component_data_objects(pyo.Var):
        column = compiled.index.get(variable)
        if column is not None and variable.value is not None:
            values[column] = float(variable.value)
    return values


def decoded(
    program: RecourseProgram, compiled: CompiledModel, outcome: Outcome, n: int
) -> tuple[dict[str, float], ...]:
    """Return the best points that the solver met, no two with the same decisions, in coordinates."""
    points = []
    for x in met_points(compiled, outcome, _SPARE * n):
        compiled.load(x)
        points.append(program.x.decoded())
    return tuple(points)
