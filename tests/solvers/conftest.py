"""Small models that several solver tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest


def knapsack(n: int = 12, rows: int = 3, seed: int = 0, *, scale: float = 1.0, maximise: bool = True) -> Any:
    """A random multi-row knapsack over binaries; values near ``scale``."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 60, (rows, n)).tolist()
    value = (scale * rng.uniform(1, 2, n) * (1 if maximise else -1)).tolist()
    model = pyo.ConcreteModel()
    model.y = pyo.Var(range(n), domain=pyo.Binary)
    model.cap = pyo.Constraint(
        range(rows), rule=lambda m, i: sum(weight[i][j] * m.y[j] for j in range(n)) <= sum(weight[i]) // 2
    )
    sense = pyo.maximize if maximise else pyo.minimize
    model.value = pyo.Objective(expr=sum(value[j] * model.y[j] for j in range(n)) + 5 * scale, sense=sense)
    return model


@pytest.fixture
def make_knapsack() -> Callable[..., Any]:
    return knapsack


@pytest.fixture
def hard() -> Any:
    """Many minutes of search: 60 binaries, 20 rows."""
    return knapsack(60, 20)
