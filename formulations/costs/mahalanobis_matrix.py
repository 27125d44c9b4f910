"""The matrix of a Mahalanobis distance: checked, matched to the numeric columns, estimated from data, factored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.space.space import FeatureSpace, complete_rows, on_codes
from ceopt.formulations.tolerances import COLLINEAR, GIVEN_SYMMETRIC, NEGATIVE_EIGENVALUE, UNSHORTENED_MOVE
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = ["Metric", "check_matrix", "covariance_of", "metric_of", "numeric_names", "root_of"]

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    r"""The form :math:`\delta^\top A \delta` over the numeric columns.

    Parameters
    ----------
    names
        Numeric columns, in the space's order.
    matrix
        A, (k, k), symmetric and positive semidefinite.
    least
        (k,): :math:`\sqrt{\delta^\top A \delta} \ge \text{least}_j |\delta_j|` whatever the other moves are.
    """

    names: tuple[str, ...]
    matrix: Floats
    least: Floats

    def among(self, names: tuple[str, ...]) -> Floats:
        """Return the matrix of some of the columns, the others not moving."""
        place = [self.names.index(name) for name in names]
        return self.matrix[np.ix_(place, place)]


def numeric_names(space: FeatureSpace) -> tuple[str, ...]:
    """Return the integer and continuous columns, in the space's order."""
    return tuple(feature.name for feature in space if not feature.is_finite)


def check_matrix(who: str, word: str, given: Any) -> tuple[Floats, tuple[str, ...] | None]:
    """Return a symmetric matrix of finite numbers and its names, if it bears any, or refuse it.

    Raises
    ------
    InvalidTypeError
        It is not an array or frame of numbers.
    InvalidValueError
        It is not square, has NaN or infinities, is not symmetric, or a frame's rows are not named as its columns.
    """
    names = None
    if isinstance(given, pd.DataFrame):
        names = tuple(given.columns)
        if set(given.index) != set(names) or not given.columns.is_unique or not given.index.is_unique:
            raise InvalidValueError(
                who, f"a {word} whose rows bear the names of its columns",
                f"the rows are {list(given.index)}, the columns {list(names)}", "Set its index to its columns.",
            )  # fmt: skip
        given = given.loc[list(names)]
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTypeError(who, f"numbers as {word}", f"it is {type(given).__name__}", "Give an array.") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidValueError(
            who, f"a square {word}", f"its shape is {matrix.shape}", "Give a row and a column per numeric column."
        )
    if not np.isfinite(matrix).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(matrix))[0])
        raise InvalidValueError(who, f"finite numbers in {word}", f"entry [{i}][{j}] is {matrix[i, j]}", "Replace it.")
    off = np.abs(matrix - matrix.T)
    if matrix.size and off.max() > GIVEN_SYMMETRIC * np.abs(matrix).max():
        i, j = (int(k) for k in np.unravel_index(off.argmax(), off.shape))
        raise InvalidValueError(
            who, f"a symmetric {word}", f"[{i}][{j}] is {matrix[i, j]:g} and [{j}][{i}] is {matrix[j, i]:g}", "Mend it."
        )
    return 0.5 * (matrix + matrix.T), names


def covariance_of(who: str, space: FeatureSpace, data: pd.DataFrame | None) -> pd.DataFrame:
    """Return the sample covariance (divided by n - 1) of the numeric columns of data, in raw units.

    Rows with missing cells are left out, with a warning. So, without one, are those that hold a code in such a column.

    Raises
    ------
    InvalidValueError
        There is no data, or less than two rows.
    """
    names = numeric_names(space)
    data = complete_rows(who, space, data)
    if names and (data is None or len(data) < 2):
        if data is None:
            but = "no data is given"
        else:
            but = f"the data has {len(data)} row{'s' * (len(data) != 1)}"
        raise InvalidValueError(
            who, "a covariance, a precision, or data to estimate one from", but,
            "Pass data=X_train, or Mahalanobis(covariance=...).",
        )  # fmt: skip
    if not names:
        return pd.DataFrame()
    place = [space.names.index(name) for name in names]
    rows = space.coordinates(data)[:, place]
    amounts = rows[~on_codes([space[name] for name in names], rows)]
    if len(amounts) < 2:
        but = f"the data has {len(amounts)} of {len(rows)}"
        then = "Pass more, or Mahalanobis(covariance=...)."
        raise InvalidValueError(who, "two rows without codes to estimate a covariance from", but, then)
    matrix = np.atleast_2d(np.cov(amounts, rowvar=False))
    return pd.DataFrame(matrix, index=list(names), columns=list(names))


def metric_of(who: str, space: FeatureSpace, covariance: Any, precision: Any) -> Metric:
    """Return the metric of a covariance, or of a precision, over the numeric columns of a space.

    Raises
    ------
    InvalidValueError
        The matrix has another size than there are numeric columns; a covariance whose columns are collinear; a
        precision that is not positive semidefinite.
    UnknownNameError
        A name that is no numeric column.
    """
    names = numeric_names(space)
    word = "covariance" if precision is None else "precision"
    matrix, given = check_matrix(who, word, covariance if precision is None else precision)
    for name in given or ():
        if name not in names:
            raise UnknownNameError.among(who, f"numeric column in the {word}", str(name), names)
    if len(matrix) != len(names):
        absent = [name for name in names if name not in (given or ())]
        if given is None:
            but = f"it has {len(matrix)}"
        else:
            but = f"it lacks {', '.join(map(repr, absent))}"
        raise InvalidValueError(
            who, f"a {word} with a row for each of the {len(names)} numeric columns", but,
            f"The numeric columns are: {', '.join(names)}.",
        )  # fmt: skip
    if given is not None:
        order = [given.index(name) for name in names]
        matrix = matrix[np.ix_(order, order)]
    if precision is None:
        return _inverted(who, names, matrix)
    return _of_precision(who, names, matrix)


def root_of(matrix: Floats) -> Floats:
    """Return R with R'R = A: the transposed Cholesky factor, upper triangular, or if A is singular any, (rank, k)."""
    scaled, size = _scaled(matrix)
    try:
        factor = np.linalg.cholesky(scaled).T
    except np.linalg.LinAlgError:
        factor = np.zeros_like(scaled)
    if factor.size and factor.diagonal().min() <= np.sqrt(COLLINEAR):
        values, vectors = np.linalg.eigh(scaled)
        kept = values > COLLINEAR * values[-1]
        factor = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    return np.asarray(factor * size)


def _scaled(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the matrix with a unit diagonal, and the roots of its own one (1 where that is 0)."""
    diagonal = np.maximum(matrix.diagonal(), 0.0)
    size = np.where(diagonal > 0.0, np.sqrt(diagonal), 1.0)
    return matrix / size / size[:, None], size


def _inverted(who: str, names: tuple[str, ...], covariance: Floats) -> Metric:
    if not names:
        return Metric(names, np.zeros((0, 0)), np.zeros(0))
    for name, variance in zip(names, covariance.diagonal().tolist(), strict=True):
        if variance <= 0.0:
            raise InvalidValueError(
                who, "a positive variance in every numeric column", f"that of column {name!r} is {variance:g}",
                "Leave the column out of the space, or give a regularised covariance.",
            )  # fmt: skip
    correlation, size = _scaled(covariance)
    values, vectors = np.linalg.eigh(correlation)
    if values[0] <= COLLINEAR * values[-1]:
        if values[0] < -NEGATIVE_EIGENVALUE:
            raise _not_semidefinite(who, "covariance", values[0])
        null = np.abs(vectors[:, 0])
        together = [name for name, share in zip(names, null.tolist(), strict=True) if share > 0.05 * null.max()]
        raise InvalidValueError(
            who, "a covariance that can be inverted", f"columns {', '.join(map(repr, together))} are collinear",
            "Leave one of them out, give more rows, or a regularised covariance "
            "(such as sklearn.covariance.LedoitWolf's) or a precision.",
        )  # fmt: skip
    inverse = (vectors / values) @ vectors.T
    return Metric(names, 0.5 * (inverse + inverse.T) / size / size[:, None], 1.0 / size)


def _of_precision(who: str, names: tuple[str, ...], precision: Floats) -> Metric:
    scaled, size = _scaled(precision)
    if names and (lowest := float(np.linalg.eigvalsh(scaled)[0])) < -NEGATIVE_EIGENVALUE:
        raise _not_semidefinite(who, "precision", lowest)
    root = root_of(precision)
    least = np.zeros(len(names))
    for j in range(len(names)):
        own = root[:, j]
        others = np.delete(root / size, j, axis=1)
        rest = own - others @ np.linalg.lstsq(others, own, rcond=None)[0]
        least[j] = max(float(np.linalg.norm(rest) - UNSHORTENED_MOVE * np.linalg.norm(own)), 0.0)
    return Metric(names, precision, least)


def _not_semidefinite(who: str, word: str, lowest: float) -> InvalidValueError:
    return InvalidValueError(
        who, f"a positive semidefinite {word}", f"an eigenvalue of it, scaled to a unit diagonal, is {lowest:.3g}",
        "Check it: a distance cannot be negative.",
    )  # fmt: skip
