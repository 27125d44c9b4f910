"""Blocks may be stated in any order; copies and other interfaces to the solver give the same optimum."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import problems
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import assume, given
from hypothesis import strategies as st
from problems import Problem, assert_answers, optimum, program, same
from rowtext import rows

from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.constraints import Linear, MaxChanges
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import Status, solve
from ceopt.solvers.compile.compiled_model import compile_model

ORDERS = [order for order in itertools.permutations(("embed", "rules", "cost", "raw")) if order[:1] != ("embed",)]


@draws(80)
@given(problem=problems.tree_problems(), order=st.sampled_from(ORDERS))
def test_any_order_of_statements(problem: Problem, order: tuple[str, ...]) -> None:
    assert_answers(problem, program(problem, order=order))


@draws(30)
@given(problem=problems.tree_problems(most=3), order=st.sampled_from(ORDERS), form=st.sampled_from(["misic", "leaf"]))
def test_any_order_of_research_forms(problem: Problem, order: tuple[str, ...], form: str) -> None:
    assert_answers(problem, program(problem, form, order=order))


@draws(30)
@given(problem=problems.tree_problems())
def test_asked_for_everything_at_the_end(problem: Problem) -> None:
    """Coordinates that are made after rules and costs still count in both."""
    assert_answers(problem, program(problem, order=("changed", "cost", "rules", "embed", "raw")))


SPACE = FeatureSpace(
    [Feature("age", kind="integer", lower=18, upper=90), Feature("wage", kind="continuous", lower=0, upper=9)]
)
STUMP = {"feature": 0, "threshold": 40.5, "left": {"value": -1.0}, "right": {"value": 1.0}}


def person() -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, {"age": 35, "wage": 2.0})
    return m


def decide(m: Any) -> None:
    m.p = embed(TreeEnsemble([STUMP], labels=("no", "yes"), n_inputs=2), m.x)
    m.valid = Reaches(m.p, "yes")


def loan() -> Any:
    """A tree splits one of two columns; the other is free."""
    m = person()
    decide(m)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    return m


def test_a_count_of_changes_sees_coordinates_made_after_it() -> None:
    m = loan()
    m.few = impose(MaxChanges(1), m.x)
    assert solve(m).objective == pytest.approx(6)
    m.mine = pyo.Constraint(expr=m.x.raw["wage"] >= 3)
    assert solve(m).status is Status.INFEASIBLE


def test_a_count_of_changes_sees_cuts_made_after_it() -> None:
    m = person()
    m.none = impose(MaxChanges(0), m.x)
    m.cost = pyo.Objective(expr=m.x.n_changed)
    assert solve(m).objective == 0
    decide(m)
    assert solve(m).status is Status.INFEASIBLE
    m.none.deactivate()
    assert solve(m).objective == 1


def test_rules_in_either_order() -> None:
    for order in (1, -1):
        m = loan()
        for k, rule in enumerate([MaxChanges(1), Linear({"wage": 1.0}, ">=", 3.0)][::order]):
            m.add_component(f"rule_{k}", impose(rule, m.x))
        assert solve(m).status is Status.INFEASIBLE


def test_two_models_share_the_columns() -> None:
    """The second model cuts the same column elsewhere, before and after costs; a linear one reads its coordinate."""
    for late_cost in (True, False):
        m = loan()
        m.del_component(m.cost)
        if not late_cost:
            m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
        other = {"feature": 0, "threshold": 50.5, "left": {"value": 0.0}, "right": {"value": 3.0}}
        m.second = embed(TreeEnsemble([other], -1.0, labels=("a", "b"), n_inputs=2), m.x)
        m.also = Reaches(m.second, "b")
        m.third = embed(Affine([1.0, 4.0], -67.0, labels=("u", "v")), m.x)
        m.last = Reaches(m.third, "v", margin=0.0)
        if late_cost:
            m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
        assert solve(m).objective == pytest.approx(16 + 2)
        assert m.x.decode().to_dict() == {"age": 51, "wage": pytest.approx(4.0)}


@pytest.mark.parametrize("formulation", ["ordered", "misic", "leaf"])
@draws(8)
@given(problem=problems.tree_problems(most=3))
def test_clones_and_pickles(formulation: str, problem: Problem) -> None:
    model = program(problem, formulation)
    first = optimum(model, problem)[0]
    for copy in (model.clone(), pickle.loads(pickle.dumps(model))):
        assert same(assert_answers(problem, copy), first)


def test_a_clone_grows_by_itself() -> None:
    """Asking a clone for a coordinate adds it there, and not to the original."""
    m = loan()
    copy = m.clone()
    copy.mine = pyo.Constraint(expr=copy.x.raw["wage"] >= 3)
    assert "wage" in copy.x.x
    assert "wage" not in m.x.x
    assert solve(copy).objective == pytest.approx(7)
    assert solve(m).objective == pytest.approx(6)


@draws(15)
@given(
    problem=problems.tree_problems(most=3),
    order=st.sampled_from([("embed", "rules", "cost"), ("raw", "rules", "embed", "cost")]),
)
def test_any_solver_of_pyomo(problem: Problem, order: tuple[str, ...]) -> None:
    model = program(problem, order=order)
    assume(rows(model) and compile_model(model).columns)  # Pyomo's interfaces find no solution without variables
    ours = assert_answers(problem, model)
    solver = pyo.SolverFactory("appsi_highs")
    solver.config.load_solution = False
    solver.highs_options = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
    results = solver.solve(model, load_solutions=False)
    found = results.solver.termination_condition
    if ours is None:
        assert found in {pyo.TerminationCondition.infeasible, pyo.TerminationCondition.infeasibleOrUnbounded}
    else:
        solver.load_vars()
        assert same(problem.cost.from_objective(pyo.value(model.cost)), ours)
