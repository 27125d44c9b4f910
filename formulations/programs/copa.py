"""The COPA problem: plans that are near, likely to survive retraining and diverse.

``copa_plan`` is the whole problem in quadratic rows, which `copa_plan(method="nonlinear")` of the plans solves on SCIP.
``copa_plan_alike`` is the nearest counterfactual of a validity value, of which a plan without diversity consists; the
plans' method "global" solves it value by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.linear_form import finite_or_none
from ceopt.formulations.programs.moments import Moments, require_moments, require_point
from ceopt.formulations.programs.parts import (
    Cost,
    Distance,
    PointRegion,
    add_point,
    affine_differences,
    described,
    limits_of,
    require_distance,
    require_region,
    sum_of,
)
from ceopt.formulations.programs.subset import pairs_of
from ceopt.solvers.checks import LENGTH, Floats, OrNone, Real, Whole, check_arguments
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import InvalidValueError

# ==== The diversity of a plan: the determinant of the kernel of its distances, in quadratic rows ======================


def add_determinant(model: Any, distance: Distance, region: PointRegion, *, most: float, smoothing: float) -> None:
    """Add ``det``, the determinant of the kernel of the counterfactuals ``x``, no two of which are ``most`` apart.

    :func:`~ceopt.formulations.programs.copa_plan` says what the rows are.
    """
    n = 1 + max(j for j, _ in model.x)
    model.det = pyo.Var(bounds=(0.0, 1.0))
    if n > 1:
        _add_distances(model, n, distance, region, smoothing)
        most += smoothing * (len(region.lower) if distance.kind == "l1" else 1)
        for each in model.D.values():
            each.setub(most)
        model.K = pyo.Var(pairs_of(n), bounds=(1.0 / (1.0 + most), 1.0))
        model.kernel = pyo.Constraint(pairs_of(n), rule=lambda m, i, j: m.K[i, j] * (1.0 + m.D[i, j]) == 1.0)
    if n <= 2:
        square = model.K[0, 1] ** 2 if n == 2 else 0.0
        model.determinant = pyo.Constraint(expr=model.det + square == 1.0)
    elif n == 3:
        a = model.K[0, 1]
        b = model.K[0, 2]
        c = model.K[1, 2]
        model.p = pyo.Var(bounds=(0.0, 1.0))
        model.product = pyo.Constraint(expr=model.p - a * b == 0.0)
        model.determinant = pyo.Constraint(expr=model.det - 2.0 * model.p * c + a**2 + b**2 + c**2 == 1.0)
    else:
        _add_factor(model, n)


def _add_distances(model: Any, n: int, distance: Distance, region: PointRegion, smoothing: float) -> None:
    """Add ``D`` of each pair; with "l1" the sum of the distances ``e`` of the columns."""
    d = len(region.lower)
    pairs = pairs_of(n)
    model.D = pyo.Var(pairs, domain=pyo.NonNegativeReals)
    if distance.kind == "l1":
        widths = region.upper - region.lower
        model.e = pyo.Var(pairs, range(d), bounds=lambda _, _i, _j, k: (0.0, float(widths[k]) + smoothing))

        def gap(m: Any, i: int, j: int, k: int) -> Any:
            return m.e[i, j, k] ** 2 - (m.x[i, k] - m.x[j, k]) ** 2 == smoothing**2

        def added_up(m: Any, i: int, j: int) -> Any:
            return sum_of([*(m.e[i, j, k] for k in range(d)), m.D[i, j]], [*[1.0] * d, -1.0]) == 0.0

        model.gap = pyo.Constraint(pairs, range(d), rule=gap)
        model.apart = pyo.Constraint(pairs, rule=added_up)
        return

    def apart(m: Any, i: int, j: int) -> Any:
        moved = [m.x[i, k] - m.x[j, k] for k in range(d)]
        if distance.factor is not None:
            moved = [_weighted_sum(column, moved) for column in distance.factor.T]
        return m.D[i, j] ** 2 - squares_of(moved) == smoothing**2

    model.apart = pyo.Constraint(pairs, rule=apart)


def _weighted_sum(weights: Floats, parts: list[Any]) -> Any:
    return sum(float(weight) * part for weight, part in zip(weights, parts, strict=True))


def _add_factor(model: Any, n: int) -> None:
    """Add a lower triangular factor of the kernel; the determinant is the product of its squared diagonal."""
    lower = [(i, j) for i in range(n) for j in range(i + 1)]
    model.T = pyo.Var(lower, bounds=lambda _, i, j: (0.0 if i == j else -1.0, 1.0))
    model.q = pyo.Var(range(n), bounds=(0.0, 1.0))
    model.p = pyo.Var(range(n), bounds=(0.0, 1.0))

    def factor(m: Any, i: int, j: int) -> Any:
        product = sum(m.T[i, k] * m.T[j, k] for k in range(j + 1))
        if i == j:
            return product == 1.0
        return product - m.K[j, i] == 0.0

    model.factor = pyo.Constraint(lower, rule=factor)
    model.square = pyo.Constraint(range(n), rule=lambda m, i: m.q[i] - m.T[i, i] ** 2 == 0.0)

    def chain(m: Any, i: int) -> Any:
        if i == 0:
            return m.p[i] - m.q[i] == 0.0
        return m.p[i] - m.p[i - 1] * m.q[i] == 0.0

    model.chain = pyo.Constraint(range(n), rule=chain)
    model.determinant = pyo.Constraint(expr=sum_of((model.det, model.p[n - 1]), (1.0, -1.0)) == 0.0)


def squares_of(parts: list[Any]) -> Any:
    """Return the sum of the squares of some expressions."""
    return sum(part**2 for part in parts)


# ==== The nearest counterfactual whose validity value is at least r ===================================================

_NEAREST_CHECKS = {"radius": Real(at_least=0.0), "margin": LENGTH}


def copa_plan_alike(
    factual: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    radius: float,
    margin: float = 0.0,
    cost: Cost | ArrayLike = "l2",
    fixed: Sequence[int] | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
) -> pyo.ConcreteModel:
    r"""State the nearest counterfactual whose validity value is at least r, :math:`\varphi(r)`.

    Without diversity all counterfactuals of an optimal plan may be the same, and the plan is the least of
    :math:`\varphi(r) - \lambda_1 r` over the one number r.

    .. math::
        \varphi(r) = \min_{x, t}\ t \quad\text{s.t.}\quad \lVert x - x^0 \rVert \le t, \quad
        r \lVert F^\top x \rVert \le \hat\mu^\top x, \quad \hat\mu^\top x \ge \varepsilon, \quad l \le x \le u, \quad
        \sum_{k \in G} x_k = 1, \quad x_G \in \{0, 1\}^{|G|}, \qquad F F^\top = \hat\Sigma.

    ====== ============ ===== ================================================================================
    symbol component    shape meaning
    ====== ============ ===== ================================================================================
    x      ``x``        (d,)  the counterfactual; l and u are its bounds, and equal for ``fixed`` columns
    t      ``t``        ()    its distance from the factual; row ``near``, with "l1" and "linf" rows ``up`` and
                              ``down`` and numbers ``m``, each at least one :math:`|x_k - x^0_k|`
    mu     ``margin``   ()    ``mean``; the row is :math:`\hat\mu^\top x \ge \varepsilon`
    F      ``valid``    (d,q) a factor of ``covariance``, q its rank; without rows for r = 0, and for r infinite
                              rows ``still``: :math:`F^\top x = 0`
    G      ``one_hot``  (g,)  ``groups`` of more than one column, each a categorical column's
    ====== ============ ===== ================================================================================

    d + 1 numbers ("l1", "linf": 2d + 1), of which the columns of groups are binary; 2 cones and 1 + g rows (SOCP, with
    groups MISOCP; "l1" and "linf" have 2d + 1 rows for a cone). Exact.

    Parameters
    ----------
    factual, mean, covariance, margin, fixed, bounds, groups
        As for :func:`~ceopt.formulations.programs.copa_plan`.
    radius
        r, at least 0 and possibly infinite; feasible only up to :math:`\sqrt{\hat\mu^\top \hat\Sigma^{-1} \hat\mu}`.
    cost
        "l1", "l2", "linf", or a positive definite M for :math:`\sqrt{(x - x^0)^\top M (x - x^0)}`.

    Raises
    ------
    InvalidValueError, UnknownNameError
        Shapes that disagree, no covariance, a negative radius or margin, an unknown cost, or columns that are none.

    References
    ----------
    Derived from (6) of Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, without its
    diversity term; the validity value is that of their lemma 4.1.

    Examples
    --------
    One column, factual -1, mean 1 and variance 1: every positive x has the validity value 1.

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.copa_plan_alike([-1.0], [1.0], [[1.0]], radius=0.5, margin=1.0)
    >>> for row in m.component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    0  <=  second_order_margin(t, 1.0 + x[0])
    1.0  <=  x[0]
    0  <=  second_order_margin(x[0], 0.5*x[0])
    >>> round(solve(m).objective, 6)
    2.0
    """
    who = "copa_plan_alike"
    moments = require_moments(who, mean, covariance)
    x0 = require_point(who, "factual", factual, moments)
    check_arguments(who, _NEAREST_CHECKS, locals())
    distance = require_distance(who, cost, len(x0))
    region = require_region(who, x0, fixed=fixed, bounds=bounds, groups=groups)
    model = pyo.ConcreteModel(name=who)
    add_point(model, x0, distance, region)
    mean_score = sum_of(model.x.values(), moments.mean)
    model.margin = pyo.Constraint(expr=mean_score >= float(margin))
    factor = moments.factor
    if radius == np.inf:
        model.still = pyo.Constraint(
            range(factor.shape[1]), rule=lambda m, q: sum_of(m.x.values(), factor[:, q]) == 0.0
        )
    elif radius > 0.0 and factor.shape[1]:
        spread = [sum_of(model.x.values(), radius * column) for column in factor.T]
        model.valid = pyo.Constraint(expr=soc(mean_score, spread) >= 0)
    model.distance = pyo.Objective(expr=model.t)
    return described(
        model,
        title="nearest counterfactual of a validity value",
        formula="min |x - x0|, r |F'x| <= mean'x, mean'x >= margin",
        reference="COPA (6) without diversity, lemma 4.1",
    )


# ==== The COPA problem as an explicit program of quadratic rows =======================================================

_PLAN_CHECKS = {
    "n": Whole(at_least=1),
    "validity_weight": LENGTH,
    "diversity_weight": LENGTH,
    "margin": LENGTH,
    "smoothing": LENGTH,
    "within": OrNone(Real(above=0.0)),
}


def copa_plan(
    factual: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    n: int,
    validity_weight: float,
    diversity_weight: float,
    margin: float = 0.0,
    cost: Cost | ArrayLike = "l2",
    fixed: Sequence[int] | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    within: float | None = None,
    smoothing: float = 1e-4,
) -> pyo.ConcreteModel:
    r"""State the plan of J counterfactuals that is near, valid in a large ellipsoid of parameters, and diverse.

    .. math::
        \min\ & \tfrac{1}{J} \sum_j t_j - \lambda_1 r - \lambda_2 \det K \quad\text{s.t.}\\
        & t_j^2 \ge \lVert x_j - x^0 \rVert^2, \quad r n_j \le \hat\mu^\top x_j, \quad
        n_j^2 \ge x_j^\top \hat\Sigma x_j, \quad \hat\mu^\top x_j \ge \varepsilon, \\
        & D_{ij}^2 = \lVert x_i - x_j \rVert^2 + \delta^2, \quad K_{ij} (1 + D_{ij}) = 1, \\
        & l \le x_j \le u, \quad \sum_{k \in G} x_{jk} = 1, \quad x_{jG} \in \{0, 1\}^{|G|}, \quad
        t, r, n, D \ge 0.

    The determinant is 1 for J = 1, :math:`1 - K_{01}^2` for J = 2, and for J = 3, with :math:`p = K_{01} K_{02}`,
    :math:`1 + 2 p K_{12} - K_{01}^2 - K_{02}^2 - K_{12}^2`. From J = 4 it is a product along the diagonal of a factor:
    :math:`\sum_{k \le j} T_{ik} T_{jk} = K_{ij}`, :math:`q_i = T_{ii}^2`, :math:`p_i = p_{i-1} q_i`, :math:`T_{ii} \ge
    0`, and :math:`\det K = p_{J-1}`; K is positive semidefinite for the distances allowed here.

    ====== ============ ============ =============================================================================
    symbol component    shape        meaning
    ====== ============ ============ =============================================================================
    x      ``x``        (J, d)       the plan
    t      ``t``        (J,)         distances from the factual, rows ``near``; with "l1" also ``m`` of shape (J, d)
    r      ``r``        ()           the validity value of the plan, at most ``greatest_ratio``
    n      ``n``        (J,)         :math:`\lVert F^\top x_j \rVert`, rows ``spread``; row ``valid`` has the ratio
    D      ``D``        (J(J-1)/2,)  distances within the plan, rows ``apart``; with "l1" of each column ``e``, rows
                                     ``gap``
    K      ``K``        (J(J-1)/2,)  their kernel, rows ``kernel``
    det K  ``det``      ()           row ``determinant``; for J = 3 with ``p`` of the text, row ``product``
    T      ``T``        J(J+1)/2     from J = 4, rows ``factor``; ``q`` and ``p`` with rows ``square`` and ``chain``
    G      ``one_hot``  (J, g)       each group of more than one column adds up to 1
    ====== ============ ============ =============================================================================

    Jd + 2J + 2 + J(J-1) numbers, from J = 4 J(J+1)/2 + 2J more; the columns of groups are binary. Quadratic and
    bilinear rows only (a nonconvex QCQP, with groups mixed-integer): SCIP and Gurobi solve it globally, and without
    groups ``pyo.SolverFactory("ipopt")`` locally. Parts of weight 0 are left out. Exact but for the smoothing: D is
    at least the distance and at most that plus delta (with "l1" d times delta). r is at most ``greatest_ratio``,
    which binds only where a counterfactual of zeros, or one without variance, makes the ratio infinite.

    All x are bounded, as global solvers need: no counterfactual of an optimal plan is farther from the factual than J
    times what the plan of J equal nearest ones costs more than the least possible. ``within`` says another distance.

    Parameters
    ----------
    factual
        Shape (d,).
    mean, covariance
        Of the parameters, shapes (d,) and (d, d).
    n
        J, at least 1.
    validity_weight, diversity_weight
        :math:`\lambda_1` and :math:`\lambda_2`, at least 0.
    margin
        Least score under the mean of each counterfactual, at least 0.
    cost
        "l1", "l2", or a positive definite M for :math:`\sqrt{(x - y)^\top M (x - y)}`. "linf" is refused: its kernel
        may be indefinite.
    fixed
        Columns that are held at the factual; the intercept's, if there is one.
    bounds
        ``(lower, upper)``, each one number or one a column.
    groups
        Columns of each one-hot group; of one column, which is 0 or 1.
    within
        Farthest that a counterfactual may be from the factual; None: as far as an optimal one can be.
    smoothing
        delta, at least 0. 0 is exact, and is for global solvers: a local one needs a slope where points coincide.

    Raises
    ------
    InvalidValueError, UnknownNameError
        Shapes that disagree, no covariance, negative weights or margin, a cost with another kernel, or columns that
        are none.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, (4) to (6). The
    smoothing, the factor of K and the bounds of x are own.

    Examples
    --------
    One column: the first counterfactual is at the margin, 1, and the second farther by 1, where half a step more costs
    as much as its diversity is worth.

    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.copa_plan([-1.0], [1.0], [[1.0]], n=2, validity_weight=0.25, diversity_weight=2.0, margin=1.0,
    ...                        smoothing=0.0)
    >>> print(m.value.expr)
    0.5*t[0] + 0.5*t[1] - 0.25*r - 2.0*det
    >>> for name in ("near", "margin", "valid", "spread", "apart", "kernel", "determinant"):
    ...     print(next(iter(m.component(name).values())).expr)
    (1.0 + x[0,0])**2 - t[0]**2  <=  0.0
    1.0  <=  x[0,0]
    r*n[0] - (x[0,0])  <=  0.0
    (x[0,0])**2 - n[0]**2  <=  0.0
    D[0,1]**2 - (x[0,0] - x[1,0])**2  ==  0.0
    K[0,1]*(1.0 + D[0,1])  ==  1.0
    det + K[0,1]**2  ==  1.0
    >>> round(solve(m, "scip").objective, 4)  # doctest: +SKIP
    0.75
    """
    who = "copa_plan"
    moments = require_moments(who, mean, covariance)
    x0 = require_point(who, "factual", factual, moments)
    check_arguments(who, _PLAN_CHECKS, locals())
    distance = require_distance(who, cost, len(x0))
    if distance.kind == "linf":
        then = "Use 'l1', 'l2' or a matrix."
        raise InvalidValueError(who, "a cost whose kernel is positive semidefinite", "cost is 'linf'", then)
    region = require_region(who, x0, fixed=fixed, bounds=bounds, groups=groups)
    most = greatest_ratio(moments)
    if within is None:
        within = _farthest(x0, moments, distance, region, margin) + diversity_weight
        within = n * (within + (validity_weight * most if validity_weight else 0.0))
    if not np.isfinite(within):
        but = "the covariance is singular and the mean outside its range"
        then = "Say within, the farthest that a counterfactual may be."
        raise InvalidValueError(who, "a bounded validity value, or a bounded plan", but, then)
    model = pyo.ConcreteModel(name=who)
    tight = _add_points(model, x0, n, distance, region=region, within=float(within))
    model.margin = pyo.Constraint(
        range(n), rule=lambda m, j: sum_of([m.x[j, k] for k in range(len(x0))], moments.mean) >= float(margin)
    )
    value: Any = sum_of(model.t.values(), [1.0 / n] * n)
    if validity_weight:
        value -= float(validity_weight) * _validity(model, n, moments, most=most, region=tight)
    if diversity_weight:
        add_determinant(model, distance, tight, most=2.0 * float(within), smoothing=float(smoothing))
        value -= float(diversity_weight) * model.det
    model.value = pyo.Objective(expr=value)
    return described(
        model,
        title="COPA plan",
        formula="min mean t - validity r - diversity det K, r n_j <= mean'x_j, n_j >= |F'x_j|, K (1 + D) = 1",
        reference="COPA (4) to (6)",
    )


def greatest_ratio(moments: Moments) -> float:
    r"""Return :math:`\sqrt{\hat\mu^\top \hat\Sigma^{-1} \hat\mu}`, which no validity value exceeds; it may be infinite.

    For a singular covariance it is infinite if the mean is outside its range: counterfactuals may have no variance.
    """
    factor = moments.factor
    if factor.shape[1]:
        weights = np.linalg.lstsq(factor, moments.mean, rcond=None)[0]
    else:
        weights = np.zeros(0)
    missed = float(np.linalg.norm(moments.mean - factor @ weights))
    if missed > 1e-9 * float(np.linalg.norm(moments.mean)):
        return float(np.inf)
    return float(np.linalg.norm(weights))


def _farthest(factual: Floats, moments: Moments, distance: Distance, region: PointRegion, margin: float) -> float:
    """Return the distance of some counterfactual of the region that meets the margin; 0 if there is none."""
    mean = moments.mean
    start = np.clip(factual, region.lower, region.upper)
    for group in region.groups:
        start[list(group)] = 0.0
        start[max(group, key=lambda k: mean[k])] = 1.0
    flags = list(region.flags)
    start[flags] = mean[flags] > 0.0
    free = ~np.isin(np.arange(len(mean)), region.binary)
    step = np.where(free, mean, 0.0)
    if region.empty or region.reach(mean) < margin:
        return 0.0
    point = start
    length = 1.0 / max(float(step @ step), 1e-300)
    for _ in range(200):
        if float(mean @ point) >= margin:
            break
        point = np.clip(start + length * step, region.lower, region.upper)
        length = 2.0 * length
    return float(distance.of(point - factual))


def _add_points(
    model: Any, factual: Floats, n: int, distance: Distance, *, region: PointRegion, within: float
) -> PointRegion:
    """Add ``x``, ``t`` and what joins them; return where the counterfactuals may be."""
    d = range(len(factual))
    reach = within * np.ones(len(factual))
    if distance.factor is not None:
        reach *= np.linalg.norm(np.linalg.inv(distance.factor), axis=0)
    binary = set(region.binary)
    tight = PointRegion(
        np.maximum(region.lower, factual - reach),
        np.minimum(region.upper, factual + reach),
        region.groups,
        region.flags,
    )
    model.x = pyo.Var(
        range(n), d,
        domain=lambda _, _j, k: pyo.Binary if k in binary else pyo.Reals,
        bounds=lambda _, _j, k: limits_of(region if k in binary else tight, k),
    )  # fmt: skip
    model.one_hot = pyo.Constraint(
        range(n),
        range(len(region.groups)),
        rule=lambda m, j, g: sum_of([m.x[j, k] for k in region.groups[g]]) == 1.0,
    )
    model.t = pyo.Var(range(n), bounds=(0.0, within))
    if distance.kind == "l1":
        model.m = pyo.Var(range(n), d, bounds=(0.0, within))
        model.up = pyo.Constraint(
            range(n), d, rule=lambda m, j, k: sum_of((m.x[j, k], m.m[j, k]), (1.0, -1.0)) <= float(factual[k])
        )
        model.down = pyo.Constraint(
            range(n), d, rule=lambda m, j, k: sum_of((m.x[j, k], m.m[j, k]), (-1.0, -1.0)) <= -float(factual[k])
        )
        model.near = pyo.Constraint(
            range(n), rule=lambda m, j: sum_of([*(m.m[j, k] for k in d), m.t[j]], [*[1.0] * len(d), -1.0]) <= 0.0
        )
    else:
        model.near = pyo.Constraint(
            range(n),
            rule=lambda m, j: (
                squares_of(affine_differences([m.x[j, k] for k in d], factual, distance)) - m.t[j] ** 2 <= 0.0
            ),
        )
    return tight


def _validity(model: Any, n: int, moments: Moments, *, most: float, region: PointRegion) -> Any:
    """Add ``r`` and ``n`` with their rows, and return r."""
    d = len(moments.mean)
    size = np.maximum(np.abs(region.lower), np.abs(region.upper))
    columns = moments.factor.T
    spread = 0.0
    if len(columns):
        spread = float(np.linalg.norm(np.abs(columns) @ size))
    model.r = pyo.Var(bounds=(0.0, finite_or_none(most)))
    model.n = pyo.Var(range(n), bounds=(0.0, spread))
    model.valid = pyo.Constraint(
        range(n), rule=lambda m, j: m.r * m.n[j] - sum_of([m.x[j, k] for k in range(d)], moments.mean) <= 0.0
    )
    model.spread = pyo.Constraint(
        range(n),
        rule=lambda m, j: (
            squares_of([sum_of([m.x[j, k] for k in range(d)], column) for column in columns]) - m.n[j] ** 2 <= 0.0
        ),
    )
    return model.r
