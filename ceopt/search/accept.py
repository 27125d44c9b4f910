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
from ceopt.words.said import Said, said, together

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
        claim = said(
            f"{state.solver} proves that nothing costs less than {bound:.8g}, but this verified answer costs less: "
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
        open_gap = f"The gap of {answer.gap:.3g} could not be closed."
        reason = message or said(open_gap, "gap_open", percent=float(f"{100.0 * answer.gap:.2g}"))
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
            failure = said("it breaks a rule", "breaks_a_rule")
        text = f"No other point exists; the solver's failed the check: {failure}."
        reason = said(text, "no_other_point", failure=failure)
        return Finding(Status.REJECTED, bound=tries.bound, reason=reason)
    if state.doubted:
        text = f"{state.solver} calls the program infeasible, and is not believed any more."
        reason = said(text, "not_believed", solver=state.solver)
        return Finding(Status.INFEASIBLE, reason=reason)
    if state.margin != state.question.prepared.margin:  # what a larger margin leaves out was not searched
        text = "Nothing more is in reach at the margin that the user's model made necessary."
        reason = said(text, "nothing_at_margin")
        return Finding(Status.INFEASIBLE, reason=reason)
    reason = said("Proved: nothing in reach meets the target and every rule.", "proved_none")
    return Finding(Status.INFEASIBLE, reason=reason, proved=True)


def out_of_time(state: State) -> Finding:
    """Return what there is to say where time, or Ctrl-C, ended the search for the next answer."""
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
    return said(f"The time limit of {limit_s:g} s is used up{during}.", "time_used_up", limit_s=limit_s)


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
    text = f"{state.solver} calls the program {finding.status}, but a point that passes the check is in hand."
    reason = said(text, "start_in_hand", solver=state.solver)
    started = _started(state, finding, None, reason)
    return replace(started, doubted=started.doubted or started.last is not finding)


def _started(state: State, finding: Finding, bound: float | None, reason: str, *, is_judge: bool = True) -> State:
    """Take the cheapest start that passes the check, or leave what was found."""
    point = start_in_hand(state, is_judge=is_judge)
    if point is None:
        return state.ended(finding)
    return accept_checked(state, point, state.question.check(point).prediction, bound, reason)
