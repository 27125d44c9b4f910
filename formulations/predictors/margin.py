"""The margin of a decision: how large a model's scores are, and the least slack that a solver can be trusted with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ceopt.formulations.predictors.combination import Combination
from ceopt.formulations.predictors.network import ReluNetwork
from ceopt.formulations.predictors.representation import Affine, TreeEnsemble
from ceopt.formulations.space.level_table import span
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.predictors.tree import Floats
    from ceopt.formulations.space.feature import Feature

__all__ = ["checked_margin", "default_margin", "row_scale", "score_size"]

#: Ten times the feasibility tolerance that mixed-integer solvers use: a smaller margin is inside their noise.
_LEAST = 1e-5
#: Sizes of scores for which that tolerance is neither coarse nor lost in rounding: rows keep the score's own unit.
_ORDINARY = (1e-2, 1e6)


_SIZES: WeakKeyDictionary[Predictor, float] = WeakKeyDictionary()


def score_size(predictor: Predictor) -> float:
    """Return by how much a score can differ through one column (linear, networks) or through all leaves (trees).

    A number counts with its range, or where it has none with its scale. A combination's is the sum of its members'.
    Kept as long as the predictor lives.
    """
    if predictor not in _SIZES:
        _SIZES[predictor] = _score_size(predictor)
    return _SIZES[predictor]


def _score_size(predictor: Predictor) -> float:
    core = predictor.core
    match core:
        case TreeEnsemble():
            spread = [np.ptp(tree.value[tree.feature < 0], axis=0).max() for tree in core.trees]
            return float(sum(spread)) / core.divisor
        case Combination():
            pairs = zip(core.members, core.weights, strict=True)
            sizes = [np.abs(w).max() * (1.0 if core.votes else score_size(member)) for member, w in pairs]
            return float(sum(sizes)) / core.divisor
        case ReluNetwork():
            reach = _column_sizes(predictor, core.weights[0])
            for w in core.weights[1:]:
                reach = np.abs(w) @ reach
            return float(reach.max(initial=0.0))
        case Affine():
            return float(_column_sizes(predictor, core.weights).max(initial=0.0))
    raise AssertionError


def _column_sizes(predictor: Predictor, weights: Floats) -> Floats:
    """Return by how much each row of weights can change its sum through each matrix column, (K, m)."""
    sizes = np.abs(weights)
    for place, column in enumerate(predictor.encoding.columns):
        if column.feature is None:
            width = 0.0
        elif column.table is not None:
            width = span(column.table)
        elif not weights[:, place].any():
            width = 0.0  # a column that is not read may be one that clips
        else:
            width = abs(column.affine()[0]) * _width(predictor.space[column.feature])
        sizes[:, place] *= width
    return sizes


def _width(feature: Feature) -> float:
    width = feature.upper - feature.lower
    return width if math.isfinite(width) and width > 0 else float(feature.scale("range"))


def default_margin(predictor: Predictor) -> float:
    """Return the least slack that a solver can be trusted with, in the model's own score.

    1e-5 for scores of ordinary size. A solver's binaries are off by up to 1e-6, which leaves of size s turn into an
    error of 1e-6 s, so trees take 1e-5 s beyond 1; other scores, whose large terms are coordinates, beyond 100. Very
    small scores are stated in larger units (:func:`row_scale`) and take 1e-3 of their size.
    """
    size = score_size(predictor)
    if 0.0 < size < _ORDINARY[0]:
        return 1e-3 * size
    return _LEAST * max(1.0, size if predictor.forests else size / 100.0)


def row_scale(predictor: Predictor) -> float:
    """Return what rows over the score are multiplied with: 1, or a power of two that brings its size near 1."""
    size = score_size(predictor)
    return 1.0 if size == 0.0 or _ORDINARY[0] <= size <= _ORDINARY[1] else 2.0 ** -round(math.log2(size))


def checked_margin(margin: float | None, predictor: Predictor) -> float:
    """Return the margin to use, or refuse one that is negative or not a number."""
    if margin is None:
        return default_margin(predictor)
    if isinstance(margin, bool) or not isinstance(margin, int | float | np.number) or not 0.0 <= margin < math.inf:
        raise InvalidValueError("Reaches", "a margin of at least 0", f"margin is {margin!r}", "Give None or a number.")
    return float(margin)
