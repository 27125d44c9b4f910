"""The examples of custom formulations, each judged by listing every point of their town."""

from __future__ import annotations

import importlib
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from ceopt import solvers

FOLDER = Path(__file__).parents[2] / "examples" / "formulations"


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    if not FOLDER.is_dir():
        pytest.skip("The examples are not beside the tests.")
    monkeypatch.syspath_prepend(str(FOLDER))


def example(name: str) -> Any:
    return importlib.import_module(name)


def costs(town: Any, start: Any, points: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Return the cost of each point from one row, by the formula of the town."""
    moves = np.abs(points[["income", "rooms", "grade", "owner"]].to_numpy(float) - np.asarray(start, dtype=float))
    return np.asarray(moves @ np.array([1.0, 1.0, 2.0, 1.0]))


def accepted(model: Any, points: pd.DataFrame) -> np.ndarray[Any, Any]:
    return np.asarray(model.predict(points) == "yes")


PLACES = [0, 7, 15]


@pytest.mark.parametrize("place", PLACES)
def test_two_models(place: int) -> None:
    town, two = example("town"), example("two_models")
    bank = town.fitted(RandomForestClassifier(7, max_depth=4, random_state=0))
    insurer = town.fitted(LogisticRegression())
    person = town.refused(insurer).iloc[place]
    best = costs(town, person, town.POINTS)[accepted(bank, town.POINTS) & accepted(insurer, town.POINTS)].min()
    assert solvers.solve(two.program(bank, insurer, person)).objective == pytest.approx(best)


@pytest.mark.parametrize("place", PLACES)
def test_two_steps(place: int) -> None:
    town, two = example("town"), example("two_steps")
    model = town.fitted(LogisticRegression())
    person = town.refused(model).iloc[place]
    points = town.POINTS
    first = costs(town, person, points)
    good = accepted(model, points)
    best = math.inf
    for k in np.flatnonzero(first <= two.EACH):
        second = costs(town, points.iloc[k], points)
        rises = points["income"].to_numpy() - points["income"].iloc[k]
        allowed = good & (second <= two.EACH) & ((rises <= 0) | (points["grade"].iloc[k] > 1))
        if allowed.any():
            best = min(best, float(first[k] + two.LATER * second[allowed].min()))
    result = solvers.solve(two.program(model, person))
    if math.isinf(best):
        assert result.status == "infeasible"
    else:
        assert result.objective == pytest.approx(best)


@pytest.mark.parametrize("place", PLACES)
def test_own_cost(place: int) -> None:
    town, own = example("town"), example("own_cost")
    model = town.fitted(GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0))
    person = town.refused(model).iloc[place]
    points = town.POINTS
    rise = points["income"] - person["income"]
    study = points["grade"] - person["grade"]
    price = np.interp(rise, own.KINKS, own.PRICES)
    total = price + own.MOVING * (points["rooms"] != person["rooms"]) + own.STUDY * study
    allowed = accepted(model, points) & (study >= 0) & (points["owner"] == person["owner"])
    result = solvers.solve(own.program(model, person))
    if not allowed.any():
        assert result.status == "infeasible"
    else:
        assert result.objective == pytest.approx(total[allowed].min())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("share", [0.6, 0.9, 1.0])
def test_bootstrapped(place: int, share: float) -> None:
    town, boot = example("town"), example("bootstrapped")
    models = boot.bootstrapped(10)
    person = town.refused(models[0]).iloc[place]
    votes = sum(accepted(model, town.POINTS).astype(int) for model in models)
    best = costs(town, person, town.POINTS)[votes >= share * len(models) - 1e-9].min()
    assert solvers.solve(boot.program(models, person, share)).objective == pytest.approx(best)


@pytest.mark.parametrize("place", PLACES)
def test_lexicographic(place: int) -> None:
    town, lexicographic = example("town"), example("lexicographic")
    model = town.fitted(RandomForestClassifier(7, max_depth=4, random_state=0))
    person = town.refused(model).iloc[place]
    points = town.POINTS
    allowed = accepted(model, points) & (costs(town, person, points) <= lexicographic.BUDGET)
    changes = (points.to_numpy() != np.asarray(person)).sum(axis=1)
    fewest = changes[allowed].min()
    share = model.predict_proba(points)[:, list(model.classes_).index("yes")]
    safest = share[allowed & (changes == fewest)].max()
    found, result = lexicographic.solve(lexicographic.program(model, person))
    assert found == pytest.approx(fewest)
    answer = result.solutions[0]
    answer.load()
    assert result.objective <= safest - 0.5 + 1e-6
    assert result.objective == pytest.approx(safest - 0.5, abs=0.08)  # ties count from the next share


def test_one_action() -> None:
    town, one = example("town"), example("one_action")
    model = town.fitted(GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0))
    people = town.refused(model).head(12)
    best = 0
    for income, grade in itertools.product(range(10), range(3)):
        if one.PRICES["income"] * income + one.PRICES["grade"] * grade > one.BUDGET:
            continue
        served = 0
        for _, row in people.iterrows():
            reach = town.POINTS[
                (town.POINTS["rooms"] == row["rooms"])
                & (town.POINTS["owner"] == row["owner"])
                & town.POINTS["income"].between(row["income"], row["income"] + income)
                & town.POINTS["grade"].between(row["grade"], row["grade"] + grade)
            ]
            served += bool(accepted(model, reach).any())
        best = max(best, served)
    assert solvers.solve(one.program(model, people)).objective == pytest.approx(best)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_nearest_neighbour(place: int) -> None:
    town, near = example("town"), example("nearest_neighbour")
    rows, wanted = town.PEOPLE.to_numpy()[:16], town.WANTED[:16] == "yes"
    person = town.PEOPLE.iloc[int(np.flatnonzero(~wanted)[place])]
    points = town.POINTS
    squares = ((points.to_numpy()[:, None, :] - rows[None]) ** 2).sum(axis=2)
    nearer = squares[:, wanted].min(axis=1) < squares[:, ~wanted].min(axis=1)
    assert accepted_by_neighbour(rows, wanted, points[nearer]).all()
    best = costs(town, person, points)[nearer].min()
    assert solvers.solve(near.program(rows, wanted, person)).objective == pytest.approx(best)


def accepted_by_neighbour(rows: Any, wanted: Any, points: pd.DataFrame) -> Any:
    return KNeighborsClassifier(1).fit(rows, wanted).predict(points.to_numpy())


@pytest.mark.parametrize("place", PLACES)
def test_noise_cone(place: int) -> None:
    town, noise = example("town"), example("noise_cone")
    model = town.fitted(LogisticRegression())
    person = town.refused(model).iloc[place]
    points = town.POINTS
    sign = 1.0 if model.classes_[1] == "yes" else -1.0
    spread = np.zeros(len(points))
    for name, share in noise.NOISE.items():
        weight = model.coef_[0][list(points.columns).index(name)]
        spread += (noise.DEVIATIONS * share * weight * (points[name] - person[name])) ** 2
    robust = sign * model.decision_function(points) >= np.sqrt(spread) + 1e-6
    best = costs(town, person, points)[robust].min()
    assert solvers.solve(noise.program(model, person)).objective == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("least", [0.0005, 0.003, 0.008])
def test_sum_product(place: int, least: float) -> None:
    town, network = example("town"), example("sum_product")
    model = town.fitted(LogisticRegression())
    person = town.refused(model).iloc[place]
    points = town.POINTS
    nodes = json.loads(network.learned())
    likely = np.zeros(len(points))
    for share, product in zip(nodes[0]["shares"], nodes[0]["children"], strict=True):
        own = np.full(len(points), share)
        for child in nodes[product]["children"]:
            leaf = nodes[child]
            own *= np.array(leaf["shares"])[np.searchsorted(leaf["ends"], points[leaf["column"]]) - 1]
        likely = np.maximum(likely, own)
    allowed = accepted(model, points) & (likely >= least)
    result = solvers.solve(network.program(model, network.learned(), math.log(least), person))
    if not allowed.any():
        assert result.status == "infeasible"
    else:
        assert result.objective == pytest.approx(costs(town, person, points)[allowed].min())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("share", [0.2, 0.4])
def test_isolation_forest(place: int, share: float) -> None:
    town, isolation = example("town"), example("isolation_forest")
    model = town.fitted(GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0))
    forest = IsolationForest(n_estimators=7, contamination=share, random_state=0).fit(town.PEOPLE)
    person = town.refused(model).iloc[place]
    ordinary = forest.predict(town.POINTS) == 1
    best = costs(town, person, town.POINTS)[accepted(model, town.POINTS) & ordinary].min()
    assert (forest.predict(town.POINTS) == -1).any()
    assert solvers.solve(isolation.program(model, forest, person)).objective == pytest.approx(best)


def test_each_program_is_of_at_most_25_lines() -> None:
    for path in sorted(FOLDER.glob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if "def program(" not in "\n".join(lines):
            continue
        first = next(k for k, line in enumerate(lines) if line.startswith("def program("))
        last = next(k for k in range(first + 1, len(lines)) if lines[k] and not lines[k].startswith((" ", ")")))
        body = [line for line in lines[first + 2 : last] if line.strip()]  # behind its name and its sentence
        assert len(body) <= 25, path.name
