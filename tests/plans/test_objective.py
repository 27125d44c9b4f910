"""The COPA objective: published values, its conventions, and its slopes against differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from published import instances

from ceopt import CeoptError
from ceopt.formulations.programs.moments import require_moments
from ceopt.formulations.programs.parts import require_distance
from ceopt.plans import copa_objective, validity_value
from ceopt.plans.copa_space import Terms

EYE = np.eye(2)


@pytest.mark.parametrize("instance", instances("copa_objective", "l1", "l2"))
def test_published_values(instance: Any) -> None:
    given_, expected = instance["inputs"], instance["expected"]
    found = copa_objective(
        given_["x0"],
        given_["plan"],
        given_["mu"],
        given_["Sigma"],
        validity_weight=given_["lambda1"],
        diversity_weight=given_["lambda2"],
        cost=given_["cost"],
    )
    assert found.status == "optimal"
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, abs=instance["tol"][name], rel=0)


def objective(plan: Any, mean: Any, covariance: Any, **changed: Any) -> Any:
    weights = {"validity_weight": 1.0, "diversity_weight": 1.0} | changed
    return copa_objective([-1, 0], plan, mean, covariance, **weights)


def test_one_counterfactual_has_diversity_one_and_two_equal_ones_none() -> None:
    assert objective([[1, 0]], [1, 0], EYE).diversity == 1.0
    assert objective([[1, 0], [1, 0]], [1, 0], EYE).diversity == pytest.approx(0.0, abs=1e-12)


def test_a_matrix_is_a_cost() -> None:
    """With M = 4 I each distance is twice that of "l2"."""
    twice = objective([[1, 0], [1, 2]], [1, 0], EYE, cost=4 * EYE)
    once = objective([[1, 0], [1, 2]], [1, 0], EYE)
    assert twice.proximity == pytest.approx(2 * once.proximity)
    assert (once.diversity, twice.diversity) == (pytest.approx(1 - 1 / 9), pytest.approx(1 - 1 / 25))


def test_linf_may_have_a_negative_determinant() -> None:
    """Ten points, 2 apart within two fives and 1 across: the kernel has the eigenvalue 1 + 4/3 - 5/2."""
    own = np.kron(np.eye(2), np.ones((5, 5)))
    distances = np.where(np.eye(10) > 0, 0.0, np.where(own > 0, 2.0, 1.0))
    found = copa_objective(
        np.zeros(10), distances, np.ones(10), np.eye(10), validity_weight=0, diversity_weight=1, cost="linf"
    )
    assert found.diversity == pytest.approx((2 / 3) ** 8 * (1 + 4 / 3 + 5 / 2) * (1 + 4 / 3 - 5 / 2))


def test_a_plan_that_the_mean_rejects_has_no_value() -> None:
    found = objective([[1, 0], [-1, 0]], [1, 0], EYE)
    assert found.status == "infeasible"
    assert math.isnan(found.objective)
    assert math.isnan(found.validity)
    assert (found.proximity, found.diversity) == (1.0, pytest.approx(1 - 1 / 9))
    assert "counterfactual 1" in found.reason


def test_no_variance_is_an_infinite_value() -> None:
    found = objective([[1, 0]], [1, 0], np.zeros((2, 2)))
    assert (found.validity, found.objective) == (math.inf, -math.inf)
    assert objective([[1, 0]], [1, 0], np.zeros((2, 2)), validity_weight=0.0).objective == 1.0
    # the row without variance is inactive beside another
    assert objective([[1, 0], [1, 1]], [1, 0], np.diag([0.0, 1.0])).validity == 1.0


COSTS = st.sampled_from(["l1", "l2", "linf", "matrix"])


def problem(seed: int, n: int, d: int, cost: str) -> tuple[Terms, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    matrix = root @ root.T + np.eye(d) if cost == "matrix" else cost
    moments = require_moments("test", rng.normal(size=d), root.T @ root / d + 0.1 * np.eye(d))
    terms = Terms(rng.normal(size=d), moments, require_distance("test", matrix, d), 0.7, 1.3)
    return terms, rng.normal(size=(2, n, d))


@draws(40)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), d=st.integers(1, 4), cost=COSTS, mapped=st.booleans())
def test_slopes_are_those_of_differences(seed: int, n: int, d: int, cost: str, mapped: bool) -> None:
    terms, plans = problem(seed, n, d, cost)
    if mapped:
        curve = (lambda x: x + 0.1 * x**2, lambda x: np.diag(1 + 0.2 * x))
        terms = Terms(terms.factual, terms.moments, terms.distance, 0.7, 1.3, curve)
    ratios = np.sort(terms.ratios(plans), axis=-1)
    if n > 1 and (ratios[:, 1] - ratios[:, 0]).min() < 1e-3:
        return  # a tie has no gradient
    if (terms.cap - ratios.max()) < 1e-3 and not mapped:
        return  # the ratio is at most the cap, and has a kink there
    slope, h = terms.slope(plans), 1e-6
    kernels = np.abs(plans[:, :, None] - plans[:, None]) + np.eye(n)[None, :, :, None]
    if cost in {"l1", "linf"} and min(kernels.min(), np.abs(plans - terms.factual).min()) < 1e-3:
        return
    if mapped:
        value = lambda p: (  # noqa: E731 - the value without the cap, which a map may pass
            terms.proximity(p) - 0.7 * terms.ratios(p).min(axis=-1) - 1.3 * terms.diversity(p)
        )
    else:
        value = terms.value
    for j in range(n):
        for k in range(d):
            step = np.zeros_like(plans)
            step[:, j, k] = h
            difference = (value(plans + step) - value(plans - step)) / (2 * h)
            if cost == "linf" and np.abs(difference - slope[:, j, k]).max() > 1e-3:
                return  # two columns attain the greatest difference
            assert slope[:, j, k] == pytest.approx(difference, abs=2e-4, rel=2e-4)


@given(seed=st.integers(0, 10**6))
def test_the_softened_slope_is_that_of_the_soft_minimum(seed: int) -> None:
    terms, plans = problem(seed, 3, 2, "l2")
    tau, h = 0.3, 1e-6

    def value(p: np.ndarray) -> np.ndarray:
        soft = -tau * np.log(np.exp(-terms.ratios(p) / tau).sum(axis=-1))
        return terms.proximity(p) - 0.7 * soft - 1.3 * terms.diversity(p)

    for j in range(3):
        step = np.zeros_like(plans)
        step[:, j, 0] = h
        difference = (value(plans + step) - value(plans - step)) / (2 * h)
        assert terms.slope(plans, tau)[:, j, 0] == pytest.approx(difference, abs=2e-4, rel=2e-4)


def test_coincident_counterfactuals_have_no_slope_of_diversity() -> None:
    """A collapsed plan of three is a stationary point of the diversity, and the slope there is a number."""
    terms, _ = problem(0, 3, 2, "l2")
    only = Terms(terms.factual, terms.moments, terms.distance, 0.0, 1.0)
    plan = np.ones((3, 2))
    rest = Terms(terms.factual, terms.moments, terms.distance, 0.0, 0.0)
    assert only.slope(plan) == pytest.approx(rest.slope(plan))


@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), d=st.integers(1, 4))
def test_the_validity_is_the_validity_value(seed: int, n: int, d: int) -> None:
    terms, plans = problem(seed, n, d, "l2")
    moments = terms.moments
    found = copa_objective(
        terms.factual, plans[0], moments.mean, moments.covariance, validity_weight=1, diversity_weight=1
    )
    value = validity_value(plans[0], moments.mean, moments.covariance)
    assert found.validity == pytest.approx(value, nan_ok=True)
    assert terms.ratios(plans[0]).min() <= terms.cap + 1e-9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"validity_weight": -1}, "validity_weight to be a number at least 0"),
        ({"diversity_weight": math.nan}, "diversity_weight is nan"),
        ({"cost": "l3"}, "cost is 'l3'"),
        ({"cost": [[1, 0], [0, -1]]}, "positive definite matrix as cost"),
        ({"cost": [[1, 1], [0, 1]]}, "differs from its transpose"),
    ],
)
def test_what_is_no_objective_is_refused(changed: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        objective([[1, 0]], [1, 0], EYE, **changed)


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(CeoptError, match="plan has no rows"):
        objective(np.zeros((0, 2)), [1, 0], EYE)
    with pytest.raises(CeoptError, match=r"plan\[0, 1\] is nan"):
        objective([[1, math.nan]], [1, 0], EYE)
    with pytest.raises(CeoptError, match="symmetric"):
        objective([[1, 0]], [1, 0], [[1, 1], [0, 1]])
