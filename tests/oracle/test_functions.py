"""Functions in the place of a model, in ``verify`` and in every metric that takes a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import ceopt
from ceopt import AtLeast, AtMost, Between, CeoptError, Hull, MaxChanges, OtherThan, Probability, metrics, verify
from ceopt.formulations.predictors.readers import is_function
from ceopt.oracle.model import FunctionOracle, FunctionTarget, model_behind

X = pd.DataFrame({"income": [1.0, 2.0, 4.0, 6.0], "job": ["clerk", "cook", "cook", "clerk"], "age": [20, 30, 40, 50]})
SPACE = ceopt.FeatureSpace.infer(X, moves={"age": "up"})
GOOD = {"income": 4.0, "job": "cook", "age": 30}
BAD = {"income": 1.0, "job": "cook", "age": 20}


def predict(rows: pd.DataFrame) -> Any:
    assert list(rows.columns) == list(X.columns)
    assert list(rows.dtypes) == list(X.dtypes)
    return np.where(rows["income"] > 3, "yes", "no")


def test_a_function_is_what_is_called_and_has_no_predict() -> None:
    model = LogisticRegression()

    assert is_function(predict)
    assert is_function(model.predict)
    assert not is_function(model)
    assert not is_function(LogisticRegression)
    assert not is_function("model.onnx")
    assert model_behind(model.predict, "yes") is model
    assert model_behind(predict, "yes") is predict
    assert model_behind(model.fit, "yes") == model.fit


class Unknown:
    """A model of no library, without labels: a function of frames, if it is asked for a label."""

    def predict(self, rows: Any) -> Any:
        return predict(rows)


def test_an_object_without_classes_that_is_asked_for_a_label_is_its_predict() -> None:
    unknown = Unknown()
    regressor = LinearRegression()

    assert verify([GOOD, BAD], unknown, SPACE, target="yes").to_frame()["valid"].tolist() == [True, False]
    assert model_behind(unknown, AtLeast(1.0)) is unknown
    assert model_behind(regressor, "yes") is regressor
    assert model_behind(Unknown, "yes") is Unknown


def test_answers_are_verified_by_a_function() -> None:
    report = verify([GOOD, BAD], predict, SPACE, target="yes", factual={"income": 1.0, "job": "cook", "age": 30})

    assert report.to_frame()["valid"].tolist() == [True, False]
    assert report.checks[1].broken == (
        "target: the model predicts no, not yes", "age: may only increase, but falls from 30.0 to 20.0",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "function", "text"),
    [
        ("yes", predict, "yes"),
        (["yes", "maybe"], predict, "yes or maybe"),
        (OtherThan("no"), predict, "other than no"),
        (AtLeast(4), lambda rows: rows["income"].to_numpy(), "at least 4"),
        (AtMost(-3.5), lambda rows: -rows["income"], "at most -3.5"),
        (Between(4, 6), lambda rows: rows["income"], "from 4 to 6"),
        (True, lambda rows: rows["income"] > 3, "True"),
        (1, lambda rows: [[int(value > 3)] for value in rows["income"]], "1"),
    ],
)
def test_every_target_that_a_function_can_meet(target: Any, function: Any, text: str) -> None:
    report = verify([GOOD, BAD], function, SPACE, target=target)

    assert [check.valid for check in report.checks] == [True, False]
    assert report.checks[1].broken[0].endswith(f"not {text}")
    assert FunctionTarget(target).text() == text


def test_rules_learn_from_the_rows_that_a_function_favours() -> None:
    factual = {"income": 1.0, "job": "cook", "age": 30}
    rules = [Hull(scale="none"), MaxChanges(2)]
    inside = {"income": 4.0, "job": "cook", "age": 40}
    outside = {"income": 3.5, "job": "cook", "age": 40}
    report = verify([inside, outside], predict, SPACE, target="yes", factual=factual, constraints=rules, data=X)

    assert report.unchecked == ()
    assert [check.valid for check in report.checks] == [True, False]
    assert "Hull" in report.checks[1].broken[0]


def test_the_method_of_a_model_is_the_model() -> None:
    numbers = X[["income", "age"]]
    model = LogisticRegression().fit(numbers.to_numpy(), predict(X))
    space = ceopt.FeatureSpace.infer(numbers, moves={"age": "any"})
    report = verify([{"income": 6.0, "age": 50}], model.predict, space, target="yes")

    assert report.checks[0].prediction == "yes"


def test_a_function_that_fails_on_one_point_does_not_spoil_the_others() -> None:
    def fails(rows: pd.DataFrame) -> Any:
        if (rows["income"] < 2).any():
            raise ZeroDivisionError("at night")
        return predict(rows)

    report = verify([GOOD, BAD], fails, SPACE, target="yes")
    assert report.to_frame()["valid"].tolist() == [True, False]
    assert "the model fails with ZeroDivisionError: at night" in report.checks[1].broken[0]


@pytest.mark.parametrize(
    ("function", "target", "match"),
    [
        (predict, None, "a label or a set of labels, but target is NoneType"),
        (predict, np.array(["yes"]), "target is ndarray"),
        (predict, [], r"some label, but target is \[\]"),
        (predict, Probability("yes", 0.6), "the model is a function.*Give the fitted model"),
        (predict, AtLeast(3), "numbers to hold against"),
        (predict, 1, "labels of the kind of 1"),
        (lambda rows: rows["income"] / 10, 1, "Give predict, not probabilities"),
        (lambda rows: np.ones((len(rows), 2)), 1, "one label for 1 row,"),
        (lambda rows: [None] * len(rows), "yes", "a label for every row"),
    ],
)
def test_misuse_is_refused(function: Any, target: Any, match: str) -> None:
    with pytest.raises(CeoptError, match=match):
        verify([GOOD], function, SPACE, target=target)


def test_the_oracle_asks_once() -> None:
    calls = []

    def counted(rows: pd.DataFrame) -> Any:
        calls.append(len(rows))
        return predict(rows)

    oracle = FunctionOracle(counted, SPACE)
    said, met = oracle.judge(X, FunctionTarget("yes"))
    assert said.tolist() == ["no", "no", "yes", "yes"]
    assert met.tolist() == oracle.meets(X, FunctionTarget("yes")).tolist() == [False, False, True, True]
    assert calls == [4, 4]


S = pd.DataFrame([GOOD, {"income": 6.0, "job": "clerk", "age": 30}])
FACTUAL = X.iloc[[0]]
METRICS = {
    "validity": lambda f: metrics.validity(S, f, "yes", space=SPACE),
    "distinct_validity": lambda f: metrics.distinct_validity(S, f, "yes", space=SPACE),
    "label_change": lambda f: metrics.label_change(FACTUAL, S, f, space=SPACE),
    "label_gap": lambda f: metrics.label_gap(FACTUAL, S, f, "yes", space=SPACE),
    "robustness": lambda f: float(metrics.robustness(S, [f, f], "yes", space=SPACE).mean()),
    "plan_validity": lambda f: metrics.plan_validity(S, [f], "yes", space=SPACE),
    "multiplicity_validity": lambda f: float(metrics.multiplicity_validity(FACTUAL, S, [f], space=SPACE).mean()),
    "redundancy": lambda f: float(metrics.redundancy(FACTUAL, S.head(1), f, "yes", space=SPACE)[0]) - 1.0,
    "ynn": lambda f: metrics.ynn(S, X, f, "yes", k=4, space=SPACE) + 0.5,
    "suite": lambda f: metrics.suite("ce_ocl2022", S, factual=FACTUAL, model=f, target="yes", data=X, space=SPACE)[
        "validity"
    ],
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_take_a_function(name: str) -> None:
    assert METRICS[name](predict) == 1.0


def test_metrics_of_noise_take_a_function() -> None:
    rates = metrics.invalidation_rate(S, lambda rows: rows["income"] > 3, True, 0.01, space=SPACE)
    assert rates.tolist() == [0.0, 0.0]
