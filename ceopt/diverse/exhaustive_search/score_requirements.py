r"""A target as sums over a model's parts that must reach a number: one of several lists of demands must be met.

.. math::
    \bigvee_a \bigwedge_{r \in a} \Bigl( b_r + \sum_t g_{rt}(\mathrm{leaf}_t(x)) + \sum_p w_{rp} \cdot \phi_p(x)
    + \sum_i v_{ri}(\mathrm{decision}_i(x)) \ge m_r \Bigr)

the same that :class:`~ceopt.formulations.predictors.reaches.Reaches` writes as rows, kept as plain numbers
for bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.predictor import Combination
from ceopt.formulations.predictors.representation import NEVER, Affine, score_needed
from ceopt.formulations.predictors.ties import forest_of, meets_alone
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor

__all__ = ["Alternatives", "Demand", "demands_of"]

Floats: TypeAlias = NDArray[np.float64]
#: What each leaf adds: its values (leaves, K) -> (leaves,).
Gains: TypeAlias = Callable[[Floats], Floats]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """One sum and what it must reach.

    Parameters
    ----------
    constant, least
        Start of the sum, and what it must reach.
    trees
        Ensembles, and what each of their leaves adds.
    lines
        Linear parts, and the weights of their matrix columns.
    votes
        Members that decide: what each label adds, and when the member decides for it.
    """

    constant: float
    least: float
    trees: tuple[tuple[Predictor, Gains], ...] = ()
    lines: tuple[tuple[Predictor, Floats], ...] = ()
    votes: tuple[tuple[Floats, tuple[Alternatives, ...]], ...] = ()


#: Any list of demands that are all met will do.
Alternatives: TypeAlias = tuple[tuple[Demand, ...], ...]


def demands_of(predictor: Predictor, target: Target, least: float) -> Alternatives:
    """Return what a point must reach whose decision meets the target with at least this slack (see ``slack``).

    Necessary, and up to rounding and ties also enough.
    """
    core = predictor.core
    if isinstance(target, DisagreementOf):
        wanted = target.wanted
        trees = ((predictor, lambda values: meets_alone(core, values, wanted).astype(np.float64)),)
        return ((Demand(0.0, target.needed(len(forest_of(core).trees)) - 0.5, trees),),)
    alternatives = []
    for rows in _rows(predictor, target, least):
        alternatives.append(tuple(_demand(predictor, weights, reached) for weights, reached in rows))
    return tuple(alternatives)


def _rows(predictor: Predictor, target: Target, least: float) -> list[list[tuple[Floats, float]]]:
    """Return lists of (weights of the scores, what their sum must reach); a list without rows is always met."""
    core = predictor.core
    match target:
        case Values():
            rows = []
            if math.isfinite(target.low):
                rows.append((np.ones(1), target.low + least))
            if math.isfinite(target.high):
                rows.append((-np.ones(1), least - target.high))
            return [rows]
        case ProbabilityOf() if core.probability == "share":
            return [[(_unit(core.n_scores, target.position), target.at_least + least)]]
        case ProbabilityOf():
            needed = score_needed(core.probability, target.position, target.at_least)
            if math.isinf(needed):
                return _always_or_never(is_never=needed > 0.0)
            sign = 1.0 if target.position == 1 else -1.0
            return [[(np.array([sign]), needed + least)]]
        case Labels() if core.n_scores == 1:
            sign = 1.0 if target.wanted == (1,) else -1.0
            if abs(core.level) >= NEVER:  # a label that no score has, or that every score has
                return _always_or_never(is_never=sign * core.level > 0.0)
            return [[(np.array([sign]), sign * core.level + least)]]
        case Labels():
            n = core.n_scores
            # Of two shares, one is what the other leaves: their difference counts each step of the score twice.
            factor = 0.5 if core.probability == "share" and n == 2 else 1.0
            lists = []
            for wanted in target.wanted:
                lists.append([(factor * (_unit(n, wanted) - _unit(n, other)), least) for other in target.others])
            return lists
    raise AssertionError


def _always_or_never(*, is_never: bool) -> list[list[tuple[Floats, float]]]:
    """Return the lists of what no score meets (there is none), or what every score meets (one without rows)."""
    return [] if is_never else [[]]


def _unit(size: int, place: int) -> Floats:
    return np.asarray(np.eye(size)[place])


def _demand(predictor: Predictor, weights: Floats, least: float) -> Demand:
    """Return the demand that a weighted sum of a model's scores reaches a number, down to the parts of the model."""
    core = predictor.core
    match core:
        case TreeEnsemble():
            divisor = core.divisor
            gains = ((predictor, lambda values: np.asarray(values @ weights / divisor)),)
            return Demand(float(weights @ core.base) / divisor, least, trees=gains)
        case Affine():
            return Demand(float(weights @ core.intercept), least, lines=((predictor, weights @ core.weights),))
        case Combination():
            constant = float(weights @ core.offset) / core.divisor
            parts = [weights @ part / core.divisor for part in core.weights]
            if core.votes:
                votes = tuple((part, _decided(member)) for member, part in zip(core.members, parts, strict=True))
                return Demand(constant, least, votes=votes)
            trees: list[Any] = []
            lines: list[Any] = []
            votes_of_members: list[Any] = []
            for member, part in zip(core.members, parts, strict=True):
                demand = _demand(member, part, 0.0)
                constant += demand.constant
                trees += demand.trees
                lines += demand.lines
                votes_of_members += demand.votes
            return Demand(constant, least, trees=tuple(trees), lines=tuple(lines), votes=tuple(votes_of_members))
    raise AssertionError


def _decided(member: Predictor) -> tuple[Alternatives, ...]:
    """Return, per label of a member, when it may decide for it; on a tie it may decide for any of those that tie."""
    labels = member.labels or ()
    return tuple(demands_of(member, Labels((k,), labels), 0.0) for k in range(len(labels)))
