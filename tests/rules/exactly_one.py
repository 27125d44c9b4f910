"""ExactlyOne: one of some columns is 1 and all others are 0; the one that gives it up is no change of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from rules.found import column

from ceopt.formulations.constraints import ExactlyOne


def examples() -> list[Any]:
    return [ExactlyOne(["wage", "owner"]), ExactlyOne(("owner", "wage")), ExactlyOne(["owner"])]


def drawn(space: Any, factual: Any) -> st.SearchStrategy[Any]:
    columns = st.lists(st.sampled_from(["wage", "owner"]), min_size=1, max_size=2, unique=True)
    return st.builds(ExactlyOne, columns)


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    values = np.stack([column(space, points, name) for name in rule.columns], axis=1)
    return ((values == 1.0).sum(axis=1) == 1) & ((values == 0.0) | (values == 1.0)).all(axis=1)


def charged(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    """A cost sees the column that is 1 today where it was, if the rule is kept today."""
    own = np.asarray(factual)[None, :]
    seen = np.array(points, dtype=float)
    if keeps(rule, space, factual, own)[0]:
        (home,) = (name for name in rule.columns if column(space, own, name)[0] == 1.0)
        seen[:, list(space.names).index(home)] = 1.0
    return seen
