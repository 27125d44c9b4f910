"""Wachter's recourse in its hard form: the nearest point at which a linear score or a network's reaches a level."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.predictors.embed import embed
from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.formulations.predictors.representation.relu_network import ReluNetwork
from ceopt.formulations.programs.linear_recourse.parts import add_cost, add_point, cost_of, require_question
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import COEFFICIENT, Instance, Refusal
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["require_score", "wachter"]

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
    describe(
        program,
        Manifest(
            title="Nearest point whose score reaches a level",
            formula="min sum |x - x0| / s, f(x) >= level",
            reference="Wachter, Mittelstadt & Russell (2017)",
        ),
    )
    return program
