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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.decision.disagreement import agreeing_trees, forest_of
from ceopt.formulations.predictors.read.sklearn.trees import adds_in_order
from ceopt.formulations.predictors.representation.decision_rule import score_needed
from ceopt.formulations.predictors.representation.predictor import Combination
from ceopt.formulations.predictors.representation.trees import TreeEnsemble
from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values
from ceopt.formulations.tolerances import LEVEL_ROOM, SAME_SUM, UNIT_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.decision_rule import Floats
    from ceopt.formulations.predictors.representation.predictor import Predictor

__all__ = ["Place", "Sums", "accepted", "has_fixed_order", "link_rounding", "place_of", "sums_of", "tie_width"]

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
        same = 0.0 if self.is_exact else SAME_SUM * self._largest
        found = np.array([self.constant])
        for part in self.parts:
            if len(found) * len(part) > _MOST_PAIRS:
                return None
            found = np.unique(np.add.outer(found, part))
            if same > 0.0:
                found = found[np.unique(np.floor(found / same), return_index=True)[1]]
            if len(found) > _MOST:
                return None
        return found

    @property
    def _largest(self) -> float:
        return abs(self.constant) + float(sum(np.abs(part).max(initial=0.0) for part in self.parts))

    def width(self, level: float, more: float = 0.0) -> float:
        """Return the distance from a level, after the division, within which floats decide; ``more`` is added."""
        if self.is_exact:
            merged = 0.0
        else:
            merged = SAME_SUM * self._largest * len(self.parts)
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
    if alone or in_order:
        error = 0.0
    else:
        error = _error(sizes, weights, core.sum_dtype)
    error += _error(sizes, weights, "float64")  # of the numbers here
    if in_order and not alone:
        found = sizes[:, 0] * abs(weights[0])
    else:
        found = None
    return Sums(float(weights @ core.base), parts, core.divisor, error, found, is_exact)


def _of_members(core: Combination, weights: Floats) -> Sums:
    constant = float(weights @ core.offset)
    error = 0.0
    plain = core.votes and _are_plain(weights)
    parts: list[Floats] = []
    numbers = [core.offset]
    greatest = [np.abs(core.offset)]
    for member, part in zip(core.members, core.weights, strict=True):
        greatest.append(np.abs(part).max(axis=1) * (1.0 if core.votes else _greatest(member)))
        numbers.append(part.ravel())
        if core.votes:
            parts.append(np.unique(weights @ part))
            continue
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
    found = start
    for part in parts:
        rows = np.unique(part, axis=0)
        if len(found) * len(rows) > _MOST_PAIRS:
            return None
        found = np.unique((found[:, None, :] + rows[None, :, :]).reshape(-1, found.shape[1]), axis=0)
        if len(found) > _MOST:
            return None
    return found


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
    """Whether weights only choose, subtract or halve scores."""
    return bool(np.isin(np.abs(weights), (0.0, 0.5, 1.0)).all())


def _are_short(numbers: Floats, sizes: Floats, dtype: str) -> bool:
    """Whether every sum of some numbers, at most ``sizes`` (n, K) in all, is exact in a float width."""
    used = np.abs(numbers[numbers != 0.0])
    if not len(used):
        return True
    mantissa, exponent = np.frexp(used)
    whole = (mantissa * 2.0**53).astype(np.int64)
    step = 2.0 ** float((exponent - 53 + np.log2(whole & -whole)).min())  # the power of two that divides all
    return bool(sizes.sum(axis=0).max() / step <= 2.0 ** _BITS[dtype])


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
        said = None if sums.is_exact else vectors_of(predictor)
        if said is not None:
            # Of sums that are one number, the library's floats may be several.
            floats = said @ np.asarray(weights, dtype=np.float64)
            accepted[near] = any(accepts(s) for s in floats[np.abs(floats - level) <= width].tolist())
    if accepted.any():
        first = int(accepted.argmax())
    else:
        first = len(scores)
    room = max(size, 1.0)
    low = scores[first - 1] if first else scores[0] - room
    if first < len(scores):
        high = scores[first]
    else:
        high = scores[-1] + room
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
    rows = [np.eye(k)[j] for j in range(k)]
    if isinstance(target, Labels) and k > 1:
        rows = []
        for t in target.wanted:
            for j in target.others:
                rows.append(np.eye(k)[t] - np.eye(k)[j])
    more = 0.0
    if isinstance(target, ProbabilityOf) and k == 1:
        more = link_rounding(predictor, target)
    widths = []
    for row in rows:
        sums = sums_of(predictor, row.tolist())
        widths += [sums.width(end, more) for end in ends if np.isfinite(end)]
    return max(widths)
