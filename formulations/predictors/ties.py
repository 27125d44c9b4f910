r"""Margins of decisions: which slack a solver resolves, for linear models and networks; which scores trees attain.

A score of trees, of votes, and of sums of such takes finitely many values,

.. math:: s = \bigl(b + \textstyle\sum_t v_t\bigr) / D, \qquad v_t \in V_t,

and the library adds them up in floats, which are off by at most

.. math:: u (T + 1) \textstyle\sum_t \max |V_t|, \qquad\text{in order } u \sum_t \min\Bigl(
    \textstyle\sum_{i \le t} \max |V_i|,\ |s D| + \sum_{i > t} \max |V_i| \Bigr)

(u = 2^-53, or 2^-24 where it adds in float32; a partial sum is bounded by the terms before it, and by \|s D\| and the
terms after it). A row over such a score has its right side halfway between the largest score that the library surely
refuses and the next one, so no acceptable score is cut off. If the sums are few enough to list (votes, pure leaves,
single trees: all are multiples of one number), the row is half a step from both, far more than a solver's tolerance.
Otherwise the right side is lowered by the rounding error only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Final, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.columns.numeric import origin_of
from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.linear_form import LinearForm
from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.readers.sklearn.trees import adds_in_order
from ceopt.formulations.predictors.representation import AbstractLayers, AbstractRepresentation, of_one, score_needed
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.encoding import table_range, without_nan
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.formulations.space.space import point_row
from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values
from ceopt.formulations.tolerances import (
    CLEAR_DISTANCE,
    LEAST_MARGIN,
    LEVEL_ROOM,
    MARGIN_OF_A_ROW,
    MARGIN_OF_TERMS,
    MARGIN_OF_THE_WAY,
    OWN_ROUNDING,
    READABLE_SCORES,
    SAME_SUM,
    SOLVER_TOLERANCE,
    SUM_ROUNDING,
    UNIT_ROUNDING,
)
from ceopt.solvers.checks import AllOf, Divisor, Floats, Real, Refusal
from ceopt.solvers.errors import UnsupportedModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ceopt.formulations.space.encoding import Column, LevelTable
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Reach

# ==== Models over few values: the points that they refuse can be excluded one by one ==================================

#: A column with more steps is treated as continuous: its points cannot be excluded one by one.
_LATTICE_STEPS = 1e5


def columns_read(predictor: Predictor) -> frozenset[str]:
    """Return the raw columns that a linear model or a network gives some weight."""
    core = predictor.core
    assert isinstance(core, AbstractLayers)  # noqa: S101 - the caller has asked is_on_lattice
    columns = zip(predictor.encoding.columns, core.reads.tolist(), strict=True)
    return frozenset(column.feature for column, used in columns if used and column.feature is not None)


def is_on_lattice(predictor: Predictor, reach: Reach, *, steps: float = _LATTICE_STEPS) -> bool:
    """Return whether each column that a linear model or network reads is fixed, or has levels or few ``steps``."""
    if not isinstance(predictor.core, AbstractLayers):
        return False
    return all(_has_few_values(reach[name], steps) for name in columns_read(predictor))


def _has_few_values(part: Interval | Levels, steps: float) -> bool:
    if isinstance(part, Levels) or part.is_point:
        return True
    return part.step is not None and part.upper - part.lower <= steps * part.step


# ==== The margin of a decision ========================================================================================

_MARGIN_REFUSAL = Refusal("a margin of at least 0", "Give None or a number.")
_MARGIN = AllOf(
    (
        Real(at_least=0.0, finite=True, otherwise=_MARGIN_REFUSAL),
        Divisor("Give None, 0 or an ordinary number."),
    )
)

#: Sizes of scores at which SOLVER_TOLERANCE is neither too coarse nor lost in rounding: rows keep the score's own unit.
_ORDINARY = (1e-2, 1e6)
#: Share of a row's distance from the decision that what is left out may take.
_OF_CLEARANCE = 1e-3
_SIZES: WeakKeyDictionary[Predictor, float] = WeakKeyDictionary()


def score_size(predictor: Predictor) -> float:
    """Return how much a score can change through one column (linear, networks) or through all leaves (trees).

    A numeric column contributes its range or, if that is infinite, its scale; a combination the weighted sum of its
    members. Kept as long as the predictor lives.
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
        case AbstractLayers():
            reach = _column_sizes(predictor, core.layers[0][0])
            for w, _ in core.layers[1:]:
                reach = np.abs(w) @ reach
            return float(reach.max(initial=0.0))
    raise AssertionError


def _column_sizes(predictor: Predictor, weights: Floats) -> Floats:
    """Return how much each row of weights can change its sum through each matrix column, (K, m)."""
    sizes = np.abs(weights)
    for place, column in enumerate(predictor.encoding.columns):
        if column.feature is None:
            width = 0.0
        elif column.table is not None:
            width = table_range(_with_gap(column))
        elif not weights[:, place].any():
            width = 0.0  # skip unread columns: a clipped one has no affine()
        else:
            feature = predictor.space[column.feature]
            width = max(abs(column.affine()[0]) * _range_of(feature), _width_to_gap(column, feature))
        sizes[:, place] *= width
    return sizes


def _with_gap(column: Column) -> LevelTable:
    """Return what a column of levels is at each, and at a missing cell where it is filled in."""
    assert column.table is not None  # noqa: S101 - the caller has checked
    if column.missing is None:
        return column.table
    return (*column.table, column.missing)


def _width_to_gap(column: Column, feature: Feature) -> float:
    """Return how far what fills in a missing cell is from the column's values at its bounds, as far as it has some."""
    if column.missing is None:
        return 0.0
    ends = [bound for bound in (feature.lower, feature.upper) if math.isfinite(bound)] or [0.0]
    return float(np.abs(column.evaluate(ends) - column.missing).max())


def has_negligible_terms(predictor: Predictor) -> bool:
    """Return whether some column's share of a first-layer sum is so small that ``Atoms.forms`` drops it from the row.

    That is below 1e-12, which decides only if all other columns are fixed.
    """
    for part in predictor.parts:
        core = part.core
        if isinstance(core, AbstractLayers):
            sizes = _column_sizes(part, core.layers[0][0])
            greatest = sizes.max(axis=1, initial=0.0, keepdims=True)
            if ((sizes > 0.0) & (sizes < SUM_ROUNDING * greatest)).any():
                return True
    return False


def _range_of(feature: Feature) -> float:
    width = feature.upper - feature.lower
    if 0 < width < math.inf:
        return width
    return float(feature.scale("range"))


def default_margin(predictor: Predictor) -> float:
    """Return the default margin of a model without a person: the least slack that a solver resolves, in its own score.

    1e-5, for trees 1e-5 times max(1, s) with s the spread of the leaves: a binary that is off by 1e-6 shifts the score
    by 1e-6 s. Very small scores are stated in larger units (``row_scale``) and take 1e-3 of their size. It does not
    depend on how wide bounds are; :func:`margin_near` gives the margin of one person.

    Raises
    ------
    UnsupportedModelError
        The scores are so small or so large that their squares underflow or overflow.
    """
    size = score_size(predictor)
    if size and not READABLE_SCORES[0] <= size <= READABLE_SCORES[1]:
        but = f"through one column they differ by {size:.3g}"
        if size < 1.0:
            but = f"through no column do they differ by more than {digits(rounded(size, 3, 'up'))}"
        raise UnsupportedModelError(
            "The model",
            f"scores that differ by {READABLE_SCORES[0]:g} to {READABLE_SCORES[1]:g} within the space", but,
            "Fit it again on scaled columns, or multiply its coefficients and its intercept by one number.",
        )  # fmt: skip
    if 0.0 < size < _ORDINARY[0]:
        return 1e-3 * size
    leaves = size
    if not predictor.is_trees:
        leaves = sum(map(score_size, predictor.forests))
    return LEAST_MARGIN * max(1.0, leaves)


def margin_near(predictor: Predictor, away: float, coordinates: Floats, reach: Reach | None = None) -> float:
    r"""Return the margin for a person whose score is ``away`` from the decision, in the model's own score.

    .. math:: m = \max\bigl(\min(10^{-5},\ 2.5 \cdot 10^{-6}\, a),\ 10^{-11}\, t,\ 2^{-48}\, t^0\bigr)

    with a the distance to the decision, t the size of the numbers that a row over the score adds up near the person,
    and :math:`t^0` that of the numbers that the model itself adds up (1e-6 of both where the model computes in
    float32); of a combination, the sums of its parts' in their own scores. Fixed columns do not count in t; a column
    measured from the factual value (:func:`~ceopt.formulations.columns.numeric.origin_of`) counts with its move only.

    Of a model whose score is linear, the answer then costs at most 2.5e-6 more than the infimum, relatively (5e-6 where
    squares are charged), unless the score is within 4e-6 t of the decision, or ``encoding_rounding`` is of that size.
    Models with trees among their parts, votes, and a person exactly at the decision get :func:`default_margin`.

    Parameters
    ----------
    away
        Distance of the person's score from the decision, of either sign.
    coordinates
        The person, (1, d).
    reach
        Values that the columns may take; None if all may move and are measured from 0.
    """
    if _has_trees_or_votes(predictor) or not math.isfinite(away):
        return default_margin(predictor)
    wanted = min(LEAST_MARGIN, MARGIN_OF_THE_WAY * abs(away))
    if wanted == 0.0:  # at the decision
        wanted = default_margin(predictor)
    return max(wanted, score_resolution(predictor, coordinates, reach))


def score_resolution(predictor: Predictor, coordinates: Floats, reach: Reach | None = None) -> float:
    """Return the least difference of scores that is not rounding at a point (1, d), of a model without trees and votes.

    The larger of a solver's rounding of a row over the score and the model's own, added up over the parts of a
    combination, each in its own score.
    """
    rounding = 0.0
    for part in predictor.parts:
        seen = _seen(part, coordinates)
        sums = _first_weights(part) @ _in_rows(part, coordinates, seen, reach)
        in_row = MARGIN_OF_TERMS[_float_dtype_of(part)] * _absolute_score(part, sums, with_constants=reach is None)
        rounding += max(in_row, _summation_rounding_of(part, seen))
    return rounding


def summation_rounding(predictor: Predictor, coordinates: Floats) -> float:
    """Return how much the score at a point (1, d) may change with the order of summation; 0 for trees and votes."""
    parts, rounding = _weighted_parts(predictor)
    for part, weight in parts:
        rounding += weight * _summation_rounding_of(part, _seen(part, coordinates))
    return rounding


def _summation_rounding_of(part: Predictor, seen: Floats) -> float:
    sums = _first_weights(part) @ seen
    return OWN_ROUNDING[_float_dtype_of(part)] * _absolute_score(part, sums, with_constants=True)


def _weighted_parts(predictor: Predictor) -> tuple[list[tuple[Predictor, float]], float]:
    """Return the parts of a model, each with the most that the score changes per unit of theirs, and a rounding.

    The rounding is that of the constants which combinations add. No parts and 0 for trees and votes.
    """
    core = predictor.core
    if _has_trees_or_votes(predictor):
        return [], 0.0
    if not isinstance(core, Combination):
        return [(predictor, 1.0)], 0.0
    weighted = []
    rounding = OWN_ROUNDING["float64"] * float(np.abs(core.offset).max()) / core.divisor
    for member, weights in zip(core.members, core.weights, strict=True):
        most = float(np.abs(weights).sum(axis=1).max()) / core.divisor
        parts, inner_rounding = _weighted_parts(member)
        weighted += [(part, most * weight) for part, weight in parts]
        rounding += most * inner_rounding
    return weighted, rounding


def row_relaxation(predictor: Predictor, factual: Mapping[str, float], reach: Reach) -> float:
    """Return a bound on how far a row over the score may be missed at a point in reach where the model meets it.

    The larger of what a solver may leave in a row, 1e-9 of its terms, and the rounding of the model's own sum; and
    :func:`encoding_rounding`. Terms are bounded column by column over the reach. Of a number without an end the bound
    knows the factual value only.
    """
    points = [point_row(predictor.space, point) for point in _person_and_ends(factual, reach)]
    parts, rounding = _weighted_parts(predictor)
    for part, weight in parts:
        dtype = _float_dtype_of(part)
        seen = [_seen(part, point) for point in points]
        each = zip(points, seen, strict=True)
        in_rows = _greatest_sums(part, [_in_rows(part, point, own, reach, factual) for point, own in each], reach)
        in_row = MARGIN_OF_A_ROW[dtype] * _absolute_score(part, in_rows, with_constants=False)
        own = OWN_ROUNDING[dtype] * _absolute_score(part, _greatest_sums(part, seen, reach), with_constants=True)
        rounding += weight * max(in_row, own)
    return rounding + encoding_rounding(predictor, factual, reach)


def _greatest_sums(part: Predictor, sizes: Sequence[Floats], reach: Reach) -> Floats:
    """Return a bound on the absolute sums of the first layer, (K,), over the reach.

    ``sizes``: the absolute terms (m,) at the person and at the ends. Levels of one column exclude each other.
    """
    weights = _first_weights(part)
    greatest = np.max(sizes, axis=0)
    level_sums = np.zeros(len(weights))
    for name, places, tables in part.encoding.tables:
        levels = reach[name]
        if levels.is_point:
            continue
        assert isinstance(levels, Levels)  # noqa: S101 - only levels are encoded by tables
        greatest[places] = 0.0
        sizes_by_level = without_nan(abs(tables[list(levels.ranks)]))
        sums_by_level = sizes_by_level @ weights[:, places].T
        if levels.labels:
            at_gap = np.nan_to_num(np.abs([part.encoding.columns[place].at_gap for place in places]))
            sums_by_level = np.vstack([sums_by_level, at_gap @ weights[:, places].T])
        level_sums += sums_by_level.max(axis=0)
    sums: Floats = weights @ greatest + level_sums
    return sums


def encoding_rounding(predictor: Predictor, factual: Mapping[str, float], reach: Reach) -> float:
    r"""Return how far the exact score may be from the model's own because of columns whose range is small beside them.

    .. math:: \delta = \sum_j |w_j|\, e_j, \qquad
              e_j \le \tfrac12 \operatorname{ulp}(x_j)\, \phi_j' + \text{roundings of the library's way to } \phi_j

    A scaler that multiplies such a column by 1 / range rounds numbers of that size: the model's own score is then a
    staircase, whose steps the program, which states the real function, does not have. The sum is over the columns that
    can move and are measured from the factual value; for networks weights are multiplied along the layers, and a
    combination weighs its members. 0 if there are none, and for trees and votes.
    """
    points = _person_and_ends(factual, reach)
    parts, _ = _weighted_parts(predictor)
    total = 0.0
    for part, weight in parts:
        errors = np.zeros(len(part.encoding.columns))
        for place, column in enumerate(part.encoding.columns):
            name = column.feature
            if name is None or column.table is not None or column.is_indicator:
                continue
            if _counts_from_factual(part, name, factual, reach):
                values = [point[name] for point in points if point[name] != MISSING]
                errors[place] = max((_encoding_error(column, value) for value in values), default=0.0)
        if errors.any():
            scores_compared = min(part.core.n_scores, 2)  # a decision between two scores has both errors
            error = _absolute_score(part, _first_weights(part) @ errors, with_constants=False)
            total += weight * error * scores_compared
    return total


def _person_and_ends(factual: Mapping[str, float], reach: Reach) -> list[dict[str, float]]:
    """Return the person, and that person with every number at the lower, or the upper, end of its reach, if finite.

    Where numbers may take labels, also with each at its first label, at its second, and so on.
    """
    lowest, highest = dict(factual), dict(factual)
    labels = {name: part.labels for name, part in reach.items() if isinstance(part, Interval) and part.labels}
    for name, part in reach.items():
        if not isinstance(part, Interval):
            continue
        if math.isfinite(part.lower):
            lowest[name] = part.lower
        if math.isfinite(part.upper):
            highest[name] = part.upper
    most = max(map(len, labels.values()), default=0)
    on_labels = [{name: own[min(k, len(own) - 1)] for name, own in labels.items()} for k in range(most)]
    return [dict(factual), lowest, highest, *({**factual, **chosen} for chosen in on_labels)]


def _counts_from_factual(part: Predictor, name: str, factual: Mapping[str, float], reach: Reach) -> bool:
    """Return whether a number can move and its variable is measured from the factual value."""
    interval = reach[name]
    if not isinstance(interval, Interval) or interval.is_point:
        return False
    feature = part.space[name]
    return origin_of(interval, feature, _home_of(interval, feature, factual[name])) != 0.0


def _home_of(interval: Interval, feature: Feature, value: float) -> float:
    """Return an amount as it is, and for a label the amount at which the number rests (see ``columns/numeric.py``)."""
    if not feature.is_label(value):
        return value
    return 0.0 if interval.is_point else interval.clip(0.0)


def _encoding_error(column: Column, x: float) -> float:
    """Return how far a column's value near x may be off: half an ulp of x, carried on, and half one per operation."""
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


def _has_trees_or_votes(predictor: Predictor) -> bool:
    """Return whether the score has trees among its parts, or counts votes; margins then do not depend on the person."""
    return bool(predictor.forests) or (isinstance(predictor.core, Combination) and predictor.core.votes)


def _float_dtype_of(part: Predictor) -> str:
    """Return the float type in which a linear model or a network computes its score."""
    return str(np.result_type(part.encoding.dtype, getattr(part.core, "dtype", "float64")))


def _seen(part: Predictor, coordinates: Floats) -> Floats:
    """Return the absolute value of each matrix column at a point, (m,)."""
    seen: Floats = np.abs(part.encoding.matrix(coordinates)[0].astype(np.float64))
    seen[np.isnan(seen)] = 0.0
    return np.minimum(seen, np.finfo(np.float64).max, out=seen)


def _in_rows(
    part: Predictor,
    coordinates: Floats,
    seen: Floats,
    reach: Reach | None,
    factual: Mapping[str, float] | None = None,
) -> Floats:
    """Return, per matrix column, the absolute value of its term in a row near a point; 0 if it is fixed.

    A number that is measured from 0 enters as it is, however large it is beside its scaled value. ``factual``: the
    person, if the point is another. ``seen``: what :func:`_seen` says of the point.
    """
    names = part.encoding.names
    point = dict(zip(names, coordinates[0].tolist(), strict=True))
    #: Per raw column, and one more for constants: whether it is fixed, and the sizes of what it adds in a row.
    fixed = np.zeros(len(names) + 1, dtype=bool)
    amounts, homes = np.zeros((2, len(names) + 1))
    for place in set(part.encoding.sources.tolist()) - {-1}:
        name = names[place]
        if reach is not None and reach[name].is_point:
            fixed[place] = True
            continue
        feature = part.space[name]
        if feature.is_finite or (reach is not None and _counts_from_factual(part, name, factual or point, reach)):
            continue
        amounts[place] = point[name]
        if feature.is_label(point[name]):  # its indicator adds to a number that rests at home
            interval = None if reach is None else reach[name]
            if isinstance(interval, Interval):
                homes[place] = _home_of(interval, feature, point[name])
            amounts[place] = 0.0 if point[name] == MISSING else point[name]
    sources = part.encoding.sources
    slopes = np.abs(part.encoding.slopes[0])
    slopes[np.isnan(slopes)] = 0.0
    sizes = np.maximum(seen + 2.0 * slopes * np.abs(homes[sources]), slopes * np.abs(amounts[sources]))
    return np.where(fixed[sources], 0.0, sizes)


def _first_weights(part: Predictor) -> Floats:
    """Return the absolute weights of the first layer, (K, m)."""
    assert isinstance(part.core, AbstractLayers)  # noqa: S101 - trees have been dealt with
    weights: Floats = np.abs(part.core.layers[0][0])
    return weights


def _absolute_score(part: Predictor, sums: Floats, *, with_constants: bool) -> float:
    """Return the greatest score with all weights and constants replaced by absolute values.

    ``sums``: what the first layer adds up, (K,), without its constants.
    """
    assert isinstance(part.core, AbstractLayers)  # noqa: S101 - trees have been dealt with
    for place, (weights, constants) in enumerate(part.core.layers):
        if place > 0:
            sums = np.abs(weights) @ sums
        if with_constants:
            sums = sums + np.abs(constants)
    return float(sums.max(initial=0.0))


def row_scale(predictor: Predictor, margin: float) -> float:
    """Return the factor for rows over the score.

    A power of two if the margin is below a solver's tolerance, if there is no margin and scores are small, or if the
    scores of trees are large; else 1.
    """
    size = score_size(predictor)
    if 0.0 < margin < SOLVER_TOLERANCE:
        return 2.0 ** math.ceil(math.log2(LEAST_MARGIN / margin))
    is_small = margin == 0.0 and 0.0 < size < _ORDINARY[0]
    is_far = is_small or (predictor.is_trees and size > _ORDINARY[1])
    if not is_far:
        return 1.0
    return 2.0 ** -round(math.log2(size))


def trimmed(predictor: Predictor, form: LinearForm, clearance: float) -> tuple[LinearForm, float, float]:
    """Return a row over the scores of trees without differences of leaves that rounding made, and what they may add.

    Leaves of boosted trees that are equal on paper were seen to differ in their last bit, and a solver claims nothing
    of a row whose coefficients are that far apart. ``clearance``: what the row's side is off the decision, or 0.
    """
    size = score_size(predictor)
    room = LEVEL_ROOM * size
    if clearance > 0.0:
        room = min(room, _OF_CLEARANCE * clearance)
    return form.without_traces(SUM_ROUNDING * size, room)


def checked_margin(margin: float | None, predictor: Predictor) -> float:
    """Return the margin to use; raise for one that is negative or not a number."""
    if margin is None:
        return default_margin(predictor)
    checked: float = _MARGIN.require("Reaches", "margin", margin)
    return checked


# ==== The trees of a forest one by one: how many decide as a target says, in numbers and in the program ===============


def forest_of(core: AbstractRepresentation) -> TreeEnsemble:
    """Return ``core`` if it averages its trees; raise otherwise, as trees of a boosted sum do not decide alone."""
    if isinstance(core, TreeEnsemble) and core.divisor == len(core.trees) and not core.base.any():
        return core
    but = "this model is not an average of single trees"
    if isinstance(core, TreeEnsemble):
        but = "this model is a sum of trees that correct each other"
    raise UnsupportedModelError(
        "Disagreement", "a forest, bagged trees or a single tree, whose trees decide each alone", but,
        "Ask for the model's own decision.",
    )  # fmt: skip


def meets_alone(core: AbstractRepresentation, values: Floats, wanted: Labels | Values) -> NDArray[np.bool_]:
    """Return, for each leaf with values (leaves, K), whether a tree that ends in it decides as wanted by itself."""
    return _meets(core, of_one(values), wanted)


def _meets(core: AbstractRepresentation, scores: Floats, wanted: Labels | Values) -> NDArray[np.bool_]:
    if isinstance(wanted, Values):
        return wanted.holds(scores)
    return np.isin(core.head.positions(scores), wanted.wanted)


def count_agreeing(predictor: Predictor, coordinates: Floats, wanted: Labels | Values) -> NDArray[np.intp]:
    """Return how many trees decide as wanted at rows of coordinates, (n,)."""
    core = forest_of(predictor.core)
    leaves = core.apply(predictor.encoding.matrix(coordinates))
    met = [meets_alone(core, tree.value, wanted)[nodes] for tree, nodes in zip(core.trees, leaves.T, strict=True)]
    return np.asarray(np.sum(met, axis=0))


# ==== The scores that a model of trees attains near its decision, and where a row between them may stand ==============

#: Most sums to list; with more, trees have distinct values and ties are rare.
_MOST: Final = 20_000
#: Most sums to form in one step before merging.
_MOST_PAIRS: Final = 400_000
#: Factor of a first-order bound of rounding that covers the terms of higher order.
_SECOND_ORDER: Final = 1.01
#: Bits of a sum that is exact in each width.
_BITS: Final = {"float32": 24, "float64": 53}
_SUMS: WeakKeyDictionary[Predictor, dict[tuple[float, ...], Sums]] = WeakKeyDictionary()
_VECTORS: WeakKeyDictionary[Predictor, Floats | None] = WeakKeyDictionary()


@final
@dataclass(frozen=True, eq=False)
class Sums:
    """A weighted sum of scores: a constant plus one value from each part, divided by D (symbols as in the module).

    Parameters
    ----------
    constant
        b, times the weights.
    parts
        The different values V_t of each part, ascending.
    divisor
        D.
    rounding
        Bound on the library's rounding error, before the division.
    float32_terms
        If the library adds in float32, in order: the greatest absolute value of each term; else None.
    is_exact
        Whether the library's sums are exact: all terms are multiples of one power of two and the sum fits the mantissa.
    """

    constant: float
    parts: tuple[Floats, ...]
    divisor: float
    rounding: float
    float32_terms: Floats | None
    is_exact: bool

    @property
    def spread(self) -> float:
        """Difference of the greatest and the least sum, after the division."""
        return float(sum(np.ptp(part) for part in self.parts)) / self.divisor

    @cached_property
    def candidates(self) -> Floats | None:
        """All sums of one value per part, ascending, before the division; None if there are too many.

        A superset of what the model attains, as leaves of several trees may exclude each other.
        """
        same = self._same
        sums = np.array([self.constant])
        for part in self.parts:
            if len(sums) * len(part) > _MOST_PAIRS:
                return None
            sums = np.unique(np.add.outer(sums, part))
            if same > 0.0:
                _, first = np.unique(np.floor(sums / same), return_index=True)
                sums = sums[first]  # merge sums that rounding alone tells apart
            if len(sums) > _MOST:
                return None
        return sums

    @property
    def _same(self) -> float:
        """Distance, before the division, below which two sums count as one."""
        if self.is_exact:
            return 0.0
        return SAME_SUM * (abs(self.constant) + float(sum(np.abs(part).max(initial=0.0) for part in self.parts)))

    def undecided_within(self, level: float, more: float = 0.0) -> float:
        """Return the distance from a level within which rounding decides, after the division, plus ``more``."""
        merged = self._same * len(self.parts)
        around = abs(level) * self.divisor
        rounding = self.rounding
        if self.float32_terms is not None:
            before = np.cumsum(self.float32_terms)
            # One rounding more for the terms, which the library may cast to float32.
            partial = np.minimum(before, before[-1] - before + around).sum() + before[-1]
            rounding += _SECOND_ORDER * UNIT_ROUNDING["float32"] * float(partial)
        return (rounding + merged + 4.0 * UNIT_ROUNDING["float64"] * around) / self.divisor + more


@final
@dataclass(frozen=True, slots=True)
class RowSide:
    """The right side of a row over a score.

    Parameters
    ----------
    least
        The row is score >= least.
    refused, accepted
        The neighbouring scores that the model may have; None if unknown.
    """

    least: float
    refused: float | None = None
    accepted: float | None = None

    @classmethod
    def between(cls, refused: float, accepted: float, size: float) -> RowSide:
        """Return the side between two scores: half way, or nearer to the accepted one where that is clear in a row.

        The nearer it stands, the tighter is the relaxation. ``size``: that of the scores.
        """
        half = refused + (accepted - refused) / 2.0
        return cls(max(half, accepted - CLEAR_DISTANCE * size), refused, accepted)

    @property
    def clearance(self) -> float:
        """How far the accepted score is; 0 if unknown."""
        return 0.0 if self.accepted is None else self.accepted - self.least


def sums_of(predictor: Predictor, weights: Sequence[float]) -> Sums:
    """Return a weighted sum of the scores of a model of trees; kept as long as the model lives."""
    known = _SUMS.setdefault(predictor, {})
    key = tuple(map(float, weights))
    if key not in known:
        core = predictor.core
        assert isinstance(core, TreeEnsemble | Combination)  # noqa: S101 - only trees and combinations of such
        w = np.array(key)
        if isinstance(core, TreeEnsemble):
            known[key] = _sums_of_trees(core, w)
        else:
            known[key] = _sums_of_members(core, w)
    return known[key]


def _sums_of_trees(core: TreeEnsemble, weights: Floats, step: float = 0.0) -> Sums:
    leaves = [tree.value[~tree.inner] for tree in core.trees]
    if step:
        leaves = [values[_are_multiples(values, step)] for values in leaves]
    parts = tuple(np.unique(values @ weights) for values in leaves)
    sizes = np.concatenate([np.abs(core.base)[None, :], [np.abs(values).max(axis=0) for values in leaves]])
    numbers = np.concatenate([core.base, *(values.ravel() for values in leaves)])
    alone = len(core.trees) == 1 and not core.base.any()
    is_exact = (alone or _are_short(numbers, sizes, core.sum_dtype)) and _are_plain(weights)
    in_order = core.sum_dtype == "float32" and core.n_scores == 1
    error = _summation_error(sizes, weights, "float64")  # our own sums, in numpy
    float32_terms = None
    if in_order and not alone:
        float32_terms = sizes[:, 0] * abs(weights[0])
    elif not alone:
        error += _summation_error(sizes, weights, core.sum_dtype)
    return Sums(float(weights @ core.base), parts, core.divisor, error, float32_terms, is_exact)


def _sums_of_members(core: Combination, weights: Floats) -> Sums:
    constant = float(weights @ core.offset)
    error = 0.0
    plain = core.votes and _are_plain(weights)
    parts: list[Floats] = []
    numbers = [core.offset]
    greatest = [np.abs(core.offset)]
    for member, part in zip(core.members, core.weights, strict=True):
        size = np.abs(part).max(axis=1)
        numbers.append(part.ravel())
        if core.votes:
            greatest.append(size)
            parts.append(np.unique(weights @ part))
            continue
        greatest.append(size * _greatest(member))
        own_weights = weights @ part
        inner = sums_of(member, own_weights.tolist())
        constant += inner.constant / inner.divisor
        parts += [values / inner.divisor for values in inner.parts]
        error += inner.undecided_within(_greatest(member) * float(np.abs(own_weights).sum()))
    sizes = np.array(greatest)
    is_exact = plain and _are_short(np.concatenate(numbers), sizes, "float64")
    error += 2.0 * _summation_error(sizes, weights, "float64")  # the library's sums and our own
    return Sums(constant, tuple(parts), core.divisor, error, None, is_exact)


def vectors_of(predictor: Predictor) -> Floats | None:
    """Return all vectors of scores (n, K) that a model of trees can have, in the library's own floats.

    None if sums of leaves depend on the order in which they are added, or if there are too many. A soft vote of forests
    with pure leaves has few: each member's scores are counts divided by its number of trees.
    """
    if predictor not in _VECTORS:
        _VECTORS[predictor] = _vectors(predictor)
    return _VECTORS[predictor]


def _vectors(predictor: Predictor) -> Floats | None:
    core = predictor.core
    if isinstance(core, TreeEnsemble):
        if not all(sums_of(predictor, row).is_exact for row in np.eye(core.n_scores).tolist()):
            return None
        found = _all_sums(core.base[None, :], [tree.value[~tree.inner] for tree in core.trees])
        return None if found is None else found / core.divisor
    assert isinstance(core, Combination)  # noqa: S101 - only trees and combinations of such
    total = core.offset[None, :]
    for member, part in zip(core.members, core.weights, strict=True):
        vectors = np.eye(part.shape[1]) if core.votes else vectors_of(member)
        if vectors is None:
            return None
        sums = _all_sums(total, [vectors @ part.T])
        if sums is None:
            return None
        total = sums
    return total / core.divisor


def _all_sums(start: Floats, parts: Sequence[Floats]) -> Floats | None:
    """Return every sum of one row of ``start`` and of each part, (n, K); None if there are too many."""
    sums = start
    for part in parts:
        rows = np.unique(part, axis=0)
        if len(sums) * len(rows) > _MOST_PAIRS:
            return None
        sums = np.unique((sums[:, None, :] + rows[None, :, :]).reshape(-1, sums.shape[1]), axis=0)
        if len(sums) > _MOST:
            return None
    return sums


def _greatest(member: Predictor) -> float:
    """Return a bound of the absolute value of a member's scores."""
    k = member.core.n_scores
    bounds = []
    for j in range(k):
        sums = sums_of(member, np.eye(k)[j].tolist())
        parts = sum(float(np.abs(part).max()) for part in sums.parts)
        bounds.append((abs(sums.constant) + parts) / sums.divisor)
    return max(bounds)


def _summation_error(sizes: Floats, weights: Floats, dtype: str) -> float:
    """Return a bound on the rounding of weighted sums of numbers at most ``sizes`` (n, K), added in any order."""
    return _SECOND_ORDER * UNIT_ROUNDING[dtype] * (len(sizes) + 1) * float(np.abs(weights) @ sizes.sum(axis=0))


def _are_plain(weights: Floats) -> bool:
    """Return whether all weights are 0, +-0.5 or +-1, so that weighting is exact."""
    return bool(np.isin(np.abs(weights), (0.0, 0.5, 1.0)).all())


def _are_short(numbers: Floats, sizes: Floats, dtype: str) -> bool:
    """Return whether all partial sums of ``numbers`` are exact in ``dtype``; ``sizes`` (n, K) bound the terms."""
    used = np.abs(numbers[numbers != 0.0])
    if not len(used):
        return True
    mantissa, exponent = np.frexp(used)
    whole = (mantissa * 2.0**53).astype(np.int64)
    step = 2.0 ** float((exponent - 53 + np.log2(whole & -whole)).min())  # the power of two that divides all
    return bool(sizes.sum(axis=0).max() / step <= 2.0 ** _BITS[dtype])


def above_level(level: float, *, ties: bool) -> Callable[[float], bool]:
    """Return a test of ``score > level``, or of ``score >= level`` with ``ties``."""
    return lambda score: score > level or (ties and score == level)


def right_side_of(
    predictor: Predictor,
    weights: Sequence[float],
    level: float,
    accepts: Callable[[float], bool],
    *,
    more: float = 0.0,
    clear: bool = False,
    of: Sums | None = None,
) -> RowSide:
    """Return the right side of the row "weighted sum of scores >= level".

    No value that the library may accept is cut off, unless ``clear``.

    Parameters
    ----------
    predictor, weights
        A model of trees, and the weights of its scores.
    level
        Where the decision turns.
    accepts
        The library's decision for a weighted sum, trusted where the sum is exact.
    more
        What the level's own rounding adds to the distance within which rounding decides.
    clear
        Whether to refuse all sums within that distance, because the decision there depends on summation order.
    of
        Which sums there are; by default all of the model.
    """
    sums = sums_of(predictor, weights) if of is None else of
    width = sums.undecided_within(level, more)
    size = max(sums.spread, abs(level) * 1e-3)
    if sums.candidates is None:
        return RowSide(level - max(width, LEVEL_ROOM * size))
    scores = sums.candidates / sums.divisor
    accepted = scores > level + width
    near = np.abs(scores - level) <= width
    if near.any() and not clear:
        accepted[near] = True
        vectors = None
        if sums.is_exact:
            accepted[near] = [accepts(s) for s in scores[near].tolist()]
        else:
            vectors = vectors_of(predictor)
        if vectors is not None:
            # One exact sum may be several floats in the library, so accept if any of them is accepted.
            floats = vectors @ np.asarray(weights, dtype=np.float64)
            accepted[near] = any(accepts(s) for s in floats[np.abs(floats - level) <= width].tolist())
    room = max(size, 1.0)
    ends = np.concatenate([[scores[0] - room], scores, [scores[-1] + room]])
    first = int(np.append(accepted, True).argmax())  # len(scores) if none is accepted
    low = ends[first]
    high = ends[first + 1]
    return RowSide.between(float(low), float(high), room)


@final
@dataclass(frozen=True, slots=True)
class ExactSide:
    r"""A row over a score of trees that tells ties apart where leaves add up exactly.

    .. math:: s + \sum_{t,\ell} r_\ell z_{t\ell} \ge b

    Leaves that are multiples of one power of two add up exactly in floats, so that the scores around the level are
    known, and b stands between them. A leaf of a finer step, or of none, makes up by r for the difference to the side
    that is right with it. So no score that the library may accept is cut off. Of a forest grown to pure leaves, all
    are whole but for rows of several labels.

    Parameters
    ----------
    side
        b, and the scores beside it.
    reliefs
        Pairs of a step and r, from the coarsest step; at last 0 and the r of leaves of no step.
    """

    side: RowSide
    reliefs: tuple[tuple[float, float], ...]

    def relief_of(self, values: Floats) -> Floats:
        """Return r of leaves with these values (L, K), (L,)."""
        found = np.full(len(values), self.reliefs[-1][1])
        for step, relief in reversed(self.reliefs[:-1]):
            found[_are_multiples(values, step)] = relief
        return found


#: Steps of leaves that are told apart: the shares of up to 16 rows at a leaf, where they are no thirds.
_EXACT_STEPS: Final = (1.0, 0.5, 0.25, 0.125, 0.0625)
_EXACT_SUMS: WeakKeyDictionary[Predictor, dict[tuple[float, ...], list[tuple[float, Sums]]]] = WeakKeyDictionary()


def exact_side_of(
    predictor: Predictor, weights: Sequence[float], level: float, accepts: Callable[[float], bool], **options: Any
) -> ExactSide | None:
    """Return the row that tells ties apart; None where nothing is gained.

    The parameters are those of :func:`right_side_of`.
    """
    if not isinstance(predictor.core, TreeEnsemble):
        return None
    least = right_side_of(predictor, weights, level, accepts, **options).least
    sides = []
    for step, sums in _exact_sums(predictor, weights):
        sides.append((step, right_side_of(predictor, weights, level, accepts, of=sums, **options)))
    top = max((side.least for _, side in sides), default=-math.inf)
    if top < least:
        return None
    highest = [side.least for _, side in sides].index(top)  # sums of greater steps are among its own: it parts them too
    reliefs = [(step, 0.0 if k < highest else top - side.least) for k, (step, side) in enumerate(sides)]
    return ExactSide(sides[highest][1], (*reliefs, (0.0, top - least)))


def _exact_sums(predictor: Predictor, weights: Sequence[float]) -> list[tuple[float, Sums]]:
    """Return the sums of leaves that are multiples of a step, by step, where each tree has some and they are listed."""
    known = _EXACT_SUMS.setdefault(predictor, {})
    key = tuple(map(float, weights))
    if key not in known:
        known[key] = []
        for step in _EXACT_STEPS:
            if all(_are_multiples(tree.value[~tree.inner], step).any() for tree in predictor.core.trees):  # type: ignore[attr-defined]
                sums = _sums_of_trees(predictor.core, np.array(key), step)  # type: ignore[arg-type]
                if sums.is_exact and sums.candidates is not None:
                    known[key].append((step, sums))
    return known[key]


def _are_multiples(values: Floats, step: float) -> NDArray[np.bool_]:
    """Return which rows (n, K) hold multiples of a power of two alone, (n,)."""
    steps = values / step
    return np.asarray((steps == np.rint(steps)).all(axis=1))


def accepted(
    predictor: Predictor, coordinates: Floats, target: Target, *, scores: Floats | None = None
) -> NDArray[np.bool_]:
    """Return whether the scores at rows of coordinates (n, d) meet a target, as the library compares."""
    core = predictor.core
    if isinstance(target, DisagreementOf):
        return count_agreeing(predictor, coordinates, target.wanted) >= target.needed(len(forest_of(core).trees))
    if scores is None:
        scores = predictor.score(coordinates)
    match target:
        case Values() | Labels():
            return _meets(core, scores, target)
        case ProbabilityOf():
            return core.head.of_position(scores, target.position) >= target.at_least
    raise AssertionError


def has_fixed_order(predictor: Predictor) -> bool:
    """Return whether repeated predictions are bitwise equal under the current joblib configuration."""
    return not predictor.forests or predictor.model is predictor.core or adds_in_order(predictor.model)


def link_rounding(predictor: Predictor, target: ProbabilityOf) -> float:
    """Return the rounding error, in scores, of the threshold at which the computed probability reaches the target."""
    p = target.at_least
    if predictor.core.probability == "logistic":  # its slope is p (1 - p)
        return 2.0**-50 / (p * (1.0 - p))
    return 2.0**-50 * (1.0 + abs(score_needed(predictor.core.probability, target.position, p)))


def tie_width(predictor: Predictor, target: Target) -> float:
    """Return the slack beyond which a decision does not depend on the order of summation."""
    core = predictor.core
    k = core.n_scores
    rows = np.eye(k).tolist()
    more = 0.0
    match target:
        case DisagreementOf():
            return 0.0
        case Values():
            ends = {target.low, target.high}
        case ProbabilityOf():
            ends = {target.at_least}
            if core.probability != "share":
                ends = {score_needed(core.probability, target.position, target.at_least)}
            if k == 1:
                more = link_rounding(predictor, target)
        case Labels():
            ends = {core.level}
            if k > 1:
                rows = [core.against(t, j)[0] for t, j in product(target.wanted, target.others)]
    widths = []
    for row in rows:
        sums = sums_of(predictor, row)
        widths += [sums.undecided_within(end, more) for end in ends if np.isfinite(end)]
    return max(widths)
