"""DiCE: Mothilal, Sharma & Tan (2020), evaluation. A MAD of zero counts as 1.0, as in the released code."""

from __future__ import annotations

from typing import Any

from ceopt.metrics.diversity import continuous_diversity
from ceopt.metrics.proximity import continuous_proximity
from ceopt.metrics.published.measure import (
    CATEGORICAL_DIVERSITY,
    CATEGORICAL_PROXIMITY,
    COUNT_DIVERSITY,
    SPARSITY,
    Evidence,
    Measure,
)
from ceopt.metrics.validity import distinct_validity

__all__ = ["DICE2020"]

_PAPER = "Mothilal et al. 2020"


def _by_mad(known: Evidence) -> dict[str, Any]:
    # get_valid_mads() of dice_ml replaces a MAD of zero by 1.0.
    return {"space": known.space, "scale": "mad", "data": known.data, "zero": 1.0}


#: The evaluation of the paper: seven numbers.
DICE2020 = (
    Measure(
        name="validity",
        function="distinct_validity(n=asked for)",
        better="higher",
        needs=("model", "target"),
        source=f"{_PAPER}, validity",
        of=lambda e: distinct_validity(e.S, e.model, e.target, n=e.n, space=e.space),
        when_empty=0.0,
    ),
    Measure(
        name="continuous_proximity",
        function="continuous_proximity(scale='mad', zero=1.0)",
        better="higher",
        needs=("factual", "mad"),
        source=f"{_PAPER}, proximity",
        of=lambda e: continuous_proximity(e.factual, e.S, **_by_mad(e)),
    ),
    CATEGORICAL_PROXIMITY.by(f"{_PAPER}, proximity"),
    SPARSITY.by(f"{_PAPER}, sparsity"),
    Measure(
        name="continuous_diversity",
        function="continuous_diversity(scale='mad', zero=1.0)",
        better="higher",
        needs=("mad",),
        source=f"{_PAPER}, diversity",
        of=lambda e: continuous_diversity(e.S, **_by_mad(e)),
    ),
    CATEGORICAL_DIVERSITY.by(f"{_PAPER}, diversity"),
    COUNT_DIVERSITY.by(f"{_PAPER}, count diversity"),
)
