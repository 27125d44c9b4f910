"""CE-OCL: Maragno, Roeber & Birbil (2022), tables 2, 3 and 5, as ``ce_helpers.py`` computes them.

The paper refers to DiCE's definitions, but its continuous ones are in raw units: no MAD, no average over columns.
Tables are rounded to two decimals, this is not. The released code measures values that it has rounded to two decimals.
"""

from __future__ import annotations

import numpy as np

from ceopt.metrics.proximity import continuous_proximity
from ceopt.metrics.published.measure import (
    CATEGORICAL_DIVERSITY,
    CATEGORICAL_PROXIMITY,
    COUNT_DIVERSITY,
    SPARSITY,
    Evidence,
    Measure,
)
from ceopt.metrics.rows import read
from ceopt.metrics.validity import label_gap

__all__ = ["CE_OCL2022"]

_CODE = "CE-OCL ce_helpers.py"


def _continuous_diversity(known: Evidence) -> float:
    """Return the mean over pairs of the raw l1 distance, numbers rounded to four decimals first."""
    (rows,) = read("continuous_diversity", known.space, S=known.S)
    if len(rows) < 2 or not rows.numeric:
        return float("nan")
    numbers = np.round(rows.numbers, 4)
    first, second = np.triu_indices(len(rows), 1)
    return float(np.abs(numbers[first] - numbers[second]).sum(axis=1).mean())


#: The seven columns of the paper's tables. Where a person has one counterfactual, diversities are nan ("None" there).
CE_OCL2022 = (
    Measure(
        name="validity",
        function="label_gap",
        better="higher",
        needs=("factual", "model"),
        source=f"{_CODE}, evaluation",
        of=lambda e: label_gap(e.factual, e.S, e.model, e.target, space=e.space),
    ),
    CATEGORICAL_PROXIMITY.by(f"{_CODE}, prox_score"),
    Measure(
        name="continuous_proximity",
        function="continuous_proximity(scale='none', over='sum')",
        better="higher",
        needs=("factual",),
        source=f"{_CODE}, prox_score",
        of=lambda e: continuous_proximity(e.factual, e.S, space=e.space, scale="none", over="sum"),
    ),
    SPARSITY.by(f"{_CODE}, sparsity_score"),
    CATEGORICAL_DIVERSITY.by(f"{_CODE}, diversity_score"),
    Measure(
        name="continuous_diversity",
        function="continuous_diversity(scale='none', over='sum') of values rounded to 4 decimals",
        better="higher",
        needs=(),
        source=f"{_CODE}, diversity_score",
        of=_continuous_diversity,
    ),
    COUNT_DIVERSITY.by(f"{_CODE}, spars_divers_score", name="sparsity_based_diversity"),
)
