"""HiGHS with tangent cuts: cuts at random points, optima by enumeration and closed forms, proofs, limits, starts."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st

from ceopt.solvers import Status, compile_model
from ceopt.solvers.cones import psd, rotated_soc, soc
from ceopt.solvers.errors import InvalidValueError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.outer_approximation import TangentSession
from ceopt.solvers.tangent_cuts import Blocks, Cuts, Master
from ceopt.solvers.tolerances import CONE_TOLERANCE


def rows(matrix: Any, x: Any, shift: Any) -> list[Any]:
    """The entries of ``matrix @ x - shift`` as expressions."""
    shift = np.asarray(shift, dtype=float)
    return [
        sum(float(w) * v for w, v in zip(line, x, strict=True) if w) - float(b)
        for line, b in zip(np.asarray(matrix, dtype=float), shift, strict=True)
    ]


def solved(model: Any, data: Any = (), **arguments: Any) -> Any:
    return TangentSession(compile_model(model, data)).solve(**arguments)


def optimal(model: Any, value: float, *, rel: float = 2e-7, absolute: float = 1e-9, **arguments: Any) -> Any:
    """Solve, and check status, objective, bound and feasibility."""
    outcome = solved(model, **arguments)
    assert outcome.status is Status.OPTIMAL, outcome.message
    assert outcome.objective == pytest.approx(value, rel=rel, abs=absolute)
    assert outcome.bound == pytest.approx(value, rel=1.5e-6, abs=absolute)
    return outcome


# ---- the cuts ----
def every_kind(seed: int) -> tuple[Any, Any]:
    """A program with every kind of block, and points that satisfy it."""
    rng = np.random.default_rng(seed)
    n = 4
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(n), bounds=(-3, 3))
    m.x[0].domain = m.x[1].domain = pyo.Integers
    m.t, m.u, m.w, m.h = pyo.Var(), pyo.Var(), pyo.Var(bounds=(0, 50)), pyo.Var()
    F, b = rng.normal(size=(3, n)), rng.normal(size=3)
    x, v = [m.x[j] for j in range(n)], rows(F, [m.x[j] for j in range(n)], b)
    m.norm = pyo.Constraint(expr=soc(m.t, v) >= 0)
    m.product = pyo.Constraint(expr=rotated_soc(m.u, 1 + m.w, v[:2]) >= 0)
    m.constant = pyo.Constraint(expr=rotated_soc(0.7, m.h, [2 * m.x[0] + 0.3, m.x[1], m.x[2]]) >= 0)
    m.ball = pyo.Constraint(expr=sum(e * e for e in v) <= 400)
    m.cost = pyo.Objective(expr=m.t + m.u + m.h + (m.x[0] - 0.4) ** 2 + (m.x[0] + m.x[3]) ** 2)
    compiled = compile_model(m)
    points = []
    for _ in range(60):
        at = np.concatenate([rng.integers(-3, 4, 2), rng.uniform(-3, 3, 2)])
        e, w = F @ at - b, abs(rng.normal())
        h = ((2 * at[0] + 0.3) ** 2 + at[1] ** 2 + at[2] ** 2) / 1.4
        values = {"t": np.linalg.norm(e), "w": w, "u": e[:2] @ e[:2] / 2 / (1 + w), "h": h}
        values = {k: s * (1 + rng.choice([0, 1]) * rng.random()) if k != "w" else s for k, s in values.items()}
        values |= {x[j].name: at[j] for j in range(n)}
        points.append(np.array([values[column.name] for column in compiled.columns]))
        assert compiled.violation(points[-1]) < 1e-9
    return compiled, points


@pytest.mark.long(every=3)
@pytest.mark.parametrize("seed", range(12))
def test_no_cut_removes_a_point_of_the_program(seed: int) -> None:
    """Tangents anywhere and along any direction, in any units: all points of the cones stay."""
    compiled, points = every_kind(seed)
    rng, blocks = np.random.default_rng(seed), Blocks.of(compiled)
    for near in (None, points[0], 1e3 * points[1]):
        master = Master(compiled, blocks, near)
        every = np.arange(len(blocks.block))
        cuts = [
            master.first_cuts(),
            *(Cuts.tangents(every, rng.normal(size=every.size) * 10.0**k) for k in range(-4, 4)),
        ]
        for _ in range(20):
            y = rng.normal(size=len(master.program.c)) * 10 ** rng.uniform(-2, 2)
            cuts += [master.cuts_at(y), master.cuts_along(y)]
        matrix, least = master.rows(Cuts.joined(cuts))
        assert least.size > 200
        for point in points:
            whole = master.completed(point)
            assert master.program.violation(whole) < 1e-9 * max(1.0, float(np.abs(whole).max()))
            assert (least - matrix @ whole).max() < 1e-9 * max(1.0, float(np.abs(whole).max()))


@pytest.mark.long(every=2)
@pytest.mark.parametrize("seed", range(5))
def test_the_cuts_at_a_point_outside_remove_it(seed: int) -> None:
    compiled, points = every_kind(seed)
    master = Master(compiled, Blocks.of(compiled))
    t = next(k for k, column in enumerate(compiled.columns) if column.name == "t")
    for point in points:
        outside = point.copy()
        outside[t] = 0.9 * np.linalg.norm(compiled.cones[0].entries(point)[1:])
        y = master.completed(outside)
        y[len(point) : len(point) + len(master.blocks.block)] = 0.0
        matrix, least = master.rows(master.cuts_at(y))
        assert (least - matrix @ y).max() > 1e-6
        assert master.violation(outside) > 1e-3
        assert master.violation(point) < 1e-9


# ---- optima ----
small = st.integers(-3, 3)


#: Of the point (0, 2, 0) the ball's surface is exactly 0: in floats it lies a rounding outside.
SURFACE = {"F": [[0, 2, 0]], "shift": [0.9, 0.0, 0.0], "weight": [0, 0, 0], "limit": 0}


@draws(60)
@example(**SURFACE, kind="ball", maximise=False)
@example(**SURFACE | {"shift": [0.9, -1.0, 0.0]}, kind="ball", maximise=False)
@example(**SURFACE | {"shift": [0.9, -1.0, 0.0]}, kind="row", maximise=True)
@given(
    F=st.lists(st.lists(small, min_size=3, max_size=3), min_size=1, max_size=3),
    shift=st.lists(st.floats(-3, 3).map(lambda v: round(v, 2)), min_size=3, max_size=3),
    weight=st.lists(small, min_size=3, max_size=3),
    limit=st.integers(-4, 4),
    kind=st.sampled_from(["square", "norm", "ball", "row", "rotated"]),
    maximise=st.booleans(),
)
def test_optimum_equals_enumeration(
    F: list[list[int]], shift: list[float], weight: list[int], limit: int, kind: str, *, maximise: bool
) -> None:
    """Three integers from -2 to 2, a row, and each kind of square: value and failure as by enumeration."""
    m, d = pyo.ConcreteModel(), shift[: len(F)]
    m.i, m.t = pyo.Var(range(3), domain=pyo.Integers, bounds=(-2, 2)), pyo.Var(bounds=(0, 1e4))
    x = [m.i[j] for j in range(3)]
    e, sign = rows(F, x, d), -1 if maximise else 1
    m.row = pyo.Constraint(expr=sum(w * v for w, v in zip(weight, x, strict=True)) + 0 * m.t >= limit)
    linear = sum(w * v for w, v in zip(shift, x, strict=True))
    points = np.array(list(itertools.product(range(-2, 3), repeat=3)), dtype=float)
    square = ((points @ np.array(F, dtype=float).T - d) ** 2).sum(axis=1)
    fine, value = points @ np.array(weight) >= limit, points @ np.array(shift)
    if kind == "square":
        cost, value = sum(v * v for v in e) + linear, square + value
    elif kind == "norm":
        m.cone = pyo.Constraint(expr=soc(m.t, e) >= 0)
        cost, value = m.t, np.sqrt(square)
    elif kind == "rotated":
        m.cone = pyo.Constraint(expr=rotated_soc(m.t, 0.5 + m.i[0] + 2, e) >= 0)
        cost, value = m.t + linear, square / (2 * (2.5 + points[:, 0])) + value
    else:
        m.cone = pyo.Constraint(expr=soc(3.1, e) >= 0 if kind == "ball" else sum(v * v for v in e) <= 9.61)
        hundredths = np.rint(100 * (points @ np.array(F, dtype=float).T - d)).astype(int)  # the shift has two digits
        cost, fine = linear + 0 * m.t, fine & ((hundredths**2).sum(axis=1) <= 310**2)
    m.cost = pyo.Objective(expr=sign * cost, sense=pyo.maximize if maximise else pyo.minimize)
    outcome = solved(m)
    if fine.any():
        assert outcome.status is Status.OPTIMAL, outcome.message
        assert outcome.objective == pytest.approx(sign * value[fine].min(), rel=2e-7, abs=1e-7)
        assert sign * (outcome.objective - outcome.bound) >= 0
        assert outcome.violation < 1e-6
    else:
        assert outcome.status is Status.INFEASIBLE


@pytest.mark.long(every=3)
@pytest.mark.parametrize("kind", ["norm", "square"])
@pytest.mark.parametrize("seed", range(4))
def test_mahalanobis_distances_with_binaries_equal_least_squares_over_all_of_them(seed: int, kind: str) -> None:
    """Given its 5 binaries, the nearest point is a least-squares problem."""
    rng = np.random.default_rng(seed)
    n, k = 12, 5
    F, x0, a = rng.normal(size=(n, n)), rng.uniform(-2, 2, n), rng.normal(size=(2, n))
    m = pyo.ConcreteModel()
    m.b, m.y, m.t = pyo.Var(range(k), domain=pyo.Binary), pyo.Var(range(n - k)), pyo.Var()
    x = [*(m.b[j] for j in range(k)), *(m.y[j] for j in range(n - k))]
    target = a @ x0 + 1
    m.r = pyo.Constraint(range(2), rule=lambda _, i: rows(a[[i]], x, [target[i]])[0] == 0)
    e = rows(F, x, F @ x0)
    if kind == "norm":
        m.cone = pyo.Constraint(expr=soc(m.t, e) >= 0)
    m.cost = pyo.Objective(expr=m.t if kind == "norm" else sum(v * v for v in e))
    values = []
    for bits in itertools.product([0.0, 1.0], repeat=k):
        # min |G y - g| with two equations: through their null space
        G, g, A, r = F[:, k:], F @ x0 - F[:, :k] @ bits, a[:, k:], target - a[:, :k] @ bits
        first = np.linalg.lstsq(A, r, rcond=None)[0]
        free = np.linalg.svd(A)[2][2:].T
        step = np.linalg.lstsq(G @ free, g - G @ first, rcond=None)[0]
        values.append(np.linalg.norm(G @ (first + free @ step) - g))
    least = min(values)
    outcome = optimal(m, least if kind == "norm" else least**2)
    assert outcome.violation < 1e-7


@pytest.mark.long(every=6)
@pytest.mark.parametrize("scale", [1e-5, 1e-2, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("integer", [False, True])
def test_distance_to_a_half_space_at_every_scale(scale: float, *, integer: bool) -> None:
    """The nearest point of a'x >= b is at distance (b - a'x0) / |a|; one column counts units of the scale."""
    rng = np.random.default_rng(5)
    n = 30
    a, x0 = rng.normal(size=n), scale * rng.uniform(-1, 1, n)
    far = scale * np.linalg.norm(a)
    m = pyo.ConcreteModel()
    m.x, m.t = pyo.Var(range(n)), pyo.Var()
    m.row = pyo.Constraint(expr=rows([a], [m.x[j] for j in range(n)], [a @ x0 + far])[0] >= 0)
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[j] - float(x0[j]) for j in range(n)]) >= 0)
    m.cost = pyo.Objective(expr=m.t)
    value = scale
    if integer:
        m.k = pyo.Var(domain=pyo.Integers, bounds=(-9, 9))
        m.whole = pyo.Constraint(expr=m.x[0] == scale * m.k)
        step = scale * np.arange(-9, 10) - x0[0]
        rest = np.maximum(far - a[0] * step, 0) / np.linalg.norm(a[1:])
        value = float(np.sqrt(step**2 + rest**2).min())
    optimal(m, value, absolute=0)


@pytest.mark.parametrize("radius", [1e-4, 1.0, 1e4])
def test_linear_cost_over_a_ball_and_an_ellipsoid_row(radius: float) -> None:
    rng = np.random.default_rng(2)
    n = 20
    F, c, x0 = rng.normal(size=(n, n)) + 3 * np.eye(n), rng.normal(size=n), rng.normal(size=n)
    value = c @ x0 - radius * np.linalg.norm(np.linalg.solve(F.T, c))
    for form in ("cone", "row") if radius >= 1 else ("cone",):  # as a row, 1e-8 drowns in the square's own constant
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(n), bounds=(-1e6, 1e6))
        x = [m.x[j] for j in range(n)]
        e = rows(F, x, F @ x0)
        m.ball = pyo.Constraint(expr=soc(radius, e) >= 0 if form == "cone" else sum(v * v for v in e) <= radius**2)
        m.cost = pyo.Objective(expr=sum(float(w) * v for w, v in zip(c, x, strict=True)))
        outcome = solved(m)
        assert outcome.objective - c @ x0 == pytest.approx(value - c @ x0, rel=1e-6)
        assert outcome.status is Status.OPTIMAL


def test_rotated_and_homogeneous_cones() -> None:
    m = pyo.ConcreteModel()
    m.t, m.u, m.v = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(0, None)), pyo.Var(bounds=(3, None))
    m.cone = pyo.Constraint(expr=rotated_soc(m.t, m.u, [m.v, 4]) >= 0)
    m.cost = pyo.Objective(expr=2 * m.t + m.u)
    optimal(m, 10.0)  # 2t + u >= 2 sqrt(2tu) = 2 * 5
    m = pyo.ConcreteModel()
    m.t, m.u, m.v = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(0, None)), pyo.Var(bounds=(3, None))
    m.row = pyo.Constraint(expr=m.v**2 + 16 <= m.t * m.u)
    m.cost = pyo.Objective(expr=-m.t - m.u, sense=pyo.maximize)
    optimal(m, -10.0)
    m.u.domain = pyo.Integers
    optimal(m, -10.0)
    m.u.setub(4)
    optimal(m, -10.25)


def test_a_minimum_far_outside_the_bounds_is_not_the_centre_of_the_squares() -> None:
    """x^2 / 10^8 - x on [0, 10]: centred at its minimum 5e7 the square would drown the cost in 2.5e7."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 10))
    m.cost = pyo.Objective(expr=sum(1e-8 * m.x[j] ** 2 - m.x[j] for j in range(3)))
    compiled = compile_model(m)
    assert abs(Blocks.of(compiled).c0) < 1e-6
    optimal(m, 3 * (1e-6 - 10), rel=1e-9)
    m.cost.set_value(sum((m.x[j] - 9.75) ** 2 for j in range(3)))  # centred: no small difference of great numbers
    assert abs(Blocks.of(compile_model(m)).c0) < 1e-9
    assert not Blocks.of(compile_model(m)).c.any()


def test_a_norm_beside_other_costs_and_two_norms_of_one_column() -> None:
    m = pyo.ConcreteModel()
    m.x, m.t = pyo.Var(range(2), bounds=(-9, 9)), pyo.Var()
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[0] - 3, m.x[1] - 4]) >= 0)
    m.cost = pyo.Objective(expr=m.t + 2 * m.x[1] + 1)
    optimal(m, 1 + 2 * -9 + 13)  # the slope of the norm is at most 1: down to the bound
    m.also = pyo.Constraint(expr=soc(m.t, [m.x[0], m.x[1]]) >= 0)
    m.cost.set_value(m.t)
    optimal(m, 2.5)
    m.cap = pyo.Constraint(expr=m.t <= 2.4)
    assert solved(m).status is Status.INFEASIBLE


# ---- where cones are degenerate ----
def test_optimum_at_the_tip_of_the_cone() -> None:
    m = pyo.ConcreteModel()
    m.x, m.k, m.t = pyo.Var(range(4), bounds=(-60, 60)), pyo.Var(domain=pyo.Integers, bounds=(-9, 9)), pyo.Var()
    x0 = [50.1, -0.3, 7.7, 0.0]
    m.near = pyo.Constraint(expr=soc(m.t, [*(3 * m.x[j] - 3 * x0[j] for j in range(4)), m.k - 2]) >= 0)
    m.cost = pyo.Objective(expr=m.t)
    optimal(m, 0.0, absolute=1e-7)
    m.row = pyo.Constraint(expr=m.x[0] + m.x[1] >= 50.1 - 0.3 + 1e-4)
    optimal(m, 3e-4 / math.sqrt(2), rel=1e-6)


def test_squares_that_vanish_and_entries_that_are_constants() -> None:
    m = pyo.ConcreteModel()
    m.x, m.f = pyo.Var(bounds=(-5, 5)), pyo.Var(initialize=2.0)
    m.f.fix()
    m.cost = pyo.Objective(expr=(m.x - 1.25) ** 2)
    optimal(m, 0.0, absolute=1e-12)
    m.cone = pyo.Constraint(expr=soc(5, [3, m.f * 2, 0 * m.x]) >= 0)
    optimal(m, 0.0, absolute=1e-12)
    m.zero = pyo.Constraint(expr=soc(0, [m.x - 3]) >= 0)
    optimal(m, 1.75**2)
    assert abs(solved(m).x[0] - 3) < 1e-9
    m.zero.deactivate()
    m.also = pyo.Constraint(expr=rotated_soc(0, m.x, [m.x - 3, 0]) >= 0)
    optimal(m, 1.75**2)
    assert abs(solved(m).x[0] - 3) < 1e-9
    m.f.set_value(2.1)
    assert solved(m).status is Status.INFEASIBLE


def test_a_head_of_zero_on_the_way_does_not_set_the_unit() -> None:
    """Rotated cones whose heads are 0 at vertices on the way: coefficients stay within HiGHS's range."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(5))
    for j, bound in enumerate((6, 4, 2, 3, 7)):
        m.x[j].setlb(-bound)
        m.x[j].setub(bound)
    x = [m.x[j] for j in range(5)]
    v = [[0, -0.79, -0.67, 0, -0.43], [0, 0, 0, 1.05, -0.62], [-0.81, 0, -0.22, 0, 0]]
    w = [[-0.97, 0.72, 0, 0.56, 0], [0, -0.84, 0.13, 0.24, -1.81], [0.84, 0.59, -0.75, -1.32, -1.12]]
    one, two = rows([[2.86, -0.25, -1.09, -0.07, 0], [0.05, -0.25, -0.84, -0.08, 0]], x, [-0.82, 0.43])
    m.one = pyo.Constraint(expr=rotated_soc(one, 0, rows(v, x, [1.13, -2.0, 1.07])) >= 0)
    m.two = pyo.Constraint(expr=rotated_soc(two, 1, rows(w, x, [-0.79, -0.26, -0.81])) >= 0)
    m.cost = pyo.Objective(expr=rows([[1.16, 0.89, -1.23, 1.35, 1.55]], x, [0])[0])
    relaxed = solved(m)
    assert relaxed.status in {Status.OPTIMAL, Status.INFEASIBLE}
    m.x[0].domain = m.x[4].domain = pyo.Integers
    assert solved(m).status in {Status.OPTIMAL, Status.INFEASIBLE}


def test_cones_without_an_interior() -> None:
    """t >= |x| and t <= x0: a face of the cone; and a ball of which one point is left."""
    m = pyo.ConcreteModel()
    m.x, m.t = pyo.Var(range(2)), pyo.Var()
    m.cone = pyo.Constraint(expr=soc(m.t, [m.x[0], m.x[1]]) >= 0)
    m.face = pyo.Constraint(expr=m.t <= m.x[0])
    m.least = pyo.Constraint(expr=m.x[0] >= 2)
    m.cost = pyo.Objective(expr=m.t + m.x[1])
    outcome = solved(m)
    assert outcome.objective == pytest.approx(2.0, abs=1e-3)
    m = pyo.ConcreteModel()
    m.i = pyo.Var(range(2), domain=pyo.Integers, bounds=(-9, 9))
    m.ball = pyo.Constraint(expr=soc(5, [m.i[0], m.i[1]]) >= 0)
    m.row = pyo.Constraint(expr=3 * m.i[0] + 4 * m.i[1] >= 25)
    m.cost = pyo.Objective(expr=m.i[0])
    optimal(m, 3.0)


# ---- what cannot be ----
def _disjoint(integer: bool) -> Any:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(-9, 9), domain=pyo.Integers if integer else pyo.Reals)
    m.a = pyo.Constraint(expr=soc(1, [m.x[0] - 0.5, m.x[1] - 0.5]) >= 0)
    m.b = pyo.Constraint(expr=soc(0.3 if integer else 1.6, [m.x[0] - 1.5, m.x[1] - 3.0]) >= 0)
    m.o = pyo.Objective(expr=m.x[0])
    return m


@pytest.mark.parametrize("integer", [False, True])
def test_infeasible_is_proved(*, integer: bool) -> None:
    model = _disjoint(integer)
    for _ in range(2):
        outcome = solved(model)
        assert outcome.status is Status.INFEASIBLE
        assert outcome.x is None
        assert outcome.message


def test_a_relaxation_without_bound_gets_tangents_until_it_has_one() -> None:
    """t >= |x| and a cost that the first tangents do not bound: 0.99 is less than the slope of the norm."""
    m = pyo.ConcreteModel()
    m.x, m.t = pyo.Var(range(3)), pyo.Var()
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[0], m.x[1], m.x[2] - 1]) >= 0)
    w = 0.99 / math.sqrt(1.36)
    m.cost = pyo.Objective(expr=m.t - w * (m.x[0] + 0.6 * m.x[1]))
    optimal(m, 0.0, absolute=2e-8)
    m.cost.set_value(m.x[0] ** 2 - 1000 * m.x[0] + (m.x[1] + m.x[2]) ** 2)
    optimal(m, -250000.0)


@pytest.mark.parametrize("integer", [False, True])
def test_unbounded_is_proved_and_never_guessed(*, integer: bool) -> None:
    m = pyo.ConcreteModel()
    m.x, m.k, m.t = pyo.Var(range(2)), pyo.Var(domain=pyo.Integers if integer else pyo.Reals), pyo.Var()
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[0], m.x[1] + m.k]) >= 0)
    m.cost = pyo.Objective(expr=m.t - 1.01 * m.x[0])
    outcome = solved(m)
    assert outcome.status is Status.UNBOUNDED
    assert outcome.x is None
    assert outcome.message
    m.never = pyo.Constraint(expr=soc(1, [m.x[1], 2]) >= 0)
    assert solved(m).status is Status.INFEASIBLE
    m.never.deactivate()
    m.y = pyo.Var(range(2))
    m.a = pyo.Constraint(expr=soc(1, [m.y[0] - 0.5, m.y[1] - 0.5]) >= 0)
    m.b = pyo.Constraint(expr=soc(1.69, [m.y[0] - 1.5, m.y[1] - 3.0]) >= 0)  # apart by 0.0026, as tangents come to see
    assert solved(m).status is Status.INFEASIBLE
    m.a.deactivate()
    m.cost.set_value(m.t - 0.9 * m.x[0])
    optimal(m, 0.0)


def test_growth_without_a_direction_is_no_proof() -> None:
    """x^2 <= h lets x grow for ever, along no straight line: nothing is claimed."""
    m = pyo.ConcreteModel()
    m.x, m.h = pyo.Var(), pyo.Var()
    m.square = pyo.Constraint(expr=rotated_soc(m.h, 0.5, [m.x]) >= 0)
    m.cost = pyo.Objective(expr=-m.x)
    outcome = solved(m, time_limit_s=20)
    assert outcome.status in {Status.ERROR, Status.TIME_LIMIT, Status.FEASIBLE}
    assert outcome.bound is None
    assert "bound" in outcome.message


# ---- one process with all of it ----
def hard(n: int = 24) -> Any:
    """Minutes of search: an ellipsoid's integer point of least cost."""
    rng = np.random.default_rng(1)
    m = pyo.ConcreteModel()
    m.i = pyo.Var(range(n), domain=pyo.Integers, bounds=(-20, 20))
    x = [m.i[j] for j in range(n)]
    F = rng.normal(size=(n, n))
    m.ball = pyo.Constraint(expr=soc(9.0 * math.sqrt(n), rows(F, x, F @ rng.uniform(-3, 3, n))) >= 0)
    m.rows = pyo.Constraint(range(6), rule=lambda _m, _i: rows(rng.normal(size=(1, n)), x, [0.2])[0] >= 0)
    m.cost = pyo.Objective(expr=sum(float(w) * v for w, v in zip(rng.normal(size=n), x, strict=True)))
    return m


@pytest.mark.long
def test_a_limit_keeps_the_incumbent_and_the_bound() -> None:
    compiled = compile_model(hard())
    session, seen = TangentSession(compiled), []

    def note(seconds: float, objective: float, x: Any) -> None:
        seen.append(objective)
        assert seconds >= 0
        assert compiled.violation(x) < 1e-6

    outcome = session.solve(time_limit_s=3, on_incumbent=note)
    assert outcome.status in {Status.FEASIBLE, Status.OPTIMAL}
    assert outcome.bound <= outcome.objective
    assert seen == sorted(seen, reverse=True)
    assert outcome.incumbents[-1][1] == outcome.objective == seen[-1]
    assert outcome.run_time < 30
    begun = session.solve(time_limit_s=1.5, start=outcome.x)
    assert begun.objective <= outcome.objective + 1e-9
    nothing = session.solve(time_limit_s=1e-4)
    assert nothing.status is Status.TIME_LIMIT
    assert nothing.objective is None


def test_a_gap_ends_the_search() -> None:
    outcome = solved(hard(), relative_gap=0.5)
    assert outcome.status is Status.OPTIMAL
    assert 0 < outcome.gap <= 0.5


def test_should_stop_and_exceptions_of_the_caller() -> None:
    session, began = TangentSession(compile_model(hard())), time.monotonic()
    outcome = session.solve(time_limit_s=300, should_stop=lambda: time.monotonic() - began > 0.5)
    assert outcome.status is Status.INTERRUPTED
    assert outcome.run_time < 60

    def fail(*_: Any) -> None:
        message = "mine"
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="mine"):
        session.solve(time_limit_s=300, should_stop=fail)
    with pytest.raises(RuntimeError, match="mine"):
        session.solve(time_limit_s=300, on_incumbent=fail)


def distance(n: int = 8) -> Any:
    rng = np.random.default_rng(4)
    F, a = rng.normal(size=(n, n)), rng.normal(size=(3, n))
    m = pyo.ConcreteModel()
    m.x0, m.t = pyo.Var(range(n)), pyo.Var()
    m.x = pyo.Var(range(n), bounds=(-9, 9))
    for j in range(0, n, 2):
        m.x[j].domain = pyo.Integers
    x = [m.x[j] for j in range(n)]
    m.r = pyo.Constraint(range(3), rule=lambda _, i: rows(a[[i]], x, [1.0])[0] >= 0)
    m.near = pyo.Constraint(expr=soc(m.t, rows(F, [m.x[j] - m.x0[j] for j in range(n)], np.zeros(n))) >= 0)
    m.cost = pyo.Objective(expr=m.t)
    return m


@pytest.mark.long
def test_data_and_rows_change_between_solves_and_history_does_not_matter() -> None:
    model = distance()
    compiled = compile_model(model, [model.x0])
    session, rng = TangentSession(compiled, random_state=2), np.random.default_rng(0)
    with pytest.raises(InvalidValueError, match="x0"):
        session.solve()
    people, seen = rng.uniform(-4, 4, (3, 8)), []
    for x0 in (*people, people[0]):
        compiled.set_data(model.x0, x0)
        outcome = session.solve()
        fresh = TangentSession(compiled, random_state=2).solve()
        assert outcome.status is Status.OPTIMAL
        assert outcome.x.tolist() == fresh.x.tolist()
        assert [o for _, o, _ in outcome.incumbents] == [o for _, o, _ in fresh.incumbents]
        seen.append(outcome.objective)
    assert seen[0] == seen[3]
    model.cap = pyo.Constraint(expr=soc(2.0, [model.x[0] - 5, model.x[2] - 5]) >= 0)
    compiled.append(model.cap)
    nearer = session.solve()
    assert nearer.objective > seen[0]
    assert compiled.violation(nearer.x) < 1e-6
    again = compile_model(model, [model.x0])
    again.set_data(model.x0, people[0])
    assert TangentSession(again).solve().objective == pytest.approx(nearer.objective, rel=1e-6)


@pytest.mark.long
def test_a_start_is_completed_and_a_bad_one_ignored() -> None:
    model = distance()
    compiled = compile_model(model, [model.x0])
    compiled.set_data(model.x0, np.linspace(-3, 3, 8))
    session = TangentSession(compiled)
    best = session.solve()
    whole = np.flatnonzero(compiled.integer).tolist()
    begun = session.solve(start={k: best.x[k] for k in whole})
    assert begun.objective == pytest.approx(best.objective, rel=1e-6)
    assert all(x[whole].tolist() == best.x[whole].tolist() for _, _, x in begun.incumbents)
    for start in ({whole[0]: best.x[whole[0]]}, dict.fromkeys(range(len(best.x)), 7.0), best.x + 100.0, best.x):
        assert session.solve(start=start).objective == pytest.approx(best.objective, rel=1e-6)


def test_the_pool_holds_points_of_the_program() -> None:
    model = distance()
    compiled = compile_model(model, [model.x0])
    compiled.set_data(model.x0, np.linspace(-3, 3, 8))
    outcome = TangentSession(compiled).solve(pool=5)
    assert outcome.pool
    kinds = {tuple(point[compiled.integer]) for point in outcome.pool}
    assert len(kinds) == len(outcome.pool)
    for point in outcome.pool:
        assert compiled.violation(point) < 1e-6
        assert compiled.evaluate(point) >= outcome.objective - 1e-9
    assert not TangentSession(compiled).solve().pool


def test_a_vertex_is_raised_into_its_cone_and_no_other_is_left() -> None:
    """x is the head of one cone and an entry of another: raising it for the one would break the other."""
    m = pyo.ConcreteModel()
    m.x, m.y, m.t = pyo.Var(bounds=(0, 9)), pyo.Var(bounds=(2, 9)), pyo.Var()
    m.one = pyo.Constraint(expr=soc(m.x, [m.y, 1]) >= 0)
    m.two = pyo.Constraint(expr=soc(2.5, [m.x, 1]) >= 0)
    m.cost = pyo.Objective(expr=m.x - 2 * m.y)
    compiled = compile_model(m)
    blocks = Blocks.of(compiled)
    names = [column.name for column in compiled.columns]
    assert dict(zip(names, blocks.raisable.tolist(), strict=True)) == {"x": False, "y": False}
    y = math.sqrt(2.5**2 - 2)
    outside = np.array([1.0, 2.0])
    assert blocks.lifted(outside, compiled).tolist() == [1.0, 2.0]
    m.two.deactivate()
    alone = compile_model(m)
    assert Blocks.of(alone).lifted(outside, alone).tolist() == pytest.approx([math.sqrt(5), 2.0])
    m.two.activate()
    outcome = optimal(m, math.sqrt(5.25) - 2 * y, rel=1e-7)
    assert outcome.violation < 10 * CONE_TOLERANCE


def test_integers_without_bounds_are_not_passed_over() -> None:
    """Of this program's relaxation HiGHS 1.15.1, given a start, was seen to call 0.33479 the optimum."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(5), domain=pyo.Integers)
    for j, (low, high) in enumerate([(None, 2), (-2, None), (None, None), (-1, 1), (-2, 2)]):
        m.x[j].setlb(low)
        m.x[j].setub(high)
    m.t = pyo.Var(bounds=(0, None))
    x = [m.x[j] for j in range(5)]
    F = [[1.42, -0.76, 0, 0, 0], [-2.72, 0.62, 0.58, 0.02, -0.5], [-0.15, 0, 0, 0.28, 0.41]]
    c = [-0.38466, -0.54352, -0.001, 0.14336, -0.028]
    m.near = pyo.Constraint(expr=rotated_soc(m.t, 0.5, rows(F, x, [0.27, 0.39, 1.38])) >= 0)
    m.cost = pyo.Objective(expr=0.3 * m.t + sum(w * v for w, v in zip(c, x, strict=True)) + 0.28129)
    grid = itertools.product(range(-6, 3), range(-2, 9), range(-30, 31), range(-1, 2), range(-2, 3))
    points = np.array(list(grid), dtype=float)
    value = 0.3 * ((points @ np.array(F).T - [0.27, 0.39, 1.38]) ** 2).sum(axis=1) + points @ c + 0.28129
    optimal(m, float(value.min()))


# ---- what is refused ----
def test_other_classes_are_refused_in_a_sentence() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(-1, 1))
    m.o = pyo.Objective(expr=m.x[0])
    m.c = pyo.Constraint(expr=psd([[m.x[0], 1], [1, m.x[1]]]) >= 0)
    with pytest.raises(UnsupportedProblemError, match=r"SDP.*solve\(model\)"):
        TangentSession(compile_model(m))
    m.del_component(m.c)
    m.c = pyo.Constraint(expr=m.x[0] ** 2 - m.x[1] ** 2 <= -0.5)
    with pytest.raises(UnsupportedProblemError, match=r"nonconvex.*solve\(model\)"):
        TangentSession(compile_model(m))
    m.del_component(m.c)
    compiled = compile_model(m)
    session = TangentSession(compiled)
    m.c = pyo.Constraint(expr=psd([[m.x[0], 1], [1, m.x[1]]]) >= 0)
    compiled.append(m.c)
    with pytest.raises(UnsupportedProblemError, match="'c'"):
        session.solve()


@pytest.mark.long
def test_options_are_those_of_highs() -> None:
    compiled = compile_model(_disjoint(integer=True))
    with pytest.raises(UnknownNameError, match="mip_max_nodes"):
        TangentSession(compiled, options={"mip_max_node": 3})
    with pytest.raises(InvalidValueError, match="relative_gap="):
        TangentSession(compiled, options={"mip_rel_gap": 0.1})
    session = TangentSession(compiled, options={"presolve": "off", "mip_feasibility_tolerance": 1e-7}, threads=2)
    assert session.solve().status is Status.INFEASIBLE
    assert session.version.count(".") == 2
    limited = TangentSession(compile_model(hard()), options={"mip_max_nodes": 1}).solve(time_limit_s=60)
    assert limited.status in {Status.FEASIBLE, Status.OPTIMAL, Status.TIME_LIMIT}


@pytest.mark.parametrize("kind", ["LP", "MILP", "QP"])
def test_programs_without_cones_are_solved_too(kind: str) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(0, 4), domain=pyo.Integers if kind == "MILP" else pyo.Reals)
    m.c = pyo.Constraint(expr=2 * m.x[0] + 2 * m.x[1] <= 7)
    m.o = pyo.Objective(expr=3 * m.x[0] + 2 * m.x[1] - (m.x[0] ** 2 if kind == "QP" else 0), sense=pyo.maximize)
    optimal(m, {"LP": 10.5, "MILP": 9.0, "QP": 0.5 - 0.25 + 7.0}[kind])


@pytest.mark.parametrize(("weight", "cost"), [(1e-3, 2e3), (1e-2, 2e4), (1e-3, 2e2)])
def test_optimal_is_what_the_gap_allows_whatever_the_units_of_the_squares(weight: float, cost: float) -> None:
    """Squares that are huge at first are costly in the relaxation; that excuses no gap in the program's own units."""
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(domain=pyo.Integers, bounds=(None, 5)), pyo.Var(range(2), domain=pyo.Binary)
    squares = (1 - 1000 - 0.3 * m.x + 0.003 * m.y[0] + 0.002 * m.y[1]) ** 2
    squares += (0.01 - 1000 * m.x - 0.003 * m.y[0] + 40 * m.y[1] - 2) ** 2
    m.cost = pyo.Objective(expr=weight * squares + cost * m.x + 0.03 * m.y[0])
    objective = lambda x, a, b: (  # noqa: E731
        weight * ((1 - 1000 - 0.3 * x + 0.003 * a + 0.002 * b) ** 2 + (0.01 - 1000 * x - 0.003 * a + 40 * b - 2) ** 2)
        + cost * x
        + 0.03 * a
    )
    best = min(itertools.starmap(objective, itertools.product(range(-9, 6), (0, 1), (0, 1))))
    outcome = solved(m)
    assert outcome.status in {Status.OPTIMAL, Status.FEASIBLE}
    slack = 1e-6 * abs(outcome.objective) + 1e-6
    assert outcome.bound <= best + slack
    assert outcome.objective >= best - slack
    if outcome.status is Status.OPTIMAL:
        assert outcome.objective - outcome.bound <= slack


def test_a_cost_too_small_to_be_seen_leaves_no_false_bound_and_no_contradictory_message() -> None:
    """The relaxation overlooks a cost of 1e-9 of the greatest; the integer search finds the cuts unbounded."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), domain=pyo.Integers)
    m.x[1].setlb(1)
    m.x[2].setlb(-6)
    m.cost = pyo.Objective(expr=10 * (4000 * m.x[1] + 3 * m.x[2]) ** 2 - 0.1 * m.x[0])
    outcome = solved(m)
    assert outcome.status in {Status.UNBOUNDED, Status.ERROR, Status.FEASIBLE}
    assert outcome.bound is None or outcome.bound == -math.inf
    assert outcome.status is Status.UNBOUNDED or "proved that the program is unbounded" not in outcome.message


def test_cuts_are_not_searched_where_presolve_loses_the_best_integers() -> None:
    """Another loop of cuts called 5834.15 optimal: HiGHS's presolve, at its finest tolerance, lost these integers."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(5), domain=pyo.Integers)
    for k, (low, high) in enumerate([(None, None), (0, 6000), (-4000, -2000), (-4000, -3000), (-3000, 1000)]):
        m.x[k].setlb(low)
        m.x[k].setub(high)
    x = m.x
    m.equal = pyo.Constraint(expr=-0.54 * x[0] + 1.29 * x[1] + 0.75 * x[2] - 0.02 * x[3] + 0.44 * x[4] + 1340 == 2)
    ball = 0.71 * x[0] + 0.04 * x[2] + 0.15 * x[3] + 1.2 * x[4] + 1180
    m.ball = pyo.Constraint(expr=ball**2 - 1.08 * x[0] - 0.33 * x[1] + 1.62 * x[3] + 1.2 * x[4] + 2700 <= 5000)
    m.gain = pyo.Objective(expr=0.91 * x[0] - 0.01 * x[1] + 0.2 * x[2] - 0.53 * x[3] + 1.41, sense=pyo.maximize)
    session = TangentSession(compile_model(m))
    outcome = session.solve()
    assert outcome.bound is None or outcome.bound >= 5836.9 * (1 - 1e-6)
    if outcome.status is Status.OPTIMAL:
        assert outcome.objective == pytest.approx(5836.9)


def test_a_free_column_with_a_cost_beside_a_redundant_cone_is_unbounded() -> None:
    """Another loop of cuts, which had no ray of its own, ended in an error."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(5))
    m.x[0].setlb(0)
    m.x[0].setub(400)
    m.x[1].fix(-100.0)
    form = 0.12 * m.x[0] - 0.11 * m.x[2] + 0.38 * m.x[3] - 117
    m.ball = pyo.Constraint(expr=form**2 - 0.77 * m.x[3] - 145 <= 200)
    m.cone = pyo.Constraint(expr=soc(100000.0, [form]) >= 0)
    m.cost = pyo.Objective(expr=0.09 * m.x[0] - 1.57 * m.x[1] + 1.79 * m.x[2] + 0.54 * m.x[3] + 2.1 * m.x[4] + 1.17)
    assert TangentSession(compile_model(m)).solve().status is Status.UNBOUNDED
