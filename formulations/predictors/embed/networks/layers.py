"""A network's layers as the formulations need them: a ReLU between each two, and what the scores depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ceopt.formulations.predictors.embed.networks.bounds import LayerBounds
    from ceopt.formulations.predictors.representation.relu_network import ReluNetwork

__all__ = ["Layer", "multiplied_out", "needed"]

#: Weights (n, m) and biases (n,).
Layer: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


def multiplied_out(network: ReluNetwork) -> list[Layer]:
    """Return the layers with a ReLU between each two: an identity layer is multiplied into the next."""
    layers: list[Layer] = []
    before: Layer | None = None
    for weights, biases, activation in zip(
        network.weights, network.biases, (*network.activations, "relu"), strict=True
    ):
        if before is None:
            layer = (weights, biases)
        else:
            layer = (weights @ before[0], weights @ before[1] + biases)
        before = layer if activation == "identity" else None
        if before is None:
            layers.append(layer)
    return layers


def needed(layers: Sequence[Layer], hidden: Sequence[LayerBounds]) -> list[NDArray[np.bool_]]:
    """Return, per layer, which neurons can be other than 0 and make a difference to the scores."""
    found = [np.ones(len(layers[-1][1]), dtype=np.bool_)]
    for (weights, _), bounds in zip(reversed(layers[1:]), reversed(hidden), strict=True):
        found.insert(0, (weights[found[0]] != 0.0).any(axis=0) & ~bounds.dead)
    return found
