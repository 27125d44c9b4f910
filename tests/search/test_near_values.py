"""Near points of linear models and networks: scans held against the model's own scores, answers against programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.formulations.space.reachable import reach_of
from ceopt.search.near_values import NearValues, _ValuePeople
from ceopt.search.prepare import Prepared, prepare
from ceopt.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("a", kind="continuous", lower=0.0, upper=9.0),
        ceopt.Feature("b", kind="integer", lower=-9, upper=4, codes=(-9, -8), fill=0.7, codes_in_reach=True),
        ceopt.Feature("c", kind="continuous", lower=-1.0, upper=1.0, direction="increasing"),
        ceopt.Feature("d", kind="ordinal", levels=(0, 1, 2, 3)),
        ceopt.Feature("e", kind="categorical", levels=("p", "q", "r")),
        ceopt.Feature("f", kind="continuous", lower=-9.0, upper=9.0, step=0.25, max_up=2.0),
    ]
)


def rows(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.uniform(0.0, 6.0, count).round(1),
            "b": rng.choice([-9, -8, -1, 0, 2, 4], count),
            "c": rng.uniform(-1.0, 1.0, count).round(2),
            "d": rng.integers(0, 4, count),
            "e": rng.choice(["p", "q", "r"], count),
            "f": rng.choice([-1.0, 0.0, 0.5, 3.25], count),
        }
    )


def network(make: Any, seed: int) -> Any:
    return make(hidden_layer_sizes=(6, 5), max_iter=300, random_state=seed, solver="lbfgs")


MODELS: dict[str, tuple[Any, Any]] = {
    "logistic": (lambda _: LogisticRegression(max_iter=500), 1),
    "three classes": (lambda _: LogisticRegression(max_iter=500), 2),
    "network": (lambda seed: network(MLPClassifier, seed), 1),
    "forest": (lambda seed: RandomForestClassifier(8, max_depth=3, random_state=seed), 1),
    "network of three classes": (lambda seed: network(MLPClassifier, seed), 2),
    "mean of two": (
        lambda seed: VotingRegressor([("l", LinearRegression()), ("n", network(MLPRegressor, seed))]),
        ceopt.Between(7.0, 8.0),
    ),
}


def asked(kind: str, seed: int, rules: Any = (), **words: Any) -> tuple[Prepared, Any, pd.DataFrame]:
    make, target = MODELS[kind]
    data = rows(200, seed)
    y = data["a"] - 0.3 * data["b"] * data["c"] + data["d"] + 2.0 * data["e"].eq("q") + 0.5 * data["f"]
    if isinstance(target, int):
        y = np.digitize(y, np.quantile(y, (0.5, 0.8)[:target]))
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["e"]), remainder=StandardScaler())
    model = make_pipeline(encoder, make(seed)).fit(data, y)
    settings = Settings(target=target, constraints=rules, proof=False, **words)
    return prepare(model, SPACE, settings, data=data), model, data


def people_of(prepared: Prepared, data: pd.DataFrame, count: int) -> list[Any]:
    away = prepared.slacks(prepared.space.coordinates(data)) < 0.0
    some = [prepared.space.row(data.iloc[[i]]) for i in np.flatnonzero(away)[:count]]
    return [(factual, reach_of(prepared.space, factual)) for factual in some]


@pytest.mark.parametrize("kind", MODELS)
def test_a_scan_gives_the_slack_of_every_change(kind: str) -> None:
    prepared, _, data = asked(kind, 1)
    search = NearValues(prepared)
    people = people_of(prepared, data, 3)
    group = _ValuePeople(search, people)
    rng = np.random.default_rng(0)
    for i in range(3):
        who = np.array([i])
        places = np.flatnonzero(np.isfinite(group.prices[i]))
        states = group.changed(who, group.home[who], rng.choice(places, 1))
        found, own = group.scan(who, states, np.isfinite(group.prices[who]))
        points = group.changed(np.repeat(who, len(places)), np.repeat(states, len(places), axis=0), places)
        need = group.need[i]
        assert np.allclose(found[0, places] + need, prepared.slacks(points), rtol=1e-9, atol=1e-9)
        assert np.allclose(own + need, prepared.slacks(states), rtol=1e-9, atol=1e-9)
        objectives = prepared.settings.cost.objectives(SPACE, people[i][0], points)
        assert np.allclose(group.after(who, states)[0, places], objectives)
        assert np.allclose(group.each(np.repeat(who, len(points)), points).sum(axis=1), objectives)
        for place, point in zip(places, points, strict=True):
            name = SPACE.names[group.column_of[place]]
            assert people[i][1][name].holds(point[group.column_of[place]])


@pytest.mark.parametrize("rules", [(), [ceopt.MaxChanges(2)]], ids=["no rule", "two changes"])
@pytest.mark.parametrize("kind", MODELS)
def test_points_are_answers_that_cost_little_more_than_the_cheapest(kind: str, rules: Any) -> None:
    prepared, model, data = asked(kind, 0, rules)
    search = NearValues(prepared)
    people = people_of(prepared, data, 4)
    cost = prepared.settings.cost
    excess = []
    for (factual, reach), met, (alone,) in zip(
        people, search.run(people), map(search.run, [[one] for one in people]), strict=True
    ):
        assert np.array_equal(met.points, alone.points)
        proved = ceopt.explain(
            model, SPACE.frame([factual]), SPACE, target=MODELS[kind][1], constraints=rules, data=data
        )
        assert bool(len(met.points)) == bool(len(proved))
        if not len(proved):
            continue
        assert (prepared.slacks(met.points) >= 0.0).all()
        assert (np.diff(cost.objectives(SPACE, factual, met.points)) > 0.0).all()
        for point in met.points.tolist():
            assert all(reach[name].holds(value) for name, value in zip(SPACE.names, point, strict=True))
            if rules:
                assert sum(value != factual[name] for name, value in zip(SPACE.names, point, strict=True)) <= 2
        own = cost.value(SPACE, factual, dict(zip(SPACE.names, met.points[0].tolist(), strict=True)))
        excess.append(own / proved[0].cost - 1.0)
    assert min(excess) > -1e-6
    assert np.median(excess) < 0.1
    assert max(excess) < 0.5


@pytest.mark.parametrize("kind", ["network", "forest"])
@pytest.mark.parametrize(
    "cost", ["l1", "l0", "linf", ceopt.L1() + 0.1 * ceopt.Changes()], ids=["l1", "l0", "linf", "sum"]
)
def test_other_costs_are_searched_too(cost: Any, kind: str) -> None:
    prepared, _, data = asked(kind, 3, cost=cost)
    search = NearValues(prepared)
    for (factual, _), met in zip(people_of(prepared, data, 4), search.run(people_of(prepared, data, 4)), strict=True):
        assert len(met.points)
        own = prepared.settings.cost.objectives(SPACE, factual, met.points)
        assert (np.diff(own) >= 0.0).all()
        assert (prepared.slacks(met.points) >= 0.0).all()


def test_a_margin_of_the_users_own_is_kept() -> None:
    prepared, _, data = asked("network", 2, margin=0.3)
    search = NearValues(prepared)
    slacks = [prepared.slacks(met.points[:1]) for met in search.run(people_of(prepared, data, 5))]
    assert min(slacks)[0] >= 0.3
    assert min(slacks)[0] < 0.300001


@pytest.mark.parametrize("kind", ["network", "three classes", "mean of two"])
def test_a_cohort_without_proof_answers_as_each_does_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = NearValues.run
    counts: list[int] = []
    monkeypatch.setattr(
        NearValues, "run", lambda search, people, *rest: counts.append(len(people)) or run(search, people, *rest)
    )
    prepared, model, data = asked(kind, 3)
    away = data[prepared.slacks(SPACE.coordinates(data)) < 0.0].head(5)
    recourse = ceopt.Recourse(model, SPACE, target=MODELS[kind][1], proof=False).fit(data)
    found = list(recourse.explain(away))
    assert counts == ([1] * 5 if kind == "mean of two" else [5])  # of which points are counted
    for i, together in enumerate(found):
        alone = ceopt.explain(model, away.iloc[[i]], SPACE, target=MODELS[kind][1], proof=False, data=data)
        assert together.status == alone.status
        assert [answer.cost for answer in together] == [answer.cost for answer in alone]
        assert together.bound == alone.bound
        assert alone[0].verified
        assert alone[0].cost >= alone.bound
    assert {row.status.value for row in found} <= {"feasible", "optimal"}


def test_what_shows_one_point_to_be_outside_a_hull_spares_asking_about_others() -> None:
    """Of half of these people 80 small programs found no start: the same points were asked about by every climb."""
    bunch = ceopt.datasets.loans(700, 0)
    data = bunch.data.select_dtypes("number")
    labels = bunch.target == bunch.favourable
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(data, labels)
    space = ceopt.FeatureSpace.infer(data, moves=dict.fromkeys(data, "any"))
    cost = ceopt.L2(scale="range", squared=True) + 10_000 * ceopt.Changes()
    hull = ceopt.Hull(data[labels].head(200), radius=0.1)
    prepared = prepare(model, space, Settings(target=True, cost=cost, constraints=[hull]), data=None)
    away = data[~model.predict(data)].head(8)
    people = [(space.row(away.iloc[[i]]), reach_of(space, space.row(away.iloc[[i]]))) for i in range(len(away))]
    assert sum(len(met.points) > 0 for met in NearValues(prepared).run(people)) >= 7
