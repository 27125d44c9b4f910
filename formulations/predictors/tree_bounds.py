r"""Trees without a program: what a target needs of the leaves, the least cost it can have, and cells that are left.

Every point costs at least what the cheapest point of each of its leaves' boxes costs, and its score is the sum of its
leaves' values. Hence, with :math:`c_\ell` the least cost of a leaf's box, a point of cost :math:`B` can reach the need
:math:`s` only if

.. math:: \sum_t \max \{ v_\ell : \ell \in t,\ c_\ell \le B \} \ge s.

The least such B bounds the cost from below. And a cell of a column may be left out under a budget B, if the same sum
over the leaves that admit it, each at the cost that it has with that cell, does not reach s. As cells go, boxes shrink
and cost more, so that others may go in turn; where a column has none left, no point within
the budget reaches the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.leaf_boxes import GridLeaves, leaf_boxes
from ceopt.formulations.predictors.reaches import own_decision, wanted_sums
from ceopt.formulations.predictors.ties import exact_side_of, tie_width
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.targets import Target
    from ceopt.solvers.checks import Floats

_PROBING = "probing the cells of the trees"
#: Rounds of probing: each drops cells, or is the last.
_ROUNDS = 30


@final
@dataclass(frozen=True, slots=True, eq=False)
class TreeNeed:
    """What a target needs of the leaves of a model of trees.

    Parameters
    ----------
    values
        Value of each leaf of :func:`~ceopt.formulations.predictors.leaf_boxes.leaf_boxes` for each of m sums, (L, m).
    need
        What each sum has to reach, (m,).
    rounding
        How far a sum of the library's may be from the exact one.
    reliefs, raised
        What each sum with its leaves' reliefs has to reach besides, (L, m) and (m,), where ties are told apart by
        :class:`~ceopt.formulations.predictors.ties.ExactSide`; -inf where they are not.
    """

    values: Floats
    need: Floats
    rounding: float
    reliefs: Floats
    raised: Floats

    @classmethod
    def of(cls, predictor: Predictor, target: Target, margin: float | None = None) -> TreeNeed | None:
        """Return the need; None for another model, and where a target is several alternatives or counts trees.

        Without a margin it is what the library may accept.
        """
        known = _NEEDS.setdefault(predictor, {})
        if (target, margin) not in known:
            known[target, margin] = cls._of(predictor, target, margin)
        return known[target, margin]

    @classmethod
    def _of(cls, predictor: Predictor, target: Target, margin: float | None) -> TreeNeed | None:
        if not predictor.is_trees or len(predictor.forests) != 1 or predictor.forests[0] is not predictor:
            return None
        alternatives = wanted_sums(predictor.core, target)
        if len(alternatives) != 1:
            return None
        sums = alternatives[0][1]
        core = predictor.core
        values = leaf_boxes(predictor).values
        weights = np.array([one.weights for one in sums]).reshape(len(sums), -1).T
        divisor = float(getattr(core, "divisor", 1.0))
        base = np.asarray(getattr(core, "base", 0.0), dtype=np.float64) @ weights / divisor
        levels = np.array([one.level for one in sums]) + (margin or 0.0)
        reliefs = np.zeros((len(values), len(sums)))
        raised = np.full(len(sums), -np.inf)
        for k, one in enumerate(sums):
            if margin is None and math.isfinite(one.level):
                accepts, more = own_decision(predictor, target, one)
                exact = exact_side_of(predictor, one.weights, one.level, accepts, more=more)
                if exact is not None:
                    reliefs[:, k] = exact.relief_of(values)
                    raised[k] = exact.side.least
        rounding = 2.0 * tie_width(predictor, target)
        return cls(values @ weights / divisor, levels - base, rounding, reliefs, raised - base)

    def among(self, leaves: GridLeaves) -> tuple[GridLeaves, TreeNeed]:
        """Return leaves with their values for all that these have to reach, and the need of these leaves.

        A sum is asked for once where no leaf has a relief, and else twice.
        """
        values, need = [], []
        for k, raised in enumerate(self.raised.tolist()):
            reliefs = self.reliefs[leaves.origin, k]
            own = self.values[leaves.origin, k]
            is_raised = raised > -math.inf
            is_exact = is_raised and not reliefs.any()
            values.append(own)
            need.append(raised if is_exact else self.need[k])
            if is_raised and not is_exact:
                values.append(own + reliefs)
                need.append(raised)
        told = replace(self, need=np.array(need), raised=np.full(len(need), -np.inf))
        return replace(leaves, values=np.stack(values, axis=1)), told


#: By model: all its leaves are read for one.
_NEEDS: Final[WeakKeyDictionary[Predictor, dict[tuple[Target, float | None], TreeNeed | None]]] = WeakKeyDictionary()


# ==== The least budget ================================================================================================
def least_budget(leaves: GridLeaves, costs: Floats, need: TreeNeed) -> float:
    """Return the least budget at which the best leaves within it reach the need; infinite where none does."""
    return least_budget_of(leaves.tree, costs, leaves.values, need)


def least_budget_of(tree: NDArray[np.intp], costs: Floats, values: Floats, need: TreeNeed) -> float:
    """Return the same of leaves given by their trees, costs (L,) and values (L, m)."""
    bound = 0.0
    for k, level in enumerate(need.need.tolist()):
        if math.isinf(level):
            bound = max(bound, 0.0 if level < 0.0 else math.inf)
        else:
            bound = max(bound, _least_budget(tree, costs, values[:, k], level - need.rounding))
    return bound


def _least_budget(tree: NDArray[np.intp], costs: Floats, values: Floats, level: float) -> float:
    """Return where the sum over trees of the best value within a budget, which grows with it in steps, reaches a level.

    The best value of a tree is a running maximum over its leaves in order of cost; all trees' increments together, in
    order of cost, are the steps.
    """
    order = np.lexsort((costs, tree))
    tree, costs, values = tree[order], costs[order], values[order]
    ranks = np.empty(len(values), dtype=np.intp)
    by_value = np.argsort(values, kind="stable")
    ranks[by_value] = np.arange(len(values))
    best = np.maximum.accumulate(ranks + tree * len(values)) - tree * len(values)
    best_value = values[by_value[best]]
    is_first = np.diff(tree, prepend=-1) != 0
    steps = np.where(is_first, best_value, np.diff(best_value, prepend=0.0))
    rises = np.flatnonzero(is_first | (steps > 0.0))
    rises = rises[np.argsort(costs[rises], kind="stable")]
    sums = np.cumsum(steps[rises])
    reached = np.searchsorted(
        np.maximum.accumulate(np.where(np.cumsum(is_first[rises]) == is_first.sum(), sums, -np.inf)), level
    )
    return float(costs[rises[reached]]) if reached < len(rises) else math.inf


# ==== Probing =========================================================================================================
@final
@dataclass(frozen=True, slots=True, eq=False)
class CellsLeft:
    """The values of a grid that are left under a budget, and the leaves that they reach.

    Parameters
    ----------
    leaves
        Of the whole grid, those within the budget.
    kept
        Per column, which of its values are left.
    """

    leaves: GridLeaves
    kept: tuple[NDArray[np.bool_], ...]

    @property
    def is_empty(self) -> bool:
        """Whether no point is left."""
        return not all(own.any() for own in self.kept)


def probed(leaves: GridLeaves, prices: Sequence[Floats], need: TreeNeed, budget: float) -> CellsLeft:
    """Return the cells that a point within the budget may take, as far as the best leaves of each tree tell.

    No point within the budget that reaches the need takes another cell.
    """
    kept = tuple(own <= budget for own in prices)
    trees = len(np.unique(leaves.tree))
    for _ in range(_ROUNDS):
        checkpoint(_PROBING)
        leaves = leaves.within(kept)
        prices_left = [np.where(own, price, np.inf) for own, price in zip(kept, prices, strict=True)]
        least = leaves.column_prices(prices_left)
        total = np.zeros(len(leaves))
        for own in least.values():
            total += own
        near = total <= budget
        leaves = leaves.taken(near)
        total = total[near]
        nothing = tuple(np.zeros(len(own), dtype=bool) for own in kept)
        if len(np.unique(leaves.tree)) < trees:
            return CellsLeft(leaves, nothing)
        tree = np.unique(leaves.tree, return_inverse=True)[1].reshape(-1)
        floor = [level - need.rounding if math.isfinite(level) else level for level in need.need.tolist()]
        best_alone = _sums_of_best(tree, leaves.values, trees)
        if any(best < level for best, level in zip(best_alone, floor, strict=True)):
            return CellsLeft(leaves, nothing)
        after = list(kept)
        for j in leaves.split:
            rest = total - least[j][near]
            for k, level in enumerate(floor):
                sums = leaves.best_by_value(j, tree, leaves.values[:, k], budget - rest, prices_left[j])
                after[j] = after[j] & (sums >= level)
            if not after[j].any():
                return CellsLeft(leaves, tuple(after))
        if all(np.array_equal(a, b) for a, b in zip(after, kept, strict=True)):
            break
        kept = tuple(after)
    return CellsLeft(leaves, kept)


def _sums_of_best(tree: NDArray[np.intp], values: Floats, trees: int) -> list[float]:
    """Return for each sum what the best leaves of all trees add up to."""
    found = []
    for own in values.T:
        best = np.full(trees, -np.inf)
        np.maximum.at(best, tree, own)
        found.append(float(best.sum()))
    return found
