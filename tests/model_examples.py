"""A fitted example of every model that a reader says it reads, small enough to be asked many times.

Estimators are found by their class name in their own library and fitted with short-run options, so one that joins a
reader's table needs nothing here unless it takes special care.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_models as onnx_by_hand
import pandas as pd
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import all_estimators

__all__ = ["fitted"]

#: Short runs; each is given to the estimators that have such an option.
SHORT = {
    "n_estimators": 8, "max_iter": 60, "max_depth": 4, "random_state": 0, "n_jobs": 1, "hidden_layer_sizes": (6, 5),
    "max_leaf_nodes": 9, "min_child_samples": 5, "verbosity": -1, "ensemble": False,
}  # fmt: skip
#: Where a default is not what is read, or not what trains in a moment.
SPECIAL: Mapping[str, Callable[[], Any]] = {
    "LogisticRegressionCV": lambda: LogisticRegressionCV(
        Cs=2, cv=2, l1_ratios=(0.0,), scoring="accuracy", use_legacy_attributes=False
    ),
    "LinearSVC": lambda: LinearSVC(max_iter=2000),
    "SVC": lambda: SVC(kernel="linear"),
}


def fitted(library: str, name: str, data: pd.DataFrame, value: np.ndarray[Any, Any]) -> Any:
    """Return an example of a model that ``supported()`` names, fitted on an array of numbers."""
    rows, labels = data.to_numpy(), (value > np.median(value)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short runs do not converge
        if library == "onnx":
            return _onnx(name, len(data.columns))
        if name == "Booster":
            module = importlib.import_module(library)
            kind = module.XGBClassifier if library == "xgboost" else module.LGBMClassifier
            model = _short(kind).fit(rows, labels)
            return model.get_booster() if library == "xgboost" else model.booster_
        if name == "booster='gblinear'":
            return importlib.import_module("xgboost").XGBClassifier(booster="gblinear").fit(rows, labels)
        if name == "LGBMRanker":
            return _short(importlib.import_module(library).LGBMRanker).fit(rows, labels, group=[len(rows)])
        estimator = SPECIAL[name]() if name in SPECIAL else _short(_class(library, name))
        return estimator.fit(rows, labels if is_classifier(estimator) else value)


def _class(library: str, name: str) -> type:
    if library == "sklearn":
        return dict(all_estimators())[name]
    return getattr(importlib.import_module(library), name)


def _short(kind: type) -> Any:
    """Return an estimator with short-run options, and trees inside if it is made of others."""
    known = inspect.signature(kind).parameters
    options = {name: value for name, value in SHORT.items() if name in known or kind.__name__.startswith("XGB")}
    options = {name: value for name, value in options.items() if name in known or name in {"n_estimators", "max_depth"}}
    classifies = "Classifier" in kind.__name__
    tree = (DecisionTreeClassifier if classifies else DecisionTreeRegressor)(max_depth=3, random_state=0)
    if "estimators" in known:
        options["estimators"] = [("one", tree), ("two", tree)]
    elif "estimator" in known or "regressor" in known:
        options["estimator" if "estimator" in known else "regressor"] = tree
    if kind.__name__ == "FixedThresholdClassifier":
        options["threshold"] = 0.4
    return kind(**options)


def _onnx(name: str, width: int) -> Any:
    rng, by_hand = np.random.default_rng(0), onnx_by_hand
    weights = rng.normal(size=width).astype(np.float32)
    if name == "LinearClassifier":
        made = by_hand.node(
            name, ["X"], ["label", "scores"], coefficients=[*(-weights).tolist(), *weights.tolist()],
            intercepts=[0.1, -0.1], classlabels_ints=[0, 1], post_transform="LOGISTIC",
        )  # fmt: skip
        outputs = [by_hand.value("label", by_hand.INT64, [None]), by_hand.value("scores")]
        return by_hand.model([made], width, outputs)
    if name == "LinearRegressor":
        made = by_hand.node(name, ["X"], ["Y"], coefficients=weights.tolist(), intercepts=[0.5])
        return by_hand.model([made], width, [by_hand.value("Y", shape=[None, 1])])
    if name == "one Gemm or MatMul and Add":
        return by_hand.torch_net([weights[:, None]], [np.array([0.3], dtype=np.float32)])
    if name.startswith("Gemm"):
        return by_hand.keras_net(*by_hand.dense([width, 6, 5, 1]))
    if name == "TreeEnsemble":
        return by_hand.new_trees(np.float32)
    labels = [0, 1] if name == "TreeEnsembleClassifier" else None
    return by_hand.tree_model(by_hand.grown(7, 3, 1, by_hand.MODES), labels)
