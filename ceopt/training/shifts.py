"""Classifiers trained again on rows that move: the optimum of training, the attack by gradients, the worst shift.

``retrained`` fits a linear classifier to many digits; ``virtual_data_shift`` attacks a network by gradients through its
training; ``worst_shift`` solves the program of the worst shift for a linear classifier and checks the answer.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression

from ceopt.base.results import Readable, Status, frozen
from ceopt.formulations import programs
from ceopt.formulations.programs.data_shift import (
    LabelledRows,
    ShiftQuestion,
    require_classes,
    require_labelled_rows,
    require_shift_question,
)
from ceopt.formulations.programs.parts import sum_of
from ceopt.formulations.space.space import cells_of, rows_to_keep, taken
from ceopt.solvers import solve
from ceopt.solvers.checks import LENGTH, Choice, Flag, Floats, OrNone, Real, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.surrogates.scaled_columns import Flags, ScaledFrame
from ceopt.tolerances import LEAST_UNIT, NEAR_MARGIN, OPTIMUM_FOUND, SHIFT_CHECKED, SHIFT_GAP
from ceopt.training.networks import Array, Codes, PredictorNetwork, Tree, network_of, require_jax, scores_of, shares_of
from ceopt.training.training import STEPS_OF_RADIUS, AttackedRows, ShiftAttack

# ==== The linear classifier that rows train: to the optimum, by libraries that find it to many digits =================

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


# ==== Virtual data shift: the worst retrained model that a small change of the training data can lead to ==============

_WHO: Final = "virtual_data_shift"
_VIRTUAL_CHECKS: Final = {
    "perturbation": LENGTH,
    "steps": Whole(at_least=1),
    "unroll": Whole(at_least=1),
    "norm": Choice(("linf", "l2")),
    "learning_rate": Real(above=0.0, finite=True),
    "step_size": OrNone(Real(above=0.0, finite=True)),
    "restart": Flag(),
    "random_state": Whole(at_least=0),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class VirtualShift:
    """What the attacker found.

    Parameters
    ----------
    model
        The model as the last step of the attack retrained it: ``predict``, ``predict_proba`` and ``classes_`` of raw
        frames. It has seen the rows as they were shifted before that step, not at ``shift``, to which the step moved
        them afterwards.
    shift
        The shifts (n, p) of the training rows that lack no cell after the last step, in scaled columns.
    objective
        Loss of the recourse on the model given, and on the retrained model after each step, (steps + 1,).
    """

    model: PredictorNetwork
    shift: Floats
    objective: Floats


def virtual_data_shift(
    model: Any,
    X: pd.DataFrame,
    y: Sequence[Any] | pd.Series[Any],
    counterfactuals: pd.DataFrame,
    *,
    targets: Sequence[Any] | pd.Series[Any] | None = None,
    perturbation: float = 0.1,
    steps: int = 7,
    unroll: int = 2,
    norm: str = "linf",
    learning_rate: float = 0.1,
    step_size: float | None = None,
    movable: str | Sequence[str] = "continuous",
    restart: bool = False,
    random_state: int = 0,
) -> VirtualShift:
    r"""Shift training data, each row within a ball, so that the model retrained on them invalidates recourse.

    .. math::
        &\theta' \leftarrow \theta, \quad \delta \sim U(-\varepsilon, \varepsilon); \quad T \text{ times:} \\
        &\quad K \text{ times: } \theta' \leftarrow \theta' - \eta \nabla_{\theta'} L(f(x + \delta; \theta'), y) \\
        &\quad \delta \leftarrow \Pi_{\|\delta_i\| \le \varepsilon}\bigl(\delta + \alpha\, \mathrm{sign}\,
        \nabla_\delta L(f(x^{cf}; \theta'), t)\bigr)

    The gradient of :math:`\delta` goes through the K steps that were just taken. The retrained model is set to the
    given one once, before the first step, as Algorithm 1 prints it. A lower estimate of the worst case: K steps
    retrain only so far, and the ascent is local.

    ============ ====== ============= ===============================================================
    symbol       shape  unit          meaning
    ============ ====== ============= ===============================================================
    x, y         (n, p) scaled        training rows and their classes; ``X``, ``y``
    x^cf, t      (m, p) scaled        recourse and the classes it should get; ``counterfactuals``
    delta        (n, p) range         shift of each row; ``shift``
    epsilon      ()     range         ``perturbation``: 0.1 is a tenth of the range of a column
    T, K         ()     none          ``steps``, ``unroll``
    eta, alpha   ()     none, range   ``learning_rate``, ``step_size``
    L            ()     none          mean squared error of the probabilities
    ============ ====== ============= ===============================================================

    Parameters
    ----------
    model
        A fitted :class:`CounterNet` or :class:`RoCourseNet`; or a logistic regression or ReLU network, with the
        pipeline before it, whose probabilities are the sigmoid or softmax of its scores.
    X, y
        The training data in raw units, (n, d) and (n,). Rows of X with missing cells are left out with a warning: their
        labels too, and without ``targets`` their counterfactuals.
    counterfactuals
        Recourse in raw units, one row for each row of X; with ``targets``, any number m of rows.
    targets
        Labels (m,); None: of each row of X, the other of two classes than the model says.
    perturbation
        Radius of the ball of each row.
    steps, unroll
        Steps of the attack, and steps of retraining in each.
    norm
        "linf" or "l2".
    learning_rate, step_size
        Of retraining and of the attack; None: 2.5 ``perturbation / steps``.
    movable
        "continuous" (all columns of numbers), "all", or names of raw columns.
    restart
        Whether retraining begins with the given model in each step.
    random_state
        Seed of the start.

    Raises
    ------
    MissingLibraryError
        JAX is not installed.
    InvalidValueError, InvalidTypeError, UnknownNameError, UnsupportedModelError
        Missing labels or cells of counterfactuals, labels that are no classes, frames that do not fit or are empty,
        several classes without targets, an option out of its range or so great that numbers overflow, a model that
        cannot be differentiated.

    References
    ----------
    Guo et al. (2023), "RoCourseNet: Robust training of a prediction aware recourse model", problem (3), Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ceopt.training import virtual_data_shift
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 2)), columns=["income", "age"])
    >>> granted = people["income"] > 0.5
    >>> advice = people.assign(income=np.where(granted, 0.45, 0.55))  # just across the boundary
    >>> model = LogisticRegression(C=100.0).fit(people, granted)
    >>> found = virtual_data_shift(model, people, granted, advice, perturbation=0.2, learning_rate=1.0)
    >>> bool(found.objective[-1] > found.objective[0]), float(abs(found.shift).max().round(6))
    (True, 0.2)
    """
    require_jax(_WHO)
    settings = check_arguments(_WHO, _VIRTUAL_CHECKS, locals())
    beside = {"y": y} if targets is not None else {"y": y, "counterfactuals": counterfactuals}
    kept = rows_to_keep(_WHO, None, X, word="X", **beside)
    X = taken(X, kept)
    y = taken(y, kept)
    if targets is None:
        counterfactuals = taken(counterfactuals, kept)
    network = network_of(_WHO, getattr(model, "predictor_", model), X)
    columns = network.columns
    rows = columns.encode(X)
    advice = columns.encode(counterfactuals)
    for name, points in (("X", rows), ("counterfactuals", advice)):
        if not len(points):
            raise InvalidValueError(_WHO, f"at least one row in {name}", f"{name} is empty", "Give some.")
    labels = network.codes_of(_WHO, "y", y)
    if len(labels) != len(rows):
        but = f"X has {len(rows)} and y has {len(labels)}"
        raise InvalidValueError(_WHO, "as many labels as rows", but, "Give the label of each row.")
    wanted = _targets(network, rows, advice, targets)
    step_size = settings["step_size"]
    if step_size is None:
        step_size = STEPS_OF_RADIUS * settings["perturbation"] / settings["steps"]
    attack = ShiftAttack(
        settings["steps"], settings["unroll"], settings["norm"], settings["learning_rate"], settings["restart"]
    )
    one = np.eye(len(network.classes_), dtype=np.float32)
    given = (rows.astype(np.float32), one[labels], advice.astype(np.float32), one[wanted])
    movable_columns = _movable(columns, movable).astype(np.float32)
    sizes = (settings["perturbation"], step_size)
    with np.errstate(over="ignore"):  # what is infinite in single precision is told by the losses
        layers, shift, values = _program(network.activation, attack)(
            network.layers, given, movable_columns, sizes, settings["random_state"]
        )
    import jax

    _require_finite(np.asarray(values))
    shifted = PredictorNetwork(columns, jax.tree.map(np.asarray, layers), network.activation, network.classes_)
    return VirtualShift(shifted, np.asarray(shift, dtype=np.float64), np.asarray(values, dtype=np.float64))


@functools.lru_cache(maxsize=32)
def _program(activation: str, attack: ShiftAttack) -> Any:
    """Return the compiled attack."""
    import jax
    import jax.numpy as jnp

    def shares(model: Tree, x: Array) -> Array:
        return shares_of(scores_of(model, x, activation, jnp), jnp)

    def run(layers: Tree, arrays: Any, movable: Array, sizes: tuple[float, float], seed: int) -> Any:
        given = AttackedRows(*arrays)
        radius, step_size = sizes
        shift = attack.start(jax.random.key(seed), given.rows.shape, movable, radius)
        return attack.run(shares, layers, given, shift=shift, movable=movable, perturbation=radius, step_size=step_size)

    return jax.jit(run)


def _targets(network: PredictorNetwork, rows: Floats, advice: Floats, targets: Any) -> Codes:
    if targets is not None:
        found = network.codes_of(_WHO, "targets", targets)
        if len(found) != len(advice):
            but = f"counterfactuals has {len(advice)} rows and targets has {len(found)}"
            raise InvalidValueError(_WHO, "a target for each counterfactual", but, "Give one a row.")
        return found
    count = len(network.classes_)
    if count != 2:
        then = "Give the class that each counterfactual should get."
        raise InvalidValueError(_WHO, f"targets with {count} classes", "targets is None", then)
    if len(rows) != len(advice):
        but = f"X has {len(rows)} rows and counterfactuals has {len(advice)}"
        raise InvalidValueError(_WHO, "a counterfactual for each row of X", but, "Give one a row, or targets.")
    return 1 - network.codes(rows)


def _require_finite(values: Floats) -> None:
    """Refuse options so great that the attack overflows single precision."""
    lost = np.flatnonzero(~np.isfinite(values))
    if len(lost):
        but = f"after step {lost[0]} it is {values[lost[0]]}"
        then = "Take a smaller perturbation, step_size or learning_rate."
        raise InvalidValueError(_WHO, "a loss that stays finite", but, then)


def _movable(columns: ScaledFrame, movable: Any) -> Flags:
    """Return which columns (p,) may shift."""
    if isinstance(movable, str):
        if movable == "continuous":
            return columns.of_numbers
        if movable == "all":
            return np.ones(len(columns.names), dtype=bool)
        raise UnknownNameError.among(_WHO, "movable", movable, ("continuous", "all", "a list of columns"))
    if not isinstance(movable, Iterable):
        but = f"movable is {movable!r}"
        then = 'Write "continuous", "all", or a list of columns.'
        raise InvalidTypeError(_WHO, "the names of columns as movable", but, then)
    names = list(movable)
    for name in names:
        if name not in columns.space:
            raise columns.space.unknown_column(_WHO, name)
    return columns.where(np.array([name in names for name in columns.space.names]))


# ==== The shift of training data after which a retrained classifier rates explanations worst ==========================

_WORST_CHECKS: Final = {"solver": SOLVER_NAME, "time_limit_s": OrNone(Real(above=0.0))}


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
    check_arguments(who, _WORST_CHECKS, locals())
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
    return np.asarray(-2.0 * rows.y * np.array([round(one.value) for one in model.flip.values()]))


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
