"""The call sequences of dice_ml's notebooks run after the import line is changed, and give what they ask for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from dice_people import borrowers, explainer, fitted, queries
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
import ceopt.dice as dice_ml

STEERED = "ceopt.dice solves a program and does not search"


def test_getting_started(capsys):
    dataset = borrowers()
    model = fitted(dataset, RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0))
    x_test = queries(dataset)

    d = dice_ml.Data(dataframe=dataset, continuous_features=["age", "hours"], outcome_name="rich")
    m = dice_ml.Model(model=model, backend="sklearn")
    exp = dice_ml.Dice(d, m, method="random")
    with pytest.warns(UserWarning, match=STEERED):
        e1 = exp.generate_counterfactuals(x_test[0:1], total_CFs=2, desired_class="opposite")
    e1.visualize_as_dataframe(show_only_changes=True)

    found = e1.cf_examples_list[0].final_cfs_df
    was = model.predict(x_test[0:1])[0]
    assert list(found.columns) == ["age", "job", "school", "hours", "rich"]
    assert len(found) == 2
    assert (model.predict(found.drop(columns="rich")) == 1 - was).all()
    assert found["rich"].tolist() == [1 - was] * 2
    shown = capsys.readouterr().out
    assert f"(outcome: {was})" in shown
    assert f"(outcome wanted: {1 - was})" in shown
    assert " - " in shown

    with pytest.warns(UserWarning, match=STEERED):
        e2 = exp.generate_counterfactuals(
            x_test[0:1], total_CFs=2, desired_class="opposite", features_to_vary=["hours", "age"]
        )
    kept = e2.cf_examples_list[0].final_cfs_df[["job", "school"]]
    assert (kept == x_test[0:1][["job", "school"]].iloc[0]).to_numpy().all()

    ranges = {"age": [20, 60], "school": ["2", "3"]}  # levels as text, as dice_ml keeps them
    with pytest.warns(UserWarning, match=STEERED):
        e3 = exp.generate_counterfactuals(x_test[0:1], total_CFs=2, desired_class="opposite", permitted_range=ranges)
    found = e3.cf_examples_list[0].final_cfs_df
    assert found["age"].between(20, 60).all()
    assert found["school"].isin([2, 3]).all()


def test_model_agnostic_several_rows_and_options_of_the_search():
    dataset = borrowers()
    exp = explainer(dataset, fitted(dataset), "genetic")
    query_instances = queries(dataset)[4:6]

    with pytest.warns(UserWarning, match=STEERED) as caught:
        found = exp.generate_counterfactuals(
            query_instances, total_CFs=2, desired_class="opposite", random_seed=9, proximity_weight=1.5,
            diversity_weight=1.0, verbose=False,
        )  # fmt: skip

    assert len(caught) == 1
    said = str(caught[0].message)
    for name in ("method='genetic'", "random_seed=9", "proximity_weight=1.5", "diversity_weight=1.0", "verbose=False"):
        assert name in said
    assert caught[0].filename == __file__
    assert [len(example.final_cfs_df) for example in found.cf_examples_list] == [2, 2]
    assert [example.test_instance_df.shape for example in found.cf_examples_list] == [(1, 5), (1, 5)]


def test_regression_with_a_desired_range():
    dataset = borrowers().assign(pay=lambda rows: rows["hours"] * 3 + rows["age"]).drop(columns="rich")
    model = fitted(dataset, LinearRegression(), "pay")
    exp = explainer(dataset, model, outcome="pay", model_type="regressor")

    found = exp.generate_counterfactuals(queries(dataset, "pay")[0:2], total_CFs=2, desired_range=[170.0, 180.0])

    for example in found.cf_examples_list:
        assert example.final_cfs_df["pay"].between(170.0, 180.0).all()
        assert np.allclose(model.predict(example.final_cfs_df.drop(columns="pay")), example.final_cfs_df["pay"])
        assert example.new_outcome == [170.0, 180.0]


def test_several_classes_by_place():
    rng = np.random.default_rng(1)
    flowers = pd.DataFrame(rng.uniform(0, 3, (90, 2)).round(1), columns=["petal", "sepal"])
    flowers["species"] = flowers["petal"].astype(int).clip(0, 2)
    model = LogisticRegression().fit(flowers[["petal", "sepal"]], flowers["species"])
    d = dice_ml.Data(dataframe=flowers, continuous_features=["petal", "sepal"], outcome_name="species")
    exp = dice_ml.Dice(d, dice_ml.Model(model=model, backend="sklearn"))
    row = flowers[["petal", "sepal"]][model.predict(flowers[["petal", "sepal"]]) == 0][0:1]

    found = exp.generate_counterfactuals(row, total_CFs=2, desired_class=2)

    assert found.cf_examples_list[0].final_cfs_df["species"].unique().tolist() == [2]
    with pytest.raises(
        ValueError, match="two classes for an opposite one, but desired_class is 'opposite' and the model"
    ):
        exp.generate_counterfactuals(row, total_CFs=2, desired_class="opposite")


def test_importances():
    dataset = borrowers()
    exp = explainer(dataset, fitted(dataset))
    rows = queries(dataset)

    e1 = exp.generate_counterfactuals(
        rows[1:2],
        total_CFs=10,
        desired_range=None,
        desired_class="opposite",
        permitted_range=None,
        features_to_vary="all",
    )
    imp = exp.local_feature_importance(rows[1:2], cf_examples_list=e1.cf_examples_list)

    assert set(imp.local_importance[0]) == {"age", "hours", "job", "school"}
    shares = list(imp.local_importance[0].values())
    assert shares == sorted(shares, reverse=True)
    found = e1.cf_examples_list[0].final_cfs_df
    assert imp.local_importance[0]["hours"] == (found["hours"] != rows["hours"].iloc[1]).mean()
    assert imp.summary_importance is None

    with pytest.warns(UserWarning, match="posthoc_sparsity_param=None") as caught:
        cobj = exp.global_feature_importance(rows[0:10], total_CFs=10, posthoc_sparsity_param=None)
    assert [one.filename for one in caught] == [__file__]
    together = pd.concat([example.final_cfs_df for example in cobj.cf_examples_list])
    before = np.repeat(rows["job"][0:10].to_numpy(), [len(e.final_cfs_df) for e in cobj.cf_examples_list])
    assert cobj.summary_importance["job"] == pytest.approx((together["job"].to_numpy() != before).mean())
    assert len(cobj.local_importance) == 10

    again = imp.from_json(cobj.to_json())
    assert again.summary_importance == cobj.summary_importance
    assert again.local_importance == cobj.local_importance


@pytest.mark.long
@pytest.mark.parametrize("method", ["random", "genetic", "kdtree"])
def test_the_sequence_runs_on_adult(method, data_dir, monkeypatch, capsys):
    monkeypatch.setenv("CEOPT_DATA", str(data_dir))
    bunch = ceopt.datasets.load("adult")
    names = ["age", "workclass", "education", "marital_status", "occupation", "race", "sex", "hours_per_week"]
    dataset = bunch.data[names].assign(income=bunch.target)
    train_dataset, test_dataset = dataset.iloc[:3000], dataset.iloc[3000:]
    x_train, x_test = train_dataset.drop("income", axis=1), test_dataset.drop("income", axis=1)
    numerical = ["age", "hours_per_week"]
    categorical = x_train.columns.difference(numerical)
    transformations = ColumnTransformer(
        transformers=[
            ("num", StandardScaler(), numerical),
            ("cat", OneHotEncoder(handle_unknown="ignore"), categorical),
        ]
    )
    forest = RandomForestClassifier(n_estimators=20, max_depth=6, random_state=0)
    model = Pipeline(steps=[("preprocessor", transformations), ("classifier", forest)])
    model = model.fit(x_train, train_dataset["income"])

    d = dice_ml.Data(dataframe=train_dataset, continuous_features=numerical, outcome_name="income")
    m = dice_ml.Model(model=model, backend="sklearn")
    exp = dice_ml.Dice(d, m, method=method)
    with pytest.warns(UserWarning, match=STEERED):
        e1 = exp.generate_counterfactuals(x_test[4:6], total_CFs=2, desired_class="opposite")
    e1.visualize_as_dataframe(show_only_changes=True)
    with pytest.warns(UserWarning, match=STEERED):
        e2 = exp.generate_counterfactuals(
            x_test[4:6],
            total_CFs=2,
            desired_class="opposite",
            permitted_range={"age": [22, 50], "hours_per_week": [40, 60]},
        )

    assert [result.status for result in e1.solution_sets] == ["optimal", "optimal"]
    for example in e2.cf_examples_list:
        assert example.final_cfs_df["age"].between(22, 50).all()
        assert example.final_cfs_df["hours_per_week"].between(40, 60).all()
    assert "Counterfactuals" in capsys.readouterr().out
