r"""Trees of scikit-learn: single trees and forests, boosted trees, and the order in which a forest adds its trees.

Single trees and forests: a row goes left iff ``float32(x) <= threshold``, compared in float64. A classifier's
scores are the mean over trees of the leaves' class fractions, added up in float64 in the order of the trees; the first
of the largest wins. A regressor's is the mean of the leaves' values.

Boosted trees: the score is a constant plus one leaf per tree, added up in float64, stage by stage.

====================== ============================ ==================================
what                   GradientBoosting             HistGradientBoosting
====================== ============================ ==================================
left iff               ``float32(x) <= threshold``  ``x <= threshold`` in float64
start of the sum       what the init predicts       baseline fitted with the loss
a leaf adds            ``learning_rate * value``    ``value``, the rate is in it
second of two classes  iff the score is >= 0        iff the score is > 0
several classes        one tree per stage and class, the first of the largest scores
====================== ============================ ==================================

Two classes have probability ``1 / (1 + exp(-score))``. With ``loss="exponential"`` the library has
``1 / (1 + exp(-2 * decision_function))``; the score read is ``2 * decision_function``, which rounds nothing, so label
and probability are exact and a margin counts in log-odds. Several classes have no probability: it is no sum.

Branches for missing numbers are not read: they matter to NaN only, which no row of a space holds. Categories that
HistGradientBoosting takes as such are codes 0, 1, ... of its own encoder, and a split is a set of codes. A category
that it was not fitted on is missing to it, and goes where missing ones go.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import joblib
import numpy as np

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.representation.decision_rule import Decision, Floats
from ceopt.formulations.predictors.representation.trees import Tree, TreeEnsemble

__all__ = ["BOOSTING", "TREES", "adds_in_order", "own_steps"]

#: Strategies of DummyClassifier and DummyRegressor that predict the same of every row; "stratified" draws.
_CONSTANT: Final = ("constant", "mean", "median", "most_frequent", "prior", "quantile", "uniform")
#: Losses whose prediction is the sum itself; those of counts and of positive values predict its exponential.
_SUMS: Final = ("absolute_error", "huber", "log_loss", "exponential", "quantile", "squared_error")
#: Code of a category that HistGradientBoosting was not fitted on. It takes any negative code for a missing value.
_UNKNOWN: Final = -1.0
#: What adds the trees' shares or values as its jobs finish, in ``sklearn.ensemble._forest``.
_FORESTS: Final = frozenset(
    {"ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier", "RandomForestRegressor"}
)


def _trees(model: Any, dtype: str) -> TreeEnsemble:  # noqa: ARG001
    """Return a tree or a forest, whose leaves hold shares of classes or values, divided by the number of trees."""
    name = type(model).__name__
    if model.n_outputs_ != 1:
        raise refuse(
            "one output", f"{name} was fitted on {model.n_outputs_}", "Fit one model per output, on one-dimensional y."
        )
    labels = _labels(model)
    members = getattr(model, "estimators_", [model])
    return TreeEnsemble(
        [_single_tree(member.tree_) for member in members], labels=labels, divisor=len(members), input_dtype="float32",
        probability=None if labels is None else "share", n_inputs=model.n_features_in_,
    )  # fmt: skip


def _labels(model: Any) -> list[Any] | None:
    """Return the labels of a classifier, which are two or more; None for a regressor."""
    if not hasattr(model, "classes_"):
        return None
    labels: list[Any] = model.classes_.tolist()
    if len(labels) == 1:
        name = type(model).__name__
        raise refuse("at least two classes", f"{name} knows only {labels[0]!r}", "Fit it on data with other labels.")
    return labels


def _single_tree(tree: Any) -> Tree:
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


def own_steps(model: Any) -> list[Any]:
    """Return the encoder of the categories that an estimator takes as such, with a finite code for unknown ones."""
    if getattr(model, "_preprocessor", None) is None:
        return []
    preparation = copy.deepcopy(model._preprocessor)  # noqa: SLF001
    preparation.named_transformers_["encoder"].set_params(unknown_value=_UNKNOWN)
    preparation.named_transformers_["numerical"].set_params(func=None)  # it casts to float64, as the encoding does
    return [preparation]


def _gradient(model: Any, dtype: str) -> TreeEnsemble:  # noqa: ARG001
    name = type(model).__name__
    init = model.init_
    dummy = type(init).__module__ == "sklearn.dummy" and getattr(init, "strategy", None) in _CONSTANT
    if not dummy and not (isinstance(init, str) and init == "zero"):
        raise refuse(
            "a constant start of the sum", f"{name} has init={init!r}", "Fit it with init=None or init='zero'."
        )
    rate = float(model.learning_rate)
    scores = model.estimators_.shape[1]
    # The library's own link and rounding; a constant is the same at any row.
    base = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0]  # noqa: SLF001
    trees = []
    for stage in model.estimators_:
        for k, member in enumerate(stage):
            tree = member.tree_
            leaf = member.tree_.children_left < 0
            links = (tree.children_left, tree.children_right)
            trees.append(
                _tree(leaf, tree.feature, tree.threshold, links, _column(rate * tree.value[:, 0, 0], k, scores))
            )
    return _ensemble(model, trees, base, "float32", "nonnegative")


def _histogram(model: Any, dtype: str) -> TreeEnsemble:  # noqa: ARG001
    scores = model.n_trees_per_iteration_
    trees = []
    for stage in model._predictors:  # noqa: SLF001
        for k, member in enumerate(stage):
            nodes = member.nodes
            links = (nodes["left"], nodes["right"])
            value = _column(nodes["value"], k, scores)
            leaf = nodes["is_leaf"] != 0
            trees.append(_tree(leaf, nodes["feature_idx"], nodes["num_threshold"], links, value, *_categories(member)))
    return _ensemble(model, trees, model._baseline_prediction[0], "float64", "positive")  # noqa: SLF001


def _ensemble(model: Any, trees: Iterable[Tree], base: Floats, width: str, decision: Decision) -> TreeEnsemble:
    name = type(model).__name__
    if model.loss not in _SUMS:
        raise refuse(
            "a prediction that is a sum of leaves", f"{name} has loss={model.loss!r}",
            "Fit it with loss='squared_error' on the logarithm of the target.",
        )  # fmt: skip
    labels = _labels(model)
    two = labels is not None and len(labels) == 2
    return TreeEnsemble(
        trees, base, labels=labels, divisor=0.5 if model.loss == "exponential" else 1.0, input_dtype=width,
        decision=decision if two else None, probability="logistic" if two else None, n_inputs=model.n_features_in_,
    )  # fmt: skip


def _categories(member: Any) -> tuple[Any, tuple[frozenset[float], ...]]:
    """Return the set of each node of a histogram tree, -1 for none, and the sets: the codes that go left."""
    nodes = member.nodes
    codes = np.arange(256)
    bits = member.raw_left_cat_bitsets[:, codes // 32] >> (codes % 32).astype(np.uint32) & 1
    by_code = np.flatnonzero(nodes["is_categorical"])
    subset = np.full(len(nodes), -1)
    subset[by_code] = np.arange(len(by_code))
    splits = nodes[by_code]
    unknown = [(_UNKNOWN,) if left else () for left in splits["missing_go_to_left"]]
    left = [np.flatnonzero(row).tolist() for row in bits[splits["bitset_idx"]]]
    return subset, tuple(frozenset([*known, *more]) for known, more in zip(left, unknown, strict=True))


def _tree(leaf: Any, feature: Any, threshold: Any, links: tuple[Any, Any], value: Floats, *categories: Any) -> Tree:
    # A split of missing values from all others has threshold inf; every number goes left, as with the largest float.
    numbers = np.minimum(np.where(leaf, 0.0, threshold), np.finfo(np.float64).max)
    left, right = (np.where(leaf, -1, link.astype(np.intp)) for link in links)
    return Tree(np.where(leaf, -1, feature), numbers, left, right, value, *categories)


def _column(leaves: Floats, k: int, scores: int) -> Floats:
    """Return the values of a tree that adds to score ``k`` alone, (nodes, scores)."""
    value = np.zeros((len(leaves), scores))
    value[:, k] = leaves
    return value


BOOSTING: Final[Mapping[str, Callable[[Any, str], TreeEnsemble]]] = {
    "GradientBoostingClassifier": _gradient,
    "GradientBoostingRegressor": _gradient,
    "HistGradientBoostingClassifier": _histogram,
    "HistGradientBoostingRegressor": _histogram,
}


def adds_in_order(model: Any) -> bool:
    """Tell whether no forest in a fitted model, however deep, adds its trees in several jobs.

    The forests of scikit-learn add what each tree says under a lock, in the order in which the jobs finish. How many
    there are is joblib's word: ``n_jobs``, where it is None that of ``joblib.parallel_config``, negative numbers from
    the machine's cores, and never more than trees. A number counts as it does where threads can be started: in a worker
    process that may have no children joblib makes it 1, but an answer has to hold wherever the model is asked. Every
    other model that is read adds in its members' order.
    """
    return not any(_jobs(forest) > 1 for forest in _forests(model, set()))


def _jobs(forest: Any) -> int:
    is_asked = forest.n_jobs is not None
    with joblib.parallel_config(backend="threading") if is_asked else contextlib.nullcontext():
        return min(int(joblib.effective_n_jobs(forest.n_jobs)), len(forest.estimators_))


def _forests(model: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the fitted forests among a model's own attributes; what is not fitted (templates) has no trees."""
    if id(model) in seen:
        return
    seen.add(id(model))
    if isinstance(model, Mapping):
        parts: Any = model.values()
    elif isinstance(model, list | tuple):
        parts = model
    elif type(model).__module__.partition(".")[0] != "sklearn":
        return
    elif type(model).__name__ in _FORESTS:
        if hasattr(model, "estimators_"):
            yield model
        return
    else:
        parts = getattr(model, "__dict__", {}).values()
    for part in parts:
        yield from _forests(part, seen)
