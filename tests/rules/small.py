"""One person with a column of every kind, the lattice of what they may become, and models that decide about them."""

from __future__ import annotations

from typing import Any

import enumeration as by_hand
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import AtLeast, OtherThan

Floats = NDArray[np.float64]

SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=0, upper=3, direction="increasing"),
        Feature("wage", kind="continuous", lower=0.0, upper=1.0, step=0.5),
        Feature("size", kind="ordinal", levels=("S", "M", "L"), weight=(1.0, 2.0)),
        Feature("job", kind="categorical", levels=(10, 30, 20)),
        Feature("owner", kind="binary", levels=(False, True)),
        Feature("origin", kind="categorical", levels=(1, 2), mutable=False),
    ]
)
ROW = {"age": 1, "wage": 0.5, "size": "M", "job": 30, "owner": False, "origin": 2}


def coordinates(space: FeatureSpace, row: dict[str, Any]) -> Floats:
    """Return a row in raw units as numbers, ranks and 0/1, shape (d,)."""
    return np.array([space[name].to_coordinate(row[name]) for name in space.names])


def lattice(space: FeatureSpace, row: dict[str, Any]) -> Floats:
    """Return everything in reach, (n, d); numbers must have a step."""
    home = coordinates(space, row)
    return by_hand.product([by_hand.candidates(f, x0, []) for f, x0 in zip(space, home, strict=True)])


FACTUAL = coordinates(SPACE, ROW)
POINTS = lattice(SPACE, ROW)

#: What is known of other people, for rules that learn from rows.
PEOPLE = pd.DataFrame(
    {
        "age": [1, 2, 3, 0, 2, 3, 1, 2],
        "wage": [0.5, 1.0, 0.5, 0.0, 0.0, 1.0, 1.0, 0.5],
        "size": ["M", "L", "S", "S", "M", "L", "S", "L"],
        "job": [30, 20, 10, 10, 30, 20, 30, 10],
        "owner": [False, True, True, False, True, False, True, True],
        "origin": [2, 2, 1, 2, 2, 2, 1, 2],
    }
)

#: Name -> model over the columns as numbers (text by its rank), and a target that the person misses; no score ties.
MODELS: dict[str, tuple[Any, Any]] = {
    "linear": (Affine([1.0, 2.0, 0.5, -0.1, 1.5, 0.25], 0.0), AtLeast(3.7)),
    "network": (
        ReluNetwork(
            [
                [[1.0, 1.0, 0.5, 0.0, 1.0, 0.5], [-1.0, 2.0, 0.0, 0.05, -0.5, 0.0], [0.5, -1.0, 2.0, -0.1, 0.0, 0.0]],
                [[1.0, 0.25, -1.0], [-1.0, 1.5, 1.0]],
                [[1.0, 1.5]],
            ],
            [[-1.0, 0.5, -1.5], [-0.5, 0.25], [-3.95]],
            labels=("no", "yes"),
        ),
        "yes",
    ),
    "trees": (
        TreeEnsemble(
            [
                {"feature": 0, "threshold": 1.5, "left": {"value": 0.0}, "right": {"value": 1.0}},
                {
                    "feature": 2,
                    "threshold": 1.5,
                    "left": {"feature": 1, "threshold": 0.75, "left": {"value": -1.0}, "right": {"value": 0.4}},
                    "right": {"value": 0.5},
                },
                {
                    "feature": 3,
                    "threshold": 15.0,
                    "left": {"value": 0.7},
                    "right": {"feature": 4, "threshold": 0.5, "left": {"value": -1.0}, "right": {"value": 0.2}},
                },
            ],
            n_inputs=6,
        ),
        AtLeast(0.65),
    ),
    "classes": (
        Affine(
            [[-1.0, -1.0, 0.0, 0.05, -1.0, 0.0], [0.5, 0.5, 1.0, 0.0, 0.5, 0.0], [0.0, 1.5, -1.0, -0.05, 1.0, 0.0]],
            [4.05, -0.3, 0.7],
            labels=("low", "mid", "high"),
        ),
        OtherThan("low"),
    ),
}
