"""Corrections of a plan, as programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import require_mean, require_moments, require_plan, require_point
from ceopt.formulations.programs.parts import described, free_columns, require_bounds, sum_of
from ceopt.solvers.checks import LENGTH, Floats, Matrix, check_arguments
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import InvalidTypeError

# ==== Side conditions of a correction: the columns that stay, and conditions on where a counterfactual goes ===========


def combination(variables: Any, coefficients: Any, constant: float = 0.0) -> Any:
    """Return a sum of Vars as one expression, without those whose coefficient is 0."""
    return sum_of(compress(variables, coefficients), filter(None, coefficients), constant)


def require_inequalities(who: str, inequalities: Sequence[ArrayLike] | None, d: int) -> tuple[Floats, Floats]:
    """Return (A, b) of conditions A x <= b on d columns, by default without rows, or refuse them."""
    if inequalities is None:
        return np.zeros((0, d)), np.zeros(0)
    if not isinstance(inequalities, Sequence) or len(inequalities) != 2:
        but = f"inequalities is {type(inequalities).__name__}"
        raise InvalidTypeError(who, "a pair (A, b), meaning A x <= b, as inequalities", but, "Give (A, b).")
    matrix = Matrix((None, d)).require(who, "A of inequalities", inequalities[0])
    return matrix, Matrix((len(matrix),)).require(who, "b of inequalities", inequalities[1])


def add_side_conditions(
    model: Any,
    who: str,
    x: Any,
    *,
    inequalities: Sequence[ArrayLike] | None,
    bounds: Sequence[ArrayLike] | None,
    scale: Any = None,
) -> None:
    """Add the rows ``side``: A x <= b, ``low``: l <= x and ``high``: x <= u, only where a bound is finite.

    With a Var as ``scale``, the right-hand sides are multiplied by it: the conditions on x / scale.
    """
    d = len(x)
    matrix, right = require_inequalities(who, inequalities, d)
    lower, upper = require_bounds(who, bounds, d)

    def row(body: Any, coefficients: Any, limit: float) -> Any:
        """Sum of the body less the limit, or less the limit times the scale."""
        if scale is None:
            return combination(body, coefficients, -limit)
        return combination([*body, scale], [*coefficients, -limit])

    if len(matrix):
        model.side = pyo.Constraint(
            range(len(matrix)), rule=lambda _, i: row(x.values(), matrix[i], float(right[i])) <= 0.0
        )
    for name, limits, sign in (("low", lower, -1.0), ("high", upper, 1.0)):
        held = np.flatnonzero(np.isfinite(limits)).tolist()
        if held:
            rows = {k: row([x[k]], [sign], sign * float(limits[k])) for k in held}
            setattr(model, name, pyo.Constraint(held, rule=lambda _, k, rows=rows: rows[k] <= 0.0))


# ==== The robust improvement: a point near a counterfactual with a given lower bound on its validity ==================

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
    Derived from the closed form in ``ceopt/plans/validity.py`` of one counterfactual's bound, that of
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
    return described(
        model,
        title="robust improvement of one counterfactual",
        formula="max mean'x - kappa |F'x| - radius sqrt(1 + kappa^2) |x|, |x - x0| <= perturbation",
        reference="own; the bound is that of COPA theorem 2.2, J = 1",
    )


# ==== The counterfactual near a given one whose decision boundary is farthest from the mean parameters ================


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
    return described(
        model,
        title="Mahalanobis correction of one counterfactual",
        formula="min |F'v|, |v - t x| <= perturbation t, mean'v = 1",
        reference="COPA theorem 3.1",
    )


# ==== The nearest plan whose counterfactuals are all favourable at the mean parameters ================================


def requirement_correction(
    plan: ArrayLike, mean: ArrayLike, margin: float = 0.0, *, fixed: Iterable[int] | None = None
) -> pyo.ConcreteModel:
    r"""State the least moves after which every counterfactual has a mean score of at least ``margin``.

    .. math::
        \min_{\delta}\ \sum_j \lVert \delta_j \rVert^2 \quad\text{s.t.}\quad
        \hat\mu^\top (x_j + \delta_j) \ge \varepsilon, \quad \delta_{jk} = 0 \text{ for fixed } k.

    =================== ========= ====== ==================================================================
    symbol              component shape  meaning
    =================== ========= ====== ==================================================================
    x                             (J, d) ``plan``, a counterfactual a row
    :math:`\mu`                   (d,)   ``mean`` of the parameters
    :math:`\varepsilon`           ()     ``margin``, in units of the score
    :math:`\delta`      ``move``  (J, d) how far each column goes; fixed columns have none
    x + :math:`\delta`  ``x``     (J, d) the corrected plan, an Expression
    =================== ========= ====== ==================================================================

    J times the free columns in numbers, J rows ``favourable`` (QP). Exact; the rows fall apart into J projections on a
    half-space, whose closed form is :func:`ceopt.plans.requirement_correction`. Infeasible where a counterfactual is
    below the margin and the mean is 0 on all free columns.

    Parameters
    ----------
    plan
        Shape (J, d).
    mean
        Shape (d,).
    margin
        At least 0.
    fixed
        Places of columns that may not move, such as that of the intercept.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, NaN or an infinity, a plan without rows, a negative margin, a place that is no column.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, section 3.1.

    Examples
    --------
    Two counterfactuals, of which the first is unfavourable at the mean and the second is not:

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.requirement_correction([[-2, 1], [1, 3]], mean=[2, 1], margin=1)
    >>> print(m.total.expr)
    move[0,0]**2 + move[0,1]**2 + move[1,0]**2 + move[1,1]**2
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    4.0  <=  2.0*move[0,0] + move[0,1]
    -4.0  <=  2.0*move[1,0] + move[1,1]
    >>> solve(m).status, round(pyo.value(m.x[0, 0]), 6), round(pyo.value(m.x[0, 1]), 6)
    (<Status.OPTIMAL: 'optimal'>, -0.4, 1.8)
    """
    who = "requirement_correction"
    given = require_plan(who, plan)
    n, d = given.shape
    m = require_mean(who, mean, d=d)
    LENGTH.require(who, "margin", margin)
    free = np.flatnonzero(free_columns(who, fixed, d)).tolist()
    model = pyo.ConcreteModel(name=who)
    model.move = pyo.Var(range(n), free)
    model.x = pyo.Expression(
        range(n), range(d), rule=lambda _, j, k: given[j, k] + (model.move[j, k] if k in free else 0.0)
    )
    gaps = float(margin) - given @ m
    model.favourable = pyo.Constraint(
        range(n), rule=lambda block, j: combination([block.move[j, k] for k in free], m[free]) >= float(gaps[j])
    )
    model.total = pyo.Objective(expr=pyo.quicksum(move**2 for move in model.move.values()))
    return described(
        model,
        title="requirement correction",
        formula="min sum |move_j|^2, mean'(x_j + move_j) >= margin",
        reference="COPA section 3.1",
    )
