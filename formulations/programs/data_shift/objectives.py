"""What a shift of data is to do to explanations: lower a score, invalidate many, or raise their hinge loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.programs.data_shift.question import ShiftQuestion
from ceopt.formulations.programs.data_shift.trained_sizes import TrainedSizes
from ceopt.formulations.programs.expressions import sum_of

__all__ = ["add_objective"]


def add_objective(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> None:
    """Add the scores ``explained`` of the explanations, and the objective ``worst``.

    ========== ======================================== ==============================================================
    objective  optimum                                  rows
    ========== ======================================== ==============================================================
    score      least score of the explanation
    invalid    most explanations with a score up to 0   ``nonpositive``: they count if ``invalid`` is 1
    hinge      greatest sum of max(0, 1 - score)        ``loss`` is at most ``1 - score`` if ``pays`` is 1, else 0:
                                                        ``at_most``, ``if_pays``
    ========== ======================================== ==============================================================
    """
    points = question.counterfactuals
    which = range(len(points))
    least, greatest = sizes.scores(points)
    model.explained = pyo.Var(which, bounds=lambda _m, k: (float(least[k]), float(greatest[k])))
    intercept = []
    if question.rows.intercept:
        intercept = [model.b]
    weights = list(model.w.values())

    def explains(m: Any, k: int) -> Any:
        coefficients = [*points[k], *([1.0] * len(intercept)), -1.0]
        return sum_of([*weights, *intercept, m.explained[k]], coefficients) == 0.0

    model.explains = pyo.Constraint(which, rule=explains)
    if question.objective == "score":
        model.worst = pyo.Objective(expr=model.explained[0])
    elif question.objective == "invalid":
        _add_count(model, np.maximum(greatest, 0.0))
    else:
        _add_loss(model, np.maximum(1.0 - least, 0.0), np.maximum(greatest - 1.0, 0.0))


def _add_count(model: Any, greatest: Any) -> None:
    which = list(model.explained)
    model.invalid = pyo.Var(which, domain=pyo.Binary)

    def nonpositive(m: Any, k: int) -> Any:
        most = float(greatest[k])
        return m.explained[k] + most * m.invalid[k] <= most

    model.nonpositive = pyo.Constraint(which, rule=nonpositive)
    model.worst = pyo.Objective(expr=sum_of(model.invalid.values()), sense=pyo.maximize)


def _add_loss(model: Any, greatest: Any, over: Any) -> None:
    which = list(model.explained)
    model.pays = pyo.Var(which, domain=pyo.Binary)
    model.loss = pyo.Var(which, bounds=lambda _m, k: (0.0, float(greatest[k])))

    def at_most(m: Any, k: int) -> Any:
        room = float(over[k])
        return m.loss[k] + m.explained[k] + room * m.pays[k] <= 1.0 + room

    def if_pays(m: Any, k: int) -> Any:
        return m.loss[k] - float(greatest[k]) * m.pays[k] <= 0.0

    model.at_most = pyo.Constraint(which, rule=at_most)
    model.if_pays = pyo.Constraint(which, rule=if_pays)
    model.worst = pyo.Objective(expr=sum_of(model.loss.values()), sense=pyo.maximize)
