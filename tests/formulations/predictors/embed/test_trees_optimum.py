"""The optimum over trees equals enumeration, in every formulation, with every kind of column, cost, rule and target."""

from __future__ import annotations

import problems
import pytest
from draws import draws
from hypothesis import given
from problems import Problem, assert_answers, program

from ceopt import L1, AtLeast, AtMost, Between, Disagreement
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.predictors.read_model import read_model
from ceopt.formulations.recourse_program import recourse_program
from ceopt.formulations.space import Feature, FeatureSpace

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


@draws(150)
@given(problem=problems.tree_problems())
def test_without_variables_for_the_worst_leaves(problem: Problem) -> None:
    """Where only the decision is asked of the model, what is worst for it needs no variable."""
    stated = recourse_program(
        read_model(problem.model, problem.space),
        problem.row,
        target=problem.target,
        cost=problem.cost,
        rules=problem.rules,
        margin=problem.margin,
        decides_only=True,
    )
    assert_answers(problem, stated.model)


@pytest.mark.parametrize(
    ("target", "dropped"),
    [
        ("c", 2),  # of the first tree one leaf is worst against a, and another against b
        (AtLeast(0.5), 3),
        (AtMost(0.5), 2),
        (Between(0.2, 0.5), 0),
        (Disagreement(AtLeast(0.5), 0.5), 0),
    ],
)
def test_which_leaves_have_none(target: object, dropped: int) -> None:
    """Those that are worst in every row over the scores; none where a row is two-sided or counts trees."""
    space = FeatureSpace([Feature("hours", kind="integer", lower=0, upper=9)])
    values: list[tuple[object, ...]] = [(0.2, 0.9, 0.1), (0.3, 0.7, 0.3)]
    if target == "c":
        against_both = (1.0, 1.0, 0.0)
        won = (0.0, 0.0, 1.0)
        values = [((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), won), (against_both, won, against_both)]
    trees = [
        {"feature": 0, "threshold": 2.5 + k, "left": {"value": low},
         "right": {"feature": 0, "threshold": 5.5, "left": {"value": middle}, "right": {"value": high}}}
        for k, (low, middle, high) in enumerate(values)
    ]  # fmt: skip
    labels = ("a", "b", "c") if target == "c" else None
    model = read_model(TreeEnsemble(trees, divisor=2.0, labels=labels), space)
    counts = [
        len(recourse_program(model, {"hours": 4}, target=target, cost=L1(), decides_only=lean).embedded.leaf)
        for lean in (False, True)
    ]
    assert counts[0] - counts[1] == dropped
