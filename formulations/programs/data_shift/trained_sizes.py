"""How great the weights, the intercept and the scores of a retrained classifier can be, whatever the shift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from ceopt.formulations.programs.data_shift.question import ShiftQuestion
from ceopt.formulations.programs.expressions import Floats

__all__ = ["TrainedSizes"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainedSizes:
    """Bounds that hold for every shift.

    Parameters
    ----------
    weight
        Of the norm of the weights.
    intercept
        (least, greatest).
    pull
        (least, greatest) of what a row pulls with.
    """

    weight: float
    intercept: tuple[float, float]
    pull: tuple[float, float]

    def score(self, question: ShiftQuestion) -> float:
        """Bound of the absolute score of a training row, wherever it moves."""
        return self.weight * question.reach + self._greatest_intercept

    def scores(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the least and the greatest score of points that do not move."""
        slopes = self.weight * np.linalg.norm(points, axis=1)
        return self.intercept[0] - slopes, self.intercept[1] + slopes

    @property
    def _greatest_intercept(self) -> float:
        return max(abs(bound) for bound in self.intercept)
