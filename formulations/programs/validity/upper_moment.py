"""The upper validity bound of a whole plan: the moment form, all favourable mass at one point."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import sum_of
from ceopt.formulations.programs.validity.events import events_of
from ceopt.formulations.programs.validity.mixture import add_mixture_moments
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_upper_moment"]


def validity_upper_moment(
    plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0
) -> pyo.ConcreteModel:
    r"""State the greatest probability that all counterfactuals of a plan are favourable (UB-A).

    .. math::
        \max\ \lambda_1 \quad\text{s.t.}\quad \lambda_0 + \lambda_1 = 1, \quad X z_1 \ge 0, \quad
        \begin{pmatrix} M & z_0 & z_1 \\ \cdot & \operatorname{Diag}(\lambda_0, \lambda_1) \end{pmatrix} \succeq 0,
        \quad (\mu, M) \in \text{ball}, \quad \mu = z_0 + z_1.

    The parameters for which all counterfactuals are favourable are a convex set, so all its mass
    :math:`\lambda_1` can sit at one point :math:`z_1 / \lambda_1` of it. Radius 0: M, mean and ball go, and in the
    coordinates :math:`\theta = \hat\mu + F \xi` it is

    .. math::
        z_0 + z_1 = 0, \qquad X (F z_1 + \hat\mu \lambda_1) \ge 0, \qquad
        \begin{pmatrix} I_r & z_0 & z_1 \\ \cdot & \operatorname{Diag}(\lambda_0, \lambda_1) \end{pmatrix} \succeq 0.

    ========== =========== ============== =======================================================================
    symbol     component   shape          meaning
    ========== =========== ============== =======================================================================
    X                      (J, d)         ``plan``
    mu-hat, F              (d,), (d, r)   ``mean`` and a factor of ``covariance``, r its rank
    lambda     ``weight``  (2,)           probability of the rest, and of the favourable point
    z          ``z``       (2, d)         mean of the parameters on each, times its probability
    M          ``M``       (d, d)         second moment of the parameters, upper triangle
    mu         ``mean``    (d,)           their mean
    rows       ``whole``   1              the probabilities add up to 1
    ..         ``holds``   (J,)           counterfactual j is favourable at the point
    ..         ``parts``   d + 2          semidefinite
    ..         ``ball``    block          :func:`~ceopt.formulations.programs.gelbrich.add_ball`
    ========== =========== ============== =======================================================================

    2(d + 1) + d(d + 1)/2 + dr numbers, J + 2 rows and semidefinite blocks of sides d + 2 and d + r + 1 (SDP);
    2(r + 1) numbers and one block of side r + 2 for radius 0. Exact: the dual of the theorem's form, and accurate for
    small radii, where that is not.

    Parameters
    ----------
    plan, mean, covariance, radius
        As for :func:`~ceopt.formulations.programs.validity_lower`, and refused as there.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorem 2.3, of which this
    is the dual.

    Examples
    --------
    The example of :func:`~ceopt.formulations.programs.validity_upper`:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.validity_upper_moment([[1]], [-2], [[1]])
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    whole weight[0] + weight[1]  ==  1.0
    holds[0] 0.0  <=  z[1,0] - 2.0*weight[1]
    centred[0] z[0,0] + z[1,0]  ==  0.0
    parts 0  <=  semidefinite_margin(1.0, z[0,0], weight[0], z[1,0], 0.0, weight[1])
    >>> round(solve(m).objective, 6)
    0.2
    >>> round(solve(programs.validity_upper_moment([[1]], [-2], [[1]], radius=0.5)).objective, 6)
    0.404356
    """
    events = events_of("validity_upper_moment", plan, mean, covariance, radius)
    n, k = events.normals.shape
    model = pyo.ConcreteModel(name="validity_upper_moment")
    model.weight = pyo.Var(range(2))
    model.z = pyo.Var(range(2), range(k))
    model.whole = pyo.Constraint(expr=sum_of(model.weight.values()) == 1.0)

    def holds(m: Any, j: int) -> Any:
        return events.at(j, [m.z[1, a] for a in range(k)], m.weight[1]) >= 0.0

    model.holds = pyo.Constraint(range(n), rule=holds)
    add_mixture_moments(model, events)
    model.bound = pyo.Objective(expr=model.weight[1], sense=pyo.maximize)
    describe(
        model,
        Manifest(
            title="validity at best, moment form",
            formula="max l_1, l_0 + l_1 = 1, X z_1 >= 0, [[M, z], [z', Diag l]] psd, (z_0 + z_1, M) in the ball",
            reference="dual of COPA theorem 2.3",
        ),
    )
    return model
