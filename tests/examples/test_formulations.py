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
from rules.robust_to_shift import least_slack
from scipy.optimize import linprog
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

import ceopt
from ceopt import solve_people, solvers
from ceopt.formulations.predictors import ReluNetwork

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


def most_served(town: Any, model: Any, people: pd.DataFrame, budget: float, fair: float) -> float:
    """Return how many can be served: of each group the cheapest, in all numbers that are fair and within the budget."""
    good = town.POINTS[accepted(model, town.POINTS)]
    least = np.array([costs(town, row, good).min() for _, row in people.iterrows()])
    sums = []
    for is_high in (True, False):
        group = np.sort(least[((people["income"] > 4) == is_high).to_numpy()])
        sums.append(np.concatenate([[0.0], np.cumsum(group)]))
    first, second = np.meshgrid(np.arange(len(sums[0])), np.arange(len(sums[1])), indexing="ij")
    shares = first / (len(sums[0]) - 1) - second / (len(sums[1]) - 1)
    is_kept = (sums[0][first] + sums[1][second] <= budget + 1e-9) & (np.abs(shares) <= fair + 1e-9)
    return float((first + second)[is_kept].max())


@pytest.mark.parametrize("estimator", [GradientBoostingClassifier(n_estimators=8, max_depth=2), LogisticRegression()])
def test_budget_and_fairness(estimator: Any) -> None:
    town, both = example("town"), example("budget_and_fairness")
    model = town.fitted(estimator)
    people = both.drawn(model, 200)
    m = both.program(model, people)
    result = solve_people(m)
    best = most_served(town, model, people, both.BUDGET, both.FAIR)
    assert (result.status, result.objective) == ("optimal", pytest.approx(best))
    assert best < most_served(town, model, people, both.BUDGET, 1.0)  # fairness has a price
    assert result.verify()["valid"].all()
    is_high = people["income"] > 4
    few = pd.concat([people[is_high].head(2), people[~is_high].head(3)])  # as one program, with everybody's columns
    m = both.program(model, few)
    m.budget.set_value(sum(m.people.cost.values()) <= 6.0)
    assert solvers.solve(m).objective == pytest.approx(most_served(town, model, few, 6.0, both.FAIR))


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


def networks_of_the_town(town: Any, rows: Any = slice(None)) -> list[Any]:
    """Return networks of one and of two hidden layers that were fitted on some people."""
    people, wanted = town.PEOPLE[rows], town.WANTED[rows]
    options: dict[str, Any] = {"solver": "lbfgs", "alpha": 1.0, "max_iter": 5000, "random_state": 0}
    return [MLPClassifier(sizes, **options).fit(people, wanted) for sizes in [(5,), (5, 4)]]


#: Yes far from an income of 4.5, on either side: between two rows that keep the rule are some that break it.
FAR_FROM_THE_MIDDLE = ReluNetwork(
    [[[1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]], [[1.0, 1.0]]], [[-4.5, 4.5], [-2.03]], labels=("no", "yes")
)


@pytest.mark.parametrize(
    ("which", "delta", "place"),
    [("deep", 0.03, 0), ("deep", 0.1, 7), ("flat", 0.15, 12), ("middle", 0.05, 3), ("middle", 0.05, 17)],
)
def test_proplace(which: str, delta: float, place: int) -> None:
    """The worst of the box by interval arithmetic, and the hull by a linear program for each point that is robust."""
    town, proplace = example("town"), example("proplace")
    network = layers = FAR_FROM_THE_MIDDLE
    if which != "middle":
        network = networks_of_the_town(town)[which == "deep"]
        layers = ReluNetwork([w.T for w in network.coefs_], network.intercepts_, labels=("no", "yes"))
    person = town.refused(network).iloc[place]
    points = town.POINTS
    is_robust = least_slack(layers, "yes", delta, points.to_numpy(float)) > 0.0
    rows = town.PEOPLE[least_slack(layers, "yes", delta, town.PEOPLE.to_numpy(float)) > 0.0]
    near = rows.iloc[np.argsort(costs(town, person, rows), kind="stable")[:10]]
    pd.testing.assert_frame_equal(
        proplace.nearest_robust(ceopt.RobustToShift(delta, target="yes", model=network), person), near
    )
    is_near = np.array([is_mix(near.to_numpy(float), point) for point in points.to_numpy(float)])
    price = costs(town, person, points)
    best = price[is_robust & is_near].min()
    if which == "middle":  # each rule takes something
        assert price[is_near].min() < best
        assert price[is_robust].min() < best
    assert solvers.solve(proplace.program(network, person, delta)).objective == pytest.approx(best)


def is_mix(rows: Any, point: Any) -> bool:
    """Whether a point is a convex combination of rows."""
    sums = np.vstack([rows.T, np.ones(len(rows))])
    return bool(linprog(np.zeros(len(rows)), A_eq=sums, b_eq=np.append(point, 1.0)).status == 0)


@pytest.mark.parametrize("depth", [1, 2])
def test_confex(depth: int) -> None:
    """By conformal p-values: of refused people in the same leaf, and oneself, at most a tenth score as much."""
    town, confex = example("town"), example("confex")
    network = networks_of_the_town(town, slice(confex.HALF))[depth - 1]
    tree = confex.thresholds(network)
    people = town.PEOPLE[confex.HALF :][town.WANTED[confex.HALF :] == "no"]
    points = town.POINTS
    score, leaf = confex.scores(network, points), tree.apply(points)
    known, at = confex.scores(network, people), tree.apply(people)
    p_value = np.empty(len(points))
    for k in range(len(points)):
        own = known[at == leaf[k]]
        p_value[k] = (1.0 + (own >= score[k] - 1e-9).sum()) / (1.0 + len(own))
    assert len(set(at)) > 1
    sure = (p_value <= 0.1) & (score > 0.0)
    dearer = 0
    for _, person in town.refused(network).iloc[:24:4].iterrows():
        price = costs(town, person, points)
        best = price[sure].min()
        dearer += bool(price[score > 0.0].min() < best)
        assert solvers.solve(confex.program(network, tree, person)).objective == pytest.approx(best)
    assert dearer


@pytest.mark.parametrize("place", PLACES)
def test_region_by_cuts(place: int) -> None:
    town, region = example("town"), example("region_by_cuts")
    model = town.fitted(RandomForestClassifier(20, max_depth=3, random_state=0))
    person = town.refused(model).iloc[place]
    points = town.POINTS
    kept = np.ones(len(points), dtype=bool)
    for income, rooms in itertools.product((-1, 0, 1), repeat=2):
        kept &= accepted(model, points.assign(income=points["income"] + income, rooms=points["rooms"] + rooms))
    m, separate = region.program(model, person)
    result = solvers.cutting_planes(m, separate)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(costs(town, person, points)[kept].min())
    assert len(result.cuts) > 0  # the nearest answer alone is not kept


def test_each_program_is_of_at_most_25_lines() -> None:
    for path in sorted(FOLDER.glob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if "def program(" not in "\n".join(lines):
            continue
        first = next(k for k, line in enumerate(lines) if line.startswith("def program("))
        last = next(k for k in range(first + 1, len(lines)) if lines[k] and not lines[k].startswith((" ", ")")))
        body = [line for line in lines[first + 2 : last] if line.strip()]  # behind its name and its sentence
        assert len(body) <= 25, path.name
