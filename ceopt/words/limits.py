"""Targets, and what the space takes from a person, as phrases beside their English text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ceopt.formulations.space.reachable import Levels, removed_by
from ceopt.formulations.targets import (
    AtLeast,
    AtMost,
    Between,
    DisagreementOf,
    Labels,
    OtherThan,
    Probability,
    ProbabilityOf,
    Target,
    parse_target,
)
from ceopt.solvers.checks import plain
from ceopt.words.language import LEVEL
from ceopt.words.rules import any_of, value_phrase
from ceopt.words.said import Phrase, Said

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.reachable import Interval, Reach
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["removed_said", "target_said", "wanted_said"]


def target_said(target: Target) -> Said:
    """Return a checked target in words."""
    return Said(target.text(), (_target(target),))


def wanted_said(text: str, target: Any) -> str:
    """Return a target as a user gives it, a label, several, or an object, beside the text that says it."""
    match target:
        case OtherThan():
            return Said(text, (Phrase("target_other", {"label": _level(target.label)}),))
        case Probability():
            fields = {"label": _level(target.label), "level": float(target.at_least)}
            return Said(text, (Phrase("target_probability", fields),))
        case AtLeast() | AtMost() | Between():
            return Said(text, (_target(parse_target(target, None)),))
        case list() | set() | frozenset():
            options = any_of([_level(label) for label in target])
            return Said(text, (Phrase("target_labels", {"labels": options}),))
        case str() | bool() | int() | float():
            return Said(text, (Phrase("target_labels", {"labels": _level(target)}),))
    return text


def removed_said(space: FeatureSpace, reach: Reach) -> dict[str, str]:
    """Return, per column that lost something, what the person cannot do."""
    removed: dict[str, str] = {}
    for name, text in removed_by(space, reach).items():
        removed[name] = Said(text, (_removed(space[name], reach[name]),))
    return removed


def _target(target: Target) -> Phrase:
    match target:
        case Labels():
            labels = [_level(target.labels[place]) for place in target.wanted]
            return Phrase("target_labels", {"labels": any_of(labels)})
        case ProbabilityOf():
            label = _level(target.labels[target.position])
            return Phrase("target_probability", {"label": label, "level": float(target.at_least)})
        case DisagreementOf():
            wanted = _target(target.wanted)
            if not target.at_most:
                return Phrase("target_every_tree", {"target": wanted})
            return Phrase("target_trees", {"target": wanted, "share": float(f"{100.0 * target.at_most:.12g}")})
    if math.isinf(target.high):
        return Phrase("target_at_least", {"value": float(target.low)})
    if math.isinf(target.low):
        return Phrase("target_at_most", {"value": float(target.high)})
    return Phrase("target_between", {"low": float(target.low), "high": float(target.high)})


def _removed(feature: Feature, part: Interval | Levels) -> Phrase:
    column = feature.name

    def value(coordinate: float) -> Phrase:
        raw: Any = coordinate
        if feature.is_finite:
            raw = feature.levels[int(coordinate)]
        return value_phrase(feature, raw)

    if isinstance(part, Levels):
        if part.is_point:
            return Phrase("must_stay", {"column": column, "value": value(part.ranks[0])})
        lost = [value(rank) for rank in range(len(feature.levels)) if not part.holds(rank)]
        return Phrase("cannot_become", {"column": column, "values": any_of(lost)})
    if part.is_point:
        return Phrase("must_stay", {"column": column, "value": value(part.lower)})
    if math.isinf(part.upper):
        return Phrase("at_least", {"column": column, "value": value(part.lower)})
    if math.isinf(part.lower):
        return Phrase("at_most", {"column": column, "value": value(part.upper)})
    low = value(part.lower)
    first = Phrase(low.name, {**low.fields, "first": True})
    return Phrase("stays_between", {"column": column, "low": first, "high": value(part.upper)})


def _level(label: Any) -> Phrase:
    return Phrase(LEVEL, {"value": plain(label)})
