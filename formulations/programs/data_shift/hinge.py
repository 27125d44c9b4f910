"""The hinge loss: how great its optimum can be, and what makes it one."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo

from ceopt.formulations.programs.data_shift.question import ShiftQuestion
from ceopt.formulations.programs.data_shift.shifts import labelled
from ceopt.formulations.programs.data_shift.trained_sizes import TrainedSizes

__all__ = ["add_hinge_rows", "hinge_sizes"]


def hinge_sizes(question: ShiftQuestion) -> TrainedSizes:
    r"""Return the bounds of comparison with w = 0, whose objective is at most 1, and of what multipliers add up to.

    .. math:: \lVert w \rVert \le \omega = \min(\sqrt{2 / \lambda},\ R / \lambda), \qquad |b| \le 1 + \omega R

    R is the greatest norm of a row. A greater b would leave no row of one class a multiplier, and then none of the
    other, all of whose rows it puts on the wrong side.
    """
    rows = question.rows
    reach = question.reach
    weight = min(math.sqrt(2.0 / rows.regularization), reach / rows.regularization)
    intercept = 0.0
    if rows.intercept:
        intercept = 1.0 + weight * reach
    return TrainedSizes(weight, (-intercept, intercept), (0.0, 1.0))


def add_hinge_rows(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> dict[int, Any]:
    """Add complementarity by binaries, the pull being N times the multiplier, and return what each row pulls with.

    A row is ``beyond`` its margin, ``on`` it or ``short`` of it: with the pull 0, between 0 and 1, or 1. ``slack`` is
    above 0 only if it is short, and the margin is met with equality, ``slack`` included, unless it is beyond.
    """
    rows = range(len(question.rows.y))
    greatest = sizes.score(question)
    over = max(0.0, greatest - 1.0)
    model.slack = pyo.Var(rows, bounds=(0.0, 1.0 + greatest))
    model.met = pyo.Var(rows, domain=pyo.Binary)
    model.short = pyo.Var(rows, domain=pyo.Binary)
    scores = {i: model.score[i] for i in rows}
    pulls = {i: model.pull[i] for i in rows}
    margins = labelled(model, question, "flipped_score", scores, (-greatest, greatest))
    signed = labelled(model, question, "flipped_pull", pulls, sizes.pull)
    model.outside = pyo.Constraint(rows, rule=lambda m, i: margins[i] + m.slack[i] >= 1.0)
    model.tight = pyo.Constraint(rows, rule=lambda m, i: margins[i] + m.slack[i] + over * m.met[i] <= 1.0 + over)
    model.paid = pyo.Constraint(rows, rule=lambda m, i: m.slack[i] - (1.0 + greatest) * m.short[i] <= 0.0)
    model.pulled = pyo.Constraint(rows, rule=lambda m, i: m.pull[i] - m.met[i] <= 0.0)
    model.whole = pyo.Constraint(rows, rule=lambda m, i: m.short[i] - m.pull[i] <= 0.0)
    return dict(signed)
