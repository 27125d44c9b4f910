"""Classifiers trained anew: golden optima, stationarity, scales, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from published import golden
from scipy.special import expit

from ceopt import CeoptError
from ceopt.training import retrained

LOSSES = ("squared", "hinge", "logistic")
X = np.array([[0.0, 1.0], [1.0, -1.0], [2.0, 0.5], [-1.0, 0.0], [0.5, 2.0]])
Y = np.array([-1.0, 1.0, 1.0, -1.0, 1.0])


def value(loss: str, X: Any, y: Any, lam: float, w: Any, b: float) -> float:
    """The objective, from its definition."""
    s = X @ w + b
    if loss == "squared":
        return float(np.mean((s - y) ** 2) + lam * w @ w)
    each = np.maximum(0.0, 1.0 - y * s) if loss == "hinge" else np.log1p(np.exp(-y * s))
    return float(np.mean(each) + 0.5 * lam * w @ w)


def test_the_hinge_optimum_is_found_beyond_a_quadratic_program_s_tolerance() -> None:
    """Three rows on their margins say what the weights are; the multiplier of one is 1e-8 beyond 1."""
    X = np.array([[0.2, 0.7], [1.3, -1.3], [-0.7, 0.74711968], [-0.8, -1.2]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    found = retrained(X, y, loss="hinge", regularization=0.3)
    on = np.column_stack([X[1:], np.ones(3)])
    known = np.linalg.solve(on, y[1:])
    assert found.weights == pytest.approx(known[:2], abs=1e-6)
    assert found.intercept == pytest.approx(known[2], abs=1e-6)
    losses = np.maximum(0.0, 1.0 - y * (X @ known[:2] + known[2]))
    assert found.objective <= losses.mean() + 0.15 * known[:2] @ known[:2] + 1e-12


def test_rows_on_which_a_quadratic_program_has_no_end_are_fitted() -> None:
    """HiGHS went round in circles at the optimum, w = 0 and b = 1, for ever."""
    found = retrained(
        [[10.223189001364707], [10.223161929304005], [9.655992450141166]], [-1, 1, 1], loss="hinge",
        regularization=3.8233705515307412,
    )  # fmt: skip
    assert found.objective == pytest.approx(2.0 / 3.0, rel=1e-12)
    assert found.weights == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("more", [0.0, 1e-16])
def test_rows_that_are_the_same_up_to_rounding_have_no_weight(loss: str, more: float) -> None:
    found = retrained(
        [[0.1030171609350107], [0.1030171609350107 + more], [0.1030171609350107]], [-1, -1, 1], loss=loss,
        regularization=1e-6,
    )  # fmt: skip
    assert abs(found.weights[0]) < 1e-6
    assert found.objective == pytest.approx(value(loss, np.zeros((3, 1)), np.array([-1, -1, 1]), 0.0, np.zeros(1),
        found.intercept))  # fmt: skip


@pytest.mark.parametrize("instance", golden("shift_inner"), ids=lambda i: i["id"])
def test_golden(instance: Any) -> None:
    inputs, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    found = retrained(inputs["X"], inputs["y"], loss=inputs["loss"], regularization=inputs["lam"])
    assert found.weights == pytest.approx(np.array(expected["w"]), abs=tol["w"], rel=0)
    assert found.objective == pytest.approx(expected["objective"], abs=tol["objective"], rel=0)
    if "b" in expected:
        assert found.intercept == pytest.approx(expected["b"], abs=tol["b"], rel=0)
        assert found.intercepts == (found.intercept, found.intercept)


@st.composite
def rows(draw: st.DrawFn) -> tuple[Any, Any]:
    """A few points of a lattice with repeated rows and constant columns, of both classes."""
    n = draw(st.integers(2, 6))
    d = draw(st.integers(1, 3))
    points = draw(st.lists(st.lists(st.integers(-2, 2), min_size=d, max_size=d), min_size=n, max_size=n))
    signs = draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n))
    signs[:2] = [-1.0, 1.0]
    return np.array(points, dtype=float), np.array(signs)


@draws(60)
@given(data=rows(), loss=st.sampled_from(LOSSES), lam=st.sampled_from([0.01, 0.3, 5.0]), intercept=st.booleans())
def test_no_step_away_is_better(data: Any, loss: str, lam: float, intercept: bool) -> None:
    """The objective is convex: what no small step in any direction betters is optimal."""
    points, y = data
    found = retrained(points, y, loss=loss, regularization=lam, intercept=intercept)
    best = value(loss, points, y, lam, found.weights, found.intercept)
    assert found.objective == pytest.approx(best, rel=1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            step = rng.normal(size=points.shape[1] + 1) * size
            moved = value(loss, points, y, lam, found.weights + step[1:], found.intercept + step[0] * intercept)
            assert moved >= best - 1e-11


@draws(60)
@given(data=rows(), lam=st.sampled_from([0.01, 0.3, 5.0]))
def test_the_intercepts_of_the_hinge_loss_are_all_that_are_optimal(data: Any, lam: float) -> None:
    points, y = data
    found = retrained(points, y, loss="hinge", regularization=lam)
    low, high = found.intercepts
    for b in (low, high):
        assert value("hinge", points, y, lam, found.weights, b) == pytest.approx(found.objective, abs=1e-7)
    for b in (low - 0.01, high + 0.01):
        assert value("hinge", points, y, lam, found.weights, b) > found.objective + 1e-4


def test_the_gradient_of_the_logistic_loss_is_zero() -> None:
    found = retrained(X, Y, loss="logistic", regularization=0.1)
    share = expit(-Y * (X @ found.weights + found.intercept))
    assert 0.1 * found.weights == pytest.approx(X.T @ (Y * share) / 5, abs=1e-12)
    assert float(Y @ share) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_and_the_place_of_the_columns_do_not_matter(loss: str, unit: float) -> None:
    known = retrained(X, Y, loss=loss, regularization=0.1)
    moved = retrained(unit * (X + 100.0), Y, loss=loss, regularization=0.1 * unit**2)
    assert moved.weights * unit == pytest.approx(known.weights, rel=1e-6)
    assert moved.objective == pytest.approx(known.objective, rel=1e-9)


def test_one_class_is_fitted_without_an_intercept() -> None:
    """l'(w) = -w for one row at 1: w = 1/2, 1 and the root of w = 1 / (1 + e^w)."""
    found = {}
    for loss in LOSSES:
        found[loss] = retrained([[1.0]], [1], loss=loss, regularization=1.0, intercept=False).weights[0]
    root = found["logistic"]
    assert found == {"squared": pytest.approx(0.5), "hinge": pytest.approx(1.0), "logistic": root}
    assert root == pytest.approx(expit(-root), abs=1e-9)


def test_labels_of_the_squared_loss_are_numbers() -> None:
    found = retrained([[0.0], [1.0]], [0.25, 0.75], loss="squared", regularization=1e-9)
    assert found.weights == pytest.approx([0.5], abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [-1, 1, 1, -1, 0]}, r"the classes -1 and 1 as y, but y\[4\] is 0"),
        ({"y": [1, 1, 1, 1, 1]}, "rows of both classes, but y is 1 in all rows"),
        ({"y": [1, -1]}, "y of shape 5, but its shape is"),
        ({"y": ["a", "b", "c", "d", "e"]}, "numbers as y"),
        ({"y": [-1, 1, 1, -1, np.nan]}, r"finite y, but y\[4\] is nan"),
        ({"X": [1.0, 2.0]}, "X of shape n by n"),
        ({"X": [[1.0], [np.inf]], "y": [1, -1]}, r"finite X, but X\[1, 0\] is inf"),
        ({"X": np.zeros((0, 2)), "y": []}, "rows and columns to train on"),
        ({"X": np.zeros((5, 0))}, "rows and columns to train on"),
        ({"X": [[1e200], [0.0]], "y": [1, -1]}, "numbers of at most"),
        ({"regularization": 0.0}, "regularization to be a number above 0"),
        ({"regularization": np.nan}, "regularization is nan"),
        ({"loss": "log"}, "Choose from: squared, hinge, logistic"),
        ({"intercept": 1}, "True or False as intercept"),
    ],
)
def test_what_trains_nothing_is_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"X": X, "y": Y, "loss": "hinge", "regularization": 0.1} | change
    with pytest.raises(CeoptError, match=message):
        retrained(**arguments)
