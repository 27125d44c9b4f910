"""Excess on odd data: what frames of other libraries bring along."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ceopt import Feature, FeatureSpace
from ceopt.formulations.predictors import Affine
from ceopt.metrics import excess

SPACE = FeatureSpace(
    [
        Feature("pay", kind="integer", lower=0, upper=9),
        Feature("job", kind="binary", levels=("cook", "baker")),
    ]
)
#: Favoured from a pay of 4 on, whatever the job.
MODEL = Affine([1.0, 0.0], -3.5, labels=("no", "yes"))
NUMBERS = FeatureSpace(list(SPACE)[:1])
ON_PAY = Affine([1.0], -3.5, labels=("no", "yes"))


def ask(answers, factual, **words):
    return excess(answers, ON_PAY, NUMBERS, target="yes", factual=factual, **words)


def test_an_index_with_duplicates_gives_a_row_each_and_so_do_people_with_the_same_label():
    answers = pd.DataFrame({"pay": [4, 6, 8]}, index=[7, 7, 7])
    people = pd.DataFrame({"pay": [2, 3, 2]}, index=[7, 7, 7])

    table = ask(answers, people)

    assert table["answer"].tolist() == [7, 7, 7]
    assert table["excess"].tolist() == pytest.approx([0.0, 2.0, 2.0])


def test_a_row_of_missing_values_is_told_and_leaves_the_others():
    answers = pd.DataFrame({"pay": [np.nan, 4.0, np.inf]})

    table = ask(answers, {"pay": 2})

    assert table["valid"].tolist() == [False, True, False]
    assert [math.isnan(cost) for cost in table["cost"]] == [True, False, True]
    assert all(any(text.startswith("pay:") for text in table["broken"][place]) for place in (0, 2))


@pytest.mark.parametrize("empty", [[], pd.DataFrame({"pay": []}), pd.DataFrame({"pay": [1]})[:0]])
def test_no_answers_give_an_empty_table_with_its_columns(empty):
    table = ask(empty, {"pay": 2})

    assert len(table) == 0
    assert list(table.columns) == ["answer", "cost", "optimum", "bound", "excess", "valid", "broken"]
    assert table["excess"].dtype == np.float64
    assert len(ask(empty, pd.DataFrame({"pay": []}))) == 0


def test_columns_of_another_library_are_told_in_a_warning_and_are_no_fault():
    answers = pd.DataFrame({"label": [1, 1], "pay": [4, 6]})

    with pytest.warns(UserWarning, match="excess leaves out 'label', 'id' of answers and factual"):
        table = ask(answers, {"pay": 2, "id": 9})
    with pytest.warns(UserWarning, match="'id' of factual"):
        many = ask(answers[["pay"]], pd.DataFrame({"id": [8, 9], "pay": [2, 2]}))

    assert many["excess"].tolist() == pytest.approx([0.0, 1.0])
    assert table["excess"].tolist() == pytest.approx([0.0, 1.0])
    assert table["broken"].tolist() == [(), ()]


def test_a_person_who_is_favoured_already_beside_one_who_is_not():
    people = pd.DataFrame({"pay": [5, 2]})

    table = ask(pd.DataFrame({"pay": [5, 4]}), people)

    assert table["optimum"].tolist() == pytest.approx([0.0, 2.0 / 9.0])
    assert table["excess"].tolist() == pytest.approx([0.0, 0.0])


def test_an_infeasible_person_beside_another():
    fixed = FeatureSpace([Feature("pay", kind="integer", lower=0, upper=9, direction="decreasing")])
    people = pd.DataFrame({"pay": [2, 3]})

    table = excess(pd.DataFrame({"pay": [4, 1]}), ON_PAY, fixed, target="yes", factual=people)

    assert table["optimum"].isna().all()
    assert np.isinf(table["bound"]).all()
    assert table["excess"].isna().all()
    assert [bool(broken) for broken in table["broken"]] == [True, False]


def test_levels_that_the_space_does_not_know_are_no_rows_of_it():
    answers = pd.DataFrame({"pay": [4, 4, 4], "job": ["smith", "baker", None]})

    table = excess(answers, MODEL, SPACE, target="yes", factual={"pay": 2, "job": "cook"})

    assert [math.isnan(cost) for cost in table["cost"]] == [True, False, True]
    assert "smith" in table["broken"][0][0]


def test_a_column_that_stands_twice_is_told():
    answers = pd.DataFrame([[4, 5]], columns=["pay", "pay"])

    table = ask(answers, {"pay": 2})

    assert "twice" in table["broken"][0][0]


def test_one_person_given_as_a_frame_with_another_index_and_column_order():
    answers = pd.DataFrame({"job": ["cook"], "pay": [4]}, index=["x"])
    person = pd.DataFrame({"job": ["cook"], "pay": [2]}, index=["who"])

    table = excess(answers, MODEL, SPACE, target="yes", factual=person)

    assert table["excess"].tolist() == pytest.approx([0.0])
    assert table["answer"].tolist() == ["x"]
