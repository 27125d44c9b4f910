"""Distance of a counterfactual from mixtures of people."""

from __future__ import annotations

from typing import Any

import numpy as np

from ceopt.formulations.constraints.hull.distance import hull_distance as nearest
from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, Norm, embedded
from ceopt.metrics.rows import Floats

__all__ = ["hull_distance"]


def hull_distance(
    S: Any,
    data: Any,
    norm: Norm = "l1",
    *,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    zero: float | None = None,
) -> Floats:
    r"""Distance of each counterfactual to the convex hull of people, (n,): 0 inside.

    .. math:: \min_{s, \lambda} \{ \lVert s \rVert_p : c + s = \textstyle\sum_i \lambda_i d_i,\;
        \lambda \ge 0,\; 1^\top \lambda = 1 \}

    Columns are divided by their scales, so the distance is in raw units by default; a category stands for its 0/1
    columns, of which a switch moves two. With ``scale="range"`` and a space it is what ``Hull(data, radius=...)``
    bounds. Exact to 1e-9, by small linear programs (l1, linf) or least squares (l2).

    Parameters
    ----------
    S
        Counterfactuals.
    data
        The rows that span the hull, usually those of the target class.
    norm, space, scale, zero
        As for :func:`~ceopt.metrics.distance.distance`, save for the two 0/1 columns.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As ``distance``.

    References
    ----------
    Maragno, Roeber & Birbil (2022), eq. (3); specification 9.1.

    Examples
    --------
    From (2, 2), the hull of (0, 0), (2, 0), (0, 2) is nearest at (1, 1), or in l1 also at (2, 0).

    >>> corners = [[0, 0], [2, 0], [0, 2]]
    >>> hull_distance([[2, 2], [0.5, 0.5]], corners, "l1").round(9).tolist()
    [2.0, 0.0]
    >>> hull_distance([[2, 2]], corners, "linf").round(9).tolist()
    [1.0]
    """
    NORM.require("hull_distance", "norm", norm)
    points, people = embedded(
        "hull_distance", norm, space=space, scale=scale, zero=zero, corner=1.0, data=data, include_data=True, S=S
    )
    people = np.unique(people, axis=0)
    return np.array([nearest(people, point, norm)[0] for point in points])
