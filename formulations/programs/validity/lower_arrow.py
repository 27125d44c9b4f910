"""The lower validity bound of a whole plan: the arrow form, one block for all counterfactuals."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import sum_of
from ceopt.formulations.programs.validity.events import events_of
from ceopt.formulations.programs.validity.mixture import add_mixture_moments
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_lower_arrow"]


def validity_lower_arrow(
    plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0
) -> pyo.ConcreteModel:
    r"""State the least probability that all counterfactuals of a plan are favourable (LB-A).

    .. math::
        \min\ \lambda_0 \quad\text{s.t.}\quad \sum_{j=0}^J \lambda_j = 1, \quad x_j^\top z_j \le 0 \ (j \ge 1), \quad
        \begin{pmatrix} M & z_0 \dots z_J \\ \cdot & \operatorname{Diag}(\lambda_0, \dots, \lambda_J) \end{pmatrix}
        \succeq 0, \quad (\mu, M) \in \text{ball}, \quad \mu = \sum_{j=0}^J z_j.

    The mass :math:`\lambda_j` sits at :math:`z_j / \lambda_j`, where counterfactual j fails; what is left,
    :math:`\lambda_0`, is where none does. Radius 0: M, mean and ball go, and in the coordinates
    :math:`\theta = \hat\mu + F \xi` it is

    .. math::
        \sum_{j=0}^J z_j = 0, \qquad x_j^\top (F z_j + \hat\mu \lambda_j) \le 0, \qquad
        \begin{pmatrix} I_r & z_0 \dots z_J \\ \cdot & \operatorname{Diag}(\lambda) \end{pmatrix} \succeq 0.

    ========== =========== ============== =======================================================================
    symbol     component   shape          meaning
    ========== =========== ============== =======================================================================
    x                      (J, d)         ``plan``
    mu-hat, F              (d,), (d, r)   ``mean`` and a factor of ``covariance``, r its rank
    lambda     ``weight``  (J + 1,)       probability of each part
    z          ``z``       (J + 1, d)     mean of the parameters on each part, times its probability
    M          ``M``       (d, d)         second moment of the parameters, upper triangle
    mu         ``mean``    (d,)           their mean
    rows       ``whole``   1              the probabilities add up to 1
    ..         ``fails``   (J,)           counterfactual j fails on part j
    ..         ``parts``   d + J + 1      semidefinite
    ..         ``ball``    block          :func:`~ceopt.formulations.programs.gelbrich.add_ball`
    ========== =========== ============== =======================================================================

    (J + 1)(d + 1) + d(d + 1)/2 + dr numbers, J + 2 rows and semidefinite blocks of sides d + J + 1 and d + r + 1 (SDP);
    (J + 1)(r + 1) numbers and one block of side r + J + 1 for radius 0. Exact: the same optimum as the theorem's form,
    whose matrix variables are eliminated.

    Parameters
    ----------
    plan, mean, covariance, radius
        As for :func:`~ceopt.formulations.programs.validity_lower`, and refused as there.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorem 2.2, with
    :math:`Z_j = z_j z_j^\top / \lambda_j`. Radius 0: Vandenberghe, Boyd & Comanor (2007), Generalized Chebyshev bounds
    via semidefinite programming.

    Examples
    --------
    The example of :func:`~ceopt.formulations.programs.validity_lower`:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.validity_lower_arrow([[1]], [2], [[1]])
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    whole weight[0] + weight[1]  ==  1.0
    fails[1] z[1,0] + 2.0*weight[1]  <=  0.0
    centred[0] z[0,0] + z[1,0]  ==  0.0
    parts 0  <=  semidefinite_margin(1.0, z[0,0], weight[0], z[1,0], 0.0, weight[1])
    >>> round(solve(m).objective, 6)
    0.8
    >>> round(solve(programs.validity_lower_arrow([[1]], [2], [[1]], radius=0.5)).objective, 6)
    0.595644
    """
    events = events_of("validity_lower_arrow", plan, mean, covariance, radius)
    n, k = events.normals.shape
    model = pyo.ConcreteModel(name="validity_lower_arrow")
    model.weight = pyo.Var(range(n + 1))
    model.z = pyo.Var(range(n + 1), range(k))
    model.whole = pyo.Constraint(expr=sum_of(model.weight.values()) == 1.0)

    def fails(m: Any, j: int) -> Any:
        return events.at(j - 1, [m.z[j, a] for a in range(k)], m.weight[j]) <= 0.0

    model.fails = pyo.Constraint(range(1, n + 1), rule=fails)
    add_mixture_moments(model, events)
    model.bound = pyo.Objective(expr=model.weight[0])
    describe(
        model,
        Manifest(
            title="validity at worst, arrow form",
            formula="min l_0, sum l = 1, x_j'z_j <= 0, [[M, z], [z', Diag l]] psd, (sum z, M) in the ball",
            reference="COPA theorem 2.2, its Z_j eliminated; radius 0: Vandenberghe, Boyd & Comanor (2007)",
        ),
    )
    return model
