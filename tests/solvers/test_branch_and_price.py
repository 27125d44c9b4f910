"""Branch and price: the optimum is that of the program with all columns; bounds hold at whatever end."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

from ceopt.solvers import Status, solve
from ceopt.solvers.branch_and_price import BranchAndPrice
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.problem import Outcome, Stop

GAP = 1e-6


def stated(points: Any, prices: Any, level: float, few: int, *, whole: int) -> Any:
    """Cheapest x near 0 with a sum of at least a level in the hull of the first few points."""
    d = points.shape[1]
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(d), bounds=(-9, 9))
    for j in range(whole):
        m.x[j].domain = pyo.Integers
    m.size = pyo.Var(range(d), bounds=(0, None))
    m.weight = pyo.Var(range(few), bounds=(0.0, 1.0))
    m.share = pyo.Constraint(expr=sum(m.weight.values()) == 1.0)
    m.point = pyo.Constraint(
        range(d), rule=lambda m, j: m.x[j] == sum(float(points[i, j]) * m.weight[i] for i in range(few))
    )
    m.up = pyo.Constraint(range(d), rule=lambda m, j: m.size[j] >= m.x[j])
    m.down = pyo.Constraint(range(d), rule=lambda m, j: m.size[j] >= -m.x[j])
    m.level = pyo.Constraint(expr=sum(m.x.values()) >= level)
    m.cost = pyo.Objective(expr=sum(float(price) * m.size[j] for j, price in enumerate(prices)))
    return m


def columns_of_the_rest(m: Any, compiled: CompiledModel, points: Any) -> Any:
    """The columns of the weights of all points after the few."""
    few, d = len(m.weight), points.shape[1]
    rows = {id(row): place for place, row in enumerate(compiled.rows)}
    more = sp.lil_array((len(compiled.rows), len(points) - few))
    more[rows[id(m.share)]] = 1.0
    for j in range(d):
        row = rows[id(m.point[j])]
        more[row] = -points[few:, j] * np.sign(compiled.A[row, compiled.index[m.x[j]]])
    return more


def ran(compiled: CompiledModel, more: Any, seconds: float = 60.0) -> Outcome | None:
    return BranchAndPrice(compiled, more, relative_gap=GAP, deadline=time.perf_counter() + seconds).run()


@draws(60)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 4), count=st.integers(3, 40), share=st.floats(0.0, 1.0))
def test_the_optimum_is_that_of_all_columns(seed: int, d: int, count: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    points = np.round(rng.normal(0.0, 3.0, (count, d)), int(rng.integers(0, 3)))
    prices = rng.choice([0.5, 1.0, 1.0, 3.0], d)
    whole, few = round(share * d), int(rng.integers(1, 3))
    level = float(rng.uniform(0.0, 1.2) * points.sum(axis=1).max())
    expected = solve(stated(points, prices, level, count, whole=whole), "highs")
    m = stated(points, prices, level, few, whole=whole)
    compiled = compile_model(m)
    found = ran(compiled, columns_of_the_rest(m, compiled, points))
    if expected.status is not Status.OPTIMAL:
        assert expected.status is Status.INFEASIBLE
        assert found is None
        return
    assert found is not None
    assert found.status is Stop.OPTIMAL
    assert found.objective == pytest.approx(expected.objective, rel=1e-5, abs=1e-5)
    assert found.bound is not None
    assert found.bound <= expected.objective + 1e-5 * max(1.0, abs(expected.objective))
    assert found.x is not None
    values = np.array([found.x[compiled.index[x]] for x in m.x.values()])
    assert values[:whole] == pytest.approx(np.round(values[:whole]), abs=1e-9)
    assert values.sum() >= level - 1e-6


@pytest.mark.parametrize("end", [1, 3, 6, 10, 20, 40])
@pytest.mark.parametrize("seed", range(4))
def test_a_bound_holds_wherever_it_ends(seed: int, end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that counts how often it is looked at."""
    rng = np.random.default_rng(seed)
    points = np.round(rng.normal(0.0, 3.0, (60, 4)), 1)
    level = 0.8 * float(points.sum(axis=1).max())
    m = stated(points, [1.0, 2.0, 1.0, 0.5], level, 2, whole=4)
    compiled = compile_model(m)
    more = columns_of_the_rest(m, compiled, points)
    best = ran(compiled, more)
    assert best is not None
    assert best.status is Stop.OPTIMAL
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    found = BranchAndPrice(compiled, more, relative_gap=GAP, deadline=float(end)).run()
    assert best.objective is not None
    if found is not None:
        assert found.bound is not None
        assert found.bound <= best.objective + 1e-6
    if found is not None and found.objective is not None:
        assert found.objective >= best.objective - 1e-6
        assert (found.status is Stop.OPTIMAL) == (found.objective <= found.bound * (1.0 + 2.0 * GAP))


def test_there_is_nothing_where_no_point_of_the_hull_reaches_the_level() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.4, 0.4]])
    for whole in (0, 1, 2):
        m = stated(points, [1.0, 1.0], 1.5, 1, whole=whole)
        compiled = compile_model(m)
        assert ran(compiled, columns_of_the_rest(m, compiled, points)) is None
