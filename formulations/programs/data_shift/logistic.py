"""The logistic loss: how great its optimum can be, and what makes it one."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
from scipy.special import expit

from ceopt.formulations.programs.data_shift.question import ShiftQuestion
from ceopt.formulations.programs.data_shift.shifts import labelled
from ceopt.formulations.programs.data_shift.trained_sizes import TrainedSizes
from ceopt.solvers.cones import exponential

__all__ = ["add_logistic_rows", "logistic_sizes"]


def logistic_sizes(question: ShiftQuestion) -> TrainedSizes:
    r"""Return the bounds of comparison with w = 0, whose objective is at most log 2, and of what rows pull with.

    .. math::
        \lVert w \rVert \le \omega = \min(\sqrt{2 \log 2 / \lambda},\ R / \lambda), \qquad
        \big| b - \log (N_+ / N_-) \big| \le \omega R, \qquad \sigma(-M) \le a_i \le \sigma(M)

    R is the greatest norm of a row, :math:`N_\pm` the rows of each class, M the greatest absolute score. Scores that
    are all at least c pull with at most :math:`N_+ \sigma(-c)` one way and at least :math:`N_- \sigma(c)` the other,
    and the two are equal: so :math:`e^c \le N_+ / N_-`.
    """
    rows = question.rows
    reach = question.reach
    weight = min(math.sqrt(2.0 * math.log(2.0) / rows.regularization), reach / rows.regularization)
    intercept = (0.0, 0.0)
    if rows.intercept:
        least, most = _log_odds(question)
        intercept = (least - weight * reach, most + weight * reach)
    greatest = weight * reach + max(abs(bound) for bound in intercept)
    return TrainedSizes(weight, intercept, (float(expit(-greatest)), float(expit(greatest))))


def _log_odds(question: ShiftQuestion) -> tuple[float, float]:
    """Return the least and the greatest logarithm of the odds of the classes, whichever labels turn."""
    y = question.rows.y
    n = len(y)
    positive = float((y > 0.0).sum())
    turned = 0.0
    if question.shift == "flip":
        turned = question.radius
    least = max(1.0, positive - turned)
    most = min(n - 1.0, positive + turned)
    return math.log(least / (n - least)), math.log(most / (n - most))


def add_logistic_rows(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> dict[int, Any]:
    """Add the link of pull a and margin m, and return what each row pulls with; the pull is N times the multiplier.

    ``above`` is at least exp(m) and ``below`` at least exp(-m): with ``most``, a (1 + above) is at most 1, so that a is
    at most 1 / (1 + exp(m)), and with ``least`` 1 - a is at most 1 / (1 + exp(-m)).
    """
    rows = range(len(question.rows.y))
    greatest = sizes.score(question)
    model.above = pyo.Var(rows, bounds=(0.0, None))
    model.below = pyo.Var(rows, bounds=(0.0, None))
    scores = {i: model.score[i] for i in rows}
    pulls = {i: model.pull[i] for i in rows}
    margins = labelled(model, question, "flipped_score", scores, (-greatest, greatest))
    signed = labelled(model, question, "flipped_pull", pulls, sizes.pull)
    model.rises = pyo.Constraint(rows, rule=lambda m, i: exponential(margins[i], 1.0, m.above[i]) >= 0)
    model.falls = pyo.Constraint(rows, rule=lambda m, i: exponential(-margins[i], 1.0, m.below[i]) >= 0)
    model.most = pyo.Constraint(rows, rule=lambda m, i: m.pull[i] + m.pull[i] * m.above[i] <= 1.0)
    model.least = pyo.Constraint(rows, rule=lambda m, i: m.below[i] - m.pull[i] - m.pull[i] * m.below[i] <= 0.0)
    return dict(signed)
