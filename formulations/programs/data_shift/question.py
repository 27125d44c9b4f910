"""What a shift of data is asked about: training rows, explanations, how far the data move and what counts; checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.digits import digits
from ceopt.formulations.programs.data_shift.labelled_rows import LabelledRows, require_classes, require_labelled_rows
from ceopt.formulations.programs.expressions import Floats
from ceopt.solvers.checks import LENGTH, AllOf, Choice, Matrix, Moderate, check_arguments
from ceopt.solvers.errors import InvalidValueError

__all__ = ["OBJECTIVES", "SHIFTS", "ShiftQuestion", "require_shift_question"]

SHIFTS: Final = ("continuous", "grid", "label", "flip")
OBJECTIVES: Final = ("score", "invalid", "hinge")
_CHECKS: Final = {
    "radius": AllOf((LENGTH, Moderate())),
    "shift": Choice(SHIFTS),
    "objective": Choice(OBJECTIVES),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class ShiftQuestion:
    """Training rows, explanations and how the rows may move.

    Parameters
    ----------
    rows
        What the classifier is trained on.
    counterfactuals
        Shape (J, d).
    radius
        Of each entry or label; of "flip" how many labels.
    shift, objective
        A name of ``SHIFTS``, one of ``OBJECTIVES``.
    """

    rows: LabelledRows
    counterfactuals: Floats
    radius: float
    shift: str
    objective: str

    @property
    def moves_entries(self) -> bool:
        """Whether the rows themselves move, not their labels."""
        return self.shift in {"continuous", "grid"}

    @property
    def reach(self) -> float:
        """The greatest norm of a row, wherever the shift takes it."""
        far = np.abs(self.rows.X)
        if self.moves_entries:
            far = far + self.radius
        return float(np.linalg.norm(far, axis=1).max())

    @property
    def mean_reach(self) -> float:
        """The greatest norm of the rows' mean."""
        far = np.abs(self.rows.X.mean(axis=0))
        if self.moves_entries:
            far = far + self.radius
        return float(np.linalg.norm(far))


def require_shift_question(
    who: str,
    X: ArrayLike,
    y: ArrayLike,
    counterfactuals: ArrayLike,
    *,
    radius: float,
    shift: str,
    objective: str,
    **training: Any,
) -> ShiftQuestion:
    """Return the question, or refuse what is none in the name of ``who``; ``training`` is of the labelled rows."""
    rows = require_labelled_rows(who, X, y, **training)
    require_classes(who, rows)
    found = check_arguments(who, _CHECKS, locals())
    d = rows.X.shape[1]
    shape: tuple[int | None, ...] = (None, d)
    if np.ndim(counterfactuals) == 1:
        shape = (d,)
    points = Matrix(shape, "Give as many columns as X has.").require(who, "counterfactuals", counterfactuals)
    points = np.atleast_2d(points)
    if not len(points):
        raise InvalidValueError(who, "at least one explanation", "counterfactuals is empty", "Give one a row.")
    place = int(np.abs(points).argmax())
    Moderate().require(who, "counterfactuals", float(points.flat[place]))
    question = ShiftQuestion(rows, points, found["radius"], found["shift"], found["objective"])
    _require_fit(who, question)
    return question


def _require_fit(who: str, question: ShiftQuestion) -> None:
    """Refuse arguments that do not go together."""
    if question.objective == "score" and len(question.counterfactuals) > 1:
        but = f"counterfactuals has {len(question.counterfactuals)} rows"
        then = 'Give one, or ask for objective="invalid" or "hinge".'
        raise InvalidValueError(who, 'one explanation for objective="score"', but, then)
    if question.shift == "label" and question.rows.loss != "squared":
        but = f'loss is "{question.rows.loss}"'
        raise InvalidValueError(who, 'loss="squared" for shift="label"', but, 'Ask for shift="flip".')
    if question.shift == "flip" and not question.radius.is_integer():
        but = f"radius is {digits(question.radius)}"
        raise InvalidValueError(who, 'a number of labels as radius of shift="flip"', but, "Give a whole number.")
