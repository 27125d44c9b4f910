"""The lower validity bound of a whole plan: the dual, a quadratic above 1 wherever a counterfactual fails."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import bordered, sum_of, symmetric
from ceopt.formulations.programs.gelbrich import add_price
from ceopt.formulations.programs.validity.events import events_of
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_lower_dual"]


def validity_lower_dual(
    plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0
) -> pyo.ConcreteModel:
    r"""State the dual of the least probability that all counterfactuals of a plan are favourable (LB-D).

    .. math::
        \max\ & 1 - [r + \gamma (\rho^2 - \lVert \hat\mu \rVert^2 - \operatorname{Tr} \hat\Sigma) + q_0
        + \operatorname{Tr} W] \\
        \text{s.t. } & \begin{pmatrix} P & q \\ q^\top & r \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} P & q + \tau_j x_j / 2 \\ \cdot & r - 1 \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} \gamma I - P & \gamma F \\ \cdot & W \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} \gamma I - P & \gamma \hat\mu + q \\ \cdot & q_0 \end{pmatrix} \succeq 0,
        \quad \tau, \gamma \ge 0.

    The quadratic :math:`\theta^\top P \theta + 2 q^\top \theta + r` is at least 0 everywhere and at least 1 where a
    counterfactual fails, so that its mean bounds the probability of a failure: any feasible point is a proof. Radius 0:
    :math:`\gamma, q_0, W` and the last two blocks go, and for the quadratic in :math:`\xi`,
    :math:`\theta = \hat\mu + F \xi`, the rest is

    .. math::
        \max\ 1 - [r + \operatorname{Tr} P] \quad\text{s.t.}\quad
        \begin{pmatrix} P & q \\ q^\top & r \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} P & q + \tau_j F^\top x_j / 2 \\ \cdot & r - 1 + \tau_j \hat\mu^\top x_j \end{pmatrix}
        \succeq 0, \quad \tau \ge 0.

    ========== =============== ============ ======================================================================
    symbol     component       shape        meaning
    ========== =============== ============ ======================================================================
    x                          (J, d)       ``plan``
    hats, F                                 ``mean``, ``covariance`` and a factor of it, (d, r')
    rho                                     ``radius``
    P, q, r    ``P, q, r``     (d, d), ...  the quadratic
    tau        ``tau``         (J,)         price of a score below 0
    gamma      ``price.g``     1            price of the squared distance
    q_0, W     ``price.q``     1, (r', r')  with ``price.W``, what the distance leaves
    blocks     ``nonnegative`` d + 1        semidefinite
    ..         ``failing``     d + 1, each  semidefinite
    ..         ``price``       block        :func:`~ceopt.formulations.programs.gelbrich.add_price`
    ========== =============== ============ ======================================================================

    d(d + 1)/2 + d + 3 + J + r'(r' + 1)/2 numbers, J + 2 semidefinite blocks of side d + 1 and one of side d + r' (SDP);
    J + 1 of side r' + 1 for radius 0. Exact, by strong duality; it loses digits for a radius below 1e-3 of the mean.

    Parameters
    ----------
    plan, mean, covariance, radius
        As for :func:`~ceopt.formulations.programs.validity_lower`, and refused as there.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorem 2.2, of which this
    is the dual.

    Examples
    --------
    The example of :func:`~ceopt.formulations.programs.validity_lower`:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.validity_lower_dual([[1]], [2], [[1]])
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    nonnegative 0  <=  semidefinite_margin(P[0,0], q[0], r)
    failing[0] 0  <=  semidefinite_margin(P[0,0], q[0] + 0.5*tau[0], -1.0 + r + 2.0*tau[0])
    >>> round(solve(m).objective, 6)
    0.8
    >>> round(solve(programs.validity_lower_dual([[1]], [2], [[1]], radius=0.5)).objective, 6)
    0.595644
    """
    events = events_of("validity_lower_dual", plan, mean, covariance, radius)
    n, k = events.normals.shape
    model = pyo.ConcreteModel(name="validity_lower_dual")
    model.P = symmetric(k)
    model.q = pyo.Var(range(k))
    model.r = pyo.Var()
    model.tau = pyo.Var(range(n), bounds=(0.0, None))

    def quadratic(a: int, b: int) -> Any:
        return model.P[a, b]

    def failing(m: Any, j: int) -> Any:
        def edge(a: int, _b: int) -> Any:
            return sum_of([m.q[a], m.tau[j]], [1.0, events.normals[j, a] / 2.0])

        def corner(_a: int, _b: int) -> Any:
            return events.with_offset([m.r], [1.0], m.tau[j], events.offsets[j], -1.0)

        return bordered(quadratic, k, edge, 1, corner) >= 0

    model.nonnegative = pyo.Constraint(
        expr=bordered(quadratic, k, lambda a, _b: model.q[a], 1, lambda _a, _b: model.r) >= 0
    )
    model.failing = pyo.Constraint(range(n), rule=failing)
    if events.is_fixed:
        worth = sum_of([model.r, *(model.P[a, a] for a in range(k))])
    else:
        model.price = pyo.Block()
        add_price(model.price, events.moments, events.radius, model.P, model.q)
        worth = model.r + model.price.worth
    model.bound = pyo.Objective(expr=1.0 - worth, sense=pyo.maximize)
    describe(
        model,
        Manifest(
            title="validity at worst, dual form",
            formula="max 1 - E[t'Pt + 2q't + r] at worst, the quadratic >= 0, and >= 1 where x_j't <= 0",
            reference="dual of COPA theorem 2.2",
        ),
    )
    return model
