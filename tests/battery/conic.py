"""Second-order, semidefinite and exponential cones, by cone expressions and by quadratic rows, with integers too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo

from battery.case import case
from ceopt.solvers import ProblemClass, Status
from ceopt.solvers.cones import exponential, psd, psd_affine, rotated_soc, soc

SOCP, MISOCP = ProblemClass.SOCP, ProblemClass.MISOCP
SDP, EXP = ProblemClass.SDP, ProblemClass.EXP
MISDP, MIEXP = ProblemClass.MISDP, ProblemClass.MIEXP


# ---- SOCP ------------------------------------------------------------------------------------------------------------
@case(SOCP, 3.0)
def to_the_half_plane(m: Any) -> None:
    """(1, 2) is (26 - 11) / 5 from 3x + 4y >= 26."""
    m.x, m.y, m.t = pyo.Var(), pyo.Var(), pyo.Var()
    m.reach = pyo.Constraint(expr=3 * m.x + 4 * m.y >= 26)
    m.near = pyo.Constraint(expr=soc(m.t, [m.x - 1, m.y - 2]) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(SOCP, math.sqrt(2))
def disc(m: Any) -> None:
    """A quadratic row: x + y on the unit disc."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.disc = pyo.Constraint(expr=m.x**2 + m.y**2 <= 1)
    m.gain = pyo.Objective(expr=m.x + m.y, sense=pyo.maximize)


@case(SOCP, math.sqrt(2))
def cone_as_a_row(m: Any) -> None:
    """x^2 + y^2 <= t^2, t >= 0: a cone, although its matrix is indefinite."""
    m.x, m.y, m.t = pyo.Var(), pyo.Var(), pyo.Var(bounds=(0, None))
    m.cone = pyo.Constraint(expr=m.x**2 + m.y**2 <= m.t**2)
    m.row = pyo.Constraint(expr=m.x + m.y >= 2)
    m.cost = pyo.Objective(expr=m.t)


@case(SOCP, 3 * math.sqrt(2))
def rotated(m: Any) -> None:
    """2tu >= 9, so t + u is at least 2 sqrt(4.5)."""
    m.t, m.u, m.v = pyo.Var(), pyo.Var(), pyo.Var()
    m.cone = pyo.Constraint(expr=rotated_soc(m.t, m.u, [m.v]) >= 0)
    m.three = pyo.Constraint(expr=m.v == 3)
    m.cost = pyo.Objective(expr=m.t + m.u)


@case(SOCP, math.sqrt(2))
def geometric_mean(m: Any) -> None:
    """z^2 <= xy, a product row; x + 2y <= 4 is used half and half: x = 2, y = 1."""
    m.x, m.y, m.z = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(0, None)), pyo.Var()
    m.mean = pyo.Constraint(expr=m.z**2 <= m.x * m.y)
    m.row = pyo.Constraint(expr=m.x + 2 * m.y <= 4)
    m.gain = pyo.Objective(expr=m.z, sense=pyo.maximize)


@case(SOCP, 2 * math.sqrt(3))
def fermat_point(m: Any) -> None:
    """The least sum of distances to the corners of an equilateral triangle of side 2."""
    corners = ((0.0, 0.0), (2.0, 0.0), (1.0, math.sqrt(3)))
    m.x, m.y, m.t = pyo.Var(), pyo.Var(), pyo.Var(range(3))
    m.far = pyo.Constraint(range(3), rule=lambda m, k: soc(m.t[k], [m.x - corners[k][0], m.y - corners[k][1]]) >= 0)
    m.cost = pyo.Objective(expr=sum(m.t.values()))


@case(SOCP, 0.75)
def affine_head(m: Any) -> None:
    """x + sqrt(x^2 + 1) <= 2; squared, 1 <= 4 - 4x."""
    m.x = pyo.Var()
    m.cone = pyo.Constraint(expr=soc(2 - m.x, [m.x, 1]) >= 0)
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)


@case(SOCP, math.sqrt(30))
def long_cone(m: Any) -> None:
    """The least norm of thirty numbers of sum 30."""
    m.x, m.t = pyo.Var(range(30)), pyo.Var()
    m.sum = pyo.Constraint(expr=sum(m.x.values()) == 30)
    m.norm = pyo.Constraint(expr=soc(m.t, m.x) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(SOCP, 4 * math.sqrt(2) - 9)
def disc_and_squares(m: Any) -> None:
    """A quadratic objective and row, an equation, a range and a fixed variable: from (2, 2) to the unit disc."""
    m.x, m.y, m.z, m.f = pyo.Var(), pyo.Var(), pyo.Var(), pyo.Var()
    m.f.fix(2)
    m.disc = pyo.Constraint(expr=m.x**2 + m.y**2 <= 1)
    m.same = pyo.Constraint(expr=m.z == m.y)
    m.wide = pyo.Constraint(expr=(-3, m.x + m.y, 3))
    m.gain = pyo.Objective(expr=-((m.x - m.f) ** 2) - (m.z - m.f) ** 2, sense=pyo.maximize)


@case(SOCP, 1 - math.sqrt(5))
def ellipse(m: Any) -> None:
    """A quadratic row with a linear part: (x - 1)^2 + 4 y^2 <= 4; x - y is 1 less sqrt(4 + 1) at least."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.inside = pyo.Constraint(expr=m.x**2 - 2 * m.x + 4 * m.y**2 <= 3)
    m.cost = pyo.Objective(expr=m.x - m.y)


@case(SOCP, 1e3 + 5e3)
def far_disc(m: Any) -> None:
    """Great numbers: centre (1000, 0), radius 5000."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.disc = pyo.Constraint(expr=soc(5e3, [m.x - 1e3, m.y]) >= 0)
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)


@case(SOCP, data=[((1.0, 2.0), 3.0), ((5.0, 5.0), 0.0), ((0.0, 0.0), 5.2)])
def distance_of_data(m: Any) -> None:
    """From x0 to 3x + 4y >= 26; 0 inside, at the tip of the cone."""
    m.x0, m.x, m.t = pyo.Var(range(2)), pyo.Var(range(2)), pyo.Var()
    m.reach = pyo.Constraint(expr=3 * m.x[0] + 4 * m.x[1] >= 26)
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[j] - m.x0[j] for j in range(2)]) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(SOCP, status=Status.INFEASIBLE)
def beside_the_disc(m: Any) -> None:
    """The line x + y = 2 is sqrt(2) from the centre of the unit disc."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.disc = pyo.Constraint(expr=soc(1, [m.x, m.y]) >= 0)
    m.line = pyo.Constraint(expr=m.x + m.y >= 2)
    m.cost = pyo.Objective(expr=m.x)


@case(SOCP, status=Status.INFEASIBLE)
def cone_of_a_constant(m: Any) -> None:
    """A fixed variable leaves |(1, 1)| <= 1."""
    m.f, m.x = pyo.Var(), pyo.Var(bounds=(0, 1))
    m.f.fix(1)
    m.cone = pyo.Constraint(expr=soc(m.f, [m.f, 1]) >= 0)
    m.cost = pyo.Objective(expr=m.x)


@case(SOCP, status=Status.UNBOUNDED)
def open_cone(m: Any) -> None:
    """Nothing holds t back."""
    m.x, m.y, m.t = pyo.Var(), pyo.Var(), pyo.Var()
    m.cone = pyo.Constraint(expr=soc(m.t, [m.x, m.y]) >= 0)
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)


# ---- MISOCP ----------------------------------------------------------------------------------------------------------
@case(MISOCP, 11.0)
def integers_in_a_disc(m: Any) -> None:
    """2x + 3y of the whole points with x^2 + y^2 <= 10.5: (1, 3)."""
    m.x, m.y = (pyo.Var(domain=pyo.Integers, bounds=(-5, 5)) for _ in range(2))
    m.disc = pyo.Constraint(expr=m.x**2 + m.y**2 <= 10.5)
    m.gain = pyo.Objective(expr=2 * m.x + 3 * m.y, sense=pyo.maximize)


@case(MISOCP, math.sqrt(4.52))
def nearest_whole_point(m: Any) -> None:
    """From (0.4, 0.6) to x + y >= 4: (2, 2) is nearer than (1, 3)."""
    m.x, m.y = (pyo.Var(domain=pyo.Integers, bounds=(-5, 5)) for _ in range(2))
    m.t = pyo.Var(bounds=(0, 100))
    m.reach = pyo.Constraint(expr=m.x + m.y >= 4)
    m.near = pyo.Constraint(expr=soc(m.t, [m.x - 0.4, m.y - 0.6]) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(MISOCP, math.sqrt(2))
def circle_but_for_one(m: Any) -> None:
    """The smallest disc around all but one of (0, 0), (2, 0), (0, 2), (10, 10), by big-M in the cone."""
    points = ((0, 0), (2, 0), (0, 2), (10, 10))
    m.x, m.y, m.r = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 20))
    m.out = pyo.Var(range(4), domain=pyo.Binary)
    m.one = pyo.Constraint(expr=sum(m.out.values()) <= 1)
    m.inside = pyo.Constraint(
        range(4), rule=lambda m, k: soc(m.r + 20 * m.out[k], [m.x - points[k][0], m.y - points[k][1]]) >= 0
    )
    m.cost = pyo.Objective(expr=m.r)


@case(MISOCP, 0.16)
def square_of_an_integer(m: Any) -> None:
    """t >= (x - 2.6)^2 by a rotated cone; x = 3."""
    m.x, m.t = pyo.Var(domain=pyo.Integers, bounds=(-9, 9)), pyo.Var(bounds=(0, 1000))
    m.square = pyo.Constraint(expr=rotated_soc(m.t, 0.5, [m.x - 2.6]) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(MISOCP, 2.0)
def squares_in_a_disc(m: Any) -> None:
    """A quadratic objective too: of the whole points with x^2 + y^2 <= 10.5, (2, 2) is nearest to (3, 3)."""
    m.x, m.y = (pyo.Var(domain=pyo.Integers, bounds=(-5, 5)) for _ in range(2))
    m.disc = pyo.Constraint(expr=m.x**2 + m.y**2 <= 10.5)
    m.cost = pyo.Objective(expr=(m.x - 3) ** 2 + (m.y - 3) ** 2)


@case(MISOCP, data=[((0.4, 0.6), math.sqrt(4.52)), ((5.0, 0.0), 0.0), ((3.0, 0.2), math.sqrt(0.64))])
def whole_distance_of_data(m: Any) -> None:
    """From x0 to the whole points of x + y >= 4: (2, 2), itself, (3, 1)."""
    m.x0, m.x = pyo.Var(range(2)), pyo.Var(range(2), domain=pyo.Integers, bounds=(-5, 5))
    m.t = pyo.Var(bounds=(0, 100))
    m.reach = pyo.Constraint(expr=m.x[0] + m.x[1] >= 4)
    m.near = pyo.Constraint(expr=soc(m.t, [m.x[j] - m.x0[j] for j in range(2)]) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(MISOCP, status=Status.INFEASIBLE)
def between_the_integers(m: Any) -> None:
    """No whole point is within a half of (0.5, 0.5)."""
    m.x, m.y = (pyo.Var(domain=pyo.Integers, bounds=(-5, 5)) for _ in range(2))
    m.disc = pyo.Constraint(expr=soc(0.5, [m.x - 0.5, m.y - 0.5]) >= 0)
    m.cost = pyo.Objective(expr=m.x)


# ---- SDP -------------------------------------------------------------------------------------------------------------
def chain() -> Any:
    """2 on the diagonal, -1 beside it; its greatest eigenvalue is 2 + sqrt(2)."""
    return np.array([[2.0, -1, 0], [-1, 2, -1], [0, -1, 2]])


def matrix(variables: Any, side: int) -> list[list[Any]]:
    """The symmetric matrix of variables indexed (i, j), i <= j."""
    return [[variables[min(i, j), max(i, j)] for j in range(side)] for i in range(side)]


def upper(side: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(side) for j in range(i, side)]


@case(SDP, 2 + math.sqrt(2))
def greatest_eigenvalue(m: Any) -> None:
    """tI - A is semidefinite, coefficients as arrays."""
    m.t = pyo.Var()
    m.lmi = pyo.Constraint(expr=psd_affine(-chain(), [np.eye(3)], [m.t]) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(SDP, 2.0)
def hyperbola(m: Any) -> None:
    """xy >= 1."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.lmi = pyo.Constraint(expr=psd([[m.x, 1], [1, m.y]]) >= 0)
    m.cost = pyo.Objective(expr=m.x + m.y)


@case(SDP, -0.5)
def correlation(m: Any) -> None:
    """Both of two things correlate with a third by a half, and so with each other by 0.25 - 0.75 at least."""
    m.x = pyo.Var()
    m.lmi = pyo.Constraint(expr=psd([[1, 0.5, m.x], [0.5, 1, 0.5], [m.x, 0.5, 1]]) >= 0)
    m.cost = pyo.Objective(expr=m.x)


@case(SDP, 2.5 * (1 - math.cos(0.8 * math.pi)))
def cut_of_a_cycle(m: Any) -> None:
    """Goemans and Williamson's bound for the cycle of five: neighbours at 144 degrees."""
    m.x = pyo.Var(upper(5))
    m.diagonal = pyo.Constraint(range(5), rule=lambda m, k: m.x[k, k] == 1)
    m.lmi = pyo.Constraint(expr=psd(matrix(m.x, 5)) >= 0)
    edges = [(min(k, (k + 1) % 5), max(k, (k + 1) % 5)) for k in range(5)]
    m.cut = pyo.Objective(expr=sum(0.5 * (1 - m.x[e]) for e in edges), sense=pyo.maximize)


@case(SDP, math.sqrt(5))
def lovasz(m: Any) -> None:
    """Lovasz's number of the cycle of five."""
    m.x = pyo.Var(upper(5))
    m.trace = pyo.Constraint(expr=sum(m.x[k, k] for k in range(5)) == 1)
    m.edge = pyo.Constraint(range(5), rule=lambda m, k: m.x[min(k, (k + 1) % 5), max(k, (k + 1) % 5)] == 0)
    m.lmi = pyo.Constraint(expr=psd(matrix(m.x, 5)) >= 0)
    m.gain = pyo.Objective(expr=sum((1 if i == j else 2) * m.x[i, j] for i, j in upper(5)), sense=pyo.maximize)


@case(SDP, 4 * math.sqrt(5))
def nuclear_norm(m: Any) -> None:
    """((3, 0), (4, 5)) has the singular values 3 sqrt(5) and sqrt(5)."""
    m.u, m.v = pyo.Var(upper(2)), pyo.Var(upper(2))
    given = ((3.0, 0.0), (4.0, 5.0))
    u, v = matrix(m.u, 2), matrix(m.v, 2)
    rows = [[*u[i], *given[i]] for i in range(2)] + [[given[0][i], given[1][i], *v[i]] for i in range(2)]
    m.lmi = pyo.Constraint(expr=psd(rows) >= 0)
    m.cost = pyo.Objective(expr=0.5 * (m.u[0, 0] + m.u[1, 1] + m.v[0, 0] + m.v[1, 1]))


@case(SDP, 9.0)
def nearest_semidefinite(m: Any) -> None:
    """A quadratic objective: ((1, 2), (2, -2)) has the eigenvalues 2 and -3."""
    m.x = pyo.Var(upper(2))
    m.lmi = pyo.Constraint(expr=psd(matrix(m.x, 2)) >= 0)
    m.cost = pyo.Objective(expr=(m.x[0, 0] - 1) ** 2 + 2 * (m.x[0, 1] - 2) ** 2 + (m.x[1, 1] + 2) ** 2)


@case(SDP, 1 + math.sqrt(3))
def mixed_cones(m: Any) -> None:
    """A matrix (|x| <= 1), a second-order cone (y^2 + z^2 <= 4), an equation z = 1, a range and a fixed variable."""
    m.x, m.y, m.z, m.f = pyo.Var(), pyo.Var(), pyo.Var(), pyo.Var()
    m.f.fix(1)
    m.lmi = pyo.Constraint(expr=psd([[m.f, m.x], [m.x, 1]]) >= 0)
    m.cone = pyo.Constraint(expr=soc(2 * m.f, [m.y, m.z]) >= 0)
    m.one = pyo.Constraint(expr=m.z == m.f)
    m.wide = pyo.Constraint(expr=(-5, m.x + m.y, 3))
    m.gain = pyo.Objective(expr=m.x + m.y, sense=pyo.maximize)


@case(SDP, 2.0)
def one_by_one(m: Any) -> None:
    """A matrix of one entry."""
    m.x = pyo.Var()
    m.lmi = pyo.Constraint(expr=psd([[m.x - 2]]) >= 0)
    m.cost = pyo.Objective(expr=m.x)


@case(SDP, data=[(0.0, 1.0), (2.0, math.sqrt(5)), (-1.0, math.sqrt(2))])
def eigenvalue_of_data(m: Any) -> None:
    """((a, 1), (1, -a)) has the eigenvalues +-sqrt(a^2 + 1)."""
    m.x0, m.t = pyo.Var(), pyo.Var()
    m.lmi = pyo.Constraint(expr=psd([[m.t - m.x0, -1], [-1, m.t + m.x0]]) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(SDP, status=Status.INFEASIBLE)
def no_such_matrix(m: Any) -> None:
    """x (1 - x) is never 4."""
    m.x = pyo.Var()
    m.lmi = pyo.Constraint(expr=psd([[m.x, 2], [2, 1 - m.x]]) >= 0)
    m.cost = pyo.Objective(expr=m.x)


@case(SDP, status=Status.UNBOUNDED)
def matrix_for_ever(m: Any) -> None:
    """The diagonal may grow."""
    m.x, m.y = pyo.Var(), pyo.Var()
    m.lmi = pyo.Constraint(expr=psd([[m.x, 1], [1, m.y]]) >= 0)
    m.gain = pyo.Objective(expr=m.x + m.y, sense=pyo.maximize)


# ---- exponential cones -----------------------------------------------------------------------------------------------
@case(EXP, math.log(2))
def logarithms(m: Any) -> None:
    """log x + log y with x + 2y <= 4: x = 2, y = 1."""
    m.x, m.s = pyo.Var(range(2)), pyo.Var(range(2))
    m.log = pyo.Constraint(range(2), rule=lambda m, k: exponential(m.s[k], 1, m.x[k]) >= 0)
    m.row = pyo.Constraint(expr=m.x[0] + 2 * m.x[1] <= 4)
    m.gain = pyo.Objective(expr=m.s[0] + m.s[1], sense=pyo.maximize)


@case(EXP, 1 + math.log(2))
def soft_maximum(m: Any) -> None:
    """log(exp x + exp y) with x + y >= 2: x = y = 1."""
    m.x, m.u, m.t = pyo.Var(range(2)), pyo.Var(range(2)), pyo.Var()
    m.part = pyo.Constraint(range(2), rule=lambda m, k: exponential(m.x[k] - m.t, 1, m.u[k]) >= 0)
    m.whole = pyo.Constraint(expr=m.u[0] + m.u[1] <= 1)
    m.row = pyo.Constraint(expr=m.x[0] + m.x[1] >= 2)
    m.cost = pyo.Objective(expr=m.t)


@case(EXP, math.log(3))
def entropy(m: Any) -> None:
    """The greatest entropy of three outcomes; the middle entry is a variable."""
    m.p, m.t = pyo.Var(range(3), bounds=(0, 1)), pyo.Var(range(3))
    m.part = pyo.Constraint(range(3), rule=lambda m, k: exponential(m.t[k], m.p[k], 1) >= 0)
    m.whole = pyo.Constraint(expr=sum(m.p.values()) == 1)
    m.gain = pyo.Objective(expr=sum(m.t.values()), sense=pyo.maximize)


@case(EXP, math.exp(-0.8))
def disc_and_exponential(m: Any) -> None:
    """y = 0.6 leaves x >= -0.8 on the unit disc."""
    m.x, m.y, m.z = pyo.Var(), pyo.Var(), pyo.Var()
    m.disc = pyo.Constraint(expr=soc(1, [m.x, m.y]) >= 0)
    m.height = pyo.Constraint(expr=m.y == 0.6)
    m.exp = pyo.Constraint(expr=exponential(m.x, 1, m.z) >= 0)
    m.cost = pyo.Objective(expr=m.z)


@case(EXP, data=[(0.0, math.log(2)), (1.0, math.log1p(math.exp(-1))), (-2.0, math.log1p(math.exp(2)))])
def logistic_loss(m: Any) -> None:
    """log(1 + exp(-x)) with x at most x0."""
    m.x0, m.x, m.u, m.t = pyo.Var(), pyo.Var(), pyo.Var(range(2)), pyo.Var()
    m.one = pyo.Constraint(expr=exponential(-m.t, 1, m.u[0]) >= 0)
    m.two = pyo.Constraint(expr=exponential(-m.x - m.t, 1, m.u[1]) >= 0)
    m.whole = pyo.Constraint(expr=m.u[0] + m.u[1] <= 1)
    m.least = pyo.Constraint(expr=m.x <= m.x0)
    m.cost = pyo.Objective(expr=m.t)


@case(EXP, status=Status.INFEASIBLE)
def above_the_exponential(m: Any) -> None:
    """exp 2 is above 7."""
    m.x, m.z = pyo.Var(bounds=(2, None)), pyo.Var(bounds=(None, 7))
    m.exp = pyo.Constraint(expr=exponential(m.x, 1, m.z) >= 0)
    m.cost = pyo.Objective(expr=m.x)


@case(EXP, status=Status.UNBOUNDED)
def exponential_for_ever(m: Any) -> None:
    """Nothing holds the cone back along (1, 1, e)."""
    m.x, m.y, m.z = pyo.Var(), pyo.Var(), pyo.Var()
    m.exp = pyo.Constraint(expr=exponential(m.x, m.y, m.z) >= 0)
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)


# ---- cones that few take with integers -------------------------------------------------------------------------------
@case(MISDP, 4.0)
def whole_eigenvalue(m: Any) -> None:
    """The least integer above 2 + sqrt(2)."""
    m.t = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    m.lmi = pyo.Constraint(expr=psd_affine(-chain(), [np.eye(3)], [m.t]) >= 0)
    m.cost = pyo.Objective(expr=m.t)


@case(MIEXP, 3.0)
def whole_exponential(m: Any) -> None:
    """The least integer above e."""
    m.z = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    m.exp = pyo.Constraint(expr=exponential(1, 1, m.z) >= 0)
    m.cost = pyo.Objective(expr=m.z)


# ---- exponential cones beside a quadratic that is not convex ---------------------------------------------------------
NONCONVEX_EXP = ProblemClass.NONCONVEX_EXP


@case(NONCONVEX_EXP, math.e)
def product_above_an_exponential(m: Any) -> None:
    """z is at least exp(y) and y at least 1 / x, where x is at most 1."""
    m.x, m.y, m.z = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(-3, 3)), pyo.Var()
    m.exp = pyo.Constraint(expr=exponential(m.y, 1, m.z) >= 0)
    m.product = pyo.Constraint(expr=m.x * m.y == 1)
    m.cost = pyo.Objective(expr=m.z)


@case(NONCONVEX_EXP, 1 / (1 + math.exp(1.5)))
def logistic_link(m: Any) -> None:
    """a is 1 / (1 + exp(s)): at most by u, and at least by v = exp(-s); so that of the least s is the greatest."""
    m.s, m.a = pyo.Var(bounds=(1.5, 4)), pyo.Var(bounds=(0, 1))
    m.u, m.v = pyo.Var(), pyo.Var()
    m.up = pyo.Constraint(expr=exponential(m.s, 1, m.u) >= 0)
    m.down = pyo.Constraint(expr=exponential(-m.s, 1, m.v) >= 0)
    m.most = pyo.Constraint(expr=m.a + m.a * m.u <= 1)
    m.least = pyo.Constraint(expr=m.v - m.a - m.a * m.v <= 0)
    m.gain = pyo.Objective(expr=m.a, sense=pyo.maximize)


@case(NONCONVEX_EXP, 2 * math.exp(1.5))
def whole_numbers_beside_a_product(m: Any) -> None:
    """2 exp(y / 2), where y is the greater of two whole numbers with product 6: 3."""
    m.k, m.m = pyo.Var(domain=pyo.Integers, bounds=(1, 6)), pyo.Var(domain=pyo.Integers, bounds=(1, 6))
    m.y, m.z = pyo.Var(bounds=(0, 9)), pyo.Var(bounds=(0, None))
    m.product = pyo.Constraint(expr=m.k * m.m == 6)
    m.above = pyo.Constraint(expr=m.y >= m.k)
    m.other = pyo.Constraint(expr=m.y >= m.m)
    m.exp = pyo.Constraint(expr=exponential(m.y, 2, m.z) >= 0)
    m.cost = pyo.Objective(expr=m.z)


@case(NONCONVEX_EXP, status=Status.INFEASIBLE)
def product_below_an_exponential(m: Any) -> None:
    """x y = 1 leaves y at least 1, and z at least e, not 2.5."""
    m.x, m.y, m.z = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(-3, 3)), pyo.Var(bounds=(None, 2.5))
    m.exp = pyo.Constraint(expr=exponential(m.y, 1, m.z) >= 0)
    m.product = pyo.Constraint(expr=m.x * m.y == 1)
    m.cost = pyo.Objective(expr=m.x)


# ---- cones that none takes beside such a quadratic -------------------------------------------------------------------
@case(ProblemClass.NONCONVEX_CONIC, 2.0)
def product_beside_a_cone(m: Any) -> None:
    """The cone asks for x y >= 1, so the least sum is at x = y = 1."""
    m.x, m.y = pyo.Var(bounds=(0, 3)), pyo.Var(bounds=(0, 3))
    m.cone = pyo.Constraint(expr=psd([[m.x, 1], [1, m.y]]) >= 0)
    m.product = pyo.Constraint(expr=m.x * m.y <= 2)
    m.cost = pyo.Objective(expr=m.x + m.y)
