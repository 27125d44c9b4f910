"""The minimax probability machine: golden families, scikit-learn checks, closed forms, degenerate and bad input."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from ceopt import CeoptError
from ceopt.surrogates import BoundarySampler, MinimaxProbabilityMachine, worst_covariance
from ceopt.surrogates import minimax as exact
from ceopt.surrogates.minimax import LeastNormSum

GOLDEN = Path(__file__).parents[2] / "golden"
CLASSIFIERS = json.loads((GOLDEN / "mpm_classifier.json").read_text())["instances"]
LIMITS = json.loads((GOLDEN / "mpm_limit.json").read_text())["instances"]
DIVERGENCES = ("nominal", "quadratic", "bures", "fisher_rao", "logdet")
EYE = np.eye(2)


def machine(inputs: Any, radius: tuple[float, float], solver: str | None = None) -> MinimaxProbabilityMachine:
    fitted = MinimaxProbabilityMachine(inputs["divergence"], radius, solver=solver)
    return fitted.fit_moments(inputs["mu_neg"], inputs["Sigma_neg"], inputs["mu_pos"], inputs["Sigma_pos"])


def moments(rng: Any, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    neg, pos = (rng.normal(size=(d, d + 2)) for _ in range(2))
    return rng.normal(size=d), neg @ neg.T / d, rng.normal(size=d), pos @ pos.T / d


# ---- golden ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", [None, "clarabel"])
@pytest.mark.parametrize("instance", CLASSIFIERS, ids=lambda i: i["id"])
def test_golden_classifiers(instance: Any, solver: str | None) -> None:
    inputs, expected = instance["inputs"], instance["expected"]
    radius = (inputs["rho_neg"], inputs["rho_pos"])
    if expected["status"] == "infeasible":
        with pytest.raises(CeoptError, match="needs two different means, but the means of both classes are equal"):
            machine(inputs, radius, solver)
        return
    found = machine(inputs, radius, solver)
    assert found.status_ == expected["status"]
    values = {
        "w": found.coef_[0],
        "b": -found.intercept_[0],
        "kappa": found.kappa_,
        "objective": 1.0 / found.kappa_,
        "tau_neg": found.tau_[0],
        "tau_pos": found.tau_[1],
        "worst_case_error": found.worst_case_error_,
        "gaussian_error": found.gaussian_error_,
    }
    for name, tolerance in instance["tol"].items():
        assert values[name] == pytest.approx(np.array(expected[name]), abs=tolerance, rel=0), name
    assert found.gap_ <= 1e-9


@pytest.mark.parametrize("instance", LIMITS, ids=lambda i: i["id"])
def test_golden_limits(instance: Any) -> None:
    inputs, expected, tolerance = instance["inputs"], instance["expected"], instance["tol"]
    grows = (inputs["growing_class"] + 1) // 2
    for great, close in ((math.inf, 1e-9), (inputs["rho_for_check"], tolerance["w_inf"])):
        radius = [inputs["other_rho"], inputs["other_rho"]]
        radius[grows] = great
        found = machine(inputs, (radius[0], radius[1]))
        assert found.coef_[0] == pytest.approx(np.array(expected["w_inf"]), abs=close, rel=0)
        assert -found.intercept_[0] == pytest.approx(expected["b_inf"], abs=max(close, 1e-9), rel=0)
    assert found.kappa_ < 1e-3
    limit = machine(inputs, tuple(math.inf if k == grows else inputs["other_rho"] for k in (0, 1)))
    assert (limit.kappa_, limit.worst_case_error_, limit.gaussian_error_) == (0.0, 1.0, 0.5)
    assert math.isinf(limit.tau_[grows])
    assert limit.tau_[1 - grows] == pytest.approx(found.tau_[1 - grows], rel=1e-3)
    assert np.isinf(limit.worst_covariances_[grows]).any()
    assert np.isfinite(limit.worst_covariances_[1 - grows]).all()


# ---- scikit-learn ----------------------------------------------------------------------------------------------------
@pytest.mark.long(every=2)
@parametrize_with_checks(
    [
        MinimaxProbabilityMachine(),
        MinimaxProbabilityMachine("bures", (1.0, 0.5)),
        MinimaxProbabilityMachine("fisher_rao", (1.0, 0.0), solver="clarabel"),
    ]
)
def test_scikit_learn_s_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_two_classes_are_tagged_and_named() -> None:
    assert MinimaxProbabilityMachine().__sklearn_tags__().classifier_tags.multi_class is False
    X, y = make_blobs(60, centers=2, random_state=0)
    names = np.array(["yes", "no"])[y]
    found = MinimaxProbabilityMachine().fit(pd.DataFrame(X, columns=["a", "b"]), names)
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == ["a", "b"]
    plain = MinimaxProbabilityMachine().fit(X, y)
    assert found.coef_ == pytest.approx(-plain.coef_)
    assert set(found.predict(pd.DataFrame(X, columns=["a", "b"]))) == {"no", "yes"}
    assert (found.fit_moments([0, 0], EYE, [1, 0], EYE).classes_.tolist(), hasattr(found, "feature_names_in_")) == (
        [0, 1],
        False,
    )


def test_samples_are_their_moments() -> None:
    X, y = make_blobs(50, n_features=3, centers=2, cluster_std=3.0, random_state=1)
    found = MinimaxProbabilityMachine("logdet", (0.5, 0.1)).fit(X, y)
    neg, pos = X[y == 0], X[y == 1]
    same = clone(found).fit_moments(neg.mean(0), np.cov(neg.T), pos.mean(0), np.cov(pos.T))
    assert found.coef_ == pytest.approx(same.coef_, rel=1e-9)
    assert found.intercept_ == pytest.approx(same.intercept_, rel=1e-9)
    assert found.decision_function(X) == pytest.approx(X @ found.coef_[0] + found.intercept_[0])
    at_the_line = -found.intercept_[0] * found.coef_ / (found.coef_ @ found.coef_.T)
    step = 1e-9 * found.coef_
    assert found.predict(at_the_line + step).tolist() == [1]
    assert found.predict(at_the_line - step).tolist() == [0]


# ---- closed forms and properties -------------------------------------------------------------------------------------
@draws(60)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 8), divergence=st.sampled_from(DIVERGENCES))
def test_what_holds_of_every_machine(seed: int, d: int, divergence: str) -> None:
    rng = np.random.default_rng(seed)
    mean_neg, cov_neg, mean_pos, cov_pos = given_moments = moments(rng, d)
    radius = tuple(map(float, rng.uniform(0, 2, size=2)))
    found = MinimaxProbabilityMachine(divergence, radius).fit_moments(*given_moments)
    w, b = found.coef_[0], -found.intercept_[0]
    assert w @ (mean_pos - mean_neg) == pytest.approx(1.0)
    assert found.kappa_ == pytest.approx(1.0 / found.tau_.sum())
    assert b == pytest.approx(w @ mean_pos - found.kappa_ * found.tau_[1], abs=1e-9)
    assert found.worst_case_error_ == pytest.approx(1.0 / (1.0 + found.kappa_**2))
    assert found.gaussian_error_ == pytest.approx(norm.sf(found.kappa_))
    for k, cov in enumerate((cov_neg, cov_pos)):
        worst = worst_covariance(w, cov, divergence=divergence, radius=radius[k])
        assert found.tau_[k] == pytest.approx(worst.tau)
        assert found.worst_covariances_[k] == pytest.approx(worst.covariance)
    for _ in range(5):  # no other slope is better
        other = w + 0.1 * rng.normal(size=d)
        other /= other @ (mean_pos - mean_neg)
        taus = [
            worst_covariance(other, cov, divergence=divergence, radius=rho).tau
            for cov, rho in zip((cov_neg, cov_pos), radius, strict=True)
        ]
        assert sum(taus) >= found.tau_.sum() * (1.0 - 1e-12)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_radius_0_is_the_nominal_machine(divergence: str) -> None:
    given_moments = moments(np.random.default_rng(1), 4)
    nominal = MinimaxProbabilityMachine().fit_moments(*given_moments)
    found = MinimaxProbabilityMachine(divergence).fit_moments(*given_moments)
    assert found.coef_ == pytest.approx(nominal.coef_)
    assert found.kappa_ == pytest.approx(nominal.kappa_)


@pytest.mark.parametrize("divergence", ["fisher_rao", "logdet"])
def test_equal_radii_leave_the_nominal_hyperplane(divergence: str) -> None:
    given_moments = moments(np.random.default_rng(2), 3)
    nominal = MinimaxProbabilityMachine().fit_moments(*given_moments)
    found = MinimaxProbabilityMachine(divergence, (1.5, 1.5)).fit_moments(*given_moments)
    assert found.coef_ == pytest.approx(nominal.coef_)
    assert found.intercept_ == pytest.approx(nominal.intercept_)
    assert found.kappa_ < nominal.kappa_


def test_equal_covariances_give_fishers_direction_half_way() -> None:
    mean_neg, cov, mean_pos, _ = moments(np.random.default_rng(3), 5)
    found = MinimaxProbabilityMachine().fit_moments(mean_neg, cov, mean_pos, cov)
    a = mean_pos - mean_neg
    z = np.linalg.solve(cov, a)
    assert found.coef_[0] == pytest.approx(z / (a @ z))
    assert -found.intercept_[0] == pytest.approx(found.coef_[0] @ (mean_neg + mean_pos) / 2)
    assert found.kappa_ == pytest.approx(math.sqrt(a @ z) / 2)


def test_one_column_needs_no_search() -> None:
    found = MinimaxProbabilityMachine().fit_moments([1.0], [[4.0]], [6.0], [[9.0]])
    assert found.coef_.tolist() == [[pytest.approx(0.2)]]
    assert -found.intercept_[0] / found.coef_[0, 0] == pytest.approx(6.0 - 5.0 * 3.0 / 5.0)


def test_a_bures_slope_depends_on_the_sum_of_lengths_only_and_the_paper_s_is_the_radius() -> None:
    given_moments = moments(np.random.default_rng(4), 3)
    one = MinimaxProbabilityMachine("bures", (4.0, 0.0)).fit_moments(*given_moments)
    other = MinimaxProbabilityMachine("bures", (0.25, 2.25)).fit_moments(*given_moments)
    paper = MinimaxProbabilityMachine("bures", (2.0, 0.0), bures="paper").fit_moments(*given_moments)
    assert other.coef_ == pytest.approx(one.coef_)
    assert paper.coef_ == pytest.approx(one.coef_)
    assert paper.intercept_ == pytest.approx(one.intercept_)
    assert paper.worst_covariances_ == pytest.approx(one.worst_covariances_)
    assert other.intercept_ != pytest.approx(one.intercept_)


@pytest.mark.parametrize("divergence", DIVERGENCES[1:])
def test_a_greater_unfavourable_radius_moves_the_line_inside(divergence: str) -> None:
    """In one column, so that the slope is fixed."""
    found = [
        MinimaxProbabilityMachine(divergence, (rho, 0.0)).fit_moments([0.0], [[1.0]], [4.0], [[1.0]])
        for rho in (0.0, 0.5, 1.0, 5.0, math.inf)
    ]
    lines = [-one.intercept_[0] / one.coef_[0, 0] for one in found]
    assert lines == sorted(lines)
    assert lines[0] == pytest.approx(2.0)
    assert lines[-1] == pytest.approx(4.0)
    kappas = [one.kappa_ for one in found]
    assert kappas == sorted(kappas, reverse=True)


def test_regularization_is_more_variance() -> None:
    mean_neg, cov_neg, mean_pos, cov_pos = moments(np.random.default_rng(5), 3)
    found = MinimaxProbabilityMachine(regularization=0.5).fit_moments(mean_neg, cov_neg, mean_pos, cov_pos)
    by_hand = MinimaxProbabilityMachine().fit_moments(
        mean_neg, cov_neg + 0.5 * np.eye(3), mean_pos, cov_pos + 0.5 * np.eye(3)
    )
    assert found.coef_ == pytest.approx(by_hand.coef_)
    assert found.worst_covariances_ == pytest.approx(by_hand.worst_covariances_)


# ---- degenerate input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", [None, "clarabel"])
def test_classes_without_variance_between_them_are_separable(solver: str | None) -> None:
    X = np.array([[0.0, 1.0, 0.1], [0.0, 2.0, 0.1], [1.0, 1.0, 0.1], [1.0, 3.0, 0.1], [1.0, 7.0, 0.1]])
    found = MinimaxProbabilityMachine(solver=solver).fit(X, [0, 0, 1, 1, 1])
    assert (found.status_, found.kappa_) == ("separable", math.inf)
    assert (found.worst_case_error_, found.gaussian_error_) == (0.0, 0.0)
    assert found.coef_[0].tolist() == pytest.approx([1.0, 0.0, 0.0])
    assert found.intercept_[0] == pytest.approx(-0.5)
    robust = MinimaxProbabilityMachine("bures", (1.0, 0.0), solver=solver).fit(X, [0, 0, 1, 1, 1])
    assert robust.status_ == "optimal"
    assert robust.kappa_ < math.inf


def test_a_constant_column_gets_no_weight_and_one_row_has_no_covariance() -> None:
    X = np.array([[0.0, 0.3], [2.0, 0.3], [9.0, 0.3]])
    found = MinimaxProbabilityMachine().fit(X, [0, 0, 1])
    assert found.status_ == "optimal"
    assert found.coef_[0] == pytest.approx([1 / 8, 0.0])
    assert found.tau_.tolist() == pytest.approx([math.sqrt(2) / 8, 0.0])
    assert -found.intercept_[0] == pytest.approx(9 / 8)  # all of the width is the one that varies


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("ranks", [(1, 3), (3, 1), (2, 2), (0, 4), (1, 1)])
def test_singular_covariances_are_answered_as_by_the_program(divergence: str, ranks: tuple[int, int]) -> None:
    rng = np.random.default_rng(6)
    neg, pos = (rng.normal(size=(4, rank)) for rank in ranks)
    given_moments = (rng.normal(size=4), neg @ neg.T, rng.normal(size=4), pos @ pos.T)
    found = MinimaxProbabilityMachine(divergence, (0.3, 0.1)).fit_moments(*given_moments)
    solved = MinimaxProbabilityMachine(divergence, (0.3, 0.1), solver="clarabel").fit_moments(*given_moments)
    assert found.status_ == solved.status_
    assert 1.0 / found.kappa_ == pytest.approx(1.0 / solved.kappa_, abs=1e-6)
    assert found.gap_ <= 1e-9


def test_what_the_exact_method_does_not_prove_is_asked_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    given_moments = moments(np.random.default_rng(7), 3)
    expected = MinimaxProbabilityMachine().fit_moments(*given_moments)

    def unproved(a: np.ndarray, matrices: Any) -> Any:
        w = a / (a @ a)
        return LeastNormSum(w, np.array([9.0, 9.0]), math.inf)

    monkeypatch.setattr(exact, "least_norm_sum", unproved)
    found = MinimaxProbabilityMachine().fit_moments(*given_moments)
    assert found.coef_ == pytest.approx(expected.coef_, rel=1e-6)


def test_the_limit_of_a_singular_covariance_keeps_its_null_space() -> None:
    growing = np.diag([0.0, 0.0, 1.0])
    found = MinimaxProbabilityMachine("fisher_rao", (math.inf, 0.0)).fit_moments(
        [0, 0, 0], growing, [1, 1, 1], np.diag([1.0, 3.0, 1.0])
    )
    assert found.coef_[0] == pytest.approx([0.75, 0.25, 0.0])
    assert found.tau_ == pytest.approx([0.0, math.sqrt(0.75)])
    near = MinimaxProbabilityMachine("fisher_rao", (30.0, 0.0)).fit_moments(
        [0, 0, 0], growing, [1, 1, 1], np.diag([1.0, 3.0, 1.0])
    )
    assert near.coef_ == pytest.approx(found.coef_, abs=1e-6)
    assert MinimaxProbabilityMachine("nominal", (math.inf, 0.0)).fit_moments([0], [[1]], [2], [[1]]).kappa_ == 1.0


def test_great_radii_stay_numbers() -> None:
    given_moments = moments(np.random.default_rng(8), 3)
    for divergence, radius in (("fisher_rao", 700.0), ("logdet", 1e150), ("quadratic", 1e150), ("bures", 1e150)):
        found = MinimaxProbabilityMachine(divergence, (radius, 0.1)).fit_moments(*given_moments)
        limit = MinimaxProbabilityMachine(divergence, (math.inf, 0.1)).fit_moments(*given_moments)
        assert found.coef_ == pytest.approx(limit.coef_, rel=1e-6)
        assert found.intercept_ == pytest.approx(limit.intercept_, rel=1e-6)


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"divergence": "kl"}, "MinimaxProbabilityMachine needs a known divergence, but divergence is 'kl'"),
        ({"radius": (-1.0, 0.0)}, r"radius\[0\] is -1.0. Give such a number, or inf for the limit"),
        ({"radius": 1.0}, r"a pair \(unfavourable, favourable\) as radius"),
        ({"radius": (math.inf, math.inf), "divergence": "bures"}, "one infinite radius at most"),
        ({"radius": (math.nan, 0.0)}, r"radius\[0\] is nan"),
        ({"radius": (0.0, 701.0), "divergence": "fisher_rao"}, "from 0 to 700"),
        ({"bures": "no"}, "a known bures"),
        ({"regularization": math.nan}, "regularization to be a number at least 0"),
        ({"solver": "cvx"}, "a known solver"),
    ],
)
def test_settings_that_make_no_sense_are_refused_at_once(change: dict[str, Any], message: str) -> None:
    for fit in (lambda m: m.fit([[0.0], [1.0]], [0, 1]), lambda m: m.fit_moments([0], [[1]], [1], [[1]])):
        with pytest.raises(CeoptError, match=message):
            fit(MinimaxProbabilityMachine(**change))


def test_samples_that_make_no_machine_are_refused() -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    with pytest.raises(CeoptError, match="two classes, but y has 1 class. Only binary classification is supported."):
        MinimaxProbabilityMachine().fit(X, [1, 1, 1, 1])
    with pytest.raises(CeoptError, match="y has 3 classes"):
        MinimaxProbabilityMachine().fit(X, [0, 1, 2, 2])
    with pytest.raises(CeoptError, match="the means of both classes are equal"):
        MinimaxProbabilityMachine().fit(np.vstack([X, X[::-1]]), [0] * 4 + [1] * 4)
    with pytest.raises(ValueError, match="NaN"):
        MinimaxProbabilityMachine().fit([[0.0], [math.nan]], [0, 1])
    with pytest.raises(CeoptError, match=r"mean_pos\[0\] is nan"):
        MinimaxProbabilityMachine().fit_moments([0], [[1]], [math.nan], [[1]])
    with pytest.raises(CeoptError, match="cov_neg of shape 2 by 2"):
        MinimaxProbabilityMachine().fit_moments([0, 0], [[1]], [1, 0], EYE)
    with pytest.raises(ValueError, match="not fitted"):
        MinimaxProbabilityMachine().predict(X)


# ---- near a row of a black box ---------------------------------------------------------------------------------------
def test_a_local_machine_is_fitted_to_the_boundary_sample() -> None:
    people = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 100.0], columns=["a", "b"])

    def predict(rows: pd.DataFrame) -> Any:
        return np.where(rows["a"] + rows["b"] / 100 > 0.3, "yes", "no")

    row = {"a": -1.0, "b": -50.0}
    sample = BoundarySampler().sample(predict, row, people, target="yes")
    found = MinimaxProbabilityMachine("fisher_rao", (1.0, 0.0)).fit_local(
        predict, row, people, target="yes", sample=sample
    )
    by_hand = clone(found).fit(sample.encoded, sample.favourable)
    assert found.coef_ == pytest.approx(by_hand.coef_)
    assert found.intercept_ == pytest.approx(by_hand.intercept_)
    assert (found.coef_.shape, found.intercept_.shape, found.n_features_in_) == ((1, 2), (1,), 2)
    assert found.classes_.tolist() == [False, True]
    assert found.columns_ is sample.columns
    agrees = (found.predict(sample.encoded) == sample.favourable).mean()
    nominal = MinimaxProbabilityMachine().fit_local(predict, row, people, target="yes")
    assert nominal.n_queries_ > 0
    assert agrees > 0.6
    assert (nominal.predict(sample.encoded) == sample.favourable).mean() > 0.9
    with pytest.raises(CeoptError, match="a known divergence"):
        MinimaxProbabilityMachine("none").fit_local(predict, row, people, target="yes", sample=sample)


@pytest.mark.parametrize("radius", [1e-30, 1e-150, 1e-300, 5e-324])
def test_a_bures_radius_of_nothing_is_the_nominal_machine(radius: float) -> None:
    """The squares of its norm underflow, which was a warning and no step."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = X[:, 0] > 0.0
    nominal = MinimaxProbabilityMachine().fit(X, y)
    machine = MinimaxProbabilityMachine("bures", (radius, 0.0)).fit(X, y)

    assert machine.gap_ <= 1e-9
    np.testing.assert_allclose(machine.coef_, nominal.coef_, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("divergence", ["bures", "quadratic"])
def test_columns_that_are_nothing_beside_the_radius_are_named(divergence: str) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3)) * 1e-150
    with pytest.raises(CeoptError, match="units of the columns"):
        MinimaxProbabilityMachine(divergence, (0.1, 0.0)).fit(X, X[:, 0] > 0.0)


@pytest.mark.parametrize("radius", [(math.inf, math.inf), (math.inf, 1.0), (3.0, 0.0)])
def test_the_nominal_machine_reads_no_radius(radius: tuple[float, float]) -> None:
    given_moments = ([0.0, 1.0], np.eye(2), [2.0, 0.0], 2.0 * np.eye(2))
    nominal = MinimaxProbabilityMachine().fit_moments(*given_moments)
    found = MinimaxProbabilityMachine("nominal", radius).fit_moments(*given_moments)
    assert found.coef_.tolist() == nominal.coef_.tolist()
    assert found.intercept_.tolist() == nominal.intercept_.tolist()
    assert found.kappa_ == nominal.kappa_
    with pytest.raises(CeoptError, match="one infinite radius at most"):
        MinimaxProbabilityMachine("bures", (math.inf, math.inf)).fit_moments(*given_moments)
