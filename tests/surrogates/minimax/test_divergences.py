"""Worst covariances: golden values, the sphere they lie on, and that nothing in the ball is worse."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from ceopt import CeoptError
from ceopt.surrogates import logdet_factor, worst_covariance

INSTANCES = json.loads((Path(__file__).parents[2] / "golden" / "mpm_tau.json").read_text())["instances"]
FACTORS = [i for i in INSTANCES if "c" in i["expected"]]
WORST = [i for i in INSTANCES if "tau" in i["expected"]]
DIVERGENCES = ("quadratic", "bures", "fisher_rao", "logdet")


def covariance(rng: Any, d: int) -> np.ndarray:
    rows = rng.normal(size=(d + 2, d))
    return rows.T @ rows / (d + 2)


def distance(divergence: str, s: np.ndarray, given: np.ndarray) -> float:
    """The divergences by their definitions."""
    if divergence == "quadratic":
        return float(np.sum((s - given) ** 2))
    if divergence == "bures":
        root = sqrtm(given).real
        return float(np.trace(s) + np.trace(given) - 2 * np.trace(sqrtm(root @ s @ root).real))
    if divergence == "fisher_rao":
        root = np.linalg.inv(sqrtm(given).real)
        return float(np.linalg.norm(np.log(np.linalg.eigvalsh(root @ s @ root))))
    ratio = s @ np.linalg.inv(given)
    return float(np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(s))


# ---- golden ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("instance", FACTORS, ids=lambda i: i["id"])
def test_golden_logdet_factors(instance: Any) -> None:
    found = logdet_factor(instance["inputs"]["rho"])
    assert found == pytest.approx(instance["expected"]["c"], abs=instance["tol"]["c"], rel=0)


@pytest.mark.parametrize("instance", WORST, ids=lambda i: i["id"])
def test_golden_worst_covariances(instance: Any) -> None:
    inputs, expected, tolerance = instance["inputs"], instance["expected"], instance["tol"]
    found = worst_covariance(inputs["w"], inputs["Sigma"], divergence=inputs["divergence"], radius=inputs["rho"])
    assert found.tau == pytest.approx(expected["tau"], abs=tolerance["tau"], rel=0)
    assert found.covariance == pytest.approx(
        np.array(expected["worst_covariance"]), abs=tolerance["worst_covariance"], rel=0
    )


# ---- the factor ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("radius", [1e-300, 1e-18, 1e-9, 1e-3, 0.5, 30.0, 745.0, 1e6, 1e100])
def test_the_logdet_factor_solves_its_equation_at_any_radius(radius: float) -> None:
    x = logdet_factor(radius) - 1.0
    if radius < 1e-6:
        root = math.sqrt(2 * radius)  # the series, whose next term is of the order of the radius's root cubed
        assert x == pytest.approx(root + 2 * radius / 3, rel=1e-6, abs=1e-15)
    else:
        assert x - math.log1p(x) == pytest.approx(radius, rel=1e-12)


# ---- worst covariances -----------------------------------------------------------------------------------------------
@draws(60)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), divergence=st.sampled_from(DIVERGENCES))
def test_the_worst_covariance_attains_tau_on_the_sphere(seed: int, d: int, divergence: str) -> None:
    rng = np.random.default_rng(seed)
    s, w = covariance(rng, d), rng.normal(size=d)
    radius = float(rng.uniform(0.01, 2.0))
    found = worst_covariance(w, s, divergence=divergence, radius=radius)
    assert math.sqrt(w @ found.covariance @ w) == pytest.approx(found.tau, rel=1e-9)
    assert distance(divergence, found.covariance, s) == pytest.approx(radius, rel=1e-5, abs=1e-7)


@draws(40)
@given(seed=st.integers(0, 10**6), divergence=st.sampled_from(DIVERGENCES))
def test_no_covariance_within_the_radius_is_worse(seed: int, divergence: str) -> None:
    rng = np.random.default_rng(seed)
    s, w = covariance(rng, 3), rng.normal(size=3)
    radius = float(rng.uniform(0.01, 2.0))
    found = worst_covariance(w, s, divergence=divergence, radius=radius)
    for _ in range(30):
        bent = np.eye(3) + 0.5 * rng.normal(size=(3, 3))
        other = bent @ found.covariance @ bent.T if rng.uniform() < 0.5 else covariance(rng, 3) * rng.uniform(0.5, 3)
        if distance(divergence, other, s) <= radius:
            assert math.sqrt(w @ other @ w) <= found.tau + 1e-9


@pytest.mark.parametrize("divergence", ["nominal", *DIVERGENCES])
def test_radius_0_and_no_weights_leave_the_given_covariance(divergence: str) -> None:
    s = np.array([[4.0, 1.0], [1.0, 9.0]])
    found = worst_covariance([1, 1], s, divergence=divergence, radius=0)
    assert found.covariance == pytest.approx(s)
    assert found.tau == pytest.approx(math.sqrt(15.0))
    still = worst_covariance([0, 0], s, divergence=divergence, radius=2)
    assert (still.tau, still.covariance.tolist()) == (0.0, s.tolist())


def test_a_score_without_variance() -> None:
    """Singular covariances: Bures and quadratic add variance, Fisher-Rao and log-det keep the range."""
    s = np.array([[0.01, 0.03], [0.03, 0.09]])  # rank 1, along (1, 3)
    w = [3.0, -1.0]
    for divergence, tau in (
        ("bures", 20.0),
        ("quadratic", math.sqrt(2.0 * 10.0)),
        ("fisher_rao", 0.0),
        ("logdet", 0.0),
    ):
        radius = {"bures": 40.0, "quadratic": 4.0}.get(divergence, 1.0)
        found = worst_covariance(w, s, divergence=divergence, radius=radius)
        assert found.tau == pytest.approx(tau, abs=1e-12)
        assert math.sqrt(max(w @ found.covariance @ w, 0.0)) == pytest.approx(tau, abs=1e-7)


def test_small_radii_are_not_lost_in_rounding() -> None:
    found = worst_covariance([1.0], [[1.0]], divergence="fisher_rao", radius=1e-14)
    assert found.covariance[0, 0] - 1.0 == pytest.approx(1e-14, rel=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": []}, "at least one weight"),
        ({"weights": [1, math.inf]}, r"weights\[1\] is inf"),
        ({"covariance": [[1.0]]}, "covariance of shape 2 by 2"),
        ({"covariance": [[1, 2], [2, 1]]}, "positive semidefinite"),
        ({"divergence": "wasserstein"}, "divergence is 'wasserstein'"),
        ({"radius": -0.1}, "radius is -0.1"),
        ({"radius": math.inf}, "radius is inf"),
        ({"radius": "1"}, "radius is '1'"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"weights": [1, 0], "covariance": [[1, 0], [0, 1]], "divergence": "bures", "radius": 1.0, **change}
    with pytest.raises(CeoptError, match=message):
        worst_covariance(**given)


@pytest.mark.parametrize("radius", [-1e-9, math.inf, math.nan, None, True])
def test_a_radius_that_is_none_is_refused(radius: Any) -> None:
    with pytest.raises(CeoptError, match="logdet_factor needs radius to be a number at least 0"):
        logdet_factor(radius)
