"""Exhaustive sets against trying everything: the same cells, each at its least cost, and nothing else."""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any
from unittest import mock

import enumeration as by_hand
import numpy as np
import problems
import pytest
from cells_by_hand import assert_all_found, decides, near_cells
from draws import draws
from hypothesis import assume, given
from hypothesis import strategies as st

import ceopt
from ceopt.diverse import enumeration, exhaustive, score_bounds
from ceopt.formulations.predictors import Affine
from ceopt.search.prepare import Prepared

EPSILONS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0])
#: What a program may be off by at the threshold.
EDGE = 1e-5
WHOLE = ("stepped", "integer", "even", "ordinal", "ranked", "categorical", "binary", "flag")


def ask(problem: problems.Problem, epsilon: float, margin: float | None, **words: Any) -> ceopt.SolutionSet:
    return exhaustive(
        problem.model,
        problem.row,
        problem.space,
        target=problem.target,
        epsilon=epsilon,
        cost=problem.cost,
        constraints=problem.rules,
        margin=margin,
        **words,
    )


def is_favourable(problem: problems.Problem) -> bool:
    here = problem.point[None, :]
    return bool(decides(problem, here, None)[0] and problems.keeps(problem, here)[0])


def by_programs() -> Any:
    """Let nothing be walked through: a sequence of programs answers alone."""
    return mock.patch.object(sys.modules["ceopt.diverse.exhaustive"], "has_a_cheapest_point", return_value=False)


def exactly(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def nearly(value: float) -> Any:
    return pytest.approx(value, rel=2e-6, abs=1e-6)


@draws(60)
@given(problem=problems.tree_problems(most=3, square=True), epsilon=EPSILONS, has_margin=st.booleans())
def test_trees_have_every_cell_that_there_is(problem: Any, epsilon: float, has_margin: bool) -> None:
    assume(not is_favourable(problem))
    margin = 10 * problem.margin if has_margin else None  # less is a tie, to a solver's tolerance

    found = ask(problem, epsilon, margin)

    assert_all_found(problem, found, near_cells(problem, epsilon, margin), close=nearly if problem.rules else exactly)
    assert found.margin == (margin or 0.0) or not len(found)


@draws(15)
@given(problem=problems.tree_problems(most=2, linear=True), epsilon=st.sampled_from([0.0, 0.25, 0.5]))
def test_programs_alone_find_the_same_cells_of_trees(problem: Any, epsilon: float) -> None:
    assume(not is_favourable(problem))
    expected = near_cells(problem, epsilon, problem.margin)
    assume(len(expected) <= 25)

    with by_programs():
        found = ask(problem, epsilon, problem.margin)

    allowed = near_cells(problem, epsilon + EDGE, problem.margin)
    assert_all_found(problem, found, expected, close=nearly, allowed=allowed)


@draws(40)
@given(problem=problems.affine_problems(WHOLE), epsilon=EPSILONS, has_margin=st.booleans())
def test_linear_models_of_discrete_columns(problem: Any, epsilon: float, has_margin: bool) -> None:
    assume(not is_favourable(problem))
    margin = 10 * problem.margin if has_margin else None  # less is a tie, to a solver's tolerance

    found = ask(problem, epsilon, margin)

    assert_all_found(problem, found, near_cells(problem, epsilon, margin), close=nearly if problem.rules else exactly)


@draws(10)
@given(problem=problems.affine_problems(WHOLE), epsilon=st.sampled_from([0.0, 0.25, 0.5]))
def test_programs_alone_find_the_same_cells_of_linear_models(problem: Any, epsilon: float) -> None:
    assume(not is_favourable(problem))
    expected = near_cells(problem, epsilon, problem.margin)
    assume(len(expected) <= 25)

    with by_programs():
        found = ask(problem, epsilon, problem.margin)

    allowed = near_cells(problem, epsilon + EDGE, problem.margin)
    assert_all_found(problem, found, expected, close=nearly, allowed=allowed)


@draws(25)
@given(
    problem=st.one_of(problems.tree_problems(most=3), problems.affine_problems(WHOLE)),
    epsilon=st.sampled_from([0.5, 1.0, 3.0]),
    limit=st.sampled_from([None, 2]),
)
def test_small_steps_change_nothing(problem: Any, epsilon: float, limit: int | None) -> None:
    """Boxes opened a few at a time, coarse bounds, and points shown one by one lead to the same set."""
    assume(not is_favourable(problem))
    sizes = [
        (enumeration, "_BOX_BYTES", 1),
        (score_bounds, "_KINDS", 2),
        (score_bounds, "_GRID", 2),
        (enumeration, "_CELLS_SHOWN", 1),
        (enumeration, "_POINTS_SHOWN", 1),
    ]
    expected = ask(problem, epsilon, None, limit=limit)
    with contextlib.ExitStack() as small:
        for module, name, size in sizes:
            small.enter_context(mock.patch.object(module, name, size))
        found = ask(problem, epsilon, None, limit=limit)

    assert [answer.cost for answer in found] == pytest.approx([answer.cost for answer in expected], rel=2e-6, abs=1e-6)
    assert (found.status, found.complete) == (expected.status, expected.complete)
    if limit is None and not problem.rules:
        assert found.to_frame().equals(expected.to_frame())


# ---- linear models of both kinds of columns --------------------------------------------------------------------------
NUMBERS = [ceopt.Feature(name, kind="continuous", lower=-2, upper=2) for name in "uv"]
LEVELS = [
    ceopt.Feature("hours", kind="integer", lower=0, upper=3),
    ceopt.Feature("job", kind="categorical", levels=(1, 3, 2), weight=0.5),
]


def least_move(weights: np.ndarray, gap: float) -> float:
    """Return the l1 cost of closing a gap within [-2, 2] from 0: the greatest weights first (a fractional knapsack)."""
    cost = 0.0
    for w in sorted(np.abs(weights), reverse=True):
        if gap <= 0.0:
            break
        if w > 0.0:
            move = min(gap / w, 2.0)
            cost, gap = cost + move, gap - w * move
    return cost if gap <= 1e-12 else math.inf


@draws(15)
@given(
    weights=st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0]), min_size=4, max_size=4),
    intercept=st.sampled_from([-4.0, -2.5, -1.0]),
    epsilon=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_continuous_columns_are_no_cells_of_their_own(weights: Any, intercept: float, epsilon: float) -> None:
    """Each combination of the discrete columns is one cell, whose cheapest point is known in closed form."""
    space = ceopt.FeatureSpace([*NUMBERS, *LEVELS])
    model, margin = Affine(weights, intercept, labels=("no", "yes")), 0.25
    factual = {"u": 0.0, "v": 0.0, "hours": 1, "job": 1}
    assume(model.score([[0.0, 0.0, 1.0, 1.0]])[0] < 0)
    best: dict[tuple[int, int], float] = {}
    for hours in range(4) if weights[2] else [1]:
        for job in (1, 3, 2):
            gap = margin - (intercept + weights[2] * hours + weights[3] * job)
            best[hours, job] = abs(hours - 1) + 0.5 * (job != 1) + least_move(np.array(weights[:2]), gap)
    least = min(best.values())

    found = exhaustive(model, factual, space, target="yes", epsilon=epsilon, cost=ceopt.L1(scale="none"), margin=margin)

    if math.isinf(least):
        assert found.status == "infeasible"
        return
    expected = {cell: cost for cell, cost in best.items() if cost <= least + epsilon + 1e-9}
    assert {(int(a.values["hours"]), int(a.values["job"])): a.cost for a in found} == nearly_all(expected)
    assert len(found) == len(expected)
    assert found.complete


def nearly_all(costs: dict[Any, float]) -> Any:
    return pytest.approx(costs, rel=1e-5, abs=1e-5)


def test_a_linear_model_of_continuous_columns_has_one_cell() -> None:
    found = exhaustive(
        Affine([1.0, 1.0], -1.0, labels=("no", "yes")),
        {"u": 0.0, "v": 0.0},
        ceopt.FeatureSpace(NUMBERS),
        target="yes",
        epsilon=1.0,
        cost=ceopt.L1(scale="none"),
    )

    assert len(found) == 1
    assert found.complete
    assert found[0].cost == pytest.approx(1.0, abs=1e-4)


@draws(20)
@given(problem=problems.tree_problems(most=3), limit=st.integers(1, 4))
def test_a_limit_gives_the_cheapest(problem: Any, limit: int) -> None:
    assume(not is_favourable(problem))
    expected = sorted(near_cells(problem, 2.0, None).values())
    assume(expected)

    found = ask(problem, 2.0, None, limit=limit)

    assert [answer.cost for answer in found] == [nearly(cost) for cost in expected[:limit]]
    assert found.complete == (len(expected) <= limit)
    assert ("limit=" in found.reason) == (len(expected) > limit)


def test_moves_of_the_tests_agree_with_the_cost() -> None:
    """The test's own price of a point is the library's."""
    space = ceopt.FeatureSpace([*NUMBERS, *LEVELS])
    point = np.array([[1.0, -0.5, 3.0, 2.0]])
    home = np.array([0.0, 0.0, 1.0, 0.0])
    own = by_hand.l1("none")(by_hand.Moves(space, point - home))
    named = [dict(zip(space.names, values, strict=True)) for values in (home, point[0])]
    assert ceopt.L1(scale="none").value(space, *named) == pytest.approx(float(own[0]))


def test_after_the_deadline_digits_to_print_are_asked_of_no_more_answers(monkeypatch):
    """Of 26,255 answers, found within 5 s, the digits were looked for during another 33 s."""
    module = sys.modules["ceopt.diverse.exhaustive"]
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in "ab"])
    printed, clock, asked = module.with_printed, module.time.perf_counter, []

    def noted(pairs: Any, *more: Any) -> Any:
        asked.append(len(pairs))
        monkeypatch.setattr(module, "time", mock.Mock(perf_counter=lambda: clock() + 1000.0))
        return printed(pairs, *more)

    monkeypatch.setattr(module, "_AT_ONCE", 3)
    monkeypatch.setattr(module, "with_printed", noted)
    result = exhaustive(
        Affine([1.0, 1.0], -3.5), {"a": 0, "b": 0}, space, target=ceopt.AtLeast(0.0), epsilon=1.0, cost="l1"
    )
    assert asked == [3]
    assert len(result) > 6
    assert result.complete


def test_a_step_of_the_walk_that_meets_very_many_cells_ends_at_the_deadline_with_the_cheapest(monkeypatch):
    """A limit of .5 s became 2 s: one step met 14,473 cells, and all were looked at."""
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in "abc"])
    judge, clock, asked = Prepared.judge, enumeration.time.perf_counter, []

    def noted(self: Any, points: Any) -> Any:
        asked.append(len(points))
        if len(asked) > 1:
            monkeypatch.setattr(enumeration, "time", mock.Mock(perf_counter=lambda: clock() + 1000.0))
        return judge(self, points)

    question = {"target": ceopt.AtLeast(0.0), "epsilon": 2.0, "cost": "l1"}
    model, person = Affine([1.0, 1.0, 1.0], -3.5), {"a": 0, "b": 0, "c": 0}
    every = exhaustive(model, person, space, **question)
    monkeypatch.setattr(enumeration, "_CELLS_SHOWN", 20)
    with monkeypatch.context() as patched:
        patched.setattr(Prepared, "judge", noted)
        part = exhaustive(model, person, space, **question)
    assert every.complete
    assert not part.complete
    assert "time limit" in part.reason
    assert 0 < len(part) < len(every) // 2
    assert [answer.cost for answer in part] == [answer.cost for answer in every][: len(part)]
