"""Where decisions of linear models and networks turn along one column, all others held: roots in closed form."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from judging.columns import Floats
from judging.models import Fitted, matrix_of
from judging.thresholds import matrix_columns

#: Where a column without bounds is looked at: roots beyond lie too far for any question here.
_FAR = 1e5

Layers = list[tuple[Floats, Floats]]


def layers_of(model: Fitted) -> Layers:
    """Return (weights, biases) per layer, (out, in), of a linear model (one layer) or a network."""
    given = model.given[-1] if hasattr(model.given, "named_steps") else model.given
    match type(given).__name__:
        case "Affine":
            return [(np.array(given.weights), np.array(given.intercept))]
        case "ReluNetwork":
            pairs = zip(given.weights, given.biases, strict=True)
            return [(np.array(w), np.array(b)) for w, b in pairs]
        case "MLPClassifier" | "MLPRegressor":
            pairs = zip(given.coefs_, given.intercepts_, strict=True)
            return [(np.asarray(w, dtype=float).T, np.asarray(b, dtype=float)) for w, b in pairs]
    return [(np.atleast_2d(given.coef_), np.atleast_1d(given.intercept_).astype(float))]


def encoded(model: Fitted, points: Floats) -> Floats:
    """Return the matrix that the layers see."""
    if hasattr(model.given, "named_steps"):
        return np.asarray(model.given[:-1].transform(model.seen(points)), dtype=float)
    if hasattr(model.given, "predict") and hasattr(model.given, "fit"):
        return np.asarray(model.seen(points), dtype=float)
    return matrix_of(model.space, points)


def turns(model: Fitted, points: Floats, column: int, levels: list[float], low: float, high: float) -> list[Floats]:
    """Return for each row of points (n, d) the values of a column at which a decision may turn.

    ``levels`` are the values that a single score is held against; several scores are held against each other.
    """
    layers = layers_of(model)
    place = matrix_columns(model).index(column)
    mean, size = model.scaled.get(column, (0.0, 1.0))
    low, high = low if math.isfinite(low) else -_FAR, high if math.isfinite(high) else _FAR
    ends = (np.array([low, high]) - mean) / size
    rest = encoded(model, points).copy()
    rest[:, place] = 0.0
    return [_of_row(layers, row, place, ends, levels) * size + mean for row in rest]


def _of_row(layers: Layers, row: Floats, place: int, ends: Floats, levels: list[float]) -> Floats:
    at = ends
    for k, (weights, biases) in enumerate(layers[:-1]):
        values = _after(layers[:k], row, place, at) @ weights.T + biases
        at = np.union1d(at, _roots(at, values))
    weights, biases = layers[-1]
    scores = _after(layers[:-1], row, place, at) @ weights.T + biases
    if scores.shape[1] == 1:
        gaps = np.stack([scores[:, 0] - level for level in levels], axis=1)
    else:
        pairs = list(itertools.combinations(range(scores.shape[1]), 2))
        gaps = np.stack([scores[:, a] - scores[:, b] for a, b in pairs], axis=1)
    return _roots(at, gaps)


def _after(layers: Layers, row: Floats, place: int, at: Floats) -> Floats:
    h = np.repeat(row[None, :], len(at), axis=0)
    h[:, place] = at
    for weights, biases in layers:
        h = np.maximum(h @ weights.T + biases, 0.0)
    return h


def _roots(at: Floats, values: Floats) -> Floats:
    """Return where functions (m, k), straight between the places ``at`` (m,), are 0, by their ends."""
    found = [at[(values == 0.0).any(axis=1)]]
    before, after = values[:-1], values[1:]
    rows, columns = np.nonzero(before * after < 0.0)
    share = before[rows, columns] / (before[rows, columns] - after[rows, columns])
    found.append(at[rows] + share * (at[rows + 1] - at[rows]))
    return np.unique(np.concatenate(found))


def levels_of(model: Fitted, target: Any) -> list[float]:
    """Return the values of a single score that decide a target."""
    match type(target).__name__:
        case "Probability":
            return [
                math.log(target.at_least / (1 - target.at_least)),
                -math.log(target.at_least / (1 - target.at_least)),
            ]
        case "AtLeast" | "AtMost":
            return [float(target.value)]
        case "Between":
            return [float(target.low), float(target.high)]
    return [0.0]
