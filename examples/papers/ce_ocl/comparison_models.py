"""The grid of models in CE-OCL: what is tried of each, what cross-validation chooses, and a model of raw rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ce_ocl.comparison_cases import SEED, Case

__all__ = ["KINDS", "Grid", "fitted", "tuned"]

FOLDS = 3


@final
@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A kind of model and what is tried of it, as the released code does."""

    estimator: Any
    options: Mapping[str, list[Any]]


KINDS: Mapping[str, Grid] = {
    "logistic": Grid(
        LogisticRegression(solver="saga", max_iter=10_000, random_state=SEED),
        {"C": np.arange(0.001, 1, 0.05).round(3).tolist(), "l1_ratio": [0.0, 1.0]},
    ),
    "svm": Grid(LinearSVC(dual=False, max_iter=100_000), {"C": [0.1, 1, 10, 100]}),
    "tree": Grid(
        DecisionTreeClassifier(random_state=SEED),
        {
            "max_depth": [3, 4, 5, 6, 7, 8, 9, 10],
            "min_samples_leaf": [0.02, 0.04, 0.06],
            "max_features": [0.4, 0.6, 0.8, 1.0],
        },
    ),
    "forest": Grid(RandomForestClassifier(random_state=SEED), {"n_estimators": [10, 25], "max_depth": [2, 3, 4]}),
    "boosting": Grid(
        GradientBoostingClassifier(n_estimators=20, init="zero", random_state=SEED),
        {"learning_rate": [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2], "max_depth": [2, 3, 4, 5]},
    ),
    "network": Grid(
        MLPClassifier(max_iter=10_000, random_state=SEED),
        {"hidden_layer_sizes": [(10,), (20,), (50,), (100,)]},
    ),
}


def tuned(case: Case, kind: str, best: int = 6) -> list[dict[str, Any]]:
    """Return the best options by cross-validation on the training part (area under the curve, three folds), ranked."""
    grid = KINDS[kind]
    X, y = case.encoder.transform(case.data[case.train]), case.labels[case.train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(grid.estimator, dict(grid.options), scoring="roc_auc", cv=FOLDS, refit=False).fit(X, y)
    found = search.cv_results_
    ranked = np.argsort(found["rank_test_score"], kind="stable")[:best]
    return [{"options": found["params"][k], "auc": float(found["mean_test_score"][k])} for k in ranked]


def fitted(case: Case, kind: str, options: Mapping[str, Any]) -> Pipeline:
    """Fit the model with some options, and put the encoder before it: a model of raw rows."""
    estimator = clone(KINDS[kind].estimator).set_params(**options)
    X, y = case.encoder.transform(case.data[case.train]), case.labels[case.train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X, y)
    return Pipeline([("encode", case.encoder), ("model", estimator)])
