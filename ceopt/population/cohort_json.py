"""A cohort as JSON of a fixed version, and back without loss: rows, results, audit and settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ceopt.formulations.space.persistence import features_document, features_in
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solution.json_fields import is_list, require_fields
from ceopt.solution.json_frames import read_frame, write_frame
from ceopt.solution.json_io import damaged_as_sentence, require_format, result_document, result_in
from ceopt.solution.json_values import read_value, write_value
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.errors import InvalidValueError
from ceopt.solvers.whole_files import json_document

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMAT", "VERSION", "cohort_from_json", "cohort_to_json"]

Made = TypeVar("Made")

FORMAT: Final = "ceopt cohort"
VERSION: Final = 1
_WHO: Final = "Cohort.from_json"
_LISTS: Final = {
    "results": ("a list of results", is_list),
    "finished": ("a list of true and false", lambda value: is_list(value) and all(isinstance(v, bool) for v in value)),
    "options": ("values by name", lambda value: isinstance(value, dict)),
}
#: What a result leaves out where it is what the first one says.
_SHARED: Final = ("options", "versions", "rules", "target")


def cohort_to_json(cohort: Any) -> str:
    """Write a :class:`~ceopt.Cohort` as one line of JSON; what all results share is written once."""
    results = [_entry(result, cohort.space) for result in cohort]
    shared: dict[str, Any] = {}
    if results:
        shared = {name: results[0][name] for name in _SHARED}
    for entry in results:
        for name, value in shared.items():
            if _is_same(entry[name], value):
                del entry[name]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "ceopt": version("ceopt"),
        "space": features_document(tuple(cohort.space)),
        "options": write_value(dict(cohort.options)),
        "queries": write_frame(cohort.queries),
        "finished": list(cohort.finished),
        "audit": None if cohort.audit is None else write_frame(cohort.audit),
        "shared": shared,
        "results": results,
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def cohort_from_json(make: Callable[..., Made], text_or_path: Any) -> Made:
    """Read what :func:`cohort_to_json` wrote, from text or from a file, and make a :class:`~ceopt.Cohort` of it."""
    source, document = json_document(_WHO, text_or_path)
    require_format(_WHO, source, document, FORMAT, VERSION)
    with damaged_as_sentence(_WHO, "every field of a cohort", source):
        require_fields(_WHO, "", document, _LISTS)
        space = FeatureSpace(features_in(document["space"], source))
        queries = read_frame(_WHO, document["queries"])
        audit = None
        if document["audit"] is not None:
            audit = read_frame(_WHO, document["audit"])
        options = read_value(document["options"])
        require_fields(_WHO, "", {"options": options}, _LISTS)
        results = tuple(_result(entry, document["shared"], space, source) for entry in document["results"])
        _require_columns(source, space, results)
        _require_lengths(source, queries, audit, results, document["finished"])
        return make(
            results=results,
            queries=queries,
            space=space,
            options=options,
            finished=tuple(document["finished"]),
            audit=audit,
        )


def _entry(result: SolutionSet, space: FeatureSpace) -> dict[str, Any]:
    """Return one result; its space is written where it is not the cohort's."""
    entry = result_document(result)
    if result.space is None:
        entry["space"] = None
    elif result.space is not space and result.space != space:
        entry["space"] = features_document(tuple(result.space))
    return entry


def _result(entry: dict[str, Any], shared: dict[str, Any], space: FeatureSpace, source: str) -> SolutionSet:
    own: FeatureSpace | None = space
    if "space" in entry:
        own = None
        if entry["space"] is not None:
            own = FeatureSpace(features_in(entry["space"], source))
    return result_in(SolutionSet, {**shared, **entry}, own)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same as JSON: 1, 1.0 and true are three."""
    return json.dumps(one) == json.dumps(other)


def _require_columns(source: str, space: FeatureSpace, results: tuple[Any, ...]) -> None:
    """Refuse a cohort whose people or answers have other columns than its space."""
    for place, result in enumerate(results):
        for frame in (result.factual, *(answer.frame for answer in result)):
            if set(frame.columns) != set(space.names):
                raise InvalidValueError(
                    _WHO, "results over the columns of its space",
                    f"{source} has {list(frame.columns)!r} in result {place}", "Write it anew with to_json.",
                )  # fmt: skip


def _require_lengths(
    source: str, queries: pd.DataFrame, audit: pd.DataFrame | None, results: tuple[Any, ...], finished: list[bool]
) -> None:
    """Refuse a cohort of another number of results than rows."""
    lengths = {len(queries), len(results), len(finished)}
    if audit is not None:
        lengths.add(len(audit))
    if len(lengths) > 1:
        but = f"{source} has {len(results)} results, {len(queries)} rows and {len(finished)} marks"
        raise InvalidValueError(_WHO, "as many results as rows", but, "Write it anew with to_json.")
