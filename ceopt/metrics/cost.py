"""The cost of a counterfactual, as the programs of ceopt charge it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ceopt.formulations.costs import parse_cost
from ceopt.formulations.space.space import FeatureSpace, require_space
from ceopt.metrics.asking import table_of
from ceopt.metrics.rows import Floats, read

__all__ = ["cost"]


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
        Rows for what a cost learns: a covariance, percentiles.

    Raises
    ------
    UnknownNameError
        Another cost.
    InvalidTypeError, InvalidValueError
        No space; values that it cannot hold; no data where the cost needs some.

    References
    ----------
    Ustun, Spangher & Liu (2019) for percentile shifts; specification 6 and 7.

    Examples
    --------
    >>> import ceopt
    >>> space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", weight=2.0), ceopt.Feature("b", kind="integer")])
    >>> cost([0, 0], [[3, 4], [0, 1]], space, ceopt.L2(scale="none")).round(3).tolist()
    [7.211, 1.0]
    """
    require_space("cost", space)
    read("cost", space, x=x, S=S)
    fitted = parse_cost(cost).fitted(space, data)
    home, *points = (
        dict(zip(space.names, row, strict=True))
        for table in (x, S)
        for row in space.coordinates(_frame(table, space)).tolist()
    )
    return np.array([fitted.value(space, home, point) for point in points])


def _frame(table: Any, space: FeatureSpace) -> pd.DataFrame:
    frame = table_of(table, space)
    assert isinstance(frame, pd.DataFrame)  # noqa: S101 - with a space of its width, an array has names
    return frame
