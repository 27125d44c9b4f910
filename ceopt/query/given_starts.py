"""Points that the user gives to be tried first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.constraints.rule import mended_points
from ceopt.formulations.space.reachable import Interval
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["put_in_reach", "starts_of"]

_WHO: Final = "explain"


def starts_of(starts: Any, space: FeatureSpace) -> NDArray[np.float64]:
    """Return the user's points as coordinates, (k, d).

    Raises
    ------
    InvalidTypeError, UnknownNameError, InvalidValueError
        No frame; a column that is missing, unknown or there twice; a value that the space does not have.
    """
    if not isinstance(starts, pd.DataFrame):
        but = f"starts is {type(starts).__name__}"
        raise InvalidTypeError(_WHO, "a DataFrame as starts", but, "Give one row a point, such as found.to_frame().")
    missing = [name for name in space.names if name not in starts.columns]
    for name in starts.columns:
        if name not in space and missing:
            raise UnknownNameError.among("starts", "column", name, missing)
        if name not in space:
            raise space.unknown_column("starts", name)
    for name in space.names:
        count = int((starts.columns == name).sum())
        if count != 1:
            but = f"it is there {count} times"
            raise InvalidValueError("starts", f"column {name!r} once", but, "Give each column of the space once.")
    try:
        return space.coordinates(starts[list(space.names)])
    except CeoptError as error:
        raise type(error)(f"In starts: {error}") from error


def put_in_reach(
    points: NDArray[np.float64],
    space: FeatureSpace,
    factual: Mapping[str, float],
    reach: Reach,
    rules: Sequence[AbstractRule],
) -> NDArray[np.float64]:
    """Return points (k, d), each once, with every column at a value that the person can have.

    A number is moved to the nearest one; a level that is out of reach becomes the person's own.
    """
    legal = points.copy()
    for j, name in enumerate(space.names):
        part = reach[name]
        if isinstance(part, Interval):
            legal[:, j] = [part.clip(value) for value in legal[:, j].tolist()]
        else:
            legal[~np.isin(legal[:, j], part.ranks), j] = factual[name]
    return np.unique(mended_points(rules, space, factual, legal), axis=0)
