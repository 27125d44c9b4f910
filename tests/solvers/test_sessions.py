"""What the sessions of all solvers that search promise, once: optima at every scale, limits, interruption, new rows.

What only one of them does (its own options, tolerances, licences) stands in the file that bears its name.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.solvers import CompiledModel, ProblemClass, Status, compile_model
from ceopt.solvers.registry import SOLVERS

#: Solver -> options with which it stops at its first node.
ONE_NODE: dict[str, dict[str, Any]] = {
    "highs": {"mip_max_nodes": 1},
    "scip": {"limits/nodes": 1},
    "gurobi": {"NodeLimit": 1},
}
SEARCHING = [name for name in ONE_NODE if SOLVERS[name].is_installed and SOLVERS[name].is_licensed]
#: Scales of cost beyond those that every solver is asked about.
FURTHER = {"scip": (1e13,), "gurobi": (1e-12,)}
SCALES = [(name, scale) for name in SEARCHING for scale in (1e-8, 1e-5, 1.0, 1e6, *FURTHER.get(name, ()))]

each = pytest.mark.parametrize("name", SEARCHING)


def session(name: str, compiled: CompiledModel, **words: Any) -> Any:
    """A live session of a solver."""
    return SOLVERS[name].session(compiled.problem_class)(compiled, **words)


def best_of_all(compiled: CompiledModel) -> float:
    """The optimum over every point of binaries."""
    points = np.array(list(itertools.product((0.0, 1.0), repeat=len(compiled.columns))))
    rows = points @ compiled.A.T.toarray()
    kept = (rows <= compiled.row_ub + 1e-9).all(axis=1) & (rows >= compiled.row_lb - 1e-9).all(axis=1)
    values = points[kept] @ compiled.c + compiled.c0
    return float(compiled.sense * (compiled.sense * values).min())


def objectives(outcome: Any) -> list[float]:
    """Of the incumbents, in turn."""
    return [objective for _, objective, _ in outcome.incumbents]


def test_every_solver_that_searches_is_here():
    able = {name for name, solver in SOLVERS.items() if ProblemClass.MILP in solver.classes and solver.is_licensed}
    assert able - {"outer_approximation"} <= set(ONE_NODE), "say how it is stopped at its first node"


@pytest.mark.long(every=5)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "scale"), SCALES)
def test_milp_equals_enumeration_at_every_scale_of_cost(
    make_knapsack: Callable[..., Any], name: str, scale: float, seed: int
) -> None:
    compiled = compile_model(make_knapsack(11, 3, seed, scale=scale, maximise=seed % 2 == 0))
    outcome = session(name, compiled).solve()
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(best_of_all(compiled), rel=1e-9, abs=0)
    assert outcome.gap is not None
    assert outcome.gap <= 1e-6
    assert outcome.x.shape == (11,)
    assert compiled.violation(outcome.x) < 1e-6


@each
def test_small_costs_beside_great_ones_are_still_minimised(name: str) -> None:
    """The optimum is far below the greatest cost, so that an absolute tolerance would end the search too early."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(10), domain=pyo.Binary)
    cost = (np.random.default_rng(3).uniform(1, 2, 10) * 1e-6).tolist()
    weight = np.random.default_rng(4).uniform(1, 2, 10).tolist()
    m.need = pyo.Constraint(expr=sum(w * m.y[j] for j, w in enumerate(weight)) >= sum(weight) / 2)
    m.penalty = pyo.Var(domain=pyo.Binary)
    m.cost = pyo.Objective(expr=sum(c * m.y[j] for j, c in enumerate(cost)) + 1000 * m.penalty)
    compiled = compile_model(m)
    opened = session(name, compiled)
    first, second = opened.solve(), opened.solve()
    assert first.status is Status.OPTIMAL
    assert first.objective == pytest.approx(best_of_all(compiled), rel=1e-6, abs=0)
    assert objectives(second) == objectives(first)


@each
def test_tiny_coefficients_are_not_dropped(name: str) -> None:
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(0, 1e10)), pyo.Var(bounds=(0, 1))
    m.c = pyo.Constraint(expr=5e-10 * m.x + m.y >= 2)
    m.o = pyo.Objective(expr=m.x)
    assert session(name, compile_model(m)).solve().objective == pytest.approx(2e9)


@each
def test_a_far_optimum_of_a_qp_is_not_taken_for_unbounded(name: str) -> None:
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(), pyo.Var(bounds=(None, 3))
    m.floor = pyo.Constraint(expr=m.x + m.y >= -1e6)
    m.o = pyo.Objective(expr=(m.x - 1) ** 2 + m.y)
    outcome = session(name, compile_model(m)).solve()
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(-1e6 - 1 - 0.25, rel=1e-9)


@pytest.mark.long
@each
def test_the_same_seed_gives_the_same_search_and_no_history(make_knapsack: Callable[..., Any], name: str) -> None:
    model = make_knapsack(30, 8)
    opened = session(name, compile_model(model), random_state=3)
    first, second = opened.solve(), opened.solve()
    other = session(name, compile_model(model), random_state=3).solve()
    for outcome in (second, other):
        assert objectives(outcome) == objectives(first)
        assert outcome.x.tolist() == first.x.tolist()


@each
def test_appended_rows_are_taken_over(make_knapsack: Callable[..., Any], name: str) -> None:
    model = make_knapsack(10, 2)
    compiled = compile_model(model)
    opened = session(name, compiled)
    model.cuts = pyo.ConstraintList()
    points, values = set(), []
    for _ in range(6):
        outcome = opened.solve()
        point = tuple(round(v) for v in outcome.x)
        assert point not in points
        points.add(point)
        values.append(outcome.objective)
        differ = (1 - v if on else v for v, on in zip(compiled.columns, point, strict=True))
        compiled.append(model.cuts.add(sum(differ) >= 1))
    assert values == sorted(values, reverse=True)
    rebuilt = session(name, compile_model(model)).solve()
    assert opened.solve().objective == pytest.approx(rebuilt.objective)


# ---- limits and interruption -----------------------------------------------------------------------------------------
@pytest.mark.long(every=3)
@each
def test_a_limit_keeps_the_incumbent_and_the_bound(hard: Any, name: str) -> None:
    opened = session(name, compile_model(hard))
    seen: list[float] = []
    outcome = opened.solve(time_limit_s=0.5, on_incumbent=lambda _s, objective, x: seen.append(objective + 0 * len(x)))
    assert outcome.status is Status.FEASIBLE
    assert outcome.objective < outcome.bound
    assert outcome.violation < 1e-6
    assert seen
    assert objectives(outcome)[: len(seen)] == seen == sorted(seen)
    assert objectives(outcome)[-1] == outcome.objective
    begun = opened.solve(time_limit_s=0.5, start=outcome.x)
    assert objectives(begun)[0] >= outcome.objective - 1e-9
    nothing = opened.solve(time_limit_s=1e-4)
    assert nothing.status in {Status.TIME_LIMIT, Status.FEASIBLE}
    assert nothing.incumbents == () or objectives(nothing)[0] < outcome.objective
    assert session(name, compile_model(hard), options=ONE_NODE[name]).solve().status is Status.FEASIBLE


@each
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.long)])
def test_ctrl_c_stops_the_search_keeps_the_incumbent_and_prints_nothing(
    hard: Any, capfd: pytest.CaptureFixture[str], name: str, threads: int
) -> None:
    opened, before = session(name, compile_model(hard), threads=threads), signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = opened.solve(time_limit_s=120)
    assert outcome.status is Status.INTERRUPTED
    assert outcome.run_time < 60
    assert outcome.x is not None
    assert outcome.bound > outcome.objective
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
@each
def test_should_stop_and_exceptions_of_the_caller(hard: Any, capfd: pytest.CaptureFixture[str], name: str) -> None:
    opened = session(name, compile_model(hard))
    began = time.monotonic()
    outcome = opened.solve(time_limit_s=120, should_stop=lambda: time.monotonic() - began > 0.3)
    assert outcome.status is Status.INTERRUPTED
    assert outcome.run_time < 60

    def fail(*_: Any) -> None:
        message = "mine"
        raise RuntimeError(message)

    for words in ({"on_incumbent": fail}, {"should_stop": fail}):
        with pytest.raises(RuntimeError, match="mine"):
            opened.solve(time_limit_s=120, **words)
    assert capfd.readouterr() == ("", "")
    assert opened.solve(time_limit_s=0.5).status is Status.FEASIBLE
