r"""The scores that a model of trees attains near its decision, and where a row between them may stand.

A score of trees, of votes, and of sums of such takes finitely many values,

.. math:: s = \bigl(b + \textstyle\sum_t v_t\bigr) / D, \qquad v_t \in V_t,

and the library adds them up in floats, which are off by at most

.. math:: u (T + 1) \textstyle\sum_t \max |V_t|, \qquad\text{in order } u \sum_t \min\Bigl(
    \textstyle\sum_{i \le t} \max |V_i|,\ |s D| + \sum_{i > t} \max |V_i| \Bigr)

(u = 2^-53, or 2^-24 where it adds in float32; a partial sum is bounded from either end). A row between the largest
value that is surely refused and the next one cuts off no value that the library may accept. Where the few sums can be
listed (votes, pure leaves, single trees: all are multiples of one number) that is half a step, which no solver's
tolerance bridges; elsewhere the row is lower by the rounding error alone.
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
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.embed.trees import AbstractForest
from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.read.sklearn.trees import adds_in_order
from ceopt.formulations.predictors.representation import AbstractLayers, AbstractRepresentation, of_one, score_needed
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.encoding import nonzero_entries, table_range
from ceopt.formulations.space.reachable import Interval, Levels
from ceopt.formulations.space.space import point_row
from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values
from ceopt.formulations.tolerances import (
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

    from ceopt.formulations.space.encoding import Column
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Reach

# ==== Models whose decision is that of the points of a lattice: what they refuse can be left out point by point =======

#: Steps of a number beyond which a solver takes it for a continuous one: no point of it is left out alone.
_STEPS = 1e5


def columns_read(predictor: Predictor) -> frozenset[str]:
    """Return the raw columns that a linear model or a network gives some weight."""
    core = predictor.core
    assert isinstance(core, AbstractLayers)  # noqa: S101 - the caller has asked is_on_lattice
    columns = zip(predictor.encoding.columns, core.reads.tolist(), strict=True)
    return frozenset(column.feature for column, used in columns if used and column.feature is not None)


def is_on_lattice(predictor: Predictor, reach: Reach, *, steps: float = _STEPS) -> bool:
    """Tell whether all that a linear model or a network reads and that can move are levels and numbers of few steps."""
    if not isinstance(predictor.core, AbstractLayers):
        return False
    return all(_has_few_values(reach[name], steps) for name in columns_read(predictor))


def _has_few_values(part: Interval | Levels, steps: float) -> bool:
    if isinstance(part, Levels) or part.is_point:
        return True
    return part.step is not None and part.upper - part.lower <= steps * part.step


# ==== The margin of a decision ========================================================================================

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
        case AbstractLayers():
            reach = _column_sizes(predictor, core.layers[0][0])
            for w, _ in core.layers[1:]:
                reach = np.abs(w) @ reach
            return float(reach.max(initial=0.0))
    raise AssertionError


def _column_sizes(predictor: Predictor, weights: Floats) -> Floats:
    """Return by how much each row of weights can change its sum through each matrix column, (K, m)."""
    sizes = np.abs(weights)
    for place, column in enumerate(predictor.encoding.columns):
        if column.feature is None:
            width = 0.0
        elif column.table is not None:
            width = table_range(column.table)
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
        if isinstance(core, AbstractLayers):
            sizes = _column_sizes(part, core.layers[0][0])
            greatest = sizes.max(axis=1, initial=0.0, keepdims=True)
            if ((sizes > 0.0) & (sizes < SUM_ROUNDING * greatest)).any():
                return True
    return False


def _width(feature: Feature) -> float:
    width = feature.upper - feature.lower
    if 0 < width < math.inf:
        return width
    return float(feature.scale("range"))


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
    leaves = size
    if not predictor.is_trees:
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
    if _has_trees_or_votes(predictor) or not math.isfinite(away):
        return default_margin(predictor)
    wanted = min(LEAST_MARGIN, MARGIN_OF_THE_WAY * abs(away)) or default_margin(predictor)
    return max(wanted, rounding_at(predictor, coordinates, reach))


def rounding_at(predictor: Predictor, coordinates: Floats, reach: Reach | None = None) -> float:
    """Return the least difference of scores that is not rounding at a point (1, d); 0 for trees and votes.

    The larger of a solver's rounding of a row over the score and the model's own, added up over the parts of a
    combination, each in its own score.
    """
    if _has_trees_or_votes(predictor):
        return 0.0
    rounding = 0.0
    for part in predictor.parts:
        sums = _first_weights(part) @ _in_rows(part, coordinates, reach)
        in_row = MARGIN_OF_TERMS[_float_dtype_of(part)] * _absolute_score(part, sums, with_constants=reach is None)
        rounding += max(in_row, _summation_rounding_of(part, coordinates))
    return rounding


def own_rounding(predictor: Predictor, coordinates: Floats) -> float:
    """Return how much the score at a point (1, d) may change with the order of summation; 0 for trees and votes."""
    if _has_trees_or_votes(predictor):
        return 0.0
    rounding = _offset_rounding(predictor)
    for part, weight in _weighted_parts(predictor):
        rounding += weight * _summation_rounding_of(part, coordinates)
    return rounding


def _summation_rounding_of(part: Predictor, coordinates: Floats) -> float:
    sums = _first_weights(part) @ _seen(part, coordinates)
    return OWN_ROUNDING[_float_dtype_of(part)] * _absolute_score(part, sums, with_constants=True)


def _weighted_parts(predictor: Predictor) -> list[tuple[Predictor, float]]:
    """Return the parts of a model, each with the most by which a score changes per unit of the part's scores."""
    core = predictor.core
    if not isinstance(core, Combination):
        return [(predictor, 1.0)]
    weighted = []
    for member, weights in zip(core.members, core.weights, strict=True):
        most = float(np.abs(weights).sum(axis=1).max()) / core.divisor
        weighted += [(part, most * weight) for part, weight in _weighted_parts(member)]
    return weighted


def _offset_rounding(predictor: Predictor) -> float:
    """Return the rounding of the constants that a combination adds to its members' scores."""
    core = predictor.core
    if not isinstance(core, Combination):
        return 0.0
    return OWN_ROUNDING["float64"] * float(np.abs(core.offset).max()) / core.divisor


def rounding_in(predictor: Predictor, factual: Mapping[str, float], reach: Reach) -> float:
    """Return a bound on how far a row over the score may be missed at a point in reach where the model meets it.

    The larger of what a solver may leave in a row, 1e-9 of its terms, and the rounding of the model's own sum; and
    :func:`own_steps`. Terms are bounded column by column over the reach. Where a number has no end, the bound holds up
    to the size of the factual only.
    """
    if _has_trees_or_votes(predictor):
        return 0.0
    rounding = _offset_rounding(predictor) + own_steps(predictor, factual, reach)
    points = [point_row(predictor.space, point) for point in _person_and_ends(factual, reach)]
    for part, weight in _weighted_parts(predictor):
        dtype = _float_dtype_of(part)
        in_rows = _greatest_sums(part, [_in_rows(part, point, reach, factual) for point in points], reach)
        seen = _greatest_sums(part, [_seen(part, point) for point in points], reach)
        in_row = MARGIN_OF_A_ROW[dtype] * _absolute_score(part, in_rows, with_constants=False)
        own = OWN_ROUNDING[dtype] * _absolute_score(part, seen, with_constants=True)
        rounding += weight * max(in_row, own)
    return rounding


def _greatest_sums(part: Predictor, sizes: Sequence[Floats], reach: Reach) -> Floats:
    """Return a bound on the absolute sums of the first layer, (K,), over the reach.

    ``sizes``: the absolute terms (m,) at the person and at the ends. Levels of one column exclude each other.
    """
    weights = _first_weights(part)
    greatest = np.max(sizes, axis=0)
    sums_by_rank: dict[str, Floats] = {}
    for place, column in enumerate(part.encoding.columns):
        name = column.feature
        if name is None or column.table is None or reach[name].is_point:
            continue
        greatest[place] = 0.0
        ranks, values = nonzero_entries(column.table)
        if name not in sums_by_rank:
            sums_by_rank[name] = np.zeros((len(weights), len(column.table)))
        sums_by_rank[name][:, ranks] += np.outer(weights[:, place], np.nan_to_num(np.abs(values)))
    sums: Floats = weights @ greatest
    for name, by_rank in sums_by_rank.items():
        levels = reach[name]
        assert isinstance(levels, Levels)  # noqa: S101 - only levels are encoded by tables
        sums += by_rank[:, list(levels.ranks)].max(axis=1)
    return sums


def own_steps(predictor: Predictor, factual: Mapping[str, float], reach: Reach) -> float:
    r"""Return by how much a score may differ from the model's own through columns whose range is small beside them.

    .. math:: \delta = \sum_j |w_j|\, e_j, \qquad
              e_j \le \tfrac12 \operatorname{ulp}(x_j)\, \phi_j' + \text{roundings of the library's way to } \phi_j

    A scaler that multiplies such a column by 1 / range rounds numbers of that size: the model's own score is then a
    staircase, whose steps the program, which states the real function, does not have. The sum is over the columns that
    move and count from the factual; for networks weights are multiplied along the layers. 0 where there are none, and
    of trees and votes.
    """
    if _has_trees_or_votes(predictor):
        return 0.0
    points = _person_and_ends(factual, reach)
    total = 0.0
    for part, weight in _weighted_parts(predictor):
        errors = np.zeros(len(part.encoding.columns))
        for place, column in enumerate(part.encoding.columns):
            name = column.feature
            if name is not None and column.table is None and _counts_from_factual(part, name, factual, reach):
                errors[place] = max(_encoding_error(column, point[name]) for point in points)
        if errors.any():
            scores_compared = min(part.core.n_scores, 2)  # a decision between two scores has both errors
            error = _absolute_score(part, _first_weights(part) @ errors, with_constants=False)
            total += weight * error * scores_compared
    return total


def _person_and_ends(factual: Mapping[str, float], reach: Reach) -> list[dict[str, float]]:
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


def _encoding_error(column: Column, x: float) -> float:
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


def _has_trees_or_votes(predictor: Predictor) -> bool:
    """Return whether trees or votes make the score: it does not move with the numbers near a person."""
    return bool(predictor.forests) or (isinstance(predictor.core, Combination) and predictor.core.votes)


def _float_dtype_of(part: Predictor) -> str:
    """Return the float width in which a linear model or a network computes its score."""
    return str(np.result_type(part.encoding.dtype, getattr(part.core, "dtype", "float64")))


def _seen(part: Predictor, coordinates: Floats) -> Floats:
    """Return the size of what a linear model or a network is given in each of its columns at a point."""
    given = part.encoding.matrix(coordinates)[0]
    return np.asarray(np.nan_to_num(np.abs(given.astype(np.float64))), dtype=np.float64)


def _in_rows(
    part: Predictor, coordinates: Floats, reach: Reach | None, factual: Mapping[str, float] | None = None
) -> Floats:
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
        elif reach is None or not _counts_from_factual(part, name, factual or point, reach):
            sizes[place] = max(sizes[place], abs(column.affine()[0] * point[name]))
    return sizes


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
    """Return what rows over the score are multiplied with: 1, or a power of two, where a tolerance hides the margin.

    The size of the score counts where there is no margin and it is small, and where leaves are large.
    """
    size = score_size(predictor)
    if 0.0 < margin < SOLVER_TOLERANCE:
        return 2.0 ** math.ceil(math.log2(LEAST_MARGIN / margin))
    is_small = margin == 0.0 and 0.0 < size < _ORDINARY[0]
    is_far = is_small or (predictor.is_trees and size > _ORDINARY[1])
    if not is_far:
        return 1.0
    return 2.0 ** -round(math.log2(size))


def checked_margin(margin: float | None, predictor: Predictor) -> float:
    """Return the margin to use, or refuse one that is negative or not a number."""
    if margin is None:
        return default_margin(predictor)
    checked: float = _MARGIN.require("Reaches", "margin", margin)
    return checked


# ==== The trees of a forest, each asked alone: how many decide as a target says, in numbers and in the program ========


def forest_of(core: AbstractRepresentation) -> TreeEnsemble:
    """Return a model whose score is the mean of its trees', or refuse it: the trees of others say nothing alone."""
    if isinstance(core, TreeEnsemble) and core.divisor == len(core.trees) and not core.base.any():
        return core
    is_sum = isinstance(core, TreeEnsemble)
    raise UnsupportedModelError(
        "Disagreement", "a forest, bagged trees or a single tree, whose trees decide each alone",
        f"this model is {'a sum of trees that correct each other' if is_sum else 'not an average of single trees'}",
        "Ask for the model's own decision.",
    )  # fmt: skip


def meets_alone(core: AbstractRepresentation, values: Floats, wanted: Labels | Values) -> NDArray[np.bool_]:
    """Return whether a tree that ends in a leaf with such values (leaves, K) decides as wanted by itself."""
    scores = of_one(values)
    if isinstance(wanted, Values):
        return wanted.holds(scores)
    return np.isin(core.head.positions(scores), wanted.wanted)


def agreeing_trees(predictor: Predictor, coordinates: Floats, wanted: Labels | Values) -> NDArray[np.intp]:
    """Return how many trees decide as wanted at rows of coordinates, (n,)."""
    core = forest_of(predictor.core)
    leaves = core.apply(predictor.encoding.matrix(coordinates))
    met = [meets_alone(core, tree.value, wanted)[nodes] for tree, nodes in zip(core.trees, leaves.T, strict=True)]
    return np.asarray(np.sum(met, axis=0))


def agreeing(block: AbstractEmbedded, wanted: Labels | Values) -> LinearForm:
    """Return the number of trees that decide as wanted, as a form over the leaves of an embedded forest."""
    core = forest_of(block.predictor.core)
    assert isinstance(block, AbstractForest)  # noqa: S101 - every formulation of trees is one
    return block.ending_in(lambda values: meets_alone(core, values, wanted))


# ==== The scores that a model of trees attains near its decision, and where a row between them may stand ==============

#: Sums that are listed at most: beyond, trees have values of their own and ties are rare.
_MOST: Final = 20_000
#: And sums that are made at once, on the way to them.
_MOST_PAIRS: Final = 400_000
#: Bits of a sum that is exact in each width.
_BITS: Final = {"float32": 24, "float64": 53}
_SUMS: WeakKeyDictionary[Predictor, dict[tuple[float, ...], Sums]] = WeakKeyDictionary()
_VECTORS: WeakKeyDictionary[Predictor, Floats | None] = WeakKeyDictionary()


@final
@dataclass(frozen=True, eq=False)
class Sums:
    """What a weighted sum of a model's scores adds up: one value of each part, and a constant; see the module.

    Parameters
    ----------
    constant
        b, times the weights.
    parts
        The different values V_t of each part, ascending.
    divisor
        D.
    rounding
        By how much the library's floats, before the division, may differ from the sum.
    sizes
        Where it adds in float32, in order: the greatest absolute value of each number added.
    is_exact
        Whether the library's sums are exact: all are multiples of a power of two, and short.
    """

    constant: float
    parts: tuple[Floats, ...]
    divisor: float
    rounding: float
    sizes: Floats | None
    is_exact: bool

    @property
    def size(self) -> float:
        """By how much the sum can differ, after the division."""
        return float(sum(np.ptp(part) for part in self.parts)) / self.divisor

    @cached_property
    def reached(self) -> Floats | None:
        """All sums, ascending, before the division; None where there are too many. Some may not be reached together."""
        same = self._same
        sums = np.array([self.constant])
        for part in self.parts:
            if len(sums) * len(part) > _MOST_PAIRS:
                return None
            sums = np.unique(np.add.outer(sums, part))
            if same > 0.0:
                sums = sums[np.unique(np.floor(sums / same), return_index=True)[1]]
            if len(sums) > _MOST:
                return None
        return sums

    @property
    def _same(self) -> float:
        """How near two sums, before the division, count as one."""
        if self.is_exact:
            return 0.0
        return SAME_SUM * (abs(self.constant) + float(sum(np.abs(part).max(initial=0.0) for part in self.parts)))

    def width(self, level: float, more: float = 0.0) -> float:
        """Return the distance from a level, after the division, within which floats decide; ``more`` is added."""
        merged = self._same * len(self.parts)
        around = abs(level) * self.divisor
        rounding = self.rounding
        if self.sizes is not None:
            before = np.cumsum(self.sizes)
            # Once more for the numbers themselves, which the library may round to its width.
            partial = np.minimum(before, before[-1] - before + around).sum() + before[-1]
            rounding += 1.01 * UNIT_ROUNDING["float32"] * float(partial)
        return (rounding + merged + 4.0 * UNIT_ROUNDING["float64"] * around) / self.divisor + more


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Where a row over a score stands.

    Parameters
    ----------
    least
        The row's right side: score >= least.
    gap
        Distance to the values on both sides, or 0 where they are not known.
    """

    least: float
    gap: float


def sums_of(predictor: Predictor, weights: Sequence[float]) -> Sums:
    """Return what a weighted sum of the scores of a model of trees adds up; kept as long as the model lives."""
    known = _SUMS.setdefault(predictor, {})
    key = tuple(map(float, weights))
    if key not in known:
        core = predictor.core
        assert isinstance(core, TreeEnsemble | Combination)  # noqa: S101 - only trees and combinations of such
        w = np.array(key)
        if isinstance(core, TreeEnsemble):
            known[key] = _of_trees(core, w)
        else:
            known[key] = _of_members(core, w)
    return known[key]


def _of_trees(core: TreeEnsemble, weights: Floats) -> Sums:
    leaves = [tree.value[~tree.inner] for tree in core.trees]
    parts = tuple(np.unique(values @ weights) for values in leaves)
    sizes = np.concatenate([np.abs(core.base)[None, :], [np.abs(values).max(axis=0) for values in leaves]])
    numbers = np.concatenate([core.base, *(values.ravel() for values in leaves)])
    alone = len(core.trees) == 1 and not core.base.any()
    is_exact = (alone or _are_short(numbers, sizes, core.sum_dtype)) and _are_plain(weights)
    in_order = core.sum_dtype == "float32" and core.n_scores == 1
    error = _error(sizes, weights, "float64")  # of the numbers here
    added = None
    if in_order and not alone:
        added = sizes[:, 0] * abs(weights[0])
    elif not alone:
        error += _error(sizes, weights, core.sum_dtype)
    return Sums(float(weights @ core.base), parts, core.divisor, error, added, is_exact)


def _of_members(core: Combination, weights: Floats) -> Sums:
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
        inner = sums_of(member, (weights @ part).tolist())
        constant += inner.constant / inner.divisor
        parts += [values / inner.divisor for values in inner.parts]
        error += inner.width(_greatest(member) * float(np.abs(weights @ part).sum()))
    sizes = np.array(greatest)
    is_exact = plain and _are_short(np.concatenate(numbers), sizes, "float64")
    error += 2.0 * _error(sizes, weights, "float64")
    return Sums(constant, tuple(parts), core.divisor, error, None, is_exact)


def vectors_of(predictor: Predictor) -> Floats | None:
    """Return all vectors of scores (n, K) that a model of trees can have, in the library's own floats.

    None where sums of leaves depend on the order in which they are added, or where there are too many. A soft vote over
    forests of pure leaves has few: each member's shares are counts of its trees.
    """
    if predictor not in _VECTORS:
        _VECTORS[predictor] = _vectors(predictor)
    return _VECTORS[predictor]


def _vectors(predictor: Predictor) -> Floats | None:
    core = predictor.core
    if isinstance(core, TreeEnsemble):
        if not all(sums_of(predictor, row).is_exact for row in np.eye(core.n_scores).tolist()):
            return None
        found = _added(core.base[None, :], [tree.value[~tree.inner] for tree in core.trees])
        return None if found is None else found / core.divisor
    assert isinstance(core, Combination)  # noqa: S101 - only trees and combinations of such
    total = core.offset[None, :]
    for member, part in zip(core.members, core.weights, strict=True):
        vectors = np.eye(part.shape[1]) if core.votes else vectors_of(member)
        if vectors is None:
            return None
        sums = _added(total, [vectors @ part.T])
        if sums is None:
            return None
        total = sums
    return total / core.divisor


def _added(start: Floats, parts: Sequence[Floats]) -> Floats | None:
    """Return every sum of a row of each, (n, K); None where there are too many."""
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


def _error(sizes: Floats, weights: Floats, dtype: str) -> float:
    """Return by how much weighted sums of numbers at most ``sizes`` (n, K), added in any order, may be off."""
    return 1.01 * UNIT_ROUNDING[dtype] * (len(sizes) + 1) * float(np.abs(weights) @ sizes.sum(axis=0))


def _are_plain(weights: Floats) -> bool:
    """Return whether weights only choose, subtract or halve scores."""
    return bool(np.isin(np.abs(weights), (0.0, 0.5, 1.0)).all())


def _are_short(numbers: Floats, sizes: Floats, dtype: str) -> bool:
    """Return whether every sum of some numbers, at most ``sizes`` (n, K) in all, is exact in a float width."""
    used = np.abs(numbers[numbers != 0.0])
    if not len(used):
        return True
    mantissa, exponent = np.frexp(used)
    whole = (mantissa * 2.0**53).astype(np.int64)
    step = 2.0 ** float((exponent - 53 + np.log2(whole & -whole)).min())  # the power of two that divides all
    return bool(sizes.sum(axis=0).max() / step <= 2.0 ** _BITS[dtype])


def beyond(level: float, *, ties: bool) -> Callable[[float], bool]:
    """Return the test whether a score lies above a level, or where ``ties`` win at least at it."""
    return lambda score: score > level or (ties and score == level)


def place_of(
    predictor: Predictor,
    weights: Sequence[float],
    level: float,
    accepts: Callable[[float], bool],
    *,
    more: float = 0.0,
    clear: bool = False,
) -> Place:
    """Return where the row "the weighted sum of scores reaches the level" stands, so that it loses nothing.

    Parameters
    ----------
    predictor, weights
        A model of trees, and the weights of its scores.
    level
        Where the decision turns.
    accepts
        Whether the library accepts a weighted sum, where its floats are exact.
    more
        What the level's own rounding adds to the distance within which floats decide.
    clear
        Whether what lies within that distance is refused, as nobody knows what the library will say.
    """
    sums = sums_of(predictor, weights)
    width = sums.width(level, more)
    size = max(sums.size, abs(level) * 1e-3)
    if sums.reached is None:
        return Place(level - max(width, LEVEL_ROOM * size), 0.0)
    scores = sums.reached / sums.divisor
    accepted = scores > level + width
    near = np.abs(scores - level) <= width
    if near.any() and not clear:
        if sums.is_exact:
            accepted[near] = [accepts(s) for s in scores[near].tolist()]
        else:
            accepted[near] = True
        vectors = None if sums.is_exact else vectors_of(predictor)
        if vectors is not None:
            # Of sums that are one number, the library's floats may be several.
            floats = vectors @ np.asarray(weights, dtype=np.float64)
            accepted[near] = any(accepts(s) for s in floats[np.abs(floats - level) <= width].tolist())
    room = max(size, 1.0)
    first = int(np.append(accepted, True).argmax())
    low, high = np.concatenate([[scores[0] - room], scores, [scores[-1] + room]])[first : first + 2]
    return Place(float(low + (high - low) / 2.0), float(high - low) / 2.0)


def accepted(
    predictor: Predictor, coordinates: Floats, target: Target, *, scores: Floats | None = None
) -> NDArray[np.bool_]:
    """Return whether the scores at rows of coordinates (n, d) meet a target, as the library compares."""
    core = predictor.core
    if isinstance(target, DisagreementOf):
        return agreeing_trees(predictor, coordinates, target.wanted) >= target.needed(len(forest_of(core).trees))
    if scores is None:
        scores = predictor.score(coordinates)
    match target:
        case Values():
            return target.holds(scores)
        case ProbabilityOf():
            return core.head.of_position(scores, target.position) >= target.at_least
        case Labels():
            return np.isin(core.head.positions(scores), target.wanted)
    raise AssertionError


def has_fixed_order(predictor: Predictor) -> bool:
    """Tell whether the model's floats are the same whenever it is asked, as far as joblib is configured now."""
    return predictor.model is predictor.core or adds_in_order(predictor.model)


def link_rounding(predictor: Predictor, target: ProbabilityOf) -> float:
    """Return how far, in scores, a probability computed in floats may turn from where its formula does."""
    p = target.at_least
    if predictor.core.probability == "logistic":  # its slope is p (1 - p)
        return 2.0**-50 / (p * (1.0 - p))
    return 2.0**-50 * (1.0 + abs(score_needed(predictor.core.probability, target.position, p)))


def tie_width(predictor: Predictor, target: Target) -> float:
    """Return the slack at which a decision is clear of every tie, in whatever order the trees are added."""
    core = predictor.core
    if isinstance(target, DisagreementOf):
        return 0.0
    ends = {0.0, core.level}
    match target:
        case Values():
            ends = {end for end in (target.low, target.high) if np.isfinite(end)}
        case ProbabilityOf():
            ends = {target.at_least}
            if core.probability != "share":
                ends = {score_needed(core.probability, target.position, target.at_least)}
    k = core.n_scores
    rows = np.eye(k).tolist()
    if isinstance(target, Labels) and k > 1:
        rows = [core.against(t, j)[0] for t, j in product(target.wanted, target.others)]
    more = 0.0
    if isinstance(target, ProbabilityOf) and k == 1:
        more = link_rounding(predictor, target)
    widths = []
    for row in rows:
        sums = sums_of(predictor, row)
        widths += [sums.width(end, more) for end in ends if np.isfinite(end)]
    return max(widths)
