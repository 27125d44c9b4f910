"""The row that an estimator is given, by the pipeline's own steps, and the names of its columns."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ceopt.formulations.predictors.read import open_model
from ceopt.formulations.predictors.read.model_input import behind, dense, given
from ceopt.formulations.predictors.read.pipeline import split
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.space.space import FeatureSpace, point_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.encoding import Column
    from ceopt.solvers.checks import Floats


def row_seen(predictor: Predictor, point: Mapping[str, float]) -> Floats:
    """Return the row (m,) that the estimator is given for a point in coordinates; NaN where the pipeline fails on it.

    A pipeline of scikit-learn transforms the raw row itself. Of other models, and of those that wrap a pipeline, the
    encoding is asked, which was compared with their own bit for bit when they were read.
    """
    space = predictor.space
    if any(point[name] in ranks for name, ranks in predictor.unseen.items()):
        return np.full(len(predictor.encoding.columns), np.nan)
    steps, estimator = _steps(predictor.model)
    if not _reads_numbers(estimator, len(predictor.encoding.columns)):
        return _row(predictor.encoding.matrix(point_row(space, point)))
    data = given(open_model(predictor.model), space, space.frame([point]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown levels under handle_unknown="warn"
        return _row(behind(steps, data))


def _row(matrix: Any) -> Floats:
    return np.asarray(dense(matrix), dtype=np.float64).reshape(-1)


def _steps(model: Any) -> tuple[list[Any], Any]:
    if isinstance(model, AbstractRepresentation):
        return [], model
    return split(open_model(model))


def _reads_numbers(estimator: Any, count: int) -> bool:
    """Return whether it is a linear estimator of scikit-learn with a coefficient for each column of its matrix."""
    if type(estimator).__module__.partition(".")[0] != "sklearn":
        return False
    coefficients: Any = getattr(estimator, "coef_", ())
    return bool(np.shape(coefficients)[-1:] == (count,))


def column_names(predictor: Predictor) -> list[str]:
    """Return a name for each column of the estimator's matrix: "age", or "job=cook" where it tells one level."""
    return [_name(column, predictor.space) for column in predictor.encoding.columns]


def _name(column: Column, space: FeatureSpace) -> str:
    if column.feature is None:
        return f"{column.constant:g}"
    if column.table is None or len(column.table) <= 2:
        return column.feature
    ranks = np.flatnonzero(np.asarray(column.table) != 0.0)
    if len(ranks) != 1:
        return column.feature
    level = space[column.feature].levels[int(ranks[0])]
    return f"{column.feature}={level}"
