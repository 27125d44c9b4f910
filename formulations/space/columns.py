"""Raw rows and whole raw columns, as pandas holds them, to values and coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ceopt.formulations.space.dtypes import is_number_dtype, is_object_dtype
from ceopt.formulations.space.feature import Feature
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["check_unique", "column_coordinates", "row_mapping"]

Coordinates = np.ndarray[Any, np.dtype[np.float64]]


def column_coordinates(feature: Feature, column: pd.Series[Any]) -> Coordinates:
    """Give ``feature.to_coordinate`` of each value of a column, shape (n,), with the same checks.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As :meth:`Feature.to_coordinate`, for the first value at fault.
    """
    if feature.is_finite:
        return _ranks(feature, column)
    dtype = column.dtype
    if not len(column):
        return np.empty(0, dtype=np.float64)
    if is_object_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype):
        return np.array([feature.to_coordinate(value) for value in column.tolist()], dtype=np.float64)
    if not is_number_dtype(dtype):
        raise InvalidTypeError(feature.who, "numbers", f"its dtype is {dtype}", "Convert the column in the frame.")
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    suspect = ~np.isfinite(values)
    if dtype.kind in "iu":
        suspect |= np.abs(values) >= 2.0**53
    if feature.kind == "integer":
        low, high = feature.limits
        with np.errstate(invalid="ignore"):
            suspect |= (values != np.floor(values)) | (values < low) | (values > high)
        values = values + 0.0  # -0.0 is the whole number 0
    for place in np.flatnonzero(suspect):
        values[place] = feature.to_coordinate(column.iloc[place])  # raises, or is exact after all
    return values


def _ranks(feature: Feature, column: pd.Series[Any]) -> Coordinates:
    codes, values = pd.factorize(column, use_na_sentinel=True)
    if (codes < 0).any():
        feature.rank(column.iloc[int(np.flatnonzero(codes < 0)[0])])
    ranks = np.array([feature.rank(value) for value in values.tolist()], dtype=np.float64)
    return ranks[codes] if len(codes) else np.empty(0, dtype=np.float64)


def row_mapping(raw: Any) -> Mapping[Any, Any]:
    """Give one raw row (Series, dict or one-row frame) as values by name.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        Something else, several rows, or a name twice.
    """
    if isinstance(raw, pd.Series):
        check_unique("FeatureSpace.row", raw.index)
        return dict(zip(raw.index.tolist(), raw.tolist(), strict=True))
    if isinstance(raw, pd.DataFrame):
        if len(raw) != 1:
            raise InvalidValueError(
                "FeatureSpace.row", "a frame of one row", f"it has {len(raw)} rows", "Take one, as by frame.iloc[[0]]."
            )
        check_unique("FeatureSpace.row", raw.columns)
        return dict(zip(raw.columns.tolist(), raw.iloc[0].tolist(), strict=True))
    if isinstance(raw, Mapping):
        return raw
    raise InvalidTypeError(
        "FeatureSpace.row", "a Series, a dict or a one-row frame", f"it got {type(raw).__name__}", "Name its columns."
    )


def check_unique(who: str, names: Any) -> None:
    """Refuse an index that has a name twice."""
    if not names.is_unique:
        twice = names[names.duplicated()][0]
        raise InvalidValueError(who, "each column once", f"{twice!r} is there twice", "Remove one.")
