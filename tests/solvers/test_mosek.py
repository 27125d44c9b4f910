"""MOSEK without a licence: the task is the program, its files have the same optimum, and every answer is read right.

Here MOSEK's optimizer is played: the program is taken out of the task itself, through MOSEK's own functions, solved by
HiGHS or Clarabel, and put back in MOSEK's words. So everything is MOSEK's but the solving.
"""

from __future__ import annotations

import itertools
import json
import math
import pickle
from pathlib import Path
from typing import Any

import clarabel
import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from comparing import arrays_of, assert_same

from ceopt.solvers import Outcome, Status, compile_model, read, solve, write
from ceopt.solvers.cones import exponential, psd, psd_affine, rotated_soc, soc
from ceopt.solvers.errors import (
    InvalidValueError,
    MissingLicenceError,
    UnknownNameError,
    UnreadableFileError,
    UnsupportedProblemError,
)
from ceopt.solvers.mosek import PROBLEM, SOLUTION, TERMINATION, name_of, scaled_rows, status_of
from ceopt.solvers.registry import Licence

mosek = pytest.importorskip("mosek")
adapter = pytest.importorskip("ceopt.solvers.mosek")
MosekSession = adapter.MosekSession
_Task = mosek.Task


# -- models ------------------------------------------------------------------------------------------------------------
def linear(*, maximise: bool = False) -> Any:
    """Ranges, an equality, bounds of every kind, a constant; n is an integer in :func:`whole`."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2, 3], bounds=(-2, 5))
    m.n = pyo.Var(bounds=(-3, 7.5))
    m.free, m.low, m.at = pyo.Var(), pyo.Var(bounds=(None, 0)), pyo.Var(bounds=(1.5, 1.5))
    m.range = pyo.Constraint(expr=(-1, m.x[1] + 2 * m.x[2] - m.n, 6))
    m.eq = pyo.Constraint(expr=m.free + m.x[3] + m.at == 2)
    m.ge = pyo.Constraint(expr=m.low + m.free >= -4)
    m.le = pyo.Constraint(expr=m.x[1] + m.x[3] + m.n <= 8)
    cost = 3 * m.x[1] - m.x[2] / 3 + m.free - 0.5 * m.n - m.low + m.at + 2.5
    m.cost = pyo.Objective(expr=-cost if maximise else cost, sense=pyo.maximize if maximise else pyo.minimize)
    return m


def whole(**options: bool) -> Any:
    m = linear(**options)
    m.n.domain = pyo.Integers
    m.x[2].domain = pyo.Integers
    return m


def conic(**options: bool) -> Any:
    """Every cone beside the rows of :func:`linear`, and quadratics."""
    m = linear(**options)
    sign = -1 if options.get("maximise") else 1
    m.t = pyo.Var(bounds=(0, None))
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[1] - 1, m.x[2] + m.free, m.n]) >= 0)
    m.square = pyo.Constraint(expr=rotated_soc(m.t, 0.5, [m.x[3] - 0.25]) >= 0)
    m.e = pyo.Constraint(expr=exponential(m.x[2], 1.5, m.t + 1) >= 0)
    m.p = pyo.Constraint(expr=psd([[m.t, m.x[1], 0.2], [m.x[1], m.free + 7, m.n / 5], [0.2, m.n / 5, 3 + m.x[3]]]) >= 0)
    m.q = pyo.Constraint(expr=m.x[1] ** 2 + m.x[1] * m.x[2] / 2 + m.x[2] ** 2 <= 20 + m.low)
    m.cost.expr = m.cost.expr + sign * (m.t + m.x[3] ** 2 / 3 + (m.n - 1) ** 2 / 2)
    return m


CONTINUOUS = {
    "lp": linear,
    "lp max": lambda: linear(maximise=True),
    "conic": conic,
    "conic max": lambda: conic(maximise=True),
}
INTEGER = {"milp": whole, "milp max": lambda: whole(maximise=True)}


# -- the player --------------------------------------------------------------------------------------------------------
class Played:
    """A real task whose ``optimize`` is played."""

    licensed = True
    script: tuple[str, str, str] | None = None

    def __init__(self) -> None:
        self._task = _Task()
        self.found: dict[str, Any] = {}
        self.progress: Any = None
        self.runs = 0
        self.start: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def set_Progress(self, function: Any) -> None:  # noqa: N802 - MOSEK's name
        self.progress = function

    def optimize(self) -> Any:
        self.runs += 1
        self.start = self._task.getxx(mosek.soltype.itg) if self._task.solutiondef(mosek.soltype.itg) else None
        if not self.licensed:
            raise mosek.Error(mosek.rescode.err_license_expired, "expired")
        if self.progress(mosek.callbackcode.begin_optimizer):
            return mosek.rescode.trm_user_callback
        is_integer = self._task.getnumintvar() > 0
        self.found = _by_highs(self._task) if is_integer else _by_clarabel(self._task)
        if is_integer and "xx" in self.found and self.progress(mosek.callbackcode.new_int_mio):
            return mosek.rescode.trm_user_callback
        if self.script is None:
            return mosek.rescode.ok
        self.found["solsta"], self.found["prosta"], ended = self.script
        return getattr(mosek.rescode, ended)

    def _has(self, which: Any) -> bool:
        kind = mosek.soltype.itg if self._task.getnumintvar() else mosek.soltype.itr
        return bool(self.found) and which == kind

    def solutiondef(self, which: Any) -> bool:
        return self._has(which) or self._task.solutiondef(which)

    def deletesolution(self, which: Any) -> None:
        if self._has(which):
            self.found = {}
        if self._task.solutiondef(which):
            self._task.deletesolution(which)

    def getsolsta(self, _which: Any) -> Any:
        return getattr(mosek.solsta, self.found["solsta"])

    def getprosta(self, _which: Any) -> Any:
        return getattr(mosek.prosta, self.found["prosta"])

    def getxx(self, which: Any) -> Any:
        return self.found["xx"] if self._has(which) else self._task.getxx(which)

    def getslc(self, _which: Any) -> Any:
        return self.found["slc"]

    def getsuc(self, _which: Any) -> Any:
        return self.found["suc"]

    def getslx(self, _which: Any) -> Any:
        return self.found["slx"]

    def getsux(self, _which: Any) -> Any:
        return self.found["sux"]

    def getaccdotys(self, _which: Any) -> Any:
        return self.found["doty"]

    def getintinf(self, item: Any) -> int:
        assert item == mosek.iinfitem.mio_obj_bound_defined
        return int("bound" in self.found)

    def getdouinf(self, item: Any) -> float:
        assert item == mosek.dinfitem.mio_obj_bound
        return float(self.found["bound"])


def _sides(pairs: list[tuple[Any, float, float]]) -> tuple[Any, Any]:
    key = mosek.boundkey
    low = [b if k in {key.lo, key.ra, key.fx} else -math.inf for k, b, _ in pairs]
    high = [b if k in {key.up, key.ra, key.fx} else math.inf for k, _, b in pairs]
    return np.array(low), np.array(high)


def _arrays(task: Any) -> dict[str, Any]:
    n, m = task.getnumvar(), task.getnumcon()
    i, j, v = task.getatrip()
    lx, ux = _sides([task.getvarbound(k) for k in range(n)])
    lc, uc = _sides([task.getconbound(k) for k in range(m)])
    A = sp.csc_array((np.array(v), (np.array(i, int), np.array(j, int))), shape=(m, n))
    return {"A": A, "lx": lx, "ux": ux, "lc": lc, "uc": uc, "c": np.array(task.getc())}


def _by_highs(task: Any) -> dict[str, Any]:
    p, highs = _arrays(task), highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = p["A"].shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = p["c"], p["lx"], p["ux"]
    lp.row_lower_, lp.row_upper_ = p["lc"], p["uc"]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = p["A"].indptr, p["A"].indices, p["A"].data
    kinds = [task.getvartype(k) == mosek.variabletype.type_int for k in range(lp.num_col_)]
    lp.integrality_ = [highspy.HighsVarType.kInteger if k else highspy.HighsVarType.kContinuous for k in kinds]
    maximise = task.getobjsense() == mosek.objsense.maximize
    lp.sense_ = highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
    highs.passModel(lp)
    highs.run()
    status = highs.getModelStatus().name
    if status == "kInfeasible":
        return {"solsta": "unknown", "prosta": "prim_infeas", "xx": [0.0] * lp.num_col_}
    if status != "kOptimal":
        return {"solsta": "unknown", "prosta": "prim_infeas_or_unbounded", "xx": [0.0] * lp.num_col_}
    xx = list(highs.getSolution().col_value)
    bound = highs.getInfo().mip_dual_bound + task.getcfix()
    return {"solsta": "integer_optimal", "prosta": "prim_feas", "xx": xx, "bound": bound}


def _by_clarabel(task: Any) -> dict[str, Any]:
    """Solve ``min c'x``, ``lc <= Ax <= uc``, ``lx <= x <= ux``, ``Fx + g`` in cones; duals as in MOSEK's manual."""
    p = _arrays(task)
    n, sign = p["c"].size, 1.0 if task.getobjsense() == mosek.objsense.minimize else -1.0
    eye = sp.eye_array(n, format="csr")
    A = p["A"].tocsr()
    parts = {
        "slc": (-A, -p["lc"]),
        "suc": (A, p["uc"]),
        "slx": (-eye, -p["lx"]),
        "sux": (eye, p["ux"]),
    }
    kept = {name: np.flatnonzero(np.isfinite(side)) for name, (_, side) in parts.items()}
    blocks = [parts[name][0][rows] for name, rows in kept.items()]
    b = [parts[name][1][rows] for name, rows in kept.items()]
    cones: list[Any] = [clarabel.NonnegativeConeT(sum(rows.size for rows in kept.values()))]
    i, j, v = task.getaccftrip()
    F = sp.csr_array((np.array(v), (np.array(i, int), np.array(j, int))), shape=(task.getaccntot(), n))
    g, first, orders = np.array(task.getaccgvector()), 0, []
    half = math.sqrt(0.5)
    for k in range(task.getnumacc()):
        size, domain = task.getaccn(k), task.getdomaintype(task.getaccdomain(k))
        turn = np.eye(size)
        if domain == mosek.domaintype.quadratic_cone:
            cones.append(clarabel.SecondOrderConeT(size))
        elif domain == mosek.domaintype.rquadratic_cone:
            turn[:2, :2] = [[half, half], [half, -half]]
            cones.append(clarabel.SecondOrderConeT(size))
        elif domain == mosek.domaintype.svec_psd_cone:
            side = int((math.sqrt(8 * size + 1) - 1) / 2)
            theirs = [(r, c) for c in range(side) for r in range(c, side)]
            turn = np.array(
                [[float(theirs[q] == (c, r)) for q in range(size)] for c in range(side) for r in range(c + 1)]
            )
            cones.append(clarabel.PSDTriangleConeT(side))
        else:
            assert domain == mosek.domaintype.primal_exp_cone
            turn = np.eye(3)[::-1]
            cones.append(clarabel.ExponentialConeT())
        part = slice(first, first + size)
        blocks.append(sp.csr_array(-turn @ F[part].toarray()))
        b.append(turn @ g[part])
        orders.append((part, turn))
        first += size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    whole_A, whole_b = sp.csc_array(sp.vstack(blocks)), np.concatenate(b)
    solver = clarabel.DefaultSolver(sp.csc_array((n, n)), sign * p["c"], whole_A, whole_b, cones, settings)
    solution = solver.solve()
    status, z = str(solution.status), sign * np.array(solution.z)
    found: dict[str, Any] = {"xx": list(solution.x)}
    at = 0
    for name, rows in kept.items():
        dual = np.zeros(parts[name][1].size)
        dual[rows] = z[at : at + rows.size]
        at += rows.size
        found[name] = dual.tolist()
    doty = np.zeros(first)
    for part, turn in orders:
        doty[part] = turn.T @ z[at + part.start : at + part.stop]
    found["doty"] = doty.tolist()
    words = {
        "Solved": ("optimal", "prim_and_dual_feas"),
        "PrimalInfeasible": ("prim_infeas_cer", "prim_infeas"),
        "DualInfeasible": ("dual_infeas_cer", "dual_infeas"),
    }
    found["solsta"], found["prosta"] = words.get(status, ("unknown", "unknown"))
    return found


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> type[Played]:
    """A MOSEK with a licence."""

    class Fresh(Played):
        pass

    monkeypatch.setattr(mosek, "Task", Fresh)
    monkeypatch.setattr(adapter, "licence", Licence)
    return Fresh


def run(model: Any, **options: Any) -> Outcome:
    return MosekSession(compile_model(model)).solve(**options)


# -- the task is the program -------------------------------------------------------------------------------------------
@pytest.mark.long(every=5)
@pytest.mark.parametrize("kind", [*CONTINUOUS, *INTEGER])
@pytest.mark.parametrize("suffix", [".cbf", ".ptf", ".task", ".jtask"])
def test_a_file_of_the_task_has_the_same_optimum(tmp_path: Path, kind: str, suffix: str) -> None:
    """Written by MOSEK from our task; its binary and JSON files are read by MOSEK and written as CBF."""
    m, path = (CONTINUOUS | INTEGER)[kind](), tmp_path / f"m{suffix}"
    MosekSession(compile_model(m)).write(path)
    if suffix in {".task", ".jtask"}:
        with mosek.Task() as task:
            task.readdata(str(path))
            path = tmp_path / "again.cbf"
            task.writedata(str(path))
    ours, theirs = solve(m), solve(read(path))
    assert ours.status == theirs.status == "optimal"
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-6)


@pytest.mark.parametrize("kind", [*CONTINUOUS, *INTEGER])
def test_mosek_reads_our_cbf_as_the_same_program(tmp_path: Path, kind: str) -> None:
    m = (CONTINUOUS | INTEGER)[kind]()
    write(m, tmp_path / "ours.cbf")
    with mosek.Task() as task:
        task.readdata(str(tmp_path / "ours.cbf"))
        task.writedata(str(tmp_path / "theirs.cbf"))
    ours, theirs = solve(m), solve(read(tmp_path / "theirs.cbf"))
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-6)


def test_cones_in_mosek_s_order_and_scale() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2, 3])
    x = m.x
    m.p = pyo.Constraint(expr=psd([[x[1], x[2], 7], [x[2], x[3], 5], [7, 5, 4]]) >= 0)
    m.e = pyo.Constraint(expr=exponential(x[1], 2, x[3] + 1) >= 0)
    c = compile_model(m)
    root, (at_1, at_2, at_3) = math.sqrt(2), (c.index[x[k]] for k in (1, 2, 3))
    g, F = scaled_rows(c.cones[0])
    np.testing.assert_allclose(g, [0, 0, 7 * root, 0, 5 * root, 4], rtol=1e-15)
    expected = np.zeros((6, 3))
    expected[0, at_1], expected[1, at_2], expected[3, at_3] = 1, root, 1
    np.testing.assert_allclose(F.toarray(), expected, rtol=1e-15)
    g, F = scaled_rows(c.cones[1])
    assert g.tolist() == [1, 2, 0]
    assert F.toarray()[0, at_3] == F.toarray()[2, at_1] == 1
    assert F.nnz == 2


def test_ptf_has_the_names_and_the_ranges(tmp_path: Path) -> None:
    m = conic()
    write(m, tmp_path / "m.ptf")
    text = (tmp_path / "m.ptf").read_text(encoding="utf-8")
    names = json.loads((tmp_path / "m.ptf.names.json").read_text(encoding="utf-8"))
    for name in names:
        assert name in text
    assert {entry["component"] for entry in names.values()} == {
        *(column.name for column in compile_model(m).columns),
        *(con.name for con in m.component_data_objects(pyo.Constraint)),
        "cost",
    }
    assert "[-1;6]" in text


def test_a_session_s_file_has_readable_names(tmp_path: Path) -> None:
    MosekSession(compile_model(conic())).write(tmp_path / "m.ptf")
    back = read(tmp_path / "m.ptf")
    names = {v.name.replace("'", "") for v in back.component_data_objects((pyo.Var, pyo.Constraint))}
    assert {"x(1)", "t", "range", "near", "square", "q", "objective_quadratic", "objective_cone"} <= names


def test_integers_beside_matrices_are_written_too(tmp_path: Path) -> None:
    m = whole()
    m.p = pyo.Constraint(expr=psd_affine(np.eye(2), [np.ones((2, 2))], [m.x[2]]) >= 0)
    with pytest.raises(UnsupportedProblemError, match="class MISDP"):
        MosekSession(compile_model(m))
    write(m, tmp_path / "m.cbf")
    assert_same(
        arrays_of(compile_model(m), "cost"),
        arrays_of(
            compile_model(read(tmp_path / "m.cbf")), "cost", json.loads((tmp_path / "m.cbf.names.json").read_text())
        ),
    )


def test_what_is_no_ptf_file_is_refused_by_name(tmp_path: Path) -> None:
    for text in ("", "hello\n", "min\no: x\nend\n", "Task\n", "Task\nObjective\n  Minimize + x\nVariables\n  x [0;"):
        (tmp_path / "a.ptf").write_text(text)
        with pytest.raises(UnreadableFileError, match="a.ptf"):
            read(tmp_path / "a.ptf")
    (tmp_path / "bar.ptf").write_text(
        "Task\nObjective\n    Minimize + x\nConstraints\n    c [1] + x + <m;X>\nVariables\n    x [0;+inf]\n"
        "    X [PSD(2)]\nSymmetricMatrixes\n    m SYMMAT(2) (0,0,1)\n"
    )
    with pytest.raises((UnsupportedProblemError, UnreadableFileError), match="bar.ptf"):
        read(tmp_path / "bar.ptf")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    session = MosekSession(compile_model(linear()))
    with pytest.raises(UnknownNameError, match=r"\.task"):
        session.write(tmp_path / "m.lp")
    assert session.version.startswith("1")


# -- without a licence -------------------------------------------------------------------------------------------------
def test_without_a_licence_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr(
        adapter, "licence", lambda: Licence(why_not=adapter._why_no_licence("err_missing_license_file"))
    )
    with pytest.raises(MissingLicenceError, match="MOSEK needs a licence to solve, but") as caught:
        MosekSession(compile_model(conic())).solve()
    message = str(caught.value)
    assert ".write('model.task')" in message
    assert "MOSEKLM_LICENSE_FILE" in message
    assert "'clarabel'" in message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message
    assert capfd.readouterr() == ("", "")


def test_the_licence_is_looked_for_once_and_silently(capfd: Any) -> None:
    found = adapter.licence()
    assert found is adapter.licence()
    assert found.why_not == "" or found.why_not.endswith(".")
    assert capfd.readouterr() == ("", "")


def test_every_error_about_licences_is_one() -> None:
    names = {name_of(code) for code in mosek.rescode.members()}
    about = {name for name in names if adapter._is_about_licences(name)}
    assert {"err_license", "err_license_expired", "err_license_feature", "err_missing_license_file"} <= about
    assert {"err_size_license", "err_license_server", "err_platform_not_licensed"} <= about
    assert not any("wrn_" in name for name in about)
    assert adapter._why_no_licence("err_license_expired") == "MOSEK does not accept its licence: license expired."


def test_a_licence_that_fails_at_the_last_moment(played: type[Played]) -> None:
    played.licensed = False
    with pytest.raises(MissingLicenceError, match="license expired"):
        run(linear())


# -- answers -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_optimal_with_a_certificate(played: type[Played], kind: str) -> None:
    m = CONTINUOUS[kind]()
    session = MosekSession(compile_model(m))
    expected = solve(CONTINUOUS[kind](), "clarabel")
    for _ in range(2):
        outcome = session.solve()
        assert outcome.status == "optimal"
        assert outcome.objective == pytest.approx(expected.objective, rel=1e-6)
        assert outcome.bound == pytest.approx(outcome.objective, rel=1e-6)
        assert outcome.certificate is not None
        assert outcome.certificate.worst < 1e-6
        assert outcome.violation < 1e-6
        assert outcome.message == ""
        assert len(outcome.x) == len(compile_model(m).columns)


@pytest.mark.parametrize("part", ["slc", "suc", "slx", "sux", "doty"])
def test_a_dual_solution_that_proves_nothing_is_not_taken_for_one(
    played: type[Played], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = _by_clarabel

    def wrong(task: Any) -> dict[str, Any]:
        found = honest(task)
        k = int(np.argmax(np.abs(found[part])))
        assert abs(found[part][k]) > 1e-3
        found[part][k] *= 1.5
        return found

    monkeypatch.setitem(globals(), "_by_clarabel", wrong)
    outcome = run(tight())
    assert outcome.status == "feasible"
    assert "do not prove" in outcome.message


def tight() -> Any:
    """A program whose dual has a part of every kind: both sides of rows and columns, and a cone."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(5), bounds=(-2, 3))
    m.t = pyo.Var()
    m.least = pyo.Constraint(expr=m.x[0] + m.x[4] >= 1)
    m.most = pyo.Constraint(expr=m.x[1] + m.x[4] <= 1.5)
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[0], m.x[1] - 2]) >= 0)
    m.cost = pyo.Objective(expr=m.t + m.x[0] - m.x[1] + m.x[2] - m.x[3])
    return m


def test_a_point_outside_of_the_rows_is_none(played: type[Played], monkeypatch: pytest.MonkeyPatch) -> None:
    honest = _by_clarabel

    def wrong(task: Any) -> dict[str, Any]:
        found = honest(task)
        found["xx"][0] += 1.0
        return found

    monkeypatch.setitem(globals(), "_by_clarabel", wrong)
    outcome = run(tight())
    assert (outcome.status, outcome.x) == ("error", None)
    assert "does not satisfy" in outcome.message


@pytest.mark.parametrize("kind", INTEGER)
def test_integer_programs_with_bound_and_incumbents(played: type[Played], kind: str) -> None:
    m = INTEGER[kind]()
    met: list[float] = []
    outcome = run(m, on_incumbent=lambda _seconds, objective, _x: met.append(objective))
    expected = solve(INTEGER[kind]())
    assert outcome.status == expected.status == "optimal"
    assert outcome.objective == pytest.approx(expected.objective, rel=1e-6)
    assert outcome.bound == pytest.approx(expected.objective, rel=1e-6)
    assert met == [pytest.approx(expected.objective, rel=1e-6)]
    assert [objective for _, objective, _ in outcome.incumbents] == met


def test_an_exception_in_the_caller_s_function_comes_back(played: type[Played]) -> None:
    def fail(*_arguments: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(whole(), on_incumbent=fail)


def test_the_caller_s_wish_to_stop(played: type[Played]) -> None:
    outcome = run(whole(), should_stop=lambda: True)
    assert (outcome.status, outcome.x) == ("interrupted", None)
    assert "callback" in outcome.message


@pytest.mark.parametrize("make", [linear, whole])
def test_infeasible_and_unbounded(played: type[Played], make: Any) -> None:
    m = make()
    m.no = pyo.Constraint(expr=m.x[1] + m.x[2] >= 11)
    assert run(m).status == "infeasible"
    m = make()
    m.down = pyo.Var(bounds=(None, 3))
    m.keep = pyo.Constraint(expr=m.down + m.x[1] <= 4)
    m.cost.expr = m.cost.expr + m.down
    outcome = run(m)
    assert (outcome.status, outcome.message) == ("unbounded", "MOSEK proved that the program is unbounded.")
    m.no = pyo.Constraint(expr=m.x[1] + m.x[2] >= 11)  # and now there is no point to improve from
    assert run(m).status == "infeasible"


def test_the_objective_is_back_after_an_unbounded_answer(played: type[Played]) -> None:
    m = linear()
    m.down = pyo.Var()
    m.cost.expr = m.cost.expr + m.down
    compiled = compile_model(m)
    session = MosekSession(compiled)
    for _ in range(2):
        assert session.solve().status == "unbounded"
    m.floor = pyo.Constraint(expr=m.down >= -2)
    compiled.append(m.floor)
    outcome = session.solve()
    assert outcome.status == "optimal"
    assert outcome.objective == pytest.approx(solve(m).objective, rel=1e-6)


@pytest.mark.parametrize(
    ("script", "with_point", "without"),
    [
        (("unknown", "unknown", "trm_max_time"), "feasible", "time_limit"),
        (("prim_feas", "prim_feas", "trm_max_time"), "feasible", "error"),
        (("unknown", "unknown", "trm_stall"), "feasible", "error"),
        (("unknown", "unknown", "trm_user_callback"), "interrupted", "interrupted"),
        (("dual_feas", "dual_feas", "trm_max_iterations"), "feasible", "time_limit"),
    ],
)
def test_stops_before_the_end(
    played: type[Played], monkeypatch: pytest.MonkeyPatch, script: Any, with_point: str, without: str
) -> None:
    played.script = script
    outcome = run(tight())
    assert outcome.status == with_point
    assert outcome.x is not None
    assert outcome.message.startswith("MOSEK stopped: ")
    honest = _by_clarabel
    monkeypatch.setitem(globals(), "_by_clarabel", lambda task: {**honest(task), "xx": [9.0] * task.getnumvar()})
    outcome = run(tight())
    assert (outcome.status, outcome.x) == (without, None)


def test_an_error_of_the_optimizer_is_a_status(played: type[Played], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_task: Any) -> Any:
        raise mosek.Error(mosek.rescode.err_space, "out of memory")

    monkeypatch.setitem(globals(), "_by_clarabel", fail)
    outcome = run(linear())
    assert (outcome.status, outcome.x) == ("error", None)
    assert outcome.message == "MOSEK stopped: space."


def test_no_solution_at_all(played: type[Played], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_by_clarabel", lambda _task: {})
    assert run(linear()).status == "error"
    played.script = ("unknown", "unknown", "trm_max_time")
    monkeypatch.setattr(played, "solutiondef", lambda _self, _which: False)
    assert run(linear()).status == "time_limit"


# -- what is asked, and what changes -----------------------------------------------------------------------------------
def _with_data() -> tuple[Any, Any]:
    m = pyo.ConcreteModel()
    m.x0 = pyo.Var([1, 2], initialize=1.0)
    m.x0.fix()
    m.x, m.t = pyo.Var([1, 2], bounds=(0, 4)), pyo.Var()
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[k] - m.x0[k] for k in (1, 2)]) >= 0)
    m.row = pyo.Constraint(expr=m.x[1] + m.x[2] >= 5)
    m.cost = pyo.Objective(expr=m.t)
    return m, compile_model(m, data=[m.x0])


def test_data_and_rows_change_in_a_live_session(played: type[Played]) -> None:
    m, compiled = _with_data()
    session = MosekSession(compiled)
    task = session._task
    assert session.solve().objective == pytest.approx(3 / math.sqrt(2), rel=1e-6)
    compiled.set_data(m.x0, [2.0, 2.5])
    assert session.solve().objective == pytest.approx(0.5 / math.sqrt(2), rel=1e-6)
    assert session._task is task
    compiled.set_data(m.x0, [1.0, 1.0])
    assert session.solve().objective == pytest.approx(3 / math.sqrt(2), rel=1e-6)
    m.more = pyo.Constraint(expr=m.x[1] >= 4)
    compiled.append(m.more)
    assert session.solve().objective == pytest.approx(3, rel=1e-6)


def test_data_that_decide_on_the_side_of_a_cone(played: type[Played]) -> None:
    """x^2 <= s t is a cone for s, t >= 0; s is data and changes."""
    m = pyo.ConcreteModel()
    m.s = pyo.Var(initialize=2.0)
    m.s.fix()
    m.x, m.t = pyo.Var(bounds=(3, None)), pyo.Var(bounds=(0, None))
    m.q = pyo.Constraint(expr=m.x**2 <= m.s * m.t)
    m.cost = pyo.Objective(expr=m.t)
    compiled = compile_model(m, data=[m.s])
    session = MosekSession(compiled)
    assert session.solve().objective == pytest.approx(4.5, rel=1e-6)
    compiled.set_data(m.s, 3.0)
    assert session.solve().objective == pytest.approx(3.0, rel=1e-6)
    compiled.set_data(m.s, -1.0)  # now x = t = 0 alone is left of the row, which is no cone any more
    with pytest.raises(UnsupportedProblemError, match="'q' is not convex"):
        session.solve()


def test_data_without_a_value_can_be_written(tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.x0, m.x = pyo.Var(), pyo.Var(bounds=(0, 4))
    m.x0.fix(skip_validation=True)
    m.row = pyo.Constraint(expr=m.x >= m.x0)
    m.cost = pyo.Objective(expr=m.x)
    compiled = compile_model(m, data=[m.x0])
    session = MosekSession(compiled)
    compiled.set_data(m.x0, 2.5)
    session.write(tmp_path / "m.cbf")
    assert solve(read(tmp_path / "m.cbf")).objective == pytest.approx(2.5)


def test_limits_gap_threads_seed_and_start_reach_the_task(played: type[Played]) -> None:
    compiled = compile_model(whole())
    session = MosekSession(compiled, threads=2, random_state=7, options={"MSK_IPAR_PRESOLVE_USE": "MSK_OFF"})
    task, dparam, iparam = session._task, mosek.dparam, mosek.iparam
    session.solve(time_limit_s=50.0, relative_gap=1e-3, start={0: 1.0, 2: 2.0})
    assert 40 < task.getdouparam(dparam.optimizer_max_time) <= 50
    assert task.getdouparam(dparam.mio_tol_rel_gap) == 1e-3
    assert task.getdouparam(dparam.mio_tol_abs_gap) == 0
    assert task.getintparam(iparam.num_threads) == 2
    assert task.getintparam(iparam.mio_seed) == 7
    assert task.getintparam(iparam.presolve_use) == mosek.presolvemode.off
    assert task.getintparam(iparam.mio_construct_sol) == mosek.onoffkey.on
    start = np.array(task.start)
    assert (start[0], start[2]) == (1.0, 2.0)
    assert np.isnan(np.delete(start, [0, 2])).all()
    session.solve()
    assert task.getdouparam(dparam.optimizer_max_time) == -1
    assert task.start is None  # no start outlives its solve
    assert task.progress is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"MSK_IPAR_LOGG": 1}, UnknownNameError, "Did you mean 'MSK_IPAR_LOG'"),
        ({"mio_tol_rel_gap": 1e-3}, UnknownNameError, "'mio_tol_rel_gap'"),
        ({"MSK_DPAR_MIO_TOL_REL_GAP": 1e-3}, InvalidValueError, "relative_gap="),
        ({"MSK_DPAR_OPTIMIZER_MAX_TIME": 3.0}, InvalidValueError, "time_limit_s="),
        ({"MSK_IPAR_NUM_THREADS": 3}, InvalidValueError, "threads="),
        ({"MSK_IPAR_MIO_SEED": 3}, InvalidValueError, "random_state="),
        ({"MSK_IPAR_LOG": -3}, InvalidValueError, "too small"),
        ({"MSK_IPAR_LOG": 3.0}, InvalidValueError, "MSK_IPAR_LOG is 3.0"),
        ({"MSK_IPAR_LOG": "many"}, InvalidValueError, "MSK_IPAR_LOG is 'many'"),
        ({"MSK_IPAR_PRESOLVE_USE": True}, InvalidValueError, "is True"),
        ({"MSK_DPAR_INTPNT_CO_TOL_REL_GAP": float("nan")}, InvalidValueError, "nan"),
        ({"MSK_SPAR_BAS_SOL_FILE_NAME": 3}, InvalidValueError, "is 3"),
    ],
)
def test_options_that_are_none_are_refused(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MosekSession(compile_model(linear()), options=options)


def test_options_by_their_own_names() -> None:
    options = {
        "MSK_DPAR_INTPNT_CO_TOL_REL_GAP": np.float64(1e-9),
        "MSK_IPAR_OPTIMIZER": "MSK_OPTIMIZER_CONIC",
        "MSK_IPAR_LOG": np.int64(4),
        "MSK_SPAR_BAS_SOL_FILE_NAME": "a.bas",
    }
    task = MosekSession(compile_model(linear()), options=options)._task
    assert task.getdouparam(mosek.dparam.intpnt_co_tol_rel_gap) == 1e-9
    assert task.getintparam(mosek.iparam.optimizer) == mosek.optimizertype.conic
    assert task.getintparam(mosek.iparam.log) == 4


def test_classes_that_mosek_does_not_solve() -> None:
    m = linear()
    m.bent = pyo.Constraint(expr=m.x[1] ** 2 + m.free**2 >= 1)
    with pytest.raises(UnsupportedProblemError, match="nonconvex"):
        MosekSession(compile_model(m))


# -- the table of statuses ---------------------------------------------------------------------------------------------
def test_every_status_of_this_mosek_is_in_the_table() -> None:
    assert {name_of(member) for member in mosek.solsta.members()} == set(SOLUTION)
    assert {name_of(member) for member in mosek.prosta.members()} == set(PROBLEM)
    ends = {name for code in mosek.rescode.members() if (name := name_of(code)).startswith("trm_")}
    assert ends | {"ok"} == set(TERMINATION)


def test_each_combination_has_one_status() -> None:
    """Nothing is optimal without a point; proofs of emptiness and optimality outlive a limit; ill-posed is an error."""
    for solution, problem, termination in itertools.product(SOLUTION, PROBLEM, TERMINATION):
        held = status_of(solution, problem, termination, has_point=True)
        nothing = status_of(solution, problem, termination, has_point=False)
        assert nothing not in {Status.OPTIMAL, Status.FEASIBLE}
        if solution in {"optimal", "integer_optimal"}:
            assert held is Status.OPTIMAL
        elif solution == "prim_infeas_cer":
            assert held is nothing is Status.INFEASIBLE
        elif solution == "dual_infeas_cer":
            assert held is nothing is Status.UNBOUNDED
        elif termination == "trm_user_callback":
            assert held is Status.INTERRUPTED
            assert nothing in {Status.INTERRUPTED, Status.INFEASIBLE, Status.UNBOUNDED}
        elif "illposed" in solution:
            assert held is nothing is Status.ERROR
        elif solution == "unknown" and problem in {"prim_infeas", "prim_and_dual_infeas"}:
            assert nothing is Status.INFEASIBLE
        elif solution == "unknown" and problem in {"dual_infeas", "prim_infeas_or_unbounded"}:
            assert nothing is Status.UNBOUNDED
        elif solution == "unknown" and problem == "unknown" and termination == "trm_max_time":
            assert (held, nothing) == (Status.FEASIBLE, Status.TIME_LIMIT)


def test_a_status_of_a_later_mosek_is_an_error() -> None:
    for names in (("new", "unknown", "ok"), ("unknown", "new", "ok"), ("unknown", "unknown", "new")):
        assert status_of(*names, has_point=False) is Status.ERROR
