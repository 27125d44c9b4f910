"""Mixed-integer linear programs."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from battery.case import case
from ceopt.solvers import ProblemClass, Status

MILP = ProblemClass.MILP

VALUES = (10, 13, 18, 31, 7, 15, 22, 9)
WEIGHTS = (2, 3, 4, 7, 2, 4, 5, 3)


def knapsack(m: Any, room: Any, unit: float = 1.0) -> None:
    """Eight things into some room."""
    m.take = pyo.Var(range(8), domain=pyo.Binary)
    m.room = pyo.Constraint(expr=sum(w * m.take[j] for j, w in enumerate(WEIGHTS)) <= room)
    m.gain = pyo.Objective(expr=sum(unit * v * m.take[j] for j, v in enumerate(VALUES)), sense=pyo.maximize)


@case(MILP, 66.0)
def take_some(m: Any) -> None:
    """Room 15, by enumeration of the 256 sets: things 1, 3 and 6 (or 0, 2, 3 and 4)."""
    knapsack(m, 15)


@case(MILP, 66e-7)
def tiny_values(m: Any) -> None:
    """The same in units of ten millions: differences of 1e-7 count."""
    knapsack(m, 15, 1e-7)


@case(MILP, data=[(15.0, 66.0), (3.0, 13.0), (30.0, 125.0)])
def room_as_data(m: Any) -> None:
    """The room is a column."""
    m.x0 = pyo.Var()
    knapsack(m, m.x0)


@case(MILP, 40.0)
def far_from_rounding(m: Any) -> None:
    """The relaxation ends at (2.25, 3.75) with 41.25, the integers at (0, 5)."""
    m.x, m.y = (pyo.Var(domain=pyo.NonNegativeIntegers) for _ in range(2))
    m.a = pyo.Constraint(expr=m.x + m.y <= 6)
    m.b = pyo.Constraint(expr=5 * m.x + 9 * m.y <= 45)
    m.gain = pyo.Objective(expr=5 * m.x + 8 * m.y, sense=pyo.maximize)


@case(MILP, -17.0)
def negative_integers(m: Any) -> None:
    """Both rows end at (-5, -1)."""
    m.x, m.y = (pyo.Var(domain=pyo.Integers, bounds=(-10, 10)) for _ in range(2))
    m.a = pyo.Constraint(expr=m.x + 2 * m.y >= -7.5)
    m.b = pyo.Constraint(expr=2 * m.x - m.y >= -9.5)
    m.cost = pyo.Objective(expr=3 * m.x + 2 * m.y)


@case(MILP, 50.0)
def fixed_charges(m: Any) -> None:
    """Big-M, and a loose one: two plants must open, and the first two cost 12 + 20 + 10 + 2 * 4."""
    charge, cost = (12, 20, 5), (2, 1, 4)
    m.z, m.x = pyo.Var(range(3), domain=pyo.Binary), pyo.Var(range(3), bounds=(0, 10))
    m.open = pyo.Constraint(range(3), rule=lambda m, k: m.x[k] <= 500 * m.z[k])
    m.demand = pyo.Constraint(expr=m.x[0] + m.x[1] + m.x[2] >= 14)
    m.cost = pyo.Objective(expr=sum(charge[k] * m.z[k] + cost[k] * m.x[k] for k in range(3)))


@case(MILP, 6.0)
def diophantine(m: Any) -> None:
    """6x + 10y + 15z = 49: z is odd and below 3, so z = 1 and 3x + 5y = 17, x = 4, y = 1."""
    m.x = pyo.Var(range(3), domain=pyo.NonNegativeIntegers, bounds=(0, 9))
    m.row = pyo.Constraint(expr=6 * m.x[0] + 10 * m.x[1] + 15 * m.x[2] == 49)
    m.cost = pyo.Objective(expr=sum(m.x.values()))


@case(MILP, 13.0)
def assignment(m: Any) -> None:
    """Four people and jobs: 2 + 4 + 1 + 6, the least of the 24 permutations."""
    cost = ((9, 2, 7, 8), (6, 4, 3, 7), (5, 8, 1, 8), (7, 6, 9, 4))
    m.x = pyo.Var(range(4), range(4), domain=pyo.Binary)
    m.row = pyo.Constraint(range(4), rule=lambda m, i: sum(m.x[i, j] for j in range(4)) == 1)
    m.column = pyo.Constraint(range(4), rule=lambda m, j: sum(m.x[i, j] for i in range(4)) == 1)
    m.cost = pyo.Objective(expr=sum(cost[i][j] * m.x[i, j] for i in range(4) for j in range(4)))


@case(MILP, 3.0)
def odd_cycle_cover(m: Any) -> None:
    """The edges of a cycle of five need three corners; the relaxation takes a half of each."""
    m.x = pyo.Var(range(5), domain=pyo.Binary)
    m.edge = pyo.Constraint(range(5), rule=lambda m, k: m.x[k] + m.x[(k + 1) % 5] >= 1)
    m.cost = pyo.Objective(expr=sum(m.x.values()))


@case(MILP, 0.8)
def either_or(m: Any) -> None:
    """The nearest point to 2.2 of [0, 1] and [3, 4] is 3."""
    m.x, m.t, m.z = pyo.Var(bounds=(0, 4)), pyo.Var(), pyo.Var(domain=pyo.Binary)
    m.low = pyo.Constraint(expr=m.x <= 1 + 3 * m.z)
    m.high = pyo.Constraint(expr=m.x >= 3 * m.z)
    m.up = pyo.Constraint(expr=m.x - 2.2 <= m.t)
    m.down = pyo.Constraint(expr=2.2 - m.x <= m.t)
    m.cost = pyo.Objective(expr=m.t)


@case(MILP, 18.0)
def fractional_bounds(m: Any) -> None:
    """Integers between -2.5 and 3.7, no rows: 3 and -2, and 0.5 * 4 for the continuous one, and a constant 10."""
    m.x = pyo.Var(range(2), domain=pyo.Integers, bounds=(-2.5, 3.7))
    m.y = pyo.Var(bounds=(0, 4))
    m.gain = pyo.Objective(expr=2 * m.x[0] - 0 * m.x[1] + 0.5 * m.y + 10, sense=pyo.maximize)


@case(MILP, 11.0)
def fixed_integers(m: Any) -> None:
    """One integer is fixed, one held by its bounds, and the third follows: 4 + 2 + 5."""
    m.x = pyo.Var(range(3), domain=pyo.Integers, bounds=(0, 9))
    m.x[0].fix(4)
    m.x[1].setlb(2)
    m.x[1].setub(2)
    m.row = pyo.Constraint(expr=2 * m.x[2] >= m.x[0] + m.x[1] + 2.5)
    m.cost = pyo.Objective(expr=sum(m.x.values()))


@case(MILP, 0.0)
def queens(m: Any) -> None:
    """No objective: four queens that do not attack each other."""
    squares = [(i, j) for i in range(4) for j in range(4)]
    m.q = pyo.Var(squares, domain=pyo.Binary)
    m.row = pyo.Constraint(range(4), rule=lambda m, i: sum(m.q[i, j] for j in range(4)) == 1)
    m.column = pyo.Constraint(range(4), rule=lambda m, j: sum(m.q[i, j] for i in range(4)) == 1)
    m.down = pyo.Constraint(range(-2, 3), rule=lambda m, d: sum(m.q[s] for s in squares if s[0] - s[1] == d) <= 1)
    m.up = pyo.Constraint(range(1, 6), rule=lambda m, d: sum(m.q[s] for s in squares if s[0] + s[1] == d) <= 1)


@case(MILP, 123457.0)
def great_integers(m: Any) -> None:
    """The least whole number of 8.1 that is at least 1e6: 123457."""
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 10**6))
    m.row = pyo.Constraint(expr=8.1 * m.x >= 1e6)
    m.cost = pyo.Objective(expr=m.x)


@case(MILP, status=Status.INFEASIBLE)
def parity(m: Any) -> None:
    """2x + 4y is never odd."""
    m.x = pyo.Var(range(2), domain=pyo.Integers, bounds=(0, 10))
    m.row = pyo.Constraint(expr=2 * m.x[0] + 4 * m.x[1] == 7)
    m.cost = pyo.Objective(expr=m.x[0])


@case(MILP, status=Status.INFEASIBLE)
def parity_with_a_ray(m: Any) -> None:
    """The relaxation is unbounded, but 2y = 5 has no integer solution."""
    m.x, m.y = pyo.Var(domain=pyo.Integers), pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    m.row = pyo.Constraint(expr=2 * m.y == 5)
    m.cost = pyo.Objective(expr=m.x)


@case(MILP, status=Status.INFEASIBLE)
def pigeons(m: Any) -> None:
    """Four pigeons in three holes; as fractions they fit."""
    m.x = pyo.Var(range(4), range(3), domain=pyo.Binary)
    m.somewhere = pyo.Constraint(range(4), rule=lambda m, i: sum(m.x[i, j] for j in range(3)) >= 1)
    m.apart = pyo.Constraint(
        [(i, k, j) for k in range(4) for i in range(k) for j in range(3)],
        rule=lambda m, i, k, j: m.x[i, j] + m.x[k, j] <= 1,
    )


@case(MILP, status=Status.UNBOUNDED)
def unbounded_integers(m: Any) -> None:
    """x falls for ever."""
    m.x, m.y = pyo.Var(domain=pyo.Integers), pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.row = pyo.Constraint(expr=m.x + 2 * m.y <= 7)
    m.cost = pyo.Objective(expr=m.x - m.y)
