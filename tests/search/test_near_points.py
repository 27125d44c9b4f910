"""Near points of trees: scans held against the model's own scores, bounds against all points, people against alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import ceopt
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.space.reachable import reach_of
from ceopt.search import near_points
from ceopt.search.near_points import NearSearch, _NearPeople
from ceopt.search.prepare import Prepared, prepare
from ceopt.settings import Settings

LEVELS = ("p", "q", "r", "s")


def space_of(*, missing: bool) -> ceopt.FeatureSpace:
    return ceopt.FeatureSpace(
        [
            ceopt.Feature("a", kind="continuous", lower=0.0, upper=9.0, missing=missing),
            ceopt.Feature("b", kind="integer", lower=-9, upper=4, codes=(-9, -8), fill=0.7),
            ceopt.Feature("c", kind="continuous", lower=-1.0, upper=1.0, direction="increasing"),
            ceopt.Feature("d", kind="integer", lower=0, upper=3, missing="may_vanish" if missing else False, fill=0.4),
            ceopt.Feature("e", kind="categorical", levels=LEVELS),
        ]
    )


def rows(count: int, seed: int, *, missing: bool) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "a": rng.uniform(0.0, 6.0, count).round(0),
            "b": rng.choice([-9, -8, -1, 0, 2, 4], count),
            "c": rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], count),
            "d": rng.integers(0, 4, count).astype(float),
            "e": rng.choice(LEVELS, count),
        }
    )
    if missing:
        data.loc[rng.uniform(size=count) < 0.2, "a"] = np.nan
        data.loc[rng.uniform(size=count) < 0.2, "d"] = np.nan
    return data


MODELS: dict[str, tuple[Any, bool, int]] = {
    "forest": (lambda seed: RandomForestClassifier(5, max_depth=4, random_state=seed), False, 2),
    "a forest of gaps": (lambda seed: RandomForestClassifier(4, max_depth=3, random_state=seed), True, 2),
    "boosting": (lambda seed: GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=seed), False, 2),
    "gaps": (lambda seed: HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=6, random_state=seed), True, 2),
    "three classes": (lambda seed: RandomForestClassifier(4, max_depth=4, random_state=seed), False, 3),
}


def asked(kind: str, seed: int, rules: Any = ()) -> tuple[Prepared, Any, pd.DataFrame]:
    make, missing, classes = MODELS[kind]
    data = rows(200, seed, missing=missing)
    filled = data.fillna(4.0)
    score = filled["a"] - filled["b"] * filled["c"] + filled["d"] + 2.0 * (filled["e"] == "q") - filled["e"].eq("s")
    y = np.digitize(score, np.quantile(score, [0.6, 0.8][: classes - 1]))
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["e"]), remainder="passthrough")
    model = make_pipeline(encoder, make(seed)).fit(data, y)
    prepared = prepare(
        model, space_of(missing=missing), Settings(target=1, constraints=rules, cost="l1", proof=False), data=data
    )
    return prepared, model, data


def people_of(prepared: Prepared, data: pd.DataFrame, count: int) -> list[Any]:
    factuals = [prepared.space.row(data.iloc[[i]]) for i in range(len(data))]
    away = prepared.slacks(prepared.space.coordinates(data)) < 0.0
    factuals = list(itertools.compress(factuals, away.tolist()))[:count]
    return [(factual, reach_of(prepared.space, factual)) for factual in factuals]


@pytest.mark.parametrize("kind", MODELS)
def test_a_scan_gives_the_slack_of_every_change(kind: str) -> None:
    prepared, _, data = asked(kind, 1)
    search = NearSearch.of(prepared)
    assert search is not None
    group = _NearPeople(search, people_of(prepared, data, 4))
    group.look_within(np.full(4, np.inf))
    rng = np.random.default_rng(0)
    for who in range(4):
        states = group.home[[who]].copy()
        for j in rng.permutation(states.shape[1])[:2]:
            there = np.flatnonzero(np.isfinite(group.prices[who][search.column_of == j]))
            states[0, j] = rng.choice(there)
        places = np.flatnonzero(np.isfinite(group.prices[who]))
        owners = np.full(len(places), who)
        points = group.coordinates(owners, group.changed(owners, np.repeat(states, len(places), 0), places))
        found = group.scanner.slacks(states)[0, places]
        slacks = prepared.slacks(points)
        assert np.allclose(found, slacks, rtol=0.0, atol=2e-8)
        assert (np.abs(found) > 1e-6).any()


@pytest.mark.parametrize("rules", [(), (ceopt.MaxChanges(2),)], ids=["no rule", "MaxChanges"])
@pytest.mark.parametrize("kind", MODELS)
def test_rows_are_brought_home_as_far_as_model_and_rules_let(kind: str, rules: Any) -> None:
    """Each point that is met is favoured and keeps the rules, and the cheapest can take none of its changes back."""
    prepared, model, data = asked(kind, 2, rules)
    search = NearSearch.of(prepared)
    assert search is not None
    people = people_of(prepared, data, 5)
    group = _NearPeople(search, people)
    group.look_within(np.full(len(people), np.inf))
    group.bring_rows_home(np.arange(len(people)))
    met = 0
    for i in range(len(people)):
        who = np.array([i])
        for state in group.cheapest(i, None):
            points = group.coordinates(who, state[None])
            assert (
                model.predict(prepared.space.frame([dict(zip(prepared.space.names, points[0], strict=True))])) == 1
            ).all()
            assert group.keeps_rules(who, state[None]).all()
        for state in group.cheapest(i, 1):
            met += 1
            changed = np.flatnonzero(state != group.home[i])
            back = np.repeat(state[None], len(changed), axis=0)
            back[np.arange(len(changed)), changed] = group.home[i, changed]
            owners = np.full(len(changed), i)
            good = group.is_favoured(owners, back, np.zeros(len(changed))) & group.keeps_rules(owners, back)
            assert not good.any()
    assert met


@pytest.mark.parametrize("proof", [True, False])
def test_very_many_leaves_are_answered_as_few_are(monkeypatch: pytest.MonkeyPatch, proof: bool) -> None:
    """Rows first, fewer climbs and fewer leaves to look at: the same proof, and near answers that cost hardly more."""
    X = rows(300, 5, missing=False).drop(columns="e")
    y = np.where(X["a"] - X["b"] * X["c"] + X["d"] > 6.0, "yes", "no")
    model = RandomForestClassifier(15, random_state=0).fit(X, y)
    space = ceopt.FeatureSpace([space_of(missing=False)[name] for name in X])
    asked_ = ceopt.Recourse(model, space, target="yes", proof=proof).fit(X)
    people = X[model.predict(X) == "no"].head(12)
    few = asked_.explain(people)
    monkeypatch.setattr(near_points, "_MANY_LEAVES", 0)
    monkeypatch.setattr(near_points, "_RUNS_CLIMBED", 0)
    monkeypatch.setattr(near_points, "_FEWER", 1.0)
    many = asked_.explain(people)
    costs = np.array([[result[0].cost for result in cohort] for cohort in (few, many)])
    assert [str(result.status) for result in many] == [str(result.status) for result in few] or not proof
    assert costs[1] == pytest.approx(costs[0], rel=1e-6 if proof else 0.2)


def test_ties_of_a_forest_are_the_same_whoever_is_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others' leaves leave a rounding of 1e-17 where the votes tie, and once a climb went on from what was below 0."""
    monkeypatch.setitem(MODELS, "full", (lambda seed: RandomForestClassifier(10, random_state=seed), False, 2))
    for seed in (3, 4, 5):
        prepared, _, data = asked("full", seed)
        search = NearSearch.of(prepared)
        assert search is not None
        people = people_of(prepared, data, 40)
        alone = [search.run([person])[0] for person in people]
        search.width = len(people)

        assert all(np.array_equal(a.points, b.points) for a, b in zip(alone, search.run(people), strict=True))


@pytest.mark.parametrize("rules", [(), [ceopt.MaxChanges(2)]], ids=["no rule", "two changes"])
@pytest.mark.parametrize("kind", MODELS)
def test_points_are_answers_and_bounds_are_those_of_all_points(kind: str, rules: Any) -> None:
    answered = optimal = 0
    for seed in range(2):
        prepared, _, data = asked(kind, seed, rules)
        search = NearSearch.of(prepared)
        assert search is not None
        people = people_of(prepared, data, 3)
        cost = prepared.settings.cost
        for (factual, _), met, (alone,) in zip(
            people, search.run(people), map(search.run, [[one] for one in people]), strict=True
        ):
            assert np.array_equal(met.points, alone.points)
            assert met.bound == alone.bound
            group = _NearPeople(search, [(factual, reach_of(prepared.space, factual))])
            cells = [
                np.flatnonzero(np.isfinite(group.prices[0][search.column_of == j])).tolist()
                for j in range(group.home.shape[1])
            ]
            states = np.array(list(itertools.product(*cells)))
            who = np.zeros(len(states), dtype=np.intp)
            points = group.coordinates(who, states)
            good = prepared.slacks(points) >= 0.0
            costs = cost.objectives(prepared.space, factual, points)
            assert met.bound <= np.where(good, costs, np.inf).min() * (1.0 + 1e-9)
            if rules:
                good &= (states != group.home[0]).sum(axis=1) <= 2
            best = np.where(good, costs, np.inf).min()
            assert np.isfinite(best) or not len(met.points)
            if len(met.points):
                answered += 1
                own = cost.objectives(prepared.space, factual, met.points)
                assert (np.diff(own) >= 0.0).all()
                assert (prepared.slacks(met.points) >= 0.0).all()
                assert own[0] >= best * (1.0 - 1e-9)
                optimal += own[0] <= best * (1.0 + 1e-9)
    assert answered >= 4
    assert optimal >= 0.7 * answered


def test_a_cohort_without_proof_answers_as_each_does_alone() -> None:
    prepared, model, data = asked("boosting", 3)
    away = data[model.predict(data) != 1].head(6)
    recourse = ceopt.Recourse(model, prepared.space, target=1, cost="l1", proof=False).fit(data)
    for i, together in enumerate(recourse.explain(away)):
        alone = ceopt.explain(model, away.iloc[[i]], prepared.space, target=1, cost="l1", proof=False, data=data)
        assert together.status == alone.status
        assert [answer.cost for answer in together] == [answer.cost for answer in alone]
        assert together.bound == alone.bound
        if len(alone):
            assert alone[0].verified
            pd.testing.assert_frame_equal(together.to_frame(), alone.to_frame(), check_index_type=False)


def test_trees_of_one_leaf_are_scanned_too() -> None:
    """No leaf tests a column, so that no change of one changes a sum."""
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=-9, upper=9) for name in "ab"])
    one = TreeEnsemble([{"value": 1.0}], labels=(0, 1), probability="logistic")
    prepared = prepare(one, space, Settings(target=1))
    search = NearSearch.of(prepared)
    assert search is not None
    factual = {"a": 0.0, "b": 0.0}
    group = _NearPeople(search, [(factual, reach_of(space, factual))])
    group.look_within(np.array([np.inf]))
    slacks = group.scanner.slacks(group.home)
    assert np.isfinite(slacks).all()
    assert (slacks == slacks[0, 0]).all()


def test_several_changes_are_made_for_one_that_is_taken_back() -> None:
    rng = np.random.default_rng(5)
    names = list("abcdefgh")
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=-3.0, upper=3.0) for name in names])
    data = pd.DataFrame(rng.normal(size=(300, 8)).clip(-3.0, 3.0).round(1), columns=names)
    inside = ((data**2).sum(axis=1) < 5.0).astype(int)
    model = RandomForestClassifier(12, random_state=0).fit(data, inside)
    person = data[model.predict(data) == 0].iloc[[3]]
    near = ceopt.explain(model, person, space, target=1, data=data, proof=False)
    assert near[0].cost == pytest.approx(0.26667, abs=1e-4)  # .325 where one change at a time is made
