"""Shifts of training data that turn explanations invalid, as programs over the retrained classifier."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike
from scipy.special import expit

from ceopt.formulations.digits import digits
from ceopt.formulations.programs.parts import described, sum_of
from ceopt.solvers.checks import LENGTH, AllOf, Choice, Divisor, Flag, Floats, Matrix, Moderate, Real, check_arguments
from ceopt.solvers.cones import exponential
from ceopt.solvers.errors import InvalidValueError

# ==== Rows with classes -1 and 1 that a linear classifier is trained on, and how, checked =============================

LOSSES: Final = ("squared", "hinge", "logistic")
_ROWS_CHECKS: Final = {
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
    """Return rows, labels and training, or refuse them in the name of ``who``; labels may be any numbers."""
    found = check_arguments(who, _ROWS_CHECKS, locals())
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
    """Refuse labels other than -1 and 1, and a single class where there is an intercept."""
    others = np.flatnonzero(np.abs(rows.y) != 1.0)
    if others.size:
        k = int(others[0])
        but = f"y[{k}] is {rows.y[k]:g}"
        raise InvalidValueError(who, "the classes -1 and 1 as y", but, "Write 1 for favourable, -1 for the other.")
    if rows.intercept and np.ptp(rows.y) == 0.0:
        but = f"y is {rows.y[0]:g} in all rows"
        then = "Give rows of both, or intercept=False: an intercept alone fits one class."
        raise InvalidValueError(who, "rows of both classes", but, then)


# ==== What a shift of data is asked about =============================================================================

SHIFTS: Final = ("continuous", "grid", "label", "flip")
OBJECTIVES: Final = ("score", "invalid", "hinge")
_SHIFT_CHECKS: Final = {
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
    """Return the question, or refuse it in the name of ``who``; ``training`` are options of the labelled rows."""
    rows = require_labelled_rows(who, X, y, **training)
    require_classes(who, rows)
    found = check_arguments(who, _SHIFT_CHECKS, locals())
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


# ==== Products of a bounded number and binaries that exclude each other, exact in linear rows =========================


def add_switched(model: Any, name: str, products: Mapping[Any, tuple[Any, Sequence[Any], tuple[float, float]]]) -> Any:
    r"""Add the products of numbers v and binaries :math:`p_k` at most one of which is 1, and return the Var of them.

    .. math::
        l\, p_k \le t_k \le u\, p_k, \qquad
        l\, \big(1 - \textstyle\sum_k p_k\big) \le v - \sum_k t_k \le u\, \big(1 - \sum_k p_k\big)

    for :math:`l \le v \le u`: exact, :math:`t_k = p_k v`, and the relaxation is the convex hull of the cases. A bound
    of 0 is one of the Var, not a row.

    Parameters
    ----------
    model
        To which are added the Var named ``name``, indexed by key and k, and the rows whose names end in _low, _high,
        _rest_low and _rest_high.
    products
        Key -> number, binaries, and the bounds of the number.
    """
    keys = {}
    for key, (number, bits, bounds) in products.items():
        for k, bit in enumerate(bits):
            keys[(*_tuple(key), k)] = (number, bit, bounds)

    def bounds_of(_m: Any, *key: Any) -> tuple[float, float]:
        low, high = keys[key][2]
        return (min(low, 0.0), max(high, 0.0))

    model.add_component(name, pyo.Var(list(keys), bounds=bounds_of))
    t = model.component(name)

    def least(_m: Any, *key: Any) -> Any:
        _, bit, (low, _) = keys[key]
        if not low:
            return pyo.Constraint.Skip
        return sum_of([t[key], bit], [1.0, -low]) >= 0.0

    def greatest(_m: Any, *key: Any) -> Any:
        _, bit, (_, high) = keys[key]
        return sum_of([t[key], bit], [1.0, -high]) <= 0.0

    def rest(key: Any, side: int) -> tuple[list[Any], list[float], float]:
        number, bits, bounds = products[key]
        bound = bounds[side]
        parts = [t[(*_tuple(key), k)] for k in range(len(bits))]
        if not bound:
            bits = ()
        return [number, *parts, *bits], [1.0, *([-1.0] * len(parts)), *([bound] * len(bits))], bound

    def rest_least(_m: Any, *key: Any) -> Any:
        variables, coefficients, bound = rest(_key(key), 0)
        return sum_of(variables, coefficients) >= bound

    def rest_greatest(_m: Any, *key: Any) -> Any:
        variables, coefficients, bound = rest(_key(key), 1)
        return sum_of(variables, coefficients) <= bound

    model.add_component(f"{name}_low", pyo.Constraint(list(keys), rule=least))
    model.add_component(f"{name}_high", pyo.Constraint(list(keys), rule=greatest))
    model.add_component(f"{name}_rest_low", pyo.Constraint(list(products), rule=rest_least))
    model.add_component(f"{name}_rest_high", pyo.Constraint(list(products), rule=rest_greatest))
    return t


def _tuple(key: Any) -> tuple[Any, ...]:
    if isinstance(key, tuple):
        return key
    return (key,)


def _key(key: tuple[Any, ...]) -> Any:
    if len(key) > 1:
        return key
    return key[0]


# ==== How great the weights, the intercept and the scores of a retrained classifier can be, whatever the shift ========


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainedSizes:
    """Bounds that hold for every shift.

    Parameters
    ----------
    weight
        Of the norm of the weights.
    intercept
        (least, greatest).
    pull
        (least, greatest) of what a row pulls with.
    """

    weight: float
    intercept: tuple[float, float]
    pull: tuple[float, float]

    def score(self, question: ShiftQuestion) -> float:
        """Bound of the absolute score of a training row, wherever it moves."""
        return self.weight * question.reach + max(map(abs, self.intercept))

    def scores(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the least and the greatest score of points that do not move."""
        slopes = self.weight * np.linalg.norm(points, axis=1)
        return self.intercept[0] - slopes, self.intercept[1] + slopes


# ==== What a shift of data is to do to explanations: lower a score, invalidate many, or raise their hinge loss ========


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


# ==== How training data move: the variables of each shift, and their products with what training makes of the data ====


def add_shift(model: Any, question: ShiftQuestion) -> None:
    """Add the variables of the shift to a model, and the rows between them.

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
        model.both = pyo.Constraint(expr=(1.0, sum_of(flips, -y, float((y > 0.0).sum())), len(y) - 1.0))


# ---- entries that move -----------------------------------------------------------------------------------------------
def moved_weights(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> Mapping[tuple[int, int], Any]:
    """Return by (i, j) what the move of an entry, times weight j, adds to the score of row i."""
    return _moved(model, question, "weight_step", lambda _i, j: model.w[j], (-sizes.weight, sizes.weight))


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


# ==== The hinge loss: how great its optimum can be, and what makes it one =============================================


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


def add_hinge_rows(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> Mapping[int, Any]:
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
    margins = labelled(model, question, "flipped_score", model.score, (-greatest, greatest))
    signed = labelled(model, question, "flipped_pull", model.pull, sizes.pull)
    model.outside = pyo.Constraint(rows, rule=lambda m, i: margins[i] + m.slack[i] >= 1.0)
    model.tight = pyo.Constraint(rows, rule=lambda m, i: margins[i] + m.slack[i] + over * m.met[i] <= 1.0 + over)
    model.paid = pyo.Constraint(rows, rule=lambda m, i: m.slack[i] - (1.0 + greatest) * m.short[i] <= 0.0)
    model.pulled = pyo.Constraint(rows, rule=lambda m, i: m.pull[i] - m.met[i] <= 0.0)
    model.whole = pyo.Constraint(rows, rule=lambda m, i: m.short[i] - m.pull[i] <= 0.0)
    return signed


# ==== The logistic loss: how great its optimum can be, and what makes it one ==========================================


def logistic_sizes(question: ShiftQuestion) -> TrainedSizes:
    r"""Return the bounds of comparison with w = 0, whose objective is at most log 2, and of what rows pull with.

    .. math::
        \lVert w \rVert \le \omega = \min(\sqrt{2 \log 2 / \lambda},\ R / \lambda), \qquad
        \big| b - \log (N_+ / N_-) \big| \le \omega R, \qquad \sigma(-M) \le a_i \le \sigma(M)

    R is the greatest norm of a row, :math:`N_\pm` the rows of each class, M the greatest absolute score. Scores that
    are all at least c pull with at most :math:`N_+ \sigma(-c)` one way and at least :math:`N_- \sigma(c)` the other,
    and the two are equal: so :math:`e^c \le N_+ / N_-`.
    """
    rows = question.rows
    reach = question.reach
    weight = min(math.sqrt(2.0 * math.log(2.0) / rows.regularization), reach / rows.regularization)
    intercept = (0.0, 0.0)
    if rows.intercept:
        least, most = _log_odds(question)
        intercept = (least - weight * reach, most + weight * reach)
    greatest = weight * reach + max(abs(bound) for bound in intercept)
    return TrainedSizes(weight, intercept, (float(expit(-greatest)), float(expit(greatest))))


def _log_odds(question: ShiftQuestion) -> tuple[float, float]:
    """Return the least and the greatest logarithm of the odds of the classes, whichever labels turn."""
    y = question.rows.y
    n = len(y)
    positive = float((y > 0.0).sum())
    turned = 0.0
    if question.shift == "flip":
        turned = question.radius
    least = max(1.0, positive - turned)
    most = min(n - 1.0, positive + turned)
    return math.log(least / (n - least)), math.log(most / (n - most))


def add_logistic_rows(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> Mapping[int, Any]:
    """Add the link of pull a and margin m, and return what each row pulls with; the pull is N times the multiplier.

    ``above`` is at least exp(m) and ``below`` at least exp(-m): with ``most``, a (1 + above) is at most 1, so that a is
    at most 1 / (1 + exp(m)), and with ``least`` 1 - a is at most 1 / (1 + exp(-m)).
    """
    rows = range(len(question.rows.y))
    greatest = sizes.score(question)
    model.above = pyo.Var(rows, bounds=(0.0, None))
    model.below = pyo.Var(rows, bounds=(0.0, None))
    margins = labelled(model, question, "flipped_score", model.score, (-greatest, greatest))
    signed = labelled(model, question, "flipped_pull", model.pull, sizes.pull)
    model.rises = pyo.Constraint(rows, rule=lambda m, i: exponential(margins[i], 1.0, m.above[i]) >= 0)
    model.falls = pyo.Constraint(rows, rule=lambda m, i: exponential(-margins[i], 1.0, m.below[i]) >= 0)
    model.most = pyo.Constraint(rows, rule=lambda m, i: m.pull[i] + m.pull[i] * m.above[i] <= 1.0)
    model.least = pyo.Constraint(rows, rule=lambda m, i: m.below[i] - m.pull[i] - m.pull[i] * m.below[i] <= 0.0)
    return signed


# ==== The squared loss: how great its optimum can be, and what makes it one ===========================================


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


def add_squared_rows(model: Any, question: ShiftQuestion, sizes: TrainedSizes) -> Mapping[int, Any]:
    """Add ``residual``, the pull being the residual s - y, and return what each row pulls with: its negative."""
    del sizes

    def residual(m: Any, i: int) -> Any:
        return m.pull[i] - m.score[i] + label_after(m, question, i) == 0.0

    model.residual = pyo.Constraint(range(len(question.rows.y)), rule=residual)
    return {i: -model.pull[i] for i in model.pull}


# ==== The worst shift of training data for explanations, its retrained classifier stated by conditions of optimality ==

Sizes: TypeAlias = Callable[[ShiftQuestion], TrainedSizes]
Rows: TypeAlias = Callable[[Any, ShiftQuestion, TrainedSizes], Mapping[int, Any]]

#: By the name of a loss: bounds of what it trains, and the rows that tie pulls to scores.
_TRAINING: Final[Mapping[str, tuple[Sizes, Rows]]] = {
    "squared": (squared_sizes, add_squared_rows),
    "hinge": (hinge_sizes, add_hinge_rows),
    "logistic": (logistic_sizes, add_logistic_rows),
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
    :math:`\delta` ``shift``, or             as :func:`~ceopt.formulations.programs.data_shift.add_shift`
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
    (:func:`add_switched`). Exact: the bounds that they need hold for every shift. LP and MILP are solved by the default
    installation, the others by SCIP and Gurobi; the logistic loss on a grid of more than half a dozen entries takes
    SCIP minutes. Vertices of the box of a continuous shift are not optimal in general.
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
    sizes_of, add_rows = _TRAINING[question.rows.loss]
    sizes = sizes_of(question)
    model = pyo.ConcreteModel(name=who)
    model.w_bound = sizes.weight
    model.pull_bounds = sizes.pull
    _add_classifier(model, question, sizes)
    add_shift(model, question)
    _add_scores(model, question, sizes)
    signed = add_rows(model, question, sizes)
    _add_stationarity(model, question, sizes, signed)
    add_objective(model, question, sizes)
    return described(
        model,
        title="Worst shift of training data for explanations",
        formula="min w'x_cf + b, (w, b) trained on x + delta, |delta| <= radius",
        reference="RoCourseNet, equation (3)",
    )


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
        return still + pyo.quicksum(moved[i, j] for j in range(d) if moved) == 0.0

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
