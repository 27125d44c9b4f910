"""Points known before a program is solved: cheap moves, and what they allow the program to leave out."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ceopt.checking.answer_check import broken_rules
from ceopt.formulations.predictors.decision.reaches import slack
from ceopt.query.given_starts import put_in_reach
from ceopt.query.solve_program import has_extreme_numbers
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.tolerances import START_MARGIN_ROUNDING
from ceopt.warm_start.heuristic import StartSearch

if TYPE_CHECKING:
    from ceopt.query.request import Start
    from ceopt.search.state import State

__all__ = ["budget_for_next", "find_starts", "room", "start_in_hand"]

#: Share of the time that the search for a start may take; its own limit is a count of rows, long before this.
_SHARE: Final = 0.25
#: How many rows of the data the search for a start looks at.
_ROWS: Final = 2000
#: How many of the user's points that pass every check are kept.
_GIVEN: Final = 20
#: Seconds beyond the limit in which starts may still be checked, one after the other; the first always is.
_GRACE_S: Final = 0.1


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
    named = [dict(zip(space.names, point, strict=True)) for point in points.tolist()]
    if not named:
        return ()
    _, met = prepared.judge(named)
    good = [point for point, is_met in zip(named, met.tolist(), strict=True) if is_met]
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
    return slack(prepared.predictor, points, prepared.settings.target) - state.margin * (1.0 + START_MARGIN_ROUNDING)


def budget_for_next(state: State) -> float | None:
    """Return a cost that the next answer need not exceed: that of the cheapest start that surely is another one.

    Not so with the leaf form, which tells cells apart only by the leaves that they reach.
    """
    settings = state.question.settings
    if settings.diversity is None:
        return room(state.starts, settings.n)
    if state.answers and settings.formulation == "leaf" and settings.diversity.needs_all_cells:
        return None
    for cost, point in state.starts:
        if state.surely_differs(point):
            return cost
    return None


def room(starts: Sequence[Start], n: int) -> float | None:
    """Return a cost within which ``n`` points are known, or as many as there are; None if there are none.

    Within the cost of the cheapest start a solver meets next to nothing on its way; without a budget it has ten times
    the work.
    """
    if not starts:
        return None
    last = min(n, len(starts)) - 1
    return starts[last][0]


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
        is_late = number > 0 and time.perf_counter() > question.deadline + _GRACE_S
        if cost >= below or is_late:
            return None
        if not state.surely_differs(point):
            continue
        check = question.check(point)
        if check.valid and not check.broken:
            return point
    return None
