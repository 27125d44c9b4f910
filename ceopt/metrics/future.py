"""Validity under models that are yet to come: the estimator trained again on parts of later data."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.predictions import accepted
from ceopt.metrics.rows import Floats, read
from ceopt.parallel.retraining import each_retrained, labels_of, rows_of_data
from ceopt.solvers.checks import AllOf, Flag, Real, Refusal, Whole, check_arguments

__all__ = ["future_validity"]

_WHO: Final = "future_validity"
_TOO_LARGE: Final = Refusal("a fraction of at most 1", "Give for example 0.8.")
_CHECKS: Final = {
    "n_models": Whole(at_least=1),
    "fraction": AllOf((Real(above=0.0), Real(at_most=1.0, otherwise=_TOO_LARGE))),
    "random_state": Whole(at_least=0),
    "progress": Flag(),
}


def future_validity(
    S: Any,
    estimator: Any,
    X: Any,
    y: ArrayLike,
    target: Any,
    *,
    n_models: int = 100,
    fraction: float = 0.8,
    space: FeatureSpace | None = None,
    n_jobs: int = 1,
    random_state: int = 0,
    progress: bool = False,
) -> Floats:
    r"""Share of retrained models that put each counterfactual in the target, (n,); higher is more robust.

    .. math:: \frac1M \sum_{m=1}^M [f_m(c) \in T]

    with :math:`f_m` a clone of the estimator fitted on a random part of X and y, drawn without replacement: of a
    classifier ``fraction`` of the rows of each class, at least one, of a regressor of all rows. X and y are later data,
    or the data of the present model again. The current validity beside it is
    :func:`~ceopt.metrics.validity` with the present model; with models at hand, take
    :func:`~ceopt.metrics.robustness`.

    Parameters
    ----------
    S
        Counterfactuals in the units that the estimator takes.
    estimator
        A scikit-learn estimator, fitted or not; it stays as it is. Of a pipeline every step is fitted again.
    X, y
        Rows to train on, (n_rows, d), and their labels or values, (n_rows,).
    target, space
        As for :func:`~ceopt.metrics.validity`.
    n_models
        M, how many models are trained.
    fraction
        Part of the rows that each sees, above 0, at most 1.
    n_jobs
        Processes, as joblib counts them; backends as in :meth:`ceopt.Recourse.explain`. One that is killed costs time,
        not the work of the others.
    random_state
        Of the parts, and of estimators whose ``random_state`` is None. The same number gives the same models whatever
        ``n_jobs`` is.
    progress
        Show a bar on standard error.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As for :func:`~ceopt.metrics.validity`; no estimator, another number of labels than rows, an option out of
        range.

    References
    ----------
    Upadhyay, Joshi & Lakkaraju (2021), ROAR; Bui et al., Coverage-validity-aware algorithmic recourse, section 6: 100
    models, each on 80 % of the shifted data.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> future_validity([[2.0, 1.0], [-1.0, -1.0]], LogisticRegression(), X, y, True, n_models=10).tolist()
    [1.0, 0.0]
    """
    check_arguments(_WHO, _CHECKS, locals())
    read(_WHO, space, S=S)
    labels = labels_of(_WHO, y)
    rows = rows_of_data(_WHO, estimator, X, labels)
    decisions = each_retrained(
        _WHO, functools.partial(_decisions, S, target, space), estimator, rows, labels,
        n_models=n_models, fraction=fraction, n_jobs=n_jobs, random_state=random_state, progress=progress,
    )  # fmt: skip
    return np.asarray(np.mean(decisions, axis=0))


def _decisions(S: Any, target: Any, space: FeatureSpace | None, model: Any) -> NDArray[np.bool_]:
    return accepted(_WHO, model, S, target, space)
