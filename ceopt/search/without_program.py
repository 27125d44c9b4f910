"""Settle a person without a program, where a lower bound on the cost meets a verified answer.

:func:`least_cost` asks the bound that suits the model. Bounds leave out all rules, which only remove points, and hold
for every answer that the model accepts or, where the user gave a margin, that has it. None are taken where a rule moves
columns or gives them away for nothing, as a price then does not bound a change, nor for a count of trees.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from ceopt.base.results import Status
from ceopt.base.said import said
from ceopt.formulations.targets import DisagreementOf
from ceopt.oracle.model import broken_rules
from ceopt.oracle.rows import coordinates_of
from ceopt.search.least_costs import ColumnGains, LeastCost, least_by_knapsack
from ceopt.search.solve_check_repair import (
    accept_checked,
    find_starts,
    is_disproved,
    none_in_reach,
    slack_in_program,
    start_in_hand,
    used_up,
)
from ceopt.search.solve_program import has_extreme_numbers
from ceopt.search.state import Finding, Phase
from ceopt.solvers.problem import relative_gap_of

if TYPE_CHECKING:
    from ceopt.search.state import Question, State


def settled(state: State) -> State:
    """Return the state after the search for the first answer if a bound settles it; else with that bound.

    A cost that meets the bound within ``relative_gap`` is optimal, and an infinite bound says that there is no answer.
    The phase is then the one after all programs for an answer.
    """
    question = state.question
    settings = question.settings
    if question.is_late:
        return state
    with question.stopwatch.counting("start"):
        least = least_cost(question)
    if least is None:
        return state
    if math.isinf(least.bound):
        if state.found:  # a verified answer
            return state
        after = Phase.WIDER_RULES if settings.proof else Phase.NEXT  # programs look for what is in the way
        return replace(state, least=least, solver="", last=none_in_reach(), phase=after)
    state = _with_starts(state, least)
    start = start_in_hand(state)
    cost = None if start is None else question.cost(start[0])
    if cost is not None and is_disproved(least.bound, cost, share=question.share_of_rounding):
        return state
    state = replace(state, least=least, tries=replace(state.tries, bound=least.bound))
    gap = relative_gap_of(cost, least.bound)
    takes_met_points = settings.proof and settings.diversity is None and settings.n > 1  # which a solver meets
    if start is None or gap is None or gap > settings.relative_gap or takes_met_points:
        return state
    point, check = start
    state = accept_checked(replace(state, solver=""), point, check.prediction, least.bound, "")
    return replace(state, phase=Phase.LIMIT)


def with_near_answer(state: State) -> State:
    """Return the state with the cheapest point met so far that is another answer; in the phase after all programs."""
    state = replace(state, solver="")
    is_first = not state.answers
    if is_first and state.question.prepared.predictor.is_linear:  # of which no start was looked for
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


def _with_starts(state: State, least: LeastCost) -> State:
    """Return the state that also knows the points of a bound; those with the margin of the program are starts of it."""
    question = state.question
    rules = question.settings.rules
    points = [dict(point) for point in least.points]
    points = [point for point in points if not broken_rules(rules, question.space, question.factual, point)]
    if not points:
        return state
    new = [(question.cost(point), point) for point in points]
    slacks = slack_in_program(state, coordinates_of(question.space, points))
    for_program = itertools.compress(new, (slacks >= 0.0).tolist())
    return replace(
        state,
        starts=tuple(sorted([*state.starts, *for_program], key=itemgetter(0))),
        found=tuple(sorted([*state.found, *new], key=itemgetter(0))),
    )


def least_cost(question: Question) -> LeastCost | None:
    """Return what is known of a person's least cost without a program; None where nothing is."""
    prepared = question.prepared
    settings = prepared.settings
    if not settings.cost.additive or isinstance(settings.target, DisagreementOf):
        return None
    if any(rule.mends or rule.unpriced(prepared.space) for rule in settings.rules):
        return None
    if prepared.predictor.is_linear:
        return linear(question)
    return None


def linear(question: Question) -> LeastCost | None:
    """Return the least cost under a linear score, where columns are chosen one by one."""
    prepared = question.prepared
    reach = question.person.reach
    factual = question.factual
    if prepared.predictor.core.n_scores != 1 or prepared.steps or has_extreme_numbers(reach, question.space):
        return None
    if not all(part.holds(factual[name]) for name, part in reach.items()):
        return None
    score = ColumnGains.of(prepared, coordinates_of(question.space, [factual]))
    if score is None:
        return None
    return least_by_knapsack(prepared, score, factual, reach)
