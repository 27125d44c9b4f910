"""Tables of any origin, read side by side: numbers as floats, categories as codes that mean the same in each table.

A missing cell is a value of its own, which equals itself: infinity among numbers, as it is a coordinate, and -1 among
codes. With a space only columns that may be missing have some; without one any column may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.space.dtypes import is_number_dtype
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.space import FeatureSpace, check_unique, rows_to_keep, taken
from ceopt.solvers.checks import Floats, plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, each_of


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """The n rows of one table.

    ========= =============== =====================================================================================
    symbol    shape           meaning
    ========= =============== =====================================================================================
    numbers   (n, d_num)      raw units; continuous and integer columns; infinite where a cell is missing
    codes     (n, d_cat)      ordinal, categorical and binary columns; equal values have equal codes in all tables
                              that were read together, and with a space a code below ``levels`` is the level's rank;
                              -1 where a cell is missing
    ========= =============== =====================================================================================

    Parameters
    ----------
    word
        What the caller calls the table; errors name it.
    numeric, categorical
        Names of the columns of either kind.
    numbers, codes
        As above.
    space
        What the columns are, if the caller said so.
    """

    word: str
    numeric: tuple[Any, ...]
    categorical: tuple[Any, ...]
    numbers: Floats
    codes: NDArray[np.intp]
    space: FeatureSpace | None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.numeric) + len(self.categorical)

    @property
    def fills(self) -> Floats:
        """How far each numeric column's amounts are from a missing cell and from a code, at scale 1; (d_num,)."""
        return np.array([fill_of(self.space, name) for name in self.numeric], dtype=np.float64)

    def hold_no_amount(self, numbers: Floats) -> NDArray[np.bool_]:
        """Return which cells of numbers (..., d_num) are missing, or codes of the space."""
        found = np.asarray(numbers == MISSING)
        if self.space is not None:
            for j, name in enumerate(self.numeric):
                if self.space[name].codes:
                    found[..., j] |= self.space[name].are_codes(numbers[..., j])
        return found


def fill_of(space: FeatureSpace | None, name: Any) -> float:
    """Return how far an amount of a column is from a missing cell and from a code, at scale 1: its fill, if finite."""
    if space is None or np.isinf(space[name].fill):
        return 1.0
    return space[name].fill


def read(who: str, space: FeatureSpace | None = None, **given: Any) -> list[TableRows]:
    """Read tables that belong together. ``x`` is one row; every other table has one row or more.

    A column is a number or a category. With a space: continuous and integer columns are numbers. Without one: columns
    of a number dtype in the first frame among the tables; where there is no frame, all. Frames are matched by column
    name, arrays by position. Rows of ``data`` that lack a cell are left out, with a warning; not for cells of columns
    that may be missing by the space.

    Parameters
    ----------
    who
        The metric; errors begin with it.
    space
        What the columns are.
    **given
        Tables by the names that the caller has for them: a frame, an array (n, d), a list of rows or a
        :class:`~ceopt.SolutionSet`; ``x``: a Series, a dict, an array (d,) or any table of one row.

    Raises
    ------
    InvalidTypeError
        No table, text where numbers are needed.
    InvalidValueError
        An empty table, another number of columns, a column that is missing or too much, an infinite value, a missing
        one where the space has none; ``data`` of which each row lacks a cell.

    Examples
    --------
    >>> import pandas as pd
    >>> x, S = read("demo", x={"age": 30, "job": "cook"}, S=pd.DataFrame({"age": [31, 40], "job": ["cook", "baker"]}))
    >>> x.numbers.tolist(), x.codes.tolist(), S.codes.tolist(), S.numeric, S.categorical
    ([[30.0]], [[0]], [[0], [1]], ('age',), ('job',))
    """
    if "data" in given:
        given["data"] = whole_people(who, space, given["data"])[0]
    frames = {word: _frame(who, word, table, space) for word, table in given.items()}
    named = [word for word, table in given.items() if not isinstance(table, np.ndarray) and _has_names(table)]
    whole = [word for word in named if word != "x"]  # whose columns the others must have
    first = frames[(whole or named or list(frames))[0]]
    names = list(first.columns)
    numeric = names
    if space is not None:
        names = list(space.names)
        numeric = [feature.name for feature in space if not feature.is_finite]
    elif named:
        dtypes = first.infer_objects().dtypes
        numeric = [name for name in names if is_number_dtype(dtypes[name])]
    for word, frame in frames.items():
        frames[word] = _matched(who, word, frame, names, is_named=word in named, space=space)
    categorical = [name for name in names if name not in set(numeric)]
    coding = {name: _coding(space, name) for name in categorical}
    tables = []
    for word, frame in frames.items():
        numbers = [_numbers(who, word, name, frame[name], space) for name in numeric]
        codes = [_codes(who, word, frame[name], coding[name], space) for name in categorical]
        tables.append(
            TableRows(
                word=word,
                numeric=tuple(numeric),
                categorical=tuple(categorical),
                numbers=_stacked(numbers, len(frame), np.float64),
                codes=_stacked(codes, len(frame), np.intp),
                space=space,
            )
        )
    return tables


def whole_people(who: str, space: FeatureSpace | None, data: Any, labels: Any = None) -> tuple[Any, Any]:
    """Return rows of data, and their labels if there are any, without the rows that lack a cell, after a warning.

    Cells of columns that may be missing by the space do not count.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        What is no table, or empty; no row is whole; labels of another number than rows.
    """
    frame = _frame(who, "data", data, space)
    if labels is not None and np.shape(labels) != (len(frame),):
        but = f"the shape of labels is {np.shape(labels)}"
        raise InvalidValueError(who, f"a label for {each_of(len(frame), 'row')} of data", but, "Correct it.")
    table = frame if _has_names(data) else data
    if space is not None:
        needed = [feature for feature in space if feature.missing is False]
        if not needed:
            return data, labels
        space = FeatureSpace(needed)
    kept = rows_to_keep(who, space, table, word="data", frame=frame, labels=labels)
    if kept is None:
        return data, labels
    return taken(table, kept), taken(labels, kept)


def is_solution_set(table: Any) -> bool:
    """Whether something is a set of answers for one person (told by its shape: this module imports no result)."""
    is_table = isinstance(table, pd.DataFrame | pd.Series)  # whose attributes are its columns
    return not is_table and hasattr(table, "counterfactuals") and hasattr(table, "factual")


def frame_of(table: Any) -> Any:
    """Return the answers of a solution set as a frame, and anything else as it is."""
    if is_solution_set(table):
        return table.to_frame()
    return table


def _has_names(table: Any) -> bool:
    if isinstance(table, pd.DataFrame | pd.Series | Mapping) or is_solution_set(table):
        return True
    return isinstance(table, list | tuple) and bool(table) and isinstance(table[0], pd.Series | Mapping)


def _frame(who: str, word: str, table: Any, space: FeatureSpace | None) -> pd.DataFrame:
    table = frame_of(table)
    if isinstance(table, pd.Series | Mapping):
        frame = pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in table.items()})
    elif isinstance(table, list | tuple) and _has_names(table):
        frame = pd.DataFrame([dict(row.items()) for row in table])
    elif isinstance(table, pd.DataFrame):
        frame = table
    else:
        frame = _from_array(who, word, table, space)
    if word == "x" and len(frame) != 1:
        raise InvalidValueError(who, "one row as x", f"x has {len(frame)} rows", "Take one, as by frame.iloc[[0]].")
    if not len(frame):
        raise InvalidValueError(who, f"a row in {word}", f"{word} is empty", "Leave out people without an answer.")
    check_unique(who, frame.columns)
    return frame


def _from_array(who: str, word: str, table: Any, space: FeatureSpace | None) -> pd.DataFrame:
    if isinstance(table, str | bytes) or not isinstance(table, Iterable):
        but = f"{word} is {type(table).__name__}"
        raise InvalidTypeError(who, f"rows as {word}", but, "Give a frame, an array or a list of rows.")
    try:
        array = as_array(table)
    except ValueError as error:
        but = f"{word} has several ({error})"
        raise InvalidValueError(who, f"rows of one length in {word}", but, "Mend it.") from error
    if array.ndim == 1 and (word == "x" or not len(array)):
        array = array.reshape(min(len(array), 1), len(array))
    if array.ndim != 2:
        but = f"its shape is {array.shape}"
        raise InvalidValueError(who, f"an array of two dimensions as {word}", but, "Give a row per counterfactual.")
    names = space.names if space is not None and array.shape[1] == len(space) else range(array.shape[1])
    return pd.DataFrame(array, columns=list(names))


def as_array(table: Any) -> NDArray[Any]:
    """Return a list of rows as an array, truth values as 0 and 1, without turning numbers beside text into text."""
    array = np.asarray(table)
    if array.dtype.kind == "b":
        return array.astype(np.float64)
    if isinstance(table, np.ndarray) or array.dtype.kind not in "US":
        return array
    return np.array(table, dtype=object)


def _matched(
    who: str, word: str, frame: pd.DataFrame, names: Sequence[Any], *, is_named: bool, space: FeatureSpace | None
) -> pd.DataFrame:
    if not is_named:
        if frame.shape[1] != len(names):
            then = "Give the same columns everywhere."
            raise InvalidValueError(who, f"{len(names)} columns in {word}", f"it has {frame.shape[1]}", then)
        return frame.set_axis(list(names), axis=1)
    if space is not None:
        space.check_names(f"{who} ({word})", dict.fromkeys(frame.columns))
    absent = [name for name in names if name not in frame.columns]
    extra = [name for name in frame.columns if name not in set(names)]
    for what, columns, then in (
        ("missing", absent, "Add it, or leave it out everywhere."),
        ("too much", extra, "Leave it out, as an outcome."),
    ):
        if columns:
            listed = ", ".join(map(repr, columns))
            raise InvalidValueError(who, "the same columns everywhere", f"{listed} of {word} is {what}", then)
    return frame


def _may_be_missing(space: FeatureSpace | None, name: Any) -> bool:
    return space is None or space[name].missing is not False


def _then(space: FeatureSpace | None, name: Any) -> str:
    """Say what to do about a missing cell that is refused."""
    if space is None:
        return "Drop or fill it."
    return f"Drop or fill it, or say that it may be missing: space.update({name!r}, missing=True)."


def _numbers(who: str, word: str, name: Any, column: pd.Series[Any], space: FeatureSpace | None) -> Floats:
    if not is_number_dtype(column.dtype):
        for cell in column.tolist():
            if not _is_number(cell):
                but = f"{word} has {plain(cell)!r} there"
                then = "Give a space in which the column is categorical, or encode it."
                raise InvalidTypeError(who, f"numbers in column {name!r}", but, then)
        column = column.astype(object)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    is_refused = ~np.isfinite(values)
    is_missing = np.isnan(values)
    if _may_be_missing(space, name):
        is_refused &= ~is_missing
    if is_refused.any():
        place = int(np.flatnonzero(is_refused)[0])
        but = f"column {name!r} of {word} has {values[place]} in row {place}"
        raise InvalidValueError(who, "finite numbers", but, _then(space if is_missing[place] else None, name))
    return np.where(is_missing, MISSING, values)


def _is_number(cell: Any) -> bool:
    """Whether a cell is a number or missing."""
    if isinstance(cell, bool | np.bool_):
        return False
    is_missing = pd.api.types.is_scalar(cell) and pd.isna(cell)
    return isinstance(cell, int | float | np.number) or is_missing


def _coding(space: FeatureSpace | None, name: str) -> dict[Any, int]:
    """Return the codes that are known before any table: the ranks of a space's levels."""
    if space is None:
        return {}
    return {level: rank for rank, level in enumerate(space[name].levels)}


def _codes(
    who: str, word: str, column: pd.Series[Any], coding: dict[Any, int], space: FeatureSpace | None
) -> NDArray[np.intp]:
    """Return a code per cell, -1 of a missing one; values that are equal in Python are one, whatever their types."""
    is_missing = column.isna().to_numpy()
    if is_missing.any() and not _may_be_missing(space, column.name):
        but = f"column {column.name!r} of {word} has none in row {np.flatnonzero(is_missing)[0]}"
        raise InvalidValueError(who, "a value in every cell", but, _then(space, column.name))
    codes = np.full(len(column), -1, dtype=np.intp)
    cells = column[~is_missing].astype(object).tolist()
    try:
        codes[~is_missing] = [coding.setdefault(cell, len(coding)) for cell in cells]
    except TypeError as error:
        but = f"column {column.name!r} of {word} has others ({error})"
        raise InvalidTypeError(who, "plain values as categories", but, "Convert it.") from error
    return codes


def coordinates_of(space: FeatureSpace, points: Iterable[Mapping[str, float]]) -> Floats:
    """Return points (coordinates by column) as rows (n, d)."""
    return np.array([[point[name] for name in space.names] for point in points])


def points_of(space: FeatureSpace, coordinates: Floats) -> list[dict[str, float]]:
    """Return rows of coordinates (n, d) as points, which hold them by column."""
    return [dict(zip(space.names, row, strict=True)) for row in coordinates.tolist()]


def _stacked(columns: Sequence[NDArray[Any]], n: int, dtype: Any) -> NDArray[Any]:
    if not columns:
        return np.empty((n, 0), dtype=dtype)
    return np.stack(columns, axis=1)
