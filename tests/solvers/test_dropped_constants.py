"""A constant on the left of an LP row, which HiGHS drops in silence, is refused; whatever the format has is read."""

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
