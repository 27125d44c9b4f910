"""A few people, a model that anyone can compute in their head, and fitted pipelines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import Feature, FeatureSpace


@pytest.fixture
def space() -> FeatureSpace:
    """Five columns, each with a rule of its own."""
    return FeatureSpace(
        [
            Feature("income", kind="continuous", lower=0.0, upper=9.0),
            Feature("age", kind="integer", lower=18, upper=99, direction="increasing"),
            Feature("loan", kind="continuous", lower=0.0, upper=50.0, step=0.1),
            Feature("size", kind="ordinal", levels=("S", "M", "L"), direction="decreasing"),
            Feature("sex", kind="binary", levels=("f", "m"), mutable=False),
        ]
    )


@pytest.fixture
def person() -> dict[str, Any]:
    return {"income": 2.0, "age": 30, "loan": 1.0, "size": "M", "sex": "f"}


@pytest.fixture
def model() -> Affine:
    """Good iff income exceeds 3."""
    return Affine([1.0, 0.0, 0.0, 0.0, 0.0], -3.0, labels=("bad", "good"), probability="logistic")


@pytest.fixture(scope="session")
def credit() -> SimpleNamespace:
    """A frame with text and bool columns, and a pipeline that was fitted on it."""
    rng = np.random.default_rng(3)
    n = 160
    frame = pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, n).round(2),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "loans": rng.integers(0, 5, n),
            "owner": rng.random(n) < 0.4,
        }
    )
    score = frame["income"] / 8 - frame["loans"] + frame["owner"] + (frame["job"] == "nurse")
    label = pd.Series(np.where(score > score.median(), "good", "bad"), name="decision")
    columns = make_column_transformer(
        (StandardScaler(), ["income", "loans"]), (OneHotEncoder(), ["job"]), remainder="passthrough"
    )
    model = make_pipeline(columns, LogisticRegression()).fit(frame, label)
    rejected = frame[model.predict(frame) == "bad"]
    return SimpleNamespace(frame=frame, label=label, model=model, space=FeatureSpace.infer(frame), rejected=rejected)
