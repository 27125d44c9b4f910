"""Trees in a program: three formulations on one base, a variable per leaf that the person can reach.

:class:`OrderedTrees`, whose split binaries all trees share, is the default: no number needs a continuous variable.
:class:`MisicTrees` and :class:`LeafTrees` are there to compare and to read. The rows that keep the binaries of a column
in order belong to the column (``formulations/columns/numeric.py``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.linear_form import LinearForm, Rows, sum_form, total
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.embed.reachable_leaves import (
    Box,
    Cut,
    Leaf,
    LevelCut,
    NumberCut,
    PrunedTree,
    cuts_in_reach,
    prune,
    route,
)
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.space import point_row
from ceopt.formulations.tolerances import TINY
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.solvers.checks import Floats

# ==== Base of the three tree formulations: leaf variables, one leaf per tree, and scores linear in the leaves =========

#: What the time limit ends here.
_STAGE = "building the trees"


class AbstractForest(AbstractEmbedded):
    r"""A tree ensemble with a variable per leaf that the person can reach.

    .. math:: \sum_\ell z_{t\ell} = 1 \,\forall t,\ s_k = \bigl(b_k + \sum_{t,\ell} v_{t\ell k} z_{t\ell}\bigr) / D.

    with z = 1 iff tree t ends in the leaf, v the leaf's value, b the base score and D the divisor. The rows that tie
    leaves to the columns are those that ``link`` of a formulation writes.
    """

    #: The program and its source, as ``model_summary`` shows them.
    manifest: Manifest
    #: Domain of the leaf variables: continuous where the cuts imply integrality.
    leaf_domain: Any = pyo.NonNegativeReals

    def __init__(
        self,
        predictor: Predictor,
        x: AbstractColumns,
        *,
        cutoff: CostCutoff | None = None,
        all_cells: bool = False,
    ) -> None:
        super().__init__(predictor, x, self.manifest)
        routed = route(predictor)
        self.trees: tuple[PrunedTree, ...] = prune(routed, x.reach, cutoff=cutoff)
        cuts: set[NumberCut] = set()
        for tree in self.trees:
            cuts.update(cut for cut in tree.cuts if isinstance(cut, NumberCut))
        if all_cells:
            cuts.update(cuts_in_reach(routed, x.reach))
        #: Cuts on numbers, by column and place: those that decide something for this person, or all in reach.
        self.number_cuts: tuple[NumberCut, ...] = tuple(sorted(cuts, key=lambda cut: (cut.name, cut.key)))
        split_trees = [tree for tree in self.trees if len(tree.leaves) > 1]
        self.leaf = pyo.Var(
            [(tree.position, leaf.node) for tree in split_trees for leaf in tree.leaves],
            domain=self.leaf_domain,
            bounds=(0, 1),
        )
        rows = Rows(self, "one_leaf")
        self._variables: list[list[tuple[Leaf, Any]]] = []
        leaf_of = dict(self.leaf.items())
        checkpoint(_STAGE)
        for tree in self.trees:
            pairs = [(leaf, leaf_of.get((tree.position, leaf.node))) for leaf in tree.leaves]
            self._variables.append(pairs)
            if len(pairs) != 1:
                rows.add(tree.position, sum_form(variable for _, variable in pairs), lower=1.0, upper=1.0)
        self.link()
        self.publish_scores()

    @property
    def core(self) -> TreeEnsemble:
        """The ensemble."""
        core = self.predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - chosen by embed
        return core

    @abstractmethod
    def link(self) -> None:
        """Tie the leaves to the coordinates."""

    def share_cuts(self) -> None:
        """Put the cuts of all trees on the person's numeric columns."""
        for name, cuts in groupby(self.number_cuts, key=lambda cut: cut.name):
            self.x.numeric(name).add_cuts(cut.key for cut in cuts)

    def goes_right(self, cut: Cut) -> tuple[LinearForm, tuple[Any, ...]]:
        """Return a form, 1 where the row goes right of a cut, and the cut's index: column, and end or levels left."""
        if isinstance(cut, LevelCut):
            coordinate = self.x.coordinate(cut.name)
            levels = (coordinate.feature.levels[k] for k in sorted(cut.ranks))
            return coordinate.indicator(cut.ranks).complement(), (cut.name, *levels)
        cells = self.x.numeric(cut.name).cells
        return cells.right_of(cut.key), (cut.name, cells.text(cut.key))

    def place(self, point: Mapping[str, float]) -> None:
        """Set the leaves to those that the point reaches."""
        checkpoint(_STAGE)
        for pairs in self._variables:
            for leaf, variable in pairs:
                if variable is not None:
                    variable.set_value(int(_contains(leaf.box, point)), skip_validation=True)

    def ending_in(self, admits: Callable[[Floats], NDArray[np.bool_]]) -> LinearForm:
        """Return the number of trees that end in a leaf whose values (leaves, K) are admitted."""
        constant = 0.0
        terms: list[tuple[float, Any]] = []
        for pairs in filter(None, self._variables):
            admitted = admits(np.array([leaf.value for leaf, _ in pairs])).tolist()
            if all(admitted):
                constant += 1.0
            else:
                terms.extend((1.0, z) for ends, (_, z) in zip(admitted, pairs, strict=True) if ends)
        return LinearForm(constant, tuple(terms))

    def other_leaves(self, point: Mapping[str, float]) -> LinearForm:
        """Return the number of trees that end in a leaf with other values than at a point.

        Where it is 0 the scores are the same, float for float, and so is whatever the library makes of them.
        """
        predictor = self.predictor
        row = predictor.encoding.matrix(point_row(predictor.space, point))
        nodes = self.core.apply(row)[0].tolist()
        constant = float(len(nodes))
        terms = list[tuple[float, Any]]()
        for pairs, tree, node in zip(self._variables, self.core.trees, nodes, strict=True):
            value = tuple(tree.value[node].tolist())
            same = [variable for leaf, variable in pairs if leaf.value == value]
            if None in same:  # the only leaf in reach
                constant -= 1.0
            else:
                terms += [(-1.0, variable) for variable in same]
        return LinearForm(constant, tuple(terms))

    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of the scores, one term per leaf whose value matters."""
        checkpoint(_STAGE)
        constant = _weighted(weights, self.core.base.tolist())
        terms: list[tuple[float, Any]] = []
        for pairs in self._variables:
            if not pairs:
                continue
            values = [_weighted(weights, leaf.value) for leaf, _ in pairs]
            # Measured from the tree's least leaf: fewer nonzeros, and equal trees cost nothing.
            floor = min(values)
            constant += floor
            terms.extend((value - floor, z) for value, (_, z) in zip(values, pairs, strict=True) if value != floor)
        return LinearForm(constant, tuple(terms)).scaled(1.0 / self.core.divisor)

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return bounds of the combination: the sum of each tree's extreme leaves."""
        low = high = _weighted(weights, self.core.base.tolist())
        for pairs in self._variables:
            values = [_weighted(weights, leaf.value) for leaf, _ in pairs]
            if values:
                low = low + min(values)
                high = high + max(values)
        return low / self.core.divisor, high / self.core.divisor


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(w * v for w, v in zip(weights, values, strict=True))


def _sum(pairs: Sequence[tuple[Leaf, Any]], positions: Sequence[int]) -> LinearForm:
    """Return the number of leaves at some positions in which a tree ends: 1 or 0."""
    return sum_form(pairs[k][1] for k in positions)


def _contains(box: Box, point: Mapping[str, float]) -> bool:
    for name, admitted in box.items():
        if isinstance(admitted, frozenset):
            is_admitted = point[name] in admitted
        else:
            is_admitted = admitted[0] <= point[name] <= admitted[1]
        if not is_admitted:
            return False
    return True


# ==== Tree ensembles by one binary per leaf and big-M rows on its box, as OptiCL writes them ==========================

_LEAF_MANIFEST = Manifest(
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

    manifest = _LEAF_MANIFEST

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
            side = sum_form([self.side[cut.name, k]])
            if before is not None:
                Rows(self, "ordered").add((cut.name, k), before + side.scaled(-1.0), lower=0.0)
            before = side
            for tree, pairs in zip(self.trees, self._variables, strict=True):
                if len(pairs) < 2:
                    continue
                lefts, rights = tree.sides(cut)
                index = (tree.position, cut.name, k)
                if lefts:
                    Rows(self, "left").add(index, _sum(pairs, lefts) + side, upper=1.0)
                if rights:
                    Rows(self, "right").add(index, _sum(pairs, rights) + side.scaled(-1.0), upper=0.0)

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


# ==== Tree ensembles by Misic's split formulation with a coordinate per column: selectable, for research ==============

_MISIC_MANIFEST = Manifest(
    title="trees by split binaries with coordinates",
    formula="leaves left of a split <= q, right of it <= 1 - q; x <= l + (u - l)(1 - q), x >= r - (r - l_0) q",
    reference="Misic 2020, (M)",
    features={"q": 0, "increasing": 0, "not_above": 0, "not_below": 0, "left": 2, "right": 2},
)


@final
class MisicTrees(AbstractForest):
    r"""The split formulation as published, with every split column as a continuous or integer coordinate.

    .. math::
        q_{fk} \le q_{f,k+1}, \qquad
        \sum_{\ell \text{ left of } s} z_{t\ell} \le q_{f(s)k(s)}, \quad
        \sum_{\ell \text{ right of } s} z_{t\ell} \le 1 - q_{f(s)k(s)} \\
        x_f \le l_{fk} + (u_f - l_{fk})(1 - q_{fk}), \qquad x_f \ge r_{fk} - (r_{fk} - \underline{x}_f)\, q_{fk}

    ======== ==================== ============================================================
    symbol   component            meaning
    ======== ==================== ============================================================
    q        ``q[name, cut]``     binary, 1 iff the column lies left of the cut
    z        ``leaf[t, node]``    1 iff tree t ends in that leaf; continuous
    l, r     neighbouring values left and right of the cut, in place of the paper's epsilon
    ======== ==================== ============================================================

    Adds per cut one binary and three rows, per split node two rows, and a coordinate per split column. MILP, exact in
    its integer decisions: a coordinate between l and r satisfies a solver's tolerance on either side.

    Raises
    ------
    UnboundedFeatureError
        A split column has an infinite bound.

    References
    ----------
    Misic, Optimization of tree ensembles, Operations Research 2020.
    """

    manifest = _MISIC_MANIFEST

    def link(self) -> None:
        """Write the splits, their order, and the rows that tie them to coordinates."""
        self._splits: list[tuple[str, Any, float]] = []
        self.q = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        below: dict[Cut, LinearForm] = {}
        names: dict[Cut, tuple[Any, ...]] = {}
        previous: NumberCut | None = None
        for cut in self.number_cuts:
            twin = previous is not None and previous.name == cut.name and previous.key[0] == cut.key[0]
            names[cut] = (cut.name, f"{cut.key[0]!r} {cut.key[1]!r}" if twin else repr(cut.key[0]))
            below[cut] = LinearForm(0.0, ((1.0, self.q[names[cut]]),))
            if previous is not None and previous.name == cut.name:
                form = below[cut] + below[previous].scaled(-1.0)
                Rows(self, "increasing").add(names[cut], form, lower=0.0)
            self._tie(cut, names[cut], below[cut])
            previous = cut
        left = Rows(self, "left")
        right = Rows(self, "right")
        for tree, pairs in zip(self.trees, self._variables, strict=True):
            for k, (split, lefts, rights) in enumerate(tree.nodes):
                if split not in below:
                    side, names[split] = self.goes_right(split)
                    below[split] = side.complement()
                index = (tree.position, k, *names[split])
                left.add(index, _sum(pairs, lefts) + below[split].scaled(-1.0), upper=0.0)
                right.add(index, _sum(pairs, rights) + below[split], upper=1.0)

    def _tie(self, cut: NumberCut, index: tuple[Any, ...], below: LinearForm) -> None:
        coordinate = self.x.numeric(cut.name)
        last, first = cut.key
        coordinate.require_bounds("Misic's form")
        value = coordinate.from_origin()
        origin = coordinate.origin
        low = coordinate.interval.lower
        high = coordinate.interval.upper
        unit = 1.0 / coordinate.unit
        if (high - last) * unit >= TINY:
            form = (value + below.scaled(high - last)).scaled(unit)
            Rows(self, "not_above").add(index, form, upper=(high - origin) * unit)
        if (first - low) * unit >= TINY:
            form = (value + below.scaled(first - low)).scaled(unit)
            Rows(self, "not_below").add(index, form, lower=(first - origin) * unit)
        ((_, variable),) = below.terms
        self._splits.append((cut.name, variable, last))
        coordinate.claim(variable, 1, low, last)
        coordinate.claim(variable, 0, first, high)

    def place(self, point: Mapping[str, float]) -> None:
        """Set leaves and splits to those of the point."""
        super().place(point)
        for name, variable, last in self._splits:
            variable.set_value(int(point[name] <= last), skip_validation=True)

    def differs(self) -> LinearForm:
        """Return the number of cuts that the column lies on the other side of."""
        flips = []
        for variable in self.q.values():
            flip = sum_form([variable])
            if round(variable.value or 0):
                flip = flip.complement()
            flips.append(flip)
        return total(flips)


# ==== Tree ensembles by ordered split binaries that all trees share, the default ======================================

_ORDERED_MANIFEST = Manifest(
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

    manifest = _ORDERED_MANIFEST

    def link(self) -> None:
        """Write at most two rows for each distinct split that a tree still has."""
        self.share_cuts()
        left = Rows(self, "left")
        right = Rows(self, "right")
        sides: dict[Cut, tuple[LinearForm, tuple[Any, ...]]] = {}
        for tree, pairs in zip(self.trees, self._variables, strict=True):
            for cut in tree.cuts:
                if cut not in sides:
                    sides[cut] = self.goes_right(cut)
                goes_right, name = sides[cut]
                index = (tree.position, *name)
                lefts, rights = tree.sides(cut)
                if lefts:
                    left.add(index, _sum(pairs, lefts) + goes_right, upper=1.0)
                if rights:
                    right.add(index, _sum(pairs, rights) + goes_right.scaled(-1.0), upper=0.0)
