"""A small lattice of whole numbers and levels, on which the cheapest answer of any model is found by trying all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ceopt

__all__ = ["COLUMNS", "CUTS", "JOBS", "LATTICE", "RARE", "SPACE", "THREE", "VALUE", "WITH_JOBS", "agree"]

COLUMNS = {"a": (0, 7), "b": (0, 5), "c": (0, 3)}
SPACE = ceopt.FeatureSpace(
    [ceopt.Feature(name, kind="integer", lower=low, upper=high) for name, (low, high) in COLUMNS.items()]
)
LATTICE = pd.DataFrame(
    list(itertools.product(*(range(low, high + 1) for low, high in COLUMNS.values()))), columns=list(COLUMNS)
)
VALUE = LATTICE["a"] + 2 * (LATTICE["b"] % 3) - LATTICE["c"] + np.random.default_rng(5).normal(0, 1.0, len(LATTICE))
CUTS = np.quantile(VALUE, [0.4, 0.85])
RARE = np.where(np.digitize(VALUE, CUTS) == 2, "yes", "no")
THREE = np.array(["low", "mid", "top"])[np.digitize(VALUE, CUTS)]

JOBS = ("cook", "clerk", "miner", "nurse", "poet", "smith")
#: The same people with a job in place of the column b.
WITH_JOBS = LATTICE.assign(b=np.array(JOBS)[LATTICE["b"]]).rename(columns={"b": "job"})

_L1 = ceopt.L1(scale="none")


def agree(
    model: Any,
    reached: Any,
    target: Any,
    *,
    rows: int = 6,
    space: Any = SPACE,
    lattice: pd.DataFrame = LATTICE,
    cost: Any = _L1,
    steps: Callable[[pd.DataFrame, pd.DataFrame], Any] | None = None,
    **options: Any,
) -> None:
    """From some rows of the lattice, the answer is verified and costs what the cheapest lattice point does.

    ``steps`` gives the cost of each lattice point from a row, where it is not 1 per whole number and changed level.
    """
    reached = np.asarray(reached)
    assert 0 < reached.sum() < len(lattice)
    outside = np.flatnonzero(~reached)
    for start in outside[:: max(1, len(outside) // rows)]:
        row = lattice.iloc[[start]]
        result = ceopt.explain(model, row, space, target=target, cost=cost, **options)
        costs = np.asarray((steps or _steps)(row, lattice))
        assert result.status == "optimal", (start, result.reason)
        assert result[0].verified
        assert ceopt.verify(result, model, space, target=target, factual=row).ok
        assert result[0].cost == pytest.approx(costs[reached].min())


def _steps(row: pd.DataFrame, lattice: pd.DataFrame) -> Any:
    numbers = lattice.select_dtypes("number").columns
    moves = np.abs(lattice[numbers] - row[numbers].to_numpy()).sum(axis=1)
    return moves + (lattice.drop(columns=numbers) != row.drop(columns=numbers).to_numpy()).sum(axis=1)
