r"""Isolation forests of scikit-learn: which rows they call ordinary, as a sum over trees.

A row ends in leaf l of tree t, at a depth of :math:`d_l` splits, with :math:`n_l` of the rows that grew the tree. It is
no outlier iff ``decision_function`` is at least 0,

.. math::
    -2^{-\sum_t h_t / (T c(\psi))} \ge o \iff \sum_t h_t \ge -T c(\psi) \log_2(-o), \qquad h = d_l + c(n_l), \\
    c(1) = 0, \quad c(2) = 1, \quad c(n) = 2 (\ln(n - 1) + \gamma) - \tfrac{2 (n - 1)}{n},

with T trees, :math:`\psi` rows a tree and o the library's ``offset_``. A row goes left iff ``float32(x) <= threshold``,
and NaN where the node says. The library adds up in float64, tree by tree; the level on the right is the least float for
which its own arithmetic says "ordinary".
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import ceopt.formulations.predictors.readers.sklearn as library
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.readers.agreement import gap_refusal, require_agreement
from ceopt.formulations.predictors.readers.model_input import names_of, refuse, same_version
from ceopt.formulations.predictors.readers.pipeline import encode, split
from ceopt.formulations.predictors.readers.sklearn.trees import grown
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.tolerances import SAME_SUM
from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import UnsupportedModelError

__all__ = ["OUTLIER_LABELS", "decision_of", "read_isolation_forest"]

#: What the library says of an outlier, and of a row that is none.
OUTLIER_LABELS: Final = (-1, 1)


def read_isolation_forest(model: Any, space: FeatureSpace) -> Predictor:
    r"""Read an isolation forest, alone or behind the steps of a pipeline, over those columns that it was fitted on.

    Parameters
    ----------
    model
        A fitted ``IsolationForest``, or a pipeline that ends in one.
    space
        The raw columns, with all on which the model was fitted, and perhaps others.

    Returns
    -------
    Predictor
        Over the columns of the model; its score is :math:`\sum_t h_t`, its labels are -1 and 1.

    Raises
    ------
    UnsupportedModelError
        It is something else, or flags every row; a step has no exact representation; columns are not the space's.
    """
    steps, forest = split(model)
    if type(forest).__name__ != "IsolationForest":
        raise refuse(
            "an IsolationForest of scikit-learn, or a pipeline that ends in one", f"it is {type(forest).__name__}",
            "Fit one: IsolationForest(random_state=0).fit(X).",
        )  # fmt: skip
    known = names_of(model, space)
    count = getattr(model, "n_features_in_", len(space))
    if known is None and count != len(space):
        raise refuse(
            "the names of the columns that the forest was fitted on",
            f"it was fitted on an array of {count} and the space has {len(space)}",
            "Fit it on a frame, such as frame[list_of_columns].",
        )  # fmt: skip
    if known is not None and all(name in space for name in known):
        space = FeatureSpace([space[name] for name in known])
    encoding = encode(steps, forest, space)
    with same_version(forest):
        core = _path_lengths(forest)
    predictor = Predictor(core, encoding, model, space)
    try:
        require_agreement(predictor, model, library)
    except UnsupportedModelError as error:
        raise gap_refusal(model, space) or error from error.__cause__
    return predictor


def _path_lengths(forest: Any) -> TreeEnsemble:
    """Return the sum of the trees' path lengths, which decides at the level of the library."""
    trees = []
    for tree, columns in zip(forest.estimators_, forest.estimators_features_, strict=True):
        trees.append(grown(tree.tree_, _lengths(tree.tree_)[:, None], gaps=True, columns=np.asarray(columns)))
    greatest = 0.0
    for tree in trees:  # rounded as the library's own sums are
        greatest += float(tree.value[~tree.inner].max())
    level = _level(forest)
    if not level <= greatest:
        raise refuse(
            "an isolation forest that flags not every row", f"its offset_ is {forest.offset_!r}",
            "Fit it with contamination='auto', or a smaller one, on more rows.",
        )  # fmt: skip
    return TreeEnsemble(
        trees, labels=OUTLIER_LABELS, decision="nonnegative", level=level, input_dtype="float32",
        n_inputs=forest.n_features_in_,
    )  # fmt: skip


def _lengths(tree: Any) -> Floats:
    """Return the path length of each node, (nodes,), in the library's own order of summation."""
    depth = np.ones(tree.node_count)
    for node in range(tree.node_count):  # a child comes after its parent
        if tree.children_left[node] >= 0:
            depth[tree.children_left[node]] = depth[tree.children_right[node]] = depth[node] + 1.0
    lengths: Floats = depth + _average_path_length(tree.n_node_samples) - 1.0
    return lengths


def _average_path_length(counts: Any) -> Floats:
    """Return c(n), the mean number of splits that isolate one of n rows, elementwise."""
    n = np.asarray(counts)
    lengths = np.where(n == 2, 1.0, 0.0)
    many = n > 2
    lengths[many] = 2.0 * (np.log(n[many] - 1.0) + np.euler_gamma) - 2.0 * (n[many] - 1.0) / n[many]
    return lengths


def decision_of(forest: Any, total: float) -> float:
    """Return the library's ``decision_function`` for a sum of path lengths, in its own arithmetic."""
    divisor = _divisor(forest)
    score = 1.0 if divisor == 0.0 else total / divisor  # trees of one row: the library gives each row a half
    return float(-(2 ** -np.array([score]))[0] - float(forest.offset_))


def _divisor(forest: Any) -> float:
    return float(len(forest.estimators_) * _average_path_length([forest.max_samples_])[0])


def _level(forest: Any) -> float:
    """Return the least sum of path lengths that the library does not flag; infinity where it flags every row."""
    offset = float(forest.offset_)
    divisor = _divisor(forest)
    if divisor == 0.0:  # every row has the same score
        return 0.0 if decision_of(forest, 0.0) >= 0.0 else math.inf
    if offset >= 0.0:  # no sum is enough
        return math.inf
    middle = -divisor * math.log2(-offset)
    low = middle - SAME_SUM * max(abs(middle), 1.0)
    high = middle + SAME_SUM * max(abs(middle), 1.0)
    if decision_of(forest, low) >= 0.0 or decision_of(forest, high) < 0.0:
        return middle
    while True:
        between = 0.5 * (low + high)
        if not low < between < high:
            return high
        if decision_of(forest, between) >= 0.0:
            high = between
        else:
            low = between
