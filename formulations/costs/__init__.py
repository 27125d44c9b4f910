"""Costs of a change: objects that add and scale, and the same as expressions over a person's block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ceopt.formulations.costs.cost import AbstractCost, Sum
from ceopt.formulations.costs.linf import Linf
from ceopt.formulations.costs.separable import L0, L1, L2, Changes
from ceopt.formulations.factual import Factual, require_factual
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError

__all__ = [
    "COSTS",
    "L0",
    "L1",
    "L2",
    "AbstractCost",
    "Changes",
    "Linf",
    "Sum",
    "l0",
    "l1",
    "l2",
    "l2_squared",
    "linf",
    "parse_cost",
]

#: Costs by the name that ``explain(cost=...)`` takes.
COSTS: Mapping[str, Callable[[], AbstractCost]] = {
    "l0": L0,
    "l1": L1,
    "l2": L2,
    "l2_squared": lambda: L2(squared=True),
    "linf": Linf,
}


def parse_cost(cost: Any) -> AbstractCost:
    """Return a cost given by name or as an object, or refuse it with the choices."""
    if isinstance(cost, AbstractCost):
        return cost
    if isinstance(cost, str):
        # "L1" is the class's name, "l1" that of the same cost by default.
        cost = cost.lower() if cost in {"L0", "L1", "L2"} else cost
        if cost not in COSTS:
            raise UnknownNameError.among("cost", "cost", cost, COSTS)
        return COSTS[cost]()
    raise InvalidTypeError("cost", "a name or a cost object", f"cost is {cost!r}", f"Choose from: {', '.join(COSTS)}.")


def l0(x: Factual) -> Any:
    """Weighted number of changed columns, as an expression over a person's block."""
    return L0().build(require_factual("l0", x))


def l1(x: Factual, *, scale: str | Mapping[str, float] = "mad") -> Any:
    """Weighted l1 distance, as an expression over a person's block."""
    return L1(scale=scale).build(require_factual("l1", x))


def l2_squared(x: Factual, *, scale: str | Mapping[str, float] = "mad") -> Any:
    """Square of the weighted l2 distance, as an expression over a person's block."""
    return L2(scale=scale, squared=True).build(require_factual("l2", x))


def l2(x: Factual, *, scale: str | Mapping[str, float] = "mad") -> Any:
    """Weighted l2 distance as an objective: its square, which has the same minimisers; take the root of the optimum."""
    return l2_squared(x, scale=scale)


def linf(x: Factual, *, scale: str | Mapping[str, float] = "mad") -> Any:
    """Weighted l-infinity distance, as an expression over a person's block."""
    return Linf(scale=scale).build(require_factual("linf", x))
