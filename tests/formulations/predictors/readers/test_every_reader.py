"""The battery of readers: whatever a reader says it reads runs through it, without an edit here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from library_rows import frame_of, trial_rows
from model_examples import fitted

import ceopt
from ceopt.formulations import Factual, embed, embedding_error, l1
from ceopt.formulations.predictors.readers import open_model, read, supported, xgboost
from ceopt.formulations.predictors.ties import score_size
from ceopt.oracle.model import ModelOracle
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import UnknownNameError

NAMES = [(row.library, name) for row in supported().itertuples() for name in row.names]
COLUMNS = ["a", "b", "c", "d"]


def test_a_kind_of_model_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xgboost, "MODELS", {"tree": ("Booster",)})
    with pytest.raises(
        UnknownNameError, match=r"readers\.xgboost needs .* kind of model is 'tree'.*Choose from: linear, trees"
    ):
        supported()


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(3).normal(0.5, 1.5, size=(160, 4)).round(3), columns=COLUMNS)


@pytest.fixture(scope="module")
def space(people: pd.DataFrame) -> ceopt.FeatureSpace:
    return ceopt.FeatureSpace.infer(people)


@pytest.fixture(scope="module", params=NAMES, ids="-".join)
def model(request: pytest.FixtureRequest, people: pd.DataFrame) -> Any:
    value = (people["a"] + people["b"] * people["c"]).to_numpy()
    return open_model(fitted(*request.param, people, value))


@pytest.mark.long(every=4)
def test_predictions_are_the_librarys_beside_every_threshold(
    model: Any, people: pd.DataFrame, space: ceopt.FeatureSpace
) -> None:
    predictor = read(model, space)
    rows = trial_rows(predictor, space.coordinates(people))
    scores = predictor.score(rows)
    ours, theirs = predictor.core.head.decide(scores), ModelOracle(model, space).predict(frame_of(space, rows))
    size = 1e-6 * max(1.0, score_size(predictor))  # of what adds up floats in an order of its own
    if predictor.labels is None:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=size)
    else:
        sure = np.ones(len(rows), dtype=bool)
        if not predictor.is_trees:
            sure = np.abs(scores - predictor.core.level) > size if scores.ndim == 1 else np.ptp(scores, axis=1) > size
        assert sure.mean() > 0.9
        np.testing.assert_array_equal(ours[sure], theirs[sure])
        assert len(set(ours.tolist())) > 1


@pytest.mark.long(every=6)
def test_an_answer_is_optimal_and_the_librarys_own(model: Any, people: pd.DataFrame, space: ceopt.FeatureSpace) -> None:
    said = ModelOracle(model, space).predict(people)
    if read(model, space).labels is None:
        row, target = people.iloc[[int(said.argmin())]], ceopt.AtLeast(float(np.quantile(said, 0.7)))
    else:
        row, target = people.iloc[[0]], next(label for label in set(said.tolist()) if label != said[0])
    result = ceopt.explain(model, row, space, target=target, data=people)
    assert result.status == "optimal"
    assert ceopt.verify(result, model, space, target=target).ok
    if isinstance(target, ceopt.AtLeast):
        assert float(ModelOracle(model, space).predict(result[0].frame)[0]) >= target.value
    else:
        assert ModelOracle(model, space).predict(result[0].frame)[0] == target


@pytest.mark.long(every=6)
def test_the_block_says_what_the_library_says(model: Any, people: pd.DataFrame, space: ceopt.FeatureSpace) -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(space, people.iloc[[7]])
    m.predictor = embed(model, m.x)
    m.away = pyo.Constraint(expr=m.x.raw["a"] >= people["a"].iloc[7] + 0.25)
    m.cost = pyo.Objective(expr=l1(m.x))
    assert solve(m).status is Status.OPTIMAL
    found = embedding_error(m.predictor)
    assert found.agrees
    assert float(found) < 1e-5 * max(1.0, score_size(m.predictor.predictor))
