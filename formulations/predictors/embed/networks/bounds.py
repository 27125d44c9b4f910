r"""Bounds of what the neurons of a network receive, over all that one person may become.

The pre-activations :math:`W h + b` of each layer are bounded in two ways, of which the tighter counts.

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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

import numpy as np

from ceopt.formulations.predictors.embed.inputs import box_extremes
from ceopt.formulations.tolerances import ALMOST_NEVER_SWITCHES, BOUNDS_OUTWARDS, NEVER_SWITCHES
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.predictors.representation.decision_rule import Floats

__all__ = ["InputSet", "LayerBounds", "NetworkBounds"]

#: Lines below neurons that switch, as :meth:`LayerBounds.relaxation` has them; no choice is always the best.
_SLOPES: Final = (None, 0.0, 1.0)


class InputSet(Protocol):
    """What the inputs of a network may be."""

    def extremes(self, weights: Floats, offset: Floats) -> tuple[Floats, Floats]:
        """Return the least and greatest value of ``weights @ inputs + offset``, (K,) each, or bounds of them."""
        ...


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

    def __init__(self, inputs: InputSet) -> None:
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
            both = self._least(np.vstack((weights, -weights)), np.concatenate((offset, -offset)))
            low = both[: len(offset)]
            high = -both[len(offset) :]
        size = np.maximum(np.abs(low), np.abs(high))
        outwards = BOUNDS_OUTWARDS * np.where(np.isfinite(size), size, 0.0)
        return low - outwards, high + outwards

    def _least(self, weights: Floats, offset: Floats) -> Floats:
        """Return the greatest of the lower bounds that each choice of slopes gives."""
        return np.asarray(np.max([self._substituted(weights, offset, slope) for slope in _SLOPES], axis=0))

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
