"""One person's program: built, compiled, solved, and its point decoded to coordinates from the integer variables.

It is solved again where there is reason to: squares or cones of another size than was expected, a reach without bounds
or of the wrong size, or a budget that is too small. Each reason is a function that is given how to solve (``solve``)
and what is asked (``request``), and may call ``solve`` again with another request. :data:`RETRIES` lists them from the
innermost to the outermost; each wraps the ones before it in the list.

The points are checked elsewhere: ``ceopt/search/solve_check_repair.py``.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from ceopt.base.said import said
from ceopt.formulations.columns.numeric import unit_of
from ceopt.formulations.constraints.diversity.diversity import leave_out
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.recourse_program import RecourseProgram, recourse_program
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.formulations.targets import Labels
from ceopt.search.nearer import BoxSearch, Counterexamples, Point, Start, brought_nearer
from ceopt.solvers.branch_and_price import BranchAndPrice
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import (
    MissingLibraryError,
    MissingLicenceError,
    UnboundedFeatureError,
    UnsupportedProblemError,
)
from ceopt.solvers.guarded_session import GuardedSession, tightest
from ceopt.solvers.pool.ranking import met_points
from ceopt.solvers.problem import Outcome, Stop, relative_gap_of
from ceopt.solvers.registry import SOLVERS, choose, multiplies
from ceopt.solvers.tolerances import KEPT_SHARE
from ceopt.solvers.trust import contradicts, relative_violation, without_claims
from ceopt.tolerances import BOUND_ROUNDING, COST_NOISE, EQUAL_COSTS, FINE_STEP

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.formulations.targets import Target
    from ceopt.search.prepare import Prepared
    from ceopt.settings import CheckedSettings
    from ceopt.solvers.registry import Solver

# ==== Requests, people and results of solving =========================================================================


@final
@dataclass(frozen=True, slots=True)
class Person:
    """Who is asked about: coordinates, the reach of each column, and the feature space."""

    factual: dict[str, float]
    reach: Reach
    space: FeatureSpace


@final
@dataclass(frozen=True, slots=True)
class SolveRequest:
    """What one program is to be solved for.

    Parameters
    ----------
    margin
        Margin of the decision; None if trees break ties as the library does.
    below
        How far the decision row is relaxed if the margin is 0; points that the model then rejects are excluded one by
        one.
    barred
        Points to exclude, each with the diversity that the answer must have from it.
    refused
        Points that the user's own model rejected; all points with the same model input are excluded too.
    starts
        Known feasible points; the first that is not excluded warm-starts the solver.
    budget
        A cost at which a feasible point is expected, or None; the reach is first narrowed to it.
    is_hard_limit
        Whether the budget is a hard limit; else the whole reach is searched when nothing is found within it.
    exact
        Whether to use the solver's tightest integrality options.
    n_incumbents
        How many further points that the solver finds on its way are wanted beside the best; 0 for none.
    target
        The decision that is wanted, if it is not the one of the settings.
    unit
        Length in which squares and cones of the cost are counted.
    without_large
        Whether rules that make the program large (``is_large``) are left out.
    cuts
        What follows from counterexamples, by the place of a rule that is stated by that alone.
    stand_in
        Place of a rule whose stand-in is embedded instead of the model and the rule.
    points
        Which points have a weight, by the place of a rule that has many.
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
    without_large: bool = False
    cuts: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    stand_in: int | None = None
    points: Mapping[int, Any] = field(default_factory=dict)

    def with_budget_of(self, start: Start) -> SolveRequest:
        """Return the request with a start added and its cost as the budget."""
        return replace(self, budget=start[0], starts=[start, *self.starts])


@final
@dataclass(frozen=True, slots=True)
class SolvedProgram:
    """A solved request: the solver's outcome, its points decoded to coordinates, and the seconds of each phase.

    Parameters
    ----------
    outcome
        As the solver reports it, with objective and bound in the cost's own unit.
    point
        The best point, or None.
    solver
        Name and version.
    build_s, lower_s, solve_s
        Seconds for building, compiling and solving.
    incumbents
        Further points that were asked for.
    is_curved
        Whether the program had squares or cones.
    cluster
        In which hull of several the point lies.
    size
        How many variables, integers and rows the program had.
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
        """Return this solve, or the one before it if only that has a point, with the seconds of both."""
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
        """Return this solve with some of its outcome replaced."""
        return replace(self, outcome=replace(self.outcome, **changes))


# ==== The program solver, and reasons to solve again ==================================================================

#: What the stand-in of a rule is to decide.
IS_KEPT: Final = Labels((1,), (False, True))
#: Solver points decoded per answer wanted: some fail the check, and several may decode to one row.
_SPARE: Final = 3
#: What to do where a product in digits is too large.
_FOR_PRODUCTS: Final = "Use solver='scip', make a step coarser, or count in larger units."
#: Seconds of a second run of a program of products, at most: most take a fraction of one.
_AGAIN_S: Final = 5.0
#: Seconds that a solver is given at least.
_LEAST_S: Final = 1e-2
#: Stops with a feasible point, after which another run is worthwhile.
_WITH_POINT: Final = frozenset({Stop.OPTIMAL, Stop.FEASIBLE})
#: Values of a start by the solver's column.
StartValues: TypeAlias = Mapping[int, float]
#: Solves a request within so many seconds.
Solve: TypeAlias = Callable[[SolveRequest, float], SolvedProgram]
#: Wraps a ``Solve``: may call it several times within the seconds.
Retry: TypeAlias = Callable[["CheckedSettings", Person, Solve, SolveRequest, float], SolvedProgram]


def size_of(compiled: CompiledModel) -> dict[str, int]:
    """Return how many variables, integers among them, and rows a compiled program has."""
    return {
        "variables": len(compiled.columns),
        "integers": int(compiled.integer.sum()),
        "rows": len(compiled.rows),
    }


def is_light(program: RecourseProgram, compiled: CompiledModel) -> bool:
    """Whether a program with a start is best left to branching: trees, and nothing large, curved or multiplied."""
    is_linear = compiled.Q is None and not compiled.cones and not compiled.quadratics
    is_small = not any(rule.is_large for rule, _ in program.rules)
    return program.embedded.predictor.is_trees and is_linear and is_small and not program.x.expands_products


@final
@dataclass(frozen=True, slots=True)
class RawSolve:
    """A compiled program and the solver's outcome, in its own units; ``seconds``: to build, compile and solve."""

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
        """Solve a request, and again for each reason in ``RETRIES`` that applies."""
        solve: Solve = self.once
        for retry in RETRIES:
            solve = functools.partial(retry, self.prepared.settings, self.person, solve)
        return solve(request, seconds)

    def once(self, request: SolveRequest, seconds: float) -> SolvedProgram:
        """Build and solve the program of a request once; return objective and bound in the cost's own unit."""
        settings = self.prepared.settings
        cost = settings.cost.in_units(request.unit)
        began = time.perf_counter()
        solved = self._with_few_points(request, cost, seconds)
        if solved is None:
            left = max(seconds - (time.perf_counter() - began), _LEAST_S)
            solved = self._with_all_points(request, cost, left)
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

    def _with_all_points(self, request: SolveRequest, cost: AbstractCost, seconds: float) -> RawSolve:
        return self.solve(
            lambda: self._program(request, cost),
            seconds,
            relative_gap=self.prepared.settings.relative_gap / 2,
            exact=request.exact,
            start=lambda program, compiled: self._start(program, compiled, request),
            pool=request.n_incumbents + 1,
        )

    def _with_few_points(self, request: SolveRequest, cost: AbstractCost, seconds: float) -> RawSolve | None:
        """Solve a program of which a rule's many points are priced; None where another way has to be taken."""
        settings = self.prepared.settings
        firsts = [(place, rule.first_points(self.prepared.space)) for place, rule in enumerate(settings.rules)]
        firsts = [(place, first) for place, first in firsts if first is not None]
        takes_highs = settings.solver in {"auto", "highs"} and not settings.solver_options and not request.exact
        if len(firsts) != 1 or request.n_incumbents or not takes_highs or not self.prepared.predictor.is_linear:
            return None
        ((place, first),) = firsts
        began = time.perf_counter()
        program = self._program(replace(request, points={place: first}), cost)
        built = time.perf_counter()
        compiled = compile_model(program.model)
        more = _left_out(program.rules[place][1], compiled)
        if more is None or not BranchAndPrice.takes(compiled):
            return None
        compiled_at = time.perf_counter()
        gap = settings.relative_gap / 2
        search = BranchAndPrice(compiled, more, relative_gap=gap, deadline=began + seconds)
        outcome = search.run()
        if outcome is None:
            return None
        seconds_by_phase = (built - began, compiled_at - built, time.perf_counter() - compiled_at)
        return RawSolve(program, compiled, outcome, f"highs {search.version}", seconds_by_phase)

    def solve(
        self,
        build: Callable[[], RecourseProgram],
        seconds: float,
        *,
        relative_gap: float,
        exact: bool = False,
        start: Callable[[RecourseProgram, CompiledModel], StartValues | None] | None = None,
        pool: int = 1,
    ) -> RawSolve:
        """Build a program, compile it, and solve it with the solver of the settings.

        Parameters
        ----------
        build
            Returns the program.
        seconds
            For all three together.
        relative_gap, exact
            The gap to stop at, and whether to use the solver's tightest integrality options.
        start
            Returns the values that the solver starts from, or None.
        pool
            How many points are kept.
        """
        settings = self.prepared.settings
        began = time.perf_counter()
        program = build()
        built = time.perf_counter()
        compiled = compile_model(program.model)
        compiled_at = time.perf_counter()
        solver = _chosen(settings.solver, program, compiled)
        values = None if start is None else start(program, compiled)
        options: dict[str, Any] = {}
        if values is not None and pool == 1 and is_light(program, compiled):
            options.update(solver.light)
        if any(rule.is_large for rule, _ in program.rules):
            options.update(solver.large)
        if exact:
            options.update(tightest(solver, compiled))
        options.update(settings.solver_options)
        session = GuardedSession(
            solver, compiled, threads=settings.threads, random_state=settings.random_state, options=options
        )
        outcome = session.solve(
            time_limit_s=max(seconds - (compiled_at - began), _LEAST_S),
            relative_gap=relative_gap,
            start=values,
            pool=pool,
        )
        if program.x.expands_products and solver.name == "highs":
            left = min(_AGAIN_S, seconds - (time.perf_counter() - began))
            outcome = self._held_against_another_run(outcome, compiled, options, relative_gap, left)
        if program.x.unresolved:
            who = program.x.unresolved[0]
            outcome = without_claims(
                outcome, f"{who} has numbers that {solver.name} does not tell apart: nothing is proved. {_FOR_PRODUCTS}"
            )
        seconds_by_phase = (built - began, compiled_at - built, time.perf_counter() - compiled_at)
        return RawSolve(program, compiled, outcome, f"{solver.name} {session.version}", seconds_by_phase)

    def _held_against_another_run(
        self, outcome: Outcome, compiled: CompiledModel, options: Mapping[str, Any], relative_gap: float, seconds: float
    ) -> Outcome:
        """Return what HiGHS says of a program of products, or what it says without presolve where that refutes it.

        HiGHS 1.15.1 called answers under 1 of 1,600 random ratios optimal that were up to 5 % too dear, and found the
        optimum without presolve.
        """
        if outcome.status not in {Stop.OPTIMAL, Stop.INFEASIBLE} or "presolve" in options or seconds <= 0.0:
            return outcome
        settings = self.prepared.settings
        again = GuardedSession(
            SOLVERS["highs"], compiled, threads=settings.threads, random_state=settings.random_state,
            options={**options, "presolve": "off"},
        )  # fmt: skip
        second = again.solve(time_limit_s=seconds, relative_gap=relative_gap)
        if second.x is None or relative_violation(compiled, second.x) > KEPT_SHARE:
            return outcome
        assert second.objective is not None  # noqa: S101 - a point has one
        if outcome.objective is None or contradicts(outcome.objective, second.objective, compiled, second.x):
            return second
        return outcome

    def _program(self, request: SolveRequest, cost: AbstractCost) -> RecourseProgram:
        """Build the program of a request, with rows that exclude what is barred or too like it, and what is refused."""
        prepared = self.prepared
        settings = prepared.settings
        person = self.person
        reach = person.reach
        cutoff = None
        if request.budget is not None:
            cutoff = CostCutoff(prepared.space, person.factual, cost, cost.to_objective(request.budget))
            reach = cutoff.narrowed(reach)
        predictor = prepared.predictor
        target = request.target or settings.target
        if request.stand_in is not None:
            (predictor,) = settings.rules[request.stand_in].stand_ins(reach)
            target = IS_KEPT
        program = recourse_program(
            predictor,
            prepared.space.frame([person.factual]),
            target=target,
            cost=cost,
            rules=_rules_of(settings, request),
            margin=request.margin,
            below=request.below,
            formulation=settings.formulation,
            reach=reach,
            cutoff=cutoff,
            all_cells=settings.n > 1 and (settings.diversity is None or settings.diversity.needs_all_cells),
            products=multiplies(settings.solver),
            decides_only=True,
            about=(prepared.predictor, settings.target),
        )
        for point, diversity in request.barred:
            program.embedded.place(point)
            diversity.exclude(program, point)
        leave_out(program, request.refused)
        return program

    def _in_unit_of_cost(self, objective: float | None, cost: AbstractCost) -> float | None:
        """Convert an objective from the unit of the program to that of the cost."""
        if objective is None or not math.isfinite(objective):
            return objective
        return self.prepared.settings.cost.to_objective(cost.from_objective(objective))

    def _start(self, program: RecourseProgram, compiled: CompiledModel, request: SolveRequest) -> StartValues | None:
        """Set the variables to the first start that every diversity row admits, and return their values.

        None if there is no such start.
        """
        space = self.prepared.space
        factual = self.person.factual
        for _, point in request.starts:
            if all(diversity.surely(space, factual, earlier, point) for earlier, diversity in request.barred):
                program.x.place(point)
                program.embedded.place(point)
                return _values(program, compiled)
        return None


def _rules_of(settings: CheckedSettings, request: SolveRequest) -> list[AbstractRule]:
    """Return the rules of a program: without large ones where that is asked for, and some as far as cuts state them."""
    rules = []
    for place, rule in enumerate(settings.rules):
        if (request.without_large and rule.is_large) or place == request.stand_in:
            continue
        own = rule.with_cuts(request.cuts[place]) if place in request.cuts else rule
        rules.append(own.with_points(request.points[place]) if place in request.points else own)
    return rules


def _left_out(block: Any, compiled: CompiledModel) -> Any:
    """Return the columns of the weights that are left out of a block, (m, N); None if a row of theirs is out too."""
    rows = {id(row): place for place, row in enumerate(compiled.rows)}
    places, by_row = block.left_out
    own = {rows[id(block.share["all"])]: np.ones(len(places))}
    for key, coefficients in by_row.items():
        if key not in block.point:
            return None
        own[rows[id(block.point[key])]] = coefficients
    parts = sp.csr_array(np.array(list(own.values())))
    place = sp.csr_array((np.ones(len(own)), (list(own), np.arange(len(own)))), shape=(len(rows), len(own)))
    return place @ parts


def _chosen(name: str, program: RecourseProgram, compiled: CompiledModel) -> Solver:
    """Return the solver of a program; where there is none, and products are why, say so and what would do."""
    try:
        return choose(name, compiled)
    except (UnsupportedProblemError, MissingLibraryError, MissingLicenceError) as error:
        if not program.x.multiplied:
            raise
        who, columns = program.x.multiplied[0]
        listed = " and ".join(map(repr, columns)) if len(columns) > 1 else f"{columns[0]!r} with itself"
        then = f"space.update({columns[-1]!r}, step=..., lower=..., upper=...)"
        raise type(error)(
            f"{error} {who} multiplies {listed}, which have no steps and bounds: with some for one of them, as by "
            f"{then}, any solver will do."
        ) from error


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
    """Return the best points that the solver found, decoded; several may be the same row.

    Up to ``_SPARE`` points per answer wanted, with distinct integer values.
    """
    points = []
    for x in met_points(compiled, outcome, _SPARE * n):
        compiled.load(x)
        points.append(program.x.decoded())
    return tuple(points)


# ---- reasons to solve a program again --------------------------------------------------------------------------------
#: Most solves for one reason (unit of lengths, or size of the reach).
MOST_RUNS: Final = 3


#: Share of the time that the stricter rows of rules may take where a proof is wanted.
_STRICTER_SHARE: Final = 0.5
#: Share of the time of a search that the bound of programs without some rules may take, and seconds in any case.
_REST_SHARE: Final = 1.0
_LEAST_REST_S: Final = 0.5
#: Programs with what follows from counterexamples that are solved where no proof is asked for.
_PROGRAMS: Final = 8


def with_cuts_from_counterexamples(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> SolvedProgram:
    """Solve; where the rows of a rule are stricter than the rule, or none are known, as far as it has to be known.

    A point is branched for, and where that leaves something open, stricter rows are solved: what they admit keeps the
    rule, so their optimum is a point that was found, and no more. Then the rule is left out, and what follows from each
    optimum that breaks it is put in, until one keeps it: all that was left out admits more, so that its bounds hold.
    That goes on to the end where a proof is wanted, where nothing was found, or where a rule has no other rows.
    """
    lazy = {place: rule for place, rule in enumerate(settings.rules) if rule.stated != "exactly"}
    if not lazy or (request.without_large and all(rule.is_large for rule in lazy.values())):
        return solve(request, seconds)
    deadline = time.perf_counter() + seconds
    stated = {rule.stated for rule in lazy.values()}
    learned = Counterexamples(lazy)
    known: SolvedProgram | None = None
    if "by_cuts" not in stated:
        known, is_complete = _branched(settings, person, request, learned, deadline)
        if not is_complete:
            share = _STRICTER_SHARE if "proved" in stated else 1.0
            stricter = _within(settings, person, request, known)
            stricter = replace(stricter, stand_in=_that_stands_in(lazy, person, request))
            found = _without_proof(solve(stricter, max(share * (deadline - time.perf_counter()), _LEAST_S)))
            is_interrupted = found.outcome.status is Stop.INTERRUPTED
            if found.point is not None and not is_interrupted and stricter.stand_in is not None:
                found = _nearer(settings, person, stricter, found, deadline)
            known = _nearest(settings, person, known, found)
            if is_interrupted:
                return known
        request = _within(settings, person, request, known)
        is_empty = known.point is None and known.outcome.status is Stop.INFEASIBLE
        if not (is_empty or "proved" in stated):
            return _with_bound(learned, person, solve, request, known=known, deadline=deadline)
    return _by_cuts(learned, person, solve, request, known=known, deadline=deadline)


def _branched(
    settings: CheckedSettings, person: Person, request: SolveRequest, learned: Counterexamples, deadline: float
) -> tuple[SolvedProgram, bool]:
    """Branch for a point that keeps the rules; return what was found, and whether nothing cheaper seems to be left."""
    began = time.perf_counter()
    found = SolvedProgram(Outcome(status=Stop.FEASIBLE, message=_STRICTER), None, "", 0.0, 0.0, 0.0)
    if not _asks_for_more(request) and not request.refused:
        for place, rule in learned.rules.items():
            values = rule.values_beside(person.reach) if rule.implies_target else None
            if values is None:
                continue

            def is_wanted(point: Point) -> bool:
                return all(
                    diversity.surely(person.space, person.factual, earlier, point)
                    for earlier, diversity in request.barred
                )

            search = BoxSearch(
                settings, person, place, values=values, learned=learned, is_wanted=is_wanted, deadline=deadline
            )
            if request.budget is not None:
                search.limit = settings.cost.to_objective(request.budget) * (1.0 + EQUAL_COSTS)
            is_complete = search.run(request.starts)
            if search.best is not None:
                found = replace(found, point=search.best[1])
            elif is_complete:
                found = found.with_outcome(status=Stop.INFEASIBLE)
            return replace(found, solve_s=time.perf_counter() - began), is_complete
    return found, False


def _within(settings: CheckedSettings, person: Person, request: SolveRequest, known: SolvedProgram) -> SolveRequest:
    """Return a request that starts at a known point, within its cost where that is less than what it was."""
    if known.point is None:
        return request
    start: Start = (settings.cost.value(person.space, person.factual, known.point), known.point)
    return request.with_budget_of(start) if request.budget is None or start[0] < request.budget else request


def _nearest(settings: CheckedSettings, person: Person, known: SolvedProgram, found: SolvedProgram) -> SolvedProgram:
    """Return what stricter rows found, with a point known before where that costs less."""
    found = _with_seconds_of(known, found)
    if known.point is None:
        return found
    if found.point is not None:
        costs = [settings.cost.value(person.space, person.factual, point) for point in (known.point, found.point)]
        if costs[1] <= costs[0]:
            return found
    status = Stop.INTERRUPTED if found.outcome.status is Stop.INTERRUPTED else Stop.FEASIBLE
    return replace(found.with_outcome(status=status, objective=None, message=_STRICTER), point=known.point)


def _nearer(
    settings: CheckedSettings, person: Person, request: SolveRequest, known: SolvedProgram, deadline: float
) -> SolvedProgram:
    """Return what stricter rows found, or something nearer that keeps the rules."""
    assert known.point is not None and request.stand_in is not None  # noqa: S101, PT018 - the caller has asked
    began = time.perf_counter()
    found = brought_nearer(settings, person, request.stand_in, known.point, deadline)
    return replace(known, point=found, solve_s=known.solve_s + time.perf_counter() - began).with_outcome(objective=None)


def _by_cuts(
    learned: Counterexamples,
    person: Person,
    solve: Solve,
    request: SolveRequest,
    *,
    known: SolvedProgram | None,
    deadline: float,
) -> SolvedProgram:
    """Solve without some rules, and with what follows from each optimum that breaks one, until one keeps them."""
    before = known
    while True:
        left = deadline - time.perf_counter()
        if left <= 0.0 and before is not None:
            return _in_time(before, known)
        solved = solve(replace(request, cuts=dict(learned.cuts)), max(left, _LEAST_S))
        if before is not None:
            solved = _with_seconds_of(before, solved)
        if solved.point is None:
            if known is not None and known.point is not None:  # there is something, whatever a solver says
                return _in_time(solved, known)
            return solved
        is_broken, has_more = learned.add(person.space, solved.point)
        if not is_broken:
            return solved
        if not has_more or solved.outcome.status is Stop.INTERRUPTED:  # it breaks its rows, within tolerance
            return _in_time(solved, known)
        before = solved


def _with_bound(
    learned: Counterexamples,
    person: Person,
    solve: Solve,
    request: SolveRequest,
    *,
    known: SolvedProgram,
    deadline: float,
) -> SolvedProgram:
    """Return what is known, with the bound of a few programs without some rules; or an optimum that keeps them."""
    if known.point is None:
        return known
    took_s = known.build_s + known.lower_s + known.solve_s
    deadline = min(deadline, time.perf_counter() + max(_REST_SHARE * took_s, _LEAST_REST_S))
    bound: float | None = None
    last = known
    for _ in range(_PROGRAMS):
        left = deadline - time.perf_counter()
        if left <= 0.0:
            break
        solved = solve(replace(request, cuts=dict(learned.cuts)), left)
        last = _with_seconds_of(last, solved)
        if solved.outcome.bound is not None and solved.outcome.status is not Stop.INFEASIBLE:
            bound = solved.outcome.bound if bound is None else max(bound, solved.outcome.bound)
        if solved.point is None or solved.outcome.status is not Stop.OPTIMAL:
            break
        is_broken, has_more = learned.add(person.space, solved.point)
        if not is_broken:
            return last
        if not has_more:
            break
    return _in_time(last.with_outcome(bound=bound), known)


def _that_stands_in(lazy: Mapping[int, AbstractRule], person: Person, request: SolveRequest) -> int | None:
    """Return the place of a rule that a model states alone, and the decision with it; None where there is none.

    Two embedded forests take several times as long as one.
    """
    if _asks_for_more(request) or request.barred or request.refused:
        return None
    for place, rule in lazy.items():
        if rule.implies_target and len(rule.stand_ins(person.reach)) == 1:
            return place
    return None


def _asks_for_more(request: SolveRequest) -> bool:
    """Whether the decision alone, and one point, are not enough."""
    return request.margin is not None or request.n_incumbents > 0 or request.target is not None


def _without_proof(solved: SolvedProgram) -> SolvedProgram:
    """Return what came of stricter rows, of which no bound holds without them."""
    status = solved.outcome.status
    if status is Stop.OPTIMAL:
        status = Stop.FEASIBLE
    return solved.with_outcome(status=status, bound=None, message=solved.outcome.message or _STRICTER)


#: Why what was found by stricter rows, or without a solver, is not called an optimum.
_STRICTER: Final = said("That nothing cheaper keeps the rules is not proved.", "stricter_rows")


def _in_time(last: SolvedProgram, known: SolvedProgram | None) -> SolvedProgram:
    """Return what was found by stricter rows, or else nothing, with the bound of the last program without them."""
    bound = None if last.outcome.status is Stop.INFEASIBLE else last.outcome.bound
    if known is not None and known.point is not None:
        found = replace(_with_seconds_of(last, known, both=False), solver=last.solver, size=last.size)
        return found.with_outcome(bound=bound)
    status = last.outcome.status
    if status is not Stop.INTERRUPTED:
        status = Stop.TIME_LIMIT
    return replace(last.with_outcome(status=status, objective=None, x=None, message="time limit"), point=None)


def _with_seconds_of(before: SolvedProgram, solved: SolvedProgram, *, both: bool = True) -> SolvedProgram:
    """Return a solve with the seconds of another one, or of both."""
    more = (solved.build_s, solved.lower_s, solved.solve_s) if both else (0.0, 0.0, 0.0)
    return replace(
        solved, build_s=before.build_s + more[0], lower_s=before.lower_s + more[1], solve_s=before.solve_s + more[2]
    )


#: Share of the time that a program without its large rules may take.
_WITHOUT_SHARE: Final = 0.3


def without_large_rules(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> SolvedProgram:
    """Solve without the rules that make the program large, and with them if the optimum breaks one.

    Without them more is allowed: an optimum that keeps them is one with them too, so is a known point at the cost that
    is proved to be least, and where there is nothing there is nothing with them.
    """
    large = [rule for rule in settings.rules if rule.is_large]
    if not large or request.n_incumbents or any(diversity.needs_all_cells for _, diversity in request.barred):
        return solve(request, seconds)  # cells that differ by a rule's own cuts are told apart with the rule alone
    began = time.perf_counter()
    first = solve(replace(request, without_large=True), _WITHOUT_SHARE * seconds)
    if first.outcome.status in {Stop.INFEASIBLE, Stop.INTERRUPTED} and first.point is None:
        return first

    def is_kept(point: Point) -> bool:
        return all(rule.violation(person.space, person.factual, point) <= 0.0 for rule in large)

    if first.point is not None and not is_kept(first.point):
        first = _at_the_bound(settings, person, request, first, is_kept)
    if first.point is not None and first.outcome.status in {Stop.OPTIMAL, Stop.INTERRUPTED}:
        return first
    left = max(seconds - (time.perf_counter() - began), _LEAST_S)
    second = solve(request, left)
    bound = first.outcome.bound
    if second.outcome.status is Stop.OPTIMAL or bound is None or not math.isfinite(bound):
        return second.after(first)
    known = second.outcome.bound
    return second.with_outcome(bound=bound if known is None else max(known, bound)).after(first)


def _at_the_bound(
    settings: CheckedSettings,
    person: Person,
    request: SolveRequest,
    solved: SolvedProgram,
    is_kept: Callable[[Point], bool],
) -> SolvedProgram:
    """Return the solve with a known point that keeps all rules and costs what is proved to be least, or with none."""
    bound = solved.outcome.bound
    if solved.outcome.status is Stop.OPTIMAL and bound is not None and solved.cluster is None:
        for cost, point in request.starts:
            objective = settings.cost.to_objective(cost)
            is_other = all(
                diversity.surely(person.space, person.factual, earlier, point) for earlier, diversity in request.barred
            )
            gap = relative_gap_of(objective, bound)
            is_least = objective <= bound or (gap is not None and gap <= settings.relative_gap / 2)
            if is_least and is_other and is_kept(point):
                return replace(solved.with_outcome(objective=objective), point=dict(point))
    return replace(solved, point=None)


def in_unit_of_the_point(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> SolvedProgram:
    """Solve, and solve again in another length unit if the squares or cones at the point found are badly scaled."""
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
    """Solve; if a program for several labels needs bounds that a column lacks, solve for single labels first.

    That needs no bounds on scores, and the cost of its point then limits the reach.
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
    """Solve, and again with the found point's cost as budget if the narrower reach changes how columns are scaled."""
    deadline = time.perf_counter() + seconds
    solved = solve(request, seconds)
    if request.n_incumbents:
        return solved
    for _ in range(MOST_RUNS - 1):
        left = deadline - time.perf_counter()
        if solved.point is None or left <= 0.0 or solved.outcome.status not in _WITH_POINT:
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
            # This run searched only up to the cost, so it proves no more than that.
            nearer = nearer.with_outcome(bound=min(bound, settings.cost.to_objective(cost)))
        solved = nearer.after(solved)
    return solved


def beyond_the_budget(
    settings: CheckedSettings, person: Person, solve: Solve, request: SolveRequest, seconds: float
) -> SolvedProgram:
    """Solve within the budget, then in the whole reach if no point is found within it.

    The start that set the budget may itself be infeasible for the program: it differs from earlier answers only in a
    column that no row reads, or lies closer to a tie than the margin.
    """
    began = time.perf_counter()
    solved = solve(request, seconds)
    if request.budget is None:
        return solved
    if request.is_hard_limit and solved.outcome.status is Stop.INFEASIBLE:  # nothing beyond the budget was wanted
        return solved
    limit = settings.cost.to_objective(request.budget)
    if request.is_hard_limit or not _missed_the_budget(settings, person, request.budget, solved):
        # The optimum may lie beyond the budget, which was not searched, so the bound is at most the budget.
        bound = solved.outcome.bound
        if bound is None or bound <= limit or solved.outcome.status is Stop.OPTIMAL:
            return solved
        return solved.with_outcome(bound=limit)
    left = max(seconds - (time.perf_counter() - began), _LEAST_S)
    # If that fails, keep the first result: nothing beyond the budget was searched.
    try:
        without_budget = solve(replace(request, budget=None), left)
    except OutOfTimeError:
        return solved.with_outcome(status=Stop.TIME_LIMIT, bound=limit, message="The time limit is used up.")
    except UnboundedFeatureError as error:
        status = solved.outcome.status
        if solved.point is None:
            status = Stop.ERROR
        return solved.with_outcome(status=status, bound=limit, message=str(error))
    return without_budget.after(solved.with_outcome(status=Stop.FEASIBLE, bound=limit))


RETRIES: Final[tuple[Retry, ...]] = (
    with_cuts_from_counterexamples,
    without_large_rules,
    in_unit_of_the_point,
    within_cost_of_one_label,
    in_smaller_reach,
    beyond_the_budget,
)


def _expected_size(settings: CheckedSettings, person: Person, request: SolveRequest) -> float | None:
    """Return the typical length at the start that set the budget; else the budget, which may be None."""
    if settings.cost.curved:
        for cost, point in request.starts:
            if cost == request.budget:
                return settings.cost.size(person.space, person.factual, point)
    return request.budget


def _size_met(settings: CheckedSettings, person: Person, solved: SolvedProgram) -> float | None:
    """Return the typical length at the point found, or at the farthest point if the solver failed; else None."""
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
    """Return the cost of a point that has one of several wanted labels, and the point; None if none is found."""
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
    """Return the reach within a budget."""
    if budget is None:
        return person.reach
    cost = settings.cost
    return CostCutoff(person.space, person.factual, cost, cost.to_objective(budget)).narrowed(person.reach)


def _missed_the_budget(settings: CheckedSettings, person: Person, budget: float, solved: SolvedProgram) -> bool:
    """Return whether the solver proved its result and has no point within the budget."""
    if solved.outcome.status not in {Stop.OPTIMAL, Stop.INFEASIBLE}:
        return False  # stopped, or failed, without a proof: keep what it found
    if solved.point is None:
        return True
    cost = settings.cost.value(person.space, person.factual, solved.point)
    return cost > budget * (1.0 + settings.relative_gap) + BOUND_ROUNDING


# ---- the unit of lengths, and the size of a reach --------------------------------------------------------------------
#: Range of lengths, in the program's unit, whose squares a tolerance of 1e-7 resolves.
_ORDINARY = (0.1, 1e3)
#: Ratio of two units from which a column counts as rescaled.
_COARSE = 2.0**10
#: Steps beyond which a solver cannot tell neighbouring values apart.
_RESOLVABLE_STEPS = 2.0**23
#: How many times fewer of so many steps make another program, where the first was solved to its end.
_FEWER_STEPS = 2.0**10
#: Sizes of a step from FINE_STEP up to this one are ordinary.
_LARGE_STEP = 1e7


def unit_for(size: float | None, unit: float) -> float:
    """Return the unit for lengths of some size: the one in use if it suits, else the nearest power of two."""
    if size is None or not COST_NOISE < size < math.inf:  # no usable size
        return unit
    is_ordinary = _ORDINARY[0] <= size / unit <= _ORDINARY[1]
    if is_ordinary:
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
    """Return whether narrowing the reach changes the numerics enough to solve again.

    The unit of a continuous column changes by 2**10 or more, or a column of more than 2**23 steps keeps less than
    1/2**10 of them; less than half if the solver left a gap (``is_open``).
    """
    fewer = 2.0 if is_open else _FEWER_STEPS
    for name, part in reach.items():
        was = before[name]
        if not isinstance(part, Interval) or not isinstance(was, Interval) or was.is_point:
            continue
        if part.step is None:
            ratio = unit_of(part, space[name]) / unit_of(was, space[name])
            is_other = not 1.0 / _COARSE < ratio < _COARSE
        else:
            width = was.upper - was.lower
            is_other = width / part.step > _RESOLVABLE_STEPS and (part.upper - part.lower) * fewer < width
        if is_other:
            return True
    return False


def has_extreme_numbers(reach: Reach, space: FeatureSpace) -> bool:
    """Return whether some column's scale, step or number of steps is unsuitable for a solver's tolerances."""
    for name, part in reach.items():
        if not isinstance(part, Interval) or part.is_point:
            continue
        if part.step is None:
            if unit_of(part, space[name]) != 1.0:
                return True
        else:
            is_ordinary = FINE_STEP <= part.step <= _LARGE_STEP
            if not is_ordinary or _RESOLVABLE_STEPS < (part.upper - part.lower) / part.step < math.inf:
                return True
    return False
