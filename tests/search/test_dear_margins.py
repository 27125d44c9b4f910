"""Margins that are dear: columns that pay have come to their ends, and another one adds the last trace of the score."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import LinearSVC

import ceopt
from ceopt.formulations.predictors import Affine, ReluNetwork
from ceopt.solvers import registry

SOLVERS = [name for name in ("highs", "scip", "gurobi") if registry.SOLVERS[name].is_licensed]

pytestmark = pytest.mark.parametrize("solver", SOLVERS)


def feature(name: str, lower: float, upper: float, kind: str = "continuous") -> ceopt.Feature:
    return ceopt.Feature(name, kind=kind, lower=lower, upper=upper)


def classifier(weights, intercept):
    names = list("abc"[: len(weights)])
    rows = pd.DataFrame(np.eye(2, len(weights)), columns=names)
    model = LinearSVC().fit(rows, [0, 1])
    model.coef_, model.intercept_ = np.array([weights]), np.array([intercept])
    return model


def test_the_last_trace_of_a_linear_score_costs_no_more_than_it_must(solver):
    """a goes to its end, which leaves 2e-8 of the score to c: the default margin cost 4e-5 more, called optimal."""
    space = ceopt.FeatureSpace([feature("a", 0, 1), feature("b", 0, 8, "integer"), feature("c", 0, 100)])
    model = Affine([-0.0248, -4.43, -0.000379], 31.012206896515195)
    person = {"a": 0.826, "b": 7, "c": 5.823}
    cost = ceopt.L1(scale={"a": 4.3, "b": 3.3, "c": 18.0})

    result = ceopt.explain(model, person, space, target=ceopt.AtLeast(0.0), cost=cost, solver=solver)

    least = 0.826 / 4.3 + (5.823 - 0.002206896515195 / 0.000379) / 18.0
    assert result.status == "optimal", result.reason
    assert result[0].cost == pytest.approx(least, rel=1e-5)


def test_a_smaller_share_of_the_margin_is_tried_until_it_saves_nothing(solver):
    """c moves by one for .379, and a trace of a is missing, at 32 a unit: 1/256 of the margin cost 5e-5 more."""
    space = ceopt.FeatureSpace([feature("a", 10, 110), feature("b", 1, 101), feature("c", 0, 3, "integer")])
    model = classifier([0.204, 1.22e-6, 0.379], -3.6398865123199995)
    cost = ceopt.L1(scale={"a": 0.031, "b": 50.0, "c": 93.0})

    result = ceopt.explain(model, {"a": 12.269, "b": 8.306, "c": 2}, space, target=1, cost=cost, solver=solver)

    missing = 3.6398865123199995 - 0.204 * 12.269 - 1.22e-6 * 8.306 - 0.379 * 3
    assert result.status == "optimal", result.reason
    assert result[0].cost == pytest.approx(1.0 / 93.0 + missing / 0.204 / 0.031, rel=1e-5)


def test_the_last_trace_of_a_networks_score_costs_no_more_than_it_must(solver):
    """As of linear scores: of a network nobody asked what one column alone takes, and .15 % more was called optimal."""
    space = ceopt.FeatureSpace([feature("a", 0, 1), feature("b", 0, 100)])
    model = ReluNetwork([[[0.0248, 1e-5]], [[1.0]]], [[0.0], [-0.0248 - 5.001e-5]])
    cost = ceopt.L1(scale={"a": 4.3, "b": 18.0})

    result = ceopt.explain(
        model, {"a": 0.2, "b": 5.0}, space, target=ceopt.AtLeast(0.0), cost=cost, solver=solver
    )  # fmt: skip

    assert result.status == "optimal", result.reason
    assert result[0].cost == pytest.approx(0.8 / 4.3 + 1e-3 / 18.0, rel=1e-5)


def test_what_a_small_coefficient_reaches_is_no_proof_of_nothing(solver):
    """A rule holds a, b goes to its end, and c of weight 3e-8 decides: HiGHS presolved that away, "infeasible"."""
    space = ceopt.FeatureSpace([feature("a", 1, 11), feature("b", 10, 11), feature("c", 0, 10)])
    model = classifier([4.98, -0.0005, 3.14e-8], -11.389240313802846)
    rule = ceopt.Linear({"a": 1.0}, "<=", 2.288)
    cost = ceopt.L1(scale={"a": 0.017, "b": 2.4, "c": 0.3})
    person = {"a": 2.288, "b": 10.394, "c": 5.1}

    result = ceopt.explain(model, person, space, target=1, cost=cost, constraints=[rule], solver=solver, why=False)

    assert model.predict(pd.DataFrame([{"a": 2.288, "b": 10.0, "c": 10.0}])) == [1]
    assert result.status in {"optimal", "feasible"}, result.reason


def test_a_cheaper_point_that_is_refused_leaves_its_bound(solver):
    """The solver's points at 1e-10 of the score are refused: 235 was called optimal, and 39.5 is the infimum."""
    space = ceopt.FeatureSpace([feature("a", 0, 3, "integer"), feature("b", 10, 110), feature("c", 0, 10)])
    model = classifier([2.51, -4.18, -5.7e-9], 68.43314000396148)
    rule = ceopt.Linear({"b": -1.0, "c": -5.7e-9}, "<=", -18.173000003961498)
    cost = ceopt.L1(scale={"a": 0.076, "b": 34.0, "c": 0.011})
    person = {"a": 0, "b": 18.173, "c": 0.695}

    result = ceopt.explain(model, person, space, target=1, cost=cost, constraints=[rule], solver=solver, why=False)

    near = pd.DataFrame([{"a": 3, "b": 18.173000003961498 - 5.7e-9 * 0.7037, "c": 0.7037}])
    assert model.predict(near) == [1]
    if len(result):
        assert result[0].bound <= 3 / 0.076 + 0.0087 / 0.011 + 1e-6
