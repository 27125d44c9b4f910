"""Linear causal models: published optima, closed forms, and interventions tried one set after the other."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from numpy.typing import NDArray
from published import FOLDER

import ceopt
from ceopt import Causal, Feature, FeatureSpace, LinearEquation
from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.constraints import AbstractRule
from ceopt.formulations.predictors import Affine
from ceopt.solvers import Status, solve

Floats = NDArray[np.float64]
INSTANCES = [
    pytest.param(found["inputs"], found["expected"], found["tol"], id=found["id"])
    for found in json.loads((FOLDER / "scm_linear.json").read_text())["instances"]
]


def named(count: int) -> list[str]:
    return [f"x{j}" for j in range(count)]


def space_of(inputs: Any, *, bound: float = np.inf) -> FeatureSpace:
    """Free numbers; hard interventions need bounds, which lie far from every answer."""
    return FeatureSpace(
        Feature(name, kind="continuous", lower=-bound, upper=bound, weight=weight)
        for name, weight in zip(named(len(inputs["x0"])), inputs["cost_weights"], strict=True)
    )


def row_of(inputs: Any) -> dict[str, float]:
    return dict(zip(named(len(inputs["x0"])), inputs["x0"], strict=True))


def rule_of(inputs: Any, intervention: Any) -> Causal:
    names = named(len(inputs["x0"]))
    lines = {name: dict(zip(names, line, strict=True)) for name, line in zip(names, inputs["B"], strict=True)}
    kept = {name: {p: a for p, a in line.items() if a != 0.0} for name, line in lines.items()}
    return Causal(
        {name: LinearEquation(line) for name, line in kept.items() if line},
        intervention=intervention,
        actionable=[names[j] for j in inputs["actionable"]],
    )


def model_of(inputs: Any) -> Affine:
    return Affine(inputs["w"], inputs["intercept"], labels=(0, 1), decision="nonnegative")


def asked(inputs: Any, rules: Any, *, cost: Any = None, bound: float = np.inf) -> ceopt.SolutionSet:
    space = space_of(inputs, bound=bound)
    cost = ceopt.L1(scale="none") if cost is None else cost
    result = ceopt.explain(
        model_of(inputs), row_of(inputs), space, target=1, cost=cost, margin=0.0, constraints=rules, relative_gap=1e-7
    )
    assert ceopt.verify(result, model_of(inputs), space, target=1, constraints=rules).ok
    return result


def own_program(inputs: Any, rule: AbstractRule, bound: float = np.inf) -> float:
    """Return the optimum of a model of the user's own."""
    m = pyo.ConcreteModel()
    m.x = Factual(space_of(inputs, bound=bound), row_of(inputs))
    m.classifier = embed(model_of(inputs), m.x)
    m.valid = Reaches(m.classifier, 1, margin=0.0)
    m.causal = impose(rule, m.x)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    result = solve(m, relative_gap=1e-9)
    assert result.status is Status.OPTIMAL
    assert result.objective is not None
    return result.objective


# ---- published -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("intervention", ["soft", "hard"])
@pytest.mark.parametrize(("inputs", "expected", "tol"), INSTANCES)
def test_published_cost(inputs: Any, expected: Any, tol: Any, intervention: str) -> None:
    key, bound = f"{intervention}_cost", 50.0 if intervention == "hard" else np.inf
    rule = rule_of(inputs, intervention)
    result = asked(inputs, [rule], bound=bound)
    assert result.status == "optimal"
    assert result.bound == pytest.approx(expected[key], abs=tol[key], rel=0)
    assert result[0].cost == pytest.approx(expected[key], abs=tol[key], rel=0)
    assert own_program(inputs, rule, bound) == pytest.approx(expected[key], abs=tol[key], rel=0)
    assert set(result[0].actions.index) <= {f"x{j}" for j in inputs["actionable"]}
    assert result.changes()["why"].isin(["action", "consequence"]).all()


@pytest.mark.parametrize(("inputs", "expected", "tol"), INSTANCES)
def test_published_cost_without_consequences(inputs: Any, expected: Any, tol: Any) -> None:
    """Without equations, and with equations whose coefficients are 0; whoever is not actionable stays."""
    still = [f"x{j}" for j in range(len(inputs["x0"])) if j not in inputs["actionable"]]
    zero = LinearEquation({"x0": 0.0})
    for intervention in ("soft", "hard"):
        equations = {f"x{j}": zero for j in range(1, len(inputs["x0"]))}
        able = [f"x{j}" for j in inputs["actionable"]]
        result = asked(inputs, [Causal(equations, intervention=intervention, actionable=able)], bound=50.0)
        assert result[0].cost == pytest.approx(expected["independent_cost"], abs=tol["independent_cost"], rel=0)
        assert result[0].changed == tuple(result[0].actions.index)
    stay = [ceopt.Linear({name: 1.0}, "==", row_of(inputs)[name]) for name in still]
    plain = asked(inputs, stay)
    assert plain[0].cost == pytest.approx(expected["independent_cost"], abs=tol["independent_cost"], rel=0)


# ---- closed forms ----------------------------------------------------------------------------------------------------
def random_inputs(seed: int, d: int = 4) -> Any:
    rng = np.random.default_rng(seed)
    B = np.tril(rng.normal(size=(d, d)), -1) * (rng.random((d, d)) < 0.7)
    B[1, 0] = B[1, 0] or 0.5
    x0, w = rng.normal(size=d).round(3), rng.normal(size=d).round(3)
    able = sorted(rng.choice(d, size=d - 1, replace=False).tolist())
    return {
        "B": B.round(3).tolist(), "x0": x0.tolist(), "w": w.tolist(), "intercept": float(-1.5 - w @ x0),
        "cost_weights": rng.uniform(0.5, 2.0, d).round(3).tolist(), "actionable": able,
    }  # fmt: skip


def gap_of(inputs: Any) -> float:
    return -float(np.dot(inputs["w"], inputs["x0"]) + inputs["intercept"])


@pytest.mark.long(every=2)
@pytest.mark.parametrize("seed", range(4))
def test_soft_interventions_are_a_projection_in_the_shifts(seed: int) -> None:
    """With x = x0 + (I - B)^-1 delta the score of delta is linear, and each norm has its closed form (6.1, 9.4)."""
    inputs = random_inputs(seed)
    v = np.linalg.solve(np.eye(4) - np.array(inputs["B"]).T, inputs["w"])
    able, weights, gap = inputs["actionable"], np.array(inputs["cost_weights"]), gap_of(inputs)
    part = v[able] / weights[able]
    spread = np.random.default_rng(seed).normal(size=(4, 4))
    covariance = spread @ spread.T + np.eye(4)
    # Who may not act has a shift of 0: the best among the others.
    held = np.linalg.inv(np.linalg.inv(covariance)[np.ix_(able, able)])
    expected = {
        ceopt.L1(scale="none"): gap / np.abs(part).max(),
        ceopt.L2(scale="none"): gap / np.linalg.norm(part),
        ceopt.Linf(scale="none"): gap / np.abs(part).sum(),
        ceopt.Mahalanobis(covariance=covariance): gap / np.sqrt(v[able] @ held @ v[able]),
    }
    for cost, value in expected.items():
        result = asked(inputs, [rule_of(inputs, "soft")], cost=cost, bound=500.0)
        assert result.bound == pytest.approx(value, rel=2e-6), cost
        assert result[0].cost == pytest.approx(value, rel=2e-6), cost
        shifts = np.array([result[0].actions.get(name, 0.0) for name in named(4)])
        moves = np.linalg.solve(np.eye(4) - np.array(inputs["B"]), shifts)
        assert np.array(inputs["x0"]) + moves == pytest.approx(result[0].values.to_numpy(dtype=float), abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_hard_interventions_as_by_trying_every_set(seed: int) -> None:
    """Whoever is set has its own move, all others keep their noise: per set, the score is linear in the moves."""
    inputs = random_inputs(seed)
    B, gap, weights = np.array(inputs["B"]), gap_of(inputs), np.array(inputs["cost_weights"])
    best = np.inf
    for size in range(1, len(inputs["actionable"]) + 1):
        for chosen in itertools.combinations(inputs["actionable"], size):
            cut = B.copy()
            cut[list(chosen)] = 0.0
            gains = np.linalg.solve((np.eye(4) - cut).T, inputs["w"])[list(chosen)]
            best = min(best, gap / np.abs(gains / weights[list(chosen)]).max())
    result = asked(inputs, [rule_of(inputs, "hard")], bound=200.0)
    assert result[0].cost == pytest.approx(best, rel=2e-6)
    for name, value in result[0].actions.items():
        assert result[0].values[name] == value


@pytest.mark.parametrize("seed", range(4))
def test_without_interventions_all_moves_are_charged(seed: int) -> None:
    """Roots move, the rest follows: the cost of a root is that of all that its move brings about."""
    inputs = random_inputs(seed) | {"actionable": [0, 1, 2, 3]}
    B, gap, weights = np.array(inputs["B"]), gap_of(inputs), np.array(inputs["cost_weights"])
    free = [j for j in inputs["actionable"] if not B[j].any()]
    moves = np.linalg.inv(np.eye(4) - B)[:, free]
    result = asked(inputs, [rule_of(inputs, "none")], bound=500.0)
    if len(free) == 1:
        rise = float(np.dot(inputs["w"], moves[:, 0]))
        assert result[0].cost == pytest.approx(weights @ np.abs(moves[:, 0]) * gap / abs(rise), rel=2e-6)
    assert set(result[0].actions.index) <= {f"x{j}" for j in free}
    kept = np.linalg.solve(moves.T @ moves, moves.T @ (result[0].values.to_numpy(dtype=float) - inputs["x0"]))
    assert np.array(inputs["x0"]) + moves @ kept == pytest.approx(result[0].values.to_numpy(dtype=float), abs=1e-5)


def test_holding_a_column_at_its_value_is_free() -> None:
    """The rise of x0 brings x1 down with it; to hold x1 costs nothing if it is set, and a shift if it is shifted."""
    inputs = {
        "B": [[0, 0], [-1.0, 0]],
        "x0": [0.0, 0.0],
        "w": [1.0, 1.0],
        "intercept": -2.0,
        "cost_weights": [1.0, 1.0],
    }
    inputs["actionable"] = [0, 1]
    hard = asked(inputs, [rule_of(inputs, "hard")], bound=9.0)
    assert hard[0].cost == pytest.approx(2.0, abs=1e-5)
    inputs["cost_weights"] = [1.0, 3.0]
    held = asked(inputs, [rule_of(inputs, "hard")], bound=9.0)
    assert held[0].cost == pytest.approx(2.0, abs=1e-5)
    assert held[0].changed == ("x0",)
    assert held[0].actions.to_dict() == pytest.approx({"x0": 2.0, "x1": 0.0}, abs=1e-5)
    assert held.changes()["why"].to_dict() == {(1, "x0"): "action", (1, "x1"): "action"}
    soft = asked(inputs, [rule_of(inputs, "soft")], bound=9.0)
    assert soft[0].cost == pytest.approx(6.0, abs=1e-5)  # x0 rises for nothing: x1 alone gains
    assert soft[0].actions.to_dict() == pytest.approx({"x1": 2.0}, abs=1e-5)
