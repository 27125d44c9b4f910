"""Categories of a plan in place of parts of them: settled one after the other, then changed where that is better."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from ceopt.formulations.programs.parts import Floats
from ceopt.plans.copa.search_space import PlanSearch, reach_of
from ceopt.solvers.deadline import seconds_left
from ceopt.tolerances import EXCHANGE_GAIN

__all__ = ["Settled", "exchanged", "settled"]

_ALL: Final = 256  # combinations of all categories of all counterfactuals: so many are tried each
_ROUNDS: Final = 20  # of exchanges
_STEPS: Final = ((100, 6), (400, 1))  # of the descents after an exchange, and how many of the best go on
_DESCENDED: Final = 96  # plans that are descended from, those that are best before; of combinations all are
_MAPPED: Final = 8  # the same with a feature map, which is called row by row


class Settled(NamedTuple):
    """A plan, shape (J, d), and bounds of that shape that hold each group of each counterfactual at a category."""

    plan: Floats
    lower: Floats
    upper: Floats


#: From plans (S, J, d), within bounds of that shape, to better ones and their objectives, in some steps.
Descend: TypeAlias = Callable[[Floats, Floats, Floats, int], tuple[Floats, Floats]]


def settled(search: PlanSearch, plan: Floats) -> Settled:
    """Return a plan with categories near one with parts of them.

    Groups are settled one after the other, each at the category that makes the plan best while what is not settled
    yet moves to meet the margin. A category that puts the margin out of reach is none; the one of the greatest mean
    never does.
    """
    region = search.region
    terms = search.terms
    plan = plan.copy()
    lower = np.array(np.broadcast_to(region.lower, plan.shape))
    upper = np.array(np.broadcast_to(region.upper, plan.shape))
    for j in range(len(plan)):
        for g, (columns, categories) in enumerate(_choices(search)):
            left = region.groups[g + 1 :]
            low = np.repeat(lower[j][None], len(categories), axis=0)
            high = np.repeat(upper[j][None], len(categories), axis=0)
            low[:, columns] = high[:, columns] = categories
            may = np.arange(len(categories))
            if terms.feature_map is None:
                reach = reach_of(low, high, left, np.broadcast_to(terms.moments.mean, low.shape))
                may = np.flatnonzero(reach >= min(search.margin, float(reach.max())))
            rows = np.repeat(plan[j][None], len(may), axis=0)
            plans = np.repeat(plan[None], len(may), axis=0)
            plans[:, j] = search.rows_onto(rows, low[may], high[may], left)
            objectives = np.where(search.met(plans), terms.value(plans), np.inf)
            k = int(objectives.argmin())
            plan = plans[k]
            lower[j] = low[may[k]]
            upper[j] = high[may[k]]
    return Settled(plan, lower, upper)


def exchanged(search: PlanSearch, first: Settled, worth: float, descend: Descend) -> Settled:
    """Return the best plan over all combinations of categories, or over exchanges of one for another while they help.

    All are tried where they are few. ``worth`` is the objective of the first plan. The deadline ends it with the best
    so far.
    """
    if seconds_left() <= 0.0:
        return first
    choices = _choices(search)
    rows = _rows(search, choices)
    if rows is not None:
        combinations = np.array(list(combinations_with_replacement(range(len(rows)), search.n)))
        return _best(search, first, worth, descend, rows[combinations], most=_ALL)[0]
    best = first
    for _ in range(_ROUNDS):
        values = np.array(list(_one_exchange(best, choices)))
        best, now = _best(search, best, worth, descend, values, most=_DESCENDED)
        if now >= worth - EXCHANGE_GAIN * (1.0 + abs(worth)):
            break
        worth = now
        if seconds_left() <= 0.0:
            break
    return best


def _choices(search: PlanSearch) -> list[tuple[list[int], Floats]]:
    """Return of each group its columns and their values, one category a row."""
    choices = [(list(group), np.eye(len(group))) for group in search.region.groups]
    choices += [([k], np.array([[0.0], [1.0]])) for k in search.region.flags]
    return choices


def _rows(search: PlanSearch, choices: list[tuple[list[int], Floats]]) -> Floats | None:
    """Return all combinations of categories of a counterfactual, NaN where columns are free; None if too many."""
    count = int(np.prod([float(len(categories)) for _, categories in choices]))
    total = 1.0
    for k in range(search.n):  # of combinations with repetition
        total *= (count + k) / (k + 1)
    if total > _ALL:
        return None
    rows = np.full((count, len(search.region.lower)), np.nan)
    for row, chosen in zip(rows, product(*(categories for _, categories in choices)), strict=True):
        for (columns, _), values in zip(choices, chosen, strict=True):
            row[columns] = values
    return rows


def _one_exchange(best: Settled, choices: list[tuple[list[int], Floats]]) -> Iterator[Floats]:
    """Yield the categories of the plans that differ from the best in one group of one counterfactual."""
    held = np.full(best.plan.shape, np.nan)
    for columns, _ in choices:
        held[:, columns] = best.lower[:, columns]
    for j in range(len(held)):
        for columns, categories in choices:
            for values in categories:
                if (held[j, columns] != values).any():
                    changed = held.copy()
                    changed[j, columns] = values
                    yield changed


def _best(
    search: PlanSearch, best: Settled, worth: float, descend: Descend, values: Any, *, most: int
) -> tuple[Settled, float]:
    """Return the best of a plan and of those with other categories, shape (S, J, d), and its objective."""
    terms = search.terms
    is_held = ~np.isnan(values)
    lower = np.where(is_held, values, search.region.lower)
    upper = np.where(is_held, values, search.region.upper)
    if terms.feature_map is None:
        flat = lower.reshape(-1, lower.shape[-1])
        reach = reach_of(flat, upper.reshape(flat.shape), (), np.broadcast_to(terms.moments.mean, flat.shape))
        may = (reach >= search.margin).reshape(lower.shape[:2]).all(axis=1)
        lower = lower[may]
        upper = upper[may]
    if not len(lower):
        return best, worth
    plans = search.onto(np.repeat(best.plan[None], len(lower), axis=0), lower, upper)
    if terms.feature_map is not None:
        most = _MAPPED
    if len(plans) > most:
        order = np.where(search.met(plans), terms.value(plans), np.inf).argsort(kind="stable")[:most]
        plans, lower, upper = plans[order], lower[order], upper[order]
    for steps, kept in _STEPS:
        plans, objectives = descend(plans, lower, upper, steps)
        order = objectives.argsort(kind="stable")[:kept]
        plans, lower, upper, objectives = plans[order], lower[order], upper[order], objectives[order]
    if objectives[0] < worth:
        return Settled(plans[0], lower[0], upper[0]), float(objectives[0])
    return best, worth
