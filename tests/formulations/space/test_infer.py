"""Guesses about a frame: kinds, bounds, levels, scales; and frames that are refused."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from ceopt.formulations.space import FeatureSpace
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError


def of(values, **options):
    return FeatureSpace.infer(pd.DataFrame({"x": values}), **options)["x"]


@pytest.mark.parametrize(
    ("values", "kind", "levels"),
    [
        ([True, False], "binary", (False, True)),
        ([True, True], "binary", (False, True)),
        (pd.array([True, None, True], dtype="boolean"), "binary", (False, True)),
        (pd.Series([True, None, False], dtype=object), "binary", (False, True)),
        (["no", "yes", "no"], "binary", ("no", "yes")),
        (["no", None, "yes"], "binary", ("no", "yes")),
        (pd.Series(["b", "a"], dtype=object), "binary", ("a", "b")),
        (pd.array(["b", "a", "c"], dtype="string"), "categorical", ("a", "b", "c")),
        (["only"], "categorical", ("only",)),
        (pd.Series([3, 1, 2], dtype=object), "categorical", (1, 2, 3)),
        (pd.Categorical(["u", "v"], categories=["v", "w", "u"]), "categorical", ("v", "u")),
        (pd.Categorical(["u", "v"], categories=["v", "w", "u"], ordered=True), "ordinal", ("v", "u")),
        (pd.Categorical([7, 1, 7]), "categorical", (1, 7)),
        ([0, 1, 1], "integer", ()),
        (np.array([3, 200], dtype=np.uint8), "integer", ()),
        (pd.array([3, None], dtype="Int64"), "integer", ()),
        ([0.0, 1.0], "continuous", ()),
        ([1.0, np.nan], "continuous", ()),
        (np.array([1.5], dtype=np.float32), "continuous", ()),
        (pd.array([1.5, None], dtype="Float64"), "continuous", ()),
    ],
)
def test_guesses(values, kind, levels):
    feature = of(values)
    assert (feature.kind, feature.levels) == (kind, levels)
    assert feature.guess.startswith(f"{feature.dtype} -> {kind}")
    assert feature.guess in str(FeatureSpace([feature]))


def test_bounds_and_scales_are_those_of_the_data():
    feature = of([1.0, 2.0, np.nan, 4.0, 9.0])
    assert (feature.lower, feature.upper) == (1, 9)
    assert feature.lower_inferred
    assert feature.upper_inferred
    assert feature.mad == 1.5  # deviations from 3: 2, 1, 1, 6
    assert feature.std == pytest.approx(np.std([1, 2, 4, 9]))
    assert feature.range == 8
    single = of([5, 5])
    assert (single.lower, single.upper, single.mad, single.std, single.range) == (5, 5, 0, 0, 0)
    assert single.scale("mad") == 1


def test_named_kinds_win():
    assert of([0, 1], binary=["x"]).levels == (0, 1)
    assert of([0.0, 1.0], binary="x").levels == (0.0, 1.0)
    assert of([1, 2, 3], categorical=["x"]).levels == (1, 2, 3)
    assert of([1, 3], ordinal={"x": [3, 2, 1]}).levels == (3, 2, 1)
    assert of(["S", "L"], ordinal={"x": ["S", "M", "L"]}).levels == ("S", "M", "L")
    assert of([1.0, 2.0], integer=["x"]).kind == "integer"
    assert of([1, 2], continuous=["x"]).kind == "continuous"
    assert of(pd.Series([1, 2], dtype=object), integer=["x"]).kind == "integer"
    assert of(["u", "v", "w"], categorical=["x"]).guess == "named categorical"
    assert of(pd.Categorical(["u", "v"]), binary=["x"]).levels == ("u", "v")


@pytest.mark.parametrize(
    ("values", "options", "error", "match"),
    [
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), {}, InvalidTypeError, "dtype is datetime64"),
        (pd.to_timedelta([1, 2], unit="D"), {}, InvalidTypeError, "dtype is timedelta64"),
        (pd.period_range("2020", periods=2, freq="Y"), {}, InvalidTypeError, "dtype is period"),
        ([1j, 2j], {}, InvalidTypeError, "dtype is complex128"),
        (pd.arrays.SparseArray([0, 1]), {}, InvalidTypeError, "Sparse"),
        (pd.Series([dt.date(2020, 1, 1)], dtype=object), {}, InvalidTypeError, "it holds datetime.date"),
        (pd.Series([[1], [2]], dtype=object), {}, InvalidTypeError, r"it holds \[1\] \(list\)"),
        (pd.Series(["a", 1], dtype=object), {}, InvalidTypeError, "mixes number and text"),
        (pd.Series([True, 2], dtype=object), {}, InvalidTypeError, "mixes bool and number"),
        (pd.Categorical(pd.to_datetime(["2020-01-01"])), {}, InvalidTypeError, "dtype is datetime64"),
        ([np.nan, np.nan], {}, InvalidValueError, "every cell is missing"),
        ([None, None], {}, InvalidValueError, "every cell is missing"),
        ([1.0, np.inf], {}, InvalidValueError, "it holds inf"),
        ([1, 2**60], {}, InvalidValueError, "up to 2\\*\\*53"),
        ([1.5, 2], {"integer": ["x"]}, InvalidValueError, "whole numbers to be integer, but it holds 1.5"),
        (["a", "b"], {"continuous": ["x"]}, InvalidTypeError, "numbers to be continuous"),
        ([True, False], {"integer": ["x"]}, InvalidTypeError, "numbers to be integer"),
        (pd.Categorical([1, 2]), {"integer": ["x"]}, InvalidTypeError, "numbers to be integer"),
        ([1, 2, 3], {"binary": ["x"]}, InvalidValueError, "exactly two values to be binary, but it holds 3"),
        (["a"], {"binary": ["x"]}, InvalidValueError, "but it holds 1"),
        (["a", "b"], {"ordinal": {"x": ["a"]}}, InvalidValueError, "every level that occurs, but 'b'"),
        (["a", "b"], {"ordinal": {"x": "ab"}}, InvalidTypeError, "levels in a list"),
        (["a", "b"], {"ordinal": {"x": None}}, InvalidTypeError, "levels in a list"),
        (["a", "b"], {"ordinal": {"x": ["a", "b", "a"]}}, InvalidValueError, "'a' is there twice"),
    ],
)
def test_columns_that_are_refused_by_name(values, options, error, match):
    with pytest.raises(error, match=match) as caught:
        of(values, **options)
    assert "'x'" in str(caught.value)


FRAME = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"]})


@pytest.mark.parametrize(
    ("frame", "options", "error", "match"),
    [
        (np.ones((2, 2)), {}, InvalidTypeError, "needs a DataFrame, but it got ndarray"),
        (FRAME.iloc[:0], {}, InvalidValueError, r"its shape is \(0, 2\)"),
        (FRAME[[]], {}, InvalidValueError, r"its shape is \(2, 0\)"),
        (pd.DataFrame(np.ones((2, 2))), {}, InvalidTypeError, "column names that are text, but one is 0"),
        (FRAME.rename(columns={"sex": "age"}), {}, InvalidValueError, "'age' is there twice"),
        (FRAME, {"binary": ["sx"]}, UnknownNameError, "column is 'sx'. Did you mean 'sex'.*age, sex"),
        (FRAME, {"ordinal": {"size": [1]}}, UnknownNameError, "column is 'size'"),
        (FRAME, {"ordinal": ["sex"]}, InvalidTypeError, "ordinal as a mapping"),
        (
            FRAME,
            {"binary": ["sex"], "categorical": ["sex"]},
            InvalidValueError,
            "'sex' is named categorical and binary",
        ),
    ],
)
def test_frames_that_are_refused(frame, options, error, match):
    with pytest.raises(error, match=match):
        FeatureSpace.infer(frame, **options)


def test_the_frame_is_left_alone():
    before = FRAME.copy(deep=True)
    FeatureSpace.infer(FRAME)
    pd.testing.assert_frame_equal(FRAME, before)
