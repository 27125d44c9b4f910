"""The margin of a decision: how large a model's scores are, and the least slack that a solver can be trusted with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ceopt.formulations.columns.numeric import origin_of
from ceopt.formulations.digits import digits, rounded
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
    OWN_ROUNDING,
    READABLE_SCORES,
    SOLVER_TOLERANCE,
    SUM_ROUNDING,
)
from ceopt.solvers.checks import AllOf, Divisor, Real, Refusal
from ceopt.solvers.errors import UnsupportedModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ceopt.formulations.predictors.representation.decision_rule import Floats
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.encoding import Column
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Reach

__all__ = [
    "checked_margin",
    "default_margin",
    "has_traces",
    "margin_near",
    "own_rounding",
    "own_steps",
    "rounding_at",
    "rounding_in",
    "row_scale",
    "score_size",
]

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


def has_traces(predictor: Predictor) -> bool:
    """Tell whether a column moves some sum by so little of what others move it that rows may leave it out.

    See ``Inputs.forms``: what is left out is some 1e-12 of the row, which decides only where all else is held.
    """
    for part in predictor.parts:
        core = part.core
        if isinstance(core, Affine | ReluNetwork):
            sizes = _column_sizes(part, core.weights if isinstance(core, Affine) else core.weights[0])
            greatest = sizes.max(axis=1, initial=0.0, keepdims=True)
            if ((sizes > 0.0) & (sizes < SUM_ROUNDING * greatest)).any():
                return True
    return False


def _width(feature: Feature) -> float:
    width = feature.upper - feature.lower
    return width if math.isfinite(width) and width > 0 else float(feature.scale("range"))


def default_margin(predictor: Predictor) -> float:
    """Return the least slack that a solver can be trusted with where nobody is asked about, in the model's own score.

    1e-5; trees, whose leaves of size s a solver's binary turns into an error of 1e-6 s, take 1e-5 s beyond 1. Very
    small scores are stated in larger units (``row_scale``) and take 1e-3 of their size. How wide bounds are is no
    matter: for a person, :func:`margin_near` says how large the numbers near the answer are.

    Raises
    ------
    UnsupportedModelError
        The scores are so small or so large that their squares are no numbers.
    """
    size = score_size(predictor)
    if size and not READABLE_SCORES[0] <= size <= READABLE_SCORES[1]:
        raise UnsupportedModelError(
            "The model", f"scores that differ by {READABLE_SCORES[0]:g} to {READABLE_SCORES[1]:g} within the space",
            f"through no column do they differ by more than {digits(rounded(size, 3, 'up'))}"
            if size < 1.0 else f"through one column they differ by {size:.3g}",
            "Fit it again on scaled columns, or multiply its coefficients and its intercept by one number.",
        )  # fmt: skip
    if 0.0 < size < _ORDINARY[0]:
        return 1e-3 * size
    if predictor.is_trees:
        leaves = size
    else:
        leaves = sum(map(score_size, predictor.forests))
    return LEAST_MARGIN * max(1.0, leaves)


def margin_near(predictor: Predictor, away: float, coordinates: Floats, reach: Reach | None = None) -> float:
    r"""Return the least slack to ask for near a person whose score is ``away`` from the decision, in the model's score.

    .. math:: m = \max\bigl(\min(10^{-5},\ 2.5 \cdot 10^{-6}\, a),\ 10^{-11}\, t,\ 2^{-48}\, t^0\bigr)

    with a the way to the decision, t the size of the numbers that a row over the score adds up near the person, and
    :math:`t^0` that of the numbers that the model itself adds up (1e-6 of both where the model computes in float32). A
    column that cannot move is in no row, and one that counts from the person's own value
    (:func:`~ceopt.formulations.columns.numeric.origin_of`) is in it with its moves alone.

    Of a model whose score is linear, the answer then costs at most 2.5e-6 more than the infimum, relatively (5e-6 where
    squares are charged), unless the person stands within 4e-6 t of the decision, or ``own_steps`` are as large.
    Trees decide by cells and votes are counted, so these keep :func:`default_margin`; so does whatever has trees among
    its parts, and a person at a tie.

    Parameters
    ----------
    away
        By how much the score misses the target, its sign no matter.
    coordinates
        The person, (1, d).
    reach
        Values that the columns may take; None: all may move, and count from 0.
    """
    if _is_counted(predictor) or not math.isfinite(away):
        return default_margin(predictor)
    wanted = min(LEAST_MARGIN, MARGIN_OF_THE_WAY * abs(away)) or default_margin(predictor)
    return max(wanted, rounding_at(predictor, coordinates, reach))


def rounding_at(
    predictor: Predictor, coordinates: Floats, reach: Reach | None = None, *, in_row: bool = False
) -> float:
    """Return how far apart scores at a point (1, d) are told, as :func:`margin_near` says; 0 of trees and votes.

    A row over the score may be missed by a solver by 1e-9 of the numbers that it adds up (``in_row``).
    """
    if _is_counted(predictor):
        return 0.0
    shares = MARGIN_OF_A_ROW if in_row else MARGIN_OF_TERMS
    rounding = 0.0
    for part in predictor.parts:
        width = _width_of(part)
        of_row = shares[width] * _added_up(part, _in_rows(part, coordinates, reach), with_constants=reach is None)
        of_model = OWN_ROUNDING[width] * _added_up(part, _seen(part, coordinates), with_constants=True)
        rounding += max(of_row, of_model)
    return rounding


def own_rounding(predictor: Predictor, coordinates: Floats) -> float:
    """Return by how much two orders of adding up the numbers of a score differ at a point (1, d); 0 of trees, votes."""
    if _is_counted(predictor):
        return 0.0
    rounding = 0.0
    for part in predictor.parts:
        size = _added_up(part, _seen(part, coordinates), with_constants=True)
        rounding += OWN_ROUNDING[_width_of(part)] * size
    return rounding


def rounding_in(predictor: Predictor, factual: Mapping[str, float], reach: Reach) -> float:
    """Return by how much a row over the score may be missed, anywhere in reach, where the model says that it is met.

    That is a solver's rounding of the row, and the model's own steps.
    """
    roundings = []
    for point in _corners(factual, reach):
        coordinates = np.array([[point[name] for name in predictor.space.names]])
        roundings.append(rounding_at(predictor, coordinates, reach, in_row=True))
    return max(roundings) + own_steps(predictor, factual, reach)


def own_steps(predictor: Predictor, factual: Mapping[str, float], reach: Reach) -> float:
    r"""Return by how much a score may differ from the model's own through columns whose range is small beside them.

    .. math:: \delta = \sum_j |w_j|\, e_j, \qquad
              e_j \le \tfrac12 \operatorname{ulp}(x_j)\, \phi_j' + \text{roundings of the library's way to } \phi_j

    A scaler that multiplies such a column by 1 / range rounds numbers of that size: the model's own score is then a
    staircase, whose steps the program, which states the real function, does not have. The sum is over the columns that
    move and count from the factual; for networks weights are multiplied along the layers. 0 where there are none, and
    of trees and votes.
    """
    if _is_counted(predictor):
        return 0.0
    corners = _corners(factual, reach)
    total = 0.0
    for part in predictor.parts:
        errors = np.zeros(len(part.encoding.columns))
        for place, column in enumerate(part.encoding.columns):
            name = column.feature
            if name is not None and column.table is None and _counts_from_factual(part, name, factual, reach):
                errors[place] = max(_error_of(column, point[name]) for point in corners)
        if errors.any():
            total += _added_up(part, errors, with_constants=False) * (1.0 if part.core.n_scores == 1 else 2.0)
    return total


def _corners(factual: Mapping[str, float], reach: Reach) -> list[dict[str, float]]:
    """Return the person, and the points at the lower and the upper ends of the numbers' reach."""
    lowest, highest = dict(factual), dict(factual)
    for name, part in reach.items():
        if not isinstance(part, Interval):
            continue
        if math.isfinite(part.lower):
            lowest[name] = part.lower
        if math.isfinite(part.upper):
            highest[name] = part.upper
    return [dict(factual), lowest, highest]


def _counts_from_factual(part: Predictor, name: str, factual: Mapping[str, float], reach: Reach) -> bool:
    """Tell whether a number moves, and its variable counts from the factual."""
    interval = reach[name]
    if not isinstance(interval, Interval) or interval.is_point:
        return False
    return origin_of(interval, part.space[name], factual[name]) != 0.0


def _error_of(column: Column, x: float) -> float:
    """Return by how much a column's value near x may be off: half a step of x itself, and a rounding an operation."""
    value: Any = np.array([x], dtype=np.float64)
    error = float(np.spacing(abs(x))) / 2.0
    with np.errstate(over="ignore"):
        for step in column.steps:
            value = step.apply(value)
            if step.operation == "multiply":
                error *= float(step.operand)
            elif step.operation == "divide":
                error /= float(step.operand)
            error += float(np.spacing(np.abs(value))[0]) / 2.0
        return error + float(np.spacing(np.abs(value.astype(column.dtype)))[0]) / 2.0


def _is_counted(predictor: Predictor) -> bool:
    """Whether trees or votes make the score: it does not move with the numbers near a person."""
    return bool(predictor.forests) or (isinstance(predictor.core, Combination) and predictor.core.votes)


def _width_of(part: Predictor) -> str:
    """Return the float width in which a linear model or a network computes its score."""
    return str(np.result_type(part.encoding.dtype, getattr(part.core, "dtype", "float64")))


def _seen(part: Predictor, coordinates: Floats) -> Floats:
    """Return the size of what a linear model or a network is given in each of its columns at a point."""
    given = part.encoding.matrix(coordinates)[0]
    return np.asarray(np.nan_to_num(np.abs(given.astype(np.float64))), dtype=np.float64)


def _in_rows(part: Predictor, coordinates: Floats, reach: Reach | None) -> Floats:
    """Return the size of the numbers by which each column enters a row near a point: 0 where it cannot move.

    A number that counts from 0 enters as it stands, however large it is beside what a scaler makes of it.
    """
    sizes = _seen(part, coordinates)
    point = dict(zip(part.space.names, coordinates[0].tolist(), strict=True))
    for place, column in enumerate(part.encoding.columns):
        name = column.feature
        if name is None:
            continue
        if reach is not None and reach[name].is_point:
            sizes[place] = 0.0
        elif column.table is not None or not column.is_affine:
            continue
        elif reach is None or not _counts_from_factual(part, name, point, reach):
            sizes[place] = max(sizes[place], abs(column.affine()[0] * point[name]))
    return sizes


def _added_up(part: Predictor, sizes: Floats, *, with_constants: bool) -> float:
    """Return the greatest score of a linear model or a network all of whose numbers are positive, at ``sizes`` (m,)."""
    core = part.core
    if isinstance(core, ReluNetwork):
        layers = list(zip(core.weights, core.biases, strict=True))
    else:
        assert isinstance(core, Affine)  # noqa: S101 - trees have been dealt with
        layers = [(core.weights, core.intercept)]
    for weights, constants in layers:
        sizes = np.abs(weights) @ sizes
        if with_constants:
            sizes = sizes + np.abs(constants)
    return float(sizes.max(initial=0.0))


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
