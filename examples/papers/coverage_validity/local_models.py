"""What one person's recourse is computed from: the sample at the boundary and the linear surrogates fitted near it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd

import ceopt
from ceopt.surrogates import (
    BoundarySample,
    BoundarySampler,
    ClimeSurrogate,
    LimelsSurrogate,
    LimeSurrogate,
    MinimaxProbabilityMachine,
    SvmSurrogate,
)
from coverage_validity.networks import Networks
from coverage_validity.protocol import Case, Floats, Fold

__all__ = ["Classifier", "Data", "Line", "Local"]

#: The label that is asked for.
TARGET = 1


class Line(NamedTuple):
    """A linear surrogate in the columns of the data, favourable where ``coef @ x + intercept >= 0``."""

    coef: Floats
    intercept: float

    def unit(self) -> Line:
        """Return the same with weights and intercept of length 1 together, as the released ROAR is given it."""
        size = float(np.hypot(np.linalg.norm(self.coef), self.intercept))
        return Line(self.coef / size, self.intercept / size)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classifier:
    """The present network, asked as a black box: LIME and LIMELS read its probabilities, all others its labels.

    Parameters
    ----------
    networks
        One network.
    columns
        Names of its columns.
    """

    networks: Networks
    columns: tuple[str, ...]

    @property
    def classes_(self) -> Any:
        """The labels."""
        return np.array([0, 1])

    @property
    def feature_names_in_(self) -> Any:
        """The columns that it is given."""
        return np.array(self.columns, dtype=object)

    def predict(self, frame: pd.DataFrame) -> Any:
        """Return labels, (n,)."""
        return self.networks.predict(frame.to_numpy())

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        """Return the probabilities of both labels, (n, 2)."""
        favourable = self.networks.probability(frame.to_numpy())
        return np.column_stack([1.0 - favourable, favourable])


@final
class Data:
    """One fold's data and its present classifier, with what all its people share.

    Parameters
    ----------
    case, fold
        The data, and which rows the classifier saw.
    present
        The classifier.
    """

    def __init__(self, case: Case, fold: Fold, present: Networks) -> None:
        self.case = case
        self.fold = fold
        self.present = present
        self.model = Classifier(present, case.columns)
        self.space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous") for name in case.columns])
        self.frame = pd.DataFrame(case.X[fold.train], columns=list(case.columns))

    def sampler(self, *, n_samples: int, radius: float) -> BoundarySampler:
        """Return the sampler of this fold: as the paper has it, with the fold's own seed."""
        return BoundarySampler(
            n_neighbours=10,
            n_samples=n_samples,
            radius=radius,
            norm="l1",
            scale="none",
            max_queries=1_000_000_000,
            random_state=self.fold.number,
        )

    def local(self, factual: Floats, *, n_samples: int = 1000, radius: float | None = None) -> Local:
        """Return what one person's recourse is computed from."""
        if radius is None:
            radius = self.case.sampler_radius
        return Local(self, factual, n_samples, radius)


@final
class Local:
    """A person, the sample at the boundary, and the surrogates; each is made when it is first asked for.

    Parameters
    ----------
    data
        The fold.
    factual
        The person, (p,).
    n_samples, radius
        Size of the sample, and the ball's radius as a share of the largest distance of rows.
    """

    def __init__(self, data: Data, factual: Floats, n_samples: int, radius: float) -> None:
        self.data = data
        self.factual = factual
        self.n_samples = n_samples
        self.radius = radius
        self._lines: dict[Any, Line] = {}

    @cached_property
    def row(self) -> dict[str, float]:
        """The person by the columns' names."""
        return dict(zip(self.data.case.columns, self.factual.tolist(), strict=True))

    @cached_property
    def sample(self) -> BoundarySample:
        """The sample at the boundary."""
        sampler = self.data.sampler(n_samples=self.n_samples, radius=self.radius)
        return sampler.sample(self.data.model, self.row, self.data.frame, target=TARGET, space=self.data.space)

    @cached_property
    def moments(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean and covariance of the unfavourable samples, and of the favourable ones."""
        found = []
        for rows in (self.sample.encoded[~self.sample.favourable], self.sample.encoded[self.sample.favourable]):
            covariance = np.zeros((rows.shape[1], rows.shape[1]))
            if len(rows) > 1:
                covariance = np.atleast_2d(np.cov(rows, rowvar=False))
            found += [rows.mean(axis=0), covariance]
        return found[0], found[1], found[2], found[3]

    def machine(self, divergence: str, radius: float) -> Line:
        """Return the machine whose unfavourable covariance may be so far from the sample's."""
        key = (divergence, radius)
        if key not in self._lines:
            # The paper's Bures radius is the square root of the divergence's.
            machine = MinimaxProbabilityMachine(divergence, (radius, 0.0), bures="paper", regularization=1e-6)
            machine.fit_moments(*self.moments)
            self._lines[key] = Line(machine.coef_[0], float(machine.intercept_[0]))
        return self._lines[key]

    def rival(self, name: str) -> Line:
        """Return a surrogate that is not robust: "lime", "lime, person", "clime", "limels", "svm" or "mpm"."""
        if name == "mpm":
            return self.machine("nominal", 0.0)
        if name not in self._lines:
            self._lines[name] = self._fitted(name)
        return self._lines[name]

    def _fitted(self, name: str) -> Line:
        seed = self.data.fold.number
        sample = None
        surrogate: Any
        if name == "lime":
            surrogate = LimeSurrogate(n_samples=self.n_samples, around="mean", random_state=seed)
        elif name == "lime, person":
            surrogate = LimeSurrogate(n_samples=self.n_samples, around="factual", random_state=seed)
        elif name == "clime":
            surrogate = ClimeSurrogate(n_samples=self.n_samples, radius=self.radius, random_state=seed)
        elif name == "limels":
            surrogate = LimelsSurrogate()
            sample = self.sample
        else:
            surrogate = SvmSurrogate()
            sample = self.sample
        surrogate.fit_local(
            self.data.model, self.row, self.data.frame, target=TARGET, space=self.data.space, sample=sample
        )
        return Line(np.ravel(surrogate.coef_), float(np.ravel(surrogate.intercept_)[0]))
