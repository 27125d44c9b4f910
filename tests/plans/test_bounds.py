"""The validity bounds: golden numbers, closed forms, all forms alike, properties, degenerate cases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from ceopt import CeoptError
from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.validity_lower import least_of_score
from ceopt.plans import gelbrich_distance, validity_bounds, validity_value
from ceopt.plans import validity as bounds
from ceopt.plans import validity as forms
from ceopt.plans.validity import directions, lower_bound, lower_bound_of_one, reduced, upper_bound_of_one
from ceopt.solvers import Status
from ceopt.solvers.errors import InvalidValueError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.registry import SOLVERS

FOLDER = Path(__file__).parents[1] / "golden"
LOWER, UPPER, PATHS = (
    json.loads((FOLDER / f"{name}.json").read_text())["instances"]
    for name in ("copa_lower_bound", "copa_upper_bound", "copa_rho_path")
)
ACCURACY = 1e-6  # of the worst form in the worst case below; the default's own is 1e-8


def case(seed: int, d: int, n: int, side: float = 1.0, rank: int | None = None) -> tuple[Any, Any, Any]:
    """Return a plan whose scores at the mean have one sign, and moments."""
    rng = np.random.default_rng(seed)
    mean, factor = rng.normal(size=d), 0.3 * rng.normal(size=(d, d if rank is None else rank))
    plan = rng.normal(size=(n, d))
    plan += np.outer(side * rng.uniform(0.5, 1.5, size=n) - plan @ mean, mean) / (mean @ mean)
    return plan, mean, factor @ factor.T


cases = st.builds(case, st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.sampled_from([1.0, 1.0, -1.0]))
radii = st.sampled_from([0.0, 1e-6, 1e-3, 0.05, 0.2, 0.6])


def both(case: Any, radius: float, **options: Any) -> tuple[float, float]:
    found = validity_bounds(*case, radius, **options)
    assert found.status is Status.OPTIMAL, found.reason
    return found.lower, found.upper


# ---- golden numbers --------------------------------------------------------------------------------------------------
@pytest.mark.long(every=3)
@pytest.mark.parametrize("instance", [pytest.param(i, id=i["id"]) for i in LOWER])
def test_golden_lower_bounds(instance: Any) -> None:
    p, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    names = ["auto", "dual", *(["theorem", "arrow"] if len(p["mu"]) <= 5 else [])]
    for form in names if len(p["mu"]) <= 10 else ["auto"]:
        found = validity_bounds(p["plan"], p["mu"], p["Sigma"], p["rho"], form=form)
        assert found.lower_status is Status.OPTIMAL
        assert found.lower == pytest.approx(expected["value"], abs=tol["value"])
        assert found.weights.shape == (len(p["plan"]),)
        assert found.weights.sum() == pytest.approx(1.0 - found.lower)
        if instance["unique"].get("lam"):
            assert found.weights == pytest.approx(expected["lam"], abs=tol["lam"])


@pytest.mark.long(every=3)
@pytest.mark.parametrize("instance", [pytest.param(i, id=i["id"]) for i in UPPER])
def test_golden_upper_bounds(instance: Any) -> None:
    p, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    names = ["auto", "scalar", *(["theorem", "moment"] if len(p["mu"]) <= 5 else [])]
    for form in names:
        found = validity_bounds(p["plan"], p["mu"], p["Sigma"], p["rho"], form=form)
        assert found.upper_status is Status.OPTIMAL
        assert found.upper == pytest.approx(expected["value"], abs=tol["value"])


@pytest.mark.parametrize("instance", [pytest.param(i, id=i["id"]) for i in PATHS])
def test_golden_paths(instance: Any) -> None:
    p, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    lower = [validity_bounds(p["plan_lower"], p["mu"], p["Sigma"], r).lower for r in p["rhos"]]
    upper = [validity_bounds(p["plan_upper"], p["mu"], p["Sigma"], r).upper for r in p["rhos"]]
    assert lower == pytest.approx(expected["lower"], abs=tol["lower"])
    assert upper == pytest.approx(expected["upper"], abs=tol["upper"])


# ---- one counterfactual ----------------------------------------------------------------------------------------------
def printed(m: float, s: float, r: float) -> float:
    """Return the least probability of a positive score as its closed form is printed."""
    if m <= r:
        return 0.0
    size = m * m + s * s
    return float(((m * np.sqrt(size - r * r) - s * r) / size) ** 2)


@draws(60)
@given(m=st.floats(0.01, 10), s=st.floats(0, 10), share=st.floats(0, 1.5))
def test_the_closed_form_is_the_printed_one_and_the_angles(m: float, s: float, share: float) -> None:
    r = share * m
    least, rest = least_of_score(m, s, r)
    assert least == pytest.approx(printed(m, s, r), abs=1e-12)
    assert least + rest == pytest.approx(1.0, abs=1e-14)
    if m > r:
        angle = np.arctan2(s, m) + np.arcsin(r / np.hypot(m, s))
        assert least == pytest.approx(np.cos(angle) ** 2, abs=1e-12)
        kappa = np.sqrt(least / rest) if rest else np.inf
        assert m == pytest.approx(kappa * s + r * np.sqrt(1 + kappa**2), rel=1e-6) if rest > 1e-12 else True


def test_the_closed_form_keeps_its_digits() -> None:
    assert least_of_score(1.0, 1e-9, 1e-9)[1] == pytest.approx(4e-18, rel=1e-6)
    assert least_of_score(1.0, 0.0, 1.0 - 1e-12)[0] == pytest.approx(2e-12, rel=1e-3)
    assert least_of_score(1e200, 1e200, 0.0)[0] == pytest.approx(0.5)
    assert least_of_score(1e-200, 1e-200, 0.0)[0] == pytest.approx(0.5)


@draws(30)
@given(
    case=st.builds(case, st.integers(0, 10**6), st.integers(1, 4), st.just(1), st.sampled_from([1.0, -1.0])), rho=radii
)
def test_one_counterfactual_agrees_with_every_program(case: Any, rho: float) -> None:
    plan, mean, covariance = case
    given = Moments(mean, covariance)
    low, high = lower_bound_of_one(plan[0], given, rho), upper_bound_of_one(plan[0], given, rho)
    assert both(case, rho) == pytest.approx((low, high), abs=1e-12)
    assert low <= high
    options = {"solver": "auto"}
    printed_too = rho == 0.0 or rho >= 0.05  # the theorem's own forms lose digits between
    if low > 0.0:
        for name in ("auto", *(("arrow", "theorem") if printed_too else ())):
            assert forms.LOWER[name](directions(plan).rows, given, rho, **options).value == pytest.approx(
                low, abs=ACCURACY
            )
    if high < 1.0:
        for name in ("auto", "scalar", *(("moment",) if printed_too else ())):
            assert forms.UPPER[name](directions(plan).rows, given, rho, **options).value == pytest.approx(
                high, abs=ACCURACY
            )


# ---- all forms -------------------------------------------------------------------------------------------------------
@draws(12)
@given(
    case=st.builds(case, st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 3)),
    rho=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_lower_forms_agree(case: Any, rho: float) -> None:
    lower = both(case, rho)[0]
    for form in ("theorem", "arrow", "dual"):
        assert both(case, rho, form=form)[0] == pytest.approx(lower, abs=ACCURACY)


@draws(12)
@given(
    case=st.builds(case, st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 3), st.just(-1.0)),
    rho=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_upper_forms_agree(case: Any, rho: float) -> None:
    upper = both(case, rho)[1]
    for form in ("theorem", "moment", "scalar"):
        assert both(case, rho, form=form)[1] == pytest.approx(upper, abs=ACCURACY)


@pytest.mark.skipif(not SOLVERS["scip"].is_installed, reason="the nonlinear form needs a global solver")
def test_the_nonlinear_form_agrees() -> None:
    given = ([[1.0, 0.0], [1.0, 1.0]], [2.0, 1.0], [[0.5, 0.0], [0.0, 0.5]])
    fixed = validity_bounds(*given, 0.0, form="nonlinear")
    assert fixed.lower_status is Status.OPTIMAL
    assert fixed.lower == pytest.approx(validity_bounds(*given, 0.0).lower, abs=1e-5)
    assert fixed.weights.sum() == pytest.approx(1 - fixed.lower)


@pytest.mark.parametrize(("seed", "d", "rho"), [(29, 4, 0.4), (0, 4, 0.6), (49, 4, 0.6), (25, 3, 0.6)])
def test_the_scalar_form_goes_on_to_the_greatest_kappa(seed: int, d: int, rho: float) -> None:
    """The half-space of kappa 1 has a bound within 1 % of 1, and 2e-4 or more above the optimum; 1 in the last two."""
    given = case(seed, d, 3, -1.0)
    assert both(given, rho, form="scalar")[1] == pytest.approx(both(given, rho)[1], abs=1e-7)


def test_a_form_of_one_bound_takes_the_other_from_the_default() -> None:
    inside, outside = case(1, 3, 2), case(1, 3, 2, -1.0)
    for form in ("moment", "scalar"):
        assert validity_bounds(*inside, 0.1, form=form).lower == validity_bounds(*inside, 0.1).lower
    for form in ("arrow", "dual"):
        assert validity_bounds(*outside, 0.1, form=form).upper == validity_bounds(*outside, 0.1).upper


def test_the_named_form_is_the_one_that_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    original = forms.solve

    def noted(model: Any, **how: Any) -> Any:
        asked.append(
            (model.name, len(next(iter(getattr(model, n) for n in ("z", "u", "q", "w") if hasattr(model, n)))))
        )
        return original(model, **how)

    monkeypatch.setattr(forms, "solve", noted)
    names = {
        "auto": "validity_lower_coupled", "theorem": "validity_lower", "arrow": "validity_lower_arrow",
        "dual": "validity_lower_dual", "moment": "validity_lower_coupled", "scalar": "validity_lower_coupled",
    }  # fmt: skip
    for form, name in names.items():
        asked.clear()
        validity_bounds(*case(1, 4, 2), 0.1, form=form)
        assert asked[0][0] == name
    names = {
        "auto": "validity_upper_coupled", "theorem": "validity_upper", "moment": "validity_upper_moment",
        "scalar": "validity_upper_scalar", "arrow": "validity_upper_coupled", "dual": "validity_upper_coupled",
    }  # fmt: skip
    for form, name in names.items():
        asked.clear()
        validity_bounds(*case(1, 4, 2, -1.0), 0.1, form=form)
        assert {n for n, _ in asked} == {name}


# ---- properties ------------------------------------------------------------------------------------------------------
@draws(40)
@given(case=cases, rho=radii)
def test_between_the_bounds_of_single_counterfactuals(case: Any, rho: float) -> None:
    plan, mean, covariance = case
    lower, upper = both(case, rho)
    singles = [both((plan[[j]], mean, covariance), rho) for j in range(len(plan))]
    assert lower <= min(low for low, _ in singles) + ACCURACY
    assert lower >= 1.0 - sum(1.0 - low for low, _ in singles) - ACCURACY
    assert upper <= min(high for _, high in singles) + ACCURACY
    assert 0.0 <= lower <= upper <= 1.0
    assert upper == 1.0 or lower == 0.0


@draws(25)
@given(case=cases, rho=radii)
def test_a_greater_radius_or_another_counterfactual_widens(case: Any, rho: float) -> None:
    plan, mean, covariance = case
    lower, upper = both(case, rho)
    wider = both(case, rho + 0.05)
    assert wider[0] <= lower + ACCURACY
    assert wider[1] >= upper - ACCURACY
    fewer = both((plan[:-1], mean, covariance), rho) if len(plan) > 1 else (1.0, 1.0)
    assert lower <= fewer[0] + ACCURACY
    assert upper <= fewer[1] + ACCURACY


@draws(20)
@given(case=cases, rho=radii, seed=st.integers(0, 1000), c=st.sampled_from([1e-3, 0.5, 40.0]))
def test_invariances(case: Any, rho: float, seed: int, c: float) -> None:
    plan, mean, covariance = case
    rng = np.random.default_rng(seed)
    wanted = pytest.approx(both(case, rho), abs=ACCURACY)
    order = rng.permutation(len(plan))
    assert both((plan[order], mean, covariance), rho) == wanted
    assert both((plan * rng.uniform(0.01, 100, size=(len(plan), 1)), mean, covariance), rho) == wanted
    assert both((plan, c * mean, c * c * covariance), c * rho) == wanted
    turn = np.linalg.qr(rng.normal(size=(len(mean), len(mean))))[0]
    assert both((plan @ turn.T, turn @ mean, turn @ covariance @ turn.T), rho) == wanted
    fixed = both(case, 0.0)
    bend = rng.normal(size=(len(mean), len(mean))) + 3 * np.eye(len(mean))
    bent = (plan @ np.linalg.inv(bend), bend @ mean, bend @ covariance @ bend.T)
    assert both(bent, 0.0) == pytest.approx(fixed, abs=ACCURACY)


@draws(30)
@given(case=st.builds(case, st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.just(-1.0)))
def test_fixed_moments_agree_with_marshall_and_olkin(case: Any) -> None:
    """The greatest probability is 1 / (1 + k), k the least squared Mahalanobis distance of a valid point."""
    plan, mean, covariance = case
    factor = np.linalg.cholesky(covariance)
    lean, gap = plan @ factor, -plan @ mean  # the nearest xi with lean xi >= gap, by Lawson and Hanson's problem
    y, _ = nnls(np.vstack([lean.T, gap]), np.append(np.zeros(len(mean)), 1.0))
    left = np.append(lean.T @ y, gap @ y - 1.0)
    xi = -left[:-1] / left[-1]
    assert (lean @ xi >= gap - 1e-7).all()
    assert both(case, 0.0)[1] == pytest.approx(1.0 / (1.0 + xi @ xi), abs=1e-7)


@draws(30)
@given(case=st.builds(case, st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4)))
def test_fixed_moments_lie_between_what_the_validity_value_says(case: Any) -> None:
    value = validity_value(*case)
    lower = both(case, 0.0)[0]
    assert lower >= 1.0 - np.linalg.matrix_rank(case[0]) / value**2 - ACCURACY
    assert lower <= value**2 / (1.0 + value**2) + ACCURACY


@draws(25)
@given(case=cases, rho=radii)
def test_worst_moments_lie_in_the_ball_and_have_the_bound(case: Any, rho: float) -> None:
    plan, mean, covariance = case
    found = validity_bounds(*case, rho)
    moved, spread = found.worst
    assert gelbrich_distance(moved, spread, mean, covariance) ** 2 <= rho**2 + 1e-8
    if found.lower > 1e-3:
        assert validity_bounds(plan, moved, spread, 0.0).lower == pytest.approx(found.lower, abs=1e-5)


def test_worst_moments_of_a_singular_covariance() -> None:
    plan, mean, covariance = case(5, 6, 3, rank=2)
    found = validity_bounds(plan, mean, covariance, 0.1)
    moved, spread = found.worst
    assert gelbrich_distance(moved, spread, mean, covariance) == pytest.approx(0.1, abs=1e-5)
    assert validity_bounds(plan, moved, spread, 0.0).lower == pytest.approx(found.lower, abs=1e-5)


def test_the_reduction_solves_no_more_dimensions_than_the_plan_has() -> None:
    plan, mean, covariance = case(2, 12, 3)
    seen = reduced(directions(np.vstack([plan, plan.sum(axis=0)])).rows, Moments(mean, covariance), 0.1)
    assert seen.basis.shape == (3, 12)
    assert seen.basis @ seen.basis.T == pytest.approx(np.eye(3), abs=1e-12)
    assert (seen.moments.mean @ seen.moments.mean + np.trace(seen.moments.covariance)) == pytest.approx(1.0)


# ---- degenerate cases ------------------------------------------------------------------------------------------------
@pytest.fixture
def without_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: Any, **_options: Any) -> Any:
        raise AssertionError("A solver was asked.")

    monkeypatch.setattr(forms, "solve", refused)


I2 = np.eye(2)


@pytest.mark.usefixtures("without_solver")
@pytest.mark.parametrize("form", bounds._FORMS)
@pytest.mark.parametrize(
    ("plan", "mean", "covariance", "radius", "expected"),
    [
        (I2, [1, -1], I2, 0.0, (0.0, None)),  # outside: the upper bound is another matter
        (I2, [1, 0], I2, 0.1, (0.0, 1.0)),  # on the boundary
        (I2, [0, 0], I2, 0.1, (0.0, 1.0)),
        (I2, [3, 0.1], I2, 0.1, (0.0, 1.0)),  # within the radius of it
        ([[0.1, 0.2, -0.3]], [1, 1, 1], np.eye(3), 0.0, (0.0, 1.0)),  # on it but for rounding
        ([[0, 0], [1, 0]], [3, 1], I2, 0.0, (0.0, 1.0)),  # never strictly favourable
        ([[0, 0], [1, 0]], [-3, 1], I2, 0.0, (0.0, 0.1)),
        ([[0, 0]], [-3, 1], I2, 0.5, (0.0, 1.0)),
        ([[1, 0], [2, 0], [5, 0]], [3, 1], I2, 0.0, (0.9, 1.0)),  # one direction
        ([[1, 0], [-1, 0]], [0, 1], I2, 0.0, (0.0, 1.0)),  # opposed, and the mean on both
        (I2, [1, 2], np.zeros((2, 2)), 0.0, (1.0, 1.0)),
        (I2, [1, -2], np.zeros((2, 2)), 0.0, (0.0, 0.0)),
        (I2, [1, 0], np.zeros((2, 2)), 0.0, (0.0, 1.0)),
        ([[2, 0]], [3, 1], np.zeros((2, 2)), 1.0, (1 - 1 / 9, 1.0)),  # 1 - r^2 / m^2
        ([[2, 0]], [-3, 1], np.zeros((2, 2)), 1.0, (0.0, 1 / 9)),
        (I2, [3, 1], np.diag([1, 0]), 0.0, (0.9, 1.0)),  # the second is certain
        (I2, [3, -1], np.diag([1, 0]), 0.0, (0.0, 0.0)),  # and certain to fail
        (I2, [-3, 1], np.diag([1, 0]), 0.0, (0.0, 0.1)),
        (I2, [-0.05, -0.05], I2, 0.1, (0.0, 1.0)),  # the radius reaches a valid mean
    ],
)
def test_degenerate_cases_are_exact_without_a_solver(
    plan: Any, mean: Any, covariance: Any, radius: float, expected: Any, form: Any
) -> None:
    if expected[1] is None:
        plan, expected = plan[:1] * -1, (0.0, 0.5)
    found = validity_bounds(plan, mean, covariance, radius, form=form)
    assert (found.lower, found.upper) == pytest.approx(expected, abs=1e-15)
    assert (found.status, found.lower_status, found.upper_status) == ("optimal",) * 3
    assert found.weights.sum() == pytest.approx(1.0 - found.lower)
    assert (found.weights >= 0).all()
    assert gelbrich_distance(*found.worst, mean, covariance) <= radius + 1e-12


def test_degenerate_cases_that_are_solved() -> None:
    opposed = [[1, 0], [-1, 0]]
    assert both((opposed, [1, 1], I2), 0.0) == (0.0, pytest.approx(0.5, abs=1e-6))
    assert both((opposed, [1, 1], I2), 0.0, form="scalar") == (0.0, pytest.approx(0.5, abs=1e-7))
    assert both((I2, [1, 1], [[1, -1], [-1, 1]]), 0.0) == (pytest.approx(0.0, abs=1e-6), 1.0)  # 0 with the mean inside
    assert both((I2, [1, 2], np.zeros((2, 2))), 0.5)[0] == pytest.approx(
        both((I2, [1, 2], 1e-14 * I2), 0.5)[0], abs=1e-6
    )
    far = np.array([-3.0, -4.0])  # of a certain mean only the distance counts: (radius / distance)^2
    assert both((I2, far, np.zeros((2, 2))), 1.0) == (0.0, pytest.approx(1 / 25, abs=1e-7))


def test_repeats_change_nothing_but_the_weights() -> None:
    plan, mean, covariance = case(3, 4, 3)
    once, twice = (
        validity_bounds(plan, mean, covariance, 0.1),
        validity_bounds(np.vstack([plan, 3 * plan[:2]]), mean, covariance, 0.1),
    )
    assert twice.lower == pytest.approx(once.lower, abs=1e-12)
    assert twice.weights == pytest.approx([*once.weights, 0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("rho", [0.0, 0.1])
def test_the_weight_of_a_direction_is_that_of_its_first_counterfactual(rho: float) -> None:
    plan, mean, covariance = case(3, 4, 3)
    once = validity_bounds(plan, mean, covariance, rho).weights
    twice = validity_bounds(np.vstack([plan[0], 2 * plan[0], plan[1], 3 * plan[0], plan[2]]), mean, covariance, rho)
    assert once.min() > 0.01
    assert twice.weights == pytest.approx([once[0], 0.0, once[1], 0.0, once[2]], abs=1e-6)


def test_a_certain_counterfactual_has_no_weight() -> None:
    plan, mean = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [2.0, 1.0, 3.0]  # only the first never varies
    found = validity_bounds(plan, mean, np.diag([1.0, 0.0, 1.0]), 0.0)
    rest = validity_bounds(plan[1:], mean, np.diag([1.0, 0.0, 1.0]), 0.0)
    assert rest.weights.min() > 0.01
    assert found.weights == pytest.approx([0.0, *rest.weights], abs=1e-9)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("rho", [0.0, 0.2])
def test_singular_covariances_by_every_form(rank: int, rho: float) -> None:
    inside, outside = case(4, 3, 2, rank=rank), case(4, 3, 2, -1.0, rank=rank)
    lower, upper = both(inside, rho)[0], both(outside, rho)[1]
    nudged = validity_bounds(*inside[:2], inside[2] + 1e-12 * np.eye(3), rho).lower
    assert lower == pytest.approx(nudged, abs=1e-5)
    for form in ("theorem", "arrow", "dual"):
        assert both(inside, rho, form=form)[0] == pytest.approx(lower, abs=ACCURACY)
    for form in ("theorem", "moment", "scalar"):
        assert both(outside, rho, form=form)[1] == pytest.approx(upper, abs=ACCURACY)


@pytest.mark.parametrize("rho", [1e-8, 1e-6, 1e-4])
def test_tiny_radii_keep_their_digits(rho: float) -> None:
    """The bounds are near those of radius 0, to first order; and the scalar form has no such trouble."""
    inside, outside = case(6, 5, 3), case(6, 5, 3, -1.0)
    assert 0.0 <= both(inside, 0.0)[0] - both(inside, rho)[0] <= 10 * rho + 1e-8
    assert both(outside, rho)[1] == pytest.approx(both(outside, rho, form="scalar")[1], abs=1e-7)


# ---- calls -----------------------------------------------------------------------------------------------------------
def test_the_result_is_frozen_and_says_what_was_asked() -> None:
    found = validity_bounds(*case(1, 3, 2), 0.1, form="dual")
    assert found.form == "dual"
    assert found.reason == ""
    with pytest.raises(AttributeError):
        found.lower = 1.0
    outside = validity_bounds([[1.0], [2.0]], [-1.0], [[1.0]], 0.0)
    assert outside.reason == "Counterfactual 0 is not favourable at the mean."


def test_a_solver_that_ends_early_leaves_a_bound_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    original = forms.solve
    monkeypatch.setattr(forms, "solve", lambda model, **how: original(model, **how, options={"max_iter": 6}))
    for side, name in ((1.0, "lower"), (-1.0, "upper")):
        given = case(7, 4, 3, side)
        found = validity_bounds(*given, 0.1)
        monkeypatch.undo()
        exact = validity_bounds(*given, 0.1)
        monkeypatch.setattr(forms, "solve", lambda model, **how: original(model, **how, options={"max_iter": 6}))
        assert found.status is not Status.OPTIMAL
        assert "The bound is the trivial one" in found.reason
        assert found.lower <= exact.lower + 1e-9
        assert found.upper >= exact.upper - 1e-9
        assert name in {"lower", "upper"}


def test_the_weights_add_up_to_what_is_proved() -> None:
    """A solver that ends early proves less than the distribution that it found leaves."""
    plan, mean, covariance = case(7, 4, 3)

    def half(*asked: Any) -> Any:
        solved = forms.lower_auto(*asked, solver="auto")
        return replace(solved, value=solved.value / 2, status=Status.FEASIBLE)

    exact, side = validity_bounds(plan, mean, covariance, 0.1), lower_bound(plan, Moments(mean, covariance), 0.1, half)
    assert side.value == exact.lower / 2 > 0.01
    assert side.weights == pytest.approx(exact.weights * (1.0 - side.value) / (1.0 - exact.lower), abs=1e-12)


@pytest.mark.parametrize("solver", [name for name, data in SOLVERS.items() if data.is_installed and data.is_licensed])
def test_every_solver_answers_or_says_who_could(solver: str) -> None:
    inside, outside = case(1, 3, 2), case(1, 3, 2, -1.0)
    if "SDP" in SOLVERS[solver].supports:
        assert validity_bounds(*inside, 0.1, solver=solver).lower == pytest.approx(both(inside, 0.1)[0], abs=1e-4)
    else:
        with pytest.raises(UnsupportedProblemError, match="clarabel"):
            validity_bounds(*inside, 0.1, solver=solver)
    if "SOCP" in SOLVERS[solver].classes:
        assert validity_bounds(*outside, 0.1, solver=solver).upper == pytest.approx(both(outside, 0.1)[1], abs=1e-4)


@pytest.mark.parametrize(
    ("change", "message", "kind"),
    [
        ({"plan": [[1, 0, 0]]}, "plan of shape n by 2", InvalidValueError),
        ({"plan": np.zeros((0, 2))}, "plan has no rows", InvalidValueError),
        ({"plan": [[1, np.nan]]}, r"plan\[0, 1\] is nan", InvalidValueError),
        ({"plan": [[1, np.inf]]}, r"plan\[0, 1\] is inf", InvalidValueError),
        ({"mean": [1, 2, 3]}, "covariance of shape 3 by 3", InvalidValueError),
        ({"mean": [1, np.nan]}, r"mean\[1\] is nan", InvalidValueError),
        ({"covariance": [[1, 0.5], [0, 1]]}, "a symmetric covariance", InvalidValueError),
        ({"covariance": [[1, 2], [2, 1]]}, "the least eigenvalue of covariance is -1", InvalidValueError),
        ({"covariance": [1, 1]}, "covariance of shape 2 by 2", InvalidValueError),
        ({"radius": -0.1}, "radius to be a number at least 0 and finite, but radius is -0.1", InvalidValueError),
        ({"radius": np.nan}, "radius is nan", InvalidValueError),
        ({"radius": np.inf}, "radius is inf", InvalidValueError),
        ({"plan": [[1, 1j]]}, "numbers as plan", InvalidValueError),
        ({"plan": [["1", "0.1"]]}, "numbers as plan", InvalidValueError),
        ({"plan": np.array([["2026-01-01", "2026-01-02"]], dtype="M8[D]")}, "numbers as plan", InvalidValueError),
        ({"plan": pd.DataFrame({"age": [1.0], "job": ["clerk"]})}, "its column 'job' has type", InvalidValueError),
        ({"plan": [1.0, 2.0]}, "Give one counterfactual a row: .*for one", InvalidValueError),
        ({"plan": [[1.0]]}, "one of ones for the intercept", InvalidValueError),
        ({"radius": "0.1"}, "radius is '0.1'", InvalidValueError),
        ({"form": "arow"}, "Did you mean 'arrow'", UnknownNameError),
        ({"solver": "clarbel"}, "Did you mean 'clarabel'", UnknownNameError),
    ],
)
def test_bad_input_is_refused(change: Any, message: str, kind: type[CeoptError]) -> None:
    arguments = {"plan": I2, "mean": [1, 2], "covariance": I2, "radius": 0.1} | change
    with pytest.raises(kind, match=message):
        validity_bounds(**arguments)


def test_columns_of_very_different_scale_are_no_singular_covariance() -> None:
    """Parameters of raw income are ten million times smaller than an intercept: eigenvalues below 1e-12 are theirs."""
    plan, mean, covariance = np.array([[1.0, 0.3], [0.2, 1.0]]), np.ones(2), np.array([[0.3, 0.1], [0.1, 0.4]])
    plain = validity_bounds(plan, mean, covariance, 0.0).lower
    units = np.array([1.0, 1e7])
    scaled = validity_bounds(plan * units, mean / units, covariance / np.outer(units, units), 0.0)
    assert scaled.lower == pytest.approx(plain, abs=1e-6)


# ---- past bugs -------------------------------------------------------------------------------------------------------
@draws(40)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4), st.sampled_from([1.0, 1e-3, 1e4]))
def test_a_covariance_that_the_plan_does_not_see_is_none(seed: int, d: int, n: int, scale: float) -> None:
    """Rows at right angles to its factor: what rounding leaves of the covariance was refused as indefinite."""
    rng = np.random.default_rng(seed)
    factor, mean = scale * rng.normal(size=(d, 1)), scale * rng.normal(size=d)
    plan = rng.normal(size=(n, d))
    plan -= np.outer(plan @ factor / (factor[:, 0] @ factor[:, 0]), factor)
    plan *= np.sign(plan @ mean)[:, None]
    rho = 0.2 * float((plan @ mean / np.linalg.norm(plan, axis=1)).min())
    found = validity_bounds(plan, mean, factor @ factor.T, rho)
    assert found.status is Status.OPTIMAL
    assert found.lower == pytest.approx(validity_bounds(plan, mean, np.zeros((d, d)), rho).lower, abs=1e-6)


def test_what_was_given_may_change_afterwards() -> None:
    plan, mean, covariance = case(3, 3, 2)
    found = validity_bounds(plan, mean, covariance, 0.1)
    worst = found.worst
    for given_array in (plan, mean, covariance):
        given_array[...] = 0.0
    assert all((one == other).all() for one, other in zip(found.worst, worst, strict=True))
    with pytest.raises(ValueError, match="read-only"):
        found.weights[0] = 1.0


def test_a_solver_that_stops_proves_nothing_by_its_dual_value() -> None:
    """The theorem's upper bound was 3e-5 below the probability of a distribution, "what it proved"."""
    given = [[1.0], [2.0], [-1.0]], [3.762269100161706], [[4.0]]
    found, exact = validity_bounds(*given, 0.001, form="theorem"), validity_bounds(*given, 0.001)
    assert found.upper >= exact.upper - 1e-9


@pytest.mark.skipif(not SOLVERS["scip"].is_installed, reason="SCIP is not installed.")
def test_a_time_limit_ends_the_nonlinear_form() -> None:
    found = validity_bounds(*case(1, 3, 2), 0.1, form="nonlinear", time_limit_s=1.0)
    exact = validity_bounds(*case(1, 3, 2), 0.1)
    assert found.lower <= exact.lower + 1e-6
    assert found.upper == exact.upper
    with pytest.raises(CeoptError, match="time_limit_s is 0"):
        validity_bounds(*case(1, 3, 2), 0.1, time_limit_s=0)


def test_a_print_has_a_line_a_number() -> None:
    found = validity_bounds([[1, 0], [1, 1]], mean=[2, 1], covariance=[[0.5, 0], [0, 0.5]], radius=0.1)
    assert str(found).splitlines() == [
        "ValidityBounds",
        "lower         0.7867",
        "upper         1",
        "lower_status  optimal",
        "upper_status  optimal",
        "weights       [0.1163 0.0969]",
        "form          auto",
    ]
    assert "lower=0.786720" in repr(found)
