r"""The lower validity bound of a whole plan: five programs of one optimum.

The coupled form, what `validity_bounds` solves by default, and the arrow form have one semidefinite block for all
counterfactuals; beside them stand the dual, the form without cones, and the theorem's own.

The events of a validity bound, each a half-space, in coordinates in which the moments have an interior.

For a radius above 0 the coordinates are the parameters themselves. For radius 0 mean and covariance are data, and every
distribution that has them is that of :math:`\theta = \hat\mu + F \xi` with :math:`\mathbb{E}\,\xi = 0` and
:math:`\operatorname{Cov} \xi = I_r`, where :math:`\hat\Sigma = F F^\top` and F has shape (d, r). Written in
:math:`\xi`, the programs of radius 0 keep their accuracy whatever the rank of the covariance.

The least probability of a positive score, in closed form, where its mean and deviation are known up to a distance.

For one counterfactual x, :math:`m = x^\top \hat\mu`, :math:`s = \sqrt{x^\top \hat\Sigma x}` and
:math:`r = \rho \lVert x \rVert`: mean and standard deviation of the score range over the half disc of radius r around
(m, s), and the worst of them is where a line through 0 touches it. Without uncertainty (r = 0) this is
Cantelli's inequality, :math:`m^2 / (m^2 + s^2)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import (
    Moments,
    add_ball,
    add_coupling,
    add_price,
    require_moments,
    require_plan,
)
from ceopt.formulations.programs.parts import bordered, described, sum_of, symmetric
from ceopt.solvers.checks import LENGTH, Floats
from ceopt.solvers.cones import rotated_soc

# ==== The events of a validity bound, each a half-space, in coordinates in which the moments have an interior =========


@final
@dataclass(frozen=True, slots=True, eq=False)
class ValidityEvents:
    r"""The events that a plan's counterfactuals are favourable, in a program's coordinates; their moments and radius.

    Parameters
    ----------
    plan
        Shape (J, d).
    radius
        At least 0.
    normals, offsets
        Shapes (J, k) and (J,): counterfactual j is favourable where normals[j]' y + offsets[j] >= 0. They are the plan
        and 0 for a radius above 0, where y is :math:`\theta` and k is d; :math:`X F` and :math:`X \hat\mu` for radius
        0, where y is :math:`\xi` and k is r.
    """

    plan: Floats
    moments: Moments
    radius: float
    normals: Floats
    offsets: Floats

    @property
    def is_fixed(self) -> bool:
        """Whether mean and covariance are data: the radius is 0."""
        return self.radius == 0.0

    def at(self, j: int, z: Any, weight: Any) -> Any:
        r"""Return :math:`\mathbb{E}[x_j^\top \theta; E]` for an event E with ``z`` = E[y; E] and ``weight`` = P(E)."""
        return self.with_offset([*z], self.normals[j], weight, self.offsets[j])

    def with_offset(
        self, names: list[Any], coefficients: Any, weight: Any, offset: float, constant: float = 0.0
    ) -> Any:
        """Return a sum, with the offset's term only where there are offsets: for a radius of 0."""
        if self.is_fixed:
            names = [*names, weight]
            coefficients = [*coefficients, offset]
        return sum_of(names, coefficients, constant)


def require_radius(who: str, radius: Any) -> float:
    """Return a finite radius that is at least 0, or refuse it in the name of ``who``."""
    return LENGTH.require(who, "radius", radius)


def require_bound_arguments(
    who: str, plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: Any
) -> tuple[Floats, Moments, float]:
    """Return plan, moments and radius, the arguments of every bound, or refuse one in the name of ``who``."""
    moments = require_moments(who, mean, covariance)
    return require_plan(who, plan, d=len(moments.mean)), moments, require_radius(who, radius)


def events_of(who: str, plan: ArrayLike, mean: ArrayLike, covariance: ArrayLike, radius: Any) -> ValidityEvents:
    """Return the events of a program from its arguments, or refuse what does not fit in the name of ``who``."""
    x, moments, distance = require_bound_arguments(who, plan, mean, covariance, radius)
    if distance:
        return ValidityEvents(x, moments, distance, x, np.zeros(len(x)))
    return ValidityEvents(x, moments, distance, x @ moments.factor, x @ moments.mean)


# ==== A mixture: a distribution in parts, whose joint moments are within the ball =====================================


def add_mixture_moments(model: Any, events: ValidityEvents) -> None:
    r"""Join the parts of ``model``: ``weight[j]`` of the mass, with ``z[j]`` its part of the mean.

    .. math::
        \begin{pmatrix} M & z_0 \dots z_n \\ \cdot & \operatorname{Diag}(\lambda) \end{pmatrix} \succeq 0, \quad
        (\mu, M) \in \text{ball}, \quad \mu = \sum_j z_j

    as ``M``, ``mean``, ``ball`` and the cone ``parts``; for radius 0, ``centred`` rows and M = I.
    """
    count = len(model.weight)
    k = events.normals.shape[1]
    total = [sum_of([model.z[j, a] for j in range(count)]) for a in range(k)]
    if events.is_fixed:
        model.centred = pyo.Constraint(range(k), rule=lambda _m, a: total[a] == 0.0)
    else:
        model.M = symmetric(k)
        model.mean = pyo.Expression(range(k), rule=lambda _m, a: total[a])
        model.ball = pyo.Block()
        add_ball(model.ball, events.moments, events.radius, lambda a: model.mean[a], model.M)

    def second(a: int, b: int) -> Any:
        return float(a == b) if events.is_fixed else model.M[a, b]

    def masses(i: int, j: int) -> Any:
        return model.weight[i] if i == j else 0.0

    parts = bordered(second, k, lambda a, j: model.z[j, a], count, masses)
    model.parts = pyo.Constraint(expr=parts >= 0)


# ==== The least probability of a positive score =======================================================================


def least_of_score(m: float, s: float, r: float) -> tuple[float, float]:
    """Return (p, 1 - p), p being the least probability of a positive score, each to its own last digits.

    Parameters
    ----------
    m, s
        Mean and standard deviation of the score.
    r
        How far the two are uncertain.
    """
    if m <= r:
        return 0.0, 1.0
    s, r = s / m, r / m  # no square of large or small numbers
    touch = math.sqrt((1.0 - r) * (1.0 + r) + s * s)
    size = math.hypot(1.0, s)
    sine = (s * touch + r) / (size * size)
    cosine = (1.0 - r) * (1.0 + r) / (touch + s * r)
    return min(cosine * cosine, 1.0), min(sine * sine, 1.0)


# ==== The lower validity bound of a whole plan: the arrow form, one block for all counterfactuals =====================


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
    ..         ``ball``    block          :func:`~ceopt.formulations.programs.moments.add_ball`
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
    return described(
        model,
        title="validity at worst, arrow form",
        formula="min l_0, sum l = 1, x_j'z_j <= 0, [[M, z], [z', Diag l]] psd, (sum z, M) in the ball",
        reference="COPA theorem 2.2, its Z_j eliminated; radius 0: Vandenberghe, Boyd & Comanor (2007)",
    )


# ==== The lower validity bound of a whole plan: the coupled form, what `validity_bounds` solves by default ============


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
    return described(
        model,
        title="validity at worst, coupled form",
        formula="min l_0, sum l = 1, sum u = 0, x_j'(mu l_j + F u_j + rho v_j) <= 0, [[I, u], [u', Diag l]] psd, "
        "sum |v_j|^2 / l_j <= 1",
        reference="derived in the docstring; the optimum of COPA theorem 2.2",
    )


# ==== The lower validity bound of a whole plan: the dual, a quadratic above 1 wherever a counterfactual fails =========


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
    ..         ``price``       block        :func:`~ceopt.formulations.programs.moments.add_price`
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
    return described(
        model,
        title="validity at worst, dual form",
        formula="max 1 - E[t'Pt + 2q't + r] at worst, the quadratic >= 0, and >= 1 where x_j't <= 0",
        reference="dual of COPA theorem 2.2",
    )


# ==== The lower validity bound of a whole plan: without cones, as products of variables ===============================


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
        moves = [model.mean[a] - float(centre[a]) for a in columns]
        for a, b in product(columns, repeat=2):
            moves.append(model.G[a, b] - float(factor[a, b]))
        model.near = pyo.Constraint(expr=pyo.quicksum(move * move for move in moves) <= rho**2)
    model.bound = pyo.Objective(expr=model.s[0] * model.s[0])
    return described(
        model,
        title="validity at worst, nonlinear form",
        formula="min s_0^2, sum s^2 = 1, x_j'w_j <= 0, mu = sum s_j w_j, GG' + mu mu' = sum w_j w_j' + TT'",
        reference="derived in the docstring; the optimum of COPA theorem 2.2",
    )


# ==== The lower validity bound of a whole plan: the theorem's own form, one block a counterfactual ====================


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
    (T5), (T6) ``ball``       block        :func:`~ceopt.formulations.programs.moments.add_coupling`
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
    return described(
        model,
        title="validity at worst, the theorem's form",
        formula="min 1 - sum l_j, x_j'z_j <= 0, B_j psd, [[M, mu], [mu', 1]] - sum B_j psd, (mu, M) in the ball",
        reference="COPA theorem 2.2; radius 0: Vandenberghe, Boyd & Comanor (2007)",
    )
