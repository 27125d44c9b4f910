r"""Ensembles of scikit-learn over members of any kind, as their library adds them up.

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
from typing import TYPE_CHECKING, Any, Final

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


# ---- voting ----------------------------------------------------------------------------------------------------------
def _voting(model: Any, behind: Behind) -> tuple[list[str], list[Predictor], Floats | None]:
    """Return the members' titles, the members and their weights."""
    name = type(model).__name__
    fitted = {key: member for key, member in model.named_estimators_.items() if not isinstance(member, str)}
    titles = [titled(f"member {key!r} of {name}", member) for key, member in fitted.items()]
    members = [member_of(behind, one, title) for one, title in zip(fitted.values(), titles, strict=True)]
    weights = model._weights_not_none  # noqa: SLF001 - without those of members that are dropped
    if weights is None:
        return titles, members, None
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (len(members),) or not (numbers >= 0.0).all() or not numbers.sum() > 0.0:
        raise refuse(
            f"{len(members)} weights of at least 0 that are not all 0", f"{name} has weights={model.weights!r}",
            "Fit it with such weights, or with weights=None.",
        )  # fmt: skip
    return titles, members, numbers


def _voting_classifier(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    titles, members, weights = _voting(model, behind)
    positions = list(range(len(labels)))
    parts = [places(member, positions, title) for member, title in zip(members, titles, strict=True)]
    if model.voting == "hard":
        if weights is None:
            weighted = parts
        else:
            weighted = [w * part for w, part in zip(weights, parts, strict=True)]
        return composite(count(members, weighted, labels=labels))
    if len(members) == 1 and members[0].core.n_scores == 1 and members[0].core.probability is not None:
        return _only(members[0], model.estimators_[0], titles[0], labels)
    instead = "Fit it with voting='hard', or vote softly over trees and forests."
    said = [shares(member, title, instead) for member, title in zip(members, titles, strict=True)]
    return _mean(said, parts, weights, labels)


def _only(member: Predictor, model: Any, title: str, labels: Sequence[Any]) -> Composite:
    """Return the only member of a soft vote: the label of the larger probability, the first on ties."""
    found = response(model, member, ["predict_proba"], title)
    head = member.core.head
    return found.decided(labels, lambda s: head.of_position(s, 1) > head.of_position(s, 0), found.probability)


def _mean(
    members: Sequence[Predictor], parts: Sequence[Floats], weights: Floats | None, labels: Sequence[Any] | None
) -> Composite:
    if weights is None:
        return average(members, parts, len(members), labels)
    weighted = [w * part for w, part in zip(weights, parts, strict=True)]
    return average(members, weighted, float(weights.sum()), labels)


def _voting_regressor(model: Any, behind: Behind) -> Composite:
    titles, members, weights = _voting(model, behind)
    _require_values(members, titles)
    return _mean(members, [np.eye(1)] * len(members), weights, None)


def _require_values(members: Sequence[Predictor], titles: Sequence[str]) -> None:
    for member, title in zip(members, titles, strict=True):
        if member.labels is not None:
            raise refuse("members that are regressors", f"{title} is a classifier", "Fit it over regressors.")


# ---- bagging ---------------------------------------------------------------------------------------------------------
def _bagged(model: Any, behind: Behind) -> tuple[list[str], list[Predictor]]:
    drawn = list(zip(model.estimators_, model.estimators_features_, strict=True))[: model.n_estimators]
    return _on_columns(model, behind, *zip(*drawn, strict=True))


def _on_columns(
    model: Any, behind: Behind, estimators: Sequence[Any], columns: Sequence[Any]
) -> tuple[list[str], list[Predictor]]:
    """Return titles and members that are given columns of an array; plain trees share one look at all of them."""
    name = type(model).__name__
    titles = [titled(f"member {k} of {name}", one) for k, one in enumerate(estimators)]
    if all(type(one).__module__.startswith("sklearn.") and type(one).__name__ in TREES for one in estimators):
        whole = behind.encoding(model, ColumnSubset(model, np.arange(model.n_features_in_)))
        seen = []
        for some in columns:
            seen.append(Encoding(tuple(whole.columns[place] for place in some), whole.names))
        cores = [TREES[type(one).__name__](one, str(whole.dtype)) for one in estimators]
        pairs = zip(cores, seen, estimators, strict=True)
        return titles, [Predictor(core, encoding, one, behind.space) for core, encoding, one in pairs]
    given = zip(estimators, columns, titles, strict=True)
    return titles, [member_of(behind, one, title, ColumnSubset(model, some)) for one, some, title in given]


def _bagging_classifier(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    titles, members = _bagged(model, behind)
    positions = list(range(len(labels)))
    parts = [places(member, positions, title) for member, title in zip(members, titles, strict=True)]
    if not hasattr(model.estimators_[0], "predict_proba"):
        return composite(count(members, parts, divisor=model.n_estimators, labels=labels, probability="share"))
    instead = "Bag trees, or classifiers without predict_proba, such as LinearSVC, whose votes are counted."
    said = [shares(member, title, instead) for member, title in zip(members, titles, strict=True)]
    return average(said, parts, model.n_estimators, labels)


def _bagging_regressor(model: Any, behind: Behind) -> Composite:
    titles, members = _bagged(model, behind)
    _require_values(members, titles)
    return average(members, [np.eye(1)] * len(members), model.n_estimators, None)


# ---- AdaBoost --------------------------------------------------------------------------------------------------------
def _adaboost(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    columns = [np.arange(model.n_features_in_)] * len(model.estimators_)
    titles, members = _on_columns(model, behind, model.estimators_, columns)
    given = zip(
        members, model.estimator_weights_, titles, strict=False
    )  # weights of stages that were not reached are 0
    # The library's own expression: -1 / (K - 1) is rounded before it meets the weight.
    parts = [np.where(places(m, labels, title), w, -1 / (len(labels) - 1) * w) for m, w, title in given]
    total = float(model.estimator_weights_.sum())
    if len(labels) == 2:  # the second's sum less the first's, which is its negative: twice the second's, rounded alike
        second = [part[1:] for part in parts]
        core = count(members, second, divisor=total / 2.0, labels=labels, decision="positive", probability="logistic")
    else:
        core = count(members, parts, divisor=total, labels=labels)
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
    scaled = [np.outer(np.eye(len(labels))[k], one.row) * one.unit for k, one in enumerate(found)]
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
