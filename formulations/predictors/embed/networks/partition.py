"""ReLU networks by the partition form: the inputs of a neuron in a few groups, each split in two by its binary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import numpy as np

from ceopt.formulations.predictors.embed.networks.base import Neuron
from ceopt.formulations.predictors.embed.networks.split import AbstractSplitNetwork, Group
from ceopt.solvers.manifest import Manifest

__all__ = ["PartitionNetwork"]

_MANIFEST = Manifest(
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
    those of :class:`~ceopt.formulations.predictors.embed.networks.big_m.BigMNetwork`, whose L and U may be tighter than
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

    manifest = _MANIFEST

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
