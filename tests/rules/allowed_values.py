"""AllowedValues: each column's value is one of those listed, also where the factual's is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from rules.found import column

from ceopt.formulations.constraints import AllowedValues

VALUES = {
    "age": [0, 1, 2, 3],
    "wage": [0.0, 0.25, 0.5, 1.0],  # a quarter is off the step
    "size": ["S", "M", "L"],
    "job": [10, 20, 30],
    "owner": [False, True],
    "origin": [1, 2],
}


def examples() -> list[Any]:
    return [
        AllowedValues({"age": [1, 3], "wage": [1.0]}),
        AllowedValues({"age": [1, 2], "wage": [0.5, 0.0]}),
        AllowedValues({"size": ("L", "S"), "job": {20, 30}, "owner": [True]}),
        AllowedValues({"wage": np.array([0.0, 0.25, 1.0]), "origin": [2]}),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=2, unique=True))
    return AllowedValues({n: draw(st.lists(st.sampled_from(VALUES[n]), min_size=1, unique=True)) for n in names})


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    kept = np.ones(len(points), dtype=bool)
    for name, some in rule.values.items():
        levels = space[name].levels
        here = column(space, points, name)
        raw = [levels[int(k)] for k in here] if levels else here.tolist()
        kept &= np.array([value in list(some) for value in raw], dtype=bool)
    return kept
