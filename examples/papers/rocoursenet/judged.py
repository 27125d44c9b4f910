"""Validity, robust validity and proximity of advice, part by part, and how many different pieces of it there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ceopt.training import Rbr, RoarLime, VanillaCF
from rocoursenet.networks import Fitted
from rocoursenet.protocol import Case

__all__ = ["MEASURES", "RIVALS", "Adviser", "judged", "rbr", "roar"]

#: What is measured of each part. "distinct": the different pieces of advice, in the columns that people can move both
#: ways, as a share of the rows; one point for everybody, of either class, would be two of them.
#: "levels": the share of the distance that is in columns of levels, which no attacker of the training shifts.
MEASURES = ("validity", "robust", "proximity", "distinct", "levels", "rows", "seconds")
#: From a trained network to who gives recourse for rows of its part.
Adviser = Callable[[Case, Fitted, int], Any]


def roar(**options: Any) -> Adviser:
    """Return ROAR-LIME with options."""
    return lambda case, one, seed: RoarLime(one.model, one.trained_rows, space=case.space, random_state=seed, **options)


def rbr(**options: Any) -> Adviser:
    """Return RBR with options."""
    return lambda case, one, seed: Rbr(one.model, one.trained_rows, space=case.space, random_state=seed, **options)


def _vanilla(case: Case, one: Fitted, seed: int) -> VanillaCF:
    del seed
    return VanillaCF(one.model, one.trained_rows, space=case.space)


RIVALS: Mapping[str, Adviser] = {"VanillaCF": _vanilla, "ROAR-LIME": roar(), "RBR": rbr()}


def own(case: Case, one: Fitted, seed: int) -> Any:
    """Return the network itself, which gives recourse by its generator."""
    del case, seed
    return one.model


def judged(
    case: Case, models: Sequence[Fitted], seed: int, adviser: Adviser = own, count: int | None = None
) -> dict[str, list[float]]:
    """Return the measures of advice for test rows of each part, by the models of all parts.

    Parameters
    ----------
    case
        The data set.
    models
        One for each part: what advice is for, and what judges that of the others.
    seed
        Of samples.
    adviser
        Who advises; by default the network.
    count
        How many rows of each part; None: all that no network was trained on.
    """
    found: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for one in models:
        X = one.tested_rows(count)
        said = one.model.predict(X)
        gives = adviser(case, one, seed)
        begun = time.perf_counter()
        advice = gives.recourse(X)
        seconds = time.perf_counter() - begun
        others = [other.model for other in models if other is not one]
        robust = [np.mean(other.predict(advice) != said) for other in others]
        found["validity"].append(float(np.mean(one.model.predict(advice) != said)))
        found["robust"].append(float(np.mean(robust)))
        distances = case.distances(X, advice)
        found["proximity"].append(float(distances.sum(axis=1).mean()))
        found["levels"].append(float(distances[:, ~case.columns.of_numbers].sum() / max(distances.sum(), TINY)))
        found["distinct"].append(_distinct(case, advice))
        found["rows"].append(len(X))
        found["seconds"].append(seconds / len(X))
    return {measure: [round(value, 7) for value in values] for measure, values in found.items()}


#: Less than any move, so that who is advised to stay has no share of anything.
TINY = 1e-12


def _distinct(case: Case, advice: pd.DataFrame) -> float:
    """Return how many rows of advice differ in the columns that people can move both ways, as a share."""
    free = [feature.name for feature in case.space if feature.mutable and feature.direction == "any"]
    return len(advice[free].drop_duplicates()) / len(advice)
