"""The lower validity bound of a whole plan: the theorem's own form, one block a counterfactual."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import bordered, sum_of, symmetric
from ceopt.formulations.programs.gelbrich import add_coupling
from ceopt.formulations.programs.validity.events import events_of
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_lower"]


def validity_lower(plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0) -> pyo.ConcreteModel:
    r"""State the least probability that all counterfactuals of a plan are favourable, as the theorem does (LB-T).

    .. math::
        \min\ & 1 - \sum_j \lambda_j \\
        \text{s.t. } & x_j^\top z_j \le 0, \quad
        B_j = \begin{pmatrix} Z_j & z_j \\ z_j^\top & \lambda_j \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} M & \mu \\ \mu^\top & 1 \end{pmatrix} - \sum_j B_j \succeq 0, \\
        & \begin{pmatrix} M - \Sigma & \mu \\ \mu^\top & 1 \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} \Sigma & C \\ C^\top & \hat\Sigma \end{pmatrix} \succeq 0, \quad
        \lVert \hat\mu \rVert^2 - 2 \hat\mu^\top \mu + \operatorname{Tr}(M + \hat\Sigma - 2 C) \le \rho^2.

    A singular covariance :math:`\hat\Sigma = F F^\top` has :math:`C = K F^\top` and the block of
    :math:`\Sigma, K, I_r`, which has an interior. Radius 0: the last three rows go, M and :math:`\mu` are data, and in
    the coordinates :math:`\theta = \hat\mu + F \xi` they are I and 0:

    .. math::
        x_j^\top (F z_j + \hat\mu \lambda_j) \le 0, \qquad B_j \succeq 0, \qquad I_{r+1} - \sum_j B_j \succeq 0.

    ========== ============== ============ =======================================================================
    symbol     component      shape        meaning
    ========== ============== ============ =======================================================================
    x                         (J, d)       ``plan``
    hats, rho                              ``mean``, ``covariance`` and ``radius``
    lambda     ``weight``     (J,)         probability of the part on which counterfactual j fails
    z, Z       ``z``, ``Z``   (J, d), ...  mean and second moment of the parameters on it, times its probability
    mu, M      ``mean, M``    (d,), (d, d) mean and second moment of the parameters
    Sigma      ``Sigma``      (d, d)       at most their covariance
    C, or K    ``K``          (d, r)       their covariance with the centre's, whitened if that is singular
    (T1)       ``fails``      (J,)         counterfactual j fails on part j
    (T2)       ``part``       d + 1, each  semidefinite
    (T3)       ``rest``       d + 1        semidefinite: what is left is a part too
    (T4)       ``spread``     d + 1        semidefinite
    (T5), (T6) ``ball``       block        :func:`~ceopt.formulations.programs.gelbrich.add_coupling`
    ========== ============== ============ =======================================================================

    (J + 2)d(d + 1)/2 + dr + J(d + 1) + d numbers, J + 1 rows, J + 2 semidefinite blocks of side d + 1 and one of side
    d + r (SDP); J(r + 1)(r + 2)/2 numbers and J + 1 blocks of side r + 1 for radius 0. Exact.
    :func:`~ceopt.formulations.programs.validity_lower_arrow` has the same optimum and a fraction of the size.

    Parameters
    ----------
    plan
        Shape (J, d): one counterfactual a row, favourable where its product with the parameters is at least 0.
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).
    radius
        Gelbrich distance up to which they are uncertain, at least 0.

    Raises
    ------
    InvalidValueError
        Shapes disagree, a number is not finite, the covariance is none, or the radius is negative.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorem 2.2. Radius 0:
    Vandenberghe, Boyd & Comanor (2007), Generalized Chebyshev bounds via semidefinite programming.

    Examples
    --------
    One parameter of mean 2 and variance 1 that must not be negative: Cantelli's inequality gives 4 / 5.

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.validity_lower([[1]], [2], [[1]])
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    fails[0] z[0,0] + 2.0*weight[0]  <=  0.0
    part[0] 0  <=  semidefinite_margin(Z[0,0,0], z[0,0], weight[0])
    rest 0  <=  semidefinite_margin(1.0 - Z[0,0,0], - z[0,0], 1.0 - weight[0])
    >>> round(solve(m).objective, 6)
    0.8
    >>> round(solve(programs.validity_lower([[1]], [2], [[1]], radius=0.5)).objective, 6)
    0.595644
    """
    events = events_of("validity_lower", plan, mean, covariance, radius)
    n, k = events.normals.shape
    parts = range(n)
    model = pyo.ConcreteModel(name="validity_lower")
    model.weight = pyo.Var(parts)
    model.z = pyo.Var(parts, range(k))
    model.Z = pyo.Var([(j, a, b) for j in parts for a in range(k) for b in range(a, k)])

    def fails(m: Any, j: int) -> Any:
        return events.at(j, [m.z[j, a] for a in range(k)], m.weight[j]) <= 0.0

    def part(m: Any, j: int) -> Any:
        return bordered(lambda a, b: m.Z[j, a, b], k, lambda a, _b: m.z[j, a], 1, lambda _a, _b: m.weight[j]) >= 0

    model.fails = pyo.Constraint(parts, rule=fails)
    model.part = pyo.Constraint(parts, rule=part)
    if not events.is_fixed:
        model.mean = pyo.Var(range(k))
        model.M = symmetric(k)
        model.Sigma = symmetric(k)

    def left(variables: Any, whole: Any) -> Any:
        """Return whole - sum of variables, where whole is a number or a Var."""
        names = list(variables)
        signs = [-1.0] * n
        if events.is_fixed or not hasattr(whole, "value"):
            return sum_of(names, signs, whole)
        return sum_of([whole, *names], [1.0, *signs])

    def second(a: int, b: int) -> Any:
        return left((model.Z[j, a, b] for j in parts), float(a == b) if events.is_fixed else model.M[a, b])

    def first(a: int, _b: int) -> Any:
        return left((model.z[j, a] for j in parts), 0.0 if events.is_fixed else model.mean[a])

    model.rest = pyo.Constraint(
        expr=bordered(second, k, first, 1, lambda _a, _b: left(model.weight.values(), 1.0)) >= 0
    )
    if not events.is_fixed:
        spread = bordered(
            lambda a, b: sum_of([model.M[a, b], model.Sigma[a, b]], [1.0, -1.0]),
            k, lambda a, _b: model.mean[a], 1, lambda _a, _b: 1.0,
        )  # fmt: skip
        model.spread = pyo.Constraint(expr=spread >= 0)
        model.ball = pyo.Block()
        add_coupling(model.ball, events.moments, events.radius, model.mean, second=model.M, covariance=model.Sigma)
    model.bound = pyo.Objective(expr=sum_of(model.weight.values(), [-1.0] * n, 1.0))
    describe(
        model,
        Manifest(
            title="validity at worst, the theorem's form",
            formula="min 1 - sum l_j, x_j'z_j <= 0, B_j psd, [[M, mu], [mu', 1]] - sum B_j psd, (mu, M) in the ball",
            reference="COPA theorem 2.2; radius 0: Vandenberghe, Boyd & Comanor (2007)",
        ),
    )
    return model
