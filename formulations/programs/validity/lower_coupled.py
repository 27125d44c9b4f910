"""The lower validity bound of a whole plan: the coupled form, what `validity_bounds` solves by default.

One semidefinite block, by how the parameters move from their centre.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import bordered, sum_of
from ceopt.formulations.programs.validity.events import require_bound_arguments
from ceopt.solvers.cones import rotated_soc
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_lower_coupled"]


def validity_lower_coupled(
    plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0
) -> pyo.ConcreteModel:
    r"""State the least probability that all counterfactuals of a plan are favourable, by a coupling with the centre.

    Parameters within the radius are :math:`\theta = \hat\mu + F \zeta + \rho \eta` with a white vector
    :math:`\zeta` (mean 0, covariance I), :math:`\hat\Sigma = F F^\top`, and a displacement with
    :math:`\mathbb{E} \lVert \eta \rVert^2 \le 1`.

    .. math::
        \min\ & \lambda_0 \quad\text{s.t.}\quad \sum_{j=0}^J \lambda_j = 1, \quad \sum_{j=0}^J u_j = 0, \quad
        x_j^\top (\hat\mu \lambda_j + F u_j + \rho v_j) \le 0 \ (j \ge 1), \\
        & \begin{pmatrix} I_r & u_0 \dots u_J \\ \cdot & \operatorname{Diag}(\lambda_0, \dots, \lambda_J) \end{pmatrix}
        \succeq 0, \quad \lVert v_j \rVert^2 \le 2 t_j \lambda_j, \quad 2 \sum_{j=1}^J t_j \le 1.

    Part j has probability :math:`\lambda_j`, and :math:`u_j, v_j` are the means of :math:`\zeta, \eta` on it, times
    that. Where no counterfactual fails, nothing need move. The mixed second moment of :math:`\zeta` and :math:`\eta`
    occurs in no row, so that the block of all three splits into that of :math:`\zeta` with the parts and that of
    :math:`\eta` with them, of which only the trace matters: the cones. Radius 0: v, t and their rows go, and what is
    left is the fixed-moment program.

    ========== =========== ============= ========================================================================
    symbol     component   shape         meaning
    ========== =========== ============= ========================================================================
    x                      (J, d)        ``plan``
    mu-hat, F              (d,), (d, r)  ``mean`` and a factor of ``covariance``, r its rank
    rho                                  ``radius``
    lambda     ``weight``  (J + 1,)      probability of each part; counterfactual j fails on part j, none on part 0
    u          ``u``       (J + 1, r)    mean of zeta on each part, times its probability
    v          ``v``       (J, d)        the same of eta, parts 1 to J
    t          ``t``       (J,)          half the second moment of eta on each part, times its probability
    rows       ``whole``   1             the probabilities add up to 1
    ..         ``centred`` (r,)          zeta has mean 0
    ..         ``fails``   (J,)          counterfactual j fails on part j
    ..         ``parts``   r + J + 1     semidefinite
    ..         ``moved``   d + 2, each   rotated second-order, (J,)
    ..         ``near``    1             the displacement
    ========== =========== ============= ========================================================================

    (J + 1)(r + 1) + J(d + 1) numbers, J + r + 2 rows, one semidefinite block of side r + J + 1 and J cones (SDP).
    Exact: the moments of such parameters are those of the Gelbrich ball. The data stand in ``fails``
    alone, so that it is as accurate for a radius of 1e-6 as for 1, and for a singular covariance:
    :func:`ceopt.plans.validity_bounds` solves it after the reduction to the span of the plan.

    Parameters
    ----------
    plan, mean, covariance, radius
        As for :func:`~ceopt.formulations.programs.validity_lower`, and refused as there.

    References
    ----------
    Derived above; the optimum is that of theorem 2.2 of Bui, Nguyen & Nguyen (2022), Counterfactual plans under
    distributional ambiguity.

    Examples
    --------
    One parameter of mean 2 and variance 1 that must not be negative:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.validity_lower_coupled([[1]], [2], [[1]], radius=0.5)
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    whole weight[0] + weight[1]  ==  1.0
    centred[0] u[0,0] + u[1,0]  ==  0.0
    parts 0  <=  semidefinite_margin(1.0, u[0,0], weight[0], u[1,0], 0.0, weight[1])
    moved[1] 0  <=  rotated_margin(t[1], weight[1], v[1,0])
    near t[1]  <=  0.5
    fails[1] 2.0*weight[1] + u[1,0] + 0.5*v[1,0]  <=  0.0
    >>> round(solve(m).objective, 6)
    0.595644
    """
    x, moments, rho = require_bound_arguments("validity_lower_coupled", plan, mean, covariance, radius)
    n, d = x.shape
    r = moments.factor.shape[1]
    parts = range(n + 1)
    failing = range(1, n + 1)
    model = pyo.ConcreteModel(name="validity_lower_coupled")
    model.weight = pyo.Var(parts)
    model.u = pyo.Var(parts, range(r))
    model.whole = pyo.Constraint(expr=sum_of(model.weight.values()) == 1.0)
    model.centred = pyo.Constraint(range(r), rule=lambda m, a: sum_of([m.u[j, a] for j in parts]) == 0.0)

    def mass(i: int, j: int) -> Any:
        return model.weight[i] if i == j else 0.0

    block = bordered(lambda a, b: float(a == b), r, lambda a, j: model.u[j, a], n + 1, mass)
    model.parts = pyo.Constraint(expr=block >= 0)
    if rho:
        model.v = pyo.Var(failing, range(d))
        model.t = pyo.Var(failing)
        model.moved = pyo.Constraint(
            failing, rule=lambda m, j: rotated_soc(m.t[j], m.weight[j], [m.v[j, a] for a in range(d)]) >= 0
        )
        model.near = pyo.Constraint(expr=sum_of(model.t.values()) <= 0.5)
    means = x @ moments.mean
    slopes = x @ moments.factor

    def fails(m: Any, j: int) -> Any:
        variables = [m.weight[j], *(m.u[j, a] for a in range(r))]
        coefficients = [means[j - 1], *slopes[j - 1]]
        if rho:
            variables += [m.v[j, a] for a in range(d)]
            coefficients += [*(rho * x[j - 1])]
        return sum_of(variables, coefficients) <= 0.0

    model.fails = pyo.Constraint(failing, rule=fails)
    model.bound = pyo.Objective(expr=model.weight[0])
    describe(
        model,
        Manifest(
            title="validity at worst, coupled form",
            formula="min l_0, sum l = 1, sum u = 0, x_j'(mu l_j + F u_j + rho v_j) <= 0, [[I, u], [u', Diag l]] psd, "
            "sum |v_j|^2 / l_j <= 1",
            reference="derived in the docstring; the optimum of COPA theorem 2.2",
        ),
    )
    return model
