"""The nearest plan whose counterfactuals are all favourable at the mean parameters."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.corrections.side_conditions import combination, free_columns
from ceopt.formulations.programs.moments import require_mean, require_plan
from ceopt.solvers.checks import LENGTH
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["requirement_correction"]


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
    describe(
        model,
        Manifest(
            title="requirement correction",
            formula="min sum |move_j|^2, mean'(x_j + move_j) >= margin",
            reference="COPA section 3.1",
        ),
    )
    return model
