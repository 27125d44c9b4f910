"""A search: from one person's row to verified answers, as a loop over a state.

What the solver returns is read as integer decisions, rebuilt as floats, and handed to the user's own model and to the
rules in plain numbers; only what passes is an answer. The phases, each a step from one state to another::

    START          cheap points are looked for
      |
    PROGRAM <--+   one program is solved and its point checked;        solve_check_repair.py
      |   |    |   what fails is asked for otherwise
      |   +----+
    MARGIN         what a default margin left out is looked for        ties.py
      |
      +-- of the first answer --+-- of a further one
      |                         |
    WIDER_RULES                LIMIT   may it cost as much?
      |   where none is proved  |
    CONFLICT                    |      which rules are to blame?       no_answer.py
      |                         |
    NEXT <----------------------+
      |    back to PROGRAM for another, or
     END
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ceopt.formulations.constraints.diversity.diversity import OtherDecisions
from ceopt.formulations.space.reachable import reach_of
from ceopt.query.request import Person
from ceopt.search.accept import fall_back, out_of_time
from ceopt.search.incumbents import next_incumbent
from ceopt.search.no_answer import look_for_conflict, look_under_wider_rules
from ceopt.search.report import result
from ceopt.search.solve_check_repair import solve_and_check
from ceopt.search.starts import find_starts
from ceopt.search.state import Finding, Phase, Question, State, Stopwatch, Tries, favourable, without_unseen
from ceopt.search.ties import look_within_margin
from ceopt.solvers.deadline import OutOfTimeError, deadline_now, until
from ceopt.solvers.errors import CeoptError
from ceopt.status import Status
from ceopt.tolerances import BOUND_ROUNDING

if TYPE_CHECKING:
    from ceopt.query.prepare import Prepared
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["search"]


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
    state = init(prepared, row, keep_on_interrupt=keep_on_interrupt, within=within, began=began)
    try:
        with until(state.question.deadline):
            while not done(state):
                state = step(state)
    except OutOfTimeError as error:
        state = _late(replace(state, stage=error.stage))
    except KeyboardInterrupt:
        if not (keep_on_interrupt and state.answers):
            raise
        interrupted = Finding(Status.TIME_LIMIT, reason="The search was interrupted.")
        state = replace(state, first=state.first or state.last, last=interrupted)
    return result(state, prepared.settings, query_id)


def init(prepared: Prepared, row: Any, *, keep_on_interrupt: bool, within: float | None, began: float | None) -> State:
    """Return the state in which a search begins, or has ended where the row needs no change."""
    stopwatch = Stopwatch(
        time.perf_counter() if began is None else began, read_s=0.0 if began is None else prepared.read_s
    )
    space = prepared.space
    factual = space.row(row)
    space.require_moderate(factual)
    reach = without_unseen(prepared.predictor, reach_of(space, factual), factual)
    question = Question(
        prepared=prepared.about(factual, reach),
        person=Person(factual, space.frame([factual]), reach, space),
        deadline=min(stopwatch.began + prepared.settings.time_limit_s, deadline_now()),
        within=within,
        keep_on_interrupt=keep_on_interrupt,
        stopwatch=stopwatch,
    )
    margin = question.prepared.margin
    state = State(
        question=question,
        phase=Phase.START,
        margin=margin,
        tries=Tries(margin, OtherDecisions()),
        solver=prepared.settings.solver,
    )
    check = question.check_factual()
    if check.valid and not check.broken:
        return replace(state, phase=Phase.END, last=favourable())
    return state


def done(state: State) -> bool:
    """Tell whether the search has ended."""
    return state.phase is Phase.END


def step(state: State) -> State:
    """Make the step that the phase of a state says.

    What the search for a further answer cannot do (without bounds of a column, or with more rows than a licence
    allows) ends it, and does not lose the answers in hand.
    """
    try:
        return _STEPS[state.phase](state)
    except CeoptError as error:
        if state.first is None:
            raise
        return replace(state, phase=Phase.END, last=Finding(Status.ERROR, reason=str(error)))


def _start(state: State) -> State:
    return find_starts(state).looking_for_next()


def _margin(state: State) -> State:
    after = Phase.WIDER_RULES if state.first is None else Phase.LIMIT
    return replace(look_within_margin(state), phase=after)


def _limit(state: State) -> State:
    """Give a further answer back that costs more than was asked for."""
    finding, most = state.last, state.most()
    assert finding is not None  # noqa: S101 - the phase before ends with one
    state = replace(state, phase=Phase.NEXT)
    if most is None or finding.answer is None:
        return state
    if finding.answer.cost <= most * (1.0 + state.question.settings.relative_gap):
        return state
    bound = finding.answer.bound
    is_proved = bound is not None and bound >= most * (1.0 - BOUND_ROUNDING)
    status = Status.INFEASIBLE if is_proved else Status.TIME_LIMIT
    return replace(state, answers=state.answers[:-1], last=Finding(status, reason=finding.reason, proved=is_proved))


def _wider_rules(state: State) -> State:
    assert state.last is not None  # noqa: S101 - the phase before ends with one
    if state.last.status is Status.INFEASIBLE and state.last.proved:
        state = look_under_wider_rules(state, state.last)
    return replace(state, phase=Phase.CONFLICT)


def _conflict(state: State) -> State:
    assert state.last is not None  # noqa: S101 - the phase before ends with one
    if state.last.status is Status.INFEASIBLE:
        state = look_for_conflict(state, state.last)
    return replace(state, phase=Phase.NEXT)


def _next(state: State) -> State:
    """Begin the search for a further answer, if there may be one and one is wanted."""
    settings = state.question.settings
    state = replace(state, first=state.first or state.last)
    assert state.first is not None  # noqa: S101 - made by the line above
    if state.last is None or state.last.answer is None or len(state.answers) >= settings.n:
        return replace(state, phase=Phase.END)
    if state.question.within is not None and state.first.status is not Status.OPTIMAL:
        unproved = Finding(Status.TIME_LIMIT, reason="The least cost is not proved.")
        return replace(state, phase=Phase.END, last=unproved)
    if settings.diversity is None:
        return replace(next_incumbent(state), phase=Phase.LIMIT)
    return state.looking_for_next()


_STEPS: Final[Mapping[Phase, Callable[[State], State]]] = {
    Phase.START: _start,
    Phase.PROGRAM: solve_and_check,
    Phase.MARGIN: _margin,
    Phase.LIMIT: _limit,
    Phase.WIDER_RULES: _wider_rules,
    Phase.CONFLICT: _conflict,
    Phase.NEXT: _next,
}


def _late(state: State) -> State:
    """Return the state in which the time limit has ended a search between two programs."""
    first = state.first
    if first is None and state.last is not None and state.last.answer is not None:
        first = state.last
    state = replace(state, first=first, tries=Tries(state.margin, state.diversity))
    return fall_back(state, out_of_time(state))
