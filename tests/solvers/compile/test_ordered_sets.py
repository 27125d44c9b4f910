"""SOS1 and SOS2 sets, every form of Piecewise, and what Pyomo's transformations make of disjunctions."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from pyomo import gdp
from scipy.optimize import linprog

from ceopt.solvers import compile_model, count, cutting_planes, load, read, session, solve, write
from ceopt.solvers.errors import (
    InvalidValueError,
    UnboundedFeatureError,
    UnreadableFileError,
    UnsupportedProblemError,
)
from ceopt.solvers.guarded_session import GuardedSession
from ceopt.solvers.registry import SOLVERS

INSTALLED = [name for name in ("highs", "scip", "gurobi") if SOLVERS[name].is_installed]
FORMS = ["SOS2", "BIGM_BIN", "BIGM_SOS1", "DCC", "DLOG", "CC", "LOG", "MC", "INC"]

bounds = st.tuples(st.integers(-3, 0), st.integers(0, 3)) | st.tuples(st.integers(1, 2), st.integers(2, 3))
programs = st.integers(3, 6).flatmap(
    lambda n: st.tuples(
        st.lists(bounds, min_size=n, max_size=n),
        st.lists(st.integers(-4, 4), min_size=n, max_size=n),
        st.lists(st.lists(st.integers(-2, 3), min_size=n, max_size=n), min_size=1, max_size=2),
        st.permutations(range(n)),
    )
)


def program(of: Any, kind: int) -> Any:
    """Maximise costs over rows of at most 4 each, with one set in an order of its own."""
    box, costs, rows, order = of
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(len(box)), bounds=lambda _m, i: box[i])
    m.rows = pyo.Constraint(range(len(rows)), rule=lambda m, r: sum(a * m.x[i] for i, a in enumerate(rows[r])) <= 4)
    m.set = pyo.SOSConstraint(var=m.x, weights=dict(enumerate(order)), sos=kind)
    m.value = pyo.Objective(expr=sum(c * m.x[i] for i, c in enumerate(costs)), sense=pyo.maximize)
    return m


def enumerated(of: Any, kind: int, fixed: dict[int, float] | None = None) -> float | None:
    """The best of the linear programs over each run of neighbours; None where all are empty."""
    box, costs, rows, order = of
    n = len(box)
    ordered = sorted(range(n), key=lambda i: order[i])
    best = None
    for k in range(n - kind + 1):
        free = set(ordered[k : k + kind])
        limits = [(v, v) if (v := (fixed or {}).get(i)) is not None else box[i] for i in range(n)]
        limits = [limit if i in free else (max(limit[0], 0), min(limit[1], 0)) for i, limit in enumerate(limits)]
        if any(low > high for low, high in limits):
            continue
        found = linprog(-np.array(costs, dtype=float), rows, [4.0] * len(rows), bounds=limits)
        if found.status == 0 and (best is None or -found.fun > best):
            best = -found.fun
    return best


@pytest.mark.parametrize("solver", INSTALLED)
@pytest.mark.parametrize("kind", [1, 2])
@example(of=([(0, 3), (-3, 0), (0, 3)], [1, -4, 2], [[1, 1, 1]], (2, 0, 1)))
@example(of=([(1, 2), (-3, 0), (1, 3)], [1, -4, 2], [[1, 1, 1]], (0, 1, 2)))  # two that are never 0
@given(of=programs)
@draws(40)
def test_the_optimum_is_that_of_the_best_run_of_neighbours(solver: str, kind: int, of: Any) -> None:
    m = program(of, kind)
    result = solve(m, solver)
    best = enumerated(of, kind)
    if best is None:
        assert str(result.status) == "infeasible"
        return
    assert str(result.status) == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.bound == pytest.approx(best, abs=1e-5)
    assert sorted(result.solutions[0]) == [var.name for var in m.x.values()]  # and no binary
    compiled = compile_model(m)
    point = np.zeros(len(compiled.columns))
    point[[compiled.index[var] for var in m.x.values()]] = [var.value for var in m.x.values()]
    assert compiled.sets[0].violation(point) <= 1e-6


@given(of=programs, at=st.integers(0, 5), value=st.integers(-1, 1), kind=st.integers(1, 2))
@draws(40)
def test_a_fixed_member_keeps_its_place(of: Any, at: int, value: int, kind: int) -> None:
    at %= len(of[0])
    m = program(of, kind)
    m.x[at].fix(value)
    best = enumerated(of, kind, {at: value})
    result = solve(m)
    assert (None if result.objective is None else round(result.objective, 5)) == (best and round(best, 5))


def test_a_set_that_says_nothing_or_is_not_active_has_no_rows() -> None:
    m = program(([(0, 3)] * 3, [1, 1, 1], [[1, 1, 1]], (0, 1, 2)), 1)
    m.set.deactivate()
    m.pair = pyo.SOSConstraint(rule=lambda m: ([m.x[0], m.x[1]], [1, 2]), sos=2)
    compiled = compile_model(m)
    assert (compiled.shape, compiled.sets) == ((1, 3, 0, 0), [])


def test_binaries_need_no_others() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(4), domain=pyo.Binary)
    m.set = pyo.SOSConstraint(var=m.x, sos=1)
    assert compile_model(m).shape == (1, 4, 0, 0)
    assert count(m).number == 5


def test_the_rows_are_those_of_the_docstring() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(-1, 2))
    m.set = pyo.SOSConstraint(var=m.x, sos=2)
    compiled = compile_model(m)
    expected = [
        [1, 0, 0, -2, 0], [1, 0, 0, 1, 0], [0, 1, 0, -2, -2], [0, 1, 0, 1, 1], [0, 0, 1, 0, -2], [0, 0, 1, 0, 1],
        [0, 0, 0, 1, 1],
    ]  # fmt: skip
    assert compiled.A.toarray().tolist() == expected
    assert compiled.row_ub.tolist() == [0, math.inf, 0, math.inf, 0, math.inf, 1]
    assert compiled.integer.tolist() == [False] * 3 + [True] * 2
    assert compiled.violation([2, 0, 1, 0.5, 0.5]) == 1  # whatever the binaries say, one of the two has to be 0


def test_bounds_that_rows_imply_serve_and_others_are_missed_by_name() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), domain=pyo.NonNegativeReals)
    m.y = pyo.Var(bounds=(-4, 4))
    m.total = pyo.Constraint(expr=2 * m.x[0] + m.x[1] - m.y <= 2)
    m.other = pyo.Constraint(expr=m.x[2] - m.x[1] <= 1)
    m.set = pyo.SOSConstraint(var=m.x, sos=1)
    m.value = pyo.Objective(expr=sum(m.x.values()), sense=pyo.maximize)
    assert solve(m).objective == pytest.approx(6)
    m.other.deactivate()
    with pytest.raises(UnboundedFeatureError, match=r"'x\[2\]' in SOSConstraint 'set' has no upper bound. Set it"):
        solve(m)


def test_a_row_bounds_the_one_column_that_has_no_bounds() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    m.y = pyo.Var([1, 2], bounds=(0, 1))
    m.row = pyo.Constraint(expr=(-4, m.x - m.y[1], 3))
    m.set = pyo.SOSConstraint(rule=lambda m: ([m.x, m.y[1], m.y[2]], [1, 2, 3]), sos=1)
    m.value = pyo.Objective(expr=m.x + m.y[1] + 4 * m.y[2], sense=pyo.maximize)
    assert solve(m).objective == pytest.approx(4)
    assert min(compile_model(m).A.data) == -4  # the greatest of x, with y at 1
    m.value.sense = pyo.minimize
    assert solve(m).objective == pytest.approx(-4)


@pytest.mark.parametrize("solver", INSTALLED)
def test_wide_bounds_let_nothing_leak(solver: str) -> None:
    for width in (1e5, 1e9):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(5), bounds=(0, width))
        m.set = pyo.SOSConstraint(var=m.x, sos=1)
        m.row = pyo.Constraint(expr=sum((i + 1) * m.x[i] for i in range(5)) <= 7.3)
        m.least = pyo.Constraint(expr=m.x[0] + m.x[1] <= 1.1)
        m.value = pyo.Objective(expr=sum((1 + 0.3 * i - 0.1 * (i == 4)) * m.x[i] for i in range(5)), sense=pyo.maximize)
        result = solve(m, solver)
        assert (str(result.status), result.objective) == ("optimal", pytest.approx(1.6 * 7.3 / 3, abs=1e-6))


# -- what else a program goes through ----------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", INSTALLED)
def test_pools_differ_in_the_callers_integers_alone(solver: str) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(4), bounds=(0, 3), domain=pyo.Integers)
    m.y = pyo.Var(bounds=(0, 1))
    m.row = pyo.Constraint(expr=sum(m.x.values()) <= 4)
    m.part = pyo.Constraint(expr=m.y <= 0.5 * m.x[0] + 0.1)
    m.set = pyo.SOSConstraint(var=m.x, sos=2)
    m.value = pyo.Objective(expr=sum((i + 1) * m.x[i] for i in range(4)), sense=pyo.maximize)
    points = [
        p
        for p in itertools.product(range(4), repeat=4)
        if sum(p) <= 4 and any(not any(p[:i]) and not any(p[i + 2 :]) for i in range(3))
    ]
    values = sorted((sum((i + 1) * p[i] for i in range(4)) for p in points), reverse=True)
    for wanted in (6, len(points) + 2):
        result = solve(m, solver, pool=wanted)
        assert str(result.status) == "optimal"
        assert [round(one.objective) for one in result.solutions] == values[:wanted]
    m.part.deactivate()
    with pytest.raises(UnsupportedProblemError, match="integers that decide everything, but set 'set' has binaries"):
        count(m)


def test_a_start_has_the_binaries_of_its_members() -> None:
    m = program(([(-1, 3)] * 4, [1, 2, 3, 4], [[1, 1, 1, 1]], (0, 1, 2, 3)), 2)
    compiled = compile_model(m)
    assert compiled.completed({0: 0.0, 1: 0.0, 2: -1.0, 3: 2.0})[6] == 1.0
    assert set(compiled.completed({0: 0.0, 2: 1.0})) == {0, 2}
    start = compiled.completed({0: 0.0, 1: 1.0, 2: 2.0, 3: 0.0})
    assert compiled.violation([start[k] for k in range(7)]) == 0


def test_a_start_that_breaks_a_set_is_refused_by_its_name() -> None:
    m = program(([(-1, 3)] * 4, [1, 2, 3, 4], [[1, 1, 1, 1]], (0, 1, 2, 3)), 2)
    with pytest.raises(InvalidValueError, match="values that keep the rows, but they break constraint 'set' by 1"):
        solve(m, start=pyo.ComponentMap([(m.x[0], 1), (m.x[1], 0), (m.x[2], 2), (m.x[3], 0)]))
    good = pyo.ComponentMap([(m.x[0], 0), (m.x[1], 1), (m.x[2], 2), (m.x[3], 0)])
    assert str(solve(m, start=good).status) == str(solve(m, start=True).status) == "optimal"


def test_a_set_is_added_to_a_compiled_program() -> None:
    m = program(([(0, 3)] * 3, [1, 1, 1], [[1, 1, 1]], (0, 1, 2)), 1)
    m.set.deactivate()
    compiled = compile_model(m)
    m.more = pyo.Var(bounds=(0, 5))
    m.later = pyo.SOSConstraint(rule=lambda m: ([m.x[0], m.x[1], m.more], [1, 2, 3]), sos=1)
    compiled.append(m.later)
    assert compiled.shape == (1 + 4, 3 + 1 + 3, 0, 0)
    assert compiled.violation([1, 0, 0, 2, 1, 0, 1]) == 1


def test_bounds_beyond_those_of_its_rows_are_refused() -> None:
    m = program(([(0, 3)] * 3, [1, 2, 3], [[1, 1, 1]], (0, 1, 2)), 1)
    compiled = compile_model(m)
    guarded = GuardedSession(SOLVERS["highs"], compiled, threads=1, random_state=0, options={})
    assert guarded.solve().objective == pytest.approx(9)
    compiled.ub[2] = 4
    with pytest.raises(
        InvalidValueError, match=r"'set' needs bounds of 'x\[2\]' within \[0, 3\], .* they are \[0, 4\]"
    ):
        guarded.solve()


def test_so_are_those_that_a_bound_was_implied_by() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), domain=pyo.NonNegativeReals)
    m.y = pyo.Var(bounds=(0, 4))
    m.row = pyo.Constraint([0, 1], rule=lambda m, i: m.x[i] <= m.y)
    m.set = pyo.SOSConstraint(var=m.x, sos=1)
    m.value = pyo.Objective(expr=sum(m.x.values()), sense=pyo.maximize)
    compiled = compile_model(m)
    guarded = GuardedSession(SOLVERS["highs"], compiled, threads=1, random_state=0, options={})
    assert guarded.solve().objective == pytest.approx(4)
    compiled.ub[compiled.index[m.y]] = 5
    with pytest.raises(InvalidValueError, match="bounds of 'y' within"):
        guarded.solve()


def test_it_pickles_with_the_names_of_its_binaries() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 3))
    m.set = pyo.SOSConstraint(var=m.x, sos=2)
    copied = pickle.loads(pickle.dumps(compile_model(m)))
    names = ["x[0]", "x[1]", "x[2]", "set_binary[1]", "set_binary[2]"]
    assert [var.name for var in copied.columns] == names


def test_data_stand_in_no_set() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 1), initialize=0)
    m.x[0].fix()
    m.set = pyo.SOSConstraint(var=m.x, sos=1)
    with pytest.raises(UnsupportedProblemError, match=r"'x\[0\]', which is listed in data. Leave it out"):
        compile_model(m, [m.x[0]])


def bad_sets() -> dict[str, tuple[Any, str]]:
    return {
        "kind": (lambda m: pyo.SOSConstraint(var=m.x, sos=3), "sets of kind 1 or 2, but SOSConstraint 'bad' has sos=3"),
        "twice": (
            lambda _m: pyo.SOSConstraint(rule=lambda m: ([m.x[0], m.x[1], m.x[0]], [1, 2, 3]), sos=2),
            "each Var once in a set, but SOSConstraint 'bad' has one twice",
        ),
        "weights": (
            lambda m: pyo.SOSConstraint(var=m.x, weights={0: 1, 1: 1, 2: 2}, sos=2),
            "different weights in an SOS2 set",
        ),
        "value": (lambda m: m.x[1].fix() or pyo.SOSConstraint(var=m.x, sos=1), r"'x\[1\]' has None. Give it a value"),
    }


@pytest.mark.parametrize("kind", bad_sets())
def test_a_set_without_a_meaning_is_refused(kind: str, tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 1))
    make, match = bad_sets()[kind]
    m.bad = make(m)
    for call in (compile_model, lambda m: write(m, tmp_path / "m.lp")):
        with pytest.raises((InvalidValueError, UnsupportedProblemError), match=match):
            call(m)


# -- Piecewise ---------------------------------------------------------------------------------------------------------
def piecewise(form: str, values: list[int], slope: float, relation: str) -> Any:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, len(values) - 1))
    m.y = pyo.Var(bounds=(-20, 20))
    points = list(range(len(values)))
    m.f = pyo.Piecewise(m.y, m.x, pw_pts=points, f_rule=values, pw_repn=form, pw_constr_type=relation)
    sense = pyo.minimize if relation == "LB" else pyo.maximize
    m.value = pyo.Objective(expr=m.y + slope * m.x, sense=sense)
    return m


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", INSTALLED)
@pytest.mark.parametrize("form", FORMS)
@example(values=[0, 3, 1, 5, 2], slope=0, relation="EQ")
@example(values=[4, 1, 0, 3, 7], slope=-0.5, relation="UB")
@given(
    values=st.lists(st.integers(-5, 5), min_size=5, max_size=5),
    slope=st.sampled_from([-0.5, 0.25, 2]),
    relation=st.sampled_from(["EQ", "UB", "LB"]),
)
@draws(30)
def test_every_form_of_piecewise_is_the_function(
    solver: str, form: str, values: list[int], slope: float, relation: str
) -> None:
    m = piecewise(form, values, slope, relation)
    turns = np.diff(values, 2)
    if form.startswith("BIGM") and (turns > 0).any() and (turns < 0).any() and m.f.component("BIGM_constraint1"):
        with pytest.raises(UnsupportedProblemError, match="neither convex nor concave, are none. Take pw_repn='SOS2'"):
            solve(m, solver)
        return
    result = solve(m, solver)
    reached = [value + slope * k for k, value in enumerate(values)]
    best = min(reached) if relation == "LB" else max(reached)
    assert (str(result.status), result.objective) == ("optimal", pytest.approx(best, abs=1e-6))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", [form for form in FORMS if not form.startswith("BIGM")])
def test_no_form_leaves_the_graph_between_its_points(form: str) -> None:
    values = [0, 3, 1, 5, 2]
    m = piecewise(form, values, 0, "EQ")
    for at in np.linspace(0, 4, 17):
        m.x.fix(float(at))
        for sense in (pyo.minimize, pyo.maximize):
            m.value.sense = sense
            assert solve(m).objective == pytest.approx(np.interp(at, range(5), values), abs=1e-6)


# -- files -------------------------------------------------------------------------------------------------------------
def two_blocks() -> Any:
    m = pyo.ConcreteModel()
    m.b = pyo.Block([1, 2])
    for k in (1, 2):
        m.b[k].x = pyo.Var(range(4), bounds=(-1, 3))
        m.b[k].s = pyo.SOSConstraint(var=m.b[k].x, sos=k, weights={0: 3.5, 1: 1, 2: 2, 3: 9})
        m.b[k].c = pyo.Constraint(expr=sum(m.b[k].x.values()) <= 5 - k)
    m.b[2].x[1].fix(1)  # second to none but x[2]
    m.alone = pyo.Var([1, 2], bounds=(1, 2))
    m.stray = pyo.SOSConstraint(rule=lambda m: ([m.alone[1], m.b[1].x[3]], [1, 2]), sos=1)  # so x[3] is 0
    m.nothing = pyo.SOSConstraint(rule=lambda m: ([m.alone[2]], [1]), sos=2)
    m.value = pyo.Objective(expr=sum((i + 1) * x for b in m.b.values() for i, x in b.x.items()), sense=pyo.maximize)
    return m


@pytest.mark.parametrize("suffix", [".lp", ".mps", ".cbf"])
def test_files_hold_the_sets_and_are_read_back(suffix: str, tmp_path: Path) -> None:
    m = two_blocks()
    before = [(v.lb, v.ub, v.fixed, v.value) for v in m.component_data_objects(pyo.Var)]
    path = tmp_path / f"m{suffix}"
    write(m, path)
    assert before == [(v.lb, v.ub, v.fixed, v.value) for v in m.component_data_objects(pyo.Var)]
    assert [s.active for s in m.component_data_objects(pyo.SOSConstraint)] == [True] * 4
    table = json.loads((tmp_path / f"m{suffix}.names.json").read_text())
    assert {"b[1].s", "b[2].s", "stray"} <= {entry["component"] for entry in table.values()}

    again = read(path)
    sets = list(again.component_data_objects(pyo.SOSConstraint))
    assert len(sets) == (0 if suffix == ".cbf" else 3)
    expected = solve(m).objective
    result = solve(again)
    assert (str(result.status), result.objective) == ("optimal", pytest.approx(expected))

    for var in m.component_data_objects(pyo.Var):
        if not var.fixed:
            var.set_value(None)
    load(m, {name.strip("'"): value for name, value in result.solutions[0].items()})
    assert pyo.value(m.value) == pytest.approx(expected)
    assert compile_model(m).violation([var.value or 0.0 for var in compile_model(m).columns]) > 0  # without binaries
    write(again, tmp_path / f"again{suffix}")
    assert solve(read(tmp_path / f"again{suffix}")).objective == pytest.approx(expected)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_other_readers_take_the_sets_of_a_file(suffix: str, tmp_path: Path) -> None:
    pyscipopt = pytest.importorskip("pyscipopt")
    m = two_blocks()
    write(m, tmp_path / f"m{suffix}")
    other = pyscipopt.Model()
    other.hideOutput()
    other.readProblem(str(tmp_path / f"m{suffix}"))
    other.optimize()
    assert other.getObjVal() == pytest.approx(solve(m).objective)


LP = "max\n o: x + 2 y + 3 z\nst\n c: x + y + z <= 4\nbounds\n x <= 3\n y <= 3\n z <= 3\n{sets}end\n"
MPS = """NAME m
ROWS
 N  o
 L  c
COLUMNS
    x  o  -1  c  1
    y  o  -2  c  1
    z  o  -3  c  1
RHS
    r  c  4
BOUNDS
 UP b  x  3
 UP b  y  3
 UP b  z  3
{sets}ENDATA
"""


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".lp", LP.format(sets="SOS\n \\ none beside\n s0:  S2 :: x:1 y:2 z:3\n S1:: x:1 z:2\n")),
        (".lp", LP.format(sets="sos2\n s0: s2:: z:3, y:2,\n x:1\n t: S1 ::x:1 z:2\ngeneral\n x\n")),
        (".mps", MPS.format(sets="SOS\n S2 s0\n    x  1\n    y  2\n    z  3\n S1 SOS t\n    x  1\n    z  2\n")),
    ],
)
def test_sets_are_read_as_others_write_them(suffix: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_text(text)
    m = read(path)
    found = [
        (one.level, {var.name: weight for var, weight in one.get_items()})
        for one in m.component_data_objects(pyo.SOSConstraint)
    ]
    assert found == [(2, {"x": 1, "y": 2, "z": 3}), (1, {"x": 1, "z": 2})]
    assert abs(solve(m).objective) == 11


@pytest.mark.parametrize(
    ("suffix", "text", "match"),
    [
        (".lp", LP.format(sets="SOS\n s0: S2:: x:1 y z:3\n"), "members of a set as column:weight"),
        (".lp", LP.format(sets="SOS\n s0: S3:: x:1 y:2\n"), "sets as 'name: S1:: column:weight ...'"),
        (".lp", LP.format(sets="SOS\n s0: S1:: x:1 x:2\n"), "each column once in a set"),
        (".lp", LP.format(sets="SOS\n s0: S1:: x:1 y:nan\n"), "members of a set"),
        (".mps", MPS.format(sets="SOS\n S2 s0\n    x  one\n"), "sets as ' S1 name' and lines"),
        (".mps", MPS.format(sets="SOS\n    x  1\n"), "sets as ' S1 name' and lines"),
    ],
)
def test_sections_that_are_no_sets_are_refused(suffix: str, text: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_text(text)
    with pytest.raises(UnreadableFileError, match=match):
        read(path)


# -- disjunctions ------------------------------------------------------------------------------------------------------
def disjunctive() -> Any:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 4))
    m.low, m.high = gdp.Disjunct(), gdp.Disjunct()
    m.low.row = pyo.Constraint(expr=m.x <= 1)
    m.high.row = pyo.Constraint(expr=m.x >= 3)
    m.either = gdp.Disjunction(expr=[m.low, m.high])
    m.value = pyo.Objective(expr=m.x)
    m.least = pyo.Constraint(expr=m.x >= 1.5)
    return m


@pytest.mark.parametrize("how", ["gdp.bigm", "gdp.hull"])
def test_a_disjunction_is_refused_until_pyomo_restates_it(how: str, tmp_path: Path) -> None:
    m = disjunctive()
    match = r'is an active Disjunct.* Apply pyo.TransformationFactory\("gdp.bigm"\).apply_to\(model\) first'
    for call in (solve, lambda m: write(m, tmp_path / "m.lp")):
        with pytest.raises(UnsupportedProblemError, match=match):
            call(m)
    pyo.TransformationFactory(how).apply_to(m)
    assert solve(m).objective == pytest.approx(3)
    assert (m.low.indicator_var.value, m.high.indicator_var.value) == (False, True)


def test_a_logical_constraint_is_refused_until_pyomo_restates_it() -> None:
    m = pyo.ConcreteModel()
    m.holds = pyo.BooleanVar([1, 2, 3])
    m.y = pyo.Var([1, 2, 3], domain=pyo.Binary)
    for i in m.y:
        m.holds[i].associate_binary_var(m.y[i])
    m.rule = pyo.LogicalConstraint(expr=m.holds[1].implies(m.holds[2].land(pyo.lnot(m.holds[3]))))
    m.value = pyo.Objective(expr=5 * m.y[1] - m.y[2] + m.y[3], sense=pyo.maximize)
    with pytest.raises(UnsupportedProblemError, match="'rule' is an active LogicalConstraint. Apply"):
        solve(m)
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    assert solve(m).objective == pytest.approx(4)


@pytest.mark.parametrize("solver", INSTALLED)
def test_an_open_session_takes_rows_and_tighter_bounds_beside_a_set(solver: str) -> None:
    m = program(([(0, 3)] * 4, [1, 2, 3, 4], [[1, 1, 1, 1]], (0, 1, 2, 3)), 2)
    with session(m, solver) as opened:
        assert opened.solve().objective == pytest.approx(3 * 4 + 3)
        m.more = pyo.Constraint(expr=m.x[3] <= 1)
        opened.add(m.more)
        assert opened.solve().objective == pytest.approx(3 * 3 + 4)
        opened.set(bounds=pyo.ComponentMap([(m.x[2], (0, 1))]))
        assert opened.solve().objective == pytest.approx(2 * 3 + 3)
        opened.set(bounds=pyo.ComponentMap([(m.x[2], (0, 4))]))
        with pytest.raises(InvalidValueError, match="Compile the model again"):
            opened.solve()


# -- sets as a solver's own --------------------------------------------------------------------------------------------
needs_scip = pytest.mark.skipif("scip" not in INSTALLED, reason="pyscipopt is not here")


@needs_scip
@pytest.mark.parametrize("kind", [1, 2])
def test_scip_has_the_set_and_neither_its_binaries_nor_its_rows(kind: int) -> None:
    from ceopt.solvers.scip import Program, new_model

    compiled = compile_model(program(([(-1, 3)] * 4, [1, 2, 3, 4], [[1, 1, 1, 1]], (2, 0, 1, 3)), kind))
    handed = Program(new_model(compiled), compiled, 1.0)
    kinds = sorted(row.getConshdlrName() for row in handed.model.getConss())
    assert kinds == [f"SOS{kind}", "linear"]
    binaries = [handed.columns[k] for k in compiled.set_binaries]
    assert [(b.getLbOriginal(), b.getUbOriginal()) for b in binaries] == [(0, 0)] * len(binaries)
    handed.model.optimize()
    point = handed.point(handed.model.getBestSol())
    assert compiled.violation(point) <= 1e-6
    assert point[compiled.set_binaries].sum() == 1


def several_sets(seed: int) -> Any:
    draw = np.random.default_rng(seed)
    n = 12
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(n), bounds=(-2, 20))
    m.x[0].domain = pyo.Integers
    m.rows = pyo.ConstraintList()
    for _ in range(4):
        weights = draw.uniform(0.1, 3, n) * (draw.random(n) < 0.5)
        m.rows.add(sum(float(a) * m.x[j] for j, a in enumerate(weights)) <= float(draw.uniform(10, 40)))
    m.one = pyo.SOSConstraint(range(3), rule=lambda m, i: ([m.x[4 * i + j] for j in range(4)], [1, 2, 3, 4]), sos=1)
    m.two = pyo.SOSConstraint(
        range(3), rule=lambda m, i: ([m.x[(i + 5 * j) % n] for j in range(5)], [5, 3, 4, 1, 2]), sos=2
    )
    m.value = pyo.Objective(expr=sum(float(c) * v for c, v in zip(draw.uniform(-1, 5, n), m.x.values(), strict=True)))
    m.value.sense = pyo.maximize
    return m


@pytest.mark.parametrize("solver", [name for name in INSTALLED if name != "highs"])
@pytest.mark.parametrize("seed", range(6))
def test_sets_of_a_solvers_own_agree_with_binaries_where_they_overlap(seed: int, solver: str) -> None:
    m = several_sets(seed)
    by_binaries = solve(m, "highs")
    found = solve(m, solver, start=pyo.ComponentMap((var, var.value) for var in m.x.values()))
    assert str(found.status) == "optimal"
    assert found.objective == pytest.approx(by_binaries.objective, abs=1e-5)
    assert found.bound == pytest.approx(by_binaries.objective, abs=1e-4)
    assert max(one.violation(found.solutions[0].x) for one in compile_model(m).sets) <= 1e-6


@pytest.mark.parametrize("solver", INSTALLED)
@given(of=programs, kind=st.integers(1, 2))
@draws(30)
def test_rows_may_be_hidden_beside_a_set(solver: str, kind: int, of: Any) -> None:
    box, costs, rows, order = of
    m = program((box, costs, rows[:0], order), kind)
    m.cuts = pyo.ConstraintList()

    def separate(_solution: Any) -> Any:
        for row in rows:
            body = pyo.quicksum(a * m.x[i] for i, a in enumerate(row))
            if pyo.value(body) > 4 + 1e-5:
                return m.cuts.add(body <= 4)
        return None

    found = cutting_planes(m, separate, solver=solver)
    best = enumerated(of, kind)
    assert (found.objective is None) == (best is None)
    assert best is None or found.objective == pytest.approx(best, abs=1e-5)
