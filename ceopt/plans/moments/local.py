"""Mean and covariance of a linear model that stands for any other near one row, in the manner of LIME."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ceopt.solvers.checks import LENGTH, Matrix, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedModelError
from ceopt.surrogates.rivals.ridge import RIDGE, lime_kernel, lime_width, weighted_ridge

__all__ = ["local_moments"]

_CHECKS = {"n_samples": Whole(at_least=2), "variance": LENGTH, "random_state": Whole(at_least=0)}

Floats = NDArray[np.float64]
_WHO: Final = "local_moments"
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
    check_arguments(_WHO, _CHECKS, locals())
    names, row = _row(factual)
    d = len(row)
    spread = Matrix((d,)).require(_WHO, "scale", np.broadcast_to(scale, (d,)) if np.ndim(scale) == 0 else scale)
    if (spread <= 0.0).any():
        but = f"that of column {int((spread <= 0.0).argmax())} is {spread.min():g}"
        raise InvalidValueError(_WHO, "scales above 0", but, "Leave out a column that is constant.")
    u = np.random.default_rng(random_state).standard_normal((n_samples, d))
    u[0] = 0.0
    scores = _scores(predict, row + spread * u, names)
    beta, middle = weighted_ridge(u, scores, lime_kernel(u, lime_width(d)), RIDGE)
    w = beta / spread
    mean = np.append(w, middle - w @ row)
    return mean, float(variance) * np.eye(d + 1)


def _row(factual: Any) -> tuple[list[Any] | None, Floats]:
    """Return the names of the columns, if there are any, and the numbers of the row."""
    if isinstance(factual, pd.DataFrame):
        if len(factual) != 1:
            raise InvalidValueError(_WHO, "one row", f"factual has {len(factual)}", "Give frame.loc[[label]].")
        factual = factual.iloc[0]
    names = list(factual.index) if isinstance(factual, pd.Series) else None
    row = Matrix((None,)).require(_WHO, "factual", factual)
    if not len(row):
        raise InvalidValueError(_WHO, "at least one column", "factual is empty", "Give a row.")
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
        raise InvalidValueError(_WHO, "probabilities from predict", f"it returned {found.flat[0]!r}", then)
    scores = Matrix((len(rows),)).require(_WHO, "what predict returns", found)
    if not is_probability:
        return scores
    wrong = (scores < 0.0) | (scores > 1.0)
    if wrong.any():
        but = f"predict returned {scores[wrong][0]:g}"
        then = "Give a function that returns them, such as the logistic function of a score."
        raise InvalidValueError(_WHO, "probabilities of the favourable class", but, then)
    return scores - _CHANCE


def _asked(predict: Any) -> tuple[Any, bool]:
    """Return the function to ask and whether it gives probabilities."""
    if hasattr(predict, "classes_") and len(predict.classes_) != 2:
        but = f"{type(predict).__name__} has {len(predict.classes_)}"
        raise UnsupportedModelError(_WHO, "a classifier of two classes", but, "Give a function of the one you want.")
    for name, is_probability in (("predict_proba", True), ("decision_function", False)):
        if hasattr(predict, name):
            return getattr(predict, name), is_probability
    if not callable(predict):
        but = f"it is {type(predict).__name__}"
        raise InvalidTypeError(_WHO, "a fitted classifier or a function as predict", but, "Give one.")
    return predict, True
