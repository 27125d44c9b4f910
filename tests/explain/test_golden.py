"""Published optima through the one call: verified answers at the published cost, and honest statuses."""

from __future__ import annotations

from typing import Any

import pytest
from published import columns, cost_of, instances, on_every_solver

import ceopt
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble


def ask(
    inputs: Any, model: Any, target: Any, margin: float = 0.0, solver: str = "auto", relative_gap: float = 1e-9
) -> ceopt.SolutionSet:
    space = columns(inputs)
    row = dict(zip(space.names, inputs["x0"], strict=True))
    cost = cost_of(inputs, space.names)
    result = ceopt.explain(
        model, row, space, target=target, cost=cost, margin=margin, relative_gap=relative_gap, solver=solver
    )
    assert ceopt.verify(result, model, space, target=target).ok is not False
    return result


def agree(instance: Any, result: ceopt.SolutionSet, tolerance: float) -> None:
    """The bound is that of the published margin; the answer may be dearer by what strictness takes."""
    expected = instance["expected"]
    if expected["status"] == "infeasible":
        assert result.status == "infeasible"
    elif expected["cost"] == 0.0:
        assert result.status == "already_favourable"
    else:
        assert result.status in {"optimal", "feasible"}
        assert result.bound == pytest.approx(expected["cost"], abs=tolerance, rel=0)
        assert result[0].cost == pytest.approx(expected["cost"], abs=tolerance, rel=1e-6)


ALL = ("l0", "l1", "l2", "linf", "mad", "mahalanobis")


@pytest.mark.long(every=10)
@pytest.mark.parametrize(("instance", "solver"), on_every_solver("linear_projection", *ALL))
def test_linear_projection(instance: Any, solver: str) -> None:
    inputs = instance["inputs"]
    model = Affine(inputs["w"], inputs["intercept"], labels=(0, 1), decision="nonnegative")
    result = ask(inputs, model, 1, solver=solver, relative_gap=1e-6)
    agree(instance, result, instance["tol"].get("cost", 1e-6))


@pytest.mark.parametrize("instance", instances("multiclass_linear", "l1", "l2", "linf"))
def test_multiclass_linear(instance: Any) -> None:
    inputs = instance["inputs"]
    model = Affine(inputs["W"], inputs["b"], labels=tuple(range(len(inputs["b"]))))
    agree(instance, ask(inputs, model, inputs["target"], inputs["margin"]), instance["tol"]["cost"])


@pytest.mark.long(every=3)
@pytest.mark.parametrize("instance", instances("multiclass_linear", "l1", "l2", "linf"))
def test_any_other_class_without_bounds(instance: Any) -> None:
    """No column has a bound, so no big-M exists until a first answer bounds the moves."""
    inputs, expected = instance["inputs"], instance["expected"]
    model = Affine(inputs["W"], inputs["b"], labels=tuple(range(len(inputs["b"]))))
    result = ask(inputs, model, ceopt.OtherThan(expected["current_class"]), inputs["margin"])
    tolerance = instance["tol"]["any_other_class_cost"]
    assert result.bound == pytest.approx(expected["any_other_class_cost"], abs=tolerance, rel=0)
    assert result[0].prediction != expected["current_class"]


@pytest.mark.parametrize("instance", instances("tree_ensemble", "l0", "l1", "l2", "linf"))
def test_tree_ensemble(instance: Any) -> None:
    inputs = instance["inputs"]
    model = TreeEnsemble(inputs["trees"], right_gap=inputs["split_eps"], n_inputs=len(inputs["x0"]))
    agree(instance, ask(inputs, model, ceopt.AtLeast(inputs["threshold"])), instance["tol"].get("cost", 1e-6))


@pytest.mark.parametrize("instance", instances("relu_net", "l1", "linf"))
def test_relu_net(instance: Any) -> None:
    inputs = instance["inputs"]
    model = ReluNetwork([layer["W"] for layer in inputs["net"]], [layer["b"] for layer in inputs["net"]])
    agree(instance, ask(inputs, model, ceopt.AtLeast(inputs["threshold"])), instance["tol"].get("cost", 1e-6))
