"""The lower validity bound of a whole plan: without cones, as products of variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.validity.case import case_of
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
    Specification 2.6; Bhatia, Jain & Lim (2019), On the Bures-Wasserstein distance between positive definite matrices.

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
    case = case_of("validity_lower_nonlinear", plan, mean, covariance, radius)
    n, k = case.normals.shape
    size = np.ones(k)  # of the standard deviation about 0 in each coordinate
    centre = case.moments.mean
    factor = case.moments.root
    if not case.is_fixed:
        size = np.sqrt(np.diag(case.moments.second)) + case.radius  # a root of M moves by no more than the moments
    parts = range(n + 1)
    columns = range(k)
    pairs = [(a, b) for a in columns for b in range(a, k)]
    model = pyo.ConcreteModel(name="validity_lower_nonlinear")
    model.s = pyo.Var(parts, bounds=(0.0, 1.0))
    model.w = pyo.Var(parts, columns, bounds=lambda _m, _j, a: (-size[a], size[a]))
    model.T = pyo.Var([(b, a) for a, b in pairs], bounds=lambda _m, a, b: (0.0 if a == b else -size[a], size[a]))
    model.whole = pyo.Constraint(expr=pyo.quicksum(s * s for s in model.s.values()) == 1.0)

    def fails(m: Any, j: int) -> Any:
        return case.at(j - 1, [m.w[j, a] for a in columns], m.s[j]) <= 0.0

    def atoms(m: Any, a: int, b: int) -> Any:
        return pyo.quicksum(m.w[j, a] * m.w[j, b] for j in parts) + pyo.quicksum(
            m.T[a, i] * m.T[b, i] for i in range(a + 1)
        )

    model.fails = pyo.Constraint(range(1, n + 1), rule=fails)
    if case.is_fixed:
        model.first = pyo.Constraint(columns, rule=lambda m, a: pyo.quicksum(m.s[j] * m.w[j, a] for j in parts) == 0.0)
        model.second = pyo.Constraint(pairs, rule=lambda m, a, b: atoms(m, a, b) == float(a == b))
    else:
        rho = case.radius
        model.mean = pyo.Var(columns, bounds=lambda _m, a: (centre[a] - rho, centre[a] + rho))
        model.G = pyo.Var(columns, columns, bounds=lambda _m, a, b: (factor[a, b] - rho, factor[a, b] + rho))
        model.first = pyo.Constraint(
            columns, rule=lambda m, a: pyo.quicksum(m.s[j] * m.w[j, a] for j in parts) == m.mean[a]
        )

        def second(m: Any, a: int, b: int) -> Any:
            spread = pyo.quicksum(m.G[a, i] * m.G[b, i] for i in columns)
            return atoms(m, a, b) == spread + m.mean[a] * m.mean[b]

        model.second = pyo.Constraint(pairs, rule=second)
        moved = [m - float(c) for m, c in zip(model.mean.values(), centre, strict=True)]
        moved += [g - float(f) for g, f in zip(model.G.values(), factor.ravel(), strict=True)]
        model.near = pyo.Constraint(expr=pyo.quicksum(move * move for move in moved) <= rho**2)
    model.bound = pyo.Objective(expr=model.s[0] * model.s[0])
    describe(
        model,
        Manifest(
            title="validity at worst, nonlinear form",
            formula="min s_0^2, sum s^2 = 1, x_j'w_j <= 0, mu = sum s_j w_j, GG' + mu mu' = sum w_j w_j' + TT'",
            reference="specification 2.6",
        ),
    )
    return model
