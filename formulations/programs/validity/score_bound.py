r"""The least probability of a positive score, in closed form, where its mean and deviation are known up to a distance.

For one counterfactual x, :math:`m = x^\top \hat\mu`, :math:`s = \sqrt{x^\top \hat\Sigma x}` and
:math:`r = \rho \lVert x \rVert`: mean and standard deviation of the score range over the half disc of radius r around
(m, s), and the worst of them is where a line through 0 touches it. Without uncertainty (r = 0) this is
Cantelli's inequality, :math:`m^2 / (m^2 + s^2)`.
"""

from __future__ import annotations

import math

__all__ = ["least_of_score"]


def least_of_score(m: float, s: float, r: float) -> tuple[float, float]:
    """Return (p, 1 - p), p being the least probability of a positive score, each to its own last digits.

    Parameters
    ----------
    m, s
        Mean and standard deviation of the score.
    r
        How far the two are uncertain.
    """
    if m <= r:
        return 0.0, 1.0
    s, r = s / m, r / m  # no square of large or small numbers
    touch = math.sqrt((1.0 - r) * (1.0 + r) + s * s)
    size = math.hypot(1.0, s)
    sine = (s * touch + r) / (size * size)
    cosine = (1.0 - r) * (1.0 + r) / (touch + s * r)
    return min(cosine * cosine, 1.0), min(sine * sine, 1.0)
