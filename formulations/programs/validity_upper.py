"""The upper validity bound of a whole plan: four programs of one optimum.

The coupled form, what `validity_bounds` solves by default, has two second-order cones. Radius 0, where the moments are
known, needs no program there: `ceopt/plans/validity.py`.
"""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import add_price
from ceopt.formulations.programs.parts import bordered, described, sum_of, symmetric
from ceopt.formulations.programs.validity_lower import add_mixture_moments, events_of, require_bound_arguments
from ceopt.solvers.checks import LENGTH
from ceopt.solvers.cones import rotated_soc, soc

# ==== The upper validity bound of a whole plan: the coupled form, what `validity_bounds` solves by default ============


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
    return described(
        model,
        title="validity at best, coupled form",
        formula="max l_1, l_0 + l_1 = 1, X(mu l_1 + F u + rho v) >= 0, |u|^2 <= l_0 l_1, |v|^2 <= l_1",
        reference="derived in the docstring; the optimum of COPA theorem 2.3",
    )


# ==== The upper validity bound of a whole plan: the moment form, all favourable mass at one point =====================


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
    ..         ``ball``    block          :func:`~ceopt.formulations.programs.moments.add_ball`
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
    return described(
        model,
        title="validity at best, moment form",
        formula="max l_1, l_0 + l_1 = 1, X z_1 >= 0, [[M, z], [z', Diag l]] psd, (z_0 + z_1, M) in the ball",
        reference="dual of COPA theorem 2.3",
    )


# ==== The upper validity bound of a whole plan: the scalar form, second-order cones only ==============================


def validity_upper_scalar(
    plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: float = 0.0, *, kappa: float = 1.0
) -> pyo.ConcreteModel:
    r"""State the test of an upper bound on the probability that all counterfactuals of a plan are favourable (UB-S).

    .. math::
        \min_{a, w, t, n}\ \kappa t + \rho \sqrt{1 + \kappa^2}\, n \quad\text{s.t.}\quad w = X^\top a, \quad a \ge 0,
        \quad -\hat\mu^\top w = 1, \quad \lVert F^\top w \rVert \le t, \quad \lVert w \rVert \le n.

    The half-space :math:`w^\top \theta \ge 0` holds all parameters for which the plan is valid. If the optimum is at
    most 1, the probability is at most :math:`1 / (1 + \kappa^2)`; the greatest such :math:`\kappa` gives the bound
    itself. For radius 0 that is 1 over the optimum at :math:`\kappa = 1`. Infeasible if the plan is valid at the mean.

    ========== ============= ============== ===================================================================
    symbol     component     shape          meaning
    ========== ============= ============== ===================================================================
    X                        (J, d)         ``plan``
    mu-hat, F                (d,), (d, r)   ``mean`` and a factor of ``covariance``, r its rank
    rho, kappa                              ``radius`` and ``kappa``
    a          ``a``         (J,)           multipliers of the counterfactuals
    w          ``w``         (d,)           normal of the half-space
    t, n       ``t``, ``n``  1              standard deviation and norm of its score
    rows       ``normal``    (d,)           w = X'a
    ..         ``scale``     1              a mean score of -1
    ..         ``deviation`` r + 1          second-order; absent if r = 0
    ..         ``norm``      d + 1          second-order; absent for radius 0
    ========== ============= ============== ===================================================================

    J + d + 2 numbers, d + 1 rows and two second-order cones (SOCP). Exact; any feasible w proves the bound that it has
    as one counterfactual.

    Parameters
    ----------
    plan, mean, covariance, radius
        As for :func:`~ceopt.formulations.programs.validity_lower`, and refused as there.
    kappa
        Root of the odds against validity that are tested, at least 0.

    References
    ----------
    Derived above; the bound is that of theorem 2.3 of Bui, Nguyen & Nguyen (2022), Counterfactual plans under
    distributional ambiguity.

    Examples
    --------
    One parameter of mean -2 and variance 1 that must not be negative: the optimum 1 / 2 gives kappa = 2 and the bound
    1 / 5 of Cantelli.

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.validity_upper_scalar([[1]], [-2], [[1]])
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    normal[0] w[0] - a[0]  ==  0.0
    scale 2.0*w[0]  ==  1.0
    deviation 0  <=  second_order_margin(t, w[0])
    >>> round(solve(m).objective, 6)
    0.5
    """
    who = "validity_upper_scalar"
    x, moments, rho = require_bound_arguments(who, plan, mean, covariance, radius)
    LENGTH.require(who, "kappa", kappa)
    n, d = x.shape
    factor = moments.factor
    model = pyo.ConcreteModel(name=who)
    model.a = pyo.Var(range(n), bounds=(0.0, None))
    model.w = pyo.Var(range(d))
    model.t = pyo.Var(bounds=(0.0, None))
    multipliers = list(model.a.values())
    normal = list(model.w.values())
    model.normal = pyo.Constraint(range(d), rule=lambda m, k: sum_of([m.w[k], *multipliers], [1.0, *(-x[:, k])]) == 0.0)
    model.scale = pyo.Constraint(expr=sum_of(normal, -moments.mean) == 1.0)
    if factor.shape[1]:
        model.deviation = pyo.Constraint(expr=soc(model.t, [sum_of(normal, column) for column in factor.T]) >= 0)
    terms = [model.t]
    prices = [float(kappa)]
    if rho:
        model.n = pyo.Var(bounds=(0.0, None))
        model.norm = pyo.Constraint(expr=soc(model.n, normal) >= 0)
        terms = [model.t, model.n]
        prices = [float(kappa), rho * math.hypot(1.0, kappa)]
    model.test = pyo.Objective(expr=sum_of(terms, prices))
    return described(
        model,
        title="validity at best, scalar form",
        formula="min kappa |F'w| + rho sqrt(1 + kappa^2) |w|, w = X'a, a >= 0, -mu'w = 1",
        reference="derived in the docstring; the optimum of COPA theorem 2.3",
    )


# ==== The upper validity bound of a whole plan: the theorem's own form, a quadratic above 1 on the valid cone =========


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
    (U1), (U2) ``price``       block        :func:`~ceopt.formulations.programs.moments.add_price`
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
    return described(
        model,
        title="validity at best, the theorem's form",
        formula="min E[t'Zt + 2z't + z0] at worst, the quadratic >= 0, and >= 1 where X t >= 0",
        reference="COPA theorem 2.3",
    )
