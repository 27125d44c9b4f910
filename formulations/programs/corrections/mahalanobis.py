"""The counterfactual near a given one whose decision boundary is farthest from the mean parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.corrections.side_conditions import add_side_conditions, combination, free_columns
from ceopt.formulations.programs.moments import require_moments, require_point
from ceopt.solvers.checks import LENGTH
from ceopt.solvers.cones import soc
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["mahalanobis_correction"]


def mahalanobis_correction(
    x: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    perturbation: float,
    fixed: Iterable[int] | None = None,
    inequalities: Sequence[ArrayLike] | None = None,
    bounds: Sequence[ArrayLike] | None = None,
) -> pyo.ConcreteModel:
    r"""State the point within ``perturbation`` of x that is the most standard deviations inside at the mean.

    The ratio :math:`\hat\mu^\top x' / \sqrt{x'^\top \hat\Sigma x'}` is the Mahalanobis distance from the mean to the
    boundary :math:`\{\theta : x'^\top \theta = 0\}`. With :math:`t = 1 / \hat\mu^\top x'` and v = t x' its maximum is
    that of a second-order cone program:

    .. math::
        \min_{s, v, t}\ s \quad\text{s.t.}\quad \lVert F^\top v \rVert \le s, \quad
        \lVert v - t x \rVert \le \Delta t, \quad \hat\mu^\top v = 1, \quad
        v_k = t x_k \text{ for fixed } k, \quad A v \le b t, \quad l t \le v \le u t, \quad t \ge 0.

    =============== ============ ====== ====================================================================
    symbol          component    shape  meaning
    =============== ============ ====== ====================================================================
    x                            (d,)   the counterfactual
    :math:`\mu`                  (d,)   ``mean`` of the parameters
    F                            (d, r) a factor of ``covariance``, :math:`\Sigma = F F^\top`, r its rank
    :math:`\Delta`               ()     ``perturbation``, Euclidean, in units of x
    A, b                         (k, d) ``inequalities`` on the new point, and l, u its ``bounds``
    s               ``s``        ()     1 / ratio; at the optimum, of the best point
    v, t            ``v``, ``t`` (d,)   the new point is v / t; t is above 0 at every feasible point
    =============== ============ ====== ====================================================================

    d + 2 numbers, one row ``unit``, one row ``held`` a fixed column, the cones ``spread`` of 1 + r entries and ``near``
    of 1 + the free columns, and the rows of the side conditions (SOCP). Exact. Without covariance there is no
    ``spread``; with perturbation 0 all columns are held. Infeasible exactly where no point in reach, in all
    conditions, has a positive mean score.

    Parameters
    ----------
    x, mean
        Shape (d,).
    covariance
        Shape (d, d), symmetric and positive semidefinite.
    perturbation
        At least 0.
    fixed
        Places of columns that may not move, such as that of the intercept.
    inequalities
        A pair (A, b) of shapes (k, d) and (k,), meaning A x' <= b.
    bounds
        A pair (lower, upper) of shape (d,), infinite where there is none.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a covariance that is none, a negative perturbation, a place that is no
        column, bounds that cross.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, Theorem 3.1.

    Examples
    --------
    The mean is (0, 1). From (1, 1) the ball of radius 1 reaches (0, 1), where the ratio is greatest, 1:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.mahalanobis_correction([1, 1], [0, 1], [[1, 0], [0, 1]], perturbation=1)
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.name, row.expr)
    unit v[1]  ==  1.0
    spread 0  <=  second_order_margin(s, v[0], v[1])
    near 0  <=  second_order_margin(t, v[0] - t, v[1] - t)
    >>> round(solve(m).objective, 6)
    1.0
    """
    who = "mahalanobis_correction"
    moments = require_moments(who, mean, covariance)
    d = len(moments.mean)
    point = require_point(who, "x", x, moments)
    LENGTH.require(who, "perturbation", perturbation)
    free = free_columns(who, fixed, d) & (perturbation > 0.0)
    factor = moments.factor

    model = pyo.ConcreteModel(name=who)
    model.s = pyo.Var(domain=pyo.NonNegativeReals)
    model.v = pyo.Var(range(d))
    model.t = pyo.Var(domain=pyo.NonNegativeReals)
    away = [combination([model.v[k], model.t], [1.0, -point[k]]) for k in range(d)]
    model.unit = pyo.Constraint(expr=combination(model.v.values(), moments.mean) == 1.0)
    if factor.shape[1]:
        model.spread = pyo.Constraint(
            expr=soc(model.s, [combination(model.v.values(), column) for column in factor.T]) >= 0
        )
    if free.any():
        reach = combination([model.t], [perturbation])
        model.near = pyo.Constraint(expr=soc(reach, [away[k] for k in np.flatnonzero(free)]) >= 0)
    model.held = pyo.Constraint(np.flatnonzero(~free).tolist(), rule=lambda _, k: away[k] == 0.0)
    add_side_conditions(model, who, model.v, inequalities=inequalities, bounds=bounds, scale=model.t)
    model.inverse_ratio = pyo.Objective(expr=model.s)
    describe(
        model,
        Manifest(
            title="Mahalanobis correction of one counterfactual",
            formula="min |F'v|, |v - t x| <= perturbation t, mean'v = 1",
            reference="COPA theorem 3.1",
        ),
    )
    return model
