"""A column: its coordinates, scales and weights, and every description that is refused."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from ceopt.formulations.space import Feature
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError


def number(**options):
    return Feature("income", kind=options.pop("kind", "continuous"), **options)


def levels(*values, kind="ordinal", **options):
    return Feature("size", kind=kind, levels=values, **options)


@pytest.mark.parametrize(
    ("feature", "value", "coordinate"),
    [
        (number(), 0.1, 0.1),
        (number(), np.float32(0.1), float(np.float32(0.1))),
        (number(), 3, 3.0),
        (number(), 10**17, 1e17),
        (number(kind="integer"), 3.0, 3.0),
        (number(kind="integer"), np.int8(-3), -3.0),
        (number(kind="integer", dtype="uint8"), 255, 255.0),
        (levels("S", "M", "L"), "M", 1.0),
        (levels("S", "M", "L"), np.str_("L"), 2.0),
        (levels(1, 2, 5), np.float64(5), 2.0),
        (levels(False, True, kind="binary"), np.True_, 1.0),
        (levels(False, True, kind="binary"), 1, 1.0),
        (levels(0, 1, kind="binary"), True, 1.0),
        (levels("yes", "no", kind="binary"), "no", 1.0),
    ],
)
def test_a_value_has_a_coordinate_and_comes_back(feature, value, coordinate):
    assert feature.to_coordinate(value) == coordinate
    back = feature.from_coordinate(coordinate)
    assert back == value
    assert type(back) in {str, bool, int, float}


def test_the_sign_of_zero_survives_in_a_continuous_column():
    assert math.copysign(1, number().from_coordinate(number().to_coordinate(-0.0))) == -1


MISSING = [None, math.nan, np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "ns")]


@pytest.mark.parametrize("feature", [number(), number(kind="integer"), levels("S", "M"), levels(0, 1, kind="binary")])
@pytest.mark.parametrize("value", MISSING)
def test_a_missing_value_is_refused_by_name(feature, value):
    with pytest.raises(InvalidValueError, match=rf"{feature.name}.* needs a value, but its value is missing"):
        feature.to_coordinate(value)


@pytest.mark.parametrize("kind", ["continuous", "integer"])
@pytest.mark.parametrize("value", [True, np.False_, "3", b"3", dt.datetime(2020, 1, 1, tzinfo=dt.UTC), 1j, [3], {}])
def test_what_is_no_number_is_refused_by_name(kind, value):
    with pytest.raises(InvalidTypeError, match="Column 'income' needs a number, but its value is"):
        number(kind=kind).to_coordinate(value)


@pytest.mark.parametrize(
    ("feature", "value", "match"),
    [
        (number(), math.inf, "finite number, but its value is inf"),
        (number(), np.float32("-inf"), "finite number, but its value is -inf"),
        (number(), 2**53 + 1, "float64 holds exactly"),
        (number(kind="integer"), 3.5, "a whole number, but its value is 3.5"),
        (number(kind="integer"), 2**60, "from -9007199254740991 to 9007199254740991"),
        (number(kind="integer", dtype="uint8"), 256, r"from 0 to 255 \(uint8\)"),
        (number(kind="integer", dtype="UInt8"), -1, r"from 0 to 255 \(UInt8\)"),
        (number(kind="integer", dtype="float32"), 2**24, "16777215"),
        (levels("S", "M", "L"), "XL", "its value is 'XL'. Choose from: 'S', 'M', 'L'"),
        (levels("1", "2"), 1, "its value is 1. Choose from"),
        (levels(1, 2), "1", "its value is '1'"),
        (levels(1, 2), True, "its value is True"),
        (levels("S", "M"), ["S"], r"its value is \['S'\]"),
    ],
)
def test_values_that_a_column_cannot_hold(feature, value, match):
    with pytest.raises(InvalidValueError, match=match):
        feature.to_coordinate(value)


@pytest.mark.parametrize(
    ("feature", "coordinate"),
    [
        (number(), math.nan),
        (number(), math.inf),
        (number(kind="integer"), 2.0000001),
        (number(kind="integer", dtype="int8"), 128.0),
        (levels("S", "M"), 0.5),
        (levels("S", "M"), 2.0),
        (levels("S", "M"), -1.0),
        (levels("S", "M"), math.nan),
    ],
)
def test_coordinates_that_stand_for_nothing(feature, coordinate):
    with pytest.raises(InvalidValueError, match=f"Column '{feature.name}' needs"):
        feature.from_coordinate(coordinate)


def test_a_number_has_no_ranks():
    with pytest.raises(InvalidTypeError, match="Column 'income' needs levels"):
        number().rank(3)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"kind": "number"}, UnknownNameError, "kind is 'number'.*Choose from: continuous, integer"),
        ({"kind": "continous"}, UnknownNameError, "Did you mean 'continuous'"),
        ({"direction": "upwards"}, UnknownNameError, "direction is 'upwards'.*increasing.*up"),
        ({"lower": 2, "upper": 1}, InvalidValueError, r"at most the upper, but bounds are \[2, 1\]"),
        ({"lower": math.nan}, InvalidValueError, "lower is nan"),
        ({"lower": "0"}, InvalidTypeError, "lower is '0'"),
        ({"upper": True}, InvalidTypeError, "upper is True"),
        ({"lower": math.inf}, InvalidValueError, "at most the upper"),
        ({"kind": "integer", "lower": 0.5}, InvalidValueError, "lower is 0.5"),
        ({"kind": "integer", "dtype": "uint8", "upper": 300}, InvalidValueError, r"uint8 holds \(0 to 255\)"),
        ({"step": 0}, InvalidValueError, "positive step, but step is 0"),
        ({"step": math.inf}, InvalidValueError, "step is inf"),
        ({"kind": "integer", "step": 0.5}, InvalidValueError, "positive whole step"),
        ({"weight": -1}, InvalidValueError, "weight to be finite and at least 0"),
        ({"weight": math.nan}, InvalidValueError, "weight is nan"),
        ({"weight": (1, 2, 3)}, InvalidValueError, "one or two"),
        ({"weight": (1, math.inf)}, InvalidValueError, "weight is inf"),
        ({"weight": "high"}, InvalidTypeError, "weight is 'high'"),
        ({"levels": ("a",)}, InvalidValueError, "no levels, being continuous"),
        ({"mutable": "no"}, InvalidTypeError, "mutable is 'no'"),
        ({"unit": 3}, InvalidTypeError, "unit is 3"),
        ({"mad": -1.0}, InvalidValueError, "mad is -1"),
        ({"std": math.inf}, InvalidValueError, "std is inf"),
        ({"dtype": "datetime64[ns]"}, InvalidValueError, "dtype is 'datetime64"),
        ({"dtype": np.dtype("complex128")}, InvalidTypeError, "its dtype is complex128"),
        ({"dtype": "bool"}, InvalidTypeError, "numbers to be continuous, but its dtype is bool"),
        ({"dtype": "str"}, InvalidTypeError, "its dtype is str"),
        ({"categories": ("a",)}, InvalidValueError, "categories only in a category column"),
        ({"kind": "ordinal"}, InvalidValueError, "at least one level"),
        ({"kind": "ordinal", "levels": "SML"}, InvalidTypeError, "levels in a list or tuple"),
        ({"kind": "ordinal", "levels": 3}, InvalidTypeError, "levels in a list or tuple"),
        ({"kind": "ordinal", "levels": ("S", "M", "S")}, InvalidValueError, "'S' is there twice"),
        ({"kind": "ordinal", "levels": (0, False)}, InvalidValueError, "False is there twice"),
        ({"kind": "ordinal", "levels": ("S", math.nan)}, InvalidTypeError, "one is nan"),
        ({"kind": "ordinal", "levels": ("S", None)}, InvalidTypeError, "one is None"),
        ({"kind": "ordinal", "levels": (1, 2), "upper": 2}, InvalidValueError, "no bounds, being ordinal"),
        ({"kind": "ordinal", "levels": (1, 2), "step": 1}, InvalidValueError, "no step"),
        ({"kind": "binary", "levels": (1, 2, 3)}, InvalidValueError, "exactly two levels"),
        ({"kind": "categorical", "levels": ("a", "b"), "direction": "increasing"}, InvalidValueError, "no order"),
        ({"kind": "ordinal", "levels": ("a", 1), "dtype": "int64"}, InvalidValueError, "level 'a' is not"),
        ({"kind": "ordinal", "levels": (1, 300), "dtype": "uint8"}, InvalidValueError, "dtype uint8 holds"),
        (
            {"kind": "ordinal", "levels": ("a", "b"), "dtype": "category", "categories": ("a",)},
            InvalidValueError,
            "level 'b' is not",
        ),
    ],
)
def test_descriptions_that_are_refused_by_name(options, error, match):
    with pytest.raises(error, match=match) as caught:
        Feature("income", **({"kind": "continuous"} | options))
    assert "income" in str(caught.value)
    assert isinstance(caught.value, CeoptError)


@pytest.mark.parametrize("name", [3, "", None])
def test_a_name_is_text(name):
    with pytest.raises(InvalidTypeError, match="a name that is text"):
        Feature(name, kind="continuous")


def test_scales_fall_back_where_zero_or_unknown():
    known = number(mad=2, std=3, range=10)
    assert [known.scale(kind) for kind in ("mad", "std", "range", "none")] == [2, 3, 10, 1]
    assert number(mad=0, std=3, range=10).scale("mad") == 3
    assert number(mad=0, std=0, range=10).scale("mad") == 10
    assert number(std=0, mad=5, range=10).scale("std") == 10
    assert number(lower=2, upper=6).scale("range") == 4
    assert number(lower=2, upper=6).scale("mad") == 4
    assert number(lower=2, upper=6, range=1).scale("range") == 1
    assert [number(lower=2).scale(kind) for kind in ("mad", "std", "range", "none")] == [1, 1, 1, 1]
    assert number(mad=0, std=0, range=0, lower=1, upper=1).scale("mad") == 1
    assert [levels("S", "M", "L").scale(kind) for kind in ("mad", "none")] == [2, 2]
    assert levels("S").scale("mad") == 1
    assert levels("a", "b", "c", kind="categorical").scale("range") == 1
    assert levels(0, 1, kind="binary").scale("std") == 1
    with pytest.raises(UnknownNameError, match="scale is 'median'.*Choose from: mad, std, range, none"):
        number().scale("median")


def test_weights_are_down_and_up():
    assert number(weight=2).weights == (2.0, 2.0)
    assert number(weight=[1, 3]).weights == (1.0, 3.0)


def test_a_feature_is_a_value():
    feature = levels("S", "M", weight=(1, 2), dtype=pd.CategoricalDtype(["S", "L", "M"]))
    assert pickle.loads(pickle.dumps(feature)) == feature
    assert copy.deepcopy(feature) == feature
    assert hash(copy.copy(feature)) == hash(feature)
    assert feature.categories == ("S", "L", "M")
    assert feature != levels("M", "S")
    with pytest.raises(AttributeError):
        feature.name = "other"


def test_numpy_levels_become_plain():
    assert [type(level) for level in levels(*np.array([1, 2, 3])).levels] == [int, int, int]
    assert levels(0, 1, kind="binary", dtype="bool").levels == (False, True)
    assert all(isinstance(level, bool) for level in levels(0, 1, kind="binary", dtype="bool").levels)
