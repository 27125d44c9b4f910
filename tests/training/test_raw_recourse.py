"""Rows that moved keep the types of the frame that they came in, whatever pandas makes of text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ceopt import FeatureSpace
from ceopt.training.networks import moved_frame

JOBS = ["clerk", "cook", "nurse", "cook"]


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(JOBS, dtype=object),
        pd.Series(JOBS, dtype="category"),
        pd.Series(JOBS, dtype="string"),
        pd.Series(JOBS),
        pd.Series([True, False, True, True], dtype=object),
        pd.Series([1, 2, 3, 2], dtype=object),
        pd.Series([1, 2, 3, 2], dtype="int8"),
        pd.Series([1.5, 2.5, 3.5, 2.5], dtype="float32"),
    ],
    ids=lambda values: f"{values.dtype} of {type(values[0]).__name__}",
)
def test_moved_rows_have_the_types_of_the_frame(values):
    """Also under an index with labels that come twice, and where all rows move."""
    frame = pd.DataFrame({"what": values, "rooms": [20, 30, 40, 50]}).set_axis(["a", "b", "a", "c"])
    levels = list(dict.fromkeys(values.tolist()))
    space = FeatureSpace.infer(frame, categorical=["what"])
    coordinates = space.coordinates(frame)
    found = coordinates.copy()
    found[:, 0] = (found[:, 0] + 1) % len(levels)
    for moved in (found, np.vstack([found[:1], coordinates[1:]])):
        made = moved_frame(frame, space, moved, coordinates)
        assert (made.dtypes == frame.dtypes).all()
        assert made.index.equals(frame.index)
        assert np.array_equal(space.coordinates(made), moved)
        assert [type(value) for value in made["what"]] == [type(value) for value in frame["what"]]
