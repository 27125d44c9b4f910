"""Recourse as a raw frame: what moved in the columns' own types, what did not move as it was given."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ceopt.formulations.digits import digits
from ceopt.formulations.space.space import FeatureSpace, raw_frame
from ceopt.solvers.errors import InvalidValueError
from ceopt.training.scaled_frame import Flags, Floats

__all__ = ["moved_frame", "require_within"]

Column: TypeAlias = "pd.Series[Any]"


def require_within(who: str, space: FeatureSpace, coordinates: Floats) -> None:
    """Refuse rows (n, d) with a number outside bounds that the user set."""
    for feature, values in zip(space, coordinates.T, strict=True):
        low, high = feature.widest
        if feature.is_finite:
            continue
        outside = np.flatnonzero(((values < low) | (values > high)) & ~np.isin(values, feature.codes))
        if len(outside):
            but = f"it is {digits(values[outside[0]])} in row {outside[0]}"
            needs = f"column {feature.name!r} within its bounds [{digits(feature.lower)}, {digits(feature.upper)}]"
            raise InvalidValueError(who, needs, but, "Widen the bounds with space.update, or correct the row.")


def moved_frame(X: pd.DataFrame, space: FeatureSpace, found: Floats, coordinates: Floats) -> pd.DataFrame:
    """Return the rows of a frame at other coordinates, where they moved.

    Index, columns and types are those of X. A column of whole numbers that got a fraction is one of floats, and one
    that moves in steps of double precision where a narrower type misses them.

    Parameters
    ----------
    X
        The rows as they were given.
    space
        The d columns.
    found, coordinates
        The rows as they shall be and as they were, (n, d).
    """
    made = raw_frame(space, found)
    moved = found != coordinates
    frame = X.copy()
    for j, feature in enumerate(space):
        if moved[:, j].any():
            has_steps = feature.step is not None
            values = _column(X[feature.name], made[feature.name], moved[:, j], has_steps=has_steps)
            frame[feature.name] = pd.Series(values, index=frame.index, dtype=values.dtype)  # pandas 3 reads text anew
    return frame


def _column(own: Column, made: Column, moved: Flags, *, has_steps: bool) -> Any:
    """Return one column, of the type that it had where that holds its values."""
    if made.dtype != own.dtype:
        made = _as(own, made, has_steps=has_steps)
    if made.dtype != own.dtype or pd.api.types.is_numeric_dtype(made.dtype):
        return made.array  # a number that did not move is the same number
    values = own.array.copy()
    values[moved] = made.array[moved]
    return values


def _as(own: Column, made: Column, *, has_steps: bool) -> Column:
    dtype = own.dtype
    try:
        cast = made.astype(dtype)
        if getattr(dtype, "kind", "") == "f" and not has_steps:
            return _inwards(own, made, cast)
        same = cast.astype(object) == made.astype(object)
    except (TypeError, ValueError):
        return made
    return cast if bool(same.all()) else made


def _inwards(own: Column, made: Column, cast: Column) -> Column:
    """Return numbers in a narrower type, rounded towards where they came from: no bound is left."""
    start = own.to_numpy(dtype=np.float64)
    wide = made.to_numpy(dtype=np.float64)
    narrow = cast.to_numpy()
    too_far = np.abs(narrow.astype(np.float64) - start) > np.abs(wide - start)
    back = np.nextafter(narrow, own.to_numpy())
    return pd.Series(np.where(too_far, back, narrow), dtype=cast.dtype)
