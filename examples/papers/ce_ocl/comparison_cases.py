"""Protocol of the comparison in CE-OCL: data, columns and people."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

import ceopt

__all__ = ["DATA_SETS", "SEED", "Case", "encoded", "load", "loans"]

DATA_SETS = ("adult_binary", "compas", "heloc_imputed", "gmsc")
#: What nobody can change, and what the paper takes as a feature although the file says it is none.
FIXED: Mapping[str, tuple[str, ...]] = {
    "adult_binary": ("age", "sex"),
    "compas": ("age", "race", "sex"),
    "gmsc": ("age",),
}
ADDED: Mapping[str, tuple[str, ...]] = {"adult_binary": ("fnlwgt",), "compas": ("two_year_recid",)}
LEFT_OUT: Mapping[str, tuple[str, ...]] = {"compas": ("juv_fel_count", "juv_misd_count", "juv_other_count")}
SEED = 1


# ---- data ------------------------------------------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A data set as the paper has it: all numbers continuous, all categories of two levels, target 1.

    Parameters
    ----------
    name
        Of the data set.
    space
        Columns with the range of the whole data, which scales them to [0, 1]; who cannot change is fixed.
    data, labels
        All rows.
    train
        Which of them models are fitted on.
    people
        Those who are explained.
    encoder
        Scales numbers to [0, 1] by the whole data; a category of two levels becomes one column.
    """

    name: str
    space: ceopt.FeatureSpace
    data: pd.DataFrame
    labels: pd.Series[int]
    train: NDArray[np.bool_]
    people: pd.DataFrame
    encoder: ColumnTransformer

    @property
    def numbers(self) -> list[str]:
        """Columns that are numbers."""
        return [feature.name for feature in self.space if not feature.is_finite]

    @property
    def words(self) -> list[str]:
        """Columns that are categories."""
        return [feature.name for feature in self.space if feature.is_finite]

    @property
    def hull_rows(self) -> pd.DataFrame:
        """People with the label wanted, of ``gmsc`` the first 20,000 as in the released code."""
        return self.data[self.labels == 1].head(20_000 if self.name == "gmsc" else len(self.data))

    @property
    def fixed(self) -> list[str]:
        """Columns that nobody can change."""
        return [feature.name for feature in self.space if not feature.mutable]


def load(name: str) -> Case:
    """Return a data set of the paper, from the folder that ``CEOPT_DATA`` names, with its split and its 30 people.

    Of ``gmsc`` there is no training part: its rows are split again, the 30 people among those of the test part.
    """
    bunch = ceopt.datasets.load(name)
    added, left_out = list(ADDED.get(name, ())), list(LEFT_OUT.get(name, ()))
    data = bunch.data.drop(columns=left_out).join(bunch.extra[added])
    if name == "compas":
        data["race"] = data["race"].where(data["race"] == "African-American", "Other")
    if bunch.factual is None:
        raise ValueError(f"{name} has no people that the paper explains.")
    if bunch.split is None:
        rest = data.index[~bunch.factual]
        train = data.index.isin(train_test_split(rest, test_size=0.25, random_state=SEED)[0])
    else:
        train = (bunch.split == "train").to_numpy()
    whole = pd.DataFrame(_whole(name), index=[-2, -1]) if name == "gmsc" else data.iloc[:0]
    labels, fixed = (bunch.target == bunch.favourable).astype(int), FIXED.get(name, ())
    return _case(name, data=data, labels=labels, train=train, factual=bunch.factual, fixed=fixed, whole=whole)


def loans(people: int = 5) -> Case:
    """Return loans that ceopt makes up, for a run without data."""
    bunch = ceopt.datasets.loans()
    numbers = bunch.data.select_dtypes("number")
    words = [name for name in bunch.data if name not in numbers and bunch.data[name].nunique() == 2]
    data = numbers.join(bunch.data[words])
    labels = (bunch.target == bunch.favourable).astype(int)
    train = np.arange(len(data)) < 0.75 * len(data)
    factual = pd.Series(False, index=data.index)
    factual[data.index[~train & (labels == 0).to_numpy()][:people]] = True
    fixed, whole = ("age", "sex"), data.iloc[:0]
    return _case("loans", data=data, labels=labels, train=train, factual=factual, fixed=fixed, whole=whole)


def _case(
    name: str,
    *,
    data: pd.DataFrame,
    labels: pd.Series[int],
    train: NDArray[np.bool_],
    factual: pd.Series[bool],
    fixed: tuple[str, ...],
    whole: pd.DataFrame,
) -> Case:
    numbers = [str(column) for column in data if pd.api.types.is_numeric_dtype(data[column])]
    words = sorted({str(column) for column in data} - set(numbers))
    data = data[[*numbers, *words]].astype(dict.fromkeys(numbers, float))
    seen = pd.concat([data, whole.astype(float)]) if len(whole) else data
    moves = dict.fromkeys(seen, "any") | dict.fromkeys(fixed, "fixed")  # as there, whatever a column's name says
    space = ceopt.FeatureSpace.infer(seen, continuous=numbers, binary=words, moves=moves)
    encoder = ColumnTransformer(
        [("number", MinMaxScaler(), numbers), ("word", OneHotEncoder(drop="if_binary", sparse_output=False), words)]
    ).fit(seen)
    return Case(name, space, data, labels, train, data[factual.to_numpy()], encoder)


def _whole(name: str) -> dict[str, list[float]]:
    """Return the bounds of the whole of a data set of which the folder has a part."""
    path = Path(os.environ.get("CEOPT_DATA", "")) / "schema.json"
    entry = json.loads(path.read_text(encoding="utf-8"))["datasets"][name]
    bounds: dict[str, list[float]] = entry["scaling_upper_of_full_set"]
    return bounds


def encoded(case: Case, rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return rows as the estimator sees them, by plain numpy instead of the pipeline."""
    scaler, levels = case.encoder.named_transformers_["number"], case.encoder.named_transformers_.get("word")
    numbers: NDArray[np.float64] = rows[case.numbers].to_numpy(dtype=float) * scaler.scale_ + scaler.min_
    if not case.words:
        return numbers
    second = [names[1] for names in levels.categories_]
    return np.hstack(
        [numbers, (rows[case.words].to_numpy(dtype=object) == np.array(second, dtype=object)).astype(float)]
    )
