"""Mean distance between the counterfactuals of one set."""

from __future__ import annotations

from typing import Any

import numpy as np

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, Norm, embedded, pairwise

__all__ = ["k_diversity"]


def k_diversity(
    S: Any,
    norm: Norm = "l1",
    *,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    data: Any = None,
    zero: float | None = None,
) -> float:
    r"""Mean distance over the unordered pairs of a set; nan for one counterfactual. Higher is more diverse.

    .. math:: \text{k-diversity}(S) = \binom{|S|}{2}^{-1} \sum_{i < l} d(c_i, c_l)

    In raw units, as :func:`~ceopt.metrics.k_distance.k_distance`. Equal rows are two counterfactuals, not one.

    Parameters
    ----------
    S, norm, space, scale, data, zero
        As for :func:`~ceopt.metrics.distance.distance`.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As there; an empty set is refused.

    References
    ----------
    Leofante & Potyka (2024), eq. (13); specification 10.1. The released code has 0 for one counterfactual, and so has
    the suite "leofante_potyka2024".

    Examples
    --------
    The pairs are 3, 4 and 5 apart.

    >>> k_diversity([[0, 0], [3, 0], [3, 4]], "l2"), k_diversity([[0, 0]], "l2")
    (4.0, nan)
    """
    NORM.require("k_diversity", "norm", norm)
    (points,) = embedded("k_diversity", norm, space=space, scale=scale, data=data, zero=zero, S=S)
    upper = np.triu_indices(len(points), 1)
    return float(pairwise(points, points, norm)[upper].mean()) if len(points) > 1 else float("nan")
