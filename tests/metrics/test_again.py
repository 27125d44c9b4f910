"""Robustness, stability and run time by hand."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.formulations.predictors import Affine
from ceopt.metrics import (
    invalidation_rate,
    local_fidelity,
    multiplicity_validity,
    plan_validity,
    robustness,
    run_time,
    run_time_ratio,
    stability,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError


def above(limit):
    return lambda rows: np.asarray(rows)[:, 0] > limit


MODELS = [above(limit) for limit in (1, 2, 3, 8)]
S = [[2.5], [5.0]]


def test_robustness_by_hand():
    # 2.5 passes two of four, 5 three; both pass two
    assert robustness(S, MODELS, True).tolist() == [2 / 4, 3 / 4]
    assert plan_validity(S, MODELS, True) == 2 / 4
    assert plan_validity([[2.5], [0.0]], MODELS, True) == 0


def test_all_together_is_not_the_mean_of_each():
    # one model favours only the first, the other only the second
    models = [lambda rows: rows[:, 0] < 3, lambda rows: rows[:, 0] > 3]

    assert robustness(S, models, True).mean() == 1 / 2
    assert plan_validity(S, models, True) == 0


def test_multiplicity_counts_a_model_that_turns_the_factual_away_from_favour():
    # of x = 1.5 the first model says yes, and yes of both: no change; the others say no of x
    assert multiplicity_validity([1.5], S, MODELS).tolist() == [1 / 4, 2 / 4]
    assert multiplicity_validity([9.0], [[0.0]], MODELS).tolist() == [1]  # every one loses it: a "success"


def test_invalidation_rate_is_the_tail_of_the_normal():
    # P(c + e <= 0) with sd 2 at c = 1: 1 - Phi(1/2)
    rate = invalidation_rate([[1.0], [4.0]], above(0), True, sd=2.0, n_samples=20_000)

    assert rate == pytest.approx(norm.sf([0.5, 2.0]), abs=4 * 0.5 / np.sqrt(20_000))
    assert (rate == invalidation_rate([[1.0], [4.0]], above(0), True, sd=[2.0], n_samples=20_000)).all()
    assert invalidation_rate([[1.0]], above(0), True, sd=0.0).tolist() == [0]
    assert (rate != invalidation_rate([[1.0], [4.0]], above(0), True, sd=2.0, n_samples=20_000, random_state=1)).any()


def test_noise_leaves_categories_and_the_callers_frame_alone():
    frame = pd.DataFrame({"pay": [1, 2], "job": ["a", "b"]})
    seen = []

    def model(rows):
        seen.append((rows["pay"].nunique(), rows["job"].unique().tolist()))
        return rows["job"] == "a"

    assert invalidation_rate(frame, model, True, sd=1.0, n_samples=50).tolist() == [0, 1]
    assert seen == [(50, ["a"]), (50, ["b"])]
    assert frame["pay"].tolist() == [1, 2]


def test_each_column_has_its_own_noise():
    # favoured by the second column only, which has none
    rate = invalidation_rate([[0.0, 1.0]], lambda rows: rows[:, 1] > 0.5, True, sd=[9.0, 0.0])

    assert rate.tolist() == [0]


def test_what_models_cannot_be():
    for metric in (robustness, plan_validity):
        with pytest.raises(InvalidTypeError, match="a list of models, but models is function"):
            metric(S, above(1), True)
        with pytest.raises(InvalidValueError, match=f"{metric.__name__} needs a model, but models is empty"):
            metric(S, [], True)
        with pytest.raises(InvalidValueError, match=f"{metric.__name__} needs a row in S"):
            metric(np.empty((0, 1)), MODELS, True)
    with pytest.raises(InvalidTypeError, match="multiplicity_validity needs a list of models"):
        multiplicity_validity([0.0], S, "models")
    for sd in (-1.0, [1.0, 2.0], np.nan):
        with pytest.raises(InvalidValueError, match="sd of at least 0, one or 1, but sd is"):
            invalidation_rate(S, above(0), True, sd=sd)
    with pytest.raises(InvalidValueError, match="a positive number of draws, but n_samples is 0"):
        invalidation_rate(S, above(0), True, sd=1.0, n_samples=0)


# ---- stability and fidelity ------------------------------------------------------------------------------------------
def test_stability_by_hand():
    # moves (3, 4) and (0, 1): the longer is 5
    assert stability([1, 1], [[4, 5], [1, 2]]) == 5
    # (3 | 4) / 5 = (.6 | .8) and (0 | 2) / 2 = (0 | 1): only weights are compared
    assert stability([3.0], [[0.0]], intercept=4.0, nearby_intercept=[2.0]) == pytest.approx(0.6)


def test_bad_surrogates():
    with pytest.raises(InvalidValueError, match="the shapes are \\(2,\\) and \\(1, 3\\)"):
        stability([1, 2], [[1, 2, 3]])
    with pytest.raises(InvalidValueError, match="m at least 1"):
        stability([1, 2], np.empty((0, 2)))
    with pytest.raises(InvalidTypeError, match="both intercepts or none"):
        stability([1.0], [[1.0]], intercept=1.0)
    with pytest.raises(InvalidValueError, match="1 intercepts, but there are 2"):
        stability([1.0], [[1.0]], intercept=1.0, nearby_intercept=[1.0, 2.0])
    with pytest.raises(InvalidValueError, match="a surrogate that is not zero"):
        stability([0.0], [[1.0]], intercept=0.0, nearby_intercept=[1.0])
    with pytest.raises(InvalidTypeError, match="numbers as weights"):
        stability("text", [[1.0]])
    with pytest.raises(InvalidValueError, match="finite numbers as nearby"):
        stability([1.0], [[np.nan]])


def test_local_fidelity_is_a_share_of_the_balls_volume():
    # in two dimensions, the half disc below 0 and the half disc above agree nowhere; the disc of half the radius is 1/4
    inside = lambda X: np.linalg.norm(X - 1.0, axis=1) < 1.0  # noqa: E731

    assert local_fidelity(lambda X: X[:, 0] > 1, lambda X: X[:, 0] < 1, [1.0, 1.0], 2.0) == 0
    share = local_fidelity(inside, lambda X: np.ones(len(X), bool), [1.0, 1.0], 2.0, n_samples=20_000)
    assert share == pytest.approx(1 / 4, abs=4 * 0.5 / np.sqrt(20_000))


def test_bad_fidelity():
    with pytest.raises(InvalidValueError, match="a positive radius"):
        local_fidelity(above(0), above(0), [0.0], 0.0)
    with pytest.raises(InvalidValueError, match="a label for each of 1000 points, but the shape is \\(1000, 1\\)"):
        local_fidelity(above(0), lambda X: X, [0.0], 1.0)


# ---- run time --------------------------------------------------------------------------------------------------------
def test_run_time_by_hand():
    assert run_time(2) == 2
    assert run_time({"build": 1.0, "solve": 2.0}) == 3
    assert run_time({"build": 1.0, "solve": 2.0, "total": 3.5}) == 3.5  # a total is not added to its parts
    assert run_time([1.0, {"solve": 2.0}, 6]) == 3


def test_run_time_of_a_solution_set_is_its_total():
    space = FeatureSpace([Feature("pay", kind="integer", lower=0, upper=9)])
    result = ceopt.explain(Affine([1.0], -3.5, labels=("no", "yes")), {"pay": 2}, space, target="yes")

    assert run_time(result) == result.timings["total"]
    assert run_time([result, result]) == result.timings["total"]


def test_run_time_ratio_interleaves_and_takes_medians():
    order, ticks = [], iter(np.cumsum([0, 4, 0, 2, 0, 90, 0, 1, 0, 8, 0, 2]).tolist())
    found = run_time_ratio(
        lambda: order.append("first"), lambda: order.append("second"), repeats=3, clock=lambda: next(ticks)
    )

    assert order == ["first", "second"] * 3
    assert found == 8 / 2  # medians of 4, 90, 8 and of 2, 1, 2
    assert run_time_ratio(lambda: time.sleep(0.02), lambda: time.sleep(0.001), clock=time.perf_counter) > 1


def test_bad_times():
    for timings, error, message in (
        ([], InvalidValueError, "timings is empty"), (-1.0, InvalidValueError, "one is -1"),
        (np.nan, InvalidValueError, "one is nan"), ("long", InvalidTypeError, "timings is str"),
        ([True], InvalidTypeError, "one is True"), (None, InvalidTypeError, "timings is NoneType"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            run_time(timings)
    with pytest.raises(InvalidValueError, match="a positive number of repeats"):
        run_time_ratio(print, print, repeats=0)
    with pytest.raises(InvalidValueError, match="a second that takes time"):
        run_time_ratio(lambda: None, lambda: None, clock=lambda: 0.0)


def test_noise_on_a_frame_whose_columns_are_called_by_numbers():
    S = pd.DataFrame([[1.0, 0.0], [4.0, 0.0]])
    rate = invalidation_rate(S, lambda rows: rows.iloc[:, 0] > 0, True, sd=2.0, n_samples=20_000)

    assert rate.tolist() == invalidation_rate(S.to_numpy(), above(0), True, sd=2.0, n_samples=20_000).tolist()
