"""Protocol of the paper's released code: data, networks, noisy copies, and what is measured of two answers."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import ceopt
from ceopt.diverse import DiverseRobustExplainer
from ceopt.metrics import k_distance, k_diversity, set_distance

__all__ = [
    "ALPHA",
    "COPIES",
    "DATA_SETS",
    "MEASURES",
    "NORMS",
    "SEED",
    "TEST_ROWS",
    "VALIDATION_ROWS",
    "Network",
    "Pair",
    "Split",
    "answers",
    "load",
    "measured",
    "network_file",
    "of_release",
    "published",
    "released",
    "retrained",
    "summary",
    "thinned",
]

Floats = NDArray[np.float64]
Predict = Callable[[Any], NDArray[Any]]

DATA_SETS = ("diabetes", "no2", "credit", "spambase", "news")
NORMS = ("l1", "l2")
#: Candidates of the number-based filter.
ALPHA: Mapping[str, int] = {"diabetes": 50, "no2": 50, "credit": 1000, "spambase": 1000, "news": 1000}
#: Places in the test part. The paper's grid was searched on the first, its tables 1, 2, 9 and 10 are of the second.
VALIDATION_ROWS, TEST_ROWS = range(50), range(50, 70)
COPIES = 3
#: Of the noise.
SEED = 42
#: Variance of the noise as a share of a column's range: a standard deviation of 2.8 %.
VARIANCE = 0.08 / 100
MEASURES = ("k_distance", "k_diversity", "set_distance_sum", "set_distance_max")


# ---- data and networks -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Columns scaled to [0, 1] by the bounds of the whole file, then 20 % for tests."""

    name: str
    columns: tuple[str, ...]
    train: Floats
    labels: NDArray[np.int64]
    test: Floats
    test_labels: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network as plain arrays; the class is the greatest of the last layer."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the class of each row."""
        values = np.asarray(X, dtype=float)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = np.maximum(values @ weight + bias, 0.0)
        return np.asarray((values @ self.weights[-1] + self.biases[-1]).argmax(axis=1))


def unit_scaled(name: str, frame: pd.DataFrame) -> Floats:
    """Scale by the whole file."""
    values = frame.to_numpy(dtype=float)
    full = _full_bounds(name)
    low = values.min(axis=0)
    high = values.max(axis=0)
    for j, column in enumerate(frame.columns):
        low[j], high[j] = full.get(column, (low[j], high[j]))
    return np.asarray((values - low) / np.where(high > low, high - low, 1.0))


def scaled(name: str, frame: pd.DataFrame, labels: Any, seed: int = 0) -> Split:
    """Scale by the whole file and split as the released code does, which has seed 0."""
    labels = np.asarray(labels, dtype=np.int64)
    train, test, train_labels, test_labels = train_test_split(
        unit_scaled(name, frame), labels, test_size=0.2, stratify=labels, random_state=seed
    )
    return Split(name, tuple(frame.columns), train, train_labels, test, test_labels)


def load(name: str, seed: int = 0) -> Split:
    """Return a data set of the paper from the folder that ``CEOPT_DATA`` names."""
    bunch = ceopt.datasets.load(name)
    return scaled(name, bunch.data, bunch.target, seed)


def of_release(name: str) -> Split:
    """Return a data set with the paper's people: those of ``load``, and of ``credit`` the first rows of its file.

    That file is the release's test part, in its order. The training part is missing: the other rows stand in for it.
    """
    if name != "credit":
        return load(name)
    bunch = ceopt.datasets.load(name)
    unit = unit_scaled(name, bunch.data)
    labels = np.asarray(bunch.target, dtype=np.int64)
    people = TEST_ROWS.stop
    return Split(name, tuple(bunch.data), unit[people:], labels[people:], unit[:people], labels[:people])


def loans(seed: int = 0) -> Split:
    """Return made-up loans instead, for a run without data: the columns that are numbers."""
    bunch = ceopt.datasets.loans()
    return scaled("loans", bunch.data.select_dtypes("number"), bunch.target == bunch.favourable, seed)


def thinned(split: Split, share: float, seed: int) -> Floats:
    """Return a share of the training rows, drawn without replacement."""
    count = round(share * len(split.train))
    rows = np.random.default_rng(seed).choice(len(split.train), count, replace=False)
    return np.asarray(split.train[np.sort(rows)])


def _full_bounds(name: str) -> Mapping[str, Sequence[float]]:
    """Return the bounds of the whole of ``credit``, of which the data has a quarter."""
    path = Path(os.environ.get("CEOPT_DATA", "")) / "schema.json"
    if name != "credit" or not path.is_file():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))["datasets"]
    entry = entries[entries[name].get("alias_of", name)]
    bounds: dict[str, Sequence[float]] = entry.get("scaling_upper_of_full_set", {})
    return bounds


def network_file() -> Path | None:
    """Return the file of released weights, if ``CEOPT_NN003`` names one."""
    path = Path(os.environ.get("CEOPT_NN003", ""))
    return path if path.is_file() else None


def released(path: Path, name: str) -> Network:
    """Return a network of the paper's authors."""
    layers = json.loads(path.read_text(encoding="utf-8"))["networks"][name]
    return Network(tuple(np.array(part["W"]) for part in layers), tuple(np.array(part["b"]) for part in layers))


def retrained(split: Split, seed: int, epochs: int | None = None, momentum: float = 0.9) -> MLPClassifier:
    """Fit a network of 20 and 10 neurons as the paper's: stochastic gradient, rate 0.01, batches of 8.

    The paper's has no momentum and 100 epochs. Momentum is scikit-learn's 0.9 here: what it does, the page of results
    tells. Large data needs fewer epochs for as many steps.
    """
    if epochs is None:
        epochs = 100 if len(split.train) < 5000 else 20
    network = MLPClassifier(
        (20, 10),
        solver="sgd",
        learning_rate_init=0.01,
        batch_size=8,
        max_iter=epochs,
        momentum=momentum,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper stops after as many epochs too
        return network.fit(split.train, split.labels)


# ---- pairs -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A row of the test part and its noisy copies that the model puts into the same class."""

    place: int
    row: Floats
    copies: tuple[Floats, ...]
    label: int


def pairs(
    split: Split,
    predict: Predict,
    rows: Sequence[int] = TEST_ROWS,
    *,
    copies: int = COPIES,
    seed: int = SEED,
    again: bool = False,
) -> Iterator[Pair]:
    """Give rows with their copies; the noise is that of the released code, numpy's old generator.

    A copy of another class is left out, as in tables 9 and 10; or drawn ``again`` until it is of the row's, as in
    tables 5 to 8, which have a single one.
    """
    noise = np.random.RandomState(seed)
    low, high = split.train.min(axis=0), split.train.max(axis=0)
    covariance = np.diag(VARIANCE * (high - low))
    for place in rows:
        if place >= len(split.test):
            return
        row = split.test[place]
        label = int(predict(row[None, :])[0])
        same: list[Floats] = []
        drawn = 0
        while drawn < copies:
            copy = np.clip(noise.multivariate_normal(row, covariance), low, high)
            is_same = int(predict(copy[None, :])[0]) == label
            if is_same:
                same.append(copy)
            drawn += is_same or not again
        yield Pair(place, row, tuple(same), label)


def answers(explainer: DiverseRobustExplainer, predict: Predict, row: Floats, label: int, n: int | None = 5) -> Floats:
    """Return the explainer's counterfactuals of a row (k, d), for the class other than ``label``."""
    found = explainer.explain(predict, row, target=1 - label, n=n)
    return np.array([answer.values.to_numpy(dtype=float) for answer in found]).reshape(len(found), len(row))


# ---- measures --------------------------------------------------------------------------------------------------------
def measured(row: Floats, first: Floats, second: Floats, norm: Any) -> dict[str, float]:
    """Return the paper's measures of the answers for a row and for its copy; a single answer has diversity 0."""
    return {
        "k_distance": k_distance(row, first, norm),
        "k_diversity": k_diversity(first, norm) if len(first) > 1 else 0.0,
        "set_distance_sum": set_distance(first, second, "sum", norm),
        "set_distance_max": set_distance(first, second, "max", norm),
    }


def summary(found: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of each measure over pairs."""
    return {name: (float(np.mean(column)), float(np.std(column))) for name, column in _columns(found).items()}


def _columns(found: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: [one[name] for one in found] for name in MEASURES} if found else {}


def published() -> dict[str, Any]:
    """Return the tables of the paper."""
    path = Path(__file__).with_name("published.json")
    tables: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return tables
