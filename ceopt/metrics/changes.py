"""The changes that a counterfactual asks for: how many, how many it could do without, and how many nobody can make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.checking.answer_check import broken_moves
from ceopt.formulations.space.space import FeatureSpace, require_space
from ceopt.metrics.predictions import accepted, table_of
from ceopt.metrics.rows import TableRows, read

__all__ = ["broken_rules", "changed_count", "differs", "immutable_changes", "redundancy", "sparsity"]


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
    *changes*, or counts encoded columns: see docs/reference/metrics.md.

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
    start = table_of(x, space)
    table = table_of(S, space)
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
    if not kept:
        return cells.infer_objects()
    return as_before


def immutable_changes(x: Any, S: Any, space: FeatureSpace) -> NDArray[np.int64]:
    r"""How many immutable columns each counterfactual changes, (n,); 0 is needed.

    .. math:: |\{ j\ \text{immutable} : c_j \ne x_j \}|, \qquad
        \text{numbers being equal where}\ |c_j - x_j| \le 10^{-8} + 10^{-5} |x_j|

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        Says which columns are immutable.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No space, an empty set, a missing value.

    References
    ----------
    CARLA ``violations.py`` (Pawelczyk et al. 2021), whose tolerance is numpy's ``isclose``.

    Examples
    --------
    >>> import ceopt
    >>> age = ceopt.Feature("age", kind="integer", mutable=False)
    >>> space = ceopt.FeatureSpace([age, ceopt.Feature("pay", kind="integer")])
    >>> immutable_changes([40, 1], [[40, 2], [41, 3]], space).tolist()
    [0, 1]
    """
    require_space("immutable_changes", space)
    home, rows = read("immutable_changes", space, x=x, S=S)
    is_fixed_number = [not space[name].mutable for name in rows.numeric]
    is_fixed_category = [not space[name].mutable for name in rows.categorical]
    moved = ~np.isclose(rows.numbers, home.numbers)
    switched = rows.codes != home.codes
    return np.asarray(moved[:, is_fixed_number].sum(axis=1) + switched[:, is_fixed_category].sum(axis=1))


def broken_rules(x: Any, S: Any, space: FeatureSpace) -> NDArray[np.int64]:
    """Count the rules of the space that each counterfactual breaks, (n,); 0 is needed.

    Bounds set by the user, immutable columns, directions, steps, whole numbers, levels: one each per column, compared
    exactly. :func:`ceopt.verify` says which, and checks constraints and the model too.

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        The rules.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No space, an empty set, a missing value.

    References
    ----------
    Share of rows with one or more: "actionability" of RecourseBench, ``(broken_rules(...) > 0).mean()``.

    Examples
    --------
    >>> import ceopt
    >>> space = ceopt.FeatureSpace([ceopt.Feature("age", kind="integer", direction="increasing", upper=99)])
    >>> broken_rules([40], [[41], [39.5], [100]], space).tolist()
    [0, 2, 1]
    """
    require_space("broken_rules", space)
    home, rows = read("broken_rules", space, x=x, S=S)
    (before,) = _points(home)
    return np.array(
        [len(broken_moves(space, before, point, seen_steps=False)) for point in _points(rows)], dtype=np.int64
    )


def _points(rows: TableRows) -> list[dict[str, float]]:
    """Return rows as coordinates by name; the code of a level is its rank."""
    names = (*rows.numeric, *rows.categorical)
    coordinates = np.hstack([rows.numbers, rows.codes.astype(np.float64)])
    return [dict(zip(names, row, strict=True)) for row in coordinates.tolist()]
