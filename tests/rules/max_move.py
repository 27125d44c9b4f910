"""MaxMove: each of some columns moves no further than so much, or than a share of what it is today."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from rules.found import column

from ceopt.formulations.constraints import MaxMove


def examples() -> list[Any]:
    return [
        MaxMove("wage", up=0, name="no more wage"),
        MaxMove(("age", "size"), up=1, down=0),
        MaxMove(["wage", "age"], down="50%", up="100%"),
        MaxMove("age", up=1.5, further=0.25),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    chosen = draw(st.lists(st.sampled_from(["age", "wage", "size"]), min_size=1, max_size=3, unique=True))
    limits = [None, 0, 1, 2]
    if "size" not in chosen:
        limits += [0.5, "50%", "100%"]
    up, down = draw(st.sampled_from(limits)), draw(st.sampled_from(limits[1:]))
    return MaxMove(chosen, up=up, down=down)


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    return excess(rule, space, factual, points) <= 1e-9


def excess(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    over = np.zeros(len(points))
    for name in rule.columns:
        own = column(space, np.asarray(factual)[None, :], name)[0]
        move = column(space, points, name) - own
        for limit, length in ((rule.up, move), (rule.down, -move)):
            if limit is not None:
                over = np.maximum(over, length - _room(limit, own) - rule.further)
    return over


def _room(limit: Any, own: float) -> float:
    if isinstance(limit, str):
        return float(Fraction(limit.strip("%")) / 100 * abs(Fraction(own)))
    return limit
