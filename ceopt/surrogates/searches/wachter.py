"""Wachter's recourse on a linear surrogate: a squared loss of the probability, and a price on distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from ceopt.formulations import programs
from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.programs.linear_recourse import LinearQuestion, require_question, require_score
from ceopt.plans.results import Readable, frozen
from ceopt.solvers.checks import LENGTH, Choice, Real, check_arguments
from ceopt.status import Status
from ceopt.surrogates.searches.projection import kept, nearest, rooms_of, shifted, solved_point
from ceopt.surrogates.searches.wachter_gradient import Scored, descend
from ceopt.surrogates.searches.wachter_network import least_penalty
from ceopt.tolerances import DOUBLE_ROOT

__all__ = ["WachterRecourse", "wachter"]

_CHECKS: Final = {
    "weight": LENGTH,
    "target": Real(finite=True),
    "mode": Choice(("penalty", "hard")),
    "method": Choice(("program", "gradient")),
    "level": Real(above=0.0, below=1.0),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WachterRecourse(Readable):
    """What :func:`wachter` returns.

    Parameters
    ----------
    point
        Shape (d,); None where there is none.
    cost
        Its distance, l1 over ``scale``; infinite where there is none.
    score
        The surrogate's score of the point, before the logistic function; nan without a point.
    objective
        What was minimised: loss and cost in mode "penalty", the cost in mode "hard".
    status
        "optimal"; "feasible" for the gradient, which proves nothing; "infeasible": no score within the bounds reaches
        the target, or the gradient met none.
    """

    point: NDArray[np.float64] | None
    cost: float
    score: float
    objective: float
    status: Status

    def __post_init__(self) -> None:
        frozen(self, "point")


def wachter(
    factual: ArrayLike,
    coef: ArrayLike | ReluNetwork,
    intercept: float = 0.0,
    *,
    weight: float = 1.0,
    target: float = 1.0,
    scale: ArrayLike | None = None,
    mode: Literal["penalty", "hard"] = "penalty",
    method: Literal["program", "gradient"] = "program",
    level: float = 0.5,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    solver: str = "auto",
) -> WachterRecourse:
    r"""Return recourse by the objective of Wachter et al., exactly.

    .. math::
        \text{penalty:}\quad & \min_x\ \lambda \big(\sigma(w^\top x + c) - \tilde y\big)^2
            + \sum_k |x_k - x^0_k| / s_k \\
        \text{hard:}\quad & \min_x\ \sum_k |x_k - x^0_k| / s_k \quad\text{s.t.}\quad w^\top x + c \ge \tilde y

    The penalty form depends on x by its score alone, and the cheapest way to raise a score by t costs
    :math:`|t| / \kappa` with :math:`\kappa = \max_k |w_k| s_k`. With :math:`p = \sigma(s^0 + t)` the stationary points
    solve :math:`2 \lambda (p - \tilde y) p (1 - p) = \mp 1 / \kappa`, a cubic equation; the best of its roots and of
    t = 0 is the global optimum, though there may be two local ones. The hard form is the l1 projection; there
    ``target`` is a score.

    Of a network the hard form is :func:`ceopt.formulations.programs.wachter`, and the penalty form, a nonlinear program
    that is not convex, is brought to its global optimum by branch and bound over the score, a MILP for each interval.

    "gradient" is the paper's search: Adam (with the greatest second moment) by steps of 0.01 down the penalty form, at
    most 1,000, until the probability reaches ``level``; if it does not, again with twice the weight, up to ten times.

    Parameters
    ----------
    factual
        Shape (d,).
    coef, intercept
        A linear score, (d,) and a number; or a ``ReluNetwork`` with one score as ``coef``, whose logit it is.
    weight
        Of the squared loss, at least 0.
    target
        The probability that is asked for in mode "penalty", the least score in mode "hard".
    scale
        Unit of each column's move, such as its median absolute deviation; 1 by default.
    mode
        "penalty" or "hard".
    method
        "program": exact, of a linear score without a solver; "gradient".
    level
        The probability at which the gradient stops.
    lower, upper
        One number or one a column; of a network finite in method "program".
    solver
        Of a network's programs.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        Shapes that disagree, no finite numbers, a scale that is not above 0, a negative weight, an unknown mode.

    References
    ----------
    Wachter, Mittelstadt & Russell (2017), equation (2).

    Examples
    --------
    >>> from ceopt.surrogates import wachter
    >>> found = wachter([0.0], [1.0], -2.0, weight=100.0)
    >>> round(found.score, 3), round(found.cost, 3)
    (2.535, 4.535)
    >>> wachter([0.0, 0.0], [1.0, 2.0], -3.0, mode="hard", target=0.0).point.tolist()
    [0.0, 1.5]
    """
    who = "wachter"
    checked = check_arguments(
        who, _CHECKS, {"weight": weight, "target": target, "mode": mode, "method": method, "level": level}
    )
    price = float(checked["weight"])
    wanted = float(checked["target"])
    network: ReluNetwork | None = None
    weights: ArrayLike
    if isinstance(coef, ReluNetwork):
        network = require_score(who, coef)  # type: ignore[assignment]  # a network stays one
        weights = np.zeros(coef.weights[0].shape[1])
    else:
        weights = coef
    question = require_question(who, factual, weights, intercept, scale=scale, lower=lower, upper=upper)
    scored = Scored.of(question, network)
    status = Status.OPTIMAL
    point: NDArray[np.float64] | None
    if method == "gradient":
        point = descend(question, scored, weight=price, target=wanted, level=float(checked["level"]))
        status = Status.INFEASIBLE if point is None else Status.FEASIBLE
    elif network is not None and mode == "hard":
        statuses: list[Status] = []

        def at(asked: float) -> NDArray[np.float64] | None:
            model = programs.wachter(factual, network, level=asked, scale=scale, lower=lower, upper=upper)
            found, status = solved_point(model, solver)
            statuses.append(status)
            return found

        point = kept(question, at, scored.value, wanted)
        status = statuses[0]
    elif network is not None:
        found = least_penalty(
            question.factual,
            network,
            weight=price,
            target=wanted,
            scale=question.scale,
            lower=question.lower,
            upper=question.upper,
            solver=solver,
        )
        point = found.point
        status = Status.OPTIMAL if found.is_proved else Status.FEASIBLE
    elif mode == "hard":
        point = kept(question, lambda asked: nearest(question, asked), question.score, wanted)
        status = Status.INFEASIBLE if point is None else Status.OPTIMAL
    else:
        point = _least_penalty(question, price, wanted)
    if point is None:
        return WachterRecourse(point=None, cost=np.inf, score=np.nan, objective=np.inf, status=status)
    score = scored.value(point)
    cost = question.charge(point)
    objective = cost
    if mode == "penalty":
        objective += price * _miss(score, wanted) ** 2
    return WachterRecourse(point=point, cost=cost, score=score, objective=objective, status=status)


def _least_penalty(question: LinearQuestion, weight: float, target: float) -> NDArray[np.float64]:
    """Return the global optimum of the penalty form: the best of no move, bounds reached and stationary scores."""
    home = np.clip(question.factual, question.lower, question.upper)
    score = question.score(home)
    best = home
    least = weight * _miss(score, target) ** 2 + question.charge(home)
    for direction in (1.0, -1.0):
        for shift in _candidates(question, home, direction, weight=weight, target=target):
            point = shifted(question, home, direction * shift)
            penalty = weight * _miss(question.score(point), target) ** 2 + question.charge(point)
            if penalty < least:
                best = point
                least = penalty
    return np.asarray(best)


def _candidates(
    question: LinearQuestion, home: NDArray[np.float64], direction: float, *, weight: float, target: float
) -> list[float]:
    """Return how far the score may be moved one way at an optimum: to the end of a column's room, or stationary.

    The score is moved by the column of the greatest rate first, to its bound, then by the next.
    """
    score = question.score(home)
    rates = np.abs(question.coef) * question.scale
    rooms = rooms_of(question, home, direction)
    found = []
    moved = 0.0
    for k in np.argsort(-rates, kind="stable"):
        gain = float(np.abs(question.coef[k]) * rooms[k]) if rates[k] > 0.0 and rooms[k] > 0.0 else 0.0
        if gain == 0.0 or weight == 0.0:
            continue
        slope = direction / (2.0 * weight * float(rates[k]))
        for stationary in _stationary(target, slope):
            shift = direction * (stationary - score)
            if moved < shift < moved + gain:
                found.append(shift)
        moved += gain
        if np.isfinite(moved):
            found.append(moved)
    return found


def _stationary(target: float, slope: float) -> list[float]:
    """Return the scores at which (p - target) p (1 - p) + slope = 0, p their probability.

    The cubic is solved for p and for q = 1 - p, as a heavy weight brings p so near to 1 that its logit needs q.
    """
    found = []
    cubics = (
        (1.0, [-1.0, 1.0 + target, -target, slope]),
        (-1.0, [1.0, target - 2.0, 1.0 - target, slope]),
    )
    for sign, powers in cubics:
        for root in np.roots(powers):
            share = float(root.real)
            if abs(root.imag) <= DOUBLE_ROOT and 0.0 < share < 1.0:
                found.append(sign * float(logit(share)))
    return found


def _miss(score: float, target: float) -> float:
    """Return by how much the probability of a score misses the target, without cancellation where it is nearly 1."""
    if score > 0.0:
        return (1.0 - target) - float(expit(-score))
    return float(expit(score)) - target
