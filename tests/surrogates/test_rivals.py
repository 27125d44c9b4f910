"""LIME, CLIME, LIMELS and the linear SVM: by the formulas of their docstrings, and beside the package lime."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from ceopt import CeoptError, FeatureSpace
from ceopt.formulations.space import Feature
from ceopt.surrogates import (
    BlackBox,
    BoundarySampler,
    ClimeSurrogate,
    LimelsSurrogate,
    LimeSurrogate,
    NoBoundaryError,
    SvmSurrogate,
)

RIVALS = [LimeSurrogate, ClimeSurrogate, LimelsSurrogate, SvmSurrogate]
X = pd.DataFrame(np.random.default_rng(3).normal([1.0, -2.0, 5.0], [1.0, 3.0, 0.5], size=(150, 3)), columns=list("abc"))
FREE = FeatureSpace([Feature(name, kind="continuous") for name in X])
y = (X["a"] - 0.4 * X["b"] + X["c"] ** 2 / 5 > 7.0).astype(int)
MODEL = LogisticRegression().fit(X, y)
ROW = X[MODEL.predict(X) == 0].iloc[0]
STD = X.to_numpy().std(axis=0)


class Fixed(np.random.RandomState):
    """Draws what it is given."""

    def __init__(self, draws: Any) -> None:
        super().__init__(0)
        self.draws = draws

    def normal(self, *given: Any) -> Any:
        assert given == (0, 1, self.draws.size)
        return self.draws.ravel()


@pytest.mark.parametrize("around", ["mean", "factual"])
def test_lime_is_that_of_the_package(around: Any) -> None:
    """The package, given the same normal draws: coefficients and intercept to rounding."""
    package = pytest.importorskip("lime.lime_tabular", reason="lime comes with the extra bench")
    draws = np.random.default_rng(7).standard_normal((400, 3))
    explainer = package.LimeTabularExplainer(
        X.to_numpy(), mode="classification", discretize_continuous=False, feature_selection="none",
        sample_around_instance=around == "factual", random_state=Fixed(draws),
    )  # fmt: skip

    def predict_proba(rows: Any) -> Any:
        return MODEL.predict_proba(pd.DataFrame(rows, columns=list(X)))

    theirs = explainer.explain_instance(ROW.to_numpy(), predict_proba, labels=(1,), num_features=3, num_samples=400)
    ours = LimeSurrogate(n_samples=400, around=around, random_state=7).fit_local(MODEL, ROW, X, target=1, space=FREE)
    beta = np.array([weight for _, weight in sorted(theirs.local_exp[1])])

    np.testing.assert_allclose(ours.coef_, beta, rtol=1e-9)  # both in standard deviations
    middle = X.to_numpy().mean(axis=0) / STD
    assert ours.intercept_ == pytest.approx(theirs.intercept[1] - beta @ middle - 0.5, rel=1e-9)


@pytest.mark.parametrize(("around", "width"), [("mean", None), ("factual", 2.5)])
def test_lime_by_its_formulas(around: Any, width: float | None) -> None:
    ours = LimeSurrogate(n_samples=300, around=around, kernel_width=width, alpha=3.0, random_state=5)
    ours.fit_local(MODEL, ROW, X, target=1, space=FREE)
    u = np.random.default_rng(5).standard_normal((300, 3))
    z = (X.to_numpy().mean(axis=0) if around == "mean" else ROW.to_numpy()) + STD * u
    z[0] = ROW
    away = (z - ROW.to_numpy()) / STD
    h = width or 0.75 * np.sqrt(3)
    weights = np.sqrt(np.exp(-((away**2).sum(axis=1)) / h**2))
    chance = MODEL.predict_proba(pd.DataFrame(z, columns=list(X)))[:, 1]
    ridge = Ridge(alpha=3.0).fit(away, chance - 0.5, sample_weight=weights)

    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=1e-7)
    assert ours.coef_ @ (ROW.to_numpy() / STD) + ours.intercept_ == pytest.approx(ridge.intercept_)
    assert ours.n_queries_ == 300


def test_lime_is_the_same_in_other_columns() -> None:
    """Draws and weights follow the spread of the data, whatever the columns are divided by."""
    raw = BoundarySampler(scale="none").sample(MODEL, ROW, X, target=1, space=FREE)
    one = LimeSurrogate().fit_local(MODEL, ROW, X, target=1, space=FREE)
    other = LimeSurrogate().fit_local(MODEL, ROW, X, target=1, sample=raw)

    np.testing.assert_allclose(other.coef_ * STD, one.coef_, rtol=1e-9)
    assert other.intercept_ == pytest.approx(one.intercept_)


def test_clime_by_its_formulas() -> None:
    ours = ClimeSurrogate(n_samples=300, radius=0.2, random_state=5).fit_local(MODEL, ROW, X, target=1, space=FREE)
    encoded = X.to_numpy() / STD
    largest = np.linalg.norm(encoded[:, None] - encoded[None], axis=2).max()
    away = 0.2 * largest * np.random.default_rng(5).standard_normal((300, 3))
    away[0] = 0.0
    chance = MODEL.predict_proba(pd.DataFrame(ROW.to_numpy() + away * STD, columns=list(X)))[:, 1]
    ridge = Ridge(alpha=1.0).fit(away, chance - 0.5)

    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=1e-7)
    assert ours.coef_ @ (ROW.to_numpy() / STD) + ours.intercept_ == pytest.approx(ridge.intercept_)


def test_limels_and_the_svm_on_the_same_sample() -> None:
    sample = BoundarySampler(n_samples=300).sample(MODEL, ROW, X, target=1, space=FREE)
    limels = LimelsSurrogate(alpha=2.0).fit_local(MODEL, ROW, X, target=1, sample=sample)
    svm = SvmSurrogate(C=4.0).fit_local(MODEL, ROW, X, target=1, sample=sample)
    off = sample.encoded - sample.encoded.mean(axis=0)
    ridge = Ridge(alpha=2.0).fit(off, MODEL.predict_proba(sample.points)[:, 1] - 0.5)
    machine = LinearSVC(C=4.0, dual=False).fit(off, sample.favourable)

    np.testing.assert_allclose(limels.coef_, ridge.coef_, rtol=1e-7)
    np.testing.assert_allclose(sample.encoded @ limels.coef_ + limels.intercept_, ridge.predict(off), atol=1e-9)
    np.testing.assert_allclose(svm.coef_, machine.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(sample.encoded @ svm.coef_ + svm.intercept_, machine.decision_function(off), atol=1e-6)
    assert (limels.n_queries_, svm.n_queries_) == (300, 0)
    by_label = LimelsSurrogate().fit_local(MODEL.predict, ROW, X, target=1, sample=sample)
    assert by_label.n_queries_ == 300  # MODEL.predict stands for the model
    function = LimelsSurrogate().fit_local(functools.partial(MODEL.predict), ROW, X, target=1, sample=sample)
    assert function.n_queries_ == 0
    np.testing.assert_allclose(function.coef_, Ridge().fit(off, sample.favourable.astype(float)).coef_, rtol=1e-7)


@pytest.mark.parametrize("kind", RIVALS)
def test_without_a_sample_the_default_one_is_drawn(kind: Any) -> None:
    sample = BoundarySampler().sample(MODEL, ROW, X, target=1, space=FREE)
    alone = kind().fit_local(MODEL, ROW, X, target=1, space=FREE)
    given = kind().fit_local(MODEL, ROW, X, target=1, sample=sample)

    np.testing.assert_allclose(alone.coef_, given.coef_)
    assert alone.intercept_ == pytest.approx(given.intercept_)
    assert alone.n_queries_ >= given.n_queries_
    assert alone.columns_.names == ("a", "b", "c")


@pytest.mark.parametrize("kind", RIVALS)
def test_a_linear_model_is_found(kind: Any) -> None:
    """The direction of the coefficients, in scaled columns, of a model that is linear near its boundary."""
    w = np.array([1.0, -0.5, 2.0])

    def favours(rows: pd.DataFrame) -> Any:
        return rows.to_numpy() @ w > 13.0

    found = kind().fit_local(favours, ROW, X, target=True, space=FREE)
    direction = w * STD / np.linalg.norm(w * STD)

    assert found.coef_ @ direction / np.linalg.norm(found.coef_) > 0.97
    off = {LimelsSurrogate: 0.8, SvmSurrogate: 0.4}  # those whose samples lie about the boundary; squares are off more
    if kind in off:
        level = -found.intercept_ / (found.coef_ @ direction) * np.linalg.norm(w * STD)
        assert level == pytest.approx(13.0, abs=off[kind])


@pytest.mark.parametrize("kind", RIVALS)
def test_mixed_columns(kind: Any) -> None:
    rng = np.random.default_rng(4)
    data = pd.DataFrame(
        {
            "income": rng.normal(30, 10, 200),
            "kids": rng.integers(0, 4, 200),
            "job": rng.choice(["cook", "nurse", "clerk"], 200),
            "same": np.ones(200),
        }
    )

    def favours(rows: pd.DataFrame) -> Any:
        assert rows["kids"].dtype == data["kids"].dtype
        points = rows["income"] - 6 * rows["kids"] + 9 * (rows["job"] == "nurse")
        return np.where(points > 32, "good", "bad")

    row = data[favours(data) == "bad"].iloc[0]
    found = kind().fit_local(favours, row, data, target="good")
    coef = dict(zip(found.columns_.names, found.coef_, strict=True))

    assert coef["income"] > 0 > coef["kids"]
    assert coef["job=nurse"] > max(coef["job=cook"], coef["job=clerk"])
    assert coef["same"] == 0.0


@pytest.mark.parametrize("kind", RIVALS)
def test_a_model_that_says_one_thing_has_no_surrogate(kind: Any) -> None:
    with pytest.raises(NoBoundaryError):
        kind().fit_local(lambda rows: np.zeros(len(rows), dtype=bool), ROW, X, target=True)


@pytest.mark.parametrize(
    ("surrogate", "options", "message"),
    [
        (LimeSurrogate(n_samples=1), {}, "LimeSurrogate needs n_samples"),
        (LimeSurrogate(around="row"), {}, "Choose from: mean, factual"),
        (LimeSurrogate(kernel_width=0.0), {}, "kernel_width is 0.0"),
        (LimeSurrogate(alpha=-1.0), {}, "alpha is -1.0"),
        (LimeSurrogate(random_state=-1), {}, "random_state is -1"),
        (ClimeSurrogate(radius=-0.1), {}, "radius is -0.1"),
        (ClimeSurrogate(n_samples=2.5), {}, "n_samples is 2.5"),
        (LimelsSurrogate(alpha=np.nan), {}, "alpha is nan"),
        (SvmSurrogate(C=0.0), {}, "C is 0.0"),
        (LimeSurrogate(), {"X": X.to_numpy()}, "LimeSurrogate needs a DataFrame as X"),
        (SvmSurrogate(), {"X": X.assign(a=np.nan)}, "'a'"),
        (LimeSurrogate(), {"target": 2}, "class is 2"),
        (LimelsSurrogate(), {"factual": {"a": 1.0}}, "'b', 'c' is missing"),
    ],
)
def test_bad_input_is_refused(surrogate: Any, options: dict[str, Any], message: str) -> None:
    options = {"X": X, "factual": ROW, "target": 1} | options
    with pytest.raises(CeoptError, match=re.escape(message)):
        surrogate.fit_local(MODEL, options["factual"], options["X"], target=options["target"])


def test_they_are_scikit_learns_in_form() -> None:
    for kind in RIVALS:
        surrogate = kind()
        assert clone(surrogate).get_params() == surrogate.get_params()
    assert repr(LimeSurrogate(alpha=2.0)) == "LimeSurrogate(alpha=2.0)"


def test_forests_are_asked_for_probabilities_and_many_samples_are_no_limit() -> None:
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    box = BlackBox(forest, 1, columns=list(X), dtypes=X.dtypes, space=FREE, max_queries=50_000)
    assert box.has_probability
    found = LimeSurrogate(n_samples=25_000).fit_local(box, ROW, X, target=1, space=FREE)
    assert found.n_queries_ == box.n_queries == 25_000
