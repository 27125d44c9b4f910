"""``solve`` with solvers that lie or fail: never an exception, never "optimal", and what is in hand comes back."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from faulty import FAULTS, faulty

from ceopt.solvers import Apart, Outcome, Status, compile_model, solve
from ceopt.solvers.guarded_session import GuardedSession
from ceopt.solvers.registry import SOLVERS
from ceopt.solvers.trust import checked, contradicts, leaves_open, relative_violation

#: What a fault leaves of a best point that is read: the point, without its bound.
KEEPS_A_POINT = {"point in error", "point of the infeasible", "bound above", "bound NaN", "bound infinite",
                 "bound text", "other objective"}  # fmt: skip


def knapsack(sense: Any = pyo.maximize) -> Any:
    m = pyo.ConcreteModel()
    m.take = pyo.Var(range(4), domain=pyo.Integers, bounds=(0, 3))
    weight = sum((k + 2) * m.take[k] for k in m.take)
    m.room = pyo.Constraint(expr=weight <= 11 if sense == pyo.maximize else weight >= 11)
    m.worth = pyo.Objective(expr=sum((k + 3) * m.take[k] for k in m.take) + 7, sense=sense)
    return m


@pytest.mark.long(every=10)
@pytest.mark.parametrize("sense", [pyo.maximize, pyo.minimize])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("how", [{}, {"pool": 3}, {"pool": 3, "distinct": Apart("take", 1.0)}])
def test_a_fault_is_a_status(fault: str, sense: Any, how: Any) -> None:
    m = knapsack(sense)
    best = solve(m).objective
    if "distinct" in how:
        how = how | {"distinct": Apart(m.take, 1.0)}
    with faulty(fault) as solver:
        result = solve(m, solver, **how)
    if fault == "infeasible":  # sensible in itself: where nothing is in hand it cannot be told from the truth
        assert result.status == "infeasible"
        return
    if fault == "bound infinite" and sense == pyo.maximize:  # no bound, which is no fault
        assert result.bound is None
        return
    keeps = fault in KEEPS_A_POINT or fault == "zeros"  # beside which are the points that HiGHS met
    assert (result.status, bool(result.solutions)) == ("feasible" if keeps else "error", keeps)
    if fault == "bound above" and sense == pyo.maximize:
        assert result.bound > best  # far, but no contradiction
        return
    assert result.bound is None
    if fault in KEEPS_A_POINT:
        assert result.objective == pytest.approx(best)
    assert "faulty" in result.message


@pytest.mark.parametrize("fault", FAULTS)
def test_a_start_outweighs_it(fault: str) -> None:
    m = knapsack(pyo.minimize)
    for k in m.take:
        m.take[k].value = 3
    with faulty(fault) as solver:
        result = solve(m, solver, start=True)
    assert result.status == "feasible"
    assert result.bound is None
    assert result.objective is not None
    assert result.objective <= 3 * (3 + 4 + 5 + 6) + 7
    assert "faulty" in result.message


def test_a_start_that_breaks_a_row_outweighs_nothing() -> None:
    m = knapsack()
    for k in m.take:
        m.take[k].value = 3
    with faulty("infeasible") as solver:
        assert solve(m, solver, start=True).status == "infeasible"


def test_what_the_solver_met_outweighs_its_last_word() -> None:
    m = knapsack()

    def forgets(told: Outcome, _compiled: Any) -> Outcome:
        assert told.incumbents
        return Outcome(status=Status.INFEASIBLE, incumbents=told.incumbents)

    best = solve(m).objective
    with faulty(forgets) as solver:
        result = solve(m, solver)
    assert (result.status, result.objective, result.bound) == ("feasible", best, None)


def test_after_a_false_word_nothing_is_proved() -> None:
    """The first run calls the program infeasible, of which it met points; the worse says that there are no others."""
    m = knapsack()
    runs: list[Outcome] = []

    def lies(told: Outcome, _compiled: Any) -> Outcome:
        runs.append(told)
        return Outcome(status=Status.INFEASIBLE, incumbents=told.incumbents if len(runs) == 1 else ())

    with faulty(lies) as solver:
        result = solve(m, solver, pool=20, distinct=Apart(m.take, 1.0))
    assert (result.status, result.complete) == ("feasible", False)
    assert "Proved" not in result.message


def test_a_later_solution_that_is_better_takes_the_first_proof_back() -> None:
    m = knapsack()
    worse = solve(m, pool=20).solutions[-1]
    runs: list[Outcome] = []

    def late(told: Outcome, _compiled: Any) -> Outcome:
        runs.append(told)
        if len(runs) > 1:
            return told
        return Outcome(status=Status.OPTIMAL, x=worse.x, bound=worse.objective)

    best = solve(m).objective
    with faulty(late) as solver:
        result = solve(m, solver, pool=2, distinct=Apart(m.take, 1.0))
    assert (result.status, result.objective, result.bound) == ("feasible", best, None)
    assert "better than the bound" in result.message


def test_an_unbounded_program_stays_unbounded() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, None))
    m.y = pyo.Var(bounds=(0, 1))
    m.cost = pyo.Objective(expr=m.y - m.x)
    m.x.value = m.y.value = 0.0
    assert solve(m, start=True).status == "unbounded"


def test_the_callers_own_exception_is_the_callers() -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve(knapsack(), on_incumbent=fails)


def test_ctrl_c_goes_through() -> None:
    def interrupted(_told: Outcome, _compiled: Any) -> Any:
        raise KeyboardInterrupt

    with faulty(interrupted) as solver, pytest.raises(KeyboardInterrupt):
        solve(knapsack(), solver)


@pytest.mark.parametrize("off", [1e-9, 1e-7, 1e-3, 1.0])
def test_a_bound_contradicts_a_point_from_a_millionth_on(off: float) -> None:
    """As solvers are off by their tolerances; the gap is never below 0."""
    m = knapsack()
    result = solve(m)
    told = Outcome(
        status=Status.OPTIMAL,
        x=result.solutions[0].x,
        objective=result.objective,
        bound=result.objective * (1.0 - off),
    )
    outcome = checked("Solver", told, compile_model(m), start={}, relative_gap=1e-6)
    if off < 1e-6:
        assert (outcome.status, outcome.gap) == (Status.OPTIMAL, 0.0)
    else:
        assert (outcome.status, outcome.gap) == (Status.FEASIBLE, None)
    loose = checked(
        "Solver", replace(told, bound=result.objective * 1.2), compile_model(m), start={}, relative_gap=1e-6
    )
    assert loose.status is Status.FEASIBLE
    assert loose.gap == pytest.approx(0.2)


def test_what_a_point_misses_is_a_share_of_its_row() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1e9))
    m.big = pyo.Constraint(expr=1e3 * m.x <= 1e9)
    m.cost = pyo.Objective(expr=m.x, sense=pyo.maximize)
    compiled = compile_model(m)
    assert relative_violation(compiled, np.array([1e6])) == 0.0
    assert relative_violation(compiled, np.array([1e6 + 1.0])) == pytest.approx(1e-6, rel=1e-3)
    assert relative_violation(compiled, np.array([-0.5])) == pytest.approx(0.5)
    assert relative_violation(compiled, np.array([np.nan])) == np.inf


def test_what_a_point_misses_is_a_share_of_a_large_column() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(-1e6, 1e6))
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 10**6))
    m.row = pyo.Constraint(expr=m.x + m.n >= -1e7)
    m.cost = pyo.Objective(expr=m.x + m.n)
    compiled = compile_model(m)
    is_whole = compiled.integer
    for x, n, share in (
        (1e6 + 1.0, 0.0, 1e-6),
        (-1e6 - 1.0, 0.0, 1e-6),
        (0.0, 1e6 + 2.0, 2e-6),
        (0.0, 1e5 + 0.25, 2.5e-6),
        (0.0, 0.25, 0.25),
        (0.0, -1.0, 1.0),
    ):
        assert relative_violation(compiled, np.where(is_whole, n, x)) == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_what_contradicts_is_more_than_tolerances_explain(sense: Any) -> None:
    """Beside a bound that is worse than the objective by a share of what both add up, and by 1e-9 where that is 0."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 9))
    m.cost = pyo.Objective(expr=2 * m.x, sense=sense)
    compiled = compile_model(m)
    for x, size in ((0.0, 0.0), (3.0, 12.0)):
        point = np.array([x])
        for miss, said in ((0.0, False), (0.9e-9, False), (0.9e-6 * size, False), (1.1e-6 * size + 1.1e-9, True)):
            bound = 2 * x + compiled.sense * miss
            assert contradicts(bound, 2 * x, compiled, point) is said
            assert not contradicts(2 * x - compiled.sense * miss, 2 * x, compiled, point)
        for gap, asked, said in (
            (0.9e-3, 1e-6, False),
            (1.1e-3, 1e-6, True),
            (0.9e-2, 1e-3, False),
            (0.02, 1e-3, True),
        ):
            bound = 2 * x - compiled.sense * gap * size
            assert leaves_open(bound, 2 * x, compiled, point, asked) is (said and size > 0.0)
            assert not leaves_open(2 * x + compiled.sense * gap * size, 2 * x, compiled, point, asked)


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_a_best_of_0_is_proved(sense: Any) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(0, 3), domain=pyo.Integers)
    m.row = pyo.Constraint(expr=m.x[0] - m.x[1] == 0)
    m.cost = pyo.Objective(expr=m.x[0] - m.x[1], sense=sense)
    with faulty(lambda told, _: told) as solver:
        result = solve(m, solver)
    assert (result.status, result.objective, result.bound) == ("optimal", 0.0, 0.0)


def test_an_interrupt_with_a_point_that_breaks_the_program_keeps_no_point() -> None:
    m = knapsack(pyo.minimize)

    def stopped(told: Outcome, _compiled: Any) -> Outcome:
        return replace(told, status=Status.INTERRUPTED, x=np.zeros_like(told.x), objective=0.0, incumbents=(), pool=())

    with faulty(stopped) as solver:
        result = solve(m, solver)
    assert (result.status, result.solutions, result.bound) == ("interrupted", (), None)
    assert "violates the program by 11" in result.message


@pytest.mark.parametrize("cost", [1, 3])
@pytest.mark.parametrize(("bounds", "status"), [((0, None), "error"), ((None, 5), "unbounded")])
def test_unbounded_is_believed_where_the_columns_of_the_objective_are(cost: int, bounds: Any, status: str) -> None:
    """Beside a column that costs nothing, and has no bounds."""
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=bounds), pyo.Var()
    m.row = pyo.Constraint(expr=m.x - m.y <= 4)
    m.cost = pyo.Objective(expr=cost * m.x)
    with faulty("unbounded") as solver:
        result = solve(m, solver)
    assert result.status == status
    assert ("whose columns bound its objective" in result.message) is (status == "error")


def test_a_session_that_does_not_say_how_long_it_took_is_timed() -> None:
    compiled = compile_model(knapsack())
    with faulty("raises") as name:
        session = GuardedSession(SOLVERS[name], compiled, threads=1, random_state=0, options={})
        began = time.perf_counter()
        outcome = session.solve()
        assert 0.0 < outcome.run_time <= time.perf_counter() - began
