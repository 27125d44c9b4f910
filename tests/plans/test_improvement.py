"""The exact improvement of one counterfactual: golden family, brute force, the cone program, degenerate cases."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st

from ceopt import CeoptError, Status
from ceopt.formulations import programs
from ceopt.plans import mahalanobis_correction, robust_improvement, validity_bounds
from ceopt.solvers import solve

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "robust_improvement.json").read_text())["instances"]
EYE = [[1.0, 0.0], [0.0, 1.0]]


def kappa_of(lower: float) -> float:
    return math.sqrt(lower / (1.0 - lower)) if lower < 1.0 else math.inf


@pytest.mark.parametrize("instance", GOLDEN, ids=[i["id"] for i in GOLDEN])
def test_golden(instance: Any) -> None:
    inputs, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    found = robust_improvement(
        inputs["x"], inputs["mu"], inputs["Sigma"], perturbation=inputs["Delta"], radius=inputs["rho"]
    )
    assert found.status is Status.OPTIMAL
    for name in ("kappa", "lower_before", "lower_after"):
        assert getattr(found, name) == pytest.approx(expected[name], abs=tol[name])
    assert np.linalg.norm(found.point - np.array(inputs["x"])) <= inputs["Delta"] * (1 + 1e-12)


# ---- brute force -----------------------------------------------------------------------------------------------------
def lower_bounds(points: np.ndarray, mean: np.ndarray, factor: np.ndarray, radius: float) -> np.ndarray:
    """The closed form of one counterfactual, by the angle of the line that touches the disc, for many points."""
    m, s = points @ mean, np.linalg.norm(points @ factor, axis=1)
    ratio = radius * np.linalg.norm(points, axis=1) / np.maximum(np.hypot(m, s), 1e-300)
    angle = np.arctan2(s, m) + np.arcsin(np.minimum(ratio, 1.0))
    return np.where((m > 0) & (ratio < 1) & (angle < np.pi / 2), np.cos(angle) ** 2, 0.0)


def disc(centre: np.ndarray, reach: float, free: np.ndarray, step: int = 240) -> np.ndarray:
    """A grid of the disc around a centre, its edge included; of a segment where one column is fixed."""
    r, turn = np.linspace(0, reach, 40), np.linspace(0, 2 * np.pi, step, endpoint=False)
    moves = (r[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)).reshape(-1, 2)
    if not free.all():
        moves = np.linspace(-reach, reach, 2001)[:, None] * free
    return centre + moves


QUARTERS = st.integers(-8, 8).map(lambda k: k / 4)


@draws(60)
@example(x=(1.0, 1.0), mean=(1.0, 0.0), factor=(0.0, 0.0, 0.0, 0.0), reach=0.5, radius=0.25, fixed=set())
@example(x=(1.0, 1.0), mean=(1.0, 0.0), factor=(0.0, 1.0, 0.0, 0.0), reach=2.0, radius=0.25, fixed=set())  # a kink
@example(x=(-1.0, 0.0), mean=(1.0, 0.0), factor=(1.0, 0.0, 0.0, 1.0), reach=1.0, radius=0.0, fixed=set())
@example(x=(0.5, 1.0), mean=(1.0, 1.0), factor=(1.0, 0.0, 0.0, 0.0), reach=1.0, radius=0.0, fixed={1})
@given(
    x=st.tuples(QUARTERS, QUARTERS),
    mean=st.tuples(QUARTERS, QUARTERS),
    factor=st.tuples(*[st.sampled_from([-0.75, -0.25, 0.0, 0.0, 0.5, 1.0])] * 4),
    reach=st.sampled_from([0.0, 0.1, 0.5, 2.0]),
    radius=st.sampled_from([0.0, 0.1, 0.5]),
    fixed=st.sampled_from([set(), {0}, {1}, {0, 1}]),
)
def test_no_point_in_reach_is_better(x: Any, mean: Any, factor: Any, reach: float, radius: float, fixed: Any) -> None:
    f, centre, m = np.array(factor).reshape(2, 2), np.array(x), np.array(mean)
    free = ~np.isin([0, 1], list(fixed))
    found = robust_improvement(x, mean, f @ f.T, perturbation=reach, radius=radius, fixed=fixed)
    best = float(lower_bounds(disc(centre, reach, free), m, f, radius).max())
    assert found.lower_before == pytest.approx(float(lower_bounds(centre[None], m, f, radius)[0]), abs=1e-9)
    if found.point is None:
        assert found.status is Status.INFEASIBLE
        assert found.kappa is None
        assert found.lower_after is None
        assert "lower bound of 0" in found.reason
        assert best < 1e-9
        return
    assert found.status is Status.OPTIMAL
    assert np.linalg.norm(found.point - centre) <= reach * (1 + 1e-9)
    assert (found.point[~free] == centre[~free]).all()
    assert found.lower_after == pytest.approx(float(lower_bounds(found.point[None], m, f, radius)[0]), abs=1e-9)
    assert found.kappa == pytest.approx(kappa_of(found.lower_after), rel=1e-5, abs=1e-6) or found.kappa > 1e6
    assert best <= found.lower_after + 1e-9
    assert found.lower_after <= best + 0.02 or radius == 0  # the grid is this fine; without radius it may miss a line
    assert found.lower_after >= found.lower_before - 1e-12


# ---- against the cone program ----------------------------------------------------------------------------------------
@draws(30)
@example(seed=0, d=5, rank=2, reach=3.0, radius=0.05, n_fixed=0)  # points without spread are the best
@example(seed=2, d=5, rank=2, reach=3.0, radius=0.0, n_fixed=0)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 6),
    rank=st.integers(0, 6),
    reach=st.sampled_from([0.1, 0.5, 3.0]),
    radius=st.sampled_from([0.0, 0.05, 0.3]),
    n_fixed=st.integers(0, 2),
)
def test_the_program_at_the_greatest_kappa_has_no_slack(
    seed: int, d: int, rank: int, reach: float, radius: float, n_fixed: int
) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, min(rank, d))) * 0.5
    mean, x = rng.normal(size=d), rng.normal(size=d)
    fixed = rng.choice(d, min(n_fixed, d), replace=False).tolist()
    covariance = factor @ factor.T
    found = robust_improvement(x, mean, covariance, perturbation=reach, radius=radius, fixed=fixed)

    def slack(kappa: float) -> float:
        options: Any = {"kappa": kappa, "perturbation": reach, "radius": radius, "fixed": fixed}
        result = solve(programs.robust_improvement(x, mean, covariance, **options))
        assert result.objective is not None
        return result.objective

    if found.kappa is None:
        assert slack(0.0) <= 1e-6
    elif math.isfinite(found.kappa):
        assert slack(found.kappa) == pytest.approx(0.0, abs=1e-6 * (1 + found.kappa))
    else:
        assert slack(1e3) >= -1e-3
    if rank < d and radius == 0.0 and reach == 3.0 and not fixed and np.linalg.norm(x) < reach:
        assert found.kappa == math.inf  # every direction is in reach, also those without spread


# ---- degenerate cases ------------------------------------------------------------------------------------------------
def test_without_perturbation_the_point_stays() -> None:
    found = robust_improvement([1.0, 0.5], [1.0, 0.5], EYE, perturbation=0.0, radius=0.1)
    assert found.point.tolist() == [1.0, 0.5]
    assert found.lower_after == found.lower_before
    assert robust_improvement([1.0, 0.5], [1.0, 0.5], EYE, perturbation=1.0, fixed=[0, 1]).point.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("x", "mean", "options"),
    [
        ([-1.0, 0.0], [1.0, 0.0], {"perturbation": 1.0}),  # the ball only touches the boundary
        ([-1.0, 0.0], [1.0, 0.0], {"perturbation": 0.0}),
        ([1.0, 1.0], [0.0, 0.0], {"perturbation": 5.0}),
        ([-1.0, 1.0], [1.0, 0.0], {"perturbation": 5.0, "fixed": [0]}),
        ([1.0, 0.0], [1.0, 0.0], {"perturbation": 9.0, "radius": 1.0}),  # the ball of means holds 0
    ],
)
def test_where_no_point_has_a_bound_above_0_there_is_none(x: Any, mean: Any, options: Any) -> None:
    found = robust_improvement(x, mean, EYE, **options)
    assert found.status is Status.INFEASIBLE
    assert found.point is None


def test_without_covariance_the_best_point_points_along_the_mean() -> None:
    """At radius 0 the bound is 1 anywhere inside; otherwise 1 - (rho / |mu|)^2 in the mean's direction."""
    certain = robust_improvement([-0.5, 0.0], [1.0, 0.0], np.zeros((2, 2)), perturbation=1.0)
    assert certain.kappa == math.inf
    assert certain.lower_after == 1.0
    found = robust_improvement([1.0, 0.5], [2.0, 0.0], np.zeros((2, 2)), perturbation=1.0, radius=1.0)
    assert found.lower_after == pytest.approx(1 - 0.25, abs=1e-12)
    assert found.point == pytest.approx([1.0, 0.0], abs=1e-9)


def test_a_singular_covariance_has_points_without_spread() -> None:
    found = robust_improvement([1.0, 0.3], [1.0, 1.0], [[0.0, 0.0], [0.0, 1.0]], perturbation=0.5)
    assert found.point == pytest.approx([1.0, 0.0], abs=1e-12)
    assert (found.kappa, found.lower_after) == (math.inf, 1.0)


def test_with_a_radius_the_best_point_may_be_a_kink() -> None:
    """Turning to the mean gains less than the spread costs: the point stays exactly on the axis without spread."""
    found = robust_improvement([1.0, 0.3], [1.0, 0.2], np.diag([0.0, 4.0]), perturbation=1.0, radius=0.1)
    assert found.point == pytest.approx([1.0, 0.0], abs=1e-14)
    assert found.lower_after == pytest.approx(1 - 0.1**2, abs=1e-14)


def test_the_units_do_not_matter() -> None:
    covariance = np.array([[0.3, 0.1], [0.1, 0.2]])
    one = robust_improvement([1.0, -0.5], [1.0, 0.5], covariance, perturbation=0.2, radius=0.05)
    for c in (1e-6, 1e6):
        other = robust_improvement([1.0, -0.5], [c, 0.5 * c], c * c * covariance, perturbation=0.2, radius=0.05 * c)
        assert other.kappa == pytest.approx(one.kappa, rel=1e-9)
        assert other.point == pytest.approx(one.point, abs=1e-7)


def test_the_intercept_is_held_and_the_bounds_are_those_of_validity_bounds() -> None:
    mean, covariance = [1.0, 0.5, -0.5], np.diag([0.3, 0.1, 0.2])
    found = robust_improvement([0.4, 0.6, 1.0], mean, covariance, perturbation=0.7, radius=0.05, fixed=[2])
    assert found.point[2] == 1.0
    assert found.lower_after > found.lower_before
    assert found.lower_before == pytest.approx(validity_bounds([[0.4, 0.6, 1.0]], mean, covariance, 0.05).lower)
    assert found.lower_after == pytest.approx(validity_bounds([found.point], mean, covariance, 0.05).lower)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": [1.0]}, "x of shape 2, but its shape is (1,)"),
        ({"x": [1.0, np.nan]}, "x[1] is nan"),
        ({"covariance": [[1, 1], [0, 1]]}, "a symmetric covariance"),
        ({"covariance": [[1, 2], [2, 1]]}, "positive semidefinite"),
        ({"perturbation": -0.1}, "perturbation is -0.1"),
        ({"perturbation": np.inf}, "perturbation is inf"),
        ({"radius": -1}, "radius is -1"),
        ({"radius": np.nan}, "radius is nan"),
        ({"fixed": [5]}, "fixed has 5"),
    ],
)
def test_misuse_is_refused(changed: Any, message: str) -> None:
    given_: Any = {"x": [1.0, 1.0], "mean": [1.0, 1.0], "covariance": EYE, "perturbation": 1.0} | changed
    with pytest.raises(CeoptError, match=re.escape(message)):
        robust_improvement(given_.pop("x"), given_.pop("mean"), given_.pop("covariance"), **given_)


def test_a_column_without_mean_and_variance_may_be_next_to_one_with_the_mean_alone() -> None:
    """0 / 0 ended in an error of scipy's."""
    found = robust_improvement([0.1, -0.4, 0.35], [2, 0, -2], np.diag([1, 0, 1]), perturbation=5)
    assert found.kappa == pytest.approx(2.0 * math.sqrt(2.0))
    assert found.point[1] == -0.4


def test_an_intercept_that_moves_is_noticed() -> None:
    given = [1, 0, 1.0], [1, 0.5, 0.5], 0.1 * np.eye(3)
    assert "hold it by fixed=[-1]" in robust_improvement(*given, perturbation=0.5).reason
    assert robust_improvement(*given, perturbation=0.5, fixed=[-1]).reason == ""
    plan = [[1, 0, 1.0], [2, 1, 1]]
    found = mahalanobis_correction(plan, *given[1:], perturbation=0.5, n_corrected=1)
    assert "hold it by fixed=[-1]" in found.reason
