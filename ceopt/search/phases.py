"""Phases of a search after its program: fewer columns, ties at the decision, wider rules and conflicts.

Of answers that cost the same, one that changes a part of another's columns comes first. By "distinct" an answer bars
all that change its columns and more, so which of two answers of one cost comes first decides what may follow, and a
solver gives either. With the fewer columns first both may come, and the ranks are the same for every solver and
formulation.

Ties are answers that a default margin leaves out; they are looked for where they may be cheaper. Where the model's own
score is a staircase, as over a column that hardly varies beside its size, what is claimed is what holds for all points
that the model may accept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ceopt.base.results import Status
from ceopt.base.said import said, together
from ceopt.formulations.constraints.diversity.distinct import Distinct
from ceopt.formulations.constraints.diversity.diversity import SomeStay, changed_columns
from ceopt.formulations.constraints.rule import nearest_cluster
from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.predictors.ties import has_negligible_terms, is_on_lattice, row_relaxation, summation_rounding
from ceopt.formulations.space.reachable import Interval, Reach, with_others_at_home
from ceopt.formulations.targets import Labels, Values
from ceopt.oracle.rows import coordinates_of
from ceopt.result.counterfactual import altered
from ceopt.search import without_program
from ceopt.search.build_answer import answer_of
from ceopt.search.conflict import conflict_of
from ceopt.search.ranges import is_filled_in
from ceopt.search.relaxation import LATE, Relaxer, enlargements
from ceopt.search.solve_check_repair import (
    MOST_REPAIRS,
    accept_checked,
    attempt,
    check_solved,
    find_starts,
    none_in_reach,
    solve,
)
from ceopt.search.solve_program import has_extreme_numbers
from ceopt.search.state import Finding, Phase, favourable, reach_without
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.solvers.problem import Stop
from ceopt.tolerances import COST_NOISE, COST_OF_MARGIN, EQUAL_COSTS, NEAR_AN_END

if TYPE_CHECKING:
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.search.conflict import Conflict
    from ceopt.search.relaxation import Enlarged
    from ceopt.search.solve_program import SolvedProgram
    from ceopt.search.state import Question, State

#: Parts of the way from a usual amount to an answer's own, of which each is asked about at once, and how often.
_PARTS_TO_AMOUNT, _ROUNDS_TO_AMOUNT = 32, 4

# ==== Fewer columns at the same cost ==================================================================================


def with_fewer_columns(state: State) -> State:
    """Replace the latest answer as long as a part of its columns will do at the same cost."""
    while _may_need_fewer_columns(state) and not _is_dearer_with_fewer(state):
        state, is_found = _looked(state)
        if not is_found:
            return state
    return state


def without_free_moves(state: State) -> State:
    """Take moves of the latest answer back that cost nothing, where it stays an answer."""
    question = state.question
    if state.last is None or state.last.answer is None or state.interrupted:
        return state
    answer, point = state.answers[-1]
    before = replace(state, answers=state.answers[:-1])
    cost = question.cost(point)
    prediction = None
    for name in answer.changed:
        back = {**point, name: question.factual[name]}
        if question.cost(back) != cost or not before.differs(back):  # under joint costs a way back may cost more
            continue
        check = question.check(back)
        if check.valid and not check.broken:
            point = back
            prediction = check.prediction
    return state if prediction is None else _with_point(state, point, prediction)


def _with_point(state: State, point: Mapping[str, float], prediction: Any) -> State:
    """Return the state with another point of the same cost as the latest answer."""
    question = state.question
    assert state.last is not None  # noqa: S101 - an answer was found
    *before, (answer, _) = state.answers
    cluster = nearest_cluster(question.settings.rules, question.space, point)
    other = answer_of(
        question.prepared, question.factual, dict(point),
        prediction=prediction, bound=answer.bound, rank=answer.rank, cluster=cluster,
    )  # fmt: skip
    return replace(state, answers=(*before, (other, dict(point))), last=replace(state.last, answer=other))


def _may_need_fewer_columns(state: State) -> bool:
    question = state.question
    if not state.diversity.prefers_fewer_columns:
        return False
    if state.last is None or state.last.answer is None or state.interrupted or question.is_late:
        return False
    return len(changed_columns(question.factual, state.answers[-1][1], state.diversity.together)) > 1


def _is_dearer_with_fewer(state: State) -> bool:
    """Whether a bound proves that no part of the columns does at the same cost."""
    predictor = state.question.prepared.predictor
    if state.diversity.together or not (predictor.is_trees or predictor.is_linear):
        return False
    try:
        return without_program.is_dearer_with_fewer(state)
    except OutOfTimeError:
        return False


def _looked(state: State) -> tuple[State, bool]:
    """Look for an answer with a part of the columns, with the margin and, where it is a default, without.

    Only these columns may move, so that the program is small.
    """
    question = state.question
    changed = changed_columns(question.factual, state.answers[-1][1])
    for group in state.diversity.together:  # another one of them may take the 1
        if not changed.isdisjoint(group):
            changed.update(group)
    reach = with_others_at_home(question.person.reach, changed, question.factual)
    few = replace(question, person=replace(question.person, reach=reach))
    margins = [state.margin]
    if question.has_default_margin and state.margin:
        margins.append(0.0)
    learned = state
    try:
        for margin in margins:
            before = replace(state.with_facts_of(learned), answers=state.answers[:-1])
            learned = _solved(replace(before, question=few, margin=margin), state)
            if len(learned.answers) == len(state.answers):
                found = replace(learned, question=question, margin=state.margin, refused=state.refused)
                return found, True
            if learned.interrupted:
                break
    except OutOfTimeError:
        pass
    return state.with_facts_of(learned), False


def _solved(state: State, whole: State) -> State:
    """Return the state with an answer of fewer columns at no more cost, or with the solver marked as doubted.

    What the model refuses is left out, and looked for again.
    """
    question = state.question
    answer, point = whole.answers[-1]
    assert whole.last is not None  # noqa: S101 - it has an answer
    most = answer.cost * (1.0 + EQUAL_COSTS)
    excluded = [(point, SomeStay(together=state.diversity.together))]
    for _ in range(MOST_REPAIRS):
        state, solved = attempt(state, question.deadline - time.perf_counter(), cost_limit=most, also=excluded)
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


# ==== Amounts that are filled in ======================================================================================
def with_usual_amounts(state: State) -> State:
    """Bring each number that the latest answer fills in as near to a usual amount as the model lets.

    It costs the same whatever it becomes, and the end of what is in reach is hardly anybody's amount. Under a diversity
    that measures amounts it stays, as it might take the room of a further answer.
    """
    question = state.question
    settings = question.settings
    measures_amounts = settings.n > 1 and not isinstance(state.diversity, Distinct)
    if state.last is None or state.last.answer is None or state.interrupted or measures_amounts:
        return state
    if any(rule.slow for rule in settings.rules):
        return state
    answer, first = state.answers[-1]
    filled = [name for name in answer.changed if is_filled_in(question.space[name], question.factual, first)]
    reach = question.person.reach
    usual = {name: _usual_amount(question, name) for name in filled if isinstance(reach[name], Interval)}
    point = dict(first)
    for _ in usual:  # what one becomes may make room for another
        before = dict(point)
        for name, amount in usual.items():
            point[name] = _nearest_amount(state, point, name, amount)
        if point == before:
            break
    if point == first:
        return state
    check = question.check(point)
    return _with_point(state, point, check.prediction) if check.valid and not check.broken else state


def _usual_amount(question: Question, name: str) -> float:
    """Return an amount in the middle of those of the rows that the model favours; without data, of those in reach."""
    feature, part = question.space[name], question.person.reach[name]
    assert isinstance(part, Interval)  # noqa: S101 - it is an amount
    rows = question.prepared.target_rows
    amounts = np.zeros(0)
    if rows is not None:
        amounts = rows[:, question.space.names.index(name)]
        amounts = amounts[~feature.are_labels(amounts)]
    if not len(amounts):
        ends = np.array([part.lower, part.upper])
        amounts = ends[np.isfinite(ends)]
    return part.clip(float(np.median(amounts))) if len(amounts) else part.clip(0.0)


def _nearest_amount(state: State, point: Mapping[str, float], name: str, middle: float) -> float:
    """Return the amount nearest to a middle at which a point is an answer of the same cost; else its own."""
    question = state.question
    part = question.person.reach[name]
    assert isinstance(part, Interval)  # noqa: S101 - it is an amount
    before = replace(state, answers=state.answers[:-1])
    cost = question.cost(point)
    good, asked = point[name], [middle]
    for _ in range(_ROUNDS_TO_AMOUNT):
        if question.is_late:
            break
        points = [{**point, name: amount} for amount in asked]
        slacks = question.prepared.slacks_beyond(coordinates_of(question.space, points), question.settings.margin)
        are_met = question.prepared.judge(points)[1] & (slacks >= 0.0)
        may_be = (k for k in np.flatnonzero(are_met).tolist() if question.cost(points[k]) <= cost)
        first = next((k for k in may_be if question.keeps_rules(points[k]) and before.differs(points[k])), len(asked))
        middle, good = [middle, *asked][first], [*asked, good][first]
        steps = [part.clip(float(amount)) for amount in np.linspace(middle, good, _PARTS_TO_AMOUNT + 1)]
        asked = [amount for amount in dict.fromkeys(steps) if amount not in {middle, good}]
        if not asked:
            break
    return good


# ==== Ties at the decision, and steps of the model's own arithmetic ===================================================

#: Shares of the margin that are tried where a cheaper point is refused by a trace: the smaller may be lost in noise.
_SMALLER: Final = (1 / 256, 1 / 16)
#: Factor between margins from rounding on: what one solver loses at the least, it finds at the next.
_LARGER: Final = 16.0
#: Steps from which on a solver leaves whole numbers a trace beside where they belong, too.
_MANY_STEPS: Final = 2.0**23

#: Share of the way back from an answer at which the model is asked at most.
_FAR_BACK: Final = 1e-3
#: What the model says of a point that it accepts, and the point.
_Accepted: TypeAlias = tuple[Any, dict[str, float]]
#: What a program taught, the program, and what the model accepts of it.
_Found: TypeAlias = "tuple[State, SolvedProgram, _Accepted]"


def look_within_margin(state: State) -> State:
    """Look for a cheaper answer without the margin that the model accepts; else keep the answer in hand."""
    if not _may_be_undercut(state):
        return state
    assert state.last is not None  # noqa: S101 - the phase before ends with one
    if state.last.answer is None:
        return _with_any_tie(state)
    return _with_a_cheaper_tie(state)


def look_for_traces(state: State) -> State:
    """Keep the proof that there is nothing only where rows relaxed by more than the traces they leave out say so too.

    For a margin that was asked for: under a default one relaxed programs are solved all the same.
    """
    question = state.question
    finding = state.last
    assert finding is not None  # noqa: S101 - the phase before ends with one
    if question.prepared.asks_model or not finding.is_proved_infeasible:
        return state
    if not has_negligible_terms(question.prepared.predictor):
        return state
    below = row_relaxation(question.prepared.predictor, question.factual, question.person.reach)
    margin = max((state.margin or 0.0) - below, 0.0)
    left = question.deadline - time.perf_counter()
    if left > 0.0:
        try:
            learned, solved = attempt(replace(state, margin=margin), left, below=0.0 if margin else below)
        except OutOfTimeError as error:
            state = replace(state, stage=error.stage)
        else:
            state = state.with_facts_of(learned)
            if solved.outcome.status is Stop.INFEASIBLE:
                return state
    text = "Whether a part of the score that is too small for the program is enough is not settled."
    return replace(state, last=Finding(_unsettled_status(state), reason=said(text, "traces_unsettled")))


def _with_any_tie(state: State) -> State:
    """Look for any answer; infeasibility stays proved where even the program relaxed by roundings is infeasible.

    Or where what is found at less and less margin is refused, until nothing is found; not where rows leave out traces.
    """
    finding = state.last
    assert finding is not None  # noqa: S101 - as who calls this knows
    if _is_refused_at_best(state):
        return state
    predictor = state.question.prepared.predictor
    is_counted = not _own_rounding(state.question)
    most_of_margin = 0.0 if has_negligible_terms(predictor) else min(_SMALLER)
    learned = state
    infimum = None
    try:
        for share, below in _programs(state):
            learned, solved, accepted = _tried(state, learned, share, below, None)
            if share == 0.0 and not below:
                infimum = state.question.bound_on_cost(solved.outcome)
            if accepted is not None:
                return _accept(state, share, (learned, solved, accepted), infimum)
            if learned.interrupted:
                break
            is_proof = below > 0.0 or is_counted or 0.0 < share <= most_of_margin
            if solved.outcome.status is Stop.INFEASIBLE and is_proof:
                return state.with_facts_of(learned)
    except OutOfTimeError:
        pass
    state = state.with_facts_of(learned)
    return replace(state, last=_unsettled(state, finding))


def _with_a_cheaper_tie(state: State) -> State:
    """Look for a cheaper answer; the claim about the one in hand stays where a program proves that there is none."""
    finding = state.last
    assert finding is not None  # noqa: S101 - as who calls this knows
    assert finding.answer is not None  # noqa: S101 - the same
    most = finding.answer.cost * (1.0 - COST_OF_MARGIN)
    before = replace(state, answers=state.answers[:-1])
    learned = state
    is_proved = False
    is_disputed = False
    infimum = None
    try:
        for share, below in _programs(state):
            learned, solved, accepted = _tried(before, learned, share, below, most)
            if share == 0.0:
                infimum = state.question.bound_on_cost(solved.outcome)
            if accepted is not None:
                return _accept(before, share, (learned, solved, accepted), infimum)
            if learned.interrupted:
                break
            is_cheaper = _is_cheaper(state, solved, most)
            is_disputed = is_disputed or is_cheaper
            has_ended = solved.outcome.status in {Stop.OPTIMAL, Stop.INFEASIBLE}
            is_proved = is_proved or (has_ended and not is_cheaper)
            if is_proved and share == 0.0 and not below:
                break
    except OutOfTimeError:
        pass
    state = state.with_facts_of(learned)
    question = state.question
    is_extreme = has_extreme_numbers(question.person.reach, question.space)
    if is_proved or not finding.bound or not (is_disputed or is_extreme or _margin_is_dear(state)):
        return state
    cause = "Nearer to the decision nothing is settled in the time"
    if is_disputed:
        cause = "Nearer to the decision the model refuses the solver's points"
    return _with_bound(state, infimum, cause, "ties_leave_gap")


def _tried(
    before: State, learned: State, share: float, below: float, most: float | None
) -> tuple[State, SolvedProgram, _Accepted | None]:
    """Solve with a share of the margin, with what the programs before have taught."""
    tried = replace(before.with_facts_of(learned), margin=share * (before.margin or 0.0))
    return _solve_tie(tried, most, below)


def _accept(before: State, share: float, found: _Found, infimum: float | None) -> State:
    """Take as the answer the point accepted with a share of the margin, or a cheaper one with less of it."""
    tried = replace(before.with_facts_of(found[0]), margin=share * (before.margin or 0.0))
    learned, solved, (prediction, point), bound = _with_less_margin(tried, found, infimum)
    state = before.with_facts_of(learned)
    if state.diversity is not state.tries.first_diversity:  # a firmer one leaves out points that may be answers
        bound = None
    return accept_checked(state, point, prediction, bound, "", solved.cluster)


def _may_be_undercut(state: State) -> bool:
    """Tell whether a default margin may have left out what the model accepts, at a price that is worth a look.

    On levels, whole numbers and at the ends of a reach a margin may cost a whole step, or the only answer.
    """
    question = state.question
    prepared = state.question.prepared
    finding = state.last
    if not question.has_default_margin or not state.margin or not state.has_least_margin:
        return False
    if state.interrupted or question.is_late:
        return False
    assert finding is not None  # noqa: S101 - the phase before ends with one
    if finding.answer is None:
        return finding.is_proved_infeasible
    # A level that was asked for may be one that a network attains; between its labels nothing ties but by accident.
    is_level = not isinstance(prepared.settings.target, Labels)
    return (
        prepared.predictor.is_linear
        or is_level
        or _may_cost_a_step(question.person.reach, question.settings.cost, question.space)
        or _margin_is_dear(state)
    )


def _margin_is_dear(state: State) -> bool:
    """Tell whether the model accepts a point nearer than the answer that costs less by more than a margin may cost.

    A network may hardly rise any more where it comes to the decision: a small part of its score is a large one of the
    way there. Or columns that pay have come to their ends, and another adds the last trace at a high price.
    """
    question = state.question
    answer, point = state.answers[-1]
    moved = []
    for name, part in question.person.reach.items():
        home = question.factual[name]
        is_label = any(map(question.space[name].is_label, (home, point[name])))
        if isinstance(part, Interval) and part.step is None and point[name] != home and not is_label:
            moved.append(name)
    points = []
    for names, most in ((tuple(moved), _FAR_BACK), *(((name,), 1.0) for name in moved if len(moved) > 1)):
        saved = 1.0 - question.cost(_nearer(state, point, COST_OF_MARGIN, names)) / max(answer.cost, COST_NOISE)
        if saved > 0.0:
            share = min(COST_OF_MARGIN * COST_OF_MARGIN / saved, most)
            points.append(_nearer(state, point, share, names))
    if not points:
        return False
    slacks = question.prepared.slacks(coordinates_of(question.space, points))
    return any(question.check(points[k]).valid for k in np.flatnonzero(slacks >= 0.0))


def _nearer(state: State, point: Mapping[str, float], share: float, names: Sequence[str]) -> dict[str, float]:
    """Return a point with some numbers nearer to the factual by a share of their move."""
    nearer = dict(point)
    for name in names:
        nearer[name] -= share * (point[name] - state.question.factual[name])
    return nearer


def _may_cost_a_step(reach: Reach, cost: AbstractCost, space: FeatureSpace) -> bool:
    """Tell whether something moves by steps, or to move at all has a price: a margin can cost more than its share."""
    for part in reach.values():
        moves_by_steps = not isinstance(part, Interval) or part.step is not None
        if moves_by_steps and not part.is_point:
            return True
    return any(price.kind == "fixed" for prices in cost.prices(space).values() for price in prices)


def _programs(state: State) -> list[tuple[float, float]]:
    """Return shares of the margin that are tried, and by how much the decision may be missed in each program.

    Something may be missed where numbers are so large, or nothing else is found, that a tie may be lost to the rounding
    of its sum.
    """
    question = state.question
    smaller = [(share, 0.0) for share in _SMALLER]
    if state.last is None or state.last.answer is None or _margin_is_dear(state):
        smaller = [*_down_to_rounding(state), *smaller]
    is_ordinary = not has_extreme_numbers(question.person.reach, question.space)
    if state.last is not None and state.last.answer is not None and is_ordinary:
        return [(0.0, 0.0), *smaller]
    below = row_relaxation(question.prepared.predictor, question.factual, question.person.reach)
    return [(0.0, below), (0.0, 0.0), *smaller]


def _down_to_rounding(state: State) -> list[tuple[float, float]]:
    """Return shares of the margin from the model's own rounding on, below those that are always tried."""
    share = _own_rounding(state.question) / (state.margin or 1.0)
    shares = []
    while 0.0 < share < min(_SMALLER):
        shares.append((share, 0.0))
        share *= _LARGER
    return shares


def _own_rounding(question: Question) -> float:
    """Return what the model's own sum rounds at the person; 0 of trees and votes, whose levels lie a margin apart."""
    return summation_rounding(question.prepared.predictor, coordinates_of(question.space, [question.factual]))


def _is_refused_at_best(state: State) -> bool:
    """Tell whether the model refuses the best that each column may become, and adds up columns: then it refuses all."""
    question = state.question
    prepared = question.prepared
    target = prepared.settings.target
    is_sum = prepared.predictor.is_linear and prepared.predictor.core.n_scores == 1
    has_two_ends = isinstance(target, Values) and math.isfinite(target.low) and math.isfinite(target.high)
    if not is_sum or has_two_ends:
        return False
    best = dict(question.factual)
    columns = list(question.person.reach.items())
    for name, part in columns + columns:  # again around the best, where other numbers round
        if part.is_point:
            ends = [best[name]]
        elif isinstance(part, Interval):
            ends = [part.lower, part.upper]
        else:
            ends = [float(rank) for rank in part.ranks if rank not in prepared.predictor.unseen.get(name, ())]
        if not all(map(math.isfinite, ends)) or not (ends or part.labels):
            return False
        ends += part.labels
        points = [{**best, name: end} for end in ends]
        best[name] = ends[int(prepared.slacks(coordinates_of(question.space, points)).argmax())]
    return not question.check(best).valid


def _solve_tie(state: State, most: float | None, below: float) -> tuple[State, SolvedProgram, _Accepted | None]:
    """Solve with less margin, and again without the points in whole numbers that lie within ``below`` of a tie."""
    question = state.question
    repairs = 0
    if below and is_on_lattice(question.prepared.predictor, question.person.reach, steps=math.inf):
        repairs = MOST_REPAIRS
    while True:
        state, solved = attempt(state, question.deadline - time.perf_counter(), cost_limit=most, below=below)
        accepted = _accepted_tie(state, solved, most)
        if accepted is not None or repairs == 0 or state.interrupted or not _is_cheaper(state, solved, most):
            return state, solved, accepted
        assert solved.point is not None  # noqa: S101 - it is cheaper
        state = replace(state, refused=(*state.refused, solved.point))
        repairs -= 1


def _with_less_margin(
    state: State, found: _Found, infimum: float | None
) -> tuple[State, SolvedProgram, _Accepted, float | None]:
    """Return the point accepted with ever smaller shares of the margin until that saves nothing, and its bound.

    Where the columns that pay have come to their ends, the last trace of a score may be dear: a share of the margin is
    then more than a share of the cost. ``infimum`` is what is proved of the program without a margin. Where a cheaper
    point is refused at last, as a solver's rounding is more than that margin, no more is proved than of its program.
    """
    question = state.question
    bound = question.bound_on_cost(found[1].outcome)
    margin = state.margin
    least = _own_rounding(question) or math.inf
    while margin and infimum is not None:
        most = question.cost(found[2][1]) * (1.0 - COST_OF_MARGIN)
        margin *= _SMALLER[0]
        if most <= infimum or margin < least:
            break
        try:
            learned, solved, accepted = _solve_tie(replace(state.with_facts_of(found[0]), margin=margin), most, 0.0)
        except OutOfTimeError:
            break
        if accepted is None:
            if _is_cheaper(state, solved, most):
                bound = question.bound_on_cost(solved.outcome)
            break
        found = learned, solved, accepted
        bound = question.bound_on_cost(solved.outcome)
        if learned.interrupted:
            break
    return (*found, bound)


def _is_cheaper(state: State, solved: SolvedProgram, most: float | None) -> bool:
    """Tell whether a program has a point that costs less than the answer in hand."""
    if solved.point is None:
        return False
    return most is None or state.question.cost(solved.point) <= most


def _accepted_tie(state: State, solved: SolvedProgram, most: float | None) -> _Accepted | None:
    """Return prediction and point of a program with less margin, if it is cheaper and passes the check.

    Proved or not: what it costs less than is the cheapest no more.
    """
    if solved.point is None or not _is_cheaper(state, solved, most):
        return None
    question = state.question
    for point in (solved.point, _snapped(solved.point, question.factual, question.person.reach)):
        check = question.check(point)
        if check.valid and not check.broken and state.differs(point):
            return check.prediction, point
    return None


def _snapped(point: Mapping[str, float], factual: Mapping[str, float], reach: Reach) -> dict[str, float]:
    """Return a point with the numbers that a solver left beside an end of their reach, or the factual's, put there.

    Among numbers that can take any value, or nearly, only such a place can tie: elsewhere a trace of a move would do.
    """
    snapped = dict(point)
    for name, part in reach.items():
        if not isinstance(part, Interval) or part.is_point or _has_few_steps(part) or point[name] in part.labels:
            continue
        home = part.lower if factual[name] in part.labels else factual[name]
        width = part.upper - part.lower
        if not math.isfinite(width):
            width = max(1.0, abs(home))
        distances = {}
        for place in (home, part.lower, part.upper):
            distance = abs(point[name] - place)
            if distance <= NEAR_AN_END * width:
                distances[place] = distance
        if distances:
            snapped[name] = min(distances, key=distances.__getitem__)
    return snapped


def _has_few_steps(part: Interval) -> bool:
    return part.step is not None and part.upper - part.lower <= _MANY_STEPS * part.step


# ---- a model's own score as a staircase ------------------------------------------------------------------------------
def look_within_steps(state: State) -> State:
    r"""Weaken the claim to the bound over all acceptable points, where the model's arithmetic is coarser than the gap.

    The program asks for a score of m beyond the decision, and states scores in real numbers. The model's own may be
    larger by up to :math:`\delta` (:func:`~ceopt.formulations.predictors.ties.encoding_rounding`, and the rounding
    of a sum): what it accepts is in the program with the margin :math:`-\delta`. Only where m and delta are more than
    a share of the way to the decision, which is what a default margin may cost, is that program solved.
    """
    finding = state.last
    question = state.question
    assert finding is not None  # noqa: S101 - the phase before ends with one
    margin = question.prepared.margin
    if not margin or not _claims_something(finding):
        return state
    steps = question.prepared.steps
    if margin + steps <= COST_OF_MARGIN * question.way_to_decision:
        return state
    steps += _own_rounding(question)
    before = replace(state, margin=0.0)
    if finding.answer is not None:
        before = replace(before, answers=state.answers[:-1])
    try:
        learned, solved = attempt(before, question.deadline - time.perf_counter(), below=steps)
    except OutOfTimeError:
        return _with_bound_of_steps(state, None, steps)
    bound = question.bound_on_cost(solved.outcome)
    if solved.outcome.status is Stop.INFEASIBLE:
        if finding.answer is None:
            return replace(state.with_facts_of(learned), last=none_in_reach())
        bound = None  # a point that the model accepts is in hand
    most = None if finding.answer is None else finding.answer.cost * (1.0 - COST_OF_MARGIN)
    accepted = _accepted_tie(learned, solved, most)
    if accepted is not None:
        prediction, point = accepted
        start = replace(before.with_facts_of(learned), margin=state.margin)
        return accept_checked(start, point, prediction, bound, "", solved.cluster)
    return _with_bound_of_steps(state.with_facts_of(learned), bound, steps)


def _claims_something(finding: Finding) -> bool:
    """Tell whether something is claimed: that there is nothing (proved or not), or that nothing costs less."""
    if finding.answer is None:
        return finding.is_proved_infeasible or finding.status is Status.REJECTED
    return bool(finding.bound)


def _with_bound_of_steps(state: State, bound: float | None, steps: float) -> State:
    """Claim of the answer, or of infeasibility, only what the relaxed program proves."""
    finding = state.last
    assert finding is not None  # noqa: S101 - the phase before ends with one
    answer = finding.answer
    step = digits(rounded(steps, 2, "up"))
    if answer is None:
        text = (
            "Nothing in real numbers reaches the target, but the model's own arithmetic moves in steps of up to "
            f"{step} of its score, which may let a point through: nothing is proved."
        )
        return replace(state, last=Finding(Status.REJECTED, reason=said(text, "steps_may_pass")))
    cause = f"The model's own arithmetic moves in steps of up to {step} of its score"
    return _with_bound(state, bound, cause, "steps_leave_gap")


def _with_bound(state: State, bound: float | None, cause: str, phrase: str) -> State:
    """Give the last answer a lower bound, and say why, where its gap is more than a margin may cost."""
    finding = state.last
    assert finding is not None  # noqa: S101 - the phase before ends with one
    answer = finding.answer
    assert answer is not None  # noqa: S101 - as who calls this knows
    proved = min(bound or 0.0, answer.bound or 0.0)
    gap = (answer.cost - proved) / max(answer.cost, COST_NOISE)
    if gap <= COST_OF_MARGIN:
        return state
    answer = altered(answer, bound=proved, gap=gap)
    answers = (*state.answers[:-1], (answer, state.answers[-1][1]))
    if gap <= state.question.settings.relative_gap:
        return replace(state, answers=answers, last=replace(finding, answer=answer, bound=proved))
    percent = rounded(100.0 * gap, 2, "up")
    text = f"{cause}: an answer that costs {digits(percent)} % less is not ruled out."
    last = Finding(Status.FEASIBLE, answer, proved, said(text, phrase, percent=percent))
    return replace(state, answers=answers, last=last)


def _unsettled(state: State, finding: Finding) -> Finding:
    """Take back the proof that there is nothing, where the solver could not settle what the margin leaves out."""
    text = "Nothing reaches the target with a margin. Whether a tie does is not settled."
    return Finding(_unsettled_status(state), bound=finding.bound, reason=said(text, "tie_unsettled"))


def _unsettled_status(state: State) -> Status:
    return Status.TIME_LIMIT if state.question.is_late or state.interrupted else Status.ERROR


# ==== No answer: the same question under wider rules, and the rules in conflict =======================================

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
            learned = _answered_under(state.with_facts_of(learned), wider)
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
    state = state.with_facts_of(learned)
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
    while state.phase is not Phase.MARGIN:
        state = solve(state) if state.phase is Phase.PROGRAM else check_solved(state)
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
        return reach_without(question.prepared.predictor.unseen, space, question.factual)

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
