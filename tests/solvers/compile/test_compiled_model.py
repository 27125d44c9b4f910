"""The arrays are the model: rows, bounds, objective, data columns, appended rows, refusals."""

from __future__ import annotations

import gc
import math
import pickle
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from pyomo.mpec import Complementarity, complements

from ceopt.solvers import ProblemClass, compile_model
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import CeoptError, InvalidValueError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.highs import HighsSession


def small() -> Any:
    m = pyo.ConcreteModel()
    m.x0 = pyo.Var([0, 1])
    m.x0[0].fix(1)
    m.x0[1].fix(2.5)
    m.x = pyo.Var([0, 1], bounds=(-1, 9))
    m.z = pyo.Var(domain=pyo.Integers, bounds=(1.5, 4))
    m.idle = pyo.Var(["low", "high", "free"])
    for name, bounds in {"low": (3, 4), "high": (None, -2.5), "free": (-1, 1)}.items():
        m.idle[name].bounds = bounds
    m.f = pyo.Var(initialize=3)
    m.f.fix()
    m.range = pyo.Constraint(expr=(1, m.x[0] + 2 * m.x[1] - m.z + m.f, 7))
    m.up = pyo.Constraint(expr=m.x[0] >= m.x0[0] + 1)
    m.eq = pyo.Constraint(expr=2 * m.x[1] == 3)
    m.o = pyo.Objective(expr=sum((m.x[i] - m.x0[i]) ** 2 for i in m.x) + m.x[0] * m.x[1] + m.z + m.f)
    return m


def test_arrays_are_the_model() -> None:
    m = small()
    c = compile_model(m, [m.x0])
    assert [v.name for v in c.columns] == ["x0[0]", "x0[1]", "x[0]", "x[1]", "z"]
    assert_array_equal(c.A.toarray(), [[0, 0, 1, 2, -1], [1, 0, -1, 0, 0], [0, 0, 0, 2, 0]])
    assert_array_equal(c.row_lb, [-2, -np.inf, 3])
    assert_array_equal(c.row_ub, [4, -1, 3])
    assert_array_equal(c.lb, [1, 2.5, -1, -1, 2])
    assert_array_equal(c.ub, [1, 2.5, 9, 9, 4])
    assert_array_equal(c.integer, [False] * 4 + [True])
    assert_array_equal(c.c, [0, 0, 0, 0, 1])
    assert (c.c0, c.sense, c.problem_class) == (3, 1, ProblemClass.NONCONVEX)  # x0 * x is not convex in both
    expected = [[2, 0, 0, 0, 0], [0, 2, 0, 0, 0], [-2, 0, 2, 0, 0], [0, -2, 1, 2, 0], [0] * 5]
    assert_array_equal(c.Q.toarray(), expected)
    assert [row.name for row in c.rows] == ["range", "up", "eq"]


def test_a_program_keeps_the_model_that_it_is_of() -> None:
    """Pyomo's components know theirs weakly: without it they have neither names nor an index."""
    c = compile_model(small())
    gc.collect()

    assert [v.name for v in c.columns] == ["x[0]", "x[1]", "z"]


def test_evaluate_load_and_violation_agree_with_pyomo() -> None:
    m = small()
    c = compile_model(m, [m.x0])
    x = np.array([1, 2.5, 2.25, 1.5, 2.0000003])
    c.load(x)
    assert m.z.value == 2
    assert isinstance(m.z.value, int)
    assert m.x[0].value == 2.25
    assert (m.idle["low"].value, m.idle["high"].value, m.idle["free"].value) == (3, -2.5, 0)
    assert c.evaluate([1, 2.5, 2.25, 1.5, 2]) == pytest.approx(pyo.value(m.o), abs=1e-12)
    assert c.violation(x) == pytest.approx(3e-7)
    assert c.violation([1, 2.5, 2.25, 1.5, 2]) == 0
    assert c.violation([1, 2.5, 1.5, 1.5, 2]) == 0.5
    assert c.violation([1, 2.5, 2.25, 1, 2]) == 1
    assert c.violation([1, 2.5, 9.5, 1.5, 2]) == 9.5 + 3 - 2 - 4
    assert c.violation([1, 2.5, math.nan, 1.5, 2]) == math.inf
    with pytest.raises(InvalidValueError, match=r"shape \(5,\)"):
        c.violation([1, 2])


def test_set_data_moves_only_the_data() -> None:
    m = small()
    c = compile_model(m, [m.x0])
    c.set_data(m.x0, {0: 4, 1: 5})
    assert_array_equal(c.lb[:2], [4, 5])
    assert_array_equal(c.ub[:2], [4, 5])
    c.set_data(m.x0, [6.5, 7])
    c.set_data(m.x0[1], 8)
    assert_array_equal(c.lb[:3], [6.5, 8, -1])
    c.load([6.5, 8, 0, 0, 2])
    assert (m.x0[0].value, m.x0[1].value, m.x0[0].fixed) == (6.5, 8, True)
    for var, values, message in (
        (m.x0, {0: 1}, "x0.1.' gets nan"),
        (m.x0, [1], "2 values"),
        (m.x0, [1, math.inf], "gets inf"),
        (m.x0, {0: 1, 7: 2}, "known index of x0"),
        (m.x, [1, 2], "Var that is data"),
        (m.f, 1, "Var that is data"),
    ):
        with pytest.raises(CeoptError, match=message):
            c.set_data(var, values)
    assert_array_equal(c.lb[:2], [6.5, 8])
    with pytest.raises(UnknownNameError):
        c.set_data(m.x0, {0: 1, 7: 2})


def test_whole_data_do_not_make_the_program_an_integer_program() -> None:
    m = pyo.ConcreteModel()
    m.x0, m.x = pyo.Var(domain=pyo.Integers), pyo.Var(bounds=(0, 9))
    m.c = pyo.Constraint(expr=m.x >= m.x0)
    c = compile_model(m, [m.x0])
    assert c.problem_class is ProblemClass.LP
    c.set_data(m.x0, 4)
    c.load([4, 4.5])
    assert type(m.x0.value) is int
    assert (m.x0.value, m.x.value) == (4, 4.5)


def test_append_adds_a_row_and_a_column() -> None:
    m = small()
    c = compile_model(m, [m.x0])
    m.n = pyo.Var(domain=pyo.Binary)
    m.more = pyo.Constraint([1, 2], rule=lambda m, k: m.n + k * m.x[0] + m.idle["low"] <= 3 + m.f)
    c.append(m.more[1])
    c.append(m.more)
    assert [v.name for v in c.columns[5:]] == ["n", "idle[low]"]
    assert_array_equal(c.A.toarray()[3:], [[0, 0, 1, 0, 0, 1, 1], [0, 0, 1, 0, 0, 1, 1], [0, 0, 2, 0, 0, 1, 1]])
    assert_array_equal(c.row_ub[3:], [6, 6, 6])
    assert c.integer.tolist() == [False] * 4 + [True, True, False]
    c.load([1, 2.5, 2, 1.5, 2, 1, 3.5])
    assert (m.idle["low"].value, m.n.value) == (3.5, 1)
    assert c.Q.shape == (7, 7)
    m.curved = pyo.Constraint(expr=m.x[0] ** 2 + m.x[1] <= 1)
    m.cone = pyo.Constraint(expr=soc(m.n, [m.x[0], m.x0[1]]) >= 0)
    c.append(m.curved)
    c.append(m.cone)
    assert c.shape == (6, 7, 1, 1)
    assert_array_equal(c.quadratics[0].Q.toarray(), np.diag([0.0, 0, 2, 0, 0, 0, 0]))
    assert_array_equal(c.quadratics[0].a.toarray(), [[0, 0, 0, 1, 0, 0, 0]])
    assert_array_equal(c.cones[0].matrix.toarray(), np.eye(7)[[5, 2, 1]])
    point = np.array([0, 3.0, 4.0, 0, 2, 4.0, 3.5])
    assert (c.quadratics[0].violation(point), c.cones[0].violation(point)) == (15.0, 1.0)
    m.bad = pyo.Constraint(expr=m.x[0] ** 3 <= 1)
    with pytest.raises(UnsupportedProblemError, match="'bad'"):
        c.append(m.bad)
    assert c.shape == (6, 7, 1, 1)


@draws(40)
@given(
    x0=st.tuples(*[st.integers(-8, 8)] * 2).map(lambda p: tuple(v / 2 for v in p)),
    need=st.integers(-3, 9),
    quadratic=st.booleans(),
)
def test_data_as_columns_equals_a_rebuild(x0: tuple[float, ...], need: int, quadratic: bool) -> None:
    def build() -> Any:
        m = pyo.ConcreteModel()
        m.x0 = pyo.Var([0, 1])
        m.x = pyo.Var([0, 1], bounds=(-4, 5), domain=pyo.Reals if quadratic else pyo.Integers)
        m.t = pyo.Var([0, 1], bounds=(0, None))
        m.up = pyo.Constraint([0, 1], rule=lambda m, j: m.t[j] >= m.x[j] - m.x0[j])
        m.down = pyo.Constraint([0, 1], rule=lambda m, j: m.t[j] >= m.x0[j] - m.x[j])
        m.never_down = pyo.Constraint(expr=m.x[0] >= m.x0[0])
        m.need = pyo.Constraint(expr=m.x[0] + 2 * m.x[1] >= need)
        move = sum((m.x[j] - m.x0[j]) ** 2 for j in (0, 1)) if quadratic else m.t[0] + 1.5 * m.t[1]
        m.cost = pyo.Objective(expr=move + m.x0[0])
        return m

    model = build()
    compiled = compile_model(model, [model.x0])
    session = HighsSession(compiled)
    for first in ((0.0, 0.0), x0):
        compiled.set_data(model.x0, first)
        moved = session.solve()
    again = build()
    for j in (0, 1):
        again.x0[j].fix(x0[j])
    rebuilt = HighsSession(compile_model(again)).solve()
    assert moved.status == rebuilt.status
    if rebuilt.objective is not None:
        assert moved.objective == pytest.approx(rebuilt.objective, abs=1e-7)
        assert moved.violation < 1e-6


def test_degenerate_models() -> None:
    m = pyo.ConcreteModel()
    assert compile_model(m).problem_class is ProblemClass.LP
    assert compile_model(m).violation([]) == 0
    m.x = pyo.Var(bounds=(2, 5))
    c = compile_model(m)
    assert c.columns == []
    c.load([])
    assert m.x.value == 2
    m.f = pyo.Var(initialize=1)
    m.f.fix()
    m.true = pyo.Constraint(expr=m.f + 1e-12 <= 1)
    m.nothing = pyo.Constraint(expr=(-math.inf, m.x, math.inf))
    assert compile_model(m).contradiction is None
    m.false = pyo.Constraint(expr=m.f >= 2)
    assert compile_model(m).contradiction == "constraint 'false'"
    m.false.deactivate()
    m.x.setlb(6)
    assert "'x'" in str(compile_model(m).contradiction)


def test_it_pickles_and_the_model_survives() -> None:
    m = small()
    compiled, model = pickle.loads(pickle.dumps((compile_model(m, [m.x0]), m)))
    compiled.set_data(model.x0, [0, 0])
    assert_array_equal(compiled.lb[:2], [0, 0])
    compiled.load(np.array([0, 0, 1, 1.5, 2.0]))
    assert model.x[1].value == 1.5


def _bad(kind: str) -> Any:
    m = pyo.ConcreteModel()
    m.x, m.y, m.f = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1)), pyo.Var()
    m.f.fix()
    if kind == "product":
        m.bad = pyo.Constraint(expr=m.x * m.y * m.x <= 1)
    elif kind == "sine":
        m.bad = pyo.Constraint(expr=pyo.sin(m.x) <= 1)
    elif kind == "cube":
        m.bad = pyo.Objective(expr=m.x**3)
    elif kind == "two":
        m.first, m.bad = pyo.Objective(expr=m.x), pyo.Objective(expr=m.y)
    elif kind == "sos":
        m.v = pyo.Var([1, 2], bounds=(0, 1))
        m.bad = pyo.SOSConstraint(var=m.v, sos=3)
    elif kind == "complementarity":
        m.bad = Complementarity(expr=complements(m.x >= 0, m.y >= 0))
    elif kind == "domain":
        m.bad = pyo.Var(domain=pyo.Set(initialize=[0, 2, 5]))
        m.c = pyo.Constraint(expr=m.bad + m.x >= 1)
    elif kind == "missing":
        m.bad = pyo.Constraint(expr=m.x + m.f <= 1)
    elif kind == "infinite":
        m.bad = pyo.Constraint(expr=m.x * math.inf <= 1)
    elif kind == "nan":
        m.bad = pyo.Objective(expr=m.x * math.nan)
    return m


@pytest.mark.parametrize("kind", ["product", "sine", "cube", "two", "sos", "complementarity", "domain"])
def test_what_has_no_rows_is_refused_by_name(kind: str) -> None:
    with pytest.raises(UnsupportedProblemError, match="bad"):
        compile_model(_bad(kind))


@pytest.mark.parametrize("kind", ["missing", "infinite", "nan"])
def test_coefficients_that_are_not_numbers_are_refused_by_name(kind: str) -> None:
    with pytest.raises(InvalidValueError, match="'bad'"):
        compile_model(_bad(kind))


def test_data_times_a_variable_is_a_nonconvex_row() -> None:
    m = pyo.ConcreteModel()
    m.x0, m.x = pyo.Var(), pyo.Var()
    m.x0.fix(2.0)
    m.product = pyo.Constraint(expr=m.x0 * m.x <= 3)
    assert compile_model(m).problem_class is ProblemClass.LP
    assert compile_model(m, [m.x0]).problem_class is ProblemClass.NONCONVEX


def test_loading_marks_values_as_fresh_as_pyomos_solvers_do() -> None:
    m = pyo.ConcreteModel()
    m.x, m.i, m.idle = pyo.Var(bounds=(0, 3)), pyo.Var(domain=pyo.Integers, bounds=(0, 9)), pyo.Var(bounds=(1, 2))
    m.other = pyo.Var()
    m.other.fix(2)
    m.c = pyo.Constraint(expr=m.x + m.i >= 2)
    compile_model(m).load([1.5, 0.9999999])
    assert [v.value for v in (m.x, m.i, m.idle, m.other)] == [1.5, 1, 1, 2]
    assert [v.stale for v in (m.x, m.i, m.idle, m.other)] == [False, False, False, True]
    assert type(m.i.value) is int
    m.x.set_value(2.0)
    assert [v.stale for v in (m.x, m.i)] == [False, True]


def test_only_what_is_read_is_loaded() -> None:
    m = small()
    c = compile_model(m, [m.x0])
    m.x.set_values({0: 7.0, 1: 7.0})
    m.z.set_value(9.0)
    point = [1, 2.5, 2, 1.5, 2.0000001]
    c.load(point, only=[m.z, m.x[1]])
    assert (m.z.value, type(m.z.value), m.x[1].value, m.x[0].value) == (2, int, 1.5, 7.0)
    c.load(point)
    assert m.x[0].value == 2
