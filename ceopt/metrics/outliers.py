"""Local outlier factor of a counterfactual: the density around its neighbours beside the density around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, NORMS, Norm, embedded
from ceopt.metrics.neighbours import require_count
from ceopt.metrics.rows import Floats

__all__ = ["lof"]


def lof(
    S: Any,
    data: Any,
    norm: Norm = "l2",
    *,
    k: int = 20,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    zero: float | None = None,
) -> Floats:
    r"""Local outlier factor of each counterfactual with respect to people, (n,): about 1 inside, above 1 outside.

    .. math:: \text{LOF}_k(c) = \frac1k \sum_{i \in N_k(c)} \frac{\mathrm{lrd}(d_i)}{\mathrm{lrd}(c)}, \qquad
        \mathrm{lrd}(p)^{-1} = \frac1k \sum_{i \in N_k(p)} \max\{d(p, d_i), \text{k-dist}(d_i)\}

    Neighbours are people, among them one who equals c; people's own densities do not see the counterfactuals
    ("novelty"). Densities are kept finite by adding 1e-10 to mean distances, so duplicates can make the factor huge.
    scikit-learn's ``score_samples`` is minus this number.

    Parameters
    ----------
    S, data
        Counterfactuals and people.
    k
        How many neighbours.
    norm, space, scale, zero
        As for :func:`~ceopt.metrics.distance.distance`. In raw units one large column decides who is near.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As ``distance``; k is not below the number of people.

    References
    ----------
    Breunig et al. (2000), LOF; used by DACE (Kanamori et al. 2020) and CEL. The released code of Leofante & Potyka
    takes scikit-learn's flag, which is 1 for a factor up to 1.5 and -1 above.

    Examples
    --------
    People at 0, 1, 2 with k = 1. From 4 the nearest is 2, at distance 2, whose own nearest is 1 away:
    lrd(4) = 1/2 and lrd(2) = 1.

    >>> lof([[4.0]], [[0.0], [1.0], [2.0]], k=1).round(6).tolist()
    [2.0]
    """
    from sklearn.neighbors import LocalOutlierFactor

    NORM.require("lof", "norm", norm)
    points, people = embedded("lof", norm, space=space, scale=scale, zero=zero, data=data, include_data=True, S=S)
    require_count("lof", k, len(people) - 1, f"{len(people)} rows of data")
    fitted = LocalOutlierFactor(n_neighbors=k, metric=NORMS[norm], novelty=True).fit(people)
    return np.asarray(-fitted.score_samples(points))
