"""Settle a person without a program, where a lower bound on the cost meets a verified answer.

:func:`least_cost` asks the bound that suits the model. Bounds leave out all rules, which only remove points, and hold
for every answer that the model accepts or, where the user gave a margin, that has it. None are taken where a rule gives
columns away for nothing, as a price then does not bound a change, nor for a count of trees.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np

from ceopt.base.results import Status
from ceopt.base.said import said
from ceopt.formulations.constraints.diversity.distinct import Distinct, way_of
from ceopt.formulations.constraints.diversity.diversity import changed_columns
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.predictors.cell_branching import CellQuestion, Work, cheapest_cells
from ceopt.formulations.predictors.pruned_leaves import PersonCells
from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.predictors.ties import row_relaxation
from ceopt.formulations.predictors.tree_bounds import TreeNeed
from ceopt.formulations.space.reachable import with_others_at_home
from ceopt.formulations.targets import DisagreementOf
from ceopt.oracle.rows import coordinates_of
from ceopt.search.least_costs import ColumnGains, LeastCost, least_by_knapsack
from ceopt.search.network_boxes import WORK as WORK_OF_BOXES
from ceopt.search.network_boxes import least_by_boxes
from ceopt.search.ranked_sums import ranked_sums
from ceopt.search.solve_check_repair import (
    accept_checked,
    find_starts,
    is_disproved,
    looks_first,
    none_in_reach,
    slack_in_program,
    start_in_hand,
    used_up,
)
from ceopt.search.solve_program import has_extreme_numbers
from ceopt.search.state import Finding, Phase
from ceopt.solvers.problem import relative_gap_of
from ceopt.tolerances import EQUAL_COSTS, ROUNDED_GAP, UNSURE_SUM

#: Share of the time left that boxes may take, though they mostly end before by the work that is counted.
_SHARE: Final = 0.5
#: Boxes know no rules: where these are what is dear, no work would do. Nor is as much worth it without a proof.
_LESS_WORK: Final = 0.1 * WORK_OF_BOXES
#: Factor between the budgets within which a further answer is looked for, and the first as a share of the last.
_NEXT_BUDGET: Final = 1.12
_FIRST_SHARE: Final = 1e-3
#: By how much more the work for an answer may be, once branching goes only as far as that answer needs.
_MORE_WORK: Final = 4.0

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ceopt.formulations.predictors.cell_branching import Cells, Ints
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Reach
    from ceopt.search.nearer import Point
    from ceopt.search.state import Question, State
    from ceopt.solvers.checks import Floats


@final
@dataclass(frozen=True, slots=True, eq=False)
class Further:
    """Answers in hand, points that were met, the cheapest first, and what another answer is known to cost at least."""

    answers: Sequence[Point]
    met: Sequence[Point]
    past: float


def has_boxes(state: State) -> bool:
    """Tell whether a person's network is bounded over boxes, before any start is looked for.

    That takes less than the search for a start, so it comes first where the proof of one answer alone is asked for, and
    none is given to begin with.
    """
    question = state.question
    is_network = isinstance(question.prepared.predictor.core, ReluNetwork)
    settings = question.settings
    return is_network and settings.proof and settings.n == 1 and question.prepared.starts is None


def with_bound(state: State) -> State:
    """Return the state that knows what its person's change costs at least, as far as that is found in time."""
    question = state.question
    if question.is_late or state.least is not None:  # near points of trees come with a bound
        return state
    with question.stopwatch.counting("start"):
        in_hand = min((cost for cost, _ in state.found), default=math.inf)
        return replace(state, least=least_cost(question, in_hand, _further(state)))


def next_start(state: State) -> Point | None:
    """Return the cheapest point in hand, which :func:`settled` asks the model about first."""
    points = list(state.least.points) if state.least is not None else []
    return min([*points, *(point for _, point in state.found[:1])], key=state.question.cost, default=None)


def settled(state: State) -> State:
    """Return the state after the search for an answer if a bound settles it; else with that bound.

    A cost that meets the bound within ``relative_gap`` is optimal, and an infinite bound says that there is no answer.
    The phase is then the one after all programs for an answer, else that of the program.
    """
    question = state.question
    settings = question.settings
    least = state.least if not state.answers else _least_of_next(state)
    state = replace(state, phase=Phase.PROGRAM)
    without = state if state.answers else replace(state, least=None)
    if question.is_late or least is None:
        return state
    if math.isinf(least.bound):
        if start_in_hand(state, contradicts_solver=False) is not None:
            return without
        is_first = settings.proof and not state.answers
        after = Phase.WIDER_RULES if is_first else Phase.NEXT  # programs look for what is in the way
        return replace(state, solver="", last=none_in_reach(), phase=after)
    unsettled, state = _with_starts(state, least)
    start = start_in_hand(state, contradicts_solver=False)
    cost = None if start is None else question.cost(start[0])
    if cost is not None and is_disproved(least.bound, cost, share=question.share_of_rounding):
        return without
    unsettled, state = (replace(one, tries=replace(one.tries, bound=least.bound)) for one in (unsettled, state))
    gap = relative_gap_of(cost, least.bound)
    takes_met_points = settings.proof and settings.diversity is None and settings.n > 1  # which a solver meets
    if start is None or gap is None or gap > settings.relative_gap or takes_met_points:
        return unsettled if settings.proof else state
    point, check = start
    state = accept_checked(replace(state, solver=""), point, check.prediction, least.bound, "")
    return replace(state, phase=Phase.LIMIT)


def _least_of_next(state: State) -> LeastCost | None:
    """Return the least cost of a further answer that is to be distinct from those in hand."""
    question = state.question
    further = _further(state)
    if further is None or state.doubted or state.refused or state.barred:
        return None
    firsts = [
        next((cost for cost, point in met if state.surely_differs(point)), math.inf)
        for met in (state.starts, state.found)
    ]
    with question.stopwatch.counting("start"):
        if question.prepared.predictor.is_linear:
            return _next_sum(question, further)
        return least_cost(question, min(firsts), further)


def _next_sum(question: Question, further: Further) -> LeastCost | None:
    """Return the least cost of a further answer under a linear score; all that are to come are found with the first."""
    if not _is_bounded(question):
        return None
    sums = question.sums
    answers = list(further.answers)
    coming = [one.points[0] for one in sums.coming if one.points]
    place = len(answers) - len(sums.answers)
    if not sums.answers or answers != [*sums.answers, *coming[:place]] or place >= len(sums.coming):
        count = question.settings.n - len(answers)

        sums.answers = answers
        sums.coming = ranked_sums(
            question.space, question.factual, question.person.reach, answers, count, least=partial(linear, question)
        )
        question.predictions.ask(question.prepared, [one.points[0] for one in sums.coming if one.points])
        place = 0
    return sums.coming[place]


def _further(state: State) -> Further | None:
    """Return what is known of further answers, where several are asked for that are distinct."""
    question = state.question
    settings = question.settings
    is_distinct = isinstance(state.diversity, Distinct) and not state.diversity.together
    predictor = question.prepared.predictor
    is_ranked = predictor.is_trees or (predictor.is_linear and not settings.rules)
    if not (settings.proof and settings.n > 1 and is_distinct and is_ranked):
        return None
    if not all(part.holds(question.factual[name]) for name, part in question.person.reach.items()):
        return None
    met = [point for _, point in sorted([*state.starts, *state.found], key=itemgetter(0))]
    return Further([point for _, point in state.answers], met, state.tries.bound or 0.0)


def is_dearer_with_fewer(state: State) -> bool:
    """Whether a bound of trees or of a linear model proves that no part of the columns does at the same cost."""
    question = state.question
    answer, point = state.answers[-1]
    changed = changed_columns(question.factual, point)
    most = answer.cost * (1.0 + 2.0 * EQUAL_COSTS)
    for _, _, person in question.cells:
        if question.settings.cost.to_objective(most) <= person.met_up_to:
            points = map(person.point, person.met)
            return not any(
                changed_columns(question.factual, one) < changed and question.cost(one) <= most for one in points
            )
    for name in changed:
        least = least_cost(question, answer.cost * (1.0 + 4.0 * EQUAL_COSTS), alone=changed - {name})
        if least is None or least.bound <= most:
            return False
    return True


def with_near_answer(state: State) -> State:
    """Return the state with the cheapest point met so far that is another answer; in the phase after all programs."""
    state = replace(state, solver="")
    is_first = not state.answers
    is_only_bounded = len(state.answers) == 1 and state.first is not None and state.first.status is Status.OPTIMAL
    if (is_first or is_only_bounded) and not looks_first(state.question):
        looked = find_starts(state, even_linear=True)
        found = tuple(sorted([*state.found, *looked.starts], key=itemgetter(0)))
        state = replace(looked, found=found)
    start = start_in_hand(state, contradicts_solver=False)
    if start is not None:
        point, check = start
        unproved = said("No program was solved, as proof=False.", "not_asked_to_prove")
        state = accept_checked(state, point, check.prediction, state.tries.bound, unproved)
        return replace(state, phase=Phase.LIMIT)
    reason = said("No other point was met.", "none_met")
    if is_first:
        reason = said("No point was met; with proof=True a program is solved.", "near_none_met")
    if state.question.is_late:
        reason = used_up(state.question.settings.time_limit_s, state.stage)
    last = Finding(Status.TIME_LIMIT, bound=state.tries.bound, reason=reason)
    return replace(state, last=last, phase=Phase.LIMIT)


def _with_starts(state: State, least: LeastCost) -> tuple[State, State]:
    """Return the state that also knows the points of a bound which have the margin of the program, and with all.

    A point with less of it would contradict the program, which leaves it out.
    """
    question = state.question
    points = [point for point in map(dict, least.points) if question.keeps_rules(point)]
    if not points:
        return state, state
    new = [(question.cost(point), point) for point in points]
    slacks = slack_in_program(state, coordinates_of(question.space, points))
    for_program = list(itertools.compress(new, (slacks >= 0.0).tolist()))
    starts = tuple(sorted([*state.starts, *for_program], key=itemgetter(0)))
    found = [tuple(sorted([*state.found, *more], key=itemgetter(0))) for more in (for_program, new)]
    return replace(state, starts=starts, found=found[0]), replace(state, starts=starts, found=found[1])


def least_cost(
    question: Question,
    cost_in_hand: float,
    further: Further | None = None,
    *,
    alone: Collection[str] | None = None,
) -> LeastCost | None:
    """Return what is known of a person's least cost without a program; None where nothing is.

    Parameters
    ----------
    question
        The person.
    cost_in_hand
        That of the cheapest point that is known.
    further
        Answers from which the point is to be distinct, where there are some.
    alone
        The only columns that may change, where not all may.
    """
    prepared = question.prepared
    settings = prepared.settings
    if not _is_bounded(question):
        return None
    if prepared.predictor.is_linear:
        reach = question.person.reach
        return linear(question, reach if alone is None else with_others_at_home(reach, alone, question.factual))
    if isinstance(prepared.predictor.core, ReluNetwork):
        if not settings.proof and math.isfinite(cost_in_hand):  # a box or two, at a third of the time, bound nothing
            return None
        return least_by_boxes(
            prepared,
            question.factual,
            question.person.reach,
            keeps=question.keeps_rules,
            cost_in_hand=cost_in_hand,
            deadline=time.perf_counter() + _SHARE * (question.deadline - time.perf_counter()),
            work=_LESS_WORK if settings.rules or not settings.proof else WORK_OF_BOXES,
        )
    need = TreeNeed.of(prepared.predictor, settings.target, settings.margin)
    if need is None:
        return None
    cells = _cells_of(question, need)
    return trees(question, cells if alone is None else cells.alone(alone), cost_in_hand, further)


def _is_bounded(question: Question) -> bool:
    """Whether prices bound what a change costs."""
    settings = question.settings
    if not settings.cost.additive or isinstance(settings.target, DisagreementOf):
        return False
    return not any(rule.unpriced(question.space) for rule in settings.rules)


def _cells_of(question: Question, need: TreeNeed) -> PersonCells:
    """Return the cells of the person, which are kept with the question."""
    for person, known, cells in question.cells:
        if person is question.person and known is need:
            return cells
    cutoff = CostCutoff(question.space, question.factual, question.settings.cost, math.inf)
    cells = PersonCells(question.prepared.predictor, question.person.reach, cutoff, need)
    if not question.settings.proof:
        cells.work.left = 0.0
    question.cells[:] = [(question.person, need, cells)]
    return cells


def trees(question: Question, person: PersonCells, cost_in_hand: float, further: Further | None) -> LeastCost:
    """Return the least cost that the leaves allow, and points of that cost, if branching over cells finds it."""
    cost = question.settings.cost
    share = max(question.settings.relative_gap - ROUNDED_GAP, EQUAL_COSTS)  # the answer is yet to be rounded
    most = cost.to_objective(cost_in_hand * (1.0 - share)) if math.isfinite(cost_in_hand) else math.inf
    objective = person.least()
    proof: Literal["bound", "cells"] = "bound"
    points: list[Point] = []
    if not person.ways:
        person.ways += [_ways(question, *own) for own in zip(question.space, person.nearest, strict=True)]
    asked = CellQuestion(
        person.need,
        person.prices,
        lambda cells: _is_favoured(question, person.point(cells)),
        share,
        person.ways,
    )
    found: float | None = None
    person.work.renew()
    if further is not None:
        objective = max(objective, cost.to_objective(further.past))
        found, cells = _further_cells(question, person, asked, replace(further, past=objective), most)
    elif objective < most < math.inf:
        found, cells = cheapest_cells(person.left(most), asked, most, person.work)
    if found is not None:
        points = list(map(person.point, cells))
        objective, proof = found, "cells"
    bound = cost.from_objective(objective) if math.isfinite(objective) else objective
    least = min([cost_in_hand, *map(question.cost, points)])
    if math.isclose(bound, least, rel_tol=2.0 * EQUAL_COSTS):
        bound = least
    return LeastCost(bound, proof, tuple(points))


def _further_cells(
    question: Question, person: PersonCells, asked: CellQuestion, further: Further, most: float
) -> tuple[float | None, list[Cells]]:
    """Return the least cost of a point that is distinct from answers, or the most, and the point; None if unknown.

    Up to a budget all points that may be answers are met at once, and kept with the person for the next answer. Where
    that takes too much work, from then on only as far as the next answer needs it.
    """
    differ = partial(Distinct().differ, question.space, question.factual)
    if not person.met:
        person.met = _distinct_cells(question, person, asked, further.met)
    answers = list(map(person.cells, further.answers))
    asked = replace(asked, earlier=answers, count=question.settings.n - len(answers))
    every = sum(float(own[np.isfinite(own)].max(initial=0.0)) for own in person.prices) * (1.0 + EQUAL_COSTS)
    last = max(further.past, person.met_up_to)
    is_cut_short = False
    while True:
        cost = math.inf
        for cells in person.met:
            if all(differ(answer, person.point(cells)) for answer in further.answers):
                cost = asked.cost(cells) * (1.0 - asked.share)
                if cost <= person.met_up_to:
                    _ask_at_once(question, person, cells)
                    return min(cost, most), [cells]
                break
        if is_cut_short:  # where a point is refused
            return person.met_up_to, []
        if most <= last or person.met_up_to >= every:
            return most, []
        needed = min(cost, most, every)
        last = max(last * _NEXT_BUDGET, _FIRST_SHARE * every)
        if person.is_careful:
            last = min(last, needed)
        elif needed < every:
            last = max(last, needed)
        last = min(last, every)
        found, met = cheapest_cells(person.left(last), asked, last, person.work, person.met)
        if found is not None:
            person.met, person.met_up_to, is_cut_short = met, found, found < last
        elif person.is_careful:
            return None, []
        else:
            person.is_careful, person.work = True, Work(_MORE_WORK * person.work.most)
            last = max(further.past, person.met_up_to)


def _ask_at_once(question: Question, person: PersonCells, answer: Cells) -> None:
    """Ask the model about an answer, and about all points that may be further ones; once each."""
    if answer in person.asked:
        return
    new = [cells for cells in person.met[: question.settings.n] if cells not in person.asked]
    person.asked.update(new)
    question.predictions.ask(question.prepared, list(map(person.point, new)))


def _distinct_cells(
    question: Question, person: PersonCells, asked: CellQuestion, points: Sequence[Point]
) -> list[Cells]:
    """Return the cells of as many points as answers are asked for, each distinct from those that cost less."""
    differ = partial(Distinct().differ, question.space, question.factual)
    found: list[Cells] = []
    for point in points:
        if all(differ(person.point(one), point) for one in found) and asked.accepts(cells := person.cells(point)):
            found.append(cells)
            if len(found) == question.settings.n:
                break
    return found


def _is_favoured(question: Question, point: dict[str, float]) -> bool:
    slack_there = question.prepared.slacks(coordinates_of(question.space, [point]))[0]
    if slack_there < (question.settings.margin or 0.0):
        return False
    return question.keeps_rules(point)


def _ways(question: Question, feature: Feature, nearest: Floats) -> Ints:
    """Return how the point of each cell moves its column, by number; 0 where it leaves it as it is."""
    home = question.factual[feature.name]
    told: dict[str | float, int] = {home: 0}
    return np.array([told.setdefault(way_of(feature, home, at), len(told)) for at in nearest.tolist()])


def linear(question: Question, reach: Reach) -> LeastCost | None:
    """Return the least cost under a linear score, where columns are chosen one by one, within a part of the reach."""
    prepared = question.prepared
    sums = question.sums
    if sums.person is not question.person or sums.prepared is not prepared:
        sums.person, sums.prepared, sums.gains = question.person, prepared, _gains_of(question)
        sums.answers = []
    if sums.gains is None:
        return None
    return least_by_knapsack(prepared, sums.gains, question.factual, reach)


def _gains_of(question: Question) -> ColumnGains | None:
    """Return a linear model's slack as a sum over the columns; None where a knapsack would not be safe."""
    prepared = question.prepared
    reach = question.person.reach
    factual = question.factual
    if prepared.predictor.core.n_scores != 1 or prepared.steps or has_extreme_numbers(reach, question.space):
        return None
    if not all(part.holds(factual[name]) for name, part in reach.items()):
        return None
    if row_relaxation(prepared.predictor, factual, reach) > UNSURE_SUM:
        return None
    return ColumnGains.of(prepared, coordinates_of(question.space, [factual]))
