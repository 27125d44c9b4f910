"""Mean and covariance of uncertain parameters: by retraining, from a local model, and how far two pairs are apart."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ceopt.base.parallel import each_retrained, labels_of, one_thread, retrained, rows_of_data, whole_jobs
from ceopt.formulations.predictors.readers.model_input import dense
from ceopt.formulations.programs.moments import require_moments
from ceopt.solvers.checks import LENGTH, AllOf, Floats, Matrix, Real, Refusal, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedModelError
from ceopt.surrogates.rivals import RIDGE, lime_kernel, lime_width, weighted_ridge
from ceopt.tolerances import LINEAR_SCORE

# ==== Mean and covariance of the parameters of a linear classifier, from retraining it on random parts of its data ====

_TOO_LARGE = Refusal("a fraction of at most 1", "Give for example 0.5.")
_BOOTSTRAP_CHECKS = {
    "n_models": Whole(at_least=2),
    "fraction": AllOf((Real(above=0.0), Real(at_most=1.0, otherwise=_TOO_LARGE))),
    "regularization": LENGTH,
    "random_state": Whole(at_least=0),
}

_BOOTSTRAP = "bootstrap_moments"
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
    check_arguments(_BOOTSTRAP, _BOOTSTRAP_CHECKS, locals())
    whole_jobs(_BOOTSTRAP, n_jobs)
    labels = _labels(y)
    classifier, rows = _last_step(estimator, X, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # this fit comes again, and is counted then
        first = retrained(classifier, rows, labels, fraction, np.random.SeedSequence(random_state).spawn(1)[0])
    size = len(_parameters(first, rows))
    found = each_retrained(
        _BOOTSTRAP, _coefficients, classifier, rows, labels,
        n_models=n_models, fraction=fraction, n_jobs=n_jobs, random_state=random_state, progress=progress,
    )  # fmt: skip
    thetas = np.array(found)
    covariance = np.cov(thetas, rowvar=False) + regularization * np.eye(size)
    return thetas.mean(axis=0), (covariance + covariance.T) / 2.0


def _labels(y: ArrayLike) -> NDArray[Any]:
    labels = labels_of(_BOOTSTRAP, y)
    classes = np.unique(labels)
    if len(classes) != 2:
        shown = ", ".join(map(str, classes[:5].tolist())) + (", ..." if len(classes) > 5 else "")
        but = f"y has {len(classes)}: {shown}"
        then = "Train a model of one class against the rest."
        raise UnsupportedModelError(_BOOTSTRAP, "labels of two classes", but, then)
    return labels


def _last_step(estimator: Any, X: Any, labels: NDArray[Any]) -> tuple[Any, Any]:
    """Return the classifier to retrain and the rows that it sees."""
    rows = rows_of_data(_BOOTSTRAP, estimator, X, labels)
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
        raise UnsupportedModelError(_BOOTSTRAP, "a linear classifier", but, "Give for example LogisticRegression().")
    return estimator


def _coefficients(model: Any) -> Floats:
    w = dense(model.coef_).astype(np.float64).ravel()  # a linear SVC's may be sparse
    return np.concatenate([w, np.asarray(model.intercept_, dtype=np.float64).ravel()])


def _parameters(model: Any, rows: Any) -> Floats:
    """Return the parameters of a fitted model, or refuse it if its scores are not theirs."""
    name = type(model).__name__
    then = "Give a classifier with coef_ and intercept_; for any other local_moments fits a local linear model."
    if not hasattr(model, "coef_") or not hasattr(model, "intercept_"):
        raise UnsupportedModelError(_BOOTSTRAP, "a linear classifier", f"{name} has no coefficients", then)
    theta = _coefficients(model)
    probes = rows[:_PROBES]
    matrix = dense(probes)
    if len(theta) != matrix.shape[1] + 1 or not hasattr(model, "decision_function"):
        raise UnsupportedModelError(_BOOTSTRAP, "one coefficient a column", f"{name} has {len(theta) - 1}", then)
    score = matrix.astype(np.float64) @ theta[:-1] + theta[-1]
    size = 1.0 + np.abs(matrix.astype(np.float64)) @ np.abs(theta[:-1]) + abs(theta[-1])
    if (np.abs(score - model.decision_function(probes)) > LINEAR_SCORE * size).any():
        but = f"the scores of {name} are not those of its coefficients"
        raise UnsupportedModelError(_BOOTSTRAP, "a linear classifier", but, then)
    return theta


# ==== The Gelbrich distance of two pairs of a mean and a covariance, in closed form ===================================


def gelbrich_distance(mean_a: ArrayLike, covariance_a: ArrayLike, mean_b: ArrayLike, covariance_b: ArrayLike) -> float:
    r"""Return the Gelbrich distance of two pairs of a mean and a covariance.

    .. math::
        G^2 = \lVert \mu_a - \mu_b \rVert^2 + \min_{O^\top O = I} \lVert F_a O - F_b \rVert_F^2, \qquad
        \Sigma_a = F_a F_a^\top, \quad \Sigma_b = F_b F_b^\top, \quad F_a, F_b \in \mathbb{R}^{d \times d},

    where the best O is :math:`U V^\top` of the singular value decomposition :math:`F_a^\top F_b = U S V^\top`. It is
    the 2-Wasserstein distance of the Gaussians with these moments, and no more than that of any two distributions with
    them. The minimum equals :math:`\operatorname{Tr}[\Sigma_a + \Sigma_b - 2 (\Sigma_b^{1/2} \Sigma_a
    \Sigma_b^{1/2})^{1/2}]`, but as a sum of squares it keeps its digits where the distance is small. One singular value
    decomposition of side d.

    Parameters
    ----------
    mean_a, mean_b
        Shape (d,).
    covariance_a, covariance_b
        Shape (d, d), symmetric and positive semidefinite; they may be singular or 0.

    Raises
    ------
    InvalidValueError
        Shapes disagree, a number is not finite, or a covariance is none.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, definition 2.1; Bhatia, Jain &
    Lim (2019), On the Bures-Wasserstein distance between positive definite matrices.
    :func:`ceopt.formulations.programs.gelbrich_distance` is the semidefinite program.

    Examples
    --------
    Standard deviations 1 and 4, means 0 and 4:

    >>> from ceopt.plans import gelbrich_distance
    >>> gelbrich_distance([0], [[1]], [4], [[16]])
    5.0
    """
    who = "gelbrich_distance"
    a = require_moments(f"{who} (first pair)", mean_a, covariance_a)
    b = require_moments(f"{who} (second pair)", mean_b, covariance_b, d=len(a.mean))
    one = _square(a.factor)
    other = _square(b.factor)
    left, _, right = np.linalg.svd(one.T @ other)
    return math.hypot(float(np.linalg.norm(a.mean - b.mean)), float(np.linalg.norm(one @ (left @ right) - other)))


def _square(factor: Floats) -> Floats:
    """Return a factor made square by columns of 0."""
    d, r = factor.shape
    return np.hstack([factor, np.zeros((d, d - r))])


# ==== Mean and covariance of a linear model that stands for any other near one row, in the manner of LIME =============

_LOCAL_CHECKS = {"n_samples": Whole(at_least=2), "variance": LENGTH, "random_state": Whole(at_least=0)}

_LOCAL: Final = "local_moments"
_CHANCE: Final = 0.5  # a probability of at least this is favourable


def local_moments(
    predict: Any,
    factual: ArrayLike,
    *,
    n_samples: int = 5000,
    variance: float = 0.05,
    random_state: int = 0,
    scale: ArrayLike = 1.0,
) -> tuple[Floats, Floats]:
    r"""Fit a linear model to any classifier near one row and return it as the moments of uncertain parameters.

    1. Sampled: :math:`z_i = x^0 + \operatorname{diag}(\sigma)\, u_i` with independent standard normal :math:`u_i`, the
       first being 0, the row itself.
    2. Asked: :math:`p_i`, the probability of the favourable class at :math:`z_i` less 0.5; or its decision, as it is.
    3. Weighted: by LIME's kernel :math:`k_i = \sqrt{\exp(-\lVert u_i \rVert^2 / h^2)}` of width
       :math:`h = 0.75 \sqrt d`.
    4. Fitted: :math:`\min_{\beta, c} \sum_i k_i (p_i - c - \beta^\top u_i)^2 + \lVert \beta \rVert^2`, ridge
       regression whose intercept is not penalised.
    5. Returned: as :math:`\hat\mu`, the same model of x, :math:`w = \beta / \sigma` and intercept
       :math:`c - w^\top x^0`, whose score is at least 0 where the local model calls x favourable; and
       :math:`\hat\Sigma = ` ``variance`` times the identity, intercept included.

    The covariance is an assumption, not an estimate, and validity by the local model is not validity by the model:
    report both. The row is as ``predict`` takes it, without a column for the intercept.

    Parameters
    ----------
    predict
        A fitted classifier of two classes, of which ``classes_[1]`` is favourable: its ``predict_proba``, or where it
        has none its ``decision_function``. Or a function that gives for rows (n, d) n probabilities of the favourable
        class, or a table (n, 2) with those in the second column.
    factual
        The row, shape (d,); a Series or a frame of one row has ``predict`` asked with frames of its columns.
    n_samples
        How many rows are asked, at least 2.
    variance
        Of each parameter, at least 0.
    random_state
        Of the samples.
    scale
        :math:`\sigma`, the standard deviation of the samples: a number, or one for each column, above 0. LIME's is
        that of the training data; 1 fits standardised columns.

    Returns
    -------
    tuple
        Mean (d + 1,) and covariance (d + 1, d + 1), the intercept last.

    Raises
    ------
    UnsupportedModelError
        A classifier of other than two classes, or what is neither a classifier nor a function.
    InvalidValueError, InvalidTypeError
        A row that is none, numbers out of range, or answers that are not n probabilities.

    References
    ----------
    Ribeiro, Singh & Guestrin (2016), "Why should I trust you?"; Bui, Nguyen & Nguyen (2022), Counterfactual plans under
    distributional ambiguity, appendix C.2, with 5,000 samples and 0.05 I.

    Examples
    --------
    The probability rises with the first column alone, steeply:

    >>> import numpy as np
    >>> from ceopt.plans import local_moments
    >>> mean, covariance = local_moments(lambda rows: 1 / (1 + np.exp(-4 * rows[:, 0])), [0.0, 3.0])
    >>> (mean.round(1) + 0.0).tolist(), covariance[0].tolist()
    ([0.5, 0.0, 0.0], [0.05, 0.0, 0.0])
    """
    check_arguments(_LOCAL, _LOCAL_CHECKS, locals())
    names, row = _row(factual)
    d = len(row)
    if np.ndim(scale) == 0:
        scale = np.broadcast_to(scale, (d,))
    spread = Matrix((d,)).require(_LOCAL, "scale", scale)
    if (spread <= 0.0).any():
        but = f"that of column {int((spread <= 0.0).argmax())} is {spread.min():g}"
        raise InvalidValueError(_LOCAL, "scales above 0", but, "Leave out a column that is constant.")
    u = np.random.default_rng(random_state).standard_normal((n_samples, d))
    u[0] = 0.0
    scores = _scores(predict, row + spread * u, names)
    beta, middle = weighted_ridge(u, scores, lime_kernel(u, lime_width(d)), RIDGE)
    w = beta / spread
    return np.append(w, middle - w @ row), float(variance) * np.eye(d + 1)


def _row(factual: Any) -> tuple[list[Any] | None, Floats]:
    """Return the names of the columns, if there are any, and the numbers of the row."""
    if isinstance(factual, pd.DataFrame):
        if len(factual) != 1:
            raise InvalidValueError(_LOCAL, "one row", f"factual has {len(factual)}", "Give frame.loc[[label]].")
        factual = factual.iloc[0]
    names = list(factual.index) if isinstance(factual, pd.Series) else None
    row = Matrix((None,), fill="Fill the cell in, or leave its column out.").require(_LOCAL, "factual", factual)
    if not len(row):
        raise InvalidValueError(_LOCAL, "at least one column", "factual is empty", "Give a row.")
    return names, row


def _scores(predict: Any, rows: Floats, names: list[Any] | None) -> Floats:
    """Return for each row a score that is at least 0 where it is favourable."""
    asked, is_probability = _asked(predict)
    if names is None and asked is not predict:  # a classifier fitted on a frame wants its names
        names = getattr(predict, "feature_names_in_", None)
    frame = rows if names is None else pd.DataFrame(rows, columns=names)
    found = np.asarray(asked(frame))
    if found.ndim == 2 and found.shape[1] in {1, 2}:
        found = found[:, -1]
    if found.dtype.kind in "OUS":
        then = "Give the classifier itself, or its predict_proba."
        raise InvalidValueError(_LOCAL, "probabilities from predict", f"it returned {found.flat[0]!r}", then)
    scores = Matrix((len(rows),)).require(_LOCAL, "what predict returns", found)
    if not is_probability:
        return scores
    wrong = (scores < 0.0) | (scores > 1.0)
    if wrong.any():
        but = f"predict returned {scores[wrong][0]:g}"
        then = "Give a function that returns them, such as the logistic function of a score."
        raise InvalidValueError(_LOCAL, "probabilities of the favourable class", but, then)
    return scores - _CHANCE


def _asked(predict: Any) -> tuple[Any, bool]:
    """Return the function to ask and whether it gives probabilities."""
    if hasattr(predict, "classes_") and len(predict.classes_) != 2:
        but = f"{type(predict).__name__} has {len(predict.classes_)}"
        raise UnsupportedModelError(_LOCAL, "a classifier of two classes", but, "Give a function of the one you want.")
    for name, is_probability in (("predict_proba", True), ("decision_function", False)):
        if hasattr(predict, name):
            return getattr(predict, name), is_probability
    if not callable(predict):
        but = f"it is {type(predict).__name__}"
        raise InvalidTypeError(_LOCAL, "a fitted classifier or a function as predict", but, "Give one.")
    return predict, True
