"""What the examples of this folder share: a small town of whole numbers and levels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

import ceopt

__all__ = ["COST", "PEOPLE", "POINTS", "SPACE", "WANTED", "fitted", "refused"]

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="integer", lower=0, upper=9),
        ceopt.Feature("rooms", kind="integer", lower=1, upper=4),
        ceopt.Feature("grade", kind="ordinal", levels=(0, 1, 2)),
        ceopt.Feature("owner", kind="binary", levels=(0, 1)),
    ]
)
#: Every row that there may be.
POINTS = pd.DataFrame(list(itertools.product(range(10), range(1, 5), range(3), range(2))), columns=list(SPACE.names))
_RNG = np.random.default_rng(0)
PEOPLE = POINTS.sample(160, random_state=0, ignore_index=True)
_CHANCE = 1.0 * PEOPLE["income"] + 1.3 * PEOPLE["grade"] - 0.8 * PEOPLE["rooms"] + 1.1 * PEOPLE["owner"]
WANTED = np.where(_CHANCE + _RNG.normal(scale=1.0, size=len(PEOPLE)) > 5.0, "yes", "no")
#: What a unit of each number costs, and a level.
COST = ceopt.L1(scale={"income": 1.0, "rooms": 1.0, "grade": 0.5, "owner": 1.0})


def fitted(estimator: Any) -> Any:
    """Return an estimator that was fitted on the people of the town."""
    return estimator.fit(PEOPLE, WANTED)


def refused(model: Any) -> pd.DataFrame:
    """Return the people whom a model refuses."""
    return PEOPLE[model.predict(PEOPLE) == "no"].reset_index(drop=True)
