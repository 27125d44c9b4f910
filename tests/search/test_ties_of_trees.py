"""Trees decide on ties too: the cheapest cell that ``predict`` accepts is the answer, and everything agrees on it."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

import ceopt
from ceopt.diverse import exhaustive
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.readers.sklearn.trees import adds_in_order
from ceopt.formulations.recourse_program import recourse_program
from ceopt.search.solve_program import ProgramSolver
from ceopt.solvers import solve

PLAIN = ceopt.L1(scale="none")
NAMES = ["a", "b", "c"]
TOP = 4
LATTICE = pd.DataFrame(list(itertools.product(range(TOP + 1), repeat=3)), columns=NAMES)
SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=TOP) for name in NAMES])


def data(seed: int, classes: int | None, rows: int = 25) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """A few rows of small whole numbers, on which trees of few leaves often tie; classes, or rounded values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, TOP + 1, size=(rows, 3)), columns=NAMES)
    value = frame.to_numpy() @ np.array([1.0, -1.5, 0.7]) + rng.normal(size=rows)
    if classes is None:
        return frame, np.round(value)
    return frame, np.digitize(value, np.quantile(value, np.linspace(0, 1, classes + 1)[1:-1]))


def least(model: Any, place: int, good: np.ndarray[Any, Any]) -> float | None:
    """The cost of the cheapest lattice point that is good, for one that stands on a lattice point."""
    costs = np.abs(LATTICE.to_numpy() - LATTICE.to_numpy()[place]).sum(axis=1)
    return float(costs[good].min()) if good.any() else None


def assert_agrees(model: Any, place: int, target: Any, good: np.ndarray[Any, Any], **options: Any) -> None:
    """``explain`` and ``verify`` say what the library's own predictions on the whole lattice say."""
    row, best = LATTICE.iloc[place].to_dict(), least(model, place, good)
    result = ceopt.explain(model, row, SPACE, target=target, cost=PLAIN, **options)
    if best is None:
        assert result.status == "infeasible"
    elif best == 0.0:
        assert result.status == "already_favourable"
    else:
        assert (result.status, result[0].cost) == ("optimal", pytest.approx(best)), result.reason
        assert result.bound == pytest.approx(best)
        assert ceopt.verify(result, model, SPACE, target=target).ok


# ---- regressors ------------------------------------------------------------------------------------------------------
def test_the_greatest_value_of_a_tree_is_within_reach_and_a_value_on_the_target_is_an_answer():
    people = pd.DataFrame({"a": np.arange(1.0, 7.0)})
    model = DecisionTreeRegressor(random_state=0).fit(people, people["a"])
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", lower=0, upper=9)])
    for value in range(2, 7):
        result = ceopt.explain(model, {"a": 1}, space, target=ceopt.AtLeast(value), cost=PLAIN)
        assert (result.status, result[0].values["a"]) == ("optimal", value)
    result = ceopt.explain(model, {"a": 6}, space, target=ceopt.Between(3, 3), cost=PLAIN)
    assert (result.status, result[0].values["a"]) == ("optimal", 3)
    assert ceopt.explain(model, {"a": 1}, space, target=ceopt.AtLeast(6 + 1e-12)).status == "infeasible"


# ---- every kind of model ---------------------------------------------------------------------------------------------
def forest(seed: int, **options: Any) -> RandomForestClassifier:
    return RandomForestClassifier(**{"n_estimators": 10, "random_state": seed, **options})


CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "tree": lambda seed: DecisionTreeClassifier(max_depth=2, random_state=seed),
    "forest of pure leaves": forest,
    "forest of shares": lambda seed: forest(seed, max_depth=2, min_samples_leaf=3),
    "extra trees": lambda seed: ExtraTreesClassifier(10, random_state=seed),
    "extra trees of thirds": lambda seed: ExtraTreesClassifier(8, min_samples_leaf=3, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=3, random_state=seed),
    "histograms": lambda seed: HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2, random_state=seed),
    "xgboost": lambda seed: XGBClassifier(n_estimators=4, max_depth=2, random_state=seed, n_jobs=1),
    "adaboost": lambda seed: AdaBoostClassifier(n_estimators=5, random_state=seed),
    "bagging": lambda seed: BaggingClassifier(DecisionTreeClassifier(max_depth=3), 6, random_state=seed),
    "bagged forests": lambda seed: BaggingClassifier(forest(seed, n_estimators=3), 4, random_state=seed),
    "hard votes": lambda seed: VotingClassifier(
        [("a", forest(seed, n_estimators=4)), ("b", DecisionTreeClassifier(max_depth=1))]
    ),
    "soft votes": lambda seed: VotingClassifier(
        [("a", forest(seed, n_estimators=4)), ("b", DecisionTreeClassifier(max_depth=3))], voting="soft"
    ),
    "one against the rest": lambda seed: OneVsRestClassifier(forest(seed, n_estimators=5)),
    "pipeline": lambda seed: make_pipeline(StandardScaler(), forest(seed)),
}


#: Data on which an answer a margin away from every tie is another one.
SEEDS = {
    ("tree", 3): 2,
    ("forest of pure leaves", 3): 0,
    ("extra trees", 2): 4,
    ("extra trees", 3): 3,
    ("bagged forests", 2): 0,
}


@pytest.mark.long(every=10)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_the_cheapest_cell_that_predict_accepts_is_the_answer(kind, classes):
    seed = SEEDS.get((kind, classes), 0)
    frame, labels = data(seed, classes)
    model = CLASSIFIERS[kind](seed).fit(frame, labels)
    said = model.predict(LATTICE)
    for place, form in ((20, "auto"), (90, "misic")):
        wanted = (int(said[place]) + seed % 2 + 1) % classes
        assert_agrees(model, place, wanted, said == wanted, formulation=form)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    "kind", ["tree", "forest of pure leaves", "forest of shares", "boosting", "xgboost", "bagging"]
)
def test_a_probability_that_the_model_gives_exactly_is_reached(kind):
    frame, labels = data(3, 2)
    model = CLASSIFIERS[kind](3).fit(frame, labels)
    shares = model.predict_proba(LATTICE)
    for position in (0, 1):
        levels = np.unique(shares[:, position])
        level = float(levels[len(levels) // 2])
        if 0.0 < level < 1.0:
            assert_agrees(model, 11, ceopt.Probability(position, level), shares[:, position] >= level)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeRegressor(max_depth=3),
        RandomForestRegressor(6, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(max_depth=3), 9, random_state=0),
        VotingRegressor([("a", RandomForestRegressor(3, random_state=0)), ("b", DecisionTreeRegressor())]),
        XGBRegressor(n_estimators=5, max_depth=2, n_jobs=1),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_value_that_the_model_gives_exactly_is_reached(estimator):
    frame, values = data(4, None)
    model = estimator.fit(frame, values)
    said = model.predict(LATTICE)
    high, low = float(np.quantile(said, 0.8, method="lower")), float(np.quantile(said, 0.2, method="lower"))
    place = int(np.argsort(said)[len(said) // 2])
    assert_agrees(model, place, ceopt.AtLeast(high), said >= high)
    assert_agrees(model, place, ceopt.AtMost(low), said <= low)
    assert_agrees(model, place, ceopt.Between(low, low), said == low)


# ---- how many solves that takes --------------------------------------------------------------------------------------
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    solves: list[int] = []
    run = ProgramSolver.run
    monkeypatch.setattr(ProgramSolver, "run", lambda self, *a: (solves.append(1), run(self, *a))[1])
    return solves


@pytest.mark.usefixtures("by_program")
def test_ties_of_counted_trees_take_one_solve(monkeypatch):
    # 252 ways in which five of ten trees say 1, all of which lose: the first label wins ties.
    step = {"threshold": 0.5, "left": {"value": [1.0, 0.0]}, "right": {"value": [0.0, 1.0]}}
    model = TreeEnsemble([{"feature": j, **step} for j in range(10)], divisor=10, labels=(0, 1), probability="share")
    space = ceopt.FeatureSpace([ceopt.Feature(f"x{j}", kind="integer", lower=0, upper=1) for j in range(10)])
    solves = counted(monkeypatch)
    home = dict.fromkeys(space.names, 0)
    result = ceopt.explain(model, home, space, target=1, cost=PLAIN)
    assert (result.status, result[0].cost, len(solves)) == ("optimal", 6.0, 1)
    result = ceopt.explain(model, dict.fromkeys(space.names, 1), space, target=0, cost=PLAIN)
    assert (result.status, result[0].cost, len(solves)) == ("optimal", 5.0, 2)


@pytest.mark.parametrize(("wanted", "least"), [(1, 7.0), (0, 6.0)])
def test_ties_of_a_soft_vote_over_counted_trees_take_one_solve(monkeypatch, wanted, least):
    # 924 ways in which six of twelve trees say 1: (k1 / 6 + k2 / 6) / 2 is 1/2 in floats whatever k1 is.
    names = [f"x{j}" for j in range(12)]
    ends = pd.DataFrame(np.repeat([[0], [1]], 12, axis=1), columns=names)

    def of_stumps(first: int) -> RandomForestClassifier:
        model = forest(0, n_estimators=6, bootstrap=False).fit(ends, [0, 1])
        model.estimators_ = [
            DecisionTreeClassifier().fit(np.eye(12)[[j, j]] * [[0.0], [1.0]], [0, 1]) for j in range(first, first + 6)
        ]
        return model

    model = VotingClassifier([("a", forest(0)), ("b", forest(1))], voting="soft").fit(ends, [0, 1])
    model.estimators_ = [of_stumps(0), of_stumps(6)]
    model.named_estimators_ = dict(zip("ab", model.estimators_, strict=True))
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=1) for name in names])
    solves = counted(monkeypatch)
    result = ceopt.explain(model, dict.fromkeys(names, 1 - wanted), space, target=wanted, cost=PLAIN)
    assert (result.status, result[0].cost, len(solves)) == ("optimal", least, 1)


def test_ties_that_floats_decide_are_asked_and_left_out_for_good(monkeypatch):
    # 0.1 + 0.2 is above 0.3, and 0.3 alone is not: one of two cells of the same sum meets "above 0.3".
    def stump(j: int, value: float) -> dict[str, Any]:
        return {"feature": j, "threshold": 0.5, "left": {"value": 0.0}, "right": {"value": value}}

    above = float(np.nextafter(0.3, 1))
    model = TreeEnsemble([stump(0, 0.1), stump(1, 0.2), stump(2, 0.3)])
    names = ["x0", "x1", "x2"]
    space = ceopt.FeatureSpace(
        [ceopt.Feature(n, kind="integer", lower=0, upper=1, weight=w) for n, w in zip(names, (1, 1, 1.5), strict=True)]
    )
    solves = counted(monkeypatch)
    home = dict.fromkeys(names, 0)
    result = ceopt.explain(model, home, space, target=ceopt.AtLeast(above), cost=PLAIN, n=3, diversity="pool")
    assert [answer.cost for answer in result] == [2.0, 2.5, 2.5]
    assert result.status == "optimal"
    assert len(solves) <= 4
    assert all(model.score([[answer.values[n] for n in names]])[0] >= above for answer in result)


# ---- the parts beside explain ----------------------------------------------------------------------------------------
def test_the_bare_program_holds_what_predict_decides():
    frame, labels = data(5, 2)
    model = forest(5, n_estimators=4).fit(frame, labels)
    said = model.predict(LATTICE)
    for wanted in (0, 1):
        for place in np.flatnonzero(said != wanted)[::17].tolist():
            program = recourse_program(read(model, SPACE), LATTICE.iloc[[place]], target=wanted, cost=PLAIN)
            solve(program.model)
            point = pd.DataFrame([program.x.decoded()])[NAMES]
            assert model.predict(point)[0] == wanted
            assert PLAIN.value(SPACE, LATTICE.iloc[place].to_dict(), point.iloc[0].to_dict()) == least(
                model, place, said == wanted
            )


def test_exhaustive_begins_where_explain_does_and_has_every_tie_that_wins():
    frame, labels = data(6, 2)
    model = forest(6, n_estimators=4, max_depth=2, min_samples_leaf=3).fit(frame, labels)
    said = model.predict(LATTICE)
    place = int(np.flatnonzero(said == 1)[3])
    found = exhaustive(model, LATTICE.iloc[place].to_dict(), SPACE, target=0, epsilon=1.0, cost=PLAIN, time_limit_s=30)
    best = least(model, place, said == 0)
    assert found.complete
    assert found[0].cost == best
    costs = np.abs(LATTICE.to_numpy() - LATTICE.to_numpy()[place]).sum(axis=1)
    wanted = model.predict(pd.DataFrame([answer.values for answer in found])[NAMES])
    assert set(wanted.tolist()) == {0}
    cells = {tuple(model.apply(answer.frame)[0].tolist()) for answer in found}
    assert {tuple(leaves) for leaves in model.apply(LATTICE[(said == 0) & (costs <= best + 1.0)]).tolist()} == cells


def test_a_rule_that_leaves_only_a_tie_is_no_conflict_where_the_tie_wins_and_one_where_it_loses():
    # Beyond a = 1 the trees say 1/2 and 1/2, and the first label wins.
    people = pd.DataFrame({"a": np.arange(4)})
    model = forest(0, n_estimators=2, max_depth=1, bootstrap=False).fit(people, [0, 0, 1, 1])
    model.estimators_[0] = DecisionTreeClassifier().fit(people.to_numpy(), [0, 1, 1, 1])
    assert model.predict(people).tolist() == [0, 0, 1, 1]
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", lower=0, upper=3)])
    near = [ceopt.formulations.constraints.Linear({"a": 1}, "<=", 1)]
    lost = ceopt.explain(model, {"a": 0}, space, target=1, constraints=near)
    assert lost.status == "infeasible"
    assert [width for _, _, width in lost.conflict] == [1.0]
    far = [ceopt.formulations.constraints.Linear({"a": 1}, ">=", 1)]
    won = ceopt.explain(model, {"a": 3}, space, target=0, constraints=far, cost=PLAIN)
    assert (won.status, won[0].values["a"]) == ("optimal", 1)


# ---- jobs ------------------------------------------------------------------------------------------------------------
def test_a_forest_that_adds_in_several_jobs_is_answered_clear_of_a_tie():
    people = pd.DataFrame({"a": np.arange(4)})
    model = forest(0, n_estimators=2, max_depth=1, bootstrap=False).fit(people, [0, 0, 1, 1])
    model.estimators_[0] = DecisionTreeClassifier().fit(people.to_numpy(), [0, 1, 1, 1])
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", lower=0, upper=3)])

    def value(**options: Any) -> Any:
        return ceopt.explain(model.set_params(**options), {"a": 3}, space, target=0, cost=PLAIN)[0].values["a"]

    assert [value(n_jobs=jobs) for jobs in (None, 1, 2)] == [1, 1, 0]
    on_a_tie = ceopt.explain(model, {"a": 1}, space, target=0, cost=PLAIN)
    assert (on_a_tie.status, on_a_tie[0].values["a"]) == ("optimal", 0)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert value(n_jobs=None) == 0


@pytest.mark.long
def test_a_worker_process_answers_as_any_other_does():
    # There joblib starts nothing, and a forest adds in order; where its answers are used it may not.
    frame, labels = data(7, 2)
    forests = [forest(0, n_jobs=jobs).fit(frame, labels) for jobs in (None, 1, 2)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # its workers are daemons
        assert pool.map(adds_in_order, forests) == [True, True, False]


@pytest.mark.long
def test_jobs_are_counted_as_joblib_counts_them_however_deep_the_forest_is():
    frame, labels = data(7, 2)
    one, two = forest(0), forest(0, n_jobs=2)
    assert adds_in_order(one.fit(frame, labels))
    assert not adds_in_order(two.fit(frame, labels))
    assert adds_in_order(forest(0, n_estimators=1, n_jobs=2).fit(frame, labels))
    for whole in (
        lambda part: make_pipeline(StandardScaler(), part),
        lambda part: VotingClassifier([("a", part)]),
        OneVsRestClassifier,
        lambda part: BaggingClassifier(part, 2),
    ):
        assert adds_in_order(whole(one).fit(frame, labels))
        assert not adds_in_order(whole(two).fit(frame, labels))
    # Members are asked in order, however many jobs ask them.
    assert adds_in_order(VotingClassifier([("a", one)], n_jobs=2).fit(frame, labels))


@pytest.mark.parametrize("seed", range(6))
def test_an_attained_probability_of_the_first_label_is_met_to_the_last_bit(seed):
    """The library gives the first label 1 - p, which is not expit(-s) in floats."""
    frame = pd.DataFrame({"a": np.arange(8)})
    labels = np.random.default_rng(seed).integers(0, 2, 8)
    model = GradientBoostingClassifier(init="zero", learning_rate=1.0, max_depth=2, n_estimators=1).fit(frame, labels)
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", lower=0, upper=7, mad=1.0)])
    first = model.predict_proba(frame)[:, 0]

    for level in np.unique(first).tolist():
        found = ceopt.explain(model, {"a": 3}, space, target=ceopt.Probability(0, level))
        least = int(np.abs(np.flatnonzero(first >= level) - 3).min())
        if least:
            assert (found.status, found[0].cost) == ("optimal", least)
        else:
            assert found.status == "already_favourable"
