"""Robust Bayesian recourse: worst densities against numerical search over all moments, gradient, projection, frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from ceopt import CeoptError, FeatureSpace
from ceopt.training import Rbr
from ceopt.training.rivals import PosteriorOdds, WorstDensities, projected


# ---- densities -------------------------------------------------------------------------------------------------------
def by_search(p: int, sigma: float, radius: float, c: float, sense: float) -> float:
    """The greatest (sense 1) or least (-1) log density at (c, 0, ...) over means, eigenvalues and eigenvectors."""
    x = np.zeros(p)
    x[0] = c
    n = 2 * p + (p * (p - 1)) // 2

    def density(parts: Any) -> float:
        mean, roots = parts[:p], parts[p : 2 * p] ** 2
        size = np.sqrt(mean @ mean + roots @ roots)
        if size > radius:  # back to the ball
            mean, roots = mean * radius / size, roots * radius / size
        rotation = np.eye(p)
        k = 2 * p
        for i in range(p):
            for j in range(i + 1, p):
                turn = np.eye(p)
                turn[i, i] = turn[j, j] = np.cos(parts[k])
                turn[i, j], turn[j, i] = -np.sin(parts[k]), np.sin(parts[k])
                rotation = rotation @ turn
                k += 1
        s = sigma + roots
        away = rotation.T @ (x - mean)
        return float(-np.log(s).sum() - 0.5 * ((away / s) ** 2).sum())

    rng = np.random.default_rng(0)
    best = -np.inf
    for _ in range(12):
        start = rng.normal(size=n) * np.append(np.full(2 * p, radius), np.full(n - 2 * p, 2.0))
        options = {"maxiter": 4000, "maxfev": 4000, "xatol": 1e-7, "fatol": 1e-10}
        found = minimize(lambda v: -sense * density(v), start, method="Nelder-Mead", options=options)
        best = max(best, -found.fun)
    return sense * best


@pytest.mark.long
@pytest.mark.parametrize(
    ("p", "sigma", "radius", "c"),
    [
        (1, 1.0, 0.5, 0.7), (1, 0.3, 0.5, 1.2), (2, 1.0, 0.5, 0.2), (2, 0.4, 0.6, 1.5), (2, 1.0, 0.8, 0.0),
        (3, 0.5, 1.0, 1.0),
    ],
)  # fmt: skip
def test_worst_densities_are_those_of_a_search_over_all_moments(p: int, sigma: float, radius: float, c: float) -> None:
    table = WorstDensities.of(p, sigma, radius, radius)
    at = np.array([c])
    assert table.greatest(at)[0][0] == pytest.approx(by_search(p, sigma, radius, c, 1.0), abs=1e-4)
    assert table.least(at)[0][0] == pytest.approx(by_search(p, sigma, radius, c, -1.0), abs=1e-4)


def test_a_ball_without_radius_is_the_kernel() -> None:
    table = WorstDensities.of(3, 0.5, 0.0, 0.0)
    c = np.array([0.0, 0.4, 2.0, 9.0])
    known = -3.0 * np.log(0.5) - 0.5 * (c / 0.5) ** 2
    for value, slope in (table.greatest(c), table.least(c)):
        assert value == pytest.approx(known, abs=1e-12)
        assert slope == pytest.approx(-c / 0.25, abs=1e-12)


def test_worse_with_the_radius_and_beside_each_other() -> None:
    c = np.linspace(0.0, 3.0, 40)
    narrow, wide = WorstDensities.of(4, 1.0, 0.2, 0.2), WorstDensities.of(4, 1.0, 0.7, 0.7)
    assert (wide.greatest(c)[0] >= narrow.greatest(c)[0] - 1e-9).all()
    assert (wide.least(c)[0] <= narrow.least(c)[0] + 1e-9).all()
    assert (narrow.least(c)[0] < narrow.greatest(c)[0]).all()


# ---- odds and steps --------------------------------------------------------------------------------------------------
def test_the_gradient_is_that_of_differences() -> None:
    rng = np.random.default_rng(0)
    odds = PosteriorOdds(WorstDensities.of(3, 0.6, 0.4, 0.7), rng.uniform(size=(9, 3)), rng.uniform(size=(7, 3)))
    z = np.array([0.3, 0.8, 1.1])
    _, slope = odds.with_slope(z)
    for k in range(3):
        step = 1e-4 * np.eye(3)[k]
        difference = (odds.with_slope(z + step)[0] - odds.with_slope(z - step)[0]) / 2e-4
        assert slope[k] == pytest.approx(difference, abs=2e-3)


number = st.floats(-2.0, 2.0, allow_subnormal=False)


@draws(60)
@given(
    point=st.lists(number, min_size=3, max_size=3),
    share=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
    budget=st.floats(0.0, 3.0),
)
def test_a_projection_is_within_and_no_point_is_nearer(point: Any, share: Any, budget: float) -> None:
    low, high = np.array([0.0, -1.0, 0.5]), np.array([1.0, 1.0, 0.5])
    centre = low + np.array(share) * (high - low)
    found = projected(np.array(point), centre, budget, low, high)
    assert (found >= low - 1e-12).all()
    assert (found <= high + 1e-12).all()
    assert np.abs(found - centre).sum() <= budget + 1e-9
    rng = np.random.default_rng(0)
    others = rng.uniform(low, high, size=(300, 3))
    others = others[np.abs(others - centre).sum(axis=1) <= budget]
    for other in [*others, centre]:  # the angle at the projection of a convex set is not acute
        assert (np.array(point) - found) @ (other - found) <= 1e-8


# ---- frames ----------------------------------------------------------------------------------------------------------
def people() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"income": rng.uniform(10.0, 90.0, 150), "kids": rng.integers(0, 5, 150), "age": rng.uniform(20.0, 70.0, 150)}
    )
    return frame, frame["income"] - 5.0 * frame["kids"] > 40.0


@pytest.mark.long(every=2)
@pytest.mark.parametrize("model", [LogisticRegression(max_iter=5000), RandomForestClassifier(20, random_state=0)])
def test_advice_is_legal_and_works(model: Any) -> None:
    frame, granted = people()
    model.fit(frame, granted)
    space = FeatureSpace.infer(frame, moves={"age": "fixed"})
    rows = frame.iloc[:10]
    found = Rbr(model, frame, space=space, steps=200).recourse(rows, target=True)
    assert found.dtypes.equals(rows.dtypes)
    assert found.index.equals(rows.index)
    assert (found["age"] == rows["age"]).all()
    already = model.predict(rows)
    assert found[already].equals(rows[already])
    assert model.predict(found).mean() >= 0.9


def test_steps_lower_the_odds_and_the_allowance_holds() -> None:
    frame, granted = people()
    frame = frame[["income", "age"]]
    model = LogisticRegression(max_iter=5000).fit(frame, granted)
    row = frame[~model.predict(frame)].iloc[[0]]
    lengths = []
    for allowance in (0.0, 0.3):
        rival = Rbr(model, frame, allowance=allowance, steps=300)
        sample = rival.sampler.near(rival._prepared(rival.box(True)), row)
        home = rival.columns.encode(row)[0]
        boundary = rival.columns.encode(pd.DataFrame([sample.boundary]).astype(float))[0]
        z = rival.columns.encode(rival.recourse(row, target=True))[0]
        lengths.append(np.abs(z - home).sum())
        assert lengths[-1] <= np.abs(boundary - home).sum() + allowance + 1e-9
        points = rival.columns.encode(sample.points)
        odds = PosteriorOdds(rival.densities, points[~sample.favourable], points[sample.favourable])
        assert odds.with_slope(z)[0] <= odds.with_slope(boundary)[0] + 1e-9
    assert lengths[1] > lengths[0] + 0.05


def test_a_model_that_says_the_same_of_everybody_leaves_rows_as_they_are() -> None:
    frame, granted = people()
    model = LogisticRegression(max_iter=5000).fit(frame, granted)
    model.intercept_ -= 1e6
    assert Rbr(model, frame, steps=1).recourse(frame.head(2), target=True).equals(frame.head(2))


@pytest.mark.parametrize(
    "option", ["sigma", "unfavourable_radius", "favourable_radius", "allowance", "steps", "n_samples"]
)
def test_options_out_of_range_are_refused(option: str) -> None:
    frame, granted = people()
    model = LogisticRegression(max_iter=5000).fit(frame, granted)
    with pytest.raises(CeoptError, match=f"Rbr needs {option}"):
        Rbr(model, frame, **{option: -1})
