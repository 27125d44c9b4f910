"""Changes that a counterfactual could have done without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.asking import accepted, table_of
from ceopt.metrics.rows import read
from ceopt.metrics.sparsity import differs

__all__ = ["redundancy"]


def redundancy(x: Any, S: Any, model: Any, target: Any, *, space: FeatureSpace | None = None) -> NDArray[np.int64]:
    r"""How many changed columns may each be taken back alone without losing the target, (n,); lower is better.

    .. math:: \big|\{ j : c_j \ne x_j,\; f(c_1, \dots, x_j, \dots, c_d) \in T \}\big|

    One at a time: of two changes of which either would do, both count. A counterfactual that misses the target has
    redundant changes too, if taking one back reaches it.

    Parameters
    ----------
    x, S
        Factual and counterfactuals. A column is what the tables have: one-hot columns are taken back one by one, as in
        CARLA, which leaves rows that no person can have; raw columns as a whole.
    model, target, space
        As for :func:`~ceopt.metrics.validity.validity`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As there.

    References
    ----------
    CARLA ``redundancy.py`` (Pawelczyk et al. 2021); ``minimality`` of the R package counterfactuals, on raw columns.
    In CounterfactualExplanations.jl the name means the share of columns left as they are.

    Examples
    --------
    Favoured from a sum of 4 on: of (3, 2) the second change may go, of (4, 4) either.

    >>> redundancy([1, 1], [[3, 2], [4, 4]], lambda rows: rows.sum(axis=1) >= 4, True).tolist()
    [1, 2]
    """
    home, rows = read("redundancy", space, x=x, S=S)
    changed = differs(home, rows)
    start, table = table_of(x, space), table_of(S, space)
    frame, one = _named(table, start)
    counts = np.zeros(len(frame), dtype=np.int64)
    for j, name in enumerate((*home.numeric, *home.categorical)):
        which = np.flatnonzero(changed[:, j])
        if len(which):
            back = frame.iloc[which].copy()
            back[name] = _cells(one[name].iloc[0], back[name])
            asked = back if isinstance(table, pd.DataFrame) else back.to_numpy()
            counts[which] += accepted("redundancy", model, asked, target, space)
    return counts


def _named(table: Any, start: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both as frames with the same names: an array takes those of the other, else its positions."""
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)
    one = start if isinstance(start, pd.DataFrame) else pd.DataFrame(np.atleast_2d(np.asarray(start)))
    if isinstance(table, pd.DataFrame) and not isinstance(start, pd.DataFrame):
        one = one.set_axis(frame.columns, axis=1)
    elif isinstance(start, pd.DataFrame) and not isinstance(table, pd.DataFrame):
        frame = frame.set_axis(one.columns, axis=1)
    return frame, one


def _cells(value: Any, column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a value repeated, in the column's dtype where that holds it."""
    cells = pd.Series([value] * len(column), index=column.index, dtype=object)
    try:
        as_before = cells.astype(column.dtype)
    except (TypeError, ValueError):
        return cells.infer_objects()
    kept = as_before.notna().all() and bool((as_before.astype(object) == cells).all())
    return as_before if kept else cells.infer_objects()
