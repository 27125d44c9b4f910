"""What a search came to, as a solution set: status, answers, what is proved, and the reasons in words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ceopt.formulations.space.reachable import removed_by
from ceopt.search.accept import is_disproved, used_up
from ceopt.search.state import Answer, Finding, Stopwatch
from ceopt.solution.solution_set import SolutionSet
from ceopt.status import Status
from ceopt.versions import versions

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.state import State
    from ceopt.settings import CheckedSettings, Settings
    from ceopt.solution.counterfactual import Counterfactual

__all__ = ["result", "unread"]


def result(state: State, asked: CheckedSettings, query_id: Any) -> SolutionSet:
    """Return what a search that has ended came to.

    Parameters
    ----------
    state
        Its last one.
    asked
        The settings as they were given; rules may have been widened since.
    query_id
        Name of the question, for its asker.
    """
    question, last = state.question, state.last
    assert last is not None  # noqa: S101 - the search has ended
    answers = ranked_anew(state.answers)
    first = _first_finding(state, answers)
    gap = None
    if answers:
        gap = answers[0][0].gap
    elif first.status is Status.ALREADY_FAVOURABLE:
        gap = 0.0
    return SolutionSet(
        status=first.status,
        counterfactuals=tuple(answer for answer, _ in answers),
        factual=question.person.row,
        bound=first.bound,
        gap=gap,
        margin=0.0 if state.margin is None else state.margin,
        complete=len(answers) == asked.n or last.proved,
        reason=first.reason,
        conflict=state.conflict,
        relaxed=state.relaxed,
        timings=question.stopwatch.timings(),
        solver=state.solver,
        versions=dict(versions("pyomo", "highspy")),
        options=asked.options(),
        target=asked.target.text(),
        removed=removed_by(question.space, question.person.reach),
        query_id=query_id,
    )


def _first_finding(state: State, answers: Sequence[Answer]) -> Finding:
    """Return what is said of the best answer, and of why there are no more."""
    first, last = state.first or state.last, state.last
    assert first is not None  # noqa: S101 - the search has ended
    assert last is not None  # noqa: S101 - the same
    if answers and answers[0][0] is not state.answers[0][0]:
        best = answers[0][0]
        reason = "A further answer costs less than was proved of an earlier one: nothing is proved."
        first = Finding(Status.FEASIBLE, answer=best, bound=best.bound, reason=reason)
    if last.answer is None and answers:
        more = "Proved: there are no more." if last.proved else f"No more, as: {last.reason}"
        first = replace(first, reason=f"{first.reason} {more}".strip())
    return first


def ranked_anew(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Return answers as they stand, or in order of cost where one contradicts the bound of an earlier one.

    Each answer was looked for among those that differ from all before it, so a later one may not cost less than what
    was proved for an earlier one. Where it does, that bound proves nothing.
    """
    believed: list[Answer] = []
    for place, (answer, point) in enumerate(answers):
        is_false = any(is_disproved(answer.bound, later.cost) for later, _ in answers[place:])
        believed.append((_without_bound(answer) if is_false else answer, point))
    if all(after[0] is before[0] for after, before in zip(believed, answers, strict=True)):
        return tuple(answers)
    believed.sort(key=lambda pair: pair[0].cost)
    return tuple((_with(answer, rank=rank), point) for rank, (answer, point) in enumerate(believed, start=1))


def _without_bound(answer: Counterfactual) -> Counterfactual:
    return _with(answer, bound=0.0, gap=answer.cost / max(answer.cost, 1e-12))


def _with(answer: Counterfactual, **changes: Any) -> Counterfactual:
    return replace(answer, values=answer.frame, **changes)  # type: ignore[arg-type]  # a frame keeps the dtypes


def unread(settings: Settings, space: FeatureSpace, row: Any, *, stage: str, began: float) -> SolutionSet:
    """Return what is known of a person where the time limit ended the reading of the model: nothing."""
    factual, options = space.frame([space.row(row)]), settings.unchecked_options()
    stopwatch = Stopwatch(began, read_s=time.perf_counter() - began)
    return SolutionSet(
        status=Status.TIME_LIMIT,
        counterfactuals=(),
        factual=factual,
        complete=False,
        reason=used_up(settings.limit_s(), stage),
        timings=stopwatch.timings(),
        versions=dict(versions("pyomo", "highspy")),
        options=options,
        target=str(options["target"]),
    )
