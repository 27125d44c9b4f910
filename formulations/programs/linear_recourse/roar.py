"""ROAR: the point with the least loss at the worst parameters of a ball, and a price on its distance."""

from __future__ import annotations

from typing import Literal

import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import sum_of
from ceopt.formulations.programs.linear_recourse.parts import (
    add_cost,
    add_point,
    add_robust_score,
    require_ball,
    require_question,
)
from ceopt.solvers.checks import LENGTH, Choice
from ceopt.solvers.cones import exponential
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["roar"]


def roar(
    factual: ArrayLike,
    coef: ArrayLike,
    intercept: float,
    *,
    radius: float = 0.1,
    norm: Literal["l1", "l2", "linf"] = "linf",
    perturb_intercept: bool = True,
    loss: Literal["logistic", "hinge"] = "logistic",
    weight: float = 0.1,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> pyo.ConcreteModel:
    r"""State the point of least loss at the worst parameters of a ball, with ``weight`` on its l1 distance.

    .. math::
        \min_x \max_{\lVert e \rVert \le \delta}\ \ell\big((w + e_w)^\top x + c + e_c\big)
            + \lambda \lVert x - x^0 \rVert_1
        \;=\; \min_{x, s, z}\ z + \lambda \lVert x - x^0 \rVert_1 \quad\text{s.t.}\quad
        s \le w^\top x + c - \delta \lVert (x, 1) \rVert_*, \quad z \ge \ell(s).

    The loss does not increase in the score, so that the greatest loss is at the least score. Logistic,
    :math:`\log(1 + e^{-s})`, is stated as :math:`a + b \le 1` with :math:`a \ge e^{-z}` and :math:`b \ge e^{-s-z}`.

    ============== ============================== ===== =========================================================
    symbol         component                      shape meaning
    ============== ============================== ===== =========================================================
    x, x^0         ``x``                          (d,)  the point within its bounds, and the factual
    w, c                                          (d,)  ``coef`` and ``intercept``
    s              ``score``, ``at_worst``        ()    at most the score at the worst parameters
    z              ``loss``                       ()    at least the loss
    a, b           ``share``, ``one``, ``still``, (2,)  of the logistic loss: the row ``one``, the cones ``still`` and
                   ``pushed``                           ``pushed``
    :math:`\delta` ``size``                             ``radius``; as in :func:`robust_projection`
    ============== ============================== ===== =========================================================

    Hinge, :math:`\max(0, 1 - s)`: an LP, with norm "l2" an SOCP. Logistic: exponential cones, with norm "l2" a second
    order's too. Exact; the hard form, least distance at a score that holds, is :func:`robust_projection` with
    ``perturb_intercept=True``.

    Parameters
    ----------
    factual, coef
        Shape (d,).
    intercept
        A number.
    radius, norm, perturb_intercept
        The ball of parameters; "linf" has the dual norm l1.
    loss, weight
        What is paid at the worst parameters, and the price of distance, at least 0.
    lower, upper
        One number or one a column.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        As :func:`robust_projection`; an unknown loss, a negative weight.

    References
    ----------
    Upadhyay, Joshi & Lakkaraju (2021), Towards robust and reliable algorithmic recourse, equation (3).

    Examples
    --------
    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.roar([0], [2], -1, radius=0.5, loss="hinge", weight=0.1)
    >>> print(m.at_worst.expr)
    score - (-1.5 + 2.0*x[0] - 0.5*size[0])  <=  0.0
    >>> round(solve(m).objective, 6), round(m.x[0].value, 6)
    (0.166667, 1.666667)
    """
    who = "roar"
    question = require_question(who, factual, coef, intercept, lower=lower, upper=upper)
    ball = require_ball(who, radius=radius, norm=norm, perturb_intercept=perturb_intercept)
    form = Choice(("logistic", "hinge")).require(who, "loss", loss)
    price = LENGTH.require(who, "weight", weight)
    model = pyo.ConcreteModel(name=who)
    add_point(model, question)
    add_cost(model, question)
    model.score = pyo.Var()
    model.at_worst = pyo.Constraint(expr=model.score - add_robust_score(model, question, ball) <= 0.0)
    model.loss = pyo.Var(domain=pyo.NonNegativeReals)
    if form == "hinge":
        model.short = pyo.Constraint(expr=model.loss + model.score >= 1.0)
    else:
        model.share = pyo.Var(range(2), domain=pyo.NonNegativeReals)
        model.one = pyo.Constraint(expr=model.share[0] + model.share[1] <= 1.0)
        model.still = pyo.Constraint(expr=exponential(-model.loss, 1.0, model.share[0]) >= 0)
        model.pushed = pyo.Constraint(expr=exponential(-model.score - model.loss, 1.0, model.share[1]) >= 0)
    moves = list(model.t.values())
    model.total = pyo.Objective(expr=sum_of([model.loss, *moves], [1.0, *([float(price)] * len(moves))]))
    describe(
        model,
        Manifest(
            title="Least loss at the worst parameters, with a price on distance",
            formula="min loss(w'x + c - delta |(x, 1)|*) + weight |x - x0|_1",
            reference="ROAR, equation (3)",
        ),
    )
    return model
