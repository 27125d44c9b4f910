"""COPA: Bui, Nguyen & Nguyen (2022), tables 1 and 4. Bounds on the probability of validity belong to the plans."""

from __future__ import annotations

import numpy as np

from ceopt.metrics.distance import pairwise
from ceopt.metrics.published.measure import Evidence, Measure
from ceopt.metrics.robustness import plan_validity
from ceopt.tolerances import COPA_JITTER

__all__ = ["COPA2022"]

_PAPER = "Bui et al. 2022"


def _proximity(known: Evidence) -> float:
    home, points = known.encoded("copa2022", x=known.factual, S=known.S)
    return float(pairwise(home, points, "l2").mean())


def _diversity(known: Evidence) -> float:
    (points,) = known.encoded("copa2022", S=known.S)
    similar = 1.0 / (1.0 + pairwise(points, points, "l2"))
    return float(np.linalg.det(similar + COPA_JITTER * np.eye(len(points))))


#: In the classifier's columns: numbers in [0, 1], categories as 0/1 columns. A constant column for the intercept, which
#: the code carries along, changes nothing.
COPA2022 = (
    Measure(
        name="proximity",
        function="k_distance('l2') of encoded columns",
        better="lower",
        needs=("factual", "range"),
        source=f"{_PAPER}, (4)",
        of=_proximity,
    ),
    Measure(
        name="diversity",
        function="dpp_determinant('l2', jitter=1e-4) of encoded columns",
        better="higher",
        needs=("range",),
        source=f"{_PAPER}, (5); utils.py",
        of=_diversity,
    ),
    Measure(
        name="empirical_validity",
        function="plan_validity",
        better="higher",
        needs=("models", "target"),
        source=f"{_PAPER}, section 5.2; utils.py, compute_validity",
        of=lambda e: plan_validity(e.S, e.models, e.target, space=e.space),
    ),
    Measure(
        name="current_validity",
        function="plan_validity(models=[model])",
        better="higher",
        needs=("model", "target"),
        source=f"{_PAPER}, table 4",
        of=lambda e: plan_validity(e.S, [e.model], e.target, space=e.space),
    ),
)
