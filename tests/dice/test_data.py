"""The training data: what the columns are, and what is refused by name."""

from __future__ import annotations

import pandas as pd
import pytest
from dice_people import borrowers

from ceopt.dice import Data


def test_numbers_are_numbers_and_all_else_categories():
    data = Data(dataframe=borrowers(), continuous_features=["age", "hours"], outcome_name="rich")

    kinds = {feature.name: (feature.kind, feature.step) for feature in data.space}
    assert kinds == {
        "age": ("integer", None),
        "job": ("categorical", None),
        "school": ("categorical", None),
        "hours": ("continuous", 0.1),
    }
    assert data.feature_names == ["age", "job", "school", "hours"]
    assert data.continuous_feature_names == ["age", "hours"]
    assert data.categorical_feature_names == ["job", "school"]
    assert data.permitted_range["school"] == [1, 2, 3]
    assert data.permitted_range["age"] == [borrowers()["age"].min(), borrowers()["age"].max()]


def test_steps_are_the_decimals_that_are_given_or_that_the_values_have():
    frame = pd.DataFrame({"whole": [1.0, 2.0], "cents": [1.25, 2.5], "computed": [1 / 3, 2 / 7], "y": [0, 1]})
    numbers = ["whole", "cents", "computed"]

    seen = Data(dataframe=frame, continuous_features=numbers, outcome_name="y").space
    assert [feature.step for feature in seen] == [1.0, 0.01, None]

    given = Data(
        dataframe=frame, continuous_features=numbers, outcome_name="y", continuous_features_precision={"computed": 2}
    )
    assert given.space["computed"].step == 0.01


@pytest.mark.parametrize(
    ("changed", "kind", "sentence"),
    [
        ({"dataframe": [1]}, TypeError, "Data needs a DataFrame as dataframe"),
        ({"continuous_features": "age"}, TypeError, "Data needs continuous_features as a list of column names"),
        ({"continuous_features": ["agee"]}, ValueError, "Did you mean 'age'?"),
        ({"continuous_features": ["rich"]}, ValueError, "column is 'rich'|continuous_features is 'rich'"),
        (
            {"continuous_features": ["age", "age"]},
            ValueError,
            "Data's continuous_features needs each column once, but 'age'",
        ),
        (
            {"dataframe": borrowers().iloc[:, [0, 1, 0, 4]]},
            ValueError,
            "Data needs each column once, but 'age' is there",
        ),
        ({"outcome_name": "richh"}, ValueError, "Did you mean 'rich'?"),
        ({"outcome_name": None}, TypeError, "the outcome's column as outcome_name"),
        ({"permitted_range": {"age": [60, 20]}}, ValueError, "two numbers in ascending order"),
        ({"permitted_range": {"job": ["cok"]}}, ValueError, "Did you mean 'cook'?"),
        ({"permitted_range": {"work": ["cook"]}}, ValueError, "'work'"),
        ({"permitted_range": {"job": []}}, ValueError, "permitted_range['job'] is empty"),
        ({"continuous_features_precision": {"job": 1}}, ValueError, "'job'"),
        ({"continuous_features_precision": {"hours": -1}}, ValueError, "-1"),
        (
            {"features": {"age": [1, 2]}},
            ValueError,
            "Data needs rows of data, but features describes data without rows",
        ),
        ({"continuous_feature": ["age"]}, ValueError, "Did you mean 'continuous_features'?"),
    ],
)
def test_misuse_is_named(changed, kind, sentence):
    given = {"dataframe": borrowers(), "continuous_features": ["age", "hours"], "outcome_name": "rich"} | changed

    with pytest.raises(kind) as caught:
        Data(**given)
    assert any(part in str(caught.value) for part in sentence.split("|"))
