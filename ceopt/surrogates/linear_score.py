"""A linear model in scaled columns, asked about raw rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.space import FeatureSpace

__all__ = ["LinearScore"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearScore:
    """Whether a linear surrogate calls raw rows favourable: the model behind a surrogate that the engine solves.

    Parameters
    ----------
    core
        The score, and its decision at 0.
    encoding
        The scaled columns as functions of the raw ones.
    space
        The raw columns.
    """

    core: Affine
    encoding: Encoding
    space: FeatureSpace

    @property
    def classes_(self) -> NDArray[np.bool_]:
        """Unfavourable and favourable."""
        return np.array([False, True])

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Raw columns: it is asked about frames."""
        return np.array(self.space.names, dtype=object)

    def score(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return the scores of raw rows, (m,)."""
        return self.core.score(self.encoding.matrix(self.space.coordinates(frame)))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return whether raw rows are favourable, (m,)."""
        return np.asarray(self.core.head.decide(self.score(frame)))
