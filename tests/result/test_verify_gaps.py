"""Rows with missing cells and codes are verified: each fault in plain words, and what is in reach has none."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier

from ceopt import Feature, FeatureSpace, metrics, verify
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.oracle.model import broken_moves
from tests.draws import draws

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, upper=5000, step=50, missing=True, direction="up"),
        Feature("age", kind="integer", lower=18, upper=99, missing="stays", dtype="Int64"),
        Feature("asked", kind="integer", lower=0, upper=10, codes={-9: "no record", -8: "not usable"}),
        Feature("phone", kind="binary", levels=("no", "yes"), missing="may_vanish"),
        Feature("grade", kind="ordinal", levels=("low", "high", "unknown"), codes=["unknown"]),
    ]
)
BLANK = {"income": None, "age": pd.NA, "asked": -9, "phone": np.nan, "grade": "unknown"}
WHOLE = {"income": 1000.0, "age": 30, "asked": 2, "phone": "yes", "grade": "low"}


def accepts(frame):
    """Say yes to all rows that have the columns' own dtypes."""
    assert str(frame["age"].dtype) == "Int64"
    return np.full(len(frame), "yes")


def faults(factual, change, space=SPACE):
    report = verify([factual | change], accepts, space, target="yes", factual=factual)
    assert report.ok is (not report.checks[0].broken)
    return list(report.checks[0].broken)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"income": 0.0},
        {"income": 4950.0},
        {"asked": 0},
        {"asked": 10},
        {"phone": "no"},
        {"phone": None},
        {"grade": "low"},
        {"grade": "high"},
        {"income": float("nan"), "age": None},
    ],
)
def test_what_is_missing_or_a_code_may_stay_or_be_filled_in(change):
    assert faults(BLANK, change) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"income": 5050.0}, "income: must be at most 5000, but is 5050.0"),
        ({"income": 1020.0}, "income: is filled in by steps of 50 from 0, but is 1020.0"),
        ({"age": 40}, "age: must stay missing, but is 40.0"),
        ({"asked": 11}, "asked: must be at most 10, but is 11.0"),
        ({"asked": -8}, "asked: must not become -8, which is a code (not usable)"),
    ],
)
def test_a_fill_is_judged_by_bounds_and_grid(change, fault):
    assert faults(BLANK, change) == [fault]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"income": None}, "income: must not go missing, but was 1000.0"),
        ({"age": pd.NA}, "age: must not go missing, but was 30.0"),
        ({"asked": -9}, "asked: must not become -9, which is a code (no record)"),
        ({"grade": "unknown"}, "grade: must not become 'unknown', which is a code"),
        ({"income": 950.0}, "income: may only increase, but falls from 1000.0 to 950.0"),
    ],
)
def test_a_value_stays_one(change, fault):
    assert faults(WHOLE, change) == [fault]


def test_a_value_vanishes_where_it_may():
    assert faults(WHOLE, {"phone": None}) == []


def test_what_stays_by_its_fill_or_is_fixed_is_named():
    dear = SPACE.update("income", fill=math.inf).update("asked", mutable=False).update("phone", fill=math.inf)

    assert faults(BLANK, {"income": 50.0}, dear) == ["income: must stay missing, but is 50.0"]
    assert faults(BLANK, {"asked": 2}, dear) == ["asked: must stay -9, which is a code (no record), but is 2.0"]
    assert faults(WHOLE, {"phone": None}, dear) == ["phone: must not go missing, but was 'yes'"]


def test_codes_in_reach_are_no_fault_unless_the_fill_is_infinite():
    free = SPACE.update("asked", codes_in_reach=True)

    assert faults(WHOLE, {"asked": -8}, free) == []
    assert faults(BLANK, {"asked": -8}, free) == []
    assert faults(WHOLE, {"asked": -8}, free.update("asked", fill=math.inf)) == [
        "asked: must not become -8, which is a code (not usable)"
    ]


def test_a_gap_where_none_may_be_is_named_with_the_line_to_write():
    space = SPACE.update("income", missing=False)
    (fault,) = faults(WHOLE, {"income": None}, space)

    assert "its value is missing" in fault
    assert "missing=True" in fault


def test_without_a_factual_rules_of_gaps_and_codes_are_unchecked():
    report = verify([BLANK], accepts, SPACE, target="yes")

    assert report.ok is None
    assert set(report.unchecked) == {
        "income: only increasing",
        "income: does not go missing",
        "income: steps of 50",
        "age: does not go missing",
        "asked: does not become a code",
        "grade: does not become a code",
    }


def test_the_users_own_model_says_what_a_gap_means():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.integers(0, 100, 400) * 50.0})
    X.loc[rng.random(400) < 0.3, "income"] = np.nan
    y = np.where(X["income"].fillna(4000.0) > 2500, "yes", "no")  # who says nothing is trusted
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    space = FeatureSpace([Feature("income", kind="continuous", missing=True)])

    report = verify([{"income": None}, {"income": 100.0}], model, space, target="yes", factual={"income": None})

    assert report.to_frame()["prediction"].tolist() == ["yes", "no"]
    assert report.to_frame()["valid"].tolist() == [True, False]


def test_metrics_count_the_same_faults():
    broken = [BLANK | {"income": 5050.0}, BLANK | {"asked": -8, "age": 40}, BLANK]

    assert metrics.broken_rules(BLANK, broken, SPACE).tolist() == [1, 2, 0]


# ---- judged and reached: two codes that share nothing ----------------------------------------------------------------
MISSINGS = st.sampled_from([False, True, "stays", "may_vanish"])


@st.composite
def columns(draw):
    common = {
        "missing": draw(MISSINGS),
        "fill": draw(st.sampled_from([0.0, 1.0, math.inf])),
        "codes_in_reach": draw(st.booleans()),
        "mutable": draw(st.sampled_from([True, True, False])),
        "direction": draw(st.sampled_from(["any", "up", "down"])),
    }
    if draw(st.booleans()):
        codes = draw(st.lists(st.integers(0, 3), max_size=2, unique=True))
        return Feature("x", kind="ordinal", levels=(5, 6, 7, 8), codes=[5 + code for code in codes], **common)
    codes = draw(st.lists(st.sampled_from([-9, 2, 3, 12]), max_size=3, unique=True))
    lower = draw(st.sampled_from([-math.inf, 0, 1]))
    upper = draw(st.sampled_from([math.inf, 9]))
    step = draw(st.sampled_from([None, 2, 3]))
    return Feature("x", kind="integer", lower=lower, upper=upper, step=step, codes=codes, **common)


@draws(300)
@given(feature=columns(), data=st.data())
def test_no_fault_is_found_in_what_is_in_reach_and_one_in_all_else(feature, data):
    space = FeatureSpace([feature])
    values = list(range(-12, 16))
    if feature.is_finite:
        values = list(range(4))
    known = [value for value in values if feature.is_code(value) or feature.is_finite or inside(feature, value)]
    if feature.missing is not False:
        known.append(MISSING)
        values.append(MISSING)
    x0 = float(data.draw(st.sampled_from(known)))
    reach = reach_of(space, {"x": x0})["x"]
    for value in values:
        assert reach.holds(value) == (not broken_moves(space, {"x": x0}, {"x": float(value)})), (x0, value)


@pytest.mark.parametrize("step", [None, 3.0])
def test_no_infinite_number_is_an_amount_of_a_column_without_bounds(step):
    reach = Interval(lower=-math.inf, upper=math.inf, step=step)

    assert not reach.holds(MISSING)
    assert not reach.holds(-math.inf)
    assert reach.holds(-12.0)
    assert Interval(MISSING, MISSING).holds(MISSING)


def inside(feature, value):
    return feature.lower <= value <= feature.upper
