"""Rows with classes -1 and 1 that a linear classifier is trained on, and how, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import Floats
from ceopt.solvers.checks import AllOf, Choice, Divisor, Flag, Matrix, Moderate, Real, check_arguments
from ceopt.solvers.errors import InvalidValueError

__all__ = ["LOSSES", "LabelledRows", "require_classes", "require_labelled_rows"]

LOSSES: Final = ("squared", "hinge", "logistic")
_CHECKS: Final = {
    "loss": Choice(LOSSES),
    "regularization": AllOf((Real(above=0.0, finite=True), Divisor())),
    "intercept": Flag(),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class LabelledRows:
    """What a linear classifier is trained on, and how.

    Parameters
    ----------
    X
        Shape (n, d).
    y
        Shape (n,).
    loss
        "squared", "hinge" or "logistic".
    regularization
        Above 0.
    intercept
        Whether the score has one.
    """

    X: Floats
    y: Floats
    loss: str
    regularization: float
    intercept: bool


def require_labelled_rows(
    who: str, X: ArrayLike, y: ArrayLike, *, loss: str, regularization: float, intercept: bool
) -> LabelledRows:
    """Return rows, labels and training, or refuse what is none in the name of ``who``; labels are any numbers yet."""
    found = check_arguments(who, _CHECKS, locals())
    rows = Matrix((None, None), "Give one row of numbers for each label.").require(who, "X", X)
    n, d = rows.shape
    if not n or not d:
        raise InvalidValueError(who, "rows and columns to train on", f"X has shape {rows.shape}", "Give some.")
    labels = Matrix((n,), "Give one label for each row of X.").require(who, "y", y)
    for name, numbers in (("X", rows), ("y", labels)):
        place = int(np.abs(numbers).argmax())
        Moderate().require(who, name, float(numbers.flat[place]))
    return LabelledRows(rows, labels, found["loss"], found["regularization"], found["intercept"])


def require_classes(who: str, rows: LabelledRows) -> None:
    """Refuse labels other than -1 and 1, and one class alone where there is an intercept."""
    others = np.flatnonzero(np.abs(rows.y) != 1.0)
    if others.size:
        k = int(others[0])
        but = f"y[{k}] is {rows.y[k]:g}"
        raise InvalidValueError(who, "the classes -1 and 1 as y", but, "Write 1 for favourable, -1 for the other.")
    if rows.intercept and np.ptp(rows.y) == 0.0:
        but = f"y is {rows.y[0]:g} in all rows"
        then = "Give rows of both, or intercept=False: an intercept alone fits one class."
        raise InvalidValueError(who, "rows of both classes", but, then)
