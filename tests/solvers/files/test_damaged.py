"""Programs in LP, MPS, CBF and PTF that are cut off or have a byte flipped: read, or refused in a sentence of ours."""

from __future__ import annotations

import tracemalloc

import pyomo.environ as pyo
import pytest
from damage import cut, flipped

from ceopt.solvers import read, write
from ceopt.solvers.errors import CeoptError


def program(*, is_quadratic):
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2, "a b"], bounds=(0, 5))
    model.take = pyo.Var(domain=pyo.Binary)
    model.count = pyo.Var(domain=pyo.Integers, bounds=(-3, 4))
    model.least = pyo.Constraint(expr=model.x[1] + 2 * model.x[2] - model.take >= 1.5)
    model.range = pyo.Constraint(expr=(-1, model.x[1] - model.count, 3))
    model.same = pyo.Constraint(expr=model.x["a b"] + model.count == 1)
    cost = model.x[1] + model.take + 3
    if is_quadratic:
        model.disc = pyo.Constraint(expr=model.x[1] ** 2 + model.x[2] ** 2 <= 4)
        cost += model.x[2] ** 2
    model.cost = pyo.Objective(expr=cost)
    return model


@pytest.mark.parametrize("kind", ["lp", "mps", "cbf", "ptf"])
def test_a_file_that_is_cut_off_or_has_a_byte_flipped_is_read_or_refused(kind, tmp_path):
    if kind == "ptf":
        pytest.importorskip("mosek")
    path = tmp_path / f"program.{kind}"
    write(program(is_quadratic=kind in {"lp", "mps"}), path)
    whole = path.read_bytes()
    assert read(path)
    few = max(1, len(whole) // 40)
    refused = 0
    for content in cut(whole.rstrip(), every=few):
        path.write_bytes(content)
        try:
            read(path)
        except CeoptError:
            refused += 1
    assert refused >= 40
    for content in flipped(whole, every=few):
        path.write_bytes(content)
        try:
            read(path)
        except CeoptError:
            refused += 1
    assert refused > 45


CLAIMS = {
    "cones of a trillion columns": "VAR\n999999999999 1\nF 999999999999\n",
    "a matrix of a trillion entries": "PSDVAR\n1\n1000000\n",
    "a row of a trillion entries": "VAR\n1 1\nF 1\n\nCON\n999999999999 1\nL= 999999999999\n",
    "matrices without an end": "PSDVAR\n999999999999\n1\n",
    "a number of 5,000 digits": f"VAR\n{'9' * 5000} 1\nF {'9' * 5000}\n",
    "a matrix constraint of a trillion": "VAR\n1 1\nF 1\n\nPSDCON\n1\n1000000\n",
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_a_cbf_file_claims_is_refused_before_memory_is_asked_for(claim, tmp_path):
    path = tmp_path / "program.cbf"
    path.write_text(f"VER\n3\n\nOBJSENSE\nMIN\n\n{CLAIMS[claim]}")
    tracemalloc.start()
    try:
        with pytest.raises(CeoptError, match="read needs"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
