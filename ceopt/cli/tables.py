"""A table of people, read from a file by its ending, with what was assumed of it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from ceopt.solvers.errors import MissingLibraryError, UnreadableFileError

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["read_table"]

_WHO: Final = "DATA"
_NONE: Final[Mapping[str, Collection[str]]] = {}
#: Cells of a number that mean "missing". A level of text is what it says, "NA" included; there only an empty cell is.
_MISSING: Final = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
#: What separates columns where it is no comma, the likeliest first.
_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")
_WHOLE: Final = re.compile(r"\s*[+-]?\d+\s*")
_WITH_ZERO: Final = re.compile(r"\s*0\d+\s*")


def read_table(
    path: Path, space: FeatureSpace | None, *, texts: Mapping[str, Collection[str]] = _NONE, codes: Collection[str] = ()
) -> tuple[Any, ...]:
    """Return the frame of a .csv or .parquet file, then a note on each thing that was assumed of it.

    A .csv file may separate its columns by semicolons (and write decimals with commas then), tabs or vertical bars.

    Parameters
    ----------
    path
        The file.
    space
        Says which columns are text whatever they look like.
    texts
        Without a space: columns that are text whatever they look like, and the texts that are known of each, which are
        levels even where they look like a missing value ("None").
    codes
        Without a space: columns that are text where a number in them begins with a zero, which it would lose.

    Raises
    ------
    UnreadableFileError
        No file, or none that is what its ending says; no rows.
    MissingLibraryError
        A .parquet file without pyarrow.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - of a path that is too long, Path.is_file raises
        raise UnreadableFileError(_WHO, "a file", f"{str(path)!r} is none", "Check the path.")
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".parquet"}:
        raise UnreadableFileError(_WHO, "a .csv or .parquet file", f"it is {str(path)!r}", "Convert it.")
    notes: list[str] = []
    try:
        frame = pd.read_parquet(path) if suffix == ".parquet" else _read_csv(path, space, texts, codes, notes)
    except ImportError as error:
        raise MissingLibraryError(
            _WHO, "pyarrow to read parquet", f"it is not installed and DATA is {str(path)!r}",
            'Install it by pip install "ceopt[parquet]", or give a CSV file.',
        ) from error  # fmt: skip
    except UnicodeError as error:
        but = f"{str(path)!r} is in another encoding ({_line(error)})"
        raise UnreadableFileError(_WHO, "a file of UTF-8 text", but, "Save it as UTF-8.") from error
    except Exception as error:  # pandas and pyarrow raise much for files that are not what they say, KeyError included
        raise UnreadableFileError(
            _WHO, f"a readable {suffix} file", f"{str(path)!r} is none ({_line(error)})", "Write it anew."
        ) from error
    if not len(frame) or not len(frame.columns):
        raise UnreadableFileError(_WHO, "rows", f"{str(path)!r} has none", "Give a table with a header and rows.")
    return frame, *notes


def _read_csv(
    path: Path,
    space: FeatureSpace | None,
    texts: Mapping[str, Collection[str]],
    codes: Collection[str],
    notes: list[str],
) -> pd.DataFrame:
    """Return the frame of a file, and note where it is not as CSV files are."""
    how: dict[str, Any] = {"sep": _separator(path)}
    frame = _parsed(path, space, texts, **how)
    note = ""
    if how["sep"] != ",":
        note = f"{path} separates its columns by {_SEPARATORS[how['sep']]}"
    if how["sep"] == ";" and _has_commas_in_numbers(frame.drop(columns=list(texts), errors="ignore")):
        note += " and writes decimals with commas"
        how["decimal"] = ","
        frame = _parsed(path, space, texts, **how)
    if note:
        notes.append(f"{note}; it was read so.")
    if space is not None:
        return frame
    lost = _with_zeros_lost(path, frame, **how)
    kept = lost.keys() & set(codes)
    if kept:
        frame = _parsed(path, space, {**texts, **dict.fromkeys(kept, ())}, **how)
    for name, cell in lost.items():
        if name not in kept:
            notes.append(
                f"Column {name!r} has {cell!r} in {path}, read as the number {int(cell)}, as the model does not say "
                "that it is text. A space in which its levels are texts (--space) keeps the zeros."
            )
    return frame


def _with_zeros_lost(path: Path, frame: pd.DataFrame, **how: Any) -> dict[str, str]:
    """Return the columns that were read as numbers though a whole number in them begins with a zero, and one such."""
    names = frame.select_dtypes(include="number").columns.tolist()
    if not names:
        return {}
    texts = pd.read_csv(path, dtype=str, **how)
    found = {}
    for name in names:
        cells = texts[name].dropna().unique()
        first = next((cell.strip() for cell in cells if _WITH_ZERO.fullmatch(cell)), None)
        if first is not None:
            found[name] = first
    return found


def _separator(path: Path) -> str:
    names = pd.read_csv(path, nrows=0).columns
    if len(names) == 1:
        for mark in _SEPARATORS:
            if mark in str(names[0]):
                return mark
    return ","


def _has_commas_in_numbers(frame: pd.DataFrame) -> bool:
    """Tell whether some column holds numbers with a comma, and nothing else."""
    for name in frame.select_dtypes(exclude="number").columns:
        texts = [str(cell) for cell in frame[name].dropna().unique()]
        has_comma = any(_COMMA.fullmatch(text) for text in texts)
        if has_comma and all(_COMMA.fullmatch(text) or _WHOLE.fullmatch(text) for text in texts):
            return True
    return False


def _parsed(path: Path, space: FeatureSpace | None, texts: Mapping[str, Collection[str]], **how: Any) -> pd.DataFrame:
    names = pd.read_csv(path, nrows=0, **how).columns
    if space is None:
        plain: pd.DataFrame = pd.read_csv(path, dtype={name: str for name in names if name in texts}, **how)
        return _with_levels(path, plain, texts, **how)
    levels = {f.name: f.levels for f in space if f.name in names and any(isinstance(level, str) for level in f.levels)}
    missing: dict[str, list[str]] = dict.fromkeys(names, _MISSING)
    missing |= {name: [] if "" in known else [""] for name, known in levels.items()}
    frame: pd.DataFrame = pd.read_csv(
        path, dtype=dict.fromkeys(levels, str), keep_default_na=False, na_values=missing, **how
    )
    return frame


def _with_levels(path: Path, frame: pd.DataFrame, texts: Mapping[str, Collection[str]], **how: Any) -> pd.DataFrame:
    """Return the frame with the texts that are known in place of the missing values that they were taken for."""
    names = [name for name in frame.columns if texts.get(name) and frame[name].isna().any()]
    if not names:
        return frame
    cells = pd.read_csv(path, dtype=str, keep_default_na=False, **how)
    for name in names:
        is_level = frame[name].isna() & cells[name].isin(list(texts[name]))
        frame[name] = frame[name].mask(is_level, cells[name])
    return frame


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
