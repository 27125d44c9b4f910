"""Diversity of the counterfactuals of one set: by pairs, and by the volume that they span."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, Norm, Points, apart, embedded, pairwise, read_beside
from ceopt.metrics.proximity import OVER, scales_beside
from ceopt.oracle.rows import read
from ceopt.solvers.checks import Choice, Real, Refusal, check_arguments

_NAN = float("nan")


def continuous_diversity(
    S: Any,
    *,
    space: FeatureSpace | None = None,
    scale: Any = "mad",
    over: Literal["mean", "sum"] = "mean",
    data: Any = None,
    zero: float | None = None,
) -> float:
    r"""Mean over pairs of the scaled l1 distance of the numeric columns; nan for one row or no such column.

    .. math:: \binom{|S|}{2}^{-1} \sum_{i < l} \frac{1}{d_{num}} \sum_{j\ \text{numeric}} \frac{|c_{ij} - c_{lj}|}{s_j}

    Parameters
    ----------
    S
        Counterfactuals, in raw units.
    space, scale, over, data, zero
        As for :func:`~ceopt.metrics.proximity.continuous_proximity`.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As there.

    References
    ----------
    Mothilal, Sharma & Tan (2020), evaluation, diversity. CE-OCL's is ``scale="none", over="sum"``.

    Examples
    --------
    >>> continuous_diversity([[0, 0], [3, 0], [3, 4]], scale="none", over="sum")  # (3 + 7 + 4) / 3
    4.666666666666667
    """
    OVER.require("continuous_diversity", "over", over)
    rows, *rest = read_beside("continuous_diversity", space, data, S=S)
    if not rows.numeric or len(rows) < 2:
        return _NAN
    scales = scales_beside("continuous_diversity", [rows], scale, rest, zero)
    return float(getattr(apart(rows, *pairs(rows.numbers), scales), over)(axis=1).mean())


def categorical_diversity(S: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Mean over pairs of the share of categorical columns that differ; nan for one row or no such column.

    .. math:: \binom{|S|}{2}^{-1} \sum_{i < l} \frac{1}{d_{cat}} \sum_{j\ \text{categorical}} [c_{ij} \ne c_{lj}]

    Parameters
    ----------
    S, space
        As for :func:`~ceopt.metrics.proximity.categorical_proximity`, which says what it raises too.

    References
    ----------
    Mothilal, Sharma & Tan (2020), evaluation, diversity; the same in CE-OCL.

    Examples
    --------
    >>> import pandas as pd
    >>> categorical_diversity(pd.DataFrame({"job": ["cook", "cook", "baker"]}))  # (0 + 1 + 1) / 3
    0.6666666666666666
    """
    (rows,) = read("categorical_diversity", space, S=S)
    if not rows.categorical or len(rows) < 2:
        return _NAN
    return float(np.not_equal(*pairs(rows.codes)).mean())


def count_diversity(S: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Mean over pairs of the share of all columns that differ; nan for one row.

    .. math:: \binom{|S|}{2}^{-1} \sum_{i < l} \frac1d \sum_{j=1}^d [c_{ij} \ne c_{lj}]

    Parameters
    ----------
    S, space
        As for :func:`~ceopt.metrics.proximity.sparsity`, which says what it raises too.

    References
    ----------
    Mothilal, Sharma & Tan (2020), count diversity; CE-OCL calls it sparsity-based diversity.

    Examples
    --------
    >>> count_diversity([[0, 0], [3, 0], [3, 4]])  # (1 + 2 + 1) / (3 * 2)
    0.6666666666666666
    """
    (rows,) = read("count_diversity", space, S=S)
    if len(rows) < 2:
        return _NAN
    return float(np.hstack([np.not_equal(*pairs(rows.numbers)), np.not_equal(*pairs(rows.codes))]).mean())


def unique_fraction(S: Any, *, space: FeatureSpace | None = None) -> float:
    """Share of distinct rows: 1 where all differ, 1/n where all are equal.

    Parameters
    ----------
    S, space
        As for :func:`~ceopt.metrics.proximity.sparsity`, which says what it raises too.

    References
    ----------
    RecourseBench ``evaluation/diversity.py``.

    Examples
    --------
    >>> unique_fraction([[1, 2], [1, 2], [3, 4], [1, 2]])
    0.5
    """
    (rows,) = read("unique_fraction", space, S=S)
    distinct = set(zip(map(tuple, rows.numbers.tolist()), map(tuple, rows.codes.tolist()), strict=True))
    return len(distinct) / len(rows)


def pairs(table: Any) -> tuple[Any, Any]:
    """Return the two rows of each unordered pair, (n (n - 1) / 2, d) each."""
    first, second = np.triu_indices(len(table), 1)
    return table[first], table[second]


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

    In raw units, as :func:`~ceopt.metrics.distance.k_distance`. Equal rows are two counterfactuals, not one.

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
    Leofante & Potyka (2024), eq. (13). The released code has 0 for one counterfactual, and so has
    the suite "leofante_potyka2024".

    Examples
    --------
    The pairs are 3, 4 and 5 apart.

    >>> k_diversity([[0, 0], [3, 0], [3, 4]], "l2"), k_diversity([[0, 0]], "l2")
    (4.0, nan)
    """
    (points,) = embedded("k_diversity", norm, space=space, scale=scale, data=data, zero=zero, S=S)
    return over_pairs(points, norm)


def over_pairs(points: Points, norm: Norm) -> float:
    """Return the mean distance over the unordered pairs of points; nan for one."""
    if len(points) == 1:
        return _NAN
    return float(pairwise(points, points, norm)[np.triu_indices(len(points), 1)].mean())


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
