"""Labels of columns and levels: read from a mapping or a table, and kept where columns are described anew."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ceopt.formulations.space.feature import Feature, no_such_level
from ceopt.solvers.checks import Choice
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnreadableFileError
from ceopt.solvers.whole_files import file_path, read_text

# ==== Labels of a space: kept by ``FeatureSpace.update``, and different from each other ===============================


def relabelled(old: Feature, new: Feature, label: str | None, level_labels: Any) -> Feature:
    """Return a column that was described anew with new labels; None keeps those of what is still there."""
    if label is None:
        label = old.label
    if level_labels is None:
        still = (*new.levels, *new.codes)
        level_labels = [(level, text) for level, text in old.level_labels if level in still]
    if (label, level_labels) == (new.label, []):
        return new
    return replace(new, label=label, level_labels=level_labels)


def check_labels(features: Iterable[Feature]) -> None:
    """Refuse two columns that people call the same."""
    names: dict[str, str] = {}
    for feature in features:
        first = names.setdefault(feature.called, feature.name)
        if first != feature.name:
            but = f"{feature.called!r} is that of {first!r} and {feature.name!r}"
            raise InvalidValueError("FeatureSpace", "columns of different labels", but, "Change one.")


# ==== Labels of a whole frame, as ``FeatureSpace.infer`` takes them: a mapping, or a table in a file ================

_WHO: Final = "FeatureSpace.infer"
_COLUMNS: Final = ("name", "level", "label")
_PARTS: Final = ("label", "levels")


def with_labels(features: list[Feature], labels: Any) -> list[Feature]:
    """Return features with what people call them and their levels; see :meth:`FeatureSpace.infer`.

    Raises
    ------
    InvalidTypeError, UnreadableFileError
        Neither a mapping nor the path of a table; a table of other columns.
    UnknownNameError, InvalidValueError
        A column or a level that is not there, or one that has two labels.
    """
    if labels is None:
        return features
    by_name = {feature.name: feature for feature in features}
    if isinstance(labels, Mapping):
        labelled = _of_mapping(labels, by_name)
    elif isinstance(labels, str | Path):
        labelled = _of_table(file_path(_WHO, labels, "labels"), by_name)
    else:
        but = f"labels is {type(labels).__name__}"
        then = 'Write {"income": "Yearly income"}.'
        raise InvalidTypeError(_WHO, "a mapping, or the path of a .csv file, as labels", but, then)
    return [replace(feature, **labelled.get(feature.name, {})) for feature in features]


def _of_mapping(labels: Mapping[Any, Any], features: Mapping[str, Feature]) -> dict[str, dict[str, Any]]:
    labelled: dict[str, dict[str, Any]] = {}
    for name, given in labels.items():
        Choice(features).require(_WHO, "column of labels", name)
        parts = given if isinstance(given, Mapping) else {"label": given}
        for word in parts:
            Choice(_PARTS).require(_WHO, f"part of labels[{name!r}]", word)
        labelled[name] = {"label": parts.get("label"), "level_labels": parts.get("levels")}
    return labelled


def _of_table(path: Path, features: Mapping[str, Feature]) -> dict[str, dict[str, Any]]:
    """Read a table with a line for each label; a line without a level is about the column itself."""
    labelled: dict[str, dict[str, Any]] = {}
    for number, line in _lines(path):
        name = line["name"]
        Choice(features).require(_WHO, f"column in line {number} of {path}", name)
        own = labelled.setdefault(name, {"label": None, "level_labels": {}})
        level = line["level"]
        if not level.strip():
            is_there = own["label"] is not None
            own["label"] = line["label"].strip()
        else:
            feature = features[name]
            key = _level_written(feature, level)
            if key is None:
                raise no_such_level(
                    f"{feature.who} (line {number} of {path})", level, (*feature.levels, *feature.codes)
                )
            is_there = key in own["level_labels"]
            own["level_labels"][key] = line["label"].strip()
        if is_there:
            but = f"line {number} of {path} has another of {level or name!r}"
            raise InvalidValueError(_WHO, "one label each", but, "Leave one out.")
    return labelled


def _level_written(feature: Feature, text: str) -> Any:
    """Return the level, or code, that a cell of a file stands for; None where there is none."""
    levels = (*feature.levels, *feature.codes)
    for level in levels:
        if str(level) == text:
            return level
    for level in levels:
        is_number = isinstance(level, int | float) and not isinstance(level, bool)
        if str(level).strip() == text.strip() or (is_number and _number(text) == level):
            return level
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _lines(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Return the lines of a table by number, each with a name, a level (maybe empty) and a label."""
    text = read_text(_WHO, path)
    head = text.partition("\n")[0]
    mark = ";" if ";" in head and "," not in head else ","  # as spreadsheets write where the comma is for decimals
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=mark, restval="", strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise UnreadableFileError(
            _WHO, "a .csv file as labels", f"{str(path)!r} is none ({error})", "Correct it."
        ) from error
    columns = [column.strip() for column in reader.fieldnames or ()]
    if not {"name", "label"} <= set(columns) <= set(_COLUMNS) or len(set(columns)) < len(columns):
        but = f"those of {str(path)!r} are {', '.join(map(repr, columns)) or 'none'}"
        raise InvalidValueError(_WHO, "the columns name, level and label in labels", but, "Correct its first line.")
    lines = []
    for number, row in rows:
        if None in row:
            but = f"line {number} of {str(path)!r} has more"
            raise InvalidValueError(
                _WHO, f"{len(columns)} cells a line in labels", but, 'Quote texts with a comma: "a, b".'
            )
        line = {column.strip(): str(cell) for column, cell in row.items()}
        if any(cell.strip() for cell in line.values()):
            lines.append((number, {"level": "", **line}))
    return lines
