"""The worst shift: golden optima, enumeration, what must hold as the radius grows, the check by training again."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from published import golden
from sklearn.linear_model import LogisticRegression

from ceopt import CeoptError, Status
from ceopt.training import retrained, virtual_data_shift, worst_shift

POINTS = np.array([[0.5, 1.0], [1.0, -1.0], [-1.0, 0.5], [-0.5, -1.5]])
LABELS = np.array([1.0, 1.0, -1.0, -1.0])
QUESTIONS = [
    (loss, shift)
    for loss in ("squared", "hinge", "logistic")
    for shift in ("continuous", "grid", "label", "flip")
    if loss == "squared" or shift != "label"
]


def least(points: Any, labels: Any, at: Any, **training: Any) -> Any:
    """Scores by the least of the optimal intercepts."""
    found = retrained(points, labels, **training)
    return np.atleast_2d(at) @ found.weights + found.intercepts[0]


# ---- golden ----------------------------------------------------------------------------------------------------------
@pytest.mark.long(every=4)
@pytest.mark.parametrize("instance", golden("shift_attack"), ids=lambda i: i["id"])
def test_golden(instance: Any) -> None:
    inputs, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    found = worst_shift(
        inputs["X"], inputs["y"], inputs["x_cf"], radius=inputs["eps"], regularization=inputs["lam"],
        shift=inputs["kind"], intercept=inputs["intercept"],
    )  # fmt: skip
    assert found.status is Status.OPTIMAL
    assert found.score is not None
    if expected["certificate"] == "best_known":
        assert found.score <= expected["score"] + tol["score"]
    else:
        assert found.score == pytest.approx(expected["score"], abs=tol["score"], rel=0)
    for name in ("unshifted", "w_bound", "e_bound", "hat"):
        if name in expected:
            assert getattr(found, name) == pytest.approx(np.array(expected[name]), abs=tol[name], rel=0)
    if instance["unique"].get("shift"):
        assert found.shift == pytest.approx(np.array(expected["shift"]), abs=tol["shift"], rel=0)


def test_vertices_are_not_optimal_in_general() -> None:
    """In this instance the best of the 64 vertices is 0.004 above the optimum, at which two entries are inside."""
    (instance,) = [i for i in golden("shift_attack") if i["id"] == "shift_attack/dev-007"]
    inputs = instance["inputs"]
    X, at = np.array(inputs["X"]), np.array(inputs["x_cf"])
    training = {"loss": "squared", "regularization": inputs["lam"]}
    vertices = itertools.product((-inputs["eps"], inputs["eps"]), repeat=X.size)
    best = min(least(X + np.reshape(v, X.shape), inputs["y"], at, **training)[0] for v in vertices)
    found = worst_shift(X, inputs["y"], at, radius=inputs["eps"], **training)
    assert found.score is not None
    assert found.score < best - 0.004
    assert int((np.abs(found.shift) < inputs["eps"] - 0.01).sum()) == 2


# ---- enumeration -----------------------------------------------------------------------------------------------------
@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Two or three rows with ties and repeated points, and an explanation or two."""
    n = draw(st.integers(2, 3))
    d = draw(st.integers(1, 4 - n))
    half = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.5])
    X = draw(st.lists(st.lists(half, min_size=d, max_size=d), min_size=n, max_size=n))
    y = [-1.0, 1.0, draw(st.sampled_from([-1.0, 1.0]))][:n]
    objective = draw(st.sampled_from(["score", "invalid", "hinge"]))
    J = 1 if objective == "score" else 2
    at = draw(st.lists(st.lists(half, min_size=d, max_size=d), min_size=J, max_size=J))
    return {"X": np.array(X), "y": np.array(y), "at": np.array(at), "objective": objective}


def worth(objective: str, scores: Any) -> float:
    """What is asked for, the greater the worse."""
    if objective == "score":
        return -float(scores[0])
    if objective == "invalid":
        return float((scores <= 1e-6).sum())
    return float(np.maximum(0.0, 1.0 - scores).sum())


@draws(40)
@given(
    question=questions(),
    loss=st.sampled_from(["squared", "hinge"]),
    shift=st.sampled_from(["grid", "flip"]),
    lam=st.sampled_from([0.1, 1.0]),
    intercept=st.booleans(),
)
def test_the_optimum_is_that_of_enumeration(
    question: dict[str, Any], loss: str, shift: str, lam: float, intercept: bool
) -> None:
    check_against_enumeration(question, loss, shift, lam, intercept)


@pytest.mark.long
@draws(20)
@given(
    question=questions(),
    shift=st.sampled_from(["grid", "flip"]),
    lam=st.sampled_from([0.1, 1.0]),
    intercept=st.booleans(),
)
def test_the_optimum_of_the_logistic_loss_is_that_of_enumeration(
    question: dict[str, Any], shift: str, lam: float, intercept: bool
) -> None:
    check_against_enumeration(question, "logistic", shift, lam, intercept)


def check_against_enumeration(question: dict[str, Any], loss: str, shift: str, lam: float, intercept: bool) -> None:
    X, y, at, objective = question["X"], question["y"], question["at"], question["objective"]
    training = {"loss": loss, "regularization": lam, "intercept": intercept}
    cases = []
    if shift == "grid":
        for steps in itertools.product((-0.4, 0.0, 0.4), repeat=X.size):
            cases.append((X + np.reshape(steps, X.shape), y))
    else:
        for signs in itertools.product((-1.0, 1.0), repeat=len(y)):
            labels = y * signs
            is_lawful = loss == "squared" or not intercept or abs(labels.sum()) < len(y)
            if is_lawful and signs.count(-1.0) <= 2:
                cases.append((X, labels))
    worst = -np.inf
    for points, labels in cases:
        worst = max(worst, worth(objective, least(points, labels, at, **training)))
    radius = 0.4 if shift == "grid" else 2
    found = worst_shift(X, y, at, radius=radius, shift=shift, objective=objective, **training)
    assert found.status is Status.OPTIMAL
    assert found.scores is not None
    assert worth(objective, found.scores) == pytest.approx(worst, abs=1e-5)
    assert found.objective == pytest.approx(-worst if objective == "score" else worst, abs=1e-5)
    moved = (X + found.shift, y) if shift == "grid" else (X, y + found.shift)
    assert found.scores == pytest.approx(least(*moved, at, **training), abs=1e-9)
    assert found.score == min(found.scores)


@pytest.mark.long
@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
def test_no_continuous_shift_is_beyond_the_bound(loss: str) -> None:
    training = {"loss": loss, "regularization": 0.3}
    found = worst_shift(POINTS, LABELS, [1.0, 0.3], radius=0.3, **training)
    assert found.status is Status.OPTIMAL
    assert found.score == pytest.approx(found.bound, abs=1e-5)
    assert np.abs(found.shift).max() <= 0.3
    rng = np.random.default_rng(0)
    moves = [*rng.uniform(-0.3, 0.3, size=(60, 4, 2)), *rng.choice([-0.3, 0.3], size=(60, 4, 2))]
    scores = [least(POINTS + move, LABELS, [1.0, 0.3], **training)[0] for move in moves]
    assert min(scores) >= found.bound - 1e-6
    assert min(scores) <= 0.5 * (found.score + found.unshifted)  # the samples come some of the way


@pytest.mark.long
@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
def test_the_bound_holds_for_the_attacker_by_gradients(loss: str) -> None:
    """Algorithm 1 attacks a logistic regression; its shift is scored by classifiers trained to their optimum."""
    pytest.importorskip("jax")
    rng = np.random.default_rng([0, 6, 1, 0])
    y = np.where(np.arange(6) % 2, 1.0, -1.0)
    X = rng.normal(size=(6, 1)) + 0.8 * y[:, None]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)  # the range is 1, the unit of the attacker's shifts
    at = 0.5 * (X[y > 0.0].mean(axis=0) + X.mean(axis=0))
    training = {"loss": loss, "regularization": 0.05}
    found = worst_shift(X, y, at, radius=0.1, **training)
    rows = pd.DataFrame(X, columns=["a"])
    model = LogisticRegression(C=1.0 / (6 * 0.05), tol=1e-10).fit(rows, y)
    attack = virtual_data_shift(
        model, rows, y, pd.DataFrame([at], columns=["a"]), targets=[1.0], perturbation=0.1, learning_rate=1.0
    )
    assert np.abs(attack.shift).max() <= 0.1 + 1e-6
    (score,) = least(X + np.clip(attack.shift, -0.1, 0.1), y, at, **training)
    assert found.status is Status.OPTIMAL
    assert found.bound - 1e-6 <= score < found.unshifted - 0.3 * (found.unshifted - found.bound)


@pytest.mark.long
def test_scip_is_silent_about_the_logistic_loss(capfd: pytest.CaptureFixture[str]) -> None:
    worst_shift(POINTS, LABELS, [1.0, 0.2], radius=0.25, regularization=0.4, loss="logistic")
    assert capfd.readouterr() == ("", "")


def test_one_row_in_closed_form() -> None:
    """w = z y / (z^2 + lambda): its critical points are z = -+ root of lambda, and the interval ends."""
    for x, radius in ((0.3, 0.9), (-0.2, 0.3), (1.5, 0.4), (0.0, 5.0)):
        low, high = x - radius, x + radius
        candidates = [z for z in (low, high, -np.sqrt(0.5), np.sqrt(0.5)) if low <= z <= high]
        found = worst_shift([[x]], [1], [2.0], radius=radius, regularization=0.5, intercept=False)
        assert found.score == pytest.approx(min(2.0 * z / (z * z + 0.5) for z in candidates), abs=1e-6)


def test_the_label_shift_is_the_closed_form() -> None:
    found = worst_shift(POINTS, LABELS, [[1.0, 0.5]], radius=0.3, regularization=0.2, shift="label")
    assert found.hat is not None
    assert found.hat.shape == (1, 4)
    (h,) = found.hat
    assert found.unshifted == pytest.approx(h @ LABELS, abs=1e-9)
    assert found.score == pytest.approx(h @ LABELS - 0.3 * np.abs(h).sum(), abs=1e-8)


# ---- what must hold --------------------------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.parametrize(("loss", "shift"), QUESTIONS)
@pytest.mark.parametrize("intercept", [True, False])
def test_without_a_radius_nothing_moves(loss: str, shift: str, intercept: bool) -> None:
    training = {"loss": loss, "regularization": 0.4, "intercept": intercept}
    found = worst_shift(POINTS, LABELS, [1.0, 0.3], radius=0, shift=shift, **training)
    (known,) = least(POINTS, LABELS, [1.0, 0.3], **training)
    assert found.score == pytest.approx(known, abs=1e-7)
    assert found.unshifted == pytest.approx(known, abs=1e-9)
    assert found.bound == pytest.approx(known, abs=1e-5)
    assert not np.any(found.shift)


@pytest.mark.long
@pytest.mark.parametrize(("loss", "shift"), [q for q in QUESTIONS if q[1] != "grid"])  # grids are not in one another
def test_the_worst_score_falls_as_the_radius_grows(loss: str, shift: str) -> None:
    radii = (0, 1, 2) if shift == "flip" else (0.0, 0.1, 0.3, 0.6)
    scores = []
    for radius in radii:
        found = worst_shift(
            POINTS[:3, :1], LABELS[:3], [0.7], radius=radius, regularization=0.4, loss=loss, shift=shift
        )
        scores.append(found.score)
    assert all(after <= before + 1e-6 for before, after in itertools.pairwise(scores))
    assert scores[-1] < scores[0] - 0.1


def test_the_worst_of_several_optimal_intercepts_counts() -> None:
    """Weights of 1 / 2 leave every intercept from -1/2 to 1/2 optimal where both rows are short of their margins."""
    known = retrained([[1.0], [-1.0]], [1, -1], loss="hinge", regularization=2.0)
    assert known.intercepts == pytest.approx((-0.5, 0.5))
    found = worst_shift([[1.0], [-1.0]], [1, -1], [2.0], radius=0, regularization=2.0, loss="hinge", shift="grid")
    assert found.score == pytest.approx(0.5, abs=1e-6)  # 2 / 2 - 1 / 2
    assert found.intercept == pytest.approx(-0.5, abs=1e-6)


def test_explanations_that_hold_are_not_counted_as_invalid_in_large_units() -> None:
    X = np.array([[96111.8], [116299.8], [96854.7]])
    explained = [[824.6], [15029.3], [-1772.7]]
    found = worst_shift(
        X, [-1, -1, -1], explained, radius=30000.0, regularization=1.1e8, loss="hinge", shift="grid",
        objective="invalid", intercept=False,
    )  # fmt: skip
    assert found.scores is not None
    assert found.objective == (found.scores <= 0.0).sum() == found.bound == 2.0
    assert found.status is Status.OPTIMAL


@pytest.mark.long
def test_an_answer_that_training_does_not_confirm_is_not_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("ceopt.training.shifts")
    monkeypatch.setattr(module, "_moved", lambda question, _model: np.zeros(question.rows.X.shape))
    found = worst_shift(POINTS, LABELS, [1.0, 0.3], radius=0.3, regularization=0.4, shift="grid")
    assert found.status is Status.FEASIBLE
    assert found.score == pytest.approx(found.unshifted)
    assert "where the solver says" in found.reason
    assert found.bound is not None
    assert found.bound < found.unshifted - 0.1


@pytest.mark.long
def test_a_limit_of_time_leaves_what_is_in_hand() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.where(np.arange(12) % 2, 1.0, -1.0)
    found = worst_shift(X, y, np.ones(3), radius=0.5, regularization=0.1, time_limit_s=1.0)
    assert found.status in {Status.FEASIBLE, Status.TIME_LIMIT}
    assert found.reason
    if found.score is not None:
        assert found.bound is None or found.bound <= found.score


def test_a_result_prints_and_stays_as_it_is() -> None:
    found = worst_shift(POINTS, LABELS, [1.0, 0.3], radius=0.3, regularization=0.4, shift="label")
    assert "unshifted" in str(found)
    with pytest.raises(ValueError, match="read-only"):
        found.shift[0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 1, 0, 1]}, "worst_shift needs the classes -1 and 1 as y"),
        ({"radius": -1}, "worst_shift needs radius"),
        ({"solver": "clarabel"}, "Solver 'clarabel' needs a model of class"),
        ({"solver": "cplex"}, "a known solver, but solver is 'cplex'"),
        ({"time_limit_s": 0}, "time_limit_s"),
    ],
)
def test_what_asks_for_no_shift_is_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"X": POINTS, "y": LABELS, "counterfactuals": [1.0, 0.3], "radius": 0.1}
    arguments |= {"regularization": 1.0} | change
    with pytest.raises(CeoptError, match=message):
        worst_shift(**arguments)
