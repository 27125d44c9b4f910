"""Columns of 1e8 to 1e12 and coefficients of 1e-9: what is claimed of them holds, by every mixed-integer solver."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.solvers import registry

SOLVERS = [name for name in ("highs", "scip", "gurobi") if registry.SOLVERS[name].is_licensed]
#: What an answer may cost more than the infimum, relatively: a margin stands between the two.
CLOSE = 1e-5

pytestmark = pytest.mark.parametrize("solver", SOLVERS)


def least_cost(weights, needed, rooms, prices):
    """Return the least cost of a score that rises by ``needed``: the columns by what a unit of the score costs."""
    cost = 0.0
    for price, weight, room in sorted(zip(prices / weights, weights, rooms, strict=True)):
        rise = min(needed, weight * room)
        cost, needed = cost + price * rise, needed - rise
    assert needed <= 1e-12
    return cost


def test_a_coefficient_of_1e_9_beside_one_of_1_counts(solver):
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("income", kind="integer", lower=0, upper=10**9, mad=6e9),
            ceopt.Feature("ratio", kind="continuous", lower=-3, upper=3, mad=1.0),
        ]
    )
    model = Affine([9e-10, 1.0], -0.5, labels=("bad", "good"))

    result = ceopt.explain(model, {"income": 0, "ratio": 0.0}, space, target="good", solver=solver)

    assert result.status == "optimal", result.reason
    assert result[0].cost == pytest.approx(0.5 / 9e-10 / 6e9, rel=CLOSE)
    assert result[0].gap <= 1e-6


@pytest.mark.long(every=10)
@pytest.mark.parametrize("kind", ["continuous", "integer"])
@pytest.mark.parametrize("upper", [1e5, 1e10, 1e12, np.inf])
def test_the_width_of_bounds_does_not_make_an_answer_dearer(solver, kind, upper):
    space = ceopt.FeatureSpace([ceopt.Feature("income", kind=kind, lower=0, upper=upper)])
    model = Affine([1e-4], -5.0, labels=("bad", "good"))

    result = ceopt.explain(model, {"income": 40_000}, space, target="good", solver=solver, cost=ceopt.L1(scale="none"))

    assert result.status == "optimal", result.reason
    assert result[0].cost == pytest.approx(10_000 if kind == "continuous" else 10_001, rel=CLOSE)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("most", [1e8, 1e9, 1e10, 1e11])
def test_people_with_incomes_in_won_have_answers_and_they_are_the_cheapest(solver, most):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.integers(most / 100, most, 400),
            "age": rng.integers(18, 80, 400),
            "debt": rng.uniform(0, 5, 400),
        }
    )
    good = 3 * X["income"] / most - X["debt"] / 2 + X["age"] / 100 + rng.normal(0, 0.3, 400) > 1.2
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, np.where(good, "good", "bad"))
    space = ceopt.FeatureSpace.infer(X, moves={"age": "fixed"})
    weights = (model[-1].coef_[0] / model[0].scale_)[[0, 2]]
    scales = np.array([space[name].scale("mad") for name in ("income", "debt")])
    for k in np.flatnonzero(model.predict(X) == "bad")[: 8 if solver == "highs" else 3]:
        row = X.iloc[[k]]
        income, debt = row[["income", "debt"]].to_numpy()[0]
        rooms = np.array([X["income"].max() - income, debt - X["debt"].min()])

        result = ceopt.explain(model, row, space, target="good", solver=solver)

        expected = least_cost(np.abs(weights), -model.decision_function(row)[0], rooms, 1.0 / scales)
        assert result.status == "optimal", (k, result.reason)
        assert result[0].cost == pytest.approx(expected, rel=2 * CLOSE)  # an income is a whole number


@pytest.mark.long(every=2)
@pytest.mark.parametrize("cost", [ceopt.L1, ceopt.L2, ceopt.Linf])
def test_a_column_of_1e12_beside_one_of_1e_9(solver, cost):
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("big", kind="continuous", lower=0, upper=1e12),
            ceopt.Feature("tiny", kind="continuous", lower=0, upper=8e-10),
        ]
    )
    model = Affine([1e-12, 1e9], -1.0, labels=("bad", "good"))
    row = {"big": 0.0, "tiny": 0.0}

    result = ceopt.explain(model, row, space, target="good", solver=solver, cost=cost(scale="none"))

    assert result.status == "optimal", result.reason
    assert result[0].cost == pytest.approx(2e11, rel=3 * CLOSE)  # tiny goes to its end and leaves a fifth of the way


def test_a_sentinel_in_the_data_makes_no_answer_dearer(solver):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"income": rng.integers(20_000, 90_000, 400), "ratio": rng.uniform(0, 1, 400)})
    y = X["income"] / 90_000 - X["ratio"] / 2 + rng.normal(0, 0.1, 400) > 0.35
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    row, cost = X[~model.predict(X)].iloc[[1]], ceopt.L1(scale={"income": 1e4, "ratio": 0.25})
    known = X.copy()
    known.loc[0, "income"] = 9_999_999_999

    plain, other = (
        ceopt.explain(model, row, ceopt.FeatureSpace.infer(data), target=True, cost=cost, solver=solver)
        for data in (X, known)
    )

    assert plain.status == other.status == "optimal"
    assert other[0].cost == pytest.approx(plain[0].cost, rel=CLOSE)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    ("seed", "most", "layers", "place"),
    [(2, 1.2e9, (6,), -1), (3, 1.2e9, (6,), 0), (4, 1.2e8, (8, 5), -1), (0, 1.2e8, (6,), 0)],
)
def test_a_network_on_wide_columns_finds_the_cheapest_point_of_a_lattice(solver, seed, most, layers, place):
    """Where the wide columns' neurons are off, the score is a number near 1; elsewhere it is one of 1e9."""
    rng, steps = np.random.default_rng(seed), 12
    lattice = pd.DataFrame(
        list(
            itertools.product(np.arange(steps + 1) * most / steps, np.arange(steps + 1) * most / steps, np.arange(6.0))
        ),
        columns=["income", "savings", "age"],
    )
    value = lattice["income"] / most + lattice["savings"] / most / 2 + lattice["age"] / 10
    y = np.where(value + rng.normal(0, 0.2, len(lattice)) > 1.0, 1, 0)
    model = MLPClassifier(layers, max_iter=80, random_state=seed).fit(lattice.to_numpy(), y)
    said = model.predict(lattice.to_numpy())
    wide = {"kind": "continuous", "lower": 0, "upper": most, "step": most / steps}
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("income", **wide),
            ceopt.Feature("savings", **wide),
            ceopt.Feature("age", kind="integer", lower=0, upper=5),
        ]
    )
    scale = {"income": most, "savings": most, "age": 5.0}
    row = lattice.iloc[[np.flatnonzero(said == 0)[place]]]
    costs = ((lattice - row.to_numpy()).abs() / pd.Series(scale)).sum(axis=1)

    result = ceopt.explain(model, row, space, target=1, cost=ceopt.L1(scale=scale), solver=solver)

    if result.status == "feasible":  # the numbers of a row are too far apart, and it says so
        assert result.reason
        assert result[0].bound <= costs[said == 1].min() * (1 + 1e-6)
        return
    assert result.status == "optimal", result.reason
    assert result[0].cost == pytest.approx(costs[said == 1].min(), rel=1e-6)
