"""Cones as expressions: their values, what they take and refuse, and how a model with them is read."""

from __future__ import annotations

import copy
import io
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from pyomo.util.infeasible import find_infeasible_constraints

from ceopt.solvers import compile_model
from ceopt.solvers.compile.quadratic_cones import cones_of_rows
from ceopt.solvers.compile.rows_and_cones import cone_of, distance, factor
from ceopt.solvers.cones import (
    Cone,
    exponential,
    margin_of,
    psd,
    psd_affine,
    rotated_soc,
    side_of,
    soc,
    soc_affine,
    triangle,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedProblemError
from ceopt.solvers.problem import ProblemClass


@pytest.fixture
def m() -> Any:
    """Vars t = 5 and x = (1, 2, 3), fixed Vars f = g = 4, mutable Params p = q = 2, u without a value."""
    m = pyo.ConcreteModel()
    m.t = pyo.Var(initialize=5)
    m.x = pyo.Var(range(3), initialize={0: 1, 1: 2, 2: 3})
    m.ij = pyo.Var(range(2), range(2), initialize=1)
    m.f, m.g = pyo.Var(initialize=4), pyo.Var(initialize=4)
    m.f.fix(), m.g.fix()
    m.p, m.q = pyo.Param(initialize=2.0, mutable=True), pyo.Param(initialize=2.0, mutable=True)
    m.u = pyo.Param(mutable=True)
    m.e = pyo.Expression(expr=m.x[0] + 1)
    return m


# -- values ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("margin", "value"),
    [
        (lambda m: soc(m.t, m.x), 5 - math.sqrt(14)),
        (lambda m: soc(m.t, []), 5),
        (lambda m: soc_affine(m.t, [[1, 1, 0], [0, 0, 2]], m.x), 5 - math.sqrt(45)),
        (lambda m: rotated_soc(m.t, 2, m.x), 2),
        (lambda m: rotated_soc(m.t, 1, m.x), 10 - 14),
        (lambda m: rotated_soc(m.t, -1, []), -10),
        (lambda m: psd([[m.t, m.x[0]], [m.x[0], m.x[1]]]), 3.5 - math.sqrt(1.5**2 + 1)),
        (lambda m: psd_affine([[0, 1], [1, 0]], [np.eye(2)], [m.t]), 4),
        (lambda m: exponential(m.x[0], m.x[1], m.t), 5 - 2 * math.exp(0.5)),
    ],
)
def test_a_margin_is_a_number(m, margin, value):
    assert pyo.value(margin(m)) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("entries", "value"),
    [
        ((-1.0, 0.0, 2.0), 2.0),  # the limit of the cone at y = 0 is x <= 0 <= z
        ((0.0, 0.0, -1.0), -1.0),
        ((1.0, 0.0, 2.0), -math.inf),
        ((-5.0, -1.0, 2.0), -1.0),
        ((1.0, 1e-300, 2.0), -math.inf),  # exp overflows
        ((-1.0, 5e-324, 2.0), 2.0),
        ((710.0, 1.0, 0.0), -math.inf),
    ],
)
def test_the_exponential_margin_at_its_ends(entries, value):
    assert margin_of(Cone.EXPONENTIAL, np.array(entries)) == value


def test_a_matrix_without_numbers_has_no_margin_and_no_distance():
    entries = np.array([1.0, math.nan, 1.0])
    assert math.isnan(margin_of(Cone.SEMIDEFINITE, entries))
    assert distance(Cone.SEMIDEFINITE, entries) == math.inf


def test_triangles():
    i, j = triangle(3)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]
    assert [side_of(n * (n + 1) // 2) for n in range(1, 60)] == list(range(1, 60))


INSIDE = {
    Cone.SECOND_ORDER: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    Cone.ROTATED: [1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    Cone.SEMIDEFINITE: [1.0, 0.0, 1.0, 0.0, 0.0, 1.0],
}


@pytest.mark.parametrize("cone", list(INSIDE))
def test_the_distance_is_0_inside_and_moving_by_it_along_the_axis_gets_there(cone):
    axis, outside = np.array(INSIDE[cone]), 0
    rng = np.random.default_rng(0)
    for _ in range(200):
        entries = rng.normal(size=6) + axis * rng.uniform(0, 3)
        margin, away = margin_of(cone, entries), distance(cone, entries)
        assert (away == 0) == (margin >= 0)
        assert margin_of(cone, entries + (away + 1e-12) * axis) >= -1e-9
        assert away == 0 or margin_of(cone, entries + 0.99 * away * axis) < 0
        outside += away > 0
    assert 20 < outside < 190


def test_the_distance_to_the_exponential_cone():
    rng = np.random.default_rng(0)
    for _ in range(300):
        x, y, z = entries = rng.normal(size=3) * [2, 1, 2]
        away, margin = distance(Cone.EXPONENTIAL, entries), margin_of(Cone.EXPONENTIAL, entries)
        assert (away == 0) == (margin >= 0)
        to_face = np.array([min(x, 0), 0, max(z, 0)])
        assert away <= np.abs(to_face - entries).max()
        if y > 0:
            least_z = y * math.exp(x / y) if x / y < 700.0 else math.inf
            assert away <= max(0.0, least_z - z)
    assert distance(Cone.EXPONENTIAL, np.array([5.0, 1e-300, 1e300])) == pytest.approx(5.0)


# -- what they take ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "v",
    [
        lambda m: m.x,
        lambda m: m.x[:],
        lambda m: [m.x[i] for i in range(3)],
        lambda m: (m.x[i] for i in range(3)),
        lambda m: np.array([m.x[i] for i in range(3)], dtype=object),
        lambda m: pd.Series([m.x[i] for i in range(3)]),
        lambda m: [1.0 * m.x[0], m.x[1] + m.x[0] - m.x[0], m.e - 1 + m.x[2] - m.x[0]],
    ],
)
def test_a_vector_is_any_sequence_of_expressions(m, v):
    m.c = pyo.Constraint(expr=soc(m.t, v(m)) >= 0)
    cone = compile_model(m).cones[0]
    assert_allclose(cone.matrix.toarray()[:, :4], np.eye(4))
    assert_allclose(cone.constant, 0)


@pytest.mark.parametrize("one", [1, 1.0, np.float64(1), np.int64(1), np.array(1.0), np.float32(1)])
def test_numpy_scalars_are_numbers(m, one):
    m.c = pyo.Constraint(expr=soc(one, [one, m.t]) >= 0)
    m.d = pyo.Constraint(expr=psd(np.array([[one, m.t], [m.t, one]], dtype=object)) >= 0)
    first, second = compile_model(m).cones
    assert_allclose(first.constant, [1, 1, 0])
    assert_allclose(second.constant, [1, 0, 1])


MATRIX = np.array([[2.0, -1.0, 0.0], [-1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, sp.dia_array, sp.coo_matrix, pd.DataFrame, np.ndarray.tolist])
def test_a_matrix_is_dense_sparse_a_frame_or_lists(m, kind):
    assert pyo.value(psd(kind(MATRIX))) == pytest.approx(np.linalg.eigvalsh(MATRIX)[0])
    if kind is not pd.DataFrame:
        affine = psd_affine(kind(MATRIX), [kind(MATRIX)] * 3, m.x)
        assert pyo.value(affine) == pytest.approx(7 * np.linalg.eigvalsh(MATRIX)[0])


def test_coefficients_as_arrays_and_entry_by_entry_are_the_same_rows():
    side, n = 5, 4
    rng = np.random.default_rng(0)
    matrices = [a + a.T for a in rng.normal(size=(n + 1, side, side)) * (rng.uniform(size=(n + 1, side, side)) < 0.5)]
    m = pyo.ConcreteModel()
    m.x, m.f = pyo.Var(range(n)), pyo.Var(initialize=3)
    m.f.fix()
    xs = [m.x[0], m.x[1] - 2 * m.x[2] + 1, m.f, m.x[3]]
    entries = sum((x * np.array(F, dtype=object) for x, F in zip(xs, matrices[1:], strict=True)), matrices[0])
    m.one = pyo.Constraint(expr=psd(entries) >= 0)
    m.other = pyo.Constraint(expr=psd_affine(matrices[0], np.array(matrices[1:]), xs) >= 0)
    one, other = compile_model(m).cones
    assert_allclose(one.matrix.toarray(), other.matrix.toarray(), atol=1e-14)
    assert_allclose(one.constant, other.constant, atol=1e-14)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda _m: soc(True, [1]), InvalidTypeError, "t is True"),
        (lambda _m: soc(None, [1]), InvalidTypeError, "t is None"),
        (lambda _m: soc(1j, [1]), InvalidTypeError, "t is 1j"),
        (lambda m: soc(m.x, [1]), InvalidTypeError, "t is x, which is indexed"),
        (lambda m: soc(m.x[:], [1]), InvalidTypeError, "which is indexed"),
        (lambda m: soc(m.t, [math.nan]), InvalidValueError, "v[0] is nan"),
        (lambda m: soc(m.t, [1, np.float64("inf")]), InvalidValueError, "v[1] is inf"),
        (lambda m: soc(m.t, "ab"), InvalidTypeError, "it got ab"),
        (lambda m: soc(m.t, None), InvalidTypeError, "it got None"),
        (lambda m: soc(m.t, {0: m.t}), InvalidTypeError, "a sequence of expressions as v"),
        (lambda m: soc(m.t, {1, 2}), InvalidTypeError, "a sequence of expressions as v"),
        (lambda m: soc(m.t, np.ones((2, 2))), InvalidTypeError, "v[0] is"),
        (lambda m: soc(m.t, [m.t <= 1]), InvalidTypeError, "v[0] is t"),
        (lambda m: soc_affine(m.t, np.eye(2), m.x), InvalidValueError, "F of shape n by 3"),
        (lambda m: soc_affine(m.t, [1, 2, 3], m.x), InvalidValueError, "F of shape n by 3"),
        (lambda m: soc_affine(m.t, [[1, 2, math.inf]], m.x), InvalidValueError, "F[0, 2] is inf"),
        (lambda m: soc_affine(m.t, [["a", 2, 3]], m.x), InvalidValueError, "numbers as F"),
        (lambda m: soc_affine(m.t, np.eye(2), {1, 2}), InvalidTypeError, "a sequence of expressions as xs"),
        (lambda m: soc_affine(m.x, np.eye(3), m.x), InvalidTypeError, "which is indexed"),
        (lambda m: rotated_soc(m.t, "u", []), InvalidTypeError, "rotated_soc needs"),
        (lambda m: exponential(m.x, 1, 2), InvalidTypeError, "x is x, which is indexed"),
        (lambda _m: psd(5), InvalidTypeError, "M is 5"),
        (lambda _m: psd([5]), InvalidTypeError, "M[0] is 5"),
        (lambda _m: psd("ab"), InvalidTypeError, "M is ab"),
        (lambda m: psd(m.ij), InvalidTypeError, "M is ij"),
        (lambda _m: psd({(0, 0): 1}), InvalidTypeError, "nested lists"),
        (lambda _m: psd([]), InvalidValueError, "square"),
        (lambda _m: psd([[1, 2], [2]]), InvalidValueError, "2 rows of 1 and 2 entries"),
        (lambda _m: psd([[1, 2, 3], [2, 1, 3]]), InvalidValueError, "2 rows of 3 entries"),
        (lambda _m: psd([[1, 2.001], [2, 1]]), InvalidValueError, "M[1][0] is 2 and M[0][1] is 2.001"),
        (lambda m: psd([[1, m.x[0]], [m.x[1], 1]]), InvalidValueError, "M[1][0] is x[1] and M[0][1] is x[0]"),
        (lambda m: psd([[1, m.x[0]], [0.5, 1]]), InvalidValueError, "symmetric"),
        (lambda m: psd([[1, 2 * m.x[0]], [m.x[0], 1]]), InvalidValueError, "symmetric"),
        (lambda m: psd([[1, 2 * m.f], [2 * m.g, 1]]), InvalidValueError, "symmetric"),  # equal only while fixed so
        (lambda m: psd([[1, m.p * m.t], [m.q * m.t, 1]]), InvalidValueError, "symmetric"),
        (lambda _m: psd([[math.nan]]), InvalidValueError, "M[0][0] is nan"),
        (lambda m: psd_affine(np.eye(2), [np.eye(2)], m.x), InvalidValueError, "Fs has 1, xs 3"),
        (lambda m: psd_affine(np.eye(2), [np.eye(3)], [m.t]), InvalidValueError, "Fs[0] has (3, 3)"),
        (lambda _m: psd_affine(np.ones((2, 3)), [], []), InvalidValueError, "F0 has (2, 3)"),
        (lambda m: psd_affine(np.eye(2), [[[0, 1], [0, 0]]], [m.t]), InvalidValueError, "transpose by 1"),
        (lambda _m: psd_affine([[math.nan]], [], []), InvalidValueError, "NaN"),
        (lambda _m: psd_affine([[1j]], [], []), InvalidTypeError, "real numbers"),
        (lambda m: psd_affine([[m.t]], [], []), InvalidTypeError, "Use psd(M)"),
        (lambda m: psd_affine(np.eye(2), None, [m.t]), InvalidTypeError, "as Fs"),
        (lambda m: psd_affine(np.eye(2), sp.eye_array(2), m.x), InvalidTypeError, "as Fs"),
    ],
)
def test_bad_entries_are_named(m, build, error, words):
    with pytest.raises(error) as caught:
        build(m)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", [np.array, sp.csc_array, list])
def test_a_second_order_cone_from_an_array_is_that_of_its_entries(m, kind):
    factor = [[1.0, 1.0, 0.0], [0.0, -2.0, 3.0]]
    m.a = pyo.Constraint(expr=soc_affine(m.t, kind(factor), m.x) >= 0)
    m.b = pyo.Constraint(expr=soc(m.t, [m.x[0] + m.x[1], 3 * m.x[2] - 2 * m.x[1]]) >= 0)
    m.o = pyo.Objective(expr=m.t)
    one, other = compile_model(m).cones
    assert (one.matrix != other.matrix).nnz == 0
    assert (one.constant == other.constant).all()
    assert pyo.value(m.a.body) == pytest.approx(pyo.value(m.b.body))


def test_mirrored_entries_may_be_written_in_two_ways(m):
    m.c = pyo.Constraint(expr=psd([[1, 2 * m.t + m.f], [m.f + m.t + m.t, 1]]) >= 0)
    m.d = pyo.Constraint(expr=psd([[1, m.u * m.t], [m.u * m.t, 1]]) >= 0)
    m.d.deactivate()  # a Param may get its value later
    assert_allclose(compile_model(m).cones[0].constant, [1, 4, 1])


def neighbours(m, k):
    """At module level, so that a model with this rule can be pickled."""
    return soc(m.t, [m.x[k], m.x[k + 1]]) >= 0


# -- as parts of a model -----------------------------------------------------------------------------------------------
def test_a_constraint_with_a_cone_lives_like_any_other(m):
    m.c = pyo.Constraint(range(2), rule=neighbours)
    m.a = pyo.Constraint(expr=psd_affine(np.eye(2), [np.eye(2)] * 3, m.x) >= 0)
    twins = [m.clone(), pickle.loads(pickle.dumps(m)), copy.deepcopy(m)]
    m.t.value = 1.0
    assert m.c[1].slack() == pytest.approx(1 - math.sqrt(13))
    assert [con.name for con, *_ in find_infeasible_constraints(m)] == ["c[0]", "c[1]"]
    for twin in twins:
        assert twin.c[1].slack() == pytest.approx(5 - math.sqrt(13))
        twin.x[0].value = -10.0
        assert pyo.value(twin.a.body) == pytest.approx(-4.0)
        assert len(compile_model(twin).cones) == 3
        assert compile_model(twin).columns[0] is twin.t
    assert pyo.value(m.a.body) == pytest.approx(7.0)
    m.c[0].deactivate()
    assert len(compile_model(m).cones) == 2
    text = io.StringIO()
    m.pprint(ostream=text)
    assert "second_order_margin(t, x[1], x[2])" in text.getvalue()
    assert "... 20 in all" in str(soc(1, range(19)))


def test_writers_refuse_a_cone(m, tmp_path):
    m.c = pyo.Constraint(expr=soc(m.t, m.x) >= 0)
    m.o = pyo.Objective(expr=m.t)
    for suffix in ("lp", "mps", "nl"):
        with pytest.raises(Exception, match=r"(?i)unexpected|nonlinear|unsupported|polynomial|quadratic"):
            m.write(str(tmp_path / f"m.{suffix}"))


@pytest.mark.parametrize(
    "expr",
    [
        lambda _m, s: s >= 0,
        lambda _m, s: 0 <= s,  # noqa: SIM300 - this order is what is tested
        lambda _m, s: pyo.inequality(0, s, None),
        lambda _m, s: (0.0, s, None),
        lambda _m, s: pyo.inequality(0, s, math.inf),
        lambda m, s: s >= m.p - 2,
    ],
)
def test_at_least_0_in_any_spelling(m, expr):
    m.c = pyo.Constraint(expr=expr(m, soc(m.t, m.x)))
    compiled = compile_model(m)
    assert (compiled.problem_class, compiled.shape) == (ProblemClass.SOCP, (0, 4, 0, 1))
    m.named = pyo.Expression(expr=soc(m.t, m.x))
    m.d = pyo.Constraint(expr=m.named >= 0)
    assert compile_model(m).shape == (0, 4, 0, 2)


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (lambda _m, s: s >= 1, "other bounds (1, None)"),
        (lambda _m, s: s == 0, "other bounds (0, 0)"),
        (lambda _m, s: s <= 0, "other bounds (None, 0)"),
        (lambda _m, s: pyo.inequality(0, s, 5), "other bounds (0, 5)"),
        (lambda m, s: s >= m.t, "inside another expression"),
        (lambda _m, s: 2 * s >= 0, "inside another expression"),
        (lambda _m, s: -s <= 0, "inside another expression"),
        (lambda m, s: s + psd([[m.t]]) >= 0, "inside another expression"),
        (lambda m, s: s * m.t >= 0, "inside another expression"),
        (lambda m, s: soc(m.t, [s]) >= 0, "entry 1 of constraint 'c' is second_order_margin"),
        (lambda m, s: soc(m.t, [2 * s + 1]) >= 0, "entry 1 of constraint 'c'"),
        (lambda m, _s: soc(m.t, [m.t**2]) >= 0, "entry 1 of constraint 'c' is t**2"),
        (lambda m, _s: soc(m.t * m.x[0], [1]) >= 0, "entry 0 of constraint 'c'"),
        (lambda m, _s: psd([[1, pyo.exp(m.t)], [pyo.exp(m.t), 1]]) >= 0, "affine entries"),
    ],
)
def test_other_uses_are_refused_by_name(m, expr, words):
    m.c = pyo.Constraint(expr=expr(m, soc(m.t, m.x)))
    with pytest.raises(UnsupportedProblemError) as caught:
        compile_model(m)
    assert words in str(caught.value)
    assert "'c'" in str(caught.value)


def test_a_margin_is_no_objective(m):
    m.o = pyo.Objective(expr=soc(m.t, m.x), sense=pyo.maximize)
    with pytest.raises(UnsupportedProblemError, match="objective 'o' has its margin inside"):
        compile_model(m)


def test_fixed_vars_params_and_data_inside_a_cone(m):
    m.c = pyo.Constraint(expr=soc(m.t, [m.f, m.x[0] + m.f, m.p, m.p * m.x[0], m.g - m.f]) >= 0)
    plain = compile_model(m)
    assert [v.name for v in plain.columns] == ["t", "x[0]"]
    assert_allclose(plain.cones[0].constant, [0, 4, 4, 2, 0, 0])
    with_data = compile_model(m, data=[m.g])
    assert [v.name for v in with_data.columns] == ["g", "t", "x[0]"]
    assert_allclose(with_data.cones[0].matrix.toarray()[:, 0], [0, 0, 0, 0, 0, 1])
    assert_allclose(with_data.cones[0].constant, [0, 4, 4, 2, 0, -4])
    assert with_data.cones[0].violation(np.array([4.0, 100.0, 1.0])) == 0


def test_terms_that_cancel_leave_an_empty_row(m):
    m.c = pyo.Constraint(expr=soc(m.t, [m.x[1] - m.x[1] + 3, m.x[0] + m.x[0] - m.x[0]]) >= 0)
    cone = compile_model(m).cones[0]
    assert_allclose(cone.constant, [0, 3, 0])
    assert abs(cone.matrix).sum() == 2


@pytest.mark.parametrize("expr", [lambda m: soc(m.t, [m.u]), lambda m: soc(m.t, [m.u * m.x[0]])])
def test_a_param_without_a_value_is_named(m, expr):
    m.c = pyo.Constraint(expr=expr(m) >= 0)
    with pytest.raises(InvalidValueError, match="constraint 'c' has"):
        compile_model(m)


def test_a_fixed_var_without_a_value_is_named(m):
    m.f.set_value(None)
    m.c = pyo.Constraint(expr=soc(m.t, [m.f]) >= 0)
    with pytest.raises(InvalidValueError, match="constraint 'c' has None"):
        compile_model(m)


# -- quadratic rows as cones -------------------------------------------------------------------------------------------
CONES = {
    "disc": (lambda m: m.x**2 + m.y**2 <= 4, Cone.ROTATED),
    "from below": (lambda m: -(m.x**2) - 2 * m.y**2 + m.t >= -4, Cone.ROTATED),
    "flat": (lambda m: (m.x - 2 * m.y) ** 2 + m.t <= 1, Cone.ROTATED),
    "norm": (lambda m: m.x**2 + m.y**2 <= m.t**2, Cone.SECOND_ORDER),
    "scaled norm": (lambda m: 4 * m.t**2 >= m.x**2 + m.x * m.y + m.y**2 + 3, Cone.SECOND_ORDER),
    "norm of a difference": (lambda m: (m.x - m.y) ** 2 <= m.t**2, Cone.SECOND_ORDER),
    "norm from a point": (lambda m: (m.x - 3.1) ** 2 + (m.y + 0.7) ** 2 <= m.t**2, Cone.SECOND_ORDER),
    "far from a point": (lambda m: (m.x - 1) ** 2 + 2 <= 3 * m.t**2 + 1, Cone.SECOND_ORDER),
    "product": (lambda m: m.x**2 <= m.t * m.u, Cone.ROTATED),
    "product and a difference": (lambda m: (m.x - m.y - 1) ** 2 + 1 <= 2 * m.t * m.u, Cone.ROTATED),
    "no body": (lambda m: m.t * m.u >= 1, Cone.ROTATED),
    "linear beside a norm": (lambda m: m.x**2 + m.y <= m.t**2, None),
    "negative remainder": (lambda m: (m.x - 1) ** 2 <= m.t**2 + 1, None),
    "free head": (lambda m: m.x**2 <= m.y**2, None),
    "two heads": (lambda m: m.x**2 <= m.t**2 + m.u**2, None),
    "head in the body": (lambda m: m.x**2 + m.x * m.t <= m.t**2, None),
    "head in the line": (lambda m: m.x**2 <= m.t**2 + m.t, None),
    "sphere": (lambda m: m.x**2 + m.y**2 == 4, None),
    "shell": (lambda m: pyo.inequality(1, m.x**2 + m.y**2, 4), None),
    "outside": (lambda m: m.x**2 + m.y**2 >= 4, None),
    "saddle": (lambda m: m.x * m.y <= 1, None),
}


@pytest.fixture
def quadratic() -> Any:
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(), pyo.Var()
    m.t, m.u = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(0, None))
    return m


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", CONES)
def test_a_quadratic_row_is_a_cone_exactly_where_it_holds(quadratic, name):
    m = quadratic
    expr, kind = CONES[name]
    m.q = pyo.Constraint(expr=expr(m))
    compiled = compile_model(m)
    row = compiled.quadratics[0]
    cone = cone_of(row, compiled.lb)
    assert (cone.cone if cone else None) is kind
    if cone is None:
        assert compiled.problem_class is ProblemClass.NONCONVEX
        with pytest.raises(UnsupportedProblemError, match="constraint 'q' is not convex"):
            cones_of_rows(compiled)
        return
    assert compiled.problem_class is ProblemClass.SOCP
    held = 0
    rng = np.random.default_rng(0)
    for _ in range(400):
        x = rng.normal(size=len(compiled.columns)) * 2
        x[compiled.lb == 0] = np.abs(x[compiled.lb == 0])
        assert (cone.violation(x) <= 1e-12) == (row.violation(x) <= 1e-12)
        held += row.violation(x) == 0
    assert 5 < held < 395


def test_products_that_cancel_leave_a_linear_row(quadratic):
    m = quadratic
    m.q = pyo.Constraint(expr=(m.x + m.y) ** 2 - m.x**2 - m.y**2 - 2 * m.x * m.y + m.t <= 1)
    compiled = compile_model(m)
    assert (compiled.problem_class, compiled.shape[0], compiled.shape[2]) == (ProblemClass.LP, 1, 0)
    m.r = pyo.Constraint(expr=m.x * m.y - m.y * m.x >= 1)
    assert compile_model(m).contradiction == "constraint 'r'"


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_a_factor_has_the_rank_of_the_matrix(rank):
    root = np.random.default_rng(0).normal(size=(rank, 6))
    whole = np.zeros((9, 9))
    whole[np.ix_([0, 1, 3, 4, 7, 8], [0, 1, 3, 4, 7, 8])] = root.T @ root
    F = factor(sp.csc_array(np.tril(whole)))
    assert F.shape == (rank, 9)
    assert_allclose((F.T @ F).toarray(), whole, atol=1e-12)
