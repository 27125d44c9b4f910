"""The conic form, what its points prove, and Clarabel and SCS over it: closed forms, rays, limits, changes, options."""

from __future__ import annotations

import math
import signal
from dataclasses import replace
from types import FunctionType
from typing import Any, ClassVar, final

import clarabel
import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
import scs
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from ceopt.solvers import Status, compile_model
from ceopt.solvers.cones import Cone, exponential, psd, psd_affine, rotated_soc, soc
from ceopt.solvers.conic.certificate import is_dual_ray, is_primal_ray, outside, prove, scalings
from ceopt.solvers.conic.clarabel import STOP as CLARABEL_STOP
from ceopt.solvers.conic.clarabel import ClarabelSession
from ceopt.solvers.conic.form import Lowering, conic_form
from ceopt.solvers.conic.scs import STOP as SCS_STOP
from ceopt.solvers.conic.scs import ScsSession
from ceopt.solvers.conic.session import AbstractConicSession, Answer
from ceopt.solvers.errors import InvalidValueError, UnknownNameError, UnsupportedProblemError

SESSIONS = pytest.mark.parametrize("Session", [ClarabelSession, ScsSession], ids=lambda session: session.who)
FREE = (None, None)


def model(objective: Any = None, sense: Any = pyo.minimize, **components: Any) -> Any:
    """A model of components; what is a function of the model is called with it, and becomes a Constraint."""
    m = pyo.ConcreteModel()
    for name, part in components.items():
        setattr(m, name, pyo.Constraint(expr=part(m)) if isinstance(part, FunctionType) else part)
    if objective is not None:
        m.objective = pyo.Objective(expr=objective(m), sense=sense)
    return m


def var(*bounds: Any) -> Any:
    return pyo.Var(bounds=bounds or FREE)


def symmetric(side: int, seed: int) -> Any:
    a = np.random.default_rng(seed).normal(size=(side, side))
    return a + a.T


def max_cut(side: int, seed: int = 0) -> Any:
    """Least <W, X> over correlation matrices."""
    weight = symmetric(side, seed).tolist()
    m = pyo.ConcreteModel()
    m.X = pyo.Var([(i, j) for j in range(side) for i in range(j + 1)], initialize=0)
    m.cone = pyo.Constraint(expr=psd([[m.X[min(i, j), max(i, j)] for j in range(side)] for i in range(side)]) >= 0)
    m.diagonal = pyo.Constraint(range(side), rule=lambda m, i: m.X[i, i] == 1)
    m.cost = pyo.Objective(expr=sum((2 - (i == j)) * weight[i][j] * m.X[i, j] for i, j in m.X))
    return m


# -- the form ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def everything() -> Any:
    """Every kind of row: an equality, a range, one side, bounds, each cone, a quadratic row, fixed columns, data."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(5), bounds=(-3, 4))
    m.x[3].setlb(None)
    m.t, m.k, m.d = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(2, 2)), pyo.Var(range(2), initialize=0.5)
    m.d.fix()
    m.equal = pyo.Constraint(expr=m.x[0] + m.x[1] + m.d[0] == 1)
    m.range = pyo.Constraint(expr=pyo.inequality(-2, m.x[1] - 3 * m.x[2] + m.k, 5))
    m.least = pyo.Constraint(expr=m.x[3] + m.d[1] >= -1)
    m.exp = pyo.Constraint(expr=exponential(m.x[0], m.t + 1, m.x[1] + 9) >= 0)
    m.psd = pyo.Constraint(expr=psd([[m.t + 2, m.x[2]], [m.x[2], m.k]]) >= 0)
    m.rotated = pyo.Constraint(expr=rotated_soc(m.t, m.k, [m.x[0], m.d[0]]) >= 0)
    m.soc = pyo.Constraint(expr=soc(m.t + 3, [m.x[3], m.x[4] - m.d[1]]) >= 0)
    m.ray = pyo.Constraint(expr=soc(m.x[4] + 3, []) >= 0)
    m.disc = pyo.Constraint(expr=(m.x[2] - m.d[0]) ** 2 + m.x[4] <= 7)
    m.constant = pyo.Constraint(expr=soc(m.k, [m.d[0]]) >= 0)
    m.gain = pyo.Objective(expr=3 - (m.x[0] - m.d[0]) ** 2 - (m.x[0] + m.x[1]) ** 2 + m.k * 2 - m.t, sense=pyo.maximize)
    return m


def test_a_form_says_what_the_model_says(everything):
    """The same points are inside, with the same objective; after the data moved, too."""
    compiled = compile_model(everything, data=[everything.d])
    lowering = Lowering(compiled)
    rng, held = np.random.default_rng(1), 0
    for values in ((0.5, 0.5), (-1.0, 2.0)):
        compiled.set_data(everything.d, values)
        form = lowering.form(compiled)
        for _ in range(400):
            x = form.expanded(rng.normal(size=form.q.size))
            x[compiled.index[everything.x[1]]] = 1 - values[0] - x[compiled.index[everything.x[0]]]
            x[compiled.index[everything.t]] = abs(x[compiled.index[everything.t]])
            reduced = x[form.free]
            assert_allclose(form.expanded(reduced), x)
            assert compiled.evaluate(x) == pytest.approx(form.sense * form.objective(reduced), abs=1e-9)
            away = outside(form, form.b - form.A @ reduced).max()
            assert (away <= 1e-12) == (compiled.violation(x) <= 1e-12)
            held += away <= 1e-12
    assert 20 < held < 780


def test_the_rows_of_a_form_and_where_they_come_from(everything):
    m = everything
    form = conic_form(compile_model(m, data=[m.d]))
    assert (form.zero, form.nonnegative, form.sense) == (1, 3 + 5 + 4 + 1 + 1, -1)
    assert form.cones == (
        (Cone.SECOND_ORDER, 4),
        (Cone.SECOND_ORDER, 3),
        (Cone.SECOND_ORDER, 3),
        (Cone.SEMIDEFINITE, 2),
        (Cone.EXPONENTIAL, 3),
    )
    names = [(source.name, rows.stop - rows.start) for source, rows in form.rows_of()]
    assert names[:4] == [("equal", 1), ("range", 1), ("range", 1), ("least", 1)]
    assert [name for name, _ in names[4:13]].count("x[3]") == 1
    assert names[-6:] == [("ray", 1), ("rotated", 4), ("soc", 3), ("disc", 3), ("psd", 3), ("exp", 3)]
    assert [rows.start for _, rows in form.rows_of()] == np.cumsum([0, *(size for _, size in names)])[:-1].tolist()
    assert form.broken == ""
    x = np.arange(1.0, 1 + form.q.size)
    entries = dict(zip([n for n, _ in names], [(form.b - form.A @ x)[rows] for _, rows in form.rows_of()], strict=True))
    at = dict(zip([compile_model(m, data=[m.d]).columns[k].name for k in form.free], x, strict=True))
    root = math.sqrt(0.5)
    assert_allclose(entries["equal"], 1 - 0.5 - at["x[0]"] - at["x[1]"])
    assert_allclose(entries["least"], at["x[3]"] + 1.5)
    assert_allclose(entries["psd"], [at["t"] + 2, math.sqrt(2) * at["x[2]"], 2])
    assert_allclose(entries["rotated"], [root * (at["t"] + 2), root * (at["t"] - 2), at["x[0]"], 0.5])
    assert_allclose(entries["exp"], [at["x[0]"], at["t"] + 1, at["x[1]"] + 9])


def test_only_b_q_and_c0_are_computed_anew_when_data_move(everything):
    compiled = compile_model(everything, data=[everything.d])
    lowering = Lowering(compiled)
    first = lowering.form(compiled)
    compiled.set_data(everything.d, [3.0, 0.0])
    second, fresh = lowering.form(compiled), conic_form(compiled)
    assert second.A is first.A
    assert second.P is first.P
    assert np.abs(second.b - first.b).max() > 1
    for name in ("b", "q", "c0"):
        assert_array_equal(getattr(second, name), getattr(fresh, name))


def test_the_lower_triangle_by_columns():
    form = conic_form(compile_model(max_cut(4)))
    matrix = symmetric(4, 7)
    upper = np.array([matrix[i, j] for j in range(4) for i in range(j + 1)])
    lower = np.array([matrix[i, j] for j in range(4) for i in range(j, 4)])
    order = form.lower_by_columns()
    assert_array_equal(order[:4], range(4))
    assert_array_equal(upper[order[4:] - 4], lower)


def test_scaling_is_exact_and_undone(everything):
    m = model(
        lambda m: 1e-9 * m.x + 3e-8 * m.y + 2.0**-20,
        x=var(),
        y=var(-1e9, 1e9),
        a=lambda m: 1e-8 * m.x + m.y >= 1,
        b=lambda m: soc(m.x, [1e4 * m.y]) >= 0,
    )
    form = conic_form(compile_model(m))
    (better,) = scalings(form)
    assert 0.5 <= np.abs(better.form.q).max() <= 2
    x, s, z = np.array([2.0, -3.0]), np.arange(form.b.size) + 1.0, np.arange(form.b.size) + 2.0
    at, slack, dual = x / better.columns, s * better.rows, z * better.cost / better.rows
    for one, other in zip(better.unscaled(at, slack, dual), (x, s, z), strict=True):
        assert_array_equal(one, other)
    assert_array_equal(better.form.b - better.form.A @ at, (form.b - form.A @ x) * better.rows)
    assert better.form.objective(at) == form.objective(x) * better.cost
    assert_array_equal(better.rows[form.linear :], 1.0)
    costs = [scaling.cost for scaling in scalings(replace(form, q=1e8 * np.ones(2)))]
    assert len(costs) == 2
    assert costs[0] < 1e-6
    assert costs[1] == 1.0


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: model(lambda m: m.n, n=pyo.Var(domain=pyo.Integers)), "Var 'n' is integer"),
        (lambda: model(lambda m: -(m.x**2), x=var(0, 1)), "a convex quadratic objective to minimise"),
        (lambda: model(lambda m: m.x**2, pyo.maximize, x=var(0, 1)), "a concave quadratic objective to maximise"),
        (lambda: model(lambda m: m.x, x=var(), q=lambda m: m.x**2 >= 1), "constraint 'q' is not convex"),
        (lambda: model(lambda m: m.x, x=var(), q=lambda m: m.x**2 == 1), "constraint 'q' is not convex"),
    ],
)
@SESSIONS
def test_what_is_not_convex_is_refused(Session, made, words):
    with pytest.raises(UnsupportedProblemError, match=words):
        Session(compile_model(made()))


# -- what points prove -------------------------------------------------------------------------------------------------
def solved(m: Any) -> tuple[Any, Any, Any, Any]:
    """A form with a primal and a dual optimum, straight from the solver."""
    form = conic_form(compile_model(m))
    kinds = {Cone.SECOND_ORDER: clarabel.SecondOrderConeT, Cone.SEMIDEFINITE: clarabel.PSDTriangleConeT}
    cones = [clarabel.ZeroConeT(form.zero), clarabel.NonnegativeConeT(form.nonnegative)]
    cones += [kinds[cone](size) if cone in kinds else clarabel.ExponentialConeT() for cone, size in form.cones]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(form.P, form.q, form.A, form.b, cones, settings).solve()
    return form, np.array(found.x), np.array(found.s), np.array(found.z)


def test_a_certificate_is_recomputed_from_the_numbers(everything):
    form, x, s, z = solved(everything)
    proof = prove(form, x, s, z)
    P = form.P + sp.triu(form.P, 1).T
    primal, dual = form.A @ x + s - form.b, P @ x + form.q + form.A.T @ z
    assert proof.is_optimal(1e-6)
    assert proof.certificate.worst < 1e-6
    assert np.abs(primal).max() <= proof.certificate.primal * 30
    assert np.abs(dual).max() <= proof.certificate.dual * 30
    p, d = form.c0 + form.q @ x + 0.5 * x @ (P @ x), form.c0 - 0.5 * x @ (P @ x) - form.b @ z
    assert (proof.objective, proof.bound) == pytest.approx((p, d), abs=1e-12)
    assert proof.certificate.gap == pytest.approx(abs(p - d) / max(1, abs(p)), abs=1e-15)
    assert proof.certificate.complementarity >= abs(s @ z) / max(1, abs(p)) - 1e-15
    assert proof.doubt >= proof.certificate.gap


@pytest.mark.parametrize("cost", [1e-4, 0.5, 1.5, 30.0])
@pytest.mark.parametrize("constant", [0.0, 40.0])
@pytest.mark.parametrize("curved", [0.0, 3.0])
def test_each_residual_is_relative_to_what_the_table_says(cost: float, constant: float, curved: float) -> None:
    """The table of the module in plain numbers, at points that are far from optimal and inside of every cone."""
    m = model(
        lambda m: cost * m.x - 0.4 * cost * m.y + 0.5 * curved * cost * m.x**2 + constant,
        x=var(0, 50), y=var(0, 50), c=lambda m: 2 * m.x + m.y == 3, d=lambda m: 3 * m.x - m.y <= 0.01,
    )  # fmt: skip
    form = conic_form(compile_model(m))
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 0.02, 2)
    s = np.concatenate([np.zeros(form.zero), rng.uniform(0.0, 0.1, form.b.size - form.zero)])
    z = rng.uniform(0.0, 1e-3 * cost, form.b.size)
    A, P = form.A.toarray(), (form.P + sp.triu(form.P, 1).T).toarray()
    p = 0.5 * x @ P @ x + form.q @ x + form.c0
    d = -0.5 * x @ P @ x - form.b @ z + form.c0
    greatest = max(np.abs(form.q).max(), np.abs(P).max())
    unit = max(min(1.0, greatest), abs(p))
    primal, dual = A @ x + s - form.b, P @ x + form.q + A.T @ z
    of_rows = np.maximum(1.0, np.abs(A) @ np.abs(x) + np.abs(form.b))
    of_columns = np.maximum(1e-2 * greatest, np.abs(P @ x) + np.abs(form.q) + np.abs(A).T @ np.abs(z))

    proof = prove(form, x, s, z)

    assert proof is not None
    assert (proof.objective, proof.bound, proof.unit) == pytest.approx((p, d, unit), rel=1e-12)
    assert proof.certificate.primal == pytest.approx((np.abs(primal) / of_rows).max(), rel=1e-12)
    assert proof.certificate.dual == pytest.approx((np.abs(dual) / of_columns).max(), rel=1e-12)
    assert proof.certificate.complementarity == pytest.approx(np.abs(s * z).sum() / unit, rel=1e-12)
    assert proof.certificate.gap == pytest.approx(abs(p - d) / unit, rel=1e-12)
    least = (abs(p - d) + np.abs(z * primal).sum() + np.abs(x) @ np.abs(dual)) / unit
    assert proof.doubt >= least * (1 - 1e-12)
    # Beyond x itself a column counts as far as its bound is.
    assert proof.doubt <= (abs(p - d) + np.abs(z * primal).sum() + 50.0 * np.abs(dual).sum()) / unit


def test_what_may_be_shown_and_what_is_proved_are_two_things() -> None:
    form = conic_form(compile_model(model(lambda m: m.x, x=var(1, 3))))
    places = {float(b): k for k, b in enumerate(form.b)}  # x <= 3 and -x <= -1
    best = np.zeros(2)
    best[places[-1.0]] = 1.0

    def proved(x: float, dual: Any) -> Any:
        point = np.array([x])
        return prove(form, point, np.maximum(form.b - form.A @ point, 0.0), dual)

    shown = {
        "best": proved(1.0, best),
        "poor": proved(2.0, best),
        "low": proved(0.9, best),
        "free": proved(1.0, 0 * best),
    }
    assert {name: proof.is_primal_feasible for name, proof in shown.items()} == {
        "best": True, "poor": True, "low": False, "free": True
    }  # fmt: skip
    assert {name: proof.is_dual_feasible for name, proof in shown.items()} == {
        "best": True, "poor": True, "low": True, "free": False
    }  # fmt: skip
    assert [name for name, proof in shown.items() if proof.is_optimal(1e-6)] == ["best"]


@pytest.mark.parametrize("part", ["x", "s", "z"])
def test_a_point_that_is_off_proves_nothing(everything, part):
    form, *points = solved(everything)
    for row in range(points["xsz".index(part)].size):
        for step in (1e-3, -1e-3):
            moved = [point.copy() for point in points]
            moved["xsz".index(part)][row] += step
            assert not prove(form, *moved).is_optimal(1e-6)
    moved["xsz".index(part)][0] = math.nan
    assert prove(form, *moved) is None


@pytest.mark.parametrize("kind", [Cone.SECOND_ORDER, Cone.SEMIDEFINITE, Cone.EXPONENTIAL])
def test_equations_alone_prove_nothing_outside_of_the_cones(kind):
    """Points that meet every equation, with s or z outside of one cone."""
    margin = {
        Cone.SECOND_ORDER: lambda m: soc(m.x, [m.y, m.w]),
        Cone.SEMIDEFINITE: lambda m: psd([[m.x, m.y], [m.y, m.w]]),
        Cone.EXPONENTIAL: lambda m: exponential(m.x, m.y, m.w),
    }[kind]
    m = model(lambda m: m.x + m.y + m.w, x=var(), y=var(), w=var(), cone=lambda m: margin(m) >= 0)
    form = conic_form(compile_model(m))
    dual = sp.linalg.spsolve(sp.csc_array(form.A.T), -form.q)  # the only one: stationary
    zero = np.zeros(3)
    assert prove(form, zero, zero, dual).certificate.gap == 0
    inside = {Cone.SECOND_ORDER: False, Cone.SEMIDEFINITE: True, Cone.EXPONENTIAL: False}[kind]
    assert (prove(form, zero, zero, dual).certificate.dual == 0) is inside
    x = np.array([-1.0, -1.0, -1.0])
    assert prove(form, x, form.b - form.A @ x, dual).certificate.primal > 0.1


def test_the_dual_exponential_cone():
    """(u, v, w) is dual exactly if its product with every (x, y, z) of the cone is at least 0."""
    m = model(lambda m: m.x, x=var(), y=var(), w=var(), cone=lambda m: exponential(m.x, m.y, m.w) >= 0)
    form, rng = conic_form(compile_model(m)), np.random.default_rng(0)
    y, ratio = rng.uniform(0, 3, 4000), rng.uniform(-30, 10, 4000)
    points = np.vstack([y * ratio, y, y * np.exp(ratio)])
    counted = 0
    for _ in range(300):
        dual = rng.normal(size=3)
        away = outside(form, dual, dual=True).max()
        least = min((dual @ points).min(), -dual[0], dual[2])  # with the rays (-1, 0, 0) and (0, 0, 1)
        if away > 0.05:
            assert least < 0
        if away == 0:
            assert least >= -1e-12
            counted += 1
    assert counted > 10


def test_a_gap_of_0_with_dear_residuals_is_in_doubt():
    """Both rows are missed by 5e-7, at prices of a million: p = d = 0, though nothing of it is known to 0.5."""
    m = model(lambda m: 1e6 * (m.x - m.y), x=var(1, None), y=var(None, 1))
    form = conic_form(compile_model(m))
    proof = prove(form, np.full(2, 1 - 5e-7), np.array([0.0, 0.0]), np.full(2, 1e6))
    assert proof.certificate.gap < 1e-9
    assert proof.certificate.worst <= 1e-6
    assert proof.doubt > 0.5
    assert not proof.is_optimal(1e-6)
    assert prove(form, np.ones(2), np.zeros(2), np.full(2, 1e6)).is_optimal(0)


def test_a_gap_of_0_with_great_numbers_is_in_doubt():
    """Both duals are off by 1e-6 of themselves, for numbers of a million: they cancel in p - d and in x'r."""
    m = model(lambda m: m.x - m.y, x=var(1e6, None), y=var(None, 1e6))
    proof = prove(conic_form(compile_model(m)), np.full(2, 1e6), np.zeros(2), np.full(2, 1 + 5e-7))
    assert proof.certificate.worst <= 1e-6
    assert proof.doubt == pytest.approx(1.0, rel=1e-6)


def dear_and_cheap() -> Any:
    """x costs 30000 and t nothing; y, which costs 30, is held at 0 unless t, which is at 0, rises to 20000."""
    return model(
        lambda m: -30000 * m.x - 30 * m.y,
        x=var(-1, 6),
        y=var(-1, 4),
        t=var(0, None),
        held=lambda m: 200 * m.y - 0.04 * m.t <= 0,
    )


def test_a_dear_column_excuses_no_residual_of_a_cheap_one():
    """LP 5290 of a hunt: 6e-3 is little beside 30000, and all of what holds a column that goes on for ever."""
    form = conic_form(compile_model(dear_and_cheap()))
    x = np.where(form.q == -30000, 6.0, 0.0)
    z = np.zeros(form.b.size)
    for k, (source, _) in enumerate(form.rows_of()):
        if source.name == "held":
            z[k] = 0.15
        elif source.name == "x" and form.b[k] == 6:
            z[k] = 30000.0
    proof = prove(form, x, form.b - form.A @ x, z)
    assert max(proof.certificate.gap, proof.certificate.complementarity, proof.doubt) <= 1e-12
    assert np.abs(form.q + form.A.T @ z).max() == pytest.approx(6e-3)
    assert proof.certificate.dual == pytest.approx(2e-5)
    assert not proof.is_optimal(1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_small_residual_counts_as_far_as_its_column_reaches(sign):
    """x at 0 would improve the cost by 1e-9 times 2e4, in the one direction; in the other one by nothing."""
    form = conic_form(compile_model(model(lambda m: m.y + sign * 1e-9 * m.x, x=var(0, 2e4), y=var(1, None))))
    x = np.array([float(q == 1) for q in form.q])
    z = np.array([float(source.name == "y") for source, _ in form.rows_of()])
    proof = prove(form, x, form.b - form.A @ x, z)
    assert proof.certificate.worst <= 1e-6
    assert proof.doubt == pytest.approx(2e-5 if sign < 0 else 0.0)


def test_the_optimum_of_a_dear_column_beside_a_cheap_one_that_reaches_far():
    """LP 5290 of a hunt as it was: -180000.67 was called optimal."""
    m = model(
        lambda m: -30 * m.x[0] - 30000 * m.x[1] - 1,
        x=pyo.Var(range(4), bounds=lambda _, k: [(-1, 4), (-1, 6), (None, None), (-6, None)][k]),
        first=lambda m: -3000 * m.x[0] + 3 * m.x[1] - 0.2 * m.x[2] + 10000 * m.x[3] >= 6,
        second=lambda m: 200 * m.x[0] - 0.3 * m.x[1] - 0.02 * m.x[2] - 0.04 * m.x[3] == -4,
        third=lambda m: -30 * m.x[0] + 2 * m.x[2] + 3e-4 * m.x[3] <= -1,
    )
    outcome = ClarabelSession(compile_model(m)).solve()
    assert outcome.status is not Status.OPTIMAL or outcome.objective == pytest.approx(-180121, rel=1e-6)


def test_a_ray_along_small_coefficients_does_not_hide_beside_great_ones():
    """SDP 130 of a hunt: [[4e-4, 3e-3], [3e-3, 3e-3]] is indefinite, beside entries of a thousand."""
    m = model(
        lambda m: 1e4 * m.x,
        x=var(None, 5),
        y=var(-1, 6),
        c=lambda m: psd([[1000 * m.y - 4e-4 * m.x, 3e-3 * m.x], [3e-3 * m.x, 1000 * m.y - 3e-3 * m.x]]) >= 0,
    )
    form = conic_form(compile_model(m))
    assert not is_primal_ray(form, np.where(form.q > 0, -1.0, 1e-9))
    del m.c
    m.c = pyo.Constraint(expr=psd([[1000 * m.y - 4e-3 * m.x, 3e-3 * m.x], [3e-3 * m.x, 1000 * m.y - 3e-3 * m.x]]) >= 0)
    form = conic_form(compile_model(m))
    assert is_primal_ray(form, np.where(form.q > 0, -1.0, 1e-10))


@pytest.mark.parametrize(("noise", "is_ray"), [(0.0, True), (0.5e-6, True), (2e-6, False), (0.1, False)])
def test_a_ray_may_bend_and_miss_by_a_millionth_in_units_of_its_columns(noise: float, is_ray: bool) -> None:
    """x goes on for ever; y has curvature in one program, and in the other a bound and a great coefficient."""
    curved = conic_form(compile_model(model(lambda m: m.y**2 - m.x, x=var(0, None), y=var(None, 5))))
    ray = np.where(curved.q < 0, 1.0, -noise)  # away from its bound
    assert is_primal_ray(curved, ray) is is_ray
    great = model(lambda m: 0 * m.y - m.x, x=var(0, None), y=var(), c=lambda m: 1e4 * m.y <= 1)
    form = conic_form(compile_model(great))
    ray = np.where(form.q < 0, 1.0, 1e-4 * noise)
    assert is_primal_ray(form, ray) is is_ray


def test_rays_are_checked():
    form = conic_form(compile_model(model(lambda m: m.x, x=var(1, None), c=lambda m: 2 * m.x <= 1)))
    ray = np.array([1.0, 2.0])  # the row, then the bound
    assert is_dual_ray(form, ray)
    assert is_dual_ray(form, 1e-8 * ray)
    assert not is_dual_ray(form, -ray)
    assert not is_dual_ray(form, np.array([1.0, 2.001]))
    assert not is_dual_ray(form, ray * math.nan)
    for scale in (1.0, 1e-8):
        far = conic_form(compile_model(model(lambda m: m.x, x=var(), c=lambda m, a=scale: a * m.x >= 1e-8 / a)))
        assert not is_dual_ray(far, np.array([1.0])), "there is a point"
    far = conic_form(compile_model(model(lambda m: m.x, x=var(1e8, None))))
    assert not is_dual_ray(far, np.array([1.0]))
    for size in (1e3, 1e-3):  # outside of the cone by a share of itself, which is noise, and by more
        rows = {"c": lambda m: m.x <= 0, "e": lambda m: 1e-14 * m.x <= 0}
        far = conic_form(compile_model(model(lambda m: m.x, x=var(1 / size, None), **rows)))
        for share, is_ray in ((0.0, True), (0.5e-9, True), (1e-7, False)):
            dual = np.where(np.abs(far.A.toarray()[:, 0]) < 1e-9, -share, 1.0)
            assert is_dual_ray(far, dual) is is_ray
    box = conic_form(compile_model(model(lambda m: m.x, x=var(0, 1))))
    assert not is_dual_ray(box, np.array([-1.0, -1.0])), "it meets the equations, outside of the dual cone"
    down = conic_form(compile_model(model(lambda m: m.x, x=var(None, 1), y=var(), c=lambda m: soc(2, [m.y]) >= 0)))
    assert is_primal_ray(down, np.array([0.0, -1.0]))  # y, x: in the order in which the rows name them
    assert not is_primal_ray(down, np.array([0.0, 1.0]))
    assert not is_primal_ray(down, np.array([0.1, -1.0]))
    curved = conic_form(compile_model(model(lambda m: 1e-8 * m.x**2 - m.x, x=var())))
    assert not is_primal_ray(curved, np.array([1.0]))


@final
class Scripted(AbstractConicSession):
    """A solver that says what it is told to: each answer a status and a value of x, with a slack that fits."""

    who = "Script"
    version = "1"
    script: ClassVar[list[tuple[Status, float]]] = []

    def _prepare(self) -> None:
        """Nothing to import."""

    def _answers(self, form, _search):
        for status, x in self.script:
            s = np.maximum(0.0, form.b - form.A @ np.array([x]))
            yield Answer(status=status, words="a word", x=np.array([x]), s=s, z=np.array([0.5]))


@pytest.mark.parametrize(
    ("script", "status", "x"),
    [
        ([("error", 1.0)], Status.OPTIMAL, 1.0),  # whatever it says
        ([("optimal", 1.1)], Status.FEASIBLE, 1.1),
        ([("optimal", 0.9)], Status.ERROR, None),
        ([("optimal", math.nan)], Status.ERROR, None),
        ([("infeasible", 1.1)], Status.ERROR, None),
        ([("unbounded", -1.0)], Status.ERROR, None),
        ([("time_limit", 0.9)], Status.TIME_LIMIT, None),
        ([("time_limit", 1.1)], Status.FEASIBLE, 1.1),
        ([("interrupted", 1.1)], Status.INTERRUPTED, 1.1),
        ([("optimal", 1.2), ("optimal", 1.1), ("optimal", 1.3)], Status.FEASIBLE, 1.1),
        ([("optimal", 1.2), ("error", 1.0), ("optimal", 1.3)], Status.OPTIMAL, 1.0),
        ([("optimal", 1.1), ("time_limit", 0.5), ("error", 1.0)], Status.FEASIBLE, 1.1),
        ([("optimal", 1.1), ("interrupted", 0.5), ("error", 1.0)], Status.INTERRUPTED, 1.1),
        ([("error", 0.5), ("interrupted", 0.5)], Status.INTERRUPTED, None),
    ],
)
def test_the_numbers_decide_and_not_the_solver(monkeypatch, script, status, x):
    monkeypatch.setattr(Scripted, "script", [(Status(said), value) for said, value in script])
    compiled = compile_model(model(lambda m: m.x, x=var(), c=lambda m: 2 * m.x >= 2))
    outcome = Scripted(compiled).solve()
    assert outcome.status is status
    assert (None if outcome.x is None else outcome.x[0]) == x
    assert (outcome.message == "") == (status is Status.OPTIMAL)
    assert outcome.bound in {None, 1.0}


# -- closed forms ------------------------------------------------------------------------------------------------------
def gelbrich(first: Any, second: Any) -> Any:
    """Greatest Tr C with [[first, C], [C', second]] semidefinite: the Gelbrich coupling."""
    d = len(first)
    m = pyo.ConcreteModel()
    m.C = pyo.Var(range(d), range(d))
    top = [[*first[i], *(m.C[i, j] for j in range(d))] for i in range(d)]
    bottom = [[*(m.C[j, i] for j in range(d)), *second[i]] for i in range(d)]
    m.joint = pyo.Constraint(expr=psd(top + bottom) >= 0)
    m.trace = pyo.Objective(expr=sum(m.C[i, i] for i in range(d)), sense=pyo.maximize)
    return m


def log_sum_exp(a: list[float]) -> Any:
    m = pyo.ConcreteModel()
    m.t, m.u = pyo.Var(), pyo.Var(range(len(a)))
    m.each = pyo.Constraint(range(len(a)), rule=lambda m, i: exponential(a[i] - m.t, 1, m.u[i]) >= 0)
    m.all = pyo.Constraint(expr=sum(m.u[i] for i in m.u) <= 1)
    m.least = pyo.Objective(expr=m.t)
    return m


def entropy(n: int) -> Any:
    m = pyo.ConcreteModel()
    m.x, m.t = pyo.Var(range(n)), pyo.Var(range(n))
    m.each = pyo.Constraint(range(n), rule=lambda m, i: exponential(m.t[i], m.x[i], 1) >= 0)
    m.all = pyo.Constraint(expr=sum(m.x[i] for i in range(n)) == 1)
    m.most = pyo.Objective(expr=sum(m.t[i] for i in range(n)), sense=pyo.maximize)
    return m


def least_eigenvalue(side: int) -> Any:
    m = pyo.ConcreteModel()
    m.t = pyo.Var()
    m.below = pyo.Constraint(expr=psd_affine(symmetric(side, 3), [-np.eye(side)], [m.t]) >= 0)
    m.most = pyo.Objective(expr=m.t, sense=pyo.maximize)
    return m


def on_plane(distance: Any, **rows: Any) -> Any:
    """Least t over points of x + y <= 0, with t a distance from (3, 4)."""
    return model(lambda m: m.t, x=var(), y=var(), t=var(0, None), row=lambda m: m.x + m.y <= 0, d=distance, **rows)


CLOSED = {
    "norm": (lambda: on_plane(lambda m: soc(m.t, [m.x - 3, m.y - 4]) >= 0), 7 / math.sqrt(2)),
    "norm as a quadratic row": (
        lambda: on_plane(lambda m: (m.x - 3) ** 2 + (m.y - 4) ** 2 <= m.t**2),
        7 / math.sqrt(2),
    ),
    "squared norm": (lambda: on_plane(lambda m: rotated_soc(m.t, 0.5, [m.x - 3, m.y - 4]) >= 0), 24.5),
    "squared norm as a row": (lambda: on_plane(lambda m: (m.x - 3) ** 2 + (m.y - 4) ** 2 <= m.t), 24.5),
    "squared norm as the cost": (
        lambda: model(lambda m: (m.x - 3) ** 2 + (m.y - 4) ** 2 + 1, x=var(), y=var(), r=lambda m: m.x + m.y <= 0),
        25.5,
    ),
    "maximised, with a constant": (
        lambda: model(
            lambda m: m.x + 2 * m.y + 10, pyo.maximize, x=var(), y=var(), c=lambda m: soc(1, [m.x, m.y]) >= 0
        ),
        10 + math.sqrt(5),
    ),
    "hyperbola": (
        lambda: model(lambda m: m.x + 4 * m.y, x=var(0, None), y=var(0, None), c=lambda m: m.x * m.y >= 1),
        4.0,
    ),
    "max-cut of an edge": (
        lambda: model(lambda m: 2 - 2 * m.x, pyo.maximize, x=var(), c=lambda m: psd([[1, m.x], [m.x, 1]]) >= 0),
        4.0,
    ),
    "least eigenvalue": (lambda: least_eigenvalue(7), float(np.linalg.eigvalsh(symmetric(7, 3))[0])),
    "entropy": (lambda: entropy(6), math.log(6)),
    "log-sum-exp": (lambda: log_sum_exp([0.3, -1.0, 2.0]), math.log(sum(map(math.exp, [0.3, -1.0, 2.0])))),
    # golden family gelbrich_distance, trace_C of dev-002 and dev-003
    "gelbrich 2": (
        lambda: gelbrich([[1.367819, 0.17295], [0.17295, 2.762859]], [[1.897319, -0.349426], [-0.349426, 2.270728]]),
        4.08305732634,
    ),
    "gelbrich 3": (
        lambda: gelbrich(
            [[2.225505, -0.337215, -0.257696], [-0.337215, 3.163221, -0.482675], [-0.257696, -0.482675, 0.265987]],
            [[1.76438, -0.815771, 1.000792], [-0.815771, 0.720634, -0.336077], [1.000792, -0.336077, 0.829156]],
        ),
        3.41761593851,
    ),
    "a range": (lambda: model(lambda m: m.x, x=var(), r=lambda m: pyo.inequality(-2, 2 * m.x, 3)), -1.0),
    "no rows": (lambda: model(lambda m: (m.x - 3) ** 2 + m.x, x=var()), 2.75),
    "no objective": (lambda: model(x=var(), c=lambda m: soc(m.x, [1]) >= 0), 0.0),
    "fixed by its bounds": (
        lambda: model(lambda m: m.x + m.k, x=var(), k=var(3, 3), c=lambda m: soc(m.x, [m.k, 4]) >= 0),
        8.0,
    ),
    "all fixed": (lambda: model(lambda m: m.k**2 + 1, k=var(3, 3), c=lambda m: soc(5, [m.k, 4]) >= 0), 10.0),
    "constants on the edge": (
        lambda: model(lambda m: m.x, x=var(1, None), k=var(1, 1), c=lambda m: psd([[m.k, 1], [1, 1]]) >= 0),
        1.0,
    ),
    "tiny costs": (
        lambda: model(lambda m: 1e-9 * m.t, x=var(), t=var(), c=lambda m: soc(m.t, [m.x, m.x - 2]) >= 0),
        1e-9 * math.sqrt(2),
    ),
    "huge costs": (
        lambda: model(lambda m: 1e9 * m.t, x=var(), t=var(), c=lambda m: soc(m.t, [m.x, m.x - 2]) >= 0),
        1e9 * math.sqrt(2),
    ),
    "a small coefficient": (lambda: model(lambda m: m.x, x=var(), c=lambda m: 1e-8 * m.x >= 1), 1e8),
    "no interior": (
        lambda: model(lambda m: m.y, x=var(None, 0), y=var(), c=lambda m: soc(m.x, [m.y]) >= 0),
        0.0,
    ),
    "a row twice": (
        lambda: model(
            lambda m: m.x,
            x=var(0, None),
            y=var(0, None),
            a=lambda m: m.x + m.y == 1,
            b=lambda m: 2 * m.x + 2 * m.y == 2,
        ),
        0.0,
    ),
}


@pytest.mark.long(every=2)
@SESSIONS
@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(Session, name):
    made, optimum = CLOSED[name]
    compiled = compile_model(made())
    session = Session(compiled)
    outcome, again = session.solve(), session.solve()
    assert outcome.status is Status.OPTIMAL, outcome.message
    unit = min(1.0, abs(optimum)) if name == "tiny costs" else 1.0
    assert outcome.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6 * unit)
    assert outcome.bound == pytest.approx(optimum, rel=1e-6, abs=1e-6 * unit)
    assert compiled.sense * (outcome.objective - outcome.bound) >= 0
    assert outcome.violation <= 1e-6 * max(1, abs(optimum))
    assert_array_equal(outcome.x, again.x)
    if outcome.certificate is not None:
        assert outcome.certificate.worst <= 1e-6


@SESSIONS
@pytest.mark.parametrize("seed", range(4))
def test_semidefinite_programs_with_an_optimum_by_construction(Session, seed):
    """X and Z of complementary ranges, costs C = Z + sum of y_i A_i: then <C, X> is optimal."""
    rng = np.random.default_rng(seed)
    side, rows = 5, 6
    basis, _ = np.linalg.qr(rng.normal(size=(side, side)))
    X = basis[:, :2] @ np.diag([1.0, 2.0]) @ basis[:, :2].T
    Z = basis[:, 2:] @ np.diag([1.0, 0.5, 3.0]) @ basis[:, 2:].T
    A = [symmetric(side, 100 * seed + i) for i in range(rows)]
    C = Z + sum(y * Ai for y, Ai in zip(rng.normal(size=rows), A, strict=True))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(side), range(side))
    whole = [[m.x[min(i, j), max(i, j)] for j in range(side)] for i in range(side)]
    m.cone = pyo.Constraint(expr=psd(whole) >= 0)
    m.rows = pyo.Constraint(
        range(rows),
        rule=lambda _, k: (
            sum(float(A[k][i, j]) * whole[i][j] for i in range(side) for j in range(side)) == float((A[k] * X).sum())
        ),
    )
    m.cost = pyo.Objective(expr=sum(float(C[i, j]) * whole[i][j] for i in range(side) for j in range(side)))
    outcome = Session(compile_model(m)).solve()
    assert outcome.status is Status.OPTIMAL, outcome.message
    assert outcome.objective == pytest.approx(float((C * X).sum()), rel=1e-6, abs=1e-6)


@SESSIONS
@pytest.mark.parametrize("seed", range(4))
def test_linear_programs_equal_scipy(Session, seed):
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(6, 9)).tolist(), rng.uniform(0, 2, 6).tolist(), rng.normal(size=9).tolist()
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(9), bounds=(-1, 2))
    m.r = pyo.Constraint(range(6), rule=lambda m, i: (-5, sum(a[i][j] * m.x[j] for j in range(9)), b[i]))
    m.o = pyo.Objective(expr=sum(c[j] * m.x[j] for j in range(9)) + 3, sense=pyo.maximize)
    rows = np.vstack([a, -np.array(a)])
    best = linprog(-np.array(c), A_ub=rows, b_ub=[*b, *[5] * 6], bounds=(-1, 2))
    outcome = Session(compile_model(m)).solve()
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(3 - best.fun, rel=1e-6)


# -- programs without an optimum ---------------------------------------------------------------------------------------
INFEASIBLE = {
    "bounds": lambda: model(lambda m: m.x, x=var(0, None), c=lambda m: m.x <= -1),
    "rows": lambda: model(
        lambda m: m.x - m.y, x=var(), y=var(), a=lambda m: m.x + m.y >= 1, b=lambda m: m.x + m.y <= 0
    ),
    "equal": lambda: model(x=var(), y=var(), a=lambda m: m.x + m.y == 1, b=lambda m: m.x + m.y == 2),
    "second order": lambda: model(lambda m: m.x, x=var(2, 3), c=lambda m: soc(1, [m.x]) >= 0),
    "rotated": lambda: model(lambda m: m.x, x=var(None, -1), y=var(), c=lambda m: rotated_soc(m.x, m.y, [1]) >= 0),
    "disc": lambda: model(lambda m: m.x, x=var(), y=var(3, None), c=lambda m: m.x**2 + m.y**2 <= 4),
    "semidefinite": lambda: model(lambda m: m.x, x=var(), c=lambda m: psd([[m.x, 1], [1, -m.x]]) >= 0),
    "exponential": lambda: model(lambda m: m.x, x=var(), z=var(None, -1), c=lambda m: exponential(m.x, 1, m.z) >= 0),
    "constant cone": lambda: model(lambda m: m.x, x=var(0, 1), k=var(6, 6), c=lambda m: soc(5, [m.k]) >= 0),
    "constant after terms cancel": lambda: model(
        lambda m: m.x, x=var(0, 1), c=lambda m: psd_affine(-np.eye(2), [np.eye(2), np.eye(2)], [m.x, -m.x]) >= 0
    ),
    "constant row": lambda: model(lambda m: m.x, x=var(0, 1), k=var(6, 6), c=lambda m: m.k <= 5),
    "constant equality": lambda: model(lambda m: m.x, x=var(0, 1), k=var(6, 6), c=lambda m: m.k == 5),
    "all fixed": lambda: model(lambda m: m.k, k=var(6, 6), c=lambda m: soc(5, [m.k]) >= 0),
    "and unbounded, were it not": lambda: model(lambda m: m.y, x=var(0, None), y=var(), c=lambda m: m.x <= -1),
}
UNBOUNDED = {
    "linear": lambda: model(lambda m: m.x, pyo.maximize, x=var(0, None)),
    "second order": lambda: model(lambda m: m.x + 0.5 * m.t, x=var(), t=var(), c=lambda m: soc(m.t, [m.x]) >= 0),
    "quadratic": lambda: model(lambda m: (m.x - m.y) ** 2 - m.x, x=var(), y=var()),
    "semidefinite": lambda: model(lambda m: m.x - m.y, x=var(), y=var(), c=lambda m: psd([[m.x, 1], [1, m.y]]) >= 0),
    "exponential": lambda: model(lambda m: m.x, x=var(), c=lambda m: exponential(m.x, 1, 1) >= 0),
}


@SESSIONS
@pytest.mark.parametrize("name", INFEASIBLE)
def test_infeasible_programs(Session, name):
    outcome = Session(compile_model(INFEASIBLE[name]())).solve()
    assert outcome.status is Status.INFEASIBLE, outcome.message
    assert outcome.x is None
    assert "infeasible" in outcome.message
    assert ("constraint 'c'" in outcome.message) == (name.startswith("constant") or name == "all fixed")


@SESSIONS
@pytest.mark.parametrize("name", UNBOUNDED)
def test_unbounded_programs(Session, name):
    outcome = Session(compile_model(UNBOUNDED[name]())).solve()
    assert outcome.status is Status.UNBOUNDED, outcome.message
    assert (outcome.x, outcome.bound) == (None, None)


@SESSIONS
@pytest.mark.parametrize(
    "made",
    [
        # exp(x) <= 0: no point, and no ray that proves it; exp(x) <= z: unbounded, and no ray either
        lambda: model(lambda m: -m.x, x=var(), z=var(None, 0), c=lambda m: exponential(m.x, 1, m.z) >= 0),
        lambda: model(lambda m: -m.x, x=var(), z=var(), c=lambda m: exponential(m.x, 1, m.z) >= 0),
    ],
)
def test_what_no_ray_proves_is_not_claimed(Session, made):
    compiled = compile_model(made())
    outcome = Session(compiled).solve()
    if outcome.status is Status.INFEASIBLE:  # SCS 3.3 comes so near to a ray that it proves it for points of any use
        assert Session is ScsSession
        assert compiled.ub[1] == 0.0
        return
    unproved = {Status.ERROR, Status.TIME_LIMIT, Status.FEASIBLE}  # exp(-127) is 0 to any tolerance
    assert outcome.status in unproved
    assert "stopped" in outcome.message


def singular_pair(d: int = 6) -> tuple[Any, Any, float]:
    """Two covariances, the second of rank 2, and the greatest Tr C: a nuclear norm."""
    rng = np.random.default_rng(5)
    one, two = rng.normal(size=(d, d)), rng.normal(size=(d, 2))
    return (one @ one.T).tolist(), (two @ two.T).tolist(), float(np.linalg.svd(one.T @ two)[1].sum())


@SESSIONS
def test_almost_solved_is_optimal_only_where_the_numbers_say_so(Session):
    """Without an interior point, gaps of 1e-7 come with objectives that are wrong by 1e-4: no proof, no "optimal"."""
    first, second, optimum = singular_pair()
    outcome = Session(compile_model(gelbrich(first, second)), options=_few(Session)).solve(relative_gap=1e-6)
    if outcome.status is Status.OPTIMAL:
        assert outcome.objective == pytest.approx(optimum, rel=2e-6)
    else:
        assert outcome.status in {Status.FEASIBLE, Status.ERROR, Status.TIME_LIMIT}
        assert outcome.message


def _few(Session: Any) -> dict[str, int]:
    return {} if Session is ClarabelSession else {"max_iters": 2000}


def test_solved_to_a_coarse_tolerance_is_not_optimal_at_a_fine_gap():
    coarse = {"tol_gap_abs": 1e-2, "tol_gap_rel": 1e-2, "tol_feas": 1e-2}
    compiled = compile_model(max_cut(8))
    exact = ClarabelSession(compiled).solve()
    session = ClarabelSession(compiled, options=coarse)
    fine, loose = session.solve(relative_gap=1e-9), session.solve(relative_gap=0.1)
    assert exact.status is Status.OPTIMAL
    assert fine.status is not Status.OPTIMAL
    assert "solved" in fine.message
    assert loose.status in {Status.OPTIMAL, Status.ERROR}
    assert loose.objective is None or loose.objective == pytest.approx(exact.objective, rel=0.1)


# -- a live session ----------------------------------------------------------------------------------------------------
@SESSIONS
def test_data_move_twice_in_one_session(Session):
    """The distance to x + y >= 0 from a point that moves: as a cone, a quadratic row and a cost with products."""
    m = pyo.ConcreteModel()
    m.x, m.p = pyo.Var(range(2)), pyo.Var(range(2), initialize=0)
    m.p.fix()
    m.t, m.s = pyo.Var(), pyo.Var(bounds=(0, None))
    m.row = pyo.Constraint(expr=m.x[0] + m.x[1] >= 0)
    m.far = pyo.Constraint(expr=soc(m.t, [m.x[0] - m.p[0], m.x[1] - m.p[1]]) >= 0)
    m.too = pyo.Constraint(expr=sum((m.x[i] - m.p[i]) ** 2 for i in range(2)) <= m.s**2)
    square = sum((m.x[i] - m.p[i]) ** 2 for i in range(2))
    m.cost = pyo.Objective(expr=m.t + m.s + square + m.p[0])
    compiled = compile_model(m, data=[m.p])
    session, found = Session(compiled), []
    for point in ([-3.0, 1.0], [5.0, -7.0], [1.0, 1.0], [-3.0, 1.0]):
        compiled.set_data(m.p, point)
        outcome = session.solve()
        away = max(0.0, -sum(point)) / math.sqrt(2)
        assert outcome.status is Status.OPTIMAL, outcome.message
        assert outcome.objective == pytest.approx(2 * away + away**2 + point[0], rel=1e-6, abs=2e-6)
        assert_array_equal(outcome.x[:2], point)
        assert_array_equal(outcome.x, Session(compiled).solve().x)
        found.append(outcome.x)
    assert_array_equal(found[0], found[3])


@SESSIONS
def test_data_may_come_after_the_session_and_rows_may_be_appended(Session):
    m = model(lambda m: m.x, x=var(), p=pyo.Var(), c=lambda m: soc(m.x, [m.p]) >= 0)
    m.p.fix(0)
    m.p.set_value(None)
    compiled = compile_model(m, data=[m.p])
    session = Session(compiled)
    with pytest.raises(InvalidValueError, match="'p' has none"):
        session.solve()
    compiled.set_data(m.p, [-2.0])
    assert session.solve().objective == pytest.approx(2, rel=1e-6)
    m.d = pyo.Constraint(expr=psd([[m.x, 3], [3, 2]]) >= 0)
    compiled.append(m.d)
    assert session.solve().objective == pytest.approx(4.5, rel=1e-6)
    m.e = pyo.Constraint(expr=m.x <= 4)
    compiled.append(m.e)
    assert session.solve().status is Status.INFEASIBLE


def test_a_head_of_data_below_0_is_no_cone():
    m = model(lambda m: -m.x, x=var(), s=pyo.Var(initialize=2), c=lambda m: m.x**2 <= m.s**2)
    m.s.fix()
    compiled = compile_model(m, data=[m.s])
    session = ClarabelSession(compiled)
    assert session.solve().objective == pytest.approx(-2, rel=1e-6)
    compiled.set_data(m.s, [-2.0])
    with pytest.raises(UnsupportedProblemError, match="constraint 'c' is not convex"):
        session.solve()


# -- stops and options -------------------------------------------------------------------------------------------------
def test_every_stop_of_both_solvers_has_a_meaning():
    statuses = {name for name in dir(clarabel.SolverStatus) if not name.startswith("_")}
    assert set(CLARABEL_STOP) == statuses
    codes = {value for name, value in vars(scs).items() if name.isupper() and isinstance(value, int)}
    assert set(SCS_STOP) == codes
    claims = {Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED, Status.TIME_LIMIT, Status.INTERRUPTED, Status.ERROR}
    assert set(CLARABEL_STOP.values()) == claims
    assert {status for _, status in SCS_STOP.values()} == claims


@SESSIONS
def test_a_time_limit_is_a_status(Session):
    outcome = Session(compile_model(max_cut(45))).solve(time_limit_s=1e-3)
    assert outcome.status in {Status.TIME_LIMIT, Status.FEASIBLE}
    assert (outcome.x is None) == (outcome.status is Status.TIME_LIMIT)
    assert "limit" in outcome.message or "max time" in outcome.message


@pytest.mark.parametrize(("Session", "options"), [(ClarabelSession, {"max_iter": 2}), (ScsSession, {"max_iters": 30})])
def test_a_limit_of_iterations_is_a_status(Session, options):
    outcome = Session(compile_model(max_cut(12)), options=options).solve()
    assert outcome.status in {Status.TIME_LIMIT, Status.FEASIBLE}
    assert "iteration" in outcome.message


@SESSIONS
def test_should_stop_stops_and_the_session_lives_on(Session):
    session = Session(compile_model(max_cut(10)))
    outcome = session.solve(should_stop=lambda: True)
    assert outcome.status is Status.INTERRUPTED
    assert outcome.message
    assert session.solve().status is Status.OPTIMAL

    def fail() -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        session.solve(should_stop=fail)
    assert session.solve().status is Status.OPTIMAL


def test_ctrl_c_inside_the_solver(monkeypatch):
    monkeypatch.setattr("ceopt.solvers.adapter._POLL_S", -1.0)
    calls = []

    def press() -> bool:
        calls.append(None)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return False

    session = ClarabelSession(compile_model(max_cut(10)))
    before = signal.getsignal(signal.SIGINT)
    assert session.solve(should_stop=press).status is Status.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is before
    assert session.solve().status is Status.OPTIMAL


@SESSIONS
def test_an_interrupted_slice_ends_the_search(Session, monkeypatch):
    """The switch is looked at during the run, and not only before it."""
    monkeypatch.setattr("ceopt.solvers.adapter._POLL_S", -1.0)
    monkeypatch.setattr("ceopt.solvers.conic.scs._SLICE", 5)
    calls = []
    outcome = Session(compile_model(max_cut(10))).solve(should_stop=lambda: bool(calls.append(None) or len(calls) > 2))
    assert outcome.status is Status.INTERRUPTED
    assert len(calls) == 3


@SESSIONS
def test_slices_and_threads_do_not_change_the_optimum(Session, monkeypatch):
    compiled = compile_model(max_cut(10))
    whole = Session(compiled).solve().objective
    monkeypatch.setattr("ceopt.solvers.conic.scs._SLICE", 40)
    assert Session(compiled, threads=2, random_state=5).solve().objective == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize(
    ("Session", "options", "error", "words"),
    [
        (ClarabelSession, {"max_itr": 3}, UnknownNameError, "Did you mean 'max_iter'?"),
        (ClarabelSession, {"default": 3}, UnknownNameError, "option is 'default'"),
        (ClarabelSession, {"time_limit": 3.0}, InvalidValueError, "Use time_limit_s= instead"),
        (ClarabelSession, {"max_threads": 3}, InvalidValueError, "Use threads= instead"),
        (ClarabelSession, {"max_iter": "many"}, InvalidValueError, "max_iter is 'many'. Its default is 200"),
        (ClarabelSession, {"max_iter": 3.5}, InvalidValueError, "max_iter is 3.5"),
        (ClarabelSession, {"max_iter": -1}, InvalidValueError, "max_iter is -1"),
        (ClarabelSession, {"tol_feas": math.nan}, InvalidValueError, "tol_feas is nan"),
        (ClarabelSession, {"tol_feas": -1e-8}, InvalidValueError, "tol_feas is -1e-08"),
        (ClarabelSession, {"direct_solve_method": "magic"}, InvalidValueError, "direct_solve_method is 'magic'"),
        (ScsSession, {"max_iter": 3}, UnknownNameError, "Did you mean 'max_iters'?"),
        (ScsSession, {"time_limit_secs": 3.0}, InvalidValueError, "Use time_limit_s= instead"),
        (ScsSession, {"eps_abs": "small"}, InvalidValueError, "eps_abs is 'small'"),
        (ScsSession, {"eps_abs": -1.0}, InvalidValueError, "eps_abs is -1.0"),
        (ScsSession, {"alpha": 3.0}, InvalidValueError, "alpha is 3.0"),
        (ScsSession, {"log_csv_filename": 3}, InvalidValueError, "log_csv_filename is 3"),
    ],
)
def test_bad_options_are_named_before_work_starts(Session, options, error, words):
    with pytest.raises(error) as caught:
        Session(compile_model(max_cut(2)), options=options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("Session", "options"),
    [
        (ClarabelSession, {"max_iter": np.int64(80), "tol_gap_rel": np.float64(1e-9), "equilibrate_enable": False}),
        (ClarabelSession, {"direct_solve_method": "qdldl", "verbose": np.bool_(False)}),
        (ScsSession, {"max_iters": np.int64(9000), "eps_rel": 0, "normalize": False, "linear_solver": "qdldl"}),
    ],
)
def test_good_options_are_taken(Session, options):
    session = Session(compile_model(max_cut(4)), options=options)
    assert session.solve().status is Status.OPTIMAL
    assert session.version[0].isdigit()


def test_scs_writes_the_files_that_it_is_asked_for_and_only_when_it_solves(tmp_path, capfd):
    path = tmp_path / "run.csv"
    session = ScsSession(compile_model(max_cut(3)), options={"log_csv_filename": str(path)})
    assert not path.exists()
    session.solve()
    assert path.exists()
    capfd.readouterr()
