"""The rows that explanations are taken from, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.diverse.distance import Floats
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, rows_to_keep, taken
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["TrainingRows", "row_of", "rows_of"]

_WHO: Final = "DiverseRobustExplainer"


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows as coordinates.

    Parameters
    ----------
    space
        Their columns.
    coordinates
        The rows, (n, d).
    places
        Their positions in the data, (n,): rows that lack a cell are left out.
    is_frame
        Whether the data was a frame, so that a function that predicts is given frames too.
    """

    space: FeatureSpace
    coordinates: Floats
    places: NDArray[np.intp]
    is_frame: bool


def rows_of(X: Any, y: Any, space: FeatureSpace | None) -> TrainingRows:
    """Return the rows of a frame or array; without a space it is inferred, all numbers of an array as continuous.

    Rows that lack a cell are left out, with a warning. Labels are checked, and not used.

    Raises
    ------
    InvalidTypeError
        Neither a frame nor an array of two dimensions, or a column of the wrong kind.
    InvalidValueError
        No rows, or none that is whole; another number of columns than the space has, an infinite value; labels that are
        not one for each row, or that are missing.
    UnknownNameError
        A column that the space does not have.
    """
    is_frame = isinstance(X, pd.DataFrame)
    frame = X if is_frame else _frame_of(X, space)
    if not len(frame) or not frame.shape[1]:
        raise InvalidValueError(f"{_WHO}.fit", "rows and columns", f"X has shape {frame.shape}", "Give data.")
    if y is not None:
        _check_labels(y, len(frame))
    kept = rows_to_keep(f"{_WHO}.fit", space, X, word="X", frame=frame, y=y)
    frame = taken(frame, kept)
    if space is None:
        numbers = None if is_frame else list(frame.columns)
        space = FeatureSpace(infer_features(frame, continuous=numbers, steps=False))
    places = np.arange(len(frame)) if kept is None else np.flatnonzero(kept)
    return TrainingRows(space, space.coordinates(frame), places, is_frame)


def _frame_of(X: Any, space: FeatureSpace | None) -> pd.DataFrame:
    if hasattr(X, "toarray"):
        raise InvalidTypeError(f"{_WHO}.fit", "a dense array", "X is sparse", "Give X.toarray().")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InvalidTypeError(
            f"{_WHO}.fit", "rows of equal length", f"X is no array ({error})", "Correct X."
        ) from error
    if array.ndim != 2:
        but = f"X is {type(X).__name__} of shape {array.shape}"
        raise InvalidTypeError(f"{_WHO}.fit", "a DataFrame or an array of rows and columns", but, "Reshape it.")
    if space is not None:
        if array.shape[1] != len(space):
            raise InvalidValueError(
                f"{_WHO}.fit", f"the {len(space)} columns of the space", f"X has {array.shape[1]}",
                "Leave the label out, or give a frame.",
            )  # fmt: skip
        return pd.DataFrame(array, columns=list(space.names))
    try:
        array = np.where(pd.isna(array), np.nan, array)
        return pd.DataFrame(array.astype(np.float64), columns=[f"x{j}" for j in range(array.shape[1])])
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"{_WHO}.fit", "an array of numbers, or a space", f"X holds something else ({error})",
            "Give a DataFrame, or space=... that says what each column is.",
        ) from error  # fmt: skip


def _check_labels(y: Any, count: int) -> None:
    """Refuse labels that are not one for each of ``count`` rows, or that are missing."""
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise InvalidTypeError(f"{_WHO}.fit", "labels in a list", f"y is no array ({error})", "Correct y.") from error
    if labels.shape != (count,):
        raise InvalidValueError(
            f"{_WHO}.fit", f"one label for each of {count} rows", f"y has shape {labels.shape}", "Match X."
        )
    missing = np.flatnonzero(pd.isna(np.asarray(y, dtype=object)))
    if len(missing):
        but = f"that of row {missing[0]} is missing"
        raise InvalidValueError(f"{_WHO}.fit", "a label for every row", but, "Fill it in, or leave y out.")


def row_of(rows: TrainingRows, row: Any) -> dict[str, float]:
    """Return a person's row as coordinates; where the data was an array, so may the row be.

    Raises
    ------
    CeoptError
        As :meth:`FeatureSpace.row`, and an array of another length than the rows have.
    """
    if isinstance(row, pd.Series) and not rows.is_frame and row.index.equals(pd.RangeIndex(len(row))):
        row = row.to_numpy()  # a row of a frame that has no names either
    if isinstance(row, np.ndarray | list | tuple) and not rows.is_frame:
        values = np.asarray(row, dtype=object)
        values = values[0] if values.ndim == 2 and len(values) == 1 else values
        if values.shape != (len(rows.space),):
            raise InvalidValueError(
                f"{_WHO}.explain", f"a row of {len(rows.space)} values", f"row has shape {values.shape}",
                "Give one row, with the columns of X.",
            )  # fmt: skip
        row = dict(zip(rows.space.names, values.tolist(), strict=True))
    return rows.space.row(row)
