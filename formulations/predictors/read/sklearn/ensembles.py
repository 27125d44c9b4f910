r"""Ensembles of scikit-learn over members of any kind, as their library adds them up; forests are in ``trees.py``.

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

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.read.responses import response
from ceopt.formulations.predictors.read.sklearn.members import (
    ColumnSubset,
    Composite,
    average,
    composite,
    count,
    labels_of,
    member_of,
    one_ensemble,
    places,
    shares,
    titled,
)
from ceopt.formulations.predictors.read.sklearn.trees import TREES
from ceopt.formulations.predictors.representation.decision_rule import Decision, Floats
from ceopt.formulations.predictors.representation.predictor import Combination, Predictor
from ceopt.formulations.space.encoding import Encoding

if TYPE_CHECKING:
    from ceopt.formulations.predictors.read import Behind

__all__ = ["ENSEMBLES"]


@final
@dataclass(frozen=True, slots=True)
class EnsembleMembers:
    """The members of an ensemble as they were read, each with the title that messages give it."""

    titles: Sequence[str]
    predictors: Sequence[Predictor]

    def in_order_of(self, labels: Sequence[Any]) -> list[Floats]:
        """Return each member's matrix that puts its labels in this order."""
        matrices = []
        for member, title in zip(self.predictors, self.titles, strict=True):
            matrices.append(places(member, labels, title))
        return matrices

    def as_shares(self, instead: str) -> list[Predictor]:
        """Return members whose scores are the probabilities of their labels, or say what to fit instead."""
        found = []
        for member, title in zip(self.predictors, self.titles, strict=True):
            found.append(shares(member, title, instead))
        return found

    def require_values(self) -> None:
        """Refuse a member that is a classifier."""
        for member, title in zip(self.predictors, self.titles, strict=True):
            if member.labels is not None:
                raise refuse("members that are regressors", f"{title} is a classifier", "Fit it over regressors.")


# ---- voting ----------------------------------------------------------------------------------------------------------
def _voting(model: Any, behind: Behind) -> tuple[EnsembleMembers, Floats | None]:
    """Return the members and their weights."""
    name = type(model).__name__
    titles = []
    fitted = []
    for key, member in model.named_estimators_.items():
        if not isinstance(member, str):  # "drop"
            titles.append(titled(f"member {key!r} of {name}", member))
            fitted.append(member)
    predictors = [member_of(behind, one, title) for one, title in zip(fitted, titles, strict=True)]
    members = EnsembleMembers(titles, predictors)
    weights = model._weights_not_none  # noqa: SLF001 - without those of members that are dropped
    if weights is None:
        return members, None
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (len(predictors),) or not (numbers >= 0.0).all() or not numbers.sum() > 0.0:
        raise refuse(
            f"{len(predictors)} weights of at least 0 that are not all 0", f"{name} has weights={model.weights!r}",
            "Fit it with such weights, or with weights=None.",
        )  # fmt: skip
    return members, numbers


def _voting_classifier(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    members, weights = _voting(model, behind)
    parts = members.in_order_of(range(len(labels)))
    if model.voting == "hard":
        return composite(count(members.predictors, _weighted(parts, weights), labels=labels))
    only = members.predictors[0].core
    if len(members.predictors) == 1 and only.n_scores == 1 and only.probability is not None:
        return _only(members.predictors[0], model.estimators_[0], members.titles[0], labels)
    said = members.as_shares("Fit it with voting='hard', or vote softly over trees and forests.")
    return _mean(said, parts, weights, labels)


def _only(member: Predictor, model: Any, title: str, labels: Sequence[Any]) -> Composite:
    """Return the only member of a soft vote: the label of the larger probability, the first on ties."""
    found = response(model, member, ["predict_proba"], title)
    head = member.core.head
    return found.decided(labels, lambda s: head.of_position(s, 1) > head.of_position(s, 0), found.probability)


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
    members.require_values()
    return _mean(members.predictors, [np.eye(1)] * len(members.predictors), weights, None)


# ---- bagging ---------------------------------------------------------------------------------------------------------
def _bagged(model: Any, behind: Behind) -> EnsembleMembers:
    drawn = slice(model.n_estimators)
    return _on_columns(model, behind, model.estimators_[drawn], model.estimators_features_[drawn])


def _on_columns(model: Any, behind: Behind, estimators: Sequence[Any], columns: Sequence[Any]) -> EnsembleMembers:
    """Return members that are given columns of an array; plain trees share one look at all of them."""
    name = type(model).__name__
    titles = [titled(f"member {k} of {name}", one) for k, one in enumerate(estimators)]
    predictors = []
    if all(_is_plain_tree(one) for one in estimators):
        whole = behind.encoding(model, ColumnSubset(model, np.arange(model.n_features_in_)))
        for one, some in zip(estimators, columns, strict=True):
            seen = Encoding(tuple(whole.columns[place] for place in some), whole.names)
            core = TREES[type(one).__name__](one, str(whole.dtype))
            predictors.append(Predictor(core, seen, one, behind.space))
    else:
        for one, some, title in zip(estimators, columns, titles, strict=True):
            predictors.append(member_of(behind, one, title, ColumnSubset(model, some)))
    return EnsembleMembers(titles, predictors)


def _is_plain_tree(estimator: Any) -> bool:
    return type(estimator).__module__.startswith("sklearn.") and type(estimator).__name__ in TREES


def _bagging_classifier(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    members = _bagged(model, behind)
    parts = members.in_order_of(range(len(labels)))
    if not hasattr(model.estimators_[0], "predict_proba"):
        votes = count(members.predictors, parts, divisor=model.n_estimators, labels=labels, probability="share")
        return composite(votes)
    instead = "Bag trees, or classifiers without predict_proba, such as LinearSVC, whose votes are counted."
    return average(members.as_shares(instead), parts, model.n_estimators, labels)


def _bagging_regressor(model: Any, behind: Behind) -> Composite:
    members = _bagged(model, behind)
    members.require_values()
    return average(members.predictors, [np.eye(1)] * len(members.predictors), model.n_estimators, None)


# ---- AdaBoost --------------------------------------------------------------------------------------------------------
def _adaboost(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    columns = [np.arange(model.n_features_in_)] * len(model.estimators_)
    members = _on_columns(model, behind, model.estimators_, columns)
    parts = []
    # Weights of stages that were not reached are 0.
    for said, weight in zip(members.in_order_of(labels), model.estimator_weights_, strict=False):
        # The library's own expression: -1 / (K - 1) is rounded before it meets the weight.
        parts.append(np.where(said, weight, -1 / (len(labels) - 1) * weight))
    total = float(model.estimator_weights_.sum())
    predictors = members.predictors
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
    named = zip(labels[-len(model.estimators_) :], model.estimators_, strict=True)
    titles = [titled(f"the member of OneVsRestClassifier for {label!r}", one) for label, one in named]
    members = [member_of(behind, one, title) for one, title in zip(model.estimators_, titles, strict=True)]
    if members[0].labels is None:
        if len(labels) == 2:
            raise refuse(
                "classifiers for two classes", f"{titles[0]} is a regressor",
                "Fit a classifier under it.",
            )  # fmt: skip
        parts: list[Any] = [np.eye(len(labels))[:, [k]] for k in range(len(labels))]
        return composite(Combination(members, parts, labels=labels, decision=_ties(model)))
    given = zip(model.estimators_, members, titles, strict=True)
    found = [response(one, member, methods, title) for one, member, title in given]
    if len(found) == 1:
        (only,) = found
        cut = 0.0 if only.method == "decision_function" else 0.5
        return only.decided(labels, lambda scores: only.values(scores) > cut, only.probability)
    asked = set()
    for one in found:
        asked.add((one.method, one.probability if one.method == "predict_proba" else None))
    if len(asked) > 1:
        raise refuse(
            "probabilities that compare as the members' scores do", "each member of OneVsRestClassifier, "
            f"{type(model.estimators_[0]).__name__}, has its own function of its score",
            "Fit it over a classifier that is not calibrated.",
        )  # fmt: skip
    scaled = []
    for k, one in enumerate(found):
        own_score = np.eye(len(labels))[k]
        scaled.append(np.outer(own_score, one.row) * one.unit)
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
