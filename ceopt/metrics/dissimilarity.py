"""Distances of mixed rows that need no space's rules: Gower's, and the heterogeneous one of HEOM."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.proximity import scaled
from ceopt.metrics.rows import Floats, read
from ceopt.solvers.checks import Choice

__all__ = ["gower", "heom"]


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

    Ordinal and binary columns count as categories. Beyond the range of the data a column counts more than 1.

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        What the columns are.
    data
        Rows whose ranges :math:`r_j` divide; by default those that the space knows.
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
    return np.asarray(parts.sum(axis=1) if form == "sum" else np.sqrt((parts**2).sum(axis=1)))


def _parts(  # noqa: PLR0917 - what both take
    who: str, x: Any, S: Any, space: FeatureSpace | None, data: Any, scale: Any, zero: float | None
) -> tuple[Floats, Floats]:
    home, rows, *rest = read(who, space, x=x, S=S, **({} if data is None else {"data": data}))
    home_numbers, numbers = scaled(who, [home, rows], scale, rest, zero)
    return np.abs(numbers - home_numbers), (rows.codes != home.codes).astype(np.float64)
