"""Batteries: whatever joins a registry is tested here without an edit, or this file says what example it lacks."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
from rules import battery, objects
from rules.found import file_of, half_of, halves
from sources import ROOT

from ceopt.formulations import Factual, Reaches, costs, embed, l1
from ceopt.formulations.constraints import RULES
from ceopt.formulations.constraints.rule import AbstractElastic
from ceopt.formulations.costs import COSTS, L1, L2, AbstractCost, Changes, L1Mahalanobis, Percentile, Sum, parse_cost
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.predictors.embed import FORMULATIONS, kind_of
from ceopt.formulations.predictors.readers import read
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


def test_every_rule_has_an_independent_half() -> None:
    for name in RULES:
        half = half_of(name)
        assert half.examples(), f"tests/rules/{file_of(name)}.py has no examples"
        assert all(type(rule) is RULES[name] for rule in half.examples())


def examples_of(kind: type = object) -> list[Any]:
    """Every example of every rule of a kind; the first two of each rule come in every run."""
    found = []
    before = Counter[str]()
    for k, (name, rule) in enumerate(halves()):
        marks = [pytest.mark.long] if before[name] >= 2 else []
        before[name] += 1
        if isinstance(rule, kind):
            found.append(pytest.param(rule, id=f"{name}_{k}", marks=marks))
    return found


rules_and = pytest.mark.parametrize("rule", examples_of())


@pytest.mark.long(every=6)
@rules_and
def test_a_rule_admits_the_points_that_its_checks_accept(rule: Any) -> None:
    battery.check_points(rule)


@pytest.mark.long(every=4)
@rules_and
@pytest.mark.parametrize("name", battery.MODELS)
def test_the_optimum_under_a_rule_is_that_of_enumeration(rule: Any, name: str) -> None:
    battery.check_optimum([rule], name)


@pytest.mark.long(every=3)
@rules_and
@pytest.mark.parametrize("formulation", sorted(set(FORMULATIONS["trees"]) - {"ordered"}))
def test_a_rule_goes_with_every_formulation_of_trees(rule: Any, formulation: str) -> None:
    battery.check_optimum([rule], "trees", formulation)


@pytest.mark.long(every=2)
@rules_and
def test_a_rule_survives_its_files(rule: Any, tmp_path: Path) -> None:
    battery.check_files(rule, "trees", tmp_path)


@pytest.mark.long(every=2)
@rules_and
def test_a_rule_goes_into_a_model_of_the_users_own(rule: Any) -> None:
    battery.check_own_model(rule)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("rule", examples_of(AbstractElastic))
def test_an_elastic_rule_grows_as_far_as_a_point_needs(rule: Any) -> None:
    battery.check_widened(rule)


@rules_and
def test_a_rule_is_an_object_that_can_be_kept(rule: Any) -> None:
    objects.check_object(rule)


@pytest.mark.long(every=8)
@rules_and
@pytest.mark.parametrize("name", ["linear", "trees", "classes"])
def test_answers_under_a_rule_are_those_of_enumeration(rule: Any, name: str) -> None:
    battery.check_answers(rule, name)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_shows_its_rows(name: str) -> None:
    objects.check_documentation(RULES[name])


def test_the_page_promises_the_checks_that_run() -> None:
    """docs/how_to/adding_a_rule.md says how many checks an example of a rule goes through."""
    page = ROOT / "docs" / "how_to" / "adding_a_rule.md"
    if not page.is_file():
        pytest.skip("The documentation is not beside the tests.")
    each = 0
    for test in globals().values():
        given = [mark.args[1] for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
        if any(values is rules_and.mark.args[1] for values in given):
            each += math.prod(len(values) for values in given if values is not rules_and.mark.args[1])
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert f"runs {2 * each + 1} checks, {each} for each of its two examples and one of the docstring" in text


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


#: Every cost that is asked for by name, and those that are made.
COST_EXAMPLES: dict[str, Any] = {name: parse_cost(name) for name in COSTS} | {
    "changes": Changes(count="columns"),
    "l1 of columns": L1(count="columns"),
    "l2 of columns": L2(count="columns"),
    "max percentile": Percentile("max"),
    "total log-percentile": Percentile("total_log"),
    "l1 Mahalanobis": L1Mahalanobis(),
}


def test_every_cost_has_an_example() -> None:
    public = [getattr(costs, name) for name in costs.__all__]
    kinds = {kind for kind in public if isinstance(kind, type) and issubclass(kind, AbstractCost)}
    examples = {type(cost) for cost in COST_EXAMPLES.values()}
    assert kinds - {AbstractCost, Sum} <= examples, "Add an example of the cost, so that its battery runs."


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", COST_EXAMPLES)
def test_a_cost_is_the_same_in_the_program_and_in_numbers(name: str) -> None:
    """Also where the cost takes something from data, and where squares of integers make an MIQP."""
    factual = SPACE.row(ROW)
    cost = COST_EXAMPLES[name].fitted(SPACE, SPACE.frame(POINTS))
    for point in POINTS[::5]:
        model = fixed_at(point)
        model.cost = pyo.Objective(expr=cost.build(model.x))
        result = solve(model)
        expected = cost.value(SPACE, factual, point)
        assert cost.from_objective(result.objective) == pytest.approx(expected, abs=1e-6), (name, point)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", COST_EXAMPLES)
def test_a_cost_may_be_added_to_another(name: str) -> None:
    factual = SPACE.row(ROW)
    cost = (COST_EXAMPLES[name] + 0.5 * Changes()).fitted(SPACE, SPACE.frame(POINTS))
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
