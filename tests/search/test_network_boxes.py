"""Boxes of columns: the bound of a network is met by the cheapest of all points, whatever columns and costs."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import number_of_draws
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.search import network_boxes, without_program
from ceopt.search.network_boxes import least_by_boxes
from ceopt.search.prepare import prepare
from ceopt.search.search import search
from ceopt.settings import Settings

LEVELS = {"grade": ["low", "mid", "high"], "job": ["none", "part", "full"]}
INCOMES = [-8, -7, *range(6)]
DEBTS = [math.nan, *np.arange(0.0, 2.5, 0.5)]
GRID = pd.DataFrame(list(itertools.product(INCOMES, DEBTS, *LEVELS.values())), columns=["income", "debt", *LEVELS])
COSTS: list[Any] = [
    ceopt.L1(scale="none"), ceopt.L2(scale="none"), ceopt.L2(scale="none", squared=True), "l0",
    ceopt.L1(scale="none") + 0.3 * ceopt.Changes(),
]  # fmt: skip


def space_of(weights: list[float]) -> ceopt.FeatureSpace:
    return ceopt.FeatureSpace(
        [
            ceopt.Feature("income", kind="integer", lower=-8, upper=5, weight=(weights[0], weights[1]), codes=[-8, -7]),
            ceopt.Feature("debt", kind="continuous", lower=0.0, upper=2.0, step=0.5, weight=weights[2], missing=True),
            ceopt.Feature("grade", kind="ordinal", levels=LEVELS["grade"], weight=weights[3], direction="increasing"),
            ceopt.Feature("job", kind="categorical", levels=LEVELS["job"], weight=weights[4]),
        ]
    )


@functools.cache
def network(kind: str, seed: int) -> Any:
    """Return a network with random weights behind the usual steps; some regressors hide no layer."""
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["income", "debt"]),
        (OneHotEncoder(), list(LEVELS)),
    )
    rng = np.random.default_rng(seed)
    labels = {"two": ["no", "yes"], "three": ["no", "maybe", "yes"]}
    estimator: Any = MLPRegressor(hidden_layer_sizes=(7, 5) if seed % 4 else (), max_iter=1)
    said: Any = rng.normal(size=len(GRID))
    if kind in labels:
        estimator = MLPClassifier(hidden_layer_sizes=(7, 5), max_iter=1)
        said = np.resize(labels[kind], len(GRID))
    with pytest.warns(match="iterations"):
        model = make_pipeline(encode, estimator).fit(GRID, said)
    estimator = model[-1]
    estimator.coefs_ = [rng.normal(size=part.shape) for part in estimator.coefs_]
    estimator.intercepts_ = [rng.normal(size=part.shape) for part in estimator.intercepts_]
    return model


def cheapest(prepared: Any, factual: dict[str, float], reach: Any) -> float:
    """Return the least cost of all points in reach that the model as read accepts."""
    space = prepared.space
    values = []
    for feature in space:
        part = reach[feature.name]
        amounts = []
        if isinstance(part, Interval):
            count = 0 if part.is_point else round((part.upper - part.lower) / part.step) + 1
            amounts = [part.lower + k * (part.step or 1.0) for k in range(max(count, int(not part.labels)))]
            amounts = [amount for amount in amounts if part.has(amount)]
        values.append([*amounts, *(part.labels if isinstance(part, Interval) else part.values)])
    points = np.array(list(itertools.product(*values)))
    accepted = points[prepared.slacks(points) >= 0.0]
    if not len(accepted):
        return math.inf
    cost = prepared.settings.cost
    return float(cost.from_objective(cost.objectives(space, factual, accepted).min()))


TARGETS: dict[str, list[Any]] = {
    "two": ["yes", "no", ceopt.Probability("yes", 0.8)],
    "three": ["yes", ["yes", "maybe"]],
    "value": [ceopt.AtLeast(2.0), ceopt.Between(1.0, 3.0), ceopt.AtLeast(60.0)],
}


@pytest.mark.parametrize("seed", range(number_of_draws(400)))
def test_the_bound_is_the_cheapest_of_all_points(seed: int) -> None:
    """Of codes, missing cells, steps and levels; for one condition, several, and alternatives."""
    rng = np.random.default_rng(seed)
    kind = sorted(TARGETS)[seed % 3]
    space = space_of(rng.choice([0.25, 0.5, 1.0, 1.7], size=5).tolist())
    settings = Settings(target=TARGETS[kind][rng.integers(3) % len(TARGETS[kind])], cost=COSTS[rng.integers(5)])
    prepared = prepare(network(kind, int(rng.integers(20))), space, settings, data=GRID)
    factual = space.row(GRID.iloc[[rng.integers(len(GRID))]])
    reach = reach_of(space, factual)
    own = prepared.for_person(factual, reach)
    found = least_by_boxes(own, factual, reach, keeps=bool)
    assert (found is None) is not isinstance(own.predictor.core, ReluNetwork)
    if found is None:  # a linear score
        return
    least = cheapest(own, factual, reach)
    if least == 0.0:  # the person is asked about although the model accepts the row
        return
    assert found.bound == pytest.approx(least, rel=1e-9)
    if math.isinf(least):
        assert not found.points
        return
    (point,) = found.points
    assert all(reach[name].holds(value) for name, value in point.items())
    assert prepared.settings.cost.value(space, factual, point) == pytest.approx(least, rel=1e-9)


def asked(seed: int) -> tuple[Any, pd.DataFrame]:
    """Return a question with continuous columns, under a rule or without, and a person."""
    rng = np.random.default_rng(seed)
    kind = sorted(TARGETS)[seed % 3]
    down, up, *weights = rng.choice([0.25, 0.5, 1.0, 1.7], size=5).tolist()
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("income", kind="continuous", lower=-8, upper=5, weight=(down, up)),
            ceopt.Feature("debt", kind="continuous", lower=0.0, upper=2.0, weight=weights[0]),
            ceopt.Feature("grade", kind="ordinal", levels=LEVELS["grade"], weight=weights[1]),
            ceopt.Feature("job", kind="categorical", levels=LEVELS["job"], weight=weights[2]),
        ]
    )
    settings = Settings(
        target=TARGETS[kind][rng.integers(3) % len(TARGETS[kind])],
        cost=COSTS[rng.integers(5)],
        constraints=[ceopt.MaxChanges(2)] if seed % 2 else [],
    )
    data = GRID.dropna()
    row = data.iloc[[rng.integers(len(data))]]
    return prepare(network(kind, int(rng.integers(20))), space, settings, data=data), row


@pytest.mark.parametrize("seed", range(number_of_draws(60)))
def test_the_optimum_is_that_of_the_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to what a default margin costs; whoever proves it, with the boxes and without."""
    prepared, row = asked(seed)
    found = search(prepared, row)
    with monkeypatch.context() as patched:
        patched.setattr(without_program, "least_cost", lambda *_, **__: None)
        by_program = search(prepared, row)
    assert found.status == by_program.status
    if len(found):
        assert found[0].cost == pytest.approx(by_program[0].cost, rel=1e-5)
        assert found[0].cost <= by_program[0].cost * (1.0 + 1e-6)
        assert found[0].verified


def test_a_person_is_settled_without_a_program() -> None:
    found = [search(*asked(seed)) for seed in range(0, 12, 2)]
    assert "bound" in {result.proof for result in found if len(result)}


def test_a_search_that_divides_box_after_box_is_given_up_with_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two and a half seconds went into boxes of people whom a program then settled in half a second."""
    monkeypatch.setattr(network_boxes, "_GIVEN_UP", (0, 0.0))
    given_up = 0
    for seed in range(0, 24, 2):
        prepared, row = asked(seed)
        factual = prepared.space.row(row)
        reach = reach_of(prepared.space, factual)
        found = least_by_boxes(prepared, factual, reach, keeps=bool)
        with monkeypatch.context() as patched:
            patched.setattr(network_boxes, "_GIVEN_UP", (math.inf, 0.0))
            whole = least_by_boxes(prepared, factual, reach, keeps=bool)
        assert found is not None
        assert whole is not None
        assert found.bound <= whole.bound * (1.0 + 1e-9)
        given_up += found.bound < whole.bound * (1.0 - 1e-9)
    assert given_up > 2


def test_a_network_that_is_too_large_and_a_joint_cost_are_left_to_the_program() -> None:
    prepared, row = asked(0)
    factual = prepared.space.row(row)
    reach = reach_of(prepared.space, factual)
    assert least_by_boxes(prepared, factual, reach, keeps=bool, work=1e4) is None
    joint = prepare(
        prepared.predictor.model, prepared.space,
        Settings(target="yes", cost=ceopt.Mahalanobis()), data=GRID.dropna(),
    )  # fmt: skip
    assert least_by_boxes(joint, factual, reach, keeps=bool) is None
