"""The upper validity bound of a whole plan: the coupled form, what `validity_bounds` solves by default.

Two second-order cones, by how the parameters move from their centre. Radius 0, where the moments are known, needs no
program there: `ceopt/plans/validity/known_moments.py`.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import sum_of
from ceopt.formulations.programs.validity.events import require_bound_arguments
from ceopt.solvers.cones import rotated_soc
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_upper_coupled"]


def validity_upper_coupled(
    plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0
) -> pyo.ConcreteModel:
    r"""State the greatest probability that all counterfactuals of a plan are favourable, by a coupling with the centre.

    Parameters within the radius are :math:`\theta = \hat\mu + F \zeta + \rho \eta` with a white vector
    :math:`\zeta` (mean 0, covariance I), :math:`\hat\Sigma = F F^\top`, and a displacement with
    :math:`\mathbb{E} \lVert \eta \rVert^2 \le 1`.

    .. math::
        \max\ \lambda_1 \quad\text{s.t.}\quad \lambda_0 + \lambda_1 = 1, \quad
        X (\hat\mu \lambda_1 + F u + \rho v) \ge 0, \quad
        \lVert u \rVert^2 \le \lambda_0 \lambda_1, \quad \lVert v \rVert^2 \le \lambda_1.

    The parameters for which all counterfactuals are favourable are a convex set, so all its mass :math:`\lambda_1` can
    sit at one point of it, and nothing else need move; u and v are :math:`\zeta` and :math:`\eta` there, times
    :math:`\lambda_1`. With u at the point and -u at the rest, what is left of the covariance I is semidefinite exactly
    in the first cone. Radius 0: v and its cone go.

    ========== ============= ============= ======================================================================
    symbol     component     shape         meaning
    ========== ============= ============= ======================================================================
    X                        (J, d)        ``plan``
    mu-hat, F                (d,), (d, r)  ``mean`` and a factor of ``covariance``, r its rank
    rho                                    ``radius``
    lambda     ``weight``    (2,)          probability of the rest, and of the point where the plan is valid
    u, v       ``u``, ``v``  (r,), (d,)    zeta and eta at the point, times its probability
    rows       ``whole``     1             the probabilities add up to 1
    ..         ``holds``     (J,)          counterfactual j is favourable at the point
    ..         ``spread``    r + 2         rotated second-order; weights at least 0 where r = 0
    ..         ``near``      d + 2         rotated second-order
    ========== ============= ============= ======================================================================

    r + d + 2 numbers, J + 1 rows and two second-order cones: no semidefinite block (SOCP). Exact, and as accurate for a
    radius of 1e-6 as for 1: :func:`ceopt.plans.validity_bounds` solves it after the reduction to the span of the plan.

    Parameters
    ----------
    plan, mean, covariance, radius
        As for :func:`~ceopt.formulations.programs.validity_lower`, and refused as there.

    References
    ----------
    Derived above; the optimum is that of theorem 2.3 of Bui, Nguyen & Nguyen (2022), Counterfactual plans under
    distributional ambiguity.

    Examples
    --------
    One parameter of mean -2 and variance 1 that must not be negative:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.validity_upper_coupled([[1]], [-2], [[1]], radius=0.5)
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    whole weight[0] + weight[1]  ==  1.0
    spread 0  <=  rotated_margin(0.5*weight[0], weight[1], u[0])
    near 0  <=  rotated_margin(0.5, weight[1], v[0])
    holds[0] 0.0  <=  -2.0*weight[1] + u[0] + 0.5*v[0]
    >>> round(solve(m).objective, 6)
    0.404356
    """
    x, moments, rho = require_bound_arguments("validity_upper_coupled", plan, mean, covariance, radius)
    n, d = x.shape
    r = moments.factor.shape[1]
    model = pyo.ConcreteModel(name="validity_upper_coupled")
    model.weight = pyo.Var(range(2), bounds=None if r else (0.0, None))
    model.u = pyo.Var(range(r))
    model.whole = pyo.Constraint(expr=sum_of(model.weight.values()) == 1.0)
    if r:
        spread = rotated_soc(0.5 * model.weight[0], model.weight[1], list(model.u.values()))
        model.spread = pyo.Constraint(expr=spread >= 0)
    if rho:
        model.v = pyo.Var(range(d))
        model.near = pyo.Constraint(expr=rotated_soc(0.5, model.weight[1], list(model.v.values())) >= 0)
    means = x @ moments.mean
    slopes = x @ moments.factor

    def holds(m: Any, j: int) -> Any:
        variables = [m.weight[1], *m.u.values()]
        coefficients = [means[j], *slopes[j]]
        if rho:
            variables += m.v.values()
            coefficients += [*(rho * x[j])]
        return sum_of(variables, coefficients) >= 0.0

    model.holds = pyo.Constraint(range(n), rule=holds)
    model.bound = pyo.Objective(expr=model.weight[1], sense=pyo.maximize)
    describe(
        model,
        Manifest(
            title="validity at best, coupled form",
            formula="max l_1, l_0 + l_1 = 1, X(mu l_1 + F u + rho v) >= 0, |u|^2 <= l_0 l_1, |v|^2 <= l_1",
            reference="derived in the docstring; the optimum of COPA theorem 2.3",
        ),
    )
    return model
