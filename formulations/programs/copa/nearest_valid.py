"""The nearest counterfactual whose validity value is at least r: what `copa_plan(method="global")` solves, r by r.

A plan without diversity consists of it, J times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import sum_of
from ceopt.formulations.programs.moments import require_moments, require_point
from ceopt.formulations.programs.region import Cost, add_point, require_distance, require_region
from ceopt.solvers.checks import LENGTH, Real, check_arguments
from ceopt.solvers.cones import soc
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["copa_plan_alike"]

_CHECKS = {"radius": Real(at_least=0.0), "margin": LENGTH}


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
    check_arguments(who, _CHECKS, locals())
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
    describe(
        model,
        Manifest(
            title="nearest counterfactual of a validity value",
            formula="min |x - x0|, r |F'x| <= mean'x, mean'x >= margin",
            reference="COPA (6) without diversity, lemma 4.1",
        ),
    )
    return model
