"""Percentile costs: published instances, rows, tables, optima by enumeration, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from dataclasses import replace
from typing import Any

import discrete
import enumeration as by_hand
import numpy as np
import pandas as pd
import problems
import pyomo.environ as pyo
import pytest
from discrete import Ruled
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from published import FOLDER
from rowtext import rows, text

import ceopt
from ceopt.formulations import Factual, Reaches, embed, impose
from ceopt.formulations.constraints import AllowedRows, AllowedValues, MaxChanges
from ceopt.formulations.costs import L0, L1, Changes, Linf, Percentile
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.space import SpaceWarning
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnboundedFeatureError, UnknownNameError

PUBLISHED = json.loads((FOLDER / "actionable_recourse.json").read_text())["instances"]
published = pytest.mark.parametrize("instance", PUBLISHED, ids=[i["id"] for i in PUBLISHED])
KINDS = {"max_percentile": "max", "total_log_percentile": "total_log"}


def ask(instance: Any, **options: Any) -> tuple[ceopt.SolutionSet, Percentile, dict[str, list[float]], FeatureSpace]:
    given = instance["inputs"]
    names = [f"x{j}" for j in range(len(given["x0"]))]
    grid = dict(zip(names, given["grid"], strict=True))
    space = FeatureSpace([Feature(n, kind="continuous", mutable=len(set(grid[n])) > 1) for n in names])
    cost = Percentile(KINDS[given["cost"]], data=pd.DataFrame(given["data"], columns=names))
    found = ceopt.explain(
        Affine(given["w"], given["intercept"], labels=("no", "yes")), dict(zip(names, given["x0"], strict=True)), space,
        target="yes", cost=cost, constraints=[AllowedValues(grid)], margin=0.0, **options,
    )  # fmt: skip
    return found, cost, grid, space


# ---- published -------------------------------------------------------------------------------------------------------
@published
def test_published_optima(instance: Any) -> None:
    found, cost, grid, _ = ask(instance)
    expected, x0 = instance["expected"], instance["inputs"]["x0"]
    assert found.status == expected["status"]
    assert found[0].cost == pytest.approx(expected["cost"], abs=1e-6)
    assert all(found[0].values[name] in values for name, values in grid.items())
    table = cost.table(dict(zip(grid, x0, strict=True)), grid)
    assert np.array([table[name] for name in grid]) == pytest.approx(np.array(expected["cost_table"]), abs=1e-9)


@pytest.mark.long(every=2)
@published
def test_flip_sets_by_support_are_those_of_enumeration(instance: Any) -> None:
    found, cost, grid, space = ask(instance, n=20, diversity="support")
    given = instance["inputs"]
    x0 = dict(zip(grid, given["x0"], strict=True))
    best: dict[tuple[bool, ...], float] = {}
    for values in itertools.product(*map(dict.fromkeys, grid.values())):
        if np.dot(given["w"], values) + given["intercept"] >= 0.0:
            point = dict(zip(grid, values, strict=True))
            changed = tuple(point[name] != x0[name] for name in grid)
            own = cost.value(space, x0, point)
            best[changed] = min(best.get(changed, math.inf), own)
    assert found.complete
    assert [answer.cost for answer in found] == pytest.approx(sorted(best.values()))
    assert {tuple(name in answer.changed for name in grid) for answer in found} == set(best)


# ---- in plain numbers ------------------------------------------------------------------------------------------------
SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=9),
        Feature("wage", kind="continuous", lower=0.0, upper=4.0),
        Feature("size", kind="ordinal", levels=("S", "M", "L")),
        Feature("job", kind="categorical", levels=(10, 30, 20, 40)),
        Feature("owner", kind="binary", levels=(False, True)),
    ]
)
PEOPLE = pd.DataFrame(
    {
        "age": [1, 3, 3, 8, 9],
        "wage": [0.5, 0.5, 2.0, 3.0, 4.0],
        "size": ["S", "M", "M", "L", "L"],
        "job": [10, 30, 10, 20, 10],
        "owner": [True, False, False, True, False],
    }
)
ROW = {"age": 3, "wage": 1.0, "size": "M", "job": 30, "owner": False}


def shares(kind: str, space: FeatureSpace, people: Any, x0: Any, points: Any) -> Any:
    """Return the cost of each value, (n, d), by the text of its docstring: 0/1 columns for categories."""
    n, table = len(people), np.zeros(points.shape)

    def shift(column: Any, before: float, after: Any) -> Any:
        share = [(np.sum(column <= v) + 0.5) / (n + 2) for v in [before, *after]]
        if kind == "max":
            return np.array([abs(q - share[0]) for q in share[1:]])
        return np.array([abs(math.log((1 - q) / (1 - share[0]))) for q in share[1:]])

    for j, feature in enumerate(space):
        if feature.kind != "categorical":
            table[:, j] = shift(people[:, j], x0[j], points[:, j])
            continue
        parts = [
            shift((people[:, j] == k) * 1.0, float(x0[j] == k), (points[:, j] == k) * 1.0)
            for k in range(len(feature.levels))
        ]
        table[:, j] = np.max(parts, axis=0) if kind == "max" else np.sum(parts, axis=0)
    return table


def by_text(kind: str, *arguments: Any) -> Any:
    table = shares(kind, *arguments)
    return table.max(axis=1) if kind == "max" else table.sum(axis=1)


@pytest.mark.parametrize("kind", ["max", "total_log"])
def test_costs_are_those_of_the_text(kind: Any) -> None:
    factual = SPACE.row(ROW)
    x0 = np.array(list(factual.values()))
    columns = [[0.0, 2, 3, 5, 9], [0.0, 0.5, 0.75, 2.0, 2.5, 4.0], [0.0, 1, 2], [0.0, 1, 2, 3], [0.0, 1]]
    points = by_hand.product(columns)
    people = SPACE.coordinates(PEOPLE)
    cost = Percentile(kind).fitted(SPACE, PEOPLE)
    expected = by_text(kind, SPACE, people, x0, points)
    assert cost.objectives(SPACE, factual, points) == pytest.approx(expected, abs=1e-12)
    one = dict(zip(SPACE.names, points[77].tolist(), strict=True))
    assert cost.value(SPACE, factual, one) == pytest.approx(expected[77], abs=1e-12)
    alone = cost.column_costs(SPACE, factual, one)
    assert cost.cost_of(alone.values()) == pytest.approx(expected[77], abs=1e-12)
    assert cost.value(SPACE, factual, factual) == 0.0


@pytest.mark.parametrize("kind", ["max", "total_log"])
def test_a_table_holds_raw_values(kind: Any) -> None:
    grid = {"age": [9, 0, 3], "wage": np.array([0.49, 0.5]), "size": ["S", "L"], "job": [10, 20], "owner": [True]}
    x0 = np.array(list(SPACE.row(ROW).values()))
    people = SPACE.coordinates(PEOPLE)
    cost = Percentile(kind, PEOPLE)
    known = cost.table(pd.Series(ROW), grid, space=SPACE)
    for j, (name, values) in enumerate(grid.items()):
        points = np.tile(x0, (len(values), 1))
        points[:, j] = [SPACE[name].to_coordinate(value) for value in values]
        assert known[name] == pytest.approx(shares(kind, SPACE, people, x0, points)[:, j], abs=1e-12)
    words = {10: "cook", 30: "nurse", 20: "vet"}
    told = Percentile(kind, PEOPLE.assign(job=PEOPLE["job"].map(words)))
    guessed = told.table(ROW | {"job": "nurse"}, {"age": grid["age"], "job": ["cook", "vet"], "owner": [True]})
    assert all((guessed[name] == known[name]).all() for name in guessed)
    numbers = Percentile(kind, pd.DataFrame({"age": [1, 3]})).table({"age": 2.5}, {"age": [3.5]})
    assert numbers["age"] == pytest.approx([0.25 if kind == "max" else math.log(2.5 / 1.5)])


def test_a_value_is_counted_as_it_is_and_not_as_a_move() -> None:
    """0.1 + (0.3 - 0.1) is not 0.3."""
    space = FeatureSpace([Feature("a", kind="continuous", lower=0, upper=1)])
    cost = Percentile("max").fitted(space, pd.DataFrame({"a": [0.3, 0.3, 0.9]}))
    assert cost.value(space, {"a": 0.1}, {"a": 0.3}) == pytest.approx(2 / 5)
    assert cost.value(space, {"a": 0.1}, {"a": math.nextafter(0.3, 0.0)}) == 0.0
    found = ceopt.explain(
        Affine([1.0], -0.25, labels=(0, 1)),
        {"a": 0.1},
        space,
        target=1,
        cost=Percentile("max", pd.DataFrame({"a": [0.3]})),
    )
    assert found.status == "optimal"
    assert (found[0].cost, found.bound) == (0.0, 0.0)
    assert 0.25 <= found[0].values["a"] < 0.3


def test_weights_do_not_count() -> None:
    space = FeatureSpace([replace(f, weight=9.0) for f in SPACE])
    factual, point = SPACE.row(ROW), SPACE.row(ROW | {"age": 8, "job": 20})
    cost = Percentile("total_log", PEOPLE)
    assert cost.value(space, factual, point) == cost.value(SPACE, factual, point) > 0.0


# ---- rows ------------------------------------------------------------------------------------------------------------
def person() -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    return m


def test_the_greatest_shift_counts_people() -> None:
    m = person()
    assert m.x.raw["age"] is not None
    m.cost = pyo.Objective(expr=Percentile("max", PEOPLE).build(m.x))
    assert text(m.cost.expr) == "+0.1428571429 greatest[0]"
    assert rows(m.x, "greatest_of") == [
        "+1 cut[age,'0'] +2 cut[age,'2'] -1 cut[age,'7'] -1 cut[age,'8'] +1 greatest[0] >= 3",
        "+1 greatest[0] -2 level[owner,True] >= 0",
        "+1 greatest[0] -3 level[job,10] -1 level[job,20] -1 level[job,40] >= 0",  # of a switch the greater share
        "+1 greatest[0] >= 0",  # nothing reads the wage
        "-2 at_least[size,L] +2 at_least[size,M] +1 greatest[0] >= 2",
    ]
    assert sorted(index for index in m.x.cut) == [("age", "0"), ("age", "2"), ("age", "7"), ("age", "8")]


def test_a_number_that_only_a_tree_splits_needs_no_further_cut() -> None:
    m = person()
    split = {"feature": 0, "threshold": 5.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    m.p = embed(TreeEnsemble([split], n_inputs=5), m.x)
    m.cost = pyo.Objective(expr=Percentile("total_log", PEOPLE).build(m.x))
    assert list(m.x.cut) == [("age", "5")]
    assert ("age", "7") not in m.x.cut
    assert "cut[age,'5']" not in text(m.cost.expr)  # 6 has as many below it as 3
    assert m.x.raw["age"] is not None  # from now on it may be anywhere
    assert set(m.x.cut) == {("age", "5"), ("age", "0"), ("age", "2"), ("age", "7"), ("age", "8")}
    assert f"{math.log(3.5 / 2.5):+.10g} cut[age,'7']" in text(m.cost.expr)


@pytest.mark.parametrize("rule", [AllowedValues({"age": [2, 3, 9]}), AllowedRows(["age"], PEOPLE[["age"]][1:])])
def test_a_grid_needs_no_further_cut(rule: Any) -> None:
    """While it holds: a rule that was dropped before the cost is stated counts no more."""
    for dropped in (False, True):
        m = person()
        assert m.x.raw["age"] is not None
        m.r = impose(rule, m.x)
        before = set(m.x.cut)
        if dropped:
            m.r.deactivate()
        m.least = pyo.Constraint(expr=m.x.raw["age"] >= 4)
        m.cost = pyo.Objective(expr=Percentile("total_log", PEOPLE).build(m.x))
        assert (set(m.x.cut) == before) != dropped
        grid = [8.0, 9.0] if isinstance(rule, AllowedRows) else [9.0]
        costs = {9.0: math.log(3.5 / 1.5), 8.0: math.log(3.5 / 2.5)}
        assert solve(m).objective == pytest.approx(0.0 if dropped else costs[grid[0]])
        assert m.x.decoded()["age"] in (range(4, 8) if dropped else grid[:1])


def test_models_with_the_cost_can_be_copied() -> None:
    m = person()
    m.valid = pyo.Constraint(expr=m.x.raw["age"] >= 8)
    m.cost = pyo.Objective(expr=(Percentile("max", PEOPLE) + 0.1 * Changes()).build(m.x))
    costs = [solve(copy).objective for copy in (m, m.clone(), pickle.loads(pickle.dumps(m)))]
    assert costs == pytest.approx([1 / 7 + 0.1] * 3)


# ---- optimum = enumeration -------------------------------------------------------------------------------------------
@st.composite
def populations(draw: Any, ruled: Ruled) -> pd.DataFrame:
    space, row = ruled.problem.space, ruled.problem.row
    people = [{f.name: draw(discrete.values(f, row[f.name])) for f in space} for _ in range(draw(st.integers(1, 6)))]
    return space.frame([{f.name: f.to_coordinate(person[f.name]) for f in space} for person in people])


#: Name -> parts of a cost, each a factor and a kind of percentile cost, or another cost and the same by hand.
COSTS: dict[str, list[tuple[float, Any]]] = {
    "max": [(1.0, "max")],
    "total_log": [(1.0, "total_log")],
    "both": [(0.5, "max"), (0.25, "total_log")],
    "and changes": [(2.0, "max"), (0.1, (Changes(), by_hand.changes()))],
    "and l1": [(1.0, "total_log"), (1.0, (L1(scale="none"), by_hand.l1("none")))],
    "and linf": [(1.0, (Linf(), by_hand.linf())), (1.0, "max")],
    "and l0": [(1.0, "max"), (1.0, (L0(), by_hand.l0))],
}


def check(ruled: Ruled, name: str, people: pd.DataFrame, *arguments: Any, **options: Any) -> None:
    problem, parts = ruled.problem, COSTS[name]
    space, x0 = problem.space, problem.point
    costs = [factor * (Percentile(part, people) if isinstance(part, str) else part[0]) for factor, part in parts]
    cost = Percentile(parts[0][1], people) if len(parts) == 1 else sum(costs)
    model = replace(ruled, problem=replace(problem, cost=cost)).program(*arguments, **options)
    known = space.coordinates(people)
    numbers = [v for j, f in enumerate(space) if not f.is_finite for v in known[:, j].tolist()]

    def price(points: Any) -> Any:
        moves = by_hand.Moves(space, points - x0)
        own = [by_text(p, space, known, x0, points) if isinstance(p, str) else p[1](moves) for _, p in parts]
        return sum(factor * one for (factor, _), one in zip(parts, own, strict=True)) + np.zeros(len(points))

    points = ruled.points(numbers)
    least = price(points)[ruled.valid(points)]
    found, point = problems.optimum(model, replace(problem, cost=cost))
    best = float(least.min()) if len(least) else None
    assert problems.same(found, best), f"program {found}, enumeration {best}"
    if point is not None:
        assert ruled.valid(point[None, :], 1e-7).all(), point
        assert problems.same(float(price(point[None, :])[0]), best)
        home, here = (dict(zip(space.names, p.tolist(), strict=True)) for p in (x0, point))
        assert problems.same(cost.value(space, home, here), best)


@draws(120)
@given(data=st.data(), ruled=discrete.ruled(most=2, linear=False, bounded=False), name=st.sampled_from([*COSTS]))
def test_trees(data: Any, ruled: Ruled, name: str) -> None:
    check(replace(ruled, extra=()) if data.draw(st.booleans()) else ruled, name, data.draw(populations(ruled)))


ORDERS = list(itertools.permutations(("embed", "rules", "cost", "raw")))


@draws(100)
@given(data=st.data(), ruled=discrete.ruled(most=2), name=st.sampled_from([*COSTS]), order=st.sampled_from(ORDERS))
def test_trees_and_coordinates_in_any_order(data: Any, ruled: Ruled, name: str, order: Any) -> None:
    check(ruled, name, data.draw(populations(ruled)), order=order)


@pytest.mark.parametrize("formulation", ["misic", "leaf"])
@draws(50)
@given(data=st.data(), ruled=discrete.ruled(most=2), name=st.sampled_from([*COSTS]))
def test_research_forms(formulation: str, data: Any, ruled: Ruled, name: str) -> None:
    check(ruled, name, data.draw(populations(ruled)), formulation)


@draws(60)
@given(
    x0=st.lists(st.integers(0, 8), min_size=3, max_size=3),
    weights=st.lists(st.sampled_from([-2.0, -1.0, 0.5, 1.0, 3.0]), min_size=3, max_size=3),
    people=st.lists(st.tuples(*[st.integers(-1, 9)] * 3), min_size=1, max_size=5),
    share=st.floats(0.05, 0.95),
    kind=st.sampled_from(["max", "total_log"]),
)
def test_free_numbers_under_a_linear_model(x0: Any, weights: Any, people: Any, share: float, kind: Any) -> None:
    """Of each combination of percentile cells the highest score decides."""
    space = FeatureSpace([Feature(n, kind="continuous", lower=0.0, upper=2.0) for n in "abc"])
    frame = pd.DataFrame(people, columns=list("abc")) / 4.0
    row, w = dict(zip("abc", np.array(x0) / 4.0, strict=True)), np.array(weights)
    cells = []
    for j, name in enumerate("abc"):
        jumps = sorted({v for v in frame[name].tolist() if 0.0 < v <= 2.0})
        ends = list(zip([0.0, *jumps], [*(math.nextafter(v, 0.0) for v in jumps), 2.0], strict=True))
        cells.append([high if w[j] > 0 else low for low, high in ends])
    points = by_hand.product(cells)
    scores = points @ w
    here, top = float(np.dot(w, [*row.values()])), float(scores.max())
    cut = here + share * (top - here)
    if top - here < 1e-2 or np.abs(scores - cut).min() < 1e-3:
        return
    costs = by_text(kind, space, frame.to_numpy(), np.array([*row.values()]), points)[scores > cut]
    found = ceopt.explain(Affine(w, -cut, labels=(0, 1)), row, space, target=1, cost=Percentile(kind), data=frame)
    assert found.status == "optimal"
    assert found[0].cost == pytest.approx(costs.min(), abs=1e-9)
    assert found[0].verified


def test_mixed_columns_and_a_budget_of_changes() -> None:
    """Through explain: a start, a rule, and data from Recourse.fit."""
    table = {f.name: np.linspace(0, 3, 7).tolist() if f.name == "wage" else None for f in SPACE}
    frame = pd.concat([PEOPLE] * 3, ignore_index=True).assign(wage=np.linspace(0.0, 4.0, 15))
    model = Affine([1.0, 1.0, 0.5, 0.0, 1.0], -8.3, labels=("no", "yes"))
    rules = [MaxChanges(2), AllowedValues({"wage": table["wage"] + [1.0]})]
    recourse = ceopt.Recourse(model, SPACE, target="yes", cost=Percentile("max"), constraints=rules).fit(frame)
    shown = recourse.explain(pd.DataFrame([ROW])).to_frame()
    points = by_hand.product([range(10), sorted({*table["wage"], 1.0}), range(3), range(4), range(2)])
    x0 = np.array(list(SPACE.row(ROW).values()))
    met = (points @ [1.0, 1.0, 0.5, 0.0, 1.0] > 8.3) & ((points != x0).sum(axis=1) <= 2)
    costs = by_text("max", SPACE, SPACE.coordinates(frame), x0, points[met])
    assert shown["cost"].iloc[0] == pytest.approx(costs.min())


# ---- refusals --------------------------------------------------------------------------------------------------------
def test_refusals() -> None:
    model = Affine([1.0] * 5, -99.0, labels=("no", "yes"))

    def explain(cost: Any, **options: Any) -> Any:
        return ceopt.explain(model, ROW, SPACE, target="yes", cost=cost, **options)

    with pytest.raises(UnknownNameError, match="kind is 'mean'.*max, total_log"):
        Percentile("mean")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="data is list"):
        Percentile("max", [1, 2])
    with pytest.raises(InvalidValueError, match="a row in data"):
        Percentile("max", PEOPLE[:0])
    for cost in (Percentile("max"), 0.5 * Percentile("max") + Changes()):
        with pytest.raises(InvalidValueError, match="no data is given. Pass data=X_train"):
            explain(cost)
    with pytest.raises(InvalidValueError, match="no data is given"):
        Percentile("max").table(ROW, {"age": [3]})
    with pytest.raises(InvalidValueError, match="'wage' is missing"):
        explain(Percentile("max", PEOPLE.drop(columns="wage")))
    with pytest.raises(InvalidValueError, match="missing.*'wage'"):
        explain(Percentile("max", PEOPLE.assign(wage=math.nan)))
    with pytest.raises(UnknownNameError, match="column of the data is 'ages'"):
        Percentile("max", PEOPLE).table(ROW, {"ages": [3]})
    with pytest.raises(UnknownNameError, match="column of the row is 'age'"):
        Percentile("max", PEOPLE).table({"wage": 1.0}, {"age": [3]})
    with pytest.raises(InvalidValueError, match="'wage'.*missing"):
        Percentile("max", PEOPLE).table(ROW, {"wage": [math.nan]})
    with pytest.raises(UnknownNameError, match="cost is 'percentile'"):
        explain("percentile")


def test_people_with_a_missing_cell_are_left_out() -> None:
    gap = PEOPLE.assign(wage=[1.0, None, 2.0, 3.0, 4.0])
    model = Affine([1.0] * 5, -99.0, labels=("no", "yes"))
    with pytest.warns(SpaceWarning, match="Percentile leaves out 1 of 5 rows of data.*'wage'"):
        left = ceopt.explain(model, ROW, SPACE, target="yes", cost=Percentile("max", gap))
    known = ceopt.explain(model, ROW, SPACE, target="yes", cost=Percentile("max", gap.dropna()))
    assert (left.status, left.bound) == (known.status, known.bound)


def test_a_free_number_needs_bounds_and_is_named() -> None:
    space = FeatureSpace([Feature("wage", kind="continuous", lower=0.0)])
    asked = {"target": ceopt.AtLeast(2.5), "cost": Percentile("max"), "data": PEOPLE[["wage"]]}
    with pytest.raises(UnboundedFeatureError, match=r"'wage' may reach \[0.0, inf\]"):
        ceopt.explain(Affine([1.0], 0.0), {"wage": 1.0}, space, **asked)
    found = ceopt.explain(
        Affine([1.0], 0.0), {"wage": 1.0}, space, constraints=[AllowedValues({"wage": [2.0, 2.7, 99.0]})], **asked
    )
    assert (found[0].values["wage"], found[0].cost) == (2.7, pytest.approx(1 / 7))
    assert solve(found_program(space)).status is Status.OPTIMAL


def test_interventions_have_no_percentile() -> None:
    space = FeatureSpace([f for f in SPACE if f.kind in {"integer", "continuous"}])
    rules = [ceopt.Causal({"wage": ceopt.LinearEquation({"age": 0.1})}, intervention="soft")]
    model, asked = (
        Affine([1.0, 1.0], -6.05, labels=("no", "yes")),
        {"cost": Percentile("max"), "data": PEOPLE[["age", "wage"]]},
    )
    row = {"age": 3, "wage": 1.0}
    with pytest.raises(InvalidTypeError, match="charges an intervention on column 'wage' instead"):
        ceopt.explain(model, row, space, target="yes", constraints=rules, **asked)
    moved = ceopt.Causal({"wage": ceopt.LinearEquation({"age": 0.1})})
    found = ceopt.explain(model, row, space, target="yes", constraints=[moved], **asked)
    assert found.status == "optimal"
    assert found[0].values["wage"] == pytest.approx(0.7 + 0.1 * found[0].values["age"])
    assert found[0].cost == 0.0  # nobody is between 3 and 8, or between 0.5 and 2


def found_program(space: FeatureSpace) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"wage": 1.0})
    m.p = embed(Affine([1.0], 0.0), m.x)
    m.valid = Reaches(m.p, ceopt.AtLeast(2.5))
    m.grid = impose(AllowedValues({"wage": [2.0, 2.7, 99.0]}), m.x)
    m.cost = pyo.Objective(expr=Percentile("max", PEOPLE[["wage"]]).build(m.x))
    return m


def test_it_says_what_it_is() -> None:
    assert repr(Percentile("max")) == "Percentile('max')"
    assert repr(Percentile("total_log", PEOPLE)) == "Percentile('total_log', data=<5 rows>)"
