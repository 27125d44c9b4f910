"""The upper validity bound of a whole plan: the scalar form, second-order cones only."""

from __future__ import annotations

import math

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import sum_of
from ceopt.formulations.programs.validity.events import require_bound_arguments
from ceopt.solvers.checks import LENGTH
from ceopt.solvers.cones import soc
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["validity_upper_scalar"]


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
    describe(
        model,
        Manifest(
            title="validity at best, scalar form",
            formula="min kappa |F'w| + rho sqrt(1 + kappa^2) |w|, w = X'a, a >= 0, -mu'w = 1",
            reference="derived in the docstring; the optimum of COPA theorem 2.3",
        ),
    )
    return model
