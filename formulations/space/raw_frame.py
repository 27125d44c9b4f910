"""Many rows of coordinates as a raw frame, column by column."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.space.dtypes import is_object_dtype

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["raw_frame"]


def raw_frame(space: FeatureSpace, points: NDArray[np.float64]) -> pd.DataFrame:
    """Return coordinates (n, d) as raw rows: the frame that ``space.frame`` makes of them, column by column."""
    if space.is_continuous:
        return pd.DataFrame(points, columns=_columns(space.names).view())
    data: dict[str, Any] = {}
    for j, feature in enumerate(space):
        values = feature.take(points[:, j])
        # pandas 3 would read an object array of text as text
        data[feature.name] = pd.Series(values, dtype=object) if is_object_dtype(values.dtype) else values
    return pd.DataFrame(data)


@functools.lru_cache(maxsize=64)
def _columns(names: tuple[str, ...]) -> pd.Index[str]:
    """Return an index of names, which takes longer to make than the frame."""
    return pd.Index(list(names))
