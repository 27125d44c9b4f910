"""Answers of trees by branching over cells: the costs of a program, and of all points of a small grid."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from enumeration import distinct_costs
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations.predictors import cell_branching
from ceopt.search import without_program

JOBS = ("clerk", "cook", "driver", "nurse")


def rows(count: int, rng: np.random.Generator, *, with_gaps: bool) -> pd.DataFrame:
    """Return rows of two whole numbers, a number, and levels."""
    found = pd.DataFrame(
        {
            "a": rng.integers(0, 8, count),
            "b": rng.uniform(-2.0, 2.0, count).round(1),
            "c": rng.integers(-4, 5, count).astype(float),
            "job": rng.choice(JOBS, count),
        }
    )
    if with_gaps:
        found.loc[rng.uniform(size=count) < 0.2, "c"] = np.nan
    return found


def asked(seed: int, kind: str) -> tuple[Any, ceopt.FeatureSpace, pd.DataFrame]:
    """Return a model, its space, and people whom it does not favour."""
    rng = np.random.default_rng(seed)
    with_gaps = kind == "gaps"
    data = rows(160, rng, with_gaps=with_gaps)
    score = data["a"] + 2 * data["b"] - data["c"].fillna(3.0) + 2 * (data["job"] == "nurse")
    wanted = np.where(score + rng.normal(0.0, 2.0, len(data)) > 6.0, "yes", "no")
    estimator: Any = {
        "forest": RandomForestClassifier(9, max_depth=4, random_state=seed),
        "ties": RandomForestClassifier(6, random_state=seed),
        "boosting": GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=seed),
        "gaps": HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=6, random_state=seed),
    }[kind]
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["job"]), remainder="passthrough")
    model = make_pipeline(encoder, estimator).fit(data, wanted)
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("a", kind="integer", lower=0, upper=7, direction="increasing"),
            ceopt.Feature("b", kind="continuous", lower=-2.0, upper=2.0),
            ceopt.Feature("c", kind="integer", lower=-4, upper=4, missing=with_gaps),
            ceopt.Feature("job", kind="categorical", levels=JOBS),
        ]
    )
    people = data[model.predict(data) == "no"]
    return model, space, people


COST = ceopt.L1(scale={"a": 1.0, "b": 0.3, "c": 0.7})


@pytest.mark.parametrize("kind", ["forest", "ties", "boosting", "gaps"])
@pytest.mark.parametrize("rules", [(), (ceopt.Linear({"a": 1.0, "b": 1.0}, "<=", 6.0),)], ids=["free", "ruled"])
def test_answers_cost_what_those_of_a_program_do(kind: str, rules: Any, request: pytest.FixtureRequest) -> None:
    found = []
    given = {"target": "yes", "cost": COST, "constraints": rules, "n": 5, "solver": "highs"}
    if kind == "gaps" and rules:  # which need amounts
        given["constraints"] = (ceopt.MaxChanges(2),)
    cases = [(0, 0), (0, 1), (1, 0)]
    for seed, place in cases:
        model, space, people = asked(seed, kind)
        found.append(ceopt.explain(model, people.iloc[[place]], space, **given))
    request.getfixturevalue("by_program")
    for (seed, place), own in zip(cases, found, strict=True):
        model, space, people = asked(seed, kind)
        other = ceopt.explain(model, people.iloc[[place]], space, **given)
        assert (own.status, own.complete, len(own)) == (other.status, other.complete, len(other))
        assert [answer.cost for answer in own] == pytest.approx([answer.cost for answer in other], rel=3e-6)
        for answer in own:
            assert answer.verified
            assert answer.bound == pytest.approx(answer.cost, rel=3e-6)
    assert rules or any(own.solver == "" for own in found)  # fewer columns of the same cost are a program's


@pytest.mark.parametrize("work", [0, 500])
def test_what_work_does_not_suffice_for_is_left_to_a_program(work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, space, people = asked(0, "forest")
    given = {"target": "yes", "cost": COST, "n": 4, "solver": "highs"}
    person = people.iloc[[1]]
    whole = ceopt.explain(model, person, space, **given)
    monkeypatch.setattr(cell_branching.Work.__init__, "__defaults__", (work,))
    monkeypatch.setattr(cell_branching, "WORK", work)
    short = ceopt.explain(model, person, space, **given)
    assert [answer.cost for answer in short] == pytest.approx([answer.cost for answer in whole])
    assert whole.solver == ""
    assert short.solver


def test_where_rules_refuse_point_after_point_each_that_is_asked_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branching knows no rules: where all but dear points break one, it asked tens of thousands."""
    costs: list[float] = []
    is_favoured = without_program._is_favoured

    def noted(question: Any, point: dict[str, float]) -> bool:
        found = is_favoured(question, point)
        if not found:
            costs.append(question.cost(point))
        return found

    monkeypatch.setattr(without_program, "_is_favoured", noted)
    model, space, people = asked(0, "forest")
    most = ceopt.Linear({"a": 1.0}, "<=", float(people["a"].iloc[1]))
    ceopt.explain(model, people.iloc[[1]], space, target="yes", cost=COST, constraints=(most,), proof=True)
    assert len(costs) > 1
    assert costs == sorted(costs, reverse=True)


def test_further_answers_of_a_small_grid_are_its_cheapest() -> None:
    """All points are asked, and the cheapest of those that are distinct from the ones before is taken each time."""
    rng = np.random.default_rng(3)
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=4) for name in "abcd"])
    data = pd.DataFrame(rng.integers(0, 5, (120, 4)), columns=list("abcd"))
    wanted = (data["a"] * data["b"] + data["c"] - data["d"] + rng.normal(0.0, 2.0, 120) > 5.0).astype(int)
    grid = pd.DataFrame(list(itertools.product(range(5), repeat=4)), columns=list("abcd"))
    for seed in range(3):
        model = RandomForestClassifier(7, max_depth=5, random_state=seed).fit(data, wanted)
        favoured = grid[model.predict(grid) == 1]
        for _, person in data[model.predict(data) == 0].head(3).iterrows():
            points = favoured.to_numpy(dtype=float)
            home = person.to_numpy(dtype=float)
            costs = distinct_costs(space, home, points, np.abs(points - home).sum(axis=1), 8)
            found = ceopt.explain(model, person, space, target=1, cost=ceopt.L1(scale="none"), n=len(costs))
            assert found.status == "optimal"
            assert [answer.cost for answer in found] == pytest.approx(costs)


def test_where_all_that_may_change_is_free_nothing_is_proved_before_it_is_looked_for() -> None:
    """It was "infeasible" with n = 2, as no budget lay below what the dearest cells cost, which is nothing."""
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="binary", levels=(0, 1), weight=0.0) for name in "abcdef"])
    grid = pd.DataFrame(list(itertools.product((0, 1), repeat=6)), columns=list("abcdef"))
    model = DecisionTreeClassifier(random_state=0).fit(grid, (grid.sum(axis=1) == 6).astype(int))
    found = ceopt.explain(model, dict.fromkeys("abcdef", 0), space, target=1, n=2)
    assert (found.status, len(found), found.complete) == ("optimal", 1, True)


def test_free_changes_are_told_apart() -> None:
    data = pd.DataFrame({"b": [0, 1, 2, 3] * 10})
    space = ceopt.FeatureSpace([ceopt.Feature("b", kind="categorical", levels=(0, 1, 2, 3), weight=0.0)])
    model = DecisionTreeClassifier().fit(data, data["b"] > 0)
    found = ceopt.explain(model, {"b": 0}, space, target=True, n=5)
    assert sorted(answer.values["b"] for answer in found) == [1, 2, 3]
    assert (found.status, found.complete) == ("optimal", True)
