"""Programs of extreme numbers: what is asked twice before it is believed, and where whole numbers leave no point."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import pytest
from faulty import faulty
from licences import skip_without

from ceopt.solvers import Outcome, Status, compile_model, solve
from ceopt.solvers.units import is_extreme, wide_columns


@pytest.mark.parametrize(("times", "status", "best"), [(1, "optimal", 0.5), (2, "infeasible", None)])
def test_infeasible_is_believed_if_said_twice_where_coefficients_of_a_row_are_far_apart(
    times: int, status: str, best: float | None
) -> None:
    """HiGHS, asked to be exact, called a relaxation infeasible that is not."""
    m = pyo.ConcreteModel()
    m.far = pyo.Var(bounds=(0, 1))
    m.near = pyo.Var(bounds=(0, 1))
    m.row = pyo.Constraint(expr=1e10 * m.far + m.near >= 0.5)
    m.cost = pyo.Objective(expr=m.near + 1e11 * m.far)
    assert is_extreme(compile_model(m))
    runs: list[Outcome] = []

    def denies(told: Outcome, _compiled: Any) -> Outcome:
        runs.append(told)
        return Outcome(status=Status.INFEASIBLE) if len(runs) <= times else told

    with faulty(denies) as solver:
        result = solve(m, solver)
    assert (result.status, result.objective) == (status, pytest.approx(best))
    assert len(runs) == 2


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
def test_a_program_whose_relaxation_alone_has_points_is_infeasible(solver: str) -> None:
    """Between 100.2 and 100.8 of a billion steps there is no whole number, near the optimum or farther away."""
    skip_without(solver)
    m = pyo.ConcreteModel()
    m.income = pyo.Var(domain=pyo.Integers, bounds=(0, 10**9))
    m.ratio = pyo.Var(bounds=(-3, 3))
    m.score = pyo.Constraint(expr=9e-10 * m.income + m.ratio >= 1.45)
    m.some = pyo.Constraint(expr=(100.2, m.income, 100.8))
    m.cost = pyo.Objective(expr=1e-9 * m.income + 10 * m.ratio)
    assert wide_columns(compile_model(m)).any()
    result = solve(m, solver)
    assert (result.status, result.solutions) == ("infeasible", ())
