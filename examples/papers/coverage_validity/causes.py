"""What lies behind the differences: how far off the future is, and whether methods move the same column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from ceopt.surrogates import NoBoundaryError
from coverage_validity.frontiers import FoldModels
from coverage_validity.methods import METHODS
from coverage_validity.protocol import Floats
from coverage_validity.summaries import OURS

__all__ = ["MEASURES", "causes"]

#: Measure -> what it is.
MEASURES = {
    "agreement": "share of the networks of the future that decide as the present one does, over its test rows",
    "unmoved": "future validity of the people of the study as they are, whom the present network rejects",
    "kept": "future validity of the test rows that the present network favours",
    "same column": (
        "share of the people for whom FR-MPM-PROJ with radius 1 and exact LIME-ROAR with a ball of 0.04 move the same "
        "column most, of those whom both move"
    ),
    "in that column": "share of the cost of FR-MPM-PROJ that the column which it moves most has",
}
RIVAL = "LIME-ROAR, exact"
#: Radius of ours, and of the rival's ball.
LEVELS = (1.0, 0.04)


def causes(models: FoldModels, people: Floats, *, quiet: bool) -> dict[str, float]:
    """Return the measures of one fold; nan where there is nothing to measure."""
    case = models.data.case
    tested = case.X[case.test]
    favoured = models.data.present.favourable(tested)[0]
    later = models.futures.validity(tested)
    agreement = [share if is_favoured else 1.0 - share for share, is_favoured in zip(later, favoured, strict=True)]
    same, shares = _columns(models, people, quiet=quiet)
    return {
        "agreement": _mean(agreement),
        "unmoved": _mean(models.futures.validity(people)),
        "kept": _mean(later[favoured]),
        "same column": _mean(same),
        "in that column": _mean(shares),
    }


def _columns(models: FoldModels, people: Floats, *, quiet: bool) -> tuple[list[float], list[float]]:
    """Return of each person whether both methods move the same column most, and how much of our cost is in it."""
    same: list[float] = []
    shares: list[float] = []
    for factual in tqdm(people, unit="person", desc=f"{models.data.case.name}, columns", disable=quiet):
        local = models.data.local(factual)
        moves = []
        for name, level in zip((OURS, RIVAL), LEVELS, strict=True):
            try:
                point = METHODS[name].find(local, level)
            except NoBoundaryError:
                point = None
            if point is not None and np.abs(point - factual).sum() > 0.0:
                moves.append(np.abs(point - factual))
        if len(moves) == len(LEVELS):
            ours, theirs = moves
            same.append(float(ours.argmax() == theirs.argmax()))
            shares.append(float(ours.max() / ours.sum()))
    return same, shares


def _mean(values: Floats | Sequence[float]) -> float:
    return round(float(sum(values) / len(values)), 4) if len(values) else float("nan")
