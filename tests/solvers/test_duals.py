"""Duals and reduced costs: Pyomo's signs, held against HiGHS by Pyomo and against the change of the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.solvers import Status, solve
from ceopt.solvers.registry import SOLVERS

SOLVER_NAMES = ("highs", "clarabel", "scip", "gurobi", "scs")


def with_suffixes(m: Any) -> Any:
    m.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    m.rc = pyo.Suffix(direction=pyo.Suffix.IMPORT_EXPORT)
    return m


def by_hand(sense: Any, sign: int) -> Any:
    """A range, an equation, an upper side, a row of constants, a fixed Var and one that occurs nowhere."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2, 3, 4], bounds=(0, 10))
    m.x[4].fix(2)
    m.idle = pyo.Var(bounds=(1, 2))
    m.range = pyo.Constraint(expr=(3, m.x[1] + m.x[2], 8))
    m.equal = pyo.Constraint(expr=m.x[2] - m.x[3] == 1 + m.x[4])
    m.most = pyo.Constraint(expr=m.x[3] <= 6)
    m.constant = pyo.Constraint(expr=m.x[4] <= 5)
    m.cost = pyo.Objective(expr=sign * (2 * m.x[1] + 5 * m.x[2] - m.x[3]), sense=sense)
    return with_suffixes(m)


def drawn(seed: int, *, curved: bool) -> Any:
    """A random program of 6 Vars and 8 rows, with ranges and an equation, and one optimum."""
    draw = np.random.default_rng(seed)
    A = draw.normal(size=(8, 6))
    inside = draw.uniform(0.5, 1.5, size=6)
    at = A @ inside
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(6), bounds=(0, 2))
    m.low = pyo.Param(range(8), initialize=dict(enumerate(at - draw.uniform(0.1, 1.0, 8))), mutable=True)
    m.high = pyo.Param(range(8), initialize=dict(enumerate(at + draw.uniform(0.1, 1.0, 8))), mutable=True)
    m.row = pyo.Constraint(range(7), rule=lambda m, i: (m.low[i], sum(A[i, j] * m.x[j] for j in range(6)), m.high[i]))
    m.equal = pyo.Constraint(expr=sum(A[7, j] * m.x[j] for j in range(6)) == m.low[7])
    cost = sum(float(c) * m.x[j] for j, c in enumerate(draw.normal(size=6)))
    sense = pyo.maximize if seed % 2 else pyo.minimize
    if curved:
        R = draw.normal(size=(6, 4))
        square = sum(sum(R[i, k] * m.x[i] for i in range(6)) ** 2 for k in range(4))
        cost += -square if seed % 2 else square
    m.cost = pyo.Objective(expr=cost, sense=sense)
    return with_suffixes(m)


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_a_case_by_hand(solver: str, sense: Any):
    if not SOLVERS[solver].is_licensed:
        pytest.skip(f"{solver} is not here")
    up = 1 if sense == pyo.minimize else -1
    m = by_hand(sense, up)
    assert solve(m, solver).status is Status.OPTIMAL
    rows = {c.name: m.dual[c] for c in m.component_data_objects(pyo.Constraint)}
    assert rows == pytest.approx({"range": 0, "equal": 5 * up, "most": 0, "constant": 0}, abs=1e-6)
    columns = {var.name: cost for var, cost in m.rc.items()}
    assert columns == pytest.approx({"x[1]": 2 * up, "x[2]": 0, "x[3]": 4 * up, "idle": 0}, abs=1e-6)
    m = by_hand(sense, -up)
    assert solve(m, solver).status is Status.OPTIMAL
    assert m.dual[m.range] == pytest.approx(-4 * up, abs=1e-6)
    assert m.dual[m.equal] == pytest.approx(-1 * up, abs=1e-6)
    assert m.rc[m.x[1]] == pytest.approx(2 * up, abs=1e-6)


@pytest.mark.parametrize("solver", ["highs", "clarabel"])
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_dual_is_what_the_objective_changes_by(seed: int, solver: str, curved: bool):
    m = drawn(seed, curved=curved)
    assert solve(m, solver).status is Status.OPTIMAL
    duals = {c.name: m.dual[c] for c in m.component_data_objects(pyo.Constraint)}
    costs = {var.name: m.rc[var] for var in m.x.values()}
    step = 1e-3
    checked = 0
    for sides in (m.low, m.high):
        for i in range(8):
            ends = []
            before = sides[i].value
            for change in (-step, step):
                sides[i].set_value(before + change)
                ends.append(solve(m, "highs", relative_gap=1e-9).objective)
            sides[i].set_value(before)
            dual = duals["equal" if i == 7 else f"row[{i}]"]
            body = pyo.value(m.equal.body if i == 7 else m.row[i].body)
            if i == 7 and sides is m.high:
                continue
            slope = (ends[1] - ends[0]) / (2 * step)
            if abs(slope) > 1e-4:
                assert slope == pytest.approx(dual, rel=2e-2, abs=2e-3), (i, body)
                checked += 1
    for var in m.x.values():
        for bound in ("lb", "ub"):
            before = getattr(var, bound)
            ends = []
            for change in (-step, step):
                setattr(var, bound, before + change)
                ends.append(solve(m, "highs", relative_gap=1e-9).objective)
            setattr(var, bound, before)
            slope = (ends[1] - ends[0]) / (2 * step)
            if abs(slope) > 1e-4:
                assert slope == pytest.approx(costs[var.name], rel=2e-2, abs=2e-3)
                checked += 1
    active = sum(abs(value) > 1e-4 for value in [*duals.values(), *costs.values()])
    assert checked >= active > 0


@pytest.mark.parametrize("seed", range(8))
def test_duals_are_those_of_pyomos_own_interface(seed: int):
    ours = drawn(seed, curved=False)
    theirs = drawn(seed, curved=False)
    assert solve(ours).status is Status.OPTIMAL
    pyo.SolverFactory("appsi_highs").solve(theirs)
    for mine, other in zip(
        ours.component_data_objects(pyo.Constraint), theirs.component_data_objects(pyo.Constraint), strict=True
    ):
        assert ours.dual[mine] == pytest.approx(theirs.dual[other], abs=1e-6)
    for j in range(6):
        assert ours.rc[ours.x[j]] == pytest.approx(theirs.rc[theirs.x[j]], abs=1e-6)


def test_a_suffix_stays_empty_where_there_are_no_duals():
    m = by_hand(pyo.minimize, 1)
    solve(m)
    assert len(m.dual)
    m.x[1].domain = pyo.Integers
    result = solve(m)
    assert result.message == (
        "Nothing is put into 'dual' and 'rc': duals are of an LP or a convex QP, and this is MILP."
    )
    assert not len(m.dual)
    assert not len(m.rc)
    m.x[1].domain = pyo.Reals
    m.never = pyo.Constraint(expr=m.x[1] >= 11)
    m.dual[m.most] = 3.0
    assert solve(m).status is Status.INFEASIBLE
    assert not len(m.dual)


def test_only_suffixes_that_import_are_filled():
    m = by_hand(pyo.minimize, 1)
    m.del_component(m.dual)
    m.dual = pyo.Suffix(direction=pyo.Suffix.EXPORT)
    m.dual[m.most] = 3.0
    m.rc.deactivate()
    solve(m)
    assert (len(m.dual), m.dual[m.most], len(m.rc)) == (1, 3.0, 0)
