"""Linear models of scikit-learn: the score is ``coef_ @ x + intercept_``.

Two classes have one score and predict the second class iff it is > 0 (SVC: >= 0); more classes have one score each and
the first of the largest wins. The probability of the second of two classes is ``1 / (1 + exp(-score))`` for
LogisticRegression, LinearDiscriminantAnalysis and SGDClassifier(loss="log_loss").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.formulations.predictors.representation.decision_rule import Decision, Probability

__all__ = ["LINEAR"]

_LOGISTIC: Final = ("LinearDiscriminantAnalysis", "LogisticRegression", "LogisticRegressionCV")
_CLASSIFIERS: Final = (
    *_LOGISTIC, "LinearSVC", "Perceptron", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier",
)  # fmt: skip
_REGRESSORS: Final = (
    "ElasticNet", "ElasticNetCV", "Lasso", "LassoCV", "LinearRegression", "LinearSVR", "Ridge", "RidgeCV",
    "SGDRegressor",
)  # fmt: skip


def _regressor(model: Any, dtype: str) -> Affine:
    name = type(model).__name__
    coef = _array(model.coef_)
    if coef.ndim != 1:
        raise refuse(
            "one output", f"{name} was fitted on y with {coef.shape[0]} column(s)",
            "Fit it on a one-dimensional y, one model per output.",
        )  # fmt: skip
    return Affine(coef, _array(model.intercept_), dtype=_width(coef, dtype))


def _classifier(model: Any, dtype: str) -> Affine:
    name = type(model).__name__
    binarizer = getattr(model, "_label_binarizer", None)
    if binarizer is not None and binarizer.y_type_.startswith("multilabel"):
        raise refuse("one label per row", f"{name} was fitted on several", "Fit one classifier per label.")
    logistic = name in _LOGISTIC or (name == "SGDClassifier" and model.loss == "log_loss")
    return _affine(model, dtype, "logistic" if logistic else None, "positive")


def _support_vectors(model: Any, dtype: str) -> Affine:  # noqa: ARG001
    """Read an SVC, which adds up kernels over its support vectors in float64 and gives ties to the second class."""
    if model.kernel != "linear":
        raise refuse(
            "linear kernels", f"SVC has kernel={model.kernel!r}", "Fit SVC(kernel='linear'), LinearSVC or a forest."
        )
    if len(model.classes_) > 2:
        raise refuse(
            "an SVC of two classes", f"SVC has {len(model.classes_)} and lets pairs of them vote",
            "Fit LinearSVC or LogisticRegression.",
        )  # fmt: skip
    return _affine(model, "float64", None, "nonnegative")


def _affine(model: Any, dtype: str, probability: Probability | None, decision: Decision) -> Affine:
    coef = _array(model.coef_)
    labels = model.classes_.tolist()
    two = len(labels) == 2
    return Affine(
        coef, _array(model.intercept_), labels=labels, decision=decision if two else "argmax",
        probability=probability if two else None, dtype=_width(coef, dtype),
    )  # fmt: skip


def _array(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _width(coef: np.ndarray[Any, Any], dtype: str) -> str:
    return str(np.result_type(coef.dtype, dtype, np.float32))


LINEAR: Final[Mapping[str, Callable[[Any, str], Affine]]] = {
    **dict.fromkeys(_CLASSIFIERS, _classifier),
    **dict.fromkeys(_REGRESSORS, _regressor),
    "SVC": _support_vectors,
}
