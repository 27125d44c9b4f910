"""Random small models of every kind, each with its own predict on coordinates and nothing of the package's reading."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from judging.columns import Floats, Rng, frame_of, pick, sample, unit
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.space import FeatureSpace


@dataclass(frozen=True)
class Fitted:
    """A model as it is given to ``explain``, and what its user would ask of it.

    ``ask`` takes what ``seen`` makes of coordinates (a frame, or the matrix of an array model) and returns labels or
    values; ``chance`` probabilities (n, K). ``arrays`` are the weights or trees of a model that was written by hand.
    """

    given: Any
    space: FeatureSpace
    labels: tuple[Any, ...] | None
    seen: Callable[[Floats], Any]
    ask: Callable[[Any], NDArray[Any]]
    chance: Callable[[Any], Floats] | None = None
    #: In no fixed order does the library add up: a tie is undecided.
    unordered: bool = False
    data: pd.DataFrame | None = None
    people: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    title: str = ""
    #: Columns of numbers -> (mean, scale) of the pipeline's scaler.
    scaled: dict[int, tuple[float, float]] = field(default_factory=dict)

    def predict(self, points: Floats) -> NDArray[Any]:
        """Return what the model says of coordinates (n, d)."""
        return np.asarray(self.ask(self.seen(points))).reshape(len(points))

    def each_tree(self, points: Floats) -> list[NDArray[Any]]:
        """Return what each tree of a forest says of coordinates, each asked alone."""
        given, at = self.given, self.seen(points)
        if hasattr(given, "named_steps"):
            at, given = given[:-1].transform(at), given[-1]
        at = np.asarray(at, dtype=np.float64)
        every = [slice(None)] * len(given.estimators_)
        said = []
        for tree, columns in zip(given.estimators_, getattr(given, "estimators_features_", every), strict=True):
            own = tree.predict(at[:, columns])
            said.append(own if self.labels is None else np.asarray(given.classes_)[own.astype(int)])
        return said

    def probability(self, points: Floats, label: Any) -> Floats:
        """Return the model's probability of a label."""
        assert self.chance is not None
        assert self.labels is not None
        return np.asarray(self.chance(self.seen(points)), dtype=float)[:, list(self.labels).index(label)]


# ---- data ------------------------------------------------------------------------------------------------------------
def hidden(rng: Rng, space: FeatureSpace, points: Floats) -> Floats:
    """Return a random score of people."""
    at = unit(space, points)
    bends = np.sin(at @ rng.normal(0, 4, (at.shape[1], 2))) @ rng.normal(size=2)
    return np.asarray(at @ rng.normal(0, 2, at.shape[1]) + bends + rng.normal(0, 0.3, len(at)))


def labelled(rng: Rng, score: Floats, classes: int) -> NDArray[Any]:
    """Return a label for each person."""
    names = pick(rng, tuple("uvwx"[:classes]), tuple(range(classes)), (False, True) if classes == 2 else (1, 2, 3, 5))
    cuts = np.quantile(score, np.sort(rng.uniform(0.15, 0.85, classes - 1)))
    place = np.digitize(score, cuts)
    place[:classes] = range(classes)
    return np.array([names[k] for k in place])


def valued(rng: Rng, score: Floats) -> Floats:
    """Return a value for each person: whole numbers, tenths or any."""
    places = pick(rng, 0, 0, 1, 6)
    return np.asarray(np.round(score * pick(rng, 1.0, 3.0), places)) + 0.0


# ---- fitted by a library ---------------------------------------------------------------------------------------------
def fitted(rng: Rng, space: FeatureSpace, home: Floats, make: Any, *, classes: int, n: int, scale: bool) -> Fitted:
    """Fit an estimator on people of the space, behind a pipeline where columns need one; 0 classes: a regressor."""
    points = sample(rng, space, home, n)
    score = hidden(rng, space, points)
    y = labelled(rng, score, classes) if classes else valued(rng, score)
    if type(make).__name__ == "XGBClassifier":  # takes whole numbers from 0 only
        y = np.unique(y, return_inverse=True)[1]
    numbers = all(not f.is_finite or not isinstance(f.levels[0], str) for f in space)
    as_array = numbers and not scale and all(f.kind != "categorical" for f in space)
    data = frame_of(space, points)
    scaled: dict[int, tuple[float, float]] = {}

    def seen(at: Floats) -> Any:
        frame = frame_of(space, at)
        return frame.to_numpy(dtype=np.float64) if as_array else frame

    whole = make if as_array else make_pipeline(_encoder(space, scale=scale), make)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a small network that has not converged is a model like any other
        whole.fit(seen(points), y)
    if scale and "number" in whole[0].named_transformers_:
        names = [f.name for f in space if not f.is_finite]
        step = whole[0].named_transformers_["number"]
        pairs = zip(names, step.mean_.tolist(), step.scale_.tolist(), strict=True)
        scaled = {space.names.index(name): (mean, size) for name, mean, size in pairs}
    labels = tuple(np.asarray(whole.classes_).tolist()) if classes else None
    chance = whole.predict_proba if classes and hasattr(whole, "predict_proba") else None
    title = type(make).__name__
    return Fitted(
        whole, space, labels, seen, whole.predict, chance, data=data, people=points, title=title, scaled=scaled
    )


def _encoder(space: FeatureSpace, *, scale: bool) -> ColumnTransformer:
    hot = [f.name for f in space if f.kind == "categorical" or (f.kind == "binary" and isinstance(f.levels[0], str))]
    text = [f.name for f in space if f.kind == "ordinal" and isinstance(f.levels[0], str)]
    ranked = [list(space[name].levels) for name in text]
    number = [f.name for f in space if not f.is_finite]
    levels = [sorted(space[name].levels) for name in hot]
    steps = [
        ("number", StandardScaler() if scale else "passthrough", number),
        ("hot", OneHotEncoder(categories=levels, sparse_output=False), hot),
        ("text", OrdinalEncoder(categories=ranked), text),
    ]
    return ColumnTransformer([step for step in steps if step[2]], remainder="passthrough")


# ---- written by hand -------------------------------------------------------------------------------------------------
def matrix_of(space: FeatureSpace, points: Floats) -> Floats:
    """Return the matrix of a plain-array model: numbers, levels that are numbers, else ranks."""
    columns = []
    for j, feature in enumerate(space):
        column = points[:, j]
        if feature.is_finite and not isinstance(feature.levels[0], str):
            column = np.array(feature.levels, dtype=float)[column.astype(int)]
        columns.append(column)
    return np.stack(columns, axis=1)


def by_hand(
    given: Any, space: FeatureSpace, labels: tuple[Any, ...] | None, score: Callable[[Floats], Floats],
    *, logistic: bool = False, shares: bool = False, title: str = "",
) -> Fitted:  # fmt: skip
    """Wrap a representation with a score of its own: (n,) of a regressor or two labels, (n, K) else.

    The representation is the model itself, so that a tie is what its own last bit says. Everything else has to be what
    the score says that is written here.
    """

    def scores_of(matrix: Floats) -> Floats:
        own, expected = np.asarray(given.score(matrix)), score(matrix)
        own = own.reshape(expected.shape)
        size = 1.0 + np.abs(matrix).sum(axis=1).max(initial=0.0)
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-12 * size)
        return own

    def ask(matrix: Floats) -> NDArray[Any]:
        scores = scores_of(matrix)
        if labels is None:
            return scores
        place = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.array(labels, dtype=object)[place]

    def chance(matrix: Floats) -> Floats:
        scores = scores_of(matrix)
        if shares:
            return scores
        with np.errstate(over="ignore"):
            expected = 1.0 / (1.0 + np.exp(-scores))
        own = np.stack([given.head.of_position(scores, position) for position in (0, 1)], axis=1)
        np.testing.assert_allclose(own, np.stack([1.0 - expected, expected], axis=1), rtol=0.0, atol=1e-15)
        return own

    known = chance if logistic or shares else None
    return Fitted(given, space, labels, lambda at: matrix_of(space, at), ask, known, title=title)


def affine(rng: Rng, space: FeatureSpace, *, what: str) -> Fitted:
    """Return random weights: whole numbers over the column's own width, so that ties occur."""
    sizes = np.array([_width(f) for f in space])
    rows = int(rng.integers(3, 5)) if what == "scores" else 1
    whole = rng.integers(-3, 4, (rows, len(space))).astype(float)
    exact = np.array(
        [1.0 if size <= 10 else float(pick(rng, size, 10.0 ** np.round(np.log10(size)))) for size in sizes]
    )
    weights = whole / exact * (1.0 if rng.uniform() < 0.6 else rng.uniform(0.3, 2.0, whole.shape))
    base = rng.integers(-4, 5, rows).astype(float) + (0.0 if rng.uniform() < 0.6 else rng.uniform(-1, 1, rows))
    labels = {"value": None, "score": ("bad", "good"), "logistic": ("bad", "good"), "scores": tuple("wxyz"[:rows])}[
        what
    ]
    given_w, given_b = (weights, base) if what == "scores" else (weights[0], base[0])
    options = {"probability": "logistic"} if what == "logistic" else {}
    model = Affine(given_w, given_b, labels=labels, **options)

    def score(matrix: Floats) -> Floats:
        scores = matrix @ weights.T + base
        return scores if what == "scores" else scores[:, 0]

    return by_hand(model, space, labels, score, logistic=what == "logistic", title="Affine")


def _width(feature: Any) -> float:
    if feature.is_finite:
        return 1.0
    width = feature.upper - feature.lower
    return float(width) if np.isfinite(width) and width > 0 else 8.0


def network(rng: Rng, space: FeatureSpace, *, what: str) -> Fitted:
    """Return a random network of one or two layers; one in three reads its wide columns unscaled."""
    sizes = np.array([_width(f) for f in space])
    unscaled = rng.uniform() < 0.35
    rows = 3 if what == "scores" else 1
    widths = [len(space), *(int(w) for w in rng.integers(2, 6, int(rng.integers(1, 3)))), rows]
    weights = [rng.normal(0, 1.5 / np.sqrt(a), (b, a)) for a, b in itertools.pairwise(widths)]
    if not unscaled:
        weights[0] = weights[0] / np.maximum(sizes, 1.0)
    if rng.uniform() < 0.3:
        weights = [np.round(w, 2) if unscaled or k else w for k, w in enumerate(weights)]
    middle = np.array([_middle(f) for f in space])
    biases = [rng.normal(0, 0.5, len(w)) for w in weights]
    biases[0] = biases[0] - weights[0] @ (middle * (1.0 if unscaled else 0.7))
    labels = {"value": None, "score": ("bad", "good"), "logistic": ("bad", "good"), "scores": tuple("xyz")}[what]
    options = {"probability": "logistic"} if what == "logistic" else {}
    model = ReluNetwork(weights, biases, labels=labels, **options)

    def score(matrix: Floats) -> Floats:
        h = matrix
        for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
            h = h @ w.T + b
            h = np.maximum(h, 0.0) if k < len(weights) - 1 else h
        return h if what == "scores" else h[:, 0]

    return by_hand(model, space, labels, score, logistic=what == "logistic", title="ReluNetwork")


def _middle(feature: Any) -> float:
    if feature.is_finite:
        return 0.5 * (len(feature.levels) - 1)
    return 0.5 * (feature.lower + feature.upper) if np.isfinite(feature.upper - feature.lower) else 0.0


def nested(rng: Rng, space: FeatureSpace, width: int, depth: int, *, shares: bool) -> dict[str, Any]:
    """Return a random tree with small whole leaves, or shares in quarters, tenths or thirds."""
    if depth == 0 or rng.uniform() < 0.12:
        if shares:
            first = float(rng.integers(0, 11)) / pick(rng, 10.0, 10.0, 10.0)
            return {"value": [first, 1.0 - first]}
        values = rng.integers(-2, 3, width) * pick(rng, 1.0, 1.0, 0.1)
        return {"value": float(values[0]) if width == 1 else values.tolist()}
    j = int(rng.integers(len(space)))
    feature = space[space.names[j]]
    if feature.is_finite:
        seen = sorted(
            map(float, feature.levels if not isinstance(feature.levels[0], str) else range(len(feature.levels)))
        )
        at = float(pick(rng, *seen, seen[0] + 0.5))
    else:
        low, high = (feature.lower, feature.upper) if np.isfinite(feature.lower) else (-4.0, 4.0)
        at = low + (high - low) * float(rng.integers(0, 17)) / 16
        at = at if rng.uniform() < 0.7 else float(pick(rng, np.round(at, 1), np.floor(at), np.nextafter(at, 1e300)))
    sides = {side: nested(rng, space, width, depth - 1, shares=shares) for side in ("left", "right")}
    return {"feature": j, "threshold": at, **sides}


def ensemble(rng: Rng, space: FeatureSpace, *, what: str, most: int) -> Fitted:
    """Return a random ensemble from plain arrays; ties are frequent."""
    width = {"value": 1, "score": 1, "scores": 3, "shares": 2}[what]
    trees = [
        nested(rng, space, width, pick(rng, 1, 2, 3), shares=what == "shares")
        for _ in range(int(rng.integers(1, most + 1)))
    ]
    cast = pick(rng, "float32", "float64")
    labels = {"value": None, "score": ("bad", "good"), "shares": ("bad", "good"), "scores": tuple("xyz")}[what]
    base = 0.0 if what == "shares" else float(rng.integers(-2, 3)) / 2
    options: dict[str, Any] = {"input_dtype": cast, "n_inputs": len(space)}
    if what == "shares":
        options |= {"probability": "share", "divisor": len(trees)}
    model = TreeEnsemble(trees, base, labels=labels, **options)

    def score(matrix: Floats) -> Floats:
        seen = matrix.astype(cast).astype(np.float64)
        total = np.full((len(seen), width), base)
        for tree in trees:
            total = total + _leaves(tree, seen, width)
        total = total / (len(trees) if what == "shares" else 1)
        return total if width > 1 else total[:, 0]

    return by_hand(model, space, labels, score, shares=what == "shares", title="TreeEnsemble")


def _leaves(node: dict[str, Any], seen: Floats, width: int) -> Floats:
    if "value" in node:
        return np.broadcast_to(np.atleast_1d(np.array(node["value"], dtype=float)), (len(seen), width))
    left = seen[:, node["feature"]] <= node["threshold"]
    return np.where(left[:, None], _leaves(node["left"], seen, width), _leaves(node["right"], seen, width))
