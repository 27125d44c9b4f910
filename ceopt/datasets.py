"""Data to try things on: a loan book drawn from a known causal model, and real data sets read from a folder."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd

from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.feature import Kind
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import scaled_by
from ceopt.solvers.checks import check_arguments, whole_from
from ceopt.solvers.errors import UnknownNameError, UnreadableFileError, printable

__all__ = ["Bunch", "StructuralEquation", "load", "loans"]

# ==== A data set ======================================================================================================


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StructuralEquation:
    r"""One linear equation of a causal model with additive noise.

    .. math:: x = c + \sum_p a_p x_p + U, \qquad E[U] = 0, \quad \mathrm{sd}(U) = \sigma.

    Parents enter by coordinate: numbers as they are, an ordinal by its rank from 0, a bool as 0 or 1. It stands for a
    :class:`ceopt.LinearEquation` wherever one is wanted: ``Causal(loans().equations)``.

    Parameters
    ----------
    parents
        Name of each parent -> its coefficient :math:`a_p`.
    intercept
        The constant :math:`c`, in the unit of the column.
    noise_scale
        Standard deviation :math:`\sigma` of the noise before rounding, in the unit of the column.
    """

    parents: Mapping[str, float]
    intercept: float
    noise_scale: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bunch:
    """A data set.

    Parameters
    ----------
    name
        By which it is asked for.
    data
        The features in raw units, shape (n, d); nothing that defines the label or is known only after it.
    target
        One label per row; its name is that of the label's column.
    space
        What each feature is and how it may move.
    favourable
        The label that people want.
    description, source, licence
        Where the rows come from, and on what terms.
    equations, graph
        The causal model, of the columns that have an equation: column -> equation, column -> its parents.
    split
        The published part ("train", "test") of each row, where there is one.
    factual
        Which rows a paper explains, where that is known.
    extra
        The columns of the file that are neither feature nor label: time, groups, leaks of the label.
    """

    name: str
    data: pd.DataFrame
    target: pd.Series[Any]
    space: FeatureSpace
    favourable: Any
    description: str
    source: str = ""
    licence: str = ""
    equations: Mapping[str, StructuralEquation] = field(default_factory=dict)
    graph: Mapping[str, list[str]] = field(default_factory=dict)
    split: pd.Series[Any] | None = None
    factual: pd.Series[bool] | None = None
    extra: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def frame(self) -> pd.DataFrame:
        """Features and label side by side, shape (n, d + 1)."""
        return self.data.assign(**{str(self.target.name): self.target})

    def __repr__(self) -> str:
        n, d = self.data.shape
        share = float((self.target == self.favourable).mean())
        favoured = f"{self.target.name} is {self.favourable!r}"
        return printable(f"<{self.name}: {n} rows, {d} features, {favoured} in {share:.1%}>")


# ==== Real data sets, read from a folder of the user's ================================================================


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
        schema calls codes (-9 for "no record") are the space's codes, with what they mean, and the least and greatest
        amounts are bounds that hold: no answer becomes a code, and who stands on one may stay or become an amount.
        Codes count for no scale. A column with empty cells may be missing.

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
        space=_described_space(data, features),
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


def _described_space(data: pd.DataFrame, described: list[dict[str, Any]]) -> FeatureSpace:
    kinds: dict[str, Any] = {"continuous": [], "integer": [], "categorical": [], "binary": [], "ordinal": {}}
    for column in described:
        if column["kind"] == "ordinal":
            kinds["ordinal"][column["name"]] = column["levels"]
        else:
            kinds[column["kind"]].append(column["name"])
    drawn = FeatureSpace(infer_features(data, **kinds, steps=False))
    return FeatureSpace(_feature(drawn[column["name"]], column, data) for column in described)


def _feature(feature: Feature, column: dict[str, Any], data: pd.DataFrame) -> Feature:
    """Return a column's feature by the schema; its codes bound the amounts."""
    amounts: dict[str, Any] = {"codes": {int(code): meaning for code, meaning in column.get("codes", {}).items()}}
    for word in ("lower", "upper"):
        if f"amount_{word}" in column:
            amounts |= {word: column[f"amount_{word}"], f"{word}_inferred": False}
    described = replace(
        feature,
        **amounts,
        levels=tuple(column["levels"]) if feature.is_finite else (),
        mutable=not column.get("immutable", False),
        direction=column.get("monotone", "any"),
        guess=f"{feature.kind} by schema.json",
    )
    if not described.codes:
        return described
    return scaled_by(described, data[described.name])


def _description(source: Source, entry: dict[str, Any]) -> str:
    notes = [entry[key] for key in ("note", "favourable_note") if entry.get(key)]
    zero = entry.get("zero_means_missing")
    if zero:
        notes.append(f"Zero means missing in {', '.join(zero)}.")
    notes += [f"{value}: {meaning}." for value, meaning in entry.get("special_values", {}).items()]
    return " ".join([f"{source.title}, from {source.holder}. Label {entry['label']}.", *notes])


# ==== A loan book drawn from a known causal model =====================================================================

_EDUCATION = ("primary", "secondary", "bachelor", "master")
_EMPLOYMENT = {"permanent": 0.4, "public": 0.6, "self-employed": -0.2, "temporary": -0.5}  # points in the score
_SEXES = ("female", "male")
_REGIONS = ("centre", "east", "north", "south", "west")

_EQUATIONS = {
    "years_employed": StructuralEquation(parents={"age": 0.3}, intercept=-3.8, noise_scale=1.0),
    "income": StructuralEquation(
        parents={"age": 120.0, "education": 8_500.0, "years_employed": 600.0}, intercept=11_000.0, noise_scale=4_500.0
    ),
    "savings": StructuralEquation(parents={"age": 150.0, "income": 0.4}, intercept=4_000.0, noise_scale=3_500.0),
    "loan_amount": StructuralEquation(parents={"income": 0.25}, intercept=7_000.0, noise_scale=3_000.0),
    "duration": StructuralEquation(parents={"loan_amount": 0.0012}, intercept=18.0, noise_scale=5.0),
}
_CHECKS = {"n": whole_from(1), "random_state": whole_from(0)}
_ROUNDED_TO = {"years_employed": 0.1, "income": 100, "savings": 100, "loan_amount": 100, "duration": 1}


def loans(n: int = 2000, random_state: int = 0) -> Bunch:
    r"""Draw loan applications from a structural causal model, decided by a noisy score that rejects about 30 %.

    Without parents: ``sex`` (two, fair), ``region`` (five, uniform), ``age`` (whole years, :math:`21 + 47 B` rounded
    down with :math:`B \sim` Beta(1.6, 2.4)), ``education`` (rank 0 to 3 with probability 0.15, 0.45, 0.28, 0.12),
    ``employment`` (permanent 0.5, public 0.2, self-employed 0.12, temporary 0.18), ``has_guarantor`` (true with
    probability 0.2) and ``open_loans`` (0 to 4, Binomial(4, 0.25)). All others have an equation,

    .. math::
        \text{years\_employed} &= -3.8 + 0.3\,\text{age} + 1.0\,U_1 \\
        \text{income} &= 11000 + 120\,\text{age} + 8500\,\text{education} + 600\,\text{years\_employed} + 4500\,U_2 \\
        \text{savings} &= 4000 + 150\,\text{age} + 0.4\,\text{income} + 3500\,U_3 \\
        \text{loan\_amount} &= 7000 + 0.25\,\text{income} + 3000\,U_4 \\
        \text{duration} &= 18 + 0.0012\,\text{loan\_amount} + 5\,U_5

    with independent noise, triangular on :math:`[-\sqrt 6, \sqrt 6]` (mean 0, standard deviation 1, bounded, so that
    nothing needs to be cut off at zero). Each is rounded as soon as it is drawn, and its children see the rounded
    value: years to 0.1, the three amounts to 100 dollars, the duration to whole months. Rounding is thereby part of the
    noise: every row fulfils the equations exactly with a noise that is off the drawn one by at most half a unit.

    The decision is ``"good"`` where

    .. math::
        0.5 + \frac{0.6\,\text{income} + 0.5\,\text{savings} - 1.6\,\text{loan\_amount}}{10000}
        + 0.04\,\text{years\_employed} - 0.02\,\text{duration} - 0.5\,\text{open\_loans}
        + 0.9\,\text{has\_guarantor} + e(\text{employment}) + 0.4\,V > 0,

    :math:`e` = 0.4, 0.6, -0.2, -0.5 for permanent, public, self-employed and temporary, V standard logistic. Neither
    sex nor region nor education nor age enters it directly.

    Parameters
    ----------
    n
        Applications, at least 1.
    random_state
        Seed; the same seed gives the same rows, and a smaller ``n`` other rows than the first of a larger one.

    Returns
    -------
    Bunch
        ``data`` (n, 12), ``target`` ("good", "bad"; named "decision"), ``frame`` (both), ``space`` (sex and region
        fixed; age, education and years employed only up; income, savings and loan in steps of 100 dollars),
        ``equations`` and ``graph`` (of the five columns that have parents).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        ``n`` is no whole number or less than 1, or the seed is none.

    Examples
    --------
    >>> book = loans(n=500)
    >>> book.data.shape, book.space["education"].levels
    ((500, 12), ('primary', 'secondary', 'bachelor', 'master'))
    """
    check_arguments("loans", _CHECKS, locals())
    rng = np.random.default_rng(random_state)
    columns: dict[str, Any] = {
        "sex": np.array(_SEXES)[rng.integers(0, 2, n)],
        "region": np.array(_REGIONS)[rng.integers(0, len(_REGIONS), n)],
        "age": np.floor(21 + 47 * rng.beta(1.6, 2.4, n)),
        "education": rng.choice(4, n, p=(0.15, 0.45, 0.28, 0.12)).astype(np.float64),
        "employment": rng.choice(list(_EMPLOYMENT), n, p=(0.5, 0.2, 0.12, 0.18)),
    }
    for name, equation in _EQUATIONS.items():
        drawn = equation.intercept + equation.noise_scale * rng.triangular(-math.sqrt(6), 0.0, math.sqrt(6), n)
        for parent, coefficient in equation.parents.items():
            drawn = drawn + coefficient * columns[parent]
        unit = _ROUNDED_TO[name]
        columns[name] = np.round(drawn, 1) if unit == 0.1 else np.round(drawn / unit) * unit
    columns["open_loans"] = rng.binomial(4, 0.25, n)
    columns["has_guarantor"] = rng.random(n) < 0.2
    good = _score(columns) + 0.4 * rng.logistic(size=n) > 0
    columns["education"] = pd.Categorical.from_codes(
        columns["education"].astype(np.int64), dtype=pd.CategoricalDtype(list(_EDUCATION), ordered=True)
    )
    columns["employment"] = pd.Categorical(columns["employment"].tolist(), categories=list(_EMPLOYMENT))
    for name in ("sex", "region"):
        columns[name] = columns[name].tolist()
    for name in ("age", "loan_amount", "duration", "open_loans"):
        columns[name] = columns[name].astype(np.int64)
    data = pd.DataFrame(columns)
    return Bunch(
        name="loans",
        data=data,
        target=pd.Series(np.where(good, "good", "bad").tolist(), name="decision"),
        space=_loan_space(data),
        favourable="good",
        description="Loan applications drawn from a known causal model, which help(ceopt.datasets.loans) states.",
        source="ceopt.datasets.loans",
        licence="that of ceopt",
        equations=dict(_EQUATIONS),
        graph={name: list(equation.parents) for name, equation in _EQUATIONS.items()},
    )


def _score(columns: dict[str, Any]) -> Any:
    points = np.array([_EMPLOYMENT[str(kind)] for kind in columns["employment"]])
    money = 0.6 * columns["income"] + 0.5 * columns["savings"] - 1.6 * columns["loan_amount"]
    history = 0.04 * columns["years_employed"] - 0.02 * columns["duration"] - 0.5 * columns["open_loans"]
    return 0.5 + money / 10_000 + history + 0.9 * columns["has_guarantor"] + points


def _loan_space(data: pd.DataFrame) -> FeatureSpace:
    """Describe the columns; levels do not depend on what was drawn, inferred bounds and scales do."""
    levels = {"sex": _SEXES, "region": _REGIONS, "employment": tuple(_EMPLOYMENT)}
    kinds: dict[str, Kind] = {"sex": "binary", "region": "categorical", "employment": "categorical"}
    drawn = infer_features(data, ordinal={"education": _EDUCATION}, categorical=list(levels), steps=False)
    space = FeatureSpace(
        replace(column, kind=kinds[column.name], levels=levels[column.name], guess="")
        if column.name in levels
        else column
        for column in drawn
    )
    return (
        space.update("sex", mutable=False)
        .update("region", mutable=False)
        .update("age", direction="increasing", lower=18, upper=100, unit="years")
        .update("education", direction="increasing")
        .update("years_employed", direction="increasing", lower=0, upper=60, unit="years")
        .update("income", lower=0, step=100, unit="dollars a year")
        .update("savings", lower=0, step=100, unit="dollars")
        .update("loan_amount", lower=500, step=100, unit="dollars")
        .update("duration", lower=6, upper=72, unit="months")
        .update("open_loans", lower=0, unit="loans")
    )
