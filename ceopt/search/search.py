"""From one person's row to verified answers: start, solve, check, repair, and again for the next answer.

What the solver returns is read as integer decisions, rebuilt as floats, and handed to the user's own model and to the
rules in plain numbers; only what passes is an answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity, OtherDecisions
from ceopt.formulations.constraints.rule import nearest_cluster
from ceopt.formulations.predictors.decision.lattice import is_on_lattice
from ceopt.formulations.predictors.decision.reaches import slack
from ceopt.formulations.predictors.representation.predictor import Predictor
from ceopt.formulations.space.reachable import Interval, Levels, reach_of, removed_by
from ceopt.formulations.targets import Labels
from ceopt.infeasibility.conflict import Entry, conflict_of
from ceopt.infeasibility.relaxation import LATE, Person, Relaxer, enlargements
from ceopt.query.build_answer import answer_of
from ceopt.query.objective_unit import is_extreme
from ceopt.query.prepare import Prepared
from ceopt.query.solve_program import ROUNDING, ProgramSolver, SolvedProgram, SolveRequest, Start
from ceopt.search.disproof import CHEAPER, is_disproved, ranked_anew
from ceopt.search.incumbents import are_same, cheapest_first, room
from ceopt.search.ties import SMALLER, may_cost_a_step, rounding_of, snapped
from ceopt.solution.counterfactual import Counterfactual
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.deadline import OutOfTimeError, deadline_now, until, without_deadline
from ceopt.solvers.errors import CeoptError, InvalidValueError
from ceopt.solvers.problem import Outcome
from ceopt.solvers.problem import Status as Stop
from ceopt.status import Status
from ceopt.verify import Check, broken_rules
from ceopt.versions import versions
from ceopt.warm_start.heuristic import StartSearch

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.settings import Settings

__all__ = ["search", "unread", "used_up"]

#: Times that a failed check may send the program back to the solver, for one answer.
_REPAIRS = 6
#: First margin of a repair that began at none, as a share of the one that a solver can be trusted with.
_FIRST_REPAIR = 1e-4
#: Share of an answer's cost that a default margin may add.
_OF_MARGIN = 1e-5
#: Share of the time that the search for a start may take; its own limit is a count of rows, long before this.
_START_SHARE = 0.25
#: What is said of a proof whose causes nobody asked for.
_ASK_WHY = "With why=True the rules in conflict are looked for."
#: Seconds beyond the limit in which starts may still be checked, one after the other; the first always is.
_GRACE_S = 0.1
#: How many rows of the data the search for a start looks at.
_START_ROWS = 2000

_STOPS = {Stop.TIME_LIMIT: Status.TIME_LIMIT, Stop.INTERRUPTED: Status.TIME_LIMIT, Stop.UNBOUNDED: Status.UNBOUNDED}


def search(
    prepared: Prepared,
    row: Any,
    *,
    query_id: Any = None,
    keep_on_interrupt: bool = True,
    within: float | None = None,
    began: float | None = None,
) -> SolutionSet:
    """Return the verified answers for one person; an outcome of the solver is a status, never an exception.

    Ctrl-C stops the solver; what it holds is checked and returned, or KeyboardInterrupt goes on where
    ``keep_on_interrupt`` is False. ``within`` is how much more than the best any other answer may cost: there are no
    more once it is proved that the next costs more, and none but the best where that one is not proved. ``began`` is
    when the limit began, on the clock of ``time.perf_counter``, where the model was read within it; by default now.

    Raises
    ------
    CeoptError
        The row is unusable: a missing or unknown column, NaN, an unseen level, a value outside the user's bounds.
    """
    return _Search(prepared, row, keep_on_interrupt=keep_on_interrupt, within=within, began=began).run(query_id)


def unread(settings: Settings, space: FeatureSpace, row: Any, *, stage: str, began: float) -> SolutionSet:
    """Return what is known of a person where the time limit ended the reading of the model: nothing."""
    factual, options = space.frame([space.row(row)]), settings.unchecked_options()
    spent = time.perf_counter() - began
    return SolutionSet(
        status=Status.TIME_LIMIT,
        counterfactuals=(),
        factual=factual,
        complete=False,
        reason=used_up(settings.limit_s(), stage),
        timings={**asdict(_Timings(read=spent)), "total": spent},
        versions=dict(versions("pyomo", "highspy")),
        options=options,
        target=str(options["target"]),
    )


@dataclass(slots=True)
class _Timings:
    """Seconds per phase; ``check`` is decoding and rules, ``predict`` the user's own model."""

    read: float = 0.0
    start: float = 0.0
    build: float = 0.0
    lower: float = 0.0
    solve: float = 0.0
    check: float = 0.0
    predict: float = 0.0


@dataclass(slots=True)
class _Found:
    """What the search for one more answer came to."""

    status: Status
    answer: Counterfactual | None = None
    bound: float | None = None
    reason: str = ""
    proved: bool = False


@dataclass(slots=True)
class _Tries:
    """What failed on the way to one answer, and what the first program proved."""

    bound: float | None = None
    failures: list[str] = field(default_factory=list)


class _Search:
    """One person's search; lives for one call."""

    def __init__(
        self, prepared: Prepared, row: Any, *, keep_on_interrupt: bool, within: float | None, began: float | None
    ) -> None:
        self.began = time.perf_counter() if began is None else began
        self.space, self.settings = prepared.space, prepared.settings
        self.asked = prepared.settings
        self.keep_on_interrupt, self.interrupted, self.within = keep_on_interrupt, False, within
        self.deadline = min(self.began + self.settings.time_limit_s, deadline_now())
        self.factual = self.space.row(row)
        self.space.require_moderate(self.factual)
        self.row = self.space.frame([self.factual])
        self.reach = without_unseen(prepared.predictor, reach_of(self.space, self.factual), self.factual)
        self.prepared = prepared = prepared.about(self.factual, self.reach)
        self.attempts = ProgramSolver(prepared, self.factual, self.row, self.reach)
        self.margin = prepared.margin
        self.timings = _Timings(read=0.0 if began is None else prepared.read_s)
        #: What the time limit ended, as "building the trees"; empty where it ended nothing or the solver.
        self.stage = ""
        self.solver = self.settings.solver
        self.starts: list[Start] = []
        self.first: _Found | None = None
        self.answers: list[tuple[Counterfactual, dict[str, float]]] = []
        #: What failed the check by a rule, and what the user's own model of trees refused.
        self.barred: list[dict[str, float]] = []
        self.refused: list[dict[str, float]] = []
        self.exact = False
        #: What was refused of a solver that was not asked to be exact, until it is; None afterwards.
        self.coarse: dict[str, float] | None = None
        #: Whether the solver has said what a point in hand contradicts: it proves nothing from then on.
        self.doubted = False
        #: In what the next answer differs, as far as the rows ask.
        self.how: AbstractDiversity = OtherDecisions()
        self.found: list[Start] = []
        self.met: list[dict[str, float]] = []
        self.conflict: tuple[Entry, ...] = ()
        self.relaxed: dict[str, float] = {}

    # ---- the loop over answers ---------------------------------------------------------------------------------------
    def run(self, query_id: Any) -> SolutionSet:
        check = self._check_factual()
        if check.valid and not check.broken:
            return self._result(_favourable(), query_id, complete=True)
        try:
            with until(self.deadline):
                self._find_starts()
                first = last = self._explained(self._enlarged(self._one_more()))
                another = self._next_met if self.settings.diversity is None else self._another
                while last.answer is not None and len(self.answers) < self.settings.n:
                    last = self._near_enough(another)
        except OutOfTimeError as error:
            self.stage, tries = error.stage, _Tries()
            last = self._fall_back(self._out_of_time(tries), tries)
            first = self.first or last
        except KeyboardInterrupt:
            if not (self.keep_on_interrupt and self.answers):
                raise
            assert self.first is not None  # noqa: S101 - made with the first answer
            first, last = self.first, _Found(Status.TIME_LIMIT, reason="The search was interrupted.")
        first = self._consistent(first)
        if last.answer is None and self.answers:
            more = "Proved: there are no more." if last.proved else f"No more, as: {last.reason}"
            first.reason = f"{first.reason} {more}".strip()
        complete = len(self.answers) == self.settings.n or last.proved
        return self._result(first, query_id, complete=complete)

    def _check_factual(self) -> Check:
        """Ask about the row itself; where the user's model fails on it, that is the row's fault."""
        try:
            return self._check(self.factual)
        except CeoptError:
            raise
        except Exception as error:
            raise InvalidValueError(
                "The model", "a row that it can predict", f"on this one it fails ({error})", "Check the row's values."
            ) from error

    # ---- where there is none -----------------------------------------------------------------------------------------
    def _enlarged(self, found: _Found) -> _Found:
        """Where nothing is found as proved, ask again with the rules that widen themselves wider by the least amounts.

        Without time for a width that helps, nothing is proved of the question with wider rules.
        """
        if found.status is not Status.INFEASIBLE or not found.proved:
            return found
        asked, relaxer = self.prepared, Relaxer(self.prepared, self.deadline)
        try:
            for wider in enlargements(relaxer, self._person):
                self._ask(wider.prepared)
                self.found = []
                self._find_starts()
                known = [*self.starts, (self._cost(wider.point), wider.point)]
                self.starts = self.found = sorted(known, key=lambda start: start[0])
                check = self._check(self.factual)
                again = _favourable() if check.valid and not check.broken else self._one_more()
                if again.status is not Status.INFEASIBLE:
                    self.relaxed = wider.radii
                    again.reason = f"{again.reason} {wider.reason}".strip()
                    return again
        except OutOfTimeError as error:
            self.stage, relaxer.unsettled = error.stage, LATE
        except KeyboardInterrupt:
            if not self.keep_on_interrupt:
                raise
            relaxer.unsettled = "the search was interrupted"
        finally:
            self._note(relaxer)
        self._ask(asked)
        if relaxer.unsettled:
            reason = f"{found.reason} By how much wider a rule would have to be is not known: {relaxer.unsettled}."
            return _Found(Status.TIME_LIMIT, reason=reason)
        return found

    def _explained(self, found: _Found) -> _Found:
        """Where nothing is found as proved, find which rules leave no answer, as far as the time goes, and say so."""
        if found.status is not Status.INFEASIBLE:
            return found
        if not self.settings.why_s:
            found.reason = f"{found.reason} {_ASK_WHY} {self._of_the_data}".strip()
            return found
        relaxer = Relaxer(self.prepared, min(self.deadline, time.perf_counter() + self.settings.why_s))
        with until(relaxer.deadline):
            conflict = conflict_of(
                relaxer,
                self._person,
                reach_of=lambda space: without_unseen(
                    self.prepared.predictor, reach_of(space, self.factual), self.factual
                ),
                keep_on_interrupt=self.keep_on_interrupt,
            )
        self._note(relaxer)
        if relaxer.overlooked is not None:
            prediction = self._check(relaxer.overlooked).prediction
            return self._accept(relaxer.overlooked, prediction, None, "To the solver's tolerance there is no answer.")
        self.conflict = conflict.entries
        found.reason = f"{found.reason} {conflict.reason} {self._of_the_data}".strip()
        return found

    @property
    def _person(self) -> Person:
        return Person(self.factual, self.row, self.reach, self.space)

    def _ask(self, prepared: Prepared) -> None:
        """Go on with the same question under other rules."""
        self.prepared, self.settings = prepared, prepared.settings
        self.attempts = ProgramSolver(prepared, self.factual, self.row, self.reach)

    def _note(self, relaxer: Relaxer) -> None:
        for phase, spent in relaxer.seconds.items():
            setattr(self.timings, phase, getattr(self.timings, phase) + spent)

    # ---- starts ------------------------------------------------------------------------------------------------------
    def _find_starts(self, *, even_linear: bool = False) -> None:
        """Look for cheap points; for linear models the program itself is as quick, where its numbers are ordinary."""
        prepared, settings = self.prepared, self.settings
        if prepared.predictor.is_linear and not even_linear and not is_extreme(self.reach, self.space):
            return
        began, favoured = time.perf_counter(), prepared.favoured
        if favoured is not None and len(favoured) > _START_ROWS:
            rng = np.random.default_rng(settings.random_state)
            favoured = favoured[np.sort(rng.choice(len(favoured), _START_ROWS, replace=False))]
        deadlines = began + _START_SHARE * (self.deadline - began), self.deadline
        search = StartSearch(prepared.predictor, self._slack_beyond_margin, settings.cost, settings.rules)
        try:
            self.starts = search.run(
                self.factual, self.reach, favoured, seed=settings.random_state, deadlines=deadlines
            )
        except OutOfTimeError as error:
            self.stage = error.stage
        self.found = self.found or self.starts
        self.timings.start += time.perf_counter() - began

    def _slack_beyond_margin(self, points: np.ndarray) -> np.ndarray:
        if self.margin is None or (self.prepared.is_own and self.margin == 0.0):  # ties as the library has them
            return self.prepared.slacks(points)
        # The same slack in the heuristic and in the program, or its own start would be cut off.
        return slack(self.prepared.predictor, points, self.settings.target) - self.margin * (1.0 + 1e-6)

    def _budget(self) -> float | None:
        """Return a cost that the next answer need not exceed: that of the cheapest start that surely is another one.

        Not so with the leaf form, which tells cells apart only by the leaves that they reach.
        """
        if self.settings.diversity is None:
            return room(self.starts, self.settings.n)
        had = self._had()
        if had and self.settings.formulation == "leaf" and self.settings.diversity.needs_all_cells:
            return None
        for cost, point in self.starts:
            if all(how.surely(self.space, self.factual, earlier, point) for earlier, how in had):
                return cost
        return None

    # ---- one more answer ---------------------------------------------------------------------------------------------
    def _another(self) -> _Found:
        """Look for a further answer; what it cannot do without bounds does not lose the ones in hand."""
        try:
            return self._one_more()
        except CeoptError as error:  # columns without bounds, or more rows than a licence allows
            return _Found(Status.ERROR, reason=str(error))

    def _near_enough(self, another: Callable[[], _Found]) -> _Found:
        """Look for a further answer that costs no more than was asked for."""
        assert self.first is not None  # noqa: S101 - made with the first answer
        if self.within is not None and self.first.status is not Status.OPTIMAL:
            return _Found(Status.TIME_LIMIT, reason="The least cost is not proved.")
        found, most = another(), self._most()
        if most is None or found.answer is None or found.answer.cost <= most * (1.0 + self.settings.relative_gap):
            return found
        self.answers.pop()
        proved = found.answer.bound is not None and found.answer.bound >= most * (1.0 - ROUNDING)
        return _Found(Status.INFEASIBLE if proved else Status.TIME_LIMIT, reason=found.reason, proved=proved)

    def _most(self) -> float | None:
        """Return what a further answer may cost, where that was asked for."""
        return None if self.within is None or not self.answers else self.answers[0][0].cost + self.within

    def _next_met(self) -> _Found:
        """Take the cheapest that is left of what was met on the way, if it passes the check."""
        assert self.first is not None  # noqa: S101 - made with the first answer
        while self.met and time.perf_counter() < self.deadline:
            point = self.met.pop(0)
            check = self._check(point)
            repeats = any(are_same(point, earlier) for _, earlier in self.answers)
            if check.valid and not check.broken and not repeats:
                return self._accept(point, check.prediction, self.first.bound, "")
        reason = "The time limit is used up." if self.met else "No other point was met."
        return _Found(Status.TIME_LIMIT, reason=reason)

    def _one_more(self) -> _Found:
        """Look for the next answer beyond the margin, then for one that the margin left out."""
        found = self._solve_check_repair()
        return self._within_margin(found) if self._has_room(found) else found

    def _has_room(self, found: _Found) -> bool:
        """Tell whether a default margin may have left out what the model accepts, at a price that is worth a look.

        On levels, whole numbers and at the ends of a reach a margin may cost a whole step, or the only answer.
        """
        prepared = self.prepared
        if prepared.is_own or prepared.settings.margin is not None or self.margin != prepared.margin or not self.margin:
            return False
        if self.interrupted or self.within is not None or time.perf_counter() >= self.deadline:
            return False
        if found.answer is None:
            return found.status is Status.INFEASIBLE and found.proved
        # A level that was asked for may be one that a network attains; between its labels nothing ties but by accident.
        is_level = not isinstance(prepared.settings.target, Labels)
        is_stepped = may_cost_a_step(self.reach, self.settings.cost, self.space)
        return prepared.predictor.is_linear or is_level or is_stepped

    def _within_margin(self, found: _Found) -> _Found:
        """Return an answer without a margin that the model accepts and that costs less; else what was found."""
        most = None if found.answer is None else found.answer.cost * (1.0 - _OF_MARGIN)
        answers, met, first, margin = list(self.answers), self.met, self.first, self.margin
        refused = list(self.refused)
        if found.answer is not None:
            self.answers.pop()
        better, is_none = None, False
        try:
            for share, below in self._less(found):
                self.margin, self.refused = share * (margin or 0.0), list(refused)
                attempt, better = self._tie(most, below)
                is_empty = attempt.outcome.status is Stop.INFEASIBLE
                is_none = is_none or is_empty
                is_last = is_empty if below else share == 0.0 and not self._is_cheaper(attempt, most)
                if better is not None or is_last:
                    break
        except OutOfTimeError:
            better = None
        finally:
            before, self.answers = self.answers, answers
            self.margin, self.met, self.refused = margin, met, refused
        if better is None:
            return found if found.answer is not None or is_none else self._unsettled(found)
        self.answers = before
        prediction, point = better
        self.first = first if self.answers else None
        return self._accept(point, prediction, self._bound_of(attempt.outcome), "", attempt.cluster)

    def _less(self, found: _Found) -> list[tuple[float, float]]:
        """Return shares of the margin that are tried, and by how much the decision may be missed.

        Where numbers are so large, or nothing else is found, that a tie may be lost to the rounding of its sum.
        """
        smaller = [(share, 0.0) for share in SMALLER]
        if found.answer is not None and not is_extreme(self.reach, self.space):
            return [(0.0, 0.0), *smaller]
        below = rounding_of(self.prepared.predictor, self.factual, self.reach)
        return [(0.0, below), (0.0, 0.0), *smaller]

    def _unsettled(self, found: _Found) -> _Found:
        """Take back the proof that there is nothing, where the solver could not settle what the margin leaves out."""
        late = time.perf_counter() >= self.deadline or self.interrupted
        reason = "Nothing reaches the target with a margin. Whether a tie does is not settled: the solver ended early."
        return _Found(Status.TIME_LIMIT if late else Status.ERROR, bound=found.bound, reason=reason)

    def _is_cheaper(self, attempt: SolvedProgram, most: float | None) -> bool:
        """Tell whether an attempt has a point, and it costs less than what was found."""
        return attempt.point is not None and (most is None or self._cost(attempt.point) <= most)

    def _tie(self, most: float | None, below: float) -> tuple[SolvedProgram, tuple[Any, dict[str, float]] | None]:
        """Solve with less margin, and again without the whole numbers that are within ``below`` of a tie but none."""
        predictor = self.prepared.predictor
        repairs = _REPAIRS if below and is_on_lattice(predictor, self.reach, steps=math.inf) else 0
        while True:
            attempt = self._attempt(self.deadline - time.perf_counter(), most, below=below)
            better = self._accepted_tie(attempt, most)
            if better is not None or not repairs or attempt.point is None or not self._is_cheaper(attempt, most):
                return attempt, better
            self.refused.append(attempt.point)
            repairs -= 1

    def _accepted_tie(self, attempt: SolvedProgram, most: float | None) -> tuple[Any, dict[str, float]] | None:
        """Return prediction and point of an attempt with less margin, if it is cheaper and passes the check.

        Proved or not: what it costs less than is the cheapest no more.
        """
        if attempt.point is None or not self._is_cheaper(attempt, most):
            return None
        for point in (attempt.point, snapped(attempt.point, self.factual, self.reach)):
            check = self._check(point)
            if check.valid and not check.broken and self._differs(point):
                return check.prediction, point
        return None

    def _solve_check_repair(self) -> _Found:
        """Solve, check, repair: until an answer passes, the program is proved empty, or the time or the repairs end."""
        # What is left to choose from shrinks with each answer, so what was proved of the one before holds.
        tries, asked = _Tries(self.answers[-1][0].bound if self.answers else None), self.margin
        how = self.how = (self.settings.diversity or OtherDecisions()).fitted(self.settings.rules)
        repairs, is_first = 0, True
        while repairs <= _REPAIRS:
            left = self.deadline - time.perf_counter()
            if self.interrupted or left <= 0:
                return self._fall_back(self._out_of_time(tries), tries)
            try:
                attempt = self._attempt(left)
            except OutOfTimeError as error:
                self.stage = error.stage
                return self._fall_back(self._out_of_time(tries), tries)
            # Without what the model itself refuses the program is still one of all that it accepts.
            as_asked = self.margin == asked and not self.barred and self.how is how
            if is_first or (as_asked and (self.prepared.is_own or not self.refused)):
                proved = (tries.bound, self._bound_of(attempt.outcome))
                tries.bound = max((bound for bound in proved if bound is not None), default=None)
            is_first = False
            if attempt.outcome.status is Stop.INFEASIBLE and self.exact and self.coarse is not None:
                # Exact, a solver may call a large network infeasible: it goes on as usual, without the point.
                self._leave_out(self.coarse)
                self.exact, self.coarse = False, None
                continue
            if attempt.point is None:
                return self._fall_back(self._without_point(attempt.outcome, tries), tries)
            check = self._check(attempt.point)
            if not check.valid and (self.prepared.is_own or self.prepared.predictor.is_trees):
                self._refuse(attempt.point, tries, check)
                continue
            repeats = not self._differs(attempt.point)
            if repeats:
                check = check._replace(broken=(*check.broken, f"diversity: {how.text}"))
            if check.valid and not check.broken:
                return self._accept(
                    attempt.point, check.prediction, tries.bound, attempt.outcome.message, attempt.cluster
                )
            tries.failures.append(_why(check))
            self._repair(attempt.point, repeats=repeats)
            repairs += 1
        reason = f"{_REPAIRS + 1} points of the solver failed the check; the last: {tries.failures[-1]}."
        return self._fall_back(_Found(Status.REJECTED, bound=tries.bound, reason=reason), tries)

    def _refuse(self, point: dict[str, float], tries: _Tries, check: Check) -> None:
        """Leave out what the user's own model refuses, for good: a tie that floats decide, or the solver's tolerance.

        Through the big-Ms of a network that tolerance is much: there the solver is first asked to be exact.
        """
        predictor = self.prepared.predictor
        if not (predictor.is_trees or predictor.is_linear or self.exact or self.refused):
            self.exact, self.coarse = True, point
            return
        self._leave_out(point)
        if self.margin is not None and not self.prepared.is_own:
            tries.failures.append(_why(check))
            if self.margin == 0.0:  # ties are the library's to decide
                self.margin = None

    def _leave_out(self, point: dict[str, float]) -> None:
        if not self.refused:  # a start that the model refuses as well is no bound of an answer's cost
            self.starts = [start for start in self.starts if self._check(start[1]).valid]
        self.refused.append(point)

    def _had(self) -> list[tuple[Mapping[str, float], AbstractDiversity]]:
        """Return the answers in hand, and in what the next is to differ from each."""
        return [(point, self.how.after(answer.cluster)) for answer, point in self.answers]

    def _differs(self, point: Mapping[str, float]) -> bool:
        """Tell whether a point differs from every answer in plain numbers too, not by the solver's noise alone."""
        return all(how.differ(self.space, self.factual, earlier, point) for earlier, how in self._had())

    def _attempt(self, seconds: float, closed: float | None = None, *, below: float = 0.0) -> SolvedProgram:
        """Solve once; ``closed``: a cost beyond which nothing is wanted; ``below``: what the decision may miss."""
        settings = self.settings
        barred = self._had() + [(point, OtherDecisions()) for point in self.barred]
        met = settings.n - 1 if settings.diversity is None else 0
        if self.prepared.is_own and not self.prepared.predictor.is_trees and self.margin == 0.0:
            below = rounding_of(self.prepared.predictor, self.factual, self.reach)  # what is refused is left out
        ask = SolveRequest(
            margin=self.margin, below=below, barred=barred, refused=self.refused, exact=self.exact, met=met
        )
        if closed is not None:
            ask = replace(ask, budget=closed, closed=True)
        elif (most := self._most()) is not None:
            ask = replace(ask, starts=self.starts, budget=most * (1.0 + settings.relative_gap), closed=True)
        elif not self.barred:  # what failed the check may have set the budget: then the whole reach is searched
            ask = replace(ask, starts=self.starts, budget=self._budget())
        began = time.perf_counter()
        try:
            attempt = self.attempts.run(ask, seconds)
        except OutOfTimeError:
            self.timings.build += time.perf_counter() - began
            raise
        self.solver = attempt.solver
        self.met = cheapest_first(attempt.met, self.found, self._cost) if met else []
        self.timings.build += attempt.build_s
        self.timings.lower += attempt.lower_s
        self.timings.solve += attempt.solve_s
        self.interrupted = attempt.outcome.status is Stop.INTERRUPTED
        self.doubted |= attempt.outcome.doubted
        if self.interrupted and not self.keep_on_interrupt:
            raise KeyboardInterrupt
        return attempt

    def _check(self, point: dict[str, float]) -> Check:
        """Ask the user's own model and every rule about a point; what is in hand is checked whatever the time."""
        began, settings = time.perf_counter(), self.settings
        with without_deadline():
            predicted, met = self.prepared.judge([point])
            judged = time.perf_counter()
            broken = broken_rules(settings.rules, self.space, self.factual, point)
        self.timings.predict += judged - began
        self.timings.check += time.perf_counter() - judged
        return Check(bool(met[0]), predicted[0], broken)

    def _repair(self, point: dict[str, float], *, repeats: bool = False) -> None:
        """Ask more of a score that is no tree's, and of rules that a rounding broke; of trees, another cell.

        A solver takes 1e-6 for 0, and through a large big-M that is much: first it is asked to be exact.
        """
        if repeats and self.exact and (firmer := self.how.firmer()) is not self.how:
            self.how = firmer
        elif not self.exact:
            self.exact = True
        elif self.prepared.predictor.is_trees:
            self.barred.append(point)
        else:
            assert self.margin is not None  # noqa: S101 - of trees alone
            self.margin = max(10.0 * self.margin, _FIRST_REPAIR * self.prepared.least_margin)
            # Starts found at the smaller margin would set a budget that the program cannot keep any more.
            self.starts = []
            self._find_starts()

    # ---- what it came to ---------------------------------------------------------------------------------------------
    def _bound_of(self, outcome: Outcome) -> float | None:
        if outcome.bound is None or not np.isfinite(outcome.bound):
            return None
        return max(self.settings.cost.from_objective(outcome.bound), 0.0)

    def _cost(self, point: Mapping[str, float]) -> float:
        return self.settings.cost.value(self.space, self.factual, point)

    def _accept(
        self, point: dict[str, float], prediction: Any, bound: float | None, message: str, cluster: Any = None
    ) -> _Found:
        rank, cost = len(self.answers) + 1, self._cost(point)
        if (cheaper := self._in_hand(below=cost * (1.0 - CHEAPER))) is not None:
            point, cost, cluster = cheaper, self._cost(cheaper), None
            prediction = self._check(point).prediction
        if is_disproved(bound, cost):
            self.doubted = True
            told = f"{self.solver} proves that nothing costs less than {bound:.8g}, but this verified answer costs less"
            message, bound = f"{message} {told}: nothing is proved.".strip(), None
        bound = None if self.doubted else bound
        with without_deadline():
            if cluster is None:
                cluster = nearest_cluster(self.settings.rules, self.space, point)
            answer = answer_of(
                self.prepared, self.factual, point, prediction=prediction, bound=bound, rank=rank, cluster=cluster
            )
        assert answer.gap is not None  # noqa: S101 - made by the line above
        self.answers.append((answer, point))
        status = Status.OPTIMAL if answer.gap <= self.settings.relative_gap else Status.FEASIBLE
        reason = "" if status is Status.OPTIMAL else message or f"The gap of {answer.gap:.3g} could not be closed."
        found = _Found(status, answer=answer, bound=answer.bound, reason=reason)
        self.first = self.first or found
        return found

    def _without_point(self, outcome: Outcome, tries: _Tries) -> _Found:
        if outcome.status is not Stop.INFEASIBLE:
            reason = outcome.message or f"The solver stopped: {outcome.status}."
            return _Found(_STOPS.get(outcome.status, Status.ERROR), bound=tries.bound, reason=reason)
        if tries.failures or self.barred:
            why = tries.failures[-1] if tries.failures else "it breaks a rule"
            reason = f"No other point exists; the solver's failed the check: {why}."
            return _Found(Status.REJECTED, bound=tries.bound, reason=reason)
        proved = self.margin == self.prepared.margin  # what a larger margin leaves out was not searched
        reason = "Proved: nothing in reach meets the target and every rule."
        if self.doubted:
            proved, reason = False, f"{self.solver} calls the program infeasible, and is not believed any more."
        return _Found(Status.INFEASIBLE, reason=reason, proved=proved)

    @property
    def _of_the_data(self) -> str:
        """Say which bounds only the data had."""
        seen = [f.name for f in self.space if f.mutable and (f.lower_inferred or f.upper_inferred)]
        if not seen:
            return ""
        some = ", ".join(seen[:3]) + (", ..." if len(seen) > 3 else "")
        return (
            f"The reach of {some} ends where the data did; space.update(name, lower=..., upper=...) widens it, which "
            "may help."
        )

    def _out_of_time(self, tries: _Tries) -> _Found:
        spent = used_up(self.settings.time_limit_s, self.stage)
        reason = "The search was interrupted." if self.interrupted else spent
        if tries.failures:
            reason = f"{reason} The solver's point failed: {tries.failures[-1]}."
            return _Found(Status.REJECTED, bound=tries.bound, reason=reason)
        return _Found(Status.TIME_LIMIT, bound=tries.bound, reason=reason)

    def _fall_back(self, found: _Found, tries: _Tries) -> _Found:
        """Give a start that passes the check where the solver has no point: a proof that there is none was no proof.

        A further answer is not taken from the starts because the time is up.
        """
        contradicts = found.status in {Status.INFEASIBLE, Status.UNBOUNDED}
        if self.interrupted or (self.answers and not contradicts and found.status is not Status.ERROR):
            return found if self.answers else self._started(found, tries.bound, found.reason)
        if self.prepared.predictor.is_linear and not self.found and time.perf_counter() < self.deadline:
            self._find_starts(even_linear=True)
        if not contradicts:
            return self._started(found, tries.bound, found.reason, is_judge=False)
        reason = f"{self.solver} calls the program {found.status}, but a point that passes the check is in hand."
        again = self._started(found, None, reason)
        self.doubted |= again is not found
        return again

    def _started(self, found: _Found, bound: float | None, reason: str, *, is_judge: bool = True) -> _Found:
        """Take the cheapest start that passes the check, or leave what was found."""
        point = self._in_hand(is_judge=is_judge)
        return found if point is None else self._accept(point, self._check(point).prediction, bound, reason)

    def _in_hand(self, *, below: float = math.inf, is_judge: bool = True) -> dict[str, float] | None:
        """Return the cheapest start that passes the check and is another answer, if it costs less.

        Of a further answer a start ``is_judge`` of no solver that is believed: it may differ from those before it by a
        column that no row reads, or by less than answers must.
        """
        if self.answers and is_judge and not self.doubted:
            return None
        for number, (cost, point) in enumerate(self.found):
            if cost >= below or (number and time.perf_counter() > self.deadline + _GRACE_S):
                return None
            differs = all(how.surely(self.space, self.factual, had, point) for had, how in self._had())
            check = self._check(point) if differs else None
            if check is not None and check.valid and not check.broken:
                return point
        return None

    def _consistent(self, first: _Found) -> _Found:
        """Take back what was proved of an answer where a later one contradicts it."""
        ordered = ranked_anew(self.answers)
        if not self.answers or ordered[0][0] is self.answers[0][0]:
            return first
        self.answers = ordered
        reason = "A further answer costs less than was proved of an earlier one: nothing is proved."
        return _Found(Status.FEASIBLE, answer=ordered[0][0], bound=ordered[0][0].bound, reason=reason)

    def _result(self, found: _Found, query_id: Any, *, complete: bool) -> SolutionSet:
        gap = 0.0 if found.status is Status.ALREADY_FAVOURABLE else None
        return SolutionSet(
            status=found.status,
            counterfactuals=tuple(answer for answer, _ in self.answers),
            factual=self.row,
            bound=found.bound,
            gap=self.answers[0][0].gap if self.answers else gap,
            margin=0.0 if self.margin is None else self.margin,
            complete=complete,
            reason=found.reason,
            conflict=self.conflict,
            relaxed=self.relaxed,
            timings={**asdict(self.timings), "total": time.perf_counter() - self.began},
            solver=self.solver,
            versions=dict(versions("pyomo", "highspy")),
            options=self.asked.options(),
            target=self.settings.target.text(),
            removed=removed_by(self.space, self.reach),
            query_id=query_id,
        )


def without_unseen(
    predictor: Predictor, reach: dict[str, Interval | Levels], factual: Mapping[str, float]
) -> dict[str, Interval | Levels]:
    """Take the levels that the model's pipeline fails on out of the reach, or refuse a factual that has one."""
    for name, ranks in predictor.unseen.items():
        if factual[name] in ranks:
            level = predictor.space[name].levels[int(factual[name])]
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


def used_up(limit_s: float, stage: str) -> str:
    """Return the sentence that says what the time limit ended."""
    return f"The time limit of {limit_s:g} s is used up{f' while {stage}' if stage else ''}."


def _favourable() -> _Found:
    return _Found(
        Status.ALREADY_FAVOURABLE, bound=0.0, reason="The row meets the target and every rule already.", proved=True
    )


def _why(check: Check) -> str:
    return f"it breaks {', '.join(check.broken)}" if check.valid else f"the model predicts {check.prediction}"
