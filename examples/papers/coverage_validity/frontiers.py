"""Cost against validity: every method at every level of its robustness, for the same people, on one fold."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from tqdm import tqdm

from ceopt.surrogates import NoBoundaryError
from coverage_validity import networks
from coverage_validity.local_models import Data, Local
from coverage_validity.methods import METHODS
from coverage_validity.network_descent import descend
from coverage_validity.protocol import Case, Floats, Fold

__all__ = ["FEW", "WACHTER", "FoldModels", "frontiers", "judged", "levels_of", "models_of"]

#: Wachter's descent on the network itself, which needs its gradient; the level is the probability that is asked for.
WACHTER = "Wachter"
WACHTER_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)
#: Figure 16: methods that are tried with a sample of 50 too -> the method.
FEW = {"FR-MPM-PROJ, 50 samples": "FR-MPM-PROJ", "QUAD-MPM-PROJ, 50 samples": "QUAD-MPM-PROJ"}
FEW_SAMPLES = 50


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoldModels:
    """One fold with its networks.

    Parameters
    ----------
    data
        The fold's rows and its present network.
    futures
        The networks of the future.
    """

    data: Data
    futures: networks.Networks

    def people(self, count: int) -> Floats:
        """Return whom the present network rejects, (k, p)."""
        case = self.data.case
        favoured = self.data.present.favourable(case.X)[0]
        return case.X[case.people(favoured, self.data.fold, count)]


def models_of(case: Case, fold: Fold, count: int) -> FoldModels:
    """Return a fold with its present network and ``count`` of the future."""
    present = networks.present(case, fold)
    return FoldModels(Data(case, fold, present), networks.futures(case, fold, count))


def levels_of(name: str) -> Sequence[float]:
    """Return the levels of a method."""
    if name == WACHTER:
        return WACHTER_LEVELS
    return METHODS[FEW.get(name, name)].levels


def frontiers(models: FoldModels, people: Floats, *, quiet: bool) -> dict[str, Any]:
    """Return for each method and level what its points cost and who favours them, people in order.

    A person without a point at a level, or without a boundary in reach, has None in every list.
    """
    names = (*METHODS, *FEW, WACHTER)
    found: dict[str, Any] = {}
    for name in names:
        found[name] = {"levels": list(levels_of(name)), "seconds": 0.0, "cost": [], "current": [], "future": []}
    for factual in tqdm(people, unit="person", desc=_title(models), disable=quiet):
        usual = models.data.local(factual)
        narrow = models.data.local(factual, n_samples=FEW_SAMPLES)
        for name in names:
            began = time.perf_counter()
            points = _points(models, narrow if name in FEW else usual, name)
            found[name]["seconds"] += time.perf_counter() - began
            _add(found[name], models, factual, points)
    return found


def _title(models: FoldModels) -> str:
    case = models.data.case
    return f"{case.name}, {case.protocol}, fold {models.data.fold.number}"


def _points(models: FoldModels, local: Local, name: str) -> list[Floats | None]:
    """Return a method's point at each of its levels."""
    if name == WACHTER:
        lower, upper = local.data.case.limits(local.factual)
        found = [
            descend(models.data.present, local.factual, level=level, lower=lower, upper=upper)
            for level in WACHTER_LEVELS
        ]
        return list(found)
    method = METHODS[FEW.get(name, name)]
    try:
        return [method.find(local, level) for level in method.levels]
    except NoBoundaryError:
        return [None] * len(method.levels)


def _add(found: Mapping[str, list[Any]], models: FoldModels, factual: Floats, points: Sequence[Floats | None]) -> None:
    """Append what one person's points cost and who favours them, a list over the levels."""
    each = [judged(models, factual, point) for point in points]
    for key in ("cost", "current", "future"):
        found[key].append([one[key] for one in each])


def judged(models: FoldModels, factual: Floats, point: Floats | None) -> dict[str, float | None]:
    """Return a point's cost in l1 and its validity now and later, rounded to what is reported; None without a point."""
    if point is None:
        return {"cost": None, "current": None, "future": None}
    return {
        "cost": round(float(np.abs(point - factual).sum()), 5),
        "current": float(models.data.present.favourable(point[None])[0, 0]),
        "future": round(float(models.futures.validity(point[None])[0]), 4),
    }
