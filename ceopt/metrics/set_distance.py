"""Distances between two sets of counterfactuals: whether a small move of the person changed the answer."""

from __future__ import annotations

from typing import Any, Literal

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, Norm, embedded, pairwise
from ceopt.solvers.checks import Choice, check_arguments

__all__ = ["set_distance"]

_CHECKS = {"kind": Choice(("sum", "max")), "norm": NORM}


def set_distance(
    A: Any,
    B: Any,
    kind: Literal["sum", "max"] = "sum",
    norm: Norm = "l1",
    *,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    data: Any = None,
    zero: float | None = None,
) -> float:
    r"""Distance between two sets by each one's nearest in the other; lower is more robust.

    .. math::
        D_\Sigma &= \frac{1}{2|A|} \sum_{a \in A} \min_{b \in B} d(a, b)
                  + \frac{1}{2|B|} \sum_{b \in B} \min_{a \in A} d(b, a) \\
        D_{\max} &= \tfrac12 \Big( \max_{a \in A} \min_{b \in B} d(a, b) + \max_{b \in B} \min_{a \in A} d(b, a) \Big)

    :math:`D_\Sigma \le D_{\max}`; for two single points both are their distance. Symmetric and 0 for equal sets, but no
    metric: the triangle inequality can fail. The greater of the two maxima, not their mean, would be the Hausdorff
    distance.

    Parameters
    ----------
    A, B
        Sets of counterfactuals, such as those of a person and of one with nearly the same values.
    kind
        "sum" or "max".
    norm, space, scale, data, zero
        As for :func:`~ceopt.metrics.distance.distance`; raw units by default.

    Raises
    ------
    UnknownNameError
        Another kind or norm.
    InvalidTypeError, InvalidValueError
        As for ``distance``; an empty set has no distance and is refused.

    References
    ----------
    Leofante & Potyka (2024), eq. (4) and (5), Lemma 1; specification 10.1.

    Examples
    --------
    From A, the nearest are 1 and 3 away, from B 1: sums 4/4 + 1/2, maxima (3 + 1)/2.

    >>> A, B = [[0.0], [4.0]], [[1.0]]
    >>> set_distance(A, B, "sum"), set_distance(A, B, "max")
    (1.5, 2.0)
    """
    check_arguments("set_distance", _CHECKS, locals())
    a, b = embedded("set_distance", norm, space=space, scale=scale, data=data, zero=zero, A=A, B=B)
    apart = pairwise(a, b, norm)
    from_a, from_b = apart.min(axis=1), apart.min(axis=0)
    if kind == "max":
        return float(0.5 * (from_a.max() + from_b.max()))
    return float(0.5 * (from_a.mean() + from_b.mean()))
