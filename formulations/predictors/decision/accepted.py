"""The decision of a model of trees, as its library takes it, float for float; and where that cannot be known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.decision.attained_levels import sums_of
from ceopt.formulations.predictors.decision.disagreement import agreeing_trees, forest_of
from ceopt.formulations.predictors.read.sklearn.order import adds_in_order
from ceopt.formulations.predictors.representation.decision_rule import score_needed
from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.predictors.representation.tree import Floats

__all__ = ["accepted", "has_fixed_order", "link_rounding", "tie_width"]


def accepted(
    predictor: Predictor, coordinates: Floats, target: Target, *, scores: Floats | None = None
) -> NDArray[np.bool_]:
    """Return whether the scores at rows of coordinates (n, d) meet a target, as the library compares."""
    core = predictor.core
    if isinstance(target, DisagreementOf):
        return agreeing_trees(predictor, coordinates, target.wanted) >= target.needed(len(forest_of(core).trees))
    scores = predictor.score(coordinates) if scores is None else scores
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
        rows = [np.eye(k)[t] - np.eye(k)[j] for t in target.wanted for j in target.others]
    more = link_rounding(predictor, target) if isinstance(target, ProbabilityOf) and k == 1 else 0.0
    return max(sums_of(predictor, row.tolist()).width(end, more) for row in rows for end in ends if np.isfinite(end))
