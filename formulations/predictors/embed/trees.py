"""Three formulations of tree ensembles as MILPs. Their common base has a variable per leaf that the person can reach.

The default, :class:`OrderedTrees`, has one binary per distinct split, shared by all trees, and no continuous variable
for the value of a column. :class:`MisicTrees` and :class:`LeafTrees` are there to compare and to read. The rows that
keep the binaries of a column in order belong to the column (``formulations/columns/numeric.py``).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import LinearForm, Rows, sum_form, total
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.pruned_leaves import Leaf, PrunedTree, pruned_trees
from ceopt.formulations.predictors.raw_trees import Cut, LevelCut, NumberCut, keys_in_reach, place_of
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.space import point_row
from ceopt.formulations.tolerances import TINY
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidValueError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.columns.numeric import Numeric
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.predictors.tree_bounds import TreeNeed
    from ceopt.solvers.checks import Floats

# ==== Base of the three tree formulations: leaf variables, one leaf per tree, and scores linear in the leaves =========

#: Name of this stage in the message of an exceeded time limit.
_STAGE = "building the trees"
#: How an index names the missing cell.
_MISSING = "missing"


class AbstractForest(AbstractEmbedded):
    r"""A tree ensemble with a variable per leaf that the person can reach.

    .. math:: \sum_\ell z_{t\ell} = 1 \,\forall t,\ s_k = \bigl(b_k + \sum_{t,\ell} v_{t\ell k} z_{t\ell}\bigr) / D.

    with z = 1 iff tree t ends in the leaf, v the leaf's value, b the base score and D the divisor. ``link`` of each
    formulation adds the rows that connect leaves and columns.
    """

    #: The program and its source, as ``model_summary`` shows them.
    manifest: Manifest
    #: Domain of the leaf variables; continuous if integral cuts make the leaves integral.
    leaf_domain: Any = pyo.NonNegativeReals
    #: Whether leaves that are worst for all rows need no variable.
    drops_worst = False
    #: Whether leaves beyond what a target needs may be missing.
    takes_need = False

    def __init__(
        self,
        predictor: Predictor,
        x: AbstractColumns,
        *,
        cutoff: CostCutoff | None = None,
        need: TreeNeed | None = None,
        all_cells: bool = False,
        more_in: Sequence[tuple[float, ...]] = (),
    ) -> None:
        super().__init__(predictor, x, self.manifest)
        need = need if self.takes_need else None
        self.trees: tuple[PrunedTree, ...] = pruned_trees(predictor, x.reach, cutoff=cutoff, need=need)
        is_covered = need is None or cutoff is None  # else a point in none of the leaves is none that is wanted
        self._more_in = more_in if self.drops_worst and is_covered else ()
        cuts: set[NumberCut] = set()
        for tree in self.trees:
            cuts.update(cut for cut in tree.cuts if isinstance(cut, NumberCut))
        if all_cells:
            for name, keys in keys_in_reach(predictor, x.reach).items():
                cuts.update(NumberCut(name, key) for key in keys)
        #: Cuts on numeric columns, sorted: those left in the pruned trees; with ``all_cells`` all that split the reach.
        self.number_cuts: tuple[NumberCut, ...] = tuple(sorted(cuts, key=place_of))
        split_trees = [tree for tree in self.trees if len(tree.leaves) > 1]
        dropped = {(tree.position, node) for tree in split_trees for node in self._worst_leaves(tree)}
        places = [(tree.position, leaf.node) for tree in split_trees for leaf in tree.leaves]
        self.leaf = pyo.Var(
            [place for place in places if place not in dropped],
            domain=self.leaf_domain,
            bounds=(0, 1),
        )
        rows = Rows(self, "one_leaf")
        self._trees_with_leaves: list[tuple[PrunedTree, list[tuple[Leaf, Any]]]] = []
        variable_of = dict(self.leaf.items())
        checkpoint(_STAGE)
        for tree in self.trees:
            pairs = [(leaf, variable_of.get((tree.position, leaf.node))) for leaf in tree.leaves]
            self._trees_with_leaves.append((tree, pairs))
            if len(pairs) == 1:
                continue
            some = [variable for _, variable in pairs if variable is not None]
            is_whole = len(some) == len(pairs)  # without a leaf in reach 0 = 1 makes the program infeasible
            if is_whole or some:
                rows.add(tree.position, sum_form(some), lower=1.0 if is_whole else None, upper=1.0)
        self._leaves_in_reach = [pairs for _, pairs in self._trees_with_leaves if pairs]
        self.link()

    @property
    def core(self) -> TreeEnsemble:
        """The ensemble."""
        core = self.predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - chosen by embed
        return core

    @abstractmethod
    def link(self) -> None:
        """Add the rows that connect the leaves and the columns."""

    def _worst_leaves(self, tree: PrunedTree) -> frozenset[int]:
        """Return the nodes of the leaves that are worst in all rows that want more: empty where no leaf is."""
        if not self._more_in:
            return frozenset()
        values = np.array([leaf.value for leaf in tree.leaves])
        sums = np.stack([_weighted(weights, values) for weights in self._more_in])
        worst = (sums == sums.min(axis=1, keepdims=True)).all(axis=0)
        return frozenset(leaf.node for leaf, is_worst in zip(tree.leaves, worst.tolist(), strict=True) if is_worst)

    def share_cuts(self) -> None:
        """Add the cuts of all trees as binaries to the person's numeric columns."""
        for name, cuts in groupby(self.number_cuts, key=lambda cut: cut.name):
            self.x.numeric(name).add_cuts(cut.key for cut in cuts if cut.parts_amounts)

    def right_of(self, cut: Cut) -> tuple[LinearForm, tuple[Any, ...]]:
        """Return the indicator that the person's column lies right of a cut, and the cut's index.

        The index holds the column and, of the left side, the greatest value or the levels, and labels. While the column
        takes a label, its amount rests at home: the indicator is the amount's, less home's side, plus the label's.
        """
        if isinstance(cut, LevelCut):
            coordinate = self.x.coordinate(cut.name)
            levels = [_MISSING if k == MISSING else coordinate.feature.levels[int(k)] for k in sorted(cut.ranks)]
            return coordinate.indicator(cut.ranks).complement(), (cut.name, *levels)
        column = self.x.numeric(cut.name)
        if cut.parts_amounts:
            side = column.cells.right_of(cut.key)
            words = [column.cells.text(cut.key)]
            at_home = column.home >= cut.key[1]
        else:
            at_home = cut.key[1] != math.inf
            side = LinearForm(float(at_home))
            words = ["all amounts"][at_home:]
        for label in self.x.reach[cut.name].labels:
            goes_right = label not in cut.labels
            if goes_right != at_home:
                side += column.label_form(label).scaled(float(goes_right) - float(at_home))
            if not goes_right:
                words.append(_MISSING if label == MISSING else digits(label))
        return side, (cut.name, ", ".join(words))

    def refuse_labels(self, who: str) -> None:
        """Refuse a column of numbers that the trees split and that may take a label: its coordinate is an amount."""
        for tree in self.trees:
            for cut in tree.cuts:
                if isinstance(cut, NumberCut) and self.x.reach[cut.name].labels:
                    raise InvalidValueError(
                        who, "columns of amounts alone", f"column {cut.name!r} may be missing or hold a code",
                        "Use formulation='ordered', which takes them.",
                    )  # fmt: skip

    def _bind_if(
        self, rows: str, index: Any, column: Numeric, switch: LinearForm, *, distance: float, end: float
    ) -> None:
        """Add the row ``value + distance * switch <= end`` (``not_above``) or ``>= end``; none for distances near 0."""
        value = column.from_origin()
        scale = 1.0 / column.unit
        if distance * scale < TINY:
            return
        form = (value + switch.scaled(distance)).scaled(scale)
        side = (end - column.origin) * scale
        if rows == "not_above":
            Rows(self, rows).add(index, form, upper=side)
        else:
            Rows(self, rows).add(index, form, lower=side)

    def place(self, point: Mapping[str, float]) -> None:
        """Set the leaf variables to the values that they have at a point."""
        checkpoint(_STAGE)
        for tree, pairs in self._trees_with_leaves:
            held = tree.sides.holding(point, self.x.reach)
            for k, (_, variable) in enumerate(pairs):
                if variable is not None:
                    variable.set_value(int(k in held), skip_validation=True)

    def adding_up(self, amounts: Callable[[Floats], Floats]) -> LinearForm:
        """Return, as a linear form, the sum over the trees of an amount for the leaf that each ends in.

        ``amounts`` maps leaf values (leaves, K) to one amount each. Each tree's least is subtracted: fewer nonzeros,
        and a tree of equal amounts adds no term. Leaves without a variable have it, or where less is wanted the most.
        """
        checkpoint(_STAGE)
        constant = 0.0
        terms: list[tuple[float, Any]] = []
        for pairs in self._leaves_in_reach:
            found = amounts(np.array([leaf.value for leaf, _ in pairs])).tolist()
            floor = min(found)
            if self._more_in and len(pairs) > 1:
                floor = next((amount for amount, (_, z) in zip(found, pairs, strict=True) if z is None), floor)
            constant += floor
            terms.extend((amount - floor, z) for amount, (_, z) in zip(found, pairs, strict=True) if amount != floor)
        return LinearForm(constant, tuple(terms))

    def other_leaves(self, point: Mapping[str, float]) -> LinearForm:
        """Return, as a linear form, the number of trees whose leaf value differs from that at a point.

        If it is 0, the scores are bitwise equal, and hence also the library's prediction.
        """
        predictor = self.predictor
        row = predictor.encoding.matrix(point_row(predictor.space, point))
        nodes = self.core.apply(row)[0].tolist()
        constant = float(len(nodes))
        terms = list[tuple[float, Any]]()
        for (_, pairs), tree, node in zip(self._trees_with_leaves, self.core.trees, nodes, strict=True):
            value = tuple(tree.value[node].tolist())
            same = [variable for leaf, variable in pairs if leaf.value == value]
            if None in same:  # the only leaf in reach
                constant -= 1.0
            else:
                terms += [(-1.0, variable) for variable in same]
        return LinearForm(constant, tuple(terms))

    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of the scores, one term per leaf whose value matters."""
        base = LinearForm(float(_weighted(weights, self.core.base[None])[0]))
        return (base + self.adding_up(lambda values: _weighted(weights, values))).scaled(1.0 / self.core.divisor)

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return bounds of the combination: the sum of each tree's extreme leaves."""
        low = high = float(_weighted(weights, self.core.base[None])[0])
        for pairs in self._leaves_in_reach:
            values = _weighted(weights, np.array([leaf.value for leaf, _ in pairs]))
            low += float(values.min())
            high += float(values.max())
        return low / self.core.divisor, high / self.core.divisor


def _weighted(weights: Sequence[float], values: Floats) -> Floats:
    """Return the weighted sum of each row (L, K), added up in the order of the weights."""
    total = np.zeros(len(values))
    for weight, column in zip(weights, values.T, strict=True):
        total = total + weight * column
    return total


def _ends_in(pairs: Sequence[tuple[Leaf, Any]], positions: Sequence[int]) -> LinearForm:
    """Return the indicator that a tree ends in one of the leaves at these positions, as far as they have variables.

    The only leaf of a tree has none.
    """
    if len(pairs) == 1:
        return LinearForm(float(len(positions)))
    return sum_form(pairs[k][1] for k in positions if pairs[k][1] is not None)


def _ends_at(tree: PrunedTree, cut: Cut, positions: Sequence[int], *, side: int) -> bool:
    """Whether one of these leaves ends (side 1) or begins (side 0) at a cut; else another cut's row says more."""
    if isinstance(cut, LevelCut) or cut.labels or not cut.parts_amounts:
        return True
    end = cut.key[1 - side]
    boxes = (tree.leaves[k].box[cut.name] for k in positions)
    return any(box[2] or box[side] == end for box in boxes if isinstance(box, tuple))


def _nodes(tree: PrunedTree) -> Iterator[tuple[Cut, list[int], list[int]]]:
    """Yield each node of a tree with these leaves: its cut, and the positions of the leaves left and right of it."""
    sides = []
    for cut in tree.cuts:
        lefts, rights = map(frozenset, tree.sides.of(cut))
        sides.append((cut, lefts, rights))
    waiting = [frozenset(range(len(tree.leaves)))]
    while waiting:
        below = waiting.pop()
        for cut, lefts, rights in sides:
            left = below & lefts
            right = below & rights
            if left and right and len(left) + len(right) == len(below):
                yield cut, sorted(left), sorted(right)
                waiting += [right, left]
                break


# ==== Tree ensembles by one binary per leaf and big-M rows on its box, as OptiCL writes them ==========================


@final
class LeafTrees(AbstractForest):
    r"""A binary per leaf that switches on the rows of its box.

    .. math::
        x_f \le b_{\ell f} + (\overline{x}_f - b_{\ell f})(1 - z_{t\ell}), \qquad
        x_f \ge a_{\ell f} - (a_{\ell f} - \underline{x}_f)(1 - z_{t\ell}), \qquad
        z_{t\ell} \le \sum_{c \in C_{\ell f}} u_c \\
        \sum_{\ell \text{ left of } k} z_{t\ell} \le 1 - w_{fk}, \quad
        \sum_{\ell \text{ right of } k} z_{t\ell} \le w_{fk}, \quad w_{fk} \ge w_{f,k+1}

    ======== ==================== ============================================================
    symbol   component            meaning
    ======== ==================== ============================================================
    z        ``leaf[t, node]``    binary, 1 iff tree t ends in that leaf
    u        ``x.level``          1 iff the column takes the level
    w        ``side[name, k]``    1 iff the column lies right of its k-th cut; continuous
    a, b     leaf's box           least and greatest value that the leaf admits
    C        leaf's box           levels that the leaf admits
    ======== ==================== ============================================================

    The reach of a column is from :math:`\underline{x}_f` to :math:`\overline{x}_f`, and each big-M is a distance to one
    of the two.

    Adds one binary per leaf, at most two rows per leaf and column on its path, and a coordinate per split column. For a
    column that several trees split, it also adds a variable per cut and two rows per cut and tree (the last line).
    These are not in the published formulation, in which a value within the solver's tolerance of a threshold may count
    as left in one tree and as right in another. With them the binaries are consistent across trees. A MILP whose
    binaries determine the leaves exactly.

    Raises
    ------
    UnboundedFeatureError
        A split column has an infinite bound.

    References
    ----------
    Maragno, Wiberg, Bertsimas, Birbil, den Hertog, Fajemisin, Mixed-integer optimization with constraint learning.
    """

    leaf_domain = pyo.Binary
    manifest = Manifest(
        title="trees by leaf binaries and big-M",
        formula="x <= b + (upper - b)(1 - leaf[t,l]), x >= a - (a - lower)(1 - leaf[t,l]), [a, b] the leaf's box",
        reference="OptiCL (Maragno et al. 2023), with the least big-M of each row",
        features={"admits": 2, "not_above": 2, "not_below": 2, "side": 0, "ordered": 0, "left": 1, "right": 1},
    )

    def link(self) -> None:
        """Add the rows of each leaf's box, and those that keep all trees on one side of each cut."""
        self.refuse_labels("The leaf form")
        for tree, pairs in self._trees_with_leaves:
            for leaf, variable in pairs:
                if variable is not None:
                    self._bound(tree.position, leaf, variable)
        self.side = pyo.Var(pyo.Any, dense=False, bounds=(0, 1))
        for name, cuts in groupby(self.number_cuts, key=lambda cut: cut.name):
            splitting = [tree for tree in self.trees if name in {cut.name for cut in tree.cuts}]
            if len(splitting) > 1:
                self._keep_sides(list(cuts))

    def _keep_sides(self, cuts: list[NumberCut]) -> None:
        before: LinearForm | None = None
        for k, cut in enumerate(cuts):
            side = sum_form([self.side[cut.name, k]])
            if before is not None:
                Rows(self, "ordered").add((cut.name, k), before + side.scaled(-1.0), lower=0.0)
            before = side
            for tree, pairs in self._trees_with_leaves:
                if len(pairs) < 2:
                    continue
                lefts, rights = tree.sides.of(cut)
                index = (tree.position, cut.name, k)
                if lefts:
                    Rows(self, "left").add(index, _ends_in(pairs, lefts) + side, upper=1.0)
                if rights:
                    Rows(self, "right").add(index, _ends_in(pairs, rights) + side.scaled(-1.0), upper=0.0)

    def _bound(self, position: int, leaf: Leaf, variable: Any) -> None:
        on = LinearForm(0.0, ((1.0, variable),))
        for name, admitted in leaf.box.items():
            index = (position, leaf.node, name)
            if isinstance(admitted, frozenset):
                indicator = self.x.coordinate(name).indicator(admitted)
                Rows(self, "admits").add(index, on + indicator.scaled(-1.0), upper=0.0)
                continue
            leaf_low, leaf_high, _ = admitted
            column = self.x.numeric(name)
            if column.is_point:
                continue
            column.require_bounds("The leaf form")
            lower = column.interval.lower
            upper = column.interval.upper
            self._bind_if("not_above", index, column, on, distance=upper - leaf_high, end=upper)
            self._bind_if("not_below", index, column, on.scaled(-1.0), distance=leaf_low - lower, end=lower)
            column.claim(variable, 1, leaf_low, leaf_high)

    def make_cells(self) -> None:
        """Add the cuts to the columns, because the leaves alone may not distinguish two cells."""
        self.share_cuts()

    def differs(self) -> LinearForm:
        """Return, as a linear form, the number of trees that end in another leaf than now (see :meth:`place`)."""
        forms = []
        for variable in self.leaf.values():
            if round(variable.value or 0) == 1:
                forms.append(sum_form([variable]).complement())
        return total(forms)


# ==== Tree ensembles by Misic's split formulation with a coordinate per column: selectable, for research ==============


@final
class MisicTrees(AbstractForest):
    r"""The split formulation as published, with every split column as a continuous or integer coordinate.

    .. math::
        q_{fk} \le q_{f,k+1}, \qquad
        \sum_{\ell \text{ left of } s} z_{t\ell} \le q_{f(s)k(s)}, \quad
        \sum_{\ell \text{ right of } s} z_{t\ell} \le 1 - q_{f(s)k(s)} \\
        x_f \le l_{fk} + (\overline{x}_f - l_{fk})(1 - q_{fk}), \qquad
        x_f \ge r_{fk} - (r_{fk} - \underline{x}_f)\, q_{fk}

    ======== ==================== ============================================================
    symbol   component            meaning
    ======== ==================== ============================================================
    q        ``q[name, cut]``     binary, 1 iff the column lies left of the cut
    z        ``leaf[t, node]``    1 iff tree t ends in that leaf; continuous
    l, r     cut                  greatest value to its left, least value to its right
    ======== ==================== ============================================================

    The reach of a column is from :math:`\underline{x}_f` to :math:`\overline{x}_f`. The values l and r replace the
    paper's epsilon. The splits s are the nodes of a tree with the leaves in reach.

    Adds per cut one binary and three rows, per split node two rows, and a coordinate per split column. A MILP whose
    binaries determine the leaves exactly. The coordinate may lie between l and r, within the solver's tolerance of
    either side.

    Raises
    ------
    UnboundedFeatureError
        A split column has an infinite bound.

    References
    ----------
    Misic, Optimization of tree ensembles, Operations Research 2020.
    """

    manifest = Manifest(
        title="trees by split binaries with coordinates",
        formula="leaves left of a split <= q, right of it <= 1 - q; x <= l + (upper - l)(1 - q), x >= r - (r - lower)q",
        reference="Misic 2020, (M)",
        features={"q": 0, "increasing": 0, "not_above": 0, "not_below": 0, "left": 2, "right": 2},
    )

    def link(self) -> None:
        """Add the splits, their order, and the rows that connect them with leaves and coordinates."""
        self.refuse_labels("Misic's form")
        self._splits: list[tuple[str, Any, float]] = []
        self.q = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        left_of: dict[Cut, LinearForm] = {}
        index_of: dict[Cut, tuple[Any, ...]] = {}
        previous: NumberCut | None = None
        for cut in self.number_cuts:
            text = repr(cut.key[0])
            if previous is not None and previous.name == cut.name and previous.key[0] == cut.key[0]:
                text = f"{cut.key[0]!r} {cut.key[1]!r}"
            index_of[cut] = (cut.name, text)
            left_of[cut] = sum_form([self.q[index_of[cut]]])
            if previous is not None and previous.name == cut.name:
                form = left_of[cut] + left_of[previous].scaled(-1.0)
                Rows(self, "increasing").add(index_of[cut], form, lower=0.0)
            self._tie(cut, index_of[cut], left_of[cut])
            previous = cut
        left = Rows(self, "left")
        right = Rows(self, "right")
        for tree, pairs in self._trees_with_leaves:
            for node, (split, lefts, rights) in enumerate(_nodes(tree)):
                if split not in left_of:  # a cut on levels; those on numbers were added above
                    side, index_of[split] = self.right_of(split)
                    left_of[split] = side.complement()
                index = (tree.position, node, *index_of[split])
                left.add(index, _ends_in(pairs, lefts) + left_of[split].scaled(-1.0), upper=0.0)
                right.add(index, _ends_in(pairs, rights) + left_of[split], upper=1.0)

    def _tie(self, cut: NumberCut, index: tuple[Any, ...], left_of: LinearForm) -> None:
        """Add the rows that put the coordinate on the side of the cut that its binary says."""
        column = self.x.numeric(cut.name)
        last, first = cut.key
        column.require_bounds("Misic's form")
        lower = column.interval.lower
        upper = column.interval.upper
        self._bind_if("not_above", index, column, left_of, distance=upper - last, end=upper)
        self._bind_if("not_below", index, column, left_of, distance=first - lower, end=first)
        ((_, variable),) = left_of.terms
        self._splits.append((cut.name, variable, last))
        column.claim(variable, 1, lower, last)
        column.claim(variable, 0, first, upper)

    def place(self, point: Mapping[str, float]) -> None:
        """Set leaf variables and splits to the values that they have at a point."""
        super().place(point)
        for name, variable, last in self._splits:
            variable.set_value(int(point[name] <= last), skip_validation=True)

    def differs(self) -> LinearForm:
        """Return, as a linear form, the number of cuts of which a column is on another side than now."""
        flips = []
        for variable in self.q.values():
            flip = sum_form([variable])
            if round(variable.value or 0):
                flip = flip.complement()
            flips.append(flip)
        return total(flips)


# ==== Tree ensembles by ordered split binaries that all trees share, the default ======================================


@final
class OrderedTrees(AbstractForest):
    r"""Rows between the leaves and the cuts that all trees share on the person's columns.

    .. math::
        \sum_{\ell:\, b_{\ell f} \le l_k} z_{t\ell} \le 1 - y_{fk}, \qquad
        \sum_{\ell:\, a_{\ell f} \ge r_k} z_{t\ell} \le y_{fk} \qquad \forall t,\ \forall (f, k) \text{ split in } t \\
        \sum_{\ell:\, C_\ell \subseteq S} z_{t\ell} \le \sum_{c \in S} u_c, \qquad
        \sum_{\ell:\, C_\ell \cap S = \emptyset} z_{t\ell} \le 1 - \sum_{c \in S} u_c \qquad \text{(} S \text{ left)}

    ======== ==================== ============================================================
    symbol   component            meaning
    ======== ==================== ============================================================
    z        ``leaf[t, node]``    1 iff tree t ends in that leaf; integral whenever y and u are
    y        ``x.cut``            1 iff the column lies right of the cut
    u        ``x.level``          1 iff the column takes the level
    l, r     cut                  greatest value to its left, least value to its right
    a, b     leaf's box           least and greatest value that the leaf admits
    C        leaf's box           levels that the leaf admits
    S        cut                  levels to its left
    ======== ==================== ============================================================

    Where a column may be missing or hold a code, with a binary :math:`b_c` for each such label c, for y stands

    .. math:: y_{fk} + \sum_c \bigl([c \text{ goes right}] - [\text{home lies right}]\bigr)\, b_c,

    as y rests at home while b is 1; a leaf is left or right of a cut only with all labels that it admits.

    Where all rows over the scores want more of them, as in ``explain``'s own programs, a leaf that is worst for all has
    no variable, and the row of its tree is :math:`\sum_\ell z_{t\ell} \le 1`: z = 1 only if tree t ends in the leaf.

    For each tree with more than one leaf in reach, adds one variable per such leaf, one row, and at most two rows per
    distinct split left in it. MILP through the cuts and levels. Exact: the cuts lie between neighbouring values, so no
    epsilon is added.

    References
    ----------
    Misic, Optimization of tree ensembles (2020); categorical splits as sums of level binaries (Thebelt et al. 2022).
    """

    drops_worst = takes_need = True
    manifest = Manifest(
        title="trees by ordered split binaries",
        formula="sum_l leaf[t,l] = 1; leaves left of a cut <= 1 - cut, leaves right of it <= cut",
        reference="Misic 2020 (M), leaf rows over the whole tree (expset)",
        features={"left": 1, "right": 1},
    )

    def link(self) -> None:
        """Add at most two rows per pruned tree and distinct split."""
        self.share_cuts()
        left = Rows(self, "left")
        right = Rows(self, "right")
        sides: dict[Cut, tuple[LinearForm, tuple[Any, ...]]] = {}
        for tree, pairs in self._trees_with_leaves:
            for cut in tree.cuts:
                if cut not in sides:
                    sides[cut] = self.right_of(cut)
                is_right, name = sides[cut]
                index = (tree.position, *name)
                for rows, is_beyond, positions, side in zip(
                    (left, right), (is_right, is_right.scaled(-1.0)), tree.sides.of(cut), (1, 0), strict=True
                ):
                    form = _ends_in(pairs, positions)
                    if (form.terms or form.constant) and _ends_at(tree, cut, positions, side=side):
                        rows.add(index, form + is_beyond, upper=float(side))

    def other_leaves(self, point: Mapping[str, float]) -> LinearForm:
        """Return, as a linear form, beyond how many cuts one leaves the box of leaves in which a point lies.

        In that box all trees end in the same leaves, so that where it is 0 the scores are bitwise equal. It asks for no
        variable of a leaf. A point in none of the leaves left is none of the program: the form is then 1.
        """
        beyond: dict[tuple[Cut, bool], LinearForm] = {}
        for tree in self.trees:
            held = tree.sides.holding(point, self.x.reach)
            if not held:
                return LinearForm(1.0)
            for cut in tree.cuts:
                for is_left, leaves in zip((True, False), tree.sides.of(cut), strict=True):
                    if held[0] in leaves:
                        beyond.setdefault((cut, is_left), self.right_of(cut)[0])
        return total(is_right if is_left else is_right.complement() for (_, is_left), is_right in beyond.items())
