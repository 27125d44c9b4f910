"""One person's program: built, compiled, solved, and its point read back as integer decisions.

It is solved once more where there is reason to: squares or cones of another size than was expected, a reach without
bounds or of the wrong size, or a budget that is too small. Each reason is a function that is handed how to solve
(``solve``) and what is asked (``request``), and may call ``solve`` again with another request. :data:`RETRIES` lists
them from the innermost to the outermost: what one of them calls ``solve`` is the program with all those before it in
the list.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import pyomo.environ as pyo

from ceopt.formulations.columns.numeric import unit_of
from ceopt.formulations.constraints.diversity.diversity import leave_out
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.recourse_program import RecourseProgram, recourse_program
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.formulations.targets import Labels
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import UnboundedFeatureError
from ceopt.solvers.guarded_session import GuardedSession
from ceopt.solvers.pool.ranking import met_points
from ceopt.solvers.problem import Stop
from ceopt.solvers.registry import choose
from ceopt.tolerances import BOUND_ROUNDING, COST_NOISE, FINE_STEP

if TYPE_CHECKING:
    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.formulations.targets import Target
    from ceopt.search.prepare import Prepared
    from ceopt.settings import CheckedSettings
    from ceopt.solvers.problem import Outcome

# ==== Requests, people and what solving came to =======================================================================

Point: TypeAlias = Mapping[str, float]
#: A point in hand and its cost.
Start: TypeAlias = tuple[float, dict[str, float]]


@final
@dataclass(frozen=True, slots=True)
class Person:
    """Who is asked about: coordinates, the raw row, what each column may become, and the space that says so."""

    factual: dict[str, float]
    factual_frame: Any
    reach: Reach
    space: FeatureSpace


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
    is_hard_limit
        Whether nothing beyond the budget is wanted.
    exact
        Ask the solver for integers as whole as it can make them.
    n_incumbents
        How many points that the solver meets on its way are wanted beside the best; 0 for none.
    target
        The decision that is wanted, where it is not the one of the settings.
    unit
        Length in which squares and cones of the cost are counted.
    """

    margin: float | None
    below: float = 0.0
    barred: Sequence[tuple[Point, AbstractDiversity]] = ()
    refused: Sequence[Point] = ()
    starts: Sequence[Start] = ()
    budget: float | None = None
    is_hard_limit: bool = False
    exact: bool = False
    n_incumbents: int = 0
    target: Target | None = None
    unit: float = 1.0

    def with_budget_of(self, start: Start) -> SolveRequest:
        """Return a copy that begins at a start and whose budget is its cost."""
        return replace(self, budget=start[0], starts=[start, *self.starts])


@final
@dataclass(frozen=True, slots=True)
class SolvedProgram:
    """What one solve came to: the solver's outcome, its points read as integer decisions, and the seconds it took.

    Objective and bound are those of the cost itself, whatever unit the program had; ``is_curved`` says whether it had
    squares or cones; ``cluster`` in which hull of several the point lies; ``size`` how many variables, whole ones and
    rows the program had.
    """

    outcome: Outcome
    point: dict[str, float] | None
    solver: str
    build_s: float
    lower_s: float
    solve_s: float
    incumbents: tuple[dict[str, float], ...] = ()
    is_curved: bool = False
    cluster: Any = None
    size: Mapping[str, int] = field(default_factory=dict)

    def after(self, before: SolvedProgram) -> SolvedProgram:
        """Return this solve, or the one before it where only that has a point, with the seconds of both."""
        best = self
        if self.point is None and before.point is not None:
            best = before
        return replace(
            best,
            build_s=self.build_s + before.build_s,
            lower_s=self.lower_s + before.lower_s,
            solve_s=self.solve_s + before.solve_s,
        )

    def with_outcome(self, **changes: Any) -> SolvedProgram:
        """Return the same solve with some of its outcome replaced."""
        return replace(self, outcome=replace(self.outcome, **changes))


# ==== The program solver, and reasons to solve once more ==============================================================

#: Points that are decoded per answer wanted; some fail the check, and some decode to the same.
_SPARE: Final = 3
#: Seconds that a solver is given at least.
_LEAST_S: Final = 1e-2
#: Stops after which another run is tried, if there is time left.
_ENDED: Final = frozenset({Stop.OPTIMAL, Stop.FEASIBLE})
#: Values of a start by the solver's column.
StartValues: TypeAlias = Mapping[int, float]
#: Solves a request within so many seconds.
Solve: TypeAlias = Callable[[SolveRequest, float], SolvedProgram]
#: Solves a request within so many seconds by a way to solve it, once or more often.
Retry: TypeAlias = Callable[["CheckedSettings", Person, Solve, SolveRequest, float], SolvedProgram]


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
            pool=request.n_incumbents + 1,
        )
        began = time.perf_counter()
        program = solved.program
        compiled = solved.compiled
        outcome = solved.outcome
        incumbents: tuple[dict[str, float], ...] = ()
        if request.n_incumbents:
            incumbents = _decoded_incumbents(program, compiled, outcome, request.n_incumbents)
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
            incumbents=incumbents,
            is_curved=compiled.Q is not None or bool(compiled.cones),
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
        options: dict[str, Any] = {}
        if exact:
            options.update(solver.exact)
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
            person.factual_frame,
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


def _decoded_incumbents(
    program: RecourseProgram, compiled: CompiledModel, outcome: Outcome, n: int
) -> tuple[dict[str, float], ...]:
    """Return the best points that the solver met, no two with the same decisions, in coordinates."""
    points = []
    for x in met_points(compiled, outcome, _SPARE * n):
        compiled.load(x)
        points.append(program.x.decoded())
    return tuple(points)


# ---- reasons to solve a program once more ----------------------------------------------------------------------------
#: How often a program is solved at most for its unit, or for the size of its reach.
MOST_RUNS: Final = 3


def in_unit_of_the_point(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> SolvedProgram:
    """Solve, and where squares or cones turn out to be of a size that tolerances do not suit, again in its unit."""
    deadline = time.perf_counter() + seconds
    unit = unit_for(_expected_size(settings, person, request), 1.0)
    solved = solve(replace(request, unit=unit), seconds)
    for _ in range(MOST_RUNS - 1):
        if not solved.is_curved:
            return solved
        size = _size_met(settings, person, solved)
        better = unit_for(size, unit)
        left = deadline - time.perf_counter()
        if size is None or better == unit or left <= 0.0:
            return solved
        unit = better
        starts = [*_as_starts(settings, person, solved), *request.starts]
        try:
            solved = solve(replace(request, unit=unit, starts=starts), left).after(solved)
        except OutOfTimeError:
            return solved
    return solved


def within_cost_of_one_label(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> SolvedProgram:
    """Solve; where unbounded columns forbid it, first for a single one of the wanted labels.

    A program for one label needs no bounds on scores. The cost of its point bounds how far any better answer can be.
    """
    began = time.perf_counter()
    try:
        return solve(request, seconds)
    except UnboundedFeatureError:
        start = _start_of_one_label(settings, person, solve, request, seconds)
        if start is None or (request.budget is not None and request.budget <= start[0]):
            raise
        return solve(request.with_budget_of(start), max(seconds - (time.perf_counter() - began), _LEAST_S))


def in_smaller_reach(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> SolvedProgram:
    """Solve, and again within the cost of the point found where that shrinks the reach and so changes the units."""
    deadline = time.perf_counter() + seconds
    solved = solve(request, seconds)
    if request.n_incumbents:
        return solved
    for _ in range(MOST_RUNS - 1):
        left = deadline - time.perf_counter()
        if solved.point is None or left <= 0.0 or solved.outcome.status not in _ENDED:
            return solved
        cost = settings.cost.value(person.space, person.factual, solved.point)
        if cost <= 0.0:
            return solved
        is_open = solved.outcome.status is Stop.FEASIBLE
        reach = _reach_within(settings, person, cost)
        if not is_smaller(reach, _reach_within(settings, person, request.budget), person.space, is_open=is_open):
            return solved
        request = request.with_budget_of((cost, solved.point))
        nearer = solve(request, left)
        if nearer.point is None:
            return nearer.after(solved)
        bound = nearer.outcome.bound
        if bound is not None and nearer.outcome.status is not Stop.OPTIMAL:
            # Beyond the cost nothing was searched this time.
            nearer = nearer.with_outcome(bound=min(bound, settings.cost.to_objective(cost)))
        solved = nearer.after(solved)
    return solved


def beyond_the_budget(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> SolvedProgram:
    """Solve within the budget; where nothing is found there, or only what costs more, in the whole reach.

    That happens: a start may differ by less than answers must (a column that no row reads), or stand nearer to a tie
    than the program allows.
    """
    began = time.perf_counter()
    solved = solve(request, seconds)
    if request.budget is None or (request.is_hard_limit and solved.outcome.status is Stop.INFEASIBLE):
        return solved
    limit = settings.cost.to_objective(request.budget)
    if request.is_hard_limit or not _needs_more(settings, person, request.budget, solved):
        # Where the place of the answer may be beyond the budget, no more than the budget is proved.
        bound = solved.outcome.bound
        if bound is None or bound <= limit or solved.outcome.status is Stop.OPTIMAL:
            return solved
        return solved.with_outcome(bound=limit)
    left = max(seconds - (time.perf_counter() - began), _LEAST_S)
    try:
        without_budget = solve(replace(request, budget=None), left)
    except OutOfTimeError:  # what was found stays, proved up to the budget only
        return solved.with_outcome(status=Stop.TIME_LIMIT, bound=limit, message="The time limit is used up.")
    except UnboundedFeatureError as error:  # the same
        if solved.point is None:
            status = Stop.ERROR
        else:
            status = solved.outcome.status
        return solved.with_outcome(status=status, bound=limit, message=str(error))
    return without_budget.after(solved.with_outcome(status=Stop.FEASIBLE, bound=limit))


RETRIES: Final[tuple[Retry, ...]] = (
    in_unit_of_the_point,
    within_cost_of_one_label,
    in_smaller_reach,
    beyond_the_budget,
)


def _expected_size(settings: CheckedSettings, person: Person, request: SolveRequest) -> float | None:
    """Return the lengths' size that the point which set the budget has; without one, the budget; or None."""
    if settings.cost.curved:
        for cost, point in request.starts:
            if cost == request.budget:
                return settings.cost.size(person.space, person.factual, point)
    return request.budget


def _size_met(settings: CheckedSettings, person: Person, solved: SolvedProgram) -> float | None:
    """Return the lengths' size at the point found; where the solver failed, that at the farthest point; or None."""
    if solved.point is not None:
        return settings.cost.size(person.space, person.factual, solved.point)
    if solved.outcome.status in {Stop.UNBOUNDED, Stop.ERROR}:
        return settings.cost.size(person.space, person.factual, farthest(person.factual, person.reach))
    return None


def _as_starts(settings: CheckedSettings, person: Person, solved: SolvedProgram) -> list[Start]:
    if solved.point is None:
        return []
    return [(settings.cost.value(person.space, person.factual, solved.point), solved.point)]


def _start_of_one_label(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> Start | None:
    """Return a point that takes one of several wanted labels, and its cost."""
    target = settings.target
    if not isinstance(target, Labels) or len(target.wanted) == 1:
        return None
    for wanted in target.wanted:
        alone = Labels((wanted,), target.labels)
        solved = solve(replace(request, starts=(), budget=None, target=alone), seconds / len(target.wanted))
        if solved.point is not None:
            return settings.cost.value(person.space, person.factual, solved.point), solved.point
    return None


def _reach_within(settings: CheckedSettings, person: Person, budget: float | None) -> Reach:
    """Return what the columns may become within a budget."""
    if budget is None:
        return person.reach
    cost = settings.cost
    return CostCutoff(person.space, person.factual, cost, cost.to_objective(budget)).narrowed(person.reach)


def _needs_more(settings: CheckedSettings, person: Person, budget: float, solved: SolvedProgram) -> bool:
    """Tell whether the solver ended without a point within the budget."""
    if solved.outcome.status not in {Stop.OPTIMAL, Stop.INFEASIBLE}:
        return False  # the time is used up: what there is stays
    if solved.point is None:
        return True
    cost = settings.cost.value(person.space, person.factual, solved.point)
    return cost > budget * (1.0 + settings.relative_gap) + BOUND_ROUNDING


# ---- the unit of lengths, and the size of a reach --------------------------------------------------------------------
#: Lengths, in the unit, whose squares a tolerance of 1e-7 is right for.
_ORDINARY = (0.1, 1e3)
#: A column that was stated in a unit so many times too large, or of so many steps, was stated too coarsely.
_COARSE, _STEPS = 2.0**10, 2.0**23
#: Steps up to this size are ordinary, as those from FINE_STEP on are.
_LARGE_STEP = 1e7


def unit_for(size: float | None, unit: float) -> float:
    """Return the unit for lengths of some size: the one in use where it will do, else the nearest power of two."""
    if size is None or not COST_NOISE < size < math.inf or _ORDINARY[0] <= size / unit <= _ORDINARY[1]:
        return unit
    return 2.0 ** round(math.log2(size))


def farthest(factual: Mapping[str, float], reach: Reach) -> dict[str, float]:
    """Return the point of a reach that is farthest from the factual in each number with bounds."""
    far = dict(factual)
    for name, part in reach.items():
        if isinstance(part, Interval) and math.isfinite(part.lower) and math.isfinite(part.upper):
            if far[name] - part.lower > part.upper - far[name]:
                far[name] = part.lower
            else:
                far[name] = part.upper
    return far


def is_smaller(reach: Reach, before: Reach, space: FeatureSpace, *, is_open: bool) -> bool:
    """Tell whether a reach is so much smaller than the one before that a program over it is another one to a solver.

    Either the unit of a column is, or a column of more steps than a solver tells apart has a fraction of them: half
    where a gap ``is_open``.
    """
    for name, part in reach.items():
        was = before[name]
        if not isinstance(part, Interval) or not isinstance(was, Interval) or was.is_point:
            continue
        if part.step is None:
            if not 1.0 / _COARSE < unit_of(part, space[name]) / unit_of(was, space[name]) < _COARSE:
                return True
        elif (was.upper - was.lower) / part.step > _STEPS:
            least = 2.0 if is_open else _COARSE
            if (part.upper - part.lower) * least < was.upper - was.lower:
                return True
    return False


def has_extreme_numbers(reach: Reach, space: FeatureSpace) -> bool:
    """Tell whether a column may take values of a size, or as many, that a solver's tolerances do not suit."""
    for name, part in reach.items():
        if not isinstance(part, Interval) or part.is_point:
            continue
        if part.step is None:
            if unit_of(part, space[name]) != 1.0:
                return True
        else:
            is_ordinary = FINE_STEP <= part.step <= _LARGE_STEP
            if not is_ordinary or _STEPS < (part.upper - part.lower) / part.step < math.inf:
                return True
    return False
