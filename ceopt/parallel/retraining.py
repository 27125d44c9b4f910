"""An estimator trained again on random parts of its data, side by side: what is asked of each model, in their order."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from ceopt.parallel.jobs import Lost, completed, whole_jobs
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError

__all__ = ["each_retrained", "labels_of", "retrained", "rows_of_data"]


def labels_of(who: str, y: ArrayLike) -> NDArray[Any]:
    """Return labels as a vector, or refuse another shape and missing ones."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidValueError(who, "one label a row as y", f"its shape is {labels.shape}", "Give a vector.")
    missing = np.flatnonzero(pd.isna(np.asarray(y, dtype=object)))
    if missing.size:
        raise InvalidValueError(who, "a label for each row", f"y has none in row {missing[0]}", "Leave such rows out.")
    return labels


def rows_of_data(who: str, estimator: Any, X: Any, labels: NDArray[Any]) -> Any:
    """Return rows that can be indexed; refuse what is no estimator, and another number of rows than labels."""
    is_class = isinstance(estimator, type)
    if is_class or not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        but = f"it is {type(estimator).__name__}"
        if is_class:
            but = f"it is the class {estimator.__name__}"
        raise InvalidTypeError(who, "a scikit-learn estimator", but, "Give for example LogisticRegression().")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n != len(labels):
        raise InvalidValueError(who, "a label for each row", f"X has {n} rows and y {len(labels)}", "Match them.")
    return X if hasattr(X, "shape") else np.asarray(X)


def each_retrained(
    who: str,
    result_of: Callable[[Any], Any],
    estimator: Any,
    rows: Any,
    labels: NDArray[Any],
    *,
    n_models: int,
    fraction: float,
    n_jobs: int,
    random_state: int,
    progress: bool,
) -> list[Any]:
    """Return ``result_of(model)`` for each model trained on a part of the data, the same whatever ``n_jobs`` is.

    Fits that do not converge are counted in one warning.

    Raises
    ------
    InvalidValueError
        ``n_jobs`` is no number of processes.
    CeoptError
        A process ended before its model was fitted, twice.
    """
    from sklearn.exceptions import ConvergenceWarning

    jobs = whole_jobs(who, n_jobs)
    seeds = np.random.SeedSequence(random_state).spawn(n_models)
    found = completed(
        who, _asked, lambda b: (result_of, estimator, rows, labels, fraction, seeds[b]), count=n_models, n_jobs=jobs
    )
    results: list[Any] = [None] * n_models
    early = 0
    for b, one in tqdm(found, total=n_models, disable=not progress, file=sys.stderr, unit="model"):
        if isinstance(one, Lost):
            raise CeoptError(
                who, "processes that live until their models are fitted", f"one did not: {one.reason}",
                "Use fewer n_jobs if memory may have run out.",
            )  # fmt: skip
        results[b], has_converged = one
        early += not has_converged
    if early:
        then = "raise max_iter, or scale the columns"
        warnings.warn(f"{early} of {n_models} fits did not converge: {then}.", ConvergenceWarning, stacklevel=3)
    return results


def retrained(estimator: Any, rows: Any, labels: NDArray[Any], fraction: float, seed: np.random.SeedSequence) -> Any:
    """Return a clone fitted on a random part; a function of the seed alone, so that the order does not matter.

    A classifier's part has ``fraction`` of the rows of each class, at least one; any other's of all rows.
    """
    from sklearn.base import clone, is_regressor

    rng = np.random.default_rng(seed)
    if is_regressor(estimator):
        groups = [np.arange(len(labels))]
    else:
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    parts = [rng.choice(group, size=max(1, round(fraction * len(group))), replace=False) for group in groups]
    chosen = np.sort(np.concatenate(parts))
    model = clone(estimator)
    params = model.get_params(deep=True)
    unset = [name for name in params if name.rpartition("__")[2] == "random_state" and params[name] is None]
    model.set_params(**{name: int(rng.integers(2**31 - 1)) for name in sorted(unset)})
    return model.fit(rows.iloc[chosen] if hasattr(rows, "iloc") else rows[chosen], labels[chosen])


def _asked(  # noqa: PLR0917 - joblib calls it with all of them, in this order
    result_of: Callable[[Any], Any],
    estimator: Any,
    rows: Any,
    labels: NDArray[Any],
    fraction: float,
    seed: np.random.SeedSequence,
) -> tuple[Any, bool]:
    """Return what is asked of a retrained model, and whether its fit converged."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = retrained(estimator, rows, labels, fraction, seed)
    has_converged = not any(issubclass(one.category, ConvergenceWarning) for one in caught)
    for one in caught:
        if not issubclass(one.category, ConvergenceWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return result_of(model), has_converged
