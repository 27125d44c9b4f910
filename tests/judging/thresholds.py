"""Both sides of every threshold of a tree model, as neighbours in raw units, from each library's own attributes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from judging.columns import Floats
from judging.models import Fitted
from numpy.typing import NDArray

#: Beyond this no number of a question lies.
_FAR = 1e15


@dataclass(frozen=True)
class Cuts:
    """Thresholds over the columns of the matrix that a model sees, the width it compares in, and whether it is by <."""

    pairs: tuple[tuple[int, float], ...]
    width: str
    strict: bool = False


def sides(model: Fitted, column: int, *, whole: bool) -> list[tuple[float, float]]:
    """Return (greatest value that goes left, least that goes right) of each threshold on a column of numbers."""
    found = set()
    place = _place(model, column)
    mean, size = model.scaled.get(column, (None, 1.0))
    for cuts in cuts_of(model.given):
        at = np.unique([t for feature, t in cuts.pairs if feature == place and math.isfinite(t)])
        if not len(at):
            continue

        def left(values: Floats, at: Floats = at, cuts: Cuts = cuts) -> NDArray[np.bool_]:
            seen = values if mean is None else (values - mean) / size
            seen = seen.astype(cuts.width).astype(np.float64)
            return seen < at if cuts.strict else seen <= at

        low, high = (_whole_ends if whole else _float_ends)(left, len(at))
        found |= set(zip(low.tolist(), high.tolist(), strict=True))
    return sorted(found)


def _whole_ends(left: Any, n: int) -> tuple[Floats, Floats]:
    """Bisect over whole numbers."""
    low, high = np.full(n, -_FAR), np.full(n, _FAR)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        goes = left(middle)
        low, high = np.where(goes, middle, low), np.where(goes, high, middle)
    return low, high


def _float_ends(left: Any, n: int) -> tuple[Floats, Floats]:
    """Bisect over all floats, by their order as whole numbers."""
    low, high = np.full(n, _order(-_FAR)), np.full(n, _order(_FAR))
    while (low + 1 < high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        goes = left(_float(middle))
        low, high = np.where(goes, middle, low), np.where(goes, high, middle)
    return _float(low), _float(high)


def _order(value: float) -> int:
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def _float(order: NDArray[np.int64]) -> Floats:
    size = np.abs(order).view(np.float64)
    return np.where(order < 0, -size, size)


def _place(model: Fitted, column: int) -> int:
    """Return the column of the matrix that holds a column of numbers."""
    return matrix_columns(model).index(column)


def matrix_columns(model: Fitted) -> list[int]:
    """Return of which raw column each column of the matrix is."""
    space = model.space
    if not hasattr(model.given, "named_steps"):
        return list(range(len(space)))
    found: list[int] = []
    encoder = model.given[0]
    for name, step, columns in encoder.transformers_:
        for k, column in enumerate(columns):
            place = column if isinstance(column, int) else space.names.index(column)
            found += [place] * (len(step.categories_[k]) if name == "hot" else 1)
    return found


def read_columns(model: Fitted) -> set[int]:
    """Return the raw columns that some split or weight of the model reads."""
    places = matrix_columns(model)
    return {places[k] for k in _read_by(model.given)}


def _read_by(model: Any) -> set[int]:
    if type(model).__name__ == "Pipeline":
        return _read_by(model[-1])
    for word in ("weights", "coefs_"):
        if hasattr(model, word) and not hasattr(model, "estimators_"):
            first = getattr(model, word)
            first = first if isinstance(first, np.ndarray) else first[0].T if word == "coefs_" else first[0]
            return set(np.flatnonzero((np.atleast_2d(first) != 0).any(axis=0)).tolist())
    if hasattr(model, "coef_"):
        return set(np.flatnonzero((np.atleast_2d(model.coef_) != 0).any(axis=0)).tolist())
    if hasattr(model, "estimators_") and any(
        hasattr(m, "coef_") for m in np.ravel(np.array(model.estimators_, dtype=object))
    ):
        return set().union(*(_read_by(member) for member in model.estimators_))
    return {feature for cuts in cuts_of(model) for feature, _ in cuts.pairs}


# ---- by library ------------------------------------------------------------------------------------------------------
def cuts_of(model: Any) -> Iterator[Cuts]:
    """Yield the thresholds of a model and of the models in it."""
    name = type(model).__name__
    match name:
        case "Pipeline":
            yield from cuts_of(model[-1])
        case "TreeEnsemble":
            pairs = [
                (int(f), float(t))
                for tree in model.trees
                for f, t in zip(tree.feature, tree.threshold, strict=True)
                if f >= 0
            ]
            yield Cuts(tuple(pairs), model.input_dtype)
        case "XGBClassifier" | "XGBRegressor":
            yield Cuts(tuple(_xgboost(model)), "float32", strict=True)
        case "LGBMClassifier" | "LGBMRegressor":
            yield Cuts(tuple(_lightgbm(model)), "float64")
        case "HistGradientBoostingClassifier" | "HistGradientBoostingRegressor":
            trees = [tree.nodes for trees in model._predictors for tree in trees]
            inner = np.concatenate(trees)
            inner = inner[inner["is_leaf"] == 0]
            pairs = zip(inner["feature_idx"].tolist(), inner["num_threshold"].tolist(), strict=True)
            yield Cuts(tuple(pairs), "float64")
        case _ if hasattr(model, "tree_"):
            pairs = zip(model.tree_.feature.tolist(), model.tree_.threshold.tolist(), strict=True)
            yield Cuts(tuple((f, t) for f, t in pairs if f >= 0), "float32")
        case _ if hasattr(model, "estimators_"):
            for member in np.ravel(np.array(model.estimators_, dtype=object)):
                yield from cuts_of(member)


def _xgboost(model: Any) -> Iterable[tuple[int, float]]:
    content = json.loads(model.get_booster().save_raw("json"))
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        nodes = zip(tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True)
        yield from ((f, float(np.float32(t))) for f, t, child in nodes if child >= 0)


def _lightgbm(model: Any) -> Iterable[tuple[int, float]]:
    def walk(node: dict[str, Any]) -> Iterable[tuple[int, float]]:
        if "threshold" in node:
            yield int(node["split_feature"]), float(node["threshold"])
            yield from walk(node["left_child"])
            yield from walk(node["right_child"])

    for tree in model.booster_.dump_model()["tree_info"]:
        yield from walk(tree["tree_structure"])
