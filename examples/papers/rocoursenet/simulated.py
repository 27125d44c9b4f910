"""The paper's made-up data: a covariate shift and a label shift between two data sets of two columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt import FeatureSpace
from ceopt.surrogates.scaled_columns import ScaledFrame
from rocoursenet.protocol import ATTACKERS, EPOCHS, SETTINGS, Case, Part

__all__ = ["simulated"]

#: Mean and deviation of either column, before the shift and after; the equations are those of the released code.
_MOMENTS = ((0.5, 0.5, 0.0, 0.3), (0.0, 0.3, 0.5, 0.5))
#: Share of the second class, before and after.
_SHARES = (0.6, 0.3)


def simulated(name: str, seed: int, n: int) -> Case:
    """Return a made-up data set, "covariate shift" or "label shift", of n rows before it and n after it."""
    draw = _covariate if name == "covariate shift" else _label
    parts = []
    for place, part in enumerate(("before", "after")):
        X, y = draw(np.random.default_rng([seed, place]), place, n)
        parts.append(Part(part, X, y))
    rows = pd.concat([part.X for part in parts])
    space = FeatureSpace.infer(rows)
    columns = ScaledFrame.of("the study", space, rows)
    own = (SETTINGS["student"], ATTACKERS["student"], EPOCHS["student"])
    return Case(name, "honest", space, tuple(parts), columns, *own)


def _covariate(rng: np.random.Generator, place: int, n: int) -> tuple[pd.DataFrame, NDArray[Any]]:
    first, first_spread, second, second_spread = _MOMENTS[place]
    x1 = rng.normal(first, first_spread, n)
    x2 = rng.normal(second, second_spread, n)
    y = -x2 + x1**3 + rng.normal(-0.1, 0.1, n) > 0.0
    return pd.DataFrame({"x1": x1, "x2": x2}), y.astype(int)


def _label(rng: np.random.Generator, place: int, n: int) -> tuple[pd.DataFrame, NDArray[Any]]:
    y = (rng.uniform(size=n) < _SHARES[place]).astype(int)
    z = 2.0 * y - 1.0 + rng.normal(0.1, 0.1, n)
    x1 = -z + z**3 + rng.normal(0.0, 0.3, n)
    x2 = z + z**3 - 3.0 * y + rng.normal(0.0, 0.3, n)
    return pd.DataFrame({"x1": x1, "x2": x2}), y
