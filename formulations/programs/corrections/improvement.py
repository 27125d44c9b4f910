"""The robust improvement: a point near a counterfactual with a given lower bound on its validity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.corrections.side_conditions import add_side_conditions, combination, free_columns
from ceopt.formulations.programs.moments import require_moments, require_point
from ceopt.solvers.checks import LENGTH, check_arguments
from ceopt.solvers.cones import soc
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["robust_improvement"]

_CHECKS = {"kappa": LENGTH, "perturbation": LENGTH, "radius": LENGTH}


def robust_improvement(
    x: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    kappa: float,
    perturbation: float,
    radius: float = 0.0,
    fixed: Iterable[int] | None = None,
    inequalities: Sequence[ArrayLike] | None = None,
    bounds: Sequence[ArrayLike] | None = None,
) -> pyo.ConcreteModel:
    r"""State the greatest slack within ``perturbation`` of x in: valid with probability kappa^2 / (1 + kappa^2).

    .. math::
        \max_{x', s, n}\ \hat\mu^\top x' - \kappa s - \rho \sqrt{1 + \kappa^2}\, n \quad\text{s.t.}\quad
        \lVert F^\top x' \rVert \le s, \quad \lVert x' \rVert \le n, \quad \lVert x' - x \rVert \le \Delta, \quad
        x'_k = x_k \text{ for fixed } k, \quad A x' \le b, \quad l \le x' \le u.

    =============== ============ ====== ====================================================================
    symbol          component    shape  meaning
    =============== ============ ====== ====================================================================
    x                            (d,)   the counterfactual
    :math:`\mu`                  (d,)   ``mean`` of the parameters
    F                            (d, r) a factor of ``covariance``, :math:`\Sigma = F F^\top`, r its rank
    :math:`\kappa`               ()     ``kappa``, the level: 1 for a lower bound of 1/2, 3 for 0.9
    :math:`\rho`                 ()     ``radius`` of the Gelbrich ball, a distance
    :math:`\Delta`               ()     ``perturbation``, Euclidean, in units of x
    A, b                         (k, d) ``inequalities`` on the new point, and l, u its ``bounds``
    x'              ``x``        (d,)   the new point
    s, n            ``s``, ``n`` ()     its spread and its norm
    =============== ============ ====== ====================================================================

    d + 2 numbers, the cones ``spread`` of 1 + r, ``length`` of 1 + d and ``near`` of 1 + the free columns, one row
    ``held`` a fixed column (SOCP). Exact: some point in reach has a lower bound of at least
    :math:`\kappa^2 / (1 + \kappa^2)` where the optimum is at least 0, and none where it is below. ``s`` and its cone
    are left out where kappa or the covariance is 0, ``n`` and its cone where the radius is. The greatest such kappa is
    :func:`ceopt.plans.robust_improvement`.

    Parameters
    ----------
    x, mean, covariance, fixed, inequalities, bounds
        As for :func:`~ceopt.formulations.programs.mahalanobis_correction`.
    kappa, perturbation, radius
        At least 0.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As for :func:`~ceopt.formulations.programs.mahalanobis_correction`; a negative number.

    References
    ----------
    Derived from the closed form in ``ceopt/plans/validity/closed_form_cases.py`` of one counterfactual's bound, that of
    theorem 2.2 of Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity.

    Examples
    --------
    One column beside the intercept. With perturbation 1 the score at the mean may rise from 1 to 2, its spread to 2:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.robust_improvement(
    ...     [1, 1], [1, 0], [[1, 0], [0, 0]], kappa=0.5, perturbation=1, radius=0.1, fixed=[1]
    ... )
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    spread 0  <=  second_order_margin(s, x[0])
    length 0  <=  second_order_margin(n, x[0], x[1])
    near 0  <=  second_order_margin(1.0, -1.0 + x[0])
    held[1] x[1]  ==  1.0
    >>> result = solve(m)
    >>> round(result.objective, 6), round(m.x[0].value, 6)
    (0.75, 2.0)
    """
    who = "robust_improvement"
    moments = require_moments(who, mean, covariance)
    d = len(moments.mean)
    point = require_point(who, "x", x, moments)
    check_arguments(who, _CHECKS, locals())
    free = free_columns(who, fixed, d) & (perturbation > 0.0)
    factor = moments.factor

    model = pyo.ConcreteModel(name=who)
    model.x = pyo.Var(range(d))
    score = [combination(model.x.values(), moments.mean)]
    if kappa > 0.0 and factor.shape[1]:
        model.s = pyo.Var()
        model.spread = pyo.Constraint(
            expr=soc(model.s, [combination(model.x.values(), column) for column in factor.T]) >= 0
        )
        score.append(-kappa * model.s)
    if radius > 0.0:
        model.n = pyo.Var()
        model.length = pyo.Constraint(expr=soc(model.n, model.x) >= 0)
        score.append(-radius * math.hypot(1.0, kappa) * model.n)
    if free.any():
        moves = [combination([model.x[k]], [1.0], -point[k]) for k in np.flatnonzero(free).tolist()]
        model.near = pyo.Constraint(expr=soc(float(perturbation), moves) >= 0)
    model.held = pyo.Constraint(np.flatnonzero(~free).tolist(), rule=lambda m, k: m.x[k] == float(point[k]))
    add_side_conditions(model, who, model.x, inequalities=inequalities, bounds=bounds)
    model.slack = pyo.Objective(expr=sum(score), sense=pyo.maximize)
    describe(
        model,
        Manifest(
            title="robust improvement of one counterfactual",
            formula="max mean'x - kappa |F'x| - radius sqrt(1 + kappa^2) |x|, |x - x0| <= perturbation",
            reference="own; the bound is that of COPA theorem 2.2, J = 1",
        ),
    )
    return model
