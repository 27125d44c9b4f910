"""Linear programs."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from battery.case import case
from ceopt.solvers import ProblemClass, Status

LP = ProblemClass.LP
NON_NEGATIVE = (0, None)


@case(LP, 36.0)
def glass(m: Any) -> None:
    """Hillier and Lieberman's Wyndor: 2 doors and 6 windows."""
    m.x, m.y = pyo.Var(bounds=(0, 4)), pyo.Var(bounds=NON_NEGATIVE)
    m.second = pyo.Constraint(expr=2 * m.y <= 12)
    m.third = pyo.Constraint(expr=3 * m.x + 2 * m.y <= 18)
    m.gain = pyo.Objective(expr=3 * m.x + 5 * m.y, sense=pyo.maximize)


@case(LP, -0.05)
def beale(m: Any) -> None:
    """Beale (1955): the simplex method with the textbook's rule cycles in its corner. x3 = 1, x1 = 1 / 25."""
    m.x = pyo.Var(range(1, 5), bounds=NON_NEGATIVE)
    x = m.x
    m.a = pyo.Constraint(expr=0.25 * x[1] - 60 * x[2] - 0.04 * x[3] + 9 * x[4] <= 0)
    m.b = pyo.Constraint(expr=0.5 * x[1] - 90 * x[2] - 0.02 * x[3] + 3 * x[4] <= 0)
    m.c = pyo.Constraint(expr=x[3] <= 1)
    m.cost = pyo.Objective(expr=-0.75 * x[1] + 150 * x[2] - 0.02 * x[3] + 6 * x[4])


@case(LP, 625.0)
def klee_minty(m: Any) -> None:
    """The cube of Klee and Minty (1972) in four dimensions: 5 to the 4."""
    m.x = pyo.Var(range(4), bounds=NON_NEGATIVE)
    m.row = pyo.Constraint(
        range(4), rule=lambda m, j: sum(2 ** (j - i + 1) * m.x[i] for i in range(j)) + m.x[j] <= 5 ** (j + 1)
    )
    m.far = pyo.Objective(expr=sum(2 ** (3 - j) * m.x[j] for j in range(4)), sense=pyo.maximize)


@case(LP, 465.0)
def transport(m: Any) -> None:
    """Supplies 20 and 30, demands 10, 25, 15. The first saves most (6) at the second place: 120 + 90 + 60 + 195."""
    cost = ((8, 6, 10), (9, 12, 13))
    m.x = pyo.Var(range(2), range(3), bounds=NON_NEGATIVE)
    m.supply = pyo.Constraint(range(2), rule=lambda m, i: sum(m.x[i, j] for j in range(3)) == (20, 30)[i])
    m.demand = pyo.Constraint(range(3), rule=lambda m, j: sum(m.x[i, j] for i in range(2)) == (10, 25, 15)[j])
    m.cost = pyo.Objective(expr=sum(cost[i][j] * m.x[i, j] for i in range(2) for j in range(3)))


@case(LP, 7.0)
def greatest_flow(m: Any) -> None:
    """All that can leave the source, 4 + 3, arrives: 2 over a to t, 2 over a and b, 3 over b."""
    room = {("s", "a"): 4, ("s", "b"): 3, ("a", "b"): 2, ("a", "t"): 2, ("b", "t"): 5}
    m.f = pyo.Var(list(room), bounds=lambda _m, *edge: (0, room[edge]))
    m.kept = pyo.Constraint(
        ["a", "b"],
        rule=lambda m, v: sum(m.f[e] for e in room if e[1] == v) == sum(m.f[e] for e in room if e[0] == v),
    )
    m.flow = pyo.Objective(expr=m.f["s", "a"] + m.f["s", "b"], sense=pyo.maximize)


@case(LP, 16.5)
def ranges(m: Any) -> None:
    """2x - y + 7 = 1.5 (x - y) + 0.5 (x + y) + 7, both sums at their upper end."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.difference = pyo.Constraint(expr=(-2, m.x - m.y, 3))
    m.sum = pyo.Constraint(expr=(1, m.x + m.y, 10))
    m.gain = pyo.Objective(expr=2 * m.x - m.y + 7, sense=pyo.maximize)


@case(LP, 9.0)
def redundant_rows(m: Any) -> None:
    """x = 3, y = 1; each row is said twice, the equation also as a multiple and a range of no width."""
    m.x, m.y = pyo.Var(bounds=(0, 3)), pyo.Var(bounds=NON_NEGATIVE)
    total = m.x + m.y
    m.equation = pyo.Constraint(expr=total == 4)
    m.double = pyo.Constraint(expr=2 * total == 8)
    m.thin = pyo.Constraint(expr=(4, total, 4))
    m.weaker = pyo.Constraint(expr=total >= 2)
    m.bound = pyo.Constraint([1, 2], rule=lambda m, _i: m.x <= 3)
    m.cost = pyo.Objective(expr=2 * m.x + 3 * m.y)


@case(LP, 4.0)
def least_deviations(m: Any) -> None:
    """The line nearest to (0, 0), (1, 1), (2, 2), (3, 7) by absolute errors, 4; many lines are as near."""
    m.a, m.b, m.e = pyo.Var(), pyo.Var(), pyo.Var(range(4))
    points = ((0, 0), (1, 1), (2, 2), (3, 7))
    m.over = pyo.Constraint(range(4), rule=lambda m, k: m.a + m.b * points[k][0] - points[k][1] <= m.e[k])
    m.under = pyo.Constraint(range(4), rule=lambda m, k: points[k][1] - m.a - m.b * points[k][0] <= m.e[k])
    m.cost = pyo.Objective(expr=sum(m.e.values()))


@case(LP, -9.0)
def open_below(m: Any) -> None:
    """One variable has no lower bound, but a row: y = -2, x = -3."""
    m.x, m.y = pyo.Var(bounds=(None, 3)), pyo.Var(bounds=(-2, None))
    m.row = pyo.Constraint(expr=m.x + m.y >= -5)
    m.cost = pyo.Objective(expr=m.x + 3 * m.y)


@case(LP, 9.5)
def fixed_variables(m: Any) -> None:
    """f is fixed at 2 and g held at 1.5 by its bounds, so x = 3f - g = 4.5."""
    m.f, m.g, m.x = pyo.Var(), pyo.Var(bounds=(1.5, 1.5)), pyo.Var()
    m.f.fix(2)
    m.row = pyo.Constraint(expr=m.x >= 3 * m.f - m.g)
    m.cost = pyo.Objective(expr=m.x + 2 * m.g + m.f)


@case(LP, 17.0)
def constants(m: Any) -> None:
    """Constants on both sides of the rows and in the objective: y = 2, x = 2."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.a = pyo.Constraint(expr=m.x + 3 >= 2 * m.y + 1)
    m.b = pyo.Constraint(expr=m.y - 4 >= -2)
    m.cost = pyo.Objective(expr=(m.x + 5) + 10)


@case(LP, 1.0)
def chebyshev_centre(m: Any) -> None:
    """The circle inscribed in the triangle with sides 3, 4, 5 has radius 1."""
    m.x, m.y, m.r = pyo.Var(), pyo.Var(), pyo.Var(bounds=NON_NEGATIVE)
    m.left = pyo.Constraint(expr=m.x >= m.r)
    m.floor = pyo.Constraint(expr=m.y >= m.r)
    m.slope = pyo.Constraint(expr=3 * m.x + 4 * m.y + 5 * m.r <= 12)
    m.radius = pyo.Objective(expr=m.r, sense=pyo.maximize)


@case(LP, 9e-6)
def tiny_costs(m: Any) -> None:
    """x = 3, y = 1."""
    m.x, m.y = pyo.Var(bounds=NON_NEGATIVE), pyo.Var(bounds=NON_NEGATIVE)
    m.a = pyo.Constraint(expr=m.x + m.y <= 4)
    m.b = pyo.Constraint(expr=m.x + 3 * m.y <= 6)
    m.gain = pyo.Objective(expr=2e-6 * m.x + 3e-6 * m.y, sense=pyo.maximize)


@case(LP, 1.5)
def tiny_rows(m: Any) -> None:
    """1e-5 x + 2e-5 y >= 3e-5 by y alone."""
    m.x, m.y = pyo.Var(bounds=NON_NEGATIVE), pyo.Var(bounds=NON_NEGATIVE)
    m.row = pyo.Constraint(expr=1e-5 * m.x + 2e-5 * m.y >= 3e-5)
    m.cost = pyo.Objective(expr=m.x + m.y)


@case(LP, 9e9)
def huge_numbers(m: Any) -> None:
    """x = 3000, y = 1000."""
    m.x, m.y = pyo.Var(bounds=(0, 1e7)), pyo.Var(bounds=(0, 1e7))
    m.a = pyo.Constraint(expr=1e3 * m.x + 1e3 * m.y <= 4e6)
    m.b = pyo.Constraint(expr=m.x + 3 * m.y <= 6000)
    m.gain = pyo.Objective(expr=2e6 * m.x + 3e6 * m.y, sense=pyo.maximize)


@case(LP, 1.5)
def mixed_units(m: Any) -> None:
    """x, of 1e-5, gives one half at a cost of one half; y, of 1e4, the other half at a cost of 1."""
    m.x, m.y = pyo.Var(bounds=(0, 5e-5)), pyo.Var(bounds=(0, 1e4))
    m.row = pyo.Constraint(expr=1e4 * m.x + 1e-4 * m.y >= 1)
    m.cost = pyo.Objective(expr=1e4 * m.x + 2e-4 * m.y)


@case(LP, 0.0)
def no_objective(m: Any) -> None:
    """Any point will do, and the objective is 0."""
    m.x, m.y = pyo.Var(bounds=NON_NEGATIVE), pyo.Var(bounds=NON_NEGATIVE)
    m.row = pyo.Constraint(expr=m.x + m.y == 3)


@case(LP, 7.0)
def constant_objective(m: Any) -> None:
    """An objective without variables."""
    m.x = pyo.Var(bounds=(0, 5))
    m.row = pyo.Constraint(expr=2 * m.x >= 1)
    m.cost = pyo.Objective(expr=7.0, sense=pyo.maximize)


@case(LP, -17.0)
def no_rows(m: Any) -> None:
    """Bounds alone: x = -1, y = 5."""
    m.x, m.y = pyo.Var(bounds=(-1, 4)), pyo.Var(bounds=(0, 5))
    m.cost = pyo.Objective(expr=2 * m.x - 3 * m.y)


@case(LP, 0.0)
def empty(_m: Any) -> None:
    """Nothing at all."""


@case(LP, 4.5)
def all_fixed(m: Any) -> None:
    """Rows and objective that are constants."""
    m.x, m.y = pyo.Var(), pyo.Var(bounds=(0, 9))
    m.x.fix(1.5)
    m.true = pyo.Constraint(expr=m.x <= 2)
    m.cost = pyo.Objective(expr=3 * m.x)


@case(LP, data=[((0.0, 0.0), 4.0), ((3.0, 3.0), 0.0), ((1.0, -2.0), 5.0)])
def nearest_by_steps(m: Any) -> None:
    """The least l1 distance from x0 to x1 + x2 >= 4 is what is missing."""
    m.x0, m.x, m.t = pyo.Var(range(2)), pyo.Var(range(2), bounds=(-10, 10)), pyo.Var(range(2))
    m.up = pyo.Constraint(range(2), rule=lambda m, j: m.x[j] - m.x0[j] <= m.t[j])
    m.down = pyo.Constraint(range(2), rule=lambda m, j: m.x0[j] - m.x[j] <= m.t[j])
    m.reach = pyo.Constraint(expr=m.x[0] + m.x[1] >= 4)
    m.cost = pyo.Objective(expr=m.t[0] + m.t[1])


@case(LP, status=Status.INFEASIBLE)
def circle_of_rows(m: Any) -> None:
    """Each of three free variables would exceed the next by 1."""
    m.x = pyo.Var(range(3))
    m.row = pyo.Constraint(range(3), rule=lambda m, k: m.x[k] - m.x[(k + 1) % 3] >= 1)
    m.cost = pyo.Objective(expr=m.x[0])


@case(LP, status=Status.INFEASIBLE)
def crossed_bounds(m: Any) -> None:
    """A variable between 3 and 2."""
    m.x, m.y = pyo.Var(bounds=(3, 2)), pyo.Var(bounds=(0, 1))
    m.row = pyo.Constraint(expr=m.x + m.y >= 0)
    m.cost = pyo.Objective(expr=m.x)


@case(LP, status=Status.INFEASIBLE)
def false_constant(m: Any) -> None:
    """A row of a fixed variable cannot hold."""
    m.f, m.x = pyo.Var(), pyo.Var(bounds=(0, 1))
    m.f.fix(1)
    m.row = pyo.Constraint(expr=m.f >= 2)
    m.cost = pyo.Objective(expr=m.x)


@case(LP, status=Status.INFEASIBLE)
def infeasible_with_a_ray(m: Any) -> None:
    """The objective falls for ever along x and y, but no z is both 1 and 2 below y."""
    m.x, m.y, m.z = pyo.Var(bounds=NON_NEGATIVE), pyo.Var(bounds=NON_NEGATIVE), pyo.Var(bounds=NON_NEGATIVE)
    m.one = pyo.Constraint(expr=m.y - m.z == 1)
    m.two = pyo.Constraint(expr=m.y - m.z == 2)
    m.row = pyo.Constraint(expr=m.x - m.y <= 3)
    m.cost = pyo.Objective(expr=-m.x - m.y)


@case(LP, status=Status.UNBOUNDED)
def unbounded(m: Any) -> None:
    """x - y = 2 + y along the row, for every y."""
    m.x, m.y = pyo.Var(bounds=NON_NEGATIVE), pyo.Var(bounds=NON_NEGATIVE)
    m.row = pyo.Constraint(expr=m.x - 2 * m.y <= 2)
    m.gain = pyo.Objective(expr=m.x - m.y, sense=pyo.maximize)


@case(LP, status=Status.UNBOUNDED)
def unbounded_line(m: Any) -> None:
    """Two free variables that an equation ties together."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.row = pyo.Constraint(expr=m.x - m.y == 0)
    m.cost = pyo.Objective(expr=m.x + m.y)


@case(LP, status=Status.UNBOUNDED)
def unbounded_without_rows(m: Any) -> None:
    """No row and no lower bound."""
    m.x = pyo.Var(bounds=(None, 3))
    m.cost = pyo.Objective(expr=m.x)
