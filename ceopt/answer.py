"""From a point that passed the check to an answer: its cost, score and slack, and what is to be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ceopt.attempt import ROUNDING, changed_names
from ceopt.formulations.predictors.outcome import slack
from ceopt.solution import Counterfactual

if TYPE_CHECKING:
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.prepare import Prepared

__all__ = ["answer_of"]


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
    settings, space, predictor = prepared.settings, prepared.space, prepared.predictor
    cost = settings.cost.value(space, factual, point)
    bound = 0.0 if bound is None else min(bound, cost)
    if cost - bound <= ROUNDING * cost:
        bound = cost
    coordinates = np.array([[point[name] for name in space.names]])
    told = (rule.actions(space, factual, point) for rule in settings.rules)
    actions = next((listed for listed in told if listed is not None), None)
    return Counterfactual(
        values=space.frame([point]),  # type: ignore[arg-type]  # a frame keeps each column's dtype
        cost=cost,
        prediction=prediction,
        score=_score(predictor, predictor.score(coordinates)),
        slack=float(slack(predictor, coordinates, settings.target)[0]),
        changed=changed_names(factual, point),
        verified=True,
        rank=rank,
        bound=bound,
        gap=(cost - bound) / max(abs(cost), 1e-12),
        actions=None if actions is None else pd.Series(actions, dtype=object),
        cluster=cluster,
    )


def _score(predictor: Predictor, scores: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    if scores.ndim == 1:
        return float(scores[0])
    assert predictor.labels is not None  # noqa: S101 - several scores belong to labels
    return dict(zip(predictor.labels, scores[0].tolist(), strict=True))
