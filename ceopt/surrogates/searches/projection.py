"""The nearest point that a linear surrogate favours, in closed form, or by a program where it is to be robust."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations import programs
from ceopt.formulations.programs.linear_recourse import LinearQuestion, require_ball, require_question
from ceopt.plans.results import Readable, frozen
from ceopt.solvers import solve
from ceopt.solvers.checks import COEFFICIENT
from ceopt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ProjectedPoint", "kept", "nearest", "project", "project_l1", "rooms_of", "shifted", "solved_point"]

Floats = NDArray[np.float64]

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
    statuses: list[Status] = []

    def at(asked: float) -> Floats | None:
        model = programs.robust_projection(
            factual, coef, intercept, cost=cost, scale=scale, lower=lower, upper=upper, radius=radius, norm=norm,
            perturb_intercept=perturb_intercept, margin=asked,
        )  # fmt: skip
        found, status = solved_point(model, solver)
        statuses.append(status)
        return found

    robust = kept(question, at, lambda x: question.score(x) - ball.loss(x), least)
    status = statuses[0]
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
        point = np.clip(point, question.lower, question.upper)
        if first is None:
            first = point
        short = least - score(point)
        if short <= 0.0:
            return np.asarray(point)
        room = max(2.0 * short, _GROWTH * room, float(np.spacing(abs(least))))
    return first


def nearest(question: LinearQuestion, margin: float) -> Floats | None:
    """Return the nearest point within the bounds whose score is at least ``margin``; None where there is none."""
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
    reached = np.clip(question.factual + moved, question.lower, question.upper)
    return np.asarray(reached)


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
    point = start + direction * np.sign(question.coef) * moves
    return np.asarray(np.clip(point, question.lower, question.upper))


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
    moving = (rates > 0.0) & (rooms > 0.0)
    places = np.flatnonzero(moving)
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
