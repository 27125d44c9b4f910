"""The margin of a decision: how large a model's scores are, and the least slack that a solver can be trusted with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.formulations.predictors.representation.predictor import Combination
from ceopt.formulations.predictors.representation.relu_network import ReluNetwork
from ceopt.formulations.predictors.representation.trees import TreeEnsemble
from ceopt.formulations.space.encoding import span
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.tolerances import (
    LEAST_MARGIN,
    MARGIN_OF_A_ROW,
    MARGIN_OF_TERMS,
    MARGIN_OF_THE_WAY,
    SOLVER_TOLERANCE,
)
from ceopt.solvers.checks import AllOf, Divisor, Real, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ceopt.formulations.predictors.representation.decision_rule import Floats
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Reach

__all__ = ["checked_margin", "default_margin", "margin_near", "rounding_at", "rounding_in", "row_scale", "score_size"]

_NO_MARGIN = Refusal("a margin of at least 0", "Give None or a number.")
_MARGIN = AllOf(
    (
        Real(at_least=0.0, finite=True, otherwise=_NO_MARGIN),
        Divisor("Give None, 0 or an ordinary number."),
    )
)

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
    """Return the least slack that a solver can be trusted with where nobody is asked about, in the model's own score.

    1e-5; trees, whose leaves of size s a solver's binary turns into an error of 1e-6 s, take 1e-5 s beyond 1. Very
    small scores are stated in larger units (``row_scale``) and take 1e-3 of their size. How wide bounds are is no
    matter: for a person, :func:`margin_near` says how large the numbers near the answer are.
    """
    size = score_size(predictor)
    if 0.0 < size < _ORDINARY[0]:
        return 1e-3 * size
    if predictor.is_trees:
        leaves = size
    else:
        leaves = sum(map(score_size, predictor.forests))
    return LEAST_MARGIN * max(1.0, leaves)


def margin_near(predictor: Predictor, away: float, coordinates: Floats) -> float:
    r"""Return the least slack to ask for near a person whose score is ``away`` from the decision, in the model's score.

    .. math:: m = \max\bigl(\min(10^{-5},\ 5 \cdot 10^{-6}\, a),\ 10^{-11}\, t\bigr)

    with a the way to the decision, and t the size of the numbers that the score adds up at the person (1e-6 t where the
    model computes in float32). Of a model whose score is linear, the answer then costs at most 5e-6 more than the
    infimum, relatively, unless the person stands within 2e-6 t of the decision. Trees decide by cells and votes are
    counted, so these keep :func:`default_margin`; so does whatever has trees among its parts, and a person at a tie.

    Parameters
    ----------
    away
        By how much the score misses the target, its sign no matter.
    coordinates
        The person, (1, d).
    """
    if _is_counted(predictor) or not math.isfinite(away):
        return default_margin(predictor)
    wanted = min(LEAST_MARGIN, MARGIN_OF_THE_WAY * abs(away)) or default_margin(predictor)
    return max(wanted, rounding_at(predictor, coordinates))


def rounding_at(predictor: Predictor, coordinates: Floats, *, in_row: bool = False) -> float:
    """Return how far apart scores at a point (1, d) are told: 1e-11 t, 1e-6 t in float32; 0 of trees and votes.

    A row over the score may be missed by 1e-9 t by a solver.
    """
    shares = MARGIN_OF_A_ROW if in_row else MARGIN_OF_TERMS
    if _is_counted(predictor):
        return 0.0
    return sum(shares[_width_of(part)] * _terms(part, coordinates) for part in predictor.parts)


def rounding_in(predictor: Predictor, factual: Mapping[str, float], reach: Reach) -> float:
    """Return by how much a solver may take a row over the score for missed, anywhere in reach, that is a tie."""
    lowest, highest = dict(factual), dict(factual)
    for name, part in reach.items():
        if not isinstance(part, Interval):
            continue
        if math.isfinite(part.lower):
            lowest[name] = part.lower
        if math.isfinite(part.upper):
            highest[name] = part.upper
    roundings = []
    for point in (factual, lowest, highest):
        coordinates = np.array([[point[name] for name in predictor.space.names]])
        roundings.append(rounding_at(predictor, coordinates, in_row=True))
    return max(roundings)


def _is_counted(predictor: Predictor) -> bool:
    """Whether trees or votes make the score: it does not move with the numbers near a person."""
    return bool(predictor.forests) or (isinstance(predictor.core, Combination) and predictor.core.votes)


def _width_of(part: Predictor) -> str:
    """Return the float width in which a linear model or a network computes its score."""
    return str(np.result_type(part.encoding.dtype, getattr(part.core, "dtype", "float64")))


def _terms(part: Predictor, coordinates: Floats) -> float:
    """Return the size of the numbers that the scores of a linear model or a network add up at a point."""
    core = part.core
    columns = part.encoding.columns
    seen = np.nan_to_num(np.abs(part.encoding.matrix(coordinates)[0].astype(np.float64)))
    place = {name: j for j, name in enumerate(part.space.names)}
    for j, column in enumerate(columns):  # a scaler takes the difference of two numbers that may be large
        if column.feature is not None and column.table is None and column.is_affine:
            seen[j] = max(seen[j], abs(column.affine()[0] * coordinates[0, place[column.feature]]))
    if isinstance(core, ReluNetwork):
        for weights, biases in zip(core.weights, core.biases, strict=True):
            seen = np.abs(weights) @ seen + np.abs(biases)
        return float(seen.max(initial=0.0))
    assert isinstance(core, Affine)  # noqa: S101 - trees have been dealt with
    return float((np.abs(core.weights) @ seen + np.abs(core.intercept)).max(initial=0.0))


def row_scale(predictor: Predictor, margin: float) -> float:
    """Return what rows over the score are multiplied with: 1, or a power of two, where a tolerance hides the margin.

    The size of the score counts where there is no margin and it is small, and where leaves are large.
    """
    size = score_size(predictor)
    if 0.0 < margin < SOLVER_TOLERANCE:
        return 2.0 ** math.ceil(math.log2(LEAST_MARGIN / margin))
    is_small = margin == 0.0 and 0.0 < size < _ORDINARY[0]
    is_far = is_small or (predictor.is_trees and size > _ORDINARY[1])
    return 2.0 ** -round(math.log2(size)) if is_far else 1.0


def checked_margin(margin: float | None, predictor: Predictor) -> float:
    """Return the margin to use, or refuse one that is negative or not a number."""
    if margin is None:
        return default_margin(predictor)
    checked: float = _MARGIN.require("Reaches", "margin", margin)
    return checked
