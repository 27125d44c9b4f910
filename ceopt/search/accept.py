"""What ends the search for one answer: a point that passed the check, a start in its place, or nothing and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ceopt.formulations.constraints.rule import nearest_cluster
from ceopt.query.build_answer import answer_of
from ceopt.search.starts import find_starts, start_in_hand
from ceopt.search.state import Finding, State
from ceopt.solvers.deadline import without_deadline
from ceopt.solvers.problem import Stop
from ceopt.status import Status
from ceopt.tolerances import CHEAPER, LEAST_CHEAPER

if TYPE_CHECKING:
    from ceopt.solvers.problem import Outcome

__all__ = ["accept_checked", "fall_back", "is_disproved", "out_of_time", "used_up", "without_point"]

_STOPS: Final = {
    Stop.TIME_LIMIT: Status.TIME_LIMIT,
    Stop.INTERRUPTED: Status.TIME_LIMIT,
    Stop.UNBOUNDED: Status.UNBOUNDED,
}


def accept_checked(  # noqa: PLR0917 - a point and what is known of it, in the order of its finding
    state: State, point: dict[str, float], prediction: Any, bound: float | None, message: str, cluster: Any = None
) -> State:
    """Take a point that passed the check as the next answer, or a start that is cheaper: then nothing is proved."""
    question = state.question
    cost = question.cost(point)
    cheaper = start_in_hand(state, below=cost * (1.0 - CHEAPER))
    if cheaper is not None:
        point = cheaper
        cost = question.cost(cheaper)
        cluster = None
        prediction = question.check(point).prediction
    doubted = state.doubted
    if is_disproved(bound, cost):
        doubted = True
        claim = f"{state.solver} proves that nothing costs less than {bound:.8g}, but this verified answer costs less"
        message = f"{message} {claim}: nothing is proved.".strip()
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
        reason = message or f"The gap of {answer.gap:.3g} could not be closed."
        finding = Finding(Status.FEASIBLE, answer, answer.bound, reason)
    return replace(state, answers=(*state.answers, (answer, point)), doubted=doubted).ended(finding)


def is_disproved(bound: float | None, cost: float) -> bool:
    """Tell whether the cost of a verified answer contradicts a bound on the least cost."""
    return bound is not None and bound > cost * (1.0 + CHEAPER) + LEAST_CHEAPER


def without_point(state: State, outcome: Outcome) -> Finding:
    """Return what a program without a point says of the next answer."""
    tries = state.tries
    if outcome.status is not Stop.INFEASIBLE:
        reason = outcome.message or f"The solver stopped: {outcome.status}."
        return Finding(_STOPS.get(outcome.status, Status.ERROR), bound=tries.bound, reason=reason)
    if tries.failures or state.barred:
        if tries.failures:
            failure = tries.failures[-1]
        else:
            failure = "it breaks a rule"
        reason = f"No other point exists; the solver's failed the check: {failure}."
        return Finding(Status.REJECTED, bound=tries.bound, reason=reason)
    if state.doubted:
        reason = f"{state.solver} calls the program infeasible, and is not believed any more."
        return Finding(Status.INFEASIBLE, reason=reason)
    if state.margin != state.question.prepared.margin:  # what a larger margin leaves out was not searched
        reason = "Nothing more is in reach at the margin that the user's model made necessary."
        return Finding(Status.INFEASIBLE, reason=reason)
    reason = "Proved: nothing in reach meets the target and every rule."
    return Finding(Status.INFEASIBLE, reason=reason, proved=True)


def out_of_time(state: State) -> Finding:
    """Return what there is to say where time, or Ctrl-C, ended the search for the next answer."""
    if state.interrupted:
        reason = "The search was interrupted."
    else:
        reason = used_up(state.question.settings.time_limit_s, state.stage)
    tries = state.tries
    if tries.failures:
        reason = f"{reason} The solver's point failed: {tries.failures[-1]}."
        return Finding(Status.REJECTED, bound=tries.bound, reason=reason)
    return Finding(Status.TIME_LIMIT, bound=tries.bound, reason=reason)


def used_up(limit_s: float, stage: str) -> str:
    """Return the sentence that says what the time limit ended."""
    during = f" while {stage}" if stage else ""
    return f"The time limit of {limit_s:g} s is used up{during}."


def fall_back(state: State, finding: Finding) -> State:
    """Take a start that passes the check where the solver has no point: a proof that there is none was no proof.

    A further answer is not taken from the starts because the time is up.
    """
    question = state.question
    is_contradicted = finding.status in {Status.INFEASIBLE, Status.UNBOUNDED}
    if state.interrupted or (state.answers and not is_contradicted and finding.status is not Status.ERROR):
        if state.answers:
            return state.ended(finding)
        return _started(state, finding, state.tries.bound, finding.reason)
    if question.prepared.predictor.is_linear and not state.found and not question.is_late:
        state = find_starts(state, even_linear=True)
    if not is_contradicted:
        return _started(state, finding, state.tries.bound, finding.reason, is_judge=False)
    reason = f"{state.solver} calls the program {finding.status}, but a point that passes the check is in hand."
    started = _started(state, finding, None, reason)
    return replace(started, doubted=started.doubted or started.last is not finding)


def _started(state: State, finding: Finding, bound: float | None, reason: str, *, is_judge: bool = True) -> State:
    """Take the cheapest start that passes the check, or leave what was found."""
    point = start_in_hand(state, is_judge=is_judge)
    if point is None:
        return state.ended(finding)
    return accept_checked(state, point, state.question.check(point).prediction, bound, reason)
