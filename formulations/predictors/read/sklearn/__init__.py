"""Estimators of scikit-learn, by class name. A subclass may predict otherwise, so only scikit-learn's own are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ceopt.formulations.predictors.read.model_input import refuse, same_version
from ceopt.formulations.predictors.read.responses import decision_unit
from ceopt.formulations.predictors.read.sklearn.ensembles import ENSEMBLES
from ceopt.formulations.predictors.read.sklearn.linear import LINEAR
from ceopt.formulations.predictors.read.sklearn.members import Composite
from ceopt.formulations.predictors.read.sklearn.mlp import NETWORKS
from ceopt.formulations.predictors.read.sklearn.trees import BOOSTING, TREES, own_steps
from ceopt.formulations.predictors.read.sklearn.wrappers import WRAPPERS
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation

if TYPE_CHECKING:
    from ceopt.formulations.predictors.read import Behind

__all__ = ["COMPOSITES", "ESTIMATORS", "MODELS", "own_scores", "own_steps", "read_composite", "read_estimator"]

ESTIMATORS: Final[Mapping[str, Callable[[Any, str], AbstractRepresentation]]] = {
    **BOOSTING,
    **LINEAR,
    **NETWORKS,
    **TREES,
}

#: Models that are made of other models.
COMPOSITES: Final[Mapping[str, Callable[[Any, Behind], Composite]]] = {**ENSEMBLES, **WRAPPERS}

#: Composites of several classes whose scores are the library's decision values.
_DECIDING: Final = ("AdaBoostClassifier", "OneVsRestClassifier")

_INSTEAD: Final[Mapping[str, str]] = {
    "AdaBoostRegressor": "It predicts the weighted median of its members; fit GradientBoostingRegressor. ",
}

#: What is read, by how it is embedded (see ``table_of_models.py``).
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "linear": tuple(LINEAR),
    "networks": tuple(NETWORKS),
    "trees": (*TREES, *BOOSTING),
    "models of models": tuple(COMPOSITES),
}


def read_estimator(estimator: Any, dtype: str) -> AbstractRepresentation:
    """Return what a fitted estimator computes from a matrix of float width ``dtype``.

    Raises
    ------
    UnsupportedModelError
        Its class or an option has no exact representation, or another version of scikit-learn fitted it.
    """
    name = type(estimator).__name__
    reader = ESTIMATORS.get(name)
    if reader is None:
        raise refuse(
            "a model that it can state exactly", f"the estimator is {name}",
            f"{_INSTEAD.get(name, '')}Fit one that is read, such as {_like(estimator)}; `ceopt models` lists them.",
        )  # fmt: skip
    with same_version(estimator):
        return reader(estimator, dtype)


def _like(estimator: Any) -> str:
    if hasattr(estimator, "classes_"):
        kind = "Classifier"
    else:
        kind = "Regressor"
    return f"RandomForest{kind} or HistGradientBoosting{kind}"


def own_scores(estimator: Any, rows: Any) -> Any:
    """Return the library's decision values, in the unit of the scores, of classes that it tells apart by them."""
    name = type(estimator).__name__
    decides = name in LINEAR or name in BOOSTING or name in _DECIDING
    if not decides or not hasattr(estimator, "decision_function"):
        return None
    joined = len(getattr(estimator, "classes_", ())) > 2 and name == "OneVsRestClassifier"  # read in its own unit
    return estimator.decision_function(rows) / (1.0 if joined else decision_unit(estimator, name))


def read_composite(estimator: Any, behind: Behind) -> Composite | None:
    """Return what a model made of others computes, and what that sees of the raw columns; None for all else."""
    reader = COMPOSITES.get(type(estimator).__name__)
    if reader is None:
        return None
    with same_version(estimator):
        return reader(estimator, behind)
