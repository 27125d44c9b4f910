"""Gurobi: optima against enumeration, closed forms and HiGHS, limits, pools, interruption, licence, processes."""

from __future__ import annotations

import gc
import itertools
import math
import os
import subprocess
import threading
import weakref
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.solvers import Status, compile_model
from ceopt.solvers import gurobi as adapter
from ceopt.solvers import gurobi as gurobi_licence
from ceopt.solvers.adapter import status_of
from ceopt.solvers.cones import exponential, psd, rotated_soc, soc
from ceopt.solvers.errors import (
    CeoptError,
    InvalidValueError,
    MissingLicenceError,
    UnknownNameError,
    UnsupportedProblemError,
)
from ceopt.solvers.gurobi import STOP, GurobiSession, finer_units, is_missed_for_good, licence, misses, name_of
from ceopt.solvers.highs import HighsSession
from ceopt.solvers.registry import Licence

gurobipy = pytest.importorskip("gurobipy")
pytestmark = pytest.mark.skipif(bool(licence().why_not), reason=licence().why_not)
limited = pytest.mark.skipif(not licence().limits, reason="this licence has no limit of size")


def solved(model: Any, **words: Any) -> Any:
    return GurobiSession(compile_model(model)).solve(**words)


# ---- optima ----------------------------------------------------------------------------------------------------------
def feasible_binaries(compiled: Any) -> tuple[Any, Any]:
    points = np.array(list(itertools.product([0.0, 1.0], repeat=len(compiled.columns))))
    activity = points @ compiled.A.toarray().T
    fine = ((activity >= compiled.row_lb) & (activity <= compiled.row_ub)).all(axis=1)
    return points[fine], np.array([compiled.evaluate(point) for point in points[fine]])


@pytest.mark.parametrize("whole", [True, False])
def test_small_costs_beside_great_ones_are_still_minimised(whole):
    """The optimum is 1e-8, beside a cost of 1000: far below Gurobi's absolute tolerance."""
    weight, cost = np.random.default_rng(4).uniform(1, 2, (2, 12)).tolist()
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(12), bounds=(0, 1), domain=pyo.Binary if whole else pyo.Reals)
    m.penalty = pyo.Var(bounds=(0, 1), domain=pyo.Binary if whole else pyo.Reals)
    m.need = pyo.Constraint(expr=sum(w * m.y[j] for j, w in enumerate(weight)) >= sum(weight) / 2)
    m.o = pyo.Objective(expr=sum(1e-9 * c * m.y[j] for j, c in enumerate(cost)) + 1000 * m.penalty)
    compiled = compile_model(m)
    outcome = GurobiSession(compiled).solve()
    if whole:
        _, values = feasible_binaries(compiled)
        best = values.min()
    else:  # fractional: the cheapest per weight first
        best, left = 0.0, sum(weight) / 2
        for ratio, j in sorted((c / w, j) for j, (c, w) in enumerate(zip(cost, weight, strict=True))):
            share = min(1.0, left / weight[j])
            best, left = best + 1e-9 * ratio * weight[j] * share, left - share * weight[j]
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(best, rel=1e-6, abs=0)


def _random_rows(seed: int, domain: Any = pyo.Reals) -> Any:
    """Ranges, equalities, one-sided and empty rows, fixed and free columns, over 9 columns."""
    rng = np.random.default_rng(seed)
    a, at, c = rng.normal(size=(6, 9)).round(2), rng.uniform(-1, 2, 9).round(), rng.normal(size=9)
    value = a @ at
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(9), bounds=(-1, 2), domain=domain)
    row = [sum(float(a[i, j]) * m.x[j] for j in range(9)) for i in range(6)]
    m.range = pyo.Constraint([0, 1], rule=lambda _, i: (float(value[i]) - 0.3, row[i], float(value[i]) + 0.2))
    m.equal = pyo.Constraint(expr=row[2] == float(value[2])) if domain is pyo.Reals else pyo.Constraint(pyo.Any)
    m.low = pyo.Constraint(expr=row[3] >= float(value[3]) - 0.1)
    m.high = pyo.Constraint(expr=row[4] <= float(value[4]) + 0.1)
    m.free = pyo.Constraint(expr=(-math.inf, row[5], math.inf))
    m.x[8].setlb(float(at[8]))
    m.x[8].setub(float(at[8]))
    m.o = pyo.Objective(expr=sum(float(c[j]) * m.x[j] for j in range(9)) + 3, sense=pyo.maximize)
    return m


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("domain", [pyo.Reals, pyo.Integers])
def test_rows_of_every_kind_as_in_highs(seed, domain):
    compiled = compile_model(_random_rows(seed, domain))
    ours, theirs = GurobiSession(compiled).solve(), HighsSession(compiled).solve()
    assert ours.status is theirs.status is Status.OPTIMAL
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-7)
    assert ours.bound == pytest.approx(ours.objective, rel=1e-6)
    assert ours.violation < 1e-8


def test_ranges_cost_rows_but_no_columns():
    compiled = compile_model(_random_rows(0))
    inner = GurobiSession(compiled)._handed.inner
    inner.update()
    assert (inner.NumVars, inner.NumConstrs) == (9, 2 + 2 + 1 + 1 + 1)  # the free row costs none


@pytest.mark.parametrize("seed", range(6))
def test_convex_quadratic_programs_as_in_highs(seed):
    rng = np.random.default_rng(seed)
    a, root, c = rng.normal(size=(5, 8)), rng.normal(size=(6, 8)), rng.normal(size=8)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(8), bounds=(-3, 3))
    m.r = pyo.Constraint(range(5), rule=lambda m, i: sum(float(a[i, j]) * m.x[j] for j in range(8)) >= 0.5)
    part = [sum(float(root[k, j]) * m.x[j] for j in range(8)) for k in range(6)]
    m.o = pyo.Objective(expr=-sum(p**2 for p in part) + sum(float(c[j]) * m.x[j] for j in range(8)), sense=pyo.maximize)
    ours, theirs = solved(m), HighsSession(compile_model(m)).solve()
    assert ours.status is theirs.status is Status.OPTIMAL
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_nonconvex_objectives_over_integers_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(5, 5)).tolist()
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(5), domain=pyo.Integers, bounds=(-1, 1))
    m.o = pyo.Objective(expr=sum(q[i][j] * m.x[i] * m.x[j] for i in range(5) for j in range(5)) + sum(m.x.values()))
    compiled = compile_model(m)
    best = min(compiled.evaluate(np.array(x)) for x in itertools.product([-1.0, 0.0, 1.0], repeat=5))
    outcome = GurobiSession(compiled).solve()
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(best, rel=1e-6)


def test_a_concave_objective_has_its_optimum_at_a_vertex():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(-1, 2))
    m.r = pyo.Constraint(expr=m.x[0] + m.x[1] + m.x[2] <= 3)
    m.o = pyo.Objective(expr=-sum((k + 1) * (m.x[k] - 0.4) ** 2 for k in range(3)))
    outcome = solved(m)  # at (-1, 2, 2), since -1.4^2 is more than moving another down
    assert outcome.objective == pytest.approx(-(1.4**2) - 2 * 1.6**2 - 3 * 1.6**2, rel=1e-6)
    assert outcome.status is Status.OPTIMAL


def test_nonconvex_rows_equalities_and_two_sides():
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(0, None))
    m.o = pyo.Objective(expr=m.x)
    m.product, m.ring = pyo.Constraint(expr=m.x * m.y == 2), pyo.Constraint(expr=(1, m.x**2 + m.y**2, 8))
    outcome = solved(m)  # x^2 + 4 / x^2 <= 8
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(math.sqrt(4 - math.sqrt(12)), rel=1e-5)
    m.o.sense = pyo.maximize
    assert solved(m).objective == pytest.approx(math.sqrt(4 + math.sqrt(12)), rel=1e-5)


# ---- distances: closed forms, down to nothing ------------------------------------------------------------------------
def _distance(kind: str, far: float, seed: int, *, choice: bool) -> tuple[Any, float]:
    """The distance of a point from a half-space, or 0.3 of it more where a binary must choose that half-space."""
    rng = np.random.default_rng(seed)
    a, x0 = rng.normal(size=(2, 5))
    length = float(np.linalg.norm(a))
    m = pyo.ConcreteModel()
    m.x, m.t = pyo.Var(range(5), bounds=(-100, 100)), pyo.Var(bounds=(0, None))
    m.z = pyo.Var(domain=pyo.Binary if choice else pyo.UnitInterval)
    side = float(a @ x0) + far * length + (far * length * m.z if choice else 0.0)
    m.c = pyo.Constraint(expr=sum(float(a[i]) * m.x[i] for i in range(5)) >= side)
    move = [m.x[i] - float(x0[i]) for i in range(5)]
    power, penalty = (2, 0.3 * far**2 * (1 - m.z)) if kind in {"squares", "rotated"} else (1, 0.3 * far * (1 - m.z))
    penalty = penalty if choice else 0.0
    if kind == "cone":
        m.k = pyo.Constraint(expr=soc(m.t, move) >= 0)
    elif kind == "offset":
        m.k = pyo.Constraint(expr=soc(m.t, [*move, 0.75 * far]) >= 0)
    elif kind == "row":
        m.v = pyo.Var(range(5))
        m.e = pyo.Constraint(range(5), rule=lambda m, i: m.v[i] == move[i])
        m.k = pyo.Constraint(expr=sum(m.v[i] ** 2 for i in range(5)) <= m.t**2)
    elif kind == "rotated":
        m.k = pyo.Constraint(expr=rotated_soc(m.t, 0.5, move) >= 0)
    else:
        m.v = pyo.Var(range(5))
        m.e = pyo.Constraint(range(5), rule=lambda m, i: m.v[i] == move[i])
    cost = sum(m.v[i] ** 2 for i in range(5)) if kind == "squares" else m.t
    m.o = pyo.Objective(expr=-cost - penalty, sense=pyo.maximize) if seed % 2 else pyo.Objective(expr=cost + penalty)
    best = far**power * ((1.25 if kind == "offset" else 1.0) + (0.3 if choice else 0.0))
    return m, -best if seed % 2 else best


@pytest.mark.long(every=14)
@pytest.mark.parametrize("kind", ["cone", "offset", "row", "rotated", "squares"])
@pytest.mark.parametrize("far", [10.0, 1.0, 1e-2, 1e-4, 1e-6, 0.0])
@pytest.mark.parametrize("choice", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_distance_is_right_however_small(kind, far, choice, seed):
    """Gurobi's tolerances are absolute: on t^2 >= |v|^2 they would let a distance of 1e-4 pass as 0."""
    model, best = _distance(kind, far, seed, choice=choice)
    outcome = solved(model, time_limit_s=60)
    if abs(best) == pytest.approx(1e-12, rel=0.5) and outcome.status is Status.FEASIBLE:
        assert outcome.message == "Gurobi stopped: suboptimal."  # what counts as 0, and some are not told from it
        return
    assert outcome.status is Status.OPTIMAL, outcome.message
    assert outcome.objective == pytest.approx(best, rel=1e-6, abs=1e-10 if far == 0 else 0)
    assert outcome.bound == pytest.approx(best, rel=2e-6, abs=1e-10 if far == 0 else 0)
    assert outcome.violation < 1e-6


@pytest.mark.parametrize("kind", ["cone", "offset", "row"])
@pytest.mark.parametrize("seed", range(4))
def test_a_row_that_is_missed_is_handed_over_in_finer_units(kind, seed):
    """With a coarse tolerance, the first answer to a distance of 0.03 is a tenth too small."""
    model, best = _distance(kind, 0.03, seed, choice=True)
    outcome = GurobiSession(compile_model(model), options={"FeasibilityTol": 1e-5}).solve(relative_gap=1e-4)
    assert outcome.status is Status.OPTIMAL, outcome.message
    assert outcome.objective == pytest.approx(best, rel=1e-4)
    assert outcome.incumbents[-1][1] == pytest.approx(outcome.objective, rel=1e-5)  # no false one is streamed


def test_a_row_is_missed_relative_to_its_terms_unless_these_are_nothing():
    m = pyo.ConcreteModel()
    m.t, m.x = pyo.Var(bounds=(0, None)), pyo.Var()
    m.row = pyo.Constraint(expr=m.x**2 <= m.t**2)
    row = compile_model(m).quadratics[0]
    for t, x, missed, for_good in (
        (1.0, 1.0, False, False),
        (1.0, 1.0 + 1e-9, False, False),
        (1.0, 1.0 + 1e-6, True, True),
        (0.0, 1e-5, True, True),
        (0.0, 1e-12, True, False),
        (0.0, 0.0, False, False),
    ):
        at = np.array([t, x]) if compile_model(m).columns[0] is m.t else np.array([x, t])
        assert (misses(row, at, 1e-6), is_missed_for_good(row, at, 1e-6)) == (missed, for_good)
        assert finer_units([row], at, (1.0,), 1e-6)[0] >= (0.5 if not missed else min(0.25 / max(x, 1e-6) ** 2, 2**40))


def _shifted_cone() -> Any:
    """A cone beside two integers without bounds; Gurobi's presolve cut its optimum off."""
    m = pyo.ConcreteModel()
    m.t, m.x = pyo.Var(bounds=(0, None)), pyo.Var(range(5))
    for k in (0, 1, 3):
        m.x[k].domain = pyo.Integers
    m.x[0].setlb(-1)
    m.x[2].setub(2)
    m.x[3].setlb(-4)
    m.x[3].setub(-4)
    x = [m.x[k] for k in range(5)]

    def affine(*factors: int, constant: int = 0) -> Any:
        return sum(f * v for f, v in zip(factors, x, strict=True)) + constant

    heads = affine(2, -2, -3, 0, -1), affine(-3, -2, -4, 3, 4)
    m.c = pyo.Constraint(expr=rotated_soc(*heads, [affine(3, 4, 3, 0, -3, constant=2)]) >= 0)
    body = [affine(1, 3, 1, -3, -4), affine(-1, 4, 4, -4, -1), affine(-3, -3, 2, 2, -2)]
    m.d = pyo.Constraint(expr=soc(m.t, body) >= 0)
    m.o = pyo.Objective(expr=affine(1, 0, 3, 3, 4, constant=-2) - m.t, sense=pyo.maximize)
    return m


@pytest.mark.parametrize("options", [{}, {"Heuristics": 0.0}, {"DualReductions": 1, "Aggregate": 1}])
def test_integers_without_bounds_beside_a_cone_have_their_true_optimum(options):
    """With all presolve, -12.44 was called optimal, and without heuristics the program unbounded."""
    m = _shifted_cone()
    outcome = GurobiSession(compile_model(m), options=options).solve(time_limit_s=60)
    m.x[0].fix(10)
    m.x[1].fix(-1)
    best = solved(m)
    assert (outcome.status, best.status) == (Status.OPTIMAL, Status.OPTIMAL)
    assert best.objective == pytest.approx(-10.977065, abs=1e-6)
    assert outcome.objective == pytest.approx(best.objective, rel=1e-6)


def _two_parabolas() -> tuple[Any, float]:
    m = _free(x=(-6, -4), y=(-2, 6))
    m.c = pyo.Constraint(expr=m.y**2 + 4 * m.x <= 18)
    m.d = pyo.Constraint(expr=(2 * m.y - 3) ** 2 + 3 * m.x - 4 * m.y <= 5)
    m.o = pyo.Objective(expr=(4 * m.x + 3 * m.y) ** 2 - 4 * m.x - 3 * m.y)
    # At x = -4, where y is greatest: 4 y^2 - 16 y - 8 = 0.
    value = -16 + 3 * (2 + math.sqrt(6))
    return m, value**2 - value


def _ball_and_cone() -> tuple[Any, float]:
    m = _free(x=(-6, 4), y=(-3, 1))
    m.c = pyo.Constraint(expr=(4 * m.x + 4 * m.y) ** 2 + (3 * m.x - 4 * m.y) ** 2 - m.x + 3 * m.y <= 0)
    m.d = pyo.Constraint(expr=soc(m.x + 2 * m.y + 1, [m.x + m.y + 1]) >= 0)
    m.o = pyo.Objective(expr=2 * m.x - 3 * m.y - 7)
    return m, -7.0  # at the origin: the cone says y >= 0, and the row then 2 x >= 3 y


@pytest.mark.parametrize("build", [_two_parabolas, _ball_and_cone])
def test_cones_that_the_barrier_gives_up_on_are_proved_within_the_gap(build):
    m, best = build()
    compiled = compile_model(m)
    outcome = GurobiSession(compiled).solve()
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(best, rel=1e-7)
    assert outcome.bound == pytest.approx(best, rel=1e-6)


# ---- what cannot be --------------------------------------------------------------------------------------------------
def _free(**spans: tuple[float | None, float | None]) -> Any:
    m = pyo.ConcreteModel()
    for name, span in spans.items():
        m.add_component(name, pyo.Var(bounds=span))
    return m


def _integer_ray() -> Any:
    m = _free(x=(None, None), y=(0, 4))
    m.x.domain = m.y.domain = pyo.Integers
    m.c = pyo.Constraint(expr=m.x + 2 * m.y <= 7)
    m.o = pyo.Objective(expr=m.x - m.y)
    return m


def _linear_ray() -> Any:
    m = _integer_ray()
    m.x.domain = m.y.domain = pyo.Reals
    return m


def _quadratic_ray() -> Any:
    m = _free(x=(None, None), y=(None, None))
    m.c = pyo.Constraint(expr=m.x + m.y >= -1)
    m.o = pyo.Objective(expr=(m.x - 1) ** 2 - m.y)
    return m


def _conic_ray() -> Any:
    m = _free(t=(None, None), x=(None, None), y=(None, None))
    m.c = pyo.Constraint(expr=soc(m.t, [m.x, m.y]) >= 0)
    m.o = pyo.Objective(expr=m.x)
    return m


def _concave_ray() -> Any:
    m = _free(x=(None, None))
    m.o = pyo.Objective(expr=-(m.x**2))
    return m


def _parity() -> Any:
    """A ray, and no integers: the relaxation is unbounded."""
    m = _free(x=(None, None), y=(0, 5))
    m.x.domain = m.y.domain = pyo.Integers
    m.c = pyo.Constraint(expr=2 * m.y == 5)
    m.o = pyo.Objective(expr=m.x)
    return m


def _pigeons() -> Any:
    """Four pigeons in three holes: feasible as an LP, unbounded in x, infeasible in integers."""
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(domain=pyo.Integers), pyo.Var(range(4), range(3), domain=pyo.Binary)
    m.each = pyo.Constraint(range(4), rule=lambda m, p: sum(m.y[p, :]) == 1)
    m.hole = pyo.Constraint(range(3), rule=lambda m, h: sum(m.y[:, h]) <= 1 + 0.1 * m.y[0, 0])
    m.o = pyo.Objective(expr=m.x)
    return m


def _conflict() -> Any:
    m = _linear_ray()
    m.k = pyo.Constraint([1, 2], rule=lambda m, k: m.x + m.y == k)
    return m


def _disc_and_line() -> Any:
    m = _free(x=(None, None), y=(None, None), z=(None, None))
    m.c = pyo.Constraint(expr=m.x**2 + m.y**2 <= 1)
    m.d = pyo.Constraint(expr=m.x + m.y >= 2)
    m.o = pyo.Objective(expr=m.z)
    return m


def _product_too_large() -> Any:
    m = _free(x=(0, 1), y=(0, 1))
    m.c = pyo.Constraint(expr=m.x * m.y >= 1.5)
    m.o = pyo.Objective(expr=m.x)
    return m


@pytest.mark.parametrize("build", [_linear_ray, _integer_ray, _quadratic_ray, _conic_ray, _concave_ray])
@pytest.mark.parametrize("pool", [1, 3])
def test_unbounded_programs(build, pool):
    session = GurobiSession(compile_model(build()))
    for _ in range(2):
        outcome = session.solve(time_limit_s=20, pool=pool)
        assert outcome.status is Status.UNBOUNDED
        assert (outcome.x, outcome.objective, outcome.bound, outcome.pool) == (None, None, None, ())
        assert outcome.message


@pytest.mark.parametrize("build", [_parity, _pigeons, _conflict, _disc_and_line, _product_too_large])
@pytest.mark.parametrize("pool", [1, 3])
def test_infeasible_programs(build, pool):
    session = GurobiSession(compile_model(build()))
    for _ in range(2):
        outcome = session.solve(time_limit_s=20, pool=pool)
        assert outcome.status is Status.INFEASIBLE
        assert (outcome.x, outcome.objective, outcome.bound, outcome.pool) == (None, None, None, ())
        assert outcome.message


def test_every_status_of_gurobi_is_in_the_table():
    known = {name: getattr(gurobipy.GRB.Status, name) for name in dir(gurobipy.GRB.Status) if name[0] != "_"}
    assert set(known) <= set(STOP)  # those of later versions are kept for them
    assert {name: name_of(code) for name, code in known.items()} == {name: name for name in known}
    assert name_of(99) == "status 99"
    assert {status_of(STOP, name, has_point=True) for name in (*STOP, name_of(99))} >= {Status.OPTIMAL, Status.ERROR}
    assert [name for name in STOP if status_of(STOP, name, has_point=True) is Status.OPTIMAL] == ["OPTIMAL"]
    assert [name for name in STOP if status_of(STOP, name, has_point=False) is Status.OPTIMAL] == []
    assert status_of(STOP, name_of(99), has_point=True) is Status.ERROR


# ---- limits, starts, interruption ------------------------------------------------------------------------------------
def test_a_limit_is_named(hard: Any):
    assert GurobiSession(compile_model(hard)).solve(time_limit_s=1).message == "Gurobi stopped: time limit."


def test_a_limit_with_nothing_in_hand(hard: Any):
    off = {"Heuristics": 0, "Presolve": 0, "NodeLimit": 0, "Cuts": 0, "RINS": 0, "ZeroObjNodes": 0}
    hard.need = pyo.Constraint(expr=sum((3 + j % 7) * y for j, y in hard.y.items()) == 101)
    outcome = GurobiSession(compile_model(hard), options=off).solve()
    assert outcome.status is Status.TIME_LIMIT
    assert (outcome.x, outcome.objective) == (None, None)
    assert outcome.bound is not None


def test_a_start_is_taken_whole_or_in_part(make_knapsack: Callable[..., Any]):
    """With one solution allowed, what comes back is the start itself."""
    compiled = compile_model(make_knapsack(25, 5))
    best = GurobiSession(compiled).solve()
    session = GurobiSession(compiled, options={"SolutionLimit": 1, "Heuristics": 0})
    begun = session.solve(start=best.x)
    assert begun.status is Status.FEASIBLE
    assert begun.objective == pytest.approx(best.objective)
    assert len(begun.incumbents) == 1
    assert begun.incumbents[0][1] == pytest.approx(best.objective)
    half = {k: round(v) for k, v in enumerate(best.x.tolist()) if k % 2}
    completed = session.solve(start=half)
    assert [round(completed.x[k]) for k in half] == list(half.values())
    assert session.solve().objective < best.objective - 0.01  # the start of the run before is forgotten
    ignored = GurobiSession(compiled).solve(start=dict.fromkeys(range(25), 1.0))
    assert ignored.objective == pytest.approx(best.objective)


def test_a_start_from_other_data_is_taken(make_knapsack: Callable[..., Any]):
    m = make_knapsack(25, 5)
    m.most = pyo.Var()
    m.few = pyo.Constraint(expr=sum(m.y.values()) <= m.most)
    compiled = compile_model(m, [m.most])
    compiled.set_data(m.most, 5)
    session = GurobiSession(compiled, options={"SolutionLimit": 1, "Heuristics": 0})
    five = GurobiSession(compiled).solve()
    compiled.set_data(m.most, 9)
    assert session.solve(start=five.x).objective == pytest.approx(five.objective)
    assert session.solve().objective != pytest.approx(five.objective)


def test_a_start_of_a_cone_program_is_taken():
    m = pyo.ConcreteModel()
    m.x, m.t = pyo.Var(range(3), domain=pyo.Integers, bounds=(-9, 9)), pyo.Var(bounds=(0, None))
    m.k = pyo.Constraint(expr=soc(m.t, [m.x[j] - 2.3 for j in range(3)]) >= 0)
    m.o = pyo.Objective(expr=m.t)
    compiled = compile_model(m)
    start = {compiled.index[m.x[j]]: 5 for j in range(3)}
    outcome = GurobiSession(compiled, options={"SolutionLimit": 1, "Heuristics": 0}).solve(start=start)
    assert outcome.objective == pytest.approx(2.7 * math.sqrt(3))


def test_a_large_seed_is_not_cut(make_knapsack: Callable[..., Any]):
    session = GurobiSession(compile_model(make_knapsack(5, 1)), random_state=2**31 - 1)
    session.solve()
    assert session._handed.inner.Params.Seed == 147_483_646  # Gurobi would cut all above 2e9 to that


# ---- a live session --------------------------------------------------------------------------------------------------
def _to_the_data() -> tuple[Any, Any]:
    """The distance of the data from x + y >= 10, by a cone; a whole x."""
    m = pyo.ConcreteModel()
    m.x0 = pyo.Var(range(2))
    m.x, m.t = pyo.Var(range(2), bounds=(-50, 50)), pyo.Var(bounds=(0, None))
    m.x[0].domain = pyo.Integers
    m.c = pyo.Constraint(expr=m.x[0] + m.x[1] >= 10)
    m.k = pyo.Constraint(expr=soc(m.t, [m.x[j] - m.x0[j] for j in range(2)]) >= 0)
    m.o = pyo.Objective(expr=m.t)
    return m, compile_model(m, [m.x0])


def test_data_move_back_and_forth():
    m, compiled = _to_the_data()
    session = GurobiSession(compiled)
    with pytest.raises(InvalidValueError, match=r"x0\[0\]"):
        session.solve()
    for at, best in (((4, 4), math.sqrt(2)), ((20, 0), 0.0), ((0, 0), math.sqrt(50)), ((4, 4), math.sqrt(2))):
        compiled.set_data(m.x0, at)
        outcome = session.solve()
        assert outcome.status is Status.OPTIMAL
        assert outcome.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert outcome.x[compiled.data] == pytest.approx(at, abs=1e-9)


def test_data_as_the_head_of_a_cone():
    m = pyo.ConcreteModel()
    m.radius, m.x = pyo.Var(), pyo.Var(range(2))
    m.k = pyo.Constraint(expr=soc(m.radius, [m.x[0], m.x[1]]) >= 0)
    m.o = pyo.Objective(expr=m.x[0] + m.x[1], sense=pyo.maximize)
    compiled = compile_model(m, [m.radius])
    session = GurobiSession(compiled)
    for radius, best in ((2.0, math.sqrt(8)), (-1.0, None), (5.0, math.sqrt(50))):
        compiled.set_data(m.radius, radius)
        outcome = session.solve()
        assert outcome.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
        assert outcome.objective is None if best is None else outcome.objective == pytest.approx(best, rel=1e-6)


def test_appended_rows_do_not_build_the_model_again(make_knapsack: Callable[..., Any]):
    model = make_knapsack(10, 2)
    compiled = compile_model(model)
    session = GurobiSession(compiled)
    session.solve()
    inner = session._handed.inner
    model.cut = pyo.Constraint(expr=sum(compiled.columns) <= 3)
    compiled.append(model.cut)
    assert round(sum(session.solve().x)) == 3
    assert session._handed.inner is inner


def test_appended_columns_quadratics_and_cones_are_taken_over():
    m = _free(x=(-9, 9), y=(-9, 9))
    m.o = pyo.Objective(expr=m.x + m.y)
    compiled = compile_model(m)
    session = GurobiSession(compiled)
    assert session.solve().objective == pytest.approx(-18)
    m.disc = pyo.Constraint(expr=m.x**2 + m.y**2 <= 8)
    compiled.append(m.disc)
    assert session.solve().objective == pytest.approx(-4, rel=1e-6)
    m.z = pyo.Var(bounds=(0, 1))
    m.cone = pyo.Constraint(expr=soc(m.z + 1, [m.x, m.y]) >= 0)
    compiled.append(m.cone)
    assert session.solve().objective == pytest.approx(-math.sqrt(8), rel=1e-6)
    m.line = pyo.Constraint(expr=m.z <= 0.5)
    compiled.append(m.line)
    assert session.solve().objective == pytest.approx(-1.5 * math.sqrt(2), rel=1e-6)
    m.lmi = pyo.Constraint(expr=psd([[m.x, m.y], [m.y, 1]]) >= 0)
    compiled.append(m.lmi)
    with pytest.raises(UnsupportedProblemError, match="semidefinite"):
        session.solve()


@pytest.mark.long
def test_a_session_is_freed(make_knapsack: Callable[..., Any]):
    session = GurobiSession(compile_model(make_knapsack(5, 1)))
    session.solve()
    alive = weakref.ref(session._handed.inner)
    del session
    gc.collect()
    assert alive() is None


# ---- pools -----------------------------------------------------------------------------------------------------------
@pytest.mark.long(every=5)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1e-7, 1.0])
@pytest.mark.parametrize("n", [2, 9, 5000])
def test_a_pool_is_what_enumeration_finds(make_knapsack: Callable[..., Any], seed, scale, n):
    compiled = compile_model(make_knapsack(10, 3, seed, scale=scale, maximise=seed % 2 == 0))
    outcome = GurobiSession(compiled).solve(pool=n, relative_gap=1e-9)
    points, values = feasible_binaries(compiled)
    order = np.argsort(compiled.sense * values, kind="stable")[:n]
    assert outcome.status is Status.OPTIMAL
    assert [compiled.evaluate(x) for x in outcome.pool] == pytest.approx(values[order].tolist(), rel=1e-9, abs=0)
    assert outcome.pool[0].tolist() == outcome.x.tolist()
    found = {tuple(np.round(x)) for x in outcome.pool}
    assert len(found) == len(outcome.pool) == min(n, len(points))
    assert found <= {tuple(point) for point in points}


@pytest.mark.long(every=6)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("squares", [False, True])
def test_a_pool_has_the_best_continuous_part_of_each(seed, squares):
    rng = np.random.default_rng(seed)
    w, d, cost, price = rng.uniform(-0.3, 1, (3, 5)), rng.uniform(0, 1, (3, 3)), rng.uniform(0, 2, 5), [1.1, 0.7, 1.3]
    m = pyo.ConcreteModel()
    m.y, m.c = pyo.Var(range(5), domain=pyo.Binary), pyo.Var(range(3), bounds=(0, 2))
    m.r = pyo.Constraint(
        range(3),
        rule=lambda m, i: (
            sum(float(w[i, j]) * m.y[j] for j in range(5)) + sum(float(d[i, j]) * m.c[j] for j in range(3)) >= 1.2
        ),
    )
    paid = [(m.c[j] - 0.2) ** 2 if squares else m.c[j] for j in range(3)]
    whole = sum(float(cost[j]) * m.y[j] for j in range(5))
    m.o = pyo.Objective(expr=whole + sum(p * c for p, c in zip(price, paid, strict=True)))
    outcome = solved(m, pool=8)
    values = []
    for choice in itertools.product([0, 1], repeat=5):
        for j in range(5):
            m.y[j].fix(choice[j])
        best = HighsSession(compile_model(m)).solve()
        values += [] if best.objective is None else [best.objective]
        m.y.unfix()
    assert outcome.status is Status.OPTIMAL
    compiled = compile_model(m)
    assert [compiled.evaluate(x) for x in outcome.pool] == pytest.approx(sorted(values)[:8], rel=1e-6)


def test_a_pool_of_a_cone_program_is_its_true_optimum_alone():
    """The smallest disc around all but one of four points: Gurobi's own pool calls a radius of 1.796 optimal."""
    m = pyo.ConcreteModel()
    m.x, m.y, m.r = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 20))
    m.out = pyo.Var(range(4), domain=pyo.Binary)
    m.one = pyo.Constraint(expr=sum(m.out.values()) <= 1)
    at = ((0, 0), (2, 0), (0, 2), (10, 10))
    m.inside = pyo.Constraint(
        range(4), rule=lambda m, k: soc(m.r + 20 * m.out[k], [m.x - at[k][0], m.y - at[k][1]]) >= 0
    )
    m.o = pyo.Objective(expr=m.r)
    for threads, seed in ((1, 0), (2, 7)):
        outcome = GurobiSession(compile_model(m), threads=threads, random_state=seed).solve(pool=3)
        assert outcome.status is Status.OPTIMAL
        assert outcome.objective == pytest.approx(math.sqrt(2), rel=1e-6)
        assert [x.tolist() for x in outcome.pool] == [outcome.x.tolist()]


@pytest.mark.long
def test_a_pool_that_was_cut_short_claims_nothing(hard: Any):
    outcome = GurobiSession(compile_model(hard)).solve(pool=50, time_limit_s=1)
    assert outcome.status is Status.FEASIBLE
    assert outcome.pool[0].tolist() == outcome.x.tolist()
    values = [compile_model(hard).evaluate(x) for x in outcome.pool]
    assert values == sorted(values, reverse=True)
    assert len(GurobiSession(compile_model(hard)).solve(time_limit_s=0.5).pool) == 0


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"MIPFocuss": 1}, UnknownNameError, "Did you mean 'MIPFocus'"),
        ({"mipfocus": 1}, UnknownNameError, "Choose from: MIPFocus"),
        ({"no such thing": 1}, UnknownNameError, "'no such thing'"),
        ({"MIPFocus": 1.5}, InvalidValueError, "MIPFocus is 1.5"),
        ({"MIPFocus": True}, InvalidValueError, "MIPFocus is True"),
        ({"MIPFocus": "1"}, InvalidValueError, "type int from 0 to 3"),
        ({"MIPFocus": 9}, InvalidValueError, "from 0 to 3"),
        ({"Heuristics": float("nan")}, InvalidValueError, "Heuristics is nan"),
        ({"LogFile": 3}, InvalidValueError, "type str"),
        ({"ComputeServer": "x"}, InvalidValueError, "a model's parameter 'ComputeServer'"),
        ({"TimeLimit": 2}, InvalidValueError, "time_limit_s="),
        ({"MIPGap": 0.1}, InvalidValueError, "relative_gap="),
        ({"Threads": 2}, InvalidValueError, "threads="),
        ({"Seed": 2}, InvalidValueError, "random_state="),
        ({"PoolSolutions": 2}, InvalidValueError, "pool="),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], error: type[CeoptError], message: str):
    with pytest.raises(error, match=message):
        GurobiSession(compile_model(_linear_ray()), options=options)


def test_good_options_pass():
    options = {"MIPFocus": np.int64(2), "Heuristics": 0, "Presolve": 0, "LogFile": ""}
    session = GurobiSession(compile_model(_linear_ray()), options=options)
    parameters = session._handed.inner.Params
    assert (parameters.MIPFocus, parameters.Heuristics, parameters.Presolve) == (2, 0.0, 0)


def test_the_absolute_gap_has_an_argument(make_knapsack: Callable[..., Any]):
    with pytest.raises(InvalidValueError, match="Use absolute_gap= instead"):
        GurobiSession(compile_model(make_knapsack(40, 10)), options={"MIPGapAbs": 20.0})


def test_programs_that_gurobi_cannot_solve_are_refused():
    m = _free(x=(0, 5), y=(0, 5))
    m.o = pyo.Objective(expr=m.x * m.y)
    for cone, kind in ((psd([[m.x, 1], [1, m.y]]), "semidefinite"), (exponential(m.x, 1, m.y), "exponential")):
        m.k = pyo.Constraint(expr=cone >= 0)
        for curved in (True, False):
            if curved and kind == "exponential":
                continue
            (m.o.activate if curved else m.o.deactivate)()
            with pytest.raises(UnsupportedProblemError, match=rf"{kind}.*solve\(model\)"):
                GurobiSession(compile_model(m))
        m.del_component("k")
    m.c = pyo.Constraint(expr=1e16 * m.x <= 1)
    with pytest.raises(InvalidValueError, match="1e\\+16"):
        GurobiSession(compile_model(m))


def test_an_exponential_beside_a_product_needs_a_number_as_its_second_entry():
    m = _free(x=(0.5, 2), y=(0.5, 2), z=(0, 9))
    m.o = pyo.Objective(expr=m.z - m.x * m.y)
    m.k = pyo.Constraint(expr=exponential(m.x, m.y, m.z) >= 0)
    with pytest.raises(UnsupportedProblemError, match=r"a number as the second entry.*that of 'k' has Vars"):
        GurobiSession(compile_model(m))


@pytest.mark.parametrize(
    ("cone", "least"),
    [
        (lambda m: exponential(m.x + m.y, 2, m.z - m.x), 1 + 2 * math.exp(1) - 1),
        (lambda m: exponential(1, 1, m.z), math.e - 4),
        (lambda m: exponential(m.x - 2, 0, m.z - 1), 1 - 4),
        (lambda m: exponential(m.x, -1, m.z), None),
        (lambda m: exponential(m.z, 1, 2), -9 - 4),
    ],
)
def test_exponential_cones_beside_a_product(cone: Any, least: float | None):
    """x y is at most 4; by the first cone z is at least x + 2 exp((x + y) / 2), at x = y = 1."""
    m = _free(x=(1, 2), y=(1, 2), z=(-9, 40))
    m.o = pyo.Objective(expr=m.z - m.x * m.y)
    m.soc = pyo.Constraint(expr=soc(3, [m.x, m.y]) >= 0)
    m.k = pyo.Constraint(expr=cone(m) >= 0)
    outcome = GurobiSession(compile_model(m)).solve(time_limit_s=20)
    if least is None:
        assert outcome.status is Status.INFEASIBLE
        return
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(least, abs=1e-6)
    assert outcome.bound == pytest.approx(least, abs=1e-5)
    assert outcome.violation <= 1e-6


def test_rows_of_great_numbers_are_held_to_what_double_precision_can():
    """Feasible by construction, up to rounding, which is beyond 1e-9 where a row adds up numbers near 1e8."""
    rng = np.random.default_rng(31)
    a = rng.normal(size=(10, 15)) * 10.0 ** rng.uniform(-3, 4, (10, 1)) * 10.0 ** rng.uniform(-2, 2, (1, 15))
    a[rng.uniform(size=a.shape) < 0.5] = 0
    a[:, 0] += 1e-3
    upper = 10.0 ** rng.uniform(-1, 3, 15)
    at = np.floor(rng.uniform(0, 1, 15) * upper)
    side, cost = (a @ at).tolist(), rng.normal(size=15).tolist()
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(15), bounds=lambda _, j: (0, float(upper[j])))
    for j in range(0, 15, 2):
        m.x[j].domain = pyo.Integers
    m.r = pyo.Constraint(range(10), rule=lambda m, i: sum(float(a[i, j]) * m.x[j] for j in range(15)) <= side[i])
    m.o = pyo.Objective(expr=sum(cost[j] * m.x[j] for j in range(15)))
    compiled = compile_model(m)
    outcome = GurobiSession(compiled).solve(time_limit_s=60)
    assert outcome.status is Status.OPTIMAL, outcome.message
    assert outcome.objective <= compiled.evaluate(at) + 1e-6


def test_small_coefficients_are_not_dropped():
    m = _free(x=(0, 1e13), y=(0, 1))
    m.c = pyo.Constraint(expr=5e-12 * m.x + m.y >= 2)
    m.o = pyo.Objective(expr=m.x)
    assert solved(m).objective == pytest.approx(2e11)


# ---- licence ---------------------------------------------------------------------------------------------------------
def _sized(variables: int, *, rows: int = 1, curved: str = "") -> Any:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(variables), bounds=(0, 1))
    last = variables - 1
    m.r = pyo.Constraint(
        range(rows), rule=lambda m, i: m.x[i % variables] + m.x[(i + 1 + i // variables) % last] <= 1.5
    )
    if curved == "objective":
        m.o = pyo.Objective(expr=sum(m.x.values()) + m.x[0] ** 2)
    else:
        m.o = pyo.Objective(expr=sum(m.x.values()))
    if curved == "row":
        m.q = pyo.Constraint(expr=m.x[0] ** 2 + m.x[1] ** 2 <= 1)
    if curved == "cone":
        m.q = pyo.Constraint(expr=soc(m.x[0] + 1, [m.x[1] - 1, m.x[2]]) >= 0)
    return m


LARGEST = {
    "linear": (_sized(2000, rows=2000), _sized(2001), "2,000 variables and this model has 2,001, 1 too many"),
    "rows": (_sized(1000, rows=2000), _sized(1000, rows=2003), "2,000 rows .* has 2,003, 3 too many"),
    "objective": (_sized(200, curved="objective"), _sized(201, curved="objective"), "200 variables .* has 201, 1 too"),
    "row": (_sized(200, rows=1999, curved="row"), _sized(200, rows=2000, curved="row"), "2,000 rows .* has 2,001"),
    "cone": (_sized(198, curved="cone"), _sized(199, curved="cone"), "200 variables .* has 201, 1 too many"),
}


@limited
@pytest.mark.parametrize("what", LARGEST)
def test_the_largest_model_is_solved_and_one_more_is_refused(what):
    largest, too_large, message = LARGEST[what]
    assert licence().refusal(compile_model(largest)) == ""
    assert solved(largest).status is Status.OPTIMAL
    with pytest.raises(MissingLicenceError, match=f"{message}.*Use solver 'highs'"):
        GurobiSession(compile_model(too_large))


@limited
@pytest.mark.parametrize(("variables", "rows"), [(199, 1), (100, 1996)])
def test_an_exponential_counts_as_a_variable_and_three_rows(variables: int, rows: int):
    for more in (0, 1):
        m = _sized(variables + (more if rows == 1 else 0), rows=rows + (more if rows > 1 else 0))
        m.q = pyo.Constraint(expr=m.x[0] * m.x[1] <= 0.5)
        m.e = pyo.Constraint(expr=exponential(m.x[2], 1, 3 * m.x[3]) >= 0)
        if more:
            with pytest.raises(MissingLicenceError, match="1 too many.*Use solver 'scip'"):
                GurobiSession(compile_model(m))
        else:
            assert solved(m, time_limit_s=60).status is Status.OPTIMAL


@limited
def test_a_set_counts_as_one_row():
    m = _sized(200, rows=1990)
    m.sets = pyo.SOSConstraint(
        range(11), rule=lambda m, i: ([m.x[(i + 7 * j) % 200] for j in range(20)], list(range(20))), sos=2
    )
    with pytest.raises(MissingLicenceError, match="2,000 rows .* has 2,001, 1 too many"):
        GurobiSession(compile_model(m))
    m.sets[10].deactivate()
    compiled = compile_model(m)
    assert licence().refusal(compiled) == ""
    session = GurobiSession(compiled)
    inner = session._handed.inner
    inner.update()
    assert (inner.NumSOS, inner.NumConstrs) == (10, 1990)
    assert session.solve().status is Status.OPTIMAL


@limited
def test_an_equality_counts_once_and_a_range_twice():
    m = _sized(1000)
    m.x0 = pyo.Constraint(range(1999), rule=lambda m, i: m.x[i % 1000] - m.x[(i + 1 + i // 1000) % 1000] == 0)
    assert licence().refusal(compile_model(m)) == ""
    m.del_component("x0")
    m.x0 = pyo.Constraint(range(1000), rule=lambda m, i: (-1, m.x[i] - m.x[(i + 1) % 1000], 1))
    assert "2,001, 1 too many" in licence().refusal(compile_model(m))


@limited
def test_limits_are_told():
    assert licence().limits == "2,000 variables, 2,000 rows, 200 variables with quadratic terms"
    assert licence() is licence()


@limited
def test_a_model_that_grows_too_large_is_refused():
    m = _sized(201)
    compiled = compile_model(m)
    session = GurobiSession(compiled)
    assert session.solve().status is Status.OPTIMAL
    m.q = pyo.Constraint(expr=m.x[0] ** 2 <= 1)
    compiled.append(m.q)
    with pytest.raises(MissingLicenceError, match="200 variables where there is a quadratic term"):
        session.solve()


@limited
def test_what_gurobi_itself_calls_too_large_is_refused(monkeypatch):
    """Were the limits to change: its own error says so, in our words."""
    monkeypatch.setattr(adapter, "licence", Licence)
    session = GurobiSession(compile_model(_sized(2001)))
    with pytest.raises(MissingLicenceError, match="too large for size-limited license.*Use solver 'highs'"):
        session.solve()


def test_without_a_licence_the_solver_is_refused(monkeypatch):
    monkeypatch.setattr(adapter, "licence", lambda: Licence(why_not="Gurobi has no valid licence: it is lost."))
    with pytest.raises(MissingLicenceError, match="it is lost. Use solver 'highs'"):
        GurobiSession(compile_model(_linear_ray()))


def _run(python: list[str], code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*python, "-c", code], env=os.environ | environment, check=False, capture_output=True, text=True
    )


@pytest.mark.long
def test_a_licence_file_that_is_not_there_is_named(tmp_path, python):
    code = "from ceopt.solvers.gurobi import licence\nprint(licence().why_not)"
    done = _run(python, code, GRB_LICENSE_FILE=str(tmp_path / "gurobi.lic"))
    assert done.stderr == ""
    assert done.stdout.startswith("Gurobi has no valid licence: ")
    assert "gurobi.lic" in done.stdout
    assert done.stdout.count("\n") == 1


@pytest.mark.long
def test_probing_opening_and_solving_print_nothing(python):
    code = (
        "import pyomo.environ as pyo\nfrom ceopt.solvers import compile_model\n"
        "from ceopt.solvers.gurobi import GurobiSession, licence\nlicence()\n"
        "m = pyo.ConcreteModel()\nm.x = pyo.Var(range(3), domain=pyo.Integers, bounds=(1, 9))\n"
        "m.c = pyo.Constraint(expr=m.x[0] * m.x[1] >= 6 + m.x[2])\nm.o = pyo.Objective(expr=sum(m.x.values()))\n"
        "assert GurobiSession(compile_model(m), random_state=4).solve(pool=2, relative_gap=0).status == 'optimal'"
    )
    done = _run(python, code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---- processes and threads -------------------------------------------------------------------------------------------
def _value_of(seed: int) -> float:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(6), domain=pyo.Binary)
    m.c = pyo.Constraint(expr=sum((j + 2) * m.x[j] for j in range(6)) >= 9)
    m.o = pyo.Objective(expr=sum((1 + (seed * j) % 5) * m.x[j] for j in range(6)))
    return float(GurobiSession(compile_model(m)).solve().objective)


def test_threads_of_joblib():
    alone = [_value_of(seed) for seed in range(6)]
    assert joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(_value_of)(s) for s in range(6)) == alone


@pytest.mark.long
def test_processes_of_joblib(python):
    code = (
        "import joblib, sys\nsys.path.insert(0, sys.argv[0])\n"
        "from ceopt.solvers.gurobi import licence\n"
        "print(joblib.Parallel(n_jobs=2)(joblib.delayed(lambda k: licence().limits)(k) for k in range(3)))"
    )
    done = _run(python, code)
    assert done.stdout.strip() == str([licence().limits] * 3), done.stderr


def test_an_environment_per_thread():
    mine, found = gurobi_licence.environment(), []
    thread = threading.Thread(target=lambda: found.append(gurobi_licence.environment()))
    thread.start()
    thread.join()
    assert gurobi_licence.environment() is mine
    assert found[0] is not mine


def test_a_session_outlives_the_thread_that_opened_it(make_knapsack: Callable[..., Any]):
    opened: list[Any] = []
    compiled = compile_model(make_knapsack(12, 3))
    thread = threading.Thread(target=lambda: opened.append(GurobiSession(compiled)))
    thread.start()
    thread.join()
    assert opened[0].solve().status is Status.OPTIMAL


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_starts_its_own_environment(python):
    code = (
        "import os, sys, warnings\nimport pyomo.environ as pyo\nfrom ceopt.solvers import compile_model\n"
        "from ceopt.solvers.gurobi import GurobiSession\nfrom ceopt.solvers.gurobi import environment\n"
        "m = pyo.ConcreteModel()\nm.x = pyo.Var(bounds=(3, 9))\nm.o = pyo.Objective(expr=m.x)\n"
        "assert GurobiSession(compile_model(m)).solve().objective == 3\nmine = environment()\n"
        "warnings.simplefilter('ignore', DeprecationWarning)  # of Python 3.12: threads and fork\n"
        "child = os.fork()\n"
        "value = GurobiSession(compile_model(m)).solve().objective\n"
        "assert value == 3 and (environment() is mine) == bool(child)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0)"
    )
    done = _run(python, code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
