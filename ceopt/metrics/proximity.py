"""Proximity of the counterfactuals to the person: numbers and categories apart, as one mixed distance, or as a cost."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.costs import AbstractCost, L1Mahalanobis, Mahalanobis, Percentile, Sum, parse_cost
from ceopt.formulations.space.feature import MISSING, is_gap
from ceopt.formulations.space.space import FeatureSpace, complete_rows, require_space
from ceopt.metrics.distance import apart, read_beside, scales_of
from ceopt.oracle.model import accepted, broken_moves, rows_for_predict
from ceopt.oracle.rows import TableRows, points_of, read
from ceopt.solvers.checks import Choice, Floats
from ceopt.solvers.errors import InvalidValueError

# ==== The changes that a counterfactual asks for ======================================================================


def sparsity(x: Any, S: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Share of columns left as they are, on average; higher is sparser.

    .. math:: 1 - \frac{1}{|S|\, d} \sum_{c \in S} \sum_{j=1}^d [c_j \ne x_j]

    Of raw columns, a category being one of them; compared exactly, so that rounding noise counts as a change. A missing
    cell equals a missing cell, and one that is filled in is one change.

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
    factual, rows = read("sparsity", space, x=x, S=S)
    return float(1.0 - differs(factual, rows).mean())


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
    factual, rows = read("changed_count", space, x=x, S=S)
    return np.asarray(differs(factual, rows).sum(axis=1))


def differs(factual: TableRows, rows: TableRows) -> NDArray[np.bool_]:
    """Return which columns of each row differ from the one row, numbers first, (n, d)."""
    return np.hstack([rows.numbers != factual.numbers, rows.codes != factual.codes])


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
    factual, rows = read("redundancy", space, x=x, S=S)
    changed = differs(factual, rows)
    start = rows_for_predict(x, space)
    table = rows_for_predict(S, space)
    frame, one = _named(table, start)
    counts = np.zeros(len(frame), dtype=np.int64)
    for j, name in enumerate((*factual.numeric, *factual.categorical)):
        which = np.flatnonzero(changed[:, j])
        if len(which):
            undone = frame.iloc[which].copy()
            undone[name] = _cells(one[name].iloc[0], undone[name])
            asked = undone if isinstance(table, pd.DataFrame) else undone.to_numpy()
            counts[which] += accepted("redundancy", model, asked, target, space)
    return counts


def _named(table: Any, start: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both as frames with the same names: an array takes those of the other, else its positions."""
    frame = pd.DataFrame(table)
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
    if is_gap(value):
        kept = bool(as_before.isna().all())
    else:
        kept = bool(as_before.notna().all()) and bool((as_before.astype(object) == cells).all())
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
    factual, rows = read("immutable_changes", space, x=x, S=S)
    is_fixed_number = [not space[name].mutable for name in rows.numeric]
    is_fixed_category = [not space[name].mutable for name in rows.categorical]
    moved = ~np.isclose(rows.numbers, factual.numbers)  # an infinite one is a missing cell, and close to itself
    switched = rows.codes != factual.codes
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
    factual, rows = read("broken_rules", space, x=x, S=S)
    (before,) = _points_of_rows(factual)
    return np.array(
        [len(broken_moves(space, before, point, seen_steps=False)) for point in _points_of_rows(rows)], dtype=np.int64
    )


def _points_of_rows(rows: TableRows) -> list[dict[str, float]]:
    """Return rows as coordinates by name; the code of a level is its rank."""
    names = (*rows.numeric, *rows.categorical)
    ranks = np.where(rows.codes < 0, MISSING, rows.codes)
    coordinates = np.hstack([rows.numbers, ranks])
    return [dict(zip(names, row, strict=True)) for row in coordinates.tolist()]


# ==== Proximity of the counterfactuals to the person ==================================================================

#: How columns are put together.
OVER = Choice(("mean", "sum"))


def continuous_proximity(
    x: Any,
    S: Any,
    *,
    space: FeatureSpace | None = None,
    scale: Any = "mad",
    over: Literal["mean", "sum"] = "mean",
    data: Any = None,
    zero: float | None = None,
) -> float:
    r"""Minus the average scaled l1 distance over the numeric columns: 0 at best, nan where there are none.

    .. math:: -\frac{1}{|S|} \sum_{c \in S} \frac{1}{d_{num}} \sum_{j\ \text{numeric}} \frac{|c_j - x_j|}{s_j}

    Between an amount and a missing cell or a code, a column's part is its ``fill`` (1 without a space).

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        What the columns are; continuous and integer ones are numeric.
    scale
        "mad" as in the source; "none" for raw units, "std", "range", a mapping or an array.
    over
        "mean" of the columns as in the source, or their "sum" (no :math:`1/d_{num}`).
    data
        Rows that the scale is taken from, without those that have missing cells; by default what the space knows.
    zero
        In place of a scale of zero (1.0 in DiCE's code), which is refused otherwise.

    Raises
    ------
    UnknownNameError
        Another scale or ``over``.
    InvalidTypeError, InvalidValueError
        An empty set, a missing value, no data, a scale of zero in a column that moves.

    References
    ----------
    Mothilal, Sharma & Tan (2020), evaluation, proximity. CE-OCL's is ``scale="none", over="sum"``.

    Examples
    --------
    MADs are 1 and 10; the row moves by 2 and 5: -(2/1 + 5/10)/2.

    >>> people = [[1, 10], [2, 20], [3, 30]]
    >>> continuous_proximity([2, 20], [[4, 25]], data=people)
    -1.25
    >>> continuous_proximity([2, 20], [[4, 25]], scale="none", over="sum")
    -7.0
    """
    OVER.require("continuous_proximity", "over", over)
    own, rows, *rest = read_beside("continuous_proximity", space, data, x=x, S=S)
    if not rows.numeric:
        return float("nan")
    scales = scales_beside("continuous_proximity", [own, rows], scale, rest, zero)
    return float(-getattr(apart(rows, rows.numbers, own.numbers, scales), over)(axis=1).mean())


def categorical_proximity(x: Any, S: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Share of the categorical columns left as they are, on average: 1 at best, nan where there are none.

    .. math:: 1 - \frac{1}{|S|\, d_{cat}} \sum_{c \in S} \sum_{j\ \text{categorical}} [c_j \ne x_j]

    Categorical, binary and ordinal columns; an ordinal one is equal or not, however far it moves.

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        What the columns are. Without one: columns of a frame that are not of a number dtype.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        An empty set, other columns, a missing value.

    References
    ----------
    Mothilal, Sharma & Tan (2020), evaluation, proximity; the same in CE-OCL.

    Examples
    --------
    >>> import pandas as pd
    >>> S = pd.DataFrame({"age": [31, 30], "job": ["cook", "baker"], "owner": [True, True]})
    >>> categorical_proximity({"age": 30, "job": "cook", "owner": False}, S)  # 1 - (1 + 2) / 4
    0.25
    """
    factual, rows = read("categorical_proximity", space, x=x, S=S)
    if not rows.categorical:
        return float("nan")
    return float(1.0 - (rows.codes != factual.codes).mean())


def scales_beside(who: str, tables: list[TableRows], scale: Any, data: list[TableRows], zero: float | None) -> Floats:
    """Return the scales of numeric columns; ``data`` holds the table of people, if there is one."""
    return scales_of(who, tables, scale, data=next(iter(data), None), zero=zero)


def gower(
    x: Any,
    S: Any,
    *,
    space: FeatureSpace | None = None,
    data: Any = None,
    scale: Any = "range",
    zero: float | None = None,
) -> Floats:
    r"""Gower's distance of each counterfactual from the factual, (n,), between 0 and 1 inside the data's range.

    .. math:: \frac1d \Big( \sum_{j\ \text{numeric}} \frac{|c_j - x_j|}{r_j}
        + \sum_{j\ \text{categorical}} [c_j \ne x_j] \Big)

    Ordinal and binary columns count as categories. Beyond the range of the data a column counts more than 1. A number
    that is missing or a code is its column's ``fill`` from any amount, where Gower leaves the column out, and a missing
    category is one more category.

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        What the columns are.
    data
        Rows whose ranges :math:`r_j` divide, without those that have missing cells; by default what the space knows.
    scale, zero
        As for :func:`~ceopt.metrics.distance.distance`.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        Another scale; an empty set, a missing value, no data, a range of zero in a column that moves.

    References
    ----------
    Gower (1971), a general coefficient of similarity; used by MOC and the R package counterfactuals.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 60], "job": ["cook", "baker"]})
    >>> gower({"age": 30, "job": "cook"}, pd.DataFrame({"age": [40], "job": ["baker"]}), data=people).tolist()
    [0.625]
    """
    numbers, mismatches = _parts("gower", x, S, space, data, scale, zero)
    return np.asarray((numbers.sum(axis=1) + mismatches.sum(axis=1)) / (numbers.shape[1] + mismatches.shape[1]))


def heom(
    x: Any,
    S: Any,
    *,
    space: FeatureSpace | None = None,
    data: Any = None,
    scale: Any = "range",
    zero: float | None = None,
    form: Literal["euclidean", "sum"] = "euclidean",
) -> Floats:
    r"""Heterogeneous euclidean-overlap metric of each counterfactual to the factual, (n,).

    .. math:: \sqrt{\sum_j t_j^2} \ \text{("euclidean")} \quad\text{or}\quad \sum_j t_j \ \text{("sum")}, \qquad
        t_j = |c_j - x_j| / r_j \ \text{or}\ [c_j \ne x_j]

    A number that is missing or a code is its column's ``fill`` from any amount (1 by default, as published), and 0 from
    its equal (published: 1).

    Parameters
    ----------
    x, S, space, data, scale, zero
        As for :func:`gower`; NICE also offers ``scale="std"``.
    form
        "euclidean" as published, "sum" as in NICE.

    Raises
    ------
    UnknownNameError
        Another form or scale.
    InvalidTypeError, InvalidValueError
        As :func:`gower`.

    References
    ----------
    Wilson & Martinez (1997), improved heterogeneous distance functions; NICE (Brughmans, Leyman & Martens 2024).

    Examples
    --------
    >>> x, S, people = [0, 0], [[3, 40]], [[0, 0], [10, 100]]
    >>> heom(x, S, data=people).tolist(), heom(x, S, data=people, form="sum").tolist()
    ([0.5], [0.7])
    """
    Choice(("euclidean", "sum")).require("heom", "form", form)
    parts = np.hstack(_parts("heom", x, S, space, data, scale, zero))
    if form == "sum":
        return np.asarray(parts.sum(axis=1))
    return np.asarray(np.sqrt((parts**2).sum(axis=1)))


def _parts(  # noqa: PLR0917 - what both take
    who: str, x: Any, S: Any, space: FeatureSpace | None, data: Any, scale: Any, zero: float | None
) -> tuple[Floats, Floats]:
    """Return the scaled moves of the numbers of each row, and which categories differ."""
    own, rows, *rest = read_beside(who, space, data, x=x, S=S)
    scales = scales_beside(who, [own, rows], scale, rest, zero)
    return apart(rows, rows.numbers, own.numbers, scales), (rows.codes != own.codes).astype(np.float64)


def cost(x: Any, S: Any, space: FeatureSpace, cost: Any = "l1", *, data: pd.DataFrame | None = None) -> Floats:
    r"""Cost of each counterfactual by any cost of :func:`ceopt.explain`, (n,); lower is cheaper.

    With :math:`t_j = \omega_j |c_j - x_j| / s_j`: l0 counts weights of what moves, l1 is :math:`\sum t`, l2
    :math:`\sqrt{\sum t^2}`, linf :math:`\max t`; Mahalanobis and percentile shifts as their classes say. Scales are the
    cost's own: "l1" divides by the MAD, ``L1(scale="none")`` is in raw units.

    Parameters
    ----------
    x, S
        Factual and counterfactuals in raw units. Values must be ones that the space can hold, so an integer column is
        whole.
    space
        What the columns are, their weights and scales.
    cost
        "l0", "l1", "l2", "l2_squared", "linf", "mahalanobis", or an object: ``Percentile("max")``,
        ``L1(scale="range") + 0.1 * Changes()``.
    data
        Rows for what a cost learns: a covariance, percentiles. Those with missing cells are left out with a warning.

    Raises
    ------
    UnknownNameError
        Another cost.
    InvalidTypeError, InvalidValueError
        No space; values that it cannot hold; no data where the cost needs some; a number that is filled in, or goes,
        with a Mahalanobis or a percentile cost.

    References
    ----------
    Ustun, Spangher & Liu (2019) for percentile shifts.

    Examples
    --------
    >>> import ceopt
    >>> space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", weight=2.0), ceopt.Feature("b", kind="integer")])
    >>> cost([0, 0], [[3, 4], [0, 1]], space, ceopt.L2(scale="none")).round(3).tolist()
    [7.211, 1.0]
    """
    require_space("cost", space)
    data = complete_rows("cost", space, data)
    own, rows = read("cost", space, x=x, S=S)
    parsed = parse_cost(cost)
    _refuse_fills(parsed, own, rows)
    fitted = parsed.fitted(space, data)
    (factual,) = _points_of_table(x, space)
    return np.array([fitted.value(space, factual, point) for point in _points_of_table(S, space)])


def _refuse_fills(cost: AbstractCost, own: TableRows, rows: TableRows) -> None:
    """Refuse, for a cost that knows places among amounts alone, a number that is filled in or goes."""
    terms = [term for _, term in cost.terms] if isinstance(cost, Sum) else [cost]
    for term in terms:
        if not isinstance(term, Mahalanobis | L1Mahalanobis | Percentile):
            continue
        is_label = rows.hold_no_amount(rows.numbers) | own.hold_no_amount(own.numbers)
        for place, j in np.argwhere(is_label & (rows.numbers != own.numbers)).tolist():
            but = f"column {rows.numeric[j]!r} is filled in, or goes, in row {place} of S"
            then = "Use a cost such as 'l1', which charges a fill."
            raise InvalidValueError(type(term).__name__, "moves between amounts", but, then)


def _points_of_table(table: Any, space: FeatureSpace) -> list[dict[str, float]]:
    """Return the rows of a table as coordinates by name."""
    frame = rows_for_predict(table, space)
    assert isinstance(frame, pd.DataFrame)  # noqa: S101 - with a space of its width, an array has names
    return points_of(space, space.coordinates(frame))
