"""The Gelbrich distance of two pairs of a mean and a covariance, in closed form."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import require_moments
from ceopt.formulations.programs.parts import Floats

__all__ = ["gelbrich_distance"]


def gelbrich_distance(mean_a: ArrayLike, covariance_a: ArrayLike, mean_b: ArrayLike, covariance_b: ArrayLike) -> float:
    r"""Return the Gelbrich distance of two pairs of a mean and a covariance.

    .. math::
        G^2 = \lVert \mu_a - \mu_b \rVert^2 + \min_{O^\top O = I} \lVert F_a O - F_b \rVert_F^2, \qquad
        \Sigma_a = F_a F_a^\top, \quad \Sigma_b = F_b F_b^\top, \quad F_a, F_b \in \mathbb{R}^{d \times d},

    where the best O is :math:`U V^\top` of the singular value decomposition :math:`F_a^\top F_b = U S V^\top`. It is
    the 2-Wasserstein distance of the Gaussians with these moments, and no more than that of any two distributions with
    them. The minimum equals :math:`\operatorname{Tr}[\Sigma_a + \Sigma_b - 2 (\Sigma_b^{1/2} \Sigma_a
    \Sigma_b^{1/2})^{1/2}]`, but as a sum of squares it keeps its digits where the distance is small. One singular value
    decomposition of side d.

    Parameters
    ----------
    mean_a, mean_b
        Shape (d,).
    covariance_a, covariance_b
        Shape (d, d), symmetric and positive semidefinite; they may be singular or 0.

    Raises
    ------
    InvalidValueError
        Shapes disagree, a number is not finite, or a covariance is none.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, definition 2.1; Bhatia, Jain &
    Lim (2019), On the Bures-Wasserstein distance between positive definite matrices.
    :func:`ceopt.formulations.programs.gelbrich_distance` is the semidefinite program.

    Examples
    --------
    Standard deviations 1 and 4, means 0 and 4:

    >>> from ceopt.plans import gelbrich_distance
    >>> gelbrich_distance([0], [[1]], [4], [[16]])
    5.0
    """
    who = "gelbrich_distance"
    a = require_moments(f"{who} (first pair)", mean_a, covariance_a)
    b = require_moments(f"{who} (second pair)", mean_b, covariance_b, d=len(a.mean))
    one = _square(a.factor)
    other = _square(b.factor)
    left, _, right = np.linalg.svd(one.T @ other)
    return math.hypot(float(np.linalg.norm(a.mean - b.mean)), float(np.linalg.norm(one @ (left @ right) - other)))


def _square(factor: Floats) -> Floats:
    """Return a factor with columns of 0 behind, so that it is square; what is 0 up to rounding then is 0."""
    d, r = factor.shape
    return np.hstack([factor, np.zeros((d, d - r))])
