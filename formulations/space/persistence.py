"""A space as JSON with a version, and back without loss. The format is published in schema.json beside this file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ceopt.formulations.space.feature import Feature
from ceopt.solvers.errors import CeoptError, InvalidValueError
from ceopt.solvers.whole_files import json_document

FORMAT = "ceopt feature space"
VERSION = 1
_WHO = "FeatureSpace.from_json"
#: Fields that files of earlier releases lack.
_LATER = {"step_inferred": False, "codes": (), "decimals": None}
_FIELDS = tuple(field.name for field in fields(Feature) if field.init)


def features_to_json(features: Sequence[Feature]) -> str:
    """Write features as text; an infinite bound is null, floats keep every digit."""
    return json.dumps(features_document(features), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def features_document(features: Sequence[Feature]) -> dict[str, Any]:
    """Return what that text holds, as part of other JSON."""
    return {"format": FORMAT, "version": VERSION, "features": list(map(_entry, features))}


def _entry(feature: Feature) -> dict[str, Any]:
    return {field: _plain(getattr(feature, field)) for field in _FIELDS}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return None
    return list(value) if isinstance(value, tuple) else value


def features_from_json(text_or_path: str | Path) -> list[Feature]:
    """Read features from text (that starts with a bracket) or from a file.

    Raises
    ------
    UnreadableFileError
        No such file, or no JSON in it.
    InvalidValueError
        JSON that is not of this format and version; the message says where.
    """
    source, document = json_document(_WHO, text_or_path)
    return features_in(document, source)


def features_in(document: Any, source: str) -> list[Feature]:
    """Return the features of a document that :func:`features_document` made; errors name its source.

    Raises
    ------
    InvalidValueError
        A document of another format, version or shape.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidValueError(
            _WHO, f'"format": "{FORMAT}"', f"{source} is something else", "Use FeatureSpace.to_json."
        )
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InvalidValueError(
            _WHO,
            f"version {VERSION}",
            f"the version of {source} is {version!r}",
            "Read it with the ceopt that wrote it.",
        )
    listed = document.get("features")
    if not isinstance(listed, list) or not listed:
        raise InvalidValueError(_WHO, "a list of features", f"features is {listed!r}", "Correct it.")
    unknown = sorted(set(document) - {"format", "version", "features"})
    if unknown:
        raise InvalidValueError(
            _WHO, "format, version and features only", f"there is also {unknown[0]!r}", "Remove it."
        )
    return [_feature(place, entry) for place, entry in enumerate(listed)]


def _feature(place: int, entry: Any) -> Feature:
    where = f"features[{place}]"
    if not isinstance(entry, dict):
        raise InvalidValueError(_WHO, f"an object at {where}", f"it is {entry!r}", "Correct it.")
    for field in _FIELDS:
        if field not in entry and field not in _LATER:
            raise InvalidValueError(_WHO, f"{field!r} in {where}", "it is missing", "Add it; null if there is none.")
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        raise InvalidValueError(_WHO, f"known fields in {where}", f"there is also {unknown[0]!r}", "Remove it.")
    values: dict[str, Any] = {**_LATER, **entry}
    for field in ("dtype", "guess"):
        if not isinstance(values[field], str) and not (field == "dtype" and values[field] is None):
            raise InvalidValueError(_WHO, f"text as {field!r} in {where}", f"it is {values[field]!r}", "Correct it.")
    for field, infinite in (("lower", -math.inf), ("upper", math.inf)):
        values[field] = infinite if values[field] is None else values[field]
    for field in ("levels", "categories", "codes", "weight"):
        value = values[field]
        if isinstance(value, list | tuple):
            values[field] = tuple(value)
        elif field in {"levels", "codes"} or (field == "categories" and value is not None):
            raise InvalidValueError(_WHO, f"a list as {field!r} in {where}", f"it is {value!r}", "Correct it.")
    try:
        return Feature(values.pop("name"), **values)
    except CeoptError as error:
        raise InvalidValueError(f"{_WHO} cannot use {where}: {error}") from error
