"""Machines in two dimensions: how the line moves into the favourable class as the unfavourable covariance may grow."""

from __future__ import annotations

from typing import Any, Final

from coverage_validity.local_models import Data

__all__ = ["DIVERGENCES", "RADII", "planes"]

DIVERGENCES: Final = ("quadratic", "bures", "fisher_rao")
#: Of the unfavourable covariance; 0.01 and 10 in figure 3, 0, 1 and 10 in figure 14.
RADII: Final = (0.0, 0.01, 1.0, 10.0)
#: How many of the sample are kept to be drawn.
DRAWN: Final = 300


def planes(data: Data) -> dict[str, Any]:
    """Return the sample of the first person that is rejected, and the line of each divergence and radius."""
    case = data.case
    rejected = case.people(data.present.favourable(case.X)[0], data.fold, 1)
    local = data.local(case.X[rejected[0]])
    lines: dict[str, dict[str, list[float]]] = {}
    for divergence in DIVERGENCES:
        lines[divergence] = {}
        for radius in RADII:
            line = local.machine(divergence, radius)
            lines[divergence][str(radius)] = [*line.coef.tolist(), line.intercept]
    return {
        "factual": local.factual.tolist(),
        "points": local.sample.encoded[:DRAWN].round(4).tolist(),
        "favourable": local.sample.favourable[:DRAWN].astype(int).tolist(),
        "lines": lines,
    }
