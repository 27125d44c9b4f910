"""A cohort in long form, and in a few numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from ceopt import Cohort, Feature, FeatureSpace, Recourse
from ceopt.base.results import Status
from ceopt.formulations.predictors import Affine
from ceopt.result.cohort_shown import summary_of

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, upper=9, step=0.5, unit="thousands"),
        Feature("school", kind="ordinal", levels=("low", "mid", "high")),
        Feature("owner", kind="binary", levels=(False, True)),
        Feature("debt", kind="integer", lower=0, upper=9, mutable=False),
    ]
)
MODEL = Affine([1.0, 1.0, 1.0, -1.0], -4.25, labels=("bad", "good"))
PEOPLE = pd.DataFrame(
    {
        "income": [1.0, 2.5, 5.0, 2.0],
        "school": ["low", "high", "low", "low"],
        "owner": [False, False, True, False],
        "debt": [0, 1, 0, 9],
    },
    index=["ann", "bob", "cleo", "dan"],
)


@pytest.fixture(scope="module")
def cohort():
    space = SPACE.update("income", upper=6)
    recourse = Recourse(MODEL, space, target="good", n=2, diversity="support", cost="l0").fit(PEOPLE)
    return recourse.explain(PEOPLE)


def test_changes_are_one_row_a_person_answer_and_column(cohort):
    changes = cohort.changes()

    assert list(changes.columns) == ["query_id", "rank", "column", "from", "to", "move", "unit"]
    assert changes["rank"].dtype == np.int64
    assert changes["move"].dtype == np.float64
    assert changes.index.tolist() == list(range(len(changes)))
    assert set(changes["query_id"]) == {"ann", "bob"}
    expected = []
    for result in cohort:
        for (rank, column), row in result.changes().iterrows():
            expected.append((result.query_id, rank, column, row["from"], row["to"]))
    assert list(changes[["query_id", "rank", "column", "from", "to"]].itertuples(index=False, name=None)) == expected


@pytest.mark.parametrize(("column", "unit"), [("income", "thousands"), ("school", None), ("owner", None)])
def test_a_move_counts_units_or_levels_and_is_missing_where_there_is_no_order(cohort, column, unit):
    ranks = {"low": 0, "mid": 1, "high": 2}
    rows = cohort.changes().query("column == @column")

    assert len(rows)
    for row in rows.to_dict("records"):
        assert row["unit"] == unit or pd.isna(row["unit"])
        if column == "income":
            assert row["move"] == row["to"] - row["from"]
        elif column == "school":
            assert row["move"] == ranks[row["to"]] - ranks[row["from"]]
        else:
            assert math.isnan(row["move"])


def test_nobody_with_an_answer_leaves_a_typed_empty_frame(cohort):
    none = Cohort(
        results=cohort.results[2:], queries=PEOPLE.iloc[2:], space=cohort.space, finished=(True, True)
    ).changes()

    assert len(none) == 0
    assert list(none.columns) == ["query_id", "rank", "column", "from", "to", "move", "unit"]
    assert none["move"].dtype == np.float64


def test_a_summary_counts_people_costs_and_columns(cohort):
    summary = cohort.summary()
    best = [result[0] for result in cohort if len(result)]

    assert summary.people == 4
    assert summary.statuses == {"optimal": 2, "infeasible": 1, "already_favourable": 1}
    assert summary.share_answered == 2 / 3
    assert summary.median_cost == np.median([answer.cost for answer in best])
    assert summary.seconds == pytest.approx(sum(result.timings["total"] for result in cohort))
    assert summary.median_seconds == np.median([result.timings["total"] for result in cohort])
    counts = pd.Series([name for answer in best for name in answer.changed]).value_counts() / 2
    assert summary.most_changed.to_dict() == counts.to_dict()
    assert summary.most_changed.is_monotonic_decreasing


class Made(list):
    """Answers in place of a solution set's."""

    status = Status.OPTIMAL
    timings: ClassVar = {"total": 1.0}


def test_the_columns_that_change_most_come_first_and_equals_in_their_order():
    answers = [
        Made([SimpleNamespace(cost=1.0, changed=names)]) for names in (("b",), ("c", "b"), ("b", "a"), ("d", "a"))
    ]
    shares = summary_of(answers, ["a", "b", "c", "d"]).most_changed

    assert list(shares.items()) == [("b", 0.75), ("a", 0.5), ("c", 0.25), ("d", 0.25)]


def test_a_summary_is_shown_as_text_html_and_frame(cohort):
    summary = cohort.summary()
    lines = repr(summary).splitlines()
    frame = summary.to_frame()

    assert lines[0].split() == ["people", "4"]
    assert "2 optimal, 1 infeasible, 1 already_favourable" in lines[1]
    assert "66.7%" in lines[2]
    assert "<td>66.7%</td>" in summary._repr_html_()
    assert frame.loc["share answered", "value"] == 2 / 3
    assert frame.loc["status optimal", "value"] == 2


def test_names_are_escaped_in_html():
    space = FeatureSpace([Feature("<b>", kind="integer", lower=0, upper=9)])
    people = pd.DataFrame({"<b>": [1]})
    cohort = Recourse(Affine([1.0], -3.5, labels=(0, 1)), space, target=1).fit(people).explain(people)

    assert "&lt;b&gt; 100%" in cohort.summary()._repr_html_()
    assert "<b>" not in cohort.summary()._repr_html_()


def test_without_answers_shares_and_costs_are_missing_rather_than_zero(cohort):
    favourable = Cohort(results=cohort.results[2:3], queries=PEOPLE.iloc[2:3], space=cohort.space, finished=(True,))
    summary = favourable.summary()

    assert math.isnan(summary.share_answered)
    assert math.isnan(summary.median_cost)
    assert len(summary.most_changed) == 0
    assert "none" in repr(summary)


def test_what_a_summary_hands_out_is_a_copy(cohort):
    summary = cohort.summary()
    summary.statuses.clear()
    shares = summary.most_changed
    shares[:] = 7.0

    assert summary.statuses
    assert summary.most_changed.max() <= 1.0
