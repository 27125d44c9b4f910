"""Cohorts of people with missing cells and codes: who cannot be asked is named, and all others are answered."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import ceopt
from ceopt import Cohort, Feature, FeatureSpace, Linear, MaxChanges, Recourse

NAN = float("nan")
SPACE = FeatureSpace(
    [
        Feature("income", kind="integer", lower=0, upper=9000, step=100, missing=True, dtype="float64", mad=1500.0),
        Feature("age", kind="integer", lower=18, upper=99, direction="up", mad=10.0),
        Feature("asked", kind="integer", lower=0, upper=9, codes={-9: "no record"}, mad=1.0),
    ]
)


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "income": draw.integers(0, 91, 400) * 100.0,
            "age": draw.integers(18, 80, 400),
            "asked": draw.choice([-9, 0, 1, 2, 3], 400),
        }
    )
    X.loc[draw.random(400) < 0.2, "income"] = NAN
    y = np.where((X["income"].fillna(1000) > 4500) & (X["asked"] != 3), "good", "bad")
    return X, HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def people():
    rows = [
        [NAN, 30, 2],
        [1000.0, 40, -9],
        [NAN, 50, -9],
        [8000.0, 30, 0],
        [NAN, NAN, 1],
        [-50.0, 30, NAN],
        [2000.0, 20, 3],
    ]
    return pd.DataFrame(rows, columns=list(SPACE.names), index=list("abcdefg"))


def recourse(data, **given):
    X, model = data
    return Recourse(model, SPACE, target="good", **given).fit(X)


def test_who_cannot_be_asked_is_named_and_all_others_are_answered(data, people):
    cohort = recourse(data).explain(people)

    assert cohort.counts() == {"optimal": 4, "already_favourable": 1, "error": 2}
    failures = cohort.failures()
    assert failures.index.tolist() == ["e", "f"]
    assert "'age' needs a value" in failures.loc["e", "reason"]
    assert "'asked' needs a value" in failures.loc["f", "reason"]
    moves = cohort.changes().set_index("query_id")
    assert moves.loc[["a"], "move"].isna().all()
    assert ceopt.verify(cohort[0], data[1], SPACE, target="good").ok


def test_rules_of_amounts_refuse_by_name_whoever_may_hold_none(data, people):
    cohort = recourse(data, constraints=[Linear({"income": 1.0}, "<=", 8500.0)]).explain(
        people.loc[["a", "b", "c", "g"]]
    )

    assert [str(result.status) for result in cohort] == ["error", "optimal", "error", "optimal"]
    assert cohort.failures()["reason"].str.contains("Linear needs columns that hold amounts, but column 'income'").all()


def test_a_cohort_with_gaps_is_resumed(data, people):
    fitted = recourse(data)
    cohort = fitted.explain(people)
    half = ceopt.Cohort(
        results=cohort.results, queries=cohort.queries, space=SPACE, options=cohort.options,
        finished=(True, False, True, False, True, False, True),
    )  # fmt: skip
    again = fitted.explain(people, resume=Cohort.from_json(half.to_json()))

    assert all(again.finished)
    pd.testing.assert_frame_equal(again.to_frame(), cohort.to_frame())


def test_conflicts_of_people_with_gaps_are_found(data, people):
    space = SPACE.update("income", missing="stays").fix("age")
    X, model = data
    rules = [MaxChanges(1, name="one")]
    cohort = (
        Recourse(model, space, target="good", constraints=rules, why=True).fit(X).explain(people.loc[["a", "c", "g"]])
    )

    assert [str(result.status) for result in cohort][:2] == ["infeasible", "infeasible"]
    assert all(result.conflict for result in cohort if result.status == "infeasible")
    assert "income stays missing" in " ".join(cohort[0].sentences()) + str(cohort[0].removed)
