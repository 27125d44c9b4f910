"""Our solvers by Pyomo's own call: its results, its conditions, and a model that stays open."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo import gdp
from pyomo.opt import SolverStatus, TerminationCondition

from ceopt.solvers import Status
from ceopt.solvers.errors import CeoptError, InvalidValueError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.pyomo_interface import WORDS
from ceopt.solvers.registry import SOLVERS


def model(sense: Any = pyo.maximize) -> Any:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(0, 4), domain=pyo.Integers)
    m.row = pyo.Constraint(expr=2 * m.x[1] + 2 * m.x[2] <= 9)
    m.worth = pyo.Objective(expr=(1 if sense == pyo.maximize else -1) * (m.x[1] + 2 * m.x[2]), sense=sense)
    m.more = pyo.ConstraintList()
    return m


def test_every_status_has_words():
    assert set(WORDS) == set(Status)


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_each_solver_answers_by_pyomos_call(name: str):
    opt = pyo.SolverFactory(f"ceopt_{name}")
    assert opt.available(exception_flag=False) is opt.license_is_valid() is SOLVERS[name].is_licensed
    if not SOLVERS[name].is_licensed:
        with pytest.raises(CeoptError, match=f"ceopt_{name} needs"):
            opt.available()
        return
    assert opt.version()
    for sense, sign in ((pyo.maximize, 1), (pyo.minimize, -1)):
        m = model(sense)
        if name in {"clarabel", "scs"}:
            for var in m.x.values():
                var.domain = pyo.Reals
            m.row.deactivate()
        best = 12 if name in {"clarabel", "scs"} else 8
        results = opt.solve(m)
        pyo.assert_optimal_termination(results)
        assert pyo.value(m.worth) == pytest.approx(sign * best, abs=1e-5)
        assert results.problem.lower_bound == pytest.approx(sign * best, abs=1e-5)
        assert results.problem.upper_bound == pytest.approx(sign * best, abs=1e-5)
        assert results.problem.sense == sense


def test_what_is_no_optimum_is_said_and_nothing_raises():
    opt = pyo.SolverFactory("ceopt_highs")
    m = model()
    m.never = pyo.Constraint(expr=m.x[1] >= 5)
    m.x[1].set_value(3)
    results = opt.solve(m)
    assert results.solver.termination_condition == TerminationCondition.infeasible
    assert results.solver.status == SolverStatus.warning
    assert not pyo.check_optimal_termination(results)
    assert m.x[1].value == 3
    with pytest.raises(InvalidValueError, match="a solution to load"):
        opt.load_vars()
    free = pyo.ConcreteModel()
    free.x = pyo.Var()
    free.cost = pyo.Objective(expr=free.x)
    assert opt.solve(free).solver.termination_condition == TerminationCondition.unbounded


def test_a_limit_of_time_is_one_with_a_solution_too():
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(120), domain=pyo.Binary)
    m.rows = pyo.Constraint(
        range(25), rule=lambda m, k: sum((20 + (7 * i * i + 13 * k * i + k) % 41) * m.y[i] for i in range(120)) <= 1600
    )
    m.worth = pyo.Objective(expr=sum((30 + (11 * i) % 41) * m.y[i] for i in range(120)), sense=pyo.maximize)
    results = pyo.SolverFactory("ceopt_highs").solve(m, timelimit=0.5)
    assert results.solver.termination_condition == TerminationCondition.maxTimeLimit
    assert results.solver.status == SolverStatus.aborted
    assert results.problem.lower_bound == pytest.approx(pyo.value(m.worth))
    assert results.problem.upper_bound > results.problem.lower_bound


def test_values_are_loaded_when_they_are_asked_for():
    opt = pyo.SolverFactory("ceopt_highs")
    m = model()
    m.x[1].set_value(1)
    pyo.assert_optimal_termination(opt.solve(m, load_solutions=False))
    assert (m.x[1].value, m.x[2].value) == (1, None)
    opt.load_vars()
    assert (m.x[1].value, m.x[2].value) == (0, 4)


@pytest.mark.parametrize("name", ["highs", "scip", "gurobi"])
def test_a_model_stays_open_and_changes(name: str):
    if not SOLVERS[name].is_licensed:
        pytest.skip(f"{name} is not here")
    m = model()
    with pyo.SolverFactory(f"ceopt_{name}") as opt:
        assert not opt.is_persistent()
        opt.set_instance(m)
        assert opt.has_instance()
        opt.solve()
        assert pyo.value(m.worth) == 8
        opt.add_constraint(m.more.add(m.x[2] <= 3))
        opt.solve(m)
        assert pyo.value(m.worth) == 7
        m.x[2].setub(1)
        opt.update_var(m.x[2])
        opt.solve(m)
        assert pyo.value(m.worth) == 5
        m.worth.set_value(3 * m.x[1] - m.x[2])
        opt.set_objective(m.worth)
        m.part = pyo.Block()
        m.part.y = pyo.Var(bounds=(0, 1))
        m.part.row = pyo.Constraint(expr=m.x[1] + m.part.y <= 2.5)
        opt.add_var(m.part.y)
        opt.add_block(m.part)
        pyo.assert_optimal_termination(opt.solve(m))
        assert pyo.value(m.worth) == 6
        with pytest.raises(InvalidValueError, match="'row' is to go"):
            opt.remove_constraint(m.row)
        with pytest.raises(InvalidValueError, match="beforehand"):
            opt.solve(m, options={"mip_max_nodes": 3})
    assert not opt.has_instance()
    with pytest.raises(InvalidValueError, match="none is open"):
        opt.add_constraint(m.row)
    with pytest.raises(InvalidValueError, match="needs a model"):
        opt.solve()


def test_options_are_the_solvers_own_and_who_keeps_no_program_says_so():
    opt = pyo.SolverFactory("ceopt_highs", options={"mip_max_nodes": 5})
    opt.options["no_such"] = 1
    with pytest.raises(UnknownNameError, match="no_such"):
        opt.solve(model())
    with pytest.raises(UnsupportedProblemError, match="clarabel"):
        pyo.SolverFactory("ceopt_clarabel").set_instance(model())


def test_a_var_that_is_fixed_while_the_model_is_open_is_taken_over():
    opt = pyo.SolverFactory("ceopt_highs")
    m = model()
    opt.set_instance(m)
    opt.solve(m)
    m.x[2].fix(1)
    opt.update_var(m.x[2])
    opt.solve(m)
    assert (m.x[2].value, pyo.value(m.worth)) == (1, 5)
    m.x[2].unfix()
    opt.update_var(m.x[2])
    opt.solve(m)
    assert pyo.value(m.worth) == 8


def test_a_solution_that_is_not_loaded_is_in_the_results():
    m = model()
    m.held = pyo.Var(initialize=7)
    m.held.fix()
    results = pyo.SolverFactory("ceopt_highs").solve(m, load_solutions=False)
    assert [m.x[i].value for i in (1, 2)] == [None, None]
    m.solutions.load_from(results)
    assert (m.x[1].value, m.x[2].value, m.held.value) == (0, 4, 7)


@pytest.mark.parametrize("as_option", [True, False])
def test_the_common_words_are_arguments_and_options(as_option: bool):
    wanted = {"absolute_gap": 100.0, "time_limit_s": 50, "threads": 1, "random_state": 3}
    opt = pyo.SolverFactory("ceopt_highs")
    further = {"options": {**wanted, "presolve": "off"}} if as_option else wanted
    results = opt.solve(model(), **further, symbolic_solver_labels=True)
    pyo.assert_optimal_termination(results)
    assert results.problem.upper_bound - results.problem.lower_bound <= 100
    with pytest.raises(CeoptError, match="relative_gap must be|relative_gap to be"):
        opt.solve(model(), **({"options": {"relative_gap": -1}} if as_option else {"relative_gap": -1}))


def test_an_argument_that_is_none_is_refused_by_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'timelimit'"):
        pyo.SolverFactory("ceopt_highs").solve(model(), time_limit=3)


def test_a_package_that_asks_for_a_solver_by_name_takes_it():
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(0, 4))
    m.either = gdp.Disjunction(expr=[[m.x[1] + m.x[2] >= 5], [m.x[1] - m.x[2] >= 3]])
    m.cost = pyo.Objective(expr=m.x[1] + 0.5 * m.x[2])
    ours = "ceopt_highs"
    results = pyo.SolverFactory("gdpopt").solve(m, algorithm="LOA", mip_solver=ours, nlp_solver=ours)
    pyo.assert_optimal_termination(results)
    assert pyo.value(m.cost) == pytest.approx(3)
