"""Explanations as the JSON that dice_ml writes and reads: its version 2.0, values in lists, columns named once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from ceopt.dice.examples import CounterfactualExamples
from ceopt.solution.json_fields import is_plain, is_text, list_of, or_none, require_fields
from ceopt.solvers.checks import is_number, plain
from ceopt.solvers.errors import CeoptError, UnreadableFileError
from ceopt.solvers.whole_files import json_in

__all__ = ["from_text", "to_text"]

_VERSION: Final = "2.0"
_TEXT: Final = ("text", is_text)
_TABLES: Final = ("lists of rows, which are lists of plain values", list_of(list_of(list_of(is_plain))))
_SHARES: Final = ("a list of numbers, or null", or_none(list_of(is_number)))
_FIELDS: Final = {
    "feature_names": ("a list of texts", list_of(is_text)),
    "feature_names_including_target": ("a list of texts", list_of(is_text)),
    "test_data": _TABLES,
    "cfs_list": ("lists of rows, or null for each", list_of(or_none(list_of(list_of(is_plain))))),
    "model_type": _TEXT,
    "desired_class": ("text, a number or null", is_plain),
    "desired_range": _SHARES,
    "local_importance": ("lists of numbers, or null", or_none(list_of(list_of(is_number)))),
    "summary_importance": _SHARES,
}
_WHO: Final = "CounterfactualExplanations.from_json"
Shares = Mapping[str, float]


def to_text(examples: Sequence[CounterfactualExamples], local: Sequence[Shares] | None, summary: Shares | None) -> str:
    """Return the text; the outcome wanted is that of the last row, as the format holds one."""
    last = examples[-1]
    columns = [str(name) for name in last.test_instance_df.columns]
    names = [name for name in columns if name != last.outcome_name]
    local_shares = None
    if local is not None:
        local_shares = [[shares[name] for name in names] for shares in local]
    summary_shares = None
    if summary is not None:
        summary_shares = [summary[name] for name in names]
    record = {
        "test_data": [_rows(example.test_instance_df) for example in examples],
        "cfs_list": [None if example.final_cfs_df is None else _rows(example.final_cfs_df) for example in examples],
        "local_importance": local_shares,
        "summary_importance": summary_shares,
        "data_interface": {"outcome_name": last.outcome_name, "data_df": "dummy_data"},
        "feature_names": names,
        "feature_names_including_target": columns,
        "model_type": last.model_type,
        "desired_class": _class(last.desired_class),
        "desired_range": last.desired_range,
        "metadata": {"version": _VERSION},
    }
    return json.dumps(record)


def _rows(frame: pd.DataFrame) -> list[list[Any]]:
    columns = [[plain(value) for value in frame[name].tolist()] for name in frame.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _class(desired: Any) -> Any:
    """Return a desired class as text or a whole number, which is all that the format takes."""
    if desired is None or (isinstance(desired, str | int) and not isinstance(desired, bool)):
        return desired
    if isinstance(desired, float) and desired.is_integer():
        return int(desired)
    return str(desired)


def from_text(text: str) -> tuple[list[CounterfactualExamples], list[dict[str, float]] | None, dict[str, float] | None]:
    """Return examples, the importances of each row, and those of all.

    Raises
    ------
    UnreadableFileError
        No JSON, another version, or another shape.
    """
    then = "Give what to_json returned."
    if not isinstance(text, str):
        but = f"the text is {type(text).__name__}"
        raise UnreadableFileError(_WHO, "JSON of explanations", but, then)
    record = json_in(_WHO, "the text", text, then, needs="JSON of explanations")
    try:
        version = record["metadata"]["version"]
    except (TypeError, LookupError) as error:
        raise UnreadableFileError(_WHO, "JSON of explanations", f"the text is not ({error!r})", then) from error
    if version != _VERSION:
        raise UnreadableFileError(
            _WHO, f"version {_VERSION!r}", f"version is {version!r}", "Write it anew with to_json."
        )
    try:
        _check(record)
        return _examples(record), _local(record), _summary(record)
    except CeoptError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise UnreadableFileError(_WHO, "complete JSON of explanations", f"it is damaged ({error!r})", then) from error


def _check(record: Mapping[str, Any]) -> None:
    """Refuse a field that holds something else than it may."""
    columns = record["feature_names_including_target"]
    names = record["feature_names"]
    require_fields(_WHO, "", record, _FIELDS)
    require_fields(_WHO, "", record["data_interface"], {"outcome_name": _TEXT})
    outcome = record["data_interface"]["outcome_name"]
    if len(set(columns)) < len(columns) or [name for name in columns if name != outcome] != names:
        raise ValueError("feature_names are not the columns without the outcome")
    if outcome not in columns:
        raise ValueError("the outcome is no column")
    for tables in (record["test_data"], record["cfs_list"]):
        for rows in tables:
            if any(len(row) != len(columns) for row in rows or ()):
                raise ValueError("a row has another number of values than there are columns")
    if any(len(rows) != 1 for rows in record["test_data"]):
        raise ValueError("test_data has not one row each")


def _examples(record: Mapping[str, Any]) -> list[CounterfactualExamples]:
    columns = record["feature_names_including_target"]
    examples = []
    for rows, found in zip(record["test_data"], record["cfs_list"], strict=True):
        examples.append(
            CounterfactualExamples(
                test_instance_df=pd.DataFrame(rows, columns=columns),
                final_cfs_df=None if found is None else pd.DataFrame(found, columns=columns),
                outcome_name=record["data_interface"]["outcome_name"],
                model_type=record["model_type"],
                desired_class=record["desired_class"],
                desired_range=record["desired_range"],
            )
        )
    return examples


def _local(record: Mapping[str, Any]) -> list[dict[str, float]] | None:
    if record["local_importance"] is None:
        return None
    return [_named(record, shares) for shares in record["local_importance"]]


def _summary(record: Mapping[str, Any]) -> dict[str, float] | None:
    if record["summary_importance"] is None:
        return None
    return _named(record, record["summary_importance"])


def _named(record: Mapping[str, Any], shares: Sequence[float]) -> dict[str, float]:
    """Return shares by column, the most frequent first."""
    named = dict(zip(record["feature_names"], shares, strict=True))
    return dict(sorted(named.items(), key=lambda entry: -entry[1]))
