"""AllowedRows: the values of some columns together are a row of the table, or those of today."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from rules.allowed_values import VALUES
from rules.found import column

from ceopt.formulations.constraints import AllowedRows


def examples() -> list[Any]:
    jobs = pd.DataFrame({"job": [10, 10, 20, 30, 30], "owner": [True, True, True, False, True], "note": list("abcde")})
    pay = pd.DataFrame({"age": [1, 1, 2, 3, 3], "wage": [0.5, 0.0, 0.25, 1.0, 0.5], "size": ["M", "L", "S", "S", "L"]})
    return [
        AllowedRows(["job", "owner"], jobs),
        AllowedRows(("wage", "age", "size"), pay),
        AllowedRows(["job", "size"], pd.DataFrame({"job": [20, 20, 10], "size": ["L", "M", "L"]})),
        AllowedRows(["origin", "wage"], pd.DataFrame({"origin": [2, 1], "wage": [0.5, 1.0]})),
        AllowedRows(["job", "size"], pd.DataFrame({"job": [20, 20, 10], "size": ["L", "M", "L"]}), beyond="no_further"),
        AllowedRows(("wage", "age"), pd.DataFrame({"wage": [1.0, 0.0], "age": [1, 2]}), beyond="no_further"),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3, unique=True))
    rows = st.tuples(*(st.sampled_from(VALUES[name]) for name in names))
    table = pd.DataFrame(draw(st.lists(rows, min_size=1, max_size=9)), columns=names)
    return AllowedRows(names, table, beyond=draw(st.sampled_from(["meet", "no_further"])))


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    listed = set(map(tuple, rule.frame[list(rule.columns)].astype(object).values.tolist()))
    raw = []
    for name in rule.columns:
        levels, here = space[name].levels, column(space, points, name)
        raw.append([levels[int(k)] for k in here] if levels else here.tolist())
    if rule.beyond == "no_further":
        home = [column(space, np.asarray(factual)[None, :], name)[0] for name in rule.columns]
        listed.add(tuple(space[n].from_coordinate(v) for n, v in zip(rule.columns, home, strict=True)))
    return np.array([row in listed for row in zip(*raw, strict=True)], dtype=bool)
