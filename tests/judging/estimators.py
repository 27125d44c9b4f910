"""Small estimators of every library, by the kind of model; 0 classes ask for a regressor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from judging.columns import Rng, pick
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

Maker = Callable[[Rng, int, int], Any]


def tree(rng: Rng, classes: int, state: int) -> Any:
    """Return a single tree."""
    depth = int(rng.integers(2, 6))
    if not classes:
        return DecisionTreeRegressor(max_depth=depth, random_state=state)
    return pick(rng, DecisionTreeClassifier, DecisionTreeClassifier, ExtraTreeClassifier)(
        max_depth=depth, min_samples_leaf=pick(rng, 1, 4), random_state=state
    )


def forest(rng: Rng, classes: int, state: int) -> Any:
    """Return a forest or bagged trees; one in thirty adds up in parallel."""
    trees, depth = int(rng.integers(2, 11)), int(rng.integers(1, 4))
    jobs = 2 if rng.uniform() < 0.03 else None
    if rng.uniform() < 0.15:
        base = (DecisionTreeClassifier if classes else DecisionTreeRegressor)(max_depth=depth)
        return (BaggingClassifier if classes else BaggingRegressor)(
            base, n_estimators=min(trees, 5), random_state=state
        )
    kinds = (RandomForestClassifier, ExtraTreesClassifier) if classes else (RandomForestRegressor, ExtraTreesRegressor)
    options = {"n_estimators": trees, "max_depth": depth, "random_state": state, "n_jobs": jobs}
    return pick(rng, *kinds)(min_samples_leaf=pick(rng, 1, 1, 5), **options)


def boosting(rng: Rng, classes: int, state: int) -> Any:
    """Return a boosted ensemble of one of three libraries."""
    import lightgbm
    import xgboost

    rounds, depth, rate = int(rng.integers(1, 6)), int(rng.integers(1, 4)), pick(rng, 0.1, 0.5, 1.0)
    options = {"n_estimators": rounds, "learning_rate": rate, "random_state": state}
    which = int(rng.integers(9))
    if which < 2:
        kind = GradientBoostingClassifier if classes else GradientBoostingRegressor
        return kind(max_depth=depth, init=pick(rng, None, "zero"), **options)
    if which < 4:
        hist = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        return hist(max_iter=rounds, max_leaf_nodes=6, learning_rate=rate, min_samples_leaf=5, random_state=state)
    if which < 5 and classes:
        return AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=min(depth, 2)), n_estimators=rounds, random_state=state
        )
    if which < 7:
        booster = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
        return booster(max_depth=depth, n_jobs=1, min_child_weight=0, **options)
    light = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    return light(num_leaves=6, n_jobs=1, verbose=-1, min_child_samples=5, **options)


def linear(rng: Rng, classes: int, state: int) -> Any:
    """Return a linear model."""
    if not classes:
        return pick(rng, LinearRegression(), Ridge())
    return pick(
        rng,
        LogisticRegression(max_iter=300),
        LogisticRegression(max_iter=300),
        LinearSVC(max_iter=3000, random_state=state),
        RidgeClassifier(),
        SGDClassifier(loss="log_loss", max_iter=50, tol=None, random_state=state),
    )


def network(rng: Rng, classes: int, state: int) -> Any:
    """Return a small network."""
    widths = [int(width) for width in rng.integers(2, 6, int(rng.integers(1, 3)))]
    kind = MLPClassifier if classes else MLPRegressor
    return kind(hidden_layer_sizes=widths, max_iter=40, learning_rate_init=0.03, random_state=state)


def votes(rng: Rng, classes: int, state: int) -> Any:
    """Return a vote of few models: of labels, of probabilities, or a mean of values; weights make ties."""
    count = int(rng.integers(2, 5))
    kinds: list[Maker] = [tree, tree, tree, small_forest, *([linear] if rng.uniform() < 0.3 else [])]
    members = [(f"m{k}", pick(rng, *kinds)(rng, classes, state + k)) for k in range(count)]
    weights = pick(rng, None, None, [int(w) for w in rng.integers(1, 4, count)])
    if not classes:
        return VotingRegressor(members, weights=weights)
    soft = rng.uniform() < 0.4 and all(hasattr(member, "predict_proba") for _, member in members)
    return VotingClassifier(members, voting="soft" if soft else "hard", weights=weights)


def small_forest(rng: Rng, classes: int, state: int) -> Any:
    """Return a forest of few shallow trees."""
    kind = RandomForestClassifier if classes else RandomForestRegressor
    return kind(n_estimators=int(rng.integers(2, 4)), max_depth=2, random_state=state)


MAKERS: dict[str, Maker] = {
    "linear": linear,
    "tree": tree,
    "forest": forest,
    "boosting": boosting,
    "network": network,
    "votes": votes,
}
