r"""XGBoost: a start and one leaf per tree, added up in float32, tree by tree.

==================================== ============================================================= ===================
objective                            prediction                                                    probability
==================================== ============================================================= ===================
binary:logistic, reg:logistic        1 iff ``p > 0.5`` in float32, which a sum up to 8.9e-8 misses :func:`sigmoid`
binary:logitraw                      of a classifier 1 iff the sum is > 0.5; else the sum itself   none
binary:hinge                         1 iff the sum is > 0                                          none
multi:softmax, multi:softprob        the first of the largest sums                                 none: it is no sum
reg:squarederror and others that     the sum
predict a sum (``_SUMS``)
==================================== ============================================================= ===================

Where the sum starts (the base score, a number or one per class, in the units of the objective or of the sum) is not
computed here: the library predicts it with the model's trees taken out. ``gblinear`` is affine in float32. Trees of
``dart`` are scaled as the estimators of the library scale them, rounding included: which dart is, a booster says by its
weights, as since 3.3 it is called ``gbtree`` like all others and may be fitted so. Trees after the best iteration of
early stopping count or not as they do for ``predict``: the library's estimators leave them out, a ``Booster`` does not.

A native booster or a saved file is held in the library's own XGBClassifier or XGBRegressor, whichever it was saved
from, or its objective is for; the classes of a booster are 0, 1, ..., and ``missing`` is NaN, as files do not hold it.

Native categories are coded by the table of names that the model carries (xgboost 3.1 and later). Of the K shares of
multi:softprob the library takes the largest *after* it rounds them to float32, so sums nearer than 1e-7 may tie there.
A ``base_margin`` is an argument of the library's ``predict``, not a part of a model: it is never used here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.read.xgboost.columns import category_tables, check_codes, coder, missing_numbers
from ceopt.formulations.predictors.read.xgboost.document import Saved, drop_weights
from ceopt.formulations.predictors.read.xgboost.file import checked_bytes, unreadable
from ceopt.formulations.predictors.read.xgboost.trees import Numbers, read_tree
from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation, Floats
from ceopt.formulations.predictors.representation.trees import TreeEnsemble
from ceopt.formulations.space.encoding import Encoding, last_true
from ceopt.solvers.errors import CeoptError, MissingLibraryError

if TYPE_CHECKING:
    from ceopt.formulations.predictors.read import Behind

__all__ = ["MODELS", "open_model", "own_scores", "read_composite", "read_estimator", "sigmoid"]

_CLASSIFIERS: Final = ("XGBClassifier", "XGBRFClassifier")
_REGRESSORS: Final = ("XGBRFRegressor", "XGBRegressor")
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "trees": ("Booster", *_CLASSIFIERS, *_REGRESSORS),
    "linear": ("booster='gblinear'",),
}
_LOGISTIC: Final = ("binary:logistic", "reg:logistic")
_SEVERAL: Final = ("multi:softmax", "multi:softprob")
#: Objectives whose prediction is the sum itself.
_SUMS: Final = (
    "binary:logitraw", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror", "reg:squarederror",
    "reg:squaredlogerror",
)  # fmt: skip
#: What a classifier that ends in one sum does with it: label 1 iff the sum exceeds ...; None is found by bisection.
_TWO: Final[Mapping[str, float | None]] = {
    **dict.fromkeys(_LOGISTIC), "binary:logitraw": 0.5, "binary:hinge": 0.0,
}  # fmt: skip
_LOGARITHM: Final = "Fit it with objective='reg:squarederror' on the logarithm of the target."
_INSTEAD: Final[Mapping[str, str]] = {
    "count:poisson": _LOGARITHM, "reg:gamma": _LOGARITHM, "reg:tweedie": _LOGARITHM, "survival:aft": _LOGARITHM,
    "survival:cox": _LOGARITHM,
    **dict.fromkeys((*_LOGISTIC, *_SEVERAL, "binary:hinge"), "Fit XGBClassifier, and ask for a label or Probability."),
}  # fmt: skip


def sigmoid(scores: Floats) -> NDArray[np.float32]:
    """Return ``1 / (1 + exp(-s))`` as the library rounds it: in float32, the exponent cut at 88.7.

    Examples
    --------
    >>> sigmoid(np.array([0.0, 8.9e-8, 9.0e-8])) > 0.5
    array([False, False,  True])
    """
    with np.errstate(over="ignore", under="ignore"):  # the ends of float64 lie beyond float32
        exponent = np.minimum(-np.asarray(scores).astype(np.float32), np.float32(88.7))
        power = np.exp(exponent.astype(np.float64)).astype(np.float32)  # the library's expf rounds once
        return np.asarray(np.float32(1.0) / (power + np.float32(1.0)), dtype=np.float32)


def open_model(model: Any) -> Any:
    """Return an estimator of the library for a file or a native booster; any other model is returned as it is.

    Raises
    ------
    MissingLibraryError
        A file is given and the library is not installed.
    UnreadableFileError
        The file is missing, truncated or no model of XGBoost.
    UnsupportedModelError
        The library or the file is too old.
    """
    if isinstance(model, str | Path):
        return _from_file(Path(model))
    if type(model).__name__ != "Booster":
        return model
    _library()
    native = model.copy()
    # Its own predict takes all trees, and is that of its objective, whatever saved it.
    native.set_attr(best_iteration=None, best_score=None, scikit_learn=None)
    return _held(native.save_raw("ubj"), native)


def read_estimator(estimator: Any, dtype: str) -> AbstractRepresentation:  # noqa: ARG001 - it always casts to float32
    """Return what an estimator of XGBoost computes from a dense matrix in which nothing stands for a missing value.

    Raises
    ------
    UnsupportedModelError
        Its class, objective, booster or an option has no exact representation.
    """
    saved = _saved(estimator)
    return _representation(estimator, saved, [frozenset()] * saved.n_inputs)


def read_composite(estimator: Any, behind: Behind) -> tuple[AbstractRepresentation, Encoding]:
    """Return what an estimator computes, and what it sees: codes of its own for categories, numbers that are missing.

    Raises
    ------
    UnsupportedModelError
        As :func:`read_estimator`; or a column's categories or missing numbers have no exact statement.
    """
    saved = _saved(estimator)
    tables = category_tables(saved.model.get("cats", {}).get("enc", ()))
    if tables:
        steps = [coder(tables, saved.names, saved.n_inputs)]
    else:
        steps = []
    encoding = behind.encoding(estimator, *steps)
    if len(encoding.columns) != saved.n_inputs:
        raise refuse(
            f"as many columns as the model was fitted on, {saved.n_inputs}", f"it is given {len(encoding.columns)}",
            "Describe every column that the model was fitted on.",
        )  # fmt: skip
    for place in saved.categorical:
        check_codes(encoding.columns[place], behind.space, named=place in tables)
    return _representation(estimator, saved, missing_numbers(estimator.missing, encoding)), encoding


def own_scores(estimator: Any, rows: Any) -> Floats:
    """Return the library's own sums, before any probability: (n,) or (n, K)."""
    return np.asarray(estimator.predict(rows, output_margin=True), dtype=np.float64)


# ---- what the estimator is ------------------------------------------------------------------------------------------
def _library() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise MissingLibraryError(
            "A model of XGBoost", "the library xgboost", "it is not installed",
            'Install it by pip install "ceopt[xgboost]".',
        ) from error  # fmt: skip
    if int(xgboost.__version__.partition(".")[0]) < 3:
        raise refuse("xgboost 3 or later", f"version {xgboost.__version__} is installed", "Update it.")
    return xgboost


def _saved(estimator: Any) -> Saved:
    name = type(estimator).__name__
    _library()
    if name not in (*_CLASSIFIERS, *_REGRESSORS):
        raise refuse(
            "a model that it can state exactly", f"the estimator is {name}",
            f"Models of XGBoost that are read: {', '.join(MODELS['trees'])}.",
        )  # fmt: skip
    if not estimator.__sklearn_is_fitted__():
        raise refuse("a fitted model", f"{name} is not fitted", "Call fit first.")
    return Saved.of(estimator.get_booster())


def _representation(estimator: Any, saved: Saved, missing: Numbers) -> AbstractRepresentation:
    head = _head(estimator, saved)
    if saved.kind == "gblinear":
        return _affine(saved, missing, head)
    rounds = getattr(estimator, "best_iteration", saved.booster.num_boosted_rounds() - 1) + 1
    count = saved.model["iteration_indptr"][rounds]
    if count == 0:
        raise refuse("at least one tree", f"{type(estimator).__name__} has none", "Fit it with n_estimators above 0.")
    base = saved.start_of_sum()
    trees = []
    for place, (tree, score) in enumerate(zip(saved.model["trees"][:count], saved.model["tree_info"], strict=False)):
        start = base[score] if saved.scales_sums else 0.0
        if saved.scales is None:
            scaled = None
        else:
            scaled = partial(_scaled, start, saved.scales[place])
        trees.append(read_tree(tree, score, saved.n_scores, missing, scaled))
    return TreeEnsemble(trees, base, input_dtype="float32", sum_dtype="float32", n_inputs=saved.n_inputs, **head)


def _head(estimator: Any, saved: Saved) -> dict[str, Any]:
    """Return labels, probability and level."""
    name = type(estimator).__name__
    objective = saved.objective
    classifier = name in _CLASSIFIERS
    if callable(getattr(estimator, "objective", None)):
        raise refuse(
            "an objective of XGBoost's own", f"{name} has a function as objective", "Fit it with one that it names."
        )
    known = (*_TWO, *_SEVERAL) if classifier else _SUMS
    if objective not in known:
        raise refuse(
            "a prediction that is a sum of leaves or decided by one", f"{name} has objective={objective!r}",
            f"{_INSTEAD.get(objective, 'Choose another.')} Objectives that are read: {', '.join(sorted(known))}.",
        )  # fmt: skip
    if saved.n_outputs > 1:
        raise refuse("one output", f"{name} was fitted on {saved.n_outputs}", "Fit one model per output or level.")
    if not classifier:
        return {}
    labels = estimator.classes_.tolist()
    if len(labels) < 2:
        raise refuse("at least two classes", f"{name} knows only {labels!r}", "Fit it on data with other labels.")
    if objective in _SEVERAL:
        if len(labels) == 2 and objective == "multi:softprob":
            raise refuse("three classes or more with multi:softprob", f"{name} has two", "Fit it with binary:logistic.")
        return {"labels": labels}
    level = _TWO[objective]
    if level is not None:
        return {"labels": labels, "level": level}
    even = float(last_true(lambda scores: sigmoid(scores) <= 0.5))
    return {"labels": labels, "level": even, "probability": sigmoid}


# ---- numbers of the sum ---------------------------------------------------------------------------------------------
def _scaled(base: float, factor: float, leaves: Any) -> Any:
    """Return what leaves of a tree of dart add: up to 3.2 the library takes the start off a sum and scales the rest."""
    start = np.float32(base)
    return ((start + leaves) - start) * np.float32(factor)


def _affine(saved: Saved, missing: Numbers, head: Mapping[str, Any]) -> Affine:
    if saved.categorical or any(numbers - {0.0} for numbers in missing):
        raise refuse(
            "numbers that are what they are in a linear booster", "gblinear takes categories or missing numbers",
            "Encode categories by a OneHotEncoder, and leave missing=nan.",
        )  # fmt: skip
    weights = np.array(saved.model["weights"], dtype=np.float32).reshape(saved.n_inputs + 1, saved.n_scores)
    return Affine(weights[:-1].T, saved.at_zero(), dtype="float32", **head)


# ---- files and native boosters --------------------------------------------------------------------------------------
def _from_file(path: Path) -> Any:
    xgboost = _library()
    raw, document = checked_bytes(path)
    try:
        held = _held(raw, xgboost.Booster(model_file=raw))
        saved = Saved.of(held.get_booster())  # the library takes some trees that it cannot write again
    except (xgboost.core.XGBoostError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, CeoptError):
            raise
        raise unreadable(path, re.sub(r"^\[[\d:]+\] \S+:\d+: ", "", str(error).partition("\n")[0])) from error
    if drop_weights(document["learner"]["gradient_booster"]) and not saved.scales:
        raise refuse(
            "a library that reads the weights of the model's trees",
            f"{str(path)!r} is a dart model of version {'.'.join(map(str, document['version']))} and xgboost "
            f"{xgboost.__version__}, which is installed, drops them", "Update xgboost, or fit the model with this one.",
        )  # fmt: skip
    return held


def _held(raw: bytearray, booster: Any) -> Any:
    """Return the estimator that a saved booster is of: that which saved it, else by its objective."""
    xgboost = _library()
    kind = json.loads(booster.attr("scikit_learn") or "{}").get("_estimator_type")
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    if kind not in {None, "classifier", "regressor"}:
        raise refuse("a classifier or regressor", f"the file holds a {kind}", "Fit XGBRegressor.")
    by_objective = objective in {"binary:logistic", "binary:hinge", *_SEVERAL}
    if kind is None:
        classifier = by_objective
    else:
        classifier = kind == "classifier"
    if classifier:
        estimator = xgboost.XGBClassifier()
    else:
        estimator = xgboost.XGBRegressor()
    estimator.load_model(raw)
    return estimator
