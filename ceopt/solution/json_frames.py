"""Frames of one row or many as JSON and back: labels, names, dtypes, categories and values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from ceopt.formulations.space.dtypes import dtype_from_text, dtype_text, is_object_dtype, pool
from ceopt.solution.json_fields import is_list, require_fields
from ceopt.solution.json_values import read_value, write_value
from ceopt.solvers.errors import InvalidTypeError

__all__ = ["read_frame", "read_row", "write_frame", "write_row"]

#: How the dtypes of times begin, which pandas names and reads by itself.
_TIMES: Final = ("datetime64[", "timedelta64[", "period[")


def write_row(frame: pd.DataFrame) -> dict[str, Any]:
    """Write a one-row frame: its label, and per column the name, dtype, categories and value."""
    columns = []
    for name in frame.columns:
        entry = _column(name, frame[name].dtype)
        columns.append({**entry, "value": write_value(frame[name].iloc[0])})
    return {"index": write_value(frame.index[0]), "columns": columns}


def read_row(who: str, entry: dict[str, Any]) -> pd.DataFrame:
    """Return what :func:`write_row` wrote."""
    index = pd.Index([read_value(entry["index"])], tupleize_cols=False)
    require_fields(who, " of a row", entry, {"columns": ("a list", is_list)})
    data = {}
    for column in entry["columns"]:
        data[read_value(column["name"])] = _series(who, column, [read_value(column["value"])], index)
    return pd.DataFrame(data, index=index)


def write_frame(frame: pd.DataFrame) -> dict[str, Any]:
    """Write a frame: labels of its rows, and per column the name, dtype, categories and values."""
    columns = []
    for place, name in enumerate(frame.columns):
        series = frame.iloc[:, place]
        columns.append({**_column(name, series.dtype), "values": [write_value(value) for value in series]})
    index = frame.index
    labels: dict[str, Any] = {
        "names": [write_value(name) for name in index.names],
        "labels": [write_value(label) for label in index.tolist()],
    }
    if not isinstance(index, pd.MultiIndex):
        labels |= _dtype_entry(index.dtype)
    return {"index": labels, "columns": columns}


def read_frame(who: str, entry: dict[str, Any]) -> pd.DataFrame:
    """Return what :func:`write_frame` wrote."""
    require_fields(who, " of a frame", entry, {"columns": ("a list", is_list)})
    given = entry["index"]
    require_fields(who, " of a frame", given, {"names": ("a list", is_list), "labels": ("a list", is_list)})
    names = [read_value(name) for name in given["names"]]
    labels = [read_value(label) for label in given["labels"]]
    if "dtype" in given:
        held = _held(who, given, labels)
        index: Any = pd.Index(held, dtype=held.dtype, tupleize_cols=False, name=names[0])
    else:
        index = pd.MultiIndex.from_tuples(labels, names=names)
    data = {}
    for column in entry["columns"]:
        values = [read_value(value) for value in column["values"]]
        data[read_value(column["name"])] = _series(who, column, values, index)
    return pd.DataFrame(data, index=index)


def _column(name: Any, dtype: Any) -> dict[str, Any]:
    return {"name": write_value(name), **_dtype_entry(dtype)}


def _dtype_entry(dtype: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"dtype": _dtype_name(dtype)}
    if isinstance(dtype, pd.CategoricalDtype):
        entry["categories"] = [write_value(level) for level in dtype.categories.tolist()]
    return entry


def _series(who: str, column: dict[str, Any], values: list[Any], index: Any) -> pd.Series[Any]:
    held = _held(who, column, values)
    if isinstance(held, np.ndarray) and is_object_dtype(held.dtype):
        return pd.Series(held, index=index, dtype=object)
    return pd.Series(held, index=index)


def _held(who: str, entry: dict[str, Any], values: list[Any]) -> Any:
    """Return values in the dtype that :func:`_dtype_entry` wrote."""
    name = entry["dtype"]
    if isinstance(name, str) and name.startswith(_TIMES):
        return pd.Series(values, dtype=object).astype(name).array  # type: ignore[call-overload]  # one of times
    dtype = dtype_from_text(who, name, read_value(entry.get("categories")))
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(values, dtype)
    return pool(values, dtype)


def _categories(values: list[Any], dtype: pd.CategoricalDtype) -> pd.Categorical:
    """Return categories, of which a row that was refused may lack some."""
    is_known = np.array([not pd.api.types.is_scalar(value) or not pd.isna(value) for value in values], dtype=bool)
    codes = np.full(len(values), -1)
    codes[is_known] = pool([value for value, known in zip(values, is_known, strict=True) if known], dtype).codes
    return pd.Categorical.from_codes(codes, dtype=dtype)


def _dtype_name(dtype: Any) -> str:
    """Name a dtype; a row that was refused may hold others, which come back as objects, times excepted."""
    if str(dtype).startswith(_TIMES):
        return str(dtype)
    try:
        return dtype_text("to_json", dtype)
    except InvalidTypeError:
        return "object"
