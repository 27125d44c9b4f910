"""The golden family: exactly the candidates, filters and answers that are written down, however the model is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ceopt.diverse import DiverseRobustExplainer
from ceopt.formulations.predictors import Affine

FILE = Path(__file__).parents[1] / "golden" / "exhaustive_explainer.json"
INSTANCES = [pytest.param(i, id=i["id"]) for i in json.loads(FILE.read_text())["instances"]]


def explainer(inputs: Any, **more: Any) -> DiverseRobustExplainer:
    (kept, alpha), (diversity, beta) = inputs["selection"], inputs["diversity"]
    keep = {"number": "nearest", "distance": "within"}[kept]
    return DiverseRobustExplainer(
        distance=inputs["distance"], keep=keep, alpha=alpha, diversity=diversity, beta=beta, tolerance=inputs["gamma"],
        **more,
    )  # fmt: skip


def affine(inputs: Any) -> Affine:
    return Affine(inputs["w"], inputs["intercept"], labels=("no", "yes"))


def function(inputs: Any) -> Any:
    return lambda X: np.where(np.asarray(X) @ inputs["w"] + inputs["intercept"] >= 0, "yes", "no")


def fitted(inputs: Any) -> LogisticRegression:
    model = LogisticRegression().fit(np.array(inputs["data"]), np.arange(len(inputs["data"])) % 2)
    model.coef_, model.intercept_ = np.array([inputs["w"]]), np.array([inputs["intercept"]])
    model.classes_ = np.array(["no", "yes"])
    return model


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("given", [affine, function, fitted])
@pytest.mark.parametrize("as_frame", [False, True])
def test_golden(instance, given, as_frame):
    inputs, expected, tol = instance["inputs"], instance["expected"], instance["tol"]
    data, row = np.array(inputs["data"]), inputs["x"]
    if as_frame:
        names = [f"column {j}" for j in range(data.shape[1])]
        data, row = pd.DataFrame(data, columns=names), dict(zip(names, row, strict=True))
    result = explainer(inputs).fit(data).explain(given(inputs), row, target="yes", n=None)

    assert result.status == "feasible"
    assert result.complete
    assert result.min_distance == pytest.approx(expected["min_distance"], abs=tol["min_distance"])
    assert list(result.after_distance_filter) == expected["after_distance_filter"]
    assert list(result.after_diversity_filter) == expected["after_diversity_filter"]
    np.testing.assert_allclose(
        result.to_frame().to_numpy(), expected["counterfactuals"], rtol=0, atol=tol["counterfactuals"]
    )
    norm = {"l1": 1, "l2": 2}[inputs["distance"]]
    costs = np.linalg.norm(np.array(expected["counterfactuals"]) - inputs["x"], norm, axis=1)
    assert [answer.cost for answer in result] == pytest.approx(costs)


@pytest.mark.parametrize("instance", INSTANCES)
def test_n_takes_the_first_and_no_tolerance_the_rows_themselves(instance):
    inputs, expected = instance["inputs"], instance["expected"]
    made = explainer(inputs).set_params(tolerance=None).fit(inputs["data"])
    result = made.explain(affine(inputs), inputs["x"], target="yes", n=2)

    assert list(result.after_distance_filter) == expected["after_distance_filter"]
    assert list(result.after_diversity_filter) == expected["after_diversity_filter"][:2]
    rows = np.array(inputs["data"])[expected["after_diversity_filter"][:2]]
    assert (result.to_frame().to_numpy() == rows).all()
