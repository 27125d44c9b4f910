"""The margin, and what rounds a score: told apart by what a row adds up, and by what the model itself does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

import ceopt
from ceopt.formulations import Factual, Reaches, embed
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.ties import (
    default_margin,
    encoding_rounding,
    has_negligible_terms,
    margin_near,
    row_relaxation,
    score_resolution,
    summation_rounding,
)
from ceopt.formulations.space.reachable import Levels, reach_of

SCALERS = [MinMaxScaler, StandardScaler, RobustScaler]
SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=0, upper=9) for name in ("a", "b")])
HOME = {"a": 0.0, "b": 0.0}


def narrow(scaler: Any, rel: float, base: float = 80.0) -> tuple[pd.DataFrame, Any]:
    """Return a column that varies by a share of itself, and a model that reads it through a scaler."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"level": base * (1.0 + rel * rng.uniform(-1.0, 1.0, 200))})
    return frame, make_pipeline(scaler(), LogisticRegression()).fit(frame, frame["level"] > frame["level"].median())


@pytest.mark.parametrize("base", [65.0, 127.0])  # by how much 53 bits round is another share of each
@pytest.mark.parametrize("rel", [1e-9, 1e-12])
@pytest.mark.parametrize("scaler", SCALERS)
def test_the_models_own_score_is_off_by_as_much_as_is_said_and_no_more(scaler: Any, rel: float, base: float) -> None:
    """The score of a real number between two floats, and the model's own at the nearer one."""
    frame, model = narrow(scaler, rel, base)
    space = ceopt.FeatureSpace.infer(frame)
    predictor = read(model, space)
    factual = space.row(frame.iloc[[0]])
    weight, constant = Fraction(float(model[-1].coef_[0, 0])), Fraction(float(model[-1].intercept_[0]))
    slope, offset = Fraction(1), Fraction(0)
    for step in predictor.encoding.columns[0].steps:
        slope, offset = step.compose(slope, offset)
    levels = np.random.default_rng(1).uniform(frame["level"].min(), frame["level"].max(), 1000)
    own = model.decision_function(pd.DataFrame({"level": levels}))
    worst = 0.0
    for level, after, score in zip(levels, np.nextafter(levels, np.inf), own, strict=True):
        for number in (Fraction(level), (Fraction(level) + Fraction(after)) / 2):
            real = weight * (slope * number + offset) + constant
            worst = max(worst, abs(float(real - Fraction(score))))

    steps = encoding_rounding(predictor, factual, reach_of(space, factual))

    assert 0.98 * steps < worst < 1.001 * steps


@pytest.mark.parametrize("scaler", SCALERS)
def test_a_narrow_column_that_counts_from_the_person_widens_no_margin(scaler: Any) -> None:
    """As it stands its terms are of size 1 / rel, and a margin would follow them; its moves are ordinary numbers."""
    frame, model = narrow(scaler, 1e-7)
    space = ceopt.FeatureSpace.infer(frame)
    predictor = read(model, space)
    factual = space.row(frame.iloc[[0]])
    coordinates = np.array([[factual["level"]]])

    from_the_person = margin_near(predictor, 1.0, coordinates, reach_of(space, factual))
    as_it_stands = margin_near(predictor, 1.0, coordinates)

    assert from_the_person == 2.5e-6
    # Of a sum of terms as large as weight x slope x 80 no more than 11 digits are sure.
    slope, _ = predictor.encoding.columns[0].affine()
    terms = abs(float(model[-1].coef_[0, 0]) * slope * factual["level"])
    assert as_it_stands == pytest.approx(1e-11 * terms, rel=1e-2)
    assert as_it_stands > 10.0 * from_the_person


def up_to(point: dict[str, float]) -> Any:
    """Return columns that reach no farther from 0 than a point."""
    features = [ceopt.Feature(name, kind="continuous", lower=-at, upper=at) for name, at in point.items()]
    return ceopt.FeatureSpace(features)


def test_a_column_that_cannot_move_is_in_no_row_and_one_that_counts_from_zero_is_as_it_stands() -> None:
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=-1e9, upper=1e9) for name in ("a", "b")])
    predictor = read(Affine([3.0, 7.0], 0.5), space)
    point = {"a": 1e8, "b": 1e7}
    coordinates = np.array([list(point.values())])
    fixed = space.update("a", mutable=False)

    assert score_resolution(predictor, coordinates, reach_of(space, point)) == pytest.approx(1e-11 * 3.7e8)
    assert row_relaxation(predictor, point, reach_of(up_to(point), point)) == pytest.approx(1e-9 * 3.7e8)
    # What the model itself adds up does not shrink by what is fixed.
    own = 2.0**-48 * (3.7e8 + 0.5)
    assert score_resolution(predictor, coordinates, reach_of(fixed, point)) == pytest.approx(max(1e-11 * 7e7, own))


def test_a_constant_is_a_term_of_the_models_own_sum_but_of_no_row_whose_columns_have_a_known_reach() -> None:
    predictor = read(Affine([3.0, 7.0], 1e3), SPACE)
    point = {"a": 1.0, "b": 1.0}
    coordinates = np.array([[1.0, 1.0]])

    known = score_resolution(predictor, coordinates, reach_of(SPACE, point))
    unknown = score_resolution(predictor, coordinates)

    assert known == pytest.approx(1e-11 * 10.0, rel=1e-9, abs=0.0)
    assert unknown == pytest.approx(1e-11 * 1010.0, rel=1e-9, abs=0.0)
    assert summation_rounding(predictor, coordinates) == pytest.approx(2.0**-48 * 1010.0, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("scaler", SCALERS)
def test_a_scaled_column_of_ordinary_range_is_in_a_row_as_it_stands_and_takes_no_steps(scaler: Any) -> None:
    frame, model = narrow(scaler, 0.5)
    space = ceopt.FeatureSpace.infer(frame)
    predictor = read(model, space)
    slope, offset = predictor.encoding.columns[0].affine()
    level = -offset / slope  # which the scaler makes 0
    factual = {"level": level}
    reach = reach_of(space, factual)
    term = abs(float(model[-1].coef_[0, 0]) * slope * level)

    assert score_resolution(predictor, np.array([[level]]), reach) == pytest.approx(1e-11 * term, rel=1e-9, abs=0.0)
    assert encoding_rounding(predictor, factual, reach) == 0.0


@pytest.mark.parametrize(("size", "margin"), [(1e-9, 1e-12), (9e-3, 9e-6), (0.02, 1e-5), (1e3, 1e-5), (0.0, 1e-5)])
def test_small_scores_have_a_thousandth_of_their_size_for_a_margin(size: float, margin: float) -> None:
    predictor = read(Affine([size / 9.0, size / 18.0], 0.0), SPACE)
    assert default_margin(predictor) == pytest.approx(margin, rel=1e-9, abs=0.0)


@pytest.mark.parametrize(
    ("weights", "upper", "said"),
    [
        ([1.0, 1e-11], 9.0, False),
        ([1.0, 1e-13], 9.0, True),
        ([1e-6, 1e-15], 9.0, False),  # small, but not beside the other
        ([1.0, 1e-13], 9e6, False),  # a column that is as wide makes up for its weight
        ([1.0, 0.0], 9.0, False),
        ([0.0, 0.0], 9.0, False),
    ],
)
def test_a_column_is_negligible_where_its_share_of_the_score_is_and_no_tree_is(
    weights: list[float], upper: float, said: bool
) -> None:
    space = SPACE.update("b", upper=upper)
    network = ReluNetwork([[weights, [1.0, 1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [0.0]])
    stump = {"feature": 1, "threshold": 4.5, "left": {"value": 1.0}, "right": {"value": 1e-13}}
    assert has_negligible_terms(read(Affine(weights, 0.0), space)) is said
    assert has_negligible_terms(read(network, space)) is said
    assert has_negligible_terms(read(TreeEnsemble([stump], n_inputs=2), space)) is False


# ---- what a row may be missed by, anywhere in reach ------------------------------------------------------------------
def cancelling() -> tuple[pd.DataFrame, Any, Any]:
    """Return all rows of a level and a whole number, a model in which the level adds 1e16 and takes it, and a space."""
    rows = pd.DataFrame([(c, k) for c in "AB" for k in range(4)], columns=["c", "k"])
    level = OneHotEncoder(sparse_output=False)
    columns = make_column_transformer((level, ["c"]), ("passthrough", ["k"]), (level, ["c"]))
    model = make_pipeline(columns, LinearRegression()).fit(rows, np.arange(8.0))
    model[-1].coef_ = np.array([0.0, 1e16, 0.4, 0.0, -1e16])
    model[-1].intercept_ = -1.5
    features = [
        ceopt.Feature("c", kind="categorical", levels=["A", "B"]),
        ceopt.Feature("k", kind="integer", lower=0, upper=3),
    ]
    return rows, model, ceopt.FeatureSpace(features)


def test_a_level_that_the_person_does_not_have_counts_with_its_rounding() -> None:
    """In real numbers the level does nothing; the model's own sum of 1e16 and 1.2 is 1e16 + 2."""
    rows, model, space = cancelling()
    factual = space.row(rows.iloc[[0]])
    own = np.array([model.predict(rows.iloc[[place]])[0] for place in range(len(rows))])
    off = np.abs(own - (0.4 * rows["k"] - 1.5)).max()
    assert off > 0.5

    assert row_relaxation(read(model, space), factual, reach_of(space, factual)) > off

    result = ceopt.explain(model, rows.iloc[[0]], space, target=ceopt.AtLeast(0.5), cost=ceopt.L1(scale="none"))
    assert (result.status, dict(result[0].values)) == ("optimal", {"c": "B", "k": 3})


def test_levels_count_with_the_largest_in_reach_and_exclude_each_other() -> None:
    levels = [0.0, 1e6, 3e9]
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="ordinal", levels=levels) for name in ("a", "b")])
    network = ReluNetwork([[[1.0, -1.0], [0.5, 0.0]], [[1.0, 2.0]]], [[0.0, 0.0], [0.0]])
    point = {"a": 0.0, "b": 0.0}
    reach = reach_of(space, point)

    assert row_relaxation(read(Affine([1.0, -2.0], 0.0), space), point, reach) == pytest.approx(1e-9 * 9e9)
    assert row_relaxation(read(network, space), point, reach) == pytest.approx(1e-9 * (6e9 + 2.0 * 1.5e9))

    fewer = {**reach, "b": Levels((0, 1))}
    assert row_relaxation(read(Affine([1.0, -2.0], 0.0), space), point, fewer) == pytest.approx(1e-9 * (3e9 + 2e6))


def test_columns_that_are_large_at_opposite_ends_count_together() -> None:
    ends = {"a": (-1e8, 1.0), "b": (-1.0, 1e8)}
    space = ceopt.FeatureSpace(
        [ceopt.Feature(name, kind="continuous", lower=low, upper=high) for name, (low, high) in ends.items()]
    )

    below = row_relaxation(read(Affine([1.0, 1.0], 0.0), space), HOME, reach_of(space, HOME))

    assert below == pytest.approx(1e-9 * 2e8)


@pytest.mark.parametrize("size", [1e6, 1e12])
def test_a_scaled_target_rounds_in_its_own_units(size: float) -> None:
    """The regressor's scores are of size 1; the model's are of the target's size, and so is what they round."""
    frame, _ = narrow(StandardScaler, 1e-9)
    wanted = size * (3.0 + np.random.default_rng(1).normal(size=len(frame)))
    regressor = make_pipeline(StandardScaler(), LinearRegression())
    model = TransformedTargetRegressor(regressor, transformer=StandardScaler(), check_inverse=False).fit(frame, wanted)
    space = ceopt.FeatureSpace.infer(frame)
    factual = space.row(frame.iloc[[0]])
    coordinates = np.array([[factual["level"]]])
    reach = reach_of(space, factual)
    whole, inner = read(model, space), read(model.regressor_, space)
    scale, mean = float(model.transformer_.scale_[0]), float(model.transformer_.mean_[0])

    assert encoding_rounding(whole, factual, reach) == pytest.approx(scale * encoding_rounding(inner, factual, reach))
    offset = 2.0**-48 * abs(mean)
    assert summation_rounding(whole, coordinates) == pytest.approx(
        scale * summation_rounding(inner, coordinates) + offset
    )
    assert row_relaxation(whole, factual, reach) == pytest.approx(
        scale * row_relaxation(inner, factual, reach) + offset
    )


# ---- rows ------------------------------------------------------------------------------------------------------------
def stated(model: Any, target: Any, **words: Any) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, HOME)
    m.predictor = embed(model, m.x)
    m.reaches = Reaches(m.predictor, target, **words)
    return m


def missed(m: Any, point: dict[str, float]) -> float:
    """Return by how much the row over the score is missed at a point, in its own unit; below 0 where it is met."""
    m.x.place(point)
    m.predictor.place(point)
    (row,) = m.reaches.valid.values()
    return float(pyo.value(row.lower) - pyo.value(row.body))


@pytest.mark.parametrize("size", [1e-4, 1e-7])
def test_small_scores_without_a_margin_are_stated_in_their_own_size(size: float) -> None:
    """In the score's unit every point would meet the row within a solver's tolerance."""
    m = stated(Affine([1.25 * size, 0.75 * size], -9.0 * size), ceopt.AtLeast(0.0), margin=0.0)
    assert 0.5 < missed(m, {"a": 0.0, "b": 0.0}) < 2.0
    assert missed(m, {"a": 9.0, "b": 9.0}) < -0.5


def test_ordinary_scores_are_stated_as_they_are() -> None:
    for margin in (0.0, 1e-5, 0.5):
        m = stated(Affine([1.25, 0.75], -9.0), ceopt.AtLeast(0.0), margin=margin)
        assert missed(m, {"a": 1.0, "b": 1.0}) == pytest.approx(7.0 + margin)
    small = stated(Affine([1.25e-4, 0.75e-4], -9e-4), ceopt.AtLeast(0.0), margin=1e-5)  # no tolerance hides this one
    assert missed(small, {"a": 1.0, "b": 1.0}) == pytest.approx(7e-4 + 1e-5)


@pytest.mark.parametrize("half", [1e-9, 1e-12])
def test_two_scores_on_both_sides_of_zero_are_as_far_apart_as_a_solver_sees(half: float) -> None:
    """The row stands at 0, so that nothing but the scores says how large its numbers are."""
    near = {"feature": 0, "threshold": 4.5, "left": {"value": -half}, "right": {"value": half}}
    far = {"feature": 1, "threshold": 4.5, "left": {"value": 0.0}, "right": {"value": 1e-3}}
    m = stated(TreeEnsemble([near, far], n_inputs=2), ceopt.AtLeast(0.0))
    assert 5e-5 <= missed(m, {"a": 0.0, "b": 0.0}) <= 1e-4
    assert -1e-4 <= missed(m, {"a": 9.0, "b": 0.0}) <= -5e-5


def test_a_margin_between_labels_is_one_of_their_scores() -> None:
    """Three labels, each with a score: the margin is what the wanted one has more than each other one."""
    model = Affine([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], [0.0, 3.0, 0.0], labels=("no", "yes", "more"))
    result = ceopt.explain(model, HOME, SPACE, target="no", margin=0.5, cost=ceopt.L1(scale="none"))
    assert result.status == "optimal"
    assert result.margin == 0.5
    assert result[0].values["a"] == pytest.approx(3.5, rel=1e-9)
