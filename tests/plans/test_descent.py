"""COPA's published descent as a method of ``copa_plan``: step by step as published, and then within the rules."""

import numpy as np
import pytest

from ceopt import CeoptError
from ceopt.plans import copa_plan

MEAN = np.array([1.5, -0.5, 0.8, -0.9])
ROOT = np.random.default_rng(0).normal(size=(4, 4))
COVARIANCE = 0.05 * ROOT @ ROOT.T + 0.01 * np.eye(4)
FACTUAL = np.array([0.2, 0.7, 0.1, 1.0])
BOX = {"fixed": [3], "bounds": (0.0, 1.0), "margin": 0.1}


def descent(factual=FACTUAL, mean=MEAN, covariance=COVARIANCE, **changed):
    options = {"n": 3, "validity_weight": 0.2, "diversity_weight": 2.0, "method": "descent", **BOX} | changed
    return copa_plan(factual, mean, covariance, **options)


# ---- as published ----------------------------------------------------------------------------------------------------
def loss(points):
    full = np.column_stack([points, np.ones(len(points))])
    ratios = full @ MEAN / np.sqrt(np.einsum("ij,jk,ik->i", full, COVARIANCE, full))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    diversity = np.linalg.det(1.0 / (1.0 + apart) + 1e-4 * np.eye(len(points)))
    return np.linalg.norm(points - FACTUAL[:-1], axis=1).mean() - 0.2 * ratios.min() - 2.0 * diversity


def slope(points, step=1e-6):
    found = np.zeros_like(points)
    for place in np.ndindex(points.shape):
        up, down = points.copy(), points.copy()
        up[place] += step
        down[place] -= step
        found[place] = (loss(up) - loss(down)) / (2.0 * step)
    return found


def test_each_step_is_that_of_the_published_code(monkeypatch):
    """Noise, Adam, the projection along the mean's slopes, and then the clamp."""
    monkeypatch.setattr("ceopt.plans.copa_search._DESCENT_STEPS", 40)
    points = FACTUAL[:-1] + np.random.default_rng(7).standard_normal((3, 3))
    first, second = np.zeros((3, 3)), np.zeros((3, 3))
    for count in range(1, 41):
        pull = slope(points)
        first, second = 0.9 * first + 0.1 * pull, 0.999 * second + 0.001 * pull**2
        points = points - 0.005 * first / (1 - 0.9**count) / (np.sqrt(second / (1 - 0.999**count)) + 1e-8)
        for j, point in enumerate(points):
            lacks = min(0.0, MEAN[:-1] @ point + MEAN[-1] - 0.1)
            points[j] = point - lacks * MEAN[:-1] / (MEAN[:-1] @ MEAN[:-1])
        points = np.clip(points, 0.0, 1.0)

    found = descent(random_state=7)
    lacks = 0.1 - points @ MEAN[:-1] - MEAN[-1]
    is_in = lacks <= 1e-9  # where the projection was the last to move it, up to rounding
    assert is_in.tolist() == [True, False, True]
    assert found.plan[is_in, :-1] == pytest.approx(points[is_in], abs=1e-6)
    assert found.plan[:, :-1] == pytest.approx(points, abs=lacks.max())
    assert found.reason.startswith(f"The descent ended up to {lacks.max():.3g} short of the margin")


def test_it_stops_where_the_objective_stands_still(monkeypatch):
    """One column: the least proximity is at the margin, where the projection holds it after some hundred steps."""
    options = {"n": 1, "validity_weight": 0.0, "diversity_weight": 0.0, "fixed": [1]}
    short = descent([0.1, 1.0], [1.0, -0.5], np.eye(2), **options)
    monkeypatch.setattr("ceopt.plans.copa_search._DESCENT_STEPS", 5000)
    assert short.plan == pytest.approx(descent([0.1, 1.0], [1.0, -0.5], np.eye(2), **options).plan, abs=1e-12)
    assert short.plan[0, 0] == pytest.approx(0.6)


# ---- what is returned ------------------------------------------------------------------------------------------------
def test_the_same_state_is_the_same_plan():
    assert (descent(random_state=3).plan == descent(random_state=3).plan).all()
    assert (descent(random_state=3).plan != descent(random_state=4).plan).any()


@pytest.mark.long
def test_it_is_no_better_than_the_search_by_the_same_objective():
    found = [descent(n=2, random_state=state).objective for state in range(3)]

    assert min(found) >= descent(n=2, method="gradient").objective - 1e-6


def test_what_the_clamp_pushed_out_is_put_back_and_said():
    """A step along (1, 0.1) is clamped at 1 in the first column, and the second has to make up for it."""
    mean, factual = np.array([1.0, 0.1, -1.05]), np.array([0.5, 0.0, 1.0])
    found = descent(factual, mean, 1e-4 * np.eye(3), n=2, validity_weight=0.0, margin=0.04, fixed=[2])

    assert "short of the margin; its plan was put back on it." in found.reason
    assert (found.plan @ mean >= 0.04 - 1e-9).all()
    assert found.status == "feasible"


def test_categories_are_settled_and_what_is_fixed_stays():
    mean, covariance = np.array([1.0, 0.4, -0.3, 0.6, -0.5]), 0.1 * np.eye(5)
    factual = np.array([0.3, 0.0, 1.0, 0.0, 1.0])
    found = descent(factual, mean, covariance, fixed=[0, 4], groups=[[1, 2, 3]])

    assert (found.plan[:, [0, 4]] == factual[[0, 4]]).all()
    assert np.sort(found.plan[:, 1:4], axis=1).tolist() == [[0.0, 0.0, 1.0]] * 3


def test_a_margin_that_no_category_meets_is_infeasible():
    mean, covariance = np.array([0.4, -0.3, -2.0]), 0.1 * np.eye(3)
    found = descent([0.0, 1.0, 1.0], mean, covariance, fixed=[2], groups=[[0, 1]])

    assert (found.status, found.plan) == ("infeasible", None)


def test_without_diversity_one_counterfactual_is_repeated():
    found = descent(diversity_weight=0.0)

    assert (found.plan == found.plan[0]).all()


def test_a_feature_map_is_left_to_the_search():
    with pytest.raises(CeoptError, match="method 'gradient' for a feature_map"):
        descent(feature_map=(lambda x: x, lambda x: np.eye(len(x))))
