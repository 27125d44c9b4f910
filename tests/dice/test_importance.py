"""Importance: what is too little to speak of it, and that all that there are is enough."""

from __future__ import annotations

import dataclasses
import json

import pytest
from dice_people import borrowers, explainer, fitted, queries, tree

from ceopt.dice import CounterfactualExplanations


def test_too_little_is_refused():
    frame = borrowers()
    exp = explainer(frame, fitted(frame))
    rows = queries(frame)

    with pytest.raises(ValueError, match="local_feature_importance needs total_CFs of at least 10, but it is 4"):
        exp.local_feature_importance(rows[:1], total_CFs=4)
    with pytest.raises(ValueError, match="global_feature_importance needs at least 10 rows, but there are 3"):
        exp.global_feature_importance(rows[:3])
    with pytest.raises(ValueError, match="neither is given"):
        exp.local_feature_importance(None)
    few = exp.generate_counterfactuals(rows[:1], total_CFs=2)
    with pytest.raises(ValueError, match="entry 0 of cf_examples_list has 2"):
        exp.local_feature_importance(rows[:1], cf_examples_list=few.cf_examples_list)


def test_fewer_than_ten_are_enough_where_it_is_proved_that_there_are_no_more():
    frame = borrowers()
    exp = explainer(frame, tree(frame, 2))

    found = exp.generate_counterfactuals(queries(frame)[:1], total_CFs=10)
    assert 0 < len(found.cf_examples_list[0].final_cfs_df) < 10
    assert exp.local_feature_importance(None, cf_examples_list=found.cf_examples_list).local_importance is not None


def test_rows_that_time_has_cut_are_counted_and_named():
    frame = borrowers()
    exp = explainer(frame, tree(frame, 2))
    found = exp.generate_counterfactuals(queries(frame)[:1], total_CFs=10)
    (example,) = found.cf_examples_list
    cut = dataclasses.replace(example, solution_set=dataclasses.replace(example.solution_set, complete=False))

    with pytest.warns(
        UserWarning, match=r"counts what was found of 1 row in time.*\('p0'\).*total_time_limit_s"
    ) as told:
        again = exp.local_feature_importance(None, cf_examples_list=[cut])
    assert told[0].filename == __file__
    assert again.local_importance is not None


def test_the_rows_of_an_importance_share_two_minutes_unless_told():
    frame = borrowers()
    model = tree(frame, 2)
    rows = queries(frame)[:12]

    def limits(exp):
        asked = (exp.generate_counterfactuals(rows, total_CFs=1), exp.global_feature_importance(rows))
        return [[result.options["time_limit_s"] for result in found.solution_sets] for found in asked]

    each, shared = limits(explainer(frame, model))
    assert each == [60.0] * 12
    # Rows of both outcomes are two questions, each with its part: equal parts of what the rows before leave.
    assert 10.0 <= min(shared) < 13.0
    assert max(shared) <= 60.0
    each, shared = limits(explainer(frame, model, total_time_limit_s=60.0, time_limit_s=7.0))
    assert 5.0 <= min(each) < 7.0
    assert max(each) == max(shared) == 7.0
    with pytest.raises(ValueError, match="Dice needs a finite number above 0 as total_time_limit_s, but"):
        explainer(frame, model, total_time_limit_s=0)


def test_who_has_the_outcome_already_is_told_to_ask_for_another():
    frame = borrowers()
    model = tree(frame, 2)
    exp = explainer(frame, model)
    rows = frame.drop(columns="rich")
    rich = rows[model.predict(rows) == 1][:1]

    with pytest.raises(ValueError, match="Nothing is to be changed: ask for another outcome"):
        exp.generate_counterfactuals(rich, total_CFs=1, desired_class=1)


def test_json_has_the_shape_that_dice_ml_reads():
    frame = borrowers()
    exp = explainer(frame, fitted(frame))
    found = exp.local_feature_importance(queries(frame)[:1])

    record = json.loads(found.to_json())

    assert set(record) == {
        "test_data", "cfs_list", "local_importance", "summary_importance", "data_interface", "feature_names",
        "feature_names_including_target", "model_type", "desired_class", "desired_range", "metadata",
    }  # fmt: skip
    assert record["metadata"] == {"version": "2.0"}
    assert record["feature_names_including_target"] == ["age", "job", "school", "hours", "rich"]
    assert record["test_data"][0][0] == [*queries(frame).iloc[0].tolist(), found.cf_examples_list[0].test_pred]
    assert record["local_importance"][0] == [found.local_importance[0][name] for name in record["feature_names"]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no", "JSON of explanations, but the text is not"),
        ('{"metadata": {"version": "1.0"}}', "version is '1.0'"),
        ('{"metadata": {"version": "2.0"}}', "it is damaged"),
    ],
)
def test_other_text_is_refused(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        CounterfactualExplanations.from_json(text)
