"""IfThen: where one condition holds of the answer, the other holds too, or nothing of both goes further than today."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from rules.allowed_values import VALUES
from rules.found import column

from ceopt.formulations.constraints import IfThen


def examples() -> list[Any]:
    return [
        IfThen(("job", "==", 20), ("age", ">=", 2)),
        IfThen(("wage", "changed"), ("size", "in", ["S", "L"])),
        IfThen(("age", "<=", 1), ("wage", "changed", False)),
        IfThen(("owner", "!=", False), ("wage", "changed")),
        IfThen(("wage", ">=", 0.75), ("job", "!=", 30)),
        IfThen(("size", "<=", "M"), ("age", "==", 3)),
        IfThen(("age", "changed", False), ("wage", "!=", 0.5)),
        IfThen(("wage", "in", [0.0, 0.25, 1.0]), ("size", ">=", "L")),
        IfThen(("job", "!=", 10), ("age", ">=", 3), beyond="no_further"),
        IfThen(("wage", "<=", 0.75), ("size", "<=", "S"), beyond="no_further"),
        IfThen(("size", "<=", "M"), ("wage", "in", [0.25, 1.0]), beyond="no_further"),
        IfThen(("owner", "changed", False), ("wage", "==", 1.0), beyond="no_further"),
        IfThen(("size", ">=", "M"), ("owner", "changed"), beyond="no_further"),
        IfThen(("job", "==", 20), ("age", ">=", 2), beyond="no_further"),
    ]


@st.composite
def conditions(draw: Any) -> Any:
    name = draw(st.sampled_from(sorted(set(VALUES) - {"origin"})))
    ops = ["==", "!=", "in", "changed", *(() if name == "job" else ("<=", ">="))]
    op = draw(st.sampled_from(ops))
    if op == "changed":
        return (name, op, draw(st.booleans()))
    value = st.sampled_from(VALUES[name])
    return (name, op, draw(st.lists(value, min_size=1, max_size=2) if op == "in" else value))


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    return IfThen(draw(conditions()), draw(conditions()), beyond=draw(st.sampled_from(["meet", "no_further"])))


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    kept = ~met(rule.condition, space, factual, points) | met(rule.conclusion, space, factual, points)
    own = np.asarray(factual)[None, :]
    breaks_today = met(rule.condition, space, factual, own)[0] and not met(rule.conclusion, space, factual, own)[0]
    if rule.beyond == "no_further" and breaks_today:
        kept |= nearer(rule.condition, space, own, points, -1.0) & nearer(rule.conclusion, space, own, points, 1.0)
    return kept


def nearer(condition: Any, space: Any, own: Any, points: Any, way: float) -> Any:
    """Whether a column is where it is today or, where its condition has an order, on the way to it (1) or off (-1)."""
    name, op, _ = condition
    moved = column(space, points, name) - column(space, own, name)[0]
    return moved * way * {">=": 1.0, "<=": -1.0}[op] >= 0.0 if op in {">=", "<="} else moved == 0.0


def met(condition: Any, space: Any, factual: Any, points: Any) -> Any:
    name, op, value = condition
    here, levels = column(space, points, name), list(space[name].levels)
    if op == "changed":
        return (here != column(space, np.asarray(factual)[None, :], name)[0]) == value
    if op == "in":
        return np.any([met((name, "==", one), space, factual, points) for one in value], axis=0)
    number = float(levels.index(value)) if levels else float(value)
    return {"==": here == number, "!=": here != number, "<=": here <= number, ">=": here >= number}[op]
