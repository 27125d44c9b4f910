"""A table of people, read from a file by its ending, with what was assumed of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from ceopt.solvers.errors import MissingLibraryError, UnreadableFileError

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["read_table"]

_WHO: Final = "DATA"
#: Cells of a number that mean "missing". A level of text is what it says, "NA" included; there only an empty cell is.
_MISSING: Final = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
#: What separates columns where it is no comma, the likeliest first.
_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")
_WHOLE: Final = re.compile(r"\s*[+-]?\d+\s*")


def read_table(path: Path, space: FeatureSpace | None) -> tuple[Any, ...]:
    """Return the frame of a .csv or .parquet file, then a note on each thing that was assumed of it.

    A space says which columns are text whatever they look like. A .csv file may separate its columns by semicolons (and
    write decimals with commas then), tabs or vertical bars.

    Raises
    ------
    UnreadableFileError
        No file, or none that is what its ending says; no rows.
    MissingLibraryError
        A .parquet file without pyarrow.
    """
    if not path.is_file():
        raise UnreadableFileError(_WHO, "a file", f"{str(path)!r} is none", "Check the path.")
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".parquet"}:
        raise UnreadableFileError(_WHO, "a .csv or .parquet file", f"it is {str(path)!r}", "Convert it.")
    notes: list[str] = []
    try:
        frame = pd.read_parquet(path) if suffix == ".parquet" else _read_csv(path, space, notes)
    except ImportError as error:
        raise MissingLibraryError(
            _WHO, "pyarrow to read parquet", f"it is not installed and DATA is {str(path)!r}",
            'Install it by pip install "ceopt[parquet]", or give a CSV file.',
        ) from error  # fmt: skip
    except UnicodeError as error:
        but = f"{str(path)!r} is in another encoding ({_line(error)})"
        raise UnreadableFileError(_WHO, "a file of UTF-8 text", but, "Save it as UTF-8.") from error
    except (OSError, ValueError) as error:  # what pandas and pyarrow raise for files that are not what they say
        raise UnreadableFileError(
            _WHO, f"a readable {suffix} file", f"{str(path)!r} is none ({_line(error)})", "Write it anew."
        ) from error
    if not len(frame) or not len(frame.columns):
        raise UnreadableFileError(_WHO, "rows", f"{str(path)!r} has none", "Give a table with a header and rows.")
    return frame, *notes


def _read_csv(path: Path, space: FeatureSpace | None, notes: list[str]) -> pd.DataFrame:
    """Return the frame of a file, and note where it is not as CSV files are."""
    sep = _separator(path)
    frame = _parsed(path, space, sep=sep)
    if sep == ",":
        return frame
    note = f"{path} separates its columns by {_SEPARATORS[sep]}"
    if sep == ";" and _has_commas_in_numbers(frame):
        note += " and writes decimals with commas"
        frame = _parsed(path, space, sep=sep, decimal=",")
    notes.append(f"{note}; it was read so.")
    return frame


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


def _parsed(path: Path, space: FeatureSpace | None, **how: Any) -> pd.DataFrame:
    if space is None:
        plain: pd.DataFrame = pd.read_csv(path, **how)
        return plain
    names = pd.read_csv(path, nrows=0, **how).columns
    texts = {f.name for f in space if f.name in names and any(isinstance(level, str) for level in f.levels)}
    missing = {name: [""] if name in texts else _MISSING for name in names}
    frame: pd.DataFrame = pd.read_csv(
        path, dtype=dict.fromkeys(texts, str), keep_default_na=False, na_values=missing, **how
    )
    return frame


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
