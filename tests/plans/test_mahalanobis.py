"""The Mahalanobis correction: golden family, closed forms, stationarity, side conditions, what it selects and says."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

from ceopt import CeoptError, Status
from ceopt.formulations import programs
from ceopt.plans import mahalanobis_correction, robust_improvement, validity_bounds
from ceopt.solvers import solve

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "mahalanobis_correction.json").read_text())["instances"]
SINGLE = [pytest.param(i, id=i["id"]) for i in GOLDEN if "x" in i["inputs"]]
PLANS = [pytest.param(i, id=i["id"]) for i in GOLDEN if "plan" in i["inputs"]]
EYE = np.eye(2)


def correct(x: Any, mean: Any, covariance: Any, perturbation: float, **options: Any) -> Any:
    """One counterfactual alone."""
    return mahalanobis_correction([x], mean, covariance, perturbation=perturbation, n_corrected=1, **options)


def ratio(x: Any, mean: Any, covariance: Any) -> float:
    x, mean, covariance = (np.asarray(a, float) for a in (x, mean, covariance))
    return float(x @ mean / math.sqrt(x @ covariance @ x))


# ---- golden ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", ["auto", "clarabel"])
@pytest.mark.parametrize("instance", SINGLE)
def test_golden_points(instance: Any, solver: str) -> None:
    """The exact search and the cone program; the latter's point is flat at the optimum and less exact."""
    inputs, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    given_: Any = (inputs["x"], inputs["mu"], inputs["Sigma"])
    found = correct(*given_, inputs["Delta"], fixed=inputs.get("fixed"), solver=solver)
    assert found.status == expected["status"]
    if found.status is Status.INFEASIBLE:
        assert found.plan is None
        assert found.lower_after is None
        assert found.reason == "Counterfactual 0: no point within 0.1 has a positive score at the mean."
        return
    assert ratio(*given_) == pytest.approx(expected["before"], abs=1e-9)
    assert ratio(found.plan[0], *given_[1:]) == pytest.approx(expected["value"], abs=tol["value"])
    assert np.linalg.norm(found.plan[0] - np.array(inputs["x"])) <= inputs["Delta"] + (
        1e-12 if solver == "auto" else 1e-6
    )
    if instance["unique"]["x"]:
        np.testing.assert_allclose(
            found.plan[0], expected["x"], rtol=0, atol=tol["x"] if solver == "auto" else max(tol["x"], 1e-4)
        )


@pytest.mark.parametrize("instance", SINGLE)
def test_golden_programs(instance: Any) -> None:
    inputs, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    model = programs.mahalanobis_correction(
        inputs["x"], inputs["mu"], inputs["Sigma"], perturbation=inputs["Delta"], fixed=inputs.get("fixed")
    )
    result = solve(model)
    assert str(result.status) == expected["status"]
    if "conic_objective" in expected:
        assert result.objective == pytest.approx(expected["conic_objective"], abs=tol["conic_objective"])
        assert model.t.value == pytest.approx(expected["t"], abs=tol["t"])
        np.testing.assert_allclose([model.v[k].value for k in model.v], expected["v"], rtol=0, atol=tol["v"])


@pytest.mark.parametrize("instance", PLANS)
def test_golden_plans(instance: Any) -> None:
    inputs, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    found = mahalanobis_correction(
        inputs["plan"], inputs["mu"], inputs["Sigma"],
        perturbation=inputs["Delta"], n_corrected=inputs["K"], radius=inputs["rho"],
    )  # fmt: skip
    assert found.status is Status.OPTIMAL
    assert found.selected.tolist() == expected["selected"]
    assert found.selection_unique
    np.testing.assert_allclose(found.plan, expected["plan"], rtol=0, atol=tol["plan"])
    assert found.lower_before == pytest.approx(expected["lower_before"], abs=tol["lower_before"])
    assert found.lower_after == pytest.approx(expected["lower_after"], abs=tol["lower_after"])
    assert found.weights.sum() == pytest.approx(1 - found.lower_before, abs=1e-6)
    kept = np.setdiff1d(np.arange(len(inputs["plan"])), found.selected)
    assert (found.plan[kept] == np.array(inputs["plan"])[kept]).all()


# ---- what theorem 3.1 implies ----------------------------------------------------------------------------------------
def instance_of(seed: int, d: int, rank: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, d if rank is None else rank)) * 0.6
    mean, x = rng.normal(size=d), rng.normal(size=d)
    covariance = factor @ factor.T + (0.0 if rank is not None else 0.01) * np.eye(d)
    return (x if x @ mean > 0 else -x), mean, covariance


SEEDS = st.integers(0, 10**6)


@draws(40)
@given(seed=SEEDS, d=st.integers(2, 6), reach=st.sampled_from([0.05, 0.3, 1.0]))
def test_the_point_is_stationary_on_the_sphere_or_on_the_best_ray(seed: int, d: int, reach: float) -> None:
    x, mean, covariance = instance_of(seed, d)
    point = correct(x, mean, covariance, reach).plan[0]
    best = math.sqrt(mean @ np.linalg.solve(covariance, mean))
    value = ratio(point, mean, covariance)
    assert value >= ratio(x, mean, covariance) - 1e-12
    if value > best * (1 - 1e-9):
        return
    assert np.linalg.norm(point - x) == pytest.approx(reach, rel=1e-9)
    spread = math.sqrt(point @ covariance @ point)
    slope = mean / spread - value / spread**2 * (covariance @ point)
    multiplier = slope @ (point - x) / reach**2
    assert multiplier > 0
    np.testing.assert_allclose(slope, multiplier * (point - x), atol=1e-6 * np.linalg.norm(slope) + 1e-9 * value)


@draws(40)
@given(seed=SEEDS, d=st.integers(2, 6), reach=st.sampled_from([0.05, 0.3, 1.0, 4.0]), sigma=st.sampled_from([0.5, 2.0]))
def test_with_an_isotropic_covariance_it_is_the_tangent_point(seed: int, d: int, reach: float, sigma: float) -> None:
    x, mean, _ = instance_of(seed, d)
    point = correct(x, mean, sigma**2 * np.eye(d), reach).plan[0]
    size, length = np.linalg.norm(mean), np.linalg.norm(x)
    angle = max(0.0, math.acos(min(1.0, x @ mean / (size * length))) - math.asin(min(1.0, reach / length)))
    assert ratio(point, mean, sigma**2 * np.eye(d)) == pytest.approx(size * math.cos(angle) / sigma, rel=1e-9)
    if angle > 1e-6:
        assert point @ point == pytest.approx(length**2 - reach**2, rel=1e-6)


@draws(25)
@given(seed=SEEDS, d=st.integers(2, 5))
def test_the_ratio_rises_with_the_reach_up_to_the_ray(seed: int, d: int) -> None:
    x, mean, covariance = instance_of(seed, d)
    values = [ratio(correct(x, mean, covariance, r).plan[0], mean, covariance) for r in (0, 0.1, 0.2, 0.5, 1, 2, 1e3)]
    assert values[0] == ratio(x, mean, covariance)
    assert (np.diff(values) >= -1e-9 * values[-1]).all()
    assert values[-1] == pytest.approx(math.sqrt(mean @ np.linalg.solve(covariance, mean)), rel=1e-9)


def test_of_the_best_ray_it_takes_the_nearest_point() -> None:
    point = correct([1.0, -0.5], [1.0, 0.5], [[0.3, 0.1], [0.1, 0.2]], 3.0).plan[0]
    ray = np.linalg.solve([[0.3, 0.1], [0.1, 0.2]], [1.0, 0.5])
    np.testing.assert_allclose(point, ray * (ray @ [1.0, -0.5]) / (ray @ ray), atol=1e-9)


@draws(25)
@given(seed=SEEDS, d=st.integers(1, 5), rank=st.integers(0, 5), reach=st.sampled_from([0.2, 1.0]), k=st.integers(0, 1))
def test_the_search_has_the_optimum_of_the_cone_program(seed: int, d: int, rank: int, reach: float, k: int) -> None:
    x, mean, covariance = instance_of(seed, d, min(rank, d))
    fixed = [d - 1][:k]
    found = correct(x, mean, covariance, reach, fixed=fixed)
    result = solve(programs.mahalanobis_correction(x, mean, covariance, perturbation=reach, fixed=fixed))
    point = found.plan[0]
    spread = math.sqrt(max(point @ covariance @ point, 0.0))
    assert result.objective == pytest.approx(spread / (point @ mean), abs=2e-6)
    assert (point[fixed] == x[fixed]).all()


def test_it_is_the_exact_improvement_at_radius_0_and_no_more_beyond() -> None:
    x, mean, covariance = instance_of(3, 4)
    options: Any = {"perturbation": 0.2, "fixed": [3]}
    exact = robust_improvement(x, mean, covariance, **options)
    np.testing.assert_allclose(correct(x, mean, covariance, 0.2, fixed=[3]).plan[0], exact.point, atol=1e-9)
    beyond = robust_improvement(x, mean, covariance, radius=0.2, **options)
    assert correct(x, mean, covariance, 0.2, fixed=[3], radius=0.2).lower_after <= beyond.lower_after + 1e-9


def test_the_bound_of_the_plan_may_fall_and_that_is_reported() -> None:
    """The golden counter-example: the point is farther inside at the nominal moments, and worse at radius 0.3."""
    inputs = next(i["inputs"] for i in GOLDEN if "correction lowers the bound" in i["tags"])
    found = correct(inputs["plan"][0], inputs["mu"], inputs["Sigma"], inputs["Delta"], radius=inputs["rho"])
    assert found.lower_after < found.lower_before - 0.02


# ---- side conditions -------------------------------------------------------------------------------------------------
def test_inequalities_that_the_best_point_meets_change_nothing() -> None:
    x, mean, covariance = instance_of(5, 3)
    free = correct(x, mean, covariance, 0.3).plan
    held = correct(x, mean, covariance, 0.3, inequalities=(np.eye(3), free[0] + 1e-3)).plan
    assert (free == held).all()


@pytest.mark.parametrize("seed", range(4))
def test_inequalities_are_met_by_the_best_point_that_meets_them(seed: int) -> None:
    """Against a fine grid of the disc, in two dimensions."""
    x, mean, covariance = instance_of(seed, 2)
    free = correct(x, mean, covariance, 0.5).plan[0]
    matrix, right = np.array([free - x]), np.array([(free - x) @ (x + 0.4 * (free - x))])
    found = correct(x, mean, covariance, 0.5, inequalities=(matrix, right)).plan[0]
    assert (matrix @ found <= right + 1e-7).all()
    r, turn = np.meshgrid(np.linspace(0, 0.5, 200), np.linspace(0, 2 * np.pi, 720))
    grid = x + np.stack([r * np.cos(turn), r * np.sin(turn)], axis=-1).reshape(-1, 2)
    grid = grid[(grid @ matrix.T <= right).ravel()]
    values = grid @ mean / np.sqrt(np.einsum("ij,jk,ik->i", grid, covariance, grid))
    assert values.max() <= ratio(found, mean, covariance) + 1e-6
    assert values.max() >= ratio(found, mean, covariance) * 0.99


def test_inequalities_without_a_point_are_infeasible() -> None:
    found = correct([1.0, 0.0], [1.0, 0.0], EYE, 0.5, inequalities=([[1.0, 0.0]], [0.2]))
    assert found.status is Status.INFEASIBLE
    assert found.reason.endswith("that satisfies the inequalities has a positive score at the mean.")


def test_the_intercept_is_held() -> None:
    plan = [[0.5, 0.2, 1.0], [0.1, 0.9, 1.0]]
    found = mahalanobis_correction(
        plan, [1.0, 0.5, 0.2], np.diag([0.2, 0.1, 0.3]), perturbation=0.3, n_corrected=2, fixed=[2]
    )
    assert found.plan[:, 2].tolist() == [1.0, 1.0]
    assert (np.linalg.norm(found.plan - plan, axis=1) <= 0.3 + 1e-12).all()
    assert found.lower_after > found.lower_before


# ---- which are selected ----------------------------------------------------------------------------------------------
def test_the_greatest_weights_are_selected() -> None:
    rng = np.random.default_rng(2)
    mean, plan = np.ones(3), np.abs(rng.normal(size=(4, 3)))
    weights = validity_bounds(plan, mean, 0.1 * np.eye(3), 0.05).weights
    for k in range(5):
        found = mahalanobis_correction(plan, mean, 0.1 * np.eye(3), perturbation=0.1, n_corrected=k, radius=0.05)
        assert found.selected.tolist() == sorted(np.argsort(-weights)[:k].tolist())
        assert found.selection_unique
        assert found.reason == ""
    assert (found.plan != plan).any(axis=1).all()


@pytest.mark.parametrize(
    ("plan", "mean", "why"),
    [
        ([[1, 0], [-1, 0.5]], [1, 0.1], "The lower bound is 0"),
        ([[1, 0], [2, 0], [0, 1]], [1, 1], "repeat a direction"),
        ([[1, 0], [0, 1]], [1, 1], "Counterfactuals 0 and 1 have equal weights"),
    ],
)
def test_an_arbitrary_selection_says_so_and_takes_the_first(plan: Any, mean: Any, why: str) -> None:
    found = mahalanobis_correction(plan, mean, 0.05 * EYE, perturbation=0.1, n_corrected=1)
    assert not found.selection_unique
    assert why in found.reason
    assert len(found.selected) == 1
    if "equal" in why:
        assert found.selected.tolist() == [0]


def test_all_or_none_is_no_choice() -> None:
    for k in (0, 2):
        found = mahalanobis_correction([[1, 0], [1, 0]], [1, 1], EYE, perturbation=0.1, n_corrected=k)
        assert found.selection_unique
        assert found.status is Status.OPTIMAL
        assert len(found.selected) == k
    none = mahalanobis_correction([[1, 0], [0, 1]], [1, 1], EYE, perturbation=0.1, n_corrected=0)
    assert none.plan.tolist() == [[1, 0], [0, 1]]
    assert none.lower_after == pytest.approx(none.lower_before, abs=1e-9)


def test_one_selected_row_without_a_point_leaves_no_plan() -> None:
    found = mahalanobis_correction([[1, 0], [-3, 0]], [1, 0], EYE, perturbation=0.5, n_corrected=2)
    assert found.status is Status.INFEASIBLE
    assert found.plan is None
    assert found.reason.startswith("Counterfactual 1: no point within 0.5")
    assert found.lower_before == 0.0


# ---- worst moments ---------------------------------------------------------------------------------------------------
def test_worst_moments_are_those_of_the_lower_bound() -> None:
    x, mean, covariance = instance_of(7, 3)
    plan = [x, x + 0.3 * mean]
    found = mahalanobis_correction(
        plan, mean, covariance, perturbation=0.2, n_corrected=1, radius=0.05, moments="worst"
    )
    worst = validity_bounds(plan, mean, covariance, 0.05).worst
    j = int(found.selected[0])
    np.testing.assert_allclose(found.plan[j], correct(plan[j], *worst, 0.2).plan[0], atol=1e-6)
    nominal = mahalanobis_correction(plan, mean, covariance, perturbation=0.2, n_corrected=1, radius=0.05)
    assert np.abs(found.plan[j] - nominal.plan[j]).max() > 1e-4
    assert found.lower_before == nominal.lower_before


def test_at_radius_0_the_worst_moments_are_the_given_ones() -> None:
    x, mean, covariance = instance_of(8, 3)
    one, other = (correct(x, mean, covariance, 0.2, moments=moments).plan for moments in ("nominal", "worst"))
    np.testing.assert_allclose(one, other, atol=1e-6)


# ---- degenerate cases and misuse -------------------------------------------------------------------------------------
def test_degenerate_moments_are_answered() -> None:
    certain = correct([1.0, -2.0], [1.0, 0.5], np.zeros((2, 2)), 0.5)
    assert (certain.lower_before, certain.lower_after) == (0.0, 1.0)  # its score was 0: on the boundary
    assert correct([1.0, 1.0], [0.0, 0.0], EYE, 1.0).status is Status.INFEASIBLE
    singular = correct([1.0, 0.3], [1.0, 1.0], [[0, 0], [0, 1]], 0.5)
    assert singular.plan[0] == pytest.approx([1.0, 0.0], abs=1e-12)
    zero = correct([0.0, 0.0], [1.0, 0.0], EYE, 0.5)
    assert ratio(zero.plan[0], [1.0, 0.0], EYE) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"plan": np.zeros((0, 2))}, "plan has no rows"),
        ({"plan": [[1, 2, 3]]}, "plan of shape n by 2"),
        ({"mean": [1, np.nan]}, "mean[1] is nan"),
        ({"covariance": [[1, 0.5], [0, 1]]}, "a symmetric covariance"),
        ({"covariance": [[1, 0], [0, -1]]}, "positive semidefinite"),
        ({"perturbation": -1}, "perturbation is -1"),
        ({"perturbation": math.inf}, "perturbation is inf"),
        ({"n_corrected": 3}, "n_corrected to be a whole number from 0 to 2, but n_corrected is 3"),
        ({"n_corrected": -1}, "n_corrected is -1"),
        ({"n_corrected": 1.0}, "n_corrected is 1.0"),
        ({"radius": -0.1}, "radius is -0.1"),
        ({"moments": "best"}, "a known moments, but moments is 'best'"),
        ({"solver": "none"}, "a known solver"),
        ({"fixed": [2]}, "fixed has 2"),
        ({"inequalities": [[1, 0]]}, "a pair (A, b)"),
        ({"inequalities": ([[1, 0]], [np.inf])}, "b of inequalities[0] is inf"),
    ],
)
def test_misuse_is_refused(changed: Any, message: str) -> None:
    options: Any = {
        "plan": [[1.0, 1.0], [0.0, 1.0]], "mean": [1.0, 1.0], "covariance": EYE, "perturbation": 1.0, "n_corrected": 1,
    } | changed  # fmt: skip
    with pytest.raises(CeoptError, match=re.escape(message)):
        mahalanobis_correction(options.pop("plan"), options.pop("mean"), options.pop("covariance"), **options)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_the_unit_of_the_parameters_does_not_matter_to_the_solver(unit: float) -> None:
    mean, covariance = np.array([2.0, 1.0]) * unit, np.array([[0.5, 0.2], [0.2, 0.4]]) * unit**2
    asked = {"perturbation": 0.5, "n_corrected": 1}
    found = mahalanobis_correction([[1.0, 1.0]], mean, covariance, inequalities=([[0, 1]], [0.52]), **asked)
    assert found.status == "optimal"
    np.testing.assert_allclose(found.plan, [[1.14, 0.52]], atol=1e-5)
    none = mahalanobis_correction([[1.0, 1.0]], mean, covariance, inequalities=([[0, 1]], [0.2]), **asked)
    assert (none.status, none.plan) == ("infeasible", None)
