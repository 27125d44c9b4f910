"""Files of cones: what is written is what is read back, bit for bit, and has the same optimum."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from comparing import arrays_of, assert_same

from ceopt.solvers import Manifest, compile_model, describe, read, solve, write
from ceopt.solvers.compile.quadratic_cones import without_quadratics
from ceopt.solvers.cones import Cone, exponential, psd, psd_affine, rotated_soc, soc
from ceopt.solvers.errors import (
    MissingLibraryError,
    UnknownNameError,
    UnreadableFileError,
    UnsupportedProblemError,
)


def mixed(*, maximise: bool = False, integers: bool = False) -> Any:
    """Every cone, bounds of every kind, ranges, a constant, odd names, a fixed Var and coefficients of 17 digits."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(["age<=30", "é x", "a,b", "a b"], bounds=(-3, 4.7))
    x = list(m.x.values())
    m.n = pyo.Var(bounds=(-2, 7), domain=pyo.Integers if integers else pyo.Reals)
    m.z = pyo.Var(bounds=(0, 1), domain=pyo.Binary if integers else pyo.Reals)
    m.t, m.free = pyo.Var(bounds=(0, None)), pyo.Var()
    m.low, m.zero, m.at = pyo.Var(bounds=(None, 0)), pyo.Var(bounds=(0, 0)), pyo.Var(bounds=(1.25, 1.25))
    m.box, m.idle, m.f = pyo.Var(bounds=(0, 0.1)), pyo.Var(), pyo.Var(initialize=1 / 7)
    m.f.fix()
    m.b = pyo.Block()
    m.b.near = pyo.Constraint(expr=soc(m.t, [x[0] - 1 / 3, x[1] + m.free * 0.1, x[2]]) >= 0)
    m.near = pyo.Constraint([1, 2], rule=lambda m, i: rotated_soc(m.t, 0.5, [x[i], x[i] * 2 - 1]) >= 0)
    m.e = pyo.Constraint(expr=exponential(x[0] / 3, 1.0, m.t + m.f) >= 0)
    m.p = pyo.Constraint(expr=psd([[m.t, x[1] * 0.3, 1], [x[1] * 0.3, x[3] + 7, 0.5], [1, 0.5, 2]]) >= 0)
    m.range = pyo.Constraint(expr=(-1 / 3, x[0] + 2 * x[1] / 7 - m.n, 9.1))
    m.eq = pyo.Constraint(expr=x[2] + m.low + m.at + m.zero == 0.7)
    m.ge = pyo.Constraint(expr=m.free + m.z + m.box >= -4)
    m.q = pyo.Constraint(expr=x[0] ** 2 + x[1] ** 2 / 3 + x[0] * x[1] / 5 <= 12 + m.free)
    cost = m.t + m.free / 3 + m.n / 9 - m.low + 2.25 + (x[0] ** 2 + x[0] * x[3] / 3 + x[3] ** 2)
    m.cost = pyo.Objective(expr=-cost if maximise else cost, sense=pyo.maximize if maximise else pyo.minimize)
    describe(m.b, Manifest(title="b", formula="", rule="my rule", features={"near": 0}))
    return m


def table(path: Path) -> Any:
    return json.loads(Path(f"{path}.names.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("maximise", [False, True])
@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("suffix", [".cbf", ".ptf"])
def test_the_file_holds_the_compiled_arrays(tmp_path: Path, suffix: str, integers: bool, maximise: bool) -> None:
    if suffix == ".ptf":
        pytest.importorskip("mosek")
    path = tmp_path / f"m{suffix}"
    m = mixed(maximise=maximise, integers=integers)
    if suffix == ".ptf" and integers:
        m.p.deactivate()
    write(m, path)
    ours = arrays_of(without_quadratics(compile_model(m)), "cost")
    theirs = arrays_of(compile_model(read(path)), "cost", table(path))
    # MOSEK's matrices are scaled by sqrt(2) off the diagonal, there and back
    assert_same(ours, theirs, rtol=0 if suffix == ".cbf" else 3e-16)
    assert {kind for kind, *_ in ours.rows.values()} == {"row", *Cone} - (
        {Cone.SEMIDEFINITE} if not m.p.active else set()
    )


@pytest.mark.parametrize("maximise", [False, True])
def test_the_file_has_the_same_optimum(tmp_path: Path, maximise: bool) -> None:
    m = mixed(maximise=maximise)
    write(m, tmp_path / "m.cbf")
    ours, theirs = solve(m, "clarabel"), solve(read(tmp_path / "m.cbf"), "clarabel")
    assert ours.status == theirs.status == "optimal"
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-6)


def test_a_file_of_our_own_read_and_written_again_is_a_fixed_point(tmp_path: Path) -> None:
    paths = [tmp_path / f"{k}.cbf" for k in range(3)]
    write(mixed(integers=True), paths[0])
    for one, other in itertools.pairwise(paths):
        write(read(one), other)
    assert_same(
        arrays_of(compile_model(read(paths[1])), "cost"), arrays_of(compile_model(read(paths[2])), "cost"), rtol=0
    )


@pytest.mark.parametrize("suffix", [".cbf", ".ptf"])
def test_the_same_model_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    if suffix == ".ptf":
        pytest.importorskip("mosek")
    paths = [tmp_path / folder / f"m{suffix}" for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        write(mixed(), path)
    for name in (f"m{suffix}", f"m{suffix}.names.json"):
        assert (paths[0].parent / name).read_bytes() == (paths[1].parent / name).read_bytes()
    text = paths[0].read_text(encoding="ascii")
    assert "np.float" not in text
    assert max(map(len, text.splitlines())) < 512  # MOSEK's reader says "no version specified" of longer lines


def test_names_that_collide_after_sanitising_are_kept_apart(tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(["a,b", "a b", "A_b", "q" * 300, "q" * 299 + "r"], bounds=(0, 3))
    m.b = pyo.Block()
    m.b.x = pyo.Var(bounds=(0, 3))
    m.b_x = pyo.Constraint(expr=m.b.x <= 2)
    m.cost_quadratic = pyo.Var(bounds=(1, 2))
    x = list(m.x.values())
    m.add_component("x(a_b)", pyo.Constraint(expr=soc(m.cost_quadratic, x) >= 0))
    m.cost = pyo.Objective(expr=sum(v**2 for v in x) - m.b.x)
    write(m, tmp_path / "m.cbf")
    names = table(tmp_path / "m.cbf")
    assert len({name.lower() for name in names}) == len(names)
    assert max(map(len, names)) <= 250
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_()]*", name) for name in names)
    components = [entry["component"] for entry in names.values()]
    whole = compile_model(m)
    stated = [*whole.columns, *whole.rows, *(cone.constraint for cone in whole.cones)]
    assert sorted(components) == sorted([*(part.name for part in stated), "cost", "cost", "cost"])
    back = read(tmp_path / "m.cbf")
    read_names = {v.name.replace("'", "") for v in back.component_data_objects(pyo.Var)}
    read_names |= {c.name.replace("'", "") for c in back.component_data_objects(pyo.Constraint)}
    assert read_names | {"cost"} == set(names)


def test_names_trace_back_to_features_and_rules(tmp_path: Path) -> None:
    write(mixed(), tmp_path / "m.cbf")
    names = table(tmp_path / "m.cbf")
    assert names["near"] == {"component": "b.near", "feature": "", "block": "b", "rule": "my rule"}
    assert names["near(1)"]["component"] == "near[1]"
    assert names["x(e_x)"]["component"] == "x[é x]"
    assert names["cost_quadratic"]["component"] == names["cost_cone"]["component"] == "cost"
    assert "idle" not in names
    assert "f" not in names


def test_the_file_is_as_the_format_says(tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.x, m.y, m.z = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(-1, 2.5), domain=pyo.Integers), pyo.Var()
    m.range = pyo.Constraint(expr=(1, m.x + 2 * m.y, 4))
    m.e = pyo.Constraint(expr=exponential(m.x, 2, m.z) >= 0)
    m.p = pyo.Constraint(expr=psd([[m.x, m.y / 2], [m.y / 2, 3]]) >= 0)
    m.cost = pyo.Objective(expr=m.x - m.z + 7, sense=pyo.maximize)
    write(m, tmp_path / "m.cbf")
    text = (tmp_path / "m.cbf").read_text(encoding="ascii")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert " | ".join(lines) == (
        "VER | 2 | OBJSENSE | MAX | VAR | 3 2 | L+ 1 | F 2 | INT | 1 | 1 | PSDCON | 1 | 2 | "
        "CON | 7 5 | L+ 1 | L- 1 | EXP 3 | L+ 1 | L- 1 | OBJACOORD | 2 | 0 1 | 2 -1 | OBJBCOORD | 7 | "
        "ACOORD | 8 | 0 0 1 | 0 1 2 | 1 0 1 | 1 1 2 | 2 2 1 | 4 0 1 | 5 1 1 | 6 1 1 | "
        "BCOORD | 5 | 0 -1 | 1 -4 | 3 2 | 5 1 | 6 -2 | "
        "HCOORD | 2 | 0 0 0 0 1 | 0 1 1 0 0.5 | DCOORD | 1 | 0 1 1 3"
    )
    assert "# VAR 1 y" in text
    assert "# BOUND 5 y" in text
    assert "# PSDCON 0 p" in text


def test_without_exponential_cones_the_first_version_is_enough(tmp_path: Path) -> None:
    m = mixed()
    m.e.deactivate()
    write(m, tmp_path / "m.cbf")
    assert "\nVER\n1\n" in (tmp_path / "m.cbf").read_text(encoding="ascii")


def test_a_program_that_its_constants_contradict_stays_infeasible(tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.x, m.f = pyo.Var(bounds=(0, 1)), pyo.Var(initialize=2)
    m.f.fix()
    m.c = pyo.Constraint(expr=m.f <= 1)
    m.cost = pyo.Objective(expr=m.x)
    write(m, tmp_path / "m.cbf")
    assert solve(read(tmp_path / "m.cbf")).status == solve(m).status == "infeasible"


def test_a_cone_of_constants_is_written(tmp_path: Path) -> None:
    for t, status in ((5, "optimal"), (4.9, "infeasible")):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(bounds=(1, 2))
        m.c = pyo.Constraint(expr=soc(t, [3, 4]) >= 0)
        m.cost = pyo.Objective(expr=m.x)
        write(m, tmp_path / "m.cbf")
        assert solve(read(tmp_path / "m.cbf"), "clarabel").status == status


@pytest.mark.parametrize("suffix", [".cbf", ".ptf"])
def test_negative_zeros_do_no_harm(tmp_path: Path, suffix: str) -> None:
    """MOSEK writes them, and then does not read what it wrote."""
    if suffix == ".ptf":
        pytest.importorskip("mosek")
    m = pyo.ConcreteModel()
    m.x, m.y, m.t = pyo.Var(bounds=(-0.0, 4)), pyo.Var(bounds=(None, -0.0)), pyo.Var()
    m.row = pyo.Constraint(expr=(-0.0, m.x + m.y, 3))
    m.cone = pyo.Constraint(expr=soc(m.t, [0.0, -0.0, m.x * -0.0, m.y - 0.0]) >= 0)
    m.cost = pyo.Objective(expr=m.t - 0.0)
    write(m, tmp_path / f"m{suffix}")
    assert solve(read(tmp_path / f"m{suffix}"), "clarabel").objective == pytest.approx(0, abs=1e-6)


def test_a_model_without_an_objective(tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Var(bounds=(0, 4))
    m.c = pyo.Constraint(expr=psd_affine(np.diag([-2.0, 1.0]), [np.eye(2)], [m.t]) >= 0)
    write(m, tmp_path / "m.cbf")
    result = solve(read(tmp_path / "m.cbf"))
    assert result.status == "optimal"
    assert 2 - 1e-6 <= next(iter(result.solutions[0].values())) <= 4 + 1e-6
    assert set(table(tmp_path / "m.cbf")) == {"t", "c"}


@pytest.mark.parametrize("suffix", [".cbf", ".ptf"])
def test_what_such_a_file_cannot_hold_is_refused(tmp_path: Path, suffix: str) -> None:
    if suffix == ".ptf":
        pytest.importorskip("mosek")
    m = mixed()
    m.bent = pyo.Constraint(expr=m.t**2 + m.free**2 >= 1)
    with pytest.raises(UnsupportedProblemError, match=r"constraint 'bent' is not convex. Write the model as .lp"):
        write(m, tmp_path / f"m{suffix}")
    m.del_component(m.bent)
    m.cost.expr = -m.cost.expr
    with pytest.raises(UnsupportedProblemError, match="objective 'cost' is not convex"):
        write(m, tmp_path / f"m{suffix}")
    m.cost.expr = pyo.exp(m.free)
    with pytest.raises(UnsupportedProblemError, match="cost"):
        write(m, tmp_path / f"m{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_ptf_without_mosek_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mosek", None)
    with pytest.raises(MissingLibraryError, match=r"ceopt\[mosek\]"):
        write(mixed(), tmp_path / "m.ptf")
    (tmp_path / "a.ptf").write_text("Task\n")
    with pytest.raises(MissingLibraryError, match=r"ceopt\[mosek\]"):
        read(tmp_path / "a.ptf")
    with pytest.raises(UnknownNameError, match=r"\.cbf"):
        write(mixed(), tmp_path / "m.sdpa")


# -- files of others ---------------------------------------------------------------------------------------------------
FOREIGN = """# min x0 + trace(X) s.t. x0 >= |(x1, x2)|, x1 = 3, x2 + 2 X10 = 5, X semidefinite, X11 = 1
VER
3

OBJSENSE
MIN
PSDVAR
1
2
VAR
4 2
Q 3
F 1
CON
4 2
L= 3
F 1
OBJFCOORD
2
0 0 0 1
0 1 1 1
OBJACOORD
1
0 1
FCOORD
2
1 0 1 0 1
2 0 1 1 1
ACOORD
4
0 1 1
1 2 1
3 3 1
3 3 1
BCOORD
3
0 -3
1 -5
2 -1
"""


def test_matrix_variables_and_columns_in_cones_of_other_writers(tmp_path: Path) -> None:
    """With x1 = 3 the cost is sqrt(9 + x2^2) + X00 + 1, X00 >= X10^2, X10 = (5 - x2) / 2: minimise over x2."""
    (tmp_path / "a.cbf").write_text(FOREIGN)
    x2 = np.linspace(-10, 10, 2_000_001)
    expected = (np.sqrt(9 + x2**2) + ((5 - x2) / 2) ** 2 + 1).min()
    result = solve(read(tmp_path / "a.cbf"), "clarabel")
    assert result.status == "optimal"
    assert result.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "sections VER, OBJSENSE and VAR"),
        ("hello\n", "line 1 of .* 'hello'"),
        ("min\no: x\nend\n", "'min'"),
        (FOREIGN.replace("VER\n3", "VER\n17"), "version"),
        (FOREIGN.replace("MIN", "DOWN"), "'DOWN'"),
        (FOREIGN.replace("Q 3\nF 1", "POW 3\nF 1"), "cone 'POW'"),
        (FOREIGN.replace("Q 3\nF 1", "EXP* 3\nF 1"), "cone 'EXP\\*'"),
        (FOREIGN.replace("Q 3\nF 1", "EXP 2\nF 2"), "EXP"),
        (FOREIGN.replace("4 2\nQ 3", "5 2\nQ 3"), "5 entries in all"),
        (FOREIGN + "POWCONES\n1 1\n2\n1\n1\n", "section 'POWCONES'"),
        (FOREIGN + "BCOORD\n1\n0 1\n", "'BCOORD' again"),
        (FOREIGN.replace("3 3 1\n3 3 1", "3 9 1\n3 3 1"), "column that exists"),
        (FOREIGN.replace("3 3 1\n3 3 1", "9 3 1\n3 3 1"), "row that exists"),
        (FOREIGN.replace("1 0 1 0 1", "1 4 1 0 1"), "matrix that exists"),
        (FOREIGN.replace("1 0 1 0 1", "1 0 2 0 1"), "side that exists"),
        (FOREIGN.replace("0 -3", "0 nan"), "finite numbers"),
        (FOREIGN.replace("0 -3", "0 -3 1"), "'0 -3 1'"),
        (FOREIGN.replace("0 -3", "-1 -3"), "whole number"),
        (FOREIGN.replace("PSDVAR\n1\n2", "PSDVAR\n1\n0"), "side of 1"),
        (FOREIGN[: FOREIGN.index("2 -1")], "truncated"),
        (FOREIGN[: FOREIGN.index("PSDVAR")], "sections VER, OBJSENSE and VAR"),
        ("\x00\x01", "line 1"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.cbf").write_text(text)
    with pytest.raises(UnreadableFileError, match=message) as caught:
        read(tmp_path / "a.cbf")
    assert "a.cbf" in str(caught.value)


def test_a_truncated_file_of_our_own_is_always_seen(tmp_path: Path) -> None:
    write(mixed(), tmp_path / "m.cbf")
    lines = (tmp_path / "m.cbf").read_text(encoding="ascii").splitlines()
    for count in range(len(lines)):
        (tmp_path / "cut.cbf").write_text("\n".join(lines[:count]) + "\n")
        with pytest.raises(UnreadableFileError, match="cut.cbf"):
            read(tmp_path / "cut.cbf")


def test_comments_never_change_the_program(tmp_path: Path) -> None:
    """Names of rows that were edited by hand, swapped or taken away are names at most."""
    m = mixed()
    write(m, tmp_path / "m.cbf")
    text = (tmp_path / "m.cbf").read_text(encoding="ascii")
    expected = solve(m, "clarabel").objective
    wrong = re.sub(r"# BOUND (\d+) .*", r"# BOUND \1 t", text).replace("# CON 2 eq", "# CON 2 range")
    wrong = re.sub(r"# CON 3 ge", "# BOUND 3 t", wrong)
    for changed in (
        wrong,
        re.sub(r"# (VAR|CON|BOUND|PSDCON|OBJ) .*\n", "", text),
        text.replace("# Written", "# written"),
    ):
        (tmp_path / "n.cbf").write_text(changed)
        assert solve(read(tmp_path / "n.cbf"), "clarabel").objective == pytest.approx(expected, rel=1e-6)
