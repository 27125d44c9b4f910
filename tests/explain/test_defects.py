"""Faults that were found in other libraries' embeddings (D1 to D14 of our survey): none is here.

D4, D5, D7 and D8 are XGBoost's and stand with its reader's tests, D9 with LightGBM's; D5 is with ONNX too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import ceopt
from ceopt.formulations import Factual, embed
from ceopt.formulations.predictors.readers import read
from ceopt.solvers import Status, solve

COLUMNS = ["a", "b", "c"]
POINTS = 40


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)).round(2), columns=COLUMNS)


def labelled(people: pd.DataFrame, classes: int) -> np.ndarray[Any, Any]:
    value = people["a"] + people["b"] * people["c"]
    return np.digitize(value, np.quantile(value, np.linspace(0, 1, classes + 1)[1:-1]))


def ends(model: Any, row: pd.DataFrame, space: ceopt.FeatureSpace, label: Any) -> tuple[float, float]:
    """The least and greatest score of a label that the program allows where nothing may move."""
    fixed = ceopt.FeatureSpace([space[name] for name in space.names])
    for name in space.names:
        fixed = fixed.update(name, mutable=False)
    found = []
    for sense in (pyo.minimize, pyo.maximize):
        m = pyo.ConcreteModel()
        m.x = Factual(fixed, row)
        m.predictor = embed(model, m.x)
        m.y = pyo.Var()
        m.link = pyo.Constraint(expr=m.y == m.predictor.score[label])
        m.goal = pyo.Objective(expr=m.y, sense=sense)
        result = solve(m)
        assert result.status is Status.OPTIMAL
        found.append(float(result.objective))
    return found[0], found[1]


@pytest.mark.long
@pytest.mark.parametrize("classes", [2, 3])
def test_d1_d3_a_forest_at_a_point_has_the_librarys_mean_of_fractions_and_no_other(people, classes):
    labels = labelled(people, classes)
    model = RandomForestClassifier(n_estimators=7, max_depth=4, random_state=0).fit(people, labels)
    space = ceopt.FeatureSpace.infer(people)
    for place in range(0, POINTS, 4):
        row = people.iloc[[place]]
        for label, share in zip(model.classes_.tolist(), model.predict_proba(row)[0].tolist(), strict=True):
            assert ends(model, row, space, label) == pytest.approx((share, share), abs=1e-9)


def test_d2_d14_boosting_starts_from_the_log_odds_of_the_classes(people):
    labels = (people["a"] + people["b"] * people["c"] > 0.8).astype(int)  # a rare class, so that the prior matters
    model = GradientBoostingClassifier(n_estimators=10, max_depth=3, random_state=0).fit(people, labels)
    space, prior = ceopt.FeatureSpace.infer(people), labels.mean()
    assert read(model, space).core.base.tolist() == pytest.approx([np.log(prior / (1 - prior))])
    for place in range(0, POINTS, 4):
        row = people.iloc[[place]]
        score = float(model.decision_function(row)[0])
        assert ends(model, row, space, 1) == pytest.approx((score, score), abs=1e-9)
        assert ends(model, row, space, 0) == pytest.approx((-score, -score), abs=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_d13_a_probability_of_boosting_passes_the_logit_once(people, level):
    labels = (people["a"] + people["b"] * people["c"] > 0).astype(int)
    model = GradientBoostingClassifier(n_estimators=40, max_depth=3, random_state=0).fit(people, labels)
    probability = model.predict_proba(people)[:, 1]
    assert (probability >= level).any()
    row = people.iloc[[int(probability.argmin())]]
    target = ceopt.Probability(1, at_least=level)
    result = ceopt.explain(model, row, ceopt.FeatureSpace.infer(people), target=target, data=people)
    assert result.status == "optimal"
    reached = float(model.predict_proba(result[0].frame)[0, 1])
    assert level <= reached
    assert result[0].slack == pytest.approx(np.log(reached / (1 - reached)) - np.log(level / (1 - level)))


def test_d6_a_tree_of_one_output_is_embedded_in_every_formulation(people):
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(people, people["a"] * people["b"])
    row, target = people.iloc[[0]], ceopt.AtLeast(float(model.predict(people).max()) - 1e-9)
    space = ceopt.FeatureSpace.infer(people)
    ways = ("ordered", "misic", "leaf")
    results = [ceopt.explain(model, row, space, target=target, formulation=way, margin=0) for way in ways]
    assert [result.status for result in results] == ["optimal"] * 3
    assert [result[0].cost for result in results] == pytest.approx([results[0][0].cost] * 3)


@pytest.mark.parametrize("margin", [None, 1e-7, 0.0])
def test_d10_a_tie_within_the_solvers_tolerance_is_no_answer(margin):
    # Two trees say 1/2 and 1/2 beyond a = 1: scikit-learn then predicts the first class. Beyond a = 2 both say 1.
    people = pd.DataFrame({"a": np.linspace(0, 3, 301)})
    forest = RandomForestClassifier(n_estimators=2, max_depth=1, bootstrap=False, random_state=0)
    forest.fit(people, (people["a"] > 2).astype(int))
    forest.estimators_[0] = DecisionTreeClassifier(max_depth=1).fit(people.to_numpy(), (people["a"] > 1).astype(int))
    assert forest.predict(pd.DataFrame({"a": [1.5, 2.5]})).tolist() == [0, 1]
    space = ceopt.FeatureSpace.infer(people)
    result = ceopt.explain(forest, {"a": 0.5}, space, target=1, cost=ceopt.L1(scale="none"), margin=margin)
    # At a margin of 0 the tie is in the first program; what the model refuses is then left out, and the rest is proved.
    assert result.status == "optimal"
    grid = pd.DataFrame({"a": np.arange(301) / 100})  # steps that were seen in the data
    cheapest = (grid["a"][forest.predict(grid) == 1] - 0.5).abs().min()
    assert result[0].bound == pytest.approx(cheapest, abs=1e-6)
    assert result[0].verified
    assert result[0].cost == pytest.approx(1.5, abs=0.02)
    assert result[0].prediction == 1


@pytest.mark.parametrize("towards", ["up", "down"])
def test_d11_a_float64_next_to_a_float32_threshold_goes_as_the_library_sends_it(towards):
    people = pd.DataFrame({"a": [1000.0, 1001.0]})
    model = DecisionTreeClassifier().fit(people, [0, 1])
    assert model.tree_.threshold[0] == 1000.5
    home, target = (1000.0, 1) if towards == "up" else (1001.0, 0)
    # Whole numbers are nowhere near a threshold, and a column of the data is told in decimals.
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="continuous", lower=1000.0, upper=1001.0)])
    result = ceopt.explain(model, {"a": home}, space, target=target, cost=ceopt.L1(scale="none"))
    value = float(result[0].values["a"])
    beyond = np.nextafter(value, home)
    assert model.predict(pd.DataFrame({"a": [value, beyond]})).tolist() == [target, 1 - target]
    # Half a float32 step above 1000.5 still goes left: an epsilon of 1e-8, or the bare threshold, would be refused.
    assert 1000.5 <= value <= 1000.50004


def test_d12_the_comparison_is_made_in_float64_and_not_in_float32():
    # 0.1 in float32 is 0.10000000149: above a float64 threshold of 0.1, and equal to it once that is rounded.
    people = pd.DataFrame({"a": [0.0, 0.2]})
    model = DecisionTreeClassifier().fit(people, [0, 1])
    assert model.tree_.threshold[0] == pytest.approx(0.1)
    predictor = read(model, ceopt.FeatureSpace.infer(people))
    rows = np.array([[np.nextafter(0.1, 0)], [0.1], [float(np.float32(0.1))], [0.10000001]])
    assert predictor.core.predict(rows).tolist() == model.predict(pd.DataFrame({"a": rows[:, 0]})).tolist()
