"""The shift of training data after which a retrained classifier rates explanations worst, checked by training again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations import programs
from ceopt.formulations.programs.data_shift import LabelledRows, ShiftQuestion, require_shift_question
from ceopt.formulations.programs.parts import Floats
from ceopt.formulations.space.space import cells_of, rows_to_keep, taken
from ceopt.plans.results import Readable, frozen
from ceopt.solvers import solve
from ceopt.solvers.checks import OrNone, Real, check_arguments
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.status import Status
from ceopt.tolerances import SHIFT_CHECKED, SHIFT_GAP
from ceopt.training.retrained import RetrainedWeights, trained_on

__all__ = ["WorstShift", "worst_shift"]

_CHECKS: Final = {"solver": SOLVER_NAME, "time_limit_s": OrNone(Real(above=0.0))}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorstShift(Readable):
    """What :func:`worst_shift` returns. All that is said of the shift is of the classifier that it trains.

    Parameters
    ----------
    score
        The least score of the explanations after the shift; None without a shift in hand.
    shift
        What is added to X, shape (N, d), or to y, shape (N,): of "flip" 2 or -2 where a label turns.
    unshifted
        The least score of the explanations before.
    weights, intercept
        Of the classifier that the shifted data train; of several optimal intercepts the least.
    scores
        Shape (J,): of each explanation after the shift.
    objective
        What was asked for: the score, the number of invalid explanations, or their hinge loss.
    bound
        Proved: no shift does worse, found by gradients (:func:`virtual_data_shift`) or otherwise. None where the solver
        proved nothing.
    w_bound, e_bound
        No shift leads to weights of a greater norm, or pulls of a row beyond it: residuals of the squared loss.
    hat
        Of the shift "label": by how much a score grows with each label, shape (N,); (J, N) for a matrix of
        explanations. None of the others.
    status
        "optimal": nothing is worse by more than the gap. "feasible": the shift is checked, not proved worst.
    reason
        A sentence where it is not optimal.
    """

    score: float | None
    shift: Floats | None
    unshifted: float
    weights: Floats | None
    intercept: float | None
    scores: Floats | None
    objective: float | None
    bound: float | None
    w_bound: float
    e_bound: float
    hat: Floats | None
    status: Status
    reason: str = field(default="")

    def __post_init__(self) -> None:
        frozen(self, "shift", "weights", "scores", "hat")


def worst_shift(
    X: ArrayLike,
    y: ArrayLike,
    counterfactuals: ArrayLike,
    *,
    radius: float,
    regularization: float,
    loss: Literal["squared", "hinge", "logistic"] = "squared",
    shift: Literal["continuous", "grid", "label", "flip"] = "continuous",
    objective: Literal["score", "invalid", "hinge"] = "score",
    intercept: bool = True,
    solver: str = "auto",
    time_limit_s: float | None = None,
) -> WorstShift:
    """Return the shift of training data after which a retrained linear classifier rates explanations worst.

    It is the optimum of :func:`ceopt.formulations.programs.data_shift`, which has the mathematics and says which solver
    takes which question. The classifier is then trained again on the shifted data, by
    :func:`ceopt.training.retrained`, and what it says of the explanations is reported; where that is not what the
    solver said, the status is "feasible".

    Parameters
    ----------
    X, y, counterfactuals, radius, regularization, loss, shift, objective, intercept
        As for the program, which takes whole rows; here rows of X with missing cells are left out with a warning, and
        their labels with them: N counts the others.
    solver
        A name of :func:`ceopt.solvers.available`, or "auto": the first that takes the program's class.
    time_limit_s
        None for no limit. Continuous shifts of more than a few rows take long.

    Raises
    ------
    CeoptError
        As the program; and the solver does not take its class, or is not installed.

    Examples
    --------
    >>> from ceopt.training import worst_shift
    >>> found = worst_shift([[0.0], [2.0]], [-1, 1], [1.5], radius=0.5, regularization=0.5, shift="grid")
    >>> round(found.unshifted, 4), round(found.score, 4), found.shift.tolist(), str(found.status)
    (0.3333, 0.0, [[0.5], [0.5]], 'optimal')
    """
    who = "worst_shift"
    check_arguments(who, _CHECKS, locals())
    kept = rows_to_keep(who, None, X, word="X", frame=cells_of(X), y=y)
    X = taken(X, kept)
    y = taken(y, kept)
    arguments: dict[str, Any] = {
        "radius": radius, "regularization": regularization, "loss": loss, "shift": shift, "objective": objective,
        "intercept": intercept,
    }  # fmt: skip
    question = require_shift_question(who, X, y, counterfactuals, **arguments)
    model = programs.data_shift(X, y, counterfactuals, **arguments)
    result = solve(model, solver, time_limit_s=time_limit_s, relative_gap=SHIFT_GAP)
    hat = None
    if shift == "label":
        hat = _hat(question, is_one=np.ndim(counterfactuals) == 1)
    known = WorstShift(
        score=None, shift=None, unshifted=float(_scores(question, trained_on(question.rows)).min()), weights=None,
        intercept=None, scores=None, objective=None, bound=result.bound, w_bound=float(model.w_bound),
        e_bound=float(max(model.pull_bounds)), hat=hat, status=_status(result), reason=result.message,
    )  # fmt: skip
    if result.objective is None:
        return known
    sizes = np.array([max(map(abs, one.bounds)) for one in model.explained.values()])
    return _with_shift(known, question, sizes, _moved(question, model), result.objective)


def _status(result: Any) -> Status:
    name = str(result.status)
    if name in set(Status):
        return Status(name)
    return Status.ERROR


def _with_shift(known: WorstShift, question: ShiftQuestion, sizes: Floats, moved: Floats, claimed: float) -> WorstShift:
    """Add what the classifier says that a shift trains; where it is not what the solver claims, nothing is proved.

    ``sizes`` (J,) bound the scores of the explanations.
    """
    trained = trained_on(_shifted(question, moved))
    scores = _scores(question, trained)
    rounding = SHIFT_CHECKED * np.minimum(sizes, np.maximum(1.0, np.abs(question.counterfactuals).max(axis=1)))
    reached = _objective(question, scores, rounding)
    status = known.status
    reason = known.reason
    if status is Status.OPTIMAL and not _agrees(question, rounding, reached, claimed):
        status = Status.FEASIBLE
        reason = f"The classifier that the shift trains has {reached:.6g}, where the solver says {claimed:.6g}."
    return replace(
        known, score=float(scores.min()), shift=moved, weights=trained.weights, intercept=trained.intercepts[0],
        scores=scores, objective=reached, status=status, reason=reason,
    )  # fmt: skip


# ---- the shift in hand, and what it does -----------------------------------------------------------------------------
def _moved(question: ShiftQuestion, model: Any) -> Floats:
    """Return the shift of a solved program, within its radius to the last digit."""
    rows = question.rows
    if question.shift == "continuous":
        found = np.array([one.value for one in model.shift.values()]).reshape(rows.X.shape)
        return np.asarray(np.clip(found, -question.radius, question.radius))
    if question.shift == "grid":
        steps = np.array([round(one.value) for one in model.step.values()]).reshape(*rows.X.shape, 2)
        return np.asarray(question.radius * (steps[:, :, 0] - steps[:, :, 1]))
    if question.shift == "label":
        found = np.array([one.value for one in model.shift.values()])
        return np.asarray(np.clip(found, -question.radius, question.radius))
    flips = np.array([round(one.value) for one in model.flip.values()])
    return np.asarray(-2.0 * rows.y * flips)


def _shifted(question: ShiftQuestion, moved: Floats) -> LabelledRows:
    rows = question.rows
    if question.moves_entries:
        return replace(rows, X=rows.X + moved)
    return replace(rows, y=rows.y + moved)


def _scores(question: ShiftQuestion, trained: RetrainedWeights) -> Floats:
    """Return the score of each explanation, by the least of the optimal intercepts: no objective prefers another."""
    return np.asarray(question.counterfactuals @ trained.weights + trained.intercepts[0])


def _objective(question: ShiftQuestion, scores: Floats, rounding: Floats) -> float:
    if question.objective == "score":
        return float(scores[0])
    if question.objective == "invalid":
        return float((scores <= rounding).sum())
    return float(np.maximum(0.0, 1.0 - scores).sum())


def _agrees(question: ShiftQuestion, rounding: Floats, reached: float, claimed: float) -> bool:
    """Whether the checked value is the claimed one, up to what solvers may miss rows by, or worse still."""
    excess = reached - claimed
    if question.objective != "score":
        excess = -excess
    return excess <= max(float(rounding.max()), SHIFT_CHECKED * abs(claimed))


def _hat(question: ShiftQuestion, *, is_one: bool) -> Floats:
    r"""Return h with score = h'y of the squared loss: h = A (A'A + N \lambda I_0)^{-1} (x_cf, 1), A = [X 1]."""
    rows = question.rows
    n, d = rows.X.shape
    A = rows.X
    points = question.counterfactuals
    ridge = np.full(d, n * rows.regularization)
    if rows.intercept:
        A = np.column_stack([A, np.ones(n)])
        points = np.column_stack([points, np.ones(len(points))])
        ridge = np.append(ridge, 0.0)
    h = (A @ np.linalg.solve(A.T @ A + np.diag(ridge), points.T)).T
    if is_one:
        h = h[0]
    return np.asarray(h)
