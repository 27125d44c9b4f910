"""Mean distance of a set of counterfactuals from the person."""

from __future__ import annotations

from typing import Any

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, Norm, embedded, pairwise

__all__ = ["k_distance"]


def k_distance(
    x: Any,
    S: Any,
    norm: Norm = "l1",
    *,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    data: Any = None,
    zero: float | None = None,
) -> float:
    r"""Mean distance of the counterfactuals from the factual; lower is cheaper.

    .. math:: \text{k-distance}(x, S) = \frac{1}{|S|} \sum_{c \in S} d(x, c)

    In raw units; columns of different units are added as they are unless ``scale`` divides them. The published code
    calls its l1 normalised, but divides by the number of rows of one point, which is 1: it is this plain sum.

    Parameters
    ----------
    x, S, norm, space, scale, data, zero
        As for :func:`~ceopt.metrics.distance.distance`.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As there; an empty set is refused.

    References
    ----------
    Leofante & Potyka (2024), eq. (12), after Mohammadi et al. (2021); specification 10.1.

    Examples
    --------
    The distances are 3 + 4 = 7 and 1.

    >>> k_distance([0, 0], [[3, 4], [1, 0]], "l1")
    4.0
    """
    NORM.require("k_distance", "norm", norm)
    home, points = embedded("k_distance", norm, space=space, scale=scale, data=data, zero=zero, x=x, S=S)
    return float(pairwise(home, points, norm).mean())
