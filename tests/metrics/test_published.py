"""The suite of CE-OCL gives every number of the paper's table 5b from the counterfactuals of its table 5a.

Maragno, Roeber & Birbil (2022), German credit, parts A to F: 7 numbers and 13 categories, of which no more than the
seven named below ever change. In part E (a) the third category to change is F18: with F20, categorical diversity would
be 0.33.
"""

from __future__ import annotations

import math

import pandas as pd
import pytest

from ceopt.metrics import suite

NUMBERS = {
    "duration": 24.0,
    "amount": 1371.26,
    "instalment": 4.0,
    "age": 25.0,
    "residence": 1.0,
    "credits": 1.0,
    "dependents": 1.0,
}
CATEGORIES = {
    "F8": "<0",
    "F10": "1<=X<4",
    "F12": "rent",
    "F14": "none",
    "F16": "none",
    "F18": "real estate",
    "F20": "unknown",
}
REST = {f"same{k}": "as before" for k in range(6)}
FACTUAL = NUMBERS | CATEGORIES | REST

PARTS = {
    "A": [{"duration": 15.02, "amount": -333.52, "instalment": 3.86, "age": 27.04}],
    "B": [{"duration": 7.12}],
    "C": [{"duration": 7.12}, {"amount": -2873.47, "age": 30.06}, {"instalment": 1.96, "age": 26.63}],
    "D": [{"duration": 7.12}, {"instalment": 1.96, "age": 26.63}, {"age": 75.52}],
    "E": [
        {"duration": 22.0, "amount": 1283.52, "F8": "none", "F10": "4<=X<7", "F18": "life insurance"},
        {"duration": 10.0, "amount": 1363.43, "instalment": 2.0, "age": 64.0,
         "F8": "none", "F12": "own", "F16": "yes", "F18": "car", "F20": "<100"},
        {"duration": 12.0, "amount": 1893.04, "age": 29.0,
         "F12": "own", "F14": "guarantor", "F16": "yes", "F18": "life insurance", "F20": "<100"},
    ],
    "F": [
        {"F8": "none", "F10": "4<=X<7", "F20": "<100"},
        {"duration": 22.0, "amount": 990.51, "F8": "none", "F10": "4<=X<7", "F20": "<100"},
        {"duration": 26.83, "amount": 1910.28, "F8": "none", "F10": "4<=X<7", "F20": "<100"},
    ],
}  # fmt: skip

NAMES = (
    "categorical_proximity", "continuous_proximity", "sparsity",
    "categorical_diversity", "continuous_diversity", "sparsity_based_diversity",
)  # fmt: skip
NAN = math.nan
TABLE_5B = {
    "A": (1.00, -1715.94, 0.80, NAN, NAN, NAN),
    "B": (1.00, -16.88, 0.95, NAN, NAN, NAN),
    "C": (1.00, -1423.45, 0.92, 0.00, 2845.81, 0.15),
    "D": (1.00, -23.69, 0.93, 0.00, 46.29, 0.12),
    "E": (0.67, -230.12, 0.63, 0.36, 441.68, 0.42),
    "F": (0.77, -308.20, 0.78, 0.00, 616.40, 0.10),
}


@pytest.mark.parametrize("part", PARTS)
def test_table_5b_of_ce_ocl(part):
    factual = pd.DataFrame([FACTUAL])
    S = pd.DataFrame([FACTUAL | changes for changes in PARTS[part]])
    found = suite("ce_ocl2022", S, factual=factual, missing="nan")

    assert factual.shape == (1, 20)
    assert math.isnan(found["validity"])  # no model: the paper's table has none either
    assert found[list(NAMES)].round(2).tolist() == pytest.approx(TABLE_5B[part], abs=1e-9, nan_ok=True)
