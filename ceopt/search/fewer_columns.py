"""Of answers that cost the same, one that changes a part of another's columns: it comes first.

By "distinct" an answer keeps all out that change its columns and more. So which of two answers of one cost comes first
decides what may follow, and a solver gives either. With the fewer columns first both may come, and the ranks are the
same whatever solver and formulation found them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ceopt.formulations.constraints.diversity.diversity import SomeStay, changed_columns
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.search.solve_check_repair import MOST_REPAIRS, accept_checked, attempt
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.tolerances import EQUAL_COSTS

if TYPE_CHECKING:
    from ceopt.search.state import State

__all__ = ["with_fewer_columns"]


def with_fewer_columns(state: State) -> State:
    """Replace the latest answer as long as a part of its columns will do at the same cost."""
    while _is_worth_a_look(state):
        state, is_found = _looked(state)
        if not is_found:
            return state
    return state


def _is_worth_a_look(state: State) -> bool:
    question = state.question
    if not state.diversity.prefers_fewer_columns:
        return False
    if state.last is None or state.last.answer is None or state.interrupted or question.is_late:
        return False
    return len(changed_columns(question.factual, state.answers[-1][1], state.diversity.together)) > 1


def _looked(state: State) -> tuple[State, bool]:
    """Look for an answer with a part of the columns, with the margin and, where it is a default, without.

    Only these columns may move, so that the program is small.
    """
    question = state.question
    point = state.answers[-1][1]
    changed = changed_columns(question.factual, point)
    for group in state.diversity.together:  # another one of them may take the 1
        if not changed.isdisjoint(group):
            changed.update(group)
    reach = _of_these_alone(question.person.reach, changed, question.factual)
    few = replace(question, person=replace(question.person, reach=reach))
    margins = [state.margin]
    if question.has_default_margin and state.margin:
        margins.append(0.0)
    learned = state
    try:
        for margin in margins:
            before = replace(state.having_learned(learned), answers=state.answers[:-1])
            learned = _solved(replace(before, question=few, margin=margin), state)
            if len(learned.answers) == len(state.answers):
                found = replace(learned, question=question, margin=state.margin, refused=state.refused)
                return found, True
    except OutOfTimeError:
        pass
    return state.having_learned(learned), False


def _solved(state: State, whole: State) -> State:
    """Return a state with an answer that costs no more than the whole one, or with what was learned of the solver.

    What the model refuses is left out, and looked for again.
    """
    question = state.question
    answer, point = whole.answers[-1]
    assert whole.last is not None  # noqa: S101 - it has an answer
    most = answer.cost * (1.0 + EQUAL_COSTS)
    for _ in range(MOST_REPAIRS):
        left = question.deadline - time.perf_counter()
        state, solved = attempt(state, left, most=most, also=[(point, SomeStay(together=state.diversity.together))])
        if solved.point is None or question.cost(solved.point) > most:
            return state
        check = question.check(solved.point)
        if check.broken or not state.differs(solved.point):
            return state
        if check.valid:
            bound = whole.last.bound
            return accept_checked(state, solved.point, check.prediction, bound, whole.last.reason, solved.cluster)
        state = replace(state, refused=(*state.refused, solved.point))
    return state


def _of_these_alone(reach: Reach, names: Collection[str], factual: Mapping[str, float]) -> dict[str, Interval | Levels]:
    """Return a reach in which only some columns may leave the factual."""
    narrow: dict[str, Interval | Levels] = {}
    for name, part in reach.items():
        home = factual[name]
        if name in names or not part.holds(home):
            narrow[name] = part
        elif isinstance(part, Levels):
            narrow[name] = Levels((int(home),))
        else:
            narrow[name] = part.narrowed(home, home)
    return narrow
