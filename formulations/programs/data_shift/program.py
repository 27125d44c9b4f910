"""The worst shift of training data for explanations, its retrained classifier stated by conditions of optimality."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.data_shift.hinge import add_hinge_rows, hinge_sizes
from ceopt.formulations.programs.data_shift.logistic import add_logistic_rows, logistic_sizes
from ceopt.formulations.programs.data_shift.objectives import add_objective
from ceopt.formulations.programs.data_shift.question import ShiftQuestion, require_shift_question
from ceopt.formulations.programs.data_shift.ridge import add_squared_rows, squared_sizes
from ceopt.formulations.programs.data_shift.shifts import add_shift, moved_pulls, moved_weights
from ceopt.formulations.programs.data_shift.trained_sizes import TrainedSizes
from ceopt.formulations.programs.expressions import sum_of
from ceopt.solvers.manifest import Manifest, describe

__all__ = ["data_shift"]

#: By the names of the losses: bounds of what they train, and the rows that tie pulls to scores.
_SIZES: Final[Mapping[str, Callable[[ShiftQuestion], TrainedSizes]]] = {
    "squared": squared_sizes,
    "hinge": hinge_sizes,
    "logistic": logistic_sizes,
}
_ROWS: Final[Mapping[str, Callable[[Any, ShiftQuestion, TrainedSizes], dict[int, Any]]]] = {
    "squared": add_squared_rows,
    "hinge": add_hinge_rows,
    "logistic": add_logistic_rows,
}


def data_shift(
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
) -> pyo.ConcreteModel:
    r"""State the shift of training data after which a retrained linear classifier rates explanations worst.

    .. math::
        \min_{\delta}\ w^\top x^{\text{cf}} + b \quad\text{s.t.}\quad (w, b) \in
        \operatorname*{argmin}_{w, b}\ \frac1N \sum_i \ell(y_i, w^\top (x_i + \delta_i) + b) + \text{penalty}(w)

    Training is convex, so that conditions of first order say it all. With the scores :math:`s_i` of the training rows
    and what each of them pulls with, :math:`g_i`:

    .. math::
        s_i = w^\top (x_i + \delta_i) + b, \qquad N \lambda w = \sum_i g_i (x_i + \delta_i), \qquad \sum_i g_i = 0

    ======== ======================= ===========================================================================
    loss     :math:`g_i`             rows
    ======== ======================= ===========================================================================
    squared  :math:`-e_i`            ``residual``: :math:`e_i = s_i - y_i`
    hinge    :math:`y_i a_i`         ``outside``, ``tight``: :math:`0 \le y_i s_i - 1 + \xi_i \le M_1 (1 - v_i)`;
                                     ``paid``, ``pulled``, ``whole``: :math:`\xi_i \le M_2 u_i,\ u_i \le a_i \le v_i`
    logistic :math:`y_i a_i`         ``rises``, ``falls``: :math:`p_i \ge e^{y_i s_i},\ q_i \ge e^{-y_i s_i}`;
                                     ``most``, ``least``: :math:`a_i (1 + p_i) \le 1,\ (1 - a_i)(1 + q_i) \le 1`
    ======== ======================= ===========================================================================

    ============== ================== ====== ====================================================================
    symbol         component          shape  meaning
    ============== ================== ====== ====================================================================
    x, y                              (N, d) ``X``, and ``y``, the classes -1 and 1
    w, b           ``w``, ``b``       (d,)   the retrained classifier; its bound is ``model.w_bound``
    s              ``score``          (N,)   rows ``scores``
    e, a           ``pull``           (N,)   bounds ``model.pull_bounds``; rows ``stationary``, ``balanced``
    :math:`\delta` ``shift``, or             as :func:`~ceopt.formulations.programs.data_shift.shifts.add_shift`
                   ``step``, ``flip``        lists them
    :math:`\xi`    ``slack``          (N,)   by how much a row is short of its margin
    v, u           ``met, short``     (N,)   binary: the row's margin is not exceeded; it is missed
    p, q           ``above, below``   (N,)   so that :math:`a_i = 1 / (1 + e^{y_i s_i})`
    s(x^cf)        ``explained``      (J,)   scores of ``counterfactuals``; rows ``explains``
    ============== ================== ====== ====================================================================

    ======== ======================= ======================== =========================== =========================
    loss     continuous              grid                     label                       flip
    ======== ======================= ======================== =========================== =========================
    squared  nonconvex QCQP          MILP                     LP                          MILP
    hinge    nonconvex QCQP          MILP                     (none)                      MILP
    logistic nonconvex exponential   the same, with binaries  (none)                      the same, with binaries
    ======== ======================= ======================== =========================== =========================

    A shift "continuous" or "grid" moves each entry of X by at most ``radius``, on a "grid" by it or not at all; "label"
    moves labels, as numbers, by at most ``radius``; "flip" turns at most ``radius`` labels, and leaves a row of each
    class to the hinge and the logistic loss with an intercept. Binaries make products exact in linear rows
    (``switched.py``). Exact: the bounds that they need hold for every shift. LP and MILP are solved by the default
    installation, nonconvex QCQP by SCIP and Gurobi, exponential programs by SCIP; the logistic loss on a grid of more
    than half a dozen entries takes it minutes. Vertices of the box of a continuous shift are not optimal in general.
    The hinge loss may leave several intercepts optimal; the worst of them counts. "invalid" and "hinge" add binaries
    for each explanation.

    Parameters
    ----------
    X, y
        Shapes (N, d) and (N,).
    counterfactuals
        Shape (d,) or (J, d): explanations, valid where their score is above 0. For people who are to leave the class
        1, turn the labels.
    radius
        At least 0; of "flip" a whole number.
    regularization
        :math:`\lambda`, above 0: the penalty is :math:`\lambda \lVert w \rVert^2` of the squared loss, half of it of
        the others.
    loss, shift
        As above.
    objective
        "score": the least score of one explanation. "invalid": the greatest number with a score of at most 0. "hinge":
        the greatest sum of :math:`\max(0, 1 - s(x^{\text{cf}}))`.
    intercept
        False: b is 0.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        Shapes that disagree, NaN, labels that are not classes, one class alone with an intercept, a negative radius,
        several explanations for "score", a label shift of another loss than the squared one.

    References
    ----------
    Guo et al. (2023), RoCourseNet: robust training of a prediction aware recourse model, equation (3); the conditions
    of optimality are derived above. :func:`ceopt.training.worst_shift` solves the program and checks its answer.

    Examples
    --------
    One row of class 1 at z = 1.5, without an intercept: its weight z / (z^2 + 1/2) falls where z grows.

    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.data_shift([[1.5]], [1], [2.0], radius=0.4, regularization=0.5, shift="grid", intercept=False)
    >>> for row in (m.scores[0], m.residual[0], m.stationary[0], m.explains[0]):
    ...     print(row.name, row.expr)
    scores[0] - score[0] + 1.5*w[0] + 0.4*weight_step[0,0,0] - 0.4*weight_step[0,0,1]  ==  0.0
    residual[0] pull[0] - score[0] + 1.0  ==  0.0
    stationary[0] -1.5*pull[0] - (0.4*pull_step[0,0,0] - 0.4*pull_step[0,0,1]) - 0.5*w[0]  ==  0.0
    explains[0] 2.0*w[0] - explained[0]  ==  0.0
    >>> round(solve(m).objective, 6)
    0.924574
    """
    who = "data_shift"
    question = require_shift_question(
        who, X, y, counterfactuals, radius=radius, shift=shift, objective=objective, loss=loss,
        regularization=regularization, intercept=intercept,
    )  # fmt: skip
    sizes = _SIZES[question.rows.loss](question)
    model = pyo.ConcreteModel(name=who)
    model.w_bound = sizes.weight
    model.pull_bounds = sizes.pull
    _add_classifier(model, question, sizes)
    add_shift(model, question)
    _add_scores(model, question, sizes)
    signed = _ROWS[question.rows.loss](model, question, sizes)
    _add_stationarity(model, question, sizes, signed)
    add_objective(model, question, sizes)
    describe(
        model,
        Manifest(
            title="Worst shift of training data for explanations",
            formula="min w'x_cf + b, (w, b) trained on x + delta, |delta| <= radius",
            reference="RoCourseNet, equation (3)",
        ),
    )
    return model


def _add_classifier(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> None:
    n, d = question.rows.X.shape
    greatest = sizes.score(question)
    model.w = pyo.Var(range(d), bounds=(-sizes.weight, sizes.weight))
    if question.rows.intercept:
        model.b = pyo.Var(bounds=sizes.intercept)
    model.score = pyo.Var(range(n), bounds=(-greatest, greatest))
    model.pull = pyo.Var(range(n), bounds=sizes.pull)


def _add_scores(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> None:
    X = question.rows.X
    n, d = X.shape
    moved = moved_weights(model, question, sizes)
    weights = list(model.w.values())
    intercept = []
    if question.rows.intercept:
        intercept = [model.b]

    def scores(m: Any, i: int) -> Any:
        ones = [1.0] * len(intercept)
        still = sum_of([m.score[i], *weights, *intercept], [-1.0, *X[i], *ones])
        moves = [moved[i, j] for j in range(d) if moved]
        return still + pyo.quicksum(moves) == 0.0

    model.scores = pyo.Constraint(range(n), rule=scores)


def _add_stationarity(model: Any, question: ShiftQuestion, sizes: TrainedSizes, signed: Mapping[int, Any]) -> None:
    rows = question.rows
    n, d = rows.X.shape
    moved = moved_pulls(model, question, sizes)
    strength = n * rows.regularization
    signs = rows.y
    if rows.loss == "squared":
        signs = np.full(n, -1.0)

    def stationary(m: Any, j: int) -> Any:
        pulled = pyo.quicksum(float(rows.X[i, j]) * signed[i] for i in range(n))
        moves = [float(signs[i]) * moved[i, j] for i in range(n) if moved]
        return pulled + pyo.quicksum(moves) - strength * m.w[j] == 0.0

    model.stationary = pyo.Constraint(range(d), rule=stationary)
    if rows.intercept:
        model.balanced = pyo.Constraint(expr=pyo.quicksum(signed.values()) == 0.0)
