"""The trees of a forest, each asked alone: how many decide as a target says, in numbers and in the program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.linear_form import LinearForm
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.embed.trees.base import AbstractForest
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation, Floats
from ceopt.formulations.predictors.representation.predictor import Predictor
from ceopt.formulations.predictors.representation.trees import TreeEnsemble
from ceopt.formulations.targets import Labels, Values
from ceopt.solvers.errors import UnsupportedModelError

__all__ = ["agreeing", "agreeing_trees", "forest_of", "meets_alone"]


def forest_of(core: AbstractRepresentation) -> TreeEnsemble:
    """Return a model whose score is the mean of its trees', or refuse it: the trees of others say nothing alone."""
    if isinstance(core, TreeEnsemble) and core.divisor == len(core.trees) and not core.base.any():
        return core
    is_sum = isinstance(core, TreeEnsemble)
    raise UnsupportedModelError(
        "Disagreement", "a forest, bagged trees or a single tree, whose trees decide each alone",
        f"this model is {'a sum of trees that correct each other' if is_sum else 'not an average of single trees'}",
        "Ask for the model's own decision.",
    )  # fmt: skip


def meets_alone(core: AbstractRepresentation, values: Floats, wanted: Labels | Values) -> NDArray[np.bool_]:
    """Return whether a tree that ends in a leaf with such values (leaves, K) decides as wanted by itself."""
    scores = values[:, 0] if core.n_scores == 1 else values
    if isinstance(wanted, Values):
        return wanted.holds(scores)
    return np.isin(core.head.positions(scores), wanted.wanted)


def agreeing_trees(predictor: Predictor, coordinates: Floats, wanted: Labels | Values) -> NDArray[np.intp]:
    """Return how many trees decide as wanted at rows of coordinates, (n,)."""
    core = forest_of(predictor.core)
    leaves = core.apply(predictor.encoding.matrix(coordinates))
    met = [meets_alone(core, tree.value, wanted)[nodes] for tree, nodes in zip(core.trees, leaves.T, strict=True)]
    return np.asarray(np.sum(met, axis=0))


def agreeing(block: AbstractEmbedded, wanted: Labels | Values) -> LinearForm:
    """Return the number of trees that decide as wanted, as a form over the leaves of an embedded forest."""
    core = forest_of(block.predictor.core)
    assert isinstance(block, AbstractForest)  # noqa: S101 - every formulation of trees is one
    return block.ending_in(lambda values: meets_alone(core, values, wanted))
