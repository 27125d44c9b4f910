"""The COPA programs: rows as in their docstrings, values as of the objective, optima as of closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from rowtext import variables

from ceopt import CeoptError
from ceopt.formulations import programs
from ceopt.plans import copa_objective
from ceopt.solvers import ProblemClass, Status, compile_model, solve

EYE = np.eye(2)


def plan(n: int = 2, **changed: Any) -> Any:
    options = {"validity_weight": 0.5, "diversity_weight": 2.0, "margin": 0.1} | changed
    return programs.copa_plan([-1.0, 0.5], [1.0, 0.3], [[0.4, 0.1], [0.1, 0.3]], n=n, **options)


def texts(model: Any) -> dict[str, int]:
    """Count the rows by component."""
    return {c.local_name: len(c) for c in model.component_objects(pyo.Constraint) if len(c)}


# ---- rows ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("n", "rows"),
    [
        (1, {}),
        (2, {"apart": 1, "kernel": 1}),
        (3, {"apart": 3, "kernel": 3, "product": 1}),
        (4, {"apart": 6, "kernel": 6, "factor": 10, "square": 4, "chain": 4}),
    ],
)
def test_rows_are_quadratic_and_as_many_as_said(n: int, rows: dict[str, int]) -> None:
    model = plan(n)
    each = dict.fromkeys(("near", "margin", "valid", "spread"), n)
    assert texts(model) == each | {"determinant": 1} | rows
    size = 2 * n + 2 * n + 2 + n * (n - 1) + (n * (n + 1) // 2 + 2 * n if n >= 4 else n == 3)
    compiled = compile_model(model)
    assert len(compiled.columns) == size
    assert compiled.problem_class is ProblemClass.NONCONVEX
    assert np.isfinite(compiled.lb).all()
    assert np.isfinite(compiled.ub).all()


def test_parts_without_weight_are_left_out() -> None:
    assert texts(plan(validity_weight=0.0, diversity_weight=0.0)) == {"near": 2, "margin": 2}


def test_l1_has_linear_distances_and_groups_binaries() -> None:
    model = programs.copa_plan(
        [0, 1], [1, 0.3], EYE, n=2, cost="l1", groups=[[0, 1]], validity_weight=0.5, diversity_weight=2
    )
    found = texts(model)
    assert (found["near"], found["up"], found["down"], found["gap"], found["one_hot"]) == (2, 4, 4, 2, 2)
    assert variables(model)["x[0,0]"] == "Binary [0, 1]"
    assert str(model.one_hot[1, 0].expr) == "x[1,0] + x[1,1]  ==  1.0"


# ---- values ----------------------------------------------------------------------------------------------------------
def complete(model: Any, x0: Any, points: Any, mean: Any, covariance: Any, *, cost: str) -> None:
    """Set all Vars to what follows from the plan."""
    n, d = points.shape
    order = 1 if cost == "l1" else 2
    for (j, k), x in model.x.items():
        x.value = points[j, k]
    for j in range(n):
        model.t[j].value = np.linalg.norm(points[j] - x0, order)
        model.n[j].value = np.sqrt(points[j] @ covariance @ points[j])
        if cost == "l1":
            for k in range(d):
                model.m[j, k].value = abs(points[j, k] - x0[k])
    model.r.value = min(points[j] @ mean / model.n[j].value for j in range(n))
    kernel = 1 / (1 + np.linalg.norm(points[:, None] - points, order, axis=2))
    for (i, j), each in model.K.items() if n > 1 else ():
        each.value, model.D[i, j].value = kernel[i, j], 1 / kernel[i, j] - 1
        if cost == "l1":
            for k in range(d):
                model.e[i, j, k].value = abs(points[i, k] - points[j, k])
    if n == 3:
        model.p.value = kernel[0, 1] * kernel[0, 2]
    if n >= 4:
        factor = np.linalg.cholesky(kernel)
        for (i, j), each in model.T.items():
            each.value = factor[i, j]
        for i in range(n):
            model.q[i].value = factor[i, i] ** 2
            model.p[i].value = np.prod(np.diag(factor)[: i + 1] ** 2)
    model.det.value = np.linalg.det(kernel)


@draws(40)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), cost=st.sampled_from(["l1", "l2"]))
def test_the_value_at_a_plan_is_its_objective(seed: int, n: int, cost: str) -> None:
    rng = np.random.default_rng(seed)
    mean, root, x0 = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=3)
    covariance = root @ root.T + 0.1 * np.eye(3)
    points = rng.normal(size=(n, 3))
    points += (np.maximum(0.2 - points @ mean, 0) / (mean @ mean))[:, None] * mean
    weights = {"validity_weight": 0.7, "diversity_weight": 1.3, "cost": cost}
    model = programs.copa_plan(x0, mean, covariance, n=n, margin=0.1, smoothing=0.0, within=50.0, **weights)
    complete(model, x0, points, mean, covariance, cost=cost)
    for row in model.component_data_objects(pyo.Constraint):
        assert row.slack() >= -1e-8, row.name
    for var in model.component_data_objects(pyo.Var):
        assert var.lb - 1e-9 <= var.value <= var.ub + 1e-9, var.name
    expected = copa_objective(x0, points, mean, covariance, **weights)
    assert pyo.value(model.value) == pytest.approx(expected.objective, abs=1e-8)


def test_one_column_is_solved_by_hand() -> None:
    """1 and 1 + s with s / 2 - 2 (1 - 1 / (1 + s)^2) least at s = 1; validity is 1 everywhere."""
    model = programs.copa_plan([-1], [1], [[1]], n=2, validity_weight=0.25, diversity_weight=2, margin=1, smoothing=0)
    result = solve(model)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(0.75, abs=1e-5)
    assert sorted(x.value for x in model.x.values()) == pytest.approx([1.0, 2.0], abs=1e-2)


def test_held_columns_bounds_and_the_reach_of_an_optimum() -> None:
    model = plan(fixed=[1], bounds=(-2.0, [3.0, 1.0]), within=2.5)
    assert model.x[0, 1].bounds == (0.5, 0.5)
    assert model.x[0, 0].bounds == (-2.0, 1.5)
    low, high = plan(cost=[[4.0, 0.0], [0.0, 1.0]], within=2.0).x[0, 0].bounds
    assert (low, high) == pytest.approx((-2.0, 0.0))  # the distance counts column 0 twice


# ---- one counterfactual ----------------------------------------------------------------------------------------------
@given(angle=st.floats(0.05, 3.0), part=st.floats(0.05, 0.95))
def test_the_nearest_point_of_a_cone(angle: float, part: float) -> None:
    """With covariance I, a value of r is a cone around the mean: the distance to it is a sine."""
    half = np.arccos(part)
    model = programs.copa_plan_alike([np.cos(angle), np.sin(angle)], [1.0, 0.0], EYE, radius=part)
    expected = np.sin(min(max(angle - half, 0.0), np.pi / 2))
    assert solve(model).objective == pytest.approx(expected, abs=1e-6)


def test_no_value_is_above_the_greatest() -> None:
    assert solve(programs.copa_plan_alike([1, 1], [2, 0], EYE, radius=2.1, margin=0.1)).status is Status.INFEASIBLE
    assert solve(programs.copa_plan_alike([1, 1], [2, 0], EYE, radius=1.9, margin=0.1)).status is Status.OPTIMAL


def test_an_infinite_value_is_a_plane() -> None:
    model = programs.copa_plan_alike([1, 1], [1, 0], np.diag([0.0, 1.0]), radius=np.inf, margin=0.1)
    assert [str(row.expr) for row in model.still.values()] == ["0.0*x[0] + x[1]  ==  0.0"]
    assert solve(model).objective == pytest.approx(1.0, abs=1e-7)


def test_columns_of_groups_are_binary() -> None:
    model = programs.copa_plan_alike([0, 1, 1], [1, -1, 0], np.eye(3), radius=0.5, groups=[[0, 1]], fixed=[2])
    assert compile_model(model).problem_class is ProblemClass.MISOCP
    result = solve(model)
    assert result.objective == pytest.approx(np.sqrt(2.0), abs=1e-6)
    assert [round(model.x[k].value, 6) for k in range(3)] == [1.0, 0.0, 1.0]


def test_a_group_of_one_column_is_binary_without_a_row() -> None:
    model = programs.copa_plan_alike([0, 1], [1, -1], np.eye(2), radius=0.5, groups=[[0]])
    assert model.x[0].is_binary()
    assert model.x[1].is_continuous()
    assert len(model.one_hot) == 0
    whole = programs.copa_plan([0, 1], [1, -1], np.eye(2), n=2, validity_weight=1, diversity_weight=1, groups=[[0]])
    assert whole.x[1, 0].is_binary()
    assert whole.x[1, 1].is_continuous()
    assert len(whole.one_hot) == 0


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"cost": "linf"}, "kernel is positive semidefinite"),
        ({"smoothing": -1}, "smoothing is -1"),
        ({"within": 0}, "within is 0"),
        ({"margin": -1}, "margin is -1"),
        ({"validity_weight": -1}, "validity_weight is -1"),
        ({"fixed": [5]}, "fixed has 5"),
    ],
)
def test_what_makes_no_program_is_refused(changed: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        plan(**{"n": 2} | changed)


def test_a_program_without_bounds_is_refused() -> None:
    with pytest.raises(CeoptError, match="Say within"):
        programs.copa_plan([1, 1], [1, 0], np.diag([0.0, 1.0]), n=2, validity_weight=1, diversity_weight=1)
    with pytest.raises(CeoptError, match="radius is -1"):
        programs.copa_plan_alike([1, 1], [1, 0], EYE, radius=-1)
