"""ROAR as its authors search: gradient steps at the worst parameters of the moment."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ceopt.formulations.programs.linear_recourse import LinearQuestion, ParameterBall

__all__ = ["descend"]

Floats = NDArray[np.float64]

#: Of the released code: length of a step, most steps at one price, and how often the price is halved.
_RATE: Final = 0.01
_STEPS: Final = 1000
_HALVINGS: Final = 10


def descend(question: LinearQuestion, ball: ParameterBall, *, loss: str, weight: float, margin: float) -> Floats | None:
    """Return the first point whose score at worst is at least ``margin``; None where none is met at any price.

    The descents at all prices, each half of the one before, are made side by side: a row each. The greatest price that
    meets the margin is the one that counts.
    """
    prices = weight * 0.5 ** np.arange(_HALVINGS + 1)
    start = np.clip(question.factual, question.lower, question.upper)
    points = np.tile(start, (len(prices), 1))
    reached: dict[int, Floats] = {}
    rows = np.arange(len(prices))
    for step in range(_STEPS + 1):
        scores = points @ question.coef + question.intercept - _losses(ball, points)
        met = scores >= margin
        if met.any():
            reached.update(zip(rows[met].tolist(), points[met], strict=True))
            if rows[0] in reached:
                return reached[int(rows[0])]
            # Smaller prices than one that has met the margin are no longer asked.
            going = ~met & (rows < min(reached))
            rows, points, prices, scores = rows[going], points[going], prices[going], scores[going]
        if step < _STEPS:
            pull = _slopes_of_loss(loss, scores)[:, None] * _worst_coefficients(question, ball, points)
            pull += prices[:, None] * np.sign(points - question.factual)
            points = np.minimum(np.maximum(points - _RATE * pull, question.lower), question.upper)
    if reached:
        return reached[min(reached)]
    return None


def _losses(ball: ParameterBall, points: Floats) -> Floats:
    """Return by how much the score of each point can fall: radius times the dual norm."""
    entries = np.abs(_entries(ball, points))
    if ball.norm == "linf":
        sizes = entries.sum(axis=1)
    elif ball.norm == "l2":
        sizes = np.sqrt((entries**2).sum(axis=1))
    else:
        sizes = entries.max(axis=1)
    return np.asarray(ball.radius * sizes)


def _entries(ball: ParameterBall, points: Floats) -> Floats:
    """Return what the parameters that may be off are multiplied by: the points, and 1 for the intercept."""
    if not ball.perturb_intercept:
        return points
    return np.column_stack([points, np.ones(len(points))])


def _slopes_of_loss(loss: str, scores: Floats) -> Floats:
    """Return the derivative of the loss in each score."""
    if loss == "hinge":
        return np.where(scores < 1.0, -1.0, 0.0)
    return np.asarray(-expit(-scores))


def _worst_coefficients(question: LinearQuestion, ball: ParameterBall, points: Floats) -> Floats:
    """Return the weights at which each point's score is least, a point of the ball's surface."""
    entries = _entries(ball, points)
    if ball.norm == "linf":
        directions = np.sign(entries)
    elif ball.norm == "l2":
        lengths = np.sqrt((entries**2).sum(axis=1, keepdims=True))
        directions = np.divide(entries, lengths, out=np.zeros_like(entries), where=lengths > 0.0)
    else:
        directions = np.zeros_like(entries)
        greatest = np.abs(entries).argmax(axis=1)
        row = np.arange(len(entries))
        directions[row, greatest] = np.sign(entries[row, greatest])
    return np.asarray(question.coef - ball.radius * directions[:, : points.shape[1]])
