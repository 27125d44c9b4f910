"""How training data move: the variables of each shift, and their products with what training makes of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyomo.environ as pyo

from ceopt.formulations.programs.data_shift.question import ShiftQuestion
from ceopt.formulations.programs.data_shift.switched import add_switched
from ceopt.formulations.programs.data_shift.trained_sizes import TrainedSizes
from ceopt.formulations.programs.expressions import sum_of

__all__ = ["add_shift", "label_after", "labelled", "moved_pulls", "moved_weights"]


def add_shift(model: Any, question: ShiftQuestion) -> None:
    """Add the variables of the shift to a model, and the rows that hold them alone.

    ========== ============================================ ========================================================
    shift      component                                    meaning
    ========== ============================================ ========================================================
    continuous ``shift`` (n, d)                             what is added to an entry, within the radius
    grid       ``step`` (n, d, 2), binary; row ``either``   the entry moves by the radius: up (0), down (1) or not
    label      ``shift`` (n,)                               what is added to a label, within the radius
    flip       ``flip`` (n,), binary; row ``few``           the label changes sign; of so many rows at most
    flip       row ``both``                                 a row of each class is left, where training asks for it
    ========== ============================================ ========================================================
    """
    n, d = question.rows.X.shape
    box = (-question.radius, question.radius)
    if question.shift == "continuous":
        model.shift = pyo.Var(range(n), range(d), bounds=box)
    elif question.shift == "grid":
        model.step = pyo.Var(range(n), range(d), range(2), domain=pyo.Binary)

        def either(m: Any, i: int, j: int) -> Any:
            return sum_of([m.step[i, j, 0], m.step[i, j, 1]]) <= 1.0

        model.either = pyo.Constraint(range(n), range(d), rule=either)
    elif question.shift == "label":
        model.shift = pyo.Var(range(n), bounds=box)
    else:
        _add_flips(model, question)


def _add_flips(model: Any, question: ShiftQuestion) -> None:
    y = question.rows.y
    model.flip = pyo.Var(range(len(y)), domain=pyo.Binary)
    flips = list(model.flip.values())
    model.few = pyo.Constraint(expr=sum_of(flips) <= min(question.radius, float(len(y))))
    if question.rows.intercept and question.rows.loss != "squared":
        positive = sum_of(flips, -y, float((y > 0.0).sum()))
        model.both = pyo.Constraint(expr=(1.0, positive, len(y) - 1.0))


# ---- entries that move -----------------------------------------------------------------------------------------------
def moved_weights(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> Mapping[tuple[int, int], Any]:
    """Return by (i, j) what the move of an entry, times weight j, adds to the score of row i."""
    bounds = (-sizes.weight, sizes.weight)
    return _moved(model, question, "weight_step", lambda _i, j: model.w[j], bounds)


def moved_pulls(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> Mapping[tuple[int, int], Any]:
    """Return by (i, j) the move of an entry times the pull of row i."""
    return _moved(model, question, "pull_step", lambda i, _j: model.pull[i], sizes.pull)


def _moved(
    model: Any, question: ShiftQuestion, name: str, number: Any, bounds: tuple[float, float]
) -> Mapping[tuple[int, int], Any]:
    """Return products of the moves: with the Var ``shift`` as they are, with binaries in linear rows."""
    found: dict[tuple[int, int], Any] = {}
    if question.shift == "continuous":
        for i, j in model.shift:
            found[i, j] = number(i, j) * model.shift[i, j]
    elif question.shift == "grid":
        products = {}
        for i, j in model.either:
            products[i, j] = (number(i, j), [model.step[i, j, 0], model.step[i, j, 1]], bounds)
        t = add_switched(model, name, products)
        for i, j in products:
            found[i, j] = sum_of([t[i, j, 0], t[i, j, 1]], [question.radius, -question.radius])
    return found


# ---- labels that move ------------------------------------------------------------------------------------------------
def label_after(model: Any, question: ShiftQuestion, i: int) -> Any:
    """Return the label of row i after the shift."""
    label = float(question.rows.y[i])
    if question.shift == "label":
        return label + model.shift[i]
    if question.shift == "flip":
        return label - 2.0 * label * model.flip[i]
    return label


def labelled(
    model: Any, question: ShiftQuestion, name: str, numbers: Mapping[int, Any], bounds: tuple[float, float]
) -> Mapping[int, Any]:
    """Return by i the product of a number and the class of row i after the shift: -1 or 1, so not of shift "label"."""
    y = question.rows.y
    if question.shift != "flip":
        return {i: float(y[i]) * number for i, number in numbers.items()}
    products = {i: (number, [model.flip[i]], bounds) for i, number in numbers.items()}
    t = add_switched(model, name, products)
    return {i: sum_of([number, t[i, 0]], [y[i], -2.0 * y[i]]) for i, number in numbers.items()}
