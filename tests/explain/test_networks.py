"""Networks of scikit-learn through explain: verified, and as cheap as brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from lattice import COLUMNS, JOBS, LATTICE, RARE, SPACE, THREE, VALUE, WITH_JOBS, agree
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.formulations.predictors.embed import FORMULATIONS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TRAINED: dict[str, Any] = {"solver": "lbfgs", "max_iter": 200, "random_state": 1}
SIZES = {"one layer": (8,), "two layers": (6, 5), "no layer": ()}


def network(size: str = "two layers", kind: Any = MLPClassifier, **options: Any) -> Any:
    return make_pipeline(StandardScaler(), kind(hidden_layer_sizes=SIZES[size], **TRAINED, **options))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", ["yes", "no"])
def test_two_classes(size: str, target: str) -> None:
    model = network(size).fit(LATTICE, RARE)
    agree(model, model.predict(LATTICE) == target, target)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("target", ["top", "mid", {"low", "mid"}, ceopt.OtherThan("low")])
def test_several_classes(target: Any) -> None:
    model = network().fit(LATTICE, THREE)
    wanted = {"mid", "top"} if isinstance(target, ceopt.OtherThan) else target if isinstance(target, set) else {target}
    agree(model, np.isin(model.predict(LATTICE), list(wanted)), target, rows=4)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_regressors(activation: str) -> None:
    model = network(kind=MLPRegressor, activation=activation).fit(LATTICE, VALUE)
    predicted = model.predict(LATTICE)
    least, low, high = (float(level) for level in np.quantile(predicted, [0.15, 0.7, 0.85]) + 1e-3)
    agree(model, predicted >= low, ceopt.AtLeast(low), rows=3)
    agree(model, predicted <= least, ceopt.AtMost(least), rows=3)
    agree(model, (predicted >= low) & (predicted <= high), ceopt.Between(low, high), rows=3)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("label", "at_least"), [("yes", 0.35), ("yes", 0.5), ("no", 0.9), ("yes", 0.8)])
def test_a_probability_is_the_librarys(label: str, at_least: float) -> None:
    model = network("one layer").fit(LATTICE, RARE)
    share = model.predict_proba(LATTICE)[:, model.classes_.tolist().index(label)]
    agree(model, share >= at_least, ceopt.Probability(label, at_least))


@pytest.mark.parametrize("name", FORMULATIONS["networks"])
def test_every_formulation_has_the_same_optimum(name: str) -> None:
    model = network().fit(LATTICE, RARE)
    agree(model, model.predict(LATTICE) == "yes", "yes", rows=3, formulation=name)


@pytest.mark.long
def test_levels_behind_an_encoder() -> None:
    columns = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    model = make_pipeline(columns, MLPClassifier(hidden_layer_sizes=(6,), **TRAINED)).fit(WITH_JOBS, RARE)
    space = ceopt.FeatureSpace([SPACE["a"], ceopt.Feature("job", kind="categorical", levels=JOBS), SPACE["c"]])
    agree(model, model.predict(WITH_JOBS) == "yes", "yes", space=space, lattice=WITH_JOBS)


@pytest.mark.long
def test_a_network_in_float32() -> None:
    """Levels that an encoder hands on in float32 are added up in float32, and the logistic is taken of that."""
    levels = LATTICE.astype(str)
    space = ceopt.FeatureSpace(
        [ceopt.Feature(n, kind="categorical", levels=tuple(map(str, range(h + 1)))) for n, (_, h) in COLUMNS.items()]
    )
    hot = OneHotEncoder(dtype=np.float32)
    stochastic = MLPClassifier(hidden_layer_sizes=(5,), max_iter=80, learning_rate_init=0.03, random_state=0)
    model = make_pipeline(hot, stochastic).fit(levels, RARE)
    assert model.predict_proba(levels).dtype == np.float32
    agree(model, model.predict(levels) == "yes", "yes", space=space, lattice=levels, rows=4)
    share = model.predict_proba(levels)[:, 1]
    agree(model, share >= 0.9, ceopt.Probability("yes", 0.9), space=space, lattice=levels, rows=3)


def test_on_continuous_columns_no_sampled_point_is_cheaper() -> None:
    """The answer lies on the boundary, nearer than any of many random points that reach the target."""
    model = network().fit(LATTICE.astype(float), RARE)
    space = ceopt.FeatureSpace(
        [ceopt.Feature(name, kind="continuous", lower=low, upper=high) for name, (low, high) in COLUMNS.items()]
    )
    rng = np.random.default_rng(0)
    points = pd.DataFrame({name: rng.uniform(*ends, 20000) for name, ends in COLUMNS.items()})
    reached = model.predict(points) == "yes"
    for start in np.flatnonzero(~reached)[:6]:
        row = points.iloc[[start]]
        result = ceopt.explain(model, row, space, target="yes", cost=ceopt.L1(scale="none"))
        assert result.status == "optimal"
        assert result[0].verified
        assert 0 <= result[0].slack < 1e-3
        assert result[0].cost <= np.abs(points[reached] - row.to_numpy()).sum(axis=1).min() + 1e-9


@pytest.mark.long
def test_a_person_who_cannot_move_keeps_the_class_that_predict_gives() -> None:
    model, fixed = clone(network()).fit(LATTICE, RARE), SPACE
    for column in COLUMNS:
        fixed = fixed.update(column, mutable=False)
    for start in range(0, len(LATTICE), 31):
        row = LATTICE.iloc[[start]]
        own = model.predict(row)[0]
        for label in ("yes", "no"):
            status = ceopt.explain(model, row, fixed, target=label).status
            assert status == ("already_favourable" if label == own else "infeasible")
