"""Solve one program and check its point: an answer, a repaired next program, or the reason for no answer."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ceopt.base.results import Status
from ceopt.base.said import Said, said, together
from ceopt.formulations.constraints.diversity.diversity import OtherDecisions
from ceopt.formulations.constraints.rule import nearest_cluster
from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.predictors.ties import row_relaxation
from ceopt.oracle.rows import points_of
from ceopt.search.build_answer import answer_of
from ceopt.search.least_costs import LeastCost, can_add_up
from ceopt.search.prepare import put_in_reach
from ceopt.search.solve_program import SolvedProgram, SolveRequest, has_extreme_numbers
from ceopt.search.state import GRACE_S, Finding, Phase
from ceopt.solvers.deadline import OutOfTimeError, without_deadline
from ceopt.solvers.problem import Stop
from ceopt.tolerances import CHEAPER, FIRST_REPAIR, LEAST_CHEAPER

if TYPE_CHECKING:
    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.oracle.model import Check
    from ceopt.search.nearer import Point, Start
    from ceopt.search.state import Question, State
    from ceopt.solvers.problem import Outcome

#: Most programs that are solved again for one answer because its point failed the check. Points that the user's model
#: refuses are excluded one by one and do not count.
MOST_REPAIRS: Final = 6
#: Factor by which a repair raises the margin.
_MARGIN_FACTOR: Final = 10.0
#: What a stop without a point means for the search.
_STOPS: Final = {
    Stop.TIME_LIMIT: Status.TIME_LIMIT,
    Stop.INTERRUPTED: Status.TIME_LIMIT,
    Stop.UNBOUNDED: Status.UNBOUNDED,
}

#: Words in a session's message that mean a time limit; the second is MOSEK's.
_TIME_ENDED: Final = ("time limit", "max time")


def solve(state: State) -> State:
    """Solve one program.

    Returns
    -------
    State
        In the phase ``CHECK`` if there is a point; otherwise in ``MARGIN`` with the finding.
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
        # With exact integers a solver may call the program of a large network infeasible. The search goes on with the
        # usual tolerance and with the refused point ``coarse`` excluded.
        return replace(_exclude_refused(state, state.coarse), exact=False, coarse=None)
    if solved.point is None:
        return fall_back(state, _without_point(state, solved.outcome))
    return replace(state, phase=Phase.CHECK, solved=solved)


def check_solved(state: State) -> State:
    """Check the point of the program that was solved.

    Returns
    -------
    State
        In the phase ``PROGRAM`` with a tightened next program if the check failed; otherwise in the phase ``MARGIN``
        with the finding.
    """
    question = state.question
    solved = state.solved
    assert solved is not None and solved.point is not None  # noqa: S101, PT018 - the phase before ends with one
    state = replace(state, phase=Phase.PROGRAM, solved=None)
    check = question.check(solved.point)
    model_decides = question.prepared.asks_model or question.prepared.predictor.is_trees
    if model_decides and not check.valid:
        return _after_refusal(state, solved.point, check)
    repeats = not state.differs(solved.point)
    if repeats:
        check = check._replace(broken=(*check.broken, f"diversity: {state.tries.first_diversity.text}"))
    if check.valid and not check.broken:
        return accept_checked(
            state, solved.point, check.prediction, state.tries.bound, _message(solved.outcome), solved.cluster
        )
    return _tighten(_note_failure(state, check), solved.point, repeats=repeats)


# ---- points known before a program is solved, and the cost that it need not exceed -----------------------------------
#: Largest share of the remaining time that the search for a start may take. Usually it ends earlier, by its own limit
#: on rows.
_START_TIME_SHARE: Final = 0.25
#: The same where nothing is found by then and a program is to follow.
_LAST_TIME_SHARE: Final = 0.5
#: Most of the user's own starting points that are kept.
_MOST_USER_STARTS: Final = 20


def looks_first(question: Question) -> bool:
    """Whether points are looked for before any bound: not of a linear model that is soon settled without."""
    settings = question.settings
    if not question.prepared.predictor.is_linear or has_extreme_numbers(question.person.reach, question.space):
        return True
    return not (settings.proof or settings.n > 1 or can_add_up(question.prepared))


def find_starts(state: State, *, even_linear: bool = False) -> State:
    """Return the state with cheap starting points.

    For a linear model with ordinary numbers only the user's own are used, unless ``even_linear``: solving its program
    takes no longer than a search.
    """
    question = state.question
    predictor = question.prepared.predictor
    settings = question.settings
    person = question.person
    with question.stopwatch.counting("start"):
        user_starts = _user_starts(state)
        state = replace(state, starts=user_starts, found=state.found or user_starts)
        if not (even_linear or looks_first(question)):
            return state
        began = time.perf_counter()
        left = question.deadline - began
        last_share = _LAST_TIME_SHARE if settings.proof else 1.0
        deadlines = began + _START_TIME_SHARE * left, began + last_share * left
        fitted = replace(question.prepared, margin=state.margin)
        try:
            met, shared_s = question.predictions.met(fitted, person, deadlines)
        except OutOfTimeError as error:
            return replace(state, stage=error.stage)
        question.stopwatch.add({"start": shared_s})
        state = state.later(-shared_s)
    if met.bound > 0.0 and predictor.is_trees:
        bound = settings.cost.from_objective(met.bound)
        state = replace(state, tries=replace(state.tries, bound=bound))
        if not settings.proof:
            state = replace(state, least=LeastCost(bound))
    return _with_starts(state, [(question.cost(point), point) for point in points_of(question.space, met.points)])


def _with_starts(state: State, starts: Sequence[Start]) -> State:
    """Return the state that knows these starts besides the user's own."""
    both = tuple(sorted([*state.starts, *starts], key=itemgetter(0)))
    if state.found == state.starts:  # so far no search has found a start
        return replace(state, starts=both, found=both)
    return replace(state, starts=both)


def _user_starts(state: State) -> tuple[Start, ...]:
    """Return the user's own points, moved into the person's reach, that pass every check; the cheapest first."""
    question = state.question
    prepared = question.prepared
    if prepared.starts is None or not len(prepared.starts):
        return ()
    space = question.space
    points = put_in_reach(prepared.starts, space, question.factual, question.person.reach, question.settings.rules)
    named = points_of(space, points[slack_in_program(state, points) >= 0.0])
    if not named:
        return ()
    _, is_met = prepared.judge(named)
    good = itertools.compress(named, is_met.tolist())
    kept: list[Start] = []
    for number, point in enumerate(sorted(good, key=question.cost)):
        if len(kept) == _MOST_USER_STARTS or (number > 0 and question.is_late):
            break
        if question.keeps_rules(point):
            kept.append((question.cost(point), point))
    return tuple(kept)


def slack_in_program(state: State, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much points (n, d) exceed the margin of the next program, (n,); without a margin, their slack."""
    return state.question.prepared.slacks_beyond(points, state.margin)


def budget_for_next(state: State) -> float | None:
    """Return a cost that the next answer need not exceed: that of the cheapest start that is surely another answer.

    Without a diversity it is the one of :func:`nth_start_cost`. None without such a start; and with the leaf
    formulation after the first answer, if answers must differ by cells, as there two cells with the same leaves are
    one.
    """
    settings = state.question.settings
    if settings.diversity is None:
        return nth_start_cost(state.starts, settings.n)
    if state.answers and settings.formulation == "leaf" and settings.diversity.needs_all_cells:
        return None
    return next((cost for cost, point in state.starts if state.surely_differs(point)), None)


def nth_start_cost(starts: Sequence[Start], n: int) -> float | None:
    """Return an upper bound on the n-th best cost: that of the n-th start, or of the last; None without starts.

    With the cheapest start as budget a solver would meet hardly any other points, of which n - 1 are wanted; without a
    budget it takes ten times as long.
    """
    if not starts:
        return None
    return starts[min(n, len(starts)) - 1][0]


def start_in_hand(
    state: State, *, cheaper_than: float = math.inf, contradicts_solver: bool = True
) -> tuple[dict[str, float], Check] | None:
    """Return the cheapest start that passes the check and is another answer, if it costs less, and its check.

    With ``contradicts_solver`` the start is evidence against the solver. For a further answer it is none unless the
    solver is doubted already: such a start may differ from the earlier answers only in a column that is in no row, or
    by less than the diversity asks.
    """
    if state.answers and contradicts_solver and not state.doubted:
        return None
    question = state.question
    for number, (cost, point) in enumerate(state.found):
        is_past_grace = number > 0 and time.perf_counter() > question.deadline + GRACE_S
        if cost >= cheaper_than or is_past_grace:
            return None
        if not state.surely_differs(point):
            continue
        check = question.check(point)
        if check.valid and not check.broken:
            return point, check
    return None


# ---- asking and solving ----------------------------------------------------------------------------------------------
def attempt(
    state: State,
    seconds: float,
    *,
    cost_limit: float | None = None,
    below: float = 0.0,
    also: Sequence[tuple[Point, AbstractDiversity]] = (),
) -> tuple[State, SolvedProgram]:
    """Return the state after the next program, and what that program came to.

    Parameters
    ----------
    state
        Gives the points to exclude and the starting points.
    seconds
        For building and solving.
    cost_limit
        Upper limit on the cost, as a row of the program.
    below
        By how much the row of the decision is relaxed if there is no margin.
    also
        Additional points to exclude, each with the diversity by which the answer must differ from it.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C stopped the solver, and the caller keeps nothing.
    """
    question = state.question
    request = _request(state, cost_limit, below, also)
    began = time.perf_counter()
    try:
        solved = question.program_solver.run(request, seconds)
    except OutOfTimeError:
        question.stopwatch.add({"build": time.perf_counter() - began})
        raise
    question.stopwatch.add({"build": solved.build_s, "lower": solved.lower_s, "solve": solved.solve_s})
    interrupted = solved.outcome.status is Stop.INTERRUPTED
    if interrupted and not question.keep_on_interrupt:
        raise KeyboardInterrupt
    incumbents: tuple[dict[str, float], ...] = ()
    if request.n_incumbents:
        points = [*solved.incumbents, *(point for _, point in state.found)]
        incumbents = tuple(sorted(points, key=question.cost))
    state = replace(
        state,
        solver=solved.solver,
        size=state.size or solved.size,
        incumbents=incumbents,
        interrupted=state.interrupted or interrupted,
        doubted=state.doubted or solved.outcome.doubted,
    )
    return state, solved


def _request(
    state: State, cost_limit: float | None, below: float, also: Sequence[tuple[Point, AbstractDiversity]]
) -> SolveRequest:
    """Return the request for the next program; the parameters are those of :func:`attempt`."""
    question = state.question
    settings = question.settings
    prepared = question.prepared
    if prepared.asks_model and state.margin == 0.0:
        # A tie may be lost to rounding; points that the model refuses are excluded one by one.
        below = row_relaxation(prepared.predictor, question.factual, question.person.reach)
    request = SolveRequest(
        margin=state.margin,
        below=below,
        barred=[*state.earlier_with_diversity(), *((point, OtherDecisions()) for point in state.barred), *also],
        refused=state.refused,
        exact=state.exact,
    )
    if settings.diversity is None:
        request = replace(request, n_incumbents=settings.n - 1)
    if cost_limit is not None:
        return replace(request, budget=cost_limit, is_hard_limit=True)
    limit = state.cost_limit()
    if limit is not None:
        return replace(request, starts=state.starts, budget=limit * (1.0 + settings.relative_gap), is_hard_limit=True)
    if not state.barred:  # no budget with barred points: it may be the cost of one of them
        return replace(request, starts=state.starts, budget=budget_for_next(state))
    return request


def _with_bound(state: State, solved: SolvedProgram) -> State:
    """Return the state with the next answer's bound raised to that of the program, if it excludes no possible answer.

    Points that the model refuses are no possible answers. A raised margin, a barred point and a firmer diversity may
    exclude answers; the first two also stay for later answers.
    """
    tries = state.tries
    proved = state.question.bound_on_cost(solved.outcome)
    if not _is_as_asked(state) or proved is None:
        return state
    if tries.bound is not None:
        proved = max(tries.bound, proved)
    return replace(state, tries=replace(tries, bound=proved))


def _is_as_asked(state: State) -> bool:
    """Tell whether the program excludes no possible answer other than those within the original margin."""
    return state.has_least_margin and not state.barred and state.diversity is state.tries.first_diversity


# ---- after a failed check --------------------------------------------------------------------------------------------
def _note_failure(state: State, check: Check) -> State:
    """Return the state with a note of why a point failed the check."""
    text = f"the model predicts {check.prediction}"
    failure = said(text, "model_predicts", label=str(check.prediction))
    if check.valid:
        failure = said(f"it breaks {', '.join(check.broken)}", "breaks_rules", rules=tuple(check.broken))
    return replace(state, tries=replace(state.tries, failures=(*state.tries.failures, failure)))


def _after_refusal(state: State, point: dict[str, float], check: Check) -> State:
    """Return the state that excludes a point which the user's own model refuses from all further programs.

    The program let it pass because of a tie that rounding decides, or because of the solver's tolerance. Big-M rows of
    a network amplify that tolerance, so for a network exact integers are asked for first.
    """
    predictor = state.question.prepared.predictor
    if not (predictor.is_trees or predictor.is_linear or state.exact or state.refused):
        return replace(state, exact=True, coarse=point)
    state = _exclude_refused(state, point)
    if state.margin is None or state.question.prepared.asks_model:
        return state
    state = _note_failure(state, check)
    if state.margin == 0.0:
        # A margin of 0 leaves ties open: from now on the rows follow the library's own decision.
        return replace(state, margin=None)
    return state


def _exclude_refused(state: State, point: dict[str, float]) -> State:
    """Return the state that excludes a point which the model refused.

    At the first such point also drop the starts that the model refuses: their cost bounds no answer's. Should a start
    found later set too small a budget, the program is solved again without it.
    """
    starts = state.starts
    if not state.refused:
        starts = tuple(itertools.compress(starts, state.question.accepts([point for _, point in starts])))
    return replace(state, starts=starts, refused=(*state.refused, point))


def _tighten(state: State, point: dict[str, float], *, repeats: bool) -> State:
    """Return the state with a tightened next program after a point has failed the check.

    Exact integers are asked for first, as a solver accepts 1e-6 as 0, and a large big-M multiplies that. Then comes a
    firmer diversity, if the point repeats an answer; then, for trees, its cell is barred; for other models the margin
    is raised.
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
    margin = max(_MARGIN_FACTOR * state.margin, FIRST_REPAIR * prepared.least_margin)
    # Starts found at the smaller margin could set a budget that is too small for the larger one.
    return find_starts(replace(state, margin=margin, starts=()))


# ---- the end of the search for one answer: a point that passed the check, a start in its place, or none --------------
def accept_checked(  # noqa: PLR0917 - a point and what is known of it, in the order of its finding
    state: State, point: dict[str, float], prediction: Any, bound: float | None, message: str, cluster: Any = None
) -> State:
    """Return the state with a checked point as the next answer, or with a cheaper start in its place.

    If its cost is below the bound, the bound is dropped and the solver doubted.
    """
    question = state.question
    cost = question.cost(point)
    cheaper = start_in_hand(state, cheaper_than=cost * (1.0 - CHEAPER - question.share_of_rounding))
    if cheaper is not None:
        point, check = cheaper
        cost = question.cost(point)
        cluster = None
        prediction = check.prediction
    doubted = state.doubted
    if is_disproved(bound, cost, share=question.share_of_rounding):
        doubted = True
        assert bound is not None  # noqa: S101 - a bound that is None is not disproved
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

    ``share`` is the share of the cost by which the steps of the model's own arithmetic, and of a column's floats, may
    let it differ from the program's, in addition to the solver's tolerances.
    """
    return bound is not None and bound > cost * (1.0 + CHEAPER + share) + LEAST_CHEAPER


def _message(outcome: Outcome) -> str:
    """Return the solver's message; after a time limit or Ctrl-C tagged as such, to be put in plain words later."""
    if outcome.message and outcome.status is Stop.INTERRUPTED:
        return said(outcome.message, "interrupted")
    # A run that has a point in hand has the status "feasible", whatever ended it.
    of_time = outcome.status is Stop.TIME_LIMIT or any(words in outcome.message for words in _TIME_ENDED)
    if outcome.message and of_time:
        return said(outcome.message, "time_ended_before")
    return outcome.message


def _without_point(state: State, outcome: Outcome) -> Finding:
    """Return the finding for a program whose solver returned no point."""
    tries = state.tries
    if outcome.status is not Stop.INFEASIBLE:
        reason = _message(outcome) or f"The solver stopped: {outcome.status}."
        return Finding(_STOPS.get(outcome.status, Status.ERROR), bound=tries.bound, reason=reason)
    if state.barred or (tries.failures and not _is_as_asked(state)):
        failures = tries.failures or (said("it breaks a rule", "breaks_a_rule"),)
        text = f"No other point exists; the solver's failed the check: {failures[-1]}."
        reason = said(text, "no_other_point", failure=failures[-1])
        return Finding(Status.REJECTED, bound=tries.bound, reason=reason)
    if state.doubted:
        text = f"{state.solver} calls the program infeasible, and is not believed any more."
        return Finding(Status.INFEASIBLE, reason=said(text, "not_believed", solver=state.solver))
    if not state.has_least_margin:  # a raised margin excludes points that were not searched
        text = "Nothing more is in reach at the margin that the user's model made necessary."
        return Finding(Status.INFEASIBLE, reason=said(text, "nothing_at_margin"))
    return none_in_reach()


def none_in_reach() -> Finding:
    """Return the finding that no answer exists, as proved."""
    reason = said("Proved: nothing in reach meets the target and every rule.", "proved_none")
    return Finding(Status.INFEASIBLE, reason=reason, proved=True)


def out_of_time(state: State) -> Finding:
    """Return the finding if the time limit or Ctrl-C ended the search for the next answer."""
    reason = used_up(state.question.settings.time_limit_s, state.stage)
    if state.interrupted:
        reason = said("The search was interrupted.", "interrupted")
    tries = state.tries
    if tries.failures:
        failure = tries.failures[-1]
        failed = said(f"The solver's point failed: {failure}.", "point_failed", failure=failure)
        return Finding(Status.REJECTED, bound=tries.bound, reason=together(reason, failed))
    return Finding(Status.TIME_LIMIT, bound=tries.bound, reason=reason)


def used_up(limit_s: float, stage: str) -> Said:
    """Return the sentence that says what the time limit ended."""
    during = f" while {stage}" if stage else ""
    return said(f"The time limit of {digits(limit_s)} s is used up{during}.", "time_used_up", limit_s=limit_s)


def fall_back(state: State, finding: Finding) -> State:
    """Return the state that ends the search for one answer: with a start that passes the check, or with ``finding``.

    Such a start disproves a claim of infeasibility or unboundedness. A further answer is not taken from the starts just
    because the time is up.
    """
    question = state.question
    claims_no_optimum = finding.status in {Status.INFEASIBLE, Status.UNBOUNDED}
    is_error = finding.status is Status.ERROR
    if state.answers and (state.interrupted or not (claims_no_optimum or is_error)):
        return state.ended(finding)
    if state.interrupted:
        return _with_start_or(state, finding)
    if question.prepared.predictor.is_linear and not state.found and not question.is_late:
        state = find_starts(state, even_linear=True)
    if not claims_no_optimum:
        return _with_start_or(state, finding)
    text = f"{state.solver} calls the program {finding.status}, but a point that passes the check is in hand."
    return _with_start_or(state, finding, said(text, "start_in_hand", solver=state.solver))


def _with_start_or(state: State, finding: Finding, contradiction: str = "") -> State:
    """Return the state with the cheapest start that passes the check as the next answer, or else with the finding.

    ``contradiction`` says that such a start contradicts the solver: then nothing that it proved is believed any more.
    """
    start = start_in_hand(state, contradicts_solver=bool(contradiction))
    if start is None:
        return state.ended(finding)
    point, check = start
    if not contradiction:
        return accept_checked(state, point, check.prediction, state.tries.bound, finding.reason)
    return replace(accept_checked(state, point, check.prediction, None, contradiction), doubted=True)
