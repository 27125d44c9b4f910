"""The linear classifier that rows train: to the optimum, by libraries that find it to many digits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression

from ceopt.formulations.programs.data_shift import LabelledRows, require_classes, require_labelled_rows
from ceopt.formulations.programs.parts import Floats, sum_of
from ceopt.formulations.space.space import cells_of, rows_to_keep, taken
from ceopt.plans.results import Readable, frozen
from ceopt.solvers import solve
from ceopt.tolerances import LEAST_UNIT, NEAR_MARGIN, OPTIMUM_FOUND

__all__ = ["RetrainedWeights", "retrained", "trained_on"]

_NEWTON_STEPS: Final = 500
#: Steps that HiGHS's quadratic programs may take, and more a row: on degenerate rows it was seen to go on for ever.
_QP_STEPS: Final = 1000
_QP_STEPS_A_ROW: Final = 100


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetrainedWeights(Readable):
    """What :func:`retrained` returns; the score of x is ``weights @ x + intercept``.

    Parameters
    ----------
    weights
        Shape (d,); unique.
    intercept
        0 without one. Of the hinge loss the middle of ``intercepts``.
    intercepts
        (least, greatest) of the optimal intercepts: of the hinge loss they may differ, of the others they do not.
    objective
        Mean loss and penalty.
    """

    weights: Floats
    intercept: float
    intercepts: tuple[float, float]
    objective: float

    def __post_init__(self) -> None:
        frozen(self, "weights")


def retrained(
    X: ArrayLike,
    y: ArrayLike,
    *,
    loss: Literal["squared", "hinge", "logistic"],
    regularization: float,
    intercept: bool = True,
) -> RetrainedWeights:
    r"""Train a linear score s(x) = w'x + b; the intercept is not penalised.

    .. math:: \min_{w, b}\ \frac1N \sum_i \ell(y_i, w^\top x_i + b) + \text{penalty}(w)

    ========== ============================ ============================================== ==========================
    loss       l(y, s)                      penalty                                        found by
    ========== ============================ ============================================== ==========================
    squared    :math:`(s - y)^2` (ridge)    :math:`\lambda \lVert w \rVert^2`              least squares
    hinge      :math:`\max(0, 1 - y s)`     :math:`\tfrac{\lambda}{2} \lVert w \rVert^2`   HiGHS, a quadratic program
    logistic   :math:`\log(1 + e^{-y s})`   :math:`\tfrac{\lambda}{2} \lVert w \rVert^2`   scikit-learn, by Newton
    ========== ============================ ============================================== ==========================

    With w the hinge loss is piecewise linear in b, and every b between two neighbouring values of
    :math:`y_i - w^\top x_i` may be optimal; those two are ``intercepts``.

    Parameters
    ----------
    X
        Shape (N, d). Rows with missing cells are left out with a warning, and their labels with them.
    y
        Shape (N,): -1 and 1; of the squared loss any numbers, as labels that :func:`worst_shift` moved.
    loss, regularization
        As above; :math:`\lambda` is above 0.
    intercept
        False: b is 0.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        Shapes that disagree, an infinity, labels that are missing or not classes, one class alone with an intercept,
        regularization that is not above 0.

    Examples
    --------
    >>> from ceopt.training import retrained
    >>> found = retrained([[0.0], [2.0]], [-1, 1], loss="squared", regularization=1.0)
    >>> found.weights.round(6).tolist(), round(found.intercept, 6), round(found.objective, 6)
    ([0.5], -0.5, 0.5)
    """
    who = "retrained"
    kept = rows_to_keep(who, None, X, word="X", frame=cells_of(X), y=y)
    X = taken(X, kept)
    y = taken(y, kept)
    rows = require_labelled_rows(who, X, y, loss=loss, regularization=regularization, intercept=intercept)
    if rows.loss != "squared":
        require_classes(who, rows)
    return trained_on(rows)


def trained_on(rows: LabelledRows) -> RetrainedWeights:
    """Return the classifier that checked rows train: found in columns about 0 whose greatest entry is 1."""
    centre = np.zeros(rows.X.shape[1])
    if rows.intercept:
        centre = rows.X.mean(axis=0)
        constant = (rows.X[0] == rows.X).all(axis=0)
        centre[constant] = rows.X[0, constant]  # not even rounding is left of these
    about = rows.X - centre
    unit = max(float(np.abs(about).max()) or 1.0, LEAST_UNIT * math.sqrt(rows.regularization))
    even = replace(rows, X=about / unit, regularization=rows.regularization / unit**2)
    slopes, least, greatest = _FITS[rows.loss](even)
    w = slopes / unit
    low = least
    high = greatest
    if rows.intercept:
        low -= float(centre @ w)
        high -= float(centre @ w)
    b = 0.5 * (low + high)
    return RetrainedWeights(weights=w, intercept=b, intercepts=(low, high), objective=_training(rows, w, b))


def _loss(rows: LabelledRows, scores: Floats) -> Floats:
    if rows.loss == "squared":
        return np.asarray((scores - rows.y) ** 2)
    if rows.loss == "hinge":
        return np.asarray(np.maximum(0.0, 1.0 - rows.y * scores))
    return np.asarray(np.logaddexp(0.0, -rows.y * scores))


def _penalty(rows: LabelledRows) -> float:
    if rows.loss == "squared":
        return rows.regularization
    return 0.5 * rows.regularization


# ---- the libraries: weights, and the least and the greatest of the optimal intercepts --------------------------------
def _ridge(rows: LabelledRows) -> tuple[Floats, float, float]:
    n, d = rows.X.shape
    level = 0.0
    if rows.intercept:
        level = float(rows.y.mean())  # the columns are about 0
    matrix = np.vstack([rows.X, np.sqrt(n * rows.regularization) * np.eye(d)])
    side = np.concatenate([rows.y - level, np.zeros(d)])
    return np.linalg.lstsq(matrix, side, rcond=None)[0], level, level


def _support_vectors(rows: LabelledRows) -> tuple[Floats, float, float]:
    n, d = rows.X.shape
    model = pyo.ConcreteModel(name="support_vectors")
    model.w = pyo.Var(range(d))
    model.b = pyo.Var()
    if not rows.intercept:
        model.b.fix(0.0)
    model.slack = pyo.Var(range(n), domain=pyo.NonNegativeReals)
    slopes = list(model.w.values())

    def outside(m: Any, i: int) -> Any:
        label = float(rows.y[i])
        return sum_of([*slopes, m.b, m.slack[i]], [*(label * rows.X[i]), label, 1.0]) >= 1.0

    model.outside = pyo.Constraint(range(n), rule=outside)
    squares = pyo.quicksum(w * w for w in slopes)
    model.total = pyo.Objective(expr=sum_of(model.slack.values()) + 0.5 * n * rows.regularization * squares)
    w = _least_weights(rows, model)
    if not rows.intercept:
        return w, 0.0, 0.0
    breaks = np.sort(rows.y - rows.X @ w)  # where the loss of one row begins, or ends, as b grows
    positive = int((rows.y > 0.0).sum())
    return w, float(breaks[positive - 1]), float(breaks[positive])  # in between as many rows fall as rise


def _least_weights(rows: LabelledRows, model: Any) -> Floats:
    """Return the weights of the program's optimum, by HiGHS or, where that ends without, the better of two solvers'."""
    steps = _QP_STEPS + _QP_STEPS_A_ROW * len(rows.y)
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("highs", {"relative_gap": OPTIMUM_FOUND, "options": {"qp_iteration_limit": steps}}),
        ("clarabel", {}),
    )
    found = []
    for solver, limits in asked:
        result = solve(model, solver, **limits)
        if result.solutions:
            b = float(model.b.value)
            w = _on_margins(rows, np.array([one.value for one in model.w.values()], dtype=np.float64), b)
            found.append((_training(rows, w, b), w))
        if str(result.status) == "optimal":
            break
    return min(found, key=lambda one: one[0])[1]


def _on_margins(rows: LabelledRows, w: Floats, b: float) -> Floats:
    """Return the weights at which the rows near their margins are on them, where these are no worse.

    HiGHS's quadratic programs are right to 1e-7 in multipliers, and flat: weights were seen 2e-5 off.
    """
    n = len(rows.y)
    towards = rows.y[:, None] * rows.X
    margins = towards @ w + rows.y * b
    on = np.abs(margins - 1.0) <= NEAR_MARGIN
    short = margins < 1.0 - NEAR_MARGIN
    k = int(on.sum())
    fixed = towards[short].sum(axis=0) / (n * rows.regularization)
    pulls = towards[on].T / (n * rows.regularization)  # w = fixed + pulls @ (multipliers of the rows on their margins)
    matrix = np.zeros((k + 1, k + 1))
    matrix[:k, :k] = towards[on] @ pulls
    side = np.append(1.0 - towards[on] @ fixed, 0.0)
    if rows.intercept:
        matrix[:k, k] = rows.y[on]
        matrix[k, :k] = rows.y[on]
        side[k] = -rows.y[short].sum()
    found = np.linalg.lstsq(matrix, side, rcond=None)[0]
    better = fixed + pulls @ found[:k]
    if _training(rows, better, float(found[k])) < _training(rows, w, b):
        return np.asarray(better)
    return w


def _training(rows: LabelledRows, w: Floats, b: float) -> float:
    return float(_loss(rows, rows.X @ w + b).mean()) + _penalty(rows) * float(w @ w)


def _logistic(rows: LabelledRows) -> tuple[Floats, float, float]:
    features = rows.X
    labels = rows.y
    if not rows.intercept:  # y only ever meets x as their product, and the library wants two labels
        towards = rows.y[:, None] * rows.X
        features = np.vstack([towards, -towards])
        labels = np.repeat([1.0, -1.0], len(rows.y))
    fitted = LogisticRegression(
        C=1.0 / (len(labels) * rows.regularization),
        fit_intercept=rows.intercept,
        solver="newton-cholesky",
        tol=OPTIMUM_FOUND,
        max_iter=_NEWTON_STEPS,
    ).fit(features, labels)
    b = float(np.ravel(fitted.intercept_)[0])
    return np.asarray(fitted.coef_[0], dtype=np.float64), b, b


_FITS: Final = {"squared": _ridge, "hinge": _support_vectors, "logistic": _logistic}
