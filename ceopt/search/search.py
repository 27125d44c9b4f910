"""Search for the counterfactuals of one person: a loop that takes a state from phase to phase.

A point of the solver is decoded to a row in the units of the data. The user's own model predicts that row, and every
rule is evaluated on it without Pyomo; only a row that passes both is an answer. :func:`init` ends the search for a row
that needs no change. All others go through these phases, each a step from one state to another::

    START          look for cheap starting points                      solve_check_repair.py
      |
    LEAST          and for a bound                                     without_program.py
      |
    BOUND          does it settle the search? Then on to LIMIT or      without_program.py
      |            WIDER_RULES
    PROGRAM <--+   solve one program                                   solve_check_repair.py
      |   |    |
      | CHECK -+   check its point: one that fails is excluded, or     solve_check_repair.py
      |   |        the program is tightened
      |<--+
    MARGIN         look for cheaper answers that the default margin    phases.py
      |            excluded
      |
      +-- of the first answer --+-- of a further one
      |                         |
    WIDER_RULES                 |      if it is proved that there is   phases.py
      |                         |      no answer: which wider rule
      |                         |      would admit one?
      |                       LIMIT    may it cost as much?
    CONFLICT                    |      which rules exclude every       phases.py
      |                         |      answer?
    FEWER <---------------------+      would fewer columns do?         phases.py
      |
    NEXT   back to PROGRAM for another answer, or to LIMIT with one that a bound settles; without a diversity, to LIMIT
      |    with a point that the solver met before; or
     END

The file beside a phase makes its step; all others are here. With ``proof=False`` the phase PROGRAM takes the cheapest
point that the search for a start came across, and goes on to LIMIT. Without a diversity, further answers are points
that the solver or the search for its start came across. They are given in order of cost, but none is claimed to be the
next cheapest.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from ceopt.base.libraries import versions
from ceopt.base.results import Status
from ceopt.base.said import said, together
from ceopt.formulations.constraints.diversity.diversity import OtherDecisions
from ceopt.formulations.digits import in_places
from ceopt.oracle.rows import coordinates_of
from ceopt.result.counterfactual import KeptRow, altered, when_read
from ceopt.result.solution_set import SolutionSet
from ceopt.search.build_answer import (
    answer_of,
    asked_by_rules,
    line_without,
    printed_trials,
    rules_beyond,
    with_printed,
)
from ceopt.search.phases import (
    conflict_in,
    look_for_conflict,
    look_for_traces,
    look_under_wider_rules,
    look_within_margin,
    look_within_steps,
    with_fewer_columns,
    with_usual_amounts,
    without_free_moves,
)
from ceopt.search.ranges import with_ranges
from ceopt.search.solve_check_repair import (
    accept_checked,
    check_solved,
    fall_back,
    find_starts,
    is_disproved,
    out_of_time,
    solve,
    start_in_hand,
    used_up,
)
from ceopt.search.solve_program import Person
from ceopt.search.state import (
    Answer,
    Finding,
    Phase,
    Predictions,
    Question,
    State,
    Stopwatch,
    Tries,
    favourable,
    person_of,
    reach_without,
)
from ceopt.search.without_program import has_boxes, next_start, settled, with_bound, with_near_answer
from ceopt.solvers.deadline import OutOfTimeError, deadline_now, until
from ceopt.solvers.errors import CeoptError, printable
from ceopt.solvers.problem import relative_gap_of
from ceopt.tolerances import BOUND_ROUNDING, COST_NOISE, DIGIT_NOISE, EQUAL_COSTS, ROUNDED_GAP, SAME_VALUE
from ceopt.words.sentences import removed_said, rules_said, target_said

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.result.counterfactual import Counterfactual
    from ceopt.search.conflict import Conflict
    from ceopt.search.nearer import Point
    from ceopt.search.prepare import Prepared
    from ceopt.settings import CheckedSettings, Settings

# ==== Answers among the points that the solver met before =============================================================


def next_incumbent(state: State) -> State:
    """Return the state with the cheapest point of ``state.incumbents`` that passes the check as its next answer."""
    question = state.question
    first = state.first
    assert first is not None  # noqa: S101 - made with the first answer
    while state.incumbents and not question.is_late:
        point, *left = state.incumbents
        state = replace(state, incumbents=tuple(left))
        check = question.check(point)
        repeats = any(are_same(point, earlier) for _, earlier in state.answers)
        if check.valid and not check.broken and not repeats:
            return accept_checked(state, point, check.prediction, first.bound, "")
    reason = said("No other point was met.", "none_met")
    if state.incumbents:
        reason = said("The time limit is used up.", "time_ended")
    return state.ended(Finding(Status.TIME_LIMIT, reason=reason))


def are_same(a: Point, b: Point) -> bool:
    """Tell whether two points are equal up to a solver's tolerance."""
    return all(  # the absolute tolerance is so small that beside a 0 there is only the rounding of floats
        math.isclose(value, b[name], rel_tol=SAME_VALUE, abs_tol=SAME_VALUE * SAME_VALUE) for name, value in a.items()
    )


# ==== The search ======================================================================================================


def search(
    prepared: Prepared,
    row: Any,
    *,
    query_id: Any = None,
    keep_on_interrupt: bool = True,
    within: float | None = None,
    began: float | None = None,
    why_s: float | None = None,
    predictions: Predictions | None = None,
) -> SolutionSet:
    """Return the verified answers for one person; an outcome of the solver is a status, never an exception.

    Ctrl-C stops the solver. Its best point so far is checked and returned; with ``keep_on_interrupt=False``
    KeyboardInterrupt is raised instead, as it is outside the solver while there is no answer.

    Parameters
    ----------
    prepared
        Model and settings.
    row
        The person, in the units of the data.
    query_id
        The caller's own identifier of this question.
    keep_on_interrupt
        Whether Ctrl-C keeps the answers found so far.
    within
        How much more than the best a further answer may cost. Once the next one is proved to cost more, the answers
        are complete. If the best is not proved optimal, no other is returned.
    began
        The value of ``time.perf_counter`` from which the time limit counts, if reading the model counts towards it; by
        default now.
    why_s
        Seconds for finding the rules in conflict; by default those of the settings. With 0 they are not looked for
        here, but by :func:`conflict_or_answer`.
    predictions
        What the model has said already.

    Raises
    ------
    CeoptError
        The row is unusable: a missing or unknown column, NaN, an unseen level, a value outside the user's bounds.
    """
    more: Any = {"within": within, "began": began, "why_s": why_s, "predictions": predictions}
    state = init(prepared, row, keep_on_interrupt=keep_on_interrupt, **more)
    return result(_run(state), prepared.settings, query_id)


def search_in_parts(
    prepared: Prepared, row: Any, *, query_id: Any, predictions: Predictions
) -> Generator[Sequence[Point], None, SolutionSet]:
    """Search as :func:`search` does for a cohort, with breaks before a point is checked and before answers are printed.

    It gives the points, which whoever goes on may ask the model about together with those of others.
    """
    state = init(prepared, row, keep_on_interrupt=False, within=None, began=None, why_s=0.0, predictions=predictions)
    state = _run(state, until_check=True)
    while (point := _to_be_checked(state)) is not None:
        state = _run((yield from _break(state, [point])), until_check=True)
    question = state.question
    with question.stopwatch.counting("check"):
        trials = printed_trials(state.answers, question.settings.rules, question.space, question.factual)
    if trials:
        state = yield from _break(state, trials)
    return result(state, prepared.settings, query_id)


def _break(state: State, points: Sequence[Point]) -> Generator[Sequence[Point], None, State]:
    """Give points, and return the state after a break, which does not count towards the person's time."""
    began = time.perf_counter()
    yield points
    return state.later(time.perf_counter() - began)


def _to_be_checked(state: State) -> Point | None:
    """Return the point that the next step asks the model about, where there is one such point."""
    if state.phase is Phase.CHECK and state.solved is not None:
        return state.solved.point
    return next_start(state) if state.phase is Phase.BOUND else None


def _run(state: State, *, until_check: bool = False) -> State:
    """Return the state in which the search has ended: after its last phase, by the time limit or by Ctrl-C.

    With ``until_check``, or the next one in which a point is to be checked.
    """
    try:
        while not done(state):
            with until(state.question.deadline):
                state = step(state)
            if until_check and _to_be_checked(state) is not None:
                break
    except OutOfTimeError as error:
        return _end_for_time(replace(state, stage=error.stage))
    except KeyboardInterrupt:
        if not (state.question.keep_on_interrupt and state.answers):
            raise
        interrupted = Finding(Status.TIME_LIMIT, reason=said("The search was interrupted.", "interrupted"))
        return replace(state, first=state.first or state.last, last=interrupted)
    return state


def conflict_or_answer(
    prepared: Prepared, row: Any, *, query_id: Any, seconds: float
) -> tuple[Conflict | SolutionSet, Mapping[str, float]]:
    """Return the rules in conflict of a person who is proved to have no answer, and the seconds that it took by phase.

    If an answer turns up after all (the proof held to the solver's tolerance only), return the person's result instead.
    Ctrl-C raises KeyboardInterrupt.
    """
    limited = prepared.with_time_limit(seconds)
    state = init(limited, row, keep_on_interrupt=False, within=None, began=None, why_s=seconds)
    state, conflict = conflict_in(state)
    if conflict is not None:
        return conflict, state.question.stopwatch.timings()
    state = _run(replace(state, phase=Phase.FEWER))
    return result(state, prepared.settings, query_id), state.question.stopwatch.timings()


def init(
    prepared: Prepared,
    row: Any,
    *,
    keep_on_interrupt: bool,
    within: float | None,
    began: float | None,
    why_s: float | None = None,
    predictions: Predictions | None = None,
) -> State:
    """Return the first state of a search; its phase is END if the row already meets the target and every rule."""
    stopwatch = Stopwatch(began)
    with stopwatch.counting("start"):
        person = row if isinstance(row, Person) else person_of(prepared, row)
        own = prepared.for_person(person.factual, person.reach)
    question = Question(
        prepared=own,
        person=person,
        deadline=min(stopwatch.began + prepared.settings.time_limit_s, deadline_now()),
        within=within,
        why_s=prepared.settings.why_s if why_s is None else why_s,
        keep_on_interrupt=keep_on_interrupt,
        stopwatch=stopwatch,
        predictions=predictions or Predictions(),
    )
    margin = question.prepared.margin
    state = State(
        question=question,
        phase=Phase.START,
        margin=margin,
        tries=Tries(OtherDecisions()),
        solver=prepared.settings.solver,
    )
    check = question.check_factual()
    if check.valid and not check.broken:
        return replace(state, phase=Phase.END, last=favourable())
    own.require_amounts(person.factual, person.reach)  # a program would refuse them, but not all need one
    return state


def done(state: State) -> bool:
    """Tell whether the search has ended."""
    return state.phase is Phase.END


def step(state: State) -> State:
    """Return the state after the step of the current phase.

    An error in the search for a further answer (an unbounded column, a program too large for the licence) ends the
    search and keeps the answers found so far; in the search for the first one it is raised.
    """
    try:
        with state.question.stopwatch.counting(_COUNTED.get(state.phase, "check")):
            return _STEPS[state.phase](state)
    except CeoptError as error:
        if state.first is None:
            raise
        return replace(state, phase=Phase.END, last=Finding(Status.ERROR, reason=str(error)))


def _start(state: State) -> State:
    if not has_boxes(state):  # which take less than the search for a start
        state = find_starts(state)
    return replace(state, phase=Phase.LEAST)


def _least(state: State) -> State:
    return replace(with_bound(state.looking_for_next()), phase=Phase.BOUND)


def _bound(state: State) -> State:
    after = settled(state)
    if after.phase is Phase.PROGRAM and has_boxes(state):
        return settled(find_starts(state).looking_for_next())
    return after


def _program(state: State) -> State:
    if state.question.settings.proof:
        return solve(state)
    return with_near_answer(state)


def _margin(state: State) -> State:
    after = Phase.LIMIT
    if state.first is None:
        after = Phase.WIDER_RULES
    if state.question.has_default_margin:
        state = look_within_steps(look_within_margin(state))
    else:
        state = look_for_traces(state)
    return replace(state, phase=after)


def _limit(state: State) -> State:
    """Drop the latest answer if it costs more than ``within`` allows."""
    finding = state.last
    most = state.cost_limit()
    assert finding is not None  # noqa: S101 - the phase before ends with one
    state = replace(state, phase=Phase.FEWER)
    if most is None or finding.answer is None:
        return state
    if finding.answer.cost <= most * (1.0 + state.question.settings.relative_gap):
        return state
    bound = finding.answer.bound
    is_proved = bound is not None and bound >= most * (1.0 - BOUND_ROUNDING)
    status = Status.TIME_LIMIT
    if is_proved:
        status = Status.INFEASIBLE
    return replace(state, answers=state.answers[:-1], last=Finding(status, reason=finding.reason, proved=is_proved))


def _wider_rules(state: State) -> State:
    assert state.last is not None  # noqa: S101 - the phase before ends with one
    if state.last.is_proved_infeasible:
        state = look_under_wider_rules(state, state.last)
    return replace(state, phase=Phase.CONFLICT)


def _conflict(state: State) -> State:
    assert state.last is not None  # noqa: S101 - the phase before ends with one
    if state.last.status is Status.INFEASIBLE:
        state = look_for_conflict(state, state.last)
    return replace(state, phase=Phase.FEWER)


def _fewer(state: State) -> State:
    settings = state.question.settings
    if settings.n > 1 and settings.proof:
        state = with_fewer_columns(state)
    else:  # otherwise an answer may be any of those that cost the same, but for moves that nothing needs
        state = without_free_moves(state)
    return replace(with_usual_amounts(state), phase=Phase.NEXT)


def _next(state: State) -> State:
    """Begin the search for a further answer, if there may be one and one is wanted."""
    settings = state.question.settings
    state = replace(state, first=state.first or state.last)
    assert state.first is not None  # noqa: S101 - made by the line above
    if state.last is None or state.last.answer is None or len(state.answers) >= settings.n:
        return replace(state, phase=Phase.END)
    if state.question.within is not None and state.first.status is not Status.OPTIMAL:
        unproved = Finding(Status.TIME_LIMIT, reason=said("The least cost is not proved.", "least_cost_unproved"))
        return replace(state, phase=Phase.END, last=unproved)
    if settings.diversity is None and settings.proof:
        return replace(next_incumbent(state), phase=Phase.LIMIT)
    return settled(state.looking_for_next())


_STEPS: Final[Mapping[Phase, Callable[[State], State]]] = {
    Phase.START: _start,
    Phase.LEAST: _least,
    Phase.BOUND: _bound,
    Phase.PROGRAM: _program,
    Phase.CHECK: check_solved,
    Phase.MARGIN: _margin,
    Phase.LIMIT: _limit,
    Phase.WIDER_RULES: _wider_rules,
    Phase.CONFLICT: _conflict,
    Phase.FEWER: _fewer,
    Phase.NEXT: _next,
}


#: What counts the seconds of a step that nothing in it counts by itself; "check" where none is named.
_COUNTED: Final = {
    **dict.fromkeys((Phase.START, Phase.LEAST, Phase.BOUND), "start"),
    **dict.fromkeys((Phase.PROGRAM, Phase.MARGIN), "build"),
}


def _end_for_time(state: State) -> State:
    """Return the state of a search that ran out of time while no solver was running."""
    first = state.first
    if first is None and state.last is not None and state.last.answer is not None:
        first = state.last
    of_leaves = None if first is not None or state.size or state.relaxed else state.tries.bound
    state = replace(state, first=first, tries=Tries(state.diversity, of_leaves))
    return _with_points_met(fall_back(state, out_of_time(state)))


def _with_points_met(state: State) -> State:
    """Return the state with further answers that were met before the time was up, of which nothing is proved."""
    question = state.question
    settings = question.settings
    if not state.answers or state.interrupted or settings.diversity is None or question.within is not None:
        return state
    state = replace(state, first=state.first or state.last)
    last = state.last
    while len(state.answers) < settings.n and not question.is_past_grace:
        looking = state.looking_for_next()
        start = start_in_hand(looking, contradicts_solver=False)
        if start is None:
            return replace(state, last=last)
        point, check = start
        state = accept_checked(looking, point, check.prediction, looking.tries.bound, out_of_time(looking).reason)
    return state


# ---- the result ------------------------------------------------------------------------------------------------------
def result(state: State, asked: CheckedSettings, query_id: Any) -> SolutionSet:
    """Return the result of a finished search.

    Parameters
    ----------
    state
        Its last one.
    asked
        The settings as the caller gave them; those in the state may have wider rules.
    query_id
        The caller's own identifier of this question.
    """
    question = state.question
    space = question.space
    last = state.last
    assert last is not None  # noqa: S101 - the search has ended
    with question.stopwatch.counting("check"):
        answers = reranked(state)
        first = _first_finding(state, answers)
        answers = in_decimals_of_data(state, answers)
        beyond = rules_beyond(asked.rules, space, question.factual)
        marked = asked_by_rules(answers, beyond, space, question.factual, question.nearly_meets_target)
        if not state.interrupted:
            pairs = list(zip(marked, [point for _, point in answers], strict=True))
            marked = with_printed(pairs, question.settings.rules, space, question.factual, question.accepts)
            marked = _with_ranges(state, list(zip(marked, [point for _, point in answers], strict=True)))
    gap = None
    bound = first.bound
    if answers and bound is not None:
        bound = answers[0][0].bound
    if answers:
        gap = answers[0][0].gap
    elif first.status is Status.ALREADY_FAVOURABLE:
        gap = 0.0
    target = asked.target  # locals of their own: what is put into words when read keeps no question alive
    unseen = question.prepared.predictor.unseen
    row = KeptRow.of(space, question.factual)
    has_all = len(answers) == asked.n and (asked.proof or asked.n == 1)  # near answers leave out others
    is_proved = last.proved and len(answers) == len(state.answers)
    return SolutionSet(
        status=first.status,
        counterfactuals=tuple(marked),
        factual=row,  # type: ignore[arg-type]  # stands for the frame
        bound=bound,
        gap=gap,
        margin=state.margin or 0.0,
        complete=has_all or is_proved,
        reason=first.reason,
        conflict=state.conflict,
        relaxed=state.relaxed,
        timings=question.stopwatch.timings(),
        solver=state.solver,
        proof=_proof(state, first),
        versions=dict(versions("pyomo", "highspy")),
        options=asked.options(),
        target=when_read(partial(target_said, target)),
        removed=when_read(partial(_removed_from, row, space, unseen)),
        query_id=query_id,
        space=space,
        rules=rules_said(asked.rules, space),
        fingerprints=question.prepared.fingerprints,
        size=state.size,
        beyond={name: line_without(rule) for name, rule in beyond.items()},
    )


def _removed_from(row: KeptRow, space: FeatureSpace, unseen: Mapping[str, frozenset[int]]) -> dict[str, str]:
    """Return in words what a person cannot do."""
    factual = dict(zip(space.names, row.coordinates, strict=True))
    return removed_said(space, reach_without(unseen, space, factual), factual)


def _proof(state: State, first: Finding) -> str:
    """Return what proved the first finding: a bound that meets it, else a program; empty where nothing did."""
    least = state.least
    otherwise = "program" if state.question.settings.proof else "bound"  # no answer costs less than nothing
    if first.status is Status.INFEASIBLE and first.proved:
        return least.proof if least is not None and math.isinf(least.bound) else otherwise
    if first.status is not Status.OPTIMAL or first.answer is None:
        return ""
    met = None if least is None else relative_gap_of(first.answer.cost, least.bound)
    if least is not None and met is not None and met <= state.question.settings.relative_gap:
        return least.proof
    return otherwise


def _with_ranges(state: State, answers: Sequence[Answer]) -> list[Counterfactual]:
    """Return answers that know which amounts would do in place of those that they fill in, unless the time is over."""
    question = state.question
    if not any(feature.is_label(question.factual[feature.name]) for feature in question.space):
        return [answer for answer, _ in answers]

    def accepts(points: list[dict[str, float]]) -> Sequence[bool]:
        if question.is_past_grace:
            raise OutOfTimeError("asking which amounts would do")
        with question.stopwatch.counting("predict"):
            accepted: list[bool] = question.prepared.judge(points)[1].tolist()
        return accepted

    try:
        return with_ranges(
            answers,
            question.settings.rules,
            question.space,
            question.factual,
            reach=question.person.reach,
            predictor=question.prepared.predictor,
            target=question.settings.target,
            accepts=accepts,
        )
    except KeyboardInterrupt:
        if not question.keep_on_interrupt:
            raise
    except Exception:  # noqa: BLE001, S110 - the user's own model may raise anything, and the answers stand without
        pass
    return [answer for answer, _ in answers]


def _first_finding(state: State, answers: Sequence[Answer]) -> Finding:
    """Return the finding about the best answer; its reason also says why there are no further answers."""
    last = state.last
    assert last is not None  # noqa: S101 - the search has ended
    finding = state.first or last
    if answers and answers[0][0] is not state.answers[0][0]:
        best = answers[0][0]
        text = "A further answer costs less than was proved of an earlier one: nothing is proved."
        finding = Finding(Status.FEASIBLE, answer=best, bound=best.bound, reason=said(text, "cheaper_than_proved"))
    more = ""
    if len(answers) < len(state.answers):
        more = said("What does not differ from a cheaper answer is left out.", "not_distinct_left_out")
    elif last.answer is None and answers and last.proved:
        more = said("Proved: there are no more.", "proved_no_more")
    elif last.answer is None and answers:
        more = said(f"No more, as: {last.reason}", "no_more_as", why=last.reason)
    if not more:
        return finding
    return replace(finding, reason=together(finding.reason, more))


def reranked(state: State) -> tuple[Answer, ...]:
    """Return the answers in order of cost if one is cheaper than the bound proved for an earlier one; else as they are.

    Each answer was looked for among those that differ from all before it, so a later one may not cost less than the
    bound of an earlier one. If it does, that bound is wrong. After sorting, an answer that no longer differs from a
    cheaper one is left out; for example, it changes the same columns and one more.
    """
    answers = state.answers
    share = state.question.share_of_rounding
    believed = list(answers)
    for place, (answer, point) in enumerate(answers):
        least_cost = min(later.cost for later, _ in answers[place:])
        if is_disproved(answer.bound, least_cost, share=share):
            believed[place] = (_with_trivial_bound(answer), point)
    if all(after[0] is before[0] for after, before in zip(believed, answers, strict=True)):
        return answers
    believed.sort(key=lambda pair: pair[0].cost)
    ranked: list[Answer] = []
    for answer, point in believed:
        rank = len(ranked) + 1
        if not replace(state, answers=tuple(ranked)).differs(point):
            continue
        if answer.rank == rank:
            ranked.append((answer, point))
        else:
            ranked.append((altered(answer, rank=rank), point))
    return tuple(ranked)


# ---- numbers as fine as their data -----------------------------------------------------------------------------------
#: Numbers of additional decimals that are tried, beyond those of the data. The last is for what six more do not
#: suffice for: with eight, rounding hardly changes the cost.
_MORE_DECIMALS: Final = (0, 1, 2, 3, 4, 5, 6, 8)
_WAYS: Final[tuple[Literal["nearest", "away", "home"], ...]] = ("nearest", "away", "home")
#: How many candidates of the right cost are tried at most, for each group of columns that are rounded together.
_MOST_TRIED: Final = 4


def in_decimals_of_data(state: State, answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """Return answers with the numbers of continuous columns rounded to the decimals of their data, or to some more.

    A rounded answer must pass the same check, differ from the other answers as asked, cost at least its proved bound
    and at most ``rounded_gap`` more than before, and keep its place in the order of costs. A number that cannot be
    rounded so keeps its digits.
    """
    found = list(answers)
    question = state.question
    if state.interrupted or not any(map(_may_be_rounded, question.space)):
        return answers
    costs = [answer.cost for answer, _ in answers]
    is_ordered = costs == sorted(costs)
    # From the last: the rounded cost of the next answer is the upper limit of this one.
    for place in reversed(range(len(answers))):
        if question.is_past_grace:
            break
        least = 0.0
        most = math.inf
        if is_ordered and place > 0:
            least = costs[place - 1]
        if is_ordered and place + 1 < len(found):
            most = found[place + 1][0].cost
        others = (*answers[:place], *found[place + 1 :])
        found[place] = _rounded(state, answers[place], others, least, most)
    return tuple(found)


def _may_be_rounded(feature: Feature) -> bool:
    """Tell whether a column is continuous and without steps, and the number of decimals in its data is known."""
    return feature.kind == "continuous" and feature.step is None and feature.decimals is not None


def _rounded(state: State, one: Answer, others: tuple[Answer, ...], least: float, most: float) -> Answer:
    """Return an answer in the fewest decimals at which it costs ``least`` to ``most`` and passes every check."""
    question = state.question
    answer, point = one
    predictions: list[Any] = []  # of the candidates that passed; the last of them is the one that is returned

    def passes(candidate: dict[str, float]) -> bool:
        check = question.check(candidate)
        if not check.valid or check.broken or not _differs(state, answer, candidate, others):
            return False
        predictions.append(check.prediction)
        return True

    least_proved = (answer.bound or 0.0) * (1.0 - DIGIT_NOISE)
    dearest = answer.cost * (1.0 + rounded_gap(question))
    for gap in (rounded_gap(question), question.settings.relative_gap):
        if (answer.gap or 0.0) <= gap < 1.0:  # an answer within this gap must stay within it after rounding
            dearest = min(dearest, (answer.bound or 0.0) / (1.0 - gap))
    costs = (max(least_proved, least), min(dearest, most))
    rounded = in_fewer_decimals(question, point, costs, passes, margin=state.margin or 0.0)
    if rounded == point:
        return one
    made = answer_of(
        question.prepared,
        question.factual,
        rounded,
        prediction=predictions[-1],
        bound=answer.bound,
        rank=answer.rank,
        cluster=answer.cluster,
    )
    return made, rounded


def rounded_gap(question: Question) -> float:
    """Return the share of its cost that rounding may add to an answer."""
    return min(question.settings.relative_gap, ROUNDED_GAP)


def in_fewer_decimals(
    question: Question,
    point: dict[str, float],
    costs: tuple[float, float],
    passes: Callable[[dict[str, float]], bool],
    *,
    margin: float | None,
) -> dict[str, float]:
    """Return a point rounded to the fewest decimals at which its cost lies within ``costs`` and ``passes`` accepts it.

    It breaks no rule by more than before. All numbers are first rounded together, then each one alone to fewer
    decimals. Whatever cannot be rounded keeps its digits.

    Parameters
    ----------
    question
        The person's columns, reach, rules and cost.
    point
        Coordinates that pass every check.
    costs
        The least and the most that a rounded point may cost.
    passes
        Tells whether the user's own model and any further condition accept a rounded point.
    margin
        Least slack of a rounded point in the model as read; if the point itself has less, then that much. None skips
        this test.
    """
    changed = []
    for feature in question.space:
        value = point[feature.name]
        if _may_be_rounded(feature) and value != question.factual[feature.name] and not feature.is_label(value):
            changed.append(feature)
    groups = [[feature] for feature in changed]
    if len(changed) > 1:
        groups.insert(0, changed)
    rounded = dict(point)
    for group in groups:
        candidates = _of_about_cost(question, list(_in_decimals(question, rounded, point, group)), costs)
        if candidates and margin is not None:
            slacks = question.prepared.slacks(coordinates_of(question.space, [point, *candidates]))
            candidates = list(itertools.compress(candidates, slacks[1:] >= min(float(slacks[0]), margin)))
        tried = 0
        for candidate in candidates:
            if not costs[0] <= question.cost(candidate) <= costs[1]:
                continue
            tried += 1
            if _keeps_rules(question, point, candidate) and passes(candidate):
                rounded = candidate
                break
            if tried == _MOST_TRIED or question.is_past_grace:
                break
    return rounded


def _in_decimals(
    question: Question, point: dict[str, float], unrounded: Mapping[str, float], group: Sequence[Feature]
) -> Iterator[dict[str, float]]:
    """Yield candidates with the numbers of a group rounded, fewest decimals first.

    With each number of decimals: to the nearest number, then away from the factual value, then towards it. A single
    number that is rounded already is only tried at fewer decimals than it has.
    """
    seen = [point]
    is_rounded_alone = len(group) == 1 and point != unrounded
    for more in _MORE_DECIMALS:
        for way in _WAYS:
            rounded = dict(point)
            for feature in group:
                name = feature.name
                home = question.factual[name]
                if feature.is_label(home):
                    home = unrounded[name]
                number = in_places(unrounded[name], (feature.decimals or 0) + more, way, home=home)
                if is_rounded_alone and number == point[name]:
                    return
                if question.person.reach[name].holds(number):
                    rounded[name] = number
            if rounded not in seen:
                seen.append(rounded)
                yield rounded


def _of_about_cost(
    question: Question, points: list[dict[str, float]], costs: tuple[float, float]
) -> list[dict[str, float]]:
    """Return the points whose cost lies within ``costs``, up to rounding; costs are computed in one vectorised call."""
    if not points:
        return []
    least, most = costs
    cost = question.settings.cost
    objectives = cost.objectives(question.space, question.factual, coordinates_of(question.space, points))
    about = objectives >= cost.to_objective(least * (1.0 - EQUAL_COSTS))
    about &= objectives <= cost.to_objective(most * (1.0 + EQUAL_COSTS))
    return [points[k] for k in np.flatnonzero(about)]


def _keeps_rules(question: Question, point: Mapping[str, float], rounded: Mapping[str, float]) -> bool:
    """Tell whether a rounded point breaks no rule by more than the original, even if the rule's tolerance allows it."""
    for rule in question.settings.rules:
        before = rule.missed(question.space, question.factual, point)
        if rule.missed(question.space, question.factual, rounded) > before:
            return False
    return True


def _differs(state: State, answer: Counterfactual, rounded: dict[str, float], others: tuple[Answer, ...]) -> bool:
    """Tell whether a rounded point differs, by the diversity asked for, from all answers before it.

    And whether all answers after it differ so from the point.
    """
    before = tuple(other for other in others if other[0].rank < answer.rank)
    after = [point for other, point in others if other.rank > answer.rank]
    if not replace(state, answers=before).differs(rounded):
        return False
    only_this = replace(state, answers=((answer, rounded),))
    return all(map(only_this.differs, after))


def _with_trivial_bound(answer: Counterfactual) -> Counterfactual:
    """Return an answer with the bound 0, which holds of every cost; its gap is then 1, or 0 if it costs nothing."""
    return altered(answer, bound=0.0, gap=answer.cost / max(answer.cost, COST_NOISE))


def result_without_model(settings: Settings, space: FeatureSpace, row: Any, *, stage: str, began: float) -> SolutionSet:
    """Return the result for a person if the time limit ended the reading of the model."""
    factual = space.frame([space.row(row)])
    options = settings.unchecked_options()
    return SolutionSet(
        status=Status.TIME_LIMIT,
        counterfactuals=(),
        factual=factual,
        complete=False,
        reason=used_up(settings.limit_s(), stage),
        timings=Stopwatch(began).timings(),
        versions=dict(versions("pyomo", "highspy")),
        options=options,
        target=printable(str(options["target"])),
        space=space,
    )
