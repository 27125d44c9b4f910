"""VanillaCF: Wachter's search on the model itself, a logistic regression or a ReLU network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd

from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import LENGTH, Choice, check_arguments
from ceopt.solvers.errors import UnsupportedModelError
from ceopt.surrogates.black_box import BlackBox
from ceopt.surrogates.searches.wachter import wachter
from ceopt.training.differentiable import network_of
from ceopt.training.networks import LEAK
from ceopt.training.predictor_network import PredictorNetwork
from ceopt.training.rivals.row_recourse import AbstractRowRecourse
from ceopt.training.scaled_frame import Floats, ScaledFrame

__all__ = ["VanillaCF"]

#: Probabilities at which the search stops, the next where the nearest legal row is still on this side.
_LEVELS: Final = (0.5, 0.6, 0.75, 0.9)
_CHECKS: Final = {"weight": LENGTH, "method": Choice(("gradient", "program"))}


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
        check_arguments(who, _CHECKS, {"weight": weight, "method": method})
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
    chain = []
    for weights, biases in [*network.layers["encoder"], *network.layers["head"]]:
        chain.append((np.asarray(weights, dtype=np.float64).T, np.asarray(biases, dtype=np.float64)))
    if len(chain[-1][1]) == 2:
        weights, biases = chain[-1]
        chain[-1] = (weights[[1]] - weights[[0]], biases[[1]] - biases[[0]])
    weights, biases = chain[0]
    slopes = np.ones(weights.shape[1])
    offsets = np.zeros(weights.shape[1])
    own = network.columns
    for j, place in enumerate(own.places):
        slopes[place] = columns.width[j] / own.width[j]
        offsets[place] = (columns.least[j] - own.least[j]) / own.width[j]
    chain[0] = (weights * slopes, biases + weights @ offsets)
    if network.activation == "leaky_relu":
        for k in range(len(chain) - 1):
            weights, biases = chain[k]
            chain[k] = (np.vstack([weights, -weights]), np.concatenate([biases, -biases]))
            weights, biases = chain[k + 1]
            chain[k + 1] = (np.hstack([weights, -LEAK * weights]), biases)
    return chain
