"""Wachter's descent on the network itself, as CARLA does it: Adam, and a weight of the cost that is halved."""

from __future__ import annotations

from typing import Final

import numpy as np

from coverage_validity.networks import Networks
from coverage_validity.protocol import Floats

__all__ = ["descend"]

#: CARLA's step and Adam's moments, most steps at one weight, and how often the weight is halved.
RATE: Final = 0.01
FIRST: Final = 0.9
SECOND: Final = 0.999
SMALL: Final = 1e-8
STEPS: Final = 1000
HALVINGS: Final = 10
#: Weight of the l1 distance at first, the paper's.
WEIGHT: Final = 0.1


def descend(networks: Networks, factual: Floats, *, level: float, lower: Floats, upper: Floats) -> Floats | None:
    """Return the first point whose probability reaches ``level``, or None after ten halvings of the weight.

    Cross-entropy of the favourable label plus the weight times the l1 distance, by Adam with the greatest second moment
    (amsgrad), cut to the bounds after each step.
    """
    weight = WEIGHT
    for _ in range(HALVINGS + 1):
        point = factual.copy()
        first = np.zeros_like(point)
        second = np.zeros_like(point)
        greatest = np.zeros_like(point)
        for step in range(1, STEPS + 1):
            score, slope = _score(networks, point)
            share = 1.0 / (1.0 + np.exp(-score))
            if share >= level:
                return point
            pull = (share - 1.0) * slope + weight * np.sign(point - factual)
            first = FIRST * first + (1.0 - FIRST) * pull
            second = SECOND * second + (1.0 - SECOND) * pull**2
            greatest = np.maximum(greatest, second)
            rate = RATE / (1.0 - FIRST**step)
            size = np.sqrt(greatest / (1.0 - SECOND**step)) + SMALL
            point = np.clip(point - rate * first / size, lower, upper)
        weight /= 2.0
    return None


def _score(networks: Networks, point: Floats) -> tuple[float, Floats]:
    """Return the first network's logit at a point, and its gradient there."""
    values = point
    active = []
    last = len(networks.layers) - 1
    for place, (weights, biases) in enumerate(networks.layers):
        values = values @ weights[0] + biases[0, 0]
        if place < last:
            active.append(values > 0.0)
            values = np.maximum(values, 0.0)
    slope = networks.layers[last][0][0][:, 0]
    for place in range(last - 1, -1, -1):
        slope = networks.layers[place][0][0] @ (slope * active[place])
    return float(values[0]), slope
