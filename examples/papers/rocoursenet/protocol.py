"""Data in parts, one for each year, version or school, under two protocols, and the hyperparameters of each data set.

"paper" has the columns and kinds of the released code, and nothing is fixed. "honest" has the same columns with what
people can change of them. A quarter of each part is for testing, drawn by the seed: the corrected German file is sorted
by its label, so that its last quarter is of one class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from shared.shifted_data import halves, has_data

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.surrogates.scaled_columns import ScaledFrame

__all__ = ["DATA_SETS", "PROTOCOLS", "SETTINGS", "Case", "Part", "has_data", "load"]

PROTOCOLS = ("honest", "paper")
DATA_SETS = ("german", "student", "loan")
#: Share of the rows of each part that no network is trained on.
TESTED = 0.25
#: Number columns and columns of levels, as the paper has them.
COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "german": (
        ("duration", "amount", "installment_rate", "age", "number_credits", "people_liable"),
        ("present_residence", "status", "credit_history"),
    ),
    "student": (
        ("failures", "age"),
        (
            *("G2", "G1", "higher", "goout", "Mjob", "Fjob", "health", "freetime", "absences", "Walc", "famrel"),
            *("Medu", "Fedu"),
        ),
    ),
    "loan": (
        ("NoEmp", "NewExist", "CreateJob", "RetainedJob", "DisbursementGross", "GrAppv", "SBA_Appv"),
        ("State", "TermYears", "UrbanRural", "LowDoc", "Sector_Points"),
    ),
}
#: Columns of dollars, of which the released data have logarithms.
DOLLARS = ("DisbursementGross", "GrAppv", "SBA_Appv")
#: A student is favoured from this final grade on, as in the released code.
GRADE = 14
#: Grades as letters in the released code: F up to 9, D to 11, C to 13, B to 15, A.
LETTERS = ((9, "F"), (11, "D"), (13, "C"), (15, "B"), (20, "A"))
#: What RoCourseNet's attacker has of its own on a data set, chosen on seeds that no table has.
ATTACKERS: Mapping[str, Mapping[str, Any]] = {
    "german": {"inner_rate": 0.1},
    "student": {"inner_rate": 1.0, "attacked": "head"},
    "loan": {"inner_rate": 0.1, "perturbation": 0.03},
}
#: Epochs of both networks, those of the two releases. Half of a hundred are too few for the German generators.
EPOCHS: Mapping[str, int] = {"german": 100, "student": 100, "loan": 50}
#: What both networks are trained with. Units, rates and batches are the released ones, but for the units of Student's
#: generator.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "german": {
        "encoder": (100, 50),
        "predictor": (20,),
        "generator": (20,),
        "learning_rate": 3e-3,
        "batch_size": 256,
        "weights": (1.0, 5.0, 0.1),
    },
    "student": {
        "encoder": (50, 10),
        "predictor": (10,),
        "generator": (50, 50),
        "learning_rate": 1e-2,
        "batch_size": 128,
        "weights": (1.0, 1.0, 0.1),
    },
    "loan": {
        "encoder": (50, 10),
        "predictor": (10,),
        "generator": (50, 50),
        "learning_rate": 3e-3,
        "batch_size": 128,
        "weights": (1.0, 0.2, 0.1),
    },
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One of the data sets between which the data shift.

    Parameters
    ----------
    name
        A year, a version, a school.
    X, y
        Raw rows (n, d) and labels (n,), 1 being favourable.
    """

    name: str
    X: pd.DataFrame
    y: NDArray[np.int64]

    def split(self, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows to train on and those to test on."""
        order = np.random.default_rng([seed, len(self.X)]).permutation(len(self.X))
        count = round(TESTED * len(order))
        return order[:-count], order[-count:]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A data set under a protocol.

    Parameters
    ----------
    name, protocol
        Of the data set.
    space
        The columns, and how people can change them.
    parts
        What one model each is trained on.
    columns
        The unit cube in which proximity is measured, the same one for all models.
    settings, attacker
        Of both networks, and of RoCourseNet's attacker.
    epochs
        Of training.
    """

    name: str
    protocol: str
    space: FeatureSpace
    parts: tuple[Part, ...]
    columns: ScaledFrame
    settings: Mapping[str, Any]
    attacker: Mapping[str, Any]
    epochs: int

    def years(self, count: int) -> list[Part]:
        """Return so many parts, spread evenly from the first to the last; all where there are no more."""
        places = np.unique(np.linspace(0, len(self.parts) - 1, count).round().astype(int))
        return [self.parts[place] for place in places]

    def within(self, count: int) -> list[Part]:
        """Return so many parts, each in the middle of a stretch of the same length; all where there are no more."""
        if count >= len(self.parts):
            return list(self.parts)
        ends = np.linspace(0, len(self.parts) - 1, 2 * count + 1).round().astype(int)
        return [self.parts[place] for place in ends[1::2]]

    def distances(self, X: pd.DataFrame, advice: pd.DataFrame) -> NDArray[np.float64]:
        """Return how far each row's advice is in each column (n, p): numbers by their range, 2 for another level."""
        return np.asarray(np.abs(self.columns.encode(advice) - self.columns.encode(X)))


@cache
def load(name: str, protocol: str) -> Case:
    """Return a data set under a protocol; real ones come from the folder that ``CEOPT_DATA`` names."""
    space, parts = _LOADERS[name](protocol)
    columns = ScaledFrame.of("the study", space, pd.concat([part.X for part in parts]))
    known = name if name in SETTINGS else "student"
    return Case(name, protocol, space, parts, columns, SETTINGS[known], ATTACKERS[known], EPOCHS[known])


def _german(protocol: str) -> tuple[FeatureSpace, tuple[Part, ...]]:
    return _of_halves("german", ("original", "corrected"), protocol)


def _student(protocol: str) -> tuple[FeatureSpace, tuple[Part, ...]]:
    return _of_halves("student", ("GP", "MS"), protocol)


def _of_halves(name: str, names: tuple[str, str], protocol: str) -> tuple[FeatureSpace, tuple[Part, ...]]:
    frames = dict(zip(names, halves(name), strict=True))
    labels = {}
    for part, frame in frames.items():
        labels[part] = frame["label"].to_numpy()
        if name == "student":
            labels[part] = (frame["G3"].to_numpy() >= GRADE).astype(int)
    return _case(name, protocol, ceopt.datasets.load(name).space, frames, labels)


def _loan(protocol: str) -> tuple[FeatureSpace, tuple[Part, ...]]:
    bunch = ceopt.datasets.load("sba_large")
    data = bunch.data.assign(**{column: np.log(bunch.data[column]) for column in DOLLARS})
    space = bunch.space
    inferred = FeatureSpace.infer(data[[*DOLLARS]], continuous=DOLLARS)
    space = FeatureSpace([inferred[name] if name in DOLLARS else space[name] for name in space.names])
    frames = {}
    labels = {}
    for year in np.unique(bunch.extra["ApprovalFY"]).tolist():
        rows = (bunch.extra["ApprovalFY"] == year).to_numpy()
        frames[str(year)] = data[rows]
        labels[str(year)] = bunch.target[rows].to_numpy()
    return _case("loan", protocol, space, frames, labels)


def _case(
    name: str,
    protocol: str,
    space: FeatureSpace,
    frames: Mapping[str, pd.DataFrame],
    labels: Mapping[str, NDArray[Any]],
) -> tuple[FeatureSpace, tuple[Part, ...]]:
    """Return the columns of the paper, as people can change them or as the released code reads them."""
    numbers, levels = COLUMNS[name]
    wanted = [*numbers, *levels]
    tables = {part: frame[wanted].reset_index(drop=True) for part, frame in frames.items()}
    everything = pd.concat(tables.values())
    chosen = FeatureSpace([_with_kind(space[column], numbers, everything[column]) for column in wanted])
    if protocol == "paper":
        tables = {part: _as_released(table, levels) for part, table in tables.items()}
        everything = pd.concat(tables.values())
        several = [column for column in levels if everything[column].nunique() > 2]
        moves = dict.fromkeys(everything, "any")  # as there, whatever a column's name says
        chosen = FeatureSpace.infer(everything, categorical=several, continuous=numbers, moves=moves)
    return chosen, tuple(Part(part, table, labels[part]) for part, table in tables.items())


def _with_kind(feature: Feature, numbers: tuple[str, ...], values: pd.Series) -> Feature:
    """Return a column that the paper reads as a number as one, with the direction in which people can change it."""
    if feature.name not in numbers or not feature.is_finite:
        return feature
    return Feature(
        feature.name,
        kind="integer",
        lower=float(values.min()),
        upper=float(values.max()),
        mutable=feature.mutable,
        direction=feature.direction,
    )


def _as_released(table: pd.DataFrame, levels: tuple[str, ...]) -> pd.DataFrame:
    """Return a table whose columns of levels are words and whose other columns are numbers."""
    found = table.astype({column: float for column in table if column not in levels})
    for column in levels:
        if column in {"G1", "G2"}:
            found[column] = [_letter(grade) for grade in table[column]]
        else:
            found[column] = table[column].astype(str)
    return found


def _letter(grade: float) -> str:
    return next(letter for greatest, letter in LETTERS if grade <= greatest)


def _made_up(protocol: str) -> tuple[FeatureSpace, tuple[Part, ...]]:
    """Return loans that ceopt makes up, in two parts, for where there are no data."""
    del protocol
    bunch = ceopt.datasets.loans(n=240, random_state=0)
    y = (bunch.target == bunch.favourable).to_numpy().astype(int)
    parts = []
    for number, rows in enumerate(np.array_split(np.arange(len(y)), 2)):
        parts.append(Part(f"half {number + 1}", bunch.data.iloc[rows].reset_index(drop=True), y[rows]))
    return bunch.space, tuple(parts)


_LOADERS = {"german": _german, "student": _student, "loan": _loan, "loans": _made_up}
