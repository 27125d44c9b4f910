"""A solution set as JSON of a fixed version, and back without loss: values bit for bit, dtypes included."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ceopt.formulations.space.dtypes import dtype_from_text, dtype_text, plain, pool
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solution.counterfactual import Counterfactual
from ceopt.solution.json_fields import ANSWER, RESULT, SURROGATE, is_list, require_fields
from ceopt.solution.surrogate_report import SurrogateReport
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError
from ceopt.solvers.files.whole_files import json_document

__all__ = ["FORMAT", "VERSION", "from_json", "to_json"]

Made = TypeVar("Made")

FORMAT = "ceopt solution set"
VERSION = 1
_WHO = "SolutionSet.from_json"

#: Fields that are plain as they are.
_RESULT = (
    "bound gap margin complete reason conflict relaxed timings solver versions options target removed query_id".split()
)
#: Fields of sets of explanations, which text of an earlier day lacks.
_SET = "min_distance after_distance_filter after_diversity_filter safety".split()
_ANSWER = "cost prediction score slack changed verified rank bound gap cluster".split()


def to_json(result: Any) -> str:
    """Write a :class:`~ceopt.SolutionSet` as one line of JSON; a number that JSON lacks is ``{"float": "inf"}``."""
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, "status": str(result.status)}
    for name in (*_RESULT, *_SET):
        document[name] = _write(getattr(result, name))
    document["surrogate"] = None if result.surrogate is None else _write(result.surrogate.to_mapping())
    if result.space is not None:
        document["space"] = json.loads(result.space.to_json())
    document["factual"] = _write_frame(result.factual)
    document["counterfactuals"] = [_write_answer(answer) for answer in result]
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def from_json(make: Callable[..., Made], text_or_path: Any) -> Made:
    """Read what :func:`to_json` wrote, from text or from a file, and make a :class:`~ceopt.SolutionSet` of it."""
    source, document = json_document(_WHO, text_or_path)
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        raise InvalidValueError(
            _WHO, f'"format": "{FORMAT}" and "version": {VERSION}', f"{source} has others", "Use SolutionSet.to_json."
        )
    try:
        fields = {name: _read(document[name]) for name in _RESULT}
        for name in _SET:
            if name in document:
                fields[name] = _read(document[name])
        surrogate = _read(document.get("surrogate"))
        described = document.get("space")
        require_fields(_WHO, "", fields | {"surrogate": surrogate, "space": described}, RESULT)
        if surrogate is not None:
            require_fields(_WHO, " of the surrogate", surrogate, SURROGATE)
        fields["surrogate"] = SurrogateReport.from_mapping(surrogate)
        if described is not None:
            fields["space"] = FeatureSpace.from_json(json.dumps(described))
        fields["conflict"] = tuple(tuple(entry) for entry in fields["conflict"])
        require_fields(_WHO, "", document, {"counterfactuals": ("a list of answers", is_list)})
        factual = _read_frame(document["factual"])
        if described is not None and set(fields["space"].names) != set(map(str, factual.columns)):
            raise InvalidValueError(
                _WHO, "a space of the factual's columns", "it has others", "Write it anew with to_json."
            )
        answers = tuple(_read_answer(entry, factual) for entry in document["counterfactuals"])
        return make(status=document["status"], counterfactuals=answers, factual=factual, **fields)
    except CeoptError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InvalidValueError(
            _WHO, "every field of a solution set", f"{source} is damaged ({error!r})", "Write it anew with to_json."
        ) from error


def _write_answer(answer: Counterfactual) -> dict[str, Any]:
    entry: dict[str, Any] = {name: _write(getattr(answer, name)) for name in _ANSWER}
    entry["way"] = answer.way
    entry["actions"] = None
    if answer.actions is not None:
        entry["actions"] = {str(name): _write(value) for name, value in answer.actions.items()}
    entry["values"] = _write_frame(answer.frame)
    return entry


def _read_answer(entry: dict[str, Any], factual: pd.DataFrame) -> Counterfactual:
    fields = {name: _read(entry[name]) for name in _ANSWER}
    fields["way"] = _read(entry.get("way"))
    given = _read(entry["actions"])
    values = _read_frame(entry["values"])
    require_fields(_WHO, " of an answer", fields | {"actions": given}, ANSWER)
    if list(values.columns) != list(factual.columns) or not set(fields["changed"]) <= set(map(str, factual.columns)):
        raise InvalidValueError(
            _WHO, "answers of the factual's columns", "one has others", "Write it anew with to_json."
        )
    actions = None if given is None else pd.Series(given, dtype=object)
    return Counterfactual(values=values, actions=actions, **fields)  # type: ignore[arg-type]


def _write(value: Any) -> Any:
    """Turn a value into what JSON has, marking what JSON would lose."""
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
            return {key: _write(part) for key, part in value.items()}
        return {"pairs": [[_write(key), _write(part)] for key, part in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_write(part) for part in value]}
    if isinstance(value, list):
        return [_write(part) for part in value]
    if isinstance(value, pd.Timestamp):
        return {"time": value.isoformat()}
    if value is pd.NA:
        return {"missing": None}
    return repr(value)


_MARKS = {"float", "pairs", "tuple", "time", "missing"}


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(part) for part in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((mark, held),) = value.items()
        match mark:
            case "float":
                return float(held)
            case "pairs":
                return {_read(key): _read(part) for key, part in held}
            case "tuple":
                return tuple(_read(part) for part in held)
            case "time":
                return pd.Timestamp(held)
            case "missing":
                return pd.NA
    return {key: _read(part) for key, part in value.items()}


def _write_frame(frame: pd.DataFrame) -> dict[str, Any]:
    """Write a one-row frame: its label, and per column the name, dtype, categories and value."""
    columns = []
    for name in frame.columns:
        dtype = frame[name].dtype
        entry = {"name": _write(name), "dtype": _dtype_text(dtype), "value": _write(frame[name].iloc[0])}
        if isinstance(dtype, pd.CategoricalDtype):
            entry["categories"] = [_write(level) for level in dtype.categories.tolist()]
        columns.append(entry)
    return {"index": _write(frame.index[0]), "columns": columns}


def _dtype_text(dtype: Any) -> str:
    """Name a dtype; a row that was refused may hold others, which come back as objects."""
    try:
        return dtype_text(_WHO, dtype)
    except InvalidTypeError:
        return "object"


def _read_frame(entry: dict[str, Any]) -> pd.DataFrame:
    label = _read(entry["index"])
    index = pd.Index([label], tupleize_cols=False)
    data: dict[Any, Any] = {}
    require_fields(_WHO, " of a row", entry, {"columns": ("a list", is_list)})
    for column in entry["columns"]:
        dtype = dtype_from_text(_WHO, column["dtype"], _read(column.get("categories")))
        value = _read(column["value"])
        held = pool([value], dtype)
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            data[_read(column["name"])] = pd.Series(held, index=index, dtype=object)
        else:
            data[_read(column["name"])] = pd.Series(held, index=index)
    return pd.DataFrame(data, index=index)
