"""Multi-layer perceptrons of scikit-learn: ``h <- activation(h @ coefs_ + intercepts_)``, none after the last layer.

====================== ============================ ==========================================
what                   score                        prediction
====================== ============================ ==========================================
regressor              the output                   the output
two classes            one, before the logistic     the second iff its probability is > 0.5
several classes        one each, before the softmax the first of the largest
====================== ============================ ==========================================

The library computes in the wider float of its weights and its input, the logistic included: its probability is 0.5 of
every score up to about 1e-7 in float32, so the level of two classes is not 0 but where its own test turns over. The
softmax of several classes rounds as well: scores that differ by less than one such unit are equal to the library, and
the first class wins. That is below the rounding of the scores themselves and far below any margin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from scipy.special import expit

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.representation.decision_rule import Floats
from ceopt.formulations.predictors.representation.relu_network import ReluNetwork
from ceopt.formulations.space.encoding import last_true

__all__ = ["NETWORKS"]


@final
@dataclass(frozen=True, slots=True)
class _Logistic:
    """The probability of the second of two classes, in the float width of the network."""

    width: str

    def __call__(self, scores: Floats) -> Floats:
        return np.asarray(expit(np.asarray(scores).astype(self.width)), dtype=np.float64)


def _network(model: Any, dtype: str) -> ReluNetwork:
    name = type(model).__name__
    if model.activation not in {"relu", "identity"}:
        raise refuse(
            "layers that are piecewise linear", f"{name} has activation={model.activation!r}",
            "Fit it with activation='relu', or 'identity'.",
        )  # fmt: skip
    if model.out_activation_ == "exp":
        raise refuse(
            "a prediction that is the last layer's sum", f"{name} has loss={model.loss!r}",
            "Fit it with loss='squared_error' on the logarithm of the target.",
        )  # fmt: skip
    labels = _labels(model)
    width = str(np.result_type(dtype, np.float32, *model.coefs_))
    if labels is not None and len(labels) == 2:
        link = _Logistic(width)
    else:
        link = None
    return ReluNetwork(
        [layer.T for layer in _finite(model, "coefs_")], _finite(model, "intercepts_"),
        labels=labels, activations=[model.activation] * (len(model.coefs_) - 1), probability=link, dtype=width,
        level=0.0 if link is None else float(last_true(lambda scores: link(scores) <= 0.5)),
    )  # fmt: skip


def _labels(model: Any) -> list[Any] | None:
    """Return the classes, None of a regressor, or refuse more than one label or value per row."""
    name = type(model).__name__
    outputs = model.n_outputs_
    if not hasattr(model, "classes_"):
        if outputs != 1:
            raise refuse("one output", f"{name} was fitted on {outputs}", "Fit one model per output.")
        return None
    labels: list[Any] = model.classes_.tolist()
    if len(labels) == 1:
        raise refuse("at least two classes", f"{name} knows only {labels[0]!r}", "Fit it on data with other labels.")
    if outputs > 1 and model.out_activation_ != "softmax":
        raise refuse("one label per row", f"{name} was fitted on several", "Fit one classifier per label.")
    return labels


def _finite(model: Any, name: str) -> list[Floats]:
    """Return the arrays of all layers, or name the layer that holds NaN or infinity."""
    layers: list[Floats] = getattr(model, name)
    for place, layer in enumerate(layers):
        bad = layer[~np.isfinite(layer)]
        if bad.size:
            raise refuse(
                "finite weights", f"{type(model).__name__} has {bad.flat[0]} in {name}[{place}]",
                "Its training diverged: scale the columns or lower learning_rate_init, and fit it again.",
            )  # fmt: skip
    return layers


NETWORKS: Final[Mapping[str, Callable[[Any, str], ReluNetwork]]] = {
    "MLPClassifier": _network,
    "MLPRegressor": _network,
}
