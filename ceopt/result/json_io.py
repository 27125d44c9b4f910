"""Results as JSON of a fixed version, and back without loss: values bit for bit, dtypes included."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pandas as pd

from ceopt.base.said import Phrase, Said
from ceopt.formulations.space.dtypes import dtype_from_text, dtype_text, is_object_dtype, pool
from ceopt.formulations.space.feature import features_document, features_in, is_gap
from ceopt.formulations.space.space import FeatureSpace
from ceopt.result.counterfactual import Counterfactual
from ceopt.result.shown import SurrogateReport
from ceopt.solvers.checks import is_number, is_whole, plain
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, printable
from ceopt.solvers.whole_files import json_document

if TYPE_CHECKING:
    from collections.abc import Iterator

# ==== The fields of a result in JSON, and what each may hold ==========================================================

Check = Callable[[Any], bool]
Expected = tuple[str, Check]


def or_none(check: Check) -> Check:
    """Return a check that lets null pass too."""
    return lambda value: value is None or check(value)


_is_number_or_none: Final = or_none(is_number)


def is_text(value: Any) -> bool:
    """Whether a value is text."""
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return is_whole(value) and abs(value) < 2**63


def is_mapping(value: Any) -> bool:
    """Whether a value is a mapping."""
    return isinstance(value, Mapping)


def is_list(value: Any) -> bool:
    """Whether a value is a list as JSON has it."""
    return isinstance(value, list)


def list_of(check: Check) -> Check:
    """Return a check of a list whose every entry passes one."""
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def _mapping_of(check: Check) -> Check:
    return lambda value: isinstance(value, Mapping) and all(map(check, value.values()))


def _is_printed(value: Any) -> bool:
    return list_of(is_number)(value) and len(value) == 2 and all(map(math.isfinite, value))


def _is_range(value: Any) -> bool:
    return list_of(is_number)(value) and len(value) == 2 and value[0] <= value[1]


def _is_conflict(value: Any) -> bool:
    three = isinstance(value, list | tuple) and len(value) == 3
    return three and isinstance(value[0], str) and isinstance(value[1], str) and _is_number_or_none(value[2])


def _is_score(value: Any) -> bool:
    return _is_number_or_none(value) or _mapping_of(_is_number_or_none)(value)


def is_plain(value: Any) -> bool:
    """Whether a value is null, text, true, false or a number."""
    return value is None or isinstance(value, str | bool) or is_number(value)


def _is_anything(_value: Any) -> bool:
    return True


_BY_NAME_OR_NULL: Final[Expected] = ("values by name, or null", or_none(is_mapping))
#: What JSON may hold of a field, by the type that its dataclass declares. Fields of other types are written apart.
_OF_TYPE: Final[Mapping[str, Expected]] = {
    "bool": ("true or false", _is_truth),
    "int": ("a whole number", _is_whole),
    "float": ("a number", is_number),
    "float | None": ("a number or null", _is_number_or_none),
    "str": ("text", is_text),
    "str | None": ("text or null", or_none(is_text)),
    "tuple[int, ...]": ("a list of whole numbers", list_of(_is_whole)),
    "tuple[float, ...]": ("a list of numbers", list_of(is_number)),
    "tuple[str, ...]": ("a list of texts", list_of(is_text)),
    "tuple[tuple[str, str, float | None], ...]": (
        "a list of [name, sentence, number or null]",
        list_of(_is_conflict),
    ),
    "Mapping[str, Any]": ("values by name", is_mapping),
    "Mapping[str, int]": ("whole numbers by name", _mapping_of(_is_whole)),
    "Mapping[str, float]": ("numbers by name", _mapping_of(is_number)),
    "Mapping[str, str]": ("texts by name", _mapping_of(is_text)),
    "Mapping[str, tuple[str, ...]]": ("lists of texts by name", _mapping_of(list_of(is_text))),
    "Mapping[str, tuple[float, float]]": ("two numbers by name", _mapping_of(_is_printed)),
    "pd.Series[float]": ("numbers by name", _mapping_of(is_number)),
    "pd.Series[Any] | None": ("values by name, or null", or_none(_mapping_of(is_plain))),
    "SurrogateReport | None": _BY_NAME_OR_NULL,
}
#: The same by name, where the type says too little.
_OF_NAME: Final[Mapping[str, Expected]] = {
    "query_id": ("a label, of text, a number or a time", pd.api.types.is_hashable),
    "score": ("a number, or numbers by label", _is_score),
    "prediction": ("a value", _is_anything),
    "cluster": ("a number, text or null", is_plain),
    "ranges": ("two numbers by name, the lesser first", _mapping_of(_is_range)),
}


def expected_fields(kind: type) -> dict[str, Expected]:
    """Return what JSON may hold of each field of a dataclass, of those that it writes as plain data."""
    expected = {}
    for field in fields(kind):
        known = _OF_NAME.get(field.name) or _OF_TYPE.get(str(field.type))
        if known is not None:
            expected[field.name] = known
    return expected


def require_fields(who: str, where: str, given: Mapping[str, Any], known: Mapping[str, Expected]) -> None:
    """Refuse a field that holds something else than it may."""
    for name, (needs, check) in known.items():
        if name in given and not check(given[name]):
            held = repr(given[name])
            if len(held) > 80:
                held = f"{held[:80]}..."
            raise InvalidTypeError(who, f"{needs} as {name!r}{where}", f"it is {held}", "Write it anew with to_json.")


# ==== Points and spans of time as JSON and back: what a row may be labelled with beside numbers and text ==============


def is_time(value: Any) -> bool:
    """Whether a value is one that :func:`write_time` writes."""
    return value is pd.NaT or isinstance(value, dt.date | pd.Timedelta | pd.Period)


def write_time(value: Any) -> Any:
    """Return a time as JSON has it: the text of a Timestamp, with the name of its zone if it has one; else its kind."""
    if value is pd.NaT:
        return "NaT"
    if isinstance(value, pd.Timestamp):
        if value.tz is None:
            return value.isoformat()
        return {"zone": str(value.tz), "at": value.isoformat()}
    if isinstance(value, pd.Timedelta):
        return {"span": value.isoformat()}
    if isinstance(value, pd.Period):
        return {"period": value.freqstr, "place": value.ordinal}
    if isinstance(value, dt.datetime):
        return {"datetime": value.isoformat()}
    return {"date": value.isoformat()}


def read_time(held: Any) -> Any:
    """Return what :func:`write_time` wrote."""
    match held:
        case {"zone": zone, "at": text}:
            return pd.Timestamp(text).tz_convert(zone)
        case {"span": text}:
            return pd.Timedelta(text)
        case {"period": freq, "place": place}:
            return pd.Period(ordinal=place, freq=freq)
        case {"datetime": text}:
            return dt.datetime.fromisoformat(text)
        case {"date": text}:
            return dt.date.fromisoformat(text)
    return pd.Timestamp(held)


# ==== Values, and texts that know their phrases, as JSON and back without loss ========================================


def write_value(value: Any) -> Any:
    """Turn a value into what JSON has, marking what JSON would lose: a number that it lacks is ``{"float": "inf"}``."""
    value = plain(value)
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return {"float": repr(value)}
    if isinstance(value, Mapping):
        has_texts = all(isinstance(key, str) for key in value)
        looks_marked = len(value) == 1 and next(iter(value)) in _MARKS
        if has_texts and not looks_marked:
            return {key: write_value(part) for key, part in value.items()}
        return {"pairs": [[write_value(key), write_value(part)] for key, part in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": list(map(write_value, value))}
    if isinstance(value, list):
        return list(map(write_value, value))
    if is_time(value):
        return {"time": write_time(value)}
    if value is pd.NA:
        return {"missing": None}
    return repr(value)


_MARKS = {"float", "pairs", "tuple", "time", "missing"}


def read_value(value: Any) -> Any:
    """Return what :func:`write_value` wrote."""
    if isinstance(value, list):
        return list(map(read_value, value))
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
                return tuple(map(read_value, held))
            case "time":
                return read_time(held)
            case "missing":
                return pd.NA
    return {key: read_value(part) for key, part in value.items()}


def phrases_document(text: str) -> list[Any] | None:
    """Return the phrases of a text as JSON has them; None of a text that has none."""
    if not isinstance(text, Said):
        return None
    return list(map(_write_field, text.phrases))


def read_said(text: str, phrases: Any) -> str:
    """Return a text with the phrases that :func:`phrases_document` wrote; without them where there are none."""
    if phrases is None:
        return printable(text)
    known = tuple(map(_read_field, phrases))
    if not all(isinstance(phrase, Phrase) for phrase in known):
        raise ValueError("a phrase has no name and fields")
    return Said(text, known)


def _write_field(value: Any) -> Any:
    if isinstance(value, Phrase):
        words = {name: _write_field(field) for name, field in value.fields.items()}
        return {"phrase": value.name, "fields": words}
    if isinstance(value, tuple):
        return list(map(_write_field, value))
    return write_value(value)


def _read_field(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_read_field, value))
    if isinstance(value, dict) and value.keys() == {"phrase", "fields"}:
        if not isinstance(value["phrase"], str) or not isinstance(value["fields"], dict):
            raise ValueError("a phrase has no name and fields")
        return Phrase(value["phrase"], {word: _read_field(field) for word, field in value["fields"].items()})
    return read_value(value)


# ==== Frames of one row or many as JSON and back: labels, names, dtypes, categories and values ========================

#: How the dtypes of times begin, which pandas names and reads by itself.
_TIMES: Final = ("datetime64[", "timedelta64[", "period[")


def write_row(frame: pd.DataFrame) -> dict[str, Any]:
    """Write a one-row frame: its label, and per column the name, dtype, categories and value."""
    columns = []
    for name in frame.columns:
        (cell,), gap = _cells(frame[name])
        columns.append({**_column(name, frame[name].dtype), "value": cell, **gap})
    return {"index": write_value(frame.index[0]), "columns": columns}


def read_row(who: str, entry: dict[str, Any]) -> pd.DataFrame:
    """Return what :func:`write_row` wrote."""
    index = pd.Index([read_value(entry["index"])], tupleize_cols=False)
    require_fields(who, " of a row", entry, {"columns": ("a list", is_list)})
    data = {}
    for column in entry["columns"]:
        data[read_value(column["name"])] = _series(who, column, _read_cells(column, [column["value"]]), index)
    return pd.DataFrame(data, index=index)


def write_frame(frame: pd.DataFrame) -> dict[str, Any]:
    """Write a frame: labels of its rows, and per column the name, dtype, categories and values."""
    columns = []
    for place, name in enumerate(frame.columns):
        series = frame.iloc[:, place]
        cells, gap = _cells(series)
        columns.append({**_column(name, series.dtype), "values": cells, **gap})
    index = frame.index
    labels: dict[str, Any] = {
        "names": list(map(write_value, index.names)),
        "labels": list(map(write_value, index.tolist())),
    }
    if not isinstance(index, pd.MultiIndex):
        labels |= _dtype_entry(index.dtype)
    return {"index": labels, "columns": columns}


def read_frame(who: str, entry: dict[str, Any]) -> pd.DataFrame:
    """Return what :func:`write_frame` wrote."""
    require_fields(who, " of a frame", entry, {"columns": ("a list", is_list)})
    given = entry["index"]
    require_fields(who, " of a frame", given, {"names": ("a list", is_list), "labels": ("a list", is_list)})
    names = list(map(read_value, given["names"]))
    labels = list(map(read_value, given["labels"]))
    if "dtype" in given:
        held = _held(who, given, labels)
        index: Any = pd.Index(held, dtype=held.dtype, tupleize_cols=False, name=names[0])
    else:
        index = pd.MultiIndex.from_tuples(labels, names=names)
    data = {}
    for column in entry["columns"]:
        values = _read_cells(column, column["values"])
        data[read_value(column["name"])] = _series(who, column, values, index)
    return pd.DataFrame(data, index=index)


def _cells(series: pd.Series[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the cells of a column as JSON has them, null where one is missing, and what null stands for if not None.

    A column of a dtype of its own writes what is missing in one way. One of objects may write it in several: then None
    alone is null, and what else is there is marked, as in files of earlier releases.
    """
    cells = list(map(write_value, series))
    gaps = [cell for cell in series if is_gap(cell)]
    if not gaps:
        return cells, {}
    written = {json.dumps(write_value(gap)): write_value(gap) for gap in gaps}
    if len(written) > 1 and is_object_dtype(series.dtype):
        return cells, {}
    cells = [None if is_gap(cell) else written_cell for cell, written_cell in zip(series, cells, strict=True)]
    gap = next(iter(written.values()))
    if not is_object_dtype(series.dtype) or gap is None:
        return cells, {}
    return cells, {"missing": gap}


def _read_cells(column: dict[str, Any], cells: Any) -> list[Any]:
    """Return the values of cells that :func:`_cells` wrote."""
    values = list(map(read_value, cells))
    if column.get("missing") is None:
        return values
    gap = read_value(column["missing"])
    return [gap if value is None else value for value in values]


def _column(name: Any, dtype: Any) -> dict[str, Any]:
    return {"name": write_value(name), **_dtype_entry(dtype)}


def _dtype_entry(dtype: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"dtype": _dtype_name(dtype)}
    if isinstance(dtype, pd.CategoricalDtype):
        entry["categories"] = list(map(write_value, dtype.categories.tolist()))
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


# ==== A solution set as JSON of a fixed version, and back without loss: values bit for bit, dtypes included ===========

Made = TypeVar("Made")

FORMAT = "ceopt solution set"
VERSION = 1
_WHO = "SolutionSet.from_json"

#: Fields that text of an earlier day lacks.
_LATER = "min_distance after_distance_filter after_diversity_filter safety rules fingerprints size beyond proof".split()
#: Fields of an answer by column, which may bear the name of a mark, such as "time".
_BY_COLUMN = ("asked_by", "printed", "ranges", "actions")
_ANSWER = expected_fields(Counterfactual)
for _of_set in ("factual", "rules"):  # the solution set has them
    del _ANSWER[_of_set]
_PLAIN_OF_ANSWER = [name for name in _ANSWER if name not in _BY_COLUMN]


def to_json(result: Any) -> str:
    """Write a :class:`~ceopt.SolutionSet` as one line of JSON; a number that JSON lacks is ``{"float": "inf"}``."""
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, **result_document(result)}
    if result.space is None:
        document["space"] = None
    else:
        document["space"] = features_document(tuple(result.space))
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def result_document(result: Any) -> dict[str, Any]:
    """Return what JSON holds of a result, but for its format and the space."""
    document: dict[str, Any] = {"status": str(result.status)}
    for name in expected_fields(type(result)):
        if name != "surrogate":
            document[name] = write_value(getattr(result, name))
    document["phrases"] = {
        "reason": phrases_document(result.reason),
        "target": phrases_document(result.target),
        "conflict": [phrases_document(sentence) for _, sentence, _ in result.conflict],
        "removed": {name: phrases_document(text) for name, text in result.removed.items()},
        "rules": {name: phrases_document(text) for name, text in result.rules.items()},
    }
    surrogate = result.surrogate
    document["surrogate"] = None if surrogate is None else write_value(surrogate.to_mapping())
    document["factual"] = write_row(result.factual)
    document["counterfactuals"] = list(map(_write_answer, result))
    return document


def from_json(make: type[Made], text_or_path: Any) -> Made:
    """Read what :func:`to_json` wrote, from text or from a file, and make a :class:`~ceopt.SolutionSet` of it."""
    source, document = json_document(_WHO, text_or_path)
    require_format(_WHO, source, document, FORMAT, VERSION)
    with damaged_as_sentence(_WHO, "every field of a solution set", source):
        space = None
        if document.get("space") is not None:
            space = FeatureSpace(features_in(document["space"], source))
        return result_in(make, document, space)


def result_in(make: type[Made], document: dict[str, Any], space: FeatureSpace | None) -> Made:
    """Return the result of what :func:`result_document` wrote.

    Raises
    ------
    CeoptError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError
        A document that is damaged.
    """
    expected = expected_fields(make)
    held: dict[str, Any] = {"surrogate": read_value(document.get("surrogate"))}
    for name in expected:
        is_optional = name in _LATER or name == "surrogate"
        if name in document or not is_optional:
            held[name] = read_value(document[name])
    require_fields(_WHO, "", held, expected)
    if held["surrogate"] is not None:
        require_fields(_WHO, " of the surrogate", held["surrogate"], expected_fields(SurrogateReport))
    held["surrogate"] = SurrogateReport.from_mapping(held["surrogate"])
    _add_phrases(held, document.get("phrases") or {})
    require_fields(_WHO, "", document, {"counterfactuals": ("a list of answers", is_list)})
    factual = read_row(_WHO, document["factual"])
    answers = tuple(_read_answer(entry, factual) for entry in document["counterfactuals"])
    held |= {"status": document["status"], "counterfactuals": answers, "factual": factual, "space": space}
    return make(**held)


def require_format(who: str, source: str, document: Any, form: str, version: int) -> None:
    """Refuse a document of another format or version."""
    known = isinstance(document, dict) and document.get("format") == form
    if not known or document.get("version") != version or isinstance(document["version"], bool):
        needs = f'"format": "{form}" and "version": {version}'
        writer = who.replace("from_json", "to_json")
        raise InvalidValueError(who, needs, f"{source} has others", f"Use {writer}.")


@contextmanager
def damaged_as_sentence(who: str, needs: str, source: str) -> Iterator[None]:
    """Turn whatever the reading of a damaged document raises into one sentence."""
    try:
        yield
    except CeoptError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        but = f"{source} is damaged ({error!r})"
        raise InvalidValueError(who, needs, but, "Write it anew with to_json.") from error


def _add_phrases(held: dict[str, Any], phrases: Mapping[str, Any]) -> None:
    """Put the phrases back into the texts that know them."""
    for name in ("reason", "target"):
        held[name] = read_said(held[name], phrases.get(name))
    for name in ("removed", "rules"):
        known = phrases.get(name) or {}
        texts = held.get(name, {})
        held[name] = {key: read_said(text, known.get(key)) for key, text in texts.items()}
    of_conflict = phrases.get("conflict") or [None] * len(held["conflict"])
    entries = []
    for (name, sentence, width), known in zip(held["conflict"], of_conflict, strict=True):
        entries.append((name, read_said(sentence, known), width))
    held["conflict"] = tuple(entries)


def _write_answer(answer: Counterfactual) -> dict[str, Any]:
    entry: dict[str, Any] = {name: write_value(getattr(answer, name)) for name in _PLAIN_OF_ANSWER}
    if answer.asked_by:
        entry["asked_by"] = {name: list(rules) for name, rules in answer.asked_by.items()}
    if answer.printed:
        entry["printed"] = {name: list(map(write_value, pair)) for name, pair in answer.printed.items()}
    if answer.ranges:
        entry["ranges"] = {name: list(map(write_value, pair)) for name, pair in answer.ranges.items()}
    entry["actions"] = None
    if answer.actions is not None:
        entry["actions"] = {str(name): write_value(value) for name, value in answer.actions.items()}
    entry["values"] = write_row(answer.frame)
    return entry


def _read_by_column(entry: Any) -> Any:
    """Return values by column; a column may bear the name of a mark."""
    if not isinstance(entry, dict):
        return read_value(entry)
    return {name: read_value(value) for name, value in entry.items()}


def _read_answer(entry: dict[str, Any], factual: pd.DataFrame) -> Counterfactual:
    entry = {"way": None, "asked_by": {}, "printed": {}, "ranges": {}, **entry}  # which text of an earlier day lacks
    held = {name: read_value(entry[name]) for name in _PLAIN_OF_ANSWER}
    held |= {name: _read_by_column(entry[name]) for name in _BY_COLUMN}
    values = read_row(_WHO, entry["values"])
    require_fields(_WHO, " of an answer", held, _ANSWER)
    if list(values.columns) != list(factual.columns) or not set(held["changed"]) <= set(map(str, factual.columns)):
        but = "one has others"
        raise InvalidValueError(_WHO, "answers of the factual's columns", but, "Write it anew with to_json.")
    held["asked_by"] = {name: tuple(rules) for name, rules in held["asked_by"].items()}
    held["printed"] = {name: tuple(pair) for name, pair in held["printed"].items()}
    held["ranges"] = {name: tuple(pair) for name, pair in held["ranges"].items()}
    if held["actions"] is not None:
        held["actions"] = pd.Series(held["actions"], dtype=object)
    return Counterfactual(values=values, **held)  # type: ignore[arg-type]  # a frame of one row
