"""Verification trusts nothing but the model and plain numbers, and a bad point never raises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ceopt import Linear, MaxChanges, Probability, explain, metrics, verify
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import parse_target
from ceopt.oracle.model import ModelOracle
from ceopt.result.verify import check_points
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError

GOOD: dict[str, Any] = {"income": 4.0}


def one(model, space, person, change, **options):
    """The report on one changed person."""
    report = verify([person | GOOD | change], model, space, target="good", **({"factual": person} | options))
    assert len(report.to_frame()) == 1
    return report


def test_a_good_answer_passes(model, space, person):
    report = one(model, space, person, {"age": 31, "loan": 1.3, "size": "S"})

    assert report.ok is True
    assert report.unchecked == ()
    assert report.to_frame().to_dict("list") == {"rank": [1], "valid": [True], "prediction": ["good"], "broken": [()]}


@pytest.mark.parametrize("change", [{"income": 9.0}, {"age": 99}, {"loan": 0.0}, {"loan": 50.0}, {"size": "S"}])
def test_a_bound_may_be_reached(model, space, person, change):
    assert one(model, space, person, change).ok is True


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"income": 3.0}, "target: the model predicts bad, not good"),
        ({"income": 9.5}, "income: must be at most 9"),
        ({"age": 29}, "age: may only increase, but falls from 30"),
        ({"age": 100}, "age: must be at most 99"),
        ({"loan": 1.25}, "loan: moves in steps of 0.1"),
        ({"loan": 1.1000001}, "loan: moves in steps"),
        ({"loan": -0.1}, "loan: must be at least 0"),
        ({"size": "L"}, "size: may only decrease, but rises from 'M' to 'L'"),
        ({"sex": "m"}, "sex: must stay 'f', but is 'm'"),
        ({"age": 30.5}, "age: .*whole number"),
        ({"income": math.nan}, "income: .*missing"),
        ({"income": math.inf}, "income: .*finite"),
        ({"income": "4"}, "income: .*number"),
        ({"income": None}, "income: .*missing"),
        ({"size": "XL"}, "size: .*'XL'"),
        ({"size": ["S"]}, "size: .*level"),
        ({"sex": True}, "sex: .*level"),
    ],
)
def test_each_fault_is_reported_in_words(model, space, person, change, match):
    report = one(model, space, person, change)

    assert report.ok is False
    assert not report.to_frame()["valid"].any()
    assert pd.Series(report.to_frame()["broken"][0]).str.contains(match).sum() == 1
    assert repr(report).startswith("ok is False: 1 answer, 1 fails\n  rank 1: ")


def test_a_missing_column_is_reported(model, space, person):
    del person["age"]
    report = verify([person], model, space, target="good")

    assert report.ok is False
    assert "age: missing from the row" in report.to_frame()["broken"][0]


@pytest.mark.parametrize("k", range(-9, 300, 7))
def test_any_multiple_of_a_step_passes_however_it_was_rounded(model, space, person, k):
    for value in (1.0 + k * 0.1, float(f"{1.0 + k * 0.1:.1f}"), 1.0 + sum([0.1] * abs(k)) * np.sign(k)):
        report = one(model, space, person, {"loan": max(value, 0.0)})
        exact = abs(value - (1.0 + k * 0.1)) < 4 * 2.0**-53 * max(value, 1.0)
        assert (report.ok is True) == exact


def test_inferred_bounds_are_no_rules(model, person):
    moves = {"sex": "fixed", "age": "up", "size": "fixed", "loan": "fixed"}
    two = pd.DataFrame([person, person | {"income": 3.0}])
    space = FeatureSpace.infer(two, ordinal={"size": ["S", "M", "L"]}, moves=moves)
    space = FeatureSpace([*space])
    plain = Affine([1.0, 0.0, 0.0, 0.0], -3.0, labels=("bad", "good"))
    numbers = FeatureSpace([space[name] for name in ("income", "age", "loan", "size")])
    row = {name: person[name] for name in numbers.names}

    assert verify([row | {"income": 50.0}], plain, numbers, target="good", factual=row).ok is True


def test_inferred_steps_are_no_rules_and_none_that_a_factual_is_needed_for():
    space = FeatureSpace.infer(pd.DataFrame({"income": [1.0, 2.0, 9.0]}))
    plain = Affine([1.0], -3.0, labels=("bad", "good"))
    stepped = space.update("income", step=1.0)

    assert verify([{"income": 4.5}], plain, space, target="good", factual={"income": 2.0}).ok is True
    assert verify([{"income": 4.5}], plain, space, target="good").unchecked == ()
    assert verify([{"income": 4.5}], plain, stepped, target="good", factual={"income": 2.0}).ok is False
    assert verify([{"income": 4.5}], plain, stepped, target="good").unchecked == ("income: steps of 1",)
    assert metrics.broken_rules([2.0], [[4.5]], space).tolist() == [0]
    assert metrics.broken_rules([2.0], [[4.5]], stepped).tolist() == [1]


def test_rules_of_the_user_are_checked_by_name(model, space, person):
    rules = [MaxChanges(1, name="few"), Linear({"income": 1.0}, "<=", 3.5)]
    report = one(model, space, person, {"age": 31}, constraints=rules)

    assert report.to_frame()["broken"][0] == (
        "few: at most 1 feature may change",
        "Linear_2: income <= 3.5",
    )


def test_without_a_factual_the_rest_is_checked_and_the_gap_is_said(model, space, person):
    rules = [MaxChanges(1, name="few"), Linear({"income": 1.0}, "<=", 5.0)]
    report = verify([person | GOOD], model, space, target="good", constraints=rules)

    assert report.ok is None
    assert report.unchecked == (
        "age: only increasing", "loan: steps of 0.1", "size: only decreasing", "sex: fixed",
        "few: at most 1 feature may change",
    )  # fmt: skip
    assert verify([person], model, space, target="good").ok is False
    assert verify([person | GOOD | {"income": 9.5}], model, space, target="good").ok is False
    assert verify([person | {"income": 6.0}], model, space, target="good", constraints=rules).ok is False


def test_nothing_to_check_is_not_a_pass(model, space, person):
    assert verify([], model, space, target="good", factual=person).ok is None


def test_answers_come_in_many_shapes(model, space, person):
    answer = person | GOOD
    result = explain(model, person, space, target="good", n=2, diversity="pool")
    shapes = [
        result, list(result), result.to_frame(), [result[0].values], pd.Series(answer), answer, pd.DataFrame([answer]),
        [pd.DataFrame([answer])], (row for row in [answer]),
    ]  # fmt: skip

    assert [verify(shape, model, space, target="good", factual=person).ok for shape in shapes] == [True] * len(shapes)
    assert verify(result, model, space, target="good").ok is True  # it knows its own factual
    assert verify(result, model, space, target="good").to_frame()["rank"].tolist() == [1, 2]
    assert verify([3], model, space, target="good").to_frame()["broken"][0] == ("not a row: int",)


def test_good_and_bad_points_keep_their_order(model, space, person):
    rows = [person, person | GOOD, person | {"income": math.nan}, person | {"income": 5.0}]
    report = verify(rows, model, space, target="good", factual=person)

    assert report.to_frame()["valid"].tolist() == [False, True, False, True]
    assert report.to_frame()["prediction"].tolist() == ["bad", "good", None, "good"]


def test_the_real_model_is_asked_once_for_all_points(credit):
    class Counting:
        classes_ = credit.model.classes_
        feature_names_in_ = credit.model.feature_names_in_
        calls = 0

        def predict(self, frame):
            self.calls += 1
            return credit.model.predict(frame)

    counting = Counting()
    report = verify(credit.frame.head(20), counting, credit.space, target="good")

    assert counting.calls == 1
    assert report.to_frame()["valid"].tolist() == (credit.model.predict(credit.frame.head(20)) == "good").tolist()


def test_a_model_that_fails_on_one_point_does_not_spoil_the_others(space, person):
    class Picky:
        classes_ = np.array(["bad", "good"])

        def predict(self, array):
            if (np.asarray(array)[:, 0] == 5.0).any():
                raise RuntimeError("five is right out")
            return np.array(["good"] * len(array))

    rows = [person | {"income": value} for value in (4.0, 5.0, 6.0)]
    report = verify(rows, Picky(), space, target="good", factual=person)

    assert report.to_frame()["valid"].tolist() == [True, False, True]
    assert report.to_frame()["broken"][1] == ("target: the model fails with RuntimeError: five is right out",)


def test_a_missed_probability_is_said(model, space, person):
    report = verify([person | GOOD], model, space, target=Probability("good", at_least=0.99), factual=person)

    assert report.to_frame()["broken"][0] == ("target: P(good) >= 0.99 does not hold (the model predicts good)",)


def test_points_keep_the_models_word_and_the_rules_apart(model, space, person):
    home = space.row(person)
    points = [home | {"income": 4.0, "sex": 1.0}, home | {"income": 1.0}]
    target = parse_target("good", model.labels)
    first, second = check_points(ModelOracle(model, space), space, (MaxChanges(1),), target, home, points)

    assert first.valid
    assert first.broken == ("sex: must stay 'f', but is 'm'", "MaxChanges_1: at most 1 feature may change")
    assert second == (False, "bad", ())
    assert check_points(ModelOracle(model, space), space, (), target, home, []) == []


def test_misuse_is_refused(model, space, person):
    with pytest.raises(UnknownNameError, match="'excellent'"):
        verify([person], model, space, target="excellent")
    with pytest.raises(InvalidTypeError, match="answers is int"):
        verify(3, model, space, target="good")
    with pytest.raises(InvalidTypeError, match="answers is str"):
        verify("answers", model, space, target="good")
    with pytest.raises(InvalidValueError, match="'age' is missing"):
        verify([person], model, space, target="good", factual={"income": 1.0, "loan": 1.0, "size": "S", "sex": "f"})
    with pytest.raises(CeoptError, match="one is 3"):
        verify([person], model, space, target="good", constraints=[3])


def test_levels_beyond_the_space_are_seen_in_coordinates():
    only = FeatureSpace([Feature("size", kind="ordinal", levels=("S", "M"))])
    from ceopt.oracle.model import broken_moves

    assert broken_moves(only, None, {"size": 2.0}) == ("size: has no level of rank 2",)
    assert broken_moves(only, None, {"size": 0.5}) == ("size: has no level of rank 0.5",)
    assert broken_moves(only, None, {"size": math.nan}) == ("size: is nan",)
    assert broken_moves(only, {"size": 0.0}, {"size": 1.0}) == ()
