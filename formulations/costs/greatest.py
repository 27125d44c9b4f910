"""The greatest of some terms as a variable that the objective presses down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

if TYPE_CHECKING:
    from ceopt.formulations.columns.factual import Factual

__all__ = ["greatest_of"]


def greatest_of(x: Factual, terms: Mapping[str, Any]) -> Any:
    """Return a variable t, ``greatest``, after adding the row ``t - term >= 0`` of each column."""
    if x.component("greatest") is None:
        x.greatest = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeReals)
        x.greatest_of = pyo.Constraint(pyo.Any)
    t = x.greatest[len(x.greatest)]
    for name, term in terms.items():
        x.greatest_of[name, t.index()] = t - term >= 0
    x.follow(t, max, [*terms.values(), 0.0])
    return t
