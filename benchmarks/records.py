"""The files of results: JSON, one record a line, without what no table needs.

A list of records is a table: its columns once, then a line for each record; a column that holds a mapping names what is
in it. A record that lacks a column, or has one of its own, stands among the others by its names. A mapping from keys to
records is a table with its keys. Seconds are kept to
seven digits and everything else as it is, so that a page that is made from the file is the page that was committed:
:func:`kept` gives the data as the file will give them back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["kept", "read", "write"]

#: Fewer records than this are no table.
FEW = 3
#: Significant digits of a number of seconds.
DIGITS = 7
#: Names, or ends of names, of what is measured in seconds, with all that is inside.
CLOCKS = ("seconds", "cpu", "wall", "timings", "timings_s", "measured", "_s", "_ms", "cpu_best", "predict", "cpu_late")


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Write a file of results."""
    lines = [f"{json.dumps(key)}: {_text(value)}" for key, value in _packed(_rounded(record)).items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """Return what was written."""
    record: dict[str, Any] = _unpacked(json.loads(path.read_text(encoding="utf-8")))
    return record


def kept(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as :func:`read` will give it."""
    same: dict[str, Any] = json.loads(json.dumps(_rounded(record)))
    return same


# ---- numbers ---------------------------------------------------------------------------------------------------------
def _rounded(value: Any, *, clock: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _rounded(part, clock=clock or str(key).endswith(CLOCKS)) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part, clock=clock) for part in value]
    if isinstance(value, float) and clock:
        return float(f"{value:.{DIGITS}g}")
    return value


# ---- tables ----------------------------------------------------------------------------------------------------------
def _packed(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) >= FEW and all(isinstance(part, dict) for part in value.values()):
            columns = _columns(list(value.values()))
            if columns:
                return {"_columns": columns, "_entries": {key: _row(part, columns) for key, part in value.items()}}
        return {key: _packed(part) for key, part in value.items()}
    if isinstance(value, list):
        if len(value) >= FEW and all(isinstance(part, dict) for part in value):
            columns = _columns(value)
            if columns:
                return {"_columns": columns, "_rows": [_row(part, columns) for part in value]}
        return [_packed(part) for part in value]
    return value


Column = str | list[Any]  # a name; or a name and the names within, where every record has a mapping of the same ones


def _columns(records: Sequence[dict[str, Any]]) -> list[Column]:
    """Return the names that most records have, in their order."""
    ((names, _),) = Counter(tuple(record) for record in records).most_common(1)
    alike = [record for record in records if tuple(record) == names]
    columns: list[Column] = []
    for name in names:
        inner = {tuple(record[name]) if isinstance(record[name], dict) else () for record in alike}
        columns.append([name, list(*inner)] if len(inner) == 1 and () not in inner else name)
    return columns


def _name(column: Column) -> str:
    return column if isinstance(column, str) else str(column[0])


def _row(record: dict[str, Any], columns: list[Column]) -> Any:
    if list(record) != [_name(column) for column in columns]:
        return {key: _packed(part) for key, part in record.items()}
    row = []
    for column, part in zip(columns, record.values(), strict=True):
        if isinstance(column, str):
            row.append(_packed(part))
        else:
            row.append([_packed(inner) for inner in part.values()])
    return row


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"_columns", "_rows"}:
            return [_record(row, value["_columns"]) for row in value["_rows"]]
        if set(value) == {"_columns", "_entries"}:
            return {key: _record(row, value["_columns"]) for key, row in value["_entries"].items()}
        return {key: _unpacked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_unpacked(part) for part in value]
    return value


def _record(row: Any, columns: list[Column]) -> dict[str, Any]:
    if isinstance(row, dict):
        return {key: _unpacked(part) for key, part in row.items()}
    record: dict[str, Any] = {}
    for column, part in zip(columns, row, strict=True):
        if isinstance(column, str):
            record[column] = _unpacked(part)
        else:
            record[_name(column)] = {key: _unpacked(inner) for key, inner in zip(column[1], part, strict=True)}
    return record


# ---- lines -----------------------------------------------------------------------------------------------------------
def _text(value: Any, depth: int = 0) -> str:
    """Return compact JSON; outer tables, and what holds them, have a line for each part."""
    if isinstance(value, dict) and set(value) in ({"_columns", "_rows"}, {"_columns", "_entries"}):
        ((name, parts),) = ((key, part) for key, part in value.items() if key != "_columns")
        if name == "_rows":
            lines = [_compact(part) for part in parts]
            inside = "[\n" + ",\n".join(lines) + "\n]"
        else:
            lines = [f"{json.dumps(key)}: {_compact(part)}" for key, part in parts.items()]
            inside = "{\n" + ",\n".join(lines) + "\n}"
        return f'{{"_columns": {_compact(value["_columns"])}, "{name}": {inside}}}'
    if isinstance(value, dict) and depth == 0 and value:
        return "{" + ", ".join(f"{json.dumps(key)}: {_text(part, 1)}" for key, part in value.items()) + "}"
    return _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
