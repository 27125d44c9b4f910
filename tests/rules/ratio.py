"""Ratio: a column is one column divided by another, half a step apart at most, but for what it is off by today."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from rules.found import column
from rules.product import following

from ceopt.formulations.constraints import Ratio


def examples() -> list[Any]:
    # Of the battery's space age alone goes up, from 1, and keeps away from 0.
    return [Ratio("wage", "size", "age"), Ratio("owner", "wage", "age", name="share"), Ratio("size", "wage", "age")]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    others = draw(st.permutations(["wage", "size", "owner"]))
    denominator = "age"
    may_fall = space["age"].mutable and space["age"].direction == "decreasing"
    if may_fall or column(space, np.asarray(factual)[None, :], "age")[0] < 1.0:
        denominator = "job"  # refused, as the age could be 0
    return Ratio(others[0], others[1], denominator)


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    def quotient(rows: Any) -> Any:
        return column(space, rows, rule.numerator) / column(space, rows, rule.denominator)

    return following(space[rule.column], quotient, rule, space, factual, points)
