"""Linear models and networks over whole values: what predict accepts at a tie is an answer, margin or not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

import ceopt
from ceopt import AtLeast, AtMost, Between, Feature, FeatureSpace, Probability
from ceopt.formulations.predictors import Affine, ReluNetwork

SPACE = FeatureSpace([Feature("a", kind="integer", lower=0, upper=6, mad=1.0)])
MIXED = FeatureSpace([*SPACE, Feature("b", kind="continuous", lower=0.0, upper=4.0, mad=1.0)])
#: The same whole number as a score: by a weight, and by two neurons.
MODELS = {
    "linear": Affine([1.0], 0.0),
    "network": ReluNetwork([[[1.0], [-1.0]], [[1.0, -1.0]]], [[0.0, 0.0], [0.0]]),
}


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    ("target", "cost"), [(AtLeast(6), 4.0), (AtLeast(5), 3.0), (AtMost(0), 2.0), (Between(4, 4), 2.0)]
)
def test_a_value_that_is_attained_is_an_answer(model: Any, target: Any, cost: float, solver: str) -> None:
    found = ceopt.explain(model, {"a": 2}, SPACE, target=target, solver=solver)

    assert found.status == "optimal"
    assert found[0].cost == pytest.approx(cost)
    assert found.bound == pytest.approx(cost)


def test_a_score_of_zero_is_the_first_label() -> None:
    model = Affine([1.0], -3.0, labels=("low", "high"))

    assert ceopt.explain(model, {"a": 5}, SPACE, target="low")[0].cost == pytest.approx(2.0)
    assert ceopt.explain(model, {"a": 1}, SPACE, target="high")[0].cost == pytest.approx(3.0)


def test_a_probability_that_is_attained_is_an_answer() -> None:
    model = Affine([1.0], -3.0, labels=("low", "high"), probability="logistic")

    assert ceopt.explain(model, {"a": 5}, SPACE, target=Probability("low", 0.5))[0].cost == pytest.approx(2.0)
    assert ceopt.explain(model, {"a": 1}, SPACE, target=Probability("high", 0.5))[0].cost == pytest.approx(2.0)


def test_a_number_at_its_bound_may_tie() -> None:
    found = ceopt.explain(Affine([1.0, 1.0], 0.0), {"a": 6, "b": 1.0}, MIXED, target=AtLeast(10))

    assert found.status == "optimal"
    assert (found[0].values["b"], found[0].cost) == (4.0, 3.0)


@pytest.mark.parametrize("at", [-1.75, 0.0])
def test_a_level_that_a_network_attains_is_found_though_another_answer_lies_beyond_the_margin(at: float) -> None:
    # relu(a + 2) - 3 relu(a - 1) is .25 at the lower bound, the only answer on that side, and again from 2.375 on
    space = FeatureSpace([Feature("a", kind="continuous", lower=-1.75, upper=3.25, mad=1.0)])
    network = ReluNetwork([[[1.0], [1.0]], [[1.0, -3.0]]], [[2.0, -1.0], [0.0]])

    found = ceopt.explain(network, {"a": at}, space, target=AtMost(0.25))

    if at == -1.75:
        assert found.status == "already_favourable"
    else:
        assert (found.status, found[0].values["a"]) == ("optimal", -1.75)
        assert (found[0].cost, found.bound) == pytest.approx((1.75, 1.75))


def test_moving_at_all_has_a_price() -> None:
    """A trace more of b would cost as much as a whole change."""
    cost = ceopt.Changes()
    found = ceopt.explain(Affine([1.0, 1.0], 0.0), {"a": 2, "b": 1.0}, MIXED, target=AtLeast(7), cost=cost)

    assert (found.status, found[0].cost, found[0].changed) == ("optimal", 1.0, ("a",))


def test_what_is_refused_at_a_tie_is_left_and_the_next_found() -> None:
    found = ceopt.explain(Affine([1.0], -3.0, labels=("low", "high")), {"a": 1}, SPACE, target="high", n=2)

    assert found.status == "optimal"
    assert int(found[0].values["a"]) == 4


def test_nothing_is_proved_only_where_nothing_ties() -> None:
    assert ceopt.explain(MODELS["linear"], {"a": 2}, SPACE, target=AtLeast(7)).status == "infeasible"
    assert ceopt.explain(MODELS["linear"], {"a": 2}, SPACE, target=AtLeast(6), margin=1e-3).status == "infeasible"


@pytest.mark.parametrize("make", [LinearRegression, lambda: MLPRegressor(hidden_layer_sizes=[4], max_iter=20)])
def test_values_that_a_fitted_model_attains(make: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 7, 60), "c": rng.integers(0, 4, 60)})
    space = FeatureSpace.infer(frame, integer=["a", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty rounds are enough for a network that attains some values
        model = make().fit(frame, rng.normal(size=60))
    lattice = pd.DataFrame([(a, c) for a in range(7) for c in range(4)], columns=["a", "c"])
    said = np.array([model.predict(lattice.iloc[[k]])[0] for k in range(len(lattice))])
    row, scale = {"a": 3, "c": 1}, {"a": 1.0, "c": 1.0}
    costs = (lattice["a"] - 3).abs() + (lattice["c"] - 1).abs()
    for level in np.sort(said)[[-1, -4, -9]]:
        best = float(costs[said >= level].min())
        found = ceopt.explain(model, row, space, target=AtLeast(float(level)), cost=ceopt.L1(scale=scale))

        if best == 0.0:
            assert found.status == "already_favourable"
        else:
            assert found.status == "optimal"
            assert found[0].cost == pytest.approx(best)


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_tie_that_the_rounding_of_a_row_would_rule_out_is_the_best_answer(solver: str) -> None:
    """Of a, the score adds up terms of 1e11: a row over them may be missed by more than what b decides by."""
    ends = {"a": (100_000, 110_000), "b": (100_000, 100_003)}
    features = [Feature(name, kind="integer", lower=low, upper=high, mad=1.0) for name, (low, high) in ends.items()]
    model = Affine([-1e6, 0.01], 0.0)
    level = float(model.predict([[100_000.0, 100_003.0]])[0])

    found = ceopt.explain(
        model, {"a": 100_003, "b": 100_001}, FeatureSpace(features), target=AtLeast(level), solver=solver, why=False
    )

    assert (found.status, found[0].cost, found.bound) == ("optimal", 5.0, 5.0)
