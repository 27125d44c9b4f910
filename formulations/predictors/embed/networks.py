r"""ReLU networks in a program: bounds of the neurons, and three formulations.

The pre-activations :math:`W h + b` of each layer are bounded, over all that one person may become, in two ways, of
which the tighter counts.

*Intervals*: :math:`L = W^+ l + W^- u + b` for :math:`h \in [l, u]`, the next layer's box being
:math:`[\max(0, L), \max(0, U)]`.

*Back-substitution*: with :math:`L < 0 < U` a neuron's output lies in

.. math::
    \alpha\, a \ \le\ \max(0, a) \ \le\ \tfrac{U}{U - L} (a - L), \qquad
    \alpha \in \{0, 1\},

so an affine function of one layer's outputs has an affine bound in those of the layer before, and at last in the
inputs, whose extremes are exact. Of three choices of alpha (1 where U > -L, 0 and 1 everywhere) the best counts, and on
the way the bound is read off at every layer's box, so the result is never looser than that of intervals.

References
----------
Zhang et al. (2018), CROWN; Singh et al. (2019), DeepPoly.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.formulations.linear_form import LinearForm, Rows, finite_or_none, sum_form, total
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded, Inputs, InputsWithin, box_extremes
from ceopt.formulations.predictors.representation import ReluNetwork
from ceopt.formulations.tolerances import ALMOST_NEVER_SWITCHES, BOUNDS_OUTWARDS, NEVER_SWITCHES
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import UnboundedFeatureError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.solvers.checks import Floats

# ==== Bounds of what the neurons of a network receive, over all that one person may become ============================

#: Lines below neurons that switch, as :meth:`LayerBounds.relaxation` has them; no choice is always the best.
_SLOPES: Final = (None, 0.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class LayerBounds:
    """Bounds ``lower <= a <= upper`` of one layer's pre-activations, (n,) each."""

    lower: Floats
    upper: Floats

    @property
    def active(self) -> NDArray[np.bool_]:
        """Neurons that always pass on what they receive."""
        return np.asarray(self.lower >= -_share(self.upper))

    @property
    def dead(self) -> NDArray[np.bool_]:
        """Neurons whose output is always 0."""
        return np.asarray((self.upper <= _share(self.lower)) & ~self.active)

    @property
    def unstable(self) -> NDArray[np.bool_]:
        """Neurons that switch somewhere in the reach."""
        return ~(self.active | self.dead)

    def outputs(self) -> tuple[Floats, Floats]:
        """Return bounds of the outputs."""
        low = np.where(self.active, self.lower, 0.0)
        return low, np.where(self.dead, 0.0, self.upper)

    def relaxation(self, slope: float | None = None) -> tuple[Floats, Floats, Floats]:
        """Return slopes and offset of ``below * a <= output <= above * a + offset``, (n,) each.

        ``slope`` is that of the line below neurons that switch: from 0 to 1, or the one that leaves the smaller area.
        """
        unstable = self.unstable
        low = np.where(unstable, self.lower, 0.0)
        high = np.where(unstable, self.upper, 1.0)
        above = np.where(self.dead, 0.0, high / (high - low))
        below = np.where(unstable, high > -low if slope is None else slope, self.active).astype(float)
        return below, above, -above * low


def _share(bound: Floats) -> Floats:
    return np.where(np.isfinite(bound), np.minimum(NEVER_SWITCHES * np.abs(bound), ALMOST_NEVER_SWITCHES), 0.0)


@final
class NetworkBounds:
    """Bounds of a network's layers, found from the first on.

    Parameters
    ----------
    inputs
        What the first layer may receive.
    """

    def __init__(self, inputs: Inputs | InputsWithin) -> None:
        self._inputs = inputs
        self._layers: list[tuple[Floats, Floats]] = []
        #: Bounds of the layers added so far.
        self.hidden: list[LayerBounds] = []

    def add(self, weights: Floats, biases: Floats) -> LayerBounds:
        """Bound the next layer, ``max(0, weights @ h + biases)``; bounds of neurons that switch must be finite."""
        bounds = LayerBounds(*self.extremes(weights, biases))
        self._layers.append((weights, biases))
        self.hidden.append(bounds)
        return bounds

    def extremes(self, weights: Floats, offset: Floats) -> tuple[Floats, Floats]:
        """Return bounds of ``weights @ h + offset``, h being the outputs of the last layer added, (K,) each."""
        if not self.hidden:
            low, high = self._inputs.extremes(weights, offset)
        else:
            signed = np.vstack((weights, -weights)), np.concatenate((offset, -offset))
            both = np.max([self._substituted(*signed, slope) for slope in _SLOPES], axis=0)
            low = both[: len(offset)]
            high = -both[len(offset) :]
        size = np.maximum(np.abs(low), np.abs(high))
        outwards = BOUNDS_OUTWARDS * np.where(np.isfinite(size), size, 0.0)
        return low - outwards, high + outwards

    def _substituted(self, weights: Floats, offset: Floats, slope: float | None) -> Floats:
        """Return the greatest lower bound found between the last layer and the inputs."""
        checkpoint("bounding the neurons")
        best = np.full(len(offset), -np.inf)
        for bounds, (w, b) in zip(reversed(self.hidden), reversed(self._layers), strict=True):
            best = np.maximum(best, box_extremes(weights, *bounds.outputs())[0] + offset)
            below, above, shift = bounds.relaxation(slope)
            positive = np.maximum(weights, 0.0)
            negative = np.minimum(weights, 0.0)
            received = positive * below + negative * above
            offset = offset + negative @ shift + received @ b
            weights = received @ w
        return np.asarray(np.maximum(best, self._inputs.extremes(weights, offset)[0]))


# ==== Base of the formulations of ReLU networks: bounds, neurons that never switch, and scores over the rest ==========

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
        The variables y and z; z is None where y needs no row from above.
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
    ReLU are multiplied out. Of all others it writes the big-M rows (B), to which a formulation may add its own.
    """

    #: The program and its source, as ``model_summary`` shows them.
    manifest: Manifest

    def __init__(
        self,
        predictor: Predictor,
        x: AbstractColumns,
        *,
        cutoff: CostCutoff | None = None,
        one_sided: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        super().__init__(predictor, x, self.manifest)
        core = predictor.core
        assert isinstance(core, ReluNetwork)  # noqa: S101 - chosen by embed
        #: Neurons, by layer and place, that no score rises with: they are held from below alone, without a binary.
        self._one_sided = one_sided
        self._layers = multiplied_out(core)
        self._inputs = Inputs(predictor, x, (self._layers[0][0] != 0.0).any(axis=0))
        self._bounds = NetworkBounds(self._inputs if cutoff is None else InputsWithin(self._inputs, cutoff))
        for weights, biases in self._layers[:-1]:
            self._require_finite(self._bounds.add(weights, biases))
        self.post = pyo.Var(pyo.Any, dense=False)
        self.on = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        self._written: list[_LayerVariables] = []
        self._score_weights, self._score_offset = self._write_layers()

    def switch(self, neuron: Neuron) -> None:
        """Write rows (B) of one neuron that switches; a formulation may add its own."""
        y = LinearForm(0.0, ((1.0, neuron.output),))
        a = neuron.received
        low = neuron.lower
        Rows(self, "not_below").add(neuron.index, y + a.scaled(-1.0), lower=0.0)
        if neuron.on is None:
            return
        z = LinearForm(0.0, ((1.0, neuron.on),))
        Rows(self, "not_above").add(neuron.index, y + a.scaled(-1.0) + z.scaled(-low), upper=-low)
        Rows(self, "off").add(neuron.index, y + z.scaled(-neuron.upper), upper=0.0)

    # ---- what subclasses use -----------------------------------------------------------------------------------------
    def forms(self, weights: Floats, constants: Floats) -> list[LinearForm]:
        """Return ``weights @ atoms + constants``, one form per row."""
        n = self._inputs.atoms.count
        outputs = self._outputs()
        forms = []
        for form, row in zip(self._inputs.atoms.forms(weights[:, :n], constants), weights[:, n:].tolist(), strict=True):
            terms = [(c, v) for c, v in zip(row, outputs, strict=False) if c != 0.0]
            forms.append(LinearForm(form.constant, (*form.terms, *terms)))
        return forms

    def pieces_of(self, neuron: Neuron) -> list[NDArray[np.intp]]:
        """Return the atoms that a neuron reads, those together that are levels of one column, of which one is 1."""
        first = self._inputs.atoms.count
        read = []
        for piece in self._inputs.atoms.pieces:
            if piece.start in self._inputs.atoms.labelled:  # an amount, and labels that are all 0 beside it
                read += [np.array([k]) for k in range(piece.start, piece.stop) if neuron.weights[k] != 0.0]
            elif neuron.weights[piece].any():
                read.append(np.arange(piece.start, piece.stop))
        for k in range(first, len(neuron.weights)):
            if neuron.weights[k] != 0.0:
                read.append(np.array([k]))
        return read

    def spans(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the least and greatest value of ``weights @ atoms``, (K,) each, every piece and output for itself."""
        n = self._inputs.atoms.count
        low, high = self._inputs.atoms.extremes(weights[:, :n])
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
        lower, upper = np.array(bounds.outputs()).tolist()
        outputs: list[Any] = []
        neurons: list[Neuron | None] = []
        for j, received in zip(kept.tolist(), self.forms(rows[kept], offset[kept]), strict=True):
            y = self.post[i, j]
            y.setlb(lower[j])
            y.setub(finite_or_none(upper[j]))
            outputs.append(y)
            if bounds.active[j]:
                form = LinearForm(0.0, ((1.0, y),)) + received.scaled(-1.0)
                Rows(self, "defined").add((i, j), form, lower=0.0, upper=0.0)
                neurons.append(None)
            else:
                ends = float(bounds.lower[j]), float(bounds.upper[j])
                on = None if (i, j) in self._one_sided else self.on[i, j]
                neuron = Neuron((i, j), rows[j], float(offset[j]), received, *ends, y, on)
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
        atoms = self._inputs.atoms.values(point)
        for layer in self._written:
            outputs = layer.weights @ atoms + layer.bias
            for k, (y, neuron) in enumerate(zip(layer.outputs, layer.neurons, strict=True)):
                if neuron is not None:
                    on = bool(outputs[k] > 0.0)
                    if neuron.on is not None:
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
    wanted = [np.ones(len(layers[-1][1]), dtype=np.bool_)]
    for (weights, _), bounds in zip(reversed(layers[1:]), reversed(hidden), strict=True):
        wanted.insert(0, (weights[wanted[0]] != 0.0).any(axis=0) & ~bounds.dead)
    return wanted


# ==== ReLU networks by big-M rows with propagated bounds: the default =================================================

_BIG_M_MANIFEST = Manifest(
    title="ReLU network by big-M",
    formula="y >= a, y >= 0, y <= a - L(1 - z), y <= U z; a = W h + b",
    reference="Grimstad & Andersson 2019",
)


@final
class BigMNetwork(AbstractNetwork):
    r"""Each neuron that switches has a binary, and bounds as its big-M.

    .. math::
        y \ge a, \qquad y \ge 0, \qquad y \le a - L (1 - z), \qquad y \le U z, \qquad z \in \{0, 1\}

    ======== ====================== ==============================================================================
    symbol   component              meaning
    ======== ====================== ==============================================================================
    y        ``post[i, j]``         output of neuron j of layer i
    z        ``on[i, j]``           binary, 1 where the neuron passes on what it receives
    a                               pre-activation: an affine form over the person's coordinates and earlier outputs
    L, U                            bounds of a, interval or back-substituted, whichever is tighter
    ======== ====================== ==============================================================================

    Rows ``not_below`` (y >= a), ``not_above`` (y <= a - L(1 - z)) and ``off`` (y <= U z). Adds one variable, one binary
    and three rows per neuron with L < 0 < U that a score depends on. A neuron with L >= 0 is a, substituted, or a
    variable with the row ``defined`` (y = a) where that is sparser; one with U <= 0 is left out. MILP. Exact: bounds
    move outwards by 1e-9 of their size, and a neuron that switches only within 3e-9 of it (1e-7 at most) counts as one
    that does not. A big-M beyond 1e7 lets more through a solver's binary than its tolerance: bound wide columns.

    Raises
    ------
    UnboundedFeatureError
        A column that a switching neuron reads has no bound.

    References
    ----------
    Grimstad & Andersson (2019), ReLU networks as surrogate models in mixed-integer linear programs.
    """

    manifest = _BIG_M_MANIFEST


# ==== Neurons whose inputs are split in two by their binary: shared by the partition and the extended form ============


@final
@dataclass(frozen=True, slots=True)
class Group:
    """A sum ``weights @ atoms`` that is split; it enters the pre-activation times ``factor``."""

    weights: Floats
    factor: float = 1.0


class AbstractSplitNetwork(AbstractNetwork):
    r"""Rows (B), and groups :math:`g_n` of inputs with a part :math:`\zeta_n = z g_n` each.

    .. math::
        y = \textstyle\sum_n c_n \zeta_n + b z, \qquad A_n z \le \zeta_n \le B_n z, \qquad
        A_n (1 - z) \le g_n - \zeta_n \le B_n (1 - z)
    """

    @abstractmethod
    def groups_of(self, neuron: Neuron) -> Sequence[Group]:
        """Divide a neuron's inputs."""

    def switch(self, neuron: Neuron) -> None:
        """Write rows (B); where there are several groups, also theirs."""
        super().switch(neuron)
        groups = self.groups_of(neuron)
        if len(groups) > 1:
            self._split(neuron, groups)

    def _split(self, neuron: Neuron, groups: Sequence[Group]) -> None:
        if self.component("part") is None:
            self.part = pyo.Var(pyo.Any, dense=False)
        weights = np.stack([group.weights for group in groups])
        lows, highs = np.array(self.spans(weights)).tolist()
        z = LinearForm(0.0, ((1.0, neuron.on),))
        parts: list[LinearForm] = []
        forms = self.forms(weights, np.zeros(len(groups)))
        for n, (group, form, low, high) in enumerate(zip(groups, forms, lows, highs, strict=True)):
            index = (*neuron.index, n)
            variable = self.part[(*neuron.index, n)]
            neuron.parts.append((variable, group.weights))
            part = LinearForm(0.0, ((1.0, variable),))
            rest = form + part.scaled(-1.0)
            Rows(self, "on_low").add(index, part + z.scaled(-low), lower=0.0)
            Rows(self, "on_high").add(index, part + z.scaled(-high), upper=0.0)
            Rows(self, "off_low").add(index, rest + z.scaled(low), lower=low)
            Rows(self, "off_high").add(index, rest + z.scaled(high), upper=high)
            parts.append(part.scaled(group.factor))
        y = LinearForm(0.0, ((-1.0, neuron.output),))
        Rows(self, "sum").add(neuron.index, total([*parts, z.scaled(neuron.bias), y]), lower=0.0, upper=0.0)


# ==== ReLU networks by the extended form: every input of a neuron in two copies, the convex hull of each neuron =======

_EXTENDED_MANIFEST = Manifest(
    title="ReLU network, extended form",
    formula="(B), h = h0 + h1, l z <= h1 <= u z, l(1 - z) <= h0 <= u(1 - z), y = w.h1 + b z",
    reference="Anderson et al. 2020",
)


@final
class ExtendedNetwork(AbstractSplitNetwork):
    r"""The convex hull of each neuron over the box of its inputs, by two copies of each: :math:`h = h^0 + h^1`.

    .. math::
        l_k z \le h^1_k \le u_k z, \qquad l_k (1 - z) \le h_k - h^1_k \le u_k (1 - z), \qquad
        y = w^\top h^1 + b z, \\
        \textstyle\sum_c u^1_c = z \quad \text{(levels of a column)}, \\
        y \ge a, \qquad y \ge 0, \qquad y \le a - L (1 - z), \qquad y \le U z, \qquad z \in \{0, 1\}

    ======== ====================== ==============================================================================
    symbol   component              meaning
    ======== ====================== ==============================================================================
    y, z     ``post``, ``on``       output of a neuron, and the binary that is 1 where it passes on what it receives
    h^1_k    ``part[i, j, n]``      number or earlier output where z = 1, else 0, times its weight
    u^1_c    ``part[i, j, n]``      1 iff z = 1 and the column takes level c
    L, U                            bounds of a, interval or back-substituted, whichever is tighter
    ======== ====================== ==============================================================================

    Rows ``sum``, ``on_low``, ``on_high``, ``off_low``, ``off_high`` and ``one_level``, beside those of
    :class:`~ceopt.formulations.predictors.embed.networks.BigMNetwork`, whose L and U may be tighter than the box.
    Adds, to what that adds, per neuron that switches one variable and four rows for each of its inputs (levels counted
    singly), one row, and one per column of levels. MILP, exact as that is, and the tightest relaxation per neuron; for
    research.

    Raises
    ------
    UnboundedFeatureError
        A column that a switching neuron reads has no bound.

    References
    ----------
    Anderson, Huchette, Ma, Tjandraatmadja & Vielma (2020), Strong mixed-integer programming formulations for trained
    neural networks.
    """

    manifest = _EXTENDED_MANIFEST

    def groups_of(self, neuron: Neuron) -> Sequence[Group]:
        """Give each number, output and level a group of its own."""
        groups = []
        for piece in self.pieces_of(neuron):
            for k in piece.tolist():
                row = np.zeros(len(neuron.weights))
                row[k] = neuron.weights[k]
                factor = 1.0
                if len(piece) > 1:
                    row[k] = 1.0
                    factor = float(neuron.weights[k])
                groups.append(Group(row, factor))
        return groups

    def switch(self, neuron: Neuron) -> None:
        """Write the rows of the copies, and that those of the levels of a column add up."""
        super().switch(neuron)
        n = 0
        for piece in self.pieces_of(neuron):
            if len(piece) > 1:
                copies = sum_form(self.part[(*neuron.index, n + k)] for k in range(len(piece)))
                form = copies + LinearForm(0.0, ((-1.0, neuron.on),))
                Rows(self, "one_level").add((*neuron.index, n), form, lower=0.0, upper=0.0)
            n += len(piece)


# ==== ReLU networks by the partition form: the inputs of a neuron in a few groups, each split in two by its binary ====

_PARTITION_MANIFEST = Manifest(
    title="ReLU network by partition",
    formula="(B), y = sum_n part_n + b z, A_n z <= part_n <= B_n z, A_n(1 - z) <= a_n - part_n <= B_n(1 - z)",
    reference="Tsay et al. 2021",
)
#: The N of the form: more groups cost more time than they save.
_GROUPS: Final = 2


@final
class PartitionNetwork(AbstractSplitNetwork):
    r"""Between big-M and the convex hull of each neuron: its pre-activation in N groups, :math:`a = b + \sum_n a_n`.

    .. math::
        y = \textstyle\sum_n \zeta_n + b z, \qquad A_n z \le \zeta_n \le B_n z, \qquad
        A_n (1 - z) \le a_n - \zeta_n \le B_n (1 - z), \\
        y \ge a, \qquad y \ge 0, \qquad y \le a - L (1 - z), \qquad y \le U z, \qquad z \in \{0, 1\}

    ======== ====================== ==============================================================================
    symbol   component              meaning
    ======== ====================== ==============================================================================
    y, z     ``post``, ``on``       output of a neuron, and the binary that is 1 where it passes on what it receives
    a_n      inputs by weight       what the n-th group of inputs adds to the pre-activation a
    zeta_n   ``part[i, j, n]``      a_n where z = 1, else 0
    A, B                            bounds of a_n, the sums of its inputs' own
    L, U                            bounds of a, interval or back-substituted, whichever is tighter
    ======== ====================== ==============================================================================

    Inputs are sorted by what they add between their bounds, with its sign, and divided into two groups of equal number;
    all levels of a column are one input. Rows ``sum``, ``on_low``, ``on_high``, ``off_low`` and ``off_high``, beside
    those of :class:`~ceopt.formulations.predictors.embed.networks.BigMNetwork`, whose L and U may be tighter than
    the groups' sums. Adds, to what that adds, N variables and 4 N + 1 rows per neuron that switches and has two inputs.
    MILP, exact as that is. Its relaxation lies between those of (B), which is N = 1, and of the extended form.

    Raises
    ------
    UnboundedFeatureError
        A column that a switching neuron reads has no bound.

    References
    ----------
    Tsay, Kronqvist, Thebelt & Misener (2021), Partition-based formulations for mixed-integer optimization of trained
    ReLU neural networks.
    """

    manifest = _PARTITION_MANIFEST

    def groups_of(self, neuron: Neuron) -> Sequence[Group]:
        """Sort the inputs by what they add, and cut the list into equal parts."""
        pieces = self.pieces_of(neuron)
        rows = np.zeros((len(pieces), len(neuron.weights)))
        for row, piece in zip(rows, pieces, strict=True):
            row[piece] = neuron.weights[piece]
        low, high = self.spans(rows)
        sign = np.array([np.sign(neuron.weights[piece].sum()) for piece in pieces])
        order = np.argsort(sign * (high - low), kind="stable")
        return [Group(rows[part].sum(axis=0)) for part in np.array_split(order, min(_GROUPS, len(pieces)))]
