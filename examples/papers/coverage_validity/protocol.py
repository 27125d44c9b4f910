"""Data as the two protocols have them: "paper", with what the released code did, and "honest", without its traps.

Numbers are divided by their standard deviations about their means, categories become a column a level, numbers first;
the release leaves its made-up data as they are, and so does "paper".
A fifth of the present rows is for testing; the rest is cut into five folds, and each fold's present classifier is
trained on the other four.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from shared.shifted_data import COLUMNS, SHIFTS, Columns, halves, has_data
from sklearn.model_selection import KFold, train_test_split

import ceopt

__all__ = ["DATA_SETS", "FOLDS", "PROTOCOLS", "Case", "Floats", "Fold", "has_data", "load"]

Floats = NDArray[np.float64]

PROTOCOLS = ("honest", "paper")
DATA_SETS = ("synthetic", *SHIFTS)
FOLDS = 5
#: Of the split into training and test rows, as in the released code.
SPLIT = 42
#: Share of the largest distance of training rows that is the radius of the recourse sampler, as in the released code.
SAMPLER_RADIUS = {"synthetic": 0.1, "german": 0.2, "sba": 0.2, "student": 0.7, "loans": 0.2}
#: Columns that nobody can change, and that only grow, where recourse is to be actionable.
IMMUTABLE = {"german": ("personal_status_sex",), "sba": ("UrbanRural",), "student": ("romantic",), "loans": ("sex",)}
GROWING = {"german": ("age",), "student": ("age",), "loans": ("age",)}
#: Rows and noise of the made-up data.
SYNTHETIC_ROWS, SYNTHETIC_NOISE = 1000, 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """One of the five ways to train the present classifier.

    Parameters
    ----------
    number
        From 0.
    train
        Which present rows the classifier sees, (n,).
    """

    number: int
    train: NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Present and shifted data as the classifier sees them.

    Parameters
    ----------
    name, protocol
        Of the data set.
    columns
        Names of the p columns: numbers, then ``column=level``.
    groups
        Places of each category's columns.
    fixed, growing
        Places of the columns that nobody can change, and that may only grow.
    X, y
        The present rows (n, p) and labels, 1 being favourable.
    test
        Which of them no classifier is trained on.
    later_rows, later_y
        The rows of the future.
    """

    name: str
    protocol: str
    columns: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    fixed: tuple[int, ...]
    growing: tuple[int, ...]
    X: Floats
    y: NDArray[np.int64]
    test: NDArray[np.bool_]
    later_rows: Floats
    later_y: NDArray[np.int64]

    @property
    def p(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    @property
    def is_released(self) -> bool:
        """Whether everything is done as the released code does it."""
        return self.protocol == "paper"

    @property
    def sampler_radius(self) -> float:
        """Radius of the recourse sampler, a share of the largest distance of rows."""
        return SAMPLER_RADIUS[self.name]

    def folds(self) -> list[Fold]:
        """Return the five folds."""
        rows = np.flatnonzero(~self.test)
        folds = []
        for number, (kept, _) in enumerate(KFold(FOLDS).split(rows)):
            train = np.zeros(len(self.X), dtype=bool)
            train[rows[kept]] = True
            folds.append(Fold(number, train))
        return folds

    def people(self, favourable: NDArray[np.bool_], fold: Fold, count: int) -> NDArray[np.intp]:
        """Return whom the classifier rejects, test rows first."""
        rejected = np.flatnonzero(~favourable)
        tested = rejected[self.test[rejected]]
        trained = rejected[fold.train[rejected]]
        return np.concatenate([tested, trained])[:count]

    def limits(self, factual: Floats, *, actionable: bool = False) -> tuple[Floats, Floats]:
        """Return the bounds of each column, (p,): a level from 0 to 1; where asked for, what nobody can change held."""
        lower = np.full(self.p, -np.inf)
        upper = np.full(self.p, np.inf)
        for group in self.groups:
            lower[list(group)] = 0.0
            upper[list(group)] = 1.0
        if actionable or not self.is_released:
            held = list(self.fixed)
            lower[held] = upper[held] = factual[held]
            grows = list(self.growing)
            lower[grows] = factual[grows]
        return lower, upper


@cache
def load(name: str, protocol: str) -> Case:
    """Return a data set under a protocol; real ones come from the folder that ``CEOPT_DATA`` names."""
    if name == "synthetic":
        return _synthetic(protocol)
    if name == "loans":
        return _loans(protocol)
    wanted = COLUMNS[name, protocol]
    present, shifted = halves(name)
    if wanted.is_reversed:
        present, shifted = shifted, present
    return _case(name, protocol, wanted, present, shifted)


def _synthetic(protocol: str) -> Case:
    """Return the points of a rectangle above and below a curve of fourth degree; those of the future with noise."""
    rng = np.random.default_rng(0)
    frames = []
    for noise in (0.0, SYNTHETIC_NOISE):
        x1 = rng.uniform(-2.0, 4.0, SYNTHETIC_ROWS)
        x2 = rng.uniform(-2.0, 7.0, SYNTHETIC_ROWS)
        curve = 1.0 + x1 + 2.0 * x1**2 + x1**3 - x1**4 + noise * rng.standard_normal(SYNTHETIC_ROWS)
        frames.append(pd.DataFrame({"x1": x1, "x2": x2, "label": (x2 >= curve).astype(int)}))
    columns = Columns(numbers=("x1", "x2"), words=())
    return _case("synthetic", protocol, columns, *frames, is_scaled=protocol != "paper")


def _loans(protocol: str) -> Case:
    """Return loans that ceopt makes up, for a run without data: those of older people are the future."""
    bunch = ceopt.datasets.loans(n=1200)
    data = bunch.data.assign(label=(bunch.target == bunch.favourable).astype(int))
    numbers = tuple(str(name) for name in bunch.data.select_dtypes("number"))
    old = data["age"] > data["age"].median()
    return _case("loans", protocol, Columns(numbers=numbers, words=("sex",)), data[~old], data[old])


def _case(
    name: str, protocol: str, wanted: Columns, present: pd.DataFrame, shifted: pd.DataFrame, *, is_scaled: bool = True
) -> Case:
    y = (present["label"] == wanted.label).to_numpy(dtype=np.int64)
    later_y = (shifted["label"] == wanted.label).to_numpy(dtype=np.int64)
    places = np.arange(len(present))
    tested = train_test_split(places, test_size=0.2, stratify=y, random_state=SPLIT)[1]
    # The released code scales by present and future rows together; an honest study does not know the future.
    if protocol == "paper":
        scaled_by = pd.concat([present, shifted])
    else:
        scaled_by = present
    numbers = list(wanted.numbers)
    mean = scaled_by[numbers].to_numpy(dtype=float).mean(axis=0)
    deviation = scaled_by[numbers].to_numpy(dtype=float).std(axis=0)
    if not is_scaled:
        mean, deviation = np.zeros(len(numbers)), np.ones(len(numbers))
    columns = list(numbers)
    groups: list[tuple[int, ...]] = []
    levels: dict[str, list[str]] = {}
    for word in wanted.words:
        levels[word] = sorted({*present[word].astype(str), *shifted[word].astype(str)})
        groups.append(tuple(range(len(columns), len(columns) + len(levels[word]))))
        columns += [f"{word}={level}" for level in levels[word]]

    def encoded(frame: pd.DataFrame) -> Floats:
        parts = [(frame[numbers].to_numpy(dtype=float) - mean) / deviation]
        for word, known in levels.items():
            said = frame[word].astype(str).to_numpy()
            parts.append((said[:, None] == np.array(known)[None, :]).astype(float))
        return np.column_stack(parts)

    def places_of(names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(k for k, column in enumerate(columns) if column.split("=")[0] in names)

    return Case(
        name=name,
        protocol=protocol,
        columns=tuple(columns),
        groups=tuple(groups),
        fixed=places_of((*wanted.fixed, *IMMUTABLE.get(name, ()))) if protocol == "paper" else places_of(_held(name)),
        growing=places_of(GROWING.get(name, ())),
        X=encoded(present),
        y=y,
        test=np.isin(places, tested),
        later_rows=encoded(shifted),
        later_y=later_y,
    )


def _held(name: str) -> tuple[str, ...]:
    """Return what nobody can change in the honest protocol: age grows, so it is not among them."""
    fixed = COLUMNS[name, "honest"].fixed if (name, "honest") in COLUMNS else ()
    held = {*fixed, *IMMUTABLE.get(name, ())} - set(GROWING.get(name, ()))
    return tuple(sorted(held))
