"""Searches for recourse on a linear surrogate given as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from ceopt.base.results import Readable, Status, frozen
from ceopt.formulations import programs
from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.programs.linear_recourse import (
    LinearQuestion,
    require_ball,
    require_question,
    require_score,
)
from ceopt.solvers import solve
from ceopt.solvers.checks import COEFFICIENT, LENGTH, Choice, Floats, Real, check_arguments
from ceopt.surrogates.rivals import Scored, descend_roar, descend_wachter, least_penalty
from ceopt.tolerances import DOUBLE_ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

# ==== The nearest point that a linear surrogate favours, in closed form, or by a program where it is to be robust =====

#: How often a point that is short of its score is asked for anew: for twice what it lacked, which mostly does, then for
#: so many times more, as what a solver's tolerance leaves may be the same again.
_TIGHTENINGS: Final = 8
_GROWTH: Final = 30.0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProjectedPoint(Readable):
    """What :func:`project` returns.

    Parameters
    ----------
    point
        Shape (d,); None where there is none.
    cost
        Of the point; infinite where there is none.
    nominal_cost
        Of the nearest point at radius 0.
    status
        "optimal", or "infeasible": no point within the bounds is favoured by all parameters. What a solver says
        otherwise, if it fails.
    """

    point: Floats | None
    cost: float
    nominal_cost: float
    status: Status

    def __post_init__(self) -> None:
        frozen(self, "point")


def project(
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
    solver: str = "auto",
) -> ProjectedPoint:
    r"""Return the nearest point whose score is at least ``margin`` for all parameters within ``radius``.

    .. math::
        \min_x\ \lVert (x - x^0) / s \rVert \quad\text{s.t.}\quad
        w^\top x + c - \delta \lVert x \rVert_* \ge \varepsilon, \quad l \le x \le u.

    At radius 0 in closed form, without a solver. The moves grow along a path on which the score rises as fast as the
    cost allows, each column until its bound, up to where the score is reached:

    ===== ================================================================================================
    cost  path
    ===== ================================================================================================
    l1    one column after another, by :math:`|w_k| s_k` from the greatest (a fractional knapsack)
    l2    :math:`\delta_k = \tau w_k s_k^2`
    linf  :math:`\delta_k = \tau \operatorname{sign}(w_k) s_k`
    ===== ================================================================================================

    Above radius 0 by :func:`ceopt.formulations.programs.robust_projection` and the solver that "auto" chooses. What a
    solver's tolerance, or rounding, leaves short of ``margin`` is asked for on top of it, so that the point keeps
    bounds and margin in plain numbers; where no point does, the one that is as near to them as the tolerance.

    Parameters
    ----------
    factual, coef
        Shape (d,).
    intercept, margin
        The surrogate favours x where ``coef @ x + intercept >= margin``.
    cost, scale
        Norm of the move, each column over its scale; 1 by default.
    lower, upper
        One number or one a column. A factual outside them is moved inside, which is charged.
    radius, norm, perturb_intercept
        The ball of parameters, "linf" with the dual norm l1, and whether the intercept is one of them.
    solver
        Of the program, above radius 0.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        Shapes that disagree, no finite numbers, a scale that is not above 0, bounds that cross, a negative radius.

    References
    ----------
    Bui, Nguyen, Yue & Nguyen (2024), Coverage-validity-aware algorithmic recourse, section 6.2.

    Examples
    --------
    >>> from ceopt.surrogates import project
    >>> project([0, 0], [1, 2], -3).point.tolist(), project([0, 0], [1, 2], -3, cost="linf").point.tolist()
    ([0.0, 1.5], [1.0, 1.0])
    >>> project([0, 0], [1, 2], -3, upper=1).point.tolist()
    [1.0, 1.0]
    """
    who = "project"
    question = require_question(who, factual, coef, intercept, cost=cost, scale=scale, lower=lower, upper=upper)
    ball = require_ball(who, radius=radius, norm=norm, perturb_intercept=perturb_intercept)
    least = float(COEFFICIENT.require(who, "margin", margin))
    point = kept(question, lambda asked: nearest(question, asked), question.score, least)
    nominal = np.inf if point is None else question.charge(point)
    if ball.radius == 0.0:
        status = Status.INFEASIBLE if point is None else Status.OPTIMAL
        return ProjectedPoint(point=point, cost=nominal, nominal_cost=nominal, status=status)
    if point is not None and question.score(point) - ball.loss(point) >= least:
        return ProjectedPoint(point=point, cost=nominal, nominal_cost=nominal, status=Status.OPTIMAL)

    def program(asked: float) -> pyo.ConcreteModel:
        return programs.robust_projection(
            factual, coef, intercept, cost=cost, scale=scale, lower=lower, upper=upper, radius=radius, norm=norm,
            perturb_intercept=perturb_intercept, margin=asked,
        )  # fmt: skip

    robust, status = kept_of(question, program, lambda x: question.score(x) - ball.loss(x), least, solver)
    price = np.inf if robust is None else question.charge(robust)
    return ProjectedPoint(point=robust, cost=price, nominal_cost=nominal, status=status)


def project_l1(factual: ArrayLike, coef: ArrayLike, intercept: float, **options: Any) -> ProjectedPoint:
    """Return :func:`project` with cost l1, the recourse of the paper.

    Parameters
    ----------
    factual, coef, intercept
        As for :func:`project`.
    options
        Its other arguments.

    Raises
    ------
    CeoptError
        As :func:`project`.

    Examples
    --------
    >>> from ceopt.surrogates import project_l1
    >>> project_l1([0, 0], [1, 2], -3).cost
    1.5
    """
    return project(factual, coef, intercept, cost="l1", **options)


def solved_point(model: Any, solver: str) -> tuple[Floats | None, Status]:
    """Return the point ``x`` of a program after solving it, and how it ended in the words of a query."""
    result = solve(model, solver)
    status = Status(str(result.status)) if str(result.status) in set(Status) else Status.ERROR
    if not result.solutions:
        return None, status
    return np.array([pyo.value(x) for x in model.x.values()], dtype=float), status


def kept(
    question: LinearQuestion, point_at: Callable[[float], Floats | None], score: Callable[[Floats], float], least: float
) -> Floats | None:
    """Return a nearest point that keeps its bounds and scores at least ``least`` in plain numbers.

    Parameters
    ----------
    question
        Bounds.
    point_at
        Gives the nearest point that scores as much as is asked, but for tolerance and rounding; None where none does.
    score
        Of a point (d,).
    least
        What it has to score.
    """
    first = None
    room = 0.0
    for _ in range(_TIGHTENINGS):
        point = point_at(least + room)
        if point is None:
            break
        point = question.within(point)
        if first is None:
            first = point
        short = least - score(point)
        if short <= 0.0:
            return np.asarray(point)
        room = max(2.0 * short, _GROWTH * room, float(np.spacing(abs(least))))
    return first


def kept_of(
    question: LinearQuestion,
    program_at: Callable[[float], pyo.ConcreteModel],
    score: Callable[[Floats], float],
    least: float,
    solver: str,
) -> tuple[Floats | None, Status]:
    """Return :func:`kept` of the optima of programs, and how the first of them ended."""
    statuses: list[Status] = []

    def point_at(asked: float) -> Floats | None:
        point, status = solved_point(program_at(asked), solver)
        statuses.append(status)
        return point

    return kept(question, point_at, score, least), statuses[0]


def nearest(question: LinearQuestion, margin: float) -> Floats | None:
    """Return the nearest point within the bounds whose score is at least ``margin``; None if no point is."""
    low = question.lower - question.factual
    high = question.upper - question.factual
    forced = np.clip(0.0, low, high)
    start = question.factual + forced
    short = margin - question.score(start)
    if short <= 0.0:
        return np.asarray(start)
    gains = question.coef != 0.0
    rooms = rooms_of(question, start, 1.0)
    slopes = np.abs(question.coef)
    if float(np.sum(slopes[gains] * rooms[gains])) < short:
        return None
    if question.cost == "l1":
        moves = _one_by_one(slopes, question.scale, rooms, short)
    else:
        moves = _together(question, forced, rooms, short)
    moved = forced + np.sign(question.coef) * moves
    return question.within(question.factual + moved)


def rooms_of(question: LinearQuestion, start: Floats, direction: float) -> Floats:
    """Return how far each column can move from a point so that the score rises, or falls for direction -1."""
    towards = direction * question.coef
    rooms = np.where(towards > 0.0, question.upper - start, start - question.lower)
    return np.where(towards != 0.0, rooms, 0.0)


def shifted(question: LinearQuestion, start: Floats, shift: float) -> Floats:
    """Return the point to which the cheapest moves in l1 lead that change the score by ``shift``."""
    direction = float(np.sign(shift))
    rooms = rooms_of(question, start, direction)
    moves = _one_by_one(np.abs(question.coef), question.scale, rooms, abs(shift))
    return question.within(start + direction * np.sign(question.coef) * moves)


def _one_by_one(slopes: Floats, scale: Floats, rooms: Floats, short: float) -> Floats:
    """Return the moves of the fractional knapsack: the column that gains most for its cost first, to its bound."""
    moves = np.zeros_like(rooms)
    for k in np.argsort(-slopes * scale, kind="stable"):
        if rooms[k] <= 0.0:
            continue
        moves[k] = min(rooms[k], short / slopes[k])
        short -= slopes[k] * moves[k]
        if moves[k] < rooms[k]:
            break
    return moves


def _together(question: LinearQuestion, forced: Floats, rooms: Floats, short: float) -> Floats:
    """Return moves in fixed proportion, each until its bound: by the breakpoints at which a column reaches it.

    What was forced counts: a column that is already moved the way the score rises goes on once the others have come as
    far, and one that is moved against it stays.
    """
    slopes = np.abs(question.coef)
    if question.cost == "l2":
        rates = slopes * question.scale**2
    else:
        rates = np.where(slopes > 0.0, question.scale, 0.0)
    along = np.sign(question.coef) * forced
    places = np.flatnonzero((rates > 0.0) & (rooms > 0.0))
    # Column k moves by rate * tau less what was forced its way, from where that is above 0 to its room.
    starts = along[places] / rates[places]
    ends = (along[places] + rooms[places]) / rates[places]
    times = np.unique(np.concatenate([starts[starts > 0.0], ends[np.isfinite(ends)], [0.0]]))

    def moves_at(time: float) -> Floats:
        return np.clip(rates[places] * time - along[places], 0.0, rooms[places])

    before = 0.0
    for time in times:
        if float(slopes[places] @ moves_at(float(time))) >= short:
            break
        before = float(time)
    gained = float(slopes[places] @ moves_at(before))
    going = (starts <= before) & (ends > before)
    rise = float(slopes[places][going] @ rates[places][going])
    found = before
    if gained < short and rise > 0.0:
        found = before + (short - gained) / rise
    moves = np.zeros_like(rooms)
    moves[places] = moves_at(found)
    return moves


# ==== ROAR on a linear surrogate: recourse that holds for all its parameters within a ball ============================

_ROAR_CHECKS: Final = {
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

    point: Floats | None
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
    checked = check_arguments(who, _ROAR_CHECKS, locals())
    price = float(checked["weight"])
    least = float(checked["margin"])
    if method == "gradient":
        point = descend_roar(question, ball, loss=loss, weight=price, margin=least)
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
    score = question.score(point) - ball.loss(point)
    cost = question.charge(point)
    objective = cost
    if mode == "soft":
        paid = max(0.0, 1.0 - score) if loss == "hinge" else float(np.logaddexp(0.0, -score))
        objective = paid + price * cost
    return RoarRecourse(point=point, cost=cost, objective=objective, robust_score=score, status=status)


# ==== Wachter's recourse on a linear surrogate: a squared loss of the probability, and a price on distance ============

_WACHTER_CHECKS: Final = {
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

    point: Floats | None
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
    checked = check_arguments(who, _WACHTER_CHECKS, locals())
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
    point: Floats | None
    if method == "gradient":
        point = descend_wachter(question, scored, weight=price, target=wanted, level=float(checked["level"]))
        status = Status.INFEASIBLE if point is None else Status.FEASIBLE
    elif network is not None and mode == "hard":

        def program(asked: float) -> pyo.ConcreteModel:
            return programs.wachter(factual, network, level=asked, scale=scale, lower=lower, upper=upper)

        point, status = kept_of(question, program, scored.value, wanted, solver)
    elif network is not None:
        point, is_proved = least_penalty(question, network, weight=price, target=wanted, solver=solver)
        status = Status.OPTIMAL if is_proved else Status.FEASIBLE
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


def _least_penalty(question: LinearQuestion, weight: float, target: float) -> Floats:
    """Return the global optimum of the penalty form: the best of no move, bounds reached and stationary scores."""
    start = question.within(question.factual)
    score = question.score(start)
    best = start
    least = weight * _miss(score, target) ** 2 + question.charge(start)
    for direction in (1.0, -1.0):
        for shift in _candidates(question, start, direction, weight=weight, target=target):
            point = shifted(question, start, direction * shift)
            penalty = weight * _miss(question.score(point), target) ** 2 + question.charge(point)
            if penalty < least:
                best = point
                least = penalty
    return np.asarray(best)


def _candidates(
    question: LinearQuestion, start: Floats, direction: float, *, weight: float, target: float
) -> list[float]:
    """Return how far the score may be moved one way at an optimum: to the end of a column's room, or stationary.

    The score is moved by the column of the greatest rate first, to its bound, then by the next.
    """
    score = question.score(start)
    rates = np.abs(question.coef) * question.scale
    rooms = rooms_of(question, start, direction)
    found = []
    moved = 0.0
    for k in np.argsort(-rates, kind="stable"):
        gain = float(np.abs(question.coef[k]) * rooms[k]) if rates[k] > 0.0 and rooms[k] > 0.0 else 0.0
        if gain == 0.0 or weight == 0.0:
            continue
        for stationary in _stationary(target, direction / (2.0 * weight * float(rates[k]))):
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
