"""All people as one table: statuses first, then the columns as they were."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from ceopt import Recourse
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.infer import infer_features

KINDS = {
    "income": np.dtype("float64"), "age": np.dtype("int32"), "small": np.dtype("uint8"), "n": pd.Int64Dtype(),
    "owner": np.dtype(bool), "size": pd.CategoricalDtype(["S", "M"], ordered=True),
}  # fmt: skip


@pytest.fixture
def frame():
    data = {
        "income": [1.0, 5.0, 2.0], "age": np.array([30, 40, 50], dtype=np.int32),
        "small": np.array([1, 2, 3], dtype=np.uint8), "n": pd.array([1, 2, 3], dtype="Int64"),
        "owner": [True, False, True], "size": pd.Categorical(["S", "M", "S"], ["S", "M"], ordered=True),
    }  # fmt: skip
    return pd.DataFrame(data, index=["a", "b", "a"])


def cohort_of(frame, *, best=9.0, **options):
    features = infer_features(frame)  # as infer does, which warns of some of these names
    space = FeatureSpace(features).update("income", lower=0, upper=best)
    model = Affine([1.0, *[0.0] * (len(frame.columns) - 1)], -3.0, labels=("bad", "good"))
    return Recourse(model, space, target="good", **options).fit(frame).explain(frame)


def test_dtypes_stay_where_everyone_has_an_answer(frame):
    table = cohort_of(frame.loc["a"]).to_frame()

    assert table[list(KINDS)].dtypes.to_dict() == KINDS
    assert list(table.columns)[:6] == ["status", "cost", "bound", "verified", "reason", "proof"]
    assert table.index.names == ["query_id", "rank"]
    assert table.index.tolist() == [("a", 1), ("a", 1)]
    assert table["verified"].all()
    assert (table["income"] > 3).all()
    assert table["age"].tolist() == [30, 50]


def test_a_row_without_an_answer_is_there_once_with_rank_0_and_nothing_in_the_columns(frame):
    table = cohort_of(frame.loc[["b", "a"]]).to_frame()

    assert table.index.tolist() == [("b", 0), ("a", 1), ("a", 1)]
    assert table["status"].tolist() == ["already_favourable", "optimal", "optimal"]
    assert table["cost"].iloc[0] == 0.0
    assert table["verified"].tolist() == [True, True, True]
    assert table[list(KINDS)].iloc[0].isna().all()
    expected = KINDS | {"age": pd.Int32Dtype(), "small": pd.UInt8Dtype(), "owner": pd.BooleanDtype()}
    assert table[list(KINDS)].dtypes.to_dict() == expected
    assert table["owner"].tolist()[1:] == [True, True]


def test_a_table_of_failures_only_is_still_typed(frame):
    cohort = cohort_of(frame.loc["a"], best=2.5)
    table = cohort.to_frame()

    assert table["status"].tolist() == ["infeasible", "infeasible"]
    assert table["verified"].tolist() == [False, False]
    assert np.isnan(table["cost"]).all()
    assert table["size"].dtype == KINDS["size"]
    assert (cohort.failures()["reason"] != "").all()
    assert "2 infeasible" in repr(cohort)
    assert "2 infeasible" in cohort._repr_html_()


def test_several_answers_are_ranked(frame):
    table = cohort_of(frame.loc["a"].head(1), n=2, diversity="support").to_frame()

    assert table.index.get_level_values("rank").tolist() == [1, 2]
    assert table["cost"].is_monotonic_increasing


def test_a_raw_column_keeps_its_name_and_ours_gets_the_prefix():
    names = ["income", "status", "ceopt_status", "rank"]
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0]], columns=names)
    table = cohort_of(frame).to_frame()

    assert list(table.columns) == ["ceopt_ceopt_status", "cost", "bound", "verified", "reason", "proof", *names]
    assert table.index.names == ["query_id", "ceopt_rank"]
    assert table["status"].tolist() == [2.0]
    assert table.reset_index().shape == (1, 12)


@pytest.mark.parametrize("labels", [[("x", 1), ("x", 2), ("y", 1)], [1.5, 1.5, 2.5], [None, "b", 3]])
def test_labels_may_be_anything(frame, labels):
    frame.index = pd.Index(labels, tupleize_cols=False, dtype=object)
    cohort = cohort_of(frame)

    assert [result.query_id for result in cohort] == labels
    assert cohort.to_frame().index.get_level_values("query_id").tolist()[1:] == labels[1:]


def test_the_index_of_several_levels_is_kept_as_tuples(frame):
    frame.index = pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)])

    assert cohort_of(frame).to_frame().index.get_level_values("query_id").tolist() == [("x", 1), ("x", 2), ("y", 1)]


def test_a_cohort_is_a_sequence_and_survives_a_pickle(frame):
    cohort = cohort_of(frame)
    again = pickle.loads(pickle.dumps(cohort))

    assert len(again) == 3
    assert [str(result.status) for result in again] == [str(cohort[k].status) for k in range(3)]
    pd.testing.assert_frame_equal(again.to_frame(), cohort.to_frame())


def test_text_columns_are_missing_where_there_is_no_answer():
    space = FeatureSpace(
        [Feature("x", kind="integer", lower=0, upper=9), Feature("sex", kind="binary", levels=("f", "m"))]
    )
    people = pd.DataFrame({"x": [1, 5], "sex": ["m", "f"]})
    table = Recourse(Affine([1.0, 0.0], -3.0, labels=(0, 1)), space, target=1).fit(people).explain(people).to_frame()

    assert table["sex"].tolist()[0] == "m"
    assert table["sex"].isna().tolist() == [False, True]
    assert table["x"].tolist()[0] == 4
