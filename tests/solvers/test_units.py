"""Which programs are solved in other units, and what those units are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest

from ceopt.solvers import compile_model
from ceopt.solvers.units import is_extreme, is_far_from_zero


def weighed(*coefficients: float, rows: int = 1) -> Any:
    """Return numbers from 0 to 1, one for each coefficient, in one row or in one row each."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(len(coefficients)), bounds=(0, 1))
    terms = [coefficient * m.x[k] for k, coefficient in enumerate(coefficients)]
    m.rows = pyo.ConstraintList()
    for row in [sum(terms)] if rows == 1 else terms:
        m.rows.add(row <= 0.5 * max(coefficients))
    m.cost = pyo.Objective(expr=-sum(m.x.values()))
    return m


def ranging(low: float, high: float) -> Any:
    """Return one number between bounds."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(low, high))
    m.row = pyo.Constraint(expr=m.x >= low)
    m.cost = pyo.Objective(expr=m.x)
    return m


def steps(coefficient: float) -> Any:
    """Return a row of an integer of nine million steps and a number."""
    m = pyo.ConcreteModel()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 9 * 10**6))
    m.x = pyo.Var(bounds=(0, 1))
    m.row = pyo.Constraint(expr=coefficient * (m.n + m.x) >= 5.0 * coefficient)
    m.cost = pyo.Objective(expr=m.n + m.x)
    return m


def greatest(length: float) -> Any:
    """Return the greatest of three lengths of a size, itself without bounds."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 1))
    m.t = pyo.Var()
    m.rows = pyo.Constraint(range(3), rule=lambda m, k: m.t >= length * (k + 1) * m.x[k])
    m.some = pyo.Constraint(expr=sum(m.x.values()) >= 1)
    m.cost = pyo.Objective(expr=m.t)
    return m


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: weighed(1.0, 1.0), False),
        (lambda: weighed(1.0, 1e-7), False),
        (lambda: weighed(1.0, 1e-9), True),  # HiGHS drops it
        (lambda: weighed(1e8, 1.0), False),
        (lambda: weighed(1e10, 1e3), True),
        (lambda: weighed(1e7, 1e-2), False),
        (lambda: weighed(1e7, 1e-7), True),  # far apart in one row
        (lambda: weighed(1e7, 1e-7, rows=2), False),  # and each with a row of its own
        (lambda: ranging(0.0, 1e7), False),
        (lambda: ranging(0.0, 1e8), True),
        (lambda: ranging(0.0, 1e-7), False),
        (lambda: ranging(0.0, 1e-8), True),
        (lambda: ranging(0.0, 0.0), False),
        (lambda: steps(1.0), False),
        (lambda: steps(1e-5), True),  # a row that is missed by 1e-6 is missed by a tenth of a step
        (lambda: greatest(1.0), False),
        (lambda: greatest(1e-7), True),
    ],
)
def test_a_program_is_extreme_where_a_tolerance_hides_some_of_its_numbers(make: Callable[[], Any], said: bool) -> None:
    assert is_extreme(compile_model(make())) is said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (5e10, 5e10 + 1e4, True),
        (-5e10 - 1e4, -5e10, True),
        (0.0, 5e10, False),
        (5e10, 5e10, False),
        (5e3, 5e3 + 1, False),
    ],
)
def test_a_column_is_far_from_zero_where_it_moves_by_a_trace_of_its_values(low: float, high: float, said: bool) -> None:
    assert is_far_from_zero(compile_model(ranging(low, high))) is said
