"""Any frame that can be described comes back from its coordinates bit for bit, with its own dtypes."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ceopt.formulations.space import FeatureSpace

WHOLE = 2**53 - 1
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
floats = st.floats(allow_nan=False, allow_infinity=False)


def whole(low=-WHOLE, high=WHOLE):
    return st.integers(low, high)


def arrow(kind):
    return lambda values: pd.array(values, dtype=f"{kind}[pyarrow]")


def objects(values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return pd.Series(out, dtype=object)


def arrow_text(values):
    return pd.array(values, dtype=pd.ArrowDtype(pa.string()))


# name -> (values of one column, how pandas holds them)
COLUMNS = {
    **{f"int{bits}": (whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), f"int{bits}") for bits in (8, 16, 32)},
    **{f"uint{bits}": (whole(0, 2**bits - 1), f"uint{bits}") for bits in (8, 16, 32)},
    "int64": (whole(), "int64"),
    "uint64": (whole(0), "uint64"),
    "Int64": (whole(), "Int64"),
    "UInt8": (whole(0, 255), "UInt8"),
    "float64": (floats, "float64"),
    "bool": (st.booleans(), "bool"),
    "boolean": (st.booleans(), "boolean"),
    "text": (texts, lambda values: pd.Series(values, dtype=None if values else "str")),
    "string": (texts, "string"),
    "string python": (texts, pd.StringDtype("python")),
    "object text": (texts, objects),
    "object bool": (st.booleans(), objects),
    "object whole": (whole(), objects),
    "category text": (texts, pd.Categorical),
    "category whole": (whole(), pd.Categorical),
    "category bool": (st.booleans(), pd.Categorical),
    "category float": (floats, pd.Categorical),
    "category ordered": (texts, lambda values: pd.Categorical(values, categories=sorted({*values}), ordered=True)),
    "category wide": (st.sampled_from("abc"), lambda values: pd.Categorical(values, categories=list("zcbay"))),
    "category object": (texts, lambda values: objects(values).astype("category")),
    "arrow int": (whole(), arrow("int64")),
    "arrow bool": (st.booleans(), arrow("bool")),
    "arrow text": (texts, arrow_text),
}


@st.composite
def frames(draw):
    n = draw(st.integers(1, 5))
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6, unique=True))
    return frame_of({name: draw(st.lists(COLUMNS[name][0], min_size=n, max_size=n)) for name in names})


def frame_of(values):
    def hold(name):
        kind = COLUMNS[name][1]
        return kind(values[name]) if callable(kind) else pd.Series(values[name], dtype=kind)

    return pd.DataFrame({name: hold(name) for name in values})


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")  # frames of any values look like anything
@given(frame=frames())
@example(frame=frame_of({"float64": [-0.0, 5e-324, 1.7976931348623157e308]}))
@example(frame=frame_of({"int64": [WHOLE, -WHOLE, 0], "uint64": [WHOLE, 0, 1]}))
@example(frame=frame_of({name: ["", " ", "NA"] for name in COLUMNS if "text" in name or "string" in name}))
@example(frame=frame_of({"category wide": ["c", "a"], "object bool": [True, True], "category bool": [True, False]}))
def test_frame_to_coordinates_to_frame_is_the_identity(frame):
    space = FeatureSpace.from_json(FeatureSpace.infer(frame).to_json())
    matrix = space.coordinates(frame)
    rows = [dict(zip(space.names, row, strict=True)) for row in matrix]
    back = space.frame(rows, index=frame.index)
    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_column_type=True)
    assert list(back.dtypes) == list(frame.dtypes)
    if "float64" in frame:
        assert back["float64"].to_numpy().tobytes() == frame["float64"].to_numpy().tobytes()
    for place, row in enumerate(rows):
        for raw in (frame.iloc[[place]], {name: frame[name].iloc[place] for name in frame}):
            single = space.row(raw)
            assert single == row
            assert [math.copysign(1, single[name]) for name in row] == [math.copysign(1, row[name]) for name in row]


@pytest.mark.parametrize(
    "values",
    [
        np.array([0.1, 2.5], dtype=np.float32),
        pd.array([0.1, 2.5], dtype="Float64"),
        pd.array([0.1, 2.5], dtype="Float32"),
        pd.array([0.1, 2.5], dtype="double[pyarrow]"),
        [1, 2],
    ],
)
def test_a_continuous_column_comes_back_as_float64(values):
    frame = pd.DataFrame({"x": values})
    space = FeatureSpace.infer(frame, continuous=["x"])
    matrix = space.coordinates(frame)
    back = space.frame([{"x": value} for value in matrix[:, 0]])["x"]
    assert back.dtype == np.float64
    assert back.tolist() == [float(value) for value in frame["x"]]


def test_whole_numbers_in_a_float_column_stay_float():
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0], "y": [1, 0, 1]})
    space = FeatureSpace.infer(frame, integer=["x"], binary=["y"])
    back = space.frame([{"x": 2.0, "y": 1.0}])
    assert (back["x"].dtype, back["y"].dtype) == (np.float64, np.int64)
    assert back.iloc[0].tolist() == [2.0, 1.0]
