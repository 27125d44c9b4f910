r"""What minimax probability machines and exact programs are compared with: other surrogates, and published searches.

LIME, C-LIME, LIMELS and linear support vectors are surrogates; ROAR's and Wachter's gradients are searches, beside the
global optimum of Wachter's objective on a ReLU network, by branch and bound over the score.

That objective is :math:`g(f(x)) + \text{cost}(x)` with :math:`g(s) = \lambda (\sigma(s) - \tilde y)^2`. On an interval
[a, b] of scores the chord of g less :math:`M (b - a)^2 / 8`, M bounding the size of the second derivative, is nowhere
above g; with it in place of g the program is a MILP whose optimum bounds the interval from below. The interval of the
least bound is cut at the score of its point, until no interval can hold a better one.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from ceopt.formulations import programs
from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.programs.linear_recourse import DUAL_ORDER, LinearQuestion, ParameterBall
from ceopt.formulations.programs.parts import sum_of
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, column_coordinates, rows_to_keep, taken
from ceopt.oracle.black_box import BlackBox
from ceopt.solvers import solve
from ceopt.solvers.checks import LENGTH, Choice, Floats, OrNone, Real, Whole, check_fields
from ceopt.solvers.errors import InvalidTypeError
from ceopt.surrogates.sampler import BoundarySample, BoundarySampler, NoBoundaryError
from ceopt.surrogates.scaled_columns import ScaledColumns
from ceopt.tolerances import ADAM_LEAST, PENALTY_GAP

# ==== Weighted ridge regression, with the kernel and the penalty that LIME takes ======================================

#: LIME's default penalty.
RIDGE: Final = 1.0
_WIDTH: Final = 0.75  # of the kernel, times the root of the number of columns: LIME's default for tables


def lime_width(n_columns: int) -> float:
    """Return LIME's default width of the kernel."""
    return _WIDTH * math.sqrt(n_columns)


def lime_kernel(away: Floats, width: float) -> Floats:
    r"""Return :math:`\sqrt{\exp(-\lVert u_i \rVert^2 / h^2)}` for rows (m, p) of moves from the row in question."""
    return np.asarray(np.exp(-0.5 * (away**2).sum(axis=1) / width**2))


def weighted_ridge(points: Floats, values: Floats, weights: Floats | None, alpha: float) -> tuple[Floats, float]:
    r"""Return the coefficients (p,) and the intercept, which is not penalised, of a ridge regression.

    .. math:: \min_{\beta, c} \sum_i k_i (y_i - c - \beta^\top u_i)^2 + \alpha \lVert \beta \rVert^2
    """
    found = Ridge(alpha=alpha).fit(points, values, sample_weight=weights)
    return np.asarray(found.coef_, dtype=np.float64), float(found.intercept_)


# ==== What every local surrogate is asked: a black box, scaled columns about a row, and the row as a point ============


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalQuestion:
    """A row, the model, and the columns in which a surrogate is linear.

    Parameters
    ----------
    box
        The model, which counts.
    columns
        Scaled columns about the row.
    factual
        The row as a point, (p,).
    X
        Rows of data that lack no cell.
    data
        The same as points, (n, p).
    asked_before
        Rows that the model had been sent before.
    """

    box: BlackBox
    columns: ScaledColumns
    factual: Floats
    X: pd.DataFrame
    data: Floats
    asked_before: int

    @property
    def n_queries(self) -> int:
        """Rows that were sent to the model for this question."""
        return self.box.n_queries - self.asked_before

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (p,) of the columns of data; codes of numbers do not count."""
        mean = self.data.mean(axis=0)
        spread = self.data.std(axis=0)
        for feature, places in zip(self.columns.space, self.columns.places, strict=True):
            if feature.is_finite or not feature.codes:
                continue
            is_code = feature.are_codes(column_coordinates(feature, self.X[feature.name]))
            amounts = self.data[~is_code, places[0]]
            if len(amounts):
                mean[places[0]] = amounts.mean()
                spread[places[0]] = amounts.std()
        return mean, spread

    def leaning(self, points: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return legal rows drawn about points (m, p), the first the row itself, encoded, and what the model says."""
        coordinates = self.columns.legal(points, rng)
        coordinates[0] = self.columns.factual
        return self.columns.encoded(coordinates), self.box.leaning(self.columns.frame(coordinates))


def question_of(
    who: str,
    predict: Any,
    factual: Any,
    X: Any,
    *,
    target: Any,
    space: FeatureSpace | None,
    sample: BoundarySample | None,
    n_samples: int = 0,
) -> LocalQuestion:
    """Check the arguments of a surrogate's ``fit_local``; with a sample, its columns are taken.

    Rows of data that lack a cell are left out, with a warning.

    Raises
    ------
    CeoptError
        No frame, no row that is whole, a row that does not fit, and what :class:`BlackBox` refuses.
    """
    if not isinstance(X, pd.DataFrame):
        raise InvalidTypeError(who, "a DataFrame as X", f"X is {type(X).__name__}", "Name its columns.")
    if sample is not None:
        space = sample.columns.space
    X = taken(X, rows_to_keep(who, space, X, word="X"))
    if sample is not None:
        columns = sample.columns
    else:
        if space is None:
            space = FeatureSpace(infer_features(X, steps=False))
        columns = ScaledColumns.of(space, X)
    columns = columns.about(factual)
    box = predict
    if not isinstance(predict, BlackBox):
        limit = max(20_000, 2 * n_samples)  # the number of samples is the limit
        box = BlackBox(predict, target, columns=list(X), dtypes=X.dtypes, max_queries=limit, space=columns.space)
    assert columns.factual is not None  # noqa: S101 - the columns are about a row
    point = columns.encoded(columns.factual[None])[0]
    return LocalQuestion(box, columns, point, X, columns.encode(X), box.n_queries)


def with_sample(
    who: str,
    predict: Any,
    factual: Any,
    X: Any,
    *,
    target: Any,
    space: FeatureSpace | None,
    sample: BoundarySample | None,
) -> tuple[LocalQuestion, BoundarySample]:
    """Return the question and its sample, by default drawn by ``BoundarySampler()``."""
    asked = question_of(who, predict, factual, X, target=target, space=space, sample=sample)
    if sample is None:
        sample = BoundarySampler().sample(asked.box, factual, asked.X, target=target, space=asked.columns.space)
    return asked, sample


@final
@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """A linear score: its coefficients (p,), and its value at one point (p,)."""

    coef: Floats
    value: float
    at: Floats


class AbstractLinearSurrogate(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is untyped
    """A linear model of a black box near a row, in scaled columns: favourable where ``coef_ @ z + intercept_ >= 0``."""

    _checks: ClassVar[Mapping[str, Any]]

    @final
    def fit_local(
        self,
        predict: Any,
        factual: Any,
        X: pd.DataFrame,
        *,
        target: Any,
        space: FeatureSpace | None = None,
        sample: BoundarySample | None = None,
    ) -> Self:
        """Fit about a row: on a boundary sample (None: that of ``BoundarySampler()``), or on draws of its own.

        LIME and C-LIME draw themselves: of a sample they take the scaled columns only.

        Raises
        ------
        NoBoundaryError
            The model says the same of all draws.
        CeoptError
            A parameter out of its range, no whole row, what :class:`~ceopt.surrogates.BlackBox` refuses and, without a
            sample, what :meth:`BoundarySampler.sample` refuses.
        """
        who = type(self).__name__
        check_fields(self, self._checks)
        asked, columns, slope = self._local(who, predict, factual, X, target=target, space=space, sample=sample)
        if not slope.coef.any():
            but = "it says the same of all of them"
            then = "Draw more, or farther from the row."
            raise NoBoundaryError(who, "draws between which the model makes a difference", but, then)
        self.coef_ = slope.coef
        self.intercept_ = float(slope.value - slope.coef @ slope.at)
        self.columns_ = columns
        self.n_queries_ = asked.n_queries
        return self

    @abstractmethod
    def _local(
        self, who: str, predict: Any, factual: Any, X: pd.DataFrame, **given: Any
    ) -> tuple[LocalQuestion, ScaledColumns, Slope]:
        """Return the question about the row, the scaled columns, and the score that is fitted in them."""


class AbstractDrawingSurrogate(AbstractLinearSurrogate):
    """A linear surrogate that is fitted to ``n_samples`` draws of its own."""

    n_samples: int

    @final
    def _local(
        self, who: str, predict: Any, factual: Any, X: pd.DataFrame, **given: Any
    ) -> tuple[LocalQuestion, ScaledColumns, Slope]:
        asked = question_of(who, predict, factual, X, n_samples=self.n_samples, **given)
        return asked, asked.columns, self._on_draws(asked)

    @abstractmethod
    def _on_draws(self, asked: LocalQuestion) -> Slope:
        """Return the score that is fitted to draws about a row."""


class AbstractSampledSurrogate(AbstractLinearSurrogate):
    """A linear surrogate that is fitted to a boundary sample."""

    @final
    def _local(
        self, who: str, predict: Any, factual: Any, X: pd.DataFrame, **given: Any
    ) -> tuple[LocalQuestion, ScaledColumns, Slope]:
        asked, drawn = with_sample(who, predict, factual, X, **given)
        return asked, drawn.columns, self._on_sample(asked.box, drawn)

    @abstractmethod
    def _on_sample(self, box: BlackBox, drawn: BoundarySample) -> Slope:
        """Return the score that is fitted to a boundary sample."""


# ==== LIME's surrogate: ridge regression on Gaussian draws, nearer ones counting more =================================

_LIME_CHECKS: Final = {
    "n_samples": Whole(at_least=2),
    "around": Choice(("mean", "factual")),
    "kernel_width": OrNone(Real(above=0.0, finite=True)),
    "alpha": LENGTH,
    "random_state": Whole(at_least=0),
}


@final
class LimeSurrogate(AbstractDrawingSurrogate):
    r"""A linear model of a black box by LIME, in scaled columns z: favourable where :math:`w^\top z + b \ge 0`.

    1. Drawn: :math:`z_i = m + s \circ u_i`, u standard normal, s the standard deviation of each scaled column in the
       data, m their mean or the row, and the first draw the row :math:`z^0` itself; each made a legal row as
       :class:`~ceopt.surrogates.BoundarySampler` makes them.
    2. Asked: :math:`y_i`, the probability of the target less 0.5 of a model of two classes with ``predict_proba``;
       else its decision, 0.5 or -0.5.
    3. Weighted: :math:`k_i = \sqrt{\exp(-\lVert (z_i - z^0) / s \rVert^2 / h^2)}`.
    4. Fitted: :math:`\min_{\beta, c} \sum_i k_i (y_i - c - \beta^\top (z_i - z^0) / s)^2 + \alpha \lVert \beta
       \rVert^2`, then :math:`w = \beta / s`, :math:`b = c - w^\top z^0`.

    With continuous columns without bounds these are the draws and the fit of the package ``lime`` (0.2.0.1,
    ``discretize_continuous=False``), less the 0.5. A column that is constant in the data has no weight.

    Parameters
    ----------
    n_samples
        Rows that the model is asked about, at least 2.
    around
        "mean", as the package's default, or "factual": where the draws lie.
    kernel_width
        h; None: :math:`0.75 \sqrt p`.
    alpha
        Penalty, at least 0.
    random_state
        Of the draws.

    Attributes
    ----------
    coef_, intercept_
        w, (p,), and b.
    columns_
        The scaled columns.
    n_queries_
        Rows that were sent to the model.

    References
    ----------
    Ribeiro, Singh & Guestrin (2016), "Why should I trust you?".

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import LimeSurrogate
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
    >>> lime = LimeSurrogate().fit_local(lambda rows: rows["income"] > 0, people.iloc[0], people, target=True)
    >>> bool(lime.coef_[0] > 10 * abs(lime.coef_[1])), lime.n_queries_
    (True, 1032)
    """

    _checks = _LIME_CHECKS

    def __init__(
        self,
        *,
        n_samples: int = 1000,
        around: Literal["mean", "factual"] = "mean",
        kernel_width: float | None = None,
        alpha: float = 1.0,
        random_state: int = 0,
    ) -> None:
        self.n_samples = n_samples
        self.around = around
        self.kernel_width = kernel_width
        self.alpha = alpha
        self.random_state = random_state

    def _on_draws(self, asked: LocalQuestion) -> Slope:
        mean, spread = asked.moments()
        middle = asked.factual if self.around == "factual" else mean
        rng = np.random.default_rng(self.random_state)
        draws = middle + spread * rng.standard_normal((self.n_samples, len(spread)))
        points, values = asked.leaning(draws, rng)
        away = (points - asked.factual) / np.where(spread > 0.0, spread, 1.0)
        width = float(self.kernel_width or lime_width(len(spread)))
        beta, middle_score = weighted_ridge(away, values, lime_kernel(away, width), float(self.alpha))
        w = np.where(spread > 0.0, beta / np.where(spread > 0.0, spread, 1.0), 0.0)
        return Slope(w, middle_score, asked.factual)


# ==== CLIME's surrogate: ridge regression on Gaussian draws about the row, all counting the same ======================

_CLIME_CHECKS: Final = {
    "n_samples": Whole(at_least=2),
    "radius": Real(above=0.0, finite=True),
    "random_state": Whole(at_least=0),
}


@final
class ClimeSurrogate(AbstractDrawingSurrogate):
    r"""A linear model of a black box by C-LIME, in scaled columns z: favourable where :math:`w^\top z + b \ge 0`.

    1. Drawn: :math:`z_i = z^0 + \sigma u_i`, u standard normal, :math:`\sigma` = ``radius`` times the largest distance
       of rows of data, the first draw the row itself; each made a legal row.
    2. Asked: as :class:`LimeSurrogate`.
    3. Fitted: :math:`\min_{w, c} \sum_i (y_i - c - w^\top (z_i - z^0))^2 + \lVert w \rVert^2`, :math:`b = c - w^\top
       z^0`: all draws weigh the same.

    Parameters
    ----------
    n_samples
        Rows that the model is asked about, at least 2.
    radius
        Standard deviation of the draws, as a share of the largest l2 distance of rows of data in scaled columns.
    random_state
        Of the draws.

    Attributes
    ----------
    coef_, intercept_, columns_, n_queries_
        As of :class:`LimeSurrogate`.

    References
    ----------
    Agarwal et al. (2021), Towards the unification and robustness of perturbation and gradient based explanations.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import ClimeSurrogate
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
    >>> row = {"income": 0.0, "age": 0.0}
    >>> clime = ClimeSurrogate().fit_local(lambda rows: rows["income"] > 0, row, people, target=True)
    >>> bool(clime.coef_[0] > 10 * abs(clime.coef_[1]))
    True
    """

    _checks = _CLIME_CHECKS

    def __init__(self, *, n_samples: int = 1000, radius: float = 0.1, random_state: int = 0) -> None:
        self.n_samples = n_samples
        self.radius = radius
        self.random_state = random_state

    def _on_draws(self, asked: LocalQuestion) -> Slope:
        rng = np.random.default_rng(self.random_state)
        size = self.radius * (asked.columns.diameter(asked.columns.space.coordinates(asked.X)) or 1.0)
        draws = asked.factual + size * rng.standard_normal((self.n_samples, len(asked.factual)))
        points, values = asked.leaning(draws, rng)
        return Slope(*weighted_ridge(points - asked.factual, values, None, RIDGE), asked.factual)


# ==== LIMELS's surrogate: ridge regression on the boundary sample =====================================================

_LIMELS_CHECKS: Final = {"alpha": LENGTH}


@final
class LimelsSurrogate(AbstractSampledSurrogate):
    r"""A linear model of a black box by LIMELS, in scaled columns z: favourable where :math:`w^\top z + b \ge 0`.

    .. math:: \min_{w, c} \sum_i (y_i - c - w^\top (z_i - \bar z))^2 + \alpha \lVert w \rVert^2, \qquad
        b = c - w^\top \bar z

    over the rows :math:`z_i` of a boundary sample of mean :math:`\bar z`, all weighing the same; y as of
    :class:`LimeSurrogate`: probabilities, for which the model is asked about the sample once more, where it has them,
    else the decisions of the sample.

    Parameters
    ----------
    alpha
        Penalty, at least 0.

    Attributes
    ----------
    coef_, intercept_, columns_, n_queries_
        As of :class:`LimeSurrogate`.

    References
    ----------
    Laugel et al. (2018), Defining locality for surrogates in post-hoc interpretability.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import LimelsSurrogate
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
    >>> row = {"income": -1.0, "age": 0.0}
    >>> limels = LimelsSurrogate().fit_local(lambda rows: rows["income"] > 0, row, people, target=True)
    >>> where = -limels.intercept_ / limels.coef_[0] * people["income"].std(ddof=0)  # income, where it decides
    >>> bool(abs(where) < 0.1)
    True
    """

    _checks = _LIMELS_CHECKS

    def __init__(self, *, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def _on_sample(self, box: BlackBox, drawn: BoundarySample) -> Slope:
        if box.has_probability:
            values = box.leaning(drawn.points)
        else:
            values = np.where(drawn.favourable, 0.5, -0.5)
        middle = drawn.encoded.mean(axis=0)
        return Slope(*weighted_ridge(drawn.encoded - middle, values, None, float(self.alpha)), middle)


# ==== A linear support vector machine on the boundary sample ==========================================================

_SVM_CHECKS: Final = {"C": Real(above=0.0, finite=True)}
_ITERATIONS: Final = 10_000


@final
class SvmSurrogate(AbstractSampledSurrogate):
    r"""A linear support vector machine in scaled columns z: favourable where :math:`w^\top z + b \ge 0`.

    .. math:: \min_{w, c} \tfrac12 (\lVert w \rVert^2 + c^2)
        + C \sum_i \max(0, 1 - y_i (w^\top (z_i - \bar z) + c))^2, \qquad b = c - w^\top \bar z

    over the rows of a boundary sample of mean :math:`\bar z`, with decisions y of 1 and -1: scikit-learn's
    ``LinearSVC``, which penalises the intercept; with the mean taken off, that pulls it to the middle of the sample.

    Parameters
    ----------
    C
        Price of a row on the wrong side, above 0.

    Attributes
    ----------
    coef_, intercept_, columns_, n_queries_
        As of :class:`LimeSurrogate`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import SvmSurrogate
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
    >>> row = {"income": -1.0, "age": 0.0}
    >>> svm = SvmSurrogate().fit_local(lambda rows: rows["income"] > 0, row, people, target=True)
    >>> where = -svm.intercept_ / svm.coef_[0] * people["income"].std(ddof=0)  # income, where it decides
    >>> bool(abs(where) < 0.1)
    True
    """

    _checks = _SVM_CHECKS

    def __init__(self, *, C: float = 1.0) -> None:  # noqa: N803 - scikit-learn's name
        self.C = C

    def _on_sample(self, box: BlackBox, drawn: BoundarySample) -> Slope:
        del box
        middle = drawn.encoded.mean(axis=0)
        machine = LinearSVC(C=float(self.C), dual=False, max_iter=_ITERATIONS)
        machine.fit(drawn.encoded - middle, drawn.favourable)
        return Slope(np.asarray(machine.coef_[0], dtype=np.float64), machine.intercept_[0], middle)


# ==== ROAR as its authors search: gradient steps at the worst parameters of the moment ================================

#: Of the released code: length of a step, most steps at one price, and how often the price is halved.
_RATE: Final = 0.01
_STEPS: Final = 1000
_HALVINGS: Final = 10


def _first_arrival(
    points: Floats, advance: Callable[[int, NDArray[np.intp], Floats], tuple[NDArray[np.bool_], Floats]]
) -> Floats | None:
    """Return where the first row of points (k, p) arrives; where it does not, the first of the others that do.

    All rows go side by side for at most 1,000 steps, and once one has arrived those behind it are no longer asked.
    ``advance`` is given the number of the step, the rows that still go, and their points; it returns which of these
    have arrived, and the next points.
    """
    reached: dict[int, Floats] = {}
    rows = np.arange(len(points))
    for step in range(_STEPS + 1):
        met, moved = advance(step, rows, points)
        reached.update(zip(rows[met].tolist(), points[met], strict=True))
        if 0 in reached:
            return reached[0]
        going = ~met & (rows < min(reached, default=len(rows)))
        rows = rows[going]
        points = moved[going]
    if not reached:
        return None
    return reached[min(reached)]


def descend_roar(
    question: LinearQuestion, ball: ParameterBall, *, loss: str, weight: float, margin: float
) -> Floats | None:
    """Return the first point whose worst-case score reaches ``margin``; None if no price leads to one.

    The descents at all prices, each half of the one before, are made side by side: a row each. The greatest price that
    meets the margin is the one that counts.
    """
    prices = weight * 0.5 ** np.arange(_HALVINGS + 1)

    def advance(_step: int, rows: NDArray[np.intp], points: Floats) -> tuple[NDArray[np.bool_], Floats]:
        losses = ball.radius * np.linalg.norm(_entries(ball, points), ord=DUAL_ORDER[ball.norm], axis=1)
        scores = points @ question.coef + question.intercept - losses
        pull = _slopes_of_loss(loss, scores)[:, None] * _worst_coefficients(question, ball, points)
        pull += prices[rows][:, None] * np.sign(points - question.factual)
        return scores >= margin, question.within(points - _RATE * pull)

    return _first_arrival(np.tile(question.within(question.factual), (len(prices), 1)), advance)


def _entries(ball: ParameterBall, points: Floats) -> Floats:
    """Return what the parameters that may be off are multiplied by: the points, and 1 for the intercept."""
    if not ball.perturb_intercept:
        return points
    return np.column_stack([points, np.ones(len(points))])


def _slopes_of_loss(loss: str, scores: Floats) -> Floats:
    """Return the derivative of the loss in each score."""
    if loss == "hinge":
        return np.where(scores < 1.0, -1.0, 0.0)
    return np.asarray(-expit(-scores))


def _worst_coefficients(question: LinearQuestion, ball: ParameterBall, points: Floats) -> Floats:
    """Return the weights at which each point's score is least, a point of the ball's surface."""
    entries = _entries(ball, points)
    if ball.norm == "linf":
        directions = np.sign(entries)
    elif ball.norm == "l2":
        lengths = np.sqrt((entries**2).sum(axis=1, keepdims=True))
        directions = np.divide(entries, lengths, out=np.zeros_like(entries), where=lengths > 0.0)
    else:
        directions = np.zeros_like(entries)
        greatest = np.abs(entries).argmax(axis=1)
        row = np.arange(len(entries))
        directions[row, greatest] = np.sign(entries[row, greatest])
    return np.asarray(question.coef - ball.radius * directions[:, : points.shape[1]])


# ==== Wachter's search as its implementations do it: Adam, and a weight of the loss that grows until it works =========

_FIRST: Final = 0.9
_SECOND: Final = 0.999
_DOUBLINGS: Final = 10


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A linear score or a network's, with its gradient.

    Parameters
    ----------
    weights, biases
        Of each layer, a linear score being one layer.
    is_relu
        Whether each layer but the last ends in ReLU.
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    is_relu: tuple[bool, ...]

    @staticmethod
    def of(question: LinearQuestion, network: ReluNetwork | None) -> Scored:
        """Return the score that is asked about."""
        if network is None:
            return Scored((question.coef[None],), (np.array([question.intercept]),), ())
        return Scored(network.weights, network.biases, tuple(one == "relu" for one in network.activations))

    def value(self, point: Floats) -> float:
        """Return the score of a point."""
        return float(self.with_slope(point[None])[0][0])

    def with_slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the scores of points (k, p) and their gradients; at a kink that of the side that is off."""
        values = points
        active = []
        for weights, biases, is_relu in zip(self.weights[:-1], self.biases[:-1], self.is_relu, strict=True):
            values = values @ weights.T + biases
            on = (values > 0.0) | (not is_relu)
            active.append(on)
            values = np.where(on, values, 0.0)
        scores = values @ self.weights[-1][0] + self.biases[-1][0]
        slopes = np.broadcast_to(self.weights[-1][0], values.shape)
        for weights, on in zip(reversed(self.weights[:-1]), reversed(active), strict=True):
            slopes = (slopes * on) @ weights
        return scores, slopes


def descend_wachter(
    question: LinearQuestion, scored: Scored, *, weight: float, target: float, level: float
) -> Floats | None:
    """Return the first point whose probability reaches ``level``; None if no weight leads to one.

    The descents at all weights, each twice the one before, are made side by side: a row each. The least weight that
    comes to the level is the one that counts.
    """
    weights = weight * 2.0 ** np.arange(_DOUBLINGS + 1)
    start = np.tile(question.within(question.factual), (len(weights), 1))
    adam = np.zeros((3, *start.shape))

    def advance(step: int, rows: NDArray[np.intp], points: Floats) -> tuple[NDArray[np.bool_], Floats]:
        scores, slopes = scored.with_slope(points)
        shares = expit(scores)
        pulls = (2.0 * weights[rows] * (shares - target) * shares * (1.0 - shares))[:, None] * slopes
        pulls = pulls + np.sign(points - question.factual) / question.scale
        first, second, greatest = adam[:, rows]
        first = _FIRST * first + (1.0 - _FIRST) * pulls
        second = _SECOND * second + (1.0 - _SECOND) * pulls**2
        greatest = np.maximum(greatest, second)
        adam[:, rows] = first, second, greatest
        rate = _RATE / (1.0 - _FIRST ** (step + 1))
        sizes = np.sqrt(greatest / (1.0 - _SECOND ** (step + 1))) + ADAM_LEAST
        return shares >= level, question.within(points - rate * first / sizes)

    return _first_arrival(start, advance)


# ==== Wachter's recourse on a ReLU network, to the global optimum: branch and bound over the score ====================

#: Greatest size of the second derivative of the logistic function, and greatest square of the first.
_BEND: Final = 1.0 / (6.0 * np.sqrt(3.0))
_SLOPE_SQUARED: Final = 1.0 / 16.0
_LEAST_SHARE: Final = 0.1  # of an interval, in each of its two parts
_INTERVALS: Final = 400  # looked at, before the best is returned unproved


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PenaltyProgram:
    """The network's program with its cost and score, for which objectives and intervals of scores are set in turn."""

    question: LinearQuestion
    network: ReluNetwork
    weight: float
    target: float
    solver: str
    program: Any

    def loss(self, level: float) -> float:
        """Return the loss of a score."""
        return float(self.weight * (expit(level) - self.target) ** 2)

    def score(self, point: Floats) -> float:
        """Return the network's own score of a point."""
        return float(self.network.score(point[None])[0])

    def value(self, point: Floats) -> float:
        """Return loss and cost of a point."""
        return self.loss(self.score(point)) + self.question.charge(point)

    def solved(self, slope: float, price: float, low: float, high: float) -> tuple[float, Floats] | None:
        """Return bound and point of the least slope times score plus price times cost, scores from low to high."""
        for name in ("step", "within"):
            if self.program.component(name) is not None:
                self.program.del_component(name)
        score = self.program.predictor.score
        self.program.within = pyo.ConstraintList()
        if np.isfinite(low):
            self.program.within.add(score >= low)
        if np.isfinite(high):
            self.program.within.add(score <= high)
        self.program.step = pyo.Objective(expr=slope * score + price * sum_of(self.program.t.values()))
        result = solve(self.program, self.solver)
        if not result.solutions or result.bound is None:
            return None
        return float(result.bound), np.array([pyo.value(x) for x in self.program.x.values()], dtype=float)

    def bounded(self, low: float, high: float) -> tuple[float, Floats] | None:
        """Return a lower bound of loss and cost over an interval of scores, and the point that attains it below."""
        width = high - low
        slope = 0.0
        if width > 0.0:
            slope = (self.loss(high) - self.loss(low)) / width
        found = self.solved(slope, 1.0, low, high)
        if found is None:
            return None
        away = max(abs(self.target), abs(1.0 - self.target))
        bend = 2.0 * self.weight * (_SLOPE_SQUARED + away * _BEND)
        return found[0] + self.loss(low) - slope * low - bend * width**2 / 8.0, found[1]


def least_penalty(
    question: LinearQuestion, network: ReluNetwork, *, weight: float, target: float, solver: str
) -> tuple[Floats, bool]:
    """Return the point of least penalty within finite bounds, and whether no other is proved better by the tolerance.

    The scores are those of the network: of the question only point, scale and bounds are read.
    """
    program = programs.wachter(
        question.factual, network, scale=question.scale, lower=question.lower, upper=question.upper
    )  # fmt: skip
    program.reached.deactivate()
    program.cost.deactivate()
    search = _PenaltyProgram(question, network, weight, target, solver, program)
    best = question.within(question.factual)
    lowest = search.solved(1.0, 0.0, -np.inf, np.inf)
    highest = search.solved(-1.0, 0.0, -np.inf, np.inf)
    if lowest is None or highest is None:
        return best, False
    best = min((best, lowest[1], highest[1]), key=search.value)
    intervals = [(lowest[0], -highest[0])]
    queue: list[tuple[float, float, float, float]] = []
    for _ in range(_INTERVALS):
        for low, high in intervals:
            found = search.bounded(low, high)
            if found is not None:
                best = min((best, found[1]), key=search.value)
                heapq.heappush(queue, (found[0], low, high, search.score(found[1])))
        if not queue or queue[0][0] >= search.value(best) - PENALTY_GAP:
            return best, True
        _, low, high, at = heapq.heappop(queue)
        margin = _LEAST_SHARE * (high - low)
        cut = min(max(at, low + margin), high - margin)
        intervals = [(low, cut), (cut, high)]
    return best, False
