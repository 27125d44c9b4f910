"""MaxChanges: at most k features, or encoded columns, leave the factual; a category switch is two columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ceopt.formulations.constraints import MaxChanges


def examples() -> list[Any]:
    return [
        MaxChanges(0),
        MaxChanges(2),
        MaxChanges(3, count="columns"),
        MaxChanges(1, together=[["age", "owner"]]),
    ]


def drawn(space: Any, factual: Any) -> st.SearchStrategy[Any]:
    return st.builds(MaxChanges, st.integers(1, 4), count=st.sampled_from(["features", "columns"]))


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    return used(rule, space, factual, points) <= rule.k


def excess(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    return np.maximum(used(rule, space, factual, points) - rule.k, 0)


def used(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    size = np.array([2 if rule.count == "columns" and feature.kind == "categorical" else 1 for feature in space])
    for group in rule.together:  # the one 1 of today is not counted where another takes it
        today = [factual[list(space.names).index(name)] for name in group]
        if sorted(today) == [0.0] * (len(today) - 1) + [1.0]:
            size[list(space.names).index(group[today.index(1.0)])] = 0
    return ((np.asarray(points) != np.asarray(factual)) * size).sum(axis=1)
