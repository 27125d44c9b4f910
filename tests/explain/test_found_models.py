"""One pinned case for each fault that somebody found in a call over boosting, networks, votes and native categories."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.svm import LinearSVC

import ceopt
from ceopt.formulations.costs import L1
from ceopt.formulations.predictors import ReluNetwork, TreeEnsemble
from ceopt.formulations.space.reachable import reach_of
from ceopt.search.near_values import NearValues, met_alone
from ceopt.search.prepare import prepare
from ceopt.settings import Settings

NUMBER = {"kind": "integer", "lower": 0, "upper": 9}


@pytest.mark.parametrize("n", [1, 2])
def test_a_member_that_stands_on_its_tie_is_no_proof_that_there_is_no_answer(n: int) -> None:
    """XGBoost's score is exactly 0 in the middle, which it calls 0: the start found it, and the program refused it."""
    people = pd.DataFrame({"x": np.arange(40.0)})
    labels = np.r_[np.ones(10), np.tile([0, 1], 10), np.zeros(10)].astype(int)
    member = xgboost.XGBClassifier(n_estimators=2, max_depth=2, base_score=0.5, learning_rate=1)
    model = VotingClassifier([("one", member)], voting="hard").fit(people, labels)
    assert model.predict(pd.DataFrame({"x": [9.0, 10.0]})).tolist() == [1, 0]
    result = ceopt.explain(model, people.iloc[[0]], ceopt.FeatureSpace.infer(people), target=0, n=n, diversity="pool")
    assert result.status == "optimal"
    assert result[0].values["x"] == pytest.approx(10.0)


@pytest.mark.parametrize("diversity", ["pool", "support"])
def test_a_column_that_no_row_reads_hides_no_answer(diversity: str) -> None:
    """Starts that differ in it alone set a budget that the second answer exceeds: "proved: there are no more"."""
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("a", **NUMBER),
            ceopt.Feature("b", weight=5.0, **NUMBER),
            ceopt.Feature("z", weight=0.01, **NUMBER),
        ]
    )
    model = ReluNetwork([[[1.0, 1.0, 0.0]], [[1.0]]], [[-1.5], [-1.0]], labels=("no", "yes"))
    row = {"a": 0, "b": 0, "z": 0}
    result = ceopt.explain(model, row, space, target="yes", n=2, cost=L1(scale="none"), diversity=diversity)
    assert [answer.cost for answer in result] == pytest.approx([3.0, 7.0])
    assert result.complete


def test_a_wide_column_lets_nothing_trickle_through_a_neuron() -> None:
    """A binary of 1e-8 times a big-M of 1e7 made an answer that the network refuses; an exact HiGHS has one."""
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("income", kind="continuous", lower=0, upper=1e7, direction="increasing"),
            ceopt.Feature("b", kind="continuous", lower=0, upper=10),
        ]
    )
    model = ReluNetwork([[[-1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]]], [[2.0, 0.0], [0.0]], labels=("no", "yes"))
    row = {"income": 1.5, "b": 1.0}
    result = ceopt.explain(model, row, space, target="yes", cost=L1(scale="none"), margin=1e-4)
    assert result.status == "optimal"
    assert result[0].cost == pytest.approx(0.5001, abs=1e-6)


@pytest.mark.parametrize("share", [0.66667, 1e-6])
def test_a_share_of_votes_is_compared_to_rounding_and_not_to_the_margin(share: float) -> None:
    """2/3 lies within the margin below 0.66667, so the program's bound was that of an answer that is none."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.integers(0, 10, size=(60, 2)).astype(float), columns=["a", "b"])
    labels = (people["a"] + people["b"] + rng.normal(0, 3, 60) > 9).astype(int)
    model = BaggingClassifier(LinearSVC(), n_estimators=3, random_state=0).fit(people, labels)
    space = ceopt.FeatureSpace([ceopt.Feature(name, **NUMBER) for name in people])
    grid = pd.DataFrame([(a, b) for a in range(10) for b in range(10)], columns=["a", "b"]).astype(float)
    reached = model.predict_proba(grid)[:, 1] >= share
    row = grid[~reached].iloc[[0]]
    result = ceopt.explain(model, row, space, target=ceopt.Probability(1, share), cost=L1(scale="none"))
    best = np.abs(grid[reached].to_numpy() - row.to_numpy()).sum(axis=1).min()
    assert result.status == "optimal"
    assert result[0].cost == pytest.approx(best)


@pytest.mark.skipif(xgboost.__version__ < "3.1", reason="xgboost from 3.1 on names categories")
def test_a_level_that_xgboost_never_saw_is_no_fault_of_the_row() -> None:
    """A dtype with a category unknown to the model made XGBoost fail on every row, with a stack of C++."""
    town = pd.Categorical(["A", "B", "C", "B"] * 20)
    people = pd.DataFrame({"town": town, "age": np.arange(80.0)})
    model = xgboost.XGBClassifier(n_estimators=4, enable_categorical=True).fit(people, (people["age"] > 40).astype(int))
    wide = people.assign(town=people["town"].cat.add_categories(["Q"]))
    result = ceopt.explain(model, wide.iloc[[0]], ceopt.FeatureSpace.infer(wide, moves={"age": "up"}), target=1)
    assert result.status == "optimal"
    assert result[0].values["town"] != "Q"


def test_an_infeasible_row_names_the_rules_in_conflict() -> None:
    stump = {"feature": 0, "threshold": 4.5, "left": {"value": -1.0}, "right": {"value": 1.0}}
    space = ceopt.FeatureSpace([ceopt.Feature("a", **NUMBER)])
    model = TreeEnsemble([stump], labels=("no", "yes"))
    result = ceopt.explain(model, {"a": 1}, space, target="yes", constraints=[ceopt.MaxChanges(0, name="none")])
    assert result.status == "infeasible"
    assert result.conflict == (("none", "at most 0 features may change", 1.0),)
    assert result.reason.endswith("In conflict: none (at most 0 features may change; 1 wider would do).")
    assert "widens" not in result.reason


def search_of(deadlines: tuple[float, float]) -> int:
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    model = RandomForestClassifier(20, random_state=0).fit(people, people["a"] > 0)
    prepared = prepare(model, ceopt.FeatureSpace.infer(people), Settings(target=True, cost="linf"))
    factual = prepared.space.row(people[people["a"] < -1].iloc[[0]])
    person = (factual, reach_of(prepared.space, factual))
    return len(met_alone(NearValues(prepared), prepared, person, deadlines).points)


def test_the_search_for_a_start_goes_on_past_its_share_until_it_has_one() -> None:
    """Of a short limit nothing was left, and what had been computed was lost."""
    now = time.perf_counter()
    assert search_of((now, now + 60.0))
    assert not search_of((now, now))


def test_a_threshold_over_a_model_that_was_fitted_itself_needs_no_fit_of_its_own() -> None:
    """scikit-learn predicts with it, so it is fitted whatever check_is_fitted says."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(people, people["a"] + people["b"] > 0)
    model = FixedThresholdClassifier(forest, threshold=0.7)
    row = people[~model.predict(people)].iloc[[0]]
    result = ceopt.explain(model, row, ceopt.FeatureSpace.infer(people), target=True)
    assert result.status == "optimal"
    assert forest.predict_proba(result[0].frame)[0, 1] >= 0.7
