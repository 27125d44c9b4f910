"""Metrics of counterfactuals, each by its own definition, on the results of any library.

Tables are frames in raw units, arrays or solution sets. Numbers are compared by their difference, categories by
equality; a :class:`~ceopt.FeatureSpace` says which is which.

>>> import ceopt.metrics as measured
>>> measured.set_distance([[0.0], [4.0]], [[1.0]], kind="max", norm="l1")
2.0
"""

from __future__ import annotations

from ceopt.metrics.cost import cost
from ceopt.metrics.determinant import dpp_determinant
from ceopt.metrics.dissimilarity import gower, heom
from ceopt.metrics.distance import distance
from ceopt.metrics.diversity import categorical_diversity, continuous_diversity, count_diversity, unique_fraction
from ceopt.metrics.evaluating import suite, suites
from ceopt.metrics.hull import hull_distance
from ceopt.metrics.k_distance import k_distance
from ceopt.metrics.k_diversity import k_diversity
from ceopt.metrics.neighbours import knn_distance, ynn
from ceopt.metrics.outliers import lof
from ceopt.metrics.proximity import categorical_proximity, continuous_proximity
from ceopt.metrics.redundancy import redundancy
from ceopt.metrics.robustness import invalidation_rate, multiplicity_validity, plan_validity, robustness
from ceopt.metrics.run_time import run_time, run_time_ratio
from ceopt.metrics.set_distance import set_distance
from ceopt.metrics.sparsity import changed_count, sparsity
from ceopt.metrics.stability import local_fidelity, stability
from ceopt.metrics.validity import distinct_validity, label_change, label_gap, success_rate, validity
from ceopt.metrics.violations import broken_rules, immutable_changes

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
