"""Moments of parameters: of retrained linear classifiers, and of a local linear model of any other."""

from __future__ import annotations

import re
import warnings
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from ceopt import CeoptError
from ceopt.plans import bootstrap_moments, local_moments, validity_bounds

X, y = make_classification(300, 4, n_informative=3, n_redundant=0, weights=[0.8], flip_y=0.1, random_state=0)


# ---- bootstrap -------------------------------------------------------------------------------------------------------
class Recorder(LogisticRegression):
    """Keeps the parts that it was fitted on."""

    parts: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any) -> Any:
        self.parts.append((np.asarray(X), np.asarray(y)))
        return super().fit(X, y)


def test_the_moments_are_those_of_models_on_stratified_parts() -> None:
    """Fit again by hand on the parts that it drew: mean, covariance and the intercept's place."""
    Recorder.parts.clear()
    mean, covariance = bootstrap_moments(Recorder(), X, y, n_models=12, fraction=0.4)
    parts = Recorder.parts[-12:]
    thetas = []
    for rows, labels in parts:
        assert (labels == 1).sum() == round(0.4 * (y == 1).sum())
        assert (labels == 0).sum() == round(0.4 * (y == 0).sum())
        assert len(np.unique(rows, axis=0)) == len(rows)  # without replacement
        model = LogisticRegression().fit(rows, labels)
        thetas.append([*model.coef_[0], model.intercept_[0]])
        assert (labels == np.array([y[np.flatnonzero((row == X).all(axis=1))[0]] for row in rows])).all()
    assert len({part[0].tobytes() for part in parts}) == 12
    np.testing.assert_allclose(mean, np.mean(thetas, axis=0), rtol=1e-9)
    np.testing.assert_allclose(covariance, np.cov(np.transpose(thetas)), rtol=1e-6)


def test_the_moments_are_near_the_model_of_all_rows() -> None:
    mean, covariance = bootstrap_moments(LogisticRegression(), X, y, n_models=60)
    model = LogisticRegression().fit(X, y)
    theta = np.append(model.coef_[0], model.intercept_[0])
    assert (np.abs(mean - theta) < 3 * np.sqrt(np.diag(covariance))).all()
    rows = X[model.decision_function(X) > 1][:2]
    assert validity_bounds(np.column_stack([rows, [1, 1]]), mean, covariance, 0.0).lower > 0.3


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        LinearSVC(),
        pytest.param(SGDClassifier(max_iter=50, tol=None), marks=pytest.mark.long),
        RidgeClassifier(),
        SVC(kernel="linear"),
        LogisticRegression(fit_intercept=False),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda e: type(e).__name__ if not hasattr(e, "steps") else "pipeline",
)
def test_the_same_whatever_the_number_of_processes(estimator: Any) -> None:
    """Also where the training itself is random and the estimator has no random_state of its own."""
    before = str(estimator.get_params())
    one = bootstrap_moments(estimator, X, y, n_models=8)
    backend = "loky" if isinstance(estimator, SGDClassifier) else "threading"  # processes once: they are slow to start
    with joblib.parallel_config(backend=backend):
        two = bootstrap_moments(estimator, X, y, n_models=8, n_jobs=2)
    assert one[0].shape == (5,)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert (np.linalg.eigvalsh(one[1]) > -1e-12 * np.trace(one[1])).all()
    assert (one[1] == one[1].T).all()
    other = bootstrap_moments(estimator, X, y, n_models=8, random_state=1)
    assert not np.allclose(one[0], other[0])
    assert str(estimator.get_params()) == before
    assert not hasattr(estimator, "coef_")
    if getattr(estimator, "fit_intercept", True) is False:
        assert one[0][-1] == one[1][-1, -1] == 0.0


def test_labels_frames_and_sparse_rows() -> None:
    expected = bootstrap_moments(LogisticRegression(), X, y, n_models=5)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(300) * 7)
    words = pd.Series(np.where(y == 1, "yes", "no"), index=frame.index)
    for rows, labels in ((frame, words), (X.tolist(), y.tolist()), (sp.csr_array(X), y)):
        found = bootstrap_moments(LogisticRegression(), rows, labels, n_models=5)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    flipped = bootstrap_moments(LogisticRegression(), X, np.where(y == 1, "a", "b"), n_models=5)
    assert np.sign(flipped[0]).tolist() == (-np.sign(expected[0])).tolist()


def test_regularization_is_on_request() -> None:
    plain, more = (bootstrap_moments(LogisticRegression(), X, y, n_models=5, regularization=r) for r in (0.0, 0.5))
    np.testing.assert_allclose(more[1], plain[1] + 0.5 * np.eye(5))
    np.testing.assert_allclose(more[0], plain[0])
    assert np.linalg.matrix_rank(plain[1]) < 5  # five models span four directions


def test_all_rows_give_the_one_model() -> None:
    mean, covariance = bootstrap_moments(LogisticRegression(), X, y, n_models=3, fraction=1.0)
    model = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(mean, [*model.coef_[0], model.intercept_[0]])
    np.testing.assert_allclose(covariance, 0.0, atol=1e-20)


def test_a_pipeline_keeps_one_space() -> None:
    """Fitted steps are used as they are, others are fitted once on all rows: never again on a part."""
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    own = bootstrap_moments(LogisticRegression(), StandardScaler().fit_transform(X), y, n_models=5)
    np.testing.assert_allclose(bootstrap_moments(pipeline, X, y, n_models=5)[0], own[0], rtol=1e-9)
    pipeline.fit(X[:50] * 3 + 1, y[:50])
    seen = pipeline[:-1].transform(X)
    coef = pipeline[-1].coef_.copy()
    elsewhere = bootstrap_moments(LogisticRegression(), seen, y, n_models=5)
    np.testing.assert_allclose(bootstrap_moments(pipeline, X, y, n_models=5)[0], elsewhere[0], rtol=1e-9)
    assert (pipeline[-1].coef_ == coef).all()
    assert not np.allclose(own[0], elsewhere[0])


def test_progress_is_on_standard_error(capfd: Any) -> None:
    bootstrap_moments(LogisticRegression(), X, y, n_models=3)
    assert capfd.readouterr() == ("", "")
    bootstrap_moments(LogisticRegression(), X, y, n_models=3, progress=True)
    out, err = capfd.readouterr()
    assert (out, "3/3" in err) == ("", True)


class Bent(LogisticRegression):
    """Has coefficients, but does not decide by them."""

    def decision_function(self, X: Any) -> Any:
        return super().decision_function(X) ** 3


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (RandomForestClassifier(3), "RandomForestClassifier has no coefficients"),
        (SVC(), "SVC has no coefficients"),
        (GaussianNB(), "GaussianNB has no coefficients"),
        (make_pipeline(StandardScaler(), GaussianNB()), "GaussianNB has no coefficients"),
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}), "GridSearchCV has no coefficients"),
        (Bent(), "the scores of Bent are not those of its coefficients"),
        (LinearRegression(), "it is LinearRegression"),
        (make_pipeline(StandardScaler(), Ridge()), "it is Ridge"),
        (make_pipeline(StandardScaler(), FunctionTransformer()), "it is FunctionTransformer"),
        ("logistic", "it is str"),
    ],
    ids=str,
)
def test_what_is_not_linear_is_refused_by_name(estimator: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=re.escape(message)):
        bootstrap_moments(estimator, X, y, n_models=2)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (np.arange(300) % 3, {}, "labels of two classes, but y has 3: 0, 1, 2"),
        (np.zeros(300), {}, "y has 1: 0.0"),
        (y[:-1], {}, "X has 300 rows and y 299"),
        (y[:, None], {}, "its shape is (300, 1)"),
        (y, {"n_models": 1}, "n_models is 1"),
        (y, {"fraction": 0.0}, "fraction is 0.0"),
        (y, {"fraction": 1.5}, "fraction is 1.5"),
        (y, {"regularization": -1}, "regularization is -1"),
        (y, {"n_jobs": 0}, "n_jobs is 0"),
        (y, {"random_state": "a"}, "random_state is 'a'"),
    ],
)
def test_misuse_of_the_bootstrap_is_refused(labels: Any, options: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=re.escape(message)):
        bootstrap_moments(LogisticRegression(), X, labels, **options)


# ---- local linear model ----------------------------------------------------------------------------------------------
def test_a_linear_probability_is_found_exactly() -> None:
    """Weights do not matter where the fit is exact, and the penalty is 1 beside hundreds of weighted samples."""
    w, c = np.array([1e-3, -2e-3, 0.0]), 0.6
    mean, covariance = local_moments(lambda z: z @ w + c, [5.0, -1.0, 2.0])
    np.testing.assert_allclose(mean[:3], w, atol=2e-5)
    assert mean @ [5.0, -1.0, 2.0, 1.0] == pytest.approx(w @ [5.0, -1.0, 2.0] + c - 0.5, abs=1e-4)
    assert (covariance == 0.05 * np.eye(4)).all()


def test_it_is_lime_as_it_says() -> None:
    """The docstring's five steps by scikit-learn's ridge, with samples of its own."""
    row, scale = np.array([0.3, -0.4]), np.array([0.5, 2.0])

    def chance(z: Any) -> Any:
        return 1 / (1 + np.exp(-3 * z[:, 0] + z[:, 1] ** 2))

    mean, _ = local_moments(chance, row, n_samples=20000, scale=scale)
    u = np.random.default_rng(99).normal(size=(200000, 2))
    weights = np.sqrt(np.exp(-(u**2).sum(axis=1) / (0.75 * np.sqrt(2)) ** 2))
    ridge = Ridge(alpha=1.0).fit(u, chance(row + scale * u) - 0.5, sample_weight=weights)
    np.testing.assert_allclose(mean[:2], ridge.coef_ / scale, atol=0.01)
    assert mean @ [*row, 1.0] == pytest.approx(ridge.intercept_, abs=0.01)


def test_the_row_itself_is_the_first_sample_and_the_seed_decides() -> None:
    asked: list[Any] = []

    def chance(z: Any) -> Any:
        asked.append(z)
        return np.clip(z[:, 0], 0, 1)

    one, two = (local_moments(chance, [0.5, 1.0], n_samples=50)[0] for _ in range(2))
    np.testing.assert_allclose(one, two, rtol=1e-12)
    assert (asked[0] == asked[1]).all()
    assert asked[0].shape == (50, 2)
    assert asked[0][0].tolist() == [0.5, 1.0]
    assert (local_moments(chance, [0.5, 1.0], n_samples=50, random_state=1)[0] != one).any()


def test_classifiers_are_asked_for_the_favourable_class() -> None:
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    by_model, _ = local_moments(forest, X[0], n_samples=500)
    by_function, _ = local_moments(lambda z: forest.predict_proba(z)[:, 1], X[0], n_samples=500)
    by_table, _ = local_moments(forest.predict_proba, X[0], n_samples=500)
    np.testing.assert_allclose(by_model, by_function, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(by_model, by_table, rtol=1e-9, atol=1e-12)
    linear = LinearSVC(random_state=0).fit(X, y)
    mean, _ = local_moments(linear, X[0], n_samples=5000)  # a decision has no threshold to subtract
    np.testing.assert_allclose(mean, [*linear.coef_[0], linear.intercept_[0]], atol=5e-3)


def test_names_reach_a_model_that_wants_them() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = LogisticRegression().fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        means = [local_moments(model, row, n_samples=200)[0] for row in (frame.iloc[0], frame.iloc[[0]], X[0])]
    np.testing.assert_allclose(means[0], means[1], rtol=1e-9)
    np.testing.assert_allclose(means[0], means[2], rtol=1e-9)


@pytest.mark.parametrize(
    ("predict", "options", "message"),
    [
        (lambda z: z[:, 0] * 9, {}, "probabilities of the favourable class, but predict returned"),
        (lambda z: z[:5, 0], {}, "what predict returns of shape"),
        (lambda z: z[:, :3], {}, "what predict returns of shape"),
        (lambda z: z[:, 0] * np.nan, {}, "is nan"),
        (LogisticRegression().fit(X, np.arange(300) % 3), {}, "LogisticRegression has 3"),
        ("model", {}, "it is str"),
        (np.tanh, {"factual": []}, "factual is empty"),
        (np.tanh, {"factual": [1.0, np.nan]}, "factual[1] is nan"),
        (np.tanh, {"factual": pd.DataFrame(np.zeros((2, 4)))}, "factual has 2"),
        (np.tanh, {"n_samples": 1}, "n_samples is 1"),
        (np.tanh, {"variance": -1}, "variance is -1"),
        (np.tanh, {"variance": np.inf}, "variance is inf"),
        (np.tanh, {"scale": [1, 0, 1, 1]}, "that of column 1 is 0"),
        (np.tanh, {"scale": [1, 1]}, "scale of shape 4"),
        (np.tanh, {"random_state": None}, "random_state is None"),
    ],
)
def test_misuse_of_the_local_model_is_refused(predict: Any, options: Any, message: str) -> None:
    options = {"factual": np.zeros(4)} | options
    with pytest.raises(CeoptError, match=re.escape(message)):
        local_moments(predict, options.pop("factual"), **options)


def test_fits_that_do_not_converge_are_counted_in_one_warning() -> None:
    X, y = make_classification(60, 5, random_state=0)
    with pytest.warns(UserWarning, match="6 of 6 fits did not converge") as caught:
        bootstrap_moments(LogisticRegression(max_iter=1), 1000 * X, y, n_models=6)
    assert len(caught) == 1


def test_a_label_that_is_missing_is_named() -> None:
    with pytest.raises(CeoptError, match="y has none in row 1"):
        bootstrap_moments(LogisticRegression(), np.eye(3), np.array(["good", np.nan, "bad"], dtype=object))


def test_labels_are_no_probabilities() -> None:
    with pytest.raises(CeoptError, match="predict_proba"):
        local_moments(lambda X: np.repeat("good", len(X)), [0.5, 1.0])
