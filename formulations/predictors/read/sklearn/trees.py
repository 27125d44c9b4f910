"""Trees and forests of scikit-learn: a row goes left iff ``float32(x) <= threshold``, compared in float64.

A classifier's scores are the mean over trees of the leaves' class fractions, added up in float64 in the order of the
trees; the first of the largest wins. A regressor's is the mean of the leaves' values. Branches for missing values are
not read: they matter to NaN only, which no row of a space holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ceopt.formulations.predictors.read.pipeline.trace import refuse
from ceopt.formulations.predictors.representation.representation import Tree, TreeEnsemble

__all__ = ["TREES"]


def _trees(model: Any, dtype: str) -> TreeEnsemble:  # noqa: ARG001
    name = type(model).__name__
    if model.n_outputs_ != 1:
        raise refuse(
            "one output", f"{name} was fitted on {model.n_outputs_}", "Fit one model per output, on one-dimensional y."
        )
    labels = model.classes_.tolist() if hasattr(model, "classes_") else None
    if labels is not None and len(labels) == 1:
        raise refuse("at least two classes", f"{name} knows only {labels[0]!r}", "Fit it on data with other labels.")
    members = getattr(model, "estimators_", [model])
    return TreeEnsemble(
        [_tree(member.tree_) for member in members], labels=labels, divisor=len(members), input_dtype="float32",
        probability=None if labels is None else "share", n_inputs=model.n_features_in_,
    )  # fmt: skip


def _tree(tree: Any) -> Tree:
    leaf = tree.children_left < 0
    # A split of missing values from all others has threshold inf; every number goes left, as with the largest float.
    threshold = np.minimum(np.where(leaf, 0.0, tree.threshold), np.finfo(np.float64).max)
    feature = np.where(leaf, -1, tree.feature)
    return Tree(feature, threshold, tree.children_left, tree.children_right, tree.value[:, 0, :])


TREES: Final[Mapping[str, Callable[[Any, str], TreeEnsemble]]] = dict.fromkeys(
    (
        "DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor",
        "ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier", "RandomForestRegressor",
    ),
    _trees,
)  # fmt: skip
