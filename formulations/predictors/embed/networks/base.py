"""Base of the formulations of ReLU networks: bounds, neurons that never switch, and scores over the rest."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.embed.inputs import Inputs, InputsWithin, box_extremes
from ceopt.formulations.predictors.embed.networks.bounds import LayerBounds, NetworkBounds
from ceopt.formulations.predictors.representation.relu_network import ReluNetwork
from ceopt.solvers.errors import UnboundedFeatureError

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.formulations.predictors.representation.decision_rule import Floats
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.solvers.manifest import Manifest

__all__ = ["AbstractNetwork", "Layer", "Neuron", "multiplied_out", "needed"]

#: Weights (n, m) and biases (n,).
Layer: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


@final
@dataclass(frozen=True, slots=True)
class Neuron:
    """One neuron that switches somewhere in the reach: ``y = max(0, a)``, ``a = weights @ atoms + bias``.

    Attributes
    ----------
    index
        Layer and neuron, from 0.
    weights, bias
        Its pre-activation over the atoms: those of the inputs, then the outputs that have a variable.
    received
        The same as a form.
    lower, upper
        Bounds of the pre-activation, on both sides of 0.
    output, on
        The variables y and z.
    parts
        Further variables p of the formulation and their weights: ``p = z * (weights @ atoms)``.
    """

    index: tuple[int, int]
    weights: Floats
    bias: float
    received: LinearForm
    lower: float
    upper: float
    output: Any
    on: Any
    parts: list[tuple[Any, Floats]] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True)
class _LayerVariables:
    """One layer's variables: outputs, their pre-activations over the atoms before them, and those that switch."""

    outputs: tuple[Any, ...]
    weights: Floats
    bias: Floats
    neurons: tuple[Neuron | None, ...]


class AbstractNetwork(AbstractEmbedded):
    r"""A network over the person's coordinates, with a variable per neuron that switches somewhere in the reach.

    .. math::
        y_{ij} = \max(0, a_{ij}), \qquad a_i = W_i h_{i-1} + b_i, \qquad s = W_L h_{L-1} + b_L .

    A neuron whose bounds give :math:`L \ge 0` is its pre-activation, one with :math:`U \le 0` is 0, and layers without
    ReLU are multiplied out. A subclass writes the rows of the others.
    """

    #: The program and its source, as ``model_summary`` shows them.
    manifest: Manifest

    def __init__(self, predictor: Predictor, x: AbstractColumns, *, cutoff: CostCutoff | None = None) -> None:
        super().__init__(predictor, x, self.manifest)
        core = predictor.core
        assert isinstance(core, ReluNetwork)  # noqa: S101 - chosen by embed
        self._layers = multiplied_out(core)
        self._inputs = Inputs(predictor, x, (self._layers[0][0] != 0.0).any(axis=0))
        self._bounds = NetworkBounds(self._inputs if cutoff is None else InputsWithin(self._inputs, cutoff))
        for weights, biases in self._layers[:-1]:
            self._require_finite(self._bounds.add(weights, biases))
        self.post = pyo.Var(pyo.Any, dense=False)
        self.on = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        self._written: list[_LayerVariables] = []
        self._score_weights, self._score_offset = self._write_layers()
        self.publish_scores()

    @abstractmethod
    def switch(self, neuron: Neuron) -> None:
        """Write the rows of one neuron."""

    # ---- what subclasses use -----------------------------------------------------------------------------------------
    def forms(self, weights: Floats, constants: Floats) -> list[LinearForm]:
        """Return ``weights @ atoms + constants``, one form per row."""
        n = self._inputs.matrix.shape[1]
        outputs = self._outputs()
        forms = []
        for form, row in zip(self._inputs.forms(weights[:, :n], constants), weights[:, n:].tolist(), strict=True):
            terms = [(c, v) for c, v in zip(row, outputs, strict=False) if c != 0.0]
            forms.append(LinearForm(form.constant, (*form.terms, *terms)))
        return forms

    def pieces_of(self, neuron: Neuron) -> list[NDArray[np.intp]]:
        """Return the atoms that a neuron reads, those together that are levels of one column."""
        first = self._inputs.matrix.shape[1]
        read = []
        for piece in self._inputs.pieces:
            if neuron.weights[piece].any():
                read.append(np.arange(piece.start, piece.stop))
        for k in range(first, len(neuron.weights)):
            if neuron.weights[k] != 0.0:
                read.append(np.array([k]))
        return read

    def spans(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the least and greatest value of ``weights @ atoms``, (K,) each, every piece and output for itself."""
        n = self._inputs.matrix.shape[1]
        low, high = self._inputs.extremes_of_atoms(weights[:, :n])
        outputs = self._outputs()
        least = np.array([v.lb for v in outputs], dtype=float)
        most = np.array([v.ub for v in outputs], dtype=float)  # None, where there is no bound, becomes NaN
        most[np.isnan(most)] = math.inf
        more_low, more_high = box_extremes(weights[:, n:], least, most)
        return low + more_low, high + more_high

    def _outputs(self) -> list[Any]:
        """Return the outputs of the neurons that have a variable so far."""
        outputs: list[Any] = []
        for layer in self._written:
            outputs += layer.outputs
        return outputs

    # ---- building ----------------------------------------------------------------------------------------------------
    def _require_finite(self, bounds: LayerBounds) -> None:
        if np.isfinite((bounds.lower - bounds.upper)[bounds.unstable]).all():
            return
        name = self._inputs.unbounded(self._layers[0][0])
        assert name is not None  # noqa: S101 - bounds are infinite only where a column's are
        raise UnboundedFeatureError(
            "A ReLU network", "finite bounds of every column that it reads", f"column {name!r} has none",
            self.x.bounds_advice(name),
        )  # fmt: skip

    def _write_layers(self) -> Layer:
        """Write the hidden layers; return the scores over the atoms."""
        rows = self._inputs.matrix
        offset = self._inputs.offset
        hidden = self._bounds.hidden
        wanted = needed(self._layers, hidden)
        readers = [2 * int((w & bounds.unstable).sum()) for w, bounds in zip(wanted[1:], hidden[1:], strict=False)]
        readers.append(len(wanted[-1]))
        for i, bounds in enumerate(hidden):
            weights, biases = self._layers[i]
            rows = weights @ rows
            offset = weights @ offset + biases
            active = wanted[i] & bounds.active
            passed = active & (not _cheaper_named(rows[active], readers[i]))
            rows, offset = self._write_layer(i, rows, offset, passed, wanted[i] & ~passed)
        weights, biases = self._layers[-1]
        return weights @ rows, weights @ offset + biases

    def _write_layer(
        self, i: int, rows: Floats, offset: Floats, passed: NDArray[np.bool_], named: NDArray[np.bool_]
    ) -> Layer:
        """Give the ``named`` neurons of a layer a variable; return the layer's outputs over the atoms."""
        bounds = self._bounds.hidden[i]
        kept = np.flatnonzero(named)
        lower, upper = (side.tolist() for side in bounds.outputs())
        outputs: list[Any] = []
        neurons: list[Neuron | None] = []
        for j, received in zip(kept.tolist(), self.forms(rows[kept], offset[kept]), strict=True):
            y = self.post[i, j]
            y.setlb(lower[j])
            y.setub(upper[j] if math.isfinite(upper[j]) else None)
            outputs.append(y)
            if bounds.active[j]:
                form = LinearForm(0.0, ((1.0, y),)) + received.scaled(-1.0)
                Rows(self, "defined").add((i, j), form, lower=0.0, upper=0.0)
                neurons.append(None)
            else:
                ends = float(bounds.lower[j]), float(bounds.upper[j])
                neuron = Neuron((i, j), rows[j], float(offset[j]), received, *ends, y, self.on[i, j])
                self.switch(neuron)
                neurons.append(neuron)
        self._written.append(_LayerVariables(tuple(outputs), rows[kept], offset[kept], tuple(neurons)))
        own = np.zeros((len(rows), len(kept)))
        own[kept, np.arange(len(kept))] = 1.0
        return np.hstack((np.where(passed[:, None], rows, 0.0), own)), np.where(passed, offset, 0.0)

    # ---- scores ------------------------------------------------------------------------------------------------------
    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of the scores."""
        row = np.array([list(weights)])
        return self.forms(row @ self._score_weights, row @ self._score_offset)[0]

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return bounds of the combination, back-substituted as a layer of its own."""
        row = np.array([list(weights)])
        last, biases = self._layers[-1]
        low, high = self._bounds.extremes(row @ last, row @ biases)
        return float(low[0]), float(high[0])

    def place(self, point: Mapping[str, float]) -> None:
        """Set every variable by a forward pass."""
        atoms = self._inputs.values(point)
        for layer in self._written:
            outputs = layer.weights @ atoms + layer.bias
            for k, (y, neuron) in enumerate(zip(layer.outputs, layer.neurons, strict=True)):
                if neuron is not None:
                    on = bool(outputs[k] > 0.0)
                    neuron.on.set_value(int(on), skip_validation=True)
                    for part, weights in neuron.parts:
                        part.set_value(float(weights @ atoms) if on else 0.0, skip_validation=True)
                    outputs[k] = max(outputs[k], 0.0)
                y.set_value(float(outputs[k]), skip_validation=True)
            atoms = np.concatenate((atoms, outputs))


def _cheaper_named(rows: Floats, readers: int) -> bool:
    """Whether variables for neurons that are always active save nonzeros in the ``readers`` rows that read them."""
    entries = int(np.count_nonzero(rows))
    width = int(rows.any(axis=0).sum())
    return entries + len(rows) * (1 + readers) < readers * width


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
