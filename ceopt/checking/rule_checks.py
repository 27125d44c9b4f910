"""Rules checked in plain numbers: the space's (bounds, immutable columns, directions, steps, levels), then the user's.

Written apart from the programs, which state the same rules their own way, so that either finds the other's mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ceopt.formulations.constraints import AbstractRule, rule_name
from ceopt.formulations.constraints.rule import lacks_rows
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.tolerances import STEP_ROUNDINGS

__all__ = ["Check", "broken_moves", "broken_rules", "is_off_steps", "needing_factual"]


#: Decimals that steps are written with at most; those beyond are roundings.
_PLACES = 9


class Check(NamedTuple):
    """One point's check: what the model says, whether that meets the target, and which rules break.

    ``valid`` speaks of the target alone; in a :class:`~ceopt.verify.Report` of the rules as well.
    """

    valid: bool
    prediction: Any
    broken: tuple[str, ...]


def broken_rules(
    rules: Sequence[AbstractRule],
    space: FeatureSpace,
    factual: Mapping[str, float] | None,
    point: Mapping[str, float],
    *,
    seen_steps: bool = True,
) -> tuple[str, ...]:
    """Return what a point breaks, in words: rules of the space first, then those of the user.

    An answer of ceopt's keeps the steps that were seen in the data as well; with ``seen_steps`` off they are no rules.
    """
    broken = list(broken_moves(space, factual, point, seen_steps=seen_steps))
    for place, rule in enumerate(rules):
        if lacks_rows(rule) or (factual is None and rule.needs_factual):
            continue
        if not rule.violation(space, factual, point) <= 0:
            broken.append(f"{rule_name(rule, place)}: {rule.sentence()}")
    return tuple(broken)


def broken_moves(
    space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float], *, seen_steps: bool = True
) -> tuple[str, ...]:
    """Return what a point (coordinates by column) breaks of the space's own rules, one sentence each."""
    broken: list[str] = []
    for feature in space:
        start = None if factual is None else factual[feature.name]
        for fault in _faults(feature, start, point[feature.name], seen_steps=seen_steps):
            broken.append(f"{feature.name}: {fault}")
    return tuple(broken)


def needing_factual(space: FeatureSpace, rules: Sequence[AbstractRule]) -> tuple[str, ...]:
    """Return the rules of the space and of the user that cannot be checked without a factual."""
    unchecked: list[str] = []
    for feature in space:
        if not feature.mutable:
            unchecked.append(f"{feature.name}: fixed")
        if feature.direction != "any":
            unchecked.append(f"{feature.name}: only {feature.direction}")
        if feature.step is not None and not feature.step_inferred:
            unchecked.append(f"{feature.name}: steps of {feature.step:g}")
    for place, rule in enumerate(rules):
        if rule.needs_factual:
            unchecked.append(f"{rule_name(rule, place)}: {rule.sentence()}")
    return tuple(unchecked)


def _faults(feature: Feature, start: float | None, value: float, *, seen_steps: bool) -> Iterator[str]:
    if not math.isfinite(value):
        yield f"is {value}"
        return
    if feature.is_finite and not (value == math.floor(value) and 0 <= value < len(feature.levels)):
        yield f"has no level of rank {value:g}"
        return
    if feature.kind == "integer" and value != math.floor(value):
        yield f"must be whole, but is {value!r}"
    if value < feature.lower and not feature.lower_inferred:
        yield f"must be at least {feature.lower:g}, but is {value!r}"
    if value > feature.upper and not feature.upper_inferred:
        yield f"must be at most {feature.upper:g}, but is {value!r}"
    if start is None or value == start:
        return
    before: Any = feature.from_coordinate(start) if feature.is_finite else start
    after: Any = feature.from_coordinate(value) if feature.is_finite else value
    if not feature.mutable:
        yield f"must stay {before!r}, but is {after!r}"
    elif feature.direction == "increasing" and value < start:
        yield f"may only increase, but falls from {before!r} to {after!r}"
    elif feature.direction == "decreasing" and value > start:
        yield f"may only decrease, but rises from {before!r} to {after!r}"
    step = feature.step if seen_steps or not feature.step_inferred else None
    if step is not None and is_off_steps(step, start, value):
        yield f"moves in steps of {step:g}, but goes from {before!r} to {after!r}"


def is_off_steps(step: float, start: float, value: float) -> bool:
    """Tell whether a value is no whole number of steps from the start, but for roundings."""
    nearest = start + float(np.round((value - start) / step)) * step
    off = min(abs(value - nearest), abs(value - round(nearest, _PLACES)))  # 0.1 + 2 * 0.1 means 0.3
    return off > STEP_ROUNDINGS * max(abs(value), abs(start))
