r"""Estimators of scikit-learn, by class name. A subclass may predict otherwise, so only scikit-learn's own are read.

Linear models have the score ``coef_ @ x + intercept_``. Two classes have one score and predict the second class iff it
is > 0 (SVC: >= 0); more classes have one score each and the first of the largest wins. The probability of the second of
two classes is ``1 / (1 + exp(-score))`` for LogisticRegression, LinearDiscriminantAnalysis and
SGDClassifier(loss="log_loss").

Multi-layer perceptrons compute ``h <- activation(h @ coefs_ + intercepts_)``, without one after the last layer.

====================== ============================ ==========================================
what                   score                        prediction
====================== ============================ ==========================================
regressor              the output                   the output
two classes            one, before the logistic     the second iff its probability is > 0.5
several classes        one each, before the softmax the first of the largest
====================== ============================ ==========================================

The library computes them in the wider float of its weights and its input, the logistic included: its probability is 0.5
of every score up to about 1e-7 in float32, so the level of two classes is not 0 but where its own test turns over. The
softmax of several classes rounds as well: scores that differ by less than one such unit are equal to the library, and
the first class wins. That is below the rounding of the scores themselves and far below any margin.

Some models change what another one says: calibrated, thresholded, in other units. The decision of a model of two
classes turns over at one score wherever its value is a monotone function of that score. The value here is always the
library's own: its calibrators, thresholds and scales are called, not repeated.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from scipy.special import expit

from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.readers.model_input import class_labels, dense, refuse, same_version
from ceopt.formulations.predictors.readers.responses import Response, decision_unit, response
from ceopt.formulations.predictors.readers.sklearn.members import (
    Composite,
    Member,
    average,
    composite,
    is_one_tree,
    labels_of,
    leaf_scores,
    relabelled,
)
from ceopt.formulations.predictors.readers.sklearn.outputs import one_output
from ceopt.formulations.predictors.readers.sklearn.trees import BOOSTING, ENSEMBLES, TREES, own_steps
from ceopt.formulations.predictors.representation import (
    AbstractRepresentation,
    Affine,
    Decision,
    Head,
    Probability,
    ReluNetwork,
    with_head,
)
from ceopt.formulations.space.encoding import last_true
from ceopt.solvers.checks import Floats

if TYPE_CHECKING:
    from ceopt.formulations.predictors.readers import Behind

__all__ = [
    "COMPOSITES", "ESTIMATORS", "MODELS", "one_output", "own_scores", "own_steps", "read_composite", "read_estimator",
]  # fmt: skip

# ==== Linear models of scikit-learn: the score is ``coef_ @ x + intercept_`` ==========================================

_LOGISTIC: Final = ("LinearDiscriminantAnalysis", "LogisticRegression", "LogisticRegressionCV")
_CLASSIFIERS: Final = (
    *_LOGISTIC, "LinearSVC", "Perceptron", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier",
)  # fmt: skip
_REGRESSORS: Final = (
    "ElasticNet", "ElasticNetCV", "Lasso", "LassoCV", "LinearRegression", "LinearSVR", "Ridge", "RidgeCV",
    "SGDRegressor",
)  # fmt: skip


def _regressor(model: Any, dtype: str) -> Affine:
    coef = dense(model.coef_)
    if coef.ndim != 1:
        raise refuse(
            "one output", f"{type(model).__name__} was fitted on y with {coef.shape[0]} column(s)",
            "Fit it on a one-dimensional y, one model per output, or read one: predictors.read(model, space, "
            "output=0).",
        )  # fmt: skip
    return Affine(coef, dense(model.intercept_), dtype=_width(coef, dtype))


def _classifier(model: Any, dtype: str) -> Affine:
    name = type(model).__name__
    binarizer = getattr(model, "_label_binarizer", None)
    if binarizer is not None and binarizer.y_type_.startswith("multilabel"):
        raise refuse("one label per row", f"{name} was fitted on several", "Fit one classifier per label.")
    probability: Probability | None = None
    if name in _LOGISTIC or (name == "SGDClassifier" and model.loss == "log_loss"):
        probability = "logistic"
    return _affine(model, dtype, probability, "positive")


def _support_vectors(model: Any, dtype: str) -> Affine:  # noqa: ARG001
    """Read an SVC, which adds up kernels over its support vectors in float64 and gives ties to the second class."""
    if model.kernel != "linear":
        raise refuse(
            "linear kernels", f"SVC has kernel={model.kernel!r}", "Fit SVC(kernel='linear'), LinearSVC or a forest."
        )
    if len(model.classes_) > 2:
        raise refuse(
            "an SVC of two classes", f"SVC has {len(model.classes_)} and lets pairs of them vote",
            "Fit LinearSVC or LogisticRegression.",
        )  # fmt: skip
    return _affine(model, "float64", None, "nonnegative")


def _affine(model: Any, dtype: str, probability: Probability | None, decision: Decision) -> Affine:
    coef = dense(model.coef_)
    labels = model.classes_.tolist()
    if len(labels) != 2:
        decision = "argmax"
        probability = None
    return Affine(
        coef, dense(model.intercept_), labels=labels, decision=decision, probability=probability,
        dtype=_width(coef, dtype),
    )  # fmt: skip


def _width(coef: np.ndarray[Any, Any], dtype: str) -> str:
    return str(np.result_type(coef.dtype, dtype, np.float32))


LINEAR: Final[Mapping[str, Callable[[Any, str], Affine]]] = {
    **dict.fromkeys(_CLASSIFIERS, _classifier),
    **dict.fromkeys(_REGRESSORS, _regressor),
    "SVC": _support_vectors,
}


# ==== Multi-layer perceptrons of scikit-learn =========================================================================


@final
@dataclass(frozen=True, slots=True)
class _Logistic:
    """The probability of the second of two classes, in the float width of the network."""

    width: str

    def __call__(self, scores: Floats) -> Floats:
        return np.asarray(expit(np.asarray(scores).astype(self.width)), dtype=np.float64)


def _network(model: Any, dtype: str) -> ReluNetwork:
    name = type(model).__name__
    if model.activation not in {"relu", "identity"}:
        raise refuse(
            "layers that are piecewise linear", f"{name} has activation={model.activation!r}",
            "Fit it with activation='relu', or 'identity'.",
        )  # fmt: skip
    if model.out_activation_ == "exp":
        raise refuse(
            "a prediction that is the last layer's sum", f"{name} has loss={model.loss!r}",
            "Fit it with loss='squared_error' on the logarithm of the target.",
        )  # fmt: skip
    labels = class_labels(model)
    if labels is None and model.n_outputs_ != 1:
        raise refuse(
            "one output",
            f"{name} was fitted on {model.n_outputs_}",
            "Fit one model per output, or read one: predictors.read(model, space, output=0).",
        )
    if labels is not None and model.n_outputs_ > 1 and model.out_activation_ != "softmax":
        raise refuse("one label per row", f"{name} was fitted on several", "Fit one classifier per label.")
    width = str(np.result_type(dtype, np.float32, *model.coefs_))
    link = None
    if labels is not None and len(labels) == 2:
        link = _Logistic(width)
    return ReluNetwork(
        [layer.T for layer in _finite(model, "coefs_")], _finite(model, "intercepts_"),
        labels=labels, activations=[model.activation] * (len(model.coefs_) - 1), probability=link, dtype=width,
        level=0.0 if link is None else float(last_true(lambda scores: link(scores) <= 0.5)),
    )  # fmt: skip


def _finite(model: Any, name: str) -> list[Floats]:
    """Return the arrays of all layers, or name the layer that holds NaN or infinity."""
    layers: list[Floats] = getattr(model, name)
    for place, layer in enumerate(layers):
        bad = layer[~np.isfinite(layer)]
        if bad.size:
            raise refuse(
                "finite weights", f"{type(model).__name__} has {bad.flat[0]} in {name}[{place}]",
                "Its training diverged: scale the columns or lower learning_rate_init, and fit it again.",
            )  # fmt: skip
    return layers


NETWORKS: Final[Mapping[str, Callable[[Any, str], ReluNetwork]]] = {
    "MLPClassifier": _network,
    "MLPRegressor": _network,
}


# ==== Models of scikit-learn that change what another one says: calibrated, thresholded, in other units ===============

_CALIBRATED: Final = ("decision_function", "predict_proba")
#: Beyond this size of a decision value a calibrator is taken to be flat: float32 and exponentials hold it.
_FAR: Final = 1e30


# ---- calibration -----------------------------------------------------------------------------------------------------
def _calibrated(model: Any, behind: Behind) -> Composite:
    labels = labels_of(model)
    parts = model.calibrated_classifiers_
    # With temperature the library fits the members on the positions of labels that are text.
    known = [labels]
    if model.method == "temperature":
        known.append(list(range(len(labels))))
    members = [Member.read(behind, "the classifier under CalibratedClassifierCV", part.estimator) for part in parts]
    for member in members:
        own = member.predictor.labels
        if list(own or ()) not in known:
            raise refuse(
                f"the labels {', '.join(map(repr, labels))}", f"{member.title} knows {own!r}",
                "Fit it with folds that hold all labels.",
            )  # fmt: skip
    if len(parts) == 1 and len(labels) == 2:
        return _calibrated_alone(parts[0], response(members[0], _CALIBRATED), labels)
    if len(parts) == 1 and parts[0].method == "temperature":
        if hasattr(parts[0].estimator, "decision_function"):
            decision_unit(parts[0].estimator, members[0].title)
        head = Head.checked("CalibratedClassifierCV", len(labels), labels)
        return with_head(members[0].predictor.core, head), members[0].predictor.encoding
    if all(is_one_tree(member.predictor.core) for member in members):
        calibrated = [_leaves(part, member.predictor) for part, member in zip(parts, members, strict=True)]
        return average(calibrated, [np.eye(len(labels))] * len(calibrated), len(calibrated), labels)
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


def _calibrated_alone(part: Any, asked: Response, labels: Sequence[Any]) -> Composite:
    link = _Calibration(part, asked)
    low, high = link(np.array([-_FAR, _FAR]))
    if low > high:
        asked = asked.reversed()
        link = _Calibration(part, asked)

    def is_second(scores: Floats) -> Any:
        share = link(scores)
        return share > 1.0 - share

    return asked.decided(labels, is_second, link)


@final
class _Calibration:
    """The probability of the second label: the library's own, of given values instead of rows."""

    def __init__(self, part: Any, asked: Response) -> None:
        self._part = _over(part, asked.method)
        self._asked = asked

    def __call__(self, scores: Floats) -> Floats:
        given = np.clip(self._asked.values(np.ravel(scores)), -_FAR, _FAR)
        if self._asked.method == "predict_proba":
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
    labels = labels_of(model)
    estimator = getattr(model, "estimator_", model.estimator)
    methods = model._get_response_method()  # noqa: SLF001
    position = 1
    if positive is not None:
        position = labels.index(positive)
    member = Member.read(behind, f"the classifier under {type(model).__name__}", estimator)
    asked = response(member, [methods] if isinstance(methods, str) else methods, position)
    if threshold == "auto":
        cut = {"predict_proba": 0.5}.get(asked.method, 0.0)
    else:
        cut = float(threshold)
    second = position == 1

    def is_second(scores: Floats) -> Any:
        return (asked.values(scores) >= cut) == second

    return asked.decided(labels, is_second, asked.probability, inclusive=second)


# ---- targets in other units ------------------------------------------------------------------------------------------
def _transformed(model: Any, behind: Behind) -> Composite:
    name = type(model.transformer_).__name__
    transformer = model.transformer_
    member = Member.read(behind, "the regressor under TransformedTargetRegressor", model.regressor_).predictor
    if name == "FunctionTransformer" and transformer.func is None and transformer.inverse_func is None:
        return member.core, member.encoding
    if name != "StandardScaler":
        func = name
        if model.transformer is None:
            func = f"func={getattr(model.func, '__name__', model.func)}"
        raise refuse(
            "a target in its own units or scaled by StandardScaler", f"TransformedTargetRegressor has {func}",
            "Give its regressor_ and state the target in transformed units.",
        )  # fmt: skip
    scale = transformer.scale_[0] if transformer.with_std else 1.0
    mean = transformer.mean_[0] if transformer.with_mean else 0.0
    return composite(Combination([member], [[[scale]]], mean))


WRAPPERS: Final[Mapping[str, Callable[[Any, Behind], Composite]]] = {
    "CalibratedClassifierCV": _calibrated,
    "FixedThresholdClassifier": _fixed,
    "TransformedTargetRegressor": _transformed,
    "TunedThresholdClassifierCV": _tuned,
}


# ==== Estimators of scikit-learn ======================================================================================

ESTIMATORS: Final[Mapping[str, Callable[[Any, str], AbstractRepresentation]]] = {
    **BOOSTING,
    **LINEAR,
    **NETWORKS,
    **TREES,
}

#: Models that are made of other models.
COMPOSITES: Final[Mapping[str, Callable[[Any, Behind], Composite]]] = {**ENSEMBLES, **WRAPPERS}

#: Composites of several classes whose scores are the library's decision values.
_DECIDING: Final = ("AdaBoostClassifier", "OneVsRestClassifier")

_INSTEAD: Final[Mapping[str, str]] = {
    "AdaBoostRegressor": "It predicts the weighted median of its members; fit GradientBoostingRegressor. ",
    "IsolationForest": "It decides nothing: keep answers off its outliers by the rule NotAnOutlier(forest). ",
}

#: What is read, by how it is embedded (see ``read.supported``).
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "linear": tuple(LINEAR),
    "networks": tuple(NETWORKS),
    "trees": (*TREES, *BOOSTING),
    "models of models": tuple(COMPOSITES),
}


def read_estimator(estimator: Any, dtype: str) -> AbstractRepresentation:
    """Return what a fitted estimator computes from a matrix of float width ``dtype``.

    Raises
    ------
    UnsupportedModelError
        Its class or an option has no exact representation, or another version of scikit-learn fitted it.
    """
    name = type(estimator).__name__
    reader = ESTIMATORS.get(name)
    if reader is None:
        raise refuse(
            "a model that it can state exactly", f"the estimator is {name}",
            f"{_INSTEAD.get(name, '')}Fit one that is read, such as {_like(estimator)}; `ceopt models` lists them.",
        )  # fmt: skip
    with same_version(estimator):
        return reader(estimator, dtype)


def _like(estimator: Any) -> str:
    kind = "Regressor"
    if hasattr(estimator, "classes_"):
        kind = "Classifier"
    return f"RandomForest{kind} or HistGradientBoosting{kind}"


def own_scores(estimator: Any, rows: Any) -> Any:
    """Return the library's decision values, in the unit of the scores, of classes that it tells apart by them."""
    name = type(estimator).__name__
    decides = name in LINEAR or name in BOOSTING or name in _DECIDING
    if not decides or not hasattr(estimator, "decision_function"):
        return None
    joined = len(getattr(estimator, "classes_", ())) > 2 and name == "OneVsRestClassifier"  # read in its own unit
    return estimator.decision_function(rows) / (1.0 if joined else decision_unit(estimator, name))


def read_composite(estimator: Any, behind: Behind) -> Composite | None:
    """Return what a model made of others computes, and what that sees of the raw columns; None for all else."""
    reader = COMPOSITES.get(type(estimator).__name__)
    if reader is None:
        return None
    with same_version(estimator):
        return reader(estimator, behind)
