"""Data as the two protocols have them: "paper", with what the released code did, and "honest", without its traps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from shared.shifted_data import COLUMNS, SHIFTS, Columns, halves, has_data
from sklearn.model_selection import train_test_split

import ceopt

__all__ = ["DATA_SETS", "PROTOCOLS", "SHIFTS", "Case", "has_data", "load", "loans"]

Floats = NDArray[np.float64]

PROTOCOLS = ("honest", "paper")
DATA_SETS = tuple(SHIFTS)
SEED = 1  # of the first split, as in the released script of table 1


@final
@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Present and shifted data as the classifier sees them, the column of its intercept last.

    Parameters
    ----------
    name, protocol
        Of the data set.
    columns
        Names of the d - 1 columns: numbers scaled to [0, 1], then a column a level.
    words, groups
        Categories, and the columns of each.
    fixed
        Columns that nobody can change; the intercept's is always among them.
    X, y
        The present data, (n, d), 1 being favourable.
    train
        Which of them the present model is fitted on.
    later_rows, later_y
        The data of the future.
    """

    name: str
    protocol: str
    columns: tuple[str, ...]
    words: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    fixed: tuple[int, ...]
    X: Floats
    y: NDArray[np.int64]
    train: NDArray[np.bool_]
    later_rows: Floats
    later_y: NDArray[np.int64]

    @property
    def d(self) -> int:
        """Number of columns, the intercept's among them."""
        return self.X.shape[1]

    @property
    def is_released(self) -> bool:
        """Whether everything is done as the released code does it."""
        return self.protocol == "paper"

    def is_possible(self, plan: Floats, factual: Floats) -> NDArray[np.bool_]:
        """Whether each counterfactual is in range, has one level a category and keeps what nobody can change."""
        near = 1e-6
        inside = ((plan >= -near) & (plan <= 1.0 + near)).all(axis=1)
        kept = (np.abs(plan - factual)[:, list(self.fixed)] <= near).all(axis=1)
        one = [(np.sort(plan[:, list(group)], axis=1)[:, -1] >= 1.0 - near) for group in self.groups]
        return np.asarray(np.logical_and.reduce([inside, kept, *one]))

    def inverse_mads(self) -> dict[str, float]:
        """Return dice-ml's weight of each number: one over its median absolute deviation, 1 where that is 0."""
        rows, inside = self.X[self.train], {place for group in self.groups for place in group}
        mads = np.median(np.abs(rows - np.median(rows, axis=0)), axis=0)
        numbers = [(place, name) for place, name in enumerate(self.columns) if place not in inside]
        return {name: round(1.0 / mads[place], 2) if mads[place] > 0.0 else 1.0 for place, name in numbers}

    def people(self, scores: Floats, count: int) -> NDArray[np.intp]:
        """Return who is asked about: rows whose score is below 0, test rows first."""
        rejected = scores < 0.0
        found = np.concatenate([np.flatnonzero(rejected & ~self.train), np.flatnonzero(rejected & self.train)])
        return found[:count]


@cache
def load(name: str, protocol: str, seed: int = 0) -> Case:
    """Return a data set under a protocol, from the folder that ``CEOPT_DATA`` names; ``seed`` is of its split."""
    if name == "loans":
        return loans(protocol, seed)
    wanted = COLUMNS[name, protocol]
    present, shifted = halves(name)
    if wanted.is_reversed:
        present, shifted = shifted, present
    return _case(name, protocol, wanted, (present, shifted), seed)


def loans(protocol: str, seed: int = 0) -> Case:
    """Return loans that ceopt makes up, for a run without data: those of older people are the future."""
    bunch = ceopt.datasets.loans(n=1200)
    data = bunch.data.assign(label=(bunch.target == bunch.favourable).astype(int))
    numbers = [str(name) for name in bunch.data.select_dtypes("number")]
    wanted = Columns(numbers=tuple(numbers), words=("sex",), fixed=("age", "sex"))
    old = data["age"] > data["age"].median()
    return _case("loans", protocol, wanted, (data[~old], data[old]), seed)


def _case(name: str, protocol: str, wanted: Columns, frames: tuple[pd.DataFrame, pd.DataFrame], seed: int) -> Case:
    present, shifted = frames
    y, later = ((frame["label"] == wanted.label).to_numpy(dtype=np.int64) for frame in (present, shifted))
    places = np.arange(len(present))
    train = np.isin(places, train_test_split(places, test_size=0.2, stratify=y, random_state=SEED + seed)[0])
    # The released code scales by present and future rows together; the future is not known to an honest one.
    seen = pd.concat([present, shifted]) if protocol == "paper" else present
    levels = {word: sorted({*present[word].astype(str), *shifted[word].astype(str)}) for word in wanted.words}
    names, groups = list(wanted.numbers), []
    for word, found in levels.items():
        groups.append(tuple(range(len(names), len(names) + len(found))))
        names += [f"{word}_{level}" for level in found]
    of = dict(zip(levels, groups, strict=True))
    fixed = [place for word in wanted.fixed for place in of.get(word, (names.index(word),) if word in names else ())]

    def encoded(frame: pd.DataFrame) -> Floats:
        low, high = (np.asarray(getattr(seen[list(wanted.numbers)], end)(), dtype=float) for end in ("min", "max"))
        numbers = (frame[list(wanted.numbers)].to_numpy(dtype=float) - low) / (high - low)
        words = [(frame[word].astype(str) == level).to_numpy(dtype=float) for word in levels for level in levels[word]]
        return np.column_stack([numbers, *words, np.ones(len(frame))])

    X = encoded(present)
    return Case(
        name=name,
        protocol=protocol,
        columns=tuple(names),
        words=wanted.words,
        groups=tuple(groups),
        fixed=(*fixed, X.shape[1] - 1),
        X=X,
        y=y,
        train=train,
        later_rows=encoded(shifted),
        later_y=later,
    )


def describe(case: Case) -> Sequence[Any]:
    """Return name, shift, rows, columns and the share of favourable labels now and later."""
    shares = (f"{values.mean():.2f}" for values in (case.y, case.later_y))
    return [case.name, SHIFTS.get(case.name, "age"), len(case.X), len(case.later_rows), case.d - 1, *shares]
