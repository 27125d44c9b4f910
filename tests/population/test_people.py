"""Several people in one program: equal to enumeration, asked alone or as one, and what is said where it fails."""

from __future__ import annotations

import functools
import itertools
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from pyomo.core.expr import identify_variables
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import ceopt
import ceopt.people
from ceopt.formulations import People, shared_budget
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.problem import Stop

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="integer", lower=0, upper=5, weight=0.7),
        ceopt.Feature("debt", kind="continuous", lower=0.0, upper=4.0, step=0.5, weight=1.3, direction="decreasing"),
        ceopt.Feature("grade", kind="ordinal", levels=("low", "mid", "high"), weight=1.1),
        ceopt.Feature("job", kind="categorical", levels=("none", "part", "full"), weight=0.9),
        ceopt.Feature("sex", kind="binary", levels=("f", "m"), mutable=False),
    ]
)
GRID = pd.DataFrame(
    list(itertools.product(range(6), np.arange(0, 4.5, 0.5), ("low", "mid", "high"), ("none", "part", "full"), "fm")),
    columns=list(SPACE.names),
)
COORDINATES = SPACE.coordinates(GRID)


@functools.cache
def fitted(kind: str, seed: int) -> Any:
    """Return a model of the grid, fitted to random weights of its coordinates, and what it says of every point."""

    rng = np.random.default_rng(seed)
    weights = np.array([1.0, -0.8, 1.2, 0.7, 0.1]) * rng.uniform(0.3, 1.5, size=5)
    score = COORDINATES @ weights + rng.normal(size=len(GRID))
    label = np.where(score > np.quantile(score, 0.6), "yes", "no")
    encode = make_column_transformer(
        ("passthrough", ["income", "debt"]),
        (OrdinalEncoder(categories=[["low", "mid", "high"]]), ["grade"]),
        (OneHotEncoder(), ["job", "sex"]),
    )
    estimator = {
        "logistic": LogisticRegression(),
        "boosting": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
        "network": MLPClassifier((3,), solver="lbfgs", random_state=0, max_iter=5000),
    }[kind]
    return make_pipeline(encode, estimator).fit(GRID, label)


def reachable(point: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return which points of the grid a person may become."""
    return np.asarray((COORDINATES[:, 4] == point[4]) & (COORDINATES[:, 1] <= point[1]))


def prices(point: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what it costs a person to become each point of the grid: a rank of three is half of the way."""
    moves = np.abs(COORDINATES - point)
    moves[:, 3] = moves[:, 3] > 0
    return np.asarray(moves @ np.array([0.7, 1.3, 1.1 / 2.0, 0.9, 1.0]))


def choices(model: Any, people: pd.DataFrame) -> list[dict[bool, list[float]]]:
    """Return, a person, the costs at which they may be served, and 0 where not; the favourable have no choice."""
    is_good = model.predict(GRID) == "yes"
    found = []
    for point, good in zip(SPACE.coordinates(people), model.predict(people) == "yes", strict=True):
        if good:
            found.append({True: [0.0]})
            continue
        served = np.unique(np.round(prices(point)[is_good & reachable(point)], 9)).tolist()
        found.append({False: [0.0], True: served})
    return found


def enumerated(options: list[dict[bool, list[float]]], is_kept: Any, objective: Any) -> float | None:
    """Return the least objective over everybody's choices; None where no choice is kept."""
    best = None
    each = [[(served, cost) for served, costs in option.items() for cost in costs] for option in options]
    for pick in itertools.product(*each):
        served = [float(one) for one, _ in pick]
        costs = [cost for _, cost in pick]
        if is_kept(served, costs):
            value = objective(served, costs)
            best = value if best is None else min(best, value)
    return best


def drawn(kind: str, seed: int, n: int) -> tuple[Any, pd.DataFrame]:
    model = fitted(kind, seed % 7)
    rows = np.random.default_rng(seed).choice(len(GRID), size=n, replace=False)
    return model, GRID.iloc[rows].set_axis([f"p{k}" for k in range(n)])


def built(model: Any, people: pd.DataFrame, **more: Any) -> Any:
    m = pyo.ConcreteModel()
    m.people = People(model, people, SPACE, target="yes", cost=ceopt.L1(scale="none"), **more)
    return m


def checked(m: Any, result: Any, model: Any, people: pd.DataFrame) -> pd.DataFrame:
    """Return the people as they become, after everything that is promised of them was checked by hand."""
    frame = result.decode()
    assert list(frame.index) == list(people.index)
    as_they_become = frame[list(SPACE.names)]
    served = frame["served"].to_numpy()
    assert (model.predict(as_they_become[served]) == "yes").all() if served.any() else True
    assert as_they_become[~served].equals(people[~served].astype(as_they_become.dtypes))
    for row, before, cost in zip(
        SPACE.coordinates(as_they_become), SPACE.coordinates(people), frame["cost"], strict=True
    ):
        place = int(np.flatnonzero((np.abs(COORDINATES - row) < 1e-9).all(axis=1))[0])
        assert reachable(before)[place]
        assert cost == pytest.approx(prices(before)[place])
    assert result.verify()["valid"].all()
    assert [bool(m.people.served[label].value) for label in people.index] == served.tolist()
    assert [m.people.cost[label].value for label in people.index] == pytest.approx(frame["cost"].tolist())
    return frame


# ---- equal to enumeration -------------------------------------------------------------------------------------------
KINDS = st.sampled_from(["logistic", "boosting"])


@example(kind="boosting", seed=233, n=3, share=0.1875, fair=False)  # an objective of 0, a bound of -2e-18
@draws(60, deadline=None)
@given(kind=KINDS, seed=st.integers(0, 10_000), n=st.integers(3, 5), share=st.floats(0.0, 1.2), fair=st.booleans())
def test_budget_and_fairness_equal_enumeration_both_ways(kind, seed, n, share, fair):
    model, people = drawn(kind, seed, n)
    options = [{served: costs[:1] for served, costs in option.items() if costs} for option in choices(model, people)]
    limit = round(share * sum(option[True][0] for option in options if True in option), 6)
    groups = [(people["sex"] == sex).to_numpy() for sex in "fm"]

    def is_kept(served, costs):
        shares = [np.dot(served, group) / max(group.sum(), 1) for group in groups]
        return sum(costs) <= limit + 1e-7 and (not fair or abs(shares[0] - shares[1]) <= 0.5 + 1e-7)

    best = enumerated(options, is_kept, lambda served, costs: 0.01 * sum(costs) - sum(served))
    for whole in (False, True):
        m = built(model, people)
        m.budget = shared_budget(m.people, limit)
        served = list(m.people.served.values())
        if fair:
            shares = [
                sum(s for s, own in zip(served, group, strict=True) if own) / max(group.sum(), 1) for group in groups
            ]
            m.fair = pyo.Constraint(expr=(-0.5, shares[0] - shares[1], 0.5))
        m.cost = pyo.Objective(expr=0.01 * sum(m.people.cost.values()) - sum(served))
        if whole:
            first = people.index[0]
            m.row = pyo.Constraint(expr=m.people.person[first].x.raw["income"] + 0.0 * m.people.cost[first] >= -1.0)
        result = ceopt.solve_people(m)
        if best is None:
            assert result.status == "infeasible"
            continue
        assert result.status == "optimal", result
        assert result.objective == pytest.approx(best, abs=1e-5)
        assert result.bound == pytest.approx(best, abs=1e-5)
        assert result.decomposed is not (whole and people.index[0] not in m.people.favourable)
        checked(m, result, model, people)


@example(kind="boosting", seed=0, least=6.0, equal=False)  # the best value is not its cell's nearest
@example(kind="boosting", seed=345, least=1.0, equal=True)
@draws(40, deadline=None)
@given(kind=KINDS, seed=st.integers(0, 10_000), least=st.floats(0.0, 8.0), equal=st.booleans())
def test_a_row_in_which_more_cost_is_better_is_one_program_and_equals_enumeration(kind, seed, least, equal):
    """The two share a burden: one may not pay much less than the other, or the sum is at least so much."""
    model, people = drawn(kind, seed, 3)
    options = choices(model, people)

    def is_kept(_served, costs):
        if equal:
            return abs(costs[0] - costs[1]) <= least / 8.0 + 1e-7
        return sum(costs) >= least - 1e-7

    def objective(served, costs):
        return sum(costs) - 3.0 * sum(served)

    best = enumerated(options, is_kept, objective)
    m = built(model, people)
    cost = list(m.people.cost.values())
    if equal:
        m.row = pyo.Constraint(expr=(-least / 8.0, cost[0] - cost[1], least / 8.0))
    else:
        m.row = pyo.Constraint(expr=sum(cost) >= least)
    m.sum = pyo.Objective(expr=sum(cost) - 3.0 * sum(m.people.served.values()))
    result = ceopt.solve_people(m)
    is_settled = set(m.people.favourable)
    if not (equal and {"p0", "p1"} <= is_settled) and len(is_settled) < 3:
        assert not result.decomposed
        assert "row" in result.why_whole
    if best is None:
        assert result.status == "infeasible"
        return
    assert result.status == "optimal", result
    assert result.objective == pytest.approx(best, abs=1e-5)
    checked(m, result, model, people)


# ---- rows over people's own columns ----------------------------------------------------------------------------------
#: What a row counts of each person: as it is stated, and of a point and the person before.
COUNTED: dict[str, tuple[Any, Any]] = {
    "job changed": (lambda x: x.changed["job"], lambda points, before: points[:, 3] != before[3]),
    "income": (lambda x: x.raw["income"], lambda points, _: points[:, 0]),
    "high": (lambda x: x.is_level["grade", "high"], lambda points, _: points[:, 2] == 2),
    "debt": (lambda x: x.raw["debt"], lambda points, _: points[:, 1]),
}


def counted(model: Any, people: pd.DataFrame, what: str) -> list[list[tuple[bool, float, float]]]:
    """Return, a person, whether served, what is counted, and the least cost of that."""
    is_good = model.predict(GRID) == "yes"
    found = []
    for point, good in zip(SPACE.coordinates(people), model.predict(people) == "yes", strict=True):
        stay = (good, float(COUNTED[what][1](point[None, :], point)[0]), 0.0)
        own: list[tuple[bool, float, float]] = [stay]
        if not good:
            allowed = is_good & reachable(point)
            amounts = np.asarray(COUNTED[what][1](COORDINATES, point), dtype=float)[allowed]
            costs = prices(point)[allowed]
            own += [(True, float(q), float(costs[amounts == q].min())) for q in np.unique(amounts)]
        found.append(own)
    return found


@example(kind="logistic", seed=3, what="income", share=0.9, at_least=True)
@draws(80, deadline=None)
@given(
    kind=KINDS,
    seed=st.integers(0, 10_000),
    what=st.sampled_from(sorted(COUNTED)),
    share=st.floats(0.0, 1.0),
    at_least=st.booleans(),
)
def test_rows_over_own_columns_equal_enumeration(kind, seed, what, share, at_least):
    """What all become is counted and limited, from below or above, and beside it what they cost."""
    model, people = drawn(kind, seed, 3)
    options = counted(model, people, what)
    most = sum(max(amount for _, amount, _ in own) for own in options)
    least = sum(min(amount for _, amount, _ in own) for own in options)
    limit = round(least + share * (most - least), 6)
    best = None
    for pick in itertools.product(*options):
        total = sum(amount for _, amount, _ in pick)
        cost = sum(cost for _, _, cost in pick)
        weighed = total - 0.1 * cost if at_least else total + 0.1 * cost
        if (weighed < limit - 1e-7) if at_least else (weighed > limit + 1e-7):
            continue
        value = 0.01 * cost - sum(served for served, _, _ in pick)
        best = value if best is None else min(best, value)
    m = built(model, people)
    cost = 0.1 * sum(m.people.cost.values())
    total = sum(COUNTED[what][0](m.people.person[label].x) for label in people.index)
    m.row = pyo.Constraint(expr=total - cost >= limit if at_least else total + cost <= limit)
    m.goal = pyo.Objective(expr=0.01 * sum(m.people.cost.values()) - sum(m.people.served.values()))
    result = ceopt.solve_people(m)
    if best is None:
        assert result.status == "infeasible"
        return
    assert result.status == "optimal", result
    assert result.objective == pytest.approx(best, abs=1e-5)
    assert result.bound == pytest.approx(best, abs=1e-5)
    frame = checked(m, result, model, people)
    weighed = (
        sum(
            float(COUNTED[what][1](row[None, :], before)[0])
            for row, before in zip(SPACE.coordinates(frame[list(SPACE.names)]), SPACE.coordinates(people), strict=True)
        )
        + (-0.1 if at_least else 0.1) * frame["cost"].sum()
    )
    assert weighed >= limit - 1e-6 if at_least else weighed <= limit + 1e-6


def with_a_row(limit: float = 1.0) -> Any:
    """Five people of whom one may change job."""
    model, people = drawn("boosting", 11, 5)
    m = built(model, people)
    m.row = pyo.Constraint(expr=sum(m.people.person[label].x.changed["job"] for label in people.index) <= limit)
    m.goal = pyo.Objective(expr=0.01 * sum(m.people.cost.values()) - sum(m.people.served.values()))
    return m


def test_an_answer_that_meets_the_bound_needs_no_program_of_all(monkeypatch):
    free = ceopt.solve_people(with_a_row(5.0))
    monkeypatch.setattr(ceopt.people._Whole, "_solved", lambda _: pytest.fail("asked for the program of all"))
    loose = ceopt.solve_people(with_a_row(5.0))
    assert (loose.status, loose.objective, loose.decomposed) == ("optimal", free.objective, False)
    assert loose.why_whole == "row takes a person's own columns"


@pytest.mark.parametrize("takes_start", [True, False])
def test_the_program_of_all_begins_at_the_best_answer_in_hand(monkeypatch, takes_start):
    starts = []
    own = ceopt.people.solve

    def watched(model, solver, *, start=None, **options):
        starts.append(start)
        if start is not None and not takes_start:
            raise InvalidValueError("solve", "a start that keeps the rows", "it breaks one", "Leave it out.")
        return own(model, solver, start=start, **options)

    m = with_a_row(0.0)
    monkeypatch.setattr(ceopt.people._Whole, "_is_proved", lambda _: False)
    monkeypatch.setattr(ceopt.people, "solve", watched)
    result = ceopt.solve_people(m)
    assert result.status == "feasible"  # as nothing counts as proved here
    assert result.gap <= 1e-6
    given = [start for start in starts if start is not None]
    assert len(given) == 1
    assert m.people.served["p0"] in given[0] or m.people.served["p0"].fixed
    assert (starts[-1] is None) is not takes_start
    assert not result.decode()["job"].ne(m.people.rows["job"]).any()


def test_an_answer_in_hand_is_kept_where_the_program_of_all_ends_without_one(monkeypatch):
    def ended(self, *_, **__):
        return replace(own(self), solutions=(), status=Stop.TIME_LIMIT, bound=None)

    own = ceopt.people._Whole._solved
    monkeypatch.setattr(ceopt.people._Whole, "_is_proved", lambda _: False)
    monkeypatch.setattr(ceopt.people._Whole, "_solved", ended)
    m = with_a_row(0.0)
    result = ceopt.solve_people(m)
    assert (result.status, result.reason) == ("feasible", "The time limit is used up.")
    assert result.verify()["valid"].all()
    assert result.bound <= result.objective + 1e-9


def test_an_interrupt_before_the_program_of_all_ends_it(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ceopt.people._Decomposed, "_first_look", interrupted)
    monkeypatch.setattr(ceopt.people._Whole, "_solved", lambda _: pytest.fail("asked for the program of all"))
    result = ceopt.solve_people(with_a_row(0.0))
    assert result.reason == "The search was interrupted."
    assert result.status in {"feasible", "time_limit"}


@pytest.mark.parametrize("seed", range(3))
def test_models_without_a_way_of_their_own_are_asked_by_the_search(seed):
    model, people = drawn("network", seed, 4)
    options = [{served: costs[:1] for served, costs in option.items() if costs} for option in choices(model, people)]
    limit = 0.6 * sum(option[True][0] for option in options if True in option)
    best = enumerated(options, lambda _, costs: sum(costs) <= limit + 1e-7, lambda served, _: -sum(served))
    m = built(model, people)
    m.budget = shared_budget(m.people, limit)
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    result = ceopt.solve_people(m)
    assert (result.status, result.objective) == ("optimal", -best)
    assert result.asked > 0
    checked(m, result, model, people)


@pytest.mark.parametrize("kind", ["logistic", "boosting"])
def test_rules_are_kept_by_everybody_served(kind):
    model, people = drawn(kind, 3, 5)
    rules = [ceopt.MaxChanges(1)]
    m = built(model, people, constraints=rules)
    m.all = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    result = ceopt.solve_people(m)
    frame = checked(m, result, model, people)
    assert result.status == "optimal"
    for label in people.index:
        found = ceopt.explain(
            model, people.loc[[label]], SPACE, target="yes", cost=ceopt.L1(scale="none"), constraints=rules
        )
        assert bool(frame["served"][label]) is (found.status != "infeasible")
        assert (label in result.impossible) is (found.status == "infeasible")


def test_the_line_says_the_bound_where_a_gap_would_say_nothing():
    model, people = drawn("logistic", 0, 3)
    result = ceopt.solve_people(built(model, people))
    assert "gap 0.0e+00" in str(result)
    assert "objective 0, bound 3," in str(replace(result, objective=0.0, bound=3.0))
    assert "objective 1, bound 3," in str(replace(result, objective=1.0, bound=3.0))
    assert "gap 5.0e-01" in str(replace(result, objective=2.0, bound=3.0))


# ---- who is unserved, favourable, impossible, or twice the same -----------------------------------------------------
def test_the_favourable_are_served_as_they_are_at_no_cost():
    model = fitted("logistic", 0)
    good = GRID[model.predict(GRID) == "yes"].head(2)
    m = built(model, good)
    m.none = pyo.Constraint(expr=sum(m.people.cost.values()) <= 0.0)
    m.cost = pyo.Objective(expr=sum(m.people.served.values()))
    result = ceopt.solve_people(m)
    assert m.people.favourable == tuple(good.index)
    assert (result.status, result.objective) == ("optimal", 2.0)
    assert result.decode()[list(SPACE.names)].equals(good)


STUCK = SPACE.fix("income", "debt", "grade", "job")


@pytest.mark.parametrize("kind", ["logistic", "boosting"])
def test_people_without_an_answer_are_not_served_and_named(kind):
    model = fitted(kind, 0)
    people = GRID[model.predict(GRID) == "no"].head(3).set_axis(["ann", "bob", "cleo"])
    m = pyo.ConcreteModel()
    m.people = People(model, people, STUCK, target="yes")
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    result = ceopt.solve_people(m)
    assert (result.status, result.objective) == ("optimal", 0.0)
    assert result.impossible == ("ann", "bob", "cleo")
    assert "'ann', 'bob', 'cleo'" in result.reason
    m.one = pyo.Constraint(expr=m.people.served["bob"] >= 1)
    result = ceopt.solve_people(m)
    assert result.status == "infeasible"
    assert not result.solutions
    with pytest.raises(InvalidValueError, match="Proved"):
        result.decode()
    m.people.write()
    assert ceopt.solvers.solve(m).status == "infeasible"
    m.one.deactivate()
    assert ceopt.solvers.solve(m).objective == pytest.approx(0.0)


@pytest.mark.parametrize("labels", [[("a", 1), ("a", 2), ("b", 1)], [-1, -2, 7], [2.5, "x", 3]])
@pytest.mark.parametrize("whole", [False, True])
def test_labels_of_any_kind(labels, whole):
    model, people = drawn("boosting", 1, 3)
    people = people.set_axis(pd.Index(labels))
    m = built(model, people)
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    if whole:
        m.row = pyo.Constraint(expr=sum(m.people.cost.values()) >= 1.0)
    result = ceopt.solve_people(m)
    assert (result.status, result.decomposed) == ("optimal", not whole)
    checked(m, result, model, people)


def test_equal_people_are_asked_once(monkeypatch):
    model = fitted("network", 0)
    person = GRID[model.predict(GRID) == "no"].iloc[[5]]
    people = pd.concat([person] * 4).reset_index(drop=True)
    calls = []
    own = ceopt.people.search
    monkeypatch.setattr(ceopt.people, "search", lambda *given, **more: calls.append(1) or own(*given, **more))
    m = built(model, people)
    m.cost = pyo.Objective(expr=sum(m.people.cost.values()) - 20 * sum(m.people.served.values()))
    result = ceopt.solve_people(m)
    assert (result.status, len(calls)) == ("optimal", 1)
    assert len(set(result.decode()["cost"])) == 1


def test_only_those_who_matter_are_asked():
    """Whoever the program leaves out although they cost nothing is not asked at all."""
    model = fitted("network", 0)
    people = GRID[model.predict(GRID) == "no"].iloc[[5, 40, 90]]
    m = built(model, people)
    first = people.index[0]
    m.one = pyo.Constraint(expr=sum(m.people.served.values()) == m.people.served[first])
    m.cost = pyo.Objective(expr=m.people.cost[first] - 20 * m.people.served[first])
    result = ceopt.solve_people(m)
    assert (result.status, result.asked) == ("optimal", 1)


def test_a_whole_program_is_written_for_whoever_walks_through_it():
    model, people = drawn("boosting", 1, 3)
    m = built(model, people)
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    assert not m.people.is_written
    names = {row.name for row in m.component_data_objects(pyo.Constraint, active=True)}
    assert any("valid" in name for name in names)
    assert m.people.is_written


def test_pyomo_s_own_writer_and_copies_have_everybody_s_rows(tmp_path):
    model, people = drawn("boosting", 1, 3)
    m = built(model, people)
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    copy = m.clone()
    m.write(str(tmp_path / "model.lp"), io_options={"symbolic_solver_labels": True})
    assert "people_each(p1)" in (tmp_path / "model.lp").read_text()
    assert ceopt.solvers.solve(copy).objective == pytest.approx(ceopt.solve_people(m).objective)


# ---- what decides between the two ways ------------------------------------------------------------------------------
def two() -> Any:
    people = pd.DataFrame({"income": [1, 2]}, index=["ann", "bob"])
    space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)])
    m = pyo.ConcreteModel()
    m.people = People(
        Affine([1.0], -3.5, labels=("no", "yes")), people, space, target="yes", cost=ceopt.L1(scale="none")
    )
    m.cost = pyo.Objective(expr=sum(m.people.cost.values()) - 5.0 * sum(m.people.served.values()))
    return m


WAYS = {
    "less": (lambda p: p.cost["ann"] + p.cost["bob"] <= 4.0, True),
    "at least, turned": (lambda p: 4.0 - p.cost["ann"] >= 0.0, True),
    "less beside served": (lambda p: p.cost["ann"] <= 3.0 * p.served["bob"], True),
    "products of served": (lambda p: p.served["ann"] * p.served["bob"] <= 1.0, True),
    "more": (lambda p: p.cost["ann"] >= 4.0, False),
    "equal": (lambda p: p.cost["ann"] == p.cost["bob"], False),
    "range": (lambda p: (-1.0, p.cost["ann"] - p.cost["bob"], 4.0), False),
    "square": (lambda p: p.cost["ann"] ** 2 <= 10.0, False),
    "own column": (lambda p: p.person["ann"].x.raw["income"] <= 6.0, False),
}


@pytest.mark.parametrize("name", WAYS)
def test_each_person_is_asked_alone_where_less_cost_is_better(name):
    row, alone = WAYS[name]
    m = two()
    m.row = pyo.Constraint(expr=row(m.people))
    result = ceopt.solve_people(m)
    assert result.decomposed is alone
    assert (result.why_whole == "") is alone
    expected = {"more": -10.0 + 4.0 + 2.0, "equal": -10.0 + 3.0 + 3.0, "less": -5.0 + 2.0}.get(name, -10.0 + 3.0 + 2.0)
    assert (result.status, result.objective) == ("optimal", pytest.approx(expected))


def test_an_objective_that_more_cost_makes_better_is_one_program():
    m = two()
    m.cost.set_value(m.people.cost["ann"] - 2.0 * m.people.cost["bob"])
    result = ceopt.solve_people(m)
    assert not result.decomposed
    assert result.objective == pytest.approx(-2.0 * 7.0)


def test_a_cost_with_a_floor_is_one_program():
    m = two()
    m.people.cost["ann"].setlb(4.0)
    result = ceopt.solve_people(m)
    assert (result.decomposed, result.objective) == (False, pytest.approx(-10.0 + 4.0 + 2.0))


def own(m: Any) -> Any:
    return m.people.person["ann"]


def fixed(m: Any) -> None:
    (income,) = identify_variables(own(m).x.raw["income"])
    income.fix(8)


def bounded(m: Any) -> None:
    (income,) = identify_variables(own(m).x.raw["income"])
    income.setlb(7)


INSIDE = {
    "in the block": (lambda m: setattr(m.people, "row", pyo.Constraint(expr=m.people.cost["ann"] >= 5.0)), -3.0),
    "equal": (
        lambda m: setattr(m.people, "row", pyo.Constraint(expr=m.people.cost["ann"] == m.people.cost["bob"])), -4.0,
    ),
    "beside a person": (
        lambda m: setattr(own(m), "row", pyo.Constraint(expr=own(m).x.raw["income"] >= 7.0)), -2.0,
    ),
    "in a list": (lambda m: own(m).stays.add(m.people.cost["ann"] >= 5.0), -3.0),
    "fixed": (fixed, -1.0),
    "bounded": (bounded, -2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("cloned", [False, True])
def test_what_is_added_inside_the_block_holds(name, cloned):
    add, expected = INSIDE[name]
    m = two()
    if cloned:
        m.people.write()
        m = m.clone()
    add(m)
    if cloned:
        m = m.clone()
    result = ceopt.solve_people(m)
    assert (result.status, result.objective) == ("optimal", pytest.approx(expected))
    assert not result.decomposed
    assert "people" in result.why_whole


@pytest.mark.parametrize(("part", "status"), [("valid", "rejected"), ("paid", "feasible"), ("stays", "optimal")])
def test_what_is_deactivated_inside_the_block_is_asked_as_one_program(part, status):
    m = two()
    getattr(own(m), part).deactivate()
    result = ceopt.solve_people(m)
    assert (result.status, result.decomposed) == (status, False)
    assert "deactivated" in result.why_whole
    if status == "rejected":
        assert "'ann' failed the check: target" in result.reason
    else:
        assert result.objective == pytest.approx(-5.0)
        assert result.verify()["valid"].all()


def test_an_objective_beside_a_person_is_the_objective():
    m = two()
    m.cost.deactivate()
    own(m).goal = pyo.Objective(expr=own(m).x.raw["income"], sense=pyo.maximize)
    result = ceopt.solve_people(m)
    assert (result.status, result.objective, result.decomposed) == ("optimal", 9.0, False)


def test_a_copy_of_what_is_written_is_asked_alone():
    m = two()
    m.people.write()
    copied = m.clone()
    assert ceopt.solve_people(copied).decomposed
    assert pickle.loads(pickle.dumps(copied)).people.added() == ""


def test_who_is_not_served_stays_and_pays_nothing_in_one_program_too():
    for row in (lambda p: p.cost["ann"] >= 1.0, lambda p: p.person["ann"].x.raw["income"] >= 3.0):
        m = two()
        m.row = pyo.Constraint(expr=row(m.people))
        assert ceopt.solve_people(m).status == "optimal"
        m.people.served["ann"].fix(0)
        result = ceopt.solve_people(m)
        assert (result.status, result.decomposed) == ("infeasible", False)
        assert "Proved" in result.reason


def test_costs_that_are_known_from_below_alone_are_refused_where_more_is_better():
    m = pyo.ConcreteModel()
    model, people = drawn("logistic", 1, 3)
    m.people = People(model, people, SPACE, target="yes", cost="l0")
    m.row = pyo.Constraint(expr=sum(m.people.cost.values()) >= 1.0)
    assert not m.people.cost_is_exact
    with pytest.raises(InvalidValueError, match="row does not hold at less of people.cost"):
        ceopt.solve_people(m)


def test_who_breaks_a_rule_today_is_asked_alone_and_refused_in_one_program():
    model, people = drawn("logistic", 1, 3)
    rule = ceopt.Linear({"income": 1.0}, ">=", 6.0, name="never")
    m = built(model, people, constraints=[rule])
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    result = ceopt.solve_people(m)
    assert (result.status, result.objective, len(result.impossible)) == ("optimal", 0.0, 3)
    with pytest.raises(InvalidValueError, match="row 'p0' breaks never"):
        ceopt.solvers.solve(m)
    assert not m.people.is_written
    assert ceopt.solve_people(m).status == "optimal"


# ---- limits, interrupts, answers that fail --------------------------------------------------------------------------
def test_bounds_and_answers_stay_true_where_least_costs_have_gaps(monkeypatch):
    """Lower bounds make the bound, found costs the answer: between them lies the optimum."""
    model, people = drawn("network", 2, 5)
    options = [{served: costs[:1] for served, costs in option.items() if costs} for option in choices(model, people)]
    limit = 0.6 * sum(option[True][0] for option in options if True in option)
    best = enumerated(options, lambda _, costs: sum(costs) <= limit + 1e-7, lambda served, _: -sum(served))
    own = ceopt.people.search

    def half_proved(*given, **more):

        found = own(*given, **more)
        if not found.status.has_answers:
            return found
        return replace(found, status=ceopt.Status.FEASIBLE, bound=0.7 * found.bound)

    monkeypatch.setattr(ceopt.people, "search", half_proved)
    m = built(model, people)
    m.budget = shared_budget(m.people, limit)
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    result = ceopt.solve_people(m, time_limit_s=3.0)
    assert result.status in {"optimal", "feasible"}
    assert result.objective <= -best + 1e-6 <= result.bound + 2e-6
    checked(m, result, model, people)


def test_a_limit_that_is_used_up_at_once_leaves_a_true_bound():
    model, people = drawn("network", 2, 5)
    m = built(model, people)
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    result = ceopt.solve_people(m, time_limit_s=1e-9)
    assert result.status in {"feasible", "optimal"}
    assert result.bound >= result.objective
    full = ceopt.solve_people(m)
    assert result.objective <= full.objective <= result.bound + 1e-6
    if result.status == "feasible":
        assert "time limit" in result.reason


def test_an_answer_in_hand_stays_where_a_later_program_has_none(monkeypatch):
    """The time may end within a later program: what was found before is the answer, and what the Vars hold."""
    model, people = drawn("network", 0, 5)
    solved, asked = ceopt.people.solve, ceopt.people.search
    calls = []

    def late(*given, **more):
        calls.append(1)
        found = solved(*given, **more)
        if len(calls) in {1, 2, 3}:
            return found
        return replace(found, status=Stop.TIME_LIMIT, solutions=(), objective=None, bound=None)

    def unproved(*given, **more):
        found = asked(*given, **more)
        return replace(found, bound=0.5 * found.bound) if found.status.has_answers else found

    monkeypatch.setattr(ceopt.people, "solve", late)
    monkeypatch.setattr(ceopt.people, "search", unproved)
    m = built(model, people)
    m.some = shared_budget(m.people, 1.0)
    m.twice = pyo.Var(bounds=(0, 10))
    m.doubled = pyo.Constraint(expr=m.twice == 2 * sum(m.people.served.values()))
    m.most = pyo.Objective(expr=m.twice, sense=pyo.maximize)
    result = ceopt.solve_people(m)
    assert len(calls) >= 4
    assert (result.status, result.bound >= result.objective) == ("feasible", True)
    checked(m, result, model, people)
    assert m.twice.value == pytest.approx(result.objective)


def test_an_interrupt_keeps_what_is_known(monkeypatch):
    model, people = drawn("network", 0, 5)
    own = ceopt.people.search
    calls = []

    def interrupted(*given, **more):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return own(*given, **more)

    monkeypatch.setattr(ceopt.people, "search", interrupted)
    m = built(model, people)
    m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    result = ceopt.solve_people(m)
    assert len(calls) == 2
    assert (result.status, "interrupted" in result.reason) == ("feasible", True)
    assert result.objective <= result.bound
    checked(m, result, model, people)


def test_an_answer_that_the_model_refuses_is_not_returned(monkeypatch):
    """Whatever the programs say: the user's own model has the last word."""
    for whole in (False, True):
        m = two()
        if whole:
            m.row = pyo.Constraint(expr=m.people.cost["ann"] >= 4.0)
        with monkeypatch.context() as patched:
            refused = ceopt.people._checks

            def nobody(*given, refused=refused, **how):
                checks = refused(*given, **how).items()
                return {label: check._replace(valid=False, broken=("target",)) for label, check in checks}

            patched.setattr(ceopt.people, "_checks", nobody)
            result = ceopt.solve_people(m, time_limit_s=5.0)
        assert not any(solution.served["ann"] or solution.served["bob"] for solution in result.solutions)
        assert result.status in {"rejected", "feasible", "optimal"}


def test_who_is_asked_in_vain_is_asked_twice_at_most(monkeypatch):
    """A search that ends by itself without a proof ends no better the next time."""
    m = two()
    m.people.asked = replace(m.people.asked, constraints=(ceopt.MaxChanges(1),))
    own = ceopt.people.search

    def unproved(*given, **more):
        return replace(own(*given, **more), status=ceopt.Status.FEASIBLE, bound=0.0, reason="Nothing is proved.")

    monkeypatch.setattr(ceopt.people, "search", unproved)
    result = ceopt.solve_people(m, time_limit_s=20.0)
    assert (result.status, result.objective, result.bound) == ("feasible", pytest.approx(-5.0), pytest.approx(-10.0))
    assert result.asked <= 4
    assert result.reason.startswith("The gap could not be closed. Row 'ann': Nothing is proved.")


def test_a_solver_that_stops_is_reported(monkeypatch):
    m = two()
    own = ceopt.people.solve

    def stopped(*given, **more):

        return replace(own(*given, **more), status=Stop.TIME_LIMIT, solutions=(), objective=None, bound=None)

    monkeypatch.setattr(ceopt.people, "solve", stopped)
    result = ceopt.solve_people(m)
    assert (result.status, result.bound, result.solutions) == ("time_limit", None, ())


@pytest.mark.parametrize("whole", [False, True])
def test_a_solver_that_is_interrupted_is_reported(monkeypatch, whole):
    m = two()
    if whole:
        m.row = pyo.Constraint(expr=m.people.cost["ann"] >= 4.0)
    own = ceopt.people.solve

    def interrupted(*given, **more):
        return replace(
            own(*given, **more), status=Stop.INTERRUPTED, solutions=(), objective=None, bound=-10.0, message=""
        )

    monkeypatch.setattr(ceopt.people, "solve", interrupted)
    result = ceopt.solve_people(m)
    assert (result.status, result.bound, result.solutions) == ("time_limit", -10.0, ())
    assert result.reason == "The search was interrupted."
    assert result.decomposed is not whole


# ---- bad input ------------------------------------------------------------------------------------------------------
def test_bad_people_are_refused_by_name():
    model, people = drawn("logistic", 0, 3)
    with pytest.raises(InvalidValueError, match="'p0' stands in people.index twice"):
        built(model, people.set_axis(["p0", "p0", "p1"]))
    with pytest.raises(InvalidValueError, match="people has no row"):
        built(model, people.head(0))
    with pytest.raises(InvalidTypeError, match="people is dict"):
        built(model, {"income": 1})
    with pytest.raises(ceopt.CeoptError, match="In people, row 'p1': .*'doctor'"):
        built(model, people.assign(job=["none", "doctor", "part"]))
    with pytest.raises(ceopt.CeoptError, match="In people, row 'p2': "):
        built(model, people.assign(income=[1.0, 2.0, math.nan]))
    with pytest.raises(InvalidValueError, match="one is missing"):
        built(model, people.set_axis([1.0, 2.0, math.nan]))
    for parts in ([("a", 1), ("b", math.nan), ("b", 2)], [1, None, 3]):
        with pytest.raises(InvalidValueError, match="one is missing"):
            built(model, people.set_axis(pd.Index(parts)))
    with pytest.raises(InvalidValueError, match=r"\('b', \('c', 2\)\) stands in people.index"):
        built(model, people.set_axis(pd.Index([("a", 1), ("b", ("c", 2)), ("d", 3)], tupleize_cols=False)))
    with pytest.raises(InvalidValueError, match=r"\('a',\) stands in people.index"):
        built(model, people.set_axis(pd.Index([("a",), ("b",), ("c",)], tupleize_cols=False)))
    with pytest.raises(InvalidValueError, match=r"'z' and \('a', 1\) stand in people.index"):
        built(model, people.set_axis(pd.Index(["z", ("a", 1), ("b", 2)], tupleize_cols=False)))
    with pytest.raises(ceopt.CeoptError, match="perhaps"):
        People(model, people, SPACE, target="perhaps")
    with pytest.raises(InvalidValueError, match="Hull learns from some"):
        built(model, people, constraints=[ceopt.Hull()])


def test_bad_calls_are_refused():
    m = two()
    with pytest.raises(InvalidValueError, match="limit"):
        shared_budget(m.people, -1.0)
    with pytest.raises(InvalidTypeError, match="a People block"):
        shared_budget(m, 1.0)
    with pytest.raises(InvalidValueError, match="time_limit_s"):
        ceopt.solve_people(m, time_limit_s=0.0)
    with pytest.raises(InvalidTypeError, match="a ConcreteModel"):
        ceopt.solve_people("m")
    with pytest.raises(InvalidValueError, match="the model has 0"):
        ceopt.solve_people(pyo.ConcreteModel())
    result = ceopt.solve_people(m)
    with pytest.raises(InvalidTypeError, match="result.solutions"):
        result.decode("p0")
    m.more = People(
        Affine([1.0], -3.5, labels=("no", "yes")),
        pd.DataFrame({"income": [1]}),
        ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)]),
        target="yes",
    )
    with pytest.raises(InvalidValueError, match="the model has 2"):
        ceopt.solve_people(m)
