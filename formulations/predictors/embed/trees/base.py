"""Base of the three tree formulations: leaf variables, one leaf per tree, and scores linear in the leaves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.embed.trees.reachable_leaves import (
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
from ceopt.formulations.predictors.representation.trees import TreeEnsemble
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.formulations.predictors.representation.decision_rule import Floats
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.solvers.manifest import Manifest

__all__ = ["AbstractForest"]

#: What the time limit ends here.
_STAGE = "building the trees"


class AbstractForest(AbstractEmbedded):
    r"""A tree ensemble with a variable per leaf that the person can reach.

    .. math:: \sum_\ell z_{t\ell} = 1 \,\forall t,\ s_k = \bigl(b_k + \sum_{t,\ell} v_{t\ell k} z_{t\ell}\bigr) / D.

    with z = 1 iff tree t ends in the leaf, v the leaf's value, b the base score and D the divisor. The rows that tie
    leaves to the columns are ``link``: of ``ordered.py`` (the default), ``misic.py`` or ``leaf.py``.
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
                form = LinearForm(0.0, tuple((1.0, variable) for _, variable in pairs))
                rows.add(tree.position, form, lower=1.0, upper=1.0)
        self.link()
        self.publish_scores()

    @abstractmethod
    def link(self) -> None:
        """Tie the leaves to the coordinates."""

    def share_cuts(self) -> None:
        """Put the cuts of all trees on the person's numeric columns."""
        for name, cuts in groupby(self.number_cuts, key=lambda cut: cut.name):
            self.x.numeric(name).add_cuts(cut.key for cut in cuts)

    def level_side(self, cut: LevelCut) -> tuple[LinearForm, tuple[Any, ...]]:
        """Return a form, 1 where a level goes right of a cut, and the cut's index: column and levels that go left."""
        coordinate = self.x.coordinate(cut.name)
        levels = (coordinate.feature.levels[k] for k in sorted(cut.ranks))
        return coordinate.indicator(cut.ranks).complement(), (cut.name, *levels)

    def goes_right(self, cut: Cut) -> tuple[LinearForm, tuple[Any, ...]]:
        """Return a form, 1 where the row goes right of a cut, and the cut's index."""
        if isinstance(cut, LevelCut):
            return self.level_side(cut)
        cells = self.x.numeric(cut.name).cells
        return cells.right_of(cut.key), (cut.name, cells.text(cut.key))

    def place(self, point: Mapping[str, float]) -> None:
        """Set the leaves to those that the point reaches."""
        checkpoint(_STAGE)
        for pairs in self._variables:
            for leaf, variable in pairs:
                if variable is not None:
                    variable.set_value(1 if _contains(leaf.box, point) else 0, skip_validation=True)

    def ending_in(self, admits: Callable[[Floats], NDArray[np.bool_]]) -> LinearForm:
        """Return the number of trees that end in a leaf whose values (leaves, K) are admitted."""
        constant = 0.0
        terms: list[tuple[float, Any]] = []
        for pairs in self._variables:
            if pairs:
                admitted = admits(np.array([leaf.value for leaf, _ in pairs])).tolist()
            else:
                admitted = [False]
            if all(admitted):
                constant += 1.0
            else:
                terms.extend((1.0, z) for inside, (_, z) in zip(admitted, pairs, strict=False) if inside)
        return LinearForm(constant, tuple(terms))

    def other_leaves(self, point: Mapping[str, float]) -> LinearForm:
        """Return the number of trees that end in a leaf with other values than at a point.

        Where it is 0 the scores are the same, float for float, and so is whatever the library makes of them.
        """
        predictor = self.predictor
        core = self.predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - chosen by embed
        row = predictor.encoding.matrix([[point[name] for name in predictor.space.names]])
        nodes = core.apply(row)[0].tolist()
        constant = float(len(nodes))
        terms = list[tuple[float, Any]]()
        for pairs, tree, node in zip(self._variables, core.trees, nodes, strict=True):
            said = tuple(tree.value[node].tolist())
            same = [variable for leaf, variable in pairs if leaf.value == said]
            if None in same:  # the only leaf in reach
                constant -= 1.0
            else:
                terms += [(-1.0, variable) for variable in same]
        return LinearForm(constant, tuple(terms))

    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of the scores, one term per leaf whose value matters."""
        core = self.predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - chosen by embed
        checkpoint(_STAGE)
        constant = sum(w * b for w, b in zip(weights, core.base.tolist(), strict=True))
        terms: list[tuple[float, Any]] = []
        for pairs in self._variables:
            values = []
            for leaf, _ in pairs:
                values.append(sum(w * v for w, v in zip(weights, leaf.value, strict=True)))
            if not values:
                continue
            # Measured from the tree's least leaf: fewer nonzeros, and equal trees cost nothing.
            floor = min(values)
            constant += floor
            terms.extend((value - floor, z) for value, (_, z) in zip(values, pairs, strict=True) if value != floor)
        return LinearForm(constant, tuple(terms)).scaled(1.0 / core.divisor)

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return bounds of the combination: the sum of each tree's extreme leaves."""
        core = self.predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - chosen by embed
        low = high = sum(w * b for w, b in zip(weights, core.base.tolist(), strict=True))
        for pairs in self._variables:
            values = []
            for leaf, _ in pairs:
                values.append(sum(w * v for w, v in zip(weights, leaf.value, strict=True)))
            if values:
                low = low + min(values)
                high = high + max(values)
        return low / core.divisor, high / core.divisor


def _contains(box: Box, point: Mapping[str, float]) -> bool:
    for name, admitted in box.items():
        value = point[name]
        if isinstance(admitted, frozenset):
            inside = value in admitted
        else:
            inside = admitted[0] <= value <= admitted[1]
        if not inside:
            return False
    return True
