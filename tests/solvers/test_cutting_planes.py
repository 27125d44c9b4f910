"""Loops of cuts, in rounds and inside one search: the optimum of the program with all rows, an end that says why."""

from __future__ import annotations

import gc
import itertools
import re
import signal
import time
import weakref
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st

from ceopt.solvers import Status, compile_model, cutting_planes, solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedProblemError
from ceopt.solvers.registry import SOLVERS


def tour(n: int, seed: int) -> tuple[Any, Any]:
    """A symmetric tour: degrees are rows, subtours are cut off; and the separation, on whole points."""
    places = np.random.default_rng(seed).uniform(size=(n, 2))
    m = pyo.ConcreteModel()
    m.pairs = pyo.Set(initialize=list(itertools.combinations(range(n), 2)))
    m.edge = pyo.Var(m.pairs, domain=pyo.Binary)
    m.degree = pyo.Constraint(range(n), rule=lambda m, i: sum(m.edge[p] for p in m.pairs if i in p) == 2)
    m.length = pyo.Objective(expr=sum(float(np.linalg.norm(places[i] - places[j])) * m.edge[i, j] for i, j in m.pairs))

    def separate(_solution: Any) -> Any:
        part = {0}
        while True:
            further = {k for p in m.pairs if m.edge[p].value > 0.5 and part & set(p) for k in p} - part
            if not further:
                break
            part |= further
        if len(part) == n:
            return None
        return sum(m.edge[p] for p in m.pairs if len(part & set(p)) == 1) >= 2

    shortest = min(
        sum(float(np.linalg.norm(places[a] - places[b])) for a, b in itertools.pairwise((0, *order, 0)))
        for order in itertools.permutations(range(1, n))
    )
    return (m, separate), shortest


@pytest.fixture(params=["highs", "scip", "gurobi"])
def solver(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not SOLVERS[name].is_licensed:
        pytest.skip(f"{name} is not here")
    return name


@pytest.fixture(params=["scip", "gurobi"])
def lazy_solver(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not SOLVERS[name].is_licensed:
        pytest.skip(f"{name} is not here")
    return name


def test_the_optimum_is_that_of_enumeration(solver: str, capsys: pytest.CaptureFixture[str]):
    n_cuts = 0
    for seed in range(4):
        (m, separate), shortest = tour(8, seed)
        found = cutting_planes(m, separate, solver=solver, progress=seed == 0, lazy=False)
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(shortest)
        assert found.bound == pytest.approx(shortest)
        assert found.gap <= 1e-6
        assert pyo.value(m.length) == pytest.approx(shortest)
        assert len(found.rounds) == len(found.cuts) + 1
        assert [one.n_cuts for one in found.rounds] == [1] * len(found.cuts) + [0]
        bounds = [one.bound for one in found.rounds]
        assert bounds == sorted(bounds)
        n_cuts += len(found.cuts)
        if seed == 0:
            assert capsys.readouterr().err.count("round ") == len(found.rounds)
    assert n_cuts > 3


def test_one_search_finds_the_optimum_of_enumeration(lazy_solver: str, capsys: pytest.CaptureFixture[str]):
    n_cuts = 0
    for seed in range(4):
        (m, separate), shortest = tour(7, seed)
        found = cutting_planes(m, separate, solver=lazy_solver, progress=True)
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(shortest)
        assert found.bound == pytest.approx(shortest)
        assert pyo.value(m.length) == pytest.approx(shortest)
        assert [one.n_cuts for one in found.rounds] == [len(found.cuts)]
        assert solve(m, "highs").objective == pytest.approx(shortest)  # the cuts are in the model
        lines = capsys.readouterr().err.splitlines()
        assert sum(line.startswith("round 1") for line in lines) == 1
        assert sum(line.startswith("candidate: objective ") for line in lines) == len(lines) - 1
        n_cuts += len(found.cuts)
    assert n_cuts > 3


def hidden_rows(seed: int, *, is_hidden: bool) -> tuple[Any, Any]:
    """A program whose last rows are hidden; and the separation, which adds one that is broken, the worst, or all."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 9))
    size = int(draw.choice([1, 3, 10]))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(n), bounds=(-size if draw.random() < 0.4 else 0, size))
    for j in range(int(draw.integers(1, n + 1))):
        m.x[j].domain = pyo.Integers
    m.rows = pyo.ConstraintList()

    def row() -> Any:
        weights = draw.integers(-5, 6, n) * (draw.random(n) < 0.5)
        side = float(np.round(weights @ draw.uniform(-size, size, n) / 2 + draw.integers(0, 4), 1))
        body = pyo.quicksum(int(a) * m.x[j] for j, a in enumerate(weights) if a)
        return None if not weights.any() else (side - 2, body, side) if draw.random() < 0.2 else body <= side

    rows = [one for one in (row() for _ in range(int(draw.integers(2, 10)))) if one is not None]
    hidden = rows[len(rows) // 2 :] if is_hidden else []
    for one in rows[: len(rows) - len(hidden)]:
        m.rows.add(one)
    scale = float(draw.choice([1e-3, 1.0, 1e3]))
    costs = draw.integers(-6, 7, n) * (draw.random(n) < 0.8)
    m.cost = pyo.Objective(
        expr=1 + pyo.quicksum(scale * int(c) * m.x[j] for j, c in enumerate(costs)),
        sense=pyo.minimize if draw.random() < 0.5 else pyo.maximize,
    )
    most = int(draw.integers(1, 4))

    def separate(_solution: Any) -> Any:
        broken = []
        for one in hidden:
            low, body, high = one if isinstance(one, tuple) else (-np.inf, *one.args)
            excess = max(low - pyo.value(body), pyo.value(body) - high)
            if excess > 1e-5:
                broken.append((excess, one))
        broken.sort(key=lambda pair: -pair[0])
        return [m.rows.add(one) for _, one in broken[:most]]

    return m, separate


@pytest.mark.parametrize("name", ["scip", "gurobi"])
@draws(300)
@given(seed=st.integers(0, 10_000))
def test_hidden_rows_hold_in_one_search_as_in_rounds(name: str, seed: int):
    if not SOLVERS[name].is_licensed:
        pytest.skip(f"{name} is not here")
    m, _ = hidden_rows(seed, is_hidden=False)
    full = solve(m, "highs")
    for lazy in (True, False):
        m, separate = hidden_rows(seed, is_hidden=True)
        has_all = len(compile_model(m).columns) == len(m.x)  # those of hidden rows alone join it between two searches
        found = cutting_planes(m, separate, solver=name, lazy=lazy)
        assert found.status is full.status
        if full.objective is not None:
            assert found.objective == pytest.approx(full.objective, rel=1e-6, abs=1e-6)
            assert found.bound == pytest.approx(full.objective, rel=2e-6, abs=1e-6)
        assert len(found.rounds) == 1 or not (lazy and has_all)


def test_what_no_search_takes_ends_it_and_is_left_to_rounds(lazy_solver: str):
    m = box()
    m.further = pyo.Var(bounds=(0, 9))

    def separate(_solution: Any) -> Any:
        total = m.x[1].value + m.x[2].value
        if m.further.value is None and total > 6:
            return [m.x[1] + m.x[2] <= 7.5, m.x[1] + m.x[2] + m.further <= 7]
        if total > 4.5:
            return m.x[1] ** 2 + m.x[2] ** 2 <= 9
        return None

    found = cutting_planes(m, separate, solver=lazy_solver)
    best = max(a + b for a in range(5) for b in range(5) if a * a + b * b <= 9)
    assert (found.status, found.objective) == (Status.OPTIMAL, best)
    assert found.rounds[0].status is Status.INTERRUPTED
    assert sum(one.n_cuts for one in found.rounds) == len(found.cuts)
    assert m.further.value is not None


def test_rows_of_extreme_numbers_are_left_to_rounds(lazy_solver: str):
    m = box()
    m.rate = pyo.Var(bounds=(0, 1))
    m.used = pyo.Constraint(expr=m.rate <= m.x[1])

    def separate(_solution: Any) -> Any:
        return 1e9 * (m.x[1] + m.x[2]) + 1e-3 * m.rate <= 5e9 if m.x[1].value + m.x[2].value > 5.5 else None

    found = cutting_planes(m, separate, solver=lazy_solver)
    assert found.objective == pytest.approx(5)
    assert found.rounds[0].status is Status.INTERRUPTED


def test_programs_without_integers_or_with_squares_are_cut_in_rounds(lazy_solver: str):
    for kind in (pyo.Reals, pyo.Integers):
        m = box()
        for var in m.x.values():
            var.domain = kind
        if kind is pyo.Integers:
            m.gain.set_value(m.x[1] + m.x[2] - 0.01 * (m.x[1] - 3) ** 2)
        found = cutting_planes(
            m, lambda _, m=m: m.x[1] + m.x[2] <= 5 if m.x[1].value + m.x[2].value > 5 + 1e-6 else None,
            solver=lazy_solver,
        )  # fmt: skip
        assert found.status is Status.OPTIMAL
        assert [one.n_cuts for one in found.rounds] == [1, 0]


def test_limits_and_an_interrupt_end_one_search(lazy_solver: str):
    (m, separate), shortest = tour(8, 1)

    def late(solution: Any) -> Any:
        time.sleep(0.3)
        return separate(solution)

    found = cutting_planes(m, late, solver=lazy_solver, time_limit_s=0.2)
    assert found.status in {Status.TIME_LIMIT, Status.FEASIBLE}
    assert found.bound is None or found.bound <= shortest + 1e-9

    (m, separate), _ = tour(8, 1)

    def pressed(solution: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return separate(solution)

    found = cutting_planes(m, pressed, solver=lazy_solver)
    assert (found.status, found.solution) == (Status.INTERRUPTED, None)


def test_a_program_may_be_solved_inside_the_separation(lazy_solver: str):
    """An adversary's own program, on the same solver, without the limit of the search around it."""
    (m, separate), shortest = tour(7, 2)

    def asks(solution: Any) -> Any:
        other = box()
        assert solve(other, lazy_solver).objective == 8
        return separate(solution)

    found = cutting_planes(m, asks, solver=lazy_solver, time_limit_s=60)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(shortest)


def test_a_start_is_asked_about_too(lazy_solver: str):
    m = box()
    start = pyo.ComponentMap([(m.x[1], 4), (m.x[2], 4)])
    separate = lambda _: m.x[1] + m.x[2] <= 6 if m.x[1].value + m.x[2].value > 6 else None  # noqa: E731
    found = cutting_planes(m, separate, solver=lazy_solver, start=start)
    assert (found.status, found.objective, found.bound, len(found.cuts)) == (Status.OPTIMAL, 6, 6, 1)


def test_a_limit_of_rounds_keeps_the_bound_and_claims_no_solution():
    (m, separate), shortest = tour(8, 1)
    full = cutting_planes(m, separate)
    (m, separate), _ = tour(8, 1)
    cut_short = cutting_planes(m, separate, most_rounds=1)
    assert len(full.rounds) > 1
    assert cut_short.status is Status.TIME_LIMIT
    assert (cut_short.solution, cut_short.objective) == (None, None)
    assert cut_short.bound <= shortest + 1e-9
    assert "limit of 1 rounds" in cut_short.message
    late = cutting_planes(m, separate, time_limit_s=1e-9)
    assert (late.status, late.rounds) == (Status.TIME_LIMIT, ())


def box() -> Any:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(0, 4), domain=pyo.Integers)
    m.gain = pyo.Objective(expr=m.x[1] + m.x[2], sense=pyo.maximize)
    return m


def test_a_cut_that_cuts_nothing_off_ends_the_loop_and_is_named(solver: str):
    m = box()
    found = cutting_planes(m, lambda _: m.x[1] + m.x[2] <= 8, solver=solver)
    assert (found.status, found.solution, len(found.rounds)) == (Status.ERROR, None, 1)
    assert re.search(r"'cuts\[\d+\]' does not cut off the solution .* more than 1e-06 of its side", found.message)
    assert found.bound == pytest.approx(8)
    assert found.cuts == () or solver != "highs"


def test_cuts_may_make_it_infeasible_and_constraints_may_be_ones_own(solver: str):
    m = box()
    m.mine = pyo.ConstraintList()

    def separate(solution: Any) -> Any:
        assert solution["x[1]"] == m.x[1].value
        return [m.mine.add(m.x[1] + m.x[2] <= solution.objective - 2), m.x[1] >= 1]

    found = cutting_planes(m, separate, solver=solver)
    assert found.status is Status.INFEASIBLE
    assert (found.solution, found.bound) == (None, None)
    assert found.cuts[0] is m.mine[1]
    assert solve(m).status is Status.INFEASIBLE


def test_an_unbounded_relaxation_proves_nothing():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers)
    m.cost = pyo.Objective(expr=m.x)
    found = cutting_planes(m, lambda _: m.x >= 0)
    assert found.status is Status.ERROR
    assert "unbounded. Bound its Vars" in found.message


def test_misuse_and_errors_of_the_separation_are_the_callers(solver: str):
    m = box()
    with pytest.raises(InvalidTypeError, match="separate needs to return cuts"):
        cutting_planes(m, lambda _: 3, solver=solver)
    with pytest.raises(InvalidTypeError, match="lazy"):
        cutting_planes(m, lambda _: None, lazy=1)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedProblemError, match="linear, quadratic and conic"):
        cutting_planes(m, lambda _: pyo.sin(m.x[1]) >= 0.1, solver=solver)
    stray = pyo.ConcreteModel()
    stray.y = pyo.Var(bounds=(0, 1))
    m = box()
    with pytest.raises(UnsupportedProblemError, match="'y' belongs to none"):
        cutting_planes(m, lambda _: m.x[1] + stray.y <= 1, solver=solver)
    m = box()
    with pytest.raises(InvalidTypeError, match="separate"):
        cutting_planes(m, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="most_rounds"):
        cutting_planes(m, lambda _: None, most_rounds=0)
    with pytest.raises(InvalidValueError, match=r"'x\[1\]' gets 7"):
        cutting_planes(m, lambda _: None, start=pyo.ComponentMap([(m.x[1], 7)]))

    def fails(_: Any) -> Any:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        cutting_planes(m, fails, solver=solver)


def test_scip_keeps_no_program_of_a_search_that_has_ended(monkeypatch: pytest.MonkeyPatch):
    scip = pytest.importorskip("ceopt.solvers.scip")
    pytest.importorskip("pyscipopt")
    attached = []
    attach = scip.attach_lazy_rows

    def noted(*arguments: Any) -> Any:
        handler = attach(*arguments)
        attached.append(weakref.ref(handler))
        return handler

    monkeypatch.setattr(scip, "attach_lazy_rows", noted)
    m = box()
    gc.collect()
    gc.disable()
    try:
        cutting_planes(m, lambda _: m.x[1] + m.x[2] <= 5 if m.x[1].value + m.x[2].value > 5 else None, solver="scip")
        assert [handler() for handler in attached] == [None]
    finally:
        gc.enable()
