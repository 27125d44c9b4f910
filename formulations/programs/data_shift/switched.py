"""Products of a bounded number and binaries that exclude each other, exact in linear rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyomo.environ as pyo

from ceopt.formulations.programs.expressions import sum_of

__all__ = ["add_switched"]


def add_switched(model: Any, name: str, products: Mapping[Any, tuple[Any, Sequence[Any], tuple[float, float]]]) -> Any:
    r"""Add the products of numbers v and binaries :math:`p_k` at most one of which is 1, and return the Var of them.

    .. math::
        l\, p_k \le t_k \le u\, p_k, \qquad
        l\, \big(1 - \textstyle\sum_k p_k\big) \le v - \sum_k t_k \le u\, \big(1 - \sum_k p_k\big)

    for :math:`l \le v \le u`: exact, :math:`t_k = p_k v`, and the relaxation is the convex hull of the cases. A bound
    of 0 is one of the Var, not a row.

    Parameters
    ----------
    model
        To which are added the Var ``name``, indexed by key and k, and the rows ``name``_low, _high, _rest_low and
        _rest_high.
    products
        Key -> number, binaries, and the bounds of the number.
    """
    keys = {}
    for key, (number, bits, bounds) in products.items():
        for k, bit in enumerate(bits):
            keys[(*_tuple(key), k)] = (number, bit, bounds)

    def bounds_of(_m: Any, *key: Any) -> tuple[float, float]:
        low, high = keys[key][2]
        return (min(low, 0.0), max(high, 0.0))

    model.add_component(name, pyo.Var(list(keys), bounds=bounds_of))
    t = model.component(name)

    def least(_m: Any, *key: Any) -> Any:
        _, bit, (low, _) = keys[key]
        if not low:
            return pyo.Constraint.Skip
        return sum_of([t[key], bit], [1.0, -low]) >= 0.0

    def greatest(_m: Any, *key: Any) -> Any:
        _, bit, (_, high) = keys[key]
        return sum_of([t[key], bit], [1.0, -high]) <= 0.0

    def rest(key: Any, side: int) -> tuple[list[Any], list[float], float]:
        number, bits, bounds = products[key]
        bound = bounds[side]
        parts = [t[(*_tuple(key), k)] for k in range(len(bits))]
        if not bound:
            bits = ()
        return [number, *parts, *bits], [1.0, *([-1.0] * len(parts)), *([bound] * len(bits))], bound

    def rest_least(_m: Any, *key: Any) -> Any:
        variables, coefficients, bound = rest(_key(key), 0)
        return sum_of(variables, coefficients) >= bound

    def rest_greatest(_m: Any, *key: Any) -> Any:
        variables, coefficients, bound = rest(_key(key), 1)
        return sum_of(variables, coefficients) <= bound

    model.add_component(f"{name}_low", pyo.Constraint(list(keys), rule=least))
    model.add_component(f"{name}_high", pyo.Constraint(list(keys), rule=greatest))
    model.add_component(f"{name}_rest_low", pyo.Constraint(list(products), rule=rest_least))
    model.add_component(f"{name}_rest_high", pyo.Constraint(list(products), rule=rest_greatest))
    return t


def _tuple(key: Any) -> tuple[Any, ...]:
    if isinstance(key, tuple):
        return key
    return (key,)


def _key(key: tuple[Any, ...]) -> Any:
    if len(key) > 1:
        return key
    return key[0]
