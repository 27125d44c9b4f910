"""Published ways to recourse that CounterNet and RoCourseNet are held against; they work row by row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, rows_to_keep, taken
from ceopt.oracle.black_box import BlackBox
from ceopt.oracle.model import predictions_of
from ceopt.solvers.checks import LENGTH, Choice, Floats, Real, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedModelError
from ceopt.surrogates.linear_recourse import roar, wachter
from ceopt.surrogates.rivals import LimeSurrogate
from ceopt.surrogates.sampler import BoundarySampler, DecidedRows, NoBoundaryError
from ceopt.surrogates.scaled_columns import ScaledFrame
from ceopt.training.networks import Layers, PredictorNetwork, as_relu, moved_frame, network_of, place_of, require_within

# ==== What the rivals share: a fitted model, data, and recourse for the rows of a frame, one after another ============

#: Rows that a model may be sent for all rows of a frame: the numbers of samples are the limit.
_ANY: Final = 2**31 - 1


class AbstractRowRecourse(ABC):
    """Recourse row by row, in columns from 0 to 1, brought to legal rows as CounterNet's is.

    Parameters
    ----------
    model
        A fitted model, or a function of raw rows to labels.
    data
        Raw rows from which columns and draws are made; those with missing cells are left out with a warning.
    space
        The columns; None: inferred from ``data``.
    """

    def __init__(self, model: Any, data: pd.DataFrame, *, space: FeatureSpace | None = None) -> None:
        who = type(self).__name__
        if isinstance(model, type) or not (hasattr(model, "predict") or callable(model)):
            then = "Give clf, or clf.predict."
            raise InvalidTypeError(who, "a fitted model or a function of rows", f"model is {model!r}", then)
        if not isinstance(data, pd.DataFrame):
            raise InvalidTypeError(who, "a DataFrame as data", f"data is {type(data).__name__}", "Name its columns.")
        data = taken(data, rows_to_keep(who, space, data, word="data"))
        if space is None:
            space = FeatureSpace(infer_features(data, steps=False))
        self.model = model
        self.data = data
        self.columns = ScaledFrame.of(who, space, data)

    @final
    def recourse(self, X: pd.DataFrame, *, target: Any = None) -> pd.DataFrame:
        """Return what people are advised to become, as raw rows that each of them may reach.

        Index, columns and types are those of X. Numbers are on their steps and within their bounds, levels are legal,
        directions are kept, and what is fixed stays as it was given. That the model says the target of a row is not
        promised: a row for which the way led nowhere stays as it is, and the nearest legal row may be on this side.

        Parameters
        ----------
        X
            Raw rows (n, d).
        target
            A label; rows of which the model says so already stay. None: of two classes the one that the model does not
            say.

        Raises
        ------
        InvalidValueError, InvalidTypeError, UnknownNameError
            Rows that do not fit the space; several classes without a target; a target that is no class.
        """
        who = f"{type(self).__name__}.recourse"
        space = self.columns.space
        coordinates = space.coordinates(X)
        require_within(who, space, coordinates)
        if not len(X):
            return X.copy()
        said = self._said(who, X)
        found = coordinates.copy()
        for label, places in self._questions(who, said, target):
            box = self.box(label)
            ready = self._prepared(box)
            room = self.columns.room(coordinates[places])
            points = self.columns.encoded(coordinates[places])
            for row, point, low, high in zip(places, points, *room, strict=True):
                points_of_row = self._advised(ready, X.iloc[[row]], point, low, high)
                found[row] = self._legal(box, points_of_row, coordinates[[row]])
        return moved_frame(X, space, found, coordinates)

    def _legal(self, box: BlackBox, points: Iterable[Floats], own: Floats) -> Floats:
        """Return the first legal row (d,) in the target, else the one nearest to the first point, else the own."""
        first = None
        for point in points:
            legal = self.columns.legal(point[None], own)
            if first is None:
                first = legal[0]
            if box.favourable(self.columns.frame(legal))[0]:
                return np.asarray(legal[0])
        if first is None:
            return np.asarray(own[0])
        return np.asarray(first)

    def box(self, label: Any) -> BlackBox:
        """Return the model as one that says this label of a raw row, or does not."""
        columns = list(self.data)
        return BlackBox(
            self.model, label, columns=columns, dtypes=self.data.dtypes, max_queries=_ANY, space=self.columns.space
        )

    def _said(self, who: str, X: pd.DataFrame) -> NDArray[Any]:
        return predictions_of(who, self.model, X[list(self.data)])

    def _questions(self, who: str, said: NDArray[Any], target: Any) -> list[tuple[Any, NDArray[np.intp]]]:
        """Return targets, and the places of the rows that are to get them."""
        if hasattr(self.model, "classes_"):
            known = np.asarray(self.model.classes_)
        else:
            known = np.unique(self._said(who, self.data))
        classes = known.tolist()
        if target is not None:
            label = classes[place_of(who, "target", target, known)]
            return [(label, np.flatnonzero(said != label))]
        if len(classes) != 2:
            but = "target is None"
            then = "Give the class that each row should get."
            raise InvalidValueError(who, f"a target with {len(classes)} classes", but, then)
        return [(other, np.flatnonzero(said == own)) for own, other in (classes, classes[::-1])]

    @abstractmethod
    def _prepared(self, box: BlackBox) -> Any:
        """Return what all rows of a target have in common."""

    @abstractmethod
    def _advised(self, ready: Any, row: pd.DataFrame, point: Floats, low: Floats, high: Floats) -> Iterable[Floats]:
        """Return points (p,) in scaled columns between two others, the best first; none where the way led nowhere.

        Parameters
        ----------
        ready
            Of :meth:`_prepared`.
        row, point
            The raw row, (1, d), and as a point (p,).
        low, high
            The least and the greatest entries that the person may reach, (p,).
        """


# ==== RoarLime: ROAR on the linear model that LIME fits about each row ================================================

_ROAR_LIME_CHECKS: Final = {
    "radius": LENGTH,
    "weight": LENGTH,
    "norm": Choice(("l1", "l2", "linf")),
    "mode": Choice(("hard", "soft")),
    "loss": Choice(("logistic", "hinge")),
    "method": Choice(("program", "gradient")),
    "n_samples": Whole(at_least=2),
    "random_state": Whole(at_least=0),
}
#: A probability grows by a quarter of its logit where it is a half: LIME's slopes become those of the logit.
_LOGIT_SLOPE: Final = 4.0


@final
class RoarLime(AbstractRowRecourse):
    r"""Recourse for any model by ROAR over LIME's linear model about each row.

    .. math::
        \min_{l \le z \le u}\ \ell\big(w^\top z + c - \delta \lVert (z, 1) \rVert_*\big) + \lambda \lVert z - z^0
        \rVert_1

    ============ ====== ====== ==========================================================================
    symbol       shape  unit   meaning
    ============ ====== ====== ==========================================================================
    z, z^0       (p,)   range  the advice and the row: numbers over their range, a column a level
    l, u         (p,)   range  what the person may reach; what is fixed has its own entry as both
    w, c         (p,)   logit  four times what :class:`ceopt.surrogates.LimeSurrogate` fits to the probability
                               less a half (or to decisions), which is its logit to first order at a half
    delta        ()     logit  ``radius`` of the ball of (w, c), in ``norm``; the dual norm measures (z, 1)
    lambda       ()     none   ``weight``
    ============ ====== ====== ==========================================================================

    The adversary is in closed form, so :func:`ceopt.surrogates.roar` finds the optimum; ``method="gradient"`` is the
    published descent, and ``mode="hard"`` the nearest point whose score is favourable at the worst parameters, if there
    is one. Then the nearest legal row is taken.

    Parameters
    ----------
    model
        A fitted model, or a function of raw rows to labels; with ``predict_proba`` and two classes LIME sees
        probabilities, else decisions.
    data
        Raw rows from whose means and deviations LIME draws, and whose ranges are the units.
    space
        The columns; None: inferred.
    radius, norm, mode, loss, weight, method
        As of :func:`ceopt.surrogates.roar`.
    n_samples, random_state
        Of LIME's draws about each row.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        An option out of its range; data that do not fit.

    References
    ----------
    Upadhyay, Joshi & Lakkaraju (2021), algorithm 1; Ribeiro, Singh & Guestrin (2016). "ROAR-LIME" of Guo et al. (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ceopt.training import RoarLime
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 2)), columns=["income", "age"])
    >>> model = LogisticRegression(C=100.0).fit(people, people["income"] > 0.5)
    >>> refused = people[~model.predict(people)].head(5)
    >>> model.predict(RoarLime(model, people, loss="hinge").recourse(refused)).tolist()
    [True, True, True, True, True]
    """

    def __init__(
        self,
        model: Any,
        data: pd.DataFrame,
        *,
        space: FeatureSpace | None = None,
        radius: float = 0.1,
        norm: Literal["l1", "l2", "linf"] = "linf",
        mode: Literal["hard", "soft"] = "soft",
        loss: Literal["logistic", "hinge"] = "logistic",
        weight: float = 0.1,
        method: Literal["program", "gradient"] = "program",
        n_samples: int = 1000,
        random_state: int = 0,
    ) -> None:
        given = {"radius": radius, "norm": norm, "mode": mode, "loss": loss, "weight": weight, "method": method}
        asked = {"n_samples": n_samples, "random_state": random_state}
        check_arguments("RoarLime", _ROAR_LIME_CHECKS, given | asked)
        super().__init__(model, data, space=space)
        self.options: dict[str, Any] = given
        self.lime = LimeSurrogate(n_samples=n_samples, random_state=random_state)

    def _prepared(self, box: BlackBox) -> BlackBox:
        return box

    def _advised(
        self, ready: BlackBox, row: pd.DataFrame, point: Floats, low: Floats, high: Floats
    ) -> Iterable[Floats]:
        score = self._linear(ready, row)
        if score is not None:
            found = roar(point, *score, lower=low, upper=high, **self.options)
            if found.point is not None:
                yield found.point

    def _linear(self, box: BlackBox, row: pd.DataFrame) -> tuple[Floats, float] | None:
        """Return coefficients and intercept of LIME's score about a row, over columns from 0 to 1.

        None where the model says the same of all draws.
        """
        try:
            lime = self.lime.fit_local(box, row, self.data, target=box.target, space=self.columns.space)
        except NoBoundaryError:
            return None
        coef = _LOGIT_SLOPE * np.asarray(lime.coef_)
        own = self.columns
        slopes = np.ones(len(coef))
        offsets = np.zeros(len(coef))
        for j, (feature, place) in enumerate(zip(own.space, own.places, strict=True)):
            if not feature.is_finite:
                scale = lime.columns_.scales[j]
                slopes[place] = own.width[j] / scale
                offsets[place] = own.least[j] / scale
        return coef * slopes, float(_LOGIT_SLOPE * lime.intercept_ + coef @ offsets)


# ==== VanillaCF: Wachter's search on the model itself, a logistic regression or a ReLU network ========================

#: Probabilities at which the search stops, the next where the nearest legal row is still on this side.
_LEVELS: Final = (0.5, 0.6, 0.75, 0.9)
_VANILLA_CHECKS: Final = {"weight": LENGTH, "method": Choice(("gradient", "program"))}


@final
class VanillaCF(AbstractRowRecourse):
    r"""Recourse by the objective of Wachter et al. over the score of a network of two classes.

    .. math:: \min_{l \le z \le u}\ \lambda \big(\sigma(\pm s(z)) - 1\big)^2 + \lVert z - z^0 \rVert_1

    ============ ====== ====== ==========================================================================
    symbol       shape  unit   meaning
    ============ ====== ====== ==========================================================================
    z, z^0       (p,)   range  the advice and the row: numbers over their range, a column a level
    l, u         (p,)   range  what the person may reach; what is fixed has its own entry as both
    s            ()     none   the model's score, with the sign of the target
    lambda       ()     none   ``weight``
    ============ ====== ====== ==========================================================================

    It is :func:`ceopt.surrogates.wachter` with the model in place of a surrogate. "gradient" is the published search
    and proves nothing: Adam from the row until the probability reaches a half, with twice the weight where it does
    not. Then the nearest legal row is taken; where the model does not say the target of it, the search goes on to
    probabilities of 0.6, 0.75 and 0.9. "program" is the global optimum by branch and bound, whose score need not reach
    the target; of a network of more than a few units it takes minutes a row.

    Parameters
    ----------
    model
        A fitted :class:`~ceopt.training.CounterNet` or :class:`~ceopt.training.RoCourseNet`; a logistic regression or
        ReLU network, with the pipeline before it, whose probability is the sigmoid of its score.
    data
        Raw rows whose ranges are the units.
    space
        The columns; None: those of the model, or inferred.
    weight
        Of the squared loss, at least 0.
    method
        "gradient" or "program".

    Raises
    ------
    UnsupportedModelError
        A model that cannot be differentiated, or of more than two classes.
    InvalidValueError, InvalidTypeError, UnknownNameError
        An option out of its range; data that do not fit.

    References
    ----------
    Wachter, Mittelstadt & Russell (2017), equation (2); "VanillaCF" of Guo et al. (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ceopt.training import VanillaCF
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 2)), columns=["income", "age"])
    >>> model = LogisticRegression(C=100.0).fit(people, people["income"] > 0.5)
    >>> refused = people[~model.predict(people)]
    >>> bool(model.predict(VanillaCF(model, people).recourse(refused)).mean() > 0.9)
    True
    """

    def __init__(
        self,
        model: Any,
        data: pd.DataFrame,
        *,
        space: FeatureSpace | None = None,
        weight: float = 1.0,
        method: Literal["gradient", "program"] = "gradient",
    ) -> None:
        who = "VanillaCF"
        check_arguments(who, _VANILLA_CHECKS, {"weight": weight, "method": method})
        self.weight = float(weight)
        self.method = method
        network = getattr(model, "predictor_", model)
        if space is None and isinstance(network, PredictorNetwork):
            space = network.columns.space
        super().__init__(model, data, space=space)
        if not isinstance(network, PredictorNetwork):
            network = network_of(who, model, self.data)
        self.network = network
        if len(network.classes_) != 2:
            but = f"{type(model).__name__} has {len(network.classes_)}"
            raise UnsupportedModelError(who, "a model of two classes", but, "Give RoarLime or Rbr a target.")
        self._score = over(self.columns, network)

    def _prepared(self, box: BlackBox) -> ReluNetwork:
        """Return the score that is to grow: of the second class the network's own, of the first its negative."""
        sign = 1.0 if self.network.classes_.tolist().index(box.target) == 1 else -1.0
        *inner, (weights, biases) = self._score
        chain = [*inner, (sign * weights, sign * biases)]
        return ReluNetwork([weights for weights, _ in chain], [biases for _, biases in chain])

    def _advised(
        self, ready: ReluNetwork, row: pd.DataFrame, point: Floats, low: Floats, high: Floats
    ) -> Iterable[Floats]:
        del row
        score: tuple[Any, ...] = (ready,)
        if len(ready.weights) == 1:
            score = (ready.weights[0][0], float(ready.biases[0][0]))
        levels: tuple[float, ...] = _LEVELS
        if self.method == "program":
            levels = _LEVELS[:1]
        for level in levels:
            found = wachter(point, *score, weight=self.weight, method=self.method, level=level, lower=low, upper=high)
            if found.point is not None:
                yield found.point


def over(columns: ScaledFrame, network: PredictorNetwork) -> list[tuple[Floats, Floats]]:
    """Return the layers (out, in), (out,) of a network's one score over other scaled columns of the same space.

    A leaky ReLU becomes two ReLUs: of h and of -h.
    """
    layers: Layers = []
    for weights, biases in [*network.layers["encoder"], *network.layers["head"]]:
        layers.append((np.asarray(weights, dtype=np.float64), np.asarray(biases, dtype=np.float64)))
    if len(layers[-1][1]) == 2:
        weights, biases = layers[-1]
        layers[-1] = (weights[:, [1]] - weights[:, [0]], biases[[1]] - biases[[0]])
    weights, biases = layers[0]
    slopes = np.ones(len(weights))
    offsets = np.zeros(len(weights))
    own = network.columns
    for j, place in enumerate(own.places):
        slopes[place] = columns.width[j] / own.width[j]
        offsets[place] = (columns.least[j] - own.least[j]) / own.width[j]
    layers[0] = (weights * slopes[:, None], biases + weights.T @ offsets)
    return [(weights.T, biases) for weights, biases in as_relu(layers, network.activation)]


# ==== The least and the greatest Gaussian density at a point, over moments in a ball about those of a kernel ==========

_KNOTS: Final = 257
#: Angles and shares of the radius that are compared first, and in each of the rounds about the best of them.
_COARSE: Final = 33
_FINE: Final = 9
_ROUNDS: Final = 6
_SHRINK: Final = 0.4


@final
@dataclass(frozen=True, slots=True, eq=False)
class WorstDensities:
    r"""Logarithms of Gaussian densities at distance c from a kernel's centre, at the worst moments of a ball.

    .. math::
        \mathcal M = \{(\mu, \Sigma) : \lVert \mu - x_i \rVert^2 + \lVert \Sigma^{1/2} - \sigma I \rVert_F^2 \le
        \varepsilon^2,\ \Sigma^{1/2} \succeq \sigma I\}

    The greatest density brings the mean :math:`v_0` nearer and widens the one direction that counts by :math:`v_1`;
    the least takes the mean :math:`u_0` away and widens that direction by :math:`u_1`, all p - 1 others by the same f:

    .. math::
        A(c) &= \max_{v_0^2 + v_1^2 \le \varepsilon^2} -\log(\sigma + v_1) - (p - 1) \log \sigma
            - \tfrac{(c - v_0)^2}{2 (\sigma + v_1)^2}, \quad v_0 \le c \\
        B(c) &= \min_{u_0^2 + u_1^2 + (p - 1) f^2 \le \varepsilon^2} -\log(\sigma + u_1) - (p - 1) \log(\sigma + f)
            - \tfrac{(c + u_0)^2}{2 (\sigma + u_1)^2}

    less :math:`\tfrac p2 \log 2\pi`. Why no other moments do more: with the roots :math:`s_k` of the eigenvalues and
    :math:`r = \lVert x - \mu \rVert`, the quadratic form is between :math:`r^2 / \max s_k^2` and :math:`r^2 / \min
    s_k^2`, both attained, and :math:`\log(\sigma + \sqrt t)` is concave in the :math:`t = f_k^2` that share what is
    left of the radius. The moments are found on a table of distances up to the cube's diameter twice, and interpolated
    in between, which stays within the ball. At a deviation of 1 values are right to 1e-4; at a tenth, of which few
    knots see the bend, to 1e-2. Beyond the table the last moments are kept.

    Parameters
    ----------
    p
        Number of columns.
    sigma
        Standard deviation of the kernel, above 0.
    knots
        Distances (k,) of the table.
    nearer, wider
        :math:`v_0, v_1` at the knots.
    away, along, across
        :math:`u_0, u_1` and f at the knots.

    References
    ----------
    Nguyen, Bui & Nguyen (2022), Robust Bayesian recourse; the two worst cases are derived from the moment sets here.
    """

    p: int
    sigma: float
    knots: Floats
    nearer: Floats
    wider: Floats
    away: Floats
    along: Floats
    across: Floats

    @classmethod
    def of(cls, p: int, sigma: float, unfavourable: float, favourable: float) -> WorstDensities:
        """Return the table: the greatest density of a ball of the first radius, the least of one of the second."""
        knots = np.linspace(0.0, 2.0 * math.sqrt(p), _KNOTS)
        c = knots[:, None]

        def toward(share: Floats, angle: Floats) -> Floats:
            nearer = np.minimum(c, unfavourable * share * np.cos(angle))
            wide = sigma + unfavourable * share * np.sin(angle)
            return np.asarray(-np.log(wide) - 0.5 * ((c - nearer) / wide) ** 2)

        def from_it(share: Floats, angle: Floats) -> Floats:
            wide = sigma + favourable * share * np.sin(angle)
            far = c + favourable * share * np.cos(angle)
            rest = (p - 1) * np.log(sigma + _rest(p, favourable, share))
            return np.asarray(np.log(wide) + rest + 0.5 * (far / wide) ** 2)

        share, angle = _best(toward, len(knots))
        nearer = np.minimum(knots, unfavourable * share * np.cos(angle))
        wider = unfavourable * share * np.sin(angle)
        share, angle = _best(from_it, len(knots))
        away = favourable * share * np.cos(angle)
        along = favourable * share * np.sin(angle)
        return cls(p, sigma, knots, nearer, wider, away, along, _rest(p, favourable, share))

    def greatest(self, c: Floats) -> tuple[Floats, Floats]:
        """Return A and its slope in c at distances (k,)."""
        nearer = np.minimum(c, np.interp(c, self.knots, self.nearer))
        wide = self.sigma + np.interp(c, self.knots, self.wider)
        value = -np.log(wide) - (self.p - 1) * math.log(self.sigma) - 0.5 * ((c - nearer) / wide) ** 2
        return np.asarray(value), np.asarray(-(c - nearer) / wide**2)

    def least(self, c: Floats) -> tuple[Floats, Floats]:
        """Return B and its slope in c at distances (k,)."""
        far = c + np.interp(c, self.knots, self.away)
        wide = self.sigma + np.interp(c, self.knots, self.along)
        across = self.sigma + np.interp(c, self.knots, self.across)
        value = -np.log(wide) - (self.p - 1) * np.log(across) - 0.5 * (far / wide) ** 2
        return np.asarray(value), np.asarray(-far / wide**2)


def _rest(p: int, radius: float, share: Floats) -> Floats:
    """Return how much the rest of the radius widens each of the other directions."""
    return np.asarray(radius * np.sqrt(np.maximum(0.0, 1.0 - share**2) / max(p - 1, 1)))


def _best(value: Callable[[Floats, Floats], Floats], n: int) -> tuple[Floats, Floats]:
    """Return the share of the radius and the angle, (n,) each, where a value (n, k) is greatest: a grid, and finer."""
    share = np.full(n, 0.5)
    angle = np.full(n, np.pi / 4.0)
    half = 1.0
    count = _COARSE
    for _ in range(_ROUNDS + 1):
        steps = 0.5 * half * np.linspace(-1.0, 1.0, count)
        first, second = (part.ravel() for part in np.meshgrid(steps, steps, indexing="ij"))
        shares = np.clip(share[:, None] + first, 0.0, 1.0)
        angles = np.clip(angle[:, None] + 0.5 * np.pi * second, 0.0, 0.5 * np.pi)
        place = value(shares, angles).argmax(axis=1)
        share = shares[np.arange(n), place]
        angle = angles[np.arange(n), place]
        half *= _SHRINK
        if count == _COARSE:
            half = 4.0 / (count - 1.0)  # a cell to either side
        count = _FINE
    return share, angle


# ==== Rbr: recourse where the posterior odds of the classes are best, at worst densities of either class ==============

_RBR_CHECKS: Final = {
    "unfavourable_radius": LENGTH,
    "favourable_radius": LENGTH,
    "sigma": Real(above=0.0, finite=True),
    "allowance": LENGTH,
    "n_samples": Whole(at_least=2),
    "steps": Whole(at_least=1),
    "random_state": Whole(at_least=0),
}
#: Halvings that find the threshold of a projection: to the last digit.
_HALVINGS: Final = 60


@final
class Rbr(AbstractRowRecourse):
    r"""Robust Bayesian recourse for any model: Gaussian kernels about samples of both classes near the boundary.

    .. math::
        \min_z\ \log \sum_{i \in -} e^{A_i(z)} - \log \sum_{j \in +} e^{B_j(z)} \quad\text{s.t.}\quad
        \lVert z - z^0 \rVert_1 \le \lVert z_b - z^0 \rVert_1 + \Delta, \quad l \le z \le u

    ============ ====== ====== ==========================================================================
    symbol       shape  unit   meaning
    ============ ====== ====== ==========================================================================
    z, z^0       (p,)   range  the advice and the row: numbers over their range, a column a level
    z_b          (p,)   range  the nearest boundary point of :class:`ceopt.surrogates.BoundarySampler`
    l, u         (p,)   range  what the person may reach; what is fixed has its own entry as both
    A_i          ()     none   greatest log density at z of a Gaussian about sample i that is not favourable
    B_j          ()     none   least log density at z of one about sample j that is; both over the moments of
                               :class:`~ceopt.training.rivals.WorstDensities`
    Delta        ()     range  ``allowance``
    ============ ====== ====== ==========================================================================

    Projected gradient steps of length 1 over the root of their number, from the boundary point; the best point met is
    taken, and the nearest legal row. Nothing is proved: the odds are not convex.

    Parameters
    ----------
    model
        A fitted model, or a function of raw rows to labels: decisions are enough.
    data
        Raw rows among which the boundary is looked for, and whose ranges are the units.
    space
        The columns; None: inferred.
    unfavourable_radius, favourable_radius
        Of the balls of moments of either class.
    sigma
        Standard deviation of the kernels.
    allowance
        By how much the advice may be farther away than the boundary point.
    n_samples, random_state
        Of the sampler about each row.
    steps
        Gradient steps.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        An option out of its range; data that do not fit.

    References
    ----------
    Nguyen, Bui & Nguyen (2022), Robust Bayesian recourse (UAI). "RBR" of Guo et al. (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ceopt.training import Rbr
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 2)), columns=["income", "age"])
    >>> model = LogisticRegression(C=100.0).fit(people, people["income"] > 0.5)
    >>> refused = people[~model.predict(people)].head(3)
    >>> model.predict(Rbr(model, people).recourse(refused)).tolist()
    [True, True, True]
    """

    def __init__(
        self,
        model: Any,
        data: pd.DataFrame,
        *,
        space: FeatureSpace | None = None,
        unfavourable_radius: float = 0.5,
        favourable_radius: float = 0.5,
        sigma: float = 1.0,
        allowance: float = 0.2,
        n_samples: int = 200,
        steps: int = 1000,
        random_state: int = 0,
    ) -> None:
        found = check_arguments("Rbr", _RBR_CHECKS, locals())
        super().__init__(model, data, space=space)
        self.allowance = float(found["allowance"])
        self.steps = int(found["steps"])
        self.sampler = BoundarySampler(n_samples=n_samples, scale="range", random_state=random_state)
        self.densities = WorstDensities.of(
            len(self.columns.names), float(sigma), float(unfavourable_radius), float(favourable_radius)
        )

    def _prepared(self, box: BlackBox) -> DecidedRows:
        return self.sampler.decided(box, self.data, target=box.target, space=self.columns.space)

    def _advised(
        self, ready: DecidedRows, row: pd.DataFrame, point: Floats, low: Floats, high: Floats
    ) -> Iterable[Floats]:
        try:
            sample = self.sampler.near(ready, row)
        except NoBoundaryError:
            return
        points = self.columns.encode(sample.points)
        boundary = self.columns.encoded(np.array([list(self.columns.space.row(sample.boundary).values())]))[0]
        odds = PosteriorOdds(self.densities, points[~sample.favourable], points[sample.favourable])
        budget = float(np.abs(boundary - point).sum()) + self.allowance
        z = projected(boundary, point, budget, low, high)
        best, slope = odds.with_slope(z)
        found = z
        for _ in range(self.steps):
            z = projected(z - slope / np.sqrt(self.steps), point, budget, low, high)
            value, slope = odds.with_slope(z)
            if value < best:
                best = value
                found = z
        yield found


@final
@dataclass(frozen=True, slots=True, eq=False)
class PosteriorOdds:
    """The logarithm of the greatest posterior odds against the target.

    Parameters
    ----------
    densities
        Of one kernel, at worst.
    unfavourable, favourable
        Samples of either class, (m, p).
    """

    densities: WorstDensities
    unfavourable: Floats
    favourable: Floats

    def with_slope(self, z: Floats) -> tuple[float, Floats]:
        """Return the odds at a point (p,), and their gradient."""
        against, down = self._part(z, self.unfavourable, is_greatest=True)
        towards, up = self._part(z, self.favourable, is_greatest=False)
        return against - towards, np.asarray(down - up)

    def _part(self, z: Floats, centres: Floats, *, is_greatest: bool) -> tuple[float, Floats]:
        """Return the logarithm of the sum of one class's densities, and its gradient."""
        away = z - centres
        c = np.sqrt((away**2).sum(axis=1))
        if is_greatest:
            values, slopes = self.densities.greatest(c)
        else:
            values, slopes = self.densities.least(c)
        pulls = softmax(values) * np.divide(slopes, c, out=np.zeros_like(c), where=c > 0.0)
        return float(logsumexp(values)), np.asarray(pulls @ away)


def projected(point: Floats, centre: Floats, budget: float, low: Floats, high: Floats) -> Floats:
    """Return the nearest point within a box, and within a distance of a point of the box in l1.

    The moves are all shortened by the same threshold, and cut to the box.
    """
    move = point - centre
    room = np.where(move > 0.0, high - centre, centre - low)

    def shortened(threshold: float) -> Floats:
        return np.asarray(np.minimum(np.maximum(np.abs(move) - threshold, 0.0), room))

    least = 0.0
    if shortened(0.0).sum() > budget:
        most = float(np.abs(move).max())
        for _ in range(_HALVINGS):
            middle = 0.5 * (least + most)
            if shortened(middle).sum() > budget:
                least = middle
            else:
                most = middle
        least = most
    return np.asarray(centre + np.sign(move) * shortened(least))
