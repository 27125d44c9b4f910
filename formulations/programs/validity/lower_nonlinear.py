"""The lower validity bound of a whole plan: without cones, as products of variables."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.validity.events import events_of
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_lower_nonlinear"]


def validity_lower_nonlinear(
    plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0
) -> pyo.ConcreteModel:
    r"""State the least probability that all counterfactuals of a plan are favourable by quadratic rows alone (LB-N).

    .. math::
        \min\ s_0^2 \quad\text{s.t.}\quad \sum_{j=0}^J s_j^2 = 1, \quad x_j^\top w_j \le 0 \ (j \ge 1), \quad
        \mu = \sum_j s_j w_j, \quad G G^\top + \mu \mu^\top = \sum_j w_j w_j^\top + T T^\top, \quad
        \lVert \mu - \hat\mu \rVert^2 + \lVert G - F \rVert_F^2 \le \rho^2.

    Mass :math:`s_j^2` sits at the atom :math:`w_j / s_j`, and T is what the atoms leave of the second moment. F is a
    square factor of the covariance: that some G with :math:`\Sigma = G G^\top` is as near to F is what the Gelbrich
    ball says. Radius 0: :math:`\mu`, G and the last row go, and in the coordinates :math:`\theta = \hat\mu + F \xi` it
    is

    .. math::
        \sum_j s_j w_j = 0, \qquad x_j^\top (F w_j + \hat\mu s_j) \le 0, \qquad
        \sum_j w_j w_j^\top + T T^\top = I_r.

    ========== ============ ============= ========================================================================
    symbol     component    shape         meaning
    ========== ============ ============= ========================================================================
    x                       (J, d)        ``plan``
    hats, F                 (d,), (d, d)  ``mean``, and the symmetric root of ``covariance``
    rho                                   ``radius``
    s          ``s``        (J + 1,)      roots of the probabilities
    w          ``w``        (J + 1, d)    atoms times these
    T          ``T``        (d, d)        lower triangular, diagonal at least 0
    mu, G      ``mean, G``  (d,), (d, d)  mean and a factor of the covariance
    rows       ``whole``    1             the probabilities add up to 1
    ..         ``fails``    (J,)          counterfactual j fails at atom j
    ..         ``first``    (d,)          first moments
    ..         ``second``   d(d + 1)/2    second moments
    ..         ``near``     1             the distance
    ========== ============ ============= ========================================================================

    (J + 1)(d + 1) + d + d^2 + d(d + 1)/2 numbers, all bounded; J linear and 2 + d + d(d + 1)/2 quadratic rows, not
    convex. Exact, but a local solver may stop at a larger value: any feasible point is a distribution within the
    radius, and so an upper estimate of the bound. SCIP and Gurobi prove the optimum for very small d and J.

    Parameters
    ----------
    plan, mean, covariance, radius
        As for :func:`~ceopt.formulations.programs.validity_lower`, and refused as there.

    References
    ----------
    Derived above; the optimum is that of theorem 2.2 of Bui, Nguyen & Nguyen (2022), Counterfactual plans under
    distributional ambiguity. The factor G: Bhatia, Jain & Lim (2019), On the Bures-Wasserstein distance between
    positive definite matrices.

    Examples
    --------
    One parameter of mean 2 and variance 1 that must not be negative:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> m = programs.validity_lower_nonlinear([[1]], [2], [[1]])
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    whole s[0]*s[0] + s[1]*s[1]  ==  1.0
    fails[1] w[1,0] + 2.0*s[1]  <=  0.0
    first[0] s[0]*w[0,0] + s[1]*w[1,0]  ==  0.0
    second[0,0] w[0,0]*w[0,0] + w[1,0]*w[1,0] + T[0,0]*T[0,0]  ==  1.0
    """
    events = events_of("validity_lower_nonlinear", plan, mean, covariance, radius)
    n, k = events.normals.shape
    size = np.ones(k)  # of the standard deviation about 0 in each coordinate
    centre = events.moments.mean
    factor = events.moments.root
    if not events.is_fixed:
        size = np.sqrt(np.diag(events.moments.second)) + events.radius  # a root of M moves by no more than the moments
    parts = range(n + 1)
    columns = range(k)
    pairs = list(combinations_with_replacement(columns, 2))
    model = pyo.ConcreteModel(name="validity_lower_nonlinear")
    model.s = pyo.Var(parts, bounds=(0.0, 1.0))
    model.w = pyo.Var(parts, columns, bounds=lambda _m, _j, a: (-size[a], size[a]))
    model.T = pyo.Var([(b, a) for a, b in pairs], bounds=lambda _m, a, b: (0.0 if a == b else -size[a], size[a]))
    model.whole = pyo.Constraint(expr=pyo.quicksum(s * s for s in model.s.values()) == 1.0)

    def fails(m: Any, j: int) -> Any:
        return events.at(j - 1, [m.w[j, a] for a in columns], m.s[j]) <= 0.0

    def first_moment(m: Any, a: int) -> Any:
        return pyo.quicksum(m.s[j] * m.w[j, a] for j in parts)

    def second_moment(m: Any, a: int, b: int) -> Any:
        atoms = pyo.quicksum(m.w[j, a] * m.w[j, b] for j in parts)
        rest = pyo.quicksum(m.T[a, i] * m.T[b, i] for i in range(a + 1))
        return atoms + rest

    model.fails = pyo.Constraint(range(1, n + 1), rule=fails)
    if events.is_fixed:
        model.first = pyo.Constraint(columns, rule=lambda m, a: first_moment(m, a) == 0.0)
        model.second = pyo.Constraint(pairs, rule=lambda m, a, b: second_moment(m, a, b) == float(a == b))
    else:
        rho = events.radius
        model.mean = pyo.Var(columns, bounds=lambda _m, a: (centre[a] - rho, centre[a] + rho))
        model.G = pyo.Var(columns, columns, bounds=lambda _m, a, b: (factor[a, b] - rho, factor[a, b] + rho))

        def second(m: Any, a: int, b: int) -> Any:
            covariance = pyo.quicksum(m.G[a, i] * m.G[b, i] for i in columns)
            return second_moment(m, a, b) == covariance + m.mean[a] * m.mean[b]

        model.first = pyo.Constraint(columns, rule=lambda m, a: first_moment(m, a) == m.mean[a])
        model.second = pyo.Constraint(pairs, rule=second)
        moves = []
        for a in columns:
            moves.append(model.mean[a] - float(centre[a]))
        for a in columns:
            for b in columns:
                moves.append(model.G[a, b] - float(factor[a, b]))
        model.near = pyo.Constraint(expr=pyo.quicksum(move * move for move in moves) <= rho**2)
    model.bound = pyo.Objective(expr=model.s[0] * model.s[0])
    describe(
        model,
        Manifest(
            title="validity at worst, nonlinear form",
            formula="min s_0^2, sum s^2 = 1, x_j'w_j <= 0, mu = sum s_j w_j, GG' + mu mu' = sum w_j w_j' + TT'",
            reference="derived in the docstring; the optimum of COPA theorem 2.2",
        ),
    )
    return model
