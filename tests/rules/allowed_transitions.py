"""AllowedTransitions: a level stays, or becomes one of those listed for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from rules.found import column

from ceopt.formulations.constraints import AllowedTransitions

LEVELS = {"size": ["S", "M", "L"], "job": [10, 30, 20], "owner": [False, True]}


def examples() -> list[Any]:
    return [
        AllowedTransitions("job", {30: [20], 20: [10, 30]}),
        AllowedTransitions("size", {"S": ["M"], "L": ["M", "S"]}),  # M is no key: it may only stay
        AllowedTransitions("owner", {False: []}),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    name = draw(st.sampled_from(sorted(LEVELS)))
    ways = st.dictionaries(
        st.sampled_from(LEVELS[name]), st.lists(st.sampled_from(LEVELS[name]), unique=True), min_size=1
    )
    return AllowedTransitions(name, draw(ways))


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    levels = space[rule.column].levels
    before = levels[int(column(space, np.asarray(factual)[None, :], rule.column)[0])]
    reached = {before, *rule.transitions.get(before, ())}
    return np.array([levels[int(k)] in reached for k in column(space, points, rule.column)], dtype=bool)
