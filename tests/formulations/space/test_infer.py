"""Guesses about a frame: kinds, bounds, levels, scales; and frames that are refused."""

from __future__ import annotations

import datetime as dt
import io

import numpy as np
import pandas as pd
import pytest

from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.space.reachable import reach_of
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

#: Guesses are looked at here; what is pointed out beside them is in test_pitfalls.py.
pytestmark = pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")


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
    FeatureSpace.infer(FRAME, moves={"age": "up", "sex": "fixed"})
    pd.testing.assert_frame_equal(FRAME, before)


# ---- steps -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([3.0, 1.0, 200.0], 1.0),
        ([0.5, 1.0], 0.1),
        ([0.1 + 0.2, 1.1 * 3], 0.1),  # 0.30000000000000004 and 3.3000000000000003
        ([12.25, 1e6 + 0.01], 0.01),
        ([-0.125, 7.0], 0.001),
        ([0.0, 0.0], 1.0),
        ([1.0, np.nan, 2.5], 0.1),
        (pd.array([1.5, None], dtype="Float64"), 0.1),
        (np.array([0.5, 0.25], dtype=np.float32), 0.01),
        ([0.1234, 1.0], None),
        ([1 / 3], None),
        ([1e300, 1.0], None),  # no float has decimals there
        ([0.1, 0.10000001], None),
        (np.array([0.1, 0.2], dtype=np.float32), None),  # 0.10000000149011612
        ([1, 2, 3], None),
    ],
)
def test_floats_of_few_decimals_move_by_the_step_of_their_decimals(values, step):
    feature = of(values)
    assert feature.step == step
    assert feature.step_inferred is (step is not None)
    for options in ({"steps": False}, {"continuous": ["x"]}):
        assert of(values, **options).step is None
        assert not of(values, **options).step_inferred


def test_a_step_is_printed_as_a_guess():
    space = FeatureSpace.infer(
        pd.DataFrame({"rate": [0.25, 0.5], "pay": [3.0, 4.0], "kids": [1, 2], "free": [0.5, 1 / 3]})
    )
    lines = str(space).splitlines()
    assert lines[2].split()[-7:] == "float64 -> continuous (2 decimals, step 0.01)".split()
    assert lines[3].endswith("float64 -> continuous (whole numbers only, step 1)")
    assert lines[4].endswith("int64 -> integer")
    assert lines[5].endswith("float64 -> continuous")
    assert space.to_frame()["step"].tolist() == [0.01, 1.0, None, None]
    assert space.to_frame()["step_inferred"].tolist() == [True, True, False, False]
    off = FeatureSpace.infer(pd.DataFrame({"pay": [3.0, 4.0]}), steps=False)
    assert off["pay"].guess == "float64 -> continuous (whole numbers only)"


def test_a_step_that_is_set_is_a_rule_and_one_of_a_kind_that_is_named_is_gone():
    space = FeatureSpace.infer(pd.DataFrame({"x": [0.5, 2.0]}))
    assert (space.update("x", step=0.1)["x"].step, space.update("x", step=0.1)["x"].step_inferred) == (0.1, False)
    assert space.update("x", lower=0.0)["x"].step_inferred
    for kind in ("continuous", "integer"):
        assert space.update("x", kind=kind)["x"].step is None
    assert space.update("x", kind="integer", step=2)["x"].step == 2.0
    assert space.update("x", kind="ordinal", levels=[0.5, 2.0])["x"].step_inferred is False
    kept = space.update("x", step=0.5).update("x", kind="continuous")["x"]
    assert (kept.step, kept.step_inferred) == (0.5, False)


# ---- moves -----------------------------------------------------------------------------------------------------------
def test_moves_are_said_in_the_words_of_the_printed_space():
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": [1, 2], "d": [1, 2], "e": ["u", "v"]})
    space = FeatureSpace.infer(frame, moves={"a": "up", "b": "down", "c": "any", "d": "fixed", "e": "increasing"})
    assert [feature.direction for feature in space] == ["increasing", "decreasing", "any", "any", "increasing"]
    assert [feature.mutable for feature in space] == [True, True, True, False, True]
    moves = [line.split()[5] for line in str(space).splitlines()[2:6]]
    assert moves == ["up", "down", "any", "fixed"]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"moves": {"agee": "up"}}, UnknownNameError, "column is 'agee'. Did you mean 'age'"),
        ({"moves": {"age": "upwards"}}, UnknownNameError, "move is 'upwards'. .*any, up, down, fixed"),
        ({"moves": {"age": False}}, UnknownNameError, "move is False"),
        ({"moves": ["age"]}, InvalidTypeError, "needs moves as a mapping of names to words, but moves is \\['age'\\]"),
        ({"moves": "age"}, InvalidTypeError, "moves is 'age'"),
        ({"steps": 0.1}, InvalidTypeError, "needs True or False as steps, but steps is 0.1"),
        ({"steps": None}, InvalidTypeError, "steps is None"),
    ],
)
def test_moves_and_steps_that_are_refused(options, error, match):
    with pytest.raises(error, match=match):
        FeatureSpace.infer(FRAME, **options)


def test_categories_have_no_way_up():
    frame = pd.DataFrame({"job": ["cook", "clerk", "nurse"]})
    with pytest.raises(InvalidValueError, match="'job' needs direction \"any\", as categories have no order"):
        FeatureSpace.infer(frame, moves={"job": "up"})


# ---- files that were read with another separator ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "sep"),
    [
        ("age;income\n30;1\n40;2\n", ";"),
        ("age;income\n30,5;1,5\n40,5;2,5\n", ";"),
        ("age\tincome\n30\t1\n", "\t"),
        ("age|income\n30|1\n", "|"),
    ],
)
def test_a_file_of_another_separator_is_no_one_column(text, sep):
    frame = pd.read_csv(io.StringIO(text))
    assert frame.shape[1] == 1
    with pytest.raises(
        InvalidValueError, match="a column for each thing that is known, but the frame has one"
    ) as caught:
        FeatureSpace.infer(frame)
    assert repr(frame.columns[0]) in str(caught.value)
    assert f"pandas.read_csv(path, sep={sep!r})" in str(caught.value)
    with pytest.raises(InvalidValueError, match="sep=','"):
        FeatureSpace.infer(pd.read_csv(io.StringIO("age,income\n30,1\n"), sep=";"))


def test_a_name_may_hold_a_separator():
    assert FeatureSpace.infer(pd.DataFrame({"income, yearly": [1, 2]})).names == ("income, yearly",)
    assert FeatureSpace.infer(pd.DataFrame({"a;b": [1, 2], "c": [3, 4]})).names == ("a;b", "c")
    assert FeatureSpace.infer(pd.DataFrame({"yes|no": ["y", "n"]})).names == ("yes|no",)


def test_ends_that_are_off_their_decimals_by_rounding_keep_the_last_step_in_reach():
    """10 * -0.94 is -9.399999999999999: the step at -9.4 was left out (since 0.1.0)."""
    frame = pd.DataFrame({"a": np.array([-0.94, 0.35, 0.94, 0.31]) * 10.0})
    assert frame["a"].min() > -9.4

    space = FeatureSpace.infer(frame)

    assert (space["a"].lower, space["a"].upper, space["a"].step) == (-9.4, 9.4, 0.1)
    reach = reach_of(space, space.row(pd.DataFrame({"a": [3.5]})))
    assert (reach["a"].lower, reach["a"].upper) == (-9.4, 9.4)
