"""How well and how steadily surrogates say what the model decides near a person, by the size of the sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from ceopt.metrics import local_fidelity, stability
from ceopt.surrogates import NoBoundaryError
from ceopt.surrogates.scaled_columns import largest_distance
from coverage_validity.local_models import Data, Line, Local
from coverage_validity.protocol import Floats

__all__ = ["SETTINGS", "SURROGATES", "qualities"]

#: Figure 4 and 7 (1), figure 8 (2): variance of the neighbours, radius of the ball in which models are compared, and
#: of the sampler, shares of the largest distance of training rows.
SETTINGS: Mapping[str, tuple[float, float, float]] = {"4, 7": (1e-3, 0.1, 0.05), "8": (1e-4, 0.2, 0.1)}
NEIGHBOURS, COMPARED = 10, 1000
#: The radius of the unfavourable covariance.
RADIUS = 1.0

SURROGATES: Mapping[str, Callable[[Local], Line]] = {
    "LIME": lambda local: local.rival("lime"),
    "LIME, around the person": lambda local: local.rival("lime, person"),
    "QUAD-MPM": lambda local: local.machine("quadratic", RADIUS),
    "BW-MPM": lambda local: local.machine("bures", RADIUS),
    "FR-MPM": lambda local: local.machine("fisher_rao", RADIUS),
}


def qualities(data: Data, people: Floats, setting: str, size: int, *, quiet: bool) -> dict[str, Any]:
    """Return fidelity and stability of each surrogate for each person, and condition numbers of the covariances."""
    variance, compared, drawn = SETTINGS[setting]
    reach = compared * largest_distance(data.case.X[data.fold.train])
    found: dict[str, Any] = {name: {"fidelity": [], "stability": []} for name in SURROGATES}
    conditions = []
    for k, factual in enumerate(tqdm(people, unit="person", desc=f"{data.case.name}, {size}", disable=quiet)):
        rng = np.random.default_rng([data.fold.number, k])
        nearby = factual + np.sqrt(variance) * rng.standard_normal((NEIGHBOURS, data.case.p))
        try:
            own = data.local(factual, n_samples=size, radius=drawn)
            around = [data.local(point, n_samples=size, radius=drawn) for point in nearby]
            conditions.append(_condition(own))
            for name, fitted in SURROGATES.items():
                line = fitted(own)
                others = [fitted(one) for one in around]
                found[name]["fidelity"].append(_fidelity(data, line, factual, reach, seed=k))
                found[name]["stability"].append(_stability(line, others))
        except NoBoundaryError:
            continue
    return {"surrogates": found, "condition": conditions}


def _condition(local: Local) -> float:
    """Return the mean condition number of the two covariances."""
    _, unfavourable, _, favourable = local.moments
    return float(np.mean([np.linalg.cond(one) for one in (unfavourable, favourable)]))


def _fidelity(data: Data, line: Line, factual: Floats, reach: float, *, seed: int) -> float:
    def says(points: Floats) -> Any:
        return (points @ line.coef + line.intercept >= 0.0).astype(int)

    return round(local_fidelity(data.present.predict, says, factual, reach, n_samples=COMPARED, random_state=seed), 4)


def _stability(line: Line, others: list[Line]) -> float:
    """Return the greatest distance of weights and intercepts, each scaled to length 1 together."""
    found = stability(
        line.coef,
        [other.coef for other in others],
        intercept=line.intercept,
        nearby_intercept=[other.intercept for other in others],
    )
    return round(found, 5)
