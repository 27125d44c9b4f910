r"""Trees of scikit-learn, and ensembles over members of any kind.

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

NaN goes where the node says, ``missing_go_to_left``, whether the model was fitted with missing cells or not;
GradientBoosting takes none. Categories that HistGradientBoosting takes as such are codes 0, 1, ... of its own encoder,
and a split is a set of codes. A category that it was not fitted on is missing to it, and goes where missing ones go.

Ensembles add up what their members say as the library does:

==================== ============================================ ==========================
model                score                                        prediction
==================== ============================================ ==========================
VotingClassifier     hard: weights of the members that say k      the first of the largest
\                    soft: weighted mean of the members' shares   the first of the largest
BaggingClassifier    mean share of the members, or of their votes the first of the largest
AdaBoostClassifier   two: weights for the second less those for   the second iff > 0
\                    the first, twice over the sum of weights
\                    K: w where a member says k, else -w / (K-1)  the first of the largest
OneVsRestClassifier  one member's decision value or probability   the largest; ties as the
\                    per label                                    installed version has them
VotingRegressor,     (weighted) mean of the members' values       the score
BaggingRegressor
==================== ============================================ ==========================

Members of VotingClassifier and BaggingClassifier say positions of labels. Sums run over the members in order, so a
score equals the library's bit for bit, but for a mean of eight regressors or more, which NumPy may add up in pairs, and
for members that are computed in several jobs.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import joblib
import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.readers.model_input import class_labels, refuse
from ceopt.formulations.predictors.readers.responses import response
from ceopt.formulations.predictors.readers.sklearn.members import (
    ColumnSubset,
    Composite,
    Member,
    average,
    composite,
    count,
    labels_of,
    one_ensemble,
    titled,
)
from ceopt.formulations.predictors.representation import Decision
from ceopt.formulations.predictors.trees import Tree, TreeEnsemble
from ceopt.formulations.space.encoding import Encoding
from ceopt.solvers.checks import Floats

if TYPE_CHECKING:
    from ceopt.formulations.predictors.readers import Behind

# ==== Trees of scikit-learn: single trees and forests, boosted trees, and the order in which a forest adds its trees ==

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
            "one output",
            f"{name} was fitted on {model.n_outputs_}",
            "Fit one model per output, on one-dimensional y, or read one: predictors.read(model, space, output=0).",
        )
    labels = class_labels(model)
    members = getattr(model, "estimators_", [model])
    trees = [grown(member.tree_, member.tree_.value[:, 0, :], gaps=True) for member in members]
    return TreeEnsemble(
        trees, labels=labels, divisor=len(members), input_dtype="float32",
        probability=None if labels is None else "share", n_inputs=model.n_features_in_,
    )  # fmt: skip


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
            trees.append(grown(member.tree_, _column(rate * member.tree_.value[:, 0, 0], k, scores)))
    return _ensemble(model, trees, base, "float32", "nonnegative")


def _histogram(model: Any, dtype: str) -> TreeEnsemble:  # noqa: ARG001
    trees = []
    for stage in model._predictors:  # noqa: SLF001
        for k, member in enumerate(stage):
            nodes = member.nodes
            links = (nodes["left"], nodes["right"])
            value = _column(nodes["value"], k, model.n_trees_per_iteration_)
            leaf = nodes["is_leaf"] != 0
            tests = leaf, nodes["feature_idx"], nodes["num_threshold"], links
            gaps = nodes["missing_go_to_left"] != 0
            trees.append(_tree(*tests, value, gaps, *_categories(member)))
    return _ensemble(model, trees, model._baseline_prediction[0], "float64", "positive")  # noqa: SLF001


def _ensemble(model: Any, trees: Iterable[Tree], base: Floats, width: str, decision: Decision) -> TreeEnsemble:
    if model.loss not in _SUMS:
        raise refuse(
            "a prediction that is a sum of leaves", f"{type(model).__name__} has loss={model.loss!r}",
            "Fit it with loss='squared_error' on the logarithm of the target.",
        )  # fmt: skip
    labels = class_labels(model)
    of_two: dict[str, Any] = {}
    if labels is not None and len(labels) == 2:
        of_two = {"decision": decision, "probability": "logistic"}
    return TreeEnsemble(
        trees, base, labels=labels, divisor=0.5 if model.loss == "exponential" else 1.0, input_dtype=width,
        n_inputs=model.n_features_in_, **of_two,
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


def grown(tree: Any, value: Floats, *, gaps: bool = False, columns: NDArray[np.intp] | None = None) -> Tree:
    """Return a tree of scikit-learn's own kind with values (nodes, scores), with ``gaps`` one that takes NaN.

    ``columns``: those of the matrix that the tree was grown on, where these are not all, (k,).
    """
    links = (tree.children_left, tree.children_right)
    sides = tree.missing_go_to_left != 0 if gaps else None
    leaf = tree.children_left < 0
    feature = tree.feature
    if columns is not None:
        feature = columns[np.where(leaf, 0, feature)]
    return _tree(leaf, feature, tree.threshold, links, value, sides)


def _tree(  # noqa: PLR0917 - called with all of them, in this order
    leaf: Any,
    feature: Any,
    threshold: Any,
    links: tuple[Any, Any],
    value: Floats,
    missing_left: NDArray[np.bool_] | None,
    subset: Any = (),
    sets: tuple[frozenset[float], ...] = (),
) -> Tree:
    # A split of missing values from all others has threshold inf; every number goes left, as with the largest float.
    numbers = np.minimum(np.where(leaf, 0.0, threshold), np.finfo(np.float64).max)
    left, right = (np.where(leaf, -1, link.astype(np.intp)) for link in links)
    return Tree(np.where(leaf, -1, feature), numbers, left, right, value, subset, sets, missing_left)


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


# ==== Ensembles over members of any kind, as their library adds them up ===============================================


def _values(members: Sequence[Member]) -> list[Predictor]:
    """Return members that are regressors, or refuse one that is not."""
    for member in members:
        if member.predictor.labels is not None:
            raise refuse("members that are regressors", f"{member.title} is a classifier", "Fit it over regressors.")
    return _predictors(members)


def _predictors(members: Sequence[Member]) -> list[Predictor]:
    return [member.predictor for member in members]


# ---- voting ----------------------------------------------------------------------------------------------------------
def _voting(model: Any, behind: Behind) -> tuple[list[Member], Floats | None]:
    """Return the members and their weights."""
    name = type(model).__name__
    members = []
    for key, member in model.named_estimators_.items():
        if not isinstance(member, str):  # "drop"
            members.append(Member.read(behind, f"member {key!r} of {name}", member))
    weights = model._weights_not_none  # noqa: SLF001 - without those of members that are dropped
    if weights is None:
        return members, None
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (len(members),) or not (numbers >= 0.0).all() or not numbers.sum() > 0.0:
        raise refuse(
            f"{len(members)} weights of at least 0 that are not all 0", f"{name} has weights={model.weights!r}",
            "Fit it with such weights, or with weights=None.",
        )  # fmt: skip
    return members, numbers


def _voting_classifier(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    members, weights = _voting(model, behind)
    parts = [member.places(range(len(labels))) for member in members]
    if model.voting == "hard":
        return composite(count(_predictors(members), _weighted(parts, weights), labels=labels))
    only = members[0].predictor.core
    if len(members) == 1 and only.n_scores == 1 and only.probability is not None:
        return _only(members[0], labels)
    instead = "Fit it with voting='hard', or vote softly over trees and forests."
    return _mean([member.shares(instead) for member in members], parts, weights, labels)


def _only(member: Member, labels: Sequence[Any]) -> Composite:
    """Return the only member of a soft vote: the label of the larger probability, the first on ties."""
    asked = response(member, ["predict_proba"])
    head = member.predictor.core.head
    return asked.decided(labels, lambda s: head.of_position(s, 1) > head.of_position(s, 0), asked.probability)


def _mean(
    members: Sequence[Predictor], parts: Sequence[Floats], weights: Floats | None, labels: Sequence[Any] | None
) -> Composite:
    divisor = len(members) if weights is None else float(weights.sum())
    return average(members, _weighted(parts, weights), divisor, labels)


def _weighted(parts: Sequence[Floats], weights: Floats | None) -> Sequence[Floats]:
    if weights is None:
        return parts
    return [weight * part for weight, part in zip(weights, parts, strict=True)]


def _voting_regressor(model: Any, behind: Behind) -> Composite:
    members, weights = _voting(model, behind)
    return _mean(_values(members), [np.eye(1)] * len(members), weights, None)


# ---- bagging ---------------------------------------------------------------------------------------------------------
def _bagged(model: Any, behind: Behind) -> list[Member]:
    drawn = slice(model.n_estimators)
    return _on_columns(model, behind, model.estimators_[drawn], model.estimators_features_[drawn])


def _on_columns(model: Any, behind: Behind, estimators: Sequence[Any], columns: Sequence[Any]) -> list[Member]:
    """Return members that are given columns of an array; plain trees share one look at all of them."""
    places = [f"member {k} of {type(model).__name__}" for k in range(len(estimators))]
    members = []
    if all(_is_plain_tree(one) for one in estimators):
        whole = behind.encoding(model, ColumnSubset(model, np.arange(model.n_features_in_)))
        for place, one, some in zip(places, estimators, columns, strict=True):
            seen = Encoding(tuple(whole.columns[column] for column in some), whole.names)
            core = TREES[type(one).__name__](one, str(whole.dtype))
            members.append(Member(titled(place, one), one, Predictor(core, seen, one, behind.space)))
    else:
        for place, one, some in zip(places, estimators, columns, strict=True):
            members.append(Member.read(behind, place, one, ColumnSubset(model, some)))
    return members


def _is_plain_tree(estimator: Any) -> bool:
    return type(estimator).__module__.startswith("sklearn.") and type(estimator).__name__ in TREES


def _bagging_classifier(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    members = _bagged(model, behind)
    parts = [member.places(range(len(labels))) for member in members]
    if not hasattr(model.estimators_[0], "predict_proba"):
        predictors = _predictors(members)
        return composite(count(predictors, parts, divisor=model.n_estimators, labels=labels, probability="share"))
    instead = "Bag trees, or classifiers without predict_proba, such as LinearSVC, whose votes are counted."
    return average([member.shares(instead) for member in members], parts, model.n_estimators, labels)


def _bagging_regressor(model: Any, behind: Behind) -> Composite:
    members = _bagged(model, behind)
    return average(_values(members), [np.eye(1)] * len(members), model.n_estimators, None)


# ---- AdaBoost --------------------------------------------------------------------------------------------------------
def _adaboost(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    columns = [np.arange(model.n_features_in_)] * len(model.estimators_)
    members = _on_columns(model, behind, model.estimators_, columns)
    parts = []
    # Weights of stages that were not reached are 0.
    for member, weight in zip(members, model.estimator_weights_, strict=False):
        # The library's own expression: -1 / (K - 1) is rounded before it meets the weight.
        parts.append(np.where(member.places(labels), weight, -1 / (len(labels) - 1) * weight))
    total = float(model.estimator_weights_.sum())
    predictors = _predictors(members)
    if len(labels) == 2:  # the second's sum less the first's, which is its negative: twice the second's, rounded alike
        second = [part[1:] for part in parts]
        options = {"divisor": total / 2.0, "labels": labels, "decision": "positive", "probability": "logistic"}
        core = count(predictors, second, **options)
    else:
        core = count(predictors, parts, divisor=total, labels=labels)
    return one_ensemble(core) or composite(core)


# ---- one against the rest --------------------------------------------------------------------------------------------
def _one_vs_rest(model: Any, behind: Behind) -> Composite:
    if model.multilabel_:
        raise refuse("one label per row", "OneVsRestClassifier was fitted on several", "Fit one classifier per label.")
    labels = labels_of(model)
    methods = ["decision_function", "predict_proba"]
    read = []
    for label, one in zip(labels[-len(model.estimators_) :], model.estimators_, strict=True):
        read.append(Member.read(behind, f"the member of OneVsRestClassifier for {label!r}", one))
    members = _predictors(read)
    if members[0].labels is None:
        if len(labels) == 2:
            then = "Fit a classifier under it."
            raise refuse("classifiers for two classes", f"{read[0].title} is a regressor", then)
        parts: list[Any] = list(np.eye(len(labels))[:, :, None])
        return composite(Combination(members, parts, labels=labels, decision=_ties(model)))
    responses = [response(member, methods) for member in read]
    if len(responses) == 1:
        (only,) = responses
        cut = 0.0 if only.method == "decision_function" else 0.5
        return only.decided(labels, lambda scores: only.values(scores) > cut, only.probability)
    asked = set()
    for one in responses:
        asked.add((one.method, one.probability if one.method == "predict_proba" else None))
    if len(asked) > 1:
        raise refuse(
            "probabilities that compare as the members' scores do", "each member of OneVsRestClassifier, "
            f"{type(model.estimators_[0]).__name__}, has its own function of its score",
            "Fit it over a classifier that is not calibrated.",
        )  # fmt: skip
    scaled = []
    for k, one in enumerate(responses):
        scaled.append(np.outer(np.eye(len(labels))[k], one.row) * one.unit)
    return composite(Combination(members, scaled, labels=labels, decision=_ties(model)))


def _ties(model: Any) -> Decision:
    """Return which of equal scores wins, by asking the library's own predict about members that say the same."""
    from sklearn.dummy import DummyRegressor

    rows = np.zeros((1, 1))
    same = copy.copy(model)
    same.estimators_ = [DummyRegressor(strategy="constant", constant=0.0).fit(rows, [0.0])] * len(model.estimators_)
    return "argmax" if same.predict(rows)[0] == model.classes_[0] else "argmax_last"


ENSEMBLES: Final[Mapping[str, Callable[[Any, Behind], Composite]]] = {
    "AdaBoostClassifier": _adaboost,
    "BaggingClassifier": _bagging_classifier,
    "BaggingRegressor": _bagging_regressor,
    "OneVsRestClassifier": _one_vs_rest,
    "VotingClassifier": _voting_classifier,
    "VotingRegressor": _voting_regressor,
}
