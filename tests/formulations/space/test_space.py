"""Rows and frames to coordinates and back, updates, and the table that people read."""

from __future__ import annotations

import copy
import math
import pickle
import time

import numpy as np
import pandas as pd
import pytest

from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

FRAME = pd.DataFrame(
    {
        "age": [30, 41, 56],
        "income": [1200.5, 900.0, 3000.25],
        "sex": ["f", "m", "f"],
        "owner": [True, False, True],
        "size": pd.Categorical(["S", "L", "M"], categories=["S", "M", "L", "XL"], ordered=True),
        "city": pd.Categorical(["Rome", "Oslo", "Bern"]),
    }
)
SPACE = FeatureSpace.infer(FRAME, moves={"age": "any", "sex": "any"})
ROW = {"age": 41.0, "income": 900.0, "sex": 1.0, "owner": 0.0, "size": 2.0, "city": 1.0}


@pytest.mark.parametrize(
    "raw",
    [
        FRAME.iloc[1],
        FRAME.loc[1],
        FRAME.iloc[[1]],
        FRAME.iloc[[1], ::-1],
        FRAME.iloc[1].to_dict(),
        FRAME.iloc[1].astype(object),
        {**FRAME.iloc[1].to_dict(), "age": np.float64(41.0), "income": 900},
    ],
)
def test_a_row_in_any_form_gives_the_same_coordinates(raw):
    assert SPACE.row(raw) == ROW
    assert list(SPACE.row(raw)) == list(SPACE.names)


def test_integers_that_pandas_made_floats_are_integers():
    numbers = FRAME[["age", "income"]]
    space = FeatureSpace.infer(numbers, moves={"age": "any"})
    assert numbers.iloc[0].dtype == float
    assert space.row(numbers.iloc[0]) == space.row(numbers.iloc[[0]]) == {"age": 30.0, "income": 1200.5}
    assert space.frame([space.row(numbers.iloc[0])]).dtypes.tolist() == [np.int64, np.float64]


def test_frames_come_back_bit_for_bit_whatever_the_order_of_columns():
    coordinates = SPACE.coordinates(FRAME.iloc[:, ::-1])
    assert coordinates.dtype == np.float64
    rows = [dict(zip(SPACE.names, row, strict=True)) for row in coordinates]
    assert rows == [SPACE.row(FRAME.iloc[[place]]) for place in range(3)]
    pd.testing.assert_frame_equal(SPACE.frame(rows), FRAME, check_exact=True)
    pd.testing.assert_frame_equal(SPACE.frame(rows[:1], index=["anna"]), FRAME.iloc[:1].set_axis(["anna"]))
    pd.testing.assert_frame_equal(SPACE.frame([]), FRAME.iloc[:0].reset_index(drop=True))
    assert SPACE.coordinates(FRAME.iloc[:0]).shape == (0, 6)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"income": math.nan}, InvalidValueError, "Column 'income' needs a value, but its value is missing"),
        ({"income": None}, InvalidValueError, "'income'.*missing"),
        ({"age": pd.NA}, InvalidValueError, "'age'.*missing"),
        ({"sex": None}, InvalidValueError, "'sex'.*missing"),
        ({"owner": math.nan}, InvalidValueError, "'owner'.*missing"),
        ({"income": math.inf}, InvalidValueError, "'income' needs a finite number"),
        ({"age": 3.5}, InvalidValueError, "'age' needs a whole number, but its value is 3.5"),
        ({"age": "41"}, InvalidTypeError, r"'age' needs a number, but its value is '41' \(str\)"),
        ({"income": True}, InvalidTypeError, r"'income' needs a number, but its value is True \(bool\)"),
        ({"age": pd.Timestamp("2020-01-01")}, InvalidTypeError, "'age' needs a number.*Timestamp"),
        ({"sex": pd.Timestamp("2020-01-01")}, InvalidValueError, "'sex' needs one of its levels"),
        ({"city": "Paris"}, InvalidValueError, "'city' needs one of its levels, but its value is 'Paris'. Choose from"),
        ({"size": "XL"}, InvalidValueError, "'size' needs one of its levels"),
        ({"owner": 2}, InvalidValueError, "'owner' needs one of its levels"),
        ({"owner": "True"}, InvalidValueError, "'owner' needs one of its levels"),
        ({"zip": 1}, UnknownNameError, "column is 'zip'.*Choose from: age, income"),
        ({"icome": 1}, UnknownNameError, "Did you mean 'income'"),
    ],
)
@pytest.mark.parametrize("form", ["dict", "series", "frame"])
def test_rows_that_are_refused_by_name(change, error, match, form):
    raw = FRAME.iloc[1].to_dict() | change
    if form == "series":
        raw = pd.Series(raw, dtype=object)
    if form == "frame":
        raw = pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in raw.items()})
        with pytest.raises(error, match=match):
            SPACE.coordinates(raw)
    with pytest.raises(error, match=match):
        SPACE.row(raw)


@pytest.mark.parametrize(
    ("raw", "error", "match"),
    [
        (FRAME.iloc[0].drop("age"), InvalidValueError, "every column of the space, but 'age' is missing"),
        (FRAME.iloc[0].rename({"age": "Age"}), InvalidValueError, "'age' is missing. Add it, and leave out 'Age'"),
        (FRAME, InvalidValueError, "a frame of one row, but it has 3 rows"),
        (FRAME.iloc[:0], InvalidValueError, "it has 0 rows"),
        (FRAME.iloc[[0]].assign(a=1).rename(columns={"a": "age"}), InvalidValueError, "'age' is there twice"),
        (pd.concat([FRAME.iloc[0], FRAME.iloc[0]]), InvalidValueError, "'age' is there twice"),
        ([1, 2, 3], InvalidTypeError, "a Series, a dict or a one-row frame, but it got list"),
        (np.ones(6), InvalidTypeError, "it got ndarray"),
        ({0: 1}, InvalidValueError, "'age', 'income'"),
    ],
)
def test_rows_of_the_wrong_shape(raw, error, match):
    with pytest.raises(error, match=match):
        SPACE.row(raw)


@pytest.mark.parametrize(
    ("column", "error", "match"),
    [
        ({"income": [1.0, math.nan, 2.0]}, InvalidValueError, "'income'.*missing"),
        ({"income": [1.0, -math.inf, 2.0]}, InvalidValueError, "'income'.*-inf"),
        ({"income": [True, False, True]}, InvalidTypeError, "'income' needs numbers, but its dtype is bool"),
        ({"income": ["1", "2", "3"]}, InvalidTypeError, "'income' needs (numbers|a number), but its"),
        (
            {"age": pd.to_datetime(["2020-01-01"] * 3)},
            InvalidTypeError,
            "'age' needs numbers, but its dtype is datetime",
        ),
        ({"age": [1.0, 2.5, 3.0]}, InvalidValueError, "'age' needs a whole number, but its value is 2.5"),
        ({"age": pd.array([1, None, 3], dtype="Int64")}, InvalidValueError, "'age'.*missing"),
        ({"age": [1, 2, 2**60]}, InvalidValueError, "'age' needs a whole number from"),
        ({"income": [1, 2, 2**53 + 1]}, InvalidValueError, "'income'.*float64 holds exactly"),
        ({"sex": ["f", "m", None]}, InvalidValueError, "'sex'.*missing"),
        ({"sex": ["f", "m", "x"]}, InvalidValueError, "'sex' needs one of its levels, but its value is 'x'"),
        ({"size": pd.Categorical(["S", "XL", None])}, InvalidValueError, "'size'.*missing"),
    ],
)
def test_frames_that_are_refused_by_name(column, error, match):
    with pytest.raises(error, match=match):
        SPACE.coordinates(FRAME.assign(**column))


def test_frames_are_matched_by_name():
    with pytest.raises(InvalidValueError, match="'age' is missing"):
        SPACE.coordinates(FRAME.drop(columns="age"))
    with pytest.raises(UnknownNameError, match="column is 'extra'"):
        SPACE.coordinates(FRAME.assign(extra=1))
    with pytest.raises(InvalidTypeError, match="a DataFrame, but it got ndarray"):
        SPACE.coordinates(FRAME.to_numpy())
    with pytest.raises(InvalidValueError, match="'age' is there twice"):
        SPACE.coordinates(FRAME.rename(columns={"income": "age"}))


def test_large_whole_numbers_that_float64_holds_are_kept():
    frame = pd.DataFrame({"x": [2**60, 1]})
    space = FeatureSpace([Feature("x", kind="continuous")])
    assert space.coordinates(frame)[0, 0] == 2.0**60


def test_minus_zero_is_the_whole_number_zero():
    space = FeatureSpace([Feature("x", kind="integer")])
    for coordinate in (space.coordinates(pd.DataFrame({"x": [-0.0]}))[0, 0], space.row({"x": -0.0})["x"]):
        assert math.copysign(1, coordinate) == 1


def test_the_data_given_is_left_alone():
    before = FRAME.copy(deep=True)
    SPACE.coordinates(FRAME)[:] = 0
    back = SPACE.frame([SPACE.row(FRAME.iloc[0])])
    back.loc[0, "income"] = 5.0
    pd.testing.assert_frame_equal(FRAME, before)


def test_bounds_refuse_no_factual():
    assert SPACE.row({**FRAME.iloc[0].to_dict(), "age": 99})["age"] == 99
    strict = SPACE.update("age", lower=20, upper=60)
    for value in (19, 61):
        assert strict.row({**FRAME.iloc[0].to_dict(), "age": value})["age"] == value
    half = SPACE.update("age", upper=60)
    assert half["age"].lower_inferred
    assert not half["age"].upper_inferred
    assert half.row({**FRAME.iloc[0].to_dict(), "age": 2})["age"] == 2
    assert strict.coordinates(FRAME.assign(age=[1, 2, 3]))[0, 0] == 1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"age": 30.5}, "'age' needs a whole coordinate"),
        ({"income": math.nan}, "'income' needs a finite coordinate"),
        ({"income": -math.inf}, "'income' needs a finite coordinate"),
        ({"size": 3.0}, "'size' needs a rank from 0 to 2"),
        ({"owner": -1.0}, "'owner' needs a rank from 0 to 1"),
        ({"age": 2.0**60}, "'age' needs a whole number from"),
    ],
)
def test_coordinates_that_stand_for_nothing_are_refused(change, match):
    with pytest.raises(InvalidValueError, match=match):
        SPACE.frame([ROW, ROW | change])


def test_a_coordinate_too_few():
    with pytest.raises(InvalidValueError, match="every column in every row, but 'city' is missing"):
        SPACE.frame([{name: value for name, value in ROW.items() if name != "city"}])


def test_update_makes_a_new_space():
    new = SPACE.update("income", lower=0, upper=math.inf, step=100, weight=(2, 1), unit="dollars", mutable=False)
    feature = new["income"]
    assert (feature.lower, feature.upper, feature.step, feature.weight) == (0, math.inf, 100, (2, 1))
    assert (feature.unit, feature.mutable, feature.lower_inferred, feature.upper_inferred) == (
        "dollars",
        False,
        False,
        False,
    )
    assert feature.mad == SPACE["income"].mad
    assert SPACE["income"].lower == 900
    assert SPACE.update("income") == SPACE
    assert SPACE.update("size", direction="increasing")["size"].direction == "increasing"
    assert SPACE.update("size", levels=["M", "S"])["size"].levels == ("M", "S")
    assert SPACE.update("size", levels=["S", "M", "L", "XL"])["size"].levels == ("S", "M", "L", "XL")


@pytest.mark.parametrize(
    ("name", "options", "error", "match"),
    [
        ("agee", {"lower": 0}, UnknownNameError, "column is 'agee'. Did you mean 'age'"),
        ("age", {"lower": 60}, InvalidValueError, r"bounds are \[60, 56\]"),
        ("age", {"lower": 0.5}, InvalidValueError, "'age'.*lower is 0.5"),
        ("age", {"kind": "float"}, UnknownNameError, "kind is 'float'"),
        ("age", {"direction": "upwards"}, UnknownNameError, "direction is 'upwards'"),
        ("age", {"levels": [1, 2]}, InvalidValueError, "'age' needs no levels"),
        ("age", {"step": -1}, InvalidValueError, "'age' needs a positive whole step"),
        ("age", {"weight": -1}, InvalidValueError, "'age'.*weight"),
        ("sex", {"lower": 0}, InvalidValueError, "'sex' needs no bounds"),
        ("city", {"levels": ["Rome", "Paris"]}, UnknownNameError, "level is 'Paris'"),
        ("city", {"levels": "Rome"}, InvalidTypeError, "levels in a list"),
        ("city", {"direction": "increasing"}, InvalidValueError, "categories have no order"),
        ("city", {"kind": "binary"}, InvalidValueError, "exactly two levels"),
        ("city", {"kind": "integer"}, InvalidTypeError, "'city' needs numbers to become integer"),
        ("owner", {"kind": "integer"}, InvalidTypeError, "'owner' needs numbers"),
        ("age", {"kind": "binary"}, InvalidValueError, r"needs levels to become binary.*Give levels"),
        ("income", {"kind": "ordinal"}, InvalidValueError, "needs levels to become ordinal"),
        ("age", {"kind": "ordinal", "levels": ["a", "b"]}, InvalidValueError, "dtype int64 holds"),
    ],
)
def test_updates_that_are_refused_by_name(name, options, error, match):
    with pytest.raises(error, match=match):
        SPACE.update(name, **options)


# ---- several columns at once -----------------------------------------------------------------------------------------
def fixed(space):
    return [feature.name for feature in space if not feature.mutable]


def test_several_columns_are_updated_at_once():
    new = SPACE.update(["age", "income"], lower=0, weight=2)
    assert new == SPACE.update("age", lower=0, weight=2).update("income", lower=0, weight=2)
    assert SPACE.update(("sex", "city"), mutable=False) == SPACE.fix("sex", "city")
    assert SPACE.update(pd.Index(["sex"]), mutable=False) == SPACE.fix("sex")
    assert SPACE.update([], mutable=False) == SPACE


def test_fix_takes_names_one_by_one_or_in_lists():
    assert fixed(SPACE.fix("sex")) == ["sex"]
    assert SPACE.fix("city", "sex") == SPACE.fix(["sex", "city"]) == SPACE.fix("sex").fix(("city",))
    assert SPACE.fix() == SPACE
    assert fixed(SPACE) == []


def test_only_what_is_named_may_move():
    assert fixed(SPACE.only(["income", "size"])) == ["age", "sex", "owner", "city"]
    assert SPACE.only("income", "size") == SPACE.only(["size", "income"])
    assert fixed(SPACE.fix("income").only("income")) == ["age", "sex", "owner", "size", "city"]
    assert SPACE.only(SPACE.names) == SPACE
    assert SPACE.update("size", direction="up").only("size")["size"].direction == "increasing"


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda: SPACE.fix("sx"), UnknownNameError, "column is 'sx'. Did you mean 'sex'"),
        (lambda: SPACE.fix(["sex", "towns"]), UnknownNameError, "column is 'towns'"),
        (lambda: SPACE.fix(3), UnknownNameError, "column is 3"),
        (lambda: SPACE.only(["income", "siz"]), UnknownNameError, "Did you mean 'size'"),
        (
            lambda: SPACE.only([]),
            InvalidValueError,
            "FeatureSpace.only needs a column that may change, but it got none",
        ),
        (SPACE.only, InvalidValueError, "it got none"),
        (lambda: SPACE.update(["age", "incomes"], lower=0), UnknownNameError, "Did you mean 'income'"),
        (lambda: SPACE.update(["age", "sex"], lower=0), InvalidValueError, "'sex' needs no bounds"),
        (lambda: SPACE.update([["age"]], lower=0), UnknownNameError, r"column is \['age'\]"),
        (lambda: SPACE.update(None, lower=0), UnknownNameError, "column is None"),
    ],
)
def test_names_that_no_column_has(change, error, match):
    with pytest.raises(error, match=match):
        change()


@pytest.mark.parametrize(("word", "stored"), [("up", "increasing"), ("down", "decreasing"), ("any", "any")])
def test_up_and_down_are_directions(word, stored):
    assert SPACE.update("size", direction=word)["size"].direction == stored
    assert SPACE.update("size", direction=word) == SPACE.update("size", direction=stored)
    assert Feature("x", kind="continuous", direction=word).direction == stored
    assert f'"direction": "{stored}"' in FeatureSpace([Feature("x", kind="continuous", direction=word)]).to_json()


def test_kinds_can_change_where_it_makes_sense():
    frame = pd.DataFrame({"flag": [0, 1], "grade": [1, 3], "part": [0.5, 2.5], "level": [1.0, 2.0], "word": ["a", "b"]})
    space = FeatureSpace.infer(frame)
    flag = space.update("flag", kind="binary")
    assert flag["flag"].levels == (0, 1)
    assert flag.frame([flag.row(frame.iloc[1])])["flag"].dtype == np.int64
    grade = space.update("grade", kind="ordinal", levels=[1, 2, 3], direction="increasing")
    assert grade.row(frame.iloc[1])["grade"] == 2
    assert grade.update("grade", kind="integer")["grade"].upper == 3
    assert space.update("grade", kind="categorical", levels=[3, 1])["grade"].levels == (3, 1)
    whole = space.update("part", kind="integer")["part"]
    assert (whole.lower, whole.upper) == (1, 2)
    assert space.update("level", kind="integer").frame([dict.fromkeys(space.names, 1.0)])["level"].dtype == np.float64
    assert space.update("grade", kind="continuous")["grade"].pandas_dtype == np.float64
    assert space.update("grade", kind="continuous").update("grade", kind="integer") == space
    assert space.update("word", kind="ordinal", levels=["b", "a"])["word"].levels == ("b", "a")
    assert space.update("word", kind="categorical")["word"].kind == "categorical"
    stepped = space.update("grade", step=2).update("grade", kind="categorical", levels=[1, 3])["grade"]
    assert stepped.step is None
    assert stepped.scale("mad") == 1


def test_levels_of_a_space_made_by_hand_are_the_users_own():
    space = FeatureSpace([Feature("c", kind="categorical", levels=("a", "b"), dtype="category")])
    wider = space.update("c", levels=("a", "b", "z"))
    assert wider["c"].categories == ("a", "b", "z")
    assert wider.frame([{"c": 2.0}])["c"].tolist() == ["z"]


@pytest.mark.parametrize(
    ("features", "error", "match"),
    [
        ([], InvalidValueError, "at least one feature"),
        (["age"], InvalidTypeError, "Feature objects, but one is 'age'"),
        ([Feature("a", kind="integer"), Feature("a", kind="continuous")], InvalidValueError, "'a' is there twice"),
    ],
)
def test_spaces_that_are_refused(features, error, match):
    with pytest.raises(error, match=match):
        FeatureSpace(features)


def test_a_space_is_an_immutable_value():
    assert pickle.loads(pickle.dumps(SPACE)) == SPACE
    assert copy.deepcopy(SPACE) == SPACE
    assert hash(copy.copy(SPACE)) == hash(SPACE)
    assert SPACE.update("age", weight=2) != SPACE
    assert SPACE != "space"
    assert len(SPACE) == 6
    assert [feature.name for feature in SPACE] == list(SPACE.names) == list(FRAME.columns)
    assert "age" in SPACE
    assert "zip" not in SPACE
    assert 3 not in SPACE
    with pytest.raises(AttributeError, match="immutable"):
        SPACE.names = ()
    with pytest.raises(AttributeError, match="immutable"):
        del SPACE._features
    with pytest.raises(UnknownNameError, match="column is 'incme'. Did you mean 'income'"):
        SPACE["incme"]
    with pytest.raises(UnknownNameError, match=r"column is \['age'\]"):
        SPACE[["age"]]


def test_the_table_tells_everything():
    space = (
        SPACE.update("age", direction="increasing", lower=18, unit="years")
        .update("sex", mutable=False)
        .update("income", step=50, weight=(2, 1))
        .update("size", direction="decreasing")
        .update("city", lower=None)
    )
    table = str(space)
    assert repr(space) == table
    lines = table.splitlines()
    assert lines[0].split() == "name kind range or levels may move step weight unit guess".split()
    assert lines[2].split() == "age integer 18 .. ~56 up 1 years int64 -> integer".split()
    assert lines[3].split()[:9] == "income continuous ~900 .. ~3000.25 any 50 down 2,".split()
    assert "fixed" in lines[4]
    assert "S < M < L" in lines[6]
    assert "down" in lines[6]
    assert "Bern, Oslo, Rome" in lines[7]
    assert "~ bound seen in the data" in lines[-1]
    by_hand = str(FeatureSpace([Feature("free", kind="continuous"), Feature("up", kind="continuous", lower=0)]))
    assert "any number" in by_hand
    assert "0 .." in by_hand
    assert "as given" in by_hand
    assert "~" not in by_hand
    many = FeatureSpace([Feature("x", kind="categorical", levels=[f"level {k}" for k in range(99)])])
    assert "(99 levels)" in str(many)
    frame = space.to_frame()
    assert list(frame.index) == list(space.names)
    assert frame.loc["age", "kind"] == "integer"
    assert frame.loc["size", "levels"] == ("S", "M", "L")
    assert frame.loc["income", "weight"] == (2.0, 1.0)


def test_one_row_of_sixty_columns_takes_little_time():
    wide = pd.concat([FRAME.add_suffix(str(copy_)) for copy_ in range(10)], axis=1)
    space = FeatureSpace.infer(wide, moves={name: "any" for name in wide if name.startswith(("age", "sex"))})
    row = wide.iloc[[0]]
    best = math.inf
    for _ in range(20):
        start = time.perf_counter()
        space.frame([space.row(row)])
        best = min(best, time.perf_counter() - start)
    assert best < 0.02  # 2 ms here; the 50 ms of a whole query must hold on a slow machine too
