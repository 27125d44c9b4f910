"""Mean and covariance of the parameters of a linear classifier, from retraining it on random parts of its data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ceopt.parallel.jobs import whole_jobs
from ceopt.parallel.retraining import each_retrained, labels_of, retrained, rows_of_data
from ceopt.plans.threads import one_thread
from ceopt.solvers.checks import LENGTH, AllOf, Real, Refusal, Whole, check_arguments
from ceopt.solvers.errors import UnsupportedModelError
from ceopt.tolerances import LINEAR_SCORE

__all__ = ["bootstrap_moments"]

_TOO_LARGE = Refusal("a fraction of at most 1", "Give for example 0.5.")
_CHECKS = {
    "n_models": Whole(at_least=2),
    "fraction": AllOf((Real(above=0.0), Real(at_most=1.0, otherwise=_TOO_LARGE))),
    "regularization": LENGTH,
    "random_state": Whole(at_least=0),
}

Floats = NDArray[np.float64]
_WHO = "bootstrap_moments"
_PROBES = 100  # rows on which the first model is compared with its coefficients


@one_thread
def bootstrap_moments(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    n_models: int = 1000,
    fraction: float = 0.5,
    regularization: float = 0.0,
    n_jobs: int = 1,
    random_state: int = 0,
    progress: bool = False,
) -> tuple[Floats, Floats]:
    r"""Retrain a linear classifier on random parts of its data and return the moments of its parameters.

    Each of the ``n_models`` parts has ``fraction`` of the rows of each class, at least one, drawn without replacement.
    A clone of the estimator is fitted on each. With its coefficients w and intercept c, :math:`\theta = (w, c)` has
    score :math:`w^\top x + c`, positive where the model predicts ``classes_[1]``, the label that sorts last; and

    .. math::
        \hat\mu = \frac{1}{B} \sum_b \theta_b, \qquad
        \hat\Sigma = \frac{1}{B - 1} \sum_b (\theta_b - \hat\mu) (\theta_b - \hat\mu)^\top + \lambda I.

    Of a pipeline only the last step is retrained, so that all coefficients belong to the same columns: those that it
    sees. The steps before are used as they are if the pipeline is fitted, and else fitted once, on all rows. A plan is
    then one in these columns, ``pipeline[:-1].transform(rows)`` with a column of ones appended.

    Parameters
    ----------
    estimator
        A scikit-learn classifier with ``coef_`` and ``intercept_``, or a pipeline that ends in one. It stays as it is.
    X
        Rows to train on, shape (n, d): an array, a sparse matrix or a frame.
    y
        Their labels, shape (n,), of two classes.
    n_models
        How many models are trained, at least 2.
    fraction
        Part of the rows that each sees, above 0, at most 1.
    regularization
        :math:`\lambda`, added to the diagonal of the covariance; at least 0.
    n_jobs
        Processes, as joblib counts them; backends as in :meth:`ceopt.Recourse.explain`. One that is killed costs time,
        not the work of the others.
    random_state
        Of the parts, and of estimators that have a ``random_state`` of None. The same number gives the same models
        whatever ``n_jobs`` is.
    progress
        Show a bar on standard error.

    Returns
    -------
    tuple
        Mean (d + 1,) and covariance (d + 1, d + 1), the intercept last. An estimator without intercept has one of 0.

    Raises
    ------
    UnsupportedModelError
        The estimator is no linear classifier, or the labels have other than two classes.
    InvalidValueError, InvalidTypeError
        No rows, another number of labels than rows, or an option out of range.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, section 5: 1,000 models on
    halves of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ceopt.plans import bootstrap_moments
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> mean, covariance = bootstrap_moments(LogisticRegression(), X, X[:, 0] + X[:, 1] > 0.5, n_models=20)
    >>> mean.round(1).tolist(), covariance.shape
    ([2.5, 2.6, -1.7], (3, 3))
    """
    check_arguments(_WHO, _CHECKS, locals())
    whole_jobs(_WHO, n_jobs)
    labels = _labels(y)
    classifier, rows = _last_step(estimator, X, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # this fit comes again, and is counted then
        first = retrained(classifier, rows, labels, fraction, np.random.SeedSequence(random_state).spawn(1)[0])
    size = len(_parameters(first, rows))
    found = each_retrained(
        _WHO, _coefficients, classifier, rows, labels,
        n_models=n_models, fraction=fraction, n_jobs=n_jobs, random_state=random_state, progress=progress,
    )  # fmt: skip
    thetas = np.array(found)
    covariance = np.cov(thetas, rowvar=False) + regularization * np.eye(size)
    return thetas.mean(axis=0), (covariance + covariance.T) / 2.0


def _labels(y: ArrayLike) -> NDArray[Any]:
    labels = labels_of(_WHO, y)
    classes = np.unique(labels)
    if len(classes) != 2:
        shown = ", ".join(map(str, classes[:5].tolist())) + (", ..." if len(classes) > 5 else "")
        but = f"y has {len(classes)}: {shown}"
        raise UnsupportedModelError(_WHO, "labels of two classes", but, "Train a model of one class against the rest.")
    return labels


def _last_step(estimator: Any, X: Any, labels: NDArray[Any]) -> tuple[Any, Any]:
    """Return the classifier to retrain and the rows that it sees."""
    rows = rows_of_data(_WHO, estimator, X, labels)
    if not isinstance(estimator, Pipeline):
        return _require_classifier(estimator), rows
    classifier = _require_classifier(estimator[-1])
    before = estimator[:-1]
    if not len(before.steps):
        return classifier, rows
    try:
        check_is_fitted(before)
    except NotFittedError:
        before = clone(before).fit(rows, labels)
    return classifier, before.transform(rows)


def _require_classifier(estimator: Any) -> Any:
    if not is_classifier(estimator):
        but = f"it is {type(estimator).__name__}"
        raise UnsupportedModelError(_WHO, "a linear classifier", but, "Give for example LogisticRegression().")
    return estimator


def _coefficients(model: Any) -> Floats:
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_  # a linear SVC's may be sparse
    w = np.asarray(coef, dtype=np.float64).ravel()
    return np.concatenate([w, np.asarray(model.intercept_, dtype=np.float64).ravel()])


def _parameters(model: Any, rows: Any) -> Floats:
    """Return the parameters of a fitted model, or refuse it if they are not what it decides by."""
    name = type(model).__name__
    then = "Give a classifier with coef_ and intercept_; for any other local_moments fits a local linear model."
    if not hasattr(model, "coef_") or not hasattr(model, "intercept_"):
        raise UnsupportedModelError(_WHO, "a linear classifier", f"{name} has no coefficients", then)
    theta = _coefficients(model)
    probes = rows[:_PROBES]
    matrix = probes.toarray() if hasattr(probes, "toarray") else np.asarray(probes)
    if len(theta) != matrix.shape[1] + 1 or not hasattr(model, "decision_function"):
        raise UnsupportedModelError(_WHO, "one coefficient a column", f"{name} has {len(theta) - 1}", then)
    score = matrix.astype(np.float64) @ theta[:-1] + theta[-1]
    size = 1.0 + np.abs(matrix.astype(np.float64)) @ np.abs(theta[:-1]) + abs(theta[-1])
    if (np.abs(score - model.decision_function(probes)) > LINEAR_SCORE * size).any():
        but = f"the scores of {name} are not those of its coefficients"
        raise UnsupportedModelError(_WHO, "a linear classifier", but, then)
    return theta
