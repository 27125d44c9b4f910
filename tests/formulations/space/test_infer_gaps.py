"""Missing cells and codes as they are read from data: what a space says of them, prints, and warns of."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.space import raw_frame
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError


def heard(frame, **options):
    """The space of a frame, and what is warned of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        space = FeatureSpace.infer(frame, **options)
    return space, [str(warning.message) for warning in caught]


GAPS = {
    "float": [1.5, np.nan, 2.5, 1.0, 4.0],
    "Int64": pd.array([1, None, 3, 7, 2], dtype="Int64"),
    "Float64": pd.array([1.5, None, 2.0, 1.0, 2.5], dtype="Float64"),
    "boolean": pd.array([True, None, False, True, True], dtype="boolean"),
    "string": pd.array(["a", None, "b", "c", "a"], dtype="string"),
    "object of text": pd.Series(["a", None, "b", "c", "a"], dtype=object),
    "object of bool": pd.Series([True, None, False, True, True], dtype=object),
    "NaT": pd.Series(["a", pd.NaT, "b", "c", "a"], dtype=object),
    "NA": pd.Series(["a", pd.NA, "b", "c", "a"], dtype=object),
    "category": pd.Categorical(["a", None, "b", "c", "a"]),
    "ordered": pd.Categorical(["a", None, "b", "c", "a"], ordered=True),
    "NaN that is no NA": pd.array([1, 0, 1, 2, 3], dtype="Float64") / pd.array([2, 0, 1, 4, 8], dtype="Float64"),
}


@pytest.mark.parametrize("name", GAPS)
def test_a_gap_of_any_dtype_is_seen_and_comes_back(name):
    frame = pd.DataFrame({"x": GAPS[name], "whole": range(5)})
    space, _ = heard(frame)
    assert (space["x"].missing, space["whole"].missing) == (True, False)
    assert space["x"].guess.endswith(", may be missing (20 % of rows)")
    assert "may be missing" not in space["whole"].guess
    points = space.coordinates(frame)
    assert (points[:, 0] == MISSING).tolist() == [False, True, False, False, False]
    assert space.row(frame.iloc[1])["x"] == MISSING
    back = raw_frame(space, points)
    assert back["x"].isna().tolist() == [False, True, False, False, False]
    present = [0, 2, 3, 4]
    assert back["x"].iloc[present].tolist() == frame["x"].iloc[present].tolist()
    assert FeatureSpace.from_json(space.to_json()) == space


def test_gaps_change_no_kind_bound_level_or_scale():
    whole = pd.DataFrame({"x": [1.5, 2.5, 1.0, 4.0], "level": ["a", "b", "c", "a"]})
    space, _ = heard(pd.concat([whole, pd.DataFrame({"x": [np.nan], "level": [None]})], ignore_index=True))
    again = space.update(list(space.names), missing=False)
    assert [again[name].levels for name in again.names] == [(), ("a", "b", "c")]
    for word in ("kind", "lower", "upper", "step", "decimals", "mad", "std", "range"):
        assert [getattr(f, word) for f in again] == [getattr(f, word) for f in FeatureSpace.infer(whole)]


def test_few_gaps_and_named_kinds_say_so():
    space, _ = heard(pd.DataFrame({"x": [np.nan, *range(300)]}), integer=["x"])
    assert space["x"].guess == "named integer, may be missing (under 1 % of rows)"
    with pytest.raises(InvalidValueError, match="'x' needs at least one value, but every cell is missing"):
        FeatureSpace.infer(pd.DataFrame({"x": [None, None]}))


# ---- codes -----------------------------------------------------------------------------------------------------------
LATE = pd.DataFrame({"late": [-9, -8, 0, 1, 2, 5, 5, 1] * 3, "pay": [-9.0, 0.5, 1.25, 2.0, 4.0, 3.0, 2.5, 4.5] * 3})


def test_bounds_steps_and_scales_are_those_of_the_amounts():
    space, told = heard(LATE, codes={"late": {-9: "no record", -8: "not usable"}, "pay": [-9]})
    assert told == []
    late, pay = space
    assert (late.codes, late.code_labels) == ((-9, -8), ("no record", "not usable"))
    amounts = LATE["late"][LATE["late"] >= 0]
    assert (late.lower, late.upper, late.range) == (0, 5, 5)
    assert late.mad == (amounts - amounts.median()).abs().median()
    assert late.std == pytest.approx(amounts.std(ddof=0))
    assert (pay.codes, pay.lower, pay.upper, pay.step, pay.decimals) == ((-9,), 0.5, 4.5, 0.01, 2)
    later = FeatureSpace.infer(LATE, integer=["late"], continuous=["pay"]).update("late", codes=[-9, -8], data=LATE)
    for word in ("lower", "upper", "mad", "std", "range"):
        assert getattr(late, word) == getattr(later["late"], word)


def test_codes_that_are_levels_stay_levels():
    frame = pd.DataFrame({"worst": [-9, 1, 2, 3], "job": ["?", "a", "b", "c"], "yes": ["no", "yes", "?", "no"]})
    space, told = heard(frame, ordinal={"worst": [1, 2, 3]}, codes={"worst": [-9], "job": ["?"], "yes": ["?"]})
    assert told == []
    assert (space["worst"].levels, space["worst"].codes) == ((-9, 1, 2, 3), (-9,))
    assert (space["job"].levels, space["job"].codes) == (("?", "a", "b", "c"), ("?",))
    assert space["yes"].kind == "categorical"  # three levels, of which one is a code
    listed, _ = heard(frame[["worst"]], ordinal={"worst": [1, -9, 2, 3]}, codes={"worst": [-9]})
    assert listed["worst"].levels == (1, 2, 3, -9)


def test_a_code_that_no_cell_holds_is_warned_of():
    space, told = heard(LATE[["late"]], codes={"late": [-9, -8, -7]})
    assert told == ["Column 'late' has no cell with -7, named as a code. Correct codes, or leave it out."]
    assert space["late"].codes == (-9, -8, -7)
    space, told = heard(pd.DataFrame({"job": ["a", "b", "c"]}), codes={"job": ["?", "n/a"]})
    assert told == ["Column 'job' has no cell with '?', 'n/a', named as codes. Correct codes, or leave them out."]
    assert space["job"].codes == ()  # what is no level can be no code


@pytest.mark.parametrize(
    ("codes", "error", "match"),
    [
        ([-9], InvalidTypeError, "codes as a mapping of names to codes"),
        ({"lat": [-9]}, UnknownNameError, "Did you mean 'late'"),
        ({"late": -9}, InvalidTypeError, "'late' needs codes in a list"),
        ({"late": ["none"]}, InvalidTypeError, "'late' needs numbers as codes, but one is 'none'"),
        ({"late": list(range(-9, 6))}, InvalidValueError, "'late' needs an amount in the frame"),
    ],
)
def test_codes_that_are_none_are_refused(codes, error, match):
    with pytest.raises(error, match=match):
        FeatureSpace.infer(LATE, codes=codes)


def test_codes_of_a_column_that_moves_by_any_amount_are_refused_with_the_line_to_write():
    frame = pd.DataFrame({"x": [-9.0, 0.123456, 1.5, 2.25]})
    with pytest.raises(InvalidValueError, match="'x' needs a step beside codes, but it moves by any amount") as caught:
        FeatureSpace.infer(frame, codes={"x": [-9]})
    line = str(caught.value).partition("Write ")[2].removesuffix(" after infer instead.").replace("...", "0.001")
    names = {"space": FeatureSpace.infer(frame, continuous=["x"]), "frame": frame}
    exec(line, names)  # noqa: S102 - the line is what the user is told to write
    assert (names["space"]["x"].codes, names["space"]["x"].step) == ((-9,), 0.001)


@pytest.mark.parametrize("level", ["?", "unknown", "Unknown", "N/A", "nan"])
def test_a_level_that_says_that_nothing_is_known_is_pointed_out_and_each_line_answers_it(level):
    frame = pd.DataFrame({"job": ["cook", "nurse", level, "clerk"] * 3})
    space, told = heard(frame)
    (sentence,) = told
    assert sentence.startswith(f"Column 'job' has the level {level!r}, which says that nothing is known, and answers ")
    assert space["job"].codes == ()
    assert not space["job"].missing  # nothing is adopted
    first, second, third = sentence.partition("Write ")[2].split(", or ")
    coded, told = heard(frame, **eval(f"dict({first.removesuffix(' in infer')})"))  # noqa: S307 - as above
    assert (coded["job"].codes, told) == ((level,), [])
    names = {"frame": frame.copy()}
    exec(second.removesuffix(" before the model is fitted"), names)  # noqa: S102 - as above
    gaps, told = heard(names["frame"])
    assert (gaps["job"].levels, gaps["job"].missing, told) == (("clerk", "cook", "nurse"), True, [])
    _, told = heard(frame, **eval(f"dict({third.partition(' in infer')[0]})"))  # noqa: S307 - as above
    assert told == []


def test_levels_that_mean_something_are_not_pointed_out():
    _, told = heard(pd.DataFrame({"debtors": ["none", "guarantor", "co-applicant"] * 3, "pay": [1, 2, 5] * 3}))
    assert told == []
    _, told = heard(pd.DataFrame({"job": ["?", "a", "b"] * 3}), moves={"job": "fixed"})
    assert told == []


# ---- what is shown ---------------------------------------------------------------------------------------------------
def test_a_space_prints_gaps_fills_and_codes():
    frame = LATE.assign(pay=LATE["pay"].where(LATE["pay"] > 0), job=["a", "b", "c", None] * 6)
    space, _ = heard(frame, codes={"late": {-9: "no record", -8: "not usable"}})
    head, _, late, pay, job, *_ = str(space).splitlines()
    assert head.split() == [
        "name",
        "kind",
        "range",
        "or",
        "levels",
        "missing",
        "may",
        "move",
        "step",
        "weight",
        "guess",
    ]
    assert "~0 .. ~5 (codes -9 no record, -8 not usable)" in late
    assert " may be " in pay
    assert job.endswith("may be missing (25 % of rows)")
    space = space.update("pay", missing="may_vanish", fill=2.5).update("job", missing="stays", fill=np.inf)
    space = space.update("late", codes_in_reach=True)
    head, _, late, pay, job, *notes = str(space).splitlines()
    assert "missing     fill" in head
    assert "(codes in reach -9 no record, -8 not usable)" in late
    assert "may vanish  2.5" in pay
    assert "stays       inf" in job
    assert notes[0].startswith("fill: what a missing cell or a code moves that becomes an amount")
    shown = space.to_frame()
    assert shown["missing"].tolist() == [False, "may_vanish", "stays"]
    assert shown["fill"].tolist() == [1.0, 2.5, np.inf]
    assert shown.loc["late", ["codes", "code_labels", "codes_in_reach"]].tolist() == [
        (-9, -8), ("no record", "not usable"), True,
    ]  # fmt: skip
    assert "may_vanish" in space._repr_html_()
    plain, _ = heard(pd.DataFrame({"x": [1, 2, 5]}))
    assert "missing" not in str(plain)
    assert "fill" not in str(plain)
