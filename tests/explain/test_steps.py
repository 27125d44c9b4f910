"""Answers in the resolution of the data: the steps of ``infer``, and an optimum that is that of the grid."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt

_rng = np.random.default_rng(4)
_N = 160
#: Three columns of floats: whole, of one decimal and of two, where some are what a calculation leaves of a decimal.
PEOPLE = pd.DataFrame(
    {
        "kids": _rng.integers(0, 6, _N).astype(float),
        "years": _rng.integers(0, 20, _N) * 0.1,
        "rate": 0.02 + _rng.integers(0, 16, _N) * 0.03,
    }
)
_score = PEOPLE["kids"] / 5 + PEOPLE["years"] - 2.5 * PEOPLE["rate"] + _rng.normal(0.0, 0.2, _N)
LABEL = np.where(_score > _score.quantile(0.7), "yes", "no")
SPACE = ceopt.FeatureSpace.infer(PEOPLE)
COST = ceopt.L1(scale="range")

TREES = {
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": RandomForestClassifier(6, max_depth=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0),
}
OTHERS = {
    "linear": make_pipeline(StandardScaler(), LogisticRegression()),
    "network": make_pipeline(
        StandardScaler(), MLPClassifier((5, 4), solver="lbfgs", alpha=0.1, max_iter=3000, random_state=1)
    ),
}


def grid(name: str, own: float) -> list[float]:
    """Every value within the data's bounds that is whole steps from the person's own, by decimal arithmetic."""
    feature = SPACE[name]
    assert feature.step is not None
    low, high = min(feature.lower, own), max(feature.upper, own)
    step, home = Decimal(str(feature.step)), Decimal(f"{own:.12g}")
    values = [float(home + k * step) for k in range(-600, 601) if k != 0]
    return [own, *(value for value in values if low <= value <= high)]


def cheapest(model: Any, row: pd.DataFrame) -> float:
    """The least cost among all points of the grid that the model itself accepts."""
    own = row.iloc[0]
    points = pd.DataFrame(list(itertools.product(*(grid(name, own[name]) for name in PEOPLE))), columns=list(PEOPLE))
    cost = sum(abs(points[name] - own[name]) / SPACE[name].scale("range") for name in PEOPLE)
    return float(cost[model.predict(points) == "yes"].min())


def check(model: Any, row: pd.DataFrame, **options: Any) -> None:
    """The answer lies on the grid, is proved, and costs what the cheapest point of the grid does."""
    result = ceopt.explain(model, row, SPACE, target="yes", cost=COST, **options)
    assert result.status == "optimal", result.reason
    assert result[0].verified
    for name, value in result[0].values.items():
        assert value in grid(name, row[name].iloc[0]), name
    assert result[0].cost == pytest.approx(cheapest(model, row), rel=1e-9)
    assert result.bound == pytest.approx(result[0].cost, rel=1e-5)


def refused(model: Any, n: int) -> list[pd.DataFrame]:
    """Some people whom the model refuses, the last of them with a value between two of the data."""
    rows = PEOPLE[model.predict(PEOPLE) == "no"]
    asked = [rows.iloc[[place]] for place in range(0, len(rows), len(rows) // n)][:n]
    between = asked[-1].assign(years=asked[-1]["years"] + 0.037)
    return [*asked, between] if model.predict(between)[0] == "no" else asked


@pytest.mark.long(every=3)
@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
@pytest.mark.parametrize("kind", TREES)
def test_of_trees_the_optimum_is_that_of_the_grid(kind, formulation):
    model = TREES[kind].fit(PEOPLE, LABEL)
    for row in refused(model, 2):
        check(model, row, formulation=formulation)


@pytest.mark.parametrize("kind", OTHERS)
def test_of_linear_models_and_networks_too(kind):
    model = OTHERS[kind].fit(PEOPLE, LABEL)
    for row in refused(model, 4):
        check(model, row)


def test_further_answers_lie_on_the_grid_as_well():
    model = TREES["forest"].fit(PEOPLE, LABEL)
    row = refused(model, 1)[0]
    result = ceopt.explain(model, row, SPACE, target="yes", n=4, diversity="pool")
    assert len(result) == 4
    for answer in result:
        assert all(value in grid(name, row[name].iloc[0]) for name, value in answer.values.items())


def test_what_floats_leave_of_decimals_comes_out_as_the_decimal():
    noisy = 0.1 + 0.2
    people = pd.DataFrame({"rate": [0.0, noisy, 0.7, 1.0]})
    space = ceopt.FeatureSpace.infer(people)
    assert space["rate"].step == 0.1
    model = DecisionTreeClassifier().fit(people, people["rate"] > 0.85)
    up = ceopt.explain(model, {"rate": noisy}, space, target=True)[0]
    assert up.values["rate"] == 0.9
    assert up.verified
    home = ceopt.explain(model, {"rate": 1.0}, space.update("rate", lower=0.0), target=False)[0]
    assert home.values["rate"] == 0.8
    bound = ceopt.Linear({"rate": 1.0}, ">=", 0.3)
    at_bound = ceopt.explain(model, {"rate": 0.1}, space, target=False, constraints=[bound])[0]
    assert at_bound.values["rate"] == 0.3


def test_a_value_of_more_decimals_than_the_data_is_where_steps_are_counted_from():
    people = pd.DataFrame({"rate": [0.0, 0.3, 0.7, 1.0]})
    space = ceopt.FeatureSpace.infer(people)
    model = DecisionTreeClassifier().fit(people, people["rate"] > 0.85)
    result = ceopt.explain(model, {"rate": 0.125}, space, target=True)
    assert result[0].values["rate"] == 0.925


def test_an_income_is_whole_dollars_where_those_of_the_data_are():
    people = pd.DataFrame({"income": [21_000.0, 29_700.0, 30_000.0, 41_000.0]})
    model = DecisionTreeClassifier().fit(people, people["income"] > 29_800)
    found = []
    for options in ({}, {"steps": False}, {"continuous": ["income"]}):
        space = ceopt.FeatureSpace.infer(people, **options)
        found.append(ceopt.explain(model, {"income": 21_000.0}, space, target=True)[0].values["income"])
    threshold = float(model.tree_.threshold[0])
    assert threshold == 29_850.0
    # a split of scikit-learn compares float32, so the next number is the least float64 that is more as one
    assert found == [29_851.0, found[1], found[1]]
    assert 29_850.0 < found[1] < 29_850.002


def test_infinite_and_wide_bounds_keep_the_grid():
    model = LogisticRegression().fit(PEOPLE, LABEL)
    row = refused(model, 1)[0]
    free = SPACE.update(list(PEOPLE), lower=-math.inf, upper=math.inf)
    answer = ceopt.explain(model, row, free, target="yes", cost=COST)[0]
    assert all(round(value, 2) == value or value == row[name].iloc[0] for name, value in answer.values.items())


def test_consequences_are_rounded_to_the_step_of_their_data_and_still_follow():
    people = pd.DataFrame({"income": np.arange(0.0, 40.0), "savings": np.arange(0.0, 40.0) * 0.3})
    model = LogisticRegression(C=100.0).fit(people, people["savings"] > 6.05)
    space = ceopt.FeatureSpace.infer(people, integer=["income"])
    assert space["savings"].step == 0.1
    rule = ceopt.Causal({"savings": ceopt.LinearEquation({"income": 1 / 3})})
    result = ceopt.explain(model, people.iloc[[10]], space, target=True, constraints=[rule])
    assert result.status == "optimal"
    income, savings = result[0].values[["income", "savings"]]
    assert savings == round(savings, 1)
    assert abs((savings - 3.0) - (income - 10.0) / 3) <= 0.05 + 1e-6
    set_by_hand = space.update("savings", step=0.1)
    strict = ceopt.explain(model, people.iloc[[10]], set_by_hand, target=True, constraints=[rule])
    assert strict[0].cost > result[0].cost  # incomes move by threes there, so that savings follow exactly
