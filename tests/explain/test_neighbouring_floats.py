"""Models that were fitted on columns of neighbouring floats are answered, whatever the solver."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ceopt
from ceopt.formulations.costs import L1
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace


@pytest.mark.parametrize("solver", ["highs", "scip", "clarabel"])
def test_a_model_fitted_on_neighbouring_floats_is_answered_alike(solver: str) -> None:
    """Its score moves by 1e3 where its margin is 1e33: HiGHS called the program an error, and ceopt its units wrong."""
    start = 0.0017
    values = [start]
    for _ in range(5):
        values.append(float(np.nextafter(values[-1], np.inf)))
    frame = pd.DataFrame({"a": values * 8, "b": np.linspace(-1.0, 1.0, 48)})
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, np.arange(48) % 6 > 2)
    row = frame[~model.predict(frame)].iloc[0]
    result = ceopt.explain(model, row, ceopt.FeatureSpace.infer(frame), target=True, solver=solver)
    assert "1e15" not in result.reason
    assert (
        result.status == ceopt.explain(model, row, ceopt.FeatureSpace.infer(frame), target=True, solver="scip").status
    )


def test_a_column_of_a_few_floats_may_be_what_else_changes() -> None:
    """The least move that counts, a thousandth of the range, is less than a float: "no more" was said to be proved."""
    last = 0.5
    for _ in range(12):
        last = math.nextafter(last, 1.0)
    space = FeatureSpace(
        [Feature("a", kind="integer", lower=0, upper=9), Feature("c", kind="continuous", lower=0.5, upper=last)]
    )
    beyond = {"feature": 1, "threshold": 0.75, "left": {"value": 1.0}, "right": {"value": 2.0}}
    tree = {"feature": 0, "threshold": 3.5, "left": {"value": 0.0}, "right": beyond}
    model = TreeEnsemble([tree])
    home = {"a": 0, "c": 0.5}
    result = ceopt.explain(
        model, home, space, target=ceopt.AtLeast(1.0), n=2, cost=L1(scale="none"), diversity="support"
    )
    assert [answer.changed for answer in result] == [("a",), ("a", "c")]
    assert result[1].values["c"] == math.nextafter(0.5, 1.0)
