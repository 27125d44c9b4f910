"""Tree ensembles by ordered split binaries that all trees share, the default: no number needs a continuous variable.

The rows that keep the binaries of a column in order belong to the column (``formulations/columns/numeric_rows.py``).
"""

from __future__ import annotations

from typing import Any, final

from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.predictors.embed.trees.base import AbstractForest
from ceopt.formulations.predictors.embed.trees.reachable_leaves import Cut
from ceopt.solvers.manifest import Manifest

__all__ = ["OrderedTrees"]

_MANIFEST = Manifest(
    title="trees by ordered split binaries",
    formula="sum_l leaf[t,l] = 1; leaves left of a cut <= 1 - cut, leaves right of it <= cut",
    reference="Misic 2020 (M), leaf rows over the whole tree (expset)",
    features={"left": 1, "right": 1},
)


@final
class OrderedTrees(AbstractForest):
    r"""Leaves tied to the cuts that the person's columns share.

    .. math::
        \sum_{\ell:\, b_{\ell f} \le l_k} z_{t\ell} \le 1 - y_{fk}, \qquad
        \sum_{\ell:\, a_{\ell f} \ge r_k} z_{t\ell} \le y_{fk} \qquad \forall t,\ \forall (f, k) \text{ split in } t \\
        \sum_{\ell:\, C_\ell \subseteq S} z_{t\ell} \le \sum_{c \in S} u_c, \qquad
        \sum_{\ell:\, C_\ell \cap S = \emptyset} z_{t\ell} \le 1 - \sum_{c \in S} u_c \qquad \text{(} S \text{ left)}

    ======== ==================== ============================================================
    symbol   component            meaning
    ======== ==================== ============================================================
    z        ``leaf[t, node]``    1 iff tree t ends in that leaf; continuous, integral with y
    y        ``x.cut``            1 iff the column lies right of the cut
    u        ``x.level``          1 iff the column takes the level
    l, r     cut                  greatest value to its left, least value to its right
    a, b     leaf's box           least and greatest value that the leaf admits
    C        leaf's box           levels that the leaf admits
    S        cut                  levels to its left
    ======== ==================== ============================================================

    Adds one variable per leaf in reach of a tree that still splits, and per tree one row plus at most two per distinct
    split in it. MILP through the cuts and levels. Exact: the cuts lie between neighbouring values, so no epsilon is
    added.

    References
    ----------
    Misic, Optimization of tree ensembles (2020); categorical splits as sums of level binaries (Thebelt et al. 2022).
    """

    manifest = _MANIFEST

    def link(self) -> None:
        """Write at most two rows for each distinct split that a tree still has."""
        self.share_cuts()
        left = Rows(self, "left")
        right = Rows(self, "right")
        indicators: dict[Cut, LinearForm] = {}
        names: dict[Cut, tuple[Any, ...]] = {}
        for tree, pairs in zip(self.trees, self._variables, strict=True):
            for cut in tree.cuts:
                if cut not in indicators:
                    indicators[cut], names[cut] = self.goes_right(cut)
                goes_right = indicators[cut]
                index = (tree.position, *names[cut])
                lefts, rights = tree.sides(cut)
                if lefts:
                    form = LinearForm(0.0, tuple((1.0, pairs[k][1]) for k in lefts)) + goes_right
                    left.add(index, form, upper=1.0)
                if rights:
                    form = LinearForm(0.0, tuple((1.0, pairs[k][1]) for k in rights)) + goes_right.scaled(-1.0)
                    right.add(index, form, upper=0.0)
