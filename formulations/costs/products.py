"""Weighted sums of several columns' moves, as lengths, squares or absolute values: the rows of a decorrelation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

from ceopt.formulations.columns import Price
from ceopt.formulations.costs.cost import Floats
from ceopt.formulations.costs.l2 import Kind
from ceopt.formulations.linear_form import LinearForm, Rows, total

if TYPE_CHECKING:
    from ceopt.formulations.columns.factual import Factual

__all__ = ["paid", "rows_of"]


def paid(x: Factual, prices: Mapping[str, tuple[Price, ...]]) -> list[tuple[str, Price]]:
    """Return the prices of columns that may move."""
    pairs = [(name, price) for name, listed in prices.items() for price in listed]
    return [(name, price) for name, price in pairs if max(price.down, price.up) > 0 and not x.charge(name).stays]


def rows_of(x: Factual, names: tuple[str, ...], root: Floats, kind: Kind) -> list[Any]:
    """Return the length, square or absolute value of each row of ``root @ moves``, after adding its variables."""
    found = []
    for row in root.tolist():
        slopes = {name: slope for name, slope in zip(names, row, strict=True) if slope != 0.0}
        if len(slopes) == 1:
            ((name, slope),) = slopes.items()
            found.append(x.charge(name).price(Price(kind, abs(slope), abs(slope))))
        elif slopes:
            found.append(_product(x, slopes, kind))
    return found


def _product(x: Factual, slopes: Mapping[str, float], kind: Kind) -> Any:
    """Return the length, square or absolute value of one weighted sum of moves."""
    if x.component("product") is None:
        x.product = pyo.Var(pyo.Any, dense=False)
    number, key = len(x.product), "+".join(slopes)
    form = total(x.charge(name).move().scaled(slope) for name, slope in slopes.items())
    if kind == "linear":
        parts = [x.product[key, number, side] for side in ("above", "below")]
        for part, sign in zip(parts, (1.0, -1.0), strict=True):
            part.setlb(0.0)
            x.follow(part, max, [form.scaled(sign).expression(), 0.0])
        held = LinearForm(0.0, ((1.0, parts[0]), (-1.0, parts[1])))
    else:
        parts = [x.product[key, number]]
        x.follow(parts[0], sum, [form.expression()])
        held = LinearForm(0.0, ((1.0, parts[0]),))
    Rows(x, "product_of").add((key, number), held + form.scaled(-1.0), lower=0.0, upper=0.0)
    return sum(parts) ** 2 if kind == "square" else sum(parts)
