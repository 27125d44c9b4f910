"""Random questions: small spaces with missing cells and codes, models that take them, a person, a cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt

__all__ = ["KINDS", "Question", "draw"]

LEVELS: Final = ("blue", "green", "red")
NAMES: Final = ("a", "b", "c", "d")
ROWS: Final = 160


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: ``explain(model, row, space, target=target, cost=cost, constraints=rules)``."""

    model: Any
    row: pd.DataFrame
    space: ceopt.FeatureSpace
    target: Any
    cost: Any
    rules: tuple[Any, ...]


# ---- models ----------------------------------------------------------------------------------------------------------
def _on_numbers(model: Any) -> Callable[[pd.DataFrame], Any]:
    """Put the levels of the category, and its gaps, into numbers before a model that takes missing numbers."""

    def pipeline(frame: pd.DataFrame) -> Any:
        words = [name for name in frame if frame[name].dtype.kind == "O"]
        if not words:
            return model
        known = [*LEVELS, np.nan] if frame[words].isna().any(axis=None) else list(LEVELS)
        encoder = OrdinalEncoder(categories=[known] * len(words), encoded_missing_value=np.nan)
        return make_pipeline(make_column_transformer((encoder, words), remainder="passthrough"), model)

    return pipeline


def _imputed(model: Any, strategy: str, *, indicator: bool) -> Callable[[pd.DataFrame], Any]:
    """Fill gaps in before a model that takes none."""

    def pipeline(frame: pd.DataFrame) -> Any:
        words = [name for name in frame if frame[name].dtype.kind == "O"]
        numbers = [name for name in frame if name not in words]
        fill = SimpleImputer(strategy=strategy, add_indicator=indicator)
        steps: list[Any] = [(make_pipeline(fill, StandardScaler()), numbers)]
        if words:
            filled = SimpleImputer(strategy="most_frequent")
            steps.append((make_pipeline(filled, OneHotEncoder(handle_unknown="ignore")), words))
        return make_pipeline(make_column_transformer(*steps), model)

    return pipeline


def _xgboost() -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1, random_state=0)


def _lightgbm() -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(n_estimators=8, num_leaves=6, min_child_samples=5, verbose=-1, n_jobs=1)


KINDS: Final[Mapping[str, Callable[[], Callable[[pd.DataFrame], Any]]]] = {
    "histogram": lambda: _on_numbers(HistGradientBoostingClassifier(max_iter=8, max_depth=3, min_samples_leaf=5)),
    "histogram_value": lambda: _on_numbers(HistGradientBoostingRegressor(max_iter=8, max_depth=3, min_samples_leaf=5)),
    "xgboost": lambda: _on_numbers(_xgboost()),
    "lightgbm": lambda: _on_numbers(_lightgbm()),
    "tree": lambda: _on_numbers(DecisionTreeClassifier(max_depth=4, random_state=0)),
    "forest": lambda: _on_numbers(RandomForestClassifier(7, max_depth=4, random_state=0, n_jobs=1)),
    "extra_trees": lambda: _on_numbers(ExtraTreesClassifier(7, max_depth=4, random_state=0, n_jobs=1)),
    "mean_logistic": lambda: _imputed(LogisticRegression(), "mean", indicator=False),
    "median_logistic": lambda: _imputed(LogisticRegression(), "median", indicator=True),
    "constant_logistic": lambda: _imputed(LogisticRegression(), "constant", indicator=True),
    "mean_forest": lambda: _imputed(RandomForestClassifier(7, max_depth=4, random_state=0), "mean", indicator=True),
    "frequent_tree": lambda: _imputed(DecisionTreeClassifier(max_depth=4), "most_frequent", indicator=False),
    "mean_network": lambda: _imputed(
        MLPClassifier((5,), max_iter=60, random_state=0, solver="lbfgs"), "mean", indicator=True
    ),
}


# ---- spaces ----------------------------------------------------------------------------------------------------------
def _feature(name: str, rng: np.random.Generator) -> ceopt.Feature:
    missing = rng.choice(np.array([False, True, True, "stays", "may_vanish"], dtype=object))
    common: dict[str, Any] = {
        "missing": missing,
        "fill": float(rng.choice([0.0, 0.5, 1.0, 2.5, np.inf], p=[0.1, 0.2, 0.4, 0.2, 0.1])),
        "mutable": bool(rng.random() < 0.85),
        "weight": (1.0, float(rng.choice([1.0, 3.0]))),
    }
    kind = rng.choice(["integer", "ordinal", "categorical", "binary", "continuous"], p=[0.4, 0.2, 0.2, 0.1, 0.1])
    if kind == "categorical":
        return ceopt.Feature(name, kind="categorical", levels=LEVELS, dtype="object", **common)
    common["direction"] = rng.choice(["any", "any", "increasing", "decreasing"])
    if kind not in {"binary", "ordinal"}:
        limits = np.array([None, None, 1.0, 2.5, "50%"], dtype=object)
        common |= {"max_up": rng.choice(limits), "max_down": rng.choice(limits)}
    in_reach = bool(rng.random() < 0.3)
    if kind == "binary":
        return ceopt.Feature(name, kind="binary", levels=(0.0, 1.0), **common)
    if kind == "ordinal":
        codes = (-9.0,) if rng.random() < 0.5 else ()
        levels = (*codes, 1.0, 2.0, 3.0)
        return ceopt.Feature(name, kind="ordinal", levels=levels, codes=codes, codes_in_reach=in_reach, **common)
    codes = tuple(rng.choice([-9.0, 2.0, 98.0], size=int(rng.integers(3)), replace=False).tolist())
    lower = float(rng.integers(0, 3))
    bounds: dict[str, Any] = {"lower": lower, "upper": lower + float(rng.integers(2, 6))}
    if rng.random() < 0.5:
        bounds |= {"lower_inferred": True, "upper_inferred": True}
    step = 0.5 if kind == "continuous" else None
    dtype = "float64"
    return ceopt.Feature(
        name, kind=kind, step=step, dtype=dtype, codes=codes, codes_in_reach=in_reach, **bounds, **common
    )


def _values(feature: ceopt.Feature, rng: np.random.Generator, size: int) -> np.ndarray:
    if feature.is_finite:
        pool: list[Any] = list(feature.levels)
    else:
        step = feature.step or 1.0
        amounts = np.arange(feature.lower, feature.upper + step / 2, step)
        pool = [*amounts.tolist(), *feature.codes]
    if feature.missing is not False:
        pool += [np.nan, np.nan]
    places = rng.integers(len(pool), size=size)
    kind = object if feature.kind == "categorical" else float
    return np.array([pool[place] for place in places], dtype=kind)


def draw(kind: str, number: int) -> Question | None:
    """Return a question, the same for the same number; None where the model decides alike about everybody."""
    rng = np.random.default_rng([number, *map(ord, kind)])
    features = [_feature(name, rng) for name in NAMES[: int(rng.integers(2, 5))]]
    space = ceopt.FeatureSpace(features)
    frame = pd.DataFrame({feature.name: _values(feature, rng, ROWS) for feature in features})
    weights = rng.normal(size=len(features))
    score = rng.normal(0.0, 0.4, ROWS)
    for weight, feature in zip(weights, features, strict=True):
        ranks = pd.factorize(frame[feature.name], sort=True, use_na_sentinel=False)[0]
        score += weight * rng.normal(size=ranks.max() + 1)[ranks] + 0.5 * weight * ranks / max(ranks.max(), 1)
    is_value = kind.endswith("value")
    labels = score if is_value else (score > np.quantile(score, rng.uniform(0.3, 0.8))).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KINDS[kind]()(frame).fit(frame, labels)
        predicted = model.predict(frame)
    target: Any = 1
    if is_value:
        target = ceopt.AtLeast(float(np.quantile(predicted, rng.uniform(0.5, 0.95))))
        outside = np.flatnonzero(predicted < target.value)
    else:
        outside = np.flatnonzero(predicted != 1)
    if not len(outside):
        return None
    row = frame.iloc[[int(rng.choice(outside))]]
    costs = [
        ceopt.L1(scale="none"),
        ceopt.L1(scale="range"),
        ceopt.L0(),
        ceopt.L2(scale="none"),
        ceopt.Linf(scale="none"),
    ]
    cost = costs[int(rng.integers(len(costs)))]
    rules: tuple[Any, ...] = ()
    if rng.random() < 0.3:
        rules = (ceopt.MaxChanges(int(rng.integers(1, len(features) + 1))),)
    numbers = [feature.name for feature in features if not feature.is_finite]
    if numbers and rng.random() < 0.3:
        rules = (*rules, ceopt.MaxMove(numbers, up=float(rng.integers(1, 4)), down="50%"))
    return Question(model, row, space, target, cost, rules)
