"""ReLU networks by big-M rows with propagated bounds: the default."""

from __future__ import annotations

from typing import final

from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.predictors.embed.networks.base import AbstractNetwork, Neuron
from ceopt.solvers.manifest import Manifest

__all__ = ["BigMNetwork", "big_m_rows"]

_MANIFEST = Manifest(
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

    manifest = _MANIFEST

    def switch(self, neuron: Neuron) -> None:
        """Write rows (B)."""
        big_m_rows(self, neuron)


def big_m_rows(block: AbstractNetwork, neuron: Neuron) -> None:
    """Write rows (B) of one neuron, on which the other two formulations build."""
    y = LinearForm(0.0, ((1.0, neuron.output),))
    z = LinearForm(0.0, ((1.0, neuron.on),))
    a = neuron.received
    low = neuron.lower
    high = neuron.upper
    Rows(block, "not_below").add(neuron.index, y + a.scaled(-1.0), lower=0.0)
    Rows(block, "not_above").add(neuron.index, y + a.scaled(-1.0) + z.scaled(-low), upper=-low)
    Rows(block, "off").add(neuron.index, y + z.scaled(-high), upper=0.0)
