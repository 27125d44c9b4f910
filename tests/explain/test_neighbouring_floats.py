"""Models that were fitted on columns of neighbouring floats are answered, whatever the solver."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ceopt


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
