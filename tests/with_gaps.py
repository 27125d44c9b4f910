"""Small spaces in which cells may be missing or hold codes, the people in them, and all that they may become."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.formulations import Factual
from ceopt.formulations.costs import L0, L2, Changes, Linf
from ceopt.formulations.linear_form import LinearForm, total
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.feature import is_gap
from ceopt.formulations.space.reachable import Interval

__all__ = ["PEOPLE", "SPACE", "block", "by_hand", "is_label", "points", "raw", "wanted", "weights_of"]

Floats = NDArray[np.float64]

SPACE = FeatureSpace(
    [
        Feature(
            "wage",
            kind="integer",
            lower=0,
            upper=3,
            missing="may_vanish",
            fill=1.5,
            weight=(1.0, 2.0),
            mad=2.0,
            std=3.0,
        ),
        Feature(
            "score", kind="continuous", lower=0, upper=1.5, step=0.5, codes=(-9, 0.5), codes_in_reach=True, range=0.5
        ),
        Feature("size", kind="ordinal", levels=("S", "M", "L", "?"), codes=("?",), missing=True, weight=3.0),
        Feature(
            "job",
            kind="categorical",
            levels=("cook", "nurse", "none"),
            codes=("none",),
            codes_in_reach=True,
            missing="may_vanish",
            fill=0.25,
        ),
        Feature("owner", kind="binary", levels=(False, True), missing=True, weight=(1.0, 4.0)),
    ]
)
#: Amounts everywhere; missing cells; codes; both.
PEOPLE: tuple[dict[str, Any], ...] = (
    {"wage": 1, "score": 1.0, "size": "M", "job": "cook", "owner": False},
    {"wage": None, "score": 0.0, "size": None, "job": None, "owner": None},
    {"wage": 3, "score": -9, "size": "?", "job": "none", "owner": True},
    {"wage": None, "score": 0.5, "size": "L", "job": "nurse", "owner": None},
)


def is_label(name: str, value: Any, space: FeatureSpace = SPACE) -> bool:
    """Whether a raw value, None of a missing cell, is no amount."""
    return value is None or value in space[name].codes


def raw(point: Mapping[str, float], space: FeatureSpace = SPACE) -> dict[str, Any]:
    """Return coordinates as raw values, None where a cell is missing."""
    values = {name: space[name].from_coordinate(coordinate) for name, coordinate in point.items()}
    return {name: None if is_gap(value) else value for name, value in values.items()}


def points(x: Factual) -> list[dict[str, float]]:
    """Return every point in reach of a person whose numbers have steps."""
    columns = []
    for feature in x.space:
        part = x.reach[feature.name]
        if not isinstance(part, Interval):
            columns.append(list(map(float, part.values)))
            continue
        amounts = []
        value = part.lower
        while value <= part.upper:
            amounts.append(value)
            value = part.ceil(np.nextafter(value, np.inf))
        columns.append([*amounts, *(label for label in part.labels if label not in amounts)])
    return [dict(zip(x.space.names, map(float, row), strict=True)) for row in itertools.product(*columns)]


def block(row: Mapping[str, Any], space: FeatureSpace = SPACE, *, read: bool = False) -> tuple[Any, Factual]:
    """Return a model and a person in it, of whose numbers each value is a cell; ``read``: each has a coordinate."""
    model = pyo.ConcreteModel()
    model.x = x = Factual(space, row)
    for point in points(x):
        for name, value in point.items():
            x.coordinate(name).equals(value)
    if read:
        for feature in space:
            if not feature.is_finite:
                x.numeric(feature.name).amount()
    return model, x


def wanted(x: Factual, weights: Mapping[tuple[str, float], float]) -> Any:
    """Return what is paid for the value of each column, as an expression."""
    forms: list[LinearForm] = []
    for (name, value), weight in weights.items():
        forms.append(x.coordinate(name).equals(value).scaled(weight))
    return total(forms).expression()


def weights_of(x: Factual, draw: np.random.Generator) -> dict[tuple[str, float], float]:
    """Return what is paid for each value in reach, at random."""
    pairs = dict.fromkeys((name, value) for point in points(x) for name, value in point.items())
    return {pair: float(draw.integers(-8, 9)) / 2.0 for pair in pairs}


# ---- what a move costs, by the words of the documentation ------------------------------------------------------------
def length_of(feature: Feature, one: Any, other: Any) -> float:
    """Return how far a move goes, with its sign, between two amounts in raw units."""
    if feature.kind == "categorical":
        return 1.0
    if feature.is_finite:
        return float(feature.levels.index(other) - feature.levels.index(one))
    return float(other - one)


def part_of(cost: Any, feature: Feature, one: Any, other: Any) -> float:
    """Return what a changed column adds, to the square of an l2 its root."""
    twice = 1.0
    if getattr(cost, "count", "features") == "columns" and feature.kind == "categorical":
        twice = math.sqrt(2.0) if isinstance(cost, L2) else 2.0
    is_filled = is_label(feature.name, one) or is_label(feature.name, other)
    weight = max(feature.weights)
    if not is_filled:
        weight = feature.weights[length_of(feature, one, other) > 0.0]
    if isinstance(cost, Changes):
        return twice
    if isinstance(cost, L0):
        return weight
    if is_filled:
        return feature.fill * weight * twice
    scale = feature.scale(cost.scale) if isinstance(cost.scale, str) else cost.scale.get(feature.name, 1.0)
    return twice * weight * abs(length_of(feature, one, other)) / scale


def by_hand(cost: Any, before: dict[str, Any], after: dict[str, Any]) -> float:
    """Return what a move costs by the words of the documentation."""
    if hasattr(cost, "terms"):
        return sum(factor * by_hand(part, before, after) for factor, part in cost.terms)
    if hasattr(cost, "unit"):
        return by_hand(cost.cost, before, after)
    pairs = [(feature, before[feature.name], after[feature.name]) for feature in SPACE]
    parts = [part_of(cost, feature, one, other) for feature, one, other in pairs if one != other]
    if isinstance(cost, Linf):
        return max(parts, default=0.0)
    if isinstance(cost, L2):
        square = sum(part * part for part in parts)
        return square if cost.squared else math.sqrt(square)
    return sum(parts)
