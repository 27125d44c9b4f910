"""Diversity as the volume that a set spans: the determinant of a similarity matrix."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, Norm, embedded, pairwise
from ceopt.solvers.checks import Choice, Real, Refusal, check_arguments

__all__ = ["dpp_determinant"]

_KERNELS = {"inverse": lambda apart: 1.0 / (1.0 + apart), "exponential": lambda apart: np.exp(-apart)}
_NO_JITTER = Refusal("a jitter of at least 0", "Give 1e-4 or 0.")
_CHECKS = {
    "norm": NORM,
    "kernel": Choice(_KERNELS),
    "jitter": Real(at_least=0.0, finite=True, otherwise=_NO_JITTER),
}


def dpp_determinant(
    S: Any,
    norm: Norm = "l2",
    *,
    kernel: Literal["inverse", "exponential"] = "inverse",
    jitter: float = 0.0,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    data: Any = None,
    zero: float | None = None,
) -> float:
    r"""Diversity as a determinant of similarities: 0 if two rows are equal, near 1 if all are far apart.

    .. math:: \det K, \qquad K_{il} = \frac{1}{1 + d(c_i, c_l)} \ \text{or}\ e^{-d(c_i, c_l)},
        \qquad K_{ii} = 1 + \text{jitter}

    It depends on units (``scale``), and shrinks with every row that is added: compare sets of one size.

    Parameters
    ----------
    S, norm, space, scale, data, zero
        As for :func:`~ceopt.metrics.distance.distance`.
    kernel
        "inverse" as in both sources, or "exponential".
    jitter
        Added to the diagonal; 1e-4 in the code of DiCE and COPA, 0 in the papers.

    Raises
    ------
    UnknownNameError
        Another norm, kernel or scale.
    InvalidTypeError, InvalidValueError
        As ``distance``; a jitter that is negative.

    References
    ----------
    Mothilal, Sharma & Tan (2020), DPP diversity (MAD-scaled l1); Bui, Nguyen & Nguyen (2022), eq. (5) (l2, raw).

    Examples
    --------
    Two points at distance 1: 1 - (1/2)^2.

    >>> dpp_determinant([[0.0], [1.0]])
    0.75
    """
    check_arguments("dpp_determinant", _CHECKS, locals())
    (points,) = embedded("dpp_determinant", norm, space=space, scale=scale, data=data, zero=zero, S=S)
    similar = _KERNELS[kernel](pairwise(points, points, norm))
    return float(np.linalg.det(similar + jitter * np.eye(len(points))))
