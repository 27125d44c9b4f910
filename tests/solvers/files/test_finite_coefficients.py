"""A coefficient that is nan or infinite is refused by the line on which it stands, in every format that is read."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pyomo.environ as pyo
import pytest

from ceopt.solvers import read
from ceopt.solvers.errors import UnreadableFileError

ODD = ["nan", "NaN", "inf", "-inf", "+inf", "Infinity", "1e400", "-1e999"]

#: Every coefficient is a number of its own, so that a test can put another in its place.
LP = """\\ 2 in a comment
minimize
obj: 2 x + y + 4 + [ 6 x^2 + 8 x * y ] / 2
subject to
r: 3 x + y >= 1
s: 5 x
 + 7 y
 <= 90
q: y + [ 9 x^2 ] <= 40
bounds
 0 <= x <= 11
 -inf <= y <= 12
end
"""
LP_PLACES = {"2 x": 3, "4 +": 3, "6 x": 3, "8 x": 3, "3 x": 5, "5 x": 6, "7 y": 7, "9 x": 9}
MPS = """* 2 in a comment
NAME t
ROWS
 N obj
 G r
 L inf
COLUMNS
 x obj 2 r 3
 x inf 5
 y obj 1 r 1
 y inf 7
RHS
 RHS r 1 inf 90
 RHS obj -4
RANGES
 RNG r 8
BOUNDS
 UP BND x 11
 FR BND y
QUADOBJ
 x x 6
QCMATRIX inf
 x x 9
ENDATA
"""
MPS_PLACES = {"obj 2": 8, "r 3": 8, "inf 5": 9, "inf 7": 11, "obj -4": 14, "x x 6": 21, "x x 9": 23}


CBF = """VER
1

OBJSENSE
MIN

VAR
3 2
F 2
L+ 1

PSDVAR
1
2

CON
4 2
L+ 1
Q 3

PSDCON
1
2

OBJFCOORD
1
0 0 0 29

OBJACOORD
1
0 2

OBJBCOORD
31

FCOORD
1
0 0 1 0 37

ACOORD
3
0 0 3
1 2 17
2 0 19

BCOORD
1
3 13

HCOORD
1
0 2 0 0 41

DCOORD
1
0 1 1 43
"""
CBF_PLACES = ["0 0 0 29", "0 2", "31", "0 0 1 0 37", "0 0 3", "1 2 17", "3 13", "0 2 0 0 41", "0 1 1 43"]
PTF = """Task
Objective cost
    Minimize + 2 x + y + 31
Constraints
    row [1;+inf] + 3 x + y
    ball [QUAD(3)]
        @ac1: + z
        @ac2: + 17 x
        @ac3: + y + 13
Variables
    x [0;9]
    y [-inf;+inf]
    z [0;7]
"""
PTF_PLACES = ["2 x", "31", "3 x", "17 x", "13", "1;", "9]"]


def refused(path: Path, text: str, line: int, word: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableFileError, match=rf"finite .*, but line {line} of .*{path.name}' has '") as caught:
        read(path)
    assert word.lstrip("+-") in str(caught.value)


@pytest.mark.parametrize("word", ODD)
@pytest.mark.parametrize("place", LP_PLACES)
def test_an_lp_file(tmp_path: Path, place: str, word: str) -> None:
    assert LP.count(place) == 1
    text = LP.replace(place, word + place[1:])
    refused(tmp_path / "m.lp", text, LP_PLACES[place], word)


@pytest.mark.parametrize("word", ODD)
@pytest.mark.parametrize("place", MPS_PLACES)
def test_an_mps_file(tmp_path: Path, place: str, word: str) -> None:
    assert MPS.count(place) == 1
    text = MPS.replace(place, f"{place.rsplit(' ', 1)[0]} {word}")
    refused(tmp_path / "m.mps", text, MPS_PLACES[place], word)


@pytest.mark.parametrize(
    ("suffix", "old", "new", "line"),
    [
        (".lp", ">= 1", ">= nan", 5),
        (".lp", "<= 11", "<= nan", 11),
        (".lp", "x <= 11", "x <= inf y", 11),
        (".lp", "3 x + y >= 1", "3 x + y + inf >= 1", 5),
        (".lp", " <= 90", " + inf <= 90", 8),
        (".lp", "3 x", "3nan x", 5),
        (".mps", "RHS r 1", "RHS r nan", 13),
        (".mps", "inf 90", "inf nan", 13),
        (".mps", " RHS r 1 inf 90", " r 1 inf nan", 13),
        (".mps", "RNG r 8", "RNG r nan", 16),
        (".mps", "x 11", "x nan", 18),
        (".mps", "QUADOBJ", "QSECTION obj\n x x nan\nQUADOBJ", 21),
    ],
)
def test_nan_as_a_side_and_infinity_beside_one(tmp_path: Path, suffix: str, old: str, new: str, line: int) -> None:
    text = LP if suffix == ".lp" else MPS
    assert text.count(old) == 1
    refused(tmp_path / f"m{suffix}", text.replace(old, new), line, "")


@pytest.mark.parametrize("word", ["nan", "-inf", "1e400"])
@pytest.mark.parametrize("place", CBF_PLACES)
def test_a_cbf_file(tmp_path: Path, place: str, word: str) -> None:
    lines = CBF.splitlines()
    assert lines.count(place) == 1
    at = lines.index(place)
    lines[at] = " ".join([*place.split()[:-1], word])
    refused(tmp_path / "m.cbf", "\n".join(lines) + "\n", at + 1, word)


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e400"])
@pytest.mark.parametrize("place", PTF_PLACES)
def test_a_ptf_file(tmp_path: Path, place: str, word: str) -> None:
    pytest.importorskip("mosek")
    side = place[-1] in ";]"
    if side and word != "nan":
        pytest.skip("a side may be infinite")
    assert PTF.count(f" {place}") + PTF.count(f"[{place}") + PTF.count(f";{place}") == 1
    at = re.search(rf"[ \[;]{re.escape(place)}", PTF).start() + 1  # type: ignore[union-attr]
    number = re.match(r"\d+", place)
    assert number
    text = PTF[:at] + word + PTF[at + number.end() :]
    refused(tmp_path / "m.ptf", text, PTF[:at].count("\n") + 1, word)


def test_infinite_bounds_and_sides_stay_legal(tmp_path: Path) -> None:
    lp = LP.replace(">= 1", ">= -inf").replace("<= 11", "<= inf").replace("<= 40", "<= 1e400\n z: x <= +infinity")
    mps = MPS.replace("x 11", "x inf").replace("r 8", "r inf").replace("FR BND y", "LO BND y -inf\n UP BND y 1e400")
    for suffix, text in ((".lp", lp), (".mps", mps)):
        path = tmp_path / f"m{suffix}"
        path.write_text(text, encoding="utf-8")
        m = read(path)
        assert m.x.ub is None
        assert m.y.lb is None


@pytest.mark.parametrize(("suffix", "text"), [(".lp", LP), (".mps", MPS)])
def test_large_numbers_are_no_infinity(tmp_path: Path, suffix: str, text: str) -> None:
    for old, new in (("2 x", "1e20 x"), ("3 x", "1e30 x"), ("obj 2", "obj 1e20"), ("r 3", "r 1e30")):
        text = text.replace(old, new)
    path = tmp_path / f"m{suffix}"
    path.write_text(text, encoding="utf-8")
    m = read(path)
    m.x.value, m.y.value = 1.0, 0.0
    (objective,) = m.component_data_objects(pyo.Objective)
    assert pyo.value(objective) == pytest.approx(1e20)
    assert pyo.value(m.r.body) == pytest.approx(1e30)


@pytest.mark.parametrize("name", ["nan", "inf"])
def test_a_row_may_be_called_so(tmp_path: Path, name: str) -> None:
    files = {"m.lp": LP.replace("r:", f"{name}:"), "m.mps": re.sub(r"\br\b", name, MPS.replace("inf", "s"))}
    for file, text in files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
        assert read(tmp_path / file).component(name).lower == 1.0


@pytest.mark.parametrize("name", ["nan", "inf"])
def test_a_column_may_be_called_so_in_mps_and_ptf(tmp_path: Path, name: str) -> None:
    files = {"m.mps": re.sub(r"\bx\b", name, MPS)}
    if importlib.util.find_spec("mosek") is not None:
        files["m.ptf"] = re.sub(r"\bx\b", name, PTF)
    for file, text in files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
        assert read(tmp_path / file).component(name).lb == 0.0


@pytest.mark.parametrize("name", ["nancy", "info", "Infinity_2"])
def test_a_column_that_lp_readers_take_for_a_number_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.lp"
    path.write_text(re.sub(r"\bx\b", name, LP), encoding="utf-8")
    with pytest.raises(UnreadableFileError, match=rf"line 3 of .* has '{name}'\. .*rename it"):
        read(path)
