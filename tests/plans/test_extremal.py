"""Extremal distributions: their moments, their probabilities, and Monte Carlo beside Gaussians drawn from the ball."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from ceopt import CeoptError
from ceopt.plans import extremal_distribution, gelbrich_distance, validity_bounds

DRAWS = 4000


def case(seed: int, d: int, n: int, side: float = 1.0, rank: int | None = None) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    mean, factor = rng.normal(size=d), 0.4 * rng.normal(size=(d, d if rank is None else min(rank, d)))
    plan = rng.normal(size=(n, d))
    plan += np.outer(side * rng.uniform(0.5, 1.5, size=n) - plan @ mean, mean) / (mean @ mean)
    return plan, mean, factor @ factor.T


cases = st.builds(
    case,
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([1.0, -1.0]),
    st.sampled_from([None, None, 1, 2]),
)
radii = st.sampled_from([0.0, 1e-3, 0.05, 0.3])
SIDES = ("lower", "upper")


def probability(found: Any, plan: Any, bound: str) -> tuple[float, float]:
    """Return the least and the greatest probability that the atoms leave possible, whatever the Gaussian does."""
    scores = found.atoms @ plan.T
    valid = (scores > 0).all(axis=1) if bound == "lower" else (scores >= -1e-9).all(axis=1)
    return float(found.weights[valid].sum()), float(found.weights[valid].sum() + found.rest_weight)


@pytest.mark.long
@draws(50)
@given(case=cases, rho=radii, bound=st.sampled_from(SIDES))
@example(case=(np.eye(2), np.array([1.0, 0.0]), np.eye(2)), rho=0.1, bound="lower")  # only approached
@example(case=(np.eye(2), np.array([1.0, 0.0]), np.eye(2)), rho=0.1, bound="upper")
@example(case=(np.eye(2), np.ones(2), np.array([[1.0, -1.0], [-1.0, 1.0]])), rho=0.0, bound="lower")
@example(case=(np.eye(2), np.array([1.0, 2.0]), np.zeros((2, 2))), rho=0.0, bound="lower")
@example(case=(np.eye(2), np.array([-3.0, -4.0]), np.zeros((2, 2))), rho=1.0, bound="upper")
@example(case=(np.array([[0.0, 0.0], [1.0, 0.0]]), np.ones(2), np.eye(2)), rho=0.2, bound="lower")
def test_it_lies_in_the_ball_and_attains_the_bound(case: Any, rho: float, bound: str) -> None:
    plan, mean, covariance = case
    found = extremal_distribution(*case, rho, bound=bound)
    assert found.status == "optimal"
    assert found.bound == getattr(validity_bounds(*case, rho), bound)
    assert found.weights.sum() + found.rest_weight == pytest.approx(1.0, abs=1e-12)
    assert (found.weights >= 0).all()
    assert np.linalg.eigvalsh(found.rest_covariance)[0] >= -1e-9 * max(1.0, np.abs(found.rest_covariance).max())
    assert gelbrich_distance(found.mean, found.covariance, mean, covariance) ** 2 <= rho**2 + 1e-7
    least, most = probability(found, plan, bound)
    if bound == "lower":
        assert most == pytest.approx(found.bound, abs=1e-7)  # not more, and less is impossible in the ball
    else:
        assert least == pytest.approx(found.bound, abs=1e-7)


@pytest.mark.long(every=4)
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("rho", [0.0, 0.1])
def test_frequencies_stay_within_the_bounds(side: float, rho: float) -> None:
    rng = np.random.default_rng(8)
    for seed in range(6):
        plan, mean, covariance = given = case(seed, int(rng.integers(2, 12)), int(rng.integers(1, 5)), side)
        bounds = validity_bounds(*given, rho)
        samples = [gaussian(rng, mean, covariance, rho) for _ in range(3)]
        for name in SIDES:
            found = extremal_distribution(*given, rho, bound=name)
            samples.append(found.sample(DRAWS, random_state=seed))
            reached = (samples[-1] @ plan.T >= (-1e-9 if name == "upper" else 1e-13)).all(axis=1).mean()
            error = np.sqrt(max(found.bound * (1 - found.bound), 1 / DRAWS) / DRAWS)
            assert abs(reached - found.bound) <= 4 * error
        for theta in samples:
            scores = theta @ plan.T
            for bound, frequency, sign in (
                (bounds.lower, (scores >= -1e-9).all(axis=1).mean(), 1.0),
                (bounds.upper, (scores > 1e-9).all(axis=1).mean(), -1.0),
            ):
                error = np.sqrt(max(bound * (1 - bound), 1 / DRAWS) / DRAWS)
                assert sign * (bound - frequency) <= 3 * error


def gaussian(rng: Any, mean: Any, covariance: Any, rho: float) -> Any:
    """Return draws of a Gaussian whose moments lie in the ball: mean + shift, A S A."""
    d = len(mean)
    shift, bent = rng.normal(size=d), rng.normal(size=(d, d))
    bent = bent + bent.T
    split = rng.uniform()
    shift *= rho * np.sqrt(split) / np.linalg.norm(shift)
    bent *= rho * np.sqrt((1 - split) / np.trace(bent @ covariance @ bent))
    bent *= min(1.0, 1.0 / max(-np.linalg.eigvalsh(bent)[0], 1e-12))
    turned = np.eye(d) + bent
    assert gelbrich_distance(mean + shift, turned @ covariance @ turned, mean, covariance) <= rho + 1e-7
    return mean + shift + rng.normal(size=(DRAWS, d)) @ (turned @ np.linalg.cholesky(covariance)).T


def test_a_sample_has_the_moments_and_repeats() -> None:
    found = extremal_distribution(*case(1, 4, 3), 0.1)
    sample = found.sample(200_000, random_state=3)
    assert sample.mean(axis=0) == pytest.approx(found.mean, abs=0.02)
    assert np.cov(sample.T) == pytest.approx(found.covariance, abs=0.03)
    assert np.array_equal(found.sample(200_000, random_state=3), sample)
    assert not np.array_equal(found.sample(50, random_state=4), found.sample(50, random_state=3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": "middle"}, "bound is 'middle'"),
        ({"solver": "none"}, "solver is 'none'"),
        ({"radius": -1}, "radius is -1"),
        ({"plan": np.zeros((0, 4))}, "no rows"),
    ],
)
def test_bad_input_is_refused(options: Any, message: str) -> None:
    plan, mean, covariance = case(1, 4, 3)
    arguments = {"plan": plan, "mean": mean, "covariance": covariance, "radius": 0.1} | options
    with pytest.raises(CeoptError, match=message):
        extremal_distribution(**arguments)


def test_a_sample_has_at_least_one_draw() -> None:
    with pytest.raises(CeoptError, match="n is 0"):
        extremal_distribution(*case(1, 4, 3), 0.1).sample(0)


def singular(seed: int) -> tuple[Any, Any, Any]:
    """A covariance without full rank, in small whole numbers every other time, so that rows are opposed or on edges."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    n, rank, whole = int(rng.integers(1, 4)), int(rng.integers(0, d)), bool(seed % 2)

    def numbers(*shape: int) -> Any:
        return rng.integers(-2, 3, size=shape).astype(float) if whole else rng.normal(size=shape)

    plan, mean, factor = numbers(n, d), numbers(d), numbers(d, rank)
    return plan, mean, factor @ factor.T


@pytest.mark.long(every=2)
@pytest.mark.parametrize("bound", SIDES)
def test_a_singular_covariance_at_radius_0_has_a_distribution_too(bound: str) -> None:
    n_zero = 0
    for seed in range(200):
        plan, mean, covariance = singular(seed)
        found = extremal_distribution(plan, mean, covariance, 0.0, bound=bound)
        assert found.bound == getattr(validity_bounds(plan, mean, covariance, 0.0), bound)
        assert gelbrich_distance(found.mean, found.covariance, mean, covariance) ** 2 <= 1e-7
        assert len(found.atoms) or found.reason
        least, most = probability(found, plan, bound)
        assert (most if bound == "lower" else least) == pytest.approx(found.bound, abs=1e-7)
        n_zero += found.bound == 0.0
        if bound == "upper":
            assert found.bound == pytest.approx(exact_upper(plan, mean, covariance), abs=1e-7)
            assert found.bound == 0.0 or found.bound > 1e-9
    assert n_zero > 20


def exact_upper(plan: Any, mean: Any, covariance: Any) -> float:
    """Return 1 / (1 + z^2) for the nearest z in standard deviations with favourable scores, by another algorithm."""
    values, vectors = np.linalg.eigh(covariance)
    factor = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, values > 1e-10]
    scores, slopes = plan @ mean, plan @ factor
    slopes[np.abs(slopes) < 1e-12] = 0.0
    bounds = [(None, None)] * slopes.shape[1]
    there = linprog(np.zeros(slopes.shape[1]), A_ub=-slopes, b_ub=scores + 1e-12, bounds=bounds) if bounds else None
    if (scores >= -1e-12).all():
        return 1.0
    if there is None or there.status == 2:
        return 0.0
    rows = {"type": "ineq", "fun": lambda z: scores + slopes @ z, "jac": lambda _z: slopes}
    found = minimize(lambda z: z @ z, there.x, jac=lambda z: 2 * z, constraints=[rows], method="SLSQP", tol=1e-14)
    return 1.0 / (1.0 + float(found.fun))


def test_opposed_counterfactuals_that_no_parameters_serve_have_the_bound_0() -> None:
    """Each may be favourable, for its score varies, but never both: their sum is -1 whatever the parameters."""
    plan, mean = np.array([[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]]), np.array([0.0, 1.0, -0.5])
    covariance = np.diag([1.0, 1.0, 0.0])
    for form in ("auto", "theorem", "moment", "scalar"):
        found = validity_bounds(plan, mean, covariance, 0.0, form=form)
        assert found.upper == 0.0
        assert "No parameters" in found.reason
    assert extremal_distribution(plan, mean, covariance, 0.0, bound="upper").reason == (
        "No parameters that these moments allow make all counterfactuals favourable."
    )


def test_a_bound_too_faint_for_an_atom_says_so() -> None:
    """A score 1e5 standard deviations below 0: the bound is 1e-10, and no atom stands for it."""
    found = extremal_distribution([[1.0]], [-1.0], [[1e-10]], 0.0, bound="upper")
    assert found.bound == pytest.approx(1e-10)
    assert len(found.atoms) or "No atom has a mass" in found.reason
