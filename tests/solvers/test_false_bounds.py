"""A bound beyond the point in hand is no proof, whoever stands between solver and guard: it is never cut to fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from faulty import faulty

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.solvers import Outcome, compile_model, solve
from ceopt.solvers.gurobi_precision import settled_bound
from ceopt.solvers.rescaled import wide_columns
from ceopt.solvers.scip_proof import Proof


def wide() -> Any:
    """Least cost 0.5 by an integer column of which one step is a billionth of what its row adds up."""
    m = pyo.ConcreteModel()
    m.income = pyo.Var(domain=pyo.Integers, bounds=(0, 10**9))
    m.ratio = pyo.Var(bounds=(-3, 3))
    m.score = pyo.Constraint(expr=9e-10 * m.income + m.ratio >= 1.45)
    m.cost = pyo.Objective(expr=1e-9 * m.income + 10 * m.ratio)
    return m


def in_run(lies: dict[int, Any]) -> Any:
    """Return a fault of some runs alone, the first being the relaxation."""
    runs: list[Outcome] = []

    def fault(told: Outcome, _compiled: Any) -> Outcome:
        runs.append(told)
        return lies[len(runs)](told) if len(runs) in lies else told

    return fault


def above(told: Outcome) -> Outcome:
    return replace(told, bound=told.bound + 0.25 * abs(told.bound))


def worse(told: Outcome) -> Outcome:
    """A point that is dearer, with a bound to match, is believed; here the bound alone is the lie."""
    return replace(told, bound=told.objective * 1.001)


@pytest.mark.parametrize("lie", [above, worse])
@pytest.mark.parametrize("runs", [{1}, {1, 2}, {1, 2, 3, 4}])
def test_a_false_bound_of_a_wide_program_is_no_proof(lie: Any, runs: set[int]) -> None:
    m = wide()
    assert wide_columns(compile_model(m)).any()
    best = solve(m)
    assert (best.status, best.gap) == ("optimal", 0.0)
    with faulty(in_run(dict.fromkeys(runs, lie))) as solver:
        result = solve(m, solver)
    assert (result.status, result.bound) == ("feasible", None)
    assert "contradicts a point in hand" in result.message
    assert result.objective == pytest.approx(best.objective)


@pytest.mark.parametrize("share", [1e-14, 1e-9])
def test_a_bound_off_by_rounding_is_still_a_proof(share: float) -> None:
    m = wide()
    best = solve(m).objective
    with faulty(in_run({1: lambda told: replace(told, bound=told.bound * (1.0 + share))})) as liar:
        result = solve(m, liar)
    assert (result.status, result.bound) == ("optimal", best)


@pytest.mark.parametrize("lie", [above, worse])
def test_an_answer_in_wide_columns_is_not_proved_by_a_false_bound(lie: Any) -> None:
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("income", kind="integer", lower=0, upper=10**9, mad=6e9),
            ceopt.Feature("ratio", kind="continuous", lower=-3, upper=3, mad=1.0),
        ]
    )
    model = Affine([9e-10, 1.0], -0.5, labels=("bad", "good"))
    with faulty(lambda told, _: lie(told)) as solver:
        found = ceopt.explain(model, {"income": 0, "ratio": 0.0}, space, target="good", solver=solver)
    assert found.status == "feasible"
    assert (found.bound, found.gap) == (0.0, 1.0)
    assert "contradicts" in found.reason
    assert found[0].cost == pytest.approx(0.5 / 9e-10 / 6e9, rel=1e-5)


def knapsack() -> tuple[Any, np.ndarray]:
    m = pyo.ConcreteModel()
    m.take = pyo.Var(range(3), domain=pyo.Integers, bounds=(0, 3))
    m.room = pyo.Constraint(expr=2 * m.take[0] + 3 * m.take[1] + 4 * m.take[2] >= 11)
    m.cost = pyo.Objective(expr=3 * m.take[0] + 4 * m.take[1] + 5 * m.take[2])
    result = solve(m)
    return compile_model(m), result.solutions[0].x


@pytest.mark.parametrize("bound", [15.0, 14.001, 100.0])
def test_no_solvers_own_proof_cuts_a_false_bound(bound: float) -> None:
    compiled, x = knapsack()
    assert compiled.evaluate(x) == 14.0
    cost = compiled.c
    assert Proof(compiled, x, bound, 1e-6, 1.0, cost=cost).bound == bound
    assert Proof(compiled, x, bound, 0.0, 1e-9, cost=1e-9 * cost).bound == bound
    assert settled_bound(compiled, x, bound, 1e-6, barrier=False) == bound


def test_a_bound_that_is_right_stays_so() -> None:
    compiled, x = knapsack()
    assert Proof(compiled, x, 14.0 + 1e-13, 1e-6, 1.0, cost=compiled.c).bound == 14.0
    assert settled_bound(compiled, x, 14.0 + 1e-14, 1e-6, barrier=False) == 14.0
