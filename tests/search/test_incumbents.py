"""Answers that were met on the way: verified, different, the first of them the best."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import ceopt
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.oracle.model import ModelOracle
from ceopt.search.near_people import Met
from ceopt.search.search import are_same
from ceopt.search.solve_check_repair import nth_start_cost
from ceopt.search.solve_program import ProgramSolver
from ceopt.search.state import Predictions
from ceopt.solvers import registry

SOLVERS = [name for name in ("highs", "scip", "gurobi") if registry.SOLVERS[name].is_licensed]


@pytest.fixture(scope="module")
def forest() -> SimpleNamespace:
    rng = np.random.default_rng(2)
    bunch = ceopt.datasets.loans(400, random_state=1)
    numbers = bunch.data.select_dtypes("number")
    model = RandomForestClassifier(12, max_depth=4, random_state=0).fit(numbers, bunch.target)
    space = ceopt.FeatureSpace.infer(numbers, moves={"age": "any", "years_employed": "any"})
    refused = numbers[model.predict(numbers) != bunch.favourable]
    rows = refused.iloc[rng.permutation(len(refused))[:3]]
    return SimpleNamespace(model=model, space=space, data=numbers, rows=rows, target=bunch.favourable)


@pytest.mark.parametrize("place", range(3))
def test_each_is_verified_and_different_and_the_first_is_the_best(forest, place):
    row = forest.rows.iloc[[place]]
    rules = [ceopt.MaxChanges(3)]
    words = {"target": forest.target, "data": forest.data, "constraints": rules}
    best = ceopt.explain(forest.model, row, forest.space, **words)

    result = ceopt.explain(forest.model, row, forest.space, n=4, diversity="incumbents", **words)

    assert result.status == best.status == "optimal"
    assert result[0].cost == pytest.approx(best[0].cost, rel=1e-6)
    assert [a.cost for a in result] == sorted(a.cost for a in result)
    assert len({tuple(a.values) for a in result}) == len(result)
    assert (forest.model.predict(result.to_frame()[forest.data.columns]) == forest.target).all()
    assert all(answer.verified and len(answer.changed) <= 3 for answer in result)
    report = ceopt.verify(result, forest.model, forest.space, target=forest.target, factual=row, constraints=rules)
    assert report.ok
    assert [a.rank for a in result] == list(range(1, len(result) + 1))
    assert all(a.bound <= result[0].cost for a in result)  # no claim but that of the first
    assert result.complete == (len(result) == 4)
    assert len(result) >= 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_short_pool_is_not_complete(solver):
    """One column with two cells: no other answer can be met."""
    split = {"feature": 0, "threshold": 4.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    space = ceopt.FeatureSpace([ceopt.Feature("age", kind="integer", lower=0, upper=9)])
    result = ceopt.explain(
        TreeEnsemble([split]), {"age": 2}, space, target=ceopt.AtLeast(0.5), n=5, diversity="incumbents", solver=solver
    )
    assert result.status == "optimal"
    assert result.to_frame()["age"].iloc[0] == 5
    assert len(result) < 5
    assert not result.complete
    assert "No other point was met" in result.reason


def test_a_point_that_fails_the_check_is_left_out(forest, monkeypatch):
    """What was met is trusted no more than what the solver calls optimal."""
    row = forest.rows.iloc[[0]]
    words = {"target": forest.target, "data": forest.data, "n": 4, "diversity": "incumbents"}
    before = ceopt.explain(forest.model, row, forest.space, **words)
    assert len(before) >= 3
    second, judge = before[1].values, ModelOracle.judge

    def stricter(self, frame, target):
        predicted, met = judge(self, frame, target)
        return predicted, met & ~(frame[list(second.index)] == second.to_numpy()).all(axis=1).to_numpy()

    monkeypatch.setattr(ModelOracle, "judge", stricter)
    after = ceopt.explain(forest.model, row, forest.space, **words)

    assert tuple(second) not in {tuple(a.values) for a in after}
    assert after[0].cost == before[0].cost


def test_what_the_solver_met_and_what_the_start_search_met_are_both_given(forest, monkeypatch):
    row, words = forest.rows.iloc[[0]], {"target": forest.target, "data": forest.data, "diversity": "incumbents"}
    both = ceopt.explain(forest.model, row, forest.space, n=30, **words)
    monkeypatch.setattr(Predictions, "met", lambda *_args: (Met(0.0, np.zeros((0, len(forest.space.names)))), 0.0))
    solver_only = ceopt.explain(forest.model, row, forest.space, n=30, **words)

    assert 1 < len(solver_only) < len(both) <= 30
    assert solver_only[0].cost == pytest.approx(both[0].cost, rel=1e-6)


@pytest.mark.usefixtures("by_program")
def test_the_program_has_room_for_n(forest, monkeypatch):
    """Within the cost of the cheapest start alone the solver would have next to nothing to meet."""
    asked, run = [], ProgramSolver.run
    monkeypatch.setattr(ProgramSolver, "run", lambda self, ask, seconds: asked.append(ask) or run(self, ask, seconds))
    words = {"target": forest.target, "data": forest.data, "diversity": "incumbents"}
    for n in (1, 3):
        ceopt.explain(forest.model, forest.rows.iloc[[0]], forest.space, n=n, **words)

    least, costs = ([cost for cost, _ in ask.starts] for ask in asked)
    assert len(costs) >= 3
    assert [ask.budget for ask in asked] == [least[0], costs[2]]
    assert [ask.n_incumbents for ask in asked] == [0, 2]


def test_nothing_to_find_is_complete():
    space = ceopt.FeatureSpace([ceopt.Feature("age", kind="integer", lower=0, upper=9)])
    model = Affine([1.0], -20.0, labels=("no", "yes"))
    result = ceopt.explain(model, {"age": 2}, space, target="yes", n=3, diversity="incumbents")
    assert (result.status, result.complete, len(result)) == ("infeasible", True, 0)


def test_columns_without_bounds_have_the_bounds_of_the_starts():
    """The nth_start_cost for n points is a cutoff, too."""
    left = {"feature": 1, "threshold": 1.0, "left": {"value": 0.0}, "right": {"value": 1.0}}
    tree = {"feature": 0, "threshold": 3.0, "left": left, "right": {"value": 1.0}}
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", mad=1.0) for name in "ab"])
    result = ceopt.explain(
        TreeEnsemble([tree]), {"a": 0.0, "b": 0.0}, space, target=ceopt.AtLeast(0.5), n=2, diversity="incumbents"
    )
    assert result.status == "optimal"
    assert [answer.changed for answer in result] == [("b",), ("a",)]
    assert result.complete


def test_room_and_sameness():
    starts = [(1.0, {}), (2.0, {}), (5.0, {})]
    assert [nth_start_cost(starts, n) for n in (1, 2, 3, 4)] == [1.0, 2.0, 5.0, 5.0]
    assert nth_start_cost([], 3) is None
    assert are_same({"a": 1.0, "b": 0.0}, {"a": 1.0 + 1e-8, "b": 1e-13})
    assert not are_same({"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 1e-3})


def test_an_unknown_diversity_names_it():
    space = ceopt.FeatureSpace([ceopt.Feature("age", kind="integer", lower=0, upper=9)])
    with pytest.raises(ValueError, match="Did you mean 'incumbents'"):
        ceopt.explain(Affine([1.0], -3.0), {"age": 1}, space, target=ceopt.AtLeast(0.0), diversity="incumbent")
