"""Rows of a Pyomo block as text, terms by name and constants on the right: "+1 cut[age,37] -1 cut[age,50] >= 0"."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
from pyomo.repn import generate_standard_repn


def rows(block: Any, *names: str) -> list[str]:
    """Return the rows of a block's constraints (all of them, or those named), sorted, as sorted text."""
    return sorted(
        text(row.body, row.lower, row.upper)
        for row in block.component_data_objects(pyo.Constraint, active=True, descend_into=True)
        if not names or row.parent_component().local_name in names
    )


def text(body: Any, lower: Any = None, upper: Any = None) -> str:
    """Return one linear expression, or one row, as text."""
    repn = generate_standard_repn(body)
    assert repn.is_linear(), str(body)
    terms = sorted((v.local_name, c) for c, v in zip(repn.linear_coefs, repn.linear_vars, strict=True) if c)
    left = " ".join(f"{c:+.10g} {name}" for name, c in terms)
    constant = float(repn.constant)
    if lower is None and upper is None:
        return f"{left} {constant:+.10g}" if constant else left
    low = -math.inf if lower is None else pyo.value(lower) - constant + 0.0  # + 0.0: no minus zero
    high = math.inf if upper is None else pyo.value(upper) - constant + 0.0
    if low == high:
        return f"{left} = {low:.10g}"
    if math.isinf(low):
        return f"{left} <= {high:.10g}"
    return f"{left} >= {low:.10g}" if math.isinf(high) else f"{low:.10g} <= {left} <= {high:.10g}"


def variables(block: Any) -> dict[str, str]:
    """Return the free variables of a block by name: their domain and bounds as text."""
    return {
        v.local_name: f"{v.domain.name} [{_bound(v.lb, -math.inf):g}, {_bound(v.ub, math.inf):g}]"
        for v in block.component_data_objects(pyo.Var, descend_into=True)
        if not v.fixed
    }


def _bound(value: float | None, infinite: float) -> float:
    return infinite if value is None else value
