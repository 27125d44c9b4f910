"""Gaps of pandas' own dtypes beside NumPy's: one thing, whatever the frame holds them as."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import ceopt


@pytest.mark.parametrize("dtype", ["Int64", "Int8", "Float64", "boolean"])
@pytest.mark.parametrize("beside", ["int64", "float64", "Int64"])
def test_a_nullable_column_with_gaps_is_asked_about_as_a_float_one_is(dtype, beside):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2 if dtype == "boolean" else 9, 300)
    X = pd.DataFrame({"a": pd.array(a.astype(bool) if dtype == "boolean" else a, dtype=dtype)})
    X["b"] = pd.array(rng.integers(0, 5, 300), dtype=beside)
    y = (2 * a + X["b"].astype(int) > 4).astype(int)
    X.loc[::7, "a"] = pd.NA
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, y)
    row = X[model.predict(X) == 0].iloc[[1]]

    found = ceopt.explain(model, row, ceopt.FeatureSpace.infer(X), target=1)

    plain = X.astype(float)
    expected = ceopt.explain(
        HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(plain, y),
        plain.loc[row.index],
        ceopt.FeatureSpace.infer(plain, binary=["a"] if dtype == "boolean" else [], integer=["b"]),
        target=1,
        cost=ceopt.L1(scale="none"),
    )
    again = ceopt.explain(model, row, ceopt.FeatureSpace.infer(X), target=1, cost=ceopt.L1(scale="none"))
    assert found.status == again.status == expected.status == "optimal"
    assert again[0].cost == pytest.approx(expected[0].cost)


def test_none_among_allowed_values_is_a_gap():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.integers(0, 9, 200).astype(float), "b": rng.integers(0, 5, 200)})
    y = (X["a"] > 4).astype(int)
    X.loc[::5, "a"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, y)
    row = X[X["a"].isna() & (model.predict(X) == 0)].iloc[[0]]

    space = ceopt.FeatureSpace.infer(X)
    results = [
        ceopt.explain(model, row, space, target=1, constraints=[ceopt.AllowedValues({"a": [gap, 7.0]})])
        for gap in (np.nan, None, pd.NA)
    ]

    assert [str(result.status) for result in results] == ["optimal"] * 3
    assert {result[0].values["a"] for result in results} == {7.0}
