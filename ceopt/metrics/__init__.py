"""Metrics of counterfactuals, each by its own definition, on the results of any library.

Tables are frames in raw units, arrays or solution sets. Numbers are compared by their difference, categories by
equality; a :class:`~ceopt.FeatureSpace` says which is which.

>>> import ceopt.metrics as measured
>>> measured.set_distance([[0.0], [4.0]], [[1.0]], kind="max", norm="l1")
2.0
"""

from __future__ import annotations

import importlib
from typing import Any

from ceopt.metrics.distance import distance, k_distance, set_distance
from ceopt.metrics.diversity import (
    categorical_diversity,
    continuous_diversity,
    count_diversity,
    dpp_determinant,
    k_diversity,
    unique_fraction,
)
from ceopt.metrics.people import run_time, run_time_ratio
from ceopt.metrics.plausibility import hull_distance, knn_distance, local_fidelity, lof, stability, ynn
from ceopt.metrics.proximity import (
    broken_rules,
    categorical_proximity,
    changed_count,
    continuous_proximity,
    cost,
    gower,
    heom,
    immutable_changes,
    redundancy,
    sparsity,
)
from ceopt.metrics.suites import suite, suites
from ceopt.metrics.validity import (
    distinct_validity,
    future_validity,
    invalidation_rate,
    label_change,
    label_gap,
    multiplicity_validity,
    plan_validity,
    robustness,
    success_rate,
    validity,
)

__all__ = [
    "broken_rules",
    "categorical_diversity",
    "categorical_proximity",
    "changed_count",
    "continuous_diversity",
    "continuous_proximity",
    "cost",
    "count_diversity",
    "distance",
    "distinct_validity",
    "dpp_determinant",
    "excess",
    "future_validity",
    "gower",
    "heom",
    "hull_distance",
    "immutable_changes",
    "invalidation_rate",
    "k_distance",
    "k_diversity",
    "knn_distance",
    "label_change",
    "label_gap",
    "local_fidelity",
    "lof",
    "multiplicity_validity",
    "plan_validity",
    "redundancy",
    "robustness",
    "run_time",
    "run_time_ratio",
    "set_distance",
    "sparsity",
    "stability",
    "success_rate",
    "suite",
    "suites",
    "unique_fraction",
    "validity",
    "ynn",
]


def __getattr__(name: str) -> Any:
    """Give ``excess``, which asks the engine: a door of ceopt, imported when it is asked for."""
    if name != "excess":
        raise AttributeError(f"module 'ceopt.metrics' has no attribute {name!r}")
    return importlib.import_module("ceopt.excess").excess
