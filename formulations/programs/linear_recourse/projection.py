"""The nearest point that a linear model favours, whatever its parameters are within a ball."""

from __future__ import annotations

from typing import Literal

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.linear_recourse.parts import (
    add_cost,
    add_point,
    add_robust_score,
    cost_of,
    require_ball,
    require_question,
)
from ceopt.solvers.checks import COEFFICIENT
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["robust_projection"]


def robust_projection(
    factual: ArrayLike,
    coef: ArrayLike,
    intercept: float,
    *,
    cost: Literal["l1", "l2", "linf"] = "l1",
    scale: ArrayLike | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    radius: float = 0.0,
    norm: Literal["l1", "l2", "linf"] = "l2",
    perturb_intercept: bool = False,
    margin: float = 0.0,
) -> pyo.ConcreteModel:
    r"""State the nearest point whose score is at least ``margin`` for all parameters within ``radius``.

    .. math::
        \min_x\ \lVert (x - x^0) / s \rVert \quad\text{s.t.}\quad
        w^\top x + c - \delta \lVert x \rVert_* \ge \varepsilon, \quad l \le x \le u.

    The left-hand side is the least of :math:`(w + e)^\top x + c` over :math:`\lVert e \rVert \le \delta`. Where the
    intercept is perturbed too, the dual norm is that of (x, 1).

    ================ ============ ===== =====================================================================
    symbol           component    shape meaning
    ================ ============ ===== =====================================================================
    x, x^0, s        ``x``        (d,)  the point with its bounds l and u, the factual, the ``scale`` of moves
    w, c             ``favoured`` (d,)  ``coef`` and ``intercept``; epsilon is ``margin``
    :math:`\delta`   ``size``           ``radius``; ``size`` is at least the dual norm: by the rows ``above`` and
                                        ``below``, one number a column for norm "linf", one for "l1", or by the
                                        cone ``length`` for "l2"; absent at radius 0
    cost             ``t``              at least the cost: by ``up`` and ``down``, one number a column for "l1", one
                                        for "linf", or by the cone ``near`` for "l2"
    ================ ============ ===== =====================================================================

    An LP where neither norm is "l2", else an SOCP. Exact. Infeasible where no point within the bounds is favoured by
    all parameters; without bounds exactly where the radius is at least the dual norm of w and c below epsilon.

    Parameters
    ----------
    factual, coef
        Shape (d,).
    intercept, margin
        Numbers.
    cost, scale
        Norm of the move, each column over its scale, above 0; 1 by default.
    lower, upper
        One number or one a column; the factual may lie outside.
    radius, norm, perturb_intercept
        The ball of parameters; "linf" has the dual norm l1.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        Shapes that disagree, no finite numbers, a scale that is not above 0, bounds that cross, a negative radius.

    References
    ----------
    Upadhyay, Joshi & Lakkaraju (2021), ROAR; LIME-ROBUST-PROJ of Bui, Nguyen, Yue & Nguyen (2024), section 6.2.

    Examples
    --------
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.robust_projection([0, 1], [2, 1], -3, radius=0.5, norm="linf")
    >>> print(m.favoured.expr)
    0.0  <=  -3.0 + 2.0*x[0] + x[1] - 0.5*size[0] - 0.5*size[1]
    >>> round(solve(m).objective, 6), round(m.x[0].value, 6)
    (1.666667, 1.666667)
    """
    who = "robust_projection"
    question = require_question(who, factual, coef, intercept, cost=cost, scale=scale, lower=lower, upper=upper)
    ball = require_ball(who, radius=radius, norm=norm, perturb_intercept=perturb_intercept)
    least = COEFFICIENT.require(who, "margin", margin)
    model = pyo.ConcreteModel(name=who)
    add_point(model, question)
    add_cost(model, question)
    model.favoured = pyo.Constraint(expr=add_robust_score(model, question, ball) >= float(least))
    model.cost = pyo.Objective(expr=cost_of(model))
    describe(
        model,
        Manifest(
            title="Nearest point that a linear model favours at its worst parameters",
            formula="min |(x - x0) / s|, w'x + c - delta |x|* >= margin",
            reference="ROAR; LIME-ROBUST-PROJ",
        ),
    )
    return model
