"""From one person's row to verified answers: start, program, solver, decoded values, check, repair.

The order is fixed. What the solver returns is read as integer decisions, rebuilt as floats, and handed to the user's
own model and to the rules in plain numbers; only what passes is an answer.
"""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from ceopt.formulations.constraints.diversity import Diversity, exclude
from ceopt.formulations.predictors.embed import formulation_of
from ceopt.formulations.predictors.outcome import checked_margin, require_probability, slack
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.read import read
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.recourse import RecourseProgram, recourse_program
from ceopt.formulations.space.reach import Interval, Levels, Reach, reach_of, removed_by
from ceopt.formulations.targets import Labels, ProbabilityOf
from ceopt.presolve import too_far, within_budget
from ceopt.referee import Referee
from ceopt.solution import Counterfactual, SolutionSet
from ceopt.solvers.compiled import CompiledModel, compile_model
from ceopt.solvers.errors import InvalidValueError, UnboundedFeatureError
from ceopt.solvers.problem import Outcome
from ceopt.solvers.problem import Status as Stop
from ceopt.solvers.registry import choose
from ceopt.start import StartSearch
from ceopt.status import Status
from ceopt.verify import Check, broken_rules

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.formulations.targets import Target
    from ceopt.settings import CheckedSettings, Settings

__all__ = ["Prepared", "prepare", "search"]

#: Times that a failed check may send the program back to the solver, for one answer.
_REPAIRS = 6
#: Share of the time that the search for a start may take, and its cap in seconds.
_START_SHARE, _START_CAP_S = 0.1, 2.0
#: How many rows of the data the search for a start looks at.
_START_ROWS = 2000


@final
@dataclass(frozen=True, slots=True)
class Prepared:
    """What does not depend on the person: the model as read, the user's own model, checked settings, favoured data."""

    predictor: Predictor
    referee: Referee
    space: FeatureSpace
    settings: CheckedSettings
    favoured: np.ndarray | None
    read_s: float


def prepare(model: Any, space: FeatureSpace, settings: Settings, *, data: pd.DataFrame | None = None) -> Prepared:
    """Read the model and check every setting against it and the space, before any work on a person.

    Raises
    ------
    CeoptError
        A setting, target, rule, cost or solver that does not exist or does not fit; a model that cannot be represented.
    """
    began = time.perf_counter()
    referee = Referee(model, space)
    predictor = read(model, space)
    checked = settings.check(space, predictor.labels)
    formulation_of(predictor, checked.formulation)
    checked_margin(checked.margin, predictor.core)
    if isinstance(checked.target, ProbabilityOf):
        require_probability(predictor.core)
    favoured = None
    if data is not None:
        coordinates = space.coordinates(data)
        for name, ranks in predictor.unseen.items():
            coordinates = coordinates[~np.isin(coordinates[:, space.names.index(name)], list(ranks))]
        scores = predictor.score(coordinates)
        favoured = coordinates[slack(predictor.core, scores, checked.target) > 0]
    return Prepared(predictor, referee, space, checked, favoured, time.perf_counter() - began)


def search(prepared: Prepared, row: Any, *, query_id: Any = None, keep_on_interrupt: bool = True) -> SolutionSet:
    """Return the verified answers for one person; an outcome of the solver is a status, never an exception.

    Ctrl-C stops the solver; what it holds is checked and returned, or KeyboardInterrupt goes on where
    ``keep_on_interrupt`` is False.

    Raises
    ------
    CeoptError
        The row is unusable: a missing or unknown column, NaN, an unseen level, a value outside the user's bounds.
    """
    return _Search(prepared, row, query_id, keep_on_interrupt=keep_on_interrupt).run()


@dataclass(slots=True)
class _Timings:
    read: float = 0.0
    start: float = 0.0
    build: float = 0.0
    lower: float = 0.0
    solve: float = 0.0
    check: float = 0.0
    predict: float = 0.0


@dataclass(slots=True)
class _Found:
    """What one attempt at one more answer came to."""

    status: Status
    answer: Counterfactual | None = None
    point: dict[str, float] = field(default_factory=dict)
    bound: float | None = None
    reason: str = ""
    proved: bool = False


class _Search:
    """One person's search; lives for one call."""

    def __init__(self, prepared: Prepared, row: Any, query_id: Any, *, keep_on_interrupt: bool) -> None:
        self.began = time.perf_counter()
        self.keep_on_interrupt, self.interrupted = keep_on_interrupt, False
        self.prepared, self.query_id = prepared, query_id
        self.space, self.predictor, self.settings = prepared.space, prepared.predictor, prepared.settings
        self.deadline = self.began + self.settings.time_limit_s
        self.factual = self.space.row(row)
        self.row = self.space.frame([self.factual])
        self.reach: Reach = without_unseen(self.predictor, reach_of(self.space, self.factual), self.factual)
        self.margin = checked_margin(self.settings.margin, self.predictor.core)
        self.first_margin = self.margin
        self.timings = _Timings(read=prepared.read_s)
        self.solver = self.settings.solver
        self.solver_version = ""
        self.answers: list[tuple[Counterfactual, dict[str, float]]] = []
        self.barred: list[dict[str, float]] = []

    # ---- the loop over answers ---------------------------------------------------------------------------------------
    def run(self) -> SolutionSet:
        if self._is_favourable():
            reason = "The row meets the target and every rule already."
            return self._result(Status.ALREADY_FAVOURABLE, reason=reason, bound=0.0, gap=0.0, complete=True)
        starts = self._starts()
        first = self._one_more(starts)
        if first.answer is None:
            return self._result(first.status, reason=first.reason, bound=first.bound, complete=first.proved)
        last = first
        while len(self.answers) < self.settings.n and last.answer is not None:
            last = self._one_more(starts)
        complete = len(self.answers) == self.settings.n or last.proved
        reason = "" if complete or last.answer is not None else f"{len(self.answers)} answers, then: {last.reason}"
        if not reason and first.status is Status.FEASIBLE:
            reason = first.reason
        gap = self.answers[0][0].gap
        return self._result(first.status, reason=reason, bound=first.bound, gap=gap, complete=complete)

    def _is_favourable(self) -> bool:
        check = self._check(self.factual)
        return check.valid and not check.broken

    def _starts(self) -> list[tuple[float, dict[str, float]]]:
        """Return cheap points in hand; for linear models the program itself is as quick."""
        if isinstance(self.predictor.core, Affine):
            return []
        began = time.perf_counter()
        settings, favoured = self.settings, self.prepared.favoured
        if favoured is not None and len(favoured) > _START_ROWS:
            rng = np.random.default_rng(settings.random_state)
            favoured = favoured[np.sort(rng.choice(len(favoured), _START_ROWS, replace=False))]
        room = min(_START_SHARE * settings.time_limit_s, _START_CAP_S)
        starts = StartSearch(self.predictor, self._slack_beyond_margin, settings.cost, settings.rules).run(
            self.factual, self.reach, favoured, seed=settings.random_state, deadline=began + room
        )
        self.timings.start += time.perf_counter() - began
        return starts

    def _slack_beyond_margin(self, points: np.ndarray) -> np.ndarray:
        core = self.predictor.core
        # The same slack in the heuristic and in the program, or its own start would be cut off.
        return slack(core, self.predictor.score(points), self.settings.target) - self.margin * (1.0 + 1e-6)

    # ---- one more answer ---------------------------------------------------------------------------------------------
    def _one_more(self, starts: list[tuple[float, dict[str, float]]]) -> _Found:
        """Solve, check, repair: until an answer passes, the program is proved empty, or the time or the repairs end."""
        bound: float | None = None
        failures: list[str] = []
        for attempt in range(_REPAIRS + 1):
            if self.interrupted or time.perf_counter() >= self.deadline:
                return self._out_of_time(bound, failures)
            outcome, program, compiled = self._solve(starts)
            if attempt == 0:
                bound = self._bound_of(outcome)
            if outcome.x is None:
                return self._without_point(outcome, bound, failures)
            compiled.load(outcome.x)
            point = program.x.decoded()
            check = self._check(point)
            if check.valid and not check.broken:
                return self._accept(point, check.prediction, outcome, bound)
            failures.append(_why(check))
            self._repair(point, check)
        reason = f"{_REPAIRS + 1} points of the solver failed the check; the last: {failures[-1]}."
        return _Found(Status.REJECTED, bound=bound, reason=reason)

    def _solve(self, starts: list[tuple[float, dict[str, float]]]) -> tuple[Outcome, RecourseProgram, CompiledModel]:
        # A point that failed the check may have set the budget, so after one the whole reach is searched.
        usable = [] if self.barred else starts
        try:
            return self._solve_within(usable, self._budget(usable))
        except UnboundedFeatureError:
            point = self._any_label()
            if point is None:
                raise
            cost = self.settings.cost.value(self.space, self.factual, point)
            return self._solve_within([(cost, point)], cost)

    def _any_label(self) -> dict[str, float] | None:
        """Return a point of some wanted label alone: its cost bounds a reach without bounds, as several labels need."""
        target = self.settings.target
        if not isinstance(target, Labels) or len(target.wanted) == 1:
            return None
        for wanted in target.wanted:
            outcome, program, compiled = self._solve_within([], None, target=Labels((wanted,), target.labels))
            if outcome.x is not None:
                compiled.load(outcome.x)
                return program.x.decoded()
        return None

    def _budget(self, starts: list[tuple[float, dict[str, float]]]) -> float | None:
        """Return a cost that no answer will exceed: that of the n-th start, as the starts differ in their columns."""
        wanted = self.settings.n
        return starts[wanted - 1][0] if len(starts) >= wanted else None

    def _solve_within(
        self, starts: list[tuple[float, dict[str, float]]], budget: float | None, *, target: Target | None = None
    ) -> tuple[Outcome, RecourseProgram, CompiledModel]:
        settings, began = self.settings, time.perf_counter()
        reach, far = self.reach, None
        if budget is not None:
            objective = settings.cost.to_objective(budget)
            reach = within_budget(self.space, self.factual, reach, settings.cost, objective)
            far = too_far(self.space, self.factual, settings.cost, objective)
        program = recourse_program(
            self.predictor,
            self.row,
            target=settings.target if target is None else target,
            cost=settings.cost,
            rules=settings.rules,
            margin=self.margin,
            formulation=settings.formulation,
            reach=reach,
            too_far=far,
        )
        self._exclude(program)
        built = time.perf_counter()
        compiled = compile_model(program.model)
        lowered = time.perf_counter()
        chosen = choose(settings.solver, compiled.problem_class)
        session = chosen.session()(
            compiled, threads=settings.threads, random_state=settings.random_state, options=settings.solver_options
        )
        outcome = session.solve(
            time_limit_s=max(self.deadline - time.perf_counter(), 1e-2),
            relative_gap=settings.relative_gap / 2,
            start=self._start_of(program, compiled, starts),
        )
        self.solver, self.solver_version = chosen.name, session.version
        self.interrupted = outcome.status is Stop.INTERRUPTED
        if self.interrupted and not self.keep_on_interrupt:
            raise KeyboardInterrupt
        self.timings.build += built - began
        self.timings.lower += lowered - built
        self.timings.solve += time.perf_counter() - lowered
        return outcome, program, compiled

    def _exclude(self, program: RecourseProgram) -> None:
        """Bar the earlier answers, and the points that failed the check."""
        barred: list[tuple[dict[str, float], Diversity]] = [(p, self.settings.diversity) for _, p in self.answers]
        barred += [(point, "pool") for point in self.barred]
        for point, how in barred:
            program.embedded.place(point)
            exclude(program.model, program.x, point, how, (program.embedded,))

    def _start_of(
        self, program: RecourseProgram, compiled: CompiledModel, starts: list[tuple[float, dict[str, float]]]
    ) -> Mapping[int, float] | None:
        """Return the cheapest start whose changed columns no answer has, as column -> value."""
        had = {answer.changed for answer, _ in self.answers}
        for _, point in starts:
            if changed_names(self.factual, point) not in had:
                program.x.place(point)
                program.embedded.place(point)
                pairs = ((compiled.index.get(v), v.value) for v in program.model.component_data_objects(pyo.Var))
                return {column: float(value) for column, value in pairs if column is not None and value is not None}
        return None

    # ---- checks and repair -------------------------------------------------------------------------------------------
    def _check(self, point: dict[str, float]) -> Check:
        """Ask the user's own model and every rule about a point."""
        began, settings = time.perf_counter(), self.settings
        frame = self.space.frame([point])
        framed = time.perf_counter()
        predicted, met = self.prepared.referee.judge(frame, settings.target)
        judged = time.perf_counter()
        broken = broken_rules(settings.rules, self.space, self.factual, point)
        self.timings.predict += judged - framed
        self.timings.check += time.perf_counter() - judged + framed - began
        return Check(bool(met[0]), predicted[0], broken)

    def _repair(self, point: dict[str, float], check: Check) -> None:
        """Bar the cell of a tree's answer; ask more of a linear score, and of rules that a rounding broke."""
        if isinstance(self.predictor.core, Affine) or check.broken:
            self.margin = max(10.0 * self.margin, checked_margin(None, self.predictor.core))
        else:
            self.barred.append(point)

    def _bound_of(self, outcome: Outcome) -> float | None:
        if outcome.bound is None or not np.isfinite(outcome.bound):
            return 0.0 if outcome.x is not None else None
        return max(self.settings.cost.from_objective(outcome.bound), 0.0)

    def _accept(self, point: dict[str, float], prediction: Any, outcome: Outcome, bound: float | None) -> _Found:
        settings, space = self.settings, self.space
        cost = settings.cost.value(space, self.factual, point)
        bound = 0.0 if bound is None else min(bound, cost)
        gap = (cost - bound) / max(abs(cost), 1e-12)
        scores = self.predictor.score(np.array([[point[name] for name in space.names]]))
        answer = Counterfactual(
            values=space.frame([point]),  # type: ignore[arg-type]  # a frame keeps each column's dtype
            cost=cost,
            prediction=prediction,
            score=self._score(scores),
            slack=float(slack(self.predictor.core, scores, settings.target)[0]),
            changed=changed_names(self.factual, point),
            verified=True,
            rank=len(self.answers) + 1,
            bound=bound,
            gap=gap,
        )
        self.answers.append((answer, point))
        status = Status.OPTIMAL if gap <= settings.relative_gap else Status.FEASIBLE
        reason = "" if status is Status.OPTIMAL else outcome.message or f"The gap of {gap:.3g} could not be closed."
        return _Found(status, answer=answer, point=point, bound=bound, reason=reason)

    def _score(self, scores: np.ndarray) -> Any:
        core = self.predictor.core
        if scores.ndim == 1:
            return float(scores[0])
        assert core.labels is not None  # noqa: S101 - several scores belong to labels
        return dict(zip(core.labels, scores[0].tolist(), strict=True))

    def _without_point(self, outcome: Outcome, bound: float | None, failures: list[str]) -> _Found:
        if outcome.status is Stop.INFEASIBLE:
            if failures:
                reason = f"No other point exists; the solver's failed the check: {failures[-1]}."
                return _Found(Status.REJECTED, bound=bound, reason=reason)
            return _Found(Status.INFEASIBLE, reason="Proved: no recourse exists in this model.", proved=True)
        stop = {
            Stop.TIME_LIMIT: Status.TIME_LIMIT,
            Stop.INTERRUPTED: Status.TIME_LIMIT,
            Stop.UNBOUNDED: Status.UNBOUNDED,
        }.get(outcome.status, Status.ERROR)
        return _Found(stop, bound=bound, reason=outcome.message or f"The solver stopped: {outcome.status}.")

    def _out_of_time(self, bound: float | None, failures: list[str]) -> _Found:
        reason = f"The time limit of {self.settings.time_limit_s:g} s is used up."
        if self.interrupted:
            reason = "The search was interrupted."
        if failures:
            return _Found(Status.REJECTED, bound=bound, reason=f"{reason} The solver's point failed: {failures[-1]}.")
        return _Found(Status.TIME_LIMIT, bound=bound, reason=reason)

    # ---- the result --------------------------------------------------------------------------------------------------
    def _result(
        self, status: Status, *, reason: str, bound: float | None, complete: bool, gap: float | None = None
    ) -> SolutionSet:
        timings = {name: getattr(self.timings, name) for name in _Timings.__slots__}
        timings["total"] = time.perf_counter() - self.began
        return SolutionSet(
            status=status,
            counterfactuals=tuple(answer for answer, _ in self.answers),
            factual=self.row,
            bound=bound,
            gap=gap,
            margin=self.margin,
            complete=complete,
            reason=reason,
            timings=timings,
            solver=f"{self.solver} {self.solver_version}".strip(),
            versions=dict(_versions()),
            options=self.settings.options(),
            target=self.settings.target.text(),
            removed=removed_by(self.space, self.reach),
            query_id=self.query_id,
        )


def without_unseen(
    predictor: Predictor, reach: dict[str, Interval | Levels], factual: Mapping[str, float]
) -> dict[str, Interval | Levels]:
    """Take the levels that the model's pipeline fails on out of the reach, or refuse a factual that has one."""
    for name, ranks in predictor.unseen.items():
        level = predictor.space[name].levels[int(factual[name])]
        if factual[name] in ranks:
            raise InvalidValueError(
                "The model",
                "levels that it was fitted on",
                f"column {name!r} is {level!r}",
                "Fit it on rows that have it.",
            )
        part = reach[name]
        assert isinstance(part, Levels)  # noqa: S101 - only levels are encoded by tables
        reach[name] = Levels(tuple(rank for rank in part.ranks if rank not in ranks))
    return reach


def _why(check: Check) -> str:
    if not check.valid:
        return f"the model predicts {check.prediction}"
    return f"it breaks {', '.join(check.broken)}"


def changed_names(factual: Mapping[str, float], point: Mapping[str, float]) -> tuple[str, ...]:
    """Return the columns in which a point leaves the factual."""
    return tuple(name for name, value in factual.items() if point[name] != value)


@functools.cache
def _versions() -> dict[str, str]:
    packages = ("ceopt", "pyomo", "highspy", "numpy", "pandas", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
