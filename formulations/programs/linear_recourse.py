"""Programs of recourse on a linear model given as plain arrays: robust projection, ROAR, Wachter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.predictors.embed import embed
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.programs.parts import ORDERS, PointRegion, described, limits_of, require_bounds, sum_of
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import COEFFICIENT, LENGTH, Choice, Flag, Floats, Instance, Matrix, Refusal, check_arguments
from ceopt.solvers.cones import exponential, soc
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

# ==== What the programs of recourse on a linear model share: the point with its cost, and the score at worst ==========

#: Norm of a ball of parameters -> the norm that measures the point: their dual.
DUAL_ORDER: Final = {"l1": np.inf, "l2": 2, "linf": 1}
_BALL_CHECKS: Final = {"radius": LENGTH, "norm": Choice(tuple(DUAL_ORDER)), "perturb_intercept": Flag()}


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
        return float(self.radius * np.linalg.norm(entries, ord=DUAL_ORDER[self.norm]))


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

    def within(self, points: Floats) -> Floats:
        """Return points (..., d) put within the bounds."""
        return np.clip(points, self.lower, self.upper)

    def charge(self, point: Floats) -> float:
        """Return the cost of a point."""
        return float(np.linalg.norm((point - self.factual) / self.scale, ord=ORDERS[self.cost]))


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
    norm = Choice(ORDERS).require(who, "cost", cost)
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
    box = PointRegion(question.lower, question.upper)
    model.x = pyo.Var(range(len(question.factual)), bounds=lambda _, k: limits_of(box, k))


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


# ==== The nearest point that a linear model favours, whatever its parameters are within a ball ========================


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
    return described(
        model,
        title="Nearest point that a linear model favours at its worst parameters",
        formula="min |(x - x0) / s|, w'x + c - delta |x|* >= margin",
        reference="ROAR; LIME-ROBUST-PROJ",
    )


# ==== ROAR: the point with the least loss at the worst parameters of a ball, and a price on its distance ==============


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
    return described(
        model,
        title="Least loss at the worst parameters, with a price on distance",
        formula="min loss(w'x + c - delta |(x, 1)|*) + weight |x - x0|_1",
        reference="ROAR, equation (3)",
    )


# ==== Wachter's recourse in its hard form: the nearest point at which a linear score or a network's reaches a level ===

_MODEL = Instance(
    (Affine, ReluNetwork),
    Refusal(
        "an Affine or a ReluNetwork as {name}",
        "Take one of ceopt.formulations.predictors.",
        "{name} is of type {type}",
        InvalidTypeError,
    ),
)


def require_score(who: str, model: Affine | ReluNetwork) -> Affine | ReluNetwork:
    """Return a representation with one score, without labels, or refuse what is none."""
    _MODEL.require(who, "model", model)
    outputs = len(model.intercept if isinstance(model, Affine) else model.biases[-1])
    if outputs != 1:
        raise InvalidValueError(
            who, "a model with one score", f"model has {outputs}", "Take the difference of two of them."
        )
    if model.labels is None:
        return model
    if isinstance(model, Affine):
        return Affine(model.weights, model.intercept, dtype=model.dtype)
    return ReluNetwork(model.weights, model.biases, activations=model.activations, dtype=model.dtype)


def wachter(
    factual: ArrayLike,
    model: Affine | ReluNetwork,
    *,
    level: float = 0.0,
    scale: ArrayLike | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> pyo.ConcreteModel:
    r"""State the nearest point whose score is at least ``level``.

    .. math::
        \min_x\ \sum_k |x_k - x^0_k| / s_k \quad\text{s.t.}\quad f(x) \ge \tau, \quad l \le x \le u.

    ============ ====================== ===== =================================================================
    symbol       component              shape meaning
    ============ ====================== ===== =================================================================
    x, x^0, s    ``x``                  (d,)  the point within its bounds l and u, the factual, ``scale``
    cost         ``t``, ``up``,         (d,)  the move of each column over its scale
                 ``down``
    f            ``predictor``                the model as :func:`ceopt.formulations.embed` states it
    :math:`\tau` ``reached``            ()    ``level``
    ============ ====================== ===== =================================================================

    An LP for a linear model, a MILP for a network, whose big-M rows need finite bounds. Exact. It is what the supremum
    over the weight of the loss leaves of Wachter's objective, for a score in place of a probability.

    Parameters
    ----------
    factual
        Shape (d,).
    model
        An ``Affine`` or a ``ReluNetwork`` with one score; labels are passed over.
    level
        Of the score.
    scale
        Unit of each column's move, above 0; 1 by default.
    lower, upper
        One number or one a column; of a network finite.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        Shapes that disagree, no finite numbers, a model of several scores, a scale that is not above 0.
    UnboundedFeatureError
        A network of a column without bounds.

    References
    ----------
    Wachter, Mittelstadt & Russell (2017), equations (1) and (2).

    Examples
    --------
    >>> from ceopt.formulations import programs
    >>> from ceopt.formulations.predictors import ReluNetwork
    >>> from ceopt.solvers import solve
    >>> size = ReluNetwork([[[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [-2.0]])  # |x| - 2
    >>> m = programs.wachter([0.5], size, lower=-3, upper=3)
    >>> round(solve(m).objective, 6), round(m.x[0].value, 6)
    (1.5, 2.0)
    """
    who = "wachter"
    score = require_score(who, model)
    d = score.weights[0].shape[-1] if isinstance(score, ReluNetwork) else score.weights.shape[1]
    question = require_question(who, factual, np.zeros(d), 0.0, scale=scale, lower=lower, upper=upper)
    least = COEFFICIENT.require(who, "level", level)
    program = pyo.ConcreteModel(name=who)
    add_point(program, question)
    add_cost(program, question)
    names = [f"x{k}" for k in range(d)]
    limits = zip(names, question.lower.tolist(), question.upper.tolist(), strict=True)
    space = FeatureSpace([Feature(name, kind="continuous", lower=low, upper=high) for name, low, high in limits])
    program.predictor = embed(score, dict(zip(names, program.x.values(), strict=True)), space=space)
    program.reached = pyo.Constraint(expr=program.predictor.score >= float(least))
    program.cost = pyo.Objective(expr=cost_of(program))
    return described(
        program,
        title="Nearest point whose score reaches a level",
        formula="min sum |x - x0| / s, f(x) >= level",
        reference="Wachter, Mittelstadt & Russell (2017)",
    )
