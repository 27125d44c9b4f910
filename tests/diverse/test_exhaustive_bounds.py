"""The bounds behind exhaustive sets: never below the truth, equal to it where nothing is free, and tight on the way."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import problems
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import assume, given
from hypothesis import strategies as st

import ceopt
from ceopt.diverse.enumeration import Walk
from ceopt.diverse.score_bounds import (
    Allowance,
    Ceilings,
    CellColumn,
    Leaves,
    Line,
    allowances_of,
    cell_columns,
    cell_of,
    demands_of,
)
from ceopt.formulations import Factual
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.pruned_leaves import pruned_trees
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.targets import Disagreement
from ceopt.search.prepare import prepare
from ceopt.settings import Settings

WHOLE = ("stepped", "integer", "even", "ordinal", "ranked", "categorical", "binary", "flag")
#: Beyond any price of the problems.
ALL = 1e6


class Boxes:
    """One problem's columns and bounds, with a budget."""

    def __init__(self, problem: problems.Problem, budget: float, least: float = 0.0) -> None:
        self.prepared = prepare(
            problem.model,
            problem.space,
            Settings(target=problem.target, cost=problem.cost, constraints=problem.rules),
        )
        self.problem, self.space = problem, problem.space
        self.factual = problem.space.row(problem.row)
        self.reach = reach_of(problem.space, self.factual)
        predictor, cost = self.prepared.predictor, self.prepared.settings.cost
        columns = cell_columns(predictor, cost, self.factual, self.reach, budget)
        assert columns is not None
        self.columns = columns
        self.allowances = allowances_of(self.prepared, self.factual, columns, budget)
        alternatives = demands_of(predictor, self.prepared.settings.target, least)
        self.ceilings = Ceilings(alternatives, columns, self.reach, self.allowances)

    def all_cells(self) -> np.ndarray:
        return np.array(list(itertools.product(*(range(len(column)) for column in self.columns))), dtype=np.intp)

    def points(self, cells: np.ndarray) -> np.ndarray:
        return np.stack([column.values[cells[:, j]] for j, column in enumerate(self.columns)], axis=1)

    def slack(self, cells: np.ndarray) -> np.ndarray:
        return slack(self.prepared.predictor, self.points(cells), self.prepared.settings.target)

    def spent(self, cells: np.ndarray) -> list[np.ndarray]:
        """Return what cells use of each allowance."""
        found = []
        for allowance in self.allowances:
            used = [allowance.used[j][cells[:, j]] for j in range(cells.shape[1])]
            found.append(np.add.reduce(used) if allowance.additive else np.maximum.reduce(used))
        return found

    def affordable(self, cells: np.ndarray, rounding: float = 0.0) -> np.ndarray:
        """Return which cells are within what there is to go round with, or a little more or less."""
        pairs = zip(self.allowances, self.spent(cells), strict=True)
        return np.all([used <= allowance.most * (1.0 + rounding) for allowance, used in pairs], axis=0)

    def possible(self, cells: np.ndarray, depth: int) -> np.ndarray:
        """Return which boxes, made of the first few columns of cells, stay open."""
        boxes = self.ceilings.start()
        own = np.arange(len(cells))
        for j in range(depth):
            boxes = self.ceilings.take(boxes, j, own if j else np.zeros(len(cells), dtype=np.intp), cells[:, j])
        spent = self.spent(cells[:, :depth])
        return self.ceilings.possible(boxes, depth, spent)


def small(problem: problems.Problem) -> Boxes:
    boxes = Boxes(problem, ALL)
    assume(np.prod([len(column) for column in boxes.columns]) <= 3000)
    return boxes


ANY = st.one_of(problems.tree_problems(most=3, square=True), problems.affine_problems(WHOLE))


@draws(60)
@given(problem=ANY, least=st.sampled_from([-0.5, 0.03125, 0.5]))
def test_one_cell_is_decided_exactly(problem: Any, least: float) -> None:
    small(problem)
    boxes = Boxes(problem, ALL, least)
    cells, wide = boxes.all_cells(), boxes.slack(boxes.all_cells())
    clear = boxes.affordable(cells) & (np.abs(wide - least) > 1e-9)

    found = boxes.possible(cells, len(boxes.columns))

    assert (found == (wide >= least))[clear].all()


@draws(60)
@given(problem=ANY, share=st.sampled_from([0.1, 0.3, 0.6, 1.0]))
def test_no_box_with_an_answer_is_closed(problem: Any, share: float) -> None:
    full = small(problem)
    cells = full.all_cells()
    greatest = float(full.spent(cells)[0].max())
    boxes = Boxes(problem, share * greatest)
    cells = boxes.all_cells()
    good = boxes.affordable(cells) & (boxes.slack(cells) >= 0.0)
    assume(good.any())

    for depth in range(1, len(boxes.columns) + 1):
        assert boxes.possible(cells[good], depth).all()


@draws(60)
@given(problem=ANY, share=st.sampled_from([0.1, 0.3, 0.6, 1.0]))
def test_a_walk_hands_out_the_answers_and_nothing_else(problem: Any, share: float) -> None:
    """Each once; every cell that is handed out is within what there is to go round with."""
    full = small(problem)
    boxes = Boxes(problem, share * float(full.spent(full.all_cells())[0].max()))
    cells = boxes.all_cells()
    wide = boxes.slack(cells)
    sure, maybe = ((wide >= edge) & boxes.affordable(cells, -edge) for edge in (1e-9, -1e-9))

    walk = Walk(boxes.columns, boxes.ceilings, boxes.allowances)
    found = [tuple(cell) for part in walk.run() for cell in part.tolist()]

    assert len(found) == len(set(found))
    assert set(map(tuple, cells[sure].tolist())) <= set(found) <= set(map(tuple, cells[maybe].tolist()))
    assert walk.boxes >= len(found)


@draws(30)
@given(problem=problems.tree_problems(most=3))
def test_cells_know_their_points(problem: Any) -> None:
    boxes = small(problem)
    cells = boxes.all_cells()
    for cell, point in zip(cells.tolist(), boxes.points(cells).tolist(), strict=True):
        assert cell_of(boxes.columns, dict(zip(boxes.space.names, point, strict=True))) == tuple(cell)
    for column in boxes.columns:
        assert (np.diff(column.prices) >= 0).all()
        assert ((column.low <= column.values) & (column.values <= column.high)).all()
        home = boxes.factual[column.name]
        nearest = np.clip(home, column.low, column.high)
        assert column.values.tolist() == nearest.tolist()


def test_changes_are_counted_as_the_rule_counts() -> None:
    jobs = ceopt.Feature("job", kind="categorical", levels=(0, 1))
    space = ceopt.FeatureSpace([ceopt.Feature("u", kind="integer", lower=0, upper=1), jobs])
    rules = [ceopt.MaxChanges(3, count="columns"), ceopt.MaxChanges(1)]
    prepared = prepare(Affine([1.0, 1.0], -1.5, labels=("no", "yes")), space, Settings(target="yes", constraints=rules))
    factual = {"u": 0.0, "job": 0.0}
    columns = cell_columns(prepared.predictor, ceopt.L1(), factual, reach_of(space, factual), ALL)
    assert columns is not None

    budget, by_columns, by_features = allowances_of(prepared, factual, columns, ALL)

    assert (budget.most, by_columns.most, by_features.most) == (ALL, 3.0, 1.0)
    assert [used.tolist() for used in by_columns.used] == [[0.0, 1.0], [0.0, 2.0]]
    assert [used.tolist() for used in by_features.used] == [[0.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize(("low", "high", "price"), [(6, 9, 3.0), (0, 2, 1.0)])
def test_a_fixed_price_in_a_cell_away_from_the_factual(low: int, high: int, price: float) -> None:
    """The program over such a cell prices the one way there is to it, whatever the value becomes."""
    space = ceopt.FeatureSpace([ceopt.Feature("u", kind="integer", lower=0, upper=9, weight=(1.0, 3.0))])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"u": 4}, reach={"u": reach_of(space, {"u": 4.0})["u"].narrowed(low, high)})
    assert m.x.raw["u"] is not None
    assert pyo.value(ceopt.L0().build(m.x)) == price


# ---- heads and targets -----------------------------------------------------------------------------------------------
ONE = ceopt.FeatureSpace([ceopt.Feature("u", kind="integer", lower=-4, upper=4)])
STEPS = [{"feature": 0, "threshold": at + 0.5, "left": {"value": 0.0}, "right": {"value": 1.0}} for at in range(-4, 4)]


@pytest.mark.parametrize("decision", ["positive", "nonnegative"])
@pytest.mark.parametrize("level", [0.0, -1.5, 2.5])
@pytest.mark.parametrize("target", ["no", "yes", ceopt.Probability("yes", 0.7), ceopt.Probability("no", 0.7)])
@pytest.mark.parametrize("kind", ["trees", "line"])
def test_levels_and_links(decision: Any, level: float, target: Any, kind: str) -> None:
    options: Any = {"labels": ("no", "yes"), "decision": decision, "level": level, "probability": "logistic"}
    model = TreeEnsemble(STEPS, -4.0, **options) if kind == "trees" else Affine([1.0], 0.0, **options)
    predictor = read(model, ONE)
    checked = Settings(target=target).check(ONE, predictor.labels).target
    factual = {"u": 0.0}
    reach = reach_of(ONE, factual)
    columns = cell_columns(predictor, ceopt.L1(), factual, reach, ALL)
    assert columns is not None
    allowances = [Allowance((columns[0].prices,), ALL)]
    ceilings = Ceilings(demands_of(predictor, checked, 0.0), columns, reach, allowances)
    walk = Walk(columns, ceilings, allowances)

    found = {float(columns[0].values[cell[0]]) for part in walk.run() for cell in part.tolist()}

    wide = slack(predictor, np.arange(-4.0, 5.0)[:, None], checked)
    assert found == {float(u) for u, by in zip(range(-4, 5), wide, strict=True) if by >= 0.0}


@pytest.mark.parametrize(("at_most", "needed"), [(0.0, 8), (0.25, 6), (0.4, 5)])
@pytest.mark.parametrize("target", ["yes", "no"])
def test_trees_that_are_asked_one_by_one(at_most: float, needed: int, target: str) -> None:
    """Of eight steps k favour at u = k - 4; at least so many must."""
    predictor = read(TreeEnsemble(STEPS, 0.0, labels=("no", "yes"), divisor=8, level=0.5), ONE)
    checked = Settings(target=Disagreement(target, at_most)).check(ONE, predictor.labels).target
    factual = {"u": 0.0}
    reach = reach_of(ONE, factual)
    columns = cell_columns(predictor, ceopt.L1(), factual, reach, ALL)
    assert columns is not None
    allowances = [Allowance((columns[0].prices,), ALL)]
    walk = Walk(columns, Ceilings(demands_of(predictor, checked, 0.0), columns, reach, allowances), allowances)

    found = {float(columns[0].values[cell[0]]) for part in walk.run() for cell in part.tolist()}

    agree = {u: u + 4 if target == "yes" else 4 - u for u in range(-4, 5)}
    assert found == {float(u) for u, trees in agree.items() if trees >= needed}


# ---- leaves ----------------------------------------------------------------------------------------------------------
def deep(depth: int, low: float, high: float, values: Any) -> dict[str, Any]:
    if not depth:
        return {"value": float(next(values))}
    middle = (low + high) / 2
    sides = {"left": deep(depth - 1, low, middle, values), "right": deep(depth - 1, middle, high, values)}
    return {"feature": 0, "threshold": middle, **sides}


@pytest.mark.parametrize("depths", [(5,), (2, 5, 3, 5), (3, 4)])
def test_the_best_leaf_of_trees_of_many_bytes(depths: tuple[int, ...]) -> None:
    """A tree of 32 leaves takes four bytes; whatever leaves are met, the best of each tree counts."""
    rng = np.random.default_rng(0)
    space = ceopt.FeatureSpace([ceopt.Feature("u", kind="continuous", lower=0, upper=32)])
    trees = [deep(depth, 0.0, 32.0, iter(rng.permutation(2**depth) - 7.0)) for depth in depths]
    predictor = read(TreeEnsemble(trees, 0.0), space)
    reach = reach_of(space, {"u": 0.5})
    columns = cell_columns(predictor, ceopt.L1(scale="none"), {"u": 0.5}, reach, ALL)
    assert columns is not None
    leaves = Leaves([predictor], columns, reach, [Allowance((columns[0].prices,), ALL)])
    gains = leaves.gains(predictor, lambda values: values[:, 0])

    # Boxes that are unions of neighbouring cells: what they meet is what their cells meet.
    scores = predictor.score(columns[0].values[:, None])
    one = gains.most(leaves.of_cells[0])
    assert one.tolist() == scores.tolist()
    pruned = pruned_trees(predictor, reach)
    for first, last in itertools.combinations(range(len(columns[0])), 2):
        met = np.bitwise_or.reduce(leaves.of_cells[0][first : last + 1], axis=0)
        inside = columns[0].values[first : last + 1]
        best = 0.0
        for tree in pruned:
            boxes = [(leaf.box["u"][:2], leaf.value[0]) for leaf in tree.leaves]
            best += max(value for (low, high), value in boxes if ((low <= inside) & (inside <= high)).any())
        assert gains.most(met[None, :])[0] == best


@pytest.mark.parametrize("additive", [True, False])
def test_leaves_that_can_be_paid_for(additive: bool) -> None:
    """A leaf at u > 2 and v > 3 costs 2 and 3 from the origin: 5 in all, or 3 at most."""
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in "uv"])
    inner = {"feature": 1, "threshold": 2.5, "left": {"value": 1.0}, "right": {"value": 5.0}}
    tree = {"feature": 0, "threshold": 1.5, "left": {"value": 0.0}, "right": inner}
    predictor = read(TreeEnsemble([tree], 0.0), space)
    factual = {"u": 0.0, "v": 0.0}
    reach = reach_of(space, factual)
    columns = cell_columns(predictor, ceopt.L1(scale="none"), factual, reach, ALL)
    assert columns is not None
    budget = Allowance(tuple(column.prices for column in columns), ALL, additive)
    leaves = Leaves([predictor], columns, reach, [budget])
    gains = leaves.gains(predictor, lambda values: values[:, 0])

    def best(depth: int, left: float) -> float:
        return float(gains.most(leaves.all & leaves.affordable(depth, [np.array([left])]))[0])

    dear = 5.0 if additive else 3.0
    assert [best(0, left) for left in (0.0, 1.9, 2.0, dear - 0.1, dear)] == [0.0, 0.0, 1.0, 1.0, 5.0]
    assert [best(1, left) for left in (0.0, 2.9, 3.0)] == [1.0, 1.0, 5.0]  # u is taken: it asks for v alone
    assert best(2, 0.0) == 5.0


# ---- lines -----------------------------------------------------------------------------------------------------------
@draws(50)
@given(
    prices=st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=4), min_size=1, max_size=4),
    data=st.data(),
    most=st.sampled_from([5.0, 20.0, 60.0]),
    additive=st.booleans(),
)
def test_a_knapsack_is_tight_to_its_grid(prices: Any, data: Any, most: float, additive: bool) -> None:
    """Never less than the best that can be paid for, nor more than what a little more could pay for."""
    names = [f"c{j}" for j in range(len(prices))]
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature(n, kind="categorical", levels=tuple(range(max(len(p), 2))))
            for n, p in zip(names, prices, strict=True)
        ]
    )
    tables = [tuple(float(data.draw(st.integers(-9, 9))) for _ in range(max(len(p), 2))) for p in prices]
    encoded = [Column(n, table=t) for n, t in zip(names, tables, strict=True)]
    part = Predictor(
        Affine([*[1.0] * len(names), 3.0], 0.0),
        Encoding((*encoded, Column(None, constant=2.0)), space.names),
        None,
        space,
    )
    columns = []
    for name, listed in zip(names, prices, strict=True):
        ranks, cost = np.arange(len(listed), dtype=float), np.sort(np.array(listed, dtype=float))
        cost[cost > most] = most
        columns.append(CellColumn(name, ranks, ranks, ranks, cost))
    budget = Allowance(tuple(c.prices for c in columns), most, additive)
    line = Line(part, np.array([*[1.0] * len(names), 3.0]), columns, budget)

    assert line.constant == 6.0
    for depth in range(len(columns) + 1):
        rest = list(itertools.product(*(range(len(c)) for c in columns[depth:])))
        pays = [sum(columns[depth + j].prices[k] for j, k in enumerate(cell)) for cell in rest]
        gains = [sum(tables[depth + j][k] for j, k in enumerate(cell)) for cell in rest]
        for left in (0.0, most / 3, most):
            step = (len(columns) + 2) * most / 512
            reached = line.most(depth, np.array([left]))[0]
            best = max((g for g, p in zip(gains, pays, strict=True) if p <= left or not additive), default=-np.inf)
            more = max(
                (g for g, p in zip(gains, pays, strict=True) if p <= left + step or not additive), default=-np.inf
            )
            assert best <= reached <= more
