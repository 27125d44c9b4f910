"""Second-order cones as quadratic rows: every shape of entry, by the optimum that Gurobi finds with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.solvers import Status, compile_model
from ceopt.solvers.compile.quadratic_cones import cones_as_quadratics
from ceopt.solvers.cones import rotated_soc, soc

INFEASIBLE = Status.INFEASIBLE
ROOT = math.sqrt

#: Name -> the cone, and the least t: x from 3, y from 4, u up to 9, all else free.
SHAPES: dict[str, tuple[Callable[[Any], Any], float | Status]] = {
    "single columns": (lambda m: soc(m.t, [m.x, m.y]), 5.0),
    "factors": (lambda m: soc(2 * m.t, [m.x, -m.y]), 2.5),
    "negative factor of the head": (lambda m: soc(-2 * m.s, [m.x, m.y]), 2.5),
    "affine entries": (lambda m: soc(m.t, [m.x - 1, m.x + m.y]), math.hypot(2, 7)),
    "affine head": (lambda m: soc(m.t + 1, [m.x, m.y]), 4.0),
    "numbers in the body": (lambda m: soc(m.t, [m.x, m.y, 12]), 13.0),
    "only numbers in the body": (lambda m: soc(m.t, [12, 5]), 13.0),
    "no body": (lambda m: soc(m.t, []), 0.0),
    "an entry that cancels": (lambda m: soc(m.t, [m.x, m.y - m.y, m.y]), 5.0),
    "a number as head": (lambda m: soc(5, [m.t, m.y - 1]), -4.0),
    "a number as head, too small": (lambda m: soc(4.9, [m.x, m.y]), INFEASIBLE),
    "0 as head": (lambda m: soc(0, [m.t - 2, m.x - 3]), 2.0),
    "0 as head, a number in the body": (lambda m: soc(0, [m.t - 2, 1]), INFEASIBLE),
    "a negative number as head": (lambda m: soc(-1, [m.t]), INFEASIBLE),
    "numbers inside": (lambda _: soc(5, [3, 4]), -50.0),
    "numbers outside": (lambda _: soc(4.99, [3, 4]), INFEASIBLE),
    "rotated": (lambda m: rotated_soc(m.t, m.u, [m.x, m.y]), 25 / 18),
    "rotated, factors": (lambda m: rotated_soc(2 * m.t, 3 * m.u, [m.x, 2 * m.y]), 73 / 108),
    "rotated, one column twice": (lambda m: rotated_soc(m.t, m.t, [m.x, m.y]), 5 / ROOT(2)),
    "rotated, affine heads": (lambda m: rotated_soc(m.t + 1, m.u + 1, [m.x, m.y]), 25 / 20 - 1),
    "rotated, half": (lambda m: rotated_soc(0.5, m.t, [m.x, m.y]), 25.0),
    "rotated, half and affine": (lambda m: rotated_soc(2 * m.t + 1, 0.5, [m.x, m.y]), 12.0),
    "rotated, half and numbers": (lambda m: rotated_soc(m.t, 0.5, [5, 12]), 169.0),
    "rotated, half and nothing": (lambda m: rotated_soc(m.t + 2, 0.5, []), -2.0),
    "rotated, numbers": (lambda m: rotated_soc(2, 6.25, [m.t]), -5.0),
    "rotated, numbers and a column": (lambda m: rotated_soc(2, 6.25, [m.t, 3]), -4.0),
    "rotated, 0 and a column": (lambda m: rotated_soc(m.t - 1, 0, [m.x - 3]), 1.0),
    "rotated, 0 and a number": (lambda m: rotated_soc(m.t, 0, [m.x, 2]), INFEASIBLE),
    "rotated, a negative number": (lambda m: rotated_soc(m.t, -1, [m.x]), INFEASIBLE),
    "hyperbola": (lambda m: rotated_soc(m.t, m.u, [3]), 0.5),
}


def model_of(shape: str) -> Any:
    m = pyo.ConcreteModel()
    m.t, m.x, m.y = pyo.Var(bounds=(-50, 500)), pyo.Var(bounds=(3, None)), pyo.Var(bounds=(4, None))
    m.u, m.s = pyo.Var(bounds=(None, 9)), pyo.Var()
    m.mirror = pyo.Constraint(expr=m.s == -m.t)
    m.k = pyo.Constraint(expr=SHAPES[shape][0](m) >= 0)
    m.o = pyo.Objective(expr=m.t)
    return m


@pytest.mark.parametrize("shape", SHAPES)
def test_the_least_head_is_that_of_the_cone(shape):
    pytest.importorskip("gurobipy")
    from ceopt.solvers.gurobi import GurobiSession, licence

    if licence().why_not:
        pytest.skip(licence().why_not)
    answer = SHAPES[shape][1]
    outcome = GurobiSession(compile_model(model_of(shape))).solve()
    if isinstance(answer, Status):
        assert outcome.status is answer, outcome.message
        assert outcome.message
    else:
        assert outcome.status is Status.OPTIMAL, outcome.message
        assert outcome.objective == pytest.approx(answer, rel=1e-6, abs=1e-9)
        assert outcome.violation < 1e-6


@pytest.mark.long(every=5)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_rows_hold_where_the_cone_does(shape):
    """At random points, own columns set to their entries."""
    compiled = compile_model(model_of(shape))
    program = cones_as_quadratics(compiled)
    rng, n = np.random.default_rng(0), len(compiled.columns)
    sides = set()
    for _ in range(400):
        x = rng.uniform(-1, 1, n) * rng.choice([1.0, 6.0, 30.0])
        x = np.clip(x, compiled.lb, compiled.ub)
        point = np.concatenate([x, np.zeros(len(program.columns) - n)])
        for own in range(n, point.size):  # each is the only own column of its row
            rows = program.A[:, [own]].toarray().ravel()
            row = int(np.flatnonzero(rows)[0])
            point[own] = (program.row_lb[row] - (program.A[[row]] @ point)[0]) / rows[row]
        inside = compiled.cones[0].violation(x) <= 1e-9
        cone_rows = program.A[compiled.A.shape[0] :] @ point
        low, high = program.row_lb[compiled.A.shape[0] :], program.row_ub[compiled.A.shape[0] :]
        holds = (cone_rows >= low - 1e-7).all() and (cone_rows <= high + 1e-7).all()
        holds = holds and all(row.violation(point) <= 1e-6 for row in program.quadratics)
        holds = holds and bool((point >= program.lb - 1e-9).all() and (point <= program.ub + 1e-9).all())
        holds = holds and program.contradiction is None
        assert holds == inside
        sides.add(inside)
    assert sides == {True, False} or shape not in {"single columns", "affine head", "rotated", "rotated, half"}


def test_a_program_without_cones_is_itself():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    m.o = pyo.Objective(expr=m.x)
    compiled = compile_model(m)
    assert cones_as_quadratics(compiled) is compiled


def test_single_columns_add_none_and_signs_are_bounds():
    compiled = compile_model(model_of("single columns"))
    program = cones_as_quadratics(compiled)
    assert program.A.shape == compiled.A.shape
    t = next(k for k, var in enumerate(compiled.columns) if var.name == "t")
    assert (program.lb[t], compiled.lb[t]) == (0.0, -50.0)
    assert program.cones == []
    assert len(compiled.cones) == 1
    affine = compile_model(model_of("affine entries"))
    assert cones_as_quadratics(affine).A.shape == (affine.A.shape[0] + 2, affine.A.shape[1] + 2)
