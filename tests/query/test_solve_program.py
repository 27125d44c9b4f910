"""Reasons to solve one person's program once more, each asked with a way to solve that is written down beforehand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space.reachable import reach_of
from ceopt.query.prepare import prepare
from ceopt.query.request import Person, SolvedProgram, SolveRequest
from ceopt.query.solve_program import (
    RETRIES,
    beyond_the_budget,
    in_smaller_reach,
    in_unit_of_the_point,
    within_cost_of_one_label,
)
from ceopt.settings import CheckedSettings, Settings
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import UnboundedFeatureError
from ceopt.solvers.problem import Outcome, Stop

SPACE = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0.0, upper=1e6)])
LABELS = ("no", "yes", "more")


def asked(**settings: Any) -> tuple[CheckedSettings, Person]:
    model = Affine([[1.0], [0.0], [-1.0]], [0.0, 3.0, 0.0], labels=LABELS)
    prepared = prepare(model, SPACE, Settings(**{"target": "no", "cost": ceopt.L1(scale={"income": 1.0}), **settings}))
    factual = SPACE.row({"income": 1.0})
    return prepared.settings, Person(factual, SPACE.frame([factual]), reach_of(SPACE, factual), SPACE)


def solved(income: float | None, status: Stop = Stop.OPTIMAL, bound: float | None = None) -> SolvedProgram:
    point = None if income is None else {"income": income}
    return SolvedProgram(Outcome(status=status, bound=bound), point, "by hand", 1.0, 2.0, 4.0)


class Written:
    """Solves by what is written down, in order, and keeps what it was asked."""

    def __init__(self, *outcomes: SolvedProgram | Exception) -> None:
        self.outcomes, self.requests = list(outcomes), list[SolveRequest]()

    def __call__(self, request: SolveRequest, seconds: float) -> SolvedProgram:
        assert seconds > 0
        self.requests.append(request)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def test_they_are_listed_from_the_innermost_to_the_outermost() -> None:
    assert (in_unit_of_the_point, within_cost_of_one_label, in_smaller_reach, beyond_the_budget) == RETRIES


# ---- beyond the budget -----------------------------------------------------------------------------------------------
def test_an_answer_within_the_budget_is_solved_for_once() -> None:
    settings, person = asked()
    solve = Written(solved(4.0, bound=3.0))
    found = beyond_the_budget(settings, person, solve, SolveRequest(None, budget=3.0), 9.0)
    assert found.point == {"income": 4.0}
    assert len(solve.requests) == 1


@pytest.mark.parametrize("first", [solved(None, Stop.INFEASIBLE), solved(5.0)])
def test_what_does_not_keep_the_budget_is_looked_for_in_the_whole_reach(first: SolvedProgram) -> None:
    settings, person = asked()
    solve = Written(first, solved(6.0))
    found = beyond_the_budget(settings, person, solve, SolveRequest(None, budget=3.0), 9.0)
    assert found.point == {"income": 6.0}
    assert [request.budget for request in solve.requests] == [3.0, None]


def test_a_closed_budget_is_kept() -> None:
    settings, person = asked()
    request = SolveRequest(None, budget=3.0, closed=True)
    solve = Written(solved(None, Stop.INFEASIBLE))
    assert beyond_the_budget(settings, person, solve, request, 9.0).outcome.status is Stop.INFEASIBLE


def test_short_of_the_optimum_no_more_than_the_budget_is_proved() -> None:
    settings, person = asked()
    limit = settings.cost.to_objective(3.0)
    solve = Written(solved(3.5, Stop.TIME_LIMIT, bound=10.0 * limit))
    found = beyond_the_budget(settings, person, solve, SolveRequest(None, budget=3.0), 9.0)
    assert found.outcome.bound == limit


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OutOfTimeError("building"), Stop.TIME_LIMIT),
        (UnboundedFeatureError("a", "b", "c", "d"), Stop.ERROR),
    ],
)
def test_a_second_solve_that_fails_leaves_the_first_proved_up_to_the_budget(error: Exception, status: Stop) -> None:
    settings, person = asked()
    solve = Written(solved(None, Stop.INFEASIBLE), error)
    found = beyond_the_budget(settings, person, solve, SolveRequest(None, budget=3.0), 9.0)
    assert found.outcome.status is status
    assert found.outcome.bound == settings.cost.to_objective(3.0)


# ---- without bounds --------------------------------------------------------------------------------------------------
UNBOUNDED = UnboundedFeatureError("a", "b", "c", "d")


def test_without_bounds_one_wanted_label_gives_the_budget() -> None:
    settings, person = asked(target={"no", "more"})
    solve = Written(UNBOUNDED, solved(None, Stop.INFEASIBLE), solved(4.0), solved(3.5))
    found = within_cost_of_one_label(settings, person, solve, SolveRequest(None), 9.0)
    assert found.point == {"income": 3.5}
    alone = [request.target for request in solve.requests[1:3]]
    assert [len(target.wanted) for target in alone] == [1, 1]
    assert solve.requests[3].budget == settings.cost.value(SPACE, person.factual, {"income": 4.0})
    assert solve.requests[3].target is None


def test_without_bounds_and_with_one_label_it_is_refused() -> None:
    settings, person = asked()
    with pytest.raises(UnboundedFeatureError):
        within_cost_of_one_label(settings, person, Written(UNBOUNDED), SolveRequest(None), 9.0)


# ---- other sizes -----------------------------------------------------------------------------------------------------
def test_squares_are_counted_in_the_unit_of_the_point() -> None:
    settings, person = asked(cost=ceopt.L2(scale={"income": 1.0}))
    far = replace(solved(1.0 + 2.0**14), is_curved=True)
    solve = Written(far, replace(solved(1.0 + 2.0**14 + 1.0), is_curved=True))
    found = in_unit_of_the_point(settings, person, solve, SolveRequest(None), 9.0)
    assert solve.requests[0].unit == 1.0
    assert solve.requests[1].unit > 2.0**10
    assert (found.build_s, found.lower_s, found.solve_s) == (2.0, 4.0, 8.0)


def test_a_linear_program_has_one_unit() -> None:
    settings, person = asked()
    solve = Written(solved(1.0 + 2.0**14))
    in_unit_of_the_point(settings, person, solve, SolveRequest(None), 9.0)
    assert len(solve.requests) == 1


def test_a_much_smaller_reach_is_solved_again_and_its_bound_does_not_reach_beyond() -> None:
    wide = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0.0, upper=1e12)])
    model = Affine([1.0], -3.0, labels=("no", "yes"))
    prepared = prepare(model, wide, Settings(target="yes"))
    factual = wide.row({"income": 1.0})
    person = Person(factual, wide.frame([factual]), reach_of(wide, factual), wide)
    cost = prepared.settings.cost.value(wide, factual, {"income": 3.0})
    solve = Written(solved(3.0), solved(3.0, Stop.FEASIBLE, bound=10.0 * cost))
    found = in_smaller_reach(prepared.settings, person, solve, SolveRequest(None), 9.0)
    assert [request.budget for request in solve.requests] == [None, cost]
    assert found.outcome.bound == prepared.settings.cost.to_objective(cost)


def test_a_reach_of_ordinary_size_is_solved_once() -> None:
    settings, person = asked()
    solve = Written(solved(4.0))
    in_smaller_reach(settings, person, solve, SolveRequest(None), 9.0)
    assert len(solve.requests) == 1
