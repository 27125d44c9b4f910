"""A solution set as JSON of a fixed version, and back without loss: values bit for bit, dtypes included."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from ceopt.formulations.space.persistence import features_document, features_in
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solution.counterfactual import Counterfactual
from ceopt.solution.json_fields import ANSWER, RESULT, SURROGATE, is_list, require_fields
from ceopt.solution.json_frames import read_row, write_row
from ceopt.solution.json_values import phrases_document, read_said, read_value, write_value
from ceopt.solution.surrogate_report import SurrogateReport
from ceopt.solvers.errors import CeoptError, InvalidValueError
from ceopt.solvers.whole_files import json_document

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "FORMAT",
    "VERSION",
    "damaged_as_sentence",
    "from_json",
    "require_format",
    "result_document",
    "result_in",
    "to_json",
]

Made = TypeVar("Made")

FORMAT = "ceopt solution set"
VERSION = 1
_WHO = "SolutionSet.from_json"

#: Fields that are plain as they are.
_RESULT = (
    "bound gap margin complete reason conflict relaxed timings solver versions options target removed query_id".split()
)
#: Fields that text of an earlier day lacks.
_LATER = "min_distance after_distance_filter after_diversity_filter safety rules fingerprints size beyond".split()
_ANSWER = "cost prediction score slack changed verified rank bound gap cluster".split()


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
    for name in (*_RESULT, *_LATER):
        document[name] = write_value(getattr(result, name))
    document["phrases"] = {
        "reason": phrases_document(result.reason),
        "target": phrases_document(result.target),
        "conflict": [phrases_document(sentence) for _, sentence, _ in result.conflict],
        "removed": {name: phrases_document(text) for name, text in result.removed.items()},
        "rules": {name: phrases_document(text) for name, text in result.rules.items()},
    }
    document["surrogate"] = None
    if result.surrogate is not None:
        document["surrogate"] = write_value(result.surrogate.to_mapping())
    document["factual"] = write_row(result.factual)
    document["counterfactuals"] = [_write_answer(answer) for answer in result]
    return document


def from_json(make: Callable[..., Made], text_or_path: Any) -> Made:
    """Read what :func:`to_json` wrote, from text or from a file, and make a :class:`~ceopt.SolutionSet` of it."""
    source, document = json_document(_WHO, text_or_path)
    require_format(_WHO, source, document, FORMAT, VERSION)
    with damaged_as_sentence(_WHO, "every field of a solution set", source):
        space = None
        if document.get("space") is not None:
            space = FeatureSpace(features_in(document["space"], source))
        return result_in(make, document, space)


def result_in(make: Callable[..., Made], document: dict[str, Any], space: FeatureSpace | None) -> Made:
    """Return the result of what :func:`result_document` wrote.

    Raises
    ------
    CeoptError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError
        A document that is damaged.
    """
    fields = {name: read_value(document[name]) for name in _RESULT}
    for name in _LATER:
        if name in document:
            fields[name] = read_value(document[name])
    surrogate = read_value(document.get("surrogate"))
    require_fields(_WHO, "", fields | {"surrogate": surrogate}, RESULT)
    if surrogate is not None:
        require_fields(_WHO, " of the surrogate", surrogate, SURROGATE)
    fields["surrogate"] = SurrogateReport.from_mapping(surrogate)
    _add_phrases(fields, document.get("phrases") or {})
    require_fields(_WHO, "", document, {"counterfactuals": ("a list of answers", is_list)})
    factual = read_row(_WHO, document["factual"])
    answers = tuple(_read_answer(entry, factual) for entry in document["counterfactuals"])
    return make(status=document["status"], counterfactuals=answers, factual=factual, space=space, **fields)


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


def _add_phrases(fields: dict[str, Any], phrases: Mapping[str, Any]) -> None:
    """Put the phrases back into the texts that know them."""
    for name in ("reason", "target"):
        fields[name] = read_said(fields[name], phrases.get(name))
    for name in ("removed", "rules"):
        known = phrases.get(name) or {}
        texts = fields.get(name, {})
        fields[name] = {key: read_said(text, known.get(key)) for key, text in texts.items()}
    said = phrases.get("conflict") or [None] * len(fields["conflict"])
    entries = []
    for (name, sentence, width), known in zip(fields["conflict"], said, strict=True):
        entries.append((name, read_said(sentence, known), width))
    fields["conflict"] = tuple(entries)


def _write_answer(answer: Counterfactual) -> dict[str, Any]:
    entry: dict[str, Any] = {name: write_value(getattr(answer, name)) for name in _ANSWER}
    entry["way"] = answer.way
    if answer.asked_by:
        entry["asked_by"] = write_value({name: list(rules) for name, rules in answer.asked_by.items()})
    if answer.printed:
        entry["printed"] = {name: [write_value(number) for number in pair] for name, pair in answer.printed.items()}
    entry["actions"] = None
    if answer.actions is not None:
        entry["actions"] = {str(name): write_value(value) for name, value in answer.actions.items()}
    entry["values"] = write_row(answer.frame)
    return entry


def _read_actions(entry: Any) -> Any:
    """Return interventions by column; a column may bear the name of a mark, such as "time"."""
    if not isinstance(entry, dict):
        return read_value(entry)
    return {name: read_value(value) for name, value in entry.items()}


def _read_answer(entry: dict[str, Any], factual: pd.DataFrame) -> Counterfactual:
    fields = {name: read_value(entry[name]) for name in _ANSWER}
    fields["way"] = read_value(entry.get("way"))
    fields["asked_by"] = _read_actions(entry.get("asked_by", {}))
    fields["printed"] = _read_actions(entry.get("printed", {}))
    given = _read_actions(entry["actions"])
    values = read_row(_WHO, entry["values"])
    require_fields(_WHO, " of an answer", fields | {"actions": given}, ANSWER)
    if list(values.columns) != list(factual.columns) or not set(fields["changed"]) <= set(map(str, factual.columns)):
        raise InvalidValueError(
            _WHO, "answers of the factual's columns", "one has others", "Write it anew with to_json."
        )
    fields["asked_by"] = {name: tuple(rules) for name, rules in fields["asked_by"].items()}
    fields["printed"] = {name: tuple(pair) for name, pair in fields["printed"].items()}
    actions = None if given is None else pd.Series(given, dtype=object)
    return Counterfactual(values=values, actions=actions, **fields)  # type: ignore[arg-type]
