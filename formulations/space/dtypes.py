"""The pandas dtype of a column as plain text, and back, so that a space can be saved and compared."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

Level = str | bool | int | float

_PLAIN = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 object".split())
_MASKED = frozenset("boolean Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float32 Float64".split())
_ARROW = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 halffloat float double string large_string".split()
)
_EXACT = 2**53 - 1  # the greatest whole number that no other rounds to in float64


def dtype_text(who: str, dtype: Any) -> str:
    """Name a pandas dtype.

    ``"int64"``, ``"Int64"``, ``"object"`` and their like name themselves; ``"str"`` and ``"string"`` are text that
    is missing as NaN and as NA (with ``[storage]`` where it is not the default); ``"arrow[double]"`` is pyarrow's;
    ``"category[inner]"`` and ``"ordered[inner]"`` hold categories of dtype ``inner``.

    Raises
    ------
    InvalidTypeError
        A dtype that is neither number, bool, text, object nor category: datetimes, complex numbers, sparse, ...
    """
    if isinstance(dtype, pd.CategoricalDtype):
        word = "ordered" if dtype.ordered else "category"
        categories: Any = dtype.categories
        return word if categories is None else f"{word}[{dtype_text(who, categories.dtype)}]"
    if isinstance(dtype, pd.StringDtype):
        missing = getattr(dtype, "na_value", pd.NA)
        word = "string" if missing is pd.NA else "str"
        return word if dtype == _string(word, None) else f"{word}[{dtype.storage}]"
    if isinstance(dtype, pd.ArrowDtype):
        text = str(dtype.pyarrow_dtype)
        if text in _ARROW:
            return f"arrow[{text}]"
    elif getattr(dtype, "name", None) in _PLAIN | _MASKED:
        return str(dtype.name)
    raise InvalidTypeError(
        who,
        "numbers, text, bool or categories",
        f"its dtype is {dtype}",
        "Convert it (datetimes to days or years, for instance) or leave it out.",
    )


def _string(word: str, storage: str | None) -> Any:
    if word == "string":
        return pd.StringDtype(storage)
    try:
        return pd.StringDtype(storage, na_value=np.nan)
    except TypeError:  # pandas before 2.3 has no such dtype: text is object there
        return np.dtype(object)


def dtype_from_text(who: str, text: str, categories: Sequence[Level] | None = None) -> Any:
    """Build the dtype that :func:`dtype_text` named.

    Raises
    ------
    InvalidValueError
        The text names no dtype that a space can hold.
    """
    word, _, inner = text.removesuffix("]").partition("[")
    try:
        if word in {"category", "ordered"}:
            index = None
            if categories is not None:
                values = list(categories)
                of = dtype_from_text(who, inner) if inner else default_dtype(values)
                index = pd.Index(pool(values, of), dtype=of)
            return pd.CategoricalDtype(index, ordered=word == "ordered")
        if word in {"str", "string"}:
            return _string(word, inner or None)
        if word == "arrow":
            return pd.ArrowDtype(import_module("pyarrow").type_for_alias(inner))
        if text in _PLAIN:
            return np.dtype(text)
        if text in _MASKED:
            return pd.api.types.pandas_dtype(text)
    except ImportError as error:
        raise InvalidValueError(who, "pyarrow for its dtype", f"dtype is {text!r}", "Install pyarrow.") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValueError(who, "a usable dtype", f"dtype is {text!r} ({error})", "Correct it.") from error
    raise InvalidValueError(
        who,
        "a dtype of numbers, text, bool or categories",
        f"dtype is {text!r}",
        "Use names such as int64, float64, bool, Int64, boolean, object, str, string or category.",
    )


def default_dtype(levels: Sequence[Level]) -> Any:
    """Choose the dtype that pandas would give a column of these levels."""
    types = set(map(type, levels))
    if types == {bool}:
        return np.dtype(bool)
    if types == {int}:
        return np.dtype(np.int64)
    if types and types <= {int, float}:
        return np.dtype(np.float64)
    if types == {str}:
        return pd.Series(["text"]).dtype
    return np.dtype(object)


def dtype_with_gaps(dtype: Any) -> Any:
    """Return the dtype in which pandas holds such values where some are missing."""
    if not isinstance(dtype, np.dtype):
        return dtype
    if dtype.kind in "iu":
        return np.dtype(np.float64)
    if dtype.kind == "b":
        return np.dtype(object)
    return dtype


def are_gaps(column: pd.Series[Any]) -> NDArray[np.bool_]:
    """Return which cells of a column are missing, (n,): None, NaN, NA and NaT are one thing.

    Examples
    --------
    >>> are_gaps(pd.Series([0.0, None, 1.0], dtype="Float64") / pd.Series([0.0, 1.0, 1.0])).tolist()
    [True, True, False]
    """
    return gaps_of(column.to_frame())[:, 0]


def gaps_of(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Return the same of all columns of a frame, (n, d)."""
    missing = np.array(frame.isna().to_numpy(dtype=bool))
    for place, dtype in enumerate(frame.dtypes):
        if not isinstance(dtype, np.dtype) and pd.api.types.is_float_dtype(dtype):  # NaN is no NA there
            missing[:, place] |= np.isnan(frame.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan))
    return missing


def pool(levels: Sequence[Any], dtype: Any) -> Any:
    """Make an array of ``levels`` in their own dtype, from which columns are taken by rank."""
    if isinstance(dtype, pd.CategoricalDtype):
        codes = dtype.categories.get_indexer(pd.Index(list(levels), dtype=object))
        if (codes < 0).any():
            raise ValueError("a level is not among the categories")
        return pd.Categorical.from_codes(codes, dtype=dtype)
    if isinstance(dtype, np.dtype):
        if not is_object_dtype(dtype):
            return np.array(list(levels), dtype=dtype)
        values = np.empty(len(levels), dtype=object)
        values[:] = list(levels)
        return values
    return pd.array(list(levels), dtype=dtype)


def is_number_dtype(dtype: Any) -> bool:
    """Whether a dtype holds real numbers; bool is none."""
    number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    return bool(number and not pd.api.types.is_complex_dtype(dtype))


def is_object_dtype(dtype: Any) -> bool:
    """Whether a dtype is numpy's object, which holds anything."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def integer_limits(dtype: Any) -> tuple[int, int]:
    """Give the least and the greatest whole number that both ``dtype`` and float64 hold exactly."""
    numpy_dtype = np.dtype(getattr(dtype, "numpy_dtype", dtype))
    if numpy_dtype.kind == "f":
        digits = np.finfo(numpy_dtype).nmant + 1
        whole = min(2**digits - 1, int(np.finfo(numpy_dtype).max))
        return -whole, whole
    if numpy_dtype.kind in "iu":
        info = np.iinfo(numpy_dtype)
        return max(int(info.min), -_EXACT), min(int(info.max), _EXACT)
    return -_EXACT, _EXACT
