"""Loops of cuts: the same optimum as the program with all rows, and an end that says why."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.solvers import Status, cutting_planes, solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
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


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
def test_the_optimum_is_that_of_enumeration(solver: str, capsys: pytest.CaptureFixture[str]):
    if not SOLVERS[solver].is_licensed:
        pytest.skip(f"{solver} is not here")
    n_cuts = 0
    for seed in range(4):
        (m, separate), shortest = tour(8, seed)
        found = cutting_planes(m, separate, solver=solver, progress=seed == 0)
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


def test_a_cut_that_cuts_nothing_off_ends_the_loop_and_is_named():
    m = box()
    found = cutting_planes(m, lambda _: m.x[1] + m.x[2] <= 8)
    assert (found.status, found.solution, len(found.rounds), found.cuts) == (Status.ERROR, None, 1, ())
    assert "'cuts[1]' does not cut off the solution" in found.message
    assert found.bound == pytest.approx(8)


def test_cuts_may_make_it_infeasible_and_constraints_may_be_ones_own():
    m = box()
    m.mine = pyo.ConstraintList()

    def separate(solution: Any) -> Any:
        assert solution["x[1]"] == m.x[1].value
        return [m.mine.add(m.x[1] + m.x[2] <= solution.objective - 2), m.x[1] >= 1]

    found = cutting_planes(m, separate)
    assert found.status is Status.INFEASIBLE
    assert (found.solution, found.bound) == (None, None)
    assert found.cuts[0] is m.mine[1]
    assert solve(m).status is Status.INFEASIBLE


def test_an_unbounded_relaxation_proves_nothing():
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    m.cost = pyo.Objective(expr=m.x)
    found = cutting_planes(m, lambda _: m.x >= 0)
    assert found.status is Status.ERROR
    assert "unbounded. Bound its Vars" in found.message


def test_misuse_and_errors_of_the_separation_are_the_callers():
    m = box()
    with pytest.raises(InvalidTypeError, match="separate needs to return cuts"):
        cutting_planes(m, lambda _: 3)
    with pytest.raises(InvalidTypeError, match="separate"):
        cutting_planes(m, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="most_rounds"):
        cutting_planes(m, lambda _: None, most_rounds=0)
    with pytest.raises(InvalidValueError, match=r"'x\[1\]' gets 7"):
        cutting_planes(m, lambda _: None, start=pyo.ComponentMap([(m.x[1], 7)]))

    def fails(_: Any) -> Any:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        cutting_planes(m, fails)
