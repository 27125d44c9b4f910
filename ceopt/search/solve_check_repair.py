"""Solve one program and check its point: an answer, a repaired next program, or the reason for no answer."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ceopt.base.said import Said, said, together
from ceopt.formulations.constraints.diversity.diversity import OtherDecisions
from ceopt.formulations.constraints.rule import nearest_cluster
from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.predictors.ties import rounding_in
from ceopt.oracle.model import broken_rules
from ceopt.oracle.rows import points_of
from ceopt.search.build_answer import answer_of
from ceopt.search.prepare import put_in_reach
from ceopt.search.solve_program import SolvedProgram, SolveRequest, has_extreme_numbers
from ceopt.search.state import GRACE_S, Finding
from ceopt.search.warm_start import StartSearch
from ceopt.solvers.deadline import OutOfTimeError, without_deadline
from ceopt.solvers.problem import Stop
from ceopt.status import Status
from ceopt.tolerances import CHEAPER, FIRST_REPAIR, LEAST_CHEAPER, START_MARGIN_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.oracle.model import Check
    from ceopt.search.solve_program import Point, Start
    from ceopt.search.state import State
    from ceopt.solvers.problem import Outcome

#: Times that a failed check may send the program back to the solver, for one answer. What the model itself refuses is
#: left out point by point, and does not count.
MOST_REPAIRS: Final = 6
#: What a stop without a point means for the search.
_STOPS: Final = {
    Stop.TIME_LIMIT: Status.TIME_LIMIT,
    Stop.INTERRUPTED: Status.TIME_LIMIT,
    Stop.UNBOUNDED: Status.UNBOUNDED,
}

#: How solvers, as their sessions put it, say that their time ended; the latter is MOSEK's.
_TIME_ENDED: Final = ("time limit", "max time")


def solve_and_check(state: State) -> State:
    """Solve one program and check its point.

    Returns
    -------
    State
        In the phase ``PROGRAM``, asking for more, where the check failed; else with what the search came to.
    """
    question = state.question
    tries = state.tries
    if tries.repairs > MOST_REPAIRS:
        count = MOST_REPAIRS + 1
        failure = tries.failures[-1]
        text = f"{count} points of the solver failed the check; the last: {failure}."
        reason = said(text, "points_failed", count=count, failure=failure)
        return fall_back(state, Finding(Status.REJECTED, bound=tries.bound, reason=reason))
    left = question.deadline - time.perf_counter()
    if state.interrupted or left <= 0:
        return fall_back(state, out_of_time(state))
    try:
        state, solved = attempt(state, left)
    except OutOfTimeError as error:
        state = replace(state, stage=error.stage)
        return fall_back(state, out_of_time(state))
    state = _with_bound(state, solved)
    if solved.outcome.status is Stop.INFEASIBLE and state.exact and state.coarse is not None:
        # Asked to be exact because the model refused ``coarse``, a solver may call a large network infeasible: it goes
        # on as usual, without that point.
        return replace(_left_out(state, state.coarse), exact=False, coarse=None)
    if solved.point is None:
        return fall_back(state, _without_point(state, solved.outcome))
    check = question.check(solved.point)
    if not check.valid and (question.prepared.is_own or question.prepared.predictor.is_trees):
        return _refused(state, solved.point, check)
    repeats = not state.differs(solved.point)
    if repeats:
        check = check._replace(broken=(*check.broken, f"diversity: {state.tries.diversity.text}"))
    if check.valid and not check.broken:
        return accept_checked(
            state, solved.point, check.prediction, state.tries.bound, _message(solved.outcome), solved.cluster
        )
    return _repaired(_failed(state, check), solved.point, repeats=repeats)


# ---- points known before a program is solved, and the cost that it need not exceed -----------------------------------
#: Share of the time that the search for a start may take; its own limit is a count of rows, long before this.
_SHARE: Final = 0.25
#: How many rows of the data the search for a start looks at.
_ROWS: Final = 2000
#: How many of the user's points that pass every check are kept.
_GIVEN: Final = 20


def find_starts(state: State, *, even_linear: bool = False) -> State:
    """Look for cheap points; for linear models the program itself is as quick, where its numbers are ordinary."""
    question = state.question
    predictor = question.prepared.predictor
    settings = question.settings
    person = question.person
    with question.stopwatch.counting("start"):
        given = _given(state)
    state = replace(state, starts=given, found=state.found or given)
    if predictor.is_linear and not even_linear and not has_extreme_numbers(person.reach, question.space):
        return state
    with question.stopwatch.counting("start"):
        began = time.perf_counter()
        search = StartSearch(
            predictor, lambda points: _slack_beyond_margin(state, points), settings.cost, settings.rules
        )
        try:
            starts = search.run(
                question.factual,
                person.reach,
                _sample(state),
                seed=settings.random_state,
                deadlines=(began + _SHARE * (question.deadline - began), question.deadline),
            )
        except OutOfTimeError as error:
            return replace(state, stage=error.stage)
    both = tuple(sorted([*given, *starts], key=lambda start: start[0]))
    if state.found == given:
        return replace(state, starts=both, found=both)
    return replace(state, starts=both)


def _given(state: State) -> tuple[Start, ...]:
    """Return the user's own points, put where the person can be, that pass every check; the cheapest first."""
    question = state.question
    prepared = question.prepared
    if prepared.starts is None or not len(prepared.starts):
        return ()
    space = question.space
    points = put_in_reach(prepared.starts, space, question.factual, question.person.reach, question.settings.rules)
    points = points[_slack_beyond_margin(state, points) >= 0.0]
    named = points_of(space, points)
    if not named:
        return ()
    _, met = prepared.judge(named)
    good = itertools.compress(named, met.tolist())
    kept: list[Start] = []
    for number, point in enumerate(sorted(good, key=question.cost)):
        if len(kept) == _GIVEN or (number > 0 and question.is_late):
            break
        if not broken_rules(question.settings.rules, space, question.factual, point):
            kept.append((question.cost(point), point))
    return tuple(kept)


def _sample(state: State) -> NDArray[np.float64] | None:
    """Return the rows of the data that the model favours, or some of them where they are many."""
    rows = state.question.prepared.favoured
    if rows is None or len(rows) <= _ROWS:
        return rows
    rng = np.random.default_rng(state.question.settings.random_state)
    return rows[np.sort(rng.choice(len(rows), _ROWS, replace=False))]


def _slack_beyond_margin(state: State, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the slack by which the next program would judge points (n, d), shape (n,)."""
    prepared = state.question.prepared
    if state.margin is None or (prepared.is_own and state.margin == 0.0):  # ties as the library has them
        return prepared.slacks(points)
    least = state.margin * (1.0 + START_MARGIN_ROUNDING) + prepared.steps
    return slack(prepared.predictor, points, prepared.settings.target) - least


def budget_for_next(state: State) -> float | None:
    """Return a cost that the next answer need not exceed: that of the cheapest start that surely is another one.

    Not so with the leaf form, which tells cells apart only by the leaves that they reach.
    """
    settings = state.question.settings
    if settings.diversity is None:
        return cost_within_which(state.starts, settings.n)
    if state.answers and settings.formulation == "leaf" and settings.diversity.needs_all_cells:
        return None
    for cost, point in state.starts:
        if state.surely_differs(point):
            return cost
    return None


def cost_within_which(starts: Sequence[Start], n: int) -> float | None:
    """Upper bound on the n-th best cost from the starts in hand; None without any.

    Within the cost of the cheapest start a solver meets next to nothing on its way; without a budget it has ten times
    the work.
    """
    if not starts:
        return None
    return starts[min(n, len(starts)) - 1][0]


def start_in_hand(state: State, *, below: float = math.inf, is_judge: bool = True) -> dict[str, float] | None:
    """Return the cheapest start that passes the check and is another answer, if it costs less.

    With ``is_judge`` the start would contradict what the solver says. Of a further answer it may not, as long as the
    solver is believed: the start may differ from the answers before it by a column that no row reads, or by less than
    answers must.
    """
    if state.answers and is_judge and not state.doubted:
        return None
    question = state.question
    for number, (cost, point) in enumerate(state.found):
        is_late = number > 0 and time.perf_counter() > question.deadline + GRACE_S
        if cost >= below or is_late:
            return None
        if not state.surely_differs(point):
            continue
        check = question.check(point)
        if check.valid and not check.broken:
            return point
    return None


# ---- asking and solving ----------------------------------------------------------------------------------------------
def attempt(
    state: State,
    seconds: float,
    *,
    most: float | None = None,
    below: float = 0.0,
    also: Sequence[tuple[Point, AbstractDiversity]] = (),
) -> tuple[State, SolvedProgram]:
    """Solve once.

    Parameters
    ----------
    state
        Says what the program shall keep out, and begin with.
    seconds
        For building and solving.
    most
        A cost beyond which nothing is wanted.
    below
        By how much the decision may be missed where there is no margin.
    also
        Further points, and in what the answer is to differ from each.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C stopped the solver, and the caller keeps nothing.
    """
    question = state.question
    request = _request(state, most, below)
    request = replace(request, barred=[*request.barred, *also])
    began = time.perf_counter()
    try:
        solved = question.programs.run(request, seconds)
    except OutOfTimeError:
        question.stopwatch.add({"build": time.perf_counter() - began})
        raise
    question.stopwatch.add({"build": solved.build_s, "lower": solved.lower_s, "solve": solved.solve_s})
    interrupted = solved.outcome.status is Stop.INTERRUPTED
    if interrupted and not question.keep_on_interrupt:
        raise KeyboardInterrupt
    met: tuple[dict[str, float], ...] = ()
    if request.met:
        on_the_way = [*solved.met, *(point for _, point in state.found)]
        met = tuple(sorted(on_the_way, key=question.cost))
    state = replace(
        state,
        solver=solved.solver,
        size=state.size or solved.size,
        met=met,
        interrupted=interrupted,
        doubted=state.doubted or solved.outcome.doubted,
    )
    return state, solved


def _request(state: State, most: float | None, below: float) -> SolveRequest:
    """Return what the next program is asked for."""
    question = state.question
    settings = state.question.settings
    prepared = question.prepared
    if prepared.is_own and not prepared.predictor.is_trees and state.margin == 0.0:
        # What the model refuses is left out point by point.
        below = rounding_in(prepared.predictor, question.factual, question.person.reach)
    request = SolveRequest(
        margin=state.margin,
        below=below,
        barred=[*state.differing(), *((point, OtherDecisions()) for point in state.barred)],
        refused=state.refused,
        exact=state.exact,
        met=settings.n - 1 if settings.diversity is None else 0,
    )
    if most is not None:
        return replace(request, budget=most, closed=True)
    limit = state.most()
    if limit is not None:
        return replace(request, starts=state.starts, budget=limit * (1.0 + settings.relative_gap), closed=True)
    if not state.barred:  # a barred point may itself have set the budget: then the whole reach is searched
        return replace(request, starts=state.starts, budget=budget_for_next(state))
    return request


def _with_bound(state: State, solved: SolvedProgram) -> State:
    """Note the least cost that the program proves, if every point that may be the answer was in it.

    Points that the model itself refuses may be missing. A larger margin, a barred point or a firmer difference between
    answers leave out points that may be answers. A margin and barred points stay for the answers after it.
    """
    tries = state.tries
    proved = state.question.bound_on_cost(solved.outcome)
    if not _is_as_asked(state) or proved is None:
        return state
    if tries.bound is not None:
        proved = max(tries.bound, proved)
    return replace(state, tries=replace(tries, bound=proved))


def _is_as_asked(state: State) -> bool:
    """Tell whether the program leaves out nothing but what the model refuses and what a least margin costs."""
    return state.has_least_margin and not state.barred and state.diversity is state.tries.diversity


# ---- after a failed check --------------------------------------------------------------------------------------------
def _failed(state: State, check: Check) -> State:
    """Note why a point failed the check."""
    if check.valid:
        failure = said(f"it breaks {', '.join(check.broken)}", "breaks_rules", rules=tuple(check.broken))
    else:
        text = f"the model predicts {check.prediction}"
        failure = said(text, "model_predicts", label=str(check.prediction))
    return replace(state, tries=replace(state.tries, failures=(*state.tries.failures, failure)))


def _refused(state: State, point: dict[str, float], check: Check) -> State:
    """Leave out what the user's own model refuses, for good: a tie that floats decide, or the solver's tolerance.

    Through the big-Ms of a network that tolerance is much: there the solver is first asked to be exact.
    """
    predictor = state.question.prepared.predictor
    if not (predictor.is_trees or predictor.is_linear or state.exact or state.refused):
        return replace(state, exact=True, coarse=point)
    state = _left_out(state, point)
    if state.margin is None or state.question.prepared.is_own:
        return state
    state = _failed(state, check)
    if state.margin == 0.0:  # ties are the library's to decide
        return replace(state, margin=None)
    return state


def _left_out(state: State, point: dict[str, float]) -> State:
    """Refuse a point; a start that the model refuses as well is no bound of an answer's cost."""
    starts = state.starts
    if not state.refused:
        starts = tuple(start for start in starts if state.question.check(start[1]).valid)
    return replace(state, starts=starts, refused=(*state.refused, point))


def _repaired(state: State, point: dict[str, float], *, repeats: bool) -> State:
    """First ask for exact integers; then bar the cell of trees, and raise the margin of all other models.

    A solver takes 1e-6 for 0, and through a large big-M that is much.
    """
    state = replace(state, tries=replace(state.tries, repairs=state.tries.repairs + 1))
    firmer = state.diversity.firmer()
    if repeats and state.exact and firmer is not state.diversity:
        return replace(state, diversity=firmer)
    if not state.exact:
        return replace(state, exact=True)
    prepared = state.question.prepared
    if prepared.predictor.is_trees:
        return replace(state, barred=(*state.barred, point))
    assert state.margin is not None  # noqa: S101 - None of trees alone, which have returned
    margin = max(10.0 * state.margin, FIRST_REPAIR * prepared.least_margin)
    # Starts found at the smaller margin would set a budget that the program cannot keep any more.
    return find_starts(replace(state, margin=margin, starts=()))


# ---- what ends the search for one answer: a point that passed the check, a start in its place, or nothing ------------
def accept_checked(  # noqa: PLR0917 - a point and what is known of it, in the order of its finding
    state: State, point: dict[str, float], prediction: Any, bound: float | None, message: str, cluster: Any = None
) -> State:
    """Take a point that passed the check as the next answer, or a start that is cheaper: then nothing is proved."""
    question = state.question
    cost = question.cost(point)
    cheaper = start_in_hand(state, below=cost * (1.0 - CHEAPER - question.share_of_steps))
    if cheaper is not None:
        point = cheaper
        cost = question.cost(cheaper)
        cluster = None
        prediction = question.check(point).prediction
    doubted = state.doubted
    if is_disproved(bound, cost, share=question.share_of_steps):
        doubted = True
        assert bound is not None  # noqa: S101 - what is disproved was proved
        claim = said(
            f"{state.solver} proves that nothing costs less than {digits(bound)}, but this verified answer costs less: "
            "nothing is proved.",
            "bound_disproved", solver=state.solver, bound=bound,
        )  # fmt: skip
        message = together(message, claim)
    with without_deadline():
        if cluster is None:
            cluster = nearest_cluster(question.settings.rules, question.space, point)
        answer = answer_of(
            question.prepared,
            question.factual,
            point,
            prediction=prediction,
            bound=None if doubted else bound,
            rank=len(state.answers) + 1,
            cluster=cluster,
        )
    assert answer.gap is not None  # noqa: S101 - made by the line above
    if answer.gap <= question.settings.relative_gap:
        finding = Finding(Status.OPTIMAL, answer, answer.bound)
    else:
        open_gap = f"The gap of {digits(rounded(answer.gap, 3, 'up'))} could not be closed."
        reason = message or said(open_gap, "gap_open", percent=rounded(100.0 * answer.gap, 2, "up"))
        finding = Finding(Status.FEASIBLE, answer, answer.bound, reason)
    return replace(state, answers=(*state.answers, (answer, point)), doubted=doubted).ended(finding)


def is_disproved(bound: float | None, cost: float, *, share: float = 0.0) -> bool:
    """Tell whether the cost of a verified answer contradicts a bound on the least cost.

    ``share`` is what the steps of the model's own arithmetic, and of a column's floats, explain beside a solver's
    tolerances.
    """
    return bound is not None and bound > cost * (1.0 + CHEAPER + share) + LEAST_CHEAPER


def _message(outcome: Outcome) -> str:
    """Return what a solver says of its end, which sentences say in plain words where time or Ctrl-C was the reason."""
    if outcome.message and outcome.status is Stop.INTERRUPTED:
        return said(outcome.message, "interrupted")
    # A run that has a point in hand has the status "feasible", whatever ended it.
    of_time = outcome.status is Stop.TIME_LIMIT or any(words in outcome.message for words in _TIME_ENDED)
    if outcome.message and of_time:
        return said(outcome.message, "time_ended_before")
    return outcome.message


def _without_point(state: State, outcome: Outcome) -> Finding:
    """Return what a program without a point says of the next answer."""
    tries = state.tries
    if outcome.status is not Stop.INFEASIBLE:
        reason = _message(outcome) or f"The solver stopped: {outcome.status}."
        return Finding(_STOPS.get(outcome.status, Status.ERROR), bound=tries.bound, reason=reason)
    if state.barred or (tries.failures and not _is_as_asked(state)):
        if tries.failures:
            failure = tries.failures[-1]
        else:
            failure = said("it breaks a rule", "breaks_a_rule")
        text = f"No other point exists; the solver's failed the check: {failure}."
        reason = said(text, "no_other_point", failure=failure)
        return Finding(Status.REJECTED, bound=tries.bound, reason=reason)
    if state.doubted:
        text = f"{state.solver} calls the program infeasible, and is not believed any more."
        reason = said(text, "not_believed", solver=state.solver)
        return Finding(Status.INFEASIBLE, reason=reason)
    if not state.has_least_margin:  # what a larger margin leaves out was not searched
        text = "Nothing more is in reach at the margin that the user's model made necessary."
        reason = said(text, "nothing_at_margin")
        return Finding(Status.INFEASIBLE, reason=reason)
    return none_in_reach()


def none_in_reach() -> Finding:
    """Return the finding of a proved infeasible question."""
    reason = said("Proved: nothing in reach meets the target and every rule.", "proved_none")
    return Finding(Status.INFEASIBLE, reason=reason, proved=True)


def out_of_time(state: State) -> Finding:
    """Return the finding where the time limit or Ctrl-C ended the search for the next answer."""
    if state.interrupted:
        reason: str = said("The search was interrupted.", "interrupted")
    else:
        reason = used_up(state.question.settings.time_limit_s, state.stage)
    tries = state.tries
    if tries.failures:
        failure = tries.failures[-1]
        failed = said(f"The solver's point failed: {failure}.", "point_failed", failure=failure)
        reason = together(reason, failed)
        return Finding(Status.REJECTED, bound=tries.bound, reason=reason)
    return Finding(Status.TIME_LIMIT, bound=tries.bound, reason=reason)


def used_up(limit_s: float, stage: str) -> Said:
    """Return the sentence that says what the time limit ended."""
    during = f" while {stage}" if stage else ""
    return said(f"The time limit of {digits(limit_s)} s is used up{during}.", "time_used_up", limit_s=limit_s)


def fall_back(state: State, finding: Finding) -> State:
    """Take a start that passes the check where the solver claims infeasibility, which it disproves.

    Where only the time is up, no further answer is taken from the starts.
    """
    question = state.question
    is_contradicted = finding.status in {Status.INFEASIBLE, Status.UNBOUNDED}
    if state.interrupted or (state.answers and not is_contradicted and finding.status is not Status.ERROR):
        if state.answers:
            return state.ended(finding)
        return _with_start_or(state, finding, state.tries.bound, finding.reason)
    if question.prepared.predictor.is_linear and not state.found and not question.is_late:
        state = find_starts(state, even_linear=True)
    if not is_contradicted:
        return _with_start_or(state, finding, state.tries.bound, finding.reason, is_judge=False)
    text = f"{state.solver} calls the program {finding.status}, but a point that passes the check is in hand."
    started = _with_start_or(state, finding, None, said(text, "start_in_hand", solver=state.solver))
    return replace(started, doubted=started.doubted or started.last is not finding)


def _with_start_or(state: State, finding: Finding, bound: float | None, reason: str, *, is_judge: bool = True) -> State:
    """Take the cheapest start that passes the check, or keep the finding."""
    point = start_in_hand(state, is_judge=is_judge)
    if point is None:
        return state.ended(finding)
    return accept_checked(state, point, state.question.check(point).prediction, bound, reason)
