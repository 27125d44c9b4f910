"""Published optima of the golden families that linear models, networks and trees cover, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from published import columns, cost_of, instances, on_every_solver

from ceopt.formulations import Factual, Reaches, embed, l2, mahalanobis
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.targets import AtLeast, OtherThan
from ceopt.solvers import Result, solve


def answer(
    inputs: Any, model: Any, target: Any, margin: float = 0.0, formulation: str = "auto", solver: str = "auto"
) -> tuple[Result, Any, Any]:
    """Solve one instance; return the result, the cost and the point."""
    space = columns(inputs)
    cost = cost_of(inputs, space.names)
    m = pyo.ConcreteModel()
    m.x = Factual(space, dict(zip(space.names, inputs["x0"], strict=True)))
    m.p = embed(model, m.x, formulation=formulation)
    m.valid = Reaches(m.p, target, margin=margin)
    m.cost = pyo.Objective(expr=cost.build(m.x))
    result = solve(m, solver, relative_gap=1e-9 if solver == "auto" else 1e-7)
    if result.objective is None:
        return result, None, None
    return result, cost.from_objective(result.objective), np.array([m.x.decoded()[name] for name in space.names])


def agree(instance: Any, result: Result, cost: float | None) -> None:
    expected = instance["expected"]
    assert str(result.status) == expected["status"]
    if expected["status"] == "optimal":
        assert cost == pytest.approx(expected["cost"], abs=instance["tol"]["cost"], rel=0)


ALL = ("l0", "l1", "l2", "linf", "mad", "mahalanobis")


@pytest.mark.long(every=5)
@pytest.mark.parametrize(("instance", "solver"), on_every_solver("linear_projection", *ALL))
def test_linear_projection(instance: Any, solver: str) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    model = Affine(inputs["w"], inputs["intercept"], labels=(0, 1), decision="nonnegative")
    result, cost, point = answer(inputs, model, 1, solver=solver)
    agree(instance, result, cost)
    if instance["unique"].get("x") and "x" in expected:
        tolerance = instance["tol"].get("x", 1e-5)
        assert point == pytest.approx(np.array(expected["x"]), abs=tolerance, rel=0)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("instance", "solver"), on_every_solver("linear_projection", "l2", "mahalanobis"))
def test_linear_projection_as_a_cone(instance: Any, solver: str) -> None:
    """The distance itself, as it is stated in sums and by the block's expressions."""
    inputs = instance["inputs"]
    space = columns(inputs)
    m = pyo.ConcreteModel()
    m.x = Factual(space, dict(zip(space.names, inputs["x0"], strict=True)))
    m.p = embed(Affine(inputs["w"], inputs["intercept"], labels=(0, 1), decision="nonnegative"), m.x)
    m.valid = Reaches(m.p, 1, margin=0.0)
    m.cost = pyo.Objective(
        expr=l2(m.x, scale="none") if inputs["M"] is None else mahalanobis(m.x, precision=inputs["M"])
    )
    result = solve(m, solver, relative_gap=1e-6)
    assert result.objective == pytest.approx(instance["expected"]["cost"], abs=instance["tol"]["cost"], rel=0)
    if solver != "gurobi":  # of some cones its barrier gives no bound, and so no proof
        agree(instance, result, result.objective)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("instance", instances("multiclass_linear", "l1", "l2", "linf"))
def test_multiclass_linear(instance: Any) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    labels = tuple(range(len(inputs["b"])))
    model = Affine(inputs["W"], inputs["b"], labels=labels)
    result, cost, _ = answer(inputs, model, inputs["target"], inputs["margin"])
    agree(instance, result, cost)
    assert model.predict([inputs["x0"]])[0] == expected["current_class"]
    near = {k: (min(v - 9.0, 0.0), v + 9.0) for k, v in enumerate(inputs["x0"])}
    boxed = inputs | {"lower": [near[k][0] for k in near], "upper": [near[k][1] for k in near]}
    solver = "highs" if inputs["cost"] == "l2" else "auto"  # the squares beside the binaries are a mixed-integer QP
    _, other, _ = answer(boxed, model, OtherThan(expected["current_class"]), inputs["margin"], solver=solver)
    assert other == pytest.approx(expected["any_other_class_cost"], abs=instance["tol"]["any_other_class_cost"], rel=0)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
@pytest.mark.parametrize("instance", instances("tree_ensemble", "l0", "l1", "l2", "linf"))
def test_tree_ensemble(instance: Any, formulation: str) -> None:
    inputs = instance["inputs"]
    curved = formulation != "ordered" and inputs["cost"] == "l2"  # a coordinate makes the square a mixed-integer QP
    model = TreeEnsemble(inputs["trees"], right_gap=inputs["split_eps"], n_inputs=len(inputs["x0"]))
    target, solver = AtLeast(inputs["threshold"]), "highs" if curved else "auto"
    result, cost, point = answer(inputs, model, target, formulation=formulation, solver=solver)
    agree(instance, result, cost)
    if "score_at_x0" in instance["expected"]:
        assert model.score([inputs["x0"]])[0] == pytest.approx(instance["expected"]["score_at_x0"], abs=1e-6)
    if point is not None:
        assert model.score([point])[0] >= inputs["threshold"] - 1e-9


def network(inputs: Any) -> ReluNetwork:
    return ReluNetwork([layer["W"] for layer in inputs["net"]], [layer["b"] for layer in inputs["net"]])


NETWORKS = ["bigm", "partition", "extended"]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("formulation", NETWORKS)
@pytest.mark.parametrize("instance", instances("relu_net", "l1", "linf"))
def test_relu_net(instance: Any, formulation: str) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    model = network(inputs)
    result, cost, point = answer(inputs, model, AtLeast(inputs["threshold"]), formulation=formulation)
    agree(instance, result, cost)
    if "score_at_x0" in expected:
        assert model.score([inputs["x0"]])[0] == pytest.approx(
            expected["score_at_x0"], abs=instance["tol"]["score_at_x0"]
        )
    if point is not None:
        assert model.score([point])[0] >= inputs["threshold"] - 1e-6


@pytest.mark.parametrize("instance", instances("relu_net", "l1", "linf"))
def test_relu_net_relaxations_are_nested(instance: Any) -> None:
    """At least the published bounds, which come from intervals; each form's own between those beside it."""
    inputs = instance["inputs"]
    if instance["expected"]["status"] == "infeasible":
        pytest.skip("no relaxation is published of what has no answer")
    published = instance["cross_checks"]["relaxation"]
    found = []
    for formulation, name in zip(NETWORKS, ("bigm", "partition2", "extended"), strict=True):
        space, cost = columns(inputs), cost_of(inputs, columns(inputs).names)
        m = pyo.ConcreteModel()
        m.x = Factual(space, dict(zip(space.names, inputs["x0"], strict=True)))
        m.p = embed(network(inputs), m.x, formulation=formulation)
        m.valid = Reaches(m.p, AtLeast(inputs["threshold"]), margin=0.0)
        m.cost = pyo.Objective(expr=cost.build(m.x))
        pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
        found.append(solve(m).objective)
        assert found[-1] >= published[name] - 1e-7
    assert sorted(found) == pytest.approx(found, abs=1e-7)
    assert found[-1] <= instance["expected"]["cost"] + 1e-7
