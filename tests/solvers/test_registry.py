"""The table of solvers: what it says of each, whom it chooses, how it refuses, and how it grows."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyomo.environ as pyo
import pytest
from battery import MODELS
from rich.console import Console
from sources import ROOT

from ceopt.cli import output as cli_output
from ceopt.solvers import ProblemClass, Status, available, registry, solve
from ceopt.solvers.cones import psd
from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    MissingLibraryError,
    MissingLicenceError,
    UnknownNameError,
    UnsupportedProblemError,
)
from ceopt.solvers.registry import SOLVERS, Licence, Solver, choose, register, unregister

#: The solvers that sentences here name; one that joins later is no part of these worlds.
NAMED = {"highs", "clarabel", "scip", "gurobi", "scs", "mosek"}
NOBODY = {ProblemClass.MISDP, ProblemClass.NONCONVEX_CONIC}
#: Whom "auto" chooses where everything is installed and licensed.
FIRST = {
    "LP": "highs", "MILP": "highs", "QP": "highs", "MIQP": "highs", "SOCP": "clarabel", "MISOCP": "scip",
    "SDP": "clarabel", "EXP": "clarabel", "nonconvex QCQP": "scip", "MIEXP": "mosek",
    "nonconvex exponential program": "scip",
}  # fmt: skip


def program(kind: str) -> Any:
    """A compiled program as far as a choice looks at it."""
    return SimpleNamespace(problem_class=ProblemClass(kind))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Say what is installed, and what Gurobi's and MOSEK's licences allow; by default everything."""

    def be(installed: str | None = None, **licences: Licence) -> None:
        if installed is None:
            installed = " ".join(SOLVERS)
        else:
            for name in registry._OWN - NAMED:
                registry._SOLVERS.pop(name, None)
        there = {SOLVERS[name].library for name in installed.split()}
        monkeypatch.setattr(registry.importlib.util, "find_spec", lambda name: name if name in there else None)
        for name in ("gurobi", "mosek"):
            found = licences.get(name, Licence())
            monkeypatch.setitem(SOLVERS, name, replace(SOLVERS[name], licence=lambda found=found: found))

    known = dict(SOLVERS)
    be()
    yield be
    registered = {name: solver for name, solver in SOLVERS.items() if name not in registry._OWN}
    registry._SOLVERS.clear()
    registry._SOLVERS.update({name: known[name] for name in known if name in registry._OWN} | registered)


def test_the_first_that_can_is_chosen(world):
    assert set(FIRST) | NOBODY == set(ProblemClass)
    assert {kind: choose("auto", program(kind)).name for kind in FIRST} == FIRST


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ("highs clarabel", {"LP": "highs", "MIQP": "highs", "SOCP": "clarabel", "MISOCP": "highs", "EXP": "clarabel"}),
        ("gurobi scs mosek", {"LP": "gurobi", "QP": "gurobi", "SOCP": "gurobi", "SDP": "scs", "MISOCP": "gurobi"}),
        ("mosek", {"LP": "mosek", "MIQP": "mosek", "SDP": "mosek", "MIEXP": "mosek"}),
        ("highs", {"SOCP": "highs", "MISOCP": "highs"}),
        ("scip", {"LP": "scip", "SOCP": "scip", "nonconvex QCQP": "scip"}),
        ("highs gurobi", {"MIQP": "highs", "nonconvex QCQP": "gurobi", "SOCP": "gurobi"}),
    ],
)
def test_what_is_missing_is_passed_over(world, installed, expected):
    """Who takes cones and products itself goes before HiGHS, which gets them as cuts; squares it gets first."""
    world(installed)
    assert {kind: choose("auto", program(kind)).name for kind in expected} == expected


def test_a_licence_that_is_missing_or_too_small_is_passed_over(world):
    small = Licence(limits="10 rows", refusal=lambda _compiled: "Gurobi's free licence takes 10 rows.")
    world("gurobi scip mosek", gurobi=small, mosek=Licence(why_not="MOSEK finds no licence file."))
    assert choose("auto", program("LP")).name == "scip"
    world("gurobi highs", gurobi=small)
    assert choose("auto", program("MIQP")).name == "highs"


@pytest.mark.parametrize(
    ("name", "kind", "installed", "error", "sentence"),
    [
        ("highs", "SDP", "highs clarabel scs", UnsupportedProblemError,
         ("Solver 'highs' needs a model of class LP, MILP, QP, MIQP, SOCP, MISOCP, but this one is SDP. "
         "Use solver 'clarabel' or 'scs', or 'auto'.")),
        ("clarabel", "MILP", "clarabel", UnsupportedProblemError,
         ("Solver 'clarabel' needs a model of class LP, QP, SOCP, SDP, EXP, but this one is MILP. "
         "Solvers for MILP are highs, scip, gurobi, mosek: highspy is not installed: pip install highspy.")),
        ("auto", "MISDP", "highs scip", UnsupportedProblemError,
         ("solve needs a model of class LP, MILP, QP, MIQP, SOCP, MISOCP, SDP, EXP, nonconvex QCQP, MIEXP, "
          "nonconvex exponential program, but this one is MISDP. No solver here takes integers beside semidefinite "
          "cones: enumerate the integers, or relax them.")),
        ("scip", "LP", "highs", MissingLibraryError,
         ("solve needs a solver that is installed, but pyscipopt is not installed: pip install ceopt[scip]. "
         "Use solver 'highs', or 'auto'.")),
        ("auto", "nonconvex QCQP", "highs clarabel", MissingLibraryError,
         ("solve needs a solver that is installed, but pyscipopt is not installed: pip install ceopt[scip]. "
         "Solvers for nonconvex QCQP are gurobi: gurobipy is not installed: pip install ceopt[gurobi].")),
        ("auto", "MIEXP", "highs", MissingLibraryError,
         ("solve needs a solver that is installed, but mosek is not installed: pip install ceopt[mosek]. "
         "Enumerate the integers, or replace the exponential by pieces.")),
    ],
)  # fmt: skip
def test_a_refusal_is_a_sentence_that_names_who_could(world, name, kind, installed, error, sentence):
    world(installed)
    with pytest.raises(error) as refused:
        choose(name, program(kind))
    assert str(refused.value) == sentence


def test_licences_are_refused_with_their_reason(world):
    small = Licence(limits="10 rows", refusal=lambda _compiled: "the model has 12 rows and the free licence takes 10.")
    world("gurobi mosek highs", gurobi=small, mosek=Licence(why_not="MOSEK finds no licence file."))
    with pytest.raises(MissingLicenceError) as refused:
        choose("gurobi", program("LP"))
    assert str(refused.value) == (
        "solve needs a licence for 'gurobi' that takes this model, but the model has 12 rows and the free licence "
        "takes 10. Use solver 'highs', or 'auto'."
    )
    with pytest.raises(MissingLicenceError, match="MOSEK finds no licence file. Use solver 'highs', or 'auto'."):
        choose("mosek", program("MILP"))
    with pytest.raises(UnsupportedProblemError, match="Solvers for EXP are clarabel, scs, mosek: clarabel is not inst"):
        choose("highs", program("EXP"))


@pytest.mark.parametrize("name", ["cplex", "HIGHS", "", None])
def test_an_unknown_solver_is_refused(name):
    with pytest.raises(UnknownNameError, match="Choose from: auto, highs, clarabel, scip"):
        choose(name, program("LP"))


def test_real_programs_find_their_solvers():
    """The class is read from the arrays, whoever is installed."""
    for case in MODELS.values():
        compiled = case.compile()[1]
        try:
            chosen = choose("auto", compiled)
        except CeoptError:
            assert not any(s.is_licensed and case.kind in s.classes for s in SOLVERS.values())
        else:
            assert case.kind in chosen.classes


# ---- what people see -------------------------------------------------------------------------------------------------
def test_the_table_says_what_is_missing(world):
    world("highs gurobi mosek", gurobi=Licence(limits="10 rows"), mosek=Licence(why_not="There is no licence file."))
    frame = available().set_index("solver")
    assert list(frame.index) == list(SOLVERS)
    assert frame["installed"].tolist() == [name in {"highs", "gurobi", "mosek"} for name in SOLVERS]
    assert frame["licensed"].tolist() == [name in {"highs", "gurobi"} for name in SOLVERS]
    assert frame.loc["highs", "supports"] == "LP, MILP, QP, MIQP, SOCP, MISOCP"
    assert frame.loc["highs", "by_cuts"] == "MIQP, SOCP, MISOCP"
    assert frame.loc["gurobi", "limits"] == "10 rows"
    assert frame.loc["mosek", "why_not"] == "There is no licence file."
    assert frame.loc["scs", "why_not"] == "scs is not installed: pip install ceopt[scs]."
    assert frame.loc["clarabel", "why_not"] == "clarabel is not installed: pip install clarabel."
    assert frame.index[frame["certificate"]].tolist() == ["clarabel", "scs"]
    assert frame.index[frame["nonconvex"]].tolist() == ["scip", "gurobi"]


def printed(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of ``ceopt solvers`` on a terminal of 80 columns."""
    out = io.StringIO()
    monkeypatch.setattr(cli_output, "Console", lambda: Console(file=out, width=80))
    cli_output.print_solvers(frame)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_the_command_prints_one_line_per_solver(world, monkeypatch):
    world("highs gurobi mosek", gurobi=Licence(limits="10 rows"), mosek=Licence(why_not="There is no licence file."))
    frame = available()
    frame["version"] = "1.2"
    lines = printed(frame, monkeypatch)
    for name in SOLVERS:
        assert sum(line.startswith(f"{name} ") for line in lines) == 1
    assert "highs 1.2 LP MILP QP MIQP SOCP MISOCP" in lines
    assert "scip - LP MILP QP MIQP SOCP MISOCP nonconvex" in lines
    assert "gurobi: licence for 10 rows." in lines
    assert "mosek: There is no licence file." in lines
    assert "scs: scs is not installed: pip install ceopt[scs]." in lines
    assert "Can be used here: highs, gurobi. Without a name, the first that solves the program does." in lines
    world("")
    assert "Can be used here: none." in printed(available(), monkeypatch)[-1]


# ---- how it grows ----------------------------------------------------------------------------------------------------
@pytest.fixture
def mine() -> Iterator[Solver]:
    """A solver of one's own: HiGHS under another name."""
    solver = replace(SOLVERS["highs"], name="mine", supports=frozenset({ProblemClass.LP}), by_cuts=frozenset())
    register(solver)
    yield solver
    if "mine" in SOLVERS:
        unregister("mine")


def test_a_registered_solver_is_one_like_the_others(mine, world):
    model = MODELS["glass"].build()
    world("highs")
    result = solve(model, "mine")
    assert (result.solver, result.objective) == ("mine", 36.0)
    assert available()["solver"].tolist()[-1] == "mine"
    assert choose("auto", program("LP")).name == "highs"
    with pytest.raises(UnsupportedProblemError, match="Solver 'mine' needs a model of class LP, but this one is QP"):
        choose("mine", program("QP"))
    unregister("mine")
    with pytest.raises(UnknownNameError, match="'mine'"):
        choose("mine", program("LP"))


def test_a_bad_registration_is_refused(mine):
    before = dict(SOLVERS)
    for name in ("mine", "highs", "auto", ""):
        with pytest.raises(InvalidValueError, match="a new name, but name is"):
            register(replace(mine, name=name))
    with pytest.raises(InvalidValueError, match=r"'other' supports none. Choose from: LP, MILP"):
        register(replace(mine, name="other", supports=frozenset()))
    with pytest.raises(InvalidValueError, match=r"'other' supports \['linear'\]"):
        register(replace(mine, name="other", supports=frozenset({"linear"})))
    with pytest.raises(InvalidTypeError, match="a Solver, but it got 'highs'"):
        register("highs")
    for name in ("highs", "other"):
        with pytest.raises(UnknownNameError, match=f"registered solver is '{name}'. Choose from: mine."):
            unregister(name)
    assert before == SOLVERS


def test_the_page_counts_the_models_of_the_battery():
    page = (ROOT / "docs" / "how_to" / "adding_a_solver.md").read_text(encoding="utf-8")
    assert f"checks on {len(MODELS)} models`" in page


@pytest.mark.long
def test_the_battery_takes_a_registered_solver_as_it_is(tmp_path):
    """The first two blocks of docs/how_to/adding_a_solver.md, loaded as a plugin of pytest."""
    page = (ROOT / "docs" / "how_to" / "adding_a_solver.md").read_text(encoding="utf-8")
    session, entry = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[:2]
    (tmp_path / "scipy_session.py").write_text(session + entry, encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-q", "--long", "-p", "no:cacheprovider", "-p", "scipy_session"]
    done = subprocess.run(
        [*command, "tests/solvers/test_battery.py", "-k", "scipy and (the_answer_twice or refused)"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    claimed = [case for case in MODELS.values() if case.kind in {ProblemClass.LP, ProblemClass.MILP}]
    assert done.returncode == 0, done.stdout + done.stderr
    solved = sum(case.status is Status.OPTIMAL for case in claimed)
    assert (
        f"scipy: {2 * len(claimed) + solved + len(MODELS) - len(claimed)} checks on {len(MODELS)} models" in done.stdout
    )


def test_a_nonconvex_quadratic_beside_a_semidefinite_cone_is_nobodys() -> None:
    """SCIP was given such a program once, took the quadratic and lost the cone."""
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(0, 3)), pyo.Var(bounds=(0, 3))
    m.cone = pyo.Constraint(expr=psd([[m.x, 1], [1, m.y]]) >= 0)
    m.product = pyo.Constraint(expr=m.x * m.y <= 2)
    m.cost = pyo.Objective(expr=m.x + m.y)
    for solver in ["auto", *registry.SOLVERS]:
        with pytest.raises(UnsupportedProblemError, match=r"nonconvex conic.*(auto|[Rr]estate)"):
            solve(m, solver)


def test_highs_takes_linear_and_quadratic_programs_itself_and_all_others_by_cuts():
    own = {ProblemClass.LP, ProblemClass.MILP, ProblemClass.QP}
    for needed in ProblemClass:
        expected = "HighsSession" if needed in own else "TangentSession"
        assert SOLVERS["highs"].session(needed).__name__ == expected
