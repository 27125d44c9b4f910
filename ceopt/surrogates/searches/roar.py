"""ROAR on a linear surrogate: recourse that holds for all its parameters within a ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations import programs
from ceopt.formulations.programs.linear_recourse import LinearQuestion, ParameterBall, require_ball, require_question
from ceopt.plans.results import Readable, frozen
from ceopt.solvers.checks import COEFFICIENT, LENGTH, Choice, check_arguments
from ceopt.status import Status
from ceopt.surrogates.searches.projection import project, solved_point
from ceopt.surrogates.searches.roar_gradient import descend

__all__ = ["RoarRecourse", "roar"]

_CHECKS: Final = {
    "mode": Choice(("hard", "soft")),
    "loss": Choice(("logistic", "hinge")),
    "method": Choice(("program", "gradient")),
    "weight": LENGTH,
    "margin": COEFFICIENT,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoarRecourse(Readable):
    """What :func:`roar` returns.

    Parameters
    ----------
    point
        Shape (d,); None where there is none.
    cost
        Its l1 distance; infinite where there is none.
    objective
        What was minimised: the cost in mode "hard", the loss at worst plus the priced cost in mode "soft".
    robust_score
        The least score of the point over the ball of parameters; nan without a point.
    status
        "optimal"; "feasible" for the gradient, which proves nothing; "infeasible": no point holds for the whole ball,
        or none was met.
    """

    point: NDArray[np.float64] | None
    cost: float
    objective: float
    robust_score: float
    status: Status

    def __post_init__(self) -> None:
        frozen(self, "point")


def roar(
    factual: ArrayLike,
    coef: ArrayLike,
    intercept: float,
    *,
    radius: float = 0.1,
    norm: Literal["l1", "l2", "linf"] = "linf",
    perturb_intercept: bool = True,
    mode: Literal["hard", "soft"] = "hard",
    loss: Literal["logistic", "hinge"] = "logistic",
    weight: float = 0.1,
    margin: float = 0.0,
    method: Literal["program", "gradient"] = "program",
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    solver: str = "auto",
) -> RoarRecourse:
    r"""Return recourse against the worst parameters of a ball about the surrogate's.

    .. math::
        \text{hard:}\quad & \min_x \lVert x - x^0 \rVert_1 \quad\text{s.t.}\quad
            w^\top x + c - \delta \lVert (x, 1) \rVert_* \ge \varepsilon \\
        \text{soft:}\quad & \min_x\ \ell\big(w^\top x + c - \delta \lVert (x, 1) \rVert_*\big)
            + \lambda \lVert x - x^0 \rVert_1

    The adversary is in closed form in both, so the min-max program is a convex one, solved exactly by "program":
    :func:`ceopt.formulations.programs.robust_projection` and :func:`ceopt.formulations.programs.roar`. "gradient" is
    the paper's: steps of 0.01 down the soft objective at the worst parameters of the moment, at most 1,000, until the
    score at worst reaches ``margin``; if it does not, again with half the price, up to ten times. It starts at the
    factual and is cut to the bounds after each step.

    Parameters
    ----------
    factual, coef
        Shape (d,).
    intercept
        A number.
    radius, norm, perturb_intercept
        The ball of parameters, "linf" with the dual norm l1, and whether the intercept is one of them.
    mode
        "hard" or "soft"; the gradient descends the soft objective in both.
    loss, weight
        "logistic" or "hinge", and the price of distance; of the soft form.
    margin
        Least score at worst, of the hard form and of the gradient's stop.
    method
        "program" or "gradient".
    lower, upper
        One number or one a column.
    solver
        Of the program.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        As :func:`project`; an unknown mode, loss, method or solver; a negative weight.

    References
    ----------
    Upadhyay, Joshi & Lakkaraju (2021), Towards robust and reliable algorithmic recourse, equation (3) and algorithm 1.

    Examples
    --------
    >>> from ceopt.surrogates import roar
    >>> found = roar([0, 0], [2, 1], -1, radius=0.5)
    >>> round(float(found.point[0]), 6), round(found.cost, 6), round(abs(found.robust_score), 6)
    (1.0, 1.0, 0.0)
    """
    who = "roar"
    question = require_question(who, factual, coef, intercept, lower=lower, upper=upper)
    ball = require_ball(who, radius=radius, norm=norm, perturb_intercept=perturb_intercept)
    checked = check_arguments(
        who, _CHECKS, {"mode": mode, "loss": loss, "method": method, "weight": weight, "margin": margin}
    )
    price = float(checked["weight"])
    least = float(checked["margin"])
    if method == "gradient":
        point = descend(question, ball, loss=loss, weight=price, margin=least)
        status = Status.INFEASIBLE if point is None else Status.FEASIBLE
    elif mode == "hard":
        found = project(
            factual, coef, intercept, lower=lower, upper=upper, radius=radius, norm=norm,
            perturb_intercept=perturb_intercept, margin=least, solver=solver,
        )  # fmt: skip
        point = found.point
        status = found.status
    else:
        model = programs.roar(
            factual, coef, intercept, radius=radius, norm=norm, perturb_intercept=perturb_intercept, loss=loss,
            weight=price, lower=lower, upper=upper,
        )  # fmt: skip
        point, status = solved_point(model, solver)
    if point is None:
        return RoarRecourse(point=None, cost=np.inf, objective=np.inf, robust_score=np.nan, status=status)
    return _result(question, ball, point, status, mode=mode, loss=loss, weight=price)


def _result(
    question: LinearQuestion,
    ball: ParameterBall,
    point: NDArray[np.float64],
    status: Status,
    *,
    mode: str,
    loss: str,
    weight: float,
) -> RoarRecourse:
    """Return a point with what it costs and what it scores at worst, computed anew."""
    score = question.score(point) - ball.loss(point)
    cost = question.charge(point)
    objective = cost
    if mode == "soft":
        paid = max(0.0, 1.0 - score) if loss == "hinge" else float(np.logaddexp(0.0, -score))
        objective = paid + weight * cost
    return RoarRecourse(point=point, cost=cost, objective=objective, robust_score=score, status=status)
