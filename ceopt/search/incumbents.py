"""Answers that were met on the way to the best one: by the solver, and by the search for its start.

Nothing is claimed of their order. A solver that begins at a good start meets few points (one to four on forests of 50
to 100 trees), while the search for the start ends with one for each set of changed columns that it came across.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from ceopt.search.solve_check_repair import accept_checked
from ceopt.search.state import Finding
from ceopt.status import Status
from ceopt.tolerances import SAME_VALUE
from ceopt.words.said import said

if TYPE_CHECKING:
    from ceopt.query.request import Point
    from ceopt.search.state import State

__all__ = ["are_same", "next_incumbent"]

Coordinates: TypeAlias = dict[str, float]


def next_incumbent(state: State) -> State:
    """Take the cheapest that is left of what was met on the way, if it passes the check."""
    question = state.question
    first = state.first
    assert first is not None  # noqa: S101 - made with the first answer
    while state.met and not question.is_late:
        point, *left = state.met
        state = replace(state, met=tuple(left))
        check = question.check(point)
        repeats = any(are_same(point, earlier) for _, earlier in state.answers)
        if check.valid and not check.broken and not repeats:
            return accept_checked(state, point, check.prediction, first.bound, "")
    if state.met:
        reason = said("The time limit is used up.", "time_ended")
    else:
        reason = said("No other point was met.", "none_met")
    return state.ended(Finding(Status.TIME_LIMIT, reason=reason))


def are_same(a: Point, b: Point) -> bool:
    """Whether two points differ by no more than a solver's tolerance."""
    return all(
        math.isclose(value, b[name], rel_tol=SAME_VALUE, abs_tol=SAME_VALUE * SAME_VALUE) for name, value in a.items()
    )
