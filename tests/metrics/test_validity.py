"""Each definition of validity by hand, with models given in every way, and what a model may not return."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ceopt import AtLeast, Between, Feature, FeatureSpace, OtherThan, Probability
from ceopt.formulations.predictors import Affine
from ceopt.metrics import (
    distinct_validity,
    label_change,
    label_gap,
    multiplicity_validity,
    redundancy,
    success_rate,
    suite,
    validity,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

S = [[1.0], [3.0], [5.0], [5.0]]


def above(limit):
    return lambda rows: np.where(np.asarray(rows)[:, 0] > limit, "yes", "no")


def test_the_definitions_by_hand():
    # three of four rows are above 2; two of them distinct; four, then six asked for
    assert validity(S, above(2), "yes") == 3 / 4
    assert distinct_validity(S, above(2), "yes") == 2 / 4
    assert distinct_validity(S, above(2), "yes", n=6) == 2 / 6
    assert label_change([0.0], S, above(2)) == 3 / 4
    assert label_change([9.0], S, above(2)) == 1 / 4
    assert label_gap([0.0], S, above(2), "yes") == 3 / 4
    assert success_rate([[1.0, 2.0], [np.nan, 2.0], [1.0, 1.0]]) == pytest.approx(2 / 3)
    assert success_rate(np.empty((0, 2)), n=3) == 0
    assert success_rate(pd.DataFrame({"job": ["cook", None]})) == 1 / 2


def test_the_label_gap_is_a_difference_of_means_and_not_a_share():
    # labels 1 -> 0 and 1 -> 2 cancel: |1 - (0 + 2)/2|; every label changed
    labels = lambda rows: np.asarray(rows)[:, 0].astype(int)  # noqa: E731

    assert label_gap([1.0], [[0.0], [2.0]], labels) == 0
    assert label_change([1.0], [[0.0], [2.0]], labels) == 1
    assert label_gap([0.0], [[3.0], [0.0]], labels) == 1.5


@pytest.mark.parametrize(
    ("target", "share"),
    [
        (1, 1 / 4),
        ({1, 3}, 2 / 4),
        ([5], 2 / 4),
        (OtherThan(1), 3 / 4),
        (AtLeast(3), 3 / 4),
        (Between(2, 4), 1 / 4),
        (9, 0),
    ],
)
def test_targets(target, share):
    assert validity(S, lambda rows: rows[:, 0].astype(int), target) == share


FRAME = pd.DataFrame({"pay": [1.0, 2.0, 3.0, 4.0], "job": ["a", "b", "a", "b"]})
LABELS = np.array(["no", "no", "yes", "yes"])


def test_fitted_models_get_the_columns_that_they_know():
    """Warnings of scikit-learn about names are errors here."""
    on_array = LogisticRegression().fit(FRAME[["pay"]].to_numpy(), LABELS)
    on_frame = LogisticRegression().fit(FRAME[["pay"]], LABELS)
    columns = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    pipeline = make_pipeline(columns, LogisticRegression()).fit(FRAME, LABELS)
    space = FeatureSpace.infer(FRAME)

    for model in (on_array, on_frame):
        for table in (FRAME[["pay"]], FRAME[["pay"]].to_numpy(), FRAME[["pay"]].to_dict("records")):
            assert validity(table, model, "yes") == 1 / 2
    assert validity(FRAME[["job", "pay"]], pipeline, "yes") == 1 / 2
    assert validity(FRAME, on_frame, "yes") == 1 / 2  # which knows one of the columns only
    two = FRAME[["pay"]].assign(debt=[0.0, 3.0, 1.0, 2.0])
    on_two = LogisticRegression().fit(two, LABELS)
    assert validity(two[["debt", "pay"]], on_two, "yes") == validity(two, on_two, "yes")
    assert validity(FRAME, pipeline, "yes", space=space) == 1 / 2
    assert validity(FRAME.to_numpy(), pipeline, "yes", space=space) == 1 / 2
    assert validity(FRAME, pipeline, Probability("yes", 0.999), space=space) == 0
    assert validity(FRAME[["pay"]], LinearRegression().fit(FRAME[["pay"]], [1, 2, 3, 4]), AtLeast(2.5)) == 1 / 2


def test_a_representation_needs_a_space_for_categories():
    space, model = FeatureSpace([Feature("pay", kind="continuous")]), Affine([1.0], -2.5, labels=("no", "yes"))
    mixed = FeatureSpace([Feature("pay", kind="continuous"), Feature("job", kind="binary", levels=("a", "b"))])
    wide = Affine([1.0, 3.0], -4.5, labels=("no", "yes"))

    assert validity(FRAME[["pay"]], model, "yes", space=space) == validity(FRAME[["pay"]], model, "yes") == 1 / 2
    assert validity(FRAME, wide, "yes", space=mixed) == 2 / 4  # 1, 5, 3, 7 against 4.5
    with pytest.raises(InvalidValueError, match="validity needs a space to ask a representation about categories"):
        validity(FRAME, wide, "yes")


@pytest.mark.parametrize(
    ("model", "target", "error", "message"),
    [
        (lambda rows: np.full((len(rows), 2), 0.5), 1, InvalidValueError, "predict returned shape \\(4, 2\\)"),
        (lambda _: [1], 1, InvalidValueError, "one label for each of 4 rows, but predict returned shape \\(1,\\)"),
        (lambda _: 1, 1, InvalidValueError, "predict returned one int"),
        (lambda _: None, 1, InvalidValueError, "predict returned None"),
        (
            lambda rows: np.linspace(0, 1, len(rows)),
            1,
            InvalidValueError,
            "labels, of which 1 is one, but predict returned 0.33",
        ),
        (lambda rows: np.full(len(rows), np.nan), 1, InvalidValueError, "predict returned a missing one"),
        (None, 1, InvalidTypeError, "a fitted model or a function of rows, but model is None"),
        (LogisticRegression, 1, InvalidTypeError, "a fitted model or a function"),
        (above(2), None, InvalidTypeError, "validity needs a target"),
        (above(2), Probability("yes", 0.6), InvalidValueError, "a space to check Probability"),
    ],
)
def test_bad_models_and_targets(model, target, error, message):
    with pytest.raises(error, match=message):
        validity(S, model, target)


def test_a_label_that_a_fitted_model_does_not_have_is_refused():
    fitted = LogisticRegression().fit(FRAME[["pay"]], LABELS)
    made = Affine([1.0], -2.5, labels=("no", "yes"))

    for model in (fitted, made):
        with pytest.raises(UnknownNameError, match="class is 'yess'"):
            validity(FRAME[["pay"]], model, "yess")
        assert validity(FRAME[["pay"]], model, OtherThan("no")) == 1 / 2


def test_a_column_of_labels_is_taken():
    assert validity(S, lambda rows: rows > 2, True) == 3 / 4


def test_bad_counts():
    with pytest.raises(InvalidValueError, match="n of at least the 2 distinct valid rows, but n is 1"):
        distinct_validity(S, above(2), "yes", n=1)
    with pytest.raises(InvalidValueError, match="n is 2.5"):
        distinct_validity(S, above(2), "yes", n=2.5)
    with pytest.raises(InvalidValueError, match="success_rate needs n of at least 1, but n is 0"):
        success_rate(np.empty((0, 2)))
    with pytest.raises(InvalidValueError, match="n of at least 4, but n is 3"):
        success_rate(S, n=3)
    with pytest.raises(InvalidTypeError, match="labels that are numbers, or a target, but a label is 'no'"):
        label_gap([0.0], S, above(2))


def test_empty_sets_are_refused():
    for call in (validity, distinct_validity):
        with pytest.raises(InvalidValueError, match=f"{call.__name__} needs a row in S"):
            call(np.empty((0, 1)), above(2), "yes")
    for call in (label_change, label_gap):
        with pytest.raises(InvalidValueError, match=f"{call.__name__} needs a row in S"):
            call([0.0], np.empty((0, 1)), above(2))


# ---- redundancy ------------------------------------------------------------------------------------------------------
def test_redundancy_by_hand():
    # favoured: pay >= 4 and job b. (5, b) needs both; (5, b) from job b only the pay; age never matters
    def favoured(rows):
        return (rows["pay"] >= 4) & (rows["job"] == "b")

    x = {"pay": 1, "job": "a", "age": 30}
    S = pd.DataFrame({"pay": [5, 5, 5], "job": ["b", "b", "a"], "age": [30, 31, 31]})

    assert redundancy(x, S, favoured, True).tolist() == [0, 1, 0]
    assert redundancy({**x, "job": "b"}, S, favoured, True).tolist() == [0, 1, 1]


def test_redundancy_takes_columns_back_one_at_a_time_and_never_in_the_callers_table():
    S = np.array([[1.0, 1.0], [0.0, 0.0]])
    before = S.copy()

    # either one is enough, so both count, although not both can go
    assert redundancy([0.0, 0.0], S, lambda rows: rows.sum(axis=1) >= 1, True).tolist() == [2, 0]
    assert (before == S).all()


def test_redundancy_reaches_the_target_from_outside_too():
    # favoured below 1; the counterfactual (0, 5) is not, but taking 5 back is
    assert redundancy([0.0, 0.0], [[0.5, 5.0]], lambda rows: rows.sum(axis=1) < 1, True).tolist() == [1]


def test_redundancy_keeps_dtypes_where_they_hold_the_value():
    seen = []

    def model(rows):
        seen.append(rows.dtypes.astype(str).to_dict())
        return np.ones(len(rows))

    S = pd.DataFrame({"age": [40], "job": pd.Categorical(["b"], ["a", "b"])})
    redundancy({"age": 30, "job": "a"}, S, model, 1)
    redundancy({"age": 30.5, "job": "a"}, S, model, 1)

    assert seen[0] == seen[1] == {"age": "int64", "job": "category"}
    assert seen[2]["age"] == "float64"  # 30.5 is no whole number


def test_columns_are_matched_by_name_for_a_model_of_places_too():
    """The same person twice, the columns in another order: nothing is changed, whatever the model knows."""
    model = LogisticRegression().fit([[-3.0, 5.0], [5.0, -3.0]], [0, 1])
    x = pd.Series({"a": -3.0, "b": 5.0})
    S = pd.DataFrame({"b": [5.0], "a": [-3.0]})

    assert label_change(x, S, model) == label_gap(x, S, model) == 0.0
    assert multiplicity_validity(x, S, [model]).tolist() == [0.0]
    found = suite("ce_ocl2022", S, factual=x, model=model, missing="nan")
    assert found["validity"] == 0.0
    space = FeatureSpace([Feature(name, kind="continuous") for name in "ab"])
    assert label_change(x, S, lambda rows: rows.to_numpy()[:, 0] > 0, space=space) == 0.0


def test_a_model_that_names_no_columns_gets_an_array() -> None:
    class Nameless:
        feature_names_in_ = None

        def predict(self, rows: np.ndarray) -> np.ndarray:
            return (np.asarray(rows)[:, 0] > 1.0).astype(int)

    x = pd.DataFrame({"a": [0.0], "b": [0.0]})
    answers = pd.DataFrame({"a": [2.0, 0.5], "b": [0.0, 0.0]})
    assert label_change(x, answers, Nameless()) == 0.5
