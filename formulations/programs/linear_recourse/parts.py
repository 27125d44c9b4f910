"""What the programs of recourse on a linear model share: the point with its cost, and the score at worst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.column_arguments import require_bounds
from ceopt.formulations.programs.expressions import Floats, sum_of
from ceopt.solvers.checks import COEFFICIENT, LENGTH, Choice, Flag, Matrix, check_arguments
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import InvalidValueError

__all__ = [
    "LinearQuestion",
    "ParameterBall",
    "add_cost",
    "add_point",
    "add_robust_score",
    "cost_of",
    "require_ball",
    "require_question",
]

_COSTS: Final = ("l1", "l2", "linf")
#: Norm of a ball of parameters -> the norm that measures the point: their dual.
_DUAL_ORDER: Final = {"l1": np.inf, "l2": 2, "linf": 1}
_BALL_CHECKS: Final = {"radius": LENGTH, "norm": Choice(tuple(_DUAL_ORDER)), "perturb_intercept": Flag()}


@final
@dataclass(frozen=True, slots=True)
class ParameterBall:
    """How far weights, and the intercept if it is perturbed too, may be off.

    Parameters
    ----------
    radius
        At least 0.
    norm
        Of the difference of parameters: "l1", "l2" or "linf".
    perturb_intercept
        Whether the intercept is one of the parameters.
    """

    radius: float
    norm: str
    perturb_intercept: bool

    def loss(self, point: Floats) -> float:
        """Return by how much the score of a point can fall: radius times the dual norm."""
        entries = point
        if self.perturb_intercept:
            entries = np.append(point, 1.0)
        return float(self.radius * np.linalg.norm(entries, ord=_DUAL_ORDER[self.norm]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearQuestion:
    """A point, a linear score and how far the point may move, checked.

    Parameters
    ----------
    factual, coef
        Shape (d,).
    intercept
        The score is ``coef @ x + intercept``.
    scale
        Units of the moves, (d,), above 0.
    lower, upper
        Bounds, (d,), infinite where there are none.
    cost
        "l1", "l2" or "linf", of moves over scale.
    """

    factual: Floats
    coef: Floats
    intercept: float
    scale: Floats
    lower: Floats
    upper: Floats
    cost: str

    def score(self, point: Floats) -> float:
        """Return the score of a point."""
        return float(self.coef @ point) + self.intercept

    def charge(self, point: Floats) -> float:
        """Return the cost of a point."""
        order = {"l1": 1, "l2": 2, "linf": np.inf}[self.cost]
        return float(np.linalg.norm((point - self.factual) / self.scale, ord=order))


def require_question(
    who: str,
    factual: ArrayLike,
    coef: ArrayLike,
    intercept: float,
    *,
    cost: str = "l1",
    scale: ArrayLike | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> LinearQuestion:
    """Return the arguments that all programs of this folder take, or refuse the first that is wrong."""
    point = Matrix((None,)).require(who, "factual", factual)
    d = len(point)
    weights = Matrix((d,), "Give one weight for each column.").require(who, "coef", coef)
    number = COEFFICIENT.require(who, "intercept", intercept)
    norm = Choice(_COSTS).require(who, "cost", cost)
    units = np.ones(d)
    if scale is not None:
        units = Matrix((d,), "Give one scale for each column.").require(who, "scale", scale)
    for k in np.flatnonzero(units <= 0.0):
        raise InvalidValueError(who, "scales above 0", f"scale[{k}] is {units[k]:g}", "Give the unit of that column.")
    low = -np.inf if lower is None else lower
    high = np.inf if upper is None else upper
    least, most = require_bounds(who, (low, high), d)
    return LinearQuestion(point, weights, float(number), units, least, most, norm)


def require_ball(who: str, *, radius: float, norm: str, perturb_intercept: bool) -> ParameterBall:
    """Return the ball of parameters, or refuse what is none."""
    given = {"radius": radius, "norm": norm, "perturb_intercept": perturb_intercept}
    found = check_arguments(who, _BALL_CHECKS, given)
    return ParameterBall(float(found["radius"]), found["norm"], found["perturb_intercept"])


def add_point(model: Any, question: LinearQuestion) -> None:
    """Add ``x`` with its bounds."""

    def limits(_: Any, k: int) -> tuple[float | None, float | None]:
        low = float(question.lower[k])
        high = float(question.upper[k])
        return (low if np.isfinite(low) else None, high if np.isfinite(high) else None)

    model.x = pyo.Var(range(len(question.factual)), bounds=limits)


def add_cost(model: Any, question: LinearQuestion) -> None:
    """Add ``t``, at least the cost of x: by ``up`` and ``down``, a move each in l1, or by the cone ``near`` in l2."""
    places = range(len(question.factual))
    factual = question.factual
    scale = question.scale
    if question.cost == "l2":
        model.t = pyo.Var(domain=pyo.NonNegativeReals)
        moves = [sum_of([model.x[k]], [1.0 / scale[k]], -factual[k] / scale[k]) for k in places]
        model.near = pyo.Constraint(expr=soc(model.t, moves) >= 0)
        return
    if question.cost == "linf":
        model.t = pyo.Var(domain=pyo.NonNegativeReals)
    else:
        model.t = pyo.Var(places, domain=pyo.NonNegativeReals)

    def move(m: Any, k: int) -> Any:
        return m.t[k] if question.cost == "l1" else m.t

    model.up = pyo.Constraint(
        places, rule=lambda m, k: sum_of((m.x[k], move(m, k)), (1.0, -scale[k])) <= float(factual[k])
    )
    model.down = pyo.Constraint(
        places, rule=lambda m, k: sum_of((m.x[k], move(m, k)), (-1.0, -scale[k])) <= -float(factual[k])
    )


def cost_of(model: Any) -> Any:
    """Return the cost as an expression in ``t``."""
    return sum_of(model.t.values())


def add_robust_score(model: Any, question: LinearQuestion, ball: ParameterBall) -> Any:
    """Add ``size``, at least the dual norm of x, and return the score at the worst parameters as an expression."""
    variables = [model.x[k] for k in range(len(question.factual))]
    coefficients = question.coef.tolist()
    if ball.radius == 0.0:
        return sum_of(variables, coefficients, question.intercept)
    constant = question.intercept
    if ball.norm == "linf":  # |x|_1, and 1 of the intercept's own entry
        model.size = pyo.Var(range(len(variables)), domain=pyo.NonNegativeReals)
        model.above = pyo.Constraint(model.size.index_set(), rule=lambda m, k: m.x[k] - m.size[k] <= 0)
        model.below = pyo.Constraint(model.size.index_set(), rule=lambda m, k: -m.x[k] - m.size[k] <= 0)
        if ball.perturb_intercept:
            constant -= ball.radius
        sizes = list(model.size.values())
        return sum_of([*variables, *sizes], [*coefficients, *([-ball.radius] * len(sizes))], constant)
    model.size = pyo.Var(domain=pyo.NonNegativeReals)
    if ball.norm == "l2":
        entries: list[Any] = list(variables)
        if ball.perturb_intercept:
            entries.append(1.0)
        model.length = pyo.Constraint(expr=soc(model.size, entries) >= 0)
    else:  # the greatest entry, at least 1 of the intercept's
        if ball.perturb_intercept:
            model.size.setlb(1.0)
        places = range(len(variables))
        model.above = pyo.Constraint(places, rule=lambda m, k: m.x[k] - m.size <= 0)
        model.below = pyo.Constraint(places, rule=lambda m, k: -m.x[k] - m.size <= 0)
    return sum_of([*variables, model.size], [*coefficients, -ball.radius], constant)
