"""Estimators of scikit-learn, by class name. A subclass may predict otherwise, so only scikit-learn's own are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ceopt.formulations.predictors.head import AbstractRepresentation
from ceopt.formulations.predictors.read.boosting import BOOSTING
from ceopt.formulations.predictors.read.linear import LINEAR
from ceopt.formulations.predictors.read.trace import refuse
from ceopt.formulations.predictors.read.trees import TREES

__all__ = ["ESTIMATORS", "read_estimator"]

ESTIMATORS: Final[Mapping[str, Callable[[Any, str], AbstractRepresentation]]] = {**BOOSTING, **LINEAR, **TREES}

_INSTEAD: Final[Mapping[str, str]] = {
    "CalibratedClassifierCV": "Give the classifier under it. ",
    "FixedThresholdClassifier": "Give its estimator_ and ask for a ceopt.Probability. ",
    "TransformedTargetRegressor": "Give its regressor_ and state the target in transformed units. ",
    "TunedThresholdClassifierCV": "Give its estimator_ and ask for a ceopt.Probability at its best_threshold_. ",
}


def read_estimator(estimator: Any, dtype: str) -> AbstractRepresentation:
    """Return what a fitted estimator computes from a matrix of float width ``dtype``.

    Raises
    ------
    UnsupportedModelError
        Its class or an option has no exact representation.
    """
    name = type(estimator).__name__
    reader = ESTIMATORS.get(name)
    if reader is None:
        raise refuse(
            "a model that it can state exactly", f"the estimator is {name}",
            f"{_INSTEAD.get(name, '')}Estimators that are read: {', '.join(sorted(ESTIMATORS))}.",
        )  # fmt: skip
    return reader(estimator, dtype)
