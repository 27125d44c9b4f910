"""What every local surrogate is asked: a black box, scaled columns about a row, and the row as a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, column_coordinates, rows_to_keep, taken
from ceopt.solvers.errors import InvalidTypeError
from ceopt.surrogates.black_box import BlackBox
from ceopt.surrogates.legal_values import Floats
from ceopt.surrogates.sampler import BoundarySample, BoundarySampler, NoBoundaryError
from ceopt.surrogates.scaled_columns import ScaledColumns

__all__ = ["LocalQuestion", "question_of", "require_slope", "with_sample"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalQuestion:
    """A row, the model, and the columns in which a surrogate is linear.

    Parameters
    ----------
    box
        The model, which counts.
    columns
        Scaled columns about the row.
    home
        The row as a point, (p,).
    X
        Rows of data that lack no cell.
    data
        The same as points, (n, p).
    asked_before
        Rows that the model had been sent before.
    """

    box: BlackBox
    columns: ScaledColumns
    home: Floats
    X: pd.DataFrame
    data: Floats
    asked_before: int

    @property
    def n_queries(self) -> int:
        """Rows that were sent to the model for this question."""
        return self.box.n_queries - self.asked_before

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (p,) of the columns of data; codes of numbers do not count."""
        mean = self.data.mean(axis=0)
        spread = self.data.std(axis=0)
        space = self.columns.space
        for feature, places in zip(space, self.columns.places, strict=True):
            if feature.is_finite or not feature.codes:
                continue
            is_code = feature.are_codes(column_coordinates(feature, self.X[feature.name]))
            amounts = self.data[~is_code, places[0]]
            if len(amounts):
                mean[places[0]] = amounts.mean()
                spread[places[0]] = amounts.std()
        return mean, spread

    def leaning(self, points: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return legal rows drawn about points (m, p), the first the row itself, encoded, and what the model says."""
        coordinates = self.columns.legal(points, rng)
        coordinates[0] = self.columns.factual
        return self.columns.encoded(coordinates), self.box.leaning(self.columns.frame(coordinates))


def question_of(
    who: str,
    predict: Any,
    factual: Any,
    X: Any,
    *,
    target: Any,
    space: FeatureSpace | None,
    sample: BoundarySample | None,
    n_samples: int = 0,
) -> LocalQuestion:
    """Check the arguments of a surrogate's ``fit_local``; with a sample, its columns are taken.

    Rows of data that lack a cell are left out, with a warning.

    Raises
    ------
    CeoptError
        No frame, no row that is whole, a row that does not fit, and what :class:`BlackBox` refuses.
    """
    if not isinstance(X, pd.DataFrame):
        raise InvalidTypeError(who, "a DataFrame as X", f"X is {type(X).__name__}", "Name its columns.")
    if sample is not None:
        space = sample.columns.space
    X = taken(X, rows_to_keep(who, space, X, word="X"))
    if sample is not None:
        columns = sample.columns
    else:
        if space is None:
            space = FeatureSpace(infer_features(X, steps=False))
        columns = ScaledColumns.of(space, X)
    columns = columns.about(factual)
    box = predict
    if not isinstance(predict, BlackBox):
        limit = max(20_000, 2 * n_samples)  # the number of samples is the limit
        box = BlackBox(predict, target, columns=list(X), dtypes=X.dtypes, max_queries=limit, space=columns.space)
    assert columns.factual is not None  # noqa: S101 - the columns are about a row
    home = columns.encoded(columns.factual[None])[0]
    return LocalQuestion(box, columns, home, X, columns.encode(X), box.n_queries)


def with_sample(
    who: str,
    predict: Any,
    factual: Any,
    X: Any,
    *,
    target: Any,
    space: FeatureSpace | None,
    sample: BoundarySample | None,
) -> tuple[LocalQuestion, BoundarySample]:
    """Return the question and its sample, which is drawn by ``BoundarySampler()`` where none is given."""
    asked = question_of(who, predict, factual, X, target=target, space=space, sample=sample)
    if sample is None:
        sample = BoundarySampler().sample(asked.box, factual, asked.X, target=target, space=asked.columns.space)
    return asked, sample


def require_slope(who: str, coef: Floats) -> None:
    """Refuse a surrogate that is constant."""
    if not coef.any():
        raise NoBoundaryError(
            who, "draws between which the model makes a difference", "it says the same of all of them",
            "Draw more, or farther from the row.",
        )  # fmt: skip
