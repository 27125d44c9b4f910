"""A search: from one person's row to verified answers, as a loop over a state.

What the solver returns is read as integer decisions, rebuilt as floats, and handed to the user's own model and to the
rules in plain numbers; only what passes is an answer. The phases, each a step from one state to another::

    START          a row that needs no change ends here; cheap points  solve_check_repair.py
      |            are looked for
      |
    PROGRAM <--+   one program is solved and its point checked;        solve_check_repair.py
      |   |    |   what fails is asked for otherwise
      |   +----+
    MARGIN         what a default margin left out is looked for        phases.py
      |
      +-- of the first answer --+-- of a further one
      |                         |
    WIDER_RULES                 |      where none is proved            phases.py
      |                       LIMIT    may it cost as much?
    CONFLICT                    |      which rules are to blame?       phases.py
      |                         |
    FEWER <---------------------+      would fewer columns do?         phases.py
      |
    NEXT   back to PROGRAM for another; to LIMIT with one that was met on the way; or
      |
     END

The file beside a phase makes its step; all others are here. Of points that were met on the way to the best one, by the
solver and by the search for its start, no order is claimed.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from ceopt.base.libraries import versions
from ceopt.base.said import said, together
from ceopt.formulations.constraints.diversity.diversity import OtherDecisions
from ceopt.formulations.digits import in_places
from ceopt.formulations.space.reachable import reach_of
from ceopt.oracle.rows import coordinates_of
from ceopt.result.counterfactual import when_read
from ceopt.result.solution_set import SolutionSet
from ceopt.search.build_answer import answer_of, asked_by_rules, line_without, rules_beyond, with_printed
from ceopt.search.phases import (
    conflict_in,
    look_for_conflict,
    look_under_wider_rules,
    look_within_margin,
    look_within_steps,
    with_fewer_columns,
)
from ceopt.search.solve_check_repair import (
    accept_checked,
    fall_back,
    find_starts,
    is_disproved,
    out_of_time,
    solve_and_check,
    used_up,
)
from ceopt.search.solve_program import Person
from ceopt.search.state import Answer, Finding, Phase, Question, State, Stopwatch, Tries, favourable, without_unseen
from ceopt.solvers.deadline import OutOfTimeError, deadline_now, until
from ceopt.solvers.errors import CeoptError, printable
from ceopt.status import Status
from ceopt.tolerances import BOUND_ROUNDING, DIGIT_NOISE, EQUAL_COSTS, ROUNDED_GAP, SAME_VALUE
from ceopt.words.sentences import removed_said, rules_said, target_said

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.result.counterfactual import Counterfactual
    from ceopt.search.conflict import Conflict
    from ceopt.search.prepare import Prepared
    from ceopt.search.solve_program import Point
    from ceopt.settings import CheckedSettings, Settings

# ==== Answers that were met on the way ================================================================================

Coordinates: TypeAlias = dict[str, float]


def next_incumbent(state: State) -> State:
    """Take the cheapest remaining point met on the way that passes the check."""
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
) -> SolutionSet:
    """Return the verified answers for one person; an outcome of the solver is a status, never an exception.

    Ctrl-C stops the solver; what it holds is checked and returned, or KeyboardInterrupt goes on where
    ``keep_on_interrupt`` is False. ``within`` is how much more than the best any other answer may cost: there are no
    more once it is proved that the next costs more, and none but the best where that one is not proved. ``began`` is
    when the limit began, on the clock of ``time.perf_counter``, where the model was read within it; by default now.
    ``why_s`` are the seconds for the rules in conflict, by default those of the settings; with 0,
    :func:`conflict_or_answer` looks for them later.

    Raises
    ------
    CeoptError
        The row is unusable: a missing or unknown column, NaN, an unseen level, a value outside the user's bounds.
    """
    state = init(prepared, row, keep_on_interrupt=keep_on_interrupt, within=within, began=began, why_s=why_s)
    try:
        with until(state.question.deadline):
            while not done(state):
                state = step(state)
    except OutOfTimeError as error:
        state = _late(replace(state, stage=error.stage))
    except KeyboardInterrupt:
        if not (keep_on_interrupt and state.answers):
            raise
        interrupted = Finding(Status.TIME_LIMIT, reason=said("The search was interrupted.", "interrupted"))
        state = replace(state, first=state.first or state.last, last=interrupted)
    return result(state, prepared.settings, query_id)


def conflict_or_answer(
    prepared: Prepared, row: Any, *, query_id: Any, seconds: float
) -> tuple[Conflict | SolutionSet, Mapping[str, float]]:
    """Return the rules in conflict of a person who is proved to have no answer, and the seconds that it took by phase.

    Where the proof has overlooked an answer, to the solver's tolerance, the person's result is returned instead. Ctrl-C
    goes on as KeyboardInterrupt.
    """
    state = init(
        prepared.within(seconds), row, keep_on_interrupt=False, within=None, began=None, why_s=seconds
    )  # fmt: skip
    state, conflict = conflict_in(state)
    if conflict is not None:
        return conflict, state.question.stopwatch.timings()
    state = replace(state, phase=Phase.FEWER)
    try:
        with until(state.question.deadline):
            while not done(state):
                state = step(state)
    except OutOfTimeError as error:
        state = _late(replace(state, stage=error.stage))
    return result(state, prepared.settings, query_id), state.question.stopwatch.timings()


def init(
    prepared: Prepared,
    row: Any,
    *,
    keep_on_interrupt: bool,
    within: float | None,
    began: float | None,
    why_s: float | None = None,
) -> State:
    """Return the state in which a search begins, or has ended where the row needs no change."""
    stopwatch = Stopwatch(time.perf_counter(), read_s=0.0)
    if began is not None:
        stopwatch = Stopwatch(began, read_s=prepared.read_s)
    space = prepared.space
    factual = space.row(row)
    space.require_moderate(factual)
    reach = without_unseen(prepared.predictor, reach_of(space, factual), factual)
    question = Question(
        prepared=prepared.about(factual, reach),
        person=Person(factual, space.frame([factual]), reach, space),
        deadline=min(stopwatch.began + prepared.settings.time_limit_s, deadline_now()),
        within=within,
        why_s=prepared.settings.why_s if why_s is None else why_s,
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
    if state.first is None:
        after = Phase.WIDER_RULES
    else:
        after = Phase.LIMIT
    if state.question.has_default_margin:
        state = look_within_steps(look_within_margin(state))
    return replace(state, phase=after)


def _limit(state: State) -> State:
    """Give a further answer back that costs more than was asked for."""
    finding = state.last
    most = state.most()
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
    if state.last.status is Status.INFEASIBLE and state.last.proved:
        state = look_under_wider_rules(state, state.last)
    return replace(state, phase=Phase.CONFLICT)


def _conflict(state: State) -> State:
    assert state.last is not None  # noqa: S101 - the phase before ends with one
    if state.last.status is Status.INFEASIBLE:
        state = look_for_conflict(state, state.last)
    return replace(state, phase=Phase.FEWER)


def _fewer(state: State) -> State:
    if state.question.settings.n > 1:  # what comes first decides what may follow
        state = with_fewer_columns(state)
    return replace(state, phase=Phase.NEXT)


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
    Phase.FEWER: _fewer,
    Phase.NEXT: _next,
}


def _late(state: State) -> State:
    """Return the state in which the time limit has ended a search between two programs."""
    first = state.first
    if first is None and state.last is not None and state.last.answer is not None:
        first = state.last
    state = replace(state, first=first, tries=Tries(state.margin, state.diversity))
    return fall_back(state, out_of_time(state))


# ---- what it came to -------------------------------------------------------------------------------------------------
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
    question = state.question
    space = question.space
    reach = question.person.reach
    target = asked.target
    last = state.last
    assert last is not None  # noqa: S101 - the search has ended
    answers = ranked_anew(state)
    first = _first_finding(state, answers)
    answers = in_decimals_of_data(state, answers)
    beyond = rules_beyond(asked.rules, space, question.factual)
    marked = asked_by_rules(answers, beyond, space, question.factual, question.keeps_target)
    if not state.interrupted:
        pairs = list(zip(marked, [point for _, point in answers], strict=True))
        marked = with_printed(pairs, question.settings.rules, space, question.factual, question.accepts)
    gap = None
    if answers:
        gap = answers[0][0].gap
    elif first.status is Status.ALREADY_FAVOURABLE:
        gap = 0.0
    return SolutionSet(
        status=first.status,
        counterfactuals=tuple(marked),
        factual=question.person.row,
        bound=answers[0][0].bound if answers and first.bound is not None else first.bound,
        gap=gap,
        margin=state.margin or 0.0,
        complete=len(answers) == asked.n or (last.proved and len(answers) == len(state.answers)),
        reason=first.reason,
        conflict=state.conflict,
        relaxed=state.relaxed,
        timings=question.stopwatch.timings(),
        solver=state.solver,
        versions=dict(versions("pyomo", "highspy")),
        options=asked.options(),
        target=when_read(lambda: target_said(target)),
        removed=when_read(lambda: removed_said(space, reach)),
        query_id=query_id,
        space=space,
        rules=rules_said(asked.rules, space),
        fingerprints=question.prepared.fingerprints,
        size=state.size,
        beyond={name: line_without(rule) for name, rule in beyond.items()},
    )


def _first_finding(state: State, answers: Sequence[Answer]) -> Finding:
    """Return the reasons: about the best answer, and why there are no further ones."""
    first = state.first or state.last
    last = state.last
    assert first is not None  # noqa: S101 - the search has ended
    assert last is not None  # noqa: S101 - the same
    if answers and answers[0][0] is not state.answers[0][0]:
        best = answers[0][0]
        text = "A further answer costs less than was proved of an earlier one: nothing is proved."
        reason = said(text, "cheaper_than_proved")
        first = Finding(Status.FEASIBLE, answer=best, bound=best.bound, reason=reason)
    more = ""
    if len(answers) < len(state.answers):
        more = said("What does not differ from a cheaper answer is left out.", "not_distinct_left_out")
    elif last.answer is None and answers and last.proved:
        more = said("Proved: there are no more.", "proved_no_more")
    elif last.answer is None and answers:
        more = said(f"No more, as: {last.reason}", "no_more_as", why=last.reason)
    if not more:
        return first
    return replace(first, reason=together(first.reason, more))


def ranked_anew(state: State) -> tuple[Answer, ...]:
    """Return answers as they stand, or in order of cost where one contradicts the bound of an earlier one.

    Each answer was looked for among those that differ from all before it, so a later one may not cost less than what
    was proved for an earlier one. Where it does, that bound proves nothing. One that does not differ from what then
    stands before it is left out: it may change all that a cheaper one changes, and more.
    """
    answers = state.answers
    believed: list[Answer] = []
    for place, (answer, point) in enumerate(answers):
        share = state.question.share_of_steps
        is_false = any(is_disproved(answer.bound, later.cost, share=share) for later, _ in answers[place:])
        believed.append((_without_bound(answer) if is_false else answer, point))
    if all(after[0] is before[0] for after, before in zip(believed, answers, strict=True)):
        return answers
    believed.sort(key=lambda pair: pair[0].cost)
    kept: list[Answer] = []
    for answer, point in believed:
        if replace(state, answers=tuple(kept)).differs(point):
            kept.append((answer, point))
    ranked: list[Answer] = []
    for rank, (answer, point) in enumerate(kept, start=1):
        ranked.append((answer if answer.rank == rank else _with(answer, rank=rank), point))
    return tuple(ranked)


# ---- numbers as fine as their data -----------------------------------------------------------------------------------
#: Decimals beyond those of the data that are tried, until rounding costs nothing to speak of.
_MORE_DECIMALS: Final = (0, 1, 2, 3, 4, 5, 6, 8)
_WAYS: Final[tuple[Literal["nearest", "away", "home"], ...]] = ("nearest", "away", "home")
#: How many of the points that pass all else are shown to the user's own model.
_SHOWN: Final = 4


def in_decimals_of_data(state: State, answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """Return answers with the numbers of continuous columns rounded to the decimals of their data, or to some more.

    A rounded answer is checked like any other. It differs from the others as is asked, costs no less than was proved of
    it and at most the relative gap more, and no answer changes its rank; else a number keeps the digits that it has.
    """
    found = list(answers)
    question = state.question
    if state.interrupted or not any(map(_is_free, question.space)):
        return answers
    costs = [answer.cost for answer, _ in answers]
    is_ordered = costs == sorted(costs)
    for place in reversed(range(len(answers))):
        if question.is_over:
            break
        least, most = 0.0, math.inf
        if is_ordered and place > 0:
            least = costs[place - 1]
        if is_ordered and place + 1 < len(found):
            most = found[place + 1][0].cost
        others = (*answers[:place], *found[place + 1 :])
        found[place] = _rounded(state, answers[place], others, least, most)
    return tuple(found)


def _is_free(feature: Feature) -> bool:
    """Whether a column takes any number, though its data have few decimals."""
    return feature.kind == "continuous" and feature.step is None and feature.decimals is not None


def _rounded(state: State, one: Answer, others: tuple[Answer, ...], least: float, most: float) -> Answer:
    """Return an answer in the fewest decimals in which it costs between two amounts and passes every check."""
    question = state.question
    answer, point = one
    predictions: list[Any] = []

    def passes(candidate: dict[str, float]) -> bool:
        check = question.check(candidate)
        if not check.valid or check.broken or not _differs(state, answer, candidate, others):
            return False
        predictions.append(check.prediction)
        return True

    bound = (answer.bound or 0.0) * (1.0 - DIGIT_NOISE)
    dearest = answer.cost * (1.0 + rounded_gap(question))
    for gap in (rounded_gap(question), question.settings.relative_gap):
        if (answer.gap or 0.0) <= gap < 1.0:  # and so it is to stay
            dearest = min(dearest, (answer.bound or 0.0) / (1.0 - gap))
    costs = (max(bound, least), min(dearest, most))
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
    """Return a point in the fewest decimals in which it costs between two amounts, keeps the rules as well, and passes.

    All its numbers are rounded together, and then each alone to fewer decimals, as one may need more than another. What
    does not pass keeps its digits.

    Parameters
    ----------
    question
        About whom: the columns, the reach, the rules and the cost.
    point
        Coordinates that pass every check.
    costs
        The least and the most that a rounded point may cost.
    passes
        Asks the user's own model about a point, and whatever else it must be.
    margin
        By how much the decision must reach the target in the model as it was read, unless it does not in the point
        itself; None: that is not looked at.
    """
    free = []
    for feature in question.space:
        if _is_free(feature) and point[feature.name] != question.factual[feature.name]:
            free.append(feature)
    parts = [free] if free else []
    if len(free) > 1:
        parts += [[feature] for feature in free]
    rounded = dict(point)
    for part in parts:
        candidates = _of_about_cost(question, list(_in_decimals(question, rounded, point, part)), costs)
        if candidates and margin is not None:
            # Kept are those whose decision is as firm as the margin asks, or as that of the point itself.
            slacks = question.prepared.slacks(coordinates_of(question.space, [point, *candidates]))
            candidates = list(itertools.compress(candidates, slacks[1:] >= min(float(slacks[0]), margin)))
        shown = 0
        for candidate in candidates:
            if not costs[0] <= question.cost(candidate) <= costs[1]:
                continue
            shown += 1
            if _keeps_rules(question, point, candidate) and passes(candidate):
                rounded = candidate
                break
            if shown == _SHOWN or question.is_over:
                break
    return rounded


def _in_decimals(
    question: Question, point: dict[str, float], unrounded: Mapping[str, float], free: Sequence[Feature]
) -> Iterator[dict[str, float]]:
    """Yield a point with some numbers rounded: to few decimals first, to the nearest, then away from home, then to it.

    What has been rounded already is rounded to fewer decimals only.
    """
    seen = [point]
    for more in _MORE_DECIMALS:
        for way in _WAYS:
            rounded = dict(point)
            for feature in free:
                name = feature.name
                number = in_places(unrounded[name], (feature.decimals or 0) + more, way, home=question.factual[name])
                if number == point[name] and len(free) == 1 and point != unrounded:
                    return
                if question.person.reach[name].holds(number):
                    rounded[name] = number
            if rounded not in seen:
                seen.append(rounded)
                yield rounded


def _of_about_cost(
    question: Question, points: list[dict[str, float]], costs: tuple[float, float]
) -> list[dict[str, float]]:
    """Return the points that cost between two amounts, but for the rounding of sums; all are priced at once."""
    if not points:
        return []
    least, most = costs
    cost = question.settings.cost
    objectives = cost.objectives(question.space, question.factual, coordinates_of(question.space, points))
    about = objectives >= cost.to_objective(least * (1.0 - EQUAL_COSTS))
    about &= objectives <= cost.to_objective(most * (1.0 + EQUAL_COSTS))
    return [points[k] for k in np.flatnonzero(about)]


def _keeps_rules(question: Question, point: Mapping[str, float], rounded: Mapping[str, float]) -> bool:
    """Tell whether a point breaks no rule by more than another, not within a rule's tolerance either."""
    for rule in question.settings.rules:
        before = rule.missed(question.space, question.factual, point)
        if rule.missed(question.space, question.factual, rounded) > before:
            return False
    return True


def _differs(state: State, answer: Counterfactual, rounded: dict[str, float], others: tuple[Answer, ...]) -> bool:
    """Tell whether a point differs from all other answers, and each later one from it, as was asked."""
    before = tuple(other for other in others if other[0].rank < answer.rank)
    after = [point for other, point in others if other.rank > answer.rank]
    if not replace(state, answers=before).differs(rounded):
        return False
    alone = replace(state, answers=((answer, rounded),))
    return all(map(alone.differs, after))


def _without_bound(answer: Counterfactual) -> Counterfactual:
    return _with(answer, bound=0.0, gap=answer.cost / max(answer.cost, 1e-12))


def _with(answer: Counterfactual, **changes: Any) -> Counterfactual:
    return replace(answer, values=answer.frame, **changes)  # type: ignore[arg-type]  # a frame keeps the dtypes


def unread(settings: Settings, space: FeatureSpace, row: Any, *, stage: str, began: float) -> SolutionSet:
    """Return the result of a person where the time limit ended the reading of the model."""
    factual = space.frame([space.row(row)])
    options = settings.unchecked_options()
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
        target=printable(str(options["target"])),
        space=space,
    )
