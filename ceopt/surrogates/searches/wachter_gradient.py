"""Wachter's search as its implementations do it: Adam, and a weight of the loss that grows until it works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.programs.linear_recourse import LinearQuestion
from ceopt.tolerances import ADAM_LEAST

__all__ = ["Scored", "descend"]

Floats = NDArray[np.float64]

#: Of CARLA's implementation: length of a step, Adam's moments, most steps at one weight, and how often it is doubled.
_RATE: Final = 0.01
_FIRST: Final = 0.9
_SECOND: Final = 0.999
_STEPS: Final = 1000
_DOUBLINGS: Final = 10


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A linear score or a network's, with its gradient.

    Parameters
    ----------
    weights, biases
        Of each layer, a linear score being one layer.
    is_relu
        Whether each layer but the last ends in ReLU.
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    is_relu: tuple[bool, ...]

    @staticmethod
    def of(question: LinearQuestion, network: ReluNetwork | None) -> Scored:
        """Return the score that is asked about."""
        if network is None:
            return Scored((question.coef[None],), (np.array([question.intercept]),), ())
        return Scored(network.weights, network.biases, tuple(one == "relu" for one in network.activations))

    def value(self, point: Floats) -> float:
        """Return the score of a point."""
        return float(self.with_slope(point[None])[0][0])

    def with_slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the scores of points (k, p) and their gradients; at a kink that of the side that is off."""
        values = points
        active = []
        for weights, biases, is_relu in zip(self.weights[:-1], self.biases[:-1], self.is_relu, strict=True):
            values = values @ weights.T + biases
            on = values > 0.0 if is_relu else np.ones(values.shape, dtype=bool)
            active.append(on)
            values = np.where(on, values, 0.0)
        scores = values @ self.weights[-1][0] + self.biases[-1][0]
        slopes = np.broadcast_to(self.weights[-1][0], values.shape)
        for weights, on in zip(reversed(self.weights[:-1]), reversed(active), strict=True):
            slopes = (slopes * on) @ weights
        return scores, slopes


def descend(question: LinearQuestion, scored: Scored, *, weight: float, target: float, level: float) -> Floats | None:
    """Return the first point whose probability is ``level`` or more; None where none is met at any weight.

    The descents at all weights, each twice the one before, are made side by side: a row each. The least weight that
    comes to the level is the one that counts.
    """
    weights = weight * 2.0 ** np.arange(_DOUBLINGS + 1)
    rows = np.arange(len(weights))
    points = np.tile(np.clip(question.factual, question.lower, question.upper), (len(weights), 1))
    adam = np.zeros((3, *points.shape))
    reached: dict[int, Floats] = {}
    for step in range(1, _STEPS + 2):
        scores, slopes = scored.with_slope(points)
        shares = expit(scores)
        met = shares >= level
        if met.any():
            reached.update(zip(rows[met].tolist(), points[met], strict=True))
            if rows[0] in reached:
                return reached[int(rows[0])]
            # Greater weights than one that has come to the level are no longer asked.
            going = ~met & (rows < min(reached))
            rows, points, shares, slopes, adam = (
                rows[going],
                points[going],
                shares[going],
                slopes[going],
                adam[:, going],
            )
        pulls = (2.0 * weights[rows] * (shares - target) * shares * (1.0 - shares))[:, None] * slopes
        pulls = pulls + np.sign(points - question.factual) / question.scale
        first, second, greatest = adam
        first = _FIRST * first + (1.0 - _FIRST) * pulls
        second = _SECOND * second + (1.0 - _SECOND) * pulls**2
        greatest = np.maximum(greatest, second)
        adam = np.stack([first, second, greatest])
        rate = _RATE / (1.0 - _FIRST**step)
        sizes = np.sqrt(greatest / (1.0 - _SECOND**step)) + ADAM_LEAST
        points = np.minimum(np.maximum(points - rate * first / sizes, question.lower), question.upper)
    if reached:
        return reached[min(reached)]
    return None
