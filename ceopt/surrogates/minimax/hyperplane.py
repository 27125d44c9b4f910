r"""The hyperplane of a minimax probability machine: its slope, and all that follows from it.

With the optimal slope w and the greatest standard deviations :math:`\tau_y(w)` of both classes,

.. math::
    \kappa = \frac{1}{\tau_- + \tau_+}, \qquad b = \mu_-^\top w + \kappa \tau_- = \mu_+^\top w - \kappa \tau_+,

where :math:`\kappa \tau_-` is the share of :math:`\tau_-` in both, which is a number where the two overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from ceopt.formulations.programs.minimax import Ambiguity, ClassMoments
from ceopt.formulations.programs.parts import Floats
from ceopt.surrogates.minimax.norm_sum import LeastNormSum

__all__ = ["Hyperplane", "hyperplane_of", "matrices_of"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Hyperplane:
    """A slope w with (mean_pos - mean_neg)'w = 1, and what it is worth.

    Parameters
    ----------
    weights
        w, shape (d,).
    threshold
        b; favourable where w'x >= b.
    taus
        Greatest standard deviations of the score, unfavourable and favourable.
    kappa
        1 / their sum; infinite where they are 0, 0 in the limit.
    status
        "optimal", or "separable" where the sum is 0.
    gap
        The sum is proved least up to this share.
    """

    weights: Floats
    threshold: float
    taus: tuple[float, float]
    kappa: float
    status: Literal["optimal", "separable"]
    gap: float


def matrices_of(classes: ClassMoments, ambiguity: Ambiguity) -> tuple[float, list[Floats]]:
    """Return the greater factor of both classes, and the matrices of the norms divided by it."""
    spreads = ambiguity.spreads
    unit = max(spread.factor for spread in spreads)
    matrices = []
    for spread, covariance in zip(spreads, (classes.cov_neg, classes.cov_pos), strict=True):
        matrix = covariance
        if spread.ridge:
            matrix = matrix + spread.ridge * np.eye(len(matrix))
        if spread.factor != unit:
            matrix = matrix * (spread.factor / unit) ** 2
        matrices.append(matrix)
    length = sum(spread.length for spread in spreads)
    if length:
        matrices.append(length**2 * np.eye(len(classes.difference)))
    return unit, matrices


def hyperplane_of(classes: ClassMoments, ambiguity: Ambiguity, found: LeastNormSum, unit: float) -> Hyperplane:
    """Return the hyperplane of a slope, from the norms that it is least for."""
    w = found.weights
    spreads = ambiguity.spreads
    both = sum(spread.length for spread in spreads)
    parts = []
    for norm, spread in zip(found.norms[:2], spreads, strict=True):
        part = float(norm)
        if spread.length:
            part += float(found.norms[2]) * spread.length / both  # the third norm is the length of w times both
        parts.append(part)
    total = parts[0] + parts[1]
    if total == 0.0:
        return Hyperplane(w, float(classes.mean_neg @ w) + 0.5, (0.0, 0.0), math.inf, "separable", 0.0)
    threshold = float(classes.mean_neg @ w) + parts[0] / total
    taus = (unit * parts[0], unit * parts[1])
    return Hyperplane(w, threshold, taus, 1.0 / (unit * total), "optimal", found.gap)
