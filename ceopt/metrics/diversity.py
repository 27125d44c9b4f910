"""Diversity of the counterfactuals of one set, by pairs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.proximity import OVER, scaled
from ceopt.metrics.rows import Floats, read

__all__ = ["categorical_diversity", "continuous_diversity", "count_diversity", "unique_fraction"]

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
    rows, *rest = read("continuous_diversity", space, S=S, **({} if data is None else {"data": data}))
    if not rows.numeric or len(rows) < 2:
        return _NAN
    (numbers,) = scaled("continuous_diversity", [rows], scale, rest, zero)
    moves = np.abs(_pairs(numbers))
    return float((moves.sum(axis=1) if over == "sum" else moves.mean(axis=1)).mean())


def categorical_diversity(S: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Mean over pairs of the share of categorical columns that differ; nan for one row or no such column.

    .. math:: \binom{|S|}{2}^{-1} \sum_{i < l} \frac{1}{d_{cat}} \sum_{j\ \text{categorical}} [c_{ij} \ne c_{lj}]

    Parameters
    ----------
    S, space
        As for :func:`~ceopt.metrics.proximity.categorical_proximity`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        An empty set, other columns, a missing value.

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
    return float((_pairs(rows.codes) != 0).mean())


def count_diversity(S: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Mean over pairs of the share of all columns that differ; nan for one row.

    .. math:: \binom{|S|}{2}^{-1} \sum_{i < l} \frac1d \sum_{j=1}^d [c_{ij} \ne c_{lj}]

    Parameters
    ----------
    S, space
        As for :func:`~ceopt.metrics.sparsity.sparsity`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        An empty set, other columns, a missing value.

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
    return float(np.hstack([_pairs(rows.numbers) != 0, _pairs(rows.codes) != 0]).mean())


def unique_fraction(S: Any, *, space: FeatureSpace | None = None) -> float:
    """Share of distinct rows: 1 where all differ, 1/n where all are equal.

    Parameters
    ----------
    S, space
        As for :func:`~ceopt.metrics.sparsity.sparsity`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        An empty set, other columns, a missing value.

    References
    ----------
    RecourseBench ``evaluation/diversity.py``.

    Examples
    --------
    >>> unique_fraction([[1, 2], [1, 2], [3, 4], [1, 2]])
    0.5
    """
    (rows,) = read("unique_fraction", space, S=S)
    distinct = {(*numbers, *codes) for numbers, codes in zip(rows.numbers.tolist(), rows.codes.tolist(), strict=True)}
    return len(distinct) / len(rows)


def _pairs(table: Any) -> Floats:
    """Return the differences of all unordered pairs of rows, (n (n - 1) / 2, d)."""
    first, second = np.triu_indices(len(table), 1)
    return np.asarray(table[first] - table[second])
