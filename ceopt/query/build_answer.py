"""From a point that passed the check to an answer: its cost, score and slack, and what is to be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ceopt.formulations.constraints.rule import actions_under
from ceopt.formulations.predictors.decision.reaches import slack
from ceopt.solution.counterfactual import Counterfactual
from ceopt.tolerances import BOUND_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.query.prepare import Prepared

__all__ = ["answer_of", "answers_of", "assembled"]


def answer_of(
    prepared: Prepared,
    factual: Mapping[str, float],
    point: Mapping[str, float],
    *,
    prediction: Any,
    bound: float | None,
    rank: int,
    cluster: Any = None,
) -> Counterfactual:
    """Return the answer that a verified point is, with everything about it computed anew from its values."""
    settings = prepared.settings
    space = prepared.space
    predictor = prepared.predictor
    coordinates = np.array([[point[name] for name in space.names]])
    return _answer(
        prepared,
        factual,
        point,
        frame=space.frame([point]),
        prediction=prediction,
        score=_score(predictor, predictor.score(coordinates)[0]),
        slack=float(slack(predictor, coordinates, settings.target)[0]),
        bound=bound,
        rank=rank,
        cluster=cluster,
    )


def answers_of(
    prepared: Prepared,
    factual: Mapping[str, float],
    points: Sequence[Mapping[str, float]],
    *,
    predictions: Sequence[Any],
    bounds: Sequence[float | None],
) -> Iterator[Counterfactual]:
    """Yield the answers that verified points are, ranked as they come; models and frames are asked for all at once."""
    if not points:
        return
    space = prepared.space
    predictor = prepared.predictor
    coordinates = np.array([[point[name] for name in space.names] for point in points])
    frame = space.frame(points)
    scores = predictor.score(coordinates)
    slacks = slack(predictor, coordinates, prepared.settings.target).tolist()
    for k, point in enumerate(points):
        yield _answer(
            prepared,
            factual,
            point,
            frame=frame.iloc[[k]],
            prediction=predictions[k],
            score=_score(predictor, scores[k]),
            slack=slacks[k],
            bound=bounds[k],
            rank=k + 1,
        )


def _answer(
    prepared: Prepared,
    factual: Mapping[str, float],
    point: Mapping[str, float],
    *,
    frame: pd.DataFrame,
    prediction: Any,
    score: Any,
    slack: float,
    bound: float | None,
    rank: int,
    cluster: Any = None,
) -> Counterfactual:
    settings = prepared.settings
    space = prepared.space
    cost = settings.cost.value(space, factual, point)
    bound = 0.0 if bound is None else min(bound, cost)
    if cost - bound <= BOUND_ROUNDING * cost:
        bound = cost
    return assembled(
        settings.rules,
        space,
        factual,
        point,
        frame=frame,
        cost=cost,
        prediction=prediction,
        score=score,
        slack=slack,
        rank=rank,
        bound=bound,
        gap=(cost - bound) / max(abs(cost), 1e-12),
        cluster=cluster,
    )


def assembled(
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float],
    point: Mapping[str, float],
    *,
    frame: pd.DataFrame,
    cost: float,
    prediction: Any,
    score: Any,
    slack: float | None,
    rank: int,
    bound: float | None,
    gap: float | None,
    cluster: Any = None,
) -> Counterfactual:
    """Return an answer of known cost, score and rank, with what it changes and what is to be done for it."""
    actions = actions_under(rules, space, factual, point)
    return Counterfactual(
        values=frame,  # type: ignore[arg-type]  # a frame keeps each column's dtype
        cost=cost,
        prediction=prediction,
        score=score,
        slack=slack,
        changed=tuple(name for name, value in factual.items() if point[name] != value),
        verified=True,
        rank=rank,
        bound=bound,
        gap=gap,
        actions=None if actions is None else pd.Series(actions, dtype=object),
        cluster=cluster,
    )


def _score(predictor: Predictor, scores: Any) -> Any:
    if np.ndim(scores) == 0:
        return float(scores)
    assert predictor.labels is not None  # noqa: S101 - several scores belong to labels
    return dict(zip(predictor.labels, scores.tolist(), strict=True))
