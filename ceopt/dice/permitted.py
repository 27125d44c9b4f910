"""Permitted ranges: what each column may become, as dice_ml says it, put as bounds and rules of ceopt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from ceopt.formulations.constraints import AllowedValues, Linear
from ceopt.formulations.constraints.rule import AbstractRule
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import Choice, ListOf, MappingOf, OrNone, Real, Refusal
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = ["beyond", "checked_ranges", "full_ranges", "narrowed"]

Ranges = Mapping[str, tuple[Any, ...]]

_NO_RANGES = Refusal(
    "permitted_range as a mapping from columns to ranges", 'Write {"age": [20, 30]}.', error=InvalidTypeError
)
_NO_RANGE = Refusal(
    "[least, greatest] or a list of levels for each column", "Write it so.", "{name} is {value}", InvalidTypeError
)
_RANGES: Final = OrNone(MappingOf(_NO_RANGES, ListOf(_NO_RANGE), entry="{name}[{key}]"))
_BOUND: Final = Real(finite=True)


def checked_ranges(who: str, space: FeatureSpace, given: Any) -> dict[str, tuple[Any, ...]]:
    """Return the ranges by column, levels as the data hold them (dice_ml writes each as text).

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnknownNameError
        No mapping, a column or level that is not there, no two numbers in ascending order.
    """
    ranges: dict[str, tuple[Any, ...]] = {}
    for name, entries in (_RANGES.require(who, "permitted_range", given) or {}).items():
        Choice(space.names, "column").require(who, "permitted_range", name)
        feature = space[name]
        if feature.is_finite:
            ranges[name] = _levels(who, feature, entries)
        else:
            ranges[name] = _numbers(who, name, entries)
    return ranges


def _numbers(who: str, name: str, entries: tuple[Any, ...]) -> tuple[float, float]:
    where = f"permitted_range[{name!r}]"
    bounds = [_BOUND.require(who, where, entry) for entry in entries]
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        but = f"{where} is {list(entries)!r}"
        raise InvalidValueError(who, "two numbers in ascending order for a number", but, "Write [least, greatest].")
    return bounds[0], bounds[1]


def _levels(who: str, feature: Feature, entries: tuple[Any, ...]) -> tuple[Any, ...]:
    texts = {str(level): level for level in feature.levels}
    where = f"permitted_range[{feature.name!r}]"
    if not entries:
        raise InvalidValueError(who, "at least one level", f"{where} is empty", "Name one, or leave the column out.")
    found = []
    for entry in entries:
        if str(entry) not in texts:
            raise UnknownNameError.among(who, f"level of {feature.name!r}", entry, feature.levels)
        found.append(texts[str(entry)])
    return tuple(found)


def full_ranges(space: FeatureSpace, ranges: Ranges) -> dict[str, list[Any]]:
    """Return the range or the levels of every column, those of the data where no others are given."""
    found: dict[str, list[Any]] = {}
    for feature in space:
        own = feature.levels if feature.is_finite else (feature.lower, feature.upper)
        found[feature.name] = list(ranges.get(feature.name, own))
    return found


def beyond(space: FeatureSpace, ranges: Ranges, row: pd.Series[Any]) -> tuple[str, ...]:
    """Return the numbers of a row that lie outside their permitted range, where bounds would refuse the row."""
    outside = []
    for name, bounds in ranges.items():
        if not space[name].is_finite and not bounds[0] <= row[name] <= bounds[1]:
            outside.append(name)
    return tuple(outside)


def narrowed(space: FeatureSpace, ranges: Ranges, outside: tuple[str, ...]) -> tuple[FeatureSpace, list[AbstractRule]]:
    """Return the space and the rules under which every answer keeps the permitted ranges.

    A number whose own value keeps its range is bounded by it; where it does not, it has to come in, which is a rule.
    """
    rules: list[AbstractRule] = []
    features = {feature.name: feature for feature in space}
    for name, entries in ranges.items():
        feature = features[name]
        rule_name = f"permitted range of {name}"
        if feature.is_finite:
            rules.append(AllowedValues({name: list(entries)}, name=rule_name))
        elif name in outside:
            least, greatest = entries
            wide = replace(feature, lower=min(feature.lower, least), upper=max(feature.upper, greatest))
            features[name] = wide
            rules.append(Linear({name: 1.0}, ">=", least, name=f"{rule_name}, least"))
            rules.append(Linear({name: 1.0}, "<=", greatest, name=f"{rule_name}, greatest"))
        else:
            features[name] = FeatureSpace([feature]).update(name, lower=entries[0], upper=entries[1])[name]
    return FeatureSpace(features.values()), rules
