"""Results of people with missing cells and codes: tables, JSON and hashes."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from ceopt import Cohort, Feature, FeatureSpace
from ceopt.formulations.content_hash import content_of
from ceopt.result.counterfactual import Counterfactual, scalars
from ceopt.result.solution_set import SolutionSet

NAN = float("nan")
SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, missing=True, unit="dollars", mad=10.0),
        Feature("age", kind="integer", missing=True, dtype="Int64"),
        Feature("asked", kind="integer", lower=0, codes={-9: "no record", -8: "not usable"}),
        Feature("grade", kind="ordinal", levels=("low", "high", "unknown"), codes=["unknown"], missing=True),
        Feature("job", kind="categorical", levels=("cook", "baker"), missing="may_vanish", dtype="category"),
        Feature("phone", kind="binary", levels=(False, True), missing=True, dtype="boolean"),
    ]
)
BLANK = {"income": NAN, "age": NAN, "asked": -9, "grade": NAN, "job": NAN, "phone": NAN, "text": NAN}
FILLED = {"income": 4551.0, "age": 40, "asked": 2, "grade": "low", "job": "cook", "phone": True}


def frame(row, space=SPACE, index=None):
    return space.frame([space.row({name: row[name] for name in space.names})], index=index)


def answer(before, after, space=SPACE, **fields):
    changed = []
    for feature in space:
        if feature.to_coordinate(before[feature.name]) != feature.to_coordinate(after[feature.name]):
            changed.append(feature.name)
    given = {"cost": 1.5, "prediction": "yes", "score": 0.5, "slack": 0.1, "verified": True, "rank": 1}
    given |= {"bound": 1.5, "gap": 0.0, "values": frame(after, space), "changed": tuple(changed)}
    return Counterfactual(**(given | fields))


def solved(before, *afters, space=SPACE, **fields):
    answers = tuple(answer(before, after, space, rank=rank) for rank, after in enumerate(afters, 1))
    given = {"status": "optimal" if answers else "infeasible", "counterfactuals": answers, "target": "yes"}
    given |= {"factual": frame(before, space, ["ann"]), "space": space, "query_id": "ann"}
    return SolutionSet(**(given | fields))


def cohort(*results, space=SPACE):
    queries = pd.concat([result.factual for result in results])
    return Cohort(
        results=results, queries=queries, space=space, finished=(True,) * len(results), options={"target": "yes"}
    )


# ---- values, frames and moves ----------------------------------------------------------------------------------------
def test_values_are_nan_and_frames_write_what_their_dtypes_have():
    result = solved(BLANK, BLANK | {"income": 4551.0})

    assert result[0].changed == ("income",)
    assert [name for name, value in result[0].values.items() if isinstance(value, float) and math.isnan(value)] == [
        "age", "grade", "job", "phone",
    ]  # fmt: skip
    assert result[0].frame["age"].iloc[0] is pd.NA
    assert result.to_frame().dtypes.to_dict() == {name: SPACE[name].pandas_dtype for name in SPACE.names}
    assert result[0].frame.equals(frame(BLANK | {"income": 4551.0}))


@pytest.mark.parametrize("gap", [None, NAN, np.nan, pd.NA, pd.NaT])
def test_all_that_says_missing_is_nan_in_values(gap):
    row = pd.DataFrame({"a": pd.Series([gap], dtype=object), "b": [1]})

    assert math.isnan(scalars(row)["a"])


def test_changes_list_what_is_filled_in_and_what_goes():
    result = solved(FILLED | {"asked": -8}, FILLED | {"job": NAN, "asked": 3}, FILLED | {"asked": -8})
    moves = result.changes()

    assert moves.index.tolist() == [(1, "asked"), (1, "job")]
    assert moves.loc[(1, "asked")].tolist() == [-8, 3]
    assert moves.loc[(1, "job"), "from"] == "cook"
    assert math.isnan(moves.loc[(1, "job"), "to"])


def test_a_cohort_says_no_move_of_what_is_filled_in():
    many = cohort(solved(BLANK, FILLED), solved(FILLED, FILLED | {"income": 4561.0, "grade": "high"}))
    moves = many.changes()

    assert moves["move"].isna().tolist() == [True] * 6 + [False, False]
    assert moves["move"].tolist()[6:] == [10.0, 1.0]
    assert moves["to"].tolist()[:2] == [4551.0, 40]
    table = many.to_frame()
    assert table["income"].tolist() == [4551.0, 4561.0]
    assert str(table["age"].dtype) == "Int64"


# ---- JSON ------------------------------------------------------------------------------------------------------------
OBJECTS = FeatureSpace(
    [
        Feature("text", kind="categorical", levels=("a", "b"), dtype="object", missing=True),
        Feature("pay", kind="continuous", missing=True, dtype="object"),
    ]
)


@pytest.mark.parametrize(
    ("space", "before", "after"),
    [
        (SPACE, BLANK, FILLED),
        (SPACE, FILLED, FILLED | {"job": NAN}),
        (SPACE, BLANK, BLANK),
        (OBJECTS, {"text": None, "pay": None}, {"text": "a", "pay": NAN}),
    ],
)
def test_json_reads_back_exactly_and_a_missing_cell_is_null(space, before, after):
    result = solved(before, after, space=space)
    text = result.to_json()
    back = SolutionSet.from_json(text)

    document = json.loads(text)
    for held, given in ((document["factual"], before), (document["counterfactuals"][0]["values"], after)):
        for column in held["columns"]:
            assert (column["value"] is None) == bool(pd.isna(given[column["name"]]))
    pd.testing.assert_frame_equal(back.factual, result.factual)
    pd.testing.assert_frame_equal(back[0].frame, result[0].frame)
    assert back.space == space
    assert back.to_json() == text
    assert back[0].changed == result[0].changed
    assert pickle.loads(pickle.dumps(back)).to_json() == text


def test_rows_as_the_user_wrote_them_come_back_as_they_were():
    for gap in (None, NAN, pd.NA, pd.NaT):
        row = pd.DataFrame({"a": pd.Series([gap], dtype=object), "b": [1.0]})
        back = SolutionSet.from_json(SolutionSet(status="error", counterfactuals=(), factual=row).to_json()).factual

        assert repr(back["a"].iloc[0]) == repr(gap)
        assert back.dtypes.to_dict() == row.dtypes.to_dict()


def test_text_of_an_earlier_release_is_read():
    result = solved(BLANK | {"income": 3.0}, BLANK | {"income": 4551.0}, space=OBJECTS_AND_INCOME)
    document = json.loads(result.to_json())
    for column in document["factual"]["columns"]:
        if column["value"] is None:  # as it was written when null was None alone
            column["value"] = {"float": "nan"}
            column.pop("missing", None)
    back = SolutionSet.from_json(json.dumps(document))

    pd.testing.assert_frame_equal(back.factual, result.factual)


OBJECTS_AND_INCOME = FeatureSpace(
    [SPACE["income"], SPACE["asked"], Feature("text", kind="categorical", levels=("a",), dtype="object", missing=True)]
)


def test_a_cohort_with_gaps_reads_back_exactly():
    many = cohort(solved(BLANK, BLANK), solved(BLANK, FILLED), solved(FILLED))
    text = many.to_json()
    back = Cohort.from_json(text)

    assert back.to_json() == text
    pd.testing.assert_frame_equal(back.queries, many.queries)
    pd.testing.assert_frame_equal(back.to_frame(), many.to_frame())
    assert back.summary().statuses == {"optimal": 2, "infeasible": 1}


def test_frames_of_several_ways_to_be_missing_keep_each():
    queries = pd.DataFrame(
        {"text": pd.Series([None, NAN, "a"], dtype=object), "income": [NAN, 1.0, 2.0], "asked": [-9, 1, 2]}
    )
    results = tuple(solved(dict(row), space=OBJECTS_AND_INCOME) for _, row in queries.iterrows())
    many = Cohort(results=results, queries=queries, space=OBJECTS_AND_INCOME, finished=(True,) * 3)
    back = Cohort.from_json(many.to_json()).queries

    assert list(map(repr, back["text"])) == ["None", "nan", "'a'"]
    assert list(map(repr, back["income"])) == list(map(repr, queries["income"]))


# ---- equal and the same by hash --------------------------------------------------------------------------------------
def test_content_of_rows_with_gaps_is_that_of_equal_rows():
    one = pd.DataFrame(
        {"a": [NAN, 1.0], "b": pd.Series([np.nan, "x"], dtype=object), "c": pd.array([None, 2], "Int64")}
    )
    other = pd.DataFrame(
        {
            "a": [float("nan"), 1.0],
            "b": pd.Series([float("nan"), "x"], dtype=object),
            "c": pd.array([pd.NA, 2], "Int64"),
        }
    )

    assert content_of(one) == content_of(other) is not None
    assert content_of(SPACE) == content_of(FeatureSpace(list(SPACE)))
    assert FeatureSpace.from_json(SPACE.to_json()) == SPACE
    assert hash(SPACE) == hash(FeatureSpace.from_json(SPACE.to_json()))
