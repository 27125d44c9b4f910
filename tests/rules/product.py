"""Product: a column is the product of others, half a step apart at most, but for what it is off by today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from rules.found import column

from ceopt.formulations.constraints import Product
from ceopt.formulations.space import Feature

NUMBERS = ("age", "wage", "size", "owner")


def examples() -> list[Any]:
    return [
        Product("age", ["wage", "size"]),
        Product("size", ["age", "owner"], name="size"),
        Product("wage", ["age", "size", "owner"]),
        Product("size", ["age", "age", "wage"]),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    del space, factual
    name, *others = draw(st.permutations(NUMBERS))
    return Product(name, others[: draw(st.integers(2, 3))])


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    def product(rows: Any) -> Any:
        return np.prod([column(space, rows, name) for name in rule.factors], axis=0)

    return following(space[rule.column], product, rule, space, factual, points)


def following(feature: Feature, formula: Callable[[Any], Any], rule: Any, space: Any, factual: Any, points: Any) -> Any:
    """Return which points have a column that is as far off a formula as today, within half a step."""
    half = 0.5
    if feature.kind == "continuous":
        half = feature.step / 2.0 if feature.step else 0.0
    home = np.asarray(factual)[None, :]
    with np.errstate(all="ignore"):
        today = column(space, home, rule.column)[0] - formula(home)[0]
        off = column(space, points, rule.column) - formula(points)
    if not np.abs(today) > half + 1e-9:
        today = 0.0
    return np.abs(off - today) <= half + 1e-7
