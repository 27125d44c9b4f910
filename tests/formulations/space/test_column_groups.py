"""What columns say together, as ``infer`` points it out: one 1 in every row, sums that are constant, the same twice."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
import pytest

from ceopt.formulations.constraints import Linear
from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.pitfalls import Pitfall, pitfalls

_rng = np.random.default_rng(0)
N = 200
COLOURS = _rng.choice(["red", "green", "blue"], N)
HOMES = _rng.choice(["rent", "own"], N)


def seen(frame: pd.DataFrame, **options) -> list[Pitfall]:
    """What is found of several columns together, or of one beside another."""
    features = infer_features(frame, **options)
    found = pitfalls(frame, features, settled=options.get("moves", {}))
    return [one for one in found if one.kind in {"one_hot", "sum", "same"}]


# ---- one 1 in every row ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [bool, int, float])
def test_dummies_of_one_column_are_a_group_with_its_rule(dtype):
    frame = pd.get_dummies(pd.DataFrame({"colour": COLOURS, "home": HOMES}), dtype=dtype).assign(income=_rng.random(N))
    first, second = seen(frame)
    assert first.sentence == (
        "Columns 'colour_blue', 'colour_green' and 'colour_red' are 0 or 1, and exactly one is 1 in every row; answers "
        "may make it none or two. Write constraints=[ExactlyOne(['colour_blue', 'colour_green', 'colour_red'])] in "
        "explain, of ceopt.ExactlyOne."
    )
    assert first.names == ("colour_blue", "colour_green", "colour_red")
    assert second.names == ("home_own", "home_rent")
    assert "ExactlyOne(['home_own', 'home_rent'])" in second.line
    stranger = frame.assign(colour_known=_rng.integers(0, 2, N))  # of the same name, and of no group
    assert {one.names for one in seen(stranger)} == {first.names, second.names}


@pytest.mark.parametrize("mark", ["=", ".", " ", "-", ": "])
def test_groups_are_found_whatever_stands_between_the_parts_of_a_name(mark):
    frame = pd.get_dummies(pd.DataFrame({"job kind": COLOURS}), prefix_sep=mark)
    (one,) = seen(frame)
    assert set(one.names) == set(frame.columns)


def test_a_group_within_a_longer_name_is_told_from_its_neighbours():
    """The rows of "job_" have two ones: one of "job_kind_", and one of "job_place_"."""
    frame = pd.get_dummies(pd.DataFrame({"job_kind": COLOURS, "job_place": HOMES}), dtype=int)
    assert [one.names for one in seen(frame)] == [
        ("job_kind_blue", "job_kind_green", "job_kind_red"),
        ("job_place_own", "job_place_rent"),
    ]


def test_a_group_without_a_common_name_is_found_by_its_sum():
    frame = pd.get_dummies(pd.Series(COLOURS), dtype=int)
    (one,) = seen(frame)
    assert one.kind == "one_hot"
    assert "ExactlyOne(['blue', 'green', 'red'])" in one.line


def test_many_columns_are_named_by_the_start_of_their_names():
    towns = _rng.choice([f"t{k}" for k in range(12)], N)
    frame = pd.get_dummies(pd.DataFrame({"town": towns}), dtype=int).assign(income=_rng.random(N))
    (one,) = seen(frame)
    line = one.line.partition("ExactlyOne(")[2].partition(")] in explain")[0]
    space = FeatureSpace(infer_features(frame))
    assert eval(line, {"space": space}) == list(one.names) == [name for name in frame if name != "income"]  # noqa: S307
    assert "6 more" in one.sentence


@pytest.mark.parametrize(
    "frame",
    [
        pd.get_dummies(pd.DataFrame({"colour": COLOURS}), drop_first=True),
        pd.get_dummies(pd.DataFrame({"colour": COLOURS})).astype(int).assign(colour_red=0),
        pd.DataFrame({"has_car": _rng.integers(0, 2, N), "has_house": _rng.integers(0, 2, N)}),
        pd.get_dummies(pd.DataFrame({"colour": COLOURS[:8]})),
    ],
    ids=["the first is dropped", "none in some rows", "two flags", "few rows prove little"],
)
def test_what_is_no_group(frame):
    assert seen(frame) == []


def test_rows_with_missing_cells_do_not_hide_a_group():
    frame = pd.get_dummies(pd.DataFrame({"colour": COLOURS}), dtype=float)
    frame.loc[:4, "colour_red"] = np.nan
    assert [one.kind for one in seen(frame)] == ["one_hot"]


def test_a_group_whose_kinds_are_named_or_that_is_fixed_is_not_asked_about():
    frame = pd.get_dummies(pd.DataFrame({"colour": COLOURS}), dtype=int)
    assert seen(frame, binary=list(frame)) == []
    assert seen(frame, moves=dict.fromkeys(frame, "fixed")) == []


# ---- sums that are constant ------------------------------------------------------------------------------------------
def _shares(n: int, total: float, decimals: int | None, parts: int = 3) -> pd.DataFrame:
    shares = total * np.random.default_rng(parts).dirichlet(np.ones(parts), n)
    if decimals is not None:
        shares = shares.round(decimals)
    return pd.DataFrame(shares, columns=[f"share {k}" for k in range(parts)]).assign(
        income=_rng.random(n).round(2), debt=_rng.integers(0, 9, n)
    )


@pytest.mark.parametrize(("total", "decimals"), [(100.0, 0), (100.0, 1), (1.0, 2), (1.0, 4), (1.0, None), (24.0, 2)])
@pytest.mark.parametrize("parts", [2, 3, 6])
def test_shares_that_sum_to_a_constant_have_their_rule(total, decimals, parts):
    frame = _shares(N, total, decimals, parts)
    (one,) = seen(frame)
    names = [name for name in frame if name.startswith("share")]
    assert list(one.names) == names
    rule = one.line.partition("constraints=[")[2].partition("] in explain")[0]
    stated = eval(rule, {"Linear": Linear})  # noqa: S307 - the line that users are told to write
    assert stated == Linear(dict.fromkeys(names, 1), "==", total, beyond="no_further")


def test_a_total_is_told_with_its_parts():
    frame = pd.DataFrame({"rent": _rng.integers(0, 900, N), "food": _rng.integers(0, 500, N)})
    frame["spent"] = frame["rent"] + frame["food"]
    frame["income"] = _rng.integers(1000, 9000, N)
    (one,) = seen(frame)
    assert "Linear({'rent': 1, 'food': 1, 'spent': -1}, '==', 0, beyond='no_further')" in one.line
    assert "rent + food - spent = 0" in one.sentence


def test_two_sums_and_a_column_that_is_there_twice_are_each_found():
    more = _shares(N, 1.0, 2, 4).drop(columns=["income", "debt"]).add_prefix("b ")
    frame = pd.concat([_shares(N, 100.0, 1), more], axis=1)
    frame["again"] = frame["income"]
    assert {one.names for one in seen(frame)} == {
        ("share 0", "share 1", "share 2"),
        ("b share 0", "b share 1", "b share 2", "b share 3"),
        ("income", "again"),
    }


def test_sums_are_held_against_all_rows_and_those_with_gaps_are_left_out():
    frame = _shares(3000, 100.0, 1)
    frame.loc[:20, "share 1"] = np.nan
    assert len(seen(frame)) == 1
    frame.loc[2999, "share 1"] += 5.0
    assert seen(frame) == []


@pytest.mark.parametrize("n", [12, 40, 300, 3000])
def test_columns_that_have_nothing_to_do_with_each_other_are_not_told_of(n):
    rng = np.random.default_rng(n)
    common = rng.normal(size=n)
    frame = pd.DataFrame({
        "a": rng.normal(size=n), "b": rng.integers(0, 2, n), "c": rng.integers(0, 3, n), "d": rng.random(n).round(1),
        "e": common.round(2), "f": (common + 0.05 * rng.normal(size=n)).round(2), "g": rng.poisson(3, n),
        "h": rng.integers(0, 2, n), "i": rng.integers(0, 2, n),
    })  # fmt: skip
    assert seen(frame) == []


# ---- the same as a protected or fixed column -------------------------------------------------------------------------
def _couples(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    sex = rng.choice(["Male", "Female"], n, p=[0.67, 0.33])
    married = rng.random(n) < 0.5
    relationship = np.where(married, np.where(sex == "Male", "Husband", "Wife"), rng.choice(["Own-child", "Other"], n))
    marital = np.where(married, "Married", rng.choice(["Never", "Divorced"], n))
    return pd.DataFrame({
        "relationship": relationship, "sex": sex, "marital_status": marital, "hours": rng.integers(10, 60, n),
        "job": rng.choice(["a", "b", "c"], n),
    })  # fmt: skip


def test_relationship_says_the_same_as_sex_and_marital_status():
    (one,) = seen(_couples(2000))
    assert one.column == "relationship"
    assert "'sex', which looks protected ('relationship' 'Husband' has 'sex' 'Male' in " in one.sentence
    assert "'marital_status', which looks protected" in one.sentence
    assert "Write space = space.fix('relationship'), or moves={'relationship': 'fixed'} in infer" in one.line


def test_one_row_in_a_thousand_may_be_otherwise_and_no_more():
    frame = _couples(9000)
    husbands = frame.index[frame["relationship"] == "Husband"]
    wives = frame.index[frame["relationship"] == "Wife"]
    frame.loc[husbands[:2], "sex"] = "Female"
    assert "'sex'" in seen(frame)[0].sentence
    frame.loc[husbands[:60], "sex"] = "Female"
    frame.loc[wives[:60], "sex"] = "Male"
    assert "'sex'" not in seen(frame)[0].sentence


def test_what_is_settled_by_a_fixed_column_is_told_of():
    ages = _rng.integers(18, 80, 2000)
    frame = pd.DataFrame({
        "age": ages, "age_group": (ages // 10).astype(str), "age_months": 12 * ages + 3,
        "debt": _rng.integers(0, 9, 2000),
    })  # fmt: skip
    assert seen(frame, moves={"age": "any"}) == []
    found = {one.column: one for one in seen(frame, moves={"age": "fixed"})}
    assert set(found) == {"age_group", "age_months"}
    assert "'age', which is fixed" in found["age_group"].sentence
    heights = _rng.normal(170, 9, 500)
    measured = pd.DataFrame({"height_cm": heights, "height_in": heights / 2.54, "debt": _rng.random(500)})
    (one,) = seen(measured, moves={"height_cm": "fixed"})
    assert "it is a multiple of 'height_cm'" in one.sentence


def test_who_has_decided_is_not_asked_again():
    frame = _couples(2000)
    assert seen(frame, moves={"relationship": "fixed"}) == []
    assert seen(frame, moves={"relationship": "any"}) == []
    assert seen(frame, moves={"sex": "any", "marital_status": "any"}) == []


@pytest.mark.parametrize("n", [20, 60, 300, 3000])
def test_chance_and_rare_levels_settle_nothing(n):
    rng = np.random.default_rng(n)
    frame = pd.DataFrame({
        "sex": rng.choice(["f", "m"], n), "foreign_worker": rng.choice(["yes", "no"], n, p=[0.96, 0.04]),
        "race": rng.choice(list("abcd"), n, p=[0.85, 0.1, 0.04, 0.01]),
        "town": rng.choice([f"t{k}" for k in range(90)], n),
        "job": rng.choice(["a", "b"], n), "income": rng.integers(900, 9000, n), "rate": rng.random(n),
        "guarantor": rng.random(n) < 0.05,
    })  # fmt: skip
    assert seen(frame) == []


# ---- time ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_rows_of_thirty_columns_take_no_time_to_speak_of(n):
    """CPU seconds, as other processes may run beside: 1.2 were measured for 100,000 rows."""
    rng = np.random.default_rng(0)
    levels = np.array(["a", "b", "c"])
    columns = {f"number {k}": rng.lognormal(8, 1, n).round(2) for k in range(10)}
    columns |= {f"count {k}": rng.integers(0, 100, n) for k in range(10)}
    columns |= {f"level {k}": levels[rng.integers(0, 3, n)] for k in range(5)}
    columns |= {f"flag {k}": rng.integers(0, 2, n) for k in range(3)}
    columns |= {"sex": levels[rng.integers(0, 2, n)], "race": levels[rng.integers(0, 3, n)]}
    frame = pd.DataFrame(columns)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FeatureSpace.infer(frame)
    assert time.process_time() - began < 3.0 * n / 100_000 + 0.5
