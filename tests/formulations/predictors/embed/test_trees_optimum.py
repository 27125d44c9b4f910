"""The optimum over trees equals enumeration, in every formulation, with every kind of column, cost, rule and target."""

from __future__ import annotations

import problems
import pytest
from draws import draws
from hypothesis import given
from problems import Problem, assert_answers, program

FORMULATIONS = ("ordered", "misic", "leaf")


@draws(120)
@given(problem=problems.tree_problems(bounded=False, square=True, linear=False))
def test_ordered_cuts_without_coordinates(problem: Problem) -> None:
    """No column needs a coordinate, so bounds may be infinite and squares are linear."""
    model = program(problem)
    assert_answers(problem, model)
    assert not model.x.x


@draws(60)
@given(problem=problems.tree_problems())
def test_ordered_cuts_beside_linear_rules(problem: Problem) -> None:
    assert_answers(problem, program(problem))


@draws(60)
@given(problem=problems.tree_problems())
def test_ordered_cuts_with_every_coordinate(problem: Problem) -> None:
    assert_answers(problem, program(problem, order=("embed", "raw", "rules", "cost")))


@pytest.mark.parametrize("formulation", ["misic", "leaf"])
@draws(50)
@given(problem=problems.tree_problems(most=3))
def test_research_forms(formulation: str, problem: Problem) -> None:
    assert_answers(problem, program(problem, formulation))


@draws(25)
@given(problem=problems.tree_problems(most=3))
def test_all_forms_agree(problem: Problem) -> None:
    costs = [problems.optimum(program(problem, name), problem)[0] for name in FORMULATIONS]
    assert problems.same(costs[0], costs[1])
    assert problems.same(costs[0], costs[2])
