"""Proximity of the counterfactuals to the person, apart for numbers and for categories."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.rows import Floats, TableRows, read
from ceopt.metrics.scales import scales_of
from ceopt.solvers.checks import Choice

__all__ = ["OVER", "categorical_proximity", "continuous_proximity", "scaled"]

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
        Rows that the scale is taken from; by default what the space knows.
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
    home, rows, *rest = _read("continuous_proximity", space, data, x=x, S=S)
    if not rows.numeric:
        return float("nan")
    home_numbers, numbers = scaled("continuous_proximity", [home, rows], scale, rest, zero)
    moves = np.abs(numbers - home_numbers)
    return float(-(moves.sum(axis=1) if over == "sum" else moves.mean(axis=1)).mean())


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
    home, rows = read("categorical_proximity", space, x=x, S=S)
    return float(1.0 - (rows.codes != home.codes).mean()) if rows.categorical else float("nan")


def scaled(who: str, tables: list[TableRows], scale: Any, data: list[TableRows], zero: float | None) -> list[Floats]:
    """Return the numbers of tables divided by their scales; ``data`` holds the table of people, if there is one."""
    scales = scales_of(who, tables, scale, data=data[0] if data else None, zero=zero)
    return [rows.numbers / scales for rows in tables]


def _read(who: str, space: FeatureSpace | None, data: Any, **given: Any) -> list[TableRows]:
    return read(who, space, **given, **({} if data is None else {"data": data}))
