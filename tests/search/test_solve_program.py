"""Reasons to solve one person's program once more, each asked with a way to solve that is written down beforehand."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import pyomo.environ as pyo
import pytest

import ceopt
from ceopt.formulations.constraints import AbstractRule
from ceopt.formulations.constraints.diversity.diversity import OtherDecisions
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space.reachable import Interval, Levels, reach_of
from ceopt.search.prepare import prepare
from ceopt.search.solve_program import (
    RETRIES,
    Person,
    ProgramSolver,
    SolvedProgram,
    SolveRequest,
    beyond_the_budget,
    has_extreme_numbers,
    in_smaller_reach,
    in_unit_of_the_point,
    is_smaller,
    unit_for,
    with_cuts_from_counterexamples,
    within_cost_of_one_label,
    without_large_rules,
)
from ceopt.settings import CheckedSettings, Settings
from ceopt.solvers import solve
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import UnboundedFeatureError
from ceopt.solvers.problem import Outcome, Stop
from ceopt.solvers.registry import SOLVERS

SPACE = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0.0, upper=1e6)])
LABELS = ("no", "yes", "more")


def asked(**settings: Any) -> tuple[CheckedSettings, Person]:
    model = Affine([[1.0], [0.0], [-1.0]], [0.0, 3.0, 0.0], labels=LABELS)
    prepared = prepare(model, SPACE, Settings(**{"target": "no", "cost": ceopt.L1(scale={"income": 1.0}), **settings}))
    factual = SPACE.row({"income": 1.0})
    return prepared.settings, Person(factual, reach_of(SPACE, factual), SPACE)


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
    assert (
        with_cuts_from_counterexamples, without_large_rules, in_unit_of_the_point, within_cost_of_one_label,
        in_smaller_reach, beyond_the_budget,
    ) == RETRIES  # fmt: skip


# ---- large rules -----------------------------------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True)
class Below(AbstractRule):
    """An income below a limit, said to make the program large."""

    limit: float
    is_large: ClassVar[bool] = True

    def check(self, space: Any) -> None:
        """Nothing to refuse."""

    def build(self, block: Any, x: Any) -> None:
        """Add the row."""
        block.below = pyo.Constraint(expr=x.x["income"] <= self.limit)

    def violation(self, space: Any, factual: Any, point: Any) -> float:
        """Return the excess."""
        del space, factual
        return max(0.0, point["income"] - self.limit)


def large(*outcomes: SolvedProgram, **request: Any) -> tuple[SolvedProgram, list[bool], Written]:
    settings, person = asked(constraints=[Below(5.0)])
    solve = Written(*outcomes)
    found = without_large_rules(settings, person, solve, SolveRequest(None, **request), 9.0)
    return found, [asked.without_large for asked in solve.requests], solve


def test_an_optimum_without_a_large_rule_stands_if_it_keeps_it() -> None:
    found, without, _ = large(solved(4.0, bound=3.0))
    assert (found.point, without) == ({"income": 4.0}, [True])


def test_one_that_breaks_a_large_rule_is_solved_for_with_it() -> None:
    found, without, _ = large(solved(6.0, bound=5.0), solved(4.5, Stop.FEASIBLE, bound=2.0))
    assert (found.point, without) == ({"income": 4.5}, [True, False])
    assert found.outcome.bound == 5.0  # what is proved without the rule holds with it
    assert found.solve_s == 8.0
    found, _, _ = large(solved(6.0, bound=5.0), solved(None, Stop.TIME_LIMIT))
    assert found.point is None  # the first one's breaks the rule
    assert found.outcome.bound == 5.0


def test_what_is_not_proved_without_a_large_rule_is_tried_with_it() -> None:
    found, without, _ = large(solved(4.0, Stop.FEASIBLE, bound=2.0), solved(None, Stop.TIME_LIMIT, bound=1.0))
    assert (found.point, without) == ({"income": 4.0}, [True, False])
    found, without, _ = large(solved(4.0, Stop.FEASIBLE, bound=2.0), solved(3.0))
    assert (found.point, found.outcome.status, without) == ({"income": 3.0}, Stop.OPTIMAL, [True, False])


def test_where_there_is_nothing_without_a_large_rule_there_is_nothing_with_it() -> None:
    found, without, _ = large(solved(None, Stop.INFEASIBLE))
    assert (found.outcome.status, without) == (Stop.INFEASIBLE, [True])
    found, without, _ = large(solved(None, Stop.INTERRUPTED))
    assert (found.outcome.status, without) == (Stop.INTERRUPTED, [True])


def test_a_known_point_at_the_proved_cost_is_the_optimum() -> None:
    settings, _ = asked()
    starts = [(3.0, {"income": 4.0}), (9.0, {"income": 2.0})]
    bound = settings.cost.to_objective(3.0)
    found, without, _ = large(solved(6.0, bound=bound), starts=starts)
    assert (found.point, found.outcome.status, without) == ({"income": 4.0}, Stop.OPTIMAL, [True])
    assert found.outcome.objective == bound
    _, without, _ = large(solved(6.0, bound=0.9 * bound), solved(4.0), starts=starts)
    assert without == [True, False]  # something cheaper may keep the rule
    _, without, _ = large(solved(6.0, bound=bound), solved(4.0), starts=[(3.0, {"income": 7.0})])
    assert without == [True, False]  # the point breaks it
    _, without, _ = large(solved(6.0, Stop.FEASIBLE, bound=bound), solved(4.0), starts=starts)
    assert without == [True, False]


def test_it_is_left_in_where_cells_count_or_several_points_are_wanted() -> None:
    for request in ({"barred": [({"income": 2.0}, OtherDecisions())]}, {"n_incumbents": 2}):
        _, without, _ = large(solved(4.0), **request)
        assert without == [False]


# ---- rules that follow from counterexamples --------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True)
class Under(AbstractRule):
    """An income below a limit, stated as it is said: more strictly, or by what follows from points that break it."""

    limit: float
    stated: Any = "by_cuts"
    known: tuple[float, ...] = ()

    def check(self, space: Any) -> None:
        """Nothing to refuse."""

    def build(self, block: Any, x: Any) -> None:
        """Add a row for each point known."""
        block.below = pyo.Constraint(range(len(self.known)), rule=lambda _, k: x.x["income"] <= self.known[k] - 1.0)

    def violation(self, space: Any, factual: Any, point: Any) -> float:
        """Return the excess."""
        del space, factual
        return max(0.0, point["income"] - self.limit)

    def counterexample(self, space: Any, point: Any) -> tuple[float, ...]:
        """Return the income, where it is too high."""
        return (point["income"],) if self.violation(space, None, point) else ()

    def with_cuts(self, cuts: Any) -> Under:
        """Return the rule as far as it follows from some incomes."""
        return replace(self, known=tuple(cuts))


def lazily(stated: str, *outcomes: SolvedProgram, seconds: float = 9.0) -> tuple[SolvedProgram, list[Any]]:
    settings, person = asked(constraints=[Under(5.0, stated)])
    solve = Written(*outcomes)
    found = with_cuts_from_counterexamples(settings, person, solve, SolveRequest(None), seconds)
    return found, [request.cuts.get(0) for request in solve.requests]


def test_each_optimum_that_breaks_a_rule_is_cut_off_until_one_keeps_it() -> None:
    found, cuts = lazily("by_cuts", solved(9.0), solved(7.0), solved(5.0, bound=4.0))
    assert (found.point, found.outcome.status, cuts) == ({"income": 5.0}, Stop.OPTIMAL, [(), (9.0,), (9.0, 7.0)])
    assert found.solve_s == 12.0
    found, _ = lazily("by_cuts", solved(9.0), solved(None, Stop.INFEASIBLE))
    assert (found.point, found.outcome.status) == (None, Stop.INFEASIBLE)


def test_a_cut_that_cuts_nothing_ends_the_loop_without_a_claim() -> None:
    found, _ = lazily("by_cuts", solved(9.0, bound=3.0), solved(9.0, bound=3.5))
    assert (found.point, found.outcome.status, found.outcome.bound) == (None, Stop.TIME_LIMIT, 3.5)


def test_without_time_one_program_is_solved() -> None:
    found, cuts = lazily("by_cuts", solved(5.0), seconds=0.0)
    assert (found.point, cuts) == ({"income": 5.0}, [()])


def test_stricter_rows_prove_nothing_but_what_holds_without_them() -> None:
    found, cuts = lazily(
        "stricter", solved(4.0, bound=4.0), solved(9.0, bound=2.0), solved(8.0, Stop.TIME_LIMIT, bound=3.0)
    )
    assert (found.point, found.outcome.status, found.outcome.bound) == ({"income": 4.0}, Stop.FEASIBLE, 3.0)
    assert cuts == [None, (), (9.0,)]
    found, _ = lazily("stricter", solved(4.0, bound=4.0), solved(3.0, bound=2.0))
    assert (found.point, found.outcome.status) == ({"income": 3.0}, Stop.OPTIMAL)  # without the rule, which it keeps
    found, cuts = lazily("stricter", solved(None, Stop.INFEASIBLE), solved(9.0), solved(5.0))
    assert (found.point, found.outcome.status, cuts) == ({"income": 5.0}, Stop.OPTIMAL, [None, (), (9.0,)])
    found, _ = lazily("proved", solved(4.0), solved(9.0, bound=2.0), solved(None, Stop.TIME_LIMIT, bound=3.0))
    assert (found.point, found.outcome.status, found.outcome.bound) == ({"income": 4.0}, Stop.FEASIBLE, 3.0)


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
    request = SolveRequest(None, budget=3.0, is_hard_limit=True)
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


def test_without_bounds_the_last_program_has_the_time_that_the_others_left(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, person = asked(target={"no", "more"})
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    solve = Written(UNBOUNDED, solved(4.0), solved(3.5))
    given = []

    def slow(request: SolveRequest, seconds: float) -> SolvedProgram:
        given.append(seconds)
        clock[0] += 2.0
        return solve(request, seconds)

    within_cost_of_one_label(settings, person, slow, SolveRequest(None), 9.0)
    assert given == [9.0, 4.5, 5.0]


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
    person = Person(factual, reach_of(wide, factual), wide)
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


def test_a_point_that_costs_nothing_has_no_smaller_reach() -> None:
    """Rules may ask for a change that is free: there is no unit of nothing."""
    settings, person = asked()
    solve = Written(solved(1.0, bound=0.0))
    found = in_smaller_reach(settings, person, solve, SolveRequest(None), 9.0)
    assert found.point == {"income": 1.0}
    assert len(solve.requests) == 1


# ---- units and sizes -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("size", "unit", "better"),
    [
        (None, 8.0, 8.0), (0.0, 8.0, 8.0), (1e-13, 8.0, 8.0), (float("inf"), 8.0, 8.0),
        (0.1, 1.0, 1.0), (1e3, 1.0, 1.0), (5.0, 1.0, 1.0), (8e3, 8.0, 8.0), (0.8, 8.0, 8.0),
        (0.09, 1.0, 0.125), (1100.0, 1.0, 1024.0), (3e6, 1.0, 2.0**22), (1e-6, 1.0, 2.0**-20), (100.0, 1024.0, 128.0),
    ],
)  # fmt: skip
def test_a_unit_stays_where_lengths_are_ordinary_in_it(size: float | None, unit: float, better: float) -> None:
    assert unit_for(size, unit) == better


def test_the_first_unit_is_that_of_the_point_that_set_the_budget() -> None:
    settings, person = asked(cost=ceopt.L2(scale={"income": 1.0}))
    far = {"income": 1.0 + 2.0**14}
    budget = settings.cost.value(SPACE, person.factual, far)
    request = SolveRequest(None, starts=[(1.0, {"income": 2.0}), (budget, far)], budget=budget)
    solve = Written(replace(solved(far["income"]), is_curved=True))
    in_unit_of_the_point(settings, person, solve, request, 9.0)
    assert [asked.unit for asked in solve.requests] == [2.0**14]


NUMBER = ceopt.FeatureSpace(
    [
        ceopt.Feature("x", kind="continuous", lower=-1e15, upper=1e15),
        ceopt.Feature("k", kind="binary", levels=("a", "b")),
    ]
)


@pytest.mark.parametrize(
    ("before", "now", "is_open", "smaller"),
    [
        (Interval(0.0, 1e12), Interval(0.0, 3.0), False, True),
        (Interval(0.0, 3.0), Interval(0.0, 1e12), False, True),  # another unit all the same
        (Interval(0.0, 1e12), Interval(0.0, 9e11), False, False),
        (Interval(0.0, 9.0), Interval(0.0, 3.0), False, False),
        (Interval(2.0, 2.0), Interval(2.0, 2.0), False, False),
        (Interval(0.0, 2.0**24, 1.0), Interval(0.0, 2.0**13, 1.0), False, True),
        (Interval(0.0, 2.0**24, 1.0), Interval(0.0, 2.0**22, 1.0), False, False),
        (Interval(0.0, 2.0**24, 1.0), Interval(0.0, 2.0**22, 1.0), True, True),
        (Interval(0.0, 2.0**24, 1.0), Interval(0.0, 2.0**23, 1.0), True, False),
        (Interval(0.0, 2.0**23, 1.0), Interval(0.0, 2.0, 1.0), True, False),
        (Levels((0, 1)), Levels((0,)), True, False),
        (Interval(0.0, 2.0**34), Interval(0.0, 2.0**24), False, True),  # the unit of one is 2**10 that of the other
        (Interval(0.0, 2.0**24), Interval(0.0, 2.0**34), False, True),
        (Interval(0.0, 2.0**34), Interval(0.0, 2.0**25), False, False),
    ],
)
def test_what_makes_a_reach_another_one_to_a_solver(before: Any, now: Any, is_open: bool, smaller: bool) -> None:
    rest = {"k": Levels((0, 1))}
    assert is_smaller({"x": now, **rest}, {"x": before, **rest}, NUMBER, is_open=is_open) is smaller


@pytest.mark.parametrize(
    ("part", "extreme"),
    [
        (Interval(0.0, 9.0), False), (Interval(0.0, 1e12), True), (Interval(0.0, 1e-12), True),
        (Interval(1e12, 1e12), False),
        (Interval(0.0, 9.0, 1.0), False), (Interval(0.0, 1e9, 1e7), False), (Interval(0.0, 1e9, 2e7), True),
        (Interval(0.0, 9.0, 1e-9), True), (Interval(0.0, 2.0**23, 1.0), False), (Interval(0.0, 2.0**23 + 1, 1.0), True),
        (Interval(0.0, math.inf, 1.0), False), (Interval(-math.inf, math.inf, 1.0), False),  # nobody counts their steps
        (Levels((0, 1)), False),
    ],
)  # fmt: skip
def test_which_numbers_are_extreme(part: Any, extreme: bool) -> None:
    assert has_extreme_numbers({"k": Levels((0, 1)), "x": part}, NUMBER) is extreme


def test_two_solves_take_the_time_of_both_and_the_point_of_the_one_that_has_one() -> None:
    first = replace(solved(3.0), build_s=10.0, lower_s=20.0, solve_s=40.0)
    for later, point in ((solved(2.0), 2.0), (solved(None, Stop.TIME_LIMIT), 3.0)):
        both = later.after(first)
        assert both.point == {"income": point}
        assert (both.build_s, both.lower_s, both.solve_s) == (11.0, 22.0, 44.0)
    assert solved(None).after(solved(None)).point is None


def test_an_outcome_short_of_the_optimum_keeps_the_bound_that_it_has() -> None:
    """Within the cost of the first point nothing beyond it was searched; a bound below it holds as it is."""
    wide = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0.0, upper=1e12)])
    prepared = prepare(Affine([1.0], -3.0, labels=("no", "yes")), wide, Settings(target="yes"))
    factual = wide.row({"income": 1.0})
    person = Person(factual, reach_of(wide, factual), wide)
    cost = prepared.settings.cost.value(wide, factual, {"income": 3.0})
    limit = prepared.settings.cost.to_objective(cost)
    for status, bound, kept in (
        (Stop.FEASIBLE, 0.5 * limit, 0.5 * limit),
        (Stop.FEASIBLE, 2.0 * limit, limit),
        (Stop.FEASIBLE, None, None),
        (Stop.OPTIMAL, 2.0 * limit, 2.0 * limit),
    ):
        solve = Written(solved(3.0), solved(3.0, status, bound=bound))
        found = in_smaller_reach(prepared.settings, person, solve, SolveRequest(None), 9.0)
        assert len(solve.requests) == 2
        assert found.outcome.bound == kept


def test_programs_of_trees_with_a_start_are_left_to_branching(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS gets its light options for trees with a start; not without one, for other models, or where points count."""
    seen: list[Mapping[str, Any]] = []
    original = ceopt.search.solve_program.GuardedSession

    def noted(*args: Any, **words: Any) -> Any:
        seen.append(words["options"])
        return original(*args, **words)

    monkeypatch.setattr(ceopt.search.solve_program, "GuardedSession", noted)
    stump = {"feature": 0, "threshold": 2.0, "left": {"value": 0.0}, "right": {"value": 1.0}}
    trees = TreeEnsemble([stump], labels=("no", "yes"), level=0.5)
    point = {"income": 3.0}
    for model, starts, n_incumbents, own, light in [
        (trees, [(2.0, point)], 0, {}, True),
        (trees, [], 0, {}, False),
        (trees, [(2.0, point)], 2, {}, False),
        (Affine([1.0], -2.0, labels=("no", "yes")), [(2.0, point)], 0, {}, False),
        (trees, [(2.0, point)], 0, {"mip_heuristic_effort": 0.5}, True),
    ]:
        cost = ceopt.L1(scale={"income": 1.0})
        prepared = prepare(model, SPACE, Settings(target="yes", cost=cost, solver="highs", solver_options=own))
        factual = SPACE.row({"income": 1.0})
        person = Person(factual, reach_of(SPACE, factual), SPACE)
        request = SolveRequest(margin=0.0, starts=starts, n_incumbents=n_incumbents)
        outcome = ProgramSolver(prepared, person).once(request, 10.0)
        assert outcome.outcome.objective == pytest.approx(1.0, rel=1e-6)
        assert seen.pop() == ({**SOLVERS["highs"].light, **own} if light else own)


@pytest.mark.parametrize("name", ["highs", "scip"])
def test_light_options_are_taken(name: str) -> None:
    """A solver knows them all, and proves the same optimum with them."""
    pytest.importorskip(SOLVERS[name].library)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(6), domain=pyo.Binary)
    m.row = pyo.Constraint(expr=sum((3 + k) * m.x[k] for k in range(6)) >= 11.5)
    m.cost = pyo.Objective(expr=sum((2 + k % 3) * m.x[k] for k in range(6)))
    found = solve(m, name, options=dict(SOLVERS[name].light))
    assert (found.status, found.objective) == (ceopt.Status.OPTIMAL, pytest.approx(solve(m, name).objective))
