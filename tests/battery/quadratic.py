"""Quadratic objectives: convex, with integers, and not convex; and quadratic rows that are not convex."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo

from battery.case import case
from ceopt.solvers import ProblemClass, Status

QP, MIQP, NONCONVEX = ProblemClass.QP, ProblemClass.MIQP, ProblemClass.NONCONVEX


# ---- QP --------------------------------------------------------------------------------------------------------------
@case(QP, 0.24)
def onto_the_simplex(m: Any) -> None:
    """(0.8, 0.6, -0.4) less 0.2, cut off at 0: (0.6, 0.4, 0), and 0.04 + 0.04 + 0.16."""
    given = (0.8, 0.6, -0.4)
    m.x = pyo.Var(range(3), bounds=(0, None))
    m.sum = pyo.Constraint(expr=sum(m.x.values()) == 1)
    m.cost = pyo.Objective(expr=sum((m.x[k] - given[k]) ** 2 for k in range(3)))


@case(QP, -1.0)
def valley(m: Any) -> None:
    """A singular Hessian: s^2 - 2s with s = x + y is -1 all along a line."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.cost = pyo.Objective(expr=(m.x + m.y) ** 2 - 2 * m.x - 2 * m.y)


@case(QP, 20.0)
def hill(m: Any) -> None:
    """Maximise a concave function: the gradient vanishes at (6, 8)."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.row = pyo.Constraint(expr=m.x + m.y <= 100)
    m.gain = pyo.Objective(expr=4 * m.x - m.x**2 + 2 * m.y - 0.5 * m.y**2 + m.x * m.y, sense=pyo.maximize)


@case(QP, -15 / 22)
def bowl(m: Any) -> None:
    """No rows, no bounds: x'Ax / 2 - b'x with A = ((4, 1), (1, 3)), b = (1, 2) is -b'x / 2 at x = (1, 7) / 11."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.cost = pyo.Objective(expr=2 * m.x**2 + m.x * m.y + 1.5 * m.y**2 - m.x - 2 * m.y)


@case(QP, 14.0)
def least_squares_of_an_equation(m: Any) -> None:
    """The least squared norm on a'x = b is b^2 / a'a = 196 / 14."""
    m.x = pyo.Var(range(3))
    m.row = pyo.Constraint(expr=m.x[0] + 2 * m.x[1] + 3 * m.x[2] == 14)
    m.cost = pyo.Objective(expr=sum(v**2 for v in m.x.values()))


@case(QP, 5.0)
def bounds_that_bind(m: Any) -> None:
    """x = 1 by its bound, y = 2 by the row."""
    m.x, m.y = pyo.Var(bounds=(-5, 1)), pyo.Var(bounds=(None, 7))
    m.row = pyo.Constraint(expr=(-9, m.x + m.y, 3))
    m.cost = pyo.Objective(expr=(m.x - 3) ** 2 + (m.y - 3) ** 2)


@case(QP, 4 / 7)
def portfolio(m: Any) -> None:
    """Least variance of independent shares: 1 / (1 / 1 + 1 / 2 + 1 / 4)."""
    m.x = pyo.Var(range(3), bounds=(0, 1))
    m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)
    m.cost = pyo.Objective(expr=sum(2**k * m.x[k] ** 2 for k in range(3)))


@case(QP, 4e-6)
def tiny_curvature(m: Any) -> None:
    """1e-6 (x - 1)^2 at x = 3."""
    m.x = pyo.Var(bounds=(0, 10))
    m.row = pyo.Constraint(expr=2 * m.x >= 6)
    m.cost = pyo.Objective(expr=1e-6 * (m.x - 1) ** 2)


@case(QP, 2e6)
def far_away(m: Any) -> None:
    """(1000, 2000) is 2000 / sqrt(2) from the half-plane."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.row = pyo.Constraint(expr=m.x + m.y <= 1000)
    m.cost = pyo.Objective(expr=(m.x - 1000) ** 2 + (m.y - 2000) ** 2)


@case(QP, 6.25)
def fixed_in_squares(m: Any) -> None:
    """A fixed variable in products: (x - 2f)^2 + (f - 1.5)^2 + 6 with f = 1 and x = 2."""
    m.x, m.f = pyo.Var(), pyo.Var()
    m.f.fix(1)
    m.cost = pyo.Objective(expr=(m.x - 2 * m.f) ** 2 + (m.f - 1.5) ** 2 + 6 * m.f)


@case(QP, data=[((0.0, 0.0), 12.0), ((3.0, 3.0), 0.0), ((1.0, 1.0), 3.0)])
def nearest_in_squares(m: Any) -> None:
    """Weights 1 and 3, half-plane x1 + x2 >= 4: (what is missing)^2 / (1 / 1 + 1 / 3)."""
    m.x0, m.x = pyo.Var(range(2)), pyo.Var(range(2), bounds=(-10, 10))
    m.reach = pyo.Constraint(expr=m.x[0] + m.x[1] >= 4)
    m.cost = pyo.Objective(expr=sum((1, 3)[j] * (m.x[j] - m.x0[j]) ** 2 for j in range(2)))


@case(QP, status=Status.INFEASIBLE)
def squares_nowhere(m: Any) -> None:
    """The rows leave no point."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.a = pyo.Constraint(expr=m.x + m.y >= 3)
    m.b = pyo.Constraint(expr=m.x + m.y <= 1)
    m.cost = pyo.Objective(expr=m.x**2 + m.y**2)


@case(QP, status=Status.UNBOUNDED)
def gutter(m: Any) -> None:
    """Curved along x, falling for ever along y."""
    m.x, m.y = pyo.Var(), pyo.Var(bounds=(0, None))
    m.row = pyo.Constraint(expr=m.x - m.y <= 4)
    m.cost = pyo.Objective(expr=m.x**2 - m.y)


# ---- MIQP ------------------------------------------------------------------------------------------------------------
@case(MIQP, 0.25)
def nearest_integers(m: Any) -> None:
    """(2.4, -1.7) to (2, -2)."""
    m.x, m.y = pyo.Var(domain=pyo.Integers, bounds=(-9, 9)), pyo.Var(domain=pyo.Integers, bounds=(-9, 9))
    m.cost = pyo.Objective(expr=(m.x - 2.4) ** 2 + (m.y + 1.7) ** 2)


@case(MIQP, 1.0)
def at_most_two(m: Any) -> None:
    """(3, 1, 2) without its least entry."""
    given = (3, 1, 2)
    m.x, m.z = pyo.Var(range(3), bounds=(-5, 5)), pyo.Var(range(3), domain=pyo.Binary)
    m.up = pyo.Constraint(range(3), rule=lambda m, k: m.x[k] <= 5 * m.z[k])
    m.down = pyo.Constraint(range(3), rule=lambda m, k: m.x[k] >= -5 * m.z[k])
    m.few = pyo.Constraint(expr=sum(m.z.values()) <= 2)
    m.cost = pyo.Objective(expr=sum((m.x[k] - given[k]) ** 2 for k in range(3)))


@case(MIQP, -6.0)
def integer_hill(m: Any) -> None:
    """Maximise with products: (2, 1) gives -1 - 0.5 - 1 - 3.5, and (2, 2) as much."""
    m.x, m.y = (pyo.Var(domain=pyo.Integers, bounds=(-3, 6)) for _ in range(2))
    m.gain = pyo.Objective(expr=-((m.x - m.y) ** 2) - 2 * (m.x + m.y - 3.5) ** 2 - m.y - 3.5, sense=pyo.maximize)


@case(MIQP, 3.0)
def binaries_squared(m: Any) -> None:
    """(x1 + x2 + x3 + x4 - 3)^2 + 2 x1 + x2 + 3 x3 + x4: x2 and x4, 1 + 2; a third costs 2 and saves 1."""
    m.x = pyo.Var(range(4), domain=pyo.Binary)
    m.cost = pyo.Objective(expr=(sum(m.x.values()) - 3) ** 2 + 2 * m.x[0] + m.x[1] + 3 * m.x[2] + m.x[3])


@case(MIQP, data=[((2.4, -1.7), 0.25), ((0.5, 0.0), 0.25), ((3.0, 8.2), 0.04)])
def nearest_integers_to_data(m: Any) -> None:
    """Each coordinate rounded."""
    m.x0, m.x = pyo.Var(range(2)), pyo.Var(range(2), domain=pyo.Integers, bounds=(-9, 9))
    m.cost = pyo.Objective(expr=sum((m.x[j] - m.x0[j]) ** 2 for j in range(2)))


@case(MIQP, status=Status.INFEASIBLE)
def squares_of_odd_halves(m: Any) -> None:
    """2x + 2y is never 3."""
    m.x = pyo.Var(range(2), domain=pyo.Integers, bounds=(-9, 9))
    m.row = pyo.Constraint(expr=2 * m.x[0] + 2 * m.x[1] == 3)
    m.cost = pyo.Objective(expr=m.x[0] ** 2 + m.x[1] ** 2)


@case(MIQP, status=Status.UNBOUNDED)
def integer_gutter(m: Any) -> None:
    """Curved along x, falling for ever along y."""
    m.x, m.y = pyo.Var(domain=pyo.Integers, bounds=(-5, 5)), pyo.Var(domain=pyo.NonNegativeIntegers)
    m.row = pyo.Constraint(expr=m.x - m.y <= 4)
    m.cost = pyo.Objective(expr=(m.x - 0.5) ** 2 - m.y)


# ---- not convex ------------------------------------------------------------------------------------------------------
@case(NONCONVEX, 4.0)
def rectangle(m: Any) -> None:
    """The greatest product of a sum of 4."""
    m.x, m.y = pyo.Var(bounds=(0, 3)), pyo.Var(bounds=(0, 3))
    m.row = pyo.Constraint(expr=m.x + m.y <= 4)
    m.gain = pyo.Objective(expr=m.x * m.y, sense=pyo.maximize)


@case(NONCONVEX, -4.0)
def two_valleys(m: Any) -> None:
    """-x^2 - y / 2: -4 at (2, 0), above -2.5 at the other end (-1, 3)."""
    m.x, m.y = pyo.Var(bounds=(-1, 2)), pyo.Var(bounds=(0, 3))
    m.row = pyo.Constraint(expr=m.x + m.y <= 2)
    m.cost = pyo.Objective(expr=-(m.x**2) - 0.5 * m.y)


@case(NONCONVEX, math.sqrt(2))
def on_the_circle(m: Any) -> None:
    """An equation x^2 + y^2 = 1: x + y is sqrt(2) at most."""
    m.x, m.y = pyo.Var(bounds=(-2, 2)), pyo.Var(bounds=(-2, 2))
    m.circle = pyo.Constraint(expr=m.x**2 + m.y**2 == 1)
    m.gain = pyo.Objective(expr=m.x + m.y, sense=pyo.maximize)


@case(NONCONVEX, 1.0)
def outside_the_disc(m: Any) -> None:
    """x^2 + y^2 >= 1: the nearest corners are (1, 0) and (0, 1)."""
    m.x, m.y = pyo.Var(bounds=(0, 2)), pyo.Var(bounds=(0, 2))
    m.outside = pyo.Constraint(expr=m.x**2 + m.y**2 >= 1)
    m.cost = pyo.Objective(expr=m.x + m.y)


@case(NONCONVEX, 6.0)
def integer_product(m: Any) -> None:
    """2x + 3y <= 13: 2 * 3 and 3 * 2."""
    m.x, m.y = (pyo.Var(domain=pyo.Integers, bounds=(0, 6)) for _ in range(2))
    m.row = pyo.Constraint(expr=2 * m.x + 3 * m.y <= 13)
    m.gain = pyo.Objective(expr=m.x * m.y, sense=pyo.maximize)


@case(NONCONVEX, status=Status.INFEASIBLE)
def product_too_great(m: Any) -> None:
    """xy is 2 at least."""
    m.x, m.y = pyo.Var(bounds=(2, 3)), pyo.Var(bounds=(1, 2))
    m.row = pyo.Constraint(expr=m.x * m.y == 1)
    m.cost = pyo.Objective(expr=m.x)
