"""Values, and texts that know their phrases, as JSON and back without loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ceopt.solution.json_times import is_time, read_time, write_time
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import printable
from ceopt.words.said import Phrase, Said

__all__ = ["phrases_document", "read_said", "read_value", "write_value"]


def write_value(value: Any) -> Any:
    """Turn a value into what JSON has, marking what JSON would lose: a number that it lacks is ``{"float": "inf"}``."""
    value = plain(value)
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Mapping):
        has_texts = all(isinstance(key, str) for key in value)
        looks_marked = len(value) == 1 and next(iter(value)) in _MARKS
        if has_texts and not looks_marked:
            return {key: write_value(part) for key, part in value.items()}
        return {"pairs": [[write_value(key), write_value(part)] for key, part in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [write_value(part) for part in value]}
    if isinstance(value, list):
        return [write_value(part) for part in value]
    if is_time(value):
        return {"time": write_time(value)}
    if value is pd.NA:
        return {"missing": None}
    return repr(value)


_MARKS = {"float", "pairs", "tuple", "time", "missing"}


def read_value(value: Any) -> Any:
    """Return what :func:`write_value` wrote."""
    if isinstance(value, list):
        return [read_value(part) for part in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((mark, held),) = value.items()
        match mark:
            case "float":
                return float(held)
            case "pairs":
                return {read_value(key): read_value(part) for key, part in held}
            case "tuple":
                return tuple(read_value(part) for part in held)
            case "time":
                return read_time(held)
            case "missing":
                return pd.NA
    return {key: read_value(part) for key, part in value.items()}


def phrases_document(text: str) -> list[Any] | None:
    """Return the phrases of a text as JSON has them; None of a text that has none."""
    if not isinstance(text, Said):
        return None
    return [_write_field(phrase) for phrase in text.phrases]


def read_said(text: str, phrases: Any) -> str:
    """Return a text with the phrases that :func:`phrases_document` wrote; without them where there are none."""
    if phrases is None:
        return printable(text)
    known = tuple(_read_field(phrase) for phrase in phrases)
    if not all(isinstance(phrase, Phrase) for phrase in known):
        raise ValueError("a phrase has no name and fields")
    return Said(text, known)


def _write_field(value: Any) -> Any:
    if isinstance(value, Phrase):
        fields = {name: _write_field(field) for name, field in value.fields.items()}
        return {"phrase": value.name, "fields": fields}
    if isinstance(value, tuple):
        return [_write_field(entry) for entry in value]
    return write_value(value)


def _read_field(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_read_field(entry) for entry in value)
    if isinstance(value, dict) and value.keys() == {"phrase", "fields"}:
        name, fields = value["phrase"], value["fields"]
        if not isinstance(name, str) or not isinstance(fields, dict):
            raise ValueError("a phrase has no name and fields")
        return Phrase(name, {word: _read_field(field) for word, field in fields.items()})
    return read_value(value)
