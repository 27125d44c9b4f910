"""Boosted trees through explain: verified, and as cheap as brute force; faults of other libraries are absent."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

import ceopt

COLUMNS = {"a": (0, 7), "b": (0, 5), "c": (0, 3)}
SPACE = ceopt.FeatureSpace(
    [ceopt.Feature(name, kind="integer", lower=low, upper=high) for name, (low, high) in COLUMNS.items()]
)
LATTICE = pd.DataFrame(
    list(itertools.product(*(range(low, high + 1) for low, high in COLUMNS.values()))), columns=list(COLUMNS)
)
VALUE = LATTICE["a"] + 2 * (LATTICE["b"] % 3) - LATTICE["c"] + np.random.default_rng(5).normal(0, 1.0, len(LATTICE))
CUTS = np.quantile(VALUE, [0.4, 0.85])
RARE = np.where(np.digitize(VALUE, CUTS) == 2, "yes", "no")
THREE = np.array(["low", "mid", "top"])[np.digitize(VALUE, CUTS)]

GRADIENT = {"n_estimators": 12, "max_depth": 3, "random_state": 0}
HISTOGRAM = {"max_iter": 12, "max_leaf_nodes": 6, "min_samples_leaf": 5}
BINARY = {
    "gradient": GradientBoostingClassifier(**GRADIENT),
    "exponential": GradientBoostingClassifier(loss="exponential", **GRADIENT),
    "histogram": HistGradientBoostingClassifier(**HISTOGRAM),
}
SEVERAL = {key: BINARY[key] for key in ("gradient", "histogram")}
REGRESSORS = {
    "gradient": GradientBoostingRegressor(**GRADIENT),
    "huber": GradientBoostingRegressor(loss="huber", **GRADIENT),
    "histogram": HistGradientBoostingRegressor(**HISTOGRAM),
}
L1 = ceopt.L1(scale="none")


def agree(model: Any, reached: Any, target: Any, rows: int = 6) -> None:
    """From some rows of the lattice, the answer is verified and costs what the cheapest lattice point does."""
    reached = np.asarray(reached)
    assert 0 < reached.sum() < len(LATTICE)
    outside = np.flatnonzero(~reached)
    for start in outside[:: max(1, len(outside) // rows)]:
        row = LATTICE.iloc[[start]]
        result = ceopt.explain(model, row, SPACE, target=target, cost=L1)
        steps = np.abs(LATTICE - row.to_numpy()).sum(axis=1)
        assert result.status == "optimal"
        assert result[0].verified
        assert result[0].cost == pytest.approx(steps[reached].min())


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("target", ["yes", "no"])
def test_two_classes(name: str, target: str) -> None:
    model = clone(BINARY[name]).fit(LATTICE, RARE)
    agree(model, model.predict(LATTICE) == target, target)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("target", ["top", "mid", {"low", "mid"}])
def test_several_classes(name: str, target: Any) -> None:
    model = clone(SEVERAL[name]).fit(LATTICE, THREE)
    wanted = target if isinstance(target, set) else {target}
    agree(model, np.isin(model.predict(LATTICE), list(wanted)), target, rows=4)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    model = clone(REGRESSORS[name]).fit(LATTICE, VALUE)
    level = float(np.quantile(model.predict(LATTICE), 0.8)) + 1e-3
    agree(model, model.predict(LATTICE) >= level, ceopt.AtLeast(level))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("label", "at_least"), [("yes", 0.35), ("yes", 0.5), ("no", 0.9)])
def test_a_probability_passes_the_logit_once(name: str, label: str, at_least: float) -> None:
    """Twice, a bound of 0.5 says nothing and one of 0.9 is no number; a few wrong odds make another answer cheapest."""
    model = clone(BINARY[name]).fit(LATTICE, RARE)
    share = model.predict_proba(LATTICE)[:, model.classes_.tolist().index(label)]
    agree(model, share >= at_least, ceopt.Probability(label, at_least))


@pytest.mark.parametrize("name", BINARY)
def test_a_person_who_cannot_move_keeps_the_class_that_predict_gives(name: str) -> None:
    """With log p of the first class as the start of the sum, or 0, a program lets people be of the other class."""
    model = clone(BINARY[name]).fit(LATTICE, RARE)
    fixed = SPACE
    for column in COLUMNS:
        fixed = fixed.update(column, mutable=False)
    for start in range(0, len(LATTICE), 5):
        row = LATTICE.iloc[[start]]
        own = model.predict(row)[0]
        for label in ("yes", "no"):
            status = ceopt.explain(model, row, fixed, target=label).status
            assert status == ("already_favourable" if label == own else "infeasible")
