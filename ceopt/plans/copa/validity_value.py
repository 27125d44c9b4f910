"""The validity value: the standard deviations that the parameters may move before a counterfactual of a plan fails."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import Moments, require_moments, require_plan
from ceopt.formulations.programs.parts import Floats

__all__ = ["margins", "spreads", "validity_value"]

_ROUNDING = 4 * float(np.finfo(float).eps)  # times d: what the sum of d products may be off, relative to their sizes


def validity_value(plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike) -> float:
    r"""Return the greatest r for which a plan is valid for all parameters within r standard deviations of the mean.

    .. math::
        v = \max \{ r : X (\hat\mu + F u) \ge 0 \text{ for all } \lVert u \rVert \le r \}
        = \min_j \frac{\hat\mu^\top x_j}{\lVert F^\top x_j \rVert}, \qquad \hat\Sigma = F F^\top.

    A counterfactual whose score does not vary, :math:`F^\top x_j = 0`, holds the plan back only if it fails at the
    mean. The value is inf if no score varies, and nan where the plan fails at the mean: there is no such r. What is
    0 up to the rounding of its own sum counts as 0.

    Parameters
    ----------
    plan
        Shape (J, d): one counterfactual a row, favourable where its product with the parameters is at least 0.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).

    Raises
    ------
    InvalidValueError
        Shapes disagree, a number is not finite, or the covariance is none.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, lemma 4.1.

    Examples
    --------
    >>> from ceopt.plans import validity_value
    >>> validity_value([[1, 0], [0, 1]], mean=[3, 1], covariance=[[1, 0], [0, 0.25]])
    2.0
    >>> validity_value([[1, 0], [0, -1]], mean=[3, 1], covariance=[[1, 0], [0, 0.25]])
    nan
    """
    moments = require_moments("validity_value", mean, covariance)
    x = require_plan("validity_value", plan, d=len(moments.mean))
    m = margins(x, moments)
    s = spreads(x, moments)
    if (m < 0.0).any():
        return math.nan
    varies = s > 0.0
    return float((m[varies] / s[varies]).min(initial=math.inf))


def margins(plan: Floats, moments: Moments) -> Floats:
    """Return the scores at the mean, shape (J,); 0 where no more than the rounding of the sum."""
    found = plan @ moments.mean
    noise = _ROUNDING * plan.shape[1] * (np.abs(plan) @ np.abs(moments.mean))
    return np.where(np.abs(found) <= noise, 0.0, found)


def spreads(plan: Floats, moments: Moments) -> Floats:
    """Return the standard deviations of the scores, shape (J,); 0 where no more than the rounding of the sum."""
    found = np.einsum("ja,ja->j", plan @ moments.covariance, plan)
    size = np.abs(plan)
    noise = _ROUNDING * plan.shape[1] * np.einsum("ja,ja->j", size @ np.abs(moments.covariance), size)
    return np.sqrt(np.where(found <= noise, 0.0, found))
