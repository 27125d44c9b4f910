"""Boosted trees through explain: verified, and as cheap as brute force; faults of other libraries are absent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lattice import COLUMNS, JOBS, LATTICE, RARE, SPACE, THREE, VALUE, WITH_JOBS, agree
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import ceopt

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


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("target", ["yes", "no"])
def test_two_classes(name: str, target: str) -> None:
    model = clone(BINARY[name]).fit(LATTICE, RARE)
    agree(model, model.predict(LATTICE) == target, target)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("target", ["top", "mid", {"low", "mid"}])
def test_several_classes(name: str, target: Any) -> None:
    model = clone(SEVERAL[name]).fit(LATTICE, THREE)
    wanted = target if isinstance(target, set) else {target}
    agree(model, np.isin(model.predict(LATTICE), list(wanted)), target, rows=4)


@pytest.mark.long
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    model = clone(REGRESSORS[name]).fit(LATTICE, VALUE)
    level = float(np.quantile(model.predict(LATTICE), 0.8)) + 1e-3
    agree(model, model.predict(LATTICE) >= level, ceopt.AtLeast(level))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("label", "at_least"), [("yes", 0.35), ("yes", 0.5), ("no", 0.9)])
def test_a_probability_passes_the_logit_once(name: str, label: str, at_least: float) -> None:
    """Twice, a bound of 0.5 says nothing and one of 0.9 is no number; a few wrong odds make another answer cheapest."""
    model = clone(BINARY[name]).fit(LATTICE, RARE)
    share = model.predict_proba(LATTICE)[:, model.classes_.tolist().index(label)]
    agree(model, share >= at_least, ceopt.Probability(label, at_least))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", BINARY)
def test_a_person_who_cannot_move_keeps_the_class_that_predict_gives(name: str) -> None:
    """With log p of the first class as the start of the sum, or 0, a program lets people be of the other class."""
    model = clone(BINARY[name]).fit(LATTICE, RARE)
    fixed = SPACE
    for column in COLUMNS:
        fixed = fixed.update(column, mutable=False)
    for start in range(0, len(LATTICE), 23):
        row = LATTICE.iloc[[start]]
        own = model.predict(row)[0]
        for label in ("yes", "no"):
            status = ceopt.explain(model, row, fixed, target=label).status
            assert status == ("already_favourable" if label == own else "infeasible")


#: The jobs that the model knows; to the others it is as if there were none.
KNOWN = {"all jobs": JOBS, "four jobs": JOBS[:4]}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("target", ["yes", "no"])
def test_native_categories(known: str, target: str) -> None:
    """The sets of levels that go left are the library's, and so is where a level goes that it does not know."""
    train = WITH_JOBS["job"].isin(KNOWN[known]).to_numpy()
    space = ceopt.FeatureSpace([SPACE["a"], ceopt.Feature("job", kind="categorical", levels=JOBS), SPACE["c"]])
    model = clone(BINARY["histogram"]).set_params(categorical_features=["job"], min_samples_leaf=3)
    model.fit(WITH_JOBS[train], RARE[train])
    agree(model, model.predict(WITH_JOBS) == target, target, space=space, lattice=WITH_JOBS)


@pytest.mark.parametrize("name", ["histogram", "imputed"])
def test_models_trained_with_gaps(name: str) -> None:
    gappy, rng = LATTICE.astype(float), np.random.default_rng(1)
    for column in COLUMNS:
        gappy.loc[rng.random(len(LATTICE)) < 0.2, column] = np.nan
    gappy.loc[RARE == "yes", "c"] = np.nan
    model = {
        "histogram": clone(BINARY["histogram"]),
        "imputed": make_pipeline(SimpleImputer(), clone(BINARY["gradient"])),
    }[name]
    model.fit(gappy, np.where(VALUE.median() < VALUE, "yes", "no"))
    agree(model, model.predict(LATTICE) == "yes", "yes")
