"""What an answer changes, how far, and whether it is more of an earlier one: by the data's schema, without ceopt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import common
import pandas as pd

__all__ = ["length", "moves", "repeats", "supersets"]


def moves(row: pd.DataFrame, answer: pd.Series[Any], schema: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what an answer changes: the level that a category takes, of all else whether it rises."""
    found: dict[str, Any] = {}
    for name, column in schema.items():
        home, new = row[name].iloc[0], answer[name]
        if home == new:
            continue
        if column["kind"] == "categorical":
            found[name] = new
        elif "levels" in column:
            found[name] = column["levels"].index(new) > column["levels"].index(home)
        else:
            found[name] = new > home
    return found


def length(row: pd.DataFrame, answer: pd.Series[Any], task: common.Task) -> float:
    """Return the l1 length of an answer's moves, by median absolute deviations, categories 1, ordinal columns 1."""
    total = 0.0
    for name, column in common.schema_of(task.bunch.name).items():
        home, new = row[name].iloc[0], answer[name]
        if home == new:
            continue
        if column["kind"] == "categorical":
            total += 1.0
        elif "levels" in column:
            steps = abs(column["levels"].index(new) - column["levels"].index(home))
            total += steps / max(len(column["levels"]) - 1, 1)
        else:
            total += abs(float(new) - float(home)) / task.bunch.space[name].scale("mad")
    return total


def supersets(changed: Sequence[Mapping[str, Any]]) -> int:
    """Return how many answers change all that an earlier one changes, and more."""
    return len({k for (j, a), (k, b) in combinations(enumerate(changed), 2) if a.keys() < b.keys()})


def repeats(changed: Sequence[Mapping[str, Any]]) -> int:
    """Return how many answers change what an earlier one changes, in the same ways."""
    return len({k for (j, a), (k, b) in combinations(enumerate(changed), 2) if a == b})
