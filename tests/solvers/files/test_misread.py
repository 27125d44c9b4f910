"""What HiGHS reads otherwise than the format says is refused; whatever the format has is read."""

from __future__ import annotations

from pathlib import Path

import pyomo.environ as pyo
import pytest

import ceopt.solvers
from ceopt.solvers.errors import UnreadableFileError


def _file(folder: Path, rows: str) -> Path:
    path = folder / "program.lp"
    path.write_text(f"min\n obj: x + y + 2\nsubject to\n {rows}\nbounds\n x <= 10\n y <= 10\nend\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rows", "number"),
    [
        ("c1: x + 3 <= 4", "3"),
        ("c1: 3 + x <= 4", "3"),
        ("c1: - 3 + x >= 2", "3"),
        ("c1: x + 3 y + 2.5\n <= 4", "2.5"),
        ("c1: x + 1e3 >= 1", "1e3"),
        ("c1: x + 12 + y <= 4", "12"),
        ("x <= 4\n y + 2 >= 1", "2"),
        ("c1: x 3 <= 4", "3"),
        ("c1: [ x^2 ] + 3 <= 4", "3"),
        ("c1: 2 [ x^2 ] <= 4", "2"),
        ("c1: 0 [ x^2 ] <= 4", "0"),
    ],
)
def test_a_constant_on_the_left_of_a_row_is_refused(tmp_path: Path, rows: str, number: str) -> None:
    with pytest.raises(UnreadableFileError, match=f"Move {number} to the right side"):
        ceopt.solvers.read(_file(tmp_path, rows))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("c1: x + 2 x <= 4", ["3.0*x  <=  4.0"]),
        ("c1: x + y + 0 <= 4", ["x + y  <=  4.0"]),
        ("c1: x + y <= -4\n - y <= 3", ["x + y  <=  -4.0", "- y  <=  3.0"]),
        ("1e-05 x - 2 y = +3\n+1 y >= 2\ny >= 1", ["1e-05*x - 2.0*y  ==  3.0", "2.0  <=  y", "1.0  <=  y"]),
        ("c1: x + [ x ^ 2 + 3 x * y ] <= 4", ["x + x*x + 3.0*x*y  <=  4.0"]),
        ("c1: x + y <= 4 \\ 3 + x", ["x + y  <=  4.0"]),
    ],
)
def test_what_the_format_has_is_read(tmp_path: Path, rows: str, expected: list[str]) -> None:
    model = ceopt.solvers.read(_file(tmp_path, rows))
    stated = [str(row.expr) for row in model.component_data_objects(pyo.Constraint)]
    assert stated == expected


def test_names_with_digits_and_brackets_are_no_constants(tmp_path: Path) -> None:
    model = ceopt.solvers.read(_file(tmp_path, "r(1): x1 + 2 x(2)_3 + z_3 >= 1"))
    assert {v.local_name.strip("'") for v in model.component_data_objects(pyo.Var)} == {"x", "y", "x1", "x(2)_3", "z_3"}


#: Files that HiGHS reads in silence as another program, and what is said of them.
OTHERS = {
    "twice.lp": ("min\n obj: x + x + 2 y\nst\n c: x + y >= 3\nend\n", "each column once in the objective"),
    "binary.lp": ("max\n obj: x\nst\n c: x <= 5\nbounds\n x <= 3\nbinary\n x\nend\n", "within 0 and 1"),
    "below.lp": ("min\n obj: x\nst\n c: x <= 5\nbounds\n -1 <= x <= 1\nbin\n x\nend\n", "within 0 and 1"),
    "free.mps": (
        "NAME t\nROWS\n N obj\n N o2\n G c1\nCOLUMNS\n x obj 1 o2 5\n x c1 1\nRHS\n r c1 2 o2 9\nENDATA\n",
        "right sides of rows and of the objective alone",
    ),
    "entry.mps": (
        "NAME t\nROWS\n N obj\n G c1\nCOLUMNS\n x obj 1 c1 1\n x c1 4\nRHS\n r c1 2\nENDATA\n",
        "each entry of a column once",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_readers_take_for_different_programs_is_refused(tmp_path: Path, name: str) -> None:
    text, needs = OTHERS[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    with pytest.raises(UnreadableFileError, match=needs):
        ceopt.solvers.read(path)


@pytest.mark.parametrize(
    "text",
    [
        "min\n obj: x + 2 y + [ x^2 + 4 x * y ] / 2\nst\n c: x + y >= 3\nbounds\n x <= 3\n z2 <= 2\nend\n",
        "max\n x + y3 - z\nst\n c: x + y3 + z <= 5\nbounds\n -0 <= x <= 1\n -3 <= z <= 2\nbinary\n x\n y3\nend\n",
        "NAME t\nROWS\n N obj\n N o2\n G c1\nCOLUMNS\n x obj 1 o2 5\n y c1 1\n x2 c1 1\nRHS\n r c1 2 obj 9\nENDATA\n",
    ],
)
def test_what_is_only_like_it_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / f"program.{'mps' if text.startswith('NAME') else 'lp'}"
    path.write_text(text, encoding="utf-8")

    assert ceopt.solvers.read(path).nvariables() >= 2
