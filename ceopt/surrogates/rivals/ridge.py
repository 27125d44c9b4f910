"""Weighted ridge regression, with the kernel and the penalty that LIME takes."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from sklearn.linear_model import Ridge

from ceopt.surrogates.legal_values import Floats

__all__ = ["RIDGE", "lime_kernel", "lime_width", "weighted_ridge"]

#: LIME's default penalty.
RIDGE: Final = 1.0
_WIDTH: Final = 0.75  # of the kernel, times the root of the number of columns: LIME's default for tables


def lime_width(n_columns: int) -> float:
    """Return LIME's default width of the kernel."""
    return _WIDTH * math.sqrt(n_columns)


def lime_kernel(away: Floats, width: float) -> Floats:
    r"""Return :math:`\sqrt{\exp(-\lVert u_i \rVert^2 / h^2)}` for rows (m, p) of moves from the row in question."""
    return np.asarray(np.exp(-0.5 * (away**2).sum(axis=1) / width**2))


def weighted_ridge(points: Floats, values: Floats, weights: Floats | None, alpha: float) -> tuple[Floats, float]:
    r"""Return the coefficients (p,) and the intercept, which is not penalised, of a ridge regression.

    .. math:: \min_{\beta, c} \sum_i k_i (y_i - c - \beta^\top u_i)^2 + \alpha \lVert \beta \rVert^2
    """
    found = Ridge(alpha=alpha).fit(points, values, sample_weight=weights)
    return np.asarray(found.coef_, dtype=np.float64), float(found.intercept_)
