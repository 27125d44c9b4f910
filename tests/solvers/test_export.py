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

from ceopt.solvers import Manifest, compile_model, describe, read, solve, write
from ceopt.solvers.errors import UnknownNameError, UnreadableFileError, UnsupportedProblemError
from ceopt.solvers.labels import label_components


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
    with pytest.raises(UnknownNameError, match=r"\.lp, \.mps"):
        write(model(), tmp_path / "m.cbf")
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
