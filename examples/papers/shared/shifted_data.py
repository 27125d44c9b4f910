"""Present and shifted data of three data sets, with the columns that the papers read and those without their traps.

German is shifted by a correction of its codes, SBA by time, Student by school. "paper": the columns, label and order of
time of the released code; "honest": columns that the shift touches, none that knows the outcome, the loan paid back as
the favourable label, the earlier years as the present.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pandas as pd

import ceopt

__all__ = ["COLUMNS", "SHIFTS", "Columns", "halves", "has_data"]

#: Data set -> what shifts.
SHIFTS: Mapping[str, str] = {"german": "correction", "sba": "temporal", "student": "geospatial"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What one protocol reads of one data set.

    Parameters
    ----------
    numbers, words
        Columns that are scaled to [0, 1], and columns that become one column a level.
    fixed
        Those of them that nobody can change.
    label
        The favourable label.
    is_reversed
        Whether the later half is taken as the present.
    """

    numbers: tuple[str, ...]
    words: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    label: int = 1
    is_reversed: bool = False


_GRADES = ("Medu", "Fedu", "studytime", "freetime", "goout", "health", "absences", "G1", "G2")
_LOAN = ("Term", "NoEmp", "CreateJob", "RetainedJob", "GrAppv", "SBA_Appv", "Portion")
COLUMNS: Mapping[tuple[str, str], Columns] = {
    ("german", "paper"): Columns(numbers=("duration", "amount", "age"), words=("personal_status_sex",)),
    # What the correction touches, beside the numbers.
    ("german", "honest"): Columns(
        numbers=("duration", "amount", "age"),
        words=("status", "credit_history", "savings", "property", "housing"),
        fixed=("age",),
    ),
    # Selected is a flag of the sampling, ChgOffPrinGr known only after the outcome, the favourable label is default.
    ("sba", "paper"): Columns(
        numbers=("Selected", *_LOAN, "ChgOffPrinGr", "New", "RealEstate", "Recession"),
        words=("UrbanRural",),
        label=0,
        is_reversed=True,
    ),
    ("sba", "honest"): Columns(
        numbers=_LOAN, words=("UrbanRural", "New", "RealEstate", "Recession"), fixed=("UrbanRural", "Recession")
    ),
    ("student", "paper"): Columns(numbers=("age", *_GRADES), words=("famsup", "higher", "internet", "romantic")),
    ("student", "honest"): Columns(
        numbers=("age", *_GRADES), words=("famsup", "higher", "internet", "romantic"), fixed=("age", "romantic")
    ),
}


def has_data() -> bool:
    """Whether ``CEOPT_DATA`` names a folder of data."""
    return (Path(os.environ.get("CEOPT_DATA", "")) / "schema.json").is_file()


def halves(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the present and the shifted data of a data set, with a column ``label`` that is 1 for its favourable."""
    bunch = ceopt.datasets.load(name)
    data = bunch.data.join(bunch.extra).assign(label=(bunch.target == bunch.favourable).astype(int))
    if name == "sba":
        early = data["ApprovalFY"] < 2006
        return data[early], data[~early]
    if name == "student":
        first = data["school"] == "GP"
        return data[first], data[~first]
    folder = Path(os.environ["CEOPT_DATA"])
    entry = json.loads((folder / "schema.json").read_text(encoding="utf-8"))["datasets"][name]
    corrected = pd.read_csv(folder / entry["shift"]["shifted"], keep_default_na=False)
    return data, corrected.assign(label=(corrected[entry["label"]] == bunch.favourable).astype(int))
