"""Tree ensembles by one binary per leaf and big-M rows on its box, as OptiCL writes them: selectable, for research."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo

from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.predictors.embed.trees.base import AbstractForest
from ceopt.formulations.predictors.embed.trees.reachable_leaves import NumberCut
from ceopt.formulations.tolerances import TINY
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.predictors.embed.trees.reachable_leaves import Leaf

__all__ = ["LeafTrees"]

_MANIFEST = Manifest(
    title="trees by leaf binaries and big-M",
    formula="x <= u_l + (u - u_l)(1 - leaf[t,l]), x >= l_l - (l_l - l)(1 - leaf[t,l])",
    reference="OptiCL (Maragno et al. 2023), with the least big-M of each row",
    features={"admits": 2, "not_above": 2, "not_below": 2, "side": 0, "ordered": 0, "left": 1, "right": 1},
)


@final
class LeafTrees(AbstractForest):
    r"""A binary per leaf that switches on the rows of its box.

    .. math::
        x_f \le u_{\ell f} + (u_f - u_{\ell f})(1 - z_{t\ell}), \qquad
        x_f \ge l_{\ell f} - (l_{\ell f} - l_f)(1 - z_{t\ell}), \qquad
        z_{t\ell} \le \sum_{c \in C_{\ell f}} u_c \\
        \sum_{\ell \text{ left of } k} z_{t\ell} \le 1 - w_{fk}, \quad
        \sum_{\ell \text{ right of } k} z_{t\ell} \le w_{fk}, \quad w_{fk} \ge w_{f,k+1}

    ======== ==================== ============================================================
    symbol   component            meaning
    ======== ==================== ============================================================
    z        ``leaf[t, node]``    binary, 1 iff tree t ends in that leaf
    l, u     leaf's box           least and greatest value that the leaf admits
    C        leaf's box           levels that the leaf admits
    w        ``side[name, k]``    1 iff the column lies right of its k-th cut; continuous
    ======== ==================== ============================================================

    Adds one binary per leaf, at most two rows per leaf and column on its path, and a coordinate per split column; for
    columns that several trees split, also a variable per cut and two rows per cut and tree. Those (the last line) are
    ours: the published rows hold to a solver's tolerance, in which two trees may take different sides of a threshold.
    With them, MILP and exact in its integer decisions. Each big-M is the distance to the column's own bound.

    Raises
    ------
    UnboundedFeatureError
        A split column has an infinite bound.

    References
    ----------
    Maragno, Wiberg, Bertsimas, Birbil, den Hertog, Fajemisin, Mixed-integer optimization with constraint learning.
    """

    leaf_domain = pyo.Binary

    manifest = _MANIFEST

    def link(self) -> None:
        """Write the rows of each leaf's box, and those that keep all trees on one side of each cut."""
        for tree, pairs in zip(self.trees, self._variables, strict=True):
            for leaf, variable in pairs:
                if variable is not None:
                    self._bound(tree.position, leaf, variable)
        self.side = pyo.Var(pyo.Any, dense=False, bounds=(0, 1))
        for name, cuts in groupby(self.number_cuts, key=lambda cut: cut.name):
            if sum(any(cut.name == name for cut in tree.cuts) for tree in self.trees) > 1:
                self._keep_sides(list(cuts))

    def _keep_sides(self, cuts: list[NumberCut]) -> None:
        before: LinearForm | None = None
        for k, cut in enumerate(cuts):
            side = LinearForm(0.0, ((1.0, self.side[cut.name, k]),))
            if before is not None:
                Rows(self, "ordered").add((cut.name, k), before + side.scaled(-1.0), lower=0.0)
            before = side
            for tree, pairs in zip(self.trees, self._variables, strict=True):
                if len(pairs) < 2:
                    continue
                lefts, rights = tree.sides(cut)
                if lefts:
                    form = LinearForm(0.0, tuple((1.0, pairs[j][1]) for j in lefts)) + side
                    Rows(self, "left").add((tree.position, cut.name, k), form, upper=1.0)
                if rights:
                    form = LinearForm(0.0, tuple((1.0, pairs[j][1]) for j in rights)) + side.scaled(-1.0)
                    Rows(self, "right").add((tree.position, cut.name, k), form, upper=0.0)

    def _bound(self, position: int, leaf: Leaf, variable: Any) -> None:
        on = LinearForm(0.0, ((1.0, variable),))
        for name, admitted in leaf.box.items():
            index = (position, leaf.node, name)
            if isinstance(admitted, frozenset):
                indicator = self.x.coordinate(name).indicator(admitted)
                Rows(self, "admits").add(index, on + indicator.scaled(-1.0), upper=0.0)
                continue
            low, high = admitted
            coordinate = self.x.numeric(name)
            coordinate.require_bounds("The leaf form")
            least = coordinate.interval.lower
            greatest = coordinate.interval.upper
            value = coordinate.from_origin()
            origin = coordinate.origin
            unit = 1.0 / coordinate.unit
            if (greatest - high) * unit >= TINY:
                form = (value + on.scaled(greatest - high)).scaled(unit)
                Rows(self, "not_above").add(index, form, upper=(greatest - origin) * unit)
            if (low - least) * unit >= TINY:
                form = (value + on.scaled(least - low)).scaled(unit)
                Rows(self, "not_below").add(index, form, lower=(least - origin) * unit)
            coordinate.claim(variable, 1, low, high)

    def make_cells(self) -> None:
        """Put the cuts on the columns: of two cells, all trees may end in the same leaves."""
        self.share_cuts()

    def differs(self) -> LinearForm:
        """Return the number of trees that end in another leaf."""
        return total(LinearForm(1.0, ((-1.0, z),)) for z in self.leaf.values() if round(z.value or 0) == 1)
