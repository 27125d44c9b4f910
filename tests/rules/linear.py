"""Linear: a weighted sum of raw numbers, ranks and 0/1 on one side of a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from rules.found import column

from ceopt.formulations.constraints import Linear

NUMBERS = ("age", "wage", "size", "owner")


def examples() -> list[Any]:
    return [
        Linear({"age": 1.0, "size": -1.0, "owner": 2.0}, "<=", 2.0),
        Linear({"wage": 2.0, "owner": 1.0}, ">=", 2.0),
        Linear({"age": 1.0, "wage": -2.0, "size": 1.0}, "==", 2.0),
        Linear({"age": 1.0, "size": 1.0}, "<=", 1.0, beyond="no_further"),
        Linear({"wage": 2.0, "age": -1.0}, ">=", 1.0, beyond="no_further"),
        Linear({"age": 1.0, "wage": 2.0, "size": 1.0}, "==", 2.0, beyond="no_further", within=0.5),
        Linear({"size": 1.0, "owner": -1.0}, "<=", 0.0, beyond="no_further", further=0.5),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    chosen = draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3, unique=True))
    weights = {name: float(draw(st.sampled_from([-2, -1, 1, 3]))) for name in chosen}
    here = sum(a * column(space, np.asarray(factual)[None, :], name)[0] for name, a in weights.items())
    sense, by = draw(st.sampled_from(["<=", ">=", "=="])), draw(st.sampled_from([-1.0, 0.0, 1.0]))
    return Linear(weights, sense, here + by, beyond=draw(st.sampled_from(["meet", "no_further"])))


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    return excess(rule, space, factual, points) <= 1e-9


def excess(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    left, today = (weighed(rule, space, rows) for rows in (points, np.asarray(factual)[None, :]))
    least, most = rule.rhs - rule.within, rule.rhs + rule.within
    if rule.beyond == "no_further":  # the looser one of the limit and the person's own value
        least, most = min(least, today[0] - rule.further), max(most, today[0] + rule.further)
    over, under = np.maximum(left - most, 0.0), np.maximum(least - left, 0.0)
    return {"<=": over, ">=": under, "==": over + under}[rule.sense]


def weighed(rule: Any, space: Any, points: Any) -> Any:
    return sum(a * column(space, points, name) for name, a in rule.coefficients.items())
