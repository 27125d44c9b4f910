r"""Models of scikit-learn that change what another one says: calibrated, thresholded, in other units.

The decision of a model of two classes turns over at one score wherever its value is a monotone function of that score.
The value here is always the library's own: its calibrators, thresholds and scales are called, not repeated.

=========================== ==========================================================================================
model                       exact where
=========================== ==========================================================================================
CalibratedClassifierCV      it has one calibrated classifier of two classes (``ensemble=False`` or a frozen one), or one
\                           of several by temperature, which keeps their order; or each classifier is a single tree
FixedThresholdClassifier,   the value of the classifier under it follows from one score
TunedThresholdClassifierCV
TransformedTargetRegressor  the target is not transformed, or scaled by StandardScaler
=========================== ==========================================================================================
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.read.responses import Response, decision_unit, response
from ceopt.formulations.predictors.read.sklearn.members import (
    Composite,
    average,
    composite,
    is_one_tree,
    labels_of,
    leaf_scores,
    member_of,
    relabelled,
    titled,
)
from ceopt.formulations.predictors.representation.decision_rule import Floats, Head, with_head
from ceopt.formulations.predictors.representation.predictor import Combination, Predictor

if TYPE_CHECKING:
    from ceopt.formulations.predictors.read import Behind

__all__ = ["WRAPPERS"]

_CALIBRATED: Final = ("decision_function", "predict_proba")
#: Beyond this size of a decision value a calibrator is taken to be flat: float32 and exponentials hold it.
_FAR: Final = 1e30


# ---- calibration -----------------------------------------------------------------------------------------------------
def _calibrated(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    parts = model.calibrated_classifiers_
    # With temperature the library fits the members on the positions of labels that are text.
    if model.method == "temperature":
        known = [labels, list(range(len(labels)))]
    else:
        known = [labels]
    titles = [titled("the classifier under CalibratedClassifierCV", part.estimator) for part in parts]
    members = [member_of(behind, part.estimator, title) for part, title in zip(parts, titles, strict=True)]
    for member, title in zip(members, titles, strict=True):
        if list(member.labels or ()) not in known:
            raise refuse(
                f"the labels {', '.join(map(repr, labels))}", f"{title} knows {member.labels!r}",
                "Fit it with folds that hold all labels.",
            )  # fmt: skip
    if len(parts) == 1 and len(labels) == 2:
        found = response(parts[0].estimator, members[0], _CALIBRATED, titles[0])
        return _calibrated_alone(parts[0], found, labels)
    if len(parts) == 1 and parts[0].method == "temperature":
        if hasattr(parts[0].estimator, "decision_function"):
            decision_unit(parts[0].estimator, titles[0])
        head = Head.checked("CalibratedClassifierCV", len(labels), labels)
        return with_head(members[0].core, head), members[0].encoding
    if all(is_one_tree(member.core) for member in members):
        said = [_leaves(part, member) for part, member in zip(parts, members, strict=True)]
        return average(said, [np.eye(len(labels))] * len(said), len(said), labels)
    name = type(parts[0].estimator).__name__
    if len(labels) > 2:
        raise refuse(
            "scores whose largest wins", f"CalibratedClassifierCV calibrates {name} apart for each of {len(labels)} "
            "labels", "Fit it with method='temperature' and ensemble=False, or give the classifier under it.",
        )  # fmt: skip
    raise refuse(
        "probabilities that are linear in a member's score",
        f"CalibratedClassifierCV averages {len(parts)} calibrated {name}", "Fit it with ensemble=False.",
    )  # fmt: skip


def _calibrated_alone(part: Any, found: Response, labels: Sequence[Any]) -> Composite:
    link = _Calibration(part, found)
    low, high = link(np.array([-_FAR, _FAR]))
    if low > high:
        found = found.reversed()
        link = _Calibration(part, found)

    def is_second(scores: Floats) -> Any:
        share = link(scores)
        return share > 1.0 - share

    return found.decided(labels, is_second, link)


@final
class _Calibration:
    """The probability of the second label: the library's own, of given values instead of rows."""

    def __init__(self, part: Any, found: Response) -> None:
        self._part = _over(part, found.method)
        self._found = found

    def __call__(self, scores: Floats) -> Floats:
        given = np.clip(self._found.values(np.ravel(scores)), -_FAR, _FAR)
        if self._found.method == "predict_proba":
            given = np.stack([1.0 - given, given], axis=1)
        return np.asarray(self._part.predict_proba(given)[:, 1].reshape(np.shape(scores)), dtype=np.float64)


def _leaves(part: Any, member: Predictor) -> Predictor:
    """Return a single tree with calibrated probabilities at its leaves."""
    scores = leaf_scores(member.core)
    method = next(name for name in _CALIBRATED if hasattr(part.estimator, name))
    if method != "predict_proba" or scores.ndim == 1:
        raise refuse(
            "shares of a tree", f"CalibratedClassifierCV has a single tree with {method}, "
            f"{type(part.estimator).__name__}", "Calibrate a DecisionTreeClassifier.",
        )  # fmt: skip
    return relabelled(member, np.asarray(_over(part, method).predict_proba(scores), dtype=np.float64), "share")


def _over(part: Any, method: str) -> Any:
    """Return a calibrated classifier over a classifier that gives back what it is given."""
    same = copy.copy(part)
    same.estimator = {"decision_function": _Decides, "predict_proba": _Shares}[method](part.estimator.classes_)
    return same


class _AbstractGiven:
    """A classifier whose rows are what it says of them."""

    def __init__(self, classes: Any) -> None:
        self.classes_ = classes

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier", target_tags=TargetTags(required=True), classifier_tags=ClassifierTags()
        )


@final
class _Decides(_AbstractGiven):
    def decision_function(self, values: Floats) -> Floats:
        """Return the values."""
        return values


@final
class _Shares(_AbstractGiven):
    def predict_proba(self, values: Floats) -> Floats:
        """Return the values."""
        return values


# ---- thresholds ------------------------------------------------------------------------------------------------------
def _fixed(model: Any, behind: Behind) -> Composite:
    return _thresholded(model, behind, model.threshold, model.pos_label)


def _tuned(model: Any, behind: Behind) -> Composite:
    return _thresholded(model, behind, model.best_threshold_, model._curve_scorer._get_pos_label())  # noqa: SLF001


def _thresholded(model: Any, behind: Behind, threshold: Any, positive: Any) -> Composite:
    """Read ``positive iff value >= threshold``; None is the second label."""
    name = type(model).__name__
    labels = labels_of(model)
    estimator = getattr(model, "estimator_", model.estimator)
    title = titled(f"the classifier under {name}", estimator)
    methods = model._get_response_method()  # noqa: SLF001
    if positive is None:
        position = 1
    else:
        position = labels.index(positive)
    member = member_of(behind, estimator, title)
    found = response(estimator, member, [methods] if isinstance(methods, str) else methods, title, position)
    if threshold == "auto":
        cut = {"predict_proba": 0.5}.get(found.method, 0.0)
    else:
        cut = float(threshold)
    second = position == 1

    def is_second(scores: Floats) -> Any:
        return (found.values(scores) >= cut) == second

    return found.decided(labels, is_second, found.probability, inclusive=second)


# ---- targets in other units ------------------------------------------------------------------------------------------
def _transformed(model: Any, behind: Behind) -> Composite:
    name = type(model.transformer_).__name__
    transformer = model.transformer_
    member = member_of(
        behind, model.regressor_, titled("the regressor under TransformedTargetRegressor", model.regressor_)
    )
    if name == "FunctionTransformer" and transformer.func is None and transformer.inverse_func is None:
        return member.core, member.encoding
    if name != "StandardScaler":
        if model.transformer is None:
            func = f"func={getattr(model.func, '__name__', model.func)}"
        else:
            func = name
        raise refuse(
            "a target in its own units or scaled by StandardScaler", f"TransformedTargetRegressor has {func}",
            "Give its regressor_ and state the target in transformed units.",
        )  # fmt: skip
    if transformer.with_std:
        scale = transformer.scale_[0]
    else:
        scale = 1.0
    if transformer.with_mean:
        mean = transformer.mean_[0]
    else:
        mean = 0.0
    return composite(Combination([member], [[[scale]]], mean))


WRAPPERS: Final[Mapping[str, Callable[[Any, Behind], Composite]]] = {
    "CalibratedClassifierCV": _calibrated,
    "FixedThresholdClassifier": _fixed,
    "TransformedTargetRegressor": _transformed,
    "TunedThresholdClassifierCV": _tuned,
}
