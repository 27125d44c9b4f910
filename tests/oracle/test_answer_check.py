"""The user's own model gets what its user would have given it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import Between, Probability, parse_target
from ceopt.oracle.model import ModelOracle
from ceopt.solvers.errors import UnknownNameError, UnsupportedModelError

NUMBERS = ["income", "loans", "owner"]


def numbers(credit):
    return FeatureSpace([credit.space[name] for name in NUMBERS])


def test_a_model_of_a_frame_gets_its_columns_by_name(credit):
    oracle = ModelOracle(credit.model, credit.space)
    backwards = credit.frame[credit.frame.columns[::-1]]

    assert oracle.labels == ("bad", "good")
    assert all(type(label) is str for label in oracle.labels)
    assert oracle.predict(backwards).tolist() == credit.model.predict(credit.frame).tolist()
    assert oracle.probability(backwards, "bad").tolist() == credit.model.predict_proba(credit.frame)[:, 0].tolist()


def test_a_model_of_an_array_gets_floats_in_the_order_of_the_space(credit):
    space = numbers(credit)
    model = RandomForestClassifier(5, random_state=0).fit(credit.frame[NUMBERS].to_numpy(dtype=float), credit.label)
    frame = credit.frame[["owner", "income", "loans"]]

    assert (
        ModelOracle(model, space).predict(frame) == model.predict(credit.frame[NUMBERS].to_numpy(dtype=float))
    ).all()


def test_a_model_of_an_array_of_objects_gets_objects(credit):
    given = credit.frame[["job", "owner"]].to_numpy(dtype=object)
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(given, credit.label)
    space = FeatureSpace([credit.space["job"], credit.space["owner"]])

    assert (ModelOracle(model, space).predict(credit.frame) == model.predict(given)).all()


@pytest.mark.parametrize("first", ["passthrough", StandardScaler()])
def test_names_are_found_behind_a_first_step_that_does_nothing(credit, first):
    frame = credit.frame[NUMBERS]
    model = Pipeline([("first", first), ("last", LogisticRegression())]).fit(frame, credit.label)

    assert (ModelOracle(model, numbers(credit)).predict(frame[NUMBERS[::-1]]) == model.predict(frame)).all()


def test_a_search_object_is_its_best_estimator(credit):
    frame = credit.frame[NUMBERS]
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(frame, credit.label)

    assert ModelOracle(search, numbers(credit)).labels == ("bad", "good")
    assert (ModelOracle(search, numbers(credit)).predict(frame) == search.predict(frame)).all()


def test_representations_speak_for_themselves(space, model, person):
    oracle = ModelOracle(model, space)
    frame = space.frame([space.row(person), space.row(person | {"income": 4.0})])

    assert oracle.predict(frame).tolist() == ["bad", "good"]
    assert oracle.probability(frame, "good").tolist() == pytest.approx([1 / (1 + np.e), np.e / (1 + np.e)])
    assert oracle.probability(frame, "bad") + oracle.probability(frame, "good") == pytest.approx([1.0, 1.0])


def test_shares_are_probabilities():
    leaf = {"feature": 0, "threshold": 0.5, "left": {"value": [0.75, 0.25]}, "right": {"value": [0.5, 0.5]}}
    one = FeatureSpace([Feature("x", kind="continuous")])
    oracle = ModelOracle(TreeEnsemble([leaf], [0.0, 0.0], labels=("a", "b"), probability="share"), one)
    frame = one.frame([{"x": 0.0}, {"x": 1.0}])

    assert oracle.probability(frame, "b").tolist() == [0.25, 0.5]
    assert oracle.predict(frame).tolist() == ["a", "a"]


@pytest.mark.parametrize(
    ("target", "met"),
    [
        ("good", [False, True]),
        ("bad", [True, False]),
        (Probability("good", at_least=0.7), [False, True]),
        (Probability("good", at_least=0.74), [False, False]),
    ],
)
def test_a_target_is_met_by_the_models_own_word(space, model, person, target, met):
    frame = space.frame([space.row(person), space.row(person | {"income": 4.0})])

    assert ModelOracle(model, space).meets(frame, parse_target(target, model.labels)).tolist() == met


def test_a_regressors_target_is_a_closed_range(credit):
    frame = credit.frame[["income"]]
    oracle = ModelOracle(LinearRegression().fit(frame, frame["income"]), FeatureSpace([credit.space["income"]]))
    values = oracle.predict(frame)
    low, high = np.sort(values)[[10, 20]]

    assert oracle.labels is None
    assert (
        oracle.meets(frame, parse_target(Between(low, high), None)).sum() == ((values >= low) & (values <= high)).sum()
    )


def test_labels_that_are_numbers_are_python_numbers(credit):
    model = LogisticRegression().fit(credit.frame[["income"]], credit.label == "good")
    oracle = ModelOracle(model, FeatureSpace([credit.space["income"]]))

    assert oracle.labels == (False, True)
    assert type(oracle.labels[0]) is bool
    assert oracle.meets(credit.frame, parse_target(True, oracle.labels)).any()


@pytest.mark.parametrize(
    ("thing", "match"),
    [
        (Path("model.joblib"), r"model\.joblib"),
        (LogisticRegression, "LogisticRegression is a class"),
        (LogisticRegression(), "LogisticRegression is not fitted"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "not fitted"),
        (object(), "object has no predict"),
    ],
)
def test_what_is_no_fitted_model_is_refused_by_name(space, thing, match):
    with pytest.raises(UnsupportedModelError, match=match):
        ModelOracle(thing, space)


def test_several_outputs_are_refused(credit):
    twice = np.column_stack([credit.label, credit.label])
    model = RandomForestClassifier(2).fit(credit.frame[NUMBERS], twice)

    with pytest.raises(UnsupportedModelError, match="has 2"):
        ModelOracle(model, numbers(credit))


def test_a_missing_column_is_named(credit):
    with pytest.raises(UnsupportedModelError, match="'job' is not in the space"):
        ModelOracle(credit.model, numbers(credit))


def test_a_probability_needs_a_model_that_has_one(credit):
    frame = credit.frame[NUMBERS]
    oracle = ModelOracle(LinearSVC().fit(frame, credit.label), numbers(credit))

    with pytest.raises(UnsupportedModelError, match="LinearSVC has none"):
        oracle.probability(frame, "good")
    with pytest.raises(UnknownNameError, match="'excellent'"):
        ModelOracle(credit.model, credit.space).probability(credit.frame, "excellent")
    plain = ModelOracle(Affine([1.0, 0.0, 0.0], 0.0, labels=("a", "b")), numbers(credit))
    with pytest.raises(UnsupportedModelError, match="Affine has none"):
        plain.probability(frame, "b")
