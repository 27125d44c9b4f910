"""Files read back by HiGHS hold the compiled arrays bit for bit, by name, and the names trace back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from battery import MODELS
from comparing import arrays_of, assert_same
from licences import skip_without

from ceopt.solvers import Manifest, compile_model, describe, read, solve, write
from ceopt.solvers.compile.names import label_components
from ceopt.solvers.compile.quadratic_cones import without_quadratics
from ceopt.solvers.cones import exponential, psd, rotated_soc, soc
from ceopt.solvers.errors import InvalidValueError, UnknownNameError, UnreadableFileError, UnsupportedProblemError

#: A third of the lengths around 255, at which readers stop, and some beside.
LENGTHS = [200, 235, *range(238, 263, 3), 245, 249, 250, 255, 300]
#: What each kind of name begins with in the model below.
KINDS = {"variable": "x", "integer": "i", "product": "y", "row": "r", "equation": "e", "range": "g", "curve": "q"}


def long_named(length: int, kind: str, quadratic: str) -> Any:
    """A program whose names of a kind ("every": of all) have a length, its optimum known by hand.

    x + y is at least 1.5, y is i + 1 or more, x at least 0.5 where the row holds; each row binds in turn.
    """

    def name(of: str) -> str:
        start = KINDS.get(of, "o")
        return start + "z" * (length - 1) if kind in {of, "every"} else start

    m = pyo.ConcreteModel(name="m" * length if kind == "every" else "m")
    x, y, i = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 10)), pyo.Var(domain=pyo.Integers, bounds=(0, 10))
    m.add_component(name("variable"), x)
    m.add_component(name("product"), y)
    m.add_component(name("integer"), i)
    m.add_component(name("row"), pyo.Constraint(expr=x + i >= 1.5))
    m.add_component(name("equation"), pyo.Constraint(expr=y - i == 1))
    m.add_component(name("range"), pyo.Constraint(expr=(3.5, x + y, 4)))
    if quadratic == "row":
        m.add_component(name("curve"), pyo.Constraint(expr=x**2 + y**2 <= 30))
    cost = x + 3 * y + 2 * i + 7
    if quadratic == "objective":
        cost += x**2
    m.add_component(name("objective"), pyo.Objective(expr=cost))
    return m


def model(kind: str = "milp", *, maximise: bool = False) -> Any:
    """Odd names, numpy coefficients, ranges, equalities, negative integers, a fixed Var and a constant."""
    m = pyo.ConcreteModel()
    m.f = pyo.Var(initialize=2.5)
    m.f.fix()
    m.b = pyo.Block()
    m.b.x = pyo.Var(["age<=30", "é x", "a,b", "a b", "q" * 300, "q" * 299 + "r"], bounds=(-3, 4.7))
    m.b.cut = pyo.Var([("age", 37.5)], domain=pyo.Binary)
    for name in ("first", "second"):
        m.add_component(name, pyo.Block())
        m.component(name).leaf = pyo.Var([(3, 12), (3, 13)], domain=pyo.Binary)
    m.e12, m.st = pyo.Var(domain=pyo.Integers, bounds=(-7, 8)), pyo.Var(domain=pyo.NonNegativeIntegers)
    m.end, m.free, m.inf = pyo.Var(domain=pyo.Integers), pyo.Var(), pyo.Var(bounds=(None, 2))
    w = np.random.default_rng(0).normal(size=10)
    x = list(m.b.x.values())
    m.b.range = pyo.Constraint(
        [("age", 37.5)], rule=lambda *_: (-3.25, sum(w[k] * v for k, v in enumerate(x)) + m.e12 / 3 + m.f, 7.1)
    )
    m.valid = pyo.Constraint(
        ["good"], rule=lambda m, _: m.first.leaf[3, 12] + m.second.leaf[3, 12] + m.b.cut["age", 37.5] >= 1
    )
    m.eq = pyo.Constraint(expr=m.st - m.end + m.free == 1.5)
    m.lo = pyo.Constraint(expr=m.free + m.inf >= np.float64(-2) / 3)
    m.st2 = pyo.Constraint(expr=m.end + m.inf <= np.float64(4.1))
    m.low = pyo.Constraint(expr=m.end >= -4)
    cost = (
        sum(np.float64(0.1) * (k + 1) * v for k, v in enumerate(x)) + 0.1 * m.st + m.first.leaf[3, 12] / 2 - m.inf / 7
    )
    cost += m.second.leaf[3, 12] + m.b.cut["age", 37.5] + 4.75
    if kind == "qp":
        cost += sum((k + 1) * (v + 1) ** 2 / 3 for k, v in enumerate(x)) + m.free**2 / 3 + m.free * x[0] / 5
        for v in m.component_data_objects(pyo.Var):
            lower, upper = v.bounds
            v.domain = pyo.Reals
            v.bounds = (lower, upper)
    m.cost = pyo.Objective(expr=-cost if maximise else cost, sense=pyo.maximize if maximise else pyo.minimize)
    describe(m.b, Manifest(title="b", formula="", rule="my rule", features={"x": 0, "cut": 0, "range": 0}))
    return m


def parse(path: Path) -> tuple[Any, Any]:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) != highspy.HighsStatus.kError
    return highs.getModel().lp_, highs.getModel().hessian_


CASES = [
    (kind, suffix, maximise) for kind in ("milp", "qp") for suffix in (".lp", ".mps") for maximise in (False, True)
]


@pytest.mark.parametrize(("kind", "suffix", "maximise"), CASES)
def test_the_file_holds_the_compiled_arrays(tmp_path: Path, kind: str, suffix: str, maximise: bool) -> None:
    m, path = model(kind, maximise=maximise), tmp_path / f"m{suffix}"
    write(m, path)
    names = json.loads((tmp_path / f"m{suffix}.names.json").read_text(encoding="utf-8"))
    lp, hessian = parse(path)
    c = compile_model(m)
    column_of = {v.name: k for k, v in enumerate(c.columns)}
    row_of = {con.name: r for r, con in enumerate(c.rows)}
    at = [None if n == "ONE_VAR_CONSTANT" else column_of[names[n]["component"]] for n in lp.col_names_]
    assert sorted(k for k in at if k is not None) == list(range(len(c.columns)))
    kept = [j for j, k in enumerate(at) if k is not None]
    order = np.array([at[j] for j in kept])
    assert np.array(lp.col_lower_)[kept].tolist() == c.lb[order].tolist()
    assert np.array(lp.col_upper_)[kept].tolist() == c.ub[order].tolist()
    # the MPS writer adds up a quadratic objective's linear part in another order
    tolerance = 1e-15 if (kind, suffix) == ("qp", ".mps") else 0.0
    np.testing.assert_allclose(np.array(lp.col_cost_)[kept], c.c[order], rtol=tolerance)
    assert lp.offset_ + sum(v for v, k in zip(lp.col_cost_, at, strict=True) if k is None) == c.c0
    whole = (
        [str(lp.integrality_[j]).endswith("kInteger") for j in kept] if len(lp.integrality_) else [False] * len(kept)
    )
    assert whole == c.integer[order].tolist()
    assert str(lp.sense_).endswith("kMaximize" if maximise else "kMinimize")
    a = lp.a_matrix_
    by_column = str(a.format_).endswith("kColwise")
    matrix = (sp.csc_array if by_column else sp.csr_array)(
        (a.value_, a.index_, a.start_), shape=(lp.num_row_, lp.num_col_)
    )
    dense, seen = matrix.toarray(), set()
    for i, name in enumerate(lp.row_names_):
        if name == "c_e_ONE_VAR_CONSTANT":
            continue
        r = row_of[names[name]["component"]]
        assert dense[i, kept].tolist() == c.A.toarray()[r, order].tolist()
        if not name.startswith("r_u_"):
            assert lp.row_lower_[i] == c.row_lb[r]
        if not name.startswith("r_l_"):
            assert lp.row_upper_[i] == c.row_ub[r]
        seen.add((r, name[:4]))
    assert {r for r, _ in seen} == set(range(len(c.rows)))
    if kind == "qp":
        full = np.zeros((lp.num_col_, lp.num_col_))
        start = list(hessian.start_)
        for k in range(hessian.dim_):
            for i, value in zip(
                hessian.index_[start[k] : start[k + 1]], hessian.value_[start[k] : start[k + 1]], strict=True
            ):
                full[i, k] = full[k, i] = value
        expected = (c.Q + sp.tril(c.Q, -1).T).toarray()
        np.testing.assert_allclose(full[np.ix_(kept, kept)], expected[np.ix_(order, order)], rtol=tolerance)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("kind", "suffix", "maximise"), CASES)
def test_the_file_has_the_same_optimum(tmp_path: Path, kind: str, suffix: str, maximise: bool) -> None:
    m, path = model(kind, maximise=maximise), tmp_path / f"m{suffix}"
    write(m, path)
    copy = read(path)
    ours, theirs = solve(m), solve(copy)
    assert ours.status == theirs.status == "optimal"
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-7)
    again = tmp_path / f"again{suffix}"
    write(copy, again)
    assert solve(read(again)).objective == pytest.approx(ours.objective, rel=1e-7)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_names_are_readable_legal_unique_and_traced(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    write(model(), path)
    names = json.loads(Path(f"{path}.names.json").read_text(encoding="utf-8"))
    lp, _ = parse(path)
    assert set(lp.col_names_) | set(lp.row_names_) == set(names) - {"cost"}
    assert len({name.lower() for name in names}) == len(names)
    assert max(map(len, names)) <= 255
    for name in names:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_()]*", name)
    assert names["x(e_x)"] == {"component": "b.x[é x]", "feature": "é x", "block": "b", "rule": "my rule"}
    assert names["x(a_b)"]["component"] == "b.x['a,b']"
    assert names["x(a_b)_2"]["component"] == "b.x[a b]"
    assert names["cut(age_37_5)"]["feature"] == "age"
    assert names["r_l_range(age_37_5)_"] == names["r_u_range(age_37_5)_"]
    assert names["c_l_valid(good)_"] == {"component": "valid[good]", "feature": "", "block": "", "rule": ""}
    assert names["second_leaf(3_12)"]["block"] == "second"
    assert {"_e12", "_st", "_end", "_free", "_inf", "x(age__30)", "c_e_eq_", "c_u_st2_"} <= set(names)
    assert names["ONE_VAR_CONSTANT"]["component"] == "cost"


def test_a_folder_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"write needs a folder that exists, but the file is '.*absent.m.lp'"):
        write(model("qp"), tmp_path / "absent" / "m.lp")


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_writing_twice_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write(model("qp"), tmp_path / folder / f"m{suffix}")
    for name in (f"m{suffix}", f"m{suffix}.names.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert b"np.float" not in (tmp_path / "one" / f"m{suffix}").read_bytes()
    assert b" ^ 2" not in (tmp_path / "one" / f"m{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_a_model_without_an_objective(tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 4), domain=pyo.Integers)
    m.c = pyo.Constraint(expr=2 * m.x >= 3)
    write(m, tmp_path / f"m{suffix}")
    assert [o.name for o in m.component_objects(pyo.Objective)] == []
    assert caplog.records == []
    assert solve(read(tmp_path / f"m{suffix}")).status == "optimal"


def test_what_a_file_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"\.lp, \.mps, \.cbf, \.ptf"):
        write(model(), tmp_path / "m.nl")
    for suffix in (".lp", ".mps"):
        m = model()
        m.bad = pyo.Constraint(expr=pyo.sin(m.free) <= 1)
        with pytest.raises(UnsupportedProblemError, match="bad"):
            write(m, tmp_path / f"m{suffix}")
        m.bad.deactivate()
        m.elsewhere = pyo.Constraint(expr=model().free + m.free <= 1)
        with pytest.raises(UnsupportedProblemError, match="free"):
            write(m, tmp_path / f"m{suffix}")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.lp", None, "none.lp"),
        ("text.lp", "hello\nend\n", "text.lp"),
        ("text.mps", "hello\nENDATA\n", "text.mps"),
        ("cut.mps", "NAME a\nROWS\n N  o\n", "cut.mps"),
        ("cut.lp", "min\no:\n+1 x\n", "cut.lp"),
        ("wrong.txt", "min\no:\n+1 x\nend\n", "wrong.txt"),
        ("bytes.lp", "\x00\x01\x02", "bytes.lp"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UnreadableFileError, match=message):
        read(tmp_path / name)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.lp").mkdir()
    with pytest.raises(UnreadableFileError, match="folder.lp"):
        read(tmp_path / "folder.lp")


def test_read_keeps_the_names_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.lp").write_text(
        "max\n o: 2 x(age) + 3 name + 4\nst\n x(age): x(age) + name <= 5\n r: name - x(age) <= 7\n"
        "bounds\n -1 <= x(age) <= 3\n name free\ngeneral\n x(age)\nend\n"
    )
    m = read(tmp_path / "a.lp")
    assert list(m.component_map(pyo.Var)) == ["x(age)", "name_"]
    assert list(m.component_map(pyo.Constraint)) == ["x(age)_", "r"]
    result = solve(m)
    assert result.objective == pytest.approx(20)
    assert m.component("x(age)").value == -1
    write(m, tmp_path / "b.lp")
    assert "x(age)" in json.loads((tmp_path / "b.lp.names.json").read_text(encoding="utf-8"))
    (tmp_path / "s.lp").write_text("min\no: x\nst\nc: x >= 1\nbounds\nx <= 4\nsemi-continuous\nx\nend\n")
    with pytest.raises(UnsupportedProblemError, match="'x'"):
        read(tmp_path / "s.lp")


def test_labels_never_collide_with_the_forms_of_rows() -> None:
    m = pyo.ConcreteModel()
    m.add_component("c_u_a_", pyo.Var(bounds=(0, 1)))
    m.A = pyo.Var(bounds=(0, 1))
    m.ONE_VAR_CONSTANT = pyo.Var()
    m.b = pyo.Block([1, 2])
    for k in (1, 2):
        m.b[k].a = pyo.Constraint(expr=k >= m.A)
    m.a = pyo.Constraint(expr=m.A <= 1)
    members = [*m.component_data_objects(pyo.Var), *m.component_data_objects(pyo.Constraint)]
    labels = [label_components(members)[id(member)] for member in members]
    assert labels == ["c_u_a_", "A", "_ONE_VAR_CONSTANT", "a_2", "b_1_a", "b_2_a"]


# -- quadratic rows ----------------------------------------------------------------------------------------------------
def quadratic(kind: str, *, maximise: bool = False) -> Any:
    """A program with a quadratic cost ("q"), quadratic rows ("c") and integers ("i"), one optimum each.

    Some columns stand in products alone, and one of those is an integer.
    """
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(-3, 4), domain=pyo.Integers if "i" in kind else pyo.Reals)
    m.y, m.z, m.w = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 5)), pyo.Var()
    m.e1 = pyo.Var(domain=pyo.Integers if "i" in kind else pyo.Reals, bounds=(-2, 9))
    m.range = pyo.Constraint(expr=(1, m.x[1] + 2 * m.x[2] + m.y, 8))
    cost = m.x[1] - 2 * m.y + 3 + m.z
    if "q" in kind:
        cost += m.x[1] ** 2 + m.x[1] * m.x[2] / 3 + m.x[2] ** 2 + m.y**2 / 7 + (m.w * m.w - m.w * m.y / 9)
    if "c" in kind:
        m.ball = pyo.Constraint(expr=m.x[1] ** 2 + m.x[1] * m.y / 2 + m.y**2 + m.e1**2 <= 9 + m.z)
        m.alone = pyo.Constraint(expr=m.y**2 + (m.x[2] - 0.1) ** 2 / 3 <= 10)
        m.above = pyo.Constraint(expr=m.x[1] / 3 - 1 - m.w**2 - m.w * m.e1 / 7 - m.e1**2 >= -40)
        m.cone = pyo.Constraint(expr=m.y**2 + m.x[2] ** 2 <= m.z**2)
    m.cost = pyo.Objective(expr=-cost if maximise else cost, sense=pyo.maximize if maximise else pyo.minimize)
    return m


QUADRATIC = [
    (kind, suffix, maximise)
    for kind in ("i", "q", "iq", "c", "qc", "iqc")
    for suffix in (".lp", ".mps")
    for maximise in (False, True)
]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("kind", "suffix", "maximise"), QUADRATIC)
def test_quadratic_rows_come_back_array_by_array(tmp_path: Path, kind: str, suffix: str, maximise: bool) -> None:
    m, path = quadratic(kind, maximise=maximise), tmp_path / f"m{suffix}"
    write(m, path)
    table = json.loads(Path(f"{path}.names.json").read_text(encoding="utf-8"))
    # the MPS writer halves each product, and adds up a quadratic objective's linear part in another order
    tolerance = 3e-16 if suffix == ".mps" else 0
    ours, theirs = compile_model(m), compile_model(read(path))
    assert_same(arrays_of(ours, "cost"), arrays_of(theirs, "cost", table), rtol=tolerance)
    assert theirs.problem_class == ours.problem_class


def _optimum_by_gurobi(path: Path) -> float:
    skip_without("gurobi")
    import gurobipy

    with gurobipy.Env(params={"OutputFlag": 0, "MIPGap": 0}) as env, gurobipy.read(str(path), env) as other:
        other.optimize()
        assert other.Status == gurobipy.GRB.OPTIMAL
        return float(other.ObjVal)


def _optimum_by_scip(path: Path) -> float:
    other = pytest.importorskip("pyscipopt").Model()
    other.hideOutput()
    other.readProblem(str(path))
    other.optimize()
    assert other.getStatus() == "optimal"
    return float(other.getObjVal())


def _optimum_by_highs(path: Path) -> float:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


READERS = {"gurobi": _optimum_by_gurobi, "scip": _optimum_by_scip, "highs": _optimum_by_highs}
SOLVER_OF = {"i": "highs", "q": "clarabel", "iq": "scip", "c": "clarabel", "qc": "clarabel", "iqc": "scip"}


READS = [
    (*case, reader)
    for case in QUADRATIC
    for reader in READERS
    if reader != "highs" or case[0] in {"i", "q"}  # it solves no integers beside quadratics, and reads no such rows
]


@pytest.mark.long(every=10)
@pytest.mark.parametrize(("kind", "suffix", "maximise", "reader"), READS)
def test_every_reader_finds_the_same_optimum(
    tmp_path: Path, kind: str, suffix: str, maximise: bool, reader: str
) -> None:
    m, path = quadratic(kind, maximise=maximise), tmp_path / f"m{suffix}"
    write(m, path)
    found = READERS[reader](path)
    ours = solve(m, SOLVER_OF[kind])
    assert ours.status == "optimal"
    assert found == pytest.approx(ours.objective, rel=1e-5)
    assert solve(read(path), SOLVER_OF[kind]).objective == pytest.approx(ours.objective, rel=1e-6)


@pytest.mark.parametrize(("kind", "suffix", "maximise"), QUADRATIC)
def test_mosek_reads_all_columns_rows_and_products(tmp_path: Path, kind: str, suffix: str, maximise: bool) -> None:
    mosek = pytest.importorskip("mosek")
    m, path = quadratic(kind, maximise=maximise), tmp_path / f"m{suffix}"
    write(m, path)
    c = compile_model(m)
    with mosek.Task() as task:
        task.readdata(str(path))
        assert task.getnumvar() == len(c.columns) + 1  # the constant of the objective
        assert task.getnumintvar() == c.integer.sum()
        assert task.getnumqobjnz() == (0 if c.Q is None else c.Q.nnz)
        products = [task.getnumqconknz(i) for i in range(task.getnumcon())]
        assert sorted(filter(None, products)) == sorted(row.Q.nnz for row in c.quadratics)


@pytest.mark.parametrize(
    "row",
    [
        "[ x^2 + 2 x * y - 0.5 y ^ 2 ] + 3 z",
        "3 z + [ x ^2 - -2 x*y -.5 y^2 ]",
        "3 z - [ -1 x^2\n - 2x * y \\ a comment [ 7 q^2 ]\n+ 5e-1 y^2 ]",
        "+ [ x^2 ] + 3 z + [ 2 y * x - .5e0 y^2 ]",
    ],
)
def test_brackets_in_all_ways_to_write_them(tmp_path: Path, row: str) -> None:
    (tmp_path / "a.lp").write_text(
        f"\\ [ no row ]\nmaximize\n o: z + [ - y^2 ] / 2\nSubject To\n r: {row} <= 4\n s: z + x >= 1\n"
        "bounds\n z <= 5\n x free\nend\n"
    )
    c = compile_model(read(tmp_path / "a.lp"))
    (quadratic_row,) = c.quadratics
    at = {column.name: k for k, column in enumerate(c.columns)}
    order = [at["x"], at["y"], at["z"]]
    full = (quadratic_row.Q + sp.tril(quadratic_row.Q, -1).T).toarray()[np.ix_(order, order)]
    assert full.tolist() == [[2, 2, 0], [2, -1, 0], [0, 0, 0]]
    assert quadratic_row.a.toarray()[0][order].tolist() == [0, 0, 3]
    assert (quadratic_row.lower, quadratic_row.upper) == (-np.inf, 4)
    assert [str(con.name) for con in c.rows] == ["s"]
    assert c.lb[order].tolist() == [-np.inf, 0, 0]


def test_a_column_that_stands_in_brackets_alone(tmp_path: Path) -> None:
    (tmp_path / "a.lp").write_text("min\no: z\nst\nr: z - [ u ^ 2 + u * v ] >= 3\nend\n")
    c = compile_model(read(tmp_path / "a.lp"))
    assert sorted(column.name for column in c.columns) == ["u", "v", "z"]
    assert c.lb.tolist() == [0, 0, 0]
    assert [str(con.name) for con in c.rows] == []


@pytest.mark.parametrize(
    ("suffix", "old", "new", "message"),
    [
        (".lp", "+1 y^2\n]", "+1 y^3\n]", "terms such as"),
        (".lp", "+1 y^2\n]", "+1 y\n]", "terms such as"),
        (".lp", "+1 y^2\n]", "+1 y^2 * z\n]", "terms such as"),
        (".lp", "+1 y^2\n]", "+1 y^2 < z\n]", "products of columns"),
        (".lp", "+1 y^2\n]", "+1 y^2\n] / 2", "no division"),
        (".lp", "+1 y^2\n]", "+1 y^2\n", "not one"),
        (".mps", "QCMATRIX    c_u_alone_", "QCMATRIX", "name of a row"),
        (".mps", "QCMATRIX    c_u_alone_", "QCMATRIX nowhere", "no row 'nowhere'"),
        (".mps", "     y y 1\n", "     y y\n", "two columns and a number"),
        (".mps", "     y y 1\n", "     y nowhere 1\n", "no column 'nowhere'"),
        (".mps", "     y y 1\n", "     y y one\n", "two columns and a number"),
    ],
)
def test_products_that_are_none_are_refused(tmp_path: Path, suffix: str, old: str, new: str, message: str) -> None:
    path = tmp_path / f"m{suffix}"
    write(quadratic("c"), path)
    text = path.read_text(encoding="ascii")
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UnreadableFileError, match=message) as caught:
        read(path)
    assert path.name in str(caught.value)


# -- cones in files that know none -------------------------------------------------------------------------------------
def conic(*, maximise: bool = False) -> Any:
    """Second-order cones of every shape that a quadratic row needs help with: affine, constant, negative, doubled."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(-3, 3))
    m.t, m.s, m.n = pyo.Var(bounds=(0, None)), pyo.Var(), pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.f = pyo.Var(initialize=0.5)
    m.f.fix()
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[1] - 2.5, m.x[2] + m.n - 0.3, m.f]) >= 0)
    m.r = pyo.Constraint([1, 2], rule=lambda m, i: rotated_soc(m.t, m.f, [m.x[i] * 2 - m.n, m.x[i]]) >= 0)
    m.negative = pyo.Constraint(expr=soc(m.s, [m.x[1], m.s * 0.1, m.s]) >= -0.0)
    m.same = pyo.Constraint(expr=rotated_soc(m.t, m.t, [m.x[1], m.x[1]]) >= 0)
    m.constants = pyo.Constraint(expr=soc(5, [3, 4]) >= 0)
    m.head = pyo.Constraint(expr=soc(m.t, []) >= 0)
    m.itself = pyo.Constraint(expr=soc(m.t, [m.t]) >= 0)
    m.nothing = pyo.Constraint(expr=soc(m.t, [0.0 * m.x[1], -0.0, m.f * m.x[2]]) >= 0)
    m.deep = pyo.Expression(expr=soc(3, [m.x[1], m.x[2]]))
    m.b = pyo.Block()
    m.b.near = pyo.Constraint(expr=m.deep >= 0)
    m.sum = pyo.Constraint(expr=m.x[1] + m.x[2] + m.n >= 3.1)
    cost = m.t + m.x[2] / 7 + m.n / 5 + m.s
    m.cost = pyo.Objective(expr=-cost if maximise else cost, sense=pyo.maximize if maximise else pyo.minimize)
    return m


@pytest.mark.long(every=2)
@pytest.mark.parametrize("maximise", [False, True])
@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_second_order_cones_are_quadratic_rows(tmp_path: Path, suffix: str, maximise: bool) -> None:
    m, path = conic(maximise=maximise), tmp_path / f"m{suffix}"
    before = [(c.name, c.active) for c in m.component_data_objects(pyo.Constraint)]
    write(m, path)
    assert [(c.name, c.active) for c in m.component_data_objects(pyo.Constraint)] == before
    assert [b.name for b in m.component_objects(pyo.Block)] == ["b"]
    m.negative.deactivate()  # its head stands in the cone itself: by hand |x1| <= s * sqrt(1 - 1 - 0.01), so x1 = s = 0
    m.by_hand = pyo.Constraint(expr=m.s == 0)
    m.by_hand_too = pyo.Constraint(expr=m.x[1] == 0)
    expected = solve(m, "scip")
    assert expected.status == "optimal"
    for reader in ("gurobi", "scip"):
        assert READERS[reader](path) == pytest.approx(expected.objective, rel=2e-4)
    back = read(path)
    assert compile_model(back).problem_class == "MISOCP"  # the rows are known for the cones that they are
    assert solve(back, "scip").objective == pytest.approx(expected.objective, rel=2e-4)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_names_of_restated_cones_trace_back_to_them(tmp_path: Path, suffix: str) -> None:
    write(conic(), tmp_path / f"m{suffix}")
    names = json.loads((tmp_path / f"m{suffix}.names.json").read_text(encoding="utf-8"))
    assert names["c_u_r(1)_"]["component"] == names["r_entry(1_2)"]["component"] == "r[1]"
    assert names["c_e_r_entry_is(1_2)_"]["component"] == "r[1]"
    assert {entry["component"] for entry in names.values()} <= {
        member.name
        for kind in (pyo.Var, pyo.Constraint, pyo.Objective)
        for member in conic().component_data_objects(kind)
    }
    text = (tmp_path / f"m{suffix}").read_text(encoding="ascii")
    write(conic(), tmp_path / f"m{suffix}")
    assert (tmp_path / f"m{suffix}").read_text(encoding="ascii") == text


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_other_cones_are_refused_and_nothing_is_written(tmp_path: Path, suffix: str) -> None:
    for margin, then in (
        (lambda m: psd([[m.t, 1], [1, m.s]]), r"'bad' is a cone of the semidefinite kind. Write the model as .cbf"),
        (lambda m: exponential(m.t, 1, m.s), r"'bad' is a cone of the exponential kind. Write the model as .cbf"),
        (lambda m: soc(m.t, [m.s]) - 1, "'bad' has its margin inside"),
        (lambda m: soc(m.t, [m.s * m.s]), "'bad'"),
    ):
        m = conic()
        m.bad = pyo.Constraint(expr=margin(m) >= 0)
        with pytest.raises(UnsupportedProblemError, match=then):
            write(m, tmp_path / f"m{suffix}")
        assert list(tmp_path.iterdir()) == []
        assert m.near.active
        assert m.component("cones") is None
    m = conic()
    m.bad = pyo.Constraint(expr=soc(m.t, [m.s]) >= 1)
    with pytest.raises(UnsupportedProblemError, match="'bad' has other bounds"):
        write(m, tmp_path / f"m{suffix}")


# -- the battery, through every kind of file ---------------------------------------------------------------------------
STATED = [
    (name, suffix)
    for name, case in MODELS.items()
    for suffix in (".lp", ".mps", ".cbf", ".ptf")
    if case.kind not in ({"nonconvex QCQP"} if suffix in {".cbf", ".ptf"} else {"SDP", "EXP", "MISDP", "MIEXP"})
    and case.kind not in {"nonconvex exponential program", "nonconvex conic program"}
]


def built(name: str) -> Any:
    case = MODELS[name]
    m, compiled = case.compile()
    if case.data:
        for var in m.x0.values():
            var.fix(float(compiled.lb[compiled.index[var]]))
    return m


@pytest.mark.long(every=10)
@pytest.mark.parametrize(("name", "suffix"), STATED)
def test_every_model_of_the_battery_comes_back_from_its_file(tmp_path: Path, name: str, suffix: str) -> None:
    """Array by array where the file states the model as it is, else by its optimum."""
    if suffix == ".ptf":
        pytest.importorskip("mosek")
    m, case, path = built(name), MODELS[name], tmp_path / f"m{suffix}"
    compiled = compile_model(m)
    if suffix == ".ptf" and compiled.contradiction is not None:
        with pytest.raises(UnsupportedProblemError, match="cannot hold. Write it as .cbf"):
            write(m, path)
        return
    write(m, path)
    back = read(path)
    is_restated = suffix in {".lp", ".mps"} and compiled.cones
    if compiled.contradiction is not None or is_restated or not compiled.columns:
        result = solve(back)
        assert result.status == case.status
        assert case.optimum is None or result.objective == pytest.approx(case.optimum, rel=2e-6, abs=2e-6)
        return
    table = json.loads(Path(f"{path}.names.json").read_text(encoding="utf-8"))
    objective = next((part.name for part in m.component_data_objects(pyo.Objective, active=True)), "")
    whole = compiled if suffix in {".lp", ".mps"} else without_quadratics(compiled)
    tolerance = {".lp": 0.0, ".mps": 3e-16, ".cbf": 0.0, ".ptf": 3e-16}[suffix]
    assert_same(arrays_of(whole, objective), arrays_of(compile_model(back), objective, table), rtol=tolerance)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_names_that_begin_like_infinity_are_read_back(tmp_path: Path, suffix: str) -> None:
    """HiGHS's LP reader takes "inflow" for a number, and a Var without a name for nothing."""
    m = pyo.ConcreteModel()
    names = ["inflow", "Information", "nano", "nanny", "infections"]
    for k, name in enumerate(names):
        m.add_component(name, pyo.Var(bounds=(k, 9)))
    m.v = pyo.Var(["inf", "nan", ""], bounds=(1, 9))
    m.total = pyo.Constraint(expr=sum(m.component(name) for name in names) >= 20)
    m.cost = pyo.Objective(expr=sum(m.component(name) for name in names) + sum(m.v.values()))
    write(m, tmp_path / f"m{suffix}")
    again = read(tmp_path / f"m{suffix}")
    assert solve(again).objective == pytest.approx(23)
    assert len(list(again.component_data_objects(pyo.Var))) == 8


# ---- long names --------------------------------------------------------------------------------------------------
def read_by(solver: str, path: Path) -> float:
    """Return the optimum that a solver finds of a file by its own reader."""
    if solver == "highs":
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        assert highs.readModel(str(path)) == highspy.HighsStatus.kOk, path
        highs.run()
        return float(highs.getInfo().objective_function_value)
    skip_without(solver)
    if solver == "gurobi":
        import gurobipy

        with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(str(path), env) as m:
            m.optimize()
            return float(m.ObjVal)
    import pyscipopt

    m = pyscipopt.Model()
    m.hideOutput()
    m.readProblem(str(path))
    m.optimize()
    return float(m.getObjVal())


@pytest.mark.parametrize("quadratic", ["", "row", "objective"])
@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
def test_every_reader_takes_long_names_of_every_kind(solver: str, suffix: str, quadratic: str, tmp_path: Path) -> None:
    """A .cbf has no names but in comments, which only ceopt reads: the test below reads it."""
    if solver == "highs" and quadratic:
        return  # it takes no squares beside whole numbers
    path = tmp_path / f"model{suffix}"
    optimum = solve(long_named(9, "every", quadratic), "scip" if quadratic else "highs").objective
    for kind in ["every"] if quadratic else [*KINDS, "objective", "every"]:
        for length in LENGTHS if kind == "every" else [250, 255]:
            write(long_named(length, kind, quadratic), path)
            assert read_by(solver, path) == pytest.approx(optimum, abs=1e-5), (kind, length)


@pytest.mark.parametrize("suffix", [".lp", ".mps", ".cbf"])
@pytest.mark.parametrize("length", [239, 240, 241, 250, 255, 300])
def test_long_names_lead_back_to_their_components(length: int, suffix: str, tmp_path: Path) -> None:
    """Also of two that differ in their last letter, where names are cut."""
    m = long_named(length, "every", "row")
    twin = pyo.Var(bounds=(1, 2))
    m.add_component("x" + "z" * (length - 2) + "y", twin)
    both = twin + m.component("x" + "z" * (length - 1))
    m.add_component("r" + "z" * (length - 2) + "y", pyo.Constraint(expr=both >= 1))
    write(m, tmp_path / f"model{suffix}")
    names = json.loads((tmp_path / f"model{suffix}.names.json").read_text(encoding="utf-8"))
    assert max(map(len, names)) <= 245
    stands = set(re.split(r"[\s:]+", (tmp_path / f"model{suffix}").read_text(encoding="utf-8")))
    assert names.keys() <= stands
    led = {entry["component"] for entry in names.values()}
    wanted = {c.name for c in m.component_data_objects((pyo.Var, pyo.Constraint), active=True)}
    assert wanted <= led
    back = read(tmp_path / f"model{suffix}")
    expected = solve(m, "scip").objective
    assert solve(back, "scip").objective == pytest.approx(expected, abs=1e-5)
