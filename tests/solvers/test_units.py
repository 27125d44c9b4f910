"""Which programs are solved in other units, and what those units are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.solvers import compile_model
from ceopt.solvers.units import is_extreme, is_far_from_zero, rescaled, wide_columns


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


@pytest.mark.parametrize("is_relaxed", [True, False])
def test_a_point_in_other_units_is_the_same_point_in_whole_numbers_unless_they_are_relaxed(is_relaxed: bool) -> None:
    m = pyo.ConcreteModel()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(10**7, 10**9))
    m.x = pyo.Var(bounds=(0, 1e9))
    m.row = pyo.Constraint(expr=1e-9 * m.n + 1e-9 * m.x + m.x >= 1.0)
    m.cost = pyo.Objective(expr=m.n + m.x)
    compiled = compile_model(m)
    wide = wide_columns(compiled)
    assert wide.sum() == 1
    units = rescaled(compiled, wide & is_relaxed, np.zeros(2))
    point = np.where(wide, 2e7 + 0.25, 1e8 + 0.25)
    there = units.from_own(dict(enumerate(point.tolist())))
    back = units.to_own(np.array([there[0], there[1]]))
    assert np.abs(list(there.values())).max() < (1.0 + 1e-9 if is_relaxed else 2e7)
    assert back == pytest.approx(np.where(wide & (not is_relaxed), 2e7, point), rel=1e-12)


@pytest.mark.parametrize(
    ("steps", "share", "said"),
    [
        (10**6, 1e-7, False),
        (10**7, 1e-7, True),
        (10**7, 1e-5, False),
        (2 * 10**9, 1e-5, True),  # more than HiGHS counts in 32 bits
    ],
)
@pytest.mark.parametrize("greatest", [1e-2, 1.0, 1e3])
def test_a_column_of_many_steps_is_wide_where_some_row_hardly_sees_one(
    greatest: float, steps: int, share: float, said: bool
) -> None:
    m = pyo.ConcreteModel()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, steps))
    m.x = pyo.Var(bounds=(0, steps))
    m.row = pyo.Constraint(expr=greatest * (share * m.n + m.x) >= 1.0)
    m.cost = pyo.Objective(expr=m.n + m.x)
    compiled = compile_model(m)
    assert wide_columns(compiled).tolist() == [bool(whole) and said for whole in compiled.integer]


@pytest.mark.parametrize("is_relaxed", [True, False])
def test_columns_of_odd_widths_are_about_one_wide_and_ordinary_ones_stay(is_relaxed: bool) -> None:
    bounds = {"large": (0.0, 1e9), "small": (0.0, 1e-9), "usual": (0.0, 1e3), "count": (0, 9), "wide": (0, 10**9)}
    m = pyo.ConcreteModel()
    m.x = pyo.Var(list(bounds), bounds=lambda _m, name: bounds[name])
    m.x["count"].domain = m.x["wide"].domain = pyo.Integers
    m.row = pyo.Constraint(expr=m.x["large"] + m.x["small"] + m.x["usual"] + m.x["count"] + 1e-9 * m.x["wide"] >= 1.0)
    m.cost = pyo.Objective(expr=sum(m.x.values()))
    compiled = compile_model(m)
    wide = wide_columns(compiled)
    at = np.where(wide, 1e6, 0.0)

    program = rescaled(compiled, wide & is_relaxed, at, around=8.0).program

    names = [column.index() for column in compiled.columns]
    width = dict(zip(names, (program.ub - program.lb).tolist(), strict=True))
    assert (width["usual"], width["count"]) == (1e3, 9.0)
    assert all(0.5 < width[name] < 2.0 for name in ("large", "small"))
    if is_relaxed:
        assert 0.5 < width["wide"] < 2.0
    else:
        assert width["wide"] == 16.0  # eight steps to each side
    assert program.integer.tolist() == [name == "count" or (name == "wide" and not is_relaxed) for name in names]


@pytest.mark.parametrize(("cost", "is_changed"), [(1e3, False), (1e12, True)])
def test_costs_beyond_those_of_rows_are_brought_down_to_their_size(cost: float, is_changed: bool) -> None:
    m = weighed(1.0, 1.0)
    m.cost.expr = cost * (m.x[0] + 3 * m.x[1]) + 5 * cost
    compiled = compile_model(m)
    units = rescaled(compiled, np.zeros(2, dtype=bool), np.zeros(2))
    assert (units.cost_scale != 1.0) is is_changed
    assert np.abs(units.program.c).max() < 1e4
    point = np.array([0.25, 0.5])
    assert units.program.evaluate(point) == pytest.approx(units.cost_scale * compiled.evaluate(point))
