"""A linear model or ReLU network that someone else trained, as a predictor network over scaled columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.read import read
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.space.encoding import Column
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError
from ceopt.tolerances import SAME_SHARES
from ceopt.training.networks import Layers
from ceopt.training.predictor_network import PredictorNetwork
from ceopt.training.scaled_frame import Floats, ScaledFrame

__all__ = ["network_of"]

_THEN: Final = "Give a CounterNet, a logistic regression or a ReLU network with sigmoid or softmax probabilities."


def network_of(who: str, model: Any, X: pd.DataFrame) -> PredictorNetwork:
    """Return a model as layers over the scaled columns of the rows of a frame.

    Its probabilities must be the sigmoid or softmax of scores that are affine in the columns, or a ReLU network of
    them; they are compared with those of the model on the rows given.

    Raises
    ------
    UnsupportedModelError
        A model that ceopt does not read, or of another kind.
    """
    if isinstance(model, PredictorNetwork):
        return model
    found = read(model, FeatureSpace(infer_features(X, steps=False)))
    columns = ScaledFrame.of(who, found.space, X)
    core = found.core
    if isinstance(core, Affine):
        weights, biases = [core.weights], [core.intercept]
    elif isinstance(core, ReluNetwork) and "identity" not in core.activations:
        weights, biases = list(core.weights), list(core.biases)
    else:
        raise _refusal(who, f"it got {type(model).__name__}")
    if core.labels is None or not hasattr(model, "predict_proba"):
        raise _refusal(who, f"{type(model).__name__} gives no probabilities of classes")
    slopes, offsets = _over_scaled(who, found, columns)
    biases[0] = biases[0] + weights[0] @ offsets
    weights[0] = weights[0] @ slopes
    layers: Layers = []
    for matrix, bias in zip(weights, biases, strict=True):
        layers.append((matrix.T.astype(np.float32), bias.astype(np.float32)))
    tree = {"encoder": layers[:-1], "head": layers[-1:]}
    network = PredictorNetwork(columns, tree, "relu", np.asarray(core.labels))
    theirs = np.asarray(model.predict_proba(X))
    ours = network.predict_proba(X)
    if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0.0, atol=SAME_SHARES):
        raise _refusal(who, f"the probabilities of {type(model).__name__} are no sigmoid or softmax of its scores")
    return network


def _refusal(who: str, but: str) -> UnsupportedModelError:
    return UnsupportedModelError(who, "a model that can be differentiated", but, _THEN)


def _over_scaled(who: str, found: Predictor, columns: ScaledFrame) -> tuple[Floats, Floats]:
    """Return A (m, p) and c (m,): the matrix that the model reads is A z + c of scaled columns z."""
    places = dict(zip(columns.space.names, range(len(columns.space)), strict=True))
    slopes = np.zeros((len(found.encoding.columns), len(columns.names)))
    offsets = np.zeros(len(slopes))
    for row, column in enumerate(found.encoding.columns):
        if column.feature is None:
            offsets[row] = column.constant
            continue
        j = places[column.feature]
        own, offsets[row] = _slopes_of(who, column, columns, j)
        slopes[row, columns.places[j]] = own
    return slopes, offsets


def _slopes_of(who: str, column: Column, columns: ScaledFrame, j: int) -> tuple[Floats, float]:
    feature = columns.space[str(column.feature)]
    if column.table is None:
        if not column.is_affine:
            raise _refusal(who, f"the model cuts column {feature.name!r}")
        slope, offset = column.affine()
        return np.array([slope * columns.width[j]]), slope * float(columns.least[j]) + offset
    table = np.asarray(column.table, dtype=np.float64)
    if feature.kind == "categorical":
        return table, 0.0
    steps = np.diff(table)
    if not np.allclose(steps, steps[0]):
        raise _refusal(who, f"the model reads ordinal column {feature.name!r} level by level")
    return np.array([table[-1] - table[0]]), float(table[0])
