"""A small frame with a column of every kind, its space, and targets of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ceopt.formulations.space.space import FeatureSpace


@dataclass(frozen=True)
class Data:
    frame: pd.DataFrame
    space: FeatureSpace
    two: np.ndarray[Any, Any]
    three: np.ndarray[Any, Any]
    value: np.ndarray[Any, Any]

    def only(self, *names: str) -> Data:
        """The same people with some columns."""
        kept = FeatureSpace([self.space[name] for name in names])
        return Data(self.frame[list(names)], kept, self.two, self.three, self.value)


NUMBERS = ("age", "income", "debt", "tiny")


@pytest.fixture(scope="session")
def data() -> Data:
    rng = np.random.default_rng(7)
    n = 240
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["clerk", "cook", "miner", "nurse"], n),
            "income": rng.lognormal(10, 1, n),
            "home": rng.choice(["own", "rent"], n),
            "debt": rng.normal(-3e3, 1e4, n),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "tiny": rng.normal(1.0, 1e-6, n),
            "flag": rng.random(n) < 0.4,
        }
    )
    score = (
        frame["income"] / 3e4
        - frame["debt"] / 1e4
        + (frame["job"] == "nurse")
        + frame["flag"]
        + 1e6 * (frame["tiny"] - 1)
        + rng.normal(size=n)
    )
    two = np.where(score > score.median(), "good", "bad")
    three = np.array(["low", "mid", "top"])[np.digitize(score, np.quantile(score, [0.3, 0.7]))]
    return Data(frame, FeatureSpace.infer(frame, moves={"age": "any"}), two, three, score.to_numpy())


@pytest.fixture(scope="session")
def numbers(data: Data) -> Data:
    return data.only(*NUMBERS)
