"""Probabilities as expressions: within their proved error of the library's own at every point, in both directions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations import Factual, embed
from ceopt.formulations.predictors import Affine, ReluNetwork
from ceopt.formulations.predictors.embed.probability import pieces_of
from ceopt.solvers import compile_model, solve
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    UnboundedFeatureError,
    UnknownNameError,
    UnsupportedModelError,
    UnsupportedProblemError,
)
from ceopt.solvers.registry import SOLVERS

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("age", kind="integer", lower=0, upper=5),
        ceopt.Feature("rooms", kind="integer", lower=1, upper=4),
        ceopt.Feature("size", kind="ordinal", levels=(1, 2, 4)),
    ]
)
POINTS = pd.MultiIndex.from_product([range(6), range(1, 5), (1, 2, 4)], names=SPACE.names).to_frame(index=False)
VALUE = np.sin(POINTS["age"] * POINTS["rooms"]) + 0.3 * POINTS["size"] - 0.4
MODELS: dict[str, Any] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(C=5.0)),
    "network": lambda: MLPClassifier((4,), solver="lbfgs", alpha=0.1, max_iter=5000, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": lambda: RandomForestClassifier(6, max_depth=4, random_state=0),
    "soft votes": lambda: VotingClassifier(
        [("a", DecisionTreeClassifier(max_depth=2)), ("c", RandomForestClassifier(3, random_state=0))], voting="soft"
    ),
}
EXACT = {"tree", "forest", "soft votes"}


CURVED = [name for name in ("scip", "gurobi") if SOLVERS[name].is_installed]


def fitted(name: str, classes: int = 2) -> Any:
    edges = np.quantile(VALUE, np.linspace(0, 1, classes + 1)[1:-1])
    return MODELS[name]().fit(POINTS, np.array(["low", "mid", "high"])[np.digitize(VALUE, edges)])


def stated(model: Any) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, {"age": 2, "rooms": 3, "size": 2})
    m.p = embed(model, m.x)
    return m


def assert_probabilities(m: Any, model: Any, error: float, solver: str = "auto") -> None:
    """Compare with the library at every point, and both optima of each label with those of enumeration."""
    found = m.p.probability_within(error)
    assert found.error <= error
    said = model.predict_proba(POINTS)
    for k, label in enumerate(model.classes_):
        values = []
        for row in POINTS.to_dict("records"):
            point = SPACE.row(row)
            m.x.place(point)
            m.p.place(point)
            values.append(pyo.value(found[label]))
        np.testing.assert_allclose(values, said[:, k], atol=found.error + 1e-6)
        for sense, best in ((pyo.maximize, max(values)), (pyo.minimize, min(values))):
            m.goal = pyo.Objective(expr=found[label], sense=sense)
            result = solve(m, solver)
            assert (str(result.status), result.objective) == ("optimal", pytest.approx(best, abs=1e-6))
            m.del_component("goal")


@pytest.mark.parametrize("name", MODELS)
def test_two_labels_have_the_probabilities_of_the_library(name: str) -> None:
    model = fitted(name)
    m = stated(model)
    assert_probabilities(m, model, 1e-3)
    assert (m.p.probability_within(1e-3).error == 0) == (name in EXACT)


def test_a_label_that_is_none_is_named() -> None:
    m = stated(fitted("logistic"))
    with pytest.raises(UnknownNameError, match="label is 7. Choose from"):
        _ = m.p.probability[7]


@pytest.mark.parametrize("solver", [name for name in ("highs", "scip", "gurobi") if SOLVERS[name].is_installed])
def test_every_solver_takes_the_pieces(solver: str) -> None:
    model = fitted("logistic")
    assert_probabilities(stated(model), model, 1e-4, solver)


@pytest.mark.parametrize("name", ["tree", "forest", "soft votes"])
def test_three_labels_of_shares_are_exact(name: str) -> None:
    model = fitted(name, 3)
    m = stated(model)
    assert_probabilities(m, model, 1e-3)
    assert m.p.probability.error == 0


@pytest.mark.parametrize("at_least", [0.2, 0.5, 0.6])
def test_a_row_over_a_probability_is_kept_within_the_error(at_least: float) -> None:
    model = fitted("logistic")
    m = stated(model)
    m.likely = pyo.Constraint(expr=m.p.probability["mid"] >= at_least + m.p.probability.error)
    m.least = pyo.Objective(expr=m.x.raw["age"] + m.x.raw["rooms"])
    result = solve(m)
    said = model.predict_proba(POINTS)[:, list(model.classes_).index("mid")]
    total = POINTS["age"] + POINTS["rooms"]
    assert str(result.status) == "optimal"
    surely = total[said >= at_least + 2 * m.p.probability.error].min()
    assert total[said >= at_least].min() - 1e-6 <= result.objective <= surely + 1e-6
    answer = SPACE.frame([m.x.decoded()])
    assert model.predict_proba(answer)[0, list(model.classes_).index("mid")] >= at_least - 1e-6


@pytest.mark.parametrize("error", [0.2, 0.02, 1e-3])
def test_one_score_has_one_probability_in_both_directions(error: float) -> None:
    m = pyo.ConcreteModel()
    m.income = pyo.Var(bounds=(0, 9))
    space = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0, upper=9)])
    model = Affine([1.0], -3.0, labels=("bad", "good"), probability="logistic")
    m.p = embed(model, {"income": m.income}, space=space)
    good = m.p.probability_within(error)["good"]
    m.at = pyo.Param(mutable=True, initialize=0.0)
    m.fixed = pyo.Constraint(expr=m.income == m.at)
    m.goal = pyo.Objective(expr=good)
    pieces = m.p.component("probability_0_pieces")
    for at in np.linspace(0, 9, 13):
        m.at.set_value(float(at))
        expected = np.interp(at - 3, pieces.scores, pieces.probabilities)
        for sense in (pyo.minimize, pyo.maximize):
            m.goal.sense = sense
            assert solve(m).objective == pytest.approx(expected, abs=1e-6)
        assert abs(expected - expit(at - 3)) <= error


@pytest.mark.parametrize("solver", CURVED)
def test_with_an_error_of_0_it_is_the_curve_in_both_directions(solver: str) -> None:
    m = pyo.ConcreteModel()
    m.income = pyo.Var(bounds=(0, 9))
    space = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0, upper=9)])
    m.p = embed(Affine([2.0], -6.0, labels=("bad", "good"), probability="logistic"), {"income": m.income}, space=space)
    found = m.p.probability_within(0)
    assert found.error == 0
    assert m.p.probability_within(0.0) is found
    m.at = pyo.Param(mutable=True, initialize=0.0)
    m.fixed = pyo.Constraint(expr=m.income == m.at)
    m.goal = pyo.Objective(expr=found["good"])
    for at in np.linspace(0, 9, 7):
        m.at.set_value(float(at))
        for sense in (pyo.minimize, pyo.maximize):
            m.goal.sense = sense
            result = solve(m, solver)
            assert str(result.status) == "optimal"
            assert result.objective == pytest.approx(expit(2 * at - 6), abs=3e-6)


@pytest.mark.parametrize("solver", CURVED)
def test_the_curve_of_a_program_has_the_optimum_of_enumeration(solver: str) -> None:
    model = fitted("logistic")
    assert_probabilities(stated(model), model, 0.0, solver)


def of(weights: Any, intercept: Any) -> Any:
    return Affine(weights, intercept, labels=("no", "yes"), probability="logistic")


def net(w: Any, v: Any, b: Any, c: Any) -> Any:
    return ReluNetwork([w, [v]], [b, [c]], labels=("no", "yes"), probability="logistic")


#: Two models, the row (or "above": the second at most 0.02 above the first), weights of both, greatest values.
LOST: list[Any] = [
    (  # scores up to 17.8: odds of 5e7
        of([-1.88, 0.78], -0.52), net([[0.81, -1.44], [1.02, -0.6]], [4.18, 1.46], [-0.54, 0.2], 0.21),
        "above", (-1.0, 0.0), (4, 4),
    ),
    (  # a score that is the same everywhere
        net([[0.72, -1.65]], [0.0], [0.27], -0.06), of([-2.6752, 0.0], 0.1308), None, (-2.0, 1.0), (2, 2),
    ),
    (of([-1.22, 0.68], -0.44), of([-1.18, -0.78], -0.81), 0.26, (0.0, 2.0), (4, 4)),  # a false optimum
    (net([[0.24, 0.41]], [-0.36], [-0.74], -0.63), of([-0.92, -2.04], -1.76), 0.27, (0.0, -1.0), (3, 3)),
]  # fmt: skip


@pytest.mark.parametrize("solver", CURVED)
@pytest.mark.parametrize("case", range(len(LOST)))
def test_no_point_of_two_curves_is_lost(case: int, solver: str) -> None:
    first, second, row, weights, most = LOST[case]
    features = [ceopt.Feature(f"x{k}", kind="integer", lower=0, upper=end) for k, end in enumerate(most)]
    grid = np.array([(i, j) for i in range(most[0] + 1) for j in range(most[1] + 1)], dtype=float)
    p, q = expit(first.score(grid).ravel()), expit(second.score(grid).ravel())
    m = pyo.ConcreteModel()
    m.x = Factual(ceopt.FeatureSpace(features), {"x0": 1, "x1": 2})
    m.first, m.second = embed(first, m.x), embed(second, m.x)
    own, other = (block.probability_within(0)["yes"] for block in (m.first, m.second))
    kept = np.full(len(grid), True)
    if row == "above":
        m.row = pyo.Constraint(expr=other - own <= 0.02)
        kept = q - p <= 0.02
    elif row is not None:
        m.row = pyo.Constraint(expr=own <= row)
        kept = p <= row
    m.goal = pyo.Objective(expr=weights[0] * own + weights[1] * other)
    result = solve(m, solver)
    assert result.status == "optimal"
    assert result.objective == pytest.approx((weights[0] * p + weights[1] * q)[kept].min(), abs=3e-6)


def test_a_curve_of_large_scores_another_link_and_another_solver_are_refused() -> None:
    def stated_at(weight: float, link: Any) -> Any:
        m = pyo.ConcreteModel()
        m.x = Factual(ceopt.FeatureSpace([ceopt.Feature("a", kind="continuous", lower=0, upper=9)]), {"a": 2.0})
        m.p = embed(Affine([weight], -3.0, labels=("bad", "good"), probability=link), m.x)
        return m

    with pytest.raises(InvalidValueError, match=r"scores within 18 of 0.*they range over \[-3, 24\]"):
        stated_at(3.0, "logistic").p.probability_within(0)
    with pytest.raises(UnsupportedModelError, match="a logistic link, where the error is 0"):
        stated_at(1.0, lambda s: expit(2.0 * s)).p.probability_within(0)
    m = stated_at(1.0, "logistic")
    m.goal = pyo.Objective(expr=m.p.probability_within(0)["good"])
    with pytest.raises(UnsupportedProblemError, match="scip"):
        solve(m, "highs")


@pytest.mark.parametrize("error", [1e-4, 0])
def test_start_values_keep_the_rows(error: float) -> None:
    m = stated(fitted("logistic"))
    m.goal = pyo.Objective(expr=m.p.probability_within(error)["mid"])
    compiled = compile_model(m)
    for row in POINTS.to_dict("records"):
        point = SPACE.row(row)
        m.x.place(point)
        m.p.place(point)
        assert compiled.violation([var.value for var in compiled.columns]) <= 1e-9


def test_it_is_stated_once_for_each_error_and_lives_on_in_copies() -> None:
    m = stated(fitted("logistic"))
    assert m.p.probability is m.p.probability
    assert m.p.probability is m.p.probability_within(1e-4)
    fine = len(m.p.probability_0_pieces.scores)
    assert m.p.probability_within(1e-2) is not m.p.probability
    assert len(m.p.probability_1_pieces.scores) < fine <= 70
    assert len(m.p.probability_0_pieces.digit) <= 7
    m.goal = pyo.Objective(expr=m.p.probability["mid"], sense=pyo.maximize)
    best = solve(m).objective
    for copy in (m.clone(), pickle.loads(pickle.dumps(m))):
        assert solve(copy).objective == pytest.approx(best)
        assert copy.p.probability.error == m.p.probability.error


def test_a_score_that_cannot_move_is_a_number() -> None:
    space = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0, upper=9, mutable=False)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"income": 2.0})
    m.p = embed(Affine([1.0], -3.0, labels=("bad", "good"), probability="logistic"), m.x)
    assert pyo.value(m.p.probability["good"]) == pytest.approx(expit(-1.0), abs=1e-6)
    assert pyo.value(m.p.probability["bad"]) == pytest.approx(expit(1.0), abs=1e-6)


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (LinearRegression(), "this one is a regressor"),
        (RidgeClassifier(), "this one is a classifier without them"),
        (LogisticRegression(max_iter=500), "of several labels by a softmax"),
    ],
)
def test_models_without_probabilities_are_refused(model: Any, what: str) -> None:
    m = stated(model.fit(POINTS, np.digitize(VALUE, [-0.2, 0.4]).astype(float)))
    with pytest.raises(UnsupportedModelError, match=f"{what}.*Use block.score or block.margin"):
        _ = m.p.probability


def test_an_error_out_of_range_and_a_column_without_bounds_are_refused() -> None:
    m = stated(fitted("logistic"))
    for error in (1e-6, 0.5, float("nan"), False):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="probability_within needs .* error"):
            m.p.probability_within(error)
    endless = pyo.ConcreteModel()
    endless.x = Factual(ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0)]), {"income": 2.0})
    endless.p = embed(Affine([1.0], -3.0, labels=("bad", "good"), probability="logistic"), endless.x)
    with pytest.raises(UnboundedFeatureError, match=r"block.probability needs finite bounds, but column 'income'"):
        _ = endless.p.probability


# -- the proof ---------------------------------------------------------------------------------------------------------
LINKS = {
    "logistic": expit,
    "float32": lambda s: expit(s.astype(np.float32)),
    "bent": lambda s: np.clip(0.5 + 0.3 * s, 0.1, 0.8),
    "flat": lambda s: np.full_like(s, 0.3),
    "steep": lambda s: expit(40.0 * (s - 0.37)),
}


@pytest.mark.parametrize("name", LINKS)
@example(low=-1000.0, width=2000.0, error=1e-4)
@example(low=-3.0, width=1e-7, error=1e-2)
@given(low=st.floats(-30, 10), width=st.floats(1e-3, 40), error=st.sampled_from([1e-4, 1e-3, 0.02, 0.3]))
@draws(60)
def test_the_proved_error_holds_on_a_fine_grid(name: str, low: float, width: float, error: float) -> None:
    link = LINKS[name]
    scores, values, proved = pieces_of(link, low, low + width, error)
    fine = np.unique(np.concatenate([np.linspace(low, low + width, 200_001), np.clip(scores, low, low + width)]))
    assert np.abs(np.interp(fine, scores, values) - link(fine)).max() <= proved <= error
    assert (np.diff(scores) > 0).all()
    assert (np.diff(values) >= 0).all()
    assert 0 <= values[0] <= values[-1] <= 1
    assert scores[0] <= low <= low + width <= scores[-1] or len(scores) == 1


def test_a_link_that_jumps_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"probability jumps at the score 0\.25"):
        pieces_of(lambda s: (s > 0.25) * 0.5, -1.0, 1.0, 1e-2)
