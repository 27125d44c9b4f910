"""The squared loss: how great its optimum can be, and what makes it one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.programs.data_shift.question import ShiftQuestion
from ceopt.formulations.programs.data_shift.shifts import label_after
from ceopt.formulations.programs.data_shift.trained_sizes import TrainedSizes

__all__ = ["add_squared_rows", "squared_sizes"]


def squared_sizes(question: ShiftQuestion) -> TrainedSizes:
    r"""Return the bounds that comparison with w = 0 gives, whose objective is V.

    .. math::
        \lVert w \rVert \le \sqrt{V / \lambda}, \qquad |e_i| \le \sqrt{N V}, \qquad
        |b| \le |\bar y| + \lVert w \rVert \lVert \bar x \rVert

    V is the variance of the labels, their mean square without an intercept, and the greatest of these if labels move.
    """
    rows = question.rows
    n = len(rows.y)
    worst = _mean_square(question)
    weight = math.sqrt(worst / rows.regularization)
    residual = math.sqrt(n * worst)
    intercept = 0.0
    if rows.intercept:
        intercept = _mean_label(question) + weight * question.mean_reach
    return TrainedSizes(weight, (-intercept, intercept), (-residual, residual))


def _mean_square(question: ShiftQuestion) -> float:
    y = question.rows.y
    level = 0.0
    if question.rows.intercept:
        level = float(y.mean())
    if question.shift == "label":
        return float(np.mean((np.abs(y - level) + question.radius) ** 2))
    if question.shift == "flip":
        nearest = max(0.0, abs(level) - 2.0 * question.radius / len(y))  # of the mean, to which the flips can take it
        return 1.0 - nearest**2
    return float(np.mean((y - level) ** 2))


def _mean_label(question: ShiftQuestion) -> float:
    level = abs(float(question.rows.y.mean()))
    if question.shift == "label":
        return level + question.radius
    if question.shift == "flip":
        return min(1.0, level + 2.0 * question.radius / len(question.rows.y))
    return level


def add_squared_rows(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> dict[int, Any]:
    """Add ``residual``, the pull being the residual s - y, and return what each row pulls with: its negative."""
    del sizes

    def residual(m: Any, i: int) -> Any:
        return m.pull[i] - m.score[i] + label_after(m, question, i) == 0.0

    model.residual = pyo.Constraint(range(len(question.rows.y)), rule=residual)
    return {i: -model.pull[i] for i in model.pull}
