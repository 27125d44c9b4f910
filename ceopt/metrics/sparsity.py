"""Sparsity: the number of columns that a counterfactual changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.rows import TableRows, read

__all__ = ["changed_count", "differs", "sparsity"]


def sparsity(x: Any, S: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Share of columns left as they are, on average; higher is sparser.

    .. math:: 1 - \frac{1}{|S|\, d} \sum_{c \in S} \sum_{j=1}^d [c_j \ne x_j]

    Of raw columns, a category being one of them; compared exactly, so that rounding noise counts as a change.

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        What the columns are. It does not matter for the value, only for what is accepted.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        An empty set, other columns, a missing value.

    References
    ----------
    Mothilal, Sharma & Tan (2020), evaluation, sparsity; the same in CE-OCL. Elsewhere the name means the share that
    *changes*, or counts encoded columns: see docs/metrics.md.

    Examples
    --------
    One of two columns changes, then both: 1 - 3/4.

    >>> sparsity([1, 2], [[1, 3], [0, 0]])
    0.25
    """
    home, rows = read("sparsity", space, x=x, S=S)
    return float(1.0 - differs(home, rows).mean())


def changed_count(x: Any, S: Any, *, space: FeatureSpace | None = None) -> NDArray[np.int64]:
    r"""How many raw columns of each counterfactual differ from the factual, (n,); lower is sparser.

    .. math:: \sum_j [c_j \ne x_j]

    Parameters
    ----------
    x, S, space
        As for :func:`sparsity`.

    References
    ----------
    The l0 distance of raw columns; ``no_changed`` in the R package counterfactuals.

    Examples
    --------
    >>> changed_count([1, 2], [[1, 3], [0, 0]]).tolist()
    [1, 2]
    """
    home, rows = read("changed_count", space, x=x, S=S)
    return np.asarray(differs(home, rows).sum(axis=1))


def differs(home: TableRows, rows: TableRows) -> NDArray[np.bool_]:
    """Return which columns of each row differ from the one row, numbers first, (n, d)."""
    return np.hstack([rows.numbers != home.numbers, rows.codes != home.codes])
