"""Distances of one column from an earlier value, as forms that are right however large they are asked to be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

from ceopt.formulations.columns import Category, Numeric, Price, Ranked
from ceopt.formulations.costs.base import move_of
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.tolerances import DISTANCE_ROUNDING, TINY

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual

__all__ = ["is_far", "is_moved", "length"]


def _prices(at: Category | Ranked, value: float, price: Price) -> dict[int, float]:
    """Return what it costs to come to each level from that of rank ``value``."""
    return {rank: price.of(move_of(at.feature, value, float(rank))) for rank in at.ranks}


def length(block: Any, x: Factual, name: str, value: float, price: Price) -> LinearForm:
    """Return what the move from ``value`` costs, as a form that is right however large it is asked to be."""
    at = x.coordinate(name)
    if isinstance(at, Category | Ranked):
        return at.tabulate(_prices(at, value, price))
    assert isinstance(at, Numeric)  # noqa: S101 - the third of three kinds
    slope = max(price.down, price.up)
    falls, climbs = (slope * room for room in (value - at.interval.lower, at.interval.upper - value))
    if max(falls, climbs) <= TINY:
        return LinearForm()
    move = (at.raw() + LinearForm(-value)).scaled(slope)
    # Parts in units of the distance, and no coefficient below 1: no tolerance is blown up on its way into the distance.
    factor = max(1.0, 1.0 / (slope * at.unit))
    if min(falls, climbs) <= TINY:  # one way only: the move itself
        way = _variable(block, "way", name, pyo.Reals)
        x.follow(way, sum, [move.expression()])
        form = LinearForm(0.0, ((1.0, way),))
        Rows(block, "move").add(name, (move + form.scaled(-1.0)).scaled(factor), lower=0.0, upper=0.0)
        return form.scaled((price.up if falls <= TINY else -price.down) / slope)
    at.require_bounds("Apart")
    up, down = (_variable(block, word, name, pyo.NonNegativeReals) for word in ("up", "down"))
    rises = _variable(block, "rises", name, pyo.Binary)
    forms = [LinearForm(0.0, ((1.0, variable),)) for variable in (up, down, rises)]
    row = move + forms[0].scaled(-1.0) + forms[1]
    Rows(block, "move").add(name, row.scaled(factor), lower=0.0, upper=0.0)
    Rows(block, "most").add((name, "up"), forms[0] + forms[2].scaled(-climbs), upper=0.0)
    Rows(block, "most").add((name, "down"), forms[1] + forms[2].complement().scaled(-falls), upper=0.0)
    for variable, of, follows in ((up, move, _positive_part), (down, move.scaled(-1.0), _positive_part)):
        x.follow(variable, follows, [of.expression()])
    x.follow(rises, _is_positive, [move.expression()])
    return forms[0].scaled(price.up / slope) + forms[1].scaled(price.down / slope)


def _variable(block: Any, word: str, name: str, domain: Any) -> Any:
    if block.component(word) is None:
        block.add_component(word, pyo.Var(pyo.Any, dense=False, domain=domain))
    return block.component(word)[name]


def _positive_part(values: list[float]) -> float:
    return max(values[0], 0.0)


def _is_positive(values: list[float]) -> float:
    return float(values[0] > 0.0)


def is_moved(x: Factual, name: str, value: float, price: Price) -> LinearForm:
    """Return the price of leaving ``value`` by at least the least move."""
    at = x.coordinate(name)
    if isinstance(at, Category | Ranked):
        return at.tabulate(_prices(at, value, price))
    assert isinstance(at, Numeric)  # noqa: S101 - the third of three kinds
    least = at.least_move() * at.unit * (1.0 - DISTANCE_ROUNDING)
    return _below(at, value - least).scaled(price.down) + _above(at, value + least).scaled(price.up)


def is_far(x: Factual, name: str, value: float, price: Price, least: float) -> LinearForm:
    """Return 1 where the move from ``value`` costs at least ``least``, else 0."""
    at = x.coordinate(name)
    if isinstance(at, Category | Ranked):
        return at.indicator({rank for rank, cost in _prices(at, value, price).items() if cost >= least})
    assert isinstance(at, Numeric)  # noqa: S101 - the third of three kinds
    down = math.inf
    up = math.inf
    if price.down > 0.0:
        down = least / price.down
    if price.up > 0.0:
        up = least / price.up
    return _below(at, value - down) + _above(at, value + up)


def _above(at: Numeric, value: float) -> LinearForm:
    """Return 1 where the number is at least ``value``, else 0, after cutting the column there."""
    right = at.interval.ceil(value)
    if math.isinf(right):  # beyond all in reach
        return LinearForm()
    left = at.interval.floor(math.nextafter(right, -math.inf))
    if math.isinf(left):  # below all in reach
        return LinearForm(1.0)
    at.add_cuts([(left, right)])
    return at.cells.right_of((left, right))


def _below(at: Numeric, value: float) -> LinearForm:
    """Return 1 where the number is at most ``value``, else 0."""
    left = at.interval.floor(value)
    if math.isinf(left):
        return LinearForm()
    return _above(at, math.nextafter(left, math.inf)).complement()
