"""The upper validity bound of a whole plan: the theorem's own form, a quadratic above 1 on the valid cone."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import bordered, sum_of, symmetric
from ceopt.formulations.programs.gelbrich import add_price
from ceopt.formulations.programs.validity.events import events_of
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_upper"]


def validity_upper(plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0) -> pyo.ConcreteModel:
    r"""State the greatest probability that all counterfactuals of a plan are favourable, as the theorem does (UB-T).

    .. math::
        \min\ & z_0 + \gamma (\rho^2 - \lVert \hat\mu \rVert^2 - \operatorname{Tr} \hat\Sigma) + q
        + \operatorname{Tr} W \\
        \text{s.t. } & \begin{pmatrix} \gamma I - Z & \gamma F \\ \cdot & W \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} \gamma I - Z & \gamma \hat\mu + z \\ \cdot & q \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} Z & z \\ z^\top & z_0 \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} Z & z - X^\top \lambda / 2 \\ \cdot & z_0 - 1 \end{pmatrix} \succeq 0, \quad
        \lambda, \gamma \ge 0.

    The quadratic :math:`\theta^\top Z \theta + 2 z^\top \theta + z_0` is at least 0 everywhere and at least 1 where all
    counterfactuals are favourable. Both blocks of it are needed: without the first the program is unbounded. Radius 0,
    where the infimum is not attained: :math:`\gamma, q, W` and the first two blocks go, and for the quadratic in
    :math:`\xi`, :math:`\theta = \hat\mu + F \xi`, the rest is

    .. math::
        \min\ z_0 + \operatorname{Tr} Z \quad\text{s.t.}\quad
        \begin{pmatrix} Z & z \\ z^\top & z_0 \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} Z & z - F^\top X^\top \lambda / 2 \\ \cdot & z_0 - 1 - \lambda^\top X \hat\mu
        \end{pmatrix} \succeq 0, \quad \lambda \ge 0.

    ========== =============== ============ ======================================================================
    symbol     component       shape        meaning
    ========== =============== ============ ======================================================================
    X                          (J, d)       ``plan``
    hats, F                                 ``mean``, ``covariance`` and a factor of it, (d, r)
    rho                                     ``radius``
    Z, z, z_0  ``Z, z, z0``    (d, d), ...  the quadratic
    lambda     ``prices``      (J,)         prices of the scores
    gamma      ``price.g``     1            price of the squared distance
    q, W       ``price.q``     1, (r, r)    with ``price.W``, what the distance leaves
    (U3)       ``nonnegative`` d + 1        semidefinite
    (U4)       ``valid``       d + 1        semidefinite
    (U1), (U2) ``price``       block        :func:`~ceopt.formulations.programs.gelbrich.add_price`
    ========== =============== ============ ======================================================================

    d(d + 1)/2 + d + 3 + J + r(r + 1)/2 numbers, three semidefinite blocks of side d + 1 and one of side d + r (SDP);
    two of side r + 1 for radius 0. Exact, not only an upper bound: a convex quadratic over a polyhedron has no duality
    gap. It loses digits for a radius below 1e-3: :func:`~ceopt.formulations.programs.validity_upper_moment` does not.

    Parameters
    ----------
    plan, mean, covariance, radius
        As for :func:`~ceopt.formulations.programs.validity_lower`, and refused as there.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorem 2.3.

    Examples
    --------
    One parameter of mean -2 and variance 1 that must not be negative: Cantelli's inequality gives 1 / 5.

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.validity_upper([[1]], [-2], [[1]])
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    nonnegative 0  <=  semidefinite_margin(Z[0,0], z[0], z0)
    valid 0  <=  semidefinite_margin(Z[0,0], z[0] - 0.5*prices[0], -1.0 + z0 + 2.0*prices[0])
    >>> round(solve(m).objective, 6)
    0.2
    >>> round(solve(programs.validity_upper([[1]], [-2], [[1]], radius=0.5)).objective, 6)
    0.404356
    """
    events = events_of("validity_upper", plan, mean, covariance, radius)
    n, k = events.normals.shape
    model = pyo.ConcreteModel(name="validity_upper")
    model.Z = symmetric(k)
    model.z = pyo.Var(range(k))
    model.z0 = pyo.Var()
    model.prices = pyo.Var(range(n), bounds=(0.0, None))
    prices = list(model.prices.values())

    def quadratic(a: int, b: int) -> Any:
        return model.Z[a, b]

    def edge(a: int, _b: int) -> Any:
        return sum_of([model.z[a], *prices], [1.0, *(-events.normals[:, a] / 2.0)])

    def corner(_a: int, _b: int) -> Any:
        if events.is_fixed:
            return sum_of([model.z0, *prices], [1.0, *(-events.offsets)], -1.0)
        return sum_of([model.z0], constant=-1.0)

    model.nonnegative = pyo.Constraint(
        expr=bordered(quadratic, k, lambda a, _b: model.z[a], 1, lambda _a, _b: model.z0) >= 0
    )
    model.valid = pyo.Constraint(expr=bordered(quadratic, k, edge, 1, corner) >= 0)
    if events.is_fixed:
        worth = sum_of([model.z0, *(model.Z[a, a] for a in range(k))])
    else:
        model.price = pyo.Block()
        add_price(model.price, events.moments, events.radius, model.Z, model.z)
        worth = model.z0 + model.price.worth
    model.bound = pyo.Objective(expr=worth)
    describe(
        model,
        Manifest(
            title="validity at best, the theorem's form",
            formula="min E[t'Zt + 2z't + z0] at worst, the quadratic >= 0, and >= 1 where X t >= 0",
            reference="COPA theorem 2.3",
        ),
    )
    return model
