"""Where nothing is found as proved: the same question under wider rules, and the rules in conflict."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ceopt.conflicts.conflict import conflict_of
from ceopt.conflicts.relaxation import LATE, Relaxer, enlargements
from ceopt.formulations.space.reachable import reach_of
from ceopt.search.solve_check_repair import accept_checked, find_starts, solve_and_check
from ceopt.search.state import Finding, Phase, favourable, without_unseen
from ceopt.search.ties import look_within_margin, look_within_steps
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.status import Status
from ceopt.words.said import said, together

if TYPE_CHECKING:
    from ceopt.conflicts.conflict import Conflict
    from ceopt.conflicts.relaxation import Enlarged
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.state import State

__all__ = ["ASK_WHY", "conflict_in", "look_for_conflict", "look_under_wider_rules"]

#: What is said of a proof whose causes nobody asked for.
ASK_WHY: Final = said("With why=True the rules in conflict are looked for.", "hint_why")
#: How many columns are named whose bounds only the data had.
_NAMED: Final = 3


def look_under_wider_rules(state: State, finding: Finding) -> State:
    """Where it is proved that there is no answer, ask again with some rules wider by the least amounts.

    Without time for a width that helps, nothing is proved of the question with wider rules.
    """
    question = state.question
    relaxer = Relaxer(question.prepared, question.deadline)
    learned = state
    try:
        for wider in enlargements(relaxer, question.person):
            learned = _answered_under(state.having_learned(learned), wider)
            if learned.last is not None and learned.last.status is not Status.INFEASIBLE:
                reason = together(learned.last.reason, wider.reason)
                return replace(learned, relaxed=wider.radii, last=replace(learned.last, reason=reason))
    except OutOfTimeError as error:
        learned = replace(learned, stage=error.stage)
        relaxer.unsettled = LATE
    except KeyboardInterrupt:
        if not question.keep_on_interrupt:
            raise
        relaxer.unsettled = said("the search was interrupted", "was_interrupted")
    finally:
        question.stopwatch.add(relaxer.seconds)
    state = state.having_learned(learned)
    if relaxer.unsettled:
        text = f"By how much wider a rule would have to be is not known: {relaxer.unsettled}."
        unknown = said(text, "width_unknown", why=relaxer.unsettled)
        return replace(state, last=Finding(Status.TIME_LIMIT, reason=together(finding.reason, unknown)))
    return state


def _answered_under(state: State, wider: Enlarged) -> State:
    """Return what the search comes to under wider rules, which some point is known to keep."""
    question = replace(state.question, prepared=wider.prepared)
    state = find_starts(replace(state, question=question, found=()))
    starts = (*state.starts, (question.cost(wider.point), wider.point))
    starts = tuple(sorted(starts, key=lambda start: start[0]))
    state = replace(state, starts=starts, found=starts)
    check = question.check(question.factual)
    if check.valid and not check.broken:
        return replace(state, last=favourable())
    state = state.looking_for_next()
    while state.phase is Phase.PROGRAM:
        state = solve_and_check(state)
    return look_within_steps(look_within_margin(state))


def look_for_conflict(state: State, finding: Finding) -> State:
    """Where there is no answer, find which rules leave no answer, as far as the time goes, and say so."""
    question = state.question
    if not question.why_s:
        reason = together(finding.reason, ASK_WHY, _bounds_of_the_data(question.space))
        return replace(state, last=replace(finding, reason=reason))
    state, conflict = conflict_in(state)
    if conflict is None:
        return state
    reason = together(finding.reason, conflict.reason, _bounds_of_the_data(question.space))
    return replace(state, conflict=conflict.entries, last=replace(finding, reason=reason))


def conflict_in(state: State) -> tuple[State, Conflict | None]:
    """Return which rules leave no answer, as far as the time goes; or the state with an answer that a proof overlooked.

    Who has an answer after all has no conflict.
    """
    question = state.question
    relaxer = Relaxer(question.prepared, min(question.deadline, time.perf_counter() + question.why_s))

    def reach(space: FeatureSpace) -> Reach:
        return without_unseen(question.prepared.predictor, reach_of(space, question.factual), question.factual)

    with until(relaxer.deadline):
        conflict = conflict_of(relaxer, question.person, reach_of=reach, keep_on_interrupt=question.keep_on_interrupt)
    question.stopwatch.add(relaxer.seconds)
    if relaxer.overlooked is None:
        return state, conflict
    prediction = question.check(relaxer.overlooked).prediction
    message = "To the solver's tolerance there is no answer."
    return accept_checked(state, relaxer.overlooked, prediction, None, message), None


def _bounds_of_the_data(space: FeatureSpace) -> str:
    """Say which bounds only the data had."""
    inferred = []
    for f in space:
        if f.mutable and (f.lower_inferred or f.upper_inferred):
            inferred.append(f.name)
    if not inferred:
        return ""
    names = ", ".join(inferred[:_NAMED])
    if len(inferred) > _NAMED:
        names += ", ..."
    text = (
        f"The reach of {names} ends where the data did; space.update(name, lower=..., upper=...) widens it, which "
        "may help."
    )
    return said(text, "reach_of_data", columns=names)
