"""ReLU networks by the extended form: every input of a neuron in two copies, the convex hull of each neuron."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.predictors.embed.networks.base import Neuron
from ceopt.formulations.predictors.embed.networks.split import AbstractSplitNetwork, Group
from ceopt.solvers.manifest import Manifest

__all__ = ["ExtendedNetwork"]

_MANIFEST = Manifest(
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
    :class:`~ceopt.formulations.predictors.embed.networks.big_m.BigMNetwork`, whose L and U may be tighter than the box.
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

    manifest = _MANIFEST

    def groups_of(self, neuron: Neuron) -> Sequence[Group]:
        """Give each number, output and level a group of its own."""
        groups = []
        for piece in self.pieces_of(neuron):
            for k in piece.tolist():
                row = np.zeros(len(neuron.weights))
                row[k] = 1.0 if len(piece) > 1 else neuron.weights[k]
                groups.append(Group(row, float(neuron.weights[k]) if len(piece) > 1 else 1.0))
        return groups

    def switch(self, neuron: Neuron) -> None:
        """Write the rows of the copies, and that those of the levels of a column add up."""
        super().switch(neuron)
        n = 0
        for piece in self.pieces_of(neuron):
            if len(piece) > 1:
                copies = tuple((1.0, self.part_of(neuron, n + k)) for k in range(len(piece)))
                form = LinearForm(0.0, (*copies, (-1.0, neuron.on)))
                Rows(self, "one_level").add((*neuron.index, n), form, lower=0.0, upper=0.0)
            n += len(piece)
