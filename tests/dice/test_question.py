"""What is asked: classes, ranges, columns that vary, thresholds, black boxes; and what nobody gets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from dice_people import borrowers, explainer, fitted, queries, tree
from sklearn.neighbors import KNeighborsClassifier

import ceopt
import ceopt.dice as dice_ml


@pytest.fixture(scope="module")
def frame():
    return borrowers()


@pytest.fixture(scope="module")
def logistic(frame):
    return fitted(frame)


def poor(frame, model, n=1):
    rows = queries(frame)
    return rows[model.predict(rows) == 0][:n]


def only(found):
    (example,) = found.cf_examples_list
    return example


def test_the_answer_is_the_optimum_of_explain_and_its_result_is_there(frame, logistic):
    exp = explainer(frame, logistic)
    row = poor(frame, logistic)

    example = only(exp.generate_counterfactuals(row, total_CFs=2))
    own = ceopt.explain(logistic, row, exp.data_interface.space, target=1, n=2, data=queries(frame))

    assert example.solution_set.status == "optimal"
    assert [answer.cost for answer in example.solution_set] == pytest.approx([answer.cost for answer in own])
    assert example.final_cfs_df.drop(columns="rich").equals(own.to_frame().reset_index(drop=True))


@pytest.mark.long
def test_rows_with_different_outcomes_each_get_the_opposite(frame, logistic):
    rows = queries(frame)[:12]
    was = logistic.predict(rows)
    assert len(set(was)) == 2

    found = explainer(frame, logistic).generate_counterfactuals(rows, total_CFs=1)

    assert [example.test_pred for example in found.cf_examples_list] == was.tolist()
    assert [example.final_cfs_df["rich"].iloc[0] for example in found.cf_examples_list] == (1 - was).tolist()
    assert [example.solution_set.query_id for example in found.cf_examples_list] == rows.index.tolist()


def test_labels_as_text_are_named_or_given_by_place(frame):
    told = frame.assign(rich=np.where(frame["rich"] == 1, "yes", "no"))
    model = fitted(told)
    exp = explainer(told, model)
    row = queries(told)[model.predict(queries(told)) == "no"][:1]

    for desired in ("yes", 1, {"yes"}, "opposite"):
        assert only(exp.generate_counterfactuals(row, 1, desired_class=desired)).final_cfs_df["rich"].iloc[0] == "yes"
    with pytest.raises(ValueError, match="desired_class is 'yess'. Did you mean 'yes'?"):
        exp.generate_counterfactuals(row, 1, desired_class="yess")


def test_a_number_that_is_another_class_here_than_there_is_refused(frame):
    shifted = frame.assign(rich=frame["rich"] + 1)
    model = fitted(shifted)
    exp = explainer(shifted, model)
    row = queries(shifted)[model.predict(queries(shifted)) == 1][:1]

    with pytest.raises(ValueError, match="desired_class is 1, a label here and the place of label 2 in dice_ml"):
        exp.generate_counterfactuals(row, 1, desired_class=1)
    assert only(exp.generate_counterfactuals(row, 1, desired_class=2)).final_cfs_df["rich"].iloc[0] == 2
    assert only(exp.generate_counterfactuals(row, 1, desired_class={2})).final_cfs_df["rich"].iloc[0] == 2


def test_a_row_outside_its_permitted_range_comes_in(frame, logistic):
    exp = explainer(frame, logistic)
    row = poor(frame, logistic)
    home = int(row["age"].iloc[0])

    example = only(exp.generate_counterfactuals(row, 2, permitted_range={"age": [home + 3, 90]}))
    assert (example.final_cfs_df["age"] >= home + 3).all()

    inside = only(
        exp.generate_counterfactuals(row, 2, permitted_range={"hours": [0, float(row["hours"].iloc[0]) + 1.5]})
    )
    assert (inside.final_cfs_df["hours"] <= row["hours"].iloc[0] + 1.5).all()

    wider = only(exp.generate_counterfactuals(row, 1, permitted_range={"age": [18, 500]}, features_to_vary=["age"]))
    assert wider.final_cfs_df["age"].iloc[0] > 0


def test_ranges_of_the_data_hold_until_a_call_names_others(frame, logistic):
    row = poor(frame, logistic)
    home = row["job"].iloc[0]
    data = dice_ml.Data(
        dataframe=frame, continuous_features=["age", "hours"], outcome_name="rich", permitted_range={"job": [home]}
    )
    exp = dice_ml.Dice(data, dice_ml.Model(model=logistic))
    others = [level for level in ("clerk", "cook", "nurse") if level != home]

    held = only(exp.generate_counterfactuals(row, 2))
    assert held.final_cfs_df["job"].tolist() == [home] * len(held.final_cfs_df)
    let = only(exp.generate_counterfactuals(row, 1, permitted_range={"job": others}))
    assert let.final_cfs_df["job"].iloc[0] in others


def test_a_threshold_above_one_half_asks_for_that_probability(frame, logistic):
    exp = explainer(frame, logistic)
    row = poor(frame, logistic)

    example = only(exp.generate_counterfactuals(row, 2, stopping_threshold=0.8))
    assert (logistic.predict_proba(example.final_cfs_df.drop(columns="rich"))[:, 1] >= 0.8).all()
    with pytest.warns(UserWarning, match="change nothing: stopping_threshold=0.5"):
        exp.generate_counterfactuals(row, 1, stopping_threshold=0.5)
    with pytest.raises(ValueError, match="stopping_threshold"):
        exp.generate_counterfactuals(row, 1, stopping_threshold=1.5)


def test_a_model_that_nobody_can_state_is_answered_as_a_black_box(frame):
    model = fitted(frame, KNeighborsClassifier(9))
    exp = explainer(frame, model)
    row = poor(frame, model)

    with pytest.warns(UserWarning, match="answered as a black box, through a surrogate") as caught:
        example = only(exp.generate_counterfactuals(row, total_CFs=1, random_seed=1))

    assert len(caught) == 1
    assert "random_seed=1" in str(caught[0].message)
    assert model.predict(example.final_cfs_df.drop(columns="rich")).tolist() == [1]
    assert example.solution_set.status == "feasible"
    assert np.isnan(example.solution_set.bound)


def test_where_nobody_has_any_an_error_says_why(frame, logistic):
    exp = explainer(frame, logistic)
    row = poor(frame, logistic)

    with pytest.raises(dice_ml.NoCounterfactualsError, match="there is none for any of 1 \\(row 'p") as caught:
        exp.generate_counterfactuals(row, 1, features_to_vary=["school"])
    assert "infeasible" in str(caught.value)
    with pytest.raises(ValueError, match="already_favourable"):
        exp.generate_counterfactuals(row, 1, desired_class=0)


def test_a_row_without_any_stands_beside_those_that_have_some(frame, logistic, capsys):
    rows = pd.concat([poor(frame, logistic), queries(frame)[logistic.predict(queries(frame)) == 1][:1]])

    found = explainer(frame, logistic).generate_counterfactuals(rows, 1, desired_class=1)

    assert [example.final_cfs_df is None for example in found.cf_examples_list] == [False, True]
    assert found.cf_examples_list[1].solution_set.status == "already_favourable"
    found.visualize_as_list(show_only_changes=True)
    found.visualize_as_dataframe()
    assert capsys.readouterr().out.count("No counterfactual (already_favourable)") == 2
    again = found.from_json(found.to_json())
    assert again.cf_examples_list[1].final_cfs_df is None
    assert again.cf_examples_list[0].final_cfs_df.equals(found.cf_examples_list[0].final_cfs_df)


def test_options_of_recourse_hold_for_every_call(frame):
    model = tree(frame)
    exp = explainer(frame, model, cost="l0", constraints=[ceopt.MaxChanges(1)], time_limit_s=30)

    example = only(exp.generate_counterfactuals(poor(frame, model), total_CFs=3))

    assert [answer.cost for answer in example.solution_set] == [1.0] * len(example.solution_set)
    assert example.solution_set.options["time_limit_s"] == 30
    with pytest.raises(ValueError, match="option is 'target'. Choose from: constraints, cost"):
        explainer(frame, model, target=1)
    with pytest.raises(ValueError, match=r"'proof' holds for all. Give Dice\(..., proof=...\)."):
        exp.generate_counterfactuals(poor(frame, model), total_CFs=3, proof=False)


def test_a_space_of_ones_own_brings_its_directions(frame, logistic):
    space = (
        explainer(frame, logistic)
        .data_interface.space.update("age", mutable=False)
        .update("hours", direction="decreasing")
    )
    row = poor(frame, logistic)

    example = only(explainer(frame, logistic, space=space).generate_counterfactuals(row, 2))

    assert (example.final_cfs_df["age"] == row["age"].iloc[0]).all()
    assert (example.final_cfs_df["hours"] <= row["hours"].iloc[0]).all()
    with pytest.raises(ValueError, match="Dice needs a space of the data's columns"):
        explainer(frame, logistic, space=ceopt.FeatureSpace(list(space)[:2]))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"total_CFs": 0}, "total_CFs"),
        ({"total_CFs": 2.5}, "total_CFs"),
        ({"features_to_vary": []}, "but features_to_vary is empty"),
        ({"features_to_vary": "age"}, "features_to_vary as 'all' or a list of columns"),
        ({"features_to_vary": ["agee"]}, "Did you mean 'age'?"),
        ({"permitted_range": {"agee": [1, 2]}}, "Did you mean 'age'?"),
        ({"desired_range": [0, 1]}, "a class to be desired"),
        ({"feature_weights": {"age": 1}}, "feature_weights is {'age': 1}"),
        ({"proximity_weigth": 1}, "Did you mean 'proximity_weight'?"),
        ({"desired_class": 7}, "desired_class is 7"),
    ],
)
def test_misuse_of_a_call_is_named(changed, sentence, frame, logistic):
    given = {"total_CFs": 1} | changed

    with pytest.raises((TypeError, ValueError)) as caught:
        explainer(frame, logistic).generate_counterfactuals(poor(frame, logistic), **given)
    assert sentence in str(caught.value)


def test_misuse_of_rows_is_named(frame, logistic):
    exp = explainer(frame, logistic)
    row = poor(frame, logistic)

    assert only(exp.generate_counterfactuals(row.iloc[0], 1)).final_cfs_df is not None  # a Series
    assert only(exp.generate_counterfactuals(row.iloc[0].to_dict(), 1)).final_cfs_df is not None
    assert only(exp.generate_counterfactuals([row.iloc[0].to_dict()], 1)).final_cfs_df is not None
    with pytest.raises(ValueError, match="rows without the outcome, but column 'rich' is there. Drop it"):
        exp.generate_counterfactuals(frame[:1], 1)
    with pytest.raises(ValueError, match="query_instances is empty"):
        exp.generate_counterfactuals(row[:0], 1)
    with pytest.raises(ValueError, match="'baker'"):
        exp.generate_counterfactuals(row.assign(job="baker"), 1)
    with pytest.raises(ValueError, match="hours"):
        exp.generate_counterfactuals(row.assign(hours=np.nan), 1)
    with pytest.raises(
        ValueError, match="generate_counterfactuals needs every column of the space, but 'job' is missing"
    ):
        exp.generate_counterfactuals(row.drop(columns="job"), 1)
    with pytest.raises(ValueError, match="generate_counterfactuals needs a known column, but column is 'wage'"):
        exp.generate_counterfactuals(row.assign(wage=1), 1)
    with pytest.raises(TypeError, match="query_instances is ndarray"):
        exp.generate_counterfactuals(row.to_numpy(), 1)


@pytest.mark.parametrize(("method", "sentence"), [("gradient", "a method for models without"), ("genetics", "genetic")])
def test_other_methods_are_refused(method, sentence, frame, logistic):
    with pytest.raises(ValueError, match=sentence):
        explainer(frame, logistic, method)


@pytest.mark.parametrize(
    ("desired", "sentence"),
    [
        (None, "desired_range is None"),
        ([5, 1], "ascending order"),
        ([1], "two numbers as desired_range"),
        ([-np.inf, np.inf], "a bound of the outcome"),
    ],
)
def test_a_regressor_needs_a_range(desired, sentence, frame):
    from sklearn.linear_model import LinearRegression

    paid = frame.assign(pay=frame["age"] * 2.0).drop(columns="rich")
    exp = explainer(paid, fitted(paid, LinearRegression(), "pay"), outcome="pay", model_type="regressor")

    with pytest.raises((TypeError, ValueError), match=sentence):
        exp.generate_counterfactuals(queries(paid, "pay")[:1], 1, desired_range=desired)


@pytest.mark.long
def test_a_range_may_be_open(frame):
    from sklearn.linear_model import LinearRegression

    paid = frame.assign(pay=frame["age"] * 2.0).drop(columns="rich")
    exp = explainer(paid, fitted(paid, LinearRegression(), "pay"), outcome="pay", model_type="regressor")
    row = queries(paid, "pay")[:1]
    was = 2.0 * row["age"].iloc[0]

    more = only(exp.generate_counterfactuals(row, 1, desired_range=[was + 10, np.inf]))
    less = only(exp.generate_counterfactuals(row, 1, desired_range=[-np.inf, was - 10]))
    assert more.final_cfs_df["pay"].iloc[0] >= was + 10
    assert less.final_cfs_df["pay"].iloc[0] <= was - 10
