"""Batteries: whatever joins a registry is tested here without an edit, or this file says what example it lacks."""

from __future__ import annotations

import itertools
from typing import Any

import pyomo.environ as pyo
import pytest

from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.constraints import RULES, Linear, MaxChanges
from ceopt.formulations.costs import COSTS, Changes, parse_cost
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.predictors.embed import FORMULATIONS, kind_of
from ceopt.formulations.predictors.read import read
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import AtLeast
from ceopt.solvers import Status, solve
from ceopt.solvers.problem import ProblemClass
from ceopt.solvers.registry import SOLVERS

SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=3),
        Feature("size", kind="ordinal", levels=("S", "M", "L"), weight=(1.0, 2.0)),
        Feature("job", kind="categorical", levels=("cook", "nurse", "clerk")),
        Feature("owner", kind="binary", levels=(False, True)),
    ]
)
ROW = {"age": 1, "size": "M", "job": "nurse", "owner": False}
POINTS = [
    dict(zip(SPACE.names, map(float, values), strict=True)) for values in itertools.product(*map(range, (4, 3, 3, 2)))
]

#: At least one example of every rule, to run the battery on.
EXAMPLES = {
    "MaxChanges": [MaxChanges(0), MaxChanges(2), MaxChanges(3, count="columns")],
    "Linear": [
        Linear({"age": 1.0, "size": -1.0, "owner": 2.0}, "<=", 2.0),
        Linear({"age": 1.0, "owner": 1.0}, ">=", 2.0),
        Linear({"age": 1.0, "size": 1.0}, "==", 3.0),
    ],
}


def test_every_rule_has_an_example() -> None:
    assert EXAMPLES.keys() == RULES.keys(), "Add an example of the rule, so that its battery runs."


def fixed_at(point: dict[str, float]) -> Any:
    """A program whose person can only be at the point."""
    model = pyo.ConcreteModel()
    model.x = x = Factual(SPACE, ROW)
    model.pin = pyo.ConstraintList()
    for feature in SPACE:
        if feature.kind == "categorical":
            model.pin.add(x.is_level[feature.name, feature.levels[int(point[feature.name])]] == 1)
        else:
            model.pin.add(x.raw[feature.name] == point[feature.name])
    return model


@pytest.mark.parametrize("rule", [rule for examples in EXAMPLES.values() for rule in examples], ids=repr)
def test_a_rule_admits_the_points_that_its_check_accepts(rule: Any) -> None:
    factual = SPACE.row(ROW)
    kept = []
    for point in POINTS:
        model = fixed_at(point)
        model.rule = impose(rule, model.x)
        status = solve(model).status
        kept.append(rule.violation(SPACE, factual, point) <= 0)
        assert status is (Status.OPTIMAL if kept[-1] else Status.INFEASIBLE), (rule, point)
    assert any(kept)
    assert not all(kept)
    assert rule.sentence()


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_is_the_same_in_the_program_and_in_numbers(name: str) -> None:
    """Also where the cost takes something from data, and where squares of integers make an MIQP."""
    factual = SPACE.row(ROW)
    cost = parse_cost(name).fitted(SPACE, SPACE.frame(POINTS))
    for point in POINTS:
        model = fixed_at(point)
        model.cost = pyo.Objective(expr=cost.build(model.x))
        result = solve(model)
        expected = cost.value(SPACE, factual, point)
        assert cost.from_objective(result.objective) == pytest.approx(expected, abs=1e-6), (name, point)


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_may_be_added_to_another(name: str) -> None:
    factual = SPACE.row(ROW)
    cost = (parse_cost(name) + 0.5 * Changes()).fitted(SPACE, SPACE.frame(POINTS))
    for point in POINTS[::7]:
        model = fixed_at(point)
        model.cost = pyo.Objective(expr=cost.build(model.x))
        result = solve(model)
        assert result.objective == pytest.approx(cost.value(SPACE, factual, point), abs=2e-6), (name, point)


THREE = FeatureSpace([feature for feature in SPACE if feature.name != "job"])
ABOVE = AtLeast(1.2)
MODELS = {
    "linear": Affine([1.0, 0.5, 1.0], -3.2),
    "networks": ReluNetwork(
        [[[1.0, 0.5, 1.0], [-1.0, 2.0, 0.0], [0.5, -1.0, 2.0]], [[1.0, 0.25, -1.0], [-1.0, 1.0, 0.5]], [[1.0, 1.5]]],
        [[-1.0, 0.5, -1.5], [-0.5, 0.25], [-2.3]],
    ),
    "trees": TreeEnsemble(
        [
            {"feature": 0, "threshold": 1.5, "left": {"value": 0.0}, "right": {"value": 1.0}},
            {"feature": 1, "threshold": 1.5, "left": {"value": -1.0}, "right": {"value": 0.5}},
            {"feature": 2, "threshold": 0.5, "left": {"value": -1.0}, "right": {"value": 0.0}},
        ]
    ),
}


def test_every_kind_of_model_has_an_example() -> None:
    assert MODELS.keys() == FORMULATIONS.keys(), "Add an example of the kind, so that its formulations are tested."
    assert {kind: kind_of(read(model, THREE)) for kind, model in MODELS.items()} == {kind: kind for kind in MODELS}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FORMULATIONS.items() for name in names])
def test_a_formulation_finds_the_optimum_of_enumeration(kind: str, name: str) -> None:
    space = THREE
    row = {name: value for name, value in ROW.items() if name != "job"}
    factual, model = space.row(row), MODELS[kind]
    m = pyo.ConcreteModel()
    m.x = Factual(space, row)
    m.predictor = embed(model, m.x, formulation=name)
    m.valid = Reaches(m.predictor, ABOVE, margin=1e-4)
    m.cost = pyo.Objective(expr=l1(m.x))
    result = solve(m)
    points = {tuple(point[name] for name in space.names) for point in POINTS}
    cost = parse_cost("l1")
    costs = [
        cost.value(space, factual, dict(zip(space.names, point, strict=True)))
        for point in points
        if model.score([list(point)])[0] >= ABOVE.value + 1e-4
    ]
    assert result.objective == pytest.approx(min(costs), abs=1e-6)
    decoded = m.x.decoded()
    assert model.score([[decoded[name] for name in space.names]])[0] >= ABOVE.value


KNAPSACK = [name for name, s in SOLVERS.items() if s.is_installed and s.is_licensed and ProblemClass.MILP in s.supports]


@pytest.mark.parametrize("name", KNAPSACK)
def test_a_solver_solves_a_knapsack(name: str) -> None:
    values, weights = (6.0, 5.0, 4.0, 3.0), (5.0, 4.0, 3.0, 2.0)
    m = pyo.ConcreteModel()
    m.take = pyo.Var(range(4), domain=pyo.Binary)
    m.room = pyo.Constraint(expr=sum(w * m.take[k] for k, w in enumerate(weights)) <= 7)
    m.gain = pyo.Objective(expr=sum(v * m.take[k] for k, v in enumerate(values)), sense=pyo.maximize)
    result = solve(m, name)
    assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, 9.0, 9.0)
    m.more = pyo.Constraint(expr=m.take[0] + m.take[1] >= 3)
    assert solve(m, name).status is Status.INFEASIBLE
