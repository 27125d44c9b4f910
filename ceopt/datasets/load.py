"""Real data sets, read from a folder of the user's: none is shipped, as not every licence would allow it."""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ceopt.datasets.bunch import Bunch
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import scaled_by
from ceopt.solvers.errors import UnknownNameError, UnreadableFileError

__all__ = ["SOURCES", "Source", "load"]


class Source(NamedTuple):
    """Origin of a data set, as people know it."""

    title: str
    holder: str
    licence: str


_UCI = "the UCI Machine Learning Repository"
_CC = "CC BY 4.0"
_SBA = "the U.S. Small Business Administration (M. Li, A. Mickel & S. Taylor, Journal of Statistics Education, 2018)"
_PUBLIC = "U.S. government data, public"
_FICO = "the FICO Explainable Machine Learning Challenge (2018)"
_FICO_TERMS = "terms of the FICO challenge"
_GMSC = "the Kaggle competition Give Me Some Credit (2011)"
_CARLA = "in the variant of the CARLA recourse library"

SOURCES: dict[str, Source] = {
    "german": Source("Statlog (German Credit Data)", _UCI, _CC),
    "sba": Source("Should this loan be approved or denied, Californian case", _SBA, _PUBLIC),
    "sba_large": Source("Should this loan be approved or denied, national file, 60,000 loans sampled", _SBA, _PUBLIC),
    "student": Source("Student Performance, Portuguese course", _UCI, _CC),
    "adult": Source("Adult (Census Income)", _UCI, _CC),
    "adult_binary": Source(f"Adult (Census Income), {_CARLA}", _UCI, _CC),
    "compas": Source("COMPAS recidivism scores, two-year file", "ProPublica", "none stated (public records)"),
    "heloc": Source("Home Equity Line of Credit", _FICO, _FICO_TERMS),
    "heloc_imputed": Source(f"Home Equity Line of Credit, {_CARLA}", _FICO, _FICO_TERMS),
    "gmsc": Source(f"Give Me Some Credit, test rows {_CARLA}", _GMSC, "competition data, none stated"),
    "gmsc_raw": Source("Give Me Some Credit, first 9,999 training rows", _GMSC, "competition data, none stated"),
    "credit": Source(f"Give Me Some Credit, test rows {_CARLA}", _GMSC, "competition data, none stated"),
    "diabetes": Source(
        "Pima Indians Diabetes", "the National Institute of Diabetes and Digestive and Kidney Diseases", "CC0 as usual"
    ),
    "no2": Source("NO2 at Alnabru, Oslo, binarised by OpenML", "StatLib (M. Aldrin)", "none stated"),
    "spambase": Source("Spambase", _UCI, _CC),
    "news": Source("Online News Popularity, January to July 2013", _UCI, _CC),
    "heart": Source("Statlog (Heart)", _UCI, _CC),
}


_VARIABLE = "CEOPT_DATA"


def load(name: str) -> Bunch:
    """Read a real data set from the folder that the environment variable ``CEOPT_DATA`` names.

    The folder holds ``schema.json``, which describes columns, labels and checksums, and the files it lists. A file is
    read only if its checksum is right. Empty cells stay missing.

    Parameters
    ----------
    name
        ``"german"``, ``"sba"``, ``"sba_large"``, ``"student"``, ``"adult"``, ``"adult_binary"``, ``"compas"``,
        ``"heloc"``, ``"heloc_imputed"``, ``"gmsc"``, ``"gmsc_raw"``, ``"credit"``, ``"diabetes"``, ``"no2"``,
        ``"spambase"``, ``"news"``, ``"heart"``, or what else the schema lists.

    Returns
    -------
    Bunch
        ``data`` has the features; leaks of the label, groups and times are in ``extra``. ``space`` has kinds, levels,
        what is fixed and what only grows from the schema, bounds (inferred) and scales from the data. Numbers that the
        schema calls codes (-9 for "no record") are the space's codes, and the least and greatest amounts are bounds
        that hold: no answer becomes a code, and where a person stands on one the column stays, with a warning. Codes
        count for no scale.

    Raises
    ------
    UnknownNameError
        No such data set.
    UnreadableFileError
        No folder, no file, or a file that is truncated or altered.
    """
    folder = os.environ.get(_VARIABLE)
    schema = _schema(name, folder)
    entries = schema["datasets"]
    if not isinstance(name, str) or name not in entries:
        raise UnknownNameError.among("load", "data set", name, entries)
    entry = entries[name]
    if "alias_of" in entry:
        entry = entries[entry["alias_of"]] | {"note": entry.get("note", "")}
    path = Path(str(folder)) / entry["file"]
    content = _content(name, path, schema["files"][entry["file"]])
    described = entry["features"]
    table = _table(path, content, described)
    label = entry["label"]
    source = _source(name)
    features = [column for column in described if "role" not in column]
    data = table[[column["name"] for column in features]]
    split = entry.get("split_column")
    factual = entry.get("factual_column")
    kept = {label, split, factual, *data.columns}
    return Bunch(
        name=name,
        data=data,
        target=table[label],
        space=_space(data, features),
        favourable=entry["favourable"],
        description=_description(source, entry),
        source=f"{source.title}; {source.holder}",
        licence=source.licence,
        split=table[split] if split else None,
        factual=table[factual].astype(bool) if factual else None,
        extra=table[[column for column in table.columns if column not in kept]],
    )


def _source(name: str) -> Source:
    return SOURCES.get(name, Source(name, "its publisher", "see its publisher"))


def _missing(name: str, needs: str, but: str) -> UnreadableFileError:
    source = _source(name)
    return UnreadableFileError(
        f"load({name!r})",
        needs,
        but,
        f"Set {_VARIABLE} to the folder that holds schema.json and the data; this one is {source.title}, from "
        f"{source.holder}.",
    )


def _schema(name: str, folder: str | None) -> dict[str, Any]:
    path = Path(folder) / "schema.json" if folder else None
    if path is None or not path.is_file():
        if not isinstance(name, str) or name not in SOURCES:
            raise UnknownNameError.among("load", "data set", name, SOURCES)
        raise _missing(name, "a folder of data", f"{_VARIABLE} is {folder!r}, where there is no schema.json")
    try:
        schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        complete = isinstance(schema["files"], dict) and isinstance(schema["datasets"], dict)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _missing(name, "a readable schema.json", f"{str(path)!r} is not one ({error!r})") from error
    if not complete:
        raise _missing(name, "a readable schema.json", f"{str(path)!r} lists no files or data sets")
    return schema


def _content(name: str, path: Path, expected: dict[str, Any]) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _missing(name, "its file", f"{str(path)!r} cannot be read ({error.strerror})") from error
    if len(content) != expected["bytes"]:
        raise _missing(name, f"all {expected['bytes']} bytes of its file", f"{str(path)!r} has {len(content)}")
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise _missing(name, "its file unaltered", f"the sha256 of {str(path)!r} is not that of schema.json")
    return content


def _table(path: Path, content: bytes, described: list[dict[str, Any]]) -> pd.DataFrame:
    """Read the file; a level such as "0" or "NA" in a column of text stays text, only an empty cell is missing."""
    texts: dict[Any, type] = {}
    for column in described:
        if any(isinstance(level, str) for level in column.get("levels", ())):
            texts[column["name"]] = str
    return pd.read_csv(
        io.BytesIO(content),
        compression="gzip" if path.suffix == ".gz" else None,
        dtype=texts,
        keep_default_na=False,
        na_values=[""],
        low_memory=False,
    )


def _space(data: pd.DataFrame, described: list[dict[str, Any]]) -> FeatureSpace:
    kinds: dict[str, Any] = {"continuous": [], "integer": [], "categorical": [], "binary": [], "ordinal": {}}
    for column in described:
        if column["kind"] == "ordinal":
            kinds["ordinal"][column["name"]] = column["levels"]
        else:
            kinds[column["kind"]].append(column["name"])
    drawn = FeatureSpace(infer_features(data, **kinds, steps=False))
    return FeatureSpace(_feature(drawn[column["name"]], column, data) for column in described)


def _feature(feature: Feature, column: dict[str, Any], data: pd.DataFrame) -> Feature:
    """Return a column as the schema has it; what is a code bounds the amounts, and who stands on one is no error."""
    amounts: dict[str, Any] = {"codes": tuple(int(code) for code in column.get("codes", ()))}
    for word in ("lower", "upper"):
        if f"amount_{word}" in column:
            amounts |= {word: column[f"amount_{word}"], f"{word}_inferred": False}
    found = replace(
        feature,
        **amounts,
        levels=tuple(column["levels"]) if feature.is_finite else (),
        mutable=not column.get("immutable", False),
        direction=column.get("monotone", "any"),
        guess=f"{feature.kind} by schema.json",
    )
    if not found.codes:
        return found
    return scaled_by(found, data[found.name])


def _description(source: Source, entry: dict[str, Any]) -> str:
    notes = [entry[key] for key in ("note", "favourable_note") if entry.get(key)]
    zero = entry.get("zero_means_missing")
    notes += [f"Zero means missing in {', '.join(zero)}."] if zero else []
    notes += [f"{value}: {meaning}." for value, meaning in entry.get("special_values", {}).items()]
    return " ".join([f"{source.title}, from {source.holder}. Label {entry['label']}.", *notes])
